// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "kernel_code.hpp"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "../../launching/process_memory.hpp"
#include "mapping_events.hpp"

namespace trace_clauses {

using trace_ring::file_descriptor;
using trace_ring::record::program_mode;

namespace {

[[nodiscard]] file_descriptor file_of(std::span<const std::byte> bytes) {
    file_descriptor made(::memfd_create("image", MFD_CLOEXEC));
    const auto all = static_cast<::ssize_t>(bytes.size());
    if (made && ::write(made.get(), bytes.data(), bytes.size()) != all) made.reset();
    return made;
}

/// A program of 32 bits that does nothing until it is killed.
struct idle_program {
    ::Elf32_Ehdr header{};
    ::Elf32_Phdr segment{};
    // mov $29 (pause), %eax; int $0x80; jmp to the first
    std::array<unsigned char, 9> code{0xB8, 29, 0, 0, 0, 0xCD, 0x80, 0xEB, 0xF7};
    std::array<unsigned char, 3> unused{};

    idle_program() noexcept {
        constexpr ::Elf32_Addr at = 0x08048000;
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS32;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type = ET_EXEC;
        header.e_machine = EM_386;
        header.e_version = EV_CURRENT;
        header.e_entry = at + offsetof(idle_program, code);
        header.e_phoff = offsetof(idle_program, segment);
        header.e_ehsize = sizeof header;
        header.e_phentsize = sizeof segment;
        header.e_phnum = 1;
        segment.p_type = PT_LOAD;
        segment.p_vaddr = segment.p_paddr = at;
        segment.p_filesz = segment.p_memsz = sizeof(idle_program);
        segment.p_flags = PF_R | PF_X;
        segment.p_align = 4096;
    }
};

/// Empty: there is none.
[[nodiscard]] std::vector<std::byte> kernel_code_in(::pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);) {
        if (!line.ends_with(kernel_code)) continue;
        unsigned long long begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2) break;
        std::vector<std::byte> code(static_cast<std::size_t>(end - begin));
        if (launching::read_memory(process, begin, code)) return code;
        break;
    }
    return {};
}

[[nodiscard]] std::vector<std::byte> kernel_code_of_32() {
    const idle_program program;
    const file_descriptor file = file_of(std::as_bytes(std::span(&program, 1)));
    int ends[2];
    if (!file || ::pipe2(ends, O_CLOEXEC) != 0) return {};
    const file_descriptor waits(ends[0]);
    file_descriptor tells(ends[1]);
    const ::pid_t child = ::fork();
    if (child < 0) return {};
    if (child == 0) {
        char* const none[] = {nullptr};
        ::fexecve(file.get(), none, none);
        ::_exit(1);
    }
    tells.reset();
    char byte = 0;
    static_cast<void>(::read(waits.get(), &byte, 1));  // until it is another program, or ends
    std::vector<std::byte> code = kernel_code_in(child);
    ::kill(child, SIGKILL);
    static_cast<void>(::waitpid(child, nullptr, 0));
    return code;
}

}  // namespace

file_descriptor kernel_code_image(program_mode of) {
    const std::vector<std::byte> code =
        of == program_mode::lp64 ? kernel_code_in(::getpid()) : kernel_code_of_32();
    return code.empty() ? file_descriptor() : file_of(code);
}

}  // namespace trace_clauses
