// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Restartable sequences over the lanes of processors, in x86-64's own words: a compiler could not
/// be told that the last store must be the last instruction.
/// @code
///   the thread                                    the kernel, if it preempts, migrates, or calls
///   area.sequence = description of [1, 2) -> 4    a signal's handler at an instruction in [1, 2):
///   1: cpu, lane, room?                              area.sequence = none; go on at 4
///      clock; words of the record                 elsewhere: area.sequence = none
///      commit word                     last
///   2: area.sequence = none
///   4: (nothing has been committed)
/// @endcode
/// Stores before the last may have been made when a sequence is broken off: they lie beyond the
/// commit word, where nobody reads, and whoever comes next stores there again. That one has come
/// meanwhile the thread cannot tell, so it begins anew, with the clock as with everything.
///
/// A sequence makes no call, takes no locked instruction, and ends with its last store. The kernel
/// switches between threads with a full barrier, so that those on one processor see one another's
/// stores in order without any of their own; other processors see them in order, as they do on x86.
/// The area is cleared at the end, or a library with sequences could not be unloaded: half a
/// nanosecond of the twelve that a record of two words takes, ten of them the clock's.
///
/// A debugger that steps through a sequence breaks it off at each step, hence the word of failure
/// instead of a jump back: who has failed often enough takes another way.

#include <cstddef>
#include <cstdint>

#include <trace_ring/ring/per_cpu/rseq.hpp>
#include <trace_ring/ring/sub_buffer.hpp>

namespace trace_ring::inline v1 {

/// In front of the lanes. It is also what the lane of a processor begins with: a sub-buffer that no
/// record fits.
struct lanes_head {
    shared_atomic<std::uint32_t> lanes;       ///< lane_word each, from here on
    shared_atomic<std::uint32_t> sub_offset;  ///< of the first sub-buffer, in units of 8 bytes
    shared_atomic<std::uint32_t> cpus;        ///< lanes that are written by sequences; the first
    shared_atomic<std::uint32_t> per_lane;    ///< sub-buffers of a lane
    shared_atomic<std::uint64_t> reserved[4];
    shared_atomic<std::uint32_t> commit;  ///< full: at the place of a sub-buffer's commit word
    shared_atomic<std::uint32_t> reserved2[3];
};
static_assert(sizeof(lanes_head) == 64 && offsetof(lanes_head, cpus) == 8);
static_assert(offsetof(lanes_head, commit) == offsetof(sub_buffer_header, commit));

/// One lane, a cache line: read for each record, written for each sub-buffer.
struct lane_word {
    /// The sub-buffer in use, by its distance from the head in units of 8 bytes, and above it the
    /// clock's high half that the lane has announced. 0: none yet.
    shared_atomic<std::uint64_t> current;
    /// Where lanes are claimed as a whole: the thread that has it (where its errno lies); 0:
    /// nobody.
    shared_atomic<std::uint64_t> owner;
    shared_atomic<std::uint64_t> reserved[6];

    static constexpr std::uint64_t unit = 8;
    [[nodiscard]] static constexpr std::uint64_t pack(std::uint64_t distance,
                                                      std::uint64_t time) noexcept {
        return distance / unit | time >> 32 << 32;
    }
    [[nodiscard]] static constexpr std::uint64_t distance(std::uint64_t word) noexcept {
        return (word & 0xFFFFFFFFU) * unit;
    }
    [[nodiscard]] static constexpr std::uint32_t high(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word >> 32);
    }
};
static_assert(sizeof(lane_word) == 64 && offsetof(lane_word, current) == 0);

namespace rseq {

/// One word, to be compared or to be stored.
struct word_value {
    shared_atomic<std::uint64_t>* at;
    std::uint64_t value;
};

#if defined(TRACE_RING_RSEQ)

// A sequence's description, and where the kernel sends a thread that it broke off: the signature
// that glibc registered stands before, as the kernel demands (within an instruction that traps).
// Both go into the group of sections of the function around, where it has one, so that a linker
// that keeps one copy of an inline function keeps its descriptions with it and no others.
#define TRACE_RING_SECTION_BEGIN                        \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n"      \
    ".balign 32\n"                                      \
    "3: .long 0, 0\n"                                   \
    ".quad 1f, 2f - 1f, 4f\n"                           \
    ".popsection\n"                                     \
    ".pushsection __rseq_failure, \"ax?\", @progbits\n" \
    ".byte 0x0f, 0xb9, 0x3d\n"                          \
    ".long 0x53053053\n"                                \
    "4: jmp %l[failed]\n"                               \
    ".popsection\n"                                     \
    "leaq 3b(%%rip), %%r8\n"                            \
    "movq %%r8, %%fs:8(%[area])\n"                      \
    "1:\n"
// r9: the sub-buffer, r10d: its commit word, r11d: its first free byte.
#define TRACE_RING_SECTION_FIND      \
    "movl %%fs:4(%[area]), %%r8d\n"  \
    "cmpl 8(%[head]), %%r8d\n"       \
    "jae %l[failed]\n"               \
    "shlq $6, %%r8\n"                \
    "movl 64(%[head],%%r8), %%r9d\n" \
    "leaq (%[head],%%r9,8), %%r9\n"  \
    "movl 48(%%r9), %%r10d\n"        \
    "movswl %%r10w, %%r11d\n"        \
    "addl %[bias], %%r11d\n"
#define TRACE_RING_SECTION_CLOCK     \
    ".if %c[timed]\n"                \
    "rdtsc\n"                        \
    "cmpl %%edx, 68(%[head],%%r8)\n" \
    "jne %l[failed]\n"               \
    "movl %%eax, (%%r9,%%r11)\n"     \
    ".else\n"                        \
    "movl $0, (%%r9,%%r11)\n"        \
    ".endif\n"                       \
    "movl %[header], 4(%%r9,%%r11)\n"
#define TRACE_RING_SECTION_COMMIT \
    "movl %%r10d, 48(%%r9)\n"     \
    "2: movq $0, %%fs:8(%[area])\n"
#define TRACE_RING_SECTION_CLOBBERED "memory", "cc", "rax", "rdx", "r8", "r9", "r10", "r11"
#define TRACE_RING_APPEND(copy, ...)                                                             \
    asm goto(TRACE_RING_SECTION_BEGIN TRACE_RING_SECTION_FIND                                    \
             "cmpl %[most], %%r11d\n"                                                            \
             "ja %l[failed]\n"                                                                   \
             "addl %[grown], %%r10d\n" TRACE_RING_SECTION_CLOCK copy TRACE_RING_SECTION_COMMIT   \
             :                                                                                   \
             : [area] "r"(area), [head] "r"(head), [header] "ri"(header),                        \
               [bias] "i"(commit_word::bias), [most] "i"(SubBytes - length),                     \
               [grown] "i"(commit_word::one_record + length),                                    \
               [timed] "i"(Timed ? 1 : 0)__VA_OPT__(, ) __VA_ARGS__:TRACE_RING_SECTION_CLOBBERED \
             : failed)

/// The most words that `append` takes one by one.
inline constexpr std::size_t most_words = 4;

/// Appends one record to the lane of the processor it runs on: `head`, the lanes; `header`, the
/// record's second word; then its payload. Timed: by the time stamp counter, read in the sequence.
/// False: nothing has been committed, because the sequence was broken off, the sub-buffer is full,
/// the clock's high half is not the lane's, or the thread is not registered; then `forget`.
template <std::uint32_t SubBytes, bool Timed, class... Word>
[[nodiscard, gnu::always_inline]] inline bool append(std::ptrdiff_t area, lanes_head* head,
                                                     std::uint32_t header, Word... word) noexcept {
    static_assert(sizeof...(Word) <= most_words);
    constexpr std::uint32_t length = record_header_bytes + 8 * sizeof...(Word);
    const std::uint64_t words[] = {std::uint64_t{word}..., 0};
    // order: cpu.record:A pairs with read:B
    if constexpr (sizeof...(Word) == 0) {
        TRACE_RING_APPEND("");
    } else if constexpr (sizeof...(Word) == 1) {
        TRACE_RING_APPEND("movq %[a], 8(%%r9,%%r11)\n", [a] "r"(words[0]));
    } else if constexpr (sizeof...(Word) == 2) {
        TRACE_RING_APPEND(
            "movq %[a], 8(%%r9,%%r11)\n"
            "movq %[b], 16(%%r9,%%r11)\n",
            [a] "r"(words[0]), [b] "r"(words[1]));
    } else if constexpr (sizeof...(Word) == 3) {
        TRACE_RING_APPEND(
            "movq %[a], 8(%%r9,%%r11)\n"
            "movq %[b], 16(%%r9,%%r11)\n"
            "movq %[c], 24(%%r9,%%r11)\n",
            [a] "r"(words[0]), [b] "r"(words[1]), [c] "r"(words[2]));
    } else {
        TRACE_RING_APPEND(
            "movq %[a], 8(%%r9,%%r11)\n"
            "movq %[b], 16(%%r9,%%r11)\n"
            "movq %[c], 24(%%r9,%%r11)\n"
            "movq %[d], 32(%%r9,%%r11)\n",
            [a] "r"(words[0]), [b] "r"(words[1]), [c] "r"(words[2]), [d] "r"(words[3]));
    }
    return true;
failed:
    return false;
}

/// The same for a payload of `count` words at `from`, which the sequence copies one by one.
template <std::uint32_t SubBytes, bool Timed>
[[nodiscard]] inline bool append_words(std::ptrdiff_t area, lanes_head* head, std::uint32_t header,
                                       const std::uint64_t* from, std::uint32_t count) noexcept {
    const std::uint64_t length = record_header_bytes + std::uint64_t{count} * 8;
    // order: cpu.record:B pairs with read:B
    asm goto(TRACE_RING_SECTION_BEGIN TRACE_RING_SECTION_FIND
             "leal (%%r11,%[length]), %%eax\n"
             "cmpl %[most], %%eax\n"
             "ja %l[failed]\n"
             "leal %c[one](%%r10,%[length]), %%r10d\n" TRACE_RING_SECTION_CLOCK
             "leaq 8(%%r9,%%r11), %%r11\n"
             "movl %[count], %%eax\n"
             "testl %%eax, %%eax\n"
             "jz 6f\n"
             "5: movq -8(%[from],%%rax,8), %%rdx\n"
             "movq %%rdx, -8(%%r11,%%rax,8)\n"
             "subl $1, %%eax\n"
             "jnz 5b\n"
             "6:\n" TRACE_RING_SECTION_COMMIT
             :
             : [area] "r"(area), [head] "r"(head), [header] "r"(header), [length] "r"(length),
               [bias] "i"(commit_word::bias), [from] "r"(from), [count] "r"(count),
               [most] "i"(SubBytes), [one] "i"(commit_word::one_record), [timed] "i"(Timed ? 1 : 0)
             : TRACE_RING_SECTION_CLOBBERED
             : failed);
    return true;
failed:
    return false;
}

/// Makes the stores from `store` up to (not including) `last` in order, and then the one at `last`,
/// if the thread runs on `cpu` and each word from `guard` up to `store` has its value: the three
/// lie in one array. Those before the last must do no harm if it never comes. False: it did not.
[[nodiscard]] inline bool store_if(std::ptrdiff_t area, std::uint32_t cpu, const word_value* guard,
                                   const word_value* store, const word_value* last) noexcept {
    // order: cpu.ready:A pairs with read:A
    // order: cpu.reset:A pairs with read:C, cpu.current:E
    // order: cpu.install:A pairs with cpu.current:A, cpu.current:B, cpu.current:C, cpu.current:D
    // order: cpu.time:A pairs with read:B
    asm goto(
        TRACE_RING_SECTION_BEGIN
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
        "7: movq %%rdx, (%%rax)\n"
        "2: movq $0, %%fs:8(%[area])\n"
        :
        : [area] "r"(area), [cpu] "r"(cpu), [guard] "r"(guard), [store] "r"(store), [last] "r"(last)
        : TRACE_RING_SECTION_CLOBBERED
        : failed);
    return true;
failed:
    return false;
}

#undef TRACE_RING_APPEND
#undef TRACE_RING_SECTION_CLOBBERED
#undef TRACE_RING_SECTION_COMMIT
#undef TRACE_RING_SECTION_CLOCK
#undef TRACE_RING_SECTION_FIND
#undef TRACE_RING_SECTION_BEGIN

#else

// Never called: `offset` is 0 here.
inline constexpr std::size_t most_words = 4;
template <std::uint32_t SubBytes, bool Timed, class... Word>
[[nodiscard]] inline bool append(std::ptrdiff_t, lanes_head*, std::uint32_t, Word...) noexcept {
    return false;
}
template <std::uint32_t SubBytes, bool Timed>
[[nodiscard]] inline bool append_words(std::ptrdiff_t, lanes_head*, std::uint32_t,
                                       const std::uint64_t*, std::uint32_t) noexcept {
    return false;
}
[[nodiscard]] inline bool store_if(std::ptrdiff_t, std::uint32_t, const word_value*,
                                   const word_value*, const word_value*) noexcept {
    return false;
}

#endif

}  // namespace rseq
}  // namespace trace_ring::inline v1
