// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The call stack of an allocation, in tens of nanoseconds and without a page fault.
///
/// There are four ways, because most code has no frame pointers and the general unwinder takes
/// microseconds:
/// - tables: by .eh_frame; the rule for an address is looked up once and then cached in a small
///   table. The default where it is implemented (x86-64 and i386).
/// - frame:  by frame pointers. The default on other machines, whose compilers keep them.
/// - unwind: by the compiler's unwinder: slow, but handles every case.
/// - none:   no stack at all.
/// The first two read only between the stack pointer and the end of the thread's stack. On a stack
/// other than the thread's own (a coroutine's, a signal handler's), they read only to the end of
/// the page. All of them take no lock.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/event.hpp>

#include "frame_rule.hpp"

extern "C" void* __libc_stack_end;  // NOLINT: the dynamic linker's name; set before anything runs

namespace heap {

inline constexpr std::size_t max_depth = 32;
inline constexpr std::size_t default_depth = 8;
inline constexpr std::size_t default_free_depth = 4;

enum class unwind_by : std::uint8_t { none, frame, tables, unwind };

inline constexpr unwind_by default_unwind =
#if defined(__x86_64__) || defined(__i386__)
    unwind_by::tables;
#elif defined(__aarch64__)
    unwind_by::frame;
#else
    unwind_by::unwind;
#endif

// no count: a setting
inline constexpr std::array<std::string_view, 4> unwind_names{"none", "fp", "tables", "unwind"};

[[nodiscard]] inline std::optional<unwind_by> unwind_from(std::string_view name) noexcept {
    for (std::size_t i = 0; i < unwind_names.size(); ++i) {
        if (name == unwind_names[i]) return static_cast<unwind_by>(i);
    }
    return std::nullopt;
}

/// Where the walk begins: the caller of the recorded function, after the return.
struct frame_registers {
    std::uintptr_t pc = 0, sp = 0, fp = 0;
};

/// The frame of the caller of the current function, which must not be inlined.
#define HEAP_CALLER()                                                                     \
    (::heap::frame_registers{                                                             \
        reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)),                    \
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + 2 * sizeof(void*), \
        *static_cast<const std::uintptr_t*>(__builtin_frame_address(0))})

/// The part of its stack that a thread may read.
struct stack_range {
    std::uintptr_t low = 0, high = 0;
};

/// The mapping that contains `at`, from /proc/self/maps; empty if that cannot be read. Makes only
/// system calls, is not a cancellation point, and uses little stack, because it runs within an
/// allocation, on any stack.
[[nodiscard]] inline stack_range mapping_of(std::uintptr_t at) noexcept {
    const auto file =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
    if (file < 0) return {};
    stack_range found, line;
    // A line begins with the mapping's bounds, in hexadecimal: `begin-end rights ...`.
    enum class part { begin, end, rest } reading = part::begin;
    char text[256];
    long got = 0;
    while (found.high == 0 && (got = ::syscall(SYS_read, file, text, sizeof text)) != 0) {
        if (got < 0 && errno != EINTR) break;
        for (long i = 0; i < got && found.high == 0; ++i) {
            const char c = text[i];
            std::uintptr_t& bound = reading == part::begin ? line.low : line.high;
            if (c == '\n') {
                reading = part::begin;
                line = {};
            } else if (reading == part::rest) {
                continue;
            } else if (reading == part::begin && c == '-') {
                reading = part::end;
            } else if (reading == part::end && c == ' ') {
                reading = part::rest;
                if (line.low <= at && at < line.high) found = line;
            } else {
                bound = bound << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
            }
        }
    }
    ::syscall(SYS_close, file);
    return found;
}

/// The calling thread's stack; an empty range if it is unknown. Takes no lock and allocates
/// nothing. pthread_getattr_np would do both, and the thread may hold its lock while it allocates.
[[nodiscard]] inline stack_range stack_of_this_thread() noexcept {
    if (::syscall(SYS_gettid) == ::getpid()) {
        // The kernel keeps the range below the stack's end free, up to the limit, so that the stack
        // can grow.
        const auto high = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
        rlimit limit{};
        if (::getrlimit(RLIMIT_STACK, &limit) != 0) return {0, 1};
        constexpr rlim_t most = rlim_t{256} << 20;
        const auto bytes = static_cast<std::uintptr_t>(std::min(limit.rlim_cur, most));
        return {high > bytes ? high - bytes : 0, high};
    }
    // glibc keeps a thread's own data, to which pthread_self points, at the top of its stack.
    const auto top = static_cast<std::uintptr_t>(::pthread_self());
    const stack_range mapping = mapping_of(top);
    return mapping.high == 0 ? stack_range{0, 1} : stack_range{mapping.low, top};
}

/// `OnObject` is called with the dl_find_object of each new object.
template <class OnObject>
class stack_walker {
public:
    constexpr explicit stack_walker(OnObject on_object) noexcept : on_object_(on_object) {}

    /// Fills `out` from the innermost frame outwards and returns the number of frames.
    [[nodiscard]] std::size_t walk(unwind_by way, const frame_registers& from,
                                   const stack_range& stack, trace_ring::address* out,
                                   std::size_t depth) noexcept {
        switch (way) {
            case unwind_by::none:
                return 0;
            case unwind_by::frame:
                return by_frames(from, limits(from, stack), out, depth);
            case unwind_by::tables:
                return by_tables(from, limits(from, stack), out, depth);
            case unwind_by::unwind:
                return by_unwinder(from, out, depth);
        }
        return 0;
    }

    /// Drops every rule: code was unloaded, and other code may take its place.
    void forget() noexcept {
        for (auto& word : kept_) {
            // relaxed: a rule that is read a moment longer is of code that is not running
            if (word.load(trace_ring::relaxed) != 0) word.store(0, trace_ring::relaxed);
        }
    }

private:
    struct found {
        frame_rule rule;
        bool in_object = false;
    };

    [[nodiscard]] static stack_range limits(const frame_registers& from,
                                            const stack_range& stack) noexcept {
        if (from.sp >= stack.low && from.sp < stack.high) return {from.sp, stack.high};
        const std::uintptr_t page = trace_ring::storage::machine_page_bytes();
        return {from.sp, (from.sp | (page - 1)) + 1};
    }
    [[nodiscard]] static bool readable(std::uintptr_t at, const stack_range& in) noexcept {
        return at >= in.low && at < in.high && in.high - at >= sizeof at && at % sizeof at == 0;
    }
    [[nodiscard]] static std::uintptr_t read(std::uintptr_t at) noexcept {
        return *reinterpret_cast<const std::uintptr_t*>(at);
    }

    [[nodiscard]] std::size_t by_frames(frame_registers at, const stack_range in,
                                        trace_ring::address* out, std::size_t depth) noexcept {
        std::size_t n = 0;
        while (n < depth && look_up(at.pc).in_object) {
            out[n++] = trace_ring::address(at.pc);
            if (!readable(at.fp, in) || !readable(at.fp + sizeof at.fp, in) || at.fp < at.sp) break;
            at = {read(at.fp + sizeof at.fp), at.fp + 2 * sizeof at.fp, read(at.fp)};
        }
        return n;
    }

    [[nodiscard]] std::size_t by_tables(frame_registers at, const stack_range in,
                                        trace_ring::address* out, std::size_t depth) noexcept {
        std::size_t n = 0;
        while (n < depth && at.pc != 0) {
            out[n++] = trace_ring::address(at.pc);
            const frame_rule rule = look_up(at.pc).rule;
            const auto offset = static_cast<std::uintptr_t>(std::intptr_t{rule.offset});
            std::uintptr_t cfa = 0;
            switch (rule.cfa) {
                case frame_rule::base::stop:
                    return n;
                case frame_rule::base::stack:
                    cfa = at.sp + offset;
                    break;
                case frame_rule::base::frame:
                    cfa = at.fp + offset;
                    break;
                case frame_rule::base::frame_deref:
                    if (!readable(at.fp + offset, in)) return n;
                    cfa = read(at.fp + offset);
                    break;
            }
            // Callers' frames are always further up.
            if (cfa <= at.sp || !readable(cfa - sizeof cfa, in)) return n;
            std::uintptr_t fp = at.fp;
            if (rule.fp != frame_rule::saved::unchanged) {
                const std::uintptr_t where = rule.fp == frame_rule::saved::at_frame
                                                 ? at.fp
                                                 : cfa - rule.fp_words * sizeof cfa;
                if (!readable(where, in)) return n;
                fp = read(where);
            }
            at = {read(cfa - sizeof cfa), cfa, fp};
        }
        return n;
    }

    struct unwinding {
        stack_walker* self;
        std::uintptr_t first;
        trace_ring::address* out;
        std::size_t depth, n, skipped;
    };
    [[nodiscard]] std::size_t by_unwinder(const frame_registers& from, trace_ring::address* out,
                                          std::size_t depth) noexcept {
        unwinding u{this, from.pc, out, depth, 0, 0};
        const auto each = [](_Unwind_Context* context, void* data) -> _Unwind_Reason_Code {
            auto& to = *static_cast<unwinding*>(data);
            const auto pc = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
            // The recorder's own frames come first.
            if (to.n == 0 && pc != to.first && ++to.skipped < 16) return _URC_NO_REASON;
            if (pc == 0 || to.n == to.depth) return _URC_END_OF_STACK;
            (void)to.self->look_up(pc);  // so that its module is recorded
            to.out[to.n++] = trace_ring::address(pc);
            return to.n == to.depth ? _URC_END_OF_STACK : _URC_NO_REASON;
        };
        if (depth != 0) _Unwind_Backtrace(each, &u);
        return u.n;
    }

    /// Cached rules for return addresses. Each entry is one word, which any thread may replace at
    /// any time. A collision costs only a look-up.
    [[nodiscard]] found look_up(std::uintptr_t pc) noexcept {
        // Odd, so that different addresses have different products: place and tag together are the
        // address.
        constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
        const std::uint64_t product = (pc * odd) & address_mask;
        auto& word = kept_[static_cast<std::size_t>(product >> tag_bits)];
        const std::uint64_t tag = product & ((std::uint64_t{1} << tag_bits) - 1);
        // relaxed: the word is complete in itself
        const std::uint64_t have = word.load(trace_ring::relaxed);
        if ((have & valid_bit) != 0 && have >> rule_bits == tag) return unpack(have);
        const found made = find(pc);
        if (pc <= address_mask) {
            // relaxed: as above
            word.store(tag << rule_bits | pack(made), trace_ring::relaxed);
        }
        return made;
    }

    [[nodiscard]] found find(std::uintptr_t pc) noexcept {
        dl_find_object object{};
        auto* const inside = reinterpret_cast<void*>(pc - 1);  // an address inside the call, not
                                                               // after it
        if (pc == 0 || ::_dl_find_object(inside, &object) != 0) return {};
        on_object_(object);
        return {find_frame_rule(pc - 1, object), true};
    }

    // Of a word: 33 bits tag, 31 bits rule:
    //   1 valid, 1 in an object, 2 saved, 2 base, 6 words, 18 offset / 4, 1 unused
    static constexpr std::uint64_t address_mask = (std::uint64_t{1} << 48) - 1;
    static constexpr unsigned place_bits = 15, tag_bits = 33, rule_bits = 31;
    static_assert(place_bits + tag_bits == 48 && tag_bits + rule_bits == 64);
    static constexpr std::uint64_t valid_bit = 1;

    [[nodiscard]] static std::uint64_t pack(const found& f) noexcept {
        const auto offset = static_cast<std::uint32_t>(f.rule.offset / 4) & 0x3FFFFU;
        return valid_bit | std::uint64_t{f.in_object} << 1 |
               static_cast<std::uint64_t>(f.rule.fp) << 2 |
               static_cast<std::uint64_t>(f.rule.cfa) << 4 |
               static_cast<std::uint64_t>(f.rule.fp_words & 0x3FU) << 6 |
               std::uint64_t{offset} << 12;
    }
    [[nodiscard]] static found unpack(std::uint64_t word) noexcept {
        found f;
        f.in_object = (word >> 1 & 1) != 0;
        f.rule.fp = static_cast<frame_rule::saved>(word >> 2 & 3);
        f.rule.cfa = static_cast<frame_rule::base>(word >> 4 & 3);
        f.rule.fp_words = static_cast<std::uint8_t>(word >> 6 & 0x3F);
        const auto raw = static_cast<std::uint32_t>(word >> 12) << 14;  // the sign to the top
        f.rule.offset = static_cast<std::int32_t>(raw) / (1 << 12);
        return f;
    }

    OnObject on_object_;
    std::array<trace_ring::atomic<std::uint64_t>, std::size_t{1} << place_bits> kept_{};
};

}  // namespace heap
