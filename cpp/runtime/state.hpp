// ---- floating-point state -----------------------------------------------------------------
#pragma once

#include "opening.hpp"

namespace isotone::ISOTONE_ISA {

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

// Puts the thread into the default state, and returns the one it was in. What follows is not
// computed before, and what precedes `leave_default_state` not after. There are no objects whose
// end restores the state, because these would need the exception handling of the standard library.
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

}  // namespace isotone::ISOTONE_ISA
