// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The layout of CPTRAP records in a file: spool records of 4096 bytes, one after the other, with
/// nothing else between them.
/// @code
///   0                                                                    4096
///   +----------+------------------+-----+------------------+-------------+
///   | record   | record           | ... | record           | 0 0 ... 0 0 |
///   +----------+------------------+-----+------------------+-------------+
/// @endcode
/// Spool records of 4 KiB are CPTRAP's. How CPTRAP packs records in them is not known, so this is
/// the library's choice: records lie at any offset, none spans two spool records, and a zero first
/// byte ends the spool record, whose tail is zero.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/cptrap/record.hpp>

namespace trace_ring::inline v1::record {

inline constexpr std::size_t spool_record_bytes = 4096;  ///< the size of a spool record
/// The byte of a spool file that its writer locks (fcntl) while it has the file, far above any
/// file's end.
inline constexpr std::uint64_t spool_lock_offset = (std::uint64_t{1} << 62) + 0x3F;

/// The lengths of records by type, which a reader needs to skip records of types that it does not
/// know.
class cptrap_lengths {
public:
    /// The types that this library knows: interface data and its own types, which have the header.
    constexpr cptrap_lengths() noexcept {
        by_header(cptrap_type::cp_interface);
        for (auto type = static_cast<std::size_t>(cptrap_type::first_own); type < 256; ++type)
            bytes_[type] = headed;
    }
    /// Records of this type have the header, which holds their length.
    constexpr cptrap_lengths& by_header(cptrap_type type) noexcept {
        bytes_[static_cast<std::size_t>(type)] = headed;
        return *this;
    }
    /// Records of this type have `bytes` bytes, 2 to 4096, with the type, and no header. 0: their
    /// length is unknown.
    constexpr cptrap_lengths& fixed(cptrap_type type, std::uint16_t bytes) noexcept {
        bytes_[static_cast<std::size_t>(type)] = bytes == headed ? std::uint16_t{0} : bytes;
        return *this;
    }

    /// Whether the length of records of this type is known.
    [[nodiscard]] constexpr bool knows(cptrap_type type) const noexcept {
        return bytes_[static_cast<std::size_t>(type)] != 0;
    }
    /// Whether records of this type begin with the header of interface data.
    [[nodiscard]] constexpr bool has_header(cptrap_type type) const noexcept {
        return bytes_[static_cast<std::size_t>(type)] == headed;
    }
    /// Bytes of a record of a type without the header.
    [[nodiscard]] constexpr std::size_t bytes(cptrap_type type) const noexcept {
        return bytes_[static_cast<std::size_t>(type)];
    }

private:
    static constexpr std::uint16_t headed = 1;
    std::array<std::uint16_t, 256> bytes_{};
};

/// Why a walk through a spool record ended.
enum class spool_end : std::uint8_t {
    whole,         ///< all was read: the end, or a zero first byte and a zero tail
    cut,           ///< the bytes end before the spool record does
    unknown_type,  ///< a type whose length is unknown
    bad_length,    ///< a length that no record of that type can have
    spans,         ///< a record that would reach beyond the spool record
    tail,          ///< bytes that are not zero after a zero first byte
};

/// The reason in words, for messages.
[[nodiscard]] constexpr std::string_view to_string(spool_end end) noexcept {
    constexpr std::array<std::string_view, 6> names{
        "whole",
        "torn: the file ends within the spool record",
        "a record of a type whose length is not known",
        "a record with an impossible length",
        "a record that goes on beyond its spool record",
        "bytes that are not zero behind the last record"};
    return names[static_cast<std::size_t>(end)];
}

/// Where a walk ended, in bytes from the beginning of the spool record, and why.
struct spool_stop {
    std::size_t offset = 0;            ///< where the records end
    spool_end why = spool_end::whole;  ///< why they end there
    friend constexpr bool operator==(const spool_stop&, const spool_stop&) noexcept = default;
};

/// Calls `visit(offset, const cptrap_view&)` for each record of a spool record, in order. `bytes`
/// may be fewer than 4096, if the file is truncated; of more, only the first 4096 are read. Checks
/// every number that it reads; linear; does not allocate.
template <class Visit>
constexpr spool_stop walk_spool(std::span<const std::byte> bytes, const cptrap_lengths& lengths,
                                Visit&& visit) {
    bytes = bytes.first((std::min)(bytes.size(), spool_record_bytes));
    const bool short_of_it = bytes.size() < spool_record_bytes;
    std::size_t at = 0;
    while (at < bytes.size()) {
        const auto rest = bytes.subspan(at);
        const auto type = static_cast<cptrap_type>(rest[0]);
        if (type == cptrap_type::none) {
            const bool zero = std::all_of(rest.begin(), rest.end(),
                                          [](std::byte b) { return b == std::byte{0}; });
            if (!zero) return {at, spool_end::tail};
            return {at, short_of_it ? spool_end::cut : spool_end::whole};
        }
        if (!lengths.knows(type)) return {at, spool_end::unknown_type};
        const bool headed = lengths.has_header(type);
        std::size_t length = lengths.bytes(type);
        std::uint16_t code = 0;
        if (headed) {
            if (rest.size() < cptrap_header_bytes) {
                return {at, short_of_it ? spool_end::cut : spool_end::spans};
            }
            const auto header = cptrap_header::load(rest.first<cptrap_header_bytes>());
            length = header.length();
            code = header.code();
            if (length < cptrap_header_bytes ||
                (type == cptrap_type::cp_interface && length > cptrap_most_bytes)) {
                return {at, spool_end::bad_length};
            }
        }
        if (length > spool_record_bytes - at) return {at, spool_end::spans};
        if (length > rest.size()) return {at, spool_end::cut};
        visit(at, cptrap_view{type, headed, code, rest.first(length)});
        at += length;
    }
    return {at, short_of_it ? spool_end::cut : spool_end::whole};
}

/// A spool record that is being filled.
class spool_page {
public:
    /// Appends a record. False, and nothing changes, if it does not fit, is empty, or begins with a
    /// zero byte.
    constexpr bool add(std::span<const std::byte> record) noexcept {
        if (record.empty() || record[0] == std::byte{0} || record.size() > room()) return false;
        std::copy(record.begin(), record.end(),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ += record.size();
        ++records_;
        return true;
    }
    /// Removes all records.
    constexpr void clear() noexcept {
        bytes_ = {};
        used_ = 0;
        records_ = 0;
    }
    /// All 4096 bytes; the tail is zero.
    [[nodiscard]] constexpr std::span<const std::byte, spool_record_bytes> bytes() const noexcept {
        return bytes_;
    }
    /// Bytes in use.
    [[nodiscard]] constexpr std::size_t used() const noexcept { return used_; }
    /// Bytes that are free.
    [[nodiscard]] constexpr std::size_t room() const noexcept { return bytes_.size() - used_; }
    /// Number of records.
    [[nodiscard]] constexpr std::uint32_t records() const noexcept { return records_; }

private:
    std::array<std::byte, spool_record_bytes> bytes_{};
    std::size_t used_ = 0;
    std::uint32_t records_ = 0;
};

}  // namespace trace_ring::inline v1::record
