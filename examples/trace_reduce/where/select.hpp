// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The condition of --where: read before any file is, made to fit all of them, and asked so that an
/// interrupt does not have to wait for a record that is wanted.

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/reduce/where/check.hpp>
#include <trace_ring/reduce/where/condition.hpp>
#include <trace_ring/reduce/where/predicate.hpp>

#include "parse.hpp"

namespace trace_reduce::where {

namespace reduce = trace_ring::reduce;

struct wrong_expression : std::runtime_error {
    wrong_expression(const std::string& text, const mistake& what)
        : std::runtime_error("--where: " + describe(text, what)) {}
};

/// Empty: no condition. Throws wrong_expression.
[[nodiscard]] inline std::optional<expression> read(const std::string& text) {
    if (text.empty()) return std::nullopt;
    auto found = parse(text);
    if (const auto* what = std::get_if<mistake>(&found)) throw wrong_expression(text, *what);
    return std::get<expression>(std::move(found));
}

/// Someone wants an end.
struct interruption {};

/// A predicate that throws `interruption` when `interrupted` is set; what was read so far is read.
class interruptible : public reduce::where::condition {
public:
    interruptible(const reduce::tables& in, const expression& what,
                  const volatile std::sig_atomic_t& interrupted)
        : asks_(in, what), interrupted_(interrupted) {}

    [[nodiscard]] const reduce::where::predicate& asks() const noexcept { return asks_; }
    [[nodiscard]] bool chooses_lanes() const override { return asks_.chooses_lanes(); }
    [[nodiscard]] bool may_want(const reduce::lane_info& lane) const override {
        return asks_.may_want(lane);
    }
    [[nodiscard]] bool may_want(const reduce::event_type* type) const override {
        return asks_.may_want(type);
    }
    [[nodiscard]] portion choose(const reduce::record_run& of) const override {
        if (interrupted_ != 0) throw interruption{};
        return asks_.choose(of);
    }

private:
    reduce::where::predicate asks_;
    const volatile std::sig_atomic_t& interrupted_;
};

/// Makes the filters of all inputs ask for `what`, if anything. `refers(input)` is its trace_file
/// and its filter. Throws wrong_expression if it makes no sense for any of them.
template <class Inputs, class Refers>
void select(const Inputs& inputs, const Refers& refers, const std::string& text,
            const std::optional<expression>& what, bool follow,
            const volatile std::sig_atomic_t& interrupted) {
    if (!what) return;
    std::vector<const reduce::tables*> traces;
    for (const auto& each : inputs) traces.push_back(&refers(*each).first.about());
    if (const auto found = reduce::where::check(*what, traces)) {
        throw wrong_expression(text, *found);
    }
    for (const auto& each : inputs) {
        const auto [file, filter] = refers(*each);
        auto asks = std::make_shared<interruptible>(file.about(), *what, interrupted);
        // A clock that goes on is known better later; then bounds of now would be wrong.
        if (!follow && !file.live()) {
            if (const auto ticks = asks->asks().ticks()) {
                filter.from = std::max(filter.from, ticks->low);
                filter.to = std::min(filter.to, ticks->high);
            }
        }
        filter.condition = std::move(asks);
    }
}

}  // namespace trace_reduce::where
