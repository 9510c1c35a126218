// Fields in which most events look up the same: a column that is mostly zero, a rare category.
//
// What they usually add is computed once per batch. An event subtracts that of the few fields in
// which it differs, and looks these up; derivatives go the same way back. A batch thus costs
// (fields in which events differ) x units, not (events x fields) x units.
#pragma once

#include "trainer/addends.hpp"
#include "trainer/arithmetic.hpp"

namespace isotone::ISOTONE_ISA {

template <class T>
struct UsualSums {
    using V = Vector<T>;
    Usual<T> given;
    V* total;  // one row: derivatives, summed over events

    template <class Arena>
    void take(int n_fields, int n_row_vectors, Arena& arena) {
        size = n_row_vectors;
        n = static_cast<std::size_t>(n_fields) * size;
        total = arena.template take<V>(size);
        adds_ = arena.template take<V>(n);
        others_ = arena.template take<V>(n);
    }

    void clear(const Usual<T>& usual) {
        given = usual;
        __builtin_memset(others_, 0, n * sizeof(V));
        clear_total();
    }
    void clear_total() { __builtin_memset(total, 0, size * sizeof(V)); }

    // What the usual cell of a field adds to a row.
    V* adds(int field) const { return adds_ + field * size; }
    // Derivatives, summed over events that have another cell in the field.
    V* others(int field) const { return others_ + field * size; }

    // Calls run(addend, cell, value) for the fields in which an event differs.
    template <class Run>
    ISOTONE_INLINE void for_others(std::size_t event, const Panel& panel, Run run) const {
        if (!given.cells) return;
        for (std::int64_t i = given.begins[event]; i < given.begins[event + 1]; ++i) {
            const int place = panel.places[given.others.fields[i]];
            if (place >= 0)
                run(panel.addends[place], given.others.cells[i], given.others.values[i]);
        }
    }

private:
    V *adds_, *others_;
    std::size_t n;
    std::ptrdiff_t size;
};

}  // namespace isotone::ISOTONE_ISA
