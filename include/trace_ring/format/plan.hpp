// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where each region of a trace file lies. A plan is computed for a new file, stored in its header,
/// and read back from a header, which may hold anything: it is checked first. Writers that join a
/// file and readers use the same check. After it, every region is known to lie inside the file.
/// @code
///   trace_ring::layout::plan plan;
///   if (const auto fault = trace_ring::layout::check_layout(base, size, plan)) use(fault.what);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/clocks.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>

namespace trace_ring::inline v1::layout {

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
    return (value + unit - 1) / unit * unit;
}

/// Offsets and counts, as plain numbers.
struct plan {
    std::uint32_t sub_buffer_bytes = 0;
    std::uint64_t sub_buffer_limit = 0;
    std::uint64_t ring = 0;
    std::uint64_t clocks = 0;
    std::uint32_t clock_count = 0;
    std::uint64_t processes = 0;
    std::uint32_t process_count = 0;
    std::uint64_t gates = 0;
    std::uint32_t gate_count = 0;
    std::uint64_t lanes = 0;
    std::uint32_t lane_count = 0;
    std::uint64_t totals = 0;
    std::uint32_t totals_per_lane = 0;
    std::uint64_t dictionary = 0;
    std::uint64_t dictionary_bytes = 0;
    std::uint64_t index = 0;
    std::uint64_t sub_buffers = 0;
    std::uint64_t file_limit = 0;

    /// The offset of one entry of a table. The caller has checked the number.
    [[nodiscard]] constexpr std::uint64_t clock_at(std::uint64_t slot) const noexcept {
        return clocks + slot * sizeof(clock_entry);
    }
    [[nodiscard]] constexpr std::uint64_t process_at(std::uint64_t slot) const noexcept {
        return processes + slot * sizeof(process_entry);
    }
    [[nodiscard]] constexpr std::uint64_t gates_at(std::uint64_t page) const noexcept {
        return gates + page * sizeof(gate_page);
    }
    [[nodiscard]] constexpr std::uint64_t lane_at(std::uint64_t slot) const noexcept {
        return lanes + slot * sizeof(lane_entry);
    }
    /// Row `row` of the totals: lanes first, then numberings.
    [[nodiscard]] constexpr std::uint64_t totals_at(std::uint64_t row) const noexcept {
        return totals + row * totals_per_lane * sizeof(std::uint64_t);
    }
    [[nodiscard]] constexpr std::uint64_t index_at(std::uint64_t slot) const noexcept {
        return index + slot * sizeof(index_entry);
    }
    /// The offset of a sub-buffer, which is also how long the file is with `count` of them.
    [[nodiscard]] constexpr std::uint64_t bytes_for(std::uint64_t count) const noexcept {
        return sub_buffers + count * sub_buffer_bytes;
    }
    /// Bytes of the tables before the index: allocated whole at set-up.
    [[nodiscard]] constexpr std::uint64_t fixed_bytes() const noexcept { return index; }
};

/// Calls `visit(plan's offset, header's offset, bytes)` for the regions before the sub-buffers, in
/// the order in which they lie. The index has the bytes that it has at the limit.
template <class Plan, class Visit>
constexpr void for_each_region(Plan& p, Visit&& visit) {
    using h = file_header;
    const std::uint64_t rows = p.lane_count + std::uint64_t{p.process_count};
    visit(p.ring, &h::ring_offset, std::uint64_t{sizeof(ring_state)});
    visit(p.clocks, &h::clocks_offset, std::uint64_t{p.clock_count} * sizeof(clock_entry));
    visit(p.processes, &h::processes_offset,
          std::uint64_t{p.process_count} * sizeof(process_entry));
    visit(p.gates, &h::gates_offset, std::uint64_t{p.gate_count} * sizeof(gate_page));
    visit(p.lanes, &h::lanes_offset, std::uint64_t{p.lane_count} * sizeof(lane_entry));
    visit(p.totals, &h::totals_offset, p.totals_per_lane * rows * sizeof(std::uint64_t));
    visit(p.dictionary, &h::dictionary_offset, p.dictionary_bytes);
    visit(p.index, &h::index_offset, p.sub_buffer_limit * sizeof(index_entry));
}

/// One table whose header says how long its entries are.
struct table_stride {
    shared_atomic<std::uint32_t> file_header::*in_header;
    std::uint32_t bytes;
    std::string_view fault;
};
inline constexpr table_stride strides[] = {
    {&file_header::clock_stride, sizeof(clock_entry), "unknown stride of clock entries"},
    {&file_header::process_stride, sizeof(process_entry), "unknown stride of process entries"},
    {&file_header::gate_stride, sizeof(gate_page), "unknown stride of gates"},
    {&file_header::lane_stride, sizeof(lane_entry), "unknown stride of lane entries"},
    {&file_header::index_stride, sizeof(index_entry), "unknown stride of index entries"}};

/// Calls `visit(plan's number, header's number)` for the numbers that are not offsets.
template <class Plan, class Visit>
constexpr void for_each_size(Plan& p, Visit&& visit) {
    using h = file_header;
    visit(p.sub_buffer_bytes, &h::sub_buffer_bytes);
    visit(p.sub_buffer_limit, &h::sub_buffer_limit);
    visit(p.clock_count, &h::clock_count);
    visit(p.process_count, &h::process_count);
    visit(p.gate_count, &h::gate_count);
    visit(p.lane_count, &h::lane_count);
    visit(p.totals_per_lane, &h::totals_per_lane);
    visit(p.dictionary_bytes, &h::dictionary_bytes);
}

/// What is wrong with a header, and where: `what` is empty if nothing is.
struct header_fault {
    std::string_view what{};
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
    const auto get = [](const auto& word) { return word.load(relaxed); };
    if (get(h.version) < oldest_version || get(h.version) > file_version) {
        return {"a trace file of another version", offsetof(file_header, version)};
    }
    if (get(h.header_bytes) != format_page_bytes) {
        return {"the header's size is wrong", offsetof(file_header, header_bytes)};
    }
    if (size < format_page_bytes) return {"the header is cut short", size};

    plan p;
    for_each_size(p, [&](auto& number, auto in_header) { number = get(h.*in_header); });
    if (!valid_sub_buffer_bytes(p.sub_buffer_bytes)) {
        return {"impossible size of sub-buffers", offsetof(file_header, sub_buffer_bytes)};
    }
    if (p.sub_buffer_limit == 0 || p.sub_buffer_limit > (1ULL << 48) / p.sub_buffer_bytes) {
        return {"impossible number of sub-buffers", offsetof(file_header, sub_buffer_limit)};
    }
    const auto offset = [base](const auto& word) {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&word) -
                                          static_cast<const std::byte*>(base));
    };
    for (const auto& each : strides) {
        const auto& stride = h.*each.in_header;
        if (get(stride) != each.bytes) return {each.fault, offset(stride)};
    }
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
    header_fault fault;
    std::uint64_t end = format_page_bytes;
    for_each_region(p, [&](std::uint64_t& here, auto in_header, std::uint64_t bytes) {
        if (fault) return;
        here = get(h.*in_header);
        if (&here == &p.index) bytes = 0;  // the file may not have grown yet
        if (here % format_page_bytes != 0 || here < end) {
            fault = {"regions overlap", offset(h.*in_header)};
        } else if (here > size || bytes > size - here) {
            fault = {"the file ends before its tables do", size};
        }
        end = here + bytes;
    });
    if (fault) return fault;
    p.sub_buffers = get(h.sub_buffers_offset);
    if (p.sub_buffers % format_page_bytes != 0 || p.sub_buffers < p.index ||
        p.sub_buffers - p.index < p.sub_buffer_limit * sizeof(index_entry) ||
        p.sub_buffers > (1ULL << 49)) {
        return {"sub-buffers overlap the index", offsetof(file_header, sub_buffers_offset)};
    }
    p.file_limit = p.bytes_for(p.sub_buffer_limit);
    if (get(h.file_limit) != p.file_limit) {
        return {"the sizes contradict each other", offsetof(file_header, file_limit)};
    }
    // Of a trace that was trimmed: it had no less than it has. Of another: nothing.
    const bool trimmed = get(h.whole_lane_count) != 0;
    const auto had = [trimmed](std::uint64_t before, std::uint64_t now) {
        return trimmed ? before >= now : before == 0;
    };
    if (!had(get(h.whole_limit), p.sub_buffer_limit) || !had(get(h.whole_capacity), 1) ||
        !had(get(h.whole_dictionary_bytes), p.dictionary_bytes) ||
        !had(get(h.whole_process_count), p.process_count) ||
        !had(get(h.whole_gate_count), p.gate_count) ||
        !had(get(h.whole_lane_count), p.lane_count) || get(h.reserved3) != 0) {
        return {"the sizes from before it was trimmed are impossible",
                offsetof(file_header, whole_limit)};
    }
    out = p;
    return {};
}

/// The number of whole sub-buffers, with their index entries, in a checked file of `size` bytes.
[[nodiscard]] inline std::uint64_t present_sub_buffers(const plan& p, std::uint64_t size) noexcept {
    if (size <= p.sub_buffers) return 0;
    const std::uint64_t there = (size - p.sub_buffers) / p.sub_buffer_bytes;
    return there < p.sub_buffer_limit ? there : p.sub_buffer_limit;
}

}  // namespace trace_ring::inline v1::layout
