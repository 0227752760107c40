// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder's snapshots: those that its program takes, and those that another process requests
/// through the file (control.hpp), which the next thread to claim a sub-buffer writes.

#include <cerrno>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/bounds.hpp>
#include <trace_ring/c_string.hpp>
#include <trace_ring/list_of.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/snapshot/snapshot_writer.hpp>

namespace trace_ring::inline v1::impl {

/// Any thread, signal-safe, except for the constructor.
class snapshot_requests {
public:
    /// Allocates the space for copying one sub-buffer. Throws setup_error.
    [[gnu::cold]] snapshot_requests(const trace_memory& memory, const recorder_options& options)
        : memory_(memory),
          gap_ns_(
              static_cast<std::uint64_t>(greatest<std::int64_t>(0, options.snapshot_gap.count()))) {
        // relaxed, both: fixed, and no other thread has this recorder yet
        const bool served =
            options.control == control_mode::on && memory.header().no_control.load(relaxed) == 0;
        left_.store(served ? options.snapshots : 0, relaxed);
        if (!options.file.empty() || !options.snapshot_file.empty()) {
            name_buffer name;
            name.expand(options.snapshot_file.empty() ? options.file : options.snapshot_file);
            if (options.snapshot_file.empty()) name.add(".snapshot");
            base_.set(name.text);
        }
        space_.resize(memory.plan().sub_buffer_bytes / 8);
    }

    /// See basic_recorder::snapshot. `process` is the caller's entry in the file.
    [[gnu::cold]] int write(std::uint32_t process, const char* file) noexcept {
        // order: copy.begin:A pairs with copy.end:A
        if (writing_.exchange(1, acquire) != 0) return EBUSY;
        const int error = write_snapshot(memory_, process, {space_.data(), space_.size()}, file);
        // order: copy.end:A pairs with copy.begin:A
        writing_.store(0, release);
        return error;
    }
    /// Writes the snapshot that was requested, if one was and is due.
    void serve(std::uint32_t process) noexcept {
        const layout::ring_state& ring = memory_.ring();
        // relaxed, all: advice
        if (ring.snapshot_request.load(relaxed) != ring.snapshot_done.load(relaxed) &&
            left_.load(relaxed) != 0) {
            serve_now(process);
        }
    }
    /// In a child of a fork: no thread of its parent writes a snapshot.
    void forget_process() noexcept {
        writing_.store(0, relaxed);  // relaxed: the child has one thread
    }

private:
    [[gnu::cold]] void serve_now(std::uint32_t process) noexcept {
        layout::ring_state& ring = memory_.ring();
        std::uint32_t done = ring.snapshot_done.load(relaxed);  // relaxed: the swap checks it
        // The snapshot will have everything that the process which asks has recorded.
        // order: snapshot.serve:A pairs with snapshot.ask:A
        const std::uint32_t wanted = ring.snapshot_request.load(acquire);
        // One snapshot serves all requests that wait.
        if (done == wanted || base_.empty()) return;
        // Any process that may write to the file can ask, as often as it likes.
        // relaxed, to the end: own words; of several threads, the swap lets one write
        const std::uint64_t now = clock::monotonic::now();
        std::uint64_t due = due_.load(relaxed);
        if (now < due || !due_.compare_exchange_strong(due, now + gap_ns_, relaxed)) return;
        name_buffer name;
        name.add(base_.c_str());
        name.add('.');
        name.add(wanted);
        if (name.is_cut()) return;
        if (write(process, name.text) == EBUSY) {  // another thread writes one
            due_.store(due, relaxed);
            return;
        }
        left_.fetch_sub(1, relaxed);
        // order: snapshot.serve:B pairs with snapshot.ask:B
        static_cast<void>(ring.snapshot_done.compare_exchange_strong(done, wanted, release));
    }

    const trace_memory& memory_;
    atomic<std::uint32_t> writing_{0};  ///< 1: a thread writes a snapshot, and has the space
    list_of<std::uint64_t> space_{};
    owned_text base_{};              ///< of the names of requested snapshots
    atomic<std::uint32_t> left_{0};  ///< how many requests are still served
    atomic<std::uint64_t> due_{0};   ///< when the next may be served, monotonic
    std::uint64_t gap_ns_;
};

}  // namespace trace_ring::inline v1::impl
