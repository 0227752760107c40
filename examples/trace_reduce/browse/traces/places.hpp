// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is typed to go somewhere or to choose records, understood.

#include <ctime>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "../../../expressions/parse.hpp"
#include "trace.hpp"

namespace trace_reduce::browse {

namespace impl {

/// A whole number at the front of `text`, which it is taken off.
template <class T>
[[nodiscard]] std::optional<T> take_number(std::string_view& text) noexcept {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}
[[nodiscard]] inline bool take(std::string_view& text, char c) noexcept {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}
/// The digits after a point, as nanoseconds of a second; more than nine digits are cut.
[[nodiscard]] inline std::optional<std::int64_t> take_fraction(std::string_view& text) noexcept {
    std::int64_t ns = 0;
    std::int64_t unit = 1'000'000'000;
    std::size_t digits = 0;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
        unit /= 10;
        ns += (text.front() - '0') * unit;
        text.remove_prefix(1);
        ++digits;
    }
    if (digits == 0) return std::nullopt;
    return ns;
}

}  // namespace impl

/// A length of time such as `1.5`, `20ms` or `3m`, in ns; seconds without a unit.
[[nodiscard]] inline std::optional<std::int64_t> parse_length(std::string_view text) noexcept {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || value < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    constexpr std::pair<std::string_view, double> units[] = {
        {"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 60e9}, {"h", 3600e9}};
    for (const auto& [name, ns] : units) {
        if (text != name) continue;
        const double length = value * ns;
        if (length > 9e18) return std::nullopt;
        return static_cast<std::int64_t>(std::llround(length));
    }
    return std::nullopt;
}

/// `2024-05-01 12:34:56.5`, the same with a T between, or without the date: then the day of `near`
/// (ns since 1970) is meant; seconds may be left out. Here, not UTC. In ns since 1970.
[[nodiscard]] inline std::optional<std::int64_t> parse_date(std::string_view text,
                                                            std::int64_t near) {
    using impl::take;
    const auto number = [&text] { return impl::take_number<int>(text); };
    const auto day = static_cast<std::time_t>(near / 1'000'000'000);
    std::tm parts{};
    if (::localtime_r(&day, &parts) == nullptr) return std::nullopt;
    if (text.size() > 4 && text[4] == '-') {
        const auto year = number();
        if (!year || !take(text, '-')) return std::nullopt;
        const auto month = number();
        if (!month || !take(text, '-')) return std::nullopt;
        const auto date = number();
        if (!date || (!take(text, ' ') && !take(text, 'T'))) return std::nullopt;
        if (*year < 1900 || *month < 1 || *month > 12 || *date < 1 || *date > 31) {
            return std::nullopt;
        }
        parts.tm_year = *year - 1900;
        parts.tm_mon = *month - 1;
        parts.tm_mday = *date;
    }
    const auto hour = number();
    if (!hour || !take(text, ':')) return std::nullopt;
    const auto minute = number();
    if (!minute || *hour < 0 || *hour > 23 || *minute < 0 || *minute > 59) return std::nullopt;
    int second = 0;
    std::int64_t ns = 0;
    if (take(text, ':')) {
        const auto told = number();
        if (!told || *told < 0 || *told > 60) return std::nullopt;
        second = *told;
        if (take(text, '.')) {
            const auto fraction = impl::take_fraction(text);
            if (!fraction) return std::nullopt;
            ns = *fraction;
        }
    }
    if (!text.empty()) return std::nullopt;
    parts.tm_hour = *hour;
    parts.tm_min = *minute;
    parts.tm_sec = second;
    parts.tm_isdst = -1;
    const std::time_t seconds = std::mktime(&parts);
    if (seconds == std::time_t{-1}) return std::nullopt;
    return static_cast<std::int64_t>(seconds) * 1'000'000'000 + ns;
}

/// Where in the order of all records a place lies that was typed. `here` is the key, `ticks` and
/// `from` the ticks and the trace of the line that one is on. Forms: `50%`; a date or a time of
/// day; `1.5`, `20ms`: since the first trace began; `+1s`, `-1s`: from here; `#123`: ticks.
[[nodiscard]] inline std::optional<std::uint64_t> parse_place(std::string_view text,
                                                              const traces& of, std::size_t from,
                                                              std::uint64_t ticks) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.empty() || of.size() == 0) return std::nullopt;
    if (text.back() == '%') {
        double share = 0;
        const char* const last = text.data() + text.size() - 1;
        const auto [at, error] =
            std::from_chars(text.data(), last, share, std::chars_format::fixed);
        if (error != std::errc{} || at != last || !(share >= 0 && share <= 100)) {
            return std::nullopt;
        }
        const std::uint64_t first = of.first_key();
        const auto span = static_cast<double>(of.last_key() - first);
        const double length = span * share / 100;
        return first +
               (length >= 0x1p63 ? std::uint64_t{1} << 63 : static_cast<std::uint64_t>(length));
    }
    if (impl::take(text, '#')) {
        const auto number = impl::take_number<std::uint64_t>(text);
        if (!number || !text.empty()) return std::nullopt;
        return of.key_of(from, *number);
    }
    const reduce::timeline& time = of[from].file().time();
    if (!time.known()) return std::nullopt;
    // The first ticks of trace `i` at which a clock is not below `ns`.
    const auto first_at = [&of](std::size_t i, const auto& clock, std::int64_t ns) {
        return traces::first_at(of[i].file().time(),
                                [&](std::uint64_t at) { return clock(at) >= ns; });
    };
    const auto relative = [&](std::size_t i) {
        return [&of, i](std::uint64_t at) { return of[i].file().relative_ns(at); };
    };
    if (text.front() == '+' || text.front() == '-') {
        const bool back = text.front() == '-';
        text.remove_prefix(1);
        const auto length = parse_length(text);
        if (!length) return std::nullopt;
        const std::int64_t now = of[from].file().relative_ns(ticks);
        std::int64_t to = 0;
        if (back ? __builtin_sub_overflow(now, *length, &to)
                 : __builtin_add_overflow(now, *length, &to)) {
            return std::nullopt;
        }
        return of.key_of(from, first_at(from, relative(from), to));
    }
    if (text.find(':') != std::string_view::npos) {
        const std::int64_t near = time.realtime_ns(ticks);
        const auto date = parse_date(text, near);
        if (!date) return std::nullopt;
        return of.key_of(from,
                         first_at(
                             from, [&](std::uint64_t at) { return time.realtime_ns(at); }, *date));
    }
    const auto length = parse_length(text);
    if (!length) return std::nullopt;
    return of.key_of(0, first_at(0, relative(0), *length));
}

/// What chooses records: globs of events and ids of threads, with spaces between, and after the
/// word `where` a condition as --where has it. Nothing, with `why` in one line, if it makes no
/// sense for these traces; columns count from the beginning of the text.
[[nodiscard]] inline std::optional<selection> parse_selection(std::string_view text,
                                                              const traces& of, std::string& why) {
    selection wanted;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t space = rest.find(' ');
        std::string_view word = rest.substr(0, space);
        rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
        if (word.empty()) continue;
        if (word == "where") {
            auto found = expressions::parse(rest);
            auto* wrong = std::get_if<expressions::mistake>(&found);
            std::optional<expressions::mistake> unsound;
            if (wrong == nullptr) {
                wanted.where = std::get<expressions::expression>(std::move(found));
                unsound = of.find_mistake(*wanted.where);
                if (!unsound) break;
                wrong = &*unsound;
            }
            wrong->column += text.size() - rest.size();
            why = expressions::describe_in_line(text, *wrong);
            return std::nullopt;
        }
        if (word.find_first_not_of("0123456789") == std::string_view::npos) {
            const auto thread = impl::take_number<std::uint32_t>(word);
            if (!thread || !word.empty()) {
                why = "not the id of a thread: " + std::string(word);
                return std::nullopt;
            }
            wanted.threads.push_back(*thread);
        } else {
            wanted.events.emplace_back(word);
        }
    }
    return wanted;
}

}  // namespace trace_reduce::browse
