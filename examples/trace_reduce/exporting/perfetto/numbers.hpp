// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The numbers of the fields and values of Perfetto's messages that the exporter writes. They are
/// part of its public format, in which numbers never change their meaning.
/// test/examples/trace_reduce/exporting/perfetto.proto has the same as a schema for protoc.

#include <cstdint>

namespace trace_reduce::exporting::impl {

struct perfetto {
    using number = std::uint32_t;
    struct trace {
        static constexpr number packet = 1;
    };
    struct packet {
        static constexpr number clock_snapshot = 6, time = 8, sequence = 10, track_event = 11;
        static constexpr number interned = 12, sequence_flags = 13, previous_dropped = 42;
        static constexpr number defaults = 59, track_descriptor = 60, first_on_sequence = 87;
        static constexpr number default_event = 11, default_clock = 58;  // of `defaults`
        static constexpr number state_cleared = 1, needs_state = 2;      // of `sequence_flags`
    };
    struct clock_snapshot {
        static constexpr number clocks = 1, primary = 2;
        static constexpr number clock_id = 1, clock_time = 2;  // of `clocks`
        static constexpr number realtime = 1, monotonic = 3;   // clocks
    };
    struct interned_data {
        static constexpr number categories = 1, names = 2, annotations = 3;
        static constexpr number iid = 1, name = 2;  // of each of them
    };
    struct track_descriptor {
        static constexpr number uuid = 1, name = 2, process = 3, thread = 4, parent = 5,
                                counter = 8;
        static constexpr number process_pid = 1, process_name = 6;                // of `process`
        static constexpr number thread_pid = 1, thread_tid = 2, thread_name = 5;  // of `thread`
    };
    struct track_event {
        static constexpr number category_iid = 3, annotations = 4, type = 9, name_iid = 10;
        static constexpr number track = 11, name = 23, counter = 30, double_counter = 44, flow = 47;
        static constexpr number begins = 1, ends = 2, instant = 3, counts = 4;  // of `type`
    };
    struct debug_annotation {
        static constexpr number name_iid = 1, boolean = 2, u64 = 3, i64 = 4, floating = 5;
        static constexpr number string = 6, pointer = 7, name = 10, entries = 11, elements = 12;
    };
};

}  // namespace trace_reduce::exporting::impl
