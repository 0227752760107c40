// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records that hold many other records in one field, packed. A reader returns the packed record,
/// unless its program gives it a `packing` that can unpack them (instrument/reference_packing.hpp).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <trace_ring/reduce/tables/event_type.hpp>

namespace trace_ring::inline v1::reduce {

struct filter;
class record_view;
class unpacked_records;

/// Has no state, and must outlive the traces that use it. Several threads may call it.
class packing {
public:
    packing() = default;
    packing(const packing&) = delete;
    packing& operator=(const packing&) = delete;

    /// The index of the field in which records of this type pack others; npos: they do not.
    [[nodiscard]] virtual std::size_t packed_field(const event_type& type) const = 0;
    /// The types of the records that records of this type pack. Their ids are above
    /// layout::max_event_id, so no record in a file has them.
    [[nodiscard]] virtual std::vector<event_type> unpacked_types(const event_type& type) const = 0;
    /// Whether a reader with this filter unpacks records.
    [[nodiscard]] virtual bool is_wanted(const filter& by) const = 0;
    /// The thread that made the packed records; 0: the one that recorded them.
    [[nodiscard]] virtual std::uint32_t thread_of(const record_view& record) const = 0;
    /// Adds the records that `packed`, the bytes of the field, hold. Returns the number of bytes
    /// before the first that makes no sense. Throws std::bad_alloc.
    [[nodiscard]] virtual std::size_t unpack(std::span<const std::byte> packed,
                                             unpacked_records& into) const = 0;
    /// The report if a byte makes no sense; a literal.
    [[nodiscard]] virtual std::string_view fault() const = 0;

protected:
    ~packing() = default;
};

}  // namespace trace_ring::inline v1::reduce
