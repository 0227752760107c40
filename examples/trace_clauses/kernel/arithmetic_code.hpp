// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Translates the byte code's arithmetic to BPF, without branches. BPF divides and compares
/// differently.
/// @code
///   arithmetic_code compute(code);
///   compute.combine(point::op::divide);  // r1 becomes r1 / r2
/// @endcode

#include <cstdint>

#include <trace_ring/point/machine/code.hpp>

#include "bpf_code.hpp"

namespace trace_clauses {

namespace point = trace_ring::point;

/// The register that counts failed reads and divisions by zero. BPF calls preserve it.
inline constexpr bpf::reg faults = bpf::r8;

/// It uses r0 to r5.
class arithmetic_code {
public:
    explicit arithmetic_code(bpf_code& to) : to_(to) {}

    /// Truncates r1 to a width, and extends it again.
    void cut(point::width to) {
        const auto unused = static_cast<std::int32_t>(64 - 8 * point::bytes_of(to));
        if (unused == 0) return;
        to_.compute(BPF_LSH, bpf::r1, unused);
        to_.compute(to < point::width::s8 ? BPF_RSH : BPF_ARSH, bpf::r1, unused);
    }
    /// Extends a number that was read and is followed by zeros.
    void extend(point::width to) {
        if (to >= point::width::s8) cut(to);
    }
    /// r1 becomes 1 if it is 0, else 0. Uses r3.
    void is_zero() {
        to_.move(bpf::r3, bpf::r1);
        to_.negate(bpf::r3);
        to_.compute(BPF_OR, bpf::r1, bpf::r3);
        to_.compute(BPF_RSH, bpf::r1, 63);
        to_.compute(BPF_XOR, bpf::r1, 1);
    }
    /// r1 becomes r1 OPERATION r2.
    void combine(point::op how) {
        using point::op;
        switch (how) {
            case op::add:
                return to_.compute(BPF_ADD, bpf::r1, bpf::r2);
            case op::subtract:
                return to_.compute(BPF_SUB, bpf::r1, bpf::r2);
            case op::multiply:
                return to_.compute(BPF_MUL, bpf::r1, bpf::r2);
            case op::divide:
                return divide(true, false);
            case op::divide_unsigned:
                return divide(false, false);
            case op::remainder:
                return divide(true, true);
            case op::remainder_unsigned:
                return divide(false, true);
            case op::bit_and:
                return to_.compute(BPF_AND, bpf::r1, bpf::r2);
            case op::bit_or:
                return to_.compute(BPF_OR, bpf::r1, bpf::r2);
            case op::bit_xor:
                return to_.compute(BPF_XOR, bpf::r1, bpf::r2);
            case op::shift_left:
                return shift(BPF_LSH);
            case op::shift_right:
                return shift(BPF_ARSH);
            case op::shift_right_unsigned:
                return shift(BPF_RSH);
            case op::equals:
                to_.compute(BPF_XOR, bpf::r1, bpf::r2);
                return is_zero();
            case op::exceeds:
                return exceeds(true);
            default:
                return exceeds(false);
        }
    }

private:
    /// r1 becomes its magnitude, and `sign` 0, or -1 if it was negative.
    void magnitude(bpf::reg what, bpf::reg sign) {
        to_.move(sign, what);
        to_.compute(BPF_ARSH, sign, 63);
        with_sign(what, sign);
    }
    void with_sign(bpf::reg what, bpf::reg sign) {
        to_.compute(BPF_XOR, what, sign);
        to_.compute(BPF_SUB, what, sign);
    }
    void divide(bool is_signed, bool remainder) {
        if (is_signed) {
            magnitude(bpf::r1, bpf::r4);
            magnitude(bpf::r2, bpf::r5);
            if (!remainder) to_.compute(BPF_XOR, bpf::r4, bpf::r5);
        }
        to_.compute(remainder ? BPF_MOD : BPF_DIV, bpf::r1, bpf::r2);
        if (is_signed) with_sign(bpf::r1, bpf::r4);
        // Division by 0 is a fault and yields 0. BPF's remainder would return the dividend.
        to_.move(bpf::r0, bpf::r1);
        to_.move(bpf::r1, bpf::r2);
        is_zero();
        to_.compute(BPF_ADD, faults, bpf::r1);
        to_.compute(BPF_XOR, bpf::r1, 1);
        to_.compute(BPF_MUL, bpf::r1, bpf::r0);
    }
    /// r1 becomes 1 if r1 > r2, else 0: the borrow, or the sign, of r2 - r1.
    void exceeds(bool is_signed) {
        to_.move(bpf::r3, bpf::r2);
        to_.compute(BPF_SUB, bpf::r3, bpf::r1);  // the difference
        if (is_signed) {
            to_.move(bpf::r4, bpf::r3);
            to_.compute(BPF_XOR, bpf::r4, bpf::r2);
            to_.compute(BPF_XOR, bpf::r2, bpf::r1);
            to_.compute(BPF_AND, bpf::r2, bpf::r4);
            to_.compute(BPF_XOR, bpf::r3, bpf::r2);
            to_.move(bpf::r1, bpf::r3);
        } else {
            to_.compute(BPF_XOR, bpf::r2, -1);
            to_.move(bpf::r4, bpf::r2);
            to_.compute(BPF_OR, bpf::r4, bpf::r1);
            to_.compute(BPF_AND, bpf::r4, bpf::r3);
            to_.compute(BPF_AND, bpf::r1, bpf::r2);
            to_.compute(BPF_OR, bpf::r1, bpf::r4);
        }
        to_.compute(BPF_RSH, bpf::r1, 63);
    }
    void shift(unsigned how) {
        to_.compute(BPF_AND, bpf::r2, 63);
        to_.compute(how, bpf::r1, bpf::r2);
    }

    bpf_code& to_;
};

}  // namespace trace_clauses
