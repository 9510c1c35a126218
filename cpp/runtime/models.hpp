// ---- models -------------------------------------------------------------------------------
#pragma once

#include "opening.hpp"

namespace isotone {

// Limits of what is run, the numbers of `isotone.limits`: every index fits an int.
constexpr int max_group_size = 1024;
constexpr int max_width = 65536;     // units of a step, features and outputs included
constexpr int max_steps = 1024;      // as listed in a model
constexpr int max_depth = 16;        // residual blocks and members inside one another
constexpr int max_matrix = 1 << 24;  // weights of a step

// Larger groups walk a list of comparators. Sanitizers make the code of each size so long that their
// build sets fewer.
#if !defined(ISOTONE_UNROLLED_SIZE)
#define ISOTONE_UNROLLED_SIZE 32
#endif
constexpr int max_unrolled_size = ISOTONE_UNROLLED_SIZE;
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

// A column that enters as features `first` to `first` + `n_copies` - 1. One alone is the column
// itself. Of several, each runs from -1 to 1 over one interval of the column, is -1 below and +1
// above it, and the intervals ascend: all copies before the one that moves are +1, all behind it
// -1. Copy k is +1 from ends[k] on, the last one excepted; there are 2^levels - 1 ends, ascending,
// the rest being NaN.
struct Source {
    int first, n_copies, levels;
    const double* ends;
};

enum class Kind : int { dense, sort, pointwise, save, merge, fork, part, join, look_up };
enum class Activation : int { relu, leaky_relu, abs, hardtanh, tanh, sigmoid, softplus };

// dense: W h + b.  sort: groups in ascending order.  pointwise: an activation of every unit.
// look_up: W h + b of copies, of which those that do not move are summed beforehand: row 2i of
// `weight` is the sum of W_j before copy i less that behind it, among the copies of one column,
// and row 2i + 1 is W_i.  save: keep the units.  merge: keep * (the units saved last) + add * h.
// fork, part, ..., part, join: the weighted sum of members that start from the same units. fork
// keeps the units; part is the end of a member, sum = keep * sum + add * h, where keep is 0 or 1,
// after which the units are those that were kept; join is the end of the last member, after which
// they are the sum.
template <class T>
struct Step {
    Kind kind;
    int n_in, n_out;
    const T* weight;  // dense: [n_in][n_out]; look_up: [2 n_in][n_out]
    const T* bias;
    int group_size;  // sort
    SortingNetwork network;
    Activation activation;  // pointwise
    double negative_slope;
    T keep, add;  // merge, part, join
};

template <class T>
struct Model {
    int n_features, n_outputs, n_steps;
    int width;  // the most units of any step, inputs included
    int depth;  // the most buffers of saved units at a time: of a residual block one, of members two
    const Feature* features;
    const Step<T>* steps;
    const T* residual;  // [n_features][n_outputs]; with sources as the weight of look_up
    double clip, grid;  // no rounding if `grid` is 0
    int n_sources = 0;  // if any, the features are copies of as many columns
    const Source* sources = nullptr;
};

template <class T>
constexpr int count_columns(const Model<T>& model) {
    return model.n_sources > 0 ? model.n_sources : model.n_features;
}

// Long sums err more than short ones. A model in single precision with a grid promises that its
// scores are monotone to the last bit, and sums in parts: inputs of a dense step are added one
// after the other within a part, of the first one from the bias on and of others from zero, and
// then the parts; the residual is summed on its own and added last. All other sums are formed
// one term after the other.
template <class T>
constexpr bool sums_in_parts(const Model<T>& model) {
    return sizeof(T) == 4 && model.grid > 0.0;
}

// Inputs of a part: all if there are at most 8, otherwise two parts or more of at most 32. Of at
// most 8 where there is one output, as these cost little.
constexpr int find_part(int n_in, int n_out) {
    if (n_in <= 8) return n_in;
    const int most = n_out == 1 ? 8 : 32, n_parts = (n_in + most - 1) / most;
    return n_parts < 2 ? (n_in + 1) / 2 : (n_in + n_parts - 1) / n_parts;
}

// One feature of a batch: event e is at `data` + e * `stride` bytes, float if `single`.
struct Column {
    const void* data;
    std::ptrdiff_t stride;
    bool single;
};

}  // namespace isotone
