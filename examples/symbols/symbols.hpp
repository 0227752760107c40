// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Names for places in files, from their symbol tables and debug information (elfutils).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace symbols {

struct symbol {
    std::string function;      ///< demangled; empty: unknown
    std::uint64_t offset = 0;  ///< of the address in the function, or in the object if unknown
    std::string object;        ///< the file's name without its folders; empty: no object
    std::string file;          ///< path of the source; empty: no debug information
    int line = 0;

    /// "function", or "object+0x123".
    [[nodiscard]] std::string name() const;
    /// "function+0x12", or "object+0x123".
    [[nodiscard]] std::string place() const;
    /// "file:line" if known, the file without its folders; else "object".
    [[nodiscard]] std::string where() const;
};

/// A function, by the addresses in its file: [start, end).
struct function {
    std::uint64_t start = 0, end = 0;
    std::string name;  ///< as the symbol table has it, without a version
    bool global = false;
};

/// From `address` on, the code is of this line, to the next row's address.
struct line_row {
    std::uint64_t address = 0;
    std::string file;  ///< without its folders
    int line = 0;
};

/// One file, by its addresses, in its current state. A file that cannot be read, or is not the
/// traced one any more (by its build id), provides no names. Never requests debug information from
/// a server.
class object {
public:
    /// `build_id`: its bytes; empty: whichever file is there.
    explicit object(const std::string& path, const std::string& build_id = {});
    ~object();
    object(const object&) = delete;
    object& operator=(const object&) = delete;

    /// The instruction at `address`, or the one before a return address: the functions that were
    /// inlined there, the innermost first, each with the line in it, and the one of the symbol
    /// table, whose offset alone is known, last. Never empty. Looks through the debug information
    /// of the source file.
    [[nodiscard]] std::vector<symbol> at(std::uint64_t address) const;
    [[nodiscard]] std::vector<symbol> before(std::uint64_t return_address) const;

    /// The function that `address` is in; null: none is known.
    [[nodiscard]] const function* function_at(std::uint64_t address) const;
    /// Sorted by their beginnings.
    [[nodiscard]] const std::vector<function>& functions() const noexcept { return functions_; }
    /// The line table of [start, end), sorted; empty without debug information.
    [[nodiscard]] std::vector<line_row> lines(std::uint64_t start, std::uint64_t end) const;

    /// The value to subtract from an address to get the address in this file, if the file's code
    /// from `offset` on is mapped at `start`. If the file cannot be read, the offsets are the
    /// addresses.
    [[nodiscard]] std::uint64_t bias(std::uint64_t start, std::uint64_t offset) const;

    /// The addresses of all that is loaded of it: from the first on, and up to the second. Both are
    /// 0 if it cannot be read.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> extent() const;
    /// The file's bytes from `address` on, at most `most`; empty if they are not in the file.
    [[nodiscard]] std::span<const std::uint8_t> bytes(std::uint64_t address,
                                                      std::size_t most) const;
    /// The file's build id, its bytes; empty: it has none.
    [[nodiscard]] std::string build_id() const;
    /// Whether its code is 64-bit code.
    [[nodiscard]] bool is_64() const;

    /// Why it gives no names; empty: it does.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

private:
    struct library;
    [[nodiscard]] std::vector<symbol> describe(std::uint64_t looked_at,
                                               std::uint64_t address) const;
    void read_functions();

    std::unique_ptr<library> library_;
    std::vector<function> functions_;
    std::string name_;
    std::string problem_;
};

/// "compress+0x16 compress.c:33": the result of `object::at` and `before` as one text, with the
/// line if it is known.
[[nodiscard]] std::string place_and_line(const std::vector<symbol>& of);

/// A path without its folders.
[[nodiscard]] std::string file_name(const std::string& path);

/// A demangled C++ name, or the name itself.
[[nodiscard]] std::string demangle(const char* name);

/// `text` without the contents of angle brackets and parentheses: "std::vector<>::push_back()".
[[nodiscard]] std::string without_arguments(const std::string& text);

}  // namespace symbols
