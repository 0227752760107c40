// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Event types: a name and named, typed fields, declared once as a struct.
/// @code
///   struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
///                                         trace_ring::field<"price", double>> {};
///   struct request : trace_ring::span<"request", trace_ring::field<"url", std::string_view>,
///                                     trace_ring::results<trace_ring::field<"status", int>>> {};
///   struct depth : trace_ring::counter<"queue.depth", trace_ring::field<"value", int>> {};
/// @endcode
/// A field may be an integer, float, double, bool, char, an enum, `address`, `flow`, a pointer to
/// an object, a `std::chrono::duration`, `std::array` of those, `std::string_view`,
/// `std::span<const T>`, a structure whose members are listed (record/event/members.hpp), or a type
/// for which the user specialises `as_field`. A duration is recorded as its count, exactly, and the
/// dictionary has its period. record/field.hpp says how each lies in a record. An event whose
/// struct has `static constexpr bool counted = true;` also has a total, which counts overwritten
/// and lost records too. Values of enumerations may have names: record/event/value_names.hpp.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>

#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// One field as the dictionary describes it.
struct field_description {
    name_view name{};
    field_type type{};
    field_form form{};
    std::uint16_t count = 1;
    std::uint16_t offset = 0;  ///< in the payload
    bool flow = false;         ///< its elements are numbers of flows
    bool result = false;       ///< recorded at the end of a span; the offset is in that payload
};

/// An event type as the dictionary describes it. Static storage; the views refer to literals.
struct type_description {
    name_view name{};
    event_kind kind{};
    bool counted = false;
    std::uint32_t fixed_bytes = 0;  ///< of the payload, a multiple of 8
    static_list<field_description> fields{};
    static_list<std::uint64_t> names{};  ///< units, names of values: record/event/value_names.hpp
};

/// The fields that a span records when it ends: `scope.end(status, bytes)`. The same types as
/// fields.
template <class... Fields>
struct results {};

namespace impl {

/// The fields of an event: one type for all events whose fields are the same, including names.
template <class... Fields>
struct field_list {
    using signature = impl::signature<typename Fields::type...>;
    /// What the values of a record are converted by.
    using given = signature;
    using stored = type_list<Fields...>;
    static constexpr std::size_t count = sizeof...(Fields);
    static constexpr std::size_t given_count = count;
    [[nodiscard]] static constexpr name_view given_name(std::size_t i) noexcept {
        const name_view names[] = {Fields::name..., {}};
        return names[i];
    }

    static constexpr bool names_differ = [] {
        const name_view names[] = {Fields::name..., {}};
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                if (names[i] == names[k]) return false;
            }
        }
        return true;
    }();
    static_assert(names_differ, "trace_ring: two fields of an event have the same name");

    template <std::size_t... Index>
    struct described {
        static constexpr field_description list[] = {
            {Fields::name, codec<typename Fields::type>::type, codec<typename Fields::type>::form,
             static_cast<std::uint16_t>(codec<typename Fields::type>::count),
             static_cast<std::uint16_t>(signature::places.at[Index]),
             codec<typename Fields::type>::ties}...};
    };
    template <std::size_t... Index>
    static constexpr static_list<field_description> describe(indices<Index...>) noexcept {
        if constexpr (count == 0) {
            return {};
        } else {
            return {described<Index...>::list, count};
        }
    }
    static constexpr static_list<field_description> descriptions = describe(indices_to<count>{});

    /// Whether each field can hold its value's type.
    template <class... Values>
    static consteval bool fit() {
        if constexpr (sizeof...(Values) == count) {
            return (takes_value<Fields, Values>() && ... && true);
        } else {
            return false;
        }
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
    using given = expanded<typename all::signature, typename Fields::type...>;
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

template <event_kind Kind, literal Name, class... Fields>
struct event_base {
    using described_by = event_base;  ///< what an event's state is kept by, not the user's name
    using list = field_list<Fields...>;
    using signature = typename list::signature;
    using given = typename list::given;
    using described = signature;
    static constexpr event_kind kind = Kind;
    static constexpr name_view name = Name.view();
    static constexpr std::size_t field_count = list::given_count;
    static constexpr std::size_t fixed_bytes = signature::places.bytes;
    static constexpr static_list<field_description> fields = list::descriptions;
    static_assert(sizeof Name.text > 1, "trace_ring: an event has a name");

    /// Whether a record can be made of these values. If not, the compiler says why.
    template <class... Values>
    static consteval bool takes() {
        if constexpr (sizeof...(Values) == field_count) {
            return list::template fit<Values...>();
        } else {
            return !call_is_wrong<wrong_count<event_base, sizeof...(Values)>()>::value;
        }
    }
};

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
template <class List>
struct signature_of;
template <class... Fields>
struct signature_of<type_list<Fields...>> {
    static_assert(field_list<Fields...>::names_differ);
    using type = signature<typename Fields::type...>;
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
    using described = typename signature_of<
        typename joined<typename begin::list::stored, typename end::stored>::type>::type;
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

template <class Event>
[[nodiscard]] consteval bool is_counted() {
    if constexpr (requires { Event::counted; }) {
        return Event::counted;
    } else {
        return false;
    }
}

/// The dictionary's description of an event.
template <class Event>
[[nodiscard]] consteval type_description describe() noexcept {
    return {Event::name,         Event::kind,
            is_counted<Event>(), static_cast<std::uint32_t>(Event::fixed_bytes),
            Event::fields,       Event::described::names};
}

}  // namespace impl

/// An event at one moment.
template <literal Name, class... Fields>
struct event : impl::event_base<event_kind::instant, Name, Fields...> {};

/// An event that begins and ends; its fields are recorded when it begins. If the last of `Fields`
/// is `results<...>`, the fields in that are recorded when it ends.
template <literal Name, class... Fields>
struct span : impl::event_base<event_kind::span, Name, Fields...> {};

/// Values that hold until the next record of the same event.
template <literal Name, class... Fields>
struct counter : impl::event_base<event_kind::counter, Name, Fields...> {};

/// What `record`, `reserve` and `scope` take: a struct derived from `event`, `span` or `counter`.
template <class E>
concept recordable = requires {
    typename E::signature;
    E::kind == event_kind::instant;
};

namespace impl {

template <class E>
struct no_event {
    static_assert(recordable<E>,
                  "trace_ring: this is no event: a struct derived from trace_ring::event, span or "
                  "counter");
    static constexpr bool value = true;
};
/// For parameters that must be events: for any other type the compiler says so.
template <class E>
concept told_event = recordable<E> || no_event<E>::value;

/// Whether a record of E can be made of these values. If not, the compiler says why, once.
template <class E, class... Values>
[[nodiscard]] consteval bool takes() {
    if constexpr (recordable<E>) {
        return E::template takes<Values...>();
    } else {
        return false;
    }
}

}  // namespace impl

}  // namespace trace_ring::inline v1

#endif
