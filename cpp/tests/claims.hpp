// What a program of claims needs: the runtime, and a count of the claims that fail.
#pragma once

#include <cstdio>
#include <string>

#include "isotone.hpp"

namespace {

using namespace isotone;
using namespace isotone::ISOTONE_ISA;
using Sizes = Unrolled<2, 4, 8, 10, 20>;

int n_failed = 0;

void expect(bool is_true, const std::string& what) {
    if (is_true) return;
    std::printf("%s\n", what.c_str());
    ++n_failed;
}

}  // namespace
