// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Whose the memory at an address is: variables of a program or library, a block of an allocator,
/// or a thread's stack.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../analysis/allocations.hpp"
#include "../session/reference_stream.hpp"

namespace address_trace {

class data_owners {
public:
    data_owners() = default;
    /// `allocated` may be null, and is valid as long as this.
    data_owners(std::span<const loaded_module> modules, std::span<const stack_range> stacks,
                const allocations* allocated)
        : modules_(modules.begin(), modules.end()),
          stacks_(stacks.begin(), stacks.end()),
          allocated_(allocated) {}

    /// As text, of a site.
    using text_of = std::function<std::string(site_id)>;

    /// What has a byte in [address, address + bytes), at most three and how many more there are:
    /// "counter, sums+8" of variables, "4.0 KiB of make_rows rows.c:12, +64" of what was allocated,
    /// "stack of thread 4711". Empty: it is not known, as of what code without hooks has allocated.
    /// Linear in the modules, stacks, and the variables of an object; its file is read when it is
    /// asked for first.
    [[nodiscard]] std::string find(std::uint64_t address, std::uint64_t bytes, const text_of& text);

private:
    struct variable {
        std::uint64_t begin = 0, end = 0;
        std::string name;
    };
    class names;

    struct object_variables {
        std::vector<variable> all;  // by their begins
        std::uint64_t longest = 0;  // bytes
    };

    [[nodiscard]] const object_variables& variables_of(const loaded_module& module);

    std::vector<loaded_module> modules_;
    std::vector<stack_range> stacks_;
    const allocations* allocated_ = nullptr;
    std::map<std::string, object_variables> by_path_;
};

}  // namespace address_trace
