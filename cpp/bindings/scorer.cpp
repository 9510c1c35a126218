// Binds the scorer: `Program`, a network as the engine runs it. It checks that buffers have the
// sizes that the kernels will read and write; `isotone.engine` explains mistakes to users.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <future>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "bindings/batch.hpp"
#include "bindings/dispatch.hpp"
#include "bindings/memory.hpp"
#include "bindings/owned_model.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isotone {
namespace {

constexpr std::size_t least_rows_of_a_thread = 1024;
constexpr std::size_t shared_lock_rows = 256;  // fewer keep the interpreter lock, which is cheaper

const ScorerKernels<float>& scorer(const Kernels& kernels, float) { return *kernels.scorer_float; }
const ScorerKernels<double>& scorer(const Kernels& kernels, double) {
    return *kernels.scorer_double;
}

Activation find_activation(const std::string& name) {
    const char* names[] = {"relu", "leaky_relu", "abs", "hardtanh", "tanh", "sigmoid", "softplus"};
    for (int i = 0; i < 7; ++i)
        if (name == names[i]) return static_cast<Activation>(i);
    fail("the activation \"" + name + "\" is unknown.");
}

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
        check_aligned("scaling", scaling);
        check_width(n);
        check_matrix(n, residual.shape(1));
        std::vector<Feature> features;
        for (std::size_t i = 0; i < n; ++i) {
            const double* s = scaling.data() + 4 * i;
            features.push_back({log[i], s[0], s[1], s[2], s[3]});
        }
        if (precision == "float32")
            network_.emplace<OwnedModel<float>>(std::move(features), residual, clip, grid);
        else
            network_.emplace<OwnedModel<double>>(std::move(features), residual, clip, grid);
    }

    Program(const Program&) = delete;  // its model points into its own numbers
    Program& operator=(const Program&) = delete;

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

    void pointwise(const std::string& name, double negative_slope) {
        visit(
            [&](auto& network) { network.add_pointwise(find_activation(name), negative_slope); });
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
    std::int64_t score_with(const OwnedModel<T>& network, nb::handle X, nb::handle out,
                            double fill) const {
        const Model<T>& model = network.model();
        if (!network.is_whole()) fail("the steps do not end in the outputs.");
        Batch batch;
        if (!read_batch(X, count_columns(model), batch)) return -1;
        const Buffer target(out, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS);
        if (reinterpret_cast<std::uintptr_t>(target.view().buf) % sizeof(T) != 0)
            fail("`out` must be aligned for its numbers: allocate it with numpy.empty.");
        const std::size_t m = model.n_outputs, room = target.view().len / sizeof(T);
        if (!target.is_float() || target.is_single() != std::is_same_v<T, float> ||
            room / m != batch.n || room % m != 0)
            fail("`out` must be of the network's precision and hold " + std::to_string(m) +
                 " numbers for each of " + std::to_string(batch.n) + " events.");
        return spread(model, batch, static_cast<T>(fill), static_cast<T*>(target.view().buf));
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
    std::variant<OwnedModel<double>, OwnedModel<float>> network_ = OwnedModel<double>();
};

// Probabilities of `logits` (n,) or (n, m), written to `out` of the same shape.
void find_probabilities(Numbers logits, nb::ndarray<double, nb::c_contig, nb::device::cpu> out,
                        const std::string& isa) {
    if (logits.ndim() < 1 || logits.ndim() > 2 || out.size() != logits.size())
        fail("probabilities need logits (n,) or (n, m), and as many numbers of room.");
    check_aligned("logits", logits);
    check_aligned("out", out);
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
