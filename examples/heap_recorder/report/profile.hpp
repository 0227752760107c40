// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A heap trace as one profile for each process: its ledger, its calls, and what is missing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "ledger.hpp"
#include "stacks.hpp"

namespace heap {

enum class call_kind : std::uint8_t {
    malloc,
    calloc,
    realloc,
    reallocarray,
    free,
    posix_memalign,
    aligned_alloc,
    memalign,
    valloc,
    pvalloc,
    operator_new,
    operator_new_aligned,
    operator_delete,
    free_sized,
    free_aligned_sized,
};
inline constexpr std::size_t call_kinds = 15;
inline constexpr std::array<std::string_view, call_kinds> call_names{
    "malloc",        "calloc",     "realloc",
    "reallocarray",  "free",       "posix_memalign",
    "aligned_alloc", "memalign",   "valloc",
    "pvalloc",       "new",        "new_aligned",
    "delete",        "free_sized", "free_aligned_sized"};

/// Whether a call gives a block back.
[[nodiscard]] constexpr bool frees(call_kind kind) noexcept {
    return kind == call_kind::free || kind == call_kind::operator_delete ||
           kind == call_kind::free_sized || kind == call_kind::free_aligned_sized;
}

using call_counts = std::array<std::uint64_t, call_kinds>;

enum class inheritance {
    none,         ///< not forked from a recorded process
    exact,        ///< as it was when the parent forked
    approximate,  ///< the fork itself is not in the trace: as it was at the child's first record
};

struct process_profile {
    std::string file;
    std::uint32_t pid = 0;
    std::string name;
    std::optional<std::uint32_t> parent;  ///< pid
    inheritance inherited = inheritance::none;
    ledger heap;
    std::map<std::uint32_t, call_counts> calls;  ///< by thread
    std::uint64_t begin = 0;                     ///< of its records, nanoseconds since 1970
    std::uint64_t end = 0;
    std::string unwind;       ///< how stacks were taken; empty: unknown
    std::uint32_t depth = 0;  ///< of stacks, at most
    std::uint64_t unrecorded = 0;
    /// Functions of which no call is recorded, and whose they are.
    std::vector<std::pair<std::string, std::string>> passed_by;
    /// Functions that an object calls elsewhere, and the object.
    std::vector<std::pair<std::string, std::string>> bypassing;
    /// The program by which it has replaced itself in the end; empty: none.
    std::string executed;
    trace_ring::loss_counts lost;    ///< in its lanes
    std::uint64_t first_loss = 0;    ///< nanoseconds since 1970; 0: nothing is lost
    std::uint64_t perhaps_lost = 0;  ///< records lost in the file, possibly of this process
    std::uint64_t damages = 0;       ///< damaged places in the file; what they held is not known
    [[nodiscard]] bool complete() const noexcept {
        return first_loss == 0 && unrecorded == 0 && lost.total() == 0 && perhaps_lost == 0 &&
               damages == 0;
    }
    [[nodiscard]] call_counts all_calls() const noexcept {
        call_counts sum{};
        for (const auto& [thread, counts] : calls) {
            for (std::size_t i = 0; i < call_kinds; ++i) sum[i] += counts[i];
        }
        return sum;
    }
};

/// A program that a recorded one has executed, in its own place or as a child.
struct execution {
    std::uint32_t pid = 0;  ///< whose program it is from then on; 0: not known
    std::string path;
    std::string obstacle;  ///< why it is not recorded; empty: it is
};

/// What one file holds.
struct file_profile {
    std::string file;
    std::uint64_t records = 0;
    std::uint64_t unreadable = 0;  ///< records that cannot be interpreted
    trace_ring::loss_counts lost;  ///< all of it, with what concerns no process
    std::vector<std::string> damages;
    std::vector<execution> executions;
    std::deque<process_profile> processes;  ///< in the order of their first records
};

/// A block, when it ends or when the trace does.
struct block_life {
    const process_profile* process = nullptr;
    std::uint64_t address = 0;
    block of;
    bool ended = false;  ///< else it was live at the end
    // If it ended:
    std::uint64_t end = 0;  ///< nanoseconds since 1970
    std::uint32_t thread = 0;
    call_kind by = call_kind::free;
    stack_id stack = 0;
};

/// Reads a heap trace record by record.
class profile_reader {
public:
    /// All arguments must outlive it. `path`: for messages. `blocks` is called for each block, if
    /// it is set.
    profile_reader(trace_ring::reduce::trace_file& trace, const std::string& path,
                   stack_table& stacks, std::uint64_t short_life,
                   std::function<void(const block_life&)> blocks = {});
    profile_reader(const profile_reader&) = delete;
    ~profile_reader();

    /// What is read of a trace that goes on: no record after this tick. `look` is called now and
    /// then, and may throw.
    void begin(std::uint64_t until = ~std::uint64_t{0}, std::function<void()> look = {});
    /// Reads the next record; false: that was all.
    [[nodiscard]] bool step();
    /// After the last record.
    [[nodiscard]] file_profile finish();

private:
    class state;
    std::unique_ptr<state> state_;
};

/// Reads a heap trace. Throws trace_ring::format_error, std::system_error; not_a_heap_trace if the
/// file is a trace of something else.
[[nodiscard]] file_profile read_profile(const std::string& path, stack_table& stacks,
                                        std::uint64_t short_life);

class not_a_heap_trace : public std::runtime_error {
public:
    explicit not_a_heap_trace(const std::string& path)
        : std::runtime_error(path + ": a trace, but not of a heap: it has no event \"malloc\"") {}
};

}  // namespace heap
