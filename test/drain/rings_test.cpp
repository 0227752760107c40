// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Recorders with several rings, rings that grow, and lanes by processor, drained in place: each
// record is handed over once, in the order of its writer, or reported as lost.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>

#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(drain_several_rings)

namespace tr = trace_ring;
using test::by_cpu;
using test::by_thread;
using test::kinds;
using tr::full_mode;
using tr::loss_cause;

namespace {

template <std::uint32_t Ring>
struct in_ring
    : tr::event<"in_ring", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = Ring;
};

/// The numbers that a session received from each writer in each ring (`who` identifies both).
struct handed_over {
    std::map<std::uint64_t, std::vector<std::uint64_t>> of;
    std::uint64_t strange = 0;

    void operator()(const tr::drained_sub_buffer& portion) {
        const std::uint64_t seen = portion.visit([&](const tr::drained_record& record) {
            if (record.payload.size() != 2) {
                ++strange;
                return;
            }
            of[record.payload[0]].push_back(record.payload[1]);
        });
        strange += seen == portion.records() ? 0 : 1;
    }
    [[nodiscard]] std::uint64_t records() const {
        std::uint64_t sum = 0;
        for (const auto& [who, numbers] : of) sum += numbers.size();
        return sum;
    }
};

/// As they were handed over: in the order written, unless they are from several processors' lanes.
template <class Kind>
std::vector<std::uint64_t> in_order(std::vector<std::uint64_t> numbers) {
    if (std::is_same_v<Kind, by_cpu>) std::sort(numbers.begin(), numbers.end());
    for (std::size_t i = 1; i < numbers.size(); ++i) {
        if (numbers[i] <= numbers[i - 1]) BOOST_FAIL(numbers[i] << " after " << numbers[i - 1]);
    }
    return numbers;
}

constexpr std::uint64_t who_in(std::uint64_t ring, std::uint64_t writer) {
    return ring * 1000 + writer;
}
template <std::uint32_t Ring, class Kind>
bool put(tr::basic_recorder<Kind>& to, std::uint64_t writer, std::uint64_t n) {
    return to.template record<in_ring<Ring>>(who_in(Ring, writer), n);
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(each_ring_is_drained_whatever_the_others_do, Kind, kinds) {
    tr::basic_recorder<Kind> recorder(
        {.size = 64 * 512, .quotas = {8 * 512, 16 * 512}, .sub_buffer_bytes = 512});
    tr::drain::session session(recorder);
    handed_over got;
    // Many times round the first ring, a few times round the others.
    std::uint64_t written[3] = {};
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        BOOST_REQUIRE(put<0>(recorder, 0, written[0]++));
        if (n % 40 == 0) BOOST_REQUIRE(put<1>(recorder, 0, written[1]++));
        if (n % 10 == 0) BOOST_REQUIRE(put<2>(recorder, 0, written[2]++));
        if (n % 200 == 0) session.for_each(got);
    }
    session.finish(got);
    BOOST_TEST(got.strange == 0U);
    BOOST_TEST(session.lost().total() == 0U);
    for (std::uint64_t ring = 0; ring < 3; ++ring) {
        const auto numbers = in_order<Kind>(got.of[who_in(ring, 0)]);
        BOOST_REQUIRE(numbers.size() == written[ring]);
        BOOST_TEST(numbers.back() == written[ring] - 1);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_overwritten_in_a_ring_is_told, Kind, kinds) {
    tr::basic_recorder<Kind> recorder(
        {.size = 64 * 512, .quotas = {8 * 512, 16 * 512}, .sub_buffer_bytes = 512});
    for (std::uint64_t n = 0; n < 5'000; ++n) {
        BOOST_REQUIRE(put<0>(recorder, 0, n));
        BOOST_REQUIRE(put<1>(recorder, 0, n));
        BOOST_REQUIRE(put<2>(recorder, 0, n));
    }
    tr::drain::session session(recorder);
    handed_over got;
    session.finish(got);
    BOOST_TEST(got.strange == 0U);
    BOOST_TEST(got.records() + session.lost()[loss_cause::overwritten] == 15'000U);
    BOOST_TEST(session.lost().total() == session.lost()[loss_cause::overwritten]);
    BOOST_TEST(session.lost().total() == recorder.statistics().overwritten);
    for (std::uint64_t ring = 0; ring < 3; ++ring) {
        const auto numbers = in_order<Kind>(got.of[who_in(ring, 0)]);
        BOOST_REQUIRE(!numbers.empty());
        BOOST_TEST(numbers.back() == 4'999U);
        if (std::is_same_v<Kind, by_thread>) BOOST_TEST(numbers.size() == 5'000 - numbers.front());
    }
    BOOST_TEST(got.of[who_in(1, 0)].size() < got.of[who_in(2, 0)].size());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(many_threads_in_rings_that_grow_and_wait_lose_nothing, Kind, kinds) {
    constexpr std::uint32_t threads = 6;
    const std::uint64_t each = test::repeated(20'000, 1'000);
    tr::basic_recorder<Kind> recorder({.size = 128 * 512,
                                       .quotas = {32 * 512, 32 * 512},
                                       .limit = 1024 * 512,
                                       .step = 16 * 512,
                                       .sub_buffer_bytes = 512,
                                       .full = full_mode::block,
                                       .block_for = std::chrono::seconds{100}});
    tr::drain::session session(recorder);
    std::atomic<std::uint32_t> running{threads};
    std::atomic<std::uint64_t> refused{0};
    std::vector<std::thread> all;
    for (std::uint32_t who = 0; who < threads; ++who) {
        all.emplace_back([&, who] {
            for (std::uint64_t n = 0; n < each; ++n) {
                refused += put<0>(recorder, who, n) ? 0 : 1;
                refused += put<1>(recorder, who, n) ? 0 : 1;
                refused += put<2>(recorder, who, n) ? 0 : 1;
            }
            --running;
        });
    }
    handed_over got;
    while (running != 0) session.for_each(got);
    for (auto& thread : all) thread.join();
    session.finish(got);
    BOOST_TEST(refused == 0U);
    BOOST_TEST(got.strange == 0U);
    BOOST_TEST(session.lost().total() == 0U);
    BOOST_TEST(got.records() == 3 * threads * each);
    BOOST_TEST(got.of.size() == 3 * threads);
    for (const auto& [who, numbers] : got.of) {
        BOOST_TEST(in_order<Kind>(numbers).size() == each, "writer " << who);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_that_grows_while_it_is_drained_is_drained_whole, Kind, kinds) {
    for (const auto keep : {std::chrono::nanoseconds{0}, std::chrono::nanoseconds{20'000}}) {
        tr::basic_recorder<Kind> recorder({.size = 16 * 512,
                                           .quotas = {8 * 512},
                                           .limit = 256 * 512,
                                           .step = 8 * 512,
                                           .sub_buffer_bytes = 512,
                                           .full = full_mode::extend_then_overwrite,
                                           .keep_for = keep});
        tr::drain::session session(recorder);
        handed_over got;
        std::uint64_t n = 0;
        for (std::uint64_t round = 0; round < 40; ++round) {
            // More at a time than there was room for at first; at last, than there is at most.
            const std::uint64_t count = round < 35 ? 10 * round : 6'000;
            for (std::uint64_t i = 0; i < count; ++i) BOOST_REQUIRE(put<0>(recorder, 0, n++));
            session.for_each(got);
        }
        session.finish(got);
        BOOST_TEST(got.strange == 0U);
        const auto numbers = in_order<Kind>(got.of[who_in(0, 0)]);
        BOOST_TEST(numbers.size() + session.lost()[loss_cause::overwritten] == n);
        BOOST_TEST(session.lost()[loss_cause::overwritten] > 0U);
        BOOST_TEST(numbers.back() == n - 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
