// The rows that a batch or a tile visits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isotone::ISOTONE_ISA {

// The rows order[first], ..., order[first + n - 1], or first, ..., first + n - 1 without an order.
struct Visits {
    const std::int32_t* order;
    std::size_t first, n;
    std::size_t row(std::size_t i) const {
        return order ? static_cast<std::size_t>(order[first + i]) : first + i;
    }
    Visits part(std::size_t begin, std::size_t most) const {
        const std::size_t left = n - begin;
        return {order, first + begin, left < most ? left : most};
    }
};

}  // namespace isotone::ISOTONE_ISA
