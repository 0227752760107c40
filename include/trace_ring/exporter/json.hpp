// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as JSON lines: one object for each item, valid by itself whatever the trace holds.
/// @code
///   {"kind":"record","ticks":17,"time_ns":1714567296123456789,"lane":3,"position":42,
///    "pid":1200,"process":0,"tid":1234,"thread":"worker","depth":0,"event":"order.sent",
///    "fields":{"id":42,"price":3.14}}
///   {"kind":"loss","cause":"overwritten","count":1234,"lane":3,"position":0,"ticks":12,
///    "time_ns":...}
///   {"kind":"clock_jump","lane":3,"position":50,"from_ticks":90,"ticks":17}
///   {"kind":"clock_jump","lane":null,"from_ns":...,"step_ns":-3600000000000,"from_ticks":90,
///    "ticks":170,"time_ns":...}
/// @endcode
/// - `time_ns` is nanoseconds since 1970; it is left out if the clock is not known. `ticks` is the
///   trace's clock.
/// - `process` is the process's number in the trace's table: two may have the same pid.
/// - `span` is "begin" or "end"; `began` is the record that began the span, if the end says so.
/// - `cut` lists the fields that were cut.
/// - `interval` is true if the clock was not read for the record: it was written after `ticks` and,
///   if they are given, before `latest_ticks` and `latest_ns`.
/// - Integers are exact, to 64 bits: parsers that read every number as a double lose the last
///   digits beyond 2^53. Addresses are strings, "0x7f00".
/// - A value of an enumeration is its name, a string; a value without a name is a number.
/// - NaN and the infinities, which JSON lacks, are the strings "NaN", "Infinity", "-Infinity".
/// - Text that is not UTF-8 is an object with its bytes, {"hex":"ff00"}; in a name, bad bytes
///   become U+FFFD.
/// - A record whose fields cannot be read has `id`, `raw` (its payload in hex) and `fault` instead
///   of `fields`; its `event` is null if the dictionary lacks it.
/// - The lane of a loss is null if the loss concerns none. A clock jump without a lane is one of
///   all dates: they were set some time after `from_ns`, and from `time_ns` on they are later by
///   `step_ns`; `"anew":true` if the trace's clock began anew.
/// @code
///   trace_ring::exporter::json_writer lines(trace.time());
///   std::string out;
///   for (auto cursor = trace.forward(); const auto* item = cursor.next();)
///       lines.append(out, *item);
/// @endcode

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/exporter/json/value.hpp>
#include <trace_ring/reduce/item.hpp>

namespace trace_ring::inline v1::exporter {

/// Appends items as JSON lines. It caches parts of event types: use one writer for a whole trace.
class json_writer {
public:
    /// `time` must outlive it, and may be refreshed. `file`, if not empty, is "file" in every line.
    explicit json_writer(const reduce::timeline& time, std::string_view file = {}) : time_(&time) {
        if (file.empty()) return;
        text_buffer text;
        impl::append_json_string(text, file);
        file_ = ",\"file\":";
        file_ += text.view();
    }

    void append(std::string& out, const reduce::item& what) {
        own_.clear();
        append(own_, what);
        out += own_.view();
    }
    void append(text_buffer& out, const reduce::item& what) {
        std::visit([&](const auto& one) { append_item(out, one); }, what);
        out += "}\n";
    }

private:
    void append_item(text_buffer& out, const reduce::record_view& record) {
        impl::append(out, R"({"kind":"record")", file_);
        append_time(out, record.time());
        if (record.interval()) {
            out += R"(,"interval":true)";
            if (const auto latest = record.latest()) {
                impl::append(out, R"(,"latest_ticks":)", *latest);
                if (time_->known()) {
                    impl::append(out, R"(,"latest_ns":)", time_->realtime_ns(*latest));
                }
            }
        }
        const auto& lane = record.lane();
        impl::append(out, R"(,"lane":)", lane.number, R"(,"position":)", record.position());
        if (lane.listed) {
            impl::append(out, R"(,"pid":)", lane.pid);
            if (lane.process) impl::append(out, R"(,"process":)", *lane.process);
            impl::append(out, R"(,"tid":)", lane.thread, R"(,"thread":)");
            impl::append_json_string(out, lane.name);
            impl::append(out, R"(,"depth":)", lane.depth);
        }
        const impl::json_names::words* const words =
            record.known() ? &names_.of(record.type(), record.type().number) : nullptr;
        out += R"(,"event":)";
        out += words != nullptr ? std::string_view(words->name) : "null";
        if (record.begins()) out += R"(,"span":"begin")";
        if (record.ends()) out += R"(,"span":"end")";
        if (const auto place = record.began()) {
            impl::append(out, R"(,"began":{"lane":)", place->lane, R"(,"position":)", place->at,
                         '}');
        }
        if (!record.fault().empty()) {
            impl::append(out, R"(,"id":)", record.id(), R"(,"raw":")");
            impl::append_hex(out, record.payload());
            out += R"(","fault":)";
            impl::append_json_string(out, record.fault());
            return;
        }
        cut_.clear();
        out += R"(,"fields":{)";
        std::size_t i = 0;
        record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
            const std::string_view name = words->fields[i];
            if (i++ != 0) out += ',';
            out += name;
            impl::append_json_value(out, value);
            if (!value.cut()) return;
            if (!cut_.empty()) cut_ += ',';
            cut_ += name.substr(0, name.size() - 1);
        });
        out += '}';
        if (!cut_.empty()) impl::append(out, R"(,"cut":[)", cut_.view(), ']');
    }

    void append_item(text_buffer& out, const reduce::loss_item& loss) const {
        impl::append(out, R"({"kind":"loss")", file_, R"(,"cause":")", to_string(loss.cause),
                     R"(","count":)", loss.count);
        if (loss.lane != nullptr) {
            impl::append(out, R"(,"lane":)", loss.lane->number, R"(,"position":)", loss.at);
            append_time(out, loss.time);
        } else {
            out += R"(,"lane":null)";
        }
        if (loss.cause == loss_cause::damaged) {
            impl::append(out, R"(,"offset":)", loss.offset, R"(,"fault":)");
            impl::append_json_string(out, loss.what);
        }
    }
    void append_item(text_buffer& out, const reduce::clock_jump& jump) const {
        impl::append(out, R"({"kind":"clock_jump")", file_);
        if (jump.lane != nullptr) {
            impl::append(out, R"(,"lane":)", jump.lane->number, R"(,"position":)", jump.at);
        } else {
            impl::append(out, R"(,"lane":null,"from_ns":)", time_->realtime_ns(jump.from),
                         R"(,"step_ns":)", jump.step);
            if (jump.anew) out += R"(,"anew":true)";
        }
        impl::append(out, R"(,"from_ticks":)", jump.from);
        append_time(out, jump.time);
    }
    void append_time(text_buffer& out, std::uint64_t ticks) const {
        impl::append(out, R"(,"ticks":)", ticks);
        if (time_->known()) impl::append(out, R"(,"time_ns":)", time_->realtime_ns(ticks));
    }

    const reduce::timeline* time_;
    std::string file_;
    text_buffer cut_;
    text_buffer own_;
    impl::json_names names_;
};

}  // namespace trace_ring::inline v1::exporter
