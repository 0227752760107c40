// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// Two programs record into one file. The first creates it and starts the second, which joins; a
/// flow connects a job's records in both. Either may end first, or be killed.
///   two_processes FILE       then: trace-reduce FILE

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include <trace_ring/trace_ring.hpp>

namespace {

struct sent : trace_ring::event<"job.sent", trace_ring::field<"job", trace_ring::flow>> {};
struct work : trace_ring::span<"job", trace_ring::field<"job", trace_ring::flow>> {};

constexpr unsigned jobs = 100;

// The second program: not a fork, so it need not even be built from the same source.
void serve(const char* file) {
    trace_ring::recorder recorder{{.file = file, .exists = trace_ring::if_exists::attach}};
    for (unsigned job; std::scanf("%u", &job) == 1;) {
        const auto span = recorder.scope<work>(trace_ring::flow{job});
    }
}

int start(const char* self, const char* file) {
    trace_ring::recorder recorder{
        {.file = file, .size = 1 << 20, .exists = trace_ring::if_exists::replace}};
    int pipe[2];
    if (::pipe(pipe) != 0) return 1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe[1]);
    std::string name = self, role = "--serve", trace = file;
    char* const arguments[] = {name.data(), role.data(), trace.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, self, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[0]);
    if (error != 0) return 1;

    for (unsigned job = 1; job <= jobs; ++job) {
        recorder.record<sent>(trace_ring::flow{job});
        dprintf(pipe[1], "%u\n", job);
    }
    ::close(pipe[1]);
    int status = 0;
    return ::waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count == 3 && std::string(arguments[1]) == "--serve") {
        serve(arguments[2]);
        return 0;
    }
    if (count == 2) return start(arguments[0], arguments[1]);
    std::fputs("usage: two_processes FILE\n", stderr);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "two_processes: %s\n", error.what());
    return 1;
}
