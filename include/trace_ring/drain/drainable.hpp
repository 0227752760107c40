// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a draining session empties: the *drainable* concept. A session (session.hpp) names nothing
/// else, so that whatever models it is emptied by the same code, in place.
///
/// | expression      | result              | meaning                                              |
/// |-----------------|---------------------|------------------------------------------------------|
/// | `D::portion`    | a movable type      | what is handed over at once: a whole sub-buffer, or  |
/// |                 |                     | records that lie in a row. Default-constructible     |
/// | `p.bytes()`     | span of const bytes | where they lie, aligned to 8. Nobody writes there    |
/// |                 |                     | until the portion is given back, so plain loads do   |
/// | `p.records()`   | number              | records in it                                        |
/// | `p.lost()`      | `loss_counts`       | what is missing between the portion handed over      |
/// |                 |                     | before and this one, by cause                        |
/// | `d.attach()`    |                     | begins a session. Throws std::system_error, or what  |
/// |                 |                     | derives from it, if another is at work: EBUSY        |
/// | `d.detach()`    |                     | ends it: noexcept. What is still held is given back  |
/// |                 |                     | unread. Of an owner that is dead, `attach`, or the   |
/// |                 |                     | writers, do the same                                 |
/// | `d.take(p)`     | `bool`              | hands over the next one. False: there is none now,   |
/// |                 |                     | or so many are held that the writers need the rest   |
/// | `d.consume(p)`  |                     | gives it back, its room to be used again: noexcept   |
/// | `d.keep(p)`     |                     | gives it back as it was: noexcept. This session does |
/// |                 |                     | not get it again                                     |
/// | `d.visit(p, f)` | number              | calls `f(record)` for each record, oldest first; how |
/// |                 |                     | many there were, fewer than `p.records()` if the     |
/// |                 |                     | rest makes no sense                                  |
/// | `d.rest()`      | `loss_counts`       | what was lost and stands before no portion, as far   |
/// |                 |                     | as that can be told now; told once                   |
///
/// `d` is used by one thread at a time. Portions come in the order of their positions within each
/// writer's sequence, and across writers as far as they were completed in that order.
///
/// Refinements:
///
/// | expression         | result  | meaning                                                       |
/// |--------------------|---------|---------------------------------------------------------------|
/// | `d.take_open(p)`   | `bool`  | *drainable_while_open*: after `take` was false: what is       |
/// |                    |         | complete in the next portion that is still being filled, as a |
/// |                    |         | copy, each record once. To be given back as any other         |
/// | `d.stop()`         | `saved` | *stoppable*: writers write no more when it returns            |
/// | `d.restore(saved)` |         | *stoppable*: exactly what was set before: noexcept            |
/// | `d.causes()`       | a value | *tells_causes*: why the reader was called, all of it,         |
/// |                    |         | forgotten with that                                           |
/// | `d.rearm()`        |         | *rearmable*: the reader is to be called again: noexcept. If   |
/// |                    |         | it returns a bool, false: there is something to take first    |
///
/// The smallest valid model is the one in test/drain: an array, and two numbers. The concept is not
/// weaker: without `keep` a look would cost what was looked at; without `rest` the last loss would
/// never be told. It is not stronger: who is stopped how, and why a reader is called, differ.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <trace_ring/loss.hpp>

namespace trace_ring::inline v1::drain {

template <class P>
concept handed_over = std::default_initializable<P> && std::movable<P> && requires(const P& p) {
    { p.bytes() } -> std::convertible_to<std::span<const std::byte>>;
    { p.records() } -> std::convertible_to<std::uint64_t>;
    { p.lost() } -> std::convertible_to<loss_counts>;
};

namespace impl {
/// Takes a record of any type: what `visit` is checked with.
struct any_visitor {
    void operator()(const auto&) const noexcept {}
};
}  // namespace impl

template <class D>
concept drainable = handed_over<typename D::portion> &&
    requires(D& d, typename D::portion& p, const typename D::portion& held) {
    d.attach();
    { d.detach() }
    noexcept;
    { d.take(p) } -> std::same_as<bool>;
    { d.consume(p) }
    noexcept;
    { d.keep(p) }
    noexcept;
    { d.visit(held, impl::any_visitor{}) } -> std::convertible_to<std::uint64_t>;
    { d.rest() } -> std::convertible_to<loss_counts>;
};

template <class D>
concept drainable_while_open = drainable<D> && requires(D& d, typename D::portion& p) {
    { d.take_open(p) } -> std::same_as<bool>;
};

template <class D>
concept stoppable = drainable<D> && requires(D& d, decltype(d.stop()) saved) {
    { d.restore(std::move(saved)) }
    noexcept;
};

template <class D>
concept tells_causes = drainable<D> && requires(D& d) {
    { d.causes() } -> std::movable;
};

template <class D>
concept rearmable = drainable<D> && requires(D& d) {
    { d.rearm() }
    noexcept;
};

/// What is no drainable itself may name one: `drainable_of(what)`, found beside its type, returns
/// an object that models the concept, and is empty of any session.
template <class T>
concept leads_to_drainable = !drainable<T> && requires(T & what) {
    { drainable_of(what) } -> drainable;
};

}  // namespace trace_ring::inline v1::drain
