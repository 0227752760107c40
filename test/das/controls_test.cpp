// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The advance rule by itself: both forms, both wrap tests, 32-bit words to the bit and host words
// of other widths; and the claims that bring it to the rings of a host.

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/das/control_words.hpp>
#include <trace_ring/das/controls.hpp>

BOOST_AUTO_TEST_SUITE(das_controls)

namespace claim = trace_ring::claim;

namespace {

using controls = claim::controls<std::uint32_t>;

template <class Rule, class Word>
std::vector<Word> entries(claim::controls<Word> at, Word size, int count) {
    std::vector<Word> used;
    for (int i = 0; i < count; ++i) {
        const auto next = Rule::advance(at, size);
        used.push_back(next.entry);
        at.current = next.current;
    }
    return used;
}

using words = std::vector<std::uint32_t>;

// As much of a ring's table as a claim by control words asks for.
struct table {
    std::array<std::byte, 5 * 32> bytes;

    [[nodiscard]] std::uint64_t capacity() const noexcept { return 5; }
    [[nodiscard]] std::byte* base() noexcept { return bytes.data(); }
    [[nodiscard]] std::uint32_t stride() const noexcept { return 32; }
};

using claims =
    std::tuple<claim::das_pointers, claim::das_offsets, claim::cp_pointers, claim::cp_offsets>;

}  // namespace

BOOST_AUTO_TEST_CASE(pre_increment_uses_the_entry_after_the_one_last_used) {
    const auto used =
        entries<claim::das_rule>(controls{0x00010000, 0x00010000, 0x00010060}, 32U, 4);
    const words expected{0x00010020, 0x00010040, 0x00010000, 0x00010020};
    BOOST_TEST(used == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(post_increment_uses_the_entry_that_current_designates) {
    const auto used = entries<claim::cp_rule>(controls{0x00020030, 0x00020000, 0x00020040}, 16U, 6);
    const words expected{0x00020030, 0x00020000, 0x00020010, 0x00020020, 0x00020030, 0x00020000};
    BOOST_TEST(used == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(either_form_goes_with_either_wrap_test) {
    const controls at{0x20, 0x00, 0x40};
    BOOST_TEST((claim::pre_increment<claim::at_or_past>::advance(at, 32U) ==
                claim::step<std::uint32_t>{0x00, 0x00}));
    BOOST_TEST((claim::pre_increment<claim::only_at>::advance(at, 32U) ==
                claim::step<std::uint32_t>{0x00, 0x00}));
    BOOST_TEST((claim::post_increment<claim::at_or_past>::advance(at, 32U) ==
                claim::step<std::uint32_t>{0x20, 0x00}));
    BOOST_TEST((claim::post_increment<claim::only_at>::advance(at, 32U) ==
                claim::step<std::uint32_t>{0x20, 0x00}));
}

BOOST_AUTO_TEST_CASE(past_the_end_one_wrap_test_wraps_and_the_other_runs_on) {
    const controls at{0x40, 0x00, 0x50};  // the table is no multiple of 32 long
    BOOST_TEST(claim::pre_increment<claim::at_or_past>::advance(at, 32U).current == 0x00U);
    BOOST_TEST(claim::pre_increment<claim::only_at>::advance(at, 32U).current == 0x60U);
    BOOST_TEST(claim::post_increment<claim::at_or_past>::advance(at, 32U).current == 0x00U);
    BOOST_TEST(claim::post_increment<claim::only_at>::advance(at, 32U).current == 0x60U);
}

BOOST_AUTO_TEST_CASE(the_addition_drops_its_carry_and_the_compare_is_unsigned) {
    BOOST_TEST(claim::das_rule::advance(controls{0xFFFFFFE0, 0x10000, 0x10060}, 32U).current == 0U);
    BOOST_TEST(claim::das_rule::advance(controls{0x7FFFFFE0, 0x10000, 0x10060}, 32U).current ==
               0x10000U);
    BOOST_TEST(claim::das_rule::advance(controls{0x7FFFFFE0, 0x10000, 0x90000000}, 32U).current ==
               0x80000000U);
}

BOOST_AUTO_TEST_CASE(eight_bit_words_follow_the_rule_for_every_current_and_last) {
    // Small enough to try them all against arithmetic that is done another way.
    int wrapped = 0;
    for (int current = 0; current < 256; ++current) {
        for (int last = 0; last < 256; ++last) {
            const claim::controls<std::uint8_t> at{static_cast<std::uint8_t>(current), 7,
                                                   static_cast<std::uint8_t>(last)};
            const int next = (current + 32) % 256;
            const int das = next < last ? next : 7;
            const int cp = next != last ? next : 7;
            const auto das_step = claim::das_rule::advance(at, std::uint8_t{32});
            const auto cp_step = claim::cp_rule::advance(at, std::uint8_t{32});
            if (das_step.entry != das || das_step.current != das || cp_step.entry != current ||
                cp_step.current != cp)
                BOOST_ERROR("current " << current << ", last " << last);
            wrapped += next >= last ? 1 : 0;
        }
    }
    BOOST_TEST(wrapped > 1000);
}

BOOST_AUTO_TEST_CASE(the_same_rule_runs_through_an_array_by_host_pointers) {
    struct alignas(32) record {
        char bytes[32];
    };
    static record table[5];
    const auto address = [](const record* p) { return reinterpret_cast<std::uintptr_t>(p); };
    // Current one before the first, so that the first is used first.
    claim::controls<std::uintptr_t> at{address(table) - sizeof(record), address(table),
                                       address(table + 5)};
    const auto used = entries<claim::das_rule>(at, std::uintptr_t{sizeof(record)}, 12);
    for (std::size_t i = 0; i < used.size(); ++i)
        BOOST_TEST(used[i] == address(table + i % 5), "step " << i);
}

BOOST_AUTO_TEST_CASE(a_new_current_stands_only_on_a_32_byte_boundary) {
    for (std::uint32_t low = 0; low < 64; ++low)
        BOOST_TEST(claim::on_entry_boundary(0x00010000 + low) == (low == 0 || low == 32));
}

BOOST_AUTO_TEST_CASE(bits_8_to_26_address_the_entry) {
    BOOST_TEST(claim::entry_address(0xFFFFFFFF) == 0x00FFFFE0U);
    BOOST_TEST(claim::entry_address(0x01010020) == 0x00010020U);
}

BOOST_AUTO_TEST_CASE(in_the_esa_390_form_a_page_ends_the_table) {
    const controls at{0x00012FE0, 0, 0};
    BOOST_TEST((claim::esa390_rule::advance(at, 16U) ==
                claim::step<std::uint32_t>{0x00012FE0, 0x00012FF0}));
    BOOST_TEST(!claim::reaches_page_end(0x00012FE0U, 16U));
    BOOST_TEST(claim::reaches_page_end(0x00012FF0U, 16U));  // reaches it
    BOOST_TEST(claim::reaches_page_end(0x00012FF8U, 16U));  // passes it
    BOOST_TEST(!claim::reaches_page_end(0x00013000U, 16U));
}

BOOST_AUTO_TEST_CASE(an_unused_table_has_a_current_from_which_its_first_entry_is_used_first) {
    const auto first_used = [](auto rule, std::uint32_t first, std::uint32_t last) {
        const auto current = rule.before(first, last, 32U);
        return rule.advance(controls{current, first, last}, 32U).entry;
    };
    for (const std::uint32_t first : {0U, 0x10000U, 0xFFFFFF00U}) {
        const std::uint32_t last = first + 96;
        BOOST_TEST(first_used(claim::pre_increment<claim::at_or_past>{}, first, last) == first);
        BOOST_TEST(first_used(claim::pre_increment<claim::only_at>{}, first, last) == first);
        BOOST_TEST(first_used(claim::post_increment<claim::at_or_past>{}, first, last) == first);
        BOOST_TEST(first_used(claim::post_increment<claim::only_at>{}, first, last) == first);
    }
}

// The claims of host rings.

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ring_claimed_by_control_words_uses_its_slots_in_turn, claim_policy,
                              claims) {
    table t;
    claim::line line{};
    claim_policy::prepare(line, t);
    BOOST_TEST(claim_policy::newest(line, t) == 4U);
    for (std::uint64_t i = 0; i < 13; ++i) {
        const auto taken = claim_policy::take(line, t);
        BOOST_TEST_REQUIRE(static_cast<bool>(taken));
        BOOST_TEST(taken.index == i % 5);
        BOOST_TEST(taken.pos == trace_ring::no_position);
        BOOST_TEST(claim_policy::newest(line, t) == i % 5);
    }
}

BOOST_AUTO_TEST_CASE(the_control_words_of_a_ring_stand_as_the_original_ones_would) {
    table t;
    const auto base = reinterpret_cast<std::uintptr_t>(t.base());
    const auto size = std::uintptr_t{32};
    claim::line line{};
    claim::das_pointers::prepare(line, t);
    for (int i = 0; i < 7; ++i) (void)claim::das_pointers::take(line, t);
    BOOST_TEST((claim::das_pointers::look(line) ==
                claim::controls<std::uintptr_t>{base + size, base, base + 5 * size}));

    claim::line other{};
    claim::cp_offsets::prepare(other, t);
    for (int i = 0; i < 7; ++i) (void)claim::cp_offsets::take(other, t);
    BOOST_TEST((claim::cp_offsets::look(other) == controls{64, 0, 160}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(threads_that_claim_by_control_words_share_every_lap_out, claim_policy,
                              claims) {
    constexpr std::size_t threads = 4, each = 5'000;
    table t;
    claim::line line{};
    claim_policy::prepare(line, t);
    std::array<std::array<std::size_t, 5>, threads> used{};
    std::vector<std::thread> running;
    for (std::size_t n = 0; n < threads; ++n)
        running.emplace_back([&, n] {
            for (std::size_t i = 0; i < each; ++i) {
                if (i % 64 == 0) std::this_thread::yield();
                ++used[n].at(static_cast<std::size_t>(claim_policy::take(line, t).index));
            }
        });
    for (auto& thread : running) thread.join();
    for (std::size_t slot = 0; slot < 5; ++slot) {
        std::size_t sum = 0;
        for (const auto& by_one : used) sum += by_one[slot];
        BOOST_TEST(sum == threads * each / 5);
    }
}

BOOST_AUTO_TEST_SUITE_END()
