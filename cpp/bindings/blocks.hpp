// Where masked weights may not be zero: blocks of their matrices, and ranges of the parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trainer/trainer.hpp"

namespace isotone {

// A mask that may be null: nothing is zero.
struct Matrix {
    const std::uint8_t* mask;
    int n_rows, n_columns, row_stride, column_stride;

    Matrix transposed() const { return {mask, n_columns, n_rows, column_stride, row_stride}; }
    Block all() const { return {0, n_rows, 0, n_columns}; }

    // From the first to the last entry of a row that may not be zero.
    Block row(int i) const {
        int first = n_columns, end = 0;
        for (int k = 0; k < n_columns; ++k)
            if (mask[i * row_stride + k * column_stride]) first = std::min(first, k), end = k + 1;
        return end ? Block{i, 1, first, end - first} : Block{i, 1, 0, 0};
    }
};

// Rows that follow each other and have the same columns make a block. One of all, if several would
// take as long: each costs about as much as so many products.
inline std::vector<Block> find_blocks(const Matrix& matrix) {
    constexpr std::size_t cost = 16;
    if (!matrix.mask) return {matrix.all()};
    std::vector<Block> found;
    std::size_t total = 0;
    for (int i = 0; i < matrix.n_rows; ++i) {
        const Block row = matrix.row(i);
        const bool extends = !found.empty() && found.back().column == row.column &&
                             found.back().n_columns == row.n_columns;
        if (extends)
            ++found.back().n_rows;
        else
            found.push_back(row);
        total += row.n_columns + (extends ? 0 : cost);
    }
    const std::size_t all = static_cast<std::size_t>(matrix.n_rows) * matrix.n_columns;
    return total < all ? found : std::vector<Block>{matrix.all()};
}

// All parameters that may not be zero, and others beside them, so that whole vectors are used.
inline std::vector<Range> find_ranges(const std::vector<std::uint8_t>& mask, std::size_t n) {
    constexpr std::size_t unit = 8;
    if (mask.empty()) return {{0, n}};
    std::vector<Range> found;
    for (std::size_t i = 0; i < n; ++i) {
        if (!mask[i]) continue;
        const std::size_t begin = i / unit * unit, end = std::min(begin + unit, n);
        if (!found.empty() && begin <= found.back().end)
            found.back().end = end;
        else
            found.push_back({begin, end});
    }
    return found;
}

}  // namespace isotone
