// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A branch trace as read: the taken branches in the order of the trace, each with its
/// thread, and whether it follows the thread's previous branch without a gap.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <trace_ring/loss.hpp>

#include "../branch_events.hpp"
#include "code.hpp"

namespace branches {

struct branch {
    place_id from = 0;         ///< 0: a part begins at `to`
    place_id to = 0;           ///< 0: the part ends at `from`
    std::uint32_t thread = 0;  ///< index into branch_trace::threads
    branch_kind kind{};
    bool follows = false;  ///< continues where the thread's previous branch went to

    [[nodiscard]] bool taken() const noexcept { return from != 0 && to != 0; }
};

struct traced_thread {
    std::uint32_t process = 0, thread = 0;
    std::uint64_t branches = 0;
};

/// Another event, before branch number `at`.
struct note {
    std::size_t at = 0;
    std::uint32_t thread = 0;  ///< index into branch_trace::threads; `no_thread`: concerns a
                               ///< process
    std::string what;
};
inline constexpr std::uint32_t no_thread = ~std::uint32_t{0};

/// A contradiction in the file, and its place.
struct damage {
    std::uint64_t offset = 0;
    std::string what;
};

struct branch_trace {
    std::string file;
    std::string source;   ///< the source of the branches; empty: unknown
    std::string program;  ///< the traced program
    std::vector<traced_thread> threads;
    std::vector<branch> branches;  ///< including those that begin or end a part
    std::uint64_t taken = 0;       ///< the number of those that have both ends
    std::vector<note> notes;       ///< in the order of the trace
    std::uint64_t nobodys = 0;     ///< branches whose thread is unknown, because the record that
                                   ///< names it is lost
    std::uint64_t unreadable = 0;  ///< records that cannot be interpreted
    trace_ring::loss_counts lost;
    std::vector<damage> damages;
};

class not_a_branch_trace : public std::runtime_error {
public:
    explicit not_a_branch_trace(const std::string& path)
        : std::runtime_error(path + ": a trace, but not of branches: it has no event " +
                             "\"branch.recording\"") {}
};

/// Reads a branch trace. Throws trace_ring::format_error, std::system_error, not_a_branch_trace.
/// Uses 16 bytes of memory per branch.
[[nodiscard]] branch_trace read_branches(const std::string& path, code& into);

}  // namespace branches
