// What the bindings share: errors, the choice of the instruction set, sorting networks.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/kernels.hpp"

namespace isotone {

[[noreturn]] void fail(const std::string& message);  // a ValueError

// Kernels read whole numbers, which must lie where numbers may.
template <class Array>
void check_aligned(const std::string& name, const Array& array) {
    if (reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize() != 0)
        fail("`" + name + "` is not aligned: its address is no multiple of " +
             std::to_string(array.itemsize()) + ", the size of its numbers; copy it first.");
}

// The ones that this machine runs, slowest first.
std::vector<std::string> instruction_sets();

// The best ones unless `isa` names others.
const Kernels& choose_kernels(const std::string& isa);

// The network that sorts n values, at most `max_group_size`; made on first use and kept.
SortingNetwork find_sorting_network(int n);

void bind_scorer(nanobind::module_& m);
void bind_trainer(nanobind::module_& m);

}  // namespace isotone
