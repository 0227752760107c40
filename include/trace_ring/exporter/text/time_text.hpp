// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Times as the lines of text show them.

#include <time.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>

namespace trace_ring::inline v1::exporter {

enum class time_format {
    local,     ///< date and time of day here, to the nanosecond
    relative,  ///< seconds since the trace was set up
    raw,       ///< ticks of the trace's clock
};

namespace impl {

/// Times in a row cost little: the date changes once a second, the clock readings more rarely.
class time_text {
public:
    static constexpr std::size_t room = 80;  ///< bytes that `put` may write

    /// `line` must outlive it, and may be refreshed in between.
    time_text(const reduce::timeline& line, time_format format) noexcept
        : line_(&line), format_(format) {}
    time_text(const time_text&) = default;
    time_text(time_text&&) = default;
    time_text& operator=(const time_text&) = default;
    time_text& operator=(time_text&&) = default;

    [[nodiscard]] const reduce::timeline& line() const noexcept { return *line_; }

    /// Writes a time to `at`; returns its end.
    [[nodiscard]] char* put(char* at, std::uint64_t ticks) {
        if (format_ == time_format::raw || !line_->known()) return put_number(at, ticks);
        if (format_ == time_format::relative) {
            const std::int64_t ns = line_->relative_ns(ticks, near_);
            const std::uint64_t size =
                ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
            if (ns < 0) *at++ = '-';
            return put_seconds(at, size);
        }
        const std::int64_t ns = line_->realtime_ns(ticks, near_);
        // Modulo 2^64: the times may be far apart.
        const auto within = [this, ns] { return static_cast<std::uint64_t>(ns) - from_; };
        if (within() >= second || date_.empty()) [[unlikely]]
            make_date(ns);
        at = date_.put(at);
        put_padded<9>(at, within());
        return at + 9;
    }

private:
    static constexpr std::int64_t second = 1'000'000'000;

    [[gnu::noinline]] void make_date(std::int64_t ns) {
        const std::int64_t seconds = ns / second - (ns % second < 0 ? 1 : 0);
        from_ = static_cast<std::uint64_t>(seconds) * static_cast<std::uint64_t>(second);
        char text[room - 10];
        std::size_t size = 0;
        const auto when = static_cast<time_t>(seconds);
        tm parts{};
        if (static_cast<std::int64_t>(when) != seconds || ::localtime_r(&when, &parts) == nullptr) {
            size = static_cast<std::size_t>(put_number(text, seconds) - text);
        } else {
            size = ::strftime(text, sizeof text - 1, "%Y-%m-%d %H:%M:%S", &parts);
        }
        text[size++] = '.';
        date_ = piece({text, size});
    }

    const reduce::timeline* line_;
    time_format format_;
    std::size_t near_ = 0;    // the reading after the last time shown
    std::uint64_t from_ = 0;  // ns at which the second of `date_` begins
    piece date_{};            // with the point
};

}  // namespace impl

}  // namespace trace_ring::inline v1::exporter
