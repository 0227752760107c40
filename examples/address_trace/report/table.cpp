// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include <heap_recorder/report/escaped.hpp>
#include <heap_recorder/report/quantity.hpp>

namespace address_trace {
namespace {

/// Names from the traced program may contain any characters.
[[nodiscard]] std::string one_line(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return text;
}

[[nodiscard]] std::string shown(const cell& from) {
    switch (from.is) {
        case cell::kind::count:
            return heap::count_text(from.count);
        case cell::kind::share:
            return fmt::format("{:.2f} %", 100 * from.real);
        case cell::kind::number:
            return fmt::format("{:.4g}", from.real);
        case cell::kind::address:
            return fmt::format("{:#x}", from.count);
        case cell::kind::text:
            break;
    }
    return one_line(from.text);
}

[[nodiscard]] std::string in_full(const cell& from) {
    switch (from.is) {
        case cell::kind::count:
            return fmt::format("{}", from.count);
        case cell::kind::share:
        case cell::kind::number:
            return fmt::format("{:.6g}", from.real);
        default:
            return shown(from);
    }
}

[[nodiscard]] bool is_text(const cell& of) noexcept {
    return of.is == cell::kind::text && of.text != "-";
}

[[nodiscard]] std::string cut(const std::string& text, std::size_t width) {
    if (text.size() <= width || width < 5) return text;
    const std::size_t end = (width - 2) / 2;
    return text.substr(0, width - 2 - end) + ".." + text.substr(text.size() - end);
}

/// Breaks the text into lines of this width.
[[nodiscard]] std::string folded(std::string_view text, std::size_t width) {
    std::string out;
    std::size_t column = 0;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        if (column != 0 && column + 1 + word.size() > width) {
            out += '\n';
            column = 0;
        } else if (column != 0) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
    }
    return out + '\n';
}

}  // namespace

std::string as_text(const table& from, const table_style& style) {
    const std::size_t columns = from.columns.size();
    std::vector<std::size_t> widths(columns);
    std::vector<bool> left(columns);
    std::vector<std::vector<std::string>> texts{from.columns};
    for (const auto& row : from.rows) {
        auto& line = texts.emplace_back();
        for (std::size_t i = 0; i < columns; ++i) {
            line.push_back(shown(row[i]));
            if (is_text(row[i])) left[i] = true;
        }
    }
    for (const auto& line : texts) {
        for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], line[i].size());
    }
    // The widest column of names is narrowed, but not below the width at which names remain
    // distinct.
    constexpr std::size_t least = 16, between = 2;
    const auto total = [&] {
        std::size_t sum = 0;
        for (const std::size_t each : widths) sum += each + between;
        return sum;
    };
    while (total() > style.width + between) {
        std::size_t widest = columns;
        for (std::size_t i = 0; i < columns; ++i) {
            if (left[i] && widths[i] > least && (widest == columns || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == columns) break;
        --widths[widest];
    }
    std::string out =
        style.bold_titles ? fmt::format("\x1b[1m{}\x1b[0m\n", from.title) : from.title + '\n';
    for (const auto& line : texts) {
        std::string text;
        for (std::size_t i = 0; i < columns; ++i) {
            const std::string fit = cut(line[i], widths[i]);
            text += left[i] ? fmt::format("{:<{}}", fit, widths[i] + between)
                            : fmt::format("{:>{}}{:{}}", fit, widths[i], "", between);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
    if (!from.note.empty()) out += folded(from.note, style.width);
    return out;
}

std::string as_csv(const table& from) {
    std::string out;
    const auto put = [&](std::string_view text, bool first) {
        if (!first) out += ',';
        if (text.find_first_of(",\"") == std::string_view::npos) {
            out += text;
            return;
        }
        out += '"';
        for (const char c : text) out.append(c == '"' ? 2 : 1, c);
        out += '"';
    };
    for (std::size_t i = 0; i < from.columns.size(); ++i) put(from.columns[i], i == 0);
    out += '\n';
    for (const auto& row : from.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) put(in_full(row[i]), i == 0);
        out += '\n';
    }
    return out;
}

std::string as_json(const table& from) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& row : from.rows) {
        nlohmann::ordered_json& made = rows.emplace_back(nlohmann::ordered_json::array());
        for (const cell& each : row) {
            switch (each.is) {
                case cell::kind::count:
                    made.push_back(each.count);
                    break;
                case cell::kind::share:
                case cell::kind::number:
                    made.push_back(each.real);
                    break;
                default:  // no value
                    made.push_back(each.text == "-" && each.is == cell::kind::text
                                       ? nlohmann::ordered_json()
                                       : nlohmann::ordered_json(shown(each)));
            }
        }
    }
    const nlohmann::ordered_json all{{"name", from.name},
                                     {"title", from.title},
                                     {"columns", from.columns},
                                     {"rows", std::move(rows)},
                                     {"note", from.note}};
    // Names from the traced program may contain any characters.
    return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string as_html(const table& from) {
    std::string out = fmt::format(
        "<section id=\"{}\">\n<h2>{}</h2>\n<div class=\"wide\"><table>\n"
        "<thead><tr>",
        heap::escaped(from.name), heap::escaped(from.title));
    std::vector<bool> left(from.columns.size());
    for (const auto& row : from.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) left[i] = left[i] || is_text(row[i]);
    }
    const auto put = [&](const char* tag, const std::string& text, bool is_left) {
        out += fmt::format("<{}{}>{}</{}>", tag, is_left ? " class=\"text\"" : "",
                           heap::escaped(text), tag);
    };
    for (std::size_t i = 0; i < from.columns.size(); ++i) put("th", from.columns[i], left[i]);
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : from.rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) put("td", shown(row[i]), left[i]);
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
    if (!from.note.empty()) out += fmt::format("<p>{}</p>\n", heap::escaped(from.note));
    return out + "</section>\n";
}

}  // namespace address_trace
