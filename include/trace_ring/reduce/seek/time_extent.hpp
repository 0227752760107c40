// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds when a trace begins and ends, without reading all of it: from the lane table, a few
/// entries of the index and the newest sub-buffers of the lanes that may hold the last record.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/file/index_rows.hpp>
#include <trace_ring/reduce/file/index_window.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// In ticks of the trace's clock.
struct time_extent {
    bool empty = true;        ///< the trace has no sub-buffer
    std::uint64_t first = 0;  ///< when its oldest sub-buffer was opened
    std::uint64_t last = 0;   ///< of the last record
};

namespace impl {

class extent_search {
public:
    explicit extent_search(const tables& in) : in_(in) {}

    [[nodiscard]] time_extent find() {
        const sub_buffer_order order(in_);
        // Sub-buffers are opened nearly in the order of positions: a few dozen places off at most.
        constexpr std::uint64_t edge = 256;
        const std::uint64_t limit = in_.plan().sub_buffer_limit;
        if (order.size() > 2 * edge) {
            for (std::uint64_t i = 0; i < edge; ++i) {
                note(order.slot(i));
                note(order.slot(order.size() - 1 - i));
            }
            for (const auto& lane : in_.lanes()) {
                if (lane.listed && lane.newest != no_position) note(slot_of(lane.newest, limit));
            }
        } else {
            for (std::uint64_t slot = 0; slot < (std::min)(in_.present(), limit); ++slot)
                note(slot);
        }
        if (out_.empty) return out_;
        // Latest possible end first; an open sub-buffer may end at any later time.
        std::sort(ends_.begin(), ends_.end(),
                  [](const end& a, const end& b) { return a.latest > b.latest; });
        for (const end& each : ends_) {
            if (each.latest <= out_.last) break;
            out_.last = (std::max)(out_.last, last_record(each));
        }
        out_.last = (std::max)(out_.last, out_.first);
        return out_;
    }

private:
    struct end {
        std::uint64_t latest = 0;
        std::uint64_t slot = 0;
        position pos = no_position;
        std::uint8_t era = 0;
    };

    void note(std::uint64_t slot) {
        index_row row;
        rows_.read(in_, slot, 1);
        if (!rows_.get(0, row) || row.pos == no_position || row.lane == 0 ||
            slot_of(row.pos, in_.plan().sub_buffer_limit) != slot) {
            return;
        }
        const auto& eras = in_.time().eras();
        const std::uint8_t era = eras.of(row.lane, row.pos, row.first_time);
        const std::uint64_t first = row.first_time + eras.shift(era);
        out_.first = out_.empty ? first : (std::min)(out_.first, first);
        out_.empty = false;
        const std::uint64_t last =
            row.last_time + eras.shift(eras.next(era, row.first_time, row.last_time));
        ends_.push_back({row.last_time != 0 ? last : ~std::uint64_t{0}, slot, row.pos, era});
    }
    [[nodiscard]] std::uint64_t last_record(const end& of) {
        words_.resize(in_.plan().sub_buffer_bytes / 8);
        sub_buffer_copy head;
        if (in_.bytes().copy(in_.plan().bytes_for(of.slot), words_, head) != copy_result::copied ||
            head.state.pos != of.pos) {
            return 0;
        }
        const auto& eras = in_.time().eras();
        std::size_t era = of.era;
        std::uint64_t before = head.base_time;
        std::uint64_t last = 0;
        (void)walk_records(words_, head, [&](std::size_t, std::uint64_t time, std::uint32_t) {
            era = eras.next(era, before, time);
            before = time;
            last = (std::max)(last, time + eras.shift(era));
        });
        return last;
    }

    const tables& in_;
    time_extent out_;
    std::vector<end> ends_;
    index_rows rows_;
    std::vector<std::uint64_t> words_;
};

}  // namespace impl

/// By the tables as they are. Linear in the lanes, plus a few copies of sub-buffers.
[[nodiscard]] inline time_extent extent_of(const tables& in) {
    return impl::extent_search(in).find();
}

}  // namespace trace_ring::inline v1::reduce
