// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What every restartable sequence begins and ends with, in the machine's own words: a compiler
/// could not be told that the last store must be the last instruction. And one sequence for all
/// that is not a record: compare some words, store some others.
/// @code
///   the thread                                    the kernel, if it preempts, migrates, or calls
///   area.sequence = description of [1, 2) -> 4    a signal's handler at an instruction in [1, 2):
///   1: cpu, lane, room?                              area.sequence = none; go on at 4
///      clock; words of the record                 elsewhere: area.sequence = none
///      commit word                     last
///   2: area.sequence = none
///   4: (nothing has been committed)
/// @endcode
/// Stores before the last may have been made when a sequence is broken off: they lie where nobody
/// reads yet, and whoever comes next stores there again. That one has come meanwhile the thread
/// cannot tell, so it begins anew, with the clock as with everything.
///
/// A sequence makes no call, takes no locked or exclusive instruction, and ends with its last
/// store. The kernel switches between threads with a full barrier, so that those on one processor
/// see one another's stores in order without any of their own. Other processors see a record before
/// its commit word: on x86 as they see all stores, on aarch64 because that one is a release.
///
/// The area is cleared at the end, or a library with sequences could not be unloaded: half a
/// nanosecond of the twelve that a record of two words takes, ten of them the clock's.
///
/// A debugger that steps through a sequence breaks it off at each step, hence the word of failure
/// instead of a jump back: who has failed often enough takes another way.
///
/// Facts: a description is version, flags, start, length, and where to go on (`struct rseq_cs` in
/// include/uapi/linux/rseq.h). The kernel goes on there only if the four bytes before are the
/// signature that glibc registered (RSEQ_SIG in <sys/rseq.h>): on x86 part of an instruction that
/// traps, on aarch64 one that does (brk 0x45e0).

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/ring/per_cpu/rseq.hpp>

namespace trace_ring::inline v1::rseq {

/// One word, to be compared or to be stored.
struct word_value {
    shared_atomic<std::uint64_t>* at;
    std::uint64_t value;
};

#if defined(TRACE_RING_RSEQ)

// The description, and where the kernel sends a thread that it broke off. Both go into the group of
// sections of the function around, where it has one, so that a linker that keeps one copy of an
// inline function keeps its descriptions with it and no others.
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
// %[area] is an address. A conditional branch reaches a megabyte: so far from the function's hot
// part the linker may lay its cold one, hence the step in between, behind the function itself.
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

/// Makes the stores from `store` up to (not including) `last` in order, and then the one at `last`,
/// if the thread runs on `cpu` and each word from `guard` up to `store` has its value: the three
/// lie in one array. Those before the last must do no harm if it never comes. False: it did not.
[[nodiscard]] inline bool store_if(std::ptrdiff_t area, std::uint32_t cpu, const word_value* guard,
                                   const word_value* store, const word_value* last) noexcept {
    // order: cpu.ready:A pairs with read:A
    // order: cpu.reset:A pairs with read:C, cpu.current:E
    // order: cpu.install:A pairs with cpu.current:A, cpu.current:B, cpu.current:C, cpu.current:D
    // order: cpu.time:A pairs with read:B
#if defined(__x86_64__)
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
#else
    // Each store after those before; and what comes after the last, in this sequence or another,
    // after all of them, for a release holds nothing back.
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
    return true;
failed:
    return false;
}

#else

// Never called: `offset` is 0 here.
[[nodiscard]] inline bool store_if(std::ptrdiff_t, std::uint32_t, const word_value*,
                                   const word_value*, const word_value*) noexcept {
    return false;
}

#endif

}  // namespace trace_ring::inline v1::rseq
