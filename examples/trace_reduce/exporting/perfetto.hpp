// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as a Perfetto trace: packets of Protocol Buffers that ui.perfetto.dev and its
/// trace_processor read, of any length, as a stream. It is used as chrome_writer is.
///
/// - A thread is a track with a thread descriptor, and a separate sequence of packets; any other
///   line (viewer/tracks.hpp) is a track of the process. Names are sent once for each sequence
///   (interned), and again after a loss: its packet says that one before it was dropped, and begins
///   the sequence's state anew.
/// - Times are nanoseconds since 1970: CLOCK_REALTIME is the trace's clock, and a snapshot ties it
///   to CLOCK_MONOTONIC. If the clock is not known they are ticks, and no clock is named.
/// - Fields are debug annotations: integers, floating-point numbers, booleans, strings and pointers
///   are of those types, exact to 64 bits; arrays are arrays; names of an enumeration's values are
///   strings. Text that is not UTF-8 is a dictionary with its bytes, {hex: "ff00"}; in a name, bad
///   bytes become U+FFFD.
/// - Each number of a counter event is a track of its process, named EVENT.FIELD: of 64 bits, or a
///   double.
/// - Flows are flow ids: records with the same id are tied in the order of time, also across files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/exporter/json.hpp>

#include "../../protobuf.hpp"
#include "names.hpp"
#include "perfetto/numbers.hpp"
#include "viewer/stage.hpp"

namespace trace_reduce::exporting {

class perfetto_writer {
public:
    explicit perfetto_writer(field_roles roles = {}) : stage_(*this, std::move(roles)) {}
    perfetto_writer(const perfetto_writer&) = delete;

    /// Adds another trace to the output; all of them before the first item. `in` must outlive this.
    std::size_t add(const reduce::tables& in, std::string_view name) {
        return stage_.add(in, name);
    }
    void begin(text_buffer& out) {
        for (std::size_t i = 0; i < stage_.sources() && !dated_; ++i) {
            if (!stage_.dated(i)) continue;
            // The format's times have no sign. Before 1970 there are no dates, and times count from
            // the first reading.
            shift_ = first_of_all();
            if (shift_ < 0) break;
            shift_ = 0;
            dated_ = true;
            const auto first = stage_.first_reading(i);
            proto::message(out, field::packet, [&] {
                proto::number(out, packet::sequence, about_sequence);
                proto::message(out, packet::clock_snapshot, [&] {
                    const auto clock = [&](std::uint64_t id, std::uint64_t ns) {
                        proto::message(out, snapshot::clocks, [&] {
                            proto::number(out, snapshot::clock_id, id);
                            proto::number(out, snapshot::clock_time, ns);
                        });
                    };
                    clock(snapshot::realtime, first.realtime);
                    clock(snapshot::monotonic, first.monotonic);
                    proto::number(out, snapshot::primary, snapshot::realtime);
                });
            });
        }
    }
    /// Appends the next item, in the order of times.
    void append(text_buffer& out, std::size_t from, const reduce::item& what) {
        stage_.append(out, from, what);
    }
    void end(text_buffer& out) { stage_.end(out); }

private:
    /// The earliest clock reading of the traces with dates, in nanoseconds since 1970.
    [[nodiscard]] std::int64_t first_of_all() const noexcept {
        std::int64_t first = (std::numeric_limits<std::int64_t>::max)();
        for (std::size_t i = 0; i < stage_.sources(); ++i) {
            if (!stage_.dated(i)) continue;
            first = (std::min)(first, static_cast<std::int64_t>(stage_.first_reading(i).realtime));
        }
        return first;
    }
    friend class viewer_stage<perfetto_writer>;
    using proto = protobuf::encoding;
    using field = impl::perfetto::trace;
    using packet = impl::perfetto::packet;
    using snapshot = impl::perfetto::clock_snapshot;
    using interned = impl::perfetto::interned_data;
    using descriptor = impl::perfetto::track_descriptor;
    using event = impl::perfetto::track_event;
    using annotation = impl::perfetto::debug_annotation;

    static constexpr std::uint64_t about_sequence = 1;  // of descriptors
    static constexpr std::uint64_t first_sequence = 2;  // of the first track

    /// The state of a track's sequence, as it was sent.
    struct sequence {
        std::uint64_t uuid = 0;
        bool begun = false;
        bool fresh = true;  // nothing was sent
        std::vector<bool> categories{}, names{}, annotations{};
    };
    void process(text_buffer& out, const viewer_process& what) {
        process_uuids_.push_back(++last_uuid_);
        describe(out, last_uuid_, [&] {
            proto::message(out, descriptor::process, [&] {
                proto::number(out, descriptor::process_pid, static_cast<std::uint64_t>(what.id));
                proto::text(out, descriptor::process_name, what.name);
            });
        });
    }
    void track(text_buffer& out, const viewer_track& what) {
        sequences_.emplace_back().uuid = ++last_uuid_;
        describe(out, last_uuid_, [&] {
            if (!what.is_thread) {
                proto::text(out, descriptor::name, what.name);
                proto::number(out, descriptor::parent, process_uuids_[what.process->number]);
                return;
            }
            proto::message(out, descriptor::thread, [&] {
                proto::number(out, descriptor::thread_pid,
                              static_cast<std::uint64_t>(what.process->id));
                proto::number(out, descriptor::thread_tid, static_cast<std::uint64_t>(what.id));
                proto::text(out, descriptor::thread_name, what.name);
            });
        });
    }
    template <class Body>
    static void describe(text_buffer& out, std::uint64_t uuid, Body&& body) {
        proto::message(out, field::packet, [&] {
            proto::number(out, packet::sequence, about_sequence);
            proto::message(out, packet::track_descriptor, [&] {
                proto::number(out, descriptor::uuid, uuid);
                body();
            });
        });
    }

    void begin(text_buffer& out, const viewer_mark& mark) { show(out, mark, event::begins); }
    void end(text_buffer& out, const viewer_mark& mark) { show(out, mark, event::ends); }
    void instant(text_buffer& out, const viewer_mark& mark) { show(out, mark, event::instant); }

    void counters(text_buffer& out, const viewer_mark& mark,
                  std::span<const viewer_sample> samples) {
        for (const auto& sample : samples) {
            const std::uint64_t uuid = counter_uuid(out, mark, sample.field);
            send(out, mark, [&](sequence&) {
                proto::number(out, event::type, event::counts);
                proto::number(out, event::track, uuid);
                const auto& value = sample.value;
                const bool whole = value.type() != field_type::f32 &&
                                   value.type() != field_type::f64 &&
                                   (value.type() != field_type::u64 || value.i64() >= 0);
                if (whole) {
                    proto::number(out, event::counter, static_cast<std::uint64_t>(value.i64()));
                } else {
                    proto::real(out, event::double_counter, value.f64());
                }
            });
        }
    }
    [[nodiscard]] std::uint64_t counter_uuid(text_buffer& out, const viewer_mark& mark,
                                             std::size_t field_number) {
        const auto& type = *mark.event->type;
        auto& uuids = counters_[{mark.event->number, mark.on->process->number}];
        if (uuids.empty()) uuids.resize(type.fields.size(), 0);
        std::uint64_t& uuid = uuids[field_number];
        if (uuid == 0) {
            uuid = ++last_uuid_;
            describe(out, uuid, [&] {
                proto::text(out, descriptor::name,
                            type.name + '.' + type.fields[field_number].shown_name());
                proto::number(out, descriptor::parent, process_uuids_[mark.on->process->number]);
                proto::message(out, descriptor::counter, [] {});
            });
        }
        return uuid;
    }

    void show(text_buffer& out, const viewer_mark& mark, std::uint64_t type) {
        if (mark.category == mark_category::loss) sequences_[mark.on->number].fresh = true;
        send(out, mark, [&](sequence& to) {
            proto::number(out, event::type, type);
            if (type != event::ends) name(out, mark, to);
            if (mark.record != nullptr && mark.event != nullptr) annotate(out, mark, to);
            for (const auto& note : mark.notes) {
                const auto iid = static_cast<std::uint64_t>(note.key) + 1;
                remember(to.annotations, annotations_, iid, to_string(note.key));
                proto::message(out, event::annotations, [&] {
                    proto::number(out, annotation::name_iid, iid);
                    if (note.is_text) {
                        proto::text(out, annotation::string, note.text);
                    } else {
                        proto::number(out, annotation::u64, note.number);
                    }
                });
            }
            for (const std::uint64_t id : mark.flows) proto::fixed64(out, event::flow, id);
        });
    }
    void name(text_buffer& out, const viewer_mark& mark, sequence& to) {
        const auto category = static_cast<std::uint64_t>(mark.category) + 1;
        remember(to.categories, categories_, category, to_string(mark.category));
        proto::number(out, event::category_iid, category);
        if (mark.event == nullptr) return proto::text(out, event::name, mark.name);
        const std::uint64_t iid = mark.event->number + 1;
        remember(to.names, names_, iid, mark.event->type->name);
        proto::number(out, event::name_iid, iid);
    }
    void annotate(text_buffer& out, const viewer_mark& mark, sequence& to) {
        std::uint64_t iid = first_iid(*mark.event);
        mark.record->for_each_field(
            [&](const reduce::field_info& info, const reduce::field_value& value) {
                remember(to.annotations, annotations_, iid, info.shown_name());
                proto::message(out, event::annotations, [&] {
                    proto::number(out, annotation::name_iid, iid);
                    append_value(out, value);
                });
                ++iid;
            });
    }

    /// Sends one packet on the mark's sequence, whose event `body(sequence&)` writes.
    template <class Body>
    void send(text_buffer& out, const viewer_mark& mark, Body&& body) {
        sequence& to = sequences_[mark.on->number];
        if (to.fresh) to.categories = to.names = to.annotations = {};
        categories_.clear();
        names_.clear();
        annotations_.clear();
        proto::message(out, field::packet, [&] {
            proto::number(out, packet::time,
                          mark.ns < shift_ ? 0
                                           : static_cast<std::uint64_t>(mark.ns) -
                                                 static_cast<std::uint64_t>(shift_));
            proto::number(out, packet::sequence, first_sequence + mark.on->number);
            proto::number(
                out, packet::sequence_flags,
                to.fresh ? packet::state_cleared | packet::needs_state : packet::needs_state);
            if (to.fresh) {
                proto::message(out, packet::defaults, [&] {
                    if (dated_) {
                        proto::number(out, packet::default_clock, snapshot::realtime);
                    }
                    proto::message(out, packet::default_event,
                                   [&] { proto::number(out, event::track, to.uuid); });
                });
            }
            if (!to.begun) proto::number(out, packet::first_on_sequence, 1);
            if (mark.category == mark_category::loss) {
                proto::number(out, packet::previous_dropped, 1);
            }
            proto::message(out, packet::track_event, [&] { body(to); });
            if (!categories_.empty() || !names_.empty() || !annotations_.empty()) {
                proto::message(out, packet::interned, [&] {
                    send_names(out, interned::categories, categories_);
                    send_names(out, interned::names, names_);
                    send_names(out, interned::annotations, annotations_);
                });
            }
        });
        to.begun = true;
        to.fresh = false;
    }
    using new_names = std::vector<std::pair<std::uint64_t, std::string_view>>;
    static void remember(std::vector<bool>& sent, new_names& add, std::uint64_t iid,
                         std::string_view name) {
        const auto at = as_size(iid);
        if (at >= sent.size()) sent.resize(at + 1);
        if (sent[at]) return;
        sent[at] = true;
        add.emplace_back(iid, name);
    }
    static void send_names(text_buffer& out, std::uint32_t kind, const new_names& which) {
        for (const auto& [iid, name] : which) {
            proto::message(out, kind, [&, id = iid, text = name] {
                proto::number(out, interned::iid, id);
                proto::text(out, interned::name, text);
            });
        }
    }

    static void append_value(text_buffer& out, const reduce::field_value& value) {
        if (value.is_text()) return append_string(out, value.text());
        if (value.form() == field_form::scalar) return append_scalar(out, value);
        for (std::size_t i = 0; i < value.size(); ++i) {
            proto::message(out, annotation::elements, [&] { append_scalar(out, value.at(i)); });
        }
    }
    static void append_scalar(text_buffer& out, const reduce::field_value& value) {
        if (const std::string_view name = value.name(); !name.empty()) {
            return proto::text(out, annotation::string, name);
        }
        if (value.type() <= field_type::u64)
            return proto::number(out, annotation::u64, value.u64());
        if (value.type() <= field_type::i64) {
            return proto::number(out, annotation::i64, static_cast<std::uint64_t>(value.i64()));
        }
        switch (value.type()) {
            case field_type::boolean:
                return proto::number(out, annotation::boolean, value.u64());
            case field_type::character: {
                const char c = static_cast<char>(value.u64());
                return append_string(out, {&c, 1});
            }
            case field_type::address:
                return proto::number(out, annotation::pointer, value.u64());
            default:
                return proto::real(out, annotation::floating, value.f64());
        }
    }
    static void append_string(text_buffer& out, std::string_view text) {
        if (impl::is_utf8(text)) return proto::bytes(out, annotation::string, text);
        proto::message(out, annotation::entries, [&] {
            proto::bytes(out, annotation::name, "hex");
            proto::message(out, annotation::string, [&] {
                impl::append_hex(out, std::as_bytes(std::span(text.data(), text.size())));
            });
        });
    }
    /// The number of the name of the event's first field.
    [[nodiscard]] std::uint64_t first_iid(const viewer_event& what) {
        if (what.number >= first_iids_.size()) first_iids_.resize(what.number + 1);
        std::uint64_t& first = first_iids_[what.number];
        if (first == 0) first = std::exchange(next_iid_, next_iid_ + what.type->fields.size());
        return first;
    }

    viewer_stage<perfetto_writer> stage_;
    bool dated_ = false;
    std::int64_t shift_ = 0;  // nanoseconds that become 0; negative or 0
    std::uint64_t last_uuid_ = 0;
    std::uint64_t next_iid_ = note_keys + 1;
    std::vector<std::uint64_t> process_uuids_{};
    std::vector<sequence> sequences_{};  // by number of track
    std::vector<std::uint64_t> first_iids_{};
    // By event and process: the track of each field, or 0.
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::uint64_t>> counters_{};
    new_names categories_{}, names_{}, annotations_{};  // of the current packet
};

}  // namespace trace_reduce::exporting
