// isotone.hpp: the whole runtime of a frozen isotone network, in one file without dependencies.
//
// A network is a `Model`: plain numbers, made by the library or by an exported header. `score`
// computes, for every event, f_j = g_j(u) + sum_i r_ji u_i, where u is the event scaled, clamped
// and rounded to a grid. Events lie across the lanes of vectors, a few vectors make a tile, and a
// tile goes through all steps while it is in the first-level cache. Nothing is allocated.
//
// In double precision the score of an event is the same to the last bit whatever its neighbors,
// the size of the batch, the instruction set and the compiler's options: every sum runs from the
// bias on, input after input, and no multiplication is fused with an addition. In single precision
// it depends on nothing but the event and on whether the processor has fused multiply-add, which
// is used.
//
// An event with a NaN or an infinite feature gets the score `fill`.
//
// The process may flush denormal numbers to zero or round otherwise than to nearest, as a library
// built with -ffast-math makes it do: `score` computes in the default state and leaves the one it
// found.
//
// C++17; GCC 12 or Clang 14, or newer. Compile with -O3 and the best -march that you have.
#pragma once

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    __FINITE_MATH_ONLY__
#error \
    "isotone.hpp needs IEEE arithmetic: compile without -ffast-math and the options it stands for"
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

// Code is compiled once per instruction set into a namespace of this name. Names must differ
// between those copies: the linker would keep one of them, and an old machine could be left with
// AVX-512 code.
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
// For what only some models need, so that the others keep their registers and caches.
#define ISOTONE_APART __attribute__((noinline))
