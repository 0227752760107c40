// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The spans that are open on one track, so that what viewers are given nests, whatever was lost.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <trace_ring/reduce/tables/dictionary.hpp>

namespace trace_ring::inline v1::exporter {

/// A stack of event types. Constant time for each call, over all of them.
class open_spans {
public:
    void begin(const reduce::event_type& type) {
        stack_.push_back(&type);
        ++open_[&type];
    }

    /// How many spans are to be closed for one of this type to end: those begun inside it whose
    /// ends were lost, and itself; 0 if none is open, so that its begin was lost. They are closed
    /// by `close`.
    [[nodiscard]] std::size_t closed_by(const reduce::event_type& type) const {
        const auto found = open_.find(&type);
        if (found == open_.end() || found->second == 0) return 0;
        std::size_t count = 1;
        for (auto each = stack_.rbegin(); *each != &type; ++each) ++count;
        return count;
    }
    /// The innermost one ends. There is one.
    const reduce::event_type& close() {
        const reduce::event_type* const type = stack_.back();
        stack_.pop_back();
        --open_[type];
        return *type;
    }

    [[nodiscard]] std::size_t size() const noexcept { return stack_.size(); }

private:
    std::vector<const reduce::event_type*> stack_;
    std::unordered_map<const reduce::event_type*, std::size_t> open_;  // how often on the stack
};

}  // namespace trace_ring::inline v1::exporter
