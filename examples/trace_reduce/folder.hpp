// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A folder of files that appears whole or not at all.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace trace_reduce {

/// It is made next to its final path, and renamed when all files are written.
class folder {
public:
    /// Throws std::runtime_error if there is something at `path` other than an empty folder,
    /// std::system_error if it cannot be made.
    explicit folder(std::string path) : path_(std::move(path)) {
        while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
        std::error_code error;
        const auto there = std::filesystem::symlink_status(path_, error);
        if (std::filesystem::exists(there)) {
            if (!std::filesystem::is_directory(there)) {
                throw std::runtime_error(path_ + ": is there already, and is no folder");
            }
            if (!std::filesystem::is_empty(path_, error) || error) {
                throw std::runtime_error(path_ + ": is there already, and is not empty");
            }
        }
        const std::string part = path_ + ".part." + std::to_string(::getpid());
        if (::mkdir(part.c_str(), 0777) != 0) fail(errno, path_);
        part_ = part;
    }
    folder(const folder&) = delete;
    ~folder() {
        if (part_.empty()) return;
        for (const auto& name : names_) ::unlink((part_ + '/' + name).c_str());
        ::rmdir(part_.c_str());
    }

    /// Appends to the file of this name, which is made with the first bytes. It is not kept open:
    /// there may be more of them than a process may open.
    void append(std::string_view name, std::string_view bytes) {
        const auto [at, first] = names_.emplace(name);
        const std::string path = part_ + '/' + *at;
        const int fd = ::open(
            path.c_str(),
            O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (first ? O_CREAT | O_EXCL : 0), 0666);
        if (fd < 0) fail(errno, path);
        int error = 0;
        while (!bytes.empty() && error == 0) {
            const ssize_t done = ::write(fd, bytes.data(), bytes.size());
            if (done >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(done));
            } else if (errno != EINTR) {
                error = errno;
            }
        }
        if (::close(fd) != 0 && error == 0) error = errno;
        if (error != 0) fail(error, path);
    }

    /// All is written: the folder gets its name.
    void commit() {
        if (::rename(part_.c_str(), path_.c_str()) != 0) fail(errno, path_);
        part_.clear();
    }

private:
    [[noreturn]] static void fail(int error, const std::string& path) {
        throw std::system_error(error, std::generic_category(), path);
    }

    std::string path_;
    std::string part_;  // empty: not made, or moved
    std::set<std::string, std::less<>> names_;
};

}  // namespace trace_reduce
