// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Records in the name of threads of other processes read as if these had recorded them.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <trace_ring/recorder/other_thread.hpp>
#include <trace_ring/recorder/runtime_event.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "scratch.hpp"

namespace tr = trace_ring;

namespace told {

/// A clock that the test sets.
struct clock_of_test {
    using family = tr::family::clock;
    static constexpr std::uint32_t kind = tr::clock::monotonic::kind;
    static inline std::uint64_t ns = 1'000'000'000;

    [[nodiscard]] static std::uint64_t now() noexcept { return ns; }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }
};
struct trace_of_test : tr::policies<clock_of_test> {};

}  // namespace told

template <>
inline tr::clock_snapshot tr::take_snapshot<told::clock_of_test>() noexcept {
    return take_snapshot<clock::monotonic>();
}

BOOST_AUTO_TEST_SUITE(records_of_other_threads)

namespace {

struct tick : tr::event<"tick", tr::field<"n", std::uint32_t>> {};

/// "PID/TID NAME of PROCESS: n", in the order of the times.
template <class Recorder>
std::vector<std::string> lines_of(const Recorder& recorder) {
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    std::vector<std::string> all;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const one = std::get_if<tr::reduce::record_view>(item);
        if (one == nullptr) {
            all.emplace_back(std::holds_alternative<tr::reduce::clock_jump>(*item) ? "a jump"
                                                                                   : "a loss");
            continue;
        }
        const auto& lane = one->lane();
        const bool is_known = lane.process && *lane.process < trace.processes().size();
        all.push_back(std::to_string(lane.pid) + "/" + std::to_string(lane.thread) + " " +
                      lane.name + " of " +
                      (is_known ? trace.processes()[*lane.process].name : "nobody") + ": " +
                      std::to_string(one->field("n").u64()));
    }
    return all;
}
using lines = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(they_have_its_numbers_and_names_and_others_have_their_own) {
    tr::recorder recorder{{.size = 1 << 20}};
    tr::other_process shop(recorder, 1200, 4, "a shop with a long name");
    tr::other_thread worker(shop, 1234, "worker with a long name");
    tr::other_thread second(shop, 1235, "");
    BOOST_REQUIRE((shop && worker && second));
    recorder.record<tick>(1U);
    {
        const tr::other_thread::scope as(worker);
        recorder.record<tick>(2U);
        {
            const tr::other_thread::scope inner(second);
            recorder.record<tick>(3U);
        }
        recorder.record<tick>(4U);
        const tr::other_thread::scope none;
        recorder.record<tick>(5U);
    }
    recorder.record<tick>(6U);
    const std::string own = std::to_string(::getpid()) + "/" + std::to_string(::gettid()) + " ";
    const lines all = lines_of(recorder);
    BOOST_REQUIRE(all.size() == 6U);
    BOOST_TEST((all[0].starts_with(own) && all[5].starts_with(own)));
    const std::string its = "1200/1234 worker with a lo of a shop with a long name: ";
    BOOST_TEST(all[1] == its + "2");
    BOOST_TEST(all[2] == "1200/1235  of a shop with a long name: 3");
    BOOST_TEST(all[3] == its + "4");
    BOOST_TEST(all[4] == its + "5");
    BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
}

BOOST_AUTO_TEST_CASE(times_are_in_order_in_each_thread_and_may_be_in_none_among_them) {
    tr::basic_recorder<told::trace_of_test> recorder{{.size = 1 << 20}};
    tr::other_process shop(recorder, 1200, 8, "shop");
    tr::other_thread first(shop, 1, "first");
    tr::other_thread second(shop, 2, "second");
    std::uint32_t n = 0;
    for (const std::uint64_t at : {5U, 3U, 9U, 4U}) {
        told::clock_of_test::ns = 2'000'000'000 + at;
        const tr::other_thread::scope as(n % 2 == 0 ? first : second);
        recorder.record<tick>(n++);
    }
    BOOST_TEST(lines_of(recorder) == (lines{"1200/2 second of shop: 1", "1200/2 second of shop: 3",
                                            "1200/1 first of shop: 0", "1200/1 first of shop: 2"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_continues_in_what_another_of_its_process_left_if_that_was_before) {
    tr::basic_recorder<told::trace_of_test> recorder{{.size = 1 << 20}};
    tr::other_process shop(recorder, 1200, 8, "shop");
    tr::other_process bank(recorder, 1300, 8, "bank");
    const auto record = [&](tr::other_process& in, std::uint32_t thread, std::uint64_t at) {
        told::clock_of_test::ns = 3'000'000'000 + at;
        tr::other_thread one(in, thread, "brief");
        const tr::other_thread::scope as(one);
        recorder.record<tick>(thread);
    };
    record(shop, 1, 100);
    record(bank, 2, 200);  // in another sub-buffer
    record(shop, 3, 50);   // before the first
    record(shop, 4, 300);
    BOOST_TEST(lines_of(recorder) == (lines{"1200/3 brief of shop: 3", "1200/1 brief of shop: 1",
                                            "1300/2 brief of bank: 2", "1200/4 brief of shop: 4"}),
               boost::test_tools::per_element());
    BOOST_TEST(recorder.statistics().claimed == 3U);
    // A thousand threads of a record each do not need a thousand sub-buffers.
    for (std::uint32_t i = 0; i < 1000; ++i) record(shop, 10 + i, 400 + i);
    BOOST_TEST(recorder.statistics().claimed < 40U);
    BOOST_TEST(lines_of(recorder).size() == 1004U);
}

BOOST_AUTO_TEST_CASE(without_room_for_a_process_the_records_are_those_of_the_calling_thread) {
    tr::recorder recorder{{.size = 1 << 20, .processes = 2, .programs = 1}};
    auto first = std::make_unique<tr::other_process>(recorder, 1200, 8, "first");
    BOOST_TEST(!!*first);
    tr::other_process second(recorder, 1300, 8, "second");
    BOOST_TEST(!second);
    tr::other_thread thread(second, 1, "nobody");
    BOOST_TEST(!thread);
    {
        const tr::other_thread::scope as(thread);
        recorder.record<tick>(1U);
    }
    first.reset();
    tr::other_process third(recorder, 1400, 8, "third");
    BOOST_TEST(!!third);
    const lines all = lines_of(recorder);
    BOOST_REQUIRE(all.size() == 1U);
    BOOST_TEST(all[0].starts_with(std::to_string(::getpid()) + "/"));
}

BOOST_AUTO_TEST_CASE(another_program_that_joins_takes_nothing_from_a_process_that_has_ended) {
    const test::folder folder;
    const std::string file = folder / "shared.trace";
    tr::recorder recorder{{.file = file, .size = 1 << 16}};
    const ::pid_t ended = ::fork();
    if (ended == 0) ::_exit(0);
    BOOST_REQUIRE(::waitpid(ended, nullptr, 0) == ended);
    tr::other_process gone(recorder, static_cast<std::uint32_t>(ended), 8, "gone");
    tr::other_thread thread(gone, 77, "gone");
    const auto record = [&](std::uint32_t n) {
        const tr::other_thread::scope as(thread);
        return recorder.record<tick>(n);
    };
    BOOST_TEST(record(1));
    {
        // Holds so much that it looks for what the dead hold.
        tr::recorder joined{{.file = file, .exists = tr::if_exists::attach}};
        std::vector<std::unique_ptr<tr::other_thread>> others;
        tr::other_process busy(joined, 4242, 8, "busy");
        for (std::uint32_t i = 0; i < 100; ++i) {
            others.push_back(std::make_unique<tr::other_thread>(busy, 100 + i, "busy"));
            const tr::other_thread::scope as(*others.back());
            joined.record<tick>(i);
        }
    }
    BOOST_TEST(record(2));
    const auto all = lines_of(recorder);
    const std::string its = std::to_string(ended) + "/77 gone of gone: ";
    BOOST_TEST(std::count(all.begin(), all.end(), its + "2") == 1);
    BOOST_TEST(recorder.statistics().reclaimed == 0U);
}

BOOST_AUTO_TEST_CASE(spans_that_are_described_at_run_time_end_as_any_others) {
    using field = tr::runtime_event::field;
    const std::array fields{field{"n", tr::field_type::u64}};
    const std::array results{field{"status", tr::field_type::i64},
                             field{"text", tr::field_type::character, tr::field_form::variable}};
    auto& request = tr::runtime_event::make_span("request", fields, results);
    BOOST_TEST(request.fixed_bytes() == 8U);
    BOOST_TEST(request.result_bytes() == 16U);
    BOOST_TEST(request.offset(1) == 0U);
    BOOST_TEST(request.offset(2) == 8U);
    tr::recorder recorder{{.size = 1 << 20}};
    tr::other_process shop(recorder, 1200, 8, "shop");
    tr::other_thread first(shop, 1, "first");
    tr::other_thread second(shop, 2, "second");
    std::array<tr::runtime_event::begun, 4> spans;
    const auto begin = [&](const tr::other_thread& by, std::size_t n) {
        const tr::other_thread::scope as(by);
        const std::array<std::uint64_t, 1> payload{n};
        BOOST_TEST(request.begin(recorder, payload, spans[n]));
    };
    const auto end = [&](const tr::other_thread& by, std::size_t n) {
        const tr::other_thread::scope as(by);
        const std::array<std::uint64_t, 3> payload{~std::uint64_t{n}, 2, 'o' | 'k' << 8};
        BOOST_TEST(!request.end(recorder, std::span(payload).first(1), spans[n]));
        BOOST_TEST(request.end(recorder, payload, spans[n]));
    };
    begin(first, 0);
    begin(first, 1);
    begin(second, 2);
    begin(first, 3);
    end(first, 1);   // the one inside is left
    end(second, 0);  // by another thread
    {
        const tr::other_thread::scope as(second);
        BOOST_TEST(request.end(recorder, {}, spans[2]));
    }
    const auto [memory, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, size});
    tr::reduce::span_pairs<std::uint64_t> pairs;
    lines all;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& one = std::get<tr::reduce::record_view>(*item);
        if (one.begins()) {
            pairs.begin(one, one.field("n").u64(), [](auto&) {});
            continue;
        }
        BOOST_REQUIRE(one.ends());
        const auto ended = pairs.end(one, [](auto& left) { BOOST_TEST(left.kept == 3U); });
        BOOST_REQUIRE(ended.begun.has_value());
        std::string line = std::to_string(ended.begun->kept) + ":";
        if (!one.lacks_results())
            line += " " + std::to_string(one.field("status").i64()) + " " +
                    std::string(one.field("text").text());
        all.push_back(line);
    }
    BOOST_TEST(all == (lines{"1: -2 ok", "0: -1 ok", "2:"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
