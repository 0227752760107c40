// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which variables of a program or library lie at an address.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../session/reference_stream.hpp"

namespace address_trace {

class data_owners {
public:
    data_owners() = default;
    explicit data_owners(std::span<const loaded_module> modules)
        : modules_(modules.begin(), modules.end()) {}

    /// The names of variables that have a byte in [address, address + bytes): "counter, sums+8", at
    /// most three and how many more there are. Empty: none is known, as on stacks and on the heap.
    /// Linear in the modules and the variables of an object; its file is read when it is asked for
    /// first.
    [[nodiscard]] std::string find(std::uint64_t address, std::uint64_t bytes);

private:
    struct variable {
        std::uint64_t begin = 0, end = 0;
        std::string name;
    };
    [[nodiscard]] const std::vector<variable>& variables_of(const loaded_module& module);

    std::vector<loaded_module> modules_;
    std::map<std::string, std::vector<variable>> by_path_;  // by their begins
};

}  // namespace address_trace
