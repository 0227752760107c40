// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file address-trace-pass.so: `address-trace cc` makes clang load it (-fpass-plugin).

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "instrument_module.hpp"

namespace address_trace::pass {
namespace {

struct reference_pass : llvm::PassInfoMixin<reference_pass> {
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
        return instrument_module(module) ? llvm::PreservedAnalyses::none()
                                         : llvm::PreservedAnalyses::all();
    }
    // Also runs for functions that are compiled without optimization.
    static bool isRequired() { return true; }
};

void add_to(llvm::PassBuilder& builder) {
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& to, llvm::OptimizationLevel) { to.addPass(reference_pass()); });
}

}  // namespace
}  // namespace address_trace::pass

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "address-trace", LLVM_VERSION_STRING,
            address_trace::pass::add_to};
}
