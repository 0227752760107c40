// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The tables and the sub-buffers of a trace whose lanes begin while it is looked through.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <reduce/file_builder.hpp>
#include <trace_ring/reduce/file/live_scan.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/tables.hpp>

BOOST_AUTO_TEST_SUITE(looking_while_lanes_begin)

using namespace trace_ring_test;
namespace reduce = trace_ring::reduce;
using trace_ring::position;

namespace {

/// A trace that is written while someone looks through it, as far as a test says.
struct growing {
    file_builder file{
        {.sub_buffer_bytes = 512, .sub_buffers = 1024, .lanes = 256, .dictionary = 4096}};
    std::uint32_t process = file.process(1);
    const event_spec& event = file.event({1, "tick", {{"n"}}});
    std::uint64_t time = 1000;

    /// A closed sub-buffer with one record.
    void write(std::uint32_t lane) {
        file.open(lane, ++time);
        file.record(lane, time, event, {time});
        file.close(lane, ++time);
    }
    std::uint32_t begin() {
        const auto lane = file.lane(process, 100);
        write(lane);
        return lane;
    }
    /// The same in the slot of this position.
    void write(std::uint32_t lane, position at) {
        file.open(lane, ++time, at);
        file.record(lane, time, event, {time});
        file.close(lane, ++time);
    }
    /// Its entry is another lane's by now.
    void forget(std::uint32_t lane) {
        file.put(file.lane_at(lane) + offsetof(layout::lane_entry, number), 0, 4);
    }
};

/// Sub-buffers found of each lane.
std::map<std::uint32_t, std::uint64_t> sizes_of(const reduce::chain_list& found) {
    std::map<std::uint32_t, std::uint64_t> sizes;
    for (const auto& chain : found.chains) sizes[chain.lane] = chain.links.size();
    return sizes;
}

/// Nothing that the tables count is missing: each sub-buffer that is written here has one record.
void expect_agreement(const reduce::tables& tables, const reduce::chain_list& found) {
    auto sizes = sizes_of(found);
    for (const auto& lane : tables.lanes()) {
        if (lane.listed) BOOST_TEST(sizes[lane.number] >= lane.written, "lane " << lane.number);
    }
}

constexpr auto all = [](std::uint32_t, position) { return true; };

}  // namespace

BOOST_AUTO_TEST_CASE(who_begins_and_writes_on_during_a_look_is_found_as_the_tables_have_it) {
    for (const auto where : {reduce::look_at::index, reduce::look_at::headers}) {
        for (const int looks : {1, 2, 3, 4, 5, 100}) {
            growing trace;
            const auto first = trace.begin();
            reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
            reduce::live_scan scan(tables);
            // Once in every pass somebody begins, behind or before where the pass has come, and the
            // first lane continues.
            int passes = 0;
            const auto wanted = [&](std::uint32_t, position at) {
                if (at == 1 && ++passes <= looks) {
                    trace.begin();
                    trace.write(first);
                }
                return true;
            };
            const auto found = scan.look(where, true, wanted);
            expect_agreement(tables, found);
            // Whose records are found is known; who began too late is left to the next look.
            for (const auto& chain : found.chains) {
                BOOST_TEST(tables.find_lane(chain.lane)->listed);
            }
            BOOST_TEST(passes >= 2);
            const auto rest = scan.look(where, false, all);
            expect_agreement(tables, rest);
            BOOST_TEST(sizes_of(rest).size() == tables.lanes().size());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_lane_that_begins_in_the_last_look_is_left_to_the_next) {
    growing trace;
    trace.begin();
    reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
    reduce::live_scan scan(tables);
    std::uint32_t newest = 0;
    const auto found = scan.look(reduce::look_at::index, false, [&](std::uint32_t, position at) {
        if (at == 1) newest = trace.begin();
        return true;
    });
    expect_agreement(tables, found);
    BOOST_TEST(sizes_of(found).count(newest) == 0U);
    BOOST_TEST(!tables.find_lane(newest)->listed);
    const auto next = scan.look(reduce::look_at::index, false, all);
    expect_agreement(tables, next);
    BOOST_TEST(sizes_of(next)[newest] == 1U);
}

BOOST_AUTO_TEST_CASE(no_sub_buffer_is_found_of_which_an_earlier_one_was_missed) {
    for (const bool later : {true, false}) {
        for (const auto where : {reduce::look_at::index, reduce::look_at::headers}) {
            growing trace;
            const auto other = trace.begin();
            const auto first = trace.begin();
            trace.write(other, 10);
            reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
            reduce::live_scan scan(tables);
            std::uint32_t newest = 0;
            // A lane begins in each pass. In the last one, two lanes claim slots that the pass has
            // left behind, then slots that lie ahead. They are empty in the index as it was read,
            // so their headers are looked at.
            position passes = 0;
            const auto found = scan.look(where, later, [&](std::uint32_t, position at) {
                if (at != 10) return true;
                newest = trace.file.lane(trace.process, 100);
                if (++passes == 5) {
                    trace.write(first, 3);
                    trace.write(first, 11);
                    trace.write(newest, 4);
                    trace.write(newest, 12);
                } else {
                    trace.write(newest, 20 + passes);
                }
                return true;
            });
            BOOST_TEST(passes == 5U);
            expect_agreement(tables, found);
            BOOST_TEST(sizes_of(found)[first] == 1U);
            BOOST_TEST(sizes_of(found).count(newest) == 0U);
            auto next = sizes_of(scan.look(where, false, all));
            BOOST_TEST(next[first] == 3U);
            BOOST_TEST(next[newest] == 2U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_lane_that_began_in_the_last_look_and_has_gone_is_found) {
    growing trace;
    trace.begin();
    reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
    reduce::live_scan scan(tables);
    std::uint32_t gone = 0;
    const auto found = scan.look(reduce::look_at::index, false, [&](std::uint32_t, position at) {
        if (at == 1) {
            gone = trace.begin();
            trace.forget(gone);
            trace.begin();
        }
        return true;
    });
    BOOST_TEST(sizes_of(found)[gone] == 1U);
}

BOOST_AUTO_TEST_CASE(sub_buffers_claimed_during_a_look_are_left_to_the_next) {
    for (const auto where : {reduce::look_at::index, reduce::look_at::headers}) {
        growing trace;
        const auto lane = trace.begin();
        reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
        reduce::live_scan scan(tables);
        const auto found = scan.look(where, true, [&](std::uint32_t, position at) {
            if (at == 1) trace.write(lane);
            return true;
        });
        BOOST_TEST(sizes_of(found)[lane] == 1U);
        BOOST_TEST(sizes_of(scan.look(where, false, all))[lane] == 2U);
    }
}

BOOST_AUTO_TEST_CASE(of_a_lane_whose_entry_names_an_older_sub_buffer_all_are_found) {
    for (const auto where : {reduce::look_at::index, reduce::look_at::headers}) {
        growing trace;
        const auto lane = trace.begin();
        for (int i = 0; i < 4; ++i) trace.write(lane);
        trace.file.lane_end(lane, 5, 2);
        reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
        reduce::live_scan scan(tables);
        BOOST_TEST(sizes_of(scan.look(where, true, all))[lane] == 5U);
    }
}

BOOST_AUTO_TEST_CASE(lanes_long_gone_are_found_at_once_and_cost_no_second_look) {
    growing trace;
    const auto gone = trace.begin();
    trace.begin();
    trace.forget(gone);
    reduce::tables tables(reduce::source::from(trace.file.bytes(), "memory"));
    reduce::live_scan scan(tables);
    for (int look = 0; look < 3; ++look) {
        int passes = 0;
        const auto found = scan.look(reduce::look_at::headers, true, [&](auto, position at) {
            passes += at == 1 ? 1 : 0;
            return true;
        });
        BOOST_TEST(passes == 1);
        BOOST_TEST((sizes_of(found) == std::map<std::uint32_t, std::uint64_t>{{1, 1}, {2, 1}}));
        BOOST_TEST(!tables.find_lane(gone)->listed);
    }
}

BOOST_AUTO_TEST_SUITE_END()
