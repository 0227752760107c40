// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "cache_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <stdexcept>

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
        refuse(part, fmt::format("'{}' is no replacement: lru, fifo, plru or random", text));
    into.leaves = found->is;
    if (name.size() == text.size()) return;
    const std::uint64_t seed = parse_number(text.substr(name.size() + 1), part);
    if (into.leaves != replacement::random || seed > std::numeric_limits<std::uint32_t>::max())
        refuse(part, fmt::format("'{}': only random has a seed, of 32 bits", text));
    into.seed = static_cast<std::uint32_t>(seed);
}

[[nodiscard]] cache_shape parse_shape(std::string_view part) {
    cache_shape shape;
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
        refuse(part, "expected NAME=SIZE,LINE,WAYS");
    }
    shape.name = part.substr(0, equals);
    const auto numbers = split(part.substr(equals + 1), ',');
    if (numbers.size() != 3 && numbers.size() != 4) {
        refuse(part, shape.is_tlb() ? "expected ENTRIES,PAGE,WAYS" : "expected SIZE,LINE,WAYS");
    }
    if (numbers.size() == 4) parse_replacement(numbers[3], part, shape);
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

}  // namespace

cache_levels parse_cache_levels(std::string_view text) {
    cache_levels levels;
    for (const std::string_view level : split(text, '+')) {
        cache_level caches;
        for (const std::string_view part : split(level, '/')) caches.push_back(parse_shape(part));
        const auto takers = [&](auto takes) { return std::ranges::count_if(caches, takes); };
        if (takers(&cache_shape::takes_data) > 1 || takers(&cache_shape::takes_code) > 1) {
            refuse(level, "of two that share a level one is named D... and the other I...");
        }
        levels.all.push_back(std::move(caches));
    }
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
    return out;
}

}  // namespace address_trace
