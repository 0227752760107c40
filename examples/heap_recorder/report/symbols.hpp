// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names for places in files, from their symbol tables and debug information.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "stacks.hpp"

namespace heap {

struct symbol {
    std::string function;      ///< demangled; empty: unknown
    std::uint64_t offset = 0;  ///< of the address in the function, or in the object if unknown
    std::string object;        ///< the file's name without its folders; empty: no object
    std::string file;          ///< of the source; empty: no debug information
    int line = 0;

    /// "function", or "object+0x123".
    [[nodiscard]] std::string name() const;
    /// "file:line" if known, else "object".
    [[nodiscard]] std::string where() const;
};

/// Looks into the files as they are now. A file that is no longer the one that was traced (by its
/// build id) gives no names. Never asks a server for debug information.
class symbolizer {
public:
    symbolizer();
    ~symbolizer();
    symbolizer(const symbolizer&) = delete;
    symbolizer& operator=(const symbolizer&) = delete;

    /// For a return address: of the call before it.
    [[nodiscard]] const symbol& find(const stack_table& table, const frame& place);

    /// Paths of the files that have changed since, or are gone.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept {
        return problems_;
    }

private:
    class object;
    struct key_hash {
        std::size_t operator()(const frame& f) const noexcept {
            return static_cast<std::size_t>((f.address ^ std::uint64_t{f.object} << 48) *
                                            0x9E3779B97F4A7C15);
        }
    };
    std::unordered_map<object_id, std::unique_ptr<object>> objects_;
    std::unordered_map<frame, symbol, key_hash> known_;
    std::map<std::string, std::string> problems_;
};

/// A demangled C++ name, or the name itself.
[[nodiscard]] std::string demangle(const char* name);

/// `text` without what stands in angle brackets and parentheses: "std::vector<>::push_back()".
[[nodiscard]] std::string without_arguments(const std::string& text);

}  // namespace heap
