// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The references of each thread that are not recorded yet. They are in a file that the traced
/// processes and the analysing program share, so no reference is lost when a process ends in any
/// way. The places are found by their number; a thread that finds one free takes it by a swap.

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/references.hpp>

namespace trace_ring::inline v1::instrument {

/// The progress of a thread in recording its open references, in several records. It is one word,
/// so it is consistent wherever the thread ends.
struct recording_progress {
    std::uint32_t sequence = 0;   ///< of the current record, or of the next one
    std::uint16_t recorded = 0;   ///< references that are in records
    std::uint16_t in_flight = 0;  ///< references in the current record; 0: none

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return std::uint64_t{sequence} << 32 | std::uint64_t{recorded} << 16 | in_flight;
    }
    [[nodiscard]] static constexpr recording_progress from(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16),
                static_cast<std::uint16_t>(word)};
    }
};

/// The open references of a thread. A signal handler that interrupts adding one uses the thread's
/// next place.
struct alignas(64) open_references {
    static constexpr std::uint32_t room = 6144;
    static constexpr std::size_t size = 131072;

    shared_atomic<std::uint32_t> end;  ///< the number of entries in `all`, with extensions
    /// The number at which they are recorded. There is room for one more, with its extension.
    std::uint32_t limit;
    /// How often hooks had this place to add a reference, counted separately, by which the
    /// analysing program sees whether any are missing. Only the thread itself uses it while it
    /// lives.
    std::uint64_t calls;
    std::uint64_t recorded;                 ///< references that are in records, likewise
    shared_atomic<std::uint32_t> thread;    ///< its number in the kernel; 0: the place is free
    shared_atomic<std::uint32_t> process;   ///< likewise
    shared_atomic<std::uint64_t> progress;  ///< recording_progress
    // For this place, for all threads that have had it.
    shared_atomic<std::uint64_t> suppressed;    ///< references of the tracing itself, and into it
    shared_atomic<std::uint64_t> self_fed;      ///< of the tracing itself, but traced
    shared_atomic<std::uint64_t> stops;         ///< how often the thread waited for the reader
    shared_atomic<std::uint64_t> stopped_ns;    ///< total waiting time
    shared_atomic<std::uint64_t> lost_records;  ///< records of references that were refused
    shared_atomic<std::uint64_t> lost_references;  ///< and the references in them
    /// Calls that were cut off by a jump or the thread's end before the reference was made.
    shared_atomic<std::uint64_t> cut_off;
    /// Executions of instructions whose references are unknown to the hooks.
    shared_atomic<std::uint64_t> unseen;
    std::uint32_t extensions;  ///< number of extensions in `all`; used only by the thread
    std::uint32_t unused[5];
    alignas(64) plain_reference all[room];
    // Packs the references.
    reference_packer packer;
    static constexpr std::size_t packed_room = 16192;
    std::byte packed[packed_room];

    /// The number of references in the first `entries` of `all` from `from` on.
    [[nodiscard]] std::uint64_t count(std::uint32_t from, std::uint32_t entries) const noexcept {
        std::uint64_t others = 0;
        for (std::uint32_t i = from; i < from + entries; ++i)
            others += all[i].what == plain_reference::extension_code;
        return entries - others;
    }
    /// The owner of the place has ended in the middle of adding a reference.
    void note_cut_off() noexcept {
        // relaxed, all: no other thread uses the place now
        if (recording_progress::from(progress.load(relaxed)).recorded != 0) return;
        const std::uint32_t entries = end.load(relaxed);  // relaxed: as above
        const std::uint64_t references = count(0, entries);
        extensions = static_cast<std::uint32_t>(entries - references);
        if (calls != recorded + references + 1) return;
        --calls;
        cut_off.fetch_add(1, relaxed);  // relaxed: as above
    }
};
static_assert(sizeof(open_references) <= open_references::size);
static_assert(offsetof(open_references, calls) == 8);
static_assert(offsetof(open_references, thread) == 24);
static_assert(offsetof(open_references, progress) == 32);
static_assert(offsetof(open_references, unseen) == 96);
static_assert(offsetof(open_references, extensions) == 104);
static_assert(offsetof(open_references, all) == 128);
static_assert(offsetof(open_references, packer) == 128 + open_references::room * 16);

/// The file: this header, then the places; place number 0 is in the header.
struct alignas(64) open_references_table {
    static constexpr std::uint32_t magic_number = 0x4F525254;  // "TRRO" as its bytes lie
    static constexpr std::uint32_t version_number = 3;
    static constexpr std::uint32_t most_places = 4095;

    shared_atomic<std::uint32_t> magic;  ///< stored last, when the rest is complete
    std::uint32_t version;
    std::uint32_t places;  ///< including this one
    /// The process that drains the trace, which writers wait for; 0: nobody drains it.
    shared_atomic<std::uint32_t> reader;
    /// Threads that found no place, and the number of their references.
    shared_atomic<std::uint64_t> untraced_threads;
    shared_atomic<std::uint64_t> untraced_references;
    std::uint32_t packs;  ///< 1: records are packed_references; 0: plain_references
    /// Set to test the suppression: references of the tracing itself are traced, too.
    std::uint32_t traces_itself;
    /// 1: the reader has finished; programs that are still running continue untraced.
    shared_atomic<std::uint32_t> closed;
    /// 1: the reader locks `life_byte` as long as it lives.
    shared_atomic<std::uint32_t> locked;
    std::uint32_t skips_blocks;  ///< 1: only data is traced, and where functions begin and end

    /// The byte of the file that the reader locks as long as it lives (storage::life_lock).
    static constexpr std::uint64_t life_byte = std::uint64_t{1} << 40;

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
    /// Whether a file of this size can be such a table, and is complete.
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
        bool skips_blocks = false;
    };
    /// Initializes new zeroed memory of at least bytes_for(how.places + 1) bytes.
    void begin(const settings& how) noexcept {
        version = version_number;
        places = how.places + 1;
        reader.store(how.reader, relaxed);  // relaxed: the magic number publishes it
        packs = how.packs ? 1 : 0;
        traces_itself = how.traces_itself ? 1 : 0;
        skips_blocks = how.skips_blocks ? 1 : 0;
        // order: open.there:B pairs with open.there:A
        magic.store(magic_number, release);
    }
};
static_assert(sizeof(open_references_table) <= open_references::size);

}  // namespace trace_ring::inline v1::instrument
