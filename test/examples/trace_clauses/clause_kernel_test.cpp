// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Clauses that the kernel runs: what it computes and reads is what the interpreter does, in this
// process and in programs of both modes together; what is lost is counted; what is traced is
// unharmed.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <trace_ring/point/clauses.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <examples/trace_clauses/narrow_code.hpp>
#include <point/random_code.hpp>
#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <trace_clauses/kernel/followed_processes.hpp>
#include <trace_clauses/kernel/kernel_source.hpp>

/// Where the test's own uprobe is. Twelve arguments: six of them on the stack.
extern "C" [[gnu::noinline]] std::uint64_t clause_kernel_target(std::uint64_t a, std::uint64_t b,
                                                                std::uint64_t c, std::uint64_t d,
                                                                std::uint64_t e, std::uint64_t f,
                                                                std::uint64_t g, std::uint64_t h,
                                                                std::uint64_t i, std::uint64_t j,
                                                                std::uint64_t k, std::uint64_t l) {
    asm volatile("");
    return a + b + c + d + e + f + g + h + i + j + k + l;
}

/// Calls itself to that depth, and then the one above.
extern "C" [[gnu::noinline]] std::uint64_t clause_kernel_deep(std::uint64_t depth) {
    std::uint64_t below = depth == 1 ? clause_kernel_target(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
                                     : clause_kernel_deep(depth - 1);
    asm volatile("" : "+r"(below));  // and so a call, and no loop
    return 1 + below;
}

// The calls are exactly as written here, for any frames that the compiler makes. The caller returns
// where it returns to.
asm(R"(
    .pushsection .text
    .globl clause_kernel_caller, clause_kernel_frameless, clause_kernel_framed
    .globl clause_kernel_in_frame, clause_kernel_behind_frameless, clause_kernel_behind_framed
clause_kernel_caller:
    push %rbp
    mov %rsp, %rbp
    call clause_kernel_frameless
clause_kernel_behind_frameless:
    call clause_kernel_framed
clause_kernel_behind_framed:
    mov 8(%rbp), %rax
    pop %rbp
    ret
clause_kernel_frameless:
    mov $1, %eax
    ret
clause_kernel_framed:
    push %rbp
    mov %rsp, %rbp
clause_kernel_in_frame:
    mov $2, %eax
    pop %rbp
    ret
    .popsection
)");
// A system call by the kernel's entry for 32-bit programs: its number and six arguments.
asm(R"(
    .pushsection .text
    .globl clause_kernel_narrow_call
clause_kernel_narrow_call:
    push %rbx
    push %rbp
    mov (%rdi), %eax
    mov 4(%rdi), %ebx
    mov 8(%rdi), %ecx
    mov 12(%rdi), %edx
    mov 16(%rdi), %esi
    mov 24(%rdi), %ebp
    mov 20(%rdi), %edi
    int $0x80
    pop %rbp
    pop %rbx
    ret
    .popsection
)");
extern "C" {
int clause_kernel_narrow_call(const std::uint32_t* number_and_arguments);
std::uint64_t clause_kernel_caller();
extern const std::byte clause_kernel_frameless[], clause_kernel_framed[], clause_kernel_in_frame[],
    clause_kernel_behind_frameless[], clause_kernel_behind_framed[];
}

BOOST_AUTO_TEST_SUITE(clauses_in_the_kernel)

namespace point = trace_ring::point;
namespace tc = trace_clauses;
using point::instruction;
using point::op;
using trace_ring::record::program_mode;

namespace {

/// The file, and the offset in it, of code of this process.
tc::attach_point place_of(const void* code, ::pid_t process) {
    const auto [file, offset] = clause_programs::place_in_file(code);
    return {file, offset, tc::function_part::entry, process};
}
/// Whether the kernel supports and permits all of it here; otherwise reports why not.
bool is_permitted() {
    static const bool found = [] {
        try {
            point::clauses session;
            const std::vector<instruction> nothing{{op::finish}};
            const std::uint32_t clause = session.add({{}, nothing, 0}, {{}, nothing, 0});
            tc::kernel_source source(session);
            source.attach(
                place_of(reinterpret_cast<const void*>(&clause_kernel_target), ::getpid()),
                {&clause, 1});
            return true;
        } catch (const std::runtime_error& why) {
            trace_ring_test::cannot_run(why.what());
            return false;
        }
    }();
    return found;
}
/// Nothing if it is not.
std::unique_ptr<tc::kernel_source> source_for(const point::clauses& session,
                                              std::size_t bytes = 4 << 20) {
    return is_permitted() ? std::make_unique<tc::kernel_source>(session, bytes) : nullptr;
}

/// This thread, and what it starts, on one processor: what is lost is counted on each.
class on_one_processor {
public:
    on_one_processor() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        ::cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
        ::sched_setaffinity(0, sizeof one, &one);
    }
    on_one_processor(const on_one_processor&) = delete;
    on_one_processor& operator=(const on_one_processor&) = delete;
    ~on_one_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

private:
    ::cpu_set_t before_{};
};

/// A page of memory alone between others that are not there, at an address of 31 bits.
class lonely_page {
public:
    lonely_page() {
        at_ = static_cast<std::byte*>(
            ::mmap(reinterpret_cast<void*>(0x20001000), 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
        BOOST_REQUIRE(at_ != MAP_FAILED);
    }
    lonely_page(const lonely_page&) = delete;
    lonely_page& operator=(const lonely_page&) = delete;
    ~lonely_page() { ::munmap(at_, 4096); }
    [[nodiscard]] std::byte* data() const noexcept { return at_; }

private:
    std::byte* at_;
};

/// What only the kernel knows is left out: times, how long a call took, and registers that
/// compilers use as they like. So is the address of the code, where there would be memory to read.
void make_knowable(std::vector<instruction>& code, program_mode mode) {
    constexpr std::uint8_t known_64[] = {1, 2, 4, 5, 8, 9};  // rdx rcx rsi rdi r8 r9
    // All but the stack's and the code's, and two that there are not.
    constexpr std::uint8_t known_32[] = {0, 1, 2, 3, 5, 6, 7, 9, 16};
    for (auto& one : code) {
        const auto word = static_cast<point::context_word>(one.what);
        if (one.code == op::context &&
            (word == point::context_word::time || word == point::context_word::address ||
             word == point::context_word::elapsed)) {
            one.what = static_cast<std::uint8_t>(point::context_word::process);
        }
        if (one.code == op::reg) {
            one.what = mode == program_mode::lp64 ? known_64[one.what % std::size(known_64)]
                                                  : known_32[one.what % std::size(known_32)];
        }
        if (one.code == op::store_stack) one = {op::skip, 0, 0, 0};
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernel_computes_and_reads_as_the_interpreter_does) {
    const lonely_page page;
    const bool runs_narrow = test::narrow_code::runs();
    const test::narrow_code narrow;
    const std::uint64_t base = reinterpret_cast<std::uintptr_t>(page.data());
    const std::uint64_t anchor = base + 4096 - 64;
    ::prctl(PR_SET_NAME, "a clause's");
    const on_one_processor here;
    const int processor = ::sched_getcpu();

    std::mt19937_64 random(28);
    std::uint64_t compared = 0;
    std::uint64_t faults = 0;
    std::array<std::uint64_t, 3> fates{};
    const unsigned batches = trace_ring_test::repeats(80);
    for (unsigned batch = 0; batch < batches; ++batch) {
        const auto mode = batch % 2 == 0 || !runs_narrow ? program_mode::lp64 : program_mode::ilp32;
        const bool is_wide = mode == program_mode::lp64;
        // A firing, as it will be.
        test::fake_firing at;
        at.base = base;
        for (unsigned i = 0; i < 4096; ++i) {
            const std::uint64_t byte = random();
            at.memory.push_back(static_cast<std::byte>(byte % 8 == 0 ? 0 : byte >> 8));
        }
        std::memcpy(page.data(), at.memory.data(), 4096);
        std::array<std::uint64_t, 12> arguments{};
        for (auto& each : arguments) each = random() % 2 == 0 ? anchor + random() % 72 : random();
        std::array<std::uint32_t, 12> narrow_arguments{};
        std::array<std::uint32_t, 8> narrow_registers{};
        if (is_wide) {
            for (const auto& [number, argument] :
                 {std::pair{5U, 0U}, {4U, 1U}, {1U, 2U}, {2U, 3U}, {8U, 4U}, {9U, 5U}}) {
                at.registers[number] = arguments[argument];
            }
        } else {
            for (unsigned n = 0; n < 12; ++n) {
                narrow_arguments[n] = static_cast<std::uint32_t>(arguments[n]);
                arguments[n] = narrow_arguments[n];
            }
            for (unsigned n = 0; n < 8; ++n) {
                narrow_registers[n] = static_cast<std::uint32_t>(
                    random() % 2 == 0 ? anchor + random() % 72 : random());
                at.registers[n] = narrow_registers[n];
            }
        }
        at.arguments.assign(arguments.begin(), arguments.end());
        using point::context_word;
        at.words = {{context_word::process, static_cast<std::uint64_t>(::getpid())},
                    {context_word::thread, static_cast<std::uint64_t>(::gettid())},
                    {context_word::user, static_cast<std::uint64_t>(::getuid())},
                    {context_word::processor, static_cast<std::uint64_t>(processor)},
                    {context_word::bits, is_wide ? 64 : 32},
                    {context_word::returned, 0}};
        std::uint64_t name[2] = {};
        std::memcpy(name, "a clause's", 10);
        at.words[context_word::command] = name[0];
        at.words[context_word::command_rest] = name[1];

        point::clauses session;
        std::vector<std::uint32_t> all;
        std::vector<test::random_code> codes;
        const std::vector<instruction> nothing{{op::finish}};
        while (all.size() < 40) {
            test::random_code made(random, anchor);
            make_knowable(made.code, mode);
            if (point::find_fault(made.code, made.as)) continue;
            const point::clause_code code =
                made.as.is_predicate ? point::clause_code{made.code, nothing, 0}
                                     : point::clause_code{{}, made.code, made.as.output_bytes};
            const point::clause_code other{{}, nothing, 0};
            all.push_back(is_wide ? session.add(code, other) : session.add(other, code));
            codes.push_back(std::move(made));
        }
        const auto source = source_for(session);
        if (source == nullptr) return;
        if (is_wide) {
            source->attach(
                place_of(reinterpret_cast<const void*>(&clause_kernel_target), ::getpid()), all);
            const auto& a = arguments;
            clause_kernel_target(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                 a[11]);
        } else {
            source->attach({narrow.file(), test::narrow_code::target_offset(),
                            tc::function_part::entry, ::getpid()},
                           all);
            narrow.run(narrow_registers, narrow_arguments);
        }
        source->detach();
        std::map<std::uint32_t, std::pair<std::uint32_t, std::vector<std::byte>>> handed_over;
        source->read([&](const tc::firing_record& of, std::span<const std::byte> output) {
            handed_over[of.clause] = {of.faults, {output.begin(), output.end()}};
        });
        for (const std::uint32_t clause : all) {
            const test::random_code& made = codes[clause];
            std::vector<std::byte> output(made.as.output_bytes);
            const auto done = point::run(made.code, at, output);
            const tc::clause_counts counts = source->counts(clause);
            BOOST_TEST_CONTEXT("batch " << batch << ", program " << clause) {
                if (made.as.is_predicate) {
                    const auto fate = done.faults != 0 ? 2U : done.value == 0 ? 1U : 0U;
                    ++fates[fate];
                    BOOST_REQUIRE(counts.ran == (fate == 0 ? 1U : 0U));
                    BOOST_REQUIRE(counts.not_wanted == (fate == 1 ? 1U : 0U));
                    BOOST_REQUIRE(counts.unreadable == (fate == 2 ? 1U : 0U));
                } else {
                    BOOST_REQUIRE(counts.ran == 1U);
                    const auto found = handed_over.find(clause);
                    BOOST_REQUIRE(found != handed_over.end());
                    BOOST_REQUIRE(found->second.first == done.faults);
                    found->second.second.resize(output.size());  // what is behind them is rounding
                    BOOST_REQUIRE((found->second.second == output));
                    faults += done.faults;
                }
            }
            ++compared;
        }
    }
    BOOST_TEST(faults > compared / 20);
    for (const std::uint64_t each : fates) BOOST_TEST(each > compared / 50);
    trace_ring_test::proof("clauses", compared, "programs run by the kernel and by an interpreter");
}

BOOST_AUTO_TEST_CASE(the_stacks_and_the_codes_registers_are_those_of_the_mode_that_fires) {
    if (!test::narrow_code::runs()) return;
    const test::narrow_code narrow;
    point::clauses session;
    std::vector<instruction> code;
    for (const std::uint8_t number : {std::uint8_t{4}, std::uint8_t{8}}) {
        code.push_back({op::reg, number});
        code.push_back({op::store, static_cast<std::uint8_t>(point::width::u64), 0, number * 2});
    }
    code.push_back({op::context, static_cast<std::uint8_t>(point::context_word::address)});
    code.push_back({op::store, static_cast<std::uint8_t>(point::width::u64), 0, 24});
    code.push_back({op::finish});
    const std::uint32_t clause = session.add({{}, {code.data() + 6, 1}, 0}, {{}, code, 32});
    const auto source = source_for(session);
    if (source == nullptr) return;
    source->attach(
        {narrow.file(), test::narrow_code::target_offset(), tc::function_part::inside, ::getpid()},
        {&clause, 1});
    narrow.run({}, {});
    const std::uint64_t target = test::narrow_code::address + test::narrow_code::target_offset();
    const std::size_t count =
        source->read([&](const tc::firing_record& of, std::span<const std::byte> output) {
            std::array<std::uint64_t, 4> words{};
            std::memcpy(words.data(), output.data(), output.size());
            BOOST_TEST(of.bits == 32U);
            BOOST_TEST(words[1] == test::narrow_code::stack);
            BOOST_TEST(words[2] == target);
            BOOST_TEST(words[3] == target);
        });
    BOOST_TEST(count == 1U);
}

BOOST_AUTO_TEST_CASE(code_of_the_greatest_length_with_many_branches_is_accepted_by_the_kernel) {
    const lonely_page page;
    const std::uint64_t base = reinterpret_cast<std::uintptr_t>(page.data());
    test::fake_firing at;
    at.base = base;
    std::mt19937_64 random(4);
    for (unsigned i = 0; i < 4096; ++i) {
        at.memory.push_back(static_cast<std::byte>(random() % 8 == 0 ? 0 : random()));
        page.data()[i] = at.memory.back();
    }
    const std::uint64_t arguments[6] = {base, random(), base + 4090, random(), 1, ~0ULL};
    at.arguments.assign(std::begin(arguments), std::end(arguments));
    // Each of these is a branch, and may meet what cannot be read.
    const auto long_code = [&random](bool is_predicate) {
        std::vector<instruction> code;
        const auto argument = [&](std::uint64_t n) {
            code.push_back({op::argument, static_cast<std::uint8_t>(n)});
        };
        if (is_predicate) code.push_back({op::constant, 0, 0, 1});
        for (std::int32_t n = 0; code.size() + 9 < point::most_instructions; ++n) {
            argument(random() % 6);
            code.push_back({op::constant, 0, 0, static_cast<std::int32_t>(random())});
            code.push_back({random() % 2 == 0 ? op::exceeds : op::exceeds_unsigned});
            code.push_back({op::skip_if_zero, 0, 0, is_predicate ? 3 : n % 8 == 0 ? 2 : 3});
            const bool readable = is_predicate || random() % 4 != 0;
            argument(readable ? 0 : random() % 6);
            if (n % 8 == 0 && !is_predicate) {
                code.push_back({op::store_text, 0, 16, n % 200 * 20});
                continue;
            }
            code.push_back({op::load, static_cast<std::uint8_t>(random() % 8), 0, n});
            code.push_back(is_predicate ? instruction{op::bit_or}
                                        : instruction{op::store, 3, 0, n % 200 * 20 + 8});
        }
        code.push_back({op::finish});
        return code;
    };
    for (unsigned n = 0; n < 4; ++n) {
        const auto predicate = long_code(true);
        const auto action = long_code(false);
        point::clauses session;
        const std::uint32_t clause =
            session.add({predicate, action, 4096}, {predicate, action, 4096});
        const auto source = source_for(session);
        if (source == nullptr) return;
        source->attach(place_of(reinterpret_cast<const void*>(&clause_kernel_target), ::getpid()),
                       {&clause, 1});
        const auto& a = arguments;
        clause_kernel_target(a[0], a[1], a[2], a[3], a[4], a[5], 0, 0, 0, 0, 0, 0);
        std::vector<std::byte> output(4096);
        const auto done = point::run(action, at, output);
        BOOST_TEST(point::run(predicate, at, {}).faults == 0U);
        const std::size_t count =
            source->read([&](const tc::firing_record& of, std::span<const std::byte> found) {
                BOOST_TEST(of.faults == done.faults);
                BOOST_TEST(std::equal(found.begin(), found.end(), output.begin(), output.end()));
            });
        BOOST_TEST(count == 1U);
    }
}

BOOST_AUTO_TEST_CASE(return_addresses_begin_with_who_called_wherever_it_fires) {
    point::clauses session;
    const std::vector<instruction> stack{{op::store_stack, 0, 24}, {op::finish}};
    std::vector<std::uint32_t> clauses;
    for (unsigned n = 0; n < 5; ++n)
        clauses.push_back(session.add({{}, stack, 24}, {{}, stack, 24}));
    const auto source = source_for(session);
    if (source == nullptr) return;
    using part = tc::function_part;
    const std::pair<const std::byte*, part> places[] = {{clause_kernel_frameless, part::entry},
                                                        {clause_kernel_frameless, part::exit},
                                                        {clause_kernel_framed, part::entry},
                                                        {clause_kernel_in_frame, part::inside},
                                                        {clause_kernel_framed, part::exit}};
    for (unsigned n = 0; n < 5; ++n) {
        tc::attach_point at = place_of(places[n].first, ::getpid());
        at.part = places[n].second;
        source->attach(at, {&clauses[n], 1});
    }
    const std::uint64_t returns_to = clause_kernel_caller();
    std::vector<std::array<std::uint64_t, 2>> found(5);
    source->read([&](const tc::firing_record& of, std::span<const std::byte> output) {
        std::memcpy(&found.at(of.clause), output.data(), 16);
    });
    for (unsigned n = 0; n < 5; ++n) {
        const std::byte* const caller =
            n < 2 ? clause_kernel_behind_frameless : clause_kernel_behind_framed;
        BOOST_TEST_CONTEXT("place " << n) {
            BOOST_TEST(found[n][0] == reinterpret_cast<std::uintptr_t>(caller));
            BOOST_TEST(found[n][1] == returns_to);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_point_of_all_processes_fires_on_each_processor) {
    point::clauses session;
    const std::vector<instruction> nothing{{op::finish}};
    const std::uint32_t clause = session.add({{}, nothing, 0}, {{}, nothing, 0});
    const auto source = source_for(session);
    if (source == nullptr) return;
    source->attach(place_of(reinterpret_cast<const void*>(&clause_kernel_target), -1),
                   {&clause, 1});
    ::cpu_set_t before;
    BOOST_REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    std::vector<std::uint32_t> fired;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &before)) continue;
        ::cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (::sched_setaffinity(0, sizeof one, &one) != 0) continue;
        clause_kernel_target(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        fired.push_back(cpu);
    }
    ::sched_setaffinity(0, sizeof before, &before);
    std::vector<std::uint32_t> told;
    source->read([&](const tc::firing_record& of, auto) { told.push_back(of.cpu); });
    BOOST_TEST(told == fired, boost::test_tools::per_element());
}

// --- Programs of both modes ---

namespace {

/// A copy of a program that no other test runs: its points are those of all processes.
std::string own_copy(const std::string& program) {
    static const test::folder folder;
    const std::string copy = folder / std::filesystem::path(program).filename().string();
    if (!std::filesystem::exists(copy)) std::filesystem::copy_file(program, copy);
    return copy;
}
/// What a command prints.
std::string printed(const std::string& command) {
    std::string all;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    char part[4096];
    while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) all.append(part, got);
    BOOST_REQUIRE(::pclose(pipe) == 0);
    return all;
}
constexpr auto width_of(unsigned bytes, bool is_signed) {
    const unsigned size = bytes == 1 ? 0U : bytes == 2 ? 1U : bytes == 4 ? 2U : 3U;
    return static_cast<std::uint8_t>(size + (is_signed ? 4U : 0U));
}

/// Reads handle's arguments: the number at `offset` of its structure, into the output.
void capture(std::vector<instruction>& code, std::int32_t offset, std::uint8_t width,
             std::int32_t at) {
    code.push_back({op::argument, 0});
    code.push_back({op::load, width, 0, offset});
    code.push_back({op::store, static_cast<std::uint8_t>(point::width::u64), 0, at});
}
/// id, in[1].a, in[1].b, wide, the word of the bit-fields, n; then the name.
std::vector<instruction> captures(bool wide) {
    std::vector<instruction> code;
    const unsigned long_bytes = wide ? 8 : 4;
    capture(code, 0, width_of(4, true), 0);
    capture(code, wide ? 32 : 16, width_of(long_bytes, true), 8);
    capture(code, wide ? 40 : 20, width_of(2, true), 16);
    capture(code, wide ? 48 : 24, width_of(8, false), 24);
    capture(code, wide ? 56 : 32, width_of(1, false), 32);
    code.push_back({op::argument, 1});
    code.push_back({op::narrow, width_of(long_bytes, true)});
    code.push_back({op::store, static_cast<std::uint8_t>(point::width::u64), 0, 40});
    code.push_back({op::argument, 0});
    code.push_back({op::load, width_of(long_bytes, false), 0, wide ? 8 : 4});
    code.push_back({op::store_text, 0, 14, 48});
    code.push_back({op::finish});
    return code;
}
std::vector<instruction> returned(bool wide) {
    return {{op::context, static_cast<std::uint8_t>(point::context_word::returned)},
            {op::narrow, width_of(wide ? 8 : 4, true)},
            {op::store, static_cast<std::uint8_t>(point::width::u64)},
            {op::finish}};
}
std::int64_t number(std::span<const std::byte> output, std::size_t at) {
    std::int64_t value = 0;
    std::memcpy(&value, output.subspan(at, 8).data(), 8);
    return value;
}

}  // namespace

BOOST_AUTO_TEST_CASE(programs_of_both_modes_are_traced_at_once_as_they_are_at_each_call) {
    if (!clause_programs::runs(32)) return;
    point::clauses session;
    const std::uint32_t entry = session.add({{}, captures(true), 64}, {{}, captures(false), 64});
    const std::uint32_t exit = session.add({{}, returned(true), 8}, {{}, returned(false), 8});
    const auto source = source_for(session, std::size_t{16} << 20);
    if (source == nullptr) return;
    const std::string programs[] = {own_copy(CLAUSE_KNOWN_64), own_copy(CLAUSE_KNOWN_32)};
    for (const auto& program : programs) {
        const std::uint64_t offset = std::stoull(printed(program));
        source->attach({program, offset, tc::function_part::entry}, {&entry, 1});
        source->attach({program, offset, tc::function_part::exit}, {&exit, 1});
    }
    // Both run at the same time.
    constexpr unsigned count = 10'000;
    const std::string each = " " + std::to_string(count);
    const test::folder folder;
    const std::string out = folder / "32";
    const std::string out_64 =
        printed(programs[1] + each + " > " + out + " & " + programs[0] + each + "; wait $!");
    const std::string out_32 = printed("cat " + out);
    source->detach();
    std::map<std::uint32_t, std::string> told;  // by mode
    std::map<std::uint32_t, std::uint64_t> lost;
    source->read([&](const tc::firing_record& of, std::span<const std::byte> output) {
        BOOST_REQUIRE(of.faults == 0U);
        lost[of.cpu] = of.dropped;
        std::string& all = told[of.bits];
        if (of.clause == exit) {
            all += " " + std::to_string(number(output, 0)) + "\n";
            return;
        }
        const auto bits = static_cast<unsigned>(number(output, 32));
        std::uint16_t length = 0;
        std::memcpy(&length, output.subspan(48, 2).data(), 2);
        const std::string name(reinterpret_cast<const char*>(output.subspan(50, length).data()),
                               length);
        all += std::to_string(number(output, 0)) + " " + name + " " +
               std::to_string(number(output, 8)) + " " + std::to_string(number(output, 16)) + " " +
               std::to_string(static_cast<std::uint64_t>(number(output, 24))) + " " +
               std::to_string(bits & 7U) + " " +
               std::to_string(static_cast<std::int8_t>(bits) >> 3) + " " +
               std::to_string(number(output, 40));
    });
    BOOST_TEST(source->counts(entry).ran == 2 * count);
    BOOST_TEST(source->counts(exit).ran == 2 * count);
    BOOST_TEST(source->counts(entry).dropped == 0U);
    BOOST_TEST((told[64] == out_64));
    BOOST_TEST((told[32] == out_32));
    trace_ring_test::proof("clauses", 4 * count, "firings of programs of both modes");
}

BOOST_AUTO_TEST_CASE(a_system_call_is_of_the_mode_by_which_it_came_whoever_made_it) {
    if (!clause_programs::runs(32)) return;  // and so maybe the kernel
    // copy_file_range: of files that are not open it looks at no other argument.
    constexpr std::uint64_t number_64 = 326;
    constexpr std::uint64_t number_32 = 377;
    std::vector<instruction> code;
    const auto store = [&](std::int32_t at) {
        code.push_back({op::store, static_cast<std::uint8_t>(point::width::u64), 0, at});
    };
    for (std::uint8_t n = 0; n < 6; ++n) {
        code.push_back({op::argument, n});
        store(8 * n);
    }
    code.push_back({op::context, static_cast<std::uint8_t>(point::context_word::returned)});
    store(48);
    code.push_back({op::argument, 6});  // there is none
    store(56);
    code.push_back({op::finish});
    point::clauses session;
    const std::uint32_t entry = session.add({{}, code, 64}, {{}, code, 64});
    const std::uint32_t exit = session.add({{}, code, 64}, {{}, code, 64});
    const auto source = source_for(session);
    if (source == nullptr) return;
    using part = tc::function_part;
    for (const auto& [clause, at] :
         {std::pair{entry, part::system_call}, {exit, part::system_call_exit}}) {
        for (const auto& [mode, number] :
             {std::pair{program_mode::lp64, number_64}, {program_mode::ilp32, number_32}}) {
            source->attach({.offset = number, .part = at, .process = ::getpid(), .mode = mode},
                           {&clause, 1});
        }
    }
    constexpr std::uint64_t high = 0x4000000000;
    const std::uint32_t narrow[] = {number_32, ~0U, 12, 13, 14, 15, 0x80000016};
    const std::uint32_t other[] = {number_64, ~0U, 12, 13, 14, 15, 16};
    BOOST_TEST(::syscall(number_64, -1L, high + 2, 13, 14, high + 5, high + 6) == -1);
    BOOST_TEST(clause_kernel_narrow_call(narrow) == -EBADF);
    // Their numbers in the other's table: other calls, which are not requested.
    static_cast<void>(clause_kernel_narrow_call(other));
    static_cast<void>(::syscall(number_32, -1L, 12, 13, 14, 15, 16));
    source->detach();
    BOOST_TEST(::syscall(number_64, -1L, 12, 13, 14, 15, 16) == -1);
    const auto returned = static_cast<std::uint64_t>(std::int64_t{-EBADF});
    const std::array<std::uint64_t, 8> wide_words{~0ULL, high + 2, 13, 14, high + 5, high + 6, 0};
    const std::array<std::uint64_t, 8> narrow_words{~0U, 12, 13, 14, 15, 0x80000016, 0};
    std::size_t told = 0;
    source->read([&](const tc::firing_record& of, std::span<const std::byte> output) {
        std::array<std::uint64_t, 8> words{};
        std::memcpy(words.data(), output.data(), sizeof words);
        auto right = told < 2 ? wide_words : narrow_words;
        if (of.clause == exit) right[6] = told < 2 ? returned : static_cast<std::uint32_t>(-EBADF);
        BOOST_TEST(of.clause == (told % 2 == 0 ? entry : exit));
        BOOST_TEST(of.bits == (told < 2 ? 64U : 32U));
        BOOST_TEST(of.faults == 1U);
        BOOST_TEST(words == right, boost::test_tools::per_element());
        ++told;
    });
    BOOST_TEST(told == 4U);
    for (const std::uint32_t each : {entry, exit}) BOOST_TEST(source->counts(each).ran == 2U);
}

BOOST_AUTO_TEST_CASE(returns_that_the_kernel_does_not_see_are_counted_where_they_are) {
    point::clauses session;
    const std::vector<instruction> nothing{{op::finish}};
    std::array<std::uint32_t, 3> clauses{};
    for (auto& each : clauses) each = session.add({{}, nothing, 0}, {{}, nothing, 0});
    const auto [deep, deep_exit, other_exit] = clauses;
    const auto source = source_for(session);
    if (source == nullptr) return;
    const auto attach = [&](const void* code, tc::function_part part, std::uint32_t clause) {
        tc::attach_point at = place_of(code, ::getpid());
        at.part = part;
        source->attach(at, {&clause, 1});
    };
    const auto* const target = reinterpret_cast<const void*>(&clause_kernel_deep);
    attach(target, tc::function_part::entry, deep);
    attach(target, tc::function_part::exit, deep_exit);
    attach(reinterpret_cast<const void*>(&clause_kernel_target), tc::function_part::exit,
           other_exit);
    const on_one_processor here;
    for (const unsigned depth : {1U, 64U, 65U, 200U, 200U, 3U})
        BOOST_TEST(clause_kernel_deep(depth) == depth);
    const tc::clause_counts counts = source->counts(deep_exit);
    BOOST_TEST(source->counts(deep).ran == 1U + 64 + 65 + 200 + 200 + 3);
    BOOST_TEST(source->counts(deep).unseen == 0U);
    BOOST_TEST(counts.ran == 1U + 64 + 64 + 64 + 64 + 3);
    BOOST_TEST(counts.unseen == 1U + 136 + 136);
    BOOST_TEST(counts.dropped == 0U);
    // In the innermost call 64 returns are awaited, and another function's is no more.
    BOOST_TEST(source->counts(other_exit).ran == 2U);
    BOOST_TEST(source->counts(other_exit).unseen == 4U);
    std::vector<std::uint64_t> lost;
    source->read([&](const tc::firing_record& of, auto) {
        if (lost.empty() || lost.back() != of.dropped) lost.push_back(of.dropped);
    });
    BOOST_TEST(lost.back() == 1U + 136 + 136 + 4);
    BOOST_TEST(lost.size() > 200U);
}

BOOST_AUTO_TEST_CASE(what_a_process_forks_is_followed_until_its_last_thread_ends) {
    if (!is_permitted()) return;
    tc::followed_processes family;
    std::array<int, 2> told{}, asked{};
    BOOST_REQUIRE(::pipe2(told.data(), O_CLOEXEC) == 0);
    BOOST_REQUIRE(::pipe2(asked.data(), O_CLOEXEC) == 0);
    // Its first thread ends; another one forks then, and ends on request.
    const auto child_of = [&] {
        const ::pid_t child = ::fork();
        if (child != 0) return child;
        static std::array<int, 2> ends;
        ends = {told[1], asked[0]};
        ::pthread_t other{};
        const auto go_on = [](void*) -> void* {
            ::usleep(100'000);
            const ::pid_t grandchild = ::fork();
            if (grandchild == 0) ::_exit(::pause());
            static_cast<void>(!::write(ends[0], &grandchild, sizeof grandchild));
            char byte = 0;
            static_cast<void>(!::read(ends[1], &byte, 1));
            ::_exit(0);
        };
        ::pthread_create(&other, nullptr, go_on, nullptr);
        ::syscall(SYS_exit, 0);  // this thread alone
        ::_exit(1);
    };
    for (const bool is_followed : {false, true}) {
        if (is_followed) family.add(::getpid());
        const ::pid_t child = child_of();
        BOOST_TEST(family.has(child) == is_followed);
        ::pid_t grandchild = -1;
        BOOST_REQUIRE(::read(told[0], &grandchild, sizeof grandchild) == sizeof grandchild);
        BOOST_TEST(family.has(child) == is_followed);
        BOOST_TEST(family.has(grandchild) == is_followed);
        BOOST_REQUIRE(::write(asked[1], "", 1) == 1);
        int status = -1;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_TEST(status == 0);
        BOOST_TEST(!family.has(child));
        BOOST_TEST(family.has(grandchild) == is_followed);  // which is nobody's child now
        ::kill(grandchild, SIGKILL);
        for (int tries = 0; tries < 1000 && ::kill(grandchild, 0) == 0; ++tries) ::usleep(10'000);
        BOOST_TEST(!family.has(grandchild));
    }
    for (const int each : {told[0], told[1], asked[0], asked[1]}) ::close(each);
    BOOST_TEST(family.has(::getpid()));
}

BOOST_AUTO_TEST_CASE(who_waits_is_woken_when_an_eighth_of_the_ring_is_full) {
    point::clauses session;
    const std::vector<instruction> nothing{{op::finish}};
    const std::uint32_t clause = session.add({{}, nothing, 0}, {{}, nothing, 0});
    const auto source = source_for(session, std::size_t{64} << 10);
    if (source == nullptr) return;
    source->attach(place_of(reinterpret_cast<const void*>(&clause_kernel_target), ::getpid()),
                   {&clause, 1});
    BOOST_TEST(!source->wait(0));
    constexpr int limit = 60'000;
    const auto begin = std::chrono::steady_clock::now();
    bool woken = false;
    std::thread waiter([&] { woken = source->wait(limit); });
    ::usleep(50'000);
    // Of 64 bytes each, with the ring's own 8: 8 KiB, and some more.
    for (unsigned n = 0; n < 200; ++n) clause_kernel_target(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    waiter.join();
    BOOST_TEST(woken);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(limit / 2)));
    BOOST_TEST(source->read([](const auto&, auto) {}) == 200U);
}

BOOST_AUTO_TEST_CASE(what_a_full_ring_does_not_take_is_counted) {
    point::clauses session;
    const std::uint32_t entry = session.add({{}, captures(true), 64}, {{}, captures(false), 64});
    const auto source = source_for(session, std::size_t{64} << 10);
    if (source == nullptr) return;
    const on_one_processor here;
    const std::string program = own_copy(CLAUSE_KNOWN_64);
    source->attach({program, std::stoull(printed(program)), tc::function_part::entry}, {&entry, 1});
    static_cast<void>(printed(program + " -5000"));
    std::uint64_t taken =
        source->read([](const tc::firing_record& of, auto) { BOOST_TEST(of.dropped == 0U); });
    const tc::clause_counts first = source->counts(entry);
    BOOST_TEST(first.ran == taken);
    BOOST_TEST(first.dropped > 0U);
    BOOST_TEST(first.ran + first.dropped == 5000U);
    // The next records say that some were lost before them.
    static_cast<void>(printed(program + " -10"));
    std::map<std::uint32_t, std::uint64_t> lost;
    taken += source->read([&](const tc::firing_record& of, auto) { lost[of.cpu] = of.dropped; });
    BOOST_TEST(taken + source->counts(entry).dropped == 5010U);
    std::uint64_t sum = 0;
    for (const auto& [cpu, count] : lost) sum += count;
    BOOST_TEST(sum > 0U);
    BOOST_TEST(sum <= first.dropped);
}

BOOST_AUTO_TEST_CASE(a_program_is_unharmed_when_its_tracer_is_killed) {
    point::clauses session;
    const std::uint32_t entry = session.add({{}, captures(true), 64}, {{}, captures(false), 64});
    if (source_for(session) == nullptr) return;
    const std::string program = own_copy(CLAUSE_KNOWN_64);
    const std::uint64_t offset = std::stoull(printed(program));
    constexpr const char* count = "-20000";
    constexpr std::uint64_t write = 1;
    constexpr auto call = tc::function_part::system_call;
    const std::string right = printed(program + " " + count);
    std::mt19937_64 random(1);
    const unsigned kills = trace_ring_test::repeats(200);
    unsigned attached = 0;
    for (unsigned n = 0; n < kills; ++n) {
        std::FILE* const traced = ::popen((program + " " + count).c_str(), "r");
        BOOST_REQUIRE(traced != nullptr);
        const ::pid_t tracer = ::fork();
        if (tracer == 0) {
            try {
                tc::kernel_source source(session);
                source.attach({program, offset, tc::function_part::entry}, {&entry, 1});
                source.attach({program, offset, tc::function_part::exit}, {&entry, 1});
                source.follow_children(::getppid());
                source.attach({.offset = write, .part = call}, {&entry, 1});
                while (true) source.read([](const auto&, auto) {});
            } catch (const std::exception&) {
                ::_exit(1);
            }
        }
        ::usleep(static_cast<unsigned>(random() % 60'000));
        ::kill(tracer, SIGKILL);
        int status = 0;
        BOOST_REQUIRE(::waitpid(tracer, &status, 0) == tracer);
        attached += WIFSIGNALED(status) ? 1 : 0;
        char line[64] = {};
        BOOST_TEST(std::fgets(line, sizeof line, traced) != nullptr);
        BOOST_TEST(line == right);
        BOOST_TEST(::pclose(traced) == 0);
    }
    BOOST_TEST(attached == kills);  // none ended by itself
    trace_ring_test::proof("clauses", kills, "kills of a tracer");
}

BOOST_AUTO_TEST_CASE(without_permission_it_says_what_is_missing) {
    if (::geteuid() != 0 || !is_permitted()) return;
    const int status = test::in_child([]() -> int {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) return test::skipped;
        point::clauses session;
        try {
            const tc::kernel_source source(session);
        } catch (const std::runtime_error& why) {
            const std::string said = why.what();
            return said.find("CAP_BPF") != std::string::npos && said.find('\n') == std::string::npos
                       ? 0
                       : 1;
        }
        return 2;
    });
    TRACE_RING_TEST_SKIP_IF(status, "one cannot become another user here");
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(what_is_no_place_for_a_point_is_told_with_its_file) {
    point::clauses session;
    const std::uint32_t entry = session.add({{}, captures(true), 64}, {{}, captures(false), 64});
    const auto source = source_for(session);
    if (source == nullptr) return;
    const auto said = [&](const tc::attach_point& at) {
        try {
            source->attach(at, {&entry, 1});
        } catch (const std::runtime_error& why) {
            return std::string(why.what());
        }
        return std::string();
    };
    BOOST_TEST(said({"/nowhere/program", 64}) ==
               "/nowhere/program, offset 64: cannot set a uprobe: No such file or directory");
    BOOST_TEST(said({"/proc/self/status", 64}).find("/proc/self/status, offset 64: ") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
