// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Passes the references of a trace to the analyses, in the order in which each thread made
/// them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/instrument/references.hpp>

#include "../../symbols/loaded_module.hpp"
#include "../analysis/analyses.hpp"

namespace address_trace {

using symbols::loaded_module;

/// A record of references, in place.
struct references_record {
    std::uint32_t thread = 0, place = 0, sequence = 0;
    std::uint64_t time = 0;
    bool packed = false;
    std::span<const std::byte> bytes;  ///< packed, or plain_reference
};

/// Where a thread's stack is.
struct stack_range {
    std::uint32_t thread = 0;
    std::uint64_t low = 0, high = 0;

    friend bool operator==(const stack_range&, const stack_range&) = default;
};

/// The last record of a kept trace: what its run counted.
struct trace_end : trace_ring::event<"references.end", trace_ring::field<"calls", std::uint64_t>,
                                     trace_ring::field<"lost_references", std::uint64_t>> {};
struct run_end {
    std::uint64_t calls = 0;  ///< of hooks
    std::uint64_t lost_references = 0;
};

class reference_stream {
public:
    explicit reference_stream(analyses& to) : to_(to) {}

    /// Takes one record of references. A record that comes too early waits for its predecessors.
    void take(const references_record& record) {
        place_order& order = places_[record.place];
        if (record.sequence < order.next) return;  // it was already taken
        if (record.sequence > order.next) {
            order.waiting.try_emplace(record.sequence, record);
            if (order.waiting.size() > most_waiting) go_on_behind_a_gap(order);
            return;
        }
        analyse(record);
        ++order.next;
        while (!order.waiting.empty() && order.waiting.begin()->first == order.next) {
            take_first(order);
        }
    }
    /// No more records will come: waiting records are taken without the missing ones.
    void finish() {
        for (auto& [place, order] : places_) {
            while (!order.waiting.empty()) go_on_behind_a_gap(order);
        }
    }

    /// Records that are missing between others.
    [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }
    /// Bytes of references, and the number of invalid ones.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
    /// The number of references.
    [[nodiscard]] std::uint64_t references() const noexcept { return references_; }
    [[nodiscard]] const std::vector<loaded_module>& modules() const noexcept { return modules_; }
    /// Whether a record with this place and number was taken.
    [[nodiscard]] bool has(std::uint32_t place, std::uint32_t sequence) const {
        const auto found = places_.find(place);
        return found != places_.end() &&
               (sequence < found->second.next || found->second.waiting.count(sequence) != 0);
    }

    /// Duplicates are ignored.
    void add(loaded_module found) {
        for (const auto& each : modules_) {
            if (each == found) return;
        }
        if (modules_.size() == most_modules) return;
        to_.load(found);
        modules_.push_back(std::move(found));
    }
    void add(const stack_range& found) {
        if (stacks_.size() < most_stacks) stacks_.push_back(found);
    }
    void add(const run_end& end) { end_ = end; }
    /// The counts of a kept trace's run; empty: it was interrupted, or the trace was full.
    [[nodiscard]] const std::optional<run_end>& end() const noexcept { return end_; }
    [[nodiscard]] const std::vector<stack_range>& stacks() const noexcept { return stacks_; }

private:
    /// A record with a copy of its bytes.
    struct waiting_record {
        explicit waiting_record(const references_record& of)
            : kept(of.bytes.begin(), of.bytes.end()), record(of) {
            record.bytes = kept;
        }
        std::vector<std::byte> kept;
        references_record record;
    };
    struct place_order {
        std::uint32_t next = 0;
        std::map<std::uint32_t, waiting_record> waiting;  // by sequence
    };
    void go_on_behind_a_gap(place_order& order) {
        missing_ += order.waiting.begin()->first - order.next;
        order.next = order.waiting.begin()->first;
        do {
            take_first(order);
        } while (!order.waiting.empty() && order.waiting.begin()->first == order.next);
    }
    void take_first(place_order& order) {
        const auto first = order.waiting.extract(order.waiting.begin());
        analyse(first.mapped().record);
        ++order.next;
    }
    void analyse(const references_record& record) {
        using trace_ring::plain_reference;
        bytes_ += record.bytes.size();
        if (!record.packed) {
            const std::span all(reinterpret_cast<const plain_reference*>(record.bytes.data()),
                                record.bytes.size() / sizeof(plain_reference));
            std::size_t count = 0;
            references_ += to_.take(record.thread, record.time, all.size(), [&](auto&& visit) {
                count = trace_ring::visit_plain(all, visit);
            });
            damaged_ += (all.size() - count) * sizeof(plain_reference);
            return;
        }
        std::size_t end = 0;
        references_ += to_.take(record.thread, record.time, record.bytes.size(), [&](auto&& visit) {
            end = unpacker_.unpack(record.bytes.data(), record.bytes.size(), visit);
        });
        damaged_ += record.bytes.size() - end;
    }

    static constexpr std::size_t most_modules = 10'000, most_stacks = 100'000;
    /// More records than can come between a record and its predecessor of the same thread.
    static constexpr std::size_t most_waiting = 256;

    analyses& to_;
    trace_ring::reference_unpacker unpacker_;
    std::unordered_map<std::uint32_t, place_order> places_;
    std::vector<loaded_module> modules_;
    std::vector<stack_range> stacks_;
    std::optional<run_end> end_;
    std::uint64_t missing_ = 0, bytes_ = 0, damaged_ = 0, references_ = 0;
};

}  // namespace address_trace
