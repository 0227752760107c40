// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace file, byte by byte. The file is the ring: writers of either word size map it and write
/// into it, and readers read it unchanged, also after a kill. Little-endian; offsets in bytes from
/// the start.
/// README.md next to this header has the regions in their order, and what a reader needs of each. A
/// reader checks each number before use (`check_layout`).

#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>  // IWYU pragma: export

namespace trace_ring::inline v1::layout {

/// "traceRNG" read as a little-endian word; a file of the other byte order shows it reversed.
inline constexpr std::uint64_t file_magic = 0x474E526563617274;
inline constexpr std::uint64_t file_magic_swapped = 0x74726163'65524E47;
/// 2: ends of spans that began elsewhere (span_end_record). Writers write this version only.
inline constexpr std::uint32_t file_version = 2;
inline constexpr std::uint32_t oldest_version = 1;  ///< that can be read

struct file_header {
    shared_atomic<std::uint64_t> magic;  ///< stored last at set-up: until then it is no trace file
    shared_atomic<std::uint32_t> version;
    shared_atomic<std::uint32_t> header_bytes;      ///< 4096
    shared_atomic<std::uint32_t> creator_word;      ///< 4 or 8: the creator's word size in bytes
    shared_atomic<std::uint32_t> clock;             ///< clock::clock_kind
    shared_atomic<std::uint64_t> ticks_per_second;  ///< of the clock, as estimated at set-up
    shared_atomic<std::uint64_t> id[2];             ///< random: two files differ in it
    shared_atomic<std::uint64_t> created;           ///< realtime, nanoseconds since 1970
    shared_atomic<std::uint32_t> sub_buffer_bytes;
    shared_atomic<std::uint32_t> full;              ///< full_mode, for information
    shared_atomic<std::uint64_t> sub_buffer_limit;  ///< how many there can ever be
    shared_atomic<std::uint64_t> file_limit;        ///< bytes of the whole file at the limit
    shared_atomic<std::uint64_t> ring_offset;
    shared_atomic<std::uint64_t> clocks_offset;
    shared_atomic<std::uint32_t> clock_stride;
    shared_atomic<std::uint32_t> clock_count;
    shared_atomic<std::uint64_t> processes_offset;
    shared_atomic<std::uint32_t> process_stride;
    shared_atomic<std::uint32_t> process_count;
    shared_atomic<std::uint64_t> gates_offset;
    shared_atomic<std::uint32_t> gate_stride;
    shared_atomic<std::uint32_t> gate_count;
    shared_atomic<std::uint64_t> lanes_offset;
    shared_atomic<std::uint32_t> lane_stride;
    shared_atomic<std::uint32_t> lane_count;
    shared_atomic<std::uint64_t> totals_offset;
    shared_atomic<std::uint32_t> totals_per_lane;  ///< at most 64
    shared_atomic<std::uint32_t> no_control;       ///< 1: it takes no requests from outside
    shared_atomic<std::uint64_t> dictionary_offset;
    shared_atomic<std::uint64_t> dictionary_bytes;
    shared_atomic<std::uint64_t> index_offset;
    shared_atomic<std::uint32_t> index_stride;
    shared_atomic<std::uint32_t> reserved2;
    shared_atomic<std::uint64_t> sub_buffers_offset;
    /// Of a trace that was trimmed when it was closed: the sizes that it had before, and gets again
    /// when a process joins it (recorder/trim/trim.hpp). Else zero.
    shared_atomic<std::uint64_t> whole_limit;     ///< as sub_buffer_limit, and so on
    shared_atomic<std::uint64_t> whole_capacity;  ///< sub-buffers that existed
    shared_atomic<std::uint64_t> whole_dictionary_bytes;
    shared_atomic<std::uint32_t> whole_process_count;
    shared_atomic<std::uint32_t> whole_gate_count;
    shared_atomic<std::uint32_t> whole_lane_count;  ///< 0: it is not trimmed
    shared_atomic<std::uint32_t> reserved3;
};
static_assert(sizeof(file_header) == 248);

/// The ring's words that change, each group of writers on its own cache line.
struct ring_state {
    alignas(64) shared_atomic<std::uint64_t> cursor;  ///< position claimed last; 0 at first

    alignas(64) shared_atomic<std::uint64_t> capacity;  ///< sub-buffers that exist; grows only
    shared_atomic<std::uint32_t> growth_ended;          ///< 1: the disk was full before the limit

    alignas(64) shared_atomic<std::uint32_t> held;  ///< sub-buffers held by their writers
    shared_atomic<std::uint32_t> reclaim_owner;  ///< slot + 1 of the process that reclaims; 0: none
    /// By processors' lanes, and by lanes that were folded; other lanes count for themselves.
    shared_atomic<std::uint64_t> overwritten_records;
    shared_atomic<std::uint64_t> keep_for;   ///< nanoseconds; fixed
    shared_atomic<std::uint64_t> reclaimed;  ///< sub-buffers taken from dead processes
    shared_atomic<std::uint32_t> adopted;    ///< lanes so far, modulo 2^32 (recorder's holdings)

    alignas(64) shared_atomic<std::uint32_t> last_lane;  ///< lane number given last; never reused
    shared_atomic<std::uint32_t> clock_cursor;           ///< clock triples taken
    shared_atomic<std::uint64_t> dictionary_used;        ///< bytes
    shared_atomic<std::uint64_t> refused_without_lane;   ///< records lost without a lane
    shared_atomic<std::uint64_t> types_without_room;     ///< types the dictionary had no room for
    shared_atomic<std::uint32_t> ended_elsewhere;        ///< 1: there are span_end_records
    /// The most simultaneous writers, as counted when a record was lost because lanes or
    /// sub-buffers were too few; 0: that never happened.
    shared_atomic<std::uint32_t> writers;

    /// The counts of lanes whose entries have been given to others.
    alignas(64) shared_atomic<std::uint64_t> folded_lanes;
    shared_atomic<std::uint64_t> folded_written;
    shared_atomic<std::uint64_t> folded_refused;
    shared_atomic<std::uint64_t> folded_too_long;
    shared_atomic<std::uint64_t> folded_nested;
    shared_atomic<std::uint64_t> folded_abandoned;

    alignas(64)
        shared_atomic<std::uint32_t> snapshot_request;  ///< raised from outside; see control
    shared_atomic<std::uint32_t> snapshot_done;

    /// Draining sessions, one at a time: see file/session_owner.hpp.
    alignas(64) shared_atomic<std::uint64_t> session_owner;  ///< which process; 0: none
    shared_atomic<std::uint64_t> sessions;                   ///< so far
    shared_atomic<std::uint64_t> consumed_records;
    shared_atomic<std::uint64_t> consumed_sub_buffers;
    shared_atomic<std::uint64_t> told_without_lane;  ///< of `refused_without_lane`, to sessions

    /// Of lanes whose entries have been given to others: what was not reported to a session.
    alignas(64) shared_atomic<std::uint64_t> undrained;  ///< records, readable or overwritten
    shared_atomic<std::uint64_t> untold_refused;
    shared_atomic<std::uint64_t> untold_too_long;
    shared_atomic<std::uint64_t> untold_nested;
    shared_atomic<std::uint64_t> untold_abandoned;

    /// The rings after the first: sub-buffers set aside at the beginning, one ring after the
    /// other. Positions are numbered as if each round went over the whole file at its limit, so
    /// that in any ring a position names one slot: (position - 1) mod sub_buffer_limit.
    struct quota {
        alignas(64) shared_atomic<std::uint64_t> cursor;  ///< position claimed last
        shared_atomic<std::uint64_t> sub_buffers;         ///< 0: there is no such ring; fixed
        shared_atomic<std::uint32_t> held;
        shared_atomic<std::uint32_t> writers;  ///< as above, for this ring, and the next, too
        shared_atomic<std::uint32_t> adopted;
    };
    quota quotas[max_rings - 1];
};
static_assert(sizeof(ring_state) == 704);

/// Half of a ring's sub-buffers may be held. Some of those are lent: their holders release
/// them after each record. The same of a table's lanes, if there are more than two.
[[nodiscard]] constexpr std::uint64_t lent_of_held(std::uint64_t most, bool is_quota) noexcept {
    const std::uint64_t part = most / (is_quota ? 2 : 4);
    return part != 0 ? part : most / 2 != 0 ? 1 : 0;
}
[[nodiscard]] constexpr std::uint32_t lent_of_lanes(std::uint32_t lanes) noexcept {
    return lanes >= 8 ? lanes / 8 : lanes >= 3 ? 1 : 0;
}

/// The lanes in the table of a trace of so many sub-buffers, where the options do not say.
[[nodiscard]] constexpr std::uint32_t default_lanes(std::uint64_t sub_buffers) noexcept {
    const std::uint64_t half = sub_buffers / 2;
    return static_cast<std::uint32_t>(half < 64 ? 64 : half > 4096 ? 4096 : half);
}

/// What gives each of so many writers a lane and a sub-buffer that are not lent.
struct room {
    std::uint64_t bytes = 0;  ///< of the ring's sub-buffers: a power of two of them
    std::uint64_t lanes = 0;
};
/// Constant time: a file may say anything about its writers.
[[nodiscard]] constexpr room room_for(std::uint32_t writers, std::uint32_t sub_buffer_bytes,
                                      bool is_quota) noexcept {
    room out{8, writers};
    while (out.bytes / 2 - lent_of_held(out.bytes / 2, is_quota) < writers) out.bytes *= 2;
    out.bytes *= sub_buffer_bytes;
    // The inverse of lent_of_lanes.
    if (writers > 2) out.lanes += writers < 8 ? 1 : (writers - 1) / 7;
    return out;
}

enum class presence : std::uint32_t { free = 0, live = 1, departed = 2, preparing = 3 };

/// One process. If the file system has such locks, it holds a lock on byte `lock_offset(slot)`
/// exactly as long as it lives (storage::life_lock).
struct process_entry {
    shared_atomic<std::uint32_t> state;  ///< presence
    shared_atomic<std::uint32_t> pid;
    shared_atomic<std::uint64_t> start;  ///< of the process: ticks since boot, /proc/PID/stat
    /// Its numbering of event types, from 0 to the number of processes. Processes forked from one
    /// program share it, and so do runs of a program that do not overlap.
    shared_atomic<std::uint32_t> root;
    shared_atomic<std::uint32_t> parent;  ///< slot + 1 of the process it was forked from; 0: none
    shared_atomic<std::uint32_t> word;    ///< 4 or 8
    shared_atomic<std::uint32_t> gate_page;  ///< which page of the gates
    shared_atomic<std::uint64_t> attached;   ///< clock
    shared_atomic<std::uint64_t> departed;   ///< clock; 0 while it lives, or if it was killed
    shared_atomic<std::uint64_t> name[4];    ///< up to 32 bytes, zero-filled
    shared_atomic<std::uint32_t> space;      ///< its PID namespace, by inode; 0: not known
    shared_atomic<std::uint32_t> has_lock;   ///< 1: its lock alone says whether it lives
    shared_atomic<std::uint64_t> image;      ///< random: tells apart what it ran before an exec
    shared_atomic<std::uint32_t> uses;       ///< processes that have had this entry, this one too
    shared_atomic<std::uint32_t> reserved;
    /// The process that records in its name (storage::process_word); 0: it records itself.
    shared_atomic<std::uint64_t> recorded_by;
    shared_atomic<std::uint64_t> reserved2[2];
};
static_assert(sizeof(process_entry) == 128);

/// One lane: what is known about a writer, apart from its records. Another thread may adopt the
/// lane; its records say so (owner_record), and the entry keeps the first thread. The lane of a
/// processor is written by any thread of the process that runs there; owner records say which.
struct lane_entry {
    shared_atomic<std::uint32_t> number;   ///< 0: free; never reused while the file lives
    shared_atomic<std::uint32_t> state;    ///< presence
    shared_atomic<std::uint32_t> process;  ///< slot
    shared_atomic<std::uint32_t> thread;   ///< kernel thread id; 0: any, it is a processor's
    shared_atomic<std::uint32_t> depth;    ///< 0: the thread itself; 1 to 3: nested in it
    shared_atomic<std::uint32_t> cpu;      ///< the processor whose lane it is + 1; 0: a thread's
    shared_atomic<std::uint64_t> written;  ///< records in closed sub-buffers; stored before closing
    shared_atomic<std::uint64_t> newest;   ///< position of its newest sub-buffer
    shared_atomic<std::uint64_t> refused;  ///< records lost, by cause
    shared_atomic<std::uint64_t> too_long;
    shared_atomic<std::uint64_t> nested;
    shared_atomic<std::uint64_t> abandoned;
    shared_atomic<std::uint64_t> began;    ///< clock
    shared_atomic<std::uint64_t> ended;    ///< clock; 0 while live
    shared_atomic<std::uint64_t> name[2];  ///< thread name, up to 16 bytes
    /// Records before this position were handed to a draining session, or reported to one as lost.
    shared_atomic<std::uint64_t> drained;
    shared_atomic<std::uint64_t> told_refused;  ///< how much of the counts above sessions know
    shared_atomic<std::uint32_t> told_too_long;
    shared_atomic<std::uint32_t> told_nested;

    shared_atomic<std::uint64_t> writer;   ///< the last writer: thread | depth << 32
    shared_atomic<std::uint32_t> high;     ///< high half of the clock that it announced last
    shared_atomic<std::uint32_t> adopted;  ///< times that another thread adopted this lane
    shared_atomic<std::uint32_t> ring;     ///< in which of the file's rings its sub-buffers lie
    shared_atomic<std::uint32_t> told_abandoned;  ///< to sessions, as above
    shared_atomic<std::uint64_t> overwrote;       ///< records that lay in sub-buffers it claimed
    shared_atomic<std::uint64_t> reserved[4];
};
static_assert(sizeof(lane_entry) == 192);

/// In a lane entry's counts for sessions: the entry is going to another lane.
inline constexpr std::uint64_t taken_from_sessions = ~std::uint64_t{0};

[[nodiscard]] constexpr std::uint64_t writer_word(std::uint32_t thread,
                                                  std::uint32_t depth) noexcept {
    return thread | std::uint64_t{depth} << 32;
}

/// Whether the lane's last writer is another thread than the one that began it.
[[nodiscard]] inline bool is_adopted(const lane_entry& entry) noexcept {
    // relaxed, all of them: own lane
    return entry.writer.load(relaxed) !=
           writer_word(entry.thread.load(relaxed), entry.depth.load(relaxed));
}

/// What a seek needs to know of a sub-buffer, so that it reads neither headers nor records. A hint:
/// the sub-buffer's own header decides.
struct index_entry {
    shared_atomic<std::uint64_t> pos;  ///< 0 while the entry is written
    shared_atomic<std::uint64_t> first_time;
    shared_atomic<std::uint64_t> last_time;  ///< 0 until it is closed
    shared_atomic<std::uint32_t> lane;
    /// Low half of the ring's cursor when it was closed; of its position until then. Claimers use
    /// it, not seeks: it is on a line that a claimer needs anyway.
    shared_atomic<std::uint32_t> closed_at;
};
static_assert(sizeof(index_entry) == 32);

/// The byte that a process with slot `slot` keeps locked (fcntl) while it lives, far above any
/// file's end so that a lock never covers data.
[[nodiscard]] constexpr std::uint64_t lock_offset(std::uint32_t slot) noexcept {
    return (std::uint64_t{1} << 62) + 1 + slot;
}
/// The byte whose lock guards set-up, and reclaiming from dead processes.
inline constexpr std::uint64_t reclaim_lock_offset = std::uint64_t{1} << 62;
/// The byte that the draining process keeps locked: behind those of 65536 processes.
inline constexpr std::uint64_t session_lock_offset = reclaim_lock_offset + 1 + 65536;
/// The byte whose lock is shared by all processes that have the file mapped to record, also a
/// forked one that has not recorded yet. A process that replaces the file has it alone.
inline constexpr std::uint64_t use_lock_offset = session_lock_offset + 1;
/// The byte that a process keeps locked while it reclaims before it has an entry.
inline constexpr std::uint64_t entering_lock_offset = use_lock_offset + 1;

/// The byte whose lock is shared by all processes that have the file mapped, but not to record.
inline constexpr std::uint64_t map_lock_offset = entering_lock_offset + 1;
/// The byte whose lock is shared by readers that follow the file. It keeps its inode as long as one
/// does.
inline constexpr std::uint64_t follow_lock_offset = map_lock_offset + 1;

}  // namespace trace_ring::inline v1::layout
