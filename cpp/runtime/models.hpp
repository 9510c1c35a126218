// ---- models -------------------------------------------------------------------------------
#pragma once

#include "opening.hpp"

namespace isotone {

// Limits of what is run, the numbers of `isotone.limits`: every index fits an int.
constexpr int max_group_size = 1024;
constexpr int max_width = 65536;     // units of a step, features and outputs included
constexpr int max_steps = 1024;      // as listed in a model
constexpr int max_depth = 16;        // units saved at a time
constexpr int max_matrix = 1 << 24;  // weights of a step

constexpr int max_unrolled_size = 32;
constexpr std::size_t max_stack_bytes = 1 << 20;  // of a fixed model's workspace

// Puts the smaller of wires `low` < `high` on `low`.
struct Comparator {
    std::uint16_t low, high;
};

// Without member functions, which would be shared between instruction sets.
struct SortingNetwork {
    const Comparator* first;
    const Comparator* last;
};

// x = (v - center) * factor, where v is the raw number X or log(max(X + offset, floor)).
struct Feature {
    bool log;
    double offset, floor, center, factor;
};

enum class Kind : int { dense, sort, pointwise, save, merge };
enum class Activation : int { relu, leaky_relu, abs, hardtanh, tanh, sigmoid, softplus };

// dense: W h + b.  sort: groups in ascending order.  pointwise: an activation of every unit.
// save: keep the units.  merge: keep * (the units saved last) + add * h.
template <class T>
struct Step {
    Kind kind;
    int n_in, n_out;
    const T* weight;  // dense: [n_in][n_out]
    const T* bias;
    int group_size;  // sort
    SortingNetwork network;
    Activation activation;  // pointwise
    double slope;
    T keep, add;  // merge
};

template <class T>
struct Model {
    int n_features, n_outputs, n_steps;
    int width;  // the most units of any step, inputs included
    int depth;  // the most units saved at a time
    const Feature* features;
    const Step<T>* steps;
    const T* residual;  // [n_features][n_outputs]
    double clip, grid;  // no rounding if `grid` is 0
};

// One feature of a batch: event e is at `data` + e * `stride` bytes, float if `single`.
struct Column {
    const void* data;
    std::ptrdiff_t stride;
    bool single;
};

}  // namespace isotone
