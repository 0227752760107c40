// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Preloaded into a program: a machine whose pages have 64 KiB, as some of AArch64 and POWER have.
/// Queries of the page size return this size; new mappings begin at a multiple of it; and a call
/// for an address or an offset that is not a multiple fails with EINVAL, and is counted. As on such
/// a machine, any length will do. What the C library calls for itself does not come here.

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

extern "C" unsigned large_pages_refused();

namespace {

constexpr std::uintptr_t page = 65536;
unsigned refused = 0;

bool is_refused(const char* call, const void* at, std::int64_t offset = 0) {
    const bool good = reinterpret_cast<std::uintptr_t>(at) % page == 0 &&
                      static_cast<std::uint64_t>(offset) % page == 0;
    if (good) return false;
    __atomic_fetch_add(&refused, 1U, __ATOMIC_RELAXED);
    static_cast<void>(std::fprintf(stderr, "%s: address %p, offset %lld\n", call, at,
                                   static_cast<long long>(offset)));
    errno = EINVAL;
    return true;
}

void* map(void* at, std::size_t bytes, int access, int flags, int fd, std::int64_t offset) {
#if defined(SYS_mmap2)
    return reinterpret_cast<void*>(
        ::syscall(SYS_mmap2, at, bytes, access, flags, fd, static_cast<long>(offset / 4096)));
#else
    return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, access, flags, fd, offset));
#endif
}

}  // namespace

extern "C" {

unsigned large_pages_refused() {
    return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

void* mmap64(void* at, std::size_t bytes, int access, int flags, int fd, off64_t offset) noexcept {
    if ((flags & MAP_FIXED) != 0) {
        if (is_refused("mmap", at, offset)) return MAP_FAILED;
        return map(at, bytes, access, flags, fd, offset);
    }
    if (is_refused("mmap", nullptr, offset)) return MAP_FAILED;
    const std::size_t whole = bytes + 2 * page;
    if (bytes == 0 || whole < bytes) return map(at, bytes, access, flags, fd, offset);
    void* const around = map(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (around == MAP_FAILED) return around;
    const auto from = reinterpret_cast<std::uintptr_t>(around);
    const std::uintptr_t place = (from + page - 1) / page * page;
    void* const made =
        map(reinterpret_cast<void*>(place), bytes, access, flags | MAP_FIXED, fd, offset);
    const int error = errno;
    const std::uintptr_t end = made == MAP_FAILED ? place : place + (bytes + 4095) / 4096 * 4096;
    if (place != from) ::syscall(SYS_munmap, from, place - from);
    ::syscall(SYS_munmap, end, from + whole - end);
    errno = error;
    return made;
}
void* mmap(void* at, std::size_t bytes, int access, int flags, int fd, off_t offset) noexcept {
    return mmap64(at, bytes, access, flags, fd, offset);
}
int munmap(void* at, std::size_t bytes) noexcept {
    if (is_refused("munmap", at)) return -1;
    return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}
int mprotect(void* at, std::size_t bytes, int access) noexcept {
    if (is_refused("mprotect", at)) return -1;
    return static_cast<int>(::syscall(SYS_mprotect, at, bytes, access));
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
    if (is_refused("madvise", at)) return -1;
    return static_cast<int>(::syscall(SYS_madvise, at, bytes, advice));
}
int msync(void* at, std::size_t bytes, int flags) {
    if (is_refused("msync", at)) return -1;
    return static_cast<int>(::syscall(SYS_msync, at, bytes, flags));
}

long sysconf(int name) noexcept {
    if (name == _SC_PAGESIZE) return static_cast<long>(page);
    static const auto next = reinterpret_cast<long (*)(int)>(::dlsym(RTLD_NEXT, "sysconf"));
    return next(name);
}
int getpagesize() noexcept {
    return static_cast<int>(page);
}
unsigned long getauxval(unsigned long type) noexcept {
    if (type == AT_PAGESZ) return page;
    static const auto next =
        reinterpret_cast<unsigned long (*)(unsigned long)>(::dlsym(RTLD_NEXT, "getauxval"));
    return next(type);
}

}  // extern "C"
