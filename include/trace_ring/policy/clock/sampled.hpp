// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A clock that is read once in N records. Reading it is most of what a timed record costs; the
/// records in between bear the last reading, marked as the beginning of an interval. Their order
/// within the lane is exact, and so is the bound: they were written between that reading and the
/// next one in their lane, which a reader tells (`record_view::latest`). Nobody makes an instant
/// up.

#include <cstdint>

#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

namespace trace_ring::inline v1::clock {

/// `Base` is read at least once every `Records` records of a lane, at the start of each sub-buffer,
/// and for the next record after a pause that the program announces (`basic_recorder::pause_ends`).
/// A ring that does not sample its clock reads it each time.
template <std::uint32_t Records, policy Base = tsc>
struct sampled : Base {
    static_assert(Records >= 1 && Records <= 4096,
                  "trace_ring: a clock is read at least once in 4096 records");
    /// How many records share one reading.
    static constexpr std::uint32_t records_per_reading = Records;
};
static_assert(policy<sampled<16>>);

}  // namespace trace_ring::inline v1::clock
