// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Clocks that are set, begin anew or jump: dates jump once and where this is reported, what was
/// written first comes first, and every way to ask for times goes by the same rule.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <recorder/scratch.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/position/range_finder.hpp>
#include <trace_reduce/position/when_text.hpp>
#include <trace_ring/recorder/clock/snapshots.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(clocks)

namespace reduce = trace_ring::reduce;
using trace_ring_test::file_builder;

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t hour = 3600 * second;
constexpr std::int64_t date = 1'700'000'000 * second;  // at which the traces begin

/// One record or jump of a trace, as reported.
struct shown {
    std::int64_t n = -1;  // the record's number; -1: a jump
    std::int64_t date = 0;
    std::int64_t relative = 0;
    std::optional<reduce::clock_jump> jump{};
};
[[nodiscard]] std::vector<shown> read(const reduce::trace_file& file, reduce::cursor cursor) {
    std::vector<shown> out;
    while (const auto* item = cursor.next()) {
        const std::uint64_t ticks = reduce::time_of(*item);
        shown one{-1, file.realtime_ns(ticks), file.relative_ns(ticks)};
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            one.n = record->field("n").i64();
        } else if (const auto* jump = std::get_if<reduce::clock_jump>(item)) {
            one.jump = *jump;
        } else {
            BOOST_ERROR("something is lost");
        }
        out.push_back(one);
    }
    return out;
}
[[nodiscard]] std::vector<std::int64_t> numbers(const std::vector<shown>& all) {
    std::vector<std::int64_t> out;
    for (const auto& each : all) {
        if (!each.jump) out.push_back(each.n);
    }
    return out;
}
[[nodiscard]] std::vector<std::int64_t> up_to(std::int64_t end, std::int64_t begin = 0) {
    std::vector<std::int64_t> out;
    for (; begin < end; ++begin) out.push_back(begin);
    return out;
}
[[nodiscard]] std::vector<std::int64_t> in_range(reduce::trace_file& file, const char* from,
                                                 const char* to) {
    reduce::filter what;
    const auto place = [](const char* text) {
        return text == nullptr ? std::nullopt : trace_reduce::parse_when(text);
    };
    BOOST_REQUIRE(trace_reduce::range_finder(file).limit(what, place(from), place(to)));
    const auto there = numbers(read(file, file.forward(what)));
    auto back = numbers(read(file, file.backward(what)));
    std::reverse(back.begin(), back.end());
    BOOST_TEST(there == back, boost::test_tools::per_element());
    return there;
}

/// A trace of two threads, whose clock counts nanoseconds. Records are numbered as they are
/// written, in turns, one each 100 ms.
class machine {
public:
    /// The clocks that it has at first.
    std::int64_t ticks = 100 * second, monotonic = 100 * second, realtime = date;
    file_builder file{{.sub_buffer_bytes = 512, .sub_buffers = 64, .clocks = 16}};

    machine() { start(); }
    /// Another program on the same trace.
    void start() {
        read_clocks();
        for (auto& lane : lanes_) {
            lane = file.lane(process_, 10);
            file.open(lane, static_cast<std::uint64_t>(ticks));
        }
    }
    void read_clocks() {
        file.clock_reading(static_cast<std::uint64_t>(ticks), static_cast<std::uint64_t>(monotonic),
                           static_cast<std::uint64_t>(realtime), 20);
    }
    void pass(std::int64_t ns) {
        ticks += ns;
        monotonic += ns;
        realtime += ns;
    }
    void write(std::int64_t count) {
        for (; count > 0; --count, ++written) {
            file.record(lanes_[written % 2], static_cast<std::uint64_t>(ticks), tick_,
                        {static_cast<std::uint64_t>(written)});
            pass(second / 10);
        }
    }
    [[nodiscard]] reduce::trace_file trace() const {
        return reduce::trace_file::from(file.bytes());
    }
    std::int64_t written = 0;

private:
    const trace_ring_test::event_spec& tick_ = file.event({1, "tick", {{"n"}}});
    std::uint32_t process_ = file.process(1);
    std::uint32_t lanes_[2] = {};
};

/// All that must hold however the clocks jumped.
void check_order(reduce::trace_file& file, std::int64_t written) {
    const auto there = read(file, file.forward());
    BOOST_TEST(numbers(there) == up_to(written), boost::test_tools::per_element());
    auto back = read(file, file.backward());
    std::reverse(back.begin(), back.end());
    BOOST_TEST(numbers(back) == up_to(written), boost::test_tools::per_element());
    BOOST_REQUIRE(back.size() == there.size());
    for (std::size_t i = 0; i < back.size(); ++i) BOOST_TEST(back[i].n == there[i].n);
    for (std::size_t i = 1; i < there.size(); ++i) {
        BOOST_TEST(there[i].relative >= there[i - 1].relative);
    }
    BOOST_TEST((in_range(file, "-250ms", nullptr) == up_to(written, written - 3)));
    const auto first = in_range(file, nullptr, "+1s");
    const auto rest = in_range(file, "+1s", nullptr);
    BOOST_TEST(first.size() + rest.size() == static_cast<std::size_t>(written));
    BOOST_TEST((first == up_to(static_cast<std::int64_t>(first.size()))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_date_that_was_set_jumps_once_and_the_interval_is_named) {
    for (const std::int64_t step : {-hour, hour, -second / 5, 2 * second}) {
        BOOST_TEST_CONTEXT("step " << step) {
            machine m;
            m.write(10);
            m.read_clocks();
            const std::int64_t last_known = m.realtime;
            m.write(5);
            m.realtime += step;
            m.write(5);
            m.read_clocks();
            m.write(10);
            auto file = m.trace();
            check_order(file, 30);
            const auto all = read(file, file.forward());
            BOOST_REQUIRE(all.size() == 31U);
            std::int64_t stepped = 0;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i].jump) {
                    BOOST_TEST(i == 20U);  // before the first with a date of the new clock
                    BOOST_TEST(all[i].jump->lane == nullptr);
                    BOOST_TEST(all[i].jump->step == step);
                    BOOST_TEST(!all[i].jump->anew);
                    BOOST_TEST(file.realtime_ns(all[i].jump->from) == last_known);
                    stepped = step;
                    continue;
                }
                // Records in the interval may be either; they are shown with the clock before.
                BOOST_TEST(all[i].date == date + all[i].n * second / 10 + stepped);
                BOOST_TEST(all[i].relative == all[i].n * second / 10);
            }
            BOOST_TEST(stepped == step);
            const auto sum = file.statistics();
            BOOST_TEST(sum.clock_jumps == 1U);
            BOOST_TEST(sum.seconds(file.time()) == 2.9, boost::test_tools::tolerance(1e-9));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_date_gives_the_first_tick_that_has_it_or_a_later_one) {
    machine m;
    m.write(10);
    m.read_clocks();
    m.realtime += 2 * second;
    m.write(10);
    m.read_clocks();
    const auto file = m.trace();
    for (std::int64_t ns = date - second; ns < date + 6 * second; ns += second / 20) {
        const std::uint64_t ticks = file.ticks_at(ns);
        BOOST_TEST(file.realtime_ns(ticks) >= ns);
        BOOST_TEST(file.realtime_ns(ticks - 1) < ns);
    }
    BOOST_TEST(file.realtime_ns(file.ticks_at(9'000'000'000'000'000'000)) > date + 10 * hour);
    reduce::filter what;
    what.from = file.ticks_at(date + 5 * second / 10);
    what.to = file.ticks_at(date + 7 * second / 10);
    BOOST_TEST((numbers(read(file, file.forward(what))) == std::vector<std::int64_t>{5, 6, 7}));
    const file_builder without_readings{{.sub_buffer_bytes = 512, .sub_buffers = 4}};
    BOOST_TEST(reduce::trace_file::from(without_readings.bytes()).ticks_at(date) == 0U);
}

BOOST_AUTO_TEST_CASE(times_stay_within_their_range_and_never_go_back_whatever_the_readings_are) {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    constexpr std::uint64_t middle = most / 2 + 1;
    const std::uint64_t dates[] = {0, most / 2, middle, most, date};
    for (const std::uint64_t first : {std::uint64_t{0}, middle, most}) {
        for (const std::uint64_t realtime : dates) {
            for (const bool two : {false, true}) {
                file_builder b;
                b.clock_reading(first, 0, realtime);
                // As far from the first as the clocks of one trace can be.
                if (two) b.clock_reading(first + middle, middle / 2, realtime + middle / 2);
                const auto lane = b.lane(b.process(1), 10);
                const auto& tick = b.event({1, "tick", {{"n"}}});
                for (const std::uint64_t ticks : {std::uint64_t{1}, most - 1}) {
                    b.open(lane, ticks);
                    b.record(lane, ticks, tick, {0});
                }
                const auto file = reduce::trace_file::from(b.bytes());
                const auto& time = file.time();
                BOOST_REQUIRE(time.known());
                std::int64_t last = -reduce::timeline::most_relative_ns;
                for (std::uint64_t i = 0; i < 64; ++i) {
                    const std::int64_t now = file.relative_ns(most / 63 * i);
                    BOOST_TEST(now >= last);
                    last = now;
                }
                BOOST_TEST(last <= reduce::timeline::most_relative_ns);
                if (time.jumps().empty()) {
                    std::int64_t before = std::numeric_limits<std::int64_t>::min();
                    for (std::uint64_t i = 0; i < 64; ++i) {
                        const std::int64_t now = file.realtime_ns(most / 63 * i);
                        BOOST_TEST(now >= before);
                        before = now;
                    }
                }
                const auto sum = file.statistics();
                BOOST_TEST(sum.records == 2U);
                // Both records may be at a bound, if the readings contradict each other.
                BOOST_TEST(sum.seconds(time) >= 0);
                BOOST_TEST((two || sum.seconds(time) > 0));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_step_is_none) {
    machine m;
    for (int i = 0; i < 12; ++i) {
        m.write(2);
        m.realtime += i % 2 == 0 ? 40'000 : -40'000;  // a reading that was late
        m.read_clocks();
    }
    const auto file = m.trace();
    BOOST_TEST(file.time().jumps().empty());
    BOOST_TEST(read(file, file.forward()).size() == 24U);
}

BOOST_AUTO_TEST_CASE(dates_that_were_there_twice_are_both_in_a_range_of_dates) {
    machine m;
    m.write(20);
    m.realtime -= second;
    m.read_clocks();
    m.write(20);
    auto file = m.trace();
    const auto all = read(file, file.forward());
    const auto text = [](std::int64_t ns) {
        const std::int64_t of_day = (ns / 1'000'000) % 86'400'000;
        char out[32];
        std::snprintf(out, sizeof out, "%02d:%02d:%02d.%03dZ", static_cast<int>(of_day / 3'600'000),
                      static_cast<int>(of_day / 60'000 % 60), static_cast<int>(of_day / 1000 % 60),
                      static_cast<int>(of_day % 1000));
        return std::string(out);
    };
    std::size_t most = 0;
    for (std::int64_t from = date - second; from < date + 4 * second; from += second / 4) {
        for (const std::int64_t length : {second / 4, second, 10 * second}) {
            std::vector<std::int64_t> wanted;
            for (const auto& each : all) {
                if (!each.jump && each.date >= from && each.date < from + length) {
                    wanted.push_back(each.n);
                }
            }
            most = std::max(most, wanted.size());
            BOOST_TEST((in_range(file, text(from).c_str(), text(from + length).c_str()) == wanted));
        }
    }
    BOOST_TEST(most == 40U);
    reduce::filter from_there;
    BOOST_REQUIRE(trace_reduce::range_finder(file).limit(
        from_there, trace_reduce::parse_when(text(date + 3 * second / 2).c_str()), std::nullopt));
    BOOST_TEST(from_there.times.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_was_written_before_the_clock_began_anew_comes_first) {
    // The machine was down for so long; its clock then begins at so much.
    for (const auto& [down, begin] :
         {std::pair{20 * second, 5 * second}, std::pair{second / 100, 100 * second},
          std::pair{24 * hour, 99 * second}, std::pair{-hour, std::int64_t{0}}}) {
        BOOST_TEST_CONTEXT("down " << down << ", begins at " << begin) {
            machine m;
            m.write(20);
            m.read_clocks();
            m.write(4);  // and killed
            for (int again = 0; again < 2; ++again) {
                m.ticks = m.monotonic = begin;
                m.realtime += down;
                m.start();
                m.write(20);
                m.read_clocks();
            }
            auto file = m.trace();
            check_order(file, 64);
            const auto all = read(file, file.forward());
            BOOST_REQUIRE(all.size() == 66U);
            BOOST_TEST((all[24].jump && all[24].jump->anew && all[24].jump->lane == nullptr));
            BOOST_TEST((all[45].jump && all[45].jump->anew));
            for (const auto& each : all) {
                if (each.jump) continue;
                const std::int64_t starts = each.n < 24 ? 0 : each.n < 44 ? 1 : 2;
                BOOST_TEST(each.date == date + each.n * second / 10 + starts * down);
            }
            const auto jumps = file.time().jumps();
            BOOST_REQUIRE(jumps.size() == 2U);
            BOOST_TEST((jumps[0].step < 0) == (down < 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_under_those_who_write_divides_them_all) {
    machine m;  // a virtual machine that is moved: the counter goes back, no other clock does
    m.write(20);
    m.read_clocks();
    m.write(5);
    m.ticks -= 60 * second;
    m.write(5);
    m.read_clocks();
    m.write(20);
    auto file = m.trace();
    check_order(file, 50);
    const auto all = read(file, file.forward());
    BOOST_TEST(std::count_if(all.begin(), all.end(), [](auto& one) { return one.jump; }) == 1);
    for (const auto& each : all) {
        if (each.jump) continue;
        if (each.n < 25 || each.n >= 30) BOOST_TEST(each.date == date + each.n * second / 10);
    }
}

BOOST_AUTO_TEST_CASE(a_counter_that_jumps_forward_makes_no_hours) {
    machine m;
    m.write(20);
    m.read_clocks();
    m.write(5);
    m.ticks += 1000 * second;
    m.write(5);
    m.read_clocks();
    m.write(20);
    auto file = m.trace();
    check_order(file, 50);
    for (const auto& each : read(file, file.forward())) {
        if (each.jump) continue;
        const std::int64_t off = each.date - (date + each.n * second / 10);
        BOOST_TEST((off == 0 || (each.n >= 25 && each.n < 30 && off > 0 && off <= second)));
    }
}

BOOST_AUTO_TEST_CASE(jumps_are_kept_when_the_readings_around_them_are_gone) {
    file_builder file{{.clocks = 64}};
    const auto take = [&](std::int64_t ticks, std::int64_t realtime) {
        trace_ring::impl::add_clocks(
            trace_ring::layout::view(file.bytes().data(), file.plan()),
            [&] {
                return trace_ring::clock_snapshot{static_cast<std::uint64_t>(ticks),
                                                  static_cast<std::uint64_t>(ticks),
                                                  static_cast<std::uint64_t>(realtime), 20};
            },
            0);
    };
    std::int64_t ticks = 5 * second;
    std::int64_t now = date;
    for (int i = 0; i < 1000; ++i, ticks += second, now += second) {
        if (i == 200) now -= hour;
        if (i == 400) ticks = 5 * second;  // so that it is later than at first before long
        if (i == 600) now += 2 * hour;
        take(ticks, now);
    }
    const auto trace = reduce::trace_file::from(file.bytes());
    const auto& time = trace.time();
    BOOST_TEST(time.snapshots().size() > 40U);
    const auto jumps = time.jumps();
    BOOST_REQUIRE(jumps.size() == 3U);
    const std::int64_t steps[] = {-hour, 0, 2 * hour};
    for (std::size_t i = 0; i < 3; ++i) {
        BOOST_TEST(jumps[i].step == steps[i]);
        BOOST_TEST(jumps[i].anew == (i == 1));
        if (i != 1) BOOST_TEST(jumps[i].to - jumps[i].from == static_cast<std::uint64_t>(second));
    }
    const auto at = [&](std::int64_t i) {  // as the file has it, and is read
        const std::int64_t raw = (i < 400 ? 5 + i : 5 + i - 400) * second;
        return static_cast<std::uint64_t>(raw) + time.eras().shift(i < 400 ? 0 : 1);
    };
    for (std::int64_t i = 0; i < 1000; ++i) {
        const std::int64_t steps_before = (i >= 200 ? -hour : 0) + (i >= 600 ? 2 * hour : 0);
        BOOST_TEST(time.realtime_ns(at(i)) == date + i * second + steps_before);
        BOOST_TEST(time.relative_ns(at(i)) == i * second);
    }
}

namespace {

/// A clock that begins anew on request.
struct restarted {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = trace_ring::clock::monotonic::kind;
    static inline std::uint64_t less = 0;
    [[nodiscard]] static std::uint64_t now() noexcept {
        return trace_ring::clock::monotonic::now() - less;
    }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }
};
struct by_restarted : trace_ring::policies<restarted> {};
struct tick : trace_ring::event<"tick", trace_ring::field<"n", std::int64_t>> {};

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_that_is_attached_to_after_a_restart_goes_on) {
    const test::folder folder;
    const std::string path = folder / "a.trace";
    std::int64_t n = 0;
    restarted::less = 0;
    for (int start = 0; start < 5; ++start) {
        {
            trace_ring::basic_recorder<by_restarted> recorder{
                {.file = path, .size = 1 << 20, .exists = trace_ring::if_exists::attach}};
            for (int i = 0; i < 200; ++i) BOOST_REQUIRE(recorder.record<tick>(n++));
        }
        restarted::less += 10'000'000'000;
    }
    restarted::less = 0;
    auto file = reduce::trace_file::open(path);
    const auto all = read(file, file.forward());
    BOOST_TEST(numbers(all) == up_to(1000), boost::test_tools::per_element());
    auto back = numbers(read(file, file.backward()));
    std::reverse(back.begin(), back.end());
    BOOST_TEST(back == up_to(1000), boost::test_tools::per_element());
    BOOST_TEST(all.size() == 1004U);
    BOOST_TEST(all.front().date <= all.back().date);
    BOOST_TEST(all.back().date - all.front().date < 60 * second);
    BOOST_TEST(trace_reduce::range_finder(file).whole().last >
               trace_reduce::range_finder(file).whole().first);
    BOOST_TEST(file.statistics().seconds(file.time()) < 60);
    auto follower = file.follow();
    std::vector<std::int64_t> followed;
    for (int quiet = 0; quiet < 3;) {
        const auto* const item = follower.next();
        if (item == nullptr) {
            ++quiet;
        } else if (const auto* record = std::get_if<reduce::record_view>(item)) {
            followed.push_back(record->field("n").i64());
        }
    }
    BOOST_TEST(followed == up_to(1000), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
