// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Spans: events that begin and end, and what they record when they end.
/// @code
///   struct request : trace_ring::span<"request", trace_ring::field<"url", std::string_view>,
///                                     trace_ring::results<trace_ring::field<"status", int>>> {};
/// @endcode

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>

#include <trace_ring/record/event.hpp>

namespace trace_ring::inline v1 {

/// The fields that a span records when it ends: `scope.end(status, bytes)`. The same types as
/// fields.
template <class... Fields>
struct results {};

namespace impl {

template <class T>
inline constexpr bool is_results = false;
template <class... Fields>
inline constexpr bool is_results<results<Fields...>> = true;

/// The fields of a span before its results, and the results.
template <class Before, class... Rest>
struct parts_of_span {
    static_assert(sizeof...(Rest) == 0 && sizeof...(Rest) != 0,
                  "trace_ring: a span has one list of results, behind its fields");
};
template <class... Before, class Field, class... Rest>
requires(!is_results<Field>) struct parts_of_span<type_list<Before...>, Field, Rest...>
    : parts_of_span<type_list<Before..., Field>, Rest...> {
};
template <class... Before, class... Fields>
struct parts_of_span<type_list<Before...>, results<Fields...>> {
    static_assert(sizeof...(Fields) != 0, "trace_ring: a list of results has fields");
    template <event_kind Kind, literal Name>
    using begin = event_base<Kind, Name, Before...>;
    using end = field_list<Fields...>;
};

/// The descriptions of a span's fields and of its results.
template <class Begin, class End, class B = indices_to<Begin::fields.size()>,
          class E = indices_to<End::descriptions.size()>>
struct fields_and_results;
template <class Begin, class End, std::size_t... B, std::size_t... E>
struct fields_and_results<Begin, End, indices<B...>, indices<E...>> {
    [[nodiscard]] static constexpr field_description result(field_description of) noexcept {
        of.result = true;
        return of;
    }
    static constexpr field_description list[] = {Begin::fields[B]...,
                                                 result(End::descriptions[E])...};
};
template <class Begin, class End>
struct signature_of;
template <class... Begin, class... End>
struct signature_of<type_list<Begin...>, type_list<End...>> {
    static_assert(field_list<Begin..., End...>::names_differ);
    using type = signature<typename Begin::type..., typename End::type...>;
};

/// A span with results.
template <event_kind Kind, literal Name, class... Fields>
requires(is_results<Fields> || ...) struct event_base<Kind, Name, Fields...>
    : parts_of_span<type_list<>, Fields...>::template begin<Kind, Name> {
    using described_by = event_base;
    static_assert(Kind == event_kind::span, "trace_ring: only a trace_ring::span has results");
    using parts = parts_of_span<type_list<>, Fields...>;
    using begin = typename parts::template begin<Kind, Name>;
    using end = typename parts::end;
    using described =
        typename signature_of<typename begin::list::stored, typename end::stored>::type;
    static constexpr static_list<field_description> fields{
        fields_and_results<begin, end>::list, begin::fields.size() + end::descriptions.size()};
    static constexpr bool has_results = true;

    /// Whether these values are the span's results. If not, the compiler says why.
    template <class... Values>
    static consteval bool takes_results() {
        if constexpr (sizeof...(Values) == end::given_count) {
            return end::template fit<Values...>();
        } else {
            return !call_is_wrong<wrong_count<begin, sizeof...(Values), end, " result">()>::value;
        }
    }
};

template <class E>
concept with_results = requires {
    E::has_results;
};

/// Whether a span of E can end with these values. If not, the compiler says why.
template <class E, class... Values>
[[nodiscard]] consteval bool takes_results() {
    if constexpr (with_results<E>) {
        return E::template takes_results<Values...>();
    } else {
        static_assert(sizeof...(Values) == 0,
                      "trace_ring: this span has no results: add trace_ring::results<...> behind "
                      "its fields");
        return sizeof...(Values) == 0;
    }
}

}  // namespace impl

/// An event that begins and ends; its fields are recorded when it begins. If the last of `Fields`
/// is `results<...>`, the fields in that are recorded when it ends.
template <literal Name, class... Fields>
struct span : impl::event_base<event_kind::span, Name, Fields...> {};

}  // namespace trace_ring::inline v1

#endif
