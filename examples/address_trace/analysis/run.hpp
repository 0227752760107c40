// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The input of analyses: references of one thread, in order.

#include <cstdint>
#include <span>

#include "line_moves.hpp"
#include "site_table.hpp"

namespace address_trace {

/// As unpacked from a record.
struct reference_run {
    std::uint32_t thread = 0;
    std::uint64_t time = 0;  ///< of the record
    std::span<const reference> all;
};

/// A reference whose site has a number.
struct sited_reference : site_use {
    std::uint64_t address = 0;  ///< for a block: the address of its code

    [[nodiscard]] bool is_data() const noexcept { return trace_ring::is_data(kind); }
    /// Whether it stores. Atomic updates do.
    [[nodiscard]] bool is_store() const noexcept {
        return kind == reference_kind::store || kind == reference_kind::update;
    }
    /// Whether it makes a processor take the line from all others.
    [[nodiscard]] bool takes_line() const noexcept {
        return is_data() && kind != reference_kind::load;
    }
};

struct sited_run {
    std::uint32_t thread = 0;
    std::uint64_t time = 0;
    site_id sites = 0;  ///< all numbers of sites are less
    std::span<const sited_reference> all;
    line_moves::result moves{};  ///< if an analysis needs them
};

/// A result computed from references, in one run or in several. It does not depend on how the
/// references of a thread are divided into runs.
class analysis {
public:
    analysis() = default;
    analysis(const analysis&) = delete;
    analysis& operator=(const analysis&) = delete;
    virtual ~analysis() = default;

    virtual void take(const sited_run& run) = 0;
    /// Whether it needs `moves`.
    [[nodiscard]] virtual bool asks_for_moves() const { return false; }
};

}  // namespace address_trace
