// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Recording where programs begin, end and go astray: forks, exec, thread ends and cancellation,
/// handlers on separate stacks, jumps out of handlers, crashes.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/recorder/crash_snapshot.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <recorder/signals.hpp>
#include <recorder/trace_reader.hpp>

BOOST_AUTO_TEST_SUITE(life_cycle)

namespace tr = trace_ring;

namespace {

struct number
    : tr::event<"number", tr::field<"who", std::uint64_t>, tr::field<"n", std::uint64_t>> {};
struct other : tr::event<"other", tr::field<"n", std::uint64_t>> {};

using test::in_child;
using test::start_child;
using test::wait_for;

/// The values of `number` from one writer, in the order of its lanes' positions.
std::vector<std::uint64_t> of_writer(test::trace_view& view, std::uint64_t who) {
    std::vector<std::uint64_t> out;
    for (const auto& r : view.records_of("number")) {
        if (r.payload[0] == who) out.push_back(r.payload[1]);
    }
    return out;
}

bool are_all(const std::vector<std::uint64_t>& values, std::uint64_t count) {
    const std::set<std::uint64_t> distinct(values.begin(), values.end());
    return values.size() == count && distinct.size() == count &&
           (count == 0 || (*distinct.begin() == 0 && *distinct.rbegin() == count - 1));
}

tr::recorder_options roomy() {
    return {.size = 8 << 20, .sub_buffer_bytes = 1024};
}

}  // namespace

// --- fork ---

BOOST_AUTO_TEST_CASE(a_child_records_in_lanes_of_its_own) {
    tr::recorder recorder(roomy());
    for (std::uint64_t i = 0; i < 10; ++i) recorder.record<number>(std::uint64_t{1}, i);
    const pid_t child = start_child([&] {
        for (std::uint64_t i = 0; i < 1000; ++i) {
            if (!recorder.record<number>(std::uint64_t{2}, i)) return 1;
        }
        return 0;
    });
    for (std::uint64_t i = 10; i < 1000; ++i) recorder.record<number>(std::uint64_t{1}, i);
    BOOST_TEST(wait_for(child) == 0);
    test::trace_view view(recorder.bytes());
    BOOST_TEST(are_all(of_writer(view, 1), 1000));
    BOOST_TEST(are_all(of_writer(view, 2), 1000));
    const auto processes = view.processes();
    BOOST_REQUIRE(processes.size() == 2U);
    BOOST_TEST(processes[1].pid == static_cast<std::uint32_t>(child));
    BOOST_TEST(processes[1].root == processes[0].slot);
    BOOST_TEST(processes[1].parent == processes[0].slot + 1);
    BOOST_TEST(processes[1].gate_page == processes[0].gate_page);
    const auto lanes = view.lanes();
    BOOST_REQUIRE(lanes.size() == 2U);
    BOOST_TEST(lanes[0].process != lanes[1].process);
}

BOOST_AUTO_TEST_CASE(a_child_told_to_stop_records_nothing_and_leaves_its_parent_s_entry_alone) {
    auto options = roomy();
    options.fork = tr::on_fork::stop;
    auto recorder = std::make_unique<tr::recorder>(options);
    recorder->record<number>(std::uint64_t{1}, std::uint64_t{0});
    const int status = in_child([&] {
        int recorded = 0;
        for (std::uint64_t i = 0; i < 100; ++i) {
            recorded += recorder->record<number>(std::uint64_t{2}, i) ? 1 : 0;
            recorded += recorder->reserve<number>(std::uint64_t{2}, i) ? 1 : 0;
        }
        recorder.reset();  // as the program's exit would
        return recorded;
    });
    BOOST_TEST(status == 0);
    BOOST_TEST(recorder->record<number>(std::uint64_t{1}, std::uint64_t{1}));
    test::trace_view view(recorder->bytes());
    BOOST_TEST(are_all(of_writer(view, 1), 2));
    BOOST_TEST(of_writer(view, 2).empty());
    BOOST_REQUIRE(view.processes().size() == 1U);
    BOOST_TEST(view.processes()[0].state ==
               static_cast<std::uint32_t>(test::layout::presence::live));
    BOOST_TEST(recorder->statistics().refused_without_lane == 0U);  // on request: no loss
}

BOOST_AUTO_TEST_CASE(threads_of_a_new_child_never_record_under_the_parent_s_entry) {
    if (test::under_tsan) return;  // it does not follow a fork into threads
    for (int round = 0; round < static_cast<int>(test::repeated(40, 3)); ++round) {
        tr::recorder recorder(roomy());
        recorder.record<number>(std::uint64_t{0}, std::uint64_t{0});
        const int status = in_child([&] {
            std::atomic<int> ready{0};
            std::atomic<int> lost{0};
            std::vector<std::thread> threads;
            for (std::uint64_t t = 0; t < 4; ++t) {
                threads.emplace_back([&, t] {
                    ++ready;
                    while (ready.load() < 4) {
                    }
                    for (std::uint64_t i = 0; i < 10; ++i) {
                        if (!recorder.record<number>(t + 1, i)) ++lost;
                    }
                });
            }
            for (auto& t : threads) t.join();
            return lost.load();
        });
        test::trace_view view(recorder.bytes());
        std::size_t records = 0;
        for (std::uint64_t t = 1; t <= 4; ++t) records += of_writer(view, t).size();
        // What was recorded while another thread took the entry is lost, and counted.
        BOOST_REQUIRE(records + static_cast<std::size_t>(status) == 40U);
        BOOST_REQUIRE(recorder.statistics().refused_without_lane ==
                      static_cast<std::uint64_t>(status));
        const std::uint32_t parent = view.processes()[0].slot;
        std::size_t by_parent = 0;
        for (const auto& lane : view.lanes()) by_parent += lane.process == parent ? 1 : 0;
        BOOST_REQUIRE(by_parent == 1U);
    }
}

BOOST_AUTO_TEST_CASE(
    without_room_in_the_table_of_processes_a_child_s_records_are_lost_and_counted) {
    auto options = roomy();
    options.processes = 1;
    options.programs = 1;
    tr::recorder recorder(options);
    recorder.record<number>(std::uint64_t{1}, std::uint64_t{0});
    const int status = in_child([&] {
        int recorded = 0;
        for (std::uint64_t i = 0; i < 100; ++i)
            recorded += recorder.record<number>(std::uint64_t{2}, i) ? 1 : 0;
        return recorded;
    });
    BOOST_TEST(status == 0);
    BOOST_TEST(recorder.statistics().refused_without_lane == 100U);
    BOOST_TEST(recorder.record<number>(std::uint64_t{1}, std::uint64_t{1}));
}

BOOST_AUTO_TEST_CASE(a_reservation_held_across_a_fork_is_the_parent_s_alone) {
    tr::recorder recorder(roomy());
    auto one = recorder.reserve<number>(std::uint64_t{1}, std::uint64_t{0});
    BOOST_REQUIRE(static_cast<bool>(one));
    const int status = in_child([&] {
        const bool mine = one.commit();
        const bool recorded = recorder.record<number>(std::uint64_t{2}, std::uint64_t{0});
        return (mine ? 1 : 0) + (recorded ? 0 : 2);
    });
    BOOST_TEST(status == 0);
    BOOST_TEST(one.commit());
    test::trace_view view(recorder.bytes());
    BOOST_TEST(are_all(of_writer(view, 1), 1));
    BOOST_TEST(are_all(of_writer(view, 2), 1));
}

BOOST_AUTO_TEST_CASE(a_program_with_threads_can_fork_at_any_moment) {
    tr::recorder recorder({.size = 64 << 20, .sub_buffer_bytes = 1024});
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    std::array<std::uint64_t, 3> written{};
    for (std::size_t t = 0; t < written.size(); ++t) {
        threads.emplace_back([&, t] {
            while (!stop.load()) {
                recorder.record<number>(std::uint64_t{t}, written[t]++);
                if (written[t] % 64 == 0) std::this_thread::yield();
                if (written[t] > test::scaled(400'000)) break;
            }
        });
    }
    constexpr std::uint64_t children = 30;
    for (std::uint64_t c = 0; c < children; ++c) {
        const int status = in_child([&] {
            for (std::uint64_t i = 0; i < 50; ++i) {
                if (!recorder.record<number>(100 + c, i)) return 1;
            }
            return 0;
        });
        BOOST_TEST(status == 0);
        recorder.record<number>(std::uint64_t{50}, c);
    }
    stop = true;
    for (auto& t : threads) t.join();
    test::trace_view view(recorder.bytes());
    std::map<std::uint64_t, std::vector<std::uint64_t>> by_writer;
    for (const auto& r : view.records_of("number")) by_writer[r.payload[0]].push_back(r.payload[1]);
    for (std::size_t t = 0; t < written.size(); ++t) BOOST_TEST(are_all(by_writer[t], written[t]));
    for (std::uint64_t c = 0; c < children; ++c) BOOST_TEST(are_all(by_writer[100 + c], 50));
    BOOST_TEST(are_all(by_writer[50], children));
    BOOST_TEST(view.processes().size() == children + 1);
    trace_ring_test::proof("anywhere", children, "forks of a threaded program");
}

BOOST_AUTO_TEST_CASE(a_child_can_take_a_snapshot_though_its_parent_was_taking_one) {
    const test::folder folder;
    tr::recorder recorder(roomy());
    for (std::uint64_t i = 0; i < 100; ++i) recorder.record<number>(std::uint64_t{1}, i);
    std::atomic<bool> stop{false};
    std::thread copier([&] {
        for (int i = 0; !stop.load(); ++i) {
            const std::string name = folder / "parent";
            recorder.snapshot(name.c_str());
            ::unlink(name.c_str());
        }
    });
    for (int i = 0; i < 20; ++i) {
        const std::string name = folder / ("child" + std::to_string(i));
        BOOST_TEST(in_child([&] { return recorder.snapshot(name.c_str()); }) == 0);
    }
    stop = true;
    copier.join();
}

BOOST_AUTO_TEST_CASE(types_that_parent_and_child_come_to_know_apart_have_numbers_apart) {
    namespace impl = tr::impl;
    static constexpr tr::type_description of_child{
        "known to the child", tr::event_kind::instant, false, 0, {}};
    static constexpr tr::type_description of_parent{
        "known to the parent", tr::event_kind::instant, false, 0, {}};
    tr::recorder recorder(roomy());
    const int status = in_child([&] {
        impl::event_state late(of_child);
        impl::register_type(late);
        return 0;
    });
    BOOST_TEST(status == 0);
    impl::event_state late(of_parent);
    impl::register_type(late);
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.type("known to the child").id != view.type("known to the parent").id);
    std::set<std::uint16_t> ids;
    for (const auto& t : view.types()) BOOST_TEST(ids.insert(t.id).second);
}

BOOST_AUTO_TEST_CASE(vfork_and_exec_leave_the_recording_as_it_was) {
    tr::recorder recorder(roomy());
    for (std::uint64_t i = 0; i < 50; ++i) {
        recorder.record<number>(std::uint64_t{1}, i);
        const pid_t child = ::vfork();
        if (child == 0) {
            ::execl("/bin/true", "true", nullptr);
            ::_exit(1);
        }
        BOOST_TEST(wait_for(child) == 0);
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(are_all(of_writer(view, 1), 50));
    BOOST_TEST(view.processes().size() == 1U);
    BOOST_TEST(view.lanes().size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_was_recorded_before_exec_is_in_the_file) {
    const test::folder folder;
    const int status = in_child([&] {
        tr::recorder recorder({.file = folder / "%e.trace", .size = 1 << 20});
        for (std::uint64_t i = 0; i < 100; ++i) recorder.record<number>(std::uint64_t{1}, i);
        ::execl("/bin/true", "true", nullptr);
        return 1;
    });
    BOOST_TEST(status == 0);
    const test::trace_copy copy(folder / (std::string(program_invocation_short_name) + ".trace"));
    auto view = copy.view();
    BOOST_TEST(are_all(of_writer(view, 1), 100));
}

// --- The ends of threads ---

namespace {

tr::recorder* of_destructors = nullptr;
std::atomic<std::uint64_t> by_destructors{0};
std::atomic<std::uint64_t> refused_to_destructors{0};

void record_from_destructor(std::uint64_t who) {
    if (of_destructors->record<number>(who, by_destructors.load())) {
        ++by_destructors;
    } else {
        ++refused_to_destructors;
    }
}

struct with_destructor {
    ~with_destructor() { record_from_destructor(9); }
    int used = 0;
};
thread_local with_destructor at_thread_end;

pthread_key_t stubborn_key;
// Comes again in every round that there is, and so after the library's own last.
void stubborn(void* value) {
    record_from_destructor(9);
    ::pthread_setspecific(stubborn_key, value);
}

}  // namespace

BOOST_AUTO_TEST_CASE(destructors_of_every_kind_and_round_record_at_a_thread_s_end) {
    if (test::under_tsan) return;  // whose own end is in the last round
    auto options = roomy();
    options.lanes = 64;
    tr::recorder recorder(options);
    of_destructors = &recorder;
    BOOST_REQUIRE(::pthread_key_create(&stubborn_key, &stubborn) == 0);
    for (std::uint64_t t = 0; t < 200; ++t) {
        std::thread([t] {
            at_thread_end.used = 1;
            // Some record for the first time in a destructor.
            if (t % 2 == 0) record_from_destructor(9);
            ::pthread_setspecific(stubborn_key, &stubborn_key);
        }).join();
    }
    ::pthread_key_delete(stubborn_key);
    // What came after the last round is closed by the next thread that comes when the kernel has
    // forgotten the one that left it, which may be a little after it was joined.
    for (int i = 0; i < 1000 && recorder.statistics().held != 0; ++i) {
        std::thread([&] { recorder.record<other>(std::uint64_t{1}); }).join();
        ::usleep(i == 0 ? 0 : 1000);
    }
    BOOST_TEST(refused_to_destructors.load() == 0U);
    BOOST_TEST(by_destructors.load() >= 200U * (1 + PTHREAD_DESTRUCTOR_ITERATIONS));
    test::trace_view view(recorder.bytes());
    BOOST_TEST(are_all(of_writer(view, 9), by_destructors.load()));
    BOOST_TEST(recorder.statistics().held == 0U);
    for (const auto& lane : view.lanes()) BOOST_REQUIRE(!lane.live());
    of_destructors = nullptr;
}

BOOST_AUTO_TEST_CASE(threads_past_their_last_destructor_leave_no_node_behind) {
    if (test::under_tsan) return;  // whose own end is in the last round
    tr::recorder recorder(roomy());
    of_destructors = &recorder;
    const auto nodes = [] {
        std::size_t count = 0;
        for (auto* n = tr::impl::the_registry.nodes.load(tr::acquire); n != nullptr;
             n = n->next.load(tr::acquire)) {
            ++count;
        }
        return count;
    };
    BOOST_REQUIRE(::pthread_key_create(&stubborn_key, &stubborn) == 0);
    std::size_t before = 0;
    for (int t = 0; t < 100; ++t) {
        std::thread([] { ::pthread_setspecific(stubborn_key, &stubborn_key); }).join();
        if (t == 2) before = nodes();
    }
    ::pthread_key_delete(stubborn_key);
    BOOST_TEST(nodes() == before);
    of_destructors = nullptr;
}

BOOST_AUTO_TEST_CASE(a_cancelled_thread_leaves_all_that_it_recorded) {
    if (test::under_asan) return;  // it does not follow a cancelled thread off its stack
    tr::recorder recorder(roomy());
    std::uint64_t total = 0;
    for (std::uint64_t t = 0; t < 20; ++t) {
        struct shared_with_thread {
            tr::recorder& recorder;
            std::uint64_t who;
            std::atomic<std::uint64_t> count{0};
        } shared{recorder, t};
        pthread_t thread{};
        const auto body = [](void* argument) -> void* {
            auto& my = *static_cast<shared_with_thread*>(argument);
            for (;;) {
                my.recorder.record<number>(my.who, my.count.load());
                ++my.count;
                ::pthread_testcancel();
                if (my.count.load() % 16 == 0) ::usleep(1);
            }
        };
        BOOST_REQUIRE(::pthread_create(&thread, nullptr, body, &shared) == 0);
        ::usleep(2000);
        ::pthread_cancel(thread);
        void* result = nullptr;
        ::pthread_join(thread, &result);
        BOOST_TEST((result == PTHREAD_CANCELED));
        test::trace_view view(recorder.bytes());
        BOOST_TEST(are_all(of_writer(view, t), shared.count.load()));
        total += shared.count.load();
    }
    BOOST_TEST(total > 0U);
    BOOST_TEST(recorder.statistics().held == 0U);
}

BOOST_AUTO_TEST_CASE(a_thread_is_not_cancelled_while_it_waits_for_room) {
    if (test::under_asan) return;  // as above
    auto options = roomy();
    options.size = 8 * 1024;
    options.full = tr::full_mode::block;
    options.block_for = std::chrono::milliseconds{20};
    tr::recorder recorder(options);
    while (recorder.record<number>(std::uint64_t{1}, std::uint64_t{0})) {
    }
    // Were the wait a cancellation point, unwinding through it would end the program.
    const int status = in_child([&] {
        std::atomic<bool> begun{false};
        std::atomic<int> returned{0};
        struct all {
            tr::recorder& recorder;
            std::atomic<bool>& begun;
            std::atomic<int>& returned;
        } shared{recorder, begun, returned};
        pthread_t thread{};
        ::pthread_create(
            &thread, nullptr,
            [](void* argument) -> void* {
                auto& my = *static_cast<all*>(argument);
                my.begun = true;
                my.recorder.record<number>(std::uint64_t{2}, std::uint64_t{0});
                my.returned = 1;
                ::pause();  // here it is cancelled
                return nullptr;
            },
            &shared);
        while (!begun.load()) {
        }
        ::usleep(5000);
        ::pthread_cancel(thread);
        void* result = nullptr;
        ::pthread_join(thread, &result);
        return result == PTHREAD_CANCELED && returned.load() == 1 ? 0 : 1;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_recorder_can_be_destroyed_while_threads_that_used_it_end) {
    // Threads with lanes end at the moment at which their recorder goes and another takes its
    // index.
    for (int round = 0; round < static_cast<int>(test::repeated(100, 10)); ++round) {
        auto recorder = std::make_unique<tr::recorder>(
            tr::recorder_options{.size = 64 * 512, .sub_buffer_bytes = 512});
        std::atomic<int> ready{0};
        std::atomic<bool> go{false};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (std::uint64_t i = 0; i < 40; ++i) recorder->record<other>(i);
                ++ready;
                while (!go.load()) std::this_thread::yield();
                for (volatile int spin = 0; spin < t * round;) spin = spin + 1;
            });
        }
        while (ready.load() < 4) std::this_thread::yield();
        go = true;
        recorder.reset();
        tr::recorder next({.size = 64 * 512, .sub_buffer_bytes = 512});
        for (std::uint64_t i = 0; i < 100; ++i)
            BOOST_REQUIRE(next.record<number>(std::uint64_t{1}, i));
        for (auto& t : threads) t.join();
        test::trace_view view(next.bytes());
        BOOST_REQUIRE(are_all(of_writer(view, 1), 100));
        BOOST_REQUIRE(next.statistics().held == 1U);
    }
}

// --- Handlers ---

namespace {

struct handled {
    tr::recorder* recorder = nullptr;
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> lost{0};
    std::atomic<bool> flush{false};
} in_handler;

void record_in_handler(int) {
    // Three in a row, so that one signal interrupts another's records too.
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t n = in_handler.count.fetch_add(1);
        if (!in_handler.recorder->record<number>(std::uint64_t{7}, n)) in_handler.lost.fetch_add(1);
    }
    if (in_handler.flush.load() && in_handler.count.load() % 4 == 0) {
        in_handler.recorder->flush_thread();
    }
}

/// What handlers and the thread they interrupted recorded is all there, overwritten, or counted as
/// lost; what is there is as it was written.
void check_handled(tr::recorder& recorder, std::uint64_t recorded) {
    recorder.flush_thread();
    BOOST_TEST(recorder.statistics().held == 0U);
    test::trace_view view(recorder.bytes());
    std::uint64_t present = 0;
    view.for_each([&](auto, auto, auto, auto, std::span<const std::uint64_t> payload) {
        ++present;
        BOOST_REQUIRE(payload.size() == 2U);
        BOOST_REQUIRE((payload[0] == 1 ? payload[1] < recorded
                                       : payload[0] == 7 && payload[1] < in_handler.count.load()));
    });
    BOOST_TEST(view.written() == recorded + in_handler.count.load() - in_handler.lost.load());
    BOOST_TEST(present + recorder.statistics().overwritten == view.written());
    std::uint64_t counted = recorder.statistics().refused_without_lane +
                            view.ring().folded_nested.load(tr::relaxed) +
                            view.ring().folded_refused.load(tr::relaxed);
    for (const auto& lane : view.lanes()) counted += lane.nested + lane.refused;
    BOOST_TEST(counted == in_handler.lost.load());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_handler_may_flush_the_lanes_of_the_thread_that_it_interrupts) {
    tr::recorder recorder({.size = 4 << 20, .sub_buffer_bytes = 512});
    in_handler.recorder = &recorder;
    in_handler.count = in_handler.lost = 0;
    in_handler.flush = true;
    const test::signal_handler one(SIGUSR1, &record_in_handler);
    const test::signal_handler two(SIGUSR2, &record_in_handler);
    std::uint64_t n = 0;
    {
        const test::thread_timer first(SIGUSR1, 110'000);
        const test::thread_timer second(SIGUSR2, 130'000);
        const test::deadline until(0.5);
        while (!until.is_past()) {
            for (int i = 0; i < 100; ++i)
                BOOST_REQUIRE(recorder.record<number>(std::uint64_t{1}, n++));
            recorder.flush_thread();
            if (test::under_tsan) ::usleep(1);
        }
    }
    in_handler.flush = false;
    BOOST_TEST(in_handler.count.load() > (test::under_tsan ? 10U : 500U));
    check_handled(recorder, n);
}

BOOST_AUTO_TEST_CASE(handlers_on_a_stack_of_their_own_above_or_below_the_thread_s_record_like_any) {
    // One block of memory: a signal stack, the thread's stack, another signal stack.
    constexpr std::size_t part = std::size_t{1} << 20;
    void* const memory =
        ::mmap(nullptr, 3 * part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE((memory != MAP_FAILED));
    auto* const base = static_cast<std::byte*>(memory);
    for (const bool above : {false, true}) {
        tr::recorder recorder({.size = 4 << 20, .sub_buffer_bytes = 512});
        in_handler.recorder = &recorder;
        in_handler.count = in_handler.lost = 0;
        const test::signal_handler one(SIGUSR1, &record_in_handler, SA_ONSTACK);
        const test::signal_handler two(SIGUSR2, &record_in_handler, SA_ONSTACK);
        struct shared_with_thread {
            tr::recorder& recorder;
            void* stack;
            std::uint64_t n = 0;
        } shared{recorder, base + (above ? 2 * part : 0)};
        pthread_attr_t attributes;
        ::pthread_attr_init(&attributes);
        ::pthread_attr_setstack(&attributes, base + part, part);
        pthread_t thread{};
        const auto body = [](void* argument) -> void* {
            auto& my = *static_cast<shared_with_thread*>(argument);
            stack_t mine{};
            mine.ss_sp = my.stack;
            mine.ss_size = part;
            ::sigaltstack(&mine, nullptr);
            {
                const test::thread_timer first(SIGUSR1, 110'000);
                const test::thread_timer second(SIGUSR2, 130'000);
                const test::deadline until(0.4);
                while (!until.is_past()) {
                    for (int i = 0; i < 100; ++i) {
                        my.recorder.record<number>(std::uint64_t{1}, my.n++);
                        auto held = my.recorder.reserve<number>(std::uint64_t{1}, my.n++);
                        held.commit();
                    }
                    if (test::under_tsan) ::usleep(1);
                }
            }
            mine.ss_flags = SS_DISABLE;
            ::sigaltstack(&mine, nullptr);
            return nullptr;
        };
        BOOST_REQUIRE(::pthread_create(&thread, &attributes, body, &shared) == 0);
        ::pthread_join(thread, nullptr);
        ::pthread_attr_destroy(&attributes);
        // ThreadSanitizer delays signals, here possibly forever.
        if (!test::under_tsan) BOOST_TEST(in_handler.count.load() > 500U);
        check_handled(recorder, shared.n);
    }
}

namespace {

sigjmp_buf back_to_loop;
volatile sig_atomic_t may_jump = 0;
volatile std::uint64_t jumps = 0;
volatile std::uint64_t jumps_wanted = 0;  // no more than these: one could come after the last
volatile std::uint64_t recorded_before_jumps = 0;
tr::recorder* jumping = nullptr;

void jump_out(int) {
    if (may_jump == 0 || jumps == jumps_wanted) return;
    if (jumping->record<number>(std::uint64_t{7}, std::uint64_t{jumps})) {
        recorded_before_jumps = recorded_before_jumps + 1;
    }
    jumps = jumps + 1;
    siglongjmp(back_to_loop, 1);
}

struct jump_counts {
    std::uint64_t begun = 0;
    std::uint64_t done = 0;  ///< whose record() or commit() returned true
};

/// Records until enough handlers have jumped back to the beginning. Its counts are in memory, not
/// in registers that a jump would restore.
template <class Record>
void record_and_jump(tr::recorder& recorder, std::uint64_t wanted, volatile jump_counts& counts,
                     Record record_one) {
    jumping = &recorder;
    jumps = 0;
    jumps_wanted = wanted;
    recorded_before_jumps = 0;
    const test::signal_handler handler(SIGUSR1, &jump_out);
    const test::thread_timer timer(SIGUSR1, 100'000);
    sigsetjmp(back_to_loop, 1);
    may_jump = 1;
    while (jumps < wanted) {
        const std::uint64_t n = counts.begun;
        counts.begun = n + 1;
        if (record_one(n)) counts.done = counts.done + 1;
    }
    may_jump = 0;
}

struct lost_counts {
    std::uint64_t abandoned = 0;
    std::uint64_t nested = 0;
};
/// A jump in the middle of any operation takes no sub-buffer out of use.
void check_none_is_held(test::trace_view& view) {
    for (std::uint64_t slot = 0; slot < view.slots(); ++slot) {
        const auto state = static_cast<tr::sub_buffer_state>(view.state(slot).state);
        BOOST_REQUIRE(
            (state == tr::sub_buffer_state::free || state == tr::sub_buffer_state::closed));
    }
}

lost_counts losses(const test::trace_view& view) {
    lost_counts out;
    for (const auto& lane : view.lanes()) {
        out.abandoned += lane.abandoned;
        out.nested += lane.nested;
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_jump_out_of_a_handler_costs_at_most_the_record_that_it_interrupted) {
    if (test::under_tsan) return;  // which calls handlers only where the thread makes a call
    tr::recorder recorder({.size = 4 << 20, .sub_buffer_bytes = 512});
    const std::uint64_t wanted = test::repeated(3000, 100);
    volatile jump_counts counts{};
    record_and_jump(recorder, wanted, counts, [&recorder](std::uint64_t n) {
        return recorder.record<number>(std::uint64_t{1}, n);
    });
    // Whichever lanes were jumped out of last: records from here find them left.
    for (int i = 0; i < 4; ++i) recorder.record<other>(std::uint64_t{0});
    recorder.flush_thread();
    test::trace_view view(recorder.bytes());
    check_none_is_held(view);
    const auto lost = losses(view);
    BOOST_TEST(lost.nested == 0U);
    BOOST_TEST(lost.abandoned > 0U);
    BOOST_TEST(lost.abandoned <= wanted);
    BOOST_TEST(recorded_before_jumps == wanted);
    const std::uint64_t written = view.written() - 4 - wanted;
    BOOST_TEST(written >= counts.done);
    BOOST_TEST(written <= counts.begun);
    // What is not there was abandoned, or not even begun when the handler came. (What was abandoned
    // may be there: committed, except for the last step.)
    BOOST_TEST(written + wanted >= counts.begun);
    std::uint64_t present = 0;
    view.for_each([&](auto, auto, auto, auto, std::span<const std::uint64_t> payload) {
        ++present;
        BOOST_REQUIRE((payload.size() == 1 || payload[0] == 1 || payload[0] == 7));
    });
    // The ring's count is kept by those who overwrite: a jump may keep one from saying so.
    BOOST_TEST(present + recorder.statistics().overwritten <= view.written());
    trace_ring_test::proof("anywhere", wanted, "jumps out of handlers");
}

BOOST_AUTO_TEST_CASE(a_jump_over_the_end_of_a_reservation_costs_no_lane_for_good) {
    if (test::under_tsan) return;  // which calls handlers only where the thread makes a call
    tr::recorder recorder({.size = 4 << 20, .sub_buffer_bytes = 512});
    const std::uint64_t wanted = test::repeated(3000, 100);
    volatile jump_counts counts{};
    record_and_jump(recorder, wanted, counts, [&recorder](std::uint64_t n) {
        auto held = recorder.reserve<number>(std::uint64_t{1}, n);
        return held.commit();
    });
    // Four are needed together: all that were left behind are given up.
    {
        std::vector<tr::recorder::reservation> four;
        for (int i = 0; i < 4; ++i) four.push_back(recorder.reserve<other>(std::uint64_t{0}));
        for (auto& one : four) BOOST_TEST(one.commit());
    }
    recorder.flush_thread();
    test::trace_view view(recorder.bytes());
    check_none_is_held(view);
    const auto lost = losses(view);
    BOOST_TEST(lost.abandoned > 0U);
    BOOST_TEST(lost.abandoned <= wanted);
    BOOST_TEST(lost.nested == 0U);
    BOOST_TEST(recorded_before_jumps == wanted);
    const std::uint64_t written = view.written() - 4 - wanted;
    BOOST_TEST(written >= counts.done);
    BOOST_TEST(written + wanted >= counts.begun);
}

BOOST_AUTO_TEST_CASE(a_reservation_made_where_another_was_left_takes_its_place) {
    tr::recorder recorder(roomy());
    alignas(tr::recorder::reservation) std::byte place[sizeof(tr::recorder::reservation)];
    for (std::uint64_t i = 0; i < 10; ++i) {
        // Never destroyed, as if its end had been jumped over.
        new (place) tr::recorder::reservation(recorder.reserve<number>(std::uint64_t{1}, i));
    }
    BOOST_TEST(reinterpret_cast<tr::recorder::reservation*>(place)->commit());
    test::trace_view view(recorder.bytes());
    BOOST_TEST(of_writer(view, 1) == std::vector<std::uint64_t>{9},
               boost::test_tools::per_element());
    BOOST_TEST(losses(view).abandoned == 9U);
    BOOST_TEST(losses(view).nested == 0U);
}

BOOST_AUTO_TEST_CASE(a_record_that_is_open_when_its_thread_ends_is_counted_as_abandoned) {
    tr::recorder recorder(roomy());
    alignas(tr::recorder::reservation) std::byte place[3][sizeof(tr::recorder::reservation)];
    for (auto& each : place) {
        std::thread([&] {
            BOOST_TEST(recorder.record<number>(std::uint64_t{1}, std::uint64_t{0}));
            new (each) tr::recorder::reservation(
                recorder.reserve<number>(std::uint64_t{1}, std::uint64_t{1}));
        }).join();
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(view.written() == 3U);
    BOOST_TEST(losses(view).abandoned == 3U);
    check_none_is_held(view);
    std::uint64_t lost = 0;
    const auto [memory, bytes] = recorder.bytes();
    auto file = trace_ring::reduce::trace_file::from({memory, bytes});
    for (auto cursor = file.forward(); const auto* item = cursor.next();) {
        const auto* loss = std::get_if<trace_ring::reduce::loss_item>(item);
        if (loss != nullptr && loss->cause == tr::loss_cause::abandoned) lost += loss->count;
    }
    BOOST_TEST(lost == 3U);
}

BOOST_AUTO_TEST_CASE(four_reservations_of_one_frame_are_kept_and_what_comes_fifth_is_lost) {
    tr::recorder recorder(roomy());
    {
        std::vector<tr::recorder::reservation> four;  // which moves them as it grows
        for (std::uint64_t i = 0; i < 4; ++i)
            four.push_back(recorder.reserve<number>(std::uint64_t{1}, i));
        BOOST_TEST(!recorder.reserve<number>(std::uint64_t{1}, std::uint64_t{4}));
        for (auto& one : four) BOOST_TEST(one.commit());
    }
    test::trace_view view(recorder.bytes());
    BOOST_TEST(are_all(of_writer(view, 1), 4));
    BOOST_TEST(losses(view).nested == 1U);
    BOOST_TEST(losses(view).abandoned == 0U);
}

// --- Crashes ---

namespace {
tr::recorder* crashing = nullptr;
const char* crash_file = nullptr;
void snapshot_on_crash(int) {
    const int error = crashing->snapshot(crash_file);
    ::_exit(error == 0 ? 42 : 43);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_crash_handler_takes_a_snapshot_while_other_threads_record) {
    if (test::under_tsan) return;  // puts off a signal that a process sends itself
    const test::folder folder;
    const std::string file = folder / "crash";
    const int status = in_child([&] {
        auto& recorder = *new tr::recorder(roomy());
        crashing = &recorder;
        crash_file = file.c_str();
        for (std::uint64_t i = 0; i < 500; ++i) recorder.record<number>(std::uint64_t{1}, i);
        std::atomic<int> running{0};
        for (std::uint64_t t = 0; t < 4; ++t) {
            std::thread([&, t] {
                ++running;
                for (std::uint64_t i = 0;; ++i) {
                    recorder.record<number>(t + 2, i);
                    if (i % 200 == 199) ::usleep(500);  // so that the ring does not come round
                }
            }).detach();
        }
        while (running.load() < 4) std::this_thread::yield();
        const test::signal_handler handler(SIGSEGV, &snapshot_on_crash);
        // What a null pointer does, without what compilers and sanitizers make of one.
        ::raise(SIGSEGV);
        return 1;
    });
    BOOST_TEST(status == 42);
    const test::trace_copy copy(file);
    auto view = copy.view();
    BOOST_TEST(are_all(of_writer(view, 1), 500));
}

BOOST_AUTO_TEST_CASE(an_abort_leaves_a_snapshot_where_one_was_asked_for) {
    const test::folder folder;
    const std::string file = folder / "crash";
    const int status = in_child([&] {
        auto& recorder = *new tr::recorder(roomy());
        const auto* guard = new tr::crash_snapshot(recorder, file);
        static_cast<void>(guard);
        for (std::uint64_t i = 0; i < 500; ++i) recorder.record<number>(std::uint64_t{1}, i);
        ::abort();
        return 1;
    });
    BOOST_TEST(status == -SIGABRT);
    const test::trace_copy copy(file);
    auto view = copy.view();
    BOOST_TEST(are_all(of_writer(view, 1), 500));
}

BOOST_AUTO_TEST_SUITE_END()
