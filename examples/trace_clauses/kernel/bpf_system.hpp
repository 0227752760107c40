// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The kernel's BPF by bpf(2): maps, programs and their attachments. Each object lives as long as
/// its descriptor.
/// @code
///   const auto map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 16);
///   const auto program = load_program(BPF_PROG_TYPE_KPROBE, code, "libc.so.6, offset 64");
/// @endcode
/// If the kernel does not support or permit an operation, the functions throw std::runtime_error
/// with a one-sentence reason.

#include <cstdint>
#include <stdexcept>
#include <string>

#include <trace_ring/policy/storage/file.hpp>

#include "bpf_code.hpp"

namespace trace_clauses {

/// The address in the form that the kernel's calls take.
[[nodiscard]] inline std::uint64_t address_of(const void* what) noexcept {
    return reinterpret_cast<std::uintptr_t>(what);
}
/// The kernel does not support or permit this kind of operation at all.
struct kernel_refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// Explains an error number of bpf(2) to the user.
[[nodiscard]] std::string why_refused(int error);
/// Throws kernel_refusal, or std::runtime_error for other errors. The message begins with `what`.
[[noreturn]] void refuse(const std::string& what, int error);

[[nodiscard]] trace_ring::file_descriptor make_map(std::uint32_t type, std::uint32_t key_bytes,
                                                   std::uint32_t value_bytes, std::uint32_t entries,
                                                   std::uint32_t flags = 0);
/// Returns false if the key does not exist.
[[nodiscard]] bool look_up(const trace_ring::file_descriptor& map, const void* key, void* value);
void set_element(const trace_ring::file_descriptor& map, const void* key, const void* value);
/// Messages begin with `where`, and include the end of the kernel verifier's report. `attach_type`:
/// the use of the program, if its type does not determine it.
[[nodiscard]] trace_ring::file_descriptor load_program(std::uint32_t type, const bpf_code& code,
                                                       const std::string& where,
                                                       std::uint32_t attach_type = 0);
/// Runs a program of type BPF_PROG_TYPE_RAW_TRACEPOINT once, in this thread. Returns its r0.
[[nodiscard]] std::uint32_t run_here(const trace_ring::file_descriptor& program);
/// Attaches a program of this type to the tracepoint until the result is destroyed.
[[nodiscard]] trace_ring::file_descriptor attach_raw(const char* tracepoint,
                                                     const trace_ring::file_descriptor& program);

}  // namespace trace_clauses
