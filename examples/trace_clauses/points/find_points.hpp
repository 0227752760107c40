// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace points that a specification means: which file, which offset, which mode.
/// @code
///   point_finder finder(files_of_program("python3"));
///   for (const auto& each : finder.find(specification).points) enable(each.file, each.offset);
/// @endcode
/// The types are, with their fields:
/// @code
///   @@uft:PROCESS:OBJECT:FUNCTION:entry      a function's entry, or its exit
///   @@usdt:PROCESS:OBJECT:PROVIDER:NAME      a probe that the program's authors put there
///   @@syscall:PROCESS:NAME:exit              a system call's entry or exit, in both modes
/// @endcode
/// PROCESS is a number, or `*`. OBJECT is a file's name without its folder, or, with a `/` in it,
/// its path: then it need not be loaded by any program yet.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/point/specification.hpp>

#include "candidates.hpp"
#include "exit_points.hpp"
#include "inlined_calls.hpp"
#include "program_file.hpp"

namespace trace_clauses {

struct trace_point {
    enum class kind : std::uint8_t { function, probe, system_call };

    kind is = kind::function;
    std::vector<std::string> fields{};  ///< in the form of a specification of this point alone
    std::string file{};                 ///< for a function or probe: the path for reading and
                                        ///< tracing
    std::uint64_t offset = 0;           ///< in that file; for a system call, its number
    program_mode mode = program_mode::lp64;
    bool at_return = false;
    std::uint64_t semaphore_offset = 0;       ///< for a probe, in the file; 0: there is none
    std::vector<usdt_argument> arguments{};   ///< for a probe
    std::optional<pid_t> process{};           ///< empty: any
    std::uint64_t address = 0;                ///< for a function, as in the file
    bool is_local = false;                    ///< for a function that no other file can call
    std::vector<std::uint64_t> returns{};     ///< for an exit: the offsets of its `ret`
                                              ///< instructions
    const char* returns_elsewhere = nullptr;  ///< for an exit: why these are not known
    std::vector<std::uint64_t> jumps{};  ///< for an exit: the offsets of jumps that may leave the
                                         ///< function
    bool repeats_entry = false;          ///< for a function that jumps to its first instruction
    std::shared_ptr<const program_file> program{};  ///< for a function or probe

    /// "@@uft:*:libc.so.6:malloc:entry".
    [[nodiscard]] std::string text() const;
};

/// "first", or "first and 3 more": a shortened list for messages.
[[nodiscard]] std::string with_others(std::string first, std::size_t all);

/// Opens each file once, and only if a specification names it. To be used by one thread at a time.
class point_finder {
public:
    struct result {
        std::vector<trace_point> points{};
        std::vector<std::string> notes{};  ///< what is omitted, and why
    };

    explicit point_finder(candidates among) : among_(std::move(among)) {}
    [[nodiscard]] const candidates& among() const noexcept { return among_; }

    /// Returns each point once, by file and offset. Throws std::runtime_error if the specification
    /// is invalid or matches nothing; the message then lists similar names.
    [[nodiscard]] result find(const trace_ring::point::specification& what);

private:
    struct opened_file {
        std::string name;  // without folder
        const candidate* from = nullptr;
        std::shared_ptr<const program_file> file;
    };

    [[nodiscard]] result find_functions(const trace_ring::point::specification& what);
    [[nodiscard]] result find_probes(const trace_ring::point::specification& what);
    [[nodiscard]] std::vector<opened_file> objects(const trace_ring::point::specification& what,
                                                   result& into);
    [[nodiscard]] std::vector<const candidate*> named(std::string_view object,
                                                      std::optional<pid_t> process);
    [[nodiscard]] const inlined_calls& inlined_in(const program_file& of);
    /// Returns why it cannot be traced as an exit, or null.
    [[nodiscard]] const char* make_exit(trace_point& into, const program_file& in,
                                        const program_function& of);
    [[nodiscard]] exit_points& exits_of(const program_file& of);
    [[noreturn]] void no_such_object(std::string_view object) const;

    candidates among_;
    std::vector<std::unique_ptr<candidate>> asked_for_;                 // in addition to those
    std::map<std::string, std::shared_ptr<const program_file>> files_;  // null: it cannot be read
    std::map<std::string, std::string> unreadable_;
    std::map<const program_file*, std::unique_ptr<exit_points>> exits_;
    std::map<const program_file*, std::unique_ptr<inlined_calls>> inlined_;
};

}  // namespace trace_clauses
