// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes or joins a trace, in a file or in memory, and maps it. Set-up is not fast or signal-safe,
/// and everything that can fail fails here, with the file's name and the cause. If several
/// processes set up the same file at the same time, one makes it and the others join it.
/// @code
///   join    open, lock the byte of use, check the header, make whole if trimmed, map
///   create  plan from the options, new file by a temporary name, describe, give it its name
/// @endcode

#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <trace_ring/bounds.hpp>
#include <trace_ring/c_string.hpp>
#include <trace_ring/format/lay_out.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/recorder/file/clock_functions.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/file/plan_for.hpp>
#include <trace_ring/recorder/file/rotation.hpp>
#include <trace_ring/recorder/trim/trim.hpp>

namespace trace_ring::inline v1::impl {

/// How far behind the last sub-buffer a stray record may be stored. A writer takes the place of a
/// record from the sub-buffer's commit word, which is shared. Whatever others have stored there,
/// the offset is at most 64 KiB and 8 bytes, and no record is longer than a sub-buffer. So the hot
/// path need not check the offset: its stores lie in the file, which is longer by this than its
/// sub-buffers as long as it may grow, or in memory behind it that is mapped for nothing else.
inline constexpr std::uint64_t stray_bytes = std::uint64_t{128} << 10;
static_assert(stray_bytes >= 0x10008 + max_sub_buffer_bytes);

/// A trace that is mapped to be recorded into, with its file and its clock.
class opened_trace : public layout::view {
public:
    /// Makes or joins what the options ask for. Throws setup_error.
    [[gnu::cold]] opened_trace(const recorder_options& options, const clock_functions& wanted)
        : file_mode_(options.file_mode) {
        {
            name_buffer name;
            name.expand(options.file);
            path_.set(name.is_cut() ? options.file.c_str() : name.text);  // refused later
        }
        const bool joins = !path_.empty() && options.exists == if_exists::attach;
        for (int i = 0; i < 8; ++i) {
            if ((joins && join(wanted, options.any_owner)) || create(options, wanted)) return;
        }
        fail_setup(path(), "cannot create the file", EEXIST);  // a link that leads nowhere
    }
    opened_trace(const opened_trace&) = delete;
    opened_trace& operator=(const opened_trace&) = delete;
    /// If no other process has the file, it is then about as long as its contents.
    ~opened_trace() {
        memory_.reset();
        file_.close_and(trim_file);
    }

    /// Empty for memory without a file.
    [[nodiscard]] const char* path() const noexcept { return path_.c_str(); }
    /// What an error is about.
    [[nodiscard]] const char* subject() const noexcept {
        return path_.empty() ? "memory" : path_.c_str();
    }
    [[nodiscard]] const kept_file& file() const noexcept { return file_; }
    [[nodiscard]] int descriptor() const noexcept { return file_.number(); }
    /// That of files that are made: recorder_options::file_mode.
    [[nodiscard]] std::uint32_t file_mode() const noexcept { return file_mode_; }

    /// The file's clock; `snapshot` reads it together with the system's clocks. Signal-safe.
    [[nodiscard]] std::uint32_t clock() const noexcept { return clock_->kind; }
    [[nodiscard]] std::uint64_t now() const noexcept { return clock_->now(); }
    /// Waits for the next tick. A thread that takes another lane does so, since readers order equal
    /// times by lane. Gives up after 256 readings, which take over a microsecond: the clock may be
    /// stopped.
    void await_tick() const noexcept {
        const std::uint64_t before = now();
        for (int i = 0; clock() != 0 && now() == before && i < 256; ++i) {
        }
    }
    [[nodiscard]] clock_snapshot snapshot() const noexcept { return clock_->snapshot(); }

    /// Gives the sub-buffers up to `count` and their index memory, and the file its bytes behind
    /// them, for stray records. 0 or the error. Signal-safe.
    [[nodiscard, gnu::noinline]] int provide(std::uint64_t from,
                                             std::uint64_t count) const noexcept {
        const layout::plan& p = plan();
        const std::uint64_t at = p.bytes_for(from);
        const std::uint64_t end = least(p.bytes_for(count) + stray_bytes, p.file_limit);
        const std::uint64_t index_bytes = p.index_at(count) - p.index_at(from);
        if (file_) {
            const int error = file_.use([&](int fd) {
                if (fd < 0) return EBADF;
                const int failed = storage::allocate(fd, p.index_at(from), index_bytes);
                return failed != 0 ? failed : storage::allocate(fd, at, end - at);
            });
            if (error != 0) return error;
        }
        return populate(from, count);
    }
    /// Takes the page faults of these sub-buffers and of their index. 0 or the error. Signal-safe.
    [[nodiscard, gnu::noinline]] int populate(std::uint64_t from,
                                              std::uint64_t count) const noexcept {
        const auto pages = [this](std::uint64_t begin, std::uint64_t end) {
            return memory_.populate(begin, end - begin);
        };
        const layout::plan& p = plan();
        const int error = pages(p.index_at(from), p.index_at(count));
        return error != 0 ? error : pages(p.bytes_for(from), p.bytes_for(count));
    }

    /// Calls `what(descriptor)` with the file that locks are taken on, if it can be opened: the
    /// trace file, or one in memory for locks alone. Signal-safe.
    template <class What>
    void on_locks(What&& what) const noexcept {
        if (!locks()) return;
        locks().use([&](int fd) {
            if (fd >= 0) what(fd);
        });
    }

    /// Whether a process has locked the byte; true if that is not known. Signal-safe.
    [[nodiscard, gnu::noinline]] bool is_locked(std::uint64_t offset) const noexcept {
        bool locked = true;
        on_locks([&](int fd) { locked = storage::byte_is_locked(fd, offset); });
        return locked;
    }
    /// Locks the byte for this process, if possible: `lock` says whether. Signal-safe.
    [[gnu::noinline]] void take_lock(storage::life_lock& lock,
                                     std::uint64_t offset) const noexcept {
        on_locks([&](int fd) { static_cast<void>(lock.take(fd, locks().name(), offset)); });
    }

private:
    /// The file that locks are taken on.
    [[nodiscard]] const kept_file& locks() const noexcept { return file_ ? file_ : signs_; }

    /// Keeps a mapping of the trace, whose plan was checked.
    void view_as(storage::mapping made, const layout::plan& checked) noexcept {
        memory_ = std::move(made);
        static_cast<layout::view&>(*this) = layout::view(memory_.data(), checked);
    }
    void unmap() noexcept { view_as({}, {}); }

    [[nodiscard, gnu::cold]] setup_fault populate_tables() const {
        const int error = memory_.populate(0, plan().fixed_bytes());
        if (error == 0) return {};
        return storage::not_allocated(error, "the tables");
    }

    /// Opens a new file, or a memory file, or one for locks alone. `made`: what to remove if set-up
    /// fails; empty if it has no name.
    [[gnu::cold]] void open_new(const recorder_options& options, name_buffer& made) {
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
                fail_setup(
                    path(),
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
            // Without that file, pids show which processes live, as far as they can.
            if (fresh) signs_.keep(std::move(fresh), path());
            return;
        }
        file_.keep(std::move(fresh), path());
        static_cast<void>(storage::lock_byte(file_.number(), layout::use_lock_offset, true));
    }

    /// False if `path_` was to be joined or made, and another process made it at the same time.
    [[nodiscard, gnu::cold]] bool create(const recorder_options& options,
                                         const clock_functions& wanted) {
        const layout::plan wanted_plan = plan_for(options);
        if (options.keep_for.count() > 0 && wanted.kind == functions_of<clock::none>.kind)
            fail_setup("recorder_options::keep_for", "must not be set without a clock", EINVAL);
        name_buffer made;
        open_new(options, made);
        bool has_name = true;
        setup_fault fault = fill(options, wanted, wanted_plan);
        const bool is_named = made.size != 0;
        if (!fault && is_named) fault = give_name(made.text, options, has_name);
        // In its place it stays; elsewhere it has another name by now, or is not wanted.
        if (is_named && (fault || options.exists != if_exists::fail)) ::unlink(made.text);
        fail_setup(memory_ || file_ ? subject() : "anonymous memory", fault);
        if (has_name && is_named) file_.has_name(path());
        if (!has_name) {
            unmap();
            file_.reset();
            clock_ = nullptr;
        }
        return has_name;
    }

    /// Allocates and describes everything. Returns what failed.
    [[nodiscard, gnu::cold]] setup_fault fill(const recorder_options& options,
                                              const clock_functions& wanted,
                                              const layout::plan& p) {
        const std::uint64_t first = (options.size + p.sub_buffer_bytes - 1) / p.sub_buffer_bytes;
        if (file_) {
            if (const int error = storage::allocate(file_.number(), 0, p.fixed_bytes()))
                return storage::not_allocated(error, "the tables");
        }
        view_as(storage::mapping::try_with_slack(file_.number(), p.file_limit, stray_bytes), p);
        if (!memory_) return storage::mapping::fault(p.file_limit);
        if (const setup_fault failed = populate_tables()) return failed;
        if (const int error = provide(0, first)) {
            return storage::not_allocated(error, first * p.sub_buffer_bytes, " of sub-buffers");
        }
        clock_ = wanted.usable() ? &wanted : &functions_of<clock::monotonic>;
        describe(options, first);
        return {};
    }

    /// Writes the header and what else differs from zero, of which the magic is the last.
    [[gnu::cold]] void describe(const recorder_options& options,
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
        layout::store_plan(h, plan());
        h.full.store(static_cast<std::uint32_t>(options.full), relaxed);
        h.no_control.store(options.control == control_mode::off ? 1 : 0, relaxed);
        ring().capacity.store(first, relaxed);
        ring().keep_for.store(static_cast<std::uint64_t>(options.keep_for.count()), relaxed);
        std::uint64_t set_aside = 0;
        for (std::size_t i = 0; i < options.quotas.size(); ++i) {
            const std::uint64_t count =
                (options.quotas[i] + plan().sub_buffer_bytes - 1) / plan().sub_buffer_bytes;
            ring().quotas[i].sub_buffers.store(count, relaxed);
            ring().quotas[i].cursor.store(set_aside, relaxed);
            set_aside += count;
        }
        ring().cursor.store(set_aside, relaxed);
        // order: layout.publish:A pairs with layout.check:A, table.read:D
        h.magic.store(layout::file_magic, release);
    }

    /// Gives the new file its name when it is complete, so that a process that joins at the same
    /// time finds all of it or nothing. `has_name` is false if the name is taken. Returns what
    /// failed.
    [[nodiscard, gnu::cold]] setup_fault give_name(const char* made,
                                                   const recorder_options& options,
                                                   bool& has_name) const {
        if (const int error = storage::set_mode(file_.number(), options.file_mode))
            return {error, "cannot set the file's mode"};
        if (options.exists == if_exists::fail) return {};
        if (options.exists == if_exists::replace) return replace_old(made);
        if (options.exists == if_exists::rotate)
            return put_before_old(made, path(), options.rotations);
        const int error = storage::name_file(made, path());
        has_name = error == 0;
        if (has_name || error == EEXIST) return {};
        return {error, "cannot put the new file in place"};
    }

    /// Puts the new file in the place of an old one, if that is a trace file that no process
    /// writes. Returns why not.
    [[nodiscard, gnu::cold]] setup_fault replace_old(const char* made) const {
        file_descriptor old;  // kept until the name is the new file's: joiners wait
        if (::access(path(), F_OK) == 0) {
            if (const setup_fault why = open_trace(old, path())) return why;
            const std::uint64_t bytes = storage::file_bytes(old.get());
            layout::plan plan;
            const auto header = storage::mapping::try_of_file(old.get(), layout::format_page_bytes);
            if (!header) return storage::mapping::fault(layout::format_page_bytes);
            const bool is_sound = bytes >= layout::format_page_bytes &&
                                  !layout::check_layout(header.data(), bytes, plan);
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

    /// The plan of the file, of so many bytes. Throws setup_error.
    [[nodiscard, gnu::cold]] layout::plan plan_of_file(std::uint64_t bytes) const {
        const storage::mapping first =
            storage::mapping::of_file(path(), file_.number(), layout::format_page_bytes);
        // Only the first page is mapped; for sizes the check goes by `bytes`.
        layout::plan found;
        if (const auto fault = layout::check_layout(first.data(), bytes, found))
            fail_setup(path(), fault_at(fault.offset, fault.what));
        return found;
    }

    /// Whether the file that is mapped can be joined; finds its clock. Returns how many sub-buffers
    /// it has. Throws setup_error.
    [[nodiscard, gnu::cold]] std::uint64_t check_joined(const clock_functions& wanted) {
        // Older versions can be read, but do not describe what would be written.
        if (header().version.load(relaxed) != layout::file_version)  // relaxed: it does not change
            fail_setup(path(), "offset 8: a trace file of another version", EINVAL);
        static_assert(offsetof(layout::file_header, version) == 8);
        // Loaded before the file is measured again: it may be growing.
        // order: grow.use:E pairs with grow:A
        const std::uint64_t capacity = ring().capacity.load(acquire);
        const std::uint64_t bytes_now = storage::file_bytes(file_.number());
        if (capacity == 0 || capacity > layout::present_sub_buffers(plan(), bytes_now))
            fail_setup(path(), fault_at(plan().ring, "impossible capacity"));
        // relaxed, to the end: fixed since the magic
        std::uint64_t rest = capacity;
        for (const auto& quota : ring().quotas) {
            const std::uint64_t count = quota.sub_buffers.load(relaxed);
            if (count >= rest) fail_setup(path(), fault_at(plan().ring, "impossible quotas"));
            rest -= count;
        }
        const std::uint32_t full = header().full.load(relaxed);
        if (full > static_cast<std::uint32_t>(full_mode::extend_then_overwrite))
            fail_setup(path(),
                       fault_at(offsetof(layout::file_header, full), "an unknown full_mode"));
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
    [[nodiscard, gnu::cold]] bool join(const clock_functions& wanted, bool any_owner) {
        std::uint64_t bytes = 0;
        for (int i = 0;; ++i) {
            if (::access(path(), F_OK) != 0) return false;
            file_.keep(storage::open_file(path(), any_owner ? storage::trust::any_owner
                                                            : storage::trust::same_owner),
                       path());
            // The file that was opened may have lost its name to another before the lock was taken.
            const bool held = storage::lock_byte(file_.number(), layout::use_lock_offset, true) ==
                                  storage::lock_result::held_by_another ||
                              !file_.is_named(path());
            bytes = storage::file_bytes(file_.number());
            bool trimmed =
                !held && bytes >= layout::format_page_bytes && is_trimmed(file_.number());
            // Another process is putting a new file in its place (an empty one: see
            // storage::name_file).
            if (!held && !trimmed && (bytes != 0 || i == 100)) break;
            if (trimmed) {
                const layout::plan p = plan_of_file(bytes);
                view_as(storage::mapping::of_file(path(), file_.number(), bytes), p);
                static_cast<void>(check_joined(wanted));
                unmap();
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
        const layout::plan p = plan_of_file(bytes);
        view_as(storage::mapping::with_slack(path(), file_.number(), p.file_limit, stray_bytes), p);
        const std::uint64_t capacity = check_joined(wanted);
        fail_setup(path(), populate_tables());
        // The bytes exist already, unless the file is a copy.
        const std::uint64_t end = p.bytes_for(capacity);
        const std::uint64_t behind = least(stray_bytes, p.file_limit - end);
        int error = behind == 0 ? 0 : storage::allocate(file_.number(), end, behind);
        const char* what = "what is needed behind its sub-buffers";
        if (error == 0) {
            error = populate(0, capacity);
            what = "its sub-buffers, of which some are holes";
        }
        if (error != 0) fail_setup(path(), storage::not_allocated(error, what));
        return true;
    }

    owned_text path_{};
    kept_file file_{};
    kept_file signs_{};  ///< an empty file for locks, where there is no trace file
    storage::mapping memory_{};
    std::uint32_t file_mode_ = 0600;
    const clock_functions* clock_ = nullptr;
};

}  // namespace trace_ring::inline v1::impl
