// Sorters that record which comparators swapped, and their inverse: running the comparators
// backward with the recorded swaps brings the gradient of each sorted value back to its origin.
//
// Ties are never swapped. A NaN may get lost, so a caller must see to it that there is none.
#pragma once

#include "sorter/sorting.hpp"

namespace isotone::ISOTONE_ISA {

#if defined(__AVX512F__)
// One bit per lane.
template <class V>
using Swap = std::conditional_t<n_lanes<V> == 16, __mmask16, __mmask8>;

inline __mmask16 is_less(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline __mmask8 is_less(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
inline __m512 choose(__mmask16 which, __m512 yes, __m512 no) {
    return _mm512_mask_blend_ps(which, no, yes);
}
inline __m512d choose(__mmask8 which, __m512d yes, __m512d no) {
    return _mm512_mask_blend_pd(which, no, yes);
}
#else
template <class V>
using Swap = Mask<V>;

template <class V>
inline Mask<V> is_less(V a, V b) {
    return a < b;
}
template <class V>
inline V choose(Mask<V> which, V yes, V no) {
    return which ? yes : no;
}
#endif

template <class V>
inline void exchange_recorded(V& a, V& b, Swap<V>& swap) {
    swap = is_less(b, a);
    exchange(a, b);
}

template <class V>
inline void exchange_back(V& a, V& b, Swap<V> swap) {
    const V first = choose(swap, b, a);
    b = choose(swap, a, b);
    a = first;
}

template <int n, class V, std::size_t... k>
ISOTONE_INLINE void sort_recorded(V* w, Swap<V>* swaps, std::index_sequence<k...>) {
    constexpr auto& pairs = static_sorting_network<n>.pairs;
    (exchange_recorded(w[pairs[k].low], w[pairs[k].high], swaps[k]), ...);
}

template <int n, class V, std::size_t... k>
ISOTONE_INLINE void sort_back(V* w, const Swap<V>* swaps, std::index_sequence<k...>) {
    constexpr auto& pairs = static_sorting_network<n>.pairs;
    constexpr int last = sizeof...(k) - 1;
    (exchange_back(w[pairs[last - k].low], w[pairs[last - k].high], swaps[last - k]), ...);
}

// Wire j is v[j * stride].
template <int n, class V>
void sort_recorded_unrolled(V* v, int stride, Swap<V>* swaps) {
    V w[n];
    unroll<n>([&](auto j) ISOTONE_LAMBDA { w[j] = v[j * stride]; });
    sort_recorded<n>(w, swaps, std::make_index_sequence<count_comparators(n)>());
    unroll<n>([&](auto j) ISOTONE_LAMBDA { v[j * stride] = w[j]; });
}

template <int n, class V>
void sort_back_unrolled(V* v, int stride, const Swap<V>* swaps) {
    V w[n];
    unroll<n>([&](auto j) ISOTONE_LAMBDA { w[j] = v[j * stride]; });
    sort_back<n>(w, swaps, std::make_index_sequence<count_comparators(n)>());
    unroll<n>([&](auto j) ISOTONE_LAMBDA { v[j * stride] = w[j]; });
}

// Sizes worth the time that unrolling takes to compile; others are interpreted.
template <class Run>
inline bool run_unrolled_size(int n, Run run) {
    switch (n) {
#define ISOTONE_SIZE(size) \
    case size: run(std::integral_constant<int, size>()); return true;
        // clang-format off
        ISOTONE_SIZE(2) ISOTONE_SIZE(3) ISOTONE_SIZE(4) ISOTONE_SIZE(5) ISOTONE_SIZE(6)
        ISOTONE_SIZE(8) ISOTONE_SIZE(10) ISOTONE_SIZE(12) ISOTONE_SIZE(15) ISOTONE_SIZE(16)
        ISOTONE_SIZE(20) ISOTONE_SIZE(24) ISOTONE_SIZE(32)
        // clang-format on
#undef ISOTONE_SIZE
    }
    return false;
}

// `network` is the one for n wires; `swaps` has one entry for each of its comparators.
template <class V>
void sort_recorded(V* v, int n, int stride, SortingNetwork network, Swap<V>* swaps) {
    if (run_unrolled_size(n, [&](auto size) { sort_recorded_unrolled<size>(v, stride, swaps); }))
        return;
    for (auto c = network.first; c != network.last; ++c)
        exchange_recorded(v[c->low * stride], v[c->high * stride], *swaps++);
}

template <class V>
void sort_back(V* v, int n, int stride, SortingNetwork network, const Swap<V>* swaps) {
    if (run_unrolled_size(n, [&](auto size) { sort_back_unrolled<size>(v, stride, swaps); }))
        return;
    for (const Comparator* c = network.last; c != network.first;) {
        --c;
        exchange_back(v[c->low * stride], v[c->high * stride], swaps[c - network.first]);
    }
}

}  // namespace isotone::ISOTONE_ISA
