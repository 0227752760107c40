// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Converts the setting of branch trace messages to bits of the debug control register and back:
/// the complete table of CPL-qualified encodings (Intel SDM volume 3). `x`: any value.
/// @code
///   TR BTS OFF_OS OFF_USR BTINT    setting
///    0  x    x       x      x      off
///    1  0    x       x      x      generated, not stored
///    1  1    0       0      0      circular,  all
///    1  1    1       0      0      circular,  above_zero
///    1  1    0       1      0      circular,  zero
///    1  1    1       1      x      none: generated, none stored
///    1  1    0       0      1      interrupt, all
///    1  1    1       0      1      interrupt, above_zero
///    1  1    0       1      1      interrupt, zero
/// @endcode
/// A clear BTINT is not enough for a circular buffer: its threshold must also be above its maximum.

#include <trace_ring/x86/enabled.hpp>

#include <cstdint>

namespace trace_ring::inline v1::x86 {

/// The places of the bits, which depend on the generation.
struct debugctl_bits {
    std::uint64_t tr, bts, btint;   ///< the bits with these names in the manual
    std::uint64_t off_os, off_usr;  ///< 0: the register cannot select by privilege level
    std::uint64_t known;            ///< all bits of the register

    /// The bits that belong to branch traces.
    [[nodiscard]] constexpr std::uint64_t all() const noexcept {
        return tr | bts | btint | off_os | off_usr;
    }
    friend constexpr bool operator==(const debugctl_bits&, const debugctl_bits&) noexcept = default;
};

/// IA32_DEBUGCTL; OFF_OS and OFF_USR only where CPUID reports DS-CPL.
inline constexpr debugctl_bits ia32_debugctl{1U << 6, 1U << 7, 1U << 8, 1U << 9, 1U << 10, 0xFFC3};
/// The same without DS-CPL.
inline constexpr debugctl_bits ia32_debugctl_without_cpl{1U << 6, 1U << 7, 1U << 8, 0, 0, 0xF9C3};
/// Pentium 4.
inline constexpr debugctl_bits msr_debugctla{1U << 2, 1U << 3, 1U << 4, 1U << 5, 1U << 6, 0x7F};
/// Pentium M.
inline constexpr debugctl_bits msr_debugctlb{1U << 6, 1U << 7, 1U << 8, 0, 0, 0x1FF};

/// What is done with branches.
enum class bts_mode : std::uint8_t {
    off,        ///< no messages
    generated,  ///< on the bus, not stored
    circular,   ///< stored, the newest over the oldest
    interrupt,  ///< stored, and an interrupt when the buffer is nearly full
};

/// The current privilege levels whose branches are stored.
enum class bts_levels : std::uint8_t { all, above_zero, zero, none };

/// What DEBUGCTL is set to.
struct bts_setting {
    bts_mode mode = bts_mode::off;        ///< whether and where branches are stored
    bts_levels levels = bts_levels::all;  ///< the privilege levels

    /// Whether branches are stored in memory.
    [[nodiscard]] constexpr bool stores() const noexcept {
        return mode >= bts_mode::circular && levels != bts_levels::none;
    }
    /// Whether a branch at this level is stored.
    [[nodiscard]] constexpr bool stores_at(unsigned cpl) const noexcept {
        return stores() &&
               (levels == bts_levels::all || (levels == bts_levels::zero) == (cpl == 0));
    }
    friend constexpr bool operator==(const bts_setting&, const bts_setting&) noexcept = default;
};

/// Whether the register has bits for this setting.
[[nodiscard]] constexpr bool can_encode(const debugctl_bits& bits, bts_setting setting) noexcept {
    return setting.mode <= bts_mode::generated || setting.levels == bts_levels::all ||
           (bits.off_os != 0 && bits.off_usr != 0);
}

/// The bits of a setting, among those of `bits.all()`; the others are zero. 0 if `can_encode` is
/// false.
[[nodiscard]] constexpr std::uint64_t encode(const debugctl_bits& bits,
                                             bts_setting setting) noexcept {
    if (setting.mode == bts_mode::off || !can_encode(bits, setting)) return 0;
    if (setting.mode == bts_mode::generated) return bits.tr;
    std::uint64_t out = bits.tr | bits.bts;
    if (setting.mode == bts_mode::interrupt) out |= bits.btint;
    if (setting.levels == bts_levels::above_zero || setting.levels == bts_levels::none)
        out |= bits.off_os;
    if (setting.levels == bts_levels::zero || setting.levels == bts_levels::none)
        out |= bits.off_usr;
    return out;
}

/// The setting in a value of the register; bits of other facilities are ignored.
[[nodiscard]] constexpr bts_setting decode(const debugctl_bits& bits,
                                           std::uint64_t value) noexcept {
    if ((value & bits.tr) == 0) return {};
    if ((value & bits.bts) == 0) return {bts_mode::generated, bts_levels::all};
    const bool os = (value & bits.off_os) == 0;
    const bool user = (value & bits.off_usr) == 0;
    const auto mode = (value & bits.btint) != 0 ? bts_mode::interrupt : bts_mode::circular;
    return {mode, os     ? user ? bts_levels::all : bts_levels::zero
                  : user ? bts_levels::above_zero
                         : bts_levels::none};
}

// The rows, in the order of the table.
static_assert(decode(ia32_debugctl, 0x000) == bts_setting{});
static_assert(decode(ia32_debugctl, 0x040) == bts_setting{bts_mode::generated, bts_levels::all});
static_assert(decode(ia32_debugctl, 0x0C0) == bts_setting{bts_mode::circular, bts_levels::all});
static_assert(encode(ia32_debugctl, {bts_mode::interrupt, bts_levels::zero}) == 0x5C0);

}  // namespace trace_ring::inline v1::x86
