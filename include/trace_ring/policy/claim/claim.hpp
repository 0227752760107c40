// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The claim family: who advances the cursor of a ring, and how.
///
/// | expression           | result          | meaning                                             |
/// |----------------------|-----------------|-----------------------------------------------------|
/// | `C::family`          | `family::claim` |                                                     |
/// | `C::many_writers`    | `bool`          | constant: threads (processes) may claim at once     |
/// | `C::asks_first`      | `bool`          | constant: it asks `table.admits(p)` and heeds the   |
/// |                      |                 | answer before the cursor moves, so that it can be   |
/// |                      |                 | refused and can wait                                |
/// | `C::counts`          | `bool`          | constant: `line.cursor` holds 64-bit positions. If  |
/// |                      |                 | not, the ring has no live readers, only a look at   |
/// |                      |                 | the newest entries (`ring::newest`)                 |
/// | `C::take(l, t)`      | `ticket`        | a slot that is the caller's until it commits or     |
/// |                      |                 | discards it; false if there was none. Noexcept,     |
/// |                      |                 | takes no lock, signal-safe                          |
/// | `C::commit(l, k)`    |                 | the record of ticket `k` is complete                |
/// | `C::discard(l, k)`   |                 | ticket `k` comes to nothing                         |
/// | `C::prepare(l, t)`   |                 | optional: sets up a zero line, once, alone          |
///
/// `l` is the ring's `claim::line`, shared by all writers and all zero at first; `t` is the table,
/// of which a claim may ask:
///
/// | expression        | result          | meaning                                               |
/// |-------------------|-----------------|-------------------------------------------------------|
/// | `t.capacity()`    | `std::uint64_t` | slots there are                                       |
/// | `t.base()`        | `std::byte*`    | the first slot                                        |
/// | `t.stride()`      | `std::uint32_t` | bytes from one slot to the next                       |
/// | `t.index_of(p)`   | `std::uint64_t` | the slot that position `p` falls on                   |
/// | `t.admits(p)`     | `bool`          | there is room for position `p`; may wait or grow, as  |
/// |                   |                 | the full policy says; a refusal has been counted      |
/// | `t.hold(p)`       | `bool`          | position `p`'s slot is the caller's. False: someone   |
/// |                   |                 | else has it, `p` stays vacant, and was counted so     |
/// | `t.count(cause)`  |                 | one record lost, for a cause that the writer counts   |
///
/// The smallest valid model is the foreign one in test/policy: a cursor that is loaded and stored.
/// The concept is not weaker: without `asks_first` a ring could not tell which full policies fit.
/// It is not stronger: a claim need not count positions, as the historic ones do not.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/family.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::claim {

/// The words of a claim, two cache lines. Same offsets in every data model.
struct line {
    // What readers and all writers look at.
    shared_atomic<std::uint64_t> cursor;  ///< newest position claimed or, by one writer, committed
    shared_atomic<std::uint64_t> reserved[2];
    shared_atomic<std::uint64_t> own[5];  ///< for the claim's own use

    // What one writer alone stores at each step. Beside the cursor each of these stores would have
    // to get the line back from a consumer that waits for the next position.
    shared_atomic<std::uint32_t> open;  ///< single_writer: 1 while a record is open
    shared_atomic<std::uint32_t> reserved2;
    shared_atomic<std::uint64_t> touched;  ///< bare tables: newest position whose slot was opened
    shared_atomic<std::uint64_t> reserved3[6];
};
static_assert(sizeof(line) == 128 && alignof(line) == 8 && std::is_standard_layout_v<line>);
static_assert(offsetof(line, own) == 24 && offsetof(line, open) == 64 &&
              offsetof(line, touched) == 72);

/// A slot taken. `pos` is no_position where the claim does not count.
struct ticket {
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    std::uint64_t index = none;
    position pos = no_position;

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return index != none; }
};

/// What the concept is checked with; nowhere defined.
struct table_archetype {
    std::uint64_t capacity() const noexcept;
    std::byte* base() const noexcept;
    std::uint32_t stride() const noexcept;
    std::uint64_t index_of(position p) const noexcept;
    bool admits(position p) noexcept;
    bool hold(position p) noexcept;
    void count(loss_cause cause) noexcept;
};

template <class C>
concept policy = in_family<C, trace_ring::family::claim> &&
    requires(line& shared, table_archetype& table, const ticket& taken) {
    { C::many_writers } -> std::convertible_to<bool>;
    { C::asks_first } -> std::convertible_to<bool>;
    { C::counts } -> std::convertible_to<bool>;
    typename std::bool_constant<C::many_writers && C::asks_first && C::counts>;
    { C::take(shared, table) }
    noexcept->std::same_as<ticket>;
    { C::commit(shared, taken) }
    noexcept;
    { C::discard(shared, taken) }
    noexcept;
};

/// It has something to set up, so a ring with it is not ready before its constructor has run.
template <class C>
concept prepares = policy<C> && requires(line& shared, table_archetype& table) {
    { C::prepare(shared, table) }
    noexcept;
};

/// A claim that shares nothing between processors: the ring keeps a lane for each, and asks the
/// claim for no slots. claim::per_cpu is the one model.
template <class C>
concept by_cpu = in_family<C, trace_ring::family::claim> && requires {
    requires C::a_lane_each_cpu && C::many_writers && !C::asks_first && C::counts;
};

/// A claim gives up after so many laps of slots that are all held by others: only where more
/// writers are stopped in mid-record than there are slots.
inline constexpr std::uint64_t laps_before_refusal = 2;

}  // namespace trace_ring::inline v1::claim
