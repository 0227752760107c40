// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Retention by time: what is younger than `keep_for` makes a trace grow, or newcomers wait; what
/// is older is overwritten.

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(keep_for)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::by_cpu;
using test::kinds;

namespace {

struct rare : tr::event<"rare", tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};

constexpr std::uint64_t sub_buffer = 512;
constexpr std::uint64_t at_first = 32;
constexpr std::uint64_t at_most = 256;

tr::recorder_options keeping(tr::full_mode full, std::chrono::nanoseconds time) {
    return {.size = at_first * sub_buffer,
            .limit = at_most * sub_buffer,
            .step = 8 * sub_buffer,
            .sub_buffer_bytes = sub_buffer,
            .full = full,
            .keep_for = time};
}

/// Records that fill a sub-buffer; by processor another says first who writes.
template <class Kind>
std::uint64_t fit_of(const tr::basic_recorder<Kind>& recorder) {
    if constexpr (std::is_same_v<Kind, by_cpu>) {
        if (recorder.restartable()) return test::fit_in_512 - 1;
    }
    static_cast<void>(recorder);
    return test::fit_in_512;
}

/// Records of one writer that fill so many sub-buffers.
template <class Kind>
std::uint64_t fill(tr::basic_recorder<Kind>& to, std::uint64_t sub_buffers, std::uint64_t& n) {
    std::uint64_t accepted = 0;
    for (std::uint64_t i = sub_buffers * fit_of(to); i != 0; --i) {
        accepted += test::put(to, 0, n++) ? 1 : 0;
    }
    return accepted;
}

/// Everything that was accepted is present, or reported as overwritten; what is there of a writer
/// are its newest records. How many those are.
template <class Kind>
std::uint64_t newest_of(const tr::basic_recorder<Kind>& recorder, std::uint64_t written) {
    const auto all = test::account_of(recorder);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(all.read() + all.lost()[tr::loss_cause::overwritten] == written);
    BOOST_TEST(all.lost()[tr::loss_cause::overwritten] == recorder.statistics().overwritten);
    const auto numbers = all.of(0);
    BOOST_REQUIRE(!numbers.empty());
    BOOST_TEST(numbers.back() == written - 1);
    return numbers.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_trace_grows_while_all_is_young_and_at_its_limit_the_oldest_goes,
                              Kind, kinds) {
    tr::basic_recorder<Kind> recorder(keeping(tr::full_mode::extend_then_overwrite, 1h));
    std::uint64_t n = 0;
    fill(recorder, at_most - 8, n);
    BOOST_TEST(newest_of(recorder, n) == n);
    BOOST_TEST(recorder.statistics().overwritten == 0U);
    BOOST_TEST(recorder.statistics().sub_buffers >= at_most - 8);
    fill(recorder, 3 * at_most, n);
    BOOST_TEST(recorder.statistics().sub_buffers == at_most);
    BOOST_TEST(newest_of(recorder, n) >= (at_most - 8) * fit_of(recorder));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_older_is_overwritten_and_the_trace_does_not_grow, Kind,
                              kinds) {
    tr::basic_recorder<Kind> recorder(keeping(tr::full_mode::extend_then_overwrite, 1us));
    std::uint64_t n = 0;
    for (int i = 0; i < 200; ++i) {
        fill(recorder, 1, n);
        const auto until = steady_clock::now() + 2us;
        while (steady_clock::now() < until) {
        }
    }
    BOOST_TEST(recorder.statistics().sub_buffers == at_first);
    BOOST_TEST(newest_of(recorder, n) >= (at_first - 8) * fit_of(recorder));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_burst_makes_it_grow_and_a_calm_time_does_not, Kind, kinds) {
    constexpr auto time = 300ms;
    auto options = keeping(tr::full_mode::extend_then_overwrite, time);
    options.limit = 4096 * sub_buffer;
    tr::basic_recorder<Kind> recorder(options);
    std::vector<steady_clock::time_point> begun;  // before each sub-buffer's worth
    std::uint64_t n = 0;
    const auto write = [&](std::uint64_t sub_buffers) {
        for (std::uint64_t i = 0; i < sub_buffers; ++i) {
            begun.push_back(steady_clock::now());
            fill(recorder, 1, n);
        }
        // Younger records are present, even if the machine was busy in between.
        const auto now = steady_clock::now();
        const auto young =
            std::find_if(begun.begin(), begun.end(), [&](auto each) { return now - each < time; });
        const auto count = static_cast<std::uint64_t>(begun.end() - young) * fit_of(recorder);
        BOOST_TEST(newest_of(recorder, n) >= count);
    };
    write(at_first - 8);
    BOOST_TEST(recorder.statistics().sub_buffers == at_first);
    std::uint64_t before = 0;
    for (int burst = 0; burst < 3; ++burst) {
        write(100);
        const std::uint64_t size = recorder.statistics().sub_buffers;
        BOOST_TEST(size >= std::min<std::uint64_t>(before, 100));
        std::this_thread::sleep_for(time + 50ms);
        // All there is is older: it is overwritten, and nothing grows.
        write(size - 8);
        BOOST_TEST(recorder.statistics().sub_buffers == size);
        before = size;
        std::this_thread::sleep_for(time + 50ms);
    }
    BOOST_TEST(recorder.statistics().overwritten > 0U);
    BOOST_TEST(recorder.statistics().sub_buffers <= 3 * 108U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(modes_that_keep_the_oldest_overwrite_what_is_older, Kind, kinds) {
    for (const auto full : {tr::full_mode::discard_newest, tr::full_mode::extend_then_discard}) {
        auto options = keeping(full, 1h);
        const std::uint64_t all = full == tr::full_mode::discard_newest ? at_first : at_most;
        {
            tr::basic_recorder<Kind> recorder(options);
            std::uint64_t n = 0;
            const std::uint64_t accepted = fill(recorder, 2 * all, n);
            BOOST_TEST(accepted >= (all - 4) * fit_of(recorder));
            BOOST_TEST(accepted <= all * fit_of(recorder));
            BOOST_TEST(recorder.statistics().overwritten == 0U);
            BOOST_TEST(test::account_of(recorder).read() == accepted);
        }
        options.keep_for = 20ms;
        tr::basic_recorder<Kind> recorder(options);
        std::uint64_t n = 0;
        std::uint64_t accepted = 0;
        for (int i = 0; i < 4; ++i) {
            accepted += fill(recorder, all, n);
            std::this_thread::sleep_for(25ms);
            // Everything is older now.
            const std::uint64_t now = fill(recorder, 4, n);
            BOOST_TEST(now == 4 * fit_of(recorder));
            accepted += now;
        }
        const auto seen = test::account_of(recorder);
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(seen.lost()[tr::loss_cause::overwritten] > 0U);
        BOOST_TEST(seen.read() + seen.lost()[tr::loss_cause::overwritten] == accepted);
        BOOST_TEST(seen.lost()[tr::loss_cause::refused] == n - accepted);
    }
}

BOOST_AUTO_TEST_CASE(who_waits_for_room_waits_until_the_oldest_is_old_enough) {
    auto options = keeping(tr::full_mode::block, 20ms);
    options.block_for = 60s;
    tr::recorder recorder(options);
    std::uint64_t n = 0;
    const auto begin = steady_clock::now();
    BOOST_TEST(fill(recorder, 3 * at_first, n) == n);
    // Two thirds had to wait for a third each.
    BOOST_TEST((steady_clock::now() - begin >= 40ms));
    BOOST_TEST(newest_of(recorder, n) >= (at_first - 4) * test::fit_in_512);
}

BOOST_AUTO_TEST_CASE(a_trace_stops_only_when_all_is_young) {
    tr::recorder recorder(keeping(tr::full_mode::stop, 1h));
    std::uint64_t n = 0;
    const std::uint64_t accepted = fill(recorder, 2 * at_first, n);
    BOOST_TEST(accepted <= at_first * test::fit_in_512);
    recorder.resume();
    BOOST_TEST(!test::put(recorder, 0, n));  // and shut again

    auto options = keeping(tr::full_mode::stop, 5ms);
    tr::recorder calm(options);
    n = 0;
    for (std::uint64_t i = 0; i < 2 * at_first; ++i) {
        BOOST_REQUIRE(fill(calm, 1, n) == test::fit_in_512);
        std::this_thread::sleep_for(1ms);
    }
    BOOST_TEST(newest_of(calm, n) < n);
}

// Rings by quota do not grow: theirs keep the newest at any time.
BOOST_AUTO_TEST_CASE(beside_rings_by_quota_only_the_first_grows) {
    auto options = keeping(tr::full_mode::extend_then_overwrite, 1h);
    options.quotas = {8 * sub_buffer};
    tr::recorder recorder(options);
    std::uint64_t n = 0;
    for (std::uint64_t i = 0; i < 100 * test::fit_in_512; ++i) {
        BOOST_REQUIRE(recorder.record<rare>(i));
        BOOST_REQUIRE(test::put(recorder, 0, n++));
    }
    BOOST_TEST(recorder.statistics().sub_buffers >= 100U);
    BOOST_TEST(recorder.statistics().sub_buffers < 150U);
    const auto [data, size] = recorder.bytes();
    const auto trace = reduce::trace_file::from(std::span(data, size));
    BOOST_TEST(trace.damages().empty());
    std::uint64_t rares = 0;
    std::uint64_t others = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        if (record != nullptr) ++(record->name() == "rare" ? rares : others);
    }
    BOOST_TEST(others == n);
    BOOST_TEST(rares >= 4 * test::fit_in_512);
    BOOST_TEST(rares < n);
}

BOOST_AUTO_TEST_CASE(many_threads_keep_their_last_records_and_all_is_accounted_for) {
    constexpr std::uint32_t threads = 8;
    const std::uint64_t each = test::repeated(20'000, 2'000);
    constexpr auto time = 20ms;
    auto options = keeping(tr::full_mode::extend_then_overwrite, time);
    options.limit = std::uint64_t{16384} * sub_buffer;
    tr::recorder recorder(options);
    std::vector<std::thread> all;
    for (std::uint32_t who = 0; who < threads; ++who) {
        all.emplace_back([&, who] {
            for (std::uint64_t n = 0; n < each; ++n) {
                if (!test::put(recorder, who, n)) BOOST_FAIL("record " << n << " was refused");
                if (n % 512 == 0) std::this_thread::sleep_for(1ms);
            }
        });
    }
    for (auto& thread : all) thread.join();
    const auto seen = test::account_of(recorder);
    BOOST_TEST(seen.strange == 0U);
    BOOST_TEST(seen.read() + seen.lost()[tr::loss_cause::overwritten] == threads * each);
    BOOST_TEST(seen.lost()[tr::loss_cause::overwritten] == recorder.statistics().overwritten);
}

BOOST_AUTO_TEST_CASE(who_joins_keeps_as_long_as_the_file_says) {
    const test::folder folder;
    const std::string file = folder / "kept.trace";
    auto options = keeping(tr::full_mode::discard_newest, 1us);
    options.file = file;
    tr::recorder first(options);
    const int end = test::in_child([&] {
        tr::recorder joined({.file = file, .exists = tr::if_exists::attach});
        std::uint64_t n = 0;
        std::uint64_t accepted = 0;
        for (std::uint64_t i = 0; i < 4 * at_first; ++i) {
            accepted += fill(joined, 1, n);
            ::usleep(100);
        }
        return accepted == n && joined.statistics().overwritten != 0 ? 0 : 1;
    });
    BOOST_TEST(end == 0);
}

BOOST_AUTO_TEST_CASE(the_longest_time_there_is_keeps_all) {
    tr::recorder recorder(
        keeping(tr::full_mode::extend_then_overwrite, std::chrono::nanoseconds::max()));
    std::uint64_t n = 0;
    fill(recorder, at_most - 4, n);
    BOOST_TEST(newest_of(recorder, n) == n);
}

BOOST_AUTO_TEST_SUITE_END()
