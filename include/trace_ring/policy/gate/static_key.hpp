// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A gate in the machine code: while closed it is one no-op, which loads and compares nothing. For
/// gates that are nearly always closed, or asked very often.
/// @code
/// struct io_trace : trace_ring::policies<..., trace_ring::gate::static_key<io_trace>> {};
/// inline trace_ring::ring<io_trace> io_ring;
/// io_ring.gate().close();                        // or, without a ring:
/// trace_ring::gate::static_key<io_trace>::open();
/// @endcode
///
/// **The key is a type**, because machine code can name it: all rings of the kind open and close
/// together, with all other gates that name the type. A process has one key a type, as it has one
/// inline variable; but a library that hides its symbols, or is loaded with RTLD_LOCAL (clang), has
/// a key of its own.
///
/// **A site** is a place where a compiler has put is_open(), by `asm goto`. Two of the places that
/// it may have in aligned words:
/// ```
///    |                       |                       |
///           E9 .. .. .. ..                                born    jmp ask     closed? : tracing
///           0F 1F 44 00 00                                closed  nop         tracing is elsewhere
///           E9 .. .. .. ..                                open    jmp tracing
///                       2E 2E E9 .. .. .. ..             born    cs cs jmp ask
/// ```
/// It is five bytes within one aligned word of eight, so that one store changes it, and a processor
/// that fetches it gets either the old instruction or the new one. If the five bytes would cross
/// the word's end, CS prefixes fill the word: they are part of the instruction, have no effect on
/// jump or no-op, and never change.
///
/// For each site an entry of 16 bytes goes to the section `trace_ring_sites_v1`: distances from
/// itself to the site, its two targets and the key. So nothing is relocated, and the section is
/// read-only. The entry is in the site's own section group: if many translation units compile an
/// inline function or template, the linker keeps one copy with its entries. Each library has its
/// own section, found by the linker's hidden start and stop symbols, and registers it by a
/// constructor. Before that, and after the destructor, sites are as born, which is correct at any
/// time: before main, after exit, in a library that is loaded long after the key was closed.
///
/// **It never has to be patched.** As born, a site jumps to a test of the key's word, out of line,
/// like gate::flag. It stays so while the key is open since the start (a program that never closes
/// it changes no text), and where patcher.hpp leaves text alone: no writable text, or no
/// membarrier(PRIVATE_EXPEDITED_SYNC_CORE) (before Linux 4.16). is_patched() tells. Sites exist on
/// x86-64, with g++ or clang, in any code model but the large one. Elsewhere, and in translation
/// units that define TRACE_RING_NO_PATCHED_CODE, is_open() is the test of the word itself.
///
/// A program that will give up the right to write to its text (seccomp, SELinux) calls
/// leave_text_alone() first: a site that is a no-op by then could not be opened any more. open()
/// and close() return false when that has happened.
///
/// - Threads: any may call open() and close(), also at the same time: all sites end as the key's
///   word says. When they return, every thread runs the new code.
/// - Handlers: open(), close() and is_open() are signal-safe. Signals wait while text is changed;
///   errno is kept.
/// - Fork: the child inherits the key's state and then has its own, also if another thread changed
///   text during the fork. A child of vfork must not set a key.
/// - Cost: is_open() is one no-op while closed and one jump while open (before it a compiler may
///   load values to be recorded into registers). Setting is linear in the sites of the process, and
///   makes two system calls for each page of changed sites and three more: tens of microseconds.

#include <link.h>

#include <type_traits>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/gate/gate.hpp>
#include <trace_ring/policy/gate/patcher.hpp>

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#if defined(__x86_64__) && defined(__LP64__) && !defined(__code_model_large__) && \
    !defined(TRACE_RING_NO_PATCHED_CODE)
#define TRACE_RING_PATCHED_CODE 1
#else
#define TRACE_RING_PATCHED_CODE 0
#endif
// NOLINTEND(cppcoreguidelines-macro-usage)

namespace trace_ring::inline v1::gate {

/// The state of a key before it is set.
enum class initially : bool { open, closed };

namespace impl {

/// The key of a type; one a process.
template <class Key, initially AtFirst>
inline constinit key key_of{AtFirst == initially::open ? wanted::born : wanted::closed};

/// A pointer to the key that sites name: it is in the library, so the linker knows its distance.
template <class Key, initially AtFirst>
struct key_here {
    [[gnu::visibility("hidden")]] static constexpr key* pointer = &key_of<Key, AtFirst>;
};

// Defined by the linker. Weak, because there may be no site left.
extern "C" {
extern const site trace_ring_first_site_v1[] __asm__("__start_trace_ring_sites_v1")
    __attribute__((weak, visibility("hidden")));
extern const site trace_ring_last_site_v1[] __asm__("__stop_trace_ring_sites_v1")
    __attribute__((weak, visibility("hidden")));
extern const ElfW(Ehdr) trace_ring_this_file_v1 __asm__("__ehdr_start")
    __attribute__((weak, visibility("hidden")));
}

/// One object a library; a template, so that a library without sites has none.
template <class = void>
struct library_here {
    [[gnu::visibility("hidden")]] static inline library instance{
        trace_ring_first_site_v1, trace_ring_last_site_v1, &trace_ring_this_file_v1};
};

}  // namespace impl

/// Key: the kind of ring, or any class; it need not be complete.
template <class Key, initially AtFirst = initially::open>
class static_key {
    static_assert(std::is_class_v<Key> && std::is_same_v<Key, std::remove_cv_t<Key>>,
                  "trace_ring::gate::static_key: a key is told by its type: name the kind of ring, "
                  "or a struct of your own");

public:
    using family = trace_ring::family::gate;

    [[nodiscard, gnu::always_inline]] static bool is_open() noexcept {
#if TRACE_RING_PATCHED_CODE
        // The second operand is not used: naming it makes the library register its sites.
        __asm__ goto(
            ".balign 8, 0x2E, 4\n"
            ".Ltrace_ring_site_%=:\n"
            "0: .byte 0xE9\n"
            ".long %l[ask] - 0b - 5\n"
            ".pushsection trace_ring_sites_v1, \"ao?\", @progbits, .Ltrace_ring_site_%=\n"
            ".balign 4\n"
            ".long 0b - .\n"
            ".long %l[ask] - .\n"
            ".long %l[traced] - .\n"
            ".long %c0 - .\n"
            ".popsection"
            :
            : "i"(&impl::key_here<Key, AtFirst>::pointer), "i"(&impl::library_here<>::instance)
            :
            : ask, traced);
        return false;
    ask:
        [[unlikely]] return says_open();
    traced:
        [[unlikely]] return true;
#else
        return says_open();
#endif
    }

    /// Opens the gate. False if there are sites that can no longer be changed and stay closed.
    static bool open() noexcept {
        return set(true);
    }
    static bool close() noexcept {
        return set(false);
    }
    static bool set(bool is_open) noexcept {
        the_key().say(is_open ? impl::wanted::open : impl::wanted::closed);
#if defined(__x86_64__) && defined(__LP64__)
        impl::patcher* const owner = the_key().owner.load(relaxed);  // relaxed: set once
        // A library that is being loaded now reads the key's word before this pass, or in it.
        (owner != nullptr ? *owner : impl::the_patcher).bring_up_to_date();
        return the_key().stuck.load(relaxed) == 0;  // relaxed: stored by the pass, or a later one
#else
        return true;
#endif
    }

    /// Each site that the process has by now is patched: to a no-op, or to a jump to the traced
    /// code. False for a key that is open since the start. May be out of date when it returns.
    [[nodiscard]] static bool is_patched() noexcept {
        const impl::key& key = the_key();
        // relaxed, all: a report
        return key.owner.load(relaxed) != nullptr && key.unpatched.load(relaxed) == 0 &&
               key.says() != impl::wanted::born;
    }

private:
    [[nodiscard]] static constexpr impl::key& the_key() noexcept {
        return impl::key_of<Key, AtFirst>;
    }
    [[nodiscard, gnu::always_inline]] static bool says_open() noexcept {
#if TRACE_RING_PATCHED_CODE
        // Volatile: otherwise a compiler may load it before a loop, even while the site is a no-op.
        impl::key* const volatile& here = impl::key_here<Key, AtFirst>::pointer;
        const impl::key& key = *here;
#else
        const impl::key& key = the_key();
#endif
        return key.says() != impl::wanted::closed;
    }
};

/// Puts each site of the process back as it was born, and patches no more: from now on keys are
/// flags. For a program that is about to give up the right to write to its text. Signal-safe; any
/// thread.
inline void leave_text_alone() noexcept {
    impl::the_patcher.leave_text_alone();
}

static_assert(policy<static_key<impl::key>>);

}  // namespace trace_ring::inline v1::gate
