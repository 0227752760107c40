// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One trace file that is followed, from what has already arrived of it.
///
/// The file is read from its oldest record, because spans need their begins, and losses are counted
/// from there. What has arrived is passed over:
/// - a record, or a loss of records that were written, by its position in the lane;
/// - a loss of records that were never written, by the count: of each lane and cause, the first so
///   many have arrived;
/// - a loss of no lane also counts what lanes have lost, or had overwritten, that the file does not
///   list any more: so what has arrived of lanes that the file does not know counts for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <clickhouse/record_table.hpp>
#include <clickhouse/span_ends.hpp>
#include <clickhouse/stack_names.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "destination.hpp"

namespace trace_ship {

/// How much was delivered.
struct shipped_counts {
    std::uint64_t records = 0;
    std::uint64_t clock_jumps = 0;
    std::uint64_t damages = 0;
    trace_ring::loss_counts lost{};
    std::int64_t newest_ns = 0;  ///< the time of the last record
};

class followed_trace {
public:
    enum class progress {
        nothing,  ///< there is nothing to read now
        some,     ///< items were read, and there may be more
        full,     ///< the next item does not fit into the batch
    };

    /// `symbols`: names call stacks; null: they stay without names. Throws std::system_error or
    /// format_error if it is no trace that can be read.
    followed_trace(reduce::source file, const std::string& host,
                   clickhouse::stack_symbols* symbols = nullptr)
        : file_(reduce::trace_file::of_source(std::move(file))),
          identity_(clickhouse::identity_of(file_.about(), host)) {
        if (symbols != nullptr) names_.emplace(file_.about(), *symbols);
    }
    followed_trace(const followed_trace&) = delete;

    [[nodiscard]] const clickhouse::trace_identity& identity() const noexcept { return identity_; }
    [[nodiscard]] const std::string& path() const noexcept { return file_.name(); }
    [[nodiscard]] const reduce::trace_file& file() const noexcept { return file_; }

    /// Begins to read. What `to` throws, this passes on: then it may be called again.
    void start(destination& to) {
        auto state = to.state_of(identity_);
        state_ = std::move(state);
        number_ = to.add_trace(file_.about(), identity_);
        cursor_.emplace(file_.follow());
    }
    [[nodiscard]] bool is_started() const noexcept { return cursor_.has_value(); }
    void leave(destination& to) { to.remove_trace(number_); }

    /// Reads up to `most` items and adds them to `to`.
    progress read(destination& to, std::size_t most, shipped_counts& counts) {
        for (std::size_t i = 0; i < most; ++i) {
            if (!held_) {
                const reduce::item* const next = cursor_->next();
                if (next == nullptr) return progress::nothing;
                held_ = spans_.look_at(*next);
                if (names_) names_->look_at(*next);
                const clickhouse::row_item whole = *held_;
                const bool is_left = is_new();
                if (!is_left || held_->what != next) to.pass_over(number_, whole);
                if (!is_left) {
                    held_.reset();
                    continue;
                }
                if (names_) held_->stack_text = names_->text_of(*held_->what);
            }
            if (!to.add(number_, *held_)) return progress::full;
            count(*held_->what, counts);
            held_.reset();
        }
        return progress::some;
    }

    /// True if no program records into it, and what is read now is all: asked before reading, as a
    /// program may write and end in between.
    [[nodiscard]] bool has_ended() {
        file_.refresh();
        return !file_.live();
    }
    /// After that `read` returns the losses that only the tables count.
    void finish() { cursor_->stop_following(); }

private:
    [[nodiscard]] delivered::of_lane& state(const reduce::lane_info* lane) {
        return state_.lanes[lane == nullptr ? 0 : lane->number];
    }

    /// Whether the item in `held_` has not arrived. A loss of which a part has arrived is cut.
    [[nodiscard]] bool is_new() {
        if (const auto* record = std::get_if<reduce::record_view>(held_->what)) {
            auto& lane = state(&record->lane());
            if (record->position() >= lane.next) return true;
            lane.positions -= (std::min<std::uint64_t>)(lane.positions, 1);
            return false;
        }
        if (const auto place = delivered::place_of(*held_->what)) {
            return !state_.places.contains(*place);
        }
        auto loss = std::get<reduce::loss_item>(*held_->what);
        if (loss.lane != nullptr && was_written(loss.cause)) {
            auto& lane = state(loss.lane);
            const std::uint64_t known =
                loss.at >= lane.next ? 0 : (std::min)(loss.count, lane.next - loss.at);
            lane.positions -= (std::min)(lane.positions, known);
            loss.at += known;
            return is_left(loss, known);
        }
        std::uint64_t known = take(state(loss.lane), loss.cause, loss.count);
        if (loss.lane == nullptr) {
            for (auto& [number, lane] : state_.lanes) {
                if (known == loss.count) break;
                if (number == 0 || file_.about().find_lane(number) != nullptr) continue;
                known += take(lane, loss.cause, loss.count - known);
            }
        }
        return is_left(loss, known);
    }
    /// The rest of a loss of which `known` records have arrived.
    [[nodiscard]] bool is_left(reduce::loss_item loss, std::uint64_t known) {
        if (known == 0) return true;
        if (known == loss.count) return false;
        loss.count -= known;
        rest_ = loss;
        held_->what = &rest_;
        return true;
    }
    /// Takes up to `most` records that have arrived as lost by a cause; returns how many there
    /// were.
    static std::uint64_t take(delivered::of_lane& from, trace_ring::loss_cause cause,
                              std::uint64_t most) {
        if (cause == trace_ring::loss_cause::overwritten) {
            const std::uint64_t positions = (std::min)(from.positions, most);
            from.positions -= positions;
            most -= positions;
            return positions + take_counted(from, cause, most);
        }
        return take_counted(from, cause, most);
    }
    static std::uint64_t take_counted(delivered::of_lane& from, trace_ring::loss_cause cause,
                                      std::uint64_t most) {
        const std::uint64_t all = from.counted[cause];
        const std::uint64_t used = (std::min)(all, most);
        trace_ring::loss_counts rest;
        for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
            const auto each = static_cast<trace_ring::loss_cause>(i);
            rest.add(each, from.counted[each] - (each == cause ? used : 0));
        }
        from.counted = rest;
        return used;
    }

    void count(const reduce::item& what, shipped_counts& counts) const {
        if (const auto* record = std::get_if<reduce::record_view>(&what)) {
            ++counts.records;
            if (file_.time().known()) counts.newest_ns = file_.realtime_ns(record->time());
        } else if (const auto* loss = std::get_if<reduce::loss_item>(&what)) {
            counts.lost.add(loss->cause, loss->count);
            if (loss->cause == trace_ring::loss_cause::damaged) ++counts.damages;
        } else {
            ++counts.clock_jumps;
        }
    }

    reduce::trace_file file_;
    clickhouse::trace_identity identity_;
    delivered state_{};
    std::optional<reduce::cursor> cursor_{};
    clickhouse::span_ends spans_{};
    std::optional<clickhouse::stack_names> names_{};
    std::optional<clickhouse::row_item> held_{};  // read, and not added yet
    reduce::item rest_{};
    std::size_t number_ = 0;
};

}  // namespace trace_ship
