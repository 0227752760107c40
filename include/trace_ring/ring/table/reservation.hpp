// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A slot of a table, claimed and not yet committed: fill it, then commit it.
/// @code
/// if (auto slot = ring.try_reserve()) {
///     *slot = {device, program};
///     slot.commit();  // without it the record is discarded
/// }
/// @endcode
/// In a bare table it is the slot itself, filled in place. In a sequenced one it is a separate
/// object, whose bytes are stored as words by commit(): so no plain store races with a reader's
/// load. The price is one copy, which compilers keep in registers for records filled in one step.

#include <type_traits>
#include <utility>

#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/position.hpp>

namespace trace_ring::inline v1 {

/// Move-only; owned by one thread. False if the gate is closed, or if the ring refused the record,
/// which it has counted. If it is destroyed before commit(), the record is discarded. Must not
/// outlive the ring.
template <class Ring>
class [[nodiscard]] reservation {
public:
    using element = typename Ring::element;

    constexpr reservation() noexcept = default;
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    reservation(reservation&& other) noexcept
        : ring_(std::exchange(other.ring_, nullptr)),
          taken_(other.taken_),
          staged_(other.staged_) {}
    reservation& operator=(reservation&& other) noexcept {
        if (this != &other) {
            discard();
            ring_ = std::exchange(other.ring_, nullptr);
            taken_ = other.taken_;
            staged_ = other.staged_;
        }
        return *this;
    }
    [[gnu::always_inline]] ~reservation() { discard(); }

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return ring_ != nullptr; }

    /// The record to be filled. In a bare table it still holds the record that it overwrites.
    [[nodiscard, gnu::always_inline]] element& operator*() noexcept {
        if constexpr (Ring::in_place) {
            return *static_cast<element*>(static_cast<void*>(ring_->slot_at(taken_.index)));
        } else {
            return staged_;
        }
    }
    [[nodiscard, gnu::always_inline]] element* operator->() noexcept { return &**this; }

    /// The record's position; no_position where the claim does not count.
    [[nodiscard]] constexpr position at() const noexcept { return taken_.pos; }

    /// Publishes the record and empties the reservation. False if it was empty, or if the writer
    /// took so long that others claimed the slot for a later position: the record is lost, and
    /// counted.
    [[gnu::always_inline]] bool commit() noexcept {
        if (ring_ == nullptr) return false;
        return std::exchange(ring_, nullptr)->settle(taken_, staged_, true);
    }
    /// Discards the record: with many writers its position stays vacant.
    [[gnu::always_inline]] void discard() noexcept {
        if (ring_ != nullptr)
            static_cast<void>(std::exchange(ring_, nullptr)->settle(taken_, staged_, false));
    }

private:
    friend Ring;
    struct nothing {};
    using staging = std::conditional_t<Ring::in_place, nothing, element>;

    [[gnu::always_inline]] reservation(Ring& ring, const claim::ticket& taken) noexcept
        : ring_(&ring), taken_(taken) {}

    Ring* ring_ = nullptr;
    claim::ticket taken_{};
    [[no_unique_address]] staging staged_{};
};

/// The always empty reservation, where tracing is compiled away.
template <class Element>
class [[nodiscard]] no_reservation {
public:
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return false; }
    [[nodiscard]] Element& operator*() noexcept { __builtin_unreachable(); }
    [[nodiscard]] Element* operator->() noexcept { __builtin_unreachable(); }
    [[nodiscard]] constexpr position at() const noexcept { return no_position; }
    constexpr bool commit() noexcept { return false; }
    constexpr void discard() noexcept {}
};

}  // namespace trace_ring::inline v1
