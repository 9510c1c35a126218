// ---- sorting networks ---------------------------------------------------------------------
#pragma once

#include "models.hpp"

namespace isotone::ISOTONE_ISA {

// Ten wires in 29 comparators, as few as possible; halves that are merged would take 31.
constexpr Comparator ten_wires[] = {{0, 4}, {1, 5}, {6, 7}, {3, 8}, {4, 5}, {5, 7}, {2, 9}, {8, 9},
                                    {0, 1}, {1, 4}, {2, 3}, {7, 9}, {3, 5}, {6, 8}, {2, 6}, {1, 3},
                                    {0, 6}, {4, 8}, {5, 7}, {7, 8}, {3, 5}, {0, 2}, {4, 6}, {5, 7},
                                    {1, 2}, {3, 6}, {2, 4}, {5, 6}, {3, 4}};

// Batcher's odd-even merge of m sorted wires with n other sorted ones (Knuth, The Art of Computer
// Programming, vol. 3, Sec. 5.3.4): every other wire of both, the rest of both, then neighbors.
// Wires are `a`, `a` + `stride`, ... and `b`, `b` + `stride`, ...
template <class Emit>
constexpr void merge_wires(int a, int m, int b, int n, int stride, Emit& emit) {
    if (m == 0 || n == 0) return;
    if (m + n == 2) return emit(a, b);
    merge_wires(a, m - m / 2, b, n - n / 2, 2 * stride, emit);
    merge_wires(a + stride, m / 2, b + stride, n / 2, 2 * stride, emit);
    const auto wire = [&](int i) { return i < m ? a + i * stride : b + (i - m) * stride; };
    for (int i = 1; i + 1 < m + n; i += 2) emit(wire(i), wire(i + 1));
}

// One half after the other, so that few wires are in use at a time: registers are scarce.
template <class Emit>
constexpr void sort_wires(int first, int n, Emit& emit) {
    if (n < 2) return;
    if (n == 10) {
        for (Comparator c : ten_wires) emit(first + c.low, first + c.high);
        return;
    }
    const int m = n - n / 2;
    sort_wires(first, m, emit);
    sort_wires(first + m, n - m, emit);
    merge_wires(first, m, first + m, n - m, 1, emit);
}

// Calls emit(low, high) for one comparator after the other of the network for n wires, of any
// number.
template <class Emit>
constexpr void build_sorting_network(int n, Emit emit) {
    sort_wires(0, n, emit);
}

constexpr int count_comparators(int n) {
    int count = 0;
    build_sorting_network(n, [&](int, int) { ++count; });
    return count;
}

template <int n>
struct StaticSortingNetwork {
    static constexpr int size = count_comparators(n);
    Comparator pairs[size] = {};

    constexpr StaticSortingNetwork() {
        int k = 0;
        build_sorting_network(n, [&](int low, int high) {
            pairs[k].low = static_cast<std::uint16_t>(low);
            pairs[k].high = static_cast<std::uint16_t>(high);
            ++k;
        });
    }
};

template <int n>
constexpr StaticSortingNetwork<n> static_sorting_network;

}  // namespace isotone::ISOTONE_ISA
