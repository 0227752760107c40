// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The spooled print file of the reduction: lines on pages of 60, each page with a heading that
/// names the file, the date of the print and the page.
/// @code
///   CPTRAP  trap.spool                                   2026-11-28 21:04   PAGE     1
///
///   0x00000000  3F interface    code 0003     4 bytes
/// @endcode
/// A form feed separates the pages. A heading has two lines; 58 are left.

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_reduce {

class print_pages {
public:
    static constexpr std::size_t lines_of_page = 60;
    static constexpr std::size_t columns = 132;  ///< of the heading

    explicit print_pages(std::time_t now = std::time(nullptr)) {
        std::tm parts{};
        char text[32] = "";
        if (::localtime_r(&now, &parts) != nullptr) {
            (void)std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
        }
        date_ = text;
    }

    /// What follows is of this file: it begins on a new page.
    void enter(std::string_view file) {
        exporter::text_buffer escaped;
        exporter::impl::append_escaped(escaped, file, 0);
        if (line_ != 0 && escaped.view() != file_) line_ = lines_of_page;
        file_ = escaped.view();
    }
    /// Whole lines.
    void append(exporter::text_buffer& out, std::string_view lines) {
        while (!lines.empty()) {
            if (line_ == 0 || line_ >= lines_of_page) begin_page(out);
            const auto end = lines.find('\n');
            const auto line = lines.substr(0, end == lines.npos ? lines.size() : end + 1);
            out += line;
            if (end == lines.npos) out += '\n';
            ++line_;
            lines.remove_prefix(line.size());
        }
    }

private:
    void begin_page(exporter::text_buffer& out) {
        if (page_ != 0) out += '\f';
        std::string number = std::to_string(++page_);
        if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
        const std::string right = date_ + "   PAGE " + number;
        std::string left = "CPTRAP  " + file_;
        const std::size_t room = columns - right.size() - 2;
        if (left.size() > room) left = "CPTRAP  ..." + left.substr(left.size() - (room - 11));
        left.resize(room + 2, ' ');
        out += left;
        out += right;
        out += "\n\n";
        line_ = 2;
    }

    std::string date_;
    std::string file_;
    std::uint64_t page_ = 0;
    std::size_t line_ = 0;  // of the page, that are written; 0: no page yet
};

}  // namespace trace_reduce
