// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A copy of a record. It is valid while its trace is open.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <trace_ring/reduce/item/record_view.hpp>

namespace records {

/// The properties of a record that are not in its words.
[[nodiscard]] inline trace_ring::reduce::record_view::kind kind_of_copy(
    const trace_ring::reduce::record_view& of) noexcept {
    trace_ring::reduce::record_view::kind made;
    made.lane = &of.lane();
    made.type = of.known() ? &of.type() : nullptr;
    made.high = of.time() & ~std::uint64_t{0xFFFFFFFF};
    made.latest = of.latest().value_or(~std::uint64_t{0});
    made.offset = of.offset();
    return made;
}
/// Adds a record's words to others.
inline void append_words(std::vector<std::uint64_t>& to,
                         const trace_ring::reduce::record_view& of) {
    const std::size_t at = to.size();
    to.resize(at + of.bytes() / 8);
    // The header word lies before the payload.
    std::memcpy(to.data() + at, of.payload().data() - 8, of.bytes());
}

class kept_record {
public:
    kept_record() = default;
    explicit kept_record(const trace_ring::reduce::record_view& of)
        : at_(of.position()), kind_(kind_of_copy(of)) {
        append_words(words_, of);
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

}  // namespace records
