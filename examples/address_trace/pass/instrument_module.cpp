// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "instrument_module.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>

#include "allocators.hpp"
#include "hooks.hpp"
#include "lanes.hpp"

namespace address_trace::pass {
namespace {

/// A call of a library function that copies or sets memory: the indexes of its arguments.
struct range_call {
    static constexpr unsigned none = ~0U;
    unsigned to, from, size;
};
[[nodiscard]] std::optional<range_call> range_call_of(llvm::StringRef name) {
    constexpr range_call copy{0, 1, 2}, set{0, range_call::none, 2};
    return llvm::StringSwitch<std::optional<range_call>>(name)
        .Cases("memcpy", "memmove", "mempcpy", "__mempcpy", copy)
        .Cases("__memcpy_chk", "__memmove_chk", "__mempcpy_chk", copy)
        .Cases("memset", "__memset_chk", set)
        .Case("bcopy", range_call{1, 0, 2})
        .Cases("bzero", "explicit_bzero", range_call{0, range_call::none, 1})
        .Default(std::nullopt);
}

/// Whether clang erases a load when it prepares functions for exceptions, even if it is volatile:
/// without optimization, `resume` is passed a handler number that _Unwind_Resume does not take.
[[nodiscard]] bool is_erased_later(const llvm::LoadInst& load) {
    if (!load.hasOneUse()) return false;
    const auto* const both = llvm::dyn_cast<llvm::InsertValueInst>(load.user_back());
    if (both == nullptr || !both->hasOneUse() || both->getIndices() != llvm::ArrayRef<unsigned>(1))
        return false;
    const auto* const first = llvm::dyn_cast<llvm::InsertValueInst>(both->getAggregateOperand());
    return llvm::isa<llvm::ResumeInst>(both->user_back()) && first != nullptr &&
           first->getIndices() == llvm::ArrayRef<unsigned>(0) &&
           llvm::isa<llvm::UndefValue>(first->getAggregateOperand());
}

class function_instrumenter {
public:
    function_instrumenter(llvm::Function& in, hooks& calls)
        : in_(in), calls_(calls), layout_(in.getParent()->getDataLayout()) {}

    void run() {
        llvm::SmallVector<llvm::Instruction*, 64> all;
        for (llvm::BasicBlock& block : in_) {
            for (llvm::Instruction& each : block) all.push_back(&each);
        }
        for (llvm::Instruction* const each : all) instrument(*each);
        for (llvm::BasicBlock& block : in_) begin_block(block);
    }

private:
    void begin_block(llvm::BasicBlock& block) {
        const auto at = block.getFirstInsertionPt();
        if (at == block.end()) return;  // only a catchswitch can be there
        llvm::Instruction* first = &*at;
        while (llvm::isa<llvm::AllocaInst>(first)) first = first->getNextNode();
        calls_.block(*first);
    }

    void instrument(llvm::Instruction& each) {
        if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&each)) {
            if (is_erased_later(*load)) return;
            access(each, kind::load, load->getPointerOperand(), load->getType());
            load->setVolatile(true);
        } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&each)) {
            access(each, kind::store, store->getPointerOperand(),
                   store->getValueOperand()->getType());
            store->setVolatile(true);
        } else if (auto* const update = llvm::dyn_cast<llvm::AtomicRMWInst>(&each)) {
            access(each, kind::update, update->getPointerOperand(),
                   update->getValOperand()->getType());
        } else if (auto* const compare = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&each)) {
            calls_.compare(*compare, size_of(compare->getCompareOperand()->getType()));
        } else if (llvm::isa<llvm::VAArgInst>(&each)) {
            calls_.unseen(each);
        } else if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&each)) {
            instrument_call(*call);
        }
    }

    void access(llvm::Instruction& before, kind is, llvm::Value* address, llvm::Type* type) {
        const auto size = layout_.getTypeStoreSize(type);
        // An address in another address space: relative to a segment register.
        if (size.isScalable() || address->getType()->getPointerAddressSpace() != 0)
            return calls_.unseen(before);
        if (address->isSwiftError()) return;  // a register
        calls_.access(before, is, address, size.getFixedSize());
    }
    /// On x86-64, two numbers of 4 bytes and two pointers, except for Windows functions.
    [[nodiscard]] std::uint64_t va_list_bytes() const {
        return in_.getCallingConv() == llvm::CallingConv::Win64 ? 8 : 24;
    }
    [[nodiscard]] std::uint64_t size_of(llvm::Type* type) const {
        return layout_.getTypeStoreSize(type).getFixedSize();
    }

    void instrument_call(llvm::CallBase& call) {
        for (unsigned i = 0; i < call.arg_size(); ++i) {
            if (call.isByValArgument(i))
                calls_.access(call, kind::load, call.getArgOperand(i),
                              size_of(call.getParamByValType(i)));
        }
        if (call.isInlineAsm()) return instrument_assembler(call);
        if (auto* const any = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&call)) {
            if (auto* const copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(any))
                calls_.range(call, kind::load, copy->getRawSource(), any->getLength());
            return calls_.range(call, kind::store, any->getRawDest(), any->getLength());
        }
        if (auto* const start = llvm::dyn_cast<llvm::VAStartInst>(&call))
            return calls_.access(call, kind::store, start->getArgList(), va_list_bytes());
        if (auto* const copy = llvm::dyn_cast<llvm::VACopyInst>(&call)) {
            calls_.access(call, kind::load, copy->getSrc(), va_list_bytes());
            return calls_.access(call, kind::store, copy->getDest(), va_list_bytes());
        }
        if (auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
            if (!instrument_lanes(*intrinsic, calls_, layout_) && may_reference(*intrinsic))
                calls_.unseen(call);
            return;
        }
        if (const auto is = allocation_call_of(call)) instrument_allocation(call, *is);
        const llvm::Function* const callee = call.getCalledFunction();
        if (callee == nullptr || !callee->isDeclaration()) return;
        if (callee->getName() == "posix_memalign" && call.arg_size() == 3)
            return instrument_aligned_allocation(call);
        const auto is = range_call_of(callee->getName());
        if (!is || call.arg_size() <= is->size) return;
        llvm::Value* const size = call.getArgOperand(is->size);
        if (is->from != range_call::none)
            calls_.range(call, kind::load, call.getArgOperand(is->from), size);
        calls_.range(call, kind::store, call.getArgOperand(is->to), size);
    }

    void instrument_allocation(llvm::CallBase& call, const allocation_call& is) {
        llvm::Instruction* next = nullptr;
        if (auto* const invoke = llvm::dyn_cast<llvm::InvokeInst>(&call)) {
            llvm::BasicBlock* to = invoke->getNormalDest();
            // If other branches also lead there, control may arrive without the call.
            if (to->getSinglePredecessor() == nullptr) to = llvm::SplitEdge(call.getParent(), to);
            next = &*to->getFirstInsertionPt();
        } else {
            if (call.isMustTailCall() || call.isTerminator()) return;
            next = call.getNextNode();
        }
        llvm::Value* const count =
            is.count == allocation_call::none ? nullptr : call.getArgOperand(is.count);
        calls_.allocated(&call, *next, call.getArgOperand(is.size), count);
    }

    /// For a function that returns 0 and stores the address of the memory.
    void instrument_aligned_allocation(llvm::CallBase& call) {
        if (call.isTerminator() || !call.getType()->isIntegerTy()) return;
        llvm::Instruction& next = *call.getNextNode();
        llvm::IRBuilder<> make(&next);
        auto* const type = make.getInt8PtrTy();
        llvm::Value* const to = make.CreatePointerCast(call.getArgOperand(0), type->getPointerTo());
        llvm::Value* const worked =
            make.CreateICmpEQ(&call, llvm::Constant::getNullValue(call.getType()));
        // The two words exist and are read even if the call failed.
        calls_.allocated(make.CreateSelect(worked, make.CreateLoad(type, to),
                                           llvm::Constant::getNullValue(type)),
                         next, call.getArgOperand(2), nullptr);
    }

    /// Whether an intrinsic's instruction may reference memory of the program: a target-specific
    /// one that affects memory, unless only the processor sees that effect.
    [[nodiscard]] static bool may_reference(const llvm::IntrinsicInst& call) {
        const llvm::StringRef name = call.getCalledFunction()->getName();
        const bool of_target = call.getCalledFunction()->isTargetIntrinsic();
        if (!of_target || !call.mayReadOrWriteMemory()) return false;
        if (name.contains("prefetch") || name.contains("clflush") || name.contains("clwb"))
            return false;
        return llvm::any_of(call.args(), [](const llvm::Use& argument) {
            return argument->getType()->isPointerTy();
        });
    }

    /// Its operands in memory, loads first. Other effects on memory cannot be known.
    void instrument_assembler(llvm::CallBase& call) {
        const auto& text = *llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
        unsigned argument = 0;
        bool may_reference = false, has_operand = false;
        llvm::SmallVector<std::pair<unsigned, kind>, 4> operands;
        for (const auto& each : text.ParseConstraints()) {
            if (each.Type == llvm::InlineAsm::isClobber) {
                may_reference |= llvm::is_contained(each.Codes, "{memory}");
                continue;
            }
            const bool is_output = each.Type == llvm::InlineAsm::isOutput;
            if (is_output && !each.isIndirect) continue;  // a result
            if (argument == call.arg_size()) break;
            if (each.isIndirect) {
                operands.emplace_back(argument, is_output ? kind::store : kind::load);
            } else {
                may_reference |= call.getArgOperand(argument)->getType()->isPointerTy();
            }
            ++argument;
        }
        for (const kind is : {kind::load, kind::store}) {
            for (const auto& [number, its_kind] : operands) {
                llvm::Type* const type = type_behind(call, number);
                if (its_kind != is || type == nullptr) continue;
                access(call, is, call.getArgOperand(number), type);
                has_operand = true;
            }
        }
        const bool does_something = !llvm::StringRef(text.getAsmString()).trim().empty();
        if (does_something && !has_operand && may_reference) calls_.unseen(call);
    }
    [[nodiscard]] static llvm::Type* type_behind(const llvm::CallBase& call, unsigned argument) {
        const llvm::Attribute told = call.getParamAttr(argument, llvm::Attribute::ElementType);
        if (told.isValid()) return told.getValueAsType();
        auto* const pointer =
            llvm::cast<llvm::PointerType>(call.getArgOperand(argument)->getType());
        return pointer->isOpaque() ? nullptr : pointer->getNonOpaquePointerElementType();
    }

    llvm::Function& in_;
    hooks& calls_;
    const llvm::DataLayout& layout_;
};

/// Marks functions that have their hooks: a module may be compiled further from its intermediate
/// code.
constexpr const char* has_hooks = "address-trace";

/// Excludes functions that must not call anything, or do not exist at run time.
[[nodiscard]] bool can_be_instrumented(const llvm::Function& function) {
    return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
           !function.hasFnAttribute(llvm::Attribute::Naked) &&
           !function.hasFnAttribute(llvm::Attribute::DisableSanitizerInstrumentation) &&
           !function.hasFnAttribute(has_hooks) && !function.getName().startswith("__trace_ring_");
}

}  // namespace

bool instrument_module(llvm::Module& module) {
    llvm::SmallPtrSet<const llvm::Function*, 4> resolvers;  // they run before calls can be resolved
    for (const llvm::GlobalIFunc& each : module.ifuncs())
        resolvers.insert(each.getResolverFunction());
    hooks calls(module);
    bool any = false;
    for (llvm::Function& each : module) {
        if (!can_be_instrumented(each) || resolvers.contains(&each)) continue;
        function_instrumenter(each, calls).run();
        each.addFnAttr(has_hooks);
        any = true;
    }
    if (any) calls.loaded().addFnAttr(has_hooks);
    return any;
}

}  // namespace address_trace::pass
