// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace that a recorder writes into, and this program's place in it: its entry in the table of
/// processes, its numbering of event types, and its gates. Sub-buffers are claimed in
/// lane/lane_sub_buffers.hpp.

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <trace_ring/format/mapped_traces.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/file/begin_lane.hpp>
#include <trace_ring/recorder/file/extent.hpp>
#include <trace_ring/recorder/file/options.hpp>
#include <trace_ring/recorder/file/set_up.hpp>

namespace trace_ring::inline v1::impl {

/// The part of a process's entry that the kernel does not provide.
struct process_identity {
    std::uint32_t pid = 0;
    std::uint32_t word = 0;  ///< bytes of its words: 4 or 8
    const char* name = "";
};

/// Other processes that may write to the file may store anything in it at any time. So each value
/// read from it is checked before an address is made of it, each time anew, and no loop relies on
/// it alone. Nothing helps against a file cut short: touching a page beyond its end raises SIGBUS.
class trace_memory : public opened_trace {
public:
    /// Throws setup_error.
    [[gnu::cold]] trace_memory(const recorder_options& options, const clock_functions& wanted)
        : opened_trace(options, wanted) {
        present_.begin(*this, file() ? &file() : nullptr, stray_bytes);
        readable_.enter(*this);
    }
    trace_memory(const trace_memory&) = delete;
    trace_memory& operator=(const trace_memory&) = delete;
    ~trace_memory() { life_.release(); }

    /// A number for a new lane, never 0, which means none. After 2^32 lanes numbers repeat.
    [[nodiscard]] std::uint32_t new_lane_number() const noexcept {
        std::uint32_t number = 0;
        while (number == 0) number = ring().last_lane.fetch_add(1, relaxed) + 1;  // a counter
        return number;
    }
    /// Sub-buffers that exist; never more than can be touched, even if others store nonsense there.
    [[nodiscard]] std::uint64_t capacity() const noexcept { return present_.now(); }
    [[nodiscard]] const extent& present() const noexcept { return present_; }

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
    [[nodiscard]] layout::gate_page& own_gates() const noexcept { return gates(gate_page_); }

    /// Gives the program its numbering and a page of gates: false if all are in use. For set-up,
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
        for (std::uint32_t slot = 0; slot < plan().lane_count; ++slot) {
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

private:
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

    /// A number that differs after an exec: the kernel gives each program sixteen random bytes.
    [[nodiscard]] static std::uint64_t image() noexcept {
        std::uint64_t word = 0;
        if (const auto* const random = reinterpret_cast<const void*>(::getauxval(AT_RANDOM))) {
            std::memcpy(&word, random, sizeof word);
        }
        return word;
    }

    /// A page of gates that no living process obeys. A page of a program that is gone is opened;
    /// one that was never used keeps what a control has set. Programs are entered under the lock
    /// of set-up, so that no two choose the same.
    [[nodiscard, gnu::noinline, gnu::cold]] bool free_gate_page(
        std::uint32_t self, std::uint32_t& page) const noexcept {
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        for (page = 0; page < plan().gate_count; ++page) {
            bool used = false;
            bool taken = false;
            for (std::uint32_t slot = 0; slot < plan().process_count && !taken; ++slot) {
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

    /// What readers in this program know of the mapping.
    struct readable : layout::mapped_trace {
        const trace_memory* of = nullptr;

        void enter(const trace_memory& memory) noexcept {
            of = &memory;
            bytes = [](const layout::mapped_trace& self) noexcept {
                const trace_memory& it = *static_cast<const readable&>(self).of;
                return it.plan().bytes_for(it.capacity());
            };
            layout::mapped_traces::enter(memory.base(), *this);
        }
        ~readable() { layout::mapped_traces::leave(*this); }
    };

    mutable storage::life_lock life_{};  ///< of this process, on its byte
    std::uint32_t root_ = 0;
    std::uint32_t gate_page_ = 0;
    extent present_{};
    readable readable_{};  // after what it refers to
};

}  // namespace trace_ring::inline v1::impl
