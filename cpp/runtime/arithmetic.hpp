// ---- arithmetic ---------------------------------------------------------------------------
#pragma once

#include "vectors.hpp"

namespace isotone::ISOTONE_ISA {

// The rounded product of vectors: hides it from compilers that would fuse it with an addition, as
// GCC does by default wherever the processor can.
template <class V>
ISOTONE_INLINE V times(V a, V b) {
    V product = a * b;
#if defined(__AVX512F__)
    asm("" : "+v"(product));
#elif defined(__SSE2__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
    return product;
}

// sum + a * b, rounded twice in double precision.
ISOTONE_INLINE Vector<double> accumulate(Vector<double> sum, Vector<double> a, Vector<double> b) {
    return times(a, b) + sum;
}

ISOTONE_INLINE Vector<float> accumulate(Vector<float> sum, Vector<float> a, Vector<float> b) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, sum);
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#elif defined(__FMA__)
    return _mm_fmadd_ps(a, b, sum);
#elif defined(__aarch64__)
    return vfmaq_f32(sum, a, b);
#else
    return times(a, b) + sum;
#endif
}

ISOTONE_INLINE double accumulate(double sum, double a, double b) { return times(a, b) + sum; }

ISOTONE_INLINE float accumulate(float sum, float a, float b) {
#if defined(__AVX512F__) || defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, sum);
#else
    return times(a, b) + sum;
#endif
}

using Doubles = Vector<double>;
using Bits = Mask<Doubles>;

constexpr double ln2 = 0.6931471805599453;
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
constexpr double two52 = 4503599627370496.0;
constexpr std::int64_t sign_bit = std::numeric_limits<std::int64_t>::min();

// To the nearest integer, ties to even, for numbers of at most 2^52.
ISOTONE_INLINE Doubles round_even(Doubles x) {
#if defined(__AVX512F__)
    return _mm512_maskz_roundscale_pd(-1, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#endif
    const Bits sign = reinterpret_cast<Bits>(x) & sign_bit;
    const Doubles size = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(x) ^ sign);
    const Doubles rounded = (size + two52) - two52;
    return reinterpret_cast<Doubles>(reinterpret_cast<Bits>(rounded) | sign);
}

// Sum of coefficient(k) x^k, k below `size`.
template <int size, class Coefficient>
ISOTONE_INLINE Doubles horner(Coefficient coefficient, Doubles x) {
    Doubles sum = broadcast<Doubles>(coefficient(size - 1));
    for (int k = size - 2; k >= 0; --k) sum = times(sum, x) + coefficient(k);
    return sum;
}

constexpr double odd_reciprocal(int k) { return 2.0 / (2 * k + 1); }

constexpr double factorial_reciprocal(int k) {
    double factorial = 1.0;
    for (int i = 2; i <= k; ++i) factorial *= i;
    return 1.0 / factorial;
}

// Natural logarithm of positive numbers, rounded to 24 bits first: monotone as computed. With
// x = m 2^k, m in [sqrt(1/2), sqrt(2)) and s = (m-1)/(m+1): k log 2 + 2 (s + s^3/3 + s^5/5 + ...)
inline Doubles logarithm(Doubles x) {
    const auto is_tiny = x < 0x1p-1022;
    const Doubles normal = select(is_tiny, x * 0x1p54, x);
    const Bits bits = reinterpret_cast<Bits>(minimum(normal, broadcast<Doubles>(0x1p1023)));
    // the biased exponent as a number: its bits under those of 2^52
    const Bits biased = ((bits >> 52) & 0x7ff) | 0x4330000000000000;
    Doubles k = reinterpret_cast<Doubles>(biased) - (two52 + 1022.0);
    k = select(is_tiny, k - 54.0, k);
    const Bits half = (bits & 0x000fffffffffffff) | 0x3fe0000000000000;
    Doubles m = round_even(reinterpret_cast<Doubles>(half) * 0x1p24) * 0x1p-24;
    const auto is_small = m < sqrt_half;  // m is at most 1: no carry is needed
    m = select(is_small, 2.0 * m, m);
    k = select(is_small, k - 1.0, k);
    const Doubles s = (m - 1.0) / (m + 1.0);
    const Doubles series = horner<12>(odd_reciprocal, s * s);
    return times(k, broadcast<Doubles>(ln2_high)) +
           (times(s, series) + times(k, broadcast<Doubles>(ln2_low)));
}

// Exponential of numbers clamped to +-700: with x = k log 2 + r, 2^k times the series of e^r.
inline Doubles exponential(Doubles x) {
    x = minimum(maximum(x, broadcast<Doubles>(-700.0)), broadcast<Doubles>(700.0));
    const Doubles k = round_even(x / ln2);
    const Doubles r =
        (x - times(k, broadcast<Doubles>(ln2_high))) - times(k, broadcast<Doubles>(ln2_low));
    // 2^k: the biased exponent k + 1023 appears in the low bits of 2^52 + k + 1023
    const Bits power = reinterpret_cast<Bits>(k + (two52 + 1023.0)) << 52;
    return horner<14>(factorial_reciprocal, r) * reinterpret_cast<Doubles>(power);
}

}  // namespace isotone::ISOTONE_ISA
