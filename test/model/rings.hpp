// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the explorations of rings have in common: a record that shows whether it is whole, and the
/// books: what was tried, written, refused, and what a reader got.

#include <array>
#include <cstdint>
#include <type_traits>

#include <model/harness.hpp>
#include <trace_ring/ring/ring.hpp>

namespace rings {

using model::require;
using trace_ring::loss_cause;
using trace_ring::position;

/// Two words. A record's number identifies its writer and its index among the writer's records.
struct sample {
    std::uint64_t number = 0, again = 0;

    sample() = default;
    explicit sample(std::uint64_t n) : number(n), again(~n) {}
    [[nodiscard]] bool whole() const { return again == ~number; }
};
inline constexpr std::uint64_t of_writer = 16;

/// What came of the attempts to write.
struct books {
    std::uint64_t tried = 0, written = 0, refused = 0, late = 0, discarded = 0;
    std::array<bool, 64> is_written{};
    std::array<bool, 64> is_read{};
    std::array<std::uint64_t, 4> last{};  ///< read, of each writer
    std::uint64_t read = 0;
    position at = 0;

    /// A record that was read, at a position of the ring.
    void got(const sample& record, position p) {
        require(record.whole(), "a torn record was read");
        require(record.number >= of_writer && record.number < is_read.size(),
                "a record was read that nobody wrote");
        require(!is_read[record.number], "a record was read twice");
        require(p > at, "positions went back");
        at = p;
        is_read[record.number] = true;
        const std::uint64_t writer = record.number / of_writer;
        require(record.number > last[writer], "the records of a writer came out of their order");
        last[writer] = record.number;
        ++read;
    }
    /// Finally: every record that was read was written.
    void close() const {
        require(tried == written + refused + late + discarded, "an attempt came to nothing known");
        for (std::size_t i = 0; i < is_read.size(); ++i) {
            require(!is_read[i] || is_written[i], "a record was read that was not written");
        }
    }
};

/// Writes `count` records as writer `w` (from 1) into a table, the first of them its `first`.
template <class Ring>
void write(Ring& ring, books& book, unsigned w, unsigned count, unsigned discards_at = ~0U,
           unsigned first = 0) {
    for (unsigned i = first; i < first + count; ++i) {
        const std::uint64_t number = of_writer * w + i;
        ++book.tried;
        auto slot = ring.try_reserve();
        if (!slot) {
            ++book.refused;
            continue;
        }
        if constexpr (Ring::in_place) {
            // By words, as ring.write does.
            trace_ring::table_slots::store(reinterpret_cast<std::byte*>(&*slot), sample(number));
        } else {
            *slot = sample(number);
        }
        if (i == discards_at) {
            slot.discard();
            ++book.discarded;
        } else if (slot.commit()) {
            book.is_written[number] = true;
            ++book.written;
        } else {
            ++book.late;
        }
    }
}

/// Reads up to `looks` times, and waits for others where there is nothing.
template <class Reader>
void read(Reader& reader, books& book, unsigned looks) {
    for (unsigned i = 0; i < looks; ++i) {
        const auto item = reader.next();
        if (item.is_record()) book.got(item.record, item.at);
        if (!item) model::yield();
    }
}
/// Reads what is left, when all that was stored is known.
template <class Reader>
void read_rest(Reader& reader, books& book) {
    for (;;) {
        const auto item = reader.next();
        if (item.is_record()) book.got(item.record, item.at);
        require(!item.is_pending(), "a position is pending and no record is open");
        if (!item) break;
    }
}

}  // namespace rings
