// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lines of CPTRAP files around those that are shown: one for each item, and below it those of
/// its data if it is open. See paging.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../../cptrap/names.hpp"
#include "../../cptrap/text.hpp"
#include "../paging.hpp"
#include "spool_choice.hpp"
#include "spool_walk.hpp"
#include "spools.hpp"

namespace trace_reduce::browse {

/// A copy of an item: nothing in it refers to the reader.
struct shown_item {
    reduce::spool_item::kind what = reduce::spool_item::kind::end;
    spool_position at;
    std::uint64_t offset = 0;
    std::string type;             ///< "3F interface"
    std::string code;             ///< "0003"; "-" if it has no header
    std::string notice;           ///< lost records or damage, as text; then the item is no record
    std::vector<std::byte> data;  ///< of damage and of a type without a header: all bytes

    [[nodiscard]] static std::string type_of(const record::cptrap_view& of) {
        std::string out = hexadecimal(static_cast<std::uint64_t>(of.type), 2) + ' ';
        if (const auto entry = of.entry()) {
            const auto event = name_of(entry->event());
            out += event.empty() ? name_of(of.type) : event;
            if (entry->attached()) out += ", attached";
        } else {
            const auto name = name_of(of.type);
            out += name.empty() ? "unknown" : name;
        }
        return out;
    }
    /// Lost records or damage in the words of the text format; empty for other items.
    [[nodiscard]] static std::string notice_of(const reduce::spool_item& of) {
        if (of.what == reduce::spool_item::kind::record && !of.record.lost()) return {};
        trace_ring::exporter::text_buffer out;
        cptrap_text_writer().append(out, {}, of);
        std::string_view text = out.view();
        text.remove_prefix(std::min(text.find("-- "), text.size()));
        return std::string(text.substr(0, text.find('\n')));
    }
    [[nodiscard]] static std::string hexadecimal(std::uint64_t value, std::size_t width) {
        trace_ring::exporter::text_buffer out;
        append_hexadecimal(out, value, width);
        return std::string(out.view());
    }

    shown_item(const reduce::spool_item& from, const spool_position& place)
        : what(from.what), at(place), offset(from.offset), notice(notice_of(from)) {
        const auto bytes = data_of(from);
        data.assign(bytes.begin(), bytes.end());
        if (!notice.empty()) return;
        type = type_of(from.record);
        code = "-";
        if (from.record.headed) code = hexadecimal(from.record.code, from.record.entry() ? 2 : 4);
    }
};

struct spool_line {
    static constexpr std::size_t bytes_in_a_line = 16;

    std::shared_ptr<const shown_item> item;
    std::size_t part = 0;  ///< 0: the item's line; then its data, 16 bytes a line

    [[nodiscard]] const spool_position& place() const noexcept { return item->at; }
    [[nodiscard]] bool same(const spool_line& other) const noexcept {
        return part == other.part && place() == other.place() && item->what == other.item->what &&
               item->offset == other.item->offset;
    }
    /// The lines of an item's data. Where it has none, one says so.
    [[nodiscard]] static std::size_t parts_of(const shown_item& of) noexcept {
        return std::max<std::size_t>((of.data.size() + bytes_in_a_line - 1) / bytes_in_a_line, 1);
    }
};

class spool_window {
public:
    using files = spools;
    using selection = spool_choice;
    using line = spool_line;
    using place = spool_position;
    static constexpr std::size_t most = 8192;
    [[nodiscard]] static constexpr place first() noexcept { return {}; }

    /// It never reads for long without returning.
    spool_window(spools& of, const spool_choice& what, const std::function<bool()>&)
        : of_(of), what_(what) {}

    [[nodiscard]] std::int64_t begin() const noexcept { return first_; }
    [[nodiscard]] std::int64_t end() const noexcept {
        return first_ + static_cast<std::int64_t>(lines_.size());
    }
    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] bool has(std::int64_t number) const noexcept {
        return number >= begin() && number < end();
    }
    [[nodiscard]] const spool_line& at(std::int64_t number) const {
        return lines_.at(static_cast<std::size_t>(number - first_));
    }
    /// The line of an item, if it is kept.
    [[nodiscard]] std::optional<std::int64_t> find(const spool_position& wanted) const {
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            if (lines_[i].part == 0 && lines_[i].place() == wanted) {
                return first_ + static_cast<std::int64_t>(i);
            }
        }
        return std::nullopt;
    }

    void start(const spool_position& at) {
        clear();
        anchor_ = at;
    }
    void start_at_end() {
        clear();
        anchor_ = {of_.size() - 1, std::numeric_limits<std::uint64_t>::max(), 0};
    }

    [[nodiscard]] grown grow_down() {
        if (!awaited_.empty()) return grow_by_new();
        if (!forward_) {
            forward_.emplace(of_, what_);
            forward_->go_to(lines_.empty() ? anchor_ : behind(lines_.back().place()));
        }
        last_up_ = false;
        const auto step = forward_->next();
        if (step == spool_walk::step::item) append(*forward_);
        return grown_by(step);
    }
    [[nodiscard]] grown grow_up() {
        if (!backward_) {
            backward_.emplace(of_, what_);
            backward_->go_to(lines_.empty() ? anchor_ : lines_.front().place());
        }
        last_up_ = true;
        const auto step = backward_->previous();
        if (step == spool_walk::step::item) {
            const auto fresh = lines_of(*backward_);
            lines_.insert(lines_.begin(), fresh.begin(), fresh.end());
            first_ -= static_cast<std::int64_t>(fresh.size());
            if (lines_.size() > most) drop_last();
        }
        return grown_by(step);
    }

    [[nodiscard]] static bool may_grow() noexcept { return true; }
    void look_again() {
        drop_torn();
        forward_.reset();
    }
    /// New items come in the order in which they are written, those of several files mixed.
    void follow() {
        if (lines_.empty()) start_at_end();
        drop_torn();
        forward_.reset();
        for (std::size_t i = 0; i < of_.size(); ++i) {
            auto& each = awaited_.emplace_back(of_, what_);
            const bool is_last = !lines_.empty() && lines_.back().place().file == i;
            if (is_last) {
                each.await(behind(lines_.back().place()));
            } else {
                each.await(i);
            }
        }
    }
    bool stop_following() {
        const bool mixed = awaited_.size() > 1;
        awaited_.clear();
        forward_.reset();
        return mixed;
    }
    [[nodiscard]] double progress() const noexcept {
        const auto& last = last_up_ ? backward_ : forward_;
        return last ? last->percent() : -1;
    }

    [[nodiscard]] bool is_open(const spool_position& at) const {
        return all_open_ != others_.contains(at);
    }
    /// Opens or closes an item, or all of them. The caller starts again.
    void toggle(const spool_position& at) {
        if (others_.erase(at) == 0) others_.insert(at);
    }
    void toggle_all() {
        all_open_ = !all_open_;
        others_.clear();
    }

private:
    [[nodiscard]] static grown grown_by(spool_walk::step step) noexcept {
        switch (step) {
            case spool_walk::step::item:
                return grown::yes;
            case spool_walk::step::passed_over:
                return grown::passed_over;
            case spool_walk::step::end:
                break;
        }
        return grown::no;
    }
    [[nodiscard]] static spool_position behind(const spool_position& at) noexcept {
        return {at.file, at.page, at.index + 1};
    }
    void clear() {
        lines_.clear();
        first_ = 0;
        forward_.reset();
        backward_.reset();
        awaited_.clear();
    }
    [[nodiscard]] std::vector<spool_line> lines_of(const spool_walk& from) const {
        const auto item = std::make_shared<const shown_item>(from.item(), from.position());
        std::vector<spool_line> out{{item, 0}};
        if (!is_open(item->at)) return out;
        for (std::size_t i = 1; i <= spool_line::parts_of(*item); ++i) out.push_back({item, i});
        return out;
    }
    void append(const spool_walk& from) {
        const auto fresh = lines_of(from);
        lines_.insert(lines_.end(), fresh.begin(), fresh.end());
        if (lines_.size() > most) drop_first();
    }
    [[nodiscard]] grown grow_by_new() {
        for (auto& each : awaited_) {
            const auto step = each.next();
            if (step == spool_walk::step::item) append(each);
            if (step != spool_walk::step::end) return grown_by(step);
        }
        return grown::no;
    }
    /// Forgets the end of a file that was not whole: there may be more of it now.
    void drop_torn() {
        while (!lines_.empty() && lines_.back().item->what == reduce::spool_item::kind::torn) {
            anchor_ = lines_.back().place();
            lines_.pop_back();
            if (lines_.empty()) backward_.reset();
        }
    }
    /// Forgets the older half, up to the line of an item: from there the walk can come back.
    void drop_first() {
        std::size_t to = most / 2;
        while (to < lines_.size() && lines_[to].part != 0) ++to;
        lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(to));
        first_ += static_cast<std::int64_t>(to);
        backward_.reset();
    }
    void drop_last() {
        std::size_t to = most / 2;
        while (to > 0 && lines_[to].part != 0) --to;
        lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(to), lines_.end());
        forward_.reset();
    }

    spools& of_;
    const spool_choice& what_;
    std::deque<spool_line> lines_;
    std::int64_t first_ = 0;
    spool_position anchor_{};  ///< where both walks begin if there are no lines
    std::optional<spool_walk> forward_;
    std::optional<spool_walk> backward_;
    std::deque<spool_walk> awaited_;   ///< when following: one for each file
    std::set<spool_position> others_;  ///< those that are open, or closed if all are open
    bool all_open_ = false;
    bool last_up_ = false;
};

}  // namespace trace_reduce::browse
