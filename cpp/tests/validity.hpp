// `is_valid` accepts a model up to every limit and refuses it one step beyond: each of its
// conditions alone makes the difference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "claims.hpp"

namespace {

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

}  // namespace
