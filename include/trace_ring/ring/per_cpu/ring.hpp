// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring of records of variable length with a lane of sub-buffers for each processor
/// (policy/claim/per_cpu.hpp). Set-up divides its storage:
/// @code
///   control | head | lane words: processors, two spare ones | sub-buffers of lane 0, of lane 1 ...
/// @endcode
/// Writing: any thread, and signal handlers that interrupt it. A record is one restartable
/// sequence. Where sequences keep failing or do not exist, the thread claims a whole lane by one
/// swap: a spare one or, where the process has no sequences, any lane.
/// @code
/// struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu, trace_ring::storage::heap> {};
/// trace_ring::ring<by_cpu> ring(64 << 20);       // bytes, shared by all lanes
/// ring.write(1, std::uint64_t{42}, 3.14);        // any thread
/// for (std::size_t i = 0; i < ring.lanes(); ++i) {
///     auto reader = ring.lane(i).reader();
///     while (const auto item = reader.next()) {  // a record or a loss
///     }
/// }
/// @endcode

#include <sched.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/per_cpu/lane.hpp>
#include <trace_ring/ring/per_cpu/reservation.hpp>
#include <trace_ring/ring/per_cpu/rseq.hpp>
#include <trace_ring/ring/per_cpu/section.hpp>
#include <trace_ring/ring/policies/frame.hpp>

namespace trace_ring::inline v1 {

namespace impl {
/// Clocks that a sequence can read: those whose `now` only reads the time stamp counter.
template <class Clock>
inline constexpr bool is_counter = std::is_same_v<Clock, clock::tsc>;
template <std::uint32_t Records>
inline constexpr bool is_counter<clock::sampled<Records, clock::tsc>> = true;
}  // namespace impl

/// Use it as ring<Kind>.
template <list_of_policies Kind>
class per_cpu_ring : public ring_frame<Kind> {
    using frame = ring_frame<Kind>;

public:
    using clock_policy = typename frame::clock_policy;
    using lane_type = cpu_lane<frame::stride>;

    static constexpr std::uint32_t sub_buffer_bytes = frame::stride;
    /// The longest payload, in bytes.
    static constexpr std::size_t max_payload =
        max_record_bytes(sub_buffer_bytes) - record_header_bytes;
    /// Lanes beside those of the processors.
    static constexpr std::uint32_t spare_lanes = 2;

    /// Passes its arguments to the storage. Throws setup_error if the storage is too small for two
    /// sub-buffers in each lane of this machine, or larger than 32 GiB.
    template <class... A>
    requires std::is_constructible_v<typename frame::storage_policy, A...>
    explicit per_cpu_ring(A&&... arguments) : frame(std::forward<A>(arguments)...) { share_out(); }

    /// Writes one record: the values' bytes one after the other, filled up with zeros to a multiple
    /// of 8. `id` is the caller's, 1 to 65535. False if the gate is closed. A thread that claims
    /// lanes also gets false if threads that sleep hold all of them: after it has yielded the
    /// processor a few times (counted as refused), or at once in a handler that interrupted a
    /// record (counted as nested). Linear in the bytes; signal-safe; the record of a handler that
    /// interrupts it comes first.
    template <class... T>
    [[gnu::always_inline]] bool write(std::uint16_t id, const T&... values) noexcept {
        static_assert((std::is_trivially_copyable_v<T> && ...),
                      "trace_ring: records hold trivially copyable values");
        constexpr std::size_t bytes = (sizeof(T) + ... + 0);
        static_assert(bytes <= max_payload, "trace_ring: longer than a sub-buffer can hold");
        constexpr std::uint32_t words = (bytes + 7) / 8;
        if (!frame::is_open()) return false;
        std::array<std::uint64_t, words> staged{};
        std::size_t at = 0;
        ((std::memcpy(reinterpret_cast<std::byte*>(staged.data()) + at, &values, sizeof(T)),
          at += sizeof(T)),
         ...);
        const std::uint32_t header = record_word::pack(id, record_header_bytes + words * 8);
        if constexpr (words <= rseq::most_words) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
                if (area_ != 0 && rseq::append<sub_buffer_bytes, timed>(area_, head_, header,
                                                                        staged[I]...)) [[likely]] {
                    return true;
                }
                return write_few(header, staged[I]...);
            }
            (std::make_index_sequence<words>{});
        } else {
            return write_words(header, staged.data(), words);
        }
    }
    /// The same for bytes whose number is known only when they are written.
    bool write_bytes(std::uint16_t id, std::span<const std::byte> bytes) noexcept {
        auto slot = try_reserve(bytes.size(), id);
        if (!slot) return false;
        if (!bytes.empty()) slot.store(0, bytes.data(), bytes.size());
        return slot.commit();
    }
    /// Writes a record of these values, which the record policy lays out (record/concept.hpp).
    template <class... V>
    requires record::lays_out<typename ring_policies<Kind>::record_policy, V...>
    bool put(const V&... values) noexcept {
        return record::put_laid_out<typename ring_policies<Kind>::record_policy>(*this, values...);
    }
    /// A record to be filled, with at most `Most` bytes of payload, which lie on the stack. `flags`
    /// are those of record_word. Empty if the gate is closed, or `bytes` is more than `Most`.
    template <std::size_t Most = max_payload>
    staged_reservation<per_cpu_ring, Most> try_reserve(std::size_t bytes, std::uint16_t id = 1,
                                                       std::uint32_t flags = 0) noexcept {
        static_assert(Most <= max_payload, "trace_ring: longer than a sub-buffer can hold");
        if (!frame::is_open()) return {};
        if (bytes > Most) {
            frame::count(loss_cause::too_long);
            return {};
        }
        const std::size_t length = record_header_bytes + (bytes + 7) / 8 * 8;
        return {*this, record_word::pack(id, length, flags), bytes};
    }

    /// Releases lanes that this thread claimed for records that it left by longjmp. The thread has
    /// no record open. Only lanes that were claimed need this: sequences leave nothing behind.
    void abandon() noexcept {
        for (const lane_type& lane : lanes_) {
            // relaxed: only this thread stores its own name there
            if (lane.lane().owner.load(relaxed) != self()) continue;
            // order: cpu.give_back:B pairs with cpu.claim:A
            lane.lane().owner.store(0, release);
        }
    }

    /// One for each processor that can be there, and the spare ones.
    [[nodiscard]] std::size_t lanes() const noexcept { return lanes_.size(); }
    /// A lane to read from; it lives as long as the ring.
    [[nodiscard]] const lane_type& lane(std::size_t number) const noexcept {
        return lanes_[number];
    }
    /// Records are written by restartable sequences. False: each record claims a lane.
    [[nodiscard]] bool restartable() const noexcept { return area_ != 0; }

    /// Records lost, by cause, over the ring's whole life.
    [[nodiscard]] loss_counts lost() const noexcept {
        loss_counts sum = frame::lost_by_writers();
        for (const lane_type& one : lanes_) sum.add(loss_cause::overwritten, one.overwritten());
        return sum;
    }

private:
    template <class Ring, std::size_t Most>
    friend class staged_reservation;

    static constexpr bool timed = impl::is_counter<clock_policy>;
    static constexpr bool sequences = timed || std::is_same_v<clock_policy, clock::none>;
    /// How often a sequence may fail before the thread claims a lane instead.
    static constexpr int tries = 64;
    /// How often a thread that claims a lane tries each of them.
    static constexpr std::uint32_t patience = 64;

    /// A number that no other living thread has.
    [[nodiscard]] static std::uint64_t self() noexcept {
        return reinterpret_cast<std::uintptr_t>(&errno);
    }

    void share_out() {
        const std::uint32_t cpus = rseq::possible_cpus();
        const std::uint32_t lanes = cpus + spare_lanes;
        const std::uint64_t table = sizeof(lanes_head) + std::uint64_t{lanes} * sizeof(lane_word);
        const std::uint64_t room = frame::storage().size() - storage::control_bytes;
        const std::uint64_t first =
            (table + sub_buffer_bytes - 1) / sub_buffer_bytes * sub_buffer_bytes;
        const std::uint64_t each = room < first ? 0 : (room - first) / sub_buffer_bytes / lanes;
        if (each < 2) refuse("too small for two sub-buffers in each of " + std::to_string(lanes));
        if (room / lane_word::unit > 0xFFFFFFFFU) refuse("too large for");
        head_ = reinterpret_cast<lanes_head*>(frame::storage().data() + storage::control_bytes);
        const auto put = [](auto& word, std::uint64_t value) {
            word.store(static_cast<std::uint32_t>(value), relaxed);  // relaxed: not shared yet
        };
        if constexpr (sequences) {
            if (!timed || clock_policy::usable()) area_ = rseq::offset();
        }
        put(head_->lanes, lanes);
        put(head_->sub_offset, first / lane_word::unit);
        put(head_->cpus, cpus);
        put(head_->per_lane, each);
        put(head_->commit, commit_word::pack(0, max_sub_buffer_bytes));  // full
        claimable_ = area_ != 0 ? cpus : 0;
        lanes_.reserve(lanes);
        for (std::uint32_t i = 0; i < lanes; ++i) lanes_.emplace_back(head_, i);
    }
    [[noreturn]] static void refuse(const std::string& fault) {
        fail_setup("a ring's storage", fault + " lanes", EINVAL);
    }

    bool write_words(std::uint32_t header, const std::uint64_t* words,
                     std::uint32_t count) noexcept {
        if (area_ != 0 && rseq::append_words<sub_buffer_bytes, timed>(area_, head_, header, words,
                                                                      count)) [[likely]] {
            return true;
        }
        return write_slowly(header, words, count);
    }

    /// By value: so the caller's words stay in registers, and the caller needs no stack frame.
    template <class... Word>
    [[gnu::noinline, gnu::cold]] bool write_few(std::uint32_t header, Word... word) noexcept {
        const std::uint64_t words[] = {word..., 0};
        return write_slowly(header, words, sizeof...(Word));
    }
    [[gnu::noinline, gnu::cold]] bool write_slowly(std::uint32_t header, const std::uint64_t* words,
                                                   std::uint32_t count) noexcept {
        if constexpr (sequences) {
            if (area_ != 0) {
                const bool done = write_in_turns(header, words, count);
                rseq::forget(area_);
                if (done) return true;
            }
        }
        const int saved = errno;
        const bool done = write_alone(header, words, count);
        errno = saved;
        return done;
    }

    /// Prepares what the sequence lacked, and tries again.
    [[nodiscard]] bool write_in_turns(std::uint32_t header, const std::uint64_t* words,
                                      std::uint32_t count) noexcept {
        for (int i = 0; i < tries; ++i) {
            const std::uint32_t cpu = rseq::cpu(area_);
            if (cpu >= claimable_) return false;  // not registered
            const auto do_it = [this, cpu](auto*... list) {
                return rseq::store_if(area_, cpu, list...);
            };
            static_cast<void>(prepare(lanes_[cpu], record_header_bytes + count * 8, do_it));
            if (rseq::append_words<sub_buffer_bytes, timed>(area_, head_, header, words, count))
                return true;
        }
        return false;
    }

    /// One step towards room for a record and the right high half of the clock. True: both were
    /// there already.
    template <class Do>
    bool prepare(const lane_type& lane, std::uint32_t length, Do&& do_it) noexcept {
        const auto at = lane.now();
        const std::uint64_t time = frame::now();
        if (!at.fits(length, time)) {
            static_cast<void>(lane.go_on(at, time, do_it));
        } else if (!at.announced(time)) {
            static_cast<void>(lane.put_time(at, time, do_it));
        } else {
            return true;
        }
        return false;
    }

    /// Writes the record in a lane that this thread claims for it.
    [[nodiscard]] bool write_alone(std::uint32_t header, const std::uint64_t* words,
                                   std::uint32_t count) noexcept {
        const auto all = static_cast<std::uint32_t>(lanes_.size()) - claimable_;
        const int cpu = ::sched_getcpu();
        const std::uint32_t start = cpu < 0 ? 0 : static_cast<std::uint32_t>(cpu);
        const std::uint64_t me = self();
        for (std::uint32_t look = 0; look < patience; ++look) {
            bool interrupted = false;
            for (std::uint32_t i = 0; i < all; ++i) {
                const lane_type& lane = lanes_[claimable_ + (start + i) % all];
                std::uint64_t found = 0;
                // order: cpu.claim:A pairs with cpu.give_back:A, cpu.give_back:B
                if (!lane.lane().owner.compare_exchange_strong(found, me, acquire)) {
                    interrupted = interrupted || found == me;
                    continue;
                }
                // A reader that sees bytes stored below also sees the state that the lane's last
                // holder stored.
                // order: cpu.claim:B pairs with read:C
                thread_fence(release);
                append_alone(lane, header, words, count);
                // order: cpu.give_back:A pairs with cpu.claim:A
                lane.lane().owner.store(0, release);
                return true;
            }
            // All are held. If this handler interrupted a record, one of the lanes is held by its
            // own thread, which cannot release it before the handler returns.
            if (interrupted) {
                frame::count(loss_cause::nested);
                return false;
            }
            ::sched_yield();
        }
        frame::count(loss_cause::refused);
        return false;
    }
    void append_alone(const lane_type& lane, std::uint32_t header, const std::uint64_t* words,
                      std::uint32_t count) noexcept {
        const std::uint32_t length = record_header_bytes + count * 8;
        while (!prepare(lane, length, store_all)) {
        }
        const auto at = lane.now();
#if defined(__x86_64__) || defined(__i386__)
        asm volatile("lfence");  // the time is not read before the lane was claimed
#endif
        const std::uint64_t time = frame::now();
        if (!at.announced(time)) return append_alone(lane, header, words, count);
        // relaxed, to the end: published by the commit word, which only this thread writes now
        word_at<std::uint32_t>(at.sub, at.end()).store(static_cast<std::uint32_t>(time), relaxed);
        word_at<std::uint32_t>(at.sub, at.end() + 4).store(header, relaxed);
        for (std::uint32_t i = 0; i < count; ++i)
            word_at<std::uint64_t>(at.sub, at.end() + 8 + i * 8).store(words[i], relaxed);
        const auto commit = static_cast<std::uint32_t>(at.commit);
        // order: cpu.record_alone:A pairs with read:B
        at.sub->commit.store(commit + commit_word::one_record + length, release);
    }
    /// rseq::store_if for a lane that no other thread writes: the guards hold.
    static bool store_all(const rseq::word_value*, const rseq::word_value* store,
                          const rseq::word_value* last) noexcept {
        // Each store is ordered after the one before it.
        // order: cpu.install_alone:A pairs with cpu.current:A, cpu.current:B, cpu.current:C,
        // cpu.current:D, cpu.current:E, read:A, read:B,
        // read:C
        for (; store < last; ++store) store->at->store(store->value, release);
        // A release store does not hold back what follows it. Records follow, and must not be seen
        // before the state that says that their sub-buffer is being prepared.
        // order: cpu.reset_alone:A pairs with read:C, cpu.current:E
        thread_fence(release);
        last->at->store(last->value, release);
        return true;
    }

    std::ptrdiff_t area_ = 0;  ///< where a thread's rseq words lie; 0: claim lanes
    lanes_head* head_ = nullptr;
    std::uint32_t claimable_ = 0;  ///< the first lane that may be claimed as a whole
    std::vector<lane_type> lanes_;
};

}  // namespace trace_ring::inline v1
