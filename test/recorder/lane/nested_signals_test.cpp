// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Signals by the million, one within another.

#include <boost/test/unit_test.hpp>

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <proof.hpp>
#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>
#include <recorder/signals.hpp>

BOOST_AUTO_TEST_SUITE(nested_signals)

namespace tr = trace_ring;
using tr::loss_cause;

namespace {

/// A thread and handlers five deep, each of which interrupts the one before, possibly while that
/// has a record open, and records before and after. A timer comes in between at any instruction.
template <class Kind>
struct nest {
    static inline tr::basic_recorder<Kind>* recorder = nullptr;
    static inline std::atomic<std::uint64_t> tried{0}, kept{0}, signals{0};
    static inline pid_t process = 0, thread = 0;

    static int signal_of(int depth) { return SIGRTMIN + depth; }

    static void record() {
        if (test::put(*recorder, 7, tried.fetch_add(1))) kept.fetch_add(1);
    }
    /// Records, and goes deeper while a record is open or while none is.
    static void visit(int depth, std::uint64_t turn) {
        const auto interrupt = [&] {
            if (depth == 5) return;
            ::syscall(SYS_tgkill, process, thread, signal_of(depth));
        };
        record();
        if ((turn >> depth & 1U) != 0) {
            auto held =
                recorder->template reserve<test::numbered>(std::uint64_t{8}, tried.fetch_add(1));
            interrupt();
            if (held.commit()) kept.fetch_add(1);
        } else {
            interrupt();
        }
        record();
    }
    static void handle(int signal) {
        const int saved = errno;
        visit(signal - SIGRTMIN + 1, signals.fetch_add(1));
        errno = saved;
    }
    static void handle_timer(int) {
        signals.fetch_add(1);
        record();
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(millions_of_signals_one_within_another_lose_nothing_untold, kind,
                              test::kinds) {
    if (test::under_tsan) return;  // calls handlers when it likes
    using all = nest<kind>;
    const bool whole = trace_ring_test::repeats(1) > 1;
    // Ten million, of both kinds together.
    const std::uint64_t wanted = whole ? 5'000'000 : test::scaled(250'000, 2'500);
    tr::basic_recorder<kind> recorder({.size = 1 << 20, .sub_buffer_bytes = 512});
    all::recorder = &recorder;
    all::tried = all::kept = all::signals = 0;
    all::process = ::getpid();
    all::thread = static_cast<pid_t>(::syscall(SYS_gettid));
    {
        const test::signal_handler first(all::signal_of(0), &all::handle);
        const test::signal_handler second(all::signal_of(1), &all::handle);
        const test::signal_handler third(all::signal_of(2), &all::handle);
        const test::signal_handler fourth(all::signal_of(3), &all::handle);
        const test::signal_handler fifth(all::signal_of(4), &all::handle);
        const test::signal_handler any_moment(SIGUSR1, &all::handle_timer);
        const test::thread_timer timer(SIGUSR1, 150'000);
        for (std::uint64_t turn = 0; all::signals.load() < wanted; ++turn) {
            all::visit(0, turn);
            if (turn % 512 == 0) recorder.flush_thread();
        }
    }
    BOOST_TEST_MESSAGE(all::signals.load() << " signals, " << all::tried.load() << " records, "
                                           << all::kept.load() << " kept");
    recorder.flush_thread();
    const auto seen = test::account_of(recorder);
    const auto lost = seen.lost();
    BOOST_TEST(seen.strange == 0U);
    BOOST_TEST(seen.read() + lost.total() == all::tried.load());
    BOOST_TEST(seen.read() + lost[loss_cause::overwritten] == all::kept.load());
    BOOST_TEST(all::kept.load() > all::tried.load() / 2);
    // A lane of a thread is four deep: what is begun within that is lost. Those of processors hold
    // nothing open.
    if (std::is_same_v<kind, test::by_thread>) BOOST_TEST(all::kept.load() < all::tried.load());
    all::recorder = nullptr;
}

BOOST_AUTO_TEST_SUITE_END()
