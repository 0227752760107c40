// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of spans: one for both ends. A span's row comes when its end was read, and those
/// without ends come last. Memory: for the spans that are open at the same time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/span/pairs.hpp>

#include "../../records/kept_record.hpp"
#include "../../records/span_nesting.hpp"
#include "plan.hpp"
#include "record_cells.hpp"
#include "record_rows.hpp"
#include "rows.hpp"
#include "shape.hpp"

namespace trace_reduce::sql {

class span_rows final : public rows {
public:
    /// `what`: of each file.
    span_rows(const table_shape& of, trace_set& in, std::vector<reduce::filter> what,
              connection& by)
        : of_(of), files_(in.files()), filters_(std::move(what)), by_(by) {}

    [[nodiscard]] bool next() override {
        if (!done_.empty()) done_.pop_front();
        while (done_.empty()) {
            if (!cursor_) {
                if (number_ == files_.size()) return false;
                cursor_.emplace(files_[number_]->trace().forward(std::move(filters_[number_])));
            }
            if (const auto* const item = cursor_->next()) {
                take(*item);
            } else {
                finish();
            }
        }
        return true;
    }

    void column(sqlite3_context* to, std::size_t which) override {
        const column_shape& wanted = of_.columns[which];
        const row& now = done_.front();
        const traced_file& in = *now.in;
        const bool both = now.begin && now.end;
        const auto begin = (now.begin ? now.begin : now.end).view();
        const auto end = now.end ? now.end.view() : reduce::record_view();
        switch (wanted.what) {
            case cell::end:
                if (now.end) cells_.time(to, in, end.time());
                return;
            case cell::end_text:
                if (now.end) cells_.time_text(to, in, end.time());
                return;
            case cell::end_ticks:
                if (now.end) cells_.put(to, cell::ticks, in, end);
                return;
            case cell::duration:
                if (!both || end.time() < begin.time() || !in.time().known()) return;
                // As text, JSON and conditions have it.
                return result_unsigned(
                    to, trace_ring::exporter::span_length{.ticks = end.time() - begin.time()}.ns(
                            in.time()));
            case cell::duration_ticks:
                if (!both || end.time() < begin.time()) return;
                return result_unsigned(to, end.time() - begin.time());
            case cell::inexact:
                return sqlite3_result_int(to,
                                          begin.interval() || (now.end && end.interval()) ? 1 : 0);
            case cell::state:
                return result_text(to, now.state);
            case cell::end_lane:
                if (now.end) cells_.put(to, cell::lane, in, end);
                return;
            case cell::end_position:
                if (now.end) cells_.put(to, cell::position, in, end);
                return;
            case cell::end_thread:
                if (now.end) cells_.put(to, cell::thread, in, end);
                return;
            case cell::end_tid:
                if (now.end) cells_.put(to, cell::tid, in, end);
                return;
            case cell::level:
                if (now.begin) sqlite3_result_int64(to, static_cast<std::int64_t>(now.level));
                return;
            case cell::parent_lane:
                if (now.parent) result_unsigned(to, now.parent->lane);
                return;
            case cell::parent_position:
                if (now.parent) result_unsigned(to, now.parent->at);
                return;
            case cell::fields:
                if (now.begin) cells_.fields(to, begin);
                return;
            case cell::results:
                if (now.end) cells_.fields(to, end);
                return;
            case cell::field:
            case cell::field_number: {
                const auto& field = of_.fields[wanted.index];
                if (field.result ? !now.end : !now.begin) return;
                const auto record = field.result ? end : begin;
                const auto value = record.field(places_.place(record.type(), wanted.index));
                return result_value(to, wanted.what == cell::field ? value : value.unnamed());
            }
            default:
                return cells_.put(to, wanted.what, in, begin);
        }
    }

    /// The place of its begin, or of its end, where no other span begins.
    [[nodiscard]] std::optional<row_key> key() override {
        const row& now = done_.front();
        const auto known = (now.begin ? now.begin : now.end).view();
        const auto file = std::find(files_.begin(), files_.end(), now.in) - files_.begin();
        return row_key{static_cast<std::uint64_t>(file), known.lane().number, known.position()};
    }

private:
    using kept_record = records::kept_record;
    struct open_span {
        reduce::span_place place;
    };
    struct kept {
        kept_record begin;
        reduce::span_place place;
        std::optional<reduce::span_place> parent;
        std::size_t level = 0;
        bool cut_off = false;  // records are missing after it
    };
    struct row {
        std::shared_ptr<traced_file> in;
        kept_record begin, end;
        std::optional<reduce::span_place> parent;
        std::size_t level = 0;
        std::string_view state;
    };

    void take(const reduce::item& item) {
        report_if_damaged(by_.damaged, file(), item);
        if (const auto* record = std::get_if<reduce::record_view>(&item)) {
            if (!record->known()) return;
            if (record->begins()) begin(*record);
            if (record->ends()) end(*record);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(&item)) {
            if (loss->lane != nullptr) gap(*loss->lane);
        } else if (const auto& jump = std::get<reduce::clock_jump>(item); jump.lane != nullptr) {
            gap(*jump.lane);
        }
    }
    void gap(const reduce::lane_info& lane) {
        open_.gap(lane, [](begun& left) { left.kept.cut_off = true; });
    }

    using pairs = reduce::span_pairs<kept>;
    using begun = pairs::begun;

    void begin(const reduce::record_view& record) {
        kept made{kept_record(record), {record.lane().number, record.position()}, {}, 0, false};
        if (const auto* outer = nesting_.innermost(record.lane())) made.parent = outer->place;
        made.level = nesting_.depth(record.lane());
        nesting_.begin(record.lane(), {made.place});
        open_.begin(record, std::move(made), [this](begun& lost) { leave(lost, "given up"); });
    }
    void end(const reduce::record_view& record) {
        const auto ended = open_.end(record, [this](begun& lost) { leave(lost, "end lost"); });
        if (ended.begun) {
            const kept& of = ended.begun->kept;
            nesting_.end(of.begin.view().lane(), of.place);
            add({now(), of.begin, kept_record(record), of.parent, of.level, "ended"});
        } else {
            add({now(),
                 {},
                 kept_record(record),
                 {},
                 0,
                 ended.not_nested ? "not nested" : "begin lost"});
        }
    }
    /// A span that has no end.
    void leave(const begun& lost, std::string_view state) {
        nesting_.end(lost.kept.begin.view().lane(), lost.kept.place);
        add({now(), lost.kept.begin, {}, lost.kept.parent, lost.kept.level, state});
    }
    void add(row made) {
        const auto name = (made.begin ? made.begin : made.end).view().name();
        if (of_.event.empty() || name == of_.event) done_.push_back(std::move(made));
    }
    void finish() {
        std::vector<const begun*> left;
        open_.for_each_open([&](const begun& each) { left.push_back(&each); });
        std::sort(left.begin(), left.end(), [](const begun* a, const begun* b) {
            return std::pair(a->time, a->kept.place.at) < std::pair(b->time, b->kept.place.at);
        });
        for (const begun* each : left) {
            add({now(),
                 each->kept.begin,
                 {},
                 each->kept.parent,
                 each->kept.level,
                 each->kept.cut_off ? "end lost" : "open"});
        }
        open_ = {};
        nesting_.clear();
        cursor_.reset();
        ++number_;
    }

    [[nodiscard]] traced_file& file() const { return *files_[number_]; }
    [[nodiscard]] const std::shared_ptr<traced_file>& now() const { return files_[number_]; }

    const table_shape& of_;
    std::vector<std::shared_ptr<traced_file>> files_;
    std::vector<reduce::filter> filters_;
    connection& by_;
    std::size_t number_ = 0;  // of the file that is read
    std::optional<reduce::cursor> cursor_;
    pairs open_;
    records::span_nesting<open_span> nesting_;
    std::deque<row> done_;
    record_cells cells_;
    row_cells places_{of_};
};

}  // namespace trace_reduce::sql
