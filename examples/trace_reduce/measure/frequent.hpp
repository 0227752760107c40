// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How often each of many values comes, in bounded memory. As long as there are no more different
/// ones than `most`, all counts are exact. When there are twice as many, the rarer half is summed
/// up and dropped, again and again: frequent ones stay, and the number of occurrences that may have
/// been dropped before is known.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trace_reduce::measure {

/// `Value` is kept for each, next to its count: it can be default-constructed, and
/// `add(const Value&)` adds another to it.
template <class Value>
class frequent {
public:
    static constexpr std::size_t longest = 256;  ///< bytes by which values are told apart

    struct entry {
        std::uint64_t count = 0;
        std::uint64_t missed = 0;  ///< this many more may have come before
        Value value{};
    };
    struct found {
        std::string_view name;
        const entry* what;
    };

    explicit frequent(std::size_t most) : most_(most) {}

    /// Another of `name`; constant time, on average.
    Value& add(std::string_view name, std::uint64_t times = 1) {
        if (last_ != nullptr && last_->first == name.substr(0, longest)) {
            last_->second.count += times;
            return last_->second.value;
        }
        key_.assign(name.substr(0, longest));
        auto at = all_.find(key_);
        if (at == all_.end()) {
            if (all_.size() >= 2 * most_) forget();
            at = all_.emplace(key_, entry{0, floor_, {}}).first;
        }
        last_ = &*at;
        at->second.count += times;
        return at->second.value;
    }
    void add(const frequent& other) {
        for (const auto& [name, what] : other.all_) {
            add(name, what.count).add(what.value);
            last_->second.missed += what.missed;
        }
        forgotten_ += other.forgotten_;
        floor_ = std::max(floor_, other.floor_);
        rest_.add(other.rest_);
    }

    /// False: `size` is how many are known of more.
    [[nodiscard]] bool exact() const noexcept { return floor_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
    /// Times that came what was forgotten, and what they sum up to.
    [[nodiscard]] std::uint64_t forgotten() const noexcept { return forgotten_; }
    [[nodiscard]] const Value& rest() const noexcept { return rest_; }

    /// The `rows` that came most often, the most frequent first, equal ones by name.
    [[nodiscard]] std::vector<found> top(std::size_t rows) const {
        std::vector<found> list;
        list.reserve(all_.size());
        for (const auto& each : all_) list.push_back({each.first, &each.second});
        const auto more = [](const found& a, const found& b) {
            return a.what->count != b.what->count ? a.what->count > b.what->count : a.name < b.name;
        };
        const auto end = list.begin() + static_cast<std::ptrdiff_t>(std::min(rows, list.size()));
        std::partial_sort(list.begin(), end, list.end(), more);
        list.erase(end, list.end());
        return list;
    }

private:
    void forget() {
        last_ = nullptr;
        std::vector<std::uint64_t> counts;
        counts.reserve(all_.size());
        for (const auto& each : all_) counts.push_back(each.second.count);
        const auto bound = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() - most_);
        std::nth_element(counts.begin(), bound, counts.end());
        const std::uint64_t least = *bound;  // of the `most_` that come most often
        std::size_t of_least = static_cast<std::size_t>(
            std::count(bound, counts.end(), least));  // so many of these may stay
        for (auto at = all_.begin(); at != all_.end();) {
            const entry& each = at->second;
            if (each.count > least || (each.count == least && of_least != 0 && of_least-- != 0)) {
                ++at;
                continue;
            }
            forgotten_ += each.count;
            floor_ = std::max(floor_, each.count + each.missed);
            rest_.add(each.value);
            at = all_.erase(at);
        }
    }

    std::size_t most_;
    std::unordered_map<std::string, entry> all_;
    std::pair<const std::string, entry>* last_ = nullptr;
    std::string key_;
    std::uint64_t floor_ = 0;  // the highest count of a dropped one
    std::uint64_t forgotten_ = 0;
    Value rest_{};
};

/// For values of which only the number counts.
struct nothing {
    void add(const nothing&) noexcept {}
};

}  // namespace trace_reduce::measure
