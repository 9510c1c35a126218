// Rows as Python gives them to the trainer: arrays, checked to have the sizes that kernels read.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/dispatch.hpp"
#include "trainer/trainer.hpp"

namespace isotone {

template <class T>
using Array = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

template <class A>
void check_size(const char* name, const A& array, std::size_t size) {
    check_aligned(name, array);
    if (array.size() != size)
        fail("`" + std::string(name) + "` has " + std::to_string(array.size()) +
             " entries; there must be " + std::to_string(size) + ".");
}

template <class A>
auto pointer(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

// As `isotone.training.fields.Usual`: cells and values, begins, and fields, cells and values of
// what differs.
template <class T>
using UsualArrays =
    std::tuple<Array<const std::int32_t>, Array<const T>, Array<const std::int64_t>,
               Array<const std::int32_t>, Array<const std::int32_t>, Array<const T>>;

// Weights have one axis, or two with a row per member.
template <class T>
struct Table {
    Array<const T> x;
    std::optional<Array<const std::int32_t>> cells;
    std::optional<UsualArrays<T>> usual;
    std::optional<Array<const T>> y, weight;

    int n_columns(const Shape& shape) const {
        if (!shape.n_fields) return shape.n_features();
        const std::int32_t* const cells = usual ? std::get<0>(*usual).data() : nullptr;
        int n = 0;
        for (int f = 0; f < shape.n_fields; ++f) n += !cells || cells[f] < 0;
        return n;
    }
    std::size_t n_rows(const Shape& shape) const {
        return usual ? std::get<2>(*usual).size() - 1 : x.size() / n_columns(shape);
    }
    bool one_weight() const { return !weight || weight->ndim() == 1; }

    void check(const Shape& shape, std::size_t n_members) const {
        if ((shape.n_fields > 0) != cells.has_value()) fail("`cells` are those of fields.");
        if (usual) check_usual(shape);
        const std::size_t n = n_rows(shape);
        check_size("x", x, n * n_columns(shape));
        if (cells) check_cells(shape, n);
        if (y) check_size("y", *y, n * shape.n_targets);
        if (weight) check_size("sample_weight", *weight, one_weight() ? n : n_members * n);
    }

    void check_cells(const Shape& shape, std::size_t n) const {
        check_size("cells", *cells, n * n_columns(shape));
        std::vector<Field> own;
        for (int f = 0; f < shape.n_fields; ++f)
            if (usual_of().cell(f) < 0) own.push_back(shape.fields[f]);
        const std::int32_t* cell = cells->data();
        for (std::size_t i = 0; i < n; ++i)
            for (const Field& field : own) check_cell(field, *cell++);
    }

    static void check_cell(const Field& field, std::int32_t cell) {
        const int place = cell - field.first;
        if (place < 0 || place >= field.count) fail("`cells` must be copies of their fields.");
    }

    void check_usual(const Shape& shape) const {
        const auto& [cells, values, begins, fields, own_cells, own_values] = *usual;
        check_size("usual cells", cells, shape.n_fields);
        check_size("usual values", values, shape.n_fields);
        check_size("other cells", own_cells, fields.size());
        check_size("other values", own_values, fields.size());
        check_size("other fields", fields, fields.size());
        check_size("begins", begins, std::max<std::size_t>(begins.size(), 1));
        for (int f = 0; f < shape.n_fields; ++f)
            if (cells.data()[f] >= 0) check_cell(shape.fields[f], cells.data()[f]);
        const std::int64_t *const first = begins.data(), *const end = first + begins.size();
        if (!std::is_sorted(first, end) || *first != 0 ||
            static_cast<std::size_t>(end[-1]) != fields.size())
            fail("rows must divide the fields in which they differ.");
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const int f = fields.data()[i];
            if (f < 0 || f >= shape.n_fields || cells.data()[f] < 0)
                fail("rows may differ in fields that have a usual cell.");
            check_cell(shape.fields[f], own_cells.data()[i]);
        }
    }

    Rows<T> of(const Shape& shape, std::size_t member) const {
        const std::size_t n = n_rows(shape), first = one_weight() ? 0 : member * n;
        return {x.data(),   pointer(cells), n_columns(shape),
                usual_of(), pointer(y),     weight ? weight->data() + first : nullptr,
                n};
    }

    Usual<T> usual_of() const {
        if (!usual) return {};
        const auto& [cells, values, begins, fields, own_cells, own_values] = *usual;
        return {cells.data(), values.data(), begins.data(),
                {fields.data(), own_cells.data(), own_values.data()}};
    }
};

inline void check_order(const Array<const std::int32_t>& order, std::size_t n_members,
                        std::size_t n_rows) {
    if (order.ndim() != 1 && (order.ndim() != 2 || order.shape(0) != n_members))
        fail("`order` must have one axis, or two with a row per member.");
    check_aligned("order", order);
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order.data()[i] < 0 || static_cast<std::size_t>(order.data()[i]) >= n_rows)
            fail("`order` holds " + std::to_string(order.data()[i]) + " but there are " +
                 std::to_string(n_rows) + " rows; give row numbers from 0 on.");
}

}  // namespace isotone
