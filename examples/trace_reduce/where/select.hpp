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
#include <trace_ring/reduce/where/check.hpp>
#include <trace_ring/reduce/where/compiled/ranges.hpp>
#include <trace_ring/reduce/where/predicate.hpp>

#include "../../expressions/parse.hpp"
#include "../progress.hpp"

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

/// What is asked of records, if anything, by someone who looks up now and then: `look` is told how
/// many records are dealt with next, and may throw; what was read so far is read, and the same
/// records come next.
class attentive : public reduce::where::condition {
public:
    /// Wants everything, and looks at nothing: for a helper of the thread that looks.
    attentive() : look_([](std::size_t) {}) {}
    attentive(const reduce::tables& in, const std::optional<expression>& what,
              std::function<void(std::size_t)> look)
        : look_(std::move(look)) {
        if (what) asks_.emplace(in, *what);
    }

    /// Ticks from and to which all that can be wanted lies; nothing if that is not known.
    [[nodiscard]] std::optional<reduce::where::range> ticks() const {
        return asks_ ? asks_->ticks() : std::nullopt;
    }
    [[nodiscard]] bool chooses_lanes() const override { return asks_ && asks_->chooses_lanes(); }
    [[nodiscard]] bool may_want(const reduce::lane_info& lane) const override {
        return !asks_ || asks_->may_want(lane);
    }
    [[nodiscard]] bool may_want(const reduce::event_type* type) const override {
        return !asks_ || asks_->may_want(type);
    }
    [[nodiscard]] std::shared_ptr<const condition> another() const override {
        return asks_ ? asks_->another() : std::make_shared<attentive>();
    }
    void pause() const override { look_(0); }
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        look_(of.size());
        return asks_ ? asks_->choose(of) : portion{0, of.size()};
    }
    void pass_over(std::size_t count) const override { look_(count); }

private:
    std::optional<reduce::where::predicate> asks_;
    std::function<void(std::size_t)> look_;
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
        if (const auto found = reduce::where::find_mistake(*whats[0], traces)) {
            throw wrong_expression(text, *found);
        }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto [file, filter] = refers(*inputs[i]);
        const std::optional<expression>& what = whats[i];
        if (!what && filter.events.empty() && filter.threads.empty()) continue;
        auto asks = std::make_shared<attentive>(file.about(), what, [&interrupted](std::size_t) {
            if (interrupted != 0) throw interruption{};
        });
        // A clock that goes on is known better later; then bounds of now would be wrong.
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
