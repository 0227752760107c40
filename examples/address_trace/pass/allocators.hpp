// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Recognizes calls that allocate memory, so that references can be attributed to
/// allocations.

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Instructions.h>

#include <optional>

namespace address_trace::pass {

/// The indexes of the arguments whose product is the number of bytes.
struct allocation_call {
    static constexpr unsigned none = ~0U;
    unsigned size, count = none;
};

/// For a function of libc or of the C++ runtime that returns memory, or one declared `alloc_size`;
/// empty for others.
[[nodiscard]] inline std::optional<allocation_call> allocation_call_of(const llvm::CallBase& call) {
    if (!call.getType()->isPointerTy()) return std::nullopt;
    const llvm::Function* const callee = call.getCalledFunction();
    if (callee == nullptr || callee->isIntrinsic()) return std::nullopt;
    std::optional<allocation_call> out;
    const llvm::Attribute told = call.getFnAttr(llvm::Attribute::AllocSize);
    if (told.isValid()) {
        const auto [size, count] = told.getAllocSizeArgs();
        out = allocation_call{size, count ? *count : allocation_call::none};
    } else {
        // operator new and operator new[], as mangled by the C++ ABI, with all their arguments.
        const llvm::StringRef name = callee->getName();
        const bool is_new = name.startswith("_Znwm") || name.startswith("_Znam");
        out = is_new ? std::optional(allocation_call{0})
                     : llvm::StringSwitch<std::optional<allocation_call>>(name)
                           .Cases("malloc", "valloc", "pvalloc", allocation_call{0})
                           .Cases("realloc", "aligned_alloc", "memalign", allocation_call{1})
                           .Case("calloc", allocation_call{1, 0})
                           .Case("reallocarray", allocation_call{2, 1})
                           .Default(std::nullopt);
    }
    const auto is_there = [&call](unsigned number) {
        return number < call.arg_size() && call.getArgOperand(number)->getType()->isIntegerTy();
    };
    if (!out || !is_there(out->size)) return std::nullopt;
    if (out->count != allocation_call::none && !is_there(out->count)) return std::nullopt;
    return out;
}

}  // namespace address_trace::pass
