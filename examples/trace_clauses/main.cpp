// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file trace-clauses: traces running 32- and 64-bit programs by clauses.

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>

#include "../counted.hpp"
#include "../launching/launched_program.hpp"
#include "../launching/outliving.hpp"
#include "../launching/signals.hpp"
#include "firings/stack_snapshot.hpp"
#include "kernel/bpf_system.hpp"
#include "kernel/kernel_source.hpp"
#include "kernel/process_numbers.hpp"
#include "language/dump.hpp"
#include "options.hpp"
#include "points/candidates.hpp"
#include "points/find_points.hpp"
#include "ptrace/ptrace_source.hpp"
#include "session/harm.hpp"
#include "session/module_records.hpp"
#include "session/plan.hpp"
#include "session/results.hpp"
#include "session/source.hpp"
#include "session/stored_values.hpp"
#include "session/whole_lines.hpp"
#include "stacks/loaded_code.hpp"
#include "stacks/stack_unwinder.hpp"

namespace trace_clauses {
namespace {

namespace tr = trace_ring;
using launching::launched_program;
using launching::outliving;
using launching::signal_taker;

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) {
    interrupted = 1;
}

[[nodiscard]] std::string script_of(const options& wanted) {
    std::string all;
    for (const auto& name : wanted.scripts) {
        std::ifstream in(name);
        std::string text(expressions::longest_script + 1, '\0');
        in.read(text.data(), static_cast<std::streamsize>(text.size()));
        text.resize(static_cast<std::size_t>(in.gcount()));
        if (text.empty()) throw std::runtime_error(name + ": cannot be read, or is empty");
        all += text + "\n";
    }
    for (std::size_t i = 0; i < wanted.clauses.size(); ++i) {
        all += (i == 0 ? "" : "\n") + wanted.clauses[i];
    }
    return all;
}

/// A firing of the session itself, at its begin and its end, without a function and without memory.
struct own_firing {
    [[nodiscard]] static std::uint64_t word(point::context_word of) noexcept {
        using point::context_word;
        switch (of) {
            case context_word::time:
                return tr::clock::monotonic::now();
            case context_word::process:
            case context_word::thread:
                return static_cast<std::uint64_t>(::getpid());
            case context_word::user:
                return ::getuid();
            case context_word::bits:
                return 64;
            case context_word::command:
            case context_word::command_rest: {
                char name[16]{};
                std::uint64_t words[2];
                ::prctl(PR_GET_NAME, name);
                std::memcpy(words, name, sizeof words);
                return words[of == context_word::command ? 0 : 1];
            }
            default:
                return 0;
        }
    }
    [[nodiscard]] static std::optional<std::uint64_t> argument(unsigned) noexcept {
        return std::nullopt;
    }
    [[nodiscard]] static std::uint64_t reg(unsigned) noexcept { return 0; }
    [[nodiscard]] static bool read(std::uint64_t, std::span<std::byte>) noexcept { return false; }
    [[nodiscard]] static std::optional<std::size_t> read_text(std::uint64_t,
                                                              std::span<std::byte>) noexcept {
        return std::nullopt;
    }
    [[nodiscard]] static std::size_t stack(std::span<std::uint64_t>) noexcept { return 0; }
};

class session {
public:
    session(const options& wanted, const plan& of) : wanted_(wanted), plan_(of) {
        if (wanted.from == options::source::ptrace) {
            using from = ptrace_source::from;
            source_ = std::make_unique<source_of<ptrace_source>>(
                of.code, wanted.command.empty() ? from::now : from::next_program, stack_bytes(),
                [this](::pid_t process) {
                    if (code_ != nullptr) code_->look(process);
                });
        } else {
            source_ =
                std::make_unique<source_of<kernel_source>>(of.code, wanted.ring, stack_bytes());
        }
        if (!wanted.output.empty()) {
            to_ = std::make_unique<results::recorder>(
                tr::recorder_options{.file = wanted.output,
                                     .size = wanted.size,
                                     .quotas = {module_records::quota_of(wanted.size)},
                                     .exists = tr::if_exists::replace});
        }
        bool any_stack = false;
        for (const auto& each : of.code_of) {
            auto& stacks = stacks_of_.emplace_back();
            for (const statement& one : each.statements) {
                for (const stored_field& field : one.fields)
                    if (is_stack(field)) stacks.push_back(&field);
            }
            any_stack = any_stack || !stacks.empty();
        }
        if (any_stack) {
            code_ = std::make_unique<loaded_code>();
            unwinder_ = std::make_unique<stack_unwinder>(*code_);
        }
        results_ = std::make_unique<results>(to_.get(), out_, code_.get());
        for (const auto& each : of.code_of)
            results_->add(each.name, each.statements, each.clause, of.clauses[each.clause].name);
        for (const auto& [entry, exit] : of.spans) results_->join(entry, exit);
    }

    /// Prints the name of the started program, which may end before its name can be read.
    void started(::pid_t process) {
        const std::string& file = wanted_.command.front();
        results_->name(static_cast<std::uint32_t>(process), file.substr(file.rfind('/') + 1));
    }
    void begin() {
        // Printed only after all points are attached: the kernel may refuse them, and then another
        // session starts, by ptrace.
        const std::vector<own_result> begun = run_once(plan_.at_begin);
        if (wanted_.children) {
            for (const auto& each : plan_.points)
                if (each.at.process >= 0) source_->follow_children(each.at.process);
        }
        const std::vector<std::string> left_out = attach();
        tell(begun);
        if (!wanted_.quiet) {
            for (const auto* const notes : {&plan_.notes, &left_out})
                for (const auto& each : *notes) std::cerr << "trace-clauses: " << each << '\n';
            if (plan_.points.size() > 1) {
                std::cerr << "trace-clauses: " << counted(attached_, "point", "points") << '\n';
            }
        }
        shown_at_ = std::chrono::steady_clock::now();
    }
    /// Processes what was captured since, after a wait of at most 50 ms.
    void go_on() {
        source_->wait(50);
        take();
        using seconds = std::chrono::duration<double>;
        const auto now = std::chrono::steady_clock::now();
        if (wanted_.interval > 0 && seconds(now - shown_at_).count() >= wanted_.interval) {
            shown_at_ = now;
            results_->show();
        }
    }
    /// Returns whether a program that this one has started has ended.
    [[nodiscard]] bool has_ended(launched_program& program) const {
        if (!source_->waits_for_processes()) return program.ended();
        const auto status = source_->status_of(program.process());
        if (status) program.ended_with(*status);
        return status.has_value();
    }
    /// The same for an existing process, as far as this can be detected.
    [[nodiscard]] bool has_ended(::pid_t process) const {
        if (source_->waits_for_processes()) return source_->status_of(process).has_value();
        return ::kill(process, 0) != 0 && errno != EPERM;
    }
    void end() {
        source_->detach();
        take();
        tell(run_once(plan_.at_end));
        results_->show();
        if (!wanted_.quiet) summarize();
    }

private:
    /// Sets all points. Returns the omitted ones with the reasons. Throws std::runtime_error if all
    /// are omitted.
    [[nodiscard]] std::vector<std::string> attach() {
        constexpr std::size_t many = 1000;
        if (plan_.points.size() >= many && !wanted_.quiet && ::isatty(STDERR_FILENO) == 1)
            std::cerr << "trace-clauses: setting " << plan_.points.size() << " points\n";
        const std::vector<point_left_out> without = source_->attach(plan_.points);
        attached_ = plan_.points.size() - without.size();
        std::map<std::string, std::vector<std::size_t>> by_cause;
        for (const auto& each : without) by_cause[each.cause].push_back(each.point);
        std::vector<std::string> notes;
        for (const auto& [cause, points] : by_cause) {
            const planned_point& first = plan_.points[points.front()];
            notes.push_back(
                with_others("'" + plan_.code_of[first.clauses.front()].name + "'", points.size()) +
                (points.size() == 1 ? " is" : " are") + " left out: " + cause);
        }
        if (attached_ == 0 && !notes.empty() && plan_.at_begin.empty() && plan_.at_end.empty())
            throw std::runtime_error(notes.front());
        return notes;
    }
    void take() {
        source_->read([this](const firing_record& of, std::span<const std::byte> output) {
            std::uint64_t& known = dropped_[of.cpu];
            if (of.dropped > known) results_->lost(of.dropped - known);
            known = std::max(known, of.dropped);
            results_->ran({.clause = of.clause,
                           .time = of.time,
                           .pid = of.pid,
                           .tid = of.tid,
                           .bits = static_cast<std::uint8_t>(of.bits),
                           .faults = of.faults,
                           .comm = {of.comm, ::strnlen(of.comm, sizeof of.comm)},
                           .call = of.call},
                          with_callers(of, output));
        });
        out_.flush();
    }
    /// The number of bytes of a stack that are copied; a multiple of the step.
    [[nodiscard]] std::uint32_t stack_bytes() const noexcept {
        return (wanted_.stack + stack_snapshot::step - 1) / stack_snapshot::step *
               stack_snapshot::step;
    }
    /// Returns a clause's output. If a snapshot follows it, the addresses in its stacks are
    /// replaced by those found with unwind information.
    [[nodiscard]] std::span<const std::byte> with_callers(const firing_record& of,
                                                          std::span<const std::byte> output) {
        const auto mode = of.bits == 64 ? program_mode::lp64 : program_mode::ilp32;
        const std::size_t bytes = plan_.code.stream_of(of.clause, mode).output_bytes;
        const auto snapshot = output.subspan(std::min(output.size(), snapshot_at(bytes)));
        if (unwinder_ == nullptr || snapshot.empty()) return output.first(bytes);
        unwound_.assign(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(bytes));
        const auto& stacks = stacks_of_[of.clause];
        std::uint32_t most = 0;
        for (const stored_field* const each : stacks) most = std::max(most, each->count);
        addresses_.assign(most, 0);
        const std::size_t count =
            unwinder_->unwind(static_cast<::pid_t>(of.pid), of.time, snapshot, addresses_);
        for (const stored_field* const each : stacks) {
            // The source has read the first address from the stack, so that one needs no unwind
            // information.
            if (count == 0) std::memcpy(addresses_.data(), unwound_.data() + each->offset, 8);
            std::memcpy(unwound_.data() + each->offset, addresses_.data(),
                        std::size_t{8} * each->count);
        }
        return unwound_;
    }
    /// The output of a clause at the session's begin or end.
    struct own_result {
        std::uint32_t clause;
        std::uint64_t time;
        std::uint32_t faults;
        std::vector<std::byte> output;
    };
    [[nodiscard]] std::vector<own_result> run_once(const std::vector<std::uint32_t>& clauses) {
        std::vector<own_result> out;
        for (const std::uint32_t each : clauses) {
            own_firing of;
            plan_.code.run_once(each, of, [&](const point::clause_result& ran) {
                if (ran.is != point::clause_result::ran) return;
                out.push_back({each,
                               tr::clock::monotonic::now(),
                               ran.faults,
                               {ran.output.begin(), ran.output.end()}});
            });
        }
        return out;
    }
    void tell(const std::vector<own_result>& all) {
        const auto self = static_cast<std::uint32_t>(::getpid());
        for (const own_result& each : all) {
            results_->ran({.clause = each.clause,
                           .time = each.time,
                           .pid = self,
                           .tid = self,
                           .bits = 64,
                           .faults = each.faults},
                          each.output);
        }
    }
    void summarize() {
        clause_counts all;
        std::map<std::string, std::uint64_t> unseen;  // by function
        for (std::uint32_t i = 0; i < plan_.code_of.size(); ++i) {
            const clause_counts one = source_->counts(i);
            all += one;
            if (one.unseen != 0) unseen[plan_.code_of[i].name] += one.unseen;
        }
        // Records dropped after the last one that was read.
        const std::uint64_t lost = all.dropped + all.unseen;
        if (lost > results_->lost()) results_->lost(lost - results_->lost());
        std::cerr << "trace-clauses: " << all.ran << " ran, " << all.not_wanted << " not wanted, "
                  << all.unreadable + results_->unreadable() << " unreadable, " << all.dropped
                  << " lost";
        if (all.unseen != 0) std::cerr << ", " << all.unseen << " returns not seen";
        if (source_->may_miss_returns()) std::cerr << ", returns not seen are not counted";
        if (results_->unrecorded() != 0)
            std::cerr << ", " << results_->unrecorded() << " not recorded";
        std::cerr << '\n';
        if (code_ != nullptr && code_->unnamed() != 0) {
            std::cerr << "trace-clauses: "
                      << counted(code_->unnamed(), "address in stacks has",
                                 "addresses in stacks have")
                      << " no name: no file is known to have been there\n";
        }
        if (unwinder_ != nullptr && unwinder_->cut() != 0) {
            std::cerr << "trace-clauses: "
                      << counted(unwinder_->cut(), "stack is cut: no more was copied of it",
                                 "stacks are cut: no more was copied of them")
                      << " (--stack)\n";
        }
        if (unwinder_ != nullptr && unwinder_->ended_early() != 0) {
            std::cerr << "trace-clauses: "
                      << counted(unwinder_->ended_early(), "stack ends", "stacks end")
                      << " at code whose unwind information is missing, or whose file "
                         "is not there\n";
        }
        if (code_ != nullptr && code_->lost() != 0) {
            std::cerr << "trace-clauses: the kernel has lost "
                      << counted(code_->lost(), "message", "messages")
                      << " of what was mapped: names in stacks may be missing or wrong\n";
        }
        if (unseen.empty()) return;
        std::cerr << "trace-clauses: returns not seen:";
        constexpr std::size_t most_named = 8;
        std::size_t named = 0;
        for (const auto& [name, count] : unseen) {
            if (named == most_named) break;
            std::cerr << (named++ == 0 ? " " : ", ") << name << ' ' << count;
        }
        if (unseen.size() > named)
            std::cerr << " and "
                      << counted(unseen.size() - named, "more function", "more functions");
        std::cerr
            << "; the kernel awaits 64 returns of a thread at most, and awaits for good those "
               "that a longjmp or an exception leaves out: then that thread's exits are "
               "unavailable (--source ptrace sees them)\n";
    }

    const options& wanted_;
    const plan& plan_;
    whole_lines lines_{STDOUT_FILENO};
    std::ostream out_{&lines_};
    std::unique_ptr<source> source_;
    std::unique_ptr<results::recorder> to_;
    std::unique_ptr<loaded_code> code_;  // if the clauses use stacks
    std::unique_ptr<stack_unwinder> unwinder_;
    std::vector<std::vector<const stored_field*>> stacks_of_;  // by code
    std::vector<std::byte> unwound_;
    std::vector<std::uint64_t> addresses_;
    std::unique_ptr<results> results_;
    std::map<std::uint32_t, std::uint64_t> dropped_;  // by processor
    std::size_t attached_ = 0;
    std::chrono::steady_clock::time_point shown_at_{};
};

[[nodiscard]] planning planning_for(const options& wanted, ::pid_t process) {
    return {.process = process,
            .has_all_registers = wanted.from == options::source::ptrace,
            .assumes_abi = wanted.assume_abi,
            .leaves_out = wanted.leave_out};
}
[[nodiscard]] candidates files_for(const options& wanted) {
    if (!wanted.command.empty()) return files_of_program(wanted.command.front());
    if (wanted.process != 0) return files_of_process(wanted.process);
    return wanted.all ? files_of_all() : files_of_cache();
}

/// The requested plan, without points that would harm the programs.
[[nodiscard]] plan plan_for(const options& wanted, const std::string& script, ::pid_t process) {
    plan made = make_plan(script, files_for(wanted), planning_for(wanted, process));
    leave_out_times_on_moving_stacks(made);
    const ::pid_t example = wanted.process != 0 ? wanted.process : ::getpid();
    if (wanted.from == options::source::ptrace) {
        const std::string harm = harm_by_ptrace(made, example);
        if (!harm.empty()) throw std::runtime_error("no tracing by ptrace: " + harm);
        return made;
    }
    const bool may_use_ptrace =
        wanted.from != options::source::kernel && !wanted.all && !wanted.children;
    leave_out_return_probes(made, may_use_ptrace, example);
    return made;
}

int trace_program(const options& wanted, const std::string& script) {
    launched_program program(wanted.command);
    const plan made = plan_for(wanted, script, program.process());
    session running(wanted, made);
    running.started(program.process());
    running.begin();
    const signal_taker taking(
        program.process(),
        [](void* of) { ::kill(static_cast<launched_program*>(of)->process(), SIGKILL); }, &program);
    program.go();
    bool ended = false;
    while (!(ended = running.has_ended(program)) && !outliving::is_abandoned()) running.go_on();
    running.end();
    if (!ended) program.leave();
    return ended ? launching::exit_status(*program.status()) : 0;
}

int trace_others(const options& wanted, const std::string& script) {
    const plan made = plan_for(wanted, script, wanted.all ? -1 : wanted.process);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) std::signal(each, interrupt);
    session running(wanted, made);
    running.begin();
    const auto ends = [&] {
        return interrupted != 0 || outliving::is_abandoned() ||
               (!wanted.all && running.has_ended(wanted.process));
    };
    while (!ends()) running.go_on();
    running.end();
    return 0;
}

int trace(const options& wanted, const std::string& script) {
    return wanted.command.empty() ? trace_others(wanted, script) : trace_program(wanted, script);
}
/// Breakpoints must be removed even if the user kills this process.
int trace_by_ptrace(options wanted, const std::string& script) {
    wanted.from = options::source::ptrace;
    if (const auto status = outliving::split("clauses-guard")) return *status;
    return trace(wanted, script);
}

int run(const options& wanted) {
    need_own_proc();
    if (!wanted.list.empty()) {
        for (const auto& each : list_points(wanted.list, files_for(wanted)))
            std::cout << each << '\n';
        return 0;
    }
    const std::string script = script_of(wanted);
    if (wanted.dump) {
        const plan made =
            make_plan(script, files_for(wanted), planning_for(wanted, wanted.process));
        for (std::uint32_t i = 0; i < made.code_of.size(); ++i)
            dump(std::cout, made.code, i, made.clauses[made.code_of[i].clause].text);
        return 0;
    }
    if (wanted.from == options::source::ptrace) return trace_by_ptrace(wanted, script);
    try {
        return trace(wanted, script);
    } catch (const kernel_refusal& why) {
        if (wanted.from == options::source::kernel || wanted.all || wanted.children) throw;
        std::cerr << "trace-clauses: " << why.what()
                  << "; breakpoints by ptrace are used instead\n";
    }
    return trace_by_ptrace(wanted, script);
}

}  // namespace
}  // namespace trace_clauses

int main(int argc, char** argv) {
    using namespace trace_clauses;
    options wanted;
    int status = 0;
    if (!parse(argc, argv, wanted, status)) return status;
    try {
        return run(wanted);
    } catch (const trace_ring::setup_error& error) {
        std::cerr << "trace-clauses: " << error.what() << '\n';
        return launching::status_of(error, wanted.command.empty() ? "" : wanted.command.front());
    } catch (const std::exception& error) {
        std::cerr << "trace-clauses: " << error.what() << '\n';
        return failed;
    }
}
