// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Byte code run in the plainest way, following code.hpp for each operation: compared with
/// point/machine/run.hpp, which must agree. It looks at each access, and throws where the checker
/// should have refused. Also a firing with its own memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/run.hpp>

namespace test {

namespace point = trace_ring::point;

/// Of a process whose memory is `memory` at `base`, and nothing else.
struct fake_firing {
    std::uint64_t base = 0x1000;
    std::vector<std::byte> memory{};
    std::vector<std::optional<std::uint64_t>> arguments{};
    std::map<unsigned, std::uint64_t> registers{};
    std::map<point::context_word, std::uint64_t> words{};
    std::vector<std::uint64_t> frames{};

    [[nodiscard]] std::uint64_t word(point::context_word of) const noexcept {
        const auto found = words.find(of);
        return found == words.end() ? 0 : found->second;
    }
    [[nodiscard]] std::optional<std::uint64_t> argument(unsigned n) const noexcept {
        return n < arguments.size() ? arguments[n] : std::nullopt;
    }
    [[nodiscard]] std::uint64_t reg(unsigned n) const noexcept {
        const auto found = registers.find(n);
        return found == registers.end() ? 0 : found->second;
    }
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const noexcept {
        const std::uint64_t at = address - base;
        if (at > memory.size() || into.size() > memory.size() - at) return false;
        std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(at), into.size(), into.begin());
        return true;
    }
    [[nodiscard]] std::optional<std::size_t> read_text(std::uint64_t address,
                                                       std::span<std::byte> into) const noexcept {
        for (std::size_t i = 0; i <= into.size(); ++i) {
            std::byte one{};
            if (!read(address + i, {&one, 1})) return std::nullopt;
            if (one == std::byte{0}) return i;
            if (i < into.size()) into[i] = one;
        }
        return into.size() + 1;
    }
    [[nodiscard]] std::size_t stack(std::span<std::uint64_t> into) const noexcept {
        const std::size_t count = std::min(into.size(), frames.size());
        std::copy_n(frames.begin(), count, into.begin());
        return count;
    }
};
static_assert(point::firing<fake_firing>);

/// What is wrong with the program that runs, and not with the one that is traced.
struct not_checked : std::logic_error {
    using std::logic_error::logic_error;
};

class naive {
public:
    naive(point::code of, const fake_firing& at, std::size_t output_bytes)
        : code_(of), at_(at), output(output_bytes) {}
    virtual ~naive() = default;

    void run() {
        std::size_t i = 0;
        for (std::size_t steps = 0; code_.size() > i; ++steps) {
            if (steps > code_.size()) throw not_checked("it does not end");
            const point::instruction& one = code_[i++];
            if (one.code == point::op::finish) {
                if (words_.size() > 1) throw not_checked("words are left");
                value = words_.empty() ? 0 : words_[0];
                return;
            }
            i += step(one);
        }
        throw not_checked("no end");
    }

    std::uint64_t value = 0;
    std::uint32_t faults = 0;

protected:
    /// An operation that only code for records has; false: there is no such.
    virtual bool ask_record(const point::instruction&) { return false; }

    std::uint64_t pop() {
        if (words_.empty()) throw not_checked("the stack is empty");
        const std::uint64_t top = words_.back();
        words_.pop_back();
        return top;
    }
    void push(std::uint64_t word) {
        words_.push_back(word);
        if (words_.size() > point::most_depth) throw not_checked("the stack is full");
    }
    /// From little-endian bytes.
    static std::uint64_t number(const std::vector<std::byte>& bytes, bool is_signed) {
        std::uint64_t made = 0;
        for (std::size_t i = bytes.size(); i-- > 0;)
            made = made << 8 | std::to_integer<std::uint64_t>(bytes[i]);
        const bool negative = (std::to_integer<unsigned>(bytes.back()) & 0x80U) != 0;
        for (std::size_t i = bytes.size(); is_signed && negative && i < 8; ++i)
            made |= std::uint64_t{0xFF} << (8 * i);
        return made;
    }
    static std::size_t bytes_in(std::uint8_t width) {
        constexpr std::size_t bytes[] = {1, 2, 4, 8, 1, 2, 4, 8};
        if (width >= std::size(bytes)) throw not_checked("no width");
        return bytes[width];
    }
    void put(std::int32_t at, std::uint64_t word, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i)
            output.at(static_cast<std::size_t>(at) + i) = static_cast<std::byte>(word >> (8 * i));
    }
    std::uint64_t divided(std::uint64_t w, std::uint64_t x, bool is_signed, bool rest) {
        if (x == 0) {
            ++faults;
            return 0;
        }
        if (!is_signed) return rest ? w % x : w / x;
        if (x == ~std::uint64_t{0}) return rest ? 0 : ~w + 1;  // by -1, which C++ leaves open once
        const auto a = static_cast<std::int64_t>(w);
        const auto b = static_cast<std::int64_t>(x);
        return static_cast<std::uint64_t>(rest ? a % b : a / b);
    }

    /// One instruction but `finish`; how many are to be skipped.
    std::size_t step(const point::instruction& one) {
        using point::op;
        if (ask_record(one)) return 0;
        const auto value_of = static_cast<std::uint64_t>(std::int64_t{one.value});
        switch (one.code) {
            case op::constant:
                push(value_of);
                return 0;
            case op::context: {
                const auto which = static_cast<point::context_word>(one.what);
                const bool missing =
                    which == point::context_word::elapsed && at_.word(which) == ~std::uint64_t{0};
                faults += missing ? 1 : 0;
                push(missing ? 0 : at_.word(which));
                return 0;
            }
            case op::argument: {
                const auto found = at_.argument(one.what);
                faults += found ? 0 : 1;
                push(found ? *found : 0);
                return 0;
            }
            case op::reg:
                push(at_.reg(one.what));
                return 0;
            case op::skip:
                return static_cast<std::size_t>(one.value);
            case op::store_faults:
                put(one.value, faults, 2);
                return 0;
            case op::store_stack: {
                std::vector<std::uint64_t> frames(one.size / 8);
                const std::size_t found = at_.stack(frames);
                for (std::size_t i = 0; i < frames.size(); ++i)
                    put(one.value + 8 * static_cast<std::int32_t>(i), i < found ? frames[i] : 0, 8);
                return 0;
            }
            default:
                break;
        }
        const std::uint64_t x = pop();
        const auto sx = static_cast<std::int64_t>(x);
        switch (one.code) {
            case op::constant_high:
                push(x % (std::uint64_t{1} << 32) +
                     std::uint64_t{static_cast<std::uint32_t>(one.value)} *
                         (std::uint64_t{1} << 32));
                return 0;
            case op::load: {
                std::vector<std::byte> bytes(bytes_in(one.what));
                const bool there = at_.read(x + value_of, bytes);
                faults += there ? 0 : 1;
                push(there ? number(bytes, one.what >= 4) : 0);
                return 0;
            }
            case op::negate:
                push(~x + 1);
                return 0;
            case op::invert:
                push(x ^ ~std::uint64_t{0});
                return 0;
            case op::is_zero:
                push(x != 0 ? 0 : 1);
                return 0;
            case op::narrow: {
                std::vector<std::byte> bytes;
                for (std::size_t i = 0; i < bytes_in(one.what); ++i)
                    bytes.push_back(static_cast<std::byte>(x >> (8 * i)));
                push(number(bytes, one.what >= 4));
                return 0;
            }
            case op::skip_if_zero:
                return x == 0 ? static_cast<std::size_t>(one.value) : 0;
            case op::store:
                put(one.value, x, bytes_in(one.what));
                return 0;
            case op::store_text: {
                std::vector<std::byte> text(one.size);
                const auto length = at_.read_text(x, text);
                faults += length ? 0 : 1;
                const std::size_t kept = length ? std::min<std::size_t>(*length, one.size) : 0;
                put(one.value, kept + (length && *length > one.size ? 0x8000U : 0U), 2);
                for (std::size_t i = 0; i < one.size; ++i)
                    put(one.value + 2 + static_cast<std::int32_t>(i),
                        i < kept ? std::to_integer<std::uint64_t>(text[i]) : 0, 1);
                return 0;
            }
            case op::store_bytes: {
                std::vector<std::byte> bytes(one.size);
                const bool there = at_.read(x, bytes);
                faults += there ? 0 : 1;
                for (std::size_t i = 0; i < one.size; ++i)
                    put(one.value + static_cast<std::int32_t>(i),
                        there ? std::to_integer<std::uint64_t>(bytes[i]) : 0, 1);
                return 0;
            }
            default:
                break;
        }
        const std::uint64_t w = pop();
        const auto sw = static_cast<std::int64_t>(w);
        push([&]() -> std::uint64_t {
            switch (one.code) {
                case op::add:
                    return w + x;
                case op::subtract:
                    return w + ~x + 1;
                case op::multiply: {
                    std::uint64_t sum = 0;
                    for (unsigned bit = 0; bit < 64; ++bit) sum += (x >> bit & 1U) * (w << bit);
                    return sum;
                }
                case op::divide:
                    return divided(w, x, true, false);
                case op::divide_unsigned:
                    return divided(w, x, false, false);
                case op::remainder:
                    return divided(w, x, true, true);
                case op::remainder_unsigned:
                    return divided(w, x, false, true);
                case op::bit_and:
                    return w & x;
                case op::bit_or:
                    return w | x;
                case op::bit_xor:
                    return w ^ x;
                case op::shift_left:
                    return w * (std::uint64_t{1} << x % 64);
                case op::shift_right: {
                    std::uint64_t moved = w;
                    for (std::uint64_t n = 0; n < x % 64; ++n)
                        moved = moved / 2 | (w & std::uint64_t{1} << 63);
                    return moved;
                }
                case op::shift_right_unsigned:
                    return w >> x % 64;
                case op::equals:
                    return w == x;
                case op::exceeds:
                    return sw > sx;
                case op::exceeds_unsigned:
                    return w > x;
                default:
                    throw not_checked("no operation");
            }
        }());
        return 0;
    }

private:
    point::code code_;
    const fake_firing& at_;
    std::vector<std::uint64_t> words_;

public:
    std::vector<std::byte> output;
};

}  // namespace test
