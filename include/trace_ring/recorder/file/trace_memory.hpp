// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The mapping that a recorder writes into: made or joined at set-up, and described region by
/// region. Rare writes are done here (clock readings, the dictionary, process entries); sub-buffers
/// are claimed in lane/lane_sub_buffers.hpp.

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <trace_ring/bounds.hpp>
#include <trace_ring/c_string.hpp>
#include <trace_ring/format/check_layout.hpp>
#include <trace_ring/format/mapped_traces.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/file/extent.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/site/registry.hpp>
#include <trace_ring/recorder/trim/trim.hpp>

namespace trace_ring::inline v1::impl {

/// A clock policy as the cold path knows it; the cold path is compiled once for all recorders.
struct clock_functions {
    std::uint32_t kind;
    std::uint64_t (*now)() noexcept;
    bool (*usable)() noexcept;
    double (*ticks_per_second)() noexcept;
    clock_snapshot (*snapshot)() noexcept;
};
template <clock::policy Clock>
inline constexpr clock_functions functions_of{Clock::kind, &Clock::now, &Clock::usable,
                                              &Clock::ticks_per_second, &take_snapshot<Clock>};

/// Stores text into words, zero-filled.
template <std::size_t N>
inline void store_text(shared_atomic<std::uint64_t> (&to)[N], std::string_view text) noexcept {
    for (std::size_t i = 0; i < N; ++i) {
        std::uint64_t word = 0;
        for (std::size_t k = 0; k < 8 && i * 8 + k < text.size(); ++k) {
            word |= std::uint64_t{static_cast<unsigned char>(text[i * 8 + k])} << (k * 8);
        }
        to[i].store(word, relaxed);  // relaxed: published by the entry's state
    }
}

/// How far behind the last sub-buffer a stray record may be stored. A writer takes the place of a
/// record from the sub-buffer's commit word, which is shared. Whatever others have stored there,
/// the offset is at most 64 KiB and 8 bytes, and no record is longer than a sub-buffer. So the hot
/// path need not check the offset: its stores lie in the file, which is longer by this than its
/// sub-buffers as long as it may grow, or in memory behind it that is mapped for nothing else.
inline constexpr std::uint64_t stray_bytes = std::uint64_t{128} << 10;
static_assert(stray_bytes >= 0x10008 + max_sub_buffer_bytes);

/// The part of a process's entry that the kernel does not provide.
struct process_identity {
    std::uint32_t pid = 0;
    std::uint32_t word = 0;  ///< bytes of its words: 4 or 8
    const char* name = "";
};

/// Other processes that may write to the file may store anything in it at any time. So each value
/// read from it is checked before an address is made of it, each time anew, and no loop relies on
/// it alone. Nothing helps against a file cut short: touching a page beyond its end raises SIGBUS.
class trace_memory {
public:
    /// Makes or joins what the options ask for. Throws setup_error.
    [[gnu::cold]] trace_memory(const recorder_options& options, const clock_functions& wanted)
        : file_mode_(options.file_mode) {
        {
            name_buffer name;
            name.expand(options.file);
            path_.set(name.is_cut() ? options.file.c_str() : name.text);  // refused later
        }
        const bool joins = !path_.empty() && options.exists == if_exists::attach;
        for (int i = 0; i < 8; ++i) {
            if ((joins && join(wanted, options.any_owner)) || create(options, wanted)) {
                present_.begin(ring().capacity, plan_, file_ ? &file_ : nullptr, stray_bytes);
                readable_.enter(*this);
                return;
            }
        }
        fail_setup(path(), "cannot create the file", EEXIST);  // a link that leads nowhere
    }

    trace_memory(const trace_memory&) = delete;
    trace_memory& operator=(const trace_memory&) = delete;
    /// If no other process has the file, it is then about as long as its contents.
    ~trace_memory() {
        life_.release();
        memory_.reset();
        file_.close_and(trim_file);
    }

    [[nodiscard]] const layout::plan& plan() const noexcept { return plan_; }
    /// Empty for memory without a file.
    [[nodiscard]] const char* path() const noexcept { return path_.c_str(); }
    /// What an error is about.
    [[nodiscard]] const char* subject() const noexcept {
        return path_.empty() ? "memory" : path_.c_str();
    }
    [[nodiscard]] int descriptor() const noexcept { return file_.number(); }
    [[nodiscard]] std::byte* base() const noexcept { return memory_.data(); }
    /// That of files that are made: recorder_options::file_mode.
    [[nodiscard]] std::uint32_t file_mode() const noexcept { return file_mode_; }
    [[nodiscard]] std::uint32_t clock() const noexcept { return clock_->kind; }

    [[nodiscard]] layout::file_header& header() const noexcept {
        return at<layout::file_header>(0);
    }
    [[nodiscard]] layout::ring_state& ring() const noexcept {
        return at<layout::ring_state>(plan_.ring);
    }
    [[nodiscard]] layout::process_entry& process(std::uint32_t slot) const noexcept {
        return at<layout::process_entry>(plan_.processes + slot * sizeof(layout::process_entry));
    }
    /// A number for a new lane, never 0, which means none. After 2^32 lanes numbers repeat.
    [[nodiscard]] std::uint32_t new_lane_number() const noexcept {
        std::uint32_t number = 0;
        while (number == 0) number = ring().last_lane.fetch_add(1, relaxed) + 1;  // a counter
        return number;
    }
    /// The gates of a page; of the first, if others have stored an impossible number.
    [[nodiscard]] gate_page& gates(std::uint32_t page) const noexcept {
        const std::uint64_t there = page < plan_.gate_count ? page : 0;
        return at<gate_page>(plan_.gates + there * layout::format_page_bytes);
    }
    [[nodiscard]] layout::lane_entry& lane(std::uint32_t slot) const noexcept {
        return at<layout::lane_entry>(plan_.lanes + slot * sizeof(layout::lane_entry));
    }
    /// Row `row` of the totals: lanes first, then processes.
    [[nodiscard]] shared_atomic<std::uint64_t>* totals(std::uint32_t row) const noexcept {
        return plan_.totals_per_lane == 0
                   ? nullptr
                   : &at<shared_atomic<std::uint64_t>>(
                         plan_.totals + std::uint64_t{row} * plan_.totals_per_lane * 8);
    }
    [[nodiscard]] layout::index_entry& index(std::uint64_t slot) const noexcept {
        return at<layout::index_entry>(plan_.index + slot * sizeof(layout::index_entry));
    }
    [[nodiscard]] sub_buffer_header& sub_buffer(std::uint64_t slot) const noexcept {
        return at<sub_buffer_header>(plan_.sub_buffers + slot * plan_.sub_buffer_bytes);
    }

    /// Sub-buffers that exist; never more than can be touched, whatever others store there.
    [[nodiscard]] std::uint64_t capacity() const noexcept { return present_.now(); }
    [[nodiscard]] const extent& present() const noexcept { return present_; }

    [[nodiscard]] std::uint64_t slot_number(const sub_buffer_header& sub) const noexcept {
        const auto at = reinterpret_cast<const std::byte*>(&sub) - memory_.data();
        return (static_cast<std::uint64_t>(at) - plan_.sub_buffers) / plan_.sub_buffer_bytes;
    }

    /// The file's clock; `snapshot` reads it together with the system's clocks. Signal-safe.
    [[nodiscard]] std::uint64_t now() const noexcept { return clock_->now(); }
    [[nodiscard]] clock_snapshot snapshot() const noexcept { return clock_->snapshot(); }
    /// For how many ticks of the file's clock records are kept; 0: by the number of bytes alone.
    [[nodiscard]] std::uint64_t keep_ticks() const noexcept {
        constexpr std::uint64_t second = 1'000'000'000;
        // relaxed, both: fixed
        const std::uint64_t keep_for = ring().keep_for.load(relaxed);
        const std::uint64_t rate = header().ticks_per_second.load(relaxed);
        if (rate == 0 || rate > std::uint64_t{1} << 34) return 0;
        if (keep_for / second >= (std::uint64_t{1} << 62) / rate) return std::uint64_t{1} << 62;
        return keep_for / second * rate + keep_for % second * rate / second;
    }

    /// The process whose numbering of event types this one uses, and the gates that it obeys.
    [[nodiscard]] std::uint32_t root() const noexcept { return root_; }
    [[nodiscard]] gate_page& own_gates() const noexcept { return gates(gate_page_); }
    /// The dictionary's first byte.
    [[nodiscard]] std::byte* dictionary() const noexcept {
        return memory_.data() + plan_.dictionary;
    }

    /// Gives the program its numbering, and gates of its own: false if all are in use. For set-up,
    /// by one process at a time.
    [[nodiscard, gnu::cold]] bool enter_program(std::uint32_t slot, std::uint32_t root) noexcept {
        root_ = root;
        return free_gate_page(slot, gate_page_);
    }
    /// Enters the calling process in the entry of `slot`, which is being prepared. `parent` is its
    /// parent's slot + 1 after a fork, else 0. Signal-safe.
    [[gnu::cold]] void enter_process(std::uint32_t slot, std::uint32_t parent) const noexcept {
        const auto pid = static_cast<std::uint32_t>(::getpid());
        enter(slot, {pid, sizeof(void*), program_invocation_short_name}, parent, life_);
    }
    /// The same for a process in whose name this one records, as long as `life` is held.
    [[gnu::cold]] void enter_other(std::uint32_t slot, const process_identity& who,
                                   storage::life_lock& life) const noexcept {
        enter(slot, who, 0, life);
    }

    [[gnu::cold]] void leave_process(std::uint32_t slot) const noexcept { leave(slot, life_); }
    [[gnu::cold]] void leave(std::uint32_t slot, storage::life_lock& life) const noexcept {
        auto& entry = process(slot);
        entry.departed.store(now(), relaxed);  // relaxed: published by the state
        // order: process.leave:A pairs with process.look:A, process.look:B, process.claim:A,
        // table.read:B, snapshot.copy:B, process.look:C, process.claim:B
        entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
        life.release();
    }

    /// By claimers: those that died in the middle may have left some out. Linear in the lanes.
    [[nodiscard]] std::uint64_t overwritten_records() const noexcept {
        // relaxed, all: counters, each by itself
        std::uint64_t sum = ring().overwritten_records.load(relaxed);
        for (std::uint32_t slot = 0; slot < plan_.lane_count; ++slot) {
            sum += lane(slot).overwrote.load(relaxed);
        }
        return sum;
    }

    /// False only if the process of `slot` is certainly gone. Its lock says so. Where it could have
    /// no lock: no process has its pid and start except one that has ended and waits for its
    /// parent, or the entry is of this process before an exec. Signal-safe.
    [[nodiscard, gnu::noinline, gnu::cold]] bool may_live(std::uint32_t slot) const noexcept {
        // relaxed, to the end: the caller has acquired what was stored after the entry
        auto& entry = process(slot);
        if (entry.has_lock.load(relaxed) != 0) return is_locked(layout::lock_offset(slot));
        const std::uint32_t space = storage::pid_namespace();
        if (space == 0 || entry.space.load(relaxed) != space) return true;
        const std::uint64_t by = entry.recorded_by.load(relaxed);
        if (by != 0) return storage::process_word::may_live(by);
        const std::uint32_t pid = entry.pid.load(relaxed);
        if (!storage::process_may_live(pid, entry.start.load(relaxed))) return false;
        return pid != static_cast<std::uint32_t>(::getpid()) ||
               entry.image.load(relaxed) == image();
    }

    /// Gives the sub-buffers up to `count`, and their index, memory of their own; and the file its
    /// bytes behind them, for stray records. 0 or the error. Signal-safe.
    [[nodiscard, gnu::noinline]] int provide(std::uint64_t from,
                                             std::uint64_t count) const noexcept {
        const std::uint64_t at = plan_.bytes_for(from);
        const std::uint64_t bytes = plan_.bytes_for(count) - at;
        const std::uint64_t end = least(at + bytes + stray_bytes, plan_.file_limit);
        const std::uint64_t index_at = plan_.index + from * sizeof(layout::index_entry);
        const std::uint64_t index_bytes = (count - from) * sizeof(layout::index_entry);
        if (file_) {
            const int error = file_.use([&](int fd) {
                if (fd < 0) return EBADF;
                if (const int failed = storage::allocate(fd, index_at, index_bytes)) return failed;
                return storage::allocate(fd, at, end - at);
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
        const int error = pages(plan_.index + from * sizeof(layout::index_entry),
                                plan_.index + count * sizeof(layout::index_entry));
        return error != 0 ? error : pages(plan_.bytes_for(from), plan_.bytes_for(count));
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

    /// Whether a process has locked the byte; true if that cannot be told. Signal-safe.
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
    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const noexcept {
        return *static_cast<T*>(static_cast<void*>(memory_.data() + offset));
    }

    [[gnu::cold]] void enter(std::uint32_t slot, const process_identity& who, std::uint32_t parent,
                             storage::life_lock& life) const noexcept {
        auto& entry = process(slot);
        const bool is_other = &life != &life_;
        // relaxed, to the end: published by the state
        entry.pid.store(who.pid, relaxed);
        entry.start.store(storage::facts_of(who.pid).start, relaxed);
        entry.space.store(storage::pid_namespace(), relaxed);
        entry.image.store(image(), relaxed);
        entry.recorded_by.store(is_other ? storage::process_word::own() : 0, relaxed);
        take_lock(life, layout::lock_offset(slot));
        entry.has_lock.store(life.held(), relaxed);
        entry.root.store(root_, relaxed);
        entry.parent.store(parent, relaxed);
        entry.word.store(who.word, relaxed);
        entry.gate_page.store(gate_page_, relaxed);
        entry.uses.store(entry.uses.load(relaxed) + 1, relaxed);
        entry.attached.store(now(), relaxed);
        entry.departed.store(0, relaxed);
        store_text(entry.name, who.name);
        // order: process.enter:B pairs with process.look:A, process.look:B, process.find:A,
        // table.read:B, snapshot.copy:B, process.look:C
        entry.state.store(static_cast<std::uint32_t>(layout::presence::live), release);
    }

    [[nodiscard]] const kept_file& locks() const noexcept { return file_ ? file_ : signs_; }
    /// A number that differs after an exec: the kernel gives each program sixteen random bytes.
    [[nodiscard]] static std::uint64_t image() noexcept {
        std::uint64_t word = 0;
        if (const auto* const random = reinterpret_cast<const void*>(::getauxval(AT_RANDOM))) {
            std::memcpy(&word, random, sizeof word);
        }
        return word;
    }

    /// A page of gates that no living process obeys. A page of a program that is gone is opened;
    /// one that was never used stays as whoever controls the recording left it. Programs are
    /// entered under the lock of set-up, so that no two choose at once.
    [[nodiscard, gnu::noinline, gnu::cold]] bool free_gate_page(
        std::uint32_t self, std::uint32_t& page) const noexcept {
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        for (page = 0; page < plan_.gate_count; ++page) {
            bool used = false;
            bool taken = false;
            for (std::uint32_t slot = 0; slot < plan_.process_count && !taken; ++slot) {
                // order: process.look:A pairs with process.enter:B, process.leave:A,
                // process.dead:A, process.return:A
                const std::uint32_t state = process(slot).state.load(acquire);
                if (slot == self || state == 0) continue;
                if (process(slot).gate_page.load(relaxed) != page) continue;  // after the state
                used = true;
                taken = state != departed && may_live(slot);
            }
            if (taken) continue;
            for (auto& gate : gates(page).gates) {
                if (used) gate.store(0, relaxed);  // relaxed: advice
            }
            return true;
        }
        return false;
    }

    [[nodiscard, gnu::cold]] bool create(const recorder_options& options,
                                         const clock_functions& wanted);
    [[gnu::cold]] void open_new(const recorder_options& options, name_buffer& made);
    [[nodiscard, gnu::cold]] setup_fault fill(const recorder_options& options,
                                              const clock_functions& wanted);
    [[gnu::cold]] void describe(const recorder_options& options,
                                std::uint64_t first) const noexcept;
    [[nodiscard, gnu::cold]] setup_fault give_name(const char* made,
                                                   const recorder_options& options, bool& has_name);
    [[nodiscard, gnu::cold]] setup_fault replace_old(const char* made) const;
    [[nodiscard, gnu::cold]] bool join(const clock_functions& wanted, bool any_owner);
    [[gnu::cold]] void plan_of_file(std::uint64_t bytes);
    [[nodiscard, gnu::cold]] std::uint64_t check_joined(const clock_functions& wanted);
    [[nodiscard, gnu::cold]] setup_fault populate_tables() const;

    /// What readers in this program know of the mapping.
    struct readable : layout::mapped_trace {
        const trace_memory* of = nullptr;

        void enter(const trace_memory& memory) noexcept {
            of = &memory;
            bytes = [](const layout::mapped_trace& self) noexcept {
                const trace_memory& it = *static_cast<const readable&>(self).of;
                return it.plan_.bytes_for(it.capacity());
            };
            layout::mapped_traces::enter(memory.base(), *this);
        }
        ~readable() { layout::mapped_traces::leave(*this); }
    };

    owned_text path_{};
    kept_file file_{};
    kept_file signs_{};  ///< an empty file for locks, where there is no trace file
    storage::mapping memory_{};
    mutable storage::life_lock life_{};  ///< of this process, on its byte
    std::uint32_t root_ = 0;
    std::uint32_t gate_page_ = 0;
    std::uint32_t file_mode_ = 0600;
    layout::plan plan_{};
    extent present_{};
    readable readable_{};  // after what it refers to
    const clock_functions* clock_ = nullptr;
};

}  // namespace trace_ring::inline v1::impl
