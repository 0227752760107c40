// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The types of C++ programs, of programs of several units, and of the machine's C library.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <boost/test/unit_test.hpp>

#include <examples/trace_clauses/clause_programs.hpp>
#include <examples/trace_clauses/clause_types.hpp>
#include <trace_clauses/types/dwarf_types.hpp>

namespace clause_types {

using namespace clause_programs;

BOOST_AUTO_TEST_SUITE(clause_cxx_types_test)

BOOST_AUTO_TEST_CASE(types_of_cxx) {
    const test::folder folder;
    constexpr const char* text = R"(
namespace shop {
struct base { virtual ~base() = default; int id = 1; static int all; };
struct named { const char *name; };
class order : public base, public named {
public:
    enum class state : unsigned char { open, closed };
    long sum(const order &other, long double *&where, const int (&row)[3], state is) const;
    state is = state::open;
    mutable volatile unsigned short n : 9;
    union { int whole; char parts[4]; };
    int order::*to_member = nullptr;
#ifdef __SIZEOF_INT128__
    __int128 *large = nullptr;
#endif
    enum { light = 1, large_one = -5 } weight = light;
};
enum class door { open = 7, shut } front = door::open;
int base::all = 0;
long order::sum(const order &other, long double *&, const int (&row)[3], state) const {
    return other.id + row[0];
}
}
template <class T> __attribute__((noinline)) T twice(T of) { return of + of; }
static inline __attribute__((noinline)) int kept(int first, int unused, const char *last) {
    return first + *last;
}
int main(int argc, char **argv) {
    shop::order one;
    long double x = 0, *y = &x;
    const int row[3] = {argc};
    volatile long sink = one.sum(one, y, row, shop::order::state::open);
    sink = twice(argc);
    sink = kept(argc, 1, argv[0]);
    return 0;
})";
    for (const int bits : {64, 32}) {
        for (const std::string flags :
             {"-g -O0", "-gdwarf-4 -O2", "-g -O1 -fdebug-types-section"}) {
            const std::string path = folder / "program";
            if (!build(path, text, "c++", bits, flags)) break;
            BOOST_TEST_CONTEXT(bits << " bits, " << flags) {
                const program_file file(path);
                type_table types(file.mode());
                dwarf_types known(file, types);
                const auto found = file.functions("shop::order::sum");
                BOOST_REQUIRE(found.size() == 1U);
                const auto sum = known.of_function(found[0].function->address);
                BOOST_REQUIRE(sum.has_value());
                const auto& parameters = sum->parameters;
                BOOST_REQUIRE(parameters.size() == 5U);
                BOOST_TEST(parameters[0].name == "this");
                const type_id order = types[parameters[0].type].of;
                BOOST_TEST(types[order].name == "struct order");
                BOOST_TEST(types[parameters[1].type].of == order);
                BOOST_TEST(described(types, parameters[2].type) ==
                           (bits == 64 ? "**f16" : "**f12"));
                BOOST_TEST(described(types, parameters[3].type) == "*i4[3]");
                BOOST_TEST(described(types, parameters[4].type) == "u1");
                std::uint64_t offset = 0;
                for (const char* name : {"id", "name", "is", "whole", "parts", "to_member"}) {
                    BOOST_TEST((found_member(types, order, name) != nullptr), name);
                }
                BOOST_TEST((clause_types::found(types, order, "all", offset) == nullptr));
                const member* const n = found_member(types, order, "n");
                BOOST_REQUIRE(n != nullptr);
                BOOST_TEST(n->bits.width == 9U);
                BOOST_TEST(known.find("shop::order") == order);
                BOOST_TEST(types.find("order") == order);
                BOOST_TEST(known.value("large_one")->value == -5);
                BOOST_TEST(known.value("shop::order::large_one")->value == -5);
                BOOST_TEST(known.value("shop::order::state::closed")->value == 1);
                BOOST_TEST(known.value("shut")->value == 8);
                BOOST_TEST(!known.value("shut")->other.has_value());
                BOOST_TEST(!known.value("shop::shut").has_value());
                // Two are called so, and each with what is around it is one.
                const auto open = known.value("open");
                BOOST_REQUIRE(open.has_value());
                BOOST_TEST(open->other.has_value());
                BOOST_TEST(open->value + open->other.value_or(0) == 7);
                BOOST_TEST(known.value("shop::door::open")->value == 7);
                const auto twice =
                    known.of_function(file.functions("*twice*").at(0).function->address);
                BOOST_REQUIRE(twice.has_value());
                BOOST_TEST(described(types, twice->returns) == "i4");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_another_unit_defines) {
    const test::folder folder;
    for (const int bits : {64, 32}) {
        const std::string path = folder / "program";
        write(folder / "a.c",
              "struct order; int take(struct order *one) { return one != 0; }\n"
              "struct lost; int lose(struct lost *one) { return one != 0; }\n"
              "struct order *give(void); int main(void) { return take(give()) * 0; }");
        write(folder / "b.c",
              "struct order { int id; struct order *next; } kept;\n"
              "struct order *give(void) { return &kept; }");
        if (std::system((CXX_COMPILER " -w -g -x c -m" + std::to_string(bits) + " " +
                         (folder / "a.c") + " " + (folder / "b.c") + " -o " + path + " 2> " +
                         (folder / "log"))
                            .c_str()) != 0) {
            continue;
        }
        const program_file file(path);
        type_table types(file.mode());
        dwarf_types known(file, types);
        const auto take = known.of_function("take");
        const auto lose = known.of_function("lose");
        BOOST_REQUIRE((take && lose));
        const type_id order = types[take->parameters.at(0).type].of;
        BOOST_TEST(types[order].name == "struct order");
        BOOST_REQUIRE(types[order].members.size() == 2U);
        BOOST_TEST(types[types[order].members[1].type].of == order);
        const type_id lost = types[lose->parameters.at(0).type].of;
        BOOST_TEST((types[lost].is == type::kind::nothing));
        BOOST_TEST(types[lost].name == "struct lost");
    }
}

BOOST_AUTO_TEST_CASE(the_c_librarys_own) {
    const program_file file("/lib/x86_64-linux-gnu/libc.so.6");
    type_table types(file.mode());
    dwarf_types known(file, types);
    if (!known.any()) {
        BOOST_TEST_MESSAGE("skipped: no debug information of libc is here");
        return;
    }
    // malloc is what __libc_malloc is called by others.
    const auto type = known.of_function(file.functions("malloc").at(0).function->address);
    BOOST_REQUIRE(type.has_value());
    BOOST_REQUIRE(type->parameters.size() == 1U);
    BOOST_TEST(described(types, type->parameters[0].type) == "u8");
    BOOST_TEST(described(types, type->returns) == "*nothing 0");
    const auto closing = known.of_function(file.functions("fclose").at(0).function->address);
    BOOST_REQUIRE(closing.has_value());
    const type_id stream = types[closing->parameters.at(0).type].of;
    BOOST_TEST(types[stream].size.bytes == 216U);
    BOOST_TEST(found_member(types, stream, "_fileno")->offset == 112U);
    std::size_t typed = 0;
    for (const auto& each : file.functions()) {
        typed += known.of_function(each.address).has_value() ? 1U : 0U;
    }
    BOOST_TEST_MESSAGE(typed << " of " << file.functions().size() << " functions have types");
    BOOST_TEST(typed > file.functions().size() / 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace clause_types
