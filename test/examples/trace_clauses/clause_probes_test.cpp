// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The probes that authors put into their programs, and where their arguments are, compared with
/// what readelf says.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <trace_clauses/points/program_file.hpp>
#include <trace_clauses/points/usdt.hpp>

namespace clause_probes {

using namespace clause_programs;
using namespace trace_clauses;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(clause_probes_test)

BOOST_AUTO_TEST_CASE(probes_of_programs_nobody_here_wrote) {
    std::size_t compared = 0;
    for (const auto& path :
         {std::string("/usr/bin/python3"), std::string("/lib/x86_64-linux-gnu/libstdc++.so.6"),
          std::string("/lib/x86_64-linux-gnu/libc.so.6"), std::string("/usr/lib32/libc.so.6")}) {
        if (!fs::exists(path)) continue;
        const program_file file(fs::canonical(path));
        using known = std::tuple<std::string, std::string, std::uint64_t, std::string>;
        std::multiset<known> said, found;
        known one;
        const auto after = [](const std::string& line, const std::string& what) {
            const std::size_t at = line.find(what);
            return at == std::string::npos ? std::string() : line.substr(at + what.size());
        };
        std::istringstream lines(printed("LC_ALL=C readelf -nW " + path + " 2> /dev/null"));
        for (std::string line; std::getline(lines, line);) {
            if (const auto text = after(line, "Provider: "); !text.empty()) std::get<0>(one) = text;
            if (const auto text = after(line, "Name: "); !text.empty()) std::get<1>(one) = text;
            if (const auto text = after(line, "Location: "); !text.empty()) {
                std::get<2>(one) = std::stoull(text, nullptr, 16);
            }
            if (line.find("Arguments:") == std::string::npos) continue;
            std::get<3>(one) = after(line, "Arguments: ");
            said.insert(one);
        }
        for (const auto& each : file.probes()) {
            std::string text;
            for (const auto& argument : each.arguments) {
                text += (text.empty() ? "" : " ") + argument.text;
                BOOST_TEST((argument.is != usdt_argument::kind::unparsed), argument.text);
            }
            found.insert({each.provider, each.name, each.address, text});
        }
        BOOST_TEST((said == found), path);
        compared += said.size();
    }
    BOOST_TEST_MESSAGE(compared << " probes compared");
}

BOOST_AUTO_TEST_CASE(arguments_of_probes) {
    using kind = usdt_argument::kind;
    constexpr auto none = usdt_argument::none;
    struct known {
        int bits;
        const char* text;
        kind is;
        unsigned bytes;
        bool is_signed;
        unsigned reg, index, scale;
        long long value;
    };
    const known all[] = {
        {64, "-4@%edi", kind::reg, 4, true, 5, none, 1, 0},
        {64, "8@%rax", kind::reg, 8, false, 0, none, 1, 0},
        {64, "1@%r15b", kind::reg, 1, false, 15, none, 1, 0},
        {64, "2@%r8w", kind::reg, 2, false, 8, none, 1, 0},
        {64, "1@%sil", kind::reg, 1, false, 4, none, 1, 0},
        {64, "1@%bh", kind::reg, 1, false, 3, none, 1, 0},
        {64, "%r9d", kind::reg, 4, false, 9, none, 1, 0},
        {64, "-4@$-5", kind::constant, 4, true, none, none, 1, -5},
        {64, "8@$0x10", kind::constant, 8, false, none, none, 1, 16},
        {64, "8@-24(%rbp)", kind::memory, 8, false, 6, none, 1, -24},
        {64, "8@8+4(%rsp)", kind::memory, 8, false, 7, none, 1, 12},
        {64, "8@(%rdx)", kind::memory, 8, false, 1, none, 1, 0},
        {64, "-8@16(%rax,%rcx,8)", kind::memory, 8, true, 0, 2, 8, 16},
        {64, "4@(%rax, %rbx, 2)", kind::memory, 4, false, 0, 3, 2, 0},
        {64, "4@64(,%r12,4)", kind::memory, 4, false, none, 12, 4, 64},
        {64, "4@counted(%rip)", kind::memory, 4, false, 16, none, 1, 0x3000},
        {64, "4@8+counted+8(%rip)", kind::memory, 4, false, 16, none, 1, 0x3010},
        {64, "8@$counted", kind::address, 8, false, 16, none, 1, 0x3000},
        {64, "8f@(%rsp)", kind::memory, 8, false, 7, none, 1, 0},
        {64, "4@elsewhere(%rip)", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@12(%rip)", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "8f@%xmm0", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@(%eax)", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "3@%rax", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@$", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@(%rax,%rbx,3)", kind::unparsed, 0, false, none, none, 1, 0},
        {64, "4@%fs:16", kind::unparsed, 0, false, none, none, 1, 0},
        {32, "-4@%edi", kind::reg, 4, true, 7, none, 1, 0},
        {32, "4@%ecx", kind::reg, 4, false, 1, none, 1, 0},
        {32, "1@%dl", kind::reg, 1, false, 2, none, 1, 0},
        {32, "4@8(%ebp)", kind::memory, 4, false, 5, none, 1, 8},
        {32, "4@(%esp)", kind::memory, 4, false, 4, none, 1, 0},
        {32, "4@4(%esi,%edi,4)", kind::memory, 4, false, 6, 7, 4, 4},
        {32, "4@counted", kind::memory, 4, false, 8, none, 1, 0x3000},
        {32, "-4@4+counted@GOTOFF(%ebx)", kind::memory, 4, true, 8, none, 1, 0x3004},
        {32, "8@%rax", kind::unparsed, 0, false, none, none, 1, 0},
        {32, "1@%sil", kind::unparsed, 0, false, none, none, 1, 0},
        {32, "4@(%rax)", kind::unparsed, 0, false, none, none, 1, 0},
    };
    for (const known& one : all) {
        const auto made = parse_usdt_argument(
            one.text, one.bits == 64 ? program_mode::lp64 : program_mode::ilp32, 0x1000,
            [](std::string_view name) {
                return name == "counted" ? std::optional<std::uint64_t>(0x4000) : std::nullopt;
            });
        BOOST_TEST_CONTEXT(one.bits << " bits: " << one.text) {
            BOOST_TEST((made.is == one.is));
            BOOST_TEST(made.bytes == one.bytes);
            BOOST_TEST(made.is_signed == one.is_signed);
            BOOST_TEST(made.reg == one.reg);
            BOOST_TEST(made.index == one.index);
            BOOST_TEST(made.scale == one.scale);
            BOOST_TEST(made.value == one.value);
            BOOST_TEST(made.text == one.text);
        }
    }
    BOOST_TEST(parse_usdt_argument("1@%ch", program_mode::lp64).reg_shift == 8U);
}

BOOST_AUTO_TEST_CASE(notes_written_by_hand) {
    const test::folder folder;
    for (const int bits : {64, 32}) {
        const bool wide = bits == 64;
        const std::vector<hand_written_probe> probes = {
            {"plain", wide ? "-4@%edi 8@16(%rsp)" : "-4@%edi 4@16(%esp)"},
            {"counting", wide ? "4@counted+4(%rip)" : "4@counted+4", true},
            {"silent", ""}};
        const std::string path = folder / "probes";
        if (!build(path, with_probes(probes, bits), "assembler", bits)) continue;
        const auto check = [&](const program_file& file) {
            BOOST_REQUIRE(file.probes().size() == 3U);
            std::map<std::string, std::uint64_t> said;
            for (const auto& line : words_of("nm " + path)) {
                if (line.size() == 3) said[line[2]] = std::stoull(line[0], nullptr, 16);
            }
            const auto segments = file.functions("main").at(0).function;
            for (const auto& each : file.probes()) {
                BOOST_TEST(each.provider == "hand");
                BOOST_TEST(each.address == said.at("here_" + each.name));
                BOOST_TEST(each.offset - segments->offset == each.address - segments->address);
            }
            const auto& counting = file.probes()[1];
            BOOST_TEST(counting.name == "counting");
            // Both are in the segment of data.
            const auto section =
                words_of("readelf -SW " + path + " | grep '\\.probes' | tr -d '[]'");
            BOOST_REQUIRE(section.size() == 1U);
            BOOST_TEST(counting.semaphore_offset == said.at("semaphore_counting") -
                                                        std::stoull(section[0].at(3), nullptr, 16) +
                                                        std::stoull(section[0].at(4), nullptr, 16));
            BOOST_TEST(file.probes()[0].semaphore_offset == 0U);
            BOOST_TEST(file.probes()[0].arguments.size() == 2U);
            BOOST_REQUIRE(counting.arguments.size() == 1U);
            BOOST_TEST((counting.arguments[0].is == usdt_argument::kind::memory));
            BOOST_TEST(counting.arguments[0].value ==
                       static_cast<std::int64_t>(said.at("counted") + 4 - counting.address));
            BOOST_TEST(file.probes()[2].arguments.empty());
        };
        check(program_file(path));
        // The same after the program was moved, as prelink does it: the notes have other addresses.
        std::string bytes = text_of(path);
        for (std::size_t at = 0; (at = bytes.find("stapsdt", at + 1)) != std::string::npos;) {
            if (bytes.compare(at - 4, 4, std::string("\3\0\0\0", 4)) != 0) continue;
            for (std::size_t word = 0; word < 3; ++word) {
                char* const here = bytes.data() + at + 8 + word * (wide ? 8 : 4);
                std::uint32_t value = 0;
                std::memcpy(&value, here, 4);
                if (value != 0) value += 0x7000;
                std::memcpy(here, &value, 4);
            }
        }
        write(path + ".moved", bytes);
        check(program_file(path + ".moved"));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_probes
