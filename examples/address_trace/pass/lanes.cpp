// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "lanes.hpp"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "hooks.hpp"

namespace address_trace::pass {
namespace {

[[nodiscard]] std::uint64_t lane_bytes(llvm::Type* vector, const llvm::DataLayout& layout) {
    return layout.getTypeStoreSize(vector->getScalarType()).getFixedSize();
}
[[nodiscard]] unsigned lane_count(const llvm::Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}
[[nodiscard]] bool is_fixed(const llvm::Value* vector) {
    return llvm::isa<llvm::FixedVectorType>(vector->getType());
}

/// The lanes whose highest bit is set, as in x86's vector masks.
[[nodiscard]] llvm::Value* active_by_sign(llvm::IntrinsicInst& call, llvm::Value* mask) {
    llvm::IRBuilder<> make(&call);
    auto* const type = llvm::cast<llvm::VectorType>(mask->getType());
    auto* const numbers = llvm::VectorType::getInteger(type);
    return make.CreateICmpSLT(make.CreateBitCast(mask, numbers),
                              llvm::Constant::getNullValue(numbers));
}
/// The first `count` lanes.
[[nodiscard]] llvm::Value* first_lanes(llvm::IntrinsicInst& call, llvm::Value* vector,
                                       unsigned count) {
    if (lane_count(vector) == count) return vector;
    llvm::SmallVector<int, 16> which;
    for (unsigned i = 0; i < count; ++i) which.push_back(static_cast<int>(i));
    return llvm::IRBuilder<>(&call).CreateShuffleVector(vector, which);
}

/// base + index * scale for each lane.
void indexed(llvm::IntrinsicInst& call, hooks& calls, kind is, llvm::Value* base,
             llvm::Value* index, llvm::Value* active, llvm::Value* scale, std::uint64_t bytes) {
    const unsigned count = std::min(lane_count(index), lane_count(active));
    llvm::IRBuilder<> make(&call);
    index = first_lanes(call, index, count);
    auto* const wide = llvm::FixedVectorType::get(make.getInt64Ty(), count);
    llvm::Value* const steps =
        make.CreateVectorSplat(count, make.CreateZExt(scale, make.getInt64Ty()));
    llvm::Value* const from =
        make.CreateVectorSplat(count, make.CreatePtrToInt(base, make.getInt64Ty()));
    llvm::Value* const addresses =
        make.CreateAdd(from, make.CreateMul(make.CreateSExt(index, wide), steps));
    calls.scattered_lanes(call, is, addresses, first_lanes(call, active, count), bytes);
}

[[nodiscard]] bool is_bits(const llvm::Value* value) {
    return is_fixed(value) && value->getType()->getScalarType()->isIntegerTy(1);
}

/// x86's instructions, by name. Their arguments determine the rest.
[[nodiscard]] bool instrument_x86(llvm::IntrinsicInst& call, hooks& calls,
                                  const llvm::DataLayout& layout) {
    llvm::StringRef name = call.getCalledFunction()->getName();
    if (!name.consume_front("llvm.x86.")) return false;
    const auto argument = [&call](unsigned i) { return call.getArgOperand(i); };
    if (name.startswith("sse3.ldu") || name.startswith("avx.ldu")) {
        calls.access(call, kind::load, argument(0),
                     layout.getTypeStoreSize(call.getType()).getFixedSize());
        return true;
    }
    if (name == "sse.ldmxcsr" || name == "sse.stmxcsr") {
        calls.access(call, name == "sse.ldmxcsr" ? kind::load : kind::store, argument(0), 4);
        return true;
    }
    if (name == "sse2.maskmov.dqu") {
        calls.lanes(call, kind::store, argument(2), active_by_sign(call, argument(1)), 1);
        return true;
    }
    if (name.startswith("avx.maskload") || name.startswith("avx2.maskload")) {
        calls.lanes(call, kind::load, argument(0), active_by_sign(call, argument(1)),
                    lane_bytes(call.getType(), layout));
        return true;
    }
    if (name.startswith("avx.maskstore") || name.startswith("avx2.maskstore")) {
        calls.lanes(call, kind::store, argument(0), active_by_sign(call, argument(1)),
                    lane_bytes(argument(2)->getType(), layout));
        return true;
    }
    // (from before, base, index, mask, scale), the mask by signs or bits
    if (name.startswith("avx2.gather.") || name.startswith("avx512.mask.gather")) {
        if (call.arg_size() != 5 || !is_fixed(argument(2)) || !is_fixed(argument(3))) return false;
        llvm::Value* const active =
            is_bits(argument(3)) ? argument(3) : active_by_sign(call, argument(3));
        indexed(call, calls, kind::load, argument(1), argument(2), active, argument(4),
                lane_bytes(call.getType(), layout));
        return true;
    }
    // (base, mask, index, data, scale)
    if (name.startswith("avx512.mask.scatter")) {
        if (call.arg_size() != 5 || !is_bits(argument(1)) || !is_fixed(argument(2))) return false;
        indexed(call, calls, kind::store, argument(0), argument(2), argument(1), argument(4),
                lane_bytes(argument(3)->getType(), layout));
        return true;
    }
    return false;
}

void instrument_pointers(llvm::IntrinsicInst& call, hooks& calls, kind is, llvm::Value* pointers,
                         llvm::Value* active, std::uint64_t bytes) {
    llvm::IRBuilder<> make(&call);
    auto* const wide = llvm::FixedVectorType::get(make.getInt64Ty(), lane_count(pointers));
    calls.scattered_lanes(call, is, make.CreatePtrToInt(pointers, wide), active, bytes);
}

}  // namespace

bool instrument_lanes(llvm::IntrinsicInst& call, hooks& calls, const llvm::DataLayout& layout) {
    const auto argument = [&call](unsigned i) { return call.getArgOperand(i); };
    const auto loaded = [&] { return lane_bytes(call.getType(), layout); };
    const auto stored = [&] { return lane_bytes(argument(0)->getType(), layout); };
    const auto compact = [&](kind is, llvm::Value* address, llvm::Value* active,
                             std::uint64_t bytes) {
        llvm::IRBuilder<> make(&call);
        llvm::Value* const count =
            make.CreateZExtOrTrunc(calls.count_of(call, active), calls.size_type());
        calls.range(call, is, address,
                    make.CreateMul(count, llvm::ConstantInt::get(calls.size_type(), bytes)));
    };
    switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::masked_load:  // (address, alignment, mask, other)
            if (!is_fixed(argument(2))) return false;
            calls.lanes(call, kind::load, argument(0), argument(2), loaded());
            return true;
        case llvm::Intrinsic::masked_store:  // (value, address, alignment, mask)
            if (!is_fixed(argument(3))) return false;
            calls.lanes(call, kind::store, argument(1), argument(3), stored());
            return true;
        case llvm::Intrinsic::masked_gather:  // (addresses, alignment, mask, other)
            if (!is_fixed(argument(2))) return false;
            instrument_pointers(call, calls, kind::load, argument(0), argument(2), loaded());
            return true;
        case llvm::Intrinsic::masked_scatter:  // (value, addresses, alignment, mask)
            if (!is_fixed(argument(3))) return false;
            instrument_pointers(call, calls, kind::store, argument(1), argument(3), stored());
            return true;
        case llvm::Intrinsic::masked_expandload:  // (address, mask, other)
            if (!is_fixed(argument(1))) return false;
            compact(kind::load, argument(0), argument(1), loaded());
            return true;
        case llvm::Intrinsic::masked_compressstore:  // (value, address, mask)
            if (!is_fixed(argument(2))) return false;
            compact(kind::store, argument(1), argument(2), stored());
            return true;
        default:
            return instrument_x86(call, calls, layout);
    }
}

}  // namespace address_trace::pass
