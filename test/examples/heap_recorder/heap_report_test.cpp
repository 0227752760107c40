// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The arithmetic of heap-report, on records made up for the purpose.

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <proof.hpp>
#include <symbols/rust_name.hpp>

#include "ledger.hpp"
#include "picture.hpp"
#include "quantity.hpp"
#include "report_text.hpp"
#include "sites.hpp"
#include "stacks.hpp"
#include "symbols.hpp"
#include "timeline.hpp"

BOOST_AUTO_TEST_SUITE(heap_report)

namespace {

constexpr std::uint32_t one = 1, two = 2;  // threads
constexpr heap::stack_id here = 0, there = 1;

// present: first_loss, lost, unrecorded, perhaps_lost, damages
BOOST_AUTO_TEST_CASE(nothing_is_told_as_lost_only_if_no_count_says_otherwise) {
    const auto text_of = [](heap::process_profile& profile) {
        const heap::stack_table stacks;
        heap::symbolizer symbols;
        return heap::report(profile, stacks, symbols, {});
    };
    heap::process_profile profile;
    BOOST_TEST(text_of(profile).find("nothing") != std::string::npos, text_of(profile));
    trace_ring::loss_counts seven;
    seven.add(trace_ring::loss_cause::refused, 7);
    for (int i = 0; i < 5; ++i) {
        heap::process_profile lacks;
        if (i == 0) lacks.first_loss = 7;
        if (i == 1) lacks.lost = seven;
        if (i == 2) lacks.unrecorded = 7;
        if (i == 3) lacks.perhaps_lost = 7;
        if (i == 4) lacks.damages = 7;
        const std::string text = text_of(lacks);
        BOOST_TEST(text.find("LOST") != std::string::npos, text);
        BOOST_TEST((i == 0 || text.find('7') != std::string::npos), text);
        // No call is in it: that may be for what is missing.
        BOOST_TEST(text.find("none recorded") != std::string::npos, text);
    }
}

BOOST_AUTO_TEST_CASE(only_names_that_are_mangled_are_demangled) {
    for (const char* const plain :
         {"f", "g", "i", "v", "Pi", "Sa", "main", "_Z", "_Zq", "_start", ""})
        BOOST_TEST(symbols::demangle(plain) == plain);
    BOOST_TEST(symbols::demangle("_Z1fi") == "f(int)");
    BOOST_TEST(symbols::demangle("_ZN1a1bEPKc.cold") == "a::b(char const*) [clone .cold]");
    for (const char* const none : {"_R", "_Rx", "_RNv", "R"})
        BOOST_TEST(symbols::demangle(none) == none);
    if (!symbols::reads_rust_names())
        return trace_ring_test::cannot_run("this was built without libiberty");
    BOOST_TEST(symbols::demangle("_RNvMNtCskK7mfDs1mzF_1m4shopINtB2_5OrderyE6handleB4_") ==
               "<m::shop::Order<u64>>::handle");
    // Each of its types is twice the one before.
    std::string endless = "INvC1a1b";
    std::string last = "u";
    for (int i = 0; i < 40; ++i) {
        const auto at = static_cast<int>(endless.size());
        endless += "T" + last + last + "E";
        constexpr std::string_view digits =
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const auto digit = [&](int of) { return std::string(1, digits[static_cast<size_t>(of)]); };
        last = "B" + (at > 62 ? digit((at - 1) / 62) : "") + digit((at - 1) % 62) + "_";
    }
    endless = "_R" + endless + "E";
    BOOST_TEST(symbols::demangle(endless.c_str()) == endless);
    BOOST_TEST(symbols::rust_name("_RINvC1a1bTuuETB7_B7_EE") ==
               "a::b::<((), ()), (((), ()), ((), ()))>");
}

BOOST_AUTO_TEST_CASE(the_peak_is_the_highest_sum_of_live_bytes_and_its_first_moment) {
    heap::ledger l;
    l.allocated(10, one, 0x100, 50, here);
    l.allocated(20, one, 0x200, 70, here);
    l.freed(30, 0x100);
    l.allocated(40, one, 0x300, 50, there);
    l.freed(50, 0x200);
    BOOST_TEST(l.sums().peak_bytes == 120U);
    BOOST_TEST(l.sums().peak_blocks == 2U);
    BOOST_TEST(l.sums().peak_time == 20U);
    BOOST_TEST(l.sums().live_bytes == 50U);
    BOOST_TEST(l.sums().live_blocks == 1U);
    BOOST_TEST(l.sums().allocated_bytes == 170U);
}

BOOST_AUTO_TEST_CASE(a_stack_s_share_of_the_peak_is_what_it_had_at_that_moment) {
    heap::ledger l;
    l.allocated(1, one, 0x100, 100, here);
    l.allocated(2, one, 0x200, 30, there);
    l.freed(3, 0x100);                      // 130 was the peak so far
    l.allocated(4, one, 0x300, 40, there);  // 70
    BOOST_TEST(l.by_stack()[here].peak_bytes == 100U);
    BOOST_TEST(l.by_stack()[there].peak_bytes == 30U);
    l.allocated(5, one, 0x400, 90, there);  // 160: a new peak
    l.freed(6, 0x400);
    BOOST_TEST(l.by_stack()[here].peak_bytes == 0U);
    BOOST_TEST(l.by_stack()[there].peak_bytes == 160U);
    BOOST_TEST(l.by_stack()[there].live_bytes == 70U);
    BOOST_TEST(l.by_stack()[there].calls == 3U);
}

BOOST_AUTO_TEST_CASE(realloc_replaces_its_block_in_one_step) {
    heap::ledger l;
    l.allocated(1, one, 0x100, 100, here);
    l.reallocated(2, one, 0x100, 0x200, 150, there);
    BOOST_TEST(l.sums().peak_bytes == 150U);
    BOOST_TEST(l.sums().live_blocks == 1U);
    BOOST_TEST(l.sums().frees == 1U);
    BOOST_TEST(l.sums().allocated_bytes == 250U);
    BOOST_TEST(l.by_stack()[here].live_bytes == 0U);
    BOOST_TEST(l.by_stack()[there].live_bytes == 150U);
    l.reallocated(3, one, 0x200, 0x200, 10, here);  // in place
    BOOST_TEST(l.sums().live_bytes == 10U);
}

BOOST_AUTO_TEST_CASE(realloc_has_its_special_cases) {
    heap::ledger l;
    l.reallocated(1, one, 0, 0x100, 100, here);       // as malloc
    l.reallocated(2, one, 0x100, 0, 1U << 30, here);  // failed: the block stays
    BOOST_TEST(l.sums().live_bytes == 100U);
    BOOST_TEST(l.sums().failed == 1U);
    l.reallocated(3, one, 0x100, 0, 0, here);  // as free
    BOOST_TEST(l.sums().live_bytes == 0U);
    BOOST_TEST(l.sums().failed == 1U);
    l.reallocated(4, one, 0x999, 0x200, 5, here);  // of a block nobody knows
    BOOST_TEST(l.sums().unknown_frees == 1U);
    BOOST_TEST(l.sums().live_bytes == 5U);
}

BOOST_AUTO_TEST_CASE(frees_of_null_and_of_unknown_addresses_are_counted_apart) {
    heap::ledger l;
    l.freed(1, 0);
    l.freed(2, 0x100);
    l.allocated(3, one, 0, 100, here);
    BOOST_TEST(l.sums().null_frees == 1U);
    BOOST_TEST(l.sums().unknown_frees == 1U);
    BOOST_TEST(l.sums().frees == 0U);
    BOOST_TEST(l.sums().failed == 1U);
    BOOST_TEST(l.sums().allocations == 0U);
}

BOOST_AUTO_TEST_CASE(ends_that_no_record_tells_are_counted) {
    heap::ledger l;
    for (int i = 0; i < 3; ++i) l.allocated(1, one, 0x100, 10, here);
    BOOST_TEST(l.sums().unseen_ends == 2U);
    BOOST_TEST(l.sums().live_bytes == 10U);
    l.freed(2, 0x100);
    l.freed(3, 0x100);  // of a block that another allocator handed out
    BOOST_TEST(l.sums().unknown_frees == 1U);
    BOOST_TEST(l.sums().unseen_ends == 2U);
    BOOST_TEST(l.sums().live_bytes == 0U);
}

BOOST_AUTO_TEST_CASE(an_address_handed_on_inside_a_realloc_is_no_unknown_free) {
    heap::ledger l;
    l.allocated(1, one, 0x100, 10, here);
    // Thread one's realloc has given 0x100 back, thread two gets it, then the realloc is recorded.
    l.allocated(2, two, 0x100, 20, there);
    l.reallocated(3, one, 0x100, 0x200, 30, here);
    BOOST_TEST(l.sums().live_bytes == 50U);
    BOOST_TEST(l.sums().live_blocks == 2U);
    BOOST_TEST(l.sums().reused == 1U);
    BOOST_TEST(l.sums().unseen_ends == 0U);
    l.freed(4, 0x100);
    l.freed(5, 0x200);
    BOOST_TEST(l.sums().live_bytes == 0U);
    BOOST_TEST(l.sums().unknown_frees == 0U);
    BOOST_TEST(l.by_stack()[here].live_bytes == 0U);
    BOOST_TEST(l.by_stack()[there].live_bytes == 0U);
}

BOOST_AUTO_TEST_CASE(the_new_owner_s_own_realloc_is_not_taken_for_the_old_one) {
    heap::ledger l;
    l.allocated(1, one, 0x100, 10, here);
    l.allocated(2, two, 0x100, 20, there);           // as above
    l.reallocated(3, two, 0x100, 0x300, 25, there);  // two moves its own block
    l.reallocated(4, one, 0x100, 0x200, 30, here);   // and only now one's is recorded
    BOOST_TEST(l.sums().live_bytes == 55U);
    BOOST_TEST(l.by_stack()[here].live_bytes == 30U);
    BOOST_TEST(l.by_stack()[there].live_bytes == 25U);
    BOOST_TEST(l.sums().unknown_frees == 0U);
}

BOOST_AUTO_TEST_CASE(a_child_inherits_what_is_live_and_nothing_else) {
    heap::ledger parent;
    parent.allocated(1, one, 0x100, 10, here);
    parent.allocated(2, one, 0x200, 20, there);
    parent.freed(3, 0x100);
    heap::ledger child;
    child.inherit(parent, 4);
    BOOST_TEST(child.sums().inherited_bytes == 20U);
    BOOST_TEST(child.sums().live_bytes == 20U);
    BOOST_TEST(child.sums().allocations == 0U);
    BOOST_TEST(child.sums().peak_bytes == 20U);
    child.allocated(5, one, 0x300, 1, here);
    child.freed(6, 0x200);
    BOOST_TEST(child.sums().live_bytes == 1U);
    BOOST_TEST(child.sums().live_inherited_bytes == 0U);
    BOOST_TEST(child.sums().unknown_frees == 0U);
    BOOST_TEST(child.sums().short_lived == 0U);  // its life began in the parent
    BOOST_TEST(parent.sums().live_bytes == 20U);
    BOOST_TEST(child.by_stack()[there].bytes == 0U);
}

BOOST_AUTO_TEST_CASE(short_lives_are_told_by_the_limit_given) {
    heap::ledger l(100);
    l.allocated(1000, one, 0x100, 10, here);
    l.freed(1100, 0x100);
    l.allocated(1000, one, 0x200, 20, here);
    l.freed(1101, 0x200);
    BOOST_TEST(l.sums().short_lived == 1U);
    BOOST_TEST(l.sums().short_lived_bytes == 10U);
}

BOOST_AUTO_TEST_CASE(sizes_are_counted_by_powers_of_two) {
    heap::ledger l;
    std::uint64_t address = 0x1000;
    for (const std::uint64_t bytes : {0ULL, 1ULL, 2ULL, 3ULL, 4ULL, 1023ULL, 1024ULL, ~0ULL}) {
        l.allocated(1, one, address += 16, bytes, here);
    }
    const auto& counts = l.size_counts();
    BOOST_TEST(counts[0] == 1U);
    BOOST_TEST(counts[1] == 1U);
    BOOST_TEST(counts[2] == 2U);
    BOOST_TEST(counts[3] == 1U);
    BOOST_TEST(counts[10] == 1U);
    BOOST_TEST(counts[11] == 1U);
    BOOST_TEST(counts[64] == 1U);
}

BOOST_AUTO_TEST_CASE(a_timeline_keeps_every_high_and_low_while_its_slices_widen) {
    heap::timeline t(8);
    for (std::uint64_t i = 0; i < 1000; ++i) t.add(5000 + i, i == 637 ? 1'000'000 : 100 + i % 2);
    BOOST_TEST(t.begin() == 5000U);
    BOOST_TEST(t.end() == 5999U);
    BOOST_TEST(t.width() == 128U);
    BOOST_REQUIRE(t.slices().size() == 8U);
    for (std::size_t i = 0; i < 8; ++i) {
        BOOST_TEST(t.slices()[i].low == 100U);
        BOOST_TEST(t.slices()[i].high == (i == 637 / 128 ? 1'000'000U : 101U));
        BOOST_TEST(t.slices()[i].last == 101U);
    }
}

BOOST_AUTO_TEST_CASE(a_timeline_tells_slices_without_a_change_and_takes_late_times_as_they_come) {
    heap::timeline t(8);
    t.add(100, 7);
    t.add(105, 9);
    t.add(90, 8);
    BOOST_REQUIRE(t.slices().size() == 6U);
    BOOST_TEST(!t.slices()[0].empty());
    for (std::size_t i = 1; i < 5; ++i) BOOST_TEST(t.slices()[i].empty());
    BOOST_TEST(t.slices()[5].low == 8U);
    BOOST_TEST(t.slices()[5].last == 8U);
}

BOOST_AUTO_TEST_CASE(a_return_address_belongs_to_the_object_of_the_call_before_it) {
    heap::code_map map;
    map.add(0x1000, 0x2000, 0x1000, 1);
    map.add(0x2000, 0x3000, 0x800, 2);
    BOOST_TEST((map.find(0x1800) == heap::frame{1, 0x800}));
    BOOST_TEST((map.find(0x2000) == heap::frame{1, 0x1000}));  // a call at the very end
    BOOST_TEST((map.find(0x2001) == heap::frame{2, 0x1801}));
    BOOST_TEST((map.find(0x1000) == heap::frame{0, 0x1000}));
    BOOST_TEST((map.find(0x3001) == heap::frame{0, 0x3001}));
    BOOST_TEST((map.find(0) == heap::frame{0, 0}));
}

BOOST_AUTO_TEST_CASE(an_object_that_comes_in_the_place_of_others_replaces_them) {
    heap::code_map map;
    map.add(0x1000, 0x2000, 0, 1);
    map.add(0x2000, 0x3000, 0, 2);
    map.add(0x4000, 0x5000, 0, 3);
    map.add(0x1800, 0x2800, 0, 4);
    BOOST_TEST(map.find(0x1100).object == 0U);
    BOOST_TEST(map.find(0x1900).object == 4U);
    BOOST_TEST(map.find(0x2900).object == 0U);
    BOOST_TEST(map.find(0x4100).object == 3U);
}

BOOST_AUTO_TEST_CASE(the_same_addresses_are_another_stack_once_other_code_lies_there) {
    heap::stack_table table;
    heap::process_stacks stacks(table);
    stacks.add(0x1000, 0x2000, 0, {"first.so", ""});
    const std::array<std::uint64_t, 2> raw{0x1100, 0x1200};
    const auto before = stacks.find(raw);
    BOOST_TEST(stacks.find(raw) == before);
    stacks.add(0x1000, 0x2000, 0, {"second.so", ""});
    const auto after = stacks.find(raw);
    BOOST_TEST(after != before);
    BOOST_TEST(table.object(table.stack(before)[0].object).path == "first.so");
    BOOST_TEST(table.object(table.stack(after)[1].object).path == "second.so");
    // In another process, elsewhere in memory, it is the same stack.
    heap::process_stacks other(table);
    other.add(0x71000, 0x72000, 0x70000, {"first.so", ""});
    const std::array<std::uint64_t, 2> moved{0x71100, 0x71200};
    BOOST_TEST(other.find(moved) == before);
}

BOOST_AUTO_TEST_CASE(functions_that_allocate_for_others_are_known_by_name) {
    for (const char* name :
         {"operator new", "operator new[]", "std::vector<>::_M_realloc_insert<>", "xmalloc",
          "void std::vector<>::push_back()", "char* std::string::_S_construct<>()", "strdup",
          "__gnu_cxx::new_allocator<>::allocate", "PyMem_RawMalloc"}) {
        BOOST_TEST(heap::allocates_for_others(name), name);
    }
    for (const char* name :
         {"std::thread::_State_impl<>::_M_run", "void std::__invoke_impl<>", "my::std_thing",
          "mystd::f", "main", "my_malloc_user", "stdlib_thing", "operator+", ""}) {
        BOOST_TEST(!heap::allocates_for_others(name), name);
    }
}

BOOST_AUTO_TEST_CASE(names_are_shown_without_what_stands_in_brackets) {
    using heap::without_arguments;
    BOOST_TEST(without_arguments("main") == "main");
    BOOST_TEST(without_arguments("f(int, std::vector<int>)") == "f()");
    BOOST_TEST(without_arguments("std::map<int, std::set<long> >::insert(int)") ==
               "std::map<>::insert()");
    BOOST_TEST(without_arguments("(anonymous namespace)::f(int)") == "(anonymous namespace)::f()");
    BOOST_TEST(without_arguments("A::operator<<(int)") == "A::operator<<()");
    BOOST_TEST(without_arguments("A::operator->()") == "A::operator->()");
    BOOST_TEST(without_arguments("A::operator()(int)") == "A::operator()()");
}

BOOST_AUTO_TEST_CASE(a_place_in_this_program_has_its_function_s_name) {
    heap::stack_table table;
    heap::symbolizer symbols;
    const auto id = table.intern(heap::object_file{"/proc/self/exe", "another build"});
    BOOST_TEST(symbols.find(table, {id, 0x1234}).back().name() == "exe+0x1234");
    BOOST_TEST(symbols.problems().at("/proc/self/exe") == "has changed since the trace was made");
    const auto missing = table.intern(heap::object_file{"/nowhere/lib.so", ""});
    BOOST_TEST(symbols.find(table, {missing, 0x10}).back().name() == "lib.so+0x10");
    BOOST_TEST(symbols.problems().contains("/nowhere/lib.so"));
    BOOST_TEST(symbols.find(table, {0, 0x77}).back().name() == "0x77");
}

BOOST_AUTO_TEST_CASE(amounts_have_three_digits) {
    BOOST_TEST(heap::bytes_text(0) == "0 B");
    BOOST_TEST(heap::bytes_text(1023) == "1023 B");
    BOOST_TEST(heap::bytes_text(1024) == "1.00 KiB");
    BOOST_TEST(heap::bytes_text(10239) == "10.0 KiB");
    BOOST_TEST(heap::bytes_text(1023 * 1024) == "1.00 MiB");
    BOOST_TEST(heap::bytes_text(123 * 1024 * 1024) == "123 MiB");
    BOOST_TEST(heap::bytes_text(~0ULL) == "16.0 EiB");
    BOOST_TEST(heap::count_text(999) == "999");
    BOOST_TEST(heap::count_text(1234567) == "1,234,567");
    BOOST_TEST(heap::share_text(1, 8) == "12.5 %");
    BOOST_TEST(heap::share_text(0, 0) == "-");
}

BOOST_AUTO_TEST_CASE(an_axis_has_round_marks_and_reaches_the_top) {
    const auto bytes = heap::bytes_axis(7000000);
    BOOST_TEST(bytes.unit == "MiB");
    BOOST_TEST(bytes.top >= 7000000);
    BOOST_TEST(bytes.marks.size() >= 4U);
    BOOST_TEST(bytes.marks.size() <= 8U);
    BOOST_TEST(bytes.marks[0].text == "0");
    BOOST_TEST(bytes.marks[1].text == "2");
    for (const std::uint64_t top : {1ULL, 9ULL, 1000ULL, 1ULL << 20, 1ULL << 43, ~0ULL}) {
        const auto a = heap::bytes_axis(top);
        BOOST_TEST(a.top >= static_cast<double>(top) * 0.999);
        BOOST_TEST(a.marks.size() <= 8U);
        const auto t = heap::time_axis(top);
        BOOST_TEST(t.marks.size() <= 12U);
        BOOST_TEST(t.top >= static_cast<double>(top) * 0.999);
    }
}

BOOST_AUTO_TEST_CASE(a_text_too_wide_is_cut_in_the_middle) {
    BOOST_TEST(heap::fitted("abcdef", 6) == "abcdef");
    BOOST_TEST(heap::fitted("abcdefghij", 8) == "abc..hij");
    BOOST_TEST(heap::fitted("abcdefghij", 3) == "abc");
}

BOOST_AUTO_TEST_CASE(a_picture_names_its_curves_and_its_peak_and_escapes_what_it_must) {
    heap::timeline values;
    values.add(1'000'000'000, 100);
    values.add(2'000'000'000, 5000);
    values.add(3'000'000'000, 0);
    const std::string svg =
        heap::draw("a <b> & \"c\"", {{"p<1>", &values, 4'000'000'000, 5000, 2'000'000'000}});
    BOOST_TEST(svg.starts_with("<svg "));
    BOOST_TEST(svg.ends_with("</svg>\n"));
    BOOST_TEST(svg.find("a &lt;b&gt; &amp; &quot;c&quot;") != std::string::npos);
    BOOST_TEST(svg.find("p&lt;1&gt;") != std::string::npos);
    BOOST_TEST(svg.find("peak 4.88 KiB at 1.000 s") != std::string::npos);
    BOOST_TEST(svg.find("nan") == std::string::npos);
    BOOST_TEST(svg.find("inf") == std::string::npos);
    const std::string empty = heap::draw("nothing", {});
    BOOST_TEST(empty.ends_with("</svg>\n"));
    BOOST_TEST(empty.find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
