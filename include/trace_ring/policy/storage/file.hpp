// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Files of the system's, for the storage policies and for trace files: allocated before they are
/// used, so that a full disk is an error here and not a SIGBUS later. File offsets are 64 bits long
/// also where off_t is not.
/// Everything here is set-up: it throws `setup_error` and is not signal-safe, unless it says so.
/// What begins with `try_` leaves it to the caller to say what failed: nothing is returned, and
/// errno says why.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

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
/// Returns 0 or the error. `made` may still be there afterwards. Where the file system has neither
/// links nor a rename that replaces nothing, an empty file holds the name for a moment.
/// Signal-safe.
[[nodiscard]] inline int name_file(const char* made, const char* path) noexcept {
    if (::link(made, path) == 0) return 0;
    if (errno == EEXIST) return EEXIST;
#if defined(SYS_renameat2)
    constexpr unsigned no_replace = 1;
    if (::syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, no_replace) == 0) return 0;
    if (errno == EEXIST) return EEXIST;
#endif
    const file_descriptor own(
        ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!own) return errno;
    if (::rename(made, path) == 0) return 0;
    const int error = errno;
    ::unlink(path);
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

/// Size of an open file in bytes, 0 if it cannot be told. Signal-safe.
[[nodiscard]] inline std::uint64_t file_bytes(int fd) noexcept {
    struct ::stat64 status {};
    const int saved = errno;
    const bool known = ::fstat64(fd, &status) == 0;
    errno = saved;
    return known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

namespace impl {

/// Makes the file `end` bytes long with zeros that take their blocks at once. They are appended:
/// several may do so at the same time, and none writes over what another has stored since. The file
/// may become somewhat longer than asked for by that. Returns 0 or the error. Signal-safe.
[[nodiscard]] inline int append_zeros(int fd, std::uint64_t end) noexcept {
#if defined(SYS_pwritev2)
    constexpr int at_the_end = 0x10;  // RWF_APPEND, since Linux 4.16
    // What others append between a look at the file's length and the writing.
    constexpr std::uint64_t margin = 1 << 20;
    char zeros[512] = {};
    struct ::iovec pieces[32];
    const std::uint64_t start = file_bytes(fd);
    std::uint64_t written = 0;
    for (std::uint64_t now = start; now < end; now = file_bytes(fd)) {
        if (exceeds_file_limit(end, margin)) return EFBIG;
        if (written >= end - start) return EIO;  // somebody cuts it short
        unsigned count = 0;
        for (std::uint64_t left = end - now; left != 0 && count < std::size(pieces); ++count) {
            const auto piece = static_cast<std::size_t>(left < sizeof zeros ? left : sizeof zeros);
            pieces[count] = {zeros, piece};
            left -= piece;
        }
        const long done = ::syscall(SYS_pwritev2, fd, pieces, count, 0L, 0L, at_the_end);
        if (done == 0) return ENOSPC;
        if (done < 0 && errno != EINTR) return errno;
        if (done > 0) written += static_cast<std::uint64_t>(done);
    }
    return 0;
#else
    return file_bytes(fd) < end ? EOPNOTSUPP : 0;
#endif
}

}  // namespace impl

/// Gives the file its blocks in [offset, offset + bytes), growing it if need be, so that no later
/// store can find the disk full. Where the file system allocates nothing ahead (ramfs, ext3,
/// exFAT), zeros are written behind the file's end, and what lies before is taken to have its
/// blocks. Returns 0 or the error; EFBIG also beyond the process's own limit of file sizes.
/// Signal-safe.
[[nodiscard]] inline int allocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (exceeds_file_limit(offset, bytes)) return EFBIG;
    const int saved = errno;
    int error = 0;
    do {
        error = ::fallocate64(fd, 0, static_cast<off64_t>(offset), static_cast<off64_t>(bytes)) == 0
                    ? 0
                    : errno;
    } while (error == EINTR);
    if (error == EOPNOTSUPP || error == ENOSYS) {
        const int failed = impl::append_zeros(fd, offset + bytes);
        if (failed != ENOSYS) error = failed;
    }
    errno = saved;
    return error;
}

/// For what `allocate` or `populate` has not given: says what to do where that can be told.
[[nodiscard]] inline setup_error not_allocated(const std::string& subject, const std::string& what,
                                               int error) {
    const bool never = error == EOPNOTSUPP || error == ENOSYS;
    return {subject,
            "cannot allocate " + what +
                (never ? " (put the file on another file system, or record into memory)" : ""),
            error};
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

}  // namespace storage
}  // namespace trace_ring::inline v1
