// What the bindings know of sorter.cpp, which is compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isotone.hpp"

namespace isotone {

// Rows of `group_size` values to sort; `index` may be null. Arrays are contiguous.
template <class T>
struct SortTask {
    const T* x;
    T* values;
    std::int16_t* index;
    std::size_t n_groups;
    int group_size;
    SortingNetwork network;
};

struct SorterKernels {
    void (*sort_float)(const SortTask<float>&);
    void (*sort_double)(const SortTask<double>&);
};

namespace ISOTONE_ISA {
extern const SorterKernels sorter;
}

}  // namespace isotone
