// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The traces that are browsed: where in time each begins and ends, and one order of all their
/// records. Only the dense index is read for that, 1/128 of a file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/file/chain.hpp>
#include <trace_ring/reduce/file/chains.hpp>
#include <trace_ring/reduce/filter.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/reduce/tables/timeline.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../../where/check.hpp"
#include "../../where/names.hpp"

namespace trace_reduce::browse {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

/// Which records are shown.
struct selection {
    std::vector<std::string> events{};                       ///< globs
    std::vector<std::uint32_t> threads{};                    ///< kernel thread ids
    std::optional<trace_reduce::where::expression> where{};  ///< what they say; nothing: anything

    [[nodiscard]] bool all() const noexcept { return events.empty() && threads.empty() && !where; }
};

/// One file.
class trace {
public:
    /// Of `limits` only times and positions count: all that is shown lies within them.
    trace(reduce::trace_file&& file, reduce::filter&& limits)
        : file_(std::move(file)),
          limits_(std::move(limits)),
          times_{writer(exporter::time_format::local), writer(exporter::time_format::relative),
                 writer(exporter::time_format::raw)} {
        look();
    }

    [[nodiscard]] reduce::trace_file& file() noexcept { return file_; }
    [[nodiscard]] const reduce::trace_file& file() const noexcept { return file_; }
    [[nodiscard]] const reduce::filter& limits() const noexcept { return limits_; }
    /// When its first and its last sub-buffers were begun or ended, in ticks, as far as is known
    /// and within the limits.
    [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
    /// Ticks that some hundred sub-buffers span; all of them if there are few.
    [[nodiscard]] std::uint64_t stretch() const noexcept { return stretch_; }
    /// The losses, as far as the file's tables and the first sub-buffer of each lane count them.
    [[nodiscard]] const trace_ring::loss_counts& lost() const noexcept { return lost_; }
    [[nodiscard]] exporter::text_writer& writer_of(exporter::time_format format) noexcept {
        return times_[static_cast<std::size_t>(format)];
    }

    /// Again, of a live file.
    void look() {
        file_.refresh();
        const reduce::tables& in = file_.about();
        auto found = reduce::chain_scan(in).scan(reduce::look_at::index,
                                                 [](std::uint32_t, auto) { return true; });
        std::uint64_t count = 0;
        first_ = std::numeric_limits<std::uint64_t>::max();
        last_ = 0;
        lost_ = in.ring().folded_lost;
        lost_.add(trace_ring::loss_cause::refused, in.ring().refused_without_lane);
        std::uint64_t kept_of_others = 0;  // of lanes whose entries were given to others
        const bool drained = in.ring().folded_undrained != in.ring().folded_written;
        for (auto& chain : found.chains) {
            for (const auto& link : chain.links) {
                first_ = std::min(first_, link.base_time);
                last_ = std::max(last_, link.last_time != unknown ? link.last_time : 0);
                last_ = std::max(last_, link.base_time);
            }
            count += chain.links.size();
            if (chain.links.empty()) continue;
            const reduce::chain_scan look(in);
            const auto* const lane = in.find_lane(chain.lane);
            auto& end = chain.links.back();
            auto& begin = chain.links.front();
            if (lane == nullptr || !lane->listed) {
                // If sessions consumed records of such lanes, the first of each may be among them.
                if (look.complete(chain.lane, end)) kept_of_others += end.first + end.records;
                if (drained && look.complete(chain.lane, begin)) kept_of_others -= begin.first;
            } else if (look.complete(chain.lane, begin) && begin.first > lane->drained) {
                lost_.add(trace_ring::loss_cause::overwritten, begin.first - lane->drained);
            }
        }
        if (in.ring().folded_undrained > kept_of_others) {
            lost_.add(trace_ring::loss_cause::overwritten,
                      in.ring().folded_undrained - kept_of_others);
        }
        for (const auto& lane : file_.lanes()) {
            if (lane.listed) lost_ += lane.lost;
        }
        first_ = std::min(first_, last_);
        // Of sub-buffers that are open only the begin is known: the newest of their records.
        reduce::filter newest;
        newest.from = last_;
        newest.to = unknown - 1;
        if (count != 0) {
            auto end = file_.backward(newest);
            for (int tries = 0; tries < 100; ++tries) {  // some losses come first
                const reduce::item* const at = end.next();
                if (at == nullptr) break;
                if (!std::holds_alternative<reduce::record_view>(*at)) continue;
                last_ = std::max(last_, reduce::time_of(*at));
                break;
            }
        }
        constexpr std::uint64_t few = 2048;
        stretch_ = count <= few ? unknown
                                : std::max<std::uint64_t>((last_ - first_) / count * (few / 4), 1);
        if (limits_.from <= limits_.to) {
            first_ = std::clamp(first_, limits_.from, limits_.to);
            last_ = std::clamp(last_, limits_.from, limits_.to);
        }
    }

private:
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

    [[nodiscard]] exporter::text_writer writer(exporter::time_format format) const {
        return exporter::text_writer(file_.time(), {.time = format});
    }

    reduce::trace_file file_;
    reduce::filter limits_;
    exporter::text_writer times_[3];
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t stretch_ = unknown;
    trace_ring::loss_counts lost_;
};

/// All of them. A key orders the records of all: of one file its ticks, of several realtime.
class traces {
public:
    void add(reduce::trace_file&& file, reduce::filter limits = {}) {
        all_.emplace_back(std::move(file), std::move(limits));
    }

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
    [[nodiscard]] const std::string& name(std::size_t i) const noexcept {
        return all_[i].file().name();
    }
    [[nodiscard]] trace& operator[](std::size_t i) noexcept { return all_[i]; }
    [[nodiscard]] const trace& operator[](std::size_t i) const noexcept { return all_[i]; }

    [[nodiscard]] std::uint64_t key_of(std::size_t i, std::uint64_t ticks) const noexcept {
        if (all_.size() == 1) return ticks;
        return static_cast<std::uint64_t>(all_[i].file().time().order_ns(ticks)) ^ sign;
    }
    /// The first ticks in trace `i` whose key is not before `key`; the last if none is.
    [[nodiscard]] std::uint64_t ticks_from(std::size_t i, std::uint64_t key) const noexcept {
        if (all_.size() == 1) return key;
        return first_at(all_[i].file().time(),
                        [&](std::uint64_t at) { return key_of(i, at) >= key; });
    }
    /// The first ticks of a clock at which `reached`, which stays true from then on. Looks no
    /// further than a hundred years after the clock was read.
    template <class Reached>
    [[nodiscard]] static std::uint64_t first_at(const reduce::timeline& time,
                                                const Reached& reached) {
        constexpr double most_ns = 3.2e18;
        std::uint64_t low = 0;
        std::uint64_t high = std::numeric_limits<std::uint64_t>::max();
        if (time.known()) {
            const double ticks = most_ns / time.ns_per_tick();
            const std::uint64_t base = time.snapshots().back().ticks;
            if (ticks < static_cast<double>(high - base)) {
                high = base + static_cast<std::uint64_t>(ticks);
            }
        }
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            reached(middle) ? high = middle : low = middle + 1;
        }
        return low;
    }
    [[nodiscard]] std::uint64_t first_key() const noexcept {
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
        for (std::size_t i = 0; i < size(); ++i)
            first = std::min(first, key_of(i, all_[i].first()));
        return first;
    }
    [[nodiscard]] std::uint64_t last_key() const noexcept {
        std::uint64_t last = 0;
        for (std::size_t i = 0; i < size(); ++i) last = std::max(last, key_of(i, all_[i].last()));
        return last;
    }
    void look() {
        for (auto& each : all_) each.look();
    }
    /// What is wrong with an expression for all of them together; nothing if nothing is.
    [[nodiscard]] std::optional<trace_reduce::where::mistake> find_mistake(
        const trace_reduce::where::expression& what) const {
        std::vector<const reduce::tables*> each_one;
        for (const auto& each : all_) each_one.push_back(&each.file().about());
        return trace_reduce::where::find_mistake(what, each_one);
    }
    [[nodiscard]] bool live() const noexcept {
        return std::any_of(all_.begin(), all_.end(),
                           [](const trace& each) { return each.file().live(); });
    }
    [[nodiscard]] trace_ring::loss_counts lost() const noexcept {
        trace_ring::loss_counts sum;
        for (const auto& each : all_) sum += each.lost();
        return sum;
    }

private:
    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    std::deque<trace> all_;
};

}  // namespace trace_reduce::browse
