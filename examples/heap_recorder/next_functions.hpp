// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The allocator's own functions: those that the program would call were the recorder not there.
///
/// They are looked up with dlsym(RTLD_NEXT), not called as glibc's __libc_malloc and its like, so
/// that a program with another allocator in a library (jemalloc, tcmalloc, another preload) keeps
/// it: mixing two allocators would crash it. What the look-up itself allocates comes from the
/// recorder's own memory.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace heap {

/// One function, looked up at its first use. Any thread may be the first: all find the same.
template <class Signature>
class next_function;

template <class Result, class... Args>
class next_function<Result(Args...)> {
public:
    constexpr explicit next_function(const char* name) noexcept : name_(name) {}

    /// Null only if nothing after the recorder has such a function.
    [[nodiscard]] auto get() noexcept -> Result (*)(Args...) {
        // relaxed: code is there before anything runs
        std::uintptr_t found = found_.load(trace_ring::relaxed);
        if (found == 0) [[unlikely]] {
            found = reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_NEXT, name_));
            found_.store(found, trace_ring::relaxed);  // relaxed: as above
        }
        return reinterpret_cast<Result (*)(Args...)>(found);
    }
    [[nodiscard]] bool known() const noexcept {
        return found_.load(trace_ring::relaxed) != 0;  // relaxed: as above
    }

private:
    const char* name_;
    trace_ring::atomic<std::uintptr_t> found_{0};
};

struct next_functions {
    next_function<void*(std::size_t)> malloc{"malloc"};
    next_function<void*(std::size_t, std::size_t)> calloc{"calloc"};
    next_function<void*(void*, std::size_t)> realloc{"realloc"};
    next_function<void*(void*, std::size_t, std::size_t)> reallocarray{"reallocarray"};
    next_function<void(void*)> free{"free"};
    next_function<int(void**, std::size_t, std::size_t)> posix_memalign{"posix_memalign"};
    next_function<void*(std::size_t, std::size_t)> aligned_alloc{"aligned_alloc"};
    next_function<void*(std::size_t, std::size_t)> memalign{"memalign"};
    next_function<void*(std::size_t)> valloc{"valloc"};
    next_function<void*(std::size_t)> pvalloc{"pvalloc"};
    next_function<int(void*)> dlclose{"dlclose"};
};

}  // namespace heap
