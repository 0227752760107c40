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
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <trace_ring/bounds.hpp>
#include <trace_ring/recorder/file/rotation.hpp>
#include <trace_ring/recorder/file/trace_memory.hpp>

namespace trace_ring::inline v1::impl {

/// The plan that follows from the options. Throws setup_error that names the option.
[[nodiscard, gnu::cold]] inline layout::plan plan_for(const recorder_options& options) {
    const auto refuse_if = [](bool is_wrong, const char* option, const char* rule) {
        if (is_wrong) fail_setup(option, rule, EINVAL);
    };
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 47;
    refuse_if(options.sub_buffer_bytes != 0 && !valid_sub_buffer_bytes(options.sub_buffer_bytes),
              "recorder_options::sub_buffer_bytes",
              "must be 0 or a power of two from 512 to 32768");
    refuse_if(options.totals > layout::max_totals, "recorder_options::totals",
              "must be at most 64");
    refuse_if(options.processes == 0 || options.processes > 65536, "recorder_options::processes",
              "must be from 1 to 65536");
    refuse_if(options.programs == 0 || options.programs > options.processes,
              "recorder_options::programs", "must be from 1 to `processes`");
    refuse_if(options.lanes > 65536, "recorder_options::lanes", "must be at most 65536");
    refuse_if(options.dictionary_bytes < 4096 || options.dictionary_bytes > (1ULL << 30),
              "recorder_options::dictionary_bytes", "must be from 4096 to 1 GiB");
    refuse_if(options.full > full_mode::extend_then_overwrite, "recorder_options::full",
              "must be a full_mode");
    refuse_if((options.file_mode & 0600U) != 0600U || options.file_mode > 0777U,
              "recorder_options::file_mode", "must be from 0600 to 0777, with 0600 in it");
    refuse_if(options.rotations == 0 || options.rotations > 1000, "recorder_options::rotations",
              "must be from 1 to 1000");
    refuse_if(options.keep_for.count() < 0, "recorder_options::keep_for", "must not be negative");
    refuse_if(options.keep_for.count() > 0 && options.full == full_mode::overwrite_oldest,
              "recorder_options::keep_for",
              "must not be set where the oldest is overwritten at once");
    const bool extends = options.full == full_mode::extend_then_discard ||
                         options.full == full_mode::extend_then_overwrite;
    refuse_if(extends && options.step == 0, "recorder_options::step", "must not be zero");
    refuse_if(extends && options.limit != 0 && options.limit < options.size,
              "recorder_options::limit", "must not be less than `size`");
    refuse_if(options.size > most_bytes, "recorder_options::size", "must be at most 128 TiB");
    std::uint64_t most = options.size;
    if (extends) most = options.limit != 0 ? options.limit : options.size * 16;
    layout::plan plan;
    const std::uint64_t bytes =
        options.sub_buffer_bytes != 0
            ? options.sub_buffer_bytes
            : clamped<std::uint64_t>(std::bit_floor(most / 32768), default_sub_buffer_bytes,
                                     max_sub_buffer_bytes);
    if (options.size < 8 * bytes) {
        fail_setup("recorder_options::size",
                   setup_fault(EINVAL, "must be at least eight sub-buffers: %" PRIu64 " bytes",
                               8 * bytes));
    }
    refuse_if(most > most_bytes, "recorder_options::limit", "must be at most 128 TiB");
    plan.sub_buffer_bytes = static_cast<std::uint32_t>(bytes);
    plan.sub_buffer_limit = (most + bytes - 1) / bytes;
    static_assert(quota_list::most == layout::max_rings - 1);
    refuse_if(options.quotas.size() > quota_list::most, "recorder_options::quotas",
              "must be at most three");
    std::uint64_t rest = options.size / bytes;
    for (std::size_t i = 0; i < options.quotas.size(); ++i) {
        const std::uint64_t quota = options.quotas[i];
        refuse_if(quota < 8 * bytes || quota > options.size, "recorder_options::quotas",
                  "must be at least eight sub-buffers each, and within `size`");
        rest -= least(rest, (quota + bytes - 1) / bytes);
    }
    refuse_if(rest < 8, "recorder_options::quotas",
              "must leave eight sub-buffers of `size` to other events");
    plan.clock_count = 64;
    plan.process_count = options.processes;
    plan.gate_count = options.programs;
    plan.lane_count =
        options.lanes != 0 ? options.lanes : layout::default_lanes(plan.sub_buffer_limit);
    plan.totals_per_lane = options.totals;
    plan.dictionary_bytes = options.dictionary_bytes;
    return layout::lay_out(plan);
}

inline setup_fault trace_memory::populate_tables() const {
    const int error = memory_.populate(0, plan_.fixed_bytes());
    if (error == 0) return {};
    return storage::not_allocated(error, "the tables");
}

/// Opens a new file, or a memory file, or one for locks alone. `made`: what to remove if set-up
/// fails; empty if it has no name.
inline void trace_memory::open_new(const recorder_options& options, name_buffer& made) {
    file_descriptor fresh;
    if (!path_.empty()) {
        made.add(path());
        if (options.exists != if_exists::fail) {  // an unused name in the same folder
            std::uint32_t random = 0;
            // Without it the name may be in use, which is tried below.
            [[maybe_unused]] const ssize_t drawn = ::getrandom(&random, sizeof random, 0);
            made.add(".new.");
            made.add(static_cast<std::uint32_t>(::getpid()));
            made.add('.');
            made.add(random);
        }
        fresh = storage::try_create_file(made.text);
        if (!fresh && errno == EEXIST) {
            fail_setup(path(),
                       "cannot create the file (if_exists::rotate keeps the old trace by another "
                       "name, if_exists::replace removes it, if_exists::attach joins it)",
                       EEXIST);
        }
        if (!fresh) fail_setup(path(), "cannot create the file", errno);
    } else if (options.memory_file) {
        path_.set("memory");
        fresh = storage::create_memory_file("trace_ring");
    } else {
        fresh = storage::try_create_memory_file("trace_ring locks");
        // Without that file, pids tell who lives, as far as they can.
        if (fresh) signs_.keep(std::move(fresh), path());
        return;
    }
    file_.keep(std::move(fresh), path());
    static_cast<void>(storage::lock_byte(file_.number(), layout::use_lock_offset, true));
}

/// False if `path_` was to be joined or made, and another process made it at the same time.
inline bool trace_memory::create(const recorder_options& options, const clock_functions& wanted) {
    plan_ = plan_for(options);
    if (options.keep_for.count() > 0 && wanted.kind == functions_of<clock::none>.kind)
        fail_setup("recorder_options::keep_for", "must not be set without a clock", EINVAL);
    name_buffer made;
    open_new(options, made);
    bool has_name = true;
    setup_fault fault = fill(options, wanted);
    const bool is_named = made.size != 0;
    if (!fault && is_named) fault = give_name(made.text, options, has_name);
    // In its place it stays; elsewhere it has another name by now, or is not wanted.
    if (is_named && (fault || options.exists != if_exists::fail)) ::unlink(made.text);
    fail_setup(memory_ || file_ ? subject() : "anonymous memory", fault);
    if (has_name && is_named) file_.has_name(path());
    if (!has_name) {
        memory_.reset();
        file_.reset();
        clock_ = nullptr;
    }
    return has_name;
}

/// Allocates and describes everything. Returns what failed.
inline setup_fault trace_memory::fill(const recorder_options& options,
                                      const clock_functions& wanted) {
    const std::uint64_t first =
        (options.size + plan_.sub_buffer_bytes - 1) / plan_.sub_buffer_bytes;
    if (file_) {
        if (const int error = storage::allocate(file_.number(), 0, plan_.fixed_bytes()))
            return storage::not_allocated(error, "the tables");
    }
    memory_ = storage::mapping::try_with_slack(file_.number(), plan_.file_limit, stray_bytes);
    if (!memory_) return storage::mapping::fault(plan_.file_limit);
    if (const setup_fault failed = populate_tables()) return failed;
    if (const int error = provide(0, first)) {
        return storage::not_allocated(error, first * plan_.sub_buffer_bytes, " of sub-buffers");
    }
    clock_ = wanted.usable() ? &wanted : &functions_of<clock::monotonic>;
    describe(options, first);
    return {};
}

/// Writes the header and what else differs from zero, of which the magic is the last.
inline void trace_memory::describe(const recorder_options& options,
                                   std::uint64_t first) const noexcept {
    auto& h = header();
    // relaxed, to the end: published by the magic
    h.version.store(layout::file_version, relaxed);
    h.header_bytes.store(layout::format_page_bytes, relaxed);
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
    store_plan(h, plan_);
    h.full.store(static_cast<std::uint32_t>(options.full), relaxed);
    h.no_control.store(options.control == control_mode::off ? 1 : 0, relaxed);
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
}

/// Gives the new file its name when it is complete, so that a process that joins at the same time
/// finds all of it or nothing. `has_name` is false if the name is taken. Returns what failed.
inline setup_fault trace_memory::give_name(const char* made, const recorder_options& options,
                                           bool& has_name) {
    if (const int error = storage::set_mode(file_.number(), options.file_mode))
        return {error, "cannot set the file's mode"};
    if (options.exists == if_exists::fail) return {};
    if (options.exists == if_exists::replace) return replace_old(made);
    if (options.exists == if_exists::rotate) return put_before_old(made, path(), options.rotations);
    const int error = storage::name_file(made, path());
    has_name = error == 0;
    if (has_name || error == EEXIST) return {};
    return {error, "cannot put the new file in place"};
}

/// Puts the new file in the place of an old one, if that is a trace file that no process writes.
/// Returns why not.
inline setup_fault trace_memory::replace_old(const char* made) const {
    file_descriptor old;  // kept until the name is the new file's: joiners wait
    if (::access(path(), F_OK) == 0) {
        if (const setup_fault why = open_trace(old, path())) return why;
        const std::uint64_t bytes = storage::file_bytes(old.get());
        layout::plan plan;
        const auto header = storage::mapping::try_of_file(old.get(), layout::format_page_bytes);
        if (!header) return storage::mapping::fault(layout::format_page_bytes);
        const bool is_sound =
            bytes >= layout::format_page_bytes && !layout::check_layout(header.data(), bytes, plan);
        if (storage::lock_byte(old.get(), layout::use_lock_offset) ==
                storage::lock_result::held_by_another ||
            storage::byte_is_locked(old.get(), layout::reclaim_lock_offset,
                                    layout::use_lock_offset - layout::reclaim_lock_offset) ||
            (is_sound && is_recorded_without_locks(old.get(), plan, false))) {
            return {EBUSY, "will not replace a trace file in use"};
        }
    }
    if (::rename(made, path()) != 0) return {errno, "cannot put the new file in place"};
    return {};
}

/// Sets the plan to that of the file, of so many bytes. Throws setup_error.
inline void trace_memory::plan_of_file(std::uint64_t bytes) {
    const storage::mapping first =
        storage::mapping::of_file(path(), file_.number(), layout::format_page_bytes);
    // Only the first page is mapped; for sizes the check goes by `bytes`.
    if (const auto fault = layout::check_layout(first.data(), bytes, plan_)) {
        fail_setup(path(), fault_at(fault.offset, fault.what));
    }
}

/// Whether the file that is mapped can be joined; finds its clock. Returns how many sub-buffers it
/// has. Throws setup_error.
inline std::uint64_t trace_memory::check_joined(const clock_functions& wanted) {
    // Older versions can be read, but do not describe what would be written.
    if (header().version.load(relaxed) != layout::file_version)  // relaxed: it does not change
        fail_setup(path(), "offset 8: a trace file of another version", EINVAL);
    static_assert(offsetof(layout::file_header, version) == 8);
    // Loaded before the file is measured again: it may be growing.
    // order: grow.use:E pairs with grow:A
    const std::uint64_t capacity = ring().capacity.load(acquire);
    const std::uint64_t bytes_now = storage::file_bytes(file_.number());
    if (capacity == 0 || capacity > layout::present_sub_buffers(plan_, bytes_now)) {
        fail_setup(path(), fault_at(plan_.ring, "impossible capacity"));
    }
    // relaxed, to the end: fixed since the magic
    std::uint64_t rest = capacity;
    for (const auto& quota : ring().quotas) {
        const std::uint64_t count = quota.sub_buffers.load(relaxed);
        if (count >= rest) {
            fail_setup(path(), fault_at(plan_.ring, "impossible quotas"));
        }
        rest -= count;
    }
    const std::uint32_t full = header().full.load(relaxed);
    if (full > static_cast<std::uint32_t>(full_mode::extend_then_overwrite))
        fail_setup(path(), fault_at(offsetof(layout::file_header, full), "an unknown full_mode"));
    const std::uint32_t kind = header().clock.load(relaxed);
    for (const clock_functions* known :
         {&wanted, &functions_of<clock::none>, &functions_of<clock::monotonic>,
          &functions_of<clock::tsc>}) {
        if (clock_ == nullptr && known->kind == kind && known->usable()) clock_ = known;
    }
    if (clock_ == nullptr) fail_setup(path(), "its clock cannot be read here", ENOTSUP);
    return capacity;
}

/// False if there is no file to join. Throws if there is one that cannot be joined.
inline bool trace_memory::join(const clock_functions& wanted, bool any_owner) {
    std::uint64_t bytes = 0;
    for (int i = 0;; ++i) {
        if (::access(path(), F_OK) != 0) return false;
        file_.keep(storage::open_file(
                       path(), any_owner ? storage::trust::any_owner : storage::trust::same_owner),
                   path());
        // The file that was opened may have lost its name to another before the lock was taken.
        const bool held = storage::lock_byte(file_.number(), layout::use_lock_offset, true) ==
                              storage::lock_result::held_by_another ||
                          !file_.is_named(path());
        bytes = storage::file_bytes(file_.number());
        bool trimmed = !held && bytes >= layout::format_page_bytes && is_trimmed(file_.number());
        // Another process is putting a new file in its place (an empty one: see
        // storage::name_file).
        if (!held && !trimmed && (bytes != 0 || i == 100)) break;
        if (trimmed) {
            plan_of_file(bytes);
            memory_ = storage::mapping::of_file(path(), file_.number(), bytes);
            static_cast<void>(check_joined(wanted));
            memory_.reset();
            fail_setup(path(), make_whole(file_.number(), stray_bytes, trimmed));
        }
        if (i == 1000) fail_setup(path(), "is being replaced", EBUSY);
        if (!held && !trimmed) continue;
        storage::unlock_byte(file_.number(), layout::use_lock_offset);
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    file_.has_name(path());
    if (bytes < layout::format_page_bytes) fail_setup(path(), "not a trace file", EINVAL);
    plan_of_file(bytes);
    memory_ = storage::mapping::with_slack(path(), file_.number(), plan_.file_limit, stray_bytes);
    const std::uint64_t capacity = check_joined(wanted);
    fail_setup(path(), populate_tables());
    // The bytes exist already, unless the file is a copy.
    const std::uint64_t end = plan_.bytes_for(capacity);
    const std::uint64_t behind = least(stray_bytes, plan_.file_limit - end);
    int error = behind == 0 ? 0 : storage::allocate(file_.number(), end, behind);
    const char* what = "what is needed behind its sub-buffers";
    if (error == 0) {
        error = populate(0, capacity);
        what = "its sub-buffers, of which some are holes";
    }
    if (error != 0) fail_setup(path(), storage::not_allocated(error, what));
    return true;
}

}  // namespace trace_ring::inline v1::impl
