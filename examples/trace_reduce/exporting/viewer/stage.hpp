// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Turns items into what viewers of timelines draw: tracks with spans that nest, curves, arrows and
/// marks. It is shared by the writers of such formats, which only write the result.
///
/// - Times are dates in nanoseconds, as all formats have them. Without a clock: ticks.
/// - reduce/span/pairs.hpp says which end belongs to which begin. A span that does not nest with
///   others of its thread, or ends in another, gets a separate line, which is free again when it
///   has ended. Such spans are found before reading, but not in a trace that is followed: there the
///   end becomes a mark that says so.
/// - A span whose begin is lost is a mark at its end. A span whose end is lost ends with the span
///   around it or at the next loss, and says so; if there is neither it stays open, as spans do
///   that were open at the end. Viewers draw these to the end of the trace.
/// - Losses are marks on the track where they happened, at the time of the record before them:
///   their own is not known. Those before the very first record are at its time.
/// - When a lane's time goes back, the spans on its track end, and it continues on a new one. When
///   the date was set back, all do. Where dates jump there is a mark without a lane.
/// - A record of a counter event is drawn as a curve for each number in it. If it has more than
///   that (text, NaN, flows, a time that is a bound, a number beyond 2^63), it is also a mark.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/span/pairs.hpp>

#include "../names.hpp"
#include "roles.hpp"
#include "tracks.hpp"

namespace trace_reduce::exporting {

/// `Writer` must have these functions, each with a text_buffer& as its first argument:
///   process(const viewer_process&), track(const viewer_track&)   before the first mark there
///   instant(const viewer_mark&), begin(const viewer_mark&), end(const viewer_mark&)
///   counters(const viewer_mark&, std::span<const viewer_sample>) of the mark's event, not empty
template <class Writer>
class viewer_stage {
public:
    viewer_stage(Writer& to, field_roles roles) : to_(to), roles_(std::move(roles)) {}
    viewer_stage(const viewer_stage&) = delete;
    viewer_stage& operator=(const viewer_stage&) = delete;

    std::size_t add(const reduce::tables& in, std::string_view name) {
        sources_.push_back({&in, {}, reduce::begun_elsewhere(in), {}});
        return tracks_.add(in, name);
    }

    void append(text_buffer& out, std::size_t from, const reduce::item& what) {
        out_ = &out;
        from_ = from;
        const auto* const loss = std::get_if<reduce::loss_item>(&what);
        if (loss != nullptr && !origin_) {
            early_.push_back({from, *loss, std::string(loss->what)});
            return;
        }
        const std::int64_t ns = loss != nullptr ? 0 : ns_of(reduce::time_of(what));
        if (!origin_) start(ns);
        if (const auto* record = std::get_if<reduce::record_view>(&what)) {
            append_record(*record, ns);
        } else if (loss != nullptr) {
            append_loss(*loss);
        } else {
            append_jump(std::get<reduce::clock_jump>(what), ns);
        }
    }
    /// Call it after the last item. Afterwards `origin()` has a value.
    void end(text_buffer& out) {
        out_ = &out;
        if (!origin_) start(0);
    }

    /// The time of the first record, before which nothing is drawn.
    [[nodiscard]] const std::optional<std::int64_t>& origin() const noexcept { return origin_; }
    /// Whether the times of source `from` are dates.
    [[nodiscard]] bool dated(std::size_t from) const noexcept {
        return sources_[from].in->time().known();
    }
    /// The first reading of the clock of source `from`, which must be `dated`.
    [[nodiscard]] const reduce::trace_clock_snapshot& first_reading(
        std::size_t from) const noexcept {
        return sources_[from].in->time().snapshots().front();
    }
    [[nodiscard]] std::size_t sources() const noexcept { return sources_.size(); }

private:
    /// Where a span that has begun is drawn.
    struct place {
        viewer_track* on = nullptr;
        std::size_t depth = 0;
        std::uint64_t number = 0;
        bool apart = false;

        [[nodiscard]] bool is_there() const noexcept {
            return depth < on->spans.size() && on->spans[depth].number == number;
        }
    };
    struct source {
        const reduce::tables* in;
        std::vector<const viewer_event*> events;  // by number of their type
        reduce::span_places elsewhere;
        reduce::span_pairs<place> open;
    };
    struct early_loss {
        std::size_t from;
        reduce::loss_item loss;
        std::string what;
    };

    // Negative before 1970.
    [[nodiscard]] std::int64_t ns_of(std::uint64_t ticks) {
        const auto& time = sources_[from_].in->time();
        if (time.known()) return time.realtime_ns(ticks);
        return static_cast<std::int64_t>((std::min)(ticks, most_ns));
    }

    void start(std::int64_t ns) {
        origin_ = ns;
        const std::size_t from = from_;
        for (auto& each : early_) {
            each.loss.what = each.what;
            from_ = each.from;
            append_loss(each.loss);
        }
        early_ = {};
        from_ = from;
    }

    /// The track, after the writer was called for it if it, or its process, is new.
    [[nodiscard]] viewer_track& told(viewer_track& track) {
        if (!tracks_.any_new()) return track;
        for (; processes_told_ < tracks_.processes().size(); ++processes_told_) {
            to_.process(*out_, tracks_.processes()[processes_told_]);
        }
        for (; tracks_told_ < tracks_.all().size(); ++tracks_told_) {
            to_.track(*out_, tracks_.all()[tracks_told_]);
        }
        return track;
    }

    void append_record(const reduce::record_view& record, std::int64_t time) {
        viewer_track& track = told(tracks_.of(from_, record.lane()));
        viewer_mark mark{.on = &track, .ns = track.advance(time), .record = &record};
        notes_.clear();
        flows_.clear();
        bool drawn = false;  // all of it, as curves
        if (record.known()) {
            mark.event = &event_of(record.type());
        } else {
            unknown_ = "event#" + std::to_string(record.id());
            mark.name = unknown_;
            note(note_key::id, record.id());
        }
        if (!record.fault().empty()) {
            raw_.clear();
            impl::append_hex(raw_, record.payload());
            note(note_key::fault, record.fault());
            note(note_key::raw, raw_.view());
        } else {
            if (record.lacks_results()) note(note_key::end, "no results");
            if (record.interval()) note_interval(record, time);
            if (record.cut()) note_cut(record);
            if (mark.event->any_flow) find_flows(*mark.event, record);
            if (mark.event->any_counter) drawn = draw(mark, record);
        }
        mark.notes = notes_;
        mark.flows = flows_;
        if (mark.event == nullptr || (!record.begins() && !record.ends())) {
            if (!drawn || mark.event->type->kind != event_kind::counter) to_.instant(*out_, mark);
            return;
        }
        record.begins() ? begin_span(mark, record, track) : end_span(mark, record);
    }

    void begin_span(viewer_mark& mark, const reduce::record_view& record, viewer_track& track) {
        source& its = sources_[from_];
        const bool apart = its.elsewhere.count({record.lane().number, record.position()}) != 0;
        viewer_track* const on =
            apart ? &told(tracks_.apart(*track.process, record.type())) : &track;
        mark.on = on;
        mark.ns = on->advance(mark.ns);
        const place where{on, on->spans.size(), ++last_span_, apart};
        on->spans.push_back({where.number, &record.type()});
        its.open.begin(record, where, [&](const auto& of) { lose_end(of.kept); });
        to_.begin(*out_, mark);
    }
    void end_span(viewer_mark& mark, const reduce::record_view& record) {
        // Inner spans that have lost their ends are closed with this one.
        const auto found = sources_[from_].open.end(record, [](const auto&) {});
        const bool drawn = found.begun && found.begun->kept.is_there();
        if (!drawn) {
            note(note_key::begin, found.not_nested || found.begun ? "not nested" : "lost");
            mark.notes = notes_;
            return to_.instant(*out_, mark);
        }
        const place where = found.begun->kept;
        auto& spans = where.on->spans;
        if (record.began() && !where.apart && where.depth + 1 != spans.size()) {
            spans[where.depth].over = true;  // a followed trace: not found before
            note(note_key::end, "not nested");
            mark.notes = notes_;
            return to_.instant(*out_, mark);
        }
        mark.on = where.on;
        mark.ns = where.on->advance(mark.ns);
        close(*where.on, mark.ns, where.depth + 1);
        spans.pop_back();
        to_.end(*out_, mark);
        if (where.apart) tracks_.give_back(*where.on, record.type().whole());
        while (!spans.empty() && spans.back().over) {
            close(*where.on, mark.ns, spans.size() - 1);
        }
    }
    /// A span has lost its end for good.
    void lose_end(const place& where) {
        if (!where.apart && where.is_there()) close(*where.on, where.on->newest, where.depth);
    }
    /// Ends all spans but the outermost `depth`, without records that end them.
    void close(viewer_track& track, std::int64_t ns, std::size_t depth) {
        while (track.spans.size() > depth) {
            const drawn_span last = track.spans.back();
            track.spans.pop_back();
            const viewer_note why[] = {{note_key::end, true, 0, last.over ? "not nested" : "lost"}};
            to_.end(
                *out_,
                viewer_mark{.on = &track, .ns = ns, .event = &event_of(*last.type), .notes = why});
        }
    }

    /// Draws a record's curves. True: they show all that the record says.
    bool draw(const viewer_mark& mark, const reduce::record_view& record) {
        bool whole = notes_.empty();
        samples_.clear();
        std::size_t i = 0;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            const std::size_t field = i++;
            if (!mark.event->counters[field]) {
                whole = false;
                return;
            }
            const bool floating =
                value.type() == field_type::f32 || value.type() == field_type::f64;
            const bool finite = !floating || std::isfinite(value.f64());
            if (finite) samples_.push_back({field, value.unnamed()});
            if (!value.name().empty()) whole = false;  // a curve shows its number
            if (!finite || (value.type() == field_type::u64 && value.u64() > most_ns)) {
                whole = false;
            }
        });
        if (!samples_.empty()) to_.counters(*out_, mark, samples_);
        return whole && !samples_.empty();
    }

    void find_flows(const viewer_event& event, const reduce::record_view& record) {
        std::size_t i = 0;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            if (!event.flows[i++]) return;
            for (std::size_t k = 0; k < value.size(); ++k) {
                if (const std::uint64_t id = value.at(k).u64(); id != 0) flows_.push_back(id);
            }
        });
    }

    void append_loss(const reduce::loss_item& loss) {
        viewer_track& track = loss.lane != nullptr ? told(tracks_.of(from_, *loss.lane))
                                                   : told(tracks_.of_source(from_));
        const std::string name = "lost: " + std::string(to_string(loss.cause));
        viewer_mark mark{.on = &track,
                         .ns = track.advance((std::max)(ns_of(loss.time), *origin_)),
                         .category = mark_category::loss,
                         .name = name};
        notes_.clear();
        note(note_key::cause, to_string(loss.cause));
        note(note_key::count, loss.count);
        if (loss.lane != nullptr) note(note_key::position, loss.at);
        if (loss.cause == loss_cause::damaged) {
            note(note_key::offset, loss.offset);
            note(note_key::fault, loss.what);
        }
        mark.notes = notes_;
        if (loss.lane != nullptr && was_written(loss.cause)) leave_open(*loss.lane);
        to_.instant(*out_, mark);
    }
    /// Records of this lane are missing here: they may be the ends of open spans.
    void leave_open(const reduce::lane_info& lane) {
        sources_[from_].open.gap(lane, [&](const auto& of) { lose_end(of.kept); });
    }

    void append_jump(const reduce::clock_jump& jump, std::int64_t time) {
        const auto leave = [&](viewer_track& track) { close(track, track.newest, 0); };
        viewer_mark mark{.category = mark_category::clock};
        notes_.clear();
        if (jump.lane == nullptr) {
            if (jump.step < 0) tracks_.set_back(from_, leave);
            viewer_track& own = told(tracks_.of_source(from_));
            mark.on = &own;
            mark.ns = own.advance(time);
            mark.name = jump.anew ? "the clock began anew" : "the date jumps";
            note(note_key::step_ns, std::to_string(jump.step));
            mark.notes = notes_;
            return to_.instant(*out_, mark);
        }
        viewer_track& track = told(tracks_.of(from_, *jump.lane));
        leave_open(*jump.lane);
        leave(track);
        mark.on = &track;
        mark.ns = (std::max)(track.newest, *origin_);  // it may have no record yet
        mark.name = "time goes back";
        note(note_key::back_ticks, jump.from - jump.time);
        note(note_key::position, jump.at);
        mark.notes = notes_;
        to_.instant(*out_, mark);
        told(tracks_.after_jump(from_, *jump.lane)).newest = time;
    }

    void note(note_key key, std::uint64_t number) { notes_.push_back({key, false, number}); }
    void note(note_key key, std::string_view text) {
        notes_.push_back({key, true, 0, std::string(text)});
    }
    void note_interval(const reduce::record_view& record, std::int64_t time) {
        if (const auto latest = record.latest()) {
            const std::int64_t until = ns_of(*latest);
            note(note_key::later_ns,
                 until > time ? static_cast<std::uint64_t>(until) - static_cast<std::uint64_t>(time)
                              : 0);
        } else {
            note(note_key::later_ns, "unknown");
        }
    }
    void note_cut(const reduce::record_view& record) {
        std::string names;
        record.for_each_field([&](const reduce::field_info& field, const auto& value) {
            if (!value.cut()) return;
            if (!names.empty()) names += ' ';
            names += field.name;
        });
        if (!names.empty()) note(note_key::cut, names);
    }

    [[nodiscard]] const viewer_event& event_of(const reduce::event_type& type) {
        auto& events = sources_[from_].events;
        if (type.number >= events.size()) events.resize(type.number + 1);
        const viewer_event*& known = events[type.number];
        if (known == nullptr) {
            viewer_event made;
            made.number = events_.size();
            made.type = &type;
            for (const auto& field : type.fields) {
                made.flows.push_back(roles_.is_flow(type, field));
                made.counters.push_back(roles_.is_counter(type, field));
                made.any_flow = made.any_flow || made.flows.back();
                made.any_counter = made.any_counter || made.counters.back();
            }
            known = &events_.emplace_back(std::move(made));
        }
        return *known;
    }

    static constexpr std::uint64_t most_ns = (std::numeric_limits<std::int64_t>::max)();

    Writer& to_;
    text_buffer* out_ = nullptr;  // of the item that is appended, as is
    std::size_t from_ = 0;        // its source
    field_roles roles_;
    viewer_tracks tracks_{};
    std::size_t processes_told_ = 0, tracks_told_ = 0;
    std::vector<source> sources_{};
    std::deque<viewer_event> events_{};
    std::optional<std::int64_t> origin_{};
    std::vector<early_loss> early_{};
    std::uint64_t last_span_ = 0;
    std::vector<viewer_note> notes_{};
    std::vector<std::uint64_t> flows_{};
    std::vector<viewer_sample> samples_{};
    std::string unknown_{};
    text_buffer raw_{};
};

}  // namespace trace_reduce::exporting
