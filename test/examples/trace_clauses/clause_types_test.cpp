// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The types of arguments: from a program's DWARF and from a script's declarations, which agree,
/// compared with the results of the compiled programs.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <examples/trace_clauses/clause_types.hpp>
#include <trace_clauses/types/declarations.hpp>
#include <trace_clauses/types/dwarf_types.hpp>

namespace clause_types {

using namespace clause_programs;
using namespace trace_clauses;

namespace {

struct both {
    type_table wide{program_mode::lp64};
    type_table narrow{program_mode::ilp32};

    type_table& of(int bits) { return bits == 64 ? wide : narrow; }
};

constexpr const char* structures = R"(
enum shade { dark, light = 5, unknown = -1 };
enum large { all_of_them = 4000000000 };
typedef unsigned char octets[6];
struct inner { char c; double d; };
struct order {
    int id;
    const char *name;
    struct { long a; unsigned b : 3; } in[2];
    union { float f; double d; };
    struct order *next, *others[2];
    int (*compare)(const void *, const void *);
    enum shade shade;
    octets address;
    long long amount;
    _Bool urgent : 1;
    signed char small : 4;
    unsigned long wide : 20;
    enum large bits_of_many : 32;
    short grid[2][3][4];
    struct inner nested;
    struct unknown_here *hidden;
    char rest[];
};
struct __attribute__((packed)) tight { char c; int i; unsigned f : 5, g : 19; short s; };
union either { char bytes[12]; long l; unsigned u : 7; };
)";

/// Prints where the members are, in the words of `described`.
const std::string with_main = std::string("#include <stddef.h>\n#include <stdio.h>\n") +
                              structures +
                              R"(
struct order an_order; struct tight a_tight; union either an_either;
long take(struct order *first, const struct tight one, unsigned short n, octets *where) {
    return first->id + n + one.c + where[0][0];
}
#define AT(member) \
    printf(#member " %zu %zu\n", offsetof(struct order, member), sizeof an_order.member)
int main(void) {
    AT(id); AT(name); AT(in); AT(f); AT(d); AT(next); AT(others); AT(compare); AT(shade); 
    AT(address); AT(amount); AT(grid); AT(nested); AT(hidden);
    printf("order %zu %zu\n", sizeof an_order, _Alignof(struct order));
    printf("tight %zu %zu\n", sizeof a_tight, _Alignof(struct tight));
    return (int)take(&an_order, a_tight, 0, &an_order.address) & 0;
})";

void check_against_program(const type_table& types, const std::string& program) {
    std::size_t compared = 0;
    for (const auto& line : words_of(program)) {
        BOOST_REQUIRE(line.size() == 3U);
        const type_id whole = types.find("struct " + line[0]);
        if (whole != type_table::nothing()) {
            BOOST_TEST(types[whole].size.bytes == std::stoull(line[1]));
            BOOST_TEST(types[whole].size.alignment == std::stoull(line[2]));
            continue;
        }
        std::uint64_t offset = 0;
        const member* const one = found(types, types.find("struct order"), line[0], offset);
        BOOST_REQUIRE_MESSAGE(one != nullptr, line[0]);
        BOOST_TEST(offset == std::stoull(line[1]), line[0]);
        BOOST_TEST(types[one->type].size.bytes == std::stoull(line[2]), line[0]);
        ++compared;
    }
    BOOST_TEST(compared == 14U);
}

/// As test/point/layouts.py makes them.
std::string random_structures(std::size_t count, std::mt19937_64& random) {
    const std::vector<std::pair<std::string, unsigned>> integers = {
        {"char", 8},       {"unsigned char", 8},       {"short", 16}, {"unsigned short", 16},
        {"int", 32},       {"unsigned", 32},           {"long", 32},  {"unsigned long", 32},
        {"long long", 64}, {"unsigned long long", 64}, {"_Bool", 1}};
    const std::vector<std::string> others = {"float", "double", "long double", "void *", "char",
                                             "int",   "short",  "long long",   "long",   "_Bool"};
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<std::string> names;
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_union = below(7) == 0;
        const bool packed = !is_union && below(12) == 0;
        const std::string name = (is_union ? "union r" : "struct r") + std::to_string(i);
        text += name + " {\n";
        const std::uint64_t members = 1 + below(9);
        for (std::uint64_t m = 0; m < members; ++m) {
            const std::string own = "m" + std::to_string(m);
            const std::uint64_t chance = below(100);
            if (chance < 45) {
                const auto& [type, bits] = integers[below(integers.size())];
                // Those in nine bytes are refused.
                const unsigned most = packed ? std::min(bits, 57U) : bits;
                if (!is_union && below(10) == 0) text += "  " + type + " : 0;\n";
                if (!is_union && below(10) == 0) text += "  " + type + " : 1;\n";
                text += "  " + type + " " + own + " : " + std::to_string(1 + below(most)) + ";\n";
            } else if (chance < 55 && !names.empty()) {
                text += "  " +
                        names[names.size() - 1 - below(std::min<std::size_t>(names.size(), 20))] +
                        " " + own + ";\n";
            } else if (chance < 60) {
                text += "  struct { " + others[below(others.size())] + " " + own + "a; int " + own +
                        "b : 9; };\n";
            } else {
                text += "  " + others[below(others.size())] + " " + own +
                        (below(5) == 0 ? "[" + std::to_string(1 + below(3)) + "]" : "") + ";\n";
            }
        }
        text += packed ? "} __attribute__((packed));\n" : "};\n";
        names.push_back(name);
    }
    return text;
}

/// What is read as bits, whichever word they are in: in packed structures there are several.
std::string bits_of(const type_table& in, type_id of) {
    std::string all = std::to_string(in[of].size.bytes);
    for (const member& each : in[of].members) {
        const bool bits = each.bits.width != 0;
        const bool within = each.bits.offset + each.bits.bytes <= in[of].size.bytes;
        // There may be no room for one.
        BOOST_TEST((!bits || within || in[of].size.bytes < 8));
        all += " " + each.name + "@" + std::to_string(each.offset * 8 + each.bits.first_bit) + "+" +
               std::to_string(each.bits.width);
        all += in[each.type].is == type::kind::structure ? "(" + bits_of(in, each.type) + ")"
                                                         : described(in, each.type);
    }
    return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clause_types_test)

BOOST_AUTO_TEST_CASE(dwarf_and_declarations_are_as_the_program_is) {
    const test::folder folder;
    both declared;
    const std::string script = std::string(structures) + "  @@uft:*:libc*:malloc:entry";
    const std::size_t end = declare(script, 0, declared.wide, declared.narrow);
    BOOST_TEST(script.substr(end) == "@@uft:*:libc*:malloc:entry");
    for (const int bits : {64, 32}) {
        if (!runs(bits)) continue;
        for (const std::string flags : {"-g", "-gdwarf-4", "-gdwarf-3 -gstrict-dwarf", "-gdwarf-2",
                                        "-gdwarf-5 -O2 -gz", "-gdwarf-4 -fdebug-types-section"}) {
            const std::string path = folder / "program";
            BOOST_REQUIRE(build(path, with_main, "c", bits, flags));
            BOOST_TEST_CONTEXT(bits << " bits, " << flags) {
                const program_file file(path);
                type_table types(file.mode());
                dwarf_types known(file, types);
                BOOST_REQUIRE(known.any());
                const auto take = known.of_function(file.functions("take").at(0).function->address);
                BOOST_REQUIRE(take.has_value());
                BOOST_REQUIRE(take->parameters.size() == 4U);
                BOOST_TEST(take->parameters[0].name == "first");
                BOOST_TEST(types[types[take->parameters[0].type].of].name == "struct order");
                BOOST_TEST(types[take->parameters[1].type].name == "struct tight");
                BOOST_TEST(described(types, take->parameters[2].type) == "u2");
                BOOST_TEST(described(types, take->parameters[3].type) == "*u1[6]");
                BOOST_TEST(described(types, take->returns) == (bits == 64 ? "i8" : "i4"));
                BOOST_TEST(known.of_function("take").has_value());
                BOOST_TEST(!known.of_function("taken").has_value());
                BOOST_TEST(known.find("union either") != type_table::nothing());
                BOOST_TEST(known.find("union neither") == type_table::nothing());
                check_against_program(types, path);
                const type_table& same = declared.of(bits);
                for (const char* name : {"struct order", "union either", "enum shade", "octets"}) {
                    BOOST_TEST(described(types, types.find(name)) ==
                               described(same, same.find(name)));
                }
                BOOST_TEST(bits_of(types, types.find("struct tight")) ==
                           bits_of(same, same.find("struct tight")));
                BOOST_TEST(known.value("light")->value == 5);
                BOOST_TEST(known.value("unknown")->value == -1);
            }
        }
        check_against_program(declared.of(bits), folder / "program");
    }
    BOOST_TEST((declared.wide.constants() == declared.narrow.constants()));
}

BOOST_AUTO_TEST_CASE(random_structures_agree) {
    const test::folder folder;
    std::mt19937_64 random(28);
    const std::size_t count = test::repeated(300, 40);
    const std::string text = random_structures(count, random);
    both declared;
    BOOST_TEST(declare(text, 0, declared.wide, declared.narrow) == text.size());
    std::string program = text;
    for (const auto& [name, id] : declared.wide.names()) {
        program += name + " v_" + name.substr(name.find(' ') + 1) + ";\n";
    }
    program += "int main(void) { return 0; }\n";
    for (const int bits : {64, 32}) {
        for (const std::string flags : {"-gdwarf-5", "-gdwarf-3 -gstrict-dwarf"}) {
            const std::string path = folder / "program";
            if (!build(path, program, "c", bits, flags)) break;
            const program_file file(path);
            type_table types(file.mode());
            dwarf_types known(file, types);
            const type_table& same = declared.of(bits);
            std::size_t compared = 0;
            for (const auto& [name, id] : same.names()) {
                const type_id read = known.find(name);
                BOOST_REQUIRE_MESSAGE(read != type_table::nothing(), name);
                const bool equal = bits_of(types, read) == bits_of(same, id);
                BOOST_TEST(equal, bits << " bits, " << flags << ", " << name << ": "
                                       << bits_of(types, read)
                                       << "\n, declared: " << bits_of(same, id));
                ++compared;
            }
            BOOST_TEST(compared == count);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_types
