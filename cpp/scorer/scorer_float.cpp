// Networks of float. Compiled once per instruction set, apart from the other precision: one
// compiler takes half a minute for each.
#include "scorer/every_size.hpp"

namespace isotone::ISOTONE_ISA {

const ScorerKernels<float> scorer_float = {find_workspace_size<float>, score<EverySize, float>};

}  // namespace isotone::ISOTONE_ISA
