// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The *drainable* concept: what a draining session can empty. A session (session.hpp) uses nothing
/// else, so the same code empties every model of it, in place.
///
/// | expression      | result              | meaning                                              |
/// |-----------------|---------------------|------------------------------------------------------|
/// | `D::portion`    | a movable type      | the unit of draining: a whole sub-buffer, or         |
/// |                 |                     | consecutive records. Default-constructible           |
/// | `p.bytes()`     | span of const bytes | the records' bytes, aligned to 8. They do not change |
/// |                 |                     | until the portion is given back, so plain loads do   |
/// | `p.records()`   | number              | how many records it has                              |
/// | `p.lost()`      | `loss_counts`       | records lost between the portion before and this     |
/// |                 |                     | one, by cause                                        |
/// | `d.attach()`    |                     | begins a session. Throws std::system_error, or a     |
/// |                 |                     | class derived from it, if another is at work: EBUSY  |
/// | `d.detach()`    |                     | ends it: noexcept. Portions still held are given     |
/// |                 |                     | back unread. For an owner that died, `attach` or the |
/// |                 |                     | writers do the same                                  |
/// | `d.take(p)`     | `bool`              | hands over the next portion. False: there is none    |
/// |                 |                     | now, or no more may be held because the writers need |
/// |                 |                     | the rest                                             |
/// | `d.consume(p)`  |                     | gives it back, its room to be used again: noexcept   |
/// | `d.keep(p)`     |                     | gives it back as it was: noexcept. This session does |
/// |                 |                     | not get its records again, but those that a writer   |
/// |                 |                     | adds to it later                                     |
/// | `d.visit(p, f)` | number              | calls `f(record)` for each record, oldest first.     |
/// |                 |                     | Returns how many there were: fewer than              |
/// |                 |                     | `p.records()` if the rest makes no sense             |
/// | `d.rest()`      | `loss_counts`       | losses that precede no portion, as far as they       |
/// |                 |                     | are known now; each is returned once                 |
///
/// `d` is used by one thread at a time. Portions come in the order of their positions within each
/// writer's sequence, and across writers as far as they were completed in that order.
///
/// Refinements:
///
/// | expression         | result  | meaning                                                       |
/// |--------------------|---------|---------------------------------------------------------------|
/// | `d.take_open(p)`   | `bool`  | *drainable_while_open*: after `take` returned false: the      |
/// |                    |         | complete records of the next portion that is still being      |
/// |                    |         | filled, as a copy, each record once. To be given back as any  |
/// |                    |         | other                                                         |
/// | `d.stop()`         | `saved` | *stoppable*: writers have stopped when it returns             |
/// | `d.restore(saved)` |         | *stoppable*: restores exactly what was set before: noexcept   |
/// | `d.causes()`       | a value | *tells_causes*: every cause for which the reader was called;  |
/// |                    |         | they are forgotten then                                       |
/// | `d.rearm()`        |         | *rearmable*: the reader is to be called again: noexcept. If   |
/// |                    |         | it returns a bool, false: there is something to take first    |
/// | `d.advice()`       | a value | *advises*: how to avoid the newest loss: const noexcept. As a |
/// |                    |         | bool it is false if there was no loss                         |
///
/// The smallest valid model is in test/drain: an array, and two numbers. Why it is not weaker:
/// without `keep` a look would consume what it looks at; without `rest` the last loss would never
/// be reported. Why it is not stronger: how writers are stopped, and why a reader is called,
/// differ.

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
/// Takes a record of any type: `visit` is checked with it.
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

template <class D>
concept advises = drainable<D> && requires(const D& d) {
    { static_cast<bool>(d.advice()) }
    noexcept;
};

/// A type that is not a drainable itself may lead to one: `drainable_of(what)`, found by
/// argument-dependent lookup, returns an object that models the concept and has no session.
template <class T>
concept leads_to_drainable = !drainable<T> && requires(T & what) {
    { drainable_of(what) } -> drainable;
};

}  // namespace trace_ring::inline v1::drain
