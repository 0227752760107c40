// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The plan of a new trace, and how its header has it. For writers.

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/plan.hpp>

namespace trace_ring::inline v1::layout {

/// Lays the regions out one after the other, each from the next page on, the first at `at`. The
/// counts are those in `wanted`; the offsets are computed.
[[nodiscard]] constexpr plan lay_out(plan wanted, std::uint64_t at = format_page_bytes) noexcept {
    wanted.dictionary_bytes = round_up(wanted.dictionary_bytes, format_page_bytes);
    for_each_region(wanted, [&at](std::uint64_t& here, auto, std::uint64_t bytes) {
        here = at;
        at = round_up(at + bytes, format_page_bytes);
    });
    wanted.sub_buffers = at;
    wanted.file_limit = wanted.bytes_for(wanted.sub_buffer_limit);
    return wanted;
}

/// Stores the sizes, offsets and strides of a plan in a header.
[[gnu::cold]] inline void store_plan(file_header& h, const plan& p) noexcept {
    // relaxed, to the end: published by the magic, or own memory
    for_each_size(p, [&h](auto number, auto in_header) { (h.*in_header).store(number, relaxed); });
    for_each_region(p, [&h](std::uint64_t here, auto in_header, std::uint64_t) {
        (h.*in_header).store(here, relaxed);
    });
    for (const auto& each : strides) (h.*each.in_header).store(each.bytes, relaxed);
    h.sub_buffers_offset.store(p.sub_buffers, relaxed);
    h.file_limit.store(p.file_limit, relaxed);
}

}  // namespace trace_ring::inline v1::layout
