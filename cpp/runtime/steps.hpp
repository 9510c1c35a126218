// ---- steps --------------------------------------------------------------------------------
#pragma once

#include "look_up.hpp"
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
    if (has_size(Sizes(), n)) return true;
    if (network.first == network.last) return n == 1;
    for (auto c = network.first; c != network.last; ++c)
        if (c->low >= c->high || c->high >= n) return false;
    return true;
}

// Whether a step is one of those that there are.
template <class T>
constexpr bool is_known(const Step<T>& step) {
    return Kind::dense <= step.kind && step.kind <= Kind::look_up &&
           Activation::relu <= step.activation && step.activation <= Activation::softplus;
}

// Whether `step` can follow units of the step before it.
template <class Sizes, class T>
constexpr bool fits(const Step<T>& step, int units, int width) {
    if (!is_known(step)) return false;
    if (step.n_in != units || step.n_out < 1 || step.n_out > width) return false;
    if (step.kind == Kind::dense || step.kind == Kind::look_up)
        return step.n_out <= max_matrix / units;
    if (step.kind == Kind::part) return true;
    if (step.n_out != units) return false;
    if (step.kind != Kind::sort) return true;
    const int n = step.group_size;
    return 1 <= n && n <= max_group_size && units % n == 0 && can_sort<Sizes>(n, step.network);
}

// What is saved at some step: numbers of units, and of sums of members the negative number.
// `looked_up` is where the units begin to be computed ones, as many levels deep: before, they are
// copies of columns, which only `look_up` takes.
struct Saved {
    int units[2 * max_depth] = {}, depth = 0;
    bool copies[2 * max_depth] = {}, are_copies = false;
    int most = 0;

    constexpr bool push(int n) {
        if (depth == most) return false;
        units[depth] = n;
        copies[depth++] = are_copies;
        return true;
    }
    constexpr bool pop(int n) { return depth > 0 && units[--depth] == n; }
};

// Whether a sum of members of `units` each can be begun or continued.
template <class T>
constexpr bool continue_sum(const Step<T>& step, int units, Saved& saved) {
    return (step.keep == T(0) || step.keep == T(1)) && saved.pop(step.keep == T(0) ? 0 : -units);
}

// Whether what `step` saves or takes back fits to what was saved before.
template <class T>
constexpr bool follows(const Step<T>& step, Saved& saved) {
    const int units = step.n_in;
    if (step.kind == Kind::look_up ? !saved.are_copies
                                   : saved.are_copies && step.kind != Kind::fork)
        return false;
    switch (step.kind) {
        case Kind::save: return saved.push(units);
        case Kind::merge: return saved.pop(units);
        case Kind::fork: return saved.push(units) && saved.push(0);
        case Kind::part:
            if (!continue_sum(step, units, saved) || !saved.pop(step.n_out)) return false;
            saved.are_copies = saved.copies[saved.depth];
            saved.push(step.n_out);  // in the place of what was popped
            return saved.push(-units);
        case Kind::look_up: saved.are_copies = false; return true;
        case Kind::join:
            if (!continue_sum(step, units, saved)) return false;
            --saved.depth;  // what was kept lies below every sum
            return true;
        default: return true;
    }
}

// Whether the copies of the sources are the features, one after the other.
template <class T>
constexpr bool has_sources(const Model<T>& model) {
    int first = 0;
    for (int s = 0; s < model.n_sources; ++s) {
        const Source& source = model.sources[s];
        const int n = source.n_copies, levels = source.levels;
        const bool fits = n == 1 || (0 <= levels && levels < 30 && 1 < n && n - 1 < 1 << levels);
        if (source.first != first || !fits || n > model.n_features - first) return false;
        first += n;
    }
    return first == model.n_features;
}

// Whether a model is within the limits and its steps fit together, so that `score` stays within
// the arrays of the sizes that it states. Fixed models are checked by the compiler; check others
// once.
template <class Sizes, class T>
constexpr bool is_valid(const Model<T>& model) {
    if (model.width > max_width || model.depth < 0 || model.depth > 2 * max_depth ||
        model.n_steps < 0 || model.n_steps > max_steps || model.n_features < 1 ||
        model.n_features > max_width || count_columns(model) > model.width ||
        (model.n_sources != 0 && !has_sources(model)))
        return false;
    int units = model.n_features;
    Saved saved = {};
    saved.most = model.depth;
    saved.are_copies = model.n_sources > 0;
    for (int i = 0; i < model.n_steps; ++i) {
        const Step<T>& step = model.steps[i];
        // copies are not kept anywhere, and other units have been counted
        const bool keeps = step.kind == Kind::fork || step.kind == Kind::part;
        const int most = keeps ? max_width : model.width;
        if (!fits<Sizes>(step, units, most) || !follows(step, saved)) return false;
        units = step.n_out;
    }
    return units == model.n_outputs && !saved.are_copies;
}

// Numbers of T that `score` needs as workspace for tiles of `tile` vectors.
template <class T>
constexpr std::size_t workspace_size(const Model<T>& model, int tile) {
    const std::size_t width = model.width;
    const std::size_t rows = count_input_rows(model) + (2 + model.depth) * width;
    return rows * tile * n_lanes<Vector<T>>;
}

// Takes the features `u` of a tile through all steps, and returns where their outcome lies: in one
// of the buffers from `h` on.
template <class Sizes, class V>
V* run_steps(const Model<Element<V>>& model, const V* u, V* h, int tile) {
    const std::size_t buffer = static_cast<std::size_t>(model.width) * tile;
    V *spare = h + buffer, *saved = spare + buffer;
    const V *from = u, *kept[max_depth];
    int level = 0;
    const auto turn = [&] {
        V* full = spare;
        spare = h;
        from = h = full;
    };
    const auto* end = model.steps + model.n_steps;
    for (const auto* step = model.steps; step != end; ++step) {
        const int n = step->n_in * tile;
        if (step->kind == Kind::dense) {
            const int part =
                sums_in_parts(model) ? find_part(step->n_in, step->n_out) : step->n_in;
            dense<false>(step->weight, step->bias, step->n_in, step->n_out, part, from, spare,
                         tile);
            turn();
            continue;
        }
        if (step->kind == Kind::look_up) {
            look_up(model, *step, u, spare, tile);
            turn();
            continue;
        }
        if (step->kind == Kind::fork) {
            if (from == h) {
                __builtin_memcpy(saved, h, n * sizeof(V));
                from = saved;
            }
            kept[level++] = from;
            saved += 2 * buffer;
            continue;
        }
        if (step->kind == Kind::part || step->kind == Kind::join) {
            const bool ends = step->kind == Kind::join;
            V* sum = saved - buffer;
            add_part(step->keep == 0, broadcast<V>(step->add), from, sum, ends ? h : sum, n);
            from = ends ? h : kept[level - 1];
            level -= ends;
            saved -= ends ? 2 * buffer : 0;
            continue;
        }
        // what was kept, and u for the residual, stay as they are
        if (from != h) __builtin_memcpy(h, from, n * sizeof(V));
        from = h;
        if constexpr (can_sort_dense_sort<V>(Sizes()))
            if (end - step > 2 &&
                sort_dense_sort(Sizes(), step, h, spare, tile, sums_in_parts(model))) {
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
            default:  // merge
                saved -= buffer;
                merge(broadcast<V>(step->keep), broadcast<V>(step->add), saved, h, n);
        }
    }
    if (from != h) __builtin_memcpy(h, from, model.n_outputs * tile * sizeof(V));
    return h;
}

}  // namespace isotone::ISOTONE_ISA
