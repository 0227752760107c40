// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kernel's side of an intel_bts event: the processor stores records into the AUX area, and the
/// kernel hands over, pads, wraps and gives up as Linux's bts.c and ring_buffer.c do. It keeps a
/// list of all that was stored, and of where something was not, to be compared with.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/x86/branch_record.hpp>

namespace trace_ring_test {

class bts_kernel {
public:
    using record = trace_ring::record::branch_record64;
    using word = trace_ring::shared_atomic<std::uint64_t>;
    static constexpr std::uint64_t step = sizeof(record);

    struct stored {
        record what;
        bool gap = false;  ///< none, but that records are missing here
    };

    bts_kernel(std::span<std::byte> area, word& head, word& tail, bool snapshot)
        : area_(area), head_(head), tail_(tail), snapshot_(snapshot) {}

    /// PERF_RECORD_AUX, before the head that it announces.
    std::function<void(std::uint64_t offset, std::uint64_t size, std::uint64_t flags)> on_aux;
    std::vector<stored> all;    ///< what a reader must get: of a snapshot, what is still there
    std::uint64_t refused = 0;  ///< branches while it was not enabled
    /// The threshold lies so far below the absolute maximum, and a pass is left early if no more
    /// than this is free in it, as with BTS_SAFETY_MARGIN. 0: each pass ends truncated.
    std::uint64_t margin = 0;
    /// It wakes the reader each time that so many bytes were handed over, and lets no pass go far
    /// beyond that. 0: it does not.
    std::uint64_t watermark = 0;
    std::function<void()> on_wake;

    [[nodiscard]] bool running() const { return running_; }

    void enable() {
        if (!running_) running_ = begin();
    }
    /// As the event is disabled, or a context switched: all so far is handed over.
    void disable() {
        if (running_) end(0);
        running_ = false;
    }
    /// The processor executes a branch.
    void branch(const record& what) {
        if (!running_) {
            ++refused;
            return;
        }
        if (snapshot_ && at_ + step > last()) at_ = 0;
        store(what);
        if (snapshot_ || at_ < threshold_) return;
        // At the threshold it is called; at the absolute maximum nobody knows what came behind.
        const bool truncated = at_ >= limit_;
        end(truncated ? PERF_AUX_FLAG_TRUNCATED : 0);
        running_ = !truncated && begin();
    }
    /// The threshold's interrupt.
    void interrupt() {
        if (!running_ || snapshot_) return;
        end(0);
        running_ = begin();
    }

private:
    [[nodiscard]] std::uint64_t size() const { return area_.size(); }
    /// Where the last record of a pass ends.
    [[nodiscard]] std::uint64_t last() const { return size() / step * step; }

    void store(const record& what) {
        std::memcpy(area_.data() + at_, &what, sizeof what);
        at_ += step;
        if (snapshot_) {
            if (all.size() == last() / step) all.erase(all.begin());
        }
        all.push_back({what, false});
    }
    bool begin() {
        if (snapshot_) {
            from_ = at_;
            return true;
        }
        const std::uint64_t head = position_;
        const std::uint64_t room = size() - (head - tail_.load(trace_ring::seq_cst));
        std::uint64_t phase = head % size();
        std::uint64_t space = std::min(last() - std::min(last(), phase), room);
        space -= space % step;
        if (space <= margin) {
            const std::uint64_t pad = size() - phase;  // with the dead end
            if (room >= pad && std::min(last(), room - pad) / step * step > space) {
                std::memset(area_.data() + phase, 0, static_cast<std::size_t>(size() - phase));
                position_ += pad;
                head_.store(position_, trace_ring::seq_cst);  // perf_aux_output_skip
                phase = 0;
                space = std::min(last(), room - pad) / step * step;
            }
        }
        if (watermark != 0) {  // bts_buffer_reset: not far beyond the wake-up
            const std::uint64_t most = margin + step + woken_ + watermark - position_;
            if (space > most) space = most - most % step;
        }
        if (space == 0) {  // no room: the event is disabled, and its reader must enable it again
            truncate(position_);
            return false;
        }
        from_ = at_ = phase;
        limit_ = phase + space;
        threshold_ = space > margin ? limit_ - margin : limit_;
        return true;
    }
    void truncate(std::uint64_t at) {
        if (on_aux) on_aux(at, 0, PERF_AUX_FLAG_TRUNCATED);
        if (all.empty() || !all.back().gap) all.push_back({{}, true});
    }
    void end(std::uint64_t flags) {
        if (snapshot_) {
            position_ = at_;
            if (on_aux) on_aux(at_, size(), PERF_AUX_FLAG_OVERWRITE);
            head_.store(at_, trace_ring::seq_cst);
            return;
        }
        const std::uint64_t bytes = at_ - from_;
        if ((bytes != 0 || flags != 0) && on_aux) on_aux(position_, bytes, flags);
        if (flags != 0) all.push_back({{}, true});
        position_ += bytes;
        from_ = at_;
        head_.store(position_, trace_ring::seq_cst);
        if (watermark != 0 && position_ - woken_ >= watermark) {  // perf_aux_output_end
            woken_ = position_ - position_ % watermark;
            if (on_wake) on_wake();
        }
    }

    std::span<std::byte> area_;
    word& head_;
    word& tail_;
    bool snapshot_;
    bool running_ = false;
    std::uint64_t position_ = 0;       ///< bytes handed over
    std::uint64_t woken_ = 0;          ///< how many they were, rounded down, when it woke last
    std::uint64_t at_ = 0, from_ = 0;  ///< in the area: the index, and what it was at `begin`
    std::uint64_t threshold_ = 0;
    std::uint64_t limit_ = 0;  ///< the absolute maximum
};

}  // namespace trace_ring_test
