// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the spans of a trace that did not nest, or ended in another thread, before the trace is
/// read, so that an exporter that writes while it reads can give each a line of its own.

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace trace_ring::inline v1::reduce {

using span_places = std::unordered_set<span_place, span_place_hash>;

/// The places where spans began whose ends say so. Reads the whole trace if the file says that it
/// has such ends; memory is some 40 bytes for each.
[[nodiscard]] inline span_places begun_elsewhere(const tables& in) {
    span_places out;
    if (!in.ring().ended_elsewhere) return out;
    std::vector<std::uint64_t> words(in.plan().sub_buffer_bytes / 8);
    const std::uint64_t count = in.present();
    for (std::uint64_t slot = 0; slot < count; ++slot) {
        sub_buffer_copy head;
        if (in.bytes().copy(in.plan().bytes_for(slot), words, head) != copy_result::copied)
            continue;
        const auto visit = [&](std::size_t at, std::uint64_t, std::uint32_t word) {
            if ((record_word::flags(word) & layout::span_end_record::flags) !=
                layout::span_end_record::flags)
                return;
            if (record_word::bytes(word) != layout::span_end_record::bytes) return;
            out.insert({static_cast<std::uint32_t>(words[at + 2]), words[at + 1] - 1});
        };
        static_cast<void>(walk_records(words, head, visit));  // the cursor reports damage
    }
    return out;
}

}  // namespace trace_ring::inline v1::reduce
