// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Scrolling through lines, with marks, a filter and following: the part of a model that is the
/// same for each kind of file. A window reads the lines. A Window has
///
/// | member                         | meaning                                                    |
/// |--------------------------------|------------------------------------------------------------|
/// | files, selection, line, place  | types: what is read, what is chosen of it, a line, and the |
/// |                                | place of a line in the files                               |
/// | (files&, const selection&, f)  | constructor; `f()` is false if reading is to stop          |
/// | most, first()                  | how many lines are kept at most; a place before all lines  |
/// | begin, end, empty, has, at     | the lines by number; a line that is kept keeps its number  |
/// | grow_up, grow_down             | reads a line before the first, or after the last           |
/// | start(place), start_at_end()   | forgets all lines; the first from the place on becomes     |
/// |                                | line 0, or the last of all becomes line -1                 |
/// | may_grow, look_again           | whether new lines may come at the end; reads them          |
/// | follow                         | grow_down returns new lines when they are written             |
/// | stop_following                 | true if they have to be read again, in another order       |
/// | progress()                     | per cent read; negative if that is not known               |
///
/// `line.place()` is its place, and `line.same(other)` is true for the same line, read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model.hpp"

namespace trace_reduce::browse {

/// How reading a further line ended. `passed_over`: the reader skipped many that are not chosen,
/// and has not finished: call it again.
enum class grown { yes, no, passed_over };

template <class Window>
class paging : public model {
public:
    using files = typename Window::files;
    using selection = typename Window::selection;
    using line = typename Window::line;
    using place = typename Window::place;

    void resize(std::size_t lines, std::size_t width = 80) override {
        lines_ = std::clamp<std::size_t>(lines, 1, Window::most / 4);
        width_ = width;
        settle();
    }
    [[nodiscard]] std::vector<row> rows() override {
        std::vector<row> all;
        std::vector<std::size_t> widths;
        constexpr std::size_t widest = 40;  // a longer cell pushes the rest of its row
        for (std::int64_t i = top_; i < top_ + rows_shown() && window_.has(i); ++i) {
            all.push_back(row_of(i));
            if (!all.back().in_columns) continue;
            const auto& cells = all.back().cells;
            widths.resize(std::max(widths.size(), cells.size()));
            for (std::size_t k = 0; k + 1 < cells.size(); ++k) {
                widths[k] = std::max(widths[k], std::min(characters(cells[k].text), widest));
            }
        }
        for (auto& each : all) {
            if (!each.in_columns) continue;
            for (std::size_t k = 0; k + 1 < each.cells.size(); ++k) {
                auto& of = each.cells[k];
                const std::size_t have = characters(of.text);
                if (have >= widths[k]) continue;
                const std::size_t more = widths[k] - have;
                of.text.insert(of.to_the_right ? 0 : of.text.size(), more, ' ');
                for (auto& found : of.found) {
                    if (of.to_the_right) found = {found.begin + more, found.end + more};
                }
            }
        }
        return all;
    }
    [[nodiscard]] const std::string& message() const noexcept override { return message_; }
    void clear_message() override {
        message_.clear();
        stopped_ = false;
    }

    void by_lines(std::int64_t count) override {
        if (following_) follow(false);
        if (count > 0 && here_ + count >= window_.end() && !grow_to(here_ + count) &&
            window_.may_grow()) {
            window_.look_again();
        }
        here_ += count;
        settle();
    }
    void by_pages(std::int64_t count) override {
        const auto lines = count * rows_shown();
        (void)grow_to(top_ + lines);
        top_ += lines;
        by_lines(lines);
    }
    void home() override {
        if (following_) follow(false);
        start(Window::first(), 0);
    }
    void end() override {
        if (following_) follow(false);
        window_.start_at_end();
        here_ = -1;
        top_ = -rows_shown();
        settle();
    }

    void search(std::string_view text, bool backward) override {
        if (!text.empty()) {
            if (auto why = understand(text); !why.empty()) {
                message_ = std::move(why);
                return;
            }
            sought_ = text;
        }
        sought_backward_ = backward;
        search_that_way(backward);
    }
    void search_again(bool other_way) override { search_that_way(sought_backward_ != other_way); }

    void filter(std::string_view text) override {
        std::string why;
        auto wanted = parse_filter(text, why);
        if (!wanted) {
            message_ = std::move(why);
            refused_ = text;
            return;
        }
        refused_.clear();
        const bool followed = following_;
        if (followed) follow(false);
        const auto from = here_place();
        const place begin = from ? from->at.place() : Window::first();
        window_.start(begin);  // it reads nothing more by the old selection
        what_ = std::move(*wanted);
        filter_ = text;
        if (from) {
            (void)go_to_line(from->at, from->row);
        } else {
            start(begin, 0);
        }
        if (followed) follow(true);
        if (window_.empty()) message_ = stopped_ ? "stopped" : "nothing matches " + filter_;
    }
    [[nodiscard]] const std::string& filter_text() const noexcept { return filter_; }
    [[nodiscard]] const std::string& filter_draft() const noexcept override {
        return refused_.empty() ? filter_ : refused_;
    }

    [[nodiscard]] bool shows(std::size_t column) const override { return shown_[column]; }
    void toggle(std::size_t column) override { shown_[column] = !shown_[column]; }

    void mark(char name) override {
        const line* const at = here();
        if (at == nullptr) return;
        marks_.insert_or_assign(name, *at);
        last_mark_ = name;
        message_ = std::string("mark ") + name;
    }
    void go_to_mark(char name) override {
        const auto found = marks_.find(name);
        if (found == marks_.end()) {
            message_ = std::string("no mark ") + name;
            return;
        }
        if (following_) follow(false);
        last_mark_ = name;
        if (!go_to_line(found->second, rows_shown() / 3)) {
            message_ =
                std::string("mark ") + name + ": its line is not there (any more), this is near it";
        }
    }

    void follow(bool on) override {
        following_ = on;
        if (!on) {
            if (!window_.stop_following()) return;
            if (const auto at = here_place()) (void)go_to_line(at->at, at->row);
            return;
        }
        end();
        following_ = true;
        window_.follow();
        (void)poll();
    }
    [[nodiscard]] bool following() const noexcept override { return following_; }
    bool poll() override {
        if (!following_) return false;
        stopped_ = false;
        const std::int64_t before = window_.end();
        std::size_t read = 0;
        for (;;) {
            const auto got = window_.grow_down();
            if (got == grown::no) break;
            if (got == grown::passed_over) {
                if (!goes_on()) break;
                continue;
            }
            // More than anyone reads, and more may come than can be read: continue at the newest.
            if (++read < 4 * Window::most) continue;
            end();
            following_ = true;
            window_.follow();
            break;
        }
        here_ = window_.end() - 1;
        top_ = here_ + 1 - rows_shown();
        (void)grow_to(top_);
        top_ = std::max(top_, window_.begin());
        return window_.end() != before || read != 0;
    }

    /// The current line; null if there is none.
    [[nodiscard]] const line* here() const {
        return window_.has(here_) ? &window_.at(here_) : nullptr;
    }

protected:
    /// `of` must outlive it. `filter` is `what` as it would be typed, and `range` describes the
    /// limits of `of`, if they have any. Nothing is read before `resize`.
    paging(files& of, selection what, std::string filter, std::string range)
        : of_(of),
          what_(std::move(what)),
          window_(of, what_, [this] { return goes_on(); }),
          filter_(std::move(filter)),
          range_(std::move(range)) {}

    /// The row of a line that the window has.
    [[nodiscard]] virtual row row_of(std::int64_t number) = 0;
    [[nodiscard]] virtual std::optional<selection> parse_filter(std::string_view text,
                                                                std::string& why) = 0;
    /// Takes a text to search for from now on. Returns what is wrong with it; empty if nothing is.
    [[nodiscard]] virtual std::string understand(std::string_view) { return {}; }
    /// Goes from the current line, which exists, to the next one with `sought_`.
    virtual void find(bool backward) = 0;

    [[nodiscard]] std::int64_t rows_shown() const noexcept {
        return static_cast<std::int64_t>(lines_);
    }
    /// False once this command was stopped: it then reads no more.
    [[nodiscard]] bool goes_on() {
        stopped_ = stopped_ || !go_on(window_.progress());
        return !stopped_;
    }
    /// Reads until this line is there. False: there is none, or reading was stopped.
    [[nodiscard]] bool grow_to(std::int64_t number) {
        while (!window_.has(number)) {
            if (stopped_) return false;
            const bool up = number < window_.begin();
            const auto got = up ? window_.grow_up() : window_.grow_down();
            if (got == grown::no) return false;
            if (got == grown::passed_over && !goes_on()) return false;
        }
        return true;
    }
    /// Makes the current line one that exists and is on the screen, and fills the screen if
    /// possible.
    void settle() {
        (void)grow_to(here_);
        if (!window_.empty()) here_ = std::clamp(here_, window_.begin(), window_.end() - 1);
        top_ = std::clamp(top_, here_ - rows_shown() + 1, here_);
        (void)grow_to(top_ + rows_shown() - 1);
        if (window_.end() < top_ + rows_shown()) top_ = window_.end() - rows_shown();
        (void)grow_to(top_);
        top_ = std::max(top_, window_.begin());
        if (!window_.empty()) here_ = std::clamp(here_, window_.begin(), window_.end() - 1);
    }
    /// Makes this line the current one, in this row of the screen if there are enough lines above.
    /// Lines above that are far away are not read for that.
    void put_on_row(std::int64_t number, std::int64_t on_row) {
        here_ = number;
        while (window_.begin() > here_ - on_row && window_.grow_up() == grown::yes) continue;
        top_ = std::max(here_ - on_row, window_.begin());
        settle();
    }
    /// Makes the first line from `at` on the current one, or the last line before that.
    void start(const place& at, std::int64_t on_row) {
        window_.start(at);
        const bool is_last = !grow_to(0) && grow_to(-1);
        put_on_row(is_last ? -1 : 0, on_row);
    }
    /// Makes this line the current one, a third down the screen if it was not on it.
    void show(std::int64_t number) {
        const bool on_screen = number >= top_ && number < top_ + rows_shown();
        put_on_row(number, on_screen ? number - top_ : rows_shown() / 3);
    }

    /// A line that can be found again after others were read.
    struct kept_place {
        line at;
        std::int64_t row = 0;  // on the screen
    };
    [[nodiscard]] std::optional<kept_place> here_place() const {
        const line* const at = here();
        if (at == nullptr) return std::nullopt;
        return kept_place{*at, here_ - top_};
    }
    /// Reads again from the place of `wanted` on, and finds the line. False: it is not there.
    bool go_to_line(const line& wanted, std::int64_t on_row) {
        window_.start(wanted.place());
        for (std::int64_t number = 0; grow_to(number); ++number) {
            const line& at = window_.at(number);
            if (at.place() != wanted.place()) break;
            if (!at.same(wanted)) continue;
            put_on_row(number, on_row);
            return true;
        }
        start(wanted.place(), on_row);
        return false;
    }

    [[nodiscard]] bool is_marked(const line& of) const {
        return std::any_of(marks_.begin(), marks_.end(),
                           [&](const auto& each) { return each.second.same(of); });
    }
    /// The first words of the status line.
    [[nodiscard]] std::string status_of_files() const {
        std::string text = file_name(of_.name(0));
        if (of_.size() > 1) text += " and " + std::to_string(of_.size() - 1) + " more";
        if (following_) {
            text += "  following";
        } else if (of_.live()) {
            text += "  live";
        }
        return text;
    }
    [[nodiscard]] std::string status_of_choice() const {
        std::string text;
        if (!range_.empty()) text += "  " + range_;
        if (!filter_.empty()) text += "  filter " + filter_;
        return text;
    }

    files& of_;
    selection what_;
    Window window_;
    std::size_t lines_ = 24;
    std::size_t width_ = 80;
    std::int64_t top_ = 0;
    std::int64_t here_ = 0;
    std::vector<bool> shown_;  ///< columns
    std::string filter_;
    std::string refused_;
    std::string range_;
    std::string sought_;
    bool sought_backward_ = false;
    std::map<char, line> marks_;
    std::optional<char> last_mark_;
    bool following_ = false;
    bool stopped_ = false;
    std::string message_;

private:
    void search_that_way(bool backward) {
        if (sought_.empty()) {
            message_ = "nothing to search for";
            return;
        }
        if (here() == nullptr) return;
        if (following_) follow(false);
        if (here() != nullptr) find(backward);
    }
};

}  // namespace trace_reduce::browse
