// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Compiles a condition for the records of one event to byte code. What the dictionary decides is
/// decided here; a field at a fixed place, or the time, that is compared with constants becomes a
/// range of keys (ranges.hpp); other numbers are compared exactly, whatever their types.
/// @code
///   const condition_code code = compile(expression, {tables, &type, true});
///   if (!code.constant()) use(code.ask(run, 0, 64));
/// @endcode
/// The logic has three values: if a record lacks what a comparison asks for, the answer is unknown.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <trace_ring/point/machine/code.hpp>
#include <trace_ring/point/machine/number_columns.hpp>

#include "../kinds.hpp"
#include "condition_code.hpp"
#include "ranges.hpp"
#include "record_batch.hpp"
#include "record_names.hpp"

namespace trace_reduce::where {

class condition_compiler {
public:
    explicit condition_compiler(const setting& where)
        : where_(where), names_(where), code_(where.in) {}

    /// The answer, if it is the same for all records.
    [[nodiscard]] std::optional<truth> decide(const expression& of) && { return condition(of); }
    [[nodiscard]] condition_code compile(const expression& of) && {
        if (const decided known = condition(of)) {
            code_.decide(*known);
        } else {
            code_.finish(where_.type != nullptr && where_.has_fields ? where_.type->fixed_bytes
                                                                     : 0);
        }
        return std::move(code_);
    }

private:
    using op = point::op;
    /// Of a condition that does not depend on records; nothing: its code leaves a truth.
    using decided = std::optional<truth>;

    // --- Conditions ---

    [[nodiscard]] decided condition(const expression& of) {
        switch (of.what) {
            case form::all_of:
            case form::any_of:
                return joined(of);
            case form::none_of:
                return turned(condition(of.parts[0]));
            case form::truth:
                return of.value.is_zero() ? truth::no : truth::yes;
            case form::compared:
                return compared(of);
            case form::among:
                return among(of);
            case form::like:
                if (impl::find_kind(of.parts[0], where_.type, true).is != kind::text) break;
                return text({form::like, of.sign, {}, &of.word}, {&of.parts[0]});
            default:
                return flag(of);
        }
        return truth::unknown;
    }

    /// The opposite of the condition compiled last.
    [[nodiscard]] decided turned(const decided& known) {
        if (known) return static_cast<truth>(2 - static_cast<int>(*known));
        code_.turn();
        return std::nullopt;
    }

    [[nodiscard]] decided joined(const expression& of) {
        const bool all = of.what == form::all_of;
        const std::size_t begin = code_.here();
        bool unknown = false;
        std::vector<std::size_t> skips;  // to the end, where the answer is known by then
        for (const auto& part : of.parts) {
            const std::size_t from = code_.here();
            if (const decided known = condition(part)) {
                if (known == (all ? truth::no : truth::yes)) {
                    code_.take_back(begin);
                    return known;  // the other parts cannot change it
                }
                unknown = unknown || known == truth::unknown;
            } else if (from != begin) {
                if (code_.is_slow(from)) {
                    skips.push_back(code_.skip(from, all ? point::truth_no : point::truth_yes));
                }
                code_.append(all ? op::bit_and : op::bit_or);
            }
        }
        for (const std::size_t skip : skips) code_.goes_on_here(skip);
        if (code_.here() == begin) {
            return unknown ? truth::unknown : all ? truth::yes : truth::no;
        }
        if (unknown) {
            code_.constant(point::truth_unknown);
            code_.append(all ? op::bit_and : op::bit_or);
        }
        return std::nullopt;
    }

    [[nodiscard]] decided compared(const expression& of) {
        const auto& left = of.parts[0];
        const auto& right = of.parts[1];
        const auto kinds = compared_kinds(of, left, right, where_.type);
        if (kinds.left.is == kind::missing || kinds.right.is == kind::missing ||
            kinds.right.is == kind::wrong) {
            return truth::unknown;
        }
        if (kinds.right.is == kind::truth) {
            const decided known = same(left, right);
            return of.sign == comparison::unequal ? turned(known) : known;
        }
        if (kinds.left.is == kind::text) return compared_texts(of);
        for (const std::size_t i : {1U, 0U}) {
            if (!is_constant(of.parts[i])) continue;
            const auto with = value(of.parts[i]);
            const auto what = names_.word_of(of.parts[1 - i]);
            if (!with || !what) continue;
            return in_ranges(*what, {{i == 1 ? of.sign : mirrored(of.sign), *with}});
        }
        return numbers(left, of.sign, right);
    }
    [[nodiscard]] decided numbers(const expression& left, comparison sign,
                                  const expression& right) {
        const std::size_t begin = code_.here();
        if (!push(left) || !push(right)) {
            code_.take_back(begin);
            return truth::unknown;
        }
        code_.append({op::number_compare, static_cast<std::uint8_t>(sign)});
        return settled(begin);
    }
    /// Decides what asks for nothing.
    [[nodiscard]] decided settled(std::size_t begin) {
        if (code_.asks(begin)) return std::nullopt;
        return where::truth_of(code_.computed(begin)[0]);
    }
    /// Compares the answers of two conditions.
    [[nodiscard]] decided same(const expression& left, const expression& right) {
        const std::size_t begin = code_.here();
        const decided a = condition(left);
        const decided b = condition(right);
        if (a == truth::unknown || b == truth::unknown) {
            code_.take_back(begin);
            return truth::unknown;
        }
        if (a && b) return a == b ? truth::yes : truth::no;
        const decided known = a ? a : b;
        if (!known) code_.append(op::same_truth);
        if (known == truth::no) code_.turn();
        return std::nullopt;
    }

    [[nodiscard]] decided among(const expression& of) {
        const auto& what = of.parts[0];
        bool as_text = false;
        for (std::size_t i = 1; i < of.parts.size(); ++i) {
            const auto kinds = compared_kinds(of, what, of.parts[i], where_.type);
            if (kinds.left.is == kind::missing || kinds.right.is == kind::wrong ||
                !is_constant(of.parts[i])) {
                return truth::unknown;
            }
            as_text = kinds.left.is == kind::text;
        }
        if (as_text) return among_texts(of);
        std::vector<bound> bounds;
        for (std::size_t i = 1; i + 1 < of.parts.size(); i += 2) {
            const auto low = value(of.parts[i]);
            const auto high = value(of.parts[i + 1]);
            if (low && high) bounds.push_back({comparison::at_least, *low, *high});
        }
        if (const auto word = names_.word_of(what)) return in_ranges(*word, bounds);
        if (bounds.empty()) {  // no number is in it, and one that is unknown may be
            bounds.push_back({comparison::at_least, number::of(1.0), number::of(0.0)});
        }
        const std::size_t begin = code_.here();
        code_.constant(point::truth_no);
        for (const bound& each : bounds) {
            for (const bool low : {true, false}) {
                if (!push(what)) {
                    code_.take_back(begin);
                    return truth::unknown;
                }
                code_.constant(low ? each.with : *each.up_to);
                code_.append(
                    {op::number_compare,
                     static_cast<std::uint8_t>(low ? comparison::at_least : comparison::at_most)});
            }
            code_.append(op::bit_and);
            code_.append(op::bit_or);
        }
        return settled(begin);
    }

    [[nodiscard]] decided flag(const expression& of) {
        if (impl::find_kind(of, where_.type, false).is != kind::truth) return truth::unknown;
        const number zero;
        if (const auto word = names_.word_of(of)) {
            return in_ranges(*word, {{comparison::unequal, zero}});
        }
        return numbers(of, comparison::unequal, expression::of(zero));
    }

    // --- Texts ---

    [[nodiscard]] decided compared_texts(const expression& of) {
        for (const std::size_t i : {1U, 0U}) {
            const auto& what = of.parts[1 - i];
            const auto with = names_.text_of(of.parts[i]);
            if (!with || with->constant == nullptr) continue;
            const auto called = names_.values_called(what, *with->constant);
            if (called.empty()) continue;
            const comparison sign = i == 1 ? of.sign : mirrored(of.sign);
            const auto word = names_.word_of(what);
            if (sign == comparison::equal || sign == comparison::unequal) {
                if (!word) continue;
                const decided known = in_ranges(*word, called);
                return sign == comparison::unequal ? turned(known) : known;
            }
            // Values of an enumeration are ordered by their numbers.
            if (word) return in_ranges(*word, {{sign, called[0].with}});
            return numbers(what, sign, expression::of(called[0].with));
        }
        return text({form::compared, of.sign}, {&of.parts[0], &of.parts[1]});
    }
    [[nodiscard]] decided among_texts(const expression& of) {
        std::vector<const expression*> texts{&of.parts[0]};
        std::vector<bound> bounds;
        for (std::size_t i = 1; i < of.parts.size(); i += 2) {
            texts.push_back(&of.parts[i]);
            if (const auto with = names_.text_of(of.parts[i]); with && with->constant != nullptr) {
                const auto called = names_.values_called(of.parts[0], *with->constant);
                bounds.insert(bounds.end(), called.begin(), called.end());
            }
        }
        const auto word = names_.word_of(of.parts[0]);
        if (word && names_.value_names_of(of.parts[0]) != nullptr) return in_ranges(*word, bounds);
        return text({form::among, comparison::equal}, texts);
    }
    [[nodiscard]] decided text(text_question asks, const std::vector<const expression*>& of) {
        for (const expression* const each : of) {
            const auto found = names_.text_of(*each);
            if (!found) return truth::unknown;
            asks.texts.push_back(*found);
        }
        const std::size_t begin = code_.here();
        code_.ask_text(std::move(asks));
        return settled(begin);
    }

    // --- Numbers ---

    /// Code that leaves the number. False: records have no such number.
    [[nodiscard]] bool push(const expression& of) {
        switch (of.what) {
            case form::constant:
            case form::duration:
                code_.constant(of.value);
                return true;
            case form::negated: {
                if (!push(of.parts[0])) return false;
                // Twice is not never: the greatest has no opposite. But thrice is once.
                for (std::size_t i = of.signs.size() % 2 == 0 ? 2 : 1; i != 0; --i) {
                    code_.append(op::number_negate);
                }
                return true;
            }
            case form::sum:
            case form::product:
                if (!push(of.parts[0])) return false;
                for (std::size_t i = 1; i < of.parts.size(); ++i) {
                    if (!push(of.parts[i])) return false;
                    code_.append(operation(of.signs[i]));
                }
                return true;
            default:
                break;
        }
        if (const auto word = names_.word_of(of); word && !word->by_time) {
            push_word(*word);
            const auto kind = impl::is_real(word->type)     ? point::number_kind::real
                              : impl::is_signed(word->type) ? point::number_kind::negative
                                                            : point::number_kind::whole;
            code_.append({op::number, static_cast<std::uint8_t>(kind)});
            return true;
        }
        record_value wanted;
        wanted.name = meaning(of);
        if (wanted.name == named::field) {
            const auto found = names_.field_of(of);
            if (!found) return false;
            wanted = *found;
        }
        code_.ask_number(wanted);
        if (const duration_unit* const unit = names_.unit_of(of)) code_.make_nanoseconds(*unit);
        return true;
    }
    [[nodiscard]] static op operation(char sign) noexcept {
        switch (sign) {
            case '+':
                return op::number_add;
            case '-':
                return op::number_subtract;
            case '*':
                return op::number_multiply;
            case '&':
                return op::number_and;
            case '/':
                return op::number_divide;
            default:
                return op::number_remainder;
        }
    }
    /// What a constant expression is; nothing if it divides by zero.
    [[nodiscard]] std::optional<number> value(const expression& of) {
        if (of.what == form::constant || of.what == form::duration) return of.value;
        const std::size_t begin = code_.here();
        if (of.what == form::text || !push(of)) {
            code_.take_back(begin);
            return std::nullopt;
        }
        const auto [bits, kind] = code_.computed(begin);
        if (kind == static_cast<std::uint64_t>(point::number_kind::undefined)) return std::nullopt;
        return point::number_of(bits, kind);
    }

    // --- Words, and ranges of their keys ---

    void push_word(const raw_word& of) {
        if (of.is_ticks) {
            code_.append(op::record_word, word_of_ticks);
        } else {
            code_.append({op::field, static_cast<std::uint8_t>(of.type), 0,
                          static_cast<std::int32_t>(of.at)});
        }
    }
    /// Whether the word is in any of these bounds. One that is `unequal` is alone.
    [[nodiscard]] decided in_ranges(const raw_word& what, const std::vector<bound>& bounds) {
        const key_space keys = key_space::of(what.type);
        const timeline& time = where_.in.time();
        const auto find = [&](comparison sign, const number& with) {
            return what.by_time ? ticks_compared(time, sign, with)
                                : keys_compared(keys.all, sign, with, keys.value);
        };
        std::vector<range> ranges;
        bool outside = false;
        for (const bound& each : bounds) {
            if (each.sign == comparison::unequal) outside = true;
            auto one = find(each.sign, each.with);
            if (one && each.up_to) {
                const auto other = find(comparison::at_most, *each.up_to);
                if (!other || other->high < one->low) continue;
                one->high = other->high;
            }
            if (one) ranges.push_back(*one);
        }
        unite(ranges);
        const bool all = keys.whole && ranges.size() == 1 && ranges[0].low == keys.all.low &&
                         ranges[0].high == keys.all.high;
        if (ranges.empty() || all) return all != outside ? truth::yes : truth::no;
        push_word(what);
        code_.ask_within({what.type, std::move(ranges)});
        if (outside) code_.append(op::invert);
        return std::nullopt;
    }

    setting where_;
    record_names names_;
    condition_code code_;
};

/// The expression and the tables must outlive the code. What makes no sense for records of this
/// event is unknown. Throws std::length_error if it becomes longer than code may be.
[[nodiscard]] inline condition_code compile(const expression& of, const setting& where) {
    return condition_compiler(where).compile(of);
}
/// The answer, if it is the same for all records of this event.
[[nodiscard]] inline std::optional<truth> decide(const expression& of, const setting& where) {
    return condition_compiler(where).decide(of);
}

}  // namespace trace_reduce::where
