// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as Chrome's trace events, one JSON object that chrome://tracing, Perfetto and
/// speedscope open: spans as B and E, moments as i, counters as C, flows as s and t, names of
/// processes and threads as M.
/// @code
///   {"displayTimeUnit":"ns","traceEvents":[
///   {"ph":"M","name":"thread_name","pid":1200,"tid":1234,"args":{"name":"worker"}},
///   {"ph":"B","name":"request","cat":"event","pid":1200,"tid":1234,"ts":0.000,"args":{"n":1}},
///   {"ph":"E","name":"request","cat":"event","pid":1200,"tid":1234,"ts":17.042}
///   ],"otherData":{"origin_ns":"1714567296123456789"}}
/// @endcode
/// - `ts` is in microseconds, exact to the nanosecond, since the first record, whose time is
///   `origin_ns`, nanoseconds since 1970. A double holds it exactly for three months. If the clock
///   is not known these are ticks, and `clock` says so.
/// - Values are as in exporter/json.hpp; integers beyond 2^53 are strings, because viewers
///   read numbers as doubles. In counters all values are numbers: their digits are exact, curves
///   are not.
/// - A record that is part of a flow is a B, an E, or an X of no length, to which the s or t after
///   it binds: s for the first record with a number, t for the others. The last record is not known
///   as such. Memory is some 40 bytes for each number of a flow.
/// - Losses have the category "loss". Notes on a mark besides its fields are called trace_ring.x.
///   viewer/stage.hpp says how spans without ends nest, viewer/tracks.hpp which tracks there are.
/// @code
///   trace_reduce::exporting::chrome_writer writer;
///   trace_ring::exporter::text_buffer out;
///   const auto source = writer.add(trace.about(), "orders.trace");
///   writer.begin(out);
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();)
///       writer.append(out, source, *item);
///   writer.end(out);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <trace_ring/exporter/json.hpp>

#include "names.hpp"
#include "viewer/stage.hpp"

namespace trace_reduce::exporting {

class chrome_writer {
public:
    explicit chrome_writer(field_roles roles = {}) : stage_(*this, std::move(roles)) {}
    chrome_writer(const chrome_writer&) = delete;

    /// Adds another trace to the output; all of them before the first item. `in` must outlive this.
    std::size_t add(const reduce::tables& in, std::string_view name) {
        return stage_.add(in, name);
    }
    static void begin(text_buffer& out) { out += R"({"displayTimeUnit":"ns","traceEvents":[)"; }
    /// Appends the next item, in the order of times.
    void append(text_buffer& out, std::size_t from, const reduce::item& what) {
        stage_.append(out, from, what);
    }
    void end(text_buffer& out) {
        stage_.end(out);
        impl::append(out, "\n],\"otherData\":{\"origin_ns\":\"", *stage_.origin(), '"');
        for (std::size_t i = 0; i < stage_.sources(); ++i) {
            if (stage_.dated(i)) continue;
            out += R"(,"clock":"not known: ns are ticks")";
            break;
        }
        out += "}}\n";
    }

private:
    friend class viewer_stage<chrome_writer>;

    void process(text_buffer& out, const viewer_process& what) {
        name(out, "process_name", what.id, 0, what.name);
    }
    void track(text_buffer& out, const viewer_track& what) {
        name(out, "thread_name", what.process->id, what.id, what.name);
    }
    void name(text_buffer& out, std::string_view what, std::int32_t process, std::int32_t thread,
              std::string_view value) {
        next(out);
        impl::append(out, R"({"ph":"M","name":")", what, R"(","pid":)", process, R"(,"tid":)",
                     thread, R"(,"args":{"name":)");
        impl::append_json_string(out, value);
        out += "}}";
    }

    void begin(text_buffer& out, const viewer_mark& mark) {
        event(out, "B", mark);
        arguments(out, mark);
        arrows(out, mark);
    }
    void end(text_buffer& out, const viewer_mark& mark) {
        arrows(out, mark);
        event(out, "E", mark);
        arguments(out, mark);
    }
    void instant(text_buffer& out, const viewer_mark& mark) {
        if (mark.flows.empty()) {
            event(out, "i", mark);
            out += R"(,"s":"t")";
        } else {
            event(out, "X", mark);
            out += R"(,"dur":0)";
        }
        arguments(out, mark);
        arrows(out, mark);
    }
    void counters(text_buffer& out, const viewer_mark& mark,
                  std::span<const viewer_sample> samples) {
        event(out, "C", mark);
        const auto& fields = names_of(*mark.event).fields;
        const char* between = R"(,"args":{)";
        for (const auto& sample : samples) {
            out += between;
            between = ",";
            out += fields[sample.field];
            if (sample.value.type() == field_type::boolean) {
                out += sample.value.boolean() ? '1' : '0';
            } else {
                impl::append_json_scalar(out, sample.value, wide_integers::numbers);
            }
        }
        out += "}}";
    }

    void next(text_buffer& out) {
        out += any_ ? ",\n" : "\n";
        any_ = true;
    }
    void time(text_buffer& out, const viewer_mark& mark) {
        impl::append(out, R"(,"pid":)", mark.on->process->id, R"(,"tid":)", mark.on->id,
                     R"(,"ts":)");
        // Unsigned: with two traces one may have begun a little before.
        const auto from = static_cast<std::uint64_t>(*stage_.origin());
        auto ns = static_cast<std::uint64_t>(mark.ns) - from;
        if (mark.ns < *stage_.origin()) {
            out += '-';
            ns = 0 - ns;
        }
        impl::append(out, ns / 1000, '.');
        impl::append_padded<3>(out, ns % 1000);
    }
    void event(text_buffer& out, std::string_view phase, const viewer_mark& mark) {
        next(out);
        impl::append(out, R"({"ph":")", phase, R"(","name":)");
        if (mark.event != nullptr) {
            out += names_of(*mark.event).name;
        } else {
            impl::append_json_string(out, mark.name);
        }
        impl::append(out, R"(,"cat":")", to_string(mark.category), '"');
        time(out, mark);
    }
    void arguments(text_buffer& out, const viewer_mark& mark) {
        const char* between = R"(,"args":{)";
        const auto key = [&] {
            out += between;
            between = ",";
        };
        if (mark.record != nullptr && mark.event != nullptr) {
            const auto& fields = names_of(*mark.event).fields;
            std::size_t i = 0;
            mark.record->for_each_field([&](const auto&, const reduce::field_value& value) {
                key();
                out += fields[i++];
                impl::append_json_value(out, value, wide_integers::strings);
            });
        }
        for (const auto& note : mark.notes) {
            key();
            impl::append(out, '"', to_string(note.key), "\":");
            if (note.is_text) {
                impl::append_json_string(out, note.text);
            } else {
                impl::append_json_integer(out, note.number, wide_integers::strings);
            }
        }
        out += *between == ',' && between[1] == '\0' ? "}}" : "}";
    }
    void arrows(text_buffer& out, const viewer_mark& mark) {
        for (const std::uint64_t id : mark.flows) {
            next(out);
            out += flows_.insert(id).second ? R"({"ph":"s")" : R"({"ph":"t","bp":"e")";
            out += R"(,"name":"flow","cat":"flow","id":"0x)";
            impl::append_number(out, id, 16);
            out += '"';
            time(out, mark);
            out += '}';
        }
    }

    [[nodiscard]] const impl::json_names::words& names_of(const viewer_event& event) {
        return names_.of(*event.type, event.number);
    }

    viewer_stage<chrome_writer> stage_;
    impl::json_names names_{true};
    std::unordered_set<std::uint64_t> flows_{};  // flows that have begun
    bool any_ = false;
};

}  // namespace trace_reduce::exporting
