// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A kind of ring, or of recorder, is a named list of policies:
/// @code
/// struct io_trace : trace_ring::policies<trace_ring::record::sequenced<step>,
///                                        trace_ring::claim::compare_exchange,
///                                        trace_ring::full::overwrite_oldest,
///                                        trace_ring::storage::inline_bytes<64 * 1024>> {};
/// inline trace_ring::ring<io_trace> io_ring;
///
/// struct sampled_by_cpu : trace_ring::policies<trace_ring::clock::sampled<16>,
///                                              trace_ring::claim::per_cpu> {};
/// trace_ring::basic_recorder<sampled_by_cpu> recorder{{.file = "orders.trace"}};
/// @endcode
/// In any order, each family at most once. A debugger and a test's id show the name. What a list
/// leaves out has its default:
///
/// | family  | ring                                         | recorder                            |
/// |---------|----------------------------------------------|-------------------------------------|
/// | record  | `record::sub_buffers<>`                      | events, as the program fires them   |
/// | claim   | `claim::single_writer` for sub-buffers, else | a lane for each thread; or it names |
/// |         | `claim::compare_exchange`                    | `claim::per_cpu`                    |
/// | full    | `full::overwrite_oldest`                     | `recorder_options::full`            |
/// | notify  | `notify::never`                              | of sessions: drain/session.hpp      |
/// | storage | `storage::inline_bytes<65536>`               | `recorder_options::file` and `size` |
/// | clock   | `clock::tsc` for sub-buffers, else           | `clock::tsc`                        |
/// |         | `clock::none`                                |                                     |
/// | gate    | `gate::always`                               | one for each event: `enable`        |
///
/// A recorder's list names a clock and a claim; the rest is decided when it is set up, or while it
/// runs. A list that cannot work is refused by one static_assert with the rule, where a ring or a
/// recorder is made of it: ring/policies.hpp has the rules of rings.
///
/// A policy says which family it belongs to (the families' names are in fwd.hpp) by
/// `using family = trace_ring::family::claim;` and the like. It must also model the concept of that
/// family, a table in the header with the family's name (policy/claim/claim.hpp and so on).
/// Nothing else makes a policy: a user's own is found in the same way as the library's.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <type_traits>

namespace trace_ring::inline v1 {

/// `P` names `Family` as its own. Whether it also models the family's concept is asked separately,
/// so that a policy with a missing member is told apart from a type that is no policy.
template <class P, class Family>
concept in_family = requires {
    typename P::family;
    requires std::is_same_v<typename P::family, Family>;
};

/// `P` names one of the seven families.
template <class P>
concept names_a_family = in_family<P, family::record> || in_family<P, family::claim> ||
    in_family<P, family::full> || in_family<P, family::notify> || in_family<P, family::storage> ||
    in_family<P, family::clock> || in_family<P, family::gate>;

namespace impl {

template <class Family, class... P>
inline constexpr std::size_t count_of = (std::size_t{in_family<P, Family>} + ... + 0);

/// A policy that says itself what is wrong with it does so here, and not where a concept asks:
/// clang would say as well that it is no policy.
template <class P>
[[nodiscard]] consteval bool is_seen() {
    if constexpr (std::is_class_v<P>) return sizeof(P) != 0;
    return true;
}

/// The first of the list that is of the family, or the default.
template <class Family, class Default, class... P>
struct first_of {
    using type = Default;
};
template <class Family, class Default, class First, class... Rest>
struct first_of<Family, Default, First, Rest...> : first_of<Family, Default, Rest...> {};
template <class Family, class Default, class First, class... Rest>
requires in_family<First, Family>
struct first_of<Family, Default, First, Rest...> {
    using type = First;
};

}  // namespace impl

/// A list of policies, in any order, at most one of each family; families that are not named take
/// defaults. Rejects a type that is not a policy, and two of one family, with one message.
template <class... P>
struct policies {
    static_assert((impl::is_seen<P>() && ...));
    static_assert((names_a_family<P> && ...),
                  "trace_ring::policies: one of the list is no policy, for it does not name its "
                  "family (`using family = trace_ring::family::...`; a record type of your own may "
                  "stand in record::bare<T> or record::sequenced<T>)");
    static_assert(impl::count_of<family::record, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family record");
    static_assert(impl::count_of<family::claim, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family claim");
    static_assert(impl::count_of<family::full, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family full");
    static_assert(impl::count_of<family::notify, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family notify");
    static_assert(impl::count_of<family::storage, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family storage");
    static_assert(impl::count_of<family::clock, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family clock");
    static_assert(impl::count_of<family::gate, P...> <= 1,
                  "trace_ring::policies: the list names two policies of the family gate");

    /// The list's policy of a family, or `Default` where it names none.
    template <class Family, class Default>
    using policy_of = typename impl::first_of<Family, Default, P...>::type;
    /// Whether each of the list is a policy.
    static constexpr bool names_families = (names_a_family<P> && ...);
};

}  // namespace trace_ring::inline v1

#endif
