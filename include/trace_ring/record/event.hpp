// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Event types: a name and named, typed fields, declared once as a struct.
/// @code
///   struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
///                                         trace_ring::field<"price", double>> {};
///   struct depth : trace_ring::counter<"queue.depth", trace_ring::field<"value", int>> {};
/// @endcode
/// A field may be an integer, float, double, bool, char, an enum, `address`, `flow`, a pointer to
/// an object, `std::array` of those, `std::string_view` or `std::span<const T>`. record/field.hpp
/// says how each lies in a record. An event whose struct has `static constexpr bool counted =
/// true;` also has a total, which counts overwritten and lost records too. trace_ring.hpp includes
/// further headers of record/event/: spans (span.hpp), names of enumerations' values
/// (value_names.hpp), fields that are structures (members.hpp) or durations (duration.hpp), and
/// fields of the user's types (as_field.hpp).

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>

#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/signature.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// One field as the dictionary describes it.
struct field_description {
    name_view name{};          ///< the field's name
    field_type type{};         ///< the type of its elements
    field_form form{};         ///< one value, an array, or a text
    std::uint16_t count = 1;   ///< number of elements of an array
    std::uint16_t offset = 0;  ///< in the payload
    bool flow = false;         ///< its elements are numbers of flows
    bool result = false;       ///< recorded at the end of a span; the offset is in that payload
};

/// An event type as the dictionary describes it. Static storage; the views refer to literals.
struct type_description {
    name_view name{};               ///< the event's name
    event_kind kind{};              ///< event, span or counter
    bool counted = false;           ///< its total survives the wrap and the crash
    std::uint32_t fixed_bytes = 0;  ///< of the payload, a multiple of 8
    /// Its fields, in the order of declaration, results of spans last.
    static_list<field_description> fields{};
    static_list<std::uint64_t> names{};  ///< units, names of values: record/event/value_names.hpp
};

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

/// An event that begins and ends (record/event/span.hpp).
template <literal Name, class... Fields>
struct span;  // include <trace_ring/recorder/spans.hpp>

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
