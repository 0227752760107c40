// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What of a trace file is in use, and how it is copied into tables of other lengths. The file
/// must not change during either.

#include <cstddef>
#include <cstdint>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/policy/storage/file.hpp>

namespace trace_ring::inline v1::impl {

/// Stores the sizes and offsets of a plan in a header.
inline void store_plan(layout::file_header& h, const layout::plan& p) noexcept {
    // relaxed, to the end: published by the magic, or own memory
    h.sub_buffer_bytes.store(p.sub_buffer_bytes, relaxed);
    h.sub_buffer_limit.store(p.sub_buffer_limit, relaxed);
    h.file_limit.store(p.file_limit, relaxed);
    h.ring_offset.store(p.ring, relaxed);
    h.clocks_offset.store(p.clocks, relaxed);
    h.clock_stride.store(sizeof(layout::clock_entry), relaxed);
    h.clock_count.store(p.clock_count, relaxed);
    h.processes_offset.store(p.processes, relaxed);
    h.process_stride.store(sizeof(layout::process_entry), relaxed);
    h.process_count.store(p.process_count, relaxed);
    h.gates_offset.store(p.gates, relaxed);
    h.gate_stride.store(layout::format_page_bytes, relaxed);
    h.gate_count.store(p.gate_count, relaxed);
    h.lanes_offset.store(p.lanes, relaxed);
    h.lane_stride.store(sizeof(layout::lane_entry), relaxed);
    h.lane_count.store(p.lane_count, relaxed);
    h.totals_offset.store(p.totals, relaxed);
    h.totals_per_lane.store(p.totals_per_lane, relaxed);
    h.dictionary_offset.store(p.dictionary, relaxed);
    h.dictionary_bytes.store(p.dictionary_bytes, relaxed);
    h.index_offset.store(p.index, relaxed);
    h.index_stride.store(sizeof(layout::index_entry), relaxed);
    h.sub_buffers_offset.store(p.sub_buffers, relaxed);
}

/// Copies a trace into another layout. Each table of that has room for what is in use.
class relayout {
public:
    relayout(const std::byte* from, const layout::plan& old, const layout::plan& fresh,
             int to) noexcept
        : from_(from), old_(old), fresh_(fresh), to_(to) {}

    /// Writes everything but the header. `capacity`: the sub-buffers that exist afterwards, of
    /// which the first `used` are copied. 0 or the error.
    [[nodiscard, gnu::cold]] int tables(std::uint64_t capacity, std::uint64_t used) noexcept {
        using layout::ring_state;
        const std::uint64_t row = 8ULL * old_.totals_per_lane;
        const std::uint64_t lanes = least(old_.lane_count, fresh_.lane_count);
        const std::uint64_t processes = least(old_.process_count, fresh_.process_count);
        copy(old_.ring, fresh_.ring, sizeof(ring_state));
        write(&capacity, fresh_.ring + offsetof(ring_state, capacity), sizeof capacity);
        copy(old_.clocks, fresh_.clocks, old_.clock_count * sizeof(layout::clock_entry));
        copy(old_.processes, fresh_.processes, processes * sizeof(layout::process_entry));
        copy(old_.gates, fresh_.gates,
             least(old_.gate_count, fresh_.gate_count) * std::uint64_t{layout::format_page_bytes});
        copy(old_.lanes, fresh_.lanes, lanes * sizeof(layout::lane_entry));
        copy(old_.totals, fresh_.totals, lanes * row);
        copy(old_.totals + old_.lane_count * row, fresh_.totals + fresh_.lane_count * row,
             processes * row);
        copy(old_.dictionary, fresh_.dictionary,
             least(old_.dictionary_bytes, fresh_.dictionary_bytes));
        copy(old_.index, fresh_.index, used * sizeof(layout::index_entry));
        copy(old_.sub_buffers, fresh_.sub_buffers, used * old_.sub_buffer_bytes);
        return error_;
    }
    /// Writes the header, by one call. `whole`: the sizes to remember, as the plan and the number
    /// of sub-buffers that the trace had; a plan without lanes if it has them now.
    [[nodiscard, gnu::cold]] int header(const layout::plan& whole,
                                        std::uint64_t whole_capacity) noexcept {
        // relaxed, to the end: own memory
        alignas(8) std::byte page[layout::format_page_bytes];
        for (std::size_t i = 0; i < sizeof page; i += 8) {
            word_at<std::uint64_t>(page, i).store(
                word_at<std::uint64_t>(const_cast<std::byte*>(from_), i).load(relaxed), relaxed);
        }
        auto& h = *static_cast<layout::file_header*>(static_cast<void*>(page));
        store_plan(h, fresh_);
        h.whole_limit.store(whole.sub_buffer_limit, relaxed);
        h.whole_capacity.store(whole_capacity, relaxed);
        h.whole_dictionary_bytes.store(whole.dictionary_bytes, relaxed);
        h.whole_process_count.store(whole.process_count, relaxed);
        h.whole_gate_count.store(whole.gate_count, relaxed);
        h.whole_lane_count.store(whole.lane_count, relaxed);
        write(page, 0, sizeof page);
        return error_;
    }

private:
    void copy(std::uint64_t at, std::uint64_t to, std::uint64_t bytes) noexcept {
        write(from_ + at, to, bytes);
    }
    void write(const void* what, std::uint64_t to, std::uint64_t bytes) noexcept {
        if (error_ == 0) error_ = storage::write_at(to_, what, as_size(bytes), to);
    }

    const std::byte* from_;
    layout::plan old_;
    layout::plan fresh_;
    int to_;
    int error_ = 0;
};

/// What of a trace is in use. The file must not change.
class used_parts {
public:
    used_parts(const std::byte* from, const layout::plan& plan, std::uint64_t present) noexcept
        : from_(from), plan_(plan) {
        const auto& ring = at<layout::ring_state>(plan.ring);
        // relaxed, to the end: nobody writes
        capacity = least(ring.capacity.load(relaxed), present);
        std::uint64_t drawn = ring.cursor.load(relaxed);
        std::uint64_t set_aside = 0;
        bool whole = drawn > plan.sub_buffer_limit;
        for (const auto& quota : ring.quotas) {
            const std::uint64_t count = quota.sub_buffers.load(relaxed);
            if (count > capacity - set_aside) break;
            set_aside += count;
            whole = whole || quota.cursor.load(relaxed) > set_aside;
            drawn = greatest(drawn, set_aside);
        }
        sub_buffers = capacity;
        limit = plan.sub_buffer_limit;
        if (whole) return;  // a position is in another slot if there are fewer
        sub_buffers = least(capacity, greatest<std::uint64_t>(drawn, 1));
        limit = greatest(sub_buffers, least(drawn, plan.sub_buffer_limit));
        // Positions that were drawn ahead and not used.
        while (sub_buffers > set_aside + 1 && is_unused(sub_buffers - 1)) --sub_buffers;
        limit = greatest(limit, sub_buffers);
    }

    std::uint64_t capacity = 0;     ///< sub-buffers that exist
    std::uint64_t sub_buffers = 0;  ///< up to the last one that was ever used
    std::uint64_t limit = 0;        ///< the least for which each position has the slot that it has

    /// A layout for no more than that.
    [[nodiscard]] layout::plan least_plan() const noexcept {
        layout::plan out = plan_;
        out.sub_buffer_limit = limit;
        using layout::format_page_bytes;
        std::uint64_t gates = 1;  // relaxed, to the end: nobody writes
        while (out.process_count > 1 &&
               is_zero(plan_.processes, out.process_count - 1, sizeof(layout::process_entry))) {
            --out.process_count;
        }
        for (std::uint32_t slot = 0; slot < out.process_count; ++slot) {
            const auto& entry =
                at<layout::process_entry>(plan_.processes + slot * sizeof(layout::process_entry));
            gates = greatest<std::uint64_t>(gates, entry.gate_page.load(relaxed) + 1ULL);
        }
        while (out.gate_count > gates &&
               is_zero(plan_.gates, out.gate_count - 1, format_page_bytes)) {
            --out.gate_count;
        }
        while (out.lane_count > 1 &&
               is_zero(plan_.lanes, out.lane_count - 1, sizeof(layout::lane_entry))) {
            --out.lane_count;
        }
        std::uint64_t pages = plan_.dictionary_bytes / format_page_bytes;
        while (pages > 1 && is_zero(plan_.dictionary, pages - 1, format_page_bytes)) --pages;
        out.dictionary_bytes = least(plan_.dictionary_bytes, pages * format_page_bytes);
        return layout::lay_out(out);
    }

private:
    template <class T>
    [[nodiscard]] const T& at(std::uint64_t offset) const noexcept {
        return *static_cast<const T*>(static_cast<const void*>(from_ + offset));
    }
    [[nodiscard]] bool is_zero(std::uint64_t table, std::uint64_t i,
                               std::uint64_t stride) const noexcept {
        for (std::uint64_t k = 0; k < stride; k += 8) {  // relaxed: nobody writes
            if (at<shared_atomic<std::uint64_t>>(table + i * stride + k).load(relaxed) != 0) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] bool is_unused(std::uint64_t slot) const noexcept {
        // relaxed, both: nobody writes
        return at<sub_buffer_header>(plan_.bytes_for(slot)).state.load(relaxed) == 0 &&
               at<layout::index_entry>(plan_.index + slot * sizeof(layout::index_entry))
                       .pos.load(relaxed) == 0;
    }

    const std::byte* from_;
    const layout::plan& plan_;
};

}  // namespace trace_ring::inline v1::impl
