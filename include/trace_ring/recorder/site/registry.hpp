// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What the recorders of one process share: the event types that its code can record, the blocks of
/// lanes of its threads, and the list of the recorders themselves.
///
/// Everything here is constant-initialised and lock-free, so that it works before the first
/// constructor, after the last destructor, and in a signal handler. A library loaded with private
/// symbols has a registry of its own; a trace file then sees two "processes" with one pid, each
/// with its own event ids. Its code may record into the other's recorders nevertheless: an
/// event_state says whose numbers it has, and the cold path of a recorder is always that of the
/// code which constructed it.

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/site/cold_path.hpp>
#include <trace_ring/recorder/site/event_type.hpp>
#include <trace_ring/recorder/site/lane.hpp>
#include <trace_ring/recorder/site/recorder_words.hpp>
#include <trace_ring/recorder/site/undisturbed.hpp>  // IWYU pragma: export

namespace trace_ring::inline v1::impl {

/// The room for the states before that boundary, and for the marks behind it. All page sizes are
/// multiples of it.
inline constexpr std::size_t half_node_bytes = 4096;
static_assert(mark_distance <= half_node_bytes &&
              sizeof(lane_mark) * lanes_in_block <= half_node_bytes);

/// Whether the words of the code that includes this are at no fixed distance from the thread
/// pointer.
inline constexpr bool lanes_are_moving =
#if defined(TRACE_RING_LIBRARY_CODE) && defined(TRACE_RING_PLUGIN)
    true;
#else
    false;
#endif

/// How far behind the beginning of each block a recorder's lanes begin. The block and this distance
/// are found at the same time, so only one load waits for them; with an array of first lanes by
/// recorder, one load would wait for the other.
[[nodiscard]] constexpr std::uint32_t lanes_at(std::uint32_t recorder) noexcept {
    return recorder * static_cast<std::uint32_t>(lane_depths * sizeof(lane_state));
}

/// How far from the thread pointer a word of the calling thread is.
[[nodiscard]] inline std::intptr_t from_thread_pointer(const void* word) noexcept {
#if defined(__x86_64__) || defined(__i386__)
    const std::byte* const start = thread_pointer_word(0);  // it points at itself there
#else
    const auto* const start = static_cast<const std::byte*>(__builtin_thread_pointer());
#endif
    return static_cast<const std::byte*>(word) - start;
}

/// An address, to be compared with stack positions.
[[nodiscard]] inline mark_type stack_place(const void* address) noexcept {
#if defined(__i386__)
    return static_cast<mark_type>(reinterpret_cast<std::uintptr_t>(address) >> 1);
#else
    return static_cast<mark_type>(reinterpret_cast<std::uintptr_t>(address));
#endif
}

/// A page of which each gate is this.
template <layout::gate_bits Gate>
[[nodiscard]] const gate_page& gates_that_are() noexcept {
    // Filled on demand, because few recorders need one. relaxed: all threads store the same value.
    static constinit gate_page page{};
    for (auto& gate : page.gates) gate.store(Gate, relaxed);
    return page;
}

struct listed_recorder;  // process/event_book.hpp

/// An event type as the process remembers it, in memory of its own: the library that declared it
/// may be unloaded, and when it is loaded again, the same description finds the same id.
struct type_node {
    atomic_pointer<type_node> next{nullptr};
    std::uint32_t id = 0;
    std::uint32_t total = 0;  ///< column + 1; 0: none
    type_description description{};
};

/// A thread's block of lanes, and what the process must know of the thread. The block lies at the
/// end of the first half and the beginning of the second. A page of the machine, which fork wipes,
/// begins between the two.
struct thread_node {
    atomic_pointer<thread_node> next{nullptr};  ///< nodes are added, never removed
    atomic<std::uint32_t> used{0};              ///< 1: in use by a thread
    atomic<std::uint32_t> thread{0};            ///< its number, as the kernel counts
    atomic<std::uint32_t> ending{0};  ///< 1: it may be gone, without having given the node back
    atomic<std::uint32_t> rounds{0};  ///< of thread-exit destructors seen
    atomic<std::uint64_t> name[2]{};  ///< of the thread, when it began to record
    /// Of a thread of another process, in whose name this one records (recorder/other_thread.hpp):
    /// that process's slot in the recorder's file + 1. 0: of this process.
    atomic<std::uint32_t> other_process{0};
    /// The thread's own stack; 0: not looked for yet, 1: not known (thread/abandoned.hpp).
    atomic<std::uintptr_t> stack_low{0}, stack_high{0};
};

inline constexpr std::size_t node_bytes = 2 * half_node_bytes;
inline constexpr std::size_t block_offset = half_node_bytes - mark_distance;
static_assert(block_offset % 64 == 0 && block_offset >= sizeof(thread_node));

[[nodiscard]] inline lane_block& block_of(thread_node& node) noexcept {
    return *static_cast<lane_block*>(
        static_cast<void*>(reinterpret_cast<std::byte*>(&node) + block_offset));
}
[[nodiscard]] inline thread_node& node_of(lane_block& block) noexcept {
    return *static_cast<thread_node*>(
        static_cast<void*>(reinterpret_cast<std::byte*>(&block) - block_offset));
}
/// The node of the thread that has the lane, and the lane's depth: both by its address alone.
[[nodiscard]] inline thread_node& node_around(const lane_state& lane) noexcept {
    return *reinterpret_cast<thread_node*>(reinterpret_cast<std::uintptr_t>(&lane) /
                                           half_node_bytes * half_node_bytes);
}
[[nodiscard]] inline std::uint32_t depth_of(const lane_state& lane) noexcept {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(&lane) % half_node_bytes;
    return static_cast<std::uint32_t>((at - block_offset) / sizeof(lane_state) % lane_depths);
}

/// Memory for type nodes: never freed, at most a few hundred bytes a type.
struct chunk {
    static constexpr std::uint32_t bytes = 65536;
    atomic<std::uint32_t> used{sizeof(std::uint64_t)};
    alignas(8) std::byte data[bytes - sizeof(std::uint64_t)];
};
static_assert(sizeof(chunk) == chunk::bytes);

/// Numbers that a process shares with the children of its forks, because in a trace file they are
/// one program: different types that parent and child meet apart must not get the same id.
struct family_counters {
    atomic<std::uint32_t> last_event_id{0};
    atomic<std::uint32_t> last_total{0};
};

struct registry {
    atomic_pointer<family_counters> family{nullptr};
    atomic_pointer<type_node> types{nullptr};
    atomic_pointer<chunk> chunks{nullptr};
    atomic_pointer<thread_node> nodes{nullptr};
    atomic_pointer<listed_recorder> recorders[max_recorders + 1]{};
    atomic<std::uint32_t> taken[max_recorders + 1]{};  ///< 1: the index is some recorder's
    atomic<std::uint32_t> visitors{0};   ///< threads that are going through `recorders`
    atomic<std::uint32_t> key_state{0};  ///< none, being made, made
    pthread_key_t key{};
    atomic<home_id> id{0};  ///< set with the first recorder
};
inline constinit registry the_registry{};

/// Calls `visit(listed_recorder&)` for every recorder of the process. None of them is destroyed
/// meanwhile: a destructor takes its recorder off the list and waits for threads that may have seen
/// it there.
template <class Visit>
inline void for_each_recorder(Visit&& visit) noexcept {
    // Either a destructor sees this visitor, or this loop finds its place empty; and either a
    // constructor finds the type that the visitor brings, or this loop finds the new recorder.
    // order: registry.visit:A pairs with registry.retire:B
    the_registry.visitors.fetch_add(1, seq_cst);
    for (auto& place : the_registry.recorders) {
        // order: registry.visit:B pairs with registry.retire:A, registry.enlist:A
        if (listed_recorder* const each = place.load(seq_cst)) visit(*each);
    }
    // order: registry.visit:C pairs with registry.retire:B
    the_registry.visitors.fetch_sub(1, release);
}

/// One of the indices that a process has for its recorders; 0 if all are taken.
class recorder_index {
public:
    recorder_index() noexcept {
        for (std::uint32_t i = 1; i <= max_recorders && value_ == 0; ++i) {
            // order: recorder.take:A pairs with recorder.give:A
            if (the_registry.taken[i].exchange(1, acquire) == 0) value_ = i;
        }
    }
    recorder_index(const recorder_index&) = delete;
    recorder_index& operator=(const recorder_index&) = delete;
    ~recorder_index() {
        // Gates and lanes are as a new recorder expects them.
        // order: recorder.give:A pairs with recorder.take:A
        if (value_ != 0) the_registry.taken[value_].store(0, release);
    }
    [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

private:
    std::uint32_t value_ = 0;
};

/// `bytes` of zeroed, 8-aligned memory, which is never freed; null if there is none. Lock-free,
/// signal-safe.
[[nodiscard, gnu::noinline, gnu::cold]] inline std::byte* keep(std::uint32_t bytes) noexcept {
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > chunk::bytes - sizeof(std::uint64_t)) return nullptr;
    for (;;) {
        // order: chunk.use:A pairs with chunk.add:A
        chunk* current = the_registry.chunks.load(acquire);
        if (current != nullptr) {
            // relaxed: the bytes are the caller's alone, by the count it drew
            const std::uint32_t at = current->used.fetch_add(bytes, relaxed);
            if (at <= chunk::bytes - bytes) return reinterpret_cast<std::byte*>(current) + at;
            // relaxed: full, and stays so
            current->used.store(chunk::bytes, relaxed);
        }
        const int saved = errno;
        void* const memory = ::mmap(nullptr, sizeof(chunk), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        errno = saved;
        if (memory == MAP_FAILED) return nullptr;
        auto* const fresh = ::new (memory) chunk;
        // order: chunk.add:A pairs with chunk.use:A
        if (!the_registry.chunks.compare_exchange_strong(current, fresh, release)) {
            ::munmap(memory, sizeof(chunk));
        }
    }
}

/// The registry's id, made with the first recorder. 0 if there is no memory.
[[nodiscard, gnu::cold]] inline home_id make_id() noexcept {
    // relaxed: a number, behind which nothing is read
    home_id known = the_registry.id.load(relaxed);
    if (known != 0) return known;
    const auto made = reinterpret_cast<home_id>(keep(sizeof(std::uint64_t)));
    // relaxed: as above
    const bool is_mine = the_registry.id.compare_exchange_strong(known, made, relaxed);
    return is_mine ? made : known;
}

/// An entry of a program's table of headers, by names that no system header has as macros.
struct program_header {
    enum : std::uint32_t { loaded = 1, table = 6 };
#if __SIZEOF_POINTER__ == 8
    std::uint32_t type, flags;
    std::uintptr_t offset, address, physical, bytes_in_file, bytes, alignment;
#else
    std::uint32_t type;
    std::uintptr_t offset, address, physical, bytes_in_file, bytes;
    std::uint32_t flags, alignment;
#endif
};
static_assert(sizeof(program_header) == (sizeof(void*) == 8 ? 56 : 32));

/// Whether an address lies in the program itself, not in a library or on a heap: by the program's
/// headers, as the kernel names them. A program linked statically may have no entry for these, and
/// has no libraries. Signal-safe.
[[nodiscard, gnu::cold]] inline bool is_of_program(const void* address) noexcept {
    const auto* const headers = reinterpret_cast<const program_header*>(::getauxval(AT_PHDR));
    const std::size_t count = headers == nullptr ? 0 : ::getauxval(AT_PHNUM);
    const auto* own = headers;
    while (own != headers + count && own->type != program_header::table) ++own;
    if (own == headers + count) return true;
    const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(headers) - own->address;
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address) - base;
    for (const auto* each = headers; each != headers + count; ++each) {
        if (each->type == program_header::loaded && at - each->address < each->bytes) return true;
    }
    return false;
}

/// The family's counters, made when the first type is registered. Null if there is no memory.
[[nodiscard, gnu::noinline, gnu::cold]] inline family_counters* counters() noexcept {
    // order: family.use:A pairs with family.make:A
    family_counters* known = the_registry.family.load(acquire);
    if (known != nullptr) return known;
    const int saved = errno;
    void* const memory = ::mmap(nullptr, storage::machine_page_bytes(), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    if (memory == MAP_FAILED) return nullptr;
    auto* const made = ::new (memory) family_counters;
    // order: family.make:A pairs with family.use:A, family.make:A
    if (the_registry.family.compare_exchange_strong(known, made, acq_rel)) return made;
    ::munmap(memory, storage::machine_page_bytes());
    return known;
}

[[nodiscard, gnu::noinline, gnu::cold]] inline bool same_type(const type_description& a,
                                                              const type_description& b) noexcept {
    if (!(a.name == b.name) || a.kind != b.kind || a.counted != b.counted ||
        a.fixed_bytes != b.fixed_bytes || a.fields.size() != b.fields.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.fields.size(); ++i) {
        const field_description& f = a.fields[i];
        const field_description& g = b.fields[i];
        if (!(f.name == g.name) || f.type != g.type || f.form != g.form || f.count != g.count ||
            f.offset != g.offset || f.flow != g.flow || f.result != g.result) {
            return false;
        }
    }
    bool same = a.names.size() == b.names.size();
    for (std::size_t i = 0; same && i < a.names.size(); ++i) same = a.names[i] == b.names[i];
    return same;
}

/// The node of a type, made if it is new, with the id that `choose()` returns; null when ids or
/// memory have run out. Two threads that come at once may make two nodes for one type: two ids with
/// one meaning. Lock-free, signal-safe, linear in the number of types.
template <class Choose>
[[nodiscard, gnu::cold]] inline type_node* find_type(const type_description& wanted,
                                                     Choose&& choose) noexcept {
    // order: type.find:A pairs with type.add:A
    type_node* t = the_registry.types.load(acquire);
    // relaxed: each that was pushed publishes those below it, too
    for (; t != nullptr; t = t->next.load(relaxed)) {
        if (same_type(t->description, wanted)) return t;
    }
    std::size_t text = wanted.name.size();
    for (const auto& f : wanted.fields) text += f.name.size();
    const std::size_t fields_at = (sizeof(type_node) + 7) / 8 * 8;
    const std::size_t names_at = fields_at + sizeof(field_description) * wanted.fields.size();
    const std::size_t text_at = names_at + wanted.names.size_bytes();
    if (text_at + text > chunk::bytes / 2 + wanted.names.size_bytes()) return nullptr;
    const std::uint32_t id = choose();
    if (id == 0) return nullptr;
    std::byte* const memory = keep(static_cast<std::uint32_t>(text_at + text));
    if (memory == nullptr) return nullptr;
    char* out = reinterpret_cast<char*>(memory + text_at);
    const auto copy = [&out](name_view from) {
        const char* const start = out;
        for (const char c : from) *out++ = c;
        return name_view(start, from.size());
    };
    auto* const node = ::new (static_cast<void*>(memory)) type_node;
    auto* const fields = static_cast<field_description*>(static_cast<void*>(memory + fields_at));
    node->description = wanted;
    node->description.name = copy(wanted.name);
    for (std::size_t i = 0; i < wanted.fields.size(); ++i) {
        auto* const field =
            ::new (static_cast<void*>(fields + i)) field_description(wanted.fields[i]);
        field->name = copy(wanted.fields[i].name);
    }
    node->description.fields = {fields, wanted.fields.size()};
    auto* const names = static_cast<std::uint64_t*>(static_cast<void*>(memory + names_at));
    for (std::size_t i = 0; i < wanted.names.size(); ++i) names[i] = wanted.names[i];
    node->description.names = {names, wanted.names.size()};
    node->id = id;
    // relaxed, to the end: a number out of a counter, and what the swap publishes
    if (wanted.counted) {
        const std::uint32_t total = counters()->last_total.fetch_add(1, relaxed) + 1;
        node->total = total <= layout::max_totals ? total : 0;
    }
    type_node* head = the_registry.types.load(relaxed);
    do {
        node->next.store(head, relaxed);
        // order: type.add:A pairs with type.find:A, type.enable:A, registry.enlist:B, type.find:B,
        // type.find:C
    } while (!the_registry.types.compare_exchange_weak(head, node, seq_cst));
    return node;
}

[[nodiscard]] inline std::uint32_t kernel_thread() noexcept {
    return static_cast<std::uint32_t>(::syscall(SYS_gettid));
}

[[nodiscard, gnu::noinline]] inline bool thread_is_gone(std::uint32_t thread) noexcept {
    const int saved = errno;
    const bool gone = ::syscall(SYS_tgkill, ::getpid(), thread, 0) != 0 && errno == ESRCH;
    errno = saved;
    return gone;
}

/// Reclaims the node of a thread that ended without releasing it; `leave` closes its lanes.
/// A few system calls if the thread may have ended, else none. Signal-safe.
template <class Leave>
[[nodiscard]] inline bool reclaim_node(thread_node& node, Leave&& leave) noexcept {
    // relaxed, to the end: the kernel, which says that the thread is gone, orders what it did; if
    // several threads ask, the swap lets one have the node
    if (node.used.load(relaxed) == 0 || node.ending.load(relaxed) == 0) return false;
    std::uint32_t owner = node.thread.load(relaxed);
    if (!thread_is_gone(owner)) return false;
    if (!node.thread.compare_exchange_strong(owner, kernel_thread(), relaxed)) return false;
    leave(node);
    node.rounds.store(0, relaxed);
    node.ending.store(0, relaxed);
    return true;
}

/// Releases a node. The caller has closed and cleared its lanes.
inline void release_node(thread_node& node) noexcept {
    // relaxed: published by the last line
    node.rounds.store(0, relaxed);
    node.ending.store(0, relaxed);
    // order: node.give:A pairs with node.take:B
    node.used.store(0, release);
}

/// A node for the calling thread, all its lanes vacant: an unused one, or that of a thread that
/// ended. The nodes of other threads that ended are released: otherwise the second of two would
/// stay taken until as many threads live at once again. Null if there is no memory. Maps two pages
/// when there is no node; does not use the C++ heap. Lock-free, signal-safe, linear in the number
/// of nodes.
template <class Leave>
[[nodiscard]] inline thread_node* claim_node(Leave&& leave) noexcept {
    const std::uint32_t thread = kernel_thread();
    thread_node* mine = nullptr;
    // order: node.take:A pairs with node.add:A
    thread_node* each = the_registry.nodes.load(acquire);
    // relaxed: each that was pushed publishes those below it, too
    for (; each != nullptr; each = each->next.load(relaxed)) {
        std::uint32_t unused = 0;
        // relaxed: a look, before the swap
        if (mine == nullptr && each->used.load(relaxed) == 0 &&
            // order: node.take:B pairs with node.give:A
            each->used.compare_exchange_strong(unused, 1, acquire)) {
            each->thread.store(thread, relaxed);  // relaxed: own node
            mine = each;
        } else if (reclaim_node(*each, leave)) {
            if (mine == nullptr) {
                mine = each;
            } else {
                release_node(*each);
            }
        }
    }
    if (mine != nullptr) return mine;
    const int saved = errno;
    const std::size_t page = storage::machine_page_bytes();
    void* const memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        errno = saved;
        return nullptr;
    }
    auto* const second = static_cast<std::byte*>(memory) + page;
#if defined(MADV_WIPEONFORK)
    // Where the kernel refuses, the handler of pthread_atfork wipes it
    // (thread/lanes_by_thread.hpp).
    static_cast<void>(::madvise(second, page, MADV_WIPEONFORK));
#endif
    errno = saved;
    auto* const node = ::new (static_cast<void*>(second - half_node_bytes)) thread_node;
    ::new (static_cast<void*>(&block_of(*node))) lane_block;
    // relaxed, to the end: published by the swap, which also checks what was loaded
    node->used.store(1, relaxed);
    node->thread.store(thread, relaxed);
    thread_node* head = the_registry.nodes.load(relaxed);
    do {
        node->next.store(head, relaxed);
        // order: node.add:A pairs with node.take:A, node.gone:A, node.leave:A
    } while (!the_registry.nodes.compare_exchange_weak(head, node, release));
    return node;
}

}  // namespace trace_ring::inline v1::impl
