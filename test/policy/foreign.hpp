// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One foreign policy of each family, as a user would write it: the library is not edited, and each
/// is about as small as its concept allows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/full/full.hpp>
#include <trace_ring/policy/gate/gate.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/record/concept.hpp>

namespace foreign {

/// Record: an element that is its own record.
struct temperature {
    using family = trace_ring::family::record;
    std::int32_t millidegrees = 0;
    std::uint32_t sensor = 0;
};
static_assert(trace_ring::record::policy<temperature>);

/// Claim: by plain loads and stores, for one thread and no handlers.
struct plain_cursor {
    using family = trace_ring::family::claim;
    static constexpr bool many_writers = false;
    static constexpr bool asks_first = true;
    static constexpr bool counts = true;

    template <class Table>
    static trace_ring::claim::ticket take(trace_ring::claim::line& line, Table& table) noexcept {
        const trace_ring::position p = line.cursor.load(trace_ring::relaxed) + 1;
        if (!table.admits(p) || !table.hold(p)) return {};
        return {table.index_of(p), p};
    }
    static void commit(trace_ring::claim::line& line,
                       const trace_ring::claim::ticket& taken) noexcept {
        line.cursor.store(taken.pos, trace_ring::release);
    }
    static void discard(trace_ring::claim::line&, const trace_ring::claim::ticket&) noexcept {}
};
static_assert(trace_ring::claim::policy<plain_cursor>);

/// Full: looks again some times, then gives up.
struct stubborn {
    using family = trace_ring::family::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = true;
    static constexpr bool grows = false;
    static constexpr bool stops = false;
    static inline std::uint64_t asked = 0;

    static trace_ring::full::answer when_full(trace_ring::full::room& room) noexcept {
        ++asked;
        return room.attempt < 3 ? trace_ring::full::answer::retry
                                : trace_ring::full::answer::refuse;
    }
};
static_assert(trace_ring::full::policy<stubborn>);

/// Notify: every record, into an array.
struct diary {
    using family = trace_ring::family::notify;
    static constexpr bool watches = true;
    std::uint64_t times = 0;
    trace_ring::notify::progress last{};

    void passed(trace_ring::notify::line& line, trace_ring::notify::progress at) noexcept {
        ++times;
        last = at;
        line.own[0].store(at.records, trace_ring::relaxed);
    }
};
static_assert(trace_ring::notify::policy<diary>);

/// Storage: somebody else's bytes.
class borrowed {
public:
    using family = trace_ring::family::storage;
    borrowed(std::byte* bytes, std::uint64_t size) noexcept : bytes_(bytes), size_(size) {}
    std::byte* data() noexcept { return bytes_; }
    std::uint64_t size() const noexcept { return size_; }
    bool fresh() const noexcept { return true; }

private:
    std::byte* bytes_;
    std::uint64_t size_;
};
static_assert(trace_ring::storage::policy<borrowed>);
static_assert(!trace_ring::storage::fixed<borrowed> && !trace_ring::storage::growable<borrowed>);

/// Clock: counts the times it is asked.
struct ticking {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind = 77;
    static inline std::uint64_t ticks = 0;
    static std::uint64_t now() noexcept { return ++ticks; }
    static bool usable() noexcept { return true; }
    static double ticks_per_second() noexcept { return 1; }
};
static_assert(trace_ring::clock::policy<ticking>);

/// Gate: open on every other look.
struct every_other {
    using family = trace_ring::family::gate;
    mutable std::uint64_t looks = 0;
    bool is_open() const noexcept { return ++looks % 2 == 0; }
};
static_assert(trace_ring::gate::policy<every_other>);

}  // namespace foreign
