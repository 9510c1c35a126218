// Binds the scorer: `Program`, a network as the engine runs it. It checks that buffers have the
// sizes that the kernels will read and write; `isotone.engine` explains mistakes to users.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <future>
#include <limits>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "bindings/dispatch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isotone {
namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

constexpr std::size_t least_rows_of_a_thread = 1024;
constexpr std::size_t shared_lock_rows = 256;  // fewer keep the interpreter lock, which is cheaper

const ScorerKernels<float>& scorer(const Kernels& kernels, float) { return *kernels.scorer_float; }
const ScorerKernels<double>& scorer(const Kernels& kernels, double) {
    return *kernels.scorer_double;
}

// ---- memory -------------------------------------------------------------------------------

// Numbers aligned for every vector, kept by every thread for its next call.
template <class T>
T* find_workspace(std::size_t size) {
    struct Free {
        void operator()(T* p) const {
            ::operator delete(p, std::align_val_t(workspace_alignment));
        }
    };
    thread_local std::unique_ptr<T, Free> memory;
    thread_local std::size_t capacity = 0;
    if (size > capacity) {
        memory.reset();
        capacity = 0;
        const auto alignment = std::align_val_t(workspace_alignment);
        memory.reset(static_cast<T*>(::operator new(size * sizeof(T), alignment)));
        capacity = size;
    }
    return memory.get();
}

// A view of a Python object's memory, given back at the end.
class Buffer {
public:
    Buffer(nb::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    const Py_buffer& view() const { return view_; }
    bool is_single() const { return is_format('f'); }
    bool is_float() const { return is_format('f') || is_format('d'); }

private:
    bool is_format(char code) const {
        const char* format = view_.format ? view_.format : "";
        if (*format == '@' || *format == '=' || *format == '<')
            ++format;  // little-endian machines
        return format[0] == code && format[1] == '\0';
    }

    Py_buffer view_;
};

// ---- networks -----------------------------------------------------------------------------

// Owns the numbers of a model.
template <class T>
class Numbered {
public:
    Numbered() = default;
    Numbered(std::vector<Feature> features, Numbers residual, double clip, double grid)
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
        if (group_size > max_unrolled_size) step.network = find_network(group_size);
        add(step, units_);
    }

    void add_pointwise(Activation activation, double slope) {
        Step<T> step = {};
        step.kind = Kind::pointwise;
        step.activation = activation;
        step.slope = slope;
        add(step, units_);
    }

    void add_save() {
        Step<T> step = {};
        step.kind = Kind::save;
        enter({false, units_, 0, false}, "blends");
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
    // A blend or members that have not ended.
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
        numbers_.emplace_back(numbers.data(), numbers.data() + numbers.size());
        return numbers_.back().data();
    }

    std::vector<Feature> features_;
    std::deque<std::vector<T>> numbers_;  // a deque leaves its elements where they are
    std::vector<Step<T>> steps_;
    Model<T> model_ = {};
    int units_ = 0;
    std::vector<Open> open_;
    int n_buffers_ = 0;
    std::vector<Source> sources_;
    std::deque<std::vector<double>> ends_;
    bool are_copies_ = false;
};

Activation find_activation(const std::string& name) {
    const char* names[] = {"relu", "leaky_relu", "abs", "hardtanh", "tanh", "sigmoid", "softplus"};
    for (int i = 0; i < 7; ++i)
        if (name == names[i]) return static_cast<Activation>(i);
    fail("the activation \"" + name + "\" is unknown.");
}

// ---- programs -----------------------------------------------------------------------------

// A batch: where its columns are, and the buffers that hold them.
struct Batch {
    std::optional<Buffer> rows;  // of all columns, or
    std::list<Buffer> buffers;   // one each; a list leaves its elements where they are
    std::vector<Column> columns;
    std::size_t n = 0;
};

class Program {
public:
    Program(const std::string& precision, std::vector<bool> log, Numbers scaling, Numbers residual,
            double clip, double grid, int threads, const std::string& isa)
        : kernels_(&choose_kernels(isa)),
          narrow_(isa.empty() ? &narrow_kernels() : kernels_),
          threads_(threads) {
        const std::size_t n = log.size();
        if (n == 0 || scaling.ndim() != 2 || scaling.shape(0) != n || scaling.shape(1) != 4 ||
            residual.ndim() != 2 || residual.shape(0) != n || residual.shape(1) == 0 ||
            threads < 1)
            fail("every feature needs four numbers of scaling and a row of residuals.");
        check_width(n);
        check_matrix(n, residual.shape(1));
        std::vector<Feature> features;
        for (std::size_t i = 0; i < n; ++i) {
            const double* s = scaling.data() + 4 * i;
            features.push_back({log[i], s[0], s[1], s[2], s[3]});
        }
        if (precision == "float32")
            network_.emplace<Numbered<float>>(std::move(features), residual, clip, grid);
        else
            network_.emplace<Numbered<double>>(std::move(features), residual, clip, grid);
    }

    void dense(Numbers weight, Numbers bias) {
        visit([&](auto& network) {
            const bool fits = weight.ndim() == 2 && bias.ndim() == 1 && weight.shape(1) > 0 &&
                              weight.shape(0) == static_cast<std::size_t>(network.units()) &&
                              weight.shape(1) == bias.shape(0);
            if (!fits) fail("a dense step needs a weight (n_in, n_out) and a bias (n_out,).");
            check_matrix(weight.shape(0), weight.shape(1));
            network.add_dense(weight, bias);
        });
    }

    // The features are copies of columns; `residual` replaces the one given before, (2 n,
    // n_outputs).
    void copies(std::vector<int> counts, std::vector<Numbers> ends, Numbers residual) {
        visit([&](auto& network) {
            std::size_t n = 0;
            bool fits = counts.size() == ends.size() && !counts.empty();
            for (std::size_t s = 0; fits && s < counts.size(); ++s) {
                fits = counts[s] >= 1 && counts[s] <= max_width && ends[s].ndim() == 1 &&
                       ends[s].shape(0) + 1 == static_cast<std::size_t>(counts[s]);
                n += fits ? counts[s] : 0;
            }
            fits = fits && network.model().n_steps == 0 && residual.ndim() == 2 &&
                   n == static_cast<std::size_t>(network.model().n_features) &&
                   residual.shape(0) == 2 * n &&
                   residual.shape(1) == static_cast<std::size_t>(network.model().n_outputs);
            if (!fits) fail("copies need a count and ends for every column, before any step.");
            network.set_sources(counts, ends, residual);
        });
    }

    void look_up(Numbers weight, Numbers bias) {
        visit([&](auto& network) {
            const bool fits = weight.ndim() == 2 && bias.ndim() == 1 && weight.shape(1) > 0 &&
                              weight.shape(0) == 2 * static_cast<std::size_t>(network.units()) &&
                              weight.shape(1) == bias.shape(0);
            if (!fits) fail("a look-up needs a weight (2 n_in, n_out) and a bias (n_out,).");
            check_matrix(weight.shape(0) / 2, weight.shape(1));
            network.add_look_up(weight, bias);
        });
    }

    void sort(int group_size) {
        visit([&](auto& network) {
            if (group_size < 1 || group_size > max_group_size || network.units() % group_size != 0)
                fail("`group_size=" + std::to_string(group_size) + "` must divide " +
                     std::to_string(network.units()) + " units and be at most " +
                     std::to_string(max_group_size) + ".");
            if (group_size > 1) network.add_sort(group_size);
        });
    }

    void pointwise(const std::string& name, double slope) {
        visit([&](auto& network) { network.add_pointwise(find_activation(name), slope); });
    }

    void save() {
        visit([](auto& network) { network.add_save(); });
    }

    void merge(double keep, double add) {
        visit([&](auto& network) { network.add_merge(keep, add); });
    }

    void fork() {
        visit([](auto& network) { network.add_fork(); });
    }

    void part(double weight, bool last) {
        visit([&](auto& network) { network.add_part(weight, last); });
    }

    // `X` is a buffer (n, n_features), or a sequence with a buffer (n,) per feature. Returns the
    // number of events that are not finite, or -1 if `X` cannot be read.
    std::int64_t score(nb::handle X, nb::handle out, double fill) const {
        std::int64_t n_bad = 0;
        std::visit([&](auto& network) { n_bad = score_with(network, X, out, fill); }, network_);
        return n_bad;
    }

private:
    static void check_width(std::size_t n) {
        if (n > static_cast<std::size_t>(max_width))
            fail(std::to_string(n) + " units are too many; a step has at most " +
                 std::to_string(max_width) + ".");
    }

    static void check_matrix(std::size_t n_in, std::size_t n_out) {
        check_width(n_out);
        if (n_in * n_out > static_cast<std::size_t>(max_matrix))
            fail(std::to_string(n_in * n_out) + " weights are too many; a step has at most " +
                 std::to_string(max_matrix) + ".");
    }

    template <class Visit>
    void visit(Visit visitor) {
        std::visit(visitor, network_);
    }

    static const Kernels& narrow_kernels() {
        // One event fills no wide vector, and narrow instructions are quicker.
        for (const std::string& name : instruction_sets())
            if (name == "avx2") return choose_kernels(name);
        return choose_kernels("");
    }

    template <class T>
    std::int64_t score_with(const Numbered<T>& network, nb::handle X, nb::handle out,
                            double fill) const {
        const Model<T>& model = network.model();
        if (!network.is_whole()) fail("the steps do not end in the outputs.");
        Batch batch;
        if (!read_batch(X, count_columns(model), batch)) return -1;
        const Buffer target(out, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS);
        const std::size_t m = model.n_outputs, room = target.view().len / sizeof(T);
        if (!target.is_float() || target.is_single() != std::is_same_v<T, float> ||
            room / m != batch.n || room % m != 0)
            fail("`out` must be of the network's precision and hold " + std::to_string(m) +
                 " numbers for each of " + std::to_string(batch.n) + " events.");
        return spread(model, batch, static_cast<T>(fill), static_cast<T*>(target.view().buf));
    }

    // Whether `X` is made of floats and has the shape that it must have.
    static bool read_batch(nb::handle X, int n_columns, Batch& batch) {
        batch.columns.reserve(n_columns);
        return PyObject_CheckBuffer(X.ptr()) ? read_rows(X, n_columns, batch)
                                             : read_columns(X, n_columns, batch);
    }

    static bool read_rows(nb::handle X, int n_columns, Batch& batch) {
        const Buffer& buffer = batch.rows.emplace(X, PyBUF_RECORDS_RO);
        const Py_buffer& view = buffer.view();
        if (!buffer.is_float() || view.ndim != 2 || view.shape[1] != n_columns) return false;
        batch.n = view.shape[0];
        for (int i = 0; i < n_columns; ++i)
            batch.columns.push_back({static_cast<const char*>(view.buf) + i * view.strides[1],
                                     view.strides[0], buffer.is_single()});
        return true;
    }

    static bool read_columns(nb::handle X, int n_columns, Batch& batch) {
        for (nb::handle column : nb::cast<nb::sequence>(X)) {
            const Buffer& buffer = batch.buffers.emplace_back(column, PyBUF_RECORDS_RO);
            const Py_buffer& view = buffer.view();
            if (!buffer.is_float() || view.ndim != 1) return false;
            const std::size_t n = view.shape[0];
            if (!batch.columns.empty() && n != batch.n) return false;
            batch.n = n;
            batch.columns.push_back({view.buf, view.strides[0], buffer.is_single()});
        }
        return batch.columns.size() == static_cast<std::size_t>(n_columns);
    }

    template <class T>
    std::int64_t spread(const Model<T>& model, const Batch& batch, T fill, T* out) const {
        const Kernels& kernels = batch.n * sizeof(T) <= 32 ? *narrow_ : *kernels_;
        const ScorerKernels<T>& chosen = scorer(kernels, T());
        const auto work = [&](std::size_t first, std::size_t last) {
            std::vector<Column> columns;  // stays empty for one event: memory takes time
            if (first > 0) columns = batch.columns;
            for (Column& column : columns)
                column.data = static_cast<const char*>(column.data) + first * column.stride;
            const Column* begin = first > 0 ? columns.data() : batch.columns.data();
            return chosen.score(model, begin, last - first, fill, out + first * model.n_outputs,
                                find_workspace<T>(chosen.workspace_size(model)));
        };
        if (batch.n < shared_lock_rows) return work(0, batch.n);
        nb::gil_scoped_release release;
        return share(work, batch.n);
    }

    // Sum of work(first, last) over parts of n events, one per thread. A future waits for its
    // thread when it goes, whatever was thrown meanwhile.
    template <class Work>
    std::int64_t share(Work work, std::size_t n) const {
        const std::size_t most = n / least_rows_of_a_thread + 1;
        const std::size_t part = n / std::min<std::size_t>(threads_, most) + 1;
        std::vector<std::future<std::size_t>> others;
        std::int64_t n_bad = 0;
        for (std::size_t first = part; first < n; first += part) {
            const std::size_t last = std::min(first + part, n);
            try {
                others.push_back(std::async(std::launch::async, work, first, last));
            } catch (const std::system_error&) {  // no more threads to be had
                n_bad += work(first, last);
            }
        }
        n_bad += work(0, std::min(part, n));
        for (auto& other : others) n_bad += other.get();
        return n_bad;
    }

    const Kernels* kernels_;
    const Kernels* narrow_;
    int threads_;
    std::variant<Numbered<double>, Numbered<float>> network_ = Numbered<double>();
};

// Probabilities of `logits` (n,) or (n, m), written to `out` of the same shape.
void find_probabilities(Numbers logits, nb::ndarray<double, nb::c_contig, nb::device::cpu> out,
                        const std::string& isa) {
    if (logits.ndim() < 1 || logits.ndim() > 2 || out.size() != logits.size())
        fail("probabilities need logits (n,) or (n, m), and as many numbers of room.");
    const std::size_t n = logits.shape(0), m = logits.ndim() == 1 ? 1 : logits.shape(1);
    const Kernels& kernels = choose_kernels(isa);
    nb::gil_scoped_release release;
    kernels.find_probabilities(logits.data(), n, m, out.data());
}

}  // namespace

void bind_scorer(nb::module_& m) {
    m.def("find_probabilities", find_probabilities, "logits"_a, "out"_a, "isa"_a = "",
          "Write the logistic (n,) or softmax (n, m) function of float64 logits to `out`.");
    nb::class_<Program>(m, "Program", "A network as the engine runs it; steps are added in order.")
        .def(nb::init<const std::string&, std::vector<bool>, Numbers, Numbers, double, double, int,
                      const std::string&>(),
             "precision"_a, "log"_a, "scaling"_a, "residual"_a, "clip"_a, "grid"_a,
             "threads"_a = 1, "isa"_a = "")
        .def("dense", &Program::dense, "weight"_a, "bias"_a)
        .def("copies", &Program::copies, "counts"_a, "ends"_a, "residual"_a)
        .def("look_up", &Program::look_up, "weight"_a, "bias"_a)
        .def("sort", &Program::sort, "group_size"_a)
        .def("pointwise", &Program::pointwise, "name"_a, "slope"_a)
        .def("save", &Program::save)
        .def("merge", &Program::merge, "keep"_a, "add"_a)
        .def("fork", &Program::fork)
        .def("part", &Program::part, "weight"_a, "last"_a)
        .def("score", &Program::score, "X"_a, "out"_a, "fill"_a,
             "Write the scores of `X` to `out`; events with a NaN or infinity get `fill`. Returns "
             "how many those were, or -1 if `X` is not of float32 or float64 and of that shape.");
}

}  // namespace isotone
