// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Threads that have several stacks: fibers that switch between records, also while they hold
/// reservations; a record that a signal handler leaves for another stack; and jumps out of records,
/// which look alike.

#include <boost/test/unit_test.hpp>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#if defined(TRACE_RING_TEST_BOOST_CONTEXT)
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#endif

#include <trace_ring/recorder/recorder.hpp>

#include <proof.hpp>
#include <recorder/account.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(fibers)

namespace tr = trace_ring;
namespace impl = tr::impl;
using test::numbered;
using tr::loss_cause;

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

/// Adjacent stacks, the last of them highest.
class stacks {
public:
    explicit stacks(std::size_t count) : bytes_(count * stack_bytes) {
        void* const at =
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        BOOST_REQUIRE((at != MAP_FAILED));
        memory_ = static_cast<std::byte*>(at);
    }
    stacks(const stacks&) = delete;
    stacks& operator=(const stacks&) = delete;
    ~stacks() { ::munmap(memory_, bytes_); }
    [[nodiscard]] std::byte* operator[](std::size_t i) const { return memory_ + i * stack_bytes; }

private:
    std::size_t bytes_;
    std::byte* memory_ = nullptr;
};

/// A body that runs on a separate stack, until it pauses.
class context_fiber {
public:
    context_fiber(std::byte* stack, std::function<void()> body) : body_(std::move(body)) {
        ::getcontext(&own_);
        own_.uc_stack.ss_sp = stack;
        own_.uc_stack.ss_size = stack_bytes;
        own_.uc_link = &caller_;
        ::makecontext(&own_, &run, 0);
    }
    void resume() {
        now_ = this;
        ::swapcontext(&caller_, &own_);
    }
    static void pause() { ::swapcontext(&now_->own_, &now_->caller_); }

private:
    static void run() { now_->body_(); }

    static inline context_fiber* now_ = nullptr;
    std::function<void()> body_;
    ucontext_t own_{}, caller_{};
};

#if defined(TRACE_RING_TEST_BOOST_CONTEXT)
namespace bc = boost::context;
class boost_fiber {
public:
    boost_fiber(std::byte* stack, std::function<void()> body)
        : own_(std::allocator_arg,
               bc::preallocated(stack + stack_bytes, stack_bytes, described(stack)), keeps{},
               [this, b = std::move(body)](bc::fiber&& caller) {
                   caller_ = std::move(caller);
                   b();
                   return std::move(caller_);
               }) {}
    void resume() {
        now_ = this;
        own_ = std::move(own_).resume();
    }
    static void pause() { now_->caller_ = std::move(now_->caller_).resume(); }

private:
    struct keeps {  // the stack
        static bc::stack_context allocate() { return {}; }
        static void deallocate(bc::stack_context&) {}
    };
    static bc::stack_context described(std::byte* stack) {
        bc::stack_context context;
        context.size = stack_bytes;
        context.sp = stack + stack_bytes;
        return context;
    }

    static inline boost_fiber* now_ = nullptr;
    bc::fiber caller_;
    bc::fiber own_;
};
using engines = std::tuple<context_fiber, boost_fiber>;
#else
using engines = std::tuple<context_fiber>;
#endif

/// In the calling thread, and in one whose stack lies below or above those that are there already.
template <class Body>
void in_either_thread(Body&& body) {
    body();
    std::thread(body).join();
}

/// The mark by which the calling thread's records of a first recorder go.
[[maybe_unused]] impl::lane_mark& first_mark() {
    return impl::mark_of(*impl::first_lane(0, impl::lanes_at(1)));
}

}  // namespace

// --- Switched between records ---

BOOST_AUTO_TEST_CASE_TEMPLATE(four_fibers_keep_a_reservation_each_and_what_comes_fifth_is_lost,
                              engine, engines) {
    in_either_thread([] {
        // It comes on the thread's stack, or on the highest, or the lowest of the others.
        for (const std::size_t fifth_on : {5U, 4U, 0U}) {
            const stacks memory(5);
            tr::recorder recorder({.size = 1 << 20});
            std::array<std::optional<engine>, 4> fibers;
            std::array<bool, 4> committed{};
            for (std::size_t i = 0; i < 4; ++i) {
                fibers[i].emplace(memory[fifth_on == 0 ? i + 1 : i], [&recorder, &committed, i] {
                    auto held = recorder.reserve<numbered>(std::uint64_t{1}, std::uint64_t{i});
                    engine::pause();
                    committed[i] = held.commit();
                });
                fibers[i]->resume();
            }
            bool recorded = true;
            const auto fifth = [&] { recorded = test::put(recorder, 2, 0); };
            if (fifth_on < 5) {
                engine(memory[fifth_on], fifth).resume();
            } else {
                fifth();
            }
            BOOST_TEST(!recorded);
            for (auto& each : fibers) each->resume();
            for (const bool each : committed) BOOST_TEST(each);
            BOOST_TEST(test::put(recorder, 1, 4));
            const auto all = test::account_of(recorder);
            BOOST_TEST(all.strange == 0U);
            BOOST_TEST(all.of(1) == test::first(5), boost::test_tools::per_element());
            BOOST_TEST(all.lost()[loss_cause::nested] == 1U);
            BOOST_TEST(all.lost().total() == 1U);
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(fibers_that_hold_reservations_when_they_switch_lose_nothing, engine,
                              engines) {
    constexpr std::size_t count = 6;
    constexpr std::uint64_t rounds = 400;
    in_either_thread([] {
        const stacks memory(count);
        tr::recorder recorder({.size = 1 << 20, .sub_buffer_bytes = 512});
        std::array<std::uint64_t, count> done{};
        std::array<std::optional<engine>, count> fibers;
        std::uint64_t held_now = 0;
        for (std::size_t who = 0; who < count; ++who) {
            fibers[who].emplace(memory[who], [&, who] {
                auto& n = done[who];
                while (n < 3 * rounds) {
                    // At most three at the same time: there are four lanes.
                    if (held_now < 3) {
                        auto held = recorder.reserve<numbered>(who, n);
                        ++held_now;
                        engine::pause();
                        --held_now;
                        n += held.commit() ? 1U : 0U;
                    }
                    n += test::put(recorder, who, n) ? 1U : 0U;
                    engine::pause();
                    n += test::put(recorder, who, n) ? 1U : 0U;
                }
            });
        }
        const auto is_done = [&](std::size_t who) { return done[who] >= 3 * rounds; };
        for (std::size_t left = count; left != 0;) {
            left = 0;
            for (std::size_t who = 0; who < count; ++who) {
                if (is_done(who)) continue;
                fibers[who]->resume();
                left += is_done(who) ? 0U : 1U;
            }
        }
        const auto all = test::account_of(recorder);
        BOOST_TEST(all.strange == 0U);
        BOOST_TEST(all.lost().total() == 0U);
        for (std::size_t who = 0; who < count; ++who) {
            BOOST_TEST(all.of(who).size() == done[who]);
        }
    });
}

// --- Where a thread's own stack lies ---

BOOST_AUTO_TEST_CASE(what_the_kernel_says_of_mappings_is_read_in_pieces_of_any_length) {
    constexpr std::string_view text =
        "55d0a000-55d0b000 r-xp 00000000 08:01 12345-67   /usr/bin/a - b\n"
        "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
        "7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
        "7ffc12340000-7ffc12361000 rw-p 00000000 00:00 0                          [stack]\n"
        "7ffc12370000-7ffc12371000 r--p 00000000 00:00 0                          [vvar]\n";
    impl::mapping_lines lines;
    impl::mapping_lines::mapping line;
    std::vector<impl::mapping_lines::mapping> all;
    for (const char c : text) {
        if (lines.add(c, line)) all.push_back(line);
    }
    BOOST_REQUIRE(all.size() == 5U);
    BOOST_TEST(all[0].low == 0x55d0a000U);
    BOOST_TEST(all[0].high == 0x55d0b000U);
    for (std::size_t i = 0; i < 5; ++i) {
        BOOST_TEST(all[i].is_closed == (i == 1));
        BOOST_TEST(all[i].is_main_stack == (i == 3));
    }
    BOOST_TEST(static_cast<std::uint32_t>(all[3].high) == 0x12361000U);
}

namespace {

bool is_own(const volatile void* at) {
    const auto own = impl::find_own_stack();
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return own.low <= address && address < own.high;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_s_own_stack_is_known_unless_it_may_be_part_of_something_larger) {
    volatile std::byte here{};
    volatile std::byte* const of_caller = &here;
    const stacks memory(2);
    const auto on_a_fiber = [&memory] {
        bool found = true;
        context_fiber(memory[0], [&found] {
            volatile std::byte local{};
            found = is_own(&local);
        }).resume();
        return found;
    };
    BOOST_TEST(is_own(&here));
    BOOST_TEST(!on_a_fiber());
    std::thread([&] {
        volatile std::byte local{};
        BOOST_TEST(is_own(&local));
        BOOST_TEST(!is_own(of_caller));
        BOOST_TEST(!on_a_fiber());
    }).join();
    // Of memory in which another stack may lie below.
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, memory[1], stack_bytes);
    pthread_t thread{};
    bool found = true;
    const auto body = [](void* result) -> void* {
        volatile std::byte local{};
        *static_cast<bool*>(result) = is_own(&local);
        return nullptr;
    };
    BOOST_REQUIRE(::pthread_create(&thread, &attributes, body, &found) == 0);
    ::pthread_join(thread, nullptr);
    ::pthread_attr_destroy(&attributes);
    BOOST_TEST(!found);
}

// --- Switched by a handler, or jumped out of ---

#if (defined(__x86_64__) || defined(__i386__)) && !defined(TRACE_RING_TEST_TSAN) && \
    !defined(TRACE_RING_TEST_ASAN)

namespace {

/// A record whose words show whether they belong to one record.
struct checked : tr::event<"checked", tr::field<"who", std::uint64_t>,
                           tr::field<"n", std::uint64_t>, tr::field<"not_n", std::uint64_t>> {};

bool put_checked(tr::recorder& to, std::uint64_t who, std::uint64_t n) {
    return to.record<checked>(who, n, ~n);
}

struct told {
    std::uint64_t read = 0, wrong = 0;
    tr::loss_counts lost;
};
told told_by(const tr::recorder& recorder) {
    const auto [memory, bytes] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({memory, bytes});
    told out;
    out.wrong += trace.damages().size();
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const record = std::get_if<tr::reduce::record_view>(item)) {
            ++out.read;
            const bool whole = record->fault().empty() && record->name() == "checked" &&
                               record->field(1).u64() == ~record->field(2).u64();
            out.wrong += whole ? 0U : 1U;
        } else if (const auto* const loss = std::get_if<tr::reduce::loss_item>(item)) {
            out.lost.add(loss->cause, loss->count);
        }
    }
    return out;
}

/// Goes one instruction at a time from `begin` to `end`, and calls `step` after each, in a handler,
/// on the stack that `begin` was called on; others continue as usual.
class stepper {
public:
    explicit stepper(std::function<void()> step, int flags = 0) : step_(std::move(step)) {
        now_ = this;
        struct ::sigaction action {};
        action.sa_sigaction = &handle;
        action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGTRAP, &action, &before_);
    }
    stepper(const stepper&) = delete;
    stepper& operator=(const stepper&) = delete;
    ~stepper() { ::sigaction(SIGTRAP, &before_, nullptr); }

    void begin() {
        stepping_ = true;
        trap();
    }
    static void end() { stepping_ = false; }

private:
    static constexpr long trap_flag = 0x100;

    [[gnu::always_inline]] static void trap() {
#if defined(__x86_64__)
        asm volatile(
            "leaq -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; leaq 128(%%rsp), %%rsp" ::
                : "memory", "cc");
#else
        asm volatile("pushfl; orl $0x100, (%%esp); popfl" ::: "memory", "cc");
#endif
    }
    static void handle(int, siginfo_t*, void* context) {
        auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
        if (stepping_) now_->step_();
        // What the step switched to may have ended it for this stack, too.
        if (!stepping_) flags &= ~trap_flag;
    }

    static inline stepper* now_ = nullptr;
    static inline bool stepping_ = false;
    std::function<void()> step_;
    struct ::sigaction before_ {};
};

/// Whether the calling thread has a record open in its first lane, or is about to.
bool is_open() {
    return first_mark().value.load(tr::relaxed) > 0;
}
/// As long as the code is not optimized, most instructions move words to and from the stack.
#if defined(__OPTIMIZE__)
constexpr std::uint64_t stride = 1;
#else
constexpr std::uint64_t stride = 61;
#endif

/// On a separate stack: records, one instruction at a time, and pauses after `k` of them while the
/// record is open. False: it has paused no more, the record took fewer.
template <class Engine>
bool pauses_in_a_record(tr::recorder& recorder, std::byte* stack, std::uint64_t k,
                        const std::function<void()>& meanwhile) {
    std::uint64_t count = 0;
    bool paused = false;
    stepper steps([&] {
        if (!is_open() || ++count != k) return;
        paused = true;
        stepper::end();
        Engine::pause();
    });
    bool recorded = false;
    Engine fiber(stack, [&] {
        steps.begin();
        recorded = put_checked(recorder, 1, k);
        stepper::end();
    });
    fiber.resume();
    if (paused) {
        meanwhile();
        fiber.resume();
    }
    BOOST_REQUIRE(recorded);
    return paused;
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(
    a_record_that_a_handler_leaves_for_another_stack_continues_and_others_take_the_next_lanes,
    engine, engines) {
    in_either_thread([] {
        const stacks memory(3);
        tr::recorder recorder({.size = 1 << 20});
        BOOST_REQUIRE(put_checked(recorder, 2, 0));
        std::uint64_t written = 1;
        // The stack that is left lies below the other or above it.
        for (const std::size_t on : {0U, 2U}) {
            for (std::uint64_t k = 1;; k += stride) {
                const bool paused = pauses_in_a_record<engine>(recorder, memory[on], k, [&] {
                    for (std::uint64_t i = 0; i < 2; ++i) {
                        BOOST_REQUIRE(put_checked(recorder, 2, i));
                    }
                    engine(memory[1], [&] { BOOST_REQUIRE(put_checked(recorder, 3, 0)); }).resume();
                    written += 3;
                });
                ++written;
                if (!paused) break;
            }
        }
        const auto all = told_by(recorder);
        BOOST_TEST(all.wrong == 0U);
        BOOST_TEST(all.lost.total() == 0U);
        BOOST_TEST(all.read == written);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(records_left_by_handlers_on_four_stacks_cost_the_fifth_as_nested,
                              engine, engines) {
    const stacks memory(5);
    tr::recorder recorder({.size = 1 << 20});
    BOOST_REQUIRE(put_checked(recorder, 2, 0));
    std::array<std::optional<engine>, 4> fibers;
    std::array<bool, 4> recorded{};
    {
        // Each is left where its record is open: as soon as one lane more is.
        std::size_t open = 0;
        const auto lanes_open = [] {
            std::size_t count = 0;
            for (std::size_t depth = 0; depth < impl::lane_depths; ++depth) {
                const auto& mark = impl::mark_of(impl::first_lane(0, impl::lanes_at(1))[depth]);
                count += mark.value.load(tr::relaxed) > 0 ? 1U : 0U;
            }
            return count;
        };
        stepper steps([&] {
            if (lanes_open() <= open) return;
            open = lanes_open();
            engine::pause();
        });
        for (std::size_t i = 0; i < 4; ++i) {
            fibers[i].emplace(memory[i], [&recorder, &recorded, &steps, i] {
                steps.begin();
                recorded[i] = put_checked(recorder, 1, i);
                stepper::end();
            });
            fibers[i]->resume();
        }
        stepper::end();
        BOOST_TEST(open == 4U);
        BOOST_TEST(!put_checked(recorder, 2, 1));
        for (auto& each : fibers) each->resume();
    }
    for (const bool each : recorded) BOOST_TEST(each);
    BOOST_TEST(put_checked(recorder, 2, 2));
    const auto all = told_by(recorder);
    BOOST_TEST(all.wrong == 0U);
    BOOST_TEST(all.read == 6U);
    BOOST_TEST(all.lost[loss_cause::nested] == 1U);
    BOOST_TEST(all.lost.total() == 1U);
}

namespace {

sigjmp_buf back;
/// In a frame that a jump leaves: records, one instruction at a time, and jumps after `k` of them
/// while the record is open.
[[gnu::noinline]] bool record_and_jump(tr::recorder& recorder, stepper& steps, std::uint64_t k) {
    volatile std::byte below[64];
    below[k % 64] = std::byte{1};
    steps.begin();
    const bool recorded = put_checked(recorder, 1, k);
    stepper::end();
    return recorded && below[k % 64] == std::byte{1};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_jump_out_of_a_record_at_any_instruction_gives_its_lane_back) {
    in_either_thread([] {
        tr::recorder recorder({.size = 1 << 20, .sub_buffer_bytes = 512});
        BOOST_REQUIRE(put_checked(recorder, 2, 0));
        volatile std::uint64_t k = 0, written = 1, jumps = 0;
        std::uint64_t count = 0;
        stepper steps([&] {
            if (!is_open() || ++count != k) return;
            stepper::end();
            jumps = jumps + 1;
            siglongjmp(back, 1);
        });
        for (volatile bool jumped = true; jumped;) {
            k = k + stride;
            count = 0;
            if (sigsetjmp(back, 1) == 0) {
                jumped = false;
                BOOST_REQUIRE(record_and_jump(recorder, steps, k));
            } else {
                jumped = true;
            }
            BOOST_REQUIRE(put_checked(recorder, 2, k));
            written = written + (jumped ? 1 : 2);
        }
        BOOST_TEST(jumps > (stride == 1 ? 10U : 5U));
        const auto all = told_by(recorder);
        BOOST_TEST(all.wrong == 0U);
        // What was jumped out of may have been committed.
        const std::uint64_t there = all.read + all.lost[loss_cause::overwritten];
        BOOST_TEST(there >= written);
        BOOST_TEST(there <= written + jumps);
        BOOST_TEST(all.lost[loss_cause::abandoned] <= jumps);
        BOOST_TEST(all.lost[loss_cause::abandoned] >= jumps - (there - written));
        BOOST_TEST(all.lost[loss_cause::nested] == 0U);
    });
}

BOOST_AUTO_TEST_CASE(what_is_left_open_on_a_stack_that_nobody_knows_is_not_given_up) {
    const stacks memory(1);
    tr::recorder recorder({.size = 1 << 20});
    context_fiber(memory[0], [&] {
        BOOST_REQUIRE(put_checked(recorder, 2, 0));
        stepper steps([&] {
            if (!is_open()) return;
            stepper::end();
            siglongjmp(back, 1);
        });
        if (sigsetjmp(back, 1) == 0) static_cast<void>(record_and_jump(recorder, steps, 0));
        for (std::uint64_t i = 0; i < 3; ++i) BOOST_TEST(put_checked(recorder, 2, i));
    }).resume();
    const auto all = told_by(recorder);
    BOOST_TEST(all.read == 4U);
    BOOST_TEST(all.wrong == 0U);
    BOOST_TEST(all.lost.total() == 0U);
}

BOOST_AUTO_TEST_CASE(a_handler_whose_stack_lies_within_the_thread_s_own_gives_nothing_up) {
    in_either_thread([] {
        tr::recorder recorder({.size = 1 << 20});
        BOOST_REQUIRE(put_checked(recorder, 2, 0));
        alignas(16) std::byte memory[64 << 10];  // above what is called from here
        stack_t before{}, mine{};
        mine.ss_sp = memory;
        mine.ss_size = sizeof memory;
        ::sigaltstack(&mine, &before);
        std::uint64_t open = 0, in_handler = 0;
        stepper steps(
            [&] {
                if (is_open() && open++ % (4 * stride) == 0) {
                    in_handler += put_checked(recorder, 3, open) ? 1U : 0U;
                }
            },
            SA_ONSTACK);
        for (std::uint64_t i = 0; i < 3; ++i) BOOST_TEST(record_and_jump(recorder, steps, i));
        ::sigaltstack(&before, nullptr);
        BOOST_TEST(in_handler > 0U);
        const auto all = told_by(recorder);
        BOOST_TEST(all.read == 4 + in_handler);
        BOOST_TEST(all.wrong == 0U);
        BOOST_TEST(all.lost.total() == 0U);
    });
}

#endif

BOOST_AUTO_TEST_SUITE_END()
