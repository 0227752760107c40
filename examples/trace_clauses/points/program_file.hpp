// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What can be traced in a program or library of x86-64 or i386: its functions and its authors'
/// probes, each with its offset in the file, as uprobes need it.
/// @code
///   const program_file libc("/lib/x86_64-linux-gnu/libc.so.6");
///   for (const auto& each : libc.functions("mal*")) show(each.name, each.function->offset);
///   for (const auto& each : libc.probes()) show(each.provider, each.name, each.offset);
/// @endcode
/// Of functions that the dynamic linker chooses when it loads the program (IFUNC), as glibc's
/// memcpy, the file has the address of the chooser only: they are no trace points, but listed
/// apart.

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
    /// All that it is called, the one that its users know first, without versions; C++ names as the
    /// linker has them.
    std::vector<std::string> names;
    std::uint64_t address = 0;  ///< as the file has it
    std::uint64_t offset = 0;   ///< in the file
    std::uint64_t size = 0;     ///< 0: unknown
    bool is_local = false;      ///< no other file can call it by a name
};

/// Names of C++ and Rust as their authors wrote them; others as they are. A C++ name may say a part
/// of itself twice, and that of the result, and so on: one that does so more often than
/// `most_references` stays as it is, as do Rust's beyond 64 KiB, and all after 256 MiB. So a file
/// that lies costs seconds.
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
        std::string
            name;  ///< the first of its names that matches; readable if that is what matched
    };

    /// Reads the file, and that of its debug information if there is one. Throws
    /// std::runtime_error "FILE: cause" if it is none, of another processor, cut off or damaged.
    /// `shown` is how messages call it.
    explicit program_file(std::string path, std::string shown = {});

    /// How messages call it; and where it is read.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::string& opened() const noexcept { return opened_; }
    [[nodiscard]] program_mode mode() const noexcept { return mode_; }
    /// By address.
    [[nodiscard]] std::span<const program_function> functions() const noexcept {
        return functions_;
    }
    /// Those with a name that matches: as it is, or, of C++, as its author wrote it, with its
    /// parameters or without. Linear.
    [[nodiscard]] std::vector<match> functions(std::string_view glob) const&;
    std::vector<match> functions(std::string_view) const&& = delete;  // they would point to nothing
    /// The function whose code is at this address; null if there is none.
    [[nodiscard]] const program_function* at(std::uint64_t address) const noexcept;
    /// Only what it exports has a name: all others were taken out, and there is no file with them.
    [[nodiscard]] bool stripped() const noexcept { return stripped_; }
    /// Names of functions that are chosen when the program is loaded; sorted.
    [[nodiscard]] std::span<const std::string> chosen_when_loaded() const noexcept {
        return chosen_;
    }
    [[nodiscard]] std::span<const usdt_point> probes() const noexcept { return probes_; }

    /// The libraries that it asks for, and where it says that they are (DT_RPATH or DT_RUNPATH).
    [[nodiscard]] std::span<const std::string> needed() const noexcept { return needed_; }
    [[nodiscard]] const std::string& search_path() const noexcept { return search_path_; }
    /// It is DT_RUNPATH: for its own libraries only, and after LD_LIBRARY_PATH.
    [[nodiscard]] bool searched_late() const noexcept { return searched_late_; }
    [[nodiscard]] const std::string& interpreter() const noexcept { return interpreter_; }
    /// The file with the symbols and types that were taken out; empty if there is none.
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
