// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Event types as the code that records them has them: one object each. A section has the addresses
/// of those in one program or library, so that the list costs no code for each. A file that
/// compiles the cold path registers them (process/event_types.hpp).

#include <time.h>

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/words.hpp>
#include <trace_ring/record/event.hpp>

namespace trace_ring::inline v1::impl {

/// The header of an event type's records, without the id.
[[nodiscard]] constexpr std::uint32_t header_without_id(std::size_t fixed_bytes) noexcept {
    return record_word::pack(0, record_header_bytes + fixed_bytes);
}

/// A registry of event types, by the address of a byte that it never frees. The address of the
/// registry itself could come to be another one's, after its library is unloaded.
using home_id = std::uintptr_t;
inline constexpr home_id no_home = 1;     ///< odd, and so no address
inline constexpr home_id home_comes = 2;  ///< set in the id of a registry that numbers a type

/// The numbers of an event type in one registry.
struct event_numbers {
    atomic<std::uint32_t> header;    ///< of its records, without the time; id 0: none yet
    atomic<std::uint32_t> total{0};  ///< column of its total + 1; 0: none
    atomic<home_id> home{no_home};   ///< the registry, stored last; it never changes

    constexpr explicit event_numbers(std::uint32_t fixed_bytes) noexcept
        : header(header_without_id(fixed_bytes)) {}
};

/// One event type as the code that records it sees it. The numbers that the hot path uses are those
/// in its own base: in a program, which does not look at `home`, they are always of the program's
/// registry. Aligned for lane_mark's sake.
struct alignas(32) event_state : event_numbers {
    std::uint32_t ring;
    type_description description;
    /// In one more registry. In all others the type is looked up for each record.
    event_numbers other;

    constexpr explicit event_state(const type_description& of, std::uint32_t in_ring = 0) noexcept
        : event_numbers(of.fixed_bytes), ring(in_ring), description(of), other(of.fixed_bytes) {}
};

/// Which of a recorder's rings an event is kept in: see recorder_options::quotas.
template <class E>
inline constexpr std::uint32_t ring_of = [] {
    if constexpr (requires { E::ring; }) {
        static_assert(E::ring < layout::max_rings, "trace_ring: a recorder has rings 0 to 3");
        return std::uint32_t{E::ring};
    } else {
        return std::uint32_t{0};
    }
}();

/// What an event type means, without the name of its struct: two structs of one name in different
/// files are one to the linker, and these are one only if they mean the same.
template <class Described, std::uint32_t Ring, bool Counted>
struct event_meaning : Described {
    static constexpr std::uint32_t ring = Ring;
    static constexpr bool counted = Counted;
    /// Hidden, so that its address is known where it is used.
    [[gnu::visibility("hidden")]] static inline constinit event_state state{
        describe<event_meaning>(), Ring};
};
template <class E>
using event_of = event_meaning<typename E::described_by, ring_of<E>, is_counted<E>()>;

/// The event types of one program or library.
struct types_here {
    event_state* const* begin;
    event_state* const* end;
    types_here* next;
};
/// All that are loaded. Changed and read by one thread at a time, at set-up and when libraries come
/// and go: a thread that records does not wait for it.
class types_loaded {
public:
    /// The cold path is loaded: `arrive` registers the types in a list, now those of earlier lists.
    void arrives(void (*arrive)(const types_here&) noexcept) noexcept {
        alone([this, arrive] {
            arrive_ = arrive;
            for (const types_here* each = first_; each != nullptr; each = each->next) arrive(*each);
        });
    }
    /// The code of `arrive` is unloaded.
    void departs(void (*arrive)(const types_here&) noexcept) noexcept {
        alone([this, arrive] {
            if (arrive_ == arrive) arrive_ = nullptr;
        });
    }
    void add(types_here& here) noexcept {
        alone([this, &here] {
            here.next = first_;
            first_ = &here;
            if (arrive_ != nullptr) arrive_(here);
        });
    }
    void remove(const types_here& here) noexcept {
        alone([this, &here] {
            types_here** at = &first_;
            while (*at != nullptr && *at != &here) at = &(*at)->next;
            if (*at != nullptr) *at = here.next;
        });
    }
    /// In the child of a fork, which does not have the thread that was in here.
    void forget_process() noexcept { busy_.store(0, relaxed); }  // relaxed: there is one thread

private:
    template <class Do>
    void alone(Do&& what) noexcept {
        // order: types.enter:A pairs with types.leave:A
        while (busy_.exchange(1, acquire) != 0) {
            const timespec pause{0, 100'000};
            ::nanosleep(&pause, nullptr);
        }
        what();
        // order: types.leave:A pairs with types.enter:A
        busy_.store(0, release);
    }

    atomic<std::uint32_t> busy_{0};
    types_here* first_ = nullptr;
    void (*arrive_)(const types_here&) noexcept = nullptr;
};
inline constinit types_loaded all_types{};

class types_entry {
public:
    types_entry(event_state* const* begin, event_state* const* end) noexcept
        : here_{begin, end, nullptr} {
        all_types.add(here_);
    }
    types_entry(const types_entry&) = delete;
    types_entry& operator=(const types_entry&) = delete;
    ~types_entry() { all_types.remove(here_); }

private:
    types_here here_;
};

// A list of addresses that the linker puts together. Elsewhere each type has a list with one entry:
// position-independent code for i386 and code of the large model cannot name an address in
// assembler, and on aarch64 a library finds the ends of the program's section, not of its own.
#if (defined(__x86_64__) && !defined(__code_model_large__)) || \
    (defined(__i386__) && !defined(__PIC__))
#define TRACE_RING_TYPES_BY_SECTION
// NOLINTBEGIN(bugprone-reserved-identifier): the linker gives them these names
extern "C" {
[[gnu::visibility("hidden"), gnu::weak]] extern event_state* const __start_trace_ring_types[];
[[gnu::visibility("hidden"), gnu::weak]] extern event_state* const __stop_trace_ring_types[];
}
// NOLINTEND(bugprone-reserved-identifier)
[[gnu::visibility("hidden")]] inline types_entry types_of_this_program{__start_trace_ring_types,
                                                                       __stop_trace_ring_types};
#else
template <class E>
struct one_type {
    static inline constinit event_state* const list[] = {&event_of<E>::state};
    [[gnu::visibility("hidden")]] static inline types_entry entry{list, list + 1};
};
#endif

/// The state of an event type. A call of this gets the type registered before main.
template <class E>
[[gnu::always_inline]] inline event_state& event_type() noexcept {
#if defined(TRACE_RING_TYPES_BY_SECTION)
    asm(".pushsection trace_ring_types,\"aw?\",%%progbits\n\t.balign %c1\n\t"
        ".if %c1 == 8\n\t.8byte %c0\n\t.else\n\t.4byte %c0\n\t.endif\n\t.popsection"
        :
        : "i"(&event_of<E>::state), "i"(sizeof(void*)));
#else
    static_cast<void>(&one_type<event_of<E>>::entry);
#endif
    return event_of<E>::state;
}

}  // namespace trace_ring::inline v1::impl
