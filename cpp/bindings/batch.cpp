#include "bindings/batch.hpp"

namespace nb = nanobind;

namespace isotone {
namespace {

bool read_rows(nb::handle X, int n_columns, Batch& batch) {
    const Buffer& buffer = batch.rows.emplace(X, PyBUF_RECORDS_RO);
    const Py_buffer& view = buffer.view();
    if (!buffer.is_float() || view.ndim != 2 || view.shape[1] != n_columns) return false;
    batch.n = view.shape[0];
    for (int i = 0; i < n_columns; ++i)
        batch.columns.push_back({static_cast<const char*>(view.buf) + i * view.strides[1],
                                 view.strides[0], buffer.is_single()});
    return true;
}

bool read_columns(nb::handle X, int n_columns, Batch& batch) {
    for (nb::handle column : nb::cast<nb::sequence>(X)) {
        const Buffer& buffer = batch.buffers.emplace_back(column, PyBUF_RECORDS_RO);
        const Py_buffer& view = buffer.view();
        if (!buffer.is_float() || view.ndim != 1) return false;
        const std::size_t n = view.shape[0];
        if (!batch.columns.empty() && n != batch.n) return false;
        batch.n = n;
        batch.columns.push_back({view.buf, view.strides[0], buffer.is_single()});
    }
    return batch.columns.size() == static_cast<std::size_t>(n_columns);
}

}  // namespace

bool read_batch(nb::handle X, int n_columns, Batch& batch) {
    batch.columns.reserve(n_columns);
    return PyObject_CheckBuffer(X.ptr()) ? read_rows(X, n_columns, batch)
                                         : read_columns(X, n_columns, batch);
}

}  // namespace isotone
