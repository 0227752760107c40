// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Memory from the system, for the storage policies and for trace files: anonymous or in a file,
/// allocated before it is used, so that a full disk is an error here and not a SIGBUS later.
/// File offsets are 64 bits long also where off_t is not.
/// Everything here is set-up: it throws `setup_error` and is not signal-safe, unless it says so.
/// What begins with `try_` leaves it to the caller to say what failed: nothing is returned, and
/// errno says why.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/setup_error.hpp>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace trace_ring::inline v1 {

/// Owns one file descriptor.
class file_descriptor {
public:
    file_descriptor() noexcept = default;
    explicit file_descriptor(int fd) noexcept : fd_(fd) {}
    file_descriptor(file_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    file_descriptor& operator=(file_descriptor&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~file_descriptor() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset(int fd = -1) noexcept {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_ = -1;
};

namespace storage {

/// Creates `path`, readable and writable by its owner alone, closed on exec. Fails if it exists.
[[nodiscard]] inline file_descriptor try_create_file(const std::string& path) noexcept {
    return file_descriptor(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
}
[[nodiscard]] inline file_descriptor create_file(const std::string& path) {
    file_descriptor made = try_create_file(path);
    if (!made) fail_setup(path, "cannot create the file", errno);
    return made;
}

/// What an existing file must be beside regular.
enum class trust {
    any,         ///< nothing
    any_owner,   ///< not reached through a symbolic link, which somebody else may have put in its
                 ///< place (the kernel's own, /proc/PID/fd/N, is none)
    same_owner,  ///< that, and a file of the user that the process acts for
};

/// Opens an existing regular file for reading and writing, closed on exec. Returns why not.
[[nodiscard]] inline std::optional<setup_error> open_file(file_descriptor& fd,
                                                          const std::string& path,
                                                          trust asks = trust::any) {
    const bool follows = asks == trust::any || path.starts_with("/proc/");
    fd.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW)));
    if (!fd && errno == ELOOP && !follows)
        return setup_error(path, "a symbolic link, which is not followed here", ELOOP);
    if (!fd) return setup_error(path, "cannot open the file", errno);
    struct ::stat64 status {};
    if (::fstat64(fd.get(), &status) != 0)
        return setup_error(path, "cannot examine the file", errno);
    if (!S_ISREG(status.st_mode)) return setup_error(path, "not a regular file", EINVAL);
    if (asks == trust::same_owner && status.st_uid != ::geteuid())
        return setup_error(path, "belongs to another user", EPERM);
    return std::nullopt;
}
[[nodiscard]] inline file_descriptor open_file(const std::string& path, trust asks = trust::any) {
    file_descriptor fd;
    fail_setup(open_file(fd, path, asks));
    return fd;
}

/// Gives the file that is complete at `made` the name `path`, unless another has it (EEXIST).
/// Returns 0 or the error. `made` may still be there afterwards. Signal-safe.
[[nodiscard]] inline int name_file(const char* made, const char* path) noexcept {
    int error = ::link(made, path) == 0 ? 0 : errno;
#if defined(SYS_renameat2)
    if (error != 0 && error != EEXIST) {  // a file system without links
        constexpr unsigned no_replace = 1;
        error =
            ::syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, no_replace) == 0 ? 0 : errno;
    }
#endif
    return error;
}

/// Memory with a descriptor: shared by passing it on, gone with the last who has it.
[[nodiscard]] inline file_descriptor try_create_memory_file(const char* name) noexcept {
#if defined(SYS_memfd_create)
    constexpr unsigned close_on_exec = 1;
    const auto fd = static_cast<int>(::syscall(SYS_memfd_create, name, close_on_exec));
#else
    const int fd = -1;
    static_cast<void>(name);
    errno = ENOSYS;
#endif
    return file_descriptor(fd);
}
[[nodiscard]] inline file_descriptor create_memory_file(const char* name) {
    file_descriptor made = try_create_memory_file(name);
    if (!made) fail_setup(name, "cannot create a memory file", errno);
    return made;
}

/// Whether a file would become longer than the process may make one: asking the kernel for that
/// costs the process its life (SIGXFSZ), whether by writing, truncating or allocating. Signal-safe.
[[nodiscard]] inline bool exceeds_file_limit(std::uint64_t offset, std::uint64_t bytes) noexcept {
    const int saved = errno;
    struct ::rlimit64 limit {};
    const bool known = ::getrlimit64(RLIMIT_FSIZE, &limit) == 0;
    errno = saved;
    return known && limit.rlim_cur != RLIM64_INFINITY &&
           (offset > limit.rlim_cur || bytes > limit.rlim_cur - offset);
}

/// Gives the file its blocks in [offset, offset + bytes), growing it if need be, so that no later
/// store can find the disk full. Returns 0 or the error; EFBIG also beyond the process's own limit
/// of file sizes. Signal-safe.
[[nodiscard]] inline int allocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (exceeds_file_limit(offset, bytes)) return EFBIG;
    const int saved = errno;
    int error = 0;
    do {
        error = ::fallocate64(fd, 0, static_cast<off64_t>(offset), static_cast<off64_t>(bytes)) == 0
                    ? 0
                    : errno;
    } while (error == EINTR);
    errno = saved;
    return error;
}

/// Size of an open file in bytes, 0 if it cannot be told. Signal-safe.
[[nodiscard]] inline std::uint64_t file_bytes(int fd) noexcept {
    struct ::stat64 status {};
    const int saved = errno;
    const bool known = ::fstat64(fd, &status) == 0;
    errno = saved;
    return known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

enum class lock_result { taken, held_by_another, failed };

/// One byte of a file, or more, as the system's calls for locks have it.
[[nodiscard]] inline struct ::flock64 lock_region(short type, std::uint64_t offset,
                                                  std::uint64_t bytes = 1) noexcept {
    struct ::flock64 region {};
    region.l_type = type;
    region.l_whence = SEEK_SET;
    region.l_start = static_cast<off64_t>(offset);
    region.l_len = static_cast<off64_t>(bytes);
    return region;
}

/// Takes the byte at `offset` for the open file that `fd` is of, without waiting. It ends with the
/// last descriptor and the last mapping of that open file, those of a forked child included; files
/// opened apart, in one process or several, keep each other out. Any number may have a byte that
/// all of them ask for `shared`. Signal-safe.
inline lock_result lock_byte(int fd, std::uint64_t offset, bool shared = false) noexcept {
    struct ::flock64 region = lock_region(shared ? F_RDLCK : F_WRLCK, offset);
    const int saved = errno;
    const int result = ::fcntl64(fd, F_OFD_SETLK, &region);
    const int error = errno;
    errno = saved;
    if (result == 0) return lock_result::taken;
    return error == EACCES || error == EAGAIN ? lock_result::held_by_another : lock_result::failed;
}

inline void unlock_byte(int fd, std::uint64_t offset) noexcept {
    struct ::flock64 region = lock_region(F_UNLCK, offset);
    const int saved = errno;
    static_cast<void>(::fcntl64(fd, F_OFD_SETLK, &region));
    errno = saved;
}

/// True if another open file has one of the bytes (or if that cannot be told). Signal-safe.
[[nodiscard]] inline bool byte_is_locked(int fd, std::uint64_t offset,
                                         std::uint64_t bytes = 1) noexcept {
    struct ::flock64 region = lock_region(F_WRLCK, offset, bytes);
    const int saved = errno;
    const int result = ::fcntl64(fd, F_OFD_GETLK, &region);
    errno = saved;
    return result != 0 || region.l_type != F_UNLCK;
}

/// Owns a range of mapped memory.
class mapping {
public:
    mapping() noexcept = default;
    mapping(mapping&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    mapping& operator=(mapping&& other) noexcept {
        if (this != &other) {
            reset();
            base_ = std::exchange(other.base_, nullptr);
            bytes_ = std::exchange(other.bytes_, 0);
        }
        return *this;
    }
    ~mapping() { reset(); }

    /// `bytes` of zeros, shared with children of a fork, populated; huge pages where they are had
    /// for the asking.
    [[nodiscard]] static mapping anonymous(std::uint64_t bytes) {
        mapping made =
            checked(map(-1, bytes, MAP_SHARED | MAP_ANONYMOUS), "anonymous memory", bytes);
#if defined(MADV_HUGEPAGE)
        static_cast<void>(
            ::madvise(made.base_, made.bytes_, MADV_HUGEPAGE));  // advice: may be refused
#endif
        made.populate(0, bytes);
        return made;
    }

    /// `bytes` of addresses shared with children of a fork, whose pages come when they are
    /// populated.
    [[nodiscard]] static mapping reserve(std::uint64_t bytes) {
        return checked(map(-1, bytes, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE),
                       "anonymous memory", bytes);
    }

    /// The same, or with `fd` not negative as `of_file`, and behind it, from the next page on,
    /// `slack` bytes of memory of the process's own: for stores that go astray by what others have
    /// stored in the mapping. Only what is touched of it takes memory.
    [[nodiscard]] static mapping try_with_slack(int fd, std::uint64_t bytes,
                                                std::uint64_t slack) noexcept {
        constexpr std::uint64_t page = 4096;
        const std::uint64_t inner = bytes / page * page + (bytes % page == 0 ? 0 : page);
        if (bytes == 0 || inner < bytes) return try_of_file(fd, bytes);  // which says why not
        constexpr int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        mapping made = map(-1, inner + slack, own);
        const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
        if (made && ::mmap64(made.base_, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                             flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
            const int error = errno;
            made.reset();
            errno = error;
        }
        return made;
    }
    [[nodiscard]] static mapping with_slack(const std::string& path, int fd, std::uint64_t bytes,
                                            std::uint64_t slack) {
        return checked(try_with_slack(fd, bytes, slack), path, bytes);
    }

    /// The first `bytes` of a file, shared. The part beyond the file's end may be mapped, but must
    /// not be touched before the file has grown.
    [[nodiscard]] static mapping try_of_file(int fd, std::uint64_t bytes) noexcept {
        return map(fd, bytes, MAP_SHARED);
    }
    [[nodiscard]] static mapping of_file(const std::string& path, int fd, std::uint64_t bytes) {
        return checked(try_of_file(fd, bytes), path, bytes);
    }
    /// Why a `try_` of so many bytes gave nothing, by errno.
    [[nodiscard]] static setup_error fault(const std::string& subject, std::uint64_t bytes) {
        const int error = errno;
        return {subject, "cannot map " + std::to_string(bytes) + " bytes", error};
    }

    /// Takes the page faults of [offset, offset + bytes) now. Signal-safe.
    void populate(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
        const int saved = errno;
        auto* const from = static_cast<std::byte*>(base_) + offset;
        if (::madvise(from, static_cast<std::size_t>(bytes), populate_write) != 0) {
            constexpr std::size_t page = 4096;
            for (std::size_t at = 0; at < bytes; at += page) {
                // relaxed: adding nothing dirties the page and, unlike a store, loses no one's data
                static_cast<void>(word_at<std::uint8_t>(from, at).fetch_add(0, relaxed));
            }
        }
        errno = saved;
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
    [[nodiscard]] static mapping checked(mapping made, const std::string& subject,
                                         std::uint64_t bytes) {
        if (!made) fail_setup(fault(subject, bytes));
        return made;
    }
    [[nodiscard]] static mapping map(int fd, std::uint64_t bytes, int flags) noexcept {
        mapping made;
        if (bytes == 0 || bytes > SIZE_MAX / 2) {
            errno = ENOMEM;
            return made;
        }
        void* const base = ::mmap64(nullptr, static_cast<std::size_t>(bytes),
                                    PROT_READ | PROT_WRITE, flags, fd, 0);
        if (base == MAP_FAILED) return made;
        made.base_ = base;
        made.bytes_ = static_cast<std::size_t>(bytes);
        return made;
    }

    void* base_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace storage
}  // namespace trace_ring::inline v1
