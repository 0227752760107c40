// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the tests of trace clauses build and ask: programs for 32 and 64 bits, and what the
/// machine's own tools report about them.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <proof.hpp>
#include <recorder/scratch.hpp>

#ifndef CXX_COMPILER
#define CXX_COMPILER "g++"
#endif

namespace clause_programs {

[[nodiscard]] inline std::string printed(const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "re");
    if (pipe == nullptr) throw std::runtime_error("popen");
    std::string out;
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) {
        out.append(buffer, got);
    }
    ::pclose(pipe);
    return out;
}
[[nodiscard]] inline std::vector<std::vector<std::string>> words_of(const std::string& command) {
    std::istringstream lines(printed(command));
    std::vector<std::vector<std::string>> all;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        all.emplace_back(std::istream_iterator<std::string>(words),
                         std::istream_iterator<std::string>());
    }
    return all;
}

inline void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}
[[nodiscard]] inline std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// How a command has ended, as std::system says it, and what it wrote.
struct ended {
    int status = 0;
    std::string out;
    std::string err;
};
[[nodiscard]] inline ended run(const test::folder& folder, const std::string& command) {
    const std::string out = folder / "out", err = folder / "err";
    ended made;
    made.status = std::system(("timeout 100 " + command + " > " + out + " 2> " + err).c_str());
    made.out = text_of(out);
    made.err = text_of(err);
    return made;
}
/// Whether the kernel permits what the command does.
[[nodiscard]] inline bool permits(const ended& of) {
    return of.err.find("not permitted") == std::string::npos &&
           of.err.find("no uprobes") == std::string::npos;
}

/// Whether programs of that many bits are built here, and whether they also run. If not, the reason
/// is reported.
[[nodiscard]] inline bool builds(int bits, bool and_runs = false) {
    const test::folder folder;
    const std::string source = folder / "main.cpp";
    write(source, "int main() {}\n");
    const std::string command = CXX_COMPILER " -m" + std::to_string(bits) + " " + source + " -o " +
                                (folder / "main") + " > /dev/null 2>&1";
    if (std::system(command.c_str()) != 0) {
        trace_ring_test::cannot_run("the compiler builds no programs of " + std::to_string(bits) +
                                    " bits (Debian: g++-12-multilib)");
        return false;
    }
    if (!and_runs || std::system(((folder / "main") + " 2> /dev/null").c_str()) == 0) return true;
    trace_ring_test::cannot_run("this kernel runs no programs of " + std::to_string(bits) +
                                " bits");
    return false;
}
[[nodiscard]] inline bool runs(int bits) {
    static std::map<int, bool> known;
    const auto at = known.find(bits);
    return at != known.end() ? at->second : known.emplace(bits, builds(bits, true)).first->second;
}

/// Builds `program` for that many bits; false if no programs of these are built here. `language`:
/// c, c++ or assembler. Throws std::runtime_error if it is this one that cannot be built.
[[nodiscard]] inline bool build(const std::string& program, const std::string& text,
                                const std::string& language, int bits,
                                const std::string& flags = "") {
    write(program + ".source", text);
    const std::string command = CXX_COMPILER " -w -m" + std::to_string(bits) + " " + flags +
                                " -x " + language + " " + program + ".source -o " + program +
                                " > " + program + ".log 2>&1";
    if (std::system(command.c_str()) == 0) return true;
    if (builds(bits)) throw std::runtime_error(command + ": " + text_of(program + ".log"));
    return false;
}

/// Where code of this process is: the file, and the offset in it.
[[nodiscard]] inline std::pair<std::string, std::uint64_t> place_in_file(const void* code) {
    const auto address = reinterpret_cast<std::uintptr_t>(code);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0;
        unsigned long end = 0;
        unsigned long offset = 0;
        int name = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &name) <
            3)
            continue;
        if (address < begin || address >= end) continue;
        return {line.substr(static_cast<std::size_t>(name)), address - begin + offset};
    }
    throw std::runtime_error("not in the maps");
}

/// A program with probes; its notes as SystemTap's sys/sdt.h would write them, from names and
/// arguments in the assembler's words.
struct hand_written_probe {
    std::string name;
    std::string arguments;
    bool semaphore = false;
};
[[nodiscard]] inline std::string with_probes(const std::vector<hand_written_probe>& probes,
                                             int bits) {
    const std::string word = bits == 64 ? ".8byte " : ".4byte ";
    std::string text = ".text\n.globl main\n.type main, @function\nmain:\n";
    for (const auto& one : probes) {
        const std::string at = "here_" + one.name;
        text += ".globl " + at + "\n" + at + ": nop\n.pushsection .note.stapsdt,\"\",\"note\"\n" +
                ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n" +
                "992: .balign 4\n993: " + word + at + "\n" + word + "_.stapsdt.base\n" + word +
                (one.semaphore ? "semaphore_" + one.name : "0") + "\n.asciz \"hand\"\n.asciz \"" +
                one.name + "\"\n.asciz \"" + one.arguments + "\"\n994: .balign 4\n.popsection\n";
        if (one.semaphore) {
            text += ".pushsection .probes,\"aw\",\"progbits\"\n.globl semaphore_" + one.name +
                    "\nsemaphore_" + one.name + ": .2byte 0\n.popsection\n";
        }
    }
    return text +
           "xor %eax, %eax\nret\n.size main, .-main\n.data\n.globl counted\n.type counted, "
           "@object\n.size counted, 16\n.balign 16\ncounted: .fill 16\n"
           ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
           ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"
           ".size _.stapsdt.base, 1\n.popsection\n.section .note.GNU-stack,\"\",\"progbits\"\n";
}

}  // namespace clause_programs
