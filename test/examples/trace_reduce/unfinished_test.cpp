// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Records that were begun and not committed: what a reader finds of them, and what it does not say
/// for certain.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_reduce/unfinished.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(unfinished)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;

namespace {

constexpr std::uint64_t commit_at = 48;
constexpr std::uint64_t end_time_at = 40;
constexpr std::uint64_t slots = 16;

/// A trace of one lane, which has committed three records in the sub-buffer at `position`.
struct killed {
    file_builder file;
    std::uint32_t process = file.process(1200);
    const event_spec& tick = file.event({1, "tick", {{"n"}}});
    const event_spec& say = file.event(
        {2,
         "say",
         {{"text", trace_ring::field_type::character, trace_ring::field_form::variable}}});
    std::uint32_t lane = file.lane(process, 1234);
    std::uint64_t at = 0;

    explicit killed(std::uint64_t first = 1, std::uint64_t time = 1000) {
        file.open(lane, time, first);
        for (std::uint64_t i = 0; i < 3; ++i) file.record(lane, ++time, tick, {i});
        at = file.slot_at(first);
    }
    /// The first byte that is not committed.
    [[nodiscard]] std::uint64_t end() const {
        return at + ((file.get(at + commit_at, 2) + 0x8008) & 0xFFFF);
    }
    /// The head of a record behind the last; `words` with it.
    void begin(std::uint32_t time, std::uint32_t id, std::uint32_t words, std::uint32_t flags = 0) {
        file.put(end(), time, 4);
        file.put(end() + 4, id | words << 16 | flags << 28, 4);
    }
    [[nodiscard]] std::vector<trace_reduce::unfinished_record> unfinished() const {
        return trace_reduce::find_unfinished(reduce::trace_file::from(file.bytes()).about());
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(where_nothing_lies_behind_the_records_nothing_was_begun) {
    BOOST_TEST(killed().unfinished().empty());
    BOOST_TEST(killed(slots + 1).unfinished().empty());  // or it was zero, which is no header
}

BOOST_AUTO_TEST_CASE(a_record_is_named_from_its_first_byte_on) {
    killed k;
    k.file.put(k.end(), 1010, 4);
    const auto trace = reduce::trace_file::from(k.file.bytes());
    auto found = trace_reduce::find_unfinished(trace.about());
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].certain);
    BOOST_TEST(found[0].lane == &trace.lanes()[0]);
    BOOST_TEST(found[0].at == 3U);
    BOOST_TEST(found[0].offset == k.end());
    BOOST_TEST(found[0].type == nullptr);

    k.begin(1010, 1, 2);
    found = trace_reduce::find_unfinished(trace.about());
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_REQUIRE(found[0].type != nullptr);
    BOOST_TEST(found[0].type->name == "tick");
    BOOST_TEST(found[0].time == 1010U);

    // However its words come to be there.
    killed last;
    last.file.put(last.at + 511, 1, 1);
    found = last.unfinished();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].certain);
    BOOST_TEST(found[0].type == nullptr);
}

BOOST_AUTO_TEST_CASE(it_counts_from_its_commit_on) {
    killed k;
    k.begin(1010, 1, 2);
    k.file.put(k.at + commit_at, k.file.get(k.at + commit_at, 4) + (1U << 16) + 16, 4);
    BOOST_TEST(k.unfinished().empty());
    BOOST_TEST(reduce::trace_file::from(k.file.bytes()).statistics().records == 4U);
}

BOOST_AUTO_TEST_CASE(a_sub_buffer_that_was_closed_has_none_but_one_taken_from_the_dead_may) {
    killed k;
    k.begin(1010, 1, 2);
    k.file.close(k.lane, 2000);
    BOOST_TEST(k.unfinished().empty());
    k.file.put(k.at + end_time_at, 0, 8);
    BOOST_TEST(k.unfinished().size() == 1U);
    // Without a clock every end is at 0.
    k.file.put(offsetof(trace_ring::layout::file_header, clock), 0, 4);
    BOOST_TEST(k.unfinished().empty());
}

BOOST_AUTO_TEST_CASE(what_may_be_older_is_not_certain) {
    killed k(slots + 1);
    k.begin(900, 1, 2);  // before the sub-buffer was begun
    auto found = k.unfinished();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(!found[0].certain);
    BOOST_TEST(found[0].type == nullptr);
    BOOST_TEST(found[0].at == 3U);
    k.begin(1002, 1, 2);  // after that, but before the last record
    BOOST_TEST(k.unfinished()[0].type == nullptr);
    k.begin(1003, 1, 2);
    found = k.unfinished();
    BOOST_TEST(!found[0].certain);
    BOOST_REQUIRE(found[0].type != nullptr);
    BOOST_TEST(found[0].time == 1003U);
}

BOOST_AUTO_TEST_CASE(what_is_no_head_of_a_record_is_not_taken_for_one) {
    killed k;
    const auto type = [&](std::uint32_t id, std::uint32_t words, std::uint32_t flags = 0) {
        k.begin(1010, id, words, flags);
        const auto trace = reduce::trace_file::from(k.file.bytes());
        const auto found = trace_reduce::find_unfinished(trace.about());
        BOOST_REQUIRE(found.size() == 1U);
        BOOST_TEST(found[0].certain);
        return found[0].type == nullptr ? std::string() : found[0].type->name;
    };
    BOOST_TEST(type(1, 2) == "tick");
    BOOST_TEST(type(1, 1).empty());
    BOOST_TEST(type(1, 3).empty());
    BOOST_TEST(type(1, 1, trace_ring::record_word::end) == "tick");
    BOOST_TEST(type(2, 2) == "say");
    BOOST_TEST(type(2, 40) == "say");
    BOOST_TEST(type(2, 1).empty());
    BOOST_TEST(type(2, 4095).empty());  // beyond the sub-buffer
    BOOST_TEST(type(3, 2).empty());
    BOOST_TEST(type(0, 2).empty());  // a time record
}

BOOST_AUTO_TEST_CASE(the_time_of_a_record_is_by_what_was_announced_last) {
    killed k;
    constexpr std::uint64_t high = std::uint64_t{5} << 32;
    k.file.record(k.lane, high + 7, k.tick, {3});
    k.begin(8, 1, 2);
    auto found = k.unfinished();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_REQUIRE(found[0].type != nullptr);
    BOOST_TEST(found[0].time == high + 8);
    BOOST_TEST(found[0].at == 4U);
    k.begin(6, 1, 2);
    BOOST_TEST(k.unfinished()[0].type == nullptr);
}

BOOST_AUTO_TEST_CASE(a_file_tells_the_same_and_one_cut_short_nothing) {
    killed k;
    k.begin(1010, 1, 2);
    const scratch_file file;
    k.file.save(file.path());
    BOOST_TEST(
        trace_reduce::find_unfinished(reduce::trace_file::open(file.path()).about()).size() == 1U);
    k.file.save(file.path(), static_cast<std::size_t>(k.end() + 8));
    BOOST_TEST(
        trace_reduce::find_unfinished(reduce::trace_file::open(file.path()).about()).empty());
}

BOOST_AUTO_TEST_CASE(of_a_lane_that_is_not_listed_the_place_is_told) {
    killed k;
    k.begin(1010, 1, 2);
    k.file.put(k.file.lane_at(k.lane), 0, 4);  // its number
    const auto found = k.unfinished();
    BOOST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].lane == nullptr);
    BOOST_TEST(found[0].offset == k.end());
}

BOOST_AUTO_TEST_SUITE_END()
