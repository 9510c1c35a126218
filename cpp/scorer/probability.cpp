// Logistic and softmax function of logits, from monotone operations only: the operations of
// `isotone.frozen.reference.probability`, and its bits. Compiled once per instruction set.
#include "scorer/probability.hpp"

namespace isotone::ISOTONE_ISA {
namespace {

constexpr double cells = 0x1p30;  // per unit of the argument

// Exponential with its argument rounded to a grid first, so that it is monotone as computed.
inline Doubles monotone_exponential(Doubles x) {
    const Doubles most = broadcast<Doubles>(700.0);
    const Doubles clamped = minimum(maximum(x, -most), most);
    const Doubles e = exponential(round_even(clamped * cells) * (1.0 / cells) + 0.0);
    return x == x ? e : x;
}

// Logit k of as many rows from `row` on as there are lanes; the last row is repeated.
inline Doubles load_logits(const double* logits, std::size_t n, std::size_t m, std::size_t row,
                           std::size_t k) {
    constexpr std::size_t lanes = n_lanes<Doubles>;
    if (m == 1 && row + lanes <= n) return load<Doubles>(logits + row);
    Doubles z = {};
    for (std::size_t i = 0; i < lanes; ++i) z[i] = logits[(row + i < n ? row + i : n - 1) * m + k];
    return z;
}

inline Doubles find_probability(const double* logits, std::size_t n, std::size_t m,
                                std::size_t row, std::size_t k) {
    const Doubles own = load_logits(logits, n, m, row, k);
    if (m == 1) return 1.0 / (1.0 + monotone_exponential(-own));
    Doubles total = {};
    for (std::size_t other = 0; other < m; ++other)
        total += monotone_exponential(load_logits(logits, n, m, row, other) - own);
    return 1.0 / total;
}

}  // namespace

void find_probabilities(const double* logits, std::size_t n, std::size_t m, double* out) {
    constexpr std::size_t lanes = n_lanes<Doubles>;
    const std::uint64_t state = enter_default_state();
    for (std::size_t row = 0; row < n; row += lanes)
        for (std::size_t k = 0; k < m; ++k) {
            const Doubles p = find_probability(logits, n, m, row, k);
            for (std::size_t i = 0; i < lanes && row + i < n; ++i) out[(row + i) * m + k] = p[i];
        }
    leave_default_state(state);
}

}  // namespace isotone::ISOTONE_ISA
