// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A stepped thread that blocks SIGTRAP. The kernel forces the signal of a step: it unblocks it
/// permanently and removes the program's handler. Therefore the mask of a stepped thread does not
/// contain SIGTRAP, and the program's own mask is restored whenever the program may see it (in a
/// system call, or when a handler is called).
///
/// What remains: if the program ignores SIGTRAP, stepping resets the signal to its default action.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace branch_trace::impl {

/// For one thread. All functions require that it is stopped; if it no longer exists, nothing
/// happens.
class trap_mask {
public:
    /// To be called before the thread is stepped, and whenever the kernel may have changed its
    /// mask.
    void hide(::pid_t thread) noexcept {
        std::uint64_t mask = 0;
        if (!get(thread, mask) || (mask & bit) == 0) {
            is_again_for_thread_ = false;  // the program has received it
            return;
        }
        set(thread, mask & ~bit);
        is_hidden_ = true;
    }
    /// To be called before the thread continues in the kernel.
    void show(::pid_t process, ::pid_t thread) noexcept {
        std::uint64_t mask = 0;
        if (!is_hidden_ || !get(thread, mask)) return;
        set(thread, mask | bit);
        is_hidden_ = false;
        if (to_thread_) {
            static_cast<void>(
                ::syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGTRAP, &*to_thread_));
            is_again_for_thread_ = true;
        }
        if (to_process_) {
            static_cast<void>(::syscall(SYS_rt_sigqueueinfo, process, SIGTRAP, &*to_process_));
        }
        to_thread_.reset();
        to_process_.reset();
    }
    /// Whether the program blocks SIGTRAP without the kernel's mask showing it.
    [[nodiscard]] bool is_hidden() const noexcept { return is_hidden_; }
    /// Keeps a SIGTRAP that was sent until the program no longer blocks it.
    void hold(const ::siginfo_t& info) noexcept {
        // The kernel delivers a thread's signals before its process's signals.
        const bool for_thread = info.si_code == SI_TKILL || is_again_for_thread_;
        is_again_for_thread_ = false;
        auto& held = for_thread ? to_thread_ : to_process_;
        held = info;
        held->si_code = SI_QUEUE;  // no other value may be sent on behalf of its sender
    }
    /// For another program, or another thread's state.
    void reset() noexcept { *this = {}; }

private:
    static constexpr std::uint64_t bit = std::uint64_t{1} << (SIGTRAP - 1);

    // NOLINTBEGIN(performance-no-int-to-ptr): ptrace wants the size so
    [[nodiscard]] static bool get(::pid_t thread, std::uint64_t& mask) noexcept {
        return ::ptrace(PTRACE_GETSIGMASK, thread, sizeof mask, &mask) == 0;
    }
    static void set(::pid_t thread, std::uint64_t mask) noexcept {
        static_cast<void>(::ptrace(PTRACE_SETSIGMASK, thread, sizeof mask, &mask));
    }
    // NOLINTEND(performance-no-int-to-ptr)

    bool is_hidden_ = false;
    std::optional<::siginfo_t> to_thread_, to_process_;
    bool is_again_for_thread_ = false;
};

/// Whether the process has a handler for the signal.
[[nodiscard]] inline bool has_handler(::pid_t process, int signal) {
    const std::string path = "/proc/" + std::to_string(process) + "/status";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                               &std::fclose);
    char line[256];
    std::uint64_t caught = 0;
    while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
        if (std::sscanf(line, "SigCgt: %" SCNx64, &caught) == 1) break;
    }
    return (caught >> (signal - 1) & 1U) != 0;
}

}  // namespace branch_trace::impl
