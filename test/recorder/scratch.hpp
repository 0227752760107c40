// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the tests of the recorder share: a folder that goes away, children that say how they ended,
/// and counts that a slow build divides.

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <proof.hpp>

namespace test {

#if defined(__SANITIZE_THREAD__)
#define TRACE_RING_TEST_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define TRACE_RING_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRACE_RING_TEST_TSAN 1
#elif __has_feature(address_sanitizer)
#define TRACE_RING_TEST_ASAN 1
#endif
#endif
#if defined(TRACE_RING_TEST_TSAN)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#if defined(TRACE_RING_TEST_ASAN)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif

/// The full figures are for the optimized build for x86-64; others do a part.
#if defined(TRACE_RING_TEST_TSAN) || defined(TRACE_RING_TEST_ASAN)
inline constexpr std::uint64_t scale = 50;
#elif !defined(__OPTIMIZE__) || !defined(__x86_64__)
inline constexpr std::uint64_t scale = 10;
#else
inline constexpr std::uint64_t scale = 1;
#endif
[[nodiscard]] constexpr std::uint64_t scaled(std::uint64_t full, std::uint64_t least = 1) {
    return full / scale < least ? least : full / scale;
}

/// The same for the bound of a search, or for work of any length: see repeats in proof.hpp.
[[nodiscard]] inline std::uint64_t repeated(std::uint64_t full, std::uint64_t least = 1) {
    return trace_ring_test::repeats(scaled(full, least));
}

/// A separate folder, removed with everything in it.
class folder {
public:
    explicit folder(const std::string& parent = std::filesystem::temp_directory_path()) {
        std::string pattern = parent + "/trace_ring.XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
        path_ = pattern;
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + '/' + name;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// Runs `body` in a child; its result is the child's exit status, an exception is 99.
template <class Body>
[[nodiscard]] pid_t start_child(Body&& body) {
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid != 0) return pid;
    ::signal(SIGABRT, SIG_DFL);  // not the test program's business here
    int status = 99;
    try {
        status = body();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "child: %s\n", e.what());
    }
    // ThreadSanitizer would take the parent's threads for leaks of the child's.
    if (under_tsan) ::syscall(SYS_exit_group, status);
    ::_exit(status);
}

/// How a child ended: its exit status, or minus the signal.
[[nodiscard]] inline int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) throw std::runtime_error("waitpid");
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

template <class Body>
[[nodiscard]] int in_child(Body&& body) {
    return wait_for(start_child(body));
}

/// In a child, which has no Boost.Test to complain to: says on stderr what is not so. Its `failed`
/// is what the child returns.
struct checks {
    int failed = 0;
    void operator()(bool good, const std::string& what) {
        if (good) return;
        std::fprintf(stderr, "child: not so: %s\n", what.c_str());
        ++failed;
    }
};

/// What a child returns that could not try it on this machine.
inline constexpr int skipped = 77;
/// Leaves a test case whose child was `skipped`, saying why. After boost/test/unit_test.hpp.
#define TRACE_RING_TEST_SKIP_IF(result, why)             \
    do {                                                 \
        if ((result) == ::test::skipped) {               \
            BOOST_TEST_MESSAGE("skipped: " why " here"); \
            return;                                      \
        }                                                \
    } while (false)

}  // namespace test
