// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Suggestions for misspelt names.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace expressions {

/// The number of letters to add, leave out, change, or exchange with their neighbours.
[[nodiscard]] inline std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> now(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            now[j] = (std::min)(
                {last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = (std::min)(now[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, now);
    }
    return last[b.size()];
}

/// Looks at names one by one and keeps the nearest.
class nearest {
public:
    /// One letter in `share` may differ, and at least one. `name` must outlive it.
    nearest(std::string_view name, std::size_t share)
        : name_(name), best_(std::max<std::size_t>(1, name.size() / share) + 1) {}

    void look(std::string_view other) {
        if (name_.size() > longest || other.size() > longest) return;
        if (const std::size_t away = distance(name_, other); away < best_) {
            best_ = away;
            found_ = other;
        }
    }
    /// The nearest name; empty if none is near enough.
    [[nodiscard]] std::string_view found() const noexcept { return found_; }
    [[nodiscard]] std::string suggestion() const {
        return "; did you mean '" + std::string(found_) + "'?";
    }

private:
    static constexpr std::size_t longest = 64;

    std::string_view name_;
    std::size_t best_;
    std::string_view found_{};
};

}  // namespace expressions
