// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Where trace points are: the functions of programs of both modes, compared with nm's output, and
/// files that lie.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <trace_clauses/points/program_file.hpp>

namespace clause_points {

using namespace clause_programs;
using namespace trace_clauses;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> libraries = {
    "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib32/libc.so.6", "/lib/i386-linux-gnu/libc.so.6"};

constexpr const char* program_text = R"(
extern "C" int twice(int x) { return 2 * x; }
extern "C" int second(int x) __attribute__((alias("twice")));
extern "C" { static int chosen_one(int x) { return x; } }
extern "C" { static void *choose() { return (void *)&chosen_one; } }
extern "C" int chosen(int) __attribute__((ifunc("choose")));
namespace shop { struct order { int sum(int n) const; }; int order::sum(int n) const { return n; } }
extern "C" int missing(int) __attribute__((weak));
int main() { return twice(second(0)) + chosen(0) + shop::order().sum(0) + (missing ? 1 : 0); }
)";

std::string cause_of(const std::string& path) {
    try {
        program_file{path};
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return {};
}

const program_file::match* named(const std::vector<program_file::match>& all,
                                 const std::string& name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

/// Each function's address in the file, by name, as nm says.
std::map<std::string, std::uint64_t> said_by_nm(const std::string& path) {
    std::map<std::string, std::uint64_t> all;
    for (const std::string flags : {"", "-D "}) {
        for (const auto& line : words_of("nm " + flags + path + " 2> /dev/null")) {
            if (line.size() != 3 || line[1].find_first_of("TtWw") == std::string::npos) continue;
            all[line[2].substr(0, line[2].find('@'))] = std::stoull(line[0], nullptr, 16);
        }
    }
    return all;
}

/// The bytes at a function's entry, read at its offset.
std::string code_at(const std::string& file, std::uint64_t offset) {
    return file.substr(offset, 8);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clause_points_test)

BOOST_AUTO_TEST_CASE(functions_are_where_nm_says) {
    const test::folder folder;
    for (const int bits : {64, 32}) {
        for (const std::string flags : {"-O0 -pie -fPIC", "-O0 -no-pie", "-O0 -shared -fPIC"}) {
            const std::string path = folder / "program";
            if (!build(path, program_text, "c++", bits, flags)) break;
            const program_file file(path);
            BOOST_TEST((file.mode() == (bits == 64 ? program_mode::lp64 : program_mode::ilp32)));
            const auto twice = file.functions("twice");
            BOOST_REQUIRE(twice.size() == 1U);
            // One point, of two names.
            BOOST_TEST((twice[0].function == file.functions("second").at(0).function));
            BOOST_TEST(twice[0].function->names.size() == 2U);
            BOOST_TEST(twice[0].function->size != 0U);
            BOOST_TEST((file.at(twice[0].function->address + 1) == twice[0].function));
            BOOST_TEST(file.functions("missing").empty());
            BOOST_TEST(file.functions("chosen").empty());
            BOOST_TEST(
                (std::vector(file.chosen_when_loaded().begin(), file.chosen_when_loaded().end()) ==
                 std::vector<std::string>{"chosen"}));
            for (const char* glob : {"_ZNK4shop5order3sumEi", "shop::order::sum", "shop::*::sum",
                                     "shop::order::sum(int) const"}) {
                const auto found = file.functions(glob);
                BOOST_REQUIRE_MESSAGE(found.size() == 1U, glob);
                BOOST_TEST(found[0].name == (glob[0] == '_' ? "_ZNK4shop5order3sumEi"
                                                            : "shop::order::sum(int) const"));
            }
            const auto said = said_by_nm(path);
            std::size_t compared = 0;
            for (const auto& each : file.functions()) {
                for (const auto& name : each.names) {
                    const auto found = said.find(name);
                    if (found == said.end()) continue;
                    ++compared;
                    BOOST_TEST(found->second == each.address, name);
                }
            }
            BOOST_TEST(compared >= 5U);
        }
    }
}

BOOST_AUTO_TEST_CASE(functions_have_the_names_that_their_authors_wrote) {
    const test::folder folder;
    const std::string path = folder / "named";
    constexpr const char* text = R"(
namespace shop {
template <class T> __attribute__((noinline)) T twice(T n) { return n + n; }
template <class T> struct list {
    __attribute__((noinline)) T at(int n) const { return T(n); }
    template <class U> __attribute__((noinline)) unsigned long with(U n, const char *) { return n; }
};
struct rows {
    __attribute__((noinline)) int operator[](int n) const { return n; }
    __attribute__((noinline)) bool operator>(const rows &) const { return false; }
    template <class T> __attribute__((noinline)) int operator()(T n) const { return n; }
    __attribute__((noinline)) explicit operator long() const { return 3; }
};
__attribute__((noinline)) int sum(const int (&row)[3]) { return row[0]; }
}
int main() {
    const int row[3] = {1, 2, 3};
    shop::list<int> all;
    shop::rows one;
    return shop::twice(1) + (int)shop::twice(2.5) + all.at(1) + (int)all.with(2L, "") + one[1] +
           (one > one) + one(7) + (int)(long)one + shop::sum(row);
})";
    if (!build(path, text, "c++", 64, "-O0")) return;
    const program_file file(path);
    const std::vector<std::pair<std::string, std::size_t>> all{
        {"shop::twice<int>", 1},
        {"shop::twice<int>(int)", 1},
        {"int shop::twice<int>(int)", 1},
        {"shop::twice", 2},
        {"shop::tw*", 2},
        {"shop::list<int>::at", 1},
        {"shop::list::at", 1},
        {"shop::list<int>::at(int) const", 1},
        {"shop::list<int>::with<long>", 1},
        {"shop::list::with", 1},
        {"shop::rows::operator[]", 1},
        {"shop::rows::operator[](int) const", 1},
        {"shop::rows::operator>", 1},
        {"shop::rows::operator()<int>", 1},
        {"shop::rows::operator()<int>(int) const", 1},
        {"shop::rows::operator long", 1},
        {"shop::sum(int const (&) [3])", 1},
        {"shop::sum", 1},
        {"twice", 0},
        {"shop::twice<long>", 0}};
    for (const auto& [name, count] : all) BOOST_TEST(file.functions(name).size() == count, name);
}

BOOST_AUTO_TEST_CASE(an_offset_leads_to_the_functions_own_code) {
    const test::folder folder;
    // The program prints its function's first bytes in memory.
    constexpr const char* text = R"(
extern "C" int printf(const char *, ...);
extern "C" __attribute__((noinline)) int wanted(int a, int b) { return 7 * a + 3 * b + 12345; }
int main() {
    for (int i = 0; i < 8; ++i) printf("%02x", ((unsigned char *)&wanted)[i]);
    return wanted(0, 0) == 0;
})";
    for (const int bits : {64, 32}) {
        if (!runs(bits)) continue;
        for (const std::string flags : {"-O1 -pie -fPIE", "-O1 -no-pie"}) {
            const std::string path = folder / "program";
            BOOST_REQUIRE(build(path, text, "c++", bits, flags));
            const program_file file(path);
            const auto found = file.functions("wanted");
            BOOST_REQUIRE(found.size() == 1U);
            std::string bytes;
            for (const char c : code_at(text_of(path), found[0].function->offset)) {
                char two[3];
                std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
                bytes += two;
            }
            BOOST_TEST(bytes == printed(path));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_machines_c_library) {
    std::size_t tried = 0;
    for (const auto& path : libraries) {
        if (!fs::exists(path)) continue;
        ++tried;
        const program_file file(path);
        const auto said = said_by_nm(path);
        BOOST_REQUIRE(!said.empty());
        std::size_t compared = 0;
        std::set<std::string> known;
        for (const auto& each : file.functions()) {
            for (const auto& name : each.names) {
                known.insert(name);
                const auto found = said.find(name);
                if (found == said.end()) continue;
                ++compared;
                // Names of several versions have several places; nm's last is one of them.
                if (found->second == each.address) continue;
                BOOST_TEST((printed("nm -D " + path).find(name + "@") != std::string::npos), name);
            }
        }
        for (const auto& [name, address] : said) BOOST_TEST(known.count(name) == 1U, name);
        BOOST_TEST(compared > 1500U);
        const auto allocations = file.functions("*alloc");
        BOOST_REQUIRE(named(allocations, "malloc") != nullptr);
        BOOST_TEST(named(allocations, "malloc")->function->address == said.at("malloc"));
        const auto chosen = file.chosen_when_loaded();
        BOOST_TEST(std::binary_search(chosen.begin(), chosen.end(), std::string("memcpy")));
        BOOST_TEST(file.functions("strlen").empty());  // memcpy has an old version that is one
    }
    if (tried == 0) BOOST_TEST_MESSAGE("skipped: no C library for x86-64 or i386 is here");
}

BOOST_AUTO_TEST_CASE(names_that_grow_without_end) {
    name_reader readable;
    BOOST_TEST(readable("_ZNK4shop5order3sumEi") == "shop::order::sum(int) const");
    BOOST_TEST(readable("f") == "f");
    BOOST_TEST(readable("_Z") == "_Z");
    // Each part is the last one twice: 2^60 in all.
    std::string name = "_Z1f1A";
    for (int i = 0; i < 60; ++i) {
        const std::string last = i == 0 ? "S_" : "S" + std::string(1, "0123456789"[i % 10]) + "_";
        name.append("PFv").append(last).append(last).append("E");
    }
    BOOST_TEST(readable(name) == name);
    BOOST_TEST(readable("_Z1gi") == "g(int)");
}

BOOST_AUTO_TEST_CASE(what_is_no_program_is_refused) {
    const test::folder folder;
    const std::string path = folder / "file";
    BOOST_TEST(cause_of(path) == path + ": No such file or directory");
    write(path, "");
    BOOST_TEST(cause_of(path) == path + ": no ELF file");
    write(path, "#!/bin/sh\n");
    BOOST_TEST(cause_of(path) == path + ": no ELF file");
    BOOST_TEST(cause_of(folder.path()) == folder.path() + ": no file");
    BOOST_TEST(cause_of("/dev/null") == "/dev/null: no file");
    const std::string own = text_of("/proc/self/exe");
    write(path, own.substr(0, 40));
    BOOST_TEST(cause_of(path) != "");
    std::string other = own.substr(0, 4096);
    other[18] = static_cast<char>(183);  // aarch64
    write(path, other);
    BOOST_TEST(cause_of(path) == path + ": for another processor than x86-64 and i386");
}

BOOST_AUTO_TEST_CASE(files_that_are_cut_off_or_lie) {
    const test::folder folder;
    std::mt19937_64 random(28);
    for (const int bits : {64, 32}) {
        const std::string path = folder / "whole";
        const std::vector<hand_written_probe> probes = {{"one", "4@counted", true},
                                                        {"two", "8@8(%rbp) 4@%eax"}};
        if (!build(path, with_probes(probes, bits), "assembler", bits, "-no-pie")) continue;
        const std::string whole = text_of(path);
        const std::string hurt = folder / "hurt";
        for (std::size_t i = 0; i < 200; ++i) {
            write(hurt, whole.substr(0, whole.size() * i / 200));
            // Its sections' headers are at the end.
            BOOST_TEST(cause_of(hurt).starts_with(hurt + ": "), i << " of 200: " << cause_of(hurt));
        }
        std::size_t refused = 0;
        const std::uint64_t tries = test::repeated(2000, 100);
        for (std::uint64_t i = 0; i < tries; ++i) {
            std::string bytes = whole;
            const std::size_t changes = 1 + random() % 8;
            for (std::size_t n = 0; n < changes; ++n) {
                // Half of them in the headers that describe the rest.
                std::size_t at = random() % bytes.size();
                if (random() % 2 == 0) {
                    const std::size_t headers = 64 * 30;
                    at =
                        random() % 2 == 0 ? random() % 1024 : bytes.size() - 1 - random() % headers;
                }
                bytes[at] = static_cast<char>(random());
            }
            write(hurt, bytes);
            const std::string cause = cause_of(hurt);
            refused += cause.empty() ? 0U : 1U;
            BOOST_TEST((cause.empty() || cause.starts_with(hurt + ": ")));
        }
        BOOST_TEST(refused > tries / 20);
        BOOST_TEST(refused < tries);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_points
