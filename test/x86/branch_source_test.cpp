// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The neutral branch record, and sources of other processors as models of the concept.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/x86/branch_source.hpp>

#include <x86/foreign.hpp>

BOOST_AUTO_TEST_SUITE(x86_branch_source)

namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using x86::branch;
using x86::branch_kind;
using x86::branch_privilege;

static_assert(x86::branch_source<foreign::register_stack>);
static_assert(x86::branch_source<foreign::one_sided>);

namespace {

struct no_gaps {
    static constexpr x86::branch_character character{};
    template <class Visit>
    std::uint64_t read(Visit&& visit) {
        visit(branch{});
        return 1;
    }
    [[nodiscard]] bool ended() const noexcept { return true; }
};
struct ends_by_throwing : foreign::register_stack {
    [[nodiscard]] bool ended() const { return false; }
};
struct no_constant {
    x86::branch_character character{};
    template <class Visit>
    std::uint64_t read(Visit&&) {
        return 0;
    }
    [[nodiscard]] bool ended() const noexcept { return true; }
    [[nodiscard]] tr::loss_counts lost() const { return {}; }
};
static_assert(!x86::branch_source<no_gaps>);
static_assert(!x86::branch_source<ends_by_throwing>);
static_assert(!x86::branch_source<no_constant>);
static_assert(!x86::branch_source<int>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_of_two_addresses_says_nothing_else) {
    constexpr branch one(0x1000, 0x2000);
    static_assert(one.complete() && one.from() == 0x1000 && one.to() == 0x2000);
    BOOST_TEST(!one.has_prediction());
    BOOST_TEST(!one.has_cycles());
    BOOST_TEST(one.thread() == 0U);
    BOOST_TEST((one.kind() == branch_kind::unknown));
    BOOST_TEST((one.privilege() == branch_privilege::unknown));
}

BOOST_AUTO_TEST_CASE(each_field_is_set_without_a_change_of_another) {
    branch one(~std::uint64_t{0}, 1, branch_kind::call);
    for (const auto privilege :
         {branch_privilege::hypervisor, branch_privilege::kernel, branch_privilege::user}) {
        one.set_privilege(privilege);
        BOOST_TEST((one.privilege() == privilege));
        BOOST_TEST(one.complete());
    }
    one.set_predicted(true);
    BOOST_TEST((one.has_prediction() && one.predicted() && !one.has_cycles()));
    one.set_predicted(false);
    BOOST_TEST((one.has_prediction() && !one.predicted()));
    one.set_cycles(0xFFFF).set_thread(77);
    BOOST_TEST((one.has_cycles() && one.cycles() == 0xFFFF && one.thread() == 77));
    BOOST_TEST((one.privilege() == branch_privilege::user && one.kind() == branch_kind::call));
    BOOST_TEST((one.from() == ~std::uint64_t{0} && one.to() == 1));
    BOOST_TEST((branch(1, 2) != branch(1, 2, branch_kind::jump)));
}

BOOST_AUTO_TEST_CASE(an_address_of_zero_is_not_an_address_that_is_absent) {
    BOOST_TEST(branch(0, 5).has_from());
    BOOST_TEST((branch(0, 5) != branch::only_to(5)));
    BOOST_TEST((branch(5, 0) != branch::only_from(5)));
    BOOST_TEST((!branch::only_to(5).has_from() && branch::only_to(5).to() == 5));
    BOOST_TEST((!branch::only_from(5).has_to() && branch::only_from(5).from() == 5));
    BOOST_TEST(!branch{}.complete());
}

BOOST_AUTO_TEST_CASE(kinds_have_names_and_those_of_instructions_are_told_apart) {
    unsigned instructions = 0;
    for (std::size_t i = 0; i < x86::branch_kind_count; ++i) {
        const auto kind = static_cast<branch_kind>(i);
        BOOST_TEST((!x86::to_string(kind).empty() && x86::to_string(kind) != "invalid"));
        instructions += x86::is_branch_instruction(kind) ? 1U : 0U;
        BOOST_TEST((!x86::is_call(kind) || x86::is_branch_instruction(kind)));
    }
    BOOST_TEST(instructions == 6U);
    BOOST_TEST(!x86::is_branch_instruction(branch_kind::unknown));
    BOOST_TEST(!x86::is_branch_instruction(branch_kind::system_call));
    BOOST_TEST((x86::to_string(static_cast<branch_kind>(x86::branch_kind_count)) == "invalid"));
    BOOST_TEST((x86::to_string(branch_kind::other) == "other"));
}

BOOST_AUTO_TEST_CASE(a_register_stack_is_read_newest_first_and_tells_what_it_no_longer_has) {
    foreign::register_stack stack;
    for (std::uint64_t i = 0; i < 20; ++i) stack.push(branch(i, i + 1));
    std::vector<std::uint64_t> from;
    std::uint64_t missing = 0;
    const std::uint64_t seen =
        stack.read(x86::visiting{[&](const branch& one) { from.push_back(one.from()); },
                                 [&](const x86::branch_gap& gap) { missing += gap.count; }});
    BOOST_TEST(seen == 16U);
    BOOST_TEST(missing == 4U);
    BOOST_TEST(stack.lost()[tr::loss_cause::overwritten] == 4U);
    for (std::size_t i = 0; i < from.size(); ++i) BOOST_TEST(from[i] == 19 - i);
    BOOST_TEST(stack.read(x86::impl::any_branch_visitor{}) == 0U);
}

BOOST_AUTO_TEST_CASE(records_of_one_side_alone_stay_what_they_are) {
    foreign::one_sided source;
    source.entries = {{0x10, 0x20, 3, 7, branch_kind::call, branch_privilege::user},
                      {0x30, 0xBAD, 2, 0, branch_kind::system_call, branch_privilege::user},
                      {0xBAD, 0x40, 1, 0, branch_kind::system_return, branch_privilege::kernel}};
    std::vector<branch> got;
    BOOST_TEST(source.read(x86::visiting{[&](const branch& one) { got.push_back(one); },
                                         [](const x86::branch_gap&) {}}) == 3U);
    BOOST_REQUIRE(got.size() == 3U);
    BOOST_TEST((!got[0].has_from() && got[0].from() == 0 && got[0].to() == 0x40));
    BOOST_TEST((!got[1].has_to() && got[1].to() == 0 && got[1].from() == 0x30));
    BOOST_TEST((got[2].complete() && got[2].cycles() == 7 && !got[1].has_cycles()));
    BOOST_TEST((got[0].privilege() == branch_privilege::kernel));
    BOOST_TEST(source.ended());
}

BOOST_AUTO_TEST_SUITE_END()
