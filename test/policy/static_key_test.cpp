// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// gate::static_key: sites of all sorts, changed while threads run through them, and left alone
// where the system says so. On machines without sites all of it holds by the flag.

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <policy/static_key_sites.hpp>
#include <trace_ring/atomic.hpp>
#include <trace_ring/ring/ring.hpp>

BOOST_AUTO_TEST_SUITE(static_key)

using key_sites::all_sites;
using key_sites::closed_key;
using key_sites::open_sites;
using key_sites::shared_key;
using trace_ring::atomic;
namespace gate = trace_ring::gate;

namespace {

constexpr bool has_sites = TRACE_RING_PATCHED_CODE != 0;

/// Mappings of files that are writable and executable. An emulator has some of its own, of none.
int writable_text() {
    std::ifstream maps("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find(" rwx") != std::string::npos && line.find('/') != std::string::npos) ++found;
    }
    return found;
}

/// Asked before the constructors that register sites have run, and after their destructors.
struct first_and_last {
    first_and_last()
        : open_at_first(open_sites()),
          closed_at_first(!closed_key::is_open()),
          writable_at_first(writable_text()) {}
    ~first_and_last() {
        if (in_exit == nullptr) return;
        in_exit();
    }
    int open_at_first;
    bool closed_at_first;
    int writable_at_first;
    void (*in_exit)() = nullptr;
};
[[gnu::init_priority(101)]] first_and_last outermost;

/// What `body` returns, run in a child: the number of the first of its checks that failed, or 0.
template <class F>
int in_child(F body) {
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) ::_exit(body());
    int status = 0;
    // A child that waits for ever, as one would for a lock that nobody holds, has all signals
    // blocked, an alarm's as well.
    for (int i = 0; i < 20'000; ++i) {
        if (::waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// From now on the system call fails with EPERM, if the argument (-1: whatever it is) has the bits.
bool refuse(std::uint32_t call, int argument, std::uint32_t bits) {
    const auto offset = static_cast<std::uint32_t>(
        argument < 0 ? offsetof(seccomp_data, nr)
                     : offsetof(seccomp_data, args) + 8 * static_cast<unsigned>(argument));
    const std::uint32_t mask = argument < 0 ? ~0U : bits;
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof program[0], program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
bool refuse_writable_text() {
    return refuse(SYS_mprotect, 2, PROT_EXEC);
}
bool refuse_membarrier() {
    return refuse(SYS_membarrier, -1, 0);
}

constexpr int cannot_refuse = 77;
/// True if a child said that this system (an emulator) has no seccomp.
bool passed_over(int result) {
    if (result == cannot_refuse) BOOST_TEST_MESSAGE("no system call can be refused here");
    return result == cannot_refuse;
}

/// The first of the claims that does not hold, counted from 1; 0 if all do. In braces, so that they
/// are looked at in their order.
int first_false(std::initializer_list<bool> claims) {
    int number = 0;
    for (const bool claim : claims) {
        ++number;
        if (!claim) return number;
    }
    return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sites_say_what_the_key_says_before_they_are_registered) {
    BOOST_TEST(outermost.open_at_first == all_sites);
    BOOST_TEST(outermost.closed_at_first);
}

BOOST_AUTO_TEST_CASE(a_key_that_is_open_since_the_start_changes_no_text) {
    class untouched;
    using key = gate::static_key<untouched>;
    BOOST_TEST(key::is_open());
    BOOST_TEST(!key::is_patched());
}

BOOST_AUTO_TEST_CASE(every_site_follows_the_key) {
    for (int i = 0; i < 3; ++i) {
        BOOST_TEST(shared_key::close());
        BOOST_TEST(open_sites() == 0);
        BOOST_TEST(shared_key::is_patched() == has_sites);
        BOOST_TEST(shared_key::open());
        BOOST_TEST(open_sites() == all_sites);
        BOOST_TEST(shared_key::is_patched() == has_sites);
    }
}

BOOST_AUTO_TEST_CASE(a_key_that_begins_closed_is_a_no_op_without_being_set) {
    BOOST_TEST(!closed_key::is_open());
    BOOST_TEST(closed_key::is_patched() == has_sites);
    closed_key::open();
    BOOST_TEST(closed_key::is_open());
    closed_key::close();
    BOOST_TEST(!closed_key::is_open());
}

BOOST_AUTO_TEST_CASE(a_key_is_told_by_its_type_and_by_how_it_begins) {
    struct one;
    using open_one = gate::static_key<one>;
    using closed_one = gate::static_key<one, gate::initially::closed>;
    open_one::close();
    closed_one::open();
    BOOST_TEST(!open_one::is_open());
    BOOST_TEST(closed_one::is_open());
    BOOST_TEST(shared_key::is_open());
}

#if TRACE_RING_PATCHED_CODE
BOOST_AUTO_TEST_CASE(sites_lie_in_one_aligned_word_with_and_without_prefixes) {
    bool at[4]{};
    bool prefixed[5]{};
    int sites = 0;
    for (const auto& s : gate::impl::library_here<>::instance) {
        ++sites;
        const std::uintptr_t distance = s.at() % 8;
        BOOST_REQUIRE(distance <= 3U);
        at[distance] = true;
        const auto* const code = reinterpret_cast<const unsigned char*>(s.at());
        unsigned prefixes = 0;
        while (distance == 0 && prefixes < 4 && code[-1 - static_cast<int>(prefixes)] == 0x2E)
            ++prefixes;
        prefixed[prefixes] = true;
    }
    BOOST_TEST(sites > all_sites - 5);
    // in_template alone has one of each, whatever begins its function.
    for (const bool seen : at) BOOST_TEST(seen);
    for (const bool seen : prefixed) BOOST_TEST(seen);
}

BOOST_AUTO_TEST_CASE(a_closed_site_holds_the_no_op_and_an_open_one_a_jump) {
    using gate::impl::wanted;
    const auto hold = [](wanted w) {
        int found = 0;
        for (const auto& s : gate::impl::library_here<>::instance) {
            if (&s.of() == &gate::impl::key_of<key_sites::shared, gate::initially::open>) {
                BOOST_TEST(s.instruction() == s.as(w));
                ++found;
            }
        }
        return found;
    };
    shared_key::close();
    BOOST_TEST(hold(wanted::closed) >= 13);
    BOOST_TEST(key_sites::no_ops_here() >= 13);
    shared_key::open();
    BOOST_TEST(hold(wanted::open) >= 13);
}

BOOST_AUTO_TEST_CASE(a_site_that_a_debugger_has_changed_is_left_as_it_is) {
    const int result = in_child([] {
        class broken;
        using key = gate::static_key<broken>;
        const bool open = key::is_open();
        using state = gate::impl::site;
        const state* found = nullptr;
        for (const auto& s : gate::impl::library_here<>::instance) {
            if (&s.of() == &gate::impl::key_of<broken, gate::initially::open>) found = &s;
        }
        if (found == nullptr) return 100;
        const std::uintptr_t page = found->at() & ~std::uintptr_t{4095};
        if (::mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE | PROT_EXEC) !=
            0)
            return cannot_refuse;
        const auto* const code = reinterpret_cast<const volatile unsigned char*>(found->at());
        // ThreadSanitizer has no books of text, and must not see the store.
        __asm__ volatile("movb $0xCC, (%0)" : : "r"(code) : "memory");
        const bool closed = key::close();
        return first_false({open, !closed, code[0] == 0xCC, !key::is_patched()});
    });
    if (!passed_over(result)) BOOST_TEST(result == 0);
}
#endif

BOOST_AUTO_TEST_CASE(text_is_as_protected_as_it_was) {
    shared_key::close();
    BOOST_TEST(writable_text() == outermost.writable_at_first);
    shared_key::open();
    BOOST_TEST(writable_text() == outermost.writable_at_first);
}

BOOST_AUTO_TEST_CASE(a_ring_with_the_gate_records_while_it_is_open) {
    struct kind
        : trace_ring::policies<trace_ring::record::bare<std::uint64_t>,
                               trace_ring::claim::single_writer,
                               trace_ring::storage::inline_bytes<1024>, gate::static_key<kind>> {};
    static trace_ring::ring<kind> ring;
    static trace_ring::ring<kind> twin;
    BOOST_TEST(ring.write(std::uint64_t{1}));
    ring.gate().close();
    BOOST_TEST(!ring.write(std::uint64_t{2}));
    BOOST_TEST(!twin.write(std::uint64_t{2}));  // the key is the kind's
    BOOST_TEST(!static_cast<bool>(ring.try_reserve()));
    BOOST_TEST(gate::static_key<kind>::open());
    BOOST_TEST(ring.write(std::uint64_t{3}));
    BOOST_TEST(ring.produced() == 2U);
    BOOST_TEST(ring.lost().total() == 0U);
}

BOOST_AUTO_TEST_CASE(threads_in_the_midst_of_sites_follow_at_once) {
    constexpr unsigned runners = 3;
    constexpr unsigned rounds = has_sites ? 4000 : 50;
    atomic<std::uint32_t> round{0};
    atomic<std::uint32_t> answered{0};
    atomic<std::uint32_t> wrong{0};
    atomic<std::uint64_t> passes{0};
    const auto run = [&] {
        std::uint32_t last = 0;
        std::uint64_t passed = 0;
        for (;;) {
            // Whatever it finds: this is what a change must not crash.
            for (int i = 0; i < 20; ++i) (void)open_sites();
            passed += 20;
            const std::uint32_t now = round.load(trace_ring::acquire);
            if (now == last) {
                std::this_thread::yield();  // there may be fewer processors than threads
                continue;
            }
            if (now == ~0U) break;
            // The key was set before the round began, and stays until all have answered.
            if (open_sites() != (now % 2 == 0 ? all_sites : 0)) wrong.fetch_add(1);
            last = now;
            answered.fetch_add(1);
        }
        passes.fetch_add(passed);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < runners; ++i) threads.emplace_back(run);
    for (std::uint32_t r = 1; r <= rounds; ++r) {
        shared_key::set(r % 2 == 0);
        round.store(r, trace_ring::release);
        while (answered.load() != r * runners) std::this_thread::yield();
        for (int i = 0; i < 5; ++i) shared_key::set((r + static_cast<unsigned>(i)) % 2 == 0);
    }
    round.store(~0U, trace_ring::release);
    for (auto& t : threads) t.join();
    BOOST_TEST(wrong.load() == 0U);
    BOOST_TEST(passes.load() > rounds);
    shared_key::open();
}

BOOST_AUTO_TEST_CASE(when_threads_set_a_key_at_once_all_sites_end_alike) {
    for (int round = 0; round < (has_sites ? 50 : 5); ++round) {
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([t] {
                for (int i = 0; i < 20; ++i) shared_key::set((i + t) % 2 == 0);
            });
        }
        for (auto& t : threads) t.join();
        const int open = open_sites();
        BOOST_TEST((open == 0 || open == all_sites));
        BOOST_TEST(shared_key::is_patched() == has_sites);
    }
    shared_key::open();
    BOOST_TEST(open_sites() == all_sites);
}

BOOST_AUTO_TEST_CASE(a_handler_sets_a_key_in_the_midst_of_setting_one) {
    class handled;
    using key = gate::static_key<handled>;
    static volatile std::sig_atomic_t times;
    static volatile std::sig_atomic_t wrong;
    times = 0;
    wrong = 0;
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = [](int) {
        const int kept = errno;
        errno = EDOM;
        const bool open = times % 2 == 0;
        key::set(open);
        if (key::is_open() != open || errno != EDOM) wrong = wrong + 1;
        times = times + 1;
        errno = kept;
    };
    BOOST_REQUIRE(::sigaction(SIGALRM, &action, &before) == 0);
    const itimerval often{{0, 200}, {0, 200}};
    BOOST_REQUIRE(::setitimer(ITIMER_REAL, &often, nullptr) == 0);
    while (times < 200) {
        shared_key::set(times % 2 == 0);
        shared_key::open();
    }
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    action.sa_handler = SIG_IGN;  // one that is still on its way
    ::sigaction(SIGALRM, &action, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    BOOST_TEST(wrong == 0);
    BOOST_TEST(open_sites() == all_sites);
}

BOOST_AUTO_TEST_CASE(a_child_has_the_key_as_it_was_and_sets_its_own) {
    shared_key::close();
    const int result = in_child([] {
        const int inherited = open_sites();
        shared_key::open();
        return first_false(
            {inherited == 0, open_sites() == all_sites, shared_key::is_patched() == has_sites});
    });
    BOOST_TEST(result == 0);
    BOOST_TEST(open_sites() == 0);
    shared_key::open();
}

BOOST_AUTO_TEST_CASE(children_forked_while_text_is_changed_set_the_key_and_mend_the_text) {
    const int before = writable_text();
    atomic<bool> over{false};
    std::thread toggler([&over] {
        for (bool open = false; !over.load(); open = !open) shared_key::set(open);
    });
    int failed = 0;
    for (int i = 0; i < (has_sites ? 100 : 5) && failed == 0; ++i) {
        failed = in_child([before] {
            closed_key::close();  // nothing to change in its sites
            const int writable = writable_text();
            shared_key::close();
            const int closed = open_sites();
            shared_key::open();
            return first_false({writable == before, closed == 0, open_sites() == all_sites,
                                writable_text() == before});
        });
    }
    over.store(true);
    toggler.join();
    BOOST_TEST(failed == 0);
    shared_key::open();
}

BOOST_AUTO_TEST_CASE(where_text_may_not_be_written_the_flag_is_tested) {
    // Two ways to be refused, from the start: sites stay as they were born.
    for (bool (*refuse_it)() : {refuse_writable_text, refuse_membarrier}) {
        const int result = in_child([refuse_it] {
            class refused;
            using key = gate::static_key<refused>;
            if (!refuse_it()) return cannot_refuse;
            const bool at_first = key::is_open();
            errno = EDOM;
            const bool closes = key::close();
            const bool kept = errno == EDOM;
            const bool closed = !key::is_open();
            const bool patched = key::is_patched();
            const bool opens = key::open();
            return first_false({at_first, closes, kept, closed, !patched, opens, key::is_open(),
                                !key::is_patched()});
        });
        if (!passed_over(result)) BOOST_TEST(result == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_key_that_can_no_longer_be_opened_says_so) {
    const int result = in_child([] {
        shared_key::close();
        if (!refuse_writable_text()) return cannot_refuse;
        const bool opens = shared_key::open();
        return first_false({opens != has_sites, open_sites() == (has_sites ? 0 : all_sites),
                            !shared_key::is_patched(), shared_key::close()});
    });
    if (!passed_over(result)) BOOST_TEST(result == 0);
}

BOOST_AUTO_TEST_CASE(text_left_alone_before_it_is_refused_follows_the_flag) {
    const int result = in_child([] {
        shared_key::close();
        gate::leave_text_alone();
        const int still_closed = open_sites();
        const int no_ops = key_sites::no_ops_here();
        if (!refuse_writable_text() || !refuse_membarrier()) return cannot_refuse;
        const bool opens = shared_key::open();
        const int open = open_sites();
        const bool closes = shared_key::close();
        return first_false({still_closed == 0, no_ops == 0, opens, open == all_sites, closes,
                            open_sites() == 0, !shared_key::is_patched()});
    });
    if (!passed_over(result)) BOOST_TEST(result == 0);
}

BOOST_AUTO_TEST_CASE(after_the_destructors_sites_still_follow_the_key) {
    const int result = in_child([] {
        shared_key::close();
        outermost.in_exit = [] {
            const int closed = open_sites();
            const int no_ops = key_sites::no_ops_here();
            shared_key::open();
            ::_exit(first_false({closed == 0, no_ops == 0, open_sites() == all_sites}));
        };
        std::exit(100);
        return 101;
    });
    BOOST_TEST(result == 0);
}

BOOST_AUTO_TEST_CASE(a_library_loaded_later_has_the_key_as_it_is_and_may_be_unloaded) {
    using key_sites::library_view;
    shared_key::close();
    for (int i = 0; i < 3; ++i) {
        void* const library = ::dlopen(STATIC_KEY_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        BOOST_REQUIRE_MESSAGE(library != nullptr, ::dlerror());
        const auto* const view =
            static_cast<const library_view*>(::dlsym(library, "static_key_library"));
        BOOST_REQUIRE(view != nullptr);
        BOOST_TEST(view->open_sites() == 0);
        BOOST_TEST(!view->closed_key_is_open());
        BOOST_TEST(view->no_ops() == (has_sites ? 4 : 0));
        shared_key::open();
        closed_key::open();
        BOOST_TEST(view->open_sites() == 3);
        BOOST_TEST(view->closed_key_is_open());
        BOOST_TEST(view->no_ops() == 0);
        closed_key::close();
        // The other way round: set there, seen here.
        BOOST_TEST(view->close());
        BOOST_TEST(open_sites() == 0);
        BOOST_TEST(view->open());
        BOOST_TEST(open_sites() == all_sites);
        BOOST_TEST(view->close());
        BOOST_TEST(::dlclose(library) == 0);
        BOOST_TEST(::dlopen(STATIC_KEY_LIBRARY, RTLD_NOW | RTLD_NOLOAD) == nullptr);
        BOOST_TEST(shared_key::open());
        BOOST_TEST(shared_key::close());
        BOOST_TEST(open_sites() == 0);
    }
    shared_key::open();
}

BOOST_AUTO_TEST_SUITE_END()
