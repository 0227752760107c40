// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Packs references whose kinds and sizes only running tells.

#include <cstddef>
#include <span>
#include <vector>

#include <trace_ring/record/event/references.hpp>

namespace trace_ring_test {

namespace impl {

[[nodiscard]] inline unsigned code_of(const trace_ring::reference& what) {
    using trace_ring::reference_kind;
    if (what.kind == reference_kind::load) return static_cast<unsigned>(__builtin_ctz(what.size));
    if (what.kind == reference_kind::store) {
        return 5 + static_cast<unsigned>(__builtin_ctz(what.size));
    }
    return 8 + static_cast<unsigned>(what.kind);
}

}  // namespace impl

/// What one record of them holds.
[[nodiscard]] inline std::vector<std::byte> packed(std::span<const trace_ring::reference> all) {
    std::vector<std::byte> bytes(all.size() * trace_ring::reference_packer::most_bytes);
    trace_ring::reference_packer packer;
    std::byte* at = bytes.data();
    for (const auto& each : all)
        at = packer.put(at, {each.address, each.site << 4 | impl::code_of(each)});
    bytes.resize(static_cast<std::size_t>(at - bytes.data()));
    bytes.shrink_to_fit();  // so that a sanitizer sees what is read behind them
    return bytes;
}

}  // namespace trace_ring_test
