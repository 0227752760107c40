// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The concept `guest_storage`, which a host (an emulator, a hypervisor, a test) models so that
/// this library can trace into the storage of its System/370 guest. The host is responsible for
/// translation, protection, reference and change recording, storage-alteration events and the byte
/// order of words. This header uses no allocation, atomics or threads.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trace_ring::inline v1 {

/// Program exceptions that tracing can meet, by their interruption codes.
enum class program_exception : std::uint16_t {
    none = 0x0000,
    protection = 0x0004,
    addressing = 0x0005,
    specification = 0x0006,
    segment_translation = 0x0010,
    page_translation = 0x0011,
    translation_specification = 0x0012,
};

/// The exceptions that a test of access checks for. Key-controlled protection is never among them,
/// because it does not apply to DAS tracing.
enum class guest_access : std::uint8_t {
    unprotected,      ///< addressing and translation
    protected_store,  ///< addressing and translation, low-address and segment protection of a store
};

/// A guest's storage as tracing sees it. Addresses are logical, 24 bits, in the address space that
/// is current when the traced instruction begins. Each word that is fetched or swapped lies on a
/// word boundary and each DAS entry on a 32-byte one, so no word or entry crosses a page.
///
/// | expression                   | result            | meaning                                  |
/// |------------------------------|-------------------|------------------------------------------|
/// | `s.test(address, n, access)` | program_exception | the exception that such an access to n   |
/// |                              |                   | bytes would meet, or none; changes       |
/// |                              |                   | nothing                                  |
/// | `s.fetch(address)`           | std::uint32_t     | the word's value, read in one piece; the |
/// |                              |                   | guest holds it big-endian                |
/// | `s.swap(address, was, word)` | bool              | interlocked: if the word is `was`,       |
/// |                              |                   | stores `word` and returns true; else     |
/// |                              |                   | sets `was` to the word, returns false    |
/// | `s.store(address, bytes)`    |                   | stores an entry; it may do so in pieces, |
/// |                              |                   | and more than once                       |
/// | `s.serialize()`              |                   | the machine's serialization and          |
/// |                              |                   | checkpoint synchronization               |
///
/// `test` may throw or longjmp instead of returning an exception: nothing has been stored when it
/// is called. `swap` must not fail for ever if no other processor stores.
///
/// `fetch`, `swap` and `store` are called only after a `test` of the same bytes that met no
/// exception; the host must keep the guest's other processors from changing the mapping in between,
/// that is from `das::prepare` to the end of `das::commit`.
/// The concept asks for no more, so a host without paging needs five short functions, as in
/// das/guest_memory.hpp.
template <class S>
concept guest_storage = requires(S& s, std::uint32_t address, std::uint32_t& expected,
                                 std::uint32_t word, std::span<const std::byte> bytes) {
    { s.test(address, word, guest_access::unprotected) } -> std::same_as<program_exception>;
    { s.fetch(address) } -> std::same_as<std::uint32_t>;
    { s.swap(address, expected, word) } -> std::same_as<bool>;
    s.store(address, bytes);
    s.serialize();
};

/// The result of tracing one instruction.
struct trace_result {
    /// What became of a trace instruction.
    enum class outcome : std::uint8_t { traced, gate_closed, exception };

    outcome what = outcome::gate_closed;                    ///< what became of the trace
    program_exception exception = program_exception::none;  ///< none unless `what` is exception
    /// Traced: the entry's address. Exception: the logical address whose access met it; of a
    /// specification exception, the address that is ill-formed.
    std::uint32_t address = 0;

    /// An entry was stored.
    [[nodiscard]] constexpr bool traced() const noexcept { return what == outcome::traced; }
    /// The instruction is suppressed, and the table is as it was.
    [[nodiscard]] constexpr bool failed() const noexcept { return what == outcome::exception; }
    /// An entry was stored at this address.
    [[nodiscard]] static constexpr trace_result at(std::uint32_t address) noexcept {
        return {outcome::traced, program_exception::none, address};
    }
    /// The gate was closed.
    [[nodiscard]] static constexpr trace_result closed() noexcept { return {}; }
    /// An access met an exception.
    [[nodiscard]] static constexpr trace_result failed(program_exception exception,
                                                       std::uint32_t address) noexcept {
        return {outcome::exception, exception, address};
    }
    friend constexpr bool operator==(const trace_result&, const trace_result&) noexcept = default;
};

}  // namespace trace_ring::inline v1
