// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The file of open references, for the program that runs traced programs and reads their
/// references.

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/instrument/open_references.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

namespace trace_ring::inline v1::instrument {

/// The total counts of a table's places.
struct reference_counts {
    std::uint64_t suppressed = 0;           ///< references of the tracing itself, and into it
    std::uint64_t self_fed = 0;             ///< references of the tracing itself, but traced
    std::uint64_t stops = 0;                ///< how often a thread waited for the reader
    std::uint64_t stopped_ns = 0;           ///< total waiting time
    std::uint64_t lost_records = 0;         ///< records of references that were refused
    std::uint64_t lost_references = 0;      ///< the references in them
    std::uint64_t untraced_threads = 0;     ///< threads that found no place
    std::uint64_t untraced_references = 0;  ///< the references that they made
    std::uint64_t cut_off = 0;              ///< calls cut off by a jump or the end of the thread
    std::uint64_t unseen = 0;               ///< executions whose references are not known
    std::uint64_t calls = 0;                ///< how often a hook had a place to add a reference
};

/// The unrecorded references of a thread that has ended.
struct left_references {
    std::uint32_t thread = 0;              ///< its id in the kernel
    std::uint32_t process = 0;             ///< the id of its process
    std::uint32_t place = 0;               ///< of the record that would have been made
    std::uint32_t sequence = 0;            ///< of the record that would have been made
    std::span<const plain_reference> all;  ///< the references, in their order
    bool may_be_recorded = false;          ///< it ended while making that record, which may exist
};

/// Owns the file, and removes it when destroyed. To be used by one thread at a time.
class table_file {
public:
    /// How programs are traced.
    struct options {
        std::uint32_t places = open_references_table::most_places;  ///< maximum number of threads
                                                                    ///< at a time
        bool drained = true;         ///< writers wait for this process, which drains the trace
        bool packs = false;          ///< records are packed_references, else plain_references
        bool traces_itself = false;  ///< to test without suppression
        bool skips_blocks = false;   ///< only data is traced, and where functions begin and end
    };

    /// Makes it; only pages that are used take memory. Throws setup_error.
    table_file(std::string path, const options& how) : path_(std::move(path)) {
        const file_descriptor fd = storage::create_file(path_);
        const std::uint64_t bytes = open_references_table::bytes_for(how.places + 1);
        if (large_files::ftruncate(fd.get(), large_files::at(bytes)) != 0) {
            const int error = errno;
            ::unlink(path_.c_str());
            fail_setup(path_, "cannot be made as large as it has to be", error);
        }
        memory_ = storage::mapping::of_file(path_, fd.get(), bytes);
        table().begin({.places = how.places,
                       .reader = how.drained ? static_cast<std::uint32_t>(::getpid()) : 0,
                       .packs = how.packs,
                       .traces_itself = how.traces_itself,
                       .skips_blocks = how.skips_blocks});
        // Not every file system supports this; otherwise the process id shows whether this process
        // lives.
        const auto lock = life_.take(fd.get(), path_.c_str(), open_references_table::life_byte);
        // relaxed: before any process looks
        if (lock == storage::lock_result::taken) table().locked.store(1, relaxed);
    }
    table_file(const table_file&) = delete;
    table_file& operator=(const table_file&) = delete;
    ~table_file() {
        close();
        ::unlink(path_.c_str());
    }

    /// Programs that are still running continue untraced from the time when their places are full.
    void close() noexcept {
        table().closed.store(1, relaxed);  // relaxed: a sign
    }
    /// The running processes that have places, each once. Linear in the places.
    [[nodiscard]] std::vector<std::uint32_t> living() {
        std::vector<std::uint32_t> all;
        for (std::uint32_t i = 1; i < table().places; ++i) {
            const open_references& each = table().place(i);
            // relaxed, both: concurrent changes may be missing
            if (each.thread.load(relaxed) == 0) continue;
            const std::uint32_t process = each.process.load(relaxed);
            if (process != 0 && is_alive(process)) all.push_back(process);
        }
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    /// The file's name.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Calls `visit(const left_references&)` for the references left by each thread whose process
    /// is gone or, with `all`, by each thread. Further references of a living process are no longer
    /// counted. The thread's place is free afterwards, unless `visit` returned false. Linear in the
    /// places.
    template <class Visit>
    void take_left(bool all, Visit&& visit) {
        for (std::uint32_t i = 1; i < table().places; ++i) {
            open_references& each = table().place(i);
            // order: place.look:A pairs with place.give_back:A
            const std::uint32_t thread = each.thread.load(acquire);
            if (thread == 0) continue;
            // relaxed, all: the process is gone; a living one is not touched
            const std::uint32_t process = each.process.load(relaxed);
            if (!all && (process == 0 || is_alive(process))) continue;
            const bool lives = process != 0 && is_alive(process);
            if (!lives) each.note_cut_off();
            // relaxed, all: as above
            const std::uint32_t end = each.end.load(relaxed);
            auto now = recording_progress::from(each.progress.load(relaxed));
            const std::uint32_t from = now.recorded;
            if (from < end && end <= open_references::room && now.in_flight <= end - from) {
                const std::span left = std::span(each.all).subspan(from, end - from);
                if (now.in_flight != 0) {
                    if (!visit(left_references{thread, process, i, now.sequence,
                                               left.first(now.in_flight), true})) {
                        continue;
                    }
                    ++now.sequence;
                }
                for (std::size_t at = now.in_flight; at < left.size();) {
                    const auto rest = left.subspan(at);
                    const auto some = rest.first(whole_references(rest, most_at_once));
                    visit(left_references{thread, process, i, now.sequence++, some, false});
                    at += some.size();
                }
                each.recorded += each.count(0, end);
            }
            if (lives) calls_so_far_[i] = each.recorded;
            // relaxed, all: as above
            each.end.store(0, relaxed);
            now = {now.sequence, 0, 0};
            each.progress.store(now.word(), relaxed);
            // order: place.free:A pairs with place.take:A
            each.thread.store(0, release);
        }
    }

    /// Linear in the places.
    [[nodiscard]] reference_counts counts() noexcept {
        reference_counts sum;
        // relaxed, all: counters
        sum.untraced_threads = table().untraced_threads.load(relaxed);
        sum.untraced_references = table().untraced_references.load(relaxed);
        for (std::uint32_t i = 1; i < table().places; ++i) {
            const open_references& each = table().place(i);
            // relaxed, all: counters
            sum.suppressed += each.suppressed.load(relaxed);
            sum.self_fed += each.self_fed.load(relaxed);
            sum.stops += each.stops.load(relaxed);
            sum.stopped_ns += each.stopped_ns.load(relaxed);
            sum.lost_records += each.lost_records.load(relaxed);
            sum.lost_references += each.lost_references.load(relaxed);
            sum.cut_off += each.cut_off.load(relaxed);
            sum.unseen += each.unseen.load(relaxed);
            const auto so_far = calls_so_far_.find(i);
            sum.calls += so_far == calls_so_far_.end() ? each.calls : so_far->second;
        }
        return sum;
    }

private:
    /// The maximum number in a record, for any packing.
    static constexpr std::size_t most_at_once =
        open_references::packed_room / reference_packer::most_bytes;

    [[nodiscard]] open_references_table& table() noexcept {
        return *static_cast<open_references_table*>(static_cast<void*>(memory_.data()));
    }
    [[nodiscard]] static bool is_alive(std::uint32_t process) noexcept {
        return ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
    }

    std::string path_;
    storage::mapping memory_{};
    storage::life_lock life_;
    std::map<std::uint32_t, std::uint64_t> calls_so_far_;  // of places whose processes live
};

}  // namespace trace_ring::inline v1::instrument
