// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A copy of a record, which is good for as long as its trace is open.

#include <cstdint>
#include <cstring>
#include <vector>

#include <trace_ring/reduce/item/record_view.hpp>

namespace trace_reduce::sql {

class kept_record {
public:
    kept_record() = default;
    explicit kept_record(const trace_ring::reduce::record_view& of)
        : words_(of.bytes() / 8), at_(of.position()) {
        // The header word lies before the payload.
        std::memcpy(words_.data(), of.payload().data() - 8, of.bytes());
        kind_.lane = &of.lane();
        kind_.type = of.known() ? &of.type() : nullptr;
        kind_.high = of.time() & ~std::uint64_t{0xFFFFFFFF};
        kind_.latest = of.latest().value_or(~std::uint64_t{0});
        kind_.offset = of.offset();
    }

    [[nodiscard]] explicit operator bool() const noexcept { return !words_.empty(); }
    [[nodiscard]] trace_ring::reduce::record_view view() const noexcept {
        return {kind_, words_.data(), at_};
    }

private:
    std::vector<std::uint64_t> words_;
    trace_ring::position at_ = 0;
    trace_ring::reduce::record_view::kind kind_;
};

}  // namespace trace_reduce::sql
