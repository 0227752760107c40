// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Where the records go.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include <clickhouse/record_table.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/reduce/item.hpp>

namespace trace_ship {

namespace reduce = trace_ring::reduce;

/// What has arrived of one trace.
struct delivered {
    struct of_lane {
        trace_ring::position next = 0;      ///< everything before it has, as a record or a loss
        std::uint64_t positions = 0;        ///< how many of those
        trace_ring::loss_counts counted{};  ///< losses that are not known by their positions
    };
    /// By lane; 0: losses of no lane.
    std::map<std::uint32_t, of_lane> lanes{};
    /// Of clock jumps and damage, which have no count: lane, position, ticks or offset.
    using place = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
    std::set<place> places{};

    /// By what an item is recognized in `places`; nothing: by its position or its count.
    [[nodiscard]] static std::optional<place> place_of(const reduce::item& what) {
        std::uint64_t where = 0;
        if (const auto* jump = std::get_if<reduce::clock_jump>(&what)) {
            where = jump->time;
        } else if (const auto* loss = std::get_if<reduce::loss_item>(&what);
                   loss != nullptr && loss->cause == trace_ring::loss_cause::damaged &&
                   (loss->lane == nullptr || loss->count == 0)) {
            where = loss->offset;
        } else {
            return std::nullopt;
        }
        const auto [lane, position] = clickhouse::place_of(what);
        return place{lane, position, where};
    }
};

class destination {
public:
    destination() = default;
    destination(const destination&) = delete;
    virtual ~destination() = default;

    /// For messages.
    [[nodiscard]] virtual std::string name() const = 0;
    /// Makes ready what the records need there, and waits until nothing that an earlier run has
    /// sent can arrive any more. Throws no_answer or refusal, as the next do: then it may be called
    /// again.
    virtual void prepare() = 0;
    /// What has arrived of a trace.
    virtual delivered state_of(const clickhouse::trace_identity& trace) = 0;

    /// Adds a trace; `in` stays until remove_trace, before which all its items are delivered.
    virtual std::size_t add_trace(const reduce::tables& in,
                                  const clickhouse::trace_identity& trace) = 0;
    virtual void remove_trace(std::size_t number) = 0;
    /// An item that has arrived, or of which a part has: before the items of `add` that follow it.
    virtual void pass_over(std::size_t from, const clickhouse::row_item& one) {
        static_cast<void>(from), static_cast<void>(one);
    }
    /// The files of these traces are there, by trace_identity::text(); others may be forgotten.
    virtual void keep(const std::set<std::string>& traces) { static_cast<void>(traces); }
    /// Adds an item to the next batch. False: the batch has to be delivered before.
    [[nodiscard]] virtual bool add(std::size_t from, const clickhouse::row_item& one) = 0;
    /// Items that are added and not delivered, and their bytes in memory.
    [[nodiscard]] virtual std::size_t items() const = 0;
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    /// Delivers all of them, or throws and keeps them. `stop`: not 0: gives up.
    virtual void deliver() = 0;
    /// Bytes that were sent so far.
    [[nodiscard]] virtual std::uint64_t sent_bytes() const = 0;
    /// Items that were sent, and that the server will never take.
    [[nodiscard]] virtual std::uint64_t refused_items() const { return 0; }
};

}  // namespace trace_ship
