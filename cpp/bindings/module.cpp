// The Python module `isotone._engine`: checks arguments, picks the instruction set, releases the
// interpreter lock and calls the kernels. What scores and trains is bound in
// scorer.cpp and trainer.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/dispatch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace isotone {
namespace {

using Input = nb::ndarray<nb::ro>;
using Output = nb::ndarray<>;

// ---- arguments ----------------------------------------------------------------------------

template <class Array>
std::string describe_shape(const Array& array) {
    std::string text;
    for (std::size_t i = 0; i < array.ndim(); ++i)
        text += (i ? ", " : "") + std::to_string(array.shape(i));
    return "(" + text + ")";
}

template <class Array>
bool is_contiguous(const Array& array) {
    std::int64_t expected = 1;
    for (std::size_t i = array.ndim(); i-- > 0; expected *= array.shape(i))
        if (array.shape(i) > 1 && array.stride(i) != expected) return false;
    return true;
}

template <class Array>
void check_layout(const char* name, const Array& array) {
    const std::string quoted = "`" + std::string(name) + "`";
    if (array.device_type() != nb::device::cpu::value)
        fail(quoted + " is not in CPU memory; the engine runs there only: copy it with .cpu().");
    if (array.ndim() != 2)
        fail(quoted + " has shape " + describe_shape(array) +
             "; it must be (n_groups, group_size): reshape it.");
    if (array.size() > 0 && !is_contiguous(array))
        fail(quoted +
             " is not C-contiguous; the engine reads rows in order: copy it first, for "
             "example with .contiguous().");
    check_aligned(name, array);
}

template <class Array>
void check_shape(const char* name, const Array& array, const Input& x) {
    check_layout(name, array);
    if (array.shape(0) != x.shape(0) || array.shape(1) != x.shape(1))
        fail("`" + std::string(name) + "` has shape " + describe_shape(array) +
             "; it must be that of the first argument, " + describe_shape(x) +
             ": allocate it so.");
}

template <class Array>
void check_dtype(const char* name, const Array& array, nb::dlpack::dtype dtype,
                 const char* wanted) {
    if (array.dtype() != dtype)
        throw nb::type_error(("`" + std::string(name) + "` has another dtype than the " + wanted +
                              " that is needed; convert or allocate it so.")
                                 .c_str());
}

void check_size(std::size_t n) {
    if (n < 1 || n > max_group_size)
        fail("`group_size=" + std::to_string(n) + "` is out of range; it must be between 1 and " +
             std::to_string(max_group_size) + ": choose a smaller one, or use torch.sort.");
}

// Calls run(T{}) with the type of the values, which `out` must share.
template <class Run>
void dispatch_dtype(const char* name, const Input& x, const char* out_name, const Output& out,
                    Run run) {
    if (x.dtype() == nb::dtype<float>()) {
        check_dtype(out_name, out, nb::dtype<float>(), "float32");
        run(float{});
    } else {
        check_dtype(name, x, nb::dtype<double>(), "float32 or float64");
        check_dtype(out_name, out, nb::dtype<double>(), "float64");
        run(double{});
    }
}

std::vector<std::pair<int, int>> comparators(std::size_t n) {
    check_size(n);
    std::vector<std::pair<int, int>> pairs;
    const SortingNetwork network = find_sorting_network(static_cast<int>(n));
    for (auto c = network.first; c != network.last; ++c) pairs.emplace_back(c->low, c->high);
    return pairs;
}

// ---- floating-point state -----------------------------------------------------------------

// Puts the calling thread into the default state; returns the one it was in.
std::uint64_t enter_default_state() {
    const std::uint64_t found = baseline::read_state();
    baseline::write_state((found & ~baseline::state_bits) | baseline::default_state);
    return found & baseline::state_bits;
}

// Only the bits that the processor knows are written: others would be a fault.
void leave_default_state(std::uint64_t found) {
    const std::uint64_t now = baseline::read_state();
    baseline::write_state((now & ~baseline::state_bits) | (found & baseline::state_bits));
}

// ---- entry points -------------------------------------------------------------------------

void run_sort(const Kernels& kernels, const SortTask<float>& task) {
    kernels.sorter->sort_float(task);
}
void run_sort(const Kernels& kernels, const SortTask<double>& task) {
    kernels.sorter->sort_double(task);
}

void sort_into(const Input& x, const Output& values, std::int16_t* index, const std::string& isa) {
    check_shape("values", values, x);
    check_size(x.shape(1));
    const Kernels& kernels = choose_kernels(isa);
    dispatch_dtype("x", x, "values", values, [&](auto zero) {
        using T = decltype(zero);
        const int n = static_cast<int>(x.shape(1));
        const SortTask<T> task = {
            static_cast<const T*>(x.data()), static_cast<T*>(values.data()), index, x.shape(0), n,
            find_sorting_network(n)};
        nb::gil_scoped_release release;
        run_sort(kernels, task);
    });
}

void group_sort(Input x, Output values, const std::string& isa) {
    check_layout("x", x);
    sort_into(x, values, nullptr, isa);
}

void group_sort_index(Input x, Output values, Output index, const std::string& isa) {
    check_layout("x", x);
    check_shape("index", index, x);
    check_dtype("index", index, nb::dtype<std::int16_t>(), "int16");
    sort_into(x, values, static_cast<std::int16_t*>(index.data()), isa);
}

// Calls move(grad, index, out) with pointers to each row in turn.
template <class Move>
void move_rows(const Input& grad, const Input& index, const Output& out, Move move) {
    check_layout("grad", grad);
    check_shape("index", index, grad);
    check_shape("out", out, grad);
    check_dtype("index", index, nb::dtype<std::int16_t>(), "int16");
    dispatch_dtype("grad", grad, "out", out, [&](auto zero) {
        using T = decltype(zero);
        const std::size_t n = grad.shape(1), size = grad.size();
        const T* from = static_cast<const T*>(grad.data());
        const std::int16_t* where = static_cast<const std::int16_t*>(index.data());
        T* to = static_cast<T*>(out.data());
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < size; i += n) move(from + i, where + i, to + i, n);
    });
}

void gather(Input grad, Input index, Output out) {
    move_rows(grad, index, out, [](auto from, auto where, auto to, std::size_t n) {
        for (std::size_t j = 0; j < n; ++j) to[j] = from[where[j]];
    });
}

void scatter(Input grad, Input index, Output out) {
    move_rows(grad, index, out, [](auto from, auto where, auto to, std::size_t n) {
        for (std::size_t j = 0; j < n; ++j) to[where[j]] = from[j];
    });
}

}  // namespace
}  // namespace isotone

NB_MODULE(_engine, m) {
    using namespace isotone;
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak
    m.doc() = "Compiled kernels of isotone; arrays have shape (n_groups, group_size).";
    m.attr("INTERFACE") = 3;  // raise it here and in isotone/compiled.py
    m.attr("MAX_GROUP_SIZE") = max_group_size;
    m.attr("MAX_WIDTH") = max_width;
    m.attr("MAX_STEPS") = max_steps;
    m.attr("MAX_DEPTH") = max_depth;
    m.attr("MAX_MATRIX") = max_matrix;
    m.attr("MAX_STACK_BYTES") = max_stack_bytes;
    m.def("enter_default_state", enter_default_state,
          "Let this thread round to nearest, with denormal numbers; returns the state it was in.");
    m.def("leave_default_state", leave_default_state, "found"_a,
          "Put this thread back into a state that `enter_default_state` returned.");
    m.def("group_sort", group_sort, "x"_a, "values"_a, "isa"_a = "",
          "Write the rows of `x`, each in ascending order, to `values`.");
    m.def("group_sort_index", group_sort_index, "x"_a, "values"_a, "index"_a, "isa"_a = "",
          "Also write the stable permutation: values[r, j] = x[r, index[r, j]].");
    m.def("gather", gather, "grad"_a, "index"_a, "out"_a,
          "Write out[r, j] = grad[r, index[r, j]]; the index is not checked.");
    m.def("scatter", scatter, "grad"_a, "index"_a, "out"_a,
          "Write out[r, index[r, j]] = grad[r, j]; the index is not checked.");
    m.def("comparators", comparators, "n"_a,
          "The comparators (low, high) of the network that sorts n values, in order.");
    m.def("instruction_sets", instruction_sets,
          "The instruction sets that this machine runs, slowest first.");
    bind_scorer(m);
    bind_trainer(m);
}
