// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "stopped_firing.hpp"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/storage/file.hpp>

#include "../firings/stack_snapshot.hpp"

namespace trace_clauses {
namespace {

using field = unsigned long long thread_registers::*;

// Ordered by DWARF's register numbers.
constexpr std::array<field, 17> registers_64{
    &thread_registers::rax, &thread_registers::rdx, &thread_registers::rcx, &thread_registers::rbx,
    &thread_registers::rsi, &thread_registers::rdi, &thread_registers::rbp, &thread_registers::rsp,
    &thread_registers::r8,  &thread_registers::r9,  &thread_registers::r10, &thread_registers::r11,
    &thread_registers::r12, &thread_registers::r13, &thread_registers::r14, &thread_registers::r15,
    &thread_registers::rip};
constexpr std::array<field, 9> registers_32{
    &thread_registers::rax, &thread_registers::rcx, &thread_registers::rdx,
    &thread_registers::rbx, &thread_registers::rsp, &thread_registers::rbp,
    &thread_registers::rsi, &thread_registers::rdi, &thread_registers::rip};
constexpr std::array<field, 6> arguments_64{&thread_registers::rdi, &thread_registers::rsi,
                                            &thread_registers::rdx, &thread_registers::rcx,
                                            &thread_registers::r8,  &thread_registers::r9};

/// Reads a file's contents, as far as there is room.
[[nodiscard]] std::size_t contents(const std::string& name, std::span<char> into) noexcept {
    const trace_ring::file_descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = file.get() < 0 ? -1 : ::read(file.get(), into.data(), into.size());
    return got < 0 ? 0 : static_cast<std::size_t>(got);
}

}  // namespace

std::optional<std::uint64_t> read_word(::pid_t thread, std::uint64_t at,
                                       std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    const auto into = std::as_writable_bytes(std::span(&value, 1)).first(bytes);
    if (!read_memory(thread, at, into)) return std::nullopt;
    return value;
}

std::uint64_t stopped_firing::word(point::context_word of) const noexcept {
    using point::context_word;
    switch (of) {
        case context_word::time:
            return trace_ring::clock::monotonic::now();
        case context_word::process:
            return static_cast<std::uint64_t>(process_);
        case context_word::thread:
            return static_cast<std::uint64_t>(thread_);
        case context_word::user:
            return user();
        case context_word::processor:
            return processor();
        case context_word::bits:
            return is_wide() ? 64 : 32;
        case context_word::returned:
            return is_function_exit(part_) ? cut(registers_.rax) : 0;
        case context_word::address:
            // Sets the return address, as at other exits. If it cannot be read, the return fails.
            if (part_ == function_part::returning)
                return read_word(thread_, cut(registers_.rsp), word_bytes_of(registers_))
                    .value_or(0);
            return cut(registers_.rip);
        case context_word::command:
            return command(0);
        case context_word::command_rest:
            return command(8);
        case context_word::elapsed:
            return begun_ == nullptr ? point::unknown_elapsed : begun_->elapsed();
    }
    return 0;
}

std::optional<std::uint64_t> stopped_firing::argument(unsigned n) const noexcept {
    if (is_function_exit(part_)) {
        const bool known = begun_ != nullptr && begun_->kept.faults == 0;
        return known ? std::optional(begun_->kept.words[n]) : std::nullopt;
    }
    if (is_wide() && n < arguments_64.size()) return registers_.*arguments_64[n];
    const std::size_t place = 1 + (is_wide() ? n - arguments_64.size() : n);
    const std::size_t bytes = word_bytes_of(registers_);
    return read_word(thread_, cut(registers_.rsp + bytes * place), bytes);
}

std::uint64_t stopped_firing::real_register(unsigned n) const noexcept {
    ::user_fpregs_struct all{};
    if (::ptrace(PTRACE_GETFPREGS, thread_, nullptr, &all) != 0) return 0;
    std::uint64_t bits = 0;
    if (n < point::x87_as_double) {
        const bool upper = n >= point::vector_upper_halves;
        const unsigned vector = n - (upper ? point::vector_upper_halves : point::vector_registers);
        std::memcpy(&bits, &all.xmm_space[4 * vector + (upper ? 2 : 0)], sizeof bits);
        return bits;
    }
    // FXSAVE has st(0) first, each in 16 bytes.
    const bool as_float = n >= point::x87_as_float;
    const unsigned number = n - (as_float ? point::x87_as_float : point::x87_as_double);
    long double extended = 0;
    std::memcpy(&extended, &all.st_space[4 * number], 10);
    if (as_float) {
        const auto value = static_cast<float>(extended);
        std::memcpy(&bits, &value, sizeof value);
    } else {
        const auto value = static_cast<double>(extended);
        std::memcpy(&bits, &value, sizeof value);
    }
    return bits;
}

std::uint64_t stopped_firing::reg(unsigned n) const noexcept {
    if (n >= point::vector_registers && n < point::most_registers) return real_register(n);
    if (is_wide()) return n < registers_64.size() ? registers_.*registers_64[n] : 0;
    return n < registers_32.size() ? cut(registers_.*registers_32[n]) : 0;
}

std::optional<std::size_t> stopped_firing::read_text(std::uint64_t address,
                                                     std::span<std::byte> into) const noexcept {
    constexpr std::size_t page = 4096;  // divides every page size
    std::size_t got = 0;
    while (true) {
        // Read by pages, because memory after the text need not be mapped.
        std::array<std::byte, page> bytes;
        const std::uint64_t at = address + got;
        const std::size_t left = into.size() + 1 - got;
        const auto part =
            std::span(bytes).first(std::min(left, page - static_cast<std::size_t>(at % page)));
        if (!read(at, part)) return std::nullopt;
        const auto end = std::find(part.begin(), part.end(), std::byte{0});
        const auto size = static_cast<std::size_t>(end - part.begin());
        std::copy_n(part.begin(), std::min(size, into.size() - got), into.data() + got);
        got += size;
        if (end != part.end() || got > into.size()) return got;
    }
}

std::size_t stopped_firing::stack(std::span<std::uint64_t> into) const noexcept {
    const std::size_t bytes = word_bytes_of(registers_);
    std::size_t count = 0;
    if (!into.empty() && part_ == function_part::exit) into[count++] = cut(registers_.rip);
    if (!into.empty() && has_return_on_top(part_)) {
        if (const auto caller = read_word(thread_, cut(registers_.rsp), bytes)) {
            into[count++] = *caller;
        }
    }
    for (std::uint64_t frame = cut(registers_.rbp); count < into.size();) {
        const auto next = read_word(thread_, frame, bytes);
        const auto caller = read_word(thread_, frame + bytes, bytes);
        if (!next || !caller) break;
        into[count++] = *caller;
        frame = *next;
    }
    return count;
}

void stopped_firing::copy_stack(std::span<std::byte> into) const noexcept {
    stack_snapshot head;
    for (unsigned i = 0; i < head.registers.size(); ++i) head.registers[i] = reg(i);
    head.has_place = begins_with_place(part_) ? 1 : 0;
    const auto stack = into.subspan(sizeof head);
    const std::uint64_t top = cut(registers_.rsp);
    while (head.bytes < stack.size()) {
        const auto part = stack.subspan(
            head.bytes, std::min<std::size_t>(stack.size() - head.bytes, stack_snapshot::step));
        if (!read(top + head.bytes, part)) break;
        head.bytes += static_cast<std::uint32_t>(part.size());
    }
    std::memcpy(into.data(), &head, sizeof head);
}

std::string stopped_firing::file(const char* name) const {
    return "/proc/" + std::to_string(thread_) + "/" + name;
}
std::uint64_t stopped_firing::user() const noexcept {
    std::array<char, 4096> text{};
    static_cast<void>(contents(file("status"), std::span(text).first(text.size() - 1)));
    unsigned long real = 0;
    const char* const line = std::strstr(text.data(), "\nUid:");
    if (line != nullptr) static_cast<void>(std::sscanf(line, "\nUid: %lu", &real));
    return real;
}
std::uint64_t stopped_firing::processor() const noexcept {
    std::array<char, 1024> text{};
    static_cast<void>(contents(file("stat"), std::span(text).first(text.size() - 1)));
    // The 39th field; the second one, in parentheses, may contain blanks.
    const char* at = std::strrchr(text.data(), ')');
    for (int field = 2; at != nullptr && field < 39; ++field) at = std::strchr(at + 1, ' ');
    return at == nullptr ? 0 : std::strtoul(at, nullptr, 10);
}
void stopped_firing::copy_name(std::array<char, 16>& into) const noexcept {
    const std::size_t size = contents(file("comm"), into);
    if (size != 0 && into[size - 1] == '\n') into[size - 1] = 0;
}
std::uint64_t stopped_firing::command(std::size_t from) const noexcept {
    std::array<char, 16> text{};
    copy_name(text);
    std::uint64_t word = 0;
    std::memcpy(&word, &text[from], sizeof word);
    return word;
}

}  // namespace trace_clauses
