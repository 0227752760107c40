// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What of a trace file is in use, and how it is copied into tables of other lengths. The file
/// must not change during either.

#include <cstddef>
#include <cstdint>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/lay_out.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/policy/storage/file.hpp>

namespace trace_ring::inline v1::impl {

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
        copy(old_.clocks, fresh_.clocks, old_.clock_at(old_.clock_count) - old_.clocks);
        copy(old_.processes, fresh_.processes, old_.process_at(processes) - old_.processes);
        copy(old_.gates, fresh_.gates,
             least(old_.gate_count, fresh_.gate_count) * std::uint64_t{layout::format_page_bytes});
        copy(old_.lanes, fresh_.lanes, old_.lane_at(lanes) - old_.lanes);
        copy(old_.totals, fresh_.totals, lanes * row);
        copy(old_.totals_at(old_.lane_count), fresh_.totals_at(fresh_.lane_count), processes * row);
        copy(old_.dictionary, fresh_.dictionary,
             least(old_.dictionary_bytes, fresh_.dictionary_bytes));
        copy(old_.index, fresh_.index, old_.index_at(used) - old_.index);
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
        layout::store_plan(h, fresh_);
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
    used_parts(const layout::view& trace, std::uint64_t present) noexcept : trace_(trace) {
        const layout::plan& plan = trace.plan();
        const layout::ring_state& ring = trace.ring();
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
        const layout::plan& plan = trace_.plan();
        layout::plan out = plan;
        out.sub_buffer_limit = limit;
        using layout::format_page_bytes;
        std::uint64_t gates = 1;
        while (out.process_count > 1 && is_zero(trace_.process(out.process_count - 1)))
            --out.process_count;
        for (std::uint32_t slot = 0; slot < out.process_count; ++slot) {
            // relaxed: nobody writes
            const std::uint32_t page = trace_.process(slot).gate_page.load(relaxed);
            gates = greatest<std::uint64_t>(gates, page + 1ULL);
        }
        while (out.gate_count > gates && is_zero(trace_.gates(out.gate_count - 1)))
            --out.gate_count;
        while (out.lane_count > 1 && is_zero(trace_.lane(out.lane_count - 1))) --out.lane_count;
        std::uint64_t pages = plan.dictionary_bytes / format_page_bytes;
        while (pages > 1 &&
               is_zero(trace_.types().base + (pages - 1) * format_page_bytes, format_page_bytes)) {
            --pages;
        }
        out.dictionary_bytes = least(plan.dictionary_bytes, pages * format_page_bytes);
        return layout::lay_out(out);
    }

private:
    template <class Entry>
    [[nodiscard]] static bool is_zero(const Entry& entry) noexcept {
        return is_zero(&entry, sizeof entry);
    }
    [[nodiscard]] static bool is_zero(const void* from, std::size_t bytes) noexcept {
        for (std::size_t i = 0; i < bytes; i += 8) {
            if (word_at<std::uint64_t>(from, i).load(relaxed) != 0) return false;  // as above
        }
        return true;
    }
    [[nodiscard]] bool is_unused(std::uint64_t slot) const noexcept {
        return trace_.sub_buffer(slot).state.load(relaxed) == 0 &&  // relaxed, both: nobody writes
               trace_.index(slot).pos.load(relaxed) == 0;
    }

    const layout::view& trace_;
};

}  // namespace trace_ring::inline v1::impl
