// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// The recorder under load: readers that are overtaken, handlers at ten thousand a second, a steady
/// state without system calls, and kills at any moment. What is written is always what can be read
/// and what is counted as lost, lane by lane.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/format/records.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <proof.hpp>
#include "recorder/scratch.hpp"
#include "recorder/signals.hpp"

BOOST_AUTO_TEST_SUITE(load)

namespace {

namespace reduce = trace_ring::reduce;
using trace_ring::loss_cause;

/// A record that checks itself: which writer, its number, and both again, mixed.
struct numbered : trace_ring::event<"numbered", trace_ring::field<"writer", std::uint32_t>,
                                    trace_ring::field<"kind", std::uint32_t>,
                                    trace_ring::field<"number", std::uint64_t>,
                                    trace_ring::field<"check", std::uint64_t>> {};

constexpr std::uint64_t mix(std::uint64_t writer, std::uint64_t kind, std::uint64_t number) {
    return (number + 1) * 0x9E3779B97F4A7C15U ^ (writer << 32 | kind);
}
bool put(trace_ring::recorder& to, std::uint32_t writer, std::uint32_t kind, std::uint64_t number) {
    return to.record<numbered>(writer, kind, number, mix(writer, kind, number));
}

/// What was seen of the lanes of a trace, and what was wrong with it.
struct tally {
    struct lane {
        std::uint64_t read = 0;
        std::uint64_t lost = 0;
        std::uint64_t time = 0;
        std::map<std::uint32_t, std::uint64_t> next;  ///< by kind: one past the highest number
    };
    std::map<std::uint32_t, lane> lanes;
    std::uint64_t torn = 0;
    std::uint64_t back = 0;       ///< times that went back within a lane
    std::uint64_t unordered = 0;  ///< numbers that did not grow within a lane and kind
    std::uint64_t overrun = 0;    ///< reads that found their sub-buffer taken away
    std::uint64_t other_losses = 0;

    void take(const reduce::item& item) {
        if (const auto* const record = std::get_if<reduce::record_view>(&item)) {
            lane& into = lanes[record->lane().number];
            ++into.read;
            const auto writer = static_cast<std::uint32_t>(record->field(0).u64());
            const auto kind = static_cast<std::uint32_t>(record->field(1).u64());
            const std::uint64_t number = record->field(2).u64();
            if (record->field(3).u64() != mix(writer, kind, number)) ++torn;
            if (record->time() < into.time) ++back;
            into.time = record->time();
            std::uint64_t& next = into.next[kind];
            if (number < next) ++unordered;
            next = number + 1;
        } else if (const auto* const loss = std::get_if<reduce::loss_item>(&item)) {
            if (loss->cause == loss_cause::overrun) ++overrun;
            if (loss->cause != loss_cause::overrun && loss->cause != loss_cause::overwritten) {
                ++other_losses;
            }
            if (loss->lane != nullptr) lanes[loss->lane->number].lost += loss->count;
        }
    }
    void must_be_sound() const {
        BOOST_TEST(torn == 0U);
        BOOST_TEST(back == 0U);
        BOOST_TEST(unordered == 0U);
        BOOST_TEST(other_losses == 0U);
    }
};

std::span<const std::byte> memory_of(const trace_ring::recorder& recorder) {
    const auto [data, size] = recorder.bytes();
    return {data, size};
}

/// A ring so small that its reader is overtaken, four writers, and a reader that follows them.
/// Returns how many sub-buffers were taken away while or just before they were copied.
template <class Writer>
tally write_and_follow(trace_ring::recorder& recorder, Writer&& write) {
    constexpr std::uint32_t writers = 4;
    std::atomic<std::uint32_t> running{writers};
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < writers; ++i) {
        threads.emplace_back([&, i] {
            write(i);
            --running;
        });
    }
    tally seen;
    {
        const auto trace = reduce::trace_file::from(memory_of(recorder));
        auto cursor = trace.follow();
        while (running != 0) {
            while (const auto* item = cursor.next()) seen.take(*item);
        }
        for (auto& thread : threads) thread.join();
        cursor.stop_following();
        while (const auto* item = cursor.next()) seen.take(*item);
        // The records that each lane wrote are those read from it plus those reported as lost.
        const auto after = reduce::trace_file::from(memory_of(recorder));
        for (const auto& lane : after.lanes()) {
            const auto& counted = seen.lanes[lane.number];
            BOOST_TEST(counted.read + counted.lost == lane.written,
                       "lane " << lane.number << ": read " << counted.read << " + lost "
                               << counted.lost << " is not " << lane.written);
        }
    }
    return seen;
}

/// What came of copying every sub-buffer over and over while writers overwrite them.
struct copies {
    std::uint64_t overrun = 0;
    std::uint64_t torn = 0;
};
copies copy_until(const trace_ring::recorder& recorder, const std::atomic<bool>& stop) {
    const auto memory = memory_of(recorder);
    trace_ring::layout::plan plan;
    BOOST_REQUIRE(!trace_ring::layout::check_layout(memory.data(), memory.size(), plan));
    std::vector<std::uint64_t> words(plan.sub_buffer_bytes / 8);
    copies out;
    while (!stop) {
        for (std::uint64_t slot = 0; slot < plan.sub_buffer_limit; ++slot) {
            trace_ring::sub_buffer_copy copy;
            const auto* const from =
                memory.data() + plan.sub_buffers + slot * plan.sub_buffer_bytes;
            const auto result = trace_ring::copy_sub_buffer(from, words, copy);
            if (result == trace_ring::copy_result::overrun) ++out.overrun;
            if (result != trace_ring::copy_result::copied) continue;
            const auto fault = trace_ring::walk_records(
                words, copy, [&](std::uint32_t at, std::uint64_t, std::uint32_t) {
                    const std::uint64_t both = words[at + 1];
                    if (words[at + 3] != mix(both & 0xFFFFFFFFU, both >> 32, words[at + 2])) {
                        ++out.torn;
                    }
                });
            if (fault != 0) ++out.torn;
        }
    }
    return out;
}

trace_ring::recorder* handler_recorder = nullptr;
thread_local std::uint32_t handler_writer = 0;
thread_local std::uint64_t handler_number = 0;

void record_in_handler(int) {
    const std::uint64_t number = handler_number++;
    put(*handler_recorder, handler_writer, 1, number);
}

}  // namespace

BOOST_AUTO_TEST_CASE(four_writers_and_an_overtaken_reader_account_for_every_record_of_each_lane) {
    const std::uint64_t each = test::repeated(10'000'000);
    // How often a reader is overtaken depends on how the machine divides its time: the race is run
    // again until it has been often enough to show something.
    const std::uint64_t wanted = test::scale == 1 ? 1000 : 0;
    std::uint64_t invalidated = 0;
    std::uint64_t accounted = 0;
    for (int round = 0; round == 0 || (invalidated < wanted && round < 20); ++round) {
        trace_ring::recorder recorder{{.size = 128 << 10}};
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> not_recorded{0};
        copies copied;
        std::thread copier([&] { copied = copy_until(recorder, stop); });
        tally seen = write_and_follow(recorder, [&](std::uint32_t writer) {
            std::uint64_t refused = 0;
            for (std::uint64_t i = 0; i < each; ++i) refused += put(recorder, writer, 0, i) ? 0 : 1;
            recorder.flush_thread();
            not_recorded += refused;
        });
        stop = true;
        copier.join();
        seen.must_be_sound();
        BOOST_TEST(seen.lanes.size() == 4U);
        std::uint64_t total = 0;
        std::uint64_t newest = 0;
        for (const auto& [number, lane] : seen.lanes) {
            BOOST_TEST(lane.read + lane.lost == each);
            total += lane.read + lane.lost;
            newest = std::max(newest, lane.next.empty() ? 0 : lane.next.at(0));
        }
        BOOST_TEST(total == 4 * each);
        accounted += total;
        BOOST_TEST(newest == each);  // of the lane that wrote last, the newest is there
        BOOST_TEST(not_recorded == 0U);
        BOOST_TEST(copied.torn == 0U);
        invalidated += copied.overrun + seen.overrun;
    }
    BOOST_TEST_MESSAGE(invalidated << " reads invalidated by overwriting");
    BOOST_TEST(invalidated >= wanted);
    trace_ring_test::proof("accounted", accounted, "records from racing threads");
}

BOOST_AUTO_TEST_CASE(handlers_at_ten_thousand_a_second_never_turn_a_lane_s_time_back) {
    const double seconds = trace_ring_test::repeats(test::scale == 1 ? 4 : 1);
    trace_ring::recorder recorder{{.size = 256 << 10}};
    handler_recorder = &recorder;
    const test::signal_handler handler(SIGUSR1, record_in_handler);
    std::atomic<std::uint64_t> handled{0};
    std::atomic<std::uint64_t> written{0};
    const tally seen = write_and_follow(recorder, [&](std::uint32_t writer) {
        handler_writer = writer;
        handler_number = 0;
        std::uint64_t number = 0;
        {
            const test::thread_timer timer(SIGUSR1, 100'000);  // 10,000 a second
            const test::deadline end(seconds);
            while (!end.is_past()) {
                for (int i = 0; i < 1000; ++i) number += put(recorder, writer, 0, number) ? 1 : 0;
            }
        }
        recorder.flush_thread();
        handled += handler_number;
        written += number + handler_number;
    });
    seen.must_be_sound();
    std::uint64_t total = 0;
    for (const auto& [number, lane] : seen.lanes) total += lane.read + lane.lost;
    BOOST_TEST(total == written);
    BOOST_TEST_MESSAGE(handled << " handlers, " << written << " records, " << seen.lanes.size()
                               << " lanes");
    BOOST_TEST(handled > 100U);
    trace_ring_test::proof("order", total, "records in signal handlers and in interrupted code");
    trace_ring_test::proof("anywhere", handled, "signals");
    if (test::scale == 1) {
        BOOST_TEST(seen.lanes.size() > 4U);  // some handler came inside a record
    }
}

#if !defined(TRACE_RING_TEST_TSAN) && !defined(TRACE_RING_TEST_ASAN)
BOOST_AUTO_TEST_CASE(a_steady_state_takes_no_page_fault_and_makes_no_system_call) {
    const test::folder shared("/dev/shm");
    struct place {
        const char* name;
        trace_ring::recorder_options options;
    };
    const place places[] = {{"memory", {.size = 1 << 20}},
                            {"memory file", {.memory_file = true, .size = 1 << 20}},
                            {"tmpfs", {.file = shared / "a.trace", .size = 1 << 20}}};
    for (const place& each : places) {
        const int end = test::in_child([&]() -> int {
            trace_ring::recorder recorder{each.options};
            const auto lap = [&recorder](std::uint64_t records) {
                for (std::uint64_t i = 0; i < records; ++i) put(recorder, 1, 0, i);
            };
            lap(200'000);  // the ring several times round: the lane and the clock triples are there
            rusage before{};
            rusage after{};
            ::getrusage(RUSAGE_THREAD, &before);
            lap(2'000'000);
            ::getrusage(RUSAGE_THREAD, &after);
            if (after.ru_minflt != before.ru_minflt || after.ru_majflt != before.ru_majflt)
                return 1;
            // From here on every system call but the last ends the process by SIGSYS.
            const sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
            const sock_fprog filter{4, const_cast<sock_filter*>(rules)};
            if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
                return 77;
            }
            lap(2'000'000);
            ::_exit(0);
        });
        if (end == 77) {
            BOOST_TEST_MESSAGE("no seccomp here: system calls were not looked at");
            continue;
        }
        // What the child did once the kernel would have ended it by its first call.
        if (end == 0) trace_ring_test::proof("silent", 2'000'000, "records without a system call");
        BOOST_TEST(end == 0, each.name << " ended with " << end << " (1: page faults, " << -SIGSYS
                                       << ": a system call)");
    }
}

BOOST_AUTO_TEST_CASE(the_check_for_system_calls_sees_one) {
    const int end = test::in_child([]() -> int {
        const sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
        const sock_fprog filter{1, const_cast<sock_filter*>(rules)};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
            return 77;
        }
        return ::getppid() == 0 ? 1 : 0;
    });
    BOOST_TEST((end == -SIGSYS || end == 77));
}
#endif

BOOST_AUTO_TEST_CASE(whatever_moment_a_process_is_killed_at_its_file_holds_what_it_had_committed) {
    constexpr std::uint32_t writers = 2;
    const std::uint64_t kills = test::repeated(200, 5);
    const test::folder folder;
    std::mt19937 random(20261121);
    // Each writer's count of records that `record` has returned from.
    auto* const acknowledged = static_cast<std::atomic<std::uint64_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    BOOST_REQUIRE(acknowledged != MAP_FAILED);
    std::uint64_t records = 0;
    for (std::uint64_t k = 0; k < kills; ++k) {
        const bool grows = k % 2 == 1;
        const std::string file = folder / (std::to_string(k) + ".trace");
        for (std::uint32_t i = 0; i < writers; ++i) acknowledged[i] = 0;
        const pid_t child = test::start_child([&]() -> int {
            trace_ring::recorder recorder{
                {.file = file,
                 .size = grows ? std::uint64_t{32} << 10 : std::uint64_t{64} << 10,
                 .limit = std::uint64_t{64} << 20,
                 .step = std::uint64_t{64} << 10,
                 .full = grows ? trace_ring::full_mode::extend_then_discard
                               : trace_ring::full_mode::overwrite_oldest}};
            std::vector<std::thread> threads;
            for (std::uint32_t i = 0; i < writers; ++i) {
                threads.emplace_back([&, i] {
                    for (std::uint64_t n = 0; n < 400'000; ++n) {
                        put(recorder, i, 0, n);
                        acknowledged[i].store(n + 1);
                    }
                    for (;;) ::pause();
                });
            }
            for (auto& thread : threads) thread.join();
            return 0;
        });
        // From before the file is there to after the last record.
        ::usleep(std::uniform_int_distribution<useconds_t>(0, 30'000)(random));
        ::kill(child, SIGKILL);
        BOOST_REQUIRE(test::wait_for(child) == -SIGKILL);
        if (!std::filesystem::exists(file) || std::filesystem::file_size(file) == 0) continue;
        try {
            const auto trace = reduce::trace_file::open(file);
            tally seen;
            std::map<std::uint32_t, std::uint64_t> newest;
            std::map<std::uint32_t, std::uint64_t> first;
            std::map<std::uint32_t, std::uint64_t> read;
            std::map<std::uint32_t, std::uint64_t> missing;  // between two records of a writer
            std::uint64_t holes = 0;
            std::map<std::uint32_t, std::uint32_t> writer_of;  // by lane
            std::map<std::uint32_t, std::uint64_t> told;  // as lost, after a writer's first record
            for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
                seen.take(*item);
                if (const auto* const record = std::get_if<reduce::record_view>(item)) {
                    const auto writer = static_cast<std::uint32_t>(record->field(0).u64());
                    const std::uint64_t number = record->field(2).u64();
                    writer_of[record->lane().number] = writer;
                    if (read[writer]++ == 0) first[writer] = newest[writer] = number;
                    missing[writer] += number - newest[writer];
                    holes += number != newest[writer];
                    newest[writer] = number + 1;
                    BOOST_TEST(told[writer] == missing[writer]);  // where it happened
                } else if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
                    if (loss->lane == nullptr) continue;
                    const auto writer = writer_of.find(loss->lane->number);
                    if (writer != writer_of.end()) told[writer->second] += loss->count;
                }
            }
            seen.must_be_sound();
            std::uint64_t accounted = 0;
            for (const auto& [number, lane] : seen.lanes) accounted += lane.read + lane.lost;
            std::uint64_t known = 0;
            for (std::uint32_t i = 0; i < writers; ++i) {
                known += acknowledged[i];
                records += read[i];
                // A writer stopped between two sub-buffers may have been overwritten whole by the
                // other; then all it wrote is counted, below.
                if (read[i] == 0 && !grows) continue;
                BOOST_TEST(newest[i] - first[i] == read[i] + missing[i]);
                BOOST_TEST(newest[i] <= acknowledged[i] + 1);  // at most the one in flight
                if (newest[i] < acknowledged[i]) {
                    // Not the newest: all that came after the sub-buffer that it was about to take
                    // was overwritten, and is reported as lost after the remaining records.
                    ++holes;
                    BOOST_TEST(told[i] >= missing[i] + (acknowledged[i] - newest[i]));
                    BOOST_TEST(told[i] <= missing[i] + (acknowledged[i] - newest[i]) + 1);
                } else {
                    BOOST_TEST(told[i] == missing[i]);
                }
                if (grows) BOOST_TEST(first[i] == 0U);
            }
            // A writer that was stopped between drawing a position and taking the sub-buffer there
            // leaves what lay in it for one lap longer than what came next.
            BOOST_TEST(holes <= (grows ? 0 : writers));
            // Nothing is missing that is not counted, and nothing was invented.
            BOOST_TEST(accounted >= known);
            BOOST_TEST(accounted <= known + writers);
        } catch (const trace_ring::format_error& error) {
            // Killed before the file was made: it is recognized as not yet a trace file.
            BOOST_TEST(acknowledged[0] + acknowledged[1] == 0U, error.what());
        }
        std::filesystem::remove(file);
    }
    ::munmap(acknowledged, 4096);
    BOOST_TEST_MESSAGE(kills << " kills, " << records << " records read back");
    BOOST_TEST(records > 1000U);
    trace_ring_test::proof("death", kills, "kills at any moment");
}

BOOST_AUTO_TEST_CASE(threads_by_the_thousand_leave_no_trace_but_their_records) {
    const std::uint64_t threads = test::repeated(10'000, 500);
    trace_ring::recorder recorder{{.size = 1 << 20}};
    const auto resident = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;  // KiB
    };
    const auto run = [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) {
            std::thread([&] { put(recorder, 0, 0, i); }).join();
        }
    };
    run(0, 500);
    const long before = resident();
    run(500, threads);
    if (!test::under_tsan && !test::under_asan) {
        BOOST_TEST(resident() - before < 2048);
    }
    BOOST_TEST(recorder.statistics().held == 0U);  // every thread gave back what it held
    // The newest are there, each in a separate lane; the others are counted, none twice.
    const auto trace = reduce::trace_file::from(memory_of(recorder));
    std::uint64_t next = threads;
    for (auto cursor = trace.backward(); const auto* item = cursor.next();) {
        if (const auto* const record = std::get_if<reduce::record_view>(item)) {
            BOOST_REQUIRE(record->field(2).u64() == --next);
        }
    }
    BOOST_TEST(threads - next >= 100U);
    BOOST_TEST(recorder.statistics().overwritten == next);
    trace_ring_test::proof("anywhere", threads, "exited threads");
}

BOOST_AUTO_TEST_SUITE_END()
