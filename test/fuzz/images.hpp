// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sound traces to begin with, as small as they can be (about 40 KiB): of the builder, and of real
/// recorders of each full mode.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fuzz/fuzz.hpp>
#include <trace_ring/format/plan.hpp>

namespace trace_ring_test::fuzz {

/// The bytes of a trace file, at its limit, aligned to 8 bytes.
using image = std::vector<std::uint64_t>;

/// Word by word, the same in each run.
[[nodiscard]] std::vector<image> built_images();
/// By recorders: their times and process ids differ from run to run.
[[nodiscard]] const std::vector<image>& recorded_images();
/// The former, then the latter.
[[nodiscard]] const std::vector<image>& all_images();

[[nodiscard]] buffer bytes_of(const image& from);
[[nodiscard]] image image_of(input from);
/// Where the regions of a sound image are.
[[nodiscard]] trace_ring::layout::plan plan_of(const image& of);

}  // namespace trace_ring_test::fuzz
