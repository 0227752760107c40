// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads a trace in every way there is, and checks what must hold for any bytes. Also what a fuzzer
/// calls.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <exporter/json_check.hpp>
#include <trace_reduce/unfinished.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_ring_test {

/// What must hold and does not.
struct broken_promise : std::logic_error {
    using std::logic_error::logic_error;
};
inline void must(bool holds, const char* what) {
    if (!holds) throw broken_promise(what);
}

struct read_summary {
    std::uint64_t records = 0;
    std::uint64_t losses = 0;   // items
    std::uint64_t damages = 0;  // of the tables, and met while reading
};

/// Lines of text and JSON made of one item: safe for a terminal, and valid.
class line_check {
public:
    explicit line_check(const trace_ring::reduce::trace_file& file)
        : text_(file.time()), json_(file.time()) {}
    void check(const trace_ring::reduce::item& item) {
        out_.clear();
        text_.append(out_, item);
        must(out_.size() > 1 && out_.view().back() == '\n', "a line of text ends");
        for (const char c : out_.view().substr(0, out_.size() - 1)) {
            must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "no control characters");
        }
        out_.clear();
        json_.append(out_, item);
        must(out_.size() > 1 && out_.view().back() == '\n', "a line of JSON ends");
        must(json_check::valid(out_.view()), "JSON is valid");
    }

private:
    trace_ring::exporter::text_writer text_;
    trace_ring::exporter::json_writer json_;
    trace_ring::exporter::text_buffer out_;
};

/// Reads everything once. The number of items is bounded by the bytes there are.
[[nodiscard]] inline read_summary read_all(const trace_ring::reduce::trace_file& file,
                                           trace_ring::reduce::cursor cursor, std::uint64_t bytes,
                                           bool lines) {
    namespace reduce = trace_ring::reduce;
    read_summary sum;
    line_check check(file);
    std::uint64_t items = 0;
    while (const auto* item = cursor.next()) {
        must(++items <= bytes, "no more items than bytes can hold");  // a packed reference has one
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            ++sum.records;
            if (reduce::is_damage(file.about(), *record)) ++sum.damages;
            std::uint64_t elements = 0;
            record->for_each_field([&](const auto&, const reduce::field_value& value) {
                for (std::size_t i = 0; i < value.size(); ++i) elements += value.at(i).u64() & 1U;
                elements += value.text().size();
            });
            must(elements <= bytes, "fields lie within their record");
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            ++sum.losses;
            if (loss->cause == trace_ring::loss_cause::damaged) {
                ++sum.damages;
                must(!loss->what.empty(), "damage has a cause");
                must(loss->offset < bytes, "damage has a place in the file");
            } else {
                must(loss->count != 0, "a loss is of something");
            }
        }
        if (lines) check.check(*item);
    }
    return sum;
}

/// All of it. Throws broken_promise; a format_error, which is a right answer, is passed on.
inline read_summary read_in_every_way(trace_ring::reduce::trace_file& file, std::uint64_t bytes) {
    namespace reduce = trace_ring::reduce;
    for (const auto& damage : file.damages()) {
        must(!damage.what.empty(), "damage of a table has a cause");
    }
    auto forward = read_all(file, file.forward(), bytes, true);
    const auto backward = read_all(file, file.backward(), bytes, false);
    must(forward.records == backward.records, "as many records backward as forward");
    // Where positions contradict each other, which of them is wrong depends on whence one comes.
    must(forward.losses == backward.losses || forward.damages != 0,
         "as many losses backward as forward");
    const auto statistics = file.statistics();
    must(statistics.records == forward.records, "statistics count what is read");
    must(statistics.seconds(file.time()) >= 0, "the last record is not before the first");
    reduce::filter some;
    some.from = statistics.first_time + (statistics.last_time - statistics.first_time) / 3;
    some.to = statistics.last_time - (statistics.last_time - statistics.first_time) / 3;
    (void)read_all(file, file.forward(some), bytes, false);
    (void)read_all(file, file.backward(some), bytes, false);
    auto follow = file.follow();
    for (int i = 0; i < 3; ++i) {
        while (follow.next() != nullptr) {
        }
    }
    for (const auto& each : trace_reduce::find_unfinished(file.about())) {
        must(each.offset < bytes, "what is unfinished has a place in the file");
    }
    forward.damages += file.damages().size();
    return forward;
}

}  // namespace trace_ring_test
