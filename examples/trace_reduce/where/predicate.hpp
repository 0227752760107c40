// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An expression as a filter's condition: compiled for each event of a trace at its first record,
/// and asked of 64 records at a time.
/// @code
///   using namespace trace_reduce::where;
///   auto trace = trace_ring::reduce::trace_file::open("orders.trace");
///   auto large = expression::compare(expression::of_name("price"), comparison::more,
///                                    expression::of(std::uint64_t{1000}));
///   trace_ring::reduce::filter what;
///   what.condition = std::make_shared<predicate>(trace.about(), std::move(large));
///   auto cursor = trace.forward(what);
/// @endcode
/// Names that no event has, and comparisons that make no sense, are unknown and select nothing;
/// `find_mistake` (check.hpp) reports them beforehand.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <trace_ring/reduce/filter/condition.hpp>

#include "compiled/compile.hpp"
#include "compiled/condition_code.hpp"

namespace trace_reduce::where {

/// What an expression says before any record is read: which lanes cannot be wanted, by the tables,
/// and the range of time in which records can be.
class expression_bounds {
public:
    /// Both arguments must outlive the expression_bounds.
    expression_bounds(const tables& in, const expression& of) : in_(&in), of_(&of) {
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
                leaf_ = compile(of, {in});
                break;
            }
            default:
                if (of.what == form::truth) leaf_ = compile(of, {in});
        }
    }
    expression_bounds(expression_bounds&&) = default;
    expression_bounds& operator=(expression_bounds&&) = default;
    expression_bounds(const expression_bounds&) = delete;
    expression_bounds& operator=(const expression_bounds&) = delete;

    /// Whether it may leave out lanes by their entries in the tables.
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
            // In a lane that was adopted only the records say which thread they are from.
            // Another thread may have recorded the references that one made.
            if (uses_thread_ && (lane.adopted != 0 || in_->events().packs())) return {};
            const truth is = leaf_->ask(lane);
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

    const tables* in_;
    const expression* of_;
    std::vector<expression_bounds> parts_{};
    std::optional<condition_code> leaf_{};  // if it depends on the lane alone
    bool uses_record_ = false;
    bool uses_thread_ = false;
};

/// For one trace, whose tables must outlive it. Not thread-safe. It throws
/// std::length_error if its code for an event is longer than code may be, when it is made or asked:
/// check.hpp finds out beforehand.
class predicate : public condition {
public:
    predicate(const tables& in, expression what)
        : in_(in), what_(std::move(what)), bounds_(in, what_) {}

    /// The range of ticks in which all wanted records lie, by the clock readings so far; nothing if
    /// no record can be wanted. For `filter::from` and `filter::to`, so that the index is used.
    [[nodiscard]] std::optional<range> ticks() const { return bounds_.ticks(in_.time()); }

    [[nodiscard]] bool chooses_lanes() const override { return bounds_.chooses_lanes(); }
    [[nodiscard]] bool may_want(const lane_info& lane) const override {
        return bounds_.may_want(lane);
    }
    [[nodiscard]] bool may_want(const event_type* type) const override {
        const auto wanted = [](const condition_code& of) {
            return of.constant().value_or(truth::yes) == truth::yes;
        };
        return wanted(ready(type, type != nullptr)) || wanted(ready(type, false));
    }

    [[nodiscard]] std::shared_ptr<const condition> another() const override {
        return std::make_shared<predicate>(in_, what_);
    }
    [[nodiscard]] portion choose(const record_run& of) const override {
        const record_view& first = of.front();
        const condition_code& what =
            ready(first.known() ? &first.type() : nullptr, first.has_fields());
        if (const auto known = what.constant()) {
            return known == truth::yes ? portion{0, of.size()} : portion{of.size(), 0};
        }
        portion found;
        for (std::size_t begin = 0; begin < of.size(); begin += point::records_at_once) {
            const std::size_t count = (std::min)(of.size() - begin, point::records_at_once);
            std::uint64_t yes = which(what.ask(of, begin, count), count);
            if (found.take == 0) {
                if (yes == 0) continue;
                const auto before = static_cast<std::size_t>(std::countr_zero(yes));
                found.skip = begin + before;
                yes >>= before;
                found.take = static_cast<std::size_t>(std::countr_one(yes));
                if (before + found.take < count) return found;
            } else {
                const auto more = static_cast<std::size_t>(std::countr_one(yes));
                found.take += more;
                if (more < count) return found;
            }
        }
        if (found.take == 0) found.skip = of.size();
        return found;
    }

    /// The answer for one record.
    [[nodiscard]] truth ask(const record_view& record) const {
        const condition_code& what =
            ready(record.known() ? &record.type() : nullptr, record.has_fields());
        if (const auto known = what.constant()) return *known;
        return where::truth_of(what.ask(record_run::of(record, 1, 1, 1), 0, 1)[0]);
    }

private:
    /// Those for which it holds, one bit each.
    [[nodiscard]] static std::uint64_t which(const point::record_column& truths,
                                             std::size_t count) noexcept {
        std::uint64_t yes = 0;
        point::impl::for_first<point::records_at_once>(
            count, [&](std::size_t k) { yes |= truths[k] & point::record_bits[k]; });
        // What is unknown has this bit.
        if (truths[0] == point::truth_unknown) yes &= ~std::uint64_t{1};
        return yes;
    }
    /// Identifies the clock readings: with other readings records have other times.
    struct readings {
        std::size_t count = 0;
        std::uint64_t last = 0;
        double rate = 0;
        friend bool operator==(const readings&, const readings&) = default;

        [[nodiscard]] static readings of(const timeline& time) noexcept {
            const auto all = time.snapshots();
            return {all.size(), all.empty() ? 0 : all.back().ticks, time.ns_per_tick()};
        }
    };

    [[nodiscard]] const condition_code& ready(const event_type* type, bool has_fields) const {
        if (const auto now = readings::of(in_.time()); now != clock_) {
            codes_.clear();
            clock_ = now;
        }
        const std::size_t at =
            (type == nullptr ? 0 : 2 * (type->number + 1)) + (has_fields ? 1 : 0);
        if (at >= codes_.size()) codes_.resize((std::max)(at + 1, 2 * codes_.size()));
        auto& one = codes_[at];
        if (one == nullptr) {
            one = std::make_unique<condition_code>(compile(what_, {in_, type, has_fields}));
        }
        return *one;
    }

    const tables& in_;
    expression what_;
    expression_bounds bounds_;
    mutable readings clock_{};
    mutable std::vector<std::unique_ptr<condition_code>> codes_{};
};

}  // namespace trace_reduce::where
