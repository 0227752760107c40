// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// 32-bit code in a 64-bit process of x86-64: a processor goes from one mode to the other by a far
/// jump. So a test knows all registers of a firing of 32-bit code, and the memory around it.
/// @code
///   const narrow_code code;
///   source.attach({code.file(), code.target_offset(), part, ::getpid()}, clauses);
///   code.run({1, 2, 3, 4, 0, 6, 7, 8}, {10, 11, 12});
/// @endcode

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include <proof.hpp>
#include <recorder/scratch.hpp>

// Copied to where 32-bit code reaches it, and run there with the address of a block in rdi: what
// is to be in the registers, then where the 32-bit code is, then room for the stack's place.
asm(R"(
    .pushsection .text
    .code64
narrow_code_begin:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, 40(%rdi)
    mov $0x2b, %eax
    mov %eax, %ds
    mov %eax, %es
    mov 16(%rdi), %esp
    ljmp *32(%rdi)
    .code32
narrow_code_32:
    mov (%edi), %eax
    mov 4(%edi), %ecx
    mov 8(%edi), %edx
    mov 12(%edi), %ebx
    mov 20(%edi), %ebp
    mov 24(%edi), %esi
    mov 28(%edi), %edi
narrow_code_target:
    nop
    ljmp $0x33, $(0x20010000 + narrow_code_back - narrow_code_begin)
    .code64
narrow_code_back:
    mov $0x20020000, %edi
    mov 40(%rdi), %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
narrow_code_end:
    .popsection
    .globl narrow_code_begin, narrow_code_32, narrow_code_target, narrow_code_end
)");
extern "C" {
extern const std::byte narrow_code_begin[], narrow_code_32[], narrow_code_target[],
    narrow_code_end[];
}

namespace test {

class narrow_code {
public:
    static constexpr std::uint32_t address = 0x20010000;
    static constexpr std::uint32_t block = 0x20020000;
    static constexpr std::uint32_t stack = block + 0x800;  // where esp is at the target

    narrow_code() : file_(folder_ / "code") {
        const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0700);
        const auto size = static_cast<std::size_t>(narrow_code_end - narrow_code_begin);
        const bool written =
            fd >= 0 && ::write(fd, narrow_code_begin, size) == static_cast<::ssize_t>(size);
        if (!written || !mapped(address, PROT_READ | PROT_EXEC, fd) ||
            !mapped(block, PROT_READ | PROT_WRITE, -1)) {
            throw std::runtime_error("no place for 32-bit code");
        }
        ::close(fd);
    }
    narrow_code(const narrow_code&) = delete;
    narrow_code& operator=(const narrow_code&) = delete;
    ~narrow_code() {
        ::munmap(at(address), 4096);
        ::munmap(at(block), 4096);
    }

    /// Whether 32-bit code runs in a 64-bit process here: some hypervisors have no such segment. If
    /// not, that is reported. To be called before there is an object.
    [[nodiscard]] static bool runs() {
        static const bool known = [] {
            const narrow_code code;
            const ::pid_t child = ::fork();
            if (child == 0) {
                ::signal(SIGSEGV, SIG_DFL);  // the test framework handles it
                code.run({}, {});
                ::_exit(0);
            }
            int status = -1;
            return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
        }();
        if (!known) trace_ring_test::cannot_run("this machine runs no 32-bit code in a process");
        return known;
    }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] static std::uint32_t target_offset() noexcept {
        return static_cast<std::uint32_t>(narrow_code_target - narrow_code_begin);
    }
    /// Comes to the target with these registers, by DWARF's numbers (esp is `stack`), and with
    /// these arguments on the stack.
    void run(std::array<std::uint32_t, 8> registers,
             std::span<const std::uint32_t> arguments) const {
        registers[4] = stack;
        const std::uint32_t narrow =
            address + static_cast<std::uint32_t>(narrow_code_32 - narrow_code_begin);
        const std::uint16_t segment = 0x23;
        auto* const into = static_cast<std::byte*>(at(block));
        std::memcpy(into, registers.data(), sizeof registers);
        std::memcpy(into + 32, &narrow, sizeof narrow);
        std::memcpy(into + 36, &segment, sizeof segment);
        std::memcpy(into + (stack - block) + 4, arguments.data(), arguments.size_bytes());
        reinterpret_cast<void (*)(void*)>(at(address))(into);
    }

private:
    [[nodiscard]] static void* at(std::uint32_t where) noexcept {
        return reinterpret_cast<void*>(std::uintptr_t{where});
    }
    [[nodiscard]] static bool mapped(std::uint32_t where, int protection, int fd) noexcept {
        const int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | (fd < 0 ? MAP_ANONYMOUS : 0);
        return ::mmap(at(where), 4096, protection, flags, fd, 0) != MAP_FAILED;
    }

    folder folder_;
    std::string file_;
};

}  // namespace test
