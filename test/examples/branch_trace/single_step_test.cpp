// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Programs whose branches are known (stepped.S), stepped: each branch is there, once, and the
// programs do what they do without.

#include <boost/test/unit_test.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <branch_trace/step/single_step.hpp>
#include <recorder/scratch.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

BOOST_AUTO_TEST_SUITE(single_steps)

#ifndef STEPPED_PROGRAMS
#define STEPPED_PROGRAMS "/tmp/stepped"
#define STEPPED_SIGNALS_64 ""
#define STEPPED_SIGNALS_32 ""
#endif

namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using x86::branch;
using x86::branch_kind;

namespace {

std::string program(int bits, const std::string& name) {
    return STEPPED_PROGRAMS "/" + std::to_string(bits) + "/" + name;
}

/// The sizes that there are programs of, that run here, and that this tracer can step.
std::vector<int> sizes() {
    std::vector<int> out;
    for (const int bits : {64, 32}) {
        if (bits == 64 && sizeof(void*) == 4) continue;
        const std::string known = program(bits, "known");
        if (::access(known.c_str(), X_OK) != 0) {
            std::printf("skipped: the compiler makes no programs of %d bits\n", bits);
        } else if (std::system((known + " 2> /dev/null").c_str()) != 0) {
            std::printf("skipped: this kernel runs no programs of %d bits\n", bits);
        } else {
            out.push_back(bits);
        }
    }
    BOOST_REQUIRE(!out.empty());
    return out;
}

/// What was handed over, and whether each thread went only forwards between its branches.
struct account {
    struct thread {
        std::map<branch_kind, unsigned> complete;
        std::vector<branch> ends;
        std::uint64_t last = 0;
        unsigned begins = 0;
        unsigned backwards = 0;
        branch newest;
    };
    std::map<std::uint32_t, thread> threads;
    std::vector<std::uint32_t> order;  ///< threads, as they began
    unsigned gaps = 0;

    void operator()(const branch& one) {
        if (!threads.contains(one.thread())) order.push_back(one.thread());
        thread& of = threads[one.thread()];
        if (one.has_from() && one.from() < of.last) ++of.backwards;
        if (one.complete()) {
            ++of.complete[one.kind()];
        } else if (one.has_to()) {
            ++of.begins;
        } else {
            of.ends.push_back(one);
        }
        of.last = one.to();
        of.newest = one;
    }
    void operator()(const x86::branch_gap&) { ++gaps; }

    [[nodiscard]] unsigned of(branch_kind kind) const {
        unsigned sum = 0;
        for (const auto& [tid, one] : threads) {
            if (const auto at = one.complete.find(kind); at != one.complete.end())
                sum += at->second;
        }
        return sum;
    }
    [[nodiscard]] unsigned branches() const {
        unsigned sum = 0;
        for (const auto& [tid, one] : threads) {
            for (const auto& [kind, count] : one.complete)
                sum += x86::is_branch_instruction(kind) ? count : 0;
        }
        return sum;
    }
    void check() const {
        BOOST_TEST(gaps == 0U);
        BOOST_TEST(of(branch_kind::unknown) == 0U);
        for (const auto& [tid, one] : threads) {
            BOOST_TEST(tid != 0U);
            BOOST_TEST(one.backwards == 0U);
            BOOST_TEST(one.begins >= 1U);
        }
    }
};

account run(branch_trace::single_step& what) {
    account got;
    while (!what.ended()) what.read(got);
    got.check();
    return got;
}

/// Whether the shell that runs scripts is an ELF file of 64 bits.
bool sh_is_of_64_bits() {
    std::ifstream in("/bin/sh", std::ios::binary);
    char first[5] = {};
    in.read(first, sizeof first);
    return in && first[4] == 2;
}

/// The third field of a process's stat: how it is.
char state_of(::pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(in, line);
    const auto at = line.rfind(") ");
    return at == std::string::npos ? '?' : line[at + 2];
}
void wait_until_state(::pid_t process, char wanted) {
    while (state_of(process) != wanted) ::usleep(200);
}
/// Until a stepped process is stopped and its tracer waits: not between two steps, for it lasts.
void wait_until_both_wait(::pid_t process, ::pid_t tracer) {
    for (int seen = 0; seen < 20; ::usleep(500)) {
        seen = state_of(process) == 't' && state_of(tracer) == 'S' ? seen + 1 : 0;
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_with_1005_taken_branches_gives_exactly_that) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "known")});
            const account got = run(stepped);
            BOOST_TEST(got.branches() == 1005U);
            BOOST_TEST(got.of(branch_kind::conditional) == 999U);
            BOOST_TEST(got.of(branch_kind::jump) == 1U);
            BOOST_TEST(got.of(branch_kind::call) == 1U);
            BOOST_TEST(got.of(branch_kind::indirect_call) == 1U);
            BOOST_TEST(got.of(branch_kind::indirect_jump) == 1U);
            BOOST_TEST(got.of(branch_kind::function_return) == 2U);
            BOOST_TEST(got.threads.size() == 1U);
            BOOST_TEST(stepped.status().value_or(-1) == 0);
            // mov, 1,000 times dec and jnz, jmp, 2 calls and returns, 2 lea, jmp, cmp, je, two
            // movs.
            BOOST_TEST(stepped.steps() == 1U + 2000 + 1 + 4 + 2 + 1 + 2 + 2);
        }
    }
}

BOOST_AUTO_TEST_CASE(branches_to_the_next_instruction_are_branches_and_repetitions_are_not) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "edges")});
            const account got = run(stepped);
            BOOST_TEST(got.of(branch_kind::conditional) == 6U);
            BOOST_TEST(got.of(branch_kind::call) == 1U);
            BOOST_TEST(got.of(branch_kind::jump) == 1U);
            BOOST_TEST(got.branches() == 8U);
            BOOST_TEST(WEXITSTATUS(stepped.status().value_or(0)) == 7);
        }
    }
}

BOOST_AUTO_TEST_CASE(all_threads_are_stepped_each_by_itself) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "threads")});
            const account got = run(stepped);
            BOOST_REQUIRE(got.threads.size() == 3U);
            for (const std::size_t i : {1U, 2U}) {
                const auto& thread = got.threads.at(got.order[i]);
                BOOST_TEST(thread.begins == 1U);
                BOOST_TEST(thread.complete.at(branch_kind::conditional) == 500U);
            }
            BOOST_TEST(stepped.status().value_or(-1) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_fork_is_followed_if_asked_for_and_runs_on_its_own_if_not) {
    for (const int bits : sizes()) {
        for (const int way : {0, 1, 2, 3}) {
            const bool follow = way % 2 != 0;
            const char* const name = way < 2 ? "forks" : "clones";
            BOOST_TEST_CONTEXT(bits << " bits, " << name << ", followed: " << follow) {
                branch_trace::single_step stepped({program(bits, name)}, {.follow_forks = follow});
                const account got = run(stepped);
                BOOST_REQUIRE(got.threads.size() == (follow ? 2U : 1U));
                BOOST_TEST(got.of(branch_kind::conditional) == (follow ? 101U : 1U));
                // fork and wait4; the child's exit does not return.
                BOOST_TEST(got.of(branch_kind::system_call) == 2U);
                BOOST_TEST(stepped.status().value_or(-1) == 0);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_executed_next_is_stepped_whatever_its_size) {
    for (const int bits : sizes()) {
        for (const int other : sizes()) {
            BOOST_TEST_CONTEXT(bits << " bits executes " << other) {
                branch_trace::single_step stepped(
                    {program(bits, "execs"), program(other, "known")});
                const account got = run(stepped);
                BOOST_REQUIRE(got.threads.size() == 1U);
                const auto& thread = got.threads.begin()->second;
                BOOST_TEST(thread.begins == 2U);
                BOOST_REQUIRE(thread.ends.size() == 1U);
                BOOST_TEST((thread.ends[0].kind() == branch_kind::system_call));
                BOOST_TEST(got.branches() == 1006U);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_thread_that_executes_a_program_becomes_its_first) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped(
                {program(bits, "thread_execs"), program(bits, "known")});
            const account got = run(stepped);
            BOOST_REQUIRE(got.threads.size() == 2U);
            const auto& first = got.threads.at(static_cast<std::uint32_t>(stepped.process()));
            BOOST_TEST(first.begins == 2U);
            BOOST_TEST(first.ends.empty());
            const auto& other = got.threads.at(got.order[1]);
            BOOST_REQUIRE(other.ends.size() == 1U);
            BOOST_TEST((other.ends[0].kind() == branch_kind::system_call));
            // Of the thread that was, its one jump.
            BOOST_TEST(got.branches() == 1006U);
            BOOST_TEST(stepped.status().value_or(-1) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(handlers_are_entered_and_left_by_records_of_their_own) {
    for (const int bits : sizes()) {
        for (const bool calls : {false, true}) {
            BOOST_TEST_CONTEXT(bits << " bits, with system calls: " << calls) {
                branch_trace::single_step stepped({program(bits, "handles")},
                                                  {.system_calls = calls});
                const account got = run(stepped);
                BOOST_TEST(got.of(branch_kind::signal) == 1U);
                BOOST_TEST(got.of(branch_kind::exception) == 1U);
                BOOST_TEST(got.of(branch_kind::interrupt_return) == 2U);
                BOOST_TEST(got.of(branch_kind::conditional) == 18U);
                BOOST_TEST(got.of(branch_kind::call) == 2U);
                BOOST_TEST(got.of(branch_kind::function_return) == 4U);
                BOOST_TEST(got.of(branch_kind::system_call) == (calls ? 4U : 0U));
                // The program has got its signals, its own SIGTRAP too.
                BOOST_TEST(WEXITSTATUS(stepped.status().value_or(0)) == 2);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_trap_flag_is_seen_only_by_a_program_that_has_set_it) {
    for (const int bits : sizes()) {
        for (const bool follow : {false, true}) {
            BOOST_TEST_CONTEXT(bits << " bits, children followed: " << follow) {
                const std::string name = program(bits, "sees_flags");
                const int alone = std::system(name.c_str());
                BOOST_TEST(WIFEXITED(alone));
                BOOST_TEST(WEXITSTATUS(alone) > 0);   // its own flag has brought it signals
                BOOST_TEST(WEXITSTATUS(alone) < 16);  // and the processor has no other
                branch_trace::single_step stepped({name}, {.follow_forks = follow});
                static_cast<void>(run(stepped));
                BOOST_TEST(stepped.status().value_or(-1) == alone);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_program_prints_of_flags_and_signals_what_it_prints_alone) {
    for (const int bits : sizes()) {
        const std::string name = bits == 64 ? STEPPED_SIGNALS_64 : STEPPED_SIGNALS_32;
        if (name.empty()) {
            std::printf("skipped: no C library for programs of %d bits\n", bits);
            continue;
        }
        const test::folder folder;
        const auto printed = [&folder] {
            std::ifstream in(folder / "out");
            return std::string(std::istreambuf_iterator<char>(in), {});
        };
        BOOST_REQUIRE(std::system((name + " " + (folder / "out")).c_str()) == 0);
        const std::string alone = printed();
        BOOST_TEST(alone.find("seen 0, unmasked 0\n") != std::string::npos, alone);
        branch_trace::single_step stepped({name, folder / "out"});
        while (!stepped.ended()) {
            stepped.read(x86::visiting{[](const branch&) {}, [](const x86::branch_gap&) {}});
        }
        BOOST_TEST(stepped.status().value_or(-1) == 0);
        BOOST_TEST(printed() == alone);
    }
}

BOOST_AUTO_TEST_CASE(the_branches_before_a_crash_are_there_and_where_it_was) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "crashes")});
            const account got = run(stepped);
            BOOST_TEST(got.branches() == 9U);
            const auto& thread = got.threads.begin()->second;
            BOOST_REQUIRE(thread.ends.size() == 1U);
            BOOST_TEST((thread.ends[0].kind() == branch_kind::exception));
            // The last jnz was not taken: two bytes; xor has two, too.
            BOOST_TEST((thread.newest == thread.ends[0]));
            BOOST_TEST(WTERMSIG(stepped.status().value_or(0)) == SIGSEGV);
        }
    }
}

BOOST_AUTO_TEST_CASE(code_that_is_changed_is_read_anew) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "modifies")});
            const account got = run(stepped);
            BOOST_TEST(got.of(branch_kind::jump) == 2U);
            BOOST_TEST(got.of(branch_kind::conditional) == 4U);
        }
    }
}

BOOST_AUTO_TEST_CASE(code_that_is_mapped_anew_is_read_anew) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "maps")});
            const account got = run(stepped);
            BOOST_TEST(got.of(branch_kind::jump) == 1U);
            BOOST_TEST(got.of(branch_kind::indirect_call) == 2U);
            BOOST_TEST(got.of(branch_kind::function_return) == 6U);
            BOOST_TEST(got.of(branch_kind::call) == 4U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_program_that_is_killed_is_over) {
    branch_trace::single_step stepped({program(sizes().front(), "spins")});
    account got;
    bool killed = false;
    while (!stepped.ended()) {
        stepped.read(got);
        if (!killed) ::kill(stepped.process(), SIGKILL);
        killed = true;
    }
    got.check();
    BOOST_TEST(got.of(branch_kind::jump) >= 1U);
    BOOST_TEST(WTERMSIG(stepped.status().value_or(0)) == SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_stopped_stays_so_until_it_is_continued) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "stops")});
            std::thread other([process = stepped.process(), tracer = ::gettid()] {
                wait_until_both_wait(process, tracer);
                ::kill(process, SIGCONT);
            });
            const account got = run(stepped);
            other.join();
            BOOST_TEST(got.of(branch_kind::conditional) == 2U);
            BOOST_TEST(WEXITSTATUS(stepped.status().value_or(0)) == 5);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_read_is_stopped_from_another_thread_while_the_program_waits) {
    for (const int bits : sizes()) {
        BOOST_TEST_CONTEXT(bits << " bits") {
            branch_trace::single_step stepped({program(bits, "waits")});
            const ::pid_t process = stepped.process();
            account got;
            for (int i = 0; i < 3; ++i) {
                std::thread other([&] {
                    wait_until_state(process, 'S');
                    stepped.stop();
                });
                while (!stepped.stopped()) stepped.read(got);
                other.join();
                BOOST_TEST(stepped.read(got) == 0U);
                BOOST_TEST(!stepped.ended());
                stepped.resume();
            }
            got.check();
            BOOST_TEST(got.of(branch_kind::conditional) == 1U);
            BOOST_TEST(got.of(branch_kind::signal) == 0U);
            stepped.kill();
            BOOST_TEST(stepped.ended());
            BOOST_TEST(state_of(process) == '?');
        }
    }
}

namespace {
branch_trace::single_step* to_stop = nullptr;
void stop_it(int) {
    to_stop->stop();
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_read_is_stopped_by_a_signal_handler_of_its_own_thread) {
    struct ::sigaction action {};
    struct ::sigaction before {};
    action.sa_handler = &stop_it;
    ::sigaction(SIGUSR2, &action, &before);
    for (const auto* name : {"waits", "spins"}) {
        BOOST_TEST_CONTEXT(name) {
            branch_trace::single_step stepped({program(sizes().front(), name)});
            to_stop = &stepped;
            account got;
            std::thread other([reader = ::pthread_self(), process = stepped.process(), name] {
                if (std::string(name) == "waits") wait_until_state(process, 'S');
                ::pthread_kill(reader, SIGUSR2);
            });
            while (!stepped.stopped()) stepped.read(got);
            other.join();
            got.check();
            BOOST_TEST(!stepped.ended());
        }
    }
    ::sigaction(SIGUSR2, &before, nullptr);
}

BOOST_AUTO_TEST_CASE(children_of_the_tracer_itself_are_left_to_it) {
    const ::pid_t own = ::fork();
    if (own == 0) ::_exit(9);
    ::siginfo_t info{};
    BOOST_REQUIRE(::waitid(P_PID, static_cast<::id_t>(own), &info, WEXITED | WNOWAIT) == 0);
    branch_trace::single_step stepped({program(sizes().front(), "threads")});
    const account got = run(stepped);
    BOOST_TEST(got.threads.size() == 3U);
    int status = 0;
    BOOST_REQUIRE(::waitpid(own, &status, 0) == own);
    BOOST_TEST(WEXITSTATUS(status) == 9);
}

BOOST_AUTO_TEST_CASE(what_a_visitor_throws_goes_through_and_stepping_can_go_on) {
    branch_trace::single_step stepped({program(sizes().front(), "known")});
    account got;
    int thrown = 0;
    while (!stepped.ended()) {
        try {
            stepped.read(x86::visiting{[&](const branch& one) {
                                           got(one);
                                           if (one.kind() == branch_kind::jump) throw 1;
                                       },
                                       [](const x86::branch_gap&) {}});
        } catch (int) {
            ++thrown;
        }
    }
    BOOST_TEST(thrown == 1);
    BOOST_TEST(got.branches() == 1005U);
}

BOOST_AUTO_TEST_CASE(a_program_that_cannot_be_executed_is_named_with_the_reason) {
    const auto reason = [](const std::vector<std::string>& command) {
        try {
            branch_trace::single_step stepped(command);
        } catch (const tr::setup_error& error) {
            BOOST_TEST((command.empty() || error.subject() == command.front()));
            return error.code().value();
        }
        return 0;
    };
    BOOST_TEST(reason({"/nowhere/to/be/found"}) == ENOENT);
    BOOST_TEST(reason({"/"}) == EACCES);
    BOOST_TEST(reason({}) == EINVAL);
    // A program for another machine is no script of sh, although its bytes could be read as one.
    const test::folder folder;
    const auto make = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder / name) << text;
        ::chmod((folder / name).c_str(), 0700);
        return folder / name;
    };
    const std::string foreign = make("foreign", "\177ELF\nexit 5\n");
    BOOST_TEST(reason({foreign}) == ENOEXEC);
    const std::string script = make("script", "exit 5\n");
    if (sizeof(void*) == 4 && sh_is_of_64_bits()) {
        // This tracer cannot step the shell, and says so: the script did reach it.
        BOOST_CHECK_EXCEPTION(
            branch_trace::single_step({script}), tr::setup_error,
            [](const tr::setup_error& error) { return error.code().value() == EOPNOTSUPP; });
        return;
    }
    branch_trace::single_step stepped({script});
    static_cast<void>(run(stepped));
    BOOST_TEST(WEXITSTATUS(stepped.status().value_or(0)) == 5);
}

BOOST_AUTO_TEST_CASE(a_32_bit_tracer_refuses_a_64_bit_program) {
    if (sizeof(void*) != 4 || ::access(program(64, "known").c_str(), X_OK) != 0) {
        std::puts("skipped: this tracer steps both");
        return;
    }
    try {
        branch_trace::single_step stepped({program(64, "known")});
        BOOST_ERROR("stepped");
    } catch (const tr::setup_error& error) {
        BOOST_TEST(error.code().value() == EOPNOTSUPP);
    }
    branch_trace::single_step executes({program(32, "execs"), program(64, "known")});
    BOOST_CHECK_THROW(run(executes), tr::setup_error);
    BOOST_TEST(::waitpid(-1, nullptr, WNOHANG | __WALL) <= 0);
}

BOOST_AUTO_TEST_SUITE_END()
