// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The begin and the end of every restartable sequence, and one general sequence: compare some
/// words, then store some others. All of it is assembly, because a compiler cannot be told that the
/// last store must be the last instruction.
/// @code
///   the thread                                    the kernel, if it preempts, migrates, or calls
///   area.sequence = description of [1, 2) -> 4    a signal's handler at an instruction in [1, 2):
///   1: cpu, lane, room?                              area.sequence = none; continue at 4
///      clock; words of the record                 elsewhere: area.sequence = none
///      commit word                     last
///   2: area.sequence = none
///   4: (nothing has been committed)
/// @endcode
/// An interrupted sequence may have made some of its stores, but not the last: they lie where no
/// thread reads yet, and the next sequence stores there again. The thread cannot tell whether
/// another one wrote meanwhile, so it starts again from the beginning and reads the clock again.
///
/// A sequence makes no call, takes no locked or exclusive instruction, and ends with its last
/// store. The kernel switches between threads with a full barrier, so that threads of one processor
/// see one another's stores in order without barriers of their own. Other processors see a record
/// before its commit word: on x86 because stores stay in order, on aarch64 because the commit
/// word's store is a release.
///
/// The area is cleared at the end: otherwise a library with sequences could not be unloaded.
///
/// A debugger that steps through a sequence interrupts it at each step. So a failed sequence
/// returns false and does not jump back: after some failures the record goes to the thread's own
/// lane.
///
/// Facts: a description is version, flags, start, length, and where to continue (`struct rseq_cs`
/// in include/uapi/linux/rseq.h). The kernel continues there only if the four bytes before are the
/// signature that glibc registered (RSEQ_SIG in <sys/rseq.h>): on x86 part of an instruction that
/// traps, on aarch64 a whole one (brk 0x45e0).

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/recorder/cpu/rseq.hpp>

namespace trace_ring::inline v1::rseq {

/// A word to compare or to store.
struct word_value {
    shared_atomic<std::uint64_t>* at;
    std::uint64_t value;
};

#if defined(TRACE_RING_RSEQ)

// The description, and the code where an interrupted thread continues. If the enclosing function is
// in a group of sections, both join the group: a linker that keeps one copy of an inline function
// then keeps the descriptions of that copy and no others.
#if defined(__x86_64__)
#define TRACE_RING_SEQUENCE_SIGNATURE \
    ".byte 0x0f, 0xb9, 0x3d\n"        \
    ".long 0x53053053\n"              \
    "4: jmp %l[failed]\n"
#else
#define TRACE_RING_SEQUENCE_SIGNATURE \
    ".inst 0xd428bc00\n"              \
    "4: b %l[failed]\n"
#endif
#define TRACE_RING_SEQUENCE_DESCRIPTION                                                \
    ".pushsection __rseq_cs, \"aw?\", %%progbits\n"                                    \
    ".balign 32\n"                                                                     \
    "3: .long 0, 0\n"                                                                  \
    ".quad 1f, 2f - 1f, 4f\n"                                                          \
    ".popsection\n"                                                                    \
    ".pushsection __rseq_failure, \"ax?\", %%progbits\n" TRACE_RING_SEQUENCE_SIGNATURE \
    ".popsection\n"

#if defined(__x86_64__)
// %[area] is a distance from the thread pointer.
#define TRACE_RING_SEQUENCE_BEGIN   \
    TRACE_RING_SEQUENCE_DESCRIPTION \
    "leaq 3b(%%rip), %%r8\n"        \
    "movq %%r8, %%fs:8(%[area])\n"  \
    "1:\n"
#define TRACE_RING_SEQUENCE_END "2: movq $0, %%fs:8(%[area])\n"
#define TRACE_RING_SEQUENCE_CLOBBERED "memory", "cc", "rax", "rdx", "r8", "r9", "r10", "r11"
#else
// %[area] is an address. A conditional branch reaches a megabyte, and the linker may place the
// function's cold part further away: so it branches to a jump behind the function itself.
#define TRACE_RING_SEQUENCE_BEGIN   \
    TRACE_RING_SEQUENCE_DESCRIPTION \
    ".subsection 1\n"               \
    "9: b %l[failed]\n"             \
    ".subsection 0\n"               \
    "adrp x8, 3b\n"                 \
    "add x8, x8, :lo12:3b\n"        \
    "str x8, [%[area], #8]\n"       \
    "1:\n"
#define TRACE_RING_SEQUENCE_END "2: str xzr, [%[area], #8]\n"
#define TRACE_RING_SEQUENCE_CLOBBERED "memory", "cc", "x8", "x9", "x10", "x11", "x12", "x13"
#endif

#endif

/// If the thread runs on `cpu` and each word from `guard` up to `store` has its value, makes the
/// stores from `store` up to `last` (not included) in order, and then the one at `last`. The three
/// pointers are into one array. The stores before the last must do no harm without it. False: the
/// last store was not made. Each store is a release; whoever lists them says what they publish.
[[nodiscard]] inline bool store_if([[maybe_unused]] std::ptrdiff_t area,
                                   [[maybe_unused]] std::uint32_t cpu,
                                   [[maybe_unused]] const word_value* guard,
                                   [[maybe_unused]] const word_value* store,
                                   [[maybe_unused]] const word_value* last) noexcept {
#if defined(__x86_64__) && defined(TRACE_RING_RSEQ)
    asm goto(
        TRACE_RING_SEQUENCE_BEGIN
        "cmpl %[cpu], %%fs:4(%[area])\n"
        "jne %l[failed]\n"
        "movq %[guard], %%r9\n"
        "5: movq (%%r9), %%rax\n"
        "movq 8(%%r9), %%rdx\n"
        "cmpq %%rdx, (%%rax)\n"
        "jne %l[failed]\n"
        "addq $16, %%r9\n"
        "cmpq %[store], %%r9\n"
        "jb 5b\n"
        "6: movq (%%r9), %%rax\n"
        "movq 8(%%r9), %%rdx\n"
        "cmpq %[last], %%r9\n"
        "jae 7f\n"
        "movq %%rdx, (%%rax)\n"
        "addq $16, %%r9\n"
        "jmp 6b\n"
        "7: movq %%rdx, (%%rax)\n" TRACE_RING_SEQUENCE_END
        :
        : [area] "r"(area), [cpu] "r"(cpu), [guard] "r"(guard), [store] "r"(store), [last] "r"(last)
        : TRACE_RING_SEQUENCE_CLOBBERED
        : failed);
#elif defined(TRACE_RING_RSEQ)
    // Each store is a release, so it is ordered after those before it. The barrier orders the last
    // store, and all later ones, after them: a release does not hold back what follows it.
    asm goto(TRACE_RING_SEQUENCE_BEGIN
             "ldr w8, [%[area], #4]\n"
             "cmp w8, %w[cpu]\n"
             "b.ne 9b\n"
             "mov x9, %[guard]\n"
             "5: ldp x10, x11, [x9], #16\n"
             "ldr x12, [x10]\n"
             "cmp x12, x11\n"
             "b.ne 9b\n"
             "cmp x9, %[store]\n"
             "b.lo 5b\n"
             "6: ldp x10, x11, [x9]\n"
             "cmp x9, %[last]\n"
             "b.hs 7f\n"
             "stlr x11, [x10]\n"
             "add x9, x9, #16\n"
             "b 6b\n"
             "7: dmb ish\n"
             "str x11, [x10]\n" TRACE_RING_SEQUENCE_END
             :
             : [area] "r"(area_at(area)), [cpu] "r"(cpu), [guard] "r"(guard), [store] "r"(store),
               [last] "r"(last)
             : TRACE_RING_SEQUENCE_CLOBBERED
             : failed);
#endif
#if defined(TRACE_RING_RSEQ)
    return true;
failed:
#endif
    return false;  // without sequences it is never called: there is no area
}

}  // namespace trace_ring::inline v1::rseq
