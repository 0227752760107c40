// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "basic_types.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

namespace trace_clauses {

using point::c_type;

std::optional<basic> basic_of(const std::string& words) {
    constexpr std::array<std::string_view, 9> known = {
        "signed", "unsigned", "char", "short", "int", "long", "float", "double", "_Bool"};
    enum { with_sign, without, character, brief, integer, extended, single, twice, truth };
    std::array<int, known.size()> count{};
    for (std::size_t begin = 0; begin < words.size();) {
        const std::size_t end = std::min(words.find(' ', begin), words.size());
        const auto at = std::find(known.begin(), known.end(),
                                  std::string_view(words).substr(begin, end - begin));
        if (at == known.end()) return std::nullopt;
        ++count[static_cast<std::size_t>(at - known.begin())];
        begin = end + 1;
    }
    const int all = std::accumulate(count.begin(), count.end(), 0);
    const int signs = count[with_sign] + count[without];
    const bool is_signed = count[without] == 0;
    for (std::size_t i = 0; i < count.size(); ++i) {
        if (count[i] > (i == extended ? 2 : 1)) return std::nullopt;
    }
    if (signs > 1) return std::nullopt;
    const auto only = [&](int others) { return all == others + signs; };
    if (count[truth] == 1 && all == 1) return basic{c_type::boolean, false};
    if (count[single] == 1 && all == 1) return basic{c_type::single_float};
    if (count[twice] == 1 && all == 1) return basic{c_type::double_float};
    if (count[twice] == 1 && count[extended] == 1 && all == 2) {
        return basic{c_type::long_double_float};
    }
    if (count[single] + count[twice] + count[truth] != 0) return std::nullopt;
    if (count[character] == 1) {
        return only(1) ? std::optional(basic{c_type::character, is_signed, signs != 0})
                       : std::nullopt;
    }
    const int whole = count[integer];
    if (count[brief] == 1) {
        return only(1 + whole) ? std::optional(basic{c_type::short_integer, is_signed})
                               : std::nullopt;
    }
    if (count[extended] == 2) return basic{c_type::long_long_integer, is_signed};
    if (count[extended] == 1) return basic{c_type::long_integer, is_signed};
    return basic{c_type::integer, is_signed};
}

std::optional<basic> usual(const std::string& name) {
    using enum c_type;
    static const std::map<std::string, basic, std::less<>> all = {
        {"bool", {boolean, false}},
        {"int8_t", {character, true, true}},
        {"uint8_t", {character, false, true}},
        {"int16_t", {short_integer, true}},
        {"uint16_t", {short_integer, false}},
        {"int32_t", {integer, true}},
        {"uint32_t", {integer, false}},
        {"int64_t", {long_long_integer, true}},
        {"uint64_t", {long_long_integer, false}},
        {"intptr_t", {long_integer, true}},
        {"uintptr_t", {long_integer, false}},
        {"size_t", {long_integer, false}},
        {"ssize_t", {long_integer, true}},
        {"ptrdiff_t", {long_integer, true}},
        {"time_t", {long_integer, true}},
        {"off_t", {long_integer, true}},
        {"wchar_t", {integer, true}},
        {"pid_t", {integer, true}},
        {"uid_t", {integer, false}},
        {"gid_t", {integer, false}},
        {"mode_t", {integer, false}},
        {"socklen_t", {integer, false}},
    };
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace trace_clauses
