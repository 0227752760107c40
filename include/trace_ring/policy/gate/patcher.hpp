// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Changes the machine code of gate::static_key's sites while other threads run through it.
/// static_key.hpp says what a site is, and why it may be patched.
///
/// A pass over all sites of the process makes each one do what its key says. It compares each site
/// with the code that it should have, so passes may be repeated, by any thread. For each page with
/// a site to change: mprotect to writable (and still executable, because other threads run there),
/// one aligned 8-byte store a site, mprotect back. At the end one membarrier that synchronises
/// cores: after it no thread executes code that it had fetched before.
///
/// A site stays as it is if its text is not readable and executable alone by the program headers,
/// if it holds neither its jumps nor its no-op (a debugger's breakpoint, say), or if the system
/// refuses writable text (SELinux, seccomp, PR_SET_MDWE) or has no such membarrier.
///
/// Sanitizers and valgrind need no option.

#include <link.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <trace_ring/atomic.hpp>

namespace trace_ring::inline v1::gate::impl {

/// The state of a key, and the instruction that its sites are patched to.
///
/// | wanted | instruction at the site         | who makes the move                               |
/// |--------|---------------------------------|--------------------------------------------------|
/// | born   | a jump to the test of this word | none: open since the start, or leave_text_alone  |
/// | closed | a no-op                         | close()                                          |
/// | open   | a jump to the traced code       | open()                                           |
enum class wanted : std::uint32_t { closed, open, born };

class patcher;

struct key {
    constexpr explicit key(wanted at_first) noexcept : word(static_cast<std::uint32_t>(at_first)) {}

    [[nodiscard]] wanted says() const noexcept {
        return static_cast<wanted>(word.load(relaxed));  // relaxed: it guards no other data
    }
    /// Sets the state; a pass over the sites must follow.
    void say(wanted w) noexcept {
        word.store(static_cast<std::uint32_t>(w), relaxed);  // relaxed: the lock orders it
    }

    atomic<std::uint32_t> word;
    /// The patcher of the key's sites: the first that meets the key. Two patchers (of libraries
    /// that share the key but hide the patcher's symbol) would undo each other's work.
    atomic_pointer<patcher> owner{};
    /// Sites that do the opposite of what the key says: it is open, and they are no-ops.
    atomic<std::uint32_t> stuck{0};
    /// Sites that are not patched to what the key says, for any reason.
    atomic<std::uint32_t> unpatched{0};
    /// Written only within a pass.
    std::uint32_t counted_stuck = 0;
    std::uint32_t counted_unpatched = 0;
};

/// The entry of a site, which the assembler puts in a section of its own. Each field is the
/// distance from itself to its target, so that a library has nothing to relocate.
struct site {
    std::int32_t code;    ///< the five bytes
    std::int32_t ask;     ///< the test of the key's word
    std::int32_t traced;  ///< the traced code
    std::int32_t named;   ///< the library's pointer to the key

    static constexpr std::uint64_t bytes = 0xFF'FFFF'FFFF;
    static constexpr std::uint64_t no_op = 0x00'0044'1F0F;  // nopl 0(%rax,%rax,1)

    [[nodiscard]] static std::uintptr_t from(const std::int32_t& field) noexcept {
        return reinterpret_cast<std::uintptr_t>(&field) + static_cast<std::uintptr_t>(field);
    }
    [[nodiscard]] std::uintptr_t at() const noexcept { return from(code); }
    [[nodiscard]] key& of() const noexcept { return **reinterpret_cast<key**>(from(named)); }

    /// The aligned word that holds the site. Its bytes before the site may be prefixes of the
    /// instruction, or another instruction: they do not change.
    [[nodiscard]] shared_atomic<std::uint64_t>& word() const noexcept {
        return word_at<std::uint64_t>(reinterpret_cast<void*>(at() & ~std::uintptr_t{7}), 0);
    }
    [[nodiscard]] unsigned shift() const noexcept { return static_cast<unsigned>(at() & 7) * 8; }
    [[nodiscard]] std::uint64_t instruction() const noexcept {
        return word().load(relaxed) >> shift() & bytes;  // relaxed: written under the lock
    }
    [[nodiscard]] std::uint64_t as(wanted w) const noexcept {
        if (w == wanted::closed) return no_op;
        const std::uintptr_t target = from(w == wanted::open ? traced : ask);
        return 0xE9 | std::uint64_t{static_cast<std::uint32_t>(target - at() - 5)} << 8;
    }
    [[nodiscard]] bool is_known() const noexcept {
        const std::uint64_t i = instruction();
        return i == as(wanted::born) || i == as(wanted::closed) || i == as(wanted::open);
    }
    /// Stores by one instruction of its own, not by atomic.hpp: ThreadSanitizer records atomic
    /// stores, and has no memory for records of text.
    void become(wanted w) const noexcept {
        // relaxed: the lock keeps other threads off the word
        const std::uint64_t rest = word().load(relaxed) & ~(bytes << shift());
        [[maybe_unused]] const std::uint64_t all = rest | as(w) << shift();
#if defined(__x86_64__)
        __asm__ volatile("movq %1, (%0)" : : "r"(&word()), "r"(all) : "memory");
        tell_valgrind();
#endif
    }

private:
#if defined(__x86_64__)
    /// Valgrind runs a translation of the code, and would continue with that of the old code. It
    /// recognises a request by four rotations that together do nothing.
    void tell_valgrind() const noexcept {
        constexpr std::uint64_t discard_translations = 0x1002;
        const std::uint64_t request[]{discard_translations, at(), 5, 0, 0, 0};
        std::uint64_t answer = 0;
        __asm__ volatile(
            "rolq $3, %%rdi\n rolq $13, %%rdi\n rolq $61, %%rdi\n rolq $51, %%rdi\n"
            "xchgq %%rbx, %%rbx"
            : "+d"(answer)
            : "a"(&request[0])
            : "cc", "memory");
    }
#endif
};
static_assert(sizeof(site) == 16 && alignof(site) == 4);

class library;

/// Patches the sites of the process; one object a process. Constant-initialised, never destroyed.
class [[gnu::visibility("default")]] patcher {
public:
    constexpr patcher() noexcept = default;

    /// Makes every site do what its key says. Returns when no thread runs older code. Any thread,
    /// signal handlers too: it blocks signals meanwhile, and keeps errno.
    void bring_up_to_date() noexcept {
        const holding held(*this);
        pass();
    }

    /// Puts all sites back as they were born, and patches no more.
    void leave_text_alone() noexcept {
        const holding held(*this);
        alone_ = true;
        pass();
    }

    inline void add(library & l) noexcept;
    inline void remove(library & l) noexcept;

private:
    /// Only x86-64 has sites, and its pages of text have 4 KiB.
    static constexpr std::uintptr_t page_bytes = 4096;
    static constexpr int text = PROT_READ | PROT_EXEC;

    [[nodiscard]] static std::uintptr_t page_of(const site& s) noexcept {
        return s.at() & ~(page_bytes - 1);
    }
    [[nodiscard]] static bool protect(std::uintptr_t page, int how) noexcept {
        return ::mprotect(reinterpret_cast<void*>(page), page_bytes, how) == 0;
    }
    /// Registering lasts as long as the process, and is cheap when repeated; children inherit it or
    /// register again.
    [[nodiscard]] static bool can_synchronise() noexcept {
        return synchronize(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) &&
               synchronize(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
    }
    static bool synchronize(int command) noexcept {
        return ::syscall(SYS_membarrier, command, 0, 0) == 0;
    }

    [[nodiscard]] inline bool owns(key & k) noexcept;
    inline void pass() noexcept;
    template <class F>
    void for_each_site(F f) noexcept;

    /// The lock. It holds the pid of its holder, so that a child forked meanwhile knows that no
    /// thread of its own has it.
    class holding {
    public:
        explicit holding(patcher& p) noexcept : patcher_(p) {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &signals_);
            const auto self = static_cast<std::uint32_t>(::getpid());
            std::uint32_t holder = 0;
            // order: gate.take:A pairs with gate.give:A
            while (!p.holder_.compare_exchange_strong(holder, self, acquire)) {
                if (holder == self) {
                    // Not sched_yield, because a thread of high priority could spin for ever; nor
                    // nanosleep() of the C library, because a thread may be cancelled in it.
                    const timespec moment{0, 50'000};
                    ::syscall(SYS_nanosleep, &moment, nullptr);
                    holder = 0;
                } else {
                    p.inherited_ = true;
                }
            }
        }
        ~holding() {
            // order: gate.give:A pairs with gate.take:A
            patcher_.holder_.store(0, release);
            pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
            errno = errno_;
        }
        holding(const holding&) = delete;
        holding& operator=(const holding&) = delete;

    private:
        patcher& patcher_;
        int errno_ = errno;
        sigset_t signals_{};
    };

    atomic<std::uint32_t> holder_{0};
    // The members from here on are read and written under the lock.
    bool inherited_ = false;  ///< forked in the middle of a pass
    bool alone_ = false;
    library* first_ = nullptr;
};

[[gnu::visibility("default")]] inline constinit patcher the_patcher;

/// The sites of one library, or of the program itself, registered while it is loaded. When it is
/// unloaded, or the process exits, they are put back as they were born, and still work.
class library {
public:
    library(const site* first, const site* last, const ElfW(Ehdr) * file) noexcept
        : first_(first), last_(last) {
        // To the compiler these are two arrays, so it may assume that their addresses differ.
        __asm__("" : "+r"(first_), "+r"(last_));
        if (first_ == last_) return;
        if (file != nullptr) find_text(*file);
        the_patcher.add(*this);
    }
    ~library() {
        if (first_ != last_) the_patcher.remove(*this);
    }
    library(const library&) = delete;
    library& operator=(const library&) = delete;

    [[nodiscard]] const site* begin() const noexcept { return first_; }
    [[nodiscard]] const site* end() const noexcept { return last_; }

    /// The site lies in text, and in one aligned word.
    [[nodiscard]] bool is_patchable(const site& s) const noexcept {
        return s.at() >= text_ && s.at() < text_end_ && (s.at() & 7) <= 3;
    }

private:
    friend class patcher;

    /// Finds the segment that holds the sites, if it is mapped readable and executable: its
    /// protection has to be restored exactly.
    void find_text(const ElfW(Ehdr) & file) noexcept {
        const auto start = reinterpret_cast<std::uintptr_t>(&file);
        const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(start + file.e_phoff);
        const auto* const end = headers + file.e_phnum;
        std::uintptr_t bias = start;
        // The first member by its place, as <resolv.h> defines its name, p_type.
        const auto is_loaded = [](const ElfW(Phdr) & h) {
            return *reinterpret_cast<const ElfW(Word)*>(&h) == PT_LOAD;
        };
        for (const auto* h = headers; h != end; ++h) {
            if (is_loaded(*h) && h->p_offset == 0) bias = start - h->p_vaddr;
        }
        for (const auto* h = headers; h != end; ++h) {
            const std::uintptr_t begin = bias + h->p_vaddr;
            if (is_loaded(*h) && h->p_flags == (PF_R | PF_X) && first_->at() >= begin &&
                first_->at() - begin < h->p_memsz) {
                text_ = begin;
                text_end_ = begin + h->p_memsz;
            }
        }
    }

    const site* first_;
    const site* last_;
    std::uintptr_t text_ = 0;
    std::uintptr_t text_end_ = 0;
    bool leaves_ = false;
    library* next_ = nullptr;
};

template <class F>
void patcher::for_each_site(F f) noexcept {
    for (const library* l = first_; l != nullptr; l = l->next_) {
        for (const site& s : *l) {
            if (key& k = s.of(); owns(k)) f(*l, s, k);
        }
    }
}

inline void patcher::add(library& l) noexcept {
    const holding held(*this);
    l.next_ = first_;
    first_ = &l;
    pass();
}

inline void patcher::remove(library& l) noexcept {
    const holding held(*this);
    l.leaves_ = true;
    pass();
    for (library** link = &first_; *link != nullptr; link = &(*link)->next_) {
        if (*link == &l) {
            *link = l.next_;
            return;
        }
    }
}

/// Whether this patcher patches the key's sites. The first one that meets the key does.
inline bool patcher::owns(key& k) noexcept {
    patcher* owner = nullptr;
    // relaxed: only the patcher's address is read, and it exists since before the first thread
    return k.owner.compare_exchange_strong(owner, this, relaxed) || owner == this;
}

inline void patcher::pass() noexcept {
    if (inherited_) {
        // Forked in the middle of a pass: pages may still be writable that no thread will restore.
        for_each_site([](const library& l, const site& s, key&) {
            if (l.is_patchable(s)) (void)protect(page_of(s), text);
        });
        inherited_ = false;
    }
    for_each_site([](const library&, const site&, key& k) {
        k.counted_stuck = 0;
        k.counted_unpatched = 0;
    });
    bool changed = false;
    bool able = true;  // until the system has been asked
    std::uintptr_t writable = 0;
    const auto make_writable = [&writable](std::uintptr_t page) {
        if (page == writable) return true;
        if (writable != 0) (void)protect(writable, text);
        writable = page != 0 && protect(page, text | PROT_WRITE) ? page : 0;
        return writable != 0;
    };
    for_each_site([&](const library& l, const site& s, key& k) {
        const wanted said = k.says();
        const wanted w = alone_ || l.leaves_ ? wanted::born : said;
        const std::uint64_t before = s.instruction();
        if (before != s.as(w)) {
            if (!changed) able = able && can_synchronise();
            if (able && l.is_patchable(s) && s.is_known() && make_writable(page_of(s))) {
                s.become(w);
                changed = true;
            } else if (before != s.as(wanted::born)) {
                ++k.counted_stuck;
            }
        }
        if (s.instruction() != s.as(said)) ++k.counted_unpatched;
    });
    (void)make_writable(0);
    if (changed) synchronize(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
    for_each_site([](const library&, const site&, key& k) {
        // relaxed, both: reports
        k.stuck.store(k.counted_stuck, relaxed);
        k.unpatched.store(k.counted_unpatched, relaxed);
    });
}

}  // namespace trace_ring::inline v1::gate::impl
