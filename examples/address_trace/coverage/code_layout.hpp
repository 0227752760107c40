// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The code of blocks at the addresses that it would have without hooks, for the simulation
/// of instruction caches.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../../symbols/loaded_module.hpp"

namespace address_trace {

using symbols::loaded_module;

/// The code that is fetched when a block runs. Its address is the one that it would have in memory
/// if hooks took no room: calls of hooks and the instructions for their arguments are removed, and
/// functions begin at multiples of 16.
struct block_code {
    std::uint64_t address = 0;
    std::span<const std::uint8_t> lengths{};  ///< in bytes, of its instructions
};

/// Divides a function's instructions among its blocks: each block has the instructions around its
/// hook, from the last branch before it to the last branch after it. All of them are assumed to run
/// when the block does. If the compiler generates branches within one block, such as a choice
/// between two values, both ways are fetched.
///
/// Other effects of hooks remain: registers that are saved around their calls.
class code_layout {
public:
    /// An object of the program. Its file is read at the first request for one of its sites.
    void add(const loaded_module& module) { modules_.push_back(module); }

    /// The block whose hook returns to `site`, valid as long as this object. Empty: the object is
    /// not (yet) known, its file cannot be read or has changed, or the block is not found in it.
    /// Constant time after the first request for an object, which is linear in its code.
    [[nodiscard]] std::optional<block_code> find(std::uint64_t site);

    /// The return addresses of the hooks of the first blocks of functions with this name, in one
    /// object. The name may be the linker symbol, or the C++ name with or without arguments. Linear
    /// in the code and the symbols.
    [[nodiscard]] std::vector<std::uint64_t> entries(const loaded_module& in,
                                                     const std::string& name);

private:
    /// Of an object's file, by the addresses in it.
    struct object_code {
        struct block {
            std::uint64_t address = 0;
            std::size_t first = 0, count = 0;  // in `lengths`
        };
        std::unordered_map<std::uint64_t, block> blocks;  // by site
        std::vector<std::uint8_t> lengths;
        std::map<std::uint64_t, std::uint64_t> entries;  // sites by function
    };
    [[nodiscard]] static object_code read(const loaded_module& module);
    [[nodiscard]] object_code& code_of(const loaded_module& module);

    std::vector<loaded_module> modules_;
    std::map<std::string, object_code> by_path_;
};

}  // namespace address_trace
