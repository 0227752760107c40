// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The system's calls for files and mappings, with offsets of 64 bits in programs of either word
/// size. glibc has different names for them, because its off_t has 32 bits by default in a
/// 32-bit program. In other C libraries for Linux, such as musl, off_t always has 64 bits.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>

namespace trace_ring::inline v1::large_files {

#if defined(__GLIBC__)
using file_status = struct ::stat64;
using file_offset = ::off64_t;
using file_lock = ::flock64;
using size_limit = ::rlimit64;
inline constexpr int open_flag = O_LARGEFILE, lock_query = F_GETLK64;
inline constexpr std::uint64_t unlimited = RLIM64_INFINITY;
inline constexpr auto& stat = ::stat64;
inline constexpr auto& fstat = ::fstat64;
inline constexpr auto& lstat = ::lstat64;
inline constexpr auto& lseek = ::lseek64;
inline constexpr auto& pread = ::pread64;
inline constexpr auto& preadv = ::preadv64;
inline constexpr auto& pwrite = ::pwrite64;
inline constexpr auto& ftruncate = ::ftruncate64;
inline constexpr auto& fallocate = ::fallocate64;
inline constexpr auto& mmap = ::mmap64;
inline constexpr auto& fcntl = ::fcntl64;
inline constexpr auto& getrlimit = ::getrlimit64;
#else
using file_status = struct ::stat;
using file_offset = ::off_t;
using file_lock = struct ::flock;
using size_limit = ::rlimit;
inline constexpr int open_flag = 0, lock_query = F_GETLK;
inline constexpr std::uint64_t unlimited = RLIM_INFINITY;
using ::fallocate, ::fcntl, ::fstat, ::ftruncate, ::getrlimit, ::lseek, ::lstat, ::mmap, ::pread;
using ::preadv, ::pwrite;
inline constexpr auto& stat = ::stat;  // also the name of a struct
#endif
static_assert(sizeof(file_offset) == 8, "trace_ring needs file offsets of 64 bits");

/// A place in a file, or a length, as the calls take it.
[[nodiscard]] constexpr file_offset at(std::uint64_t place) noexcept {
    return static_cast<file_offset>(place);
}

/// A region of a file in the form that the system's calls for locks take.
[[nodiscard]] inline file_lock lock_region(short type, std::uint64_t offset,
                                           std::uint64_t bytes = 1) noexcept {
    file_lock region{};
    region.l_type = type;
    region.l_whence = SEEK_SET;
    region.l_start = at(offset);
    region.l_len = at(bytes);
    return region;
}

}  // namespace trace_ring::inline v1::large_files
