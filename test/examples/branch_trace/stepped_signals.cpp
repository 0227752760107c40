// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A program that looks, in every way it can, for what steps it: the trap flag, and SIGTRAP. What
/// it writes into the file that it is given is the same whether it is stepped or not.

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#if defined(__x86_64__)
#define STACK "(%%rsp)"
#define WORD_A "%%rax"
#define RETURN "iretq"
#define INSTRUCTION REG_RIP
#else
#define STACK "(%%esp)"
#define WORD_A "%%eax"
#define RETURN "iret"
#define INSTRUCTION REG_EIP
#endif

namespace {

volatile sig_atomic_t traps, own_flags, alarms, seen, unmasked;

constexpr unsigned long trap_flag = 0x100;
constexpr unsigned char int1 = 0xF1;

[[nodiscard]] bool in_frame(void* context) {
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    return (static_cast<unsigned long>(registers[REG_EFL]) & trap_flag) != 0;
}
[[nodiscard]] bool is_blocked() {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, SIGTRAP) == 1;
}

void on_trap(int, siginfo_t*, void* context) {
    traps = traps + 1;
    if (in_frame(context)) own_flags = own_flags + 1;
    if (!is_blocked()) unmasked = unmasked + 1;
    // Some virtual machines leave the processor at int1.
    auto& next = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[INSTRUCTION];
    if (*reinterpret_cast<const unsigned char*>(next) == int1) next += 1;
}
void on_alarm(int, siginfo_t*, void* context) {
    alarms = alarms + 1;
    if (in_frame(context)) seen = seen + 1;
#if defined(__x86_64__)
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (registers[REG_RCX] == registers[REG_RIP] &&
        (static_cast<unsigned long>(registers[REG_R11]) & trap_flag) != 0) {
        seen = seen + 1;  // behind a system call
    }
#endif
}
void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    ::sigaction(signal, &action, nullptr);
}
void alarm_in(suseconds_t first, suseconds_t then) {
    const itimerval value{{0, then}, {0, first}};
    ::setitimer(ITIMER_REAL, &value, nullptr);
}
[[nodiscard]] int waited(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}
template <class Work>
[[nodiscard]] int in_child(Work work) {
    const pid_t child = ::fork();
    if (child != 0) return waited(child);
    work();
    ::_exit(9);
}
void* in_thread(void* blocked) {
    unsigned long flags = 0;
    for (int i = 0; i < 20; ++i) {
        asm volatile("pushf; pop %0" : "=r"(flags) : : "memory");
        if ((flags & trap_flag) != 0) seen = seen + 1;
    }
    *static_cast<bool*>(blocked) = is_blocked();
    return nullptr;
}

}  // namespace

int main(int, char** arguments) {
    if (std::freopen(arguments[1], "w", stdout) == nullptr) return 1;
    std::setvbuf(stdout, nullptr, _IOFBF, 4096);
    handle(SIGTRAP, on_trap, 0);
    for (int i = 0; i < 3; ++i) asm volatile("int3" : : : "memory");
    std::printf("int3: %d\n", traps);
    for (int i = 0; i < 3; ++i) asm volatile(".byte 0xF1; nop" : : : "memory");
    std::printf("int1: %d\n", traps);

    // A thread that blocks the signal of each step, and sends itself some.
    sigset_t trap, now;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    ::sigprocmask(SIG_BLOCK, &trap, nullptr);
    ::raise(SIGTRAP);
    ::kill(::getpid(), SIGTRAP);
    ::sigpending(&now);
    bool blocked_there = false;
    pthread_t other;
    ::pthread_create(&other, nullptr, in_thread, &blocked_there);
    ::pthread_join(other, nullptr);
    std::printf("blocked: %d, pending %d, here %d, in a thread %d\n", traps,
                sigismember(&now, SIGTRAP), is_blocked(), blocked_there);
    ::sigprocmask(SIG_UNBLOCK, &trap, nullptr);
    struct sigaction kept {};
    ::sigaction(SIGTRAP, nullptr, &kept);
    std::printf("unblocked: %d, handler kept %d\n", traps, kept.sa_sigaction == on_trap);

    // Signals come at any moment: instead of a popf, too.
    handle(SIGALRM, on_alarm, SA_RESTART);
    alarm_in(2000, 2000);
    for (int i = 0; alarms < 20; ++i) {
        asm volatile("pushf; popf; pushf; popf" : : : "memory", "cc");
        if (i % 16 == 0) static_cast<void>(::getppid());
    }
    alarm_in(0, 0);
    handle(SIGALRM, on_alarm, 0);
    alarm_in(30'000, 0);
    const int polled = ::poll(nullptr, 0, 5000);
    std::printf("interrupted: %d %d\n", polled, errno == EINTR);
    handle(SIGALRM, on_alarm, SA_RESTART);
    int ends[2];
    char byte = 0;
    if (::pipe(ends) != 0) return 1;
    alarm_in(30'000, 0);
    const pid_t writer = ::fork();
    if (writer == 0) {
        asm volatile("pushf; popf" : : : "memory", "cc");
        ::usleep(100'000);
        ::_exit(::write(ends[1], "x", 1) == 1 ? 5 : 6);
    }
    const auto got = static_cast<int>(::read(ends[0], &byte, 1));
    std::printf("restarted: %d, child %x\n", got, static_cast<unsigned>(waited(writer)));

    // A signal that is ignored interrupts a fork only where a tracer looks at it.
    ::signal(SIGALRM, SIG_IGN);
    alarm_in(1000, 1000);
    int flagged = 0;
    for (int i = 0; i < 200; ++i) {
        unsigned long behind = 0;
#if defined(__x86_64__)
        long child = 0;
        asm volatile("syscall; mov %%r11, %1"
                     : "=a"(child), "=r"(behind)
                     : "a"(SYS_fork)
                     : "rcx", "r11", "memory");
        if (child == 0) ::_exit((behind & trap_flag) != 0);
#else
        const long child = ::fork();
        asm volatile("pushf; pop %0" : "=r"(behind) : : "memory");
        if (child == 0) ::_exit((behind & trap_flag) != 0);
#endif
        if ((behind & trap_flag) != 0) ++flagged;
        if (waited(static_cast<pid_t>(child)) != 0) ++flagged;
    }
    alarm_in(0, 0);
    std::printf("forks: %d\n", flagged);

    // What sets the flag itself.
    unsigned long flags = 0;
    asm volatile("pushf; orl $0x100, " STACK
                 "; popf; nop; nop; pushf; pop %0; pushf; andl $~0x100, " STACK "; popf"
                 : "=r"(flags)
                 :
                 : "memory", "cc");
    std::printf("own: %d traps, %d in frames, pushed %lu\n", traps, own_flags, flags & trap_flag);
    // The same unseen by the kernel, behind an instruction that delays the trap, and by an iret.
    asm volatile("mov %%ss, %%eax; pushf; orl $0x100, " STACK
                 "; mov %%eax, %%ss; popf; nop; nop; pushf; andl $~0x100, " STACK
                 "; mov %%eax, %%ss; popf; nop"
                 :
                 :
                 : "eax", "memory", "cc");
    std::printf("own, delayed: %d traps, %d in frames\n", traps, own_flags);
    unsigned long stack = 0, segment = 0;
    asm volatile(
        "mov %%ss, %k1; mov %%esp, %k0"
#if defined(__x86_64__)
        "; mov %%rsp, %q0; push %q1; push %q0"
#endif
        "; pushf; orl $0x100, " STACK "; mov %%cs, %k1; push " WORD_A
        "; call 1f; jmp 2f; 1: " RETURN "; 2: nop; nop; pushf; andl $~0x100, " STACK "; popf"
        : "=&d"(stack), "=&a"(segment)
        :
        : "memory", "cc");
    std::printf("own, by iret: %d traps, %d in frames\n", traps, own_flags);
    std::printf("ends: %x %x\n", static_cast<unsigned>(in_child([&trap] {
                    ::sigprocmask(SIG_BLOCK, &trap, nullptr);
                    asm volatile("int3");
                })),
                static_cast<unsigned>(in_child([&trap] {
                    ::sigprocmask(SIG_BLOCK, &trap, nullptr);
                    asm volatile("pushf; orl $0x100, " STACK "; popf; nop" : : : "memory", "cc");
                })));
    std::printf("seen %d, unmasked %d\n", seen, unmasked);
    return 0;
}
