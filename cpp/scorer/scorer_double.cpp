// Networks of double. Compiled once per instruction set, apart from the other precision: one
// compiler takes half a minute for each.
#include "scorer/every_size.hpp"

namespace isotone::ISOTONE_ISA {

const ScorerKernels<double> scorer_double = {find_workspace_size<double>,
                                             score<EverySize, double>};

}  // namespace isotone::ISOTONE_ISA
