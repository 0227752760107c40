// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The memory of a process that is traced by breakpoints, and the breakpoints in it.
/// @code
///   address_space memory(4711);
///   memory.insert(address).points.push_back(0);
///   memory.restore();  // removes all breakpoints
/// @endcode
/// A breakpoint is an `int3` in place of an instruction's first byte, in the process's private
/// memory. The mapped file does not change.

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
    bool is_data = false;  ///< it is writable
    std::string path{};    ///< path as this process can open it

    /// Of an offset in the file.
    [[nodiscard]] bool holds(std::uint64_t of) const noexcept {
        return of >= offset && of - offset < end - begin;
    }
};

struct breakpoint {
    static constexpr std::size_t most_code = 15;  ///< no instruction is longer

    std::array<std::byte, most_code> code{};  ///< the program's original bytes
    std::vector<std::uint32_t> points{};      ///< the points that fire there
    std::vector<std::uint32_t> entered{};     ///< the points whose functions begin there
    bool is_return_site = false;              ///< traced functions return to this address
    bool is_tail_jump = false;                ///< a traced function may continue as another
                                              ///< function here
    bool is_loader = false;  ///< the dynamic linker passes here before it changes mappings
};

/// To be used by the thread that traces the process. If the process no longer exists, results are
/// false or empty.
class address_space {
public:
    /// Throws std::runtime_error, in one sentence, if the memory cannot be opened.
    explicit address_space(::pid_t process);

    [[nodiscard]] bool read(std::uint64_t at, std::span<std::byte> into) const noexcept;
    [[nodiscard]] bool write(std::uint64_t at, std::span<const std::byte> from) const noexcept;
    /// The files that are mapped privately.
    [[nodiscard]] std::vector<mapped_file> files() const;
    /// An entry of the auxiliary vector, AT_BASE or AT_ENTRY; 0: not present.
    [[nodiscard]] std::uint64_t auxiliary(std::uint64_t which) const;
    /// Where the program begins: code that is executed once.
    [[nodiscard]] std::uint64_t entry();

    /// The breakpoint at an address; null if there is none.
    [[nodiscard]] breakpoint* at(std::uint64_t address) noexcept {
        const auto found = breakpoints_.find(address);
        return found == breakpoints_.end() ? nullptr : &found->second;
    }
    /// The same, but creates a missing breakpoint; null if that is impossible. Other insertions do
    /// not move it.
    breakpoint* insert(std::uint64_t address);
    /// Removes an int3 temporarily, and puts it back.
    void lift(std::uint64_t address, const breakpoint& of) const noexcept;
    void lower(std::uint64_t address) const noexcept;

    /// Increments a probe's semaphore, so that the program's code knows that it is traced, until
    /// `restore`.
    void raise_semaphore(std::uint64_t address);

    /// Removes breakpoints whose code has been unmapped or replaced.
    void forget_replaced();
    /// Takes over the breakpoints of a forked process, which are also in its copy of the memory.
    void copy_from(const address_space& parent) {
        breakpoints_ = parent.breakpoints_;
        semaphores_ = parent.semaphores_;
    }
    /// Restores all of the program's memory. Code that has been replaced since remains unchanged.
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
