// Binds the trainer: checks that arrays have the sizes that the kernels will read and write, and
// spreads the members of a stack over threads. `isotone.training.fused` explains mistakes to users.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/blocks.hpp"
#include "bindings/dispatch.hpp"
#include "bindings/table.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isotone {
namespace {

// ---- the network --------------------------------------------------------------------------

Loss find_loss(const std::string& name) {
    if (name == "cross_entropy") return Loss::cross_entropy;
    if (name == "squared_error") return Loss::mse;
    if (name == "absolute_error") return Loss::l1;
    if (name == "hinge") return Loss::hinge;
    if (name == "quantile") return Loss::quantile;
    fail("`loss=\"" + name + "\"` is unknown.");
}

// The shape that all members share, and where their numbers are in memory.
class Stack {
public:
    Stack(const std::vector<int>& widths, const std::vector<int>& group_sizes,
          const std::string& chain, const std::string& loss, bool learns_lipschitz,
          const std::vector<std::pair<int, bool>>& fields,
          const std::optional<Array<const std::uint8_t>>& mask) {
        const std::size_t n_layers = widths.size() - 1;
        if (widths.size() < 2 || n_layers > max_layers || group_sizes.size() != n_layers)
            fail("between 1 and " + std::to_string(max_layers) +
                 " layers, each with a group size, are needed.");
        std::size_t offset = 0;
        for (std::size_t i = 0; i < n_layers; ++i) {
            const int n_in = widths[i], n_out = widths[i + 1], group_size = group_sizes[i];
            if (n_in < 1 || n_out < 1 || group_size < 1 || group_size > max_group_size ||
                n_out % group_size != 0)
                fail("widths must be positive, and group sizes must divide them.");
            const Size size = chain == "one" ? Size::column_sum
                              : i == 0       ? Size::row_maximum
                                             : Size::row_sum;
            const std::size_t bias = offset + static_cast<std::size_t>(n_in) * n_out;
            layers_.push_back({n_in, n_out, group_size, size, find_sorting_network(group_size),
                               offset, bias, {}, {}});
            offset = bias + n_out;
            if (offset > max_parameters) fail("the network has too many parameters.");
        }
        int first = 0;
        for (const auto& [count, is_category] : fields) {
            if (count < 1 || count > widths[0] - first) fail("fields must divide the features.");
            fields_.push_back({first, count, is_category});
            first += count;
        }
        if (!fields.empty() && first != widths[0]) fail("fields must divide the features.");
        const Loss kind = find_loss(loss);
        const bool has_labels = kind == Loss::cross_entropy;
        shape_ = {layers_.data(), static_cast<int>(n_layers),      offset,
                  kind,           has_labels ? 1 : widths.back(),  learns_lipschitz,
                  fields_.data(), static_cast<int>(fields_.size()),
                  nullptr,        {}};
        if (mask) check_size("mask", *mask, offset);
        if (mask) mask_.assign(mask->data(), mask->data() + offset);
        find_nonzero();
    }
    Stack(const Stack&) = delete;

    const Shape& shape() const { return shape_; }

private:
    void find_nonzero() {
        ranges_ = find_ranges(mask_, shape_.n_weights);
        for (std::size_t i = fields_.empty() ? 0 : 1; i < layers_.size(); ++i) {
            Layer& layer = layers_[i];
            const Matrix weights = {mask_.empty() ? nullptr : &mask_[layer.weight], layer.n_out,
                                    layer.n_in, layer.n_in, 1};
            blocks_.push_back(find_blocks(weights));
            layer.blocks = {blocks_.back().data(), static_cast<int>(blocks_.back().size())};
            blocks_.push_back(find_blocks(weights.transposed()));
            layer.transposed = {blocks_.back().data(), static_cast<int>(blocks_.back().size())};
        }
        shape_.mask = mask_.empty() ? nullptr : mask_.data();
        shape_.ranges = {ranges_.data(), ranges_.size()};
    }

    std::vector<Layer> layers_;
    std::vector<Field> fields_;
    std::vector<std::uint8_t> mask_;
    std::vector<Range> ranges_;
    std::vector<std::vector<Block>> blocks_;
    Shape shape_;
};

// ---- arguments ----------------------------------------------------------------------------

// What differs between members, one row each.
template <class T>
struct Members {
    Array<const T> bounds, feature_scale, residual, loss_parameter;

    std::size_t count() const { return loss_parameter.ndim() ? loss_parameter.shape(0) : 0; }

    void check(const Shape& shape) const {
        const std::size_t n_features = shape.n_features();
        check_size("loss_parameter", loss_parameter, count() * shape.n_outputs());
        check_size("bounds", bounds, count() * shape.n_layers);
        check_size("feature_scale", feature_scale, count() * n_features);
        check_size("residual", residual, count() * shape.n_outputs() * n_features);
    }

    Constants<T> of(const Shape& shape, std::size_t member) const {
        const std::size_t n_features = shape.n_features();
        return {bounds.data() + member * shape.n_layers,
                feature_scale.data() + member * n_features,
                residual.data() + member * shape.n_outputs() * n_features,
                loss_parameter.data() + member * shape.n_outputs()};
    }
};

// ---- threads ------------------------------------------------------------------------------

struct Free {
    void operator()(void* block) const {
        ::operator delete(block, std::align_val_t{workspace_alignment});
    }
};
using Block = std::unique_ptr<void, Free>;

// Calls run(member, workspace) for all members; a member is the work of one thread from start to
// end, so that nothing depends on their number.
template <class Run>
void for_members(std::size_t n_members, int n_threads, std::size_t bytes, Run run) {
    const std::size_t n = std::min<std::size_t>(n_members, n_threads < 1 ? 1 : n_threads);
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < n; ++i)
        blocks.emplace_back(::operator new(bytes, std::align_val_t{workspace_alignment}));
    std::atomic<std::size_t> next = 0;
    const auto work = [&](void* workspace) {
        for (std::size_t member; (member = next++) < n_members;) run(member, workspace);
    };
    std::vector<std::thread> others;
    try {
        for (std::size_t i = 1; i < n; ++i) others.emplace_back(work, blocks[i].get());
    } catch (const std::system_error&) {
        // The system has no more threads; the ones that run do the work of all.
    }
    if (n > 0) work(blocks[0].get());
    for (std::thread& thread : others) thread.join();
}

const TrainerKernels<float>& trainer(const Kernels& all, float) { return *all.trainer_float; }
const TrainerKernels<double>& trainer(const Kernels& all, double) { return *all.trainer_double; }

// ---- entry points -------------------------------------------------------------------------

template <class T>
void train(const Stack& stack, Array<const T> bounds, Array<const T> feature_scale,
           Array<const T> residual, Array<const T> loss_parameter,
           Array<T> parameters, Array<T> first_moment, Array<T> second_moment, Array<const T> x,
           std::optional<Array<const std::int32_t>> cells, std::optional<UsualArrays<T>> usual,
           Array<const T> y,
           std::optional<Array<const T>> sample_weight,
           std::optional<Array<const std::int32_t>> order, std::size_t batch_size,
           Array<const double> schedule, double beta1, double beta2, double eps,
           double lipschitz_rate, Array<double> losses, int threads, const std::string& isa) {
    const Shape& shape = stack.shape();
    const Members<T> members = {bounds, feature_scale, residual, loss_parameter};
    members.check(shape);
    const std::size_t n_members = members.count(), n_parameters = shape.n_parameters();
    check_size("parameters", parameters, n_members * n_parameters);
    check_size("first_moment", first_moment, n_members * n_parameters);
    check_size("second_moment", second_moment, n_members * n_parameters);
    check_size("losses", losses, n_members);
    const Table<T> table = {x, cells, usual, y, sample_weight};
    table.check(shape, n_members);

    if (order) check_order(*order, n_members, table.n_rows(shape));
    const bool one_order = !order || order->ndim() == 1;
    const std::size_t n_visits = order ? order->shape(order->ndim() - 1) : table.n_rows(shape);
    if (batch_size < 1) fail("`batch_size` must be positive.");
    static_assert(sizeof(AdamStep) == 3 * sizeof(double));
    check_size("schedule", schedule, 3 * ((n_visits + batch_size - 1) / batch_size));
    const Adam adam = {beta1, beta2, eps, lipschitz_rate,
                       reinterpret_cast<const AdamStep*>(schedule.data())};

    const TrainerKernels<T>& kernels = trainer(choose_kernels(isa), T{});
    nb::gil_scoped_release release;
    const std::size_t bytes = kernels.workspace_bytes(shape);
    for_members(n_members, threads, bytes, [&](std::size_t i, void* space) {
        const std::size_t first_visit = one_order ? 0 : i * n_visits;
        losses.data()[i] = kernels.train(
            {shape, members.of(shape, i), parameters.data() + i * n_parameters,
             first_moment.data() + i * n_parameters, second_moment.data() + i * n_parameters,
             table.of(shape, i), order ? order->data() + first_visit : nullptr, n_visits,
             batch_size, adam, space});
    });
}

template <class T>
void evaluate(const Stack& stack, Array<const T> bounds, Array<const T> feature_scale,
              Array<const T> residual, Array<const T> loss_parameter,
              Array<const T> parameters, Array<const T> x,
              std::optional<Array<const std::int32_t>> cells, std::optional<UsualArrays<T>> usual,
              std::optional<Array<const T>> y, std::optional<Array<const T>> sample_weight,
              std::optional<Array<T>> gradients, std::optional<Array<T>> predictions,
              Array<double> losses, int threads, const std::string& isa) {
    const Shape& shape = stack.shape();
    const Members<T> members = {bounds, feature_scale, residual, loss_parameter};
    members.check(shape);
    const std::size_t n_members = members.count(), n_parameters = shape.n_parameters();
    const Table<T> table = {x, cells, usual, y, sample_weight};
    table.check(shape, n_members);
    const std::size_t n_predicted = table.n_rows(shape) * shape.n_outputs();
    check_size("parameters", parameters, n_members * n_parameters);
    if (gradients) check_size("gradients", *gradients, n_members * n_parameters);
    if (gradients && !y) fail("`gradients` are those of a loss; give `y`.");
    if (predictions) check_size("predictions", *predictions, n_members * n_predicted);
    check_size("losses", losses, n_members);

    const TrainerKernels<T>& kernels = trainer(choose_kernels(isa), T{});
    nb::gil_scoped_release release;
    const std::size_t bytes = kernels.workspace_bytes(shape);
    for_members(n_members, threads, bytes, [&](std::size_t i, void* space) {
        losses.data()[i] = kernels.evaluate(
            {shape, members.of(shape, i), parameters.data() + i * n_parameters, table.of(shape, i),
             gradients ? gradients->data() + i * n_parameters : nullptr,
             predictions ? predictions->data() + i * n_predicted : nullptr, space});
    });
}

// What is written to must not be converted: the result would be lost with the copy.
template <class T>
void bind(nb::module_& m) {
    m.def("train", train<T>, "stack"_a, "bounds"_a, "feature_scale"_a, "residual"_a,
          "loss_parameter"_a, "parameters"_a.noconvert(), "first_moment"_a.noconvert(),
          "second_moment"_a.noconvert(), "x"_a, "cells"_a.none(), "usual"_a.none(), "y"_a,
          "sample_weight"_a.none(), "order"_a.none(), "batch_size"_a, "schedule"_a, "beta1"_a,
          "beta2"_a, "eps"_a, "lipschitz_rate"_a, "losses"_a.noconvert(), "threads"_a = 1,
          "isa"_a = "",
          "One epoch of Adam for each member; writes the mean loss of its batches to `losses`.");
    m.def("evaluate", evaluate<T>, "stack"_a, "bounds"_a, "feature_scale"_a, "residual"_a,
          "loss_parameter"_a, "parameters"_a.noconvert(), "x"_a, "cells"_a.none(),
          "usual"_a.none(), "y"_a.none(), "sample_weight"_a.none(),
          "gradients"_a.none().noconvert(), "predictions"_a.none().noconvert(),
          "losses"_a.noconvert(), "threads"_a = 1, "isa"_a = "",
          "Write losses, and gradients or predictions if there is an array for them.");
}

}  // namespace

void bind_trainer(nb::module_& m) {
    m.attr("MAX_LAYERS") = max_layers;
    m.attr("MAX_PARAMETERS") = max_parameters;
    nb::class_<Stack>(m, "Stack", "The shape of networks that are trained together.")
        .def(nb::init<const std::vector<int>&, const std::vector<int>&, const std::string&,
                      const std::string&, bool, const std::vector<std::pair<int, bool>>&,
                      const std::optional<Array<const std::uint8_t>>&>(),
             "widths"_a, "group_sizes"_a, "chain"_a, "loss"_a, "learns_lipschitz"_a = false,
             "fields"_a = std::vector<std::pair<int, bool>>(), "mask"_a.none() = nb::none())
        .def_prop_ro("n_parameters", [](const Stack& s) { return s.shape().n_parameters(); });
    bind<float>(m);
    bind<double>(m);
}

}  // namespace isotone
