// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The full family: what happens where the next record would take the place of one that has not
/// been consumed, or lies beyond the bytes there are.
///
/// | expression        | result         | meaning                                                |
/// |-------------------|----------------|--------------------------------------------------------|
/// | `F::family`       | `family::full` |                                                        |
/// | `F::overwrites`   | `bool`         | constant: there is always room, the oldest goes;       |
/// |                   |                | `when_full` is called for want of bytes alone          |
/// | `F::waits`        | `bool`         | constant: `when_full` may sleep                        |
/// | `F::grows`        | `bool`         | constant: `when_full` asks the storage for more bytes  |
/// | `F::stops`        | `bool`         | constant: it may answer `stop`                         |
/// | `F::when_full(r)` | `full::answer` | asked again after each `retry`, with the same `r`;     |
/// |                   |                | noexcept. Signal-safe unless it waits                  |
///
/// `r` is the `full::room`:
///
/// | expression      | result | meaning                                                         |
/// |-----------------|--------|-----------------------------------------------------------------|
/// | `r.grow(bytes)` | `bool` | the storage has grown by so much, now or by another writer      |
/// | `r.attempt`     | number | how often this record has been answered `retry`                 |
/// | `r.memory`      | number | the policy's own, between attempts; 0 at first                  |
///
/// The smallest valid model is full::discard_newest. The concept is not weaker: without its
/// constants a ring could not refuse a claim or a storage that does not fit.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <trace_ring/family.hpp>

namespace trace_ring::inline v1::full {

/// What a full policy decides about one record.
enum class answer : std::uint8_t {
    retry,      ///< look again: there may be room now
    overwrite,  ///< take the oldest one's place
    refuse,     ///< lose this record, count it
    stop,       ///< lose this one and all later ones, until ring::restart()
};

/// The view of a ring that a full policy has.
class room {
public:
    /// `how(context, bytes)` makes the storage larger.
    constexpr room(bool (*how)(void*, std::uint64_t) noexcept, void* context) noexcept
        : how_(how), context_(context) {}

    [[nodiscard]] bool grow(std::uint64_t bytes) const noexcept { return how_(context_, bytes); }

    std::uint64_t attempt = 0;
    std::uint64_t memory = 0;

private:
    bool (*how_)(void*, std::uint64_t) noexcept;
    void* context_;
};

template <class F>
concept policy = in_family<F, trace_ring::family::full> && requires(room& r) {
    { F::overwrites } -> std::convertible_to<bool>;
    { F::waits } -> std::convertible_to<bool>;
    { F::grows } -> std::convertible_to<bool>;
    { F::stops } -> std::convertible_to<bool>;
    typename std::bool_constant<F::overwrites && F::waits && F::grows && F::stops>;
    { F::when_full(r) }
    noexcept->std::same_as<answer>;
};

}  // namespace trace_ring::inline v1::full
