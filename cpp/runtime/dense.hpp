// ---- dense --------------------------------------------------------------------------------
#pragma once

#include "sort.hpp"

namespace isotone::ISOTONE_ISA {

// How many sums fill the registers and keep the processor busy, and of how many vectors of events.
template <class T>
constexpr int n_accumulators = vector_bytes == 64 && sizeof(T) == 4 ? 8 : 10;
template <class T>
constexpr int vectors_per_block = vector_bytes == 64 && sizeof(T) == 8 ? 1 : 2;

// `outs` units from `first` on, of `vectors` vectors: out = start + W h, in parts of `part` inputs.
// With `add` the start is what is in `out`, added last if `part` is 0; otherwise it is the bias.
// `weight` and `out` point to the first.
template <int outs, int vectors, bool add, class V>
ISOTONE_INLINE void dense_block(const Element<V>* weight, const Element<V>* bias, int n_in,
                                int n_out, int part, int first, const V* h, V* out, int tile) {
    const Element<V>* const weight_start = weight;
    V sum[outs][vectors];
    for (int j = 0; j < outs; ++j)
        for (int v = 0; v < vectors; ++v) {
            if constexpr (add)
                sum[j][v] = part == 0 ? V{} : out[j * tile + v];
            else
                sum[j][v] = broadcast<V>(bias[first + j]);
        }
    bool is_added = add && part == 0;
    for (int end = add ? n_in : part;; end = end + part < n_in ? end + part : n_in) {
        const Element<V>* const last = weight_start + end * n_out;
#pragma GCC unroll 1
        for (; weight != last; weight += n_out, h += tile) {
            V x[vectors];
            for (int v = 0; v < vectors; ++v) x[v] = h[v];
            for (int j = 0; j < outs; ++j) {
                const V w = broadcast<V>(weight[j]);
                for (int v = 0; v < vectors; ++v) sum[j][v] = accumulate(sum[j][v], w, x[v]);
            }
        }
        for (int j = 0; j < outs; ++j)
            for (int v = 0; v < vectors; ++v) {
                if (is_added) sum[j][v] += out[j * tile + v];
                out[j * tile + v] = sum[j][v];
            }
        if (sizeof(Element<V>) == 8 || end == n_in) return;
        for (int j = 0; j < outs; ++j)
            for (int v = 0; v < vectors; ++v) sum[j][v] = V{};
        is_added = true;
    }
}

// All units of `vectors` vectors, as many units at a time as there are registers for.
template <int outs, int vectors, bool add, class V>
ISOTONE_INLINE void dense_units(const Element<V>* weight, const Element<V>* bias, int n_in,
                                int n_out, int part, int j, const V* h, V* out, int tile) {
    for (; j + outs <= n_out; j += outs)
        dense_block<outs, vectors, add>(weight + j, bias, n_in, n_out, part, j, h, out + j * tile,
                                        tile);
    if constexpr (outs > 1)
        if (j < n_out)
            dense_units<outs - 1, vectors, add>(weight, bias, n_in, n_out, part, j, h, out, tile);
}

template <int vectors, bool add, class V>
int dense_vectors(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out, int part,
                  const V* h, V* out, int tile, int v) {
    for (; v + vectors <= tile; v += vectors)
        dense_units<n_accumulators<Element<V>> / vectors, vectors, add>(
            weight, bias, n_in, n_out, part, 0, h + v, out + v, tile);
    return v;
}

// A sum of parts: goes to that of the parts before it, and begins anew.
template <class V>
ISOTONE_INLINE void end_part(bool is_first, V& before, V& sum) {
    before = is_first ? sum : before + sum;
    sum = V{};
}

// For a single event: units lie across the lanes, from `j` on as many vectors as fit.
template <int vectors, class T>
ISOTONE_INLINE int dense_across(const T* weight, const T* start, int n_in, int n_out, int part,
                                int j, const T* h, T* out) {
    using V = Vector<T>;
    constexpr int lanes = n_lanes<V>;
    for (; j + vectors * lanes <= n_out; j += vectors * lanes) {
        V sum[vectors], before[vectors];
        for (int v = 0; v < vectors; ++v) sum[v] = before[v] = load<V>(start + j + v * lanes);
        const T* w = weight + j;
        for (int k = 0, end = part; k < n_in; ++k, w += n_out) {
            if (k == end) {
                for (int v = 0; v < vectors; ++v) end_part(k == part, before[v], sum[v]);
                end += part;
            }
            for (int v = 0; v < vectors; ++v)
                sum[v] = accumulate(sum[v], load<V>(w + v * lanes), broadcast<V>(h[k]));
        }
        for (int v = 0; v < vectors; ++v)
            store(out + j + v * lanes, part < n_in ? before[v] + sum[v] : sum[v]);
    }
    if constexpr (vectors > 1)
        return dense_across<vectors - 1>(weight, start, n_in, n_out, part, j, h, out);
    else
        return j;
}

// The same sums in the same order: out = start + W h, where `out` is not `start`.
template <class T>
void dense_one(const T* weight, const T* start, int n_in, int n_out, int part, const T* h,
               T* out) {
    constexpr int lanes = n_lanes<Vector<T>>;
    int j = dense_across<6>(weight, start, n_in, n_out, part, 0, h, out);
    if (j < n_out && lanes < n_out) {  // the last vector computes some units again
        dense_across<1>(weight, start, n_in, n_out, part, n_out - lanes, h, out);
        return;
    }
    for (; j < n_out; ++j) {
        T sum = start[j], before = sum;
        for (int k = 0, end = part; k < n_in; ++k) {
            if (k == end) {
                end_part(k == part, before, sum);
                end += part;
            }
            sum = accumulate(sum, weight[k * n_out + j], h[k]);
        }
        out[j] = part < n_in ? before + sum : sum;
    }
}

// The residual of a single event: out = g + r u, where `out` is not `g`.
template <class T>
void add_residual_one(const Model<T>& model, const T* g, const T* u, T* out) {
    const int n_in = model.n_features, n_out = model.n_outputs;
    if (!sums_in_parts(model)) return dense_one(model.residual, g, n_in, n_out, n_in, u, out);
    for (int j = 0; j < n_out; ++j) {
        T sum = 0;
        for (int k = 0; k < n_in; ++k)
            sum = accumulate(sum, model.residual[k * n_out + j], u[k]);
        out[j] = g[j] + sum;
    }
}

template <bool add, class V>
void dense(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out, int part,
           const V* h, V* out, int tile) {
    if constexpr (std::is_arithmetic_v<V>) {
        dense_one(weight, bias, n_in, n_out, part, h, out);
    } else {
        int v = 0;
        if (n_out == 1)
            v = dense_vectors<8, add>(weight, bias, n_in, n_out, part, h, out, tile, v);
        v = dense_vectors<vectors_per_block<Element<V>>, add>(weight, bias, n_in, n_out, part, h,
                                                              out, tile, v);
        dense_vectors<1, add>(weight, bias, n_in, n_out, part, h, out, tile, v);
    }
}

}  // namespace isotone::ISOTONE_ISA
