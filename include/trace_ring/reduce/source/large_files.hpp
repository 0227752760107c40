// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The system calls for files, with offsets of 64 bits in programs of either word size.

#include <fcntl.h>
#include <sys/file.h>  // its function hides the struct of that name, always then
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>

namespace trace_ring::inline v1::reduce::impl {

// Offsets are 64 bits wide in programs of either word size. Only glibc on 32-bit machines has a
// narrower off_t by default.
#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 4
using file_status = struct stat64;
using file_offset = off64_t;
using lock_type = ::flock64;
inline constexpr int large_file = O_LARGEFILE, lock_query = F_GETLK64;
inline constexpr auto& lock_call = ::fcntl64;
inline constexpr auto& status_of = ::fstat64;
inline constexpr auto& read_at = ::pread64;
inline constexpr auto& read_rows_at = ::preadv64;
inline constexpr auto& seek_to = ::lseek64;
#else
using file_status = struct stat;
using file_offset = off_t;
using lock_type = struct ::flock;
inline constexpr int large_file = 0, lock_query = F_GETLK;
inline constexpr auto& lock_call = ::fcntl;
inline constexpr auto& status_of = ::fstat;
inline constexpr auto& read_at = ::pread;
inline constexpr auto& read_rows_at = ::preadv;
inline constexpr auto& seek_to = ::lseek;
#endif

/// The lock of one byte.
[[nodiscard]] inline lock_type lock_of(short type, std::uint64_t offset) noexcept {
    lock_type lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<file_offset>(offset);
    lock.l_len = 1;
    return lock;
}

}  // namespace trace_ring::inline v1::reduce::impl
