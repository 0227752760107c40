// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A reader that follows a trace in which more lanes end than its table remembers sees each record,
/// or of its loss: whenever it has caught up, the two add up to what was written.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(lanes_that_are_gone)

namespace reduce = trace_ring::reduce;

namespace {

struct step : trace_ring::event<"step", trace_ring::field<"n", std::uint64_t>> {};
struct vast : trace_ring::event<"vast", trace_ring::field<"n", std::array<std::uint8_t, 8000>>> {};

constexpr std::uint64_t each = 200;  // records of a thread
constexpr std::uint64_t threads = 300;

/// A trace whose table has 64 lanes, and one that follows it from its first record on.
class followed {
public:
    explicit followed(trace_ring::full_mode full = {}) : full_(full) { write(1); }

    void write(std::uint64_t records) {
        for (std::uint64_t i = 0; i < records; ++i) recorder_.record<step>(i);
        recorder_.flush_thread();
    }
    void write_in_a_thread() {
        std::thread([this] { write(each); }).join();
    }
    /// Two records that are too long for a sub-buffer, one that is not, and one more that is.
    void write_too_long_in_a_thread() {
        std::thread([this] {
            for (int i = 0; i < 2; ++i) recorder_.record<vast>(std::array<std::uint8_t, 8000>{});
            recorder_.record<step>(1);
            recorder_.record<vast>(std::array<std::uint8_t, 8000>{});
            recorder_.flush_thread();
        }).join();
    }
    /// Until nothing is new for so long that all has been given out that there was.
    void catch_up() {
        for (int quiet = 0; quiet < 3;) quiet = take() ? 0 : quiet + 1;
    }
    void stop() {
        cursor_.stop_following();
        while (take()) {
        }
    }
    [[nodiscard]] std::uint64_t accounted() const noexcept { return told_ + lost_; }
    [[nodiscard]] std::uint64_t told() const noexcept { return told_; }

private:
    bool take() {
        const reduce::item* const one = cursor_.next();
        if (one == nullptr) return false;
        if (std::holds_alternative<reduce::record_view>(*one)) {
            told_ += 1 + cursor_.records().size();
        } else if (const auto* loss = std::get_if<reduce::loss_item>(one)) {
            lost_ += loss->count;
        }
        return true;
    }

    test::folder folder_;
    trace_ring::full_mode full_;
    trace_ring::recorder recorder_{{.file = folder_ / "a.trace", .size = 64 << 10, .full = full_}};
    reduce::trace_file trace_ = reduce::trace_file::open(folder_ / "a.trace");
    reduce::cursor cursor_ = trace_.follow();
    std::uint64_t told_ = 0, lost_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(whenever_a_follower_has_caught_up_nothing_is_missing) {
    for (const std::uint64_t every : {1U, 10U, 77U, 300U}) {
        BOOST_TEST_CONTEXT("every " << every) {
            followed trace;
            for (std::uint64_t t = 1; t <= threads; ++t) {
                trace.write_in_a_thread();
                if (t % every != 0) continue;
                trace.catch_up();
                BOOST_REQUIRE(trace.accounted() == 1 + t * each);
            }
            trace.stop();
            BOOST_TEST(trace.accounted() == 1 + threads * each);
            BOOST_TEST((every != 1 || trace.told() == 1 + threads * each));
        }
    }
    trace_ring_test::proof("accounted", 4 * (1 + threads * each), "records followed");
}

BOOST_AUTO_TEST_CASE(what_lanes_lost_by_other_causes_is_told_before_and_when_they_have_gone) {
    for (const std::uint64_t every : {10U, 100U}) {
        BOOST_TEST_CONTEXT("every " << every) {
            followed full(trace_ring::full_mode::discard_newest);
            followed long_ones;
            for (std::uint64_t t = 1; t <= threads; ++t) {
                full.write_in_a_thread();
                long_ones.write_too_long_in_a_thread();
                if (t % every != 0) continue;
                full.catch_up();
                BOOST_REQUIRE(full.accounted() == 1 + t * each);
                long_ones.catch_up();
                BOOST_REQUIRE(long_ones.accounted() == 1 + t * 4);
            }
            full.stop();
            BOOST_TEST(full.accounted() == 1 + threads * each);
            long_ones.stop();
            BOOST_TEST(long_ones.accounted() == 1 + threads * 4);
        }
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_missing_while_lanes_go_beside_the_follower) {
    constexpr unsigned writers = 4;
    const unsigned rounds = trace_ring_test::repeats(test::scale > 10 ? 4 : 16);
    for (unsigned round = 0; round < rounds; ++round) {
        followed trace;
        std::atomic<unsigned> over{0};
        std::vector<std::thread> running;
        for (unsigned w = 0; w < writers; ++w) {
            running.emplace_back([&] {
                for (std::uint64_t t = 0; t < threads / writers; ++t) trace.write_in_a_thread();
                ++over;
            });
        }
        while (over.load() < writers) trace.catch_up();
        for (auto& each_of_them : running) each_of_them.join();
        trace.catch_up();
        BOOST_REQUIRE(trace.accounted() == 1 + threads * each);
    }
    trace_ring_test::proof("accounted", rounds * (1 + threads * each), "records followed");
}

BOOST_AUTO_TEST_SUITE_END()
