// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a cursor gives, in words.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_ring_test {

/// Everything that is reported about a trace, by text and by what text omits.
[[nodiscard]] inline std::vector<std::string> told_of(const trace_ring::reduce::trace_file& file,
                                                      trace_ring::reduce::cursor cursor) {
    namespace reduce = trace_ring::reduce;
    std::vector<std::string> out;
    trace_ring::exporter::text_writer text(file.time());
    trace_ring::exporter::text_buffer line;
    while (const auto* item = cursor.next()) {
        line.clear();
        text.append(line, *item);
        std::string all(line.view());
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            all += std::to_string(record->position()) + " at " + std::to_string(record->offset());
            all += " until " + std::to_string(record->latest().value_or(0));
        } else if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
            all += std::to_string(loss->at) + " at " + std::to_string(loss->offset) + ' ' +
                   std::string(loss->what);
        } else {
            all += std::to_string(std::get<reduce::clock_jump>(*item).offset);
        }
        out.push_back(std::move(all));
    }
    return out;
}

}  // namespace trace_ring_test
