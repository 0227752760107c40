// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The system calls on files that `source` makes.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace trace_ring::inline v1::reduce {

namespace impl {

// Offsets are 64 bits wide in programs of either word size. Only glibc on 32-bit machines has a
// narrower off_t by default.
#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 4
using file_status = struct stat64;
inline constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_LARGEFILE;
inline int status_of(int fd, file_status& into) noexcept {
    return ::fstat64(fd, &into);
}
inline ssize_t read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept {
    return ::pread64(fd, into, bytes, static_cast<off64_t>(offset));
}
inline std::int64_t seek_data(int fd, std::uint64_t offset) noexcept {
    return ::lseek64(fd, static_cast<off64_t>(offset), SEEK_DATA);
}
inline ssize_t read_rows_at(int fd, const iovec* rows, int count, std::uint64_t offset) noexcept {
    return ::preadv64(fd, rows, count, static_cast<off64_t>(offset));
}
using lock_type = struct flock64;
inline int lock_query(int fd, lock_type& lock) noexcept {
    return ::fcntl(fd, F_GETLK64, &lock);
}
#else
using file_status = struct stat;
inline constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
inline int status_of(int fd, file_status& into) noexcept {
    return ::fstat(fd, &into);
}
inline ssize_t read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) noexcept {
    return ::pread(fd, into, bytes, static_cast<off_t>(offset));
}
inline std::int64_t seek_data(int fd, std::uint64_t offset) noexcept {
    return ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
}
inline ssize_t read_rows_at(int fd, const iovec* rows, int count, std::uint64_t offset) noexcept {
    return ::preadv(fd, rows, count, static_cast<off_t>(offset));
}
using lock_type = struct flock;
inline int lock_query(int fd, lock_type& lock) noexcept {
    return ::fcntl(fd, F_GETLK, &lock);
}
#endif

}  // namespace impl

}  // namespace trace_ring::inline v1::reduce
