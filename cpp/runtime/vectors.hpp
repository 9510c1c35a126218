// ---- vectors ------------------------------------------------------------------------------
#pragma once

#include "opening.hpp"

namespace isotone::ISOTONE_ISA {

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

// Numbers stand in for vectors of one lane where a single event is scored.
template <class V>
struct FindElement {
    using type = std::decay_t<decltype(V{}[0])>;
};
template <>
struct FindElement<double> {
    using type = double;
};
template <>
struct FindElement<float> {
    using type = float;
};

template <class V>
using Element = typename FindElement<V>::type;

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

template <class V>
ISOTONE_INLINE V load(const void* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof(V));
    return v;
}

template <class V>
ISOTONE_INLINE void store(void* p, V v) {
    __builtin_memcpy(p, &v, sizeof(V));
}

template <class V>
ISOTONE_INLINE V broadcast(Element<V> x) {
    return x - V{};  // x + 0 would turn -0 into 0, and so is not for free
}

// In every lane a where the mask is set, otherwise b.
template <class V>
ISOTONE_INLINE V select(Mask<V> mask, V a, V b) {
    return mask ? a : b;
}

// One instruction each. GCC finds them behind `a < b ? a : b` too, but ponders for a minute.
#if defined(__AVX512F__)  // masked, as GCC 12 warns without reason about the plain ones
inline __m512 minimum(__m512 a, __m512 b) { return _mm512_maskz_min_ps(-1, a, b); }
inline __m512 maximum(__m512 a, __m512 b) { return _mm512_maskz_max_ps(-1, a, b); }
inline __m512d minimum(__m512d a, __m512d b) { return _mm512_maskz_min_pd(-1, a, b); }
inline __m512d maximum(__m512d a, __m512d b) { return _mm512_maskz_max_pd(-1, a, b); }
#endif
#if defined(__AVX2__)
inline __m256 minimum(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
inline __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline __m256d minimum(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
inline __m256d maximum(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
#endif
#if defined(__SSE2__)
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

inline double minimum(double a, double b) { return a < b ? a : b; }
inline double maximum(double a, double b) { return b < a ? a : b; }
inline float minimum(float a, float b) { return a < b ? a : b; }
inline float maximum(float a, float b) { return b < a ? a : b; }

}  // namespace isotone::ISOTONE_ISA
