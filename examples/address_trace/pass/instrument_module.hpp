// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Inserts calls of the hooks (trace_ring/instrument/memory.hpp) into a compiled module: a call
/// before each reference to memory, and at the beginning of each block.
///
/// This is the last pass, when the optimizer has decided which references there are. Loads and
/// stores become volatile, so that the code generator does not remove, narrow or repeat them. So
/// the trace has exactly the program's references.

namespace llvm {
class Module;
}

namespace address_trace::pass {

/// Returns whether anything was inserted. Linear in the instructions.
[[nodiscard]] bool instrument_module(llvm::Module& module);

}  // namespace address_trace::pass
