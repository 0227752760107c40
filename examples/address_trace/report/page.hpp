// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Writes everything to one HTML page, which loads nothing from elsewhere.

#include <span>
#include <string>

#include "pictures.hpp"
#include "source_lines.hpp"
#include "table.hpp"

namespace address_trace {

/// Each picture is placed above the table with its name, if there is one. The sources come last.
[[nodiscard]] std::string make_page(const std::string& title, std::span<const table> tables,
                                    std::span<const picture> pictures, const source_lines& sources);

}  // namespace address_trace
