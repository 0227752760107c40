// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes a record to the lane of the running processor, as one restartable sequence
/// (sequence.hpp).

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/ring/per_cpu/rseq.hpp>
#include <trace_ring/ring/per_cpu/sequence.hpp>

namespace trace_ring::inline v1 {

/// Lies in front of the lanes. It also stands for a lane's sub-buffer before the first one is
/// claimed: one that is full.
struct lanes_head {
    shared_atomic<std::uint32_t> lanes;       ///< number of lanes; a lane_word each follows
    shared_atomic<std::uint32_t> sub_offset;  ///< of the first sub-buffer, in units of 8 bytes
    shared_atomic<std::uint32_t> cpus;        ///< lanes of processors, which come first
    shared_atomic<std::uint32_t> per_lane;    ///< sub-buffers of a lane
    shared_atomic<std::uint64_t> reserved[4];
    shared_atomic<std::uint32_t> commit;  ///< says full; lies where a sub-buffer's commit word does
    shared_atomic<std::uint32_t> reserved2[3];
};
static_assert(sizeof(lanes_head) == 64 && offsetof(lanes_head, cpus) == 8);
static_assert(offsetof(lanes_head, commit) == offsetof(sub_buffer_header, commit));

/// The words of one lane, in a cache line: read for each record, written for each sub-buffer.
struct lane_word {
    /// Low half: the current sub-buffer, by its distance from the head in units of 8 bytes; 0: none
    /// yet. High half: the clock's high half, as the lane last announced it.
    shared_atomic<std::uint64_t> current;
    /// Where whole lanes are claimed: the thread that holds it (the address of its errno); 0: none.
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

/// The most payload words that `append` takes as arguments.
inline constexpr std::size_t most_words = 4;

#if defined(TRACE_RING_RSEQ)

#if defined(__x86_64__)
// eax: the time. r9: the sub-buffer, r10d: its commit word, r11d: its first free byte. The clock is
// read between loads that do not depend on one another (recorder.hpp says why).
#define TRACE_RING_SECTION_FIND      \
    "movl %%fs:4(%[area]), %%r8d\n"  \
    "cmpl 8(%[head]), %%r8d\n"       \
    "jae %l[failed]\n"               \
    "shlq $6, %%r8\n"                \
    ".if %c[timed]\n"                \
    "rdtsc\n"                        \
    ".else\n"                        \
    "xorl %%eax, %%eax\n"            \
    ".endif\n"                       \
    "movl 64(%[head],%%r8), %%r9d\n" \
    "leaq (%[head],%%r9,8), %%r9\n"  \
    "movl 48(%%r9), %%r10d\n"        \
    "movswl %%r10w, %%r11d\n"        \
    "addl %[bias], %%r11d\n"         \
    ".if %c[timed]\n"                \
    "cmpl %%edx, 68(%[head],%%r8)\n" \
    "jne %l[failed]\n"               \
    ".endif\n"
#define TRACE_RING_SECTION_HEAD  \
    "movl %%eax, (%%r9,%%r11)\n" \
    "movl %[header], 4(%%r9,%%r11)\n"
#define TRACE_RING_SECTION_COMMIT "movl %%r10d, 48(%%r9)\n" TRACE_RING_SEQUENCE_END
#define TRACE_RING_APPEND(copy, ...)                                                              \
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_SECTION_FIND                                    \
             "cmpl %[most], %%r11d\n"                                                             \
             "ja %l[failed]\n"                                                                    \
             "addl %[grown], %%r10d\n" TRACE_RING_SECTION_HEAD copy TRACE_RING_SECTION_COMMIT     \
             :                                                                                    \
             : [area] "r"(area), [head] "r"(head), [header] "ri"(header),                         \
               [bias] "i"(commit_word::bias), [most] "i"(SubBytes - length),                      \
               [grown] "i"(commit_word::one_record + length),                                     \
               [timed] "i"(Timed ? 1 : 0)__VA_OPT__(, ) __VA_ARGS__:TRACE_RING_SEQUENCE_CLOBBERED \
             : failed)
#define TRACE_RING_PUT(word, at) "movq %[" word "], " at "(%%r9,%%r11)\n"
#define TRACE_RING_WORD "r"
#else
// x9: the sub-buffer, then its commit word; w10: that word's value; x11: the first free byte.
#define TRACE_RING_SECTION_FIND     \
    "ldr w8, [%[area], #4]\n"       \
    "ldr w9, [%[head], #8]\n"       \
    "cmp w8, w9\n"                  \
    "b.hs 9b\n"                     \
    "add x8, %[head], x8, lsl #6\n" \
    "ldr w9, [x8, #64]\n"           \
    "add x9, %[head], x9, lsl #3\n" \
    "ldr w10, [x9, #48]\n"          \
    "sxth w11, w10\n"               \
    "add w11, w11, #8, lsl #12\n"   \
    "add w11, w11, #8\n"
static_assert(commit_word::bias == (8 << 12) + 8);
#define TRACE_RING_SECTION_HEAD \
    "add x11, x9, x11\n"        \
    "add x9, x9, #48\n"         \
    ".if %c[timed]\n"           \
    "mrs x12, cntvct_el0\n"     \
    "ldr w13, [x8, #68]\n"      \
    "lsr x8, x12, #32\n"        \
    "cmp w8, w13\n"             \
    "b.ne 9b\n"                 \
    ".else\n"                   \
    "mov w12, wzr\n"            \
    ".endif\n"                  \
    "stp w12, %w[header], [x11]\n"
#define TRACE_RING_SECTION_COMMIT "stlr w10, [x9]\n" TRACE_RING_SEQUENCE_END
#define TRACE_RING_APPEND(copy, ...)                                                              \
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_SECTION_FIND                                    \
             "cmp w11, %w[most]\n"                                                                \
             "b.hi 9b\n"                                                                          \
             "add w10, w10, %w[grown]\n" TRACE_RING_SECTION_HEAD copy TRACE_RING_SECTION_COMMIT   \
             :                                                                                    \
             : [area] "r"(area_at(area)), [head] "r"(head), [header] "r"(header),                 \
               [most] "r"(SubBytes - length), [grown] "r"(commit_word::one_record + length),      \
               [timed] "i"(Timed ? 1 : 0)__VA_OPT__(, ) __VA_ARGS__:TRACE_RING_SEQUENCE_CLOBBERED \
             : failed)
#define TRACE_RING_PUT(word, at) "str %x[" word "], [x11, #" at "]\n"
#define TRACE_RING_WORD "rZ"
#endif

/// Appends one record to the lane of the processor it runs on. `head`: of the lanes; `header`: the
/// second half of the record's first word; `word`: its payload. Timed: by the processor's counter,
/// read in the sequence. False: nothing has been committed, because the sequence was interrupted,
/// the sub-buffer is full, the clock's high half is not the lane's, or the thread is not
/// registered; call `forget` then.
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
        TRACE_RING_APPEND(TRACE_RING_PUT("a", "8"), [a] TRACE_RING_WORD(words[0]));
    } else if constexpr (sizeof...(Word) == 2) {
        TRACE_RING_APPEND(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16"),
                          [a] TRACE_RING_WORD(words[0]), [b] TRACE_RING_WORD(words[1]));
    } else if constexpr (sizeof...(Word) == 3) {
        TRACE_RING_APPEND(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16")
                              TRACE_RING_PUT("c", "24"),
                          [a] TRACE_RING_WORD(words[0]), [b] TRACE_RING_WORD(words[1]),
                          [c] TRACE_RING_WORD(words[2]));
    } else {
        TRACE_RING_APPEND(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16")
                              TRACE_RING_PUT("c", "24") TRACE_RING_PUT("d", "32"),
                          [a] TRACE_RING_WORD(words[0]), [b] TRACE_RING_WORD(words[1]),
                          [c] TRACE_RING_WORD(words[2]), [d] TRACE_RING_WORD(words[3]));
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
#if defined(__x86_64__)
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_SECTION_FIND
             "leal (%%r11,%[length]), %%edx\n"
             "cmpl %[most], %%edx\n"
             "ja %l[failed]\n"
             "leal %c[one](%%r10,%[length]), %%r10d\n" TRACE_RING_SECTION_HEAD
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
             : TRACE_RING_SEQUENCE_CLOBBERED
             : failed);
#else
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_SECTION_FIND
             "add w12, w11, %w[length]\n"
             "cmp w12, %w[most]\n"
             "b.hi 9b\n"
             "add w10, w10, %w[one]\n"
             "add w10, w10, %w[length]\n" TRACE_RING_SECTION_HEAD
             "mov w12, %w[count]\n"
             "cbz w12, 6f\n"
             "sub x8, %[from], #8\n"
             "5: ldr x13, [x8, x12, lsl #3]\n"
             "str x13, [x11, x12, lsl #3]\n"
             "subs w12, w12, #1\n"
             "b.ne 5b\n"
             "6:\n" TRACE_RING_SECTION_COMMIT
             :
             : [area] "r"(area_at(area)), [head] "r"(head), [header] "r"(header),
               [length] "r"(length), [from] "r"(from), [count] "r"(count), [most] "r"(SubBytes),
               [one] "r"(commit_word::one_record), [timed] "i"(Timed ? 1 : 0)
             : TRACE_RING_SEQUENCE_CLOBBERED
             : failed);
#endif
    return true;
failed:
    return false;
}

#undef TRACE_RING_WORD
#undef TRACE_RING_PUT
#undef TRACE_RING_APPEND
#undef TRACE_RING_SECTION_COMMIT
#undef TRACE_RING_SECTION_HEAD
#undef TRACE_RING_SECTION_FIND

#else

// Never called, because `offset` returns 0 here.
template <std::uint32_t SubBytes, bool Timed, class... Word>
[[nodiscard]] inline bool append(std::ptrdiff_t, lanes_head*, std::uint32_t, Word...) noexcept {
    return false;
}
template <std::uint32_t SubBytes, bool Timed>
[[nodiscard]] inline bool append_words(std::ptrdiff_t, lanes_head*, std::uint32_t,
                                       const std::uint64_t*, std::uint32_t) noexcept {
    return false;
}

#endif

}  // namespace rseq
}  // namespace trace_ring::inline v1
