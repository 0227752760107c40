// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reading a whole trace: its lanes merged by time, forward or backward, through a heap. Memory is
/// one decoded sub-buffer for each lane that overlaps the time reached, however many there are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/file/chains.hpp>
#include <trace_ring/reduce/file/entry_list.hpp>
#include <trace_ring/reduce/file/lane_reader.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

/// What is wanted of a trace; everything, by default. Losses and clock jumps of the lanes and the
/// time wanted always come along: they may hide what is looked for.
struct filter {
    std::vector<std::string> events{};     ///< globs, any of which may match; none: all events
    std::vector<std::uint32_t> threads{};  ///< kernel thread ids; none: all
    std::vector<std::uint32_t> lanes{};    ///< lane numbers; none: all
    std::uint64_t from = 0;                ///< ticks
    std::uint64_t to = ~std::uint64_t{0};

    [[nodiscard]] bool all_lanes() const noexcept { return threads.empty() && lanes.empty(); }
    [[nodiscard]] bool all_time() const noexcept { return from == 0 && to == ~std::uint64_t{0}; }
    [[nodiscard]] bool wants(const lane_info& lane) const noexcept {
        const auto in = [](const auto& list, std::uint32_t value) {
            return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
        };
        return (lane.handed_on != 0 || in(threads, lane.thread)) && in(lanes, lane.number);
    }
    /// Of a lane that was handed on the records alone tell whose they are.
    [[nodiscard]] bool wants_thread(const lane_info& lane) const noexcept {
        return threads.empty() ||
               std::find(threads.begin(), threads.end(), lane.thread) != threads.end();
    }
    [[nodiscard]] bool wants_event(std::string_view name) const noexcept {
        return events.empty() ||
               std::any_of(events.begin(), events.end(),
                           [name](const auto& glob) { return matches_glob(glob, name); });
    }
};

/// How items of different lanes are ordered.
enum class merging {
    by_time,  ///< merged
    by_lane,  ///< one lane after the other: quicker, where the order does not matter
};

class cursor {
public:
    /// Reads the tables again and looks at what sub-buffers there are. `in` must outlive it.
    cursor(tables& in, filter what, direction way, merging order = merging::by_time,
           bool follow = false)
        : in_(in), filter_(std::move(what)), way_(way), order_(order), follow_(follow) {
        scan(true);
    }
    cursor(cursor&&) = default;
    cursor(const cursor&) = delete;

    /// The next item, which is good until the next call; null at the end. When following, null
    /// means that there is nothing new: call again later. Throws std::bad_alloc only.
    [[nodiscard]] const item* next() {
        if (const item* found = step()) return found;
        if (!follow_) return nullptr;
        scan(false);
        return step();
    }

    /// From now on null means the end. Looks at the file once more, and adds what lanes lost that
    /// did not get into a sub-buffer.
    void stop_following() {
        if (!follow_) return;
        scan(false);
        follow_ = false;
        horizon_ = ~std::uint64_t{0};
        for (auto& reader : readers_) {
            reader.stop_following();
            if (reader.lane() != nullptr) add_unplaced(reader, reader.told(), false);
        }
        order_lanes();
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};
    static constexpr loss_cause counted_by_writers[] = {loss_cause::refused, loss_cause::too_long,
                                                        loss_cause::nested, loss_cause::abandoned};

    [[nodiscard]] const item* step() {
        for (;;) {
            if (current_ == none) {
                if (heap_.empty()) return nullptr;
                current_ = pop();
            }
            lane_reader& lane = readers_[current_];
            if (!lane.ready()) {
                lane.load(pool_);
                if (!lane.ready()) {  // at its end, or for now
                    current_ = none;
                    continue;
                }
            }
            const std::uint64_t key = key_of(current_);
            if (!heap_.empty() && precedes(heap_.front(), {key, current_})) {
                push(current_);
                current_ = none;
                continue;
            }
            if (key > horizon_) {
                push(current_);
                current_ = none;
                return nullptr;
            }
            lane.take(item_);
            if (passes()) return &item_;
        }
    }

    struct waiting {
        std::uint64_t key;
        std::size_t reader;
    };
    [[nodiscard]] std::uint64_t key_of(std::size_t reader) const noexcept {
        return order_ == merging::by_lane ? 0 : readers_[reader].key();
    }
    /// True if `a` comes first. Lanes of the same time are in the order of their numbers, reversed
    /// backward.
    [[nodiscard]] bool precedes(const waiting& a, const waiting& b) const noexcept {
        if (way_ == direction::forward) {
            return a.key != b.key ? a.key < b.key : rank_[a.reader] < rank_[b.reader];
        }
        return a.key != b.key ? a.key > b.key : rank_[a.reader] > rank_[b.reader];
    }
    [[nodiscard]] auto later() const noexcept {
        return [this](const waiting& a, const waiting& b) { return precedes(b, a); };
    }
    void push(std::size_t reader) {
        heap_.push_back({key_of(reader), reader});
        std::push_heap(heap_.begin(), heap_.end(), later());
    }
    [[nodiscard]] std::size_t pop() {
        std::pop_heap(heap_.begin(), heap_.end(), later());
        const std::size_t reader = heap_.back().reader;
        heap_.pop_back();
        return reader;
    }

    [[nodiscard]] bool passes() {
        if (const auto* record = std::get_if<record_view>(&item_)) {
            if (record->time() < filter_.from || record->time() > filter_.to) return false;
            if (!filter_.wants_thread(record->lane())) return false;
            if (filter_.events.empty()) return true;
            if (!record->known()) return filter_.wants_event({});
            const std::size_t number = record->type().number;
            if (number >= wanted_.size()) wanted_.resize(in_.events().types().size());
            auto& known = wanted_[number];
            if (known == 0) known = filter_.wants_event(record->name()) ? 1 : 2;
            return known == 1;
        }
        const auto* loss = std::get_if<loss_item>(&item_);
        if (loss != nullptr && loss->lane == nullptr) return true;
        const std::uint64_t time = time_of(item_);
        return time >= filter_.from && time <= filter_.to;
    }

    /// Looks for sub-buffers, all or only new ones.
    void scan(bool first) {
        const chain_scan scanner(in_);
        const bool timed = !filter_.all_time();
        const auto wanted = [this](std::uint32_t lane, position at) {
            if (!filter_.wants(in_.note_lane(lane))) return false;
            const auto reader = by_lane_.find(lane);
            return reader == by_lane_.end() || at > readers_[reader->second].newest_known();
        };
        // The tables first: what they count is then in sub-buffers that are there, or lost. Lanes
        // that began in between are not in them yet: once more.
        chain_list found;
        in_.refresh();
        for (int again = 0; again < 3; ++again) {
            found = scanner.scan(!first || timed ? look_at::index : look_at::headers, wanted);
            if (!any_unlisted(found)) break;
            in_.refresh();
            if (!any_new()) break;
        }
        if (first) {
            *strays_ = std::move(found.strays);
            if (filter_.all_lanes()) add_file(found.chains);
        }
        for (auto& chain : found.chains) {
            lane_reader& reader = reader_of(in_.note_lane(chain.lane));
            if (!first) {
                std::erase_if(chain.links,
                              [&](auto& link) { return !scanner.complete(chain.lane, link); });
            }
            if (first && !follow_ && !timed) place(reader, chain);
            if (first && timed) scanner.trim(chain, filter_.from, filter_.to);
            reader.add(chain);
        }
        for (const auto& lane : in_.lanes()) {
            if (!lane.listed || !filter_.wants(lane) || by_lane_.count(lane.number) != 0) continue;
            lane_reader& reader = reader_of(lane);
            if (first && !follow_ && !timed) place(reader, {});
        }
        if (follow_) set_horizon();
        order_lanes();
    }

    // Lanes of these that the tables did not know before they were read again.
    [[nodiscard]] bool any_unlisted(const chain_list& found) {
        unlisted_.clear();
        for (const auto& chain : found.chains) {
            if (!in_.note_lane(chain.lane).listed) unlisted_.push_back(chain.lane);
        }
        return !unlisted_.empty();
    }
    [[nodiscard]] bool any_new() {
        return std::any_of(unlisted_.begin(), unlisted_.end(),
                           [this](std::uint32_t lane) { return in_.note_lane(lane).listed; });
    }

    lane_reader& reader_of(const lane_info& lane) {
        const auto [at, is_new] = by_lane_.emplace(lane.number, readers_.size());
        if (is_new) {
            readers_.emplace_back(in_, &lane, way_, follow_);
            readers_.back().blame(*strays_);
        }
        return readers_[at->second];
    }

    void order_lanes() {
        std::vector<std::size_t> by_number(readers_.size());
        for (std::size_t i = 0; i < by_number.size(); ++i) by_number[i] = i;
        const auto number = [this](std::size_t i) {
            return readers_[i].lane() == nullptr ? 0 : readers_[i].lane()->number;
        };
        std::sort(by_number.begin(), by_number.end(),
                  [&](std::size_t a, std::size_t b) { return number(a) < number(b); });
        rank_.resize(readers_.size());
        for (std::size_t i = 0; i < by_number.size(); ++i) rank_[by_number[i]] = i;
        current_ = none;
        heap_.clear();
        for (std::size_t i = 0; i < readers_.size(); ++i) push(i);
    }

    /// When following, a record may be committed after one of another lane that is later by some
    /// nanoseconds. So only what had been there when this was asked last is given out.
    void set_horizon() {
        std::uint64_t newest = newest_;
        for (auto& reader : readers_) {
            if (!reader.ready()) reader.load(pool_);
            newest = std::max(newest, reader.newest_time());
        }
        horizon_ = newest_;
        newest_ = newest;
    }

    /// What a lane lost that its sub-buffers do not tell of. It happened before its first record if
    /// sub-buffers are missing there, else after its last.
    void place(lane_reader& reader, const chain& what) {
        add_unplaced(reader, told_by(what), !what.links.empty() && what.links.front().first != 0);
    }
    [[nodiscard]] static loss_counts told_by(const chain& what) noexcept {
        loss_counts told;
        for (const auto& link : what.links) {
            told.add(loss_cause::refused, link.refused);
            told.add(loss_cause::too_long, link.too_long);
            told.add(loss_cause::nested, link.nested);
        }
        return told;
    }
    void add_unplaced(lane_reader& reader, const loss_counts& told, bool early) {
        const lane_info& lane = *reader.lane();
        if (!lane.listed) return;
        for (const auto cause : counted_by_writers) {
            if (lane.lost[cause] <= told[cause]) continue;
            reader.add_unplaced(
                early,
                {cause, lane.lost[cause] - told[cause], early ? 0 : lane.written, &lane, 0, 0, {}});
        }
    }

    /// What concerns no lane that is still known.
    void add_file(const std::vector<chain>& chains) {
        lane_reader file(in_, nullptr, way_, false);
        const auto& ring = in_.ring();
        std::uint64_t kept = 0;
        loss_counts told;
        for (const auto& chain : chains) {
            if (in_.note_lane(chain.lane).listed) continue;
            kept += chain.links.back().first + chain.links.back().records;
            told += told_by(chain);
        }
        for (const auto& stray : *strays_) {
            file.add_unplaced(
                true, {loss_cause::damaged, 0, 0, nullptr, 0, stray.fault_offset, stray.fault});
        }
        const auto add = [&file](bool before, loss_cause cause, std::uint64_t all,
                                 std::uint64_t less) {
            if (all > less) file.add_unplaced(before, {cause, all - less, 0, nullptr, 0, 0, {}});
        };
        add(true, loss_cause::overwritten, ring.folded_written, kept);
        for (const auto cause : counted_by_writers) {
            add(true, cause, ring.folded_lost[cause], told[cause]);
        }
        add(false, loss_cause::refused, ring.refused_without_lane, 0);
        readers_.push_back(std::move(file));
    }

    tables& in_;
    filter filter_;
    direction way_;
    merging order_;
    bool follow_;
    std::deque<lane_reader> readers_;
    std::unordered_map<std::uint32_t, std::size_t> by_lane_;
    std::vector<std::size_t> rank_;
    std::vector<waiting> heap_;
    std::size_t current_ = none;
    std::vector<entry_list> pool_;
    std::unique_ptr<std::vector<chain_link>> strays_ = std::make_unique<std::vector<chain_link>>();
    std::vector<std::uint32_t> unlisted_;
    std::vector<std::uint8_t> wanted_;  // by number of the event type: 0 unknown, 1 yes, 2 no
    std::uint64_t horizon_ = ~std::uint64_t{0};
    std::uint64_t newest_ = 0;
    item item_{loss_item{}};
};

}  // namespace trace_ring::inline v1::reduce
