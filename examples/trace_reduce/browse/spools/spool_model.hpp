// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What --browse shows of CPTRAP files: a line for each record, loss and damage, one file after the
/// other, and the data of those that are open.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../paging.hpp"
#include "sought_data.hpp"
#include "spool_choice.hpp"
#include "spool_window.hpp"
#include "spools.hpp"

namespace trace_reduce::browse {

enum class spool_column { file, offset, record, type, code, length, hex, ebcdic, ascii };

class spool_model final : public paging<spool_window> {
public:
    /// `of` must outlive it. `range` describes the ranges of `of`, if they have any.
    spool_model(spools& of, spool_choice what, std::string range = "");

    [[nodiscard]] std::vector<row> rows() override;
    [[nodiscard]] std::string status() override;
    /// As parse_spool_place has it, in the file of the current line.
    void go(std::string_view place) override;

    [[nodiscard]] std::span<const column_choice> columns() const override;
    using paging::shows;
    using paging::toggle;
    [[nodiscard]] bool shows(spool_column which) const {
        return shows(static_cast<std::size_t>(which));
    }
    void toggle(spool_column which) { toggle(static_cast<std::size_t>(which)); }

    /// Shows or hides the whole data of the current line's item.
    void open_or_close();
    /// The same for all items.
    void open_or_close_all();
    [[nodiscard]] bool press(char key) override;
    [[nodiscard]] std::span<const char* const> help() const override;

    /// Before the end: remembers torn ends of files that following left out.
    void look_at_ends();

private:
    /// Where the last search ended.
    struct hit {
        spool_position at;
        std::size_t offset = 0;  // in the data
    };

    [[nodiscard]] row row_of(std::int64_t number) override;
    [[nodiscard]] std::optional<spool_choice> parse_filter(std::string_view text,
                                                           std::string& why) override;
    [[nodiscard]] std::string understand(std::string_view sought) override;
    void find(bool backward) override;

    [[nodiscard]] bool find_here(const spool_line& from, bool backward);
    void show_hit(const spool_position& at, std::optional<std::size_t> offset);
    [[nodiscard]] row row_of_data(const spool_line& of) const;
    void append_data(row& to, const shown_item& of, std::size_t begin, std::size_t count) const;
    [[nodiscard]] std::size_t bytes_that_fit(std::size_t width) const;

    sought_data sought_data_;
    std::optional<hit> hit_;
    std::size_t previewed_ = 0;  // bytes of data in a record's line
};

}  // namespace trace_reduce::browse
