// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes a record as one restartable sequence (sequence.hpp), into the sub-buffer that this
/// processor's lane has in use, if the lane is open to this thread.
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
#include <trace_ring/recorder/cpu/rseq.hpp>
#include <trace_ring/recorder/cpu/sequence.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/open_span.hpp>

namespace trace_ring::inline v1 {

/// A processor's lane as the process that writes it knows it, in a page that fork wipes. Changed
/// only by sequences on that processor. All zero: no lane yet, open to no thread.
struct cpu_words {
    shared_atomic<std::uint64_t> current;    ///< address of the sub-buffer in use; 0: none
    shared_atomic<std::uint64_t> announced;  ///< thread, above it the clock's high half
    shared_atomic<std::uint64_t> limit;      ///< bytes of a sub-buffer
    shared_atomic<std::uint64_t> entry;      ///< address of the lane's entry in the file
    shared_atomic<std::uint64_t> totals;     ///< address of its row of totals; 0: none
    shared_atomic<std::uint64_t> told;       ///< refused records that sub-buffers have reported
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
inline constinit thread_local std::uint32_t own_thread TRACE_RING_TLS = no_thread;
/// Its name when the kernel was asked: 16 bytes.
inline constinit thread_local std::uint64_t own_name[2] TRACE_RING_TLS = {};
static_assert(offsetof(open_span, begun) == 0 && offsetof(open_span, lane) == 16 &&
              offsetof(sub_buffer_header, lane) == 4 &&
              offsetof(sub_buffer_header, first_position) == 16);
}  // namespace impl

namespace rseq {

/// The most words that `append` stores one by one, from registers; and a value that
/// means any number of words.
inline constexpr std::size_t most_words = 4;
inline constexpr std::size_t any_words = most_words + 1;

/// Appends a record of a header and the words from `from` on: `Words` of them or, if that is
/// any_words, `count`. Timed: by the processor's counter, read in the sequence. Told: stores into
/// `span`, which no other thread knows, which record of which lane it is. False: nothing has been
/// committed, because the sequence was broken off, the lane is open to another thread or has no
/// room, the clock's high half is not the one announced, or the thread is not registered; call
/// `forget` then.
template <bool Timed, std::size_t Words, bool Told = false>
[[nodiscard, gnu::always_inline]] inline bool append(
    [[maybe_unused]] const cpu_table& table, [[maybe_unused]] std::uint32_t header,
    [[maybe_unused]] const std::uint64_t* from, [[maybe_unused]] std::uint32_t count = 0,
    [[maybe_unused]] impl::open_span* span = nullptr) noexcept {
    static_assert(Words <= any_words);
#if defined(TRACE_RING_RSEQ)
    constexpr bool few = Words < any_words;
    constexpr std::uint32_t known = record_header_bytes + (few ? 8 * Words : 0);
    // What the sequence does not use is the constant 0, which takes no register. `inline`:
    // compilers would guess from the lines of text how long the sequence is, and .if leaves most of
    // them out.
    const std::uint32_t more = few ? 0 : count * 8;
#define TRACE_RING_WORD(i) (few && Words > (i) ? from[i] : 0)
#define TRACE_RING_CHOSEN                                                      \
    [timed] "i"(Timed ? 1 : 0), [few] "i"(few ? static_cast<int>(Words) : -1), \
        [told] "i"(Told ? 1 : 0), [known] "i"(known)
    // order: here.record:A pairs with read:B, file.read:B, batch.read:A, reclaim.find:B,
    // reclaim.find:D
#if defined(__x86_64__)
    // eax: the time, read between loads that do not wait for one another. r8: the lane's words, r9:
    // the sub-buffer, r10d: its commit word, r11: where the record begins, edx: where it ends.
    asm inline goto(
        TRACE_RING_SEQUENCE_BEGIN
        "movl %%fs:4(%[area]), %%r8d\n"
        "cmpl %[cpus], %%r8d\n"
        "jae %l[failed]\n"
        "shlq $7, %%r8\n"
        "addq %[lanes], %%r8\n"
        "movl %[thread], %%r11d\n"
        "cmpl 8(%%r8), %%r11d\n"
        "jne %l[failed]\n"
        ".if %c[timed]\n"
        "rdtsc\n"
        ".else\n"
        "xorl %%eax, %%eax\n"
        ".endif\n"
        "movq (%%r8), %%r9\n"
        "movl 48(%%r9), %%r10d\n"
        "movswl %%r10w, %%r11d\n"
        "addl %[bias], %%r11d\n"
        ".if %c[timed]\n"
        "cmpl %%edx, 12(%%r8)\n"
        "jne %l[failed]\n"
        ".endif\n"
        "leal %c[known](%%r11), %%edx\n"
        "addl %[grown], %%r10d\n"
        ".if %c[few] < 0\n"
        "addl %[more], %%edx\n"
        "addl %[more], %%r10d\n"
        ".endif\n"
        "cmpl 16(%%r8), %%edx\n"
        "ja %l[failed]\n"
        "movl %%eax, (%%r9,%%r11)\n"
        "movl %[header], %%edx\n"
        "movl %%edx, 4(%%r9,%%r11)\n"
        ".if %c[few] > 0; movq %[a], 8(%%r9,%%r11); .endif\n"
        ".if %c[few] > 1; movq %[b], 16(%%r9,%%r11); .endif\n"
        ".if %c[few] > 2; movq %[c], 24(%%r9,%%r11); .endif\n"
        ".if %c[few] > 3; movq %[d], 32(%%r9,%%r11); .endif\n"
        ".if %c[few] < 0\n"
        "addq %%r9, %%r11\n"
        "movq %[from], %%r8\n"
        "movl %[more], %%eax\n"
        "testl %%eax, %%eax\n"
        "jz 6f\n"
        "5: movq -8(%%r8,%%rax), %%rdx\n"
        "movq %%rdx, (%%r11,%%rax)\n"
        "subl $8, %%eax\n"
        "jnz 5b\n"
        "6:\n"
        ".endif\n"
        ".if %c[told]\n"
        "movq %[span], %%r8\n"
        "movl 4(%%r9), %%edx\n"
        "movl %%edx, 16(%%r8)\n"
        "movl %%r10d, %%edx\n"
        "shrl $16, %%edx\n"
        "addq 16(%%r9), %%rdx\n"
        "movq %%rdx, (%%r8)\n"
        ".endif\n"
        "movl %%r10d, 48(%%r9)\n" TRACE_RING_SEQUENCE_END
        :
        : TRACE_RING_CHOSEN, [area] "r"(table.area), [lanes] "r"(table.words),
          [cpus] "rm"(table.cpus), [thread] "m"(impl::own_thread), [header] "rm"(header),
          [bias] "i"(commit_word::bias), [grown] "i"(commit_word::one_record + known),
          [more] "ri"(more), [a] "re"(TRACE_RING_WORD(0)), [b] "re"(TRACE_RING_WORD(1)),
          [c] "re"(TRACE_RING_WORD(2)), [d] "re"(TRACE_RING_WORD(3)),
          [from] "ri"(few ? nullptr : from), [span] "ri"(Told ? span : nullptr)
        : TRACE_RING_SEQUENCE_CLOBBERED
        : failed);
#else
    static_assert(commit_word::bias == (8 << 12) + 8);
    // x8: the lane's words, x9: the sub-buffer, then its commit word; w10: that word's value; x11:
    // where the record begins, w12: where it ends.
    const auto address = [](bool used, const void* of) {
        return used ? reinterpret_cast<std::uintptr_t>(of) : 0;
    };
    asm inline goto(TRACE_RING_SEQUENCE_BEGIN
                    "ldr w8, [%[area], #4]\n"
                    "cmp w8, %w[cpus]\n"
                    "b.hs 9b\n"
                    "add x8, %[lanes], x8, lsl #7\n"
                    "ldr w9, [x8, #8]\n"
                    "cmp w9, %w[thread]\n"
                    "b.ne 9b\n"
                    "ldr x9, [x8]\n"
                    "ldr w10, [x9, #48]\n"
                    "sxth w11, w10\n"
                    "add w11, w11, #8, lsl #12\n"
                    "add w11, w11, #8\n"
                    "add w12, w11, #%c[known]\n"
                    "add w10, w10, %w[grown]\n"
                    ".if %c[few] < 0\n"
                    "add w12, w12, %w[more]\n"
                    "add w10, w10, %w[more]\n"
                    ".endif\n"
                    "ldr w13, [x8, #16]\n"
                    "cmp w12, w13\n"
                    "b.hi 9b\n"
                    "add x11, x9, x11\n"
                    "add x9, x9, #48\n"
                    ".if %c[timed]\n"
                    "mrs x12, cntvct_el0\n"
                    "ldr w13, [x8, #12]\n"
                    "lsr x8, x12, #32\n"
                    "cmp w8, w13\n"
                    "b.ne 9b\n"
                    ".else\n"
                    "mov w12, wzr\n"
                    ".endif\n"
                    "stp w12, %w[header], [x11]\n"
                    ".if %c[few] > 0; str %x[a], [x11, #8]; .endif\n"
                    ".if %c[few] > 1; str %x[b], [x11, #16]; .endif\n"
                    ".if %c[few] > 2; str %x[c], [x11, #24]; .endif\n"
                    ".if %c[few] > 3; str %x[d], [x11, #32]; .endif\n"
                    ".if %c[few] < 0\n"
                    "mov w12, %w[more]\n"
                    "cbz w12, 6f\n"
                    "sub x8, %x[from], #8\n"
                    "5: ldr x13, [x8, x12]\n"
                    "str x13, [x11, x12]\n"
                    "subs w12, w12, #8\n"
                    "b.ne 5b\n"
                    "6:\n"
                    ".endif\n"
                    ".if %c[told]\n"
                    "ldur w12, [x9, #-44]\n"
                    "str w12, [%x[span], #16]\n"
                    "ldur x12, [x9, #-32]\n"
                    "add x12, x12, x10, lsr #16\n"
                    "str x12, [%x[span]]\n"
                    ".endif\n"
                    "stlr w10, [x9]\n" TRACE_RING_SEQUENCE_END
                    :
                    : TRACE_RING_CHOSEN, [area] "r"(area_at(table.area)), [lanes] "r"(table.words),
                      [cpus] "r"(table.cpus), [thread] "r"(impl::own_thread), [header] "r"(header),
                      [grown] "r"(commit_word::one_record + known), [more] "rZ"(more),
                      [a] "rZ"(TRACE_RING_WORD(0)), [b] "rZ"(TRACE_RING_WORD(1)),
                      [c] "rZ"(TRACE_RING_WORD(2)), [d] "rZ"(TRACE_RING_WORD(3)),
                      [from] "rZ"(address(!few, from)), [span] "rZ"(address(Told, span))
                    : TRACE_RING_SEQUENCE_CLOBBERED
                    : failed);
#endif
#undef TRACE_RING_CHOSEN
#undef TRACE_RING_WORD
    return true;
failed:
#endif
    return false;  // without sequences it is never called: the table has no area
}
/// The same as a function, for any number of words. Told if `span` is not null.
template <bool Timed>
[[nodiscard]] inline bool append_words(const cpu_table& table, std::uint32_t header,
                                       const std::uint64_t* from, std::uint32_t count,
                                       impl::open_span* span = nullptr) noexcept {
    if (span == nullptr) return append<Timed, any_words>(table, header, from, count);
    return append<Timed, any_words, true>(table, header, from, count, span);
}

}  // namespace rseq
}  // namespace trace_ring::inline v1
