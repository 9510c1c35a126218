// ---- inputs -------------------------------------------------------------------------------
#pragma once

#include "pointwise.hpp"

namespace isotone::ISOTONE_ISA {

ISOTONE_INLINE const char* locate(const Column& column, std::size_t event) {
    return static_cast<const char*>(column.data) +
           column.stride * static_cast<std::ptrdiff_t>(event);
}

ISOTONE_INLINE double read(const Column& column, std::size_t event) {
    const char* p = locate(column, event);
    return column.single ? static_cast<double>(load<float>(p)) : load<double>(p);
}

// Looks at the exponents, so that no option of the compiler can reason it away.
template <class V>
ISOTONE_INLINE Mask<V> are_finite(V x) {
    using Integer = std::conditional_t<sizeof(Element<V>) == 8, std::int64_t, std::int32_t>;
    constexpr auto exponent =
        static_cast<Integer>(sizeof(Integer) == 8 ? 0x7ff0000000000000 : 0x7f800000);
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
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
            _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
#else
    return {__builtin_convertvector(__builtin_shufflevector(x, x, 0, 1), Doubles),
            __builtin_convertvector(__builtin_shufflevector(x, x, 2, 3), Doubles)};
#endif
}

// From a raw number of a feature to what enters the first step: scaled, clamped and, if `round`,
// rounded.
template <bool log, bool round>
struct Snap {
    double clip, magic;

    // Numbers near `magic` are multiples of the grid: adding it rounds, ties to even.
    template <class T>
    explicit Snap(const Model<T>& model) : clip(model.clip), magic(0x1.8p52 * model.grid) {}

    ISOTONE_INLINE Doubles operator()(const Feature& feature, Doubles x) const {
        if constexpr (log)
            x = logarithm(maximum(x + feature.offset, broadcast<Doubles>(feature.floor)));
        Doubles u = (x - feature.center) * feature.factor;
        u = minimum(maximum(u, broadcast<Doubles>(-clip)), broadcast<Doubles>(clip));
        return round ? (u + magic) - magic : u;
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
    if (model.grid > 0.0)
        return log ? run(Snap<true, true>(model)) : run(Snap<false, true>(model));
    return log ? run(Snap<true, false>(model)) : run(Snap<false, false>(model));
}

// A column of a tile: read(e) gives the raw numbers of events from e on, as a vector. Returns
// whether all were finite.
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
ISOTONE_INLINE Vector<Raw> gather(const char* p, std::ptrdiff_t stride,
                                  std::index_sequence<lane...>) {
    return Vector<Raw>{load<Raw>(p + static_cast<std::ptrdiff_t>(lane) * stride)...};
}

// A column of a full tile that starts at p.
template <class Raw, class Snap, class T>
bool snap_column(Snap snap, const Feature& feature, const char* p, std::ptrdiff_t stride, int size,
                 T* u) {
    constexpr std::ptrdiff_t width = sizeof(Raw);
    if (stride == width)
        return snap_events<Raw>(snap, feature, size, u, [=](int e) ISOTONE_LAMBDA {
            return load<Vector<Raw>>(p + e * width);
        });
    return snap_events<Raw>(snap, feature, size, u, [=](int e) ISOTONE_LAMBDA {
        return gather<Raw>(p + e * stride, stride,
                           std::make_index_sequence<n_lanes<Vector<Raw>>>());
    });
}

// Whether four columns lie side by side in rows, and can be taken together.
inline bool are_in_rows(const Column* columns) {
    const std::ptrdiff_t width = columns->single ? sizeof(float) : sizeof(double);
    if (!columns->single && n_lanes<Doubles> < 4) return false;
    for (int i = 0; i < 4; ++i)
        if (columns[i].single != columns->single || columns[i].stride != columns->stride ||
            columns[i].data != locate(*columns, 0) + i * width)
            return false;
    return true;
}

inline bool have_logarithms(const Feature* features) {
    return features[0].log || features[1].log || features[2].log || features[3].log;
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

template <class V>
struct Four {
    V columns[4];
};

// Four numbers of as many rows as there are lanes, from p on: rows are read whole and turned in
// registers.
template <class Raw>
ISOTONE_INLINE Four<Vector<Raw>> turn_rows(const char* p, std::ptrdiff_t stride) {
    using V = Vector<Raw>;
    const V a = load_rows<Raw>(p, stride), b = load_rows<Raw>(p + stride, stride);
    const V c = load_rows<Raw>(p + 2 * stride, stride), d = load_rows<Raw>(p + 3 * stride, stride);
    if constexpr (sizeof(Raw) == 8) {  // instructions interleave within 16 bytes
        const V ab = pick<0, 4, 2, 6>(a, b), ab_odd = pick<1, 5, 3, 7>(a, b);
        const V cd = pick<0, 4, 2, 6>(c, d), cd_odd = pick<1, 5, 3, 7>(c, d);
        return {{pick<0, 1, 4, 5>(ab, cd), pick<0, 1, 4, 5>(ab_odd, cd_odd),
                 pick<2, 3, 6, 7>(ab, cd), pick<2, 3, 6, 7>(ab_odd, cd_odd)}};
    } else {
        const V ab = pick<0, 4, 1, 5>(a, b), ab_last = pick<2, 6, 3, 7>(a, b);
        const V cd = pick<0, 4, 1, 5>(c, d), cd_last = pick<2, 6, 3, 7>(c, d);
        return {{pick<0, 1, 4, 5>(ab, cd), pick<2, 3, 6, 7>(ab, cd),
                 pick<0, 1, 4, 5>(ab_last, cd_last), pick<2, 3, 6, 7>(ab_last, cd_last)}};
    }
}

// Asks for what lies there, which may be beyond the end.
ISOTONE_INLINE void prefetch(const char* p, std::ptrdiff_t offset) {
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + offset));
}

// Four columns of a full tile that are in rows.
template <class Raw, class Snap, class T>
bool snap_rows(Snap snap, const Feature* features, const char* p, std::ptrdiff_t stride, int size,
               T* u) {
    using V = Vector<Raw>;
    auto finite = ~Mask<V>{};
    for (int e = 0; e < size; e += n_lanes<V>, p += n_lanes<V> * stride) {
        for (int k = 0; k < n_lanes<V>; ++k) prefetch(p, (size + k) * stride);  // the next tile
        const Four<V> x = turn_rows<Raw>(p, stride);
        unroll<4>([&](auto i) ISOTONE_LAMBDA {
            finite &= are_finite(x.columns[i]);
            snap(features[i], x.columns[i], u + i * size + e);
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
bool snap_last(Snap snap, const Feature& feature, const Column& column, std::size_t event,
               std::size_t n, int size, T* u) {
    return snap_events<double>(snap, feature, size, u, [&](int e) ISOTONE_LAMBDA {
        Doubles x = {};
        for (int k = 0; k < n_lanes<Doubles>; ++k)
            x[k] = read(column, event + e + k < n ? event + e + k : n - 1);
        return x;
    });
}

// A feature of one event. Returns whether it is finite, in every lane.
template <class T>
ISOTONE_INLINE Bits prepare_one(const Model<T>& model, const Feature& feature,
                                const Column& column, std::size_t event, T* u) {
    const Doubles wide = broadcast<Doubles>(read(column, event));
    with_snap(model, feature.log,
              [&](auto snap) ISOTONE_LAMBDA { *u = static_cast<T>(snap(feature, wide)[0]); });
    return are_finite(wide);
}

// Snapped features: u[i] holds as many events as are in a tile. Returns whether all were finite.
template <class T>
bool prepare(const Model<T>& model, const Column* columns, std::size_t event, std::size_t n,
             int size, T* u) {
    bool finite = true;
    for (int i = 0, block; i < model.n_features; i += block, u += block * size) {
        const Feature* feature = model.features + i;
        const Column& column = columns[i];
        const char* p = locate(column, event);
        const int lanes = column.single ? n_lanes<Vector<float>> : n_lanes<Doubles>;
        const bool full = event + size <= n && size % lanes == 0;
        const bool are_four = full && i + 4 <= model.n_features && are_in_rows(&column);
        block = are_four && !have_logarithms(feature) ? 4 : 1;
        finite &= with_snap(model, feature->log, [&](auto snap) ISOTONE_LAMBDA {
            if (!full) return snap_last(snap, *feature, column, event, n, size, u);
            if (column.single)
                return snap_columns<float>(snap, feature, p, column.stride, block, size, u);
            return snap_columns<double>(snap, feature, p, column.stride, block, size, u);
        });
    }
    return finite;
}

}  // namespace isotone::ISOTONE_ISA
