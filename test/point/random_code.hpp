// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Random byte code: built so that the checker accepts it, then changed in some places, so that it
/// may refuse it. And a firing for it, whose words often are addresses.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/code.hpp>

#include <point/naive.hpp>

namespace test {

class random_code {
public:
    /// Constants are often addresses around `anchor`. With bounds it asks records.
    explicit random_code(std::mt19937_64& random, std::uint64_t anchor = 0x1000,
                         const point::record_bounds* records = nullptr)
        : random_(random), anchor_(anchor) {
        as.records = records;
        as.is_predicate = records != nullptr || below(2) == 0;
        as.output_bytes = as.is_predicate ? 0 : static_cast<std::uint32_t>(below(64));
        const std::size_t length = 1 + below(30);
        struct way {
            std::size_t from;   // a skip that leads to what is still to come,
            std::size_t depth;  // where the stack must be as it was
        };
        std::vector<way> open;
        while (code.size() < length || !open.empty()) {
            if (!open.empty() && (below(4) == 0 || code.size() >= length)) {
                const auto [from, depth] = open.back();
                open.pop_back();
                bring_to(depth);
                code[from].value = static_cast<std::int32_t>(code.size() - from - 1);
            } else if (depth_ != 0 && below(6) == 0) {
                add({point::op::skip_if_zero});
                open.push_back({code.size() - 1, depth_});
            } else {
                add(any());
            }
        }
        bring_to(as.is_predicate ? 1 : 0);
        add({point::op::finish});
        if (below(4) != 0) return;
        // One bit of one field in one or two places.
        for (std::size_t n = 1 + below(2); n != 0; --n) {
            point::instruction& one = code[below(code.size())];
            const std::size_t bit = below(8);
            switch (below(4)) {
                case 0:
                    one.code = static_cast<point::op>(static_cast<unsigned>(one.code) ^ 1U << bit);
                    break;
                case 1:
                    one.what = static_cast<std::uint8_t>(one.what ^ 1U << bit);
                    break;
                case 2:
                    one.size = static_cast<std::uint16_t>(one.size ^ 1U << 2 * bit);
                    break;
                default:
                    one.value ^= static_cast<std::int32_t>(1U << 4 * bit);
            }
        }
    }

    std::vector<point::instruction> code{};
    point::purpose as{};

private:
    [[nodiscard]] std::size_t below(std::size_t limit) {
        return static_cast<std::size_t>(random_() % limit);
    }
    void add(point::instruction one) {
        const point::stack_effect effect = point::effect_of(one.code);
        depth_ = depth_ - effect.takes + effect.leaves;
        code.push_back(one);
    }
    void bring_to(std::size_t depth) {
        while (depth_ < depth) add({point::op::constant, 0, 0, 7});
        while (depth_ > depth) add({point::op::skip_if_zero});  // to the next: a word is dropped
    }
    /// An operation for which there are words, and room.
    [[nodiscard]] point::instruction any() {
        using point::op;
        while (true) {
            point::instruction one{static_cast<op>(below(point::ops))};
            const point::stack_effect effect = point::effect_of(one.code);
            if (one.code == op::finish || one.code == op::skip || one.code == op::skip_if_zero ||
                (as.records != nullptr ? asks_firing(one.code) : asks_records(one.code)) ||
                depth_ < effect.takes ||
                depth_ - effect.takes + effect.leaves > point::most_depth) {
                continue;
            }
            const auto any_value = [this] {
                const std::uint64_t value = random_();
                // Often near an end of the range, or near an address.
                switch (value % 4) {
                    case 0:
                        return static_cast<std::int32_t>(value >> 8 & 15U) - 8;
                    case 1:
                        return static_cast<std::int32_t>(anchor_ + (value >> 8 & 63U));
                    default:
                        return static_cast<std::int32_t>(value >> 32);
                }
            };
            switch (one.code) {
                case op::constant:
                case op::constant_high:
                    one.value = any_value();
                    break;
                case op::context:
                    one.what = static_cast<std::uint8_t>(below(point::context_words));
                    break;
                case op::argument:
                    one.what = static_cast<std::uint8_t>(below(point::most_arguments));
                    break;
                case op::reg:
                    one.what = static_cast<std::uint8_t>(below(point::most_registers));
                    break;
                case op::load:
                case op::narrow:
                case op::store:
                    one.what = static_cast<std::uint8_t>(below(point::widths));
                    if (one.code == op::load) one.value = static_cast<std::int32_t>(below(16)) - 8;
                    break;
                case op::store_text:
                case op::store_bytes:
                    one.size = static_cast<std::uint16_t>(1 + below(16));
                    break;
                case op::store_stack:
                    one.size = static_cast<std::uint16_t>(8 + 8 * below(3));
                    break;
                case op::field:
                    one.what = static_cast<std::uint8_t>(1 + below(13));
                    one.value = static_cast<std::int32_t>(below(as.records->bytes - 7));
                    break;
                case op::record_word:
                    one.value = static_cast<std::int32_t>(below(as.records->words));
                    break;
                case op::record_number:
                    one.value = static_cast<std::int32_t>(below(as.records->numbers));
                    break;
                case op::within:
                    one.value = static_cast<std::int32_t>(below(as.records->ranges));
                    break;
                case op::number:
                    one.what = static_cast<std::uint8_t>(below(point::word_kinds));
                    break;
                case op::number_compare:
                    one.what = static_cast<std::uint8_t>(1 + below(6));
                    break;
                default:
                    break;
            }
            if (one.code >= op::store && one.code <= op::store_faults) {
                std::size_t bytes = one.size + (one.code == op::store_text ? 2U : 0U);
                if (one.code == op::store)
                    bytes = point::bytes_of(static_cast<point::width>(one.what));
                if (one.code == op::store_faults) bytes = 2;
                if (bytes > as.output_bytes) continue;
                one.value = static_cast<std::int32_t>(below(as.output_bytes - bytes + 1));
            }
            return one;
        }
    }

    std::mt19937_64& random_;
    std::uint64_t anchor_;
    std::size_t depth_ = 0;
};

/// 64 bytes of memory, half of them an ending of texts or small.
[[nodiscard]] inline fake_firing random_firing(std::mt19937_64& random) {
    fake_firing made;
    const auto any_word = [&random, &made] {
        const std::uint64_t word = random();
        return word % 2 == 0 ? made.base + word / 2 % 72 : word;
    };
    for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t byte = random();
        made.memory.push_back(static_cast<std::byte>(byte % 4 == 0 ? 0 : byte >> 8));
    }
    for (unsigned i = 0; i < point::most_arguments; ++i)
        made.arguments.push_back(random() % 8 == 0 ? std::nullopt : std::optional(any_word()));
    for (unsigned i = 0; i < point::most_registers; i += 2) made.registers[i] = any_word();
    for (unsigned i = 0; i < point::context_words; ++i)
        made.words[static_cast<point::context_word>(i)] = any_word();
    for (std::uint64_t n = random() % 5; n != 0; --n) made.frames.push_back(any_word());
    return made;
}

}  // namespace test
