// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Clauses that the kernel runs where a program fires: uprobes and system calls, each with a BPF
/// program, and one ring in which they hand over what was captured.
/// @code
///   kernel_source source(session);
///   source.attach({"/usr/lib/x86_64-linux-gnu/libc.so.6", 0x98860, function_part::entry, pid},
///                 session.at(point));
///   while (source.wait(100)) source.read([](const firing_record& of, auto output) { ... });
/// @endcode
/// Points are in all programs that run a file, and their programs choose: an event of one process
/// ends with its first thread. Nothing of it is in the programs but a breakpoint, which the kernel
/// takes out when this process ends, in whichever way.
/// Of a function that calls itself the kernel awaits 64 returns of a thread: deeper ones do not
/// fire. They are counted where the kernel describes its structures (BTF). Entries all fire.
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

/// One thread's.
class kernel_source {
public:
    /// `session` is complete, and must outlive it. `ring_bytes`: a power of two, at least a page.
    /// `stack_bytes`: of a stack_snapshot, which follows the output of clauses that ask for stacks;
    /// 0: none does.
    /// Throws kernel_refusal, in one sentence, if the kernel has no BPF or does not permit it, and
    /// std::runtime_error if it cannot for another reason.
    explicit kernel_source(const point::clauses& session,
                           std::size_t ring_bytes = std::size_t{4} << 20,
                           std::uint32_t stack_bytes = 0);
    kernel_source(const kernel_source&) = delete;
    kernel_source& operator=(const kernel_source&) = delete;
    ~kernel_source();

    /// Points of a process that are attached from now on are those of all that it forks from now
    /// on, and these fork. Those of functions and probes are then in all programs that run the
    /// file, and cost others the way into the kernel. Throws std::runtime_error as
    /// followed_processes does.
    void follow_children(::pid_t process);
    /// Runs these clauses wherever the point fires from now on. Throws std::runtime_error that
    /// names the file and the offset, if it is not permitted, or no place for a uprobe, or the
    /// kernel does not accept the program, which is told with the end of its reasons. A second
    /// program at the same system call, of the same process, is there instead of the first.
    /// `entry`: of an exit, as planned_point has it.
    void attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                std::optional<std::uint32_t> entry = std::nullopt);
    /// Sets many points at once, where the kernel can (Linux 6.6): some ms each thousand. Those of
    /// functions are then in all programs that run the file, as children's are. A point that the
    /// kernel sets no uprobe at is left out, and told, also if no program has mapped its file yet.
    /// Throws as `attach` does.
    [[nodiscard]] std::vector<point_left_out> attach(std::span<const planned_point> points);
    /// No point fires any more; what is in the ring stays there.
    void detach() noexcept;

    /// Returns at once if there is something to read; else waits so many ms, or until an eighth of
    /// the ring is full: a single record does not end the wait. False: there is nothing.
    bool wait(int milliseconds) const noexcept;
    /// Calls `tell(const firing_record&, std::span<const std::byte> output)` for all that is in the
    /// ring, in the order in which it was handed over. Returns how many.
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

    /// Whether there are returns that are not counted if they are not seen.
    [[nodiscard]] bool may_miss_returns() const noexcept { return may_miss_returns_; }
    /// What was counted of a clause so far, on all processors.
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
    /// Of a point, by its number, one of its clauses.
    struct linked_clause {
        std::size_t point;
        std::uint32_t clause;
    };
    /// All have the same code.
    void attach_links(std::span<const planned_point> points, std::vector<linked_clause> which,
                      std::vector<point_left_out>& without);
    /// Notes when these functions are entered. Those where that is not possible are left out.
    void link_entries(std::span<const planned_point> points, std::vector<linked_clause>& which,
                      const kernel_maps& maps, const translation& how,
                      std::vector<point_left_out>& without);
    [[nodiscard]] std::string code_key(const planned_point& of, std::uint32_t clause) const;
    /// The map in which it is noted when calls begin; it is made if need be. `bytes`: of a note.
    [[nodiscard]] static int notes_in(trace_ring::file_descriptor& map, std::size_t bytes);
    /// The same for functions at whose exits these clauses run; -1: they ask neither for times nor
    /// for arguments.
    [[nodiscard]] int notes_for(std::span<const std::uint32_t> clauses,
                                std::optional<std::uint32_t> entry);

    const point::clauses& session_;
    std::size_t ring_bytes_;
    std::uint32_t stack_bytes_;
    std::size_t page_;
    unsigned processors_;
    trace_ring::file_descriptor ring_;
    trace_ring::file_descriptor counters_;
    trace_ring::file_descriptor entered_;  // if a clause asks how long calls took
    trace_ring::file_descriptor kept_;     // the same, with kept_words
    bool times_system_calls_ = false;
    std::vector<trace_ring::file_descriptor> attached_;  // perf events and links
    std::unique_ptr<followed_processes> followed_;
    bool may_miss_returns_ = false;
    std::map<std::pair<function_part, ::pid_t>, system_call_dispatch> system_calls_;
    std::byte* consumer_ = nullptr;  // a page that is ours to write
    std::byte* producer_ = nullptr;  // a page, and the data twice in a row: nothing wraps
    std::uint64_t position_ = 0;
    std::uint64_t next_position_ = 0;
};

}  // namespace trace_clauses
