// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap_recorder.so: preloaded into a program, records every call of the allocator, from the first
/// one, which may come before any constructor, to the last, after static destruction.
/// @code
///   LD_PRELOAD=build/bin/heap_recorder.so TRACE_RING_FILE=/tmp/heap.%e.%p.trace python3 script.py
/// @endcode
/// Variables: see settings.hpp and README.md beside this file. What the recorder itself allocates
/// is not the program's and is not recorded: it comes from memory of its own (own_memory.hpp). A
/// call that the allocator makes of another of its functions is part of the first one.

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>
#include <system_error>

#include <trace_ring/recorder/recorder.hpp>

#include "call_stack.hpp"
#include "heap_events.hpp"
#include "next_functions.hpp"
#include "own_memory.hpp"
#include "settings.hpp"

// This library's own code lies between the two: what is called from there is the recorder's.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's names
[[gnu::visibility("hidden")]] extern const char _etext[];        // NOLINT
}

namespace heap {
namespace {

/// What one thread is at. The two marks are frame addresses: a call from a frame further up cannot
/// be inside the marked one, which was left by longjmp.
struct thread_state {
    std::uintptr_t own = 0;     // in the recorder's own work
    std::uintptr_t inside = 0;  // in the allocator
    stack_range stack;
    std::uint64_t fork_number = 0;
};
constinit thread_local thread_state here __attribute__((tls_model("initial-exec")));

constinit own_memory own;
constinit next_functions next;

/// Marks a scope as the recorder's own work, or as the allocator's.
class marked {
public:
    marked(std::uintptr_t& mark, std::uintptr_t frame) noexcept : mark_(mark), before_(mark) {
        mark_ = frame;
        trace_ring::signal_fence(trace_ring::seq_cst);
    }
    ~marked() {
        trace_ring::signal_fence(trace_ring::seq_cst);
        mark_ = before_;
    }
    marked(const marked&) = delete;
    marked& operator=(const marked&) = delete;

private:
    std::uintptr_t& mark_;
    std::uintptr_t before_;
};

[[nodiscard]] bool is_within(std::uintptr_t mark, const frame_registers& caller) noexcept {
    return mark != 0 && caller.sp <= mark;
}

[[nodiscard]] bool is_own_code(std::uintptr_t pc) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
    return pc - begin < reinterpret_cast<std::uintptr_t>(_etext) - begin;
}

/// Is this call the recorder's own? What the allocator calls while it serves the program is not,
/// though it may seem to come from here: glibc's reallocarray jumps to realloc.
[[nodiscard]] bool is_own(const frame_registers& caller) noexcept {
    return is_within(here.own, caller) ||
           (is_own_code(caller.pc) && !is_within(here.inside, caller));
}

// --- Set-up ------------------------------------------------------------------------------------

enum class stage : int { unset, setting_up, ready, untraced };
constinit trace_ring::atomic<int> stage_now{static_cast<int>(stage::unset)};

alignas(trace_ring::recorder) constinit std::byte recorder_storage[sizeof(trace_ring::recorder)]{};

// Not destroyed: it records until the process is gone.
[[nodiscard]] trace_ring::recorder& recorder() noexcept {
    return *std::launder(reinterpret_cast<trace_ring::recorder*>(recorder_storage));
}

// Decided at set-up, before the stage is `ready`.
constinit unwind_by unwind = default_unwind;
constinit std::size_t depth = default_depth;
constinit std::size_t free_depth = default_free_depth;

constinit trace_ring::atomic<std::uint64_t> unrecorded_calls{0};
constinit trace_ring::atomic<std::uint64_t> forks{0};

/// The objects that were recorded, by where they begin: open addressing, entries come by swap.
class object_set {
public:
    /// True once for each object, to one caller.
    [[nodiscard]] bool add(std::uintptr_t start) noexcept {
        std::size_t at = place(start);
        for (std::size_t tries = 0; tries < count; ++tries, at = (at + 1) % count) {
            std::uintptr_t expected = 0;
            // relaxed, here and below: the addresses are all there is to tell
            if (starts_[at].compare_exchange_strong(expected, start, trace_ring::relaxed)) {
                return true;
            }
            if (expected == start) return false;
        }
        return true;  // full: recorded more than once, which does no harm
    }
    /// Takes out those of which `gone` is true.
    template <class Gone>
    void remove_if(Gone gone) noexcept {
        for (auto& each : starts_) {
            std::uintptr_t start = each.load(trace_ring::relaxed);
            if (start > removed && gone(start)) {
                each.compare_exchange_strong(start, removed, trace_ring::relaxed);
            }
        }
    }

private:
    static constexpr std::size_t count = 2048;
    static constexpr std::uintptr_t removed = 1;  // a place that was taken: the search goes on
    [[nodiscard]] static std::size_t place(std::uintptr_t start) noexcept {
        return (start >> 12) * 0x9E3779B1U % count;
    }
    trace_ring::atomic<std::uintptr_t> starts_[count]{};
};
constinit object_set objects;

/// The build id in the notes of a loaded object; empty if there is none.
[[nodiscard]] std::span<const std::uint8_t> build_id(std::uintptr_t start, std::uintptr_t end,
                                                     std::uintptr_t bias) noexcept {
    const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(start);
    if (end - start < sizeof header ||
        std::string_view(reinterpret_cast<const char*>(start), SELFMAG) != ELFMAG ||
        header.e_phoff > end - start ||
        header.e_phnum * sizeof(ElfW(Phdr)) > end - start - header.e_phoff) {
        return {};
    }
    const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(start + header.e_phoff);
    for (const auto& segment : std::span(segments, header.e_phnum)) {
        if (segment.p_type != PT_NOTE) continue;
        std::uintptr_t at = bias + segment.p_vaddr;
        const std::uintptr_t notes_end = at + segment.p_memsz;
        if (at < start || notes_end > end || notes_end < at) continue;
        while (notes_end - at >= sizeof(ElfW(Nhdr))) {
            const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
            const std::uintptr_t align = segment.p_align == 8 ? 8 : 4;
            const auto padded = [align](std::uintptr_t n) {
                return (n + align - 1) & ~(align - 1);
            };
            const std::uintptr_t name = at + sizeof note;
            const std::uintptr_t data = at + padded(sizeof note + note.n_namesz);
            if (note.n_namesz > notes_end - name || data > notes_end ||
                note.n_descsz > notes_end - data) {
                break;
            }
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::string_view(reinterpret_cast<const char*>(name), 4) ==
                    std::string_view("GNU", 4)) {
                return {reinterpret_cast<const std::uint8_t*>(data), note.n_descsz};
            }
            const std::uintptr_t next_note = data + padded(note.n_descsz);
            if (next_note > notes_end || next_note <= at) break;
            at = next_note;
        }
    }
    return {};
}

/// Records an object that was not recorded yet.
[[gnu::cold]] void note_object(const dl_find_object& object) {
    const auto start = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
    const auto end = reinterpret_cast<std::uintptr_t>(object.dlfo_map_end);
    if (!objects.add(start)) return;
    const int kept = errno;
    const link_map& map = *object.dlfo_link_map;
    char resolved[PATH_MAX];
    std::string_view path = map.l_name == nullptr ? "" : map.l_name;
    if (path.empty()) {  // the program itself
        const ssize_t got = ::readlink("/proc/self/exe", resolved, sizeof resolved);
        path = {resolved, got > 0 ? static_cast<std::size_t>(got) : 0};
    } else if (path.front() != '/' && ::realpath(map.l_name, resolved) != nullptr) {
        path = resolved;
    }
    recorder().record<event::module>(trace_ring::address(start), trace_ring::address(end),
                                     trace_ring::address(map.l_addr),
                                     build_id(start, end, map.l_addr), path);
    errno = kept;
}

struct note_new_object {
    void operator()(const dl_find_object& object) const noexcept { note_object(object); }
};
constinit stack_walker<note_new_object> walker{note_new_object{}};

void before_fork() noexcept {
    if (stage_now.load(trace_ring::acquire) != static_cast<int>(stage::ready)) return;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    here.fork_number = forks.fetch_add(1, trace_ring::relaxed) + 1;  // relaxed: a number
    recorder().record<event::fork>(here.fork_number);
}

void in_child() noexcept {
    if (stage_now.load(trace_ring::acquire) != static_cast<int>(stage::ready)) return;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    recorder().record<event::forked>(here.fork_number);
}

/// Makes the trace file. An image that comes by exec has its predecessor's process id, so a file of
/// that name may be there already: then a counter goes before the extension.
void make_recorder(const settings& wanted) {
    for (unsigned count = 0;; ++count) {
        const std::string file = numbered(wanted.file, count);
        if (count < 9999 && ::access(trace_ring::expand_file_name(file).c_str(), F_OK) == 0) {
            continue;
        }
        try {
            trace_ring::recorder_options options;
            options.file = file;
            options.size = std::uint64_t{1} << 20;  // most programs of a build are small
            options.step = std::uint64_t{8} << 20;
            options.limit = wanted.limit;
            options.full = trace_ring::full_mode::extend_then_discard;
            options.processes = 1024;
            new (recorder_storage) trace_ring::recorder(options);
            return;
        } catch (const std::system_error& error) {
            if (error.code().value() != EEXIST || count >= 9999) throw;
        }
    }
}

[[nodiscard]] stage set_up() {
    std::string file;
    try {
        find_program_name();
        const settings wanted = read_settings();
        file = wanted.file;
        unwind = wanted.depth == 0 ? unwind_by::none : wanted.unwind;
        depth = wanted.depth;
        free_depth = wanted.free_depth;
        make_recorder(wanted);
        recorder().record<event::recording>(unwind_names[static_cast<std::size_t>(unwind)],
                                            static_cast<std::uint32_t>(depth), wanted.limit);
        ::dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void*) {
                for (const auto& segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
                    dl_find_object object{};
                    auto* const at = reinterpret_cast<void*>(info->dlpi_addr + segment.p_vaddr);
                    if (segment.p_type == PT_LOAD && ::_dl_find_object(at, &object) == 0) {
                        note_object(object);
                        break;
                    }
                }
                return 0;
            },
            nullptr);
        if (::pthread_atfork(before_fork, nullptr, in_child) != 0) {
            complain({"cannot follow fork: what a child inherits is guessed"});
        }
        return stage::ready;
    } catch (const std::exception& error) {
        complain({error.what(), "; ", program_invocation_short_name, " runs untraced"});
    } catch (...) {
        complain(
            {"cannot record to ", file, "; ", program_invocation_short_name, " runs untraced"});
    }
    return stage::untraced;
}

/// At a call that does not find the recorder ready: sets it up, or waits for whoever does. False:
/// this call goes unrecorded.
[[gnu::cold, gnu::noinline]] bool begin() noexcept {
    int now = static_cast<int>(stage::unset);
    if (stage_now.compare_exchange_strong(now, static_cast<int>(stage::setting_up),
                                          trace_ring::acq_rel, trace_ring::acquire)) {
        const int kept = errno;
        const stage reached = set_up();
        stage_now.store(static_cast<int>(reached), trace_ring::release);
        errno = kept;
        return reached == stage::ready;
    }
    // Only a thread that some constructor started before ours ran can get here. It does not wait
    // for ever: it may hold what set-up needs.
    for (int tries = 0; now == static_cast<int>(stage::setting_up); ++tries) {
        if (tries == 10'000) {
            unrecorded_calls.fetch_add(1, trace_ring::relaxed);  // relaxed: a counter
            return false;
        }
        ::sched_yield();
        now = stage_now.load(trace_ring::acquire);
    }
    return now == static_cast<int>(stage::ready);
}

[[nodiscard]] bool is_ready() noexcept {
    return stage_now.load(trace_ring::acquire) == static_cast<int>(stage::ready) ||
           (stage_now.load(trace_ring::acquire) != static_cast<int>(stage::untraced) && begin());
}

/// A program that never allocates has a trace, too; and set-up comes before any thread.
[[gnu::constructor]] void start() {
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    static_cast<void>(is_ready());
}

[[gnu::destructor]] void end() {
    const std::uint64_t calls = unrecorded_calls.load(trace_ring::relaxed);  // relaxed: a counter
    if (calls == 0 || !is_ready()) return;
    recorder().record<event::unrecorded>(calls);
}

// --- One call ----------------------------------------------------------------------------------

struct captured {
    trace_ring::address frames[max_depth];
    std::size_t count = 0;
    [[nodiscard]] call_stack view() const noexcept { return {frames, count}; }
};

[[gnu::cold, gnu::noinline]] void find_stack() noexcept {
    const int kept = errno;
    here.stack = stack_of_this_thread();
    errno = kept;
}

/// Takes the stack before the call, so that what the call gives back to other threads is not
/// theirs for longer than need be when its record is made.
[[gnu::always_inline]] inline void capture(const frame_registers& caller, std::size_t frames,
                                           captured& to) noexcept {
    if (frames == 0) return;
    if (here.stack.high == 0) [[unlikely]]
        find_stack();
    to.count = walker.walk(unwind, caller, here.stack, to.frames, frames);
}

/// Is this call the program's, and to be recorded?
[[nodiscard, gnu::always_inline]] inline bool records(const frame_registers& caller) noexcept {
    if (is_within(here.inside, caller)) return false;
    const marked mine(here.own, caller.sp);
    return is_ready();
}

/// One recorded call: the stack, then `call`, then `keep` with its result and the stack.
template <class Call, class Keep>
[[gnu::always_inline]] inline auto traced(const frame_registers& caller, Call call,
                                          Keep keep) noexcept {
    if (!records(caller)) return call();
    captured stack;
    {
        const marked mine(here.own, caller.sp);
        capture(caller, depth, stack);
    }
    const auto result = [&] {
        const marked theirs(here.inside, caller.sp);
        return call();
    }();
    const marked mine(here.own, caller.sp);
    keep(result, stack.view());
    return result;
}

/// The next function, or one that fails as for want of memory.
template <class Result, class... Args>
[[gnu::always_inline]] inline Result call_next(const frame_registers& caller,
                                               next_function<Result(Args...)>& function,
                                               Args... args) noexcept {
    if (!function.known()) [[unlikely]] {
        const marked mine(here.own, caller.sp);
        if (function.get() == nullptr) {
            errno = ENOMEM;
            return Result{};
        }
    }
    return function.get()(args...);
}

[[nodiscard]] void* fail(int error) noexcept {
    errno = error;
    return nullptr;
}

[[nodiscard]] void* allocate_own(std::size_t bytes, std::size_t alignment = 16) noexcept {
    void* const block = own.allocate(bytes, alignment);
    return block != nullptr ? block : fail(ENOMEM);
}

/// memalign, aligned_alloc, valloc, pvalloc have this in common.
template <class Event, class... Args>
[[gnu::always_inline]] inline void* traced_aligned(const frame_registers& caller,
                                                   std::size_t alignment, std::size_t size,
                                                   next_function<void*(Args...)>& function,
                                                   Args... args) noexcept {
    if (is_own(caller)) return allocate_own(size, alignment);
    return traced(
        caller, [&] { return call_next(caller, function, args...); },
        [&](void* result, call_stack stack) {
            recorder().record<Event>(std::uint64_t{args}..., trace_ring::address(result), stack);
        });
}

}  // namespace
}  // namespace heap

#define HEAP_EXPORT [[gnu::visibility("default"), gnu::noinline, gnu::used]]

using namespace heap;  // NOLINT: what follows are the C library's names

extern "C" {

HEAP_EXPORT void* malloc(std::size_t size) noexcept {
    const auto caller = HEAP_CALLER();
    if (is_own(caller)) return allocate_own(size);
    return traced(
        caller, [&] { return call_next(caller, next.malloc, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::malloc>(size, trace_ring::address(result), stack);
        });
}

HEAP_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
    const auto caller = HEAP_CALLER();
    if (is_own(caller)) {
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
        return allocate_own(bytes);  // comes zeroed
    }
    return traced(
        caller, [&] { return call_next(caller, next.calloc, count, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::calloc>(count, size, trace_ring::address(result), stack);
        });
}

HEAP_EXPORT void free(void* block) noexcept {
    if (own.contains(block)) return own.release(block);
    const auto caller = HEAP_CALLER();
    if (!is_own(caller) && records(caller)) {
        const marked mine(here.own, caller.sp);
        if (free_depth == 0) {
            recorder().record<event::free_alone>(trace_ring::address(block));
        } else {
            captured stack;
            capture(caller, free_depth, stack);
            recorder().record<event::free>(trace_ring::address(block), stack.view());
        }
    }
    const marked theirs(here.inside, caller.sp);
    if (next.free.known()) return next.free.get()(block);
    const marked mine(here.own, caller.sp);
    if (auto* const function = next.free.get()) function(block);
}

HEAP_EXPORT void* realloc(void* old, std::size_t size) noexcept {
    const auto caller = HEAP_CALLER();
    if (own.contains(old)) return own.resize(old, size);
    if (is_own(caller) && old == nullptr) return allocate_own(size);
    if (is_own(caller)) return call_next(caller, next.realloc, old, size);
    return traced(
        caller, [&] { return call_next(caller, next.realloc, old, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::realloc>(trace_ring::address(old), size,
                                              trace_ring::address(result), stack);
        });
}

HEAP_EXPORT void* reallocarray(void* old, std::size_t count, std::size_t size) noexcept {
    const auto caller = HEAP_CALLER();
    if (own.contains(old) || (is_own(caller) && old == nullptr)) {
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
        return old == nullptr ? allocate_own(bytes) : own.resize(old, bytes);
    }
    if (is_own(caller)) return call_next(caller, next.reallocarray, old, count, size);
    return traced(
        caller, [&] { return call_next(caller, next.reallocarray, old, count, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::reallocarray>(trace_ring::address(old), count, size,
                                                   trace_ring::address(result), stack);
        });
}

HEAP_EXPORT int posix_memalign(void** to, std::size_t alignment, std::size_t size) noexcept {
    const auto caller = HEAP_CALLER();
    if (is_own(caller)) {
        void* const block = own.allocate(size, alignment);
        if (block != nullptr) *to = block;
        return block != nullptr ? 0 : ENOMEM;
    }
    return traced(
        caller,
        [&] {
            // A missing function answers 0, as if it had made the block.
            if (next.posix_memalign.known()) return next.posix_memalign.get()(to, alignment, size);
            const marked mine(here.own, caller.sp);
            auto* const function = next.posix_memalign.get();
            return function == nullptr ? ENOMEM : function(to, alignment, size);
        },
        [&](int error, call_stack stack) {
            recorder().record<event::posix_memalign>(
                alignment, size, trace_ring::address(error == 0 ? *to : nullptr), stack);
        });
}

HEAP_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    return traced_aligned<event::aligned_alloc>(HEAP_CALLER(), alignment, size, next.aligned_alloc,
                                                alignment, size);
}

HEAP_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return traced_aligned<event::memalign>(HEAP_CALLER(), alignment, size, next.memalign, alignment,
                                           size);
}

HEAP_EXPORT void* valloc(std::size_t size) noexcept {
    return traced_aligned<event::valloc>(HEAP_CALLER(), 4096, size, next.valloc, size);
}

HEAP_EXPORT void* pvalloc(std::size_t size) noexcept {
    return traced_aligned<event::pvalloc>(HEAP_CALLER(), 4096, size, next.pvalloc, size);
}

/// Code may be gone after this, and other code come in its place: what is known of it is forgotten.
HEAP_EXPORT int dlclose(void* handle) noexcept {
    auto* const function = next.dlclose.get();
    const int result = function == nullptr ? -1 : function(handle);
    objects.remove_if([](std::uintptr_t start) {
        dl_find_object object{};
        return ::_dl_find_object(reinterpret_cast<void*>(start), &object) != 0;
    });
    walker.forget();
    return result;
}

}  // extern "C"
