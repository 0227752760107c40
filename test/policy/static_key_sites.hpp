// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Sites that the test's two translation units and its library have in common.

#include <cstddef>
#include <utility>

#include <trace_ring/policy/gate/static_key.hpp>

namespace key_sites {

/// The keys, by name: they are never complete.
class shared;
class born_closed;
using shared_key = trace_ring::gate::static_key<shared>;
using closed_key = trace_ring::gate::static_key<born_closed, trace_ring::gate::initially::closed>;

/// One of it in each library, though several translation units compile it.
[[gnu::noinline]] inline bool in_inline() noexcept {
    return shared_key::is_open();
}

/// A site behind so many bytes, so that there is one at each distance from an aligned word.
template <int Bytes>
[[gnu::noinline]] bool in_template() noexcept {
    __asm__ volatile(".rept %c0\n nop\n .endr" : : "i"(Bytes));
    return shared_key::is_open();
}

/// Two sites of one function, one in a loop: how many passes found the key open.
[[gnu::noinline]] inline int in_loop(int passes) noexcept {
    int found = shared_key::is_open() ? 1 : 0;
    for (int i = 1; i < passes; ++i) {
        if (shared_key::is_open()) ++found;
    }
    return found;
}

[[nodiscard]] bool in_other() noexcept;         // static_key_other.cpp
[[nodiscard]] bool in_other_inline() noexcept;  // in_inline(), as compiled there

/// Of so many sites that are asked, those that say open.
inline constexpr int all_sites = 17;
[[nodiscard]] inline int open_sites() noexcept {
    int found = in_loop(5) + in_inline() + in_other() + in_other_inline();
    [&found]<int... Bytes>(std::integer_sequence<int, Bytes...>) {
        found += (... + static_cast<int>(in_template<Bytes>()));
    }
    (std::make_integer_sequence<int, 9>{});
    return found;
}

/// What the library offers, by its one symbol `static_key_library`.
struct library_view {
    int (*open_sites)() noexcept;  ///< of three
    bool (*closed_key_is_open)() noexcept;
    /// Sites of this library alone that hold the no-op.
    int (*no_ops)() noexcept;
    bool (*close)() noexcept;
    bool (*open)() noexcept;
};

/// Sites of the program or library that this is compiled into, which hold the no-op.
[[maybe_unused]] static int no_ops_here() noexcept {
    int found = 0;
#if TRACE_RING_PATCHED_CODE
    using trace_ring::gate::impl::site;
    for (const site& s : trace_ring::gate::impl::library_here<>::instance) {
        found += s.instruction() == site::no_op ? 1 : 0;
    }
#endif
    return found;
}

}  // namespace key_sites
