// Sorting networks, and sorters that run them over the lanes of a vector: lane r of the vectors
// v[0], ..., v[n-1] holds row r, so that one comparator works on many rows at once.
//
// The fast comparators are right for rows of different numbers only: of two that tie they keep one,
// and a NaN may get lost. So a row is sorted fast, then `is_strictly_ascending` tells whether the
// result can be trusted, and if not the row is sorted once more with the stable comparator.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// For functions and lambdas that must melt into their caller, which keeps its arrays in registers.
#define ISOTONE_INLINE __attribute__((always_inline)) inline
#define ISOTONE_LAMBDA __attribute__((always_inline))

namespace isotone {

constexpr int max_group_size = 1024;
constexpr int max_unrolled_size = 32;

// Puts the smaller of wires `low` < `high` on `low`.
struct Comparator {
    std::uint16_t low, high;
};

// Without member functions, which would be shared between instruction sets; see below.
struct Network {
    const Comparator* first;
    const Comparator* last;
};

// Everything below is compiled once per instruction set. Names must differ between those copies:
// the linker would keep one of them, and an old machine could be left with AVX-512 code.
namespace ISOTONE_ISA {

// Batcher's odd-even merge sort for any n: Knuth, The Art of Computer Programming, vol. 3,
// Algorithm 5.2.2M. Calls emit(low, high) for one comparator after the other.
template <class Emit>
constexpr void merge_exchange(int n, Emit emit) {
    int top = 1;
    while (2 * top < n) top *= 2;
    for (int p = top; p > 0; p /= 2) {
        int q = top, r = 0, d = p;
        while (true) {
            for (int i = 0; i + d < n; ++i)
                if ((i & p) == r) emit(i, i + d);
            if (q == p) break;
            d = q - p;
            q /= 2;
            r = p;
        }
    }
}

constexpr int count_comparators(int n) {
    int count = 0;
    merge_exchange(n, [&](int, int) { ++count; });
    return count;
}

template <int n>
struct StaticNetwork {
    static constexpr int size = count_comparators(n);
    Comparator pairs[size] = {};

    constexpr StaticNetwork() {
        int k = 0;
        merge_exchange(n, [&](int low, int high) {
            pairs[k].low = static_cast<std::uint16_t>(low);
            pairs[k].high = static_cast<std::uint16_t>(high);
            ++k;
        });
    }
};

template <int n>
constexpr StaticNetwork<n> static_network;

// ---- vectors ------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T, int bytes = vector_bytes>
struct MakeVector {
    typedef T type __attribute__((vector_size(bytes)));
};

template <class T, int size = vector_bytes / sizeof(T)>
using Vector = typename MakeVector<T, size * sizeof(T)>::type;

template <class V>
using Element = std::decay_t<decltype(V{}[0])>;

template <class V>
constexpr int n_lanes = sizeof(V) / sizeof(Element<V>);

// The outcome of comparing lanes: integers as wide as the lanes, which also serve as origins.
template <class V>
using Mask = decltype(V{} < V{});

template <class M>
inline bool all(M mask) {
    std::int64_t parts[sizeof(M) / 8], every = -1;
    __builtin_memcpy(parts, &mask, sizeof(M));
    for (std::int64_t part : parts) every &= part;
    return every == -1;
}

// One instruction each. GCC finds them behind `a < b ? a : b` too, but ponders for a minute.
#if defined(__AVX512F__)  // masked, as GCC 12 warns without reason about the plain ones
inline __m512 minimum(__m512 a, __m512 b) { return _mm512_maskz_min_ps(-1, a, b); }
inline __m512 maximum(__m512 a, __m512 b) { return _mm512_maskz_max_ps(-1, a, b); }
inline __m512d minimum(__m512d a, __m512d b) { return _mm512_maskz_min_pd(-1, a, b); }
inline __m512d maximum(__m512d a, __m512d b) { return _mm512_maskz_max_pd(-1, a, b); }
#elif defined(__AVX2__)
inline __m256 minimum(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
inline __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline __m256d minimum(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
inline __m256d maximum(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
#elif defined(__SSE2__)
inline __m128 minimum(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
inline __m128 maximum(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
inline __m128d minimum(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
inline __m128d maximum(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
#else
template <class V>
inline V minimum(V a, V b) {
    return a < b ? a : b;
}
template <class V>
inline V maximum(V a, V b) {
    return b < a ? a : b;
}
#endif

// ---- comparators --------------------------------------------------------------------------

template <class V>
inline void exchange(V& a, V& b) {
    const V low = minimum(a, b);
    b = maximum(a, b);
    a = low;
}

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

template <int n, class Exchange, std::size_t... k>
inline void run_unrolled(Exchange exchange_wires, std::index_sequence<k...>) {
    (exchange_wires(static_network<n>.pairs[k].low, static_network<n>.pairs[k].high), ...);
}

// The copies in local arrays let the compiler keep the wires in registers.
template <int n, class V>
void sort_unrolled(V* v) {
    V w[n];
    for (int j = 0; j < n; ++j) w[j] = v[j];
    run_unrolled<n>([&](int i, int j) ISOTONE_LAMBDA { exchange(w[i], w[j]); },
                    std::make_index_sequence<count_comparators(n)>());
    for (int j = 0; j < n; ++j) v[j] = w[j];
}

template <int n, class V>
void sort_unrolled(V* v, Mask<V>* origin) {
    V w[n];
    Mask<V> o[n];
    for (int j = 0; j < n; ++j) w[j] = v[j], o[j] = Mask<V>{} + j;
    run_unrolled<n>(
        [&](int i, int j) ISOTONE_LAMBDA { exchange(w[i], w[j], o[i], o[j]); },
        std::make_index_sequence<count_comparators(n)>());
    for (int j = 0; j < n; ++j) v[j] = w[j], origin[j] = o[j];
}

constexpr bool is_unrolled(int n) { return 2 <= n && n <= max_unrolled_size; }

// Calls sort_unrolled<n>(wires...) for an n known at run time.
template <std::size_t... k, class... Wires>
inline void sort_short(int n, std::index_sequence<k...>, Wires... wires) {
    using Sorter = void (*)(Wires...);
    static constexpr Sorter sorters[] = {sort_unrolled<static_cast<int>(k) + 2>...};
    sorters[n - 2](wires...);
}

using ShortSizes = std::make_index_sequence<max_unrolled_size - 1>;

template <class M>
inline void number_wires(M* origin, int n) {
    for (int j = 0; j < n; ++j) origin[j] = M{} + j;
}

// Sorts the values of every lane; `network` is the one for n wires.
template <class V>
void sort_lanes(V* v, int n, Network network) {
    if (is_unrolled(n)) return sort_short(n, ShortSizes(), v);
    for (auto c = network.first; c != network.last; ++c) exchange(v[c->low], v[c->high]);
}

// Also writes which wire each value came from.
template <class V>
void sort_lanes(V* v, Mask<V>* origin, int n, Network network) {
    if (is_unrolled(n)) return sort_short(n, ShortSizes(), v, origin);
    number_wires(origin, n);
    for (auto c = network.first; c != network.last; ++c)
        exchange(v[c->low], v[c->high], origin[c->low], origin[c->high]);
}

template <class V>
void sort_lanes_stable(V* v, Mask<V>* origin, int n, Network network) {
    number_wires(origin, n);
    for (auto c = network.first; c != network.last; ++c)
        exchange_stable(v[c->low], v[c->high], origin[c->low], origin[c->high]);
}

// True after a fast sort only if every lane held different numbers: a comparator that loses a value
// leaves one fewer to tell apart, no comparator brings one back, and a NaN is not less than anything.
template <class V>
bool is_strictly_ascending(const V* v, int n) {
    Mask<V> ok = Mask<V>{} == 0;
    for (int j = 1; j < n; ++j) ok &= v[j - 1] < v[j];
    return all(ok);
}

}  // namespace ISOTONE_ISA
}  // namespace isotone
