// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A record that is filled beside the ring and committed as one restartable sequence. It is not
/// filled in place, because another thread of the processor may write a record meanwhile. So its
/// time is that of its commit, any number may be open, and one left by longjmp leaves no trace.
/// @code
/// if (auto slot = ring.try_reserve<64>(bytes, id)) {  // at most 64 bytes of payload
///     slot.store(0, from, bytes);
///     slot.commit();  // false: refused, and counted
/// }
/// @endcode

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <trace_ring/format/sub_buffer.hpp>

namespace trace_ring::inline v1 {

/// Room for `Most` bytes of payload; neither copied nor moved. False if the gate was closed, or if
/// the record is too long, which the ring has counted. Bytes that are not stored are undefined.
template <class Ring, std::size_t Most>
class [[nodiscard]] staged_reservation {
public:
    constexpr staged_reservation() noexcept = default;
    staged_reservation(const staged_reservation&) = delete;
    staged_reservation& operator=(const staged_reservation&) = delete;

    [[nodiscard]] explicit operator bool() const noexcept { return ring_ != nullptr; }

    /// Bytes of payload: the number asked for, rounded up to a multiple of 8.
    [[nodiscard]] std::size_t size() const noexcept { return count_ * sizeof(std::uint64_t); }

    /// Stores `bytes` bytes at `offset` of the payload; they must lie within size().
    void store(std::size_t offset, const void* from, std::size_t bytes) noexcept {
        std::memcpy(reinterpret_cast<std::byte*>(words_) + offset, from, bytes);
    }
    /// Stores one value at `offset`.
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void put(std::size_t offset, const T& value) noexcept { store(offset, &value, sizeof(T)); }

    /// Publishes the record and empties the reservation. False if it was empty, or if the ring
    /// refused the record, which it has counted.
    bool commit() noexcept {
        return ring_ != nullptr &&
               std::exchange(ring_, nullptr)->write_words(header_, words_, count_);
    }
    /// Empties the reservation; nothing is recorded.
    void discard() noexcept { ring_ = nullptr; }

private:
    friend Ring;
    staged_reservation(Ring& ring, std::uint32_t header, std::size_t bytes) noexcept
        : ring_(&ring), header_(header), count_(static_cast<std::uint32_t>((bytes + 7) / 8)) {
        if (count_ != 0) words_[count_ - 1] = 0;  // the last word may be filled only in part
    }

    Ring* ring_ = nullptr;
    std::uint32_t header_ = 0;
    std::uint32_t count_ = 0;
    std::uint64_t words_[(Most + 7) / 8 + (Most == 0 ? 1 : 0)];
};

}  // namespace trace_ring::inline v1
