// The memory that training one member needs.
#pragma once

#include "trainer/look_up.hpp"
#include "trainer/normalization.hpp"
#include "trainer/products.hpp"
#include "trainer/recording.hpp"

namespace isotone::ISOTONE_ISA {

// Hands out pieces of a block, each aligned; counts bytes only if the block is null.
class Arena {
public:
    explicit Arena(void* block) : block_(static_cast<char*>(block)) {}

    template <class T>
    T* take(std::size_t n) {
        constexpr std::size_t unit = workspace_alignment;
        const std::size_t begin = used_;
        used_ += (n * sizeof(T) + unit - 1) / unit * unit;
        return block_ ? reinterpret_cast<T*>(block_ + begin) : nullptr;
    }
    std::size_t used() const { return used_; }

private:
    char* block_;
    std::size_t used_ = 0;
};

inline std::size_t count_comparators(const Layer& layer) {
    return (layer.n_out / layer.group_size) *
           static_cast<std::size_t>(layer.network.last - layer.network.first);
}

constexpr int max_tiles = 16;  // of a chunk

// What a tile has of the inputs of a layer: nothing if they are looked up.
inline int n_loaded(const Shape& shape, int layer) {
    return layer == 0 && shape.n_fields ? 0 : shape.layers[layer].n_in;
}

// As many tiles of the widest layer as fill most of a level-1 cache together with their gradients.
template <class T>
int tiles_per_chunk(const Shape& shape) {
    constexpr std::size_t budget = 24576;
    int widest = 1;
    for (int i = 0; i < shape.n_layers; ++i) {
        const int width = n_loaded(shape, i) + shape.layers[i].n_out;
        if (width > widest) widest = width;
    }
    const std::size_t tiles = budget / (widest * tile_rows * sizeof(T));
    return tiles < 1 ? 1 : tiles > max_tiles ? max_tiles : static_cast<int>(tiles);
}

inline std::size_t n_residual(const Shape& shape) {
    return static_cast<std::size_t>(shape.n_outputs()) * shape.n_features();
}

// Sums over events: for every parameter of the layers, and for every coefficient of the residual
// if λ is learned.
inline std::size_t n_summed(const Shape& shape) {
    return shape.n_weights + (shape.learns_lipschitz ? n_residual(shape) : 0);
}

template <class T>
struct LayerSpace {
    using V = Vector<T>;
    V* in;           // what the layer is given: tiles of a chunk
    V* gradient;     // derivatives with respect to what it gives: tiles of a chunk
    Swap<V>* swaps;  // of the sort after it: one tile
    NormalizedWeight<T> normalized;
};

template <class T>
struct Workspace {
    using V = Vector<T>;
    LayerSpace<T> layers[max_layers];
    V *x, *y, *share;  // one tile: features, targets, weights of events
    V* sums;           // of the gradient, `n_sums` for each entry
    T* gradient;
    T *scale, *residual;  // λ and what goes with it, where λ is learned
    LookUp<T> look_up;
    T* looked_up;       // one tile: the residual
    std::size_t* rows;  // of the events in the tiles of a chunk
    T* scratch;         // one number for each row or column of a layer
    T* zeros;           // likewise

    Workspace(const Shape& shape, Arena& arena) {
        const int n_tiles = tiles_per_chunk<T>(shape);
        constexpr int size = tile_vectors<V>;
        int widest = 1;
        for (int i = 0; i < shape.n_layers; ++i) {
            const Layer& layer = shape.layers[i];
            const std::size_t n_in = n_loaded(shape, i), n_out = layer.n_out;
            const int wider = layer.n_in > layer.n_out ? layer.n_in : layer.n_out;
            if (wider > widest) widest = wider;
            layers[i].in = arena.take<V>(n_in * size * n_tiles);
            layers[i].gradient = arena.take<V>(n_out * size * n_tiles);
            layers[i].swaps = arena.take<Swap<V>>(count_comparators(layer) * size);
            layers[i].normalized = {arena.take<T>(n_out * n_in), arena.take<T>(n_in * n_out),
                                    arena.take<T>(wider)};
        }
        x = arena.take<V>(static_cast<std::size_t>(n_loaded(shape, 0)) * size);
        if (shape.n_fields) look_up.take(shape, arena);
        looked_up = arena.take<T>(static_cast<std::size_t>(shape.n_outputs()) * tile_rows);
        rows = arena.take<std::size_t>(static_cast<std::size_t>(n_tiles) * tile_rows);
        y = arena.take<V>(static_cast<std::size_t>(shape.n_targets) * size);
        share = arena.take<V>(size);
        sums = arena.take<V>(n_summed(shape) * (n_sums / n_lanes<V>));
        gradient = arena.take<T>(n_summed(shape));
        scale = arena.take<T>(shape.n_features());
        residual = arena.take<T>(n_residual(shape));
        scratch = arena.take<T>(widest);
        zeros = arena.take<T>(widest);
        for (int i = 0; zeros && i < widest; ++i) zeros[i] = 0;
    }

    // What is outside of the blocks is read, but never written.
    void clear(const Shape& shape, const Usual<T>& usual) {
        if (shape.n_fields) look_up.clear(shape, usual);
        if (!shape.mask) return;
        __builtin_memset(gradient, 0, n_summed(shape) * sizeof(T));
        for (int i = 0; i < shape.n_layers; ++i) {
            const std::size_t n = static_cast<std::size_t>(n_loaded(shape, i));
            for (T* table : {layers[i].normalized.weight, layers[i].normalized.transposed})
                __builtin_memset(table, 0, n * shape.layers[i].n_out * sizeof(T));
        }
    }
};

template <class T>
std::size_t workspace_bytes(const Shape& shape) {
    Arena arena(nullptr);
    Workspace<T> counted(shape, arena);
    return arena.used();
}

}  // namespace isotone::ISOTONE_ISA
