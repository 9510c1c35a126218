// Losses of a vector of events. Each takes the outputs and leaves the derivatives in their place.
#pragma once

#include "trainer/arithmetic.hpp"
#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

template <class V>
inline V binary_cross_entropy(V& z, V y, Element<V> temperature) {
    using T = Element<V>;
    const V t = z * temperature, e = exp_negative(-magnitude(t)), inverse = T(1) / (e + T(1));
    const V probability = t < T(0) ? e * inverse : inverse;
    z = (probability - y) * temperature;
    return maximum(t, V{}) - t * y + log_of_one_plus(e);
}

// Unit c is z[c * stride]; labels are whole numbers.
template <class V>
inline V softmax_cross_entropy(V* z, int n, int stride, V label, Element<V> temperature) {
    V largest = z[0], sum = {}, chosen = {};
    for (int c = 1; c < n; ++c) largest = maximum(largest, z[c * stride]);
    for (int c = 0; c < n; ++c) {
        V& unit = z[c * stride];
        const V t = (unit - largest) * temperature;
        chosen = label == static_cast<Element<V>>(c) ? t : chosen;
        unit = exp_negative(t);
        sum += unit;
    }
    const V factor = temperature / sum;
    for (int c = 0; c < n; ++c) {
        const Mask<V> is_label = label == static_cast<Element<V>>(c);
        z[c * stride] = z[c * stride] * factor - (is_label ? broadcast<V>(temperature) : V{});
    }
    return log_above_one(sum) - chosen;
}

template <class V>
inline V squared_error(V& z, V y) {
    const V error = z - y;
    z = error + error;
    return error * error;
}

template <class V>
inline V absolute_error(V& z, V y) {
    using T = Element<V>;
    const V error = z - y;
    z = error > T(0) ? broadcast<V>(1) : (error < T(0) ? broadcast<V>(-1) : V{});
    return magnitude(error);
}

template <class V>
inline V hinge(V& z, V y, Element<V> margin) {
    using T = Element<V>;
    const V sign = y + y - T(1), shortfall = margin - sign * z;
    z = shortfall > T(0) ? -sign : V{};
    return maximum(shortfall, V{});
}

template <class V>
inline V pinball(V& z, V y, Element<V> level) {
    using T = Element<V>;
    const V error = y - z;
    z = error > T(0) ? broadcast<V>(-level) : (error < T(0) ? broadcast<V>(T(1) - level) : V{});
    return maximum(error * level, error * (level - T(1)));
}

// Calls loss(z, y, j) for each output j; the loss of an event is their sum.
template <class V, class PerOutput>
inline V sum_over_outputs(V* z, const V* y, int n, int stride, PerOutput loss) {
    V sum = {};
    for (int j = 0; j < n; ++j) sum += loss(z[j * stride], y[j * stride], j);
    return sum;
}

// `parameters` has one entry per output; losses that are not of single outputs use the first.
template <class V>
inline V compute_loss(const Shape& shape, const Element<V>* parameters, V* z, const V* y,
                      int stride) {
    const int n = shape.n_outputs();
    switch (shape.loss) {
        case Loss::cross_entropy:
            return n == 1 ? binary_cross_entropy(*z, *y, *parameters)
                          : softmax_cross_entropy(z, n, stride, *y, *parameters);
        case Loss::mse:
            return sum_over_outputs(z, y, n, stride,
                                    [](V& f, V t, int) { return squared_error(f, t); });
        case Loss::l1:
            return sum_over_outputs(z, y, n, stride,
                                    [](V& f, V t, int) { return absolute_error(f, t); });
        case Loss::hinge: return hinge(*z, *y, *parameters);
        case Loss::quantile:
            return sum_over_outputs(z, y, n, stride, [parameters](V& f, V t, int j) {
                return pinball(f, t, parameters[j]);
            });
    }
    return V{};
}

}  // namespace isotone::ISOTONE_ISA
