// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes a trace file that nobody records into about as long as its contents, and as long as it was
/// when somebody joins it again.
///
/// A recorder's file has all its sub-buffers from the beginning, so that no later store finds the
/// disk full, and tables for many threads. When the last process that has the file open closes it,
/// it writes what is in use into a new file, with tables as long as needed, and gives that the name
/// of the old one. A reader that has the old file open can read it to the end. If most of the file
/// is in use, or a reader follows it, or it was renamed, or no file can be made next to it, or its
/// folder cannot be locked against a rotation, unused sub-buffers at the end are cut off instead.
/// The header keeps the sizes from before (file_header::whole_...).
/// @code
///   open:     header | tables ............... | sub-buffers ........................|
///   trimmed:  header | tables | sub-buffers |
///   joined:   header |  (no longer used)    | tables ............... | sub-buffers ..........|
/// @endcode
/// Nobody's mapping is cut: a process that maps the file shares the lock of a byte, of recording
/// (layout::use_lock_offset) or of mapping it otherwise (layout::map_lock_offset), and a file is
/// trimmed, and made whole again, under both alone. The header is replaced by one write, after all
/// that it describes, so a process that is killed during the trim leaves a complete file.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/policy/storage/file.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/trim/relayout.hpp>

namespace trace_ring::inline v1::impl {

/// Whether a process that has no lock on its byte lives and records into the file. It is not
/// known whether processes outside of this PID namespace live: they count as living if
/// `unseen_live`. `plan` has been
/// checked.
[[nodiscard, gnu::cold]] inline bool is_recorded_without_locks(int fd, const layout::plan& plan,
                                                               bool unseen_live) noexcept {
    const std::uint32_t space = storage::pid_namespace();
    for (std::uint32_t slot = 0; slot < plan.process_count; ++slot) {
        layout::process_entry entry{};
        const auto at = large_files::at(plan.process_at(slot));
        if (large_files::pread(fd, static_cast<void*>(&entry), sizeof entry, at) !=
            static_cast<ssize_t>(sizeof entry)) {
            return false;
        }
        // relaxed, all: a copy
        const bool counts =
            entry.state.load(relaxed) == static_cast<std::uint32_t>(layout::presence::live) &&
            entry.has_lock.load(relaxed) == 0;
        // relaxed, all: a copy
        const bool seen = space != 0 && entry.space.load(relaxed) == space;
        const std::uint64_t by = entry.recorded_by.load(relaxed);
        const auto may_live = [&] {  // relaxed, both: a copy
            return by != 0 ? storage::process_word::may_live(by)
                           : storage::process_may_live(entry.pid.load(relaxed),
                                                       entry.start.load(relaxed));
        };
        if (counts && (seen ? may_live() : unseen_live)) return true;
    }
    return false;
}

/// A trace file that no other process records into or maps, as long as this lives.
class lone_file {
public:
    /// Takes the locks for the open file `fd`, which may have a shared one already. `plan` has been
    /// checked. Empty if another process has the file, or may have it.
    [[gnu::cold]] lone_file(int fd, const layout::plan& plan) noexcept {
        using storage::lock_result;
        const std::uint64_t members = layout::use_lock_offset - layout::reclaim_lock_offset;
        if (storage::lock_byte(fd, layout::use_lock_offset) != lock_result::taken) return;
        fd_ = fd;
        if (storage::lock_byte(fd, layout::map_lock_offset) != lock_result::taken ||
            storage::byte_is_locked(fd, layout::reclaim_lock_offset, members) ||
            is_recorded_without_locks(fd, plan, true)) {
            release();
        }
    }
    lone_file(const lone_file&) = delete;
    lone_file& operator=(const lone_file&) = delete;
    ~lone_file() { release(); }

    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
    void release() noexcept {
        if (fd_ < 0) return;
        storage::unlock_byte(fd_, layout::map_lock_offset);
        storage::unlock_byte(fd_, layout::use_lock_offset);
        fd_ = -1;
    }

private:
    int fd_ = -1;
};

/// Whether the file has its sizes from before it was trimmed in its header.
[[nodiscard, gnu::cold]] inline bool is_trimmed(int fd) noexcept {
    std::uint32_t lanes = 0;
    constexpr large_files::file_offset at = offsetof(layout::file_header, whole_lane_count);
    return large_files::pread(fd, &lanes, sizeof lanes, at) == sizeof lanes && lanes != 0;
}

class trimmer {
public:
    /// Trims the file of that name, which is open as `fd` and `status` describes. Nothing happens
    /// if another process has it, or it is as short as it can be. 0 or the error.
    [[nodiscard, gnu::cold]] static int trim(const char* name, int fd,
                                             const large_files::file_status& status) noexcept {
        const auto bytes = static_cast<std::uint64_t>(status.st_size);
        if (bytes < layout::format_page_bytes) return EINVAL;
        layout::plan plan;
        {
            const auto header = storage::mapping::try_of_file(fd, layout::format_page_bytes);
            if (!header) return errno;
            if (layout::check_layout(header.data(), bytes, plan)) return EINVAL;
        }
        if (is_trimmed(fd)) return 0;
        const lone_file locked(fd, plan);
        if (!locked) return EBUSY;
        const std::uint64_t present = layout::present_sub_buffers(plan, bytes);
        const auto memory = storage::mapping::try_of_file(fd, bytes);
        if (!memory) return errno;
        // It may have been another process's until a moment ago.
        if (storage::file_bytes(fd) != bytes || present == 0 || is_trimmed(fd)) return EBUSY;
        const layout::view trace(memory.data(), plan);
        const used_parts used(trace, present);
        const layout::plan fresh = used.least_plan();
        const std::uint64_t cut = plan.bytes_for(used.sub_buffers);
        constexpr std::uint64_t most_to_copy = std::uint64_t{32} << 20;
        const std::uint64_t least_bytes = fresh.bytes_for(used.sub_buffers);
        // Who follows the file would miss what is added to the copy.
        const bool followed =
            storage::lock_byte(fd, layout::follow_lock_offset) != storage::lock_result::taken;
        if (!followed && least_bytes <= most_to_copy && least_bytes <= cut / 4 * 3 &&
            rewrite(name, status, memory.data(), plan, fresh, used) == 0) {
            return 0;
        }
        if (used.sub_buffers == used.capacity) return 0;
        if (storage::exceeds_file_limit(0, cut)) return EFBIG;
        relayout same(memory.data(), plan, plan, fd);
        if (const int error = same.header(plan, used.capacity)) return error;
        const std::uint64_t at = plan.ring + offsetof(layout::ring_state, capacity);
        if (const int error =
                storage::write_at(fd, &used.sub_buffers, sizeof used.sub_buffers, at)) {
            return error;
        }
        return large_files::ftruncate(fd, large_files::at(cut)) == 0 ? 0 : errno;
    }

private:
    /// Replaces the file by a copy with short tables. 0 or the error: the file is as it was.
    [[nodiscard, gnu::cold]] static int rewrite(const char* name,
                                                const large_files::file_status& status,
                                                const std::byte* from, const layout::plan& plan,
                                                const layout::plan& fresh,
                                                const used_parts& used) noexcept {
        // Other names of the file, and its owner, would be lost.
        if (status.st_nlink != 1 || status.st_uid != ::geteuid()) return EPERM;
        const auto is_it = [&] {
            large_files::file_status now{};
            return large_files::lstat(name, &now) == 0 && now.st_dev == status.st_dev &&
                   now.st_ino == status.st_ino;
        };
        if (!is_it()) return ENOENT;
        if (storage::exceeds_file_limit(0, fresh.bytes_for(used.sub_buffers))) return EFBIG;
        char made[PATH_MAX + 32];
        const int length = std::snprintf(made, sizeof made, "%s.trim.%llx", name,
                                         static_cast<unsigned long long>(status.st_ino));
        if (length < 0 || static_cast<std::size_t>(length) >= sizeof made) return ENAMETOOLONG;
        ::unlink(made);  // of a process that was killed here
        const file_descriptor to = storage::try_create_file(made);
        if (!to) return errno;
        relayout copy(from, plan, fresh, to.get());
        int error = copy.tables(used.sub_buffers, used.sub_buffers);
        if (error == 0) error = copy.header(plan, used.capacity);
        const bool same_group =
            status.st_gid == ::getegid() || ::fchown(to.get(), status.st_uid, status.st_gid) == 0;
        if (error == 0 && !same_group) error = EPERM;
        if (error == 0 && ::fchmod(to.get(), status.st_mode & 07777U) != 0) error = errno;
        // A rotation would move the file on, and another trace to its name.
        bool has_turn = false;
        const file_descriptor turn = storage::wait_for_turn(name, has_turn);
        if (error == 0 && !has_turn) error = EBUSY;
        if (error == 0 && !is_it()) error = ENOENT;
        if (error == 0 && ::rename(made, name) != 0) error = errno;
        if (error != 0) ::unlink(made);
        return error;
    }
};

/// Trims the file that has this inode: `fd`'s, else the one of that name. 0 or the error. A file
/// that was renamed is only cut: its name may be another file's now.
[[gnu::cold, gnu::noinline]] inline int trim_file(const char* name, int fd, dev_t device,
                                                  ino64_t inode) noexcept {
    const int saved = errno;
    large_files::file_status status{};
    const auto is_it = [&](int open) {
        return large_files::fstat(open, &status) == 0 && status.st_dev == device &&
               status.st_ino == inode;
    };
    file_descriptor named;
    if (!is_it(fd)) {
        named.reset(::open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        fd = named.get();
    }
    const int error = is_it(fd) ? trimmer::trim(name, fd, status) : EBADF;
    errno = saved;
    return error;
}

/// Gives a trimmed file, which is `fd`'s, the sizes that it had before: if it has short tables, in
/// a layout behind its end. Returns what failed; the file is then as it was. `busy`: another
/// process has it.
[[nodiscard, gnu::cold]] inline setup_fault make_whole(int fd, std::uint64_t behind, bool& busy) {
    busy = false;
    const std::uint64_t bytes = storage::file_bytes(fd);
    const auto memory = storage::mapping::try_of_file(fd, bytes);
    if (!memory) return storage::mapping::fault(bytes);
    layout::view trace;
    if (const auto fault = trace.open(memory.data(), bytes))
        return fault_at(fault.offset, fault.what);
    const layout::plan& plan = trace.plan();
    const lone_file locked(fd, plan);
    if (!locked || !is_trimmed(fd) || storage::file_bytes(fd) != bytes) {
        busy = true;
        return {};
    }
    const layout::file_header& header = trace.header();
    // relaxed, to the end: nobody writes
    const std::uint64_t used = trace.ring().capacity.load(relaxed);
    const std::uint64_t capacity = header.whole_capacity.load(relaxed);
    layout::plan whole = plan;
    whole.sub_buffer_limit = header.whole_limit.load(relaxed);
    whole.process_count = header.whole_process_count.load(relaxed);
    whole.gate_count = header.whole_gate_count.load(relaxed);
    whole.lane_count = header.whole_lane_count.load(relaxed);
    whole.dictionary_bytes = header.whole_dictionary_bytes.load(relaxed);
    constexpr std::uint64_t most = std::uint64_t{1} << 47;
    if (used == 0 || used > layout::present_sub_buffers(plan, bytes) || capacity < used ||
        capacity > whole.sub_buffer_limit ||
        whole.sub_buffer_limit > most / plan.sub_buffer_bytes || whole.process_count > 65536 ||
        whole.gate_count > 65536 || whole.lane_count > 65536 ||
        whole.dictionary_bytes > std::uint64_t{1} << 30) {
        return fault_at(offsetof(layout::file_header, whole_limit),
                        "impossible sizes to go back to");
    }
    // A process that was killed here may have left something behind the end.
    const std::uint64_t end = plan.bytes_for(used);
    if (large_files::ftruncate(fd, large_files::at(end)) != 0)
        return {errno, "cannot be made whole"};
    const bool has_tables =
        whole.sub_buffer_limit == plan.sub_buffer_limit &&
        whole.process_count == plan.process_count && whole.gate_count == plan.gate_count &&
        whole.lane_count == plan.lane_count && whole.dictionary_bytes == plan.dictionary_bytes;
    if (!has_tables) {
        whole = layout::lay_out(whole, layout::round_up(end, layout::format_page_bytes));
    }
    const std::uint64_t length = least(whole.bytes_for(capacity) + behind, whole.file_limit);
    int error = storage::allocate(fd, whole.ring, whole.index_at(capacity) - whole.ring);
    if (error == 0) error = storage::allocate(fd, whole.sub_buffers, length - whole.sub_buffers);
    relayout copy(memory.data(), plan, whole, fd);
    if (error == 0 && has_tables) {
        error = storage::write_at(fd, &capacity, sizeof capacity,
                                  plan.ring + offsetof(layout::ring_state, capacity));
    } else if (error == 0) {
        error = copy.tables(capacity, used);
    }
    if (error == 0) error = copy.header({}, 0);
    if (error == 0) return {};
    static_cast<void>(large_files::ftruncate(fd, large_files::at(end)));
    return storage::not_allocated(error, length, " that it had before it was trimmed");
}

/// Opens a trace file to be mapped, though not to record: it is not trimmed as long as the
/// descriptor is open, and one that was trimmed is made whole first. Throws setup_error.
[[nodiscard, gnu::cold]] inline file_descriptor open_to_map(const std::string& file) {
    for (int i = 0;; ++i) {
        file_descriptor fd = storage::open_file(file);
        large_files::file_status own{};
        large_files::file_status named{};
        bool busy = storage::lock_byte(fd.get(), layout::map_lock_offset, true) ==
                        storage::lock_result::held_by_another ||
                    large_files::fstat(fd.get(), &own) != 0 ||
                    large_files::stat(file.c_str(), &named) != 0 || own.st_dev != named.st_dev ||
                    own.st_ino != named.st_ino;
        if (!busy && !is_trimmed(fd.get())) return fd;
        if (!busy) fail_setup(file, make_whole(fd.get(), 0, busy));
        if (busy && i == 1000) fail_setup(file, "is being replaced", EBUSY);
        if (!busy) continue;
        fd.reset();
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace trace_ring::inline v1::impl

namespace trace_ring::inline v1 {

/// Makes a trace file about as long as its contents: one that a killed program left, as a recorder
/// trims its own when it ends. False if a process records into it or maps it. Throws setup_error.
inline bool trim(const std::string& file) {
    const file_descriptor fd = storage::open_file(file);
    large_files::file_status status{};
    if (large_files::fstat(fd.get(), &status) != 0)
        fail_setup(file, "cannot examine the file", errno);
    const int error = impl::trimmer::trim(file.c_str(), fd.get(), status);
    if (error == EINVAL) fail_setup(file, "not a trace file, or a damaged one", error);
    if (error != 0 && error != EBUSY) fail_setup(file, "cannot be trimmed", error);
    return error == 0;
}

}  // namespace trace_ring::inline v1
#endif
