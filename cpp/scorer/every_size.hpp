// The runtime of isotone.hpp for networks of any shape: unrolled code for every group size.
#pragma once

#include "scorer/scorer.hpp"

namespace isotone::ISOTONE_ISA {

template <std::size_t... k>
auto list_sizes(std::index_sequence<k...>) -> Unrolled<static_cast<int>(k) + 2 ...>;

using EverySize = decltype(list_sizes(std::make_index_sequence<max_unrolled_size - 1>()));

template <class T>
std::size_t find_workspace_size(const Model<T>& model) {
    return workspace_size(model, tile_for(model));
}

}  // namespace isotone::ISOTONE_ISA
