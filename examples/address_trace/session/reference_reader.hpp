// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Takes the references out of the records of a trace, and gives them to the analyses in the order
/// in which each thread made them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/record/event/references.hpp>
#include <trace_ring/reduce/tables.hpp>
#include <trace_ring/ring/sub_buffers/drained.hpp>

#include "../analysis/analyses.hpp"

namespace address_trace {

/// Where a program or library lay in memory.
struct loaded_module {
    std::uint64_t start = 0, end = 0, bias = 0;
    std::string build_id;  ///< its bytes
    std::string path;

    friend bool operator==(const loaded_module&, const loaded_module&) = default;
};

class reference_reader {
public:
    /// Throws format_error if `file` is no trace that can be read.
    reference_reader(const std::string& file, analyses& to)
        : about_(trace_ring::reduce::source::open(file)), to_(to) {}

    void take(const trace_ring::drained_sub_buffer& part) {
        part.visit([this](const trace_ring::drained_record& record) { take(record); });
    }

    /// One record of references. What comes before its turn waits for it.
    void take(std::uint32_t thread, std::uint32_t place, std::uint32_t sequence, std::uint64_t time,
              std::span<const std::byte> packed) {
        place_order& order = places_[place];
        if (sequence < order.next) return;  // it was taken before
        if (sequence > order.next) {
            order.waiting.try_emplace(sequence, thread, time, packed);
            if (order.waiting.size() > most_waiting) go_on_behind_a_gap(order);
            return;
        }
        analyse(thread, time, packed);
        ++order.next;
        while (!order.waiting.empty() && order.waiting.begin()->first == order.next) {
            take_first(order);
        }
    }
    /// Nothing comes any more: what waits is taken without what is missing.
    void finish() {
        for (auto& [place, order] : places_) {
            while (!order.waiting.empty()) go_on_behind_a_gap(order);
        }
    }

    /// Records that are missing between others.
    [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }
    /// Bytes of packed references, and how many of them made no sense.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
    [[nodiscard]] const std::vector<loaded_module>& modules() const noexcept { return modules_; }
    /// Whether a record of this place and number was taken.
    [[nodiscard]] bool has(std::uint32_t place, std::uint32_t sequence) const {
        const auto found = places_.find(place);
        return found != places_.end() &&
               (sequence < found->second.next || found->second.waiting.count(sequence) != 0);
    }

private:
    struct waiting_record {
        waiting_record(std::uint32_t of, std::uint64_t at, std::span<const std::byte> bytes)
            : thread(of), time(at), packed(bytes.begin(), bytes.end()) {}
        std::uint32_t thread;
        std::uint64_t time;
        std::vector<std::byte> packed;
    };
    struct place_order {
        std::uint32_t next = 0;
        std::map<std::uint32_t, waiting_record> waiting;  // by sequence
    };
    /// What a record of some lane and id is.
    enum class meaning { other, references, module };

    void take(const trace_ring::drained_record& record) {
        switch (meaning_of(record)) {
            case meaning::other:
                return;
            case meaning::references:
                return take_references(record);
            case meaning::module:
                return take_module(record);
        }
    }
    void take_references(const trace_ring::drained_record& record) {
        constexpr std::size_t fixed = 16;
        if (record.payload.size_bytes() < fixed) return;
        const auto packed = std::as_bytes(record.payload).subspan(fixed);
        const auto length =
            static_cast<std::size_t>(record.payload[1] >> 32 & trace_ring::variable_length_mask);
        if (length > packed.size()) return;
        take(static_cast<std::uint32_t>(record.payload[0]),
             static_cast<std::uint32_t>(record.payload[0] >> 32),
             static_cast<std::uint32_t>(record.payload[1]), record.time, packed.first(length));
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
        for (const auto& each : modules_) {
            if (each == found) return;
        }
        if (modules_.size() < most_modules) modules_.push_back(std::move(found));
    }

    void go_on_behind_a_gap(place_order& order) {
        missing_ += order.waiting.begin()->first - order.next;
        order.next = order.waiting.begin()->first;
        do {
            take_first(order);
        } while (!order.waiting.empty() && order.waiting.begin()->first == order.next);
    }
    void take_first(place_order& order) {
        const auto first = order.waiting.extract(order.waiting.begin());
        const waiting_record& record = first.mapped();
        analyse(record.thread, record.time, record.packed);
        ++order.next;
    }
    void analyse(std::uint32_t thread, std::uint64_t time, std::span<const std::byte> packed) {
        std::size_t end = 0;
        to_.take(thread, time, packed.size(), [&](auto&& visit) {
            end = unpacker_.unpack(packed.data(), packed.size(), visit);
        });
        bytes_ += packed.size();
        damaged_ += packed.size() - end;
    }

    [[nodiscard]] meaning meaning_of(const trace_ring::drained_record& record) {
        const std::uint64_t key = std::uint64_t{record.lane} << 16 | record.id;
        if (const auto known = meanings_.find(key); known != meanings_.end()) return known->second;
        const trace_ring::reduce::event_type* type = type_of(record);
        if (type == nullptr) {
            about_.refresh();
            type = type_of(record);
        }
        // Of a lane that has left the table.
        if (type == nullptr) type = about_.events().find_only(record.id);
        if (type == nullptr) return meaning::other;
        const meaning is = type->name == "references" ? meaning::references
                           : type->name == "module"   ? meaning::module
                                                      : meaning::other;
        meanings_.emplace(key, is);
        return is;
    }
    [[nodiscard]] const trace_ring::reduce::event_type* type_of(
        const trace_ring::drained_record& record) const {
        const auto* const lane = about_.find_lane(record.lane);
        if (lane == nullptr || !lane->root) return nullptr;
        return about_.events().find(*lane->root, record.id);
    }

    static constexpr std::size_t most_modules = 10'000;
    /// More than come between a record and the one that was made before it, of the same thread.
    static constexpr std::size_t most_waiting = 256;

    trace_ring::reduce::tables about_;
    analyses& to_;
    trace_ring::reference_unpacker unpacker_;
    std::unordered_map<std::uint32_t, place_order> places_;
    std::unordered_map<std::uint64_t, meaning> meanings_;  // by lane and id
    std::vector<loaded_module> modules_;
    std::uint64_t missing_ = 0, bytes_ = 0, damaged_ = 0;
};

}  // namespace address_trace
