// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Matches names by pattern, for gates and filters; signal-safe, so not fnmatch.
/// @code
///   const bool sent = trace_ring::matches_glob("order.*", name);
/// @endcode

#include <cstddef>
#include <string_view>

namespace trace_ring::inline v1 {

/// True if `text` matches the glob: `*` any characters, `?` one, `[a-z]` and `[!a-z]` one of a set,
/// `\` takes the next literally. Sets are of bytes, compared without a sign. Time: the product of
/// both lengths at worst.
[[nodiscard, gnu::noinline]] inline bool matches_glob(std::string_view glob,
                                                      std::string_view text) noexcept {
    constexpr std::size_t none = std::string_view::npos;
    // No set ends behind the last of them, and none is looked for.
    const std::size_t last_end = glob.rfind(']');
    const auto number = [](char c) { return static_cast<unsigned char>(c); };
    const auto one = [&](std::size_t& g, char c) {
        if (glob[g] == '?') {
            ++g;
            return true;
        }
        if (glob[g] == '[') {
            const bool negated = g + 1 < glob.size() && (glob[g + 1] == '!' || glob[g + 1] == '^');
            const std::size_t first = g + (negated ? 2 : 1);
            if (last_end != none && first + 1 <= last_end) {
                const std::size_t end = glob.find(']', first + 1);
                bool in = false;
                for (std::size_t i = first; i < end; ++i) {
                    if (i + 2 < end && glob[i + 1] == '-') {
                        in = in ||
                             (number(glob[i]) <= number(c) && number(c) <= number(glob[i + 2]));
                        i += 2;
                    } else {
                        in = in || glob[i] == c;
                    }
                }
                g = end + 1;
                return in != negated;
            }
        }
        if (glob[g] == '\\' && g + 1 < glob.size()) ++g;
        return glob[g++] == c;
    };
    std::size_t g = 0;
    std::size_t t = 0;
    std::size_t star = none;
    std::size_t star_text = 0;
    while (t < text.size()) {
        if (g < glob.size() && glob[g] == '*') {
            star = g++;
            star_text = t;
            continue;
        }
        std::size_t after = g;
        if (g < glob.size() && one(after, text[t])) {
            g = after;
            ++t;
            continue;
        }
        if (star == none) return false;
        g = star + 1;  // the star takes one character more
        t = ++star_text;
    }
    while (g < glob.size() && glob[g] == '*') ++g;
    return g == glob.size();
}

}  // namespace trace_ring::inline v1
