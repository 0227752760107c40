// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a trace's ticks are worth. The recorder reads its clock, CLOCK_MONOTONIC and CLOCK_REALTIME
/// together now and then; between two such readings a time is on the line through them, outside on
/// the line through the first and the last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace trace_ring::inline v1::reduce {

/// Three clocks at one moment.
struct clock_triple {
    std::uint64_t ticks = 0;
    std::uint64_t monotonic = 0;  ///< ns
    std::uint64_t realtime = 0;   ///< ns since 1970
    std::uint64_t width = 0;      ///< ticks within which all three were read: the uncertainty
    std::uint32_t process = 0;    ///< slot of the process that read them
};

class timeline {
public:
    /// Ticks that mean nothing: every time is 0.
    timeline() = default;

    /// `ticks_per_second` is the recorder's estimate, used where readings are too near each other
    /// to tell a rate. The readings may be in any order and may contradict each other.
    timeline(std::vector<clock_triple> readings, std::uint64_t ticks_per_second)
        : readings_(std::move(readings)) {
        constexpr double shortest_baseline_ns = 1e7;
        std::sort(readings_.begin(), readings_.end(),
                  [](const clock_triple& a, const clock_triple& b) { return a.ticks < b.ticks; });
        const double stated =
            ticks_per_second != 0 ? 1e9 / static_cast<double>(ticks_per_second) : 0;
        ns_per_tick_ = stated;
        for (std::size_t i = 1; i < readings_.size(); ++i) {
            const auto& a = readings_[i - 1];
            const auto& b = readings_[i];
            if (b.monotonic < a.monotonic) {
                consistent_ = false;
                continue;
            }
            const auto ns = static_cast<double>(b.monotonic - a.monotonic);
            if (ns < shortest_baseline_ns) continue;
            // A counter that was stopped, restarted or moved to another machine shows as a rate far
            // from the one it had. 1 % is more than any clock is slewed by.
            const double rate =
                ns / static_cast<double>(std::max<std::uint64_t>(b.ticks - a.ticks, 1));
            if (stated > 0 && (rate > stated * 1.01 || rate < stated * 0.99)) consistent_ = false;
        }
        if (readings_.size() >= 2 && consistent_) {
            const auto& first = readings_.front();
            const auto& last = readings_.back();
            const auto ns = static_cast<double>(last.monotonic - first.monotonic);
            if (ns >= shortest_baseline_ns && last.ticks > first.ticks) {
                ns_per_tick_ = ns / static_cast<double>(last.ticks - first.ticks);
            }
        }
        for (std::size_t i = 0; i <= readings_.size(); ++i) {
            rates_.push_back({rate(i, &clock_triple::realtime), rate(i, &clock_triple::monotonic)});
        }
    }

    /// True if ticks can be told in nanoseconds and dates.
    [[nodiscard]] bool known() const noexcept { return !readings_.empty() && ns_per_tick_ > 0; }
    /// False: the readings contradict each other or the stated rate, so the counter jumped while
    /// the trace was taken; times are then what the nearest readings say.
    [[nodiscard]] bool consistent() const noexcept { return consistent_; }
    [[nodiscard]] std::span<const clock_triple> readings() const noexcept { return readings_; }
    [[nodiscard]] double ns_per_tick() const noexcept { return ns_per_tick_; }
    /// A length in ticks, in ns.
    [[nodiscard]] double ns(double ticks) const noexcept { return ticks * ns_per_tick_; }
    /// How far off a time may be at a reading, in ns: half of the widest.
    [[nodiscard]] double uncertainty_ns() const noexcept {
        std::uint64_t widest = 0;
        for (const auto& reading : readings_) widest = std::max(widest, reading.width);
        return ns(static_cast<double>(widest)) / 2;
    }

    /// Ns since 1970; 0 if not known. Logarithmic in the number of readings; but constant for one
    /// who asks for times in a row, of which most lie between the same two, and hands in the same
    /// `near` with each, 0 at first.
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks) const noexcept {
        std::size_t near = 0;
        return realtime_ns(ticks, near);
    }
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks, std::size_t& near) const noexcept {
        return at(ticks, near, &clock_triple::realtime, &rates::realtime);
    }
    [[nodiscard]] std::int64_t monotonic_ns(std::uint64_t ticks) const noexcept {
        std::size_t near = 0;
        return monotonic_ns(ticks, near);
    }
    [[nodiscard]] std::int64_t monotonic_ns(std::uint64_t ticks, std::size_t& near) const noexcept {
        return at(ticks, near, &clock_triple::monotonic, &rates::monotonic);
    }
    /// Ns since the first reading, taken when the trace was set up; negative before.
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks) const noexcept {
        std::size_t near = 0;
        return relative_ns(ticks, near);
    }
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks, std::size_t& near) const noexcept {
        if (readings_.empty()) return 0;
        // Modulo 2^64: the numbers may come from a damaged file.
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(monotonic_ns(ticks, near)) -
                                         readings_.front().monotonic);
    }

private:
    struct rates {
        double realtime, monotonic;  // ns a tick
    };

    /// The first reading after `ticks`. `near`: where to look first, whatever it is.
    [[nodiscard]] std::size_t after(std::uint64_t ticks, std::size_t near) const noexcept {
        if (near <= readings_.size() && (near == 0 || readings_[near - 1].ticks <= ticks) &&
            (near == readings_.size() || ticks < readings_[near].ticks)) [[likely]] {
            return near;
        }
        const auto found = std::upper_bound(
            readings_.begin(), readings_.end(), ticks,
            [](std::uint64_t value, const clock_triple& r) { return value < r.ticks; });
        return static_cast<std::size_t>(found - readings_.begin());
    }
    /// Of the line that ends at reading `end`.
    [[nodiscard]] double rate(std::size_t end, std::uint64_t clock_triple::*clock) const noexcept {
        if (end == 0 || end == readings_.size()) return ns_per_tick_;
        const auto& a = readings_[end - 1];
        const auto& b = readings_[end];
        // Modulo 2^64, then signed: a realtime clock may have been set back.
        const auto rise = static_cast<double>(static_cast<std::int64_t>(b.*clock - a.*clock));
        return rise / static_cast<double>(std::max<std::uint64_t>(b.ticks - a.ticks, 1));
    }
    [[nodiscard]] std::int64_t at(std::uint64_t ticks, std::size_t& near,
                                  std::uint64_t clock_triple::*clock,
                                  double rates::*rate) const noexcept {
        if (!known()) return 0;
        near = after(ticks, near);
        return along(readings_[near == 0 ? 0 : near - 1], ticks, rates_[near].*rate, clock);
    }

    /// The difference is scaled, not the value: a double holds days of it to the nanosecond. The
    /// numbers may come from a damaged file, so the result is bounded before it is an integer.
    [[nodiscard]] static std::int64_t along(const clock_triple& from, std::uint64_t ticks,
                                            double rate,
                                            std::uint64_t clock_triple::*clock) noexcept {
        const bool back = ticks < from.ticks;
        const double length =
            static_cast<double>(back ? from.ticks - ticks : ticks - from.ticks) * rate;
        const double bounded = std::clamp(length, -9.2e18, 9.2e18);
        const auto ns = static_cast<std::uint64_t>(
            static_cast<std::int64_t>(bounded + (bounded < 0 ? -0.5 : 0.5)));
        return static_cast<std::int64_t>(back ? from.*clock - ns : from.*clock + ns);
    }

    std::vector<clock_triple> readings_;
    std::vector<rates> rates_;  // by the reading that ends it
    double ns_per_tick_ = 0;
    bool consistent_ = true;
};

}  // namespace trace_ring::inline v1::reduce
