// What the bindings share: errors, the choice of the instruction set, sorting networks.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "bindings/kernels.hpp"

namespace isotone {

[[noreturn]] void fail(const std::string& message);  // a ValueError

// The ones that this machine runs, slowest first.
std::vector<std::string> instruction_sets();

// The best ones unless `isa` names others.
const Kernels& choose_kernels(const std::string& isa);

// The network that sorts n values, at most `max_group_size`; made on first use and kept.
SortingNetwork find_sorting_network(int n);

void bind_scorer(nanobind::module_& m);
void bind_trainer(nanobind::module_& m);

}  // namespace isotone
