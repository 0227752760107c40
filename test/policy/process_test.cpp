// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The processes that share memory, and whether they live: all others see what a process reports
// about itself.

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/storage/process.hpp>

BOOST_AUTO_TEST_SUITE(processes)

namespace storage = trace_ring::storage;

namespace {

/// A child that says what it sees of itself and of its parent, and lives until it is killed.
class child {
public:
    struct report {
        std::uint64_t own_word = 0;
        std::uint64_t parents_start = 0;
    };

    /// `at_first`: what it does before that; it may leave the rest to another thread.
    explicit child(void (*at_first)(int report_to) = live) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            at_first(ends[1]);
            ::_exit(1);
        }
        ::close(ends[1]);
        const bool said = ::read(ends[0], &said_, sizeof said_) == sizeof said_;
        ::close(ends[0]);
        if (!said) throw std::runtime_error("the child has not said what it sees");
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        kill();
        ::waitpid(static_cast<pid_t>(pid()), nullptr, 0);
    }

    [[noreturn]] static void live(int report_to) {
        const report seen{
            .own_word = storage::process_word::own(),
            .parents_start = storage::facts_of(static_cast<std::uint32_t>(::getppid())).start};
        if (::write(report_to, &seen, sizeof seen) != sizeof seen) ::_exit(1);
        for (;;) ::pause();
    }

    [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
    [[nodiscard]] const report& said() const { return said_; }
    /// Ends it, and leaves it to wait for its parent.
    void kill() const {
        ::kill(pid_, SIGKILL);
        siginfo_t ended;
        ::waitid(P_PID, pid(), &ended, WEXITED | WNOWAIT);
    }

private:
    pid_t pid_ = 0;
    report said_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_see_the_same_start_of_a_process) {
    // So long after this one that nothing which one takes for the other's can be the same by
    // chance.
    ::usleep(50000);
    const child other;
    const storage::process_facts seen = storage::facts_of(other.pid());
    const storage::process_facts own = storage::facts_of(static_cast<std::uint32_t>(::getpid()));
    BOOST_TEST(own.start != 0U);
    BOOST_TEST(seen.start > own.start);
    BOOST_TEST(other.said().parents_start == own.start);
    constexpr std::uint64_t half = storage::process_word::start_bits;
    BOOST_TEST(other.said().own_word ==
               ((seen.start & half) << 40 |
                std::uint64_t{storage::pid_namespace() & 0xFFFFU} << 24 | other.pid()));
    BOOST_TEST(storage::process_word::pid(other.said().own_word) == other.pid());
    BOOST_TEST(!own.ended);
    BOOST_TEST(!seen.ended);
}

BOOST_AUTO_TEST_CASE(the_living_are_told_from_the_dead) {
    std::uint64_t word = 0;
    {
        const child other;
        word = other.said().own_word;
        BOOST_TEST(storage::process_word::may_live(word));
        BOOST_TEST(storage::process_may_live(other.pid(), 0));  // its start is not known
        // Another process that has its number by now.
        BOOST_TEST(!storage::process_word::may_live(word - (std::uint64_t{1} << 40)));
        // A process in another namespace, about which nothing is known.
        BOOST_TEST(storage::process_word::may_live((word ^ std::uint64_t{1} << 24) -
                                                   (std::uint64_t{1} << 40)));
        other.kill();
        BOOST_TEST(storage::facts_of(other.pid()).ended);
        BOOST_TEST(!storage::process_word::may_live(word));
        BOOST_TEST(!storage::process_may_live(other.pid(), 0));
    }
    BOOST_TEST(!storage::process_word::may_live(word));  // its parent has noticed
    BOOST_TEST(storage::facts_of(storage::process_word::pid(word)).start == 0U);
}

BOOST_AUTO_TEST_CASE(a_process_lives_on_without_its_first_thread) {
    const child other([](int report_to) {
        static int to = report_to;
        pthread_t second;
        const auto rest = [](void*) -> void* {
            ::usleep(20000);  // the first has ended by then
            child::live(to);
        };
        if (::pthread_create(&second, nullptr, rest, nullptr) != 0) return;
        ::syscall(SYS_exit, 0);  // this thread alone; pthread_exit would unwind Boost.Test's frames
    });
    BOOST_TEST(!storage::facts_of(other.pid()).ended);
    BOOST_TEST(storage::process_word::may_live(other.said().own_word));
    other.kill();
    BOOST_TEST(!storage::process_word::may_live(other.said().own_word));
}

BOOST_AUTO_TEST_SUITE_END()
