// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file Each kind of ring compared with its floor, with one writing thread: the bare store for one
/// writer, one locked instruction for kinds with many writers (shared.cpp has these with several
/// threads). Tables have records of 24 bytes, without a clock.

#include <cstdint>
#include <memory>
#include <string>

#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/policy/storage/shared_file.hpp>
#include <trace_ring/ring/ring.hpp>

#include "floor.hpp"

namespace {

namespace floors = bench::floor;
namespace tr = trace_ring;
using floors::KiB;
using floors::MiB;

struct sample {
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t third;
};

constexpr std::size_t bytes = 64 * KiB;
using storage_here = tr::storage::inline_bytes<bytes>;

/// Makes a ring in its storage. The storage's arguments do not concern the ring.
template <class Kind>
[[nodiscard]] auto make() {
    using storage = typename trace_ring::ring_policies<Kind>::storage_policy;
    if constexpr (tr::storage::fixed<storage>) {
        return std::make_unique<tr::ring<Kind>>();
    } else if constexpr (tr::storage::shared<storage>) {
        return std::make_unique<tr::ring<Kind>>(tr::storage::in_memory, "bench", bytes);
    } else {
        return std::make_unique<tr::ring<Kind>>(bytes);
    }
}

/// Records of one size.
template <class Kind>
struct table {
    std::unique_ptr<tr::ring<Kind>> ring = make<Kind>();

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        tr::ring<Kind>& into = *ring;
        for (std::uint64_t i = 0; i < n; ++i) into.write(std::uint64_t{7}, i, ~i);
    }
};

/// Written and consumed by turns of 1,024, so that a ring that discards has room.
template <class Kind>
struct written_and_consumed {
    std::unique_ptr<tr::ring<Kind>> ring = make<Kind>();

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        auto consumer = ring->consumer();
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < n; i += 1024) {
            for (std::uint64_t k = 0; k < 1024; ++k) ring->write(std::uint64_t{7}, k, ~k);
            while (const auto item = consumer.next()) sum += item.record.second;
        }
        benchmark::DoNotOptimize(sum);
    }
};

/// A ring that is full and discards.
template <class Kind>
struct refused : table<Kind> {};

/// Variable length: an id and two fields.
template <class Kind>
struct sub_buffers {
    std::unique_ptr<tr::ring<Kind>> ring = make<Kind>();

    [[gnu::noinline]] void operator()(std::uint64_t n) {
        tr::ring<Kind>& into = *ring;
        for (std::uint64_t i = 0; i < n; ++i) into.write(9, i, ~i);
    }
};

// The kinds. Their names are those of the benchmarks.

using bare_record = tr::record::bare<sample>;
using sequenced_record = tr::record::sequenced<sample>;

struct bare_alone : tr::policies<bare_record, tr::claim::single_writer, storage_here> {};
struct sequenced_alone : tr::policies<sequenced_record, tr::claim::single_writer, storage_here> {};

struct in_heap : tr::policies<bare_record, tr::claim::single_writer, tr::storage::heap> {};
struct in_mapping : tr::policies<bare_record, tr::claim::single_writer, tr::storage::mapped> {};
struct in_file : tr::policies<bare_record, tr::claim::single_writer, tr::storage::shared_file> {};

struct discarding : tr::policies<sequenced_record, tr::claim::single_writer, storage_here,
                                 tr::full::discard_newest> {};
struct discarding_swapped : tr::policies<sequenced_record, tr::claim::compare_exchange,
                                         storage_here, tr::full::discard_newest> {};

struct timed_records : tr::policies<tr::record::sub_buffers<>, storage_here> {};
struct untimed_records : tr::policies<tr::record::sub_buffers<>, tr::clock::none, storage_here> {};

/// The cost of a threshold for a writer that does not reach it: the first crossing is reported, and
/// the mark is not armed again.
using threshold = tr::notify::at_watermark<tr::notify::percent(50)>;
struct bare_watched : tr::policies<bare_record, tr::claim::single_writer, storage_here, threshold> {
};
struct sequenced_watched
    : tr::policies<sequenced_record, tr::claim::single_writer, storage_here, threshold> {};
struct untimed_watched
    : tr::policies<tr::record::sub_buffers<>, tr::clock::none, storage_here, threshold> {};

const std::string store = floors::name_of_store<3, floors::without_clock, bytes>();

}  // namespace

int main(int argc, char** argv) {
    floors::add_store<3, floors::without_clock, bytes>();
    floors::add_store<3, floors::with_clock, bytes>();
    floors::add_clock();
    floors::add_locked_step<false, true>();

    bench::add<table<bare_alone>>("table/bare/single_writer", store);
    bench::add<table<sequenced_alone>>("table/sequenced/single_writer", store);

    bench::add<table<in_heap>>("table/heap", store);
    bench::add<table<in_mapping>>("table/mapped", store);
    bench::add<table<in_file>>("table/shared_file", store);

    bench::add<written_and_consumed<discarding>>("table/discard_newest/consumed", store);
    bench::add<refused<discarding>>("table/discard_newest/refused", store);
    bench::add<written_and_consumed<discarding_swapped>>(
        "table/discard_newest/compare_exchange/consumed",
        floors::name_of_locked_step<false, true>());

    bench::add<sub_buffers<timed_records>>("sub_buffers/exact_clock",
                                           floors::name_of_store<3, floors::with_clock, bytes>());
    bench::add<sub_buffers<untimed_records>>("sub_buffers/no_clock", store);

    bench::add<table<bare_watched>>("threshold/bare", "table/bare/single_writer");
    bench::add<table<sequenced_watched>>("threshold/sequenced", "table/sequenced/single_writer");
    bench::add<sub_buffers<untimed_watched>>("threshold/sub_buffers", "sub_buffers/no_clock");
    return bench::run(argc, argv);
}
