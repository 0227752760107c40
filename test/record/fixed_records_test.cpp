// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The fixed-size records and the data models. Their sizes and offsets are asserted where they are
// defined; here is what they do.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <boost/test/unit_test.hpp>

#include <trace_ring/record/branch_record.hpp>
#include <trace_ring/record/cp_entry.hpp>
#include <trace_ring/record/das_entry.hpp>
#include <trace_ring/record/data_model.hpp>

BOOST_AUTO_TEST_SUITE(fixed_records)

namespace record = trace_ring::record;

namespace {

template <class... Bytes>
constexpr std::array<std::byte, sizeof...(Bytes)> bytes(Bytes... values) {
    return {static_cast<std::byte>(values)...};
}

// A structure as a traced program lays it out: a pointer, then an unsigned long.
template <record::data_model Model>
struct action {
    alignas(Model::pointer_alignment) typename Model::pointer_type handler;
    alignas(Model::long_alignment) typename Model::ulong_type mask;
};

struct no_pointer_alignment : record::lp64 {
    static constexpr std::size_t pointer_alignment = 0;
};
struct long_of_another_size : record::lp64 {
    using long_type = std::int32_t;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_two_models_place_a_long_after_a_pointer_where_their_programs_do) {
    static_assert(offsetof(action<record::ilp32>, mask) == 4);
    static_assert(sizeof(action<record::ilp32>::mask) == 4);
    static_assert(sizeof(action<record::ilp32>) == 8);
    static_assert(offsetof(action<record::lp64>, mask) == 8);
    static_assert(sizeof(action<record::lp64>::mask) == 8);
    static_assert(sizeof(action<record::lp64>) == 16);
    // The host's own compiler agrees with the model that it is said to follow.
    struct host {
        void* handler;
        unsigned long mask;
    };
    BOOST_TEST(offsetof(host, mask) == offsetof(action<record::host_model>, mask));
    BOOST_TEST(sizeof(host) == sizeof(action<record::host_model>));
}

BOOST_AUTO_TEST_CASE(a_type_that_contradicts_itself_is_no_data_model) {
    static_assert(record::data_model<record::ilp32> && record::data_model<record::lp64>);
    static_assert(!record::data_model<no_pointer_alignment>);
    static_assert(!record::data_model<long_of_another_size>);
    static_assert(!record::data_model<int>);
    BOOST_TEST(static_cast<int>(record::ilp32::mode) == 1);
    BOOST_TEST(static_cast<int>(record::lp64::mode) == 0);
}

BOOST_AUTO_TEST_CASE(words_of_a_guest_lie_big_endian_at_any_offset) {
    std::array<std::byte, 16> memory{};
    record::store_big<std::uint16_t>(memory, 1, 0xABCD);
    record::store_big<std::uint32_t>(memory, 3, 0x00010020);
    record::store_big<std::uint64_t>(memory, 7, 0x0123456789ABCDEF);
    const auto expected = bytes(0, 0xAB, 0xCD, 0x00, 0x01, 0x00, 0x20,  //
                                0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0);
    BOOST_TEST((memory == expected));
    BOOST_TEST(record::load_big<std::uint16_t>(memory, 1) == 0xABCD);
    BOOST_TEST(record::load_big<std::uint32_t>(memory, 3) == 0x00010020U);
    BOOST_TEST(record::load_big<std::uint64_t>(memory, 7) == 0x0123456789ABCDEFU);
}

BOOST_AUTO_TEST_CASE(a_whole_word_swapped_to_big_endian_lies_as_store_big_lays_it) {
    std::array<std::byte, 4> stored{};
    record::store_big<std::uint32_t>(stored, 0, 0x80020008);
    const std::uint32_t word = record::big_endian(0x80020008);
    BOOST_TEST(std::memcmp(stored.data(), &word, 4) == 0);
    BOOST_TEST(record::big_endian(word) == 0x80020008U);
}

BOOST_AUTO_TEST_CASE(a_das_entry_packs_values_without_gaps_and_gives_them_back) {
    record::das_entry entry;
    entry.fill(std::uint8_t{0x11}, std::uint32_t{0x22222222}, 1.5, "abc");
    BOOST_TEST(std::to_integer<int>(entry.payload[0]) == 0x11);
    BOOST_TEST(std::to_integer<int>(entry.payload[1]) == 0x22);
    BOOST_TEST(std::memcmp(entry.payload + 13, "abc", 4) == 0);

    std::uint8_t device = 0;
    std::uint32_t program = 0;
    double time = 0;
    char name[4] = {};
    entry.unpack(device, program, time, name);
    BOOST_TEST(device == 0x11);
    BOOST_TEST(program == 0x22222222U);
    BOOST_TEST(time == 1.5);
    BOOST_TEST(name == "abc");
}

BOOST_AUTO_TEST_CASE(a_das_entry_holds_exactly_32_bytes_of_values) {
    struct half {
        std::uint8_t bytes[16];
    };
    half low{}, high{};
    low.bytes[0] = 1;
    high.bytes[15] = 2;
    record::das_entry entry;
    entry.fill(low, high);
    BOOST_TEST(std::to_integer<int>(entry.payload[0]) == 1);
    BOOST_TEST(std::to_integer<int>(entry.payload[31]) == 2);
    half low_again{}, high_again{};
    entry.unpack(low_again, high_again);
    BOOST_TEST(low_again.bytes[0] == 1);
    BOOST_TEST(high_again.bytes[15] == 2);
}

BOOST_AUTO_TEST_CASE(filling_a_das_entry_again_leaves_nothing_of_what_was_there) {
    record::das_entry entry;
    entry.fill(~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0});
    entry.fill(std::uint16_t{0xFFFF});
    record::das_entry expected;
    expected.payload[0] = expected.payload[1] = std::byte{0xFF};
    BOOST_TEST((entry == expected));
    entry.fill();
    BOOST_TEST((entry == record::das_entry{}));
}

BOOST_AUTO_TEST_CASE(branch_records_read_as_the_processor_writes_them) {
    // from, to, flags, little-endian; bit 4 of the flags set in the first, all the others in the
    // second.
    alignas(8) const auto narrow = bytes(0x00, 0x10, 0x40, 0x00, 0x78, 0x56, 0x34, 0x12,  //
                                         0x10, 0x00, 0x00, 0x00);
    alignas(8) const auto wide = bytes(0x00, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00,  //
                                       0x78, 0x56, 0x34, 0x12, 0xFF, 0x7F, 0x00, 0x00,  //
                                       0xEF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF);
    record::branch_record32 first;
    std::memcpy(&first, narrow.data(), sizeof first);
    BOOST_TEST(first.from == 0x00401000U);
    BOOST_TEST(first.to == 0x12345678U);
    BOOST_TEST(first.predicted());
    record::branch_record64 second;
    std::memcpy(&second, wide.data(), sizeof second);
    BOOST_TEST(second.from == 0x00401000U);
    BOOST_TEST(second.to == 0x00007FFF12345678U);
    BOOST_TEST(!second.predicted());
}

BOOST_AUTO_TEST_CASE(a_branch_record_is_padding_only_if_both_addresses_are_zero) {
    BOOST_TEST((record::branch_record64{0, 0, 0x10}.padding()));
    BOOST_TEST(!(record::branch_record64{0, 1, 0}.padding()));  // a trace begins
    BOOST_TEST(!(record::branch_record64{1, 0, 0}.padding()));  // a trace ends
}

BOOST_AUTO_TEST_CASE(a_cp_entry_tells_the_event_and_the_processor_from_one_byte) {
    record::cp_entry entry;
    entry.set(record::cp_event::start_io);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x0B);
    BOOST_TEST(!entry.attached());
    entry.set(record::cp_event::start_io, true);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x4B);
    BOOST_TEST(entry.attached());
    BOOST_TEST((entry.event() == record::cp_event::start_io));
    entry.set(record::cp_event::unstack_block);
    BOOST_TEST(std::to_integer<int>(entry.code) == 0x10);
}

BOOST_AUTO_TEST_CASE(every_code_from_01_to_18_is_a_cp_event_and_no_other_is) {
    int events = 0;
    for (unsigned code = 0; code < 256; ++code) {
        record::cp_entry entry;
        entry.code = static_cast<std::byte>(code);
        const bool expected = (code & 0xBF) >= 0x01 && (code & 0xBF) <= 0x18;
        BOOST_TEST(known(entry.event()) == expected, "code " << code);
        BOOST_TEST(entry.attached() == ((code & 0x40) != 0), "code " << code);
        events += known(entry.event()) ? 1 : 0;
    }
    BOOST_TEST(events == 2 * 24);
}

BOOST_AUTO_TEST_SUITE_END()
