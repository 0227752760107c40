// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder with a lane for each processor instead of one for each thread: however many threads
/// record, what they hold of the ring is bounded by the processors.
/// @code
///   struct by_cpu {
///       using clock = trace_ring::clock::tsc;
///       using claim = trace_ring::claim::per_cpu;
///   };
///   trace_ring::basic_recorder<by_cpu> recorder{{.file = "orders.trace"}};
/// @endcode
/// Clock, copy and commit of a record are one restartable sequence: no locked instruction, no call,
/// and nothing is ever open, so that no depth of nesting is lost, and no jump or kill leaves
/// anything. A record bears the time of its commit, also one that was reserved.
///
/// A lane holds the records of all threads that ran there, so the lane does not tell the thread. A
/// record of the library's own does (owner_record: thread and name, 40 bytes), where another thread
/// goes on and where a sub-buffer begins: at most once each time that the processor changes
/// threads, and nothing is added to any record. (LTTng adds 4 bytes to each, where the context vtid
/// is asked for; ftrace has them always.) Readers say `record_view::lane().thread` as for any
/// record; what concerns the lane itself bears the name "cpu N", and `lane_info::cpu`.
///
/// The ring must hold some sub-buffers for each processor, of which at most half are in use.
///
/// Where there are no sequences (policy/claim/per_cpu.hpp says where), or the clock is one that
/// they cannot read, it is a recorder with a lane for each thread. So is it for a record whose
/// sequence fails again and again, as in a debugger that steps, and for threads that the C library
/// did not register.

#if defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/disabled/recorder.hpp>
#else
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <trace_ring/recorder/cpu/fallback.hpp>
#include <trace_ring/recorder/cpu/lanes.hpp>

namespace trace_ring::inline v1 {

namespace impl {
template <class Kind>
concept by_cpu_kind = claim::by_cpu<typename Kind::claim>;
/// The kind that it is without sequences.
template <class Clock>
struct by_thread {
    using clock = Clock;
};
/// The payload of an event without variable fields, in words that may stay in registers.
template <class Event>
[[nodiscard, gnu::always_inline]] inline std::array<std::uint64_t, Event::fixed_bytes / 8 + 1>
words_of([[maybe_unused]] const typename Event::wires& values) noexcept {
    std::array<std::uint64_t, Event::fixed_bytes / 8 + 1> words{};
    [[maybe_unused]] const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>)
        __attribute__((always_inline)) {
        const auto& wire = std::get<I>(values);
        constexpr field_description f = Event::fields[I];
        if constexpr (is_stored_whole<Event, I>) {
            std::memcpy(words.data() + f.offset / 8, wire.data(), f.count * size_of(f.type));
        } else if constexpr (f.form == field_form::scalar) {
            words[f.offset / 8] |= bits_of(wire) << (f.offset % 8 * 8);
        } else {
            for (std::size_t k = 0; k < f.count; ++k) {
                const std::size_t at = f.offset + k * size_of(f.type);
                words[at / 8] |= bits_of(wire[k]) << (at % 8 * 8);
            }
        }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        (one(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<Event::field_count>{});
    return words;
}
/// Any event of so many words without variable fields, for who has its words alone.
template <std::size_t Words, bool Counted>
struct words_event : event<"words", field<"words", std::array<std::uint64_t, Words>>> {
    static constexpr bool counted = Counted;
};
template <bool Counted>
struct words_event<0, Counted> : event<"words"> {
    static constexpr bool counted = Counted;
};
/// Clocks that a sequence reads: the processor's counter, and none.
template <class Clock>
inline constexpr bool in_sequence =
    std::is_same_v<Clock, clock::tsc> || std::is_same_v<Clock, clock::none>;
}  // namespace impl

template <class Recorder, recordable E>
class cpu_reservation;
template <class Recorder, recordable E>
class cpu_scope;

/// As the other kind; what differs is said where it does.
template <class Kind>
requires impl::by_cpu_kind<Kind>
class basic_recorder<Kind> : private basic_recorder<impl::by_thread<typename Kind::clock>> {
    using base = basic_recorder<impl::by_thread<typename Kind::clock>>;
    using clock_policy = typename Kind::clock;
    static_assert(clock::records_per_reading<clock_policy> == 1,
                  "trace_ring: threads that share a lane cannot share readings of a clock");

public:
    template <impl::told_event E>
    using reservation = cpu_reservation<basic_recorder, E>;
    template <impl::told_event E>
    using scoped = cpu_scope<basic_recorder, E>;

    explicit basic_recorder(const recorder_options& options)
        : base(options),
          lanes_(std::make_unique<impl::cpu_lanes>(*base::core_, impl::in_sequence<clock_policy>)),
          table_(lanes_->table()),
          home_(table_.area != 0 ? &impl::the_registry : nullptr),
          max_record_(lanes_->max_record()) {}
    ~basic_recorder() {
        home_ = nullptr;
        table_ = {};
        signal_fence(seq_cst);  // keeps the compiler from leaving these stores out
        lanes_.reset();
    }

    /// Signal handlers that interrupt a record come before it. Variable fields are staged on the
    /// stack: up to the bytes of a sub-buffer.
    template <impl::told_event E, class... Values>
    [[gnu::always_inline]] bool record(const Values&... values) noexcept {
        if constexpr (impl::takes<E, Values...>()) {
            return put<E>(values...);
        } else {
            return false;
        }
    }

    /// A record that is filled now, in the object returned, and is there once committed. Any number
    /// may be open. Variable fields are cut to 4 KiB.
    template <impl::told_event E, class... Values>
    [[nodiscard]] reservation<E> reserve(const Values&... values) noexcept {
        static_assert(impl::takes<E, Values...>());
        return reservation<E>(*this, values...);
    }

    template <impl::told_event E, class... Values>
    [[nodiscard]] scoped<E> scope(const Values&... values) noexcept {
        static_assert(E::kind == event_kind::span, "trace_ring: scope() takes a trace_ring::span");
        static_assert(impl::takes<E, Values...>());
        return scoped<E>(*this, values...);
    }

    /// Records are restartable sequences here. False: this is a recorder with a lane a thread.
    [[nodiscard]] bool restartable() const noexcept { return table_.area != 0; }

    using base::bytes;
    using base::descriptor;
    using base::enable;
    using base::path;
    using base::pause;
    using base::resume;
    using base::snapshot;
    using base::statistics;
    /// Closes what the thread has of its own. The lanes of processors stay as they are: what is in
    /// them is there to be read, and closed when they are full, or with the recorder.
    using base::flush_thread;

private:
    friend class drain_source;
    template <class Recorder, recordable E>
    friend class cpu_reservation;
    template <class Recorder, recordable E>
    friend class cpu_scope;

    [[nodiscard]] const impl::gate_link& gates() const noexcept { return base::gates_; }
    template <class E>
    [[nodiscard]] static impl::event_state& touch_type() noexcept {
        return base::template touch<E>();
    }
    static constexpr bool timed = !std::is_same_v<clock_policy, clock::none>;
    template <class E>
    static constexpr std::uint32_t fixed_words = static_cast<std::uint32_t>(E::fixed_bytes / 8);

    template <class E>
    [[nodiscard]] static impl::measured<E> measure_for(const typename E::wires& wires,
                                                       std::size_t most) noexcept {
        if constexpr (E::variable) {
            return impl::measure<E>(wires, most > E::fixed_bytes ? most - E::fixed_bytes : 0);
        } else {
            static_cast<void>(wires);
            static_cast<void>(most);
            return {};
        }
    }
    /// The header of a record of these sizes, from the one of its type.
    template <class E>
    [[nodiscard]] static std::uint32_t header_for(std::uint32_t header,
                                                  const impl::measured<E>& sizes) noexcept {
        if constexpr (E::variable) {
            header += sizes.bytes / 8 << 16;
            if (sizes.cut) header |= std::uint32_t{record_word::cut} << 28;
        }
        return header;
    }

    template <class E, class... Values>
    [[gnu::always_inline]] bool put(const Values&... values) noexcept {
        impl::event_state& type = base::template touch<E>();
        // order: type.use:D pairs with type.publish:A
        const std::uintptr_t numbered = load_index(type.header);
        const auto header = static_cast<std::uint32_t>(numbered);
        if (base::gates_.template is_shut<impl::header_without_id(E::fixed_bytes)>(numbered))
            [[unlikely]] {
            const std::uint32_t id = record_word::id(header);
            if (id != 0 && !base::gates_.has_no_event(id)) return false;
            if constexpr (E::variable) {  // without its id it goes the long way
                return append_variable<E>(type, header - id, E::encode(values...));
            } else {
                const auto words = impl::words_of<E>(E::encode(values...));
                return write_slowly(type, header, words.data(), fixed_words<E>,
                                    impl::is_counted<E>(), nullptr);
            }
        }
        if constexpr (E::variable) {
            return append_variable<E>(type, header, E::encode(values...));
        } else {
            return write<impl::ring_of<E>, impl::is_counted<E>(), fixed_words<E>>(
                type, header, impl::words_of<E>(E::encode(values...)));
        }
    }
    /// The beginning of a span: `span` is told which record it is.
    template <class E, class... Values>
    bool put_begin(impl::open_span& span, const Values&... values) noexcept {
        impl::event_state& type = base::template touch<E>();
        std::uint32_t header = type.header.load(relaxed);  // relaxed: `admit` looks again
        const std::uint32_t id = record_word::id(header);
        if (id != 0 && base::gates_.template is_shut<0>(id)) {
            if (!base::gates_.has_no_event(id)) return false;
            header -= id;  // so it goes the long way
        }
        if (!restartable() && record_word::id(header) != 0) {
            return append_by_thread<E, record_word::begin>(type, header, E::encode(values...),
                                                           &span);
        }
        constexpr std::uint32_t flags = std::uint32_t{record_word::begin} << 28;
        if constexpr (E::variable) {
            return append_variable<E>(type, header | flags, E::encode(values...), &span);
        } else {
            const auto words = impl::words_of<E>(E::encode(values...));
            return write_words<impl::is_counted<E>()>(type, header | flags, words.data(),
                                                      fixed_words<E>, &span);
        }
    }
    /// The end of a span: written even if the gate has been shut since.
    template <class E>
    void put_end(impl::open_span& span) noexcept {
        if (!restartable()) return base::template put_end<E>(span);
        impl::event_state& type = impl::event_of<E>::state;
        const std::uint32_t header = record_word::pack(
            record_word::id(type.header.load(relaxed)),  // relaxed: known when it began
            record_header_bytes, record_word::end);
        if (impl::is_innermost_here(span) && home_ == &impl::the_registry &&
            rseq::append_here<timed, 0>(table_.of(impl::ring_of<E>), header, nullptr)) [[likely]] {
            return impl::leave_here(span);
        }
        static_cast<void>(write_slowly(type, header, nullptr, 0, false, &span));
    }
    template <class E, class... Span>
    [[gnu::noinline]] bool append_variable(impl::event_state& type, std::uint32_t header,
                                           const typename E::wires& wires, Span*... span) noexcept {
        if constexpr (sizeof...(Span) == 0) {  // put_begin has asked the same
            if (!restartable() && record_word::id(header) != 0)
                return append_by_thread<E, 0>(type, header, wires, nullptr);
        }
        const auto sizes = measure_for<E>(wires, max_record_ - record_header_bytes);
        const std::uint32_t words = fixed_words<E> + sizes.bytes / 8;
        auto* const staged = static_cast<std::uint64_t*>(__builtin_alloca(words * 8 + 8));
        impl::store_payload<E>(reinterpret_cast<std::byte*>(staged), wires, sizes);
        return write_words<impl::is_counted<E>()>(type, header_for<E>(header, sizes), staged, words,
                                                  span...);
    }

    /// The hot path, for records whose length is known and whose event has an id.
    template <std::uint32_t Ring, bool Counted, std::uint32_t Words>
    [[gnu::always_inline]] bool write(impl::event_state& type, std::uint32_t header,
                                      const std::array<std::uint64_t, Words + 1>& words) noexcept {
        bool done = false;
        if (home_ == &impl::the_registry) [[likely]] {
            if constexpr (Words <= rseq::most_words_here) {
                done = rseq::append_here<timed, Words>(table_.of(Ring), header, words.data());
            } else {
                done = rseq::append_words_here<timed>(table_.of(Ring), header, words.data(), Words);
            }
        }
        if (!done) [[unlikely]]
            return write_otherwise<Ring, Counted, Words>(type, header, words);
        if constexpr (Counted) lanes_->count(type);
        return true;
    }
    /// Few words by value: they need no memory, and the caller no frame.
    template <std::uint32_t Ring, bool Counted, std::uint32_t Words>
    [[gnu::always_inline]] bool write_otherwise(
        impl::event_state& type, std::uint32_t header,
        const std::array<std::uint64_t, Words + 1>& words) noexcept {
        if constexpr (Words <= rseq::most_words_here) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
                return write_few<Ring, Counted>(type, header, words[I]...);
            }
            (std::make_index_sequence<Words>{});
        } else {
            return write_many<Ring, Counted, Words>(type, header, words);
        }
    }
    template <std::uint32_t Ring, bool Counted, class... Word>
    [[gnu::noinline]] bool write_few(impl::event_state& type, std::uint32_t header,
                                     Word... word) noexcept {
        return write_many<Ring, Counted, sizeof...(Word)>(type, header, {word..., 0});
    }
    template <std::uint32_t Ring, bool Counted, std::uint32_t Words>
    bool write_many(impl::event_state& type, std::uint32_t header,
                    const std::array<std::uint64_t, Words + 1>& words) noexcept {
        if (restartable()) return write_slowly(type, header, words.data(), Words, Counted, nullptr);
        using any = impl::words_event<Words, Counted>;
        typename any::wires wires;
        if constexpr (Words != 0) std::memcpy(std::get<0>(wires).data(), words.data(), Words * 8);
        return append_by_thread<any, 0>(type, header, wires, nullptr);
    }
    /// As the recorder that this is without sequences has it, on its hot path.
    template <class E, std::uint32_t Flags>
    [[gnu::always_inline]] bool append_by_thread(impl::event_state& type, std::uint32_t header,
                                                 const typename E::wires& wires,
                                                 impl::open_span* span) noexcept {
        return base::template append<E, Flags>(type, *impl::first_lane(type.ring, base::lanes_at_),
                                               header, wires, span);
    }
    template <bool Counted, class... Span>
    bool write_words(impl::event_state& type, std::uint32_t header, const std::uint64_t* words,
                     std::uint32_t count, Span*... span) noexcept {
        constexpr bool told = sizeof...(Span) != 0;
        const bool done = home_ == &impl::the_registry && record_word::id(header) != 0 &&
                          rseq::append_words_here<timed, told>(table_.of(type.ring), header, words,
                                                               count, span...);
        if (!done) {
            impl::open_span* const spans[] = {span..., nullptr};
            return write_slowly(type, header, words, count, Counted, spans[0]);
        }
        (impl::enter_here(*span), ...);
        if constexpr (Counted) lanes_->count(type);
        return true;
    }

    /// `header` may lack the id. `span`: of a record that begins or ends one.
    [[gnu::noinline, gnu::cold]] bool write_slowly(impl::event_state& type, std::uint32_t header,
                                                   const std::uint64_t* words, std::uint32_t count,
                                                   bool counted, impl::open_span* span) noexcept {
        if (base::core_ == nullptr) return false;  // not constructed yet, or no more
        return impl::write_slowly<timed>(*base::core_, *lanes_, type, header, words, count, counted,
                                         span);
    }

    std::unique_ptr<impl::cpu_lanes> lanes_;
    cpu_table table_;
    /// Null without sequences. Code of a library with a registry, and so event ids, of its own
    /// finds another than its own there, and the cold path refuses it.
    const impl::registry* home_ = nullptr;
    std::uint32_t max_record_ = 0;
};

}  // namespace trace_ring::inline v1

#include <trace_ring/recorder/cpu/reservation.hpp>
#endif
