// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A simulated processor with an area and buffers that a test lays out by hand, as the vectors of
/// the manuals have them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_record.hpp>
#include <trace_ring/x86/ds/hardware/ds_layout.hpp>
#include <trace_ring/x86/ds/hardware/msr_access.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>

namespace x86_ds {

namespace record = trace_ring::record;
namespace x86 = trace_ring::x86;
namespace msr = trace_ring::x86::msr;

inline constexpr std::uint64_t area_at = 0x000F0000;
inline constexpr std::uint64_t bts_at = 0x00100000;
inline constexpr std::uint64_t pebs_at = 0x00200000;

/// Four branch records with the threshold at three, and room for three PEBS records of format 0
/// with the threshold at two.
template <class Model>
struct machine {
    using branch = record::branch_record<Model>;
    using area_type = x86::ds_area<Model>;
    static constexpr std::uint64_t size = sizeof(branch);
    static constexpr std::uint64_t pebs_size = x86::pebs_record_bytes<Model>(0);

    alignas(64) area_type area{};
    alignas(64) std::array<branch, 8> branches{};  ///< twice what the area says
    alignas(64) std::array<std::byte, 3 * pebs_size> pebs{};
    x86::simulated_memory memory;
    x86::simulated_cpu<Model> cpu;

    explicit machine(x86::simulated_features features = {}) : cpu(memory, features) {
        memory.map(area_at, std::as_writable_bytes(std::span(&area, 1)));
        memory.map(bts_at, std::as_writable_bytes(std::span(branches)));
        memory.map(pebs_at, pebs);
        area.bts = {address(bts_at), address(bts_at), address(bts_at + 4 * size),
                    address(bts_at + 3 * size)};
        area.pebs = {address(pebs_at), address(pebs_at), address(pebs_at + 3 * pebs_size),
                     address(pebs_at + 2 * pebs_size)};
        static_cast<void>(cpu.write(msr::ds_area, area_at));
    }
    static typename Model::pointer_type address(std::uint64_t value) {
        return static_cast<typename Model::pointer_type>(value);
    }

    void control(std::uint64_t value) { static_cast<void>(cpu.write(msr::debugctl, value)); }
    /// Counts with general counter 0, by PEBS if so asked.
    void counting(bool precise) {
        static_cast<void>(cpu.write(msr::global_ctrl, 1));
        static_cast<void>(cpu.write(msr::pebs_enable, precise ? 1 : 0));
    }
    [[nodiscard]] std::uint64_t value(std::uint32_t number) { return cpu.read(number).value; }
    [[nodiscard]] std::uint64_t index() const { return area.bts.index; }
    [[nodiscard]] bool masked() { return (value(msr::lvt_pmi) & x86::lvt_mask) != 0; }
    void unmask() { static_cast<void>(cpu.write(msr::lvt_pmi, 0)); }
};

/// A PEBS record all of whose bytes are `mark`.
template <class Model>
std::array<std::byte, machine<Model>::pebs_size> pebs_bytes(unsigned mark) {
    std::array<std::byte, machine<Model>::pebs_size> out;
    out.fill(static_cast<std::byte>(mark));
    return out;
}

}  // namespace x86_ds
