// Speed of an exported C++ header: the time from one event to its score, and scores per second. JSON.
//
//   c++ -std=c++17 -O3 -march=native -I MODEL -DHEADER='"MODEL.hpp"' -DMODEL=MODEL latency.cpp
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

#include HEADER

namespace {

using Clock = std::chrono::steady_clock;
using MODEL::Number;

constexpr std::size_t n_features = MODEL::n_features, n_outputs = MODEL::n_outputs;

// Seconds of the best and of the median of `repeats` calls.
struct Times {
    double best, median;
};

template <class Call>
Times measure(int repeats, Call call) {
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) {
        const auto start = Clock::now();
        call();
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return {seconds.front(), seconds[seconds.size() / 2]};
}

// Numbers from -2 to 2, the same in every run.
std::vector<double> draw(std::size_t size) {
    std::vector<double> numbers(size);
    unsigned long long state = 1;
    for (double& x : numbers) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        x = static_cast<double>(state >> 11) * 0x1p-51 - 2.0;
    }
    return numbers;
}

double first(Number score) { return score; }
template <class Scores>
double first(const Scores& scores) {
    return scores[0];
}

// Every event waits for the score of the one before: 0 times it is added to a feature.
double chain(const std::vector<double>& rows) {
    double last = 0.0, x[n_features];
    for (std::size_t e = 0; e < rows.size() / n_features; ++e) {
        std::copy_n(&rows[e * n_features], n_features, x);
        x[0] += 0.0 * last;
        last = first(MODEL::score(x));
    }
    return last;
}

void print(const char* name, Times times, double count, bool end = false) {
    std::printf("  \"%s\": {\"best_ns\": %.3f, \"median_ns\": %.3f}%s\n", name,
                1e9 * times.best / count, 1e9 * times.median / count, end ? "" : ",");
}

}  // namespace

int main() {
    constexpr std::size_t many = 1000000, few = 1000, n_chain = 2000;
    const std::vector<double> rows = draw(many * n_features);
    const std::vector<double> head(rows.begin(), rows.begin() + n_chain * n_features);
    std::vector<Number> out(many * n_outputs);
    const double* columns[n_features];
    for (std::size_t i = 0; i < n_features; ++i) columns[i] = &rows[i * many];
    volatile double sink = 0.0;

    std::printf("{\n");
    print("latency", measure(400, [&] { sink = sink + chain(head); }), n_chain);
    print("rows_1k", measure(2000, [&] { MODEL::score(rows.data(), few, out.data()); }), few);
    print("rows_1M", measure(20, [&] { MODEL::score(rows.data(), many, out.data()); }), many);
    print("columns_1M", measure(20, [&] { MODEL::score_columns(columns, many, out.data()); }), many, true);
    std::printf("}\n");
    return sink == sink ? 0 : 1;
}
