// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as a trace in the Common Trace Format, CTF 1.8, which babeltrace2, Trace Compass
/// and others read: a folder with a file `metadata` and a file for each stream.
/// @code
///   trace_reduce::exporting::ctf_writer writer(append_to_file);  // of the folder, by name
///   const auto source = writer.add(trace.about(), "orders.trace");
///   writer.begin();
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();)
///       writer.append(source, *item);
///   writer.end();
/// @endcode
/// - A stream is a lane. Its packets have the lane's number, process (its id and its number in the
///   trace's table), thread, depth and name (and the trace file's name, if there are several). When
///   another thread adopts a lane, a new packet begins.
/// - Times are nanoseconds since 1970, so that readers show the same as text.hpp; ticks if the
///   trace's clock is not known.
/// - Time in a stream must not go back. If a lane's clock does, its records continue in another
///   stream (`lane-3.1` after `lane-3`, up to 64), which begins with `trace_ring:clock_jump`. If
///   the date was set back, all lanes continue so, and `no-lane` has the jump. If time goes back
///   after that, records have the time of the one before them, and their own as `time` in their
///   context.
/// - Lost records are counted in the packets' `events_discarded`, which readers report; the event
///   `trace_ring:lost` gives, in its place, the cause, the number and the first position.
/// - Spans are events `NAME:begin` and `NAME:end`. An end that says where its span began has that
///   record's lane and position as `began_lane` and `began_position`.
/// - The context of an event has the upper bound of a time that is a lower bound, as `latest`, if
///   it is `bounded`; and in `cut` the names of the fields that were cut.
/// - Fields of an enumeration whose values have names are enumerations.
/// - Text and characters are strings. A text that is not UTF-8, is empty or has a zero inside is a
///   sequence of bytes (for an empty string babeltrace2 2.0 would show another event's). Addresses
///   are hexadecimal, and bool is an enumeration. A thread without a name is called `-`.
/// - A record that contradicts the dictionary has its bytes as `raw`, and the reason as `fault`;
///   one that the dictionary lacks is called `event#7`.
/// ctf/parts.hpp says how names become identifiers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "ctf/parts.hpp"
#include "names.hpp"

namespace trace_reduce::exporting {

/// Makes a CTF trace of items. The items must come in the order of their times.
class ctf_writer {
public:
    /// Appends bytes to the file of that name in the trace's folder. `metadata` comes last, once.
    using sink = std::function<void(std::string_view file, std::string_view bytes)>;
    using source = std::size_t;

    explicit ctf_writer(sink to) : to_(std::move(to)) {}

    /// Adds another trace; all of them before the first item. `in` must outlive this.
    source add(const reduce::tables& in, std::string_view name) {
        auto& from = *sources_.emplace_back(std::make_unique<origin>());
        from.in = &in;
        from.name = name;
        from.number = sources_.size();
        return from.number - 1;
    }

    void begin() {
        bool any = false;
        for (const auto& each : sources_) {
            const auto& time = each->in->time();
            if (!time.known()) continue;
            for (const auto& reading : time.snapshots()) {  // the date may have been set back
                const auto ns = static_cast<std::int64_t>(reading.realtime);
                offset_ = any ? (std::min)(offset_, ns) : ns;
                any = true;
            }
            precision_ = (std::max)(
                precision_, static_cast<std::uint64_t>((std::min)(time.uncertainty_ns(), 9.2e18)));
        }
        absolute_ = any;
    }

    void append(source from, const reduce::item& what) {
        auto& in = *sources_.at(from);
        std::visit([&](const auto& one) { append_item(in, one); }, what);
        // Limits the memory of waiting packets, however many lanes there are.
        if (waiting_ > std::size_t{64} * 1024 * 1024) close_all();
    }

    /// Writes the packets that are still open, and the metadata.
    void end() {
        close_all();
        text_buffer metadata;
        impl::append_tsdl_head(metadata, offset_, precision_, absolute_, sources_.size() > 1);
        impl::append_tsdl_gaps(metadata);
        metadata += classes_.view();
        to_("metadata", metadata.view());
    }

private:
    using flavour = impl::ctf_flavour;

    struct lane_streams {
        std::unique_ptr<impl::ctf_stream> stream{};  // the newest
        std::uint32_t part = 0;
        bool is_over = false;  // the date was set back
    };
    struct origin {
        const reduce::tables* in = nullptr;
        std::string name{};
        std::size_t number = 0;                                   // from 1
        std::unordered_map<std::uint32_t, lane_streams> lanes{};  // 0: of no lane
        // The classes: flavour and number by type; for unknown events the number by id and flavour.
        std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> classes{};
        std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> unknown{};
    };

    [[nodiscard]] static std::int64_t time_ns(const origin& in, std::uint64_t ticks) noexcept {
        if (in.in->time().known()) return in.in->time().realtime_ns(ticks);
        constexpr std::uint64_t most = (std::numeric_limits<std::int64_t>::max)();
        return static_cast<std::int64_t>((std::min)(ticks, most));
    }
    /// A time as streams have it: relative to their begin, and not before it.
    [[nodiscard]] std::uint64_t stamp(std::int64_t ns) const noexcept {
        return ns < offset_ ? 0
                            : static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(offset_);
    }

    void close(impl::ctf_stream& stream) {
        waiting_ -= stream.size();
        stream.close(to_);
    }
    void close_all() {
        for (const auto& each : sources_) {
            for (auto& [number, lane] : each->lanes) close(*lane.stream);
        }
    }

    [[nodiscard]] lane_streams& streams_of(origin& in, const reduce::lane_info* lane) {
        auto& streams = in.lanes[lane == nullptr ? 0 : lane->number];
        if (streams.stream == nullptr) start(in, streams, lane);
        if (std::exchange(streams.is_over, false)) go_on(in, streams, lane);
        return streams;
    }
    /// Continues the lane in another stream.
    void go_on(const origin& in, lane_streams& streams, const reduce::lane_info* lane) {
        constexpr std::uint32_t most_parts = 64;
        if (streams.part >= most_parts) return;
        close(*streams.stream);
        ++streams.part;
        start(in, streams, lane);
    }
    void start(const origin& in, lane_streams& streams, const reduce::lane_info* lane) {
        std::string name{};
        const bool several = sources_.size() > 1;
        if (several) name = std::to_string(in.number) + '-';
        name += lane == nullptr ? "no-lane" : "lane-" + std::to_string(lane->number);
        if (streams.part != 0) name += '.' + std::to_string(streams.part);
        streams.stream = std::make_unique<impl::ctf_stream>(
            std::move(name), instances_++, several ? std::string_view(in.name) : "");
        streams.stream->set_owner(lane);
    }

    void append_item(origin& in, const reduce::record_view& record) {
        auto& stream = *streams_of(in, &record.lane()).stream;
        if (stream.other_owner(&record.lane())) {
            close(stream);
            stream.set_owner(&record.lane());
        }
        const std::int64_t time = time_ns(in, record.time());
        const std::uint64_t at = (std::max)(stamp(time), stream.last());
        const bool late =
            at + static_cast<std::uint64_t>(offset_) != static_cast<std::uint64_t>(time);
        std::uint64_t kind = flavour_of(record, late);
        const std::size_t before = stream.size();
        const std::uint32_t number = class_of(in, record, kind);
        text_buffer& out = stream.event(number, at);
        if (late) impl::append_bytes(out, time);
        if (record.interval()) {
            const auto latest = record.latest();
            impl::append_bytes(out, static_cast<std::uint8_t>(latest ? 1 : 0),
                               latest ? time_ns(in, *latest) : std::int64_t{0});
        }
        if ((kind & flavour::cut) != 0) append_cut(out, record);
        if ((kind & flavour::faulty) != 0) {
            impl::append_ctf_string(out, record.fault());
            const auto raw = record.payload();
            impl::append_bytes(out, static_cast<std::uint16_t>(raw.size()));
            out += std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
        } else {
            if (const auto place = record.began()) {
                impl::append_bytes(out, place->lane, place->at);
            }
            std::size_t i = 0;
            record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
                append_value(out, value, flavour::has_bytes(kind, i++));
            });
        }
        waiting_ += stream.size() - before;
        if (stream.full()) close(stream);
    }

    void append_item(origin& in, const reduce::loss_item& loss) {
        auto& stream = *streams_of(in, loss.lane).stream;
        close(stream);  // so that the loss is between two packets
        stream.lose(loss.count);
        const bool damaged = loss.cause == loss_cause::damaged;
        text_buffer& out = stream.event(damaged ? impl::ctf_damaged : impl::ctf_lost,
                                        (std::max)(stamp(time_ns(in, loss.time)), stream.last()));
        impl::append_bytes(out, static_cast<std::uint8_t>(loss.cause), loss.count, loss.at);
        if (damaged) {
            impl::append_bytes(out, loss.offset);
            impl::append_ctf_string(out, loss.what);
        }
        waiting_ += stream.size();
        close(stream);  // so that readers report the loss here
    }

    void append_item(origin& in, const reduce::clock_jump& jump) {
        if (jump.lane == nullptr && jump.step < 0) {
            for (auto& [number, lane] : in.lanes) lane.is_over = true;
        }
        auto& streams = streams_of(in, jump.lane);
        const std::int64_t time = time_ns(in, jump.time);
        if (stamp(time) < streams.stream->last()) go_on(in, streams, jump.lane);
        auto& stream = *streams.stream;
        const std::size_t before = stream.size();
        text_buffer& out = stream.event(impl::ctf_jump, (std::max)(stamp(time), stream.last()));
        impl::append_bytes(out, time_ns(in, jump.from), time, jump.at, jump.step);
        waiting_ += stream.size() - before;
    }

    [[nodiscard]] static std::uint64_t flavour_of(const reduce::record_view& record, bool late) {
        std::uint64_t kind = late ? flavour::late : std::uint64_t{0};
        if (record.begins()) kind |= flavour::begins;
        if (record.ends()) kind |= record.began() ? flavour::told_end : flavour::ends;
        if (record.interval()) kind |= flavour::interval;
        if (!record.fault().empty()) return kind | flavour::faulty;
        if (!record.has_fields()) return kind | flavour::bare;
        std::size_t i = 0;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            if (value.cut()) kind |= flavour::cut;
            if (value.type() == field_type::character && !is_string(value)) {
                kind |= flavour::bytes_of(i);
            }
            ++i;
        });
        return kind;
    }
    [[nodiscard]] static std::string_view text_of(const reduce::field_value& value, char& one) {
        if (value.is_text()) return value.text();
        one = static_cast<char>(value.u64());
        return {&one, 1};
    }
    [[nodiscard]] static bool is_string(const reduce::field_value& value) {
        char one = 0;
        std::string_view text = text_of(value, one);
        if (text.empty()) return false;
        while (!text.empty()) {
            const std::size_t length = impl::utf8_length(text);
            if (length == 0 || text.front() == '\0') return false;
            text.remove_prefix(length);
        }
        return true;
    }

    [[nodiscard]] std::uint32_t class_of(origin& in, const reduce::record_view& record,
                                         std::uint64_t& kind) {
        if (!record.known()) {
            const auto [at, added] = in.unknown.try_emplace({record.id(), kind}, next_class_);
            if (added) declare(nullptr, record.id(), kind);
            return at->second;
        }
        const auto& type = record.type();
        if (type.number >= in.classes.size()) in.classes.resize(type.number + 1);
        auto& there = in.classes[type.number];
        for (const auto& [with, number] : there) {
            if (with == kind) return number;
        }
        constexpr std::size_t most = 256;
        if (there.size() >= most && (kind & flavour::bytes) == 0) {
            kind = (kind & (flavour::bytes - 1)) | flavour::bytes;
            return class_of(in, record, kind);
        }
        there.emplace_back(kind, next_class_);
        return declare(&type, type.id, kind);
    }
    std::uint32_t declare(const reduce::event_type* type, std::uint32_t id, std::uint64_t kind) {
        impl::append_tsdl_event(classes_, next_class_, type, id, kind);
        return next_class_++;
    }

    static void append_cut(text_buffer& out, const reduce::record_view& record) {
        bool first = true;
        record.for_each_field(
            [&](const reduce::field_info& field, const reduce::field_value& value) {
                if (!value.cut()) return;
                if (!first) out += ',';
                first = false;
                out += ctf_name(field.name);  // never empty
            });
        out += '\0';
    }

    static void append_value(text_buffer& out, const reduce::field_value& value, bool bytes) {
        if (value.type() == field_type::character) {
            char one = 0;
            const std::string_view text = text_of(value, one);
            if (bytes && value.is_text()) {
                impl::append_bytes(out, static_cast<std::uint16_t>(text.size()));
            }
            out += text;
            if (!bytes) out += '\0';
            return;
        }
        if (value.form() == field_form::variable) {
            impl::append_bytes(out, static_cast<std::uint16_t>(value.size()));
        }
        for (std::size_t i = 0; i < value.size(); ++i) {
            value.at(i).visit([&out](auto of) { impl::append_bytes(out, of); });
        }
    }

    sink to_;
    std::vector<std::unique_ptr<origin>> sources_{};
    text_buffer classes_{};
    std::uint32_t next_class_ = impl::ctf_jump + 1;
    std::uint64_t instances_ = 0;
    std::int64_t offset_ = 0;  // negative before 1970
    std::uint64_t precision_ = 0;
    bool absolute_ = false;
    std::size_t waiting_ = 0;
};

}  // namespace trace_reduce::exporting
