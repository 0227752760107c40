// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The memory of a process that is traced by breakpoints, and the breakpoints in it.
/// @code
///   address_space memory(4711);
///   memory.insert(address).points.push_back(0);
///   memory.restore();  // as it was
/// @endcode
/// A breakpoint is an `int3` in place of an instruction's first byte, in memory that is the
/// process's own: the file that is mapped there stays as it is.

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <trace_ring/policy/storage/file.hpp>

namespace trace_clauses {

struct mapped_file {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  ///< in the file
    bool is_code = false;
    bool is_data = false;  ///< which may be written
    std::string path{};    ///< as this process finds it

    /// Of an offset in the file.
    [[nodiscard]] bool holds(std::uint64_t of) const noexcept {
        return of >= offset && of - offset < end - begin;
    }
};

struct breakpoint {
    static constexpr std::size_t most_code = 15;  ///< no instruction is longer

    std::array<std::byte, most_code> code{};  ///< as the program has it
    std::vector<std::uint32_t> points{};      ///< that fire there
    std::vector<std::uint32_t> entered{};     ///< those whose functions are entered there
    bool is_return_site = false;              ///< functions that are awaited return to here
    bool is_tail_jump = false;                ///< a function that is awaited may go on as another
    bool is_loader = false;  ///< what is mapped changes before the loader comes by here
};

/// For the thread that traces the process. What is asked of a process that is gone is false, or
/// empty.
class address_space {
public:
    /// Throws std::runtime_error, in one sentence, if the memory cannot be opened.
    explicit address_space(::pid_t process);

    [[nodiscard]] bool read(std::uint64_t at, std::span<std::byte> into) const noexcept;
    [[nodiscard]] bool write(std::uint64_t at, std::span<const std::byte> from) const noexcept;
    /// Files that are mapped for this process alone.
    [[nodiscard]] std::vector<mapped_file> files() const;
    /// What the kernel told the program when it was executed: AT_BASE, AT_ENTRY; 0: nothing.
    [[nodiscard]] std::uint64_t auxiliary(std::uint64_t which) const;
    /// Where the program begins: code that is executed once.
    [[nodiscard]] std::uint64_t entry();

    /// The breakpoint at an address; null if there is none.
    [[nodiscard]] breakpoint* at(std::uint64_t address) noexcept {
        const auto found = breakpoints_.find(address);
        return found == breakpoints_.end() ? nullptr : &found->second;
    }
    /// The same, which is made if there is none; null if that is not possible. Not moved by others.
    breakpoint* insert(std::uint64_t address);
    /// Takes an int3 out for a moment, and puts it in again.
    void lift(std::uint64_t address, const breakpoint& of) const noexcept;
    void lower(std::uint64_t address) const noexcept;

    /// Tells a probe's authors' code that somebody traces it, until `restore`.
    void raise_semaphore(std::uint64_t address);

    /// Forgets breakpoints whose code has been unmapped, or replaced.
    void forget_replaced();
    /// What a forked process has: the same, in memory of its own.
    void copy_from(const address_space& parent) {
        breakpoints_ = parent.breakpoints_;
        semaphores_ = parent.semaphores_;
    }
    /// All of the program's memory is as it would be without us; code that has been replaced
    /// meanwhile stays as it is.
    void restore() noexcept;

private:
    [[nodiscard]] bool is_in(std::uint64_t address) const noexcept;
    void count_at_semaphore(std::uint64_t address, int more) const noexcept;

    ::pid_t process_;
    trace_ring::file_descriptor memory_;
    std::unordered_map<std::uint64_t, breakpoint> breakpoints_;
    std::vector<std::uint64_t> semaphores_;
    std::optional<std::uint64_t> entry_;
};

}  // namespace trace_clauses
