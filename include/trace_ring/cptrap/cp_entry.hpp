// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The 16-byte entry of CP's own trace table (VM/370, VM/SP). Its type codes are those of the VM/SP
/// System Programmer's Guide. This library takes the first byte as the code; the other bytes are
/// opaque, because their layouts are not known here.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <trace_ring/fwd.hpp>

namespace trace_ring::inline v1::record {

/// The events that CP traces. The values are the type codes.
enum class cp_event : std::uint8_t {
    external_interrupt = 0x01,
    svc_interrupt = 0x02,
    program_interrupt = 0x03,
    machine_check = 0x04,
    io_interrupt = 0x05,
    free_storage = 0x06,
    return_storage = 0x07,
    enter_scheduler = 0x08,
    queue_drop = 0x09,
    run_user = 0x0A,
    start_io = 0x0B,
    unstack_io_interrupt = 0x0C,
    virtual_csw_store = 0x0D,
    test_io = 0x0E,
    halt_device = 0x0F,
    unstack_block = 0x10,  ///< an IOBLOK or a TRQBLOK
    ncp_btu = 0x11,
    lock_spin = 0x12,
    sigp = 0x13,
    clear_channel = 0x14,
    iucv = 0x15,
    sna_console = 0x16,
    mssf = 0x17,
    start_io_fast = 0x18,
};

/// True for the codes above. A foreign table may hold other codes; treat them as numbers.
[[nodiscard]] constexpr bool known(cp_event event) noexcept {
    return static_cast<std::uint8_t>(event) >= 0x01 && static_cast<std::uint8_t>(event) <= 0x18;
}

/// The attached processor sets this bit in the type code.
inline constexpr std::byte attached_processor{0x40};

/// 16 bytes: the type code, then 15 opaque ones. On a 16-byte boundary in a host's ring.
struct alignas(16) cp_entry {
    using family = trace_ring::family::record;

    std::byte code{};         ///< the event; bit 1 is set on the attached processor
    std::byte payload[15]{};  ///< depends on the event

    /// The event, without the bit for the processor.
    [[nodiscard]] constexpr cp_event event() const noexcept {
        return static_cast<cp_event>(code & ~attached_processor);
    }
    /// The attached processor traced it, not the main one.
    [[nodiscard]] constexpr bool attached() const noexcept {
        return (code & attached_processor) != std::byte{0};
    }
    /// Sets the code of an event.
    constexpr void set(cp_event event, bool on_attached_processor = false) noexcept {
        code = static_cast<std::byte>(event);
        if (on_attached_processor) code |= attached_processor;
    }

    friend constexpr bool operator==(const cp_entry&, const cp_entry&) noexcept = default;
};

static_assert(sizeof(cp_entry) == 16 && alignof(cp_entry) == 16);
static_assert(offsetof(cp_entry, code) == 0);
static_assert(offsetof(cp_entry, payload) == 1);
static_assert(std::is_trivially_copyable_v<cp_entry> && std::is_standard_layout_v<cp_entry>);

}  // namespace trace_ring::inline v1::record
