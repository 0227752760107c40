// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The kind of a file is detected from its content alone, by what every kind must have.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/core/core_builder.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/kinds/file_kind.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

BOOST_AUTO_TEST_SUITE(kinds_by_bytes)

using namespace trace_ring_test;
namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;
using trace_reduce::file_kind;

namespace {

/// Bytes on a boundary of 8.
class held {
public:
    explicit held(std::span<const std::byte> bytes) : words_((bytes.size() + 7) / 8) {
        std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(words_)).begin());
        bytes_ = std::as_bytes(std::span(words_)).first(bytes.size());
    }
    explicit held(std::string_view text) : held(std::as_bytes(std::span(text))) {}
    [[nodiscard]] file_kind kind() const { return trace_reduce::recognise(source()); }
    [[nodiscard]] std::string refusal() const {
        try {
            static_cast<void>(kind());
        } catch (const trace_ring::format_error& error) {
            return error.what();
        }
        return "none";
    }

private:
    [[nodiscard]] reduce::source source() const { return reduce::source::from(bytes_, "it"); }
    std::vector<std::uint64_t> words_;
    std::span<const std::byte> bytes_;
};

std::vector<std::byte> spool_of(record::cptrap_type type, std::span<const std::byte> data,
                                std::size_t pages = 1) {
    std::vector<std::byte> out;
    std::array<std::byte, record::cptrap_most_bytes> one{};
    const std::size_t size = record::put_cptrap(one, type, 3, data);
    for (std::size_t i = 0; i < pages; ++i) {
        record::spool_page page;
        page.add(std::span(one).first(size));
        out.insert(out.end(), page.bytes().begin(), page.bytes().end());
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_kind_is_told_by_its_beginning) {
    const file_builder trace;
    BOOST_CHECK(held(trace.bytes()).kind() == file_kind::trace);
    BOOST_CHECK(held(trace.bytes().first(8)).kind() == file_kind::trace);
    BOOST_CHECK(held("GNRecart").kind() == file_kind::trace);  // of the other byte order
    for (const bool wide : {true, false}) {
        core_builder core(wide);
        const auto bytes = core.memory(0x1000, trace.bytes()).build();
        BOOST_CHECK(held(std::as_bytes(std::span(bytes))).kind() == file_kind::core);
    }
    using type = record::cptrap_type;
    for (const std::size_t length : {0U, 1U, 264U}) {
        const std::vector<std::byte> data(length, std::byte{9});
        BOOST_CHECK(held(spool_of(type::cp_interface, data)).kind() == file_kind::spool);
    }
    const std::vector<std::byte> entry(16, std::byte{1}), count(8);
    BOOST_CHECK(held(spool_of(type::table_entry, entry)).kind() == file_kind::spool);
    BOOST_CHECK(held(spool_of(type::lost, count)).kind() == file_kind::spool);
    BOOST_CHECK(held(spool_of(type{0xC9}, entry)).kind() == file_kind::spool);
    // The beginning alone, as of a file that is being written.
    const auto torn = spool_of(type::cp_interface, entry);
    BOOST_CHECK(held(std::span(torn).first(24)).kind() == file_kind::spool);
}

BOOST_AUTO_TEST_CASE(a_spool_file_whose_beginning_is_damaged_is_told_by_what_follows) {
    const std::vector<std::byte> data(100, std::byte{9});
    auto bytes = spool_of(record::cptrap_type::cp_interface, data, 3);
    bytes[0] = std::byte{0x3E};
    BOOST_CHECK(held(bytes).kind() == file_kind::spool);
    bytes[4096 + 5] = std::byte{7};
    BOOST_CHECK(held(bytes).kind() == file_kind::spool);
    bytes[8192 + 4095] = std::byte{1};  // its tail is not zero
    BOOST_TEST(held(bytes).refusal().starts_with("it: offset 0: neither a trace file"));
    bytes = spool_of(record::cptrap_type::cp_interface, data, 17);
    for (std::size_t i = 0; i < 16; ++i) bytes[i * 4096] = std::byte{0x3E};
    BOOST_TEST(held(bytes).refusal() != "none");  // so far nobody looks
}

BOOST_AUTO_TEST_CASE(what_is_of_no_kind_is_named_with_what_was_looked_for) {
    BOOST_TEST(held("").refusal() == "it: offset 0: the file is empty");
    BOOST_TEST(held("no trace at all").refusal() ==
               "it: offset 0: neither a trace file (begins with \"traceRNG\"), nor a CPTRAP file "
               "(with a record, type X'3F'; --length gives the lengths of other types), nor an ELF "
               "core dump; it begins with 6e 6f 20 74 72 "
               "61 63 65 (--das reads the trace table in a guest's storage)");
    BOOST_TEST(held("?").refusal().find("it begins with 3f (") != std::string::npos);
    BOOST_TEST(held("\x28\xB5\x2F\xFDxxxx").refusal().ends_with(": decompress it first (zstd)"));
    for (const std::string_view text : {"?abc def ghi", "\xFF\xD8\xFF\xE0\x00\x10JFIF and so on",
                                        "\xC3\xA9"
                                        "ab\n.",
                                        "traceRN"}) {
        BOOST_TEST(held(text).refusal() != "none");
    }
    BOOST_TEST(held(std::string(10000, '\0')).refusal() != "none");
}

BOOST_AUTO_TEST_CASE(random_bytes_are_hardly_ever_of_a_kind) {
    std::mt19937_64 random(6);
    unsigned taken = 0;
    for (int i = 0; i < 2000; ++i) {
        std::array<std::uint64_t, 1024> words{};
        for (auto& word : words) word = random();
        taken += held(std::as_bytes(std::span(words))).refusal() == "none" ? 1 : 0;
    }
    BOOST_TEST(taken <= 1U);  // a type, and a length of 8 to 272: 1 in 63000
}

BOOST_AUTO_TEST_SUITE_END()
