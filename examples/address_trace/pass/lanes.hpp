// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Instructions that reference some lanes of a vector: masked loads and stores, gathers, scatters,
/// those that expand and compress, and x86's own ones, which have no common form.

namespace llvm {
class DataLayout;
class IntrinsicInst;
}  // namespace llvm

namespace address_trace::pass {

class hooks;

/// Whether it is one of these: then its hook is there.
[[nodiscard]] bool instrument_lanes(llvm::IntrinsicInst& call, hooks& calls,
                                    const llvm::DataLayout& layout);

}  // namespace address_trace::pass
