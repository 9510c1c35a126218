// ---- the end of the file ------------------------------------------------------------------
#pragma once

#include "fixed.hpp"

#if defined(__clang__)
#pragma float_control(pop)
#endif
