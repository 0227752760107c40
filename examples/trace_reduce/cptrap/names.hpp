// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What CPTRAP's types and CP's trace entries are called. The names are this library's, after the
/// list of type codes in the VM/SP System Programmer's Guide.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>

namespace trace_reduce {

namespace record = trace_ring::record;

namespace impl {
/// By type code; the first is none.
inline constexpr std::array<std::string_view, 25> cp_event_names{
    "",
    "external_interrupt",
    "svc_interrupt",
    "program_interrupt",
    "machine_check",
    "io_interrupt",
    "free_storage",
    "return_storage",
    "enter_scheduler",
    "queue_drop",
    "run_user",
    "start_io",
    "unstack_io_interrupt",
    "virtual_csw_store",
    "test_io",
    "halt_device",
    "unstack_block",
    "ncp_btu",
    "lock_spin",
    "sigp",
    "clear_channel",
    "iucv",
    "sna_console",
    "mssf",
    "start_io_fast",
};
}  // namespace impl

/// Empty for a code that is not known.
[[nodiscard]] constexpr std::string_view name_of(record::cp_event event) noexcept {
    return record::known(event) ? impl::cp_event_names[static_cast<std::size_t>(event)]
                                : std::string_view{};
}
[[nodiscard]] constexpr std::optional<record::cp_event> cp_event_named(
    std::string_view name) noexcept {
    for (std::size_t i = 1; i < impl::cp_event_names.size(); ++i) {
        if (impl::cp_event_names[i] == name) return static_cast<record::cp_event>(i);
    }
    return {};
}

/// Empty for a type that is not known.
[[nodiscard]] constexpr std::string_view name_of(record::cptrap_type type) noexcept {
    switch (type) {
        case record::cptrap_type::cp_interface:
            return "interface";
        case record::cptrap_type::table_entry:
            return "table_entry";
        case record::cptrap_type::lost:
            return "lost";
        default:
            return {};
    }
}

}  // namespace trace_reduce
