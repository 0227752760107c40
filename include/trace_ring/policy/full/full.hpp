// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The full family: what a ring does with a record whose slot still holds an unconsumed one, or
/// would lie behind the end of the storage.
///
/// | expression        | result         | meaning                                                |
/// |-------------------|----------------|--------------------------------------------------------|
/// | `F::family`       | `family::full` |                                                        |
/// | `F::overwrites`   | `bool`         | constant: there is always room, by overwriting the     |
/// |                   |                | oldest; `when_full` is called only to get more bytes   |
/// | `F::waits`        | `bool`         | constant: `when_full` may sleep                        |
/// | `F::grows`        | `bool`         | constant: `when_full` asks the storage for more bytes  |
/// | `F::stops`        | `bool`         | constant: it may answer `stop`                         |
/// | `F::when_full(r)` | `full::answer` | called again after each `retry`, with the same `r`;    |
/// |                   |                | noexcept. Signal-safe unless it waits                  |
///
/// `r` is the `full::room`:
///
/// | expression      | result | meaning                                                         |
/// |-----------------|--------|-----------------------------------------------------------------|
/// | `r.grow(bytes)` | `bool` | the storage has grown by `bytes`, now or by another writer      |
/// | `r.attempt`     | number | how many `retry` answers this record has had                    |
/// | `r.memory`      | number | for the policy, kept between attempts; 0 at first               |
///
/// The smallest valid model is full::discard_newest. The concept is not weaker: without its
/// constants a ring could not refuse a claim or a storage that does not fit.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::full {

/// A full policy's decision about one record.
enum class answer : std::uint8_t {
    retry,      ///< check again: there may be room now
    overwrite,  ///< overwrite the oldest record
    refuse,     ///< lose this record, and count it
    stop,       ///< lose this one and all later ones, until ring::restart()
};

/// A ring as a full policy sees it.
class room {
public:
    /// `how(context, bytes)` makes the storage larger.
    constexpr room(bool (*how)(void*, std::uint64_t) noexcept, void* context) noexcept
        : how_(how), context_(context) {}

    /// Makes the storage larger, to at least `bytes`; false if that is not possible.
    [[nodiscard]] bool grow(std::uint64_t bytes) const noexcept { return how_(context_, bytes); }

    std::uint64_t attempt = 0;  ///< for the policy's own use: the attempt that is under way
    std::uint64_t memory = 0;   ///< for the policy's own use, kept between attempts

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
