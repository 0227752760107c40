// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A whole trace as its reader reports it, lane by lane: the records, and the losses with place and
/// cause. For tests of which lanes are used, and of full traces.

#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <ostream>
#include <span>
#include <variant>
#include <vector>

#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/trace_reader.hpp>

namespace trace_ring::inline v1 {

inline std::ostream& operator<<(std::ostream& out, const loss& gap) {
    return out << gap.count << ' ' << to_string(gap.cause) << " at " << gap.at;
}

}  // namespace trace_ring::inline v1

namespace test {

/// A record says who wrote it and how many it wrote before: with its header 24 bytes.
struct numbered : trace_ring::event<"numbered", trace_ring::field<"who", std::uint64_t>,
                                    trace_ring::field<"n", std::uint64_t>> {};
/// So many of them fill the smallest sub-buffer, with or without a time record among them.
inline constexpr std::uint64_t fit_in_512 = (512 - 64 - 16) / 24;
static_assert(fit_in_512 == 18);

template <class Kind>
bool put(trace_ring::basic_recorder<Kind>& to, std::uint64_t who, std::uint64_t n) {
    return to.template record<numbered>(who, n);
}

/// The numbers of so many records of one writer.
[[nodiscard]] inline std::vector<std::uint64_t> first(std::uint64_t count) {
    std::vector<std::uint64_t> out(static_cast<std::size_t>(count));
    std::iota(out.begin(), out.end(), std::uint64_t{0});
    return out;
}

struct lane_account {
    std::uint32_t pid = 0, thread = 0;
    std::vector<std::uint64_t> numbers;  ///< of its records, in order
    std::uint64_t who = 0;               ///< who wrote the last of them
    std::vector<trace_ring::loss> gaps;  ///< in order, between the records
    trace_ring::loss_counts lost;

    [[nodiscard]] std::uint64_t total() const { return numbers.size() + lost.total(); }
};

struct account {
    std::map<std::uint32_t, lane_account> lanes;
    std::map<std::uint64_t, std::vector<std::uint64_t>> by_who;
    trace_ring::loss_counts without_lane;
    std::uint64_t strange = 0;  ///< records of other events, damages, times that went back

    [[nodiscard]] std::uint64_t read() const {
        std::uint64_t sum = 0;
        for (const auto& [number, lane] : lanes) sum += lane.numbers.size();
        return sum;
    }
    [[nodiscard]] trace_ring::loss_counts lost() const {
        trace_ring::loss_counts sum = without_lane;
        for (const auto& [number, lane] : lanes) sum += lane.lost;
        return sum;
    }
    /// The numbers of one writer, whichever its lanes, by time.
    [[nodiscard]] std::vector<std::uint64_t> of(std::uint64_t who) const {
        const auto found = by_who.find(who);
        return found == by_who.end() ? std::vector<std::uint64_t>{} : found->second;
    }
};

[[nodiscard]] inline account account_of(const trace_ring::reduce::trace_file& trace) {
    namespace reduce = trace_ring::reduce;
    account out;
    out.strange += trace.damages().size();
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const record = std::get_if<reduce::record_view>(item)) {
            auto& lane = out.lanes[record->lane().number];
            lane.pid = record->lane().pid;
            lane.thread = record->lane().thread;
            if (record->name() != "numbered") {
                ++out.strange;
                continue;
            }
            lane.who = record->field(0).u64();
            lane.numbers.push_back(record->field(1).u64());
            out.by_who[lane.who].push_back(lane.numbers.back());
        } else if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
            out.strange += loss->cause == trace_ring::loss_cause::damaged ? 1 : 0;
            if (loss->lane == nullptr) {
                out.without_lane.add(loss->cause, loss->count);
                continue;
            }
            auto& lane = out.lanes[loss->lane->number];
            lane.pid = loss->lane->pid;
            lane.thread = loss->lane->thread;
            lane.lost.add(loss->cause, loss->count);
            lane.gaps.push_back({loss->at, loss->count, loss->cause});
        } else {
            ++out.strange;
        }
    }
    return out;
}
template <class Kind>
[[nodiscard]] account account_of(const trace_ring::basic_recorder<Kind>& recorder) {
    const auto [data, size] = recorder.bytes();
    return account_of(trace_ring::reduce::trace_file::from(std::span(data, size)));
}

/// A trace's memory in the hands of a test that plays another part: of a reader that takes what it
/// has read out of the ring, or of a writer that dies half-way.
class hands_on {
public:
    template <class Kind>
    explicit hands_on(const trace_ring::basic_recorder<Kind>& recorder)
        : base_(const_cast<std::byte*>(recorder.bytes().first)) {
        if (trace_ring::layout::check_layout(base_, recorder.bytes().second, plan_)) {
            fault("not a trace");
        }
    }
    [[nodiscard]] const trace_ring::layout::plan& plan() const { return plan_; }
    [[nodiscard]] trace_ring::layout::ring_state& ring() const {
        return *reinterpret_cast<trace_ring::layout::ring_state*>(base_ + plan_.ring);
    }
    [[nodiscard]] trace_ring::sub_buffer_header& sub_buffer(std::uint64_t slot) const {
        return *reinterpret_cast<trace_ring::sub_buffer_header*>(base_ + plan_.sub_buffers +
                                                                 slot * plan_.sub_buffer_bytes);
    }
    [[nodiscard]] trace_ring::stamped state(std::uint64_t slot) const {
        return trace_ring::stamped::from(sub_buffer(slot).state.load(acquire));
    }
    /// How many sub-buffers are in a state.
    [[nodiscard]] std::uint64_t count(trace_ring::sub_buffer_state wanted) const {
        std::uint64_t found = 0;
        for (std::uint64_t slot = 0; slot < ring().capacity.load(acquire); ++slot) {
            found += state(slot).state == static_cast<unsigned>(wanted) ? 1 : 0;
        }
        return found;
    }
    /// Gives a closed sub-buffer back, as one who has read it does; false if it is not closed.
    bool free(std::uint64_t slot) const {
        using trace_ring::sub_buffer_state;
        auto was = state(slot);
        if (was.state != static_cast<unsigned>(sub_buffer_state::closed)) return false;
        was.state = static_cast<unsigned>(sub_buffer_state::free);
        sub_buffer(slot).state.store(was.word(), trace_ring::release);
        return true;
    }

private:
    std::byte* base_;
    trace_ring::layout::plan plan_;
};

}  // namespace test
