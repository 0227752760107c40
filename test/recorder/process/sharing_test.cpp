// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Several processes in one trace, some of which are killed: what they held is taken back when it
/// is needed, what they recorded stays until it is overwritten, and nothing is lost uncounted,
/// wherever a process stood when it died.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <proof.hpp>
#include <recorder/account.hpp>
#include <recorder/holders.hpp>
#include <recorder/scratch.hpp>
#include <shared_board.hpp>

BOOST_AUTO_TEST_SUITE(sharing)

namespace tr = trace_ring;
using test::account_of;
using test::first;
using test::fit_in_512;
using test::holders;
using test::put;
using test::shared_board;
using test::wait_until;
using tr::loss_cause;
using tr::sub_buffer_state;

namespace {

/// Kills a child, and waits until it has ended, but leaves it to be waited for.
void kill_unreaped(pid_t child) {
    ::kill(child, SIGKILL);
    siginfo_t info{};
    BOOST_REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
}

enum class place { file, memory_file, memory };
/// A trace that a child shares, of 16 of the smallest sub-buffers. In a file, the child joins by
/// itself (`parent` comes later); in memory it gets it by the fork.
tr::recorder_options in(place where, const std::string& file) {
    return {.file = where == place::file ? file : std::string(),
            .memory_file = where == place::memory_file,
            .size = 16 * 512,
            .sub_buffer_bytes = 512,
            .exists = tr::if_exists::attach};
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    what_a_killed_process_held_is_taken_back_when_it_is_needed_and_read_till_then) {
    if (test::under_tsan) return;  // it does not follow a fork into threads
    constexpr std::uint64_t threads = 5;
    for (const place where : {place::file, place::memory_file, place::memory}) {
        for (const bool reaped : {false, true}) {
            const test::folder folder;
            const auto options = in(where, folder / "a.trace");
            const shared_board told;
            std::optional<tr::recorder> recorder;
            if (where != place::file) recorder.emplace(options);
            const pid_t child = test::start_child([&]() -> int {
                if (where == place::file) recorder.emplace(options);
                std::vector<std::thread> all;
                for (std::uint64_t t = 0; t < threads; ++t) {
                    all.emplace_back([&, t] {
                        for (std::uint64_t n = 0; n < 5; ++n) {
                            // One at a time; a forked child's first takes the process's entry.
                            while (told->ready.load() != n * threads + t) ::usleep(50);
                            if (put(*recorder, 100 + t, n)) ++told->recorded[t];
                            ++told->ready;
                        }
                        for (;;) ::pause();
                    });
                }
                for (;;) ::pause();
            });
            wait_until(told->ready, 5 * threads);
            kill_unreaped(child);
            if (reaped) BOOST_TEST(test::wait_for(child) == -SIGKILL);
            if (where == place::file) recorder.emplace(options);
            const test::hands_on trace(*recorder);

            // The dead hold five of sixteen. The living continue around them, over and over: they
            // lack nothing, and the dead writers' sub-buffers are not touched.
            BOOST_TEST(recorder->statistics().held == threads);
            std::uint64_t mine = 0;
            for (; mine < 1000; ++mine) BOOST_REQUIRE(put(*recorder, 1, mine));
            BOOST_TEST(recorder->statistics().reclaimed == 0U);
            auto seen = account_of(*recorder);
            BOOST_TEST(seen.strange == 0U);
            for (std::uint64_t t = 0; t < threads; ++t) {
                BOOST_TEST(seen.of(100 + t) == first(5), boost::test_tools::per_element());
            }
            BOOST_TEST(seen.lost()[loss_cause::refused] == 0U);

            // Two more writers: only what is lent is left of the half that may be held, so they
            // look for the dead, and all get their place.
            {
                const holders two(*recorder, 2, 2);
                BOOST_TEST(two.kept() == 2U);
                BOOST_TEST(recorder->statistics().reclaimed == threads);
                BOOST_TEST(recorder->statistics().held == 3U);
                BOOST_TEST(trace.count(sub_buffer_state::active) == 3U);
            }
            seen = account_of(*recorder);
            for (std::uint64_t t = 0; t < threads; ++t) {
                BOOST_TEST(seen.of(100 + t) == first(5), boost::test_tools::per_element());
            }
            // Now they are overwritten like any, and counted.
            for (; mine < 2000; ++mine) BOOST_REQUIRE(put(*recorder, 1, mine));
            seen = account_of(*recorder);
            BOOST_TEST(seen.strange == 0U);
            for (std::uint64_t t = 0; t < threads; ++t) BOOST_TEST(seen.of(100 + t).empty());
            const std::uint64_t all = 2000 + 2 + 5 * threads;
            BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == all);
            BOOST_TEST(seen.lost().total() == seen.lost()[loss_cause::overwritten]);
            BOOST_TEST(recorder->statistics().overwritten == seen.lost()[loss_cause::overwritten]);
            for (const auto& [number, lane] : seen.lanes) {
                if (lane.pid == static_cast<std::uint32_t>(child)) BOOST_TEST(lane.total() == 5U);
            }
            if (!reaped) BOOST_TEST(test::wait_for(child) == -SIGKILL);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_process_that_lives_keeps_what_it_holds_however_much_others_want_it) {
    if (test::under_tsan) return;  // as above
    const test::folder folder;
    const auto options = in(place::file, folder / "a.trace");
    const shared_board told;
    const pid_t child = test::start_child([&]() -> int {
        tr::recorder recorder(options);
        const holders all(recorder, 6, 100);
        told->recorded[0] = all.kept();
        told->ready = 1;
        for (;;) ::pause();
    });
    wait_until(told->ready, 1);
    BOOST_TEST(told->recorded[0].load() == 6U);
    {
        tr::recorder recorder(options);
        const holders others(recorder, 10, 1);
        BOOST_TEST(others.kept() == 10U);  // with what is lent of half of sixteen
        BOOST_TEST(recorder.statistics().held == 6U);
        BOOST_TEST(recorder.statistics().reclaimed == 0U);
        const auto seen = account_of(recorder);
        BOOST_TEST(seen.of(100).size() == 6U);
        BOOST_TEST(seen.of(1).size() == 10U);
        BOOST_TEST(seen.lost().total() == 0U);
    }
    ::kill(child, SIGKILL);
    BOOST_TEST(test::wait_for(child) == -SIGKILL);
}

BOOST_AUTO_TEST_CASE(processes_killed_one_after_the_other_wear_nothing_out) {
    if (test::under_tsan) return;  // as above
    const test::folder folder;
    auto options = in(place::file, folder / "a.trace");
    options.size = 32 * 512;
    options.processes = 64;
    options.programs = 2;  // so that the gates of the dead are used again
    tr::recorder recorder(options);
    std::uint64_t by_dead = 0;
    std::uint64_t mine = 0;
    // While one takes back what the dead held, others may be refused, and are counted: nobody
    // waits.
    const auto go_on = [&] { mine += put(recorder, 1, mine) ? 1 : 0; };
    const std::uint64_t rounds = test::repeated(40, 10);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const shared_board told;
        const pid_t child = test::start_child([&]() -> int {
            tr::recorder own(options);
            std::vector<std::thread> all;
            for (std::uint64_t t = 0; t < 3; ++t) {
                all.emplace_back([&, t] {
                    for (std::uint64_t n = 0; n < 30; ++n) {
                        if (put(own, 100 + t, n)) ++told->recorded[t];
                    }
                    ++told->ready;
                    for (std::uint64_t n = 30;; ++n) {
                        if (round % 2 == 0) ::pause();
                        if (put(own, 100 + t, n)) ++told->recorded[t];
                    }
                });
            }
            for (;;) ::pause();
        });
        while (told->ready.load() < 3) {
            go_on();
            ::usleep(100);
        }
        ::kill(child, SIGKILL);
        BOOST_TEST(test::wait_for(child) == -SIGKILL);
        for (int i = 0; i < 100; ++i) go_on();
        for (int t = 0; t < 3; ++t) by_dead += told->recorded[t].load();
    }
    // Including everything that the last of them held.
    {
        const holders all(recorder, 12 + 64, 2);
        BOOST_TEST(all.kept() == 12U + 64);
        mine += 12 + 64;
    }
    recorder.flush_thread();
    BOOST_TEST(recorder.statistics().held == 0U);
    const test::hands_on trace(recorder);
    BOOST_TEST(trace.count(sub_buffer_state::active) + trace.count(sub_buffer_state::reset) == 0U);
    BOOST_TEST(recorder.statistics().reclaimed > rounds);
    const auto seen = account_of(recorder);
    BOOST_TEST(seen.strange == 0U);
    const tr::layout::ring_state& ring = trace.ring();
    const std::uint64_t folded = ring.folded_written.load(tr::relaxed);
    BOOST_TEST_MESSAGE(by_dead << " records of the dead, " << mine << " of the living, " << folded
                               << " of lanes long gone");
    const auto lost = seen.lost();
    BOOST_TEST(lost.total() == lost[loss_cause::overwritten] + lost[loss_cause::refused]);
    const std::uint64_t told_of = seen.read() + lost[loss_cause::overwritten];
    // A record may have been committed whose writer did not come to say so.
    BOOST_TEST(told_of >= mine + by_dead);
    BOOST_TEST(told_of <= mine + by_dead + 3 * rounds);
}

namespace {

/// A clock that kills its process at a reading of one's choice: before a sub-buffer is closed, it
/// is still active; where a claim that may have waited reads the clock anew, the next is in
/// `reset`.
struct deadly_clock {
    using family = tr::family::clock;
    static constexpr std::uint32_t kind = tr::clock::monotonic::kind;
    static inline std::uint64_t left = 0;  ///< readings; 0: as many as it likes

    static std::uint64_t now() noexcept {
        if (left != 0 && --left == 0) ::kill(::getpid(), SIGKILL);
        return tr::clock::monotonic::now();
    }
    static bool usable() noexcept { return true; }
    static double ticks_per_second() noexcept { return 1e9; }
};
struct deadly : tr::policies<deadly_clock> {};

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_dies_at_any_reading_of_the_clock_leaves_nothing_behind) {
    const test::folder folder;
    int dead_in_reset = 0;
    int dead_while_active = 0;
    for (const auto full : {tr::full_mode::overwrite_oldest, tr::full_mode::block}) {
        const bool overwrites = full == tr::full_mode::overwrite_oldest;
        const std::uint64_t before = (overwrites ? 8 : 2) * fit_in_512;
        bool ended = false;
        for (std::uint64_t reading = 1; !ended && reading < 100; ++reading) {
            const std::string file =
                folder / (std::to_string(overwrites) + std::to_string(reading) + ".trace");
            const shared_board told;
            const tr::recorder_options options{.file = file,
                                               .size = 8 * 512,
                                               .sub_buffer_bytes = 512,
                                               .full = full,
                                               .exists = tr::if_exists::attach};
            const int status = test::in_child([&]() -> int {
                tr::basic_recorder<deadly> recorder(options);
                for (std::uint64_t n = 0; n < before; ++n) {
                    if (put(recorder, 2, n)) ++told->recorded[0];
                }
                deadly_clock::left = reading;
                if (put(recorder, 2, before)) ++told->recorded[0];
                deadly_clock::left = 0;
                ::_exit(0);
            });
            ended = status == 0;
            BOOST_TEST((ended || status == -SIGKILL));
            tr::basic_recorder<deadly> recorder(options);
            const test::hands_on trace(recorder);
            dead_in_reset += trace.count(sub_buffer_state::reset) == 1;
            dead_while_active += !ended && trace.count(sub_buffer_state::active) == 1;
            const std::uint64_t by_child = told->recorded[0].load();
            BOOST_TEST(by_child == before + (ended ? 1 : 0));
            {
                const holders all(recorder, 4, 3);
                BOOST_TEST(all.kept() == 4U);
                // Of the four that may be held, one is lent.
                BOOST_TEST(recorder.statistics().held == 3U);
                BOOST_TEST(trace.count(sub_buffer_state::active) == 3U);
                BOOST_TEST(trace.count(sub_buffer_state::reset) == 0U);
            }
            auto seen = account_of(recorder);
            BOOST_TEST(seen.strange == 0U);
            BOOST_TEST(seen.read() + seen.lost()[loss_cause::overwritten] == by_child + 4);
            BOOST_TEST(seen.lost().total() == seen.lost()[loss_cause::overwritten]);
            BOOST_TEST((overwrites || seen.lost().total() == 0U));
            BOOST_TEST(seen.of(2).back() == by_child - 1);
        }
        BOOST_TEST(ended);
    }
    BOOST_TEST(dead_in_reset > 0);
    BOOST_TEST(dead_while_active > 0);
}

BOOST_AUTO_TEST_SUITE_END()
