// ---- copies of columns --------------------------------------------------------------------
#pragma once

#include "inputs.hpp"

namespace isotone::ISOTONE_ISA {

// What enters the steps: features, or for a model with sources first where the copy that moves is,
// a row of events for every source, then the rows of the tables that belong to that copy.
template <class T>
constexpr int count_input_rows(const Model<T>& model) {
    return model.n_sources > 0 ? 2 * model.n_sources : model.n_features;
}

constexpr int most_events = full_tile * n_lanes<Vector<float>>;  // of a tile

// So many halves of a search are found by comparing with all ends that part them: faster, up to
// 15 ends, than to look for the right one of each event.
constexpr int most_counted_levels = 4;

// How many of `n` ends, 2^shift apart, are at most x, times 2^shift; for `vectors` vectors of
// events.
template <int vectors>
ISOTONE_INLINE void count_ends(const double* ends, int n, int shift, const double* x,
                               std::int64_t* count) {
    constexpr int lanes = n_lanes<Doubles>;
    Doubles raw[vectors];
    Bits found[vectors] = {};
    for (int v = 0; v < vectors; ++v) raw[v] = load<Doubles>(x + v * lanes);
#pragma GCC unroll 1
    for (int i = 0; i < n; ++i) {
        const Doubles end = broadcast<Doubles>(ends[static_cast<std::ptrdiff_t>(i) << shift]);
        for (int v = 0; v < vectors; ++v) found[v] -= raw[v] >= end;
    }
    for (int v = 0; v < vectors; ++v) store(count + v * lanes, found[v] << shift);
}

// Number copy[lane] of the events of a vector.
template <std::size_t... lane>
ISOTONE_INLINE Doubles pick_numbers(const double* numbers, const std::int64_t* copy,
                                    std::index_sequence<lane...>) {
    return Doubles{numbers[copy[lane]]...};
}

template <double Feature::*number, std::size_t... lane>
ISOTONE_INLINE Doubles pick_numbers(const Feature* features, const std::int64_t* copy,
                                    std::index_sequence<lane...>) {
    return Doubles{features[copy[lane]].*number...};
}

// The copy that moves at x[e], for every event: how many ends are at most x. A search by halves
// without branches, the first of which are counted.
inline void find_copies(const Source& source, const double* x, int size, std::int64_t* copy) {
    constexpr int lanes = n_lanes<Doubles>;
    const int counted = source.levels < most_counted_levels ? source.levels : most_counted_levels;
    const int shift = source.levels - counted, n = (1 << counted) - 1;
    const double* const first = source.ends + (1 << shift) - 1;
    int e = 0;
    for (; e + 4 * lanes <= size; e += 4 * lanes) count_ends<4>(first, n, shift, x + e, copy + e);
    for (; e < size; e += lanes) count_ends<1>(first, n, shift, x + e, copy + e);
    for (int step = (1 << shift) / 2; step > 0; step /= 2)
        for (e = 0; e < size; e += lanes) {
            const Doubles end =
                pick_numbers(source.ends + step - 1, copy + e, std::make_index_sequence<lanes>());
            const Bits above = load<Doubles>(x + e) >= end;
            store(copy + e, load<Bits>(copy + e) + (above & step));
        }
}

// Raw numbers of a column. Of a tile that the batch does not fill the last event is repeated.
inline void read_column(const Column& column, std::size_t event, std::size_t n, int size,
                        double* x) {
    const char* p = locate(column, event);
    if (event + size > n)
        for (int e = 0; e < size; ++e) x[e] = read(column, event + e < n ? event + e : n - 1);
    else if (column.single)
        for (int e = 0; e < size; ++e) x[e] = load<float>(p + e * column.stride);
    else
        for (int e = 0; e < size; ++e) x[e] = load<double>(p + e * column.stride);
}

// The raw numbers of four columns of a full tile that are in rows.
template <class Raw>
void read_rows(const char* p, std::ptrdiff_t stride, int size, double* x) {
    using V = Vector<Raw>;
    for (int e = 0; e < size; e += n_lanes<V>, p += n_lanes<V> * stride) {
        for (int k = 0; k < n_lanes<V>; ++k) prefetch(p, (size + k) * stride);  // the next tile
        const Four<V> raw = turn_rows<Raw>(p, stride);
        unroll<4>([&](auto i) ISOTONE_LAMBDA {
            if constexpr (std::is_same_v<Raw, float>) {
                const Halves wide = widen(raw.columns[i]);
                store(x + i * most_events + e, wide.first);
                store(x + i * most_events + e + n_lanes<Doubles>, wide.second);
            } else {
                store(x + i * most_events + e, raw.columns[i]);
            }
        });
    }
}

// The raw numbers of one column of Raw, or of four at once if they are in rows; returns how many
// columns those were. Column i goes to x + i * most_events.
template <class Raw>
int read_columns(const Column* columns, int n_columns, std::size_t event, std::size_t n, int size,
                 double* x) {
    constexpr int lanes = n_lanes<Vector<Raw>>;
    if constexpr (lanes >= 4)
        if (n_columns >= 4 && event + size <= n && size % lanes == 0 && are_in_rows(columns)) {
            read_rows<Raw>(locate(*columns, event), columns->stride, size, x);
            return 4;
        }
    read_column(*columns, event, n, size, x);
    return 1;
}

// The row of a table that belongs to a copy, kept where a number of T would be.
template <class T>
using RowNumber = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// Where copy[e] is at x[e], for every event: as `Snap`, but within +-1.
template <bool round, class T>
void place_copies(const Model<T>& model, const Feature* features, const double* x,
                  const std::int64_t* copy, int size, T* phi) {
    constexpr int lanes = n_lanes<Doubles>;
    const double grid = model.grid, cells = round ? 1.0 / grid : 0.0;
    const Doubles one = broadcast<Doubles>(1.0);
    for (int e = 0; e < size; e += lanes) {
        const auto each = std::make_index_sequence<lanes>();
        const Doubles center = pick_numbers<&Feature::center>(features, copy + e, each);
        const Doubles factor = pick_numbers<&Feature::factor>(features, copy + e, each);
        Doubles u = minimum(maximum((load<Doubles>(x + e) - center) * factor, -one), one);
        u = round ? round_even(u * cells) * grid + 0.0 : u;
        if (size < lanes)
            *phi = static_cast<T>(u[0]);
        else
            store_doubles(phi + e, u);
    }
}

// The events of a column with several copies.
template <class T>
void prepare_copies(const Model<T>& model, const Source& source, const double* x, int size, T* phi,
                    T* row) {
    std::int64_t copy[most_events];
    find_copies(source, x, size, copy);
    const int first = source.first;
    if (model.grid > 0.0)
        place_copies<true>(model, model.features + first, x, copy, size, phi);
    else
        place_copies<false>(model, model.features + first, x, copy, size, phi);
    for (int e = 0; e < size; ++e)
        store(row + e, static_cast<RowNumber<T>>(2 * (first + copy[e])));
}

// The events of a column that is its own only copy.
template <class T>
void prepare_column(const Model<T>& model, const Source& source, const double* x, int size, T* phi,
                    T* row) {
    const Feature& feature = model.features[source.first];
    with_snap(model, feature.log, [&](auto snap) ISOTONE_LAMBDA {
        if (size < n_lanes<Doubles>)
            *phi = static_cast<T>(snap(feature, load<Doubles>(x))[0]);
        else
            for (int e = 0; e < size; e += n_lanes<Doubles>)
                snap(feature, load<Doubles>(x + e), phi + e);
    });
    for (int e = 0; e < size; ++e) store(row + e, static_cast<RowNumber<T>>(2 * source.first));
}

// All columns of a tile, or of one event; `u` has `count_input_rows` rows of `size` events.
// Returns whether all numbers were finite.
template <class T>
ISOTONE_APART bool prepare_sources(const Model<T>& model, const Column* columns, std::size_t event,
                                   std::size_t n, int size, T* u) {
    double x[4 * most_events];
    store(x, Doubles{});  // of a single event the other lanes are 0
    Bits finite = ~Bits{};
    for (int s = 0; s < model.n_sources;) {
        const auto read = columns[s].single ? read_columns<float> : read_columns<double>;
        const int end = s + read(columns + s, model.n_sources - s, event, n, size, x);
        for (const double* raw = x; s < end; ++s, raw += most_events) {
            for (int e = 0; e < size; e += n_lanes<Doubles>)
                finite &= are_finite(load<Doubles>(raw + e));
            const Source& source = model.sources[s];
            T *phi = u + s * size, *row = phi + model.n_sources * size;
            if (source.n_copies > 1)
                prepare_copies(model, source, raw, size, phi, row);
            else
                prepare_column(model, source, raw, size, phi, row);
        }
    }
    return all(finite);
}

}  // namespace isotone::ISOTONE_ISA
