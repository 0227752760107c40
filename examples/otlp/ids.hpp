// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ids of traces and spans. They depend only on the trace file's id and on places in it, or on
/// a flow's number. So each export of a file gives the same ids, and a server recognizes what it
/// has. For that reason these functions must never change.

#include <cstdint>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "../records/file_id.hpp"

namespace otlp {

namespace reduce = trace_ring::reduce;
using records::file_id;

namespace impl {

/// The output function of the SplitMix64 generator: a bijection in which each bit of the input
/// changes about half of the bits of the output.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
    value += 0x9E3779B97F4A7C15;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
}
/// A hash of some words. For given `words` but the last it is a bijection of the last.
template <class... Words>
[[nodiscard]] constexpr std::uint64_t hash(std::uint64_t seed, Words... words) noexcept {
    std::uint64_t sum = mixed(seed);  // so that seeds and words that are near make no equal sums
    ((sum = mixed(sum ^ static_cast<std::uint64_t>(words))), ...);
    return sum;
}
inline void put_big_endian(char* at, std::uint64_t value) noexcept {
    for (int i = 0; i < 8; ++i) at[i] = static_cast<char>(value >> (56 - 8 * i));
}

}  // namespace impl

/// A trace in the meaning of OpenTelemetry: spans that belong together. Its 16 bytes are the two
/// numbers, each with the highest byte first.
struct trace_id {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend constexpr bool operator==(const trace_id&, const trace_id&) noexcept = default;
};

/// A span of a trace. 0: none.
struct span_context {
    trace_id trace{};
    std::uint64_t span = 0;
};

/// Of the span that began there. Two spans of one lane never have the same id.
[[nodiscard]] constexpr std::uint64_t span_id_of(const file_id& file,
                                                 const reduce::span_place& begin) noexcept {
    const auto id = impl::hash(1, file.words[0], file.words[1], begin.lane, begin.at);
    return id != 0 ? id : 1;
}
/// Of a span without a flow, which no other span is around, and of the spans inside it.
[[nodiscard]] constexpr trace_id trace_id_of(const file_id& file,
                                             const reduce::span_place& begin) noexcept {
    const trace_id id{impl::hash(2, file.words[0], file.words[1], begin.lane, begin.at),
                      impl::hash(3, file.words[0], file.words[1], begin.lane, begin.at)};
    return id.low != 0 ? id : trace_id{id.high, 1};
}
/// Of a flow, in any file.
[[nodiscard]] constexpr trace_id trace_id_of_flow(std::uint64_t flow) noexcept {
    const trace_id id{impl::hash(4, flow), impl::hash(5, flow)};
    return id.low != 0 ? id : trace_id{id.high, 1};
}

inline void append(trace_ring::exporter::text_buffer& out, const trace_id& id) {
    char* const at = out.room(16);
    impl::put_big_endian(at, id.high);
    impl::put_big_endian(at + 8, id.low);
    out.add(16);
}
inline void append(trace_ring::exporter::text_buffer& out, std::uint64_t span) {
    impl::put_big_endian(out.room(8), span);
    out.add(8);
}

}  // namespace otlp
