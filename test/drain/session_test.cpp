// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Sessions over drainables of the test's own: what the concept asks, and no more.

#include <cstdint>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

#include <drain/foreign.hpp>

BOOST_AUTO_TEST_SUITE(drain_session)

namespace drain = trace_ring::drain;
using foreign::shelf;
using foreign::store;
using trace_ring::loss_cause;

namespace {

// --- Requirements ------------------------------------------------------------------------------
static_assert(drain::drainable_while_open<trace_ring::drain_source>);
static_assert(!drain::drainable<trace_ring::recorder> &&
              drain::leads_to_drainable<trace_ring::recorder>);
static_assert(drain::handed_over<trace_ring::drained_sub_buffer>);
static_assert(!std::is_copy_constructible_v<drain::session<shelf&>> &&
              !std::is_move_constructible_v<drain::session<shelf&>>);

struct without_rest : shelf {
    void rest() = delete;
};
struct that_throws_when_giving_back : shelf {
    void keep(foreign::run&) {}
};
struct without_lost {
    [[nodiscard]] static std::span<const std::byte> bytes() { return {}; }
    [[nodiscard]] static int records() { return 0; }
};
struct hands_over_less : shelf {
    using portion = without_lost;
};
static_assert(!drain::drainable<without_rest>);
static_assert(!drain::drainable<that_throws_when_giving_back>);
static_assert(!drain::handed_over<without_lost> && !drain::drainable<hands_over_less>);
static_assert(!drain::drainable<int> && !drain::leads_to_drainable<int>);

using numbers = std::vector<std::uint64_t>;

shelf filled(std::uint64_t from, std::uint64_t to, std::size_t size = 100) {
    shelf made(size);
    for (std::uint64_t n = from; n < to; ++n) made.write(n);
    return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_record_is_visited_once_and_in_order) {
    shelf from = filled(0, 10);
    drain::session session(from);
    numbers seen;
    const auto see = [&](std::uint64_t n) { seen.push_back(n); };
    BOOST_TEST(session.for_each_record(see) == 10U);
    BOOST_TEST(session.for_each_record(see) == 0U);
    from.write(10);
    BOOST_TEST(session.for_each_record(see) == 1U);
    BOOST_TEST(seen == (numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    BOOST_TEST(session.records() == 11U);
    BOOST_TEST(from.consumed == 5);  // of three, three, three, one and one
    BOOST_TEST(from.kept == 0);
}

BOOST_AUTO_TEST_CASE(portions_lie_where_they_were_written) {
    shelf from = filled(5, 8);
    drain::session session(from);
    std::uint64_t sum = 0;
    BOOST_TEST(session.for_each([&](const foreign::run& portion) {
        const auto bytes = portion.bytes();
        BOOST_TEST(bytes.size() == 24U);
        const auto* const words = reinterpret_cast<const std::uint64_t*>(bytes.data());
        for (std::size_t i = 0; i < 3; ++i) sum += words[i];
    }) == 1U);
    BOOST_TEST(sum == 18U);
}

BOOST_AUTO_TEST_CASE(a_look_consumes_nothing) {
    shelf from = filled(0, 10);
    drain::session session(from);
    BOOST_TEST(session.peek_each([](const foreign::run&) {}) == 4U);
    BOOST_TEST(from.kept == 4);
    BOOST_TEST(from.consumed == 0);
}

BOOST_AUTO_TEST_CASE(a_second_session_is_refused_until_the_first_has_ended) {
    shelf from = filled(0, 3);
    {
        drain::session session(from);
        BOOST_CHECK_THROW(drain::session another(from), std::system_error);
    }
    BOOST_CHECK_NO_THROW(drain::session another(from));
}

BOOST_AUTO_TEST_CASE(what_a_visitor_throws_goes_through_and_its_portion_is_kept) {
    shelf from = filled(0, 9);
    drain::session session(from);
    int calls = 0;
    BOOST_CHECK_THROW(session.for_each([&](const foreign::run&) {
        if (++calls == 2) throw std::runtime_error("enough");
    }),
                      std::runtime_error);
    BOOST_TEST(from.consumed == 1);
    BOOST_TEST(from.kept == 1);
    BOOST_TEST(session.for_each([](const foreign::run&) {}) == 1U);
}

BOOST_AUTO_TEST_CASE(several_portions_can_be_held_and_each_given_back_in_its_own_way) {
    shelf from = filled(0, 9);
    drain::session session(from);
    {
        auto first = session.take();
        auto second = session.take();
        auto third = session.take();
        BOOST_REQUIRE((first && second && third));
        BOOST_TEST(!session.take());
        BOOST_TEST((*second)->numbers[0] == 3U);
        second->consume();
        second->keep();            // given back already
        third = std::move(first);  // the third is kept with that
        BOOST_TEST(from.kept == 1);
        BOOST_TEST((**third).numbers[0] == 0U);
    }
    BOOST_TEST(from.consumed == 1);
    BOOST_TEST(from.kept == 2);
    BOOST_TEST(session.records() == 9U);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_counts_as_damaged) {
    shelf from = filled(0, 4);
    from.write(shelf::unreadable);
    from.write(6);
    drain::session session(from);
    numbers seen;
    BOOST_TEST(session.for_each_record([&](std::uint64_t n) { seen.push_back(n); }) == 4U);
    BOOST_TEST(seen == (numbers{0, 1, 2, 3}));
    BOOST_TEST(session.lost()[loss_cause::damaged] == 2U);
    BOOST_TEST(session.records() == 4U);
}

BOOST_AUTO_TEST_CASE(losses_behind_the_last_portion_are_told_at_the_end_and_once) {
    shelf from = filled(0, 10, 4);
    drain::session session(from);
    const auto nothing = [](std::uint64_t) {};
    BOOST_TEST(session.for_each_record(nothing) == 4U);
    BOOST_TEST(session.lost().total() == 0U);
    BOOST_TEST(session.finish_records(nothing) == 0U);
    BOOST_TEST(session.lost()[loss_cause::refused] == 6U);
    session.finish_records(nothing);
    BOOST_TEST(session.lost().total() == 6U);
}

BOOST_AUTO_TEST_CASE(the_service_routine_takes_its_steps_in_order_and_restores_what_was_set) {
    for (const bool enabled : {true, false}) {
        store from(8);
        from.enabled = true;
        for (std::uint64_t n = 0; n < 10; ++n) from.write(n);
        from.enabled = enabled;
        drain::session session(from);
        unsigned causes = 0;
        std::size_t seen = 0;
        BOOST_TEST(session.service(
                       [&](const foreign::run& portion) {
                           BOOST_TEST(!from.enabled);
                           from.write(99);  // stopped: no part of it
                           seen += portion.numbers.size();
                       },
                       [&](unsigned found) { causes = found; }) == 1U);
        BOOST_TEST(seen == 8U);
        BOOST_TEST(causes == (store::threshold | store::full));
        BOOST_TEST(session.lost()[loss_cause::refused] == 2U);
        BOOST_TEST(from.enabled == enabled);
        BOOST_TEST(from.armed);
        const std::vector<int> expected{store::stopped,    store::asked,       store::taken,
                                        store::given_back, store::armed_again, store::restored};
        BOOST_TEST(from.steps == expected);
        BOOST_TEST(session.service([](const foreign::run&) {}) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(writers_are_restored_though_the_visitor_throws) {
    store from(8);
    from.enabled = true;
    from.write(1);
    drain::session session(from);
    BOOST_CHECK_THROW(session.service([](const foreign::run&) { throw std::runtime_error("no"); }),
                      std::runtime_error);
    BOOST_TEST(from.enabled);
    BOOST_TEST(session.service([](const foreign::run&) {}) == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
