// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lines that --browse shows of a kind of file, and the commands that a person gives:
/// everything that the session and the screen need. Each kind of file has a model.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_reduce::browse {

enum class style { plain, faint, name, bad, file };

/// A piece of a row, in UTF-8 without control characters.
struct cell {
    /// Bytes of the text, from `begin` to before `end`.
    struct part {
        std::size_t begin = 0;
        std::size_t end = 0;
    };
    std::string text;
    style how = style::plain;
    bool to_the_right = false;  ///< within its column, as numbers are
    std::vector<part> found{};  ///< where the text that was searched for is, in ascending order
};
struct row {
    std::vector<cell> cells;
    bool here = false;
    bool marked = false;
    bool in_columns = true;  ///< its cells are aligned with those of other rows; not the last cell
};

/// A column that can be hidden, and the key for that.
struct column_choice {
    char key;
    const char* name;
};

class model {
public:
    model() = default;
    model(const model&) = delete;
    virtual ~model() = default;

    /// The size of the screen: lines for rows, and characters in a line.
    virtual void resize(std::size_t lines, std::size_t width) = 0;
    /// The rows to show now: one a line, or fewer if there are no more.
    [[nodiscard]] virtual std::vector<row> rows() = 0;
    /// The status line: file, place, range, filter, and losses or damage.
    [[nodiscard]] virtual std::string status() = 0;
    /// The answer to the last command; empty if it has none.
    [[nodiscard]] virtual const std::string& message() const noexcept = 0;
    /// Before each command: clears the message, and forgets that the last command was stopped.
    virtual void clear_message() = 0;

    virtual void by_lines(std::int64_t count) = 0;
    virtual void by_pages(std::int64_t count) = 0;
    virtual void home() = 0;
    virtual void end() = 0;
    /// Goes to a place that was typed. The message says what is wrong with it.
    virtual void go(std::string_view place) = 0;

    /// Goes to the next line with this text. Empty: searches for the last text again.
    virtual void search(std::string_view text, bool backward) = 0;
    /// Once more; `other_way`: in the opposite direction.
    virtual void search_again(bool other_way) = 0;
    /// Called now and then by commands that take long, with per cent done, or a negative number if
    /// that is not known. The command stops if it returns false.
    std::function<bool(double)> go_on = [](double) { return true; };

    /// Chooses what is shown. The message says what is wrong; then the filter does not change.
    virtual void filter(std::string_view text) = 0;
    /// The text that editing a filter begins with: the one that was refused last, or the current
    /// one.
    [[nodiscard]] virtual const std::string& filter_draft() const noexcept = 0;

    [[nodiscard]] virtual std::span<const column_choice> columns() const = 0;
    [[nodiscard]] virtual bool shows(std::size_t column) const = 0;
    virtual void toggle(std::size_t column) = 0;

    virtual void mark(char name) = 0;
    virtual void go_to_mark(char name) = 0;

    virtual void follow(bool on) = 0;
    [[nodiscard]] virtual bool following() const noexcept = 0;
    /// When following: takes in new lines. True if there are any.
    virtual bool poll() = 0;

    /// A key that only this kind of file has. False: it has no such key.
    virtual bool press(char key) = 0;
    /// The lines of the help that explain places, searches, filters and this model's keys.
    [[nodiscard]] virtual std::span<const char* const> help() const = 0;
};

/// The last part of a path, fit to be shown.
[[nodiscard]] inline std::string file_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    trace_ring::exporter::text_buffer out;
    trace_ring::exporter::impl::append_escaped(
        out, path.substr(slash == std::string_view::npos ? 0 : slash + 1), 0);
    return std::string(out.view());
}
/// Characters of a text in UTF-8.
[[nodiscard]] inline std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

}  // namespace trace_reduce::browse
