// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names without their definitions: enough to mention the library in your own header, or to write
/// your own policy, at the price of a few lines.

// What programs include looks at the standard, too, so that this stays the only error.
#if __cplusplus < 202002L
#error "trace_ring needs C++20: compile with -std=c++20, or a later standard"
#else

namespace trace_ring::inline v1 {

/// The families a policy can belong to. A policy says `using family = trace_ring::family::claim;`
/// and models the concept of that family; a list of policies holds each family at most once.
namespace family {
struct record {};   ///< what one record is, and whether it may be seen torn
struct claim {};    ///< who advances the cursor, and how
struct full {};     ///< what happens when there is no room
struct notify {};   ///< how the reader is notified
struct storage {};  ///< where the bytes live
struct clock {};    ///< what time a record has
struct gate {};     ///< whether tracing is on
}  // namespace family

template <class... P>
struct policies;

/// A named list of policies.
template <class Kind>
concept list_of_policies = requires {
    typename Kind::template policy_of<family::clock, void>;
    Kind::names_families;
};

/// The default kind of recorder, which has the policies of `policies<>`: an exact clock, the
/// processor's own. A kind of your own names another clock (policies.hpp).
struct recording {
    template <class Family, class Default>
    using policy_of = Default;                    ///< the policy of a family: the default
    static constexpr bool names_families = true;  ///< marks a named list of policies
};

// Where tracing is compiled away a ring is another class, so that files with it and without it can
// be linked into one program; objects and functions whose type has one are others, too, by the tag.
#if defined(TRACE_RING_DISABLE)
inline namespace disabled __attribute__((abi_tag("trace_ring_disabled"))) {
#endif
    template <class Kind>
    class ring;
#if defined(TRACE_RING_DISABLE)
}
#endif
template <class Kind>
class basic_recorder;
using recorder = basic_recorder<recording>;  ///< with an exact clock and a lane for each thread

namespace impl {
/// The size of any recorder, also for files where tracing is compiled away: they see no member.
inline constexpr unsigned recorder_bytes = 4224;
}  // namespace impl

}  // namespace trace_ring::inline v1

#endif
