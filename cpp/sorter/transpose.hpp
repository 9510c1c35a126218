// Small squares of numbers, transposed in registers.
#pragma once

#include "sorter/sorting.hpp"

namespace isotone::ISOTONE_ISA {

// Square tiles of 128 bits a row, the widest that every processor shuffles fast.
template <class T>
constexpr int tile_size = 16 / sizeof(T);

template <class R>
inline void interleave(R a, R b, R& low, R& high) {
    if constexpr (n_lanes<R> == 2) {
        low = __builtin_shufflevector(a, b, 0, 2);
        high = __builtin_shufflevector(a, b, 1, 3);
    } else {
        low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    }
}

// Interleaving the two halves of the tile log2(size) times transposes it.
template <int size, class R>
inline void transpose(R (&tile)[size]) {
    for (int step = 1; step < size; step *= 2) {
        R next[size];
        for (int i = 0; i < size / 2; ++i)
            interleave(tile[i], tile[i + size / 2], next[2 * i], next[2 * i + 1]);
        for (int i = 0; i < size; ++i) tile[i] = next[i];
    }
}

// to[j, i] = from[i, j] for n_rows x n_columns numbers, whose rows are so far apart.
template <class T>
void transpose(const T* from, int from_stride, int n_rows, int n_columns, T* to, int to_stride) {
    constexpr int side = tile_size<T>;
    using Row = Vector<T, side>;
    const auto one = [&](int i, int j) { to[j * to_stride + i] = from[i * from_stride + j]; };
    int i = 0;
    for (; i + side <= n_rows; i += side) {
        int j = 0;
        for (; j + side <= n_columns; j += side) {
            Row square[side];
            for (int r = 0; r < side; ++r)
                __builtin_memcpy(&square[r], from + (i + r) * from_stride + j, sizeof(Row));
            transpose(square);
            for (int r = 0; r < side; ++r)
                __builtin_memcpy(to + (j + r) * to_stride + i, &square[r], sizeof(Row));
        }
        for (; j < n_columns; ++j)
            for (int r = 0; r < side; ++r) one(i + r, j);
    }
    for (; i < n_rows; ++i)
        for (int j = 0; j < n_columns; ++j) one(i, j);
}

}  // namespace isotone::ISOTONE_ISA
