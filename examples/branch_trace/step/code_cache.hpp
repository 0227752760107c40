// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file The code of another process, read by pages and cached by instructions, until the process
/// changes its mappings.

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <trace_ring/record/data_model.hpp>

#include "../../launching/process_memory.hpp"
#include "branch_instruction.hpp"

namespace branch_trace {

namespace record = trace_ring::record;
using launching::read_memory;

/// One per address space. Code in pages that the process may write is read again each time. Other
/// code is cached until `forget`, which must be called whenever the process has requested a
/// mapping. (Changes through another mapping of the same file are not seen.) To be used by one
/// thread at a time.
class code_cache {
public:
    code_cache() : known_(entries) {}

    /// The instruction at `at` in the memory of `process` (or of one of its threads); `unreadable`
    /// if it cannot be read. Constant time except for the first access.
    [[nodiscard]] const branch_instruction& at(::pid_t process, std::uint64_t at,
                                               record::program_mode mode) {
        known& slot = known_[slot_of(at)];
        const std::uint32_t tag = generation_ << 1 | static_cast<std::uint32_t>(mode);
        if (slot.address != at || slot.tag != tag) {
            bool lasting = true;
            slot.what = read(process, at, mode, lasting);
            slot.address = at;
            slot.tag = lasting ? tag : 0;
        }
        return slot.what;
    }

    /// Whether the instruction there, a system call according to `at`, is still one in memory. To
    /// be checked before the process runs up to it.
    [[nodiscard]] bool is_still_system_call(::pid_t process, std::uint64_t at,
                                            record::program_mode mode) {
        std::array<std::byte, longest_instruction> code{};
        const auto bytes = std::span(code).first(this->at(process, at, mode).length);
        return read_memory(process, at, bytes) &&
               decode_branch(bytes, at, mode).is == branch_instruction::what::enters_kernel;
    }

    /// Drops everything, because mappings may have changed.
    void forget() {
        pages_.clear();
        writable_.clear();
        maps_are_read_ = false;
        ++generation_;
        if (generation_ == last_generation) {
            known_.assign(entries, known{});
            generation_ = 1;
        }
    }

private:
    static constexpr std::size_t entries = 8192;
    static constexpr std::size_t page_bytes = 4096;  // what x86 has
    static constexpr std::uint32_t last_generation = 0x7FFFFFFF;

    struct known {
        alignas(8) std::uint64_t address = 0;
        branch_instruction what;
        std::uint32_t tag = 0;
    };
    struct page {
        std::array<std::byte, page_bytes> bytes;
        bool there = false;
        bool writable = false;
    };
    struct range {
        std::uint64_t first, end;
    };

    [[nodiscard]] static std::size_t slot_of(std::uint64_t at) noexcept {
        return static_cast<std::size_t>((at ^ at >> 13) % entries);
    }

    [[nodiscard]] branch_instruction read(::pid_t process, std::uint64_t at,
                                          record::program_mode mode, bool& lasting) {
        std::array<std::byte, longest_instruction> code{};
        std::size_t got = 0;
        while (got < code.size()) {
            const std::uint64_t from = at + got;
            if (from < at) break;  // the end of the address space
            const std::uint64_t number = from / page_bytes;
            const auto offset = static_cast<std::size_t>(from % page_bytes);
            const std::size_t size = (std::min)(code.size() - got, page_bytes - offset);
            const page& of = load(process, number);
            if (of.writable) {
                lasting = false;
                if (!read_memory(process, from, std::span(code).subspan(got, size))) break;
            } else if (of.there) {
                for (std::size_t i = 0; i < size; ++i) code[got + i] = of.bytes[offset + i];
            } else {
                break;
            }
            got += size;
        }
        const auto what = decode_branch(std::span(code).first(got), at, mode);
        // A page that cannot be read now may be readable later.
        if (what.is == branch_instruction::what::unreadable) lasting = false;
        return what;
    }

    const page& load(::pid_t process, std::uint64_t number) {
        auto& of = pages_[number];
        if (of == nullptr || !(of->there || of->writable)) {
            if (of == nullptr) of = std::make_unique<page>();
            read_maps(process);
            const std::uint64_t first = number * page_bytes;
            of->writable = is_writable(first);
            of->there = !of->writable && read_memory(process, first, of->bytes);
        }
        return *of;
    }

    [[nodiscard]] bool is_writable(std::uint64_t at) const noexcept {
        for (const auto& one : writable_) {
            if (at >= one.first && at < one.end) return true;
        }
        return false;
    }

    void read_maps(::pid_t process) {
        if (maps_are_read_) return;
        maps_are_read_ = true;
        const std::string path = "/proc/" + std::to_string(process) + "/maps";
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                                   &std::fclose);
        if (file == nullptr) {
            writable_.push_back({0, ~std::uint64_t{0}});  // nothing is known, so nothing is cached
            return;
        }
        std::array<char, 512> line{};
        bool whole = true;  // false for a line that continues in the next read
        while (std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
            const bool begins = whole;
            whole = std::string_view(line.data()).ends_with('\n');
            std::uint64_t first = 0, end = 0;
            std::array<char, 5> rights{};
            if (begins &&
                std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %4s", &first, &end,
                            rights.data()) == 3 &&
                rights[1] == 'w') {
                writable_.push_back({first, end});
            }
        }
    }

    std::vector<known> known_;
    std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_;
    std::vector<range> writable_;
    std::uint32_t generation_ = 1;
    bool maps_are_read_ = false;
};

}  // namespace branch_trace
