// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring's control: 448 bytes in front of its records, in any storage, with the same layout for
/// every kind, every process and either word size. Members are grouped by their writers, a cache
/// line each. All bytes zero is a ring at its beginning, so a ring in static storage needs no
/// set-up; only a ring in a file needs the first line to describe it.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/record/concept.hpp>

namespace trace_ring::inline v1 {

/// "TRRG" in a little-endian word.
inline constexpr std::uint32_t ring_magic = 0x47525254;
inline constexpr std::uint32_t ring_version = 2;

struct ring_control {
    // Describes the ring. Written at set-up, except `extent` (writers increase it) and `stopped`.
    shared_atomic<std::uint32_t> magic;  ///< stored last: before that it is no ring
    shared_atomic<std::uint32_t> version;
    shared_atomic<std::uint32_t> layout;        ///< record::layout
    shared_atomic<std::uint32_t> record_bytes;  ///< of an element or a sub-buffer
    shared_atomic<std::uint32_t> stride;        ///< from one slot or sub-buffer to the next
    shared_atomic<std::uint32_t> many_writers;
    shared_atomic<std::uint64_t> limit;   ///< most bytes of the storage, this control included
    shared_atomic<std::uint64_t> extent;  ///< slots << 1 | 1 when the ring will not grow any more
    shared_atomic<std::uint64_t> origin;  ///< position before the first
    shared_atomic<std::uint32_t> clock;   ///< clock_kind
    shared_atomic<std::uint32_t> stopped;
    shared_atomic<std::uint32_t> creator_word;  ///< 4 or 8: the creator's word size in bytes
    shared_atomic<std::uint32_t> reserved;

    claim::line claimed;  ///< the writers'

    // The consumer's.
    shared_atomic<std::uint64_t> consumed;          ///< positions up to here may be overwritten
    shared_atomic<std::uint64_t> passed_over;       ///< records it gave up waiting for
    shared_atomic<std::uint64_t> consumed_records;  ///< sub-buffers: records in those consumed
    shared_atomic<std::uint64_t> session_owner;     ///< the process that drains it; 0: none
    shared_atomic<std::uint64_t> drained;           ///< records handed to such sessions, or lost
    shared_atomic<std::uint64_t> told_refused;      ///< part of the counts below that they know of
    shared_atomic<std::uint64_t> told_too_long;
    shared_atomic<std::uint64_t> told_nested;

    // The writers' counts of losses.
    shared_atomic<std::uint64_t> refused;
    shared_atomic<std::uint64_t> too_long;
    shared_atomic<std::uint64_t> nested;
    shared_atomic<std::uint64_t> vacant;       ///< positions without a record
    shared_atomic<std::uint64_t> overwritten;  ///< sub-buffers: records; tables compute it
    shared_atomic<std::uint64_t> reserved3[3];

    notify::line notified;

    // The clock at set-up: see clock_snapshot.
    shared_atomic<std::uint64_t> ticks;
    shared_atomic<std::uint64_t> monotonic;
    shared_atomic<std::uint64_t> realtime;
    shared_atomic<std::uint64_t> uncertainty;
    shared_atomic<std::uint64_t> ticks_per_second;
    shared_atomic<std::uint64_t> reserved4[3];
};
static_assert(sizeof(ring_control) == storage::control_bytes);
static_assert(std::is_standard_layout_v<ring_control>);
static_assert(offsetof(ring_control, layout) == 8);
static_assert(offsetof(ring_control, stride) == 16);
static_assert(offsetof(ring_control, limit) == 24);
static_assert(offsetof(ring_control, extent) == 32);
static_assert(offsetof(ring_control, origin) == 40);
static_assert(offsetof(ring_control, clock) == 48);
static_assert(offsetof(ring_control, creator_word) == 56);
static_assert(offsetof(ring_control, claimed) == 64);
static_assert(offsetof(ring_control, consumed) == 192);
static_assert(offsetof(ring_control, refused) == 256);
static_assert(offsetof(ring_control, vacant) == 280);
static_assert(offsetof(ring_control, notified) == 320);
static_assert(offsetof(ring_control, ticks) == 384);

/// The properties that a ring must have for a program to attach to it.
struct ring_shape {
    record::layout layout;
    std::uint32_t record_bytes;
    std::uint32_t stride;
    bool many_writers;
    bool grows;
};

/// The fault of the control at the start of `bytes` bytes; empty if it is sound. Checks every
/// number that is later used to compute an address.
[[nodiscard]] inline std::string_view fault_of(const ring_control& control, std::uint64_t bytes,
                                               const ring_shape& expected) noexcept {
    // order: ring.attach:A pairs with ring.publish:A
    if (control.magic.load(acquire) != ring_magic) return "not a ring";
    const auto differs = [](const shared_atomic<std::uint32_t>& word, std::uint32_t value) {
        return word.load(relaxed) != value;  // relaxed: unchanged since the magic was stored
    };
    if (differs(control.version, ring_version)) return "a ring of another version";
    if (differs(control.layout, static_cast<std::uint32_t>(expected.layout)))
        return "a ring of another layout";
    if (differs(control.record_bytes, expected.record_bytes) ||
        differs(control.stride, expected.stride))
        return "a ring of records of another size";
    if (differs(control.many_writers, expected.many_writers ? 1U : 0U))
        return "a ring with another claim";
    // relaxed: bounds that only grow, and are checked against the real number of bytes
    const std::uint64_t extent = control.extent.load(relaxed);
    const std::uint64_t limit = control.limit.load(relaxed);  // relaxed: as above
    const std::uint64_t slot_count = (bytes - sizeof(ring_control)) / expected.stride;
    if (extent >> 1 == 0 || extent >> 1 > slot_count) return "a ring cut short";
    if ((extent & 1U) == 0 && !expected.grows) return "a ring that grows";
    if (limit < sizeof(ring_control) || limit > std::uint64_t{1} << 62)
        return "a ring of an impossible size";
    return {};
}

}  // namespace trace_ring::inline v1
