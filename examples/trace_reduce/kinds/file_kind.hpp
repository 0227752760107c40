// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Detects the kind of a file by its content, not by its name:
///
/// | kind    | recognised by                                                                    |
/// |---------|----------------------------------------------------------------------------------|
/// | `trace` | "traceRNG" (`layout::file_magic`) at the beginning, in either byte order         |
/// | `core`  | X'7F' "ELF" at the beginning: also of ELF files that are no core dumps           |
/// | `spool` | a record of CP interface data at the beginning, or one of the types that this    |
/// |         | library adds, with a length that it can have; the header of CP interface data,   |
/// |         | with zeros in its reserved bytes and any length, or as much of it as             |
/// |         | the file has; or, where the beginning is damaged or another type, one of the     |
/// |         | first 16 spool records of 4 KiB that is sound from its first record to its tail  |
///
/// A trace of branches is a trace file whose events are branches. Kinds do not overlap: the other
/// two begin with bytes that are types whose length no CPTRAP reader knows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include "../core/elf_core.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace record = trace_ring::record;

enum class file_kind : std::uint8_t { trace, spool, core };

namespace impl {

/// A compressed file by its first bytes; empty if it is none that is known.
[[nodiscard]] inline std::string_view compression_of(std::span<const std::byte> from) noexcept {
    struct known {
        std::array<std::uint8_t, 4> magic;
        std::size_t bytes;
        std::string_view name;
    };
    constexpr known all[] = {{{0x28, 0xB5, 0x2F, 0xFD}, 4, "zstd"},
                             {{0x04, 0x22, 0x4D, 0x18}, 4, "lz4"},
                             {{0xFD, '7', 'z', 'X'}, 4, "xz"},
                             {{0x1F, 0x8B}, 2, "gzip"},
                             {{'B', 'Z', 'h'}, 3, "bzip2"}};
    for (const auto& each : all) {
        if (from.size() >= each.bytes &&
            std::equal(each.magic.begin(),
                       each.magic.begin() + static_cast<std::ptrdiff_t>(each.bytes), from.begin(),
                       [](std::uint8_t a, std::byte b) { return std::byte{a} == b; })) {
            return each.name;
        }
    }
    return {};
}

/// The header of CP interface data, or at least two bytes of it, with any length. Its
/// reserved bytes are zero in all files that this library writes.
[[nodiscard]] inline bool begins_as_interface(std::span<const std::byte> head) noexcept {
    if (head.size() < 2 || head[0] != std::byte{0x3F}) return false;
    for (const std::size_t reserved : {1U, 6U, 7U}) {
        if (reserved < head.size() && head[reserved] != std::byte{0}) return false;
    }
    return true;
}

/// One of the first spool records speaks for a spool file; of the first, its first record does.
[[nodiscard]] inline bool is_spool(const reduce::source& from,
                                   const record::cptrap_lengths& lengths) {
    constexpr std::uint64_t looks = 16;
    constexpr std::size_t bytes = record::spool_record_bytes;
    std::vector<std::uint64_t> words(bytes / 8);
    for (std::uint64_t i = 0; i < looks; ++i) {
        const std::size_t got = from.read(i * bytes, words.data(), bytes);
        std::size_t records = 0;
        bool known = false;  // its first record
        const auto bytes_there = std::as_bytes(std::span(words)).first(got);
        const auto stop = record::walk_spool(
            bytes_there, lengths, [&](std::size_t, const record::cptrap_view& one) {
                if (records++ == 0) {
                    const bool told =
                        lengths.knows(one.type) && !record::cptrap_lengths{}.knows(one.type);
                    known = one.type == record::cptrap_type::cp_interface || one.entry() ||
                            one.lost() || told;
                }
            });
        if (i == 0 && (known || begins_as_interface(bytes_there.first(
                                    std::min(got, record::cptrap_header_bytes))))) {
            return true;
        }
        if (records != 0 && (stop.why == record::spool_end::whole || (i == 0 && records > 1))) {
            return true;
        }
        if (got < bytes) break;
    }
    return false;
}

/// How many of the first 64 KiB are zero, if all are; else 0.
[[nodiscard]] inline std::uint64_t zeros_of(const reduce::source& from) {
    std::vector<std::uint64_t> words(8192);
    const std::size_t got = from.read(0, words.data(), words.size() * 8);
    const auto bytes = std::as_bytes(std::span(words)).first(got);
    const bool zero = std::all_of(bytes.begin(), bytes.end(),
                                  [](std::byte each) { return each == std::byte{0}; });
    return zero ? got : 0;
}

}  // namespace impl

/// Throws format_error, which says what was looked for, if it is none of these kinds. A kind is
/// recognised by its beginning; its reader checks the rest. Reads at most 64
/// KiB. `lengths`: of types of CPTRAP records. `as_spool`: a file of no other kind is a CPTRAP
/// file.
[[nodiscard]] inline file_kind recognise(const reduce::source& from,
                                         const record::cptrap_lengths& lengths = {},
                                         bool as_spool = false) {
    std::uint64_t first = 0;
    std::array<std::byte, 16> head{};
    const std::size_t there = from.read(0, head.data(), head.size());
    if (there == 0 && from.is_locked(record::spool_lock_offset)) return file_kind::spool;
    if (there == 0) throw trace_ring::format_error(from.name(), 0, "the file is empty");
    std::copy_n(head.begin(), 8, reinterpret_cast<std::byte*>(&first));
    if (first == trace_ring::layout::file_magic ||
        first == trace_ring::layout::file_magic_swapped) {
        return file_kind::trace;
    }
    const auto begins = std::span<const std::byte>(head).first(there);
    if (elf_core::is_elf(begins)) return file_kind::core;
    if (as_spool || impl::is_spool(from, lengths)) return file_kind::spool;
    if (const std::uint64_t zeros = impl::zeros_of(from); zeros != 0) {
        throw trace_ring::format_error(
            from.name(), 0,
            (zeros == from.size() ? "all " : "the first ") + std::to_string(zeros) +
                " bytes are zero: nothing was written into the file, or it was wiped");
    }
    std::string what =
        "neither a trace file (begins with \"traceRNG\"), nor a CPTRAP file (with a record, type "
        "X'3F'; --length gives the lengths of other types), nor an ELF core dump; it begins with";
    for (const auto byte : begins.first(std::min<std::size_t>(there, 8))) {
        constexpr char digits[] = "0123456789abcdef";
        what += ' ';
        what += digits[std::to_integer<unsigned>(byte) >> 4U];
        what += digits[std::to_integer<unsigned>(byte) & 15U];
    }
    const auto name = impl::compression_of(begins);
    if (name.empty()) {
        what += " (--das reads the trace table in a guest's storage)";
    } else {
        what += ": decompress it first (";
        what += name;
        what += ')';
    }
    throw trace_ring::format_error(from.name(), 0, what);
}

}  // namespace trace_reduce
