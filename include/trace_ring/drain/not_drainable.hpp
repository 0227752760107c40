// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What a compiler reports for a session of something that cannot be drained: one sentence, which
/// says what to write instead. For session.hpp.

#include <cstdint>
#include <type_traits>

#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/fwd.hpp>
#include <trace_ring/policies.hpp>

namespace trace_ring::inline v1::drain::impl {

/// Stands for a temporary object that was given to a session, and for nothing at all.
template <class T>
struct temporary {};
struct nothing {};

enum class reason : std::uint8_t {
    overwrites,
    records_of_one_size,
    constant,
    pointer,
    temporary,
    other
};

template <class T>
inline constexpr bool is_temporary = false;
template <class T>
inline constexpr bool is_temporary<temporary<T>> = !std::is_pointer_v<T>;
template <class T>
inline constexpr bool is_pointer = std::is_pointer_v<T>;
template <class T>
inline constexpr bool is_pointer<temporary<T>> = std::is_pointer_v<T>;

template <class T>
[[nodiscard]] consteval reason reason_of() noexcept {
    using plain = std::remove_cvref_t<T>;
    if constexpr (is_temporary<plain>) {
        return reason::temporary;
    } else if constexpr (is_pointer<plain>) {
        return reason::pointer;
    } else if constexpr (drainable<plain> || leads_to_drainable<plain>) {
        return reason::constant;
    } else if constexpr (list_of_policies<plain>) {
        return reason_of<ring<plain>>();
    } else if constexpr (requires { plain::full_policy::overwrites; }) {
        // A ring, of which only one of sub-buffers has a size of sub-buffers.
        constexpr bool of_sub_buffers = requires {
            plain::sub_buffer_bytes;
        };
        return of_sub_buffers ? reason::overwrites : reason::records_of_one_size;
    } else {
        return reason::other;
    }
}

/// The members of a session, so that nothing but the sentence is reported.
template <class Source>
class not_drainable {
    static constexpr reason why = reason_of<Source>();
    static_assert(why != reason::overwrites,
                  "drain::session: this ring overwrites its oldest records, so it cannot be "
                  "drained in place: name full::discard_newest, full::stop or full::block in its "
                  "policies, or read it with ring.reader()");
    static_assert(why != reason::records_of_one_size,
                  "drain::session: a ring of records of one size has no sessions: write "
                  "auto consumer = ring.consumer(); while (auto item = consumer.next()) {...}, or "
                  "name record::sub_buffers<> in its policies");
    static_assert(why != reason::constant,
                  "drain::session: a session changes what it drains: give it an object that is "
                  "not const");
    static_assert(why != reason::pointer,
                  "drain::session: a session takes an object, not a pointer: write "
                  "drain::session session(*pointer)");
    static_assert(why != reason::temporary,
                  "drain::session: what it drains must outlive the session: give it a name first, "
                  "and then write drain::session session(name)");
    static_assert(
        why != reason::other,
        "drain::session: this cannot be drained: write drain::session session(object), "
        "where the object is a recorder (include <trace_ring/draining.hpp>), a ring of "
        "sub-buffers that does not overwrite (include <trace_ring/rings.hpp>), or a model "
        "of drain::drainable");

public:
    template <class... A>
    explicit not_drainable(A&&...) noexcept {}
    template <class... A>
    std::uint64_t for_each(A&&...) noexcept {
        return 0;
    }
    template <class... A>
    std::uint64_t peek_each(A&&...) noexcept {
        return 0;
    }
    template <class... A>
    std::uint64_t for_each_record(A&&...) noexcept {
        return 0;
    }
    template <class... A>
    std::uint64_t finish(A&&...) noexcept {
        return 0;
    }
    template <class... A>
    std::uint64_t finish_records(A&&...) noexcept {
        return 0;
    }
    template <class... A>
    std::uint64_t service(A&&...) noexcept {
        return 0;
    }
    [[nodiscard]] std::uint64_t records() const noexcept { return 0; }
    [[nodiscard]] loss_counts lost() const noexcept { return {}; }
};

}  // namespace trace_ring::inline v1::drain::impl
