// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Items from a place in time on, forward or backward, of all traces merged. Of a long trace only a
/// stretch is looked at, then the next one, twice as long: a cursor for all of it would first look
/// at the header of each of its sub-buffers. Who reads is asked now and then whether it is to go
/// on, also where nothing is wanted: by `pause`, which is thrown.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/item.hpp>

#include "../../where/select.hpp"
#include "trace.hpp"

namespace trace_reduce::browse {

enum class way { forward, backward, follow };

/// Many records were checked. Nothing is lost: the next read continues there.
struct pause {};
inline constexpr std::size_t records_between = 65'536;  ///< pauses, at least

/// Of one trace.
class stream {
public:
    /// From `at` on; backward: what is before `at`.
    stream(trace& of, const selection& what, way to, std::uint64_t at)
        : of_(of), way_(to), stretch_(of.stretch()), low_(of.limits().from), high_(of.limits().to) {
        what_.events = what.events;
        what_.threads = what.threads;
        what_.positions = of.limits().positions;
        if (!what.all()) ask(what);
        if (way_ == way::backward) {
            at_ = high_ == end ? at : std::min(at, high_ + 1);
            done_ = at_ <= low_;
        } else {
            at_ = std::max(at, low_);
            done_ = at_ > high_;
        }
    }

    [[nodiscard]] trace& of() noexcept { return of_; }
    /// The item at hand, or the next; null if there is none (now). May throw `pause`.
    [[nodiscard]] const reduce::item* peek() {
        while (item_ == nullptr && !done_) {
            if (!cursor_) open();
            do {
                item_ = cursor_->next();
            } while (item_ != nullptr && passed_over());
            if (item_ != nullptr || way_ == way::follow) break;
            cursor_.reset();
            done_ = last_;
        }
        return item_;
    }
    void pop() noexcept { item_ = nullptr; }

private:
    static constexpr std::uint64_t end = std::numeric_limits<std::uint64_t>::max();

    void ask(const selection& what) {
        auto asks = std::make_shared<where::attentive>(
            of_.file().about(), what.where, [since = std::size_t{0}](std::size_t more) mutable {
                if (since >= records_between) {
                    since = 0;
                    throw pause{};
                }
                since += more;
            });
        // Later readings of a running clock are more exact.
        if (!of_.file().live()) {
            if (const auto ticks = asks->ticks()) {
                low_ = std::max(low_, ticks->low);
                high_ = std::min(high_, ticks->high);
            }
        }
        what_.condition = std::move(asks);
    }
    void open() {
        if (way_ == way::backward) {
            what_.to = at_ - 1;
            const std::uint64_t known = std::min(what_.to, std::max(of_.last(), of_.first()));
            last_ =
                known < of_.first() || known - of_.first() <= stretch_ || known - stretch_ < low_;
            what_.from = last_ ? low_ : known - stretch_ + 1;
            at_ = what_.from;
        } else {
            what_.from = at_;
            const std::uint64_t known = std::max(at_, of_.first());
            last_ = way_ == way::follow || known >= of_.last() || of_.last() - known < stretch_ ||
                    known + stretch_ > high_;
            what_.to = last_ ? high_ : known + stretch_ - 1;
            at_ = what_.to + 1;
        }
        // Of all time it would look at every header; nothing happens at the end of time.
        if (what_.all_time()) what_.to = end - 1;
        stretch_ += std::min(stretch_, end - stretch_);
        cursor_.emplace(way_ == way::forward    ? of_.file().forward(what_)
                        : way_ == way::backward ? of_.file().backward(what_)
                                                : of_.file().follow(what_));
    }
    /// An item without a place, which would come again with each stretch.
    [[nodiscard]] bool passed_over() const noexcept {
        const auto* loss = std::get_if<reduce::loss_item>(item_);
        return loss != nullptr && loss->lane == nullptr;
    }

    trace& of_;
    way way_;
    std::uint64_t at_ = 0;
    std::uint64_t stretch_;
    std::uint64_t low_;   // nothing is shown before it,
    std::uint64_t high_;  // nor after it
    bool last_ = false;
    bool done_ = false;
    reduce::filter what_;
    std::optional<reduce::cursor> cursor_;
    const reduce::item* item_ = nullptr;
};

/// Of all of them. Equal keys come by number of the trace, backward the other way round.
class reading {
public:
    reading(traces& of, const selection& what, way to, std::uint64_t key)
        : of_(of), backward_(to == way::backward) {
        for (std::size_t i = 0; i < of.size(); ++i) {
            streams_.emplace_back(of[i], what, to, of.ticks_from(i, key));
        }
    }
    /// From the end, backward.
    reading(traces& of, const selection& what) : of_(of), backward_(true) {
        for (std::size_t i = 0; i < of.size(); ++i) {
            streams_.emplace_back(of[i], what, way::backward,
                                  std::numeric_limits<std::uint64_t>::max());
        }
    }

    struct found {
        const reduce::item* what = nullptr;  ///< null: there is none (now)
        std::size_t from = 0;                ///< which trace
        std::uint64_t key = 0;
    };
    /// The next one, which is good until the next call. May throw `pause`: then it is to be called
    /// again.
    [[nodiscard]] found next() {
        if (taken_ != nullptr) std::exchange(taken_, nullptr)->pop();
        found best;
        stream* from = nullptr;
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const reduce::item* const what = streams_[i].peek();
            if (what == nullptr) continue;
            const std::uint64_t key = of_.key_of(i, reduce::time_of(*what));
            if (best.what == nullptr || (backward_ ? key >= best.key : key < best.key)) {
                best = {what, i, key};
                from = &streams_[i];
            }
        }
        taken_ = from;
        return best;
    }

private:
    traces& of_;
    bool backward_;
    std::deque<stream> streams_;
    stream* taken_ = nullptr;
};

}  // namespace trace_reduce::browse
