// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The recorder, drained in place: the records handed over, consumed, kept and lost add up to those
// written, with any writers, with readers that die, and across the end of the ring.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(drain_in_place)

namespace tr = trace_ring;
using test::account_of;
using test::fit_in_512;
using test::put;
using tr::full_mode;
using tr::loss_cause;
using tr::sub_buffer_state;

namespace {

constexpr std::uint64_t slots = 16;

tr::recorder_options small(full_mode full, const std::string& file = {}) {
    tr::recorder_options options{.file = file,
                                 .size = slots * 512,
                                 .limit = 0,
                                 .step = 512,
                                 .sub_buffer_bytes = 512,
                                 .full = full};
    options.block_for = std::chrono::seconds{60};
    return options;
}

std::uint64_t fill(tr::recorder& to, std::uint64_t from, std::uint64_t count,
                   std::uint64_t who = 1) {
    std::uint64_t done = 0;
    for (std::uint64_t n = from; n < from + count; ++n) done += put(to, who, n) ? 1 : 0;
    return done;
}

/// What a session was given, and whether it was given in order.
struct ledger {
    struct lane {
        std::uint64_t records = 0;
        tr::position next = 0;  ///< position
        std::uint64_t who = 0, last = 0, time = 0;
        tr::loss_counts lost;
    };
    std::map<std::uint32_t, lane> lanes;
    std::uint64_t strange = 0;
    bool one_writer_a_lane = true;  ///< no thread continues where another ended

    void operator()(const tr::drained_sub_buffer& portion) {
        lane& of = lanes[portion.lane()];
        of.lost += portion.lost();
        // Positions omit exactly the records reported as overwritten.
        if (portion.first() != of.next + portion.lost()[loss_cause::overwritten]) ++strange;
        of.next = portion.first() + portion.records();
        const std::uint64_t seen = portion.visit([&](const tr::drained_record& record) {
            if (record.payload.size() != 2 || record.lane != portion.lane()) {
                ++strange;
                return;
            }
            if (record.time < of.time) ++strange;
            of.time = record.time;
            if (one_writer_a_lane && of.records != 0 &&
                (record.payload[0] != of.who || record.payload[1] <= of.last)) {
                ++strange;
            }
            of.who = record.payload[0];
            of.last = record.payload[1];
            ++of.records;
        });
        if (seen != portion.records()) ++strange;
    }
    [[nodiscard]] std::uint64_t records() const {
        std::uint64_t sum = 0;
        for (const auto& [number, of] : lanes) sum += of.records;
        return sum;
    }
};

/// Each lane that the file lists: what was handed over and what is lost is what it wrote.
void check_lanes(const tr::recorder& from, const ledger& got, bool tails_overwritten = false) {
    const auto [base, size] = from.bytes();
    for (const auto& lane : test::trace_view(std::span(base, size)).lanes()) {
        const auto it = got.lanes.find(lane.number);
        if (it == got.lanes.end()) {
            BOOST_TEST((lane.written == 0U || tails_overwritten));
            continue;
        }
        const std::uint64_t told = it->second.records + it->second.lost[loss_cause::overwritten];
        BOOST_TEST((told == lane.written || (tails_overwritten && told < lane.written)));
    }
}

void wait_until(const std::atomic<int>& word, int wanted) {
    while (word.load() < wanted) ::usleep(100);
}

/// A child that begins a session, holds `count` sub-buffers, and does not end.
template <class Begin>
class holding_child {
public:
    holding_child(Begin begin, int count) {
        if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
        pid_ = test::start_child([&] {
            auto session = begin();
            std::vector<typename std::remove_reference_t<decltype(*session)>::held> held;
            for (int i = 0; i < count; ++i) {
                auto one = session->take();
                if (!one) return 1;
                held.push_back(std::move(*one));
            }
            if (::write(pipe_[1], "x", 1) != 1) return 2;
            for (;;) ::pause();
        });
        char byte = 0;
        ::close(pipe_[1]);
        if (::read(pipe_[0], &byte, 1) != 1) throw std::runtime_error("the child has failed");
    }
    ~holding_child() { ::close(pipe_[0]); }
    holding_child(const holding_child&) = delete;
    holding_child& operator=(const holding_child&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }
    void kill() {
        ::kill(pid_, SIGKILL);
        BOOST_TEST(test::wait_for(pid_) == -SIGKILL);
    }

private:
    pid_t pid_ = 0;
    int pipe_[2] = {-1, -1};
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_consumed_is_gone_and_is_neither_overwritten_nor_lost) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const test::hands_on trace(recorder);
    {
        tr::drain::session session(recorder);
        ledger got;
        for (std::uint64_t round = 0; round < 20; ++round) {
            fill(recorder, round * 10 * fit_in_512, 10 * fit_in_512);
            session.for_each(got);
        }
        BOOST_TEST(got.strange == 0U);
        BOOST_TEST(session.lost().total() == 0U);
        BOOST_TEST(recorder.statistics().overwritten == 0U);
        BOOST_TEST(trace.count(sub_buffer_state::reading) == 0U);
        BOOST_TEST(trace.count(sub_buffer_state::closed) == 0U);
        BOOST_TEST(trace.ring().consumed_records.load(tr::relaxed) == got.records());
        // What is left is in the sub-buffer that is being filled.
        const auto left = account_of(recorder);
        BOOST_TEST(left.strange == 0U);
        BOOST_TEST(left.lost().total() == 0U);
        BOOST_TEST(got.records() + left.read() == 200 * fit_in_512);
        session.finish(got);
        BOOST_TEST(got.records() == 200 * fit_in_512);
        BOOST_TEST(got.strange == 0U);
        recorder.flush_thread();
        check_lanes(recorder, got);
    }
}

BOOST_AUTO_TEST_CASE(a_reader_of_the_file_knows_what_was_consumed_from_what_was_overwritten) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    fill(recorder, 0, (slots + 4) * fit_in_512);  // four are overwritten, one is being filled
    const std::uint64_t gone = account_of(recorder).lost()[loss_cause::overwritten];
    BOOST_TEST(gone >= 4 * fit_in_512);
    ledger got;
    {
        tr::drain::session session(recorder);
        for (int i = 0; i < 5; ++i) {
            auto one = session.take();
            BOOST_REQUIRE(one);
            got(**one);
            one->consume();
        }
        BOOST_TEST(session.lost()[loss_cause::overwritten] == gone);
    }
    auto left = account_of(recorder);
    BOOST_TEST(left.strange == 0U);
    BOOST_TEST(left.lost().total() == 0U);  // the session has reported those before it
    BOOST_TEST(gone + got.records() + left.read() == (slots + 4) * fit_in_512);
    // What is overwritten from now on was not consumed.
    fill(recorder, (slots + 4) * fit_in_512, 8 * fit_in_512);
    left = account_of(recorder);
    const std::uint64_t more = left.lost()[loss_cause::overwritten];
    BOOST_TEST(more > 0U);
    BOOST_TEST(gone + got.records() + left.read() + more == (slots + 12) * fit_in_512);
    BOOST_TEST(recorder.statistics().overwritten == gone + more);
    // The next session continues where the last one ended.
    tr::drain::session session(recorder);
    session.finish([&](const tr::drained_sub_buffer& portion) {
        BOOST_TEST(portion.first() >= got.records() + gone);
        got(portion);
    });
    BOOST_TEST(session.lost()[loss_cause::overwritten] == more);
    BOOST_TEST(gone + more + got.records() == (slots + 12) * fit_in_512);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(consumed_and_lost_add_up_to_what_was_written_in_every_full_mode) {
    for (const auto full :
         {full_mode::overwrite_oldest, full_mode::discard_newest, full_mode::stop, full_mode::block,
          full_mode::extend_then_discard, full_mode::extend_then_overwrite}) {
        BOOST_TEST_CONTEXT("mode " << static_cast<unsigned>(full)) {
            constexpr int writers = 3;
            const std::uint64_t each = test::repeated(40'000, 1500);
            auto options = small(full);
            if (full == full_mode::extend_then_discard ||
                full == full_mode::extend_then_overwrite) {
                options.limit = 4 * options.size;
            }
            tr::recorder recorder(options);
            std::atomic<int> ended{0};
            std::atomic<std::uint64_t> written{0};
            std::vector<std::thread> threads;
            tr::drain::session session(recorder);
            for (int w = 0; w < writers; ++w) {
                threads.emplace_back([&, w] {
                    written += fill(recorder, 0, each, static_cast<std::uint64_t>(w));
                    ++ended;
                });
            }
            ledger got;
            got.one_writer_a_lane = false;  // one may end before another begins
            while (ended.load() < writers) {
                if (session.for_each(got) == 0) std::this_thread::yield();
            }
            for (auto& thread : threads) thread.join();
            session.finish(got);
            BOOST_TEST(got.strange == 0U);
            const auto& lost = session.lost();
            BOOST_TEST(got.records() == session.records());
            BOOST_TEST(got.records() + lost[loss_cause::overwritten] == written.load());
            BOOST_TEST(recorder.statistics().overwritten == lost[loss_cause::overwritten]);
            if (full != full_mode::stop) {  // whose shut gates refuse without a count
                BOOST_TEST(written.load() + lost[loss_cause::refused] == writers * each);
            }
            if (full == full_mode::block) BOOST_TEST(lost.total() == 0U);
            BOOST_TEST(lost.total() == lost[loss_cause::overwritten] + lost[loss_cause::refused]);
            check_lanes(recorder, got, true);
            BOOST_TEST(test::hands_on(recorder).count(sub_buffer_state::reading) == 0U);
            const auto left = account_of(recorder);
            BOOST_TEST(left.read() == 0U);
            BOOST_TEST(left.lost()[loss_cause::overwritten] == 0U);
            BOOST_TEST(left.strange == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(lanes_whose_entries_went_to_others_are_accounted_for_too) {
    for (const auto full : {full_mode::overwrite_oldest, full_mode::discard_newest,
                            full_mode::extend_then_overwrite}) {
        for (const std::uint32_t lanes : {0U, 8U}) {
            BOOST_TEST_CONTEXT("mode " << static_cast<unsigned>(full) << ", " << lanes
                                       << " lanes") {
                constexpr int starters = 4;
                auto options = small(full);
                if (full == full_mode::extend_then_overwrite) options.limit = 4 * options.size;
                options.lanes = lanes;
                tr::recorder recorder(options);
                std::atomic<int> ended{0};
                std::atomic<std::uint64_t> written{0};
                std::atomic<std::uint64_t> tried{0};
                tr::drain::session session(recorder);
                std::vector<std::thread> threads;
                for (int s = 0; s < starters; ++s) {
                    threads.emplace_back([&, s] {
                        // Threads that come and go, more than there are entries for.
                        for (std::uint64_t k = 0; k < 20; ++k) {
                            std::thread([&] {
                                const std::uint64_t count = k % 7 * 60 + 5;
                                tried += count;
                                written += fill(recorder, 0, count, static_cast<std::uint64_t>(s));
                            }).join();
                        }
                        ++ended;
                    });
                }
                ledger got;
                got.one_writer_a_lane = false;
                while (ended.load() < starters) {
                    if (session.for_each(got) == 0) std::this_thread::yield();
                }
                for (auto& thread : threads) thread.join();
                session.finish(got);
                const auto& lost = session.lost();
                BOOST_TEST(got.strange == 0U);
                BOOST_TEST(got.records() + lost[loss_cause::overwritten] == written.load());
                BOOST_TEST(written.load() + lost[loss_cause::refused] == tried.load());
                BOOST_TEST(recorder.statistics().overwritten == lost[loss_cause::overwritten]);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_reader_knows_what_was_consumed_of_lanes_whose_entries_went_to_others) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    auto options = small(full_mode::overwrite_oldest, file);
    options.lanes = 8;
    tr::recorder recorder(options);
    std::uint64_t written = 0;
    const auto write_in_threads = [&](int threads, std::uint64_t each) {
        for (int i = 0; i < threads; ++i)
            std::thread([&] { written += fill(recorder, 0, each); }).join();
    };
    // Records and losses that a follower reports if it begins now.
    const auto follow = [&] {
        const auto trace = tr::reduce::trace_file::open(file);
        auto cursor = trace.follow();
        std::pair<std::uint64_t, std::uint64_t> sum{};
        const auto take = [&] {
            while (const auto* one = cursor.next()) {
                if (std::holds_alternative<tr::reduce::record_view>(*one))
                    sum.first += 1 + cursor.records().size();
                else if (const auto* loss = std::get_if<tr::reduce::loss_item>(one))
                    sum.second += loss->count;
            }
        };
        take();
        cursor.stop_following();
        take();
        return sum;
    };
    ledger got;
    got.one_writer_a_lane = false;
    std::uint64_t told = 0;  // to sessions, as lost
    const auto check = [&](const char* when) {
        const auto left = account_of(tr::reduce::trace_file::open(file));
        const std::uint64_t lost = left.lost()[loss_cause::overwritten];
        BOOST_TEST_CONTEXT(when) {
            BOOST_TEST(left.lost().total() == lost);
            BOOST_TEST(got.records() + told + left.read() + lost == written);
            const auto [followed, missing] = follow();
            BOOST_TEST(followed == left.read());
            BOOST_TEST(missing == lost);
        }
        return lost;
    };
    {
        tr::drain::session session(recorder);
        for (int i = 0; i < 50; ++i) {
            write_in_threads(1, 10);
            session.for_each(got);
        }
        BOOST_TEST(check("while a session consumes all") == 0U);
        session.finish(got);
        BOOST_TEST(session.lost().total() == 0U);
        BOOST_TEST(got.records() == written);
    }
    BOOST_TEST(check("after it") == 0U);
    write_in_threads(14, 10);
    BOOST_TEST(check("lanes have gone that left their records") == 0U);
    write_in_threads(30, 2 * fit_in_512);
    BOOST_TEST(check("lanes have gone whose records were overwritten") > 0U);
    {
        tr::drain::session session(recorder);
        session.finish(got);
        told += session.lost()[loss_cause::overwritten];
        // Only the first part of each of these is consumed.
        for (int i = 0; i < 3; ++i) {
            write_in_threads(1, 4 * fit_in_512);
            auto one = session.take();
            BOOST_REQUIRE(one);
            got(**one);
            one->consume();
        }
    }
    BOOST_TEST(check("a session has gone that had a part of some") == 0U);
    write_in_threads(2, 0);
    write_in_threads(8, 1);
    check("they have gone as well");
    write_in_threads(20, 2 * fit_in_512);
    BOOST_TEST(check("and were overwritten in part") > 0U);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(a_million_records_of_writers_that_wait_arrive_in_order_and_none_is_missing) {
    constexpr int writers = 4;
    const std::uint64_t each = test::repeated(250'000, 2000);
    auto options = small(full_mode::block);
    options.sub_buffer_bytes = 4096;
    options.size = slots * 4096;
    tr::recorder recorder(options);
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            fill(recorder, 0, each, static_cast<std::uint64_t>(w));
            ++ended;
        });
    }
    std::map<std::uint64_t, std::uint64_t> next;
    std::uint64_t wrong = 0;
    const auto see = [&](const tr::drained_record& record) {
        wrong += record.payload[1] == next[record.payload[0]]++ ? 0 : 1;
    };
    tr::drain::session session(recorder);
    while (ended.load() < writers) {
        if (session.for_each_record(see) == 0) std::this_thread::yield();
    }
    for (auto& thread : threads) thread.join();
    session.finish_records(see);
    BOOST_TEST(wrong == 0U);
    for (int w = 0; w < writers; ++w) BOOST_TEST(next[static_cast<std::uint64_t>(w)] == each);
    BOOST_TEST(session.records() == writers * each);
    BOOST_TEST(session.lost().total() == 0U);
    BOOST_TEST(recorder.statistics().overwritten == 0U);
}

BOOST_AUTO_TEST_CASE(more_writers_than_lanes_wait_for_their_reader_and_lose_nothing) {
    for (const std::uint32_t lanes : {0U, 16U}) {
        const std::uint64_t writers = test::scaled(124, 40);
        const std::uint64_t each = test::repeated(2000, 200);
        auto options = small(full_mode::block);
        options.size = 256 * 512;
        options.lanes = lanes;  // 0: 128, of which 112 belong to one thread each
        tr::recorder recorder(options);
        std::atomic<std::uint64_t> kept{0};
        std::atomic<std::uint64_t> ended{0};
        std::vector<std::thread> threads;
        for (std::uint64_t w = 0; w < writers; ++w) {
            threads.emplace_back([&, w] {
                kept += fill(recorder, 0, each, w);
                ++ended;
            });
        }
        std::map<std::uint64_t, std::uint64_t> seen;
        const auto see = [&](const tr::drained_record& record) { ++seen[record.payload[0]]; };
        tr::drain::session session(recorder);
        while (ended.load() < writers) {
            if (session.for_each_record(see) == 0) std::this_thread::yield();
        }
        for (auto& thread : threads) thread.join();
        session.finish_records(see);
        BOOST_TEST(kept.load() == writers * each);
        for (std::uint64_t w = 0; w < writers; ++w) BOOST_TEST(seen[w] == each);
        BOOST_TEST(session.records() == writers * each);
        BOOST_TEST(session.lost().total() == 0U);
        BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
        BOOST_TEST(recorder.statistics().held == 0U);
    }
}

BOOST_AUTO_TEST_CASE(writers_go_round_one_that_rests_on_its_sub_buffer) {
    for (const auto full : {full_mode::block, full_mode::discard_newest}) {
        tr::recorder recorder(small(full));
        std::atomic<int> step{0};
        std::thread resting([&] {
            put(recorder, 7, 0);
            step = 1;
            wait_until(step, 2);
            put(recorder, 7, 1);
        });
        wait_until(step, 1);
        ledger got;
        tr::drain::session session(recorder);
        for (std::uint64_t round = 0; round < 30; ++round) {
            BOOST_TEST(fill(recorder, round * 4 * fit_in_512, 4 * fit_in_512) == 4 * fit_in_512);
            session.for_each(got);
        }
        step = 2;
        resting.join();
        session.finish(got);
        BOOST_TEST(got.strange == 0U);
        BOOST_TEST(got.records() == 120 * fit_in_512 + 2);
        BOOST_TEST(session.lost().total() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_quarter_is_held_at_most_and_writers_leave_it_alone) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const test::hands_on trace(recorder);
    fill(recorder, 0, slots * fit_in_512);
    tr::drain::session session(recorder);
    std::vector<decltype(session)::held> held;
    while (auto one = session.take()) held.push_back(std::move(*one));
    BOOST_REQUIRE(held.size() == slots / 4);
    BOOST_TEST(trace.count(sub_buffer_state::reading) == slots / 4);
    std::vector<std::uint64_t> before;
    for (const auto& one : held)
        before.insert(before.end(), one->words().begin(), one->words().end());
    // Several laps go round them.
    BOOST_TEST(fill(recorder, slots * fit_in_512, 100 * fit_in_512) == 100 * fit_in_512);
    std::vector<std::uint64_t> after;
    for (const auto& one : held)
        after.insert(after.end(), one->words().begin(), one->words().end());
    BOOST_TEST((before == after));
    BOOST_TEST(trace.count(sub_buffer_state::reading) == slots / 4);
    held[1].consume();
    BOOST_TEST(trace.count(sub_buffer_state::reading) == slots / 4 - 1);
    auto one = session.take();
    BOOST_REQUIRE(one);
    BOOST_TEST((*one)->lost()[loss_cause::overwritten] > 0U);
    BOOST_TEST(!session.take());
}

BOOST_AUTO_TEST_CASE(what_is_still_held_when_a_session_ends_is_closed_again) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const test::hands_on trace(recorder);
    fill(recorder, 0, 8 * fit_in_512);
    std::uint64_t first = 0;
    {
        tr::drain_source source(recorder);
        source.attach();
        tr::drained_sub_buffer one;
        BOOST_REQUIRE(source.take(one));
        first = one.records();
        BOOST_TEST(trace.count(sub_buffer_state::reading) == 1U);
        source.detach();
    }
    BOOST_TEST(trace.count(sub_buffer_state::reading) == 0U);
    ledger got;
    tr::drain::session session(recorder);
    session.finish(got);
    BOOST_TEST(got.records() == 8 * fit_in_512);
    BOOST_TEST(first > 0U);
}

BOOST_AUTO_TEST_CASE(a_look_leaves_everything_to_the_next_session) {
    tr::recorder recorder(small(full_mode::discard_newest));
    fill(recorder, 0, 9 * fit_in_512);
    for (int round = 0; round < 2; ++round) {
        tr::drain::session session(recorder);
        std::uint64_t seen = 0;
        session.peek_each([&](const tr::drained_sub_buffer& one) { seen += one.records(); });
        BOOST_TEST(seen >= 8 * fit_in_512);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 0U);
        BOOST_TEST(account_of(recorder).read() == 9 * fit_in_512);
    }
    tr::drain::session session(recorder);
    ledger got;
    BOOST_CHECK_THROW(
        session.for_each([](const tr::drained_sub_buffer&) { throw std::runtime_error("no"); }),
        std::runtime_error);
    session.finish(got);
    BOOST_TEST(account_of(recorder).read() >= fit_in_512);  // the one that was thrown at is there
}

BOOST_AUTO_TEST_CASE(what_a_thread_adds_to_a_sub_buffer_after_a_look_is_seen_by_the_next) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    tr::drain::session session(recorder);
    ledger got;
    got.one_writer_a_lane = false;
    std::uint64_t written = 0;
    const auto in_a_thread = [&](std::uint64_t count) {
        std::thread([&] { written += fill(recorder, written, count); }).join();
    };
    for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{2}, std::uint64_t{1},
                                      2 * fit_in_512, std::uint64_t{4}, std::uint64_t{5}}) {
        in_a_thread(count);
        session.peek_each(got);
        BOOST_TEST(got.records() == written);
        BOOST_TEST(session.peek_each(got) == 0U);
    }
    // One that is being written on in: its complete records come as a copy, and then not again.
    std::atomic<int> step{0};
    std::thread other([&] {
        written += fill(recorder, written, 1);
        step = 1;
        wait_until(step, 2);
        written += fill(recorder, written, 1);
    });
    wait_until(step, 1);
    session.peek_each(got);
    BOOST_TEST(got.records() == written - 1);
    session.finish(got);
    BOOST_TEST(got.records() == written);
    step = 2;
    other.join();
    session.finish(got);
    BOOST_TEST(got.records() == written);
    BOOST_TEST(got.strange == 0U);
    check_lanes(recorder, got);
    // What was looked at and then freed is consumed, too.
    const test::hands_on trace(recorder);
    const std::uint64_t consumed = trace.ring().consumed_records.load(tr::relaxed);
    BOOST_TEST(consumed > 0U);
    BOOST_TEST(account_of(recorder).read() + consumed == written);
    BOOST_TEST(account_of(recorder).lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(looks_while_short_threads_hand_on_their_lanes_miss_nothing) {
    // Half of the ring is held, so each lane is released after each record, and continued.
    for (const std::uint64_t holders : {std::uint64_t{0}, slots / 2 - 2}) {
        tr::recorder_options options = small(full_mode::discard_newest);
        options.size = options.limit = slots * 512 * 40;
        if (holders != 0) options.size = options.limit = slots * 512;
        tr::recorder recorder(options);
        std::atomic<int> ready{0}, over{0};
        std::vector<std::thread> resting;
        std::uint64_t written = 0;
        for (std::uint64_t i = 0; i < holders; ++i) {
            resting.emplace_back([&] {
                fill(recorder, 0, 1, 9);
                ++ready;
                wait_until(over, 1);
            });
        }
        wait_until(ready, static_cast<int>(holders));
        written += holders;
        tr::drain::session session(recorder);
        ledger got;
        got.one_writer_a_lane = false;
        std::atomic<int> done{0};
        std::thread writer([&] {
            for (int i = 0; i < (holders != 0 ? 20 : 200); ++i) {
                std::thread([&] {
                    written += fill(recorder, written, 1 + static_cast<unsigned>(i) % 7U);
                }).join();
            }
            done = 1;
        });
        while (done.load() == 0) session.peek_each(got);
        writer.join();
        session.peek_each(got);
        over = 1;
        for (auto& each : resting) each.join();
        session.peek_each(got);
        session.finish(got);
        BOOST_TEST(got.records() == written);
        BOOST_TEST(got.strange == 0U);
        BOOST_TEST(session.lost()[loss_cause::overwritten] == 0U);
    }
}

BOOST_AUTO_TEST_CASE(looks_account_for_lanes_that_were_overwritten_before_or_after_them) {
    // Enough entries for all lanes, and so few that their entries go to others.
    for (const bool folded : {false, true}) {
        for (const std::uint64_t writers : {1U, 2U, 4U}) {
            BOOST_TEST_CONTEXT("writers " << writers << ", folded " << folded) {
                auto options = small(full_mode::overwrite_oldest);
                if (folded) options.lanes = 16;
                tr::recorder recorder(options);
                std::uint64_t written = 0;
                tr::drain::session session(recorder);
                const auto nothing = [](const auto&) {};
                const auto in_a_thread = [&](std::uint64_t count) {
                    std::thread([&] { written += fill(recorder, written, count); }).join();
                };
                for (std::uint64_t i = 0; i < writers; ++i) {
                    in_a_thread(3 * slots * fit_in_512 + i);
                    if (i == 0) session.peek_each(nothing);
                }
                for (int i = 0; folded && i < 300; ++i) in_a_thread(1 + fit_in_512);
                session.peek_each(nothing);
                const test::hands_on trace(recorder);
                BOOST_TEST((trace.ring().folded_lanes.load(tr::relaxed) > 0) == folded);
                BOOST_TEST(session.records() + session.lost().total() <= written);
                session.finish_records(nothing);
                BOOST_TEST(session.records() + session.lost().total() == written);
                session.finish_records(nothing);
                BOOST_TEST(session.records() + session.lost().total() == written);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_lost_behind_what_was_kept_is_told_by_this_session_and_the_next) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const auto nothing = [](const auto&) {};
    std::atomic<int> step{0};
    std::uint64_t first = 0, second = 0;
    {
        tr::drain::session session(recorder);
        std::thread writer([&] {
            first += fill(recorder, 0, 3 * fit_in_512);
            step = 1;
            wait_until(step, 2);
            first += fill(recorder, first, 3 * slots * fit_in_512);
        });
        wait_until(step, 1);
        session.peek_each(nothing);
        BOOST_TEST(session.records() > 0U);
        step = 2;
        writer.join();
        std::thread([&] { second += fill(recorder, 0, 3 * slots * fit_in_512); }).join();
        session.finish_records(nothing);
        BOOST_TEST(session.records() + session.lost().total() == first + second);
    }
    tr::drain::session session(recorder);
    session.finish_records(nothing);
    BOOST_TEST(session.records() + session.lost().total() == first);
}

BOOST_AUTO_TEST_CASE(records_of_a_sub_buffer_that_is_being_filled_come_once) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    ledger got;
    {
        tr::drain::session session(recorder);
        for (std::uint64_t n = 0; n < 5; ++n) {
            fill(recorder, n * 3, 3);
            session.finish(got);
            BOOST_TEST(got.records() == n * 3 + 3);
        }
        BOOST_TEST(session.lost().total() == 0U);
    }
    fill(recorder, 15, 1);
    {
        tr::drain::session session(recorder);  // another one knows, too
        session.finish(got);
        BOOST_TEST(got.records() == 16U);
        fill(recorder, 16, 5 * fit_in_512);
        session.finish(got);
        BOOST_TEST(session.lost().total() == 0U);
    }
    BOOST_TEST(got.records() == 16 + 5 * fit_in_512);
    BOOST_TEST(got.strange == 0U);
}

BOOST_AUTO_TEST_CASE(a_second_session_is_refused_and_told_by_whom) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    tr::recorder recorder(small(full_mode::overwrite_oldest, file));
    fill(recorder, 0, 4 * fit_in_512);
    std::optional<tr::drain::session<tr::drain_source>> session;
    session.emplace(recorder);
    const auto refused = [](const tr::setup_error& error) {
        return error.code().value() == EBUSY &&
               std::string(error.what()).find("process " + std::to_string(::getpid())) !=
                   std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(tr::drain::session another(recorder), tr::setup_error, refused);
    const pid_t parent = ::getpid();
    const auto in_another_process = [&] {
        return test::in_child([&] {
            tr::drain_source source(file);
            try {
                tr::drain::session another(source);
                ledger got;
                another.for_each(got);
                return got.strange == 0 && got.records() > 0 ? 0 : 1;
            } catch (const tr::setup_error& error) {
                const std::string text = error.what();
                const bool clear = text.find(file) != std::string::npos &&
                                   text.find(std::to_string(parent)) != std::string::npos;
                return error.code().value() == EBUSY && clear ? 2 : 3;
            }
        });
    };
    BOOST_TEST(in_another_process() == 2);
    session.reset();
    BOOST_TEST(in_another_process() == 0);
    BOOST_CHECK_NO_THROW(tr::drain::session another(recorder));
    BOOST_CHECK_THROW(tr::drain_source(folder / "none.trace"), tr::setup_error);
}

BOOST_AUTO_TEST_CASE(a_child_of_a_fork_has_no_part_in_its_parents_session) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    fill(recorder, 0, 8 * fit_in_512);
    tr::drain::session session(recorder);
    auto one = session.take();
    BOOST_REQUIRE(one);
    BOOST_TEST(test::in_child([&] {
                   session.source().detach();
                   return 0;
               }) == 0);
    BOOST_TEST(test::hands_on(recorder).count(sub_buffer_state::reading) == 1U);
    BOOST_CHECK_THROW(tr::drain::session another(recorder), tr::setup_error);
}

BOOST_AUTO_TEST_CASE(what_a_killed_session_held_is_there_for_the_next_one) {
    const test::folder folder;
    for (const std::string& file : {std::string(), folder / "a.trace"}) {
        tr::recorder recorder(small(full_mode::overwrite_oldest, file));
        const test::hands_on trace(recorder);
        fill(recorder, 0, 9 * fit_in_512);
        holding_child child(
            [&] {
                if (file.empty()) {
                    return std::make_unique<tr::drain::session<tr::drain_source>>(recorder);
                }
                return std::make_unique<tr::drain::session<tr::drain_source>>(file);
            },
            3);
        BOOST_TEST(trace.count(sub_buffer_state::reading) == 3U);
        BOOST_CHECK_THROW(tr::drain::session another(recorder), tr::setup_error);
        child.kill();
        BOOST_TEST(trace.count(sub_buffer_state::reading) == 3U);
        tr::drain::session session(recorder);
        BOOST_TEST(trace.count(sub_buffer_state::reading) == 0U);
        ledger got;
        session.finish(got);
        BOOST_TEST(got.records() == 9 * fit_in_512);
        BOOST_TEST(got.strange == 0U);
        BOOST_TEST(session.lost().total() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(writers_take_back_what_a_killed_session_held_after_some_laps) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const test::hands_on trace(recorder);
    fill(recorder, 0, slots * fit_in_512);
    holding_child child(
        [&] { return std::make_unique<tr::drain::session<tr::drain_source>>(recorder); }, 4);
    fill(recorder, 0, 400 * slots * fit_in_512);  // it lives: nothing is taken from it
    BOOST_TEST(trace.count(sub_buffer_state::reading) == 4U);
    child.kill();
    fill(recorder, 0, 400 * slots * fit_in_512);
    BOOST_TEST(trace.count(sub_buffer_state::reading) == 0U);
    BOOST_TEST(trace.ring().session_owner.load(tr::relaxed) == 0U);
    recorder.flush_thread();
    BOOST_TEST(account_of(recorder).read() >= (slots - 1) * fit_in_512);
}

BOOST_AUTO_TEST_CASE(a_damaged_sub_buffer_costs_its_own_records_and_is_told) {
    tr::recorder recorder(small(full_mode::overwrite_oldest));
    const test::hands_on trace(recorder);
    fill(recorder, 0, 9 * fit_in_512);
    const std::uint64_t in_it =
        tr::commit_word::records(trace.sub_buffer(2).commit.load(tr::relaxed));
    trace.sub_buffer(2).magic.store(0, tr::relaxed);
    // One whose third record says that it has no length.
    tr::word_at<std::uint32_t>(&trace.sub_buffer(4), 64 + 2 * 24 + 4).store(0, tr::relaxed);
    const std::uint64_t behind =
        tr::commit_word::records(trace.sub_buffer(4).commit.load(tr::relaxed)) - 2;
    tr::drain::session session(recorder);
    const std::uint64_t seen = session.finish_records([](const auto&) {});
    BOOST_TEST(session.lost()[loss_cause::damaged] == in_it + behind);
    BOOST_TEST(session.lost().total() == in_it + behind);
    BOOST_TEST(seen + in_it + behind == 9 * fit_in_512);
    BOOST_TEST(session.records() == seen);
}

BOOST_AUTO_TEST_SUITE_END()
