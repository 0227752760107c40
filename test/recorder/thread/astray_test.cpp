// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Recording where a program is not quite itself: in a handler of faults, on the alternate stack
/// when its own has run over, as another user, in another root.

#include <boost/test/unit_test.hpp>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(astray)

namespace tr = trace_ring;
using test::checks;
using test::in_child;
using test::skipped;
using tr::loss_cause;

// --- Handlers ---

namespace {

tr::recorder* faulting = nullptr;
std::byte* forbidden = nullptr;
std::uint64_t page_size = 0;
std::atomic<std::uint64_t> faults{0};

void allow_the_page(int, siginfo_t* info, void*) {
    const int saved = errno;
    if (info->si_addr != forbidden) ::_exit(3);
    for (int i = 0; i < 2; ++i) {
        if (!test::put(*faulting, 7, faults.fetch_add(1))) ::_exit(4);
    }
    ::mprotect(forbidden, static_cast<std::size_t>(page_size), PROT_READ | PROT_WRITE);
    errno = saved;
}
void record_and_leave(int) {
    for (std::uint64_t n = 0; n < 100; ++n) {
        if (!test::put(*faulting, 7, n)) ::_exit(4);
    }
    ::_exit(42);
}
void on_signal_stack(void (*handle)(int), void (*handle_info)(int, siginfo_t*, void*)) {
    constexpr std::size_t bytes = 64 << 10;
    static std::byte memory[bytes];
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = bytes;
    ::sigaltstack(&stack, nullptr);
    struct ::sigaction action {};
    action.sa_flags = SA_ONSTACK | (handle_info != nullptr ? SA_SIGINFO : 0);
    if (handle_info != nullptr) {
        action.sa_sigaction = handle_info;
    } else {
        action.sa_handler = handle;
    }
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, nullptr);
}

/// Records on each level until the stack has run over.
[[gnu::noinline]] std::uint64_t run_over(std::uint64_t level, volatile std::byte* above) {
    volatile std::byte here[64];
    here[level % 64] = std::byte{1};
    above[level % 64] = here[level % 64];
    if (!test::put(*faulting, 1, level)) ::_exit(5);
    return level == ~std::uint64_t{0} ? level : run_over(level + 1, here) + 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_handler_of_real_faults_on_its_own_stack_records_within_open_records) {
    if (test::under_tsan) return;
    constexpr std::uint64_t rounds = 500;
    const int status = in_child([] {
        checks check;
        auto& recorder = *new tr::recorder({.size = 1 << 20, .sub_buffer_bytes = 512});
        faulting = &recorder;
        page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        const auto bytes = static_cast<std::size_t>(page_size);
        forbidden = static_cast<std::byte*>(
            ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        on_signal_stack(nullptr, &allow_the_page);
        for (std::uint64_t n = 0; n < rounds; ++n) {
            ::mprotect(forbidden, bytes, PROT_NONE);
            auto held = recorder.reserve<test::numbered>(std::uint64_t{1}, n);
            *static_cast<volatile std::byte*>(forbidden) = std::byte{1};
            check(held.commit(), "the record that was open");
        }
        check(faults.load() == 2 * rounds, "each was a fault");
        const auto all = test::account_of(recorder);
        check(all.strange == 0 && all.lost().total() == 0, "nothing lost");
        check(all.of(1).size() == rounds && all.of(7).size() == 2 * rounds, "all there");
        return check.failed;
    });
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(when_a_stack_has_run_over_its_handler_records_what_came_last) {
    if (test::under_tsan || test::under_asan) return;  // which use separate stacks
    // Of several sizes, so that it runs over in the caller, in a record and in its slow path.
    for (std::size_t more = 0; more < 64; more += 4) {
        const test::folder folder;
        const std::string file = folder / "a.trace";
        const int status = in_child([&] {
            // In every second run less than the levels fill: without optimization they are few.
            const std::uint64_t size = more % 8 == 0 ? 1 << 20 : 4 << 10;
            faulting = new tr::recorder({.file = file, .size = size, .sub_buffer_bytes = 512});
            pthread_attr_t attributes;
            ::pthread_attr_init(&attributes);
            const auto least = static_cast<std::size_t>(::sysconf(_SC_THREAD_STACK_MIN));
            if (::pthread_attr_setstacksize(&attributes, std::max(least, std::size_t{64} << 10)) !=
                0)
                return 2;
            pthread_t thread{};
            std::size_t offset = more * 16;
            ::pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                    on_signal_stack(&record_and_leave, nullptr);
                    auto* const room = static_cast<volatile std::byte*>(
                        __builtin_alloca(*static_cast<std::size_t*>(argument) + 64));
                    run_over(0, room);
                    return nullptr;
                },
                &offset);
            ::pthread_join(thread, nullptr);
            return 1;
        });
        BOOST_TEST(status == 42);
        const auto all = test::account_of(tr::reduce::trace_file::open(file));
        BOOST_TEST(all.strange == 0U);
        BOOST_TEST(all.of(7).size() == 100U);
        // How many levels a stack has is the compiler's business. Each was read or overwritten;
        // what was overwritten is not always what came first, for a slot drawn but not yet taken
        // over when the stack ended keeps what it held.
        const auto levels = all.of(1);
        BOOST_REQUIRE(levels.size() > 10U);
        BOOST_TEST(std::is_sorted(levels.begin(), levels.end(), std::less_equal<>()));
        BOOST_TEST(levels.size() + all.lost()[tr::loss_cause::overwritten] == levels.back() + 1);
        BOOST_TEST(all.lost().total() == all.lost()[tr::loss_cause::overwritten]);
        BOOST_TEST((all.lost().total() != 0) == (more % 8 != 0));
    }
}

// --- Other users, other roots ---

BOOST_AUTO_TEST_CASE(a_program_that_becomes_another_user_goes_on_recording_and_growing) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    constexpr std::uint64_t each = 50 * test::fit_in_512;
    tr::recorder watching(test::growing(file));
    const int status = in_child([&]() -> int {
        checks check;
        auto options = test::growing(file);
        options.exists = tr::if_exists::attach;
        tr::recorder recorder(options);
        std::uint64_t n = 0;
        while (n < each / 2) check(test::put(recorder, 1, n++), "before");
        if (::geteuid() != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return skipped;
        while (n < each) check(test::put(recorder, 1, n++), "after");
        std::thread([&] {
            for (std::uint64_t i = 0; i < 10; ++i) check(test::put(recorder, 2, i), "a thread");
        }).join();
        check(in_child([&] {
                  int lost = 0;
                  for (std::uint64_t i = 0; i < 10; ++i) lost += test::put(recorder, 3, i) ? 0 : 1;
                  return lost;
              }) == 0,
              "a child");
        check(recorder.snapshot((folder / "copy").c_str()) == EACCES, "a copy in others' folder");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no other user");
    BOOST_TEST(status == 0);
    BOOST_TEST(watching.statistics().reclaimed == 0U);
    BOOST_TEST(watching.statistics().sub_buffers > 50U);
    const auto all = test::account_of(watching);
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(all.lost().total() == 0U);
    BOOST_TEST(all.of(1).size() == each);
    BOOST_TEST(all.of(2).size() == 10U);
    BOOST_TEST(all.of(3).size() == 10U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_program_that_goes_to_another_root_goes_on_recording_and_growing,
                              kind, test::kinds) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const std::string inner = folder / "inner";
    std::filesystem::create_directory(inner);
    constexpr std::uint64_t most = 200 * test::fit_in_512;
    const int status = in_child([&]() -> int {
        checks check;
        auto& recorder = *new tr::basic_recorder<kind>(test::growing(file));
        test::put(recorder, 1, 0);
        if (::geteuid() != 0 || ::chroot(inner.c_str()) != 0 || ::chdir("/") != 0) return skipped;
        std::uint64_t n = 1;
        while (n < 40 * test::fit_in_512) check(test::put(recorder, 1, n++), "after");
        check(recorder.statistics().sub_buffers >= 40, "it grew");
        std::thread([&] { check(test::put(recorder, 2, 0), "a thread"); }).join();
        check(in_child([&] { return test::put(recorder, 3, 0) ? 0 : 1; }) == 0, "a child");
        check(recorder.snapshot("/copy") == 0, "a copy in the new root");
        // One that is begun here, where there is no /proc and no /sys.
        {
            tr::basic_recorder<kind> second({.file = "/b.trace", .size = 1 << 16});
            for (std::uint64_t i = 0; i < 100; ++i) check(test::put(second, 4, i), "a new trace");
            auto options = test::growing("/b.trace");
            options.exists = tr::if_exists::attach;
            tr::basic_recorder<kind> third(options);
            for (std::uint64_t i = 0; i < 100; ++i) check(test::put(third, 5, i), "joined");
        }
        // Without its descriptor it cannot be found again by its name: it grows no more.
        ::close(recorder.descriptor());
        const std::uint64_t there = recorder.statistics().sub_buffers;
        std::uint64_t kept = 0;
        for (std::uint64_t i = 0; i < most; ++i) kept += test::put(recorder, 6, i) ? 1 : 0;
        check(recorder.statistics().sub_buffers == there, "it grows no more");
        const auto all = test::account_of(recorder);
        check(all.of(6).size() == kept && all.lost()[loss_cause::refused] == most - kept,
              "told as refused");
        return check.failed;
    });
    TRACE_RING_TEST_SKIP_IF(status, "no other root");
    BOOST_TEST(status == 0);
    const auto all = test::account_of(tr::reduce::trace_file::open(file));
    BOOST_TEST(all.strange == 0U);
    BOOST_TEST(all.of(1).size() == 40 * test::fit_in_512);
    BOOST_TEST(all.of(2).size() == 1U);
    BOOST_TEST(all.of(3).size() == 1U);
    BOOST_TEST(all.of(6).size() + all.lost()[loss_cause::refused] == most);
    const auto copy = test::account_of(tr::reduce::trace_file::open(inner + "/copy"));
    BOOST_TEST(copy.of(1).size() == 40 * test::fit_in_512);
    const auto second = test::account_of(tr::reduce::trace_file::open(inner + "/b.trace"));
    BOOST_TEST(second.of(4).size() + second.of(5).size() == 200U);
}

BOOST_AUTO_TEST_SUITE_END()
