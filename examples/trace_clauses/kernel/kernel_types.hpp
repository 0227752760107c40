// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the offsets of members in the running kernel's structures, from the kernel's description
/// of itself (BTF).
/// @code
///   const std::int32_t at = offset_in_kernel("task_struct", "tgid");
/// @endcode
/// Source: the kernel's Documentation/bpf/btf.rst.

#include <cstdint>
#include <string_view>

namespace trace_clauses {

/// Returns the offset in bytes. Finds members of unnamed inner structures too. Throws
/// std::runtime_error, with a one-sentence reason, if the kernel does not describe the structure.
/// The file is read once; a search is linear in it.
[[nodiscard]] std::int32_t offset_in_kernel(std::string_view structure, std::string_view member);

}  // namespace trace_clauses
