// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The advice that comes with a loss: each setting in it is tried on the load that lost, on a
// simulated processor, and so is the next one that should not be enough. Whether records are
// missing is counted by the load, not taken from the store.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>
#include <trace_ring/x86/ds/stored_branches.hpp>
#include <trace_ring/x86/loss_advice.hpp>
#include <trace_ring/x86/loss_meter.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_loss_advice)

namespace drain = trace_ring::drain;
namespace storage = trace_ring::storage;
namespace x86 = trace_ring::x86;
using model = trace_ring::record::lp64;
using processor = x86::simulated_cpu<model>;
using store_type = x86::branch_store<model, processor, storage::heap>;
using trace_ring::loss_cause;
using trace_ring::loss_counts;
using x86::loss_advice;
using x86::loss_remedy;

namespace {

constexpr x86::simulated_features drops{.full = x86::when_full::drops,
                                        .round = x86::when_round::at_base};

/// A processor that takes one branch each `period` nanoseconds of a clock that nothing else moves.
struct timed {
    std::uint64_t ticks = 1'000'000;
    std::uint64_t period;
    std::uint64_t taken = 0;
    x86::simulated_memory memory;
    processor cpu;
    store_type store;

    static std::uint64_t now(void* of) noexcept { return *static_cast<std::uint64_t*>(of); }
    x86::branch_store_options with_clock(x86::branch_store_options options, bool clock) {
        if (clock) options.clock = {now, &ticks};
        if (!clock) options.clock.now = nullptr;
        return options;
    }

    explicit timed(const x86::branch_store_options& options, std::uint64_t each = 10,
                   bool clock = true, const x86::simulated_features& features = drops)
        : period(each),
          cpu(memory, features),
          store(cpu, detect(cpu, cpu, x86::processor_mode::ia32e), with_clock(options, clock)) {
        memory.map({store.storage().data(), static_cast<std::size_t>(store.storage().size())});
        store.start();
    }
    /// One branch. True: the interrupt is delivered.
    bool branch() {
        ticks += period;
        ++taken;
        return cpu.branch(taken, taken + 1000).interrupted;
    }
    void branches(std::uint64_t count) {
        for (; count != 0; --count) branch();
    }
};

/// The result of a whole load.
struct outcome {
    std::uint64_t missing = 0;   ///< branches that no service got
    std::uint64_t reported = 0;  ///< records lost, by the services
    std::optional<loss_advice> advice;
};

/// Each interrupt is served so many branches after it is delivered, and the last is polled.
outcome interrupts(std::uint64_t records, std::uint64_t threshold,
                   const std::vector<std::uint64_t>& latencies, std::uint64_t period = 10,
                   bool clock = true) {
    x86::branch_store_options options;
    options.records = records;
    options.threshold = threshold;
    timed m(options, period, clock);
    outcome out;
    std::uint64_t got = 0;
    const auto serve = [&] {
        const auto done = m.store.interrupt([&](const auto&) { ++got; });
        out.reported += done.lost.total();
        if (done.advice) out.advice = done.advice;
        BOOST_TEST((done.lost.total() != 0) == done.advice.has_value());
    };
    for (const std::uint64_t latency : latencies) {
        while (!m.branch()) {
        }
        m.branches(latency);
        serve();
    }
    out.missing = m.taken - got;
    return out;
}

/// A session looks into the buffer after so many branches each.
outcome polled(const x86::branch_store_options& options, const std::vector<std::uint64_t>& counts) {
    timed m(options);
    outcome out;
    std::uint64_t got = 0;
    for (const std::uint64_t count : counts) {
        m.branches(count);
        drain::session session(m.store);
        got += session.service([](const auto&) {}) != 0 ? session.records() : 0;
        out.reported += session.lost().total();
        if (session.lost().total() != 0) out.advice = session.advice();
    }
    out.missing = m.taken - got;
    return out;
}

x86::branch_store_options sized(std::uint64_t records, std::uint64_t threshold = 0,
                                x86::bts_mode mode = x86::bts_mode::interrupt) {
    x86::branch_store_options out;
    out.records = records;
    out.threshold = threshold;
    out.setting.mode = mode;
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_advised_buffer_loses_nothing_under_the_same_load_and_a_smaller_one_does) {
    const std::vector<std::uint64_t> latencies{2, 3, 20, 2};
    const outcome lost = interrupts(16, 8, latencies);
    BOOST_TEST(lost.missing == 12U);  // 28 came, and 16 had room
    BOOST_TEST(lost.reported == 1U);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    const loss_advice& advice = *lost.advice;
    BOOST_TEST((advice.buffer == x86::loss_buffer::branches));
    BOOST_TEST(advice.records == 16U);
    BOOST_TEST(advice.bytes == 16U * 24U);
    BOOST_TEST(advice.threshold == 8U);
    BOOST_TEST((advice.cause == loss_cause::refused));
    BOOST_TEST(!advice.lost_exactly);
    BOOST_TEST(advice.lost == 0U);
    BOOST_TEST(advice.stored == 16U);
    BOOST_TEST(advice.time == 280U);
    BOOST_TEST(records_per_second(advice) == 100'000'000U);
    BOOST_TEST((advice.remedy == loss_remedy::enough));
    BOOST_TEST(advice.needed_bytes == advice.needed_records * 24U);
    BOOST_TEST(advice.needed_threshold == 0U);  // with room for 16, 20 are always too late

    const outcome enough = interrupts(advice.needed_records, 8, latencies);
    BOOST_TEST(enough.missing == 0U);
    BOOST_TEST(enough.reported == 0U);
    // One less is full, which looks like a loss; two less is one.
    BOOST_TEST(interrupts(advice.needed_records - 1, 8, latencies).reported == 1U);
    BOOST_TEST(interrupts(advice.needed_records - 2, 8, latencies).missing == 1U);
}

BOOST_AUTO_TEST_CASE(the_advised_threshold_loses_nothing_in_the_same_buffer_and_a_higher_one_does) {
    const std::vector<std::uint64_t> latencies{2, 20};
    const outcome lost = interrupts(64, 48, latencies);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    const std::uint64_t threshold = lost.advice->needed_threshold;
    BOOST_TEST(threshold == 43U);
    const outcome enough = interrupts(64, threshold, latencies);
    BOOST_TEST(enough.missing == 0U);
    BOOST_TEST(enough.reported == 0U);
    BOOST_TEST(interrupts(64, threshold + 1, latencies).reported == 1U);
    BOOST_TEST(interrupts(64, threshold + 2, latencies).missing == 1U);
}

BOOST_AUTO_TEST_CASE(the_advised_time_between_services_loses_nothing_and_a_longer_one_does) {
    for (const auto mode : {x86::bts_mode::interrupt, x86::bts_mode::circular}) {
        const outcome lost = polled(sized(64, 0, mode), {10, 90});
        BOOST_TEST(lost.missing == 26U);
        BOOST_TEST_REQUIRE(lost.advice.has_value());
        const loss_advice& advice = *lost.advice;
        BOOST_TEST((advice.cause == (mode == x86::bts_mode::circular ? loss_cause::overwritten
                                                                     : loss_cause::refused)));
        const std::uint64_t branches = advice.needed_time / 10;
        BOOST_TEST(polled(sized(64, 0, mode), {10, branches, branches}).reported == 0U);
        BOOST_TEST(polled(sized(64, 0, mode), {10, branches + 1}).reported == 1U);
        // And so does the advised buffer.
        BOOST_TEST(polled(sized(advice.needed_records, 0, mode), {10, 90}).reported == 0U);
        BOOST_TEST(polled(sized(advice.needed_records, 0, mode), {10, 90}).missing == 0U);
        BOOST_TEST(polled(sized(advice.needed_records - 1, 0, mode), {10, 90}).reported == 1U);
    }
}

BOOST_AUTO_TEST_CASE(each_advice_of_random_loads_is_enough_and_the_next_setting_is_not) {
    std::mt19937_64 random(7);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    int thresholds = 0;
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t records = 2 + below(60);
        const std::uint64_t threshold = 1 + below(records - 1);
        const std::uint64_t period = 1 + below(1000);
        std::vector<std::uint64_t> latencies{0};  // as long as nothing is lost the rate is measured
        for (int n = 0; n < 5; ++n) latencies.push_back(below(records - threshold));
        latencies.push_back(records - threshold + below(100));
        const outcome lost = interrupts(records, threshold, latencies, period);
        BOOST_TEST_CONTEXT(records << " records, threshold " << threshold << ", each " << period
                                   << " ns, last " << latencies.back()) {
            BOOST_TEST_REQUIRE(lost.advice.has_value());
            const loss_advice& advice = *lost.advice;
            BOOST_TEST_REQUIRE((advice.remedy == loss_remedy::enough));
            const auto with = [&](std::uint64_t n, std::uint64_t at) {
                return interrupts(n, at, latencies, period);
            };
            const outcome larger = with(advice.needed_records, threshold);
            BOOST_TEST(larger.missing + larger.reported == 0U);
            BOOST_TEST(with(advice.needed_records - 1, threshold).reported == 1U);
            if (advice.needed_threshold == 0) {
                BOOST_TEST(with(records, 1).reported != 0U);
                continue;
            }
            ++thresholds;
            const outcome lower = with(records, advice.needed_threshold);
            BOOST_TEST(lower.missing + lower.reported == 0U);
            BOOST_TEST(with(records, advice.needed_threshold + 1).reported != 0U);
        }
    }
    BOOST_TEST(thresholds > 30);
}

BOOST_AUTO_TEST_CASE(a_rate_that_was_never_measured_is_unknown_and_gives_a_lower_bound) {
    outcome lost = interrupts(16, 8, {20, 20});
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    BOOST_TEST((lost.advice->remedy == loss_remedy::at_least));
    BOOST_TEST(records_per_second(*lost.advice) == 0U);
    BOOST_TEST(lost.advice->needed_records == 17U);
    BOOST_TEST(lost.advice->needed_threshold == 0U);
    BOOST_TEST(lost.advice->needed_time == 0U);
    // It does not stop: each larger buffer is measured again, until one is enough.
    std::uint64_t records = 16;
    while (lost.missing + lost.reported != 0) {
        BOOST_TEST_REQUIRE(lost.advice->needed_records > records);
        records = lost.advice->needed_records;
        lost = interrupts(records, 8, {20, 20});
    }
    BOOST_TEST(records == 29U);
}

BOOST_AUTO_TEST_CASE(a_rate_below_that_of_the_loss_is_no_measure_of_it) {
    timed m(sized(16, 8), 1000);
    m.branches(9);
    static_cast<void>(m.store.interrupt([](const auto&) {}));
    m.period = 10;  // a hundred times faster
    m.branches(30);
    const auto done = m.store.interrupt([](const auto&) {});
    BOOST_TEST_REQUIRE(done.advice.has_value());
    BOOST_TEST((done.advice->remedy == loss_remedy::at_least));
    // A time as fast passes without a loss.
    m.branches(9);
    static_cast<void>(m.store.interrupt([](const auto&) {}));
    m.branches(30);
    const auto again = m.store.interrupt([](const auto&) {});
    BOOST_TEST_REQUIRE(again.advice.has_value());
    BOOST_TEST((again.advice->remedy == loss_remedy::enough));
    BOOST_TEST(again.advice->needed_records == 31U);
}

BOOST_AUTO_TEST_CASE(without_a_clock_the_advice_says_so) {
    const outcome lost = interrupts(16, 8, {2, 20}, 10, false);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    BOOST_TEST(!lost.advice->timed);
    BOOST_TEST(lost.advice->time == 0U);
    BOOST_TEST((lost.advice->remedy == loss_remedy::at_least));
    BOOST_TEST(lost.advice->needed_records == 17U);
    BOOST_TEST(to_string(*lost.advice) ==
               "a branch buffer of 16 records with the threshold at 8: lost an unknown number of "
               "records, possibly none, in an unknown time (no clock). More is needed, at least a "
               "buffer of 17 records; how much is unknown");
}

BOOST_AUTO_TEST_CASE(the_machines_clock_is_used_if_no_other_is_given) {
    const x86::meter_clock clock;
    const auto first = clock.read();
    const auto second = clock.read();
    BOOST_TEST_REQUIRE((first && second));
    BOOST_TEST(*second >= *first);
    BOOST_TEST(*first > 0U);
}

BOOST_AUTO_TEST_CASE(records_that_a_session_has_kept_take_room_from_those_that_follow) {
    timed m(sized(16, 8));
    m.branches(4);
    {
        drain::session session(m.store);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 1U);
        BOOST_TEST(!session.advice().has_value());
    }
    m.branches(20);
    drain::session session(m.store);
    session.service([](const auto&) {});
    BOOST_TEST_REQUIRE(session.advice().has_value());
    BOOST_TEST(session.advice()->before == 4U);
    BOOST_TEST(session.advice()->needed_records == 25U);  // 4, and 20, and one that stays free
}

BOOST_AUTO_TEST_CASE(what_wraps_or_continues_has_a_least_number) {
    for (const auto full : {x86::when_full::wraps, x86::when_full::continues}) {
        timed m(sized(8, 4), 10, true, {.full = full});
        m.branches(5);
        static_cast<void>(m.store.interrupt([](const auto&) {}));
        // Behind the maximum there is memory in this machine.
        std::vector<std::byte> behind(24 * 4);
        m.memory.map(m.store.linear() + storage::control_bytes + 8 * 24, behind);
        m.branches(11);
        drain::session session(m.store);
        session.service([](const auto&) {});
        BOOST_TEST_REQUIRE(session.advice().has_value());
        const loss_advice advice = *session.advice();
        const bool wraps = full == x86::when_full::wraps;
        BOOST_TEST((advice.cause == (wraps ? loss_cause::overwritten : loss_cause::refused)));
        BOOST_TEST(advice.lost == (wraps ? 8U : 3U));
        BOOST_TEST(!advice.lost_exactly);
        BOOST_TEST(advice.needed_records == 12U);
    }
}

BOOST_AUTO_TEST_CASE(the_pebs_buffer_has_an_advice_of_its_own) {
    const auto run = [](std::uint64_t records, std::uint64_t threshold, std::uint64_t second) {
        auto options = sized(4, 3);
        options.pebs_records = records;
        options.pebs_threshold = threshold;
        options.pebs_enable = 1;
        timed m(options);
        static_cast<void>(m.cpu.write(x86::msr::global_ctrl, 1));
        const std::vector<std::byte> bytes(m.cpu.pebs_bytes());
        const auto records_come = [&](std::uint64_t count) {
            for (; count != 0; --count) {
                m.ticks += 50;
                m.cpu.overflow({0}, bytes);
            }
        };
        records_come(3);
        const auto quick = m.store.interrupt([](const auto&) {});
        BOOST_TEST(!quick.pebs_advice.has_value());
        records_come(second);
        auto done = m.store.interrupt([](const auto&) {});
        BOOST_TEST(!done.advice.has_value());
        BOOST_TEST((done.lost.total() != 0) == done.pebs_advice.has_value());
        return done;
    };
    const auto lost = run(5, 3, 9);
    BOOST_TEST_REQUIRE(lost.pebs_advice.has_value());
    BOOST_TEST((lost.pebs_advice->buffer == x86::loss_buffer::pebs));
    BOOST_TEST((lost.pebs_advice->remedy == loss_remedy::enough));
    const std::uint64_t needed = lost.pebs_advice->needed_records;
    BOOST_TEST(run(needed, 3, 9).lost.total() == 0U);
    BOOST_TEST(run(needed, 3, 9).pebs_records == 9U);
    BOOST_TEST(run(needed - 1, 3, 9).lost.total() == 1U);
}

BOOST_AUTO_TEST_CASE(a_gap_in_stored_branches_has_an_unknown_length_and_the_advice) {
    timed m(sized(16, 8));
    x86::stored_branches source(m.store);
    std::vector<x86::branch_gap> gaps;
    const auto read = [&] {
        source.read(x86::visiting{[](const x86::branch&) {},
                                  [&](const x86::branch_gap& gap) { gaps.push_back(gap); }});
    };
    m.branches(10);
    read();
    BOOST_TEST(gaps.empty());
    m.branches(28);
    read();
    BOOST_TEST_REQUIRE(gaps.size() == 1U);
    BOOST_TEST(gaps[0].count == 0U);
    BOOST_TEST_REQUIRE(gaps[0].advice.has_value());
    BOOST_TEST(gaps[0].advice->needed_records == 29U);
    BOOST_TEST((gaps[0].advice == m.store.advice()));
    BOOST_TEST(source.lost().total() == 1U);
    m.branches(5);
    read();
    BOOST_TEST(gaps.size() == 1U);
    m.store.end();
    m.store.start();
    BOOST_TEST(!m.store.advice().has_value());
}

BOOST_AUTO_TEST_CASE(the_time_in_which_a_store_is_ended_does_not_count) {
    timed m(sized(16, 8));
    m.branches(10);
    m.store.end();
    m.ticks += 1'000'000;
    drain::session(m.store).finish([](const auto&) {});
    m.store.start();
    m.branches(28);
    const auto done = m.store.interrupt([](const auto&) {});
    BOOST_TEST_REQUIRE(done.advice.has_value());
    BOOST_TEST(records_per_second(*done.advice) == 100'000'000U);
    BOOST_TEST(done.advice->needed_records == 29U);
}

BOOST_AUTO_TEST_CASE(an_advice_reads_as_a_sentence) {
    BOOST_TEST(to_string(*interrupts(16, 8, {2, 20}).advice) ==
               "a branch buffer of 16 records with the threshold at 8: lost an unknown number of "
               "records, possibly none, in 280 ns at 100000000 records a second. Enough is: a "
               "buffer of 29 records with the same threshold; or a service every 150 ns");
    BOOST_TEST(
        to_string(*interrupts(64, 48, {2, 20}).advice) ==
        "a branch buffer of 64 records with the threshold at 48: lost an unknown number of "
        "records, possibly none, in 680 ns at 100000000 records a second. Enough is: a "
        "buffer of 69 records with the same threshold; or, if an interrupt calls the reader, "
        "the threshold at 43; or a service every 630 ns");
    BOOST_TEST(to_string(*interrupts(16, 8, {20}).advice) ==
               "a branch buffer of 16 records with the threshold at 8: lost an unknown number of "
               "records, possibly none, in 280 ns at an unknown rate, at least 57142857 records a "
               "second. More is needed, at least a buffer of 17 records; how much is unknown until "
               "a time as fast passes without a loss: measure with a much larger one");
    BOOST_TEST(
        to_string(*polled(sized(64, 0, x86::bts_mode::circular), {10, 90}).advice) ==
        "a branch buffer of 64 records: lost an unknown number of records, possibly none, in "
        "900 ns at 100000000 records a second. Enough is: a buffer of 91 records; or a "
        "service every 630 ns");
    loss_advice exactly;
    exactly.records = 10;
    exactly.threshold = 10;
    exactly.lost = 3;
    exactly.lost_exactly = true;
    exactly.remedy = loss_remedy::enough;
    exactly.needed_records = 13;
    BOOST_TEST(to_string(exactly) ==
               "a branch buffer of 10 records with the threshold at 10: lost 3 records. Enough is: "
               "a buffer of 13 records with the same threshold");
}

#if defined(__SIZEOF_INT128__)
BOOST_AUTO_TEST_CASE(the_product_of_two_numbers_over_a_third_is_exact_or_the_largest_number) {
    __extension__ using wide = unsigned __int128;
    std::mt19937_64 random(3);
    constexpr std::uint64_t largest = ~std::uint64_t{0};
    const auto any = [&] { return random() >> random() % 64; };
    for (int n = 0; n < 200'000; ++n) {
        const std::uint64_t a = any(), b = any(), c = any();
        for (const bool up : {false, true}) {
            const wide product = wide{a} * b;
            const wide exact = c == 0 ? wide{largest} : (product + (up ? c - 1 : 0)) / c;
            const auto expected = static_cast<std::uint64_t>(exact > largest ? largest : exact);
            BOOST_REQUIRE_EQUAL(x86::impl::times_over(a, b, c, up), expected);
        }
    }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
