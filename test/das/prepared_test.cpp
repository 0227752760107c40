// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// DAS tracing in two steps: preparing stores nothing, committing stores once or not at all, and
// both together are what `trace` does.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "das/storage.hpp"

BOOST_AUTO_TEST_SUITE(das_prepared)

using namespace das_test;

namespace {

std::vector<std::byte> all_bytes(guest& g) {
    const auto bytes = g.bytes();
    return {bytes.begin(), bytes.end()};
}

struct refusal {
    const char* name;
    guest_region at;
    std::uint32_t designation, current, first;
    trace_result expected;
};

// clang-format off
const refusal refusals[] = {
    {"word 84", {84, 4, region::no_page}, open_at_header, 0x10000, 0x10000,
     trace_result::failed(program_exception::page_translation, 84)},
    {"bits 29-31", {}, open_at_header | 4, 0x10000, 0x10000,
     trace_result::failed(program_exception::specification, 84)},
    {"first doubleword", {header + 4, 4, region::segment_protected}, open_at_header, 0x10000, 0x10000,
     trace_result::failed(program_exception::protection, header)},
    {"third word", {header + 8, 4, region::no_segment}, open_at_header, 0x10000, 0x10000,
     trace_result::failed(program_exception::segment_translation, header + 8)},
    {"boundary", {}, open_at_header, 0x10008, 0x10000,
     trace_result::failed(program_exception::specification, 0x10028)},
    {"boundary after the wrap", {}, open_at_header, 0x10040, 0x10010,
     trace_result::failed(program_exception::specification, 0x10010)},
    {"entry", {0x10020, 32, region::segment_protected}, open_at_header, 0x10000, 0x10000,
     trace_result::failed(program_exception::protection, 0x10020)},
    {"entry beyond storage", {}, open_at_header, 0x0001FFE0 + 0x20, 0x10000,
     trace_result::failed(program_exception::addressing, 0x20020)},
};
// clang-format on

}  // namespace

BOOST_AUTO_TEST_CASE(prepare_tests_and_fetches_in_the_machines_order_and_stores_nothing) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    const auto before = all_bytes(g);
    watched_memory memory{g.memory()};
    const auto prepared = das::prepare(memory);
    BOOST_TEST(!prepared.failed());
    BOOST_TEST((prepared.expected() == trace_result::at(0x00010020)));
    const std::vector<std::string> expected{
        "serialize",           "test fetch 000054+4", "fetch 000054+4",
        "test store 020008+8", "test fetch 020010+4", "fetch 020008+4",
        "fetch 02000C+4",      "fetch 020010+4",      "test store 010020+32"};
    BOOST_TEST(memory.asked == expected, boost::test_tools::per_element());
    BOOST_TEST((all_bytes(g) == before));
}

BOOST_AUTO_TEST_CASE(commit_swaps_stores_and_serializes_and_tests_nothing_again) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    watched_memory memory{g.memory()};
    const auto prepared = das::prepare(memory);
    memory.asked.clear();
    BOOST_TEST((das::commit(memory, prepared, numbered(7)) == trace_result::at(0x00010020)));
    const std::vector<std::string> expected{"swap 020008+4", "store 010020+32", "serialize"};
    BOOST_TEST(memory.asked == expected, boost::test_tools::per_element());
    BOOST_TEST(g.current() == 0x00010020U);
    BOOST_TEST((g.entry(0x00010020) == numbered(7)));
}

BOOST_AUTO_TEST_CASE(a_trace_in_one_step_asks_for_the_same_as_the_two_steps) {
    // With a retry among them, and with an exception in it.
    for (const std::uint32_t others_current : {0x00010020U, 0x00010004U, 0x00010000U}) {
        std::vector<std::string> asked[2];
        trace_result results[2];
        for (const bool at_once : {true, false}) {
            guest g;
            g.controls(0x00010000, 0x00010000, 0x00010060);
            watched_memory memory{g.memory()};
            memory.before_swap = [&](unsigned attempt) {
                if (attempt == 1) g.put(header, others_current);
            };
            if (at_once) {
                results[0] = das::trace(memory, numbered(1));
            } else {
                const auto prepared = das::prepare(memory);
                results[1] = das::commit(memory, prepared, numbered(1));
            }
            asked[at_once ? 0 : 1] = memory.asked;
        }
        BOOST_TEST((results[0] == results[1]));
        BOOST_TEST(asked[0] == asked[1], boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(each_exception_is_met_by_prepare_and_a_commit_of_it_asks_for_nothing) {
    for (const auto& each : refusals) {
        BOOST_TEST_CONTEXT(each.name) {
            guest g;
            g.controls(each.current, each.first,
                       std::string(each.name) == "entry beyond storage" ? 0x00030000 : 0x00010060,
                       each.designation);
            const auto before = all_bytes(g);
            watched_memory memory{g.memory({&each.at, 1})};
            const auto prepared = das::prepare(memory);
            BOOST_TEST(prepared.failed());
            BOOST_TEST((prepared.expected() == each.expected));
            memory.asked.clear();
            BOOST_TEST((das::commit(memory, prepared, numbered(1)) == each.expected));
            BOOST_TEST(memory.asked.empty());
            BOOST_TEST((all_bytes(g) == before));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_closed_gate_is_decided_once_when_the_trace_is_prepared) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060, header);
    auto memory = g.memory();
    const auto prepared = das::prepare(memory);
    BOOST_TEST(!prepared.failed());
    BOOST_TEST((prepared.expected() == trace_result::closed()));
    g.put(das::designation_location, open_at_header);
    const auto before = all_bytes(g);
    BOOST_TEST((das::commit(memory, prepared, numbered(1)) == trace_result::closed()));
    BOOST_TEST((all_bytes(g) == before));

    const auto open = das::prepare(memory);
    g.put(das::designation_location, header);
    BOOST_TEST((das::commit(memory, open, numbered(1)) == trace_result::at(0x00010020)));
}

BOOST_AUTO_TEST_CASE(an_entry_that_another_processor_took_since_prepare_is_not_used_again) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    auto a = g.memory(), b = g.memory();
    const auto prepared = das::prepare(a);
    BOOST_TEST((das::trace(b, numbered(0xB)) == trace_result::at(0x00010020)));
    BOOST_TEST((prepared.expected() == trace_result::at(0x00010020)));
    BOOST_TEST((das::commit(a, prepared, numbered(0xA)) == trace_result::at(0x00010040)));
    BOOST_TEST((g.entry(0x00010020) == numbered(0xB)));
    BOOST_TEST((g.entry(0x00010040) == numbered(0xA)));
    BOOST_TEST(g.current() == 0x00010040U);
}

BOOST_AUTO_TEST_CASE(an_exception_of_commit_leaves_the_table_as_the_other_processor_made_it) {
    struct change {
        std::uint32_t current;  // by the other processor
        trace_result expected;
    };
    const guest_region last_entry{0x00010040, 32, region::segment_protected};
    const change changes[] = {
        {0x00010020, trace_result::failed(program_exception::protection, 0x00010040)},
        {0x00010004, trace_result::failed(program_exception::specification, 0x00010024)},
    };
    for (const auto& each : changes) {
        guest g;
        g.controls(0x00010000, 0x00010000, 0x00010060);
        auto memory = g.memory({&last_entry, 1});
        const auto prepared = das::prepare(memory);
        BOOST_TEST_REQUIRE(!prepared.failed());
        g.put(header, each.current);
        const auto before = all_bytes(g);
        const auto result = das::commit(memory, prepared, numbered(1));
        BOOST_TEST(result.failed());
        BOOST_TEST((result == each.expected));
        BOOST_TEST((all_bytes(g) == before));
    }
}

BOOST_AUTO_TEST_CASE(whether_commit_sees_bounds_that_changed_is_the_choice_that_was_named) {
    const auto race = [](auto bounds, bool current_too) {
        guest g;
        g.controls(0x00010000, 0x00010000, 0x00010060);
        auto memory = g.memory();
        const auto prepared = das::prepare(memory);
        if (current_too) g.put(header, 0x00010020);
        g.put(header + 4, 0x0000FFC0);
        g.put(header + 8, 0x00010040);
        return das::commit<decltype(bounds)>(memory, prepared, numbered(1));
    };
    BOOST_TEST((race(das::fetch_bounds_once{}, true) == trace_result::at(0x00010040)));
    BOOST_TEST((race(das::fetch_bounds_on_each_try{}, true) == trace_result::at(0x0000FFC0)));
    // Bounds alone do not fail a swap.
    BOOST_TEST((race(das::fetch_bounds_on_each_try{}, false) == trace_result::at(0x00010020)));
}

BOOST_AUTO_TEST_CASE(a_prepared_trace_may_be_dropped_and_prepared_again) {
    guest g;
    g.controls(0x00010000, 0x00010000, 0x00010060);
    const auto before = all_bytes(g);
    auto memory = g.memory();
    for (int i = 0; i < 3; ++i) {
        const auto dropped = das::prepare(memory);
        BOOST_TEST((dropped.expected() == trace_result::at(0x00010020)));
    }
    BOOST_TEST((all_bytes(g) == before));
}

BOOST_AUTO_TEST_SUITE_END()
