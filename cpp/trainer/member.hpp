// One member of a stack of small dense networks: its losses, and their derivatives.
//
// Events pass in tiles: forward, loss and backward while everything is in the cache. After a few
// tiles their contributions are added to partial sums of the weights' gradients; once per batch
// these are collected and carried through the normalization.
#pragma once

#include "sorter/transpose.hpp"
#include "trainer/losses.hpp"
#include "trainer/normalization.hpp"
#include "trainer/trainer.hpp"
#include "trainer/visits.hpp"
#include "trainer/workspace.hpp"

namespace isotone::ISOTONE_ISA {
namespace {  // of one translation unit, so that functions that are called once become part of it

template <class T>
class Member {
    using V = Vector<T>;
    static constexpr int size = tile_vectors<V>;

public:
    Member(const Shape& shape, const Constants<T>& constants, const Rows<T>& rows, Arena arena)
        : shape_(shape), constants_(constants), rows_(rows), space_(shape, arena) {
        space_.clear(shape, rows.usual);
    }

    // Must come first, and again whenever the parameters have changed.
    void set_parameters(const T* parameters) {
        parameters_ = parameters;
        T seen = 0;
        for (int i = 0; i < shape_.n_layers; ++i) {
            const Layer& layer = shape_.layers[i];
            const NormalizedWeight<T>& normalized = space_.layers[i].normalized;
            for (int j = 0; j < layer.n_out; ++j) seen += absolute(parameters[layer.bias + j]);
            if (i == 0 && shape_.n_fields) continue;
            normalize(layer, parameters + layer.weight, constants_.bounds[i], normalized);
            const int n_sizes = layer.size == Size::column_sum ? layer.n_in : layer.n_out;
            for (int k = 0; k < n_sizes; ++k) seen += normalized.ratio[k];
        }
        if (shape_.learns_lipschitz) seen += set_lipschitz(parameters + shape_.n_weights);
        if (shape_.n_fields)
            seen += space_.look_up.set(parameters, constants_.bounds[0],
                                       parameters + shape_.layers[0].bias, scale_, residual_);
        // Sorters may lose a NaN; the loss must not.
        spoiled_ = seen - seen;
    }

    double total_weight(Visits visits) const {
        if (!rows_.weight) return static_cast<double>(visits.n);
        double total = 0;
        for (std::size_t i = 0; i < visits.n; ++i) total += rows_.weight[visits.row(i)];
        return total;
    }

    // Mean loss of the visited rows, whose weights sum to `total`.
    double evaluate(Visits visits, double total) {
        double loss = spoiled_;
        std::int32_t counting[tile_rows];
        while (visits.n > 0) {
            load(take(visits, tile_rows, counting), total, 0);
            forward(0);
            loss += differentiate_loss(0);
        }
        return loss;
    }

    void predict(Visits visits, T* predictions) {
        const int n_outputs = shape_.n_outputs();
        const T* const out = reinterpret_cast<T*>(space_.layers[shape_.n_layers - 1].gradient);
        for (std::size_t i = 0; i < visits.n; i += tile_rows) {
            const Visits tile = visits.part(i, tile_rows);
            load(tile, 1, 0);
            forward(0);
            for (std::size_t row = 0; row < tile.n; ++row)
                for (int j = 0; j < n_outputs; ++j) *predictions++ = out[j * tile_rows + row];
        }
    }

    // Also gives the gradient, in the workspace.
    double differentiate(Visits visits, double total) {
        const std::size_t chunk_rows = static_cast<std::size_t>(n_tiles_) * tile_rows;
        constexpr int parts = n_sums / n_lanes<V>;
        for_summed([&](std::size_t first, std::size_t n) {
            __builtin_memset(space_.sums + first * parts, 0, n * n_sums * sizeof(T));
        });
        double loss = spoiled_;
        std::int32_t counting[max_tiles * tile_rows];
        while (visits.n > 0) {
            const Visits chunk = take(visits, chunk_rows, counting);
            prefetch(chunk);
            loss += differentiate_chunk(chunk, total);
        }
        for_summed([&](std::size_t first, std::size_t n) {
            collect_sums(space_.sums + first * parts, n, space_.gradient + first);
        });
        T* const by_lipschitz =
            shape_.learns_lipschitz ? space_.gradient + shape_.n_weights : nullptr;
        if (shape_.n_fields)
            space_.look_up.collect(parameters_, constants_.bounds[0], space_.gradient,
                                   by_lipschitz);
        else if (by_lipschitz)
            differentiate_lipschitz(by_lipschitz);
        for (int i = shape_.n_fields ? 1 : 0; i < shape_.n_layers; ++i) {
            const std::size_t weight = shape_.layers[i].weight;
            carry_through(shape_.layers[i], parameters_ + weight, constants_.bounds[i],
                          space_.layers[i].normalized, space_.scratch, space_.gradient + weight);
        }
        if (shape_.mask) mask_gradient();
        return loss;
    }

    const T* gradient() const { return space_.gradient; }

private:
    // A weight that is zero takes no part in the derivatives of others, also through the norm.
    void mask_gradient() const {
        for (const Range& range : shape_.ranges)
            for (std::size_t i = range.begin; i < range.end; ++i)
                space_.gradient[i] = shape_.mask[i] ? space_.gradient[i] : 0;
    }

    // Calls run(first, n) for all that is summed over events, but not what is looked up.
    template <class Run>
    void for_summed(Run run) const {
        for (int i = 0; i < shape_.n_layers; ++i) {
            const Layer& layer = shape_.layers[i];
            for_rows(layer, [&](int, int first, int end, std::size_t at) {
                run(layer.weight + at + first, end - first);
            });
            run(layer.bias, layer.n_out);
        }
        if (!shape_.n_fields && shape_.learns_lipschitz)
            run(shape_.n_weights, n_residual(shape_));
    }

    // Cuts rows off the front, up to `most` that count: rows of no weight cost nothing. Their
    // numbers are written to `counting` unless all count.
    Visits take(Visits& left, std::size_t most, std::int32_t* counting) const {
        std::size_t n = 0, i = 0;
        if (!rows_.weight) {
            const Visits front = left.part(0, most);
            left = left.part(front.n, left.n);
            return front;
        }
        for (; i < left.n && n < most; ++i) {
            const std::size_t row = left.row(i);
            if (rows_.weight[row] != 0) counting[n++] = static_cast<std::int32_t>(row);
        }
        left = left.part(i, left.n);
        return {counting, 0, n};
    }

    // Rows in random order come from far away, one after the other; asked for early, all at once.
    ISOTONE_INLINE void prefetch(Visits visits) const {
        constexpr int line = 64 / sizeof(T);
        const int n = rows_.n_columns;
        for (std::size_t i = 0; n > 0 && i < visits.n; ++i)
            for (int k = 0; k < n + line - 1; k += line) {
                const std::size_t at = visits.row(i) * n + (k < n ? k : n - 1);
                __builtin_prefetch(rows_.x + at);
                if (rows_.cells) __builtin_prefetch(rows_.cells + at);
            }
    }

    double differentiate_chunk(Visits visits, double total) {
        double loss = 0;
        int n_tiles = 0;
        for (std::size_t i = 0; i < visits.n; i += tile_rows, ++n_tiles) {
            load(visits.part(i, tile_rows), total, n_tiles);
            forward(n_tiles);
            loss += differentiate_loss(n_tiles);
            backward(n_tiles);
        }
        constexpr int parts = n_sums / n_lanes<V>;
        for (int i = 0; i < shape_.n_layers; ++i) {
            const Layer& layer = shape_.layers[i];
            const Tiles<V> gradient = {space_.layers[i].gradient, layer.n_out, n_tiles};
            for (const Block& block : layer.blocks)
                add_products(block, gradient, {space_.layers[i].in, layer.n_in, n_tiles},
                             space_.sums + layer.weight * parts);
            add_units(gradient, space_.sums + layer.bias * parts);
        }
        if (shape_.n_fields) {
            for (int tile = 0; tile < n_tiles; ++tile) {
                const std::size_t left = visits.n - static_cast<std::size_t>(tile) * tile_rows;
                look_back(tile, left < tile_rows ? static_cast<int>(left) : tile_rows);
            }
        } else if (shape_.learns_lipschitz) {
            const int n_features = shape_.n_features(), n_outputs = shape_.n_outputs();
            const Tiles<V> out = {space_.layers[shape_.n_layers - 1].gradient, n_outputs, n_tiles};
            add_products({0, n_outputs, 0, n_features}, out,
                         {space_.layers[0].in, n_features, n_tiles},
                         space_.sums + shape_.n_weights * parts);
        }
        return loss;
    }

    // λ = exp(θ), at most the largest, and the residual that goes with it. Gives the sum of |θ|.
    T set_lipschitz(const T* theta) {
        const int n = shape_.n_features();
        T seen = 0;
        for (int k = 0; k < n; ++k) seen += absolute(theta[k]);
        for (int k = 0; k < n; k += n_lanes<V>) {
            const V largest = load_some<V>(constants_.feature_scale + k, n - k);
            const V own = load_some<V>(theta + k, n - k);
            store_some(space_.scale + k, exponential(own < largest ? own : largest), n - k);
        }
        for (int j = 0; j < shape_.n_outputs(); ++j)
            for (int k = 0; k < n; ++k)
                space_.residual[j * n + k] = constants_.residual[j * n + k] * space_.scale[k];
        scale_ = space_.scale;
        residual_ = space_.residual;
        return seen;
    }

    // With u = λ x the score is g(u) + r u, so that the derivative with respect to θ = log λ is
    // the sum of W' dW' over the units of the first layer, and of r du over the outputs. The
    // latter du, sums over events of (derivative of the output) u, are given in `gradient`.
    void differentiate_lipschitz(T* gradient) const {
        const int n = shape_.n_features(), n_units = shape_.layers[0].n_out;
        const T* const weight = space_.layers[0].normalized.weight;
        const T* const dweight = space_.gradient + shape_.layers[0].weight;
        for (int k = 0; k < n; ++k) {
            T sum = 0;
            for (int j = 0; j < shape_.n_outputs(); ++j)
                sum += constants_.residual[j * n + k] * gradient[j * n + k];
            gradient[k] = sum;
        }
        for (int j = 0; j < n_units; ++j)
            for (int k = 0; k < n; ++k) gradient[k] += weight[j * n + k] * dweight[j * n + k];
    }

    V* tile_in(int i, int tile) const {
        const std::size_t stride = static_cast<std::size_t>(n_loaded(shape_, i)) * size;
        return space_.layers[i].in + tile * stride;
    }

    V* tile_gradient(int i, int tile) const {
        const std::size_t stride = static_cast<std::size_t>(shape_.layers[i].n_out) * size;
        return space_.layers[i].gradient + tile * stride;
    }

    // Rows that are missing from a tile are zeros of no weight.
    void load(Visits visits, double total, int tile) {
        const T share = total > 0 ? static_cast<T>(1 / total) : 0;
        T* const shares = reinterpret_cast<T*>(space_.share);
        for (std::size_t i = 0; shape_.n_fields && i < visits.n; ++i)
            space_.rows[tile * tile_rows + i] = visits.row(i);
        n_events_ = static_cast<int>(visits.n);
        if (!shape_.n_fields) load_columns(rows_.x, shape_.n_features(), visits, space_.x);
        if (rows_.y) load_columns(rows_.y, shape_.n_targets, visits, space_.y);
        for (std::size_t row = 0; row < tile_rows; ++row)
            shares[row] = row >= visits.n ? 0
                          : rows_.weight  ? rows_.weight[visits.row(row)] * share
                                          : share;
        V* const in = tile_in(0, tile);
        for (int k = 0; !shape_.n_fields && k < shape_.n_features(); ++k)
            for (int e = 0; e < size; ++e) in[k * size + e] = space_.x[k * size + e] * scale_[k];
    }

    static void load_columns(const T* table, int n, Visits visits, V* tile) {
        constexpr int side = tile_size<T>;
        T* const columns = reinterpret_cast<T*>(tile);
        std::size_t row = 0;
        for (; n >= side && row + side <= visits.n; row += side) {
            const Visits rows = visits.part(row, side);
            for (int k = 0; k < n - side; k += side) load_square(table, n, rows, k, columns + row);
            load_square(table, n, rows, n - side, columns + row);  // may overlap the one before
        }
        for (; row < visits.n; ++row) {
            const T* from = table + visits.row(row) * n;
            for (int k = 0; k < n; ++k) columns[k * tile_rows + row] = from[k];
        }
        for (; row < tile_rows; ++row)
            for (int k = 0; k < n; ++k) columns[k * tile_rows + row] = 0;
    }

    static void load_square(const T* table, int n, Visits visits, int column, T* columns) {
        constexpr int side = tile_size<T>;
        using Row = Vector<T, side>;
        Row square[side];
        for (int i = 0; i < side; ++i)
            __builtin_memcpy(&square[i], table + visits.row(i) * n + column, sizeof(Row));
        transpose(square);
        for (int i = 0; i < side; ++i)
            __builtin_memcpy(columns + (column + i) * tile_rows, &square[i], sizeof(Row));
    }

    // From the input of the tile to the outputs, which are left where their gradients will be.
    void forward(int tile) {
        const int last = shape_.n_layers - 1;
        for (int i = 0; i <= last; ++i) {
            const Layer& layer = shape_.layers[i];
            V* const out = i < last ? tile_in(i + 1, tile) : tile_gradient(i, tile);
            if (i == 0 && shape_.n_fields)
                look_up(tile, reinterpret_cast<T*>(out));
            else
                multiply(layer.blocks, space_.layers[i].normalized.transposed, layer.n_out,
                         parameters_ + layer.bias, tile_in(i, tile), out);
            if (i == last) return add_residual(out);
            for_groups(layer, [&](int unit, int e, std::size_t swap) {
                sort_recorded(out + unit * size + e, layer.group_size, size, layer.network,
                              space_.layers[i].swaps + swap);
            });
        }
    }

    auto row_of(int tile) const {
        const std::size_t* const rows = space_.rows + tile * tile_rows;
        return [rows](int i) { return rows[i]; };
    }

    // Units of the first layer, and the residual, of the events of a tile.
    void look_up(int tile, T* out) {
        const int n_out = shape_.layers[0].n_out, first_output = space_.look_up.first_output();
        space_.look_up.forward(rows_, row_of(tile), n_events_);
        space_.look_up.to_tile(0, n_out, out);
        space_.look_up.to_tile(first_output, shape_.n_outputs(), space_.looked_up);
    }

    // Derivatives of n events with respect to what was looked up.
    void look_back(int tile, int n) {
        const int n_out = shape_.layers[0].n_out, last = shape_.n_layers - 1;
        const auto numbers = [](const V* vectors) { return reinterpret_cast<const T*>(vectors); };
        space_.look_up.from_tile(numbers(tile_gradient(0, tile)), 0, n_out);
        space_.look_up.from_tile(numbers(tile_gradient(last, tile)),
                                 space_.look_up.first_output(), shape_.n_outputs());
        space_.look_up.backward(rows_, row_of(tile), n);
    }

    void add_residual(V* out) const {
        const int n = shape_.n_features();
        const V* const looked_up = reinterpret_cast<const V*>(space_.looked_up);
        for (int e = 0; shape_.n_fields && e < shape_.n_outputs() * size; ++e)
            out[e] += looked_up[e];
        if (shape_.n_fields) return;
        for (int j = 0; j < shape_.n_outputs(); ++j)
            for (int k = 0; k < n; ++k) {
                const V coefficient = broadcast<V>(residual_[j * n + k]);
                const V* x = space_.x + k * size;
                for (int e = 0; e < size; ++e)
                    out[j * size + e] = multiply_add(coefficient, x[e], out[j * size + e]);
            }
    }

    // Calls run(first unit, vector, first swap) for each group of each vector of a tile.
    template <class Run>
    static void for_groups(const Layer& layer, Run run) {
        const std::size_t n_comparators = layer.network.last - layer.network.first;
        std::size_t swap = 0;
        for (int unit = 0; unit < layer.n_out; unit += layer.group_size)
            for (int e = 0; e < size; ++e, swap += n_comparators) run(unit, e, swap);
    }

    // The outputs of the tile become derivatives of the mean loss.
    double differentiate_loss(int tile) {
        V* const out = tile_gradient(shape_.n_layers - 1, tile);
        T partial[tile_rows];
        for (int e = 0; e < size; ++e) {
            const V weighted = space_.share[e] * compute_loss(shape_, constants_.loss_parameter,
                                                              out + e, space_.y + e, size);
            __builtin_memcpy(partial + e * n_lanes<V>, &weighted, sizeof(V));
            for (int j = 0; j < shape_.n_outputs(); ++j) out[j * size + e] *= space_.share[e];
        }
        double sum[4] = {};
        for (int row = 0; row < tile_rows; ++row) sum[row % 4] += partial[row];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    void backward(int tile) {
        for (int i = shape_.n_layers - 1; i > 0; --i) {
            const Layer& before = shape_.layers[i - 1];
            V* const gradient = tile_gradient(i - 1, tile);
            multiply(shape_.layers[i].transposed, space_.layers[i].normalized.weight, before.n_out,
                     space_.zeros, tile_gradient(i, tile), gradient);
            for_groups(before, [&](int unit, int e, std::size_t swap) {
                sort_back(gradient + unit * size + e, before.group_size, size, before.network,
                          space_.layers[i - 1].swaps + swap);
            });
        }
    }

    const Shape shape_;
    const Constants<T> constants_;
    const Rows<T> rows_;
    Workspace<T> space_;
    const int n_tiles_ = tiles_per_chunk<T>(shape_);
    const T* parameters_ = nullptr;
    const T* scale_ = constants_.feature_scale;
    const T* residual_ = constants_.residual;
    T spoiled_ = 0;
    int n_events_ = 0;  // in the tile that was loaded last
};

}  // namespace
}  // namespace isotone::ISOTONE_ISA
