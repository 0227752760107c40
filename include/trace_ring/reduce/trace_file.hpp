// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a trace: of a running program, of one that ended or was killed, or of this program. This
/// header has everything that reading needs.
/// @code
///   auto trace = trace_ring::reduce::trace_file::open("orders.trace");
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
///       if (const auto* record = std::get_if<trace_ring::reduce::record_view>(item)) {
///           use(record->name(), record->field("id").u64(), trace.realtime_ns(record->time()));
///       } else if (const auto* loss = std::get_if<trace_ring::reduce::loss_item>(item)) {
///           complain(loss->count, loss->cause);
///       }
///   }
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/statistics.hpp>

namespace trace_ring::inline v1::reduce {

/// `unpack`, for the functions that make one: unpacks records that pack others
/// (tables/packing.hpp). Movable: cursors and views stay good when it is moved, but must not
/// outlive it. Not thread-safe.
class trace_file {
public:
    /// Throws std::system_error if the file cannot be opened, format_error if it is no trace file
    /// that can be read. A program that records into the file itself should read it by `from` or
    /// `of_descriptor`, as closing a file releases the locks that the process has on it.
    [[nodiscard]] static trace_file open(const std::string& path, const packing* unpack = nullptr) {
        return trace_file(source::open(path), unpack);
    }
    /// Memory that holds a trace, live or not, aligned to 8 bytes; `name` for messages.
    [[nodiscard]] static trace_file from(std::span<const std::byte> memory,
                                         std::string name = "memory",
                                         const packing* unpack = nullptr) {
        return trace_file(source::from(memory, std::move(name)), unpack);
    }
    /// Takes over a descriptor, of a file or a memfd.
    [[nodiscard]] static trace_file of_descriptor(int fd, std::string name,
                                                  const packing* unpack = nullptr) {
        return trace_file(source::adopt(fd, std::move(name)), unpack);
    }

    /// A trace that is part of something larger, such as a core dump.
    [[nodiscard]] static trace_file of_source(source from, const packing* unpack = nullptr) {
        return trace_file(std::move(from), unpack);
    }

    /// The file's name, or the memory's.
    [[nodiscard]] const std::string& name() const noexcept { return tables_->name(); }
    /// The event types in the dictionary.
    [[nodiscard]] const std::deque<event_type>& event_types() const noexcept {
        return tables_->events().types();
    }
    /// The lanes in the table, and those of departed threads that still have records.
    [[nodiscard]] const std::deque<lane_info>& lanes() const noexcept { return tables_->lanes(); }
    /// The processes in the table.
    [[nodiscard]] const std::vector<process_info>& processes() const noexcept {
        return tables_->processes();
    }
    /// The sizes of the trace, and its totals.
    [[nodiscard]] const ring_info& ring() const noexcept { return tables_->ring(); }
    /// The clock's readings, and the conversion of ticks to times.
    [[nodiscard]] const timeline& time() const noexcept { return tables_->time(); }
    /// The date of a tick, in nanoseconds since 1970.
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks) const noexcept {
        return time().realtime_ns(ticks);
    }
    /// The time of a tick since the trace was set up, in nanoseconds.
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks) const noexcept {
        return time().relative_ns(ticks);
    }
    /// The first tick whose date is `realtime_ns` or later, for filter::from and filter::to. If the
    /// date was set back (clock_jump), this may be any of the places with that date. A tick about a
    /// century after the trace if the date is later. 0 if the clock is not known. Constant time.
    [[nodiscard]] std::uint64_t ticks_at(std::int64_t realtime_ns) const noexcept {
        if (!time().known()) return 0;
        constexpr double century_ns = 3.2e18;
        std::uint64_t low = 0;
        std::uint64_t high = time().snapshots().back().ticks;
        high += static_cast<std::uint64_t>(
            (std::min)(century_ns / time().ns_per_tick(), static_cast<double>(~high) / 2));
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            time().realtime_ns(middle) < realtime_ns ? low = middle + 1 : high = middle;
        }
        return low;
    }
    /// Everything else that the file has besides its records.
    [[nodiscard]] const tables& about() const noexcept { return *tables_; }
    /// Damage in the file's tables. Damage in its records is among the items of a cursor.
    [[nodiscard]] const std::vector<damage>& damages() const noexcept { return tables_->damages(); }
    /// Brings all of the above up to date with a live file.
    void refresh() { tables_->refresh(); }
    /// True if some process still has the file open for recording.
    [[nodiscard]] bool live() const noexcept { return tables_->in_use(); }

    /// The items that are there now, from the oldest record to the newest. `backward` gives the
    /// same items in the opposite order, provided that time does not go back within a lane.
    [[nodiscard]] cursor forward(filter what = {}, merging order = merging::by_time) const {
        return cursor(*tables_, std::move(what), direction::forward, order);
    }
    /// The items that are there now, from the newest record to the oldest.
    [[nodiscard]] cursor backward(filter what = {}, merging order = merging::by_time) const {
        return cursor(*tables_, std::move(what), direction::backward, order);
    }
    /// The items that are there now and those that will come: `next()` returns null when there is
    /// nothing new yet. Each lane's records are in order, none twice. Lanes are merged by time as
    /// far as possible: for that the newest records are held back until the next call. As long as
    /// this trace_file is open, the file keeps its inode when it is closed and trimmed.
    [[nodiscard]] cursor follow(filter what = {}) const {
        tables_->bytes().share_lock(layout::follow_lock_offset);
        return cursor(*tables_, std::move(what), direction::forward, merging::by_time, true);
    }
    /// Counts the records. Linear in the number of records.
    [[nodiscard]] trace_statistics statistics(const filter& what = {}) const {
        return count(*tables_, what);
    }
    /// The same, and reports all records and gaps to `observer` (statistics.hpp).
    template <class Observer>
    [[nodiscard]] trace_statistics statistics(const filter& what, Observer&& observer,
                                              merging order = merging::by_lane) const {
        return count(*tables_, what, observer, order);
    }

    /// Makes all dates later by `ns`: corrects a trace from a machine whose clock was wrong.
    void shift_realtime(std::int64_t ns) { tables_->shift_realtime(ns); }

private:
    trace_file(source from, const packing* unpack)
        : tables_(std::make_unique<tables>(std::move(from), unpack)) {}

    std::unique_ptr<tables> tables_;
};

}  // namespace trace_ring::inline v1::reduce

#endif
