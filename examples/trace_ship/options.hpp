// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What trace-ship is asked to do.

#include <string>

#include "clickhouse_destination.hpp"
#include "http.hpp"
#include "otlp_destination.hpp"
#include "shipping.hpp"

namespace trace_ship {

struct options {
    http_settings http{};
    bool to_otlp = false;  ///< otherwise to ClickHouse
    clickhouse_settings clickhouse{};
    otlp_settings otlp{};
    shipping_settings shipping{};
    bool dry_run = false;
};

/// True: continue. False: exit with `status`; the messages were printed.
[[nodiscard]] bool parse(int argc, char** argv, options& into, int& status);

}  // namespace trace_ship
