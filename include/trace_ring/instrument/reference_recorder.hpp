// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes records of the threads' open references, and waits for the reader if there is no room.

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/instrument/references.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace trace_ring::inline v1::instrument {

/// One per process. Never destroyed. Functions that record are called with the thread's signals
/// blocked.
class reference_recorder {
public:
    constexpr reference_recorder() noexcept = default;

    /// Attaches to the trace file, or makes it. `table_path` may be empty: no other process has the
    /// table. `keep_waiting` is to call `keeps_waiting`. Throws setup_error.
    void set_up(const char* file, open_references_table& table, const char* table_path,
                bool (*keep_waiting)()) {
        new (recorder_) trace_ring::recorder({.file = file,
                                              .limit = most_bytes,
                                              .sub_buffer_bytes = 32768,
                                              .full = full_mode::extend_then_discard,
                                              .block_for = as_long_as_the_reader_lives,
                                              .keeps_waiting = keep_waiting,
                                              .exists = if_exists::attach});
        table_ = &table;
        table_path_ = ::strdup(table_path);
        table_at_ = reinterpret_cast<std::uintptr_t>(table_);
        table_bytes_ = open_references_table::bytes_for(table.places);
        trace_at_ = reinterpret_cast<std::uintptr_t>(to().bytes().first);
    }
    [[nodiscard]] trace_ring::recorder& to() noexcept {
        return *std::launder(static_cast<trace_ring::recorder*>(static_cast<void*>(recorder_)));
    }
    /// Whether recording has ended: the reader is gone, or has closed the table.
    [[nodiscard]] bool has_stopped() const noexcept {
        return has_stopped_.load(relaxed);  // relaxed: nothing else is published
    }

    /// Whether a thread that waits for room continues to wait: now and then it checks for the
    /// reader.
    [[nodiscard]] bool keeps_waiting() noexcept {
        constexpr std::uint64_t one_look = 20'000'000;  // ns
        if (!goes_on()) return false;
        const std::uint64_t now = clock::monotonic::now();
        // relaxed, to the end: one thread or another looks
        if (now - looked_at_.load(relaxed) < one_look) return true;
        looked_at_.store(now, relaxed);
        if (!reader_lives()) has_stopped_.store(true, relaxed);
        return !has_stopped();
    }
    /// The number of references at which a place is recorded. Plain ones make two records, and stay
    /// in a processor's first-level cache. Packed ones take fewer bytes the more there are in a
    /// record.
    [[nodiscard]] static std::uint32_t limit(const open_references_table& of) noexcept {
        return of.packs != 0 ? open_references::room - 1 : 2 * most_plain;
    }
    /// Records the contents of the place, and empties it. The thread's signals must be blocked.
    void record(open_references& place) noexcept {
        trace_bytes_.store(to().bytes().second, relaxed);  // relaxed: a number that grows
        // relaxed, to the end: used by the own thread; a finder of a dead thread's place is ordered
        // after it
        const std::uint32_t end = leave_out_own(place, place.end.load(relaxed));
        if (end == 0) return;
        auto now = recording_progress::from(place.progress.load(relaxed));
        while (now.recorded < end) {
            const std::uint32_t count =
                table_->packs != 0 ? record_packed(place, now, end) : record_plain(place, now, end);
            ++now.sequence;
            now.recorded = static_cast<std::uint16_t>(now.recorded + count);
            signal_fence(seq_cst);
            place.progress.store(now.word(), relaxed);
        }
        now.recorded = 0;
        place.recorded += end - place.extensions;
        place.extensions = 0;
        place.end.store(0, relaxed);
        signal_fence(seq_cst);
        place.progress.store(now.word(), relaxed);
    }

private:
    /// Whether an address is in the trace's own memory.
    [[nodiscard]] bool is_own(std::uint64_t address) const noexcept {
        // relaxed: a number that only grows
        return address - trace_at_ < trace_bytes_.load(relaxed) ||
               address - table_at_ < table_bytes_;
    }

    /// Removes references to the trace's own memory, and returns the end of the others.
    [[nodiscard]] std::uint32_t leave_out_own(open_references& place, std::uint32_t end) noexcept {
        const std::uint64_t first = trace_at_ < table_at_ ? trace_at_ : table_at_;
        // relaxed: as above
        const std::uint64_t trace_end = trace_at_ + trace_bytes_.load(relaxed);
        const std::uint64_t table_end = table_at_ + table_bytes_;
        const std::uint64_t span = (trace_end > table_end ? trace_end : table_end) - first;
        // Four sums, because each addition waits for the previous one.
        std::uint32_t own[4]{}, at = 0;
        for (; at + 4 <= end; at += 4) {
            for (std::uint32_t i = 0; i < 4; ++i)
                own[i] += place.all[at + i].address - first < span;
        }
        for (; at < end; ++at) own[0] += place.all[at].address - first < span;
        if ((own[0] | own[1] | own[2] | own[3]) == 0) [[likely]]
            return end;
        std::uint32_t to = 0;
        // relaxed, to the end: as in `record`
        const auto recorded = recording_progress::from(place.progress.load(relaxed)).recorded;
        for (std::uint32_t i = 0; i < end;) {
            const auto width = static_cast<std::uint32_t>(place.all[i].width());
            if (i >= recorded && is_own(place.all[i].address)) {
                place.suppressed.fetch_add(1, relaxed);
                place.extensions -= width - 1;
                --place.calls;
            } else {
                for (std::uint32_t k = 0; k < width; ++k) place.all[to++] = place.all[i + k];
            }
            i += width;
        }
        place.end.store(to, relaxed);
        return to;
    }
    /// Both make one record of unrecorded references, and return the number of its entries.
    std::uint32_t record_plain(open_references& place, const recording_progress& now,
                               std::uint32_t end) noexcept {
        const std::uint32_t from = now.recorded;
        const auto count = static_cast<std::uint32_t>(
            whole_references({&place.all[from], end - from}, most_plain));
        const auto* const words = reinterpret_cast<const std::uint64_t*>(&place.all[from]);
        make_record<plain_references>(place, now, count, std::span(words, std::size_t{count} * 2));
        return count;
    }
    std::uint32_t record_packed(open_references& place, const recording_progress& now,
                                std::uint32_t end) noexcept {
        const std::uint32_t from = now.recorded;
        place.packer.clear();
        const std::byte* const last =
            place.packed + open_references::packed_room - reference_packer::most_bytes;
        std::byte* to = place.packed;
        std::uint32_t at = from;
        while (at < end && to <= last) {
            to = place.packer.put(to, &place.all[at]);
            at += static_cast<std::uint32_t>(place.all[at].width());
        }
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(place.packed);
        make_record<packed_references>(
            place, now, at - from, std::span(bytes, static_cast<std::size_t>(to - place.packed)));
        return at - from;
    }
    template <class Event, class Bytes>
    void make_record(open_references& place, recording_progress now, std::uint32_t count,
                     const Bytes& bytes) noexcept {
        now.in_flight = static_cast<std::uint16_t>(count);
        place.progress.store(now.word(), relaxed);  // relaxed, to the end: as in `record`
        signal_fence(seq_cst);
        const std::uint64_t before = clock::monotonic::now();
        if (!goes_on()) return;
        if (!to().record<Event>(place.thread.load(relaxed), table_->number_of(place), now.sequence,
                                bytes)) {
            if (!goes_on()) return;  // waited for the reader, which is gone
            place.lost_records.fetch_add(1, relaxed);
            place.lost_references.fetch_add(place.count(now.recorded, count), relaxed);
            return;
        }
        const std::uint64_t waited = clock::monotonic::now() - before;
        if (waited > one_wait && table_->reader.load(relaxed) != 0) {
            place.stops.fetch_add(1, relaxed);
            place.stopped_ns.fetch_add(waited, relaxed);
        }
    }
    /// Whether references are still wanted.
    [[nodiscard]] bool goes_on() noexcept {
        // relaxed, to the end: signs
        if (table_->closed.load(relaxed) != 0) has_stopped_.store(true, relaxed);
        return !has_stopped();
    }
    /// The reader may be in another PID namespace, and its process id may have been reused.
    /// Therefore its lock shows whether it lives, as long as its file can be reached.
    [[nodiscard]] bool reader_lives() const noexcept {
        const file_descriptor fd(::open(table_path_, O_RDWR | O_CLOEXEC));
        if (fd && table_->locked.load(relaxed) != 0)  // relaxed: set when the table was made
            return storage::byte_is_locked(fd.get(), open_references_table::life_byte);
        const auto reader = static_cast<pid_t>(table_->reader.load(relaxed));  // relaxed: a number
        return ::kill(reader, 0) == 0 || errno != ESRCH;
    }

    /// The limit of a trace that is made here: as much as can be mapped.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << (sizeof(void*) == 8 ? 34 : 28);
    /// References in a record of plain ones: two records fill a sub-buffer.
    static constexpr std::uint32_t most_plain = 1014;
    /// A writer that finds no room sleeps this long at least.
    static constexpr std::uint64_t one_wait = 50'000;
    static constexpr nanoseconds as_long_as_the_reader_lives{std::int64_t{1} << 60};

    open_references_table* table_ = nullptr;
    const char* table_path_ = "";  // remains valid
    std::uint64_t trace_at_ = 0, table_at_ = 0, table_bytes_ = 0;
    atomic<std::uint64_t> trace_bytes_{0};
    atomic<bool> has_stopped_{false};
    atomic<std::uint64_t> looked_at_{0};
    alignas(trace_ring::recorder) std::byte recorder_[sizeof(trace_ring::recorder)]{};
};

}  // namespace trace_ring::inline v1::instrument
