// Products of weights with a tile of events, and of two tiles with each other.
//
// A tile holds n units of `tile_rows` events each, unit after unit, in any instruction set; a sum
// over events is kept as `n_sums` partial sums, event e adding to number e % n_sums. So the order
// of every addition is the same whatever the length of a vector.
#pragma once

#include "trainer/arithmetic.hpp"
#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

constexpr int tile_rows = 32;
constexpr int n_sums = 16;

template <class V>
constexpr int tile_vectors = tile_rows / n_lanes<V>;

// Blocks of units that fill the registers: 32 with AVX-512, otherwise 16.
#if defined(__AVX512F__)
constexpr int units_per_block = 10, left_per_block = 4, right_per_block = 5;
#else
constexpr int units_per_block = 5, left_per_block = 2, right_per_block = 4;
#endif

// Calls run(std::integral_constant<int, size>()) for a size from 1 to `most`.
template <int most, class Run>
inline void with_constant(int size, Run run) {
    if constexpr (most > 1)
        if (size < most) return with_constant<most - 1>(size, run);
    run(std::integral_constant<int, most>());
}

// Two vectors of events at a time share every weight that is loaded.
template <int n, class V>
void multiply_block(const Element<V>* weight, int stride, const Element<V>* start, const V* in,
                    int n_in, V* out) {
    V first[n], second[n];
    unroll<n>([&](auto j) ISOTONE_LAMBDA { first[j] = second[j] = broadcast<V>(start[j]); });
    for (int k = 0; k < n_in; ++k, weight += stride, in += tile_vectors<V>)
        unroll<n>([&](auto j) ISOTONE_LAMBDA {
            const V w = broadcast<V>(weight[j]);
            first[j] = multiply_add(w, in[0], first[j]);
            second[j] = multiply_add(w, in[1], second[j]);
        });
    unroll<n>([&](auto j) ISOTONE_LAMBDA {
        out[j * tile_vectors<V>] = first[j];
        out[j * tile_vectors<V> + 1] = second[j];
    });
}

// out[j] = start[j] + sum over k of weight[k, j] in[k]; the blocks are of weight[j, k].
template <class V>
void multiply(Blocks blocks, const Element<V>* weight, int n_out, const Element<V>* start,
              const V* in, V* out) {
    for (const Block& block : blocks) {
        const Element<V>* const own = weight + block.column * n_out;
        const V* const from = in + block.column * tile_vectors<V>;
        const int end = block.row + block.n_rows;
        for (int j = block.row; j < end; j += units_per_block)
            with_constant<units_per_block>(end - j, [&](auto n) {
                for (int e = 0; e < tile_vectors<V>; e += 2)
                    multiply_block<n>(own + j, n_out, start + j, from + e, block.n_columns,
                                      out + j * tile_vectors<V> + e);
            });
    }
}

// Tiles of one array that follow each other in memory.
template <class V>
struct Tiles {
    const V* first;
    int n_units, n_tiles;
    const V* unit(int j) const { return first + j * tile_vectors<V>; }
    int stride() const { return n_units * tile_vectors<V>; }
};

template <int n_left, int n_right, class V>
void add_products_block(const V* left, int left_stride, const V* right, int right_stride,
                        int n_tiles, V* sums, int sums_stride) {
    constexpr int parts = n_sums / n_lanes<V>;
    V sum[n_left * n_right];
    const auto visit = [&](auto run) ISOTONE_LAMBDA {
        unroll<n_left>([&](auto i) ISOTONE_LAMBDA {
            unroll<n_right>([&](auto k) ISOTONE_LAMBDA { run(i, k, sum[i * n_right + k]); });
        });
    };
    visit([&](int i, int k, V& s) ISOTONE_LAMBDA { s = sums[i * sums_stride + k * parts]; });
    for (int tile = 0; tile < n_tiles; ++tile, left += left_stride, right += right_stride)
        for (int e = 0; e < tile_vectors<V>; e += parts)
            visit([&](int i, int k, V& s) ISOTONE_LAMBDA {
                s = multiply_add(left[i * tile_vectors<V> + e], right[k * tile_vectors<V> + e], s);
            });
    visit([&](int i, int k, V& s) ISOTONE_LAMBDA { sums[i * sums_stride + k * parts] = s; });
}

// sums[i, k] += sum over events of left[i] right[k], in `n_sums` partial sums; of one block.
template <class V>
void add_products(const Block& of, Tiles<V> left, Tiles<V> right, V* sums) {
    constexpr int parts = n_sums / n_lanes<V>;
    const int i_end = of.row + of.n_rows, k_end = of.column + of.n_columns;
    for (int i = of.row; i < i_end; i += left_per_block)
        for (int k = of.column; k < k_end; k += right_per_block)
            with_constant<left_per_block>(i_end - i, [&](auto n_left) {
                with_constant<right_per_block>(k_end - k, [&](auto n_right) {
                    V* block = sums + (i * right.n_units + k) * parts;
                    for (int part = 0; part < parts; ++part)
                        add_products_block<n_left, n_right>(
                            left.unit(i) + part, left.stride(), right.unit(k) + part,
                            right.stride(), left.n_tiles, block + part, right.n_units * parts);
                });
            });
}

// sums[i] += sum over events of tiles[i].
template <class V>
void add_units(Tiles<V> tiles, V* sums) {
    constexpr int parts = n_sums / n_lanes<V>;
    for (int i = 0; i < tiles.n_units; ++i, sums += parts)
        for (int part = 0; part < parts; ++part) {
            V sum = sums[part];
            const V* unit = tiles.unit(i) + part;
            for (int tile = 0; tile < tiles.n_tiles; ++tile, unit += tiles.stride())
                for (int e = 0; e < tile_vectors<V>; e += parts) sum += unit[e];
            sums[part] = sum;
        }
}

// total[i] = the sum of the `n_sums` partial sums i; every machine can shuffle four at a time.
template <class V, class T>
void collect_sums(const V* vectors, std::size_t n, T* total) {
    using Four = Vector<T, 4>;
    const T* const sums = reinterpret_cast<const T*>(vectors);
    const auto fold = [](const T* partial) {
        Four part[n_sums / 4];
        __builtin_memcpy(part, partial, sizeof(part));
        return (part[0] + part[1]) + (part[2] + part[3]);
    };
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const Four a = fold(sums + (i + 0) * n_sums), b = fold(sums + (i + 1) * n_sums);
        const Four c = fold(sums + (i + 2) * n_sums), d = fold(sums + (i + 3) * n_sums);
        const Four ab =
            __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Four cd =
            __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
        const Four all = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
                         __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        __builtin_memcpy(total + i, &all, sizeof(Four));
    }
    for (; i < n; ++i) {
        const Four a = fold(sums + i * n_sums);
        total[i] = (a[0] + a[2]) + (a[1] + a[3]);
    }
}

}  // namespace isotone::ISOTONE_ISA
