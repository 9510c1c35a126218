// What the bindings know of probability.cpp, which is compiled once per instruction set.
#pragma once

#include <cstddef>

#include "isotone.hpp"

namespace isotone::ISOTONE_ISA {

// Probabilities of n rows of m logits, [row][logit]: of the second class for one, of each for
// several.
void find_probabilities(const double* logits, std::size_t n, std::size_t m, double* out);

}  // namespace isotone::ISOTONE_ISA
