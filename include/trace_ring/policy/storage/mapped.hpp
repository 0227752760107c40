// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Anonymous memory from the system: populated before it is used, in huge pages if the system has
/// them, and shared with the children of a fork. With a limit above its size it can grow.
/// @code
/// struct events : trace_ring::policies<trace_ring::storage::mapped> {};
/// trace_ring::ring<events> ring(1 << 20);  // bytes
/// @endcode

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::storage {

/// Anonymous memory that can grow up to a limit.
class mapped {
public:
    using family = trace_ring::family::storage;

    /// `bytes` for records. Throws setup_error.
    explicit mapped(std::uint64_t bytes)
        : bytes_(mapping::anonymous(with_control(bytes))),
          limit_(bytes_.size()),
          size_(bytes_.size()) {}

    /// `bytes` for records at first, `limit` at most. It takes address space for the limit now, and
    /// memory when it is needed. Throws setup_error.
    mapped(std::uint64_t bytes, std::uint64_t limit)
        : bytes_(mapping::reserve(with_control(limit > bytes ? limit : bytes))),
          limit_(bytes_.size()),
          size_(0) {
        if (!grow(with_control(bytes))) {
            fail_setup("anonymous memory", not_allocated(ENOMEM, bytes));
        }
    }

    [[nodiscard]] std::byte* data() noexcept { return bytes_.data(); }
    [[nodiscard]] std::uint64_t size() const noexcept {
        return size_.load(
            relaxed);  // relaxed: the bytes beyond are zero pages, nothing is published
    }
    [[nodiscard]] static constexpr bool fresh() noexcept { return true; }

    [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
    [[nodiscard]] bool grow(std::uint64_t bytes) noexcept {
        std::uint64_t now = size();
        if (bytes <= now) return true;
        if (bytes > limit_ || bytes_.populate(now, bytes - now) != 0) return false;
        while (now < bytes) {  // keep the largest size: each writer has populated all bytes of its
                               // size
            if (size_.compare_exchange_weak(now, bytes, relaxed)) break;  // relaxed: as in size()
        }
        return true;
    }

private:
    [[nodiscard]] static std::uint64_t with_control(std::uint64_t bytes) noexcept {
        return bytes > UINT64_MAX - control_bytes ? UINT64_MAX : control_bytes + bytes;
    }

    mapping bytes_;
    std::uint64_t limit_;
    atomic<std::uint64_t> size_;
};
static_assert(growable<mapped> && !shared<mapped>);

}  // namespace trace_ring::inline v1::storage
