// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The code of blocks, as it would lie without hooks: so that caches of code can be simulated.

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

/// What is fetched when a block runs. Its address is one of the program in memory if hooks took no
/// room: what calls of hooks and their arguments take is left out, and functions begin at multiples
/// of 16.
struct block_code {
    std::uint64_t address = 0;
    std::span<const std::uint8_t> lengths{};  ///< in bytes, of its instructions
};

/// A function's instructions are divided among its blocks: each has those around its hook, from
/// behind the last branch before it to the last branch behind it. All of them are taken to run when
/// the block does; what compilers put into one block with branches of their own, as a choice
/// between two values, is fetched on both ways.
///
/// What else is there because of hooks stays: registers that are saved around them.
class code_layout {
public:
    /// An object of the program. Its file is read when a site in it is asked for first.
    void add(const loaded_module& module) { modules_.push_back(module); }

    /// The block whose hook returns to `site`, valid as long as this; nothing: its object is not
    /// known (yet), or its file cannot be read or is another one by now, or the block is not found
    /// in it. Constant time after the first one of an object, which is linear in its code.
    [[nodiscard]] std::optional<block_code> find(std::uint64_t site);

    /// Where the hooks of the first blocks of functions of this name return to, in one object. The
    /// name may be the linker's, or C++'s with or without arguments. Linear in the code and the
    /// symbols.
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
