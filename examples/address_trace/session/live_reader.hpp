// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Takes the references from a trace while it is drained.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>

#include "reference_stream.hpp"

namespace address_trace {

class live_reader {
public:
    /// Throws format_error if `file` is not a readable trace.
    live_reader(const std::string& file, reference_stream& to)
        : about_(trace_ring::reduce::source::open(file)), to_(to) {}

    void take(const trace_ring::drained_sub_buffer& part) {
        part.visit([this](const trace_ring::drained_record& record) { take(record); });
    }

private:
    /// The meaning of a record, by its lane and id.
    enum class meaning { other, packed, plain, module, stack };

    void take(const trace_ring::drained_record& record) {
        switch (meaning_of(record)) {
            case meaning::other:
                return;
            case meaning::packed:
                return take_references(record, true);
            case meaning::plain:
                return take_references(record, false);
            case meaning::module:
                return take_module(record);
            case meaning::stack:
                return take_stack(record);
        }
    }
    void take_references(const trace_ring::drained_record& record, bool packed) {
        constexpr std::size_t fixed = 16;
        if (record.payload.size_bytes() < fixed) return;
        const auto bytes = std::as_bytes(record.payload).subspan(fixed);
        const auto length =
            static_cast<std::size_t>(record.payload[1] >> 32 & trace_ring::variable_length_mask);
        if (length > bytes.size()) return;
        to_.take({static_cast<std::uint32_t>(record.payload[0]),
                  static_cast<std::uint32_t>(record.payload[0] >> 32),
                  static_cast<std::uint32_t>(record.payload[1]), record.time, packed,
                  bytes.first(length)});
    }
    void take_stack(const trace_ring::drained_record& record) {
        if (record.payload.size() < 3) return;
        to_.add(stack_range{static_cast<std::uint32_t>(record.payload[0]), record.payload[1],
                            record.payload[2]});
    }
    void take_module(const trace_ring::drained_record& record) {
        constexpr std::size_t fixed = 32;
        if (record.payload.size_bytes() < fixed) return;
        const auto bytes = std::as_bytes(record.payload);
        std::size_t at = fixed;
        const auto next = [&](unsigned shift) {
            const auto length = static_cast<std::size_t>(record.payload[3] >> shift &
                                                         trace_ring::variable_length_mask);
            at = (at + 7) / 8 * 8;
            if (at > bytes.size() || length > bytes.size() - at) return std::string();
            const auto* const from = reinterpret_cast<const char*>(bytes.data() + at);
            at += length;
            return std::string(from, length);
        };
        loaded_module found{record.payload[0], record.payload[1], record.payload[2], {}, {}};
        found.build_id = next(0);
        found.path = next(16);
        to_.add(std::move(found));
    }

    [[nodiscard]] meaning meaning_of(const trace_ring::drained_record& record) {
        const std::uint64_t key = std::uint64_t{record.lane} << 16 | record.id;
        if (const auto known = meanings_.find(key); known != meanings_.end()) return known->second;
        const auto* const type = about_.type_of_drained(record.lane, record.id);
        if (type == nullptr) return meaning::other;
        const meaning is = type->name == "references"         ? meaning::packed
                           : type->name == "references.plain" ? meaning::plain
                           : type->name == "module"           ? meaning::module
                           : type->name == "thread.stack"     ? meaning::stack
                                                              : meaning::other;
        meanings_.emplace(key, is);
        return is;
    }

    trace_ring::reduce::tables about_;
    reference_stream& to_;
    std::unordered_map<std::uint64_t, meaning> meanings_;  // by lane and id
};

}  // namespace address_trace
