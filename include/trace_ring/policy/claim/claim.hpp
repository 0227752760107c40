// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The claim family: how writers advance the cursor of a ring.
///
/// | expression           | result          | meaning                                             |
/// |----------------------|-----------------|-----------------------------------------------------|
/// | `C::family`          | `family::claim` |                                                     |
/// | `C::many_writers`    | `bool`          | constant: threads (processes) may claim concurrently|
/// | `C::asks_first`      | `bool`          | constant: it calls `table.admits(p)` before the     |
/// |                      |                 | cursor moves, so that it can refuse and wait        |
/// | `C::counts`          | `bool`          | constant: `line.cursor` holds 64-bit positions. If  |
/// |                      |                 | not, the ring has no live readers, only access to   |
/// |                      |                 | the newest entry (`ring::newest`)                   |
/// | `C::take(l, t)`      | `ticket`        | a slot that is the caller's until it commits or     |
/// |                      |                 | discards it; false if there was none. Noexcept,     |
/// |                      |                 | takes no lock, signal-safe                          |
/// | `C::commit(l, k)`    |                 | the record of ticket `k` is complete                |
/// | `C::discard(l, k)`   |                 | ticket `k` gets no record                           |
/// | `C::prepare(l, t)`   |                 | optional: sets up a zero line, once, before others  |
/// |                      |                 | use it                                              |
///
/// `l` is the ring's `claim::line`, shared by all writers and all zero at first; `t` is the table,
/// which a claim may ask:
///
/// | expression        | result          | meaning                                               |
/// |-------------------|-----------------|-------------------------------------------------------|
/// | `t.capacity()`    | `std::uint64_t` | number of slots                                       |
/// | `t.base()`        | `std::byte*`    | the first slot                                        |
/// | `t.stride()`      | `std::uint32_t` | bytes from one slot to the next                       |
/// | `t.index_of(p)`   | `std::uint64_t` | the slot of position `p`                              |
/// | `t.admits(p)`     | `bool`          | there is room for position `p`; may wait or grow, as  |
/// |                   |                 | the full policy says; a refusal has been counted      |
/// | `t.hold(p)`       | `bool`          | the slot of position `p` is the caller's. False:      |
/// |                   |                 | another writer has it; `p` was counted as vacant      |
/// | `t.count(cause)`  |                 | counts one lost record, for a cause of the writer's   |
///
/// The smallest valid model is the foreign one in test/policy: a cursor that is loaded and stored.
/// The concept is not weaker: without `asks_first` a ring could not determine which full policies
/// fit. It is not stronger: a claim need not count positions; the historic ones do not.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policies.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1::claim {

/// The words of a claim, two cache lines. Same offsets in every data model.
struct line {
    // Loaded by readers and all writers.
    shared_atomic<std::uint64_t> cursor;  ///< newest position claimed or, by one writer, committed
    shared_atomic<std::uint64_t> reserved[2];  ///< zero
    shared_atomic<std::uint64_t> own[5];       ///< for the claim's own use

    // Stored by a single writer at each step. In the cursor's line each store would have to get the
    // line back from a consumer that waits for the next position.
    shared_atomic<std::uint32_t> open;       ///< single_writer: 1 while a record is open
    shared_atomic<std::uint32_t> reserved2;  ///< zero
    shared_atomic<std::uint64_t> touched;    ///< bare tables: newest position whose slot was opened
    shared_atomic<std::uint64_t> reserved3[6];  ///< zero
};
static_assert(sizeof(line) == 128 && alignof(line) == 8 && std::is_standard_layout_v<line>);
static_assert(offsetof(line, own) == 24 && offsetof(line, open) == 64 &&
              offsetof(line, touched) == 72);

/// A claimed slot. `pos` is no_position if the claim does not count positions.
struct ticket {
    static constexpr std::uint64_t none = ~std::uint64_t{0};  ///< no slot was claimed

    std::uint64_t index = none;  ///< number of the slot
    position pos = no_position;  ///< position of the record

    /// Whether a slot was claimed.
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return index != none; }
};

/// A table to check the concept with; declared only.
struct table_archetype {
    std::uint64_t capacity() const noexcept;            ///< number of slots
    std::byte* base() const noexcept;                   ///< the first slot
    std::uint32_t stride() const noexcept;              ///< bytes from one slot to the next
    std::uint64_t index_of(position p) const noexcept;  ///< the slot of a position
    bool admits(position p) noexcept;  ///< whether the full policy permits this position
    /// Takes the slot for this position; false if it cannot be had.
    bool hold(position p) noexcept;
    void count(loss_cause cause) noexcept;  ///< counts a loss
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

/// A claim that has something to set up, so a ring with it is not ready before its constructor ran.
template <class C>
concept prepares = policy<C> && requires(line& shared, table_archetype& table) {
    { C::prepare(shared, table) }
    noexcept;
};

/// A claim gives up after this many laps of slots that are all held by others. That happens only if
/// more writers are stopped within a record than there are slots.
inline constexpr std::uint64_t laps_before_refusal = 2;

}  // namespace trace_ring::inline v1::claim
