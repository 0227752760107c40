// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Positions drawn ahead: by whom, how many, and that nothing is lost by it that should be kept.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>

BOOST_AUTO_TEST_SUITE(runs)

namespace tr = trace_ring;
using test::fit_in_512;
using tr::position;

namespace {

constexpr std::uint64_t ring_size = 512;
constexpr std::uint64_t longest = 16;

tr::recorder_options ring_of(std::uint64_t sub_buffers) {
    return {.size = sub_buffers * 512, .sub_buffer_bytes = 512};
}

position newest_of(const tr::recorder& recorder) {
    return test::hands_on(recorder).ring().cursor.load(tr::relaxed);
}

/// One thread that fills sub-buffers.
struct filler {
    tr::recorder& recorder;
    std::uint64_t who;
    std::uint64_t n = 0;

    void one_record() { BOOST_REQUIRE(test::put(recorder, who, n++)); }
    /// So many that as many sub-buffers are claimed, and the last is full.
    void fill(std::uint64_t sub_buffers) {
        for (std::uint64_t i = 0; i < sub_buffers * fit_in_512; ++i) one_record();
    }
    /// As far as the first record in another sub-buffer.
    void begin_next() {
        for (; n % fit_in_512 != 0;) one_record();
        one_record();
    }
};

/// A thread that executes commands, step by step.
class helper {
public:
    helper()
        : thread_([this] {
              for (;;) {
                  step_.arrive_and_wait();
                  if (!what_) return;
                  what_();
                  step_.arrive_and_wait();
              }
          }) {}
    ~helper() {
        what_ = nullptr;
        step_.arrive_and_wait();
        thread_.join();
    }
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;

    void operator()(std::function<void()> what) {
        what_ = std::move(what);
        step_.arrive_and_wait();
        step_.arrive_and_wait();
    }

private:
    std::function<void()> what_;
    std::barrier<> step_{2};
    std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_that_records_much_draws_up_to_16_at_once) {
    tr::recorder recorder(ring_of(ring_size));
    filler busy{recorder, 1};
    std::map<std::uint64_t, int> steps;
    position before = 0;
    for (std::uint64_t filled = 1; filled <= 1000; ++filled) {
        busy.fill(1);
        const position now = newest_of(recorder);
        // At most an eighth of the number drawn before.
        BOOST_REQUIRE(now >= filled);
        BOOST_REQUIRE(now - filled <= std::min(filled / 8, longest - 1));
        ++steps[now - before];
        before = now;
    }
    BOOST_TEST(steps.rbegin()->first == longest);
    BOOST_TEST(steps[longest] > 40);
    BOOST_TEST(steps[1] == 16);
}

BOOST_AUTO_TEST_CASE(in_a_small_ring_or_one_that_keeps_the_oldest_each_is_drawn_alone) {
    for (const auto& options : {ring_of(32), ring_of(63)}) {
        tr::recorder recorder(options);
        filler busy{recorder, 1};
        busy.fill(400);
        BOOST_TEST(newest_of(recorder) == 400U);
    }
    tr::recorder_options options = ring_of(ring_size);
    options.full = tr::full_mode::discard_newest;
    tr::recorder recorder(options);
    filler busy{recorder, 1};
    busy.fill(ring_size);
    BOOST_TEST(newest_of(recorder) == ring_size);
    BOOST_TEST(test::account_of(recorder).read() == ring_size * fit_in_512);
}

BOOST_AUTO_TEST_CASE(a_thread_that_comes_back_seldom_draws_single_ones) {
    tr::recorder recorder(ring_of(ring_size));
    filler busy{recorder, 1};
    helper other;
    filler seldom{recorder, 2};
    for (int round = 0; round < 60; ++round) {
        busy.fill(ring_size / 16 + longest);
        const position before = newest_of(recorder);
        other([&] { seldom.fill(1); });
        BOOST_REQUIRE(newest_of(recorder) == before + 1);
    }
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_for_as_long_as_others_stay_near) {
    tr::recorder recorder(ring_of(ring_size));
    filler busy{recorder, 1};
    busy.fill(300);
    helper other;
    filler noisy{recorder, 2};
    for (const auto& [ahead, dropped] :
         {std::pair{ring_size / 16, false}, std::pair{ring_size / 8, true}}) {
        position before = newest_of(recorder);
        do {  // until a run has begun
            before = newest_of(recorder);
            busy.begin_next();
        } while (newest_of(recorder) != before + longest);
        other([&, by = ahead] { noisy.fill(by); });
        before = newest_of(recorder);
        busy.begin_next();
        BOOST_TEST((newest_of(recorder) != before) == dropped);
        busy.fill(2);
    }
    const auto all = test::account_of(recorder);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(all.read() + all.lost().total() == busy.n + noisy.n);
}

BOOST_AUTO_TEST_CASE(a_new_lane_has_no_run) {
    tr::recorder recorder(ring_of(ring_size));
    filler busy{recorder, 1};
    busy.fill(300);
    for (position before = 0; before + longest != newest_of(recorder);) {
        before = newest_of(recorder);
        busy.begin_next();
    }
    recorder.flush_thread();
    const position before = newest_of(recorder);
    busy.one_record();
    BOOST_TEST(newest_of(recorder) == before + 1);
}

BOOST_AUTO_TEST_CASE(what_is_closed_behind_a_run_that_was_drawn_is_kept) {
    int inside = 0;
    for (std::uint64_t more = 0; more < longest; more += 3) {
        tr::recorder recorder(ring_of(ring_size));
        filler busy{recorder, 1};
        busy.fill(200);
        helper other;
        helper third;
        filler slow{recorder, 2};
        filler between{recorder, 3};
        other([&] { slow.one_record(); });
        const position its = newest_of(recorder);
        third([&] { between.fill(more); });
        // A round later, the sub-buffer is in the middle of a run, and still held.
        while (newest_of(recorder) < its + ring_size) busy.begin_next();
        inside += newest_of(recorder) > its + ring_size ? 1 : 0;
        other([&] { recorder.flush_thread(); });
        busy.fill(2 * longest);
        const auto all = test::account_of(recorder);
        BOOST_TEST(all.of(2).size() == 1U);
        BOOST_TEST(all.strange == 0U);
        BOOST_TEST(all.read() + all.lost().total() == busy.n + slow.n + between.n);
        // It is passed once.
        busy.fill(2 * ring_size);
        BOOST_TEST(test::account_of(recorder).of(2).empty());
    }
    BOOST_TEST(inside > 3);
}

BOOST_AUTO_TEST_CASE(several_at_once_lose_nothing_untold_and_keep_nearly_a_whole_ring) {
    for (const std::uint64_t size : {std::uint64_t{64}, std::uint64_t{100}, ring_size}) {
        tr::recorder recorder(ring_of(size));
        constexpr std::uint64_t each = 30'000;
        std::atomic<std::uint64_t> kept{0};
        {
            std::vector<std::thread> threads;
            for (std::uint64_t who = 0; who < 4; ++who) {
                threads.emplace_back([&recorder, &kept, who] {
                    std::uint64_t mine = 0;
                    for (std::uint64_t n = 0; n < each; ++n) {
                        mine += test::put(recorder, who, n) ? 1U : 0U;
                    }
                    kept += mine;
                });
            }
            for (auto& thread : threads) thread.join();
        }
        BOOST_TEST(kept == 4 * each);
        const auto all = test::account_of(recorder);
        BOOST_TEST(all.strange == 0U);
        BOOST_TEST(all.read() + all.lost().total() == 4 * each);
        BOOST_TEST(all.lost().total() == all.lost()[tr::loss_cause::overwritten]);
        // Each sub-buffer has something, those of four half-empty lanes excepted.
        BOOST_TEST(all.read() >= (size - 8) * fit_in_512);
        for (const auto& [number, lane] : all.lanes) {
            BOOST_TEST(
                std::is_sorted(lane.numbers.begin(), lane.numbers.end(), std::less_equal<>()));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
