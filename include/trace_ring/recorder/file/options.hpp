// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The options of a recorder. All of them are decided at set-up.
/// @code
///   trace_ring::recorder recorder{{.file = "orders.trace", .size = 64 << 20}};
/// @endcode
/// Which records are kept when the oldest are overwritten (S: the sub-buffers of the event's ring):
/// @code
///   being filled by a thread  as long as that takes, however many rounds others make: at most one
///                             sub-buffer, at least one record
///   closed                    until S / 2 others have been claimed, so a quiet thread keeps all
///                             that it recorded within the last half round of the ring. Threads
///                             that record much claim some ahead, S / 16 all together
///   of short threads          about as many records as fit: a thread that ends releases its
///                             half-empty sub-buffer, and the next to come adopts it for 24 bytes
///                             that say who it is, 40 if its name is another
///   of an event with a quota  what its own ring holds, independent of the others
/// @endcode
/// With `keep_for`, time decides: a ring that extends does so only while all its records are
/// younger, and one that keeps the oldest does so only while they are younger.
///
/// At most half of a ring is held by writers. The last quarter of that (in a quota, the last half)
/// is shared: its writers release a sub-buffer after each record. A record is refused, and counted,
/// only while records that stay open hold all of it; recorder_statistics then says which `size`
/// would have been enough.

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <trace_ring/fwd.hpp>
#include <trace_ring/nanoseconds.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1 {

/// What happens when every sub-buffer has been used.
enum class full_mode : std::uint32_t {
    overwrite_oldest = 0,       ///< the flight recorder: the newest records are kept
    discard_newest = 1,         ///< the first records are kept; later ones are refused and counted
    stop = 2,                   ///< as discard_newest, and the first refusal shuts every gate
    block = 3,                  ///< the writer waits for room or a lane, up to `block_for`, and is
                                ///< then refused
    extend_then_discard = 4,    ///< the file grows up to `limit`, then as discard_newest
    extend_then_overwrite = 5,  ///< the file grows up to `limit`, then as overwrite_oldest
};

/// What a recorder does if its file exists.
enum class if_exists {
    fail,     ///< an existing file is an error
    replace,  ///< an old trace file is replaced in one step; one in use, or no trace file, is an
              ///< error
    rotate,   ///< an old trace file is renamed to FILE.1, the one of this name to FILE.2, and so on
              ///< up to `rotations`, the oldest being removed. Also one in use: its program
              ///< continues to record into it. No trace file is an error. For a service that starts
              ///< again
    attach,  ///< joins the processes that record into the file, by its sizes, its full_mode and its
             ///< clock; if there is none, one of several processes makes it. A symbolic link
             ///< is not followed, and the file of another user is refused (see any_owner)
};

/// What a recorder does if it cannot be set up.
enum class if_setup_fails {
    fail,            ///< it throws setup_error (see setup_error.hpp)
    record_nothing,  ///< it reports the error once, and then does nothing: see on_failure
};

/// What happens in the child of a fork.
enum class on_fork {
    own_lanes,  ///< the child continues to record, in its own lanes
    stop,       ///< the child records nothing
};

/// Whether other programs may request snapshots.
enum class control_mode {
    on,   ///< processes that may write to the file may ask for snapshots: see `control`
    off,  ///< the program writes no snapshots on requests from outside
};

/// The bytes that some events have for themselves, ring by ring: `{1 << 20, 4 << 20}`, or any
/// sequence of numbers. More than three are an error when the recorder is set up.
class quota_list {
public:
    static constexpr std::size_t most = 3;  ///< the longest list

    constexpr quota_list() noexcept = default;
    /// A list of sizes in bytes.
    constexpr quota_list(std::initializer_list<std::uint64_t> bytes) noexcept
        : quota_list(bytes.begin(), bytes.size()) {}
    /// Any sequence of sizes in bytes.
    template <class List>
    requires requires(const List& list) { quota_list(list.data(), list.size()); }
    constexpr quota_list(const List& list) noexcept : quota_list(list.data(), list.size()) {}
    /// `size` numbers at `bytes`.
    constexpr quota_list(const std::uint64_t* bytes, std::size_t size) noexcept : size_(size) {
        for (std::size_t i = 0; i < size && i < most; ++i) bytes_[i] = bytes[i];
    }

    /// How many were given; only `most` of them are kept.
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    /// The size in bytes of ring `i` + 1; `i` is below size().
    [[nodiscard]] constexpr std::uint64_t operator[](std::size_t i) const noexcept {
        return bytes_[i];
    }

private:
    std::uint64_t bytes_[most]{};
    std::size_t size_ = 0;
};

#if defined(TRACE_RING_DISABLE)
inline namespace disabled {  // see site/disabled.hpp
#endif
/// What can be set when a recorder is set up. All sizes are in bytes.
struct recorder_options {
    /// The trace file. Empty: memory. "%p" is replaced by the process id, "%e" by the program's
    /// name,
    /// "%%" for a percent sign.
    std::string file{};
    /// Memory with a file descriptor (`recorder::descriptor`), to hand to another process.
    bool memory_file = false;
    /// Bytes of sub-buffers at first; rounded up to whole ones. Less than eight is an error: 32 KiB
    /// by default. A file has all of them from the beginning, even if little is recorded, and its
    /// tables before them: 17.9 MB with the defaults, 430 KB with the least size. Fewer `lanes`,
    /// `processes`, `programs`, `totals` and `dictionary_bytes` make the tables smaller. When the
    /// last process closes the file, it is trimmed to what is in use (trim/trim.hpp).
    std::uint64_t size = std::uint64_t{16} << 20;
    /// Of `size`, bytes set aside for events with `static constexpr std::uint32_t ring = 1;` (2,
    /// 3): their own rings, which no other event can use up. At least eight sub-buffers each,
    /// and eight are left to the others. An event whose ring does not exist goes with the others,
    /// and each of its records takes the slower cold path.
    quota_list quotas{};
    /// Bytes of sub-buffers at most, for the modes that extend; 0: sixteen times `size`. Not less
    /// than `size`.
    std::uint64_t limit = 0;
    /// Bytes by which a growing file grows.
    std::uint64_t step = std::uint64_t{16} << 20;
    /// A power of two from 512 to 32768; 0: 4096, and more in a trace of 256 MiB or more, as long
    /// as there are 32768 of them: fewer to claim, to index and to seek among, while a thread that
    /// records little still holds only a small part. The longest record is 80 bytes shorter.
    std::uint32_t sub_buffer_bytes = 0;
    /// The name of snapshots requested from outside, to which ".N" is appended. Empty: the name in
    /// `file` with ".snapshot". The same patterns as in `file`.
    std::string snapshot_file{};
    /// How many of them each process writes at most, and the least time between two: processes that
    /// may write to the file cannot fill the disk.
    std::uint32_t snapshots = 64;
    nanoseconds snapshot_gap{1'000'000'000};  ///< the least time between two of these snapshots
    control_mode control = control_mode::on;  ///< whether they are written
    full_mode full = full_mode::overwrite_oldest;  ///< what happens when the trace is full
    nanoseconds block_for{1'000'000};  ///< how long a writer waits in full_mode::block, per record
    /// With full_mode::block, called after each of the short sleeps of a writer that waits. False:
    /// nobody makes room any more, and the record is refused immediately. Several threads may call
    /// it simultaneously. It must not record or throw.
    bool (*keeps_waiting)() = nullptr;
    if_exists exists = if_exists::fail;  ///< what happens if the file exists
    /// With if_exists::rotate, how many old traces are kept; 1 to 1000.
    std::uint32_t rotations = 1;
    /// Who may read and write the file, and the snapshots of it: at least 0600, at most 0777.
    /// Exactly this, independent of the umask. A user who may write to a trace file can spoil it,
    /// and may ask for snapshots (`control`); a user who may read it sees all that is recorded. Has
    /// no effect on a file that is joined.
    std::uint32_t file_mode = 0600;
    /// `attach` also joins a file of another user, who can then spoil what is recorded.
    bool any_owner = false;
    on_fork fork = on_fork::own_lanes;  ///< what happens in the child of a fork
    /// How long records are to be kept, to within one sub-buffer's time; 0: by bytes alone. With
    /// extend_then_overwrite the trace grows only while all its records are younger, and at `limit`
    /// the oldest are overwritten, however young. The modes that keep the oldest overwrite records
    /// that are older, and refuse new ones only while there are none. Not for overwrite_oldest, nor
    /// without a clock.
    nanoseconds keep_for{0};
    /// Lanes in the file's table, one for each thread that records and for what interrupts it; 0:
    /// half of the sub-buffers, from 64 to 4096. Writers that find only an eighth left share them.
    std::uint32_t lanes = 0;
    /// Processes in the file's table (each child of a fork that records is one), at least as many
    /// as record simultaneously. If no entry is free, the entry of a process that has ended is
    /// reused: its records stay, under the numbers of its lanes.
    std::uint32_t processes = 256;
    /// Unrelated processes that may record simultaneously: each has its own gates and event ids.
    std::uint32_t programs = 8;
    /// Event types with totals, at most 64.
    std::uint32_t totals = 16;
    /// Room for event types and names of values.
    std::uint64_t dictionary_bytes = std::uint64_t{256} << 10;
    /// Set up with every gate shut; `resume()` opens them.
    bool paused = false;
    /// With record_nothing the constructor never throws. If set-up fails for any reason, also for a
    /// wrong option, the error is written to stderr, or passed to `report_failure`, once; and it is
    /// in statistics(). All members of the recorder can be used. Records, spans and reservations
    /// are refused at the cost of a shut gate, and are not counted; `snapshot` returns the errno
    /// value of the error, `path` and `bytes` are empty, `descriptor` is -1, no event is enabled,
    /// and a session on it finds nothing.
    if_setup_fails on_failure = if_setup_fails::fail;
    /// Called with that error instead of writing it to stderr, on the thread that sets up. Must not
    /// throw.
    void (*report_failure)(const setup_error& error) = nullptr;
};
#if defined(TRACE_RING_DISABLE)
}
#endif

namespace impl {

/// A file's name, of any length that a system call takes; a longer one is cut to what it refuses.
struct name_buffer {
    char text[PATH_MAX + 1] = {};
    std::size_t size = 0;

    /// It is longer than any name that a system call takes.
    [[nodiscard]] bool is_cut() const noexcept { return size == PATH_MAX; }
    void add(char c) noexcept {
        if (size < PATH_MAX) text[size++] = c;
    }
    [[gnu::noinline]] void add(std::string_view more) noexcept {
        for (const char c : more) add(c);
    }
    /// In decimal digits.
    [[gnu::noinline]] void add(std::uint32_t number) noexcept {
        if (number >= 10) add(number / 10);
        add(static_cast<char>('0' + number % 10));
    }
    /// `pattern` with "%p", "%e" and "%%" replaced.
    [[gnu::cold, gnu::noinline]] void expand(std::string_view pattern) noexcept {
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
            if (pattern[i] != '%' || (next != 'p' && next != 'e' && next != '%')) {
                add(pattern[i]);
                continue;
            }
            ++i;
            if (next == 'p') add(static_cast<std::uint32_t>(::getpid()));
            if (next == 'e') add(program_invocation_short_name);
            if (next == '%') add('%');
        }
    }
};

}  // namespace impl

/// `pattern` with "%p", "%e" and "%%" replaced; other uses of '%' stay unchanged. Cut where it is
/// longer than any file's name can be.
[[nodiscard]] inline std::string expand_file_name(std::string_view pattern) {
    impl::name_buffer out;
    out.expand(pattern);
    return {out.text, out.size};
}

}  // namespace trace_ring::inline v1
