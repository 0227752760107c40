// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file An interface that provides names for the addresses in stacks.

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "../../symbols/loaded_module.hpp"

namespace trace_clauses {

class stack_names {
public:
    stack_names() = default;
    stack_names(const stack_names&) = delete;
    stack_names& operator=(const stack_names&) = delete;
    virtual ~stack_names() = default;

    /// The name of the place to which a return address leads, at that time (CLOCK_MONOTONIC, ns):
    /// the function, the offset in it, and the line or the file. Empty: unknown. Valid until the
    /// next call.
    [[nodiscard]] virtual std::string_view name_of(::pid_t process, std::uint64_t return_address,
                                                   std::uint64_t time) = 0;
    /// The module at this address; null: unknown. Valid until the next call.
    [[nodiscard]] virtual const symbols::loaded_module* module_of(::pid_t process,
                                                                  std::uint64_t return_address,
                                                                  std::uint64_t time) = 0;
    /// The number of changes of a process's mappings so far. After a change, other addresses may
    /// have other names.
    [[nodiscard]] virtual std::uint64_t changes_of(::pid_t process, std::uint64_t time) = 0;
};

}  // namespace trace_clauses
