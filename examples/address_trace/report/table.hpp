// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A table of results, and its text for terminals, spreadsheets and pages.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace address_trace {

struct cell {
    enum class kind : std::uint8_t { text, count, share, number, address };

    cell(std::string what) : is(kind::text), text(std::move(what)) {}  // NOLINT(*-explicit-*)
    cell(const char* what) : cell(std::string(what)) {}                // NOLINT(*-explicit-*)
    cell(std::uint64_t what) : is(kind::count), count(what) {}         // NOLINT(*-explicit-*)
    [[nodiscard]] static cell address(std::uint64_t at) {
        cell out(at);
        out.is = kind::address;
        return out;
    }
    [[nodiscard]] static cell number(double what) {
        cell out(std::uint64_t{0});
        out.is = kind::number;
        out.real = what;
        return out;
    }
    /// Without a whole, there is no share.
    [[nodiscard]] static cell share(double part, double whole) {
        if (whole == 0) return cell("-");
        cell out = number(part / whole);
        out.is = kind::share;
        return out;
    }
    [[nodiscard]] static cell share(std::uint64_t part, std::uint64_t whole) {
        return share(static_cast<double>(part), static_cast<double>(whole));
    }

    kind is;
    std::string text;
    std::uint64_t count = 0;
    double real = 0;
};

struct table {
    std::string name;   ///< one word
    std::string title;  ///< printed above it
    std::vector<std::string> columns;
    std::vector<std::vector<cell>> rows;
    std::string note;  ///< an explanation for the reader; may be empty
};

struct table_style {
    std::size_t width = 100;  ///< columns: texts are cut in the middle to fit
    bool bold_titles = false;
};

/// In columns: "1,234", "5.6 %".
[[nodiscard]] std::string as_text(const table& from, const table_style& style);
/// For spreadsheets: a line of column names, then one line per row; numbers in full, shares from 0
/// to 1.
[[nodiscard]] std::string as_csv(const table& from);
[[nodiscard]] std::string as_html(const table& from);
/// One object: its name, title, columns and note, and rows as lists. Numbers as in as_csv.
[[nodiscard]] std::string as_json(const table& from);

}  // namespace address_trace
