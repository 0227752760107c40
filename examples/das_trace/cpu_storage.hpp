// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The guest's storage as one of its processors addresses it.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/guest_storage.hpp>

namespace das_example {

/// A model of `guest_storage` with prefixing: each processor has a first block of 4 KiB for itself,
/// with its word 84 and its CPU identity byte. All else is shared. There is no address translation:
/// regions that refuse access take the place of segments and pages.
class cpu_storage {
public:
    static constexpr std::uint32_t block = 4096;

    /// `prefix`, a multiple of 4096, is where the processor's first block lies. `bytes` and
    /// `regions` must outlive the object; the addresses of regions are absolute.
    cpu_storage(std::span<std::byte> bytes, std::span<const trace_ring::guest_region> regions,
                std::uint32_t prefix) noexcept
        : bytes_(bytes), memory_(bytes, regions), regions_(regions), prefix_(prefix) {}
    /// Replaces the regions. No processor may run during the call.
    void set_regions(std::span<const trace_ring::guest_region> regions) noexcept {
        memory_ = trace_ring::guest_memory(bytes_, regions);
        regions_ = regions;
    }

    // What tracing asks for.
    [[nodiscard]] trace_ring::program_exception test(
        std::uint32_t address, std::uint32_t bytes,
        trace_ring::guest_access access) const noexcept {
        return memory_.test(absolute(address), bytes, access);
    }
    [[nodiscard]] std::uint32_t fetch(std::uint32_t address) const noexcept {
        return memory_.fetch(absolute(address));
    }
    [[nodiscard]] bool swap(std::uint32_t address, std::uint32_t& expected,
                            std::uint32_t value) noexcept {
        return memory_.swap(absolute(address), expected, value);
    }
    void store(std::uint32_t address, std::span<const std::byte> bytes) noexcept {
        memory_.store(absolute(address), bytes);
    }
    void serialize() noexcept { memory_.serialize(); }

    /// What a program's store asks for: key-controlled protection, which does not apply to tracing,
    /// applies to it.
    [[nodiscard]] trace_ring::program_exception test_program_store(
        std::uint32_t address, std::uint32_t bytes) const noexcept {
        const auto met = test(address, bytes, trace_ring::guest_access::protected_store);
        if (met != trace_ring::program_exception::none) return met;
        const auto from = absolute(address);
        for (const auto& region : regions_) {
            if (region.what == trace_ring::guest_region::kind::key_protected &&
                from < region.first + region.bytes && region.first < from + bytes)
                return trace_ring::program_exception::protection;
        }
        return trace_ring::program_exception::none;
    }

private:
    /// Prefixing exchanges the first block and the processor's.
    [[nodiscard]] std::uint32_t absolute(std::uint32_t address) const noexcept {
        const auto of_block = address / block * block;
        return of_block == 0 || of_block == prefix_ ? address ^ prefix_ : address;
    }

    std::span<std::byte> bytes_;
    trace_ring::guest_memory memory_;
    std::span<const trace_ring::guest_region> regions_;
    std::uint32_t prefix_;
};

static_assert(trace_ring::guest_storage<cpu_storage>);

}  // namespace das_example
