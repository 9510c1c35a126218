// Sorts rows in memory. Compiled once per instruction set, in its own namespace; no functions of
// the standard library here, for the reason given in isotone.hpp.
#include "sorter/sorter.hpp"

#include <new>

#include "sorter/sorting.hpp"
#include "sorter/transpose.hpp"

namespace isotone::ISOTONE_ISA {
namespace {

// ---- between rows in memory and lanes -----------------------------------------------------

// Calls move_tile(row, column) for tiles that cover the rows, as far as tiles fit; the last
// column of tiles may overlap the one before it. Returns the number of rows covered.
template <int size, class MoveTile>
inline int cover_with_tiles(int rows, int n, MoveTile move_tile) {
    if (n < size) return 0;
    const int covered = rows - rows % size;
    for (int row = 0; row < covered; row += size) {
        for (int column = 0; column < n - size; column += size) move_tile(row, column);
        move_tile(row, n - size);
    }
    return covered;
}

template <class T, class V>
void load_rows(const T* x, int rows, int n, V* v) {
    constexpr int size = tile_size<T>;
    using Row = Vector<T, size>;
    const int covered = cover_with_tiles<size>(rows, n, [&](int row, int column) {
        Row tile[size];
        for (int i = 0; i < size; ++i)
            __builtin_memcpy(&tile[i], x + (row + i) * n + column, sizeof(Row));
        transpose(tile);
        for (int i = 0; i < size; ++i)
            __builtin_memcpy(reinterpret_cast<T*>(v + column + i) + row, &tile[i], sizeof(Row));
    });
    for (int row = covered; row < rows; ++row)
        for (int j = 0; j < n; ++j) v[j][row] = x[row * n + j];
    // Spare lanes hold an ascending row, which never asks for the careful sorter.
    for (int row = rows; row < n_lanes<V>; ++row)
        for (int j = 0; j < n; ++j) v[j][row] = static_cast<T>(j);
}

template <class V, class Out>
void store_rows(const V* v, int rows, int n, Out* out) {
    using T = Element<V>;
    constexpr int size = tile_size<T>;
    using Row = Vector<T, size>;
    using OutRow = Vector<Out, size>;
    const int covered = cover_with_tiles<size>(rows, n, [&](int row, int column) {
        Row tile[size];
        for (int i = 0; i < size; ++i)
            __builtin_memcpy(&tile[i], reinterpret_cast<const T*>(v + column + i) + row,
                             sizeof(Row));
        transpose(tile);
        for (int i = 0; i < size; ++i) {
            const OutRow converted = __builtin_convertvector(tile[i], OutRow);
            __builtin_memcpy(out + (row + i) * n + column, &converted, sizeof(OutRow));
        }
    });
    for (int row = covered; row < rows; ++row)
        for (int j = 0; j < n; ++j) out[row * n + j] = static_cast<Out>(v[j][row]);
}

// ---- sorting ------------------------------------------------------------------------------

template <class V>
struct Lanes {
    static constexpr std::align_val_t alignment{sizeof(V)};
    V* v;
    Mask<V>* origin;

    explicit Lanes(int n)
        : v(static_cast<V*>(::operator new(2 * n * sizeof(V), alignment))),
          origin(reinterpret_cast<Mask<V>*>(v + n)) {}
    ~Lanes() { ::operator delete(v, alignment); }
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;
};

template <class T, class V>
void sort_block(const SortTask<T>& task, std::size_t first, int rows, Lanes<V>& lanes) {
    const int n = task.group_size;
    const std::size_t start = first * n;
    load_rows(task.x + start, rows, n, lanes.v);
    if (task.index)
        sort_lanes(lanes.v, lanes.origin, n, task.network);
    else
        sort_lanes(lanes.v, n, task.network);
    if (!is_strictly_ascending(lanes.v, n)) {
        load_rows(task.x + start, rows, n, lanes.v);
        sort_lanes_stable(lanes.v, lanes.origin, n, task.network);
    }
    store_rows(lanes.v, rows, n, task.values + start);
    if (task.index) store_rows(lanes.origin, rows, n, task.index + start);
}

// Neighbors need no lanes: the compiler vectorizes this as it is.
template <bool with_index, class T>
void sort_pairs(const T* x, T* values, std::int16_t* index, std::size_t n_groups) {
    for (std::size_t r = 0; r < n_groups; ++r) {
        const T a = x[2 * r], b = x[2 * r + 1];
        const bool swap = (b < a) | ((a != a) & (b == b));
        values[2 * r] = swap ? b : a;
        values[2 * r + 1] = swap ? a : b;
        if constexpr (with_index) {
            index[2 * r] = swap;
            index[2 * r + 1] = !swap;
        }
    }
}

template <class T>
void sort(const SortTask<T>& task) {
    if (task.group_size == 2) {
        const auto sorter = task.index ? sort_pairs<true, T> : sort_pairs<false, T>;
        return sorter(task.x, task.values, task.index, task.n_groups);
    }
    using V = Vector<T>;
    Lanes<V> lanes(task.group_size);
    for (std::size_t first = 0; first < task.n_groups; first += n_lanes<V>) {
        const std::size_t left = task.n_groups - first;
        const int rows = left < n_lanes<V> ? static_cast<int>(left) : n_lanes<V>;
        sort_block(task, first, rows, lanes);
    }
}

}  // namespace

const SorterKernels sorter = {sort<float>, sort<double>};

}  // namespace isotone::ISOTONE_ISA
