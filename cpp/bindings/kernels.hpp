// What the bindings know of the kernels: one table of functions per instruction set.
#pragma once

#include "scorer/probability.hpp"
#include "scorer/scorer.hpp"
#include "sorter/sorter.hpp"
#include "trainer/trainer.hpp"

namespace isotone {

struct Kernels {
    const char* isa;
    const SorterKernels* sorter;
    void (*find_probabilities)(const double* logits, std::size_t n, std::size_t m, double* out);
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
