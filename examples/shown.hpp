// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file How the programs print text that others chose: names in a trace or a core, arguments,
/// errors that quote them. Such text must not control the terminal or imitate the program's own
/// lines.

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <trace_ring/exporter/text/append.hpp>

/// `text` on one line, with control characters, and bytes that are not UTF-8, as \\x1b. Backslashes
/// are unchanged, because the text may already be escaped.
[[nodiscard]] inline std::string shown(std::string_view text) {
    trace_ring::exporter::text_buffer out;
    for (;;) {
        const std::size_t end = text.find('\\');
        trace_ring::exporter::impl::append_escaped(out, text.substr(0, end), 0);
        if (end == text.npos) return std::string(out.view());
        out += '\\';
        text.remove_prefix(end + 1);
    }
}

/// Says on standard error what is wrong, in a line. Further lines are the program's own if they are
/// set in, by two blanks; a line end in a name is shown as one.
inline void complain(const char* program, std::string_view what) {
    constexpr std::string_view set_in = "\n  ";
    std::string text;
    for (std::size_t end = 0; end != what.npos;) {
        end = what.find(set_in);
        text += shown(what.substr(0, end)) + '\n';
        if (end != what.npos) what.remove_prefix(end + 1);
    }
    std::fprintf(stderr, "%s: %s", program, text.c_str());
}
