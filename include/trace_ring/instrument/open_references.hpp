// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What each thread has referenced and not recorded yet. It lies in a file that the traced
/// processes and whoever analyses them share, so nothing of it is lost when a process ends, however
/// it ends. The places are found by their number; whoever finds one free takes it by a swap.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/record/event/references.hpp>

namespace trace_ring::inline v1::instrument {

/// How far a thread is with recording what it has open, several records: one word, so that it is
/// consistent wherever the thread ends.
struct recording_progress {
    std::uint32_t sequence = 0;   ///< of the record that is being made, or of the next one
    std::uint16_t recorded = 0;   ///< references that are in records
    std::uint16_t in_flight = 0;  ///< those of the record that is being made; 0: none is

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return std::uint64_t{sequence} << 32 | std::uint64_t{recorded} << 16 | in_flight;
    }
    [[nodiscard]] static constexpr recording_progress from(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16),
                static_cast<std::uint16_t>(word)};
    }
};

/// The references that a thread has open. A signal handler that interrupts the adding of one uses
/// the thread's next.
struct alignas(64) open_references {
    static constexpr std::int32_t room = 4096;
    static constexpr std::size_t size = 102400;
    /// `limit` of one to which a reference is added now: less than any number.
    static constexpr std::int32_t busy = -1;
    /// `limit` of one to which none is: there is room below it.
    static constexpr std::int32_t idle = room;

    /// What each reference looks at.
    struct head {
        shared_atomic<std::int32_t> limit;
        shared_atomic<std::int32_t> end;  ///< how many there are in `all`
    };
    [[nodiscard, gnu::always_inline]] static open_references* of(head* first) noexcept {
        return static_cast<open_references*>(static_cast<void*>(first));
    }

    head now;
    /// The trace's own memory, into which no reference is traced.
    std::uint64_t own_begin;
    std::uint64_t own_size;
    shared_atomic<std::uint32_t> thread;   ///< its number in the kernel; 0: the place is free
    shared_atomic<std::uint32_t> process;  ///< likewise
    shared_atomic<std::uint32_t> next;     ///< the thread's next place; 0: none yet
    std::uint32_t unused;
    shared_atomic<std::uint64_t> progress;  ///< recording_progress
    // Of this place, whichever threads had it.
    shared_atomic<std::uint64_t> suppressed;    ///< references of the tracing itself, and into it
    shared_atomic<std::uint64_t> self_fed;      ///< of the tracing itself, and traced all the same
    shared_atomic<std::uint64_t> stops;         ///< how often the thread waited for the reader
    shared_atomic<std::uint64_t> stopped_ns;    ///< and how long, all together
    shared_atomic<std::uint64_t> lost_records;  ///< records of references that were refused
    shared_atomic<std::uint64_t> lost_references;  ///< and the references in them
    alignas(8) plain_reference all[room];
    // For those that are packed.
    reference_packer packer;
    static constexpr std::size_t packed_room = 16256;
    std::byte packed[packed_room];
};
static_assert(sizeof(open_references) <= open_references::size);
static_assert(offsetof(open_references, own_begin) == 8);
static_assert(offsetof(open_references, thread) == 24);
static_assert(offsetof(open_references, all) == 96);
static_assert(offsetof(open_references, packer) == 96 + open_references::room * 16);

/// The file: this, then the places, of which number 0 is here.
struct alignas(64) open_references_table {
    static constexpr std::uint32_t magic_number = 0x4F525254;  // "TRRO" as its bytes lie
    static constexpr std::uint32_t version_number = 1;
    static constexpr std::uint32_t most_places = 1023;

    shared_atomic<std::uint32_t> magic;  ///< stored last, when the rest is there
    std::uint32_t version;
    std::uint32_t places;  ///< with this one
    /// The process that drains the trace, which writers wait for; 0: nobody drains it.
    shared_atomic<std::uint32_t> reader;
    /// Threads that found no place: they are not traced.
    shared_atomic<std::uint64_t> untraced_threads;
    std::uint32_t packs;  ///< 1: records are packed_references; 0: plain_references
    /// Set by who wants to see what happens without: references of the tracing itself are traced.
    std::uint32_t traces_itself;

    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint32_t places) noexcept {
        return std::uint64_t{places} * open_references::size;
    }
    /// Place `number`, from 1 on.
    [[nodiscard]] open_references& place(std::uint32_t number) noexcept {
        auto* const base = reinterpret_cast<std::byte*>(this);
        return *static_cast<open_references*>(static_cast<void*>(base + bytes_for(number)));
    }
    [[nodiscard]] std::uint32_t number_of(const open_references& place) const noexcept {
        const auto from = reinterpret_cast<const std::byte*>(&place);
        const auto bytes =
            static_cast<std::size_t>(from - reinterpret_cast<const std::byte*>(this));
        return static_cast<std::uint32_t>(bytes / open_references::size);
    }
    /// Whether a file of so many bytes can be such a table, and is complete.
    [[nodiscard]] bool is_sound(std::uint64_t bytes) const noexcept {
        // order: open.there:A pairs with open.there:B
        return bytes >= open_references::size && magic.load(acquire) == magic_number &&
               version == version_number && places > 1 && places <= most_places + 1 &&
               bytes >= bytes_for(places);
    }

    struct settings {
        std::uint32_t places = most_places;
        std::uint32_t reader = 0;
        bool packs = true;
        bool traces_itself = false;
    };
    /// In new memory of zeros, of at least bytes_for(how.places + 1) bytes.
    void begin(const settings& how) noexcept {
        version = version_number;
        places = how.places + 1;
        reader.store(how.reader, relaxed);  // relaxed: the magic number publishes it
        packs = how.packs ? 1 : 0;
        traces_itself = how.traces_itself ? 1 : 0;
        // order: open.there:B pairs with open.there:A
        magic.store(magic_number, release);
    }
};
static_assert(sizeof(open_references_table) <= open_references::size);

}  // namespace trace_ring::inline v1::instrument
