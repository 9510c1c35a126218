// isotone.hpp: the whole runtime of a frozen isotone network, in one file without dependencies.
//
// A network is a `Model`: plain numbers, made by the library or by an exported header. `score`
// computes, for every event, f_j = g_j(u) + sum_i r_ji u_i, where u is the event scaled, clamped and
// rounded to a grid. Events lie across the lanes of vectors, a few vectors make a tile, and a tile
// goes through all steps while it is in the first-level cache. Nothing is allocated.
//
// In double precision the score of an event is the same to the last bit whatever its neighbors, the
// size of the batch, the instruction set and the compiler's options: every sum runs from the bias on,
// input after input, and no multiplication is fused with an addition. In single precision it depends
// on nothing but the event and on whether the processor has fused multiply-add, which is used.
//
// An event with a NaN or an infinite feature gets the score `fill`.
//
// The process may flush denormal numbers to zero or round otherwise than to nearest, as a library built
// with -ffast-math makes it do: `score` computes in the default state and leaves the one it found.
//
// C++17; GCC 12 or Clang 14, or newer. Compile with -O3 and the best -march that you have.
#if !defined(ISOTONE_HPP)  // not #pragma once: two exports bring two copies of this file
#define ISOTONE_HPP

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    __FINITE_MATH_ONLY__
#error "isotone.hpp needs IEEE arithmetic: compile without -ffast-math and the options it stands for"
#endif
#if __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2 || __FLT_EVAL_METHOD__ < 0
#error "isotone.hpp needs IEEE arithmetic: compile with -msse2 -mfpmath=sse"
#endif
static_assert(sizeof(1.0) == 8 && 0.1 != 0.1f,
              "isotone.hpp needs constants of double precision: compile without "
              "-fsingle-precision-constant");
#if defined(__clang__)
#pragma float_control(precise, on, push)  // Clang has no macros for some options of fast math
#endif

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

// Code is compiled once per instruction set into a namespace of this name. Names must differ between
// those copies: the linker would keep one of them, and an old machine could be left with AVX-512 code.
#if !defined(ISOTONE_ISA)
#if defined(__AVX512F__)
#define ISOTONE_ISA native_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define ISOTONE_ISA native_avx2_fma
#elif defined(__AVX2__)
#define ISOTONE_ISA native_avx2
#elif defined(__FMA__)
#define ISOTONE_ISA native_fma
#else
#define ISOTONE_ISA native
#endif
#endif

// For functions and lambdas that must melt into their caller, which keeps its arrays in registers.
#define ISOTONE_INLINE __attribute__((always_inline)) inline
#define ISOTONE_LAMBDA __attribute__((always_inline))

namespace isotone {

// ---- models -------------------------------------------------------------------------------

// Limits of what is run, the numbers of `isotone.limits`: every index fits an int.
constexpr int max_group_size = 1024;
constexpr int max_width = 65536;     // units of a step, features and outputs included
constexpr int max_steps = 1024;      // as listed in a model
constexpr int max_depth = 16;        // units saved at a time
constexpr int max_matrix = 1 << 24;  // weights of a step

constexpr int max_unrolled_size = 32;
constexpr std::size_t max_stack_bytes = 1 << 20;  // of a fixed model's workspace

// Puts the smaller of wires `low` < `high` on `low`.
struct Comparator {
    std::uint16_t low, high;
};

// Without member functions, which would be shared between instruction sets.
struct Network {
    const Comparator* first;
    const Comparator* last;
};

// x = (v - center) * factor, where v is the raw number X or log(max(X + offset, floor)).
struct Feature {
    bool log;
    double offset, floor, center, factor;
};

enum class Kind : int { dense, sort, pointwise, save, merge };
enum class Activation : int { relu, leaky_relu, abs, hardtanh, tanh, sigmoid, softplus };

// dense: W h + b.  sort: groups in ascending order.  pointwise: an activation of every unit.
// save: keep the units.  merge: keep * (the units saved last) + add * h.
template <class T>
struct Step {
    Kind kind;
    int n_in, n_out;
    const T* weight;  // dense: [n_in][n_out]
    const T* bias;
    int group_size;  // sort
    Network network;
    Activation activation;  // pointwise
    double slope;
    T keep, add;  // merge
};

template <class T>
struct Model {
    int n_features, n_outputs, n_steps;
    int width;  // the most units of any step, inputs included
    int depth;  // the most units saved at a time
    const Feature* features;
    const Step<T>* steps;
    const T* residual;  // [n_features][n_outputs]
    double clip, grid;  // no rounding if `grid` is 0
};

// One feature of a batch: event e is at `data` + e * `stride` bytes, float if `single`.
struct Column {
    const void* data;
    std::ptrdiff_t stride;
    bool single;
};

namespace ISOTONE_ISA {

// ---- sorting networks ---------------------------------------------------------------------

// Ten wires in 29 comparators, as few as possible; halves that are merged would take 31.
constexpr Comparator ten_wires[] = {
    {0, 4}, {1, 5}, {6, 7}, {3, 8}, {4, 5}, {5, 7}, {2, 9}, {8, 9}, {0, 1}, {1, 4},
    {2, 3}, {7, 9}, {3, 5}, {6, 8}, {2, 6}, {1, 3}, {0, 6}, {4, 8}, {5, 7}, {7, 8},
    {3, 5}, {0, 2}, {4, 6}, {5, 7}, {1, 2}, {3, 6}, {2, 4}, {5, 6}, {3, 4}};

// Batcher's odd-even merge of m sorted wires with n other sorted ones (Knuth, The Art of Computer
// Programming, vol. 3, Sec. 5.3.4): every other wire of both, the rest of both, then neighbors. Wires
// are `a`, `a` + `stride`, ... and `b`, `b` + `stride`, ...
template <class Emit>
constexpr void merge_wires(int a, int m, int b, int n, int stride, Emit& emit) {
    if (m == 0 || n == 0) return;
    if (m + n == 2) return emit(a, b);
    merge_wires(a, m - m / 2, b, n - n / 2, 2 * stride, emit);
    merge_wires(a + stride, m / 2, b + stride, n / 2, 2 * stride, emit);
    const auto wire = [&](int i) { return i < m ? a + i * stride : b + (i - m) * stride; };
    for (int i = 1; i + 1 < m + n; i += 2) emit(wire(i), wire(i + 1));
}

// One half after the other, so that few wires are in use at a time: registers are scarce.
template <class Emit>
constexpr void sort_wires(int first, int n, Emit& emit) {
    if (n < 2) return;
    if (n == 10) {
        for (Comparator c : ten_wires) emit(first + c.low, first + c.high);
        return;
    }
    const int m = n - n / 2;
    sort_wires(first, m, emit);
    sort_wires(first + m, n - m, emit);
    merge_wires(first, m, first + m, n - m, 1, emit);
}

// Calls emit(low, high) for one comparator after the other of the network for n wires, of any number.
template <class Emit>
constexpr void build_network(int n, Emit emit) {
    sort_wires(0, n, emit);
}

constexpr int count_comparators(int n) {
    int count = 0;
    build_network(n, [&](int, int) { ++count; });
    return count;
}

template <int n>
struct StaticNetwork {
    static constexpr int size = count_comparators(n);
    Comparator pairs[size] = {};

    constexpr StaticNetwork() {
        int k = 0;
        build_network(n, [&](int low, int high) {
            pairs[k].low = static_cast<std::uint16_t>(low);
            pairs[k].high = static_cast<std::uint16_t>(high);
            ++k;
        });
    }
};

template <int n>
constexpr StaticNetwork<n> static_network;

// ---- floating-point state -----------------------------------------------------------------

// What a thread does with denormal numbers, roundings and exceptions: a register of the processor.
#if defined(__SSE2__)
constexpr std::uint64_t state_bits = 0xffc0, default_state = 0x1f80;  // the others are flags
inline std::uint64_t read_state() { return _mm_getcsr(); }
inline void write_state(std::uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
constexpr std::uint64_t state_bits = 0x07ff9f07, default_state = 0;
inline std::uint64_t read_state() {
    std::uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
inline void write_state(std::uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
#else
constexpr std::uint64_t state_bits = 0, default_state = 0;
inline std::uint64_t read_state() { return 0; }
inline void write_state(std::uint64_t) {}
#endif

// Puts the thread into the default state, and returns the one it was in. What follows is not computed
// before, and what precedes `leave_default_state` not after. There are no objects whose end restores the
// state, because these would need the exception handling of the standard library.
inline std::uint64_t enter_default_state() {
    const std::uint64_t found = read_state();
    if ((found & state_bits) != default_state) write_state((found & ~state_bits) | default_state);
    asm volatile("" : : : "memory");
    return found;
}

inline void leave_default_state(std::uint64_t found) {
    asm volatile("" : : : "memory");
    if ((found & state_bits) != default_state) write_state(found);
}

// ---- vectors ------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T, int bytes = vector_bytes>
struct MakeVector {
    typedef T type __attribute__((vector_size(bytes)));
};

template <class T, int size = vector_bytes / sizeof(T)>
using Vector = typename MakeVector<T, size * sizeof(T)>::type;

// Numbers stand in for vectors of one lane where a single event is scored.
template <class V>
struct FindElement {
    using type = std::decay_t<decltype(V{}[0])>;
};
template <>
struct FindElement<double> {
    using type = double;
};
template <>
struct FindElement<float> {
    using type = float;
};

template <class V>
using Element = typename FindElement<V>::type;

template <class V>
constexpr int n_lanes = sizeof(V) / sizeof(Element<V>);

// The outcome of comparing lanes: integers as wide as the lanes, which also serve as origins.
template <class V>
using Mask = decltype(V{} < V{});

template <class M>
inline bool all(M mask) {
    std::int64_t parts[sizeof(M) / 8], every = -1;
    __builtin_memcpy(parts, &mask, sizeof(M));
    for (std::int64_t part : parts) every &= part;
    return every == -1;
}

template <class V>
ISOTONE_INLINE V load(const void* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof(V));
    return v;
}

template <class V>
ISOTONE_INLINE void store(void* p, V v) {
    __builtin_memcpy(p, &v, sizeof(V));
}

template <class V>
ISOTONE_INLINE V broadcast(Element<V> x) {
    return x - V{};  // x + 0 would turn -0 into 0, and so is not for free
}

// One instruction each. GCC finds them behind `a < b ? a : b` too, but ponders for a minute.
#if defined(__AVX512F__)  // masked, as GCC 12 warns without reason about the plain ones
inline __m512 minimum(__m512 a, __m512 b) { return _mm512_maskz_min_ps(-1, a, b); }
inline __m512 maximum(__m512 a, __m512 b) { return _mm512_maskz_max_ps(-1, a, b); }
inline __m512d minimum(__m512d a, __m512d b) { return _mm512_maskz_min_pd(-1, a, b); }
inline __m512d maximum(__m512d a, __m512d b) { return _mm512_maskz_max_pd(-1, a, b); }
#endif
#if defined(__AVX2__)
inline __m256 minimum(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
inline __m256 maximum(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline __m256d minimum(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
inline __m256d maximum(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
#endif
#if defined(__SSE2__)
inline __m128 minimum(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
inline __m128 maximum(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
inline __m128d minimum(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
inline __m128d maximum(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
#else
template <class V>
inline V minimum(V a, V b) {
    return a < b ? a : b;
}
template <class V>
inline V maximum(V a, V b) {
    return b < a ? a : b;
}
#endif

inline double minimum(double a, double b) { return a < b ? a : b; }
inline double maximum(double a, double b) { return b < a ? a : b; }
inline float minimum(float a, float b) { return a < b ? a : b; }
inline float maximum(float a, float b) { return b < a ? a : b; }

// ---- arithmetic ---------------------------------------------------------------------------

// The rounded product of vectors: hides it from compilers that would fuse it with an addition, as
// GCC does by default wherever the processor can.
template <class V>
ISOTONE_INLINE V times(V a, V b) {
    V product = a * b;
#if defined(__AVX512F__)
    asm("" : "+v"(product));
#elif defined(__SSE2__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
    return product;
}

// sum + a * b, rounded twice in double precision.
ISOTONE_INLINE Vector<double> accumulate(Vector<double> sum, Vector<double> a, Vector<double> b) {
    return times(a, b) + sum;
}

ISOTONE_INLINE Vector<float> accumulate(Vector<float> sum, Vector<float> a, Vector<float> b) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, sum);
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#elif defined(__FMA__)
    return _mm_fmadd_ps(a, b, sum);
#elif defined(__aarch64__)
    return vfmaq_f32(sum, a, b);
#else
    return times(a, b) + sum;
#endif
}

ISOTONE_INLINE double accumulate(double sum, double a, double b) { return times(a, b) + sum; }

ISOTONE_INLINE float accumulate(float sum, float a, float b) {
#if defined(__AVX512F__) || defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, sum);
#else
    return times(a, b) + sum;
#endif
}

using Doubles = Vector<double>;
using Bits = Mask<Doubles>;

constexpr double ln2 = 0.6931471805599453;
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
constexpr double two52 = 4503599627370496.0;
constexpr std::int64_t sign_bit = std::numeric_limits<std::int64_t>::min();

// To the nearest integer, ties to even, for numbers of at most 2^52.
ISOTONE_INLINE Doubles round_even(Doubles x) {
#if defined(__AVX512F__)
    return _mm512_maskz_roundscale_pd(-1, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#endif
    const Bits sign = reinterpret_cast<Bits>(x) & sign_bit;
    const Doubles size = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(x) ^ sign);
    const Doubles rounded = (size + two52) - two52;
    return reinterpret_cast<Doubles>(reinterpret_cast<Bits>(rounded) | sign);
}

// Sum of coefficient(k) x^k, k below `size`.
template <int size, class Coefficient>
ISOTONE_INLINE Doubles horner(Coefficient coefficient, Doubles x) {
    Doubles sum = broadcast<Doubles>(coefficient(size - 1));
    for (int k = size - 2; k >= 0; --k) sum = times(sum, x) + coefficient(k);
    return sum;
}

constexpr double odd_reciprocal(int k) { return 2.0 / (2 * k + 1); }

constexpr double factorial_reciprocal(int k) {
    double factorial = 1.0;
    for (int i = 2; i <= k; ++i) factorial *= i;
    return 1.0 / factorial;
}

// Natural logarithm of positive numbers, rounded to 24 bits first: monotone as computed. With
// x = m 2^k, m in [sqrt(1/2), sqrt(2)) and s = (m-1)/(m+1): k log 2 + 2 (s + s^3/3 + s^5/5 + ...)
inline Doubles logarithm(Doubles x) {
    const auto is_tiny = x < 0x1p-1022;
    const Doubles normal = is_tiny ? x * 0x1p54 : x;
    const Bits bits = reinterpret_cast<Bits>(minimum(normal, broadcast<Doubles>(0x1p1023)));
    // the biased exponent as a number: its bits under those of 2^52
    const Bits biased = ((bits >> 52) & 0x7ff) | 0x4330000000000000;
    Doubles k = reinterpret_cast<Doubles>(biased) - (two52 + 1022.0);
    k = is_tiny ? k - 54.0 : k;
    const Bits half = (bits & 0x000fffffffffffff) | 0x3fe0000000000000;
    Doubles m = round_even(reinterpret_cast<Doubles>(half) * 0x1p24) * 0x1p-24;
    const auto is_small = m < sqrt_half;  // m is at most 1: no carry is needed
    m = is_small ? 2.0 * m : m;
    k = is_small ? k - 1.0 : k;
    const Doubles s = (m - 1.0) / (m + 1.0);
    const Doubles series = horner<12>(odd_reciprocal, s * s);
    return times(k, broadcast<Doubles>(ln2_high)) +
           (times(s, series) + times(k, broadcast<Doubles>(ln2_low)));
}

// Exponential of numbers clamped to +-700: with x = k log 2 + r, 2^k times the series of e^r.
inline Doubles exponential(Doubles x) {
    x = minimum(maximum(x, broadcast<Doubles>(-700.0)), broadcast<Doubles>(700.0));
    const Doubles k = round_even(x / ln2);
    const Doubles r = (x - times(k, broadcast<Doubles>(ln2_high))) -
                      times(k, broadcast<Doubles>(ln2_low));
    // 2^k: the biased exponent k + 1023 appears in the low bits of 2^52 + k + 1023
    const Bits power = reinterpret_cast<Bits>(k + (two52 + 1023.0)) << 52;
    return horner<14>(factorial_reciprocal, r) * reinterpret_cast<Doubles>(power);
}

// ---- sort ---------------------------------------------------------------------------------

// The one of a and b that is not the smaller one, `low`: a ^ b ^ low takes one or two instructions, and
// more units execute them than a maximum.
template <class V>
ISOTONE_INLINE V find_other(V a, V b, [[maybe_unused]] V low) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64)
        return (V)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)b, (__m512i)low, 0x96);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(V) == 32) {
        __m256 both = _mm256_xor_ps((__m256)a, (__m256)b);
        asm("" : "+x"(both));  // or GCC ponders how to reorder the whole network
        return (V)_mm256_xor_ps(both, (__m256)low);
    }
#endif
    return maximum(a, b);
}

// Right for values other than NaN; of two zeros with different signs one may be taken twice.
template <bool by_bits = vector_bytes == 64, class V>
ISOTONE_INLINE void exchange(V& a, V& b) {
    const V low = minimum(a, b);
    b = by_bits ? find_other(a, b, low) : maximum(a, b);
    a = low;
}

// Calls run(std::integral_constant<int, i>()) for i = 0, ..., n - 1. GCC keeps arrays in registers
// if their indices are constants from the start, but not if it has to unroll a loop first.
template <class Run, int... i>
ISOTONE_INLINE void unroll(Run run, std::integer_sequence<int, i...>) {
    (run(std::integral_constant<int, i>()), ...);
}

template <int n, class Run>
ISOTONE_INLINE void unroll(Run run) {
    unroll(run, std::make_integer_sequence<int, n>());
}

// What a comparator takes: a vector, or for a number a short vector with it in the first lane.
template <class V>
ISOTONE_INLINE auto to_wire(V v) {
    if constexpr (std::is_arithmetic_v<V>)
        return Vector<V, 16 / sizeof(V)>{v};
    else
        return v;
}

template <class V, class Wire>
ISOTONE_INLINE V from_wire(Wire w) {
    if constexpr (std::is_arithmetic_v<V>)
        return w[0];
    else
        return w;
}

// By bits with AVX-512; with AVX2 that takes two instructions, and every other one is best.
template <int n, class Wire, std::size_t... k>
ISOTONE_INLINE void exchange_wires(Wire* w, std::index_sequence<k...>) {
    constexpr auto& pairs = static_network<n>.pairs;
    (exchange<vector_bytes == 64 || k % 2 == 1>(w[pairs[k].low], w[pairs[k].high]), ...);
}

// The copies in a local array let the compiler keep the wires in registers.
template <int n, class V, class Stride>
ISOTONE_INLINE void sort_unrolled(V* v, Stride stride) {
    decltype(to_wire(*v)) w[n];
    unroll<n>([&](auto j) ISOTONE_LAMBDA { w[j] = to_wire(v[j * stride]); });
    exchange_wires<n>(w, std::make_index_sequence<count_comparators(n)>());
    unroll<n>([&](auto j) ISOTONE_LAMBDA { v[j * stride] = from_wire<V>(w[j]); });
}

// Unit j of vector v is h[j * tile + v].
template <int n, class V, class Tile>
void sort_groups(V* h, int n_units, Tile tile) {
    for (int j = 0; j < n_units; j += n)
        for (int v = 0; v < tile; ++v) sort_unrolled<n>(h + j * tile + v, tile);
}

constexpr int full_tile = 8;  // vectors: as a constant it leaves registers and time for more than addresses
using FullTile = std::integral_constant<int, full_tile>;

template <int n, class V>
void sort_tile(V* h, int n_units, int tile) {
    if (tile == full_tile)
        sort_groups<n>(h, n_units, FullTile());
    else
        sort_groups<n>(h, n_units, tile);
}

template <class V>
void sort_groups(V* h, int n_units, int tile, int n, Network network) {
    for (V* group = h; group != h + n_units * tile; group += n * tile)
        for (auto c = network.first; c != network.last; ++c)
            for (int v = 0; v < tile; ++v)
                exchange(group[c->low * tile + v], group[c->high * tile + v]);
}

// The group sizes for which unrolled code is compiled; others are sorted by walking the network.
template <int... sizes>
struct Unrolled {};

template <int... sizes, class V>
ISOTONE_INLINE void sort(Unrolled<sizes...>, V* h, int n_units, int tile, int n, Network network) {
    const bool done = ((n == sizes ? (sort_tile<sizes>(h, n_units, tile), true) : false) || ...);
    if (!done) sort_groups(h, n_units, tile, n, network);
}

// ---- dense --------------------------------------------------------------------------------

// How many sums fill the registers and keep the processor busy, and of how many vectors of events.
template <class T>
constexpr int n_accumulators = vector_bytes == 64 && sizeof(T) == 4 ? 8 : 10;
template <class T>
constexpr int vectors_per_block = vector_bytes == 64 && sizeof(T) == 8 ? 1 : 2;

// `outs` units from `first` on, of `vectors` vectors: out = start + W h, input after input. With `add`
// the sum starts from what is in `out`, otherwise from the bias. `weight` and `out` point to the first.
template <int outs, int vectors, bool add, class V>
ISOTONE_INLINE void dense_block(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out,
                                int first, const V* h, V* out, int tile) {
    V sum[outs][vectors];
    for (int j = 0; j < outs; ++j)
        for (int v = 0; v < vectors; ++v) {
            if constexpr (add)
                sum[j][v] = out[j * tile + v];
            else
                sum[j][v] = broadcast<V>(bias[first + j]);
        }
#pragma GCC unroll 1
    for (int k = 0; k < n_in; ++k) {
        V x[vectors];
        for (int v = 0; v < vectors; ++v) x[v] = h[v];
        for (int j = 0; j < outs; ++j) {
            const V w = broadcast<V>(weight[j]);
            for (int v = 0; v < vectors; ++v) sum[j][v] = accumulate(sum[j][v], w, x[v]);
        }
        weight += n_out;
        h += tile;
    }
    for (int j = 0; j < outs; ++j)
        for (int v = 0; v < vectors; ++v) out[j * tile + v] = sum[j][v];
}

// All units of `vectors` vectors, as many units at a time as there are registers for.
template <int outs, int vectors, bool add, class V>
ISOTONE_INLINE void dense_units(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out,
                                int j, const V* h, V* out, int tile) {
    for (; j + outs <= n_out; j += outs)
        dense_block<outs, vectors, add>(weight + j, bias, n_in, n_out, j, h, out + j * tile, tile);
    if constexpr (outs > 1)
        if (j < n_out)
            dense_units<outs - 1, vectors, add>(weight, bias, n_in, n_out, j, h, out, tile);
}

template <int vectors, bool add, class V>
int dense_vectors(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out, const V* h,
                  V* out, int tile, int v) {
    for (; v + vectors <= tile; v += vectors)
        dense_units<n_accumulators<Element<V>> / vectors, vectors, add>(weight, bias, n_in, n_out, 0, h + v,
                                                            out + v, tile);
    return v;
}

// For a single event: units lie across the lanes, from `j` on as many vectors as fit.
template <int vectors, class T>
ISOTONE_INLINE int dense_across(const T* weight, const T* start, int n_in, int n_out, int j, const T* h,
                                T* out) {
    using V = Vector<T>;
    constexpr int lanes = n_lanes<V>;
    for (; j + vectors * lanes <= n_out; j += vectors * lanes) {
        V sum[vectors];
        for (int v = 0; v < vectors; ++v) sum[v] = load<V>(start + j + v * lanes);
        const T* w = weight + j;
        for (int k = 0; k < n_in; ++k, w += n_out)
            for (int v = 0; v < vectors; ++v)
                sum[v] = accumulate(sum[v], load<V>(w + v * lanes), broadcast<V>(h[k]));
        for (int v = 0; v < vectors; ++v) store(out + j + v * lanes, sum[v]);
    }
    if constexpr (vectors > 1)
        return dense_across<vectors - 1>(weight, start, n_in, n_out, j, h, out);
    else
        return j;
}

// The same sums in the same order: out = start + W h, where `out` is not `start`.
template <class T>
void dense_one(const T* weight, const T* start, int n_in, int n_out, const T* h, T* out) {
    constexpr int lanes = n_lanes<Vector<T>>;
    int j = dense_across<6>(weight, start, n_in, n_out, 0, h, out);
    if (j < n_out && lanes < n_out) {  // the last vector computes some units again
        dense_across<1>(weight, start, n_in, n_out, n_out - lanes, h, out);
        return;
    }
    for (; j < n_out; ++j) {
        T sum = start[j];
        for (int k = 0; k < n_in; ++k) sum = accumulate(sum, weight[k * n_out + j], h[k]);
        out[j] = sum;
    }
}

template <bool add, class V>
void dense(const Element<V>* weight, const Element<V>* bias, int n_in, int n_out, const V* h, V* out,
           int tile) {
    if constexpr (std::is_arithmetic_v<V>) {
        dense_one(weight, bias, n_in, n_out, h, out);
    } else {
        int v = 0;
        if (n_out == 1) v = dense_vectors<8, add>(weight, bias, n_in, n_out, h, out, tile, v);
        v = dense_vectors<vectors_per_block<Element<V>>, add>(weight, bias, n_in, n_out, h, out, tile, v);
        dense_vectors<1, add>(weight, bias, n_in, n_out, h, out, tile, v);
    }
}

// ---- sort beside dense --------------------------------------------------------------------

// A processor compares and multiplies at the same time, but looks only some dozens of instructions ahead.
// So the comparators for one vector of events are put between the multiply-adds for another, where there
// are registers for n wires, half of n sums, an input and a spare one. Below 8 wires there is no gain.
template <int n, class V>
constexpr bool fit_together = std::is_same_v<V, Vector<float>> && vector_bytes == 64 && 8 <= n &&
                              n + (n + 1) / 2 + 2 <= 32;

// Whether one of comparators `first` to `last` - 1 takes the wire.
template <int n>
constexpr bool takes(int wire, int first, int last) {
    for (int k = first; k < last; ++k)
        if (wire == static_network<n>.pairs[k].low || wire == static_network<n>.pairs[k].high)
            return true;
    return false;
}

// Comparator k of the network for n wires at v. The first that takes a wire loads it, the last one stores
// it: stores that come one by one cost less. Most take maxima, as `find_other` competes with multiply-adds;
// that one in four does not was found to be best.
template <int n, int k, class V>
ISOTONE_INLINE void run_comparator(V* w, V* v) {
    constexpr int i = static_network<n>.pairs[k].low, j = static_network<n>.pairs[k].high;
    constexpr int size = static_network<n>.size;
    if constexpr (!takes<n>(i, 0, k)) w[i] = v[i * full_tile];
    if constexpr (!takes<n>(j, 0, k)) w[j] = v[j * full_tile];
    const V low = minimum(w[i], w[j]);
    w[j] = k % 4 == 0 ? find_other(w[i], w[j], low) : maximum(w[i], w[j]);
    w[i] = low;
    if constexpr (!takes<n>(i, k + 1, size)) v[i * full_tile] = w[i];
    if constexpr (!takes<n>(j, k + 1, size)) v[j * full_tile] = w[j];
}

// Sorts the n wires at v, and computes `outs` of n units for another vector: out = b + W h, input after
// input as in `dense_block`. All pointers are to the first of the units.
template <int n, int outs, class V>
ISOTONE_INLINE void sort_beside_dense(V* v, const Element<V>* weight, const Element<V>* bias, const V* h,
                                      V* out) {
    constexpr int size = static_network<n>.size;
    static_assert(size >= n, "an input follows a comparator, at most one each");
    V w[n], sum[outs];
    unroll<outs>([&](auto j) ISOTONE_LAMBDA { sum[j] = broadcast<V>(bias[j]); });
    unroll<size>([&](auto k) ISOTONE_LAMBDA {
        run_comparator<n, k>(w, v);
        constexpr int i = k * n / size;
        if constexpr (i < (k + 1) * n / size) {
            const V x = h[i * full_tile];
            unroll<outs>([&](auto j) ISOTONE_LAMBDA {
                sum[j] = accumulate(sum[j], broadcast<V>(weight[i * n + j]), x);
            });
        }
    });
    unroll<outs>([&](auto j) ISOTONE_LAMBDA { out[j * full_tile] = sum[j]; });
}

// Sorts n units of a full tile, computes out = b + W h and sorts that too. While units of vector v are
// computed, the inputs of the next one are sorted, and what came out for the one before.
template <int n, class V>
void sort_dense_sort(const Element<V>* weight, const Element<V>* bias, V* h, V* out) {
    constexpr int tile = full_tile, half = n / 2, rest = n - half;
    V* const second = out + half * tile;
    sort_unrolled<n>(h, FullTile());
    for (int v = 0; v < tile; ++v) {
        if (v + 1 < tile)
            sort_beside_dense<n, half>(h + v + 1, weight, bias, h + v, out + v);
        else
            dense_block<half, 1, false>(weight, bias, n, n, 0, h + v, out + v, tile);
        if (v > 0)
            sort_beside_dense<n, rest>(out + v - 1, weight + half, bias + half, h + v, second + v);
        else
            dense_block<rest, 1, false>(weight + half, bias, n, n, half, h + v, second + v, tile);
    }
    sort_unrolled<n>(out + tile - 1, FullTile());
}

// With AVX2 there are no registers for both. There, whole sorts are put between blocks of sums: the end of
// one overlaps the beginning of the other.
template <int n, class V>
constexpr bool take_turns = std::is_same_v<V, Vector<float>> && vector_bytes == 32 && 8 <= n &&
                            n <= 24;

// One vector of a full tile. It is called from several places, and one copy stays in the caches.
template <int n, class V>
__attribute__((noinline)) void sort_vector(V* v) {
    sort_unrolled<n>(v, FullTile());
}

// As `sort_dense_sort`, for pairs of vectors.
template <int n, class V>
void sort_between_dense(const Element<V>* weight, const Element<V>* bias, V* h, V* out) {
    constexpr int tile = full_tile, outs = n_accumulators<Element<V>> / 2;
    for (int v = 0; v < 2; ++v) sort_vector<n>(h + v);
    for (int v = 0; v < tile; v += 2, h += 2, out += 2) {
        V* const others[] = {h + 2, h + 3, out - 2, out - 1};
        int next = v + 2 < tile ? 0 : 2;
        const int end = v > 0 ? 4 : 2;
        for (int j = 0; j + outs <= n; j += outs) {
            dense_block<outs, 2, false>(weight + j, bias, n, n, j, h, out + j * tile, tile);
            if (next < end) sort_vector<n>(others[next++]);
        }
        if constexpr (n % outs != 0)
            dense_units<n % outs, 2, false>(weight, bias, n, n, n / outs * outs, h, out, tile);
        while (next < end) sort_vector<n>(others[next++]);
    }
    for (int v = 1; v <= 2; ++v) sort_vector<n>(out - v);
}

// The same for three steps from `first` on, if they are such steps; returns whether they were.
template <int n, class V>
ISOTONE_INLINE bool try_sort_dense_sort(const Step<Element<V>>& dense, V* h, V* out) {
    if constexpr (fit_together<n, V>) sort_dense_sort<n>(dense.weight, dense.bias, h, out);
    if constexpr (take_turns<n, V>) sort_between_dense<n>(dense.weight, dense.bias, h, out);
    return fit_together<n, V> || take_turns<n, V>;
}

template <int... sizes, class V>
ISOTONE_INLINE bool sort_dense_sort(Unrolled<sizes...>, const Step<Element<V>>* first,
                                    [[maybe_unused]] V* h, [[maybe_unused]] V* out, int tile) {
    const auto &before = first[0], &dense = first[1], &after = first[2];
    const int n = before.group_size;
    if (tile != full_tile || before.kind != Kind::sort || before.n_in != n) return false;
    if (dense.kind != Kind::dense || dense.n_out != n) return false;
    if (after.kind != Kind::sort || after.group_size != n) return false;
    return ((n == sizes && try_sort_dense_sort<sizes>(dense, h, out)) || ...);
}

// ---- pointwise ----------------------------------------------------------------------------

// Arrays of T are read and written as vectors of doubles.
template <class T>
using Part = Vector<T, n_lanes<Doubles>>;

template <class T>
ISOTONE_INLINE Doubles load_doubles(const T* p) {
    return __builtin_convertvector(load<Part<T>>(p), Doubles);
}

template <class T>
ISOTONE_INLINE void store_doubles(T* p, Doubles x) {
    store(p, __builtin_convertvector(x, Part<T>));
}

inline Doubles absolute(Doubles x) {
    return reinterpret_cast<Doubles>(reinterpret_cast<Bits>(x) & ~sign_bit);
}

// log(1 + e^h) = max(h, 0) + log(1 + t) with t = e^-|h|, and s = t / (2 + t) is at most 1/3.
inline Doubles softplus(Doubles h) {
    const Doubles t = exponential(-absolute(h)), s = t / (2.0 + t);
    return maximum(h, Doubles{}) + times(s, horner<17>(odd_reciprocal, s * s));
}

inline Doubles activate(Activation activation, double slope, Doubles h) {
    const Doubles one = broadcast<Doubles>(1.0);
    switch (activation) {
        case Activation::relu: return maximum(h, Doubles{});
        case Activation::leaky_relu: return h < 0.0 ? h * slope : h;
        case Activation::abs: return absolute(h);
        case Activation::hardtanh: return minimum(maximum(h, -one), one);
        case Activation::tanh: return 1.0 - 2.0 / (1.0 + exponential(2.0 * h));
        case Activation::sigmoid: return 1.0 / (1.0 + exponential(-h));
        case Activation::softplus: return softplus(h);
    }
    return h;
}

template <class T>
void pointwise(const Step<T>& step, T* h, int n) {
    constexpr int lanes = n_lanes<Doubles>;
    int i = 0;
    for (; i + lanes <= n; i += lanes)
        store_doubles(h + i, activate(step.activation, step.slope, load_doubles(h + i)));
    for (; i < n; ++i) {  // of a single event
        const Doubles x = broadcast<Doubles>(static_cast<double>(h[i]));
        h[i] = static_cast<T>(activate(step.activation, step.slope, x)[0]);
    }
}

template <class V>
void merge(V keep, V add, const V* saved, V* h, int n) {
    for (int i = 0; i < n; ++i) h[i] = times(keep, saved[i]) + times(add, h[i]);
}

// ---- inputs -------------------------------------------------------------------------------

ISOTONE_INLINE const char* locate(const Column& column, std::size_t event) {
    return static_cast<const char*>(column.data) + column.stride * static_cast<std::ptrdiff_t>(event);
}

ISOTONE_INLINE double read(const Column& column, std::size_t event) {
    const char* p = locate(column, event);
    return column.single ? static_cast<double>(load<float>(p)) : load<double>(p);
}

// Looks at the exponents, so that no option of the compiler can reason it away.
template <class V>
ISOTONE_INLINE Mask<V> are_finite(V x) {
    using Integer = std::conditional_t<sizeof(Element<V>) == 8, std::int64_t, std::int32_t>;
    constexpr auto exponent = static_cast<Integer>(sizeof(Integer) == 8 ? 0x7ff0000000000000 : 0x7f800000);
    return (reinterpret_cast<Mask<V>>(x) & exponent) != (Mask<V>{} + exponent);
}

// The halves of a vector of floats. GCC 12 needs more instructions behind __builtin_convertvector.
struct Halves {
    Doubles first, second;
};

ISOTONE_INLINE Halves widen(Vector<float> x) {
#if defined(__AVX512F__)
    const __m256 first = (__m256)_mm512_maskz_extractf64x4_pd(-1, (__m512d)x, 0);
    const __m256 second = (__m256)_mm512_maskz_extractf64x4_pd(-1, (__m512d)x, 1);
    return {_mm512_maskz_cvtps_pd(-1, first), _mm512_maskz_cvtps_pd(-1, second)};
#elif defined(__AVX2__)
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
#else
    return {__builtin_convertvector(__builtin_shufflevector(x, x, 0, 1), Doubles),
            __builtin_convertvector(__builtin_shufflevector(x, x, 2, 3), Doubles)};
#endif
}

// From a raw number of a feature to what enters the first step: scaled, clamped and, if `round`, rounded.
template <bool log, bool round>
struct Snap {
    double clip, grid, cells;

    template <class T>
    explicit Snap(const Model<T>& model)
        : clip(model.clip), grid(model.grid), cells(round ? 1.0 / model.grid : 0.0) {}

    ISOTONE_INLINE Doubles operator()(const Feature& feature, Doubles x) const {
        if constexpr (log)
            x = logarithm(maximum(x + feature.offset, broadcast<Doubles>(feature.floor)));
        Doubles u = (x - feature.center) * feature.factor;
        u = minimum(maximum(u, broadcast<Doubles>(-clip)), broadcast<Doubles>(clip));
        return round ? round_even(u * cells) * grid + 0.0 : u;
    }

    template <class T>
    ISOTONE_INLINE void operator()(const Feature& feature, Doubles x, T* u) const {
        store_doubles(u, (*this)(feature, x));
    }
    template <class T>
    ISOTONE_INLINE void operator()(const Feature& feature, Vector<float> x, T* u) const {
        const Halves wide = widen(x);
        (*this)(feature, wide.first, u);
        (*this)(feature, wide.second, u + n_lanes<Doubles>);
    }
};

// Calls run(snap) with the one for a feature of the model.
template <class T, class Run>
ISOTONE_INLINE auto with_snap(const Model<T>& model, bool log, Run run) {
    if (model.grid > 0.0) return log ? run(Snap<true, true>(model)) : run(Snap<false, true>(model));
    return log ? run(Snap<true, false>(model)) : run(Snap<false, false>(model));
}

// A column of a tile: read(e) gives the raw numbers of events from e on, as a vector. Returns whether all
// were finite.
template <class Raw, class Snap, class T, class Read>
ISOTONE_INLINE bool snap_events(Snap snap, const Feature& feature, int size, T* u, Read read) {
    auto finite = ~Mask<Vector<Raw>>{};
    for (int e = 0; e < size; e += n_lanes<Vector<Raw>>) {
        const Vector<Raw> x = read(e);
        finite &= are_finite(x);
        snap(feature, x, u + e);
    }
    return all(finite);
}

template <class Raw, std::size_t... lane>
ISOTONE_INLINE Vector<Raw> gather(const char* p, std::ptrdiff_t stride, std::index_sequence<lane...>) {
    return Vector<Raw>{load<Raw>(p + static_cast<std::ptrdiff_t>(lane) * stride)...};
}

// A column of a full tile that starts at p.
template <class Raw, class Snap, class T>
bool snap_column(Snap snap, const Feature& feature, const char* p, std::ptrdiff_t stride, int size, T* u) {
    constexpr std::ptrdiff_t width = sizeof(Raw);
    if (stride == width)
        return snap_events<Raw>(snap, feature, size, u,
                                [=](int e) ISOTONE_LAMBDA { return load<Vector<Raw>>(p + e * width); });
    return snap_events<Raw>(snap, feature, size, u, [=](int e) ISOTONE_LAMBDA {
        return gather<Raw>(p + e * stride, stride, std::make_index_sequence<n_lanes<Vector<Raw>>>());
    });
}

// Whether four columns lie side by side in rows, and can be taken together.
inline bool are_in_rows(const Column* columns, const Feature* features) {
    if (!columns->single && n_lanes<Doubles> < 4) return false;
    const std::ptrdiff_t width = columns->single ? sizeof(float) : sizeof(double);
    for (int i = 0; i < 4; ++i)
        if (features[i].log || columns[i].single != columns->single ||
            columns[i].stride != columns->stride || columns[i].data != locate(*columns, 0) + i * width)
            return false;
    return true;
}

// Number i of the result is number Index::at(i, size) of a, and after its `size` numbers of b.
template <class Index, class V, std::size_t... i>
ISOTONE_INLINE auto shuffle(V a, V b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, Index::at(i, n_lanes<V>)...);
}

struct Join {
    static constexpr int at(int i, int) { return i; }
};

// In every four numbers the picks from the four of a, counted from 0, and of b, from 4.
template <int... picks>
struct InFours {
    static constexpr int at(int i, int size) {
        constexpr int order[] = {picks...};
        return i - i % 4 + order[i % 4] % 4 + order[i % 4] / 4 * size;
    }
};

template <int... picks, class V>
ISOTONE_INLINE V pick(V a, V b) {
    return shuffle<InFours<picks...>>(a, b, std::make_index_sequence<n_lanes<V>>());
}

// Four numbers of every fourth row from p on.
template <class Raw, int size = n_lanes<Vector<Raw>>>
ISOTONE_INLINE Vector<Raw, size> load_rows(const char* p, std::ptrdiff_t stride) {
    if constexpr (size == 4) {
        return load<Vector<Raw, 4>>(p);
    } else {
        const auto a = load_rows<Raw, size / 2>(p, stride);
        const auto b = load_rows<Raw, size / 2>(p + size / 2 * stride, stride);
        return shuffle<Join>(a, b, std::make_index_sequence<size>());
    }
}

// Asks for what lies there, which may be beyond the end.
ISOTONE_INLINE void prefetch(const char* p, std::ptrdiff_t offset) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + offset));
}

// Four columns of a full tile that are in rows: rows are read whole and turned in registers.
template <class Raw, class Snap, class T>
bool snap_rows(Snap snap, const Feature* features, const char* p, std::ptrdiff_t stride, int size, T* u) {
    using V = Vector<Raw>;
    auto finite = ~Mask<V>{};
    for (int e = 0; e < size; e += n_lanes<V>, p += n_lanes<V> * stride) {
        for (int k = 0; k < n_lanes<V>; ++k) prefetch(p, (size + k) * stride);  // the next tile
        const V a = load_rows<Raw>(p, stride), b = load_rows<Raw>(p + stride, stride);
        const V c = load_rows<Raw>(p + 2 * stride, stride), d = load_rows<Raw>(p + 3 * stride, stride);
        const V ab = pick<0, 4, 1, 5>(a, b), ab_last = pick<2, 6, 3, 7>(a, b);
        const V cd = pick<0, 4, 1, 5>(c, d), cd_last = pick<2, 6, 3, 7>(c, d);
        const V x[] = {pick<0, 1, 4, 5>(ab, cd), pick<2, 3, 6, 7>(ab, cd),
                       pick<0, 1, 4, 5>(ab_last, cd_last), pick<2, 3, 6, 7>(ab_last, cd_last)};
        unroll<4>([&](auto i) ISOTONE_LAMBDA {
            finite &= are_finite(x[i]);
            snap(features[i], x[i], u + i * size + e);
        });
    }
    return all(finite);
}

// One column of a full tile from p on, or four that are in rows.
template <class Raw, class Snap, class T>
bool snap_columns(Snap snap, const Feature* features, const char* p, std::ptrdiff_t stride,
                  [[maybe_unused]] int block, int size, T* u) {
    if constexpr (n_lanes<Vector<Raw>> >= 4)
        if (block == 4) return snap_rows<Raw>(snap, features, p, stride, size, u);
    return snap_column<Raw>(snap, *features, p, stride, size, u);
}

// A column of a tile that the batch does not fill: its last event is repeated.
template <class Snap, class T>
bool snap_last(Snap snap, const Feature& feature, const Column& column, std::size_t event, std::size_t n,
               int size, T* u) {
    return snap_events<double>(snap, feature, size, u, [&](int e) ISOTONE_LAMBDA {
        Doubles x = {};
        for (int k = 0; k < n_lanes<Doubles>; ++k)
            x[k] = read(column, event + e + k < n ? event + e + k : n - 1);
        return x;
    });
}

// Snapped features: u[i] holds as many events as are in a tile. Returns whether all were finite.
template <class T>
bool prepare(const Model<T>& model, const Column* columns, std::size_t event, std::size_t n, int size,
             T* u) {
    bool finite = true;
    for (int i = 0, block; i < model.n_features; i += block, u += block * size) {
        const Feature* feature = model.features + i;
        const Column& column = columns[i];
        const char* p = locate(column, event);
        const int lanes = column.single ? n_lanes<Vector<float>> : n_lanes<Doubles>;
        const bool full = event + size <= n && size % lanes == 0;
        block = full && i + 4 <= model.n_features && are_in_rows(&column, feature) ? 4 : 1;
        finite &= with_snap(model, feature->log, [&](auto snap) ISOTONE_LAMBDA {
            if (!full) return snap_last(snap, *feature, column, event, n, size, u);
            if (column.single) return snap_columns<float>(snap, feature, p, column.stride, block, size, u);
            return snap_columns<double>(snap, feature, p, column.stride, block, size, u);
        });
    }
    return finite;
}

// ---- networks -----------------------------------------------------------------------------

template <int... sizes>
constexpr bool has_size(Unrolled<sizes...>, int n) {
    return ((n == sizes) || ...);
}

// Whether groups of n can be sorted: by unrolled code, or by comparators that stay within the group.
template <class Sizes>
constexpr bool can_sort(int n, Network network) {
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
    if (step.kind == Kind::dense)
        return step.n_out <= max_matrix / units;
    if (step.n_out != units) return false;
    if (step.kind != Kind::sort) return true;
    const int n = step.group_size;
    return 1 <= n && n <= max_group_size && units % n == 0 && can_sort<Sizes>(n, step.network);
}

// Whether a model is within the limits and its steps fit together, so that `score` stays within the
// arrays of the sizes that it states. Fixed models are checked by the compiler; check others once.
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

// Takes the features `u` of a tile through all steps, and returns where their outcome lies: in one of
// the buffers from `h` on.
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
            case Kind::sort: sort(Sizes(), h, step->n_in, tile, step->group_size, step->network); break;
            case Kind::pointwise: pointwise(*step, reinterpret_cast<Element<V>*>(h), n * n_lanes<V>); break;
            case Kind::save: __builtin_memcpy(saved, h, n * sizeof(V)); saved += buffer; break;
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

template <class T>
inline bool is_finite(const Model<T>& model, const Column* columns, std::size_t event) {
    Bits finite = ~Bits{};
    for (int i = 0; i < model.n_features; ++i)
        finite &= are_finite(broadcast<Doubles>(read(columns[i], event)));
    return all(finite);
}

// Scores of events `first` to `last` - 1, with `out` those of `first`: [event][output].
template <class Sizes, class T>
std::size_t score_tile(const Model<T>& model, const Column* columns, std::size_t first,
                       std::size_t last, std::size_t n, T fill, T* out, T* workspace, int tile) {
    using V = Vector<T>;
    const int size = tile * n_lanes<V>;
    const bool finite = prepare(model, columns, first, n, size, workspace);
    V* u = reinterpret_cast<V*>(workspace);
    V* h = run_steps<Sizes>(model, u, u + model.n_features * tile, tile);
    dense<true>(model.residual, static_cast<const T*>(nullptr), model.n_features, model.n_outputs, u, h, tile);
    const T* scores = reinterpret_cast<const T*>(h);
    const int m = model.n_outputs;
    if (m == 1)  // a loop that compilers turn into vectors
        for (std::size_t e = 0; e < last - first; ++e) out[e] = scores[e] + T(0);
    else
        for (int j = 0; j < m; ++j)
            for (std::size_t e = 0; e < last - first; ++e)
                out[e * m + j] = scores[j * size + e] + T(0);
    if (finite) return 0;
    std::size_t n_bad = 0;
    for (std::size_t e = 0; e < last - first; ++e)
        if (!is_finite(model, columns, first + e)) {
            for (int j = 0; j < m; ++j) out[e * m + j] = fill;
            ++n_bad;
        }
    return n_bad;
}

// The scores of one event; returns 1 if it had a NaN or infinite feature.
template <class Sizes, class T>
std::size_t score_one(const Model<T>& model, const Column* columns, T fill, T* out, T* u) {
    Bits finite = ~Bits{};
    for (int i = 0; i < model.n_features; ++i) {
        const Doubles wide = broadcast<Doubles>(read(columns[i], 0));
        finite &= are_finite(wide);
        with_snap(model, model.features[i].log, [&](auto snap) ISOTONE_LAMBDA {
            u[i] = static_cast<T>(snap(model.features[i], wide)[0]);
        });
    }
    const T* h = run_steps<Sizes>(model, u, u + model.n_features, 1);
    dense_one(model.residual, h, model.n_features, model.n_outputs, u, out);
    const bool good = all(finite);
    for (int j = 0; j < model.n_outputs; ++j) out[j] = good ? out[j] + T(0) : fill;
    return !good;
}

// Vectors in a tile: what keeps the units in the first-level cache.
template <class T>
constexpr int tile_for(const Model<T>& model) {
    const int fitting = 24 * 1024 / ((model.n_features + 2 * model.width) * vector_bytes);
    return fitting > full_tile ? full_tile : fitting < 2 ? 2 : fitting / 2 * 2;
}

// The scores of any number of events, tile by tile. A function of its own, so that nothing of it can be
// moved out of the reach of the state that its caller sets.
template <class Sizes, class T>
__attribute__((noinline)) std::size_t score_tiles(const Model<T>& model, const Column* columns,
                                                  std::size_t n, T fill, T* out, T* workspace) {
    constexpr std::size_t lanes = n_lanes<Vector<T>>;
    const int most = tile_for(model);
    std::size_t n_bad = 0;
    for (std::size_t first = 0; first < n;) {
        const std::size_t vectors = (n - first + lanes - 1) / lanes;
        const int tile = vectors < static_cast<std::size_t>(most) ? static_cast<int>(vectors) : most;
        const std::size_t last = first + tile * lanes < n ? first + tile * lanes : n;
        n_bad += score_tile<Sizes>(model, columns, first, last, n, fill, out + first * model.n_outputs,
                                   workspace, tile);
        first = last;
    }
    return n_bad;
}

// Scores n events to `out`, [event][output]; events with a NaN or infinite feature get `fill`.
// Returns how many those were. The model `is_valid`; `out` must not overlap the columns; `workspace` has
// `workspace_size` numbers and the alignment of vectors.
template <class Sizes, class T>
std::size_t score(const Model<T>& model, const Column* columns, std::size_t n, T fill, T* out,
                  T* workspace) {
    const std::uint64_t state = enter_default_state();
    const std::size_t n_bad = n == 1
                                  ? score_one<Sizes>(model, columns, fill, out, workspace)
                                  : score_tiles<Sizes>(model, columns, n, fill, out, workspace);
    leave_default_state(state);
    return n_bad;
}

// ---- fixed models -------------------------------------------------------------------------

// For exported headers, whose `model` is a constant: the workspace is on the stack. Raw features are
// float or double, `Real`.

template <class Real>
constexpr bool is_real = std::is_same_v<Real, float> || std::is_same_v<Real, double>;

template <const auto& model>
using Number = std::decay_t<decltype(*model.residual)>;

template <class Sizes, const auto& model>
std::size_t score_fixed(const Column* columns, std::size_t n, Number<model> fill, Number<model>* out) {
    static_assert(is_valid<Sizes>(model), "the model is beyond a limit, or its steps do not fit");
    constexpr std::size_t size = workspace_size(model, tile_for(model));
    static_assert(size * sizeof(Number<model>) <= max_stack_bytes, "too wide for the stack");
    alignas(vector_bytes) Number<model> workspace[size];
    return score<Sizes>(model, columns, n, fill, out, workspace);
}

// Event e has its features at rows + e * n_features.
template <class Sizes, const auto& model, class Real>
std::size_t score_rows(const Real* rows, std::size_t n, Number<model> fill, Number<model>* out) {
    static_assert(is_real<Real>, "raw features are float or double");
    Column columns[model.n_features];
    for (int i = 0; i < model.n_features; ++i)
        columns[i] = {rows + i, model.n_features * sizeof(Real), std::is_same_v<Real, float>};
    return score_fixed<Sizes, model>(columns, n, fill, out);
}

// Feature i of the events is at columns[i].
template <class Sizes, const auto& model, class Real>
std::size_t score_columns(const Real* const* columns, std::size_t n, Number<model> fill,
                          Number<model>* out) {
    static_assert(is_real<Real>, "raw features are float or double");
    Column strided[model.n_features];
    for (int i = 0; i < model.n_features; ++i)
        strided[i] = {columns[i], sizeof(Real), std::is_same_v<Real, float>};
    return score_fixed<Sizes, model>(strided, n, fill, out);
}

}  // namespace ISOTONE_ISA
}  // namespace isotone

#if defined(__clang__)
#pragma float_control(pop)
#endif

#endif
