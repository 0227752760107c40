// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a list of policies (policies.hpp) means for a ring: the defaults of the families that it
/// leaves out, and the rules for policies that cannot work together.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/policies.hpp>
#include <trace_ring/policy/claim/claim.hpp>
#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/clock/clock.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/full/full.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/gate/always.hpp>
#include <trace_ring/policy/gate/gate.hpp>
#include <trace_ring/policy/notify/never.hpp>
#include <trace_ring/policy/notify/notify.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/policy/storage/storage.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/policies/control.hpp>
#include <trace_ring/ring/policies/slots.hpp>

namespace trace_ring::inline v1 {

namespace impl {

/// Replaces a policy that does not model its family by the default. The policy has been refused by
/// then; the rest of the list is checked with the default, so that one fault gives one message.
template <bool Models, class Policy, class Default>
using or_default = std::conditional_t<Models, Policy, Default>;

/// Bytes from one record or sub-buffer to the next.
template <class Layout>
[[nodiscard]] consteval std::size_t stride_of() {
    if constexpr (Layout::kind == record::layout::sub_buffers) {
        return Layout::bytes;
    } else if constexpr (Layout::kind == record::layout::sequenced) {
        return table_slots::sequenced_stride<typename Layout::element>;
    } else {
        return sizeof(typename Layout::element);
    }
}

/// The fewest slots a ring works with: a sub-buffer is read while the next is filled.
template <class Layout>
inline constexpr std::uint64_t fewest_slots = Layout::kind == record::layout::sub_buffers ? 2 : 1;

/// Records that a slot holds at most.
template <class Layout>
[[nodiscard]] consteval std::uint64_t records_in_slot() {
    if constexpr (Layout::kind == record::layout::sub_buffers) {
        return (Layout::bytes - 64) / 8;  // behind the header, records without payload
    } else {
        return 1;
    }
}

/// Whether a ring of `slot_count` slots can reach the threshold of its notify policy; true if it
/// overwrites.
template <class Layout, class Full, class Notify>
[[nodiscard]] constexpr bool can_tell([[maybe_unused]] std::uint64_t slot_count) noexcept {
    if constexpr (!Full::overwrites && notify::is_bounded<Notify>) {
        return Notify::reaches(slot_count * records_in_slot<Layout>(),
                               slot_count * stride_of<Layout>());
    } else {
        return true;
    }
}

/// Slots in a fixed storage; 0 for other storage.
template <class Storage, class Layout>
[[nodiscard]] consteval std::uint64_t fixed_slots() {
    if constexpr (storage::fixed<Storage>) {
        if (Storage::extent < storage::control_bytes) return 0;
        return (Storage::extent - storage::control_bytes) / stride_of<Layout>();
    } else {
        return 0;
    }
}

template <class Storage, class Layout>
[[nodiscard]] consteval bool has_room() {
    if constexpr (storage::fixed<Storage>) {
        return Storage::extent >=
               storage::control_bytes + fewest_slots<Layout> * stride_of<Layout>();
    } else {
        return true;
    }
}

}  // namespace impl

template <list_of_policies Kind>
class ring_policies {
    using default_record = record::sub_buffers<>;
    using default_storage = storage::inline_bytes<std::uint64_t{64} * 1024>;

    using named_record = typename Kind::template policy_of<family::record, default_record>;
    static constexpr bool record_models = record::policy<named_record>;
    static_assert(record_models,
                  "trace_ring::policies: the record policy is not what the table in "
                  "record/concept.hpp asks for: records are trivially copyable");

public:
    /// The layout and, for tables, the element.
    using record_policy =
        record::layout_of<impl::or_default<record_models, named_record, default_record>>;

private:
    static constexpr bool varying = record_policy::kind == record::layout::sub_buffers;
    static constexpr bool bare = record_policy::kind == record::layout::bare;

    using default_claim =
        std::conditional_t<varying, claim::single_writer, claim::compare_exchange>;
    using default_clock = std::conditional_t<varying, clock::tsc, clock::none>;

    using named_claim = typename Kind::template policy_of<family::claim, default_claim>;
    using named_full = typename Kind::template policy_of<family::full, full::overwrite_oldest>;
    using named_notify = typename Kind::template policy_of<family::notify, notify::never>;
    using named_storage = typename Kind::template policy_of<family::storage, default_storage>;
    using named_clock = typename Kind::template policy_of<family::clock, default_clock>;
    using named_gate = typename Kind::template policy_of<family::gate, gate::always>;

    static constexpr bool cpus = claim::by_cpu<named_claim>;
    static constexpr bool claim_models = claim::policy<named_claim>;
    static constexpr bool full_models = full::policy<named_full>;
    static constexpr bool notify_models = notify::policy<named_notify>;
    static constexpr bool storage_models = storage::policy<named_storage>;
    static constexpr bool clock_models = clock::policy<named_clock>;
    static constexpr bool gate_models = gate::policy<named_gate>;
    static_assert(!cpus,
                  "trace_ring::policies: claim::per_cpu is for recorders and not for rings: use "
                  "trace_ring::basic_recorder with claim::per_cpu; without a file it records into "
                  "memory");
    static_assert(claim_models || cpus,
                  "trace_ring::policies: the claim policy is not what the table in "
                  "policy/claim/claim.hpp asks for");
    static_assert(full_models,
                  "trace_ring::policies: the full policy is not what the table in "
                  "policy/full/full.hpp asks for");
    static_assert(notify_models,
                  "trace_ring::policies: the notify policy is not what the table in "
                  "policy/notify/notify.hpp asks for");
    static_assert(storage_models,
                  "trace_ring::policies: the storage policy is not what the table in "
                  "policy/storage/storage.hpp asks for");
    static_assert(clock_models,
                  "trace_ring::policies: the clock policy is not what the table in "
                  "policy/clock/clock.hpp asks for");
    static_assert(gate_models,
                  "trace_ring::policies: the gate policy is not what the table in "
                  "policy/gate/gate.hpp asks for");

public:
    using claim_policy = impl::or_default<claim_models, named_claim, default_claim>;
    using full_policy = impl::or_default<full_models, named_full, full::overwrite_oldest>;
    using notify_policy = impl::or_default<notify_models, named_notify, notify::never>;
    using storage_policy = impl::or_default<storage_models, named_storage, default_storage>;
    using clock_policy = impl::or_default<clock_models, named_clock, default_clock>;
    using gate_policy = impl::or_default<gate_models, named_gate, gate::always>;

private:
    // Rules for policies that cannot work together, each once; checked only if every policy is
    // valid by itself.
    static constexpr bool sound = Kind::names_families && record_models && claim_models &&
                                  full_models && notify_models && storage_models && clock_models &&
                                  gate_models;
    static_assert(!sound || claim_policy::asks_first || !full_policy::waits,
                  "trace_ring::policies: full::block needs a claim that can wait, and this one has "
                  "taken its place before it knows of room: use claim::compare_exchange or "
                  "claim::single_writer");
    static_assert(!sound || claim_policy::asks_first || full_policy::overwrites ||
                      full_policy::waits,
                  "trace_ring::policies: a claim that has taken its place before it knows of room "
                  "cannot refuse a record: use full::overwrite_oldest, or "
                  "claim::compare_exchange or claim::single_writer");
    static_assert(!sound || !full_policy::waits || !bare || !claim_policy::many_writers,
                  "trace_ring::policies: full::block with a bare table of many writers would wait "
                  "for ever, as nothing tells a consumer which records are complete: use "
                  "record::sequenced, or claim::single_writer");
    static_assert(!sound || !full_policy::grows || storage::growable<storage_policy>,
                  "trace_ring::policies: full::extend needs a storage that grows: use "
                  "storage::mapped or storage::shared_file");
    static_assert(!sound || !varying || std::is_same_v<claim_policy, claim::single_writer>,
                  "trace_ring::policies: records of variable length have one writer in a plain "
                  "ring: use claim::single_writer, or a recorder for many threads");
    static_assert(!sound || claim_policy::counts || varying ||
                      (bare && !full_policy::grows && !notify_policy::watches),
                  "trace_ring::policies: a claim that does not count positions goes with a bare "
                  "table of a fixed size and notify::never");
    static constexpr bool roomy = impl::has_room<storage_policy, record_policy>();
    static_assert(!sound || roomy,
                  "trace_ring::policies: the storage is too small for a ring of these records");

    static_assert(!sound || !roomy || !storage::fixed<storage_policy> ||
                      impl::can_tell<record_policy, full_policy, notify_policy>(
                          impl::fixed_slots<storage_policy, record_policy>()),
                  "trace_ring::policies: the threshold of the notify policy lies above what the "
                  "ring can hold, which refuses or waits before anybody is told: make the storage "
                  "larger, or the threshold smaller (notify::circular tells nobody)");
};

}  // namespace trace_ring::inline v1
