// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the caller's frame for one address in the code, from the compiler's .eh_frame (DWARF 5,
/// 6.4: call frame information), reduced to what stack walking needs.
///
/// Only the stack pointer and the frame pointer are tracked. This suffices for nearly all code. If
/// the tables need more (a frame found through another register, a signal frame), the rule is
/// `stop`, and the stack ends there.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "eh_reader.hpp"

namespace heap {

/// The caller's frame begins at the CFA: a register plus an offset, or the word stored there. The
/// return address is just below the CFA.
struct frame_rule {
    enum class base : std::uint8_t {
        stop,         ///< the walk ends here: the outermost frame, or one that cannot be followed
        stack,        ///< CFA = stack pointer + offset
        frame,        ///< CFA = frame pointer + offset
        frame_deref,  ///< CFA = the word at frame pointer + offset (a realigned stack)
    };
    enum class saved : std::uint8_t {
        unchanged,  ///< the caller's frame pointer is still in its register
        below_cfa,  ///< it is stored at CFA - fp_words words
        at_frame,   ///< it is stored where the frame pointer points
    };
    base cfa = base::stop;
    saved fp = saved::unchanged;
    std::int32_t offset = 0;  ///< bytes
    std::uint8_t fp_words = 0;

    friend bool operator==(const frame_rule&, const frame_rule&) = default;
};

namespace impl {

#if defined(__x86_64__)
inline constexpr unsigned dwarf_fp = 6, dwarf_sp = 7, dwarf_ra = 16;
#elif defined(__i386__)
inline constexpr unsigned dwarf_fp = 5, dwarf_sp = 4, dwarf_ra = 8;
#else
inline constexpr unsigned dwarf_fp = ~0U, dwarf_sp = ~0U, dwarf_ra = ~0U;  // no tables read here
#endif

/// The state that an FDE's or CIE's instructions have described so far.
struct frame_state {
    frame_rule::base cfa = frame_rule::base::stop;
    std::int64_t offset = 0;
    // The places of the caller's two registers, as CFA + bytes. If `usual` is false, they cannot be
    // tracked.
    bool fp_saved = false, fp_at_frame = false, fp_usual = true;
    std::int64_t fp_at = 0;
    bool ra_saved = false, ra_usual = true;
    std::int64_t ra_at = 0;
};

struct frame_cie {
    std::uint64_t code_align = 1;
    std::int64_t data_align = 1;
    std::uint8_t encoding = 0;
    bool has_data = false;
    eh_reader instructions{nullptr, nullptr};
};

[[nodiscard]] inline std::optional<frame_cie> read_cie(eh_reader r) noexcept {
    const auto bytes = r.take<std::uint32_t>();
    if (bytes == 0 || bytes == 0xFFFFFFFFU) return std::nullopt;
    eh_reader cie = r.part(bytes);
    if (cie.take<std::uint32_t>() != 0) return std::nullopt;
    const auto version = cie.take<std::uint8_t>();
    if (version != 1 && version != 3) return std::nullopt;
    const auto* const text = reinterpret_cast<const char*>(cie.at());
    while (cie.take<std::uint8_t>() != 0) {
    }
    if (cie.failed()) return std::nullopt;
    frame_cie made;
    made.code_align = cie.uleb();
    made.data_align = cie.sleb();
    const std::uint64_t ra = version == 1 ? cie.take<std::uint8_t>() : cie.uleb();
    if (ra != dwarf_ra) return std::nullopt;
    for (const char letter : std::string_view(text)) {
        switch (letter) {
            case 'z': {
                made.has_data = true;
                (void)cie.uleb();
                break;
            }
            case 'R':
                made.encoding = cie.take<std::uint8_t>();
                break;
            case 'P': {
                const auto encoding = cie.take<std::uint8_t>();
                if (encoding == 0x50) return std::nullopt;  // aligned: never written by compilers
                (void)cie.encoded(encoding);
                break;
            }
            case 'L':
                (void)cie.take<std::uint8_t>();
                break;
            default:
                return std::nullopt;  // 'S', a signal frame, among others
        }
    }
    if (cie.failed()) return std::nullopt;
    made.instructions = cie;
    return made;
}

/// `DW_OP_breg<r> offset`, alone or with a DW_OP_deref after it.
struct frame_expression {
    std::uint64_t reg = 0;
    std::int64_t offset = 0;
    bool deref = false;
};
[[nodiscard]] inline std::optional<frame_expression> read_expression(eh_reader& r) noexcept {
    eh_reader e = r.part(r.uleb());
    const auto op = e.take<std::uint8_t>();
    if (op < 0x70 || op > 0x8F) return std::nullopt;
    frame_expression made{op - 0x70U, e.sleb(), false};
    if (!e.empty()) made.deref = e.take<std::uint8_t>() == 0x06;
    if (e.failed() || !e.empty()) return std::nullopt;
    return made;
}

/// Runs instructions until they describe `pc`. Returns false if an instruction is not supported.
[[nodiscard]] inline bool run(const frame_cie& cie, eh_reader r, std::uintptr_t location,
                              std::uintptr_t pc, const frame_state& initial,
                              frame_state& s) noexcept {
    frame_state kept[8];
    unsigned depth = 0;
    std::uint64_t at = location;
    const auto advance = [&](std::uint64_t by) { return (at += by * cie.code_align) <= pc; };
    const auto save = [&](std::uint64_t reg, std::int64_t where) {
        if (reg == dwarf_fp)
            s.fp_saved = true, s.fp_usual = true, s.fp_at_frame = false, s.fp_at = where;
        if (reg == dwarf_ra) s.ra_saved = true, s.ra_usual = true, s.ra_at = where;
    };
    const auto lose = [&](std::uint64_t reg) {
        if (reg == dwarf_fp) s.fp_usual = false;
        if (reg == dwarf_ra) s.ra_usual = false;
    };
    const auto keep = [&](std::uint64_t reg) {
        if (reg == dwarf_fp) s.fp_saved = s.fp_at_frame = false, s.fp_usual = true;
        if (reg == dwarf_ra)
            s.ra_usual = false;  // in a different register: does not occur on this
                                 // machine
    };
    const auto restore = [&](std::uint64_t reg) {
        if (reg == dwarf_fp) {
            s.fp_saved = initial.fp_saved, s.fp_at_frame = initial.fp_at_frame;
            s.fp_usual = initial.fp_usual, s.fp_at = initial.fp_at;
        }
        if (reg == dwarf_ra) {
            s.ra_saved = initial.ra_saved, s.ra_usual = initial.ra_usual, s.ra_at = initial.ra_at;
        }
    };
    const auto cfa_register = [&](std::uint64_t reg) {
        s.cfa = reg == dwarf_sp   ? frame_rule::base::stack
                : reg == dwarf_fp ? frame_rule::base::frame
                                  : frame_rule::base::stop;
    };
    while (!r.empty()) {
        const auto op = r.take<std::uint8_t>();
        const unsigned low = op & 0x3FU;
        switch (op >> 6) {
            case 1:  // advance_loc
                if (!advance(low)) return !r.failed();
                continue;
            case 2:  // offset
                save(low, static_cast<std::int64_t>(r.uleb()) * cie.data_align);
                continue;
            case 3:
                restore(low);
                continue;
            default:
                break;
        }
        switch (op) {
            case 0x00:
                break;  // nop
            case 0x01:
                return false;  // set_loc: not written for .eh_frame
            case 0x02:
                if (!advance(r.take<std::uint8_t>())) return !r.failed();
                break;
            case 0x03:
                if (!advance(r.take<std::uint16_t>())) return !r.failed();
                break;
            case 0x04:
                if (!advance(r.take<std::uint32_t>())) return !r.failed();
                break;
            case 0x05: {  // offset_extended
                const auto reg = r.uleb();
                save(reg, static_cast<std::int64_t>(r.uleb()) * cie.data_align);
                break;
            }
            case 0x06:
                restore(r.uleb());
                break;
            case 0x07:
                lose(r.uleb());
                break;  // undefined for the return address: the outermost frame
            case 0x08:
                keep(r.uleb());
                break;    // same_value
            case 0x09: {  // register
                lose(r.uleb());
                (void)r.uleb();
                break;
            }
            case 0x0A:  // remember_state
                if (depth == 8) return false;
                kept[depth++] = s;
                break;
            case 0x0B:  // restore_state
                if (depth == 0) return false;
                s = kept[--depth];
                break;
            case 0x0C:  // def_cfa
                cfa_register(r.uleb());
                s.offset = static_cast<std::int64_t>(r.uleb());
                break;
            case 0x0D:
                cfa_register(r.uleb());
                break;
            case 0x0E:
                s.offset = static_cast<std::int64_t>(r.uleb());
                break;
            case 0x0F: {  // def_cfa_expression
                const auto e = read_expression(r);
                s.cfa = frame_rule::base::stop;
                if (e && e->reg == dwarf_fp) {
                    s.cfa = e->deref ? frame_rule::base::frame_deref : frame_rule::base::frame;
                    s.offset = e->offset;
                }
                break;
            }
            case 0x10: {  // expression: the register is at a separate address
                const auto reg = r.uleb();
                const auto e = read_expression(r);
                lose(reg);
                if (reg == dwarf_fp && e && e->reg == dwarf_fp && e->offset == 0 && !e->deref) {
                    s.fp_usual = s.fp_at_frame = true;
                }
                break;
            }
            case 0x11: {  // offset_extended_sf
                const auto reg = r.uleb();
                save(reg, r.sleb() * cie.data_align);
                break;
            }
            case 0x12:  // def_cfa_sf
                cfa_register(r.uleb());
                s.offset = r.sleb() * cie.data_align;
                break;
            case 0x13:
                s.offset = r.sleb() * cie.data_align;
                break;
            case 0x14:    // val_offset
            case 0x15: {  // val_offset_sf
                lose(r.uleb());
                (void)r.uleb();
                break;
            }
            case 0x16: {  // val_expression
                lose(r.uleb());
                r.skip(r.uleb());
                break;
            }
            case 0x2E:
                (void)r.uleb();
                break;  // GNU_args_size
            default:
                return false;
        }
    }
    return !r.failed();
}

[[nodiscard]] inline frame_rule condense(const frame_state& s) noexcept {
    constexpr std::int64_t word = sizeof(void*);
    if (s.cfa == frame_rule::base::stop || !s.fp_usual || !s.ra_usual || !s.ra_saved ||
        s.ra_at != -word || s.offset < -(1 << 19) || s.offset >= 1 << 19 || s.offset % 4 != 0) {
        return {};
    }
    frame_rule rule{s.cfa, frame_rule::saved::unchanged, static_cast<std::int32_t>(s.offset), 0};
    if (s.fp_at_frame) {
        rule.fp = frame_rule::saved::at_frame;
    } else if (s.fp_saved) {
        if (s.fp_at >= 0 || s.fp_at < -63 * word || s.fp_at % word != 0) return {};
        rule.fp = frame_rule::saved::below_cfa;
        rule.fp_words = static_cast<std::uint8_t>(-s.fp_at / word);
    }
    return rule;
}

}  // namespace impl

/// The rule for the frame in which `pc` executes, from the tables of `object`, which contains it.
/// For a return address pass the address minus one, because the call may be a function's last
/// instruction. Takes no lock, allocates nothing, and reads only the object's mapping.
[[nodiscard]] inline frame_rule find_frame_rule(std::uintptr_t pc,
                                                const dl_find_object& object) noexcept {
    using impl::eh_reader;
    const auto* const end = static_cast<const std::uint8_t*>(object.dlfo_map_end);
    const auto* const begin = static_cast<const std::uint8_t*>(object.dlfo_map_start);
    const auto* const header = static_cast<const std::uint8_t*>(object.dlfo_eh_frame);
    if (header < begin || header >= end || impl::dwarf_ra == ~0U) return {};
    eh_reader r(header, end);
    const auto version = r.take<std::uint8_t>();
    const auto frame_encoding = r.take<std::uint8_t>();
    const auto count_encoding = r.take<std::uint8_t>();
    const auto table_encoding = r.take<std::uint8_t>();
    // The form that every linker writes: a sorted table of (function, FDE), relative to the header.
    if (version != 1 || count_encoding != 0x03 || table_encoding != 0x3B) return {};
    (void)r.encoded(frame_encoding);
    const auto count = r.take<std::uint32_t>();
    eh_reader table = r.part(std::uint64_t{count} * 8);
    if (table.failed() || count == 0) return {};
    const std::uint8_t* const rows = table.at();
    const auto row = [&](std::size_t i, std::size_t column) {
        std::int32_t relative = 0;
        std::memcpy(&relative, rows + i * 8 + column * 4, sizeof relative);
        return reinterpret_cast<std::uintptr_t>(header) + static_cast<std::uintptr_t>(relative);
    };
    std::size_t first = 0, last = count;  // finds the last row that does not begin after pc
    while (last - first > 1) {
        const std::size_t middle = first + (last - first) / 2;
        (row(middle, 0) <= pc ? first : last) = middle;
    }
    const std::uintptr_t function = row(first, 0);
    const auto* const fde_at = reinterpret_cast<const std::uint8_t*>(row(first, 1));
    if (function > pc || fde_at < begin || fde_at >= end) return {};

    eh_reader f(fde_at, end);
    const auto bytes = f.take<std::uint32_t>();
    if (bytes == 0 || bytes == 0xFFFFFFFFU) return {};
    eh_reader fde = f.part(bytes);
    const std::uint8_t* const here = fde.at();
    const auto back = fde.take<std::uint32_t>();
    if (fde.failed() || back > static_cast<std::size_t>(here - begin)) return {};
    const auto cie = impl::read_cie(eh_reader(here - back, end));
    if (!cie) return {};
    (void)fde.encoded(cie->encoding);
    const std::uint64_t range = fde.encoded(cie->encoding & 0x0FU);
    if (cie->has_data) fde.skip(fde.uleb());
    if (fde.failed() || pc - function >= range) return {};

    impl::frame_state state;
    if (!impl::run(*cie, cie->instructions, 0, ~std::uintptr_t{0}, {}, state)) return {};
    const impl::frame_state initial = state;
    if (!impl::run(*cie, fde, function, pc, initial, state)) return {};
    return impl::condense(state);
}

}  // namespace heap
