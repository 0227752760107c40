// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads CSV to the letter of RFC 4180, and undoes what exporting/csv.hpp does to text.

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trace_ring_test {

struct csv_cell {
    std::string text;
    bool quoted = false;

    friend bool operator==(const csv_cell&, const csv_cell&) = default;
    /// The text that it represents: by the cell's content alone, because most readers of CSV do not
    /// report whether a cell was in quotes.
    [[nodiscard]] std::string plain() const {
        if (text.starts_with('\'')) return text.substr(1);
        if (!text.starts_with("hex:")) {
            if (!quoted) throw std::runtime_error("csv: no text: " + text);
            return text;
        }
        std::string out;
        for (std::size_t i = 4; i + 1 < text.size(); i += 2) {
            out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
        }
        return out;
    }
};

class csv_reader {
public:
    /// Throws unless each row ends with CR LF and has as many cells as the first.
    explicit csv_reader(std::string_view all) {
        while (!all.empty()) {
            std::vector<csv_cell> row;
            do {
                row.push_back(cell(all));
            } while (take(all, ","));
            if (!take(all, "\r\n")) throw std::runtime_error("csv: a row ends with CR LF");
            if (rows_.empty()) {
                for (std::size_t i = 0; i < row.size(); ++i) {
                    const std::string name = row[i].quoted ? row[i].plain() : row[i].text;
                    if (!columns_.emplace(name, i).second) {
                        throw std::runtime_error("csv: a column twice: " + name);
                    }
                }
            } else if (row.size() != rows_[0].size()) {
                throw std::runtime_error("csv: a row of another length");
            }
            rows_.push_back(std::move(row));
        }
    }

    /// With the header.
    [[nodiscard]] const std::vector<std::vector<csv_cell>>& rows() const { return rows_; }
    [[nodiscard]] const csv_cell& at(std::size_t row, const std::string& column) const {
        return rows_.at(row).at(columns_.at(column));
    }

private:
    [[nodiscard]] static bool take(std::string_view& all, std::string_view what) {
        if (!all.starts_with(what)) return false;
        all.remove_prefix(what.size());
        return true;
    }
    [[nodiscard]] static csv_cell cell(std::string_view& all) {
        csv_cell out;
        if (!take(all, "\"")) {
            const std::size_t end = all.find_first_of(",\r\n\"");
            if (end == all.npos || all[end] == '"') throw std::runtime_error("csv: a loose quote");
            out.text = all.substr(0, end);
            all.remove_prefix(end);
            return out;
        }
        out.quoted = true;
        for (;;) {
            const std::size_t quote = all.find('"');
            if (quote == all.npos) throw std::runtime_error("csv: a quote that does not end");
            out.text += all.substr(0, quote);
            all.remove_prefix(quote + 1);
            if (!take(all, "\"")) return out;
            out.text += '"';
        }
    }

    std::vector<std::vector<csv_cell>> rows_;
    std::map<std::string, std::size_t> columns_;
};

}  // namespace trace_ring_test
