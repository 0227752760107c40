// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The numbers of the fields and values of OpenTelemetry's messages that the writer uses: those of
/// opentelemetry-proto 1.x, in which numbers never change their meaning.
/// test/examples/trace_reduce/exporting/otlp.proto has the same as a schema for protoc.

#include <cstdint>

namespace otlp::numbers {

using number = std::uint32_t;

struct any_value {
    static constexpr number string = 1, boolean = 2, integer = 3, real = 4, array = 5, bytes = 7;
    static constexpr number elements = 1;  // of `array`
};
struct key_value {
    static constexpr number key = 1, value = 2;
};
struct resource {
    static constexpr number attributes = 1;
};
struct scope {
    static constexpr number name = 1, version = 2;
};
/// Of TracesData and LogsData, and of the requests that export them.
struct data {
    static constexpr number resources = 1;             // ResourceSpans, ResourceLogs
    static constexpr number resource = 1, scopes = 2;  // of these: ScopeSpans, ScopeLogs
    static constexpr number scope = 1, items = 2;      // of those: Span, LogRecord
};
struct span {
    static constexpr number trace_id = 1, span_id = 2, parent = 4, name = 5, kind = 6, start = 7;
    static constexpr number end = 8, attributes = 9, links = 13, flags = 16;
    static constexpr number link_trace = 1, link_span = 2, link_flags = 6;  // of `links`
    static constexpr number internal = 1;                                   // of `kind`
};
struct log_record {
    static constexpr number time = 1, severity = 2, severity_text = 3, body = 5, attributes = 6;
    static constexpr number flags = 8, trace_id = 9, span_id = 10, observed = 11, event_name = 12;
    static constexpr number warn = 13;  // of `severity`
};
/// Bits of `flags` of spans and links.
inline constexpr std::uint32_t sampled = 1, knows_remote = 0x100;

}  // namespace otlp::numbers
