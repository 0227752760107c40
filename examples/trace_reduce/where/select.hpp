// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The condition of --where: read before any file is, made to fit all of them, and asked, as
/// --event and --thread are, so that an interrupt does not have to wait for a record that is
/// wanted.

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/filter/condition.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>
#include <trace_ring/reduce/tables/writers.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../../expressions/parse.hpp"
#include "../progress.hpp"
#include "check.hpp"
#include "compiled/ranges.hpp"
#include "predicate.hpp"
#include "span_durations.hpp"
#include "whole_spans.hpp"

namespace trace_reduce::where {

namespace reduce = trace_ring::reduce;
using expressions::expression;
using expressions::mistake;

struct wrong_expression : std::runtime_error {
    wrong_expression(const std::string& text, const mistake& what)
        : std::runtime_error("--where: " + expressions::describe(text, what)) {}
};

/// Empty: no condition. Throws wrong_expression.
[[nodiscard]] inline std::optional<expression> read(const std::string& text) {
    if (text.empty()) return std::nullopt;
    auto found = expressions::parse(text);
    if (const auto* what = std::get_if<mistake>(&found)) throw wrong_expression(text, *what);
    return std::get<expression>(std::move(found));
}

/// The condition on records, if any, which calls `look` regularly with the number of records that
/// are handled next. `look` may throw; then reading can continue with the same records.
class attentive : public reduce::condition {
public:
    /// Wants everything, and looks at nothing: for a helper of the thread that looks.
    attentive() : look_([](std::size_t) {}) {}
    attentive(const reduce::tables& in, const std::optional<expression>& what,
              std::function<void(std::size_t)> look)
        : in_(&in), what_(what), look_(std::move(look)) {
        if (!what) return;
        asks_.emplace(in, *what);
        if (span_durations::asked(*what, in)) durations_.emplace(in, *what);
    }

    /// Selects spans by either end (whole_spans.hpp). Reads the trace, unless no span can be wanted
    /// or it is followed: then only the records read so far decide which ends are wanted.
    void select_spans(const reduce::trace_file& in, bool follow) {
        if (!asks_) return;
        follow_ = follow;
        auto spans = std::make_shared<whole_spans>();
        const auto& types = in_->events().types();
        const bool any =
            durations_ || std::any_of(types.begin(), types.end(), [this](const auto& type) {
                return is_span(&type) && asks_->may_want(&type);
            });
        if (!follow && any) {
            spans->read(in, look_, asks_of_ends());
        }
        spans_ = std::move(spans);
    }

    /// Ticks from and to which all that can be wanted lies; nothing if that is not known.
    [[nodiscard]] std::optional<trace_reduce::where::range> ticks() const {
        auto found = asks_ ? asks_->ticks() : std::nullopt;
        if (found && spans_) {
            found->low = std::min(found->low, spans_->first());
            found->high = std::max(found->high, spans_->last());
        }
        return found;
    }
    [[nodiscard]] bool chooses_lanes() const override { return asks_ && asks_->chooses_lanes(); }
    [[nodiscard]] bool may_want(const reduce::lane_info& lane) const override {
        return !asks_ || asks_->may_want(lane) || (spans_ && spans_->has(lane));
    }
    [[nodiscard]] bool may_want(const reduce::event_type* type) const override {
        return !asks_ || asks_->may_want(type) || pairs(type);
    }
    [[nodiscard]] std::shared_ptr<const condition> another() const override {
        if (!asks_) return std::make_shared<attentive>();
        if (!spans_) return asks_->another();
        if (follow_) return nullptr;
        auto made = std::make_shared<attentive>();
        made->in_ = in_;
        made->what_ = what_;
        made->asks_.emplace(*in_, *what_);
        made->spans_ = spans_;
        return made;
    }
    void pause() const override { look_(0); }
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        look_(of.size());
        if (!asks_) return {0, of.size()};
        const reduce::record_view& first = of.front();
        if (!first.known() || !pairs(&first.type())) return asks_->choose(of);
        // Pairing as records come must see each record once.
        if (follow_) return wants(first) ? portion{0, 1} : portion{1, 0};
        portion found;
        std::size_t i = 0;
        for (const reduce::record_view& record : of) {
            if (wants(record)) {
                if (found.take++ == 0) found.skip = i;
            } else if (found.take != 0) {
                return found;
            }
            ++i;
        }
        if (found.take == 0) found.skip = of.size();
        return found;
    }
    void pass_over(std::size_t count) const override { look_(count); }

private:
    [[nodiscard]] bool pairs(const reduce::event_type* type) const {
        return spans_ && (follow_ ? is_span(type) : spans_->has(type));
    }
    /// Says whether the condition holds for a record itself.
    using asker = std::function<bool(const reduce::record_view&, std::optional<std::uint64_t>)>;
    [[nodiscard]] asker asks_of_ends() const {
        return [this](const reduce::record_view& record, std::optional<std::uint64_t> ticks) {
            const auto answer =
                durations_ && ticks ? durations_->ask(record, *ticks) : asks_->ask(record);
            return answer == trace_reduce::where::truth::yes;
        };
    }
    [[nodiscard]] bool wants(const reduce::record_view& record) const {
        if (follow_) return spans_->follow(record, asks_of_ends());
        return asks_->ask(record) == trace_reduce::where::truth::yes || spans_->has(record);
    }

    const reduce::tables* in_ = nullptr;
    std::optional<expression> what_;
    std::optional<trace_reduce::where::predicate> asks_;
    std::function<void(std::size_t)> look_;
    mutable std::optional<span_durations> durations_;  // if the condition uses them
    std::shared_ptr<whole_spans> spans_;               // null: records are selected one by one
    bool follow_ = false;
};

/// Makes the filter of each input ask for `whats[i]`, if anything, which is one condition made to
/// fit it, and those that pass over records see an interrupt. `refers(input)` is its trace_file and
/// its filter. Throws wrong_expression if it makes no sense for any of them.
template <class Inputs, class Refers>
void select(const Inputs& inputs, const Refers& refers, const std::string& text,
            const std::vector<std::optional<expression>>& whats, bool follow,
            const volatile std::sig_atomic_t& interrupted) {
    if (!whats.empty() && whats[0]) {
        std::vector<const reduce::tables*> traces;
        for (const auto& each : inputs) traces.push_back(&refers(*each).first.about());
        expression condition = *whats[0];
        if (!traces.empty() && std::all_of(traces.begin(), traces.end(), [&](const auto* each) {
                return span_durations::asked(*whats[0], *each);
            })) {
            if (const auto found = span_durations::wrong(condition)) {
                throw wrong_expression(text, *found);
            }
            condition = span_durations::without(condition);
        }
        if (const auto found = trace_reduce::where::find_mistake(condition, traces)) {
            throw wrong_expression(text, *found);
        }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto [file, filter] = refers(*inputs[i]);
        std::optional<expression> what = whats[i];
        // A span may have ended in another thread: then its records are asked, not the tables.
        if (!filter.threads.empty() && !follow && file.ring().ended_elsewhere) {
            std::vector<expression> any;
            for (const std::uint32_t id : filter.threads) {
                any.push_back(expression::compare(expression::of_name("tid"),
                                                  trace_reduce::where::comparison::equal,
                                                  expression::of(std::uint64_t{id})));
            }
            expression threads =
                any.size() == 1
                    ? any[0]
                    : expression::join(trace_reduce::where::form::any_of, std::move(any));
            what = what ? expression::join(trace_reduce::where::form::all_of,
                                           {std::move(threads), *what})
                        : std::move(threads);
            filter.threads.clear();
        }
        if (!what && filter.events.empty() && filter.threads.empty()) continue;
        auto asks = std::make_shared<attentive>(file.about(), what, [&interrupted](std::size_t) {
            if (interrupted != 0) throw interruption{};
        });
        try {
            asks->select_spans(file, follow);
        } catch (const interruption&) {
            // Reading stops at the first look, too.
        }
        // Later readings of a running clock are more exact, so bounds computed now would be wrong.
        if (!follow && !file.live()) {
            if (const auto ticks = asks->ticks()) {
                filter.from = std::max(filter.from, ticks->low);
                filter.to = std::min(filter.to, ticks->high);
            }
        }
        filter.condition = std::move(asks);
    }
}

}  // namespace trace_reduce::where
