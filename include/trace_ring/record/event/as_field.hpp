// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Fields of a type that the user says how to record:
/// @code
///   template <>
///   struct trace_ring::as_field<money> {
///       using type = std::int64_t;
///       static type convert(const money& value) noexcept { return value.cents(); }
///   };
/// @endcode
/// `type` is one of the types that a field may have. The conversion runs before the record is
/// opened, so it may itself record.

#include <trace_ring/fwd.hpp>

#if __cplusplus >= 202002L

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/record/event/codec.hpp>

namespace trace_ring::inline v1::impl {

template <class T>
struct kept_whole {
    T value;
};
template <class T>
requires has_as_field<T>
struct codec<T> {
    using type_given = typename as_field<T>::type;
    using inner = codec<type_given>;
    static constexpr field_type type = inner::type;
    static constexpr field_form form = inner::form;
    static constexpr std::size_t count = inner::count;
    static constexpr bool ties = inner::ties;
    static constexpr bool as_it_lies = inner::as_it_lies;
    using enumeration = typename inner::enumeration;
    using unit = typename inner::unit;
    /// An array that the conversion returns is nobody else's.
    static constexpr bool whole = form == field_form::array;
    using kept = std::conditional_t<whole, kept_whole<type_given>, typename inner::kept>;
    [[gnu::always_inline]] static kept keep(const T& value) noexcept {
        using given =
            std::remove_cv_t<std::remove_reference_t<decltype(as_field<T>::convert(value))>>;
        static_assert(!narrows<type_given, given>(),
                      "trace_ring: as_field<T>::type does not hold every value of what its convert "
                      "returns");
        if constexpr (whole) {
            return {as_field<T>::convert(value)};
        } else {
            return inner::keep(as_field<T>::convert(value));
        }
    }
    [[gnu::always_inline]] static std::uint64_t bits(const kept& from, std::size_t k) noexcept {
        if constexpr (whole) {
            return inner::bits(inner::keep(from.value), k);
        } else {
            return inner::bits(from, k);
        }
    }
    [[gnu::always_inline]] static bytes_view memory(const kept& from) noexcept {
        if constexpr (whole) {
            return inner::memory(inner::keep(from.value));
        } else {
            return inner::memory(from);
        }
    }
};

}  // namespace trace_ring::inline v1::impl

#endif
