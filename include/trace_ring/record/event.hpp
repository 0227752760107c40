// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Event types: a name and named, typed fields, declared once as a struct.
/// @code
///   struct order_sent : trace_ring::event<"order.sent", trace_ring::field<"id", std::uint64_t>,
///                                         trace_ring::field<"price", double>> {};
///   struct request : trace_ring::span<"request", trace_ring::field<"url", std::string_view>> {};
///   struct depth : trace_ring::counter<"queue.depth", trace_ring::field<"value", int>> {};
/// @endcode
/// A field may be an integer, float, double, bool, char, an enum, `address`, `flow`, a pointer to
/// an object, `std::array` of those, `std::string_view`, `std::span<const T>`, or a type of the
/// user's for which `as_field` is specialised. How each lies in a record: record/field.hpp. An
/// event whose struct says `static constexpr bool counted = true;` also has a total that survives
/// the wrap. Enumerations may have names for their values: record/event/value_names.hpp.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <trace_ring/record/event/codec.hpp>
#include <trace_ring/record/event/value_names.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring::inline v1 {

/// One field as the dictionary describes it.
struct field_description {
    std::string_view name;
    field_type type{};
    field_form form{};
    std::uint16_t count = 1;
    std::uint16_t offset = 0;  ///< in the payload
    bool flow = false;         ///< its elements are numbers of flows
};

/// An event type as the dictionary describes it. Static storage; the views point to literals.
struct type_description {
    std::string_view name;
    event_kind kind{};
    bool counted = false;
    std::uint32_t fixed_bytes = 0;  ///< of the payload, a multiple of 8
    std::span<const field_description> fields;
    std::span<const std::uint64_t> names{};  ///< of values: record/event/value_names.hpp
};

namespace impl {

template <event_kind Kind, literal Name, class... Fields>
struct event_base {
    static constexpr event_kind kind = Kind;
    static constexpr std::string_view name = Name.view();
    static constexpr std::size_t field_count = sizeof...(Fields);
    static_assert(!name.empty(), "trace_ring: an event has a name");
    static constexpr bool names_differ = [] {
        const std::array<std::string_view, field_count> names{Fields::name...};
        for (std::size_t i = 0; i < field_count; ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                if (names[i] == names[k]) return false;
            }
        }
        return true;
    }();
    static_assert(names_differ, "trace_ring: two fields of an event have the same name");

    /// The values of one record, converted and ready to be stored.
    using wires = std::tuple<typename codec<typename Fields::type>::wire...>;

    static constexpr bool variable =
        ((codec<typename Fields::type>::form == field_form::variable) || ...);

    static constexpr std::array<field_description, field_count> fields = [] {
        std::array<field_description, field_count> made{};
        [[maybe_unused]] std::size_t at = 0;
        [[maybe_unused]] std::size_t i = 0;
        [[maybe_unused]] const auto add = [&]<class F>(std::type_identity<F>) {
            using c = codec<typename F::type>;
            const std::size_t unit = c::form == field_form::variable ? 2 : size_of(c::type);
            at = (at + unit - 1) / unit * unit;
            made[i++] = {F::name,
                         c::type,
                         c::form,
                         static_cast<std::uint16_t>(c::count),
                         static_cast<std::uint16_t>(at),
                         ties<c>()};
            at += unit * c::count;
        };
        (add(std::type_identity<Fields>{}), ...);
        return made;
    }();

    static_assert(
        [] {
            for (std::size_t i = most_flow_fields; i < field_count; ++i) {
                if (fields[i].flow) return false;
            }
            return true;
        }(),
        "trace_ring: flows are among the first 64 fields of an event");

    static constexpr std::span<const std::uint64_t> names =
        names_words<typename enumeration_of<codec<typename Fields::type>>::type...>;

    static constexpr std::size_t fixed_bytes = [] {
        std::size_t end = 0;
        for (const auto& f : fields) {
            end = f.offset + (f.form == field_form::variable ? 2U : size_of(f.type) * f.count);
        }
        return (end + 7) / 8 * 8;
    }();
    static_assert(fixed_bytes <= 32000, "trace_ring: an event's fixed fields exceed 32000 bytes");

    /// Whether a record can be made of such values. If not, the compiler says why.
    template <class... Values>
    static consteval bool takes() {
        if constexpr (sizeof...(Values) == field_count) {
            return (takes_value<Fields, Values>() && ... && true);
        } else {
            return !call_is_wrong<wrong_count<event_base, sizeof...(Values)>()>::value;
        }
    }

    [[nodiscard]] static wires encode(const typename Fields::type&... values) noexcept {
        return wires(codec<typename Fields::type>::encode(values)...);
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

/// What the dictionary says of an event.
template <class Event>
inline constexpr type_description description{
    Event::name,   Event::kind, is_counted<Event>(), static_cast<std::uint32_t>(Event::fixed_bytes),
    Event::fields, Event::names};

}  // namespace impl

/// A moment.
template <literal Name, class... Fields>
struct event : impl::event_base<event_kind::instant, Name, Fields...> {};

/// Something that begins and ends; the fields are recorded when it begins.
template <literal Name, class... Fields>
struct span : impl::event_base<event_kind::span, Name, Fields...> {};

/// Values that hold until the next record of the same event.
template <literal Name, class... Fields>
struct counter : impl::event_base<event_kind::counter, Name, Fields...> {};

/// What `record`, `reserve` and `scope` take: a struct derived from `event`, `span` or `counter`.
template <class E>
concept recordable = requires {
    typename E::wires;
    { E::kind } -> std::convertible_to<event_kind>;
    { E::name } -> std::convertible_to<std::string_view>;
};

namespace impl {

template <class E>
struct no_event {
    static_assert(recordable<E>,
                  "trace_ring: this is no event: a struct derived from trace_ring::event, span or "
                  "counter");
    static constexpr bool value = true;
};
/// Where nothing but an event makes sense: of anything else the compiler says so.
template <class E>
concept told_event = recordable<E> || no_event<E>::value;

/// Whether a record of E can be made of such values. If not, the compiler says why, once.
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
