// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Bytes from operator new: for a ring of one process whose size is known only at run time.
/// @code
/// struct events : trace_ring::policies<trace_ring::storage::heap> {};
/// trace_ring::ring<events> ring(1 << 20);  // bytes
/// @endcode

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/setup_error.hpp>

namespace trace_ring::inline v1::storage {

/// Memory of the heap, of a size that is chosen at run time.
class heap {
public:
    using family = trace_ring::family::storage;

    /// `bytes` for records, zeroed, so that writers take no page faults. Throws std::bad_alloc.
    explicit heap(std::uint64_t bytes)
        : bytes_(allocate(control_bytes + bytes)), size_(control_bytes + bytes) {}

    [[nodiscard]] std::byte* data() noexcept { return bytes_.get(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] static constexpr bool fresh() noexcept { return true; }

private:
    struct free_aligned {
        void operator()(std::byte* bytes) const noexcept {
            ::operator delete (bytes, std::align_val_t{alignment});
        }
    };
    using owner = std::unique_ptr<std::byte, free_aligned>;

    [[nodiscard]] static owner allocate(std::uint64_t bytes) {
        const bool can_be = bytes <= SIZE_MAX / 2 && bytes >= control_bytes;
        const auto size = as_size(bytes);
        owner made(can_be ? static_cast<std::byte*>(
                                ::operator new (size, std::align_val_t{alignment}, std::nothrow))
                          : nullptr);
        if (made == nullptr) fail_memory("a ring's storage", bytes);
        std::memset(made.get(), 0, size);
        return made;
    }

    owner bytes_;
    std::uint64_t size_;
};
static_assert(policy<heap> && !fixed<heap> && !growable<heap>);

}  // namespace trace_ring::inline v1::storage
