// Evaluates a file for Allen or HLT2 as those evaluators do: our own program, written from a
// description of the format, to check exports with. Compiles as C++17 and as CUDA.
//
//     evaluator FILE.json [--clip] < rows > results
//
// Rows are float32 numbers in the machine's order of bytes, one after the other. For every row
// three float32 numbers are written: the response, its sigmoid, and 1 if the sigmoid exceeds the
// cut or else 0. With --clip rescaled features are clipped to [0, 1].

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

// ---- the computation -------------------------------------------------------------------------

constexpr int kWidest = 128;

struct Network {
    int n_layers;
    const int* sizes;  // n_layers + 1 of them: features, units of every layer
    const float* weights;
    const float* biases;
    const float* signs;
    const float* low;  // null without a rescaling or clamps
    const float* high;
    bool clamps;  // HLT2: low and high are clamps
    bool clips;   // Allen: rescaled features are clipped to [0, 1]
    float lambda;
    float cut;
};

struct Result {
    float response, sigmoid, passes;
};

ON_BOTH inline float prepare(const Network& net, float x, int i) {
    if (net.low == nullptr) return x;
    if (net.clamps) return x < net.low[i] ? net.low[i] : (x > net.high[i] ? net.high[i] : x);
    const float z = (x - net.low[i]) / (net.high[i] - net.low[i]);
    if (!net.clips) return z;
    return z < 0.0f ? 0.0f : (z > 1.0f ? 1.0f : z);
}

ON_BOTH inline Result evaluate(const Network& net, const float* row) {
    float units[2][kWidest];
    float z[kWidest];
    const int n = net.sizes[0];
    for (int i = 0; i < n; ++i) units[0][i] = z[i] = prepare(net, row[i], i);
    const float* w = net.weights;
    const float* b = net.biases;
    for (int layer = 0; layer < net.n_layers; ++layer) {
        const float* in = units[layer % 2];
        float* out = units[(layer + 1) % 2];
        const int n_in = net.sizes[layer], n_out = net.sizes[layer + 1];
        for (int i = 0; i < n_out; ++i, w += n_in) {
            float sum = 0.0f;
            for (int j = 0; j < n_in; ++j) sum += w[j] * in[j];
            out[i] = sum + *b++;
        }
        if (layer + 1 == net.n_layers) break;
        for (int i = 0; i + 1 < n_out; i += 2) {
            if (out[i] > out[i + 1]) {
                const float larger = out[i];
                out[i] = out[i + 1];
                out[i + 1] = larger;
            }
        }
    }
    float along = 0.0f;
    for (int i = 0; i < n; ++i) along += net.signs[i] * z[i];
    const float response = units[net.n_layers % 2][0] + net.lambda * along;
    const bool is_number = response - response == 0.0f;
    const float sigmoid = is_number ? 1.0f / (1.0f + expf(-response)) : 0.0f;
    return {response, sigmoid, sigmoid > net.cut ? 1.0f : 0.0f};
}

#ifdef __CUDACC__
__global__ void evaluate_all(Network net, const float* rows, int n_rows, Result* results) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n_rows) results[k] = evaluate(net, rows + k * net.sizes[0]);
}
#endif

// ---- the file --------------------------------------------------------------------------------

struct Value {
    enum Kind { number, text, list, object, other } kind = other;
    double x = 0.0;
    std::string name;
    std::vector<Value> entries;
    std::map<std::string, Value> members;

    bool has(const std::string& key) const { return members.count(key) != 0; }
    const Value& at(const std::string& key) const {
        const auto found = members.find(key);
        if (found == members.end()) throw std::runtime_error("the file lacks " + key);
        return found->second;
    }
    std::vector<float> floats() const {
        std::vector<float> found;
        for (const Value& entry : entries) {
            if (entry.kind == number) found.push_back(static_cast<float>(entry.x));
            for (float x : entry.floats()) found.push_back(x);
        }
        return found;
    }
};

class Reader {
  public:
    explicit Reader(const std::string& text) : at_(text.c_str()) {}

    Value read() {
        Value value;
        const char c = next();
        if (c == '{') {
            value.kind = Value::object;
            read_members(value);
        } else if (c == '[') {
            value.kind = Value::list;
            read_entries(value);
        } else if (c == '"') {
            value.kind = Value::text;
            value.name = read_text();
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            char* end = nullptr;
            value.kind = Value::number;
            value.x = std::strtod(at_, &end);
            at_ = end;
        } else {
            read_word();
        }
        return value;
    }

  private:
    char next() {
        while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
        return *at_;
    }
    void expect(char c) {
        if (next() != c) throw std::runtime_error(std::string("not JSON: expected ") + c);
        ++at_;
    }
    void read_members(Value& value) {
        expect('{');
        while (next() != '}') {
            const std::string key = read_text();
            expect(':');
            value.members[key] = read();
            if (next() == ',') ++at_;
        }
        expect('}');
    }
    void read_entries(Value& value) {
        expect('[');
        while (next() != ']') {
            value.entries.push_back(read());
            if (next() == ',') ++at_;
        }
        expect(']');
    }
    std::string read_text() {
        std::string found;
        expect('"');
        while (*at_ != '"') {
            if (*at_ == '\0') throw std::runtime_error("not JSON: a text has no end");
            if (*at_ == '\\') ++at_;
            found += *at_++;
        }
        ++at_;
        return found;
    }
    void read_word() {
        const char* begin = at_;
        while (*at_ >= 'a' && *at_ <= 'z') ++at_;
        if (at_ == begin) throw std::runtime_error("not JSON");
    }

    const char* at_;
};

struct File {
    std::vector<int> sizes;
    std::vector<float> weights, biases, signs, low, high;
    bool clamps = false;
    float lambda = 0.0f, cut = 0.0f;

    explicit File(const Value& json) {
        std::map<int, std::vector<float>> weight, bias;
        for (const auto& [key, value] : json.members) {
            const std::string hlt2 = ".parametrizations.weight.original";
            const bool is_hlt2 = ends_in(key, hlt2);
            if (is_hlt2 || ends_in(key, ".weight"))
                weight[number_before(key, is_hlt2 ? hlt2 : ".weight")] = value.floats();
            if (ends_in(key, ".bias")) bias[number_before(key, ".bias")] = value.floats();
        }
        if (weight.empty() || weight.size() != bias.size())
            throw std::runtime_error("weights and biases do not match");
        sizes.push_back(static_cast<int>(weight.begin()->second.size() / bias.begin()->second.size()));
        for (const auto& [layer, b] : bias) {
            const std::vector<float>& w = weight.at(layer);
            if (w.size() != b.size() * static_cast<std::size_t>(sizes.back()) ||
                sizes.back() > kWidest || b.size() > kWidest)
                throw std::runtime_error("a layer has another size than the one before");
            sizes.push_back(static_cast<int>(b.size()));
            weights.insert(weights.end(), w.begin(), w.end());
            biases.insert(biases.end(), b.begin(), b.end());
        }
        signs = json.has("constraints") ? json.at("constraints").floats()
                                        : std::vector<float>{1, 1, 0, 1};
        if (json.has("rescale_min")) {
            low = json.at("rescale_min").floats();
            high = json.at("rescale_max").floats();
        }
        if (json.has("variables_constraints")) {
            clamps = true;
            const std::vector<float> ends = json.at("variables_constraints").floats();
            for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
                low.push_back(ends[i]);
                high.push_back(ends[i + 1]);
            }
        }
        const std::size_t n = static_cast<std::size_t>(sizes[0]);
        if (signs.size() != n || low.size() != high.size() || (!low.empty() && low.size() != n))
            throw std::runtime_error("features, constraints and ranges do not match");
        lambda = json.at("sigmanet.sigma").floats().at(0);
        cut = static_cast<float>(json.at("nominal_cut").x);
    }

    static bool ends_in(const std::string& key, const std::string& end) {
        return key.size() > end.size() && key.compare(key.size() - end.size(), end.size(), end) == 0;
    }
    static int number_before(const std::string& key, const std::string& end) {
        const std::string start = key.substr(0, key.size() - end.size());
        return std::stoi(start.substr(start.rfind('.') + 1));
    }
};

int main(int n_words, char** words) try {
    if (n_words < 2) throw std::runtime_error("give a file");
    std::ifstream stream(words[1]);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const File file(Reader(text).read());
    const bool clips = n_words > 2 && std::string(words[2]) == "--clip";
    const float* low = file.low.empty() ? nullptr : file.low.data();
    const float* high = file.high.empty() ? nullptr : file.high.data();
    const Network net{static_cast<int>(file.sizes.size()) - 1,
                      file.sizes.data(),
                      file.weights.data(),
                      file.biases.data(),
                      file.signs.data(),
                      low,
                      high,
                      file.clamps,
                      clips,
                      file.lambda,
                      file.cut};
    const std::size_t n = static_cast<std::size_t>(file.sizes[0]);
    std::vector<float> row(n);
    while (std::fread(row.data(), sizeof(float), n, stdin) == n) {
        const Result result = evaluate(net, row.data());
        if (std::fwrite(&result, sizeof(result), 1, stdout) != 1) return 1;
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "evaluator: %s\n", error.what());
    return 1;
}
