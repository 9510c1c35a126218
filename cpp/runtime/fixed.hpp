// ---- fixed models -------------------------------------------------------------------------
#pragma once

#include "scoring.hpp"

namespace isotone::ISOTONE_ISA {

// For exported headers, whose `model` is a constant: the workspace is on the stack. Raw features
// are float or double, `Real`.

template <class Real>
constexpr bool is_real = std::is_same_v<Real, float> || std::is_same_v<Real, double>;

template <const auto& model>
using Number = std::decay_t<decltype(*model.residual)>;

template <class Sizes, const auto& model>
std::size_t score_fixed(const Column* columns, std::size_t n, Number<model> fill,
                        Number<model>* out) {
    static_assert(is_valid<Sizes>(model), "the model is beyond a limit, or its steps do not fit");
    constexpr std::size_t size = workspace_size(model, tile_for(model));
    static_assert(size * sizeof(Number<model>) <= max_stack_bytes, "too wide for the stack");
    alignas(vector_bytes) Number<model> workspace[size];
    return score<Sizes>(model, columns, n, fill, out, workspace);
}

// Event e has its columns at rows + e * count_columns(model).
template <class Sizes, const auto& model, class Real>
std::size_t score_rows(const Real* rows, std::size_t n, Number<model> fill, Number<model>* out) {
    static_assert(is_real<Real>, "raw features are float or double");
    Column columns[count_columns(model)];
    for (int i = 0; i < count_columns(model); ++i)
        columns[i] = {rows + i, count_columns(model) * sizeof(Real), std::is_same_v<Real, float>};
    return score_fixed<Sizes, model>(columns, n, fill, out);
}

// Feature i of the events is at columns[i].
template <class Sizes, const auto& model, class Real>
std::size_t score_columns(const Real* const* columns, std::size_t n, Number<model> fill,
                          Number<model>* out) {
    static_assert(is_real<Real>, "raw features are float or double");
    Column strided[count_columns(model)];
    for (int i = 0; i < count_columns(model); ++i)
        strided[i] = {columns[i], sizeof(Real), std::is_same_v<Real, float>};
    return score_fixed<Sizes, model>(strided, n, fill, out);
}

}  // namespace isotone::ISOTONE_ISA
