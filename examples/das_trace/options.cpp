// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "options.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "guest.hpp"

namespace das_example {

namespace {

constexpr char usage[] =
    "usage: das_trace [OPTION...] [INSTRUCTIONS [ENTRIES]]\n"
    "Runs a program of a miniature System/370 until INSTRUCTIONS (default 10) of its PROGRAM\n"
    "CALL, PROGRAM TRANSFER and SET SECONDARY ASN are executed, each of them traced into a table\n"
    "of ENTRIES (default 4, at most 1000), and prints the table from the oldest entry to the\n"
    "newest.\n"
    "  --closed       with the DAS-trace control off: nothing is traced\n"
    "  --protected    with the table in a protected segment: a protection exception\n"
    "  --image FILE   then writes the 64 KiB of guest storage to FILE, for trace-reduce --das "
    "1000\n"
    "  --exceptions   instead provokes each exception, and compares guest storage before and\n"
    "                 after\n"
    "  --help         this text\n"
    "Exit status: 0; 1 if an instruction was suppressed, an exception changed storage or FILE\n"
    "cannot be written; 2 if the command line is wrong.\n";

bool wrong(const std::string& what, int& status) {
    std::fprintf(stderr, "das_trace: %s (see --help)\n", what.c_str());
    status = 2;
    return false;
}

// True if `text` is a number from 1 to `most`, which is then in `value`.
bool parse_number(std::string_view text, std::uint32_t most, std::uint32_t& value) {
    const auto end = text.data() + text.size();
    std::uint32_t read = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, read);
    if (error != std::errc{} || stop != end || read < 1 || read > most) return false;
    value = read;
    return true;
}

}  // namespace

bool parse(std::span<char* const> arguments, options& into, int& status) {
    int numbers = 0;
    bool table = false;  // an option of the run that prints the table
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--help") {
            status = std::fputs(usage, stdout) < 0 ? 1 : 0;
            return false;
        }
        if (argument == "--exceptions") {
            into.exceptions = true;
            continue;
        }
        table = true;
        if (argument == "--closed") {
            into.gate_open = false;
        } else if (argument == "--protected") {
            into.is_protected = true;
        } else if (argument == "--image" || argument.starts_with("--image=")) {
            const bool joined = argument.size() > 7;
            if (!joined && i + 1 == arguments.size()) return wrong("--image needs a FILE", status);
            into.image = joined ? argument.substr(8) : std::string_view(arguments[++i]);
            if (into.image.empty()) return wrong("--image needs a FILE", status);
        } else if (argument.starts_with("-")) {
            return wrong(std::string(argument) + ": unknown option", status);
        } else if (numbers == 0) {
            if (!parse_number(argument, 100'000'000, into.instructions)) {
                return wrong(
                    std::string(argument) + ": INSTRUCTIONS is a number from 1 to 100000000",
                    status);
            }
            ++numbers;
        } else if (numbers == 1) {
            if (!parse_number(argument, guest::most_entries, into.entries)) {
                return wrong(std::string(argument) + ": ENTRIES is a number from 1 to 1000",
                             status);
            }
            ++numbers;
        } else {
            return wrong(std::string(argument) + ": a third number", status);
        }
    }
    if (into.exceptions && table) return wrong("--exceptions goes with no other argument", status);
    return true;
}

}  // namespace das_example
