// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The trace points in a program or library of x86-64 or i386: its functions and its static probes,
/// each with its offset in the file, as uprobes require.
/// @code
///   const program_file libc("/lib/x86_64-linux-gnu/libc.so.6");
///   for (const auto& each : libc.functions("mal*")) show(each.name, each.function->offset);
///   for (const auto& each : libc.probes()) show(each.provider, each.name, each.offset);
/// @endcode
/// The dynamic linker selects the implementation of some functions (IFUNC), such as glibc's memcpy,
/// when it loads the program. For these the file has only the selector's address. They are not
/// trace points, but are listed separately.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/record/data_model.hpp>

#include "usdt.hpp"

namespace trace_clauses {

struct program_function {
    /// All its names, without versions. The name that users know comes first. C++ names are linker
    /// symbols.
    std::vector<std::string> names;
    std::uint64_t address = 0;  ///< as in the file
    std::uint64_t offset = 0;   ///< in the file
    std::uint64_t size = 0;     ///< 0: unknown
    bool is_local = false;      ///< no other file can call it by name
};

/// The source names of C++ and Rust functions; other names are unchanged. A C++ name may refer back
/// to its parts, which may again do so. To bound the work, a name with more than `most_references`
/// such references is left unchanged, as are Rust names longer than 64 KiB, and all names after 256
/// MiB. A malicious file thus costs only seconds.
class name_reader {
public:
    static constexpr std::size_t most_references = 40;

    [[nodiscard]] std::string operator()(const std::string& name);

private:
    std::size_t left_ = std::size_t{256} << 20;
};

class program_file {
public:
    struct match {
        const program_function* function = nullptr;
        std::string name;  ///< the first matching name; demangled if that form matched
    };

    /// Reads the file, and the file with its debug information if there is one. Throws
    /// std::runtime_error "FILE: cause" if the file is not a program, is for another processor, or
    /// is truncated or damaged. `shown` is the name in messages.
    explicit program_file(std::string path, std::string shown = {});

    /// The name in messages, and the path for reading.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::string& opened() const noexcept { return opened_; }
    [[nodiscard]] program_mode mode() const noexcept { return mode_; }
    /// By address.
    [[nodiscard]] std::span<const program_function> functions() const noexcept {
        return functions_;
    }
    /// The functions with a matching name: the exact symbol or, for C++, the source name with or
    /// without parameters. Linear.
    [[nodiscard]] std::vector<match> functions(std::string_view glob) const&;
    std::vector<match> functions(std::string_view) const&& = delete;  // the results would dangle
    /// The function whose code contains this address; null if there is none.
    [[nodiscard]] const program_function* at(std::uint64_t address) const noexcept;
    /// Only exported functions have names: the other symbols were removed, and no separate file has
    /// them.
    [[nodiscard]] bool stripped() const noexcept { return stripped_; }
    /// Sorted names of functions that are selected when the program is loaded (IFUNC).
    [[nodiscard]] std::span<const std::string> chosen_when_loaded() const noexcept {
        return chosen_;
    }
    [[nodiscard]] std::span<const usdt_point> probes() const noexcept { return probes_; }

    /// The libraries that it needs, and where it searches for them (DT_RPATH or DT_RUNPATH).
    [[nodiscard]] std::span<const std::string> needed() const noexcept { return needed_; }
    [[nodiscard]] const std::string& search_path() const noexcept { return search_path_; }
    /// The path is DT_RUNPATH: it applies only to this file's libraries, and is searched after
    /// LD_LIBRARY_PATH.
    [[nodiscard]] bool searched_late() const noexcept { return searched_late_; }
    [[nodiscard]] const std::string& interpreter() const noexcept { return interpreter_; }
    /// The separate file with symbols and types; empty if there is none.
    [[nodiscard]] const std::string& debug_file() const noexcept { return debug_file_; }

private:
    friend class program_reader;

    std::string path_;
    std::string opened_;
    program_mode mode_ = program_mode::lp64;
    std::vector<program_function> functions_;
    std::vector<std::string> chosen_;
    std::vector<usdt_point> probes_;
    std::vector<std::string> needed_;
    std::string search_path_;
    std::string interpreter_;
    std::string debug_file_;
    bool searched_late_ = false;
    bool stripped_ = true;
};

}  // namespace trace_clauses
