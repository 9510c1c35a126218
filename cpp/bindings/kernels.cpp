// The table of one instruction set: this file is compiled once for each.
#include "bindings/kernels.hpp"

#define ISOTONE_STRINGIFY(name) #name
#define ISOTONE_NAME_OF(macro) ISOTONE_STRINGIFY(macro)

namespace isotone::ISOTONE_ISA {

const Kernels kernels = {ISOTONE_NAME_OF(ISOTONE_ISA),
                         &sorter,
                         find_probabilities,
                         &scorer_float,
                         &scorer_double,
                         &trainer_float,
                         &trainer_double};

}  // namespace isotone::ISOTONE_ISA
