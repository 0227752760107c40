// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The results of the analyses as tables.

#include <cstddef>
#include <string>
#include <vector>

#include <address_trace/analysis/allocations.hpp>
#include <address_trace/analysis/analyses.hpp>
#include <address_trace/analysis/cache_misses.hpp>
#include <address_trace/analysis/coherent_caches.hpp>
#include <address_trace/analysis/line_use.hpp>
#include <address_trace/analysis/reuse_distance.hpp>
#include <address_trace/analysis/strides.hpp>
#include <address_trace/analysis/working_set.hpp>
#include <address_trace/coverage/data_owners.hpp>
#include <address_trace/coverage/object_coverage.hpp>
#include "by_place.hpp"
#include "places.hpp"
#include "table.hpp"

namespace address_trace {

/// The results of the analyses; null: not selected. Valid as long as the analyses.
struct findings {
    const analyses* fed = nullptr;  ///< never null
    std::vector<const cache_misses*> caches;
    const coherent_caches* coherent = nullptr;
    const line_use* lines = nullptr;
    const allocations* allocated = nullptr;
    const reuse_distance* distances = nullptr;
    const working_set* working = nullptr;
    const strides* stepping = nullptr;
    std::vector<object_coverage> objects{};  ///< objects that the program had in memory
    std::string gaps{};                      ///< missing references; empty: not known yet
    data_owners owners{};                    ///< owners of its memory

    /// Of all `caches`, one after the other.
    [[nodiscard]] std::vector<cache_result> cache_results() const;
};

inline constexpr std::size_t usual_rows = 20, every_row = ~std::size_t{0};

/// One table for each question. Tables of functions, lines and sites have at most `most` rows.
[[nodiscard]] std::vector<table> make_tables(const findings& of, const place_of& where,
                                             std::size_t most = usual_rows);

/// Bytes of a line as text: "0-7 12 60-63".
[[nodiscard]] std::string bytes_text(line_bytes bytes);

}  // namespace address_trace
