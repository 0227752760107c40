// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Memory from the system, for the storage policies and for trace files: anonymous or in a file.
/// Everything here is for set-up: it throws `setup_error` and is not signal-safe, unless it says
/// so. A function named `try_...` returns an empty object on failure, and errno says why.

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/file.hpp>  // IWYU pragma: export
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::storage {

/// Bytes of a page of this machine's memory, which mmap, mprotect and madvise count by: a power of
/// two, 4096 on x86, up to 65536 on other processors. A trace file has a different unit, the same
/// on all machines (layout::format_page_bytes). Signal-safe, no system call.
[[nodiscard]] inline std::size_t machine_page_bytes() noexcept {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Owns a range of mapped memory.
class mapping {
public:
    mapping() noexcept = default;
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    mapping(mapping&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          locked_(other.locked_) {}
    mapping& operator=(mapping&& other) noexcept {
        if (this != &other) {
            reset();
            base_ = std::exchange(other.base_, nullptr);
            bytes_ = std::exchange(other.bytes_, 0);
            locked_ = other.locked_;
        }
        return *this;
    }
    ~mapping() { reset(); }

    /// `bytes` of zeros, shared with children of a fork, populated; in huge pages if the system
    /// gives them.
    [[nodiscard]] static mapping anonymous(std::uint64_t bytes) {
        mapping made =
            checked(map(-1, bytes, MAP_SHARED | MAP_ANONYMOUS), "anonymous memory", bytes);
#if defined(MADV_HUGEPAGE)
        static_cast<void>(
            ::madvise(made.base_, made.bytes_, MADV_HUGEPAGE));  // advice: may be refused
#endif
        if (const int error = made.populate(0, bytes))
            fail_setup("anonymous memory", not_allocated(error, bytes));
        return made;
    }

    /// `bytes` of address space, shared with children of a fork; `populate` gives it memory.
    [[nodiscard]] static mapping reserve(std::uint64_t bytes) {
        return checked(map(-1, bytes, shared_memory), "anonymous memory", bytes);
    }

    /// Like `reserve`, or like `of_file` if `fd` is not negative, and from the next page on `slack`
    /// bytes of unused memory: wrong numbers in a shared mapping may make a store miss by that
    /// much. Only touched pages of it take memory.
    [[nodiscard, gnu::noinline, gnu::cold]] static mapping try_with_slack(
        int fd, std::uint64_t bytes, std::uint64_t slack) noexcept {
        const std::uint64_t page = machine_page_bytes();
        const std::uint64_t inner = bytes / page * page + (bytes % page == 0 ? 0 : page);
        if (bytes == 0 || inner < bytes) return try_of_file(fd, bytes);  // fails, and sets errno
        if (fd < 0) return map(-1, inner + slack, shared_memory);
        mapping made = addresses(-1, inner + slack, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
        if (!made) return made;
        if (large_files::mmap(made.base_, as_size(bytes), PROT_NONE, MAP_SHARED | MAP_FIXED, fd,
                              0) == MAP_FAILED) {
            made.give_up();
            return made;
        }
        made.unlock();
        made.allow_access();
        return made;
    }
    [[nodiscard]] static mapping with_slack(file_name path, int fd, std::uint64_t bytes,
                                            std::uint64_t slack) {
        return checked(try_with_slack(fd, bytes, slack), path.c_str(), bytes);
    }

    /// The first `bytes` of a file, shared. The part behind the file's end must not be touched
    /// before the file has grown.
    [[nodiscard]] static mapping try_of_file(int fd, std::uint64_t bytes) noexcept {
        return map(fd, bytes, MAP_SHARED);
    }
    [[nodiscard]] static mapping of_file(file_name path, int fd, std::uint64_t bytes) {
        return checked(try_of_file(fd, bytes), path.c_str(), bytes);
    }
    /// The fault of a `try_` function that failed to map `bytes`, by errno.
    [[nodiscard, gnu::noinline, gnu::cold]] static setup_fault fault(std::uint64_t bytes) {
        const int error = errno;
        return {error, "cannot map %" PRIu64 " bytes%s", bytes,
                error == EAGAIN ? " (after mlockall: more than RLIMIT_MEMLOCK)" : ""};
    }

    /// Takes the page faults of [offset, offset + bytes) now, and locks the bytes in memory if the
    /// process has requested that (mlockall). Returns 0, or the error if there is no memory, or no
    /// block of the file. Signal-safe.
    [[nodiscard, gnu::noinline, gnu::cold]] int populate(std::uint64_t offset,
                                                         std::uint64_t bytes) const noexcept {
        const int saved = errno;
        auto* const from = static_cast<std::byte*>(base_) + offset;
        int error = populate_memory(from, as_size(bytes));
        if (error == 0 && locked_ && ::mlock(from, as_size(bytes)) != 0) {
            error = errno;
        }
        errno = saved;
        return error;
    }
    /// The same for memory that is mapped, at any address, with any owner of the mapping, without
    /// locking it.
    [[nodiscard, gnu::noinline, gnu::cold]] static int populate_memory(std::byte* from,
                                                                       std::size_t bytes) noexcept {
        constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
        const int saved = errno;
        const std::size_t page = machine_page_bytes();
        const std::size_t before = reinterpret_cast<std::uintptr_t>(from) % page;
        int error = ::madvise(from - before, before + bytes, populate_write) == 0 ? 0 : errno;
        if (error == EFAULT) {
            error = ENOSPC;  // a store there would be a SIGBUS
        } else if (error != 0 && error != ENOMEM) {
            error = 0;  // a kernel that does not know this advice
            for (std::size_t at = 0; at < bytes; at += page - (before + at) % page) {
                // relaxed: adding 0 dirties the page and, unlike a store, loses no other's data
                static_cast<void>(word_at<std::uint8_t>(from, at).fetch_add(0, relaxed));
            }
        }
        errno = saved;
        return error;
    }

    [[nodiscard]] std::byte* data() const noexcept {
        return static_cast<std::byte*>(base_);
    }
    [[nodiscard]] std::uint64_t size() const noexcept {
        return bytes_;
    }
    [[nodiscard]] explicit operator bool() const noexcept {
        return base_ != nullptr;
    }

    void reset() noexcept {
        if (base_ != nullptr) ::munmap(base_, bytes_);
        base_ = nullptr;
        bytes_ = 0;
    }

private:
    static constexpr int shared_memory = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;

    [[nodiscard]] static mapping checked(mapping made, const char* subject, std::uint64_t bytes) {
        if (!made) fail_setup(subject, fault(bytes));
        return made;
    }
    [[nodiscard, gnu::noinline, gnu::cold]] static mapping map(int fd, std::uint64_t bytes,
                                                               int flags) noexcept {
        mapping made = addresses(fd, bytes, flags);
        if (made) made.allow_access();
        return made;
    }
    /// Maps without access. After mlockall(MCL_FUTURE) the kernel makes accessible mappings
    /// resident and locks them immediately, including parts that are never used; and private memory
    /// that can be written to counts as data (RLIMIT_DATA).
    [[nodiscard, gnu::noinline, gnu::cold]] static mapping addresses(int fd, std::uint64_t bytes,
                                                                     int flags) noexcept {
        mapping made;
        if (bytes == 0 || bytes > SIZE_MAX / 2) {
            errno = ENOMEM;
            return made;
        }
        void* const base = large_files::mmap(nullptr, as_size(bytes), PROT_NONE, flags, fd, 0);
        if (base == MAP_FAILED) return made;
        made.base_ = base;
        made.bytes_ = as_size(bytes);
        made.unlock();
        return made;
    }
    /// Unlocks the mapping if the kernel has locked it, and leaves locking to `populate`. The first
    /// advice fails for locked memory, and drops no page, as there is none yet; the second fails
    /// only if the kernel takes no advice at all.
    void unlock() noexcept {
        if (::madvise(base_, bytes_, MADV_DONTNEED) == 0 || errno != EINVAL ||
            ::madvise(base_, bytes_, MADV_NORMAL) != 0) {
            return;
        }
        locked_ = ::munlock(base_, bytes_) == 0;
    }
    [[gnu::noinline, gnu::cold]] void allow_access() noexcept {
        if (::mprotect(base_, bytes_, PROT_READ | PROT_WRITE) != 0) give_up();
    }
    void give_up() noexcept {
        const int error = errno;
        reset();
        errno = error;
    }

    void* base_ = nullptr;
    std::size_t bytes_ = 0;
    bool locked_ = false;  ///< the kernel locks what the process maps (mlockall)
};

}  // namespace trace_ring::inline v1::storage
