// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A program that is started, but executed only on request, so that a tracer can attach to
/// its thread first.

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include <trace_ring/policy/storage/mapping.hpp>

#include "find_program.hpp"

namespace launching {

/// Its end kills the program, if it still runs.
class launched_program {
public:
    /// A process that waits. Throws setup_error, which names the program.
    explicit launched_program(const std::vector<std::string>& command) : name_(command.at(0)) {
        std::vector<char*> words;
        words.reserve(command.size() + 1);
        for (const auto& each : command) words.push_back(const_cast<char*>(each.c_str()));
        words.push_back(nullptr);
        const std::string path = path_of_program(name_);
        trace_ring::file_descriptor go_out;
        trace_ring::file_descriptor error_in;
        pipe(go_out, go_);
        pipe(error_, error_in);
        process_ = ::fork();
        if (process_ < 0) throw trace_ring::setup_error(name_, "cannot fork", errno);
        if (process_ == 0) {
            go_.reset();
            char byte = 0;
            if (::read(go_out.get(), &byte, 1) == 1) {
                execute(path.c_str(), words.data());
                const int error = errno;
                static_cast<void>(!::write(error_in.get(), &error, sizeof error));
            }
            ::_exit(127);
        }
    }
    launched_program(const launched_program&) = delete;
    launched_program& operator=(const launched_program&) = delete;
    ~launched_program() {
        if (is_left_ || ended()) return;
        ::kill(process_, SIGKILL);
        int status = 0;
        while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
        }
    }

    /// Executes the program. Throws setup_error if that fails.
    void go() {
        while (::write(go_.get(), "", 1) != 1) {
            if (errno != EINTR) throw trace_ring::setup_error(name_, "cannot be started", errno);
        }
        int error = 0;
        ssize_t got = 0;
        while ((got = ::read(error_.get(), &error, sizeof error)) < 0 && errno == EINTR) {
        }
        if (got == sizeof error) throw trace_ring::setup_error(name_, "cannot be executed", error);
    }

    [[nodiscard]] ::pid_t process() const noexcept { return process_; }
    /// Whether it has ended; does not wait.
    [[nodiscard]] bool ended() noexcept {
        int status = 0;
        if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
        return status_.has_value();
    }
    /// A tracer that waits for the program reports here how it has ended.
    void ended_with(int status) noexcept { status_ = status; }
    /// The program continues independently, and is not killed.
    void leave() noexcept { is_left_ = true; }
    /// How it ended, as waitpid(2) says it; empty before.
    [[nodiscard]] std::optional<int> status() const noexcept { return status_; }

private:
    void pipe(trace_ring::file_descriptor& out, trace_ring::file_descriptor& in) const {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            throw trace_ring::setup_error(name_, "cannot make a pipe", errno);
        }
        out.reset(ends[0]);
        in.reset(ends[1]);
    }

    std::string name_;
    ::pid_t process_ = -1;
    trace_ring::file_descriptor go_, error_;
    std::optional<int> status_;
    bool is_left_ = false;
};

}  // namespace launching
