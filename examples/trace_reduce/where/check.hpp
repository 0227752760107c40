// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Checks whether an expression makes sense for a trace's events, before any record is read. It is
/// a mistake to name a field that no event has, or to compare what no event allows to be compared.
/// What makes sense for some events only is no mistake: it selects no records of the others.
/// @code
///   const trace_ring::reduce::tables* const traces[] = {&trace.about()};
///   if (const auto wrong = trace_reduce::where::find_mistake(condition, traces)) {
///       complain(wrong->column, wrong->what);
///   }
/// @endcode

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiled/compile.hpp"
#include "predicate.hpp"

namespace trace_reduce::where {

class checker {
public:
    /// For traces that are read together: it is enough if one of them allows it. Both arguments
    /// must outlive the checker.
    checker(const expression& what, std::span<const tables* const> traces)
        : what_(what), traces_(traces) {}

    /// The mistake that comes first in the text; nothing if there is none. Linear in the expression
    /// and the number of events, except for conditions within conditions.
    [[nodiscard]] std::optional<mistake> find() {
        for (const auto* trace : traces_) {
            for (const auto& type : trace->events().types()) {
                for (const auto& field : type.fields) {
                    fields_.insert(field.name);
                    fields_.insert(type.name + '.' + field.name);
                }
            }
        }
        names(what_);
        if (first_) return first_;
        lengths();
        if (first_) return first_;
        // First the parts that an event's name leaves open; then all parts not judged by then.
        for (const bool decided : {true, false}) {
            for_each_type([&](const tables& in, const event_type* type) {
                condition({in, type, true}, what_, decided);
            });
            if (decided) seen_ = judged_;
        }
        for (const auto& [where, found] : judged_) {
            if (!found.sound && found.why) note(*found.why);
        }
        return first_;
    }

private:
    /// The findings on one comparison, or other condition.
    struct judgement {
        bool sound = false;  // for some event
        std::optional<mistake> why{};
    };

    template <class Visit>
    void for_each_type(const Visit& visit) const {
        for (const auto* trace : traces_) {
            for (const auto& type : trace->events().types()) visit(*trace, &type);
            if (trace->events().types().empty()) visit(*trace, nullptr);
        }
    }

    /// A condition whose code is too long cannot be asked.
    void lengths() {
        for_each_type([&](const tables& in, const event_type* type) {
            try {
                (void)compile(what_, {in, type, true});
            } catch (const std::length_error& why) {
                note({what_.column, what_.length, why.what()});
            }
        });
    }

    void note(const mistake& found) {
        if (!first_ || found.column < first_->column) first_ = found;
    }

    void names(const expression& at) {
        const bool field = at.what == form::field || at.what == form::element ||
                           (at.what == form::name && meaning(at) == named::field);
        if (field && !fields_.contains(at.word)) {
            std::string what = "no event has a field '" + at.word + "'";
            const std::string others = other_places(at.word);
            if (fields_.empty()) {
                what += ": the trace has no fields yet";
            } else {
                nearest to(at.word, others.empty() ? 3 : 10);
                for (const auto known : known_names) to.look(known);
                for (const auto& each : fields_) to.look(each);
                what += to.found().empty() ? others : to.suggestion();
            }
            note({at.column, at.length, std::move(what)});
        }
        for (const auto& part : at.parts) names(part);
    }

    /// For an EVENT.FIELD that does not exist: the event's fields, or the events with that field.
    [[nodiscard]] std::string other_places(std::string_view name) const {
        std::set<std::string> same_event;
        std::set<std::string> same_field;
        for_each_type([&](const tables&, const event_type* type) {
            if (type == nullptr) return;
            for (const auto& field : type->fields) {
                const std::string whole = type->name + '.' + field.name;
                if (name.starts_with(type->name + '.')) same_event.insert(whole);
                if (name.ends_with('.' + field.name)) same_field.insert(whole);
            }
        });
        const auto& found = same_event.empty() ? same_field : same_event;
        return impl::listed(
            found, [](const std::string& each) -> auto& { return each; });
    }
    /// Judges all conditions of an expression; `decided`: only until the answer is known.
    void condition(const setting& where, const expression& at, bool decided) {
        switch (at.what) {
            case form::all_of:
            case form::any_of: {
                const truth enough = at.what == form::all_of ? truth::no : truth::yes;
                for (const auto& part : at.parts) {
                    condition(where, part, decided);
                    if (decided && decide(part, where) == enough) return;
                }
                return;
            }
            case form::none_of:
                condition(where, at.parts[0], decided);
                return;
            case form::truth:
                return;
            case form::compared: {
                const auto kinds = compared_kinds(at, at.parts[0], at.parts[1], where.type);
                judge(at, kinds.left, kinds.right);
                for (const auto& part : at.parts) {
                    if (is_condition(part)) condition(where, part, decided);
                }
                return;
            }
            case form::among:
                set(where, at);
                return;
            case form::like:
                return need(where, at, at.parts[0], kind::text, ", where a text is needed");
            default:
                need(where, at, at, kind::truth, ", where a condition is needed");
        }
    }
    void need(const setting& where, const expression& whole, const expression& at, kind wanted,
              const char* why) {
        kind_of found = impl::find_kind(at, where.type, wanted == kind::text);
        if (found.is != wanted && found.is != kind::missing && found.is != kind::wrong) {
            found = impl::wrong(at, std::string(to_string(found.is)) + why);
        }
        judge(whole, found, found);
    }
    [[nodiscard]] static bool is_condition(const expression& at) noexcept {
        return at.what >= form::compared;
    }
    void set(const setting& where, const expression& at) {
        kind_of left;
        kind_of worst{kind::truth};
        for (std::size_t i = 1; i < at.parts.size(); ++i) {
            const auto& each = at.parts[i];
            if (!is_constant(each)) {
                worst = impl::wrong(each, "a set holds only what does not depend on records");
                left = worst;
                break;
            }
            auto kinds = compared_kinds(each, at.parts[0], each, where.type);
            left = kinds.left;
            const bool alone = i % 2 != 0 && same_place(each, at.parts[i + 1]);
            if (kinds.right.is == kind::text && !alone && i % 2 != 0) {
                kinds.right = impl::wrong(each, "texts have no ranges");
            } else if (kinds.left.is == kind::truth) {
                kinds.right = impl::wrong(at.parts[0], "a condition, where a value is needed");
            }
            if (kinds.right.is == kind::wrong) {
                worst = kinds.right;
                break;
            }
        }
        judge(at, left, worst);
    }
    [[nodiscard]] static bool same_place(const expression& a, const expression& b) noexcept {
        return a.column == b.column && a.word == b.word;
    }

    void judge(const expression& at, const kind_of& left, const kind_of& right) {
        if (seen_.contains(&at)) return;
        auto& found = judged_[&at];
        if (right.is == kind::wrong) {
            if (!found.why) found.why = right.why;
        } else if (left.is != kind::missing && right.is != kind::missing) {
            found.sound = true;
        }
    }

    const expression& what_;
    std::span<const tables* const> traces_;
    std::set<std::string, std::less<>> fields_{};
    std::unordered_map<const expression*, judgement> judged_{};
    std::unordered_map<const expression*, judgement> seen_{};
    std::optional<mistake> first_{};
};

/// The first mistake in an expression, for traces that are read together; nothing if there is none.
[[nodiscard]] inline std::optional<mistake> find_mistake(const expression& what,
                                                         std::span<const tables* const> traces) {
    return checker(what, traces).find();
}

}  // namespace trace_reduce::where
