// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An ELF program or library of x86-64 or i386, opened with libelf, and its separate file of debug
/// information.
/// @code
///   const elf_file file("/bin/ls");
///   file.each_section([](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {});
///   if (const auto debug = debug_file_of(file)) elf_file more(*debug);
/// @endcode
/// The contents of the file are not trusted: references outside the file, and invalid structures,
/// are errors.

#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/record/data_model.hpp>

namespace trace_clauses {

using trace_ring::record::program_mode;

/// A part of the file that is mapped when the program runs.
struct segment {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t size = 0;    ///< in the file
    bool is_code = false;
};

/// To be used by one thread at a time. All functions report errors as std::runtime_error, "FILE:
/// cause".
class elf_file {
public:
    /// `shown` is the name in messages; empty: the path.
    explicit elf_file(std::string path, std::string shown = {});
    ~elf_file();
    elf_file(const elf_file&) = delete;
    elf_file& operator=(const elf_file&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] program_mode mode() const noexcept { return mode_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] Elf* handle() const noexcept { return elf_; }
    [[nodiscard]] std::span<const segment> segments() const noexcept { return segments_; }
    /// The program's dynamic linker; empty if there is none.
    [[nodiscard]] const std::string& interpreter() const noexcept { return interpreter_; }

    /// The offset in the file of a virtual address; empty if the address is not in a mapped part.
    [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address,
                                                         bool in_code) const noexcept;

    /// Reads the bytes at a virtual address from the file. Returns false if not all of them are in
    /// the file.
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const noexcept;

    /// Visits each section with its header and its name.
    template <class Tell>
    void each_section(Tell&& tell) const {
        std::size_t names = 0;
        if (elf_getshdrstrndx(elf_, &names) != 0) damaged("section names");
        for (Elf_Scn* at = elf_nextscn(elf_, nullptr); at != nullptr; at = elf_nextscn(elf_, at)) {
            GElf_Shdr header;
            if (gelf_getshdr(at, &header) == nullptr) damaged("a section's header");
            const char* const name = elf_strptr(elf_, names, header.sh_name);
            tell(at, header, std::string_view(name == nullptr ? "" : name));
        }
    }
    /// Returns whether it has a section of that name, with bytes in this file.
    [[nodiscard]] bool has_section(std::string_view wanted) const {
        bool has = false;
        each_section([&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
            has = has || (name == wanted && header.sh_type != SHT_NOBITS);
        });
        return has;
    }
    /// A section's unconverted bytes; empty if it has none in the file.
    [[nodiscard]] std::span<const std::byte> bytes_of(Elf_Scn* section) const;
    [[nodiscard]] const std::vector<std::byte>& build_id() const noexcept { return build_id_; }

    /// Throws: the file contains an impossible value.
    [[noreturn]] void damaged(const char* where) const;

private:
    void open();
    void find_segments();
    void find_build_id();
    [[noreturn]] void fail(const std::string& cause) const;

    std::string path_;
    std::string shown_;
    int file_ = -1;
    Elf* elf_ = nullptr;
    std::uint64_t size_ = 0;
    program_mode mode_ = program_mode::lp64;
    std::vector<segment> segments_;
    std::string interpreter_;
    std::vector<std::byte> build_id_;
};

/// A note in a section: its owner's name, its type, and its contents.
struct note {
    std::string_view owner;
    std::uint32_t type = 0;
    std::span<const std::byte> text;
};
/// Returns the first note in `from`, and removes it from there. Empty at the end, and if a note
/// would not end within `from`.
[[nodiscard]] std::optional<note> next_note(std::span<const std::byte>& from);

/// The separate file with this file's symbols and types, found by build id or debuglink, where
/// Debian, Fedora and gdb look for it. Empty if no file there belongs to this one.
[[nodiscard]] std::optional<std::string> debug_file_of(const elf_file& of);

}  // namespace trace_clauses
