// A fuzz target for the runtime: any bytes become a model and some events.
//
// Claims, for any model that `is_valid` accepts, whose arrays have just the sizes that it states:
// nothing outside them is read or written (by the sanitizers), and, unless sums overflow, the scores
// of a batch are those of its events alone, bit for bit: of the last one and up to seven before it.
// With libFuzzer the bytes are chosen by coverage; without it (-DISOTONE_REPLAY) files named on the
// command line are run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "isotone.hpp"

namespace {

using namespace isotone;
using namespace isotone::ISOTONE_ISA;
using Sizes = Unrolled<2, 3, 4, 8>;

// Numbers that one byte stands for, so that bytes are left for the structure of a model.
class Drawn {
public:
    explicit Drawn(int byte) : state_(byte), wild_(byte >= 224) {}
    bool is_wild() const { return wild_; }

    // Ordinary ones, of wild bytes any that there are.
    double number() {
        const std::uint64_t bits = next();
        if (!wild_) return static_cast<double>(bits >> 52) / 512.0 - 4.0;
        double x;
        std::memcpy(&x, &bits, sizeof x);
        const double others[] = {x, -0.0, 5e-324, 1.0, -1e300, 1e-300, infinity, 0.0};
        return others[bits >> 8 & 7];
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

    std::uint64_t state_;
    bool wild_;
};

// Bytes, and zeros after their end.
class Bytes {
public:
    Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
    int take() { return next_ < end_ ? *next_++ : 0; }
    int below(int n) { return take() % n; }
    bool rarely() { return take() == 0xFF; }
    bool empty() const { return next_ == end_; }


private:
    const std::uint8_t *next_, *end_;
};

// A model whose arrays are each of the size that it states, on the heap.
template <class T>
class RandomModel {
public:
    explicit RandomModel(Bytes& bytes) : bytes_(bytes) {
        model_.n_features = 1 + bytes.below(9);
        model_.width = model_.n_features;
        if (bytes.below(3) == 0) add_sources();
        while (!bytes_.empty() && steps_.size() < 24 && bytes_.below(8) != 0) add_step();
        finish();
    }

    const Model<T>& get() const { return model_; }

    // Whether no sum can overflow: 24 steps of 40 numbers below 4 each, or in float some of them.
    bool is_tame() const { return tame_ && (sizeof(T) == 8 || model_.n_steps <= 8); }

private:
    void add_sources() {
        model_.n_sources = 1 + bytes_.below(4);
        int first = 0;
        for (int s = 0; s < model_.n_sources; ++s) {
            const int n = 1 + bytes_.below(20);
            int levels = 0;
            while ((1 << levels) < n) ++levels;
            std::vector<double>& ends = ends_.emplace_back((1 << levels) - 1, nan_);
            Drawn drawn = draw();
            for (int k = 0; k + 1 < n; ++k) ends[k] = drawn.number();
            std::sort(ends.begin(), ends.begin() + (n - 1),
                      [](double a, double b) { return a < b || (a == a && b != b); });
            sources_.push_back({lie(first), n, levels, nullptr});
            first += n;
        }
        for (std::size_t s = 0; s < sources_.size(); ++s) sources_[s].ends = ends_[s].data();
        model_.n_features = lie(first);
        model_.width = model_.n_sources;
        model_.sources = sources_.data();
    }

    void add_step() {
        Step<T> step = {};
        step.kind = static_cast<Kind>(bytes_.below(9));
        if (model_.n_sources > 0 && steps_.empty() && bytes_.below(4) != 0) step.kind = Kind::look_up;
        step.n_in = lie(units_ > 0 ? units_ : model_.n_features);
        step.n_out = step.n_in;
        const bool is_matrix = step.kind == Kind::dense || step.kind == Kind::look_up;
        if (is_matrix) step.n_out = 1 + bytes_.below(40);
        if (step.kind == Kind::fork) kept_.push_back(step.n_in);
        if (step.kind == Kind::part && !kept_.empty()) step.n_out = lie(kept_.back());
        if (step.kind == Kind::sort) choose_groups(step);
        step.activation = static_cast<Activation>(bytes_.below(7));
        step.negative_slope = draw().number();
        const int keep = bytes_.below(8);
        step.keep = step.kind == Kind::merge || keep == 7 ? T(draw().number()) : T(keep % 2);
        step.add = T(draw().number());
        const std::size_t rows = (step.kind == Kind::look_up ? 2 : 1) * std::size_t(step.n_in);
        if (is_matrix) step.weight = make(rows * step.n_out);
        if (is_matrix) step.bias = make(step.n_out);
        units_ = step.n_out;
        model_.width = std::max(model_.width, units_);
        steps_.push_back(step);
    }

    void choose_groups(Step<T>& step) {
        const int sizes[] = {1, 2, 3, 4, 8, step.n_in, 5, bytes_.take()};
        step.group_size = sizes[bytes_.below(8)];
        auto& network = comparators_.emplace_back(std::make_unique<std::vector<Comparator>>());
        for (int n = bytes_.below(24); n > 0; --n) {
            const std::uint16_t low = std::uint16_t(bytes_.below(8));
            network->push_back({low, std::uint16_t(low + 1 + bytes_.below(8))});
        }
        network->shrink_to_fit();
        step.network = {network->data(), network->data() + network->size()};
    }

    void finish() {
        const int last = units_ > 0 ? units_ : model_.n_features;
        model_.n_outputs = lie(last);
        model_.n_steps = static_cast<int>(steps_.size());
        model_.depth = bytes_.below(34);
        model_.width = std::max(lie(model_.width), 1);
        for (int i = 0; i < model_.n_features; ++i)
            features_.push_back({bytes_.below(2) == 1, draw().number(), 1e-9 + bytes_.below(3),
                                 draw().number(), draw().number()});
        const std::size_t rows = (model_.n_sources > 0 ? 2 : 1) * std::size_t(model_.n_features);
        model_.residual = make(rows * std::max(model_.n_outputs, 0));
        model_.clip = 1.0 + bytes_.take();
        model_.grid = bytes_.below(2) == 0 ? 0.0 : 1.0 / (1 << bytes_.below(20));
        steps_.shrink_to_fit();
        features_.shrink_to_fit();
        model_.steps = steps_.data();
        model_.features = features_.data();
    }

    Drawn draw() {
        const Drawn drawn(bytes_.take());
        tame_ = tame_ && !drawn.is_wild();
        return drawn;
    }

    // Mostly the number itself, now and then another.
    int lie(int n) { return bytes_.rarely() ? bytes_.take() : n; }

    const T* make(std::size_t n) {
        auto& numbers = numbers_.emplace_back(std::make_unique<T[]>(n));
        Drawn drawn = draw();
        for (std::size_t i = 0; i < n; ++i) numbers[i] = T(drawn.number());
        return numbers.get();
    }

    static constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();
    Bytes& bytes_;
    Model<T> model_ = {};
    std::vector<Step<T>> steps_;
    std::vector<Feature> features_;
    std::vector<Source> sources_;
    std::vector<std::vector<double>> ends_;
    std::vector<std::unique_ptr<T[]>> numbers_;
    std::vector<std::unique_ptr<std::vector<Comparator>>> comparators_;
    std::vector<int> kept_;
    int units_ = 0;
    bool tame_ = true;
};

// The scores of n events from the first, in an array of just their size.
template <class T>
std::vector<T> run(const Model<T>& model, const std::vector<std::vector<double>>& events,
                   std::size_t first, std::size_t n) {
    std::vector<Column> columns;
    for (const auto& column : events) columns.push_back({column.data() + first, 8, false});
    const std::size_t size = workspace_size(model, tile_for(model)) * sizeof(T);
    std::unique_ptr<void, decltype(&std::free)> workspace(
        std::aligned_alloc(64, (size + 63) / 64 * 64), &std::free);
    std::vector<T> out(n * model.n_outputs);
    score<Sizes>(model, columns.data(), n, T(-1), out.data(), static_cast<T*>(workspace.get()));
    return out;
}

template <class T>
void check(Bytes bytes) {
    const std::size_t n = 1 + static_cast<std::size_t>(bytes.below(70));
    const RandomModel<T> random(bytes);
    const Model<T>& model = random.get();
    if (!is_valid<Sizes>(model)) return;
    std::vector<std::vector<double>> events(count_columns(model));
    for (auto& column : events) {
        Drawn drawn(bytes.take());
        for (std::size_t e = 0; e < n; ++e) column.push_back(drawn.number());
        column.shrink_to_fit();
    }
    const std::vector<T> together = run(model, events, 0, n);
    const std::size_t stride = 1 + n / 8;
    for (std::size_t e = (n - 1) % stride; e < n; e += stride) {
        const std::vector<T> alone = run(model, events, e, 1);
        for (int j = 0; j < model.n_outputs; ++j) {
            const T a = alone[j], b = together[e * model.n_outputs + j];
            if (random.is_tame() && std::memcmp(&a, &b, sizeof a) != 0) {
                std::fprintf(stderr, "event %zu, output %d: %.17g alone, %.17g of %zu\n", e, j,
                             double(a), double(b), n);
                std::abort();
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    if (bytes.below(2) == 0)
        check<double>(bytes);
    else
        check<float>(bytes);
    return 0;
}

#if defined(ISOTONE_REPLAY)
int main(int n, char** names) {
    for (int i = 1; i < n; ++i) {
        std::FILE* file = std::fopen(names[i], "rb");
        if (!file) return std::perror(names[i]), 1;
        std::vector<std::uint8_t> data(1 << 16);
        data.resize(std::fread(data.data(), 1, data.size(), file));
        std::fclose(file);
        data.shrink_to_fit();
        LLVMFuzzerTestOneInput(data.data(), data.size());
    }
    std::printf("%d inputs\n", n - 1);
    return 0;
}
#endif
