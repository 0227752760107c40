// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The debug store's management area, as the processor reads and writes it (Intel SDM volume 3, "DS
/// Save Area"): little-endian, in the 32-bit layout (ilp32) or the 64-bit one (lp64). Offsets:
/// @code
///                               ilp32   lp64
///   BTS buffer base               00     00
///   BTS index                     04     08
///   BTS absolute maximum          08     10
///   BTS interrupt threshold       0C     18
///   PEBS buffer base              10     20
///   PEBS index                    14     28
///   PEBS absolute maximum         18     30
///   PEBS interrupt threshold      1C     38
///   PEBS counter resets           20     40
/// @endcode
/// All are absolute linear addresses, except the resets, which have 8 bytes in both layouts. Branch
/// records are in x86/branch_record.hpp, those of PEBS in pebs_record.hpp.

#include <trace_ring/x86/enabled.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::x86 {

/// One of the two buffers that the area describes.
template <record::data_model Model>
struct ds_buffer {
    using address = typename Model::pointer_type;  ///< an address in that mode

    alignas(Model::pointer_alignment) address base = 0;       ///< on a doubleword boundary
    alignas(Model::pointer_alignment) address index = 0;      ///< where the next record goes
    alignas(Model::pointer_alignment) address maximum = 0;    ///< the first byte behind the buffer
    alignas(Model::pointer_alignment) address threshold = 0;  ///< base + a number of whole records
};

/// The whole area. Processors differ in the number of resets; this has room for those of any
/// format: 32 general and 16 fixed counters, or one in the 32-bit layout.
template <record::data_model Model>
struct ds_area {
    using buffer = ds_buffer<Model>;  ///< where a buffer is
    /// Number of reset values.
    static constexpr std::size_t reset_count = Model::pointer_bytes == 4 ? 1 : 48;

    buffer bts;                          ///< of branch records
    buffer pebs;                         ///< of PEBS records
    std::uint64_t reset[reset_count]{};  ///< values that PEBS counters restart with
};

using ds_area32 = ds_area<record::ilp32>;  ///< for 32-bit mode
using ds_area64 = ds_area<record::lp64>;   ///< for 64-bit mode

static_assert(sizeof(ds_buffer<record::ilp32>) == 0x10);
static_assert(offsetof(ds_buffer<record::ilp32>, base) == 0x00);
static_assert(offsetof(ds_buffer<record::ilp32>, index) == 0x04);
static_assert(offsetof(ds_buffer<record::ilp32>, maximum) == 0x08);
static_assert(offsetof(ds_buffer<record::ilp32>, threshold) == 0x0C);
static_assert(sizeof(ds_area32) == 0x28 && std::is_standard_layout_v<ds_area32>);
static_assert(offsetof(ds_area32, bts) == 0x00 && offsetof(ds_area32, pebs) == 0x10);
static_assert(offsetof(ds_area32, reset) == 0x20);

static_assert(sizeof(ds_buffer<record::lp64>) == 0x20);
static_assert(offsetof(ds_buffer<record::lp64>, base) == 0x00);
static_assert(offsetof(ds_buffer<record::lp64>, index) == 0x08);
static_assert(offsetof(ds_buffer<record::lp64>, maximum) == 0x10);
static_assert(offsetof(ds_buffer<record::lp64>, threshold) == 0x18);
static_assert(sizeof(ds_area64) == 0x1C0 && std::is_standard_layout_v<ds_area64>);
static_assert(offsetof(ds_area64, bts) == 0x00 && offsetof(ds_area64, pebs) == 0x20);
static_assert(offsetof(ds_area64, reset) == 0x40);

/// The words of the area, in their order.
enum class ds_field : std::uint8_t {
    bts_base,
    bts_index,
    bts_maximum,
    bts_threshold,
    pebs_base,
    pebs_index,
    pebs_maximum,
    pebs_threshold,
};

/// The offset of a word, in bytes from the area's beginning.
template <record::data_model Model>
[[nodiscard]] constexpr std::size_t offset_of(ds_field field) noexcept {
    return static_cast<std::size_t>(field) * Model::pointer_bytes;
}
static_assert(offset_of<record::ilp32>(ds_field::pebs_threshold) == 0x1C);
static_assert(offset_of<record::lp64>(ds_field::bts_index) == 0x08);
static_assert(offset_of<record::lp64>(ds_field::pebs_threshold) == 0x38);

/// A counter that PEBS may use: general ones are bits 0 to 31 of the PEBS enable register, fixed
/// ones bits 32 and up.
struct pebs_counter {
    unsigned number = 0;  ///< its number
    bool fixed = false;   ///< whether it is a fixed-function counter

    /// Its bit in PEBS_ENABLE.
    [[nodiscard]] constexpr std::uint64_t mask() const noexcept {
        return std::uint64_t{1} << (fixed ? 32 + number % 32 : number % 32);
    }
};

/// The offset of a counter's reset value, in bytes from the area's beginning; 0: the counter has
/// none.
/// @param format of the PEBS records: 0 to 3 have four resets, 4 has eight and then those of the
///               fixed counters, later ones 32 and those; the 32-bit layout has one
template <record::data_model Model>
[[nodiscard]] constexpr std::size_t reset_offset(unsigned format, pebs_counter counter) noexcept {
    constexpr std::size_t first = offsetof(ds_area<Model>, reset);
    const unsigned general = Model::pointer_bytes == 4 ? 1 : format < 4 ? 4 : format == 4 ? 8 : 32;
    const unsigned fixed = Model::pointer_bytes == 4 || format < 4 ? 0 : 16;
    if (counter.number >= (counter.fixed ? fixed : general)) return 0;
    return first + 8 * std::size_t{counter.fixed ? general + counter.number : counter.number};
}
static_assert(reset_offset<record::ilp32>(0, {0}) == 0x20 &&
              reset_offset<record::ilp32>(0, {1}) == 0);
static_assert(reset_offset<record::lp64>(3, {3}) == 0x58 &&
              reset_offset<record::lp64>(3, {4}) == 0);
static_assert(reset_offset<record::lp64>(4, {7}) == 0x78 &&
              reset_offset<record::lp64>(4, {0, true}) == 0x80);
static_assert(reset_offset<record::lp64>(5, {31}) == 0x138 &&
              reset_offset<record::lp64>(5, {0, true}) == 0x140);
static_assert(reset_offset<record::lp64>(5, {15, true}) + 8 == sizeof(ds_area64));

}  // namespace trace_ring::inline v1::x86
