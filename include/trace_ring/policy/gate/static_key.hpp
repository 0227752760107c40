// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A gate in the machine code: closed, it is one no-op in the path of the program, and nothing is
/// loaded or compared. For gates that are closed nearly always, or asked very often.
/// @code
/// struct io_trace : trace_ring::policies<..., trace_ring::gate::static_key<io_trace>> {};
/// inline trace_ring::ring<io_trace> io_ring;
/// io_ring.gate().close();                        // or, without a ring:
/// trace_ring::gate::static_key<io_trace>::open();
/// @endcode
///
/// **The key is a type**, as machine code names it: all rings of the kind open and close together,
/// and so does all else that names the same type. There is one key a type and process where there
/// is one inline variable of the type: where a library hides its symbols, or is loaded with
/// RTLD_LOCAL (clang), the key is the library's own.
///
/// **A site** is each place where a compiler has put is_open(), by `asm goto`; here in two of the
/// places that it may have in aligned words:
/// ```
///    |                       |                       |
///           E9 .. .. .. ..                                born    jmp ask     closed? : tracing
///           0F 1F 44 00 00                                closed  nop         tracing is elsewhere
///           E9 .. .. .. ..                                open    jmp tracing
///                       2E 2E E9 .. .. .. ..             born    cs cs jmp ask
/// ```
/// It is five bytes within one aligned word of eight, so that one store changes it, and a processor
/// that fetches it sees the one instruction or the other. Where the five would cross the word's
/// end, CS prefixes, which neither jump nor no-op minds, fill the word: they belong to the
/// instruction, never change, and it is still one.
///
/// Beside it an entry of 16 bytes goes to the section `trace_ring_sites_v1`: distances from itself
/// to the site, its two targets and the key, so nothing is relocated, and the section is
/// read-only. It is in the site's own group, so that of an inline function or template that many
/// translation units have compiled the linker keeps one with its entries. Each library has the
/// section of its own, found by the linker's hidden start and stop symbols, and registers it by a
/// constructor, before which, as after its destructor, sites are as born: correct at any time, also
/// before main, after exit, in a library that was loaded long after the key was closed.
///
/// **It never has to be patched.** As born, a site jumps to a test of the key's word, out of line:
/// gate::flag and a jump. It stays so as long as the key is open since the start (a program that
/// never closes it changes no text), and where patcher.hpp says that text is left alone: no
/// writable text, no membarrier(PRIVATE_EXPEDITED_SYNC_CORE) (before Linux 4.16). is_patched()
/// tells. There are sites on x86-64, with g++ or clang, in any code model but the large one;
/// anywhere else, and where TRACE_RING_NO_PATCHED_CODE is defined (for each translation unit alone,
/// as it likes), is_open() is the test of the word itself.
///
/// A program that will give up the right to write to its text (seccomp, SELinux) calls
/// leave_text_alone() before: a site that is a no-op by then could not be opened any more. open()
/// and close() return false when that has happened.
///
/// - Threads: open() and close() from any, also at once: all sites end as the key's word says. When
///   they return, every thread asks the new code.
/// - Handlers: open(), close() and is_open() are safe in them. Signals wait while text is changed;
///   errno is kept.
/// - Fork: the child has the key as it was, and sets its own; also if it was forked while another
///   thread changed text. A child of vfork sets no key.
/// - Cost: is_open() is one no-op while closed, one jump while open (what is to be recorded a
///   compiler may have copied to a register before). Setting looks at each site of the process, and
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

/// What a key says before anybody has set it.
enum class initially : bool { open, closed };

namespace impl {

/// The key of a type: one a process.
template <class Key, initially AtFirst>
inline constinit key key_of{AtFirst == initially::open ? wanted::born : wanted::closed};

/// What sites name the key by: in the library, so that its distance is known to the linker.
template <class Key, initially AtFirst>
struct key_here {
    [[gnu::visibility("hidden")]] static constexpr key* pointer = &key_of<Key, AtFirst>;
};

// Weak, as there may be no site left. The linker defines them.
extern "C" {
extern const site trace_ring_first_site_v1[] __asm__("__start_trace_ring_sites_v1")
    __attribute__((weak, visibility("hidden")));
extern const site trace_ring_last_site_v1[] __asm__("__stop_trace_ring_sites_v1")
    __attribute__((weak, visibility("hidden")));
extern const ElfW(Ehdr) trace_ring_this_file_v1 __asm__("__ehdr_start")
    __attribute__((weak, visibility("hidden")));
}

/// One a library: a template, so that there is none where nobody has a site.
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

    /// False if there are sites that cannot be changed (any more), and do not follow.
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
        // A site that is being loaded now has the key's word before this pass, or in it.
        (owner != nullptr ? *owner : impl::the_patcher).bring_up_to_date();
        return the_key().stuck.load(relaxed) == 0;  // relaxed: stored by the pass, or a later one
#else
        return true;
#endif
    }

    /// Each site that the process has by now is patched: to a no-op, or to a jump to where tracing
    /// goes on. False for a key that is open since the start. A report.
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
        // Volatile: otherwise a loop loads it first, for a site that is a no-op.
        impl::key* const volatile& here = impl::key_here<Key, AtFirst>::pointer;
        const impl::key& key = *here;
#else
        const impl::key& key = the_key();
#endif
        return key.says() != impl::wanted::closed;
    }
};

/// Puts each site of the process back as it was born, and patches no more: keys are flags from now
/// on. For a program that is about to give up the right to write to its text. Signal-safe; any
/// thread.
inline void leave_text_alone() noexcept {
    impl::the_patcher.leave_text_alone();
}

static_assert(policy<static_key<impl::key>>);

}  // namespace trace_ring::inline v1::gate
