// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Texts for call stacks: of records with an array of addresses `stack`, as heap traces have them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/tables.hpp>

namespace clickhouse {

namespace reduce = trace_ring::reduce;

/// The files of all traces, and the text of each call stack, found once. Memory: for each different
/// stack, and for the symbols of each file. Not thread-safe.
class stack_symbols {
public:
    /// Whether this program can look names up: it was built with elfutils.
    [[nodiscard]] static bool can_name() noexcept;

    stack_symbols();
    stack_symbols(const stack_symbols&) = delete;
    ~stack_symbols();

private:
    friend class stack_names;
    struct known;
    std::unique_ptr<known> known_;
};

/// The stacks of one trace, by its records `module`, which have to come before the records whose
/// stacks lie in these modules.
class stack_names {
public:
    /// Both must outlive it.
    stack_names(const reduce::tables& in, stack_symbols& by);
    stack_names(const stack_names&) = delete;
    ~stack_names();

    /// Takes all items of the trace, in the order of reading forward.
    void look_at(const reduce::item& what);
    /// "inner < outer < outermost", each with its line if it is known, as the table `allocations`
    /// of trace-reduce --sql has it; OBJECT+0x12 if the file is no longer there, or another. Empty
    /// if the record has no stack. The text lives as long as the stack_symbols.
    [[nodiscard]] std::string_view text_of(const reduce::item& what);

private:
    struct process;

    [[nodiscard]] process& process_of(const reduce::lane_info& lane);
    [[nodiscard]] std::size_t field_of(const reduce::event_type& type);

    [[maybe_unused]] const reduce::tables& in_;
    [[maybe_unused]] stack_symbols& by_;
    /// By the process's number in the trace and its pid, as numbers may be used again.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<process>> processes_;
    std::map<const reduce::event_type*, std::size_t> fields_;  // npos: it has no stack
    std::vector<std::uint64_t> addresses_;
};

}  // namespace clickhouse
