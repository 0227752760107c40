// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the result goes: standard output, or a file that appears whole or not at all.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_reduce {

/// Nobody reads what is written: the end, and no error.
struct closed_pipe {};

class output {
public:
    /// `path` empty: standard output. Throws std::system_error, or std::runtime_error if `path` is
    /// one of the inputs.
    output(const std::string& path, const std::vector<std::string>& inputs) {
        if (path.empty()) return;
        name_ = path;
        struct stat there {};
        const bool exists = ::stat(path.c_str(), &there) == 0;
        for (const auto& input : inputs) {
            struct stat in {};
            if (exists && ::stat(input.c_str(), &in) == 0 && in.st_dev == there.st_dev &&
                in.st_ino == there.st_ino) {
                throw std::runtime_error(path + ": is an input, and will not be overwritten");
            }
        }
        if (exists && !S_ISREG(there.st_mode)) {  // a pipe, a terminal
            fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        } else {
            temporary_ = path + ".part." + std::to_string(::getpid());
            fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (fd_ < 0) temporary_.clear();
        }
        if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
    }
    output(const output&) = delete;
    ~output() {
        if (name_.empty() || fd_ < 0) return;
        ::close(fd_);
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }

    [[nodiscard]] bool is_terminal() const noexcept { return ::isatty(fd_) != 0; }
    /// Characters in a line: of the terminal, or 80.
    [[nodiscard]] std::size_t columns() const noexcept {
        struct winsize size {};
        return ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
    }
    [[nodiscard]] trace_ring::exporter::text_buffer& text() noexcept { return text_; }

    /// Writes when enough has come together.
    void flush_some() {
        if (text_.size() >= 64 * 1024) flush();
    }
    void flush() {
        for (std::string_view rest = text_.view(); !rest.empty();) {
            const ssize_t done = ::write(fd_, rest.data(), rest.size());
            if (done < 0 && errno == EINTR) continue;
            if (done < 0 && errno == EPIPE) throw closed_pipe{};
            if (done < 0) {
                throw std::system_error(errno, std::generic_category(),
                                        name_.empty() ? "standard output" : name_);
            }
            rest.remove_prefix(static_cast<std::size_t>(done));
        }
        text_.clear();
    }
    /// All is written: the file gets its name.
    void commit() {
        flush();
        if (temporary_.empty()) return;
        const int fd = fd_;
        fd_ = -1;
        const std::string part = std::move(temporary_);
        if (::close(fd) != 0 || ::rename(part.c_str(), name_.c_str()) != 0) {
            const int error = errno;
            ::unlink(part.c_str());
            throw std::system_error(error, std::generic_category(), name_);
        }
    }

private:
    int fd_ = STDOUT_FILENO;
    std::string name_;
    std::string temporary_;
    trace_ring::exporter::text_buffer text_;
};

}  // namespace trace_reduce
