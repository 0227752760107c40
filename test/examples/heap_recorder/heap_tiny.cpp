// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap_tiny.so: an allocator as jemalloc, tcmalloc and mimalloc are, in that its operator new does
/// not call its malloc. It takes memory from one piece and gives none back.

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <new>

namespace {

constexpr size_t all = size_t{64} << 20;
alignas(64) char memory[all];
size_t used = 0;

/// The size is stored before the block.
void* take(size_t size, size_t align = 16) {
    if (size > all || align > all) return nullptr;
    const size_t need = size + 16 + align;
    const size_t at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
    if (at > all || need > all - at) return nullptr;
    auto block = reinterpret_cast<uintptr_t>(memory + at) + 16;
    block = (block + align - 1) / align * align;
    memcpy(reinterpret_cast<void*>(block - sizeof size), &size, sizeof size);
    return reinterpret_cast<void*>(block);
}
void* resized(void* old, size_t size) {
    void* const block = take(size);
    if (old == nullptr || block == nullptr) return block;
    size_t had = 0;
    memcpy(&had, static_cast<char*>(old) - sizeof had, sizeof had);
    return memcpy(block, old, had < size ? had : size);
}
void* taken(size_t size, size_t align = 16) {
    for (;;) {
        if (void* const block = take(size, align)) return block;
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}
void* taken_or_null(size_t size, size_t align = 16) noexcept {
    try {
        return taken(size, align);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
size_t number(std::align_val_t align) {
    return static_cast<size_t>(align);
}

}  // namespace

#define EXPORT __attribute__((visibility("default")))

extern "C" {
EXPORT void* malloc(size_t size) noexcept {
    return take(size);
}
EXPORT void* calloc(size_t n, size_t size) noexcept {
    size_t bytes = 0;
    return __builtin_mul_overflow(n, size, &bytes) ? nullptr : take(bytes);  // never used before
}
EXPORT void* realloc(void* old, size_t size) noexcept {
    return resized(old, size);
}
EXPORT void* reallocarray(void* old, size_t n, size_t size) noexcept {
    size_t bytes = 0;
    return __builtin_mul_overflow(n, size, &bytes) ? nullptr : resized(old, bytes);
}
EXPORT void free(void*) noexcept {}
EXPORT int posix_memalign(void** to, size_t align, size_t size) noexcept {
    *to = take(size, align);
    return *to == nullptr ? ENOMEM : 0;
}
EXPORT void* aligned_alloc(size_t align, size_t size) noexcept {
    return take(size, align);
}
}

#define OPERATORS(brackets)                                                           \
    EXPORT void* operator new brackets(size_t size) {                                 \
        return taken(size);                                                           \
    }                                                                                 \
    EXPORT void* operator new brackets(size_t size, const std::nothrow_t&) noexcept { \
        return taken_or_null(size);                                                   \
    }                                                                                 \
    EXPORT void* operator new brackets(size_t size, std::align_val_t align) {         \
        return taken(size, number(align));                                            \
    }                                                                                 \
    EXPORT void* operator new brackets(size_t size, std::align_val_t align,           \
                                       const std::nothrow_t&) noexcept {              \
        return taken_or_null(size, number(align));                                    \
    }                                                                                 \
    EXPORT void operator delete brackets(void*) noexcept {}                           \
    EXPORT void operator delete brackets(void*, size_t) noexcept {}                   \
    EXPORT void operator delete brackets(void*, const std::nothrow_t&) noexcept {}    \
    EXPORT void operator delete brackets(void*, std::align_val_t) noexcept {}         \
    EXPORT void operator delete brackets(void*, size_t, std::align_val_t) noexcept {} \
    EXPORT void operator delete brackets(void*, std::align_val_t, const std::nothrow_t&) noexcept {}
OPERATORS()
OPERATORS([])
