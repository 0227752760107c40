// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// One list of kinds of rings, and typed tests over it: each layout with each claim, each storage,
/// each thing that can happen when a ring is full. Rings here are small, so that they wrap quickly.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/extend.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/policy/storage/shared_file.hpp>
#include <trace_ring/ring/ring.hpp>

namespace kinds {

namespace claim = trace_ring::claim;
namespace full = trace_ring::full;
namespace record = trace_ring::record;
namespace storage = trace_ring::storage;
using trace_ring::policies;
using trace_ring::ring_policies;

/// A record that checks itself: a mixture of two does not pass.
struct sample {
    std::uint64_t number = 0;
    std::uint32_t writer = 0;
    std::uint32_t check = 0;
    std::uint64_t again = 0;

    sample() = default;
    explicit sample(std::uint64_t n, std::uint32_t w = 0)
        : number(n), writer(w), check(mix(n, w)), again(~n) {}
    [[nodiscard]] bool whole() const { return check == mix(number, writer) && again == ~number; }
    [[nodiscard]] static std::uint32_t mix(std::uint64_t n, std::uint32_t w) {
        return static_cast<std::uint32_t>(n * 2654435761U) ^ (w * 40503U) ^ 0x5A5A5A5AU;
    }
};
static_assert(sizeof(sample) == 24);

inline constexpr std::uint64_t table_slots = 16;
inline constexpr std::uint64_t bare_bytes = table_slots * sizeof(sample);
inline constexpr std::uint64_t sequenced_bytes = table_slots * (sizeof(sample) + 8);
inline constexpr std::size_t sub_bytes = 512;
inline constexpr std::uint64_t subs = 4;

using bare_here = storage::inline_bytes<bare_bytes>;
using sequenced_here = storage::inline_bytes<sequenced_bytes>;

// --- Tables ------------------------------------------------------------------------------------
struct bare_swap : policies<record::bare<sample>, bare_here> {};
struct bare_add : policies<record::bare<sample>, claim::fetch_add, bare_here> {};
struct bare_one : policies<record::bare<sample>, claim::single_writer, bare_here> {};
struct sequenced_swap : policies<record::sequenced<sample>, sequenced_here> {};
struct sequenced_add : policies<record::sequenced<sample>, claim::fetch_add, sequenced_here> {};
struct sequenced_one : policies<record::sequenced<sample>, claim::single_writer, sequenced_here> {};
struct heap_swap : policies<record::sequenced<sample>, storage::heap> {};
struct mapped_one : policies<record::bare<sample>, claim::single_writer, storage::mapped> {};
struct file_add : policies<storage::shared_file, claim::fetch_add, record::sequenced<sample>> {};

struct discard_swap : policies<full::discard_newest, record::sequenced<sample>, sequenced_here> {};
struct discard_one
    : policies<full::discard_newest, record::bare<sample>, claim::single_writer, bare_here> {};
struct stop_swap : policies<full::stop, record::sequenced<sample>, sequenced_here> {};
struct stop_one : policies<full::stop, record::bare<sample>, claim::single_writer, bare_here> {};
using patience = full::block<std::chrono::milliseconds{2000}>;
struct block_swap : policies<patience, record::sequenced<sample>, sequenced_here> {};
struct block_one : policies<patience, record::bare<sample>, claim::single_writer, bare_here> {};

template <class Then>
using stepwise = full::extend<bare_bytes / 4, Then>;
struct extend_overwrite : policies<stepwise<full::overwrite_oldest>, record::bare<sample>,
                                   claim::single_writer, storage::mapped> {};
struct extend_discard : policies<stepwise<full::discard_newest>, record::sequenced<sample>,
                                 claim::compare_exchange, storage::shared_file> {};
struct extend_add : policies<stepwise<full::overwrite_oldest>, record::sequenced<sample>,
                             claim::fetch_add, storage::mapped> {};

// --- Sub-buffers ---------------------------------------------------------------------------------
struct varying : policies<record::sub_buffers<sub_bytes>, storage::inline_bytes<subs * sub_bytes>> {
};
struct varying_heap
    : policies<record::sub_buffers<sub_bytes>, storage::heap, trace_ring::clock::monotonic> {};
struct varying_file : policies<record::sub_buffers<sub_bytes>, storage::shared_file> {};
struct varying_discard : policies<record::sub_buffers<sub_bytes>, full::discard_newest,
                                  storage::inline_bytes<subs * sub_bytes>> {};
struct varying_block
    : policies<record::sub_buffers<sub_bytes>, patience, storage::inline_bytes<subs * sub_bytes>> {
};
struct varying_extend : policies<record::sub_buffers<sub_bytes>,
                                 full::extend<sub_bytes, full::stop>, storage::mapped> {};

using overwriting_tables = std::tuple<bare_swap, bare_add, bare_one, sequenced_swap, sequenced_add,
                                      sequenced_one, heap_swap, mapped_one, file_add>;
using sequenced_tables = std::tuple<sequenced_swap, sequenced_add, heap_swap, file_add>;
using refusing_tables = std::tuple<discard_swap, discard_one, stop_swap, stop_one>;
using growing_tables = std::tuple<extend_overwrite, extend_discard, extend_add>;
using one_writer = std::tuple<bare_one, sequenced_one, mapped_one, discard_one, stop_one, block_one,
                              varying, varying_heap, varying_file>;
/// One or two of each sort: what one of them shows holds for the others.
using all = std::tuple<bare_swap, bare_one, sequenced_add, sequenced_one, heap_swap, file_add,
                       discard_one, stop_swap, block_swap, extend_overwrite, extend_add, varying,
                       varying_file, varying_block, varying_extend>;

template <class Kind>
inline constexpr bool is_varying =
    ring_policies<Kind>::record_policy::kind == record::layout::sub_buffers;

/// Bytes for a ring of table_slots records, or `subs` sub-buffers.
template <class Kind>
constexpr std::uint64_t bytes_of() {
    if constexpr (is_varying<Kind>) {
        return subs * sub_bytes;
    } else {
        return ring_policies<Kind>::record_policy::kind == record::layout::bare ? bare_bytes
                                                                                : sequenced_bytes;
    }
}

/// A ring of the kind, made as its storage wants to be made. Growing ones may double.
template <class Kind>
std::unique_ptr<trace_ring::ring<Kind>> make() {
    using ring = trace_ring::ring<Kind>;
    using bytes = typename ring_policies<Kind>::storage_policy;
    if constexpr (storage::fixed<bytes>) {
        return std::make_unique<ring>();
    } else if constexpr (storage::shared<bytes>) {
        const std::uint64_t limit =
            ring_policies<Kind>::full_policy::grows ? 2 * bytes_of<Kind>() : 0;
        return std::make_unique<ring>(storage::in_memory, "test", bytes_of<Kind>(), limit);
    } else if constexpr (ring_policies<Kind>::full_policy::grows) {
        return std::make_unique<ring>(bytes_of<Kind>(), 2 * bytes_of<Kind>());
    } else {
        return std::make_unique<ring>(bytes_of<Kind>());
    }
}

/// Writes one sample, for any layout.
template <class Ring>
bool put(Ring& ring, std::uint64_t number, std::uint32_t writer = 0) {
    if constexpr (requires { Ring::max_payload; }) {
        return ring.write(std::uint16_t{1}, sample(number, writer));
    } else {
        return ring.write(number, writer);
    }
}

/// The sample in an item.
template <class Item>
sample sample_of(const Item& item) {
    if constexpr (requires { item.payload; }) {
        sample s;
        std::memcpy(static_cast<void*>(&s), item.payload.data(), sizeof s);
        return s;
    } else {
        return item.record;
    }
}

/// Reads to the end: the numbers in the order they come.
template <class Reader>
std::vector<std::uint64_t> numbers(Reader&& reader) {
    std::vector<std::uint64_t> got;
    while (const auto item = reader.next()) {
        if (item.is_record()) got.push_back(sample_of(item).number);
    }
    return got;
}

/// from, from + 1, ... to; or back, where to is less.
inline std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> r;
    if (from <= to) {
        for (std::uint64_t i = from; i <= to; ++i) r.push_back(i);
    } else {
        for (std::uint64_t i = from; i >= to && i + 1 != 0; --i) r.push_back(i);
    }
    return r;
}

}  // namespace kinds
