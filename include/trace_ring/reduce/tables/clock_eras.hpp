// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Puts the ticks of several eras of a trace's clock into one order. The clock begins anew when the
/// machine starts again, and may go back when a virtual machine is moved: then the same ticks mean
/// several moments. A reader raises the ticks of each era by a multiple of 2^32, so that they
/// follow those of the era before and a later time is always greater.
/// @code
///   the file's ticks    ..100 ..... 180 | 20 ..... 90 | 30 ....     | a reading has fewer ticks
///   era                         0             1           2           than the one before
///   as they are read    ..100 ..... 180 | 220 ... 290 | 330 ...
/// The lane, or the position of its sub-buffer, tells the era of a time: a lane entered, or a
/// sub-buffer claimed, after the first reading of an era does not belong to the one before.
/// entered or claimed after the first reading of an era is not of the one before.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <trace_ring/clock_snapshot.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::reduce {

/// Three clocks at one moment.
struct clock_triple {
    std::uint64_t ticks = 0;
    std::uint64_t monotonic = 0;  ///< ns
    std::uint64_t realtime = 0;   ///< ns since 1970
    std::uint64_t width = 0;      ///< ticks within which all three were read: the uncertainty
    std::uint32_t process = 0;    ///< slot of the process that read them
    std::uint32_t lanes = 0;      ///< lanes entered before the reading, plus one; 0: not known
    position cursor = 0;          ///< the last position claimed before the reading
    std::uint64_t number = 0;     ///< in the order in which they were taken; 0: not known
    std::uint64_t since = 0;      ///< ticks of the one before, if the clocks jumped between the two
    std::uint32_t era = 0;        ///< of its ticks, raised; set by a timeline, as is
    std::uint64_t elapsed = 0;    ///< ns since its first reading

    [[nodiscard]] constexpr clock_snapshot clocks() const noexcept {
        return {ticks, monotonic, realtime, width / 2 + width % 2};
    }
};

class clock_eras {
public:
    clock_eras() = default;
    /// Sorts the readings as they were taken, removes doubles, and raises their ticks.
    clock_eras(std::vector<clock_triple>& readings, std::uint64_t ticks_per_second) {
        const auto by_number = [](const clock_triple& a, const clock_triple& b) {
            return a.number != b.number ? a.number < b.number : a.since > b.since;
        };
        std::stable_sort(readings.begin(), readings.end(), by_number);
        const auto twice = [](const clock_triple& a, const clock_triple& b) {
            return a.number != 0 && a.number == b.number;
        };
        readings.erase(std::unique(readings.begin(), readings.end(), twice), readings.end());
        const auto rate = static_cast<double>(ticks_per_second);
        clock_triple last;   // with the file's ticks
        clock_triple first;  // of the era, with raised ticks
        for (clock_triple& each : readings) {
            const clock_triple next = each;
            if (&each == readings.data()) {
                first = each;
            } else if (each.lanes != 0 && advance_of(last.clocks(), next.clocks(), rate).anew &&
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
        std::stable_sort(
            readings.begin(), readings.end(),
            [](const clock_triple& a, const clock_triple& b) { return a.ticks < b.ticks; });
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
    void begin(const clock_triple& first, const clock_triple& last, const clock_triple& next,
               double rate) {
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

}  // namespace trace_ring::inline v1::reduce
