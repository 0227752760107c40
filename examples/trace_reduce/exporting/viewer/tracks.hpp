// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The lines of a viewer, each for a thread of a process, and which record goes to which line; and
/// the marks, spans and samples that every timeline format shows on them (viewer/stage.hpp).
///
/// Viewers know a thread by its ids and let the spans of one line nest. So everything that would
/// break the nesting gets a separate line, with a made-up id that no thread of Linux has: records
/// made inside an open record (depth above 0), another trace of the same thread, lanes whose thread
/// is not known, the records after a clock was set back, and spans that do not nest.
///
/// A process is an entry in a trace's table of processes, not an id: two may have the same id
/// (on two machines, in two containers, or one after the other). Entries of two traces are one
/// process if id, name and begin are the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "../names.hpp"

namespace trace_reduce::exporting {

struct viewer_process {
    std::size_t number = 0;  ///< in the order in which they appeared
    std::int32_t id = 0;     ///< its pid, or a made-up one
    std::string name{};      ///< any bytes
};

/// A span that is drawn and is still open.
struct drawn_span {
    std::uint64_t number = 0;  ///< unique
    const reduce::event_type* type = nullptr;
    bool over = false;  ///< it ended before the spans inside it
};

struct viewer_track {
    std::size_t number = 0;  ///< in the order in which they appeared
    const viewer_process* process = nullptr;
    std::int32_t id = 0;     ///< the thread's, or a made-up one
    bool is_thread = false;  ///< the id is the thread's
    std::string name{};      ///< any bytes
    /// Nanoseconds of the record shown last: before 1970 they are negative.
    std::int64_t newest = (std::numeric_limits<std::int64_t>::min)();
    unsigned jumps = 0;               ///< clock jumps before it
    unsigned set_back = 0;            ///< dates set back before it
    std::vector<drawn_span> spans{};  ///< open on it, the innermost last

    /// The time to show: not before the one shown last. Within a lane ticks do not go back, but
    /// nanoseconds may by a few, when a live trace gets new clock readings.
    std::int64_t advance(std::int64_t ns) noexcept {
        newest = (std::max)(newest, ns);
        return newest;
    }
};

class viewer_tracks {
public:
    /// Adds another trace. `in` must outlive this.
    std::size_t add(const reduce::tables& in, std::string_view name) {
        sources_.push_back({&in, std::string(name), nullptr, 0});
        return sources_.size() - 1;
    }

    /// All of them so far, by their numbers, and whether there are new ones since this was asked.
    [[nodiscard]] const std::deque<viewer_process>& processes() const noexcept {
        return processes_;
    }
    [[nodiscard]] const std::deque<viewer_track>& all() const noexcept { return tracks_; }
    [[nodiscard]] bool any_new() noexcept { return std::exchange(any_new_, false); }

    /// The track of a lane. The result stays where it is.
    viewer_track& of(std::size_t source, const reduce::lane_info& lane) {
        line& its = line_of(source, lane);
        if (its.set_back != sources_[source].set_back) {
            its.set_back = sources_[source].set_back;
            (void)go_on(its);
        }
        return *its.now;
    }
    /// A line of a process for spans of this event that do not nest, without an open span.
    viewer_track& apart(const viewer_process& process, const reduce::event_type& type) {
        auto& free = apart_[{&process, &type}];
        if (free.empty()) return make(process, 0, type.name);
        viewer_track& last = *free.back();
        free.pop_back();
        return last;
    }
    /// The span of a line apart has ended: the line is free.
    void give_back(viewer_track& of, const reduce::event_type& type) {
        if (of.set_back == set_back_) apart_[{of.process, &type}].push_back(&of);
    }
    /// The track of losses and jumps without a lane.
    viewer_track& of_source(std::size_t source) {
        viewer_track*& own = sources_[source].own;
        if (own == nullptr) {
            own = &make(stranger(source), 0, "no lane");
        }
        return *own;
    }
    /// The new track of a lane after a jump of its clock, without the open spans of the old one.
    viewer_track& after_jump(std::size_t source, const reduce::lane_info& lane) {
        return go_on(line_of(source, lane));
    }
    /// The date of a source was set back: its threads continue on new tracks. `leave(track)` is
    /// called for each of the old ones.
    template <class Leave>
    void set_back(std::size_t source, Leave&& leave) {
        ++set_back_;
        ++sources_[source].set_back;
        sources_[source].own = nullptr;
        apart_.clear();
        const auto end = by_thread_.lower_bound({source + 1, 0, 0, 0, 0, 0});
        for (auto each = by_thread_.lower_bound({source, 0, 0, 0, 0, 0}); each != end; ++each) {
            leave(*each->second.now);
        }
    }

private:
    static constexpr const char* jumped = ", clock jump ";

    struct trace_source {
        const reduce::tables* in;
        std::string name;
        viewer_track* own;
        unsigned set_back = 0;  // how often
    };
    /// A thread, or another owner of tracks, of which it has one after the other.
    struct line {
        viewer_track* now = nullptr;
        unsigned set_back = 0;  // of its source, when the track began
    };
    // Source, process, thread, depth, processor + 1 if no thread is known, lane if nothing else is.
    using thread_key = std::tuple<std::size_t, std::size_t, std::uint32_t, std::uint32_t,
                                  std::uint32_t, std::uint32_t>;

    viewer_track& go_on(line& its) {
        const viewer_track& before = *its.now;
        const std::string plain = before.name.substr(0, before.name.rfind(jumped));
        viewer_track& next =
            make(*before.process, 0, plain + jumped + std::to_string(before.jumps + 1));
        next.jumps = before.jumps + 1;
        its.now = &next;
        return next;
    }
    line& line_of(std::size_t source, const reduce::lane_info& lane) {
        if (&lane == last_lane_) return *last_;
        line*& known = by_lane_[&lane];
        if (known == nullptr) known = &find(source, lane);
        last_lane_ = &lane;
        last_ = known;
        return *known;
    }
    line& find(std::size_t source, const reduce::lane_info& lane) {
        const viewer_process& process = process_of(source, lane);
        const bool of_thread = lane.listed && lane.thread != 0;
        const std::uint32_t cpu = of_thread || !lane.cpu ? 0 : *lane.cpu + 1;
        const thread_key key{source,
                             process.number,
                             of_thread ? lane.thread : 0,
                             of_thread ? lane.depth : 0,
                             cpu,
                             of_thread || cpu != 0 ? 0 : lane.number};
        line& known = by_thread_[key];
        if (known.now == nullptr) {
            std::string name = lane.name;
            if (!of_thread) {
                name = cpu != 0 ? "processor " + std::to_string(*lane.cpu)
                                : "lane " + std::to_string(lane.number);
            } else if (lane.depth != 0 || used_.count({process.id, lane.thread}) != 0) {
                if (lane.depth != 0) name += '+' + std::to_string(lane.depth);
                name += " (" + std::to_string(lane.thread) + ')';
            }
            known.set_back = sources_[source].set_back;
            known.now = &make(process, of_thread && lane.depth == 0 ? lane.thread : 0, name);
        }
        return known;
    }
    viewer_track& make(const viewer_process& process, std::uint32_t thread, std::string name) {
        viewer_track track;
        track.number = tracks_.size();
        track.process = &process;
        track.set_back = set_back_;
        track.is_thread = is_id(thread) && used_.count({process.id, thread}) == 0;
        track.id = track.is_thread ? static_cast<std::int32_t>(thread) : made_up();
        used_.insert({process.id, static_cast<std::uint32_t>(track.id)});
        track.name = std::move(name);
        tracks_.push_back(std::move(track));
        any_new_ = true;  // also of a process: its first track is this one
        return tracks_.back();
    }

    const viewer_process& process_of(std::size_t source, const reduce::lane_info& lane) {
        const auto& processes = sources_[source].in->processes();
        if (!lane.process || *lane.process >= processes.size()) return stranger(source);
        const reduce::process_info& process = processes[*lane.process];
        const process_key key{process.pid, process.start, process.name, 0};
        const viewer_process*& known = by_entry_[{source, *lane.process, key}];
        if (known == nullptr) {
            // Of entries that look the same, the first in each trace is one process, the second
            // another, and so on.
            const std::string name =
                process.name.empty() ? "process " + std::to_string(process.pid) : process.name;
            known = &named(key, alike_[{source, key}]++, process.pid, name);
        }
        return *known;
    }
    /// The process for lanes whose process is not known.
    const viewer_process& stranger(std::size_t source) {
        return named({0, 0, {}, source + 1}, 0, 0, sources_[source].name);
    }
    // Its id, begin and name; the source + 1 if the process is not known.
    using process_key = std::tuple<std::uint32_t, std::uint64_t, std::string, std::size_t>;
    /// The process with this key: number `which` of those that have it.
    const viewer_process& named(const process_key& key, std::size_t which, std::uint32_t pid,
                                std::string name) {
        const auto [at, is_new] = by_process_.emplace(std::pair(key, which), nullptr);
        if (is_new) {
            const bool own = is_id(pid) && pids_.insert(pid).second;
            if (!own && is_id(pid)) name += " (" + std::to_string(pid) + ')';
            processes_.push_back({processes_.size(),
                                  own ? static_cast<std::int32_t>(pid) : made_up(),
                                  std::move(name)});
            at->second = &processes_.back();
        }
        return *at->second;
    }

    // Linux gives ids up to 2^22; a damaged file may have any.
    static constexpr std::uint32_t most_id = 1U << 22;
    [[nodiscard]] static bool is_id(std::uint32_t id) noexcept { return id != 0 && id <= most_id; }
    [[nodiscard]] std::int32_t made_up() noexcept {
        if (last_made_up_ < (std::numeric_limits<std::int32_t>::max)()) ++last_made_up_;
        return last_made_up_;
    }

    std::vector<trace_source> sources_{};
    unsigned set_back_ = 0;
    bool any_new_ = false;
    std::deque<viewer_process> processes_{};
    std::deque<viewer_track> tracks_{};
    std::map<std::pair<process_key, std::size_t>, const viewer_process*> by_process_{};
    std::map<std::tuple<std::size_t, std::uint32_t, process_key>, const viewer_process*>
        by_entry_{};
    std::map<std::pair<std::size_t, process_key>, std::size_t> alike_{};  // entries met so far
    std::map<thread_key, line> by_thread_{};
    std::unordered_map<const reduce::lane_info*, line*> by_lane_{};
    // The lines apart that are free.
    std::map<std::pair<const viewer_process*, const reduce::event_type*>,
             std::vector<viewer_track*>>
        apart_{};
    std::set<std::uint32_t> pids_{};
    std::set<std::pair<std::int32_t, std::uint32_t>> used_{};  // process and thread ids
    std::int32_t last_made_up_ = most_id;
    const reduce::lane_info* last_lane_ = nullptr;
    line* last_ = nullptr;
};

/// How one event type is drawn.
struct viewer_event {
    std::size_t number = 0;  ///< in the order in which they appeared
    const reduce::event_type* type = nullptr;
    std::vector<bool> flows{};     ///< by field
    std::vector<bool> counters{};  ///< by field
    bool any_flow = false;
    bool any_counter = false;
};

/// The notes on a mark, besides its record's fields.
enum class note_key : std::uint8_t {
    later_ns,  ///< a sampled clock: it may have happened this much later; "unknown" if not known
    cut,       ///< names of fields that were cut
    fault,
    raw,    ///< payload in hex
    begin,  ///< "lost": of a span
    end,    ///< "lost": of a span
    id,     ///< of an event that the dictionary lacks
    cause,
    count,
    position,
    offset,
    back_ticks,
    step_ns,  ///< by how much dates jump: a text, because of the sign
};
inline constexpr std::size_t note_keys = 13;
[[nodiscard]] constexpr std::string_view to_string(note_key key) noexcept {
    // Names that a field is not likely to have.
    constexpr std::string_view names[note_keys] = {
        "trace_ring.later_ns", "trace_ring.cut",      "trace_ring.fault",  "trace_ring.raw",
        "trace_ring.begin",    "trace_ring.end",      "trace_ring.id",     "trace_ring.cause",
        "trace_ring.count",    "trace_ring.position", "trace_ring.offset", "trace_ring.back_ticks",
        "trace_ring.step_ns"};
    return names[static_cast<std::size_t>(key)];
}
/// A note: a number, or a text.
struct viewer_note {
    note_key key{};
    bool is_text = false;
    std::uint64_t number = 0;
    std::string text{};
};

enum class mark_category : std::uint8_t { event, loss, clock };
[[nodiscard]] constexpr std::string_view to_string(mark_category category) noexcept {
    constexpr std::string_view names[] = {"event", "loss", "clock"};
    return names[static_cast<std::size_t>(category)];
}

/// A mark at one moment of one track, or the begin or end of a span.
struct viewer_mark {
    const viewer_track* on = nullptr;
    std::int64_t ns = 0;
    mark_category category = mark_category::event;
    const viewer_event* event = nullptr;          ///< null: `name` says what it is
    std::string_view name{};                      ///< any bytes
    const reduce::record_view* record = nullptr;  ///< whose fields are shown; may be null
    std::span<const viewer_note> notes{};
    std::span<const std::uint64_t> flows{};  ///< the flows that it is part of
};

/// A point of a curve: one field of one event of one process.
struct viewer_sample {
    std::size_t field = 0;
    reduce::field_value value;
};

}  // namespace trace_reduce::exporting
