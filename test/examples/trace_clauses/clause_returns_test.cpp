// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Where functions return, next to what objdump shows; and code of which that is not known.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <trace_clauses/points/debug_information.hpp>
#include <trace_clauses/points/program_file.hpp>
#include <trace_clauses/points/return_places.hpp>
#include <trace_clauses/points/unwind_rules.hpp>

namespace clause_returns {

using namespace clause_programs;
using namespace trace_clauses;

namespace {

/// The addresses of all instructions that objdump calls ret.
std::set<std::uint64_t> said_by_objdump(const std::string& path) {
    std::set<std::uint64_t> all;
    for (const auto& line : words_of("objdump -d --no-show-raw-insn " + path)) {
        const bool returns =
            line.size() > 1 && std::any_of(line.begin() + 1, line.end(), [](const auto& word) {
                return word == "ret" || word == "retw" || word == "retq" || word == "retl";
            });
        if (returns && line[0].back() == ':') all.insert(std::stoull(line[0], nullptr, 16));
    }
    return all;
}

/// A program, and where its functions return.
struct opened {
    explicit opened(const std::string& path)
        : program(path),
          debug(program),
          rules(debug.file(), debug.handle()),
          places(program, debug.file(), rules) {}

    [[nodiscard]] return_places::result of(const std::string& name) {
        const auto found = program.functions(name);
        BOOST_REQUIRE_MESSAGE(found.size() == 1, name);
        return places.of(*found.front().function);
    }
    [[nodiscard]] std::string doubt_of(const std::string& name) {
        const auto found = of(name);
        return found.doubt == nullptr ? "" : found.doubt;
    }

    program_file program;
    debug_information debug;
    unwind_rules rules;
    return_places places;
};

constexpr const char* in_assembler = R"(
.text
.macro function name
.globl \name
.type \name, @function
\name:
.endm
.macro finished name
.size \name, .-\name
.endm
function plain
    test %edi, %edi
    je 1f
    ret
1:  rep ret
finished plain
function takes
    ret $8
finished takes
function tail
    test %edi, %edi
    je 1f
    ret
1:  jmp plain
finished tail
function conditional_tail
    test %edi, %edi
    je plain
    ret
finished conditional_tail
function by_pointer
    test %edi, %edi
    je 1f
    ret
1:  jmp *%rdx
finished by_pointer
function table_of_functions
    jmp *pointers(,%rdi,8)
finished table_of_functions
function loops
    dec %edi
    jne loops
    ret
finished loops
function entered
    inc %edi
middle:
    ret
finished entered
function enters
    jmp middle
finished enters
function pushes
    push %rdi
    ret
finished pushes
function thunk
    call 1f
2:  pause
    jmp 2b
1:  mov %rdi, (%rsp)
    ret
finished thunk
function asks_where
    call 1f
1:  pop %rax
    ret
finished asks_where
function falls
    nop
    inc %edi
finished falls
function behind
    ret
finished behind
function with_data
    jmp 1f
    .byte 0x0f, 0xff, 0x06, 0x06
1:  ret
finished with_data
function into_an_instruction
    jmp 1f+1
1:  mov $0xc3c3c3c3, %eax
    ret
finished into_an_instruction
function single_thread
    je 1f
    lock
1:  decl (%rdi)
    ret
finished single_thread
function never
    ud2
finished never
function calls_last
    call never
finished calls_last
.globl no_size
.type no_size, @function
no_size: ret
.balign 16
function split
    test %edi, %edi
    je split.cold
1:  ret
finished split
.type split.cold, @function
split.cold: inc %edi
    jne 1b
    mov $7, %eax
    ret
.size split.cold, .-split.cold
function main
    xor %eax, %eax
    ret
finished main
.data
pointers: .8byte plain, tail
.section .note.GNU-stack,"",@progbits
)";

constexpr const char* with_switches = R"(
extern "C" __attribute__((noinline)) long leaf(long n) { asm volatile(""); return n; }
extern "C" __attribute__((noinline)) long chooses(int which, long n) {
    switch (which) {
        case 0: return leaf(n + 1) + 1;
        case 1: return leaf(n * 3) + 2;
        case 2: return n ^ 5;
        case 3: return leaf(n) * 7;
        case 4: return n - 9;
        case 5: return leaf(n >> 2) + 9;
        case 6: return 44 + leaf(1);
    }
    return n;
}
extern "C" __attribute__((noinline)) long runs(const unsigned char *code, long n) {
    for (;; ++code) {
        switch (*code) {
            case 0: n = leaf(n + 1); break;
            case 1: n = leaf(n * 3); break;
            case 2: n ^= 5; break;
            case 3: n = leaf(n) * 7; break;
            case 4: if (n > 100) return n; n -= 9; break;
            case 5: return leaf(n >> 2) + 9;
            case 6: n += 44; break;
        }
    }
}
int main(int argc, char **) { static const unsigned char code[] = {0, 6, 5};
    return (int)(chooses(argc, 3) + runs(code, argc)) & 1; }
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(clause_returns_test)

BOOST_AUTO_TEST_CASE(functions_return_where_objdump_shows_a_return) {
    std::size_t functions = 0;
    for (const std::string path : {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib32/libc.so.6",
                                   "/lib/x86_64-linux-gnu/libm.so.6"}) {
        if (!std::filesystem::exists(path)) continue;
        opened file(path);
        const std::set<std::uint64_t> all = said_by_objdump(path);
        std::size_t known = 0, doubted = 0;
        for (const program_function& each : file.program.functions()) {
            const auto found = file.places.of(each);
            if (found.doubt != nullptr) {
                ++doubted;
                continue;
            }
            ++known;
            std::set<std::uint64_t> offsets(found.offsets.begin(), found.offsets.end());
            BOOST_REQUIRE(offsets.size() == found.offsets.size());
            // Those in the function itself; a part of it may have more.
            for (auto at = all.lower_bound(each.address);
                 at != all.end() && *at < each.address + each.size; ++at) {
                const auto offset = file.debug.file().offset_of(*at, true);
                BOOST_REQUIRE_MESSAGE(offset && offsets.erase(*offset) == 1,
                                      path << " " << each.names.front() << " at " << *at);
            }
            for (const std::uint64_t more : offsets) {
                const bool shown = std::any_of(all.begin(), all.end(), [&](std::uint64_t at) {
                    return file.debug.file().offset_of(at, true) == more;
                });
                BOOST_REQUIRE_MESSAGE(shown, path << " " << each.names.front());
            }
        }
        BOOST_TEST(known > 2 * doubted, path << ": " << known << ", " << doubted << " in doubt");
        functions += known;
    }
    trace_ring_test::proof("clauses", functions, "functions whose returns objdump shows");
}

BOOST_AUTO_TEST_CASE(code_that_may_leave_at_other_places_is_doubted) {
    const test::folder folder;
    const std::string path = folder / "assembled";
    if (!build(path, in_assembler, "assembler", 64, "-no-pie")) return;
    opened file(path);
    const std::map<std::string, std::string> doubts{
        {"tail", "it ends in a jump to another function (a tail call)"},
        {"conditional_tail", "it ends in a jump to another function (a tail call)"},
        {"by_pointer", "it has jumps whose targets are not known"},
        {"table_of_functions", "it has jumps whose targets are not known"},
        {"entered", "other functions jump into it"},
        {"pushes", "it changes the address that it returns to"},
        {"thunk", "it changes the address that it returns to"},
        {"falls", "it ends in a jump to another function (a tail call)"},
        {"with_data", "its code cannot be decoded to its end"},
        {"into_an_instruction", "its code cannot be decoded to its end"},
        {"no_size", "its code cannot be decoded to its end"}};
    for (const auto& [name, why] : doubts) BOOST_TEST(file.doubt_of(name) == why, name);
    for (const char* const name : {"tail", "conditional_tail", "by_pointer", "table_of_functions"})
        BOOST_TEST(file.of(name).jumps.size() == 1U, name);
    const std::map<std::string, std::size_t> places{
        {"plain", 2}, {"takes", 1}, {"asks_where", 1}, {"behind", 1}, {"single_thread", 1},
        {"loops", 1}, {"never", 0}, {"calls_last", 0}, {"split", 2},  {"main", 1}};
    for (const auto& [name, count] : places) {
        const auto found = file.of(name);
        BOOST_TEST(found.doubt == nullptr, name << ": " << (found.doubt ? found.doubt : ""));
        BOOST_TEST(found.offsets.size() == count, name);
        BOOST_TEST(found.repeats_entry == (name == "loops"), name);
    }
}

BOOST_AUTO_TEST_CASE(the_tables_of_switches_lead_into_the_function) {
    const test::folder folder;
    unsigned known = 0;
    for (const std::string compiler : {"g++", "clang++"}) {
        if (std::system((compiler + " --version > /dev/null 2>&1").c_str()) != 0) continue;
        for (const std::string bits : {"64", "32"}) {
            for (const std::string how : {"-O0", "-O1", "-O2", "-O3", "-Os"}) {
                for (const std::string where : {"-fPIE -pie", "-fno-pie -no-pie"}) {
                    const std::string path = folder / "switches";
                    write(path + ".cpp", with_switches);
                    const std::string command = compiler + " -m" + bits + " " + how + " " + where +
                                                " " + path + ".cpp -o " + path +
                                                " > /dev/null 2>&1";
                    if (std::system(command.c_str()) != 0) continue;
                    opened file(path);
                    for (const std::string name : {"chooses", "runs"}) {
                        const auto found = file.of(name);
                        BOOST_TEST(found.doubt == nullptr, command
                                                               << " " << name << ": "
                                                               << (found.doubt ? found.doubt : ""));
                        if (found.doubt != nullptr) continue;
                        ++known;
                        // Each is also shown by objdump.
                        const auto all = said_by_objdump(path);
                        const auto* const function = file.program.functions(name).front().function;
                        const auto count = static_cast<std::size_t>(
                            std::distance(all.lower_bound(function->address),
                                          all.lower_bound(function->address + function->size)));
                        BOOST_TEST(found.offsets.size() >= count, command);
                        BOOST_TEST(count > 0U);
                    }
                }
            }
        }
    }
    BOOST_TEST(known > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_returns
