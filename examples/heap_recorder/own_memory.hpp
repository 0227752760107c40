// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Memory for the recorder itself. Its allocations, and those of the C library on its behalf,
/// never reach the program's allocator. So the heap has the same layout as without recording,
/// nothing recurses, and any code may free such a block, which is recognized by its address.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <trace_ring/atomic.hpp>

namespace heap {

/// Lock-free, because fork may copy it at any moment and a signal handler may enter it. Small
/// blocks come from a fixed pool and return to it. Larger ones, which only set-up requests, are
/// taken from the rest permanently. Zero-initialized, so it costs no memory until it is used.
class own_memory {
public:
    static constexpr std::size_t pool_block = 512;
    static constexpr std::size_t pool_count = 512;
    static constexpr std::size_t heap_bytes = std::size_t{1} << 20;

    constexpr own_memory() noexcept = default;

    /// `bytes` zeroed bytes aligned to `alignment` (a power of two), or null: no room left.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 16) noexcept {
        if (bytes <= pool_block && alignment <= pool_block) {
            if (void* block = from_pool(bytes)) return block;
        }
        if (alignment < 16) alignment = 16;
        if (bytes > heap_bytes || alignment > heap_bytes) return nullptr;
        // The size is stored in the 16 bytes before the block.
        const std::size_t need = bytes + alignment + 16;
        // relaxed: the sum alone decides who has which bytes
        const std::size_t at = used_.fetch_add(need, trace_ring::relaxed);
        if (at > heap_bytes || heap_bytes - at < need) return nullptr;
        const auto start = reinterpret_cast<std::uintptr_t>(heap_ + at + 16);
        auto* block = reinterpret_cast<std::byte*>((start + alignment - 1) & ~(alignment - 1));
        std::memcpy(block - sizeof(std::size_t), &bytes, sizeof bytes);
        return block;
    }

    [[nodiscard]] bool contains(const void* block) const noexcept {
        const auto offset =
            reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(this);
        return offset < sizeof *this;
    }

    /// Returns whether `block` is one of these; null is not.
    void release(void* block) noexcept {
        const std::size_t i = pool_index(block);
        if (i >= pool_count) return;
        // release: all uses of the block come before its next owner's use
        taken_[i / 64].fetch_and(~(std::uint64_t{1} << (i % 64)), trace_ring::release);
    }

    [[nodiscard]] void* resize(void* block, std::size_t bytes) noexcept {
        const std::size_t had = size_of(block);
        if (bytes <= had) return block;
        void* moved = allocate(bytes);
        if (moved != nullptr) {
            std::memcpy(moved, block, had);
            release(block);
        }
        return moved;
    }

private:
    [[nodiscard]] void* from_pool(std::size_t bytes) noexcept {
        for (std::size_t w = 0; w < pool_count / 64; ++w) {
            // relaxed: only a hint, the swap below decides
            std::uint64_t word = taken_[w].load(trace_ring::relaxed);
            while (~word != 0) {
                const auto bit = static_cast<unsigned>(__builtin_ctzll(~word));
                // acquire: the former owner has finished with the block
                if (taken_[w].compare_exchange_weak(word, word | std::uint64_t{1} << bit,
                                                    trace_ring::acquire, trace_ring::relaxed)) {
                    return std::memset(pool_[w * 64 + bit], 0, bytes);
                }
            }
        }
        return nullptr;
    }

    [[nodiscard]] std::size_t pool_index(const void* block) const noexcept {
        return (reinterpret_cast<std::uintptr_t>(block) -
                reinterpret_cast<std::uintptr_t>(&pool_[0][0])) /
               pool_block;
    }

    [[nodiscard]] std::size_t size_of(const void* block) const noexcept {
        if (pool_index(block) < pool_count) return pool_block;
        std::size_t bytes = 0;
        std::memcpy(&bytes, static_cast<const std::byte*>(block) - sizeof bytes, sizeof bytes);
        return bytes;
    }

    alignas(pool_block) std::byte pool_[pool_count][pool_block]{};
    alignas(16) std::byte heap_[heap_bytes]{};
    trace_ring::atomic<std::uint64_t> taken_[pool_count / 64]{};
    trace_ring::atomic<std::size_t> used_{0};
};

}  // namespace heap
