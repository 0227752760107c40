// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Which end belongs to which begin, by what is in a file, sound or not.

#include <cstdint>
#include <string>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(span_pairs)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;

namespace {

constexpr std::uint32_t begin = trace_ring::record_word::begin;
constexpr std::uint32_t end = trace_ring::record_word::end;

struct spans {
    file_builder b;
    const event_spec& outer = b.event({1, "outer", {{"id"}}, event_kind::span});
    const event_spec& inner = b.event({2, "inner", {{"id"}}, event_kind::span});
    std::uint32_t process = b.process(1200);
    std::uint32_t first = b.lane(process, 11, "first");
    std::uint32_t second = b.lane(process, 12, "second");

    spans() {
        b.open(first, 1);
        b.open(second, 1);
    }
    void begins(std::uint32_t lane, std::uint64_t at, const event_spec& of, int id) {
        b.record(lane, at, of, {id}, begin);
    }
    void ends(std::uint32_t lane, std::uint64_t at, const event_spec& of) {
        b.raw_record(lane, at, of.id, {}, end);
    }
    /// Of each end the id and the length; `-` before what has lost its end, `?` for an end without
    /// its begin, `!` where that is because spans did not nest.
    [[nodiscard]] std::string told() const {
        const auto file = reduce::trace_file::from(b.bytes());
        std::string out;
        reduce::span_pairs<std::uint64_t> pairs;
        const auto lost = [&](const auto& each) { out += '-' + std::to_string(each.kept) + ' '; };
        for (auto all = file.forward(); const auto* item = all.next();) {
            if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                if (loss->lane != nullptr && was_written(loss->cause)) pairs.gap(*loss->lane, lost);
                continue;
            }
            const auto& record = std::get<reduce::record_view>(*item);
            if (record.begins()) pairs.begin(record, record.field(0).u64(), lost);
            if (!record.ends()) continue;
            const auto found = pairs.end(record, lost);
            out += found.begun ? std::to_string(found.begun->kept) + ':' +
                                     std::to_string(record.time() - found.begun->time) + ' '
                   : found.not_nested ? "! "
                                      : "? ";
        }
        pairs.for_each_open(lost);
        return out;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(ends_say_what_they_end_or_end_the_last) {
    spans s;
    s.begins(s.first, 10, s.outer, 1);
    s.begins(s.first, 20, s.outer, 2);
    s.b.end_of(s.first, 30, s.outer, s.first, 0);
    s.begins(s.first, 40, s.inner, 3);
    s.ends(s.first, 50, s.inner);
    s.ends(s.first, 120, s.outer);
    s.begins(s.second, 121, s.outer, 4);
    s.b.end_of(s.first, 130, s.outer, s.second, 0);
    BOOST_TEST(s.told() == "1:20 3:10 2:100 4:9 ");
    const auto file = reduce::trace_file::from(s.b.bytes());
    const auto places = reduce::begun_elsewhere(file.about());
    BOOST_TEST((places == reduce::span_places{{s.first, 0}, {s.second, 0}}));
}

BOOST_AUTO_TEST_CASE(what_another_has_ended_is_not_the_last_that_is_open) {
    spans s;
    s.begins(s.first, 10, s.outer, 1);
    s.begins(s.first, 20, s.outer, 2);
    s.b.end_of(s.second, 30, s.outer, s.first, 1);  // by a child of a fork
    s.ends(s.first, 40, s.outer);                   // and by its parent
    s.ends(s.first, 50, s.outer);
    BOOST_TEST(s.told() == "2:10 ? 1:40 ");
}

BOOST_AUTO_TEST_CASE(over_what_is_missing_only_an_end_that_says_so_finds_its_begin) {
    spans s;
    s.begins(s.first, 10, s.outer, 1);
    s.begins(s.first, 20, s.outer, 2);
    s.b.close(s.first, 25);
    const auto lost = s.b.open(s.first, 30);
    s.ends(s.first, 31, s.outer);
    s.b.open(s.first, 40);
    s.b.wipe(lost);
    s.ends(s.first, 41, s.outer);
    s.b.end_of(s.second, 50, s.outer, s.first, 0);
    BOOST_TEST(s.told() == "-2 -1 ? 1:40 -2 ");
}

BOOST_AUTO_TEST_CASE(a_lost_end_costs_its_own_span_and_no_other) {
    spans s;
    s.begins(s.first, 10, s.outer, 1);
    s.begins(s.first, 20, s.inner, 2);
    s.ends(s.first, 30, s.outer);
    s.ends(s.first, 40, s.outer);
    BOOST_TEST(s.told() == "-2 1:20 ? ");
}

BOOST_AUTO_TEST_CASE(in_files_whose_ends_say_nothing_it_is_said_that_spans_did_not_nest) {
    spans s;
    s.b.put(offsetof(layout::file_header, version), 1, 4);
    s.begins(s.first, 10, s.outer, 1);
    s.begins(s.first, 20, s.inner, 2);
    s.ends(s.first, 30, s.outer);
    s.ends(s.first, 40, s.inner);
    BOOST_TEST(s.told() == "-2 1:20 ! ");
}

BOOST_AUTO_TEST_CASE(ends_that_say_what_cannot_be_end_nothing) {
    spans s;
    s.begins(s.first, 10, s.outer, 1);
    s.b.end_of(s.first, 20, s.inner, s.first, 0);                           // of another event
    s.b.end_of(s.first, 21, s.outer, s.first, 7);                           // of no record
    s.b.end_of(s.first, 22, s.outer, 99, 0);                                // of no lane
    s.b.end_of(s.first, 23, s.outer, s.first, ~std::uint64_t{0});           // of nothing
    s.b.raw_record(s.first, 24, s.outer.id, {1}, begin | end);              // too short
    s.b.raw_record(s.first, 25, s.outer.id, {1, s.first, 3}, begin | end);  // too long
    BOOST_TEST(s.told() == "? ? ? ? ? ? -1 ");
    const auto file = reduce::trace_file::from(s.b.bytes());
    BOOST_TEST(file.statistics().faulty == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_open_is_bounded_however_many_begin) {
    file_builder b({.sub_buffer_bytes = 32768, .sub_buffers = 4});
    const auto& event = b.event({1, "work", {}, event_kind::span});
    const auto lane = b.lane(b.process(1), 2);
    b.open(lane, 1);
    b.record(lane, 1, event, {}, begin);
    const auto file = reduce::trace_file::from(b.bytes());
    auto all = file.forward();
    const auto record = std::get<reduce::record_view>(*all.next());
    // The same record at other positions: as a cursor gives them.
    reduce::span_pairs<int> pairs;
    std::size_t given_up = 0;
    const std::uint64_t word = std::uint64_t{1} << 32 | std::uint64_t{begin} << 60;
    const std::uint64_t words[] = {word};
    const reduce::record_view::kind kind{&record.lane(), &record.type(), 0, 0, 0, words};
    constexpr std::size_t more = 1000;
    for (std::size_t i = 0; i < pairs.most + more; ++i) {
        pairs.begin({kind, words, i}, 0, [&](const auto&) { ++given_up; });
    }
    BOOST_TEST(given_up == more);
    std::size_t open = 0;
    pairs.for_each_open([&](const auto&) { ++open; });
    BOOST_TEST(open == pairs.most);
}

BOOST_AUTO_TEST_SUITE_END()
