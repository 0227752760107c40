// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Byte code that asks records, run in the plainest way for one of them at a time: compared with
/// point/machine/run.hpp, which runs it for many together and must agree. And 64 records for it.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/record/field.hpp>

#include <point/naive.hpp>

namespace test {

/// Of others than those asked it answers nonsense, as it may.
struct fake_records {
    static constexpr point::record_bounds bounds{24, 3, 4, 4, point::most_depth};
    static constexpr std::size_t count = point::records_at_once;

    struct known_number {
        std::uint64_t bits = 0;
        point::number_kind kind = point::number_kind::whole;
    };
    std::array<std::array<std::byte, bounds.bytes>, count> bytes{};
    std::array<std::array<std::uint64_t, count>, bounds.words> words{};
    std::array<std::array<known_number, count>, bounds.numbers> numbers{};
    std::array<std::pair<std::uint64_t, std::uint64_t>, bounds.ranges> ranges{};

    explicit fake_records(std::mt19937_64& random) {
        const auto any_word = [&random] {
            constexpr std::uint64_t edges[] = {0, 1, 2, ~std::uint64_t{0}, std::uint64_t{1} << 63};
            const std::uint64_t word = random();
            return word % 3 == 0 ? word : edges[word / 3 % std::size(edges)];
        };
        for (auto& each : bytes) {
            for (auto& byte : each) {
                const std::uint64_t any = random();
                byte = static_cast<std::byte>(any % 4 == 0 ? any >> 8 : any % 4 == 1 ? 0xFF : 0);
            }
        }
        for (auto& each : words) {
            for (auto& word : each) word = any_word();
        }
        for (auto& each : numbers) {
            for (auto& one : each) {
                one = {any_word(), static_cast<point::number_kind>(random() % 5)};
                if (one.kind == point::number_kind::real) {
                    one.bits = std::bit_cast<std::uint64_t>(
                        std::ldexp(static_cast<double>(random() % 64) - 32,
                                   static_cast<int>(random() % 64) - 2));
                }
            }
        }
        for (auto& each : ranges) {
            each = {any_word(), any_word()};
            if (each.first > each.second) std::swap(each.first, each.second);
        }
    }

    /// Of record `k`.
    [[nodiscard]] std::uint64_t field_of(std::size_t k, trace_ring::field_type type,
                                         std::size_t at) const {
        const auto number = [&](auto value) {
            std::memcpy(&value, &bytes[k].at(at), sizeof value);
            return value;
        };
        using trace_ring::field_type;
        const auto word = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
        switch (type) {
            case field_type::u16:
                return number(std::uint16_t{});
            case field_type::u32:
                return number(std::uint32_t{});
            case field_type::i8:
                return word(number(std::int8_t{}));
            case field_type::i16:
                return word(number(std::int16_t{}));
            case field_type::i32:
                return word(number(std::int32_t{}));
            case field_type::f32:
                return std::bit_cast<std::uint64_t>(double{number(float{})});
            case field_type::u64:
            case field_type::i64:
            case field_type::f64:
            case field_type::address:
                return number(std::uint64_t{});
            default:
                return number(std::uint8_t{});
        }
    }
    [[nodiscard]] bool is_within(std::size_t n, std::uint64_t word) const {
        return ranges.at(n).first <= word && word <= ranges.at(n).second;
    }

    // What point::run asks.
    using column = point::record_column;
    static constexpr std::uint64_t nonsense = 0xBAD0BAD0BAD0BAD0;

    void field(trace_ring::field_type type, std::uint32_t at, column& into) const {
        for (std::size_t k = 0; k < count; ++k) into[k] = field_of(k, type, at);
    }
    void within(std::uint32_t n, column& of) const {
        for (auto& word : of) word = is_within(n, word) ? point::truth_yes : point::truth_no;
    }
    /// In half of the ranges.
    bool field_within(trace_ring::field_type type, std::uint32_t at, std::uint32_t n,
                      column& into) const {
        if (n % 2 != 0) return false;
        field(type, at, into);
        within(n, into);
        return true;
    }
    void word(std::uint32_t n, std::uint64_t asked, column& into) const {
        for (std::size_t k = 0; k < count; ++k) {
            into[k] = (asked >> k & 1) != 0 ? words.at(n)[k] : nonsense;
        }
    }
    void number(std::uint32_t n, std::uint64_t asked, column& bits, column& kinds) const {
        for (std::size_t k = 0; k < count; ++k) {
            if ((asked >> k & 1) == 0) continue;
            bits[k] = numbers.at(n)[k].bits;
            kinds[k] = static_cast<std::uint64_t>(numbers.at(n)[k].kind);
        }
    }
};

/// For record `k`.
class naive_record : public naive {
public:
    naive_record(point::code of, const fake_records& records, std::size_t k)
        : naive(of, no_firing(), 0), records_(records), k_(k) {}

    /// What it leaves, if it computed with a number that is none: which one, is left open.
    bool met_nan = false;

private:
    [[nodiscard]] static const fake_firing& no_firing() {
        static const fake_firing none;
        return none;
    }

    /// Holds every number of 64 bits, and every double.
    using real = long double;
    struct any_number {
        std::uint64_t bits = 0;
        std::uint64_t kind = 0;

        [[nodiscard]] bool there() const { return kind <= 2; }
        [[nodiscard]] bool floating() const { return kind == 2; }
        [[nodiscard]] real amount() const {
            return kind == 2   ? real{std::bit_cast<double>(bits)}
                   : kind == 1 ? static_cast<real>(static_cast<std::int64_t>(bits))
                               : static_cast<real>(bits);
        }
    };
    any_number pop_number() {
        const std::uint64_t kind = pop();
        return {pop(), kind};
    }
    void push_number(const any_number& of) {
        push(of.bits);
        push(of.kind);
    }
    any_number whole(real of) {
        constexpr real most = 18446744073709551615.0L;
        constexpr real least = -9223372036854775808.0L;
        const real kept = of > most ? most : of < least ? least : of;
        if (kept < 0) {
            return {static_cast<std::uint64_t>(static_cast<std::int64_t>(kept)), 1};
        }
        return {static_cast<std::uint64_t>(kept), 0};
    }
    any_number floating(double of) {
        met_nan = met_nan || std::isnan(of);
        return {std::bit_cast<std::uint64_t>(of), 2};
    }
    any_number combined(point::op how, const any_number& a, const any_number& b) {
        using point::op;
        if (!a.there() || !b.there()) return {a.bits, std::max(a.kind, b.kind)};
        const bool divides = how == op::number_divide || how == op::number_remainder;
        const real x = a.amount();
        const real y = b.amount();
        if (divides && y == 0) return {a.bits, 3};
        if (how == op::number_and) {
            // Neither is asked of a double, which has no such bits.
            const std::uint64_t both = (a.floating() ? 0 : a.bits) & (b.floating() ? 0 : b.bits);
            return {both, a.kind == 1 && b.kind == 1 && x < 0 && y < 0 ? 1U : 0U};
        }
        if (a.floating() || b.floating()) {
            const auto v = static_cast<double>(x);
            const auto w = static_cast<double>(y);
            return floating(how == op::number_add        ? v + w
                            : how == op::number_subtract ? v - w
                            : how == op::number_multiply ? v * w
                            : how == op::number_divide   ? v / w
                                                         : std::fmod(v, w));
        }
        const real rest = divides ? std::fmod(x, y) : 0;
        return whole(how == op::number_add        ? x + y
                     : how == op::number_subtract ? x - y
                     : how == op::number_multiply ? x * y
                     : how == op::number_divide   ? (x - rest) / y
                                                  : rest);
    }
    std::uint64_t compared(unsigned sign, const any_number& a, const any_number& b) {
        if (a.kind > 3 || b.kind > 3) return point::truth_unknown;
        if (a.kind == 3 || b.kind == 3) return point::truth_no;
        const real x = a.amount();
        const real y = b.amount();
        const bool found = sign == 1   ? x < y
                           : sign == 2 ? x == y
                           : sign == 3 ? x <= y
                           : sign == 4 ? x > y
                           : sign == 5 ? x != y
                                       : x >= y;
        return found ? point::truth_yes : point::truth_no;
    }

    bool ask_record(const point::instruction& one) override {
        using point::op;
        const auto n = static_cast<std::uint32_t>(one.value);
        switch (one.code) {
            case op::copy: {
                const std::uint64_t x = pop();
                push(x);
                push(x);
                return true;
            }
            case op::field:
                push(records_.field_of(k_, static_cast<trace_ring::field_type>(one.what), n));
                return true;
            case op::record_word:
                push(records_.words.at(n)[k_]);
                return true;
            case op::record_number: {
                const auto& known = records_.numbers.at(n)[k_];
                push_number({known.bits, static_cast<std::uint64_t>(known.kind)});
                return true;
            }
            case op::within:
                push(records_.is_within(n, pop()) ? ~std::uint64_t{0} : 0);
                return true;
            case op::same_truth: {
                const std::uint64_t x = pop();
                const std::uint64_t w = pop();
                const auto known = [](std::uint64_t of) { return of == 0 || ~of == 0; };
                push(!known(w) || !known(x) ? 1 : w == x ? ~std::uint64_t{0} : 0);
                return true;
            }
            case op::number: {
                const std::uint64_t x = pop();
                push(x);
                push(one.what != 1 ? one.what : static_cast<std::int64_t>(x) < 0 ? 1U : 0U);
                return true;
            }
            case op::number_negate: {
                const any_number x = pop_number();
                push_number(!x.there()     ? x
                            : x.floating() ? floating(-std::bit_cast<double>(x.bits))
                                           : whole(-x.amount()));
                return true;
            }
            case op::number_add:
            case op::number_subtract:
            case op::number_multiply:
            case op::number_divide:
            case op::number_remainder:
            case op::number_and: {
                const any_number b = pop_number();
                const any_number a = pop_number();
                push_number(combined(one.code, a, b));
                return true;
            }
            case op::number_compare: {
                const any_number b = pop_number();
                const any_number a = pop_number();
                push(compared(one.what, a, b));
                return true;
            }
            default:
                return false;
        }
    }

    const fake_records& records_;
    std::size_t k_;
};

}  // namespace test
