// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The application's flight recorder: typed events of any thread into one trace file (or memory),
/// at about the cost of reading the clock.
/// @code
///   trace_ring::recorder recorder{{.file = "orders.trace"}};
///   recorder.record<order_sent>(42, 3.14);
/// @endcode
/// With TRACE_RING_DISABLE defined every use compiles to nothing: the arguments are not evaluated
/// further than the language demands, no file is made, `record` is false. Files with it and without
/// make one program: their recorders are different classes.

#if defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/disabled/recorder.hpp>
#else

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/recorder/lane/core.hpp>
#include <trace_ring/recorder/snapshot.hpp>
#include <trace_ring/recorder/statistics.hpp>
#include <trace_ring/recorder/write_path.hpp>

namespace trace_ring::inline v1 {

/// The default kind of recorder: an exact clock, the processor's own. A kind of one's own names
/// another, for instance `struct untimed { using clock = trace_ring::clock::none; };`, or a clock
/// policy of one's own, with a `kind` of its own (policy/clock/clock.hpp).
struct recording {
    using clock = trace_ring::clock::tsc;
};

template <class Kind>
class basic_recorder {
    using clock_policy = typename Kind::clock;
    using write = impl::write_path<clock_policy>;
    static_assert(clock::policy<clock_policy>, "trace_ring: Kind::clock must be a clock policy");
    static_assert(
        !requires { typename Kind::claim; },
        "trace_ring: the one claim of a recorder is claim::per_cpu, and it is in "
        "trace_ring/recorder/cpu/recorder.hpp");

public:
    class reservation;
    template <impl::told_event E>
    class scoped;

    /// Makes or joins the trace. Throws setup_error, which names the file (or option) and the
    /// cause; without exceptions see setup_error.hpp.
    explicit basic_recorder(const recorder_options& options)
        : core_(std::make_unique<impl::core>(options, impl::functions_of<clock_policy>, gates_)),
          lanes_at_(impl::lanes_at(core_->index())),
          max_record_(core_->max_record()) {}
    basic_recorder(const basic_recorder&) = delete;
    basic_recorder& operator=(const basic_recorder&) = delete;
    /// Closes the lanes of all threads of this process. No thread may be recording any more. What
    /// is recorded into one of static storage after its destructor has run is refused.
    ~basic_recorder() {
        core_.reset();
        lanes_at_ = 0;
        signal_fence(seq_cst);  // keeps the compiler from leaving these stores out
    }

    /// Records one event, with the time and the given field values. False: the event's gate is
    /// shut, or the record was lost and counted. Any thread, signal handlers, and children of a
    /// fork; no lock, no allocation, no system call (but once a thread, and when a file grows).
    /// Constant time for fixed fields, linear in the bytes of variable ones, which are cut to fit.
    template <impl::told_event E, class... Values>
    [[gnu::always_inline]] bool record(const Values&... values) noexcept {
        if constexpr (impl::takes<E, Values...>()) {
            return put<E, 0>(nullptr, values...);
        } else {
            return false;
        }
    }

    /// A record that is filled now and counts only once committed: `commit()` or `discard()`; the
    /// destructor discards. Until then other records of the same thread go to its next lane, and
    /// time in its own lane stands still. Empty if the gate is shut or there is no room.
    template <impl::told_event E, class... Values>
    [[nodiscard, gnu::always_inline]] reservation reserve(const Values&... values) noexcept {
        static_assert(impl::takes<E, Values...>());
        const auto wires = E::encode(values...);
        const auto sizes = measure_for<E>(wires);
        impl::event_state& type = touch<E>();
        const mark_type opener = impl::stack_position();
        const std::uint32_t bytes = fixed_record<E> + sizes.bytes;
        if (core_ == nullptr) return {};
        const auto [lane, time] = core_->open(type, bytes, opener);
        if (lane == nullptr) return {};
        if constexpr (write::readings_shared) write::share_reading(impl::mark_of(*lane), time);
        const std::uint32_t header = type.header.load(relaxed);  // relaxed: `open` saw the id
        write::template store_record<E, 0, 0>(
            impl::end_of_records(*lane), write::template head_of<E>(time, header), wires, sizes);
        return reservation(*core_, *lane, opener, bytes, impl::is_counted<E>() ? &type : nullptr);
    }

    /// A span: recorded as begun now, and as ended when the returned object dies, in whichever
    /// thread, or process after a fork, and whatever was begun and not ended since.
    template <impl::told_event E, class... Values>
    [[nodiscard]] scoped<E> scope(const Values&... values) noexcept {
        static_assert(E::kind == event_kind::span, "trace_ring: scope() takes a trace_ring::span");
        static_assert(impl::takes<E, Values...>());
        return scoped<E>(*this, values...);
    }

    /// Shuts every gate of this program, or opens them again. Takes effect at once on this thread,
    /// soon on others. Signal-safe.
    void pause() noexcept { shut(true); }
    void resume() noexcept { shut(false); }

    /// Shuts or opens the gate of one event type, or of all whose names match a glob of '*' and
    /// '?'. Returns how many did. Signal-safe.
    template <impl::told_event E>
    std::size_t enable(bool on) noexcept {
        impl::core::register_type(impl::event_of<E>::state);
        return enable(E::name, on);
    }
    std::size_t enable(std::string_view glob, bool on) noexcept { return core_->enable(glob, on); }

    /// Writes a consistent copy of the trace to a new file (through a temporary name), while
    /// recording goes on. Returns 0 or an errno value. Signal-safe: a crash handler, an assertion
    /// or a handler for a request from outside may call it. EBUSY: another thread is at it.
    int snapshot(const char* file) noexcept { return impl::write_snapshot(*core_, file); }

    /// With a sampled clock: says that the calling thread did something else for a while, so that
    /// its next record reads the clock. Nothing to do with other clocks. Signal-safe; the lane of a
    /// record that is open meanwhile is left as it is.
    void pause_ends() noexcept {
        if constexpr (write::readings_shared) write::forget_readings(lanes_at_);
    }

    /// Closes the calling thread's sub-buffers, so that a reader finds them complete; one with a
    /// record still open stays. The thread's next record begins a new lane. Signal-safe.
    void flush_thread() noexcept {
        for (auto& place : impl::thread_lanes) {
            impl::lane_block* const block = place.load(relaxed);  // relaxed: own word
            if (block != &impl::vacant_block) core_->leave_thread(*block, true);
        }
    }

    /// The file's name as it was expanded; empty for memory.
    [[nodiscard]] std::string_view path() const noexcept { return core_->memory().path(); }
    /// The descriptor of the file or memory file; -1 for plain memory.
    [[nodiscard]] int descriptor() const noexcept { return core_->memory().descriptor(); }
    /// The mapped trace, as a reader takes it: bytes there are now.
    [[nodiscard]] std::pair<const std::byte*, std::size_t> bytes() const noexcept {
        const impl::trace_memory& memory = core_->memory();
        return {memory.base(),
                static_cast<std::size_t>(memory.plan().bytes_for(memory.capacity()))};
    }
    /// What was counted so far, each count by itself while others record. Any thread, signal-safe;
    /// linear in the lanes that the trace remembers.
    [[nodiscard]] recorder_statistics statistics() const noexcept {
        return impl::statistics_of(*core_);
    }

private:
    template <class>
    friend class basic_recorder;  // the kind with a lane for each processor is one of this, too
    friend class drain_source;

    using mark_type = impl::mark_type;

    template <class E>
    static constexpr std::uint32_t fixed_record = static_cast<std::uint32_t>(record_header_bytes +
                                                                             E::fixed_bytes);

    void shut(bool now) noexcept { core_->shut(now); }

    /// The state of an event type, and a reason for it to be registered before main.
    template <class E>
    [[gnu::always_inline]] static impl::event_state& touch() noexcept {
        static_cast<void>(&impl::registrar<E>);
        return impl::event_of<E>::state;
    }

    template <class E>
    [[nodiscard]] impl::measured<E> measure_for(const typename E::wires& wires) const noexcept {
        if constexpr (E::variable) {
            return impl::measure<E>(
                wires, max_record_ > fixed_record<E> ? max_record_ - fixed_record<E> : 0);
        } else {
            static_cast<void>(wires);
            return {};
        }
    }

    template <class E>
    [[gnu::always_inline]] static void count(impl::lane_state& lane,
                                             const impl::event_state& type) {
        if constexpr (impl::is_counted<E>()) impl::count_record(lane, type);
    }

    template <class E, std::uint32_t Flags, class... Values>
    [[gnu::always_inline]] bool put(impl::open_span* span, const Values&... values) noexcept {
        impl::event_state& type = touch<E>();
        // The header is the number of the gate and what is known already; the gate of an event that
        // has no id yet is shut.
        // order: type.use:A pairs with type.publish:A
        const std::uintptr_t header = load_index(type.header);
        // Before the gate's, so that these loads do not wait for those.
        impl::lane_state* const lane = impl::first_lane(impl::ring_of<E>, lanes_at_);
        if (gates_.template is_shut<impl::header_without_id(E::fixed_bytes)>(header)) [[unlikely]] {
            // relaxed: as just seen, or newer
            const std::uint32_t id = record_word::id(type.header.load(relaxed));
            if (id != 0 && !gates_.has_no_event(id)) return false;
            const auto opener = impl::stack_position();
            if constexpr (Flags == 0)
                return append_cold<E, 0>(type, E::encode(values...), opener, nullptr, 0, 0);
            else
                return append_cold<E, Flags>(type, E::encode(values...), opener, nullptr, 0, 0,
                                             span);
        }
        return append<E, Flags>(type, *lane, static_cast<std::uint32_t>(header),
                                E::encode(values...), span);
    }

    /// The end of a span: written even if the gate has been shut since, or it would never end.
    template <class E>
    [[gnu::always_inline]] void put_end(impl::open_span& span) noexcept {
        impl::event_state& type = impl::event_of<E>::state;
        const std::uint32_t header = type.header.load(relaxed);  // relaxed: known when it began
        append<impl::end_of<E>, record_word::end>(
            type, *impl::first_lane(impl::ring_of<E>, lanes_at_), header, {}, &span);
    }

    /// The hot path: one run of code in the caller, without a lock, a call or an allocation.
    template <class E, std::uint32_t Flags>
    [[gnu::always_inline]] bool append(impl::event_state& type, impl::lane_state& lane,
                                       std::uint32_t header, const typename E::wires& wires,
                                       [[maybe_unused]] impl::open_span* span) noexcept {
        const auto sizes = measure_for<E>(wires);
        // relaxed, to the end: words of this thread and its signal handlers alone
        impl::lane_mark& mark = impl::mark_of(lane);
        const mark_type idle = impl::set_mark(mark.value);
        signal_fence(seq_cst);
        // Not behind the reading of the clock: its line then came after the mark's, and a record
        // after the caches were swept took 2.5 times the floor's in place of 1.9.
        sub_buffer_header* const sub = lane.sub.load(relaxed);
        // Before the loads that follow: some processors read their counter only when all before is
        // done, and let nothing overtake it. There a record took 1.29 of the floor's time with the
        // reading behind them, and 1.09 so, for they wait beside those of the next record.
        [[maybe_unused]] clock::tsc::halves now{};
        if constexpr (write::timed && !write::readings_shared) now = write::read_halves();
        std::uint32_t bytes = fixed_record<E>;
        if constexpr (E::variable) bytes += sizes.bytes;
        const auto before = write::look(sub->commit);
        const indexed_place to{reinterpret_cast<std::byte*>(sub), before.place};
        const auto go_cold = [&]() __attribute__((always_inline)) {
            const std::uint64_t known = std::uint64_t{now.high} << 32 | now.low;
            if constexpr (Flags == 0) {
                return append_cold<E, 0>(type, wires, impl::stack_position(), &lane, idle, known);
            } else {
                return append_cold<E, Flags>(type, wires, impl::stack_position(), &lane, idle,
                                             known, span);
            }
        };
        if (impl::no_room(to.index, bytes, idle)) [[unlikely]] {
            return go_cold();
        }
        if constexpr (Flags == record_word::end) {
            if (!span->is_innermost(mark, *sub)) [[unlikely]]
                return go_cold();
        }
        // Without a clock to wait for, what a record costs most is a line that comes from a further
        // cache: asked for ten records before, it took 4.8 in place of 5.8 ticks (sub-buffers of
        // 32 KiB). Behind the end there is most often the lane's own next sub-buffer. A clock that
        // waits for all loads waits for this one, too: 0.5 ticks more with a sampled one.
        if constexpr (!write::timed) {
            prefetch_to_store(to.base + commit_word::bias + to.index + 256);
        }
        std::uint64_t time = 0;
        if (write::readings_shared && write::shares_reading(sub->commit, before)) [[likely]] {
            time = mark.reading.load(relaxed);
        } else if constexpr (write::timed) {
            if constexpr (write::readings_shared) now = write::read_halves();
            if (differs(lane.high, now.high)) [[unlikely]] {
                return go_cold();
            }
            time = now.low;
            if constexpr (write::readings_shared) write::share_reading(mark, now.low);
        }
        const std::uint64_t head = write::template head_of<E>(time, header, type);
        if constexpr (sizeof(void*) == 8 && impl::is_few_words<E>) {
            write::template store_record<E, Flags, commit_word::bias>(to, head, wires, sizes);
        } else {
            std::byte* const start = to.base + commit_word::bias + to.index;
            write::template store_record<E, Flags, 0>(start, head, wires, sizes);
        }
        if constexpr (Flags == record_word::begin) span->begin(mark, *sub);
        write::publish(sub->commit, before, commit_word::one_record + bytes);
        count<E>(lane, type);
        if constexpr (Flags == record_word::end) span->end(mark);
        signal_fence(seq_cst);
        mark.value.store(idle, relaxed);
        return true;
    }

    /// The same through the cold path: from its beginning, or from where the hot path left it, with
    /// the mark of lane `begun` set, which was `idle` before, and the clock read at `known`, if not
    /// 0. `span`: of the beginning or end of one.
    template <class E, std::uint32_t Flags, class... Span>
    [[gnu::noinline, gnu::cold]] bool append_cold(impl::event_state& type, typename E::wires wires,
                                                  mark_type opener, impl::lane_state* begun,
                                                  mark_type idle, std::uint64_t known,
                                                  Span*... span) noexcept {
        const bool is_begun = begun != nullptr && impl::put_back(*begun, opener, idle) && idle < 0;
        if (core_ == nullptr) return false;  // static storage, not constructed yet or no more
        const auto sizes = measure_for<E>(wires);
        // An end may have to say where the span began.
        const std::uint32_t bytes =
            impl::is_end<E> ? layout::span_end_record::bytes : fixed_record<E> + sizes.bytes;
        const auto [lane, time] =
            is_begun ? core_->open_further(type, bytes, opener, impl::is_end<E>, *begun, known)
                     : core_->open(type, bytes, opener, impl::is_end<E>);
        if (lane == nullptr) return false;
        write::template append_open<E, Flags>(*core_, *lane, type, time, wires, sizes, span...);
        core_->finish(*lane);
        return true;
    }

    alignas(64) impl::gate_link gates_;  // first, and aligned: lane_mark says why
    std::unique_ptr<impl::core> core_;
    std::uint32_t lanes_at_ = 0;  ///< in each thread's block
    std::uint32_t max_record_ = 0;
    [[maybe_unused]] std::byte room_for_gates_[sizeof(impl::gate_page)];  // see gate_link
};

}  // namespace trace_ring::inline v1

#include <trace_ring/recorder/reservation.hpp>
#endif
