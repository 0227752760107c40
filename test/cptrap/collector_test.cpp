// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What several threads and processes pass to CPTRAP, merged into one spool by time. Orders and
// accounts are those that the writers keep themselves.

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/cptrap/collector.hpp>
#include <trace_ring/cptrap/interface.hpp>
#include <trace_ring/cptrap/spool.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <proof.hpp>

#include "recorder/kinds.hpp"
#include "recorder/scratch.hpp"

namespace cptrap_collector {

namespace cptrap = trace_ring::cptrap;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using cptrap::outcome;
using std::chrono::milliseconds;
using trace_ring::full_mode;
using trace_ring::loss_cause;
using trace_ring::setup_error;

namespace {

constexpr auto everything = record::cptrap_selection::everything();
constexpr std::size_t writers = 4;

struct by_monotonic : trace_ring::policies<trace_ring::clock::monotonic> {};
struct without_time : trace_ring::policies<trace_ring::clock::none> {};
struct other_event : trace_ring::event<"other", trace_ring::field<"n", int>> {};

/// What a thread passes: its ticket, which says when it began, and its own number.
struct told {
    std::uint64_t ticket = 0;
    std::uint64_t number = 0;
};

struct contents {
    struct one {
        std::size_t writer = 0;
        told what;
    };
    std::vector<one> records;
    trace_ring::loss_counts lost;
    unsigned unreadable = 0;
};
contents read(const std::string& path) {
    contents out;
    auto reader = reduce::spool_reader::open(path);
    while (const auto item = reader.next()) {
        if (item.what != reduce::spool_item::kind::record) {
            ++out.unreadable;
        } else if (const auto lost = item.record.lost()) {
            out.lost.add(lost->cause, lost->count);
        } else {
            told what;
            BOOST_REQUIRE(item.record.data().size() == sizeof what);
            std::memcpy(&what, item.record.data().data(), sizeof what);
            BOOST_REQUIRE(item.record.code < writers);
            out.records.push_back({item.record.code, what});
        }
    }
    return out;
}

struct threads_and_spool {
    test::folder folder{};
    std::string path = folder / "collected.spool";
    cptrap::trapok trapok{};

    threads_and_spool() { trapok.start(everything); }

    std::atomic<std::uint64_t> tickets{0};
    /// Of each thread: the ticket of each call, and one that was drawn after the last.
    std::array<std::vector<std::uint64_t>, writers> drawn{};
    std::array<std::uint64_t, writers> stored{}, refused{};

    template <class Recorder>
    void write(Recorder& recorder, std::size_t writer, std::uint64_t count) {
        const cptrap::cp_interface trap(trapok, recorder);
        for (std::uint64_t i = 0; i < count; ++i) {
            const told what{tickets.fetch_add(1), i};
            drawn[writer].push_back(what.ticket);
            const auto result = trap.hand_over(static_cast<std::uint16_t>(writer),
                                               std::as_bytes(std::span(&what, 1)));
            ++(result == outcome::stored ? stored : refused)[writer];
        }
        drawn[writer].push_back(tickets.fetch_add(1));
    }
    /// `writers` threads, while this one collects.
    template <class Recorder>
    void run(Recorder& recorder, std::uint64_t count, cptrap::collector& collect,
             cptrap::spool& spool) {
        std::atomic<std::size_t> running{writers};
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < writers; ++i) {
            threads.emplace_back([&, i] {
                write(recorder, i, count);
                --running;
            });
        }
        while (running != 0) {
            collect.take(spool);
            std::this_thread::sleep_for(milliseconds(1));
        }
        for (auto& each : threads) each.join();
        collect.finish(spool);
    }

    /// Each writer's records are in the order in which it passed them, none twice. Returns how many
    /// there are of each.
    static std::array<std::uint64_t, writers> check_each(const contents& found) {
        std::array<std::uint64_t, writers> count{};
        std::array<std::uint64_t, writers> next{};
        for (const auto& one : found.records) {
            BOOST_REQUIRE(one.what.number >= next[one.writer]);
            next[one.writer] = one.what.number + 1;
            ++count[one.writer];
        }
        return count;
    }
    /// The number of records after one that began when they were already stored.
    [[nodiscard]] std::uint64_t misplaced(const contents& found) const {
        constexpr auto nowhere = std::numeric_limits<std::size_t>::max();
        const auto as_index = [](std::uint64_t ticket) { return static_cast<std::size_t>(ticket); };
        std::vector<std::size_t> place(as_index(tickets), nowhere);
        for (std::size_t i = 0; i < found.records.size(); ++i) {
            place[as_index(found.records[i].what.ticket)] = i;
        }
        std::vector<std::size_t> first(place.size() + 1, nowhere);
        for (std::size_t i = place.size(); i-- > 0;) first[i] = std::min(first[i + 1], place[i]);
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < found.records.size(); ++i) {
            const auto& one = found.records[i];
            const std::uint64_t ended = drawn[one.writer][as_index(one.what.number + 1)];
            if (first[as_index(ended)] < i) ++wrong;
        }
        return wrong;
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cptrap_collector, threads_and_spool)

BOOST_AUTO_TEST_CASE(what_four_threads_pass_comes_into_one_spool_in_order_and_complete) {
    trace_ring::basic_recorder<by_monotonic> recorder{
        {.size = 1 << 18,
         .full = full_mode::block,
         .block_for = trace_ring::nanoseconds(60'000'000'000)}};
    cptrap::spool spool(path);
    cptrap::collector collect(recorder);
    constexpr std::uint64_t count = 20'000;
    run(recorder, count, collect, spool);

    const auto found = read(path);
    BOOST_TEST(found.unreadable == 0U);
    BOOST_TEST(found.lost.total() == 0U);
    BOOST_TEST(collect.lost().total() == 0U);
    BOOST_TEST(spool.records() == writers * count);
    for (const auto each : check_each(found)) BOOST_TEST(each == count);
    BOOST_TEST(misplaced(found) <= collect.late());
    BOOST_TEST(collect.late() < count / 100);
    trace_ring_test::proof("accounted", found.records.size(), "records from racing threads");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_kind_of_recorder_is_collected_with_an_exact_account, Kind,
                              test::kinds) {
    trace_ring::basic_recorder<Kind> recorder{{.size = 1 << 16, .full = full_mode::discard_newest}};
    cptrap::spool spool(path);
    cptrap::collector collect(recorder);
    constexpr std::uint64_t count = 5'000;
    run(recorder, count, collect, spool);

    const auto found = read(path);
    BOOST_TEST(found.unreadable == 0U);
    const auto there = check_each(found);
    std::uint64_t all_refused = 0;
    for (std::size_t i = 0; i < writers; ++i) {
        BOOST_TEST(stored[i] + refused[i] == count);
        BOOST_TEST(there[i] == stored[i]);
        all_refused += refused[i];
    }
    BOOST_TEST(found.lost.total() == all_refused);
    BOOST_TEST(collect.lost().total() == all_refused);
}

BOOST_AUTO_TEST_CASE(a_full_spool_counts_what_it_has_no_room_for) {
    trace_ring::recorder recorder{{.size = 1 << 18,
                                   .full = full_mode::block,
                                   .block_for = trace_ring::nanoseconds(60'000'000'000)}};
    constexpr std::uint64_t pages = 5, count = 2'000;
    cptrap::spool spool(path, pages * 4096);
    cptrap::collector collect(recorder);
    run(recorder, count, collect, spool);

    BOOST_TEST(spool.error() == EFBIG);
    BOOST_TEST(spool.lost()[loss_cause::refused] == spool.lost().total());
    BOOST_TEST(spool.records() + spool.lost().total() == writers * count);
    const auto found = read(path);
    BOOST_TEST(std::filesystem::file_size(path) == pages * 4096);
    BOOST_TEST(spool.unwritten() == 0U);
    BOOST_TEST(found.records.size() == spool.records());
    BOOST_TEST(found.lost[loss_cause::refused] == spool.lost().total());
    static_cast<void>(check_each(found));
}

BOOST_AUTO_TEST_CASE(of_killed_writers_all_that_they_stored_is_collected) {
    constexpr int kills = 10;
    constexpr std::size_t threads_each = 2;
    struct shared_counts {
        std::atomic<std::uint64_t> stored[writers];
    };
    auto* const counts = new (::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)) shared_counts{};
    BOOST_REQUIRE(counts != MAP_FAILED);
    std::uint64_t all = 0;
    for (int kill = 0; kill < kills; ++kill) {
        const std::string trace = folder / ("killed." + std::to_string(kill));
        const std::string into = trace + ".spool";
        for (auto& each : counts->stored) each = 0;
        const pid_t child = test::start_child([&] {
            trace_ring::recorder recorder{{.file = trace,
                                           .size = 1 << 16,
                                           .limit = std::uint64_t{1} << 27,
                                           .full = full_mode::extend_then_discard}};
            std::vector<std::thread> threads;
            for (std::size_t writer = 0; writer < threads_each; ++writer) {
                threads.emplace_back([&, writer] {
                    const cptrap::cp_interface trap(trapok, recorder);
                    for (std::uint64_t i = 0;; ++i) {
                        const told what{0, i};
                        if (trap.hand_over(static_cast<std::uint16_t>(writer),
                                           std::as_bytes(std::span(&what, 1))) == outcome::stored) {
                            counts->stored[writer] = i + 1;
                        }
                    }
                });
            }
            for (auto& each : threads) each.join();
            return 0;
        });
        for (int i = 0; i < 30'000; ++i) {
            if (counts->stored[0] >= 1'000 && counts->stored[1] >= 1'000) break;
            std::this_thread::sleep_for(milliseconds(1));
        }
        ::kill(child, SIGKILL);
        BOOST_TEST(test::wait_for(child) == -SIGKILL);
        cptrap::spool spool(into);
        cptrap::collector collect(trace);
        collect.finish(spool);
        const auto found = read(into);
        BOOST_TEST(found.unreadable == 0U);
        BOOST_TEST(found.lost.total() == 0U);
        const auto there = check_each(found);
        for (std::size_t writer = 0; writer < threads_each; ++writer) {
            // One may have been stored and not yet counted.
            const std::uint64_t told_of = counts->stored[writer];
            BOOST_TEST(there[writer] >= told_of);
            BOOST_TEST(there[writer] <= told_of + 1);
            all += there[writer];
        }
    }
    ::munmap(counts, sizeof(shared_counts));
    BOOST_TEST(all > 2'000U * kills);
}

BOOST_AUTO_TEST_CASE(a_loss_stands_before_the_next_record_of_its_thread) {
    trace_ring::recorder recorder{{.size = 0x8000, .full = full_mode::discard_newest}};
    cptrap::spool spool(path);
    cptrap::collector collect(recorder);
    write(recorder, 0, 3'000);
    BOOST_REQUIRE(refused[0] > 0U);
    collect.finish(spool);  // there is room again
    BOOST_TEST(read(path).records.size() == stored[0]);
    write(recorder, 0, 1);
    collect.finish(spool);
    const auto found = read(path);
    BOOST_TEST(found.lost[loss_cause::refused] == refused[0]);
    BOOST_TEST(found.records.size() == stored[0]);
    std::vector<bool> losses;
    auto reader = reduce::spool_reader::open(path);
    while (const auto item = reader.next()) losses.push_back(item.record.lost().has_value());
    BOOST_REQUIRE(losses.size() >= 2U);
    BOOST_TEST(losses[losses.size() - 2]);
    BOOST_TEST(!losses.back());
}

BOOST_AUTO_TEST_CASE(records_of_other_events_are_consumed_and_counted) {
    trace_ring::recorder recorder{{.size = 1 << 16}};
    cptrap::spool spool(path);
    cptrap::collector collect(recorder);
    for (int i = 0; i < 7; ++i) recorder.record<other_event>(i);
    write(recorder, 0, 3);
    BOOST_TEST(collect.finish(spool) == 3U);
    BOOST_TEST(collect.others() == 7U);
}

BOOST_AUTO_TEST_CASE(without_times_or_beside_another_session_it_is_refused_by_name) {
    trace_ring::basic_recorder<without_time> timeless{{.size = 1 << 16}};
    BOOST_CHECK_EXCEPTION(cptrap::collector{timeless}, setup_error, [](const setup_error& error) {
        return error.code().value() == EINVAL &&
               std::string(error.what()).find("no time") != std::string::npos;
    });
    trace_ring::recorder recorder{{.size = 1 << 16}};
    trace_ring::drain::session other(recorder);
    BOOST_CHECK_EXCEPTION(cptrap::collector{recorder}, setup_error,
                          [](const setup_error& error) { return error.code().value() == EBUSY; });
    BOOST_CHECK_THROW(cptrap::collector(folder / "none"), std::system_error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cptrap_collector
