// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Recorders with a lane for each processor: many more threads than processors, handlers in the
/// midst of records, threads that are moved about, children, deaths; with restartable sequences and
/// without.

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>
#include <recorder/signals.hpp>
#include <recorder/trace_reader.hpp>
#include <shared_board.hpp>
#include <stepping.hpp>

BOOST_AUTO_TEST_SUITE(a_recorder_by_processor)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
using tr::loss_cause;

namespace {

struct by_cpu : tr::policies<tr::claim::per_cpu> {};
struct by_cpu_untimed : tr::policies<tr::clock::none, tr::claim::per_cpu> {};
/// A sequence makes no call, so it cannot read this clock.
struct by_cpu_called : tr::policies<tr::clock::monotonic, tr::claim::per_cpu> {};
using recorder = tr::basic_recorder<by_cpu>;

/// Every way of writing: words one by one, many, a length that is known only then.
struct small : tr::event<"small", tr::field<"thread", std::uint64_t>, tr::field<"n", std::uint64_t>,
                         tr::field<"check", std::uint64_t>> {};
struct large : tr::event<"large", tr::field<"thread", std::uint64_t>, tr::field<"n", std::uint64_t>,
                         tr::field<"check", std::array<std::uint64_t, 6>>> {};
struct text : tr::event<"text", tr::field<"thread", std::uint64_t>, tr::field<"n", std::uint64_t>,
                        tr::field<"check", std::string_view>> {};
struct staged : tr::event<"staged", tr::field<"thread", std::uint64_t>,
                          tr::field<"n", std::uint64_t>, tr::field<"check", std::string_view>> {};
struct work : tr::span<"work", tr::field<"n", std::uint64_t>> {};
struct rare : tr::event<"rare", tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};
struct told : tr::event<"told", tr::field<"n", std::uint64_t>> {
    static constexpr bool counted = true;
};

std::uint32_t this_thread() {
    return static_cast<std::uint32_t>(::syscall(SYS_gettid));
}
std::uint64_t mixed(std::uint64_t thread, std::uint64_t n) {
    return (thread * 0x9E3779B97F4A7C15U) ^ (n * 0xBF58476D1CE4E5B9U);
}
std::string text_for(std::uint64_t thread, std::uint64_t n) {
    return std::string(static_cast<std::size_t>(n / 4 % 90),
                       static_cast<char>('a' + mixed(thread, n) % 26));
}
template <class Kind>
bool put(tr::basic_recorder<Kind>& to, std::uint64_t thread, std::uint64_t n) {
    const std::uint64_t m = mixed(thread, n);
    switch (n % 4) {
        case 0:
            return to.template record<small>(thread, n, m);
        case 1:
            return to.template record<large>(
                thread, n, std::array<std::uint64_t, 6>{m, m + 1, m + 2, m + 3, m + 4, m + 5});
        case 2: {
            std::array<char, 90> letters;
            letters.fill(static_cast<char>('a' + m % 26));
            return to.template record<text>(
                thread, n, std::string_view(letters.data(), static_cast<std::size_t>(n / 4 % 90)));
        }
        default: {
            std::array<char, 90> letters;
            letters.fill(static_cast<char>('a' + m % 26));
            auto slot = to.template reserve<staged>(
                thread, n, std::string_view(letters.data(), static_cast<std::size_t>(n / 4 % 90)));
            return slot.commit();
        }
    }
}

/// What a trace says, checked record by record.
struct reading {
    struct lane {
        std::uint64_t read = 0;
        tr::loss_counts lost;
        [[nodiscard]] std::uint64_t total() const { return read + lost.total(); }
    };
    std::map<std::uint32_t, lane> lanes;               // by number
    std::map<std::uint64_t, std::uint64_t> by_thread;  // records
    std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
    tr::loss_counts without_lane;
    std::uint64_t wrong = 0;  // torn, or under another thread's name
    std::uint64_t back = 0;   // times that go back
    std::uint64_t other = 0;  // records that are not of `put`

    void take(const reduce::item& item) {
        if (const auto* record = std::get_if<reduce::record_view>(&item)) {
            ++lanes[record->lane().number].read;
            const std::string_view name = record->name();
            if (name != "small" && name != "large" && name != "text" && name != "staged") {
                ++other;
                return;
            }
            const std::uint64_t thread = record->field(0).u64();
            const std::uint64_t n = record->field(1).u64();
            const std::uint64_t m = mixed(thread, n);
            const auto check = record->field(2);
            bool whole = record->fault().empty() && record->lane().thread == thread;
            if (name == "small") {
                whole = whole && n % 4 == 0 && check.u64() == m;
            } else if (name == "large") {
                for (std::size_t i = 0; i < 6; ++i) whole = whole && check.at(i).u64() == m + i;
            } else {
                whole = whole && check.text() == text_for(thread, n);
            }
            wrong += whole ? 0 : 1;
            ++by_thread[thread];
            numbers[thread].push_back(n);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(&item)) {
            auto& lost = loss->lane == nullptr ? without_lane : lanes[loss->lane->number].lost;
            lost.add(loss->cause, loss->count);
            if (loss->cause == loss_cause::damaged) ++wrong;
        } else if (std::get<reduce::clock_jump>(item).lane != nullptr) {  // not: the date was set
            ++back;
        }
    }
    [[nodiscard]] std::uint64_t read() const {
        std::uint64_t sum = 0;
        for (const auto& [number, one] : lanes) sum += one.read;
        return sum;
    }
    [[nodiscard]] std::uint64_t lost(loss_cause cause) const {
        std::uint64_t sum = without_lane[cause];
        for (const auto& [number, one] : lanes) sum += one.lost[cause];
        return sum;
    }
    void expect_sound() const {
        BOOST_TEST(wrong == 0U);
        BOOST_TEST(back == 0U);
    }
};
reading read_all(const reduce::trace_file& trace) {
    reading out;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) out.take(*item);
    BOOST_TEST(trace.damages().size() == 0U);
    return out;
}
template <class Kind>
reduce::trace_file trace_of(const tr::basic_recorder<Kind>& one) {
    const auto [data, size] = one.bytes();
    return reduce::trace_file::from(std::span(data, size));
}
template <class Kind>
reading read_all(const tr::basic_recorder<Kind>& one) {
    return read_all(trace_of(one));
}

/// The C library registered this process, as found without the library.
bool registered() {
#if defined(TRACE_RING_RSEQ)
    const auto* size = static_cast<const unsigned*>(::dlsym(RTLD_DEFAULT, "__rseq_size"));
    return size != nullptr && *size != 0;
#else
    return false;
#endif
}
/// The kernel offers the processor's counter as a clock. Otherwise recorders use another clock,
/// which a sequence cannot read.
bool counter_is_a_clock() {
    std::ifstream in("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    const std::istream_iterator<std::string> first(in);
    return !in ? tr::clock::tsc::usable()
               : std::find(first, {}, "tsc") != std::istream_iterator<std::string>{};
}
/// Whether a recorder of this kind uses sequences here.
template <class Kind>
bool uses_sequences() {
    if (std::is_same_v<Kind, by_cpu_called>) return false;
    return registered() && (std::is_same_v<Kind, by_cpu_untimed> || counter_is_a_clock());
}
std::vector<int> allowed_cpus() {
    cpu_set_t set;
    std::vector<int> found;
    if (::sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
        }
    }
    return found;
}
bool move_to(pid_t thread, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}
/// This thread on one processor, as long as it lives.
class pinned {
public:
    explicit pinned(int cpu) {
        ::sched_getaffinity(0, sizeof before_, &before_);
        BOOST_REQUIRE(move_to(0, cpu));
    }
    pinned(const pinned&) = delete;
    ~pinned() { ::sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_;
};

/// What the handler records with.
template <class Kind>
tr::basic_recorder<Kind>* handler_recorder = nullptr;
thread_local std::uint64_t handled = 0;
std::atomic<std::uint64_t> tried_by_handlers{0};
std::atomic<std::uint64_t> from_handlers{0};
constexpr std::uint64_t first_of_handlers = std::uint64_t{1} << 40;
template <class Kind>
void record_in_handler(int) {
    ++tried_by_handlers;
    if (put(*handler_recorder<Kind>, this_thread(), first_of_handlers + ++handled)) ++from_handlers;
}

struct figures {
    std::uint64_t tried = 0, accepted = 0;
};
/// Writers, their handlers, someone who moves them about, and a reader that follows.
template <class Kind>
figures load(tr::basic_recorder<Kind>& into, std::uint32_t writers, std::uint64_t each,
             reading* seen = nullptr) {
    handler_recorder<Kind> = &into;
    tried_by_handlers = 0;
    from_handlers = 0;
    const test::signal_handler handling(SIGUSR1, record_in_handler<Kind>);
    std::vector<std::atomic<pid_t>> ids(writers);
    std::atomic<std::uint32_t> running{writers};
    std::atomic<std::uint64_t> accepted{0};
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            ids[w] = static_cast<pid_t>(this_thread());
            handled = 0;
            std::uint64_t mine = 0;
            {
                const test::thread_timer timer(SIGUSR1, test::scale == 1 ? 41'000 : 1'000'000);
                for (std::uint64_t n = 1; n <= each; ++n) mine += put(into, this_thread(), n);
            }
            accepted += mine;
            --running;
        });
    }
    const auto cpus = allowed_cpus();
    std::thread mover([&] {
        for (std::size_t i = 0; running != 0; ++i) {
            const pid_t thread = ids[i * 7 % writers];
            if (thread != 0) move_to(thread, cpus[i / 3 % cpus.size()]);
            if (i % 16 == 0) std::this_thread::yield();
        }
    });
    if (seen != nullptr) {
        const auto trace = trace_of(into);
        auto cursor = trace.follow();
        const auto take = [&] {
            while (const auto* item = cursor.next()) seen->take(*item);
        };
        while (running != 0) take();
        for (auto& thread : threads) thread.join();
        take();
        cursor.stop_following();
        take();
    } else {
        for (auto& thread : threads) thread.join();
    }
    mover.join();
    return {writers * each + tried_by_handlers, accepted + from_handlers};
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_are_used_where_the_c_library_registered_them) {
    BOOST_TEST(recorder({.size = 1 << 16}).restartable() == uses_sequences<by_cpu>());
    BOOST_TEST(tr::basic_recorder<by_cpu_untimed>({.size = 1 << 16}).restartable() ==
               uses_sequences<by_cpu_untimed>());
    BOOST_TEST(!tr::basic_recorder<by_cpu_called>({.size = 1 << 16}).restartable());
}

BOOST_AUTO_TEST_CASE(stores_are_made_on_the_right_processor_and_if_every_guard_holds) {
    if (!registered()) return;
    const auto cpu = static_cast<std::uint32_t>(allowed_cpus().front());
    const pinned here(allowed_cpus().front());
    const std::ptrdiff_t area = tr::rseq::offset();
    BOOST_TEST(tr::rseq::cpu(area) == cpu);
    const struct {
        std::uint32_t cpu;
        std::uint64_t first, second;
        bool made;
    } cases[] = {{cpu + 1, 0, 0, false}, {tr::rseq::no_cpu, 0, 0, false},
                 {cpu, 1, 0, false},     {cpu, 0, std::uint64_t{1} << 32, false},
                 {cpu, 0, 0, true},      {cpu, 0, 0, false}};
    std::array<tr::shared_atomic<std::uint64_t>, 4> words{};
    bool any = false;
    for (const auto& one : cases) {
        const tr::rseq::word_value list[] = {{&words[0], one.first},
                                             {&words[1], one.second},
                                             {&words[2], 7},
                                             {&words[3], 8},
                                             {&words[0], 9}};
        bool made = false;
        for (int i = 0; i < 100 && !made; ++i)  // it may be broken off, but not each time
            made = tr::rseq::store_if(area, one.cpu, list, list + 2, list + 4);
        tr::rseq::forget(area);
        BOOST_TEST(made == one.made);
        any = any || made;
        const std::uint64_t expected[] = {any ? 9U : 0U, 0, any ? 7U : 0U, any ? 8U : 0U};
        for (std::size_t i = 0; i < words.size(); ++i)
            BOOST_TEST(words[i].load(tr::relaxed) == expected[i]);
    }
}

#if defined(TRACE_RING_RSEQ)
// As the kernel's, but nobody looks at it: also where there is no kernel that would.
struct alignas(32) area_of_ones_own {
    std::uint32_t cpu_start, cpu;
    std::uint64_t sequence;
};
thread_local area_of_ones_own own_area{0, 1, 0};

using timed_or_not = std::tuple<std::true_type, std::false_type>;
BOOST_AUTO_TEST_CASE_TEMPLATE(a_sequence_that_nobody_breaks_off_does_all_that_it_says, Timed,
                              timed_or_not) {
    constexpr bool timed = Timed::value;
    struct alignas(64) sub_buffer {
        tr::sub_buffer_header head;
        tr::shared_atomic<std::uint64_t> records[56];
    };
    const auto sub = std::make_unique<sub_buffer>();
    const auto lanes = std::make_unique<tr::cpu_words[]>(2);
    const tr::cpu_table table{reinterpret_cast<std::byte*>(&own_area) -
                                  static_cast<std::byte*>(__builtin_thread_pointer()),
                              lanes.get(), 2};
    const std::uint32_t thread = tr::impl::own_thread;
    const auto announce = [&](std::uint32_t who, std::uint64_t time) {
        lanes[1].announced.store(tr::cpu_words::announce(who, time), tr::relaxed);
    };
    lanes[1].current.store(reinterpret_cast<std::uintptr_t>(sub.get()), tr::relaxed);
    lanes[1].limit.store(512, tr::relaxed);
    announce(thread, tr::clock::tsc::now());
    sub->head.lane.store(77, tr::relaxed);
    sub->head.first_position.store(std::uint64_t{1} << 40, tr::relaxed);
    auto& commit = sub->head.commit;
    commit.store(tr::commit_word::empty, tr::relaxed);

    const std::uint64_t words[] = {1ULL << 40, 2ULL << 40, 3ULL << 40, 4ULL << 40,
                                   5ULL << 40, 6ULL << 40, 7ULL << 40};
    std::uint32_t end = sizeof(tr::sub_buffer_header), records = 0;
    const auto appended = [&](std::uint32_t count, bool done) {
        BOOST_TEST(done);
        BOOST_TEST(own_area.sequence == 0U);
        const auto* const at = &sub->records[(end - sizeof(tr::sub_buffer_header)) / 8];
        BOOST_TEST(at[0].load(tr::relaxed) >> 32 == 70 + count);
        if (!timed) BOOST_TEST((at[0].load(tr::relaxed) & 0xFFFFFFFFU) == 0U);
        for (std::uint32_t i = 0; i < count; ++i)
            BOOST_TEST(at[1 + i].load(tr::relaxed) == words[i]);
        end += 8 + count * 8;
        BOOST_TEST(commit.load(tr::relaxed) == tr::commit_word::pack(++records, end));
    };
    own_area.cpu = 1;
    BOOST_TEST(tr::rseq::cpu(table.area) == 1U);
    appended(0, tr::rseq::append<timed, 0>(table, 70, words));
    appended(1, tr::rseq::append<timed, 1>(table, 71, words));
    appended(2, tr::rseq::append<timed, 2>(table, 72, words));
    appended(3, tr::rseq::append<timed, 3>(table, 73, words));
    appended(4, tr::rseq::append<timed, 4>(table, 74, words));
    appended(7, tr::rseq::append_words<timed>(table, 77, words, 7));
    appended(0, tr::rseq::append_words<timed>(table, 70, words, 0));
    tr::impl::open_span span{};
    appended(2, tr::rseq::append_words<timed>(table, 72, words, 2, &span));
    BOOST_TEST(span.begun == (std::uint64_t{1} << 40) + records);
    BOOST_TEST(span.lane == 77U);
    if (timed) {
        BOOST_TEST(static_cast<std::uint32_t>(tr::clock::tsc::now()) >=
                   static_cast<std::uint32_t>(sub->records[0].load(tr::relaxed)));
    }

    const auto refused = [&](const char* why) {
        const std::uint32_t before = commit.load(tr::relaxed);
        BOOST_TEST_CONTEXT(why) {
            BOOST_TEST((!tr::rseq::append<timed, 1>(table, 71, words)));
            BOOST_TEST((!tr::rseq::append_words<timed>(table, 77, words, 7)));
            BOOST_TEST(commit.load(tr::relaxed) == before);
        }
        tr::rseq::forget(table.area);
        BOOST_TEST(own_area.sequence == 0U);
    };
    own_area.cpu = 2;
    refused("no such processor");
    own_area.cpu = tr::rseq::no_cpu;
    refused("not registered");
    own_area.cpu = 1;
    announce(thread + 1, tr::clock::tsc::now());
    refused("open to another thread");
    if (timed) {
        announce(thread, tr::clock::tsc::now() ^ std::uint64_t{1} << 35);
        refused("another high half of the clock");
    }
    announce(thread, tr::clock::tsc::now());
    for (const bool few : {true, false}) {  // the last that fits, to the byte
        commit.store(tr::commit_word::pack(0, 512 - 16), tr::relaxed);
        BOOST_TEST((!tr::rseq::append<timed, 2>(table, 72, words)));
        BOOST_TEST((!tr::rseq::append_words<timed>(table, 72, words, 2)));
        BOOST_TEST((few ? tr::rseq::append<timed, 1>(table, 71, words)
                        : tr::rseq::append_words<timed>(table, 71, words, 1)));
        refused("full");
    }
}
#endif

// As if the counter's high half had changed since: once in some seconds it does.
BOOST_AUTO_TEST_CASE(a_change_of_the_clocks_high_half_is_told_before_the_record) {
    recorder one({.size = 1 << 16});
    if (!one.restartable()) return;
    const pinned here(allowed_cpus().front());
    BOOST_REQUIRE(put(one, this_thread(), 4));
    auto& type = tr::impl::event_of<small>::state;
    const std::uint32_t header = type.header.load(tr::relaxed);
    std::uint64_t time = tr::clock::tsc::now();
    {
        // Additional lanes, whose words can be changed here.
        tr::impl::lanes_by_thread* threads = nullptr;
        tr::impl::lanes_by_thread::for_each(
            [&](tr::impl::lanes_by_thread& each) { threads = &each; });
        tr::impl::cpu_lanes lanes(threads, true);
        for (std::uint64_t n = 8; n <= 1600; n += 4) {
            const std::uint64_t words[] = {this_thread(), n, mixed(this_thread(), n)};
            BOOST_REQUIRE((lanes.write<true>(type, header, words, 3, false, nullptr) ==
                           tr::impl::cpu_lanes::answer::yes));
            auto& announced = lanes.table().words[allowed_cpus().front()].announced;
            announced.store(announced.load(tr::relaxed) ^ std::uint64_t{5} << 32, tr::relaxed);
        }
    }
    const std::uint64_t after = tr::clock::tsc::now();
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(seen.read() == 400U);
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        if (record.field(1).u64() == 4) continue;
        BOOST_REQUIRE(record.time() >= time);
        time = record.time();
    }
    BOOST_TEST(time <= after);
}

BOOST_AUTO_TEST_CASE(a_record_goes_to_the_lane_of_its_processor_and_names_its_thread) {
    recorder one({.size = 1 << 18});
    const auto cpus = allowed_cpus();
    std::vector<std::uint32_t> threads;
    for (const int cpu : cpus) {
        std::thread([&, cpu] {
            const pinned here(cpu);
            threads.push_back(this_thread());
            for (std::uint64_t n = 0; n < 8; ++n) BOOST_TEST(put(one, this_thread(), n));
        }).join();
    }
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(seen.read() == 8 * cpus.size());
    if (!one.restartable()) return;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        const auto cpu = record.lane().cpu;
        BOOST_REQUIRE(cpu.has_value());
        const auto at = static_cast<std::size_t>(
            std::find(cpus.begin(), cpus.end(), static_cast<int>(*cpu)) - cpus.begin());
        BOOST_REQUIRE(at < cpus.size());
        BOOST_TEST(record.field(0).u64() == threads[at]);
    }
    for (const auto& lane : trace.lanes()) {
        BOOST_REQUIRE(lane.cpu.has_value());
        BOOST_TEST(lane.name == "cpu " + std::to_string(*lane.cpu));
        BOOST_TEST(lane.thread == 0U);
    }
}

BOOST_AUTO_TEST_CASE(threads_that_share_a_lane_can_be_told_apart_and_filtered) {
    recorder one({.size = 1 << 18});
    const pinned here(allowed_cpus().front());
    std::vector<std::uint32_t> threads(3);
    std::vector<std::thread> all;
    std::atomic<std::uint64_t> turn{0};
    for (std::size_t t = 0; t < threads.size(); ++t) {
        all.emplace_back([&, t] {
            threads[t] = this_thread();
            for (std::uint64_t n = 1; n <= 20; ++n) {
                while (turn % threads.size() != t) std::this_thread::yield();
                static_cast<void>(put(one, this_thread(), n));
                ++turn;
            }
        });
    }
    for (auto& thread : all) thread.join();
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(seen.read() == 60U);
    for (const std::uint32_t thread : threads) {
        std::uint64_t count = 0;
        auto cursor = trace.forward({.threads = {thread}});
        while (const auto* item = cursor.next()) {
            BOOST_REQUIRE(std::get<reduce::record_view>(*item).field(0).u64() == thread);
            ++count;
        }
        BOOST_TEST(count == 20U);
    }
}

BOOST_AUTO_TEST_CASE(a_reservation_is_nowhere_until_it_is_committed) {
    recorder one({.size = 1 << 18});
    const pinned here(allowed_cpus().front());
    auto first = one.reserve<staged>(this_thread(), 3U, "later");
    BOOST_REQUIRE(first);
    auto moved = std::move(first);
    BOOST_TEST(!first);
    auto given_up = one.reserve<small>(this_thread(), 4U, 0U);
    BOOST_REQUIRE(given_up);
    BOOST_TEST(put(one, this_thread(), 8));
    { [[maybe_unused]] const auto left = one.reserve<small>(this_thread(), 4U, 0U); }
    given_up.discard();
    BOOST_TEST(!given_up.commit());
    BOOST_TEST(moved.commit());
    BOOST_TEST(!moved.commit());
    const std::string longer(6000, 'x');
    auto cut = one.reserve<text>(this_thread(), 2U, longer);
    BOOST_TEST(cut.commit());
    const auto trace = trace_of(one);
    std::vector<std::string> names;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        names.emplace_back(record.name());
        if (record.name() == "staged") BOOST_TEST(record.field("check").text() == "later");
        BOOST_TEST(record.cut() == (record.name() == "text"));
    }
    BOOST_TEST((names == std::vector<std::string>{"small", "staged", "text"}));
    BOOST_TEST(one.enable<small>(false) == 1U);
    BOOST_TEST(!one.reserve<small>(1U, 2U, 3U));
    BOOST_TEST(!one.record<small>(1U, 2U, 3U));
}

BOOST_AUTO_TEST_CASE(spans_totals_and_gates_are_as_in_the_other_kind) {
    recorder one({.size = 1 << 18});
    for (std::uint64_t n = 0; n < 30; ++n) {
        const auto scope = one.scope<work>(n);
        BOOST_TEST(one.record<told>(n));
    }
    one.pause();
    BOOST_TEST(!one.record<told>(1U));
    { const auto shut = one.scope<work>(1U); }
    one.resume();
    const auto trace = trace_of(one);
    std::uint64_t begun = 0, ended = 0;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto& record = std::get<reduce::record_view>(*item);
        begun += record.begins() ? 1 : 0;
        ended += record.ends() ? 1 : 0;
    }
    BOOST_TEST(begun == 30U);
    BOOST_TEST(ended == 30U);
    test::trace_view view(one.bytes());
    BOOST_REQUIRE(view.type("told").total != 0);
    BOOST_TEST(view.total(view.type("told").total - 1U) == 30U);
}

BOOST_AUTO_TEST_CASE(an_event_with_a_quota_is_kept_beside_a_flood_of_others) {
    recorder one({.size = 64 * 512, .quotas = {8 * 512}, .sub_buffer_bytes = 512});
    const std::uint64_t rounds = test::repeated(20'000, 2000);
    for (std::uint64_t n = 0; n < rounds; ++n) {
        if (n < 20) BOOST_REQUIRE(one.record<rare>(n));
        BOOST_REQUIRE(put(one, this_thread(), n));
    }
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(seen.other == 20U);
    BOOST_TEST(seen.read() + seen.lost(loss_cause::overwritten) == rounds + 20);
    for (const auto& lane : trace.lanes()) BOOST_TEST(lane.cpu.has_value() == one.restartable());
}

BOOST_AUTO_TEST_CASE(an_event_whose_ring_is_not_set_aside_costs_no_sub_buffer_more) {
    recorder one({.size = 64 * 512, .sub_buffer_bytes = 512});
    const pinned here(::sched_getcpu());
    for (std::uint64_t n = 0; n < 4; ++n) {
        BOOST_REQUIRE(one.record<rare>(n));
        BOOST_REQUIRE(put(one, this_thread(), n));
    }
    BOOST_TEST(one.statistics().held == 1U);
}

BOOST_AUTO_TEST_CASE(without_a_clock_the_order_of_a_lane_is_kept) {
    tr::basic_recorder<by_cpu_untimed> one({.size = 1 << 18});
    BOOST_TEST(one.restartable() == registered());
    const pinned here(allowed_cpus().front());
    for (std::uint64_t n = 1; n <= 400; ++n) BOOST_REQUIRE(put(one, this_thread(), n));
    const auto seen = read_all(one);
    seen.expect_sound();
    const auto& numbers = seen.numbers.at(this_thread());
    BOOST_REQUIRE(numbers.size() == 400U);
    for (std::size_t n = 0; n < 400; ++n) BOOST_REQUIRE(numbers[n] == n + 1);
}

using kinds = std::tuple<by_cpu, by_cpu_untimed, by_cpu_called>;
BOOST_AUTO_TEST_CASE_TEMPLATE(under_load_each_lane_adds_up, Kind, kinds) {
    // By thread each holds some of them; by processor there is room in the smallest.
    const bool by_thread = !uses_sequences<Kind>();
    tr::basic_recorder<Kind> one(
        {.size = by_thread ? 1024U * 512 : 64U * 512, .sub_buffer_bytes = 512});
    reading followed;
    const auto wrote = load(one, 48, test::repeated(10'000, 200), &followed);
    BOOST_TEST(wrote.accepted == wrote.tried);  // nothing is ever open, so nothing is nested
    followed.expect_sound();
    // What the reader that followed has read and what it says is lost, lane by lane, is all.
    std::uint64_t all = 0;
    for (const auto& [number, lane] : followed.lanes) all += lane.total();
    BOOST_TEST(all + followed.without_lane.total() == wrote.tried);
    const auto seen = read_all(one);
    seen.expect_sound();
    BOOST_TEST(seen.read() + seen.lost(loss_cause::overwritten) == wrote.accepted);
    BOOST_TEST(seen.read() + one.statistics().overwritten == wrote.accepted);
    BOOST_TEST(seen.lost(loss_cause::refused) == 0U);
    BOOST_TEST_MESSAGE(wrote.tried << " records, " << tried_by_handlers << " by handlers, "
                                   << followed.read() << " followed");
}

BOOST_AUTO_TEST_CASE(under_load_nothing_is_missing_where_all_is_kept) {
    const std::uint64_t each = test::repeated(4'000, 100);
    recorder one({.size = std::uint64_t{48} * each * 128 + (1 << 20)});
    const auto wrote = load(one, 48, each);
    BOOST_TEST(wrote.accepted == wrote.tried);
    auto seen = read_all(one);
    seen.expect_sound();
    BOOST_TEST(seen.lost(loss_cause::overwritten) == 0U);
    BOOST_TEST(seen.read() == wrote.tried);
    BOOST_TEST(seen.by_thread.size() == 48U);
    for (auto& [thread, numbers] : seen.numbers) {
        // A thread's records are in several lanes, merged by time: in the order written.
        std::uint64_t last = 0;
        std::uint64_t last_of_handler = first_of_handlers;
        std::uint64_t count = 0;
        for (const std::uint64_t n : numbers) {
            auto& before = n > first_of_handlers ? last_of_handler : last;
            BOOST_REQUIRE(n == before + 1);
            before = n;
            count += n < first_of_handlers ? 1 : 0;
        }
        BOOST_REQUIRE(count == each);
    }
}

BOOST_AUTO_TEST_CASE(a_thousand_threads_hold_no_more_than_processors_do) {
    const std::uint64_t threads = test::scaled(1000, 100);
    const std::uint64_t each = test::scaled(1'000, 50);
    if (!uses_sequences<by_cpu>()) return;  // full_modes_test has the crowd by thread
    recorder one({.size = 256 * 512, .sub_buffer_bytes = 512});
    const std::size_t before = one.bytes().second;
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint32_t> most_held{0};
    {
        std::vector<std::thread> all;
        for (std::uint64_t t = 0; t < threads; ++t) {
            all.emplace_back([&] {
                std::uint64_t mine = 0;
                for (std::uint64_t n = 1; n <= each; ++n) {
                    mine += put(one, this_thread(), n);
                    if (n % 64 != 0) continue;
                    const auto held = static_cast<std::uint32_t>(one.statistics().held);
                    if (held > most_held) most_held = held;
                }
                accepted += mine;
            });
        }
        for (auto& thread : all) thread.join();
    }
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(accepted == threads * each);
    BOOST_TEST(seen.read() + seen.lost(loss_cause::overwritten) == accepted);
    BOOST_TEST(one.bytes().second == before);
    BOOST_TEST(one.statistics().refused_without_lane == 0U);
    std::uint64_t of_threads = 0;
    for (const auto& lane : trace.lanes()) of_threads += lane.cpu ? 0 : 1;
    BOOST_TEST(of_threads == 0U);
    // One in use, one to come, one before; and what those had drawn that were preempted there.
    BOOST_TEST(most_held <= 3 * allowed_cpus().size() + 16);
    BOOST_TEST(one.statistics().held <= 2 * allowed_cpus().size());
    BOOST_TEST_MESSAGE("at most " << most_held << " sub-buffers held");
}

BOOST_AUTO_TEST_CASE(what_the_ring_refuses_is_counted_in_the_lane) {
    for (const auto full : {tr::full_mode::discard_newest, tr::full_mode::stop,
                            tr::full_mode::block, tr::full_mode::extend_then_discard}) {
        recorder one({.size = 32 * 512,
                      .limit = full == tr::full_mode::extend_then_discard ? 64 * 512 : 0U,
                      .step = 4 * 512,
                      .sub_buffer_bytes = 512,
                      .full = full,
                      .block_for = std::chrono::microseconds(100)});
        const bool stops = full == tr::full_mode::stop;
        std::atomic<std::uint64_t> accepted{0};
        std::vector<std::thread> all;
        const std::uint64_t each = 1000;
        for (int t = 0; t < 4; ++t) {
            all.emplace_back([&] {
                for (std::uint64_t n = 1; n <= each; ++n) accepted += put(one, this_thread(), n);
            });
        }
        for (auto& thread : all) thread.join();
        const auto seen = read_all(one);
        seen.expect_sound();
        BOOST_TEST(seen.read() == accepted);
        BOOST_TEST(seen.lost(loss_cause::overwritten) == 0U);
        BOOST_TEST(accepted > 100U);
        if (stops) {
            BOOST_TEST(seen.lost(loss_cause::refused) > 0U);
        } else {
            BOOST_TEST(seen.lost(loss_cause::refused) == 4 * each - accepted);
        }
    }
    recorder grows({.size = 32 * 512,
                    .limit = 256 * 512,
                    .step = 4 * 512,
                    .sub_buffer_bytes = 512,
                    .full = tr::full_mode::extend_then_overwrite});
    const auto wrote = load(grows, 8, 1000);
    const auto seen = read_all(grows);
    seen.expect_sound();
    BOOST_TEST(seen.read() + seen.lost(loss_cause::overwritten) == wrote.accepted);
    BOOST_TEST(wrote.accepted == wrote.tried);
    BOOST_TEST(grows.statistics().sub_buffers == 256U);
}

BOOST_AUTO_TEST_CASE(a_child_records_in_lanes_of_its_own) {
    recorder one({.size = 1 << 20});
    for (std::uint64_t n = 1; n <= 100; ++n) BOOST_REQUIRE(put(one, this_thread(), n));
    const int status = test::in_child([&] {
        bool all = true;
        for (std::uint64_t n = 1; n <= 200; ++n) all = put(one, this_thread(), n) && all;
        std::thread([&] {
            for (std::uint64_t n = 1; n <= 50; ++n) all = put(one, this_thread(), n) && all;
        }).join();
        return all ? 0 : 1;
    });
    BOOST_TEST(status == 0);
    for (std::uint64_t n = 101; n <= 300; ++n) BOOST_REQUIRE(put(one, this_thread(), n));
    const auto trace = trace_of(one);
    const auto seen = read_all(trace);
    seen.expect_sound();
    BOOST_TEST(seen.read() == 550U);
    BOOST_TEST(seen.by_thread.size() == 3U);
    std::map<std::uint32_t, std::uint64_t> by_pid;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();)
        ++by_pid[std::get<reduce::record_view>(*item).lane().pid];
    BOOST_TEST(by_pid.size() == 2U);
    BOOST_TEST(by_pid[static_cast<std::uint32_t>(::getpid())] == 300U);
}

BOOST_AUTO_TEST_CASE(a_snapshot_is_taken_while_others_record) {
    const test::folder scratch;
    recorder one({.size = 64 * 512, .sub_buffer_bytes = 512});
    std::atomic<bool> on{true};
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t) {
        all.emplace_back([&] {
            for (std::uint64_t n = 1; on; ++n) static_cast<void>(put(one, this_thread(), n));
        });
    }
    std::uint64_t read = 0;
    for (int i = 0; i < 20; ++i) {
        const std::string file = scratch / ("copy." + std::to_string(i));
        ::usleep(2000);
        BOOST_REQUIRE(one.snapshot(file.c_str()) == 0);
        const auto seen = read_all(reduce::trace_file::open(file));
        seen.expect_sound();
        read += seen.read();
    }
    on = false;
    for (auto& thread : all) thread.join();
    // One that was interrupted for long may find nothing whole; not all twenty.
    BOOST_TEST(read > 0U);
}

BOOST_AUTO_TEST_CASE(closed_with_the_recorder_every_record_is_there) {
    const test::folder scratch;
    const std::string file = scratch / "closed.trace";
    std::uint64_t accepted = 0;
    {
        recorder one({.file = file, .size = 64 * 512, .sub_buffer_bytes = 512});
        accepted = load(one, 8, test::scaled(2000, 100)).accepted;
    }
    const auto trace = reduce::trace_file::open(file);
    const auto seen = read_all(trace);
    seen.expect_sound();
    std::uint64_t written = 0;
    for (const auto& lane : trace.lanes()) {
        BOOST_TEST((lane.state == tr::layout::presence::departed));
        BOOST_TEST(lane.written ==
                   (seen.lanes.count(lane.number) != 0 ? seen.lanes.at(lane.number).total() : 0U));
        written += lane.written;
    }
    BOOST_TEST(written == accepted);
}

BOOST_AUTO_TEST_CASE(a_killed_process_costs_nothing_that_was_committed) {
    const test::folder scratch;
    const std::string file = scratch / "killed.trace";
    recorder one({.file = file, .size = 64 * 512, .sub_buffer_bytes = 512});
    const std::uint64_t rounds = test::repeated(30, 4);
    std::uint64_t mine = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const pid_t child = test::start_child([&] {
            std::vector<std::thread> all;
            for (int t = 0; t < 6; ++t) {
                all.emplace_back([&] {
                    for (std::uint64_t n = 1;; ++n) static_cast<void>(put(one, this_thread(), n));
                });
            }
            for (auto& thread : all) thread.join();
            return 0;
        });
        ::usleep(static_cast<useconds_t>(500 + round * 7919 % 9000));
        for (int i = 0; i < 20; ++i) static_cast<void>(put(one, this_thread(), ++mine));
        ::kill(child, SIGKILL);
        BOOST_TEST(test::wait_for(child) == -SIGKILL);
        // As it lies: each lane's records are whole, in order, or reported as lost.
        const auto seen =
            read_all(reduce::trace_file::from(std::span(one.bytes().first, one.bytes().second)));
        seen.expect_sound();
        BOOST_TEST(seen.read() > 0U);
    }
    // Lanes are taken back when they are wanted, and what they held with them.
    for (std::uint64_t n = 1; n <= 20'000; ++n) BOOST_REQUIRE(put(one, this_thread(), n));
    const auto seen = read_all(one);
    seen.expect_sound();
    std::uint64_t held = 0;
    test::trace_view view(one.bytes());
    for (std::uint64_t slot = 0; slot < view.slots(); ++slot) {
        const auto state = static_cast<tr::sub_buffer_state>(view.state(slot).state);
        held += state == tr::sub_buffer_state::active || state == tr::sub_buffer_state::reset;
    }
    BOOST_TEST_MESSAGE(held << " of 64 sub-buffers held after " << rounds << " deaths");
    BOOST_TEST(held <= 32U);
}

// As one that dies when it has drawn the next position and not taken it: the sub-buffer that is in
// use is then not the newest that its lane records.
BOOST_AUTO_TEST_CASE(what_a_process_used_when_it_died_drawing_another_is_taken_back) {
    const test::folder scratch;
    recorder one({.file = scratch / "drawing.trace", .size = 64 * 512, .sub_buffer_bytes = 512});
    if (!one.restartable()) return;
    BOOST_REQUIRE(put(one, this_thread(), 4));
    for (int i = 0; i < 64; ++i) {
        const pid_t child = test::start_child([&] {
            for (std::uint64_t n = 1; n <= 3; ++n) static_cast<void>(put(one, this_thread(), n));
            const test::trace_view view(one.bytes());
            auto* const lanes = const_cast<std::byte*>(one.bytes().first) + view.plan().lanes;
            for (std::uint32_t slot = 0; slot < view.plan().lane_count; ++slot) {
                auto& lane = reinterpret_cast<tr::layout::lane_entry*>(lanes)[slot];
                const std::uint32_t owner = lane.process.load(tr::relaxed);
                if (lane.cpu.load(tr::relaxed) == 0 || lane.ended.load(tr::relaxed) != 0) continue;
                for (const auto& process : view.processes()) {
                    if (process.slot == owner &&
                        process.pid == static_cast<std::uint32_t>(::getpid())) {
                        lane.newest.store(1U << 20, tr::relaxed);
                    }
                }
            }
            ::raise(SIGKILL);
            return 0;
        });
        BOOST_TEST(test::wait_for(child) == -SIGKILL);
    }
    for (std::uint64_t n = 1; n <= 4000; ++n) BOOST_REQUIRE(put(one, this_thread(), n));
    const auto seen = read_all(one);
    seen.expect_sound();
    BOOST_TEST(seen.lost(loss_cause::refused) == 0U);
    BOOST_TEST(one.statistics().reclaimed >= 30U);
}

BOOST_AUTO_TEST_CASE(a_record_that_is_stepped_through_goes_to_the_threads_own_lane) {
    recorder one({.size = 1 << 18});
    if (!one.restartable() || test::cannot_be_stepped()) return;
    const test::shared_board told;
    test::stepped child(test::start_child([&] {
                            if (!test::stop_to_be_stepped(*told)) return 77;
                            return put(one, this_thread(), 4) ? 7 : 8;
                        }),
                        *told);
    if (!child) return static_cast<void>(test::cannot_be_traced());
    for (std::uint64_t steps = 0; child.step() && steps < 3'000'000;) ++steps;
    BOOST_TEST(child.kill() == 7);
    const auto seen = read_all(one);
    seen.expect_sound();
    BOOST_TEST(seen.read() == 1U);
}

BOOST_AUTO_TEST_CASE(
    a_program_that_is_stepped_through_records_at_a_bounded_cost_and_takes_nothing) {
    // Its processor has no lane yet; or one, in whose sub-buffer there is less and less room.
    for (const std::uint64_t before : {0U, 160U}) {
        recorder one({.size = 1 << 18});
        if (!one.restartable() || test::cannot_be_stepped()) return;
        constexpr std::uint64_t records = 20;
        const test::shared_board told;
        test::stepped child(test::start_child([&]() -> int {
                                for (std::uint64_t n = 1; n <= before; ++n)
                                    if (!put(one, this_thread(), 4 * n)) return 78;
                                if (!test::stop_to_be_stepped(*told)) return 77;
                                for (std::uint64_t n = 1; n <= records; ++n) {
                                    told->ready = n;
                                    if (put(one, this_thread(), 4 * (before + n)))
                                        ++told->recorded[0];
                                }
                                told->ready = records + 1;
                                return 7;
                            }),
                            *told);
        if (!child) return static_cast<void>(test::cannot_be_traced());
        std::uint64_t steps[records + 2] = {};
        while (child.step()) ++steps[told->ready.load() % (records + 2)];
        BOOST_TEST(child.end() == 7);
        BOOST_TEST(told->recorded[0].load() == records);
        // The first makes the thread's own lane.
        BOOST_TEST(steps[1] < 40'000U);
        for (std::uint64_t n = 2; n <= records; ++n) BOOST_TEST(steps[n] < 2'000U, "record " << n);
        const auto seen = read_all(one);
        seen.expect_sound();
        BOOST_TEST(seen.read() == before + records);
        BOOST_TEST(seen.lost(loss_cause::refused) == 0U);
        // Its own lane and, if it recorded before, its processors': no entry and no position more.
        const test::trace_view view(one.bytes());
        std::uint64_t lanes = 0;
        for (const auto& lane : view.lanes()) lanes += lane.number != 0 ? 1 : 0;
        BOOST_TEST(lanes >= (before == 0 ? 1U : 2U));
        BOOST_TEST(lanes <= (before == 0 ? 1U : 1U + std::thread::hardware_concurrency()));
        BOOST_TEST(one.statistics().claimed <= lanes + 1);
    }
}

alignas(recorder) unsigned char place[sizeof(recorder)];
BOOST_AUTO_TEST_CASE(what_is_recorded_before_and_after_its_life_is_refused) {
    auto& early = *reinterpret_cast<recorder*>(place);
    BOOST_TEST(!put(early, this_thread(), 4));
    new (place) recorder({.size = 1 << 16});
    BOOST_TEST(put(early, this_thread(), 4));
    early.~basic_recorder();
    BOOST_TEST(!put(early, this_thread(), 4));
}

// The same, in a process whose C library is configured to register nothing.
BOOST_AUTO_TEST_CASE(without_sequences_it_is_a_recorder_by_thread) {
    if (!registered()) return;  // which is how all of the above was run
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
        ::setenv("TRACE_RING_NO_SEQUENCES", "1", 1);
        ::execl("/proc/self/exe", "per_cpu_test", "--run_test=a_recorder_by_processor",
                static_cast<const char*>(nullptr));
        ::_exit(9);
    }
    BOOST_TEST(test::wait_for(child) == 0);
}
BOOST_AUTO_TEST_CASE(the_c_library_heeds_that_it_shall_not_register) {
    if (::getenv("TRACE_RING_NO_SEQUENCES") == nullptr) return;
    BOOST_TEST(!registered());
    recorder one({.size = 1 << 18});
    BOOST_REQUIRE(!one.restartable());
    BOOST_TEST(put(one, this_thread(), 4));
    const auto trace = trace_of(one);
    BOOST_TEST(!trace.lanes().front().cpu.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
