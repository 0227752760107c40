// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Fields that are structures: each member becomes a separate field with its own name.
/// @code
///   struct point { int x; int y; };
///   template <>
///   struct trace_ring::members_of<point> : trace_ring::members<&point::x, &point::y> {};
///
///   struct moved : trace_ring::event<"moved", trace_ring::field<"to", point>> {};
///   recorder.record<moved>(point{1, 2});  // moved to.x=1 to.y=2
/// @endcode
/// The list must be declared before the first event with such a field. A member may have any type
/// that a field may have, also another structure; members that are not listed are not recorded. In
/// the file the members are ordinary fields, so every reader and condition knows them (`to.x > 0`).

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <type_traits>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

namespace impl {

template <class T>
concept has_members = requires {
    typename members_of<T>::all;
};
/// A field of this type is several in the file. Also what as_field converts to a structure.
template <class T>
concept structure = has_members<T> || requires {
    requires has_as_field<T> && has_members<typename as_field<T>::type>;
};

/// The name of a member, as compilers spell the template argument `&point::x`.
template <auto Member>
struct member_name {
    static constexpr name_view spelled() noexcept {
        const name_view whole = __PRETTY_FUNCTION__;
        std::size_t end = whole.size() - 1;  // a bracket
        std::size_t begin = end;
        while (whole.data()[begin - 1] != ':') --begin;
        return {whole.data() + begin, end - begin};
    }
    static constexpr std::size_t size = spelled().size();
};

/// "to.x" from "to" and the member.
template <literal Name, auto Member>
inline constexpr auto joined_name = [] {
    char all[sizeof Name.text + member_name<Member>::size + 1]{};
    char* to = all;
    for (const char c : Name.view()) *to++ = c;
    *to++ = '.';
    for (const char c : member_name<Member>::spelled()) *to++ = c;
    return literal(all);
}();

template <class... Lists>
struct joined {
    using type = type_list<>;
};
template <class... A>
struct joined<type_list<A...>> {
    using type = type_list<A...>;
};
template <class... A, class... B, class... More>
struct joined<type_list<A...>, type_list<B...>, More...> : joined<type_list<A..., B...>, More...> {
};

/// The fields that a field is in the file.
template <class Field>
struct stored_fields {
    using type = type_list<Field>;
};
template <literal Name, class T>
requires has_members<T>
struct stored_fields<field<Name, T>> {
    using type = typename members_of<T>::template named<Name>;
};
template <literal Name, class T>
requires(structure<T> && !has_members<T>) struct stored_fields<field<Name, T>>
    : stored_fields<field<Name, typename as_field<T>::type>> {
};

/// Calls `what` with the values that are stored of these.
template <class Do>
[[gnu::always_inline]] inline auto with_stored(Do&& what) noexcept {
    return what();
}
template <class Do, class T, class... Rest>
[[gnu::always_inline]] inline auto with_stored(Do&& what, const T& value,
                                               const Rest&... rest) noexcept {
    const auto before_rest = [&](const auto&... mine) __attribute__((always_inline)) {
        return with_stored(
            [&](const auto&... others)
                __attribute__((always_inline)) { return what(mine..., others...); },
            rest...);
    };
    if constexpr (has_members<T>) {
        return members_of<T>::visit(before_rest, value);
    } else if constexpr (structure<T>) {
        const typename as_field<T>::type& made = as_field<T>::convert(value);
        return with_stored(before_rest, made);
    } else {
        return before_rest(value);
    }
}

/// Values of the types `T` that are stored as several. In place of the signature where values are
/// converted.
template <class... T>
struct expanded {
    template <class Do>
    [[gnu::always_inline]] static auto convert(const Do& what, const T&... values) noexcept {
        return with_stored(what, values...);
    }
};

template <class List>
struct listed;
template <class... Fields>
struct listed<type_list<Fields...>> {
    using type = field_list<Fields...>;
};
/// With structures among the fields: the list of all their members, made of fewer values.
template <class... Fields>
requires(structure<typename Fields::type> || ...) struct field_list<Fields...>
    : listed<typename joined<typename stored_fields<Fields>::type...>::type>::type {
    using stored = typename joined<typename stored_fields<Fields>::type...>::type;
    using all = typename listed<stored>::type;
    using given = expanded<typename Fields::type...>;
    static constexpr std::size_t given_count = sizeof...(Fields);
    [[nodiscard]] static constexpr name_view given_name(std::size_t i) noexcept {
        const name_view names[] = {Fields::name..., {}};
        return names[i];
    }
    template <class... Values>
    static consteval bool fit() {
        if constexpr (sizeof...(Values) == given_count) {
            return (takes_value<Fields, Values>() && ... && true);
        } else {
            return false;
        }
    }
};

}  // namespace impl

/// The base of a structure's `members_of`: pointers to its members, in the order of the fields.
template <auto... Members>
struct members {
    static_assert(sizeof...(Members) != 0 &&
                      (std::is_member_object_pointer_v<decltype(Members)> && ...),
                  "trace_ring: members are listed as &type::member");
    using all = members;  ///< the list itself

    template <class T>
    struct type_of;
    /// The type of a member.
    template <class T, class Class>
    struct type_of<T Class::*> {
        using type = std::remove_cv_t<T>;  ///< without const and volatile
    };
    /// The fields that a field of this name has, one for each stored member.
    template <literal Name>
    using named = typename impl::joined<typename impl::stored_fields<
        field<impl::joined_name<Name, Members>,
              typename type_of<std::remove_cv_t<decltype(Members)>>::type>>::type...>::type;

    /// Calls `what` with the stored values of the members.
    template <class Do, class T>
    [[gnu::always_inline]] static auto visit(Do&& what, const T& value) noexcept {
        return impl::with_stored(what, value.*Members...);
    }
};

}  // namespace trace_ring::inline v1

#endif
