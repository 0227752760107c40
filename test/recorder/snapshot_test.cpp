// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A snapshot that is written while others record, with the recording at each possible place:
/// before the first write of the snapshot, before the second, and so on.

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>

namespace test_of_snapshots {

/// What is done before one of the snapshot's writes.
struct {
    std::size_t writes_left = 0;
    std::function<void()> what;
} meanwhile;

}  // namespace test_of_snapshots

/// In the place of the C library's.
extern "C" ssize_t pwrite64(int fd, const void* from, std::size_t bytes, off64_t at) {
    auto& next = test_of_snapshots::meanwhile;
    if (next.what && next.writes_left-- == 0) std::exchange(next.what, nullptr)();
    using function = ssize_t (*)(int, const void*, std::size_t, off64_t);
    static const auto write = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pwrite64"));
    return write(fd, from, bytes, at);
}

BOOST_AUTO_TEST_SUITE(snapshot_test)

namespace {

namespace tr = trace_ring;
using test_of_snapshots::meanwhile;

struct numbered : tr::event<"numbered", tr::field<"n", std::uint64_t>> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};

[[nodiscard]] tr::recorder_options small_trace(std::uint64_t sub_buffers) {
    tr::recorder_options options;
    options.sub_buffer_bytes = 512;  // 28 records
    options.size = sub_buffers * 512;
    options.dictionary_bytes = 4096;
    options.lanes = 64;
    options.processes = 1;
    options.programs = 1;
    options.totals = 0;
    return options;
}

template <class Recorder>
void record(Recorder& in, int count) {
    for (int i = 0; i < count; ++i) in.template record<numbered>(static_cast<std::uint64_t>(i));
}

struct told {
    std::uint64_t records = 0;
    std::map<tr::loss_cause, std::uint64_t> lost;
    std::uint64_t damaged = 0;
    /// By lane: records, and with losses.
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> lanes;
};
[[nodiscard]] told read(tr::reduce::cursor&& from) {
    told out;
    while (const auto* item = from.next()) {
        if (const auto* one = std::get_if<tr::reduce::record_view>(item)) {
            ++out.records;
            ++out.lanes[one->lane().number].first;
            ++out.lanes[one->lane().number].second;
        } else if (const auto* loss = std::get_if<tr::reduce::loss_item>(item)) {
            out.lost[loss->cause] += loss->count;
            if (loss->cause == tr::loss_cause::damaged) ++out.damaged;
            if (loss->lane != nullptr) out.lanes[loss->lane->number].second += loss->count;
        }
    }
    return out;
}

/// Writes a snapshot for each place where `what` can happen while it is written, and calls
/// `check(forward, backward)` with what readers find in it. `begin` makes the recorder.
template <class Begin, class What, class Check>
void at_each_place(Begin&& begin, What&& what, Check&& check) {
    const test::folder scratch;
    std::size_t places = 0;
    for (bool happened = true; happened; ++places) {
        auto recorder = begin();
        const std::string file = scratch / ("snapshot" + std::to_string(places));
        happened = false;
        meanwhile.writes_left = places;
        meanwhile.what = [&] {
            happened = true;
            what(*recorder);
        };
        const auto error = recorder->snapshot(file.c_str());
        meanwhile.what = nullptr;
        BOOST_REQUIRE(!error);
        const auto trace = tr::reduce::trace_file::open(file);
        BOOST_TEST_CONTEXT("before write " << places) {
            check(read(trace.forward()), read(trace.backward()));
        }
    }
    BOOST_TEST(places > 40U);
}

/// No reader finds a fault or a gap, and both directions find the same.
void is_whole(const told& forward, const told& backward) {
    BOOST_TEST(forward.damaged == 0U);
    BOOST_TEST(backward.damaged == 0U);
    BOOST_TEST(forward.lost.empty());
    BOOST_TEST(backward.lost.empty());
    BOOST_TEST((forward.lanes == backward.lanes));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_lane_that_goes_on_is_copied_up_to_some_moment) {
    const auto begin = [] {
        auto made = std::make_unique<tr::recorder>(small_trace(32));
        record(*made, 100);
        return made;
    };
    at_each_place(
        begin, [](tr::recorder& recorder) { record(recorder, 200); },
        [](const told& forward, const told& backward) {
            is_whole(forward, backward);
            BOOST_TEST(forward.records >= 100U);
            BOOST_TEST(forward.records <= 300U);
        });
}

BOOST_AUTO_TEST_CASE(a_lane_that_another_thread_adopts_is_copied_up_to_some_moment) {
    const auto begin = [] {
        auto made = std::make_unique<tr::recorder>(small_trace(64));
        for (int i = 0; i < 3; ++i) std::thread([&made] { record(*made, 10); }).join();
        return made;
    };
    at_each_place(
        begin,
        [](tr::recorder& recorder) {
            for (int i = 0; i < 5; ++i) {
                std::thread([&recorder] { record(recorder, 5); }).join();
                std::thread([&recorder] { record(recorder, 70); }).join();
            }
        },
        [](const told& forward, const told& backward) {
            is_whole(forward, backward);
            BOOST_TEST(forward.records >= 30U);
        });
}

BOOST_AUTO_TEST_CASE(lanes_of_processors_are_copied_up_to_some_moment) {
    const auto begin = [] {
        auto made = std::make_unique<tr::basic_recorder<by_cpu>>(small_trace(64));
        record(*made, 100);
        return made;
    };
    at_each_place(
        begin, [](auto& recorder) { record(recorder, 200); },
        [](const told& forward, const told& backward) {
            is_whole(forward, backward);
            BOOST_TEST(forward.records >= 100U);
        });
}

BOOST_AUTO_TEST_CASE(what_is_overwritten_while_it_is_copied_is_no_damage) {
    for (const int more : {30, 150, 1000}) {
        const auto begin = [] {
            auto made = std::make_unique<tr::recorder>(small_trace(16));
            std::thread([&made] { record(*made, 40); }).join();
            record(*made, 300);
            return made;
        };
        at_each_place(
            begin, [more](tr::recorder& recorder) { record(recorder, more); },
            [more](const told& forward, const told& backward) {
                BOOST_TEST(forward.damaged == 0U);
                BOOST_TEST(backward.damaged == 0U);
                BOOST_TEST(forward.records == backward.records);
                BOOST_TEST((forward.lanes == backward.lanes));
                std::uint64_t all = 0;
                for (const auto& [lane, counts] : forward.lanes) all += counts.second;
                BOOST_TEST(all >= 340U);
                BOOST_TEST(all <= 340U + static_cast<unsigned>(more));
            });
    }
}

BOOST_AUTO_TEST_SUITE_END()
