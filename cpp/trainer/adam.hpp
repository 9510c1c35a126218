// Adam, as torch.optim.Adam and torch.optim.AdamW take their steps.
#pragma once

#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

template <class T>
T square_root(T x) {
    if constexpr (sizeof(T) == sizeof(float))
        return __builtin_sqrtf(x);
    else
        return __builtin_sqrt(x);
}

// As torch.optim.Adam; with a decay as torch.optim.AdamW. Of the parameters in some ranges.
// Numerator and denominator are multiplied by the correction of the root, which leaves one division
// and one root for each parameter.
template <class T>
void update(const TrainTask<T>& task, const AdamStep& step, const T* __restrict gradient,
            Ranges ranges) {
    T* const __restrict parameters = task.parameters;
    T* const __restrict first = task.first_moment;
    T* const __restrict second = task.second_moment;
    const T rate1 = static_cast<T>(1 - task.adam.beta1), beta2 = static_cast<T>(task.adam.beta2);
    const T rate2 = static_cast<T>(1 - task.adam.beta2), decay = static_cast<T>(step.decay);
    const T eps = static_cast<T>(task.adam.eps * step.root_correction);
    const T step_size = static_cast<T>(step.step_size * step.root_correction);
    for (const Range& range : ranges)
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const T g = gradient[i];
            first[i] += (g - first[i]) * rate1;
            second[i] = second[i] * beta2 + rate2 * g * g;
            const T spread = square_root(second[i]) + eps;
            parameters[i] = parameters[i] * decay - step_size * first[i] / spread;
        }
}

// Rates of their own, no decay, and limits: a λ that left them would not come back.
template <class T>
void update_lipschitz(const TrainTask<T>& task, const AdamStep& step, const T* gradient) {
    constexpr T start = static_cast<T>(log_lipschitz_start);
    const std::size_t begin = task.shape.n_weights, end = task.shape.n_parameters();
    const Range all = {begin, end};
    update(task, {step.step_size * task.adam.lipschitz_rate, step.root_correction, 1}, gradient,
           {&all, 1});
    for (std::size_t i = begin; i < end; ++i) {
        T& theta = task.parameters[i];
        const T highest = task.constants.feature_scale[i - begin];
        const T lowest = (highest < start ? highest : start) - static_cast<T>(log_lipschitz_range);
        theta = theta > highest ? highest : theta < lowest ? lowest : theta;
    }
}

}  // namespace isotone::ISOTONE_ISA
