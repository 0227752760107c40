// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Maps addresses in a process to places in files, which are the same in every process and
/// run. Each place and each function has a number.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <symbols/symbols.hpp>

#include "branch_code.hpp"

namespace branches {

using object_id = std::uint32_t;    ///< 0: no object is known there
using place_id = std::uint32_t;     ///< 0: the address 0
using function_id = std::uint32_t;  ///< 0: unknown

/// An instruction: its object, and its address in the object's file.
struct place {
    object_id object = 0;
    std::uint64_t address = 0;

    friend bool operator==(const place&, const place&) = default;
};

struct known_function {
    object_id object = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;  ///< the symbol's end; `start` if there is no symbol
    std::string name;       ///< demangled, or "object+0x123"
};

/// Every object, place and function of a report, each with one number.
class code {
public:
    code();

    [[nodiscard]] object_id intern_object(const std::string& path);
    [[nodiscard]] place_id intern(const place& where);

    [[nodiscard]] const place& at(place_id id) const { return places_.at(id); }
    [[nodiscard]] const std::vector<symbols::symbol>& names(place_id id);
    /// The function whose symbol contains this place; 0: none.
    [[nodiscard]] function_id function_of(place_id id);
    /// The same, but without a symbol it is a function that begins here: the target of a call.
    [[nodiscard]] function_id function_from(place_id id);
    [[nodiscard]] const known_function& function(function_id id) const { return functions_.at(id); }
    [[nodiscard]] std::size_t functions() const noexcept { return functions_.size(); }
    [[nodiscard]] std::size_t objects() const noexcept { return paths_.size(); }

    /// The address after the branch instruction here; 0 if its bytes are not available.
    [[nodiscard]] std::uint64_t end_of(const place& branch);
    /// The kind of the branch instruction here; unknown if it is not a branch, or its bytes are not
    /// available.
    [[nodiscard]] branch_kind kind_of(place_id branch);

    /// The file; null if there is none, for a vdso or memory without a file.
    [[nodiscard]] const symbols::object* object(object_id id);
    [[nodiscard]] const std::string& path(object_id id) const { return paths_.at(id); }
    /// Paths of the files that provide no names, with the reason.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept {
        return problems_;
    }

private:
    struct hash {
        std::size_t operator()(const place& p) const noexcept {
            return static_cast<std::size_t>((p.address ^ std::uint64_t{p.object} << 48) *
                                            0x9E3779B97F4A7C15);
        }
    };
    static constexpr function_id not_looked_up = ~function_id{0};

    [[nodiscard]] function_id intern(known_function what);
    [[nodiscard]] branch_code decode(const place& branch);

    std::vector<std::string> paths_;
    std::map<std::string, object_id> object_ids_;
    std::vector<std::unique_ptr<symbols::object>> files_;
    std::vector<bool> opened_;
    std::vector<place> places_;
    std::unordered_map<place, place_id, hash> place_ids_;
    std::vector<function_id> function_of_;
    std::unordered_map<place_id, std::vector<symbols::symbol>> names_;
    std::unordered_map<place_id, branch_kind> kinds_;
    std::vector<known_function> functions_;
    std::map<std::pair<object_id, std::uint64_t>, function_id> function_ids_;
    std::map<std::string, std::string> problems_;
};

/// The current mappings of one process.
class process_code {
public:
    explicit process_code(code& all) : all_(&all) {}

    /// The bytes of a file from `offset` on are mapped at [start, end), and replace earlier
    /// mappings there.
    void add(std::uint64_t start, std::uint64_t end, std::uint64_t offset, const std::string& path);
    [[nodiscard]] place_id find(std::uint64_t address);

private:
    struct range {
        std::uint64_t start = 0, end = 0, bias = 0;
        object_id object = 0;
    };
    code* all_;
    std::vector<range> ranges_;
    std::unordered_map<std::uint64_t, place_id> known_;
};

}  // namespace branches
