// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Draining sessions: they empty a drainable in place, whole portions at a time, and report the
/// losses between them. A drainable has one session at a time, which ends with its scope.
/// @code
///   trace_ring::drain::session session(recorder);  // a recorder, a ring of sub-buffers, a store
///   session.for_each([](const auto& portion) { send(portion.bytes(), portion.lost()); });
///   session.for_each_record([](const auto& record) { add(record.time, record.payload); });
/// @endcode
/// Its type is named after what it drains: `session<recorder>`, `session<ring<io_trace>>`, or
/// `session<io_trace>` for a ring by the name of its policies. A type that cannot be drained, such
/// as a ring that overwrites, is rejected by a one-sentence error that says what to write
/// (not_drainable.hpp).
///
/// A visitor's exception passes through: the portion that it was given is given back as it was.
///
/// `service` is the service routine of an interrupt, as the debug store defines it, for anything
/// that can be stopped: stop, find the causes, read everything, give it back, re-arm, restore
/// exactly what was set.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/not_drainable.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::drain {

/// Refuses to compile: `Source` cannot be drained.
template <class Source>
class session : public impl::not_drainable<Source> {
    using impl::not_drainable<Source>::not_drainable;
};

/// `Source` is a drainable, or a reference to one. Neither copied nor moved; used by one thread at
/// a time. Must not outlive what it drains.
template <class Source>
requires drainable<std::remove_reference_t<Source>>
class session<Source> {
public:
    using drained = std::remove_reference_t<Source>;  ///< what is drained
    using portion = typename drained::portion;        ///< a part that the source hands over whole

    /// Begins a session. Throws std::system_error (or what derives from it) if another session is
    /// at work, with EBUSY, or if a right is missing. What a dead owner held can be drained again.
    template <class From>
    requires std::constructible_from<Source, From&>
    explicit session(From& from) : source_(from) { source_.attach(); }
    /// The same, of an object that leads to what is drained, such as a recorder.
    template <class From>
    requires(leads_to_drainable<From> &&
             !std::constructible_from<Source, From&>) explicit session(From& from)
        : source_(drainable_of(from)) {
        source_.attach();
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    /// Ends the session; what it still holds is given back unread.
    ~session() { source_.detach(); }

    /// A held portion, until it is consumed or kept; its destructor keeps it.
    class held {
    public:
        /// The other one holds nothing afterwards.
        held(held&& other) noexcept
            : from_(std::exchange(other.from_, nullptr)), what_(std::move(other.what_)) {}
        /// Keeps what it held before.
        held& operator=(held&& other) noexcept {
            if (this != &other) {
                keep();
                from_ = std::exchange(other.from_, nullptr);
                what_ = std::move(other.what_);
            }
            return *this;
        }
        ~held() { keep(); }

        /// Not if it was consumed or kept.
        [[nodiscard]] const portion& operator*() const noexcept { return what_; }
        /// Not if it was consumed or kept.
        [[nodiscard]] const portion* operator->() const noexcept { return &what_; }

        /// Gives it back: its room may be used again.
        void consume() noexcept {
            if (from_ == nullptr) return;
            std::exchange(from_, nullptr)->source_.consume(what_);
        }
        /// Gives it back as it was, for others to read; this session does not get it again.
        void keep() noexcept {
            if (from_ == nullptr) return;
            std::exchange(from_, nullptr)->source_.keep(what_);
        }

    private:
        friend session;
        explicit held(session& from) noexcept : from_(&from) {}

        session* from_;
        portion what_{};
    };

    /// The next portion, not to outlive the session; empty if there is none or too many are held.
    [[nodiscard]] std::optional<held> take() {
        std::optional<held> out(held(*this));
        if (!source_.take(out->what_)) {
            out->from_ = nullptr;
            out.reset();
        } else {
            count(out->what_);
        }
        return out;
    }

    /// Hands over everything that is complete, one portion after the other: `visit(const
    /// portion&)`, in place. Each is consumed when the visitor returns. Returns how many there
    /// were; 0: nothing now.
    template <class Visit>
    std::uint64_t for_each(Visit&& visit) {
        return all(
            visit, [](drained& from, portion& p) { return from.take(p); }, false);
    }
    /// The same without consuming: other sessions see the records again, this one does not. What
    /// is added later, by a thread that continues where another ended, comes with a later call.
    template <class Visit>
    std::uint64_t peek_each(Visit&& visit) {
        return all(
            visit, [](drained& from, portion& p) { return from.take(p); }, true);
    }
    /// Visits each record that is complete, and consumes it. Returns how many there were.
    template <class Visit>
    std::uint64_t for_each_record(Visit&& visit) {
        std::uint64_t sum = 0;
        for_each([&](const portion& p) { sum += visit_one(p, visit); });
        return sum;
    }

    /// Hands over everything, to the last record: first what is complete, in place; then what is
    /// complete of the portions that are still being filled, as copies; then the losses that
    /// precede no portion. With the writers stopped or gone, nothing is left.
    template <class Visit>
    std::uint64_t finish(Visit&& visit) {
        std::uint64_t sum = for_each(visit);
        if constexpr (drainable_while_open<drained>) {
            sum += all(
                visit, [](drained& from, portion& p) { return from.take_open(p); }, false);
        }
        lost_ += source_.rest();
        return sum;
    }
    /// As `finish`, record by record: calls `visit` with a drained_record. Returns their number.
    template <class Visit>
    std::uint64_t finish_records(Visit&& visit) {
        std::uint64_t sum = 0;
        finish([&](const portion& p) { sum += visit_one(p, visit); });
        return sum;
    }

    /// The service routine: calls `visit` as `finish` does and, if the drainable has causes,
    /// `why(causes)` before it. The gap is the time in which the writers were stopped; records that
    /// they would have written in it cannot be counted. Writers are restored also if a visitor
    /// throws.
    template <class Visit, class Why>
    requires stoppable<drained> std::uint64_t service(Visit&& visit, Why&& why) {
        struct stopped {
            drained& from;
            decltype(std::declval<drained&>().stop()) saved;
            ~stopped() {
                if constexpr (rearmable<drained>) static_cast<void>(from.rearm());
                from.restore(std::move(saved));
            }
        };
        stopped now{source_, source_.stop()};
        if constexpr (tells_causes<drained>) {
            why(source_.causes());
        } else {
            static_cast<void>(why);
        }
        return finish(visit);
    }
    /// The same, without the causes.
    template <class Visit>
    requires stoppable<drained> std::uint64_t service(Visit&& visit) {
        return service(visit, [](const auto&) {});
    }

    /// Records handed over so far.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
    /// Records lost so far, by cause. `finish` adds the last ones.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }
    /// How to avoid the newest loss, as the drainable knows it: for a debug store, the size or the
    /// threshold of the buffer, or the time between two services, that is enough.
    [[nodiscard]] decltype(auto) advice() const noexcept requires advises<drained> {
        return std::as_const(source_).advice();
    }
    /// The drainable.
    [[nodiscard]] drained& source() noexcept { return source_; }

private:
    /// Gives a portion back, also after an exception.
    struct giver {
        drained& from;
        portion& what;
        bool keeps = true;
        ~giver() { keeps ? from.keep(what) : from.consume(what); }
    };

    template <class Visit, class Next>
    std::uint64_t all(Visit& visit, Next next, bool peeks) {
        std::uint64_t number = 0;
        for (portion p{}; next(source_, p); ++number) {
            giver back{source_, p};
            count(p);
            visit(static_cast<const portion&>(p));
            back.keeps = peeks;
        }
        return number;
    }
    template <class Visit>
    std::uint64_t visit_one(const portion& p, Visit& visit) {
        const std::uint64_t there = source_.visit(p, visit);
        if (there < p.records()) {
            lost_.add(loss_cause::damaged, p.records() - there);
            records_ -= p.records() - there;
        }
        return there;
    }
    void count(const portion& p) noexcept {
        records_ += p.records();
        lost_ += p.lost();
    }

    Source source_;
    std::uint64_t records_ = 0;
    loss_counts lost_{};
};

namespace impl {
/// What `drainable_of` returns for a T.
template <leads_to_drainable T>
using drainable_for = std::remove_cvref_t<decltype(drainable_of(std::declval<T&>()))>;
}  // namespace impl

/// A session that is named after a recorder or a ring, which lead to a drainable.
template <class Source>
requires leads_to_drainable<std::remove_reference_t<Source>>
class session<Source> : public session<impl::drainable_for<std::remove_reference_t<Source>>> {
    using base = session<impl::drainable_for<std::remove_reference_t<Source>>>;

public:
    using base::base;
};

/// A session of a ring by the name of its policies.
template <list_of_policies Kind>
requires(!drainable<Kind> && !leads_to_drainable<Kind> &&
         leads_to_drainable<ring<Kind>>) class session<Kind> : public session<ring<Kind>> {
    using base = session<ring<Kind>>;

public:
    using base::base;
};

template <drainable D>
session(D&) -> session<D&>;
template <leads_to_drainable T>
session(T&) -> session<impl::drainable_for<T>>;
// What cannot be drained.
template <class T>
session(T&) -> session<T&>;
template <class T>
requires(!std::is_lvalue_reference_v<T>) session(T&&)
->session<impl::temporary<T>>;
session()->session<impl::nothing>;

}  // namespace trace_ring::inline v1::drain

#endif
