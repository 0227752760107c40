// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A clock that is read once in N records, because reading it is most of a timed record's cost. The
/// records in between have the last reading, marked as the beginning of an interval. Their order
/// within the lane is exact, and so is the interval: they were written between that reading and the
/// next one in their lane, which a reader gives as `record_view::latest`. No time is made up.
/// @code
/// struct sampled_trace : trace_ring::policies<trace_ring::clock::sampled<16>> {};
/// trace_ring::basic_recorder<sampled_trace> recorder(options);  // trace_ring::recorder_options
/// @endcode

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

namespace trace_ring::inline v1::clock {

/// `Base` is read at least once every `Records` records of a lane, at the start of each sub-buffer,
/// and for the next record after a pause that the program announces (`basic_recorder::pause_ends`).
/// A ring that cannot sample reads the clock for each record.
template <std::uint32_t Records, policy Base = tsc>
struct sampled : Base {
    static_assert(Records >= 1 && Records <= 4096,
                  "trace_ring: a clock is read at least once in 4096 records");
    /// How many records share one reading.
    static constexpr std::uint32_t records_per_reading = Records;
};
static_assert(policy<sampled<16>>);

}  // namespace trace_ring::inline v1::clock
