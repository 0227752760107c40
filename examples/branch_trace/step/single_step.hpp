// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The branches of a program that is single-stepped by ptrace. This works on any Linux x86 machine,
/// for 64- and 32-bit programs (a 32-bit tracer steps only 32-bit programs). Each taken branch is a
/// record with its kind and thread. Other events are records, too:
///
/// | what happens                 | the record                                                  |
/// |------------------------------|-------------------------------------------------------------|
/// | a thread begins, or a program| `to` alone: its first instruction                           |
/// | a system call                | `system_call`, to where it returns; `from` alone if it does |
/// |                              | not because a program is executed instead                   |
/// | a signal's handler is called | `signal`, or `exception` if the instruction caused it       |
/// | a handler returns            | `interrupt_return`                                          |
/// | a signal kills               | `exception` or `signal`, `from` alone: that instruction     |
///
/// Within a thread, no `from` is before the `to` of the previous record. `rep` is not a branch.
/// Changes that a program makes to its own code are seen, unless it makes them through a second
/// mapping of the same memory.
/// @code
///   branch_trace::single_step program({"gzip", "file"});
///   while (!program.ended()) program.read(visitor);
/// @endcode
/// An instruction takes about 20 microseconds, which the kernel uses. The program does not see the
/// trap flag that steps it. A program that sets the flag itself gets its SIGTRAP.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/x86/branch_source.hpp>

#include "branch_instruction.hpp"
#include "code_cache.hpp"
#include "stepped_threads.hpp"
#include "traced_program.hpp"
#include "trap_flag.hpp"

namespace branch_trace {

namespace record = trace_ring::record;
namespace x86 = trace_ring::x86;
using trace_ring::relaxed;
using x86::branch;

struct step_options {
    bool follow_forks = false;          ///< also traces the processes that the program starts
    bool system_calls = true;           ///< also records system calls
    std::uint64_t steps_a_read = 4096;  ///< `read` returns after this many steps
};

/// A model of branch_source. As ptrace requires, all functions except `stop` must be called by the
/// constructing thread. The destructor kills all stepped processes.
class single_step {
public:
    static constexpr x86::branch_character character{.order = x86::branch_order::oldest_first,
                                                     .delivery = x86::branch_delivery::sample,
                                                     .tells_kind = true,
                                                     .tells_privilege = true,
                                                     .tells_thread = true};

    /// Starts a program, found as a shell does, and stops it before its first instruction. Throws
    /// setup_error, which names the program, with the error of execve(2) or the reason why it may
    /// not be traced.
    explicit single_step(const std::vector<std::string>& command, step_options options = {})
        : options_(options),
          own_(::getpid()),
          first_(impl::start_traced(command, trace_options(options))) {
        stepped& one = threads_.add(first_, first_, std::make_shared<code_cache>());
        // It is already stopped. The first thing that `read` reports is where it begins.
        found begun;
        executed_anew(one, begun);
        one.entered = true;  // execve has not returned yet
        for (std::size_t i = 0; i < begun.count; ++i) first_records_.push_back(begun.records[i]);
        go_on(one, 0);
    }
    single_step(const single_step&) = delete;
    single_step& operator=(const single_step&) = delete;

    /// Steps until `steps_a_read` instructions are executed, nothing is left to step, or `stop` is
    /// called. Waits while all threads wait. Throws setup_error if a 32-bit tracer meets a 64-bit
    /// program, and exceptions of the visitor.
    template <class Visit>
    std::uint64_t read(Visit&& visit) {
        std::uint64_t records = 0;
        while (!first_records_.empty()) {
            const branch one = first_records_.front();
            first_records_.erase(first_records_.begin());
            ++records;
            visit(one);
        }
        const std::uint64_t until = steps_ + options_.steps_a_read;
        while (steps_ < until && !threads_.empty()) {
            if (stopped()) break;
            int status = 0;
            stepped* const one = threads_.wait(status);
            if (one == nullptr) continue;
            found now;
            const bool goes_on =
                WIFSTOPPED(status) ? look(*one, status, now) : end(*one, status, now);
            if (goes_on) go_on(*one, now.signal);
            records += now.count;
            for (std::size_t i = 0; i < now.count; ++i) {
                visit(static_cast<const branch&>(now.records[i]));
            }
        }
        return records;
    }

    [[nodiscard]] bool ended() const noexcept { return threads_.empty() && first_records_.empty(); }
    /// Nothing is ever lost, because the stepped threads wait.
    [[nodiscard]] static trace_ring::loss_counts lost() noexcept { return {}; }

    /// Makes the current `read` return soon, and later ones immediately, until `resume`. May be
    /// called from any thread and from signal handlers.
    void stop() noexcept {
        const int saved = errno;
        // relaxed: only the flag is passed on, and the reader checks it after each system call
        stop_.store(1, relaxed);
        // relaxed: any of the threads will do, and one that is gone is not found
        if (const ::pid_t one = awake_.load(relaxed); one != 0) {
            // If it is waiting in the kernel: interrupted by its tracer's thread, or otherwise by a
            // signal that has no effect by default and is not delivered.
            if (::ptrace(PTRACE_INTERRUPT, one, nullptr, nullptr) != 0) ::kill(one, SIGURG);
        }
        errno = saved;
    }
    // relaxed: as in stop
    [[nodiscard]] bool stopped() const noexcept { return stop_.load(relaxed) != 0; }
    void resume() noexcept { stop_.store(0, relaxed); }  // relaxed: as in stop

    /// Kills the stepped processes, and waits for their end.
    void kill() noexcept {
        awake_.store(0, relaxed);  // relaxed: as in stop
        threads_.kill();
    }

    /// The process that was started.
    [[nodiscard]] ::pid_t process() const noexcept { return first_; }
    /// Its exit status in the form of waitpid(2); empty while it runs.
    [[nodiscard]] std::optional<int> status() const noexcept { return status_; }
    /// Instructions executed so far, including system calls.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    /// The number of threads that are being stepped.
    [[nodiscard]] std::size_t threads() const noexcept { return threads_.size(); }

private:
    using what = branch_instruction::what;
    static constexpr int at_system_call = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

    using stepped = impl::stepped_thread;
    /// The result of one stop.
    struct found {
        std::array<branch, 2> records{};
        std::size_t count = 0;
        int signal = 0;  ///< to be delivered
    };

    [[nodiscard]] static long trace_options(const step_options& options) noexcept {
        const long always =
            PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD;
        return options.follow_forks ? always | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK : always;
    }

    // --- What happened ---------------------------------------------------------------------------
    /// Examines a thread that has stopped. Returns false if it cannot be continued by a step.
    [[nodiscard]] bool look(stepped& one, int status, found& out) {
        const int signal = WSTOPSIG(status);
        switch (status >> 16) {
            case 0:
                if (signal == at_system_call) return at_kernel(one, out);
                if (signal == SIGTRAP) return trapped(one, out);
                return signalled(one, signal, out);
            case PTRACE_EVENT_EXEC:
                executed_anew(one, out);
                return true;
            case PTRACE_EVENT_CLONE:
            case PTRACE_EVENT_FORK:
            case PTRACE_EVENT_VFORK:
                if (const ::pid_t born = impl::read_event_message(one.tid); born != 0) {
                    const bool thread = impl::is_thread_of(one.process, born);
                    const bool same = thread || status >> 16 == PTRACE_EVENT_VFORK;
                    stepped& other = threads_.add(born, thread ? one.process : born,
                                                  same ? one.code : std::make_shared<code_cache>());
                    other.leaves = !thread && !options_.follow_forks;
                    other.own_trap = one.own_trap;
                }
                return true;
            case PTRACE_EVENT_STOP:
                if (one.begins) begin(one, out);
                if (one.leaves) {
                    static_cast<void>(::ptrace(PTRACE_DETACH, one.tid, nullptr, nullptr));
                    out.count = 0;
                    threads_.remove(one.tid);
                    return false;
                }
                if (signal != SIGTRAP) {  // the whole process is stopped, until SIGCONT
                    static_cast<void>(::ptrace(PTRACE_LISTEN, one.tid, nullptr, nullptr));
                    return false;
                }
                return true;
            default:
                return true;
        }
    }

    /// A system call enters or leaves the kernel.
    [[nodiscard]] bool at_kernel(stepped& one, found& out) {
        if (!one.entered) {
            one.entered = true;
            one.restarts = false;
            one.own_trap_on_return = impl::returns_to_trap_flag(one.tid, one.mode);
            one.mask.show(one.process, one.tid);
            return true;
        }
        std::uint64_t now = 0;
        if (!impl::peek(one.tid, impl::user_area::ip, now)) return false;
        one.entered = false;
        one.mask.hide(one.tid);
        one.restarts = impl::is_restarted(one.tid);
        if (one.restarts) return true;
        if (now != one.ip) executed(one, now, out);
        one.signalled = false;
        one.ip = now;
        one.left_kernel = true;
        return true;
    }

    /// The end of a step, or the program's own SIGTRAP.
    [[nodiscard]] bool trapped(stepped& one, found& out) {
        constexpr int by_step = 2, by_system_call = 1, by_handler = SIGTRAP;  // si_code
        ::siginfo_t info{};
        std::uint64_t now = 0;
        if (!impl::read_signal(one.tid, info) || !impl::peek(one.tid, impl::user_area::ip, now))
            return false;  // killed: the next wait reports its end
        one.restarts = false;
        const bool left_kernel = std::exchange(one.left_kernel, false);
        if (info.si_code == by_handler) {
            put(out, one,
                branch(one.signal_from, now,
                       one.by_itself ? branch_kind::exception : branch_kind::signal));
            static_cast<void>(impl::read_mode(one.tid, one.mode));
            if (!one.own_trap) impl::hide_trap_flag_in_frame(one.tid, one.mode);
            one.own_trap = false;
            one.mask.hide(one.tid);
        } else if (info.si_code == by_step) {
            const bool is_its_own = one.own_trap;
            executed(one, now, out);
            if (is_its_own && one.mask.is_hidden()) {
                one.mask.show(one.process, one.tid);  // the next one kills it, as it should
            } else if (is_its_own) {
                one.ip = one.signal_from = now;
                one.by_itself = one.signalled = true;
                out.signal = SIGTRAP;
                return true;
            }
        } else if (info.si_code == by_system_call && !has_raised_trap(one, now, left_kernel)) {
            if (now != one.ip) executed(one, now, out);
            if (!one.own_trap) impl::hide_trap_flag_in_r11(one.tid);
            one.mask.hide(one.tid);
        } else {
            return signalled(one, SIGTRAP, out);
        }
        one.signalled = false;
        one.ip = now;
        return true;
    }

    /// If two instructions were executed in one step, because no step ends after the first, this
    /// accounts for the first.
    void pass_delaying(stepped& one, std::uint64_t now) {
        for (;;) {
            const branch_instruction& was = one.code->at(one.tid, one.ip, one.mode);
            if (!was.delays_trap || now == one.ip || now == one.ip + was.length) return;
            ++steps_;
            one.ip += was.length;
        }
    }
    /// Whether a SIGTRAP as after a system call was raised by int1, at which some virtual machines
    /// leave the processor.
    [[nodiscard]] bool has_raised_trap(stepped& one, std::uint64_t now, bool left_kernel) {
        pass_delaying(one, now);
        return (now != one.ip || !left_kernel) &&
               one.code->at(one.tid, one.ip, one.mode).is == what::raises;
    }

    /// The instruction at `one.ip` was executed, and `now` is the next one.
    void executed(stepped& one, std::uint64_t now, found& out) {
        pass_delaying(one, now);
        ++steps_;
        const branch_instruction& was = one.code->at(one.tid, one.ip, one.mode);
        if (was.does == branch_instruction::flags::stores && !one.own_trap) {
            impl::hide_pushed_trap_flag(one.tid);
        } else if (was.does == branch_instruction::flags::loads) {
            one.own_trap = impl::has_set_trap_flag(one.tid);
        }
        switch (was.is) {
            case what::no_branch:
            case what::unreadable:
            case what::raises:
                // Another event, for example the restart of a restartable sequence.
                if (now - one.ip > longest_instruction) put(out, one, branch(one.ip, now));
                return;
            case what::may_branch:
                if (taken(one, was, now)) put(out, one, branch(one.ip, now, was.kind));
                return;
            case what::does_branch:
                put(out, one, branch(one.ip, now, was.kind));
                if (was.changes_mode) static_cast<void>(impl::read_mode(one.tid, one.mode));
                return;
            case what::enters_kernel:
                returned(one, was, now, out);
                return;
        }
    }

    [[nodiscard]] static bool taken(const stepped& one, const branch_instruction& was,
                                    std::uint64_t now) noexcept {
        const std::uint64_t behind = one.ip + was.length;
        if (was.target != behind) return now != behind;
        if (was.kind != branch_kind::conditional) return false;
        std::uint64_t flags = 0, count = 0;
        return impl::peek(one.tid, impl::user_area::flags, flags) &&
               impl::peek(one.tid, impl::user_area::count, count) &&
               condition_held(was, flags, count, one.mode);
    }

    void returned(stepped& one, const branch_instruction& was, std::uint64_t now, found& out) {
        constexpr std::uint64_t none = 0xFFFFFFFF;  // value after a return from a handler
        std::uint64_t number = none;
        const bool known = impl::peek(one.tid, impl::user_area::call, number);
        if (known && (number & none) == none && now != one.ip + was.length) {
            put(out, one, branch(one.ip, now, branch_kind::interrupt_return));
            static_cast<void>(impl::read_mode(one.tid, one.mode));
            one.own_trap = one.own_trap_on_return;
            if (one.own_trap) impl::set_own_trap_flag(one.tid);
            return;
        }
        const branch record(one.ip, now, branch_kind::system_call);  // the cached `was` is no
                                                                     // longer valid
        if (!known || impl::may_map(number)) one.code->forget();
        if (options_.system_calls) put(out, one, record);
    }

    /// A signal is about to be delivered.
    [[nodiscard]] bool signalled(stepped& one, int signal, found& out) {
        ::siginfo_t info{};
        std::uint64_t now = 0;
        if (!impl::read_signal(one.tid, info) || !impl::peek(one.tid, impl::user_area::ip, now))
            return false;
        const bool sent = info.si_code <= 0;
        if (signal == SIGURG && sent && info.si_pid == own_) return true;  // sent by `stop`
        if (signal == SIGTRAP && one.mask.is_hidden()) {
            if (sent) {
                one.mask.hold(info);
                return true;
            }
            // The program does not survive this int3: it is executed again, with the current mask.
            impl::poke(one.tid, impl::user_area::ip, one.ip);
            one.mask.show(one.process, one.tid);
            return true;
        }
        one.by_itself = !sent && (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                                  signal == SIGILL || signal == SIGTRAP || signal == SIGSYS);
        one.signal_from = one.ip;
        if (now != one.ip) {
            const branch_instruction& was = one.code->at(one.tid, one.ip, one.mode);
            if (!one.by_itself && was.is == what::enters_kernel && now == one.ip + was.length) {
                ++steps_;
                if (options_.system_calls) {
                    put(out, one, branch(one.ip, now, branch_kind::system_call));
                }
                one.signal_from = now;
            } else if (now - one.ip > longest_instruction) {
                one.signal_from = now;
                put(out, one, branch(one.ip, now));
            }
        }
        one.ip = now;
        one.signalled = true;
        out.signal = signal;
        if (one.mask.is_hidden() && impl::has_handler(one.process, signal)) {
            one.mask.show(one.process, one.tid);  // for the handler's frame
        }
        return true;
    }

    /// The thread executes another program, and is now the only thread of its process.
    void executed_anew(stepped& one, found& out) {
        const ::pid_t before = impl::read_event_message(one.tid);
        const stepped* const other = before != 0 ? threads_.find(before) : nullptr;
        const stepped& was = other != nullptr ? *other : one;  // it has become the leader
        if (!was.begins) {
            ++steps_;
            if (options_.system_calls) {
                put(out, was, branch::only_from(was.ip, branch_kind::system_call));
            }
        }
        one.entered = was.entered;
        threads_.remove_others(one);
        one.code = std::make_shared<code_cache>();
        one.own_trap = false;
        one.mask.reset();
        begin(one, out);
    }

    void begin(stepped& one, found& out) {
        if (!impl::peek(one.tid, impl::user_area::ip, one.ip) ||
            !impl::read_mode(one.tid, one.mode)) {
            return;
        }
        if (sizeof(void*) == 4 && one.mode == record::program_mode::lp64) {
            throw trace_ring::setup_error(
                "single_step", "a 32-bit tracer cannot step a 64-bit program", EOPNOTSUPP);
        }
        one.begins = false;
        if (!one.leaves) one.mask.hide(one.tid);
        if (!one.own_trap) impl::hide_trap_flag_in_r11(one.tid);
        put(out, one, branch::only_to(one.ip));
    }

    /// Handles a thread's end. If a signal killed it, reports where.
    [[nodiscard]] bool end(stepped& one, int status, found& out) {
        if (WIFSIGNALED(status) && one.signalled) {
            put(out, one,
                branch::only_from(one.signal_from,
                                  one.by_itself ? branch_kind::exception : branch_kind::signal));
        }
        if (one.tid == first_) status_ = status;
        threads_.remove(one.tid);
        if (threads_.empty()) awake_.store(0, relaxed);  // relaxed: as in stop
        return false;
    }

    static void put(found& out, const stepped& one, branch record) noexcept {
        record.set_thread(static_cast<std::uint32_t>(one.tid));
        record.set_privilege(x86::branch_privilege::user);
        if (out.count < out.records.size()) out.records[out.count++] = record;
    }

    // --- The threads -----------------------------------------------------------------------------
    void go_on(stepped& one, int signal) {
        awake_.store(one.tid, relaxed);  // relaxed: as in stop
        const bool by_kernel = goes_by_kernel(one, signal);
        if (by_kernel) {
            if (!one.entered && !one.own_trap) impl::take_trap_flag(one.tid);
        } else if (!one.own_trap && loads_flags_unseen(one)) {
            // As after any other popf, a set flag then belongs to the program.
            impl::set_own_trap_flag(one.tid);
        }
        // If the thread is gone, the next wait reports its end.
        static_cast<void>(by_kernel ? impl::go_to_system_call(one.tid, signal)
                                    : impl::step(one.tid, signal));
    }
    /// Whether the next instruction is a system call. It is entered and left without the trap flag,
    /// which would otherwise be visible in a register, also to a child that it creates.
    [[nodiscard]] bool goes_by_kernel(stepped& one, int signal) {
        if (one.entered) return true;
        if (one.begins) return false;
        const bool is_call =
            one.restarts || (one.code->at(one.tid, one.ip, one.mode).is == what::enters_kernel &&
                             one.code->is_still_system_call(one.tid, one.ip, one.mode));
        // A handler is stepped. Other signals stop the thread, or have no effect.
        return is_call && (signal == 0 || !impl::has_handler(one.process, signal));
    }
    /// Whether a popf or an iret is executed in one step with the instruction before it. The kernel
    /// checks only the first one, and would attribute the flag to the tracer.
    [[nodiscard]] bool loads_flags_unseen(stepped& one) {
        const branch_instruction& first = one.code->at(one.tid, one.ip, one.mode);
        if (!first.delays_trap) return false;
        const std::uint64_t behind = one.ip + first.length;  // `first` may end with the next
        return one.code->at(one.tid, behind, one.mode).does == branch_instruction::flags::loads;
    }

    step_options options_;
    ::pid_t own_;
    ::pid_t first_;
    impl::stepped_threads threads_;
    std::vector<branch> first_records_;
    std::uint64_t steps_ = 0;
    std::optional<int> status_;
    trace_ring::atomic<int> stop_{0};
    trace_ring::atomic<::pid_t> awake_{0};
};
static_assert(x86::branch_source<single_step>);

}  // namespace branch_trace
