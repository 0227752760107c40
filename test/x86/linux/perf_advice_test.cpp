// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The advice that comes with a gap of an intel_bts event: each setting in it is tried on the load
// that lost, with a kernel's side that gives up as Linux does, and so is a smaller one.

#include <boost/test/unit_test.hpp>

#include <linux/perf_event.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/setup_error.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/perf_bts.hpp>
#include <trace_ring/x86/loss_advice.hpp>

#include <x86/linux/perf_machine.hpp>

BOOST_AUTO_TEST_SUITE(x86_perf_advice)

namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using perf_machine::bts_kernel;
using perf_machine::event;
using perf_machine::page;
using x86::loss_advice;
using x86::loss_remedy;

namespace {

constexpr std::uint64_t kilo = 1024;

/// A traced program with a branch each 10 ns, and its reader.
struct traced {
    struct size {
        std::uint64_t area;
        std::uint64_t watermark;  ///< 0: half
    };

    event e;
    std::uint64_t ticks = 5'000'000;
    std::uint64_t taken = 0;
    std::uint64_t got = 0;
    std::vector<x86::branch_gap> gaps;
    bool woken = false;
    std::uint64_t during_read = 0;  ///< branches while the reader visits sixteen
    x86::perf_bts branches;

    static std::uint64_t now(void* of) noexcept { return *static_cast<std::uint64_t*>(of); }

    explicit traced(size of, bool clock = true)
        : e(false, 16 * page, static_cast<std::size_t>(of.area)),
          branches({.aux_bytes = static_cast<std::size_t>(of.area),
                    .aux_watermark = static_cast<std::uint32_t>(of.watermark),
                    .data_bytes = 16 * page,
                    .clock = clock ? x86::meter_clock{now, &ticks} : x86::meter_clock{nullptr}},
                   e.host()) {
        e.kernel->margin = 4080;
        e.kernel->watermark = of.watermark != 0 ? of.watermark : of.area / 2;
        e.kernel->on_wake = [this] { woken = true; };
        branches.start();
    }
    void branch() {
        ticks += 10;
        ++taken;
        e.kernel->branch({0x1000 + taken, 0x2000 + taken, 0});
    }
    void take(std::uint64_t count) {
        for (; count != 0; --count) branch();
    }
    /// Woken, and reads so many branches later.
    void read_after(std::uint64_t latency) {
        woken = false;
        while (!woken && e.kernel->running()) branch();
        take(latency);
        read();
    }
    void read() {
        branches.read(x86::visiting{[&](const x86::branch&) {
                                        if (++got % 16 == 0) take(during_read);
                                    },
                                    [&](const x86::branch_gap& gap) { gaps.push_back(gap); }});
    }
    [[nodiscard]] std::uint64_t missing() {
        branches.stop();
        during_read = 0;
        read();
        return taken - got;
    }
};

/// The reader is late once; what is missing, and the first advice.
struct outcome {
    std::uint64_t missing = 0;
    std::optional<loss_advice> advice;
};
outcome late_once(traced::size of, std::uint64_t latency, std::uint64_t during_read = 0) {
    traced t(of);
    t.during_read = during_read;
    for (int n = 0; n < 5; ++n) t.read_after(100);
    t.read_after(latency);
    for (int n = 0; n < 3; ++n) t.read_after(100);
    outcome out;
    out.missing = t.missing();
    for (const auto& gap : t.gaps) {
        BOOST_TEST(gap.count == 0U);
        if (!out.advice) out.advice = gap.advice;
    }
    BOOST_TEST((out.missing != 0) == !t.gaps.empty());
    BOOST_TEST(out.advice.has_value() == t.branches.advice().has_value());
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_advised_area_loses_nothing_under_the_same_load_and_half_of_it_does) {
    const traced::size small{64 * kilo, 32 * kilo};
    const outcome lost = late_once(small, 6000);
    BOOST_TEST(lost.missing > 0U);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    const loss_advice& advice = *lost.advice;
    BOOST_TEST((advice.buffer == x86::loss_buffer::aux_area));
    BOOST_TEST(advice.bytes == 64 * kilo);
    BOOST_TEST(advice.records == 64 * kilo / 24);
    BOOST_TEST(advice.threshold == 32 * kilo / 24);
    BOOST_TEST(!advice.lost_exactly);
    BOOST_TEST((advice.remedy == loss_remedy::enough));
    BOOST_TEST(records_per_second(advice) > 95'000'000U);
    BOOST_TEST(records_per_second(advice) < 110'000'000U);
    BOOST_TEST(advice.needed_bytes == 256 * kilo);
    BOOST_TEST(late_once({advice.needed_bytes, 32 * kilo}, 6000).missing == 0U);
    BOOST_TEST(late_once({advice.needed_bytes / 2, 32 * kilo}, 6000).missing != 0U);
}

BOOST_AUTO_TEST_CASE(the_advised_watermark_loses_nothing_in_the_same_area) {
    const outcome lost = late_once({512 * kilo, 0}, 12'000);
    BOOST_TEST(lost.missing > 0U);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    BOOST_TEST(lost.advice->threshold == 256 * kilo / 24);
    const std::uint64_t watermark = lost.advice->needed_threshold * 24;
    BOOST_TEST(watermark > 0U);
    BOOST_TEST(watermark < 256 * kilo);
    BOOST_TEST(late_once({512 * kilo, watermark}, 12'000).missing == 0U);
}

BOOST_AUTO_TEST_CASE(the_advised_time_between_reads_loses_nothing) {
    const outcome lost = late_once({256 * kilo, 0}, 9000);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    const std::uint64_t count = lost.advice->needed_time / 10;
    const auto missing = [](std::uint64_t each) {
        traced t({256 * kilo, 0});
        for (int n = 0; n < 10; ++n) {
            t.take(each);
            t.read();
        }
        return t.missing();
    };
    BOOST_TEST(missing(count) == 0U);
    BOOST_TEST(missing(2 * count) != 0U);
}

BOOST_AUTO_TEST_CASE(branches_that_come_while_the_reader_reads_need_room_as_well) {
    // Sixteen records take as long to read as ten take to come.
    const outcome lost = late_once({128 * kilo, 0}, 2000, 10);
    BOOST_TEST(lost.missing > 0U);
    BOOST_TEST_REQUIRE(lost.advice.has_value());
    BOOST_TEST((lost.advice->remedy == loss_remedy::enough));
    BOOST_TEST(late_once({lost.advice->needed_bytes, 64 * kilo}, 2000, 10).missing == 0U);
}

BOOST_AUTO_TEST_CASE(an_area_that_is_never_large_enough_gives_a_lower_bound) {
    traced::size of{16 * kilo, 8 * kilo};
    std::uint64_t missing = 1;
    for (int n = 0; missing != 0; ++n) {
        BOOST_TEST_REQUIRE(n < 10);
        traced t(of);
        for (int reads = 0; reads < 4; ++reads) {
            t.take(10'000);
            t.read();
        }
        missing = t.missing();
        if (missing == 0) break;
        BOOST_TEST_REQUIRE(t.branches.advice().has_value());
        BOOST_TEST((t.branches.advice()->remedy == loss_remedy::at_least));
        BOOST_TEST(t.branches.advice()->needed_threshold == 0U);
        BOOST_TEST(t.branches.advice()->needed_bytes == 2 * of.area);
        of.area = t.branches.advice()->needed_bytes;
    }
    BOOST_TEST(of.area == 256 * kilo);  // 240,000 bytes, and what the kernel does not use
}

BOOST_AUTO_TEST_CASE(without_a_clock_there_is_no_rate) {
    traced t({16 * kilo, 0}, false);
    t.take(100);
    t.e.kernel->interrupt();
    t.read();
    t.take(2000);
    t.read();
    BOOST_TEST_REQUIRE(t.gaps.size() == 1U);
    BOOST_TEST_REQUIRE(t.gaps[0].advice.has_value());
    BOOST_TEST(!t.gaps[0].advice->timed);
    BOOST_TEST((t.gaps[0].advice->remedy == loss_remedy::at_least));
    BOOST_TEST(to_string(*t.gaps[0].advice) ==
               "an AUX area of 16384 bytes with the watermark at 8184: lost an unknown number of "
               "records, possibly none, in an unknown time (no clock). More is needed, at least an "
               "area of 32768 bytes; how much is unknown");
}

BOOST_AUTO_TEST_CASE(a_trace_that_is_cut_short_with_room_left_has_no_remedy_in_its_sizes) {
    traced t({256 * kilo, 0});
    t.take(100);
    t.e.kernel->interrupt();
    // The interrupt at the threshold came so late that the index was at the maximum of the pass.
    const std::uint64_t words[] = {100 * 24, 0, PERF_AUX_FLAG_TRUNCATED};
    t.e.say(PERF_RECORD_AUX, std::as_bytes(std::span(words)));
    t.read();
    BOOST_TEST_REQUIRE(t.gaps.size() == 1U);
    BOOST_TEST_REQUIRE(t.gaps[0].advice.has_value());
    BOOST_TEST((t.gaps[0].advice->remedy == loss_remedy::none));
    BOOST_TEST(t.gaps[0].advice->needed_bytes == 0U);
    BOOST_TEST(to_string(*t.gaps[0].advice).find("the interrupt came late") != std::string::npos);
    // Flags that have nothing to do with room have no advice.
    const std::uint64_t partial[] = {100 * 24, 0, PERF_AUX_FLAG_PARTIAL};
    t.e.say(PERF_RECORD_AUX, std::as_bytes(std::span(partial)));
    t.read();
    BOOST_TEST_REQUIRE(t.gaps.size() == 2U);
    BOOST_TEST(!t.gaps[1].advice.has_value());
}

BOOST_AUTO_TEST_CASE(lost_events_are_a_matter_of_their_own_ring) {
    // An event is 32 bytes, and one says how many were lost.
    const auto run = [](std::size_t data) {
        event e(false, data, 16 * page);
        e.kernel->margin = 4080;
        x86::perf_bts branches({.aux_bytes = 16 * page, .data_bytes = data}, e.host());
        branches.start();
        std::uint64_t n = 0;
        for (int handed_over = 0; handed_over < 200; ++handed_over) {
            for (int each = 0; each < 5; ++each, ++n) e.kernel->branch({0x1000 + n, 0x2000 + n, 0});
            e.kernel->interrupt();
        }
        const std::uint64_t unsaid = e.unsaid;
        std::vector<x86::branch_gap> gaps;
        const x86::visiting visit{[](const x86::branch&) {},
                                  [&](const x86::branch_gap& gap) { gaps.push_back(gap); }};
        branches.read(visit);
        if (unsaid == 0) {
            BOOST_TEST(gaps.empty());
            return loss_advice{};
        }
        const std::uint64_t words[] = {1, unsaid};  // with the next event there is room for
        e.say(PERF_RECORD_LOST, std::as_bytes(std::span(words)));
        branches.read(visit);
        BOOST_TEST_REQUIRE(gaps.size() == 1U);
        BOOST_TEST_REQUIRE(gaps[0].advice.has_value());
        return *gaps[0].advice;
    };
    const loss_advice advice = run(page);
    BOOST_TEST((advice.buffer == x86::loss_buffer::events));
    BOOST_TEST(advice.lost_exactly);
    BOOST_TEST(advice.lost == 200U - 128U);
    BOOST_TEST((advice.remedy == loss_remedy::enough));
    BOOST_TEST(advice.needed_bytes == 2 * page);
    BOOST_TEST(to_string(advice) ==
               "an event ring of 4096 bytes: lost 72 events, and possibly branches. Enough is: a "
               "ring of 8192 bytes");
    BOOST_TEST(run(2 * page).lost == 0U);
}

BOOST_AUTO_TEST_CASE(a_snapshot_that_is_full_can_only_be_larger) {
    for (const std::uint64_t count : {std::uint64_t{50}, std::uint64_t{1000}}) {
        event e(true);
        std::uint64_t ticks = 1;
        x86::perf_bts branches({.aux_bytes = page,
                                .data_bytes = page,
                                .snapshot = true,
                                .clock = {traced::now, &ticks}},
                               e.host());
        branches.start();
        for (std::uint64_t n = 1; n <= count; ++n, ticks += 10)
            e.kernel->branch({0x1000 + n, 0x2000 + n, 0});
        std::vector<x86::branch_gap> gaps;
        branches.read(x86::visiting{[](const x86::branch&) {},
                                    [&](const x86::branch_gap& gap) { gaps.push_back(gap); }});
        BOOST_TEST(gaps.size() == (count > 170 ? 1U : 0U));
        BOOST_TEST(branches.advice().has_value() == (count > 170));
        if (gaps.empty()) continue;
        BOOST_TEST_REQUIRE(gaps[0].advice.has_value());
        BOOST_TEST((gaps[0].advice->cause == tr::loss_cause::overwritten));
        BOOST_TEST((gaps[0].advice->remedy == loss_remedy::at_least));
        BOOST_TEST(gaps[0].advice->needed_bytes == 2 * page);
        BOOST_TEST(gaps[0].advice->time == 10'000U);
    }
}

BOOST_AUTO_TEST_CASE(a_watermark_is_given_to_the_kernel_and_one_that_cannot_be_is_refused) {
    event e;
    const auto make = [&](std::uint32_t watermark, bool snapshot = false) {
        x86::perf_bts{{.aux_bytes = page,
                       .aux_watermark = watermark,
                       .data_bytes = page,
                       .snapshot = snapshot},
                      e.host()};
        return e.attributes.aux_watermark;
    };
    BOOST_TEST(make(0) == 0U);
    BOOST_TEST(make(100) == 100U);
    BOOST_TEST(make(page) == page);
    const auto invalid = [](const tr::setup_error& error) {
        return error.code().value() == EINVAL &&
               std::string(error.what()).find("watermark") != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(make(page + 1), tr::setup_error, invalid);
    BOOST_CHECK_EXCEPTION(make(100, true), tr::setup_error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()
