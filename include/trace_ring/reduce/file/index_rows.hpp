// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies entries of a trace's dense index, 32 bytes for each sub-buffer, and
/// says which slot holds which position.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// One entry, unchecked.
struct index_row {
    position pos = no_position;
    std::uint64_t first_time = 0;
    std::uint64_t last_time = 0;  ///< 0: not closed
    std::uint32_t lane = 0;
};

class index_rows {
public:
    /// Copies the entries of `count` slots from `slot` on; entries beyond the file's end are zero.
    void read(const tables& in, std::uint64_t slot, std::size_t count) {
        rows_.read(in.bytes(), in.plan().index_at(slot), count);
    }
    /// False: the entry was being written.
    [[nodiscard]] bool get(std::size_t i, index_row& out) const noexcept {
        out = row_of(rows_.first()[i]);
        return out.pos == rows_.again()[i].pos.load(relaxed);  // relaxed: a copy
    }
    [[nodiscard]] static index_row row_of(const layout::index_entry& copy) noexcept {
        // relaxed, all: nobody writes it
        return {copy.pos.load(relaxed), copy.first_time.load(relaxed), copy.last_time.load(relaxed),
                copy.lane.load(relaxed)};
    }

private:
    read_twice<layout::index_entry> rows_{};
};

/// The slots of a trace with one ring, in the order of positions, by the tables as they are now.
class sub_buffer_order {
public:
    explicit sub_buffer_order(const tables& in) noexcept : in_(in) {
        const position newest = in.ring().cursor;
        const std::uint64_t limit = in.plan().sub_buffer_limit;
        const std::uint64_t capacity = (std::min)({in.ring().capacity, in.present(), limit});
        if (newest == no_position || newest > last_position || in.ring().several) return;
        const std::uint64_t slot = slot_of(newest, limit);
        if (slot >= capacity) return;  // the ring is about to wrap round, or grows
        newest_slot_ = slot;
        count_ = capacity_ = newest > limit ? capacity : slot + 1;
    }

    /// The number of places; 0: the order is not known.
    [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
    /// The slot of a place, counted from the oldest.
    [[nodiscard]] std::uint64_t slot(std::uint64_t place) const noexcept {
        return (newest_slot_ + 1 + place) % capacity_;
    }
    /// The position at a place, unless an older sub-buffer is held there.
    [[nodiscard]] position at(std::uint64_t place) const noexcept {
        const std::uint64_t slot = this->slot(place);
        const position round = in_.ring().cursor - newest_slot_;  // of slot 0
        return slot <= newest_slot_ ? round + slot : round + slot - in_.plan().sub_buffer_limit;
    }

    /// The place of a position; `size()` if the position is not there.
    [[nodiscard]] std::uint64_t place_of(position pos) const noexcept {
        const std::uint64_t slot = slot_of(pos, in_.plan().sub_buffer_limit);
        if (pos == no_position || slot >= capacity_) return count_;
        const std::uint64_t place = (slot + capacity_ - newest_slot_ - 1) % capacity_;
        return at(place) == pos ? place : count_;
    }

private:
    const tables& in_;
    std::uint64_t newest_slot_ = 0;
    std::uint64_t capacity_ = 1;
    std::uint64_t count_ = 0;
};

}  // namespace trace_ring::inline v1::reduce
