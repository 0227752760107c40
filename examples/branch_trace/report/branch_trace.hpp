// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file A branch trace as read: the taken branches in the order of the trace, each with its
/// thread, and whether it follows the thread's previous branch without a gap.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/trace_file.hpp>

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

/// Where a branch is in the trace, and its addresses as recorded.
struct branch_record {
    std::uint64_t from = 0, to = 0;
    std::uint64_t ticks = 0;
    std::uint32_t lane = 0;
    std::uint64_t position = 0;
};

/// Reads a branch trace record by record.
class branch_reader {
public:
    /// Gets each branch, instead of branch_trace::branches, when its thread is known.
    using visitor = std::function<void(const branch&, const branch_record&)>;

    /// All arguments must outlive it. Throws not_a_branch_trace. `path`: for messages. No record
    /// after the tick `until` is read.
    branch_reader(trace_ring::reduce::trace_file& trace, const std::string& path, code& into,
                  visitor visit = {}, std::uint64_t until = ~std::uint64_t{0});
    branch_reader(const branch_reader&) = delete;
    ~branch_reader();

    /// Reads the next record; false: that was all.
    [[nodiscard]] bool step();
    /// The threads that were met so far.
    [[nodiscard]] const std::vector<traced_thread>& threads() const noexcept;
    /// After the last record.
    [[nodiscard]] branch_trace finish();

private:
    class state;
    std::unique_ptr<state> state_;
};

/// Reads a branch trace. Throws trace_ring::format_error, std::system_error, not_a_branch_trace.
/// Uses 16 bytes of memory per branch.
[[nodiscard]] branch_trace read_branches(const std::string& path, code& into);

}  // namespace branches
