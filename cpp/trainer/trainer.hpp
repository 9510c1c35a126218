// What bindings/trainer.cpp knows of trainer.cpp: how a stack of small dense networks is
// described, and two functions per instruction set that work on one member of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sorter/sorting.hpp"

namespace isotone {

constexpr int max_layers = 32;
// A learned λ is at least e^-4.6 of where it starts, which is 0.1 or the largest if that is less.
constexpr double log_lipschitz_start = -2.3025851, log_lipschitz_range = 4.6;
constexpr std::size_t max_parameters = 10'000'000;  // so that an int counts partial sums

enum class Loss { cross_entropy, mse, l1, hinge, quantile };

// What a normalized weight is divided by: per column its absolute sum (the chain of 1-norms), per
// row its absolute sum or its largest entry (the chain of infinity norms).
enum class Size { column_sum, row_sum, row_maximum };

// Rows of a matrix, one after the other, and the columns between which they may not be zero.
struct Block {
    int row, n_rows, column, n_columns;
};

// Every row of a matrix is in one of them, and all that is not zero.
struct Blocks {
    const Block* first;
    int n;
    ISOTONE_INLINE const Block* begin() const { return first; }
    ISOTONE_INLINE const Block* end() const { return first + n; }
};

// Weights (n_out, n_in) and biases (n_out,) begin at these offsets among a member's parameters.
// Weights of a first layer that is looked up are stored by feature, (n_in, n_out).
// Units are sorted after the layer, in groups of `group_size`; 1 does not sort.
struct Layer {
    int n_in, n_out, group_size;
    Size size;
    SortingNetwork network;
    std::size_t weight, bias;
    // Of the weights, and of the weights transposed; none if they are looked up.
    Blocks blocks, transposed;
};

// Parameters from `begin` to `end`.
struct Range {
    std::size_t begin, end;
};

struct Ranges {
    const Range* first;
    std::size_t n;
    ISOTONE_INLINE const Range* begin() const { return first; }
    ISOTONE_INLINE const Range* end() const { return first + n; }
};

// What the features, which follow each other, are of one column: copies between its knots, or
// indicators of its categories.
struct Field {
    int first, count;
    bool is_category;
};

// If there are fields, every feature belongs to one, and rows are given by cell and value.
// Where λ is learned, logarithms of it, one per feature, follow the parameters of the layers.
struct Shape {
    const Layer* layers;
    int n_layers;
    std::size_t n_weights;  // parameters of the layers
    Loss loss;
    int n_targets;
    bool learns_lipschitz;
    const Field* fields;
    int n_fields;
    const std::uint8_t* mask;  // (n_weights,), 0 where a weight is zero and stays so; may be null
    Ranges ranges;             // of the layers' parameters; all others are zero

    ISOTONE_INLINE int n_features() const { return layers[0].n_in; }
    ISOTONE_INLINE int n_outputs() const { return layers[n_layers - 1].n_out; }
    ISOTONE_INLINE std::size_t n_parameters() const {
        return n_weights + (learns_lipschitz ? n_features() : 0);
    }
};

// What most rows have in a field, and what a row has instead: row i in those of its `others` from
// begins[i] to before begins[i + 1].
template <class T>
struct Usual {
    const std::int32_t* cells;  // (n_fields,), negative where rows differ too much; may be null
    const T* values;            // (n_fields,)
    const std::int64_t* begins;
    struct {
        const std::int32_t *fields, *cells;
        const T* values;
    } others;

    ISOTONE_INLINE int cell(int field) const { return cells ? cells[field] : -1; }
};

// A table of n rows, C-contiguous; `weight` may be null, `y` too if there is no loss to compute.
// `x` has a column for every feature, or for every field the value of the copy that moves, or of
// the only indicator that is not zero, whose number is in `cells`. Fields with a usual cell have
// no column.
template <class T>
struct Rows {
    const T* x;
    const std::int32_t* cells;
    int n_columns;  // of both
    Usual<T> usual;
    const T* y;
    const T* weight;
    std::size_t n;
};

// What differs between the members of a stack and is not trained.
template <class T>
struct Constants {
    const T* bounds;          // (n_layers,)
    const T* feature_scale;   // (n_features,); of a λ that is learned the logarithm of the largest
    const T* residual;        // (n_outputs, n_features); per unit of λ where that is learned
    const T* loss_parameter;  // (n_outputs,)
};

// Adam of one step, with its corrections for the bias of young moments.
struct AdamStep {
    double step_size;        // learning rate / (1 - beta1^t)
    double root_correction;  // sqrt(1 - beta2^t)
    double decay;            // 1 - learning rate * weight decay
};

struct Adam {
    double beta1, beta2, eps;
    double lipschitz_rate;  // of the logarithms of λ, relative to the rate of the weights
    const AdamStep* steps;  // one per batch
};

template <class T>
struct TrainTask {
    Shape shape;
    Constants<T> constants;
    T* parameters;
    T* first_moment;
    T* second_moment;
    Rows<T> rows;
    const std::int32_t* order;  // the rows to visit, or null for all of them from the first on
    std::size_t n_visits;
    std::size_t batch_size;
    Adam adam;
    void* workspace;
};

// `gradient` (n_parameters,) and `predictions` (n, n_outputs) may be null.
template <class T>
struct EvaluateTask {
    Shape shape;
    Constants<T> constants;
    const T* parameters;
    Rows<T> rows;
    T* gradient;
    T* predictions;
    void* workspace;
};

// Both return the weighted mean of the loss: while training, or with the parameters as they are.
template <class T>
struct TrainerKernels {
    std::size_t (*workspace_bytes)(const Shape&);
    double (*train)(const TrainTask<T>&);
    double (*evaluate)(const EvaluateTask<T>&);
};

constexpr std::size_t workspace_alignment = 64;

namespace ISOTONE_ISA {
extern const TrainerKernels<float> trainer_float;
extern const TrainerKernels<double> trainer_double;
}  // namespace ISOTONE_ISA

}  // namespace isotone
