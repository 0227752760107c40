// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The terminal of --browse: takes it, shows what the model says, and gives it back as it was.

#include <csignal>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model.hpp"

namespace trace_reduce::browse {

/// A terminal that is taken as long as this lives.
class screen {
public:
    /// Throws std::runtime_error if standard input and output are no terminal, or it is of no known
    /// type.
    screen();
    ~screen();
    screen(const screen&) = delete;

    /// Lines for the model: all but the last, which is for the status.
    [[nodiscard]] std::size_t lines() const;
    [[nodiscard]] std::size_t width() const;
    void show(model& what);
    /// Waits for a key, at most so long; `none` if there is none, `gone` if there never will be
    /// one. Keys without a character are the numbers of ncurses, above `function`.
    [[nodiscard]] long key(int milliseconds);
    /// A line that is typed on the status line, `begin` before it; false: given up.
    [[nodiscard]] bool ask(std::string_view begin, std::string& into,
                           const volatile std::sig_atomic_t& ended);
    /// Instead of the status line, until the next `show`.
    void tell(std::string_view text);
    /// Shows these lines, those that are too long on several lines of the screen, from line `from`
    /// of the screen's lines on. Returns the first one that did not fit; 0 if all did.
    [[nodiscard]] std::size_t show_help(std::span<const std::string> lines, std::size_t from);
    void columns_right(int count);
    void redraw();

    static constexpr long none = -1;
    static constexpr long gone = -2;
    static constexpr long function = 1L << 24;

private:
    struct parts;
    std::unique_ptr<parts> own_;
};

}  // namespace trace_reduce::browse
