// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The record family of policies: what a ring holds, and how records lie in it.
///
/// | model                        | a ring with it is                                             |
/// |------------------------------|---------------------------------------------------------------|
/// | `record::bare<T>`            | a table of T, contiguous, without bytes of the library. A     |
/// |                              | reader may see a torn record while it is overwritten or, with |
/// |                              | many writers, filled                                          |
/// | `record::sequenced<T>`       | a table of T with a sequence word each: no reader sees a torn |
/// |                              | record                                                        |
/// | `record::sub_buffers<Bytes>` | a ring of sub-buffers with records of variable length         |
/// | a T with that alias (below)  | the same as `bare<T>`                                         |
///
/// A user may add a model of the last kind, an element type:
///
/// | expression  | result           | meaning                                      |
/// |-------------|------------------|----------------------------------------------|
/// | `T::family` | `family::record` | `using family = trace_ring::family::record;` |
///
/// T must also be trivially copyable, because it is copied as bytes, also across processes. A type
/// without the alias is used as `bare<T>` or `sequenced<T>`. The smallest valid model:
/// @code
///   struct sample {
///       using family = trace_ring::family::record;
///       std::uint64_t value;
///   };
/// @endcode
///
/// Records of variable length are the caller's bytes, unless the policy lays them out itself. Such
/// a policy is derived from `sub_buffers<Bytes>` and has, as `record::cptrap_record` does,
///
/// | expression                     | result        | meaning                                   |
/// |--------------------------------|---------------|-------------------------------------------|
/// | `R::most_bytes`                | `std::size_t` | the length of the longest payload         |
/// | `R::lay_out(into, values...)`  | `laid_out`    | lays a record of these values into `into`,|
/// |                                |               | which has `most_bytes`; never fails       |
///
/// for each list of values that the ring's `put` should take.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::record {

/// How records lie in a ring; rings in files store these values.
enum class layout : std::uint32_t { bare = 1, sequenced = 2, sub_buffers = 3 };

template <class T>
concept copied_as_bytes = std::is_trivially_copyable_v<T> && std::is_object_v<T>;

namespace impl {

/// In place of an element that was refused, so that nothing but the sentence is said.
struct refused {
    constexpr refused() noexcept = default;
    template <class... Values>
    constexpr refused(const Values&...) noexcept {}  // implicit: as the element may be made
};

/// What may lie in a table. If T may not, one sentence says why.
template <class T>
struct element_of {
    static constexpr bool is_object = std::is_object_v<T> && !std::is_array_v<T>;
    static_assert(
        is_object,
        "trace_ring: records of a ring are objects: no references, functions or void, and "
        "no arrays but std::array");
    static constexpr bool is_plain = is_object && !std::is_const_v<T> && !std::is_volatile_v<T>;
    static_assert(!is_object || is_plain,
                  "trace_ring: records of a ring are written in place, so their type is neither "
                  "const nor volatile");
    static constexpr bool is_complete = is_plain && requires { sizeof(T); };
    static_assert(!is_plain || is_complete,
                  "trace_ring: the type of a ring's records is declared and not defined");
    static constexpr bool is_bytes = [] {
        if constexpr (is_complete) {
            return std::is_trivially_copyable_v<T>;
        } else {
            return false;
        }
    }();
    static_assert(
        !is_complete || is_bytes,
        "trace_ring: records of a ring are copied as bytes, so their type is trivially "
        "copyable: no std::string, no container, no owner of anything, no virtual function");
    static constexpr bool is_copied =
        is_bytes && std::is_copy_constructible_v<T> && std::is_copy_assignable_v<T>;
    static_assert(
        !is_bytes || is_copied,
        "trace_ring: records of a ring are copied and assigned, which their type does not "
        "allow: no std::atomic, no const member, no reference");
    static constexpr bool is_made = is_copied && std::is_default_constructible_v<T>;
    static_assert(
        !is_copied || is_made,
        "trace_ring: records of a ring are read into default-constructed objects, so their "
        "type has a default constructor");
    static constexpr bool is_aligned = [] {
        if constexpr (is_made) {
            return alignof(T) <= 64;
        } else {
            return false;
        }
    }();
    static_assert(
        !is_made || is_aligned,
        "trace_ring: records of a ring have an alignment of at most 64 bytes, a cache line");
    using type = std::conditional_t<is_aligned, T, refused>;
};

}  // namespace impl

/// Records of one type, contiguous: `capacity` times sizeof(T) bytes, and nothing else.
template <class T>
struct bare {
    using family = trace_ring::family::record;
    using element = typename impl::element_of<T>::type;  ///< the type of a record
    static constexpr layout kind = layout::bare;         ///< the layout of records in the ring
};

/// Records of one type, each in a slot of whole 64-bit words behind its sequence word: filled
/// beside the slot, and stored word by word at its commit.
template <class T>
struct sequenced {
    using family = trace_ring::family::record;
    using element = typename impl::element_of<T>::type;  ///< the type of a record
    static constexpr layout kind = layout::sequenced;    ///< the layout of records in the ring
};

/// Records of variable length in sub-buffers of `Bytes`, a power of two from 512 to 32768.
template <std::size_t Bytes = 4096>
struct sub_buffers {
    static_assert(Bytes >= 512 && Bytes <= 32768 && (Bytes & (Bytes - 1)) == 0,
                  "record::sub_buffers needs a power of two from 512 to 32768 bytes");
    using family = trace_ring::family::record;
    static constexpr layout kind = layout::sub_buffers;  ///< the layout of records in the ring
    static constexpr std::size_t bytes = Bytes;          ///< the size of a sub-buffer
};

/// A record that was laid out: its id in the ring, and its length.
struct laid_out {
    std::uint16_t id = 0;   ///< the record's id
    std::size_t bytes = 0;  ///< the bytes of its payload
};

/// A layout that makes records of these values.
template <class R, class... Values>
concept lays_out = requires(std::span<std::byte> into, const Values&... values) {
    { R::lay_out(into, values...) } -> std::same_as<laid_out>;
    { R::most_bytes } -> std::convertible_to<std::size_t>;
};

/// Writes a record of these values, laid out on the stack, into `ring`, and returns the result of
/// the ring's `write_bytes`. Signal-safe if that is; linear in the record's bytes.
template <class R, class Ring, class... Values>
requires lays_out<R, Values...>
bool put_laid_out(Ring& ring, const Values&... values) noexcept {
    static_assert(R::most_bytes <= Ring::max_payload,
                  "trace_ring: longer than a sub-buffer can hold");
    std::array<std::byte, R::most_bytes> bytes;
    const laid_out laid = R::lay_out(bytes, values...);
    return ring.write_bytes(laid.id, std::span<const std::byte>(bytes.data(), laid.bytes));
}

/// One of the three layouts.
template <class R>
concept names_a_layout = in_family<R, trace_ring::family::record> && requires {
    { R::kind } -> std::convertible_to<layout>;
};

/// An element type that is used as a policy itself.
template <class R>
concept element =
    in_family<R, trace_ring::family::record> && !names_a_layout<R> && copied_as_bytes<R>;

template <class R>
concept policy = names_a_layout<R> || element<R>;

namespace impl {
template <class R>
struct layout_of {
    using type = bare<R>;
};
template <names_a_layout R>
struct layout_of<R> {
    using type = R;
};
}  // namespace impl

/// The layout of a record policy.
template <policy R>
using layout_of = typename impl::layout_of<R>::type;

}  // namespace trace_ring::inline v1::record
