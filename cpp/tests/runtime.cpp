// What isotone.hpp promises of any model, at its edges. Each claim that fails is printed, and the
// program ends with 1.
//
// - `is_valid` accepts a model up to every limit and refuses it one step beyond: each of its
//   conditions alone makes the difference.
// - The scores of a batch are those of its events alone, bit for bit, whatever the size of the
//   batch, the layout of its columns and the width of its steps; what is not finite gets the fill.
// - They are the same whatever the thread does with denormal numbers and roundings, which it is
//   left to do.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "isotone.hpp"

namespace {

using namespace isotone;
using namespace isotone::ISOTONE_ISA;
using Sizes = Unrolled<2, 4, 8, 10, 20>;

int n_failed = 0;

void expect(bool is_true, const std::string& what) {
    if (is_true) return;
    std::printf("%s\n", what.c_str());
    ++n_failed;
}

// ---- models that are valid and such that are not ------------------------------------------

struct Draft {
    std::vector<Step<double>> steps;
    std::vector<Source> sources;
    Model<double> model = {};

    Step<double>& add(Kind kind, int n_in, int n_out, double keep = 0.0) {
        Step<double> step = {};
        step.kind = kind;
        step.n_in = n_in;
        step.n_out = n_out;
        step.keep = keep;
        steps.push_back(step);
        return steps.back();
    }

    bool is_valid() {
        model.steps = steps.data();
        model.n_steps = static_cast<int>(steps.size());
        model.sources = sources.data();
        model.n_sources = static_cast<int>(sources.size());
        return ISOTONE_ISA::is_valid<Sizes>(model);
    }
};

constexpr Comparator pairs[] = {{0, 1}, {1, 2}, {0, 1}};

// 4 features, a residual block around a sort of 6 units in threes, 2 members of 2 outputs.
Draft plain() {
    Draft d;
    d.model.n_features = 4;
    d.model.n_outputs = 2;
    d.model.width = 6;
    d.model.depth = 2;
    d.add(Kind::dense, 4, 6);
    d.add(Kind::save, 6, 6);
    Step<double>& sort = d.add(Kind::sort, 6, 6);
    sort.group_size = 3;
    sort.network = {pairs, pairs + 3};
    d.add(Kind::merge, 6, 6);
    d.add(Kind::fork, 6, 6);
    d.add(Kind::dense, 6, 2);
    d.add(Kind::part, 2, 6, 0.0);
    d.add(Kind::pointwise, 6, 6);
    d.add(Kind::dense, 6, 2);
    d.add(Kind::part, 2, 6, 1.0);
    d.add(Kind::dense, 6, 2);
    d.add(Kind::join, 2, 2, 1.0);
    return d;
}

// Columns of 3, 1 and 4 copies; two members that look them up.
Draft copied() {
    Draft d;
    d.model.n_features = 8;
    d.model.n_outputs = 1;
    d.model.width = 3;
    d.model.depth = 2;
    d.sources = {{0, 3, 2, nullptr}, {3, 1, 0, nullptr}, {4, 4, 2, nullptr}};
    d.add(Kind::fork, 8, 8);
    d.add(Kind::look_up, 8, 3);
    d.add(Kind::dense, 3, 1);
    d.add(Kind::part, 1, 8, 0.0);
    d.add(Kind::look_up, 8, 1);
    d.add(Kind::join, 1, 1, 1.0);
    return d;
}

// One step on as many features as it takes, that leaves as many outputs as it says.
Draft single(Kind kind, int n_in, int n_out, int width) {
    Draft d;
    d.model.n_features = n_in;
    d.model.n_outputs = n_out;
    d.model.width = width;
    d.add(kind, n_in, n_out);
    return d;
}

Draft sorting(int n_units, int n, std::vector<Comparator>& network) {
    Draft d = single(Kind::sort, n_units, n_units, n_units);
    d.steps[0].group_size = n;
    d.steps[0].network = {network.data(), network.data() + network.size()};
    return d;
}

Draft many_steps(int n) {
    Draft d = plain();
    while (static_cast<int>(d.steps.size()) < n) d.add(Kind::pointwise, 2, 2);
    return d;
}

// One column of n copies, of as many levels.
Draft one_source(int n, int levels) {
    Draft d = single(Kind::look_up, n, 1, 1);
    d.sources = {{0, n, levels, nullptr}};
    return d;
}

using Change = std::function<void(Draft&)>;

void check_change(Draft draft, bool expected, const char* what, const Change& change) {
    change(draft);
    expect(draft.is_valid() == expected,
           std::string(expected ? "refused: " : "accepted: ") + what);
}

void accept(
    const char* what, const Draft& draft, const Change& change = [](Draft&) {}) {
    check_change(draft, true, what, change);
}

void refuse(
    const char* what, const Draft& draft, const Change& change = [](Draft&) {}) {
    check_change(draft, false, what, change);
}

void check_limits() {
    accept("a plain model", plain());
    accept("a model of copies", copied());
    accept("the largest width", plain(), [](Draft& d) { d.model.width = max_width; });
    refuse("a larger width", plain(), [](Draft& d) { d.model.width = max_width + 1; });
    refuse("a step that is too wide", plain(), [](Draft& d) { d.model.width = 5; });
    accept("the largest depth", plain(), [](Draft& d) { d.model.depth = 2 * max_depth; });
    refuse("a larger depth", plain(), [](Draft& d) { d.model.depth = 2 * max_depth + 1; });
    refuse("a negative depth", single(Kind::dense, 4, 1, 4), [](Draft& d) { d.model.depth = -1; });
    accept("the most steps", many_steps(max_steps));
    refuse("more steps", many_steps(max_steps + 1));
    Model<double> model = {};
    model.n_features = model.n_outputs = model.width = 4;
    expect(is_valid<Sizes>(model), "refused: no steps");
    model.n_steps = -1;
    expect(!is_valid<Sizes>(model), "accepted: fewer than no steps");
    model.n_steps = 0;
    model.width = 3;
    expect(!is_valid<Sizes>(model), "accepted: features beyond the width");
    model.width = 0;
    model.n_features = model.n_outputs = 0;
    expect(!is_valid<Sizes>(model), "accepted: no features");
    model.n_features = model.n_outputs = model.width = 4;
    model.n_sources = -1;
    expect(!is_valid<Sizes>(model), "accepted: fewer than no sources");
    refuse("no outputs", plain(), [](Draft& d) { d.model.n_outputs = 0; });
    refuse("other outputs than the last step has", plain(),
           [](Draft& d) { d.model.n_outputs = 1; });
}

void check_steps() {
    for (int kind : {-1, static_cast<int>(Kind::look_up) + 1})
        refuse("a step of an unknown kind", plain(),
               [&](Draft& d) { d.steps[7].kind = static_cast<Kind>(kind); });
    for (int activation : {-1, static_cast<int>(Activation::softplus) + 1})
        refuse("an unknown activation", plain(),
               [&](Draft& d) { d.steps[7].activation = static_cast<Activation>(activation); });
    accept("the last activation", plain(),
           [](Draft& d) { d.steps[7].activation = Activation::softplus; });
    refuse("a step on other units", plain(), [](Draft& d) { d.steps[5].n_in = 5; });
    refuse("a step without units", single(Kind::dense, 4, 0, 4));
    accept("the largest matrix",
           single(Kind::dense, max_width, max_matrix / max_width, max_width));
    refuse("a larger matrix",
           single(Kind::dense, max_width, max_matrix / max_width + 1, max_width));
    refuse("a look-up that is too large", one_source(max_width, 16), [](Draft& d) {
        d.model.width = d.model.n_outputs = d.steps[0].n_out = max_matrix / max_width + 1;
    });
    for (Kind kind : {Kind::sort, Kind::pointwise, Kind::save, Kind::merge, Kind::fork})
        refuse("a step that changes how many units there are", single(kind, 4, 3, 4),
               [](Draft& d) {
                   d.model.depth = 2;
                   d.steps[0].group_size = 1;
               });
}

void check_sorts() {
    std::vector<Comparator> none, pair = {{0, 1}}, last = {{0, 2}}, beyond = {{0, 3}},
                                  equal = {{1, 1}}, turned = {{1, 0}};
    accept("groups of one", sorting(6, 1, none));
    accept("groups of an unrolled size", sorting(6, 2, none));
    refuse("groups without comparators", sorting(6, 3, none));
    refuse("comparators of groups of one", sorting(6, 1, pair));
    accept("a comparator of the last wire", sorting(6, 3, last));
    refuse("a comparator beyond its group", sorting(6, 3, beyond));
    refuse("a comparator of one wire", sorting(6, 3, equal));
    refuse("a comparator that is turned", sorting(6, 3, turned));
    refuse("groups that do not divide the units", sorting(7, 3, last));
    refuse("groups of unrolled size that do not divide the units", sorting(7, 2, none));
    refuse("groups of none", sorting(6, 0, none));
    refuse("groups of less than none", sorting(6, -2, none));
    accept("the largest group", sorting(max_group_size, max_group_size, pair));
    refuse("a larger group", sorting(max_group_size + 1, max_group_size + 1, pair));
}

void check_nesting() {
    accept("as many buffers as are saved", plain(), [](Draft& d) { d.model.depth = 2; });
    refuse("a fork without room for its sum", plain(), [](Draft& d) { d.model.depth = 1; });
    refuse("a fork without any room", copied(), [](Draft& d) { d.model.depth = 0; });
    refuse("a block without room", plain(), [](Draft& d) {
        d.model.depth = 0;
        d.steps.erase(d.steps.begin() + 6, d.steps.end());  // the block, and a dense step
        d.steps.erase(d.steps.begin() + 4);
    });
    refuse("a merge of what was not saved", plain(),
           [](Draft& d) { d.steps[1].kind = Kind::pointwise; });
    refuse("a merge with other units than were saved", single(Kind::save, 6, 6, 6), [](Draft& d) {
        d.model.depth = 1;
        d.model.n_outputs = 2;
        d.add(Kind::dense, 6, 2);
        d.add(Kind::merge, 2, 2);
    });
    refuse("a part without members", plain(), [](Draft& d) { d.steps[4].kind = Kind::pointwise; });
    refuse("a sum that is kept by half", plain(), [](Draft& d) { d.steps[6].keep = 0.5; });
    refuse("a first part that adds to nothing", plain(), [](Draft& d) { d.steps[6].keep = 1.0; });
    refuse("a part that forgets the sum", plain(), [](Draft& d) { d.steps[9].keep = 0.0; });
    refuse("an end that forgets the sum", plain(), [](Draft& d) { d.steps[11].keep = 0.0; });
    refuse("an end of one member of other outputs", plain(), [](Draft& d) {
        d.model.n_outputs = d.steps[10].n_out = d.steps[11].n_in = d.steps[11].n_out = 3;
    });
    refuse("a member that starts from other units", plain(), [](Draft& d) {
        d.steps[6].n_out = d.steps[7].n_in = d.steps[7].n_out = d.steps[8].n_in = 5;
    });
    accept("a single member", plain(), [](Draft& d) {
        d.steps.erase(d.steps.begin() + 6, d.steps.end());
        d.add(Kind::join, 2, 2, 0.0);
    });
    refuse("an end without a beginning", single(Kind::join, 4, 4, 4));
}

void check_copies() {
    refuse("a step on copies that does not look up", copied(),
           [](Draft& d) { d.steps[1].kind = Kind::dense; });
    refuse("a look-up of units", copied(), [](Draft& d) { d.steps[2].kind = Kind::look_up; });
    refuse("copies that nothing looks up", single(Kind::fork, 2, 2, 2), [](Draft& d) {
        d.model.depth = 2;
        d.sources = {{0, 1, 0, nullptr}, {1, 1, 0, nullptr}};
    });
    refuse("a model of copies without steps", single(Kind::fork, 2, 2, 2), [](Draft& d) {
        d.steps.clear();
        d.sources = {{0, 1, 0, nullptr}, {1, 1, 0, nullptr}};
    });
    refuse("more columns than the width", copied(), [](Draft& d) { d.model.width = 2; });
    refuse("copies that overlap", copied(), [](Draft& d) { d.sources[1].first = 2; });
    refuse("copies that leave some out", copied(), [](Draft& d) { d.sources[1].first = 4; });
    refuse("fewer copies than features", copied(), [](Draft& d) { d.sources.pop_back(); });
    refuse("more copies than features", copied(), [](Draft& d) {
        d.sources.push_back({8, 1, 0, nullptr});
    });
    refuse("a column without copies", copied(), [](Draft& d) {
        d.model.width = 4;
        d.sources[1] = {3, 0, 0, nullptr};
        d.sources[2].first = 3;
        d.sources.push_back({7, 1, 0, nullptr});
    });
    accept("as many copies as the levels tell apart", one_source(8, 3));
    refuse("more copies than the levels tell apart", one_source(9, 3));
    refuse("copies without levels", one_source(2, 0));
    refuse("fewer than no levels", one_source(2, -1));
    accept("the most levels", one_source(2, 29));
    refuse("more levels", one_source(2, 30));
    accept("the most copies", one_source(max_width, 16));
    refuse("more copies", one_source(max_width + 1, 17));
    refuse("more copies than an int can count", copied(), [](Draft& d) {
        d.sources = {{0, 1 << 29, 29, nullptr},
                     {1 << 29, 1 << 29, 29, nullptr},
                     {1 << 30, 1 << 30, 29, nullptr}};
    });
}

// ---- scores -------------------------------------------------------------------------------

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
