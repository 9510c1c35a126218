// Which fields add to which vectors of a row of units: all to all or, where weights are masked,
// some to some, so that no zeros are looked up.
#pragma once

#include "trainer/products.hpp"
#include "trainer/trainer.hpp"

namespace isotone::ISOTONE_ISA {

constexpr int looked_up_per_block = 6;  // vectors: as many as there are registers for

// Whether other copies add something while one of them moves.
inline bool has_others(Field field) { return !field.is_category && field.count > 1; }

// A field, and for every vector of a row whether it adds to it. Tables hold only those to which it
// does, `stride` of them for every copy.
struct Adding : Field {
    int usual;   // the cell that most rows have, or negative
    int column;  // of the rows otherwise
    const std::uint8_t* adds;
    int stride;
    std::size_t offset;  // of the first copy in a table
};

// What a field adds to vectors of a row: those of copy k are at offset + k stride in a table.
struct Addend {
    int field, column, stride;
    std::ptrdiff_t offset;
    bool has_others;

    // Of the copy that moves.
    std::ptrdiff_t at(std::int32_t cell) const { return offset + std::ptrdiff_t{cell} * stride; }
};

// Vectors of a row, one after the other, to which the same fields add. Behind the addends that
// every event looks up are those of fields with a usual cell.
struct Panel {
    int first, count;
    const Addend* addends;
    int n_addends;
    const int* places;  // of a field among the addends, negative if it adds nothing

    // Calls run(addend) for those that every event looks up.
    template <class Run>
    ISOTONE_INLINE void for_all(Run run) const {
        for (int i = 0; i < n_addends; ++i) run(addends[i]);
    }
};

// To how many vectors below `end`.
inline int count_added(const Adding& field, int end) {
    int n = 0;
    for (int e = 0; e < end; ++e) n += field.adds[e];
    return n;
}

// Calls run(n, e, at) for vectors e to e + n, below `end`, of a row that a field adds to, which
// are its vectors `at` to `at` + n; n is as many as there are registers for.
template <class Run>
void for_added(const Adding& field, int end, Run run) {
    int at = 0;
    for (int e = 0; e < end; ++e) {
        int last = e;
        while (last < end && field.adds[last]) ++last;
        for (int n_left = last - e; n_left > 0; n_left -= looked_up_per_block)
            with_constant<looked_up_per_block>(n_left, [&](auto n) {
                run(n, e, at);
                e += n, at += n;
            });
    }
}

// All fields of a first layer that is looked up.
struct Addends {
    Adding* fields;
    Panel* panels;  // of all vectors of a row
    int n_fields, n_panels;
    std::size_t n_vectors;  // of a table

    template <class Arena>
    void take(int n, int n_row_vectors, Arena& arena) {
        n_fields = n, size = n_row_vectors;
        const std::size_t n_pairs = static_cast<std::size_t>(n) * size;
        adds = arena.template take<std::uint8_t>(n_pairs);
        fields = arena.template take<Adding>(n);
        panels = arena.template take<Panel>(size);
        addends = arena.template take<Addend>(n_pairs);
        places = arena.template take<int>(n_pairs);
    }

    // The first vectors of a row are units, the others outputs.
    template <class T>
    void find(const Shape& shape, const Usual<T>& usual, int n_unit_vectors, int lanes) {
        find_fields(shape, usual, n_unit_vectors, lanes);
        find_panels();
    }

    // Calls run(n, panel), n being the number of its vectors.
    template <class Run>
    void for_panels(Run run) const {
        for (int i = 0; i < n_panels; ++i)
            with_constant<looked_up_per_block>(panels[i].count,
                                               [&](auto n) { run(n, panels[i]); });
    }

private:
    // A field adds to the units that its weights are not masked for, and to all outputs.
    template <class T>
    void find_fields(const Shape& shape, const Usual<T>& usual, int n_unit_vectors, int lanes) {
        const int n_units = shape.layers[0].n_out;
        n_vectors = 0;
        for (int f = 0, column = 0; f < n_fields; ++f) {
            std::uint8_t* const own = adds + f * size;
            fields[f] = {shape.fields[f], usual.cell(f), column, own, 0, n_vectors};
            column += fields[f].usual < 0;
            Adding& field = fields[f];
            for (int e = 0; e < size; ++e) own[e] = e >= n_unit_vectors || !shape.mask;
            for (int k = field.first; shape.mask && k < field.first + field.count; ++k)
                for (int j = 0; j < n_units; ++j)
                    own[j / lanes] |= shape.mask[static_cast<std::size_t>(k) * n_units + j];
            field.stride = count_added(field, size);
            n_vectors += static_cast<std::size_t>(field.count) * field.stride;
        }
    }

    void find_panels() {
        Addend* next = addends;
        n_panels = 0;
        for (int e = 0; e < size; e += panels[n_panels++].count) {
            int* const own = places + n_panels * n_fields;
            Panel& panel = panels[n_panels] = {e, 1, next, 0, own};
            const auto add = [&](bool usual) {
                for (int f = 0; f < n_fields; ++f)
                    if ((fields[f].usual >= 0) == usual) {
                        own[f] = fields[f].adds[e] ? static_cast<int>(next - panel.addends) : -1;
                        if (fields[f].adds[e]) *next++ = addend(f, e);
                    }
            };
            add(false);
            panel.n_addends = static_cast<int>(next - panel.addends);
            add(true);
            while (e + panel.count < size && panel.count < looked_up_per_block &&
                   has_same_fields(e, e + panel.count))
                ++panel.count;
        }
    }

    Addend addend(int f, int e) const {
        const Adding& field = fields[f];
        const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(field.offset);
        return {f, field.column, field.stride,
                first - std::ptrdiff_t{field.first} * field.stride + count_added(field, e),
                has_others(field)};
    }

    bool has_same_fields(int e, int other) const {
        for (int f = 0; f < n_fields; ++f)
            if (fields[f].adds[e] != fields[f].adds[other]) return false;
        return true;
    }

    int size;            // vectors of a row
    std::uint8_t* adds;  // (n_fields, size)
    Addend* addends;     // of all panels
    int* places;         // likewise, (n_fields,) each
};

}  // namespace isotone::ISOTONE_ISA
