// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which process has the draining session. One word says so (storage::process_word), so one swap
/// takes the session, also from an owner that died. Whether the owner lives is found out as for any
/// process that records: by the lock of a byte, else by its pid. Sub-buffers that a dead owner
/// held, in state `reading`, go back to `closed`, unread.

#include <cstdint>

#include <trace_ring/bounds.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/format/view.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/file/extent.hpp>

namespace trace_ring::inline v1::impl {

/// A trace for code that does not write records.
struct trace_bytes : layout::view {
    const extent* present = nullptr;

    /// Never more than can be touched, even if others store nonsense there.
    [[nodiscard]] std::uint64_t capacity() const noexcept { return present->now(); }
};

/// Set for an owner that has a lock: the lock alone says whether it lives.
inline constexpr std::uint64_t has_session_lock = storage::process_word::mark;

/// False only if the owner is certainly gone. `fd`: of the file; -1 if there is none. Signal-safe.
[[nodiscard]] inline bool session_may_live(std::uint64_t owner, int fd) noexcept {
    if ((owner & has_session_lock) == 0) return storage::process_word::may_live(owner);
    return fd < 0 || storage::byte_is_locked(fd, layout::session_lock_offset);
}

/// Takes the session for this process, with `lock` if there is a file that can be locked. Returns
/// 0, or the pid of the process that has it. Signal-safe; linear in the sub-buffers if the last
/// owner died.
[[nodiscard, gnu::cold]] inline std::uint32_t take_session(const trace_bytes& trace, int fd,
                                                           storage::life_lock& lock) noexcept {
    auto& owner = trace.ring().session_owner;
    const auto got =
        fd < 0 ? storage::lock_result::failed : lock.take(fd, nullptr, layout::session_lock_offset);
    const bool has_lock = got == storage::lock_result::taken;
    const std::uint64_t self =
        storage::process_word::own() | (has_lock ? has_session_lock : std::uint64_t{0});
    std::uint64_t before = owner.load(relaxed);  // relaxed: the swap decides
    for (;;) {
        // A process that had the lock which is now this process's is gone.
        const bool gone = before == 0 || (has_lock && (before & has_session_lock) != 0);
        if (got == storage::lock_result::held_by_another ||
            (!gone && session_may_live(before, fd))) {
            lock.release();
            return greatest(storage::process_word::pid(before), std::uint32_t{1});
        }
        // All that the last session did comes before all that this one does.
        // order: session.own:A pairs with session.leave:A
        if (owner.compare_exchange_strong(before, self, acquire)) break;
    }
    if (before == 0) return 0;
    for (std::uint64_t slot = 0; slot < trace.capacity(); ++slot) {
        auto& state = trace.sub_buffer(slot).state;
        auto now = stamped::from(state.load(relaxed));  // relaxed: nobody else changes `reading`
        if (now.state != static_cast<unsigned>(sub_buffer_state::reading)) continue;
        now.state = static_cast<unsigned>(sub_buffer_state::closed);
        // order: session.return:A pairs with claim:C, claim.next:A, drain.look:A, drain.hold:A,
        // read:A
        state.store(now.word(), release);
    }
    return 0;
}

inline void leave_session(const trace_bytes& trace, storage::life_lock& lock) noexcept {
    // order: session.leave:A pairs with session.own:A
    trace.ring().session_owner.store(0, release);
    lock.release();
}

}  // namespace trace_ring::inline v1::impl
