// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The selected analyses, fed in one pass over the references.

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "../coverage/code_layout.hpp"
#include "reference_choice.hpp"
#include "run.hpp"

namespace address_trace {

class analyses {
public:
    /// Adds an analysis. Its address does not change during the lifetime of this object.
    template <class Analysis, class... Args>
    Analysis& make(Args&&... args) {
        auto made = std::make_unique<Analysis>(std::forward<Args>(args)...);
        Analysis& out = *made;
        finds_moves_ = finds_moves_ || out.asks_for_moves();
        all_.push_back(std::move(made));
        return out;
    }

    /// Restricts the analyses to these references.
    void choose(reference_choice which) { chosen_ = std::move(which); }
    [[nodiscard]] const reference_choice& chosen() const noexcept { return chosen_; }

    /// Adds an object that the program has loaded.
    void load(const loaded_module& module) {
        code_.add(module);
        chosen_.look_for_functions(code_, module);
    }
    [[nodiscard]] code_layout& code() noexcept { return code_; }

    void take(const reference_run& run) {
        take(run.thread, run.time, run.all.size(), [&](auto&& visit) {
            for (const reference& each : run.all) visit(each);
        });
    }

    /// The same without a copy of them: calls `visit_all(visit)`, which calls
    /// `visit(const reference&)` for each reference, `most` of them at most. So does
    /// reference_unpacker::unpack for as many as there are bytes. Returns how many there were.
    template <class VisitAll>
    std::size_t take(std::uint32_t thread, std::uint64_t time, std::size_t most,
                     VisitAll&& visit_all) {
        if (held_.size() < most) held_.resize(most);
        sited_reference* at = held_.data();
        const auto hold = [&](const reference& each) {
            static_cast<site_use&>(*at) = sites_.count(each);
            at++->address = each.address;
        };
        std::size_t left_out = 0;
        if (chosen_.is_everything()) [[likely]] {
            visit_all(hold);
        } else {
            visit_all([&](const reference& each) {
                if (chosen_.takes(each)) return hold(each);
                ++left_out;
            });
        }
        sited_run run{thread, time, sites_.size(), {held_.data(), at}};
        if (finds_moves_) run.moves = moves_.find(run.all);
        for (const auto& each : all_) each->take(run);
        return run.all.size() + left_out;
    }

    /// How often each site referenced memory. This needs no analysis.
    [[nodiscard]] const site_table& sites() const noexcept { return sites_; }

private:
    std::vector<std::unique_ptr<analysis>> all_;
    reference_choice chosen_;
    code_layout code_;
    site_table sites_;
    std::vector<sited_reference> held_;
    line_moves moves_;
    bool finds_moves_ = false;
};

}  // namespace address_trace
