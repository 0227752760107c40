// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One comparison, compiled for the records of one event. A field at a fixed place, or the time,
/// compared with a constant is a range of keys (ranges.hpp); any other comparison computes values
/// record by record. Asked of up to 64 records at once, one bit each.

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/glob.hpp>
#include <trace_ring/reduce/where/compiled/term.hpp>
#include <trace_ring/reduce/where/expression/kinds.hpp>

namespace trace_ring::inline v1::reduce::where {

enum class truth : std::uint8_t { no, unknown, yes };

/// The answers for records in a row, one bit each; a record in neither mask is unknown.
struct masks {
    std::uint64_t yes = 0;
    std::uint64_t no = 0;

    [[nodiscard]] static masks all(truth what) noexcept {
        return {what == truth::yes ? ~std::uint64_t{0} : 0,
                what == truth::no ? ~std::uint64_t{0} : 0};
    }
};

/// At most 64 records of a run.
struct block {
    const record_run& run;
    std::size_t begin = 0;
    std::size_t count = 0;

    /// The address of the first record's header.
    [[nodiscard]] const std::byte* at() const noexcept {
        return run.front().payload().data() - record_header_bytes +
               static_cast<std::ptrdiff_t>(begin) * run.stride();
    }
    [[nodiscard]] std::uint64_t all() const noexcept { return ~std::uint64_t{0} >> (64 - count); }
};

class leaf {
public:
    /// Compiles a comparison, or the name of a truth value; the expression must outlive the leaf.
    /// What makes no sense for records of this event is unknown.
    [[nodiscard]] static leaf make(const expression& of, const setting& where) {
        leaf made;
        switch (of.what) {
            case form::compared:
                made.compare(of, where);
                break;
            case form::among:
                made.among(of, where);
                break;
            case form::like:
                made.like(of, where);
                break;
            default:
                made.flag(of, where);
        }
        return made;
    }
    [[nodiscard]] static leaf decided(truth what) {
        leaf made;
        made.decide(what);
        return made;
    }

    /// The answer, if it is the same for all records.
    [[nodiscard]] std::optional<truth> constant() const noexcept {
        if (how_ != how::constant) return std::nullopt;
        return decided_;
    }
    /// Whether the answer is the same for all records of one thread in a lane.
    [[nodiscard]] bool of_lane() const noexcept { return how_ == how::constant || lane_only_; }
    /// The answer for a lane without a record. Only if `of_lane()`.
    [[nodiscard]] truth of(const lane_info& lane) const { return ask({&lane, nullptr}); }

    /// Asks the records of a block whose bits are in `asked`; the other bits mean nothing.
    [[nodiscard]] masks which(const block& of, std::uint64_t asked) const {
        masks found;
        switch (how_) {
            case how::constant:
                return masks::all(decided_);
            case how::field:
                return turned(
                    which_within(ranges_, type_, of.at() + offset_, of.run.stride(), of.count));
            case how::ticks:
                return turned(ticks_within(of));
            default:
                break;
        }
        if (lane_only_) return masks::all(ask({&of.run.front().lane(), nullptr}));
        for (std::uint64_t left = asked; left != 0; left &= left - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(left));
            const record_view record = of.run[of.begin + i];
            const truth one = ask({&record.lane(), &record});
            found.yes |= std::uint64_t{one == truth::yes} << i;
            found.no |= std::uint64_t{one == truth::no} << i;
        }
        return found;
    }

private:
    enum class how : std::uint8_t {
        constant,
        field,  // a field of the fixed part lies in `ranges_`, or not: `negated_`
        ticks,  // likewise the record's time
        // These compute values, record by record:
        compared,
        among,
        like,
        flag,
    };

    void decide(truth what) {
        how_ = how::constant;
        decided_ = what;
        terms_.clear();
    }

    void compare(const expression& of, const setting& where) {
        const auto& left = of.parts[0];
        const auto& right = of.parts[1];
        const auto kinds = compared_kinds(of, left, right, where.type);
        if (kinds.left.is == kind::missing || kinds.right.is == kind::missing ||
            kinds.right.is == kind::wrong) {
            return;
        }
        const bool text = kinds.left.is == kind::text;
        sign_ = of.sign;
        terms_.push_back(term::make(left, where, text));
        terms_.push_back(term::make(right, where, text));
        how_ = how::compared;
        if (settled()) return;
        for (const std::size_t i : {1U, 0U}) {
            const auto with = terms_[i].constant();
            if (!with) continue;
            const comparison sign = i == 1 ? of.sign : mirrored(of.sign);
            negated_ = sign == comparison::unequal;
            if (with->is == value::state::numeric) {
                add_ranges(terms_[1 - i], where, {{sign, with->number}});
            } else if (const auto called = values_called(terms_[1 - i], with->text);
                       !called.empty()) {
                if (sign == comparison::equal || negated_) {
                    add_ranges(terms_[1 - i], where, called);
                    return;
                }
                // Values of an enumeration are ordered by their numbers.
                terms_[1 - i] = term::make(of.parts[1 - i], where, false);
                terms_[i] = term::of(called[0].with);
                add_ranges(terms_[1 - i], where, {{sign, called[0].with}});
            }
            return;
        }
    }

    void among(const expression& of, const setting& where) {
        const auto& what = of.parts[0];
        bool text = false;
        for (std::size_t i = 1; i < of.parts.size(); ++i) {
            const auto kinds = compared_kinds(of, what, of.parts[i], where.type);
            if (kinds.left.is == kind::missing || kinds.right.is == kind::wrong) return;
            text = kinds.left.is == kind::text;
        }
        how_ = how::among;
        terms_.push_back(term::make(what, where, text));
        for (std::size_t i = 1; i < of.parts.size(); ++i) {
            terms_.push_back(term::make(of.parts[i], where, text));
        }
        if (settled() || (text && terms_[0].by_name() == nullptr)) return;
        std::vector<bound> bounds;
        for (std::size_t i = 1; i + 1 < terms_.size(); i += 2) {
            const auto low = terms_[i].constant();
            if (low && text) {
                for (const auto& each : values_called(terms_[0], low->text)) bounds.push_back(each);
                continue;
            }
            const auto high = terms_[i + 1].constant();
            if (!low || !high || low->is != value::state::numeric ||
                high->is != value::state::numeric) {
                return;
            }
            bounds.push_back({comparison::at_least, low->number, high->number});
        }
        add_ranges(terms_[0], where, bounds);
    }

    void like(const expression& of, const setting& where) {
        const kind_of found = impl::find_kind(of.parts[0], where.type, true);
        if (found.is != kind::text) return;
        how_ = how::like;
        glob_ = &of.word;
        terms_.push_back(term::make(of.parts[0], where, true));
        (void)settled();
    }

    void flag(const expression& of, const setting& where) {
        if (impl::find_kind(of, where.type, false).is != kind::truth) return;
        how_ = how::flag;
        terms_.push_back(term::make(of, where, false));
        if (settled()) return;
        negated_ = true;
        add_ranges(terms_[0], where, {{comparison::equal, {}}});
    }

    /// Decides the answer if all values are known, or if one is known to be unknown.
    bool settled() {
        bool all = true;
        for (const auto& each : terms_) {
            const auto known = each.constant();
            all = all && known;
            if (known && known->is == value::state::unknown) {
                decide(truth::unknown);
                return true;
            }
        }
        lane_only_ = std::all_of(terms_.begin(), terms_.end(),
                                 [](const term& each) { return each.of_lane(); });
        if (all) decide(ask({}));
        return all;
    }

    struct bound {
        comparison sign;
        number with;
        std::optional<number> up_to{};
    };
    /// The values of an enumeration that have this name, if the term is a field of it.
    [[nodiscard]] static std::vector<bound> values_called(const term& what, std::string_view name) {
        std::vector<bound> found;
        if (what.by_name() == nullptr) return found;
        for (const auto& each : what.by_name()->all()) {
            if (each.name == name) found.push_back({comparison::equal, what.number_as(each.value)});
        }
        return found;
    }
    /// Asks by ranges from here on, if the term allows it.
    void add_ranges(const term& what, const setting& where, const std::vector<bound>& bounds) {
        const field_info* const field = what.fixed_field();
        const timeline& time = where.in.time();
        const bool by_time = what.is(named::time) && ascends(time);
        if (field == nullptr && !by_time && !what.is(named::ticks)) {
            negated_ = false;
            return;
        }
        const key_space keys = key_space::of(field != nullptr ? field->type : field_type::u64);
        const auto find = [&](comparison sign, const number& with) {
            return by_time ? ticks_compared(time, sign, with)
                           : keys_compared(keys.all, sign, with, keys.value);
        };
        for (const auto& each : bounds) {
            auto one = find(each.sign, each.with);
            if (one && each.up_to) {
                const auto other = find(comparison::at_most, *each.up_to);
                if (!other || other->high < one->low) continue;
                one->high = other->high;
            }
            if (one) ranges_.push_back(*one);
        }
        unite(ranges_);
        how_ = field != nullptr ? how::field : how::ticks;
        if (field != nullptr) {
            type_ = field->type;
            offset_ = record_header_bytes + what.offset();
        }
        lane_only_ = false;
        terms_.clear();
        const bool all = keys.whole && ranges_.size() == 1 && ranges_[0].low == keys.all.low &&
                         ranges_[0].high == keys.all.high;
        if (ranges_.empty() || all) decide(negated_ != all ? truth::yes : truth::no);
    }

    [[nodiscard]] masks turned(std::uint64_t within) const noexcept {
        return negated_ ? masks{~within, within} : masks{within, ~within};
    }
    [[nodiscard]] std::uint64_t ticks_within(const block& of) const {
        const std::uint64_t high = of.run.front().time() & ~std::uint64_t{0xFFFFFFFF};
        return impl::mask_of(
            of.at(), of.run.stride(), of.count,
            [&](std::uint64_t low) { return impl::within(ranges_, high | low); }, std::uint32_t{});
    }

    [[nodiscard]] static bool holds(comparison sign, std::partial_ordering order) noexcept {
        if (std::is_lt(order)) return (sign & comparison::less) != 0;
        if (std::is_gt(order)) return (sign & comparison::more) != 0;
        return std::is_eq(order) ? (sign & comparison::equal) != 0 : sign == comparison::unequal;
    }
    [[nodiscard]] static bool compare_values(comparison sign, const value& a, const value& b) {
        if (a.is == value::state::undefined || b.is == value::state::undefined) return false;
        return a.is == value::state::text ? holds(sign, a.text.compare(b.text) <=> 0)
                                          : holds(sign, a.number <=> b.number);
    }

    [[nodiscard]] truth ask(const subject& what) const {
        if (how_ == how::constant) return decided_;
        const value first = terms_[0].evaluate(what);
        if (first.is == value::state::unknown) return truth::unknown;
        bool found = false;
        switch (how_) {
            case how::compared: {
                const value second = terms_[1].evaluate(what);
                if (second.is == value::state::unknown) return truth::unknown;
                found = compare_values(sign_, first, second);
                break;
            }
            case how::among:
                for (std::size_t i = 1; i + 1 < terms_.size() && !found; i += 2) {
                    found =
                        compare_values(comparison::at_least, first, terms_[i].evaluate(what)) &&
                        compare_values(comparison::at_most, first, terms_[i + 1].evaluate(what));
                }
                break;
            case how::like:
                found = matches_glob(*glob_, first.text);
                break;
            default:
                found = !first.number.is_zero();
        }
        return found ? truth::yes : truth::no;
    }

    how how_ = how::constant;
    truth decided_ = truth::unknown;
    comparison sign_ = comparison::equal;
    field_type type_ = field_type::u64;
    bool negated_ = false;
    bool lane_only_ = false;  // all terms are the same for one thread in a lane
    std::size_t offset_ = 0;
    std::vector<range> ranges_;
    std::vector<term> terms_;
    const std::string* glob_ = nullptr;
};

}  // namespace trace_ring::inline v1::reduce::where
