// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The allocator's functions that the program would call without the recorder.
///
/// They are looked up with dlsym(RTLD_NEXT), each by its own name, so that a program with another
/// allocator in a library (jemalloc, tcmalloc, another preload) keeps it: mixing two allocators
/// would crash the program. Allocations by the look-up itself come from the recorder's own memory.

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include <trace_ring/atomic.hpp>

namespace heap {

namespace impl {

/// The next function of that name, as found by a program that was linked against `version`: in the
/// first library that has this version of it, or one without a version. dlsym skips the former (all
/// of glibc's libc_malloc_debug.so), and dlvsym the latter (most other allocators).
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

#if __SIZEOF_SIZE_T__ == 8
#define HEAP_SIZE "m"  // a std::size_t in a mangled name
#else
#define HEAP_SIZE "j"
#endif
inline constexpr const char* operator_new_name = "_Znw" HEAP_SIZE;

/// The scope in which operator new and related operators are looked up. It is the same for all of
/// them, because a block must be returned to the allocator that it came from.
inline constinit trace_ring::atomic<std::uintptr_t> operator_scope{0};

/// False: it was already decided.
inline bool decide(void* scope) noexcept {
    std::uintptr_t none = 0;
    // relaxed: nothing is published except the handle
    return operator_scope.compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(scope),
                                                  trace_ring::relaxed);
}
[[nodiscard]] inline void* find_operator(const char* name, const char*) noexcept {
    // relaxed: as above
    if (operator_scope.load(trace_ring::relaxed) == 0) {
        if (::dlsym(RTLD_NEXT, operator_new_name) == nullptr) return nullptr;
        decide(RTLD_NEXT);
    }
    return ::dlsym(reinterpret_cast<void*>(operator_scope.load(trace_ring::relaxed)), name);
}

}  // namespace impl

/// For a program that is not C++ but loads a C++ library, together with a C++ runtime that only
/// this library sees: `pc` is in its code. The object with the operators stays loaded from then on.
[[gnu::cold]] inline void find_operators_of(std::uintptr_t pc) noexcept {
    dl_find_object object{};
    if (impl::find_operator(impl::operator_new_name, nullptr) != nullptr ||
        ::_dl_find_object(reinterpret_cast<void*>(pc), &object) != 0 ||
        *object.dlfo_link_map->l_name == '\0') {
        return;
    }
    void* const user = ::dlopen(object.dlfo_link_map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (user == nullptr) return;
    void* const found = ::dlsym(user, impl::operator_new_name);
    if (found != nullptr && ::_dl_find_object(found, &object) == 0) {
        impl::decide(::dlopen(object.dlfo_link_map->l_name, RTLD_LAZY | RTLD_NOLOAD));
    }
    ::dlclose(user);
}

/// One function, looked up at its first use. Any thread may be the first; all find the same
/// function.
template <class Signature>
class next_function;

template <class Result, class... Args>
class next_function<Result(Args...)> {
public:
    using finder = void* (*)(const char* name, const char* version) noexcept;

    constexpr explicit next_function(const char* name, const char* version = nullptr,
                                     finder find = impl::find_next) noexcept
        : name_(name), version_(version), find_(find) {}

    /// Null only if nothing after the recorder has such a function.
    [[nodiscard]] auto get() noexcept -> Result (*)(Args...) {
        // relaxed: code is there before anything runs
        std::uintptr_t found = found_.load(trace_ring::relaxed);
        if (found == 0) [[unlikely]] {
            found = reinterpret_cast<std::uintptr_t>(find_(name_, version_));
            found_.store(found, trace_ring::relaxed);  // relaxed: as above
        }
        return reinterpret_cast<Result (*)(Args...)>(found);
    }
    [[nodiscard]] bool known() const noexcept {
        return found_.load(trace_ring::relaxed) != 0;  // relaxed: as above
    }
    [[nodiscard]] const char* name() const noexcept { return name_; }

private:
    const char* name_;
    const char* version_;
    finder find_;
    trace_ring::atomic<std::uintptr_t> found_{0};
};

/// A C++ operator. All of them are looked up in the same way.
template <class Signature>
struct next_operator : next_function<Signature> {
    constexpr explicit next_operator(const char* name) noexcept
        : next_function<Signature>(name, nullptr, impl::find_operator) {}
};

// Functions of the C library, with the version that first had them on this machine.
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

/// operator new and operator delete, or those of arrays, in all their forms.
template <bool Array>
struct next_operators {
    next_operator<void*(std::size_t)> make{name("_Znw" HEAP_SIZE, "_Zna" HEAP_SIZE)};
    next_operator<void*(std::size_t, const std::nothrow_t&)> make_nothrow{
        name("_Znw" HEAP_SIZE "RKSt9nothrow_t", "_Zna" HEAP_SIZE "RKSt9nothrow_t")};
    next_operator<void*(std::size_t, std::align_val_t)> make_aligned{
        name("_Znw" HEAP_SIZE "St11align_val_t", "_Zna" HEAP_SIZE "St11align_val_t")};
    next_operator<void*(std::size_t, std::align_val_t, const std::nothrow_t&)> make_aligned_nothrow{
        name("_Znw" HEAP_SIZE "St11align_val_tRKSt9nothrow_t",
             "_Zna" HEAP_SIZE "St11align_val_tRKSt9nothrow_t")};
    next_operator<void(void*)> drop{name("_ZdlPv", "_ZdaPv")};
    next_operator<void(void*, std::size_t)> drop_sized{
        name("_ZdlPv" HEAP_SIZE, "_ZdaPv" HEAP_SIZE)};
    next_operator<void(void*, const std::nothrow_t&)> drop_nothrow{
        name("_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t")};
    next_operator<void(void*, std::align_val_t)> drop_aligned{
        name("_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t")};
    next_operator<void(void*, std::size_t, std::align_val_t)> drop_sized_aligned{
        name("_ZdlPv" HEAP_SIZE "St11align_val_t", "_ZdaPv" HEAP_SIZE "St11align_val_t")};
    next_operator<void(void*, std::align_val_t, const std::nothrow_t&)> drop_aligned_nothrow{
        name("_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t")};

    template <class Visit>
    constexpr void each(Visit visit) {
        visit(make), visit(make_nothrow), visit(make_aligned), visit(make_aligned_nothrow);
        visit(drop), visit(drop_sized), visit(drop_nothrow), visit(drop_aligned);
        visit(drop_sized_aligned), visit(drop_aligned_nothrow);
    }

private:
    [[nodiscard]] static constexpr const char* name(const char* one, const char* array) noexcept {
        return Array ? array : one;
    }
};

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
    // C23 functions: not every C library has them, and free does the same.
    next_function<void(void*, std::size_t)> free_sized{"free_sized"};
    next_function<void(void*, std::size_t, std::size_t)> free_aligned_sized{"free_aligned_sized"};
    // glibc's alternative names, for allocators that are loaded before its own; free's oldest one.
    next_function<void*(std::size_t)> libc_malloc{"__libc_malloc", first_version};
    next_function<void*(std::size_t, std::size_t)> libc_calloc{"__libc_calloc", first_version};
    next_function<void*(void*, std::size_t)> libc_realloc{"__libc_realloc", first_version};
    next_function<void(void*)> libc_free{"__libc_free", first_version};
    next_function<void*(std::size_t, std::size_t)> libc_memalign{"__libc_memalign", first_version};
    next_function<void*(std::size_t)> libc_valloc{"__libc_valloc", first_version};
    next_function<void*(std::size_t)> libc_pvalloc{"__libc_pvalloc", first_version};
    next_function<void(void*)> cfree{"cfree", first_version};
    next_operators<false> one;
    next_operators<true> array;
    next_operator<std::new_handler(std::new_handler)> set_new_handler{"_ZSt15set_new_handlerPFvvE"};
    next_operator<std::new_handler()> get_new_handler{"_ZSt15get_new_handlerv"};
    next_function<int(void*)> dlclose{"dlclose"};

    /// The functions whose calls are recorded.
    template <class Visit>
    constexpr void each_recorded(Visit visit) {
        visit(malloc), visit(calloc), visit(realloc), visit(reallocarray), visit(free);
        visit(posix_memalign), visit(aligned_alloc), visit(memalign), visit(valloc), visit(pvalloc);
        visit(free_sized), visit(free_aligned_sized), visit(cfree);
        visit(libc_malloc), visit(libc_calloc), visit(libc_realloc), visit(libc_free);
        visit(libc_memalign), visit(libc_valloc), visit(libc_pvalloc);
        one.each(visit), array.each(visit);
    }
};
inline constexpr std::size_t recorded_functions = [] {
    next_functions all;
    std::size_t count = 0;
    all.each_recorded([&count](auto&) { ++count; });
    return count;
}();

}  // namespace heap
