// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "harm.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "../firings/asked_values.hpp"
#include "../kernel/bpf_system.hpp"
#include "../points/find_points.hpp"
#include "../points/stack_moves.hpp"

namespace trace_clauses {
namespace {

[[nodiscard]] bool awaits_return(const planned_point& one) noexcept {
    return one.at.part == function_part::exit;
}
[[nodiscard]] bool has_shadow_stack(::pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("x86_Thread_features:") && line.find("shstk") != std::string::npos)
            return true;
    }
    return false;
}

/// Why the addresses must stay; empty: they need not.
[[nodiscard]] std::string why_needed(const plan& of) {
    std::set<std::string> files;
    for (const planned_point& each : of.points)
        if (awaits_return(each)) files.insert(each.at.file);
    if (files.empty()) return {};
    std::string why = moves_stacks(of.files, files);
    if (!why.empty()) return why;
    const char* const tunables = std::getenv("GLIBC_TUNABLES");
    if (tunables != nullptr && std::strstr(tunables, "x86_shstk=on") != nullptr)
        return "programs have shadow stacks (GLIBC_TUNABLES)";
    for (const planned_point& each : of.points) {
        if (awaits_return(each) && each.at.process > 0 && has_shadow_stack(each.at.process))
            return "the process has shadow stacks";
    }
    return unwinds_stacks(of.files, files);
}

/// "'f.exit' and 3 more", of those that `which` holds for.
template <class Which>
[[nodiscard]] std::string names_of(const plan& from, Which which) {
    std::string first;
    std::size_t count = 0;
    for (const planned_point& each : from.points) {
        if (!which(each)) continue;
        if (count++ == 0) first = "'" + from.code_of[each.clauses.front()].name + "'";
    }
    return with_others(first, count);
}
[[nodiscard]] bool is_empty(const plan& of) noexcept {
    return of.points.empty() && of.at_begin.empty() && of.at_end.empty();
}

}  // namespace

void leave_out_return_probes(plan& from, bool may_use_ptrace, ::pid_t process) {
    const std::string why = why_needed(from);
    if (why.empty()) return;
    const auto first = std::find_if(from.points.begin(), from.points.end(), awaits_return);
    const std::string told = "no exit points by the kernel at " + names_of(from, awaits_return) +
                             ": " + first->returns_elsewhere + ", and " + why +
                             ": the kernel's return probes could end the program";
    if (may_use_ptrace && harm_by_ptrace(from, process).empty()) throw kernel_refusal(told);
    std::erase_if(from.points, awaits_return);
    if (is_empty(from)) throw kernel_refusal(told);
    from.notes.push_back(told);
}

std::string harm_by_ptrace(const plan& of, ::pid_t process) {
    std::set<std::string> files;
    for (const planned_point& each : of.points) files.insert(each.at.file);
    const std::string why = checks_leaks(of.files, files);
    if (why.empty()) return {};
    std::ifstream in("/proc/" + std::to_string(process) + "/environ");
    for (std::string one; std::getline(in, one, '\0');) {
        const bool is_asked = one.starts_with("ASAN_OPTIONS=") || one.starts_with("LSAN_OPTIONS=");
        if (is_asked && one.find("detect_leaks=0") != std::string::npos) return {};
    }
    return why + ", which fails under ptrace (ASAN_OPTIONS=detect_leaks=0 lets it be traced)";
}

void leave_out_times_on_moving_stacks(plan& from) {
    std::map<std::string, bool> files;
    const auto is_unknown = [&](const planned_point& one) {
        if (!is_function_exit(one.at.part)) return false;
        if (!one.entry && !asks_elapsed(from.code, one.clauses)) return false;
        const auto [known, is_new] = files.try_emplace(one.at.file);
        if (is_new) known->second = copies_stacks(one.at.file);
        return known->second;
    };
    const std::string names = names_of(from, is_unknown);
    std::erase_if(from.points, is_unknown);
    if (names.empty()) return;
    const std::string told =
        names +
        ": 'elapsed' and arguments are not available there, because the program moves its stacks";
    if (is_empty(from)) throw std::runtime_error(told);
    from.notes.push_back(told);
}

}  // namespace trace_clauses
