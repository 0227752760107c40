// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Inserts calls of the hooks.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <cstdint>
#include <string>

namespace address_trace::pass {

enum class kind : std::uint8_t { load, store, update };

class hooks {
public:
    explicit hooks(llvm::Module& module)
        : module_(module),
          address_(llvm::PointerType::get(llvm::Type::getInt8Ty(module.getContext()), 0)),
          size_(module.getDataLayout().getIntPtrType(module.getContext())),
          mask_(llvm::Type::getInt64Ty(module.getContext())) {}

    void block(llvm::Instruction& before) { call(before, "block", {}); }
    /// An instruction whose references are unknown is about to run.
    void unseen(llvm::Instruction& before) { call(before, "unseen", {}); }

    void access(llvm::Instruction& before, kind is, llvm::Value* address, std::uint64_t size) {
        if (size == 0) return;
        const bool has_own_hook =
            (size & (size - 1)) == 0 && size <= (is == kind::update ? 16U : 64U);
        const std::string name = name_of(is);
        if (has_own_hook)
            return call(before, name + std::to_string(size), {pointer(before, address)});
        range(before, is, address, llvm::ConstantInt::get(size_, size));
    }
    /// A load or store whose number of bytes is known only at run time.
    void range(llvm::Instruction& before, kind is, llvm::Value* address, llvm::Value* bytes) {
        if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(bytes);
            known != nullptr && known->isZero()) {
            return;
        }
        call(
            before, std::string(name_of(is)) + "_range",
            {pointer(before, address), llvm::IRBuilder<>(&before).CreateZExtOrTrunc(bytes, size_)});
    }
    /// After a compare and exchange, when it is known whether it stored.
    void compare(llvm::AtomicCmpXchgInst& at, std::uint64_t size) {
        llvm::Instruction& next = *at.getNextNode();
        llvm::IRBuilder<> make(&next);
        llvm::Value* const stored = make.CreateZExt(make.CreateExtractValue(&at, 1), size_);
        call(next, "compare" + std::to_string(size),
             {pointer(next, at.getPointerOperand()), stored});
    }
    /// After an allocator has returned the given number of bytes: at `next`, where the result is
    /// available.
    void allocated(llvm::Value* memory, llvm::Instruction& next, llvm::Value* size,
                   llvm::Value* count) {
        llvm::IRBuilder<> make(&next);
        llvm::Value* bytes = make.CreateZExtOrTrunc(size, size_);
        if (count != nullptr) bytes = make.CreateMul(bytes, make.CreateZExtOrTrunc(count, size_));
        call(next, "allocated", {pointer(next, memory), bytes});
    }
    /// Adds a constructor that reports that the module's code is loaded.
    [[nodiscard]] llvm::Function& loaded() {
        llvm::LLVMContext& context = module_.getContext();
        auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
        auto* const made = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                                  "address_trace.loaded", module_);
        made->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
        llvm::IRBuilder<> make(llvm::BasicBlock::Create(context, "", made));
        make.CreateCall(module_.getOrInsertFunction("__trace_ring_loaded", type));
        make.CreateRetVoid();
        constexpr int priority = 101;  // before those of C++
        llvm::appendToGlobalCtors(module_, made, priority);
        return *made;
    }
    /// For the lanes whose bits are set in `active`, of `bytes` each; they are stored one after
    /// another from `address` on.
    void lanes(llvm::Instruction& before, kind is, llvm::Value* address, llvm::Value* active,
               std::uint64_t bytes) {
        call(before, std::string(name_of(is)) + "_lanes",
             {pointer(before, address), mask_of(before, active),
              llvm::ConstantInt::get(size_, bytes)});
    }
    /// Likewise, each at its own address; `addresses` is a vector of integers.
    void scattered_lanes(llvm::Instruction& before, kind is, llvm::Value* addresses,
                         llvm::Value* active, std::uint64_t bytes) {
        auto& entry = before.getFunction()->getEntryBlock();
        llvm::IRBuilder<> at_entry(&*entry.getFirstInsertionPt());
        llvm::Value* const array = at_entry.CreateAlloca(addresses->getType());
        llvm::IRBuilder<>(&before).CreateStore(addresses, array);
        call(before, is == kind::load ? "gather" : "scatter",
             {pointer(before, array), mask_of(before, active),
              llvm::ConstantInt::get(size_, bytes)});
    }
    /// The number of bits that are set.
    [[nodiscard]] llvm::Value* count_of(llvm::Instruction& before, llvm::Value* active) {
        llvm::IRBuilder<> make(&before);
        return make.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, mask_of(before, active));
    }
    [[nodiscard]] llvm::Type* size_type() const { return size_; }

private:
    [[nodiscard]] static const char* name_of(kind is) {
        return is == kind::load ? "load" : is == kind::store ? "store" : "update";
    }
    [[nodiscard]] llvm::Value* pointer(llvm::Instruction& before, llvm::Value* address) {
        return llvm::IRBuilder<>(&before).CreatePointerCast(address, address_);
    }
    [[nodiscard]] llvm::Value* mask_of(llvm::Instruction& before, llvm::Value* active) {
        llvm::IRBuilder<> make(&before);
        const unsigned lanes =
            llvm::cast<llvm::FixedVectorType>(active->getType())->getNumElements();
        return make.CreateZExt(make.CreateBitCast(active, make.getIntNTy(lanes)), mask_);
    }
    void call(llvm::Instruction& before, llvm::StringRef name,
              llvm::ArrayRef<llvm::Value*> arguments) {
        llvm::SmallVector<llvm::Type*, 3> types;
        for (const llvm::Value* const each : arguments) types.push_back(each->getType());
        llvm::IRBuilder<> make(&before);
        const auto hook =
            module_.getOrInsertFunction(("__trace_ring_" + name).str(),
                                        llvm::FunctionType::get(make.getVoidTy(), types, false));
        llvm::CallInst* const made = make.CreateCall(hook, arguments);
        made->addFnAttr(llvm::Attribute::NoUnwind);
        // A jump to the hook would make it return to this function's caller, and so report the
        // wrong site.
        made->setTailCallKind(llvm::CallInst::TCK_NoTail);
        made->setDebugLoc(location_of(before));
    }
    /// A call in a function that has debug information needs some, too.
    [[nodiscard]] static llvm::DebugLoc location_of(const llvm::Instruction& at) {
        for (const auto* each = &at; each != nullptr; each = each->getNextNode()) {
            if (each->getDebugLoc() && each->getDebugLoc().getLine() != 0)
                return each->getDebugLoc();
        }
        if (auto* const in = at.getFunction()->getSubprogram())
            return llvm::DILocation::get(in->getContext(), 0, 0, in);
        return {};
    }

    llvm::Module& module_;
    llvm::Type* address_;
    llvm::Type* size_;
    llvm::Type* mask_;
};

}  // namespace address_trace::pass
