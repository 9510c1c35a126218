// ---- sort beside dense --------------------------------------------------------------------
#pragma once

#include "dense.hpp"

namespace isotone::ISOTONE_ISA {

// A processor compares and multiplies at the same time, but looks only some dozens of instructions
// ahead. So the comparators for one vector of events are put between the multiply-adds for
// another, where there are registers for n wires, half of n sums, an input and a spare one. Below
// 8 wires there is no gain.
template <int n, class V>
constexpr bool fit_together =
    std::is_same_v<V, Vector<float>> && vector_bytes == 64 && 8 <= n && n + (n + 1) / 2 + 2 <= 32;

// Whether one of comparators `first` to `last` - 1 takes the wire.
template <int n>
constexpr bool takes(int wire, int first, int last) {
    for (int k = first; k < last; ++k)
        if (wire == static_sorting_network<n>.pairs[k].low ||
            wire == static_sorting_network<n>.pairs[k].high)
            return true;
    return false;
}

// Comparator k of the network for n wires at v. The first that takes a wire loads it, the last one
// stores it: stores that come one by one cost less. Most take maxima, as `find_other` competes
// with multiply-adds; that one in four does not was found to be best.
template <int n, int k, class V>
ISOTONE_INLINE void run_comparator(V* w, V* v) {
    constexpr int i = static_sorting_network<n>.pairs[k].low,
                  j = static_sorting_network<n>.pairs[k].high;
    constexpr int size = static_sorting_network<n>.size;
    if constexpr (!takes<n>(i, 0, k)) w[i] = v[i * full_tile];
    if constexpr (!takes<n>(j, 0, k)) w[j] = v[j * full_tile];
    const V low = minimum(w[i], w[j]);
    w[j] = k % 4 == 0 ? find_other(w[i], w[j], low) : maximum(w[i], w[j]);
    w[i] = low;
    if constexpr (!takes<n>(i, k + 1, size)) v[i * full_tile] = w[i];
    if constexpr (!takes<n>(j, k + 1, size)) v[j * full_tile] = w[j];
}

// Sorts the n wires at v, and computes `outs` of n units for another vector: out = b + W h, input
// after input, in parts as in `dense_block`. All pointers are to the first of the units.
template <int n, int outs, int part, class V>
ISOTONE_INLINE void sort_beside_dense(V* v, const Element<V>* weight, const Element<V>* bias,
                                      const V* h, V* out) {
    constexpr int size = static_sorting_network<n>.size;
    static_assert(size >= n, "an input follows a comparator, at most one each");
    V w[n], sum[outs];
    unroll<outs>([&](auto j) ISOTONE_LAMBDA { sum[j] = broadcast<V>(bias[j]); });
    unroll<size>([&](auto k) ISOTONE_LAMBDA {
        run_comparator<n, k>(w, v);
        constexpr int i = k * n / size;
        if constexpr (i < (k + 1) * n / size) {
            if constexpr (i > 0 && i % part == 0)
                unroll<outs>([&](auto j) ISOTONE_LAMBDA {
                    out[j * full_tile] = i == part ? sum[j] : out[j * full_tile] + sum[j];
                    sum[j] = V{};
                });
            const V x = h[i * full_tile];
            unroll<outs>([&](auto j) ISOTONE_LAMBDA {
                sum[j] = accumulate(sum[j], broadcast<V>(weight[i * n + j]), x);
            });
        }
    });
    unroll<outs>([&](auto j) ISOTONE_LAMBDA {
        out[j * full_tile] = part < n ? out[j * full_tile] + sum[j] : sum[j];
    });
}

// Sorts n units of a full tile, computes out = b + W h and sorts that too. While units of vector v
// are computed, the inputs of the next one are sorted, and what came out for the one before.
template <int n, int part, class V>
void sort_dense_sort(const Element<V>* weight, const Element<V>* bias, V* h, V* out) {
    constexpr int tile = full_tile, half = n / 2, rest = n - half;
    V* const second = out + half * tile;
    sort_unrolled<n>(h, FullTile());
    for (int v = 0; v < tile; ++v) {
        if (v + 1 < tile)
            sort_beside_dense<n, half, part>(h + v + 1, weight, bias, h + v, out + v);
        else
            dense_block<half, 1, false>(weight, bias, n, n, part, 0, h + v, out + v, tile);
        if (v > 0)
            sort_beside_dense<n, rest, part>(out + v - 1, weight + half, bias + half, h + v,
                                             second + v);
        else
            dense_block<rest, 1, false>(weight + half, bias, n, n, part, half, h + v, second + v,
                                        tile);
    }
    sort_unrolled<n>(out + tile - 1, FullTile());
}

// With AVX2 there are no registers for both. There, whole sorts are put between blocks of sums:
// the end of one overlaps the beginning of the other.
template <int n, class V>
constexpr bool take_turns =
    std::is_same_v<V, Vector<float>> && vector_bytes == 32 && 8 <= n && n <= 24;

// One vector of a full tile. It is called from several places, and one copy stays in the caches.
template <int n, class V>
__attribute__((noinline)) void sort_vector(V* v) {
    sort_unrolled<n>(v, FullTile());
}

// As `sort_dense_sort`, for pairs of vectors.
template <int n, class V>
void sort_between_dense(const Element<V>* weight, const Element<V>* bias, int part, V* h, V* out) {
    constexpr int tile = full_tile, outs = n_accumulators<Element<V>> / 2;
    for (int v = 0; v < 2; ++v) sort_vector<n>(h + v);
    for (int v = 0; v < tile; v += 2, h += 2, out += 2) {
        V* const others[] = {h + 2, h + 3, out - 2, out - 1};
        int next = v + 2 < tile ? 0 : 2;
        const int end = v > 0 ? 4 : 2;
        for (int j = 0; j + outs <= n; j += outs) {
            dense_block<outs, 2, false>(weight + j, bias, n, n, part, j, h, out + j * tile, tile);
            if (next < end) sort_vector<n>(others[next++]);
        }
        if constexpr (n % outs != 0)
            dense_units<n % outs, 2, false>(weight, bias, n, n, part, n / outs * outs, h, out,
                                            tile);
        while (next < end) sort_vector<n>(others[next++]);
    }
    for (int v = 1; v <= 2; ++v) sort_vector<n>(out - v);
}

// Runs dense and what is around it at once, for n units; returns whether that is possible.
template <int n, class V>
ISOTONE_INLINE bool try_sort_dense_sort(const Step<Element<V>>& dense, V* h, V* out,
                                        bool in_parts) {
    constexpr int part = find_part(n, n);
    if constexpr (fit_together<n, V>) {
        if (in_parts && part < n)
            sort_dense_sort<n, part>(dense.weight, dense.bias, h, out);
        else
            sort_dense_sort<n, n>(dense.weight, dense.bias, h, out);
    }
    if constexpr (take_turns<n, V>)
        sort_between_dense<n>(dense.weight, dense.bias, in_parts ? part : n, h, out);
    return fit_together<n, V> || take_turns<n, V>;
}

// The three steps from `first` on, if they are such steps; returns whether they were.
template <int... sizes, class V>
ISOTONE_INLINE bool sort_dense_sort(Unrolled<sizes...>, const Step<Element<V>>* first, V* h,
                                    V* out, int tile, bool in_parts) {
    const auto &before = first[0], &dense = first[1], &after = first[2];
    const int n = before.group_size;
    if (tile != full_tile || before.kind != Kind::sort || before.n_in != n) return false;
    if (dense.kind != Kind::dense || dense.n_out != n) return false;
    if (after.kind != Kind::sort || after.group_size != n) return false;
    return ((n == sizes && try_sort_dense_sort<sizes>(dense, h, out, in_parts)) || ...);
}

// Whether such steps are of any size for which that is done.
template <class V, int... sizes>
constexpr bool can_sort_dense_sort(Unrolled<sizes...>) {
    return ((fit_together<sizes, V> || take_turns<sizes, V>) || ...);
}

}  // namespace isotone::ISOTONE_ISA
