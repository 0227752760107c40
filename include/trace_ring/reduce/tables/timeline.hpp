// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Turns a trace's ticks into times. The recorder reads its clock, CLOCK_MONOTONIC and
/// CLOCK_REALTIME together now and then. A time between two such snapshots is on the line through
/// them; one outside is on the line through the first and the last.
///
/// If the clocks jumped between two snapshots (the date was set, the machine slept or started
/// again), it is not known when. Then times between them follow the line of the earlier one, and
/// dates jump at the later one: once, and no date in between is shown.
/// @code
///   dates  o----o----o---------.         `jumps()` has the interval of the last two snapshots,
///                                        within which a date may be off by the step
///                              o----o
///   ticks  ------------------------->
/// @endcode
/// This is the one place where ticks become times: all code that shows or asks for times uses it.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/format/clocks.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::reduce {

/// A clock snapshot of the trace. A timeline sets the further members.
struct trace_clock_snapshot : layout::taken_snapshot {
    std::uint32_t era = 0;      ///< of its ticks, raised
    std::uint64_t elapsed = 0;  ///< ns since the first snapshot
};

/// Puts the ticks of several eras of a trace's clock into one order. The clock begins anew when the
/// machine starts again, and may go back when a virtual machine is moved: then the same ticks mean
/// several moments. A reader raises the ticks of each era by a multiple of 2^32, so that they
/// follow those of the era before and a later time is always greater.
/// @code
///   the file's ticks    ..100 ..... 180 | 20 ..... 90 | 30 ....     | a snapshot has fewer ticks
///   era                         0             1           2           than the one before
///   raised              ..100 ..... 180 | 220 ... 290 | 330 ...
/// @endcode
/// The lane, or the position of its sub-buffer, decides the era of a time: a lane entered, or a
/// sub-buffer claimed, after the first snapshot of an era does not belong to the one before.
class clock_eras {
public:
    clock_eras() = default;
    /// Sorts the snapshots as they were taken, removes doubles, and raises their ticks.
    clock_eras(std::vector<trace_clock_snapshot>& snapshots, std::uint64_t ticks_per_second) {
        const auto by_number = [](const trace_clock_snapshot& a, const trace_clock_snapshot& b) {
            return a.number != b.number ? a.number < b.number : a.since > b.since;
        };
        std::stable_sort(snapshots.begin(), snapshots.end(), by_number);
        const auto twice = [](const trace_clock_snapshot& a, const trace_clock_snapshot& b) {
            return a.number != 0 && a.number == b.number;
        };
        snapshots.erase(std::unique(snapshots.begin(), snapshots.end(), twice), snapshots.end());
        const auto rate = static_cast<double>(ticks_per_second);
        trace_clock_snapshot last;   // with the file's ticks
        trace_clock_snapshot first;  // of the era, with raised ticks
        for (trace_clock_snapshot& each : snapshots) {
            const trace_clock_snapshot next = each;
            if (&each == snapshots.data()) {
                first = each;
            } else if (each.lanes != 0 && advance_of(last, next, rate).anew &&
                       all_.size() < most_eras) {
                begin(first, last, next, rate);
                first = each;
                first.ticks += all_.back().shift;
                if (each.since != 0) each.since += all_[all_.size() - 2].shift;
            } else if (each.since != 0) {
                each.since += all_.back().shift;
            }
            each.era = static_cast<std::uint32_t>(all_.size() - 1);
            each.ticks += all_.back().shift;
            last = next;
        }
        std::stable_sort(snapshots.begin(), snapshots.end(),
                         [](const trace_clock_snapshot& a, const trace_clock_snapshot& b) {
                             return a.ticks < b.ticks;
                         });
    }

    [[nodiscard]] bool several() const noexcept { return all_.size() > 1; }
    /// By how much the ticks of an era are raised: a multiple of 2^32.
    [[nodiscard]] std::uint64_t shift(std::size_t era) const noexcept {
        return all_[(std::min)(era, all_.size() - 1)].shift;
    }
    [[nodiscard]] bool has(std::size_t era) const noexcept { return era < all_.size(); }
    /// The earliest era in which a lane, or its sub-buffer at `pos`, can have begun at these ticks.
    /// `pos`: no_position if it is not known, or if there are several rings, whose positions have
    /// no common order.
    [[nodiscard]] std::uint8_t of(std::uint32_t lane, position pos,
                                  std::uint64_t ticks) const noexcept {
        std::size_t era = all_.size() - 1;
        while (era > 0 && !all_[era].is_after(lane, pos, ticks)) --era;
        return static_cast<std::uint8_t>(era);
    }
    /// The era of ticks that follow ticks `before` of `era`, both as the file has them: if they
    /// went back, the next era began in between.
    [[nodiscard]] std::size_t next(std::size_t era, std::uint64_t before,
                                   std::uint64_t ticks) const noexcept {
        return ticks < before && has(era + 1) ? era + 1 : era;
    }
    /// Raises ticks of a lane, or of its sub-buffer at `pos`.
    [[nodiscard]] std::uint64_t raised(std::uint32_t lane, position pos,
                                       std::uint64_t ticks) const noexcept {
        return several() ? ticks + shift(of(lane, pos, ticks)) : ticks;
    }

private:
    struct boundary {
        std::uint64_t shift = 0;
        std::uint32_t lanes = 0;         // entered before it: at most these,
        std::uint32_t lanes_before = 0;  // and at least these
        position cursor = 0;             // claimed before it, at most
        std::uint64_t last = 0;          // ticks that the era before is known to have reached

        [[nodiscard]] bool is_after(std::uint32_t lane, position pos,
                                    std::uint64_t ticks) const noexcept {
            return lane > lanes || (pos != no_position && pos > cursor) ||
                   (lane > lanes_before && ticks < last);
        }
    };

    static constexpr std::size_t most_eras = 255;

    /// Begins an era. Its distance to the known end of the last era is the time that passed by the
    /// date; if the date was set back, it is more than a recorder is ever silent for.
    void begin(const trace_clock_snapshot& first, const trace_clock_snapshot& last,
               const trace_clock_snapshot& next, double rate) {
        constexpr std::uint64_t half = std::uint64_t{1} << 32;
        constexpr double bound = 1e18;
        const bool adjacent = last.lanes != 0 && last.number + 1 == next.number;
        boundary one;
        one.lanes = next.lanes - 1;
        one.lanes_before = adjacent ? last.lanes - 1 : one.lanes;
        one.cursor = next.cursor;
        one.last = (std::max)(next.since, last.ticks);
        const std::uint64_t end = one.last + all_.back().shift;
        const auto passed = static_cast<std::int64_t>(next.realtime - first.realtime);
        const double ticks = (std::min)(static_cast<double>(passed) / 1e9 * rate, bound);
        std::uint64_t start = passed > 0 ? first.ticks + static_cast<std::uint64_t>(ticks) : 0;
        if (start <= end) start = end + (std::uint64_t{1} << 50);
        one.shift = (start - next.ticks + half - 1) / half * half;
        all_.push_back(one);
    }

    std::vector<boundary> all_{boundary{}};
};

/// A place where the clocks jumped.
struct timeline_jump {
    std::uint64_t from = 0;  ///< ticks: it happened after this,
    std::uint64_t to = 0;    ///< and before or at this, where dates jump
    std::int64_t step = 0;   ///< ns by which dates jump
    bool anew = false;       ///< the trace's clock began anew
};

class timeline {
public:
    /// Without a clock: every time is 0.
    timeline() = default;

    /// `ticks_per_second` is the recorder's estimate, used where snapshots are too close together
    /// to give a rate. The snapshots may be in any order and may contradict each other.
    timeline(std::vector<trace_clock_snapshot> snapshots, std::uint64_t ticks_per_second)
        : eras_(snapshots, ticks_per_second), snapshots_(std::move(snapshots)) {
        constexpr double shortest_baseline_ns = 1e7;
        const auto stated_rate = static_cast<double>(ticks_per_second);
        const double stated = ticks_per_second != 0 ? 1e9 / stated_rate : 0;
        ns_per_tick_ = stated;
        consistent_ = !eras_.several();
        for (std::size_t i = 1; i < snapshots_.size(); ++i) {
            const auto& a = snapshots_[i - 1];
            const auto& b = snapshots_[i];
            if (b.monotonic < a.monotonic) {
                consistent_ = false;
                continue;
            }
            const auto ns = static_cast<double>(b.monotonic - a.monotonic);
            if (ns < shortest_baseline_ns) continue;
            // A counter that was stopped, restarted or moved to another machine shows as a rate far
            // from the stated one. No clock is slewed by more than 1 %.
            const double rate =
                ns / static_cast<double>(std::max<std::uint64_t>(b.ticks - a.ticks, 1));
            if (stated > 0 && (rate > stated * 1.01 || rate < stated * 0.99)) consistent_ = false;
        }
        if (snapshots_.size() >= 2 && consistent_) {
            const auto& first = snapshots_.front();
            const auto& last = snapshots_.back();
            const auto ns = static_cast<double>(last.monotonic - first.monotonic);
            if (ns >= shortest_baseline_ns && last.ticks > first.ticks) {
                ns_per_tick_ = ns / static_cast<double>(last.ticks - first.ticks);
            }
        }
        lines_.assign(snapshots_.size() + 1, {ns_per_tick_, ns_per_tick_});
        for (std::size_t i = 1; i < snapshots_.size(); ++i) draw(i, stated_rate);
    }

    /// True if ticks can be converted to nanoseconds and dates.
    [[nodiscard]] bool known() const noexcept { return !snapshots_.empty() && ns_per_tick_ > 0; }
    /// False: the snapshots contradict each other or the stated rate, so the counter jumped or
    /// began anew while the trace was taken. Times then follow the nearest snapshots.
    [[nodiscard]] bool consistent() const noexcept { return consistent_; }
    [[nodiscard]] std::span<const trace_clock_snapshot> snapshots() const noexcept {
        return snapshots_;
    }
    [[nodiscard]] double ns_per_tick() const noexcept { return ns_per_tick_; }
    /// Converts a length in ticks to ns.
    [[nodiscard]] double ns(double ticks) const noexcept { return ticks * ns_per_tick_; }
    /// How far off a time at a snapshot may be, in ns: the widest uncertainty.
    [[nodiscard]] double uncertainty_ns() const noexcept {
        std::uint64_t widest = 0;
        for (const auto& each : snapshots_) widest = (std::max)(widest, each.uncertainty);
        return ns(static_cast<double>(widest));
    }

    /// Where the clocks jumped, oldest first.
    [[nodiscard]] std::span<const timeline_jump> jumps() const noexcept { return jumps_; }
    /// The conversion of the file's ticks to raised ticks.
    [[nodiscard]] const clock_eras& eras() const noexcept { return eras_; }

    /// Ns since 1970; 0 if not known. Logarithmic in the number of snapshots. With the same `hint`
    /// for each of many times in a row, 0 at first, it is constant where two follow each other
    /// between the same snapshots. Two dates may differ by almost 2^64.
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks) const noexcept {
        std::size_t hint = 0;
        return realtime_ns(ticks, hint);
    }
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t ticks, std::size_t& hint) const noexcept {
        return at(ticks, hint, &trace_clock_snapshot::realtime, &line::realtime);
    }
    /// The same, but dates before one that was set back are moved back with it: so they never go
    /// back, and give an order among several traces.
    [[nodiscard]] std::int64_t order_ns(std::uint64_t ticks) const noexcept {
        auto ns = static_cast<std::uint64_t>(realtime_ns(ticks));
        for (const auto& jump : jumps_) {
            if (jump.step < 0 && ticks < jump.to) ns += static_cast<std::uint64_t>(jump.step);
        }
        return static_cast<std::int64_t>(ns);
    }
    /// Ns since the first snapshot, which is taken when the trace is set up; negative before.
    /// Setting the date does not change it, and it never goes back. Two differ by less than 2^63.
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks) const noexcept {
        std::size_t hint = 0;
        return relative_ns(ticks, hint);
    }
    [[nodiscard]] std::int64_t relative_ns(std::uint64_t ticks, std::size_t& hint) const noexcept {
        return std::clamp(at(ticks, hint, &trace_clock_snapshot::elapsed, &line::elapsed),
                          -most_relative_ns, most_relative_ns);
    }
    static constexpr std::int64_t most_relative_ns = (std::int64_t{1} << 62) - 1;  ///< 146 years

private:
    /// The rates between one snapshot and the next, in ns per tick.
    struct line {
        double realtime, elapsed;
        std::uint64_t most = ~std::uint64_t{0};  ///< ns, at which it stops if the clocks jump
    };

    /// Computes the line from snapshot `i` - 1 to `i`.
    void draw(std::size_t i, double ticks_per_second) {
        const auto& a = snapshots_[i - 1];
        auto& b = snapshots_[i];
        const clock_advance by = advance_of(as_read(a), as_read(b), ticks_per_second);
        const auto elapsed = static_cast<std::uint64_t>(std::round(by.elapsed));
        constexpr auto most = static_cast<std::uint64_t>(most_relative_ns);
        b.elapsed = elapsed < most - a.elapsed ? a.elapsed + elapsed : most;
        const auto ticks = static_cast<double>(std::max<std::uint64_t>(b.ticks - a.ticks, 1));
        // Modulo 2^64, then signed: the date may have been set back by a little.
        const auto date = static_cast<double>(static_cast<std::int64_t>(b.realtime - a.realtime));
        if (by.even) {
            lines_[i] = {date / ticks, by.elapsed / ticks};
            return;
        }
        lines_[i].most = b.elapsed - a.elapsed;
        const double rate = by.elapsed / ticks;
        const bool is_rate = rate > ns_per_tick_ * 0.99 && rate < ns_per_tick_ * 1.01;
        if (is_rate && !by.anew) lines_[i].realtime = lines_[i].elapsed = rate;
        jumps_.push_back({std::clamp(b.since, a.ticks, b.ticks), b.ticks, by.step, by.anew});
    }
    /// A snapshot with the file's ticks.
    [[nodiscard]] clock_snapshot as_read(const trace_clock_snapshot& from) const noexcept {
        auto out = static_cast<const clock_snapshot&>(from);
        out.ticks -= eras_.shift(from.era);
        return out;
    }

    /// The first snapshot after `ticks`. `hint`, which may be any number, is tried first.
    [[nodiscard]] std::size_t after(std::uint64_t ticks, std::size_t hint) const noexcept {
        if (hint <= snapshots_.size() && (hint == 0 || snapshots_[hint - 1].ticks <= ticks) &&
            (hint == snapshots_.size() || ticks < snapshots_[hint].ticks)) [[likely]] {
            return hint;
        }
        const auto found = std::upper_bound(
            snapshots_.begin(), snapshots_.end(), ticks,
            [](std::uint64_t value, const trace_clock_snapshot& r) { return value < r.ticks; });
        return static_cast<std::size_t>(found - snapshots_.begin());
    }
    [[nodiscard]] std::int64_t at(std::uint64_t ticks, std::size_t& hint,
                                  std::uint64_t trace_clock_snapshot::*clock,
                                  double line::*rate) const noexcept {
        if (!known()) return 0;
        hint = after(ticks, hint);
        const line& here = lines_[hint];
        // If the length of the jump is not known, dates continue at the old rate.
        const bool any = here.most == 0 && clock == &trace_clock_snapshot::realtime;
        return along(snapshots_[hint == 0 ? 0 : hint - 1], ticks, here.*rate,
                     any ? ~std::uint64_t{0} : here.most, clock);
    }

    /// Scales the difference, not the value: a double holds days of it to the nanosecond. The
    /// numbers may come from a damaged file, so the result is bounded before it becomes an integer.
    [[nodiscard]] static std::int64_t along(const trace_clock_snapshot& from, std::uint64_t ticks,
                                            double rate, std::uint64_t most,
                                            std::uint64_t trace_clock_snapshot::*clock) noexcept {
        const bool back = ticks < from.ticks;
        const double length =
            static_cast<double>(back ? from.ticks - ticks : ticks - from.ticks) * rate;
        const double bounded = std::clamp(length, -9.2e18, 9.2e18);
        const auto whole = static_cast<std::int64_t>(bounded + (bounded < 0 ? -0.5 : 0.5));
        const auto ns = (std::min)(static_cast<std::uint64_t>(whole), most);
        const auto base = static_cast<std::int64_t>(from.*clock);
        std::int64_t sum = 0;
        const bool beyond = back
                                ? __builtin_sub_overflow(base, static_cast<std::int64_t>(ns), &sum)
                                : __builtin_add_overflow(base, static_cast<std::int64_t>(ns), &sum);
        return !beyond ? sum : base < 0 ? INT64_MIN : INT64_MAX;
    }

    clock_eras eras_{};
    std::vector<trace_clock_snapshot> snapshots_{};
    std::vector<line> lines_{};  // by the snapshot at their end
    std::vector<timeline_jump> jumps_{};
    double ns_per_tick_ = 0;
    bool consistent_ = true;
};

}  // namespace trace_ring::inline v1::reduce
