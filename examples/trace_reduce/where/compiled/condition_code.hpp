// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Byte code that asks the records of one event, while it is written and when it runs.
/// @code
///   code.append({op::field, u32, 0, 8});
///   code.finish(bytes);
///   if (code.ask(run, 0, 64)[3] == point::truth_yes) use(run[3]);
/// @endcode

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/number_columns.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "../names.hpp"
#include "record_batch.hpp"

namespace trace_reduce::where {

enum class truth : std::uint8_t { no, unknown, yes };

[[nodiscard]] constexpr truth truth_of(std::uint64_t word) noexcept {
    return word == point::truth_yes  ? truth::yes
           : word == point::truth_no ? truth::no
                                     : truth::unknown;
}

class condition_code {
public:
    /// The tables and the expression must outlive it.
    explicit condition_code(const tables& in) noexcept : in_(&in) {}
    condition_code(condition_code&&) = default;
    condition_code& operator=(condition_code&&) = default;
    condition_code(const condition_code&) = delete;
    condition_code& operator=(const condition_code&) = delete;

    // --- Written ---

    void append(const point::instruction& one) { code_.push_back(one); }
    void append(point::op code, std::size_t value = 0) {
        append({code, 0, 0, static_cast<std::int32_t>(value)});
    }
    void constant(std::uint64_t value) { point::append_constant(code_, value); }
    void constant(const number& value) {
        constant(point::bits_of(value));
        append({point::op::number, static_cast<std::uint8_t>(point::kind_of(value))});
    }
    void ask_text(text_question what) {
        append(point::op::record_word, word_of_texts + asked_.texts.size());
        asked_.texts.push_back(std::move(what));
    }
    void ask_number(const record_value& what) {
        append(point::op::record_number, asked_.numbers.size());
        asked_.numbers.push_back(what);
    }
    void ask_within(key_ranges ranges) {
        append(point::op::within, asked_.ranges.size());
        asked_.ranges.push_back(std::move(ranges));
    }
    /// Makes the count of a duration on the stack nanoseconds. Whole numbers stay exact in all
    /// units that are no shorter than a nanosecond: one out of range becomes the greatest, which is
    /// more than any duration that it is compared with.
    void make_nanoseconds(const duration_unit& unit) {
        if (unit.times != 1) {
            constant(number::of(unit.times));
            append(point::op::number_multiply);
        }
        if (unit.over != 1) {
            constant(number::of(static_cast<double>(unit.over)));
            append(point::op::number_divide);
        }
    }
    /// Makes the truth on the stack its opposite.
    void turn() {
        constant(point::truth_no);
        append(point::op::same_truth);
    }

    /// A place in the code.
    [[nodiscard]] std::size_t here() const noexcept { return code_.size(); }
    void take_back(std::size_t to) { code_.resize(to); }
    /// Before the code from there on: it is skipped if the truth on the stack is this one. The
    /// target is not known yet.
    [[nodiscard]] std::size_t skip(std::size_t before, std::uint64_t if_truth) {
        std::vector<point::instruction> put{{point::op::copy}};
        if (if_truth == point::truth_yes) put.push_back({point::op::invert});
        put.push_back({point::op::skip_if_zero});
        code_.insert(place(before), put.begin(), put.end());
        return before + put.size() - 1;
    }
    void goes_on_here(std::size_t skip) {
        code_[skip].value = static_cast<std::int32_t>(code_.size() - skip - 1);
    }
    /// Whether the code from there on asks records for anything.
    [[nodiscard]] bool asks(std::size_t from) const {
        return std::any_of(place(from), code_.end(), [this](const point::instruction& one) {
            if (one.code != point::op::record_word) {
                return one.code == point::op::field || one.code == point::op::record_number;
            }
            const auto word = static_cast<std::size_t>(one.value);
            return word == word_of_ticks || !asked_.texts[word - word_of_texts].is_constant();
        });
    }
    /// Whether it takes longer than not to run it for some.
    [[nodiscard]] bool is_slow(std::size_t from) const {
        return std::any_of(place(from), code_.end(), [](const point::instruction& one) {
            return one.code == point::op::record_number || one.code == point::op::number_compare ||
                   (one.code == point::op::record_word && one.value != word_of_ticks);
        });
    }
    /// The lowest two words that the code from there on leaves, which asks for nothing. It is taken
    /// back.
    [[nodiscard]] std::array<std::uint64_t, 2> computed(std::size_t from) {
        static const lane_info none;
        record_batch nothing(asked_, *in_, none);
        code_.push_back({point::op::finish});
        const point::code alone = point::code(code_).subspan(from);
        stack_.resize((std::max)(depth_of(alone), std::size_t{2}));
        point::run(alone, nothing, 1, stack_);
        take_back(from);
        return {stack_[0][0], stack_[1][0]};
    }

    /// `bytes`: of the fixed part of each record. Throws std::length_error if the code is longer,
    /// or its stack deeper, than may be.
    void finish(std::size_t bytes) {
        append(point::op::finish);
        const std::size_t depth = depth_of(code_);
        const point::record_bounds bounds{
            static_cast<std::uint32_t>(bytes),
            static_cast<std::uint32_t>(word_of_texts + asked_.texts.size()),
            static_cast<std::uint32_t>(asked_.numbers.size()),
            static_cast<std::uint32_t>(asked_.ranges.size()), static_cast<std::uint32_t>(depth)};
        if (const auto why = point::find_fault(code_, {0, true, &bounds})) {
            throw std::length_error("the condition becomes code of more than " +
                                    std::to_string(why->at) + " instructions: " + why->what);
        }
        stack_.resize(depth);
    }
    /// All records have one answer, and none is asked.
    void decide(truth what) noexcept { constant_ = what; }

    // --- Run; by one thread at a time ---

    /// The answer, if it is the same for all records.
    [[nodiscard]] std::optional<truth> constant() const noexcept { return constant_; }
    /// The answer for a lane without a record, on which alone it depends.
    [[nodiscard]] truth ask(const lane_info& lane) const {
        return constant_ ? *constant_ : truth_of(run({asked_, *in_, lane}, 1)[0]);
    }
    /// The truths (point/machine/code.hpp) of up to 64 records of a run, from `begin` on.
    [[nodiscard]] const point::record_column& ask(const record_run& of, std::size_t begin,
                                                  std::size_t count) const {
        return run({asked_, *in_, of, begin, count},
                   ~std::uint64_t{0} >> (point::records_at_once - count));
    }

private:
    /// How many words are on the stack at most. All ways through this code pass the same depths, as
    /// it only skips what leaves one word for two.
    [[nodiscard]] static std::size_t depth_of(point::code of) noexcept {
        std::size_t depth = 0;
        std::size_t deepest = 0;
        for (const auto& one : of) {
            const point::stack_effect effect = point::effect_of(one.code);
            depth = depth - effect.takes + effect.leaves;
            deepest = (std::max)(deepest, depth);
        }
        return deepest;
    }
    [[nodiscard]] std::vector<point::instruction>::const_iterator place(
        std::size_t at) const noexcept {
        return code_.begin() + static_cast<std::ptrdiff_t>(at);
    }
    [[nodiscard]] const point::record_column& run(record_batch of, std::uint64_t asked) const {
        point::run(point::code(code_), of, asked, stack_);
        return stack_[0];
    }

    const tables* in_;
    std::vector<point::instruction> code_{};
    questions asked_{};
    std::optional<truth> constant_{};
    mutable std::vector<point::record_column> stack_{};
};

}  // namespace trace_reduce::where
