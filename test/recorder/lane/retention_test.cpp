// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What a recorder keeps: of short threads in a small file, of quiet ones among noisy ones, of
/// events with a quota during a flood of others.

#include <boost/test/unit_test.hpp>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

namespace retention {

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
using tr::loss_cause;

namespace {

[[nodiscard]] std::uint32_t this_thread() {
    return static_cast<std::uint32_t>(::syscall(SYS_gettid));
}

/// Runs `body` in a separate thread, to its end.
template <class Body>
void in_thread(const Body& body) {
    std::thread(body).join();
}

[[nodiscard]] reduce::trace_file trace_of(const tr::recorder& recorder) {
    const auto [data, size] = recorder.bytes();
    return reduce::trace_file::from(std::span(data, size));
}

struct taken {
    std::uint64_t who, n;
    std::uint32_t thread, lane;
    std::string name;
};
/// Each `numbered` record, by time; losses are counted.
[[nodiscard]] std::vector<taken> records_of(reduce::cursor cursor, std::uint64_t& lost) {
    std::vector<taken> out;
    while (const auto* item = cursor.next()) {
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            out.push_back({record->field(0).u64(), record->field(1).u64(), record->lane().thread,
                           record->lane().number, record->lane().name});
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            lost += loss->count;
        } else {
            ++lost;
        }
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(short_threads)

BOOST_AUTO_TEST_CASE(a_thousand_in_turn_leave_every_record_in_a_quarter_of_a_small_file) {
    tr::recorder recorder({.size = 64 * 4096});
    std::map<std::uint64_t, std::uint32_t> threads;
    std::uint64_t written = 0;
    std::uint64_t bytes = 0;
    for (std::uint64_t who = 0; who < 1000; ++who) {
        in_thread([&] {
            threads[who] = this_thread();
            for (std::uint64_t n = 0; n < 1 + who % 3; ++n) {
                BOOST_REQUIRE(test::put(recorder, who, n));
            }
        });
        written += 1 + who % 3;
        bytes += tr::owner_record_bytes + (1 + who % 3) * 24;
    }
    auto trace = trace_of(recorder);
    std::uint64_t lost = 0;
    std::map<std::uint64_t, std::uint64_t> next;
    const auto found = records_of(trace.forward(), lost);
    for (const auto& record : found) {
        BOOST_REQUIRE(record.thread == threads[record.who]);
        BOOST_REQUIRE(record.n == next[record.who]++);
    }
    BOOST_TEST(found.size() == written);
    BOOST_TEST(lost == 0U);
    BOOST_TEST(recorder.statistics().overwritten == 0U);
    // Full except for an eighth at most.
    BOOST_TEST(recorder.statistics().claimed >= bytes / (4096 - 64));
    BOOST_TEST(recorder.statistics().claimed <= bytes / (4096 - 64 - 512) + 1);
    BOOST_TEST(recorder.statistics().held == 0U);
    BOOST_TEST(trace.damages().empty());
}

BOOST_AUTO_TEST_CASE(the_records_of_a_lane_that_was_adopted_are_told_apart_in_both_directions) {
    tr::recorder recorder({.size = 64 * 4096});
    std::vector<std::uint32_t> threads;
    for (const char* name : {"first", "second", "first", "a_name_of_15_by"}) {
        in_thread([&] {
            ::prctl(PR_SET_NAME, name);
            threads.push_back(this_thread());
            for (std::uint64_t n = 0; n < 2; ++n) {
                BOOST_REQUIRE(test::put(recorder, threads.size() - 1, n));
            }
        });
    }
    auto trace = trace_of(recorder);
    std::uint64_t lost = 0;
    auto forward = records_of(trace.forward(), lost);
    auto backward = records_of(trace.backward(), lost);
    BOOST_TEST(lost == 0U);
    BOOST_REQUIRE(forward.size() == 8U);
    BOOST_REQUIRE(backward.size() == 8U);
    std::reverse(backward.begin(), backward.end());
    const char* const names[] = {"first", "second", "first", "a_name_of_15_by"};
    for (std::size_t i = 0; i < 8; ++i) {
        for (const auto& record : {forward[i], backward[i]}) {
            BOOST_TEST(record.who == i / 2);
            BOOST_TEST(record.n == i % 2);
            BOOST_TEST(record.thread == threads[i / 2]);
            BOOST_TEST(record.name == names[i / 2]);
            BOOST_TEST(record.lane == forward[0].lane);
        }
    }
    BOOST_TEST(recorder.statistics().claimed == 1U);
    // One thread's records alone, though the lane is another's by name.
    const auto only = records_of(trace.forward({.threads = {threads[1]}}), lost);
    BOOST_REQUIRE(only.size() == 2U);
    BOOST_TEST(only[0].who == 1U);
    BOOST_TEST(only[1].who == 1U);
    const auto counts = trace.statistics();
    BOOST_TEST(counts.records == 8U);
    std::map<std::uint32_t, std::uint64_t> by_thread;
    for (const auto& lane : counts.lanes) {
        if (lane.lane != nullptr) by_thread[lane.lane->thread] += lane.records;
    }
    for (const auto thread : threads) BOOST_TEST(by_thread[thread] == 2U);
}

BOOST_AUTO_TEST_CASE(who_fills_what_it_was_left_goes_on_in_a_lane_of_its_own) {
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    in_thread([&] { BOOST_REQUIRE(test::put(recorder, 0, 0)); });
    std::uint32_t second = 0;
    in_thread([&] {
        second = this_thread();
        for (std::uint64_t n = 0; n < 100; ++n) BOOST_REQUIRE(test::put(recorder, 1, n));
    });
    const auto trace = trace_of(recorder);
    const auto seen = test::account_of(trace);
    BOOST_TEST(seen.strange == 0U);
    BOOST_TEST(seen.read() == 101U);
    BOOST_TEST(seen.lost().total() == 0U);
    BOOST_REQUIRE(trace.lanes().size() == 2U);
    BOOST_TEST(trace.lanes()[0].written == 1U + (512 - 64 - 24 - 24 - 16) / 24);
    BOOST_TEST(trace.lanes()[1].written == 101U - trace.lanes()[0].written);
    BOOST_TEST(trace.lanes()[1].thread == second);
}

BOOST_AUTO_TEST_CASE(what_was_overwritten_or_flushed_meanwhile_is_not_gone_on_in) {
    tr::recorder recorder({.size = 8 * 512, .sub_buffer_bytes = 512});
    in_thread([&] { BOOST_REQUIRE(test::put(recorder, 0, 0)); });
    // This thread was there before, so it does not take what the other left, but all the rest.
    for (std::uint64_t n = 0; n < 1000; ++n) BOOST_REQUIRE(test::put(recorder, 1, n));
    in_thread([&] { BOOST_REQUIRE(test::put(recorder, 2, 0)); });
    recorder.flush_thread();
    BOOST_REQUIRE(test::put(recorder, 3, 0));
    auto trace = trace_of(recorder);
    std::uint64_t lost = 0;
    std::map<std::uint64_t, std::uint64_t> kept;
    for (const auto& record : records_of(trace.forward(), lost)) {
        ++kept[record.who];
        if (record.who != 2) BOOST_TEST((record.thread == this_thread()));
    }
    BOOST_TEST(kept[0] == 0U);
    BOOST_TEST(kept[2] == 1U);
    BOOST_TEST(kept[3] == 1U);
    BOOST_TEST(kept[1] + 2U + lost == 1003U);
}

BOOST_AUTO_TEST_CASE(who_follows_a_trace_sees_what_is_added_to_a_closed_sub_buffer) {
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    auto trace = trace_of(recorder);
    auto cursor = trace.follow();
    std::uint64_t read = 0;
    std::uint64_t lost = 0;
    const auto look = [&] {
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(item)) {
                BOOST_REQUIRE(record->field(1).u64() == read);
                ++read;
            } else {
                ++lost;
            }
        }
    };
    for (std::uint64_t n = 0; n < 100; ++n) {
        in_thread([&] { BOOST_REQUIRE(test::put(recorder, n, n)); });
        if (n % 3 != 0) look();
    }
    look();
    look();
    cursor.stop_following();
    look();
    BOOST_TEST(read == 100U);
    BOOST_TEST(lost == 0U);
}

BOOST_AUTO_TEST_CASE(many_that_come_and_go_at_once_lose_nothing_and_are_told_apart) {
    constexpr std::uint64_t at_once = 8;
    const std::uint64_t rounds = test::scaled(500, 20);
    tr::recorder recorder({.size = 1024 * 4096});
    std::vector<std::map<std::uint64_t, std::uint32_t>> threads(at_once);
    std::vector<std::thread> hands;
    for (std::uint64_t hand = 0; hand < at_once; ++hand) {
        hands.emplace_back([&, hand] {
            for (std::uint64_t i = 0; i < rounds; ++i) {
                in_thread([&] {
                    threads[static_cast<std::size_t>(hand)][i] = this_thread();
                    for (std::uint64_t n = 0; n < i % 5; ++n) {
                        static_cast<void>(test::put(recorder, hand * rounds + i, n));
                    }
                });
            }
        });
    }
    for (auto& hand : hands) hand.join();
    auto trace = trace_of(recorder);
    std::uint64_t lost = 0;
    std::map<std::uint64_t, std::uint64_t> next;
    const auto found = records_of(trace.forward(), lost);
    for (const auto& record : found) {
        BOOST_REQUIRE(record.thread ==
                      threads[static_cast<std::size_t>(record.who / rounds)][record.who % rounds]);
        BOOST_REQUIRE(record.n == next[record.who]++);
    }
    BOOST_TEST(found.size() == at_once * rounds / 5 * 10);
    BOOST_TEST(lost == 0U);
    BOOST_TEST(recorder.statistics().held == 0U);
    BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(quiet_threads)

namespace {

constexpr std::uint64_t slots = 64;

/// A thread that executes commands, one at a time.
class hand {
public:
    hand() : thread_([this] { work(); }) {}
    hand(const hand&) = delete;
    hand& operator=(const hand&) = delete;
    ~hand() {
        give(nullptr);
        thread_.join();
    }
    void run(const std::function<void()>& what) { give(&what); }

private:
    void give(const std::function<void()>* what) {
        what_ = what;
        turn_.store(1);
        turn_.notify_one();
        if (what == nullptr) return;
        turn_.wait(1);
    }
    void work() {
        for (;;) {
            turn_.wait(0);
            if (what_ == nullptr) return;
            (*what_)();
            turn_.store(0);
            turn_.notify_one();
        }
    }
    const std::function<void()>* what_ = nullptr;
    std::atomic<int> turn_{0};
    std::thread thread_;
};

/// Fills sub-buffers until the ring's cursor, or what a test counts by, has come to `until`.
void make_noise(tr::recorder& recorder, std::uint64_t until) {
    while (recorder.statistics().claimed < until) BOOST_REQUIRE(test::put(recorder, 1, 0));
}

std::uint64_t kept_of(tr::recorder& recorder, std::uint64_t who) {
    auto trace = trace_of(recorder);
    std::uint64_t lost = 0;
    std::uint64_t count = 0;
    std::uint64_t expected = ~std::uint64_t{0};
    for (const auto& record : records_of(trace.forward(), lost)) {
        if (record.who != who) continue;
        if (count++ != 0) BOOST_REQUIRE(record.n == expected + 1);  // the newest, without a gap
        expected = record.n;
    }
    return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_sub_buffer_that_a_quiet_thread_fills_stays_however_often_others_go_round) {
    tr::recorder recorder({.size = slots * 512, .sub_buffer_bytes = 512});
    hand quiet;
    // Fewer than fit: where this takes many seconds, time records are among them.
    for (std::uint64_t n = 0; n < test::fit_in_512 - 6; ++n) {
        quiet.run([&] { BOOST_REQUIRE(test::put(recorder, 2, n)); });
        make_noise(recorder, (n + 1) * 3 * slots);
        BOOST_REQUIRE(kept_of(recorder, 2) == n + 1);
    }
}

BOOST_AUTO_TEST_CASE(what_it_filled_stays_for_half_a_round_wherever_the_others_are) {
    std::uint64_t tries = 0;
    for (std::uint64_t phase = 0; phase < slots;) {
        BOOST_REQUIRE(++tries < 2 * slots);
        tr::recorder recorder({.size = slots * 512, .sub_buffer_bytes = 512});
        hand quiet;
        std::uint64_t n = 0;
        for (; n < test::fit_in_512; ++n) {
            quiet.run([&] { BOOST_REQUIRE(test::put(recorder, 2, n)); });
        }
        // The clock's high half changed in between: a time record took the last one's room.
        if (recorder.statistics().claimed != 1) continue;
        make_noise(recorder, 5 * slots + phase);
        const std::uint64_t closed_at = recorder.statistics().claimed;
        quiet.run([&] {
            while (recorder.statistics().claimed == closed_at) {
                BOOST_REQUIRE(test::put(recorder, 2, n++));
            }
        });
        BOOST_REQUIRE(n <= test::fit_in_512 + 2);
        BOOST_REQUIRE(kept_of(recorder, 2) == n);
        make_noise(recorder, closed_at + slots / 2 - 1);
        BOOST_REQUIRE(kept_of(recorder, 2) == n);
        make_noise(recorder, closed_at + slots + slots / 2);
        BOOST_REQUIRE(kept_of(recorder, 2) == 1U);
        ++phase;
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(quotas)

namespace {

struct rare : tr::event<"rare", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};
struct rarer : tr::event<"rarer", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 2;
};
struct step : tr::span<"step", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};
struct homeless
    : tr::event<"homeless", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 3;
};

constexpr std::uint64_t flood = test::scaled(10'000'000, 200'000);

std::map<std::string, std::vector<std::uint64_t>, std::less<>> by_event(
    const tr::recorder& recorder, std::uint64_t& total) {
    auto trace = trace_of(recorder);
    std::map<std::string, std::vector<std::uint64_t>, std::less<>> out;
    std::uint64_t last = 0;
    total = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        BOOST_REQUIRE(reduce::time_of(*item) >= last);  // one trace, merged by time
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            last = record->time();
            out[std::string(record->name())].push_back(record->field(1).u64());
            ++total;
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            total += loss->count;
        }
    }
    BOOST_TEST(trace.damages().empty());
    return out;
}

std::vector<std::uint64_t> up_to(std::uint64_t end) {
    std::vector<std::uint64_t> out;
    for (std::uint64_t n = 0; n < end; ++n) out.push_back(n);
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rare_event_keeps_every_record_beside_a_flood_of_ten_million) {
    // Eight sub-buffers of 168 records are set aside; no more than six are closed at the end.
    tr::recorder recorder({.size = 64 * 4096, .quotas = {8 * 4096}});
    constexpr std::uint64_t rares = 1000;
    for (std::uint64_t n = 0; n < flood; ++n) {
        if (n % (flood / rares) == 0) BOOST_REQUIRE(recorder.record<rare>(1U, n / (flood / rares)));
        if (!test::put(recorder, 0, n)) BOOST_FAIL("record " << n << " of the flood was refused");
    }
    std::uint64_t total = 0;
    const auto kept = by_event(recorder, total);
    BOOST_TEST(kept.at("rare") == up_to(rares), boost::test_tools::per_element());
    BOOST_TEST(total == flood + rares);
    // The others have the rest, and keep the newest there.
    const auto& others = kept.at("numbered");
    BOOST_TEST(others.back() == flood - 1);
    BOOST_TEST(others.size() >= 55U * 167U);
    BOOST_TEST(others.size() <= 56U * 168U);
}

BOOST_AUTO_TEST_CASE(an_event_whose_ring_is_not_set_aside_costs_no_sub_buffer_more) {
    tr::recorder recorder({.size = 64 * 512, .sub_buffer_bytes = 512});
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t n = 0; n < 12; n += 3) {
        BOOST_REQUIRE(recorder.record<rare>(1U, n));
        BOOST_REQUIRE(test::put(recorder, 1, n + 1));
        const auto span = recorder.scope<step>(1U, n + 2);
    }
    BOOST_TEST(recorder.statistics().held == 1U);
    auto trace = trace_of(recorder);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        if (record == nullptr || record->ends()) continue;
        numbers.push_back(record->field(1).u64());
    }
    BOOST_TEST(numbers == up_to(12), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_ring_overwrites_its_own_oldest_alone) {
    tr::recorder recorder(
        {.size = 64 * 512, .quotas = {8 * 512, 16 * 512}, .sub_buffer_bytes = 512});
    constexpr std::uint64_t each = 2000;
    for (std::uint64_t n = 0; n < each; ++n) {
        BOOST_REQUIRE(recorder.record<rare>(1U, n));
        if (n % 10 == 0) BOOST_REQUIRE(recorder.record<rarer>(2U, n / 10));
        BOOST_REQUIRE(test::put(recorder, 0, n));
        BOOST_REQUIRE(test::put(recorder, 0, n));
    }
    std::uint64_t total = 0;
    const auto kept = by_event(recorder, total);
    BOOST_TEST(total == each * 3 + each / 10);
    // So many sub-buffers of 18 records or, without a time record, as many; the last one begun.
    const auto ring_holds = [&](const char* name, std::uint64_t subs, std::uint64_t newest) {
        const auto& numbers = kept.find(name)->second;
        BOOST_TEST(numbers.back() == newest, name);
        BOOST_TEST(numbers.size() > (subs - 1) * test::fit_in_512, name);
        BOOST_TEST(numbers.size() <= subs * (test::fit_in_512 + 1), name);
    };
    ring_holds("rare", 8, each - 1);
    ring_holds("numbered", 40, each - 1);
    BOOST_TEST(kept.at("rarer") == up_to(each / 10), boost::test_tools::per_element());
    BOOST_TEST(recorder.statistics().held == 3U);
    recorder.flush_thread();
    BOOST_TEST(recorder.statistics().held == 0U);
}

BOOST_AUTO_TEST_CASE(spans_reservations_and_totals_are_kept_by_quota_as_well) {
    tr::recorder recorder({.size = 64 * 4096, .quotas = {8 * 4096}});
    {
        const auto open = recorder.scope<step>(1U, 0U);
        auto held = recorder.reserve<rare>(1U, 1U);
        BOOST_REQUIRE(static_cast<bool>(held));
        BOOST_REQUIRE(recorder.record<rare>(1U, 2U));  // while another of its ring is open
        for (std::uint64_t n = 0; n < 100'000; ++n) BOOST_REQUIRE(test::put(recorder, 0, n));
        BOOST_REQUIRE(recorder.record<homeless>(1U, 3U));
        BOOST_REQUIRE(held.commit());
    }
    auto trace = trace_of(recorder);
    std::uint64_t begins = 0, ends = 0, rares = 0, homeless_ones = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        if (record == nullptr) continue;
        begins += record->begins() ? 1 : 0;
        ends += record->ends() ? 1 : 0;
        rares += record->name() == "rare" ? 1 : 0;
        homeless_ones += record->name() == "homeless" ? 1 : 0;
    }
    BOOST_TEST(begins == 1U);
    BOOST_TEST(ends == 1U);
    BOOST_TEST(rares == 2U);
    BOOST_TEST(homeless_ones == 1U);  // its ring is not set aside: it is kept like any other
}

BOOST_AUTO_TEST_CASE(many_threads_share_a_quota_of_eight_sub_buffers) {
    // They all stay, each with a lane: one that was refused keeps its entry, for the count. The
    // first two have a sub-buffer each to themselves, and two more can be in use at the end. Of the
    // other four each is adopted until an eighth is left: at the least 73 records, should each
    // come from another thread than the one before, after a record that says so.
    tr::recorder recorder({.size = 64 * 4096, .quotas = {8 * 4096}, .lanes = 512});
    const std::uint64_t threads = test::scaled(140, 40);
    constexpr std::uint64_t each_records = 2;
    BOOST_REQUIRE(threads * each_records <= 4 * ((4096 * 7 / 8 - 64) / (24 + 24)));
    std::vector<std::thread> all;
    std::atomic<std::uint64_t> recorded{0};
    std::atomic<std::uint64_t> done{0};
    for (std::uint64_t who = 0; who < threads; ++who) {
        all.emplace_back([&, who] {
            for (std::uint64_t n = 0; n < each_records; ++n) {
                for (int i = 0; i < 100; ++i) static_cast<void>(test::put(recorder, who, n));
                // At one moment no more than half of the quota can be in use.
                while (!recorder.record<rare>(who, n)) std::this_thread::yield();
                ++recorded;
            }
            ++done;
            while (done.load() != threads) std::this_thread::yield();  // none ends before the last
        });
    }
    for (auto& each : all) each.join();
    std::uint64_t total = 0;
    const auto kept = by_event(recorder, total);
    BOOST_TEST(recorded.load() == threads * each_records);
    BOOST_TEST(kept.at("rare").size() == threads * each_records);
    BOOST_TEST(total >= threads * each_records * 101);  // of the others some were refused as well
}

BOOST_AUTO_TEST_CASE(a_file_with_quotas_is_joined_with_them_and_wrong_quotas_are_refused) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    {
        tr::recorder first({.file = file, .size = 64 * 4096, .quotas = {8 * 4096}});
        const int status = test::in_child([&] {
            tr::recorder second({.file = file, .exists = tr::if_exists::attach});
            for (std::uint64_t n = 0; n < 10; ++n) {
                if (!second.record<rare>(1U, n)) return 1;
            }
            for (std::uint64_t n = 0; n < 50'000; ++n) {
                if (!test::put(second, 1, n)) return 2;
            }
            return 0;
        });
        BOOST_TEST(status == 0);
        std::uint64_t total = 0;
        BOOST_TEST(by_event(first, total).at("rare") == up_to(10),
                   boost::test_tools::per_element());
    }
    using list = std::vector<std::uint64_t>;
    for (const auto& wrong : {list{1}, list{64 * 4096}, list{57 * 4096}, list{32 * 4096, 32 * 4096},
                              list{8 * 4096, 8 * 4096, 8 * 4096, 8 * 4096}}) {
        BOOST_CHECK_THROW(tr::recorder({.size = 64 * 4096, .quotas = wrong}), tr::setup_error);
    }
    BOOST_CHECK_NO_THROW(tr::recorder({.size = 64 * 4096, .quotas = {56 * 4096}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace retention
