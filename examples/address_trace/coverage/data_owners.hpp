// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The owner of the memory at an address: a variable of a program or library, a heap block,
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
    /// `allocated` may be null. It must outlive this object.
    data_owners(std::span<const loaded_module> modules, std::span<const stack_range> stacks,
                const allocations* allocated)
        : modules_(modules.begin(), modules.end()),
          stacks_(stacks.begin(), stacks.end()),
          allocated_(allocated) {}

    /// As text, of a site.
    using text_of = std::function<std::string(site_id)>;

    /// The owners of bytes in [address, address + bytes), at most three and the number of further
    /// ones: "counter, sums+8" for variables, "4.0 KiB of make_rows rows.c:12, +64" for a heap
    /// block, "stack of thread 4711". Empty: unknown, for example allocated by code without hooks.
    /// Linear in the modules, stacks, and the variables of an object, whose file is read at the
    /// first request.
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
