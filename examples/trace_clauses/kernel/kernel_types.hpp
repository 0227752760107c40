// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where members are in the structures of the kernel that runs, by what it tells of itself (BTF).
/// @code
///   const std::int32_t at = offset_in_kernel("task_struct", "tgid");
/// @endcode
/// Source: the kernel's Documentation/bpf/btf.rst.

#include <cstdint>
#include <string_view>

namespace trace_clauses {

/// In bytes; also of a member of a structure without a name in it. Throws std::runtime_error, in
/// one sentence, if the kernel does not tell. The file is read once; then it is linear in it.
[[nodiscard]] std::int32_t offset_in_kernel(std::string_view structure, std::string_view member);

}  // namespace trace_clauses
