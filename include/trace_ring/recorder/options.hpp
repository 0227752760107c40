// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a recorder is asked to be. Everything is decided at set-up.
///
/// What is kept when the oldest is overwritten (S: the sub-buffers of the ring that an event is
/// in):
/// @code
///   filled now by a thread   as long as that takes, however often others go round: one sub-buffer
///                            at most, one record at least
///   closed                   until S / 2 others have been claimed; so a quiet thread keeps all
///                            that it recorded within the last half round of the ring. Threads
///                            that record much claim some ahead, S / 16 all together
///   of short threads         about as many records as fit: who ends hands its half-empty
///                            sub-buffer on, and the next to come pays 24 bytes for saying who it
///                            is, 40 if its name is another
///   of an event with a quota what its own ring holds, whatever happens in the others
/// @endcode
/// With `keep_for`, what is kept is given by time: a ring that extends does so only while all that
/// it holds is younger, and one that keeps the oldest does so only while it is.
///
/// At most half of a ring is held by writers; who comes then is refused, and counted.

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/nanoseconds.hpp>

namespace trace_ring::inline v1 {

/// What happens when every sub-buffer has been used.
enum class full_mode : std::uint32_t {
    overwrite_oldest = 0,       ///< the flight recorder: the newest records are kept
    discard_newest = 1,         ///< what came first is kept; later records are refused and counted
    stop = 2,                   ///< as discard_newest, and the first refusal shuts every gate
    block = 3,                  ///< the writer waits for a reader, up to `block_for`, then refuses
    extend_then_discard = 4,    ///< the file grows up to `limit`, then as discard_newest
    extend_then_overwrite = 5,  ///< the file grows up to `limit`, then as overwrite_oldest
};

enum class if_exists {
    fail,     ///< an existing file is an error
    replace,  ///< an old trace file is replaced in one step; one in use, or no trace file, is an
              ///< error
    attach,  ///< join the processes that record into it, by its sizes, its full_mode and its clock;
             ///< it is made if there is none, by one of those that come at once. A symbolic link is
             ///< not followed, and the file of another user is refused (see any_owner)
};

enum class on_fork {
    own_lanes,  ///< the child goes on recording, in lanes of its own
    stop,       ///< the child records nothing
};

enum class control_mode {
    on,   ///< whoever may write to the file may ask for snapshots: see `control`
    off,  ///< the program writes no snapshot that it is asked for from outside
};

struct recorder_options {
    /// The trace file. Empty: memory. "%p" stands for the process id, "%e" for the program's name,
    /// "%%" for a percent sign.
    std::string file{};
    /// Memory with a file descriptor (`recorder::descriptor`), to hand to another process.
    bool memory_file = false;
    /// Bytes of sub-buffers at first; rounded up to whole ones. Less than eight is an error: 32 KiB
    /// by default. A file has all of them from the beginning, however little is recorded, and its
    /// tables before them: 17.6 MB with what is preset here, 430 KB with the least size. Fewer
    /// `lanes`, `processes`, `programs`, `totals` and `dictionary_bytes` make the tables smaller.
    std::uint64_t size = std::uint64_t{16} << 20;
    /// Of `size`, bytes set aside for the events that say `static constexpr std::uint32_t ring =
    /// 1;` (2, 3): rings of their own, which no other event can use up. At least eight sub-buffers
    /// each, and eight are left to the others. An event whose ring is not set aside goes with the
    /// others, and each of its records takes the cold path: several times as long.
    std::vector<std::uint64_t> quotas{};
    /// Bytes of sub-buffers at most, for the modes that extend; 0: sixteen times `size`. Not less
    /// than `size`.
    std::uint64_t limit = 0;
    /// Bytes by which a growing file grows.
    std::uint64_t step = std::uint64_t{16} << 20;
    /// A power of two from 512 to 32768; 0: 4096, and more in a trace of 256 MiB or more, as long
    /// as there are 32768 of them: fewer to claim, to index and to seek among, and a thread that
    /// records little still holds but a small part. The longest record is 80 bytes shorter.
    std::uint32_t sub_buffer_bytes = 0;
    /// Where snapshots go that are asked for from outside, ".N" added; empty: beside `file`. The
    /// same patterns as in `file`.
    std::string snapshot_file{};
    /// So many of them are written at most, by each process, and the next not before so much time
    /// has passed: who may write to the file cannot fill the disk.
    std::uint32_t snapshots = 64;
    nanoseconds snapshot_gap{1'000'000'000};
    control_mode control = control_mode::on;
    full_mode full = full_mode::overwrite_oldest;
    nanoseconds block_for{1'000'000};
    if_exists exists = if_exists::fail;
    /// `attach` also joins a file of another user, who can then spoil what is recorded.
    bool any_owner = false;
    on_fork fork = on_fork::own_lanes;
    /// How long records are to be kept, to within one sub-buffer's time; 0: by bytes alone. With
    /// extend_then_overwrite the trace grows only while all that it holds is younger, and at
    /// `limit` the oldest goes however young. The modes that keep the oldest overwrite what is
    /// older, and refuse new records only while nothing is. Not for overwrite_oldest, nor without a
    /// clock.
    nanoseconds keep_for{0};
    /// Lanes remembered; 0: a quarter of the sub-buffers, from 64 to 4096.
    std::uint32_t lanes = 0;
    /// Processes remembered (each child of a fork that records is one), at least as many as record
    /// at once. The entry of one that is gone is given to another when there is no other: its
    /// records stay, under the numbers of its lanes.
    std::uint32_t processes = 256;
    /// Unrelated processes that may record at once: each has gates and event ids of its own.
    std::uint32_t programs = 8;
    /// Event types with totals, at most 64.
    std::uint32_t totals = 16;
    std::uint64_t dictionary_bytes = std::uint64_t{256} << 10;
    /// Set up with every gate shut; `resume()` opens them.
    bool paused = false;
};

/// `pattern` with "%p", "%e" and "%%" replaced; other uses of '%' stay as they are.
[[nodiscard]] inline std::string expand_file_name(std::string_view pattern) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        if (pattern[i] != '%' || (next != 'p' && next != 'e' && next != '%')) {
            out += pattern[i];
            continue;
        }
        ++i;
        if (next == 'p') out += std::to_string(::getpid());
        if (next == 'e') out += program_invocation_short_name;
        if (next == '%') out += '%';
    }
    return out;
}

}  // namespace trace_ring::inline v1
