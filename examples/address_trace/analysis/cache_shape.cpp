// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

namespace address_trace {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40, most_entries = std::uint64_t{1} << 26;
constexpr std::uint64_t most_ways = 4096;
constexpr std::uint64_t least_line = 8;  // so that no line has the number that marks an empty way

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
    throw std::invalid_argument(fmt::format("cache '{}': {}", part, why));
}

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

[[nodiscard]] std::uint64_t parse_number(std::string_view text, std::string_view part) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    if (error != std::errc{} || (shift == 0 && !unit.empty()) || number == 0) {
        refuse(part, fmt::format("'{}' is no size", text));
    }
    if (number > std::numeric_limits<std::uint64_t>::max() >> shift) {
        refuse(part, fmt::format("{} is too much", text));
    }
    return number << shift;
}

struct replacement_name {
    replacement is;
    std::string_view name;
};
constexpr replacement_name replacement_names[] = {{replacement::lru, "lru"},
                                                  {replacement::fifo, "fifo"},
                                                  {replacement::random, "random"},
                                                  {replacement::plru, "plru"}};

void parse_replacement(std::string_view text, std::string_view part, cache_shape& into) {
    const std::string_view name = text.substr(0, text.find(':'));
    const auto found = std::ranges::find(replacement_names, name, &replacement_name::name);
    if (found == std::end(replacement_names))
        refuse(part, fmt::format("'{}' is not lru, fifo, plru, random, inclusive, exclusive, "
                                 "write-back or next",
                                 text));
    into.leaves = found->is;
    if (name.size() == text.size()) return;
    const std::uint64_t seed = parse_number(text.substr(name.size() + 1), part);
    if (into.leaves != replacement::random || seed > std::numeric_limits<std::uint32_t>::max())
        refuse(part, fmt::format("'{}': only random has a seed, of 32 bits", text));
    into.seed = static_cast<std::uint32_t>(seed);
}

/// Parses the words after SIZE,LINE,WAYS.
void parse_words(std::span<const std::string_view> words, std::string_view part,
                 cache_shape& into) {
    bool has_replacement = false;
    for (const std::string_view word : words) {
        if (std::ranges::count(words, word) > 1)
            refuse(part, fmt::format("'{}' is there twice", word));
        if (word == "inclusive" || word == "exclusive") {
            if (into.holds != inclusion::neither)
                refuse(part, "a cache is inclusive or exclusive, not both");
            into.holds = word == "inclusive" ? inclusion::inclusive : inclusion::exclusive;
        } else if (word == "write-back") {
            into.writes_back = true;
        } else if (word == "next") {
            into.fetches_next = true;
        } else {
            parse_replacement(word, part, into);
            if (std::exchange(has_replacement, true))
                refuse(part, "a cache has one replacement, not two");
        }
    }
    if (into.writes_back && into.is_tlb()) refuse(part, "a TLB writes nothing back");
    if (into.writes_back && !into.takes_data())
        refuse(part, "a cache of code alone writes nothing back");
}

[[nodiscard]] cache_shape parse_shape(std::string_view part) {
    cache_shape shape;
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
        refuse(part, "expected NAME=SIZE,LINE,WAYS");
    }
    shape.name = part.substr(0, equals);
    const auto numbers = split(part.substr(equals + 1), ',');
    if (numbers.size() < 3) {
        refuse(part, shape.is_tlb() ? "expected ENTRIES,PAGE,WAYS" : "expected SIZE,LINE,WAYS");
    }
    parse_words(std::span(numbers).subspan(3), part, shape);
    std::uint64_t size = parse_number(numbers[0], part);
    shape.line = parse_number(numbers[1], part);
    const std::uint64_t ways = parse_number(numbers[2], part);
    if (!std::has_single_bit(shape.line)) refuse(part, "the line must be a power of two");
    if (shape.line < least_line || shape.line > most_bytes) {
        refuse(part, fmt::format("a line has at least {} bytes", least_line));
    }
    if (ways > most_ways) refuse(part, fmt::format("at most {} ways", most_ways));
    if (!shape.is_tlb()) {
        if (size > most_bytes) refuse(part, fmt::format("{} is too much", numbers[0]));
        if (size % shape.line != 0) refuse(part, "the size must be a multiple of the line");
        size /= shape.line;
    }
    if (size > most_entries) refuse(part, fmt::format("at most {} lines", most_entries));
    if (size % ways != 0) {
        refuse(part, fmt::format("{} lines are no multiple of {} ways", size, ways));
    }
    if (shape.leaves == replacement::plru && (!std::has_single_bit(ways) || ways > 64))
        refuse(part, "plru takes 1, 2, 4, 8, 16, 32 or 64 ways");
    shape.ways = static_cast<std::uint32_t>(ways);
    shape.sets = size / ways;
    return shape;
}

/// The nearest cache before a level that takes data, or code; null: none.
[[nodiscard]] const cache_shape* before(const cache_levels& levels,
                                        bool (cache_shape::*takes)() const noexcept) {
    const cache_shape* out = nullptr;
    for (const cache_level& level : levels.all) {
        const auto at = std::ranges::find_if(level, takes);
        if (at != level.end()) out = &*at;
        if (out == nullptr) break;  // the first level does not take it, so no level does
    }
    return out;
}

/// Checks whether a level can be inclusive or exclusive, as `shape` requests, of the levels before
/// it.
void check_inclusion(std::string_view part, const cache_shape& shape, const cache_levels& levels) {
    if (shape.holds == inclusion::neither) return;
    if (levels.all.empty()) refuse(part, "the first level cannot be inclusive or exclusive");
    if (shape.holds == inclusion::exclusive && shape.is_tlb())
        refuse(part, "a TLB cannot be exclusive");
    const cache_shape* const of_data = before(levels, &cache_shape::takes_data);
    const cache_shape* const of_code = before(levels, &cache_shape::takes_code);
    if ((of_data == nullptr || !shape.takes_data()) && (of_code == nullptr || !shape.takes_code()))
        refuse(part, "no level before it takes what it takes");
    if (of_data == of_code && !(shape.takes_data() && shape.takes_code()))
        refuse(part, "it must take data and code, as the level before it does");
    // Otherwise, lines that leave the level before would have two destinations.
    for (const cache_shape* const each : {of_data, of_code}) {
        if (shape.holds == inclusion::exclusive && of_data != nullptr && of_code != nullptr &&
            of_data != of_code && each->takes_data() && each->takes_code())
            refuse(part,
                   fmt::format("a level of data or code alone is between it and {}", each->name));
    }
    for (const cache_level& level : levels.all) {
        for (const cache_shape& inner : level) {
            if (!(inner.takes_data() && shape.takes_data()) &&
                !(inner.takes_code() && shape.takes_code()))
                continue;
            if (inner.is_tlb() != shape.is_tlb())
                refuse(part, "a cache cannot be inclusive or exclusive of a TLB");
            if (inner.line != shape.line)
                refuse(part, fmt::format("its lines must be of {} bytes, as those of {} are",
                                         inner.line, inner.name));
        }
    }
}

}  // namespace

bool cache_levels::any(bool (*is)(const cache_shape&)) const noexcept {
    return std::ranges::any_of(
        all, [is](const cache_level& level) { return std::ranges::any_of(level, is); });
}
bool cache_levels::are_plain() const noexcept {
    return !any([](const cache_shape& each) { return !each.is_plain(); });
}
bool cache_levels::count_writes() const noexcept {
    return !are_plain() && !any([](const cache_shape& each) { return each.is_tlb(); });
}

cache_levels parse_cache_levels(std::string_view text) {
    cache_levels levels;
    for (const std::string_view level : split(text, '+')) {
        cache_level caches;
        for (const std::string_view part : split(level, '/')) {
            caches.push_back(parse_shape(part));
            check_inclusion(part, caches.back(), levels);
        }
        const auto takers = [&](auto takes) { return std::ranges::count_if(caches, takes); };
        if (takers(&cache_shape::takes_data) > 1 || takers(&cache_shape::takes_code) > 1) {
            refuse(level, "of two that share a level one is named D... and the other I...");
        }
        levels.all.push_back(std::move(caches));
    }
    if (levels.any([](const cache_shape& each) { return each.writes_back; }) &&
        !levels.count_writes())
        refuse(text, "nothing is written back where there are TLBs");
    return levels;
}

namespace {

[[nodiscard]] std::string short_bytes(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    while (bytes % 1024 == 0 && bytes != 0 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", bytes, units[unit]);
}

}  // namespace

std::string describe(const cache_shape& shape) {
    const char* const ways = shape.ways == 1 ? "way" : "ways";
    std::string out = shape.is_tlb()
                          ? fmt::format("{} pages of {}, {} {}", shape.entries(),
                                        short_bytes(shape.line), shape.ways, ways)
                          : fmt::format("{}, {}-byte lines, {} {}", short_bytes(shape.bytes()),
                                        shape.line, shape.ways, ways);
    if (shape.leaves != replacement::lru)
        out += fmt::format(
            ", {}",
            std::ranges::find(replacement_names, shape.leaves, &replacement_name::is)->name);
    if (shape.leaves == replacement::random) out += fmt::format(":{}", shape.seed);
    if (shape.holds == inclusion::inclusive) out += ", inclusive";
    if (shape.holds == inclusion::exclusive) out += ", exclusive";
    if (shape.writes_back) out += ", write-back";
    if (shape.fetches_next) out += ", next";
    return out;
}

}  // namespace address_trace
