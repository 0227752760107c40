// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Reads a kept trace.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/statistics.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "reference_stream.hpp"

namespace address_trace {

/// What is missing in a kept trace.
struct kept_trace {
    trace_ring::loss_counts lost{};
    std::uint64_t damages = 0;                 ///< damaged places
    std::vector<trace_ring::damage> places{};  ///< the first of them
    static constexpr std::size_t most_places = 20;
    bool may_lack_references = false;  ///< what is damaged or lost may have been references

    void add_damage(std::uint64_t offset, std::string_view what) {
        if (++damages <= most_places) places.push_back({offset, std::string(what)});
    }
};

/// Passes all of its references to `to`, and returns what the trace lacks. Throws
/// std::system_error or format_error if the file cannot be read.
[[nodiscard]] inline kept_trace read_kept(const std::string& file, reference_stream& to) {
    namespace reduce = trace_ring::reduce;
    const auto trace = reduce::trace_file::open(file);
    reduce::filter wanted;
    wanted.events = {"references", "module", "thread.stack", "references.end"};  // as recorded
    kept_trace found;
    for (const auto& each : trace.damages()) found.add_damage(each.offset, each.what);
    for (auto cursor = trace.forward(wanted); const auto* const item = cursor.next();) {
        if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
            found.lost.add(loss->cause, loss->count == 0 ? 1 : loss->count);
            if (loss->cause == trace_ring::loss_cause::damaged)
                found.add_damage(loss->offset, loss->what);
        }
        const auto take = [&](const reduce::record_view& record) {
            if (reduce::is_damage(trace.about(), record))
                found.add_damage(record.offset(), record.fault());
            const auto number = [&record](const char* field) {
                return static_cast<std::uint32_t>(record.field(field).u64());
            };
            if (record.name() == "references") {
                to.take({number("thread"), number("place"), number("sequence"), record.time(), true,
                         record.field("packed").bytes()});
            } else if (record.name() == "references.end") {
                to.add(run_end{record.field("calls").u64(), record.field("lost_references").u64()});
            } else if (record.name() == "thread.stack") {
                to.add(stack_range{number("thread"), record.field("low").u64(),
                                   record.field("high").u64()});
            } else if (record.has_fields()) {
                to.add(symbols::module_of(record));
            }
        };
        if (const auto* const record = std::get_if<reduce::record_view>(item)) take(*record);
        for (const reduce::record_view& record : cursor.records()) take(record);
    }
    const auto& types = trace.event_types();
    const bool can_hold = std::any_of(types.begin(), types.end(), [](const auto& type) {
        return type.name == "references" || type.name == "references.end";
    });
    found.may_lack_references = found.damages != 0 || (can_hold && found.lost.total() != 0);
    return found;
}

}  // namespace address_trace
