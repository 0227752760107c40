// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes items as OTLP, the protocol of OpenTelemetry: requests with spans, for a server's
/// /v1/traces, and requests with log records, for /v1/logs.
///
/// - A span whose begin and end are known is a Span, with the fields of both as attributes. It is
///   written when it ends. If its end is earlier than its begin (the date was set back), it ends
///   after the time that passed by the trace's clock, and `trace_ring.end.time` is the end's own
///   date. If dates jumped in between, `trace_ring.duration` is what passed, in nanoseconds.
/// - Its id depends on the file's id and the place of its begin. If its begin has a flow, that
///   flow's number gives its trace, on whichever machine. Otherwise it is in the trace of the span
///   around it in its lane, or in one that no other has. The span around it is its parent, or a link
///   if it is in another trace.
/// - A span of which one end is not known is a log record: `trace_ring.span` says why. Of a span
///   that has begun, the record has the span's id.
/// - Any other record is a log record with its fields as attributes. It belongs to the trace of its
///   flow if it has one, otherwise to the innermost open span of its lane.
/// - After a loss in a lane, or if its clock goes back, it is not known which of its spans are
///   still open. So later spans have no parent among them, and later records no span.
/// - Losses and clock jumps are log records with the severity WARN. So are records that cannot be
///   read: they have `trace_ring.fault`, and their bytes as `trace_ring.raw`.
/// - Times are nanoseconds since 1970. A time that is not known, or is before 1970, which the
///   format lacks, is 0, and `trace_ring.ticks` has the trace's clock (`trace_ring.time` a time
///   before 1970). A span with such a time is two log records.
/// - If a time is a lower bound, `trace_ring.interval` is true, and `trace_ring.latest` is the
///   upper bound, if it is known.
/// - A resource is a process of a trace file. Fields that were cut are listed in `trace_ring.cut`.
/// attributes.hpp says how values are written, and event_keys.hpp how fields are named.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "event_keys.hpp"
#include "ids.hpp"
#include "request_builder.hpp"

namespace otlp {

/// Why a span is not a Span.
enum class span_state {
    open,           ///< it had not ended when the trace did
    end_lost,       ///< the end is missing, or an outer span ended first
    given_up,       ///< there were more open spans than span_pairs::most
    begin_lost,     ///< of an end
    not_nested,     ///< of an end: it is not known which begin belongs to it
    undated_begin,  ///< both ends are known, and a time is not
    undated_end,    ///< the other end of such a span
    unknown_begin,  ///< of an event that the dictionary lacks
    unknown_end,    ///< the same
};
inline constexpr std::size_t span_states = 9;
[[nodiscard]] std::string_view to_string(span_state state) noexcept;

/// Makes requests of the items of trace files. It is not thread-safe. Memory: two requests, and
/// reduce::span_pairs::most open spans at most for each file, each with a copy of its begin (some
/// 500 bytes and the record); and 200 bytes for each process. The time of a call is linear in the
/// item's size, on average.
class writer {
public:
    struct settings {
        std::string host{};  ///< name of the machine that recorded; empty: not known
        std::uint64_t exported_ns =
            0;  ///< now, since 1970: when records without time were observed
        /// Which fields are flows: integers or addresses. Empty: those of type flow.
        event_keys::flow_choice is_flow{};
        std::size_t request_bytes = std::size_t{1} << 20;  ///< about so long is a request
    };
    explicit writer(settings wanted);
    writer(const writer&) = delete;
    ~writer();

    /// Adds a trace file, at any time; returns its number. `in` must outlive this. Throws
    /// format_error if the file's id cannot be read.
    [[nodiscard]] std::size_t add(const reduce::tables& in);
    /// Adds the next item of a file, in the order of its times.
    void append(std::size_t from, const reduce::item& what);
    /// The same for an item that an earlier writer has written: this writes nothing.
    void observe(std::size_t from, const reduce::item& what);
    /// Where the open spans of this file began, in no order.
    [[nodiscard]] std::vector<reduce::span_place> open_spans(std::size_t from) const;
    /// Another time for `exported_ns`, for the records that follow.
    void set_exported(std::uint64_t ns) noexcept { settings_.exported_ns = ns; }
    /// No item of this file follows: its open spans become log records.
    void end(std::size_t from);
    /// The same, and the file's number and `in` are not used any more.
    void remove(std::size_t from);
    /// Ends the requests that were begun, so that `take` returns all that was written.
    void flush();
    /// Bytes of the items in the requests that were begun.
    [[nodiscard]] std::size_t bytes() const noexcept { return traces_.bytes() + logs_.bytes(); }
    /// The requests that are complete, once. Each is longer than `request_bytes` by one item at
    /// most, and by its resources.
    [[nodiscard]] std::vector<request> take();

    /// How many log records were written for ends of spans of this state.
    [[nodiscard]] std::uint64_t count_of(span_state state) const noexcept {
        return counts_[static_cast<std::size_t>(state)];
    }
    /// These counts in words: `2 open, 1 begin lost`; empty if all spans are Spans.
    [[nodiscard]] std::string counts_in_words() const;

private:
    struct source;
    struct kept;
    struct log_about;

    void append_item(source& in, const reduce::record_view& record);
    void append_item(source& in, const reduce::loss_item& loss);
    void append_item(source& in, const reduce::clock_jump& jump);
    /// `given_up(kept&)` is called for a span that is given up.
    template <class GivenUp>
    void begin(source& in, const reduce::record_view& record, GivenUp&& given_up);
    /// `passed(kept&)` is called for spans that have lost their ends.
    template <class Passed>
    reduce::ended_span<kept> end(source& in, const reduce::record_view& record, Passed&& passed);
    void write_end(source& in, const reduce::record_view& record);
    void gap(source& in, const reduce::lane_info& lane);
    void write_span(source& in, const kept& begun, const reduce::record_view& end);
    void leave(source& in, const kept& begun, span_state state);
    void write_log(source& in, const reduce::record_view& record, const span_context& around,
                   std::optional<span_state> state = {});
    /// The trace and span that a record belongs to.
    [[nodiscard]] span_context around(source& in, const reduce::record_view& record);
    /// The first flow of a record; 0: none.
    [[nodiscard]] std::uint64_t flow_of(source& in, const reduce::record_view& record);
    [[nodiscard]] std::size_t resource_of(source& in, const reduce::lane_info* lane);

    settings settings_;
    std::deque<std::unique_ptr<source>> sources_{};
    std::deque<std::string> resources_{};
    request_builder traces_;
    request_builder logs_;
    std::uint64_t counts_[span_states] = {};
};

}  // namespace otlp
