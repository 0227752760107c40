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
#include <link.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>

namespace heap {

namespace impl {

/// The next function of that name, as a program finds it that was linked against `version`: in the
/// first library that has that version of it or one without a version. dlsym passes over the
/// former (all of glibc's libc_malloc_debug.so), dlvsym over the latter (most other allocators).
[[nodiscard]] inline void* find_next(const char* name, const char* version) noexcept {
    void* const plain = ::dlsym(RTLD_NEXT, name);
    void* const exact = version == nullptr ? nullptr : ::dlvsym(RTLD_NEXT, name, version);
    dl_find_object of_plain{}, of_exact{};
    if (plain == exact || exact == nullptr || ::_dl_find_object(exact, &of_exact) != 0) {
        return plain;
    }
    if (plain == nullptr || ::_dl_find_object(plain, &of_plain) != 0) return exact;
    for (const link_map* map = of_exact.dlfo_link_map; map != nullptr; map = map->l_next) {
        if (map == of_plain.dlfo_link_map) return exact;  // it comes first
    }
    return plain;
}

}  // namespace impl

/// One function, looked up at its first use. Any thread may be the first: all find the same.
template <class Signature>
class next_function;

template <class Result, class... Args>
class next_function<Result(Args...)> {
public:
    constexpr explicit next_function(const char* name, const char* version = nullptr) noexcept
        : name_(name), version_(version) {}

    /// Null only if nothing after the recorder has such a function.
    [[nodiscard]] auto get() noexcept -> Result (*)(Args...) {
        // relaxed: code is there before anything runs
        std::uintptr_t found = found_.load(trace_ring::relaxed);
        if (found == 0) [[unlikely]] {
            found = reinterpret_cast<std::uintptr_t>(impl::find_next(name_, version_));
            found_.store(found, trace_ring::relaxed);  // relaxed: as above
        }
        return reinterpret_cast<Result (*)(Args...)>(found);
    }
    [[nodiscard]] bool known() const noexcept {
        return found_.load(trace_ring::relaxed) != 0;  // relaxed: as above
    }

private:
    const char* name_;
    const char* version_;
    trace_ring::atomic<std::uintptr_t> found_{0};
};

// Of the C library, by when it had the function first on this machine.
#if defined(__x86_64__)
inline constexpr const char* first_version = "GLIBC_2.2.5";
inline constexpr const char* posix_version = first_version;
inline constexpr const char* c11_version = "GLIBC_2.16";
#elif defined(__i386__)
inline constexpr const char* first_version = "GLIBC_2.0";
inline constexpr const char* posix_version = "GLIBC_2.2";
inline constexpr const char* c11_version = "GLIBC_2.16";
#elif defined(__aarch64__)
inline constexpr const char* first_version = "GLIBC_2.17";
inline constexpr const char* posix_version = first_version;
inline constexpr const char* c11_version = first_version;
#else
inline constexpr const char* first_version = nullptr;
inline constexpr const char* posix_version = nullptr;
inline constexpr const char* c11_version = nullptr;
#endif

struct next_functions {
    next_function<void*(std::size_t)> malloc{"malloc", first_version};
    next_function<void*(std::size_t, std::size_t)> calloc{"calloc", first_version};
    next_function<void*(void*, std::size_t)> realloc{"realloc", first_version};
    next_function<void*(void*, std::size_t, std::size_t)> reallocarray{"reallocarray",
                                                                       "GLIBC_2.26"};
    next_function<void(void*)> free{"free", first_version};
    next_function<int(void**, std::size_t, std::size_t)> posix_memalign{"posix_memalign",
                                                                        posix_version};
    next_function<void*(std::size_t, std::size_t)> aligned_alloc{"aligned_alloc", c11_version};
    next_function<void*(std::size_t, std::size_t)> memalign{"memalign", first_version};
    next_function<void*(std::size_t)> valloc{"valloc", first_version};
    next_function<void*(std::size_t)> pvalloc{"pvalloc", first_version};
    next_function<int(void*)> dlclose{"dlclose"};
};

}  // namespace heap
