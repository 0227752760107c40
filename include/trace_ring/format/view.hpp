// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace in memory: mapped by those who record into it, control it or drain it, or copied. All of
/// them reach its regions through a view, and none computes an address.
/// @code
///   trace_ring::layout::view trace;
///   if (const auto fault = trace.open(base, bytes)) use(fault.what, fault.offset);
///   trace.lane(slot).written.load(trace_ring::acquire);
/// @endcode
/// A view costs what a pointer and constants cost: its functions add an offset of the plan, which
/// was checked once. Entry numbers come from loops over the plan's counts, or were compared with
/// them, because other processes may store anything into a shared trace.

#include <cstddef>
#include <cstdint>

#include <trace_ring/format/dictionary.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/plan.hpp>

namespace trace_ring::inline v1::layout {

class view {
public:
    constexpr view() noexcept = default;
    /// Of a trace whose plan was checked.
    constexpr view(std::byte* base, const layout::plan& checked) noexcept
        : base_(base), plan_(checked) {}

    /// Checks the header at `base`, where `bytes` can be read, and views the trace. On failure the
    /// view stays what it was.
    [[nodiscard]] header_fault open(std::byte* base, std::uint64_t bytes) noexcept {
        layout::plan found;
        const header_fault fault = check_layout(base, bytes, found);
        if (!fault) *this = view(base, found);
        return fault;
    }

    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] const layout::plan& plan() const noexcept { return plan_; }

    [[nodiscard]] file_header& header() const noexcept { return at<file_header>(0); }
    [[nodiscard]] ring_state& ring() const noexcept { return at<ring_state>(plan_.ring); }
    [[nodiscard]] clock_entry& clocks(std::uint32_t slot) const noexcept {
        return at<clock_entry>(plan_.clock_at(slot));
    }
    [[nodiscard]] process_entry& process(std::uint32_t slot) const noexcept {
        return at<process_entry>(plan_.process_at(slot));
    }
    /// The gates of a page; of the first, if others have stored an impossible number.
    [[nodiscard]] gate_page& gates(std::uint32_t page) const noexcept {
        return at<gate_page>(plan_.gates_at(page < plan_.gate_count ? page : 0));
    }
    [[nodiscard]] lane_entry& lane(std::uint32_t slot) const noexcept {
        return at<lane_entry>(plan_.lane_at(slot));
    }
    /// Row `row` of the totals: lanes first, then numberings. Null: there are no totals.
    [[nodiscard]] shared_atomic<std::uint64_t>* totals(std::uint32_t row) const noexcept {
        return plan_.totals_per_lane == 0 ? nullptr
                                          : &at<shared_atomic<std::uint64_t>>(plan_.totals_at(row));
    }
    [[nodiscard]] dictionary_entries types() const noexcept {
        return {base_ + plan_.dictionary, plan_.dictionary_bytes};
    }
    [[nodiscard]] index_entry& index(std::uint64_t slot) const noexcept {
        return at<index_entry>(plan_.index_at(slot));
    }
    [[nodiscard]] sub_buffer_header& sub_buffer(std::uint64_t slot) const noexcept {
        return at<sub_buffer_header>(plan_.bytes_for(slot));
    }
    [[nodiscard]] std::uint64_t slot_number(const sub_buffer_header& sub) const noexcept {
        const auto offset = reinterpret_cast<const std::byte*>(&sub) - base_;
        return (static_cast<std::uint64_t>(offset) - plan_.sub_buffers) / plan_.sub_buffer_bytes;
    }

private:
    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const noexcept {
        return *static_cast<T*>(static_cast<void*>(base_ + offset));
    }

    std::byte* base_ = nullptr;
    layout::plan plan_{};
};

}  // namespace trace_ring::inline v1::layout
