// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A cursor reads a whole trace: its lanes merged by time, forward or backward, through a heap. It
/// keeps one decoded sub-buffer for each lane that overlaps the time reached, and no more.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/cursor/lane_queue.hpp>
#include <trace_ring/reduce/cursor/unplaced.hpp>
#include <trace_ring/reduce/file/live_scan.hpp>

namespace trace_ring::inline v1::reduce {

/// Reads the items of a trace in one direction. Used by one thread, while the trace_file exists.
class cursor {
public:
    /// Reads the tables again and lists the sub-buffers. `in` must outlive the cursor.
    cursor(tables& in, filter what, direction way, merging order = merging::by_time,
           bool follow = false)
        : in_(in),
          filter_(std::move(what)),
          way_(way),
          order_(order),
          follow_(follow),
          unpack_(unpacks(in, filter_)),
          by_place_(!follow && in.clock() == 0) {
        if (!follow && filter_.ahead) {
            ahead_ = filter_.ahead(in, filter_, way, order);
        } else if (!follow && in.bytes().reads_rows()) {
            ahead_ = std::make_unique<read_ahead>(in, order);
        }
        scan(true, follow);
    }
    cursor(cursor&&) = default;
    cursor(const cursor&) = delete;
    cursor& operator=(const cursor&) = delete;

    /// The next item, which is good until the next call; null at the end. When following, null
    /// means that there is nothing new: call again later. Throws std::bad_alloc, and passes on
    /// exceptions of the filter's condition.
    [[nodiscard, gnu::always_inline]] const item* next() {
        if (left_ == 0) return next_entry();
        --left_;
        record().step(stride_, positions_);
        return &item_;
    }

    /// The records that come directly after the item that `next` returned last; the next call of
    /// `next` continues after them. They are of one kind and known to come before everything else,
    /// so often there are none. record_run says what may be done with them. Constant time.
    /// @code
    ///   while (const item* one = cursor.next()) {
    ///       use(*one);
    ///       for (const record_view& record : cursor.records()) use(record);
    ///   }
    /// @endcode
    [[nodiscard]] record_run records() noexcept {
        if (left_ == 0) return {};
        return {record(), std::exchange(left_, 0), stride_, positions_};
    }

    /// Everything that is left (when following: for now): `visit` gets each record_view, loss_item
    /// and clock_jump. The quickest way to read: it is inlined, so counters can stay in registers.
    template <class Visit>
    [[gnu::always_inline]] void for_each(Visit&& visit) {
        while (const item* one = next()) {
            std::visit(visit, *one);
            for (const record_view& record : records()) visit(record);
        }
    }

    /// From here on null means the end. Looks at the file once more, and adds the losses of lanes
    /// that no sub-buffer counts.
    void stop_following() {
        if (!follow_) return;
        give_back();
        scan(false, false);
        const bool all = filter_.all_lanes();
        if (all) (void)gone_.report(in_, readers_, true);
        follow_ = false;
        horizon_ = ~std::uint64_t{0};
        for (auto& reader : readers_) {
            reader.stop_following();
            if (reader.lane() == nullptr || (all && in_.is_gone(*reader.lane()))) continue;
            unplaced::add(reader, known_lane::lost(reader), false);
        }
        order_lanes();
    }

private:
    /// Times and lane numbers, inverted when reading backward.
    [[nodiscard]] std::uint64_t turned(std::uint64_t time) const noexcept {
        return way_ == direction::forward ? time : ~time;
    }
    /// The record in `item_`. Only while `left_` is not 0.
    [[nodiscard]] record_view& record() noexcept {
        auto* const at = std::get_if<record_view>(&item_);
        if (at == nullptr) __builtin_unreachable();
        return *at;
    }

    /// The next item that is not in the current run of records.
    [[nodiscard, gnu::noinline]] const item* next_entry() {
        if (const item* found = step()) return found;
        if (!follow_) return nullptr;
        scan(false, true);
        if (const item* found = step()) return found;
        const bool gone = filter_.all_lanes() && gone_.report(in_, readers_, false);
        if (!gone_lanes::report_others(in_, readers_) && !gone) return nullptr;
        order_lanes();
        return step();
    }
    [[nodiscard]] const item* step() {
        for (;;) {
            if (lane_ == nullptr) {
                if (queue_.empty()) return nullptr;
                enter(queue_.pop());
            }
            if (!lane_->ready()) {
                if (filter_.condition) filter_.condition->pause();
                lane_->load(pool_);
                if (!lane_->ready()) {  // at its end, or for now
                    lane_ = nullptr;
                    continue;
                }
            }
            entry_list& list = lane_->entries();
            const std::uint64_t key = turned(key_of(*lane_));
            if (key > limit_) {
                const lane_queue::place here{key, rank_, lane_};
                if (queue_.precedes(here)) {  // so `limit_` is the horizon
                    push(*lane_, rank_);
                    lane_ = nullptr;
                    return nullptr;
                }
                enter(queue_.replace_first(here));
                continue;
            }
            if (list.records_next()) {
                if (open()) return &item_;
                continue;
            }
            list.take_note(item_);
            if (passes()) return &item_;
        }
    }

    /// Sets `item_` and `left_` to the longest run of next records that are of one kind, come
    /// before everything else and are wanted. False: it passed records that are not wanted.
    [[nodiscard]] bool open() {
        entry_list& list = lane_->entries();
        if (list.pass_unwanted()) return false;
        std::uint64_t limit = by_place_ ? turned(~std::uint64_t{0}) : turned(limit_);
        if (!filter_.all_time()) {
            const bool forward = way_ == direction::forward;
            const std::uint64_t next = list.next_time();
            const tick_range wanted = filter_.times_at(next, way_);
            const std::uint64_t begin = forward ? wanted.from : wanted.to;
            const std::uint64_t end = forward ? wanted.to : wanted.from;
            if (turned(next) < turned(begin)) {  // so turned(begin) is not 0
                list.take(list.count_within(turned(turned(begin) - 1)));
                return false;
            }
            if (turned(next) > turned(end)) {
                list.take(list.count_within(limit));
                return false;
            }
            limit = turned((std::min)(turned(limit), turned(end)));
        }
        std::uint32_t count = list.count_within(limit);
        if (!filter_.positions.empty()) {
            const auto of = list.count_within(filter_.positions_of(*lane_->lane()), count);
            if (of.skip != 0 || of.keep == 0) {
                list.take(of.keep == 0 ? count : of.skip);
                return false;
            }
            count = of.keep;
        }
        const lane_info& owner = list.owner(*lane_->lane());
        const event_type* const type = in_.type_of(owner, list.head(), list.next_word());
        if (unpack_ && type != nullptr && type->packed != event_type::npos &&
            !list.unpacked_next()) {
            list.unpack(in_, *lane_->lane());
            return false;
        }
        if (!wants(type) || !filter_.wants_thread(owner)) {
            if (filter_.condition) filter_.condition->pass_over(count);
            list.take(count);
            return false;
        }
        const bool ask = filter_.condition && !list.chosen_next();
        const std::ptrdiff_t stride = list.stride();
        positions_ = list.positions();
        record_view first = list.view(&owner, type);
        // A run is cut to 64: comparing the rest again after each wanted record would be quadratic.
        if (filter_.condition && type != nullptr && type->variable) count = (std::min)(count, 64U);
        count = static_cast<std::uint32_t>(first.alike(count, stride));
        if (ask) {
            const auto of = record_run::of(first, count, stride, positions_);
            const auto [skip, take] = filter_.condition->choose(of);
            if (skip != 0) list.take(static_cast<std::uint32_t>(skip));
            if (take == 0) return false;
            first = of[skip];
            count = static_cast<std::uint32_t>(take);
        }
        item_ = first;
        list.take(count);
        stride_ = stride;
        left_ = count - 1;
        return true;
    }
    /// Returns to the lane the records that were taken from it and not given out yet.
    void give_back() {
        if (left_ == 0) return;
        lane_->entries().give_back(static_cast<std::uint32_t>(std::exchange(left_, 0)));
    }

    [[nodiscard]] std::uint64_t key_of(const lane_reader& lane) const noexcept {
        if (order_ == merging::by_lane) return turned(0);
        return by_place_ ? lane.place() : lane.key();
    }
    void push(lane_reader& lane, std::uint32_t rank) {
        queue_.push({turned(key_of(lane)), rank, &lane});
    }
    /// Continues with this lane for as long as it precedes all others and the horizon.
    void enter(const lane_queue::place& next) noexcept {
        lane_ = next.lane;
        rank_ = next.rank;
        limit_ = ~std::uint64_t{0};
        if (order_ == merging::by_time) limit_ = (std::min)(horizon_, queue_.limit(rank_));
    }

    [[nodiscard]] bool wants(const lane_info& lane) const {
        return filter_.wants(lane, unpack_ && in_.events().packs());
    }
    [[nodiscard]] bool wants(const event_type* type) {
        if (filter_.events.empty() && !filter_.condition) return true;
        const std::size_t number = type == nullptr ? 0 : type->number + 1;
        if (number >= wanted_.size()) wanted_.resize(in_.events().types().size() + 1);
        auto& known = wanted_[number];
        if (known == 0) known = filter_.may_want(type) ? 1 : 2;
        return known == 1;
    }
    /// Whether an item that is not a record is wanted.
    [[nodiscard]] bool passes() const noexcept {
        const auto* loss = std::get_if<loss_item>(&item_);
        if (loss != nullptr && loss->lane == nullptr) return true;
        if (!filter_.wants_time(time_of(item_))) return false;
        if (filter_.positions.empty() || lane_->lane() == nullptr) return true;
        const auto wanted = filter_.positions_of(*lane_->lane());
        return loss != nullptr ? wanted.has_any(loss->at, loss->count)
                               : wanted.has_any(jump_in(item_).at, 1);
    }

    /// Looks for sub-buffers, all or only new ones. `later`: another scan will follow.
    void scan(bool first, bool later) {
        const chain_scan scanner(in_);
        const bool part = !filter_.unbounded();
        const bool timed = first && !follow_ && filter_.positions.empty();
        chain_list found =
            live_.look(!first || part ? look_at::index : look_at::headers, later, wanted_of{*this},
                       timed ? tick_range{filter_.from, filter_.to} : tick_range{});
        if (first) {
            *strays_ = std::move(found.strays);
            gone_ = gone_lanes(in_.ring());
            readers_.emplace_back(in_, nullptr, way_, follow_, unpack_);
            if (filter_.all_lanes()) {
                unplaced::add_file(readers_.front(), in_, found.chains, *strays_, part, follow_);
            }
        }
        if (filter_.all_lanes()) unplaced::add_without_lane(readers_.front(), in_, without_lane_);
        unplaced::add_jumps(readers_.front(), in_.time(), jumped_);
        for (auto& chain : found.chains) {
            lane_reader& reader = reader_of(in_.note_lane(chain.lane));
            if (!first) {
                std::erase_if(chain.links,
                              [&](auto& link) { return !scanner.complete(chain.lane, link); });
            }
            if (first && !follow_ && !part) unplaced::place(reader, chain);
            if (first && !filter_.all_time()) scanner.trim(chain, filter_.from, filter_.to);
            if (first && !filter_.positions.empty()) {
                scanner.trim(chain, filter_.positions_of(*reader.lane()));
            }
            if (ahead_ != nullptr) {
                reader.use(*ahead_);
                ahead_->add(chain, *reader.lane());
            }
            reader.add(std::move(chain));
        }
        if (ahead_ != nullptr) ahead_->start();
        for (const auto& lane : in_.lanes()) {
            if (!lane.listed || !wants(lane) || by_lane_.count(lane.number) != 0) continue;
            lane_reader& reader = reader_of(lane);
            if (first && !follow_ && !part) unplaced::place(reader, {});
        }
        for (lane_reader& reader : readers_) reader.match_tables();
        if (follow_) set_horizon();
        order_lanes();
    }

    /// Which sub-buffers to read: those of wanted lanes that are newer than the known ones.
    struct wanted_of {
        cursor& in;
        std::uint32_t lane = 0;  // asked about last
        bool wanted = false, met = false;
        position newest = no_position;

        [[nodiscard]] bool operator()(std::uint32_t number, position at) {
            if (number != lane) {
                lane = number;
                wanted = in.wants(in.in_.note_lane(number));
                const auto reader = in.by_lane_.find(number);
                met = reader != in.by_lane_.end();
                if (met) newest = in.readers_[reader->second].newest_known();
            }
            return wanted && (!met || at > newest);
        }
    };

    lane_reader& reader_of(const lane_info& lane) {
        const auto [at, is_new] = by_lane_.emplace(lane.number, readers_.size());
        if (is_new) {
            readers_.emplace_back(in_, &lane, way_, follow_, unpack_);
            readers_.back().blame(*strays_);
        }
        return readers_[at->second];
    }

    void order_lanes() {
        lane_ = nullptr;
        queue_.clear();
        std::uint64_t rank = 0;
        // By number; the one without a lane comes first.
        std::vector<lane_reader*> all;
        for (auto& each : readers_) all.push_back(&each);
        const auto number = [](const auto* r) {
            return r->lane() == nullptr ? 0 : r->lane()->number;
        };
        std::stable_sort(all.begin(), all.end(),
                         [&](const auto* a, const auto* b) { return number(a) < number(b); });
        for (auto* const each : all) push(*each, static_cast<std::uint32_t>(turned(rank++)));
    }

    /// When following, a record may be committed after a record of another lane that is some
    /// nanoseconds later. So only records that were there at the scan before this one are given
    /// out.
    void set_horizon() {
        std::uint64_t newest = newest_;
        for (auto& reader : readers_) {
            if (!reader.ready()) reader.load(pool_);
            newest = (std::max)(newest, reader.newest_time());
        }
        horizon_ = newest_;
        newest_ = newest;
    }

    tables& in_;
    live_scan live_{in_};
    filter filter_;
    direction way_;
    merging order_;
    bool follow_;
    bool unpack_;    // packed records are returned instead of the records that pack them
    bool by_place_;  // there are no times: order by the sub-buffers' positions in the ring
    std::deque<lane_reader> readers_{};
    std::unordered_map<std::uint32_t, std::size_t> by_lane_{};
    lane_queue queue_{};            // the lanes that wait
    lane_reader* lane_ = nullptr;   // the lane that is read; null: the next is to be chosen
    std::uint32_t rank_ = 0;        // of `lane_`
    std::uint64_t limit_ = 0;       // records of `lane_` up to this time (turned) need not wait
    std::ptrdiff_t stride_ = 0;     // of the current run of records, in words
    std::ptrdiff_t positions_ = 0;  // from one of them to the next
    std::size_t left_ = 0;          // records of the run that are not given out yet
    std::vector<entry_list> pool_{};
    std::unique_ptr<read_ahead> ahead_{};  // may be null
    std::unique_ptr<std::vector<chain_link>> strays_ = std::make_unique<std::vector<chain_link>>();
    std::vector<std::uint8_t> wanted_{};  // by number of the event type: 0 not asked, 1 yes, 2 no
    std::uint64_t horizon_ = ~std::uint64_t{0}, newest_ = 0;
    std::uint64_t jumped_ = 0;        // ticks of the last clock jump that was noted
    std::uint64_t without_lane_ = 0;  // records lost without a lane, as far as they were reported
    gone_lanes gone_{};
    item item_{loss_item{}};
};

}  // namespace trace_ring::inline v1::reduce
