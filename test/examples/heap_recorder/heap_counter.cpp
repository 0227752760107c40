// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap_counter.so: preloaded behind heap_recorder.so, an independent witness that only counts.
///
/// It shares nothing with the recorder but the rule that a call made by the allocator itself, while
/// it serves another one, is not a call of the program. The counts lie in a mapped file, one row
/// for each thread, so that they are exact to the last call for any end of the program.
/// HEAP_COUNTER_FILE names the file; ".N" is appended, with N the first number that is free.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

namespace {

enum function {
    f_malloc,
    f_calloc,
    f_realloc,
    f_reallocarray,
    f_free,
    f_posix_memalign,
    f_aligned_alloc,
    f_memalign,
    f_valloc,
    f_pvalloc,
    f_new,
    f_new_aligned,
    f_delete,
    f_free_sized,
    f_free_aligned_sized,
    functions
};

// As heap_recorder_test.cpp reads it.
struct row {
    uint64_t pid;
    uint64_t thread;
    uint64_t counts[functions];
};
constexpr unsigned row_count = 16384;

struct table {
    uint64_t used;
    row rows[row_count];
};

table* counts;
// In a page that fork wipes: 1, or 0 in a new child.
volatile uint32_t* same_process;
unsigned generation = 1;

struct thread_state {
    row* mine;
    unsigned generation;
    bool inside;
};
__attribute__((tls_model("initial-exec"))) thread_local thread_state here;

[[noreturn]] void give_up(const char* what) {
    dprintf(2, "heap_counter: %s: %s\n", what, strerror(errno));
    _exit(99);
}

/// Not by getenv: the first call may come before libc knows of the environment.
const char* file_name() {
    constexpr char variable[] = "HEAP_COUNTER_FILE=";
    static char all[1 << 18];
    const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    for (ssize_t got = 0; (got = read(fd, all + bytes, sizeof all - 1 - bytes)) > 0;) {
        bytes += static_cast<size_t>(got);
    }
    close(fd);
    for (const char* at = all; at < all + bytes; at += strlen(at) + 1) {
        if (strncmp(at, variable, sizeof variable - 1) == 0) return at + sizeof variable - 1;
    }
    errno = ENOENT;
    give_up("HEAP_COUNTER_FILE");
}

void set_up() {
    const char* const name = file_name();
    int fd = -1;
    for (int i = 0; fd < 0 && i < 10000; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%d", name, i);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) give_up(path);
    }
    if (fd < 0 || ftruncate(fd, sizeof(table)) != 0) give_up(name);
    void* const mapped = mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    close(fd);
    if (mapped == MAP_FAILED || page == MAP_FAILED) give_up("mmap");
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) give_up("madvise");
    same_process = static_cast<volatile uint32_t*>(page);
    *same_process = 1;
    counts = static_cast<table*>(mapped);
}

/// True if the call is the program's; it is counted then.
bool count(function which) {
    if (here.inside) return false;
    const int kept = errno;
    here.inside = true;  // no call here is the program's
    // The first call comes before there is a second thread.
    if (counts == nullptr) set_up();
    if (*same_process == 0) {
        *same_process = 1;
        ++generation;
    }
    if (here.mine == nullptr || here.generation != generation) {
        const uint64_t number = __atomic_fetch_add(&counts->used, 1, __ATOMIC_RELAXED);
        if (number >= row_count) give_up("too many threads");
        here.mine = &counts->rows[number];
        here.generation = generation;
        here.mine->pid = static_cast<uint64_t>(getpid());
        here.mine->thread = static_cast<uint64_t>(syscall(SYS_gettid));
    }
    ++here.mine->counts[which];
    here.inside = false;
    errno = kept;
    return true;
}

template <class F>
F* next(const char* name, F*& known) {
    if (known == nullptr) {
        known = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
        if (known == nullptr) give_up(name);
    }
    return known;
}

template <class Call>
auto counted(function which, Call call) {
    const bool outermost = count(which);
    if (!outermost) return call();
    here.inside = true;
    struct out {
        ~out() { here.inside = false; }
    } const at_end;
    return call();
}

}  // namespace

#define NEXT(name)                   \
    static decltype(::name)* target; \
    auto* const next_##name = next(#name, target)

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void* malloc(size_t size) noexcept {
    NEXT(malloc);
    return counted(f_malloc, [&] { return next_malloc(size); });
}
EXPORT void* calloc(size_t n, size_t size) noexcept {
    NEXT(calloc);
    return counted(f_calloc, [&] { return next_calloc(n, size); });
}
EXPORT void* realloc(void* old, size_t size) noexcept {
    NEXT(realloc);
    return counted(f_realloc, [&] { return next_realloc(old, size); });
}
EXPORT void* reallocarray(void* old, size_t n, size_t size) noexcept {
    NEXT(reallocarray);
    return counted(f_reallocarray, [&] { return next_reallocarray(old, n, size); });
}
EXPORT void free(void* block) noexcept {
    NEXT(free);
    counted(f_free, [&] { next_free(block); });
}
EXPORT int posix_memalign(void** to, size_t alignment, size_t size) noexcept {
    NEXT(posix_memalign);
    return counted(f_posix_memalign, [&] { return next_posix_memalign(to, alignment, size); });
}
EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
    NEXT(aligned_alloc);
    return counted(f_aligned_alloc, [&] { return next_aligned_alloc(alignment, size); });
}
void* memalign(size_t alignment, size_t size) noexcept;
EXPORT void* memalign(size_t alignment, size_t size) noexcept {
    NEXT(memalign);
    return counted(f_memalign, [&] { return next_memalign(alignment, size); });
}
EXPORT void* valloc(size_t size) noexcept {
    NEXT(valloc);
    return counted(f_valloc, [&] { return next_valloc(size); });
}
void* pvalloc(size_t size) noexcept;
EXPORT void* pvalloc(size_t size) noexcept {
    NEXT(pvalloc);
    return counted(f_pvalloc, [&] { return next_pvalloc(size); });
}

// Of C23. This C library need not have them.
void free_sized(void* block, size_t size) noexcept;
EXPORT void free_sized(void* block, size_t) noexcept {
    NEXT(free);
    counted(f_free_sized, [&] { next_free(block); });
}
void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept;
EXPORT void free_aligned_sized(void* block, size_t, size_t) noexcept {
    NEXT(free);
    counted(f_free_aligned_sized, [&] { next_free(block); });
}

// glibc's other names.
#define OTHER_NAME(result, name, which, parameters, ...)                \
    result __libc_##name parameters noexcept;                           \
    EXPORT result __libc_##name parameters noexcept {                   \
        static decltype(::__libc_##name)* target;                       \
        auto* const really = next("__libc_" #name, target);             \
        return counted(f_##which, [&] { return really(__VA_ARGS__); }); \
    }
OTHER_NAME(void*, malloc, malloc, (size_t size), size)
OTHER_NAME(void*, calloc, calloc, (size_t n, size_t size), n, size)
OTHER_NAME(void*, realloc, realloc, (void* old, size_t size), old, size)
OTHER_NAME(void, free, free, (void* block), block)
OTHER_NAME(void*, memalign, memalign, (size_t alignment, size_t size), alignment, size)
OTHER_NAME(void*, valloc, valloc, (size_t size), size)
OTHER_NAME(void*, pvalloc, pvalloc, (size_t size), size)

}  // extern "C"

// For programs in which no operator new fails.
#if __SIZEOF_SIZE_T__ == 8
#define SIZE "m"
#else
#define SIZE "j"
#endif

template <class F, class... Args>
auto operator_counted(function which, const char* name, F*& known, Args... args) {
    auto* const call = next(name, known);
    return counted(which, [&] { return call(args...); });
}
#define OPERATOR(result, name, mangled, which, parameters, exception, ...)     \
    EXPORT result operator name parameters exception {                         \
        static result(*target) parameters;                                     \
        return operator_counted(f_##which, "_Z" mangled, target, __VA_ARGS__); \
    }
#define ALIGNED "St11align_val_t"
#define NOTHROW "RKSt9nothrow_t"
#define OPERATORS(brackets, n, d)                                                                  \
    OPERATOR(void*, new brackets, n SIZE, new, (size_t size), , size)                              \
    OPERATOR(void*, new brackets, n SIZE NOTHROW, new, (size_t size, const std::nothrow_t& not_),  \
             noexcept, size, not_)                                                                 \
    OPERATOR(void*, new brackets, n SIZE ALIGNED, new_aligned,                                     \
             (size_t size, std::align_val_t align), , size, align)                                 \
    OPERATOR(void*, new brackets, n SIZE ALIGNED NOTHROW, new_aligned,                             \
             (size_t size, std::align_val_t align, const std::nothrow_t& not_), noexcept, size,    \
             align, not_)                                                                          \
    OPERATOR(void, delete brackets, d "Pv", delete, (void* block), noexcept, block)                \
    OPERATOR(void, delete brackets, d "Pv" SIZE, delete, (void* block, size_t size), noexcept,     \
             block, size)                                                                          \
    OPERATOR(void, delete brackets, d "Pv" NOTHROW, delete,                                        \
             (void* block, const std::nothrow_t& not_), noexcept, block, not_)                     \
    OPERATOR(void, delete brackets, d "Pv" ALIGNED, delete, (void* block, std::align_val_t align), \
             noexcept, block, align)                                                               \
    OPERATOR(void, delete brackets, d "Pv" SIZE ALIGNED, delete,                                   \
             (void* block, size_t size, std::align_val_t align), noexcept, block, size, align)     \
    OPERATOR(void, delete brackets, d "Pv" ALIGNED NOTHROW, delete,                                \
             (void* block, std::align_val_t align, const std::nothrow_t& not_), noexcept, block,   \
             align, not_)
OPERATORS(, "nw", "dl")
OPERATORS([], "na", "da")
