// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kernel's BPF by bpf(2): maps, programs, and what they are attached to. All that is made
/// lives as long as its descriptor.
/// @code
///   const auto map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 16);
///   const auto program = load_program(BPF_PROG_TYPE_KPROBE, code, "libc.so.6, offset 64");
/// @endcode
/// All throw std::runtime_error, in one sentence, for what the kernel does not have or permit.

#include <cstdint>
#include <stdexcept>
#include <string>

#include <trace_ring/policy/storage/file.hpp>

#include "bpf_code.hpp"

namespace trace_clauses {

/// As the kernel's calls take addresses.
[[nodiscard]] inline std::uint64_t address_of(const void* what) noexcept {
    return reinterpret_cast<std::uintptr_t>(what);
}
/// The kernel does not have, or does not permit, what is asked of it here at all.
struct kernel_refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// What an error number means for whoever asked.
[[nodiscard]] std::string why_refused(int error);
/// Throws it, behind `what`: kernel_refusal, or std::runtime_error for another reason.
[[noreturn]] void refuse(const std::string& what, int error);

[[nodiscard]] trace_ring::file_descriptor make_map(std::uint32_t type, std::uint32_t key_bytes,
                                                   std::uint32_t value_bytes, std::uint32_t entries,
                                                   std::uint32_t flags = 0);
/// False: there is no such key.
[[nodiscard]] bool look_up(const trace_ring::file_descriptor& map, const void* key, void* value);
void set_element(const trace_ring::file_descriptor& map, const void* key, const void* value);
/// `where` is what messages begin with. What the kernel's verifier says is told by its end.
/// `attach_type`: what it is for, where its type does not say that.
[[nodiscard]] trace_ring::file_descriptor load_program(std::uint32_t type, const bpf_code& code,
                                                       const std::string& where,
                                                       std::uint32_t attach_type = 0);
/// Runs a program of type BPF_PROG_TYPE_RAW_TRACEPOINT once, in this thread. Returns its r0.
[[nodiscard]] std::uint32_t run_here(const trace_ring::file_descriptor& program);
/// Runs a program of that type at that tracepoint, until the result ends.
[[nodiscard]] trace_ring::file_descriptor attach_raw(const char* tracepoint,
                                                     const trace_ring::file_descriptor& program);

}  // namespace trace_clauses
