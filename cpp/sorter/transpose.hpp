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

}  // namespace isotone::ISOTONE_ISA
