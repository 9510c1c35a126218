// Batches of rows in the memory of Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <list>
#include <optional>
#include <vector>

#include "bindings/kernels.hpp"

namespace isotone {

// A view of a Python object's memory, given back at the end.
class Buffer {
public:
    Buffer(nanobind::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nanobind::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    const Py_buffer& view() const { return view_; }
    bool is_single() const { return is_format('f'); }
    bool is_float() const { return is_format('f') || is_format('d'); }

private:
    bool is_format(char code) const {
        const char* format = view_.format ? view_.format : "";
        if (*format == '@' || *format == '=' || *format == '<')
            ++format;  // little-endian machines
        return format[0] == code && format[1] == '\0';
    }

    Py_buffer view_;
};

// A batch: where its columns are, and the buffers that hold them.
struct Batch {
    std::optional<Buffer> rows;  // of all columns, or
    std::list<Buffer> buffers;   // one each; a list leaves its elements where they are
    std::vector<Column> columns;
    std::size_t n = 0;
};

// Whether `X` is made of floats and has the shape that it must have: a buffer (n, n_columns), or a
// sequence with a buffer (n,) per column.
bool read_batch(nanobind::handle X, int n_columns, Batch& batch);

}  // namespace isotone
