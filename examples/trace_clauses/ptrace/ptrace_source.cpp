// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "ptrace_source.hpp"

#include <elf.h>
#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>

#include <trace_ring/policy/clock/monotonic.hpp>

#include "../../branch_trace/step/traced_program.hpp"
#include "../points/program_file.hpp"
#include "by_hand.hpp"
#include "movable.hpp"

namespace trace_clauses {
namespace {

using branch_trace::impl::is_thread_of;
using branch_trace::impl::read_event_message;
using branch_trace::impl::read_signal;
using file_identity = std::pair<std::uint64_t, std::uint64_t>;

[[nodiscard]] file_identity identity_of(const std::string& file) noexcept {
    struct stat of {};
    if (::stat(file.c_str(), &of) != 0) return {};
    return {of.st_dev, of.st_ino};
}
[[nodiscard]] bool get_registers(::pid_t tid, thread_registers& into) noexcept {
    return ::ptrace(PTRACE_GETREGS, tid, nullptr, &into) == 0;
}
[[nodiscard]] bool set_registers(::pid_t tid, const thread_registers& from) noexcept {
    return ::ptrace(PTRACE_SETREGS, tid, nullptr, &from) == 0;
}
[[nodiscard]] ::pid_t wait_for(::pid_t tid, int& status, int options) noexcept {
    ::pid_t got = 0;
    while ((got = ::waitpid(tid, &status, __WALL | options)) < 0 && errno == EINTR) {
    }
    return got;
}
/// Whether a child has stopped or ended, or may have, within so long.
[[nodiscard]] bool await_child(std::chrono::nanoseconds most) noexcept {
    ::sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const ::timespec limit{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
    return ::sigtimedwait(&child, nullptr, &limit) == SIGCHLD;
}
[[nodiscard]] int event_of(int status) noexcept {
    return WIFSTOPPED(status) ? status >> 16 : 0;
}
/// Whether two processes have one memory; where the kernel does not say: `otherwise`.
[[nodiscard]] bool share_memory(::pid_t one, ::pid_t other, bool otherwise) noexcept {
    const long found = ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
    return found < 0 ? otherwise : found == 0;
}
/// R, S, D, Z and so on; a space if there is no such thread.
[[nodiscard]] char state_of(::pid_t tid) {
    std::ifstream in("/proc/" + std::to_string(tid) + "/stat");
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    const std::size_t behind = all.rfind(')');
    return behind == std::string::npos || behind + 2 >= all.size() ? ' ' : all[behind + 2];
}
/// An int3 that this thread has met already waits to be told.
[[nodiscard]] bool trap_is_queued(::pid_t tid) noexcept {
    std::array<::siginfo_t, 64> found;
    ::__ptrace_peeksiginfo_args args{};
    args.nr = static_cast<std::int32_t>(found.size());
    const long count = ::ptrace(PTRACE_PEEKSIGINFO, tid, &args, found.data());
    return std::any_of(found.begin(), found.begin() + std::max(count, 0L),
                       [](const ::siginfo_t& one) { return one.si_signo == SIGTRAP; });
}
}  // namespace

ptrace_source::ptrace_source(const point::clauses& session, from begin)
    : session_(session), begin_(begin), counts_(session.size()) {
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

void ptrace_source::attach(const kernel_point& at, std::span<const std::uint32_t> clauses) {
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
    points_.push_back({at, session_.install(clauses), identity_of(at.file)});
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
    if (::ptrace(PTRACE_SEIZE, process, nullptr, options) != 0) refuse(errno);
    const auto memory = std::make_shared<address_space>(process);
    threads_[process] = {.tid = process, .process = process, .memory = memory};
    // Those that threads start meanwhile are traced from their beginning, and refused here.
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

void ptrace_source::find_places(address_space& memory, ::pid_t process) {
    memory.forget_replaced();
    const std::vector<mapped_file> files = memory.files();
    std::map<std::string, file_identity> identities;
    for (const auto& each : files) {
        auto& identity = identities[each.path];
        if (identity == file_identity{}) identity = identity_of(each.path);
        if (identity == file_identity{}) continue;
        for (std::uint32_t i = 0; i < points_.size(); ++i) {
            const kernel_point& at = points_[i].at;
            if (at.process != process || points_[i].file != identity) continue;
            const auto is_in = [&](std::uint64_t offset) {
                return offset >= each.offset && offset - each.offset < each.end - each.begin;
            };
            if (each.is_data && at.semaphore != 0 && is_in(at.semaphore))
                memory.raise_semaphore(each.begin + (at.semaphore - each.offset));
            if (!each.is_code || !is_in(at.offset)) continue;
            breakpoint* const here = memory.insert(each.begin + (at.offset - each.offset));
            if (here == nullptr) continue;
            if (std::find(here->points.begin(), here->points.end(), i) == here->points.end())
                here->points.push_back(i);
        }
    }
    place_loader(memory, files);
}

/// The dynamic linker calls a function that is there for debuggers, before and after it maps
/// libraries.
void ptrace_source::place_loader(address_space& memory, const std::vector<mapped_file>& files) {
    const std::uint64_t base = memory.auxiliary(AT_BASE);
    const auto loader = std::find_if(files.begin(), files.end(), [&](const mapped_file& one) {
        return base >= one.begin && base < one.end;
    });
    if (base == 0 || loader == files.end()) return;
    if (!loaders_.contains(loader->path)) {
        auto& offset = loaders_[loader->path];
        try {
            const program_file file(loader->path);
            const auto found = file.functions("_dl_debug_state");
            if (!found.empty()) offset = found.front().function->offset;
        } catch (const std::runtime_error&) {
            // What it loads later is not seen then.
        }
    }
    const std::optional<std::uint64_t> offset = loaders_[loader->path];
    if (!offset) return;
    for (const auto& each : files) {
        if (each.path != loader->path || !each.is_code || *offset < each.offset ||
            *offset - each.offset >= each.end - each.begin)
            continue;
        breakpoint* const here = memory.insert(each.begin + (*offset - each.offset));
        if (here != nullptr) here->is_loader = true;
    }
}

// --- What happens -----------------------------------------------------------------------------

bool ptrace_source::wait(int milliseconds) {
    if (!places_are_known_ && begin_ == from::now) {
        std::set<std::pair<address_space*, ::pid_t>> all;
        for (const auto& [tid, one] : threads_) {
            if (!one.silent && !one.leaves) all.emplace(one.memory.get(), one.process);
        }
        for (const auto& [memory, process] : all) find_places(*memory, process);
        places_are_known_ = true;
    }
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::milliseconds(milliseconds);
    while (records_.size() < much_words) {
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
        // A signal to this process ends the wait, too.
        if (tid <= 0 && !await_child(left)) break;
    }
    return !records_.empty();
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

void ptrace_source::look(thread& one, int status) {
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
    go_on(one);
}

void ptrace_source::ended(thread& one, int status) {
    if (one.tid == one.process) ended_[one.tid] = status;
    threads_.erase(one.tid);
}

/// Another program is in place of the one before, and this is the only thread of its process.
void ptrace_source::executed(thread& one) {
    const ::pid_t process = one.process;
    std::erase_if(threads_, [&](const auto& other) {
        return other.second.process == process && other.first != one.tid;
    });
    if (one.silent) return let_go(one);
    try {
        one.memory = std::make_shared<address_space>(process);
    } catch (const std::runtime_error&) {  // it is another user's now
        return let_go(one);
    }
    one.returns.clear();
    begin_ = from::now;
    places_are_known_ = true;
    find_places(*one.memory, process);
    go_on(one);
}

void ptrace_source::born(thread& parent, bool by_vfork) {
    const ::pid_t tid = read_event_message(parent.tid);
    if (tid == 0) return;
    const bool is_thread = is_thread_of(parent.process, tid);
    thread made{.tid = tid, .process = is_thread ? parent.process : tid};
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
    thread& child = threads_[tid] = std::move(made);
    if (const auto early = early_.find(tid); early != early_.end()) {
        child.stands_still = true;
        child.status = early->second;
        with_status_.push_back(tid);
        early_.erase(early);
    }
}

/// Whether it stands behind a breakpoint of ours, which has stopped it: then its registers are as
/// they were before.
bool ptrace_source::met_breakpoint(const thread& one, thread_registers& registers) const {
    ::siginfo_t info{};
    if (one.memory == nullptr || !get_registers(one.tid, registers) ||
        one.memory->at(registers.rip - 1) == nullptr || !read_signal(one.tid, info) ||
        info.si_code <= 0) {
        return false;
    }
    --registers.rip;
    return true;
}

bool ptrace_source::has_hit(thread& one) {
    thread_registers registers{};
    if (!met_breakpoint(one, registers)) return false;
    const breakpoint* here = one.memory->at(registers.rip);
    if (!one.silent) {
        if (here->is_loader) {
            find_places(*one.memory, one.process);
            here = one.memory->at(registers.rip);
        }
        if (here != nullptr && here->is_return_site) returned(one, registers);
        if (here != nullptr) {
            for (const std::uint32_t each : here->points) {
                if (points_[each].at.part == function_part::exit) {
                    await_return(one, each, registers);
                } else {
                    fire(one, each, registers);
                }
            }
        }
    }
    if (here == nullptr) {
        static_cast<void>(set_registers(one.tid, registers));
    } else {
        pass(one, registers, *here);
    }
    if (!one.status) go_on(one);
    return true;
}

void ptrace_source::fire(const thread& one, std::uint32_t point,
                         const thread_registers& registers) {
    const stopped_firing at(one.tid, one.process, registers, points_[point].at.part);
    session_.fire(points_[point].number, at.mode(), at, [&](const point::clause_result& done) {
        kernel_counts& counted = counts_[done.clause];
        if (done.is == point::clause_result::not_wanted) ++counted.not_wanted;
        if (done.is == point::clause_result::unreadable) ++counted.unreadable;
        if (done.is != point::clause_result::ran) return;
        ++counted.ran;
        const bool wide = at.mode() == trace_ring::record::program_mode::lp64;
        const kernel_record head{.clause = done.clause,
                                 .faults = done.faults,
                                 .time = trace_ring::clock::monotonic::now(),
                                 .pid = static_cast<std::uint32_t>(one.process),
                                 .tid = static_cast<std::uint32_t>(one.tid),
                                 .cpu = 0,
                                 .bits = wide ? 64U : 32U,
                                 .dropped = dropped_,
                                 .comm = {}};
        const std::size_t words = (sizeof head + done.output.size() + 7) / 8;
        const std::size_t begin = records_.size();
        records_.resize(begin + 1 + words);
        records_[begin] = words;
        const auto into = std::as_writable_bytes(std::span(records_).subspan(begin + 1));
        std::memcpy(into.data(), &head, sizeof head);
        std::copy(done.output.begin(), done.output.end(), into.begin() + sizeof head);
    });
}

void ptrace_source::await_return(thread& one, std::uint32_t point,
                                 const thread_registers& registers) {
    // What was called with less on the stack has been left without a return; and what had its
    // return address in the same place, unless it has gone on as this function.
    std::erase_if(one.returns, [&](const awaited_return& other) {
        return other.stack < registers.rsp ||
               (other.stack == registers.rsp && other.point == point);
    });
    const auto site = read_word(one.process, registers.rsp, word_bytes_of(registers));
    breakpoint* const there = site ? one.memory->insert(*site) : nullptr;
    if (there == nullptr) {
        for (const std::uint32_t each : session_.at(points_[point].number)) {
            ++counts_[each].dropped;
            ++dropped_;
        }
        return;
    }
    there->is_return_site = true;
    one.returns.push_back({registers.rsp, *site, point});
}

void ptrace_source::returned(thread& one, const thread_registers& registers) {
    const std::size_t word = word_bytes_of(registers);
    // In 32-bit programs the called function may take its arguments from the stack.
    const std::size_t most_taken = word == 8 ? 0 : 256;
    while (!one.returns.empty() && one.returns.back().stack < registers.rsp) {
        const awaited_return last = one.returns.back();
        one.returns.pop_back();
        if (last.site == registers.rip && registers.rsp - last.stack - word <= most_taken)
            fire(one, last.point, registers);
    }
}

// --- Going on behind a breakpoint -------------------------------------------------------------

void ptrace_source::pass(thread& one, thread_registers& registers, const breakpoint& of) {
    if (pass_by_hand(one, registers, of)) return;
    std::vector<thread*> others;
    for (auto& [tid, other] : threads_) {
        if (other.memory == one.memory && !other.stands_still && !other.waits_for_child &&
            &other != &one)
            others.push_back(&other);
    }
    if (!others.empty() && step_elsewhere(one, registers, of)) return;
    std::erase_if(others, [this](thread* other) { return !stop(*other); });
    step_in_place(one, registers, of);
    for (thread* const other : others) {
        if (!other->status) go_on(*other);
    }
}

bool ptrace_source::pass_by_hand(const thread& one, thread_registers& registers,
                                 const breakpoint& of) const {
    struct {
        ::pid_t process;
        [[nodiscard]] bool read(std::uint64_t at, std::span<std::byte> into) const noexcept {
            return read_memory(process, at, into);
        }
        [[nodiscard]] bool write(std::uint64_t at, std::span<const std::byte> from) const noexcept {
            return write_memory(process, at, from);
        }
    } memory{one.process};
    return execute_by_hand(of.code, registers, memory) && set_registers(one.tid, registers);
}

/// Executes a copy of the instruction, where nothing else comes by, so that the breakpoint stays
/// for others.
bool ptrace_source::step_elsewhere(thread& one, thread_registers& registers, const breakpoint& of) {
    const std::uint64_t there = one.memory->entry();
    std::array<std::byte, breakpoint::most_code> before{};
    if (there == 0 || !is_movable(of.code, mode_of(registers)) ||
        !one.memory->read(there, before) || !one.memory->write(there, of.code))
        return false;
    const std::uint64_t here = registers.rip;
    registers.rip = there;
    if (set_registers(one.tid, registers)) {
        step(one);
        if (get_registers(one.tid, registers) && registers.rip - there < before.size()) {
            registers.rip += here - there;
            static_cast<void>(set_registers(one.tid, registers));
        }
    }
    static_cast<void>(one.memory->write(there, before));
    return true;
}

void ptrace_source::step_in_place(thread& one, const thread_registers& registers,
                                  const breakpoint& of) {
    const std::uint64_t here = registers.rip;
    if (!set_registers(one.tid, registers)) return;
    one.memory->lift(here, of);
    step(one);
    one.memory->lower(here);
}

/// One instruction, or less if that raises a signal: it is given to the thread when it goes on.
void ptrace_source::step(thread& one) {
    while (::ptrace(PTRACE_SINGLESTEP, one.tid, nullptr, nullptr) == 0) {
        int status = 0;
        if (wait_for(one.tid, status, 0) != one.tid) return;
        if (!WIFSTOPPED(status) ||
            (event_of(status) != 0 && event_of(status) != PTRACE_EVENT_STOP)) {
            one.status = status;  // it has ended, or the instruction is a system call
            with_status_.push_back(one.tid);
            return;
        }
        if (event_of(status) == PTRACE_EVENT_STOP) continue;
        const int signal = WSTOPSIG(status);
        ::siginfo_t info{};
        const bool by_itself = read_signal(one.tid, info) && info.si_code > 0;
        if (signal == SIGTRAP && by_itself) return;
        one.signals.push_back(signal);
        if (by_itself &&
            (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE))
            return;
    }
}

/// False: it cannot be stopped now, and stops when it can.
bool ptrace_source::stop(thread& one) {
    if (one.stands_still) return true;
    if (::ptrace(PTRACE_INTERRUPT, one.tid, nullptr, nullptr) != 0) return false;
    int status = 0;
    for (int tries = 0;; ++tries) {
        const ::pid_t got = wait_for(one.tid, status, WNOHANG);
        if (got < 0) return false;
        if (got == one.tid) break;
        static_cast<void>(await_child(std::chrono::milliseconds(1)));
        // In the kernel, or the first thread of a process, which has ended before the others.
        if (tries % 16 == 15) {
            const char state = state_of(one.tid);
            if (state == 'Z' || state == 'X' || (state == 'D' && tries > 100)) return false;
        }
    }
    one.stands_still = true;
    if (event_of(status) == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP) return true;
    one.status = status;
    with_status_.push_back(one.tid);
    return true;
}

void ptrace_source::go_on(thread& one) noexcept {
    // It takes one signal; others are sent anew.
    int signal = 0;
    if (!one.signals.empty()) {
        signal = one.signals.front();
        for (std::size_t i = 1; i < one.signals.size(); ++i)
            ::syscall(SYS_tgkill, one.process, one.tid, one.signals[i]);
        one.signals.clear();
    }
    one.stands_still = false;
    // If it is gone, its end is told next.
    static_cast<void>(::ptrace(PTRACE_CONT, one.tid, nullptr, static_cast<long>(signal)));
}

// --- Leaving ----------------------------------------------------------------------------------

/// It has stopped, to be left: where it is to go on, and with which signal.
void ptrace_source::set_back(thread& one) {
    thread_registers registers{};
    if (!one.status) {
        if (one.memory == nullptr || !get_registers(one.tid, registers) ||
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
            if (WSTOPSIG(status) == SIGTRAP && met_breakpoint(one, registers)) {
                static_cast<void>(set_registers(one.tid, registers));
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

void ptrace_source::let_go(thread& one) noexcept {
    const int signal = one.signals.empty() ? 0 : one.signals.front();
    static_cast<void>(::ptrace(PTRACE_DETACH, one.tid, nullptr, static_cast<long>(signal)));
    threads_.erase(one.tid);
}

void ptrace_source::detach() noexcept {
    // Each thread stands still, also those that are born meanwhile.
    std::set<::pid_t> left;
    for (bool more = true; more;) {
        more = false;
        for (auto at = threads_.begin(); at != threads_.end();) {
            thread& one = (at++)->second;
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
        thread& one = (at++)->second;
        if (one.stands_still) let_go(one);
    }
    // The children of those in vfork go on now, and so do they then.
    while (!threads_.empty()) {
        thread& one = threads_.begin()->second;
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
