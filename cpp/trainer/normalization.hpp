// Normalized weights, Eq. 8, and the derivative through the normalization.
#pragma once

#include "sorter/transpose.hpp"
#include "trainer/arithmetic.hpp"
#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

template <class T>
struct NormalizedWeight {
    T* weight;      // (n_out, n_in)
    T* transposed;  // the same, (n_in, n_out)
    T* ratio;       // of the size of each column or row to the bound
};

template <class T>
inline T absolute(T x) {
    return x < 0 ? -x : x;
}

template <class T>
inline T sign(T x) {
    return static_cast<T>(x > 0) - static_cast<T>(x < 0);
}

// Calls run(j, first, end, at) for the rows of weights: the columns between which they may not be
// zero, and the offset of a row.
template <class Run>
ISOTONE_INLINE void for_rows(const Layer& layer, Run run) {
    for (const Block& block : layer.blocks)
        for (int j = block.row; j < block.row + block.n_rows; ++j)
            run(j, block.column, block.column + block.n_columns,
                static_cast<std::size_t>(j) * layer.n_in);
}

template <class T>
void measure(const Layer& layer, const T* weight, T* size) {
    if (layer.size == Size::column_sum) {
        for (int k = 0; k < layer.n_in; ++k) size[k] = 0;
        for_rows(layer, [&](int, int first, int end, std::size_t at) ISOTONE_LAMBDA {
            for (int k = first; k < end; ++k) size[k] += absolute(weight[at + k]);
        });
        return;
    }
    for_rows(layer, [&](int j, int first, int end, std::size_t at) ISOTONE_LAMBDA {
        T sum = 0, largest = 0;
        for (int k = first; k < end; ++k) {
            const T entry = absolute(weight[at + k]);
            sum += entry;
            largest = entry <= largest ? largest : entry;  // keeps a NaN that comes last
        }
        // A NaN that came before a larger entry is in the sum.
        size[j] = layer.size == Size::row_sum || sum != sum ? sum : largest;
    });
}

// Below 1 there is nothing to divide. At 1 there is, for the derivative: so torch.clamp has it.
template <class V>
inline V divisor(V ratio) {
    return ratio < Element<V>(1) ? broadcast<V>(1) : ratio;
}

// Calls run(j, k, at, n) for the vectors of weights: row, column, offset, and the numbers left.
template <class T, class Run>
ISOTONE_INLINE void for_vectors(const Layer& layer, Run run) {
    for_rows(layer, [&](int j, int first, int end, std::size_t at) ISOTONE_LAMBDA {
        for (int k = first; k < end; k += n_lanes<Vector<T>>) run(j, k, at + k, end - k);
    });
}

// W' = W / max(1, size / bound).
template <class T>
void normalize(const Layer& layer, const T* weight, T bound, const NormalizedWeight<T>& space) {
    const int n_in = layer.n_in, n_out = layer.n_out;
    const bool by_column = layer.size == Size::column_sum;
    measure(layer, weight, space.ratio);
    for (int i = 0; i < (by_column ? n_in : n_out); ++i) space.ratio[i] /= bound;
    for_vectors<T>(layer, [&](int j, int k, std::size_t at, int n) ISOTONE_LAMBDA {
        using V = Vector<T>;
        const V ratio = by_column ? load_some<V>(space.ratio + k, n) : broadcast<V>(space.ratio[j]);
        store_some(space.weight + at, load_some<V>(weight + at, n) / divisor(ratio), n);
    });
    for (const Block& block : layer.blocks)
        transpose(space.weight + block.row * n_in + block.column, n_in, block.n_rows,
                  block.n_columns, space.transposed + block.column * n_out + block.row, n_out);
}

// Turns derivatives with respect to W' into those with respect to W, in place. Where W' = W b / s,
// dW = (dW' - (derivative of s) (sum of dW' W) / s) b / s.
template <class T>
void carry_through_columns(const Layer& layer, const T* weight, T bound, const T* ratio, T* inner,
                           T* gradient) {
    const int n_in = layer.n_in;
    for (int k = 0; k < n_in; ++k) inner[k] = 0;
    for_rows(layer, [&](int, int first, int end, std::size_t at) ISOTONE_LAMBDA {
        for (int k = first; k < end; ++k) inner[k] += gradient[at + k] * weight[at + k];
    });
    for (int k = 0; k < n_in; ++k) inner[k] = ratio[k] < 1 ? 0 : inner[k] / (ratio[k] * bound);
    for_vectors<T>(layer, [&](int, int k, std::size_t at, int n) ISOTONE_LAMBDA {
        using V = Vector<T>;
        const V w = load_some<V>(weight + at, n), lost = load_some<V>(inner + k, n);
        const V g = load_some<V>(gradient + at, n) - (w > T(0) ? lost : w < T(0) ? -lost : V{});
        store_some(gradient + at, g / divisor(load_some<V>(ratio + k, n)), n);
    });
}

// Of a row of n weights. Entries that share the largest absolute value share its derivative.
template <class T>
void carry_through_row(bool by_maximum, const T* weight, int n, T size, T ratio, T* gradient) {
    T inner = 0;
    int n_largest = 0;
    for (int k = 0; k < n; ++k) {
        inner += gradient[k] * weight[k];
        n_largest += absolute(weight[k]) == size;
    }
    inner /= by_maximum ? size * static_cast<T>(n_largest) : size;
    for (int k = 0; k < n; ++k) {
        const bool counts = !by_maximum || absolute(weight[k]) == size;
        gradient[k] = (gradient[k] - (counts ? sign(weight[k]) * inner : 0)) / ratio;
    }
}

template <class T>
void carry_through(const Layer& layer, const T* weight, T bound, const NormalizedWeight<T>& space,
                   T* scratch, T* gradient) {
    if (layer.size == Size::column_sum)
        return carry_through_columns(layer, weight, bound, space.ratio, scratch, gradient);
    measure(layer, weight, scratch);
    for_rows(layer, [&](int j, int first, int end, std::size_t at) ISOTONE_LAMBDA {
        if (!(space.ratio[j] < 1))
            carry_through_row(layer.size == Size::row_maximum, weight + at + first, end - first,
                              scratch[j], space.ratio[j], gradient + at + first);
    });
}

}  // namespace isotone::ISOTONE_ISA
