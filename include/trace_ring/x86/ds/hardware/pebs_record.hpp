// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The layouts of PEBS records in every format, and the decoder of those of variable length (Intel
/// SDM volume 3, "PEBS Record Format"; Linux 6.12, events/intel/ds.c).
/// @code
///   Pentium 4, 32-bit     40 bytes    EFLAGS to SP, 4 bytes each
///   format 0             144          flags, IP, 16 registers
///   format 1             176          + status, data address, data source, latency
///   format 2             192          + eventing IP, TX information
///   format 3             200          + TSC; the status is the applicable counters
///   format 4 and later   32 to 1232   adaptive: a basic group, then the chosen ones
/// @endcode
/// Nothing here reads beyond the given bytes, for any contents.
/// @code
/// const auto record = trace_ring::x86::decode_adaptive(bytes);  // of format 4 and later
/// if (record.fault == trace_ring::x86::pebs_fault::none) use(record.basic.ip);
/// @endcode

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::x86 {

/// The only format of the 32-bit layout.
struct pebs_record32 {
    std::uint32_t eflags, lip;                     ///< the register of this name
    std::uint32_t ax, bx, cx, dx, si, di, bp, sp;  ///< the register of this name
};
static_assert(sizeof(pebs_record32) == 40 && offsetof(pebs_record32, sp) == 0x24);

/// A record of format 0: 144 bytes.
struct pebs_format0 {
    /// RFLAGS.
    alignas(8) std::uint64_t flags;
    std::uint64_t ip, ax, bx, cx, dx, si, di, bp, sp;  ///< the register of this name
    std::uint64_t r[8];                                ///< r8 to r15
};
static_assert(sizeof(pebs_format0) == 144 && offsetof(pebs_format0, r) == 0x50);

/// A record of format 1.
struct pebs_format1 {
    pebs_format0 registers{};    ///< as in format 0
    std::uint64_t status;        ///< IA32_PERF_GLOBAL_STATUS
    std::uint64_t data_address;  ///< linear
    std::uint64_t source;        ///< of the data
    std::uint64_t latency;       ///< in core cycles
};
static_assert(sizeof(pebs_format1) == 176 && offsetof(pebs_format1, status) == 0x90);
static_assert(offsetof(pebs_format1, data_address) == 0x98);
static_assert(offsetof(pebs_format1, source) == 0xA0 && offsetof(pebs_format1, latency) == 0xA8);

/// A record of format 2.
struct pebs_format2 {
    pebs_format1 before;        ///< as in format 1
    std::uint64_t eventing_ip;  ///< address of the instruction that caused the event
    std::uint64_t tx;           ///< transaction information
};
static_assert(sizeof(pebs_format2) == 192 && offsetof(pebs_format2, eventing_ip) == 0xB0);
static_assert(offsetof(pebs_format2, tx) == 0xB8);

/// Its `before.before.status` holds the applicable counters instead.
struct pebs_format3 {
    pebs_format2 before;  ///< as in format 2
    std::uint64_t tsc;    ///< the time-stamp counter
};
static_assert(sizeof(pebs_format3) == 200 && offsetof(pebs_format3, tsc) == 0xC0);

// --- Adaptive records ----------------------------------------------------------------------------

/// The first group, which each adaptive record has.
struct pebs_basic {
    alignas(8) std::uint64_t shape;  ///< [31:0] groups, [47:32] retire latency, [63:48] bytes
    std::uint64_t ip;                ///< address of the instruction
    std::uint64_t counters;          ///< the applicable ones
    std::uint64_t tsc;               ///< the time-stamp counter

    /// The groups that follow.
    [[nodiscard]] constexpr std::uint32_t groups() const noexcept {
        return static_cast<std::uint32_t>(shape);
    }
    /// Cycles from the previous retirement.
    [[nodiscard]] constexpr std::uint16_t retire_latency() const noexcept {
        return static_cast<std::uint16_t>(shape >> 32);
    }
    /// The size of the whole record.
    [[nodiscard]] constexpr std::uint16_t bytes() const noexcept {
        return static_cast<std::uint16_t>(shape >> 48);
    }
};
static_assert(sizeof(pebs_basic) == 32 && offsetof(pebs_basic, ip) == 0x08);
static_assert(offsetof(pebs_basic, counters) == 0x10 && offsetof(pebs_basic, tsc) == 0x18);

/// The group of memory information.
struct pebs_memory {
    /// The address that was accessed.
    alignas(8) std::uint64_t address;
    std::uint64_t source, latency, tx;  ///< as the manual defines it
};
static_assert(sizeof(pebs_memory) == 32);

/// Not in the order of format 0.
struct pebs_registers {
    /// RFLAGS.
    alignas(8) std::uint64_t flags;
    std::uint64_t ip, ax, cx, dx, bx, sp, bp, si, di;  ///< the register of this name
    std::uint64_t r[8];                                ///< r8 to r15
};
static_assert(sizeof(pebs_registers) == 144 && offsetof(pebs_registers, r) == 0x50);

/// The group of vector registers.
struct pebs_vectors {
    /// The 16 registers, low half first.
    alignas(8) std::uint64_t xmm[16][2];
};
static_assert(sizeof(pebs_vectors) == 256);

/// One entry of the last branch records.
struct pebs_lbr_entry {
    /// Address of the branch.
    alignas(8) std::uint64_t from;
    std::uint64_t to;           ///< its target
    std::uint64_t information;  ///< as the manual defines it
};
static_assert(sizeof(pebs_lbr_entry) == 24);

/// The groups, as bits of `pebs_basic::groups` and of MSR_PEBS_DATA_CFG alike (Linux 6.12,
/// PEBS_DATACFG_*). The number of LBR entries, less one, is in bits 31 to 24.
enum pebs_group : std::uint32_t {
    pebs_has_memory = 1,
    pebs_has_registers = 2,
    pebs_has_vectors = 4,
    pebs_has_lbr = 8,
};
/// The groups that the library knows.
inline constexpr std::uint32_t pebs_known_groups = 0xFF00000F;
inline constexpr std::size_t pebs_most_lbr_entries = 32;  ///< the most entries of a record

/// LBR entries of an adaptive record with these groups, more than 32 if the bits say so.
[[nodiscard]] constexpr std::size_t pebs_lbr_entries(std::uint32_t groups) noexcept {
    return (groups & pebs_has_lbr) == 0 ? 0 : (groups >> 24) + std::size_t{1};
}
/// Bytes of an adaptive record with these groups.
[[nodiscard]] constexpr std::size_t pebs_adaptive_bytes(std::uint32_t groups) noexcept {
    std::size_t sum = sizeof(pebs_basic);
    if ((groups & pebs_has_memory) != 0) sum += sizeof(pebs_memory);
    if ((groups & pebs_has_registers) != 0) sum += sizeof(pebs_registers);
    if ((groups & pebs_has_vectors) != 0) sum += sizeof(pebs_vectors);
    return sum + pebs_lbr_entries(groups) * sizeof(pebs_lbr_entry);
}
static_assert(pebs_adaptive_bytes(0) == 32 && pebs_adaptive_bytes(0x1F00000F) == 1232);

/// Bytes of a record. @param format of IA32_PERF_CAPABILITIES. @param groups as in
/// MSR_PEBS_DATA_CFG, from format 4 on.
template <record::data_model Model>
[[nodiscard]] constexpr std::size_t pebs_record_bytes(unsigned format,
                                                      std::uint32_t groups = 0) noexcept {
    if (Model::pointer_bytes == 4) return sizeof(pebs_record32);
    constexpr std::size_t fixed[]{sizeof(pebs_format0), sizeof(pebs_format1), sizeof(pebs_format2),
                                  sizeof(pebs_format3)};
    return format < 4 ? fixed[format] : pebs_adaptive_bytes(groups);
}

/// The fault of a record.
enum class pebs_fault : std::uint8_t {
    none,
    cut,            ///< fewer bytes than a record of the format has, or than the record states
    length,         ///< its own length is no multiple of 8, or too short for any record
    groups,         ///< its groups do not make up its length
    too_many_lbrs,  ///< more than 32 entries
};
/// The fault in words.
[[nodiscard]] constexpr const char* to_string(pebs_fault fault) noexcept {
    constexpr const char* names[]{"nothing is wrong", "the PEBS record is cut off",
                                  "the PEBS record's length is no multiple of 8, or too short",
                                  "the PEBS record's groups do not make up its length",
                                  "the PEBS record has more than 32 LBR entries"};
    return names[static_cast<std::size_t>(fault)];
}

/// The groups of an adaptive record, in place. The span of a group that the record lacks is empty.
struct pebs_adaptive {
    pebs_fault fault = pebs_fault::none;  ///< none if the record was read
    std::size_t at = 0;  ///< where the fault is, in bytes from the record's beginning
    pebs_basic basic{};  ///< the basic group
    // The bytes of each group; empty if the record does not have it.
    std::span<const std::byte> memory{};     ///< pebs_memory
    std::span<const std::byte> registers{};  ///< pebs_registers
    std::span<const std::byte> vectors{};    ///< pebs_vectors
    std::span<const std::byte> lbr{};        ///< pebs_lbr_entry, one or more
    std::span<const std::byte> unknown{};    ///< groups of a later format, after the others

    /// A group, as a value; `Group{}` if the record lacks it. Constant time, signal-safe.
    template <class Group>
    [[nodiscard]] static Group load(std::span<const std::byte> group, std::size_t n = 0) noexcept {
        static_assert(std::is_trivially_copyable_v<Group>);
        Group out{};
        if (n >= group.size() / sizeof(Group)) return out;
        std::memcpy(&out, group.data() + n * sizeof(Group), sizeof(Group));
        return out;
    }
    /// The number of entries in `lbr`.
    [[nodiscard]] std::size_t lbr_entries() const noexcept {
        return lbr.size() / sizeof(pebs_lbr_entry);
    }
};

/// Decodes the adaptive record at the beginning of `bytes`. If it has a fault, only `basic` is set,
/// if there are enough bytes for it. Constant time, signal-safe.
[[nodiscard]] inline pebs_adaptive decode_adaptive(std::span<const std::byte> bytes) noexcept {
    pebs_adaptive out;
    const auto fail = [&](pebs_fault fault, std::size_t at) {
        out.fault = fault;
        out.at = at;
        return out;
    };
    if (bytes.size() < sizeof(pebs_basic)) return fail(pebs_fault::cut, bytes.size());
    std::memcpy(&out.basic, bytes.data(), sizeof(pebs_basic));
    const std::size_t length = out.basic.bytes();
    if (length < sizeof(pebs_basic) || length % 8 != 0) return fail(pebs_fault::length, 6);
    if (length > bytes.size()) return fail(pebs_fault::cut, bytes.size());
    const std::uint32_t groups = out.basic.groups();
    const std::size_t entries = pebs_lbr_entries(groups);
    if (entries > pebs_most_lbr_entries) return fail(pebs_fault::too_many_lbrs, 3);
    const std::size_t known = pebs_adaptive_bytes(groups);
    if (known > length || (known < length && (groups & ~pebs_known_groups) == 0))
        return fail(pebs_fault::groups, 0);
    std::size_t at = sizeof(pebs_basic);
    const auto next = [&](bool there, std::size_t size) {
        if (!there) return std::span<const std::byte>{};
        at += size;
        return bytes.subspan(at - size, size);
    };
    out.memory = next((groups & pebs_has_memory) != 0, sizeof(pebs_memory));
    out.registers = next((groups & pebs_has_registers) != 0, sizeof(pebs_registers));
    out.vectors = next((groups & pebs_has_vectors) != 0, sizeof(pebs_vectors));
    out.lbr = next(entries != 0, entries * sizeof(pebs_lbr_entry));
    out.unknown = bytes.subspan(at, length - at);
    return out;
}

/// The length of the record at the beginning of a PEBS buffer's rest, or its fault.
struct pebs_extent {
    pebs_fault fault = pebs_fault::none;  ///< none if the size is known
    std::size_t bytes = 0;                ///< the size of the record
};
/// The size of the record that begins at `bytes`, by its format.
template <record::data_model Model>
[[nodiscard]] pebs_extent pebs_extent_of(std::span<const std::byte> bytes,
                                         unsigned format) noexcept {
    if (Model::pointer_bytes == 8 && format >= 4) {
        const pebs_adaptive record = decode_adaptive(bytes);
        if (record.fault != pebs_fault::none) return {record.fault, 0};
        return {pebs_fault::none, record.basic.bytes()};
    }
    const std::size_t size = pebs_record_bytes<Model>(format);
    if (bytes.size() < size) return {pebs_fault::cut, 0};
    return {pebs_fault::none, size};
}

}  // namespace trace_ring::inline v1::x86
