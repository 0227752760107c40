// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What an expression says before any record is read: which lanes cannot be wanted, by the tables,
/// and the range of time in which records can be.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>
#include <trace_ring/reduce/tables/writers.hpp>
#include <trace_ring/reduce/where/compiled/leaf.hpp>
#include <trace_ring/reduce/where/compiled/ranges.hpp>
#include <trace_ring/reduce/where/compiled/term.hpp>
#include <trace_ring/reduce/where/compiled/ticks.hpp>
#include <trace_ring/reduce/where/expression.hpp>
#include <trace_ring/reduce/where/expression/kinds.hpp>

namespace trace_ring::inline v1::reduce::where {

class outline {
public:
    /// Both arguments must outlive the outline.
    outline(const tables& in, const expression& of) : of_(&of) {
        switch (of.what) {
            case form::all_of:
            case form::any_of:
            case form::none_of:
                for (const auto& part : of.parts) parts_.emplace_back(in, part);
                break;
            case form::compared:
            case form::among:
            case form::like: {
                look(of);
                if (uses_record_) break;
                leaf_ = leaf::make(of, {in});
                break;
            }
            default:
                if (of.what == form::truth) {
                    leaf_ = leaf::decided(of.value.is_zero() ? truth::no : truth::yes);
                }
        }
    }

    /// Whether it may leave out lanes by what the tables say of them.
    [[nodiscard]] bool chooses_lanes() const noexcept {
        return (leaf_ && leaf_->constant() != truth::yes) ||
               std::any_of(parts_.begin(), parts_.end(),
                           [](const auto& p) { return p.chooses_lanes(); });
    }
    /// False: no record of this lane can be wanted.
    [[nodiscard]] bool may_want(const lane_info& lane) const { return may_be(lane).yes; }

    /// The range of ticks in which all wanted records lie; nothing if no record can be wanted.
    [[nodiscard]] std::optional<range> ticks(const timeline& time) const {
        return ticks(time, ascends(time), true);
    }

private:
    /// The answers that are possible.
    struct possible {
        bool yes = true;
        bool no = true;
    };
    [[nodiscard]] possible may_be(const lane_info& lane) const {
        if (leaf_) {
            // In a lane that was handed on only the records say which thread they are from.
            if (uses_thread_ && lane.handed_on != 0) return {};
            const truth is = leaf_->of(lane);
            return {is == truth::yes, is == truth::no};
        }
        if (parts_.empty()) return {};
        possible all = parts_[0].may_be(lane);
        if (of_->what == form::none_of) return {all.no, all.yes};
        const bool every = of_->what == form::all_of;
        for (const auto& part : parts_) {
            const possible one = part.may_be(lane);
            all.yes = every ? all.yes && one.yes : all.yes || one.yes;
            all.no = every ? all.no || one.no : all.no && one.no;
        }
        return all;
    }

    /// The range of ticks in which `answer` is possible.
    [[nodiscard]] std::optional<range> ticks(const timeline& time, bool ascends,
                                             bool answer) const {
        if (of_->what == form::none_of) return parts_[0].ticks(time, ascends, !answer);
        if (of_->what != form::all_of && of_->what != form::any_of) {
            return of_leaf(time, ascends, answer);
        }
        const bool every = (of_->what == form::all_of) == answer;
        std::optional<range> all = parts_[0].ticks(time, ascends, answer);
        for (const auto& part : parts_) {
            const auto one = part.ticks(time, ascends, answer);
            if (every) {
                if (!all || !one) return std::nullopt;
                all = range{(std::max)(all->low, one->low), (std::min)(all->high, one->high)};
                if (all->low > all->high) return std::nullopt;
            } else if (one) {
                all = all ? range{(std::min)(all->low, one->low), (std::max)(all->high, one->high)}
                          : *one;
            }
        }
        return all;
    }
    [[nodiscard]] std::optional<range> of_leaf(const timeline& time, bool ascends,
                                               bool answer) const {
        constexpr range always{0, ~std::uint64_t{0}};
        if (of_->what != form::compared) return always;
        const auto& left = of_->parts[0];
        const auto& right = of_->parts[1];
        const bool turned = is_constant(left);
        const named what = meaning(turned ? right : left);
        const auto& with = turned ? left : right;
        if ((what != named::time || !ascends) && what != named::ticks) return always;
        if (compared_kinds(*of_, left, right, nullptr).right.is == kind::wrong) return always;
        const bool plain = with.what == form::constant || with.what == form::duration;
        if (!plain || with.value.is_nan()) return always;
        comparison sign = turned ? mirrored(of_->sign) : of_->sign;
        if (!answer) sign = opposite(sign);
        if (sign == comparison::unequal) return always;
        if (what == named::time) return ticks_compared(time, sign, with.value);
        return keys_compared(always, sign, with.value,
                             [](std::uint64_t key) { return number::of(key); });
    }

    void look(const expression& at) {
        if (at.what == form::field || at.what == form::element) uses_record_ = true;
        if (at.what == form::name) {
            const named what = meaning(at);
            if (what >= named::thread && what <= named::pid) {
                uses_thread_ = true;
            } else if (what != named::lane) {
                uses_record_ = true;
            }
        }
        for (const auto& part : at.parts) {
            // Two conditions that are compared with each other are asked of records.
            if (part.what >= form::compared || part.what == form::truth) uses_record_ = true;
            look(part);
        }
    }

    const expression* of_;
    std::vector<outline> parts_;
    std::optional<leaf> leaf_;  // if it depends on the lane alone
    bool uses_record_ = false;
    bool uses_thread_ = false;
};

}  // namespace trace_ring::inline v1::reduce::where
