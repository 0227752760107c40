// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Situations in which an instruction of the miniature System/370 meets an exception, one for each
/// test of the trace and for each of the instruction's own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <trace_ring/das/guest_memory.hpp>

#include "cpu_storage.hpp"
#include "guest.hpp"
#include "interruption.hpp"
#include "processor.hpp"

namespace das_example {

/// Storage in which another processor may come between the tests of a trace and its swap.
class interfered_storage : public cpu_storage {
public:
    using cpu_storage::cpu_storage;

    std::uint32_t others_current = 0;  ///< what the other stores as current; 0: it does nothing

    [[nodiscard]] bool swap(std::uint32_t address, std::uint32_t& expected, std::uint32_t value) {
        if (others_current != 0) {
            auto now = fetch(address);
            static_cast<void>(cpu_storage::swap(address, now, others_current));
            others_current = 0;
        }
        return cpu_storage::swap(address, expected, value);
    }
};

/// What a situation may change.
struct scene {
    guest& machine;
    std::vector<trace_ring::guest_region>& regions;
    interfered_storage& storage;
    processor<interfered_storage>& cpu;
};

struct situation {
    const char* name;
    std::uint16_t operation;  ///< of the instruction that meets it: a code, or two bytes of one
    void (*arrange)(scene&);
};

/// All of them.
[[nodiscard]] std::span<const situation> situations();

struct outcome {
    interruption met;
    /// All of guest storage before the instruction, with what another processor then stored; and
    /// after it.
    std::vector<std::byte> before, after;
    /// The registers and the instruction address are as before.
    bool registers_unchanged = false;
};

/// Runs the guest's program for some time, so that there are entries, then to an instruction of the
/// situation's kind, arranges the situation, and executes that instruction.
[[nodiscard]] outcome meet(const situation& which);

}  // namespace das_example
