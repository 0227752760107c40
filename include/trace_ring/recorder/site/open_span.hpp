// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The state of an open span.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/recorder/site/lane.hpp>

namespace trace_ring::inline v1::impl {

/// An open span, as its scope keeps it. A lane knows its last one, which knows the one around it:
/// one comparison shows an end whether readers will find its begin without help. A span that
/// ends elsewhere stays in that list, and the spans around it then say where they began, too.
struct open_span {
    std::uint64_t begun;   ///< number in the lane of the record that began it, from 1
    std::uint64_t around;  ///< the same of the span that was the lane's last one
    std::uint32_t lane;
    std::uint32_t around_lane;  ///< of a processor's

    /// Enters the span, before the record that begins it is committed to `sub`: in the other order
    /// a jump between the two would leave a beginning to which readers add an outer span's end.
    [[gnu::always_inline]] void begin(lane_mark& mark, const sub_buffer_header& sub) noexcept {
        // relaxed, to the end: own lane
        begun =
            sub.first_position.load(relaxed) + commit_word::records(sub.commit.load(relaxed)) + 1;
        lane = sub.lane.load(relaxed);
        around = mark.innermost.load(relaxed);
        mark.innermost.store(begun, relaxed);
    }
    /// Whether it is the last one open in the lane.
    [[nodiscard, gnu::always_inline]] bool is_innermost(
        const lane_mark& mark, const sub_buffer_header& sub) const noexcept {
        // relaxed, both: own lane
        const std::uint64_t other = mark.innermost.load(relaxed) ^ begun;
        return (other | (sub.lane.load(relaxed) ^ lane)) == 0;
    }
    /// Leaves the span, after the record that ends it is committed, for the same reason.
    [[gnu::always_inline]] void end(lane_mark& mark) const noexcept {
        signal_fence(seq_cst);
        mark.innermost.store(around, relaxed);  // relaxed: own lane
    }
};

/// The last span still open of those that the calling thread has begun in processors' lanes.
inline constinit thread_local open_span own_span TRACE_RING_TLS = {};

}  // namespace trace_ring::inline v1::impl
