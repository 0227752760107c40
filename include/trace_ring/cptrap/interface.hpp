// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// CPTRAP's CP interface (VM/SP): programs pass data with a code, and a record is made if CPTRAP is
/// active and the code is chosen. Source: VM/SP System Programmer's Guide, "Passing CP Data to the
/// CPTRAP File"; the layouts are in cptrap/record.hpp.
/// @code
///   struct trap_trace : trace_ring::policies<trace_ring::record::cptrap_record<>,
///                                            trace_ring::full::discard_newest> {};
///   trace_ring::ring<trap_trace> ring;          // or a recorder: any number of threads
///   trace_ring::cptrap::trapok trapok;          // inactive
///   trace_ring::cptrap::cp_interface trap(trapok, ring);
///
///   trap.hand_over(3, bytes);                   // returns immediately
///   constexpr auto what = trace_ring::record::cptrap_selection().code(3);
///   trapok.start(what);
///   trap.hand_over(3, bytes);                   // recorded
/// @endcode
/// CP's own wrap table is another ring, independent of CPTRAP: `entry` records an entry of it in
/// CPTRAP, too. The layout of the data that a virtual machine passes (MONITOR CALL 0,10) is not
/// known, so there is no interface for them; their parameter list is the same.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/atomic.hpp>
#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/das/guest_storage.hpp>
#include <trace_ring/record/event.hpp>

namespace trace_ring::inline v1::cptrap {

/// Whether CPTRAP is active, and what is chosen: one word, like TRAPOK's. Constant-initialised as
/// inactive. Any thread; signal-safe.
class trapok {
public:
    constexpr trapok() noexcept = default;

    /// Activates CPTRAP, or changes the selection. `what` must outlive its use: other threads may
    /// use it for a moment after `stop` or another `start`.
    void start(const record::cptrap_selection& what) noexcept {
        // order: cptrap.start:A pairs with cptrap.ask:A
        chosen_.store(&what, release);
    }
    /// Ends CPTRAP: calls and entries are ignored from now on. Any thread.
    void stop() noexcept {
        chosen_.store(nullptr, relaxed);  // relaxed: it publishes no other data
    }
    /// The selection; null if inactive. One load.
    [[nodiscard]] const record::cptrap_selection* active() const noexcept {
        // order: cptrap.ask:A pairs with cptrap.start:A
        return chosen_.load(acquire);
    }

private:
    atomic_pointer<const record::cptrap_selection> chosen_{};
};

/// A CPTRAP record as a recorder's event: `type` and `code` are the record's, `data` the bytes
/// after its header. The length is the length of the data.
struct trap_event
    : trace_ring::event<"cptrap", field<"type", std::uint8_t>, field<"code", std::uint16_t>,
                        field<"data", std::span<const std::uint8_t>>> {};

/// A ring whose records are bytes: with record::cptrap_record or record::sub_buffers. The payload
/// is a CPTRAP record, padded with zeros to a multiple of 8; its first byte is also the record's
/// id.
template <class S>
concept ring_of_bytes = requires(S& sink, std::span<const std::byte> bytes) {
    { sink.write_bytes(std::uint16_t{1}, bytes) } -> std::convertible_to<bool>;
};
/// A recorder of events: it has a lane for each thread or for each processor.
template <class S>
concept recorder_of_events = requires(S& sink, std::span<const std::uint8_t> data) {
    {
        sink.template record<trap_event>(std::uint8_t{1}, std::uint16_t{1}, data)
        } -> std::convertible_to<bool>;
};

/// The result of passing data to CPTRAP.
enum class outcome : std::uint8_t {
    stored,
    inactive,      ///< CPTRAP is not active: returned immediately
    not_selected,  ///< its type or code is not chosen
    refused,       ///< the ring had no room (it counts the loss), or its gate is closed
    exception,     ///< only of a guest's call: an access to its storage met an exception
};

/// The result of a guest's call.
struct call_result {
    outcome what = outcome::inactive;                       ///< what became of the call
    program_exception exception = program_exception::none;  ///< none unless `what` is exception
    std::uint32_t address = 0;  ///< exception: the address of the bytes whose access met it

    friend constexpr bool operator==(const call_result&, const call_result&) noexcept = default;
};

namespace impl {

/// Copies bytes of a guest's storage, at any alignment. It fetches whole words, because no page and
/// no protected area divides a word; it does not wrap at the end of storage.
template <guest_storage Storage>
[[nodiscard]] program_exception fetch_bytes(Storage& storage, std::uint32_t address,
                                            std::span<std::byte> into) {
    if (into.empty()) return program_exception::none;
    const std::uint32_t first = address & ~3U;
    const std::uint32_t end = address + static_cast<std::uint32_t>(into.size());
    const std::uint32_t last = (end + 3U) & ~3U;
    if (const auto met = storage.test(first, last - first, guest_access::unprotected);
        met != program_exception::none)
        return met;
    for (std::uint32_t at = first; at < last; at += 4) {
        const std::uint32_t word = storage.fetch(at);
        for (std::uint32_t i = at < address ? address - at : 0; i < 4 && at + i < end; ++i) {
            into[at + i - address] = static_cast<std::byte>(word >> (24 - i * 8) & 0xFFU);
        }
    }
    return program_exception::none;
}

}  // namespace impl

/// One interface; any number of them may use one trapok and one ring or recorder. A ring of
/// sub-buffers has one writer, and so allows interfaces on one thread only; a recorder, of any
/// kind, allows them on any. Signal-safe if the ring is. Both must outlive it.
template <class Sink>
requires(ring_of_bytes<Sink> || recorder_of_events<Sink>) class cp_interface {
public:
    /// Calls are passed on to `sink` if `gate` selects them; both must outlive this object.
    constexpr cp_interface(const trapok& gate, Sink& sink) noexcept : gate_(&gate), sink_(&sink) {}

    /// TRAPOK: records `data` with an individualizing code. Longer data are cut to 264 bytes
    /// without any sign.
    outcome hand_over(std::uint16_t code, std::span<const std::byte> data) const noexcept {
        const auto* const what = gate_->active();
        if (what == nullptr) return outcome::inactive;
        if (!what->takes(code)) return outcome::not_selected;
        return put(record::cptrap_type::cp_interface, code, data);
    }

    /// Records an entry of CP's trace table as this library's type table_entry, if its event is
    /// chosen. The table itself is not affected.
    outcome entry(const record::cp_entry& one) const noexcept {
        const auto* const what = gate_->active();
        if (what == nullptr) return outcome::inactive;
        if (!what->takes(one.event())) return outcome::not_selected;
        return put(record::cptrap_type::table_entry, std::to_integer<std::uint16_t>(one.code),
                   std::as_bytes(std::span{&one, 1}));
    }

    /// `hand_over` as CP in a guest calls it: `list` is the contents of register 1, the address of
    /// an 8-byte parameter list at any boundary. Addresses have 24 bits. It does not change the
    /// guest, including its condition code; while CPTRAP is inactive it does not access the guest's
    /// storage.
    template <guest_storage Storage>
    call_result call(Storage& storage, std::uint32_t list) const {
        const auto* const what = gate_->active();
        if (what == nullptr) return {};
        list &= address_mask;
        std::array<std::byte, record::cptrap_list_bytes> raw{};
        if (const auto met = impl::fetch_bytes(storage, list, raw); met != program_exception::none)
            return {outcome::exception, met, list};
        const auto asked = record::cptrap_list::load(raw);
        if (!what->takes(asked.code())) return {outcome::not_selected};
        std::array<std::byte, record::cptrap_most_data> data{};
        const std::span<std::byte> taken(data.data(), asked.taken());
        const std::uint32_t from = asked.address() & address_mask;
        if (const auto met = impl::fetch_bytes(storage, from, taken);
            met != program_exception::none)
            return {outcome::exception, met, from};
        return {put(record::cptrap_type::cp_interface, asked.code(), taken)};
    }

private:
    static constexpr std::uint32_t address_mask = 0x00FFFFFF;

    outcome put(record::cptrap_type type, std::uint16_t code,
                std::span<const std::byte> data) const noexcept {
        data = data.first((std::min)(data.size(), record::cptrap_most_data));
        bool stored = false;
        if constexpr (recorder_of_events<Sink>) {
            const std::span<const std::uint8_t> bytes(
                reinterpret_cast<const std::uint8_t*>(data.data()), data.size());
            stored =
                sink_->template record<trap_event>(static_cast<std::uint8_t>(type), code, bytes);
        } else {
            std::array<std::byte, record::cptrap_most_bytes> bytes;
            const std::size_t length = record::put_cptrap(bytes, type, code, data);
            stored = sink_->write_bytes(static_cast<std::uint16_t>(type),
                                        std::span<const std::byte>(bytes.data(), length));
        }
        return stored ? outcome::stored : outcome::refused;
    }

    const trapok* gate_;
    Sink* sink_;
};
template <class Sink>
cp_interface(const trapok&, Sink&) -> cp_interface<Sink>;

}  // namespace trace_ring::inline v1::cptrap
