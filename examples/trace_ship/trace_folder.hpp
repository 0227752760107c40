// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The files of one folder, by what they are and not by their names: a renamed file stays the same,
/// and a new file with an old name is another.

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace trace_ship {

/// A file while it exists.
struct file_id {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const file_id&, const file_id&) = default;
};
/// What changes if someone writes into a file, cuts it, or changes who may read it.
struct file_stamp {
    std::int64_t changed_ns = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const file_stamp&, const file_stamp&) = default;
};
struct found_file {
    file_id id{};
    file_stamp stamp{};
    std::string path{};
};

[[nodiscard]] inline file_id id_of(const struct stat& status) noexcept {
    return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}
[[nodiscard]] inline file_stamp stamp_of(const struct stat& status) noexcept {
    return {std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec,
            static_cast<std::int64_t>(status.st_size)};
}

class trace_folder {
public:
    /// Locks the folder against another of these programs, which would send everything twice.
    /// Throws std::system_error, or std::runtime_error if it is locked.
    trace_folder(std::string path, std::string glob)
        : path_(std::move(path)), glob_(std::move(glob)) {
        open();
    }
    trace_folder(const trace_folder&) = delete;
    ~trace_folder() { close(); }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] file_id id() const noexcept { return id_; }

    /// The regular files whose names match, by name. If another folder has the path now, it is
    /// that one from now on. Throws as the constructor does.
    [[nodiscard]] std::vector<found_file> files() {
        struct stat now {};
        if (::stat(path_.c_str(), &now) != 0) fail();
        if (id_ != id_of(now)) {
            close();
            open();
        }
        std::vector<found_file> found;
        const int fd = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ::DIR* const all = fd < 0 ? nullptr : ::fdopendir(fd);
        if (all == nullptr) {
            const int fault = errno;
            if (fd >= 0) ::close(fd);
            errno = fault;
            fail();
        }
        while (const ::dirent* const each = ::readdir(all)) {
            struct stat status {};
            if (::fnmatch(glob_.c_str(), each->d_name, FNM_PERIOD) != 0 ||
                ::fstatat(fd_, each->d_name, &status, 0) != 0 || !S_ISREG(status.st_mode)) {
                continue;
            }
            found.push_back({id_of(status), stamp_of(status), path_ + '/' + each->d_name});
        }
        ::closedir(all);
        std::sort(found.begin(), found.end(),
                  [](const found_file& a, const found_file& b) { return a.path < b.path; });
        return found;
    }

private:
    [[noreturn]] void fail() const {
        throw std::system_error(errno, std::generic_category(), path_);
    }
    void open() {
        fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat status {};
        if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail();
        if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
            const bool is_locked = errno == EWOULDBLOCK;
            if (!is_locked) fail();
            close();
            throw std::runtime_error(path_ +
                                     ": another trace-ship ships the traces of this folder");
        }
        id_ = id_of(status);
    }
    void close() noexcept {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
        id_ = {};
    }

    std::string path_;
    std::string glob_;
    int fd_ = -1;
    file_id id_{};
};

}  // namespace trace_ship
