// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "stack_moves.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>

#include "elf_file.hpp"

namespace trace_clauses {
namespace {

/// Functions by which a program uses several stacks in one thread. If a signal stack is above the
/// other stack, the kernel considers all functions on the other stack as left.
constexpr std::array<std::string_view, 11> moving_stacks{
    "makecontext",    "swapcontext",      "setcontext",
    "sigaltstack",    "jump_fcontext",    "make_fcontext",
    "ontop_fcontext", "__morestack",      "__splitstack_makecontext",
    "coro_transfer",  "runtime.morestack"};
/// Functions that follow return addresses: for exceptions, ending threads, and printing stacks.
constexpr std::array<std::string_view, 12> unwinding{
    "__gxx_personality_v0",   "_Unwind_Resume",       "rust_eh_personality", "__cxa_throw",
    "_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Backtrace",   "backtrace",
    "pthread_exit",           "pthread_cancel",       "rust_panic",          "unw_step"};

/// Returns which of these functions a file defines or calls; empty: none.
[[nodiscard]] std::string function_of(const elf_file& file,
                                      std::span<const std::string_view> wanted) {
    std::string found;
    file.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view) {
        if (!found.empty() || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            return;
        Elf_Data* const data = elf_getdata(at, nullptr);
        if (data == nullptr || data->d_buf == nullptr || header.sh_entsize == 0) return;
        const auto count =
            std::min<std::uint64_t>(header.sh_size / header.sh_entsize, std::uint64_t{1} << 30);
        for (std::uint64_t i = 0; i < count; ++i) {
            GElf_Sym symbol;
            if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
            const char* const text = elf_strptr(file.handle(), header.sh_link, symbol.st_name);
            if (text == nullptr) continue;
            std::string_view called(text);
            called = called.substr(0, called.find('@'));
            if (std::find(wanted.begin(), wanted.end(), called) != wanted.end()) {
                found = called;
                return;
            }
        }
    });
    return found;
}

[[nodiscard]] bool is_of_go(const elf_file& file) {
    bool found = false;
    file.each_section([&](Elf_Scn*, const GElf_Shdr&, std::string_view name) {
        found = found || name == ".gopclntab" || name == ".note.go.buildid";
    });
    return found;
}

/// "shop has WHAT", with the first result of `look` that is not empty.
template <class Look>
[[nodiscard]] std::string first_of(const std::vector<candidate>& files,
                                   const std::set<std::string>& exits, Look look) {
    std::set<::pid_t> processes;
    std::set<std::string> suspects = exits;  // also files that are not in the list
    for (const candidate& each : files) {
        if (exits.contains(each.opened))
            processes.insert(each.processes.begin(), each.processes.end());
    }
    processes.erase(::getpid());
    for (const candidate& each : files) {
        const bool together = std::any_of(each.processes.begin(), each.processes.end(),
                                          [&](::pid_t one) { return processes.contains(one); });
        if (together || each.processes.empty()) suspects.insert(each.opened);
    }
    for (const std::string& each : suspects) {
        const std::string name = std::filesystem::path(each).filename().string();
        // These define the functions in question.
        if (name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-") ||
            name.starts_with("libpthread") || name.starts_with("libc.musl"))
            continue;
        try {
            const std::string found = look(elf_file(each));
            if (!found.empty()) return name + " " + found;
        } catch (const std::runtime_error&) {
            // Not a program: fonts and other data are also mapped.
        }
    }
    return {};
}

}  // namespace

std::string moves_stacks(const std::vector<candidate>& files, const std::set<std::string>& exits) {
    return first_of(files, exits, [](const elf_file& file) {
        const std::string by =
            is_of_go(file) ? "Go's run-time system" : function_of(file, moving_stacks);
        return by.empty() ? by : "has several stacks (" + by + ")";
    });
}

std::string checks_leaks(const std::vector<candidate>& files, const std::set<std::string>& traced) {
    constexpr std::array<std::string_view, 2> checking{"__lsan_do_leak_check",
                                                       "__lsan_do_recoverable_leak_check"};
    return first_of(files, traced, [&](const elf_file& file) {
        const std::string by = function_of(file, checking);
        return by.empty() ? by : "checks for leaks (LeakSanitizer)";
    });
}

bool copies_stacks(const std::string& file) {
    constexpr std::array<std::string_view, 2> splitting{"__morestack", "runtime.morestack"};
    try {
        const elf_file of(file);
        return is_of_go(of) || !function_of(of, splitting).empty();
    } catch (const std::runtime_error&) {
        return false;
    }
}

std::string unwinds_stacks(const std::vector<candidate>& files,
                           const std::set<std::string>& exits) {
    return first_of(files, exits, [](const elf_file& file) {
        const std::string by = function_of(file, unwinding);
        return by.empty() ? by : "follows addresses to return to (" + by + ")";
    });
}

}  // namespace trace_clauses
