// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// `duration` in a condition: the time from a span's begin to its end. No record has it, so it is
/// unknown for all but ends whose begin was found. It is compared with times:
/// @code
///   duration > 10ms        duration in {1ms..5ms}
/// @endcode
/// In a trace in which an event has a field of that name, the name means the field.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <trace_ring/point/machine/number.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "names.hpp"
#include "predicate.hpp"

namespace trace_reduce::where {

namespace reduce = trace_ring::reduce;

/// A condition on durations, for one trace, which must outlive it.
class span_durations {
public:
    using expression = trace_reduce::where::expression;
    using mistake = trace_reduce::where::mistake;
    using form = trace_reduce::where::form;
    using truth = trace_reduce::where::truth;

    /// Whether the condition uses `duration`, and no field has that name.
    [[nodiscard]] static bool asked(const expression& what, const reduce::tables& in) {
        const auto& types = in.events().types();
        return names(what) && std::none_of(types.begin(), types.end(), [](const auto& type) {
                   return type.find("duration") != reduce::event_type::npos;
               });
    }
    span_durations(const reduce::tables& in, expression what) : in_(in), what_(std::move(what)) {}

    /// A use of `duration` that is no comparison with times; nothing if there is none.
    [[nodiscard]] static std::optional<mistake> wrong(const expression& what) {
        if (is_leaf(what)) return std::nullopt;
        if (is_duration(what)) {
            return mistake{what.column, what.length,
                           "'duration' is compared with times, as in duration > 10ms"};
        }
        for (const auto& part : what.parts) {
            if (auto found = wrong(part)) return found;
        }
        return std::nullopt;
    }
    /// The condition with true in the place of comparisons of durations, to look for mistakes.
    [[nodiscard]] static expression without(const expression& what) {
        return replaced(what, [](const expression&) { return true; });
    }

    /// The answer for the end of a span that took `ticks`.
    [[nodiscard]] truth ask(const reduce::record_view& end, std::uint64_t ticks) {
        const auto ns = trace_ring::point::number::of(in_.time().ns(static_cast<double>(ticks)));
        // There are as many predicates as answers of the comparisons occur together.
        std::string answers;
        auto made = replaced(what_, [&](const expression& leaf) {
            const bool is = holds(leaf, ns);
            answers += is ? '1' : '0';
            return is;
        });
        auto& one = predicates_[answers];
        if (!one) one = std::make_unique<trace_reduce::where::predicate>(in_, std::move(made));
        return one->ask(end);
    }

private:
    using number = trace_ring::point::number;

    [[nodiscard]] static bool is_duration(const expression& what) {
        return what.what == form::name && what.word == "duration";
    }
    [[nodiscard]] static bool names(const expression& what) {
        return is_duration(what) || std::any_of(what.parts.begin(), what.parts.end(), &names);
    }
    [[nodiscard]] static bool is_leaf(const expression& what) {
        const auto is_time = [](const expression& part) { return part.what == form::duration; };
        if (what.what == form::compared) {
            return (is_duration(what.parts[0]) && is_time(what.parts[1])) ||
                   (is_time(what.parts[0]) && is_duration(what.parts[1]));
        }
        return what.what == form::among && is_duration(what.parts[0]) &&
               std::all_of(what.parts.begin() + 1, what.parts.end(), is_time);
    }
    [[nodiscard]] static bool holds(const expression& leaf, const number& ns) {
        using trace_ring::point::holds;
        if (leaf.what == form::compared) {
            const bool turned = leaf.parts[0].what == form::duration;
            return turned ? holds(leaf.sign, leaf.parts[0].value <=> ns)
                          : holds(leaf.sign, ns <=> leaf.parts[1].value);
        }
        for (std::size_t i = 1; i + 1 < leaf.parts.size(); i += 2) {
            if (leaf.parts[i].value <= ns && ns <= leaf.parts[i + 1].value) return true;
        }
        return false;
    }
    template <class Answer>
    [[nodiscard]] static expression replaced(const expression& what, const Answer& answer) {
        if (is_leaf(what)) {
            expression made{.what = form::truth,
                            .value = number::of(std::uint64_t{answer(what) ? 1U : 0U})};
            made.column = what.column;
            made.length = what.length;
            return made;
        }
        expression made = what;
        for (auto& part : made.parts) part = replaced(part, answer);
        return made;
    }

    const reduce::tables& in_;
    expression what_;
    std::unordered_map<std::string, std::unique_ptr<trace_reduce::where::predicate>> predicates_{};
};

}  // namespace trace_reduce::where
