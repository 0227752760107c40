// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Items from a place in time on, forward or backward, of all traces merged. Of a long trace only a
/// stretch is looked at, then the next one, twice as long: a cursor for all of it would first look
/// at the header of each of its sub-buffers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/item.hpp>

#include "trace.hpp"

namespace trace_reduce::browse {

enum class way { forward, backward, follow };

/// Of one trace.
class stream {
public:
    /// From `at` on; backward: what is before `at`.
    stream(trace& of, const selection& what, way to, std::uint64_t at)
        : of_(of), way_(to), at_(at), stretch_(of.stretch()) {
        what_.events = what.events;
        what_.threads = what.threads;
        done_ = way_ == way::backward && at == 0;
    }

    [[nodiscard]] trace& of() noexcept { return of_; }
    /// The item at hand, or the next; null if there is none (now).
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

    void open() {
        if (way_ == way::backward) {
            const std::uint64_t to = at_ - 1;
            const std::uint64_t known = std::min(to, std::max(of_.last(), of_.first()));
            last_ = known < of_.first() || known - of_.first() <= stretch_;
            what_.from = last_ ? 0 : known - stretch_ + 1;
            what_.to = to;
            at_ = what_.from;
        } else {
            what_.from = at_;
            const std::uint64_t known = std::max(at_, of_.first());
            last_ = way_ == way::follow || known >= of_.last() || of_.last() - known < stretch_;
            what_.to = last_ ? end : known + stretch_ - 1;
            at_ = what_.to + 1;
        }
        // Of all time it would look at every header; nothing happens at the end of time.
        if (what_.all_time()) what_.to = end - 1;
        stretch_ += std::min(stretch_, end - stretch_);
        cursor_.emplace(way_ == way::forward    ? of_.file().forward(what_)
                        : way_ == way::backward ? of_.file().backward(what_)
                                                : of_.file().follow(what_));
    }
    /// What has no place of its own, and would come again with each stretch.
    [[nodiscard]] bool passed_over() const noexcept {
        const auto* loss = std::get_if<reduce::loss_item>(item_);
        return loss != nullptr && loss->lane == nullptr;
    }

    trace& of_;
    way way_;
    std::uint64_t at_;
    std::uint64_t stretch_;
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
        : of_(of), what_(what), backward_(to == way::backward) {
        for (std::size_t i = 0; i < of.size(); ++i) {
            streams_.emplace_back(of[i], what, to, of.ticks_from(i, key));
        }
    }
    /// From the end, backward.
    reading(traces& of, const selection& what) : of_(of), what_(what), backward_(true) {
        for (std::size_t i = 0; i < of.size(); ++i) {
            streams_.emplace_back(of[i], what, way::backward,
                                  std::numeric_limits<std::uint64_t>::max());
        }
    }

    struct found {
        const reduce::item* what = nullptr;  ///< null: there is none (now)
        std::size_t from = 0;                ///< which trace
        std::uint64_t key = 0;
        bool wanted = true;  ///< false: passed over by `selection::where`
    };
    /// The next one, which is good until the next call.
    [[nodiscard]] found next() {
        if (taken_ != nullptr) std::exchange(taken_, nullptr)->pop();
        found best;
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const reduce::item* const what = streams_[i].peek();
            if (what == nullptr) continue;
            const std::uint64_t key = of_.key_of(i, reduce::time_of(*what));
            if (best.what == nullptr || (backward_ ? key >= best.key : key < best.key)) {
                best = {what, i, key};
                taken_ = &streams_[i];
            }
        }
        if (best.what == nullptr || !what_.where) return best;
        if (const auto* record = std::get_if<reduce::record_view>(best.what)) {
            best.wanted = what_.where(of_[best.from].file(), *record);
        }
        return best;
    }

private:
    traces& of_;
    const selection& what_;
    bool backward_;
    std::deque<stream> streams_;
    stream* taken_ = nullptr;
};

}  // namespace trace_reduce::browse
