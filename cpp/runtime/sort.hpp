// ---- sort ---------------------------------------------------------------------------------
#pragma once

#include "arithmetic.hpp"
#include "sorting_networks.hpp"

namespace isotone::ISOTONE_ISA {

// The one of a and b that is not the smaller one, `low`: a ^ b ^ low takes one or two
// instructions, and more units execute them than a maximum.
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
template <std::size_t k>
constexpr bool exchange_by_bits = vector_bytes == 64 || k % 2 == 1;

template <int n, class Wire, std::size_t... k>
ISOTONE_INLINE void exchange_wires(Wire* w, std::index_sequence<k...>) {
    constexpr auto& pairs = static_sorting_network<n>.pairs;
    (exchange<exchange_by_bits<k>>(w[pairs[k].low], w[pairs[k].high]), ...);
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

// In vectors: as a constant it leaves registers and time for more than addresses.
constexpr int full_tile = 8;
using FullTile = std::integral_constant<int, full_tile>;

template <int n, class V>
void sort_tile(V* h, int n_units, int tile) {
    if (tile == full_tile)
        sort_groups<n>(h, n_units, FullTile());
    else
        sort_groups<n>(h, n_units, tile);
}

template <class V>
void sort_groups(V* h, int n_units, int tile, int n, SortingNetwork network) {
    for (V* group = h; group != h + n_units * tile; group += n * tile)
        for (auto c = network.first; c != network.last; ++c)
            for (int v = 0; v < tile; ++v)
                exchange(group[c->low * tile + v], group[c->high * tile + v]);
}

// The group sizes for which unrolled code is compiled; others are sorted by walking the network.
template <int... sizes>
struct Unrolled {};

template <int... sizes, class V>
ISOTONE_INLINE void sort(Unrolled<sizes...>, V* h, int n_units, int tile, int n,
                         SortingNetwork network) {
    const bool done = ((n == sizes ? (sort_tile<sizes>(h, n_units, tile), true) : false) || ...);
    if (!done) sort_groups(h, n_units, tile, n, network);
}

}  // namespace isotone::ISOTONE_ISA
