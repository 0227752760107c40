// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A record of variable length, claimed and not yet committed. Its bytes are stored in place as
/// shared words, because a reader may still be copying the old bytes.
/// @code
/// if (auto slot = ring.try_reserve(bytes, id)) {
///     slot.store(0, from, bytes);
///     slot.commit();  // without it the record is discarded
/// }
/// @endcode

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>

namespace trace_ring::inline v1 {

/// Move-only; for the writer's thread only. False if there was no room, which the ring has counted.
/// If it is destroyed before commit(), the record is discarded and leaves no trace. Bytes that are
/// not stored keep their old values.
template <class Ring>
class [[nodiscard]] record_reservation {
public:
    constexpr record_reservation() noexcept = default;
    record_reservation(const record_reservation&) = delete;
    record_reservation& operator=(const record_reservation&) = delete;
    record_reservation(record_reservation&& other) noexcept
        : ring_(std::exchange(other.ring_, nullptr)),
          sub_(other.sub_),
          at_(other.at_),
          length_(other.length_),
          time_(other.time_),
          word_(other.word_) {}
    record_reservation& operator=(record_reservation&& other) noexcept {
        if (this != &other) {
            discard();
            ring_ = std::exchange(other.ring_, nullptr);
            sub_ = other.sub_;
            at_ = other.at_;
            length_ = other.length_;
            time_ = other.time_;
            word_ = other.word_;
        }
        return *this;
    }
    [[gnu::always_inline]] ~record_reservation() { discard(); }

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return ring_ != nullptr; }

    /// Bytes of payload: the requested number, rounded up to a multiple of 8.
    [[nodiscard]] constexpr std::size_t size() const noexcept {
        return length_ - record_header_bytes;
    }

    /// Stores `bytes` bytes at `offset` of the payload; they must lie within size().
    [[gnu::always_inline]] void store(std::size_t offset, const void* from,
                                      std::size_t bytes) noexcept {
        const auto* source = static_cast<const std::byte*>(from);
        // relaxed, all: published by the commit word
        while (bytes != 0 && offset % sizeof(word) != 0) {
            put_byte(offset++, *source++);
            --bytes;
        }
        for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
            word w;
            std::memcpy(&w, source, sizeof(word));
            word_at<word>(sub_, from_sub(offset)).store(w, relaxed);  // relaxed: as above
            offset += sizeof(word);
            source += sizeof(word);
        }
        while (bytes-- != 0) put_byte(offset++, *source++);
    }
    /// Stores one value at `offset`.
    template <class T>
    requires std::is_trivially_copyable_v<T>
    [[gnu::always_inline]] void put(std::size_t offset, const T& value) noexcept {
        store(offset, &value, sizeof(T));
    }

    /// Publishes the record and empties the reservation. False if it was empty.
    [[gnu::always_inline]] bool commit() noexcept { return settle(true); }
    /// Discards the record and empties the reservation.
    [[gnu::always_inline]] void discard() noexcept { settle(false); }

private:
    friend Ring;
    using word = std::conditional_t<sizeof(void*) == 8, std::uint64_t, std::uint32_t>;

    [[gnu::always_inline]] record_reservation(Ring& ring, sub_buffer_header& sub, std::uint32_t at,
                                              std::uint32_t length, std::uint32_t time,
                                              std::uint32_t header) noexcept
        : ring_(&ring), sub_(&sub), at_(at), length_(length), time_(time), word_(header) {}

    /// Byte `offset` of the payload, from the sub-buffer's beginning.
    [[nodiscard]] std::size_t from_sub(std::size_t offset) const noexcept {
        return at_ + record_header_bytes + offset;
    }
    void put_byte(std::size_t offset, std::byte value) noexcept {
        // relaxed: as in store
        word_at<std::uint8_t>(sub_, from_sub(offset))
            .store(static_cast<std::uint8_t>(value), relaxed);
    }
    [[gnu::always_inline]] bool settle(bool publish) noexcept {
        if (ring_ == nullptr) return false;
        std::exchange(ring_, nullptr)->settle(*sub_, at_, length_, time_, word_, publish);
        return true;
    }

    Ring* ring_ = nullptr;
    sub_buffer_header* sub_ = nullptr;
    std::uint32_t at_ = 0;
    std::uint32_t length_ = record_header_bytes;
    std::uint32_t time_ = 0;
    std::uint32_t word_ = 0;
};

}  // namespace trace_ring::inline v1
