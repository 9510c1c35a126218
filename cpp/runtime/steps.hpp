// ---- steps --------------------------------------------------------------------------------
#pragma once

#include "inputs.hpp"
#include "sort_beside_dense.hpp"

namespace isotone::ISOTONE_ISA {

template <int... sizes>
constexpr bool has_size(Unrolled<sizes...>, int n) {
    return ((n == sizes) || ...);
}

// Whether groups of n can be sorted: by unrolled code, or by comparators that stay within the
// group.
template <class Sizes>
constexpr bool can_sort(int n, SortingNetwork network) {
    if (n == 1 || has_size(Sizes(), n)) return true;
    if (network.first == network.last) return false;
    for (auto c = network.first; c != network.last; ++c)
        if (c->low >= c->high || c->high >= n) return false;
    return true;
}

// Whether `step` can follow units of the step before it.
template <class Sizes, class T>
constexpr bool fits(const Step<T>& step, int units, int width) {
    if (step.n_in != units || step.n_out < 1 || step.n_out > width) return false;
    if (step.kind == Kind::dense) return step.n_out <= max_matrix / units;
    if (step.n_out != units) return false;
    if (step.kind != Kind::sort) return true;
    const int n = step.group_size;
    return 1 <= n && n <= max_group_size && units % n == 0 && can_sort<Sizes>(n, step.network);
}

// Whether a model is within the limits and its steps fit together, so that `score` stays within
// the arrays of the sizes that it states. Fixed models are checked by the compiler; check others
// once.
template <class Sizes, class T>
constexpr bool is_valid(const Model<T>& model) {
    if (model.width < 1 || model.width > max_width || model.depth < 0 || model.depth > max_depth ||
        model.n_steps < 0 || model.n_steps > max_steps || model.n_features < 1 ||
        model.n_features > model.width || model.n_outputs < 1)
        return false;
    int units = model.n_features, saved[max_depth] = {}, depth = 0;
    for (int i = 0; i < model.n_steps; ++i) {
        const Step<T>& step = model.steps[i];
        if (!fits<Sizes>(step, units, model.width)) return false;
        if (step.kind == Kind::save) {
            if (depth == model.depth) return false;
            saved[depth++] = units;
        } else if (step.kind == Kind::merge) {
            if (depth == 0 || saved[--depth] != units) return false;
        }
        units = step.n_out;
    }
    return units == model.n_outputs;
}

// Numbers of T that `score` needs as workspace for tiles of `tile` vectors.
template <class T>
constexpr std::size_t workspace_size(const Model<T>& model, int tile) {
    const std::size_t width = model.width, rows = model.n_features + (2 + model.depth) * width;
    return rows * tile * n_lanes<Vector<T>>;
}

// Takes the features `u` of a tile through all steps, and returns where their outcome lies: in one
// of the buffers from `h` on.
template <class Sizes, class V>
V* run_steps(const Model<Element<V>>& model, const V* u, V* h, int tile) {
    const std::size_t buffer = static_cast<std::size_t>(model.width) * tile;
    V *spare = h + buffer, *saved = spare + buffer;
    const V* from = u;
    const auto turn = [&] {
        V* full = spare;
        spare = h;
        from = h = full;
    };
    const auto* end = model.steps + model.n_steps;
    for (const auto* step = model.steps; step != end; ++step) {
        const int n = step->n_in * tile;
        if (step->kind == Kind::dense) {
            dense<false>(step->weight, step->bias, step->n_in, step->n_out, from, spare, tile);
            turn();
            continue;
        }
        if (from == u) __builtin_memcpy(h, u, n * sizeof(V));  // u is kept for the residual
        from = h;
        if (end - step > 2 && sort_dense_sort(Sizes(), step, h, spare, tile)) {
            turn();
            step += 2;
            continue;
        }
        switch (step->kind) {
            case Kind::sort:
                sort(Sizes(), h, step->n_in, tile, step->group_size, step->network);
                break;
            case Kind::pointwise:
                pointwise(*step, reinterpret_cast<Element<V>*>(h), n * n_lanes<V>);
                break;
            case Kind::save:
                __builtin_memcpy(saved, h, n * sizeof(V));
                saved += buffer;
                break;
            case Kind::merge:
                saved -= buffer;
                merge(broadcast<V>(step->keep), broadcast<V>(step->add), saved, h, n);
                break;
            case Kind::dense: break;
        }
    }
    if (from == u) __builtin_memcpy(h, u, model.n_features * tile * sizeof(V));
    return h;
}

}  // namespace isotone::ISOTONE_ISA
