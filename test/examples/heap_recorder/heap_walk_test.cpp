// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The recorder's parts: its memory, its settings, and stack walking against the compiler's own
/// unwinder as the judge, in frames of every shape.

#include <alloca.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_stack.hpp"
#include "own_memory.hpp"
#include "settings.hpp"

BOOST_AUTO_TEST_SUITE(heap_walk)

namespace {

struct count_objects {
    static inline int seen = 0;
    void operator()(const dl_find_object&) const noexcept { ++seen; }
};
constinit heap::stack_walker<count_objects> walker{count_objects{}};

struct both {
    std::array<trace_ring::address, heap::max_depth> tables{}, unwinder{};
    std::size_t by_tables = 0, by_unwinder = 0;
};

/// Stands for malloc: walks its caller's stack both ways.
[[gnu::noinline]] void walk(both& out, std::size_t depth = heap::max_depth) {
    const auto caller = HEAP_CALLER();
    const auto stack = heap::stack_of_this_thread();
    out.by_unwinder =
        walker.walk(heap::unwind_by::unwind, caller, stack, out.unwinder.data(), depth);
    // Twice: by the rules found, and by the rules kept.
    for (int i = 0; i < 2; ++i) {
        out.by_tables =
            walker.walk(heap::unwind_by::tables, caller, stack, out.tables.data(), depth);
    }
    asm volatile("" : : : "memory");
}

void compare(const both& result, std::size_t at_least) {
    BOOST_TEST(result.by_tables >= at_least);
    BOOST_TEST(result.by_tables == result.by_unwinder);
    for (std::size_t i = 0; i < std::min(result.by_tables, result.by_unwinder); ++i) {
        BOOST_TEST(result.tables[i].value == result.unwinder[i].value, "frame " << i);
    }
}

// Something in the frame that must be there.
void use(void* room) {
    asm volatile("" : : "r"(room) : "memory");
}

template <int N>
[[gnu::noinline]] void nested(both& out) {
    char room[N * 24 + 8];
    use(room);
    if constexpr (N == 0) {
        walk(out);
    } else {
        nested<N - 1>(out);
    }
    use(room);
}

[[gnu::noinline]] void with_alloca(both& out, std::size_t bytes) {
    void* const room = alloca(bytes);
    use(room);
    walk(out);
    use(room);
}

// A frame whose stack is realigned, found through a saved register.
[[gnu::noinline]] void realigned(both& out, std::size_t bytes) {
    alignas(64) char line[64];
    void* const room = alloca(bytes);
    use(line);
    use(room);
    walk(out);
    use(line);
    use(room);
}

struct at_exit {
    both& out;
    ~at_exit() noexcept { walk(out); }
};
[[gnu::noinline]] void in_landing_pad(both& out) {
    try {
        const at_exit guard{out};
        throw 1;
    } catch (int) {
    }
}

[[gnu::noinline]] bool by_callback(both& out) {
    std::vector<int> few{3, 1, 2};
    std::sort(few.begin(), few.end(), [&](int a, int b) {
        walk(out);
        return a < b;
    });
    return true;
}

BOOST_AUTO_TEST_CASE(plain_frames_are_walked_as_the_unwinder_does) {
    both out;
    nested<10>(out);
    compare(out, 12);
    BOOST_TEST(count_objects::seen > 0);
}

BOOST_AUTO_TEST_CASE(frames_of_unknown_size_are_walked_as_the_unwinder_does) {
    both out;
    with_alloca(out, 100);
    compare(out, 3);
    with_alloca(out, 10'000);
    compare(out, 3);
}

BOOST_AUTO_TEST_CASE(realigned_frames_are_walked_as_the_unwinder_does) {
    both out;
    realigned(out, 1000);
    compare(out, 3);
}

BOOST_AUTO_TEST_CASE(destructors_run_by_an_exception_are_walked_as_the_unwinder_does) {
    both out;
    in_landing_pad(out);
    compare(out, 3);
}

BOOST_AUTO_TEST_CASE(callbacks_and_lambdas_are_walked_as_the_unwinder_does) {
    both out;
    BOOST_TEST(by_callback(out));
    compare(out, 3);
    const std::function<void()> indirect = [&] { nested<2>(out); };
    indirect();
    compare(out, 5);
}

BOOST_AUTO_TEST_CASE(another_thread_s_stack_is_walked_to_its_start) {
    both out;
    std::thread([&] { nested<3>(out); }).join();
    compare(out, 6);
}

BOOST_AUTO_TEST_CASE(a_walk_ends_at_the_depth_that_is_asked_for) {
    both out;
    walk(out, 2);
    BOOST_TEST(out.by_tables == 2U);
    walk(out, 0);
    BOOST_TEST(out.by_tables == 0U);
}

BOOST_AUTO_TEST_CASE(a_walk_by_frame_pointers_begins_with_the_caller) {
    both out;
    nested<2>(out);
    struct local {
        [[gnu::noinline]] static std::size_t go(trace_ring::address* to) {
            const auto caller = HEAP_CALLER();
            return walker.walk(heap::unwind_by::frame, caller, heap::stack_of_this_thread(), to, 8);
        }
    };
    std::array<trace_ring::address, 8> frames{};
    BOOST_TEST(local::go(frames.data()) >= 1U);
    BOOST_TEST(frames[0].value != 0U);
}

// On a stack that is not the thread's.
ucontext_t main_context, other_context;
both on_foreign_stack;
void foreign() {
    nested<4>(on_foreign_stack);
    const auto caller = HEAP_CALLER();
    const heap::stack_range own_thread = heap::stack_of_this_thread();
    std::array<trace_ring::address, heap::max_depth> out{};
    // Its end is the end of the page, however wrong the frames are beyond.
    heap::frame_registers wrong = caller;
    wrong.fp = caller.sp + 8;
    (void)walker.walk(heap::unwind_by::frame, wrong, own_thread, out.data(), out.size());
    wrong.fp = 8;
    (void)walker.walk(heap::unwind_by::frame, wrong, own_thread, out.data(), out.size());
    wrong.sp = (caller.sp | 4095) - 7;  // the last word of the page
    (void)walker.walk(heap::unwind_by::tables, wrong, own_thread, out.data(), out.size());
    ::swapcontext(&other_context, &main_context);
}

BOOST_AUTO_TEST_CASE(a_stack_that_is_not_the_thread_s_is_walked_without_a_fault) {
    std::vector<char> stack(1 << 16);
    ::getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack.data();
    other_context.uc_stack.ss_size = stack.size();
    other_context.uc_link = &main_context;
    ::makecontext(&other_context, foreign, 0);
    ::swapcontext(&main_context, &other_context);
    BOOST_TEST(on_foreign_stack.by_tables >= 1U);
    for (std::size_t i = 0; i < on_foreign_stack.by_tables; ++i) {
        BOOST_TEST(on_foreign_stack.tables[i].value == on_foreign_stack.unwinder[i].value);
    }
}

BOOST_AUTO_TEST_CASE(registers_that_make_no_sense_give_a_short_stack_and_no_fault) {
    std::array<trace_ring::address, heap::max_depth> out{};
    const auto stack = heap::stack_of_this_thread();
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    std::uint32_t random = 1;
    for (int i = 0; i < 100'000; ++i) {
        const auto next = [&] { return random = random * 1664525U + 1013904223U; };
        heap::frame_registers any;
        any.pc = reinterpret_cast<std::uintptr_t>(&walk) + next() % 65536;
        any.sp = here + next() % 8192;
        any.fp = (next() & 64) != 0 ? here + next() % 65536 : next();
        BOOST_REQUIRE(walker.walk(heap::unwind_by::tables, any, stack, out.data(), 32) <= 32);
        BOOST_REQUIRE(walker.walk(heap::unwind_by::frame, any, stack, out.data(), 32) <= 32);
    }
}

BOOST_AUTO_TEST_CASE(what_is_forgotten_is_found_again) {
    both out;
    nested<1>(out);
    const int seen = count_objects::seen;
    walker.forget();
    nested<1>(out);
    BOOST_TEST(count_objects::seen > seen);
    BOOST_TEST(out.by_tables == out.by_unwinder);
}

BOOST_AUTO_TEST_CASE(own_memory_gives_zeroed_blocks_and_knows_them) {
    const auto memory = std::make_unique<heap::own_memory>();
    auto* const small = static_cast<char*>(memory->allocate(100));
    auto* const large = static_cast<char*>(memory->allocate(5000, 256));
    BOOST_REQUIRE(small != nullptr);
    BOOST_REQUIRE(large != nullptr);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(large) % 256 == 0U);
    BOOST_TEST(memory->contains(small));
    BOOST_TEST(memory->contains(large));
    int elsewhere = 0;
    BOOST_TEST(!memory->contains(&elsewhere));
    BOOST_TEST(!memory->contains(nullptr));
    std::memset(small, 1, 100);
    memory->release(small);
    auto* const again = static_cast<char*>(memory->allocate(100));
    BOOST_TEST(again == small);
    BOOST_TEST(std::count(again, again + 100, '\0') == 100);
    memory->release(nullptr);
    memory->release(large);
}

BOOST_AUTO_TEST_CASE(own_memory_keeps_what_is_in_a_block_that_grows) {
    const auto memory = std::make_unique<heap::own_memory>();
    auto* block = static_cast<char*>(memory->allocate(10));
    std::strcpy(block, "kept");
    block = static_cast<char*>(memory->resize(block, 2000));
    BOOST_REQUIRE(block != nullptr);
    BOOST_TEST(std::string(block) == "kept");
    block = static_cast<char*>(memory->resize(block, 4000));
    BOOST_TEST(std::string(block) == "kept");
}

BOOST_AUTO_TEST_CASE(own_memory_ends_with_null_and_not_with_a_crash) {
    const auto memory = std::make_unique<heap::own_memory>();
    BOOST_TEST(memory->allocate(heap::own_memory::heap_bytes + 1) == nullptr);
    BOOST_TEST(memory->allocate(~std::size_t{0} - 100) == nullptr);
    std::size_t blocks = 0;
    while (memory->allocate(1000) != nullptr) ++blocks;
    BOOST_TEST(blocks >= 1000U);
    blocks = 0;
    while (memory->allocate(512) != nullptr) ++blocks;
    BOOST_TEST(blocks == heap::own_memory::pool_count);
    BOOST_TEST(memory->allocate(1) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_counter_goes_before_the_extension) {
    BOOST_TEST(heap::numbered("heap.%e.%p.trace", 0) == "heap.%e.%p.trace");
    BOOST_TEST(heap::numbered("heap.%e.%p.trace", 1) == "heap.%e.%p.1.trace");
    BOOST_TEST(heap::numbered("/a.b/trace", 12) == "/a.b/trace.12");
    BOOST_TEST(heap::numbered("/a.b/.trace", 2) == "/a.b/.trace.2");
    BOOST_TEST(heap::numbered(".trace", 2) == ".trace.2");
}

BOOST_AUTO_TEST_CASE(sizes_are_read_with_their_units) {
    BOOST_TEST(heap::parse_bytes("0").value() == 0U);
    BOOST_TEST(heap::parse_bytes("123").value() == 123U);
    BOOST_TEST(heap::parse_bytes("2K").value() == 2048U);
    BOOST_TEST(heap::parse_bytes("3m").value() == 3U << 20);
    BOOST_TEST(heap::parse_bytes("4G").value() == std::uint64_t{4} << 30);
    for (const char* wrong : {"", "K", "x", "1x", "-1", "1 K", "99999999999999"}) {
        BOOST_TEST(!heap::parse_bytes(wrong).has_value(), wrong);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
