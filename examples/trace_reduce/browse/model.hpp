// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is shown of traces, and where one is in them: everything of --browse but the terminal.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "trace.hpp"
#include "window.hpp"

namespace trace_reduce::browse {

/// How times are shown: the three of the text format, and two differences.
enum class shown_time { local, relative, raw, since_previous, since_mark };

enum class column { file, time, delta, process, thread, lane, event, fields };
inline constexpr std::size_t column_count = 8;

enum class style { plain, faint, name, bad, file };

/// A piece of a row, in UTF-8 without control characters.
struct cell {
    std::string text;
    style how = style::plain;
};
struct row {
    std::vector<cell> cells;
    bool here = false;
    bool marked = false;
};

class model {
public:
    /// `of` must outlive it. Begins at the first line; `filter` is `what` as parse_selection has
    /// it, `range` says what the limits of `of` are, if they have any.
    model(traces& of, selection what, shown_time time, std::string filter, std::string range = "");
    model(const model&) = delete;

    /// So many lines can be shown.
    void resize(std::size_t lines);
    [[nodiscard]] std::size_t lines() const noexcept { return lines_; }
    /// The lines shown now; fewer than `lines` if there are no more.
    [[nodiscard]] std::vector<row> rows();
    /// File, time, position, range, filter, what is lost: for the line below.
    [[nodiscard]] std::string status();
    /// What the last command had to say; empty if nothing.
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    /// Before another command: nothing was said, and nothing was stopped.
    void clear_message() {
        message_.clear();
        stopped_ = false;
    }

    void by_lines(std::int64_t count);
    void by_pages(std::int64_t count);
    void home();
    void end();
    /// As parse_place has it.
    void go(std::string_view place);

    /// The next line that shows this: a text, or a glob if it has one of * ? [. Empty: the last one
    /// again.
    void search(std::string_view text, bool backward);
    /// Once more; `other_way`: in the opposite direction.
    void search_again(bool other_way);
    /// Is called now and then by what takes long, with per cent done, negative where that is not
    /// known; false: stop.
    std::function<bool(double)> go_on = [](double) { return true; };
    /// What to highlight in the rows; empty if it is a glob.
    [[nodiscard]] std::string_view sought_text() const noexcept;

    /// As parse_selection has it. What makes no sense is told, and the filter stays as it was.
    void filter(std::string_view text);
    [[nodiscard]] const std::string& filter_text() const noexcept { return filter_; }
    /// What to begin with when a filter is to be typed: the one refused last, or the one there is.
    [[nodiscard]] const std::string& filter_draft() const noexcept {
        return refused_.empty() ? filter_ : refused_;
    }
    void toggle(column which);
    [[nodiscard]] bool shows(column which) const noexcept {
        return columns_[static_cast<std::size_t>(which)];
    }
    void next_time();
    void mark(char name);
    void go_to_mark(char name);
    /// From the mark set or gone to last to here.
    void tell_delta();

    void follow(bool on);
    [[nodiscard]] bool following() const noexcept { return following_; }
    /// When following: takes up what is new. True if there was any.
    bool poll();

    /// The line that one is on; null if there is none.
    [[nodiscard]] const line* here() const;
    [[nodiscard]] const std::vector<window::damage>& damages() const noexcept {
        return window_.damages();
    }

private:
    /// A line that can be found again after others were read.
    struct place {
        line at;
        std::int64_t row = 0;  // on the screen
    };

    [[nodiscard]] bool goes_on();
    [[nodiscard]] bool grow_to(std::int64_t number);
    void settle();
    void start(std::uint64_t key, std::int64_t row);
    [[nodiscard]] std::optional<place> here_place() const;
    void go_back(const place& to);
    bool go_to_line(const line& wanted, std::int64_t row);
    void search_from(bool backward);
    [[nodiscard]] bool told(std::size_t& count, const line& at);
    [[nodiscard]] bool matches(const std::string& text) const;
    [[nodiscard]] double percent_of(std::uint64_t key) const noexcept;
    void append_time(exporter::text_buffer& out, const line& of, const line* previous);
    void append_difference(exporter::text_buffer& out, const line& from, const line& to);
    [[nodiscard]] row row_of(std::int64_t number);
    [[nodiscard]] const line* previous_of(std::int64_t number);

    traces& of_;
    selection what_;
    window window_;
    std::size_t lines_ = 24;
    std::int64_t top_ = 0;
    std::int64_t here_ = 0;
    shown_time time_;
    std::vector<bool> columns_;
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
    exporter::text_buffer text_;
};

}  // namespace trace_reduce::browse
