// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The marks, spans and samples that every timeline format shows; viewer/stage.hpp makes them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/viewer/tracks.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

namespace trace_ring::inline v1::exporter {

/// One event type, as it is drawn.
struct viewer_event {
    std::size_t number = 0;  ///< in the order in which they appeared
    const reduce::event_type* type = nullptr;
    std::vector<bool> flows;     ///< by field
    std::vector<bool> counters;  ///< by field
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
    std::string_view name;                        ///< any bytes
    const reduce::record_view* record = nullptr;  ///< whose fields are shown; may be null
    std::span<const viewer_note> notes;
    std::span<const std::uint64_t> flows;  ///< the flows that it is part of
};

/// A point of a curve: one field of one event of one process.
struct viewer_sample {
    std::size_t field = 0;
    reduce::field_value value;
};

}  // namespace trace_ring::inline v1::exporter
