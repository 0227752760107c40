// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lines of traces around the shown ones. The window reads more at either end when they are
/// needed, and drops lines that are far away. A line keeps its number while it is in the window.
/// Numbers of lines before it are lower, and may be negative.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/statistics.hpp>

#include "../paging.hpp"
#include "reading.hpp"
#include "trace.hpp"

namespace trace_reduce::browse {

/// An item, of which no view is kept.
struct trace_line {
    enum class kind { record, faulty, loss, jump };

    kind what = kind::record;
    std::size_t from = 0;   ///< which trace
    std::uint64_t key = 0;  ///< see traces
    std::uint64_t ticks = 0;
    bool interval = false;                  ///< `ticks` is a lower bound,
    std::optional<std::uint64_t> latest{};  ///< and this the upper one, if it is known
    std::uint32_t lane = 0;
    std::uint64_t position = 0;
    std::string process{};
    std::string thread{};
    std::string event{};
    std::string rest{};  ///< fields, or what was lost

    [[nodiscard]] std::uint64_t place() const noexcept { return key; }
    /// The same item read again: what it may not differ in.
    [[nodiscard]] bool same(const trace_line& other) const noexcept {
        return what == other.what && from == other.from && key == other.key && lane == other.lane &&
               position == other.position && rest == other.rest;
    }
};

class trace_window {
public:
    using files = traces;
    using selection = browse::selection;
    using line = trace_line;
    using place = std::uint64_t;  ///< a key, see traces
    static constexpr std::size_t most = 16'384;
    [[nodiscard]] static constexpr place first() noexcept { return 0; }

    trace_window(traces& of, const selection& what, std::function<bool()> go_on)
        : of_(of), what_(what), go_on_(std::move(go_on)) {}

    /// Numbers of the lines that are there: from `begin` to before `end`.
    [[nodiscard]] std::int64_t begin() const noexcept { return first_; }
    [[nodiscard]] std::int64_t end() const noexcept {
        return first_ + static_cast<std::int64_t>(lines_.size());
    }
    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] bool has(std::int64_t number) const noexcept {
        return number >= begin() && number < end();
    }
    [[nodiscard]] const line& at(std::int64_t number) const {
        return lines_.at(static_cast<std::size_t>(number - first_));
    }

    /// Begins anew between what is before `key` and what is not: line 0 is the first that is not.
    void start(std::uint64_t key, way to = way::forward) {
        clear();
        anchor_ = key;
        forward_.emplace(of_, what_, to, key);
        backward_.emplace(of_, what_, way::backward, key);
    }
    /// Begins anew at the end: the last line will be -1.
    void start_at_end() {
        of_.look();
        clear();
        anchor_ = std::numeric_limits<std::uint64_t>::max();
        backward_.emplace(of_, what_);
    }
    /// Goes on from the last line with what comes, see trace_file::follow.
    void follow() {
        if (lines_.empty()) {
            start(0, way::follow);
        } else {
            reopen_forward(way::follow);
        }
    }
    bool stop_following() {
        forward_.reset();
        return false;
    }
    [[nodiscard]] bool may_grow() const { return of_.live(); }
    [[nodiscard]] static double progress() noexcept { return -1; }

    /// Another line after the last. `no`: there is none (now).
    grown grow_down() {
        if (!forward_) {
            if (lines_.empty() && anchor_ == std::numeric_limits<std::uint64_t>::max()) {
                return grown::no;
            }
            reopen_forward(way::forward);
        }
        reading::found next;
        try {
            next = forward_->next();
        } catch (const pause&) {
            return grown::passed_over;
        }
        if (next.what == nullptr) return grown::no;
        lines_.push_back(made_of(next));
        if (lines_.size() > most) drop_first();
        return grown::yes;
    }
    /// Another line before the first.
    grown grow_up() {
        if (!backward_) {
            if (lines_.empty()) return grown::no;
            backward_.emplace(of_, what_, way::backward, border_);
        }
        reading::found next;
        try {
            next = backward_->next();
        } catch (const pause&) {
            return grown::passed_over;
        }
        if (next.what == nullptr) return grown::no;
        lines_.push_front(made_of(next));
        --first_;
        if (lines_.size() > most) drop_last();
        return grown::yes;
    }
    /// At the end: looks again for new records.
    void look_again() {
        if (!lines_.empty()) reopen_forward(way::forward);
    }

    /// Damage met so far.
    struct damage {
        std::size_t from;
        std::uint64_t offset;
        std::string what;
    };
    [[nodiscard]] const std::vector<damage>& damages() const noexcept { return damages_; }

private:
    void clear() {
        lines_.clear();
        first_ = 0;
        forward_.reset();
        backward_.reset();
    }

    /// Reads the lines with the last key again, and from there on.
    void reopen_forward(way to) {
        if (lines_.empty()) {
            forward_.emplace(of_, what_, to, anchor_);
            return;
        }
        const line last = lines_.back();
        const std::int64_t number = end() - 1;
        while (!lines_.empty() && lines_.back().key == last.key) lines_.pop_back();
        const bool none = lines_.empty();
        if (none) {  // there may be more of them than were
            anchor_ = last.key;
            border_ = last.key;
            backward_.reset();
            backward_.emplace(of_, what_, way::backward, last.key);
        }
        forward_.emplace(of_, what_, to, last.key);
        for (bool met = false; !met;) {
            reading::found next;
            try {
                next = forward_->next();
            } catch (const pause&) {
                if (go_on_()) continue;
                break;
            }
            if (next.what == nullptr) break;  // gone, or held back for now
            lines_.push_back(made_of(next));
            met = lines_.back().same(last);
            if (met && none) first_ = number + 1 - static_cast<std::int64_t>(lines_.size());
            met = met || lines_.back().key != last.key;
        }
    }

    /// Forgets the older half, at a place in time to which one can come back.
    void drop_first() {
        std::vector<std::uint64_t> least(lines_.size() + 1,  // of those from here on
                                         std::numeric_limits<std::uint64_t>::max());
        for (std::size_t i = lines_.size(); i > 0; --i) {
            least[i - 1] = std::min(least[i], lines_[i - 1].key);
        }
        std::uint64_t greatest = 0;
        std::size_t to = 0;
        for (std::size_t i = 0; i < most / 2; ++i) {
            greatest = std::max(greatest, lines_[i].key);
            if (greatest < least[i + 1]) to = i + 1;
        }
        // All of one time: then what is dropped cannot be come back to.
        if (to == 0) to = most / 2;
        border_ = least[to];
        lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(to));
        first_ += static_cast<std::int64_t>(to);
        backward_.reset();
    }
    void drop_last() {
        std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
        std::vector<std::uint64_t> greatest(lines_.size() + 1, 0);  // of those before
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            greatest[i + 1] = std::max(greatest[i], lines_[i].key);
        }
        std::size_t to = lines_.size();
        for (std::size_t i = lines_.size(); i > most / 2; --i) {
            least = std::min(least, lines_[i - 1].key);
            if (greatest[i - 1] < least) to = i - 1;
        }
        if (to == lines_.size()) to = most / 2;
        lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(to), lines_.end());
        forward_.reset();
    }

    [[nodiscard]] line made_of(const reading::found& from) {
        line made;
        made.from = from.from;
        made.key = from.key;
        made.ticks = reduce::time_of(*from.what);
        trace& of = of_[from.from];
        auto& writer = of.writer_of(exporter::time_format::raw);
        const auto take = [this](std::string& into) {
            into = text_.view();
            text_.clear();
        };
        if (const auto* record = std::get_if<reduce::record_view>(from.what)) {
            const auto& lane = record->lane();
            if (!record->fault().empty()) {
                made.what = line::kind::faulty;
                if (reduce::is_damage(of.file().about(), *record)) {
                    note(from.from, record->offset(), record->fault());
                }
            }
            made.interval = record->interval();
            if (made.interval) made.latest = record->latest();
            made.lane = lane.number;
            made.position = record->position();
            if (lane.listed) {
                made.process = of.file().about().process_text(lane);
                made.thread = std::to_string(lane.thread);
                if (!lane.name.empty()) {
                    text_ += ' ';
                    exporter::impl::append_escaped(text_, lane.name, 0);
                    made.thread += text_.view();
                    text_.clear();
                }
                if (lane.depth != 0) made.thread += '+' + std::to_string(lane.depth);
            }
            writer.append_event(text_, *record);
            take(made.event);
            writer.append_fields(text_, *record);
            take(made.rest);
            if (!made.rest.empty()) made.rest.erase(0, 1);
            return made;
        }
        writer.append(text_, *from.what);
        take(made.rest);
        if (made.rest.ends_with('\n')) made.rest.pop_back();
        const reduce::lane_info* lane = nullptr;
        if (const auto* loss = std::get_if<reduce::loss_item>(from.what)) {
            made.what = line::kind::loss;
            made.position = loss->at;
            lane = loss->lane;
            if (loss->cause == trace_ring::loss_cause::damaged) {
                note(from.from, loss->offset, loss->what);
            }
        } else if (const auto* jump = std::get_if<reduce::clock_jump>(from.what)) {
            made.what = line::kind::jump;
            made.position = jump->at;
            lane = jump->lane;
        }
        if (lane != nullptr) made.lane = lane->number;
        return made;
    }
    void note(std::size_t from, std::uint64_t offset, std::string_view what) {
        constexpr std::size_t enough = 1000;
        const bool known = std::any_of(damages_.begin(), damages_.end(), [&](const damage& each) {
            return each.from == from && each.offset == offset;
        });
        if (!known && damages_.size() < enough)
            damages_.push_back({from, offset, std::string(what)});
    }

    traces& of_;
    const selection& what_;
    std::function<bool()> go_on_;
    std::deque<line> lines_;
    std::int64_t first_ = 0;
    std::uint64_t anchor_ = 0;  // where `forward_` begins if there are no lines
    std::uint64_t border_ = 0;  // what is before it was dropped
    std::optional<reading> forward_;
    std::optional<reading> backward_;
    std::vector<damage> damages_;
    exporter::text_buffer text_;
};

}  // namespace trace_reduce::browse
