// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is kept of calls until they end, if they end: so many, and then the oldest is forgotten.
/// @code
///   latest<call, begun> open(65536);
///   open.put(call, begun);
///   if (const auto found = open.take(call)) end(*found);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace trace_clauses {

/// Logarithmic in their number, on average.
template <class Key, class Value>
class latest {
public:
    explicit latest(std::size_t most) : most_(most) {}

    /// Replaces a value with the same key.
    void put(const Key& key, const Value& value) {
        values_[key] = {value, ++last_};
        order_.emplace_back(key, last_);
        while (values_.size() > most_) forget_first();
        // Those that were taken, or replaced.
        while (order_.size() > 2 * most_) forget_first();
    }
    /// Nothing: there is none, or it was forgotten.
    [[nodiscard]] std::optional<Value> take(const Key& key) {
        const auto found = values_.find(key);
        if (found == values_.end()) return std::nullopt;
        std::optional<Value> out(std::move(found->second.value));
        values_.erase(found);
        return out;
    }
    template <class Wanted>
    void forget_if(Wanted&& wanted) {
        std::erase_if(values_, [&](const auto& each) { return wanted(each.first); });
    }
    void clear() noexcept {
        values_.clear();
        order_.clear();
    }

private:
    struct kept {
        Value value;
        std::uint64_t number;
    };
    void forget_first() {
        const auto& [key, number] = order_.front();
        const auto found = values_.find(key);
        if (found != values_.end() && found->second.number == number) values_.erase(found);
        order_.pop_front();
    }

    std::size_t most_;
    std::map<Key, kept> values_;
    std::deque<std::pair<Key, std::uint64_t>> order_;
    std::uint64_t last_ = 0;
};

}  // namespace trace_clauses
