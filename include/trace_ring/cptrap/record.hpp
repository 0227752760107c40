// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP's record of CP interface data (VM/SP), and the parameter list that requests one, as bytes
/// at any alignment. Words are big-endian. Source: VM/SP System Programmer's Guide, "Passing CP
/// Data to the CPTRAP File".
/// @code
///  list    +--------+--------+-----------------+
///          | length |  code  | address of data |      no boundary is required
///          +--------+--------+-----------------+
///          0        2        4
///  record  +----+----+--------+--------+--------+----- - -
///          | 3F |    |  code  | length |        |  data         length: of the data, plus 8
///          +----+----+--------+--------+--------+----- - -
///          0    1    2        4        6        8
/// @endcode
/// Longer data are cut to their first 264 bytes **without any sign**, like the original. Records in
/// this library's own formats are never cut silently.
///
/// The layouts of the types X'3D' and X'3E', and of trace-table entries in a CPTRAP file, are not
/// known. This library adds its own types, all from X'C0' on, with the header above.
/// @code
/// std::array<std::byte, trace_ring::record::cptrap_most_bytes> bytes;
/// const auto length = trace_ring::record::put_cptrap(
///     bytes, trace_ring::record::cptrap_type::cp_interface, 3, data);
/// const auto seen = trace_ring::record::view_cptrap(std::span(bytes).first(length));
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::record {

/// The first byte of a record.
enum class cptrap_type : std::uint8_t {
    none = 0x00,          ///< no record: ends a spool record (this library's choice)
    cp_interface = 0x3F,  ///< CP interface data
    first_own = 0xC0,     ///< from here on: this library's own types
    table_entry = 0xC5,   ///< own: an entry of CP's trace table; the code is the entry's
    lost = 0xD3,          ///< own: records are missing here; the code is the cause
};

inline constexpr std::size_t cptrap_list_bytes = 8;    ///< the size of the list that a guest passes
inline constexpr std::size_t cptrap_header_bytes = 8;  ///< the size of a record's header
inline constexpr std::size_t cptrap_most_data = 264;   ///< the most data that a record has
/// The most bytes that a record has.
inline constexpr std::size_t cptrap_most_bytes = cptrap_header_bytes + cptrap_most_data;

/// The parameter list that register 1 addresses.
struct cptrap_list {
    std::byte length_bytes[2]{};   ///< of the data
    std::byte code_bytes[2]{};     ///< individualizing: the caller makes it unique
    std::byte address_bytes[4]{};  ///< of the data

    /// The number of bytes of data.
    [[nodiscard]] constexpr std::uint16_t length() const noexcept {
        return load_big<std::uint16_t>(length_bytes);
    }
    /// The code of the data.
    [[nodiscard]] constexpr std::uint16_t code() const noexcept {
        return load_big<std::uint16_t>(code_bytes);
    }
    /// The guest address of the data.
    [[nodiscard]] constexpr std::uint32_t address() const noexcept {
        return load_big<std::uint32_t>(address_bytes);
    }
    /// Bytes of data that are taken: at most 264.
    [[nodiscard]] constexpr std::size_t taken() const noexcept {
        return std::min<std::size_t>(length(), cptrap_most_data);
    }

    /// A list with these values.
    [[nodiscard]] static constexpr cptrap_list of(std::uint16_t length, std::uint16_t code,
                                                  std::uint32_t address) noexcept {
        cptrap_list out;
        store_big(out.length_bytes, 0, length);
        store_big(out.code_bytes, 0, code);
        store_big(out.address_bytes, 0, address);
        return out;
    }
    /// Reads a list.
    [[nodiscard]] static constexpr cptrap_list load(
        std::span<const std::byte, cptrap_list_bytes> from) noexcept {
        return of(load_big<std::uint16_t>(from, 0), load_big<std::uint16_t>(from, 2),
                  load_big<std::uint32_t>(from, 4));
    }
    /// Writes a list.
    constexpr void store(std::span<std::byte, cptrap_list_bytes> into) const noexcept {
        store_big(into, 0, length());
        store_big(into, 2, code());
        store_big(into, 4, address());
    }
    friend constexpr bool operator==(const cptrap_list&, const cptrap_list&) noexcept = default;
};
static_assert(sizeof(cptrap_list) == cptrap_list_bytes && alignof(cptrap_list) == 1);
static_assert(offsetof(cptrap_list, length_bytes) == 0);
static_assert(offsetof(cptrap_list, code_bytes) == 2);
static_assert(offsetof(cptrap_list, address_bytes) == 4);
static_assert(std::is_trivially_copyable_v<cptrap_list> && std::is_standard_layout_v<cptrap_list>);

/// A record's first 8 bytes.
struct cptrap_header {
    std::byte type_byte{};           ///< the type of the record
    std::byte reserved{};            ///< zero
    std::byte code_bytes[2]{};       ///< the code, big-endian
    std::byte length_bytes[2]{};     ///< of the record, with this header
    std::byte reserved_at_end[2]{};  ///< zero

    /// The type of the record.
    [[nodiscard]] constexpr cptrap_type type() const noexcept {
        return static_cast<cptrap_type>(type_byte);
    }
    /// The code of the data.
    [[nodiscard]] constexpr std::uint16_t code() const noexcept {
        return load_big<std::uint16_t>(code_bytes);
    }
    /// The number of bytes of data.
    [[nodiscard]] constexpr std::uint16_t length() const noexcept {
        return load_big<std::uint16_t>(length_bytes);
    }

    /// A header with these values.
    [[nodiscard]] static constexpr cptrap_header of(cptrap_type type, std::uint16_t code,
                                                    std::uint16_t length) noexcept {
        cptrap_header out;
        out.type_byte = static_cast<std::byte>(type);
        store_big(out.code_bytes, 0, code);
        store_big(out.length_bytes, 0, length);
        return out;
    }
    /// Copies all bytes, the reserved ones included.
    [[nodiscard]] static constexpr cptrap_header load(
        std::span<const std::byte, cptrap_header_bytes> from) noexcept {
        cptrap_header out = of(static_cast<cptrap_type>(from[0]), load_big<std::uint16_t>(from, 2),
                               load_big<std::uint16_t>(from, 4));
        out.reserved = from[1];
        std::copy_n(from.data() + 6, 2, out.reserved_at_end);
        return out;
    }
    /// Writes a header.
    constexpr void store(std::span<std::byte, cptrap_header_bytes> into) const noexcept {
        into[0] = type_byte;
        into[1] = reserved;
        store_big(into, 2, code());
        store_big(into, 4, length());
        std::copy_n(reserved_at_end, 2, into.data() + 6);
    }
    friend constexpr bool operator==(const cptrap_header&, const cptrap_header&) noexcept = default;
};
static_assert(sizeof(cptrap_header) == cptrap_header_bytes && alignof(cptrap_header) == 1);
static_assert(offsetof(cptrap_header, type_byte) == 0 && offsetof(cptrap_header, reserved) == 1);
static_assert(offsetof(cptrap_header, code_bytes) == 2);
static_assert(offsetof(cptrap_header, length_bytes) == 4);
static_assert(offsetof(cptrap_header, reserved_at_end) == 6);
static_assert(std::is_trivially_copyable_v<cptrap_header> &&
              std::is_standard_layout_v<cptrap_header>);

/// Lays out a record in `into`: the header, then at most the first 264 bytes of `data`, without a
/// sign that there were more. Returns its length in bytes; 0, and nothing changes, if `into` is too
/// small. Signal-safe; linear in the data.
constexpr std::size_t put_cptrap(std::span<std::byte> into, cptrap_type type, std::uint16_t code,
                                 std::span<const std::byte> data) noexcept {
    const std::size_t taken = (std::min)(data.size(), cptrap_most_data);
    const std::size_t bytes = cptrap_header_bytes + taken;
    if (into.size() < bytes) return 0;
    cptrap_header::of(type, code, static_cast<std::uint16_t>(bytes))
        .store(into.first<cptrap_header_bytes>());
    std::copy_n(data.data(), taken, into.data() + cptrap_header_bytes);
    return bytes;
}

/// One record in place. If its type has no header (cptrap_lengths), only `type` and `bytes` are
/// set.
struct cptrap_view {
    cptrap_type type = cptrap_type::none;  ///< the type of the record
    bool headed = false;                   ///< it has the header, and so a code
    std::uint16_t code = 0;                ///< individualizing; for own types see cptrap_type
    std::span<const std::byte> bytes;      ///< the whole record

    /// The bytes after the header.
    [[nodiscard]] constexpr std::span<const std::byte> data() const noexcept {
        return headed ? bytes.subspan(cptrap_header_bytes) : std::span<const std::byte>{};
    }
    /// The entry in a table_entry; empty for other types.
    [[nodiscard]] constexpr std::optional<cp_entry> entry() const noexcept {
        if (type != cptrap_type::table_entry || data().size() != sizeof(cp_entry)) return {};
        cp_entry out;
        out.code = data()[0];
        std::copy_n(data().data() + 1, sizeof out.payload, out.payload);
        return out;
    }
    /// The loss in a `lost`; empty for other types, and for an unknown cause.
    [[nodiscard]] constexpr std::optional<loss> lost() const noexcept {
        if (type != cptrap_type::lost || data().size() != 8 || code >= loss_cause_count) return {};
        return loss{no_position, load_big<std::uint64_t>(data()), static_cast<loss_cause>(code)};
    }
};

/// The record at the beginning of `bytes`, if it has the header and a valid length: at least 8, at
/// most all bytes and, for interface data, at most 272. Signal-safe, constant time.
[[nodiscard]] constexpr std::optional<cptrap_view> view_cptrap(
    std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < cptrap_header_bytes) return {};
    const auto header = cptrap_header::load(bytes.first<cptrap_header_bytes>());
    const std::size_t length = header.length();
    if (length < cptrap_header_bytes || length > bytes.size()) return {};
    if (header.type() == cptrap_type::cp_interface && length > cptrap_most_bytes) return {};
    return cptrap_view{header.type(), true, header.code(), bytes.first(length)};
}

}  // namespace trace_ring::inline v1::record
