// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// For a file that only records, into a recorder that another file constructs: events, and the
/// recorder without its constructor, which is in recorder/recorder.hpp. spans.hpp adds spans, and
/// headers in record/event/ add further kinds of fields.
/// @code
///   struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
///                                         trace_ring::field<"price", double>> {};
///   void send(trace_ring::recorder& recorder) { recorder.record<order_sent>(42, 3.14); }
/// @endcode
/// With TRACE_RING_DISABLE defined every use compiles to nothing: the arguments are not evaluated
/// further than the language demands, no file is made, `record` is false. Files with it and without
/// make one program, and pass recorders to each other (site/disabled.hpp says which).

#include <trace_ring/fwd.hpp>

#if __cplusplus < 202002L
#elif defined(TRACE_RING_DISABLE)
#include <trace_ring/recorder/site/disabled.hpp>
#else

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/site/hot_path.hpp>
#include <trace_ring/recorder/site/made_of.hpp>
#include <trace_ring/recorder/site/reservation.hpp>

namespace trace_ring::inline v1 {

struct recorder_options;
struct recorder_statistics;

template <class Recorder, recordable E>
class open_scope;

namespace impl {

// Those of spans.hpp.
struct span_begin;
struct span_end;
template <class Clock, std::uint32_t Ring, bool Counted, class Span>
struct append_span;

/// What a list of policies means for a recorder.
template <list_of_policies Kind>
struct recorder_policies {
    using clock_policy = typename Kind::template policy_of<family::clock, clock::tsc>;
    /// Whether it names claim::per_cpu, whose recorder is in cpu/recorder.hpp.
    static constexpr bool by_cpu = requires {
        Kind::template policy_of<family::claim, void>::a_lane_each_cpu;
    };
    template <class Family>
    static constexpr bool leaves_out =
        std::is_void_v<typename Kind::template policy_of<Family, void>>;
    static_assert(leaves_out<family::record> && leaves_out<family::full> &&
                      leaves_out<family::notify> && leaves_out<family::storage> &&
                      leaves_out<family::gate>,
                  "trace_ring: of policies a recorder's list names a clock and a claim; it records "
                  "events, and the rest is decided when it is set up (recorder_options)");
};
}  // namespace impl

/// Records events into a trace, which it makes or joins. Any thread may record.
template <class Kind>
class basic_recorder {
    static_assert(list_of_policies<Kind>,
                  "trace_ring::basic_recorder: a kind of recorder is a named list of policies: "
                  "struct my_trace : trace_ring::policies<...> {};");
    using clock_policy = typename impl::recorder_policies<Kind>::clock_policy;
    using time_source = impl::time_source<clock_policy>;
    static_assert(!impl::recorder_policies<Kind>::by_cpu,
                  "trace_ring: include <trace_ring/per_cpu.hpp> for a recorder with "
                  "claim::per_cpu");
    static_assert(impl::recorder_policies<Kind>::by_cpu ||
                      impl::recorder_policies<Kind>::template leaves_out<family::claim>,
                  "trace_ring: the one claim of a recorder is claim::per_cpu");

public:
    /// A record that is filled in place, until it is committed or discarded.
    using reservation = lane_reservation;
    /// What `scope` returns: an open span.
    template <impl::told_event E>
    using scoped = open_scope<basic_recorder, impl::event_of<E>>;

    /// Makes or joins the trace. Throws setup_error, which names the file (or option) and the
    /// cause; without exceptions see setup_error.hpp. If recorder_options::on_failure is
    /// record_nothing, it reports the error instead, and the recorder does nothing.
    explicit basic_recorder(const recorder_options& options);
    /// Any other argument does not compile; the message says how to construct a recorder.
    template <class... Given>
    requires impl::no_options<basic_recorder, recorder_options, Given...>
    explicit basic_recorder(Given&&...) noexcept { static_cast<void>(impl::made_of<Given...>()); }
    basic_recorder(const basic_recorder&) = delete;
    basic_recorder& operator=(const basic_recorder&) = delete;
    /// Closes the lanes of all threads of this process. No thread may be recording any more. What
    /// is recorded into one of static storage after its destructor has run is refused.
    ~basic_recorder() {
        if (retire_ != nullptr) retire_(this);
    }

    /// Records one event, with the time and the given field values. False: the event's gate is
    /// shut, or the record was lost and counted. Any thread, signal handlers, and children of a
    /// fork; no lock, no allocation, no system call (but once a thread, and when a file grows).
    /// Constant time for fixed fields, linear in the bytes of variable ones, which are cut to fit.
    template <impl::told_event E, class... Values>
    [[gnu::always_inline]] bool record(const Values&... values) noexcept {
        if constexpr (impl::takes<E, Values...>()) {
            return E::given::convert(
                impl::append_values<clock_policy, impl::ring_of<E>, impl::is_counted<E>()>{
                    words_, impl::event_type<E>()},
                values...);
        } else {
            return false;
        }
    }

    /// A record that is filled now and counts only once committed: `commit()` or `discard()`; the
    /// destructor discards. Until then other records of the same thread go to its next lane, and
    /// the time of its own lane does not advance. Empty if the gate is shut or there is no room.
    template <impl::told_event E, class... Values>
    [[nodiscard, gnu::always_inline]] reservation reserve(const Values&... values) noexcept {
        static_assert(impl::takes<E, Values...>());
        impl::event_state& type = impl::event_type<E>();
        const impl::mark_type opener = impl::stack_position();
        reservation made(words_, type, opener);
        made.hold(E::given::convert(impl::open_values{words_, type, opener, &made}, values...));
        return made;
    }

    /// A span: its begin is recorded now, its end by `end(results...)` of the returned object or by
    /// its destructor: in any thread or forked child, also if later spans are open. A span that the
    /// destructor ends has no results, and readers report that. Needs recorder/spans.hpp.
    template <impl::told_event E, class... Values>
    [[nodiscard, gnu::always_inline]] scoped<E> scope(const Values&... values) noexcept {
        static_assert(E::kind == event_kind::span, "trace_ring: scope() takes a trace_ring::span");
        static_assert(impl::takes<E, Values...>());
        return scoped<E>(*this, values...);
    }

    /// Shuts every gate of this program: on this thread immediately, on others soon. Signal-safe.
    void pause() noexcept {
        if (has_cold_path()) words_.cold->shut(words_, true);
    }
    /// Opens the gates that `pause` shut.
    void resume() noexcept {
        if (has_cold_path()) words_.cold->shut(words_, false);
    }

    /// Shuts or opens the gate of one event type, or of all whose names match a glob of '*' and
    /// '?'. Returns how many did. Signal-safe.
    template <impl::told_event E>
    [[gnu::always_inline]] std::size_t enable(bool on) noexcept {
        if (has_cold_path()) words_.cold->register_type(words_, impl::event_of<E>::state);
        return enable(E::name, on);
    }
    /// The same for all events whose names match. Returns how many there are.
    std::size_t enable(name_view glob, bool on) noexcept {
        return has_cold_path() ? words_.cold->enable(words_, glob, on) : 0;
    }

    /// Writes a consistent copy of the trace to a new file (through a temporary name), while
    /// recording continues. Returns 0 or an errno value (EBUSY: another thread is writing one).
    /// Signal-safe: a crash handler, an assertion or a handler for a request may call it.
    int snapshot(const char* file) noexcept {
        return has_cold_path() ? words_.cold->snapshot(words_, file) : 0;
    }

    /// With a sampled clock: the calling thread did something else for a while, so its next record
    /// reads the clock. Other clocks: no effect. Signal-safe; keeps the lane of an open record.
    void pause_ends() noexcept {
        if constexpr (time_source::shared) {
            if (has_cold_path()) words_.cold->pause_ends(words_);
        }
    }

    /// Closes the calling thread's sub-buffers, so that a reader finds them complete; one with a
    /// record still open stays. The thread's next record begins a new lane. Signal-safe.
    void flush_thread() noexcept {
        if (has_cold_path()) words_.cold->flush_thread(words_);
    }

    // What follows is defined in recorder/recorder.hpp.

    /// The file's name as it was expanded, a std::string_view; empty for memory.
    [[nodiscard]] auto path() const noexcept;
    /// The descriptor of the file or memory file; -1 for plain memory.
    [[nodiscard]] int descriptor() const noexcept;
    /// The mapped trace, as a reader takes it: a std::pair of address and bytes there are now.
    [[nodiscard]] auto bytes() const noexcept;
    /// What was counted so far, each count by itself while others record. Any thread, signal-safe;
    /// linear in the lanes that the trace remembers.
    [[nodiscard]] recorder_statistics statistics() const noexcept;

private:
    template <class>
    friend class basic_recorder;  // the kind with a lane for each processor is one of this, too
    template <class Recorder, recordable E>
    friend class open_scope;
    friend class drain_source;
    friend class runtime_event;
    friend class other_process;

    /// False: a file that does not trace has constructed it, or nothing has yet.
    [[nodiscard]] bool has_cold_path() const noexcept { return words_.cold != nullptr; }
    /// Begins a span: `span` receives which record that is.
    template <class E, class... Values>
    [[gnu::always_inline]] bool put_begin(impl::open_span& span, const Values&... values) noexcept {
        using write = impl::append_span<clock_policy, impl::ring_of<E>, impl::is_counted<E>(),
                                        impl::span_begin>;
        return E::given::convert(write{words_, impl::event_type<E>(), {span}}, values...);
    }
    /// The end of a span, with its results if it has any.
    template <class E, class... Results>
    [[gnu::always_inline]] bool put_end(impl::open_span& span, const Results&... values) noexcept {
        const impl::append_span<clock_policy, impl::ring_of<E>, false, impl::span_end> write{
            words_, impl::event_of<E>::state, {span}};
        if constexpr (sizeof...(Results) == 0) {
            return write();
        } else {
            return E::end::given::convert(write, values...);
        }
    }

    impl::recorder_words words_{};  // first: see gate_link
    [[maybe_unused]] std::byte room_for_gates_[sizeof(impl::gate_page)];
    /// What the destructor does; null: nothing, as a file that does not trace has constructed it.
    /// Such a file may also destroy a recorder of one that does (site/disabled.hpp).
    void (*retire_)(void* recorder) noexcept = nullptr;
};
static_assert(sizeof(recorder) == impl::recorder_bytes);

}  // namespace trace_ring::inline v1

#endif
