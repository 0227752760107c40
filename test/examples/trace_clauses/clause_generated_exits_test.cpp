// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Exit points of generated programs: each exit is counted with the values that the program prints.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <examples/trace_clauses/clause_programs.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(clause_generated_exits)

namespace {

using namespace clause_programs;

/// Functions that call, choose, repeat, throw and jump out, and print what they have returned. None
/// of them ends in a call: that could be a jump to another function.
std::string generated(unsigned seed, unsigned count) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(random()) % bound; };
    std::string text =
        "#include <csetjmp>\n#include <cstdio>\n"
        "static std::jmp_buf place; static int depth;\n"
        "struct on_leave { ~on_leave() { --depth; } };\n";
    for (unsigned i = 0; i < count; ++i) {
        const std::string name = "f" + std::to_string(i);
        text += "extern \"C\" __attribute__((noinline, noclone)) int " + name +
                "(int n);\n"
                "static int r" +
                std::to_string(i) + "(int n) { const int got = " + name + "(n); std::printf(\"" +
                name + " %d %d\\n\", n, got); return got; }\n";
    }
    for (unsigned i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        text += "extern \"C\" int f" + number + "(int n) {\n  asm volatile(\"\" : \"+r\"(n));\n";
        const unsigned lines = 1 + below(4);
        const auto call = [&] {
            if (i == 0) return std::string("(n * 3)");
            return "r" + std::to_string(below(i)) + "(n % 64 + " + std::to_string(below(9)) + ")";
        };
        for (unsigned line = 0; line < lines; ++line) {
            switch (below(6)) {
                case 0:
                    text += "  if (n % " + std::to_string(2 + below(5)) + " == 1) return " +
                            call() + " + " + std::to_string(i) + ";\n";
                    break;
                case 1:
                    text +=
                        "  switch (n & 7) { case 0: n += 5; break; case 1: return n ^ 3; case 2: "
                        "n -= " +
                        call() +
                        "; break; case 3: return n + 17; case 4: n *= 2; break; "
                        "case 5: n = 9 - n; break; case 6: n ^= 40; break; }\n";
                    break;
                case 2:
                    text += "  try { n += " + call() + "; } catch (int thrown) { n += thrown; " +
                            (below(2) == 0 ? "return n - 2; " : "") + "}\n";
                    break;
                case 3:
                    text += "  if (n % " + std::to_string(5 + below(9)) + " == 2) throw n;\n";
                    break;
                case 4:
                    text += "  for (int i = 0; i < n % 3; ++i) n += i & 1;\n";
                    break;
                default:
                    text += "  if (n % 31 == 30) std::longjmp(place, 1);\n";
            }
            text += "  n %= 1000;\n";
        }
        text += "  asm volatile(\"\" : \"+r\"(n));\n  return n + " + number + ";\n}\n";
    }
    text +=
        "int main() {\n  volatile int left = 0;\n  for (volatile int i = 0; i < 60; ++i) {\n"
        "    if (setjmp(place) != 0) { ++left; continue; }\n"
        "    try { r" +
        std::to_string(count - 1) + "(i); r" + std::to_string(count / 2) +
        "(i * 7); } catch (int) { ++left; }\n  }\n  return left % 100;\n}\n";
    return text;
}
/// Each "NAME ARGUMENT RESULT" that is printed, with how often: as trace-clauses shows counts.
std::vector<std::string> printed_by(const std::string& out) {
    std::map<std::string, std::uint64_t> all;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
        line.replace(line.rfind(' '), 1, ", ");
        ++all['"' + line.replace(line.find(' '), 1, "\", ")];
    }
    std::vector<std::string> shown;
    for (const auto& [line, count] : all)
        shown.push_back("  " + line + ": " + std::to_string(count));
    std::sort(shown.begin(), shown.end());
    return shown;
}
std::vector<std::string> counted(const std::string& out) {
    std::vector<std::string> all;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("  \"f")) all.push_back(line);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exits_of_generated_programs_are_those_that_they_print) {
    const test::folder folder;
    std::uint64_t compared = 0;
    const std::vector<std::string> all_flags = {"-O2 -g", "-O0 -g", "-O1", "-O3", "-Os"};
    const std::size_t wanted =
        std::min<std::size_t>(all_flags.size(), trace_ring_test::repeats(16));
    for (const int bits : {64, 32}) {
        if (!runs(bits)) continue;
        for (const std::string& flags : std::span(all_flags).first(wanted)) {
            const std::string name = "generated";
            const std::string path = folder / name;
            const auto seed = static_cast<unsigned>(bits) + static_cast<unsigned>(flags[2]);
            if (!build(path, generated(seed, 40), "c++", bits, flags)) return;
            const ended alone = run(folder, path);
            for (const char* from : {"--source kernel", "--source ptrace"}) {
                const ended traced =
                    run(folder,
                        std::string(TRACE_CLAUSES) + " " + from +
                            " --quiet -e '@@uft:*:generated:f*:exit when elapsed > 0 && elapsed "
                            "< 100s { count(func, (int)arg0, (int)retval); }' -- " +
                            path);
                if (!permits(traced)) continue;
                BOOST_TEST_CONTEXT(bits << " " << flags << " " << from << " " << traced.err) {
                    BOOST_TEST(traced.status == alone.status);
                    const auto told = counted(traced.out);
                    BOOST_TEST(told == printed_by(alone.out), boost::test_tools::per_element());
                    compared += told.size();
                }
            }
        }
    }
    trace_ring_test::proof("clauses", compared, "exits that generated programs print");
}

BOOST_AUTO_TEST_SUITE_END()
