// What one core can do at most: fused multiply-adds, or minima and maxima, on all vector registers.
// Twelve independent chains hide the latency; the empty assembly keeps the compiler from thinking, and
// `unroll` keeps the chains in registers: stored in every round, they would measure the stores.
#include "isotone.hpp"

using namespace isotone::ISOTONE_ISA;
using V = Vector<float>;

namespace {

constexpr int n_chains = 12;

template <class Operation>
float run(long n, Operation operation) {
    V chains[n_chains];
    unroll<n_chains>([&](auto i) ISOTONE_LAMBDA { chains[i] = broadcast<V>(1.0f + i); });
    for (long k = 0; k < n; ++k)
        unroll<n_chains>([&](auto i) ISOTONE_LAMBDA {
            V chain = operation(chains[i]);
#if defined(__AVX512F__)
            asm volatile("" : "+v"(chain));
#elif defined(__SSE2__)
            asm volatile("" : "+x"(chain));
#else
            asm volatile("" : "+w"(chain));
#endif
            chains[i] = chain;
        });
    V sum = chains[0];
    unroll<n_chains>([&](auto i) ISOTONE_LAMBDA { sum += chains[i]; });
    return sum[0];
}

}  // namespace

// Each does n rounds of one operation on every lane of every chain.
extern "C" float fuse(long n) {
    const V a = broadcast<V>(0.999f), b = broadcast<V>(0.001f);
    return run(n, [&](V x) ISOTONE_LAMBDA { return accumulate(b, a, x); });
}

extern "C" float compare(long n) {
    const V a = broadcast<V>(0.5f);
    return run(n, [&](V x) ISOTONE_LAMBDA { return maximum(x, a); });
}

extern "C" long operations_per_round() { return n_chains * n_lanes<V>; }
