// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Instructions that reference some lanes of a vector: masked loads and stores, gathers,
/// scatters, expanding and compressing ones, and x86-specific ones, which have no common form.

namespace llvm {
class DataLayout;
class IntrinsicInst;
}  // namespace llvm

namespace address_trace::pass {

class hooks;

/// Returns whether it is one of these, and inserts its hook.
[[nodiscard]] bool instrument_lanes(llvm::IntrinsicInst& call, hooks& calls,
                                    const llvm::DataLayout& layout);

}  // namespace address_trace::pass
