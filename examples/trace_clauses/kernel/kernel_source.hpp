// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs clauses in the kernel at the moment when a program fires: uprobes and system calls, each
/// with a BPF program, and one ring that passes on the captured values.
/// @code
///   kernel_source source(session);
///   source.attach({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid},
///                 session.at(point));
///   while (source.wait(100)) source.read([](const firing_record& of, auto output) { ... });
/// @endcode
/// Points are set in all programs that run a file, and the BPF programs select processes, because
/// an event of one process ends with its first thread. The only change in a traced program is a
/// breakpoint, which the kernel removes when this process ends in any way. For a function that
/// calls itself, the kernel traces at most 64 pending returns per thread. Deeper calls do not fire
/// their exits. They are counted if the kernel describes its structures (BTF). Entries always fire.
/// Facts: perf_event_open(2), bpf(2), bpf-helpers(7), and the kernel's
/// Documentation/bpf/ringbuf.rst.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/clauses.hpp>
#include <trace_ring/policy/storage/file.hpp>

#include "../firings/firing_record.hpp"
#include "followed_processes.hpp"
#include "system_call_dispatch.hpp"
#include "translate.hpp"

namespace trace_clauses {

/// To be used by one thread.
class kernel_source {
public:
    /// `session` must be complete, and outlive the source. `ring_bytes`: a power of two, at least a
    /// page. `stack_bytes`: the size of a stack_snapshot, which follows the output of clauses that
    /// use stacks; 0: no clause does. Throws kernel_refusal, with a one-sentence reason, if the
    /// kernel does not support or permit BPF, and std::runtime_error for other errors.
    explicit kernel_source(const point::clauses& session,
                           std::size_t ring_bytes = std::size_t{4} << 20,
                           std::uint32_t stack_bytes = 0);
    kernel_source(const kernel_source&) = delete;
    kernel_source& operator=(const kernel_source&) = delete;
    ~kernel_source();

    /// Points of a process that are attached from now on also apply to its future children and
    /// their descendants. Points at functions and probes are then in all programs that run the
    /// file, and cost other processes an entry to the kernel. Throws std::runtime_error like
    /// followed_processes.
    void follow_children(::pid_t process);
    /// Runs these clauses at each firing of the point from now on. Throws std::runtime_error that
    /// names the file and the offset if this is not permitted, if no uprobe can be set there, or if
    /// the kernel rejects the program; the message then contains the end of its report. A second
    /// program at the same system call, for the same process, replaces the first. `entry`: for an
    /// exit, as in planned_point.
    void attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                std::optional<std::uint32_t> entry = std::nullopt);
    /// Sets many points together if the kernel supports it (Linux 6.6), in a few ms per thousand.
    /// Points at functions are then in all programs that run the file, as for children. Points at
    /// which the kernel sets no uprobe are returned, even if no program has mapped the file yet.
    /// Throws like `attach`.
    [[nodiscard]] std::vector<point_left_out> attach(std::span<const planned_point> points);
    /// Stops all points. Records in the ring remain there.
    void detach() noexcept;

    /// Returns immediately if there is something to read. Otherwise waits the given number of ms,
    /// or until an eighth of the ring is full: a single record does not end the wait. Returns false
    /// if there is nothing.
    bool wait(int milliseconds) const noexcept;
    /// Passes each `const firing_record&` in the ring and its output, `std::span<const std::byte>`,
    /// to the visitor, in the order of the firings. Returns the number of records.
    template <class Tell>
    std::size_t read(Tell&& tell) {
        std::size_t count = 0;
        std::span<const std::byte> data;
        while (next(data)) {
            if (data.size() >= sizeof(firing_record)) {
                // Aligned to 8 bytes, as the ring's records are.
                tell(*reinterpret_cast<const firing_record*>(data.data()),
                     data.subspan(sizeof(firing_record)));
                ++count;
            }
            consume();
        }
        return count;
    }

    /// Returns whether missed returns may be uncounted.
    [[nodiscard]] bool may_miss_returns() const noexcept { return may_miss_returns_; }
    /// Returns the current counts of a clause, summed over all processors.
    [[nodiscard]] clause_counts counts(std::uint32_t clause) const;

private:
    bool next(std::span<const std::byte>& data) noexcept;
    void consume() noexcept;
    [[nodiscard]] process_filter filter_of(const attach_point& at) const noexcept;
    [[nodiscard]] kernel_maps maps_for(const attach_point& at) const noexcept;
    [[nodiscard]] bpf_code code_for(const attach_point& at,
                                    std::span<const std::uint32_t> clauses) const;
    void attach_system_call(const attach_point& at, std::span<const std::uint32_t> clauses);
    void attach_returns(const attach_point& at, std::span<const std::uint32_t> clauses,
                        std::optional<std::uint32_t> entry);
    void attach_uprobe(const attach_point& at, const bpf_code& code);
    /// One clause of a point, which is given by its number.
    struct linked_clause {
        std::size_t point;
        std::uint32_t clause;
    };
    /// All of these have the same code.
    void attach_links(std::span<const planned_point> points, std::vector<linked_clause> which,
                      std::vector<point_left_out>& without);
    /// Stores the entry times of these functions. Functions for which this is impossible are
    /// omitted.
    void link_entries(std::span<const planned_point> points, std::vector<linked_clause>& which,
                      const kernel_maps& maps, const translation& how,
                      std::vector<point_left_out>& without);
    [[nodiscard]] std::string code_key(const planned_point& of, std::uint32_t clause) const;
    /// Returns the map of entry times, and creates it if necessary. `bytes`: size of an entry.
    [[nodiscard]] static int notes_in(trace_ring::file_descriptor& map, std::size_t bytes);
    /// The same for functions at whose exits these clauses run. Returns -1 if the clauses use
    /// neither times nor arguments.
    [[nodiscard]] int notes_for(std::span<const std::uint32_t> clauses,
                                std::optional<std::uint32_t> entry);

    const point::clauses& session_;
    std::size_t ring_bytes_;
    std::uint32_t stack_bytes_;
    std::size_t page_;
    unsigned processors_;
    trace_ring::file_descriptor ring_;
    trace_ring::file_descriptor counters_;
    trace_ring::file_descriptor entered_;  // if a clause uses `elapsed`
    trace_ring::file_descriptor kept_;     // the same, including kept_words
    bool times_system_calls_ = false;
    std::vector<trace_ring::file_descriptor> attached_;  // perf events and links
    std::unique_ptr<followed_processes> followed_;
    bool may_miss_returns_ = false;
    std::map<std::pair<function_part, ::pid_t>, system_call_dispatch> system_calls_;
    std::byte* consumer_ = nullptr;  // the page that this process writes
    std::byte* producer_ = nullptr;  // a page, then the data mapped twice in a row, so no record
                                     // wraps
    std::uint64_t position_ = 0;
    std::uint64_t next_position_ = 0;
};

}  // namespace trace_clauses
