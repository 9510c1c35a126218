// ---- pointwise ----------------------------------------------------------------------------
#pragma once

#include "arithmetic.hpp"
#include "models.hpp"

namespace isotone::ISOTONE_ISA {

// Arrays of T are read and written as vectors of doubles.
template <class T>
using Part = Vector<T, n_lanes<Doubles>>;

template <class T>
ISOTONE_INLINE Doubles load_doubles(const T* p) {
    return __builtin_convertvector(load<Part<T>>(p), Doubles);
}

template <class T>
ISOTONE_INLINE void store_doubles(T* p, Doubles x) {
    store(p, __builtin_convertvector(x, Part<T>));
}

inline Doubles absolute(Doubles x) {
    return reinterpret_cast<Doubles>(reinterpret_cast<Bits>(x) & ~sign_bit);
}

// log(1 + e^h) = max(h, 0) + log(1 + t) with t = e^-|h|, and s = t / (2 + t) is at most 1/3.
inline Doubles softplus(Doubles h) {
    const Doubles t = exponential(-absolute(h)), s = t / (2.0 + t);
    return maximum(h, Doubles{}) + times(s, horner<17>(odd_reciprocal, s * s));
}

inline Doubles activate(Activation activation, double negative_slope, Doubles h) {
    const Doubles one = broadcast<Doubles>(1.0);
    switch (activation) {
        case Activation::relu: return maximum(h, Doubles{});
        case Activation::leaky_relu: return select(h < 0.0, h * negative_slope, h);
        case Activation::abs: return absolute(h);
        case Activation::hardtanh: return minimum(maximum(h, -one), one);
        case Activation::tanh: return 1.0 - 2.0 / (1.0 + exponential(2.0 * h));
        case Activation::sigmoid: return 1.0 / (1.0 + exponential(-h));
        default: return softplus(h);
    }
}

template <class T>
void pointwise(const Step<T>& step, T* h, int n) {
    constexpr int lanes = n_lanes<Doubles>;
    int i = 0;
    for (; i + lanes <= n; i += lanes)
        store_doubles(h + i, activate(step.activation, step.negative_slope, load_doubles(h + i)));
    for (; i < n; ++i) {  // of a single event
        const Doubles x = broadcast<Doubles>(static_cast<double>(h[i]));
        h[i] = static_cast<T>(activate(step.activation, step.negative_slope, x)[0]);
    }
}

template <class V>
void merge(V keep, V add, const V* saved, V* h, int n) {
    for (int i = 0; i < n; ++i) h[i] = times(keep, saved[i]) + times(add, h[i]);
}

// out = add * h, or out = sum + add * h.
template <class V>
void add_part(bool first, V add, const V* h, const V* sum, V* out, int n) {
    if (first)
        for (int i = 0; i < n; ++i) out[i] = times(add, h[i]);
    else
        for (int i = 0; i < n; ++i) out[i] = sum[i] + times(add, h[i]);
}

}  // namespace isotone::ISOTONE_ISA
