// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Programs for heap_recorder.so to be preloaded into; the first argument says which.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <mcheck.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// glibc's other names of its functions.
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT: the C library's names, to the end
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void __libc_free(void*);                          // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
void* __libc_valloc(std::size_t);                 // NOLINT
void* __libc_pvalloc(std::size_t);                // NOLINT
}

namespace {

// What the optimizer must not see through.
template <class T>
T* kept(T* block) {
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}
void* get(std::size_t bytes) {
    return kept(std::malloc(bytes));
}

// Before main: of a constructor, and of one that comes before the library's own.
struct early {
    void* block = get(1111);
    ~early() {
        std::free(block);
        void* late = get(2222);  // after main, and after the destructors of later objects
        std::free(late);
    }
} at_start;

void before_constructors(int, char**, char**) {
    std::free(get(3333));
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const first)(int, char**,
                                                                  char**) = before_constructors;

struct for_each_thread {
    void* block = get(44);
    ~for_each_thread() { std::free(block); }
};
thread_local for_each_thread in_thread;

std::uint32_t next_random(std::uint32_t& state) {
    return state = state * 1664525U + 1013904223U;
}

struct alignas(64) on_a_line {
    char bytes[64];
};

// C23's, and glibc's oldest, which this C library need not have: free does the same.
using free_sized_function = void (*)(void*, std::size_t);
using free_aligned_sized_function = void (*)(void*, std::size_t, std::size_t);

template <class Function>
Function looked_up(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// A block by each of the other names that the allocator's functions have.
void other_names(std::size_t bytes) {
    static const auto free_sized = looked_up<free_sized_function>("free_sized");
    static const auto free_aligned_sized =
        looked_up<free_aligned_sized_function>("free_aligned_sized");
    if (free_sized != nullptr) free_sized(get(bytes), bytes);
    if (free_aligned_sized != nullptr) {
        free_aligned_sized(kept(std::aligned_alloc(64, 128)), 64, 128);
    }
    __libc_free(kept(__libc_malloc(bytes)));
    std::free(kept(__libc_calloc(bytes, 2)));
    __libc_free(kept(__libc_realloc(get(bytes), 2 * bytes)));
    __libc_free(kept(__libc_memalign(256, bytes)));
    std::free(kept(__libc_valloc(bytes)));
    std::free(kept(__libc_pvalloc(bytes)));
}

/// Every function of the allocator in a random order, some blocks freed by other threads.
void churn(std::uint32_t seed, int steps, std::vector<void*>& handed_over, std::mutex& lock) {
    asm volatile("" : : "r"(&in_thread) : "memory");
    std::vector<void*> mine(64);
    std::uint32_t state = seed;
    for (int i = 0; i < steps; ++i) {
        void*& slot = mine[(next_random(state) >> 8) % mine.size()];
        const std::size_t bytes = (next_random(state) >> 8) % 2000 + 1;
        switch ((next_random(state) >> 8) % 13) {
            case 0:
                std::free(slot);
                slot = get(bytes);
                break;
            case 1:
                std::free(slot);
                slot = kept(std::calloc(bytes, 3));
                break;
            case 2:
                slot = kept(std::realloc(slot, bytes));
                break;
            case 3:
                slot = kept(::reallocarray(slot, bytes, 2));
                break;
            case 4:
                std::free(slot);
                slot = nullptr;
                if (::posix_memalign(&slot, 64, bytes) != 0) std::abort();
                break;
            case 5:
                std::free(slot);
                slot = kept(std::aligned_alloc(32, bytes / 32 * 32 + 32));
                break;
            case 6:
                std::free(slot);
                slot = kept(::memalign(128, bytes));
                break;
            case 7:
                if (bytes % 64 == 0) {
                    std::free(slot);
                    slot = kept(::valloc(bytes));
                } else if (bytes % 64 == 1) {
                    std::free(slot);
                    slot = kept(::pvalloc(bytes));
                }
                break;
            case 8:
                delete[] kept(new char[bytes]);
                delete kept(new on_a_line);
                break;
            case 9:
                std::free(kept(::strdup("a string")));
                break;
            case 12:
                if (bytes % 8 == 0) other_names(bytes);
                break;
            case 10: {
                const std::lock_guard hold(lock);
                handed_over.push_back(slot);
                slot = nullptr;
                break;
            }
            default: {
                const std::lock_guard hold(lock);
                if (!handed_over.empty()) {
                    std::free(slot);
                    slot = handed_over.back();
                    handed_over.pop_back();
                }
                break;
            }
        }
    }
    for (void* block : mine) std::free(block);
}

int threads(int count, int steps) {
    std::vector<void*> handed_over;
    std::mutex lock;
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i) {
        all.emplace_back(
            [&, i] { churn(static_cast<std::uint32_t>(i), steps, handed_over, lock); });
    }
    for (auto& each : all) each.join();
    for (void* block : handed_over) std::free(block);
    return 0;
}

/// Threads that end as soon as they began, one after the other.
int short_threads(int count) {
    for (int i = 0; i < count; ++i) std::thread([] { std::free(get(10)); }).join();
    return 0;
}

/// Threads whose first allocation is the C library's own, while it holds a lock: the thread's in
/// pthread_getattr_np, the loader's in what dl_iterate_phdr calls and in dlopen. They end if the
/// recorder takes no such lock.
int locked_threads(const char* library) {
    std::thread([] {
        pthread_attr_t attributes;
        if (::pthread_getattr_np(::pthread_self(), &attributes) == 0)
            ::pthread_attr_destroy(&attributes);
        std::free(get(71));
    }).join();
    std::thread([] {
        ::dl_iterate_phdr(
            [](dl_phdr_info*, std::size_t, void*) {
                // It has to end while this one is in the loader.
                std::thread([] { std::free(get(72)); }).join();
                std::free(get(73));
                return 1;
            },
            nullptr);
    }).join();
    std::thread([library] {
        void* const handle = ::dlopen(library, RTLD_NOW);
        std::free(get(74));
        if (handle != nullptr) ::dlclose(handle);
    }).join();
    // A stack that the program brings, in the midst of other memory.
    constexpr std::size_t bytes = std::size_t{256} << 10;
    auto* const memory = static_cast<unsigned char*>(
        ::mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, memory + bytes, bytes);
    pthread_t thread{};
    const int error = ::pthread_create(
        &thread, &attributes,
        [](void*) -> void* {
            std::free(get(75));
            return nullptr;
        },
        nullptr);
    ::pthread_attr_destroy(&attributes);
    if (error != 0) return 1;
    ::pthread_join(thread, nullptr);
    ::munmap(memory, 3 * bytes);
    std::puts("done");
    return 0;
}

/// One sequence of calls, the same each time, between two blocks of a size that nothing else has.
void sequence() {
    std::free(get(123457));
    void* blocks[16]{};
    std::uint32_t state = 7;
    for (int i = 0; i < 5000; ++i) {
        void*& slot = blocks[(next_random(state) >> 8) % 16];
        const std::size_t bytes = (next_random(state) >> 8) % 5000 + 1;
        switch ((next_random(state) >> 8) % 7) {
            case 0:
                std::free(slot);
                slot = get(bytes);
                break;
            case 5:
                slot = kept(::reallocarray(slot, 2, bytes));
                break;
            case 1:
                std::free(slot);
                slot = kept(std::calloc(3, bytes));
                break;
            case 2:
                slot = kept(std::realloc(slot, bytes));
                break;
            case 3:
                std::free(slot);
                slot = kept(std::aligned_alloc(64, bytes / 64 * 64 + 64));
                break;
            case 4:
                std::free(slot);
                slot = nullptr;
                break;
            default:
                delete kept(new std::string(bytes, 'x'));
                break;
        }
    }
    for (void* block : blocks) std::free(block);
    std::free(get(123457));
}

int forks() {
    void* inherited = get(50000);
    void* freed_by_child = get(60000);
    std::thread other([] {
        for (int i = 0; i < 1000; ++i) std::free(get(20));
    });
    for (int i = 0; i < 3; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            std::free(freed_by_child);
            (void)get(70000);
            std::thread([] { std::free(get(30)); }).join();
            if (i == 1) {
                const pid_t grandchild = ::fork();
                if (grandchild == 0) {
                    std::free(inherited);
                    ::_exit(0);
                }
                ::waitpid(grandchild, nullptr, 0);
            }
            std::exit(0);
        }
        std::free(get(80000));
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    other.join();
    std::free(inherited);
    std::free(freed_by_child);
    return 0;
}

/// Itself again under the same process id, and others by fork, vfork and posix_spawn.
int execs(char** argv) {
    std::free(get(90001));
    char sequence_word[] = "sequence";
    char* const arguments[] = {argv[0], sequence_word, nullptr};
    pid_t child = ::fork();
    if (child == 0) {
        std::free(get(90002));
        ::execv(argv[0], arguments);
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 1;
    child = ::vfork();
    if (child == 0) {
        ::execv(argv[0], arguments);
        ::_exit(127);
    }
    ::waitpid(child, &status, 0);
    if (status != 0 || ::posix_spawn(&child, argv[0], nullptr, nullptr, arguments, environ) != 0) {
        return 1;
    }
    ::waitpid(child, &status, 0);
    if (status != 0) return 1;
    ::execv(argv[0], arguments);
    return 127;
}

/// Executes a program by every function that can do that: 13 times, in each of which the
/// environment does not mention a preload; and twice in vain.
int executes(const char* path) {
    char* const words[] = {const_cast<char*>(path), nullptr};
    char* const none[] = {nullptr};
    const std::string folder(path, std::strrchr(path, '/'));
    const char* const name = std::strrchr(path, '/') + 1;
    const int file = ::open(path, O_RDONLY);
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    int failures = 0;
    const auto waited = [&failures](pid_t child) {
        int status = -1;
        ::waitpid(child, &status, 0);
        if (status != 0) ++failures;
    };
    ::setenv("PATH", ("/nowhere:" + folder).c_str(), 1);
    if (::execv("/nowhere/at/all", words) != -1 || errno != ENOENT) return 1;
    if (::execl(folder.c_str(), "a", "b", nullptr) != -1 || errno != EACCES) return 1;
    pid_t child = 0;
    if (::posix_spawn(&child, path, nullptr, nullptr, words, none) != 0) return 2;
    waited(child);
    if (::posix_spawnp(&child, name, nullptr, nullptr, words, none) != 0) return 2;
    waited(child);
    ::unsetenv("LD_PRELOAD");
    for (int way = 0; way < 9; ++way) {
        child = ::fork();
        if (child == 0) {
            switch (way) {
                case 0:
                    ::execve(path, words, none);
                    break;
                case 1:
                    ::execv(path, words);
                    break;
                case 2:
                    ::execvp(name, words);
                    break;
                case 3:
                    ::execvpe(name, words, none);
                    break;
                case 4:
                    ::fexecve(file, words, none);
                    break;
                case 5:
                    ::execveat(directory, name, words, none, 0);
                    break;
                case 6:
                    ::execl(path, "one", "two", "three", nullptr);
                    break;
                case 7:
                    ::execlp(name, "one", nullptr);
                    break;
                default:
                    ::execle(path, "one", "two", nullptr, none);
                    break;
            }
            ::_exit(127);
        }
        waited(child);
    }
    if (std::system(path) != 0) ++failures;
    FILE* const from = ::popen(path, "r");
    if (from == nullptr || ::pclose(from) != 0) ++failures;
    return failures;
}

/// A library that calls the C library directly, bypassing any preload.
int deep_binding(const char* library) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_DEEPBIND);
    if (handle == nullptr) return 1;
    const auto give = reinterpret_cast<void* (*)()>(::dlsym(handle, "allocate_in_library"));
    const auto take = reinterpret_cast<void (*)(void*)>(::dlsym(handle, "release_in_library"));
    for (int i = 0; i < 7; ++i) std::free(give());
    void* const other = get(50'000);
    for (int i = 0; i < 5; ++i) take(get(70'000));
    take(other);
    return 0;
}

/// Libraries come and go in some threads while others allocate.
int dlopens(const char* library) {
    std::atomic<bool> done{false};
    std::atomic<int> failures{0};
    std::vector<std::thread> all;
    for (int i = 0; i < 2; ++i) {
        all.emplace_back([&] {
            for (int n = 0; n < 200; ++n) {
                void* handle = ::dlopen(library, RTLD_NOW);
                auto* call =
                    handle == nullptr
                        ? nullptr
                        : reinterpret_cast<void* (*)()>(::dlsym(handle, "allocate_in_library"));
                if (call == nullptr) {
                    ++failures;
                    break;
                }
                std::free(call());
                ::dlclose(handle);
            }
        });
    }
    for (int i = 0; i < 2; ++i) {
        all.emplace_back([&] {
            while (!done) {
                try {
                    std::free(get(99));
                    throw std::string("unwinds while libraries come and go");
                } catch (const std::string&) {
                }
            }
        });
    }
    all[0].join();
    all[1].join();
    done = true;
    all[2].join();
    all[3].join();
    return failures == 0 ? 0 : 1;
}

/// A handler that allocates while the program allocates: not allowed by POSIX, but it happens; the
/// program blocks the signal around its own calls, as it must.
std::atomic<int> handled;
void on_signal(int) {
    std::free(get(55));
    ++handled;
}
int signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(SIGALRM, &action, nullptr);
    for (int i = 0; i < 1000; ++i) {
        std::free(get(66));
        ::raise(SIGALRM);
    }
    return handled == 1000 ? 0 : 1;
}

/// Closes every descriptor, then opens files: they must not change.
int closes_all() {
    for (int fd = 3; fd < 2000; ++fd) ::close(fd);
    char name[] = "own-file-XXXXXX";
    const int fd = ::mkstemp(name);
    if (fd < 0 || ::dup2(fd, 500) != 500) return 1;
    for (int i = 0; i < 200000; ++i) std::free(get(100));
    const bool untouched = ::lseek(500, 0, SEEK_END) == 0;
    ::unlink(name);
    std::puts(untouched ? "untouched" : "touched");
    return untouched ? 0 : 1;
}

/// Each form of operator new and delete `times` times, of each size from 1 on.
int operators(std::size_t times) {
    constexpr std::align_val_t line{64};
    const std::nothrow_t& n = std::nothrow;
    for (std::size_t size = 1; size <= times; ++size) {
        ::operator delete(kept(::operator new(size)));
        ::operator delete(kept(::operator new(size, n)), n);
        ::operator delete(kept(::operator new(size)), size);
        ::operator delete(kept(::operator new(size, line)), line);
        ::operator delete(kept(::operator new(size, line, n)), line, n);
        ::operator delete(kept(::operator new(size, line)), size, line);
        ::operator delete[](kept(::operator new[](size)));
        ::operator delete[](kept(::operator new[](size, n)), n);
        ::operator delete[](kept(::operator new[](size)), size);
        ::operator delete[](kept(::operator new[](size, line)), line);
        ::operator delete[](kept(::operator new[](size, line, n)), line, n);
        ::operator delete[](kept(::operator new[](size, line)), size, line);
    }
    return 0;
}

[[gnu::noinline]] void deep(int frames) {
    delete kept(new int);
    if (frames > 1) deep(frames - 1);
    asm volatile("" : : : "memory");
}

/// Memory is short: the handler gives its reserve back, then gives up in each way that there is.
/// Afterwards, in frames below those that were left, everything works as usual.
char* reserve;
int handled_news;
void gives_up() {
    delete kept(new int);
    if (++handled_news > 3) throw std::bad_alloc();
    delete[] std::exchange(reserve, nullptr);
    if (handled_news == 3) std::set_new_handler(nullptr);
}
int short_of_memory() {
    volatile std::size_t too_much = static_cast<std::size_t>(PTRDIFF_MAX) / 2;
    int thrown = 0;
    const auto fails = [&] {
        reserve = kept(new char[1000]);
        try {
            ::operator delete(kept(::operator new(too_much)));
        } catch (const std::bad_alloc&) {
            ++thrown;
            deep(100);
        }
    };
    if (std::set_new_handler(gives_up) != nullptr) return 1;
    if (std::get_new_handler() != gives_up) return 2;
    fails();  // the handler is called three times and takes itself away
    if (std::get_new_handler() != nullptr || handled_news != 3 || reserve != nullptr) return 3;
    std::set_new_handler(gives_up);
    fails();  // the handler throws
    delete[] std::exchange(reserve, nullptr);
    if (::operator new(too_much, std::nothrow) != nullptr) return 4;
    if (handled_news != 5 || thrown != 2) return 5;
    deep(100);
    return 0;
}

/// How much of a small stack malloc needs: in a thread that has not called it before, and with code
/// that was loaded since.
ucontext_t to_main, to_coroutine;
void* (*call_on_coroutine)();
void coroutine() {
    std::free(call_on_coroutine());
    ::swapcontext(&to_coroutine, &to_main);
}
[[nodiscard]] std::size_t stack_need(void* (*call)()) {
    constexpr std::size_t bytes = std::size_t{256} << 10;
    auto* const stack = static_cast<unsigned char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(stack, 0xA5, bytes);
    call_on_coroutine = call;
    ::getcontext(&to_coroutine);
    to_coroutine.uc_stack.ss_sp = stack;
    to_coroutine.uc_stack.ss_size = bytes;
    to_coroutine.uc_link = nullptr;
    ::makecontext(&to_coroutine, coroutine, 0);
    ::swapcontext(&to_main, &to_coroutine);
    std::size_t untouched = 0;
    while (untouched < bytes && stack[untouched] == 0xA5) ++untouched;
    ::munmap(stack, bytes);
    return bytes - untouched;
}
int coroutines(const char* library) {
    std::size_t in_malloc = 0;
    std::thread([&] { in_malloc = stack_need([] { return get(10); }); }).join();
    std::size_t in_new = 0;
    std::thread([&] {
        in_new = stack_need([] { return static_cast<void*>(kept(new char)); });
    }).join();
    // By a path that says nothing without the working directory.
    const std::string path(library);
    const auto name = path.rfind('/');
    if (::chdir(path.substr(0, name).c_str()) != 0) return 1;
    void* const handle = ::dlopen(("." + path.substr(name)).c_str(), RTLD_NOW);
    if (handle == nullptr) return 2;
    const std::size_t in_library =
        stack_need(reinterpret_cast<void* (*)()>(::dlsym(handle, "allocate_in_library")));
    std::printf("%zu %zu %zu\n", in_malloc, in_new, in_library);
    return 0;
}

int endless() {
    if (::write(1, "begun\n", 6) != 6) return 1;
    for (;;) std::free(get(123));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "nothing") return 0;
    if (what == "speak") {
        std::puts("said");
        std::fputs("and complained\n", stderr);
        return 42;
    }
    if (what == "threads") return threads(8, 20000);
    if (what == "short_threads") return short_threads(500);
    if (what == "locked_threads" && argc > 2) return locked_threads(argv[2]);
    if (what == "sequence") {
        if (std::getenv("MALLOC_TRACE") != nullptr) ::mtrace();
        sequence();
        return 0;
    }
    if (what == "forks") return forks();
    if (what == "execs") return execs(argv);
    if (what == "executes" && argc > 2) return executes(argv[2]);
    if (what == "deep_binding" && argc > 2) return deep_binding(argv[2]);
    if (what == "dlopens" && argc > 2) return dlopens(argv[2]);
    if (what == "signals") return signals();
    if (what == "operators") return operators(200);
    if (what == "short_of_memory") return short_of_memory();
    if (what == "coroutines" && argc > 2) return coroutines(argv[2]);
    if (what == "endless") return endless();
    if (what == "closes_all") return closes_all();
    std::fputs("unknown\n", stderr);
    return 2;
}
