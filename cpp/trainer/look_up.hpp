// The first layer, and the residual, on copies of columns (isotone.inputs.knots), by look-up.
//
// Of the copies of a column, the field, one moves for any event: those before it are +1, those
// behind it -1. With rows w_k of weights, copy t moving and its value phi, the field adds
//
//     sum over k of w_k copy_k = c_t + w_t phi,   c_t = sum of w_k before t - sum of those behind,
//
// and the derivative with respect to w_k is the sum of d phi over events in which k moves, plus
// that of d over events in which a later copy moves, minus that over those of an earlier one.
// A batch costs (events + copies) x units for a field, not events x copies x units.
//
// Of the indicators of a column's categories all but one are zero: c is zero, and so is what other
// events add to a derivative.
#pragma once

#include "sorter/transpose.hpp"
#include "trainer/products.hpp"
#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

// A row holds the units of the first layer and then the outputs of the residual, padded with zeros
// to whole groups of `n_sums` so that all instruction sets add up the same.
template <class V>
int row_vectors(const Shape& shape) {
    const int units = shape.layers[0].n_out + shape.n_outputs();
    return (units + n_sums - 1) / n_sums * (n_sums / n_lanes<V>);
}

constexpr int looked_up_per_block = 6;  // as many as there are registers for

template <class T>
struct LookUp {
    using V = Vector<T>;
    V *moving, *still;    // w and c of every copy
    V *by_phi, *by_cell;  // sums over events of derivatives times phi, and of derivatives
    V* start;             // one row: the biases
    V* rows;              // of one tile
    int size;             // vectors in a row

    template <class Arena>
    void take(const Shape& shape, Arena& arena) {
        size = row_vectors<V>(shape);
        const std::size_t n = static_cast<std::size_t>(shape.n_features()) * size;
        for (V** table : {&moving, &still, &by_phi, &by_cell}) *table = arena.template take<V>(n);
        start = arena.template take<V>(size);
        rows = arena.template take<V>(static_cast<std::size_t>(tile_rows) * size);
    }

    static T* numbers(V* vectors) { return reinterpret_cast<T*>(vectors); }
    int width() const { return size * n_lanes<V>; }

    // From normalized weights (n_in, n_out), biases, λ and the residual (n_outputs, n_in).
    void set(const Shape& shape, const T* weight, const T* bias, const T* scale,
             const T* residual) {
        const int n_in = shape.n_features(), n_out = shape.layers[0].n_out;
        __builtin_memset(start, 0, size * sizeof(V));
        __builtin_memcpy(start, bias, n_out * sizeof(T));
        for (int k = 0; k < n_in; ++k) {
            V* const row = moving + static_cast<std::size_t>(k) * size;
            __builtin_memset(row, 0, size * sizeof(V));
            T* const to = numbers(row);
            for (int j = 0; j < n_out; ++j) to[j] = weight[k * n_out + j] * scale[k];
            for (int j = 0; j < shape.n_outputs(); ++j) to[n_out + j] = residual[j * n_in + k];
        }
        for (int f = 0; f < shape.n_fields; ++f) sum_still(shape.fields[f]);
    }

    // Before every batch.
    void clear(const Shape& shape) {
        const std::size_t bytes = static_cast<std::size_t>(shape.n_features()) * size * sizeof(V);
        __builtin_memset(by_phi, 0, bytes);
        __builtin_memset(by_cell, 0, bytes);
    }

    // Rows of a tile of n events; `cells` and `phi` are those of event i at event(i) * n_fields.
    template <class Event>
    void forward(const Shape& shape, const std::int32_t* cells, const T* phi, Event event, int n) {
        for_blocks([&](auto n_vectors, int e) {
            for (int i = 0; i < n; ++i) {
                const std::size_t first = event(i) * shape.n_fields;
                forward_block<n_vectors>(cells + first, phi + first, shape.n_fields, e,
                                         rows + i * size + e);
            }
        });
        for (int i = n; i < tile_rows; ++i)
            for (int e = 0; e < size; ++e) rows[i * size + e] = start[e];
    }

    // Adds the derivatives in `rows` to the sums.
    template <class Event>
    void backward(const Shape& shape, const std::int32_t* cells, const T* phi, Event event,
                  int n) {
        for_blocks([&](auto n_vectors, int e) {
            for (int i = 0; i < n; ++i) {
                const std::size_t first = event(i) * shape.n_fields;
                backward_block<n_vectors>(cells + first, phi + first, shape.n_fields, e,
                                          rows + i * size + e);
            }
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

    // Derivatives with respect to W' (n_out, n_in), and sums over events of the derivative of
    // every output times λ x, (n_outputs, n_in).
    void collect(const Shape& shape, const T* scale, T* weight, T* outputs) {
        const int n_in = shape.n_features(), n_out = shape.layers[0].n_out;
        for (int f = 0; f < shape.n_fields; ++f) add_others(shape.fields[f]);
        collect_units(0, n_out, n_in, scale, weight);
        if (outputs) collect_units(n_out, shape.n_outputs(), n_in, scale, outputs);
    }

private:
    void collect_units(int first, int n_units, int n_in, const T* scale, T* to) {
        transpose(numbers(by_phi) + first, width(), n_in, n_units, to, n_in);
        for (int j = 0; j < n_units; ++j)
            for (int k = 0; k < n_in; ++k) to[j * n_in + k] *= scale[k];
    }

    template <int n>
    void forward_block(const std::int32_t* cells, const T* phi, int n_fields, int e,
                       V* out) const {
        const V *const w = moving + e, *const c = still + e;
        V sum[n];
        unroll<n>([&](auto j) ISOTONE_LAMBDA { sum[j] = start[e + j]; });
        for (int f = 0; f < n_fields; ++f) {
            const std::size_t at = static_cast<std::size_t>(cells[f]) * size;
            const V x = broadcast<V>(phi[f]);
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                sum[j] = multiply_add(x, w[at + j], sum[j] + c[at + j]);
            });
        }
        unroll<n>([&](auto j) ISOTONE_LAMBDA { out[j] = sum[j]; });
    }

    template <int n>
    void backward_block(const std::int32_t* cells, const T* phi, int n_fields, int e,
                        const V* in) const {
        V *const by_phi_ = by_phi + e, *const by_cell_ = by_cell + e;
        const int stride = size;
        V d[n];
        unroll<n>([&](auto j) ISOTONE_LAMBDA { d[j] = in[j]; });
        for (int f = 0; f < n_fields; ++f) {
            const std::size_t at = static_cast<std::size_t>(cells[f]) * stride;
            const V x = broadcast<V>(phi[f]);
            unroll<n>([&](auto j) ISOTONE_LAMBDA {
                by_phi_[at + j] = multiply_add(x, d[j], by_phi_[at + j]);
                by_cell_[at + j] += d[j];
            });
        }
    }

    V* row(V* table, int k) const { return table + static_cast<std::size_t>(k) * size; }

    void sum_still(Field field) {
        if (field.is_category) {
            __builtin_memset(row(still, field.first), 0, field.count * size * sizeof(V));
            return;
        }
        for_blocks([&](auto n, int e) ISOTONE_LAMBDA {
            V before[n] = {}, behind[n] = {};
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    row(still, k)[e + j] = before[j];
                    before[j] += row(moving, k)[e + j];
                });
            for (int k = field.first + field.count - 1; k >= field.first; --k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    row(still, k)[e + j] -= behind[j];
                    behind[j] += row(moving, k)[e + j];
                });
        });
    }

    void add_others(Field field) {
        if (field.is_category) return;
        for_blocks([&](auto n, int e) ISOTONE_LAMBDA {
            V before[n] = {}, behind[n] = {};
            for (int k = field.first; k < field.first + field.count; ++k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    row(by_phi, k)[e + j] -= before[j];
                    before[j] += row(by_cell, k)[e + j];
                });
            for (int k = field.first + field.count - 1; k >= field.first; --k)
                unroll<n>([&](auto j) ISOTONE_LAMBDA {
                    row(by_phi, k)[e + j] += behind[j];
                    behind[j] += row(by_cell, k)[e + j];
                });
        });
    }

    // Calls run(n, e) for vectors e to e + n of a row, n being as many as there are registers for.
    template <class Run>
    void for_blocks(Run run) const {
        for (int e = 0; e < size; e += looked_up_per_block)
            with_constant<looked_up_per_block>(size - e, [&](auto n) { run(n, e); });
    }
};

}  // namespace isotone::ISOTONE_ISA
