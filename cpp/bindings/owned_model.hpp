// Models that own their numbers, made step by step.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bindings/dispatch.hpp"
#include "bindings/memory.hpp"

namespace isotone {

using Numbers = nanobind::ndarray<const double, nanobind::c_contig, nanobind::device::cpu>;

// A model that grows step by step, and its numbers.
template <class T>
class OwnedModel {
public:
    OwnedModel() = default;
    OwnedModel(std::vector<Feature> features, Numbers residual, double clip, double grid)
        : features_(std::move(features)) {
        const int n = static_cast<int>(features_.size());
        model_ = {n,       static_cast<int>(residual.shape(1)),
                  0,       n,
                  0,       features_.data(),
                  nullptr, keep(residual),
                  clip,    grid};
        units_ = n;
    }

    // The features are copies of columns: as many of each as `counts` says, with their ends.
    void set_sources(const std::vector<int>& counts, const std::vector<Numbers>& ends,
                     Numbers residual) {
        sources_.clear();
        model_.residual = keep(residual);
        int first = 0;
        for (std::size_t s = 0; s < counts.size(); ++s) {
            int levels = 0;
            while ((1 << levels) < counts[s]) ++levels;
            check_aligned("ends", ends[s]);
            std::vector<double>& padded =
                ends_.emplace_back(ends[s].data(), ends[s].data() + ends[s].size());
            padded.resize((1 << levels) - 1, std::numeric_limits<double>::quiet_NaN());
            sources_.push_back({first, counts[s], levels, padded.data()});
            first += counts[s];
        }
        model_.sources = sources_.data();
        model_.n_sources = static_cast<int>(sources_.size());
        model_.width = model_.n_sources;
        are_copies_ = true;
    }

    void add_look_up(Numbers weight, Numbers bias) {
        if (!are_copies_) fail("`look_up` takes copies of columns; it must come first.");
        Step<T> step = {};
        step.kind = Kind::look_up;
        step.weight = keep(weight);
        step.bias = keep(bias);
        are_copies_ = false;
        add(step, static_cast<int>(weight.shape(1)));
    }

    void add_dense(Numbers weight, Numbers bias) {
        Step<T> step = {};
        step.kind = Kind::dense;
        step.weight = keep(weight);
        step.bias = keep(bias);
        add(step, static_cast<int>(weight.shape(1)));
    }

    void add_sort(int group_size) {
        Step<T> step = {};
        step.kind = Kind::sort;
        step.group_size = group_size;
        if (group_size > max_unrolled_size) step.network = find_sorting_network(group_size);
        add(step, units_);
    }

    void add_pointwise(Activation activation, double negative_slope) {
        Step<T> step = {};
        step.kind = Kind::pointwise;
        step.activation = activation;
        step.negative_slope = negative_slope;
        add(step, units_);
    }

    void add_save() {
        Step<T> step = {};
        step.kind = Kind::save;
        enter({false, units_, 0, false}, "residual blocks");
        add(step, units_);
    }

    void add_merge(double keep, double add_factor) {
        if (open_.empty() || open_.back().has_members || open_.back().n_kept != units_)
            fail("`merge` needs a `save` before it, of as many units.");
        Step<T> step = {};
        step.kind = Kind::merge;
        step.keep = static_cast<T>(keep);
        step.add = static_cast<T>(add_factor);
        add(step, units_);
        leave();
    }

    // Keeps the units for members, which start from them.
    void add_fork() {
        Step<T> step = {};
        step.kind = Kind::fork;
        const bool are_copies = are_copies_;
        enter({true, units_, 0, are_copies}, "members");
        are_copies_ = false;
        add(step, units_);
        are_copies_ = are_copies;
    }

    // The end of a member, of the last one if `last`.
    void add_part(double weight, bool last) {
        if (open_.empty() || !open_.back().has_members ||
            (open_.back().n_sum != 0 && open_.back().n_sum != units_))
            fail("`part` needs a `fork` before it, and members of as many outputs.");
        Open& open = open_.back();
        Step<T> step = {};
        step.kind = last ? Kind::join : Kind::part;
        step.keep = static_cast<T>(open.n_sum != 0);
        step.add = static_cast<T>(weight);
        open.n_sum = units_;
        add(step, last ? units_ : open.n_kept);
        are_copies_ = !last && open.are_copies;
        if (last) leave();
    }

    bool is_whole() const { return open_.empty() && !are_copies_ && units_ == model_.n_outputs; }
    const Model<T>& model() const { return model_; }
    int units() const { return units_; }

private:
    // A residual block or members that have not ended.
    struct Open {
        bool has_members;
        int n_kept, n_sum;  // units; of the sum 0 before the end of the first member
        bool are_copies;    // what is kept
        int n_buffers() const { return has_members ? 2 : 1; }
    };

    void enter(Open open, const std::string& what) {
        if (open_.size() == max_depth)
            fail(what + " are nested more than " + std::to_string(max_depth) + " deep.");
        open_.push_back(open);
        n_buffers_ += open.n_buffers();
        model_.depth = std::max(model_.depth, n_buffers_);
    }

    void leave() {
        n_buffers_ -= open_.back().n_buffers();
        open_.pop_back();
    }

    void add(Step<T> step, int n_out) {
        if (steps_.size() == max_steps)
            fail("a network has at most " + std::to_string(max_steps) + " steps.");
        if (are_copies_) fail("copies of columns must enter a `look_up`.");
        step.n_in = units_;
        step.n_out = n_out;
        steps_.push_back(step);
        units_ = n_out;
        model_.steps = steps_.data();
        model_.n_steps = static_cast<int>(steps_.size());
        const bool keeps = step.kind == Kind::fork || step.kind == Kind::part;
        if (!keeps) model_.width = std::max(model_.width, n_out);  // what is kept was counted
    }

    const T* keep(const Numbers& numbers) {
        check_aligned("numbers of the model", numbers);
        numbers_.push_back(allocate_aligned<T>(numbers.size()));
        T* const kept = numbers_.back().get();
        std::transform(numbers.data(), numbers.data() + numbers.size(), kept,
                       [](double x) { return static_cast<T>(x); });
        return kept;
    }

    std::vector<Feature> features_;
    std::vector<AlignedArray<T>> numbers_;
    std::vector<Step<T>> steps_;
    Model<T> model_ = {};
    int units_ = 0;
    std::vector<Open> open_;
    int n_buffers_ = 0;
    std::vector<Source> sources_;
    std::deque<std::vector<double>> ends_;  // a deque leaves its elements where they are
    bool are_copies_ = false;
};

}  // namespace isotone
