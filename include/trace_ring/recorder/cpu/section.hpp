// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes a record as one restartable sequence (ring/per_cpu/sequence.hpp), into the sub-buffer
/// that this processor's lane has in use, if the lane is open to this thread.
/// @code
///   cpu_words, of the processor     sub_buffer_header
///    0 current  ------------------>  ...
///    8 thread, clock's high half     48 commit word      64 ... records
///   16 bytes of a sub-buffer
/// @endcode
/// A lane is open to one thread at a time: the one that an owner record announced last. A thread
/// that finds another announced announces itself first (lanes.hpp).

#include <cstddef>
#include <cstdint>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/ring/per_cpu/rseq.hpp>
#include <trace_ring/ring/per_cpu/sequence.hpp>

namespace trace_ring::inline v1 {

/// A processor's lane as the process that writes it knows it, in a page that fork wipes. Changed
/// only by sequences on that processor. All zero: no lane yet, open to no thread.
struct cpu_words {
    shared_atomic<std::uint64_t> current;    ///< address of the sub-buffer in use; 0: none
    shared_atomic<std::uint64_t> announced;  ///< thread, above it the clock's high half
    shared_atomic<std::uint64_t> limit;      ///< bytes of a sub-buffer
    shared_atomic<std::uint64_t> entry;      ///< address of the lane's entry in the file
    shared_atomic<std::uint64_t> totals;     ///< address of its row of totals; 0: none
    shared_atomic<std::uint64_t> told;  ///< how many of its refused records sub-buffers tell of
    shared_atomic<std::uint64_t> reserved[2];
    /// The sub-buffer to come: drawn, not yet in use. None if `next` is 0, or in use.
    shared_atomic<std::uint64_t> next;
    shared_atomic<std::uint64_t> next_position;
    /// The one before, to be closed. None if it is 0, or still in use.
    shared_atomic<std::uint64_t> last;
    shared_atomic<std::uint64_t> reserved2[5];

    [[nodiscard]] static constexpr std::uint64_t announce(std::uint32_t thread,
                                                          std::uint64_t time) noexcept {
        return thread | time >> 32 << 32;
    }
};
static_assert(sizeof(cpu_words) == 128 && offsetof(cpu_words, announced) == 8 &&
              offsetof(cpu_words, limit) == 16 && offsetof(cpu_words, next) == 64);

/// The lanes of all processors, ring by ring, in the form that sequences use.
struct cpu_table {
    std::ptrdiff_t area = 0;     ///< rseq::offset(); 0: no sequences here
    cpu_words* words = nullptr;  ///< one for each processor
    std::uint32_t cpus = 0;

    /// The lanes of one of the file's rings.
    [[nodiscard]] cpu_table of(std::uint32_t ring) const noexcept {
        return {area, words + ring * cpus, cpus};
    }
};

namespace impl {
/// This thread's number in the kernel, which announces its records. `no_thread` until it is known.
inline constexpr std::uint32_t no_thread = ~std::uint32_t{0};
inline constinit thread_local std::uint32_t volatile own_thread TRACE_RING_TLS = no_thread;
/// Its name when the kernel was asked: 16 bytes.
inline constinit thread_local std::uint64_t volatile own_name[2] TRACE_RING_TLS = {};
static_assert(offsetof(open_span, begun) == 0 && offsetof(open_span, lane) == 16 &&
              offsetof(sub_buffer_header, lane) == 4 &&
              offsetof(sub_buffer_header, first_position) == 16);
}  // namespace impl

namespace rseq {

/// The most words that `append_here` takes one by one.
inline constexpr std::size_t most_words_here = 4;

#if defined(TRACE_RING_RSEQ)

#if defined(__x86_64__)
// eax: the time, read between loads that do not wait for one another. r8: the lane's words, r9: the
// sub-buffer, r10d: its commit word, r11d: its first free byte; edx: where the record ends.
#define TRACE_RING_HERE_FIND        \
    "movl %%fs:4(%[area]), %%r8d\n" \
    "cmpl %[cpus], %%r8d\n"         \
    "jae %l[failed]\n"              \
    "shlq $7, %%r8\n"               \
    "addq %[words], %%r8\n"         \
    "movl %[thread], %%r11d\n"      \
    "cmpl 8(%%r8), %%r11d\n"        \
    "jne %l[failed]\n"              \
    ".if %c[timed]\n"               \
    "rdtsc\n"                       \
    ".else\n"                       \
    "xorl %%eax, %%eax\n"           \
    ".endif\n"                      \
    "movq (%%r8), %%r9\n"           \
    "movl 48(%%r9), %%r10d\n"       \
    "movswl %%r10w, %%r11d\n"       \
    "addl %[bias], %%r11d\n"        \
    ".if %c[timed]\n"               \
    "cmpl %%edx, 12(%%r8)\n"        \
    "jne %l[failed]\n"              \
    ".endif\n"
#define TRACE_RING_HERE_HEAD     \
    "cmpl 16(%%r8), %%edx\n"     \
    "ja %l[failed]\n"            \
    "movl %%eax, (%%r9,%%r11)\n" \
    "movl %[header], %%edx\n"    \
    "movl %%edx, 4(%%r9,%%r11)\n"
// Stores the record's number in its lane, and the lane, into an open_span.
#define TRACE_RING_HERE_TELL    \
    ".if %c[told]\n"            \
    "movl 4(%%r9), %%edx\n"     \
    "movl %%edx, 16(%[span])\n" \
    "movl %%r10d, %%edx\n"      \
    "shrl $16, %%edx\n"         \
    "addq 16(%%r9), %%rdx\n"    \
    "movq %%rdx, (%[span])\n"   \
    ".endif\n"
#define TRACE_RING_HERE_COMMIT "movl %%r10d, 48(%%r9)\n" TRACE_RING_SEQUENCE_END
#define TRACE_RING_HERE_INPUTS                                                                \
    [area] "r"(table.area), [words] "r"(table.words), [cpus] "rm"(table.cpus),                \
        [thread] "m"(impl::own_thread), [header] "rm"(header), [bias] "i"(commit_word::bias), \
        [timed] "i"(Timed ? 1 : 0)
#define TRACE_RING_APPEND_HERE(copy, ...)                                               \
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_HERE_FIND                             \
             "leal %c[length](%%r11), %%edx\n"                                          \
             "addl %[grown], %%r10d\n" TRACE_RING_HERE_HEAD copy TRACE_RING_HERE_COMMIT \
             :                                                                          \
             : TRACE_RING_HERE_INPUTS, [length] "i"(length),                            \
               [grown] "i"(commit_word::one_record + length) __VA_OPT__(, ) __VA_ARGS__ \
:TRACE_RING_SEQUENCE_CLOBBERED                                                          \
             : failed)
#define TRACE_RING_PUT(word, at) "movq %[" word "], " at "(%%r9,%%r11)\n"
#define TRACE_RING_WORD "r"
#else
static_assert(commit_word::bias == (8 << 12) + 8);
// x8: the lane's words, x9: the sub-buffer, then its commit word; w10: that word's value; x11: the
// first free byte; w12: where the record ends.
#define TRACE_RING_HERE_FIND         \
    "ldr w8, [%[area], #4]\n"        \
    "cmp w8, %w[cpus]\n"             \
    "b.hs 9b\n"                      \
    "add x8, %[words], x8, lsl #7\n" \
    "ldr w9, [x8, #8]\n"             \
    "cmp w9, %w[thread]\n"           \
    "b.ne 9b\n"                      \
    "ldr x9, [x8]\n"                 \
    "ldr w10, [x9, #48]\n"           \
    "sxth w11, w10\n"                \
    "add w11, w11, #8, lsl #12\n"    \
    "add w11, w11, #8\n"
#define TRACE_RING_HERE_HEAD \
    "ldr w13, [x8, #16]\n"   \
    "cmp w12, w13\n"         \
    "b.hi 9b\n"              \
    "add x11, x9, x11\n"     \
    "add x9, x9, #48\n"      \
    ".if %c[timed]\n"        \
    "mrs x12, cntvct_el0\n"  \
    "ldr w13, [x8, #12]\n"   \
    "lsr x8, x12, #32\n"     \
    "cmp w8, w13\n"          \
    "b.ne 9b\n"              \
    ".else\n"                \
    "mov w12, wzr\n"         \
    ".endif\n"               \
    "stp w12, %w[header], [x11]\n"
#define TRACE_RING_HERE_TELL       \
    ".if %c[told]\n"               \
    "ldur w12, [x9, #-44]\n"       \
    "str w12, [%x[span], #16]\n"   \
    "ldur x12, [x9, #-32]\n"       \
    "add x12, x12, x10, lsr #16\n" \
    "str x12, [%x[span]]\n"        \
    ".endif\n"
#define TRACE_RING_HERE_COMMIT "stlr w10, [x9]\n" TRACE_RING_SEQUENCE_END
#define TRACE_RING_HERE_INPUTS                                                         \
    [area] "r"(area_at(table.area)), [words] "r"(table.words), [cpus] "r"(table.cpus), \
        [thread] "r"(impl::own_thread), [header] "r"(header), [timed] "i"(Timed ? 1 : 0)
#define TRACE_RING_APPEND_HERE(copy, ...)                                                 \
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_HERE_FIND                               \
             "add w12, w11, %w[length]\n"                                                 \
             "add w10, w10, %w[grown]\n" TRACE_RING_HERE_HEAD copy TRACE_RING_HERE_COMMIT \
             :                                                                            \
             : TRACE_RING_HERE_INPUTS, [length] "r"(length),                              \
               [grown] "r"(commit_word::one_record + length) __VA_OPT__(, ) __VA_ARGS__   \
:TRACE_RING_SEQUENCE_CLOBBERED                                                            \
             : failed)
#define TRACE_RING_PUT(word, at) "str %x[" word "], [x11, #" at "]\n"
#define TRACE_RING_WORD "rZ"
#endif

/// Appends one record of a header and `Count` words from `word` on. Timed: by the processor's
/// counter, read in the sequence. False: nothing has been committed, because the sequence was
/// broken off, the lane is open to another thread or has no room, the clock's high half is not the
/// one announced, or the thread is not registered; call `forget` then.
template <bool Timed, std::size_t Count>
[[nodiscard, gnu::always_inline]] inline bool append_here(
    const cpu_table& table, std::uint32_t header,
    [[maybe_unused]] const std::uint64_t* word) noexcept {
    static_assert(Count <= most_words_here);
    constexpr std::uint32_t length = record_header_bytes + 8 * Count;
    // order: here.record:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B,
    // reclaim.find:D
    if constexpr (Count == 0) {
        TRACE_RING_APPEND_HERE("");
    } else if constexpr (Count == 1) {
        TRACE_RING_APPEND_HERE(TRACE_RING_PUT("a", "8"), [a] TRACE_RING_WORD(word[0]));
    } else if constexpr (Count == 2) {
        TRACE_RING_APPEND_HERE(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16"),
                               [a] TRACE_RING_WORD(word[0]), [b] TRACE_RING_WORD(word[1]));
    } else if constexpr (Count == 3) {
        TRACE_RING_APPEND_HERE(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16")
                                   TRACE_RING_PUT("c", "24"),
                               [a] TRACE_RING_WORD(word[0]), [b] TRACE_RING_WORD(word[1]),
                               [c] TRACE_RING_WORD(word[2]));
    } else {
        TRACE_RING_APPEND_HERE(TRACE_RING_PUT("a", "8") TRACE_RING_PUT("b", "16")
                                   TRACE_RING_PUT("c", "24") TRACE_RING_PUT("d", "32"),
                               [a] TRACE_RING_WORD(word[0]), [b] TRACE_RING_WORD(word[1]),
                               [c] TRACE_RING_WORD(word[2]), [d] TRACE_RING_WORD(word[3]));
    }
    return true;
failed:
    return false;
}

/// The same for any number of words, which the sequence copies one by one. Told: stores into
/// `span`, which no other thread knows, which record of which lane it is.
template <bool Timed, bool Told = false>
[[nodiscard]] inline bool append_words_here(const cpu_table& table, std::uint32_t header,
                                            const std::uint64_t* from, std::uint32_t count,
                                            impl::open_span* span = nullptr) noexcept {
    const std::uint64_t length = record_header_bytes + std::uint64_t{count} * 8;
    // order: here.record:B pairs with read:B, file.read:B, batch.read:A, reclaim.find:B,
    // reclaim.find:D
#if defined(__x86_64__)
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_HERE_FIND
             "leal (%%r11,%[length]), %%edx\n"
             "leal %c[one](%%r10,%[length]), %%r10d\n" TRACE_RING_HERE_HEAD
             "leaq 8(%%r9,%%r11), %%r11\n"
             "movl %[count], %%eax\n"
             "testl %%eax, %%eax\n"
             "jz 6f\n"
             "5: movq -8(%[from],%%rax,8), %%rdx\n"
             "movq %%rdx, -8(%%r11,%%rax,8)\n"
             "subl $1, %%eax\n"
             "jnz 5b\n"
             "6:\n" TRACE_RING_HERE_TELL TRACE_RING_HERE_COMMIT
             :
             : TRACE_RING_HERE_INPUTS, [length] "r"(length), [from] "r"(from), [count] "rm"(count),
               [one] "i"(commit_word::one_record), [span] "ri"(Told ? span : nullptr),
               [told] "i"(Told ? 1 : 0)
             : TRACE_RING_SEQUENCE_CLOBBERED
             : failed);
#else
    asm goto(TRACE_RING_SEQUENCE_BEGIN TRACE_RING_HERE_FIND
             "add w12, w11, %w[length]\n"
             "add w10, w10, %w[one]\n"
             "add w10, w10, %w[length]\n" TRACE_RING_HERE_HEAD
             "mov w12, %w[count]\n"
             "cbz w12, 6f\n"
             "sub x8, %[from], #8\n"
             "5: ldr x13, [x8, x12, lsl #3]\n"
             "str x13, [x11, x12, lsl #3]\n"
             "subs w12, w12, #1\n"
             "b.ne 5b\n"
             "6:\n" TRACE_RING_HERE_TELL TRACE_RING_HERE_COMMIT
             :
             : TRACE_RING_HERE_INPUTS, [length] "r"(length), [from] "r"(from), [count] "r"(count),
               [one] "r"(commit_word::one_record),
               [span] "rZ"(Told ? reinterpret_cast<std::uintptr_t>(span) : std::uintptr_t{0}),
               [told] "i"(Told ? 1 : 0)
             : TRACE_RING_SEQUENCE_CLOBBERED
             : failed);
#endif
    return true;
failed:
    return false;
}

#undef TRACE_RING_WORD
#undef TRACE_RING_PUT
#undef TRACE_RING_APPEND_HERE
#undef TRACE_RING_HERE_INPUTS
#undef TRACE_RING_HERE_COMMIT
#undef TRACE_RING_HERE_TELL
#undef TRACE_RING_HERE_HEAD
#undef TRACE_RING_HERE_FIND

#else

// Never called: the table has no area here.
template <bool Timed, std::size_t Count>
[[nodiscard]] inline bool append_here(const cpu_table&, std::uint32_t,
                                      const std::uint64_t*) noexcept {
    return false;
}
template <bool Timed, bool Told = false>
[[nodiscard]] inline bool append_words_here(const cpu_table&, std::uint32_t, const std::uint64_t*,
                                            std::uint32_t, impl::open_span* = nullptr) noexcept {
    return false;
}

#endif

}  // namespace rseq
}  // namespace trace_ring::inline v1
