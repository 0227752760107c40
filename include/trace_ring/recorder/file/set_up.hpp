// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes or joins a trace file. Nothing here is fast or signal-safe, and everything that can fail
/// fails here, with the file's name and the cause.

#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <trace_ring/recorder/file/trace_memory.hpp>
#include <trace_ring/recorder/light/least.hpp>

namespace trace_ring::inline v1::impl {

/// An unused name in the same folder.
[[nodiscard]] inline std::string name_beside(const std::string& path) {
    std::uint32_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) random = 0;
    return path + ".new." + std::to_string(::getpid()) + '.' + std::to_string(random);
}

/// The plan that follows from the options. Throws setup_error that names the option.
[[nodiscard]] inline layout::plan plan_for(const recorder_options& options) {
    const auto refuse = [](const char* option, const char* rule) {
        fail_setup(std::string("recorder_options::") + option, rule, EINVAL);
    };
    layout::plan plan;
    if (options.sub_buffer_bytes != 0 && !valid_sub_buffer_bytes(options.sub_buffer_bytes)) {
        refuse("sub_buffer_bytes", "must be 0 or a power of two from 512 to 32768");
    }
    if (options.totals > layout::max_totals) refuse("totals", "must be at most 64");
    if (options.processes == 0 || options.processes > 65536) {
        refuse("processes", "must be from 1 to 65536");
    }
    if (options.programs == 0 || options.programs > options.processes) {
        refuse("programs", "must be from 1 to `processes`");
    }
    if (options.lanes > 65536) refuse("lanes", "must be at most 65536");
    if (options.dictionary_bytes < 4096 || options.dictionary_bytes > (1ULL << 30)) {
        refuse("dictionary_bytes", "must be from 4096 to 1 GiB");
    }
    if (options.full > full_mode::extend_then_overwrite) refuse("full", "must be a full_mode");
    if (options.keep_for.count() < 0) refuse("keep_for", "must not be negative");
    if (options.keep_for.count() > 0 && options.full == full_mode::overwrite_oldest) {
        refuse("keep_for", "must not be set where the oldest is overwritten at once");
    }
    const bool extends = options.full == full_mode::extend_then_discard ||
                         options.full == full_mode::extend_then_overwrite;
    if (extends && options.step == 0) refuse("step", "must not be zero");
    if (extends && options.limit != 0 && options.limit < options.size) {
        refuse("limit", "must not be less than `size`");
    }
    if (options.size > (1ULL << 47)) refuse("size", "must be at most 128 TiB");
    std::uint64_t most = options.size;
    if (extends) most = options.limit != 0 ? options.limit : options.size * 16;
    const auto sub_buffer_bytes = static_cast<std::uint32_t>(
        options.sub_buffer_bytes != 0
            ? options.sub_buffer_bytes
            : clamped<std::uint64_t>(std::bit_floor(most / 32768), default_sub_buffer_bytes,
                                     max_sub_buffer_bytes));
    if (options.size < 8ULL * sub_buffer_bytes) {
        const std::string least = std::to_string(8ULL * sub_buffer_bytes);
        refuse("size", ("must be at least eight sub-buffers: " + least + " bytes").c_str());
    }
    if (most > (1ULL << 47)) refuse("limit", "must be at most 128 TiB");
    plan.sub_buffer_bytes = sub_buffer_bytes;
    plan.sub_buffer_limit = (most + sub_buffer_bytes - 1) / sub_buffer_bytes;
    if (options.quotas.size() >= layout::max_rings) refuse("quotas", "must be at most three");
    std::uint64_t rest = options.size / sub_buffer_bytes;
    static_assert(quota_list::most == layout::max_rings - 1);
    for (std::size_t i = 0; i < options.quotas.size(); ++i) {
        const std::uint64_t bytes = options.quotas[i];
        if (bytes < 8ULL * sub_buffer_bytes || bytes > options.size) {
            refuse("quotas", "must be at least eight sub-buffers each, and within `size`");
        }
        rest -= least(rest, (bytes + sub_buffer_bytes - 1) / sub_buffer_bytes);
    }
    if (rest < 8) refuse("quotas", "must leave eight sub-buffers of `size` to other events");
    plan.clock_count = 64;
    plan.process_count = options.processes;
    plan.gate_count = options.programs;
    plan.lane_count = options.lanes != 0 ? options.lanes
                                         : static_cast<std::uint32_t>(clamped<std::uint64_t>(
                                               plan.sub_buffer_limit / 4, 64, 4096));
    plan.totals_per_lane = options.totals;
    plan.dictionary_bytes = options.dictionary_bytes;
    return layout::lay_out(plan);
}

inline std::optional<setup_error> trace_memory::populate_tables() const {
    const int error = memory_.populate(0, plan_.fixed_bytes());
    if (error == 0) return std::nullopt;
    return storage::not_allocated(path_.empty() ? "memory" : path_, "the tables", error);
}

/// False if `path_` was to be joined or made, and another process made it at the same time.
inline bool trace_memory::create(const recorder_options& options, const clock_functions& wanted) {
    plan_ = plan_for(options);
    if (options.keep_for.count() > 0 && wanted.kind == functions_of<clock::none>.kind) {
        fail_setup("recorder_options::keep_for", "must not be set without a clock", EINVAL);
    }
    const std::uint64_t first =
        (options.size + plan_.sub_buffer_bytes - 1) / plan_.sub_buffer_bytes;
    std::string made;  // what to remove if set-up fails
    const bool in_place = options.exists == if_exists::fail;
    if (!path_.empty()) {
        made = in_place ? path_ : name_beside(path_);
        file_descriptor fresh = storage::try_create_file(made);
        if (!fresh) {
            fail_setup(path_,
                       errno != EEXIST
                           ? "cannot create the file"
                           : "cannot create the file (if_exists::replace puts it in the "
                             "place of an old trace, if_exists::attach joins that)",
                       errno);
        }
        file_.keep(std::move(fresh), path_);
    } else if (options.memory_file) {
        path_ = "memory";
        file_.keep(storage::create_memory_file("trace_ring"), path_);
    } else {
        file_descriptor fresh = storage::try_create_memory_file("trace_ring locks");
        // Without that file, pids tell who lives, as far as they can.
        if (fresh) signs_.keep(std::move(fresh), "memory");
    }
    if (file_) {
        static_cast<void>(storage::lock_byte(file_.number(), layout::use_lock_offset, true));
    }
    struct removal {
        const std::string& file;
        ~removal() {
            if (!file.empty()) ::unlink(file.c_str());
        }
    };
    bool has_name = true;
    const auto fault = [&]() -> std::optional<setup_error> {
        const removal at_end{made};
        if (file_) {
            if (const int error = storage::allocate(file_.number(), 0, plan_.fixed_bytes())) {
                return storage::not_allocated(path_, "the tables", error);
            }
        }
        memory_ = storage::mapping::try_with_slack(file_.number(), plan_.file_limit, stray_bytes);
        if (!memory_) {
            return storage::mapping::fault(file_ ? path_ : "anonymous memory", plan_.file_limit);
        }
        if (auto failed = populate_tables()) return failed;
        if (const int error = provide(0, first)) {
            return storage::not_allocated(
                path_.empty() ? "memory" : path_,
                std::to_string(first * plan_.sub_buffer_bytes) + " bytes of sub-buffers", error);
        }
        clock_ = wanted.usable() ? &wanted : &functions_of<clock::monotonic>;
        auto& h = header();
        // relaxed, to the end: published by the magic
        h.version.store(layout::file_version, relaxed);
        h.header_bytes.store(layout::page_bytes, relaxed);
        h.creator_word.store(sizeof(void*), relaxed);
        h.clock.store(clock(), relaxed);
        h.ticks_per_second.store(static_cast<std::uint64_t>(clock_->ticks_per_second()), relaxed);
        std::uint64_t id[2] = {};
        if (::getrandom(id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) {
            id[0] = now();
            id[1] = static_cast<std::uint64_t>(::getpid());
        }
        for (int i = 0; i < 2; ++i) h.id[i].store(id[i], relaxed);
        h.created.store(take_snapshot<clock::monotonic>().realtime, relaxed);
        h.sub_buffer_bytes.store(plan_.sub_buffer_bytes, relaxed);
        h.full.store(static_cast<std::uint32_t>(options.full), relaxed);
        h.no_control.store(options.control == control_mode::off ? 1 : 0, relaxed);
        h.sub_buffer_limit.store(plan_.sub_buffer_limit, relaxed);
        h.file_limit.store(plan_.file_limit, relaxed);
        h.ring_offset.store(plan_.ring, relaxed);
        h.clocks_offset.store(plan_.clocks, relaxed);
        h.clock_stride.store(sizeof(layout::clock_entry), relaxed);
        h.clock_count.store(plan_.clock_count, relaxed);
        h.processes_offset.store(plan_.processes, relaxed);
        h.process_stride.store(sizeof(layout::process_entry), relaxed);
        h.process_count.store(plan_.process_count, relaxed);
        h.gates_offset.store(plan_.gates, relaxed);
        h.gate_stride.store(layout::page_bytes, relaxed);
        h.gate_count.store(plan_.gate_count, relaxed);
        h.lanes_offset.store(plan_.lanes, relaxed);
        h.lane_stride.store(sizeof(layout::lane_entry), relaxed);
        h.lane_count.store(plan_.lane_count, relaxed);
        h.totals_offset.store(plan_.totals, relaxed);
        h.totals_per_lane.store(plan_.totals_per_lane, relaxed);
        h.dictionary_offset.store(plan_.dictionary, relaxed);
        h.dictionary_bytes.store(plan_.dictionary_bytes, relaxed);
        h.index_offset.store(plan_.index, relaxed);
        h.index_stride.store(sizeof(layout::index_entry), relaxed);
        h.sub_buffers_offset.store(plan_.sub_buffers, relaxed);
        ring().capacity.store(first, relaxed);
        ring().keep_for.store(static_cast<std::uint64_t>(options.keep_for.count()), relaxed);
        std::uint64_t set_aside = 0;
        for (std::size_t i = 0; i < options.quotas.size(); ++i) {
            const std::uint64_t count =
                (options.quotas[i] + plan_.sub_buffer_bytes - 1) / plan_.sub_buffer_bytes;
            ring().quotas[i].sub_buffers.store(count, relaxed);
            ring().quotas[i].cursor.store(set_aside, relaxed);
            set_aside += count;
        }
        ring().cursor.store(set_aside, relaxed);
        // order: layout.publish:A pairs with layout.check:A, table.read:D
        h.magic.store(layout::file_magic, release);
        if (!made.empty() && options.exists == if_exists::replace) {
            if (auto why = replace_old(made)) return why;
        }
        if (!made.empty() && options.exists == if_exists::attach) {
            if (auto why = give_name(made, has_name)) return why;
        }
        if (has_name && !made.empty()) file_.has_name(path_);
        if (in_place) made.clear();  // it stays
        return std::nullopt;
    }();
    fail_setup(fault);
    if (!has_name) {
        memory_.reset();
        file_.reset();
        clock_ = nullptr;
    }
    return has_name;
}

/// Gives the new file its name when it is complete, so that a process that joins at the same time
/// finds all of it or nothing. `has_name` is false if the name is taken. Returns what failed.
inline std::optional<setup_error> trace_memory::give_name(const std::string& made, bool& has_name) {
    const int error = storage::name_file(made.c_str(), path_.c_str());
    has_name = error == 0;
    if (has_name || error == EEXIST) return std::nullopt;
    return setup_error(path_, "cannot put the new file in place", error);
}

/// Whether a process that has no lock on its byte lives and records into the file. Only processes
/// that this one can see count: others cannot be told from dead ones. `plan` has been checked.
[[nodiscard]] inline bool is_recorded_without_locks(int fd, const layout::plan& plan) {
    const std::uint32_t space = storage::pid_namespace();
    for (std::uint32_t slot = 0; slot < plan.process_count; ++slot) {
        layout::process_entry entry{};
        const std::uint64_t at = plan.processes + slot * sizeof entry;
        if (::pread64(fd, static_cast<void*>(&entry), sizeof entry, static_cast<off64_t>(at)) !=
            static_cast<ssize_t>(sizeof entry)) {
            return false;
        }
        // relaxed, all: a copy
        if (entry.state.load(relaxed) == static_cast<std::uint32_t>(layout::presence::live) &&
            entry.has_lock.load(relaxed) == 0 && space != 0 && entry.space.load(relaxed) == space &&
            storage::process_may_live(entry.pid.load(relaxed), entry.start.load(relaxed))) {
            return true;
        }
    }
    return false;
}

/// Puts the new file in the place of an old one, if that is a trace file that no process writes.
/// Returns why not.
inline std::optional<setup_error> trace_memory::replace_old(const std::string& made) {
    file_descriptor old;  // kept until the name is the new file's: joiners wait
    if (::access(path_.c_str(), F_OK) == 0) {
        if (auto why = storage::open_file(old, path_)) return why;
        std::uint64_t magic = 0;
        if (::pread(old.get(), &magic, sizeof magic, 0) != sizeof magic ||
            magic != layout::file_magic) {
            return setup_error(path_, "will not replace what is not a trace file", EEXIST);
        }
        const std::uint64_t bytes = storage::file_bytes(old.get());
        layout::plan plan;
        const auto header = storage::mapping::try_of_file(old.get(), layout::page_bytes);
        if (!header) return storage::mapping::fault(path_, layout::page_bytes);
        const bool is_sound =
            bytes >= layout::page_bytes && !layout::check_layout(header.data(), bytes, plan);
        if (storage::lock_byte(old.get(), layout::use_lock_offset) ==
                storage::lock_result::held_by_another ||
            storage::byte_is_locked(old.get(), layout::reclaim_lock_offset,
                                    layout::use_lock_offset - layout::reclaim_lock_offset) ||
            (is_sound && is_recorded_without_locks(old.get(), plan))) {
            return setup_error(path_, "will not replace a trace file in use", EBUSY);
        }
    }
    if (::rename(made.c_str(), path_.c_str()) != 0) {
        return setup_error(path_, "cannot put the new file in place", errno);
    }
    return std::nullopt;
}

/// False if there is no file to join. Throws if there is one that cannot be joined.
inline bool trace_memory::join(const clock_functions& wanted, bool any_owner) {
    std::uint64_t bytes = 0;
    for (int i = 0;; ++i) {
        if (::access(path_.c_str(), F_OK) != 0) return false;
        file_.keep(storage::open_file(
                       path_, any_owner ? storage::trust::any_owner : storage::trust::same_owner),
                   path_);
        const bool held = storage::lock_byte(file_.number(), layout::use_lock_offset, true) ==
                          storage::lock_result::held_by_another;
        bytes = storage::file_bytes(file_.number());
        // Another process is putting a new file in its place (an empty one: see
        // storage::name_file).
        if (!held && (bytes != 0 || i == 100)) break;
        if (i == 1000) fail_setup(path_, "is being replaced", EBUSY);
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    file_.has_name(path_);
    if (bytes < layout::page_bytes) fail_setup(path_, "not a trace file", EINVAL);
    const storage::mapping first =
        storage::mapping::of_file(path_, file_.number(), layout::page_bytes);
    // Only the first page is mapped; for sizes the check goes by `bytes`.
    if (const auto fault = layout::check_layout(first.data(), bytes, plan_)) {
        fail_setup(path_, "offset " + std::to_string(fault.offset) + ": " + std::string(fault.what),
                   EINVAL);
    }
    memory_ = storage::mapping::with_slack(path_, file_.number(), plan_.file_limit, stray_bytes);
    // Older versions can be read, but do not describe what would be written.
    if (header().version.load(relaxed) != layout::file_version)  // relaxed: it does not change
        fail_setup(path_, "offset 8: a trace file of another version", EINVAL);
    static_assert(offsetof(layout::file_header, version) == 8);
    // Loaded before the file is measured again: it may be growing.
    // order: grow.use:E pairs with grow:A
    const std::uint64_t capacity = ring().capacity.load(acquire);
    const std::uint64_t bytes_now = storage::file_bytes(file_.number());
    if (capacity == 0 || capacity > layout::present_sub_buffers(plan_, bytes_now)) {
        fail_setup(path_, "offset " + std::to_string(plan_.ring) + ": impossible capacity", EINVAL);
    }
    // relaxed, to the end: fixed since the magic
    std::uint64_t rest = capacity;
    for (const auto& quota : ring().quotas) {
        const std::uint64_t count = quota.sub_buffers.load(relaxed);
        if (count >= rest) {
            fail_setup(path_, "offset " + std::to_string(plan_.ring) + ": impossible quotas",
                       EINVAL);
        }
        rest -= count;
    }
    const std::uint32_t full = header().full.load(relaxed);
    if (full > static_cast<std::uint32_t>(full_mode::extend_then_overwrite)) {
        fail_setup(path_,
                   "offset " + std::to_string(offsetof(layout::file_header, full)) +
                       ": an unknown full_mode",
                   EINVAL);
    }
    const std::uint32_t kind = header().clock.load(relaxed);
    for (const clock_functions* known :
         {&wanted, &functions_of<clock::none>, &functions_of<clock::monotonic>,
          &functions_of<clock::tsc>}) {
        if (clock_ == nullptr && known->kind == kind && known->usable()) clock_ = known;
    }
    if (clock_ == nullptr) fail_setup(path_, "its clock cannot be read here", ENOTSUP);
    fail_setup(populate_tables());
    // The bytes exist already, unless the file is a copy.
    const std::uint64_t end = plan_.bytes_for(capacity);
    const std::uint64_t behind = least(stray_bytes, plan_.file_limit - end);
    int error = behind == 0 ? 0 : storage::allocate(file_.number(), end, behind);
    if (error != 0) {
        fail_setup(storage::not_allocated(path_, "what is needed behind its sub-buffers", error));
    }
    error = populate(0, capacity);
    if (error != 0) {
        fail_setup(
            storage::not_allocated(path_, "its sub-buffers, of which some are holes", error));
    }
    return true;
}

}  // namespace trace_ring::inline v1::impl
