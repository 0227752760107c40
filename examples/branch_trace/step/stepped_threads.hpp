// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The stepped threads and their states. Waits for one of them to stop, and leaves other
/// children of the tracer alone.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <trace_ring/record/data_model.hpp>

#include "code_cache.hpp"
#include "trap_mask.hpp"

namespace branch_trace::impl {

namespace record = trace_ring::record;

struct stepped_thread {
    ::pid_t tid = 0;
    ::pid_t process = 0;
    std::shared_ptr<code_cache> code;
    std::uint64_t ip = 0;           ///< the next instruction
    std::uint64_t signal_from = 0;  ///< the instruction that caused the signal, or was replaced by
                                    ///< it
    record::program_mode mode = record::program_mode::lp64;
    bool begins = true;      ///< its state is unknown so far
    bool signalled = false;  ///< a signal was delivered, and nothing has happened since
    bool by_itself = false;  ///< the instruction caused the signal
    bool leaves = false;     ///< belongs to a process that is not followed
    bool entered = false;    ///< it is in the system call at `ip`
    bool restarts =
        false;  ///< the call was interrupted, and is entered again unless a handler is called
    bool left_kernel = false;  ///< a system call has ended, and nothing has happened since
    trap_mask mask;
    bool own_trap = false;            ///< the program has set the trap flag itself
    bool own_trap_on_return = false;  ///< and will have it after the handler's return
};

/// To be used only by the thread that traces them.
class stepped_threads {
public:
    stepped_threads() noexcept = default;
    stepped_threads(const stepped_threads&) = delete;
    stepped_threads& operator=(const stepped_threads&) = delete;
    ~stepped_threads() { kill(); }

    [[nodiscard]] bool empty() const noexcept { return threads_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

    [[nodiscard]] stepped_thread* find(::pid_t tid) noexcept {
        const auto at = std::find_if(threads_.begin(), threads_.end(),
                                     [tid](const auto& one) { return one->tid == tid; });
        return at == threads_.end() ? nullptr : at->get();
    }
    stepped_thread& add(::pid_t tid, ::pid_t process, std::shared_ptr<code_cache> code) {
        if (find(tid) == nullptr) {
            threads_.push_back(std::make_unique<stepped_thread>());
            stepped_thread& one = *threads_.back();
            one.tid = tid;
            one.process = process;
            one.code = std::move(code);
        }
        return *find(tid);
    }
    void remove(::pid_t tid) {
        std::erase_if(threads_, [tid](const auto& one) { return one->tid == tid; });
    }

    /// Waits for one of them. Null: nothing yet; call again.
    [[nodiscard]] stepped_thread* wait(int& status) {
        if (threads_.size() == 1) {
            stepped_thread& only = *threads_.front();
            if (::waitpid(only.tid, &status, __WALL) == only.tid) return &only;
            if (errno != EINTR) remove(only.tid);  // reaped elsewhere
            return nullptr;
        }
        // Unrelated children are only inspected, and not reaped.
        ::siginfo_t info{};
        if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD) != 0) {
            if (errno != EINTR) threads_.clear();
            return nullptr;
        }
        if (stepped_thread* const one = find(info.si_pid)) {
            return ::waitpid(one->tid, &status, __WALL | WNOHANG) == one->tid ? one : nullptr;
        }
        for (const auto& one : threads_) {
            if (::waitpid(one->tid, &status, __WALL | WNOHANG) == one->tid) return one.get();
        }
        const ::timespec while_other_is_there{0, 50'000};
        ::nanosleep(&while_other_is_there, nullptr);
        return nullptr;
    }

    /// Removes all threads of a process except this one.
    void remove_others(const stepped_thread& one) {
        std::erase_if(threads_, [&one](const auto& other) {
            return other->process == one.process && other.get() != &one;
        });
    }

    /// Kills the processes, and waits for their end.
    void kill() noexcept {
        for (const auto& one : threads_) {
            if (one->process == one->tid || !has_leader(*one)) ::kill(one->process, SIGKILL);
        }
        for (const bool leaders : {false, true}) {  // leaders end after their threads
            for (const auto& one : threads_) {
                if ((one->tid == one->process) == leaders) wait_for_end(*one);
            }
        }
        threads_.clear();
    }

private:
    [[nodiscard]] bool has_leader(const stepped_thread& one) noexcept {
        return find(one.process) != nullptr;
    }
    static void wait_for_end(const stepped_thread& one) noexcept {
        int status = 0;
        for (;;) {
            const ::pid_t got = ::waitpid(one.tid, &status, __WALL);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 || !WIFSTOPPED(status)) return;
            static_cast<void>(::ptrace(PTRACE_CONT, one.tid, nullptr, nullptr));
        }
    }

    std::vector<std::unique_ptr<stepped_thread>> threads_;
};

}  // namespace branch_trace::impl
