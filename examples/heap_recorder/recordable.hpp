// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Determines in which programs a preloaded library works. A program's dynamic linker
/// decides, and gives no sign if it does not load the library, so this examines the program's file.

#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace heap {

/// What a library or a program is made for.
struct target_machine {
    unsigned char word_class = 0;  ///< ELFCLASS32, ELFCLASS64; 0: not known
    std::uint16_t machine = 0;     ///< EM_X86_64, ...
    bool operator==(const target_machine&) const = default;
};

namespace impl {

/// Reads `bytes` at `offset`. Signal-safe, as all here.
[[nodiscard]] inline bool read_at(int file, void* to, std::size_t bytes,
                                  std::uint64_t offset) noexcept {
    return ::pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

struct open_file {
    int descriptor;
    explicit open_file(const char* path) noexcept
        : descriptor(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    ~open_file() {
        if (descriptor >= 0) ::close(descriptor);
    }
};

/// As far as the machine the headers of both classes are the same.
[[nodiscard]] inline target_machine made_for(const Elf32_Ehdr& header) noexcept {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
    return {header.e_ident[EI_CLASS], header.e_machine};
}

/// Why the dynamic linker that the program asks for loads no library of this C library.
template <class Header, class Segment>
[[nodiscard]] const char* obstacle_in_linker(int file, std::string_view path) noexcept {
    Header header{};
    if (!read_at(file, &header, sizeof header, 0) || header.e_phentsize != sizeof(Segment)) {
        return nullptr;  // no program: it will not be executed
    }
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
        Segment segment{};
        if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) break;
        if (segment.p_type != PT_INTERP) continue;
        char text[256]{};
        const auto length =
            segment.p_filesz < sizeof text ? static_cast<std::size_t>(segment.p_filesz) : 0;
        if (length == 0 || !read_at(file, text, length, segment.p_offset)) return nullptr;
        std::string_view linker(text);
        linker.remove_prefix(linker.rfind('/') + 1);  // npos + 1 is 0
        if (linker.starts_with("ld-linux") || linker.starts_with("ld.so") ||
            linker.starts_with("ld64.so")) {
            return nullptr;
        }
        return "its dynamic linker is not glibc's";
    }
    // The dynamic linker itself has none, and loads a program that it is given.
    path.remove_prefix(path.rfind('/') + 1);
    if (path.starts_with("ld-linux") || path.starts_with("ld.so")) return nullptr;
    return "it is linked statically";
}

/// Why the dynamic linker preloads nothing on behalf of its caller: the program gets rights that
/// the caller has not.
[[nodiscard]] inline const char* obstacle_in_rights(int file) noexcept {
    struct stat status {};
    struct statvfs system {};
    if (::fstat(file, &status) != 0) return nullptr;
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return nullptr;
    if (::fstatvfs(file, &system) == 0 && (system.f_flag & ST_NOSUID) != 0) return nullptr;
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) {
        return "it is set-user-ID";
    }
    if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
        status.st_gid != ::getgid()) {
        return "it is set-group-ID";
    }
    if (::getuid() != 0 && ::fgetxattr(file, "security.capability", nullptr, 0) > 0) {
        return "its file has capabilities";
    }
    return nullptr;
}

}  // namespace impl

/// What an ELF file is made for; of another file 0.
[[nodiscard]] inline target_machine made_for(const char* path) noexcept {
    const impl::open_file file(path);
    Elf32_Ehdr header{};
    if (!impl::read_at(file.descriptor, &header, sizeof header, 0)) return {};
    return impl::made_for(header);
}

/// Why a library made for `library` cannot record the program in this file by being preloaded;
/// null: nothing is known to prevent it. For a script, its interpreter counts. Signal-safe;
/// allocates nothing.
[[nodiscard]] inline const char* obstacle_of(const char* path, target_machine library,
                                             unsigned depth = 0) noexcept {
    const impl::open_file file(path);
    char begin[256]{};
    const ssize_t got = ::pread(file.descriptor, begin, sizeof begin - 1, 0);
    if (got < 4) return nullptr;
    if (begin[0] == '#') {
        if (begin[1] != '!') return nullptr;
        constexpr unsigned most = 5;  // as the kernel
        std::size_t from = 2;
        while (begin[from] == ' ' || begin[from] == '\t') ++from;
        begin[from + std::strcspn(begin + from, " \t\n")] = '\0';
        return depth < most ? obstacle_of(begin + from, library, depth + 1) : nullptr;
    }
    // Those of a script do not count.
    if (const char* const rights = impl::obstacle_in_rights(file.descriptor)) return rights;
    Elf32_Ehdr header{};
    std::memcpy(&header, begin, sizeof header);
    const target_machine own = impl::made_for(header);
    if (own == target_machine{}) return nullptr;
    if (own != library) {
        return "it is for another word size or machine than heap_recorder.so";
    }
    return own.word_class == ELFCLASS64
               ? impl::obstacle_in_linker<Elf64_Ehdr, Elf64_Phdr>(file.descriptor, path)
               : impl::obstacle_in_linker<Elf32_Ehdr, Elf32_Phdr>(file.descriptor, path);
}

}  // namespace heap
