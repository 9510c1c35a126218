// What bindings/scorer.cpp knows of isotone.hpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "isotone.hpp"

namespace isotone {

template <class T>
struct ScorerKernels {
    std::size_t (*workspace_size)(const Model<T>&);  // in numbers
    std::size_t (*score)(const Model<T>&, const Column*, std::size_t n, T fill, T* out,
                         T* workspace);
};

namespace ISOTONE_ISA {
extern const ScorerKernels<float> scorer_float;
extern const ScorerKernels<double> scorer_double;
}  // namespace ISOTONE_ISA

}  // namespace isotone
