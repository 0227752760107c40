// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The descriptor of a trace file in a program that does not know about it. The program may close
/// all descriptors it finds, and get their numbers for its own files. Those files are never
/// touched, and the trace continues to grow through its name.

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <trace_ring/c_string.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

namespace trace_ring::inline v1::impl {

class kept_file {
public:
    kept_file() = default;
    kept_file(const kept_file&) = delete;
    kept_file& operator=(const kept_file&) = delete;
    ~kept_file() { reset(); }

    /// Keeps `fd`, at a high number: out of the way of programs that count on small numbers or
    /// close all of them. Throws setup_error.
    [[gnu::noinline, gnu::cold]] void keep(file_descriptor fd, const char* subject) {
        large_files::file_status status{};
        if (large_files::fstat(fd.get(), &status) != 0)
            fail_setup(subject, "cannot examine the file", errno);
        const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 500);
        if (high >= 0) fd.reset(high);
        reset();
        device_ = status.st_dev;
        inode_ = status.st_ino;
        fd_ = std::move(fd);
    }
    /// Sets the name by which the file is found again; a relative one is resolved now.
    [[gnu::cold]] void has_name(const char* path) {
        if (char* const whole = ::realpath(path, nullptr)) return name_.take(whole);
        name_.set(path);
    }
    void reset() noexcept {
        if (fd_ && !is_it(fd_.get())) static_cast<void>(fd_.release());
        fd_.reset();
    }

    /// Whether this name leads to the file.
    [[nodiscard, gnu::cold]] bool is_named(const char* path) const noexcept {
        large_files::file_status status{};
        return large_files::stat(path, &status) == 0 && status.st_dev == device_ &&
               status.st_ino == inode_;
    }
    /// Closes it, and then calls `what(name, descriptor, device, inode)` if it was given a name,
    /// which may be another file's by now. The descriptor is a new one, without the locks that a
    /// child of a fork may share with the kept one; -1 if none can be made.
    template <class What>
    void close_and(What&& what) noexcept {
        if (name_.empty()) return reset();
        const int saved = errno;
        file_descriptor fd;
        if (is_it(fd_.get())) {
            char again[40];
            std::snprintf(again, sizeof again, "/proc/self/fd/%d", fd_.get());
            fd.reset(::open(again, O_RDWR | O_CLOEXEC | O_NONBLOCK));
            // Nobody can open a file without a name any more, but many may have it mapped.
            large_files::file_status status{};
            if (fd && (large_files::fstat(fd.get(), &status) != 0 || status.st_nlink == 0))
                fd.reset();
        }
        errno = saved;
        reset();
        what(name_.c_str(), fd.get(), device_, inode_);
    }

    /// Whether there is a file. Its descriptor may have been closed.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    /// Its whole name; null if it has none.
    [[nodiscard]] const char* name() const noexcept {
        return name_.empty() ? nullptr : name_.c_str();
    }
    /// The number as it was given; see `use`.
    [[nodiscard]] int number() const noexcept { return fd_.get(); }

    /// Calls `what(descriptor)`. If the kept descriptor is not the file's any more, opens one by
    /// the file's name for this call; -1 if the file has no name, or if that name is another
    /// file's. Keeps errno. Signal-safe.
    template <class What>
    auto use(What&& what) const noexcept {
        file_descriptor again;
        return what(valid(again));
    }

private:
    /// The kept descriptor, or `again`, which is then opened by the name; -1 if neither is.
    [[nodiscard, gnu::noinline]] int valid(file_descriptor& again) const noexcept {
        const int saved = errno;
        int fd = fd_.get();
        if (!is_it(fd)) {
            fd = -1;
            if (!name_.empty()) {
                again.reset(::open(name_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
                if (again && is_it(again.get())) fd = again.get();
            }
        }
        errno = saved;
        return fd;
    }
    [[nodiscard, gnu::noinline]] bool is_it(int fd) const noexcept {
        large_files::file_status status{};
        return large_files::fstat(fd, &status) == 0 && status.st_dev == device_ &&
               status.st_ino == inode_;
    }

    file_descriptor fd_{};
    dev_t device_ = 0;
    ino64_t inode_ = 0;
    owned_text name_{};
};

}  // namespace trace_ring::inline v1::impl
