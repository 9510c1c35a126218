// The runtime of isotone.hpp for networks of any shape. Compiled once per instruction set.
#include "scorer.hpp"

namespace isotone::ISOTONE_ISA {
namespace {

template <std::size_t... k>
auto list_sizes(std::index_sequence<k...>) -> Unrolled<static_cast<int>(k) + 2 ...>;

using Sizes = decltype(list_sizes(std::make_index_sequence<max_unrolled_size - 1>()));

template <class T>
std::size_t find_workspace_size(const Model<T>& model) {
    return workspace_size(model, tile_for(model));
}

}  // namespace

const ScorerKernels<float> scorer_float = {find_workspace_size<float>, score<Sizes, float>};
const ScorerKernels<double> scorer_double = {find_workspace_size<double>, score<Sizes, double>};

}  // namespace isotone::ISOTONE_ISA
