// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The clocks: what is believed of them, how fast they run, and what a snapshot is worth.

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ratio>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/policy/clock/in_use.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>
#include <trace_ring/policy/clock/tsc.hpp>

BOOST_AUTO_TEST_SUITE(clocks)

namespace clk = trace_ring::clock;
using trace_ring::clock_kind;
using trace_ring::clock_snapshot;

namespace {

struct broken {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = 1;
    static std::uint64_t now() noexcept { return 42; }
    static bool usable() noexcept { return false; }
    static double ticks_per_second() noexcept { return 3; }
};

// Lengths of time, of every unit that a duration may have.
using trace_ring::nanoseconds;
template <class Rep, class Period = std::ratio<1>>
constexpr std::int64_t ns(Rep count) {
    return nanoseconds(std::chrono::duration<Rep, Period>(count)).count();
}
static_assert(ns(10) == 10'000'000'000);
static_assert(ns<int, std::ratio<60>>(3) == 180'000'000'000);
static_assert(ns<int, std::nano>(7) == 7 && ns<int, std::micro>(-7) == -7000);
static_assert(ns<std::int64_t, std::ratio<3600>>(24 * 365 * 200) == 6'307'200'000'000'000'000);
static_assert(ns(1.5) == 1'500'000'000);
static_assert(ns<std::int64_t, std::pico>(2500) == 2);
static_assert(ns<int, std::ratio<1, 3>>(1) == 333'333'333);
static_assert(ns<int, std::ratio<1, 60>>(60) == 1'000'000'000);
static_assert(!std::is_convertible_v<int, nanoseconds>);

// The verdict, by the rules alone.
static_assert(clk::impl::believable(true, "", ""));
static_assert(!clk::impl::believable(false, "", ""));
static_assert(clk::impl::believable(false, "tsc\n", "tsc hpet acpi_pm \n"));
static_assert(clk::impl::believable(true, "kvm-clock\n", "kvm-clock tsc acpi_pm \n"));
static_assert(!clk::impl::believable(false, "kvm-clock\n", "kvm-clock tsc acpi_pm \n"));
static_assert(!clk::impl::believable(true, "hpet\n", "hpet acpi_pm \n"));
static_assert(!clk::impl::believable(true, "hpet\n", "hpet tsc-early \n"));
static_assert(!clk::impl::believable(true, "x\n", "hyperv_clocksource_tsc_page \n"));

}  // namespace

BOOST_AUTO_TEST_CASE(ticks_never_go_back_on_one_thread) {
    std::uint64_t last = clk::in_use<clk::tsc>::now();
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t now = clk::in_use<clk::tsc>::now();
        BOOST_REQUIRE(now >= last);
        last = now;
    }
}

BOOST_AUTO_TEST_CASE(the_halves_make_the_whole) {
    const std::uint64_t before = clk::tsc::now();
    const auto halves = clk::tsc::now_halves();
    const std::uint64_t after = clk::tsc::now();
    const std::uint64_t whole = std::uint64_t{halves.high} << 32 | halves.low;
    BOOST_TEST(whole >= before);
    BOOST_TEST(whole <= after);
}

BOOST_AUTO_TEST_CASE(the_rate_agrees_with_the_system_clock) {
    errno = 7;
    const double rate = clk::tsc::ticks_per_second();
    BOOST_TEST(clk::tsc::usable() == clk::tsc::usable());
    BOOST_TEST(errno == 7);
    BOOST_TEST(rate == clk::tsc::ticks_per_second());  // measured once
    const auto first = trace_ring::take_snapshot<clk::tsc>();
    while (clk::monotonic::now() - first.monotonic < 20'000'000) {
    }
    const auto last = trace_ring::take_snapshot<clk::tsc>();
    const double measured = static_cast<double>(last.ticks - first.ticks) * 1e9 /
                            static_cast<double>(last.monotonic - first.monotonic);
    // Loose, for a machine that is busy and virtual: a wrong unit would be off by far more.
    BOOST_TEST(std::abs(rate / measured - 1) < 0.02);
}

BOOST_AUTO_TEST_CASE(a_snapshot_brackets_its_moment) {
    const std::uint64_t before = clk::tsc::now();
    const std::uint64_t ns_before = clk::monotonic::now();
    const auto s = trace_ring::take_snapshot<clk::tsc>();
    const std::uint64_t after = clk::tsc::now();
    const std::uint64_t ns_after = clk::monotonic::now();
    BOOST_TEST(s.ticks - s.uncertainty >= before);
    BOOST_TEST(s.ticks + s.uncertainty <= after + 1);
    BOOST_TEST(s.monotonic >= ns_before);
    BOOST_TEST(s.monotonic <= ns_after);
    BOOST_TEST(s.realtime > 1'600'000'000'000'000'000U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_not_usable_gives_way_to_the_monotonic_one) {
    using used = clk::in_use<broken>;
    const std::uint64_t before = clk::monotonic::now();
    BOOST_TEST(used::now() >= before);
    BOOST_CHECK(used::kind() == clock_kind::monotonic);
    BOOST_TEST(used::ticks_per_second() == 1e9);
    BOOST_TEST(used::snapshot().monotonic >= before);
    BOOST_CHECK(clk::in_use<clk::none>::kind() == clock_kind::none);
    BOOST_TEST(clk::in_use<clk::none>::now() == 0U);
}

BOOST_AUTO_TEST_CASE(a_date_that_was_read_late_is_no_step_of_it) {
    // A tick is a nanosecond. In each snapshot the date is read as late, or early, as its width
    // says.
    const auto advance = [](std::int64_t late) {
        const trace_ring::clock_snapshot first{1'000'000, 1'000'000, 500'000'000, 500'000};
        const trace_ring::clock_snapshot last{
            101'000'000, 101'000'000, static_cast<std::uint64_t>(600'000'000 + late), 500'000};
        return trace_ring::advance_of(first, last, 1e9);
    };
    for (const std::int64_t late : {-2'000'000, -100'000, 0, 1'900'000, 2'000'000}) {
        BOOST_TEST(advance(late).step == 0);
        BOOST_TEST(advance(late).even);
    }
    for (const std::int64_t late : {-2'200'000, 2'200'000}) {
        BOOST_TEST(advance(late).step == late);
        BOOST_TEST(!advance(late).even);
        BOOST_TEST(advance(late).elapsed == 1e8);
    }
}

BOOST_AUTO_TEST_SUITE_END()
