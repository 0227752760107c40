// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A guest's storage in a file: the file's bytes from location 0 on, or memory of an emulator in a
/// core dump.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <trace_ring/format/layout.hpp>
#include <trace_ring/record/data_model.hpp>
#include <trace_ring/reduce/source.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include "../../shown.hpp"
#include "../core/elf_core.hpp"

namespace trace_reduce::das_storage {

/// There is no prefixing and no address translation. Trusts nothing in a core.
class guest_image {
public:
    /// `base`: the file is a core, and this is the address of guest location 0 in its process.
    /// Throws format_error if the file is of another kind, or empty.
    guest_image(trace_ring::reduce::source file, std::optional<std::uint64_t> base)
        : file_(std::move(file)), base_(base.value_or(0)) {
        std::array<std::byte, 16> head{};
        const auto there = file_.read(0, head.data(), head.size());
        if (there == 0) throw trace_ring::format_error(name(), 0, "the file is empty");
        std::uint64_t magic = 0;
        std::copy_n(head.begin(), sizeof magic, reinterpret_cast<std::byte*>(&magic));
        if (magic == trace_ring::layout::file_magic ||
            magic == trace_ring::layout::file_magic_swapped) {
            throw trace_ring::format_error(name(), 0,
                                           "a trace file, and not guest storage (--das)");
        }
        const bool is_elf = elf_core::is_elf(std::span<const std::byte>(head).first(there));
        if (is_elf && !base) {
            throw trace_ring::format_error(
                name(), 0,
                "an ELF file: of a core, --das needs @BASE, the address of guest location 0 in the "
                "process");
        }
        if (!is_elf && base) {
            throw trace_ring::format_error(
                name(), 0, "no ELF core dump: without @BASE it is read as guest storage (--das)");
        }
        if (is_elf) core_.emplace(file_);
    }

    [[nodiscard]] const std::string& name() const noexcept { return file_.name(); }
    /// The core, or null.
    [[nodiscard]] const elf_core* core() const noexcept { return core_ ? &*core_ : nullptr; }

    /// Copies the bytes from `address` on; false if one of them is not in the file.
    [[nodiscard]] bool read(std::uint32_t address, std::span<std::byte> into) const {
        if (!core_) return file_.read(address, into.data(), into.size()) == into.size();
        while (!into.empty()) {
            const auto from = place_of(address);
            const auto some = static_cast<std::size_t>(
                (std::min)(std::uint64_t{into.size()}, from ? from->bytes : 0));
            if (some == 0 || core_->bytes().read(from->offset, into.data(), some) != some) {
                return false;
            }
            address += static_cast<std::uint32_t>(some);
            into = into.subspan(some);
        }
        return true;
    }
    /// The word at `address`, a multiple of 4; nothing if it is not in the file.
    [[nodiscard]] std::optional<std::uint32_t> word(std::uint32_t address) const {
        std::array<std::byte, 8> doubleword{};  // a source is read by these
        const auto at = address & ~7U;
        const bool second = address != at;
        const std::size_t bytes = second ? 8 : 4;
        if (!read(at, std::span(doubleword).first(bytes))) return {};
        return trace_ring::record::load_big<std::uint32_t>(doubleword, bytes - 4);
    }
    /// The offset in the file of a byte of guest storage. If a core does not have it, the offset of
    /// the note of the file that was mapped there, or of the program header; otherwise of the end.
    [[nodiscard]] std::uint64_t offset(std::uint32_t address) const {
        if (!core_) return (std::min)(std::uint64_t{address}, file_.size());
        if (const auto from = place_of(address)) return from->offset;
        if (address <= ~base_) {
            if (const auto* const file = file_at(base_ + address)) return file->note;
            if (const auto* const segment = core_->find(base_ + address)) return segment->header;
        }
        return file_.size();
    }
    /// Why a byte is not there.
    [[nodiscard]] const char* absence() const noexcept {
        return core_ ? "not in the core" : "beyond the end of the file";
    }
    /// Why a core does not have all of these bytes, and where they are instead, to follow the text
    /// of an error; empty if that is not known.
    [[nodiscard]] std::string hint(std::uint32_t address, std::uint32_t bytes) const {
        if (!core_) return {};
        for (const auto end = std::uint64_t{address} + bytes; address < end;) {
            const auto from = place_of(address);
            if (!from) return hint_at(address);
            address +=
                static_cast<std::uint32_t>((std::min)(std::uint64_t{from->bytes}, end - address));
        }
        return {};
    }

private:
    /// The bytes of a segment from this address on, in the core.
    [[nodiscard]] std::optional<trace_ring::reduce::extent> place_of(std::uint32_t address) const {
        if (address > ~base_) return {};
        const auto at = base_ + address;
        const auto* const segment = core_->find(at);
        if (segment == nullptr || at - segment->address >= segment->present) return {};
        const auto within = at - segment->address;
        return trace_ring::reduce::extent{segment->offset + within, segment->present - within};
    }

    /// The file that the program had mapped there; null if the core names none.
    [[nodiscard]] const mapped_file* file_at(std::uint64_t at) const noexcept {
        const auto& all = core_->files();
        const auto after =
            std::upper_bound(all.begin(), all.end(), at,
                             [](std::uint64_t a, const auto& each) { return a < each.begin; });
        return after == all.begin() || (after - 1)->end <= at ? nullptr : &*(after - 1);
    }
    /// `address` is not in the core.
    [[nodiscard]] std::string hint_at(std::uint32_t address) const {
        if (address > ~base_) return {};
        const auto at = base_ + address;
        const auto* const segment = core_->find(at);
        const auto* const file = file_at(at);
        // A core that is cut short may have had the memory. That damage is reported.
        if (segment != nullptr && !core_->damages().empty() &&
            segment->offset + segment->present >= file_.size()) {
            return {};
        }
        if (file == nullptr && segment == nullptr) return {};
        // The kernel takes shared memory without a name for anonymous, which bit 3 is not about.
        if (file == nullptr || file->path.ends_with(" (deleted)")) {
            return ": the core was written without this memory" +
                   (file == nullptr ? std::string() : " of " + shown(file->path)) +
                   " (coredump_filter, or madvise with MADV_DONTDUMP)";
        }
        const auto name = shown(file->path);
        const bool whole = file->begin - file->file_offset == base_;  // from guest location 0 on
        return ": the memory of " + name +
               " is not in the core (bit 3 of coredump_filter leaves shared files out): " +
               (whole ? "run trace-reduce --das without @BASE on " + name
                      : "it is at offset " + std::to_string(at - file->begin + file->file_offset) +
                            " of that file");
    }

    trace_ring::reduce::source file_;
    std::uint64_t base_;
    std::optional<elf_core> core_{};
};

}  // namespace trace_reduce::das_storage
