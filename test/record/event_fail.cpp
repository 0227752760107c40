// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What no field may be is refused when it is compiled, in each dialect.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <trace_ring/record/event.hpp>

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
