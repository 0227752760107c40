// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The one notation of System/370's numbers, which every output prints and every option reads.
/// CPTRAP's types and codes are hexadecimal, two digits for a type and for the code of an
/// entry of CP's trace table, four for the code of other records. Offsets have 0x before them, as
/// other numbers are decimal.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>

namespace trace_reduce {

/// A number of this base, or with 0x before it or between X' and ' a hexadecimal one; nothing if
/// the whole text is none.
[[nodiscard]] inline std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
    if (text.starts_with("0x") || text.starts_with("0X")) {
        text.remove_prefix(2);
        base = 16;
    } else if ((text.starts_with("X'") || text.starts_with("x'")) && text.ends_with('\'')) {
        text = text.substr(2, text.size() - (text.size() > 2 ? 3 : 2));
        base = 16;
    }
    std::uint64_t value = 0;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (text.empty() || error != std::errc{} || stop != end) return {};
    return value;
}

/// At least `width` digits, in capitals, as System/370's books write them.
inline void append_hexadecimal(trace_ring::exporter::text_buffer& out, std::uint64_t value,
                               std::size_t width) {
    char digits[16];
    std::size_t count = 0;
    do {
        digits[count++] = "0123456789ABCDEF"[value % 16];
        value /= 16;
    } while (value != 0);
    for (std::size_t i = count; i < width; ++i) out += '0';
    while (count != 0) out += digits[--count];
}

inline void append_type(trace_ring::exporter::text_buffer& out,
                        trace_ring::record::cptrap_type type) {
    append_hexadecimal(out, static_cast<std::uint64_t>(type), 2);
}
/// The digits of a code of records of this type.
[[nodiscard]] constexpr std::size_t code_width(trace_ring::record::cptrap_type type) noexcept {
    return type == trace_ring::record::cptrap_type::table_entry ? 2 : 4;
}
inline void append_code(trace_ring::exporter::text_buffer& out,
                        trace_ring::record::cptrap_type type, std::uint16_t code) {
    append_hexadecimal(out, code, code_width(type));
}
/// The data of a record: what follows its header, or its type if it has none. Of what is no record:
/// all bytes.
[[nodiscard]] inline std::span<const std::byte> data_of(
    const trace_ring::reduce::spool_item& item) noexcept {
    if (item.what != trace_ring::reduce::spool_item::kind::record) return item.bytes;
    return item.record.headed ? item.record.data() : item.bytes.subspan(1);
}
/// Bytes 1, 6 and 7 of the header; zeros if the record has none.
[[nodiscard]] constexpr std::array<std::byte, 3> reserved_of(
    const trace_ring::record::cptrap_view& one) noexcept {
    if (!one.headed) return {};
    return {one.bytes[1], one.bytes[6], one.bytes[7]};
}
/// The cause of damage in a spool record that has nothing in it.
inline constexpr std::string_view zeros_cause =
    "a spool record of zeros: nothing was written into it";

inline void append_offset(trace_ring::exporter::text_buffer& out, std::uint64_t offset) {
    out += "0x";
    append_hexadecimal(out, offset, 8);
}

}  // namespace trace_reduce
