// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Reads the numbers of .eh_frame: fixed ones, variable-length ones, and encoded pointers.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heap::impl {

/// Reads arbitrary bytes in memory, never past `end`.
class eh_reader {
public:
    constexpr eh_reader(const std::uint8_t* at, const std::uint8_t* end) noexcept
        : at_(at), end_(end) {}

    template <class T>
    [[nodiscard]] T take() noexcept {
        T value{};
        if (static_cast<std::size_t>(end_ - at_) < sizeof value) {
            fail();
        } else {
            std::memcpy(&value, at_, sizeof value);
            at_ += sizeof value;
        }
        return value;
    }
    [[nodiscard]] std::uint64_t uleb() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = take<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
            if ((byte & 0x80U) == 0) return value;
        }
    }
    [[nodiscard]] std::int64_t sleb() noexcept {
        std::uint64_t value = 0;
        unsigned shift = 0;
        for (;;) {
            const auto byte = take<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
            shift += 7;
            if ((byte & 0x80U) == 0) {
                if (shift < 64 && (byte & 0x40U) != 0) value |= ~std::uint64_t{0} << shift;
                return static_cast<std::int64_t>(value);
            }
        }
    }
    /// A number in one of the pointer encodings, before its base is added.
    [[nodiscard]] std::uint64_t encoded(std::uint8_t encoding) noexcept {
        switch (encoding & 0x0FU) {
            case 0x00:
                return take<std::uintptr_t>();
            case 0x01:
                return uleb();
            case 0x02:
                return take<std::uint16_t>();
            case 0x03:
                return take<std::uint32_t>();
            case 0x04:
                return take<std::uint64_t>();
            case 0x09:
                return static_cast<std::uint64_t>(sleb());
            case 0x0A:
                return static_cast<std::uint64_t>(take<std::int16_t>());
            case 0x0B:
                return static_cast<std::uint64_t>(take<std::int32_t>());
            case 0x0C:
                return take<std::uint64_t>();
            default:
                fail();
                return 0;
        }
    }
    void skip(std::uint64_t bytes) noexcept {
        if (bytes > static_cast<std::size_t>(end_ - at_)) {
            fail();
        } else {
            at_ += bytes;
        }
    }
    /// The next `bytes` as a separate reader.
    [[nodiscard]] eh_reader part(std::uint64_t bytes) noexcept {
        const std::uint8_t* const from = at_;
        skip(bytes);
        return {from, at_};
    }
    [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }
    [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    void fail() noexcept {
        failed_ = true;
        at_ = end_;
    }

private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
    bool failed_ = false;
};

}  // namespace heap::impl
