// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A recorder with a lane for each processor instead of one for each thread: the ring_span of the
/// ring that is held is bounded by the processors, for any number of threads.
/// @code
///   struct by_cpu : trace_ring::policies<trace_ring::claim::per_cpu> {};
///   trace_ring::basic_recorder<by_cpu> recorder{{.file = "orders.trace"}};
/// @endcode
/// Clock, copy and commit of a record are one restartable sequence: no locked instruction and no
/// call. No record is ever open, so none is lost by nesting, and a jump or kill leaves nothing
/// behind. The time of a record is that of its commit, also if it was reserved.
///
/// A lane holds the records of all threads that ran there, so it does not show which thread wrote a
/// record. An owner record (thread and name, 40 bytes) does, where another thread continues and
/// where a sub-buffer begins: at most once each time that the processor changes threads. Nothing is
/// added to the records themselves. (LTTng adds 4 bytes to each with the context vtid; ftrace
/// always does.) Readers use `record_view::lane().thread` as for any record; losses and
/// totals of the lane itself have the name "cpu N", and `lane_info::cpu` is its processor.
///
/// The ring must hold some sub-buffers for each processor, of which at most half are in use.
///
/// It is a recorder with a lane for each thread where there are no sequences
/// (policy/claim/per_cpu.hpp says where) or where they cannot read the clock. So it is for a record
/// whose sequence fails again and again, as in a debugger that steps, and for threads that the C
/// library did not register.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#if defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/spans.hpp>
#else
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <trace_ring/policies.hpp>
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/recorder/cpu/lanes.hpp>
#include <trace_ring/recorder/cpu/reservation.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/recorder/spans.hpp>

namespace trace_ring::inline v1 {

namespace impl {
template <class Kind>
concept by_cpu_kind =
    claim::by_cpu<typename Kind::template policy_of<trace_ring::family::claim, void>>;
/// The kind of recorder that it is without sequences.
template <class Clock>
struct by_thread : policies<Clock> {};
/// Clocks that a sequence can read: the processor's counter, and none.
template <class Clock>
inline constexpr bool in_sequence =
    std::is_same_v<Clock, clock::tsc> || std::is_same_v<Clock, clock::none>;
}  // namespace impl

/// Like the recorder with a lane for each thread, except where a comment says otherwise.
template <class Kind>
requires impl::by_cpu_kind<Kind>
class basic_recorder<Kind>
    : private basic_recorder<
          impl::by_thread<typename impl::recorder_policies<Kind>::clock_policy>> {
    using clock_policy = typename impl::recorder_policies<Kind>::clock_policy;
    using base = basic_recorder<impl::by_thread<clock_policy>>;
    static_assert(!impl::time_source<clock_policy>::shared,
                  "trace_ring: threads that share a lane cannot share readings of a clock");

public:
    /// A record that is filled in place, until it is committed or discarded.
    template <impl::told_event E>
    using reservation = cpu_reservation<basic_recorder, impl::event_of<E>>;
    /// What `scope` returns: an open span.
    template <impl::told_event E>
    using scoped = open_scope<basic_recorder, impl::event_of<E>>;

    /// As that of the other recorders.
    explicit basic_recorder(const recorder_options& options)
        : base(options),
          lanes_(base::words_.lanes, impl::in_sequence<clock_policy>),
          home_(restartable() ? &impl::the_registry : nullptr),
          retire_base_(std::exchange(base::retire_, [](void* which) noexcept {
              auto& own = *static_cast<basic_recorder*>(which);
              own.home_ = nullptr;
              signal_fence(seq_cst);  // keeps the compiler from leaving this out
              own.lanes_.~cpu_lanes();
              own.retire_base_(static_cast<base*>(&own));
          })) {}
    /// Any other argument does not compile; the message says how to construct a recorder.
    template <class... Given>
    requires impl::no_options<basic_recorder, recorder_options, Given...>
    explicit basic_recorder(Given&&... given) noexcept : base(given...) {}
    basic_recorder(const basic_recorder&) = delete;
    basic_recorder& operator=(const basic_recorder&) = delete;
    ~basic_recorder() {
        if (const auto retire = std::exchange(base::retire_, nullptr)) retire(this);
    }

    /// Writes a record; false if its gate is shut or it is lost, which is counted. A signal
    /// handler's records come before the record that it interrupts. Variable fields are staged on
    /// the stack: up to the bytes of a sub-buffer.
    template <impl::told_event E, class... Values>
    [[gnu::always_inline]] bool record(const Values&... values) noexcept {
        if constexpr (impl::takes<E, Values...>()) {
            return E::given::convert(
                [this](const auto&... stored) __attribute__((always_inline)) {
                    return put<impl::event_of<E>>(record_of<E>(stored...));
                },
                values...);
        } else {
            return false;
        }
    }

    /// A record that is filled by this call, in the object returned, and published by its `commit`.
    /// Any number may be open. Variable fields are cut to 4 KiB.
    template <impl::told_event E, class... Values>
    [[nodiscard, gnu::always_inline]] reservation<E> reserve(const Values&... values) noexcept {
        static_assert(impl::takes<E, Values...>());
        return reservation<E>(*this, values...);
    }

    /// As that of the other recorders.
    template <impl::told_event E, class... Values>
    [[nodiscard, gnu::always_inline]] scoped<E> scope(const Values&... values) noexcept {
        static_assert(E::kind == event_kind::span, "trace_ring: scope() takes a trace_ring::span");
        static_assert(impl::takes<E, Values...>());
        return scoped<E>(*this, values...);
    }

    /// Whether records are restartable sequences. False: it has a lane for each thread.
    [[nodiscard]] bool restartable() const noexcept { return lanes_.table().area != 0; }

    using base::bytes;
    using base::descriptor;
    using base::enable;
    using base::path;
    using base::pause;
    using base::resume;
    using base::snapshot;
    using base::statistics;
    /// Closes the calling thread's own lanes. Processors' lanes do not change: their records can
    /// be read, and their sub-buffers are closed when full, or with the recorder.
    using base::flush_thread;

private:
    friend class drain_source;
    template <class Recorder, recordable E>
    friend class cpu_reservation;
    template <class Recorder, recordable E>
    friend class open_scope;

    static constexpr bool timed = !std::is_same_v<clock_policy, clock::none>;
    template <class E>
    using record_of = impl::fields_record<typename E::signature>;
    /// The payload of a record in words that may stay in registers.
    template <class E>
    [[nodiscard, gnu::always_inline]] static impl::words_record<E::signature::words> words_of(
        const record_of<E>& record) noexcept {
        impl::words_record<E::signature::words> out{};
        record.pack(out.word);
        return out;
    }

    /// Bytes of the longest record, before which an owner record may have to fit in.
    [[nodiscard]] std::uint32_t max_record() const noexcept {
        return base::words_.max_record - std::uint32_t{named_owner_record_bytes};
    }
    /// The header of a type's records; without an id if the type has none in the recorder's
    /// registry, or this code does not know it.
    template <class E>
    [[nodiscard, gnu::always_inline]] std::uint32_t header_of(
        const impl::event_state& type) const noexcept {
        if (!impl::is_known_here(base::words_, type)) [[unlikely]]
            return impl::header_without_id(E::fixed_bytes);
        // order: type.use:D pairs with type.publish:A
        return type.header.load(acquire);
    }
    /// False: the gate is shut. A type without an id passes; `header` then has none, either, and
    /// the record takes the cold path, which knows what to do.
    [[nodiscard]] bool passes(std::uint32_t& header) const noexcept {
        const std::uint8_t gate = impl::gates_of(base::words_).look(record_word::id(header));
        if (gate == layout::gate_no_event) header -= record_word::id(header);
        return gate == 0 || gate == layout::gate_no_event;
    }

    template <class E>
    [[gnu::always_inline]] bool put(const record_of<E>& record) noexcept {
        impl::event_state& type = impl::event_type<E>();
        std::uint32_t header = header_of<E>(type);
        if constexpr (E::signature::variable) {
            if (!restartable()) {
                return impl::append<clock_policy, impl::ring_of<E>, impl::is_counted<E>()>(
                    base::words_, type, record);
            }
            return passes(header) && write_staged<E>(type, header, record, nullptr);
        } else {
            constexpr std::uint32_t known = impl::header_without_id(E::fixed_bytes);
            const std::uint8_t gate = impl::gates_of(base::words_).template look<known>(header);
            if (gate != 0) [[unlikely]] {
                if (gate != layout::gate_no_event) return false;
                return write_otherwise<impl::ring_of<E>, impl::is_counted<E>()>(
                    impl::indices_to<E::signature::words>{}, type, header - record_word::id(header),
                    words_of<E>(record));
            }
            return write<impl::ring_of<E>, impl::is_counted<E>()>(type, header,
                                                                  words_of<E>(record));
        }
    }
    /// Begins a span: `span` receives which record that is.
    template <class E, class... Values>
    bool put_begin(impl::open_span& span, const Values&... values) noexcept {
        if (!restartable()) return base::template put_begin<E>(span, values...);
        impl::event_state& type = impl::event_type<E>();
        std::uint32_t header = header_of<E>(type);
        if (!passes(header)) return false;
        header |= std::uint32_t{record_word::begin} << 28;
        return E::given::convert(
            [&](const auto&... stored) {
                return write_staged<E>(type, header, record_of<E>(stored...), &span);
            },
            values...);
    }
    /// Ends a span, with its results if it has any: recorded even if the gate has been shut since.
    template <class E, class... Results>
    bool put_end(impl::open_span& span, const Results&... values) noexcept {
        if (!restartable()) return base::template put_end<E>(span, values...);
        impl::event_state& type = impl::event_of<E>::state;
        const std::uint32_t header = end_header<E>(type);
        if constexpr (sizeof...(Results) != 0) {
            return E::end::given::convert(
                [&](const auto&... stored) {
                    return end_staged(type, header,
                                      impl::fields_record<typename E::end::signature>(stored...),
                                      span);
                },
                values...);
        } else {
            if (ends_here(header, span) &&
                rseq::append<timed, 0>(lanes_.table().of(impl::ring_of<E>), header, nullptr))
                [[likely]] {
                impl::leave_here(span);
                return true;
            }
            return write_slowly(type, header, nullptr, 0, false, &span);
        }
    }
    /// Whether an end with this header needs no more than a sequence.
    [[nodiscard, gnu::always_inline]] bool ends_here(std::uint32_t header,
                                                     const impl::open_span& span) const noexcept {
        return impl::is_innermost_here(span) && record_word::id(header) != 0 &&
               home_ == &impl::the_registry;
    }
    /// The header of an end without results.
    template <class E>
    [[nodiscard]] std::uint32_t end_header(const impl::event_state& type) const noexcept {
        return record_word::pack(record_word::id(header_of<E>(type)), record_header_bytes,
                                 record_word::end);
    }
    /// Calls `write(header, words, count)` with the payload of a record, which goes through the
    /// stack.
    template <class Record, class Write>
    static bool staged(const Record& record, std::uint32_t header, std::uint32_t most,
                       Write&& write) noexcept {
        const auto sizes = record.measure(most);
        const impl::record_size of = record.size(sizes);
        const auto words = static_cast<std::uint32_t>((of.bytes - record_header_bytes) / 8);
        auto* const all = static_cast<std::uint64_t*>(__builtin_alloca(words * 8 + 8));
        record.store(reinterpret_cast<std::byte*>(all), sizes);
        return write(header + of.header, all, words);
    }
    /// For records of variable length, and beginnings. `span`: the one that it begins, else null.
    template <class E>
    [[gnu::noinline]] bool write_staged(impl::event_state& type, std::uint32_t header,
                                        const record_of<E>& record,
                                        impl::open_span* span) noexcept {
        return staged(record, header, max_record(),
                      [&](std::uint32_t head, const std::uint64_t* words, std::uint32_t count) {
                          return write_words(type, head, words, count, impl::is_counted<E>(), span);
                      });
    }
    /// For ends with results. `header` is the header of an end without results.
    template <class Record>
    [[gnu::noinline]] bool end_staged(impl::event_state& type, std::uint32_t header,
                                      const Record& record, impl::open_span& span) noexcept {
        header += std::uint32_t{Record::fixed_bytes / 8} << 16;
        return staged(
            record, header, impl::most_result_bytes(max_record()),
            [&](std::uint32_t head, const std::uint64_t* words, std::uint32_t count) {
                if (ends_here(head, span) &&
                    rseq::append_words<timed>(lanes_.table().of(type.ring), head, words, count)) {
                    impl::leave_here(span);
                    return true;
                }
                return write_slowly(type, head, words, count, false, &span);
            });
    }

    /// The hot path, for records whose length is known and whose event has an id.
    template <std::uint32_t Ring, bool Counted, std::size_t Words>
    [[gnu::always_inline]] bool write(impl::event_state& type, std::uint32_t header,
                                      const impl::words_record<Words>& words) noexcept {
        bool done = false;
        if (home_ == &impl::the_registry) [[likely]] {
            if constexpr (Words <= rseq::most_words) {
                done = rseq::append<timed, Words>(lanes_.table().of(Ring), header, words.word);
            } else {
                done =
                    rseq::append_words<timed>(lanes_.table().of(Ring), header, words.word, Words);
            }
        }
        if (!done) [[unlikely]]
            return write_otherwise<Ring, Counted>(impl::indices_to<Words>{}, type, header, words);
        // relaxed: known by its id
        if constexpr (Counted) lanes_.count(Ring, type.total.load(relaxed));
        return true;
    }
    /// Few words are passed by value: they need no memory, and the caller needs no frame.
    template <std::uint32_t Ring, bool Counted, std::size_t... Index>
    [[gnu::always_inline]] bool write_otherwise(
        impl::indices<Index...>, impl::event_state& type, std::uint32_t header,
        const impl::words_record<sizeof...(Index)>& words) noexcept {
        if constexpr (sizeof...(Index) <= rseq::most_words) {
            return write_few<Ring, Counted>(type, header, words.word[Index]...);
        } else {
            return write_many<Ring, Counted>(type, header, words);
        }
    }
    template <std::uint32_t Ring, bool Counted, class... Word>
    [[gnu::noinline]] bool write_few(impl::event_state& type, std::uint32_t header,
                                     Word... word) noexcept {
        return write_many<Ring, Counted, sizeof...(Word)>(type, header, {{word..., 0}});
    }
    template <std::uint32_t Ring, bool Counted, std::size_t Words>
    bool write_many(impl::event_state& type, std::uint32_t header,
                    const impl::words_record<Words>& words) noexcept {
        if (restartable()) return write_slowly(type, header, words.word, Words, Counted, nullptr);
        // Without sequences: the hot path of a lane for each thread.
        return impl::append<clock_policy, Ring, Counted>(base::words_, type, words);
    }
    bool write_words(impl::event_state& type, std::uint32_t header, const std::uint64_t* words,
                     std::uint32_t count, bool counted, impl::open_span* span) noexcept {
        if (home_ != &impl::the_registry || record_word::id(header) == 0 ||
            !rseq::append_words<timed>(lanes_.table().of(type.ring), header, words, count, span)) {
            return write_slowly(type, header, words, count, counted, span);
        }
        if (span != nullptr) impl::enter_here(*span);
        if (counted) lanes_.count(type.ring, type.total.load(relaxed));  // relaxed: as above
        return true;
    }

    /// `header` may lack the id. `span`: the one that the record begins or ends, else null.
    [[gnu::noinline, gnu::cold]] bool write_slowly(impl::event_state& type, std::uint32_t header,
                                                   const std::uint64_t* words, std::uint32_t count,
                                                   bool counted, impl::open_span* span) noexcept {
        using answer = impl::cpu_lanes::answer;
        const answer found =
            lanes_.template write<timed>(type, header, words, count, counted, span);
        if (found != answer::elsewhere) return found == answer::yes;
        return impl::append_words(base::words_, type, {impl::not_begun, impl::stack_position()},
                                  words, count, record_word::flags(header), span);
    }

    union {
        impl::cpu_lanes lanes_;  // retire_ ends it
    };
    /// Null without sequences. Code of a library that has another registry finds a different
    /// address here: its records take the cold path, and the lanes of their threads.
    const impl::registry* home_ = nullptr;
    void (*retire_base_)(void* recorder) noexcept;
};
static_assert(sizeof(basic_recorder<policies<claim::per_cpu>>) == impl::recorder_bytes);

}  // namespace trace_ring::inline v1
#endif

#endif
