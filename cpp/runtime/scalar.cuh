// scalar.cuh: the runtime of isotone.hpp for one event per thread, on GPUs and on the host. The
// CUDA export puts it in front of a model. In double precision it gives the bits of isotone.hpp:
// the same operations in the same order, and nothing is fused.
#if !defined(ISOTONE_SCALAR)
#define ISOTONE_SCALAR

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    __FINITE_MATH_ONLY__
#error "isotone needs IEEE arithmetic: compile without -use_fast_math and -ffast-math"
#endif
static_assert(sizeof(1.0) == 8 && 0.1 != 0.1f,
              "isotone needs constants of double precision: compile without "
              "-fsingle-precision-constant");

#include <cstddef>
#include <cstring>
#include <limits>

// Where all indices are constants after unrolling, arrays become registers.
#if defined(__CUDACC__)
#define ISOTONE_BOTH __host__ __device__ inline
#define ISOTONE_PRAGMA(text) _Pragma(#text)
#define ISOTONE_UNROLL(count) ISOTONE_PRAGMA(unroll(count))
#else
#define ISOTONE_BOTH inline
#define ISOTONE_UNROLL(count)
#endif

namespace isotone {
namespace scalar {

// ---- arithmetic ---------------------------------------------------------------------------

// Rounded operations, which no compiler fuses.
template <class T>
ISOTONE_BOTH T hide(T x) {
#if defined(__CUDA_ARCH__)
    return x;
#elif defined(__GNUC__) && defined(__SSE2__)
    asm("" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__)
    asm("" : "+w"(x));
    return x;
#else
    volatile T kept = x;
    return kept;
#endif
}

ISOTONE_BOTH double multiply(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return hide(a * b);
#endif
}

ISOTONE_BOTH double add(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

ISOTONE_BOTH double divide(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

ISOTONE_BOTH float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return hide(a * b);
#endif
}

ISOTONE_BOTH float add(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

// sum + a * b: rounded twice in double precision, once in single precision.
ISOTONE_BOTH double accumulate(double sum, double a, double b) { return add(sum, multiply(a, b)); }

ISOTONE_BOTH float accumulate(float sum, float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, sum);
#else
    return __builtin_fmaf(a, b, sum);
#endif
}

ISOTONE_BOTH long long to_bits(double x) {
#if defined(__CUDA_ARCH__)
    return __double_as_longlong(x);
#else
    long long bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits;
#endif
}

ISOTONE_BOTH double from_bits(long long bits) {
#if defined(__CUDA_ARCH__)
    return __longlong_as_double(bits);
#else
    double x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
#endif
}

ISOTONE_BOTH double minimum(double a, double b) { return a < b ? a : b; }
ISOTONE_BOTH double maximum(double a, double b) { return b < a ? a : b; }
ISOTONE_BOTH double absolute(double x) { return x < 0.0 ? -x : x; }

// To the nearest integer, ties to even, for numbers of at most 2^52.
ISOTONE_BOTH double round_even(double x) {
    const double size = add(add(absolute(x), 0x1p52), -0x1p52);
    return x < 0.0 ? -size : size;
}

constexpr double ln2 = 0.6931471805599453;
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

// Sum of 2 / (2k + 1) x^k, k below `size`.
template <int size>
ISOTONE_BOTH double odd_series(double x) {
    double sum = 2.0 / (2 * size - 1);
    ISOTONE_UNROLL(size)
    for (int k = size - 2; k >= 0; --k) sum = add(multiply(sum, x), 2.0 / (2 * k + 1));
    return sum;
}

// Natural logarithm of positive numbers, rounded to 24 bits first; see isotone.hpp.
ISOTONE_BOTH double logarithm(double x) {
    const bool is_tiny = x < 0x1p-1022;
    const long long bits = to_bits(minimum(is_tiny ? x * 0x1p54 : x, 0x1p1023));
    double k = static_cast<double>((bits >> 52) & 0x7ff) - (is_tiny ? 1076.0 : 1022.0);
    double m = from_bits((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
    m = round_even(m * 0x1p24) * 0x1p-24;
    if (m < 0x1.6a09e667f3bcdp-1) {
        m = 2.0 * m;
        k = k - 1.0;
    }
    const double s = divide(add(m, -1.0), add(m, 1.0));
    const double series = odd_series<12>(multiply(s, s));
    return add(multiply(k, ln2_high), add(multiply(s, series), multiply(k, ln2_low)));
}

// Exponential of numbers clamped to +-700.
ISOTONE_BOTH double exponential(double x) {
    x = minimum(maximum(x, -700.0), 700.0);
    const double k = round_even(divide(x, ln2));
    const double r = add(add(x, -multiply(k, ln2_high)), -multiply(k, ln2_low));
    double factorial = 6227020800.0;  // of 13
    double sum = 1.0 / factorial;
    ISOTONE_UNROLL(13)
    for (int i = 12; i >= 0; --i) {
        factorial = factorial / (i + 1);
        sum = add(multiply(sum, r), 1.0 / factorial);
    }
    return sum * from_bits((static_cast<long long>(k) + 1023) << 52);
}

// ---- steps --------------------------------------------------------------------------------

template <class T>
ISOTONE_BOTH void exchange(T& a, T& b) {
    const bool swap = b < a;
    const T low = swap ? b : a;
    b = swap ? a : b;
    a = low;
}

// out = start + W h, in parts of `part` inputs, see isotone.hpp; `weight` is [n_in][n_out], `out`
// may be `start`.
template <int n_in, int n_out, int part, class T>
ISOTONE_BOTH void dense(const T* weight, const T* start, const T* h, T* out) {
    constexpr bool is_small = n_in * n_out <= 4096;
    (void)is_small;  // the host does not ask
    ISOTONE_UNROLL(is_small ? n_out : 1)
    for (int j = 0; j < n_out; ++j) {
        T sum = start[j], before = sum;
        ISOTONE_UNROLL(is_small ? n_in : 1)
        for (int k = 0; k < n_in; ++k) {
            if (k > 0 && k % part == 0) {
                before = k == part ? sum : add(before, sum);
                sum = T(0);
            }
            sum = accumulate(sum, weight[k * n_out + j], h[k]);
        }
        out[j] = part < n_in ? add(before, sum) : sum;
    }
}

// out = g + r u, where the sum of all r u is formed first; `out` may be `g`.
template <int n_in, int n_out, class T>
ISOTONE_BOTH void add_residual(const T* residual, const T* g, const T* u, T* out) {
    ISOTONE_UNROLL(n_out <= 64 ? n_out : 1)
    for (int j = 0; j < n_out; ++j) {
        T sum = T(0);
        ISOTONE_UNROLL(n_in <= 64 ? n_in : 1)
        for (int k = 0; k < n_in; ++k) sum = accumulate(sum, residual[k * n_out + j], u[k]);
        out[j] = add(g[j], sum);
    }
}

template <int n, class T>
ISOTONE_BOTH void copy(const T* from, T* to) {
    ISOTONE_UNROLL(n)
    for (int i = 0; i < n; ++i) to[i] = from[i];
}

template <int n, class T>
ISOTONE_BOTH void merge(T keep, T add_factor, const T* saved, T* h) {
    ISOTONE_UNROLL(n)
    for (int i = 0; i < n; ++i) h[i] = add(multiply(keep, saved[i]), multiply(add_factor, h[i]));
}

template <int n, class T>
ISOTONE_BOTH void first_part(T weight, const T* h, T* sum) {
    ISOTONE_UNROLL(n)
    for (int i = 0; i < n; ++i) sum[i] = multiply(weight, h[i]);
}

template <int n, class T>
ISOTONE_BOTH void add_part(T weight, const T* h, T* sum) {
    ISOTONE_UNROLL(n)
    for (int i = 0; i < n; ++i) sum[i] = add(sum[i], multiply(weight, h[i]));
}

template <int n, class T, class Function>
ISOTONE_BOTH void pointwise(Function function, double negative_slope, T* h) {
    ISOTONE_UNROLL(n)
    for (int i = 0; i < n; ++i)
        h[i] = static_cast<T>(function(static_cast<double>(h[i]), negative_slope));
}

#define ISOTONE_ACTIVATION(name, result)                                        \
    struct name {                                                               \
        ISOTONE_BOTH double operator()(double h, double negative_slope) const { \
            (void)negative_slope;                                               \
            return result;                                                      \
        }                                                                       \
    };

ISOTONE_BOTH double softplus_of(double h) {
    const double t = exponential(-absolute(h)), s = divide(t, add(2.0, t));
    return add(maximum(h, 0.0), multiply(s, odd_series<17>(multiply(s, s))));
}

ISOTONE_ACTIVATION(relu, maximum(h, 0.0))
ISOTONE_ACTIVATION(leaky_relu, h < 0.0 ? multiply(h, negative_slope) : h)
ISOTONE_ACTIVATION(abs, absolute(h))
ISOTONE_ACTIVATION(hardtanh, minimum(maximum(h, -1.0), 1.0))
ISOTONE_ACTIVATION(tanh, add(1.0, -divide(2.0, add(1.0, exponential(2.0 * h)))))
ISOTONE_ACTIVATION(sigmoid, divide(1.0, add(1.0, exponential(-h))))
ISOTONE_ACTIVATION(softplus, softplus_of(h))

// ---- inputs -------------------------------------------------------------------------------

// x = (v - center) * factor with v = X or log(max(X + offset, floor)), clamped and rounded.
template <class T>
ISOTONE_BOTH T snap(double x, bool log, double offset, double floor, double center, double factor,
                    double clip, double grid) {
    if (log) x = logarithm(maximum(add(x, offset), floor));
    x = minimum(maximum(multiply(add(x, -center), factor), -clip), clip);
    if (grid > 0.0) x = add(multiply(round_even(multiply(x, 1.0 / grid)), grid), 0.0);
    return static_cast<T>(x);
}

// The same in single precision, without a logarithm, for clips of at most 2^22 cells: differences,
// products and sums are rounded, and rounding is monotone. Numbers near `magic` are multiples of the
// grid, so that adding it rounds to the grid, ties to even.
ISOTONE_BOTH float snap_single(float x, float center, float factor, float clip, float grid) {
    const float scaled = multiply(add(x, -center), factor), magic = 0x1.8p23f * grid;
    const float u = scaled < -clip ? -clip : clip < scaled ? clip : scaled;
    return add(add(u, magic), -magic);
}

// ---- copies of columns --------------------------------------------------------------------

// Which feature moves among those that are copies of one column, and where it is.
template <class T>
struct Cell {
    int feature;
    bool is_several;  // copies; one alone is the column itself
    T phi;
};

// The cell of a column that enters as features `first` to `first` + n_copies - 1, n_copies > 1:
// all before the one that moves are +1, all behind it -1. Copy k is +1 from ends[k] on, the last
// one excepted: n_copies - 1 ends, ascending. Centers and factors are those of the n_copies
// copies; `grid` is that of the network, 0 for none. Of a column that is its own only copy the
// cell is {first, false, snap(...)}.
template <int n_copies, class T>
ISOTONE_BOTH Cell<T> find_cell(double x, int first, const double* ends, const double* centers,
                               const double* factors, double grid) {
    int copy = 0;
    for (int left = n_copies - 1; left > 0;) {  // how many ends are at most x
        const int half = (left + 1) / 2;
        if (x >= ends[copy + half - 1]) copy += half;
        left -= half;
    }
    const T phi = snap<T>(x, false, 0.0, 0.0, centers[copy], factors[copy], 1.0, grid);
    return {first + copy, true, phi};
}

// out = start + W h of copies, column after column, of which those that do not move were summed
// beforehand. `table` is [2 n_features][n_out], C and W of feature after feature: row 2i is the
// sum of W_j before copy i less that behind it, among the copies of one column, and row 2i + 1 is
// W_i. `out` may be `start`, as for the residual.
template <int n_columns, int n_out, class T>
ISOTONE_BOTH void look_up(const T* table, const T* start, const Cell<T>* cells, T* out) {
    ISOTONE_UNROLL(n_out <= 64 ? n_out : 1)
    for (int j = 0; j < n_out; ++j) {
        T sum = start[j];
        ISOTONE_UNROLL(n_columns)
        for (int s = 0; s < n_columns; ++s) {
            const T* row = table + 2 * static_cast<std::ptrdiff_t>(cells[s].feature) * n_out + j;
            if (cells[s].is_several) sum = add(sum, row[0]);
            sum = accumulate(sum, row[n_out], cells[s].phi);
        }
        out[j] = sum;
    }
}

}  // namespace scalar
}  // namespace isotone

#endif  // ISOTONE_SCALAR
