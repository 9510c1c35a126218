// Sorters that remember: which wire every value came from, in a stable order, NaN last.
//
// The fast comparators are right for rows of different numbers only: of two that tie they keep
// one, and a NaN may get lost. So a row is sorted fast, then `is_strictly_ascending` tells whether
// the result can be trusted, and if not the row is sorted once more with the stable comparator.
#pragma once

#include "isotone.hpp"

namespace isotone::ISOTONE_ISA {

// ---- comparators --------------------------------------------------------------------------

template <class M, class V>
inline void swap_where(M mask, V& a, V& b) {
    const V low = mask ? b : a;
    b = mask ? a : b;
    a = low;
}

template <class V, class M>
inline void exchange(V& a, V& b, M& ia, M& ib) {
    swap_where(b < a, ia, ib);
    exchange(a, b);
}

// Equal values in order of origin; NaN last, all NaN being equal.
template <class V, class M>
inline void exchange_stable(V& a, V& b, M& ia, M& ib) {
    const M nan_a = a != a, nan_b = b != b;
    const M tie = (a == b) | (nan_a & nan_b);
    const M mask = (b < a) | (nan_a & ~nan_b) | (tie & (ib < ia));
    swap_where(mask, ia, ib);
    swap_where(mask, a, b);
}

// ---- sorters ------------------------------------------------------------------------------

template <int n, class V>
void sort_contiguous(V* v) {
    sort_unrolled<n>(v, 1);
}

template <int n, class V, class M, std::size_t... k>
ISOTONE_INLINE void exchange_wires(V* w, M* o, std::index_sequence<k...>) {
    constexpr auto& pairs = static_sorting_network<n>.pairs;
    (exchange(w[pairs[k].low], w[pairs[k].high], o[pairs[k].low], o[pairs[k].high]), ...);
}

template <int n, class V>
void sort_contiguous(V* v, Mask<V>* origin) {
    V w[n];
    Mask<V> o[n];
    unroll<n>([&](auto j) ISOTONE_LAMBDA { w[j] = v[j], o[j] = Mask<V>{} + int{j}; });
    exchange_wires<n>(w, o, std::make_index_sequence<count_comparators(n)>());
    unroll<n>([&](auto j) ISOTONE_LAMBDA { v[j] = w[j], origin[j] = o[j]; });
}

constexpr bool is_unrolled(int n) { return 2 <= n && n <= max_unrolled_size; }

// Calls sort_contiguous<n>(wires...) for an n known at run time.
template <std::size_t... k, class... Wires>
inline void sort_short(int n, std::index_sequence<k...>, Wires... wires) {
    using Sorter = void (*)(Wires...);
    static constexpr Sorter sorters[] = {sort_contiguous<static_cast<int>(k) + 2>...};
    sorters[n - 2](wires...);
}

using ShortSizes = std::make_index_sequence<max_unrolled_size - 1>;

template <class M>
inline void number_wires(M* origin, int n) {
    for (int j = 0; j < n; ++j) origin[j] = M{} + j;
}

// Sorts the values of every lane; `network` is the one for n wires.
template <class V>
void sort_lanes(V* v, int n, SortingNetwork network) {
    if (is_unrolled(n)) return sort_short(n, ShortSizes(), v);
    for (auto c = network.first; c != network.last; ++c) exchange(v[c->low], v[c->high]);
}

// Also writes which wire each value came from.
template <class V>
void sort_lanes(V* v, Mask<V>* origin, int n, SortingNetwork network) {
    if (is_unrolled(n)) return sort_short(n, ShortSizes(), v, origin);
    number_wires(origin, n);
    for (auto c = network.first; c != network.last; ++c)
        exchange(v[c->low], v[c->high], origin[c->low], origin[c->high]);
}

template <class V>
void sort_lanes_stable(V* v, Mask<V>* origin, int n, SortingNetwork network) {
    number_wires(origin, n);
    for (auto c = network.first; c != network.last; ++c)
        exchange_stable(v[c->low], v[c->high], origin[c->low], origin[c->high]);
}

// True after a fast sort only if every lane held different numbers: a comparator that loses a
// value leaves one fewer to tell apart, no comparator brings one back, and a NaN is not less than
// anything.
template <class V>
bool is_strictly_ascending(const V* v, int n) {
    Mask<V> ok = Mask<V>{} == 0;
    for (int j = 1; j < n; ++j) ok &= v[j - 1] < v[j];
    return all(ok);
}

}  // namespace isotone::ISOTONE_ISA
