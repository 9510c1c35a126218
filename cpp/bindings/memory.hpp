// Memory aligned for the vectors of every instruction set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "bindings/kernels.hpp"

namespace isotone {

struct FreeAligned {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(workspace_alignment)); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], FreeAligned>;

// Room for numbers, which are not set.
template <class T>
AlignedArray<T> allocate_aligned(std::size_t size) {
    const auto alignment = std::align_val_t(workspace_alignment);
    return AlignedArray<T>(static_cast<T*>(::operator new(size * sizeof(T), alignment)));
}

// A workspace, kept by every thread for its next call.
template <class T>
T* find_workspace(std::size_t size) {
    thread_local AlignedArray<T> memory;
    thread_local std::size_t capacity = 0;
    if (size > capacity) {
        memory.reset();
        capacity = 0;
        memory = allocate_aligned<T>(size);
        capacity = size;
    }
    return memory.get();
}

}  // namespace isotone
