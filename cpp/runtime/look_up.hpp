// ---- look-up ------------------------------------------------------------------------------
#pragma once

#include "copies.hpp"

namespace isotone::ISOTONE_ISA {

// Where the table has what belongs to the copy that moves: the sum of those that do not, and after
// `n_out` numbers its own weights.
template <class T>
ISOTONE_INLINE const T* find_row(const T* table, int n_out, const T* row) {
    return table + load<RowNumber<T>>(row) * static_cast<std::ptrdiff_t>(n_out);
}

// The first number there, of one event or of a vector of them.
template <class V, class T, std::size_t... lane>
ISOTONE_INLINE V pick_rows(const T* table, int n_out, const T* row, std::index_sequence<lane...>) {
    return V{*find_row(table, n_out, row + lane)...};
}

// sum + C_t + W_t phi, source after source, for one unit of one event or of a vector of them.
// `phi` and `row` are those of the first event, of a source behind the other by `size`.
template <class V>
ISOTONE_INLINE V add_copies(const Model<Element<V>>& model, const Element<V>* table, int n_out,
                            const Element<V>* phi, const Element<V>* row, int size, V sum) {
    constexpr auto lanes = std::make_index_sequence<n_lanes<V>>();
    for (int s = 0; s < model.n_sources; ++s, phi += size, row += size) {
        if (model.sources[s].n_copies > 1) sum = sum + pick_rows<V>(table, n_out, row, lanes);
        sum = accumulate(sum, pick_rows<V>(table + n_out, n_out, row, lanes), load<V>(phi));
    }
    return sum;
}

// Some units of a look-up: `vectors` vectors of them, one behind the other but for the last one,
// which begins at unit `last`. Its numbers are copies: compilers do not reload them after a store.
template <int vectors, class V>
struct UnitVectors {
    const Element<V>*table, *bias;
    int n_out, last, n_sources;
    const Source* sources;

    ISOTONE_INLINE V at(const Element<V>* p, int v) const {
        return load<V>(v + 1 < vectors ? p + v * n_lanes<V> : p + last);
    }

    // For one event: units lie across the lanes.
    ISOTONE_INLINE void operator()(const Element<V>* phi, const Element<V>* row, int size,
                                   V* out) const {
        V sum[vectors];
        for (int v = 0; v < vectors; ++v) sum[v] = at(bias, v);
#pragma GCC unroll 1
        for (int s = 0; s < n_sources; ++s, phi += size, row += size) {
            const auto* own = find_row(table, n_out, row);
            if (sources[s].n_copies > 1)
                for (int v = 0; v < vectors; ++v) sum[v] += at(own, v);
            own += n_out;
            const V x = broadcast<V>(*phi);
            for (int v = 0; v < vectors; ++v) sum[v] = accumulate(sum[v], at(own, v), x);
        }
        for (int v = 0; v < vectors; ++v) out[v] = sum[v];
    }

    // The same, into an array of units.
    ISOTONE_INLINE void store(const Element<V>* phi, const Element<V>* row,
                              Element<V>* out) const {
        V sum[vectors];
        (*this)(phi, row, 1, sum);
        for (int v = 0; v < vectors; ++v)
            ISOTONE_ISA::store(v + 1 < vectors ? out + v * n_lanes<V> : out + last, sum[v]);
    }
};

// As many rows as there are lanes, of as many numbers, from p on: number j of all into
// out[j * tile].
template <class V>
ISOTONE_INLINE void turn_square(const char* p, std::ptrdiff_t stride, V* out, int tile) {
    using T = Element<V>;
    if constexpr (n_lanes<V> >= 4)
        for (int j = 0; j < n_lanes<V>; j += 4) {
            const Four<V> units = turn_rows<T>(p + j * sizeof(T), stride);
            for (int k = 0; k < 4; ++k) out[(j + k) * tile] = units.columns[k];
        }
    else
        for (int j = 0; j < n_lanes<V>; ++j)
            out[j * tile] =
                gather<T>(p + j * sizeof(T), stride, std::make_index_sequence<n_lanes<V>>());
}

// The same units for all events of a tile, from unit `first` on: unit j of vector v is
// out[j * tile + v].
template <int vectors, class V>
void look_up_units(UnitVectors<vectors, V> units, const Element<V>* phi, const Element<V>* row,
                   V* out, int tile) {
    constexpr int lanes = n_lanes<V>;
    V rows[lanes][vectors];
    for (int v = 0; v < tile; ++v, phi += lanes, row += lanes, ++out) {
        for (int e = 0; e < lanes; ++e) units(phi + e, row + e, tile * lanes, rows[e]);
        for (int i = 0; i < vectors; ++i) {
            const int j = i + 1 < vectors ? i * lanes : units.last;
            turn_square(reinterpret_cast<const char*>(&rows[0][i]), sizeof(rows[0]),
                        out + j * tile, tile);
        }
    }
}

// Calls run(units, first) for all units, of which there are at least as many as lanes. The last
// vector of all computes some again if they do not fill it.
template <int vectors, class V, class Run>
ISOTONE_INLINE void cover_units(const Model<Element<V>>& model, const Step<Element<V>>& step,
                                int first, Run run) {
    constexpr int width = vectors * n_lanes<V>;
    for (; first + width - n_lanes<V> < step.n_out; first += width) {
        const int left = step.n_out - first;
        run(UnitVectors<vectors, V>{step.weight + first, step.bias + first, step.n_out,
                                    (width < left ? width : left) - n_lanes<V>, model.n_sources,
                                    model.sources},
            first);
    }
    if constexpr (vectors > 1)
        if (first < step.n_out) cover_units<vectors - 1, V>(model, step, first, run);
}

constexpr int most_unit_vectors = 6;

// All units of one event.
template <class T>
void look_up_one(const Model<T>& model, const Step<T>& step, const T* phi, const T* row, T* out) {
    using V = Vector<T>;
    const int n_out = step.n_out;
    if (n_out < n_lanes<V>) {
        for (int j = 0; j < n_out; ++j)
            out[j] = add_copies(model, step.weight + j, n_out, phi, row, 1, step.bias[j]);
        return;
    }
    cover_units<most_unit_vectors, V>(model, step, 0, [&](auto units, int first) ISOTONE_LAMBDA {
        units.store(phi, row, out + first);
    });
}

// All units of a tile.
template <class V>
void look_up_tile(const Model<Element<V>>& model, const Step<Element<V>>& step,
                  const Element<V>* phi, const Element<V>* row, int tile, V* out) {
    constexpr int lanes = n_lanes<V>;
    const int n_out = step.n_out;
    if (n_out < lanes) {
        for (int j = 0; j < n_out; ++j)
            for (int v = 0; v < tile; ++v)
                out[j * tile + v] =
                    add_copies(model, step.weight + j, n_out, phi + v * lanes, row + v * lanes,
                               tile * lanes, broadcast<V>(step.bias[j]));
        return;
    }
    cover_units<most_unit_vectors, V>(model, step, 0, [&](auto units, int first) ISOTONE_LAMBDA {
        look_up_units(units, phi, row, out + first * tile, tile);
    });
}

template <class V>
ISOTONE_APART void look_up(const Model<Element<V>>& model, const Step<Element<V>>& step,
                           const V* u, V* out, int tile) {
    const auto* phi = reinterpret_cast<const Element<V>*>(u);
    const auto* row = phi + model.n_sources * tile * n_lanes<V>;
    if constexpr (std::is_arithmetic_v<V>)
        look_up_one(model, step, phi, row, out);
    else
        look_up_tile(model, step, phi, row, tile, out);
}

// Adds the residual sums to the scores of a tile, or of one event.
template <class V>
ISOTONE_APART void add_residual_copies(const Model<Element<V>>& model, const V* u, V* h,
                                       int tile) {
    constexpr int lanes = n_lanes<V>;
    const auto* phi = reinterpret_cast<const Element<V>*>(u);
    const auto* row = phi + model.n_sources * tile * lanes;
    for (int j = 0; j < model.n_outputs; ++j)
        for (int v = 0; v < tile; ++v)
            h[j * tile + v] =
                add_copies(model, model.residual + j, model.n_outputs, phi + v * lanes,
                           row + v * lanes, tile * lanes, h[j * tile + v]);
}

}  // namespace isotone::ISOTONE_ISA
