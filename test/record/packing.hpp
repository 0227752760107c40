// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Packs references whose kinds and sizes are known only at run time.

#include <cstddef>
#include <span>
#include <vector>

#include <trace_ring/instrument/references.hpp>

namespace trace_ring_test {

namespace impl {

/// As a hook leaves it, with its extension if it needs one.
[[nodiscard]] inline std::vector<trace_ring::plain_reference> plain(
    const trace_ring::reference& what) {
    using trace_ring::plain_reference;
    const unsigned code = trace_ring::impl::plain_code(what.kind, what.size);
    std::vector<plain_reference> out{{what.address, what.site << 8 | code}};
    if (out[0].width() == 2) out.push_back({what.size, plain_reference::extension_code});
    return out;
}

}  // namespace impl

/// What one record of them holds.
[[nodiscard]] inline std::vector<std::byte> packed(std::span<const trace_ring::reference> all) {
    std::vector<std::byte> bytes(all.size() * trace_ring::reference_packer::most_bytes);
    trace_ring::reference_packer packer;
    std::byte* at = bytes.data();
    for (const auto& each : all) at = packer.put(at, impl::plain(each).data());
    bytes.resize(static_cast<std::size_t>(at - bytes.data()));
    bytes.shrink_to_fit();  // so that a sanitizer sees what is read behind them
    return bytes;
}

}  // namespace trace_ring_test
