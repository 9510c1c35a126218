// ---- copies of columns ----------------------------------------------------------------------
#pragma once

#include "inputs.hpp"

namespace isotone::ISOTONE_ISA {

// What enters the steps: features, or for a model with sources first where the copy that moves is,
// a row of events for every source, then which copy that is.
template <class T>
constexpr int count_input_rows(const Model<T>& model) {
    return model.n_sources > 0 ? 2 * model.n_sources : model.n_features;
}

constexpr int most_events = full_tile * n_lanes<Vector<float>>;  // of a tile

// The copy that moves at x[e], for every event: how many ends are at most x, by halves without
// branches.
inline void find_copies(const Source& source, const double* x, int size, std::int32_t* copy) {
    for (int e = 0; e < size; ++e) copy[e] = 0;
    for (int step = (1 << source.levels) / 2; step > 0; step /= 2)
        for (int e = 0; e < size; ++e)
            copy[e] += x[e] >= source.ends[copy[e] + step - 1] ? step : 0;
}

// Where copy[e] of the source is at x[e], for the events of a vector; as `Snap`, but within +-1.
template <class T>
ISOTONE_INLINE Doubles place_copies(const Model<T>& model, const Feature* features,
                                    const std::int32_t* copy, Doubles x) {
    Doubles center, factor;
    for (int k = 0; k < n_lanes<Doubles>; ++k) {
        center[k] = features[copy[k]].center;
        factor[k] = features[copy[k]].factor;
    }
    const Doubles one = broadcast<Doubles>(1.0);
    const Doubles u = minimum(maximum((x - center) * factor, -one), one);
    return model.grid > 0.0 ? round_even(u * (1.0 / model.grid)) * model.grid + 0.0 : u;
}

// Raw numbers of a tile that the batch may not fill: its last event is repeated.
inline void read_events(const Column& column, std::size_t event, std::size_t n, int size,
                        double* x) {
    const char* p = locate(column, event);
    if (event + size > n)
        for (int e = 0; e < size; ++e) x[e] = read(column, event + e < n ? event + e : n - 1);
    else if (column.single)
        for (int e = 0; e < size; ++e) x[e] = load<float>(p + e * column.stride);
    else
        for (int e = 0; e < size; ++e) x[e] = load<double>(p + e * column.stride);
}

// A column of a tile with several copies. Returns whether all events were finite.
template <class T>
bool prepare_copies(const Model<T>& model, const Source& source, const Column& column,
                    std::size_t event, std::size_t n, int size, T* phi, T* index) {
    constexpr int lanes = n_lanes<Doubles>;
    double x[most_events] = {};
    std::int32_t copy[most_events] = {};
    read_events(column, event, n, size, x);
    find_copies(source, x, size, copy);
    Bits finite = ~Bits{};
    for (int e = 0; e < size; e += lanes) {  // of a single event the other lanes are 0
        const Doubles raw = load<Doubles>(x + e);
        finite &= are_finite(raw);
        const Doubles u = place_copies(model, model.features + source.first, copy + e, raw);
        if (size < lanes)
            phi[e] = static_cast<T>(u[0]);
        else
            store_doubles(phi + e, u);
    }
    for (int e = 0; e < size; ++e) index[e] = static_cast<T>(source.first + copy[e]);
    return all(finite);
}

// All columns of a tile; `u` has `count_input_rows` rows of `size` events.
template <class T>
ISOTONE_APART bool prepare_sources(const Model<T>& model, const Column* columns, std::size_t event,
                                   std::size_t n, int size, T* u) {
    bool finite = true;
    T* index = u + model.n_sources * size;
    for (int s = 0; s < model.n_sources; ++s, u += size, index += size) {
        const Source& source = model.sources[s];
        if (source.n_copies > 1) {
            finite &= prepare_copies(model, source, columns[s], event, n, size, u, index);
            continue;
        }
        const Feature& feature = model.features[source.first];
        if (size == 1)
            finite &= all(prepare_one(model, feature, columns[s], event, u));
        else
            finite &= prepare_column(model, feature, columns[s], event, n, size, u);
        for (int e = 0; e < size; ++e) index[e] = static_cast<T>(source.first);
    }
    return finite;
}

// Units j, ... of one event, as many vectors as fit: out = b + W h, source after source. `phi` and
// `index` are those of the event, of a source behind the other by `size`.
template <int vectors, class T>
ISOTONE_INLINE int look_up_across(const Model<T>& model, const Step<T>& step, const T* phi,
                                  const T* index, int size, int j, T* out) {
    using V = Vector<T>;
    constexpr int lanes = n_lanes<V>;
    const int n_out = step.n_out;
    for (; j + vectors * lanes <= n_out; j += vectors * lanes) {
        V sum[vectors];
        for (int v = 0; v < vectors; ++v) sum[v] = load<V>(step.bias + j + v * lanes);
        for (int s = 0; s < model.n_sources; ++s) {
            const T* row = step.weight + 2 * static_cast<int>(index[s * size]) * n_out + j;
            if (model.sources[s].n_copies > 1)
                for (int v = 0; v < vectors; ++v) sum[v] += load<V>(row + v * lanes);
            const V x = broadcast<V>(phi[s * size]);
            row += n_out;
            for (int v = 0; v < vectors; ++v)
                sum[v] = accumulate(sum[v], load<V>(row + v * lanes), x);
        }
        for (int v = 0; v < vectors; ++v) store(out + j + v * lanes, sum[v]);
    }
    if constexpr (vectors > 1)
        return look_up_across<vectors - 1>(model, step, phi, index, size, j, out);
    else
        return j;
}

// f + R_t + r_t phi, source after source, for one unit of one event.
template <class T>
ISOTONE_INLINE T add_copies(const Model<T>& model, const T* weight, int n_out, const T* phi,
                            const T* index, int size, T sum) {
    for (int s = 0; s < model.n_sources; ++s) {
        const T* row = weight + 2 * static_cast<int>(index[s * size]) * n_out;
        if (model.sources[s].n_copies > 1) sum = sum + row[0];
        sum = accumulate(sum, row[n_out], phi[s * size]);
    }
    return sum;
}

// All units of one event.
template <class T>
void look_up_one(const Model<T>& model, const Step<T>& step, const T* phi, const T* index,
                 int size, T* out) {
    constexpr int lanes = n_lanes<Vector<T>>;
    const int n_out = step.n_out;
    int j = look_up_across<6>(model, step, phi, index, size, 0, out);
    if (j < n_out && lanes < n_out) {  // the last vector computes some units again
        look_up_across<1>(model, step, phi, index, size, n_out - lanes, out);
        return;
    }
    for (; j < n_out; ++j)
        out[j] = add_copies(model, step.weight + j, n_out, phi, index, size, step.bias[j]);
}

// Units of a vector of events, which are in rows from p on, into out[j * tile].
template <class T>
ISOTONE_INLINE void turn_units(const char* p, std::ptrdiff_t stride, int n_out, Vector<T>* out,
                               int tile) {
    constexpr std::ptrdiff_t width = sizeof(T);
    int j = 0;
    if constexpr (n_lanes<Vector<T>> >= 4)
        for (; j + 4 <= n_out; j += 4) {
            const Four<Vector<T>> units = turn_rows<T>(p + j * width, stride);
            for (int k = 0; k < 4; ++k) out[(j + k) * tile] = units.columns[k];
        }
    for (; j < n_out; ++j)
        out[j * tile] =
            gather<T>(p + j * width, stride, std::make_index_sequence<n_lanes<Vector<T>>>());
}

// The units of a tile: event after event into `rows`, then turned into `out`.
template <class V>
ISOTONE_APART void look_up(const Model<Element<V>>& model, const Step<Element<V>>& step,
                           const V* u, V* rows, V* out, int tile) {
    using T = Element<V>;
    const int size = tile * n_lanes<V>, n_out = step.n_out;
    const T* phi = reinterpret_cast<const T*>(u);
    const T* index = phi + model.n_sources * size;
    if constexpr (std::is_arithmetic_v<V>) {
        look_up_one(model, step, phi, index, 1, out);
    } else {
        T* row = reinterpret_cast<T*>(rows);
        for (int e = 0; e < size; ++e, row += n_out)
            look_up_one(model, step, phi + e, index + e, size, row);
        const char* first = reinterpret_cast<const char*>(rows);
        const std::ptrdiff_t stride = n_out * static_cast<std::ptrdiff_t>(sizeof(T));
        for (int v = 0; v < tile; ++v, first += n_lanes<V> * stride)
            turn_units<T>(first, stride, n_out, out + v, tile);
    }
}

// Adds the residual sums of a tile to the scores: h[j * size + e].
template <class T>
ISOTONE_APART void add_residual_copies(const Model<T>& model, const T* u, T* h, int size) {
    const T* index = u + model.n_sources * size;
    for (int j = 0; j < model.n_outputs; ++j)
        for (int e = 0; e < size; ++e)
            h[j * size + e] = add_copies(model, model.residual + j, model.n_outputs, u + e,
                                         index + e, size, h[j * size + e]);
}

}  // namespace isotone::ISOTONE_ISA
