// The scores of a batch are those of its events alone, bit for bit, whatever the size of the
// batch, the layout of its columns and the width of its steps; what is not finite gets the fill.
// They are the same whatever the thread does with denormal numbers and roundings, which it is
// left to do.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "claims.hpp"

namespace {

// Multiples of 1/8 from -4 on, which are exact in float too.
class Numbers {
public:
    double next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 58) / 8.0 - 4.0;
    }

private:
    std::uint64_t state_ = 1;
};

enum class Scales { linear, last_log, every_log };

// Any model, with the numbers that it points to.
template <class T>
class Built {
public:
    explicit Built(int n_features, double grid, Scales scales = Scales::linear) {
        for (int i = 0; i < n_features; ++i) {
            const bool log = scales == Scales::every_log || (scales == Scales::last_log && i == 3);
            features_.push_back({log, 8.0, 0.5, numbers_.next() / 8.0, 0.375});
        }
        model_.n_features = model_.width = units_ = n_features;
        model_.clip = 1024.0;
        model_.grid = grid;
    }

    // Each column runs over as many copies as `counts` says, between whole numbers.
    Built(const std::vector<int>& counts, double grid) : Built(0, grid) {
        for (int n : counts) {
            int levels = 0;
            while (1 << levels < n) ++levels;
            std::vector<double> ends((1 << levels) - 1, std::numeric_limits<double>::quiet_NaN());
            const double first = -n / 2.0;
            for (int k = 0; k + 1 < n; ++k) ends[k] = first + k + 1;
            for (int k = 0; k < n; ++k) features_.push_back({false, 0, 1, first + k + 0.5, 2.0});
            ends_.push_back(std::make_unique<std::vector<double>>(std::move(ends)));
            sources_.push_back({units_, n, levels, ends_.back()->data()});
            units_ += n;
        }
        model_.n_features = units_;
        model_.width = static_cast<int>(counts.size());
    }

    Built& dense(int n_out) {
        const int rows = sources_.empty() ? units_ : 2 * units_;
        Step<T>& step =
            add(steps_.empty() && !sources_.empty() ? Kind::look_up : Kind::dense, n_out);
        step.weight = make((step.kind == Kind::look_up ? rows : step.n_in) * n_out);
        step.bias = make(n_out);
        return *this;
    }

    Built& sort(int n) {
        add(Kind::sort, units_).group_size = n;
        return *this;
    }

    Built& relu() {
        add(Kind::pointwise, units_);
        return *this;
    }

    const Model<T>& finish() {
        const int rows = sources_.empty() ? model_.n_features : 2 * model_.n_features;
        model_.n_outputs = units_;
        model_.n_steps = static_cast<int>(steps_.size());
        model_.residual = make(rows * units_);
        steps_.shrink_to_fit();  // so that a sanitizer sees who reads behind the last one
        model_.steps = steps_.data();
        model_.features = features_.data();
        model_.n_sources = static_cast<int>(sources_.size());
        model_.sources = sources_.data();
        expect(is_valid<Sizes>(model_), "refused: a model that is to be scored");
        return model_;
    }

private:
    Step<T>& add(Kind kind, int n_out) {
        Step<T> step = {};
        step.kind = kind;
        step.n_in = units_;
        step.n_out = units_ = n_out;
        model_.width = model_.width < n_out ? n_out : model_.width;
        steps_.push_back(step);
        return steps_.back();
    }

    const T* make(int n) {
        arrays_.push_back(std::make_unique<std::vector<T>>());
        for (int i = 0; i < n; ++i) arrays_.back()->push_back(T(numbers_.next() / 3.0));
        return arrays_.back()->data();
    }

    Numbers numbers_;
    Model<T> model_ = {};
    std::vector<Feature> features_;
    std::vector<Source> sources_;
    std::vector<Step<T>> steps_;
    std::vector<std::unique_ptr<std::vector<T>>> arrays_;
    std::vector<std::unique_ptr<std::vector<double>>> ends_;
    int units_ = 0;
};

template <class T>
std::vector<T> run(const Model<T>& model, const std::vector<Column>& columns, std::size_t n) {
    const std::size_t bytes = workspace_size(model, tile_for(model)) * sizeof(T);
    const std::unique_ptr<void, decltype(&std::free)> workspace(
        std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
    std::vector<T> out(n * model.n_outputs);
    score<Sizes>(model, columns.data(), n, T(-7.5), out.data(), static_cast<T*>(workspace.get()));
    return out;
}

bool same_bits(const void* a, const void* b, std::size_t bytes) {
    return std::memcmp(a, b, bytes) == 0;
}

// Numbers of n events in every layout that has paths of its own.
class Table {
public:
    Table(int n_columns, std::size_t n) : n_columns_(n_columns), n_(n) {
        Numbers numbers;
        for (std::size_t i = 0; i < n * n_columns; ++i) wide_.push_back(numbers.next());
        wide_[n / 2 * n_columns] = std::numeric_limits<double>::infinity();
        wide_.back() = std::numeric_limits<double>::quiet_NaN();
        narrow_.assign(wide_.begin(), wide_.end());
        for (int i = 0; i < n_columns; ++i)
            for (std::size_t e = 0; e < n; ++e) turned_.push_back(wide_[e * n_columns + i]);
        narrow_turned_.assign(turned_.begin(), turned_.end());
    }

    bool is_bad(std::size_t e) const { return e == n_ / 2 || e == n_ - 1; }

    std::vector<std::vector<Column>> layouts() const {
        const auto rows = make(wide_, 1, n_columns_), single_rows = make(narrow_, 1, n_columns_);
        const auto columns = make(turned_, n_, 1), single_columns = make(narrow_turned_, n_, 1);
        std::vector<std::vector<Column>> all = {rows, single_rows, columns, single_columns};
        for (const auto& found : {rows, single_rows})
            for (int i = 0; i < n_columns_; ++i) {  // one of them is elsewhere
                all.push_back(found);
                all.back()[i] = columns[i];
                all.push_back(found);
                all.back()[i] = single_columns[i];
            }
        for (int i = 0; i < n_columns_; ++i) {  // the same stride and kind, but not side by side
            all.push_back(single_rows);
            all.back()[i] = {copy_.data() + i, narrow_stride(), true};
        }
        return all;
    }

    // A copy of the rows of float, after `layouts` may refer to it.
    void keep_copy() { copy_ = narrow_; }

private:
    std::ptrdiff_t narrow_stride() const {
        return static_cast<std::ptrdiff_t>(n_columns_ * sizeof(float));
    }

    template <class Real>
    std::vector<Column> make(const std::vector<Real>& values, std::size_t apart,
                             std::size_t step) const {
        std::vector<Column> made;
        for (int i = 0; i < n_columns_; ++i)
            made.push_back({values.data() + i * apart,
                            static_cast<std::ptrdiff_t>(step * sizeof(Real)), sizeof(Real) == 4});
        return made;
    }

    int n_columns_;
    std::size_t n_;
    std::vector<double> wide_, turned_;
    std::vector<float> narrow_, narrow_turned_, copy_;
};

template <class T>
void check_batch(const Model<T>& model, std::size_t n, const std::string& what) {
    Table table(count_columns(model), n);
    table.keep_copy();
    const auto layouts = table.layouts();
    const std::size_t m = model.n_outputs;
    std::vector<T> alone;
    for (std::size_t e = 0; e < n; ++e) {
        std::vector<Column> event = layouts[0];
        for (Column& column : event) column.data = locate(column, e);
        for (T score : run(model, event, 1)) alone.push_back(score);
        for (std::size_t j = 0; j < m; ++j)
            expect((alone[e * m + j] == T(-7.5)) == table.is_bad(e), what + ": the fill");
    }
    for (const auto& layout : layouts)
        expect(same_bits(run(model, layout, n).data(), alone.data(), alone.size() * sizeof(T)),
               what + ": a batch of " + std::to_string(n) + " events");
}

template <class T>
void check_layouts(const std::string& name) {
    constexpr std::size_t most = 2 * full_tile * n_lanes<Vector<T>>;
    for (double grid : {0.0, 0x1p-20}) {
        for (Scales scales : {Scales::linear, Scales::last_log, Scales::every_log}) {
            Built<T> built(5, grid, scales);
            const Model<T>& model = built.dense(4).sort(2).dense(1).finish();
            for (std::size_t n = 2; n < most; n += 7) check_batch(model, n, name + " features");
        }
        Built<T> built({5, 1, 40, 2, 3}, grid);
        const Model<T>& model = built.dense(4).sort(2).dense(1).finish();
        for (std::size_t n = 2; n < most; n += 7) check_batch(model, n, name + " copies");
    }
}

template <class T>
void check_shapes(const std::string& name) {
    constexpr std::size_t n = 2 * full_tile * n_lanes<Vector<T>> + 3;
    for (double grid : {0.0, 0x1p-20}) {
        for (int width : {2, 8, 10, 20})
            for (int after : {width, 2}) {
                Built<T> built(3, grid);
                built.dense(width).sort(width).dense(width).sort(after).dense(1);
                check_batch(built.finish(), n, name + " sorts of " + std::to_string(width));
            }
        Built<T> unsorted(3, grid), wide(3, grid), looked_up({3, 1}, grid), outputs(3, grid);
        Built<T> relu(3, grid), last(3, grid);
        check_batch(last.dense(8).sort(8).dense(8).finish(), n, name + " dense step at the end");
        check_batch(unsorted.dense(8).sort(8).dense(8).relu().dense(2).finish(), n,
                    name + " relu after a dense step");
        check_batch(relu.dense(8).sort(8).relu().dense(8).sort(8).dense(1).finish(), n,
                    name + " relu before a dense step");
        check_batch(wide.dense(500).sort(2).dense(3).finish(), n, name + " wide");
        check_batch(looked_up.dense(200).sort(2).dense(1).finish(), n, name + " look-up");
        check_batch(outputs.dense(33).sort(1).dense(17).finish(), n, name + " outputs");
    }
}

#if defined(__SSE2__)
// Small numbers get smaller by 2^-1040 and then larger again: they are denormal in between.
void check_state() {
    constexpr unsigned flags = 0x3f, flush = 0x8040;
    const double small = 0x1.23456789abcdep-1040, large = 0x1p+1000, zero = 0.0, residual = 1.0;
    const Feature feature = {false, 0.0, 1.0, 0.0, 1.0};
    Step<double> steps[2] = {};
    for (Step<double>& step : steps) step.n_in = step.n_out = 1;
    steps[0].weight = &small;
    steps[1].weight = &large;
    steps[0].bias = steps[1].bias = &zero;
    const Model<double> model = {1, 1, 2, 1, 0, &feature, steps, &residual, 1024.0, 0.0};
    std::vector<double> x;
    for (int i = 0; i < 40; ++i) x.push_back(1.0 + i / 3.0);
    const std::vector<Column> column = {{x.data(), 8, false}};
    for (std::size_t n : {std::size_t(1), x.size()}) {
        const std::vector<double> expected = run(model, column, n);
        for (unsigned round : {0x0000u, 0x2000u, 0x4000u, 0x6000u})
            for (unsigned denormal : {0u, flush}) {
                _mm_setcsr(0x1f80 | round | denormal);
                const std::vector<double> found = run(model, column, n);
                const unsigned left = _mm_getcsr() & ~flags;
                _mm_setcsr(0x1f80);
                expect(same_bits(found.data(), expected.data(), n * 8),
                       "another state, other bits");
                expect(left == (0x1f80 | round | denormal), "a state that is not left as it was");
            }
    }
}
#else
void check_state() {}
#endif

}  // namespace
