// The first layer, and the residual, on copies of columns (isotone.inputs.knots), by look-up.
//
// Of the copies of a column, the field, one moves for any event: those before it are +1, those
// behind it -1. With rows w_k of weights, copy t moving and its value phi, the field adds
//
//     sum over k of w_k copy_k = c_t + w_t phi - sum of all w_k,
//     c_t = 2 (sum of w_k before t) + w_t;
//
// the last sum is the same for all events and goes with the biases. The derivative with respect to
// w_k is the sum of d phi over events in which k moves, plus that of d over events in which a
// later copy moves, minus that over those of an earlier one. A batch costs
// (events + copies) x units for a field, not events x copies x units.
//
// Of the indicators of a column's categories all but one are zero: they add w_t phi and nothing
// else, and so does a column that is not divided.
//
// Where most events have the same t and phi, see usual.hpp, only the others look a field up.
//
// Weights are stored by copy, (n_in, n_out), as they are looked up.
#pragma once

#include "sorter/transpose.hpp"
#include "trainer/addends.hpp"
#include "trainer/normalization.hpp"
#include "trainer/usual.hpp"

namespace isotone::ISOTONE_ISA {

// A row holds the units of the first layer and then the outputs of the residual, both padded with
// zeros to whole vectors.
template <class T>
struct LookUp {
    using V = Vector<T>;
    V *moving, *still;    // λ w and c of every copy, or the residual's
    V *by_phi, *by_cell;  // sums over events of derivatives times phi, and of derivatives
    V* start;             // one row: what all events have in common
    V* rows;              // of one tile
    V* partial;           // sums over the units of copies
    V* of_unit;           // λ W' is W times this
    T* of_copy;           // and this
    T* sizes;             // what W is normalized by: of every copy or unit
    T* inner;             // for every copy or unit
    V* n_largest;         // for every unit
    Addends addends;
    UsualSums<T> usual;
    int n_in, n_out, n_outputs;
    int unit_size, size;  // vectors of the units, and of a row
    bool by_unit;         // whether W is normalized by unit, or by copy

    template <class Arena>
    void take(const Shape& shape, Arena& arena) {
        const auto vectors = [](int n) { return (n + n_lanes<V> - 1) / n_lanes<V>; };
        n_in = shape.n_features(), n_out = shape.layers[0].n_out, n_outputs = shape.n_outputs();
        unit_size = vectors(n_out), size = unit_size + vectors(n_outputs);
        by_unit = shape.layers[0].size != Size::column_sum;
        const std::size_t n = static_cast<std::size_t>(n_in) * size;
        for (V** table : {&moving, &still, &by_phi, &by_cell}) *table = arena.template take<V>(n);
        start = arena.template take<V>(size);
        rows = arena.template take<V>(static_cast<std::size_t>(tile_rows) * size);
        partial = arena.template take<V>(static_cast<std::size_t>(n_in) * (n_sums / n_lanes<V>));
        of_unit = arena.template take<V>(unit_size);
        of_copy = arena.template take<T>(n_in);
        sizes = arena.template take<T>(n_in > n_out ? n_in : n_out);
        inner = arena.template take<T>(n_in > n_out ? n_in : n_out);
        n_largest = arena.template take<V>(unit_size);
        addends.take(shape.n_fields, size, arena);
        usual.take(shape.n_fields, size, arena);
    }

    // Once: `collect` leaves zeros behind.
    void clear(const Shape& shape, const Usual<T>& given) {
        addends.find(shape, given, unit_size, n_lanes<V>);
        usual.clear(given);
        for (V* table : {moving, still, by_phi, by_cell})
            __builtin_memset(table, 0, addends.n_vectors * sizeof(V));
        __builtin_memset(rows, 0, tile_rows * size * sizeof(V));
        for (int e = 0; e < unit_size; ++e) of_unit[e] = broadcast<V>(1);
    }

    static T* numbers(V* vectors) { return reinterpret_cast<T*>(vectors); }
    static V* vectors(T* numbers) { return reinterpret_cast<V*>(numbers); }
    int width() const { return size * n_lanes<V>; }
    int first_output() const { return unit_size * n_lanes<V>; }

    // From weights (n_in, n_out), their bound, biases, λ and the residual (n_outputs, n_in). Gives
    // a sum that is not finite if a weight is not.
    T set(const T* weight, T bound, const T* bias, const T* scale, const T* residual) {
        __builtin_memset(start, 0, size * sizeof(V));
        __builtin_memcpy(start, bias, n_out * sizeof(T));
        if (by_unit) measure_units(weight, bound);
        for (int f = 0; f < addends.n_fields; ++f) {
            const Adding& field = addends.fields[f];
            set_factors(field, weight, bound, scale);
            set_moving(field, weight, residual);
            if (has_others(field)) sum_still(field);
            if (field.usual >= 0) add_usual(field, f);
        }
        T seen = 0;
        for (int i = 0; i < (by_unit ? n_out : n_in); ++i) seen += sizes[i];
        return seen;
    }

    // Rows of a tile of n events; event i is the row event(i) of the table.
    template <class Event>
    void forward(const Rows<T>& table, Event event, int n) {
        addends.for_panels([&](auto n_vectors, const Panel& panel) {
            for (int i = 0; i < n; ++i)
                forward_block<n_vectors>(table, event(i), panel, rows + i * size + panel.first);
        });
        for (int i = n; i < tile_rows; ++i)
            for (int e = 0; e < size; ++e) rows[i * size + e] = start[e];
    }

    // Adds the derivatives in `rows` to the sums.
    template <class Event>
    void backward(const Rows<T>& table, Event event, int n) {
        addends.for_panels([&](auto n_vectors, const Panel& panel) {
            for (int i = 0; i < n; ++i)
                backward_block<n_vectors>(table, event(i), panel, rows + i * size + panel.first);
        });
    }

    // Columns of rows to and from units of a tile: unit j of event i is tile[j * tile_rows + i].
    void to_tile(int first, int n_units, T* tile) const {
        const T* const from = reinterpret_cast<const T*>(rows) + first;
        transpose(from, width(), tile_rows, n_units, tile, tile_rows);
    }
    void from_tile(const T* tile, int first, int n_units) {
        transpose(tile, tile_rows, n_units, tile_rows, numbers(rows) + first, width());
    }

    // Derivatives with respect to the weights (n_in, n_out) and, unless null, to log λ (n_in,).
    // The sums begin anew.
    void collect(const T* weight, T bound, T* gradient, T* by_lipschitz) {
        for (int f = 0; f < addends.n_fields; ++f) {
            const Adding& field = addends.fields[f];
            if (field.usual >= 0) collect_usual(field, f);
            if (has_others(field)) add_others(field);
            if (by_lipschitz || !by_unit) multiply_rows(field);
            if (by_lipschitz) collect_lipschitz(field, by_lipschitz);
            if (!by_unit) carry_through_copies(field, weight, bound, gradient);
        }
        usual.clear_total();
        if (by_unit) carry_through_units(weight, bound, gradient);
    }

private:
    static V* row(V* table, const Adding& field, int k) {
        return table + field.offset + static_cast<std::size_t>(k - field.first) * field.stride;
    }

    // What a copy adds to the outputs: its last vectors.
    T* outputs(V* table, const Adding& field, int k) const {
        return numbers(row(table, field, k) + field.stride - (size - unit_size));
    }

    template <class Number>
    Number* units(Number* table, int k) const {
        return table + static_cast<std::size_t>(k) * n_out;
    }

    V load_units(const T* table, int k, int e, int lanes) const {
        return load_some<V>(units(table, k) + e * n_lanes<V>, lanes);
    }

    // Calls run(n, e, at, lanes) as `for_added`, for vectors of units, which have so many lanes.
    template <class Run>
    void for_units(const Adding& field, Run run) const {
        constexpr int lanes = n_lanes<V>;
        const int n_whole = n_out / lanes;
        for_added(field, n_whole, [&](auto n, int e, int at) ISOTONE_LAMBDA {
            run(n, e, at, std::integral_constant<int, lanes>());
        });
        if (n_whole < unit_size && field.adds[n_whole])
            run(std::integral_constant<int, 1>(), n_whole, count_added(field, n_whole),
                n_out - n_whole * lanes);
    }

    // sums[k] = sum over units of term(k, e, at, lanes), for the copies k of a field.
    template <class Term>
    void sum_units(const Adding& field, Term term, T* sums) const {
        constexpr int parts = n_sums / n_lanes<V>;
        V* const own = partial;
        __builtin_memset(own, 0, field.count * parts * sizeof(V));
        for_units(field, [&](auto n, int e, int at, auto lanes) ISOTONE_LAMBDA {
            for (int k = 0; k < field.count; ++k) {
                V terms[n];
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    terms[j] = term(field.first + k, e + j, at + j, lanes);
                });
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    own[k * parts + (e + j) % parts] += terms[j];
                });
            }
        });
        collect_sums(own, field.count, sums + field.first);
    }

    // ---- forward ------------------------------------------------------------------------------

    // λ / max(1, size / bound) by copy, or λ.
    void set_factors(const Adding& field, const T* weight, T bound, const T* scale) {
        if (!by_unit)
            sum_units(
                field,
                [&](int k, int e, int, auto lanes) ISOTONE_LAMBDA {
                    return magnitude(load_units(weight, k, e, lanes));
                },
                sizes);
        for (int k = field.first; k < field.first + field.count; ++k)
            of_copy[k] = by_unit ? scale[k] : scale[k] / divisor(sizes[k] / bound);
    }

    // 1 / max(1, size / bound) by unit.
    void measure_units(const T* weight, T bound) {
        __builtin_memset(sizes, 0, unit_size * sizeof(V));
        for (int f = 0; f < addends.n_fields; ++f) {
            const Adding& field = addends.fields[f];
            for_units(field, [&](auto n, int e, int, auto lanes) ISOTONE_LAMBDA {
                V* const largest = vectors(sizes) + e;
                for (int k = field.first; k < field.first + field.count; ++k)
                    unroll<n>([&](auto j) ISOTONE_LAMBDA {
                        const V entry = magnitude(load_units(weight, k, e + j, lanes));
                        const V L = largest[j];
                        largest[j] = (entry <= L) | (L != L) ? L : entry;  // keeps a NaN
                    });
            });
        }
        for (int j = 0; j < n_out; ++j) numbers(of_unit)[j] = 1 / divisor(sizes[j] / bound);
    }

    void set_moving(const Adding& field, const T* weight, const T* residual) {
        for_units(field, [&](auto n, int e, int at, auto lanes) ISOTONE_LAMBDA {
            for (int k = field.first; k < field.first + field.count; ++k) {
                V w[n];
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    w[j] = load_units(weight, k, e + j, lanes) * (of_unit[e + j] * of_copy[k]);
                });
                V* const to = row(moving, field, k) + at;
                unroll<n>([&](auto j) ISOTONE_LAMBDA { to[j] = w[j]; });
            }
        });
        for (int j = 0; j < n_outputs; ++j)
            for (int k = field.first; k < field.first + field.count; ++k)
                outputs(moving, field, k)[j] = residual[j * n_in + k];
    }

    void sum_still(const Adding& field) {
        for_added(field, size, [&](auto n, int e, int at) ISOTONE_LAMBDA {
            V before[n] = {};
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    const V w = row(moving, field, k)[at + j], with = before[j] + w;
                    row(still, field, k)[at + j] = before[j] + with;
                    before[j] = with;
                });
            unroll<n>([&](auto j) ISOTONE_LAMBDA { start[e + j] -= before[j]; });
        });
    }

    // What the usual cell adds is part of what all events have in common.
    void add_usual(const Adding& field, int f) {
        const V phi = broadcast<V>(usual.given.values[f]);
        for_added(field, size, [&](auto n, int e, int at) ISOTONE_LAMBDA {
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                V sum = phi * row(moving, field, field.usual)[at + j];
                if (has_others(field)) sum += row(still, field, field.usual)[at + j];
                usual.adds(f)[e + j] = sum;
                start[e + j] += sum;
            });
        });
    }

    template <int n>
    void forward_block(const Rows<T>& table, std::size_t event, const Panel& panel,
                       V* out) const {
        const std::int32_t* const cells = table.cells + event * table.n_columns;
        const T* const phi = table.x + event * table.n_columns;
        const V *const w = moving, *const c = still;
        V sum[n];
        unroll<n>([&](auto j) ISOTONE_LAMBDA { sum[j] = start[panel.first + j]; });
        const auto add = [&](const Addend& addend, int cell, T value) ISOTONE_LAMBDA {
            const std::ptrdiff_t at = addend.at(cell);
            const V x = broadcast<V>(value);
            if (addend.has_others)
                unroll<n>([&](auto j) ISOTONE_LAMBDA { sum[j] += c[at + j]; });
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                sum[j] = multiply_add(x, w[at + j], sum[j]);
            });
        };
        panel.for_all([&](const Addend& addend) ISOTONE_LAMBDA {
            add(addend, cells[addend.column], phi[addend.column]);
        });
        usual.for_others(event, panel, [&](const Addend& addend, int cell, T value) ISOTONE_LAMBDA {
            const V* const instead = usual.adds(addend.field) + panel.first;
            unroll<n>([&](auto j) ISOTONE_LAMBDA { sum[j] -= instead[j]; });
            add(addend, cell, value);
        });
        unroll<n>([&](auto j) ISOTONE_LAMBDA { out[j] = sum[j]; });
    }

    // ---- backward -----------------------------------------------------------------------------

    template <int n>
    void backward_block(const Rows<T>& table, std::size_t event, const Panel& panel,
                        const V* in) const {
        const std::int32_t* const cells = table.cells + event * table.n_columns;
        const T* const phi = table.x + event * table.n_columns;
        V *const by_phi_ = by_phi, *const by_cell_ = by_cell;
        V d[n];
        unroll<n>([&](auto j) ISOTONE_LAMBDA { d[j] = in[j]; });
        const auto add = [&](const Addend& addend, int cell, T value) ISOTONE_LAMBDA {
            const std::ptrdiff_t at = addend.at(cell);
            const V x = broadcast<V>(value);
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                by_phi_[at + j] = multiply_add(x, d[j], by_phi_[at + j]);
            });
            if (addend.has_others)
                unroll<n>([&](auto j) ISOTONE_LAMBDA { by_cell_[at + j] += d[j]; });
        };
        panel.for_all([&](const Addend& addend) ISOTONE_LAMBDA {
            add(addend, cells[addend.column], phi[addend.column]);
        });
        if (!usual.given.cells) return;
        unroll<n>([&](auto j) ISOTONE_LAMBDA { usual.total[panel.first + j] += d[j]; });
        usual.for_others(event, panel, [&](const Addend& addend, int cell, T value) ISOTONE_LAMBDA {
            V* const other = usual.others(addend.field) + panel.first;
            unroll<n>([&](auto j) ISOTONE_LAMBDA { other[j] += d[j]; });
            add(addend, cell, value);
        });
    }

    // The sums over events that have the usual cell: all, less those that have another.
    void collect_usual(const Adding& field, int f) {
        const V phi = broadcast<V>(usual.given.values[f]);
        for_added(field, size, [&](auto n, int e, int at) ISOTONE_LAMBDA {
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                V& other = usual.others(f)[e + j];
                const V rest = usual.total[e + j] - other;
                row(by_phi, field, field.usual)[at + j] += phi * rest;
                if (has_others(field)) row(by_cell, field, field.usual)[at + j] += rest;
                other = V{};
            });
        });
    }

    // What is left of the sum over all events once those of earlier copies are subtracted twice.
    void add_others(const Adding& field) {
        for_added(field, size, [&](auto n, int, int at) ISOTONE_LAMBDA {
            V left[n] = {};
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    left[j] += row(by_cell, field, k)[at + j];
                });
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    V& own = row(by_cell, field, k)[at + j];
                    left[j] -= own;
                    row(by_phi, field, k)[at + j] += left[j];
                    left[j] -= own;
                    own = V{};
                });
        });
    }

    // inner = sum over units of λ W' times the derivative with respect to it, for every copy.
    void multiply_rows(const Adding& field) {
        sum_units(
            field,
            [&](int k, int, int at, int) ISOTONE_LAMBDA {
                return row(moving, field, k)[at] * row(by_phi, field, k)[at];
            },
            inner);
    }

    // All of a row is proportional to λ, so that the derivative with respect to log λ is the sum
    // of what is looked up times the derivative with respect to it.
    void collect_lipschitz(const Adding& field, T* by_lipschitz) {
        for (int k = field.first; k < field.first + field.count; ++k) {
            by_lipschitz[k] = inner[k];
            for (int j = 0; j < n_outputs; ++j)
                by_lipschitz[k] += outputs(moving, field, k)[j] * outputs(by_phi, field, k)[j];
        }
    }

    // As carry_through_columns, where W' is W divided by the size of its copy.
    void carry_through_copies(const Adding& field, const T* weight, T bound, T* gradient) {
        for (int k = field.first; k < field.first + field.count; ++k)
            inner[k] = sizes[k] / bound < 1 ? 0 : inner[k] / sizes[k];
        finish(field, weight, gradient, [&](V w, int k, int) ISOTONE_LAMBDA {
            const V shrinks = broadcast<V>(inner[k]);
            return w > T(0) ? shrinks : w < T(0) ? -shrinks : V{};
        });
    }

    // As carry_through_row, where W' is W divided by the largest entry of its unit.
    void carry_through_units(const T* weight, T bound, T* gradient) {
        __builtin_memset(inner, 0, unit_size * sizeof(V));
        __builtin_memset(n_largest, 0, unit_size * sizeof(V));
        for (int f = 0; f < addends.n_fields; ++f) add_up_units(addends.fields[f], weight);
        for (int e = 0; e < unit_size; ++e) {
            const V largest = vectors(sizes)[e], sum = vectors(inner)[e];
            const V share = sum / (largest * n_largest[e]);
            vectors(inner)[e] = largest / bound < T(1) ? V{} : share;
        }
        for (int f = 0; f < addends.n_fields; ++f)
            finish(addends.fields[f], weight, gradient, [&](V w, int, int e) ISOTONE_LAMBDA {
                const V largest = vectors(sizes)[e], shrinks = vectors(inner)[e];
                return w == largest ? shrinks : w == -largest ? -shrinks : V{};
            });
    }

    // inner += sum over copies of λ W' times the derivative with respect to it, for every unit;
    // counts its largest entries.
    void add_up_units(const Adding& field, const T* weight) {
        for_units(field, [&](auto n, int e, int at, auto lanes) ISOTONE_LAMBDA {
            V *const sum = vectors(inner) + e, *const n_equal = n_largest + e;
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    const V entry = magnitude(load_units(weight, k, e + j, lanes));
                    sum[j] += row(moving, field, k)[at + j] * row(by_phi, field, k)[at + j];
                    n_equal[j] += entry == vectors(sizes)[e + j] ? broadcast<V>(1) : V{};
                });
        });
    }

    // Derivatives with respect to W: those with respect to λ W' times what W is multiplied by,
    // less what the size of W takes away.
    template <class Shrink>
    void finish(const Adding& field, const T* weight, T* gradient, Shrink shrink) {
        for_units(field, [&](auto n, int e, int at, auto lanes) ISOTONE_LAMBDA {
            for (int k = field.first; k < field.first + field.count; ++k) {
                V d[n];
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    const V w = load_units(weight, k, e + j, lanes);
                    d[j] = row(by_phi, field, k)[at + j] * (of_unit[e + j] * of_copy[k]) -
                           shrink(w, k, e + j);
                });
                T* const to = units(gradient, k) + e * n_lanes<V>;
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    store_some(to + j * n_lanes<V>, d[j], lanes);
                });
            }
        });
        __builtin_memset(row(by_phi, field, field.first), 0,
                         field.count * field.stride * sizeof(V));
    }
};

}  // namespace isotone::ISOTONE_ISA
