// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sums of references: by kind.

#include <cstdint>
#include <span>

#include "site_table.hpp"

namespace address_trace {

struct reference_counts {
    std::uint64_t loads = 0, stores = 0, blocks = 0, enters = 0, exits = 0;
    std::uint64_t updates = 0, failed_compares = 0;  ///< both atomic
    std::uint64_t allocations = 0, bytes_allocated = 0;
    std::uint64_t bytes_loaded = 0, bytes_stored = 0, bytes_updated = 0, bytes_compared = 0;

    void add(const site_count& of) noexcept {
        switch (of.kind) {
            case reference_kind::load:
                loads += of.count;
                bytes_loaded += of.bytes;
                break;
            case reference_kind::store:
                stores += of.count;
                bytes_stored += of.bytes;
                break;
            case reference_kind::update:
                updates += of.count;
                bytes_updated += of.bytes;
                break;
            case reference_kind::failed_compare:
                failed_compares += of.count;
                bytes_compared += of.bytes;
                break;
            case reference_kind::block:
                blocks += of.count;
                break;
            case reference_kind::enter:
                enters += of.count;
                break;
            case reference_kind::exit:
                exits += of.count;
                break;
            case reference_kind::allocation:
                allocations += of.count;
                bytes_allocated += of.bytes;
                break;
        }
    }
    void add(const reference_counts& of) noexcept {
        loads += of.loads;
        stores += of.stores;
        blocks += of.blocks;
        enters += of.enters;
        exits += of.exits;
        updates += of.updates;
        failed_compares += of.failed_compares;
        bytes_loaded += of.bytes_loaded;
        bytes_stored += of.bytes_stored;
        bytes_updated += of.bytes_updated;
        bytes_compared += of.bytes_compared;
    }
    [[nodiscard]] std::uint64_t references() const noexcept {
        return data() + blocks + enters + exits;
    }
    [[nodiscard]] std::uint64_t data() const noexcept {
        return loads + stores + updates + failed_compares;
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept {
        return bytes_loaded + bytes_stored + bytes_updated + bytes_compared;
    }

    friend bool operator==(const reference_counts&, const reference_counts&) = default;
};

[[nodiscard]] inline reference_counts sum(std::span<const site_count> sites) noexcept {
    reference_counts out;
    for (const site_count& each : sites) out.add(each);
    return out;
}

}  // namespace address_trace
