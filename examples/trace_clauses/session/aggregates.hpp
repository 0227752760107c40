// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What `count` and `hist` have counted, and how it is shown.
/// @code
///   counts of_sizes;
///   of_sizes.add(key);  // any bytes
///   of_sizes.show(std::cout, "count(comm, str(arg0))", [](std::string_view key) { ... });
/// @endcode
/// What the bytes of a key mean is asked when they are shown; keys of the same text are one then.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trace_clauses {

/// Values by keys of any bytes.
template <class Value>
class by_key {
public:
    [[nodiscard]] Value& at(std::string_view key) {
        const auto found = values_.find(key);
        return found != values_.end() ? found->second : values_.emplace(key, Value{}).first->second;
    }
    /// By the keys' texts; those of keys with the same text are added up.
    template <class TextOf>
    [[nodiscard]] std::map<std::string, Value> by_text(TextOf&& text_of) const {
        std::map<std::string, Value> all;
        for (const auto& [key, value] : values_) add(all[text_of(key)], value);
        return all;
    }

private:
    struct hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    static void add(std::uint64_t& to, std::uint64_t value) { to += value; }
    template <class Counts>
    static void add(Counts& to, const Counts& value) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += value[i];
    }

    std::unordered_map<std::string, Value, hash, std::equal_to<>> values_;
};

/// How often each combination of keys came.
class counts {
public:
    void add(std::string_view key) { ++by_key_.at(key); }

    /// The most frequent last, as what scrolls by is read from its end.
    template <class TextOf>
    void show(std::ostream& out, std::string_view title, TextOf&& text_of) const {
        const auto texts = by_key_.by_text(text_of);
        std::vector<std::pair<std::string, std::uint64_t>> sorted(texts.begin(), texts.end());
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
        out << title << '\n';
        for (const auto& [keys, count] : sorted) {
            out << "  " << keys << (keys.empty() ? "" : ": ") << count << '\n';
        }
    }

private:
    by_key<std::uint64_t> by_key_;
};

/// By powers of two: of negative numbers, of 0, and of 1, 2 to 3, 4 to 7 and so on.
class histogram {
public:
    void add(std::string_view key, std::int64_t value, bool is_signed) {
        const bool negative = is_signed && value < 0;
        const std::size_t bucket =
            negative
                ? 0
                : 1 + static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(value)));
        ++by_key_.at(key).at(bucket);
    }

    template <class TextOf>
    void show(std::ostream& out, std::string_view title, TextOf&& text_of) const {
        out << title << '\n';
        for (const auto& [keys, buckets] : by_key_.by_text(text_of)) {
            if (!keys.empty()) out << "  " << keys << '\n';
            const auto used = [](std::uint64_t count) { return count != 0; };
            const auto first = std::find_if(buckets.begin(), buckets.end(), used);
            const auto last = std::find_if(buckets.rbegin(), buckets.rend(), used).base();
            const std::uint64_t most = *std::max_element(buckets.begin(), buckets.end());
            for (auto at = first; at < last; ++at) {
                const std::string range = range_of(static_cast<std::size_t>(at - buckets.begin()));
                const std::string number = std::to_string(*at);
                const auto marks = static_cast<std::size_t>(*at * 40 / most);
                out << "  " << range
                    << std::string(std::max<std::size_t>(range.size(), 20) - range.size(), ' ')
                    << std::string(std::max<std::size_t>(number.size(), 10) - number.size(), ' ')
                    << number << " |" << std::string(marks, '@') << std::string(40 - marks, ' ')
                    << "|\n";
            }
        }
    }

private:
    [[nodiscard]] static std::string range_of(std::size_t bucket) {
        if (bucket == 0) return "negative";
        if (bucket == 1) return "0";
        const std::uint64_t low = std::uint64_t{1} << (bucket - 2);
        const std::uint64_t high = low + (low - 1);
        if (low == high) return std::to_string(low);
        return std::to_string(low) + " to " + std::to_string(high);
    }

    by_key<std::array<std::uint64_t, 66>> by_key_;
};

}  // namespace trace_clauses
