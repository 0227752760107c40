// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trap flag of a stepped program. The processor steps by this flag, and the program must not
/// see it unless it has set the flag itself. The kernel hides it in signal frames, but not where
/// the processor stores the flags: in the word that pushf pushes, and in r11 by syscall. (Intel SDM
/// volume 2, PUSHF and SYSCALL; the frames: Linux, arch/x86/include/asm/sigframe.h,
/// uapi/asm/sigcontext.h.)
///
/// Each function is for a stopped thread. If the thread no longer exists, nothing happens.

#include <sys/ptrace.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include <trace_ring/record/data_model.hpp>

#include "../../launching/process_memory.hpp"
#include "traced_program.hpp"

namespace branch_trace::impl {

inline constexpr std::uint64_t trap_flag = 0x100;

/// The byte of the flags in memory that contains the trap flag.
class flags_in_memory {
public:
    /// `flags` is the address of the flags word, for any size of the word.
    flags_in_memory(::pid_t thread, std::uint64_t flags) noexcept
        : thread_(thread), at_(flags + 1) {}

    [[nodiscard]] bool has_trap_flag() const noexcept {
        std::byte byte{};
        return launching::read_memory(thread_, at_, {&byte, 1}) && (byte & bit) != std::byte{};
    }
    void clear_trap_flag() const noexcept {
        std::byte byte{};
        if (!launching::read_memory(thread_, at_, {&byte, 1}) || (byte & bit) == std::byte{}) {
            return;
        }
        byte &= ~bit;
        static_cast<void>(launching::write_memory(thread_, at_, {&byte, 1}));
    }

private:
    static constexpr std::byte bit{trap_flag >> 8};
    ::pid_t thread_;
    std::uint64_t at_;
};

template <class Word>
[[nodiscard]] bool read_word(::pid_t thread, std::uint64_t at, Word& out) noexcept {
    return launching::read_memory(thread, at, std::as_writable_bytes(std::span(&out, 1)));
}

/// Directly after a popf or an iret: whether this instruction has set the flag.
[[nodiscard]] inline bool has_set_trap_flag(::pid_t thread) noexcept {
    std::uint64_t flags = 0;
    return peek(thread, user_area::flags, flags) && (flags & trap_flag) != 0;
}
/// Clears the flag for a program that has not set it. After a popf, the kernel attributes its own
/// stepping flag to the program.
inline void take_trap_flag(::pid_t thread) noexcept {
    std::uint64_t flags = 0;
    if (peek(thread, user_area::flags, flags) && (flags & trap_flag) != 0) {
        poke(thread, user_area::flags, flags & ~trap_flag);
    }
}
/// Informs the kernel that the program has set the flag, which the kernel cannot detect after a
/// return from a handler.
inline void set_own_trap_flag(::pid_t thread) noexcept {
    std::uint64_t flags = 0;
    if (peek(thread, user_area::flags, flags)) poke(thread, user_area::flags, flags | trap_flag);
}

/// After a pushf.
inline void hide_pushed_trap_flag(::pid_t thread) noexcept {
    std::uint64_t stack = 0;
    if (peek(thread, user_area::stack, stack)) flags_in_memory(thread, stack).clear_trap_flag();
}

/// After a syscall, which leaves the flags in r11 and the return address in rcx.
inline void hide_trap_flag_in_r11([[maybe_unused]] ::pid_t thread) noexcept {
#if defined(__x86_64__)
    std::uint64_t flags = 0, rcx = 0, ip = 0;
    if (peek(thread, user_area::syscall_flags, flags) && (flags & trap_flag) != 0 &&
        peek(thread, user_area::count, rcx) && peek(thread, user_area::ip, ip) && rcx == ip) {
        poke(thread, user_area::syscall_flags, flags & ~trap_flag);
    }
#endif
}

/// The places of the flags in each kind of frame.
struct signal_frame {
    static constexpr std::uint64_t context64 = 8;     // after the return address
    static constexpr std::uint64_t flags64 = 176;     // in the context
    static constexpr std::uint64_t r11_64 = 64;       // in the context
    static constexpr std::uint64_t rcx_64 = 152;      // in the context
    static constexpr std::uint64_t ip_64 = 168;       // in the context
    static constexpr std::uint64_t flags32 = 8 + 64;  // of a handler without siginfo
    static constexpr std::uint64_t context32 = 16 + 128;
    static constexpr std::uint64_t flags_in_context32 = 20 + 64;
};

/// At the first instruction of a handler, whose frame is on top of the stack. The kernel attributes
/// the flag to the program if the signal came instead of a popf or an iret.
inline void hide_trap_flag_in_frame(::pid_t thread, record::program_mode mode) noexcept {
    using frame = signal_frame;
    std::uint64_t stack = 0;
    if (!peek(thread, user_area::stack, stack)) return;
    if (mode == record::program_mode::lp64) {
        const std::uint64_t context = stack + frame::context64;
        flags_in_memory(thread, context + frame::flags64).clear_trap_flag();
        std::uint64_t rcx = 0, ip = 0;
        if (read_word(thread, context + frame::rcx_64, rcx) &&
            read_word(thread, context + frame::ip_64, ip) && rcx == ip) {
            flags_in_memory(thread, context + frame::r11_64).clear_trap_flag();  // of a syscall
        }
        return;
    }
    std::uint32_t info = 0, context = 0;
    const bool is_read =
        read_word(thread, stack + 8, info) && read_word(thread, stack + 12, context);
    if (!is_read) return;
    const bool has_info = info == stack + 16 && context == stack + frame::context32;
    flags_in_memory(thread, has_info ? context + frame::flags_in_context32 : stack + frame::flags32)
        .clear_trap_flag();
}

/// At the entry of a system call: whether it is a handler's return to flags with the trap flag.
[[nodiscard]] inline bool returns_to_trap_flag(::pid_t thread, record::program_mode mode) noexcept {
    using frame = signal_frame;
    constexpr std::uint64_t rt_sigreturn64 = 15, sigreturn32 = 119, rt_sigreturn32 = 173;
    std::uint64_t number = 0, stack = 0;
    if (!peek(thread, user_area::call, number) || !peek(thread, user_area::stack, stack)) {
        return false;
    }
    if (mode == record::program_mode::lp64) {
        return number == rt_sigreturn64 &&
               flags_in_memory(thread, stack + frame::flags64).has_trap_flag();
    }
    // The handler's own return has popped the return address, and the other kind's stub has popped
    // the number.
    if (number == sigreturn32) {
        return flags_in_memory(thread, stack - 8 + frame::flags32).has_trap_flag();
    }
    return number == rt_sigreturn32 &&
           flags_in_memory(thread, stack - 4 + frame::context32 + frame::flags_in_context32)
               .has_trap_flag();
}

}  // namespace branch_trace::impl
