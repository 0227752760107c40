// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How a policy says which family it belongs to (the families' names are in fwd.hpp): by
/// `using family = trace_ring::family::claim;` and the like. It must also model the concept of that
/// family, a table in the header that bears the family's name (policy/claim/claim.hpp and so on).
/// Nothing else makes a policy: a user's own is found in the same way as the library's.

#include <concepts>

#include <trace_ring/fwd.hpp>

namespace trace_ring::inline v1 {

/// `P` names `Family` as its own. Whether it also models the family's concept is asked separately,
/// so that a policy with a missing member is told apart from a type that is no policy.
template <class P, class Family>
concept in_family = requires {
    typename P::family;
    requires std::same_as<typename P::family, Family>;
};

/// `P` names one of the seven families.
template <class P>
concept names_a_family = in_family<P, family::record> || in_family<P, family::claim> ||
    in_family<P, family::full> || in_family<P, family::notify> || in_family<P, family::storage> ||
    in_family<P, family::clock> || in_family<P, family::gate>;

}  // namespace trace_ring::inline v1
