// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "ptrace_source.hpp"

#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>

#include "../../branch_trace/step/traced_program.hpp"
#include "../../launching/process_memory.hpp"
#include "../firings/asked_values.hpp"

namespace trace_clauses {
namespace {

using branch_trace::impl::is_thread_of;
using branch_trace::impl::read_event_message;
using branch_trace::impl::read_signal;

/// Returns whether two processes share memory; `otherwise` if the kernel does not report this.
[[nodiscard]] bool share_memory(::pid_t one, ::pid_t other, bool otherwise) noexcept {
    const long found = ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
    return found < 0 ? otherwise : found == 0;
}
/// Whether an int3 that this thread has executed is still queued.
[[nodiscard]] bool trap_is_queued(::pid_t tid) noexcept {
    std::array<::siginfo_t, 64> found;
    ::__ptrace_peeksiginfo_args args{};
    args.nr = static_cast<std::int32_t>(found.size());
    const long count = ::ptrace(PTRACE_PEEKSIGINFO, tid, &args, found.data());
    return std::any_of(found.begin(), found.begin() + std::max(count, 0L),
                       [](const ::siginfo_t& one) { return one.si_signo == SIGTRAP; });
}
}  // namespace

ptrace_source::ptrace_source(const point::clauses& session, from begin, std::uint32_t stack_bytes,
                             std::function<void(::pid_t)> mapped)
    : session_(session), runs_(session, stack_bytes), begin_(begin), mapped_(std::move(mapped)) {
    ::sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &child, &signals_before_);
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &by_default, &child_action_before_);
}
ptrace_source::~ptrace_source() {
    detach();
    ::sigaction(SIGCHLD, &child_action_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

// --- What is traced ---------------------------------------------------------------------------

void ptrace_source::attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                           std::optional<std::uint32_t> entry) {
    if (at.process < 0) {
        throw std::runtime_error(
            "all processes can only be traced by the kernel's BPF and uprobes, as root may");
    }
    if (is_system_call(at.part))
        throw std::runtime_error("system calls can only be traced by the kernel's BPF");
    const bool known = std::any_of(threads_.begin(), threads_.end(), [&](const auto& one) {
        return one.second.process == at.process;
    });
    if (!known) seize(at.process);
    std::optional<std::uint32_t> keeps;
    if (entry) keeps = runs_.install({&*entry, 1});
    points_.add(at, runs_.install(clauses), entry || asks_elapsed(session_, clauses), keeps);
    places_are_known_ = false;
}

void ptrace_source::seize(::pid_t process) {
    constexpr long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                             PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC;
    const std::string name = "process " + std::to_string(process);
    const auto refuse = [&](int error) {
        throw std::runtime_error(
            name + " cannot be traced: " +
            (error == EPERM ? "it is another user's, or traced already, or the system forbids it "
                              "(kernel.yama.ptrace_scope, or a container's rules)"
                            : std::strerror(error)));
    };
    // The first thread may have ended before the others.
    const ::pid_t first = launching::living_thread_of(process);
    if (::ptrace(PTRACE_SEIZE, first, nullptr, options) != 0) refuse(errno);
    const auto memory = std::make_shared<address_space>(process);
    threads_[first] = {.tid = first, .process = process, .memory = memory};
    // Threads started during this loop are traced from their beginning, and PTRACE_SEIZE fails for
    // them here.
    for (bool more = true; more;) {
        more = false;
        std::error_code gone;
        for (const auto& each : std::filesystem::directory_iterator(
                 "/proc/" + std::to_string(process) + "/task", gone)) {
            const auto tid =
                static_cast<::pid_t>(std::strtol(each.path().filename().c_str(), nullptr, 10));
            if (threads_.contains(tid) || ::ptrace(PTRACE_SEIZE, tid, nullptr, options) != 0)
                continue;
            threads_[tid] = {.tid = tid, .process = process, .memory = memory};
            more = true;
        }
    }
}

// --- What happens -----------------------------------------------------------------------------

void ptrace_source::set_points() {
    if (places_are_known_ || begin_ != from::now) return;
    std::set<std::pair<address_space*, ::pid_t>> all;
    for (const auto& [tid, one] : threads_) {
        if (!one.silent && !one.leaves) all.emplace(one.memory.get(), one.process);
    }
    for (const auto& [memory, process] : all) points_.set_in(*memory, process);
    places_are_known_ = true;
}

bool ptrace_source::wait(int milliseconds) {
    set_points();
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::milliseconds(milliseconds);
    while (!runs_.much()) {
        while (!with_status_.empty()) {
            const auto one = threads_.find(with_status_.back());
            with_status_.pop_back();
            if (one == threads_.end() || !one->second.status) continue;
            const int status = *one->second.status;
            one->second.status.reset();
            look(one->second, status);
        }
        int status = 0;
        const ::pid_t tid = wait_for(-1, status, WNOHANG);
        if (tid > 0) take(tid, status);
        const auto left = end - clock::now();
        if (left.count() <= 0) break;
        // A signal to this process also ends the wait.
        if (tid <= 0 && !await_child(left)) break;
    }
    return runs_.any();
}

void ptrace_source::take(::pid_t tid, int status) {
    const auto one = threads_.find(tid);
    if (one == threads_.end()) {
        if (WIFSTOPPED(status)) {
            early_[tid] = status;
        } else {
            early_.erase(tid);
            ended_[tid] = status;
        }
        return;
    }
    one->second.stands_still = true;
    look(one->second, status);
}

void ptrace_source::look(traced_thread& one, int status) {
    if (!WIFSTOPPED(status)) return ended(one, status);
    const int signal = WSTOPSIG(status);
    switch (event_of(status)) {
        case 0:
            if (signal == SIGTRAP && has_hit(one)) return;
            one.signals.push_back(signal);
            break;
        case PTRACE_EVENT_EXEC:
            return executed(one);
        case PTRACE_EVENT_CLONE:
        case PTRACE_EVENT_FORK:
        case PTRACE_EVENT_VFORK:
            born(one, event_of(status) == PTRACE_EVENT_VFORK);
            break;
        case PTRACE_EVENT_VFORK_DONE:
            one.waits_for_child = false;
            break;
        case PTRACE_EVENT_STOP:
            if (one.leaves) {
                if (one.memory != nullptr) one.memory->restore();
                return let_go(one);
            }
            if (signal != SIGTRAP) {  // the whole process is stopped, until SIGCONT
                static_cast<void>(::ptrace(PTRACE_LISTEN, one.tid, nullptr, nullptr));
                one.stands_still = false;
                return;
            }
            break;
        default:
            break;
    }
    one.go_on();
}

void ptrace_source::ended(traced_thread& one, int status) {
    const ::pid_t process = one.process;
    if (one.tid == process) ended_[process] = status;
    threads_.erase(one.tid);
    const bool others = std::any_of(threads_.begin(), threads_.end(), [&](const auto& each) {
        return each.second.process == process;
    });
    if (others) return;
    entered_.erase(process);
    // If its first thread ended earlier, that thread is not traced.
    ended_.try_emplace(process, status);
}

/// Another program has replaced the previous one, and this is the only thread of its process.
void ptrace_source::executed(traced_thread& one) {
    const ::pid_t process = one.process;
    std::erase_if(threads_, [&](const auto& other) {
        return other.second.process == process && other.first != one.tid;
    });
    if (one.silent) return let_go(one);
    try {
        one.memory = std::make_shared<address_space>(process);
    } catch (const std::runtime_error&) {  // it now belongs to another user
        return let_go(one);
    }
    one.returns.clear();
    one.comm = {};
    entered_.erase(process);
    begin_ = from::now;
    places_are_known_ = true;
    points_.set_in(*one.memory, process);
    if (mapped_) mapped_(process);
    one.go_on();
}

void ptrace_source::born(traced_thread& parent, bool by_vfork) {
    const ::pid_t tid = read_event_message(parent.tid);
    if (tid == 0) return;
    const bool is_thread = is_thread_of(parent.process, tid);
    traced_thread made{.tid = tid, .process = is_thread ? parent.process : tid};
    const bool shares = is_thread || share_memory(parent.tid, tid, by_vfork);
    made.silent = parent.silent || (!is_thread && shares);
    made.leaves = !shares;
    if (shares) {
        made.memory = parent.memory;
    } else {
        try {
            made.memory = std::make_shared<address_space>(tid);
            made.memory->copy_from(*parent.memory);
        } catch (const std::runtime_error&) {
            made.memory = nullptr;  // killed already
        }
    }
    parent.waits_for_child = by_vfork;
    traced_thread& child = threads_[tid] = std::move(made);
    if (const auto early = early_.find(tid); early != early_.end()) {
        child.stands_still = true;
        child.status = early->second;
        with_status_.push_back(tid);
        early_.erase(early);
    }
}

bool ptrace_source::has_hit(traced_thread& one) {
    thread_registers registers{};
    if (!one.met_breakpoint(registers)) return false;
    const breakpoint* here = one.memory->at(registers.rip);
    if (!one.silent) {
        const bool by_jump = one.jumps_with == registers.rsp && one.jumps_to == registers.rip;
        one.jumps_with = one.jumps_to = 0;
        if (here->is_loader) {
            points_.set_in(*one.memory, one.process);
            if (mapped_) mapped_(one.process);
            here = one.memory->at(registers.rip);
        }
        if (here != nullptr && here->is_return_site) returned(one, registers);
        if (here != nullptr) {
            // A function reached by a tail call returns together with the functions that it was
            // reached from.
            if (!by_jump) forget_left(one, here->points, registers);
            for (const std::uint32_t each : here->entered)
                entered_[one.process].enter(each, registers.rsp, begin(one, each, registers));
            for (const std::uint32_t each : here->points) {
                switch (points_[each].at.part) {
                    case function_part::exit:
                        await_return(one, each, registers);
                        break;
                    case function_part::returning: {
                        if (!points_[each].is_noted) {
                            fire(one, each, registers);
                            break;
                        }
                        const entered_call begun = entered_[one.process].leave(each, registers.rsp);
                        fire(one, each, registers, &begun);
                        break;
                    }
                    default:
                        fire(one, each, registers);
                }
            }
        }
    }
    if (here == nullptr) {
        static_cast<void>(one.set_registers(registers));
    } else {
        const bool jumps = here->is_tail_jump;
        pass(one, registers, *here);
        if (jumps && !one.status && one.get_registers(registers)) {
            one.jumps_with = registers.rsp;
            one.jumps_to = registers.rip;
        }
    }
    if (!one.status) one.go_on();
    return true;
}

void ptrace_source::fire(traced_thread& one, std::uint32_t point, const thread_registers& registers,
                         const entered_call* begun) {
    runs_.fire(one, registers, points_[point].at.part, points_[point].number, begun);
}

entered_call ptrace_source::begin(const traced_thread& one, std::uint32_t point,
                                  const thread_registers& registers) const {
    entered_call made{.time = trace_ring::clock::monotonic::now()};
    if (points_[point].entry) made.kept = runs_.kept(one, registers, *points_[point].entry);
    return made;
}

/// A call of one of these points' functions has put its return address where other calls had
/// theirs: those calls were left without a return. Calls further down on this stack were left too,
/// but they may be on a different stack. They are dropped only when there are too many.
void ptrace_source::forget_left(traced_thread& one, std::span<const std::uint32_t> points,
                                const thread_registers& registers) {
    const bool any = std::any_of(points.begin(), points.end(), [this](std::uint32_t each) {
        return points_[each].at.part == function_part::exit;
    });
    if (!any) return;
    std::erase_if(one.returns, [&](const awaited_return& other) {
        const bool is_same = std::find(points.begin(), points.end(), other.point) != points.end();
        return other.stack == registers.rsp && (is_same || !points_[other.point].at.jumps.empty());
    });
}

void ptrace_source::await_return(traced_thread& one, std::uint32_t point,
                                 const thread_registers& registers) {
    constexpr std::size_t most_awaited = 65536;
    if (one.returns.size() >= most_awaited) {
        std::erase_if(one.returns,
                      [&](const awaited_return& other) { return other.stack < registers.rsp; });
        if (one.returns.size() >= most_awaited) return runs_.drop(points_[point].number);
    }
    const auto site = read_word(one.tid, registers.rsp, word_bytes_of(registers));
    breakpoint* const there = site ? one.memory->insert(*site) : nullptr;
    if (there == nullptr) {
        return runs_.drop(points_[point].number);
    }
    there->is_return_site = true;
    one.returns.push_back({registers.rsp, *site, point, begin(one, point, registers)});
}

void ptrace_source::returned(traced_thread& one, const thread_registers& registers) {
    const std::size_t word = word_bytes_of(registers);
    // In 32-bit programs, the called function may remove its arguments from the stack.
    const std::size_t most_taken = word == 8 ? 0 : 256;
    // Of the calls that return here, the most recent one comes first.
    std::vector<awaited_return> ended;
    const auto returns_here = [&](const awaited_return& of) {
        return of.site == registers.rip && of.stack < registers.rsp &&
               registers.rsp - of.stack - word <= most_taken;
    };
    while (true) {
        const auto last = std::find_if(one.returns.rbegin(), one.returns.rend(), returns_here);
        if (last == one.returns.rend()) break;
        ended.push_back(*last);
        one.returns.erase(std::next(last).base());
    }
    for (const awaited_return& each : ended) fire(one, each.point, registers, &each.begun);
}

// --- Going on behind a breakpoint ---------------------------------------------------------------

void ptrace_source::pass(traced_thread& one, thread_registers& registers, const breakpoint& of) {
    if (one.pass_by_hand(registers, of)) return;
    std::vector<traced_thread*> others;
    for (auto& [tid, other] : threads_) {
        if (other.memory == one.memory && !other.stands_still && !other.waits_for_child &&
            &other != &one)
            others.push_back(&other);
    }
    if (others.empty() || !one.step_elsewhere(registers, of)) {
        std::erase_if(others, [this](traced_thread* other) { return !stop(*other); });
        one.step_in_place(registers, of);
        for (traced_thread* const other : others) {
            if (!other->status) other->go_on();
        }
    }
    if (one.status) with_status_.push_back(one.tid);
}

/// Returns false if the thread cannot be stopped now; it stops when it can.
bool ptrace_source::stop(traced_thread& one) {
    const bool stopped = one.stop();
    if (one.status) with_status_.push_back(one.tid);
    return stopped;
}

// --- Leaving ----------------------------------------------------------------------------------

/// Determines where a thread that stopped to be released continues, and with which signal.
void ptrace_source::set_back(traced_thread& one) {
    thread_registers registers{};
    if (!one.status) {
        if (one.memory == nullptr || !one.get_registers(registers) ||
            one.memory->at(registers.rip - 1) == nullptr || !trap_is_queued(one.tid))
            return;
        int status = 0;
        if (::ptrace(PTRACE_CONT, one.tid, nullptr, nullptr) != 0 ||
            wait_for(one.tid, status, 0) != one.tid)
            return;
        one.status = status;
    }
    const int status = *one.status;
    one.status.reset();
    if (!WIFSTOPPED(status)) {
        one.stands_still = false;
        return ended(one, status);
    }
    switch (event_of(status)) {
        case 0:
            if (WSTOPSIG(status) == SIGTRAP && one.met_breakpoint(registers)) {
                static_cast<void>(one.set_registers(registers));
            } else {
                one.signals.push_back(WSTOPSIG(status));
            }
            return;
        case PTRACE_EVENT_CLONE:
        case PTRACE_EVENT_FORK:
        case PTRACE_EVENT_VFORK:
            return born(one, event_of(status) == PTRACE_EVENT_VFORK);
        case PTRACE_EVENT_EXEC:
            one.memory = nullptr;
            return;
        case PTRACE_EVENT_VFORK_DONE:
            one.waits_for_child = false;
            return;
        default:
            return;
    }
}

void ptrace_source::let_go(traced_thread& one) noexcept {
    const int signal = one.signals.empty() ? 0 : one.signals.front();
    static_cast<void>(::ptrace(PTRACE_DETACH, one.tid, nullptr, static_cast<long>(signal)));
    threads_.erase(one.tid);
}

void ptrace_source::detach() noexcept {
    // All threads are stopped, including threads that start during this loop.
    std::set<::pid_t> left;
    for (bool more = true; more;) {
        more = false;
        for (auto at = threads_.begin(); at != threads_.end();) {
            traced_thread& one = (at++)->second;
            if (one.waits_for_child || left.contains(one.tid) || !stop(one)) continue;
            left.insert(one.tid);
            more = true;
            set_back(one);
        }
    }
    for (const auto& [tid, one] : threads_) {
        if (one.memory != nullptr) one.memory->restore();
    }
    for (auto at = threads_.begin(); at != threads_.end();) {
        traced_thread& one = (at++)->second;
        if (one.stands_still) let_go(one);
    }
    // Children of threads in vfork continue now, and so do these threads when the children are
    // done.
    while (!threads_.empty()) {
        traced_thread& one = threads_.begin()->second;
        int status = 0;
        int tries = one.waits_for_child ? 1000 : 1;
        while (wait_for(one.tid, status, WNOHANG) == 0 && --tries > 0)
            static_cast<void>(await_child(std::chrono::milliseconds(1)));
        let_go(one);  // if it has stopped
    }
    early_.clear();
    with_status_.clear();
    points_.clear();
}

}  // namespace trace_clauses
