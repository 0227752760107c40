// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// heap_recorder.so: preloaded into a program, records every call of the allocator, from the first
/// one, which may come before any constructor, to the last, after static destruction.
/// @code
///   LD_PRELOAD=build/bin/heap_recorder.so TRACE_RING_FILE=/tmp/heap.%e.%p.trace python3 script.py
/// @endcode
/// The variables are documented in settings.hpp and in README.md in this folder. The recorder's own
/// allocations come from separate memory (own_memory.hpp) and are not recorded. If the allocator
/// calls another of its functions, this is part of the first call: for example, operator new
/// calling malloc.
///
/// Coroutines of the program may call these functions on stacks of a few KiB: after set-up, a call
/// needs at most 2 KiB more than the allocator itself.

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>

#include "bypass.hpp"
#include "call_stack.hpp"
#include "executions.hpp"
#include "heap_events.hpp"
#include "next_functions.hpp"
#include "own_memory.hpp"
#include "path_room.hpp"
#include "recordable.hpp"
#include "settings.hpp"

// This library's own code is between the two: calls from there are the recorder's.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's names
[[gnu::visibility("hidden")]] extern const char _etext[];        // NOLINT
}

namespace heap {
namespace {

/// The state of one thread. The two marks are frame addresses: a call from a frame further up
/// cannot be inside the marked one, which was left by longjmp.
struct thread_state {
    std::uintptr_t own = 0;     // in the recorder's own work
    std::uintptr_t inside = 0;  // in the allocator
    stack_range stack;
    std::uint64_t fork_number = 0;
};
constinit thread_local thread_state here __attribute__((tls_model("initial-exec")));

constinit own_memory own;
constinit next_functions next;
constinit next_executions next_program;

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

/// Whether this call is the recorder's own. Calls by the allocator while it serves the program are
/// not, though they may seem to come from here: glibc's reallocarray jumps to realloc.
[[nodiscard]] bool is_own(const frame_registers& caller) noexcept {
    return is_within(here.own, caller) ||
           (is_own_code(caller.pc) && !is_within(here.inside, caller));
}

// --- Set-up ------------------------------------------------------------------------------------

enum class stage : int { unset, setting_up, ready, untraced };
constinit trace_ring::atomic<int> stage_now{static_cast<int>(stage::unset)};

[[nodiscard]] bool is_recording() noexcept {
    return stage_now.load(trace_ring::acquire) == static_cast<int>(stage::ready);
}

alignas(trace_ring::recorder) constinit std::byte recorder_storage[sizeof(trace_ring::recorder)]{};

// Not destroyed: it records until the process ends.
[[nodiscard]] trace_ring::recorder& recorder() noexcept {
    return *std::launder(reinterpret_cast<trace_ring::recorder*>(recorder_storage));
}

// Decided at set-up, before the stage is `ready`.
constinit unwind_by unwind = default_unwind;
constinit std::size_t depth = default_depth;
constinit std::size_t free_depth = default_free_depth;

constinit trace_ring::atomic<std::uint64_t> unrecorded_calls{0};
constinit trace_ring::atomic<std::uint64_t> forks{0};

/// The objects that were recorded, by their start: open addressing, with entries added by
/// compare-and-swap.
class object_set {
public:
    /// Returns true once for each object, to one caller.
    [[nodiscard]] bool add(std::uintptr_t start) noexcept {
        std::size_t at = place(start);
        for (std::size_t tries = 0; tries < count; ++tries, at = (at + 1) % count) {
            std::uintptr_t expected = 0;
            // relaxed, here and below: nothing is published except the addresses
            if (starts_[at].compare_exchange_strong(expected, start, trace_ring::relaxed)) {
                return true;
            }
            if (expected == start) return false;
        }
        return true;  // full: recorded more than once, which is harmless
    }
    /// Removes those for which `gone` is true.
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
    static constexpr std::uintptr_t removed = 1;  // a removed entry: the search continues
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

void record_object(const dl_find_object& object, std::string_view path) noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
    const auto end = reinterpret_cast<std::uintptr_t>(object.dlfo_map_end);
    const link_map& map = *object.dlfo_link_map;
    recorder().record<event::module>(trace_ring::address(start), trace_ring::address(end),
                                     trace_ring::address(map.l_addr),
                                     build_id(start, end, map.l_addr), path);
}

/// Records an object that was not recorded before.
[[gnu::cold]] void note_object(const dl_find_object& object) noexcept {
    if (!objects.add(reinterpret_cast<std::uintptr_t>(object.dlfo_map_start))) return;
    const int kept = errno;
    const char* const name = object.dlfo_link_map->l_name;
    if (name == nullptr || *name == '\0') {  // the program itself
        record_object(object, path_room().program());
    } else {
        record_object(object, path_room().absolute(name));
    }
    errno = kept;
}

struct note_new_object {
    void operator()(const dl_find_object& object) const noexcept { note_object(object); }
};
constinit stack_walker<note_new_object> walker{note_new_object{}};

void before_fork() noexcept {
    if (!is_recording()) return;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    here.fork_number = forks.fetch_add(1, trace_ring::relaxed) + 1;  // relaxed: only a number
    recorder().record<event::fork>(here.fork_number);
}

void in_child() noexcept {
    if (!is_recording()) return;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    recorder().record<event::forked>(here.fork_number);
}

/// Makes the trace file, and returns its name. An image started by exec has its predecessor's
/// process id, so a file with that name may exist: then a counter is inserted before the extension.
[[nodiscard]] std::string make_recorder(const settings& wanted) {
    for (unsigned count = 0;; ++count) {
        const std::string file = numbered(wanted.file, count);
        if (count < 9999 && ::access(trace_ring::expand_file_name(file).c_str(), F_OK) == 0) {
            continue;
        }
        try {
            trace_ring::recorder_options options;
            options.file = file;
            options.size = std::uint64_t{1} << 20;  // most programs in a build are small
            options.step = std::uint64_t{8} << 20;
            options.limit = wanted.limit;
            options.full = trace_ring::full_mode::extend_then_discard;
            options.processes = 1024;
            new (recorder_storage) trace_ring::recorder(options);
            return trace_ring::expand_file_name(file);
        } catch (const std::system_error& error) {
            if (error.code().value() != EEXIST || count >= 9999) throw;
        }
    }
}

/// A function that another object provides before the recorder: calls of it are not seen.
struct passed_function {
    std::string name, object;
};

/// The program's free, unless it is the recorder's: for blocks that the C library allocated for the
/// recorder with the program's malloc.
using free_function = void (*)(void*);
constinit free_function free_of_program = nullptr;

/// An operator's name as written in source code.
[[nodiscard]] std::string readable_name(const char* name) {
    if (std::strncmp(name, "_Z", 2) != 0) return name;
    int status = -1;
    char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string text = readable == nullptr ? name : readable;
    std::free(readable);
    return text;
}

/// The program's own functions, in the order of the recorded functions. They are looked up in
/// advance, because a later look-up would overwrite the program's dlerror().
constinit std::uintptr_t found_first[recorded_functions]{};

/// Finds the allocator's functions now, and not later on the stack of their first caller.
[[nodiscard]] std::vector<passed_function> find_functions() {
    std::vector<passed_function> passed;
    std::size_t number = 0;
    next.each_recorded([&](auto& function) {
        static_cast<void>(function.get());
        Dl_info info{};
        void* symbol = nullptr;
        void* const first = ::dlsym(RTLD_DEFAULT, function.name());
        found_first[number++] = reinterpret_cast<std::uintptr_t>(first);
        if (is_own_code(reinterpret_cast<std::uintptr_t>(first)) ||
            ::dladdr1(first, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr ||
            static_cast<const ElfW(Sym)*>(symbol)->st_shndx == SHN_UNDEF) {
            return;  // the recorder's, or the program's stub for it
        }
        if (function.name() == next.free.name()) {
            free_of_program = reinterpret_cast<free_function>(first);
        }
        passed.push_back({readable_name(function.name()), info.dli_fname});
    });
    static_cast<void>(next.set_new_handler.get());
    static_cast<void>(next.get_new_handler.get());
    next_program.find();
    static_cast<void>(::dlerror());  // failed look-ups must not be visible to the program
    return passed;
}

void tell(const std::vector<passed_function>& passed) {
    std::string names;
    for (const auto& each : passed) {
        recorder().record<event::passed_by>(std::string_view(each.name),
                                            std::string_view(each.object));
        names.append(names.empty() ? "" : ", ").append(each.name);
    }
    if (names.empty()) return;
    complain({passed.back().object, " has its own ", names, ": calls of them are not recorded"});
}

/// Reports to heap-record the file of this process: "PID PATH" and a zero.
void add_to_list(const std::string& list, const std::string& made) {
    const path_room room;
    std::string entry = std::to_string(::getpid()) + ' ';
    entry += room.absolute(made);
    entry += '\0';
    const int file = ::open(list.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    const ssize_t written = file < 0 ? -1 : ::write(file, entry.data(), entry.size());
    const int error = errno;
    if (file >= 0) ::close(file);
    if (written != static_cast<ssize_t>(entry.size())) {
        complain({list, ": ", std::strerror(error), "; heap-record will not know about ", made});
    }
}

// Decided at set-up. The name is empty if LD_PRELOAD does not preload this library: then a program
// without LD_PRELOAD may load it, too.
constinit const char* own_name = "";

void find_own_name(std::string_view preload) noexcept {
    dl_find_object own_object{};
    if (::_dl_find_object(const_cast<char*>(__ehdr_start), &own_object) != 0) return;
    const char* const path = own_object.dlfo_link_map->l_name;
    const char* const slash = std::strrchr(path, '/');
    const char* const name = slash == nullptr ? path : slash + 1;
    if (preload.find(name) != preload.npos) own_name = name;
}

[[nodiscard]] stage set_up() {
    std::string file;
    try {
        const auto passed = find_functions();
        find_program_name();
        const settings wanted = read_settings();
        file = wanted.file;
        unwind = wanted.depth == 0 ? unwind_by::none : wanted.unwind;
        depth = wanted.depth;
        free_depth = wanted.free_depth;
        const std::string made = make_recorder(wanted);
        if (!wanted.list.empty()) add_to_list(wanted.list, made);
        find_own_name(wanted.preload);
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
        tell(passed);
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

/// Called when the recorder is not ready: sets it up, or waits for the thread that does. Returns
/// false if this call is not recorded.
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
    // Only a thread started by a constructor that ran before ours can get here. It does not wait
    // forever, because it may hold what set-up needs.
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
    return is_recording() ||
           (stage_now.load(trace_ring::acquire) != static_cast<int>(stage::untraced) && begin());
}

/// A program that never allocates also has a trace, and set-up comes before any thread.
[[gnu::constructor]] void start() {
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    static_cast<void>(is_ready());
}

// --- What does not pass the recorder -----------------------------------------------------------

constinit object_set bypassing;

/// Records once which functions an object calls elsewhere.
void note_bypass(const char* path, std::uintptr_t bias, const ElfW(Dyn) * dynamic) {
    std::string names;
    each_function_called(dynamic, bias,
                         [&](const char* name, std::uintptr_t own_function, std::uintptr_t where) {
                             if (is_own_code(where)) return;
                             std::uintptr_t first = 0;
                             std::size_t number = 0;
                             next.each_recorded([&](auto& function) {
                                 if (std::strcmp(name, function.name()) == 0)
                                     first = found_first[number];
                                 ++number;
                             });
                             if (first == 0) return;  // no such function
                             dl_find_object object{};
                             if (::_dl_find_object(reinterpret_cast<void*>(where), &object) != 0)
                                 return;
                             const link_map& map = *object.dlfo_link_map;
                             // The dynamic linker has not resolved it; or it is the program's own
                             // (passed_by).
                             if ((where != own_function && map.l_ld == dynamic) || where == first)
                                 return;
                             const std::string readable = readable_name(name);
                             if (names.find(readable) == names.npos) {
                                 names.append(names.empty() ? "" : ", ").append(readable);
                             }
                         });
    if (names.empty() || !bypassing.add(reinterpret_cast<std::uintptr_t>(dynamic))) return;
    recorder().record<event::bypassing>(std::string_view(names), std::string_view(path));
}

void note_bypasses() {
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
            for (const auto& segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
                if (segment.p_type != PT_DYNAMIC) continue;
                const auto* const dynamic =
                    reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + segment.p_vaddr);
                note_bypass(info->dlpi_name, info->dlpi_addr, dynamic);
            }
            return 0;
        },
        nullptr);
}

[[gnu::destructor]] void end() {
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    if (is_recording()) note_bypasses();
    const std::uint64_t calls = unrecorded_calls.load(trace_ring::relaxed);  // relaxed: a counter
    if (calls == 0 || !is_ready()) return;
    recorder().record<event::unrecorded>(calls);
}

// --- Programs that the program executes --------------------------------------------------------

[[nodiscard]] const char* obstacle_to(const char* path, char* const* environment) noexcept {
    if (!preloads(environment, own_name)) {
        return "LD_PRELOAD in its environment does not name heap_recorder.so";
    }
    const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(__ehdr_start);
    return obstacle_of(path, {header.e_ident[EI_CLASS], header.e_machine});
}

/// `obstacle`: null if there is none.
void record_exec(::pid_t process, const executed_path& program, const char* obstacle) noexcept {
    const int kept = errno;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    recorder().record<event::exec>(static_cast<std::uint32_t>(process), program.path(),
                                   std::string_view(obstacle == nullptr ? "" : obstacle));
    errno = kept;
}
/// A call that replaces this process's program.
[[gnu::noinline]] void note_exec(const executed_path& program, char* const* environment) noexcept {
    if (!is_recording()) return;
    const int kept = errno;
    if (program.is_there()) {
        record_exec(::getpid(), program, obstacle_to(program.path().data(), environment));
    }
    errno = kept;
}
/// The call has returned, so it has failed. Returns its result.
int note_exec_failed(int result) noexcept {
    const int kept = errno;
    const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    if (is_recording()) recorder().record<event::exec_failed>(kept);
    errno = kept;
    return result;
}

/// A call that executes a program in a new process. The obstacle is determined before the call.
class started_program {
public:
    started_program(const char* name, bool by_search, char* const* environment) noexcept
        : program_(name, by_search),
          obstacle_(!is_recording() || !program_.is_there()
                        ? nullptr
                        : obstacle_to(program_.path().data(), environment)) {}
    void record(::pid_t process) const noexcept {
        if (is_recording()) record_exec(process, program_, obstacle_);
    }
    /// For a process whose id is unknown: only if it will not be recorded.
    void record_obstacle() const noexcept {
        if (obstacle_ != nullptr) record(0);
    }

private:
    executed_path program_;
    const char* obstacle_;
};

/// The arguments of execl and similar, up to the null, on the stack, as in the C library.
#define HEAP_WORDS(LIST, FIRST)                                                                   \
    std::size_t count = 1;                                                                        \
    va_list counted;                                                                              \
    va_copy(counted, LIST);                                                                       \
    for (const char* each = FIRST; each != nullptr; each = va_arg(counted, const char*)) ++count; \
    va_end(counted);                                                                              \
    auto** const words = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));            \
    words[0] = const_cast<char*>(FIRST);                                                          \
    for (std::size_t i = 1; i < count; ++i) words[i] = va_arg(LIST, char*)

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

/// Takes the stack before the call. After the call, blocks that it freed may already belong to
/// other threads, so the record should follow quickly.
[[gnu::always_inline]] inline void capture(const frame_registers& caller, std::size_t frames,
                                           captured& to) noexcept {
    if (frames == 0) return;
    if (here.stack.high == 0) [[unlikely]]
        find_stack();
    to.count = walker.walk(unwind, caller, here.stack, to.frames, frames);
}

/// Whether this call is the program's, and must be recorded.
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

/// The next function, or one that fails as if out of memory.
template <class Result, class... Args>
[[gnu::always_inline]] inline Result call_next(const frame_registers& caller,
                                               next_function<Result(Args...)>& function,
                                               Args... args) noexcept {
    if (!function.known()) [[unlikely]] {
        const marked mine(here.own, caller.sp);
        if (function.get() == nullptr) {
            errno = ENOMEM;
            return Result();
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

/// Common to memalign, aligned_alloc, valloc and pvalloc.
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

/// free, and each form of operator delete, for a block that is not the recorder's.
template <class Event, class Alone, class... Args>
[[gnu::always_inline]] inline void traced_free(const frame_registers& caller, void* block,
                                               next_function<void(void*, Args...)>& function,
                                               std::type_identity_t<Args>... args) noexcept {
    if (is_own(caller)) {
        if (free_of_program != nullptr) return free_of_program(block);
    } else if (records(caller)) {
        const marked mine(here.own, caller.sp);
        if (free_depth == 0) {
            recorder().record<Alone>(trace_ring::address(block));
        } else {
            captured stack;
            capture(caller, free_depth, stack);
            recorder().record<Event>(trace_ring::address(block), stack.view());
        }
    }
    const marked theirs(here.inside, caller.sp);
    call_next<void, void*, Args...>(caller, function, block, args...);
}

// --- The operators of C++ ----------------------------------------------------------------------
// They differ from the C functions in two ways. The first: operator new may throw, through the
// frames here. Those that it goes through have nothing to destroy, as what would then be run is
// this library's own copy of the C++ runtime, on the data of another one's.

/// A call of operator new while it is in the allocator.
struct new_call {
    frame_registers caller;
    std::size_t size;
    std::size_t alignment;  ///< 0: no alignment was requested
    captured stack;
    new_call* outer = nullptr;  ///< the call whose handler makes this one
    /// The last block that it got by malloc: first the exception, if it throws, and then the
    /// program's block.
    void* from_malloc = nullptr;
    std::size_t from_malloc_size = 0;

    void record_thrown() const noexcept {
        if (from_malloc == nullptr) return;
        const marked mine(here.own, caller.sp);
        recorder().record<event::malloc>(from_malloc_size, trace_ring::address(from_malloc),
                                         stack.view());
    }
    void record(void* result) const noexcept {
        const marked mine(here.own, caller.sp);
        if (alignment == 0) {
            recorder().record<event::operator_new>(size, trace_ring::address(result), stack.view());
        } else {
            recorder().record<event::operator_new_aligned>(
                alignment, size, trace_ring::address(result), stack.view());
        }
    }
};
struct thread_news {
    new_call* innermost = nullptr;
    new_call* running = nullptr;  ///< the current call, except while its handler runs
};
constinit thread_local thread_news news __attribute__((tls_model("initial-exec")));

void leave(new_call& call, void* result) noexcept {
    here.inside = 0;
    news = {call.outer, nullptr};
    call.record(result);
}

}  // namespace

/// The personality of `in_allocator`: called when an exception passes through it.
extern "C" [[gnu::visibility("hidden"), gnu::used]] _Unwind_Reason_Code heap_recorder_thrown(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
    _Unwind_Context*) noexcept {
    if ((actions & _UA_CLEANUP_PHASE) != 0) {
        new_call& call = *news.innermost;
        leave(call, nullptr);
        call.record_thrown();
    }
    return _URC_CONTINUE_UNWIND;
}

namespace {

template <class... Args>
[[gnu::noinline]] void* in_allocator(new_call& call, void* (*function)(Args...),
                                     std::type_identity_t<Args>... args) {
    asm volatile(".cfi_personality 0x1b, heap_recorder_thrown");  // 4 bytes, from their own place
    call.outer = news.innermost;
    news = {&call, &call};
    here.inside = call.caller.sp;
    void* const result = function(args...);
    leave(call, result);
    return result;
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_bad_alloc() {
    throw std::bad_alloc();
}

[[nodiscard, gnu::cold, gnu::noinline]] void* by_malloc(const frame_registers& caller,
                                                        std::size_t size) noexcept {
    return call_next(caller, next.malloc, size);
}

/// False: there is no such operator, which can only happen to a program that looks it up at run
/// time.
template <class Signature>
[[nodiscard, gnu::cold]] bool find_operator(const frame_registers& caller,
                                            next_operator<Signature>& function) noexcept {
    const marked mine(here.own, caller.sp);
    find_operators_of(caller.pc);
    return function.get() != nullptr;
}

enum class new_way { from_own, by_malloc, unrecorded, recorded };

/// How a call is routed, and the preparation for it.
template <class Signature>
[[nodiscard, gnu::noinline]] new_way prepare(new_call& call,
                                             next_operator<Signature>& function) noexcept {
    if (is_own(call.caller)) return new_way::from_own;
    if (!function.known() && !find_operator(call.caller, function)) return new_way::by_malloc;
    if (!records(call.caller)) return new_way::unrecorded;
    const marked mine(here.own, call.caller.sp);
    capture(call.caller, depth, call.stack);
    return new_way::recorded;
}

template <class... Args>
[[gnu::always_inline]] inline void* traced_new(const frame_registers& caller, std::size_t size,
                                               std::align_val_t alignment,
                                               next_operator<void*(Args...)>& function,
                                               std::type_identity_t<Args>... args) {
    new_call call{caller, size, static_cast<std::size_t>(alignment), {}};
    switch (prepare(call, function)) {
        case new_way::from_own:  // the recorder's own calls never use a nothrow form
            if (void* const block = own.allocate(size, call.alignment)) return block;
            throw_bad_alloc();
        case new_way::by_malloc:
            return by_malloc(caller, size);
        case new_way::unrecorded:
            return function.get()(args...);
        case new_way::recorded:
            return in_allocator(call, function.get(), args...);
    }
    __builtin_unreachable();
}

template <class... Args>
[[gnu::always_inline]] inline void traced_delete(const frame_registers& caller, void* block,
                                                 next_operator<void(void*, Args...)>& function,
                                                 std::type_identity_t<Args>... args) noexcept {
    using event::operator_delete, event::operator_delete_alone;
    if (own.contains(block)) return own.release(block);
    if (!function.known() && !find_operator(caller, function)) [[unlikely]] {
        return traced_free<operator_delete, operator_delete_alone>(caller, block, next.free);
    }
    traced_free<operator_delete, operator_delete_alone>(caller, block, function, args...);
}

// The second: operator new calls the program's handler when memory is short. What that allocates
// and frees is the program's again.
constinit trace_ring::atomic<std::uintptr_t> handler_of_program{0};

[[nodiscard]] std::new_handler as_handler(std::uintptr_t address) noexcept {
    return reinterpret_cast<std::new_handler>(address);
}

void run_new_handler() {
    // relaxed, here and below: code is there before its address is
    const auto handler = as_handler(handler_of_program.load(trace_ring::relaxed));
    if (handler == nullptr) {  // another thread has removed it: operator new checks again
        next.set_new_handler.get()(nullptr);
        return;
    }
    const std::uintptr_t inside = std::exchange(here.inside, 0);
    new_call* const running = std::exchange(news.running, nullptr);
    handler();  // if it throws, operator new has finished
    here.inside = inside;
    news.running = running;
}

/// posix_spawn or posix_spawnp.
[[nodiscard]] int spawned(next_executions::spawn* really, pid_t* process,
                          const started_program& program, const char* name,
                          const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, char* const* words,
                          char* const* environment) noexcept {
    pid_t made = 0;
    const int error = really(&made, name, actions, attributes, words, environment);
    if (error == 0) {
        if (process != nullptr) *process = made;
        program.record(made);
    }
    return error;
}

// --- The functions of C, each by any of its names ----------------------------------------------

[[gnu::always_inline]] inline void* traced_malloc(
    const frame_registers& caller, std::size_t size,
    next_function<void*(std::size_t)>& function) noexcept {
    if (is_own(caller)) return allocate_own(size);
    if (news.running != nullptr && is_within(here.inside, caller)) {
        void* const block = call_next(caller, function, size);
        news.running->from_malloc = block;
        news.running->from_malloc_size = size;
        return block;
    }
    return traced(
        caller, [&] { return call_next(caller, function, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::malloc>(size, trace_ring::address(result), stack);
        });
}

[[gnu::always_inline]] inline void* traced_calloc(
    const frame_registers& caller, std::size_t count, std::size_t size,
    next_function<void*(std::size_t, std::size_t)>& function) noexcept {
    if (is_own(caller)) {
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM);
        return allocate_own(bytes);  // comes zeroed
    }
    return traced(
        caller, [&] { return call_next(caller, function, count, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::calloc>(count, size, trace_ring::address(result), stack);
        });
}

[[gnu::always_inline]] inline void* traced_realloc(
    const frame_registers& caller, void* old, std::size_t size,
    next_function<void*(void*, std::size_t)>& function) noexcept {
    if (own.contains(old)) return own.resize(old, size);
    if (is_own(caller) && old == nullptr) return allocate_own(size);
    if (is_own(caller)) return call_next(caller, function, old, size);
    return traced(
        caller, [&] { return call_next(caller, function, old, size); },
        [&](void* result, call_stack stack) {
            recorder().record<event::realloc>(trace_ring::address(old), size,
                                              trace_ring::address(result), stack);
        });
}

}  // namespace
}  // namespace heap

#define HEAP_EXPORT [[gnu::visibility("default"), gnu::noinline, gnu::used]]

using namespace heap;  // NOLINT: what follows are the C library's names

extern "C" {

HEAP_EXPORT void* malloc(std::size_t size) noexcept {
    return traced_malloc(HEAP_CALLER(), size, next.malloc);
}
HEAP_EXPORT void* __libc_malloc(std::size_t size) noexcept {
    return traced_malloc(HEAP_CALLER(), size, next.libc_malloc);
}

HEAP_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
    return traced_calloc(HEAP_CALLER(), count, size, next.calloc);
}
HEAP_EXPORT void* __libc_calloc(std::size_t count, std::size_t size) noexcept {
    return traced_calloc(HEAP_CALLER(), count, size, next.libc_calloc);
}

HEAP_EXPORT void free(void* block) noexcept {
    if (own.contains(block)) return own.release(block);
    traced_free<event::free, event::free_alone>(HEAP_CALLER(), block, next.free);
}
HEAP_EXPORT void __libc_free(void* block) noexcept {
    if (own.contains(block)) return own.release(block);
    traced_free<event::free, event::free_alone>(HEAP_CALLER(), block, next.libc_free);
}
// If the C library does not have these functions, only a program that looks one up at run time gets
// here.
HEAP_EXPORT void cfree(void* block) noexcept {
    if (own.contains(block)) return own.release(block);
    traced_free<event::free, event::free_alone>(HEAP_CALLER(), block,
                                                next.cfree.known() ? next.cfree : next.free);
}
HEAP_EXPORT void free_sized(void* block, std::size_t size) noexcept {
    using event::free_sized, event::free_sized_alone;
    if (own.contains(block)) return own.release(block);
    if (next.free_sized.known()) {
        traced_free<free_sized, free_sized_alone>(HEAP_CALLER(), block, next.free_sized, size);
    } else {
        traced_free<free_sized, free_sized_alone>(HEAP_CALLER(), block, next.free);
    }
}
HEAP_EXPORT void free_aligned_sized(void* block, std::size_t alignment, std::size_t size) noexcept {
    using event::free_aligned_sized, event::free_aligned_sized_alone;
    if (own.contains(block)) return own.release(block);
    if (next.free_aligned_sized.known()) {
        traced_free<free_aligned_sized, free_aligned_sized_alone>(
            HEAP_CALLER(), block, next.free_aligned_sized, alignment, size);
    } else {
        traced_free<free_aligned_sized, free_aligned_sized_alone>(HEAP_CALLER(), block, next.free);
    }
}

HEAP_EXPORT void* realloc(void* old, std::size_t size) noexcept {
    return traced_realloc(HEAP_CALLER(), old, size, next.realloc);
}
HEAP_EXPORT void* __libc_realloc(void* old, std::size_t size) noexcept {
    return traced_realloc(HEAP_CALLER(), old, size, next.libc_realloc);
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
            // A missing function returns 0, as if it had succeeded.
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

HEAP_EXPORT void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept {
    return traced_aligned<event::memalign>(HEAP_CALLER(), alignment, size, next.libc_memalign,
                                           alignment, size);
}

HEAP_EXPORT void* valloc(std::size_t size) noexcept {
    return traced_aligned<event::valloc>(HEAP_CALLER(), trace_ring::storage::machine_page_bytes(),
                                         size, next.valloc, size);
}
HEAP_EXPORT void* __libc_valloc(std::size_t size) noexcept {
    return traced_aligned<event::valloc>(HEAP_CALLER(), trace_ring::storage::machine_page_bytes(),
                                         size, next.libc_valloc, size);
}

HEAP_EXPORT void* pvalloc(std::size_t size) noexcept {
    return traced_aligned<event::pvalloc>(HEAP_CALLER(), trace_ring::storage::machine_page_bytes(),
                                          size, next.pvalloc, size);
}
HEAP_EXPORT void* __libc_pvalloc(std::size_t size) noexcept {
    return traced_aligned<event::pvalloc>(HEAP_CALLER(), trace_ring::storage::machine_page_bytes(),
                                          size, next.libc_pvalloc, size);
}

/// Code may be unloaded by this, and other code loaded in its place: cached rules are dropped.
HEAP_EXPORT int dlclose(void* handle) noexcept {
    auto* const function = next.dlclose.get();
    // Declared to be never null, but a program may pass null.
    auto given = reinterpret_cast<std::uintptr_t>(handle);
    asm("" : "+r"(given));
    if (given != 0 && is_recording()) {
        const marked mine(here.own, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
        const int kept = errno;
        const auto& map = *reinterpret_cast<const link_map*>(given);  // glibc's handles are
                                                                      // link_map pointers
        note_bypass(map.l_name, map.l_addr, map.l_ld);
        errno = kept;
    }
    const int result = function == nullptr ? -1 : function(handle);
    objects.remove_if([](std::uintptr_t start) {
        dl_find_object object{};
        return ::_dl_find_object(reinterpret_cast<void*>(start), &object) != 0;
    });
    walker.forget();
    return result;
}

// --- exec and its like ---

HEAP_EXPORT int execve(const char* path, char* const* words, char* const* environment) noexcept {
    note_exec({path, false}, environment);
    return note_exec_failed(next_program.execve.get()(path, words, environment));
}
HEAP_EXPORT int execv(const char* path, char* const* words) noexcept {
    note_exec({path, false}, environ);
    return note_exec_failed(next_program.execv.get()(path, words));
}
HEAP_EXPORT int execvp(const char* name, char* const* words) noexcept {
    note_exec({name, true}, environ);
    return note_exec_failed(next_program.execvp.get()(name, words));
}
HEAP_EXPORT int execvpe(const char* name, char* const* words, char* const* environment) noexcept {
    note_exec({name, true}, environment);
    return note_exec_failed(next_program.execvpe.get()(name, words, environment));
}
HEAP_EXPORT int fexecve(int file, char* const* words, char* const* environment) noexcept {
    note_exec({file, ""}, environment);
    return note_exec_failed(next_program.fexecve.get()(file, words, environment));
}
HEAP_EXPORT int execveat(int directory, const char* path, char* const* words,
                         char* const* environment, int flags) noexcept {
    note_exec({directory, path}, environment);
    return note_exec_failed(
        next_program.execveat.get()(directory, path, words, environment, flags));
}
HEAP_EXPORT int execl(const char* path, const char* first, ...) noexcept {
    va_list list;
    va_start(list, first);
    HEAP_WORDS(list, first);
    va_end(list);
    note_exec({path, false}, environ);
    return note_exec_failed(next_program.execv.get()(path, words));
}
HEAP_EXPORT int execlp(const char* name, const char* first, ...) noexcept {
    va_list list;
    va_start(list, first);
    HEAP_WORDS(list, first);
    va_end(list);
    note_exec({name, true}, environ);
    return note_exec_failed(next_program.execvp.get()(name, words));
}
HEAP_EXPORT int execle(const char* path, const char* first, ...) noexcept {
    va_list list;
    va_start(list, first);
    HEAP_WORDS(list, first);
    auto* const environment = va_arg(list, char* const*);
    va_end(list);
    note_exec({path, false}, environment);
    return note_exec_failed(next_program.execve.get()(path, words, environment));
}
HEAP_EXPORT int posix_spawn(pid_t* process, const char* path,
                            const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const* words,
                            char* const* environment) {
    return spawned(next_program.posix_spawn.get(), process, {path, false, environment}, path,
                   actions, attributes, words, environment);
}
HEAP_EXPORT int posix_spawnp(pid_t* process, const char* name,
                             const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* words,
                             char* const* environment) {
    return spawned(next_program.posix_spawnp.get(), process, {name, true, environment}, name,
                   actions, attributes, words, environment);
}
// These two execute the shell in a process that only they know.
HEAP_EXPORT int system(const char* command) {
    if (command != nullptr) started_program("/bin/sh", false, environ).record_obstacle();
    return next_program.system.get()(command);
}
HEAP_EXPORT FILE* popen(const char* command, const char* mode) {
    started_program("/bin/sh", false, environ).record_obstacle();
    return next_program.popen.get()(command, mode);
}

}  // extern "C"

#define HEAP_OPERATORS(BRACKETS, NEXT)                                                            \
    HEAP_EXPORT void* operator new BRACKETS(std::size_t size) {                                   \
        return traced_new(HEAP_CALLER(), size, {}, next.NEXT.make, size);                         \
    }                                                                                             \
    HEAP_EXPORT void* operator new BRACKETS(std::size_t size, const std::nothrow_t& n) noexcept { \
        return traced_new(HEAP_CALLER(), size, {}, next.NEXT.make_nothrow, size, n);              \
    }                                                                                             \
    HEAP_EXPORT void* operator new BRACKETS(std::size_t size, std::align_val_t alignment) {       \
        return traced_new(HEAP_CALLER(), size, alignment, next.NEXT.make_aligned, size,           \
                          alignment);                                                             \
    }                                                                                             \
    HEAP_EXPORT void* operator new BRACKETS(std::size_t size, std::align_val_t alignment,         \
                                            const std::nothrow_t& n) noexcept {                   \
        return traced_new(HEAP_CALLER(), size, alignment, next.NEXT.make_aligned_nothrow, size,   \
                          alignment, n);                                                          \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block) noexcept {                             \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop);                                      \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block, std::size_t size) noexcept {           \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop_sized, size);                          \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block, const std::nothrow_t& n) noexcept {    \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop_nothrow, n);                           \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block, std::align_val_t alignment) noexcept { \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop_aligned, alignment);                   \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block, std::size_t size,                      \
                                              std::align_val_t alignment) noexcept {              \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop_sized_aligned, size, alignment);       \
    }                                                                                             \
    HEAP_EXPORT void operator delete BRACKETS(void* block, std::align_val_t alignment,            \
                                              const std::nothrow_t& n) noexcept {                 \
        traced_delete(HEAP_CALLER(), block, next.NEXT.drop_aligned_nothrow, alignment, n);        \
    }
HEAP_OPERATORS(, one)
HEAP_OPERATORS([], array)
#undef HEAP_OPERATORS

HEAP_EXPORT std::new_handler std::set_new_handler(std::new_handler wanted) noexcept {
    const auto caller = HEAP_CALLER();
    auto& really = heap::next.set_new_handler;
    if (!really.known() && !heap::find_operator(caller, really)) return nullptr;
    // The allocator sees the real handler.
    if (is_within(here.inside, caller)) return really.get()(wanted);
    const auto before = handler_of_program.exchange(reinterpret_cast<std::uintptr_t>(wanted),
                                                    trace_ring::relaxed);  // relaxed: as above
    really.get()(wanted == nullptr ? nullptr : run_new_handler);
    return as_handler(before);
}

HEAP_EXPORT std::new_handler std::get_new_handler() noexcept {
    const auto caller = HEAP_CALLER();
    auto& really = heap::next.get_new_handler;
    if (is_within(here.inside, caller) && really.known()) return really.get()();
    return as_handler(handler_of_program.load(trace_ring::relaxed));  // relaxed: as above
}
