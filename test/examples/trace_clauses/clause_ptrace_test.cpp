// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Clauses at breakpoints: each of many threads' hits is reported, for any instruction there; forked
// processes continue without breakpoints; the program computes what it would without us.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/point/clauses.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <trace_clauses/ptrace/by_hand.hpp>
#include <trace_clauses/ptrace/movable.hpp>
#include <trace_clauses/ptrace/ptrace_source.hpp>

// Functions of one argument whose first instructions differ; each returns it, and its own number in
// the fourth byte.
asm(R"(
    .pushsection .text
    .globl clause_ptrace_functions, clause_ptrace_end
    .balign 32
clause_ptrace_functions:
.macro of_number n
    lea (\n << 24)(%rdi), %rax
.endm
    .balign 32
    push %rbp
    of_number 0
    pop %rbp
    ret
    .balign 32
    push %r12
    of_number 1
    pop %r12
    ret
    .balign 32
    endbr64
    of_number 2
    ret
    .balign 32
    nop
    of_number 3
    ret
    .balign 32
    sub $24, %rsp
    of_number 4
    add $24, %rsp
    ret
    .balign 32
    mov %rdi, %rax
    of_number 5
    ret
    .balign 32
    test %rdi, %rdi
    of_number 6
    ret
    .balign 32
    lea clause_ptrace_seven(%rip), %rax
    mov (%rax), %rax
    add %rdi, %rax
    ret
    .balign 32
    jmp 1f
    ud2
1:  of_number 8
    ret
    .balign 32
    call 2f
    of_number 9
    ret
2:  ret
    .balign 32
    push $7
    of_number 10
    lea 8(%rsp), %rsp
    ret
    .balign 32
    of_number 11
    ret
    .balign 32
    mov clause_ptrace_twelve(%rip), %rax
    add %rdi, %rax
    ret
    .balign 32
    cmpb $0, clause_ptrace_seven(%rip)
    of_number 13
    ret
    .balign 32
    xor %eax, %eax
    of_number 14
    ret
    .balign 32
    mov 8(%rsp), %rax
    of_number 15
    ret
    .balign 32
    pushfq
    pop %rax
    and $0x100, %eax                    # a trap flag that is not this program's
    lea (16 << 24)(%rdi, %rax), %rax
    ret
    .balign 32
clause_ptrace_end:
    .popsection
    .pushsection .data
clause_ptrace_seven: .8byte 7 << 24
clause_ptrace_twelve: .8byte 12 << 24
    .popsection
)");
extern "C" const std::byte clause_ptrace_functions[], clause_ptrace_end[];

BOOST_AUTO_TEST_SUITE(clauses_at_breakpoints)

namespace point = trace_ring::point;
namespace tc = trace_clauses;
using point::instruction;
using point::op;

namespace {

constexpr unsigned functions = 17;

const std::byte* function(unsigned n) {
    return clause_ptrace_functions + std::size_t{32} * n;
}
std::uint64_t call(unsigned n, std::uint64_t argument) {
    using one = std::uint64_t (*)(std::uint64_t);
    return reinterpret_cast<one>(reinterpret_cast<std::uintptr_t>(function(n)))(argument);
}
/// Where `function(n)` is in this program's file.
tc::attach_point place_of(unsigned n, tc::function_part part, ::pid_t process) {
    const auto [file, offset] = clause_programs::place_in_file(function(n));
    return {file, offset, part, process};
}
const std::vector<instruction>& argument_code() {
    static const std::vector<instruction> code{
        {op::argument, 0}, {op::store, static_cast<std::uint8_t>(point::width::u64)}, {op::finish}};
    return code;
}
const std::vector<instruction>& returned_code() {
    static const std::vector<instruction> code{
        {op::context, static_cast<std::uint8_t>(point::context_word::returned)},
        {op::store, static_cast<std::uint8_t>(point::width::u64)},
        {op::finish}};
    return code;
}

/// A process that works on request, and is not our child while it is traced.
class worker {
public:
    template <class Work>
    explicit worker(Work&& work) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("pipe");
        process_ = ::fork();
        if (process_ == 0) {
            char byte = 0;
            ::close(ends[1]);
            ::_exit(::read(ends[0], &byte, 1) == 1 ? work() : 99);
        }
        ::close(ends[0]);
        go_ = ends[1];
    }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    ~worker() { ::close(go_); }
    void go() const { BOOST_REQUIRE(::write(go_, "", 1) == 1); }
    [[nodiscard]] ::pid_t process() const noexcept { return process_; }

private:
    ::pid_t process_ = -1;
    int go_ = -1;
};
/// Null, and the reason printed, if nothing may be traced here.
std::unique_ptr<tc::ptrace_source> source_for(const point::clauses& session,
                                              const tc::attach_point& first,
                                              const std::vector<std::uint32_t>& clauses) {
    auto source = std::make_unique<tc::ptrace_source>(session, tc::ptrace_source::from::now);
    try {
        source->attach(first, clauses);
    } catch (const std::runtime_error& why) {
        std::printf("skipped: %s\n", why.what());
        return nullptr;
    }
    return source;
}
struct told {
    std::map<std::uint32_t, std::multiset<std::uint64_t>> values;  // by clause
    std::map<std::uint32_t, unsigned> by_thread;
};
/// Until the process has ended, with `status`.
told all_of(tc::ptrace_source& source, const worker& of, int status) {
    told made;
    source.wait(0);  // its points are there from then on
    of.go();
    while (!source.status_of(of.process())) {
        if (!source.wait(50)) continue;
        source.read([&](const tc::firing_record& head, std::span<const std::byte> output) {
            std::uint64_t value = 0;
            std::memcpy(&value, output.data(), sizeof value);
            made.values[head.clause].insert(value);
            ++made.by_thread[head.tid];
        });
    }
    BOOST_TEST(*source.status_of(of.process()) == status << 8);
    return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_hit_of_many_threads_is_told_whatever_instruction_is_there) {
    constexpr unsigned threads = 4;
    const unsigned calls = trace_ring_test::repeats(400);
    const worker work([calls] {
        std::array<bool, threads> right{};
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; ++t) {
            all.emplace_back([&right, t, calls] {
                bool good = true;
                for (unsigned i = 0; i < calls; ++i) {
                    const unsigned n = (i + t) % functions;
                    good = good && call(n, i) == (std::uint64_t{n} << 24) + i;
                }
                right[t] = good;
            });
        }
        for (auto& each : all) each.join();
        return right == std::array<bool, threads>{true, true, true, true} ? 5 : 6;
    });
    point::clauses session;
    std::vector<std::uint32_t> entries;
    std::vector<std::uint32_t> exits;
    for (unsigned n = 0; n < functions; ++n) {
        entries.push_back(session.add({{}, argument_code(), 8}, {{}, argument_code(), 8}));
        exits.push_back(session.add({{}, returned_code(), 8}, {{}, returned_code(), 8}));
    }
    const auto source =
        source_for(session, place_of(0, tc::function_part::entry, work.process()), {entries[0]});
    if (source == nullptr) return;
    for (unsigned n = 0; n < functions; ++n) {
        if (n != 0)
            source->attach(place_of(n, tc::function_part::entry, work.process()), {&entries[n], 1});
        source->attach(place_of(n, tc::function_part::exit, work.process()), {&exits[n], 1});
    }
    const told found = all_of(*source, work, 5);
    for (unsigned n = 0; n < functions; ++n) {
        std::multiset<std::uint64_t> passed;
        std::multiset<std::uint64_t> returned;
        for (unsigned t = 0; t < threads; ++t) {
            for (unsigned i = 0; i < calls; ++i) {
                if ((i + t) % functions != n) continue;
                passed.insert(i);
                returned.insert((std::uint64_t{n} << 24) + i);
            }
        }
        BOOST_TEST((found.values.at(entries[n]) == passed));
        BOOST_TEST((found.values.at(exits[n]) == returned));
        BOOST_TEST(source->counts(entries[n]).ran == passed.size());
        BOOST_TEST(source->counts(exits[n]).dropped == 0U);
    }
    BOOST_TEST(found.by_thread.size() == threads);
    for (const auto& [tid, count] : found.by_thread) BOOST_TEST(count == 2 * calls);
    trace_ring_test::proof("clauses", 2 * threads * calls, "hits of breakpoints by many threads");
}

BOOST_AUTO_TEST_CASE(what_is_forked_goes_on_without_breakpoints_and_is_not_told) {
    const worker work([] {
        volatile std::uint64_t sum = 0;  // compilers warn that vfork might change it
        for (unsigned i = 0; i < 20; ++i) {
            sum = sum + call(0, i);
            const ::pid_t forked = ::fork();
            if (forked == 0) ::_exit(call(0, i) == i && call(12, 3) == (12U << 24) + 3 ? 7 : 8);
            int status = 0;
            if (::waitpid(forked, &status, 0) != forked || status != 7 << 8) return 1;
            // It shares the memory until it executes the program.
            ::pid_t spawned = 0;
            char name[] = "/bin/true";
            char* const words[] = {name, nullptr};
            if (::posix_spawn(&spawned, name, nullptr, nullptr, words, nullptr) != 0) return 2;
            if (::waitpid(spawned, &status, 0) != spawned || status != 0) return 3;
            const ::pid_t shares = ::vfork();
            if (shares == 0) ::_exit(call(0, 5) == 5 ? 9 : 10);
            if (::waitpid(shares, &status, 0) != shares || status != 9 << 8) return 4;
        }
        return sum == 190 ? 5 : 6;
    });
    point::clauses session;
    const std::uint32_t entry = session.add({{}, argument_code(), 8}, {{}, argument_code(), 8});
    const auto source =
        source_for(session, place_of(0, tc::function_part::entry, work.process()), {entry});
    if (source == nullptr) return;
    source->attach(place_of(12, tc::function_part::exit, work.process()), {&entry, 1});
    const told found = all_of(*source, work, 5);
    BOOST_TEST(found.by_thread.size() == 1U);
    BOOST_TEST(source->counts(entry).ran == 20U);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_left_is_as_it_was_at_any_moment) {
    const unsigned times = trace_ring_test::repeats(80);
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    // Its threads work until they are stopped; then it reports whether everything was right.
    const worker work([&] {
        std::array<bool, 3> right{};
        std::vector<std::thread> all;
        volatile bool done = false;
        for (unsigned t = 0; t < right.size(); ++t) {
            all.emplace_back([&right, &done, t] {
                bool good = true;
                for (std::uint64_t i = 0; !done; ++i) {
                    const auto n = static_cast<unsigned>((i + t) % functions);
                    good = good && call(n, i % 4096) == (std::uint64_t{n} << 24) + i % 4096;
                }
                right[t] = good;
            });
        }
        char byte = 0;
        const bool told = ::read(ends[0], &byte, 1) == 1;
        done = true;
        for (auto& each : all) each.join();
        // No int3 is left.
        for (unsigned n = 0; n < functions; ++n) {
            if (*function(n) == std::byte{0xCC}) return 7;
        }
        return told && right[0] && right[1] && right[2] ? 5 : 6;
    });
    point::clauses session;
    const std::uint32_t entry = session.add({{}, argument_code(), 8}, {{}, argument_code(), 8});
    work.go();
    std::uint64_t hits = 0;
    for (unsigned i = 0; i < times; ++i) {
        const auto source =
            source_for(session, place_of(0, tc::function_part::entry, work.process()), {entry});
        if (source == nullptr) break;
        for (unsigned n = 1; n < functions; ++n) {
            source->attach(
                place_of(n, n % 2 == 0 ? tc::function_part::entry : tc::function_part::exit,
                         work.process()),
                {&entry, 1});
        }
        source->wait(static_cast<int>(i % 16));
        source->detach();
        hits += source->read([](const auto&, auto) {});
    }
    BOOST_TEST(hits > times);
    BOOST_REQUIRE(::write(ends[1], "", 1) == 1);
    int status = 0;
    BOOST_REQUIRE(::waitpid(work.process(), &status, 0) == work.process());
    BOOST_TEST(status == 5 << 8);
    ::close(ends[0]);
    ::close(ends[1]);
    trace_ring_test::proof("clauses", times, "detachments from a program of many threads");
}

BOOST_AUTO_TEST_CASE(what_may_not_be_traced_is_said_in_a_sentence) {
    point::clauses session;
    const std::uint32_t entry = session.add({{}, argument_code(), 8}, {{}, argument_code(), 8});
    tc::ptrace_source source(session, tc::ptrace_source::from::now);
    const auto refused = [&](::pid_t process) -> std::string {
        try {
            source.attach(place_of(0, tc::function_part::entry, process), {&entry, 1});
        } catch (const std::runtime_error& why) {
            return why.what();
        }
        return "";
    };
    BOOST_TEST(refused(-1).find("all processes can only be traced by the kernel's") == 0U);
    BOOST_TEST(refused(::getpid()).find("cannot be traced: ") != std::string::npos);
    BOOST_TEST(!source.wait(0));
}

namespace {

/// A stopped process that executes given code, with memory in the lower 2 GiB, which both modes
/// reach.
class stepped_process {
public:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t data_bytes = 4 * page;

    stepped_process() {
        const auto map = [](std::size_t bytes, int rights) {
            void* const made =
                ::mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
            if (made == MAP_FAILED) throw std::runtime_error("mmap");
            return reinterpret_cast<std::uintptr_t>(made);
        };
        code = map(page, PROT_READ | PROT_WRITE | PROT_EXEC);
        data = map(data_bytes, PROT_READ | PROT_WRITE);
        process = ::fork();
        if (process == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::raise(SIGSTOP);
            ::_exit(1);
        }
        int status = 0;
        ::waitpid(process, &status, 0);
        usable = WIFSTOPPED(status) && ::ptrace(PTRACE_GETREGS, process, nullptr, &begin) == 0;
    }
    stepped_process(const stepped_process&) = delete;
    stepped_process& operator=(const stepped_process&) = delete;
    ~stepped_process() {
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
        ::munmap(reinterpret_cast<void*>(code), page);
        ::munmap(reinterpret_cast<void*>(data), data_bytes);
    }
    /// False: a signal came of it.
    bool step(tc::thread_registers& registers) const {
        int status = 0;
        return ::ptrace(PTRACE_SETREGS, process, nullptr, &registers) == 0 &&
               ::ptrace(PTRACE_SINGLESTEP, process, nullptr, nullptr) == 0 &&
               ::waitpid(process, &status, 0) == process && WIFSTOPPED(status) &&
               WSTOPSIG(status) == SIGTRAP &&
               ::ptrace(PTRACE_GETREGS, process, nullptr, &registers) == 0;
    }

    std::uintptr_t code = 0;
    std::uintptr_t data = 0;
    ::pid_t process = -1;
    bool usable = false;
    tc::thread_registers begin{};
};
/// The process's memory, to which nothing is written yet.
struct watched_memory {
    ::pid_t process;
    std::uint64_t written_at = 0;
    std::vector<std::byte> written{};

    [[nodiscard]] bool read(std::uint64_t at, std::span<std::byte> into) const {
        return tc::read_memory(process, at, into);
    }
    [[nodiscard]] bool write(std::uint64_t at, std::span<const std::byte> from) {
        std::vector<std::byte> before(from.size());
        if (!read(at, before)) return false;
        written_at = at;
        written.assign(from.begin(), from.end());
        return true;
    }
    [[nodiscard]] static bool has_shadow_stack() { return false; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_done_by_hand_is_what_the_processor_does) {
    const stepped_process stepped;
    if (!stepped.usable) return;
    auto narrow = stepped.begin;
    narrow.rip = stepped.code + 64;
    narrow.cs = 0x23;
    narrow.ds = narrow.es = 0x2B;
    BOOST_REQUIRE(
        tc::write_memory(stepped.process, stepped.code + 64, std::array{std::byte{0x90}}));
    const bool steps_narrow = stepped.step(narrow) && narrow.rip == stepped.code + 65;
    if (!steps_narrow) trace_ring_test::cannot_run("this machine runs no 32-bit code in a process");
    std::mt19937_64 random(7);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    constexpr unsigned opcodes[] = {0x01, 0x03, 0x09, 0x0B, 0x11, 0x19, 0x21, 0x23, 0x29, 0x2B,
                                    0x31, 0x33, 0x39, 0x3B, 0x50, 0x54, 0x55, 0x58, 0x5C, 0x63,
                                    0x68, 0x6A, 0x70, 0x74, 0x75, 0x7C, 0x7F, 0x80, 0x81, 0x83,
                                    0x85, 0x89, 0x8B, 0x8D, 0x90, 0xB8, 0xC7, 0xE9, 0xEB, 0x00,
                                    0x66, 0xF3, 0xC3, 0xC2, 0xE8, 0xFF, 0x88};
    constexpr unsigned second_opcodes[] = {0x1E, 0x1F, 0x80, 0x84, 0x8D, 0xB6,
                                           0xB7, 0xBE, 0xBF, 0xAF, 0x05};
    const unsigned times = trace_ring_test::repeats(40'000);
    unsigned done = 0;
    for (unsigned i = 0; i < times; ++i) {
        const bool wide = below(2) == 0 || !steps_narrow;
        std::array<std::byte, 15> code{};
        for (auto& each : code) each = static_cast<std::byte>(random());
        std::size_t at = 0;
        if (wide && below(2) == 0) code[at++] = static_cast<std::byte>(0x40 + below(16));
        if (below(4) == 0) {
            code[at++] = std::byte{0x0F};
            code[at++] = static_cast<std::byte>(second_opcodes[below(std::size(second_opcodes))]);
        } else {
            code[at++] = static_cast<std::byte>(opcodes[below(std::size(opcodes))]);
        }
        // Short distances, so that memory is met; from the instruction too.
        if (below(2) == 0) {
            const std::int64_t to_data =
                static_cast<std::int64_t>(stepped.data) - static_cast<std::int64_t>(stepped.code);
            const bool relative = wide && (std::to_integer<unsigned>(code[at]) & 0xC7U) == 5;
            const auto distance = static_cast<std::int32_t>(static_cast<std::int64_t>(below(4096)) +
                                                            (relative ? to_data + 4096 : -2048));
            std::memcpy(&code[at + 1], &distance, 4);
        }
        auto registers = stepped.begin;
        for (auto* const each :
             {&registers.rax, &registers.rbx, &registers.rcx, &registers.rdx, &registers.rsi,
              &registers.rdi, &registers.rbp, &registers.r8, &registers.r9, &registers.r10,
              &registers.r11, &registers.r12, &registers.r13, &registers.r14, &registers.r15}) {
            const auto kind = below(4);
            *each = kind == 0 ? random() : kind == 1 ? below(4) : stepped.data + 4096 + below(4096);
            if (!wide) *each &= 0xFFFFFFFFU;
        }
        if (!wide) {
            for (auto* const each :
                 {&registers.r8, &registers.r9, &registers.r10, &registers.r11, &registers.r12,
                  &registers.r13, &registers.r14, &registers.r15})
                *each = 0;
        }
        registers.rsp = stepped.data + 8192 + below(256);
        registers.rip = stepped.code + 64;
        registers.orig_rax = ~0ULL;  // no system call continues
        registers.eflags = (registers.eflags & ~0x8D5ULL) | (random() & 0x8D5U);
        registers.cs = wide ? 0x33 : 0x23;
        registers.ds = registers.es = wide ? 0 : 0x2B;
        BOOST_REQUIRE(tc::write_memory(stepped.process, stepped.code + 64, code));

        watched_memory memory{stepped.process};
        auto by_hand = registers;
        if (!tc::execute_by_hand(code, by_hand, memory)) continue;
        ++done;
        std::string text = wide ? "64 bits:" : "32 bits:";
        for (const auto each : code) {
            constexpr char digits[] = "0123456789abcdef";
            const auto value = std::to_integer<unsigned>(each);
            text += {' ', digits[value >> 4], digits[value & 15U]};
        }
        auto by_processor = registers;
        BOOST_REQUIRE_MESSAGE(stepped.step(by_processor), text);
        // Of logical operations the processor leaves one flag as it likes.
        for (auto* const each : {&by_hand, &by_processor}) each->eflags &= 0x8C5;
        for (const auto& [what, of] : {std::pair{"rip", &tc::thread_registers::rip},
                                       {"rsp", &tc::thread_registers::rsp},
                                       {"rax", &tc::thread_registers::rax},
                                       {"rbx", &tc::thread_registers::rbx},
                                       {"rcx", &tc::thread_registers::rcx},
                                       {"rdx", &tc::thread_registers::rdx},
                                       {"rsi", &tc::thread_registers::rsi},
                                       {"rdi", &tc::thread_registers::rdi},
                                       {"rbp", &tc::thread_registers::rbp},
                                       {"r8", &tc::thread_registers::r8},
                                       {"r9", &tc::thread_registers::r9},
                                       {"r12", &tc::thread_registers::r12},
                                       {"r13", &tc::thread_registers::r13},
                                       {"r15", &tc::thread_registers::r15},
                                       {"flags", &tc::thread_registers::eflags}}) {
            BOOST_REQUIRE_MESSAGE(
                by_hand.*of == by_processor.*of,
                text << ", " << what << ": " << by_hand.*of << ", and it is " << by_processor.*of);
        }
        std::vector<std::byte> now(memory.written.size());
        BOOST_REQUIRE(now.empty() || memory.read(memory.written_at, now));
        BOOST_REQUIRE_MESSAGE(now == memory.written, text);
    }
    BOOST_TEST(done > times / 4);
    trace_ring_test::proof("clauses", done, "emulated instructions");
}

BOOST_AUTO_TEST_CASE(instructions_that_may_be_done_elsewhere_are_told_from_others) {
    using trace_ring::record::program_mode;
    const auto code = [](const std::vector<unsigned>& values) {
        std::array<std::byte, 15> bytes{};
        for (std::size_t i = 0; i < values.size(); ++i)
            bytes[i] = static_cast<std::byte>(values[i]);
        return bytes;
    };
    constexpr auto wide = program_mode::lp64;
    constexpr auto narrow = program_mode::ilp32;
    const auto movable = [&](const std::vector<unsigned>& values, program_mode mode) {
        return tc::is_movable(code(values), mode);
    };
    BOOST_TEST(movable({0x48, 0x83, 0xEC, 0x08}, wide));              // sub $8, %rsp
    BOOST_TEST(movable({0x48, 0x89, 0xFB}, wide));                    // mov %rdi, %rbx
    BOOST_TEST(movable({0x64, 0x48, 0x8B, 0x04, 0x25, 0x28}, wide));  // mov %fs:40, %rax
    BOOST_TEST(movable({0x0F, 0xB6, 0x07}, wide));                    // movzbl (%rdi), %eax
    BOOST_TEST(movable({0x40}, narrow));                              // inc %eax
    BOOST_TEST(movable({0x8B, 0x05}, narrow));                        // mov ADDRESS, %eax
    BOOST_TEST(!movable({0x8B, 0x05}, wide));                         // mov OFFSET(%rip), %eax
    BOOST_TEST(!movable({0x48, 0x8D, 0x05}, wide));                   // lea OFFSET(%rip), %rax
    BOOST_TEST(!movable({0x80, 0x3D}, wide));                         // cmpb $0, OFFSET(%rip)
    BOOST_TEST(movable({0xC3}, wide));                                // ret
    BOOST_TEST(movable({0xC2, 0x04, 0x00}, narrow));                  // ret $4
    for (const unsigned each : {0xE8U, 0xE9U, 0xEBU, 0x74U, 0xFFU, 0xE3U, 0xCDU, 0xCCU, 0xC4U,
                                0xC5U, 0x62U, 0x9AU, 0xF7U, 0x9CU, 0xCFU}) {
        BOOST_TEST(!movable({each}, wide), each);
        BOOST_TEST(!movable({each}, narrow), each);
    }
    BOOST_TEST(!movable({0x0F, 0x84}, wide));        // je
    BOOST_TEST(!movable({0x0F, 0x05}, wide));        // syscall
    BOOST_TEST(!movable({0xC7, 0xF8}, wide));        // xbegin
    BOOST_TEST(!movable({0x66, 0x48, 0xE8}, wide));  // call
    BOOST_TEST(!movable(std::vector<unsigned>(15, 0x66), wide));
}

BOOST_AUTO_TEST_SUITE_END()
