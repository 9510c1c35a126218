// ---- scores -------------------------------------------------------------------------------
#pragma once

#include "state.hpp"
#include "steps.hpp"

namespace isotone::ISOTONE_ISA {

template <class T>
inline bool is_finite(const Model<T>& model, const Column* columns, std::size_t event) {
    Bits finite = ~Bits{};
    for (int i = 0; i < count_columns(model); ++i)
        finite &= are_finite(broadcast<Doubles>(read(columns[i], event)));
    return all(finite);
}

// Scores of events `first` to `last` - 1, with `out` those of `first`: [event][output].
template <class Sizes, class T>
std::size_t score_tile(const Model<T>& model, const Column* columns, std::size_t first,
                       std::size_t last, std::size_t n, T fill, T* out, T* workspace, int tile) {
    using V = Vector<T>;
    const int size = tile * n_lanes<V>;
    const bool finite = model.n_sources > 0
                            ? prepare_sources(model, columns, first, n, size, workspace)
                            : prepare(model, columns, first, n, size, workspace);
    V* u = reinterpret_cast<V*>(workspace);
    V* h = run_steps<Sizes>(model, u, u + count_input_rows(model) * tile, tile);
    if (model.n_sources > 0)
        add_residual_copies(model, static_cast<const V*>(u), h, tile);
    else
        dense<true>(model.residual, static_cast<const T*>(nullptr), model.n_features,
                    model.n_outputs, sums_in_parts(model) ? 0 : model.n_features, u, h, tile);
    const T* scores = reinterpret_cast<const T*>(h);
    const int m = model.n_outputs;
    if (m == 1)  // a loop that compilers turn into vectors
        for (std::size_t e = 0; e < last - first; ++e) out[e] = scores[e] + T(0);
    else
        for (int j = 0; j < m; ++j)
            for (std::size_t e = 0; e < last - first; ++e)
                out[e * m + j] = scores[j * size + e] + T(0);
    if (finite) return 0;
    std::size_t n_bad = 0;
    for (std::size_t e = 0; e < last - first; ++e)
        if (!is_finite(model, columns, first + e)) {
            for (int j = 0; j < m; ++j) out[e * m + j] = fill;
            ++n_bad;
        }
    return n_bad;
}

// The scores of one event; returns 1 if it had a NaN or infinite feature.
template <class Sizes, class T>
std::size_t score_one(const Model<T>& model, const Column* columns, T fill, T* out, T* u) {
    Bits finite = ~Bits{};
    if (model.n_sources > 0 && !prepare_sources(model, columns, 0, 1, 1, u)) finite = Bits{};
    for (int i = 0; model.n_sources == 0 && i < model.n_features; ++i)
        finite &= prepare_one(model, model.features[i], columns[i], 0, u + i);
    T* h = run_steps<Sizes>(model, u, u + count_input_rows(model), 1);
    if (model.n_sources > 0) {
        add_residual_copies(model, static_cast<const T*>(u), h, 1);
        __builtin_memcpy(out, h, model.n_outputs * sizeof(T));
    } else {
        add_residual_one(model, h, u, out);
    }
    const bool good = all(finite);
    for (int j = 0; j < model.n_outputs; ++j) out[j] = good ? out[j] + T(0) : fill;
    return !good;
}

// Vectors in a tile: what keeps the units in the first-level cache.
template <class T>
constexpr int tile_for(const Model<T>& model) {
    const int fitting = 24 * 1024 / ((count_input_rows(model) + 2 * model.width) * vector_bytes);
    return fitting > full_tile ? full_tile : fitting < 2 ? 2 : fitting / 2 * 2;
}

// The scores of any number of events, tile by tile. A function of its own, so that nothing of it
// can be moved out of the reach of the state that its caller sets.
template <class Sizes, class T>
__attribute__((noinline)) std::size_t score_tiles(const Model<T>& model, const Column* columns,
                                                  std::size_t n, T fill, T* out, T* workspace) {
    constexpr std::size_t lanes = n_lanes<Vector<T>>;
    const int most = tile_for(model);
    std::size_t n_bad = 0;
    for (std::size_t first = 0; first < n;) {
        const std::size_t vectors = (n - first + lanes - 1) / lanes;
        const int tile =
            vectors < static_cast<std::size_t>(most) ? static_cast<int>(vectors) : most;
        const std::size_t last = first + tile * lanes < n ? first + tile * lanes : n;
        n_bad += score_tile<Sizes>(model, columns, first, last, n, fill,
                                   out + first * model.n_outputs, workspace, tile);
        first = last;
    }
    return n_bad;
}

// Scores n events to `out`, [event][output]; events with a NaN or infinite feature get `fill`.
// Returns how many those were. The model `is_valid`; `out` must not overlap the columns;
// `workspace` has `workspace_size` numbers and the alignment of vectors.
template <class Sizes, class T>
std::size_t score(const Model<T>& model, const Column* columns, std::size_t n, T fill, T* out,
                  T* workspace) {
    const std::uint64_t state = enter_default_state();
    const std::size_t n_bad = n == 1 ? score_one<Sizes>(model, columns, fill, out, workspace)
                                     : score_tiles<Sizes>(model, columns, n, fill, out, workspace);
    leave_default_state(state);
    return n_bad;
}

}  // namespace isotone::ISOTONE_ISA
