// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What --browse shows of traces: their records, merged by time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../paging.hpp"
#include "trace.hpp"
#include "trace_window.hpp"

namespace trace_reduce::browse {

/// How times are shown: the three of the text format, and two differences.
enum class shown_time { local, relative, raw, since_previous, since_mark };

enum class column { file, time, delta, process, thread, lane, event, fields };

class trace_model final : public paging<trace_window> {
public:
    /// `of` must outlive it. Begins at the first line; `filter` is `what` as parse_selection has
    /// it, `range` says what the limits of `of` are, if they have any.
    trace_model(traces& of, selection what, shown_time time, std::string filter,
                std::string range = "");

    [[nodiscard]] std::vector<row> rows() override;
    [[nodiscard]] std::string status() override;
    /// As parse_place has it.
    void go(std::string_view place) override;

    [[nodiscard]] std::span<const column_choice> columns() const override;
    using paging::shows;
    using paging::toggle;
    [[nodiscard]] bool shows(column which) const { return shows(static_cast<std::size_t>(which)); }
    void toggle(column which) { toggle(static_cast<std::size_t>(which)); }

    void next_time();
    /// From the mark set or gone to last to here.
    void tell_delta();
    [[nodiscard]] bool press(char key) override;
    [[nodiscard]] std::span<const char* const> help() const override;

    [[nodiscard]] const std::vector<trace_window::damage>& damages() const noexcept {
        return window_.damages();
    }

private:
    [[nodiscard]] row row_of(std::int64_t number) override;
    /// As parse_selection has it.
    [[nodiscard]] std::optional<selection> parse_filter(std::string_view text,
                                                        std::string& why) override;
    /// A text, or a glob if it has one of * ? [.
    void find(bool backward) override;

    [[nodiscard]] bool tell_progress(std::size_t& count, const trace_line& at);
    [[nodiscard]] bool matches(const std::string& text) const;
    [[nodiscard]] double percent_of(std::uint64_t key) const noexcept;
    void append_time(exporter::text_buffer& out, const trace_line& of, const trace_line* previous);
    void append_difference(exporter::text_buffer& out, const trace_line& from,
                           const trace_line& to);
    [[nodiscard]] const trace_line* previous_of(std::int64_t number);

    shown_time time_;
    exporter::text_buffer text_;
};

}  // namespace trace_reduce::browse
