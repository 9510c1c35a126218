// What binding.cpp knows of kernels.cpp: one table of functions per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scorer.hpp"
#include "sorting.hpp"
#include "trainer.hpp"

namespace isotone {

// Rows of `group_size` values to sort; `index` may be null. Arrays are contiguous.
template <class T>
struct SortTask {
    const T* x;
    T* values;
    std::int16_t* index;
    std::size_t n_groups;
    int group_size;
    Network network;
};

struct Kernels {
    const char* isa;
    void (*sort_float)(const SortTask<float>&);
    void (*sort_double)(const SortTask<double>&);
    const ScorerKernels<float>* scorer_float;
    const ScorerKernels<double>* scorer_double;
    const TrainerKernels<float>* trainer_float;
    const TrainerKernels<double>* trainer_double;
};

namespace baseline {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}

}  // namespace isotone
