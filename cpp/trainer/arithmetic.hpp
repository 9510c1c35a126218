// Arithmetic on the lanes of a vector. Where the processor multiplies and adds in one rounding it
// is always used, and nowhere else: avx2 and avx512 agree to the last bit, the baseline has no
// such instruction and rounds twice.
#pragma once

#include "sorter/sorting.hpp"

namespace isotone::ISOTONE_ISA {

#if defined(__AVX512F__)
inline __m512 multiply_add(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512d multiply_add(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__AVX2__)
inline __m256 multiply_add(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d multiply_add(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
#else
template <class V>
inline V multiply_add(V a, V b, V c) {
    return a * b + c;
}
#endif

// The first n numbers at p, if there are not as many as lanes, and zeros behind them.
template <class V>
ISOTONE_INLINE V load_some(const Element<V>* p, int n) {
    if (n >= n_lanes<V>) return load<V>(p);
    V v = {};
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
}

template <class V>
ISOTONE_INLINE void store_some(Element<V>* p, V v, int n) {
    if (n >= n_lanes<V>) return store(p, v);
    for (int i = 0; i < n; ++i) p[i] = v[i];
}

template <class V>
inline V magnitude(V x) {
    return maximum(x, -x);
}

// What a floating-point type is made of, and the lengths of the series that reach its precision.
template <class T>
struct Format;

template <>
struct Format<float> {
    using Bits = std::int32_t;
    static constexpr int mantissa_bits = 23, bias = 127, exp_terms = 8, log_terms = 5;
    static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr float exp_limit = 87.0f;
    static constexpr float rounder = 0x1.8p23f;  // adding it rounds to a whole number
};

template <>
struct Format<double> {
    using Bits = std::int64_t;
    static constexpr int mantissa_bits = 52, bias = 1023, exp_terms = 15, log_terms = 12;
    static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double exp_limit = 708.0;
    static constexpr double rounder = 0x1.8p52;
};

template <class To, class From>
inline To reinterpret(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// exp(x) for x <= 0: 2^k times a series in what is left, at most ln(2)/2 away from 0.
template <class V>
inline V exp_negative(V x) {
    using F = Format<Element<V>>;
    using T = Element<V>;
    x = maximum(broadcast<V>(-F::exp_limit), x);
    const V k = (x * static_cast<T>(1.4426950408889634) + F::rounder) - F::rounder;
    const V rest = multiply_add(k, broadcast<V>(-F::ln2_high), x);
    const V r = multiply_add(k, broadcast<V>(-F::ln2_low), rest);
    V sum = broadcast<V>(T(1));
    for (int i = F::exp_terms - 1; i > 0; --i)
        sum = multiply_add(sum, r * static_cast<T>(1.0 / i), broadcast<V>(T(1)));
    const Mask<V> exponent = __builtin_convertvector(k, Mask<V>) + F::bias;
    return sum * reinterpret<V>(exponent << F::mantissa_bits);
}

template <class V>
inline V exponential(V x) {
    using T = Element<V>;
    const V small = exp_negative(-magnitude(x));
    return x < T(0) ? small : T(1) / small;
}

// log(x) for normal x >= 1: with x = m 2^k and s = (m - 1) / (m + 1) it is
// k log(2) + 2 (s + s^3/3 + ...).
template <class V>
inline V log_above_one(V x) {
    using F = Format<Element<V>>;
    using T = Element<V>;
    constexpr auto one = static_cast<typename F::Bits>(1);
    const Mask<V> bits = reinterpret<Mask<V>>(x);
    Mask<V> exponent = (bits >> F::mantissa_bits) - F::bias;
    V m = reinterpret<V>((bits & ((one << F::mantissa_bits) - 1)) |
                         (static_cast<typename F::Bits>(F::bias) << F::mantissa_bits));
    const Mask<V> large = m > static_cast<T>(1.4142135623730951);
    m = large ? m * T(0.5) : m;
    exponent -= large;  // true is -1
    const V k = __builtin_convertvector(exponent, V), s = (m - T(1)) / (m + T(1)), square = s * s;
    V sum = broadcast<V>(static_cast<T>(2.0 / (2 * F::log_terms - 1)));
    for (int i = F::log_terms - 2; i >= 0; --i)
        sum = multiply_add(sum, square, broadcast<V>(static_cast<T>(2.0 / (2 * i + 1))));
    return multiply_add(k, broadcast<V>(F::ln2_high), multiply_add(s, sum, k * F::ln2_low));
}

// log(1 + t) for t in [0, 1], with the digits that 1 + t loses put back.
template <class V>
inline V log_of_one_plus(V t) {
    using T = Element<V>;
    const V u = t + T(1);
    return log_above_one(u) + (t - (u - T(1))) / u;
}

}  // namespace isotone::ISOTONE_ISA
