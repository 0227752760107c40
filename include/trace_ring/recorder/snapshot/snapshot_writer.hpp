// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Copies the trace while recording continues: tables first, then each sub-buffer as a reader would
/// copy it, then what the dictionary and the lane table have gained since. Uses only system calls
/// that a signal handler may make, and no memory but that allocated at set-up.
///
/// The sub-buffers are not copied at one moment. A lane may fill one after it was copied, and claim
/// another before that is copied. So the copy is completed backwards, lane by lane: a sub-buffer
/// that was copied was claimed after the one before it in its lane was closed, so that one is
/// copied again if the copy has less of it, unless it has been overwritten by now. The records of a
/// lane in a snapshot are therefore the lane's records up to some moment, less those that were
/// overwritten before they could be copied.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/clock/snapshots.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>

namespace trace_ring::inline v1::impl {

using storage::uninterrupted;
using storage::write_at;

class snapshot_writer {
public:
    /// `process` is the caller's entry; `space` has room for one sub-buffer; `to` is a new file.
    snapshot_writer(const trace_memory& from, std::uint32_t process, std::span<std::uint64_t> space,
                    int to) noexcept
        : memory_(from), process_(process), space_(space), to_(to) {}

    [[nodiscard, gnu::cold]] int run() noexcept {
        const layout::plan& plan = memory_.plan();
        if (memory_.clock() != 0) add_clocks(memory_, process_);
        const std::uint64_t capacity = memory_.capacity();
        if (storage::exceeds_file_limit(0, plan.bytes_for(capacity))) return EFBIG;
        // Lanes before sub-buffers: a lane then never claims more records than were copied.
        if (const int error = copy(8, plan.dictionary)) return error;
        if (const int error = copy(plan.clocks, plan.clock_at(plan.clock_count), true))
            return error;
        for (std::uint64_t slot = 0; slot < capacity; ++slot) {
            bool copied = false;
            if (const int error = copy_slot(slot, no_position, copied)) return error;
        }
        for (std::uint64_t slot = 0; slot < capacity; ++slot) {
            if (const int error = complete_before(slot, capacity)) return error;
        }
        if (const int error = copy(plan.dictionary, plan.dictionary + plan.dictionary_bytes))
            return error;
        if (const int error = copy(plan.processes, plan.process_at(plan.process_count)))
            return error;
        if (const int error = add_new_lanes()) return error;
        const std::uint64_t capacity_at = plan.ring + offsetof(layout::ring_state, capacity);
        if (const int error = write(capacity, capacity_at)) return error;
        const auto size = large_files::at(plan.bytes_for(capacity));
        if (uninterrupted([&] { return large_files::ftruncate(to_, size); }) != 0) return errno;
        return write(layout::file_magic, 0);  // last: until then it is no trace file
    }

private:
    [[nodiscard, gnu::cold]] int write(std::uint64_t word, std::uint64_t at) const noexcept {
        return write_at(to_, &word, sizeof word, at);
    }
    /// Copies the shared words up to `end` through a buffer on the stack, in ascending order: words
    /// behind an entry's mark are then those that the mark publishes. `clocks`: of entries whose
    /// mark, the first word, says when they are being replaced; the mark is then copied as 0, no
    /// entry.
    [[nodiscard, gnu::cold]] int copy(std::uint64_t at, std::uint64_t end,
                                      bool clocks = false) const noexcept {
        std::uint64_t words[128];
        while (at != end) {
            const auto part = as_size(end - at < sizeof words ? end - at : sizeof words);
            const std::byte* const from = memory_.base() + at;
            for (std::size_t i = 0; i < part / 8; ++i) {
                // order: snapshot.mark:A pairs with clocks.write:B
                // order: snapshot.copy:A pairs with dictionary.write:A, dictionary.write:B
                // order: snapshot.copy:B pairs with process.enter:B, process.leave:A,
                // process.dead:A, lane.enter:A, lane.enter:B, lane.newest:A, lane.written:A,
                // lane.written:B, lane.release:A, lane.release:B, lane.release:C, lane.release:D,
                // lane.dead:A, lane.free:A, process.return:A
                // order: snapshot.copy:C pairs with here.written:A, here.release:B,
                // here.release:A, lane.written:C, here.newest:A
                words[i] = word_at<std::uint64_t>(from, i * 8).load(acquire);
            }
            // order: snapshot.mark:B pairs with clocks.write:A
            thread_fence(acquire);
            for (std::size_t mark = 0; clocks && mark < part; mark += sizeof(layout::clock_entry)) {
                // relaxed: ordered by the fence above
                const std::uint64_t now = word_at<std::uint64_t>(from, mark).load(relaxed);
                if (now != words[mark / 8]) words[mark / 8] = 0;
            }
            if (const int error = write_at(to_, words, part, at)) return error;
            at += part;
        }
        return 0;
    }

    /// Copies the sub-buffer there; if `only` is a position, none but the one of that position.
    [[nodiscard, gnu::cold]] int copy_slot(std::uint64_t slot, position only,
                                           bool& copied) noexcept {
        const std::span<std::uint64_t> words = space_;
        sub_buffer_copy taken;
        for (int attempt = 0; attempt < 4; ++attempt) {
            const copy_result result = copy_sub_buffer(&memory_.sub_buffer(slot), words, taken);
            if (result == copy_result::overrun) continue;
            if (result != copy_result::copied) return 0;  // stays a hole: free
            if (only != no_position && taken.state.pos != only) return 0;
            copied = true;
            const bool active =
                taken.state.state == static_cast<unsigned>(sub_buffer_state::active);
            if (active) {
                words[1] = stamped{taken.state.pos, static_cast<unsigned>(sub_buffer_state::closed)}
                               .word();
            }
            words[6] = (words[6] & ~std::uint64_t{0xFFFFFFFF}) |
                       commit_word::pack(taken.records, taken.bytes);
            // The index describes what was copied, not what has come in its place since.
            const std::uint64_t about[] = {taken.state.pos, words[3], words[5],
                                           taken.lane | taken.state.pos << 32};
            static_assert(sizeof about == sizeof(layout::index_entry));
            const layout::plan& plan = memory_.plan();
            if (const int error = write_at(to_, about, sizeof about, plan.index_at(slot)))
                return error;
            return write_at(to_, words.data(), taken.bytes, plan.bytes_for(slot));
        }
        return 0;  // overwritten four times running: a gap that the positions show
    }

    /// Reads back the header of a sub-buffer as it was copied. 0 or the error.
    [[nodiscard, gnu::cold]] int copied_header(std::uint64_t slot, std::uint64_t (&words)[8],
                                               sub_buffer_copy& out) noexcept {
        const auto at = large_files::at(memory_.plan().bytes_for(slot));
        for (std::uint64_t& word : words) word = 0;  // behind the end of the copy there is nothing
        if (uninterrupted([&] { return large_files::pread(to_, words, sizeof words, at); }) < 0)
            return errno;
        out.tell(words, static_cast<std::uint32_t>(words[6]));
        return 0;
    }
    /// Completes what was copied of the lane's sub-buffer before the one in `slot`, and so on. Each
    /// step copies a newer sub-buffer, or more of one, so it comes to an end.
    [[nodiscard, gnu::cold]] int complete_before(std::uint64_t slot,
                                                 std::uint64_t capacity) noexcept {
        for (;;) {
            std::uint64_t words[8];
            sub_buffer_copy here;
            if (const int error = copied_header(slot, words, here)) return error;
            if (here.state.pos == no_position || here.previous == no_position) return 0;
            const std::uint64_t before = slot_of(here.previous, memory_.plan().sub_buffer_limit);
            if (before >= capacity) return 0;  // others have stored it there
            sub_buffer_copy there;
            if (const int error = copied_header(before, words, there)) return error;
            if (there.state.pos > here.previous) return 0;  // overwritten before it was copied
            const bool is_it = there.state.pos == here.previous;
            if (is_it && there.first_position + there.records >= here.first_position) return 0;
            bool copied = false;
            if (const int error = copy_slot(before, here.previous, copied)) return error;
            if (copied) {
                slot = before;
                continue;
            }
            return is_it ? leave_open(before) : 0;
        }
    }
    /// Of a sub-buffer only a part was copied, and others have overwritten the rest: readers see it
    /// as one that was not closed. 0 or the error.
    [[nodiscard, gnu::cold]] int leave_open(std::uint64_t slot) noexcept {
        const layout::plan& plan = memory_.plan();
        const std::uint64_t end_at = plan.bytes_for(slot) + offsetof(sub_buffer_header, end_time);
        if (const int error = write(0, end_at)) return error;
        return write(0, plan.index_at(slot) + offsetof(layout::index_entry, last_time));
    }

    /// Adds lanes that began while the sub-buffers were copied; how much they wrote is not known.
    [[nodiscard, gnu::cold]] int add_new_lanes() noexcept {
        const layout::plan& plan = memory_.plan();
        for (std::uint32_t slot = 0; slot < plan.lane_count; ++slot) {
            const std::uint64_t at = plan.lane_at(slot);
            struct {
                std::uint32_t number = 0;
                std::uint32_t state = 0;
            } copied;
            const ssize_t got = uninterrupted([&] {
                return large_files::pread(to_, &copied, sizeof copied, large_files::at(at));
            });
            if (got < 0) return errno;
            constexpr auto preparing = static_cast<std::uint32_t>(layout::presence::preparing);
            // relaxed: after what was copied, of which some may be that lane's already
            const std::uint32_t number = memory_.lane(slot).number.load(relaxed);
            if (number == copied.number && copied.state != preparing) continue;
            if (const int error = copy(at, plan.lane_at(slot + 1ULL))) return error;
            if (const int error = write(0, at + offsetof(layout::lane_entry, written)))
                return error;
        }
        return 0;
    }

    const trace_memory& memory_;
    std::uint32_t process_;
    std::span<std::uint64_t> space_;
    int to_;
};

/// The name of a snapshot until it is complete: FILE.part. and 16 random digits, so that nobody can
/// put a file in its way.
class snapshot_name {
public:
    /// False: the name is too long.
    [[nodiscard, gnu::cold]] bool make(const char* file) noexcept {
        constexpr std::string_view suffix = ".part.";
        const std::size_t length = std::strlen(file);
        if (length + suffix.size() + 17 > sizeof text_) return false;
        std::memcpy(text_, file, length);
        std::memcpy(text_ + length, suffix.data(), suffix.size());
        std::uint64_t digits = 0;
#if defined(SYS_getrandom)
        constexpr unsigned do_not_wait = 1;
        static_cast<void>(::syscall(SYS_getrandom, &digits, sizeof digits, do_not_wait));
#endif
        char* out = text_ + length + suffix.size();
        for (int i = 0; i < 16; ++i, digits >>= 4) *out++ = "0123456789abcdef"[digits & 15U];
        *out = '\0';
        return true;
    }
    [[nodiscard]] const char* text() const noexcept {
        return text_;
    }

private:
    char text_[4096] = {};
};

/// See basic_recorder::snapshot; for one caller at a time.
[[nodiscard, gnu::cold]] inline int write_snapshot(const trace_memory& from, std::uint32_t process,
                                                   std::span<std::uint64_t> space,
                                                   const char* file) noexcept {
    const undisturbed scope;
    snapshot_name temporary;
    if (!temporary.make(file)) return ENAMETOOLONG;
    int error = 0;
    const int fd = uninterrupted([&] {
        return ::open(temporary.text(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    });
    if (fd < 0) {
        error = errno;
    } else {
        error = snapshot_writer(from, process, space, fd).run();
        if (error == 0) error = storage::set_mode(fd, from.file_mode());
        ::close(fd);
        // An existing file of that name is not overwritten.
        if (error == 0) error = storage::name_file(temporary.text(), file);
        ::unlink(temporary.text());
    }
    return error;
}

}  // namespace trace_ring::inline v1::impl
