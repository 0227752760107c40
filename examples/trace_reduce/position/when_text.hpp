// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A place in a trace as a person writes it:
/// @code
///   2026-11-22T13:00:03.25Z   2026-11-22 13:00   2026-11-22   date and time; no zone: local time
///   13:00:03.25   13:00+02:00                    time of day, on the trace's first day
///   +1.5s   +200ms   +1h30m                      since the trace began
///   -2s                                          before its end
///   25%                                          of its span of time
///   3:1500   #3:1500                             the record at this position of lane 3
///   #1500                                        at this position of each lane
/// @endcode
/// Two digits, a colon and two digits are a time of day; `#` makes positions of them. Fractions
/// have up to nine digits: nanoseconds. range_finder finds the place in a trace.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include <trace_ring/position.hpp>

#include "when.hpp"

namespace trace_reduce {

/// What `parse_when` takes, in one line.
inline constexpr std::string_view forms_of_when =
    "a date and time (2026-11-22T13:00:03.25Z, without a zone in local time), a time of the first "
    "day (13:00:03), a time since the beginning (+1.5s, +200ms) or before the end (-2s), a share "
    "of "
    "the time (25%), or a record's position (LANE:POSITION, #POSITION)";

namespace impl {

/// A text from which what is understood is taken away.
class when_text {
public:
    explicit when_text(std::string_view text) noexcept : rest_(text) {}

    [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return rest_.size(); }
    [[nodiscard]] char peek(std::size_t i = 0) const noexcept {
        return i < rest_.size() ? rest_[i] : '\0';
    }
    [[nodiscard]] bool digit(std::size_t i = 0) const noexcept {
        return peek(i) >= '0' && peek(i) <= '9';
    }
    bool take(std::string_view what) noexcept {
        if (!rest_.starts_with(what)) return false;
        rest_.remove_prefix(what.size());
        return true;
    }
    /// A number of exactly so many digits, at most `most`.
    bool digits(std::size_t count, std::int64_t most, std::int64_t& into) noexcept {
        std::int64_t value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!digit(i)) return false;
            value = value * 10 + (peek(i) - '0');
        }
        if (value > most) return false;
        into = value;
        rest_.remove_prefix(count);
        return true;
    }
    /// A number of one digit or more, at most `most`.
    bool number(std::uint64_t most, std::uint64_t& into) noexcept {
        std::uint64_t value = 0;
        std::size_t count = 0;
        for (; digit(count); ++count) {
            const auto next = static_cast<std::uint64_t>(peek(count) - '0');
            if (value > (most - (std::min)(next, most)) / 10) return false;
            value = value * 10 + next;
        }
        if (count == 0 || value > most) return false;
        into = value;
        rest_.remove_prefix(count);
        return true;
    }
    /// After a point or comma, if there is one: up to `places` digits, as a number of so many.
    bool fraction(unsigned places, std::uint64_t& into) noexcept {
        into = 0;
        if (peek() != '.' && peek() != ',') return true;
        rest_.remove_prefix(1);
        if (!digit()) return false;
        for (unsigned i = 0; i < places; ++i) {
            into *= 10;
            if (!digit()) continue;
            into += static_cast<std::uint64_t>(peek() - '0');
            rest_.remove_prefix(1);
        }
        return !digit();  // more places than there are
    }

private:
    std::string_view rest_;
};

inline constexpr std::int64_t second_ns = 1'000'000'000;
inline constexpr std::int64_t day_ns = 86'400 * second_ns;

/// Days from 1970-01-01 to a date of the Gregorian calendar: the days of the years before, counted
/// from March so that a leap day is a year's last, and those of the months.
[[nodiscard]] constexpr std::int64_t days_of(std::int64_t year, std::int64_t month,
                                             std::int64_t day) noexcept {
    const std::int64_t y = month <= 2 ? year - 1 : year;
    const std::int64_t months = month <= 2 ? month + 9 : month - 3;
    const std::int64_t before = y * 365 + y / 4 - y / 100 + y / 400;
    return before + (153 * months + 2) / 5 + day - 1 - 719'468;
}
[[nodiscard]] constexpr std::int64_t days_in(std::int64_t year, std::int64_t month) noexcept {
    const std::int64_t next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);
    return next - days_of(year, month, 1);
}
static_assert(days_of(1970, 1, 1) == 0 && days_of(2000, 3, 1) == 11'017 &&
              days_of(2024, 12, 31) == 20'088 && days_in(2000, 2) == 29 && days_in(1900, 2) == 28);

/// HH:MM[:SS[.FRACTION]]
inline bool take_time(when_text& text, std::int64_t& ns) noexcept {
    std::int64_t hours = 0;
    std::int64_t minutes = 0;
    std::int64_t seconds = 0;
    std::uint64_t fraction = 0;
    if (!text.digits(2, 23, hours) || !text.take(":") || !text.digits(2, 59, minutes)) return false;
    if (text.take(":")) {
        if (!text.digits(2, 59, seconds) || !text.fraction(9, fraction)) return false;
    }
    ns = ((hours * 60 + minutes) * 60 + seconds) * second_ns + static_cast<std::int64_t>(fraction);
    return true;
}
/// Z, +HH, +HHMM, +HH:MM, or nothing.
inline bool take_zone(when_text& text, std::optional<std::int32_t>& zone) noexcept {
    if (text.take("Z") || text.take("z")) {
        zone = 0;
        return true;
    }
    const bool east = text.take("+");
    if (!east && !text.take("-")) return true;
    std::int64_t hours = 0;
    std::int64_t minutes = 0;
    if (!text.digits(2, 23, hours)) return false;
    const bool colon = text.take(":");
    if ((colon || text.digit()) && !text.digits(2, 59, minutes)) return false;
    const auto seconds = static_cast<std::int32_t>((hours * 60 + minutes) * 60);
    zone = east ? seconds : -seconds;
    return true;
}
/// NUMBER[.FRACTION]UNIT, once or more: 1h30m.
inline bool take_duration(when_text& text, std::int64_t& ns) noexcept {
    struct unit {
        std::string_view name;
        std::int64_t ns;
    };
    static constexpr unit units[] = {{"ns", 1},
                                     {"us", 1000},
                                     {"\xC2\xB5s", 1000},
                                     {"ms", 1'000'000},
                                     {"min", 60 * second_ns},
                                     {"m", 60 * second_ns},
                                     {"s", second_ns},
                                     {"h", 3600 * second_ns},
                                     {"d", day_ns}};
    constexpr auto most =
        static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)()) / 2;
    std::uint64_t sum = 0;
    do {
        std::uint64_t whole = 0;
        std::uint64_t fraction = 0;
        if (!text.number(most, whole) || !text.fraction(9, fraction)) return false;
        const auto* const found = std::find_if(std::begin(units), std::end(units),
                                               [&](const unit& u) { return text.take(u.name); });
        if (found == std::end(units)) return false;
        const auto size = static_cast<std::uint64_t>(found->ns);
        if (whole > (most - sum) / size) return false;
        // The billionths of a unit, in ns: of a day they are 86,400 each, so nothing overflows.
        const std::uint64_t part = size >= 1'000'000'000 ? fraction * (size / 1'000'000'000)
                                                         : fraction / (1'000'000'000 / size);
        sum += whole * size;
        if (part > most - sum) return false;
        sum += part;
    } while (!text.done());
    ns = static_cast<std::int64_t>(sum);
    return true;
}

inline bool take_positions(when_text& text, bool alone, when& out) noexcept {
    constexpr std::uint64_t lanes = (std::numeric_limits<std::uint32_t>::max)();
    out.what = when::form::record;
    std::uint64_t first = 0;
    if (!text.number(~std::uint64_t{0}, first)) return false;
    if (text.done()) {
        out.at = first;
        return alone;
    }
    if (first == 0 || first > lanes || !text.take(":")) return false;
    out.lane = static_cast<std::uint32_t>(first);
    return text.number(~std::uint64_t{0}, out.at);
}

inline bool take_date(when_text& text, when& out) noexcept {
    std::int64_t year = 0;
    std::int64_t month = 0;
    std::int64_t day = 0;
    out.what = when::form::date;
    // The years that nanoseconds since 1970 can represent in 64 bits.
    if (!text.digits(4, 2261, year) || year < 1970 || !text.take("-") ||
        !text.digits(2, 12, month) || month == 0 || !text.take("-") || !text.digits(2, 31, day) ||
        day == 0 || day > days_in(year, month)) {
        return false;
    }
    out.day = days_of(year, month, day);
    if (text.done()) return true;
    if (!text.take("T") && !text.take("t") && !text.take(" ")) return false;
    return take_time(text, out.ns) && take_zone(text, out.zone);
}

inline bool take_share(when_text& text, when& out) noexcept {
    std::uint64_t whole = 0;
    std::uint64_t fraction = 0;
    out.what = when::form::per_cent;
    if (!text.number(100, whole) || !text.fraction(9, fraction) || !text.take("%")) return false;
    out.share = whole * 1'000'000'000 + fraction;
    return out.share <= when::whole;
}

/// Two digits, a colon, two digits: what is mistyped then is no position.
[[nodiscard]] inline bool looks_like_time(std::string_view text) noexcept {
    const when_text all(text);
    return all.digit(0) && all.digit(1) && all.peek(2) == ':' && all.digit(3) && all.digit(4) &&
           !all.digit(5);
}

}  // namespace impl

/// Nothing if it has none of the forms; linear in the text.
[[nodiscard]] inline std::optional<when> parse_when(std::string_view text) noexcept {
    when out;
    const auto all_of = [&](auto take) {
        impl::when_text from(text);
        out = {};
        return take(from) && from.done();
    };
    using impl::when_text;
    bool good = false;
    if (text.starts_with('#')) {
        text.remove_prefix(1);
        good = all_of([&](when_text& t) { return impl::take_positions(t, true, out); });
    } else if (text.starts_with('+') || text.starts_with('-')) {
        const auto what = text[0] == '+' ? when::form::since_begin : when::form::before_end;
        text.remove_prefix(1);
        good = all_of([&](when_text& t) { return impl::take_duration(t, out.ns); });
        out.what = what;
    } else if (text.ends_with('%')) {
        good = all_of([&](when_text& t) { return impl::take_share(t, out); });
    } else if (text.size() > 4 && text[4] == '-') {
        good = all_of([&](when_text& t) { return impl::take_date(t, out); });
    } else if (impl::looks_like_time(text)) {
        good = all_of([&](when_text& t) {
            out.what = when::form::time_of_day;
            return impl::take_time(t, out.ns) && impl::take_zone(t, out.zone);
        });
    } else {
        good = all_of([&](when_text& t) { return impl::take_positions(t, false, out); });
    }
    return good ? std::optional<when>(out) : std::nullopt;
}

}  // namespace trace_reduce
