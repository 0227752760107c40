// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Checks the header of a trace file, which may be anything. Writers that join a file and readers
/// both use it; afterwards every region is known to lie inside the file.
/// @code
///   trace_ring::layout::plan plan;
///   if (const auto fault = trace_ring::layout::check_layout(base, size, plan)) use(fault.what);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/format/layout.hpp>

namespace trace_ring::inline v1::layout {

/// What is wrong with a header, and where: `what` is empty if nothing is.
struct header_fault {
    std::string_view what;
    std::uint64_t offset = 0;
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return !what.empty(); }
};

/// Checks the header at `base`, of which `size` bytes can be read, and fills `out` on success. The
/// regions before the index must lie within `size`. Index and sub-buffers may be shorter than at
/// the limit (a file grows); the caller bounds them by `present_sub_buffers`. Offsets are taken
/// from the file, strides must be those of this version. Never reads past `size`.
[[nodiscard, gnu::cold]] inline header_fault check_layout(const void* base, std::uint64_t size,
                                                          plan& out) noexcept {
    if (size == 0) return {"the file is empty", 0};
    if (size < 8) return {"too short to be a trace file", 0};
    const auto& h = *static_cast<const file_header*>(base);
    // order: layout.check:A pairs with layout.publish:A
    const std::uint64_t magic = h.magic.load(acquire);
    if (magic == file_magic_swapped) return {"a trace file of the other byte order", 0};
    if (magic != file_magic) return {"not a trace file", 0};
    if (size < sizeof(file_header)) return {"the header is cut short", size};
    // relaxed, to the end: the header does not change once the magic is there
    const auto u32 = [](const shared_atomic<std::uint32_t>& word) { return word.load(relaxed); };
    const auto u64 = [](const shared_atomic<std::uint64_t>& word) { return word.load(relaxed); };
    if (u32(h.version) < oldest_version || u32(h.version) > file_version) {
        return {"a trace file of another version", offsetof(file_header, version)};
    }
    if (u32(h.header_bytes) != format_page_bytes) {
        return {"the header's size is wrong", offsetof(file_header, header_bytes)};
    }
    if (size < format_page_bytes) return {"the header is cut short", size};

    plan p;
    p.sub_buffer_bytes = u32(h.sub_buffer_bytes);
    if (!valid_sub_buffer_bytes(p.sub_buffer_bytes)) {
        return {"impossible size of sub-buffers", offsetof(file_header, sub_buffer_bytes)};
    }
    p.sub_buffer_limit = u64(h.sub_buffer_limit);
    if (p.sub_buffer_limit == 0 || p.sub_buffer_limit > (1ULL << 48) / p.sub_buffer_bytes) {
        return {"impossible number of sub-buffers", offsetof(file_header, sub_buffer_limit)};
    }
    struct region {
        const shared_atomic<std::uint64_t>& offset;
        std::uint64_t at;     // where in the header the offset is
        std::uint64_t bytes;  // how long the region is
        std::uint64_t& into;
    };
    const auto stride_is = [&](const shared_atomic<std::uint32_t>& word, std::size_t expected) {
        return u32(word) == expected;
    };
    if (!stride_is(h.clock_stride, sizeof(clock_entry))) {
        return {"unknown stride of clock entries", offsetof(file_header, clock_stride)};
    }
    if (!stride_is(h.process_stride, sizeof(process_entry))) {
        return {"unknown stride of process entries", offsetof(file_header, process_stride)};
    }
    if (!stride_is(h.gate_stride, format_page_bytes)) {
        return {"unknown stride of gates", offsetof(file_header, gate_stride)};
    }
    if (!stride_is(h.lane_stride, sizeof(lane_entry))) {
        return {"unknown stride of lane entries", offsetof(file_header, lane_stride)};
    }
    if (!stride_is(h.index_stride, sizeof(index_entry))) {
        return {"unknown stride of index entries", offsetof(file_header, index_stride)};
    }
    p.clock_count = u32(h.clock_count);
    p.process_count = u32(h.process_count);
    p.gate_count = u32(h.gate_count);
    p.lane_count = u32(h.lane_count);
    p.totals_per_lane = u32(h.totals_per_lane);
    p.dictionary_bytes = u64(h.dictionary_bytes);
    if (p.clock_count < 2) {
        return {"too few clock entries", offsetof(file_header, clock_count)};
    }
    if (p.process_count == 0 || p.gate_count == 0 || p.lane_count == 0) {
        return {"a table without entries", offsetof(file_header, process_count)};
    }
    if (p.totals_per_lane > max_totals) {
        return {"too many totals", offsetof(file_header, totals_per_lane)};
    }
    if (p.dictionary_bytes > size) {
        return {"the dictionary is longer than the file", offsetof(file_header, dictionary_bytes)};
    }
    const region regions[] = {
        {h.ring_offset, offsetof(file_header, ring_offset), sizeof(ring_state), p.ring},
        {h.clocks_offset, offsetof(file_header, clocks_offset),
         std::uint64_t{p.clock_count} * sizeof(clock_entry), p.clocks},
        {h.processes_offset, offsetof(file_header, processes_offset),
         std::uint64_t{p.process_count} * sizeof(process_entry), p.processes},
        {h.gates_offset, offsetof(file_header, gates_offset),
         std::uint64_t{p.gate_count} * format_page_bytes, p.gates},
        {h.lanes_offset, offsetof(file_header, lanes_offset),
         std::uint64_t{p.lane_count} * sizeof(lane_entry), p.lanes},
        {h.totals_offset, offsetof(file_header, totals_offset),
         8ULL * p.totals_per_lane * (p.lane_count + std::uint64_t{p.process_count}), p.totals},
        {h.dictionary_offset, offsetof(file_header, dictionary_offset), p.dictionary_bytes,
         p.dictionary},
        {h.index_offset, offsetof(file_header, index_offset), 0, p.index},
    };
    std::uint64_t end = format_page_bytes;
    for (const auto& r : regions) {
        r.into = u64(r.offset);
        if (r.into % format_page_bytes != 0 || r.into < end) return {"regions overlap", r.at};
        if (r.into > size || r.bytes > size - r.into) {
            return {"the file ends before its tables do", size};
        }
        end = r.into + r.bytes;
    }
    p.sub_buffers = u64(h.sub_buffers_offset);
    if (p.sub_buffers % format_page_bytes != 0 || p.sub_buffers < p.index ||
        p.sub_buffers - p.index < p.sub_buffer_limit * sizeof(index_entry) ||
        p.sub_buffers > (1ULL << 49)) {
        return {"sub-buffers overlap the index", offsetof(file_header, sub_buffers_offset)};
    }
    p.file_limit = p.bytes_for(p.sub_buffer_limit);
    if (u64(h.file_limit) != p.file_limit) {
        return {"the sizes contradict each other", offsetof(file_header, file_limit)};
    }
    // Of a trace that was trimmed: it had no less than it has. Of another: nothing.
    const bool trimmed = u32(h.whole_lane_count) != 0;
    const auto had = [trimmed](std::uint64_t before, std::uint64_t now) {
        return trimmed ? before >= now : before == 0;
    };
    if (!had(u64(h.whole_limit), p.sub_buffer_limit) || !had(u64(h.whole_capacity), 1) ||
        !had(u64(h.whole_dictionary_bytes), p.dictionary_bytes) ||
        !had(u32(h.whole_process_count), p.process_count) ||
        !had(u32(h.whole_gate_count), p.gate_count) ||
        !had(u32(h.whole_lane_count), p.lane_count) || u32(h.reserved3) != 0) {
        return {"the sizes from before it was trimmed are impossible",
                offsetof(file_header, whole_limit)};
    }
    out = p;
    return {};
}

/// How many whole sub-buffers, with their index entries, a checked file of `size` bytes holds.
[[nodiscard]] inline std::uint64_t present_sub_buffers(const plan& p, std::uint64_t size) noexcept {
    if (size <= p.sub_buffers) return 0;
    const std::uint64_t there = (size - p.sub_buffers) / p.sub_buffer_bytes;
    return there < p.sub_buffer_limit ? there : p.sub_buffer_limit;
}

}  // namespace trace_ring::inline v1::layout
