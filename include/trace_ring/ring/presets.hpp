// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Useful lists of policies by name, which give a ring a short name in the debugger. Each is a few
/// lines, to copy for a list of your own.
/// @code
/// inline trace_ring::ring<trace_ring::presets::recent<step>> last_steps;
/// @endcode
///
/// | preset               | writers | layout      | when full              | for                  |
/// |----------------------|---------|-------------|------------------------|----------------------|
/// | `recent<T>`          | many    | sequenced   | the oldest go          | what led up to now   |
/// | `recent_of_one<T>`   | one     | bare        | the oldest go          | the same, cheapest   |
/// | `lossless<T>`        | many    | sequenced   | the newest are refused | a consumer           |
/// | `lossless_of_one<T>` | one     | bare        | the newest are refused | a consumer, cheapest |
/// | `run_up<T>`          | many    | sequenced   | recording stops        | how something began  |
/// | `records<>`          | one     | sub-buffers | the oldest go          | records of any       |
/// |                      |         |             |                        | length               |

#include <cstdint>

#include <trace_ring/policy/claim/compare_exchange.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/single_writer.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/overwrite_oldest.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/ring.hpp>

namespace trace_ring::inline v1::presets {

inline constexpr std::uint64_t default_bytes = 65536;  ///< the size of the presets' storage

template <class T, std::uint64_t Bytes = default_bytes>
struct recent : policies<record::sequenced<T>, claim::fetch_add, full::overwrite_oldest,
                         storage::inline_bytes<Bytes>> {};

template <class T, std::uint64_t Bytes = default_bytes>
struct recent_of_one : policies<record::bare<T>, claim::single_writer, full::overwrite_oldest,
                                storage::inline_bytes<Bytes>> {};

template <class T, std::uint64_t Bytes = default_bytes>
struct lossless : policies<record::sequenced<T>, claim::compare_exchange, full::discard_newest,
                           storage::inline_bytes<Bytes>> {};

template <class T, std::uint64_t Bytes = default_bytes>
struct lossless_of_one : policies<record::bare<T>, claim::single_writer, full::discard_newest,
                                  storage::inline_bytes<Bytes>> {};

template <class T, std::uint64_t Bytes = default_bytes>
struct run_up : policies<record::sequenced<T>, claim::compare_exchange, full::stop,
                         storage::inline_bytes<Bytes>> {};

template <std::uint64_t Bytes = default_bytes>
struct records : policies<record::sub_buffers<>, claim::single_writer, full::overwrite_oldest,
                          storage::inline_bytes<Bytes>> {};

}  // namespace trace_ring::inline v1::presets
