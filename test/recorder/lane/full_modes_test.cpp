// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What becomes of records when every sub-buffer has been used: which stay, which go, how many are
/// refused, and where a reader sees this.

#include <boost/test/unit_test.hpp>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <latch>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/recorder/control.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(full_modes)

namespace tr = trace_ring;
using test::account_of;
using test::fit_in_512;
using test::put;
using tr::loss;
using tr::loss_cause;

namespace {

constexpr std::uint64_t whole = 8 * fit_in_512;  ///< records in the smallest ring there is

tr::recorder_options smallest(tr::full_mode full, const std::string& file = {}) {
    return {.file = file, .size = 8 * 512, .step = 512, .sub_buffer_bytes = 512, .full = full};
}

std::vector<std::uint64_t> numbers(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> out(static_cast<std::size_t>(to - from));
    std::iota(out.begin(), out.end(), from);
    return out;
}

/// Records the numbers from..to; how many were recorded.
std::uint64_t fill(tr::recorder& recorder, std::uint64_t from, std::uint64_t to,
                   std::uint64_t who = 1) {
    std::uint64_t done = 0;
    for (std::uint64_t n = from; n < to; ++n) done += put(recorder, who, n) ? 1 : 0;
    return done;
}

std::uint64_t elapsed_ns(std::chrono::steady_clock::time_point since) {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - since).count());
}
constexpr std::uint64_t ages_ns = 20'000'000'000;  // what no machine takes for what is done here

/// The one lane of a trace that one thread wrote.
const test::lane_account& only_lane(const test::account& all) {
    BOOST_REQUIRE(all.lanes.size() == 1U);
    BOOST_TEST(all.strange == 0U);
    return all.lanes.begin()->second;
}

void wait_until(const std::atomic<std::uint64_t>& count, std::uint64_t wanted) {
    while (count.load() < wanted) ::usleep(100);
}

constexpr std::uint64_t none = ~std::uint64_t{0};

/// The closed sub-buffer with the least position.
std::uint64_t oldest_closed(const test::hands_on& trace) {
    std::uint64_t oldest = none;
    tr::position least = ~tr::position{0};
    for (std::uint64_t slot = 0; slot < trace.plan().sub_buffer_limit; ++slot) {
        const auto state = trace.state(slot);
        if (state.state != static_cast<unsigned>(tr::sub_buffer_state::closed)) continue;
        if (state.pos < least) oldest = slot;
        least = std::min(least, state.pos);
    }
    return oldest;
}

}  // namespace

BOOST_AUTO_TEST_CASE(discarding_the_newest_keeps_exactly_what_came_first) {
    const test::folder folder;
    for (const std::string& file : {std::string(), folder / "a.trace"}) {
        tr::recorder recorder(smallest(tr::full_mode::discard_newest, file));
        BOOST_TEST(fill(recorder, 0, 1000) == whole);
        const auto all = account_of(recorder);
        const auto& lane = only_lane(all);
        BOOST_TEST(lane.numbers == numbers(0, whole), boost::test_tools::per_element());
        BOOST_TEST(lane.gaps == (std::vector<loss>{{whole, 1000 - whole, loss_cause::refused}}),
                   boost::test_tools::per_element());
        BOOST_TEST(recorder.statistics().overwritten == 0U);
        BOOST_TEST(recorder.statistics().held == 0U);
        BOOST_TEST(recorder.statistics().sub_buffers == 8U);
    }
}

BOOST_AUTO_TEST_CASE(refused_records_are_told_between_those_that_came_before_and_after) {
    for (const auto full : {tr::full_mode::discard_newest, tr::full_mode::extend_then_discard,
                            tr::full_mode::block}) {
        auto options = smallest(full);
        options.limit = options.size;
        options.block_for = {};
        tr::recorder recorder(options);
        const test::hands_on trace(recorder);
        BOOST_TEST(fill(recorder, 0, whole + 10) == whole);
        // A reader has taken the oldest, and gives its place back: there is room for as many.
        BOOST_REQUIRE(trace.free(0));
        BOOST_TEST(fill(recorder, whole + 10, whole + 40) == fit_in_512);
        BOOST_REQUIRE(trace.free(1));
        BOOST_TEST(fill(recorder, whole + 40, whole + 41) == 1U);
        const auto all = account_of(recorder);
        const auto& lane = only_lane(all);
        const std::uint64_t taken = 2 * fit_in_512;
        auto expected = numbers(taken, whole);
        const auto later = numbers(whole + 10, whole + 10 + fit_in_512);
        expected.insert(expected.end(), later.begin(), later.end());
        expected.push_back(whole + 40);
        BOOST_TEST(lane.numbers == expected, boost::test_tools::per_element());
        // Positions count what was recorded; refused records have none, and are reported before the
        // next record.
        const std::vector<loss> gaps{{0, taken, loss_cause::overwritten},
                                     {whole, 10, loss_cause::refused},
                                     {whole + fit_in_512, 30 - fit_in_512, loss_cause::refused}};
        BOOST_TEST(lane.gaps == gaps, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_ring_that_stops_keeps_what_it_has_and_shuts_its_gates_for_good) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    tr::recorder recorder(smallest(tr::full_mode::stop, file));
    const auto is_open = [&] {
        tr::control control(file);
        bool open = false;
        control.list([&open](std::string_view, bool one) { open = open || one; });
        return open;
    };
    BOOST_TEST(fill(recorder, 0, whole) == whole);
    BOOST_TEST(is_open());
    BOOST_TEST(fill(recorder, whole, 1000) == 0U);
    BOOST_TEST(!is_open());
    const auto all = account_of(recorder);
    const auto& lane = only_lane(all);
    BOOST_TEST(lane.numbers == numbers(0, whole), boost::test_tools::per_element());
    // One refusal stopped it; what a shut gate keeps out is no loss.
    BOOST_TEST(lane.gaps == (std::vector<loss>{{whole, 1, loss_cause::refused}}),
               boost::test_tools::per_element());
    // Room that comes free later changes nothing.
    BOOST_REQUIRE(test::hands_on(recorder).free(0));
    BOOST_TEST(fill(recorder, 1000, 1010) == 0U);
    BOOST_TEST(account_of(recorder).lost()[loss_cause::refused] == 1U);
    // After the gates are opened again, recording continues up to the next refusal.
    recorder.resume();
    BOOST_TEST(fill(recorder, 2000, 2100) == fit_in_512);
    BOOST_TEST(!is_open());
    BOOST_TEST(account_of(recorder).lost()[loss_cause::refused] == 2U);
}

BOOST_AUTO_TEST_CASE(threads_that_stop_together_are_refused_at_most_once_each) {
    constexpr std::uint64_t threads = 3;
    for (int round = 0; round < 20; ++round) {
        tr::recorder recorder(smallest(tr::full_mode::stop));
        std::atomic<std::uint64_t> ready{0};
        std::atomic<std::uint64_t> done{0};
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                ++ready;
                while (ready.load() < threads) std::this_thread::yield();
                done += fill(recorder, 0, 1000, t);
            });
        }
        for (auto& thread : all) thread.join();
        const auto seen = account_of(recorder);
        BOOST_TEST(seen.read() == done.load());
        const std::uint64_t refused = seen.lost()[loss_cause::refused];
        BOOST_TEST(refused >= 1U);
        BOOST_TEST(refused <= threads);
        BOOST_TEST(seen.lost().total() == refused);
        BOOST_TEST(!put(recorder, 9, 9));
    }
}

namespace {
std::atomic<int> asked{0};
bool waits_thrice() {
    return ++asked < 3;
}
}  // namespace

// Who knows that nobody makes room any more ends the waiting; the record is refused, and counted.
BOOST_AUTO_TEST_CASE(a_blocked_writer_waits_as_long_as_it_is_told_to) {
    auto options = smallest(tr::full_mode::block);
    options.block_for = std::chrono::hours{1000};
    options.keeps_waiting = waits_thrice;
    tr::recorder recorder(options);
    BOOST_TEST(fill(recorder, 0, whole) == whole);
    BOOST_TEST(asked == 0);
    BOOST_TEST(!put(recorder, 1, whole));
    BOOST_TEST(asked == 3);
    const auto all = account_of(recorder);
    BOOST_TEST(only_lane(all).gaps == (std::vector<loss>{{whole, 1, loss_cause::refused}}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_blocked_writer_waits_its_time_and_is_then_refused_and_counted) {
    auto options = smallest(tr::full_mode::block);
    options.block_for = std::chrono::milliseconds{5};
    tr::recorder recorder(options);
    BOOST_TEST(fill(recorder, 0, whole) == whole);  // nothing to wait for yet
    for (std::uint64_t n = 0; n < 4; ++n) {
        const auto begun = std::chrono::steady_clock::now();
        errno = ENOTTY;
        BOOST_TEST(!put(recorder, 1, whole + n));
        BOOST_TEST(errno == ENOTTY);
        BOOST_TEST(elapsed_ns(begun) >= 5'000'000U);
        BOOST_TEST(elapsed_ns(begun) < ages_ns);
    }
    const auto all = account_of(recorder);
    const auto& lane = only_lane(all);
    BOOST_TEST(lane.numbers == numbers(0, whole), boost::test_tools::per_element());
    BOOST_TEST(lane.gaps == (std::vector<loss>{{whole, 4, loss_cause::refused}}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_blocked_writer_goes_on_as_soon_as_a_reader_gives_room) {
    auto options = smallest(tr::full_mode::block);
    options.block_for = std::chrono::nanoseconds{4 * ages_ns};
    tr::recorder recorder(options);
    BOOST_TEST(fill(recorder, 0, whole) == whole);
    const test::hands_on trace(recorder);
    std::atomic<std::uint64_t> waiting{0};
    std::atomic<bool> went_on{false};
    const auto begun = std::chrono::steady_clock::now();
    std::thread writer([&] {
        ++waiting;
        went_on = put(recorder, 2, 0);
    });
    wait_until(waiting, 1);
    ::usleep(20'000);
    BOOST_TEST(!went_on.load());
    BOOST_REQUIRE(trace.free(0));
    writer.join();
    BOOST_TEST(went_on.load());
    BOOST_TEST(elapsed_ns(begun) < ages_ns);
    const auto all = account_of(recorder);
    BOOST_TEST(all.of(2) == std::vector<std::uint64_t>{0}, boost::test_tools::per_element());
    BOOST_TEST(all.lost()[loss_cause::refused] == 0U);
}

BOOST_AUTO_TEST_CASE(a_writer_waits_where_half_are_held_by_others) {
    auto options = smallest(tr::full_mode::block);
    options.block_for = std::chrono::nanoseconds{4 * ages_ns};
    tr::recorder recorder(options);
    std::latch held(4);
    std::latch end(1);
    std::vector<std::thread> holders;
    for (std::uint64_t who = 1; who <= 4; ++who) {
        holders.emplace_back([&, who] {
            static_cast<void>(put(recorder, who, 0));
            held.count_down();
            end.wait();
        });
    }
    held.wait();
    std::thread fifth([&] { static_cast<void>(put(recorder, 5, 0)); });
    ::usleep(5'000);
    end.count_down();
    for (auto& each : holders) each.join();
    fifth.join();
    const auto all = account_of(recorder);
    BOOST_TEST(all.lost().total() == 0U);
    for (std::uint64_t who = 1; who <= 5; ++who) BOOST_TEST(all.of(who).size() == 1U);
}

BOOST_AUTO_TEST_CASE(writers_that_wait_for_their_reader_lose_nothing) {
    constexpr std::uint64_t writers = 3;
    const std::uint64_t each = test::repeated(20'000, 1000);
    auto options = smallest(tr::full_mode::block);
    options.block_for = std::chrono::nanoseconds{4 * ages_ns};
    tr::recorder recorder(options);
    const test::hands_on trace(recorder);
    std::atomic<std::uint64_t> running{writers};
    std::atomic<std::uint64_t> done{0};
    std::vector<std::thread> threads;
    for (std::uint64_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            done += fill(recorder, 0, each, w);
            recorder.flush_thread();
            --running;
        });
    }
    std::vector<std::vector<std::uint64_t>> seen(writers);
    std::vector<std::uint64_t> words(512 / 8);
    // Takes the oldest of those that are closed. Positions may be missing: a writer passes what is
    // held at that moment, however soon it is given back.
    for (bool last = false;; last = running.load() == 0) {
        std::uint64_t slot = oldest_closed(trace);
        // One of the same lane may have been closed behind where the first look had come.
        if (slot != none) slot = oldest_closed(trace);
        if (slot == none) {
            if (last) break;
            ::usleep(20);
            continue;
        }
        tr::sub_buffer_copy copy;
        BOOST_REQUIRE(
            (tr::copy_sub_buffer(&trace.sub_buffer(slot), words, copy) == tr::copy_result::copied));
        const auto fault = tr::walk_records(words, copy, [&](auto at, auto, auto) {
            seen.at(static_cast<std::size_t>(words[at + 1])).push_back(words[at + 2]);
        });
        BOOST_REQUIRE(fault == 0U);
        BOOST_REQUIRE(trace.free(slot));
    }
    for (auto& thread : threads) thread.join();
    BOOST_TEST(done.load() == writers * each);
    for (const auto& numbers_of_one : seen) BOOST_TEST((numbers_of_one == numbers(0, each)));
    BOOST_TEST(recorder.statistics().overwritten == 0U);
    BOOST_TEST(account_of(recorder).lost()[loss_cause::refused] == 0U);
}

BOOST_AUTO_TEST_CASE(a_trace_that_extends_grows_to_its_limit_and_then_discards_or_overwrites) {
    const test::folder folder;
    for (const bool discards : {true, false}) {
        for (const bool in_file : {true, false}) {
            for (const std::uint64_t step : {1U, 512U, 5U * 512, 1U << 20}) {
                const std::string file = folder / "a.trace";
                auto options = smallest(discards ? tr::full_mode::extend_then_discard
                                                 : tr::full_mode::extend_then_overwrite,
                                        in_file ? file : std::string());
                options.limit = 20 * 512;
                options.step = step;
                options.exists = tr::if_exists::replace;
                tr::recorder recorder(options);
                const auto bytes_for = [&](std::uint64_t count) {
                    const auto plan = test::hands_on(recorder).plan();
                    return std::min(plan.bytes_for(count) + tr::impl::stray_bytes, plan.file_limit);
                };
                BOOST_TEST(fill(recorder, 0, whole) == whole);
                BOOST_TEST(recorder.statistics().sub_buffers == 8U);
                if (in_file) BOOST_TEST(std::filesystem::file_size(file) == bytes_for(8));
                // The next record makes it grow by one step, or to the limit.
                BOOST_TEST(fill(recorder, whole, whole + 1) == 1U);
                const std::uint64_t grown =
                    std::min<std::uint64_t>(20, 8 + std::max<std::uint64_t>(1, step / 512));
                BOOST_TEST(recorder.statistics().sub_buffers == grown);
                if (in_file) BOOST_TEST(std::filesystem::file_size(file) == bytes_for(grown));
                constexpr std::uint64_t most = 20 * fit_in_512;
                constexpr std::uint64_t tried = most + 100;
                const std::uint64_t done = whole + 1 + fill(recorder, whole + 1, tried);
                BOOST_TEST(recorder.statistics().sub_buffers == 20U);
                if (in_file) BOOST_TEST(std::filesystem::file_size(file) == bytes_for(20));
                const auto all = account_of(recorder);
                const auto& lane = only_lane(all);
                if (discards) {
                    BOOST_TEST(done == most);
                    BOOST_TEST((lane.numbers == numbers(0, most)));
                    BOOST_TEST(lane.gaps == (std::vector<loss>{{most, 100, loss_cause::refused}}),
                               boost::test_tools::per_element());
                    BOOST_TEST(recorder.statistics().overwritten == 0U);
                } else {
                    // 100 records more have taken six sub-buffers, the last of which is not full.
                    constexpr std::uint64_t gone = 6 * fit_in_512;
                    BOOST_TEST(done == tried);
                    BOOST_TEST((lane.numbers == numbers(gone, tried)));
                    BOOST_TEST(lane.gaps == (std::vector<loss>{{0, gone, loss_cause::overwritten}}),
                               boost::test_tools::per_element());
                    BOOST_TEST(recorder.statistics().overwritten == gone);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(threads_that_make_a_trace_grow_at_once_lose_nothing_below_its_limit) {
    const test::folder folder;
    constexpr std::uint64_t threads = 4;
    const std::uint64_t each = test::repeated(10'000, 500);
    auto options = smallest(tr::full_mode::extend_then_discard, folder / "a.trace");
    options.limit = 4 * 512 * (threads * each / fit_in_512);
    tr::recorder recorder(options);
    std::vector<std::thread> all;
    std::atomic<std::uint64_t> done{0};
    for (std::uint64_t t = 0; t < threads; ++t) {
        all.emplace_back([&, t] { done += fill(recorder, 0, each, t); });
    }
    for (auto& thread : all) thread.join();
    BOOST_TEST(done.load() == threads * each);
    const auto seen = account_of(recorder);
    for (std::uint64_t t = 0; t < threads; ++t) BOOST_TEST((seen.of(t) == numbers(0, each)));
    BOOST_TEST(seen.lost().total() == 0U);
    BOOST_TEST(recorder.statistics().held == 0U);
}

namespace {

constexpr tr::full_mode each_full_mode[] = {
    tr::full_mode::overwrite_oldest, tr::full_mode::discard_newest, tr::full_mode::stop,
    tr::full_mode::block, tr::full_mode::extend_then_overwrite};

}  // namespace

BOOST_AUTO_TEST_CASE(writers_that_find_few_sub_buffers_left_share_them_and_lose_nothing) {
    constexpr std::uint64_t threads = 12;
    for (const auto full : each_full_mode) {
        auto options = smallest(full);
        options.limit = options.size;
        tr::recorder recorder(options);
        std::atomic<std::uint64_t> turn{0};
        std::atomic<std::uint64_t> step{0};
        std::atomic<std::uint64_t> kept{0};
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                for (std::uint64_t n = 0; n < 2; ++n) {
                    wait_until(turn, n * threads + t + 1);
                    kept += put(recorder, t, n) ? 1 : 0;
                    ++step;
                }
                wait_until(turn, 3 * threads);  // none ends before the last has recorded
            });
        }
        for (std::uint64_t t = 0; t < 2 * threads; ++t) {
            turn = t + 1;
            wait_until(step, t + 1);
            // Three of the four that may be held belong to a thread. The last is lent.
            BOOST_TEST(recorder.statistics().held <= 3U);
        }
        BOOST_TEST(recorder.statistics().held == 3U);
        BOOST_TEST(kept.load() == 2 * threads);
        const auto seen = account_of(recorder);
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(seen.lost().total() == 0U);
        for (std::uint64_t t = 0; t < threads; ++t)
            BOOST_TEST(seen.of(t) == numbers(0, 2), boost::test_tools::per_element());
        BOOST_TEST(recorder.statistics().writers == 0U);
        BOOST_TEST(recorder.statistics().recommended_size == 0U);
        turn = 3 * threads;
        for (auto& each : all) each.join();
        BOOST_TEST(recorder.statistics().held == 0U);
    }
}

BOOST_AUTO_TEST_CASE(who_comes_while_half_of_the_ring_is_held_by_open_records_is_counted) {
    constexpr std::size_t threads = 12;
    for (const auto full : each_full_mode) {
        auto options = smallest(full);
        options.limit = options.size;
        options.block_for = std::chrono::milliseconds{3};
        tr::recorder recorder(options);
        std::atomic<std::uint64_t> turn{0};
        std::atomic<std::uint64_t> step{0};
        std::vector<std::vector<bool>> kept(threads);
        std::vector<std::thread> all;
        for (std::size_t t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                wait_until(turn, t + 1);
                if (t < 4) {
                    auto open =
                        recorder.reserve<test::numbered>(std::uint64_t{t}, std::uint64_t{0});
                    kept[t].push_back(static_cast<bool>(open));
                    ++step;
                    wait_until(turn, threads + 1);
                    open.commit();
                    return;
                }
                const auto begun = std::chrono::steady_clock::now();
                kept[t].push_back(put(recorder, t, 0));
                if (full == tr::full_mode::block) BOOST_TEST(elapsed_ns(begun) >= 3'000'000U);
                ++step;
                wait_until(turn, threads + 1 + t);
                kept[t].push_back(put(recorder, t, 1));
                ++step;
                wait_until(turn, 3 * threads);
            });
        }
        for (std::uint64_t t = 0; t < threads; ++t) {
            turn = t + 1;
            wait_until(step, t + 1);
        }
        auto counters = recorder.statistics();
        BOOST_TEST(counters.held == 4U);
        BOOST_TEST(account_of(recorder).lost()[loss_cause::refused] == 8U);
        // It says what would have been enough: the thread that runs the tests may count, too.
        BOOST_TEST((counters.writers == threads || counters.writers == threads + 1));
        BOOST_TEST(counters.recommended_size == (counters.writers == threads ? 32U : 64U) * 512);
        BOOST_TEST(counters.recommended_lanes > threads);
        turn = threads + 1;
        for (std::size_t t = 0; t < 4; ++t) all[t].join();
        BOOST_TEST(recorder.statistics().held == 0U);
        for (std::uint64_t t = 4; t < threads; ++t) {
            turn = threads + 1 + t;
            wait_until(step, threads + t - 3);
        }
        BOOST_TEST(recorder.statistics().held == 3U);
        const auto seen = account_of(recorder);
        turn = 3 * threads;
        for (std::size_t t = 4; t < threads; ++t) all[t].join();
        BOOST_TEST(recorder.statistics().held == 0U);

        for (std::size_t t = 0; t < threads; ++t) {
            const auto expected = t < 4 ? std::vector{true} : std::vector{false, true};
            BOOST_TEST((kept[t] == expected), "thread " << t);
            const std::vector<std::uint64_t> read{t < 4 ? 0U : 1U};
            BOOST_TEST(seen.of(t) == read, boost::test_tools::per_element());
        }
        BOOST_TEST(seen.strange == 0U);
        BOOST_TEST(seen.lost().total() == 8U);
        BOOST_TEST(seen.lost()[loss_cause::refused] == 8U);
    }
}

BOOST_AUTO_TEST_CASE(a_writer_that_finds_no_lane_waits_for_one_too) {
    for (const bool ends_in_time : {false, true}) {
        auto options = smallest(tr::full_mode::block);
        options.lanes = 1;
        options.block_for = std::chrono::nanoseconds{ends_in_time ? 4 * ages_ns : 5'000'000};
        tr::recorder recorder(options);
        std::atomic<std::uint64_t> step{0};
        std::thread owner([&] {
            static_cast<void>(put(recorder, 1, 0));
            ++step;
            wait_until(step, 2);
            if (ends_in_time) ::usleep(5'000);
            if (!ends_in_time) wait_until(step, 3);
        });
        wait_until(step, 1);
        ++step;
        const auto begun = std::chrono::steady_clock::now();
        const bool kept = put(recorder, 2, 0);
        ++step;
        owner.join();
        BOOST_TEST(kept == ends_in_time);
        BOOST_TEST((ends_in_time || elapsed_ns(begun) >= 5'000'000U));
        BOOST_TEST(elapsed_ns(begun) < ages_ns);
        const auto all = account_of(recorder);
        BOOST_TEST(all.of(1).size() == 1U);
        BOOST_TEST(all.of(2).size() == (ends_in_time ? 1U : 0U));
        BOOST_TEST(all.without_lane[loss_cause::refused] == (ends_in_time ? 0U : 1U));
        BOOST_TEST((recorder.statistics().writers != 0) == !ends_in_time);
    }
}

BOOST_AUTO_TEST_SUITE_END()
