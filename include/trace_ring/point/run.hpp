// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Runs byte code that check.hpp has accepted, on one firing of a trace point.
/// @code
///   const auto done = trace_ring::point::run(predicate, firing, {});
///   if (done.value != 0 && done.faults == 0) run(action, firing, output);
/// @endcode

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <trace_ring/point/code.hpp>

namespace trace_ring::inline v1::point {

/// What is known of one firing, and the process's memory:
/// | expression | value | meaning |
/// |---|---|---|
/// | `f.word(context_word)` | `std::uint64_t` | as context_word says |
/// | `f.argument(n)` | `std::optional<std::uint64_t>` | by the mode's calling convention |
/// | `f.reg(n)` | `std::uint64_t` | by DWARF's numbers; 0 for one that the mode has not |
/// | `f.read(address, into)` | `bool` | all of `into` was read |
/// | `f.read_text(address, into)` | `std::optional<std::size_t>` | its length, also beyond `into` |
/// | `f.stack(into)` | `std::size_t` | how many return addresses it stored |
/// None may throw. They are asked in the order of the code.
template <class F>
concept firing = requires(F& f, context_word word, unsigned n, std::uint64_t address,
                          std::span<std::byte> into, std::span<std::uint64_t> addresses) {
    { f.word(word) } -> std::same_as<std::uint64_t>;
    { f.argument(n) } -> std::same_as<std::optional<std::uint64_t>>;
    { f.reg(n) } -> std::same_as<std::uint64_t>;
    { f.read(address, into) } -> std::same_as<bool>;
    { f.read_text(address, into) } -> std::same_as<std::optional<std::size_t>>;
    { f.stack(addresses) } -> std::same_as<std::size_t>;
};

/// Of a text that was longer than its place: the length's highest bit.
inline constexpr std::uint16_t text_was_cut = 0x8000;

struct outcome {
    std::uint64_t value = 0;   ///< what a predicate leaves; 0 of an action
    std::uint32_t faults = 0;  ///< what could not be read, and divisions by zero
};

namespace impl {

[[nodiscard]] constexpr std::uint64_t as_signed_quotient(std::uint64_t w, std::uint64_t x,
                                                         bool remainder) noexcept {
    // -2^63 / -1 is out of range, and would trap: by magnitudes it is 2^63, which wraps.
    const bool negative = static_cast<std::int64_t>(w) < 0;
    const bool differs = negative != (static_cast<std::int64_t>(x) < 0);
    const std::uint64_t a = negative ? 0 - w : w;
    const std::uint64_t b = static_cast<std::int64_t>(x) < 0 ? 0 - x : x;
    if (remainder) return negative ? 0 - a % b : a % b;
    return differs ? 0 - a / b : a / b;
}

/// An operation on two words; `faults` counts a division by zero.
[[nodiscard]] constexpr std::uint64_t combined(op how, std::uint64_t w, std::uint64_t x,
                                               std::uint32_t& faults) noexcept {
    const auto is_signed = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    switch (how) {
        case op::add:
            return w + x;
        case op::subtract:
            return w - x;
        case op::multiply:
            return w * x;
        case op::divide:
        case op::divide_unsigned:
        case op::remainder:
        case op::remainder_unsigned:
            if (x == 0) {
                ++faults;
                return 0;
            }
            if (how == op::divide_unsigned) return w / x;
            if (how == op::remainder_unsigned) return w % x;
            return as_signed_quotient(w, x, how == op::remainder);
        case op::bit_and:
            return w & x;
        case op::bit_or:
            return w | x;
        case op::bit_xor:
            return w ^ x;
        case op::shift_left:
            return w << (x & 63);
        case op::shift_right:
            return static_cast<std::uint64_t>(is_signed(w) >> (x & 63));
        case op::shift_right_unsigned:
            return w >> (x & 63);
        case op::equals:
            return w == x ? 1 : 0;
        case op::exceeds:
            return is_signed(w) > is_signed(x) ? 1 : 0;
        default:
            return w > x ? 1 : 0;  // exceeds_unsigned
    }
}

}  // namespace impl

/// Runs code that `find_fault` accepted, for the purpose that it was checked for. `output` has at
/// least as many bytes as that said; those that the code does not store become 0. Time is bounded
/// by the code's length and the output's. Signal-safe if the firing is.
template <firing Firing>
[[nodiscard]] outcome run(code of, Firing& at, std::span<std::byte> output) noexcept {
    outcome done;
    std::array<std::uint64_t, most_depth> stack;  // not set: each word is written before it is read
    std::size_t depth = 0;
    if (!output.empty()) std::memset(output.data(), 0, output.size());
    const auto read = [&](std::uint64_t address, width how) {
        std::uint64_t value = 0;
        std::array<std::byte, 8> bytes{};
        if (!at.read(address, std::span(bytes).first(bytes_of(how)))) {
            ++done.faults;
            return value;
        }
        std::memcpy(&value, bytes.data(), bytes_of(how));
        return narrowed(value, how);
    };
    for (std::size_t i = 0; i < of.size(); ++i) {
        const instruction& one = of[i];
        const auto offset = static_cast<std::size_t>(one.value);
        std::uint64_t* const x = depth == 0 ? nullptr : &stack[depth - 1];
        switch (one.code) {
            case op::finish:
                if (depth != 0) done.value = *x;
                return done;
            case op::constant:
                stack[depth++] = static_cast<std::uint64_t>(std::int64_t{one.value});
                break;
            case op::constant_high:
                *x = (*x & 0xFFFFFFFFU) | std::uint64_t{static_cast<std::uint32_t>(one.value)}
                                              << 32;
                break;
            case op::context:
                stack[depth++] = at.word(static_cast<context_word>(one.what));
                break;
            case op::argument: {
                const std::optional<std::uint64_t> value = at.argument(one.what);
                if (!value) ++done.faults;
                stack[depth++] = value.value_or(0);
                break;
            }
            case op::reg:
                stack[depth++] = at.reg(one.what);
                break;
            case op::load:
                *x = read(*x + static_cast<std::uint64_t>(std::int64_t{one.value}),
                          static_cast<width>(one.what));
                break;
            case op::negate:
                *x = 0 - *x;
                break;
            case op::invert:
                *x = ~*x;
                break;
            case op::is_zero:
                *x = *x == 0 ? 1 : 0;
                break;
            case op::narrow:
                *x = narrowed(*x, static_cast<width>(one.what));
                break;
            case op::skip:
                i += offset;
                break;
            case op::skip_if_zero:
                --depth;
                if (*x == 0) i += offset;
                break;
            case op::store:
                --depth;
                std::memcpy(output.data() + offset, x, bytes_of(static_cast<width>(one.what)));
                break;
            case op::store_text: {
                --depth;
                const auto into = output.subspan(offset + 2, one.size);
                const std::optional<std::size_t> length = at.read_text(*x, into);
                if (!length) ++done.faults;
                const bool cut = length && *length > into.size();
                const std::size_t kept = cut ? into.size() : length.value_or(0);
                const auto told = static_cast<std::uint16_t>(kept | (cut ? text_was_cut : 0U));
                // Nothing of what lies behind the text, or of what was read of an unreadable one.
                std::memset(into.data() + kept, 0, into.size() - kept);
                std::memcpy(output.data() + offset, &told, sizeof told);
                break;
            }
            case op::store_bytes: {
                --depth;
                const auto into = output.subspan(offset, one.size);
                if (!at.read(*x, into)) {
                    ++done.faults;
                    std::memset(into.data(), 0, into.size());
                }
                break;
            }
            case op::store_stack: {
                std::array<std::uint64_t, most_output / 8> addresses{};
                const std::size_t most = one.size / 8U;
                const std::size_t found = at.stack(std::span(addresses).first(most));
                if (found < most) std::memset(&addresses[found], 0, 8 * (most - found));
                std::memcpy(output.data() + offset, addresses.data(), one.size);
                break;
            }
            default:
                --depth;
                stack[depth - 1] = impl::combined(one.code, stack[depth - 1], *x, done.faults);
        }
    }
    return done;
}

}  // namespace trace_ring::inline v1::point
