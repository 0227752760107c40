// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where programs and libraries lay in memory, as the records `module` say
/// (trace_ring/instrument/modules.hpp).

#include <cstdint>
#include <string>

#include <trace_ring/reduce/item/record_view.hpp>

namespace symbols {

struct loaded_module {
    std::uint64_t start = 0, end = 0, bias = 0;
    std::string build_id;  ///< its bytes
    std::string path;

    friend bool operator==(const loaded_module&, const loaded_module&) = default;
};

/// What a record says; what it lacks is 0, or empty.
[[nodiscard]] inline loaded_module module_of(const trace_ring::reduce::record_view& record) {
    const auto id = record.field("build_id").bytes();
    return {record.field("start").u64(), record.field("end").u64(), record.field("bias").u64(),
            std::string(reinterpret_cast<const char*>(id.data()), id.size()),
            std::string(record.field("path").text())};
}

}  // namespace symbols
