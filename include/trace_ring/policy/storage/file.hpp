// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Files for the storage policies and for traces: allocated before they are used, so that a full
/// disk is an error here and not a SIGBUS later. File offsets have 64 bits, for any off_t.
/// Everything here is for set-up: it throws `setup_error` and is not signal-safe, unless it says
/// so. A function named `try_...` returns an empty object on failure, and errno says why.

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/large_files.hpp>
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

/// A file's name as system calls take it: of a C string, or of a string that has one.
class file_name {
public:
    file_name(const char* name) noexcept : name_(name) {}
    template <class String>
    requires requires(const String& name) { name.c_str(); }
    file_name(const String& name) noexcept : name_(name.c_str()) {}
    [[nodiscard]] const char* c_str() const noexcept { return name_; }

private:
    const char* name_;
};

/// Gives a new file this mode, regardless of the umask. Returns 0 or the error. On a file system
/// without modes, a request for 0600 is not an error. Signal-safe.
[[nodiscard]] inline int set_mode(int fd, std::uint32_t mode) noexcept {
    return ::fchmod(fd, mode) == 0 || mode == 0600 ? 0 : errno;
}
/// Creates `path`, closed on exec, readable and writable only by its owner. Fails if it exists.
[[nodiscard]] inline file_descriptor try_create_file(file_name path) noexcept {
    return file_descriptor(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
}
[[nodiscard, gnu::noinline, gnu::cold]] inline file_descriptor create_file(file_name path) {
    file_descriptor made = try_create_file(path);
    if (!made) fail_setup(path.c_str(), "cannot create the file", errno);
    return made;
}

/// The conditions for an existing file, in addition to being a regular file.
enum class trust {
    any,         ///< none
    any_owner,   ///< not reached through a symbolic link, which another user may have put there
                 ///< (the kernel's own links, /proc/PID/fd/N, are allowed)
    same_owner,  ///< not through a link, and the file belongs to the process's effective user
};

/// Opens an existing regular file for reading and writing, closed on exec. Returns the error, if
/// any.
[[nodiscard, gnu::noinline, gnu::cold]] inline setup_fault open_file(file_descriptor& fd,
                                                                     file_name path,
                                                                     trust asks = trust::any) {
    const bool follows = asks == trust::any || std::strncmp(path.c_str(), "/proc/", 6) == 0;
    fd.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW)));
    if (!fd && errno == ELOOP && !follows)
        return {ELOOP, "a symbolic link, which is not followed here"};
    if (!fd) return {errno, "cannot open the file"};
    large_files::file_status status{};
    if (large_files::fstat(fd.get(), &status) != 0) return {errno, "cannot examine the file"};
    if (!S_ISREG(status.st_mode)) return {EINVAL, "not a regular file"};
    if (asks == trust::same_owner && status.st_uid != ::geteuid())
        return {EPERM, "belongs to another user"};
    return {};
}
[[nodiscard, gnu::noinline, gnu::cold]] inline file_descriptor open_file(file_name path,
                                                                         trust asks = trust::any) {
    file_descriptor fd;
    fail_setup(path.c_str(), open_file(fd, path, asks));
    return fd;
}

/// Gives the complete file `made` the name `path`, unless another file has it (EEXIST). Returns 0
/// or the error. The name `made` may still exist afterwards. If the file system has neither links
/// nor a rename that refuses to replace, an empty file has the name for a moment. Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline int name_file(const char* made,
                                                             const char* path) noexcept {
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

/// Waits, for a second at most, until no other process rotates traces in the folder of `path`, or
/// puts a trimmed one in place of the whole one. It is the others' turn when the descriptor is
/// closed. `has_turn`: whether it came to that; not where folders have no locks.
[[nodiscard, gnu::noinline, gnu::cold]] inline file_descriptor wait_for_turn(
    const char* path, bool& has_turn) noexcept {
    has_turn = false;
    char folder[PATH_MAX];
    std::size_t size = 0;
    for (std::size_t i = 0; path[i] != '\0'; ++i) {
        if (i + 1 == sizeof folder) return {};
        folder[i] = path[i];
        if (path[i] == '/') size = i + 1;
    }
    if (size == 0) folder[size++] = '.';
    folder[size] = '\0';
    file_descriptor fd(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; fd && i < 1000; ++i) {
        has_turn = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
        if (has_turn || (errno != EWOULDBLOCK && errno != EINTR)) break;  // no locks here
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    return fd;
}

/// Creates a memory file: shared by passing its descriptor, removed with the last descriptor or
/// mapping of it.
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
[[nodiscard, gnu::noinline, gnu::cold]] inline file_descriptor create_memory_file(
    const char* name) {
    file_descriptor made = try_create_memory_file(name);
    if (!made) fail_setup(name, "cannot create a memory file", errno);
    return made;
}

/// Whether a file would become longer than the process may make it (RLIMIT_FSIZE). Writing,
/// truncating or allocating beyond that kills the process by SIGXFSZ. Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline bool exceeds_file_limit(
    std::uint64_t offset, std::uint64_t bytes) noexcept {
    const int saved = errno;
    large_files::size_limit limit{};
    const bool known = large_files::getrlimit(RLIMIT_FSIZE, &limit) == 0;
    errno = saved;
    return known && limit.rlim_cur != large_files::unlimited &&
           (offset > limit.rlim_cur || bytes > limit.rlim_cur - offset);
}

/// Size of an open file in bytes; 0 if it is unknown. Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline std::uint64_t file_bytes(int fd) noexcept {
    large_files::file_status status{};
    const int saved = errno;
    const bool known = large_files::fstat(fd, &status) == 0;
    errno = saved;
    return known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

namespace impl {

/// Makes the file `end` bytes long with zeros, whose blocks are allocated immediately. The zeros
/// are appended, so several threads may do it at the same time, and none overwrites bytes that
/// another has stored since. The file may become a little longer than `end`. Returns 0 or the
/// error. Signal-safe.
[[nodiscard]] inline int append_zeros(int fd, std::uint64_t end) noexcept {
#if defined(SYS_pwritev2)
    constexpr int at_the_end = 0x10;  // RWF_APPEND, since Linux 4.16
    // Others may append this many bytes between reading the file's length and writing.
    constexpr std::uint64_t margin = 1 << 20;
    char zeros[512] = {};
    constexpr unsigned most = 32;
    ::iovec pieces[most];
    const std::uint64_t start = file_bytes(fd);
    std::uint64_t written = 0;
    for (std::uint64_t now = start; now < end; now = file_bytes(fd)) {
        if (exceeds_file_limit(end, margin)) return EFBIG;
        if (written >= end - start) return EIO;  // another process truncates the file
        unsigned count = 0;
        for (std::uint64_t left = end - now; left != 0 && count < most; ++count) {
            const auto piece = as_size(left < sizeof zeros ? left : sizeof zeros);
            pieces[count] = {zeros, piece};
            left -= piece;
        }
        const long done = ::syscall(SYS_pwritev2, fd, pieces, count, 0L, 0L, at_the_end);
        if (done <= 0 && (done == 0 || errno != EINTR)) {
            // What failed may be more than is needed: another thread appended at the same time.
            const int error = done == 0 ? ENOSPC : errno;
            return file_bytes(fd) < end ? error : 0;
        }
        if (done > 0) written += static_cast<std::uint64_t>(done);
    }
    return 0;
#else
    return file_bytes(fd) < end ? EOPNOTSUPP : 0;
#endif
}

}  // namespace impl

/// Allocates the file's blocks in [offset, offset + bytes), and makes it longer if needed, so that
/// no later store can find the disk full. If the file system cannot allocate ahead (ramfs, ext3,
/// exFAT), zeros are written behind the file's end, and the bytes before it are assumed to have
/// their blocks. Returns 0 or the error; EFBIG also beyond the process's limit of file sizes.
/// Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline int allocate(int fd, std::uint64_t offset,
                                                            std::uint64_t bytes) noexcept {
    if (exceeds_file_limit(offset, bytes)) return EFBIG;
    const int saved = errno;
    int error = 0;
    do {
        error = large_files::fallocate(fd, 0, large_files::at(offset), large_files::at(bytes)) == 0
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

/// The fault when `allocate` or `populate` fails, with advice if there is any.
[[nodiscard, gnu::noinline, gnu::cold]] inline setup_fault not_allocated(int error,
                                                                         const char* what) {
    const bool never = error == EOPNOTSUPP || error == ENOSYS;
    return {error, "cannot allocate %s%s", what,
            never ? " (put the file on another file system, or record into memory)" : ""};
}
/// The same for this many bytes of `what`.
[[nodiscard, gnu::noinline, gnu::cold]] inline setup_fault not_allocated(int error,
                                                                         std::uint64_t bytes,
                                                                         const char* of = "") {
    char what[64];
    std::snprintf(what, sizeof what, "%" PRIu64 " bytes%s", bytes, of);
    return not_allocated(error, what);
}

/// Repeats a system call until no signal interrupts it.
template <class Call>
[[nodiscard]] auto uninterrupted(Call&& call) noexcept {
    for (;;) {
        const auto result = call();
        if (result >= 0 || errno != EINTR) return result;
    }
}

/// Writes all of it. 0 or the error.
[[nodiscard, gnu::cold, gnu::noinline]] inline int write_at(int fd, const void* from,
                                                            std::size_t bytes,
                                                            std::uint64_t at) noexcept {
    const auto* next = static_cast<const std::byte*>(from);
    while (bytes != 0) {
        const ssize_t done = uninterrupted(
            [&] { return large_files::pwrite(fd, next, bytes, large_files::at(at)); });
        if (done <= 0) return done < 0 ? errno : ENOSPC;
        next += done;
        at += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
    return 0;
}

enum class lock_result { taken, held_by_another, failed };

/// Locks the byte at `offset` for the open file of `fd`, without waiting. The lock ends with the
/// last descriptor and the last mapping of that open file, also those of a forked child. Files
/// opened separately, in one process or several, exclude one another, unless all of them ask for a
/// `shared` lock. Signal-safe.
[[gnu::noinline, gnu::cold]] inline lock_result lock_byte(int fd, std::uint64_t offset,
                                                          bool shared = false) noexcept {
    large_files::file_lock region = large_files::lock_region(shared ? F_RDLCK : F_WRLCK, offset);
    const int saved = errno;
    const int result = large_files::fcntl(fd, F_OFD_SETLK, &region);
    const int error = errno;
    errno = saved;
    if (result == 0) return lock_result::taken;
    return error == EACCES || error == EAGAIN ? lock_result::held_by_another : lock_result::failed;
}

inline void unlock_byte(int fd, std::uint64_t offset) noexcept {
    large_files::file_lock region = large_files::lock_region(F_UNLCK, offset);
    const int saved = errno;
    static_cast<void>(large_files::fcntl(fd, F_OFD_SETLK, &region));
    errno = saved;
}

/// True if another open file has locked one of the bytes, or if that is unknown. Signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline bool byte_is_locked(
    int fd, std::uint64_t offset, std::uint64_t bytes = 1) noexcept {
    large_files::file_lock region = large_files::lock_region(F_WRLCK, offset, bytes);
    const int saved = errno;
    const int result = large_files::fcntl(fd, F_OFD_GETLK, &region);
    errno = saved;
    return result != 0 || region.l_type != F_UNLCK;
}

}  // namespace storage
}  // namespace trace_ring::inline v1
