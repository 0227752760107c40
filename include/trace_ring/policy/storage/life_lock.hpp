// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A sign that a process lives, valid in every PID namespace: a lock on one byte of a file, far
/// above its end, that lasts as long as the program that took it.
///
/// A lock of a process (F_SETLK) is dropped when the process closes any descriptor of the file, as
/// daemons do when they start. A lock of an open file (F_OFD_SETLK) lasts as long as the open file,
/// and a mapping keeps it open when its descriptors are closed. So the lock is on an open file of
/// its own, kept open by one mapped page, which is never touched and not inherited by children of a
/// fork. The lock ends at an exec, and when the process ends for any reason. Everything here is
/// signal-safe.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>

#include <trace_ring/atomic.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

namespace trace_ring::inline v1::storage {

/// Opens the file of `fd` once more, to read and write; by `name` (may be null) if there is no
/// /proc. Empty if that fails, or if `name` is another file by now.
[[nodiscard, gnu::noinline, gnu::cold]] inline file_descriptor open_again(
    int fd, const char* name) noexcept {
    constexpr int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int saved = errno;
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);  // no allocation for %d
    file_descriptor again(::open(link, flags));
    if (!again && name != nullptr) again.reset(::open(name, flags | O_NOFOLLOW));
    large_files::file_status here{};
    large_files::file_status there{};
    const bool same = again && large_files::fstat(fd, &here) == 0 &&
                      large_files::fstat(again.get(), &there) == 0 && here.st_dev == there.st_dev &&
                      here.st_ino == there.st_ino;
    if (!same) again.reset();
    errno = saved;
    return again;
}

class life_lock {
public:
    life_lock() noexcept = default;
    life_lock(const life_lock&) = delete;
    life_lock& operator=(const life_lock&) = delete;
    ~life_lock() { release(); }

    /// Releases any lock that it has, and locks the byte at `offset`, without waiting. `failed`
    /// also if the file system does not keep a file open for a mapping (overlayfs).
    [[gnu::noinline, gnu::cold]] lock_result take(int fd, const char* name,
                                                  std::uint64_t offset) noexcept {
        release();
        const int saved = errno;
        const lock_result result = take_with(open_again(fd, name), fd, offset);
        if (result != lock_result::taken) release();
        errno = saved;
        return result;
    }
    /// This process has the lock. False in a child of a fork, which does not inherit it.
    [[nodiscard]] bool held() const noexcept {
        // relaxed: this process's own word, which is zero in a child of a fork
        return owner_ != nullptr && owner_->load(relaxed) == static_cast<std::uint32_t>(::getpid());
    }
    [[gnu::noinline, gnu::cold]] void release() noexcept {
        if (owner_ == nullptr) return;
        // In a child the second page was not inherited, and may be another mapping by now.
        const std::size_t page = machine_page_bytes();
        ::munmap(static_cast<void*>(owner_), held() ? 2 * page : page);
        owner_ = nullptr;
    }

private:
    lock_result take_with(file_descriptor own, int fd, std::uint64_t offset) noexcept {
        if (!own) return lock_result::failed;
        const lock_result locked = lock_byte(own.get(), offset);
        if (locked != lock_result::taken) return locked;
        const std::size_t page = machine_page_bytes();
        void* const memory =
            ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return lock_result::failed;
        owner_ = ::new (memory) atomic<std::uint32_t>(static_cast<std::uint32_t>(::getpid()));
        auto* const second = static_cast<std::byte*>(memory) + page;
        if (large_files::mmap(second, page, PROT_NONE, MAP_SHARED | MAP_FIXED, own.get(), 0) ==
            MAP_FAILED)
            return lock_result::failed;
#if defined(MADV_WIPEONFORK)
        static_cast<void>(::madvise(memory, page, MADV_WIPEONFORK));
#endif
        if (::madvise(second, page, MADV_DONTFORK) != 0) return lock_result::failed;
        own.reset();  // the check below then shows whether the mapping keeps the file open
        return byte_is_locked(fd, offset) ? lock_result::taken : lock_result::failed;
    }

    atomic<std::uint32_t>* owner_ = nullptr;  ///< the holder's pid; the file's page follows it
};

}  // namespace trace_ring::inline v1::storage
