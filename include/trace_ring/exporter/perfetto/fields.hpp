// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The numbers of the fields and values of Perfetto's messages that the exporter writes. They are
/// part of its public format, in which numbers never change their meaning.
/// test/exporter/perfetto.proto has the same as a schema for protoc.

#include <cstdint>

namespace trace_ring::inline v1::exporter::impl::perfetto {

struct trace {
    static constexpr std::uint32_t packet = 1;
};

struct packet {
    static constexpr std::uint32_t clock_snapshot = 6;
    static constexpr std::uint32_t time = 8;
    static constexpr std::uint32_t sequence = 10;
    static constexpr std::uint32_t track_event = 11;
    static constexpr std::uint32_t interned = 12;
    static constexpr std::uint32_t sequence_flags = 13;
    static constexpr std::uint32_t previous_dropped = 42;
    static constexpr std::uint32_t defaults = 59;
    static constexpr std::uint32_t track_descriptor = 60;
    static constexpr std::uint32_t first_on_sequence = 87;
    // of `defaults`
    static constexpr std::uint32_t default_event = 11;
    static constexpr std::uint32_t default_clock = 58;
    // of `sequence_flags`
    static constexpr std::uint64_t state_cleared = 1;
    static constexpr std::uint64_t needs_state = 2;
};

struct clock_snapshot {
    static constexpr std::uint32_t clocks = 1;
    static constexpr std::uint32_t primary = 2;
    // of `clocks`
    static constexpr std::uint32_t clock_id = 1;
    static constexpr std::uint32_t clock_time = 2;
    // clocks
    static constexpr std::uint64_t realtime = 1;
    static constexpr std::uint64_t monotonic = 3;
};

struct interned_data {
    static constexpr std::uint32_t categories = 1;
    static constexpr std::uint32_t names = 2;
    static constexpr std::uint32_t annotations = 3;
    // of each of them
    static constexpr std::uint32_t iid = 1;
    static constexpr std::uint32_t name = 2;
};

struct track_descriptor {
    static constexpr std::uint32_t uuid = 1;
    static constexpr std::uint32_t name = 2;
    static constexpr std::uint32_t process = 3;
    static constexpr std::uint32_t thread = 4;
    static constexpr std::uint32_t parent = 5;
    static constexpr std::uint32_t counter = 8;
    // of `process`
    static constexpr std::uint32_t process_pid = 1;
    static constexpr std::uint32_t process_name = 6;
    // of `thread`
    static constexpr std::uint32_t thread_pid = 1;
    static constexpr std::uint32_t thread_tid = 2;
    static constexpr std::uint32_t thread_name = 5;
};

struct track_event {
    static constexpr std::uint32_t category_iid = 3;
    static constexpr std::uint32_t annotations = 4;
    static constexpr std::uint32_t type = 9;
    static constexpr std::uint32_t name_iid = 10;
    static constexpr std::uint32_t track = 11;
    static constexpr std::uint32_t name = 23;
    static constexpr std::uint32_t counter = 30;
    static constexpr std::uint32_t double_counter = 44;
    static constexpr std::uint32_t flow = 47;
    // of `type`
    static constexpr std::uint64_t begins = 1;
    static constexpr std::uint64_t ends = 2;
    static constexpr std::uint64_t instant = 3;
    static constexpr std::uint64_t counts = 4;
};

struct debug_annotation {
    static constexpr std::uint32_t name_iid = 1;
    static constexpr std::uint32_t boolean = 2;
    static constexpr std::uint32_t u64 = 3;
    static constexpr std::uint32_t i64 = 4;
    static constexpr std::uint32_t floating = 5;
    static constexpr std::uint32_t string = 6;
    static constexpr std::uint32_t pointer = 7;
    static constexpr std::uint32_t name = 10;
    static constexpr std::uint32_t entries = 11;
    static constexpr std::uint32_t elements = 12;
};

}  // namespace trace_ring::inline v1::exporter::impl::perfetto
