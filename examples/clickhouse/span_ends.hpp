// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the spans of one trace began and how long they took, for their ends.

#include <optional>
#include <variant>

#include <trace_ring/exporter/text/span_length.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/span/pairs.hpp>

#include "record_table.hpp"

namespace clickhouse {

/// Takes all items of a trace, in the order of reading forward. Memory for the spans that are open.
class span_ends {
public:
    /// The item with what is known of the span that it ends. The result refers to this object, and
    /// is good until the next call.
    [[nodiscard]] row_item look_at(const reduce::item& what) {
        row_item made{&what};
        if (const auto* record = std::get_if<reduce::record_view>(&what)) {
            if (!record->known()) return made;
            if (record->begins()) {
                open_.begin(*record, {record->lane().number, record->position()},
                            [](const auto&) {});
            } else if (record->ends()) {
                const auto begun = open_.end(*record, [](const auto&) {}).begun;
                if (!begun) return made;
                made.began = begun->kept;
                if (record->time() < begun->time) return made;
                length_ = {record->time() - begun->time, begun->interval || record->interval()};
                made.took = &length_;
            }
            return made;
        }
        const auto* loss = std::get_if<reduce::loss_item>(&what);
        const auto* lane = loss != nullptr ? loss->lane : reduce::jump_in(what).lane;
        if (lane != nullptr) open_.gap(*lane, [](const auto&) {});
        return made;
    }

private:
    reduce::span_pairs<reduce::span_place> open_{};
    trace_ring::exporter::span_length length_{};
};

}  // namespace clickhouse
