// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP records as the record policy of a ring: one ring for a single writer, a ring for each
/// thread, or one with a lane for each processor.
/// @code
///   struct trap_trace : trace_ring::policies<trace_ring::record::cptrap_record<>,
///                                            trace_ring::full::discard_newest> {};
///   trace_ring::ring<trap_trace> ring;
///
///   ring.put(std::uint16_t{3}, bytes);   // CP interface data with code 3
///   ring.put(entry);                     // an entry of CP's trace table
///
///   for (auto reader = ring.backward_reader(); const auto item = reader.next();) {
///       if (const auto seen = trap_trace::record_policy::see(item)) use(seen->code, seen->data());
///   }
/// @endcode
/// In the ring an exact CPTRAP record is the payload, padded with zeros to a multiple of 8; the
/// record's id is its type. This policy records without asking; cptrap/interface.hpp first asks
/// whether CPTRAP is active and the record is chosen.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/policies.hpp>

namespace trace_ring::inline v1::record {

/// The CPTRAP record in a ring's payload; empty if it is none, or its type is not `id`.
/// Signal-safe, constant time.
[[nodiscard]] constexpr std::optional<cptrap_view> see_cptrap(
    std::uint16_t id, std::span<const std::byte> payload) noexcept {
    auto seen = view_cptrap(payload);
    if (!seen || seen->type == cptrap_type::none || static_cast<std::uint16_t>(seen->type) != id ||
        payload.size() - seen->bytes.size() >= 8) {
        return {};
    }
    return seen;
}

/// The record policy, in sub-buffers of `Bytes`, like record::sub_buffers<Bytes>.
template <std::size_t Bytes = 4096>
struct cptrap_record : sub_buffers<Bytes> {
    static constexpr std::size_t most_bytes = cptrap_most_bytes;  ///< the most bytes of a record

    /// Lays out a record of any type that has the header. Longer data are silently cut to 264
    /// bytes.
    [[nodiscard]] static constexpr laid_out lay_out(std::span<std::byte> into, cptrap_type type,
                                                    std::uint16_t code,
                                                    std::span<const std::byte> data) noexcept {
        return {static_cast<std::uint16_t>(type), put_cptrap(into, type, code, data)};
    }
    /// Lays out CP interface data.
    [[nodiscard]] static constexpr laid_out lay_out(std::span<std::byte> into, std::uint16_t code,
                                                    std::span<const std::byte> data) noexcept {
        return lay_out(into, cptrap_type::cp_interface, code, data);
    }
    /// Lays out an entry of CP's trace table, as this library's type table_entry.
    [[nodiscard]] static laid_out lay_out(std::span<std::byte> into,
                                          const cp_entry& entry) noexcept {
        return lay_out(into, cptrap_type::table_entry, std::to_integer<std::uint16_t>(entry.code),
                       std::as_bytes(std::span{&entry, 1}));
    }

    /// The CPTRAP record in a reader's item, which has an `id` and a `payload`. Empty if it is
    /// none.
    template <class Item>
    [[nodiscard]] static constexpr std::optional<cptrap_view> see(const Item& item) noexcept {
        return see_cptrap(item.id, std::as_bytes(item.payload));
    }
};

}  // namespace trace_ring::inline v1::record

namespace trace_ring::inline v1::presets {

/// One writer's CPTRAP records, for a spool: when there is no room the newest are refused.
template <std::uint64_t Bytes = 65536>
struct traps : policies<record::cptrap_record<>, claim::single_writer, full::discard_newest,
                        clock::none, storage::inline_bytes<Bytes>> {};

}  // namespace trace_ring::inline v1::presets
