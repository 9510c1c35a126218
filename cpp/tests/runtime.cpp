// What isotone.hpp promises of any model, at its edges. Each claim that fails is printed, and the
// program ends with 1.
#include "scores.hpp"
#include "validity.hpp"

int main() {
    check_limits();
    check_steps();
    check_sorts();
    check_nesting();
    check_copies();
    check_layouts<float>("float");
    check_layouts<double>("double");
    check_shapes<float>("float");
    check_shapes<double>("double");
    check_state();
    return n_failed != 0;
}
