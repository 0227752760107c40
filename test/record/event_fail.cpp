// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What no field may be is refused when it is compiled, in each dialect.

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <trace_ring/record/event.hpp>
#include <trace_ring/record/event/as_field.hpp>
#include <trace_ring/record/event/duration.hpp>
#include <trace_ring/record/event/members.hpp>
#include <trace_ring/record/event/span.hpp>
#include <trace_ring/record/event/value_names.hpp>

using trace_ring::event;
using trace_ring::field;
template <class T>
struct of : event<"of", field<"value", T>> {};

#ifdef FAILS_an_integer_of_128_bits  // expect: this type cannot be a field
inline constexpr auto refused_wide = of<__int128>::fields;
#endif
#ifdef PASSES_an_integer_of_128_bits
inline constexpr auto accepted_wide = of<std::int64_t>::fields;
#endif

#ifdef FAILS_an_unsigned_integer_of_128_bits  // expect: this type cannot be a field
inline constexpr auto refused_unsigned = of<unsigned __int128>::fields;
#endif
#ifdef PASSES_an_unsigned_integer_of_128_bits
inline constexpr auto accepted_unsigned = of<std::uint64_t>::fields;
#endif

#ifdef FAILS_many_integers_of_128_bits  // expect: this type cannot be a field
inline constexpr auto refused_span = of<std::span<const __int128>>::fields;
#endif
#ifdef PASSES_many_integers_of_128_bits
inline constexpr auto accepted_span = of<std::span<const std::int64_t>>::fields;
#endif

#ifdef FAILS_a_long_double  // expect: a field may be float or double, not long double
inline constexpr auto refused_real = of<long double>::fields;
#endif
#ifdef PASSES_a_long_double
inline constexpr auto accepted_real = of<double>::fields;
#endif

#ifdef FAILS_a_pointer_to_characters  // expect: a char pointer is ambiguous
inline constexpr auto refused_pointer = of<const char*>::fields;
#endif
#ifdef PASSES_a_pointer_to_characters
inline constexpr auto accepted_pointer = of<std::string_view>::fields;
#endif

#ifdef FAILS_a_string_that_owns_its_text  // expect: for a text use std::string_view
inline constexpr auto refused_text = of<std::string>::fields;
#endif
#ifdef PASSES_a_string_that_owns_its_text
static_assert(of<std::string_view>::takes<std::string>());
#endif

#ifdef FAILS_two_fields_of_one_name  // expect: two fields of an event have the same name
struct refused_twice : event<"twice", field<"a", int>, field<"b", int>, field<"a", double>> {};
inline constexpr auto refused_names = refused_twice::fields;
#endif
#ifdef PASSES_two_fields_of_one_name
struct accepted_twice : event<"twice", field<"a", int>, field<"b", int>, field<"A", double>> {};
inline constexpr auto accepted_names = accepted_twice::fields;
#endif

// --- Durations, structures and results
// ------------------------------------------------------------

#ifdef FAILS_a_duration_of_long_doubles  // expect: a field may be float or double, not long double
inline constexpr auto refused_duration = of<std::chrono::duration<long double>>::fields;
#endif
#ifdef PASSES_a_duration_of_long_doubles
inline constexpr auto accepted_duration = of<std::chrono::duration<double>>::fields;
#endif

#ifdef FAILS_a_duration_of_exaseconds  // expect: the period of a field's duration is at most 292
                                       // years
inline constexpr auto refused_period =
    trace_ring::impl::describe<of<std::chrono::duration<int, std::exa>>>();
#endif
#ifdef PASSES_a_duration_of_exaseconds
inline constexpr auto accepted_period =
    trace_ring::impl::describe<of<std::chrono::duration<int, std::giga>>>();
#endif

#ifdef FAILS_a_duration_that_may_be_cut  // expect: this field does not hold every value
static_assert(of<std::chrono::duration<int, std::milli>>::takes<std::chrono::milliseconds>());
#endif
#ifdef PASSES_a_duration_that_may_be_cut
static_assert(of<std::chrono::milliseconds>::takes<std::chrono::duration<int, std::milli>>());
static_assert(of<std::chrono::nanoseconds>::takes<std::chrono::milliseconds>());
#endif

#ifdef FAILS_a_duration_that_is_rounded  // expect: this field is not made of the type that is given
static_assert(of<std::chrono::milliseconds>::takes<std::chrono::microseconds>());
#endif
#ifdef PASSES_a_duration_that_is_rounded
static_assert(of<std::chrono::microseconds>::takes<std::chrono::milliseconds>());
#endif

struct pair_of_ints {
    int x, y;
};
#ifdef FAILS_a_structure_without_a_list  // expect: this type cannot be a field
inline constexpr auto refused_structure = of<pair_of_ints>::fields;
#endif
#ifdef PASSES_a_structure_without_a_list
struct listed_pair {
    int x, y;
};
template <>
struct trace_ring::members_of<listed_pair> : trace_ring::members<&listed_pair::x, &listed_pair::y> {
};
static_assert(of<listed_pair>::fields.size() == 2 && of<listed_pair>::takes<listed_pair>());
#endif

#ifdef FAILS_results_of_an_event  // expect: only a trace_ring::span has results
struct refused_results : event<"refused", trace_ring::results<field<"a", int>>> {};
inline constexpr auto refused_event = refused_results::fields;
#endif
#ifdef PASSES_results_of_an_event
struct accepted_results : trace_ring::span<"accepted", trace_ring::results<field<"a", int>>> {};
inline constexpr auto accepted_event = accepted_results::fields;
#endif

#ifdef FAILS_fields_behind_results  // expect: a span has one list of results, behind its fields
struct refused_order
    : trace_ring::span<"refused", trace_ring::results<field<"a", int>>, field<"b", int>> {};
inline constexpr auto refused_order_of = refused_order::fields;
#endif
#ifdef PASSES_fields_behind_results
struct accepted_order
    : trace_ring::span<"accepted", field<"b", int>, trace_ring::results<field<"a", int>>> {};
inline constexpr auto accepted_order_of = accepted_order::fields;
#endif

#ifdef FAILS_a_result_with_the_name_of_a_field  // expect: two fields of an event have the same name
struct refused_name
    : trace_ring::span<"refused", field<"a", int>, trace_ring::results<field<"a", int>>> {};
inline constexpr auto refused_name_of = trace_ring::impl::describe<refused_name>();
#endif
#ifdef PASSES_a_result_with_the_name_of_a_field
struct accepted_name
    : trace_ring::span<"accepted", field<"a", int>, trace_ring::results<field<"b", int>>> {};
inline constexpr auto accepted_name_of = trace_ring::impl::describe<accepted_name>();
#endif

#ifdef FAILS_results_that_were_forgotten  // expect: a record has one value for each field
struct refused_end
    : trace_ring::span<"refused", trace_ring::results<field<"a", int>, field<"b", int>>> {};
static_assert(trace_ring::impl::takes_results<refused_end, int>());
#endif
#ifdef PASSES_results_that_were_forgotten
struct accepted_end
    : trace_ring::span<"accepted", trace_ring::results<field<"a", int>, field<"b", int>>> {};
static_assert(trace_ring::impl::takes_results<accepted_end, int, int>());
#endif

#ifdef FAILS_results_of_a_span_without  // expect: this span has no results
struct refused_plain : trace_ring::span<"refused", field<"a", int>> {};
static_assert(trace_ring::impl::takes_results<refused_plain, int>());
#endif
#ifdef PASSES_results_of_a_span_without
struct accepted_plain : trace_ring::span<"accepted", field<"a", int>> {};
static_assert(trace_ring::impl::takes_results<accepted_plain>());
#endif

// --- Values that a field does not hold: each with its type, and what to write --------------------

#ifdef FAILS_a_fraction_for_an_integer  // expect: this field does not hold every value
void refused_fraction(double value) {
    of<std::uint64_t>::takes<decltype(value)>();
}
#endif
#ifdef PASSES_a_fraction_for_an_integer
void accepted_fraction(double value) {
    of<double>::takes<decltype(value)>();
}
#endif

#ifdef FAILS_a_wider_integer  // expect: write static_cast
void refused_wider() {
    of<std::uint16_t>::takes<int>();
}
#endif
#ifdef PASSES_a_wider_integer
void accepted_width() {
    of<std::uint32_t>::takes<int>();  // 42 is one
    of<int>::takes<unsigned>();
    of<std::uint64_t>::takes<int>();
    of<long long>::takes<long>();
    of<std::int16_t>::takes<signed char>();
    of<unsigned>::takes<bool>();
}
#endif

#ifdef FAILS_a_conversion_to_a_fraction  // expect: type does not hold every value of what its
struct weight {
    double grams = 0;
};
template <>
struct trace_ring::as_field<weight> {
    using type = std::int32_t;
    static double convert(const weight& value) noexcept { return value.grams; }
};
inline const auto weighed = trace_ring::impl::codec<weight>::keep(weight{1.5});
#endif
#ifdef PASSES_a_conversion_to_a_fraction
struct weight {
    double grams = 0;
};
template <>
struct trace_ring::as_field<weight> {
    using type = double;
    static float convert(const weight& value) noexcept { return static_cast<float>(value.grams); }
};
inline const auto weighed = trace_ring::impl::codec<weight>::keep(weight{1.5});
#endif

#ifdef FAILS_a_double_for_a_float  // expect: this field does not hold every value
void refused_double() {
    of<float>::takes<double>();
}
#endif
#ifdef PASSES_a_double_for_a_float
void accepted_float() {
    of<float>::takes<short>();
    of<double>::takes<float>();
    of<double>::takes<int>();
}
#endif

#ifdef FAILS_a_long_integer_for_a_double  // expect: this field does not hold every value
void refused_long() {
    of<double>::takes<std::int64_t>();
}
#endif
#ifdef PASSES_a_long_integer_for_a_double
void accepted_long() {
    of<std::int64_t>::takes<std::int64_t>();
}
#endif

#ifdef FAILS_a_number_for_a_bool  // expect: a bool: value != 0
void refused_bool() {
    of<bool>::takes<int>();
}
#endif
#ifdef PASSES_a_number_for_a_bool
void accepted_bool() {
    of<bool>::takes<bool>();
}
#endif

#ifdef FAILS_one_value_too_few  // expect: one value for each field of its event
void refused_none() {
    of<int>::takes<>();
}
#endif
#ifdef PASSES_one_value_too_few
void accepted_one() {
    of<std::string_view>::takes<char[6]>();
}
#endif

#ifdef FAILS_a_text_for_a_number  // expect: this field is not made of the type that is given
void refused_text_as_number() {
    of<double>::takes<char[6]>();
}
#endif
#ifdef PASSES_a_text_for_a_number
void accepted_number() {
    of<double>::takes<float>();
}
#endif
