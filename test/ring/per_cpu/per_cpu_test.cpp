// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Rings with a lane for each processor: many more threads than processors, handlers in the midst of
// records, threads that are moved about all the time; with restartable sequences and without.

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/ring/ring.hpp>

#include "ring/per_cpu/shared_kind.hpp"

BOOST_AUTO_TEST_SUITE(per_cpu)

namespace {

using namespace trace_ring;

struct small : policies<record::sub_buffers<512>, claim::per_cpu, storage::heap> {};
struct roomy : policies<claim::per_cpu, storage::mapped> {};
struct untimed : policies<record::sub_buffers<1024>, claim::per_cpu, clock::none, storage::heap> {};
struct called
    : policies<record::sub_buffers<512>, claim::per_cpu, clock::monotonic, storage::heap> {};
struct gated : policies<claim::per_cpu, gate::flag, storage::heap> {};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t scale = 8;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr std::uint64_t scale = 8;
#else
constexpr std::uint64_t scale = 1;
#endif
#elif defined(__x86_64__)
constexpr std::uint64_t scale = 1;
#else
constexpr std::uint64_t scale = 8;
#endif

/// Bytes for `each` sub-buffers in every lane.
template <class Kind>
std::uint64_t bytes_for(std::uint64_t each) {
    const std::uint64_t sub = ring_policies<Kind>::record_policy::bytes;
    const std::uint64_t lanes = rseq::possible_cpus() + ring<Kind>::spare_lanes;
    return lanes * each * sub + (lanes + 1) * 64 + sub;
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

std::uint64_t mixed(std::uint64_t writer, std::uint64_t number) {
    return (writer * 0x9E3779B97F4A7C15U) ^ (number * 0xBF58476D1CE4E5B9U);
}
/// A record of its writer and number that is told apart from any mixture of two. Every length and
/// every way of writing comes.
template <class Ring>
bool put(Ring& to, std::uint64_t writer, std::uint64_t number) {
    const std::uint64_t m = mixed(writer, number);
    switch (number % 4) {
        case 0:
            return to.write(3, writer, number, m + 2);
        case 1:
            return to.write(4, writer, number, m + 2, m + 3);
        case 2:
            return to.write(7, writer, number, m + 2, m + 3, m + 4, m + 5, m + 6);
        default:
            std::array<std::uint64_t, 40> words{writer, number};
            for (std::size_t i = 2; i < words.size(); ++i) words[i] = m + i;
            const std::size_t length = 2 + static_cast<std::size_t>(number / 4 % 38);
            return to.write_bytes(static_cast<std::uint16_t>(length),
                                  std::as_bytes(std::span(words)).first(length * 8));
    }
}

/// What one lane says, read while it is written or after: nothing torn, time and each writer's own
/// records in order.
template <class Lane>
class watcher {
public:
    explicit watcher(const Lane& lane) : lane_(&lane), reader_(lane.reader()) {}

    void look() {
        while (const auto item = reader_.next()) {
            if (!item.is_record()) continue;
            const auto words = item.payload;
            bool whole = words.size() == item.id && words.size() >= 2;
            for (std::size_t i = 2; whole && i < words.size(); ++i)
                whole = words[i] == mixed(words[0], words[1]) + i;
            torn_ += whole ? 0 : 1;
            if (!whole) continue;
            std::uint64_t& last = last_[words[0]];
            disorder_ += words[1] > last ? 0 : 1;
            last = words[1];
            back_ += item.time < time_ ? 1 : 0;
            time_ = item.time;
        }
    }
    /// After the last record: all of the lane's is read or lost.
    void finish() {
        look();
        BOOST_TEST(torn_ == 0U);
        BOOST_TEST(disorder_ == 0U);
        BOOST_TEST(back_ == 0U);
        BOOST_TEST(reader_.read() + reader_.lost().total() == lane_->written());
        BOOST_TEST(reader_.lost()[loss_cause::damaged] == 0U);
        std::uint64_t kept = 0;
        for (auto back = lane_->backward_reader(); const auto item = back.next();)
            kept += item.is_record() ? 1 : 0;
        BOOST_TEST(kept + lane_->overwritten() == lane_->written());
    }
    [[nodiscard]] std::uint64_t read() const { return reader_.read(); }

private:
    const Lane* lane_;
    sub_buffer_reader<Lane> reader_;
    std::map<std::uint64_t, std::uint64_t> last_;
    std::uint64_t torn_ = 0, disorder_ = 0, back_ = 0, time_ = 0;
};

/// What the handler records for: it interrupts writers wherever they are.
std::atomic<bool (*)(std::uint64_t, std::uint64_t)> on_signal{nullptr};
thread_local std::uint64_t handler_writer = 0;
thread_local std::uint64_t handled = 0;
std::atomic<std::uint64_t> tried_by_handlers{0};
std::atomic<std::uint64_t> from_handlers{0};

void handler(int) {
    const auto f = on_signal.load();
    if (f == nullptr || handler_writer == 0) return;
    ++tried_by_handlers;
    if (f(handler_writer, ++handled)) ++from_handlers;
}
class ticking {
public:
    ticking() {
        ::sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGUSR1;
        event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
        made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
        constexpr long interval = scale == 1 ? 37'000 : 1'000'000;  // where all is slower
        const ::itimerspec often{{0, interval}, {0, 20'000}};
        if (made_) ::timer_settime(timer_, 0, &often, nullptr);
    }
    ticking(const ticking&) = delete;
    ~ticking() {
        if (made_) ::timer_delete(timer_);
    }

private:
    ::timer_t timer_{};
    bool made_ = false;
};

template <class Ring>
Ring* loaded = nullptr;

/// Everything at once: writers, their handlers, someone who moves them about, readers.
template <class Kind>
void load(std::uint64_t sub_buffers, std::uint32_t writers, std::uint64_t each) {
    ring<Kind> shared(bytes_for<Kind>(sub_buffers));
    BOOST_TEST_REQUIRE(shared.lane(0).capacity() == sub_buffers);
    loaded<ring<Kind>> = &shared;
    tried_by_handlers = 0;
    from_handlers = 0;
    on_signal = +[](std::uint64_t writer, std::uint64_t number) {
        return put(*loaded<ring<Kind>>, writer, number);
    };
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    struct sigaction before {};
    BOOST_REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);

    std::vector<std::atomic<pid_t>> ids(writers);
    std::atomic<std::uint32_t> running{writers};
    std::atomic<std::uint64_t> accepted{0};
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            ids[w] = static_cast<pid_t>(::syscall(SYS_gettid));
            handler_writer = 100'000 + w;
            handled = 0;
            std::uint64_t mine = 0;
            {
                const ticking timer;
                for (std::uint64_t i = 1; i <= each; ++i) mine += put(shared, w, i) ? 1 : 0;
            }
            handler_writer = 0;
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
    std::vector<watcher<typename ring<Kind>::lane_type>> watchers;
    for (std::size_t i = 0; i < shared.lanes(); ++i) watchers.emplace_back(shared.lane(i));
    while (running != 0) {
        for (auto& one : watchers) one.look();
    }
    for (auto& thread : threads) thread.join();
    mover.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    on_signal = nullptr;

    std::uint64_t written = 0;
    std::uint64_t read = 0;
    std::uint64_t overwritten = 0;
    for (std::size_t i = 0; i < shared.lanes(); ++i) {
        watchers[i].finish();
        written += shared.lane(i).written();
        overwritten += shared.lane(i).overwritten();
        read += watchers[i].read();
    }
    const std::uint64_t refused =
        shared.lost()[loss_cause::refused] + shared.lost()[loss_cause::nested];
    BOOST_TEST(written == accepted + from_handlers);
    BOOST_TEST(written + refused == writers * each + tried_by_handlers);
    BOOST_TEST(accepted + from_handlers > 0U);
    BOOST_TEST(read > 0U);
    BOOST_TEST(shared.lost()[loss_cause::overwritten] == overwritten);
    if (shared.restartable()) BOOST_TEST(refused == 0U);  // for nothing is ever open
    BOOST_TEST_MESSAGE(written << " records, " << from_handlers << " by handlers, " << read
                               << " read, " << refused
                               << " refused, sequences: " << shared.restartable());
}

template <class Ring>
std::uint64_t written_in(const Ring& one) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < one.lanes(); ++i) sum += one.lane(i).written();
    return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_are_used_where_the_c_library_registered_them) {
    const ring<roomy> one(1 << 20);
    BOOST_TEST(one.restartable() == registered());
    BOOST_TEST(one.lanes() == rseq::possible_cpus() + 2);
    const ring<called> other(1 << 20);  // a sequence makes no call, so it cannot read this clock
    BOOST_TEST(!other.restartable());
}

BOOST_AUTO_TEST_CASE(a_storage_too_small_for_this_machine_is_refused_at_set_up) {
    BOOST_CHECK_THROW(ring<small>(bytes_for<small>(2) - 512), setup_error);
    BOOST_CHECK_THROW(ring<small>(0), setup_error);
    ring<small> least(bytes_for<small>(2));
    for (std::uint64_t i = 1; i <= 1000; ++i) BOOST_REQUIRE(put(least, 1, i));
    BOOST_TEST(written_in(least) == 1000U);
}

BOOST_AUTO_TEST_CASE(a_record_goes_to_the_lane_of_the_processor_it_is_written_on) {
    ring<roomy> one(bytes_for<roomy>(4));
    std::vector<std::uint64_t> expected(one.lanes());
    for (const int cpu : allowed_cpus()) {
        const pinned here(cpu);
        BOOST_REQUIRE(put(one, 1, 1));
        ++expected[static_cast<std::size_t>(cpu)];
    }
    for (std::size_t i = 0; i < one.lanes(); ++i) {
        BOOST_TEST(one.lane(i).number() == i);
        // Lanes that are claimed are looked for from the processor's on, so they are the same.
        BOOST_TEST(one.lane(i).written() == expected[i]);
    }
}

BOOST_AUTO_TEST_CASE(payloads_come_back_filled_up_to_eight_bytes_with_zeros) {
    ring<roomy> one(bytes_for<roomy>(4));
    const pinned here(allowed_cpus().front());
    const auto lane = static_cast<std::size_t>(allowed_cpus().front());
    const std::string text(ring<roomy>::max_payload + 1, 'x');
    const auto bytes = std::as_bytes(std::span(text));
    const std::size_t lengths[] = {0, 1, 7, 8, 9, 33, 100, ring<roomy>::max_payload};
    for (const std::size_t length : lengths)
        BOOST_TEST(one.write_bytes(9, bytes.subspan(0, length)));
    BOOST_TEST(one.write(10, std::uint8_t{1}, std::uint16_t{2}));
    BOOST_TEST(one.write(11));
    BOOST_TEST(!one.write_bytes(9, bytes));
    BOOST_TEST(one.lost()[loss_cause::too_long] == 1U);

    auto reader = one.lane(lane).reader();
    for (const std::size_t length : lengths) {
        const auto item = reader.next();
        BOOST_REQUIRE(item.is_record());
        BOOST_TEST(item.id == 9);
        BOOST_REQUIRE(item.payload.size() == (length + 7) / 8);
        std::string expected = text.substr(0, length);
        expected.resize(item.payload.size() * 8);
        BOOST_TEST(std::string(reinterpret_cast<const char*>(item.payload.data()),
                               expected.size()) == expected);
    }
    const auto two = reader.next();
    BOOST_TEST((two.id == 10 && two.payload.size() == 1 && two.payload[0] == 0x0201));
    const auto none = reader.next();
    BOOST_TEST((none.id == 11 && none.payload.empty()));
    BOOST_TEST(!reader.next());
}

BOOST_AUTO_TEST_CASE(a_reservation_is_nowhere_until_it_is_committed) {
    ring<roomy> one(bytes_for<roomy>(4));
    const int cpu = allowed_cpus().front();
    const pinned here(cpu);
    const auto& lane = one.lane(static_cast<std::size_t>(cpu));
    auto slot = one.try_reserve<16>(11, 7, record_word::begin);
    BOOST_REQUIRE(slot);
    BOOST_TEST(slot.size() == 16U);
    slot.put(0, std::uint64_t{5});
    slot.put(8, std::uint16_t{6});
    slot.put(10, std::uint8_t{1});
    BOOST_TEST(put(one, 1, 1));  // meanwhile: it comes first
    {
        auto given_up = one.try_reserve(8);
        BOOST_REQUIRE(given_up);
    }
    BOOST_TEST(lane.written() == 1U);
    BOOST_TEST(slot.commit());
    BOOST_TEST(!slot);
    BOOST_TEST(!slot.commit());
    BOOST_TEST(lane.written() == 2U);
    BOOST_TEST(!one.try_reserve<16>(17));
    BOOST_TEST(one.lost()[loss_cause::too_long] == 1U);

    auto reader = lane.reader();
    BOOST_TEST(reader.next().id == 4);
    const auto item = reader.next();
    BOOST_TEST((item.id == 7 && item.flags == record_word::begin && item.at == 2));
    BOOST_REQUIRE(item.payload.size() == 2U);
    BOOST_TEST((item.payload[0] == 5 && item.payload[1] == 0x10006));
}

BOOST_AUTO_TEST_CASE(units_that_share_an_inline_function_share_its_sequence) {
    ring<shared_kind> one(bytes_for<shared_kind>(4));
    for (std::uint64_t i = 0; i < 1000; ++i) {
        BOOST_REQUIRE(write_pair(one, i, i));
        BOOST_REQUIRE(write_pair_elsewhere(one, i, i));
    }
    BOOST_TEST(written_in(one) == 2000U);
}

// The kernel looks at what a thread said of its last sequence when it next runs again.
BOOST_AUTO_TEST_CASE(a_library_with_sequences_can_be_unloaded) {
    for (int i = 0; i < 20; ++i) {
        void* const library = ::dlopen(PER_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        BOOST_REQUIRE_MESSAGE(library != nullptr, ::dlerror());
        const auto records =
            reinterpret_cast<bool (*)()>(::dlsym(library, "per_cpu_library_records"));
        BOOST_REQUIRE(records != nullptr);
        BOOST_TEST(records());
        ::dlclose(library);
        const timespec pause{0, 1000};
        ::nanosleep(&pause, nullptr);
    }
}

BOOST_AUTO_TEST_CASE(a_lane_that_was_left_by_a_jump_is_given_back) {
    ring<called> one(bytes_for<called>(2));  // lanes are claimed
    for (std::size_t i = 0; i < one.lanes(); ++i)
        one.lane(i).lane().owner.store(reinterpret_cast<std::uintptr_t>(&errno), relaxed);
    BOOST_TEST(!put(one, 1, 1));
    BOOST_TEST(one.lost()[loss_cause::nested] == 1U);
    one.abandon();
    BOOST_TEST(put(one, 1, 2));
}

BOOST_AUTO_TEST_CASE(a_record_waits_a_while_and_is_then_refused_where_every_lane_is_held) {
    ring<called> one(bytes_for<called>(2));
    for (std::size_t i = 0; i < one.lanes(); ++i) one.lane(i).lane().owner.store(1, relaxed);
    BOOST_TEST(!put(one, 1, 1));
    BOOST_TEST(one.lost()[loss_cause::refused] == 1U);
    one.lane(1).lane().owner.store(0, relaxed);
    BOOST_TEST(put(one, 1, 2));
    BOOST_TEST(one.lane(1).written() == 1U);
}

BOOST_AUTO_TEST_CASE(stores_are_made_on_the_right_processor_and_if_every_guard_holds) {
    if (!registered()) return;
    const auto cpu = static_cast<std::uint32_t>(allowed_cpus().front());
    const pinned here(allowed_cpus().front());
    const std::ptrdiff_t area = rseq::offset();
    BOOST_TEST(rseq::cpu(area) == cpu);
    std::array<shared_atomic<std::uint64_t>, 5> words{};
    const auto now = [&] {
        std::array<std::uint64_t, 5> values{};
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = words[i].load(relaxed);
        return values;
    };
    const std::array<std::uint64_t, 5> none{};
    const auto tried = [&](std::uint32_t on, std::uint64_t first, std::uint64_t second) {
        const rseq::word_value list[] = {{&words[0], first},
                                         {&words[1], second},
                                         {&words[2], 7},
                                         {&words[3], 8},
                                         {&words[0], 9}};
        for (int i = 0; i < 100; ++i) {  // it may be broken off, but not each time
            if (rseq::store_if(area, on, list, list + 2, list + 4)) return true;
        }
        rseq::forget(area);
        return false;
    };
    BOOST_TEST(!tried(cpu + 1, 0, 0));
    BOOST_TEST(!tried(rseq::no_cpu, 0, 0));
    BOOST_TEST(!tried(cpu, 1, 0));
    BOOST_TEST(!tried(cpu, 0, std::uint64_t{1} << 32));
    BOOST_TEST((now() == none));
    BOOST_TEST(tried(cpu, 0, 0));
    BOOST_TEST((now() == std::array<std::uint64_t, 5>{9, 0, 7, 8, 0}));
    BOOST_TEST(!tried(cpu, 0, 0));
}

#if defined(TRACE_RING_RSEQ)
// As the kernel's, but nobody looks at it: also where there is no kernel that would.
struct alignas(32) area_of_ones_own {
    std::uint32_t cpu_start, cpu;
    std::uint64_t sequence;
};
thread_local area_of_ones_own own_area{0, 1, 0};

template <bool Timed>
void try_sequences() {
    const std::ptrdiff_t area = reinterpret_cast<std::byte*>(&own_area) -
                                static_cast<std::byte*>(__builtin_thread_pointer());
    struct alignas(64) lanes {
        lanes_head head;
        lane_word words[2];
        sub_buffer_header sub;
        shared_atomic<std::uint64_t> records[56];
    };
    const auto all = std::make_unique<lanes>();
    all->head.cpus.store(2, relaxed);
    lane_word& lane = all->words[1];
    const std::uint64_t at = offsetof(lanes, sub);
    const auto announce = [&](std::uint64_t time) {
        lane.current.store(lane_word::pack(at, time), relaxed);
    };
    announce(ring<roomy>::now());
    all->sub.commit.store(commit_word::empty, relaxed);
    const auto word = [&](std::uint32_t offset) {
        return all->records[(offset - sizeof(sub_buffer_header)) / 8].load(relaxed);
    };

    own_area.cpu = 1;
    BOOST_TEST(rseq::cpu(area) == 1U);
    lanes_head* const head = &all->head;
    std::uint32_t end = sizeof(sub_buffer_header);
    std::uint32_t records = 0;
    const auto appended = [&](std::uint32_t count, bool done) {
        BOOST_TEST(done);
        BOOST_TEST(own_area.sequence == 0U);
        BOOST_TEST(word(end) >> 32 == 70 + count);
        if (!Timed) BOOST_TEST((word(end) & 0xFFFFFFFFU) == 0U);
        for (std::uint32_t i = 0; i < count; ++i)
            BOOST_TEST(word(end + 8 + i * 8) == (std::uint64_t{i + 1} << 40));
        end += 8 + count * 8;
        BOOST_TEST(all->sub.commit.load(relaxed) == commit_word::pack(++records, end));
    };
    constexpr std::uint64_t one = std::uint64_t{1} << 40;
    appended(0, rseq::append<512, Timed>(area, head, 70));
    appended(1, rseq::append<512, Timed>(area, head, 71, one));
    appended(2, rseq::append<512, Timed>(area, head, 72, one, 2 * one));
    appended(3, rseq::append<512, Timed>(area, head, 73, one, 2 * one, 3 * one));
    appended(4, rseq::append<512, Timed>(area, head, 74, one, 2 * one, 3 * one, 4 * one));
    const std::uint64_t many[] = {one, 2 * one, 3 * one, 4 * one, 5 * one, 6 * one, 7 * one};
    appended(7, rseq::append_words<512, Timed>(area, head, 77, many, 7));
    appended(0, rseq::append_words<512, Timed>(area, head, 70, many, 0));
    if (Timed)
        BOOST_TEST(static_cast<std::uint32_t>(ring<roomy>::now()) >=
                   static_cast<std::uint32_t>(word(64)));

    const auto refused = [&] {
        const std::uint32_t before = all->sub.commit.load(relaxed);
        BOOST_TEST((!rseq::append<512, Timed>(area, head, 71, one)));
        BOOST_TEST((!rseq::append_words<512, Timed>(area, head, 77, many, 7)));
        BOOST_TEST(all->sub.commit.load(relaxed) == before);
        rseq::forget(area);
        BOOST_TEST(own_area.sequence == 0U);
    };
    own_area.cpu = 2;  // no such lane
    refused();
    own_area.cpu = rseq::no_cpu;
    refused();
    own_area.cpu = 1;
    if (Timed) {
        announce(ring<roomy>::now() ^ std::uint64_t{1} << 35);
        refused();
        announce(ring<roomy>::now());
    }
    all->sub.commit.store(commit_word::pack(0, 512 - 16),
                          relaxed);  // the last that fits, to the byte
    BOOST_TEST((!rseq::append<512, Timed>(area, head, 72, one, one)));
    BOOST_TEST((!rseq::append_words<512, Timed>(area, head, 72, many, 2)));
    BOOST_TEST((rseq::append_words<512, Timed>(area, head, 71, many, 1)));
    all->sub.commit.store(commit_word::pack(0, 512 - 16), relaxed);
    BOOST_TEST((rseq::append<512, Timed>(area, head, 71, one)));
    refused();

    std::array<shared_atomic<std::uint64_t>, 4> words{};
    const rseq::word_value list[] = {
        {&words[0], 0}, {&words[1], one}, {&words[2], 7}, {&words[3], 8}, {&words[0], 9}};
    BOOST_TEST(!rseq::store_if(area, 1, list, list + 2, list + 4));
    words[1].store(one, relaxed);
    BOOST_TEST(!rseq::store_if(area, 0, list, list + 2, list + 4));
    BOOST_TEST(words[2].load(relaxed) == 0U);
    BOOST_TEST(rseq::store_if(area, 1, list, list + 2, list + 4));
    BOOST_TEST((words[0].load(relaxed) == 9 && words[2].load(relaxed) == 7 &&
                words[3].load(relaxed) == 8));
    BOOST_TEST(own_area.sequence == 0U);
}
BOOST_AUTO_TEST_CASE(a_sequence_that_nobody_breaks_off_does_all_that_it_says) {
    try_sequences<true>();
    try_sequences<false>();
}
#endif

BOOST_AUTO_TEST_CASE(a_closed_gate_lets_nothing_in) {
    ring<gated> one(bytes_for<gated>(2));
    one.gate().close();
    BOOST_TEST(!put(one, 1, 1));
    BOOST_TEST(!put(one, 1, 3));
    one.gate().open();
    BOOST_TEST(put(one, 1, 2));
    BOOST_TEST(written_in(one) == 1U);
}

// As if the counter's high half had changed since: once in some seconds it does.
BOOST_AUTO_TEST_CASE(a_change_of_the_clocks_high_half_is_told_before_the_record) {
    ring<roomy> one(bytes_for<roomy>(2));
    const int cpu = allowed_cpus().front();
    const pinned here(cpu);
    const auto& lane = one.lane(static_cast<std::size_t>(cpu));
    const std::uint64_t before = ring<roomy>::now();
    for (std::uint64_t i = 1; i <= 400; ++i) {
        BOOST_REQUIRE(put(one, 1, i));
        auto& current = lane.lane().current;
        current.store(current.load(relaxed) ^ std::uint64_t{5} << 32, relaxed);
    }
    const std::uint64_t after = ring<roomy>::now();
    std::uint64_t time = before;
    auto reader = lane.reader();
    while (const auto item = reader.next()) {
        if (!item.is_record()) continue;
        BOOST_REQUIRE(item.time >= time);
        BOOST_REQUIRE(item.time <= after);
        time = item.time;
    }
    BOOST_TEST(reader.read() + reader.lost().total() == 400U);
    BOOST_TEST(reader.read() > 20U);
}

BOOST_AUTO_TEST_CASE(threads_that_come_and_go_take_no_memory) {
    ring<small> one(bytes_for<small>(4));
    const std::size_t lanes = one.lanes();
    for (std::uint64_t round = 0; round < 20 / scale + 1; ++round) {
        std::vector<std::thread> threads;
        for (std::uint64_t w = 0; w < 16; ++w)
            threads.emplace_back([&one, w] { static_cast<void>(put(one, w, 1)); });
        for (auto& thread : threads) thread.join();
    }
    BOOST_TEST(one.lanes() == lanes);
    BOOST_TEST(written_in(one) + one.lost()[loss_cause::refused] == (20 / scale + 1) * 16);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_is_stepped_through_comes_to_an_end) {
    ring<small> one(bytes_for<small>(4));
    if (!one.restartable()) return;
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        const bool done = one.write(3, std::uint64_t{1}, std::uint64_t{4}, mixed(1, 4) + 2);
        ::_exit(done && written_in(one) == 1 ? 7 : 8);
    }
    int status = 0;
    std::uint64_t steps = 0;
    while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && ++steps < 3'000'000)
        ::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    if (!WIFEXITED(status)) ::kill(child, SIGKILL);
    BOOST_TEST_MESSAGE(steps << " steps");
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

BOOST_AUTO_TEST_CASE(under_load_each_lane_adds_up) {
    load<small>(4, 48, 60'000 / scale);
}
BOOST_AUTO_TEST_CASE(under_load_each_lane_adds_up_without_a_clock) {
    load<untimed>(16, 32, 20'000 / scale);
}
BOOST_AUTO_TEST_CASE(under_load_each_lane_adds_up_with_a_clock_that_is_called) {
    load<called>(4, 24, 10'000 / scale);
}

// The same, in a process whose C library was told to register nothing.
BOOST_AUTO_TEST_CASE(without_sequences_lanes_are_claimed_as_a_whole) {
    if (!registered()) return;  // which is how all of the above was run
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
        ::setenv("TRACE_RING_NO_SEQUENCES", "1", 1);
        ::execl("/proc/self/exe", "per_cpu_test", "--run_test=per_cpu",
                static_cast<const char*>(nullptr));
        ::_exit(9);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
BOOST_AUTO_TEST_CASE(the_c_library_heeds_that_it_shall_not_register) {
    if (::getenv("TRACE_RING_NO_SEQUENCES") == nullptr) return;
    BOOST_TEST(!registered());
    BOOST_TEST(!ring<small>(bytes_for<small>(2)).restartable());
}

BOOST_AUTO_TEST_SUITE_END()
