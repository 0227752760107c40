// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Reads a kept trace.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "reference_stream.hpp"

namespace address_trace {

/// Passes all of its references to `to`, and returns the losses that the trace reports. Throws
/// std::system_error or format_error if the file cannot be read.
[[nodiscard]] inline trace_ring::loss_counts read_kept(const std::string& file,
                                                       reference_stream& to) {
    namespace reduce = trace_ring::reduce;
    const auto trace = reduce::trace_file::open(file);
    reduce::filter wanted;
    wanted.events = {"references", "module", "thread.stack", "references.end"};  // as recorded
    trace_ring::loss_counts lost;
    for (auto cursor = trace.forward(wanted); const auto* const item = cursor.next();) {
        if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
            lost.add(loss->cause, loss->count == 0 ? 1 : loss->count);
        }
        const auto take = [&](const reduce::record_view& record) {
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
    return lost;
}

}  // namespace address_trace
