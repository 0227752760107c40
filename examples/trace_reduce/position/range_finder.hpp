// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Turns a `when` into a place in a trace: the first tick of its clock that is not before it. So of
/// ranges [from, to) that follow one another each record is in one, and a record is in a range if
/// the time that is shown for it is.
/// @code
///   reduce::filter what;
///   trace_reduce::when from, to;
///   from.what = to.what = trace_reduce::when::form::since_begin;
///   from.ns = 30'000'000'000;
///   to.ns = 90'000'000'000;
///   if (trace_reduce::range_finder(trace).limit(what, from, to)) {
///       read(trace.forward(what));
///   }
/// @endcode
/// A record whose time is an interval counts by its beginning. If the system's clock was set back
/// while the trace was taken, some dates came twice. A range between dates then has several parts
/// (`filter::times`), and a single date means the first of its places. In a trace whose clock was
/// never read together with the system's, only shares and positions can be found.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "when.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

/// When a trace begins and ends, in ticks of its clock.
struct time_extent {
    bool empty = true;        ///< the trace has no sub-buffer
    std::uint64_t first = 0;  ///< when its oldest sub-buffer was opened
    std::uint64_t last = 0;   ///< of the last record
};

/// By the tables as they were read last: reads the index, and the sub-buffers that may hold the
/// last record. Linear in the sub-buffers, plus a few copies of them.
[[nodiscard]] inline time_extent extent_of(const reduce::tables& in) {
    struct end {
        std::uint64_t latest = 0;
        std::uint64_t slot = 0;
        trace_ring::position pos = trace_ring::no_position;
        std::uint8_t era = 0;
    };
    const auto& plan = in.plan();
    const auto& eras = in.time().eras();
    time_extent out;
    std::vector<end> ends;
    // Latest possible end first; an open sub-buffer may end at any later time.
    const auto later = [](const end& a, const end& b) { return a.latest > b.latest; };
    const std::uint64_t count = (std::min)(in.present(), plan.sub_buffer_limit);
    constexpr std::uint64_t most_rows = 8192;
    constexpr std::size_t most_ends = 1024;
    reduce::index_rows rows;
    for (std::uint64_t slot = 0; slot < count; ++slot) {
        const auto i = static_cast<std::size_t>(slot % most_rows);
        if (i == 0) {
            rows.read(in, slot, static_cast<std::size_t>((std::min)(most_rows, count - slot)));
        }
        reduce::index_row row;
        if (!rows.get(i, row) || row.pos == trace_ring::no_position || row.lane == 0 ||
            trace_ring::slot_of(row.pos, plan.sub_buffer_limit) != slot) {
            continue;
        }
        const std::uint8_t era = eras.of(row.lane, row.pos, row.first_time);
        const std::uint64_t first = row.first_time + eras.shift(era);
        out.first = out.empty ? first : (std::min)(out.first, first);
        out.empty = false;
        const std::uint64_t last =
            row.last_time + eras.shift(eras.next(era, row.first_time, row.last_time));
        ends.push_back({row.last_time != 0 ? last : ~std::uint64_t{0}, slot, row.pos, era});
        if (ends.size() == 2 * most_ends) {
            std::nth_element(ends.begin(), ends.begin() + most_ends, ends.end(), later);
            ends.resize(most_ends);
        }
    }
    if (out.empty) return out;
    std::sort(ends.begin(), ends.end(), later);
    std::vector<std::uint64_t> words(plan.sub_buffer_bytes / 8);
    for (const end& each : ends) {
        if (each.latest <= out.last) break;
        trace_ring::sub_buffer_copy head;
        if (in.bytes().copy(plan.bytes_for(each.slot), words, head) !=
                trace_ring::copy_result::copied ||
            head.state.pos != each.pos) {
            continue;
        }
        std::size_t era = each.era;
        std::uint64_t before = head.base_time;
        (void)trace_ring::walk_records(words, head,
                                       [&](std::size_t, std::uint64_t time, std::uint32_t) {
                                           era = eras.next(era, std::exchange(before, time), time);
                                           out.last = (std::max)(out.last, time + eras.shift(era));
                                       });
    }
    out.last = (std::max)(out.last, out.first);
    return out;
}

/// Begin and end of traces that are read together, in ns of a clock that all of them share.
struct common_span {
    std::int64_t begin = 0;  ///< when the first trace was set up
    std::int64_t first = 0;  ///< of the first record
    std::int64_t last = 0;   ///< of the last record
};

class range_finder {
public:
    /// Reads where the trace begins and ends now. `file` must outlive the finder.
    explicit range_finder(const reduce::trace_file& file)
        : file_(file), in_(file.about()), extent_(extent_of(in_)) {}

    [[nodiscard]] const time_extent& whole() const noexcept { return extent_; }

    /// The span of this trace, by the system's clock.
    [[nodiscard]] common_span span() const noexcept {
        const auto& time = in_.time();
        const auto at = [&](std::uint64_t ticks) { return time.realtime_ns(ticks); };
        const std::int64_t begin =
            time.snapshots().empty() ? at(extent_.first) : at(time.snapshots().front().ticks);
        return {begin, at(extent_.first), at(extent_.last)};
    }

    /// A place in the trace: everything from it on.
    struct place {
        std::uint64_t ticks = 0;                     ///< the first tick that is not before it
        std::optional<reduce::position_range> of{};  ///< if set, only these positions
        std::optional<std::int64_t> date{};          ///< ns since 1970, if it was given as a date
    };
    /// Finds a place; nothing if the trace does not have it, or if its clock is not known.
    /// `shared`: the span of several traces read together, to which times and shares then refer.
    [[nodiscard]] std::optional<place> find(const when& what,
                                            const std::optional<common_span>& shared = {}) const {
        using form = when::form;
        if (what.what == form::record) return of_record(what);
        if (what.what == form::per_cent && !shared) return place{of_share(what)};
        const auto& time = in_.time();
        if (!time.known()) return std::nullopt;
        const common_span all = shared.value_or(span());
        // With several traces: this long after their shared begin, or before their shared end, even
        // if the date was set in between.
        const auto after_begin = [&](std::int64_t date) {
            if (time.jumps().empty()) return place{first_date(date)};
            return place{relative(impl::minus(date, span().begin))};
        };
        switch (what.what) {
            case form::date:
            case form::time_of_day: {
                const auto date = realtime_of(what, all.begin);
                if (!date) return std::nullopt;
                return place{first_date(*date), std::nullopt, *date};
            }
            case form::since_begin:
                if (shared) return after_begin(impl::plus(all.begin, what.ns));
                return place{relative(what.ns)};
            case form::before_end: {
                if (what.ns == 0 && !shared) return place{after_all()};
                std::int64_t before = what.ns;
                if (shared) {
                    const std::int64_t date =
                        impl::minus(impl::plus(all.last, before == 0), before);
                    if (time.jumps().empty()) return place{first_date(date)};
                    before = impl::minus(span().last, date);
                }
                return place{relative(impl::minus(time.relative_ns(extent_.last), before))};
            }
            default:
                break;
        }
        if (what.share == 0) return place{};
        const double part = static_cast<double>(what.share) / static_cast<double>(when::whole);
        const auto length = static_cast<double>(impl::minus(all.last, all.first));
        return after_begin(what.share == when::whole
                               ? impl::plus(all.last, 1)
                               : impl::plus(all.first, static_cast<std::int64_t>(length * part)));
    }

    /// Adds [from, to) to the filter; false if one of them cannot be found. For an empty range
    /// `from` exceeds `to` in the filter.
    [[nodiscard]] bool limit(reduce::filter& what, const std::optional<when>& from,
                             const std::optional<when>& to,
                             const std::optional<common_span>& shared = {}) const {
        std::optional<std::int64_t> first_date;
        std::optional<std::int64_t> end_date;
        if (from) {
            const auto found = find(*from, shared);
            if (!found) return false;
            if (found->of) what.positions.push_back(*found->of);
            if (went_back() && found->date) {
                first_date = found->date;
            } else {
                what.from = (std::max)(what.from, found->ticks);
            }
        }
        if (to) {
            auto found = find(*to, shared);
            if (!found) return false;
            if (found->of) {
                found->of->to = found->of->from;
                found->of->from = 0;
                what.positions.push_back(*found->of);
            }
            // With a record as the end, earlier ones of its lane at the same time are included.
            const bool before = to->what != when::form::record;
            if (went_back() && found->date) {
                end_date = found->date;
            } else if (before && found->ticks == 0) {  // before everything: an empty range
                want_nothing(what);
            } else if (before || to->lane != 0) {
                what.to = (std::min)(what.to, found->ticks - (before ? 1 : 0));
            }
        }
        if (first_date || end_date) {
            what.times = parts(first_date, end_date);
            if (what.times.empty()) {
                want_nothing(what);
            } else {
                what.from = (std::max)(what.from, what.times.front().from);
                what.to = (std::min)(what.to, what.times.back().to);
            }
        }
        return true;
    }

    /// True if the trace has nothing in the filter's range of time.
    [[nodiscard]] bool outside(const reduce::filter& what) const noexcept {
        return extent_.empty || what.from > what.to || what.from > extent_.last ||
               what.to < extent_.first;
    }

private:
    [[nodiscard]] std::uint64_t after_all() const noexcept {
        return extent_.last == ~std::uint64_t{0} ? extent_.last : extent_.last + 1;
    }
    [[nodiscard]] std::uint64_t relative(std::int64_t ns) const {
        return first_at(ns, [this](std::uint64_t t) { return in_.time().relative_ns(t); });
    }
    [[nodiscard]] std::uint64_t first_date(std::int64_t ns, const reduce::tick_range& part = {
                                                                0, after_ever - 1}) const {
        return first_at(
            ns, [this](std::uint64_t t) { return in_.time().realtime_ns(t); }, part);
    }
    static void want_nothing(reduce::filter& what) noexcept {
        what.from = std::max<std::uint64_t>(what.from, 1);
        what.to = 0;
    }

    /// Whether some date came twice.
    [[nodiscard]] bool went_back() const noexcept {
        const auto jumps = in_.time().jumps();
        return std::any_of(jumps.begin(), jumps.end(), [](const auto& j) { return j.step < 0; });
    }
    /// The ticks whose dates are in [from, to), one range for each stretch in which dates ascend.
    [[nodiscard]] std::vector<reduce::tick_range> parts(
        const std::optional<std::int64_t>& from, const std::optional<std::int64_t>& to) const {
        std::vector<reduce::tick_range> out;
        std::uint64_t begin = 0;
        const auto add = [&](std::uint64_t end) {
            const reduce::tick_range part{std::exchange(begin, end + 1), end};
            const std::uint64_t first = from ? first_date(*from, part) : part.from;
            if (to) {
                const std::uint64_t after = first_date(*to, part);
                if (after > first) out.push_back({first, after - 1});
            } else if (first <= end) {
                out.push_back({first, end});
            }
        };
        for (const auto& jump : in_.time().jumps()) {
            if (jump.step < 0 && jump.to > begin) add(jump.to - 1);
        }
        add(after_ever - 1);
        return out;
    }

    static constexpr std::uint64_t after_ever = ~std::uint64_t{0};

    /// The first tick of a part whose time by `clock` is `ns` or later: the part's begin if its
    /// whole recorded time is later, the tick after its end if none is. Beyond the end of the trace
    /// it searches in steps that double.
    template <class Clock>
    [[nodiscard]] std::uint64_t first_at(std::int64_t ns, const Clock& clock,
                                         const reduce::tick_range& part = {0,
                                                                           after_ever - 1}) const {
        std::uint64_t low = (std::max)(extent_.first, part.from);  // before `ns`
        if (low > part.to || clock(low) >= ns) return part.from;
        std::uint64_t step = std::max<std::uint64_t>(extent_.last - extent_.first, 1);
        std::uint64_t high = low;
        do {
            if (high == part.to) return part.to + 1;
            if (high > (~std::uint64_t{0} >> 1) - step) return part.to + 1;
            low = high;
            high = (std::min)(high + step, part.to);
            step *= 2;
        } while (clock(high) < ns);
        while (high - low > 1) {
            const std::uint64_t middle = low + (high - low) / 2;
            clock(middle) < ns ? low = middle : high = middle;
        }
        return high;
    }

    [[nodiscard]] std::uint64_t of_share(const when& what) const noexcept {
        if (what.share == 0) return 0;
        if (what.share == when::whole) return after_all();
        const double part = static_cast<double>(what.share) / static_cast<double>(when::whole);
        const auto length = static_cast<double>(extent_.last - extent_.first);
        const auto ticks = static_cast<std::uint64_t>(length * part);  // less than 2^64: part < 1
        return extent_.first + (std::min)(ticks, extent_.last - extent_.first);
    }

    [[nodiscard]] std::optional<place> of_record(const when& what) const {
        place found;
        found.of = reduce::position_range{what.lane, what.at};
        if (what.lane == 0) return found;
        // If the record is lost, the time of the next one that is there.
        reduce::filter one;
        one.lanes = {what.lane};
        one.positions = {*found.of};
        reduce::cursor from = file_.forward(one);
        while (const reduce::item* next = from.next()) {
            if (const auto* record = std::get_if<reduce::record_view>(next)) {
                found.ticks = record->time();
                return found;
            }
        }
        found.ticks = after_all();
        return found;
    }

    const reduce::trace_file& file_;
    const reduce::tables& in_;
    time_extent extent_;
};

}  // namespace trace_reduce
