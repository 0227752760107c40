// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What no field may be is refused when it is compiled, in each dialect.

#include <cstdint>
#include <span>
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

#ifdef FAILS_two_fields_of_one_name  // expect: two fields of an event have the same name
struct refused_twice : event<"twice", field<"a", int>, field<"b", int>, field<"a", double>> {};
inline constexpr auto refused_names = refused_twice::fields;
#endif
#ifdef PASSES_two_fields_of_one_name
struct accepted_twice : event<"twice", field<"a", int>, field<"b", int>, field<"A", double>> {};
inline constexpr auto accepted_names = accepted_twice::fields;
#endif
