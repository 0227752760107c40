// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The ring where TRACE_RING_DISABLE is defined: the same names, which do nothing. A reservation is
/// a constant empty one, so code that depends on it is compiled away; there is no storage.

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/loss.hpp>
#include <trace_ring/position.hpp>
#include <trace_ring/record/concept.hpp>
#include <trace_ring/ring/policies.hpp>
#include <trace_ring/ring/sub_buffers/reader.hpp>
#include <trace_ring/ring/table/reader.hpp>
#include <trace_ring/ring/table/reservation.hpp>

namespace trace_ring::inline v1 {

/// A reader that has no records.
template <class Item>
class empty_reader {
public:
    [[nodiscard]] constexpr Item next() noexcept { return {}; }
    constexpr Item pass_over() noexcept { return {}; }
    [[nodiscard]] constexpr std::uint64_t read() const noexcept { return 0; }
    [[nodiscard]] constexpr std::uint64_t vacant() const noexcept { return 0; }
    [[nodiscard]] constexpr loss_counts lost() const noexcept { return {}; }
    [[nodiscard]] constexpr position at() const noexcept { return no_position; }
};

namespace impl {
template <class Layout>
struct disabled_types {
    using element = typename Layout::element;
    using item = table_item<element>;
};
template <class Layout>
requires(Layout::kind == record::layout::sub_buffers) struct disabled_types<Layout> {
    /// Replaces the members of a real reservation.
    struct element {};
    using item = sub_buffer_item;
};
}  // namespace impl

template <list_of_policies Kind>
class disabled_ring {
    using types = impl::disabled_types<typename ring_policies<Kind>::record_policy>;

public:
    using element = typename types::element;
    using reservation_type = no_reservation<element>;

    template <class... A>
    constexpr explicit disabled_ring(A&&...) noexcept {}
    disabled_ring(const disabled_ring&) = delete;
    disabled_ring& operator=(const disabled_ring&) = delete;

    template <class... A>
    constexpr reservation_type try_reserve(A&&...) noexcept {
        return {};
    }
    template <class... A>
    constexpr bool write(A&&...) noexcept {
        return false;
    }
    static constexpr bool write_bytes(std::uint16_t, std::span<const std::byte>) noexcept {
        return false;
    }
    template <class... Values>
    requires record::lays_out<typename ring_policies<Kind>::record_policy, Values...>
    constexpr bool put(const Values&...) noexcept { return false; }
    [[nodiscard]] typename ring_policies<Kind>::gate_policy& gate() noexcept { return gate_; }
    [[nodiscard]] typename ring_policies<Kind>::notify_policy& notifier() noexcept {
        return notify_;
    }
    [[nodiscard]] static constexpr std::uint64_t capacity() noexcept { return 0; }
    [[nodiscard]] static constexpr std::uint64_t now() noexcept { return 0; }
    [[nodiscard]] static constexpr position produced() noexcept { return no_position; }
    [[nodiscard]] static constexpr std::uint64_t vacant() noexcept { return 0; }
    [[nodiscard]] static constexpr loss_counts lost() noexcept { return {}; }
    [[nodiscard]] static constexpr bool stopped() noexcept { return false; }
    constexpr void restart() noexcept {}
    constexpr void abandon() noexcept {}
    constexpr void begin_after(position) noexcept {}
    [[nodiscard]] constexpr empty_reader<typename types::item> reader() const { return {}; }
    [[nodiscard]] constexpr empty_reader<typename types::item> backward_reader() const {
        return {};
    }
    [[nodiscard]] constexpr empty_reader<typename types::item> consumer(std::uint64_t = 1) {
        return {};
    }

private:
    typename ring_policies<Kind>::gate_policy gate_{};
    typename ring_policies<Kind>::notify_policy notify_{};
};

}  // namespace trace_ring::inline v1
