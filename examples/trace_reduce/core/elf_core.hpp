// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// An ELF core dump (System V gABI, and Linux's notes): its memory, and the files that the program
/// had mapped. Of 32- and 64-bit programs, little-endian, as Linux and gdb write them.
/// @code
///   header | program headers: PT_NOTE, PT_LOAD ... | notes | memory of the PT_LOADs ...
///   PT_LOAD   p_vaddr, p_memsz   where the memory was; p_offset, p_filesz   where it is, if at all
///   NT_FILE   count, page size, {start, end, offset in pages}..., names with a zero each
/// @endcode
/// Nothing in the file is trusted. Memory that overlaps other memory, or lies in the file where
/// other memory does, is left out and reported: so reading all of it takes no longer than the file.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/reduce/source.hpp>

#include "../../counted.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

/// Memory of the program, from one PT_LOAD.
struct core_segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;    ///< its size in the program; not 0
    std::uint64_t present = 0;  ///< bytes of it, from the first on, that are in the core
    std::uint64_t offset = 0;   ///< of those in the file
    std::uint64_t header = 0;   ///< offset of its program header
    bool writable = false;

    [[nodiscard]] constexpr std::uint64_t end() const noexcept { return address + bytes; }
};

/// A part of a file that the program had mapped, from NT_FILE.
struct mapped_file {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;          ///< more than `begin`
    std::uint64_t file_offset = 0;  ///< in bytes
    std::uint64_t note = 0;         ///< offset of its entry in the core
    std::string path;               ///< as the program's system named it
};

class elf_core {
public:
    static constexpr std::size_t most_segments = std::size_t{1} << 20;
    static constexpr std::size_t most_notes = std::size_t{1} << 20;
    static constexpr std::uint32_t most_note_bytes = 1U << 26;

    /// True if `from`, the first bytes of a file, begin as ELF files do, cores or not.
    [[nodiscard]] static bool is_elf(std::span<const std::byte> from) noexcept {
        constexpr std::array magic{std::byte{0x7F}, std::byte{'E'}, std::byte{'L'}, std::byte{'F'}};
        return from.size() >= magic.size() && std::equal(magic.begin(), magic.end(), from.begin());
    }

    /// Reads headers and notes, not the memory. Throws format_error if this is no ELF core of the
    /// kinds above, or is cut within its headers; lesser damage goes to `damages()`.
    explicit elf_core(const reduce::source& from)
        : bytes_(reduce::source::of_extents(from, std::array{reduce::extent{0, from.size()}},
                                            from.name())) {
        read_header();
        read_program_headers();
        sort_out();
    }

    /// The whole file, which can be read at any alignment.
    [[nodiscard]] const reduce::source& bytes() const noexcept { return bytes_; }
    [[nodiscard]] const std::string& name() const noexcept { return bytes_.name(); }
    /// The program's word size in bytes: 4 or 8.
    [[nodiscard]] unsigned word_bytes() const noexcept { return wide_ ? 8 : 4; }
    /// By address, without overlaps.
    [[nodiscard]] const std::vector<core_segment>& segments() const noexcept { return segments_; }
    /// By address.
    [[nodiscard]] const std::vector<mapped_file>& files() const noexcept { return files_; }
    [[nodiscard]] const std::vector<trace_ring::damage>& damages() const noexcept {
        return damages_;
    }

    /// The segment that has this address; null if there is none.
    [[nodiscard]] const core_segment* find(std::uint64_t address) const noexcept {
        const auto after =
            std::upper_bound(segments_.begin(), segments_.end(), address,
                             [](std::uint64_t a, const core_segment& s) { return a < s.address; });
        if (after == segments_.begin()) return nullptr;
        const auto& found = *(after - 1);
        return address - found.address < found.bytes ? &found : nullptr;
    }

private:
    static constexpr std::uint16_t many_headers = 0xFFFF;   // PN_XNUM
    static constexpr std::uint32_t load = 1, note = 4;      // PT_LOAD, PT_NOTE
    static constexpr std::uint32_t file_note = 0x46494C45;  // NT_FILE

    /// The offsets of fields, which differ between the two classes of ELF; all little-endian.
    struct places {
        std::size_t header, header_offset, section_offset, header_size, header_count;
        std::size_t segment, address, offset, present, bytes, flags;
        std::size_t section, section_info;
    };
    static constexpr places narrow_places{52, 28, 32, 42, 44, 32, 8, 4, 16, 20, 24, 40, 28};
    static constexpr places wide_places{64, 32, 40, 54, 56, 56, 16, 8, 32, 40, 4, 64, 44};
    [[nodiscard]] const places& at() const noexcept { return wide_ ? wide_places : narrow_places; }

    template <class T>
    [[nodiscard]] static T get(std::span<const std::byte> from, std::size_t offset) noexcept {
        T value = 0;
        std::memcpy(&value, from.data() + offset, sizeof value);
        return value;
    }
    /// Reads a word of the program's size.
    [[nodiscard]] std::uint64_t word(std::span<const std::byte> from,
                                     std::size_t offset) const noexcept {
        return wide_ ? get<std::uint64_t>(from, offset) : get<std::uint32_t>(from, offset);
    }
    [[noreturn]] void refuse(std::uint64_t offset, const char* what) const {
        throw trace_ring::format_error(name(), offset, what);
    }
    void note_damage(std::uint64_t offset, std::string what) {
        constexpr std::size_t most = 1000;
        if (damages_.size() < most) damages_.push_back({offset, std::move(what)});
    }
    [[nodiscard]] bool fetch(std::uint64_t offset, std::span<std::byte> into) const noexcept {
        return bytes_.read(offset, into.data(), into.size()) == into.size();
    }

    void read_header() {
        std::array<std::byte, 64> head{};
        const std::size_t there = bytes_.read(0, head.data(), head.size());
        if (!is_elf(std::span(head).first(there))) refuse(0, "not an ELF file");
        if (there < 52) refuse(there, "the ELF header is cut short");
        const auto byte = [&head](std::size_t i) { return std::to_integer<unsigned>(head[i]); };
        if (byte(4) != 1 && byte(4) != 2) refuse(4, "an unknown class of ELF");
        if (byte(5) == 2) refuse(5, "an ELF core of a big-endian machine, which is not read");
        if (byte(5) != 1 || byte(6) != 1) refuse(5, "an unknown kind of ELF");
        wide_ = byte(4) == 2;
        if (there < at().header) refuse(there, "the ELF header is cut short");
        if (get<std::uint16_t>(head, 16) != 4) {
            refuse(16, "an ELF file, but no core dump: a program, a library or an object");
        }
        headers_ = word(head, at().header_offset);
        count_ = get<std::uint16_t>(head, at().header_count);
        if (count_ != 0 && get<std::uint16_t>(head, at().header_size) != at().segment) {
            refuse(at().header_size, "an unknown size of program headers");
        }
        if (count_ == many_headers) read_count(word(head, at().section_offset));
        const std::uint64_t size = bytes_.size();
        if (headers_ > size || count_ > (size - headers_) / at().segment) {
            refuse(at().header_offset, "the program headers lie beyond the end of the file");
        }
    }
    /// Reads the number of program headers from the first section header, as the ELF header's field
    /// is too small for it.
    void read_count(std::uint64_t offset) {
        std::array<std::byte, 64> head{};
        const auto section = std::span(head).first(at().section);
        if (offset == 0 || !fetch(offset, section)) {
            refuse(at().section_offset, "the count of program headers lies beyond the file's end");
        }
        count_ = get<std::uint32_t>(section, at().section_info);
    }

    void read_program_headers() {
        if (count_ > most_segments) {
            note_damage(headers_, "more program headers than are read");
            count_ = most_segments;
        }
        constexpr std::size_t at_once = 512;
        std::vector<std::byte> some(at_once * at().segment);
        std::vector<reduce::extent> notes;
        for (std::size_t i = 0; i < count_; ++i) {
            if (i % at_once == 0) {
                const auto want = (std::min)(at_once, count_ - i) * at().segment;
                if (!fetch(headers_ + i * at().segment, std::span(some).first(want))) {
                    refuse(headers_ + i * at().segment, "the program headers are cut short");
                }
            }
            const auto one =
                std::span<const std::byte>(some).subspan(i % at_once * at().segment, at().segment);
            const auto type = get<std::uint32_t>(one, 0);
            const reduce::extent where{word(one, at().offset), word(one, at().present)};
            if (type == note) notes.push_back(where);
            if (type == load && word(one, at().bytes) != 0) {
                const bool writable = (get<std::uint32_t>(one, at().flags) & 2U) != 0;
                segments_.push_back({word(one, at().address), word(one, at().bytes), where.bytes,
                                     where.offset, headers_ + i * at().segment, writable});
            }
        }
        std::size_t left = most_notes;
        for (const auto& each : notes) read_notes(each, left);
        std::stable_sort(files_.begin(), files_.end(),
                         [](const auto& a, const auto& b) { return a.begin < b.begin; });
    }

    /// Removes segments that contradict the file or another segment.
    void sort_out() {
        const std::uint64_t size = bytes_.size();
        const std::uint64_t last =
            wide_ ? ~std::uint64_t{0} : (std::numeric_limits<std::uint32_t>::max)();
        std::uint64_t missing = 0, missing_at = 0;
        for (auto& s : segments_) {
            if (s.address > last || s.bytes - 1 > last - s.address) {
                note_damage(s.header, "memory that goes on beyond the last address");
                s.bytes = 0;
                continue;
            }
            // Keeps its end countable in 64 bits; losing the last possible byte does not matter.
            if (s.address + s.bytes == 0) --s.bytes;
            if (s.present > s.bytes) {
                note_damage(s.header, "more bytes in the file than in memory");
                s.present = s.bytes;
            }
            const std::uint64_t there = s.offset < size ? size - s.offset : 0;
            if (s.present > there) {
                if (missing == 0) missing_at = s.header;
                missing += (std::min)(s.present - there, ~missing);
                s.present = there;
            }
        }
        if (missing != 0) {
            note_damage(missing_at, "the core is cut short: " +
                                        counted(missing, "byte of memory is missing",
                                                "bytes of memory are missing") +
                                        ", the first of this segment");
        }
        separate(&core_segment::address, &core_segment::bytes, "memory that overlaps other memory");
        std::erase_if(segments_, [](const core_segment& s) { return s.bytes == 0; });
        separate(&core_segment::offset, &core_segment::present,
                 "memory that lies where other memory does in the file");
        sort_by(&core_segment::address);
    }
    void sort_by(std::uint64_t core_segment::*what) {
        std::stable_sort(segments_.begin(), segments_.end(),
                         [what](const auto& a, const auto& b) { return a.*what < b.*what; });
    }
    /// Sorts the segments by where they begin, and empties those that overlap the one before.
    void separate(std::uint64_t core_segment::*begin, std::uint64_t core_segment::*bytes,
                  const char* what) {
        sort_by(begin);
        std::uint64_t end = 0;
        for (auto& s : segments_) {
            if (s.*bytes == 0) continue;
            if (s.*begin < end) {
                note_damage(s.header, what);
                s.*bytes = 0;
            } else {
                end = s.*begin + s.*bytes;
            }
        }
    }

    void read_notes(const reduce::extent& where, std::size_t& left) {
        const std::uint64_t size = bytes_.size();
        std::uint64_t from = (std::min)(where.offset, size);
        const std::uint64_t end = from + (std::min)(where.bytes, size - from);
        const auto padded = [](std::uint32_t bytes) { return (std::uint64_t{bytes} + 3) / 4 * 4; };
        while (end - from >= 12) {
            if (left == 0) return note_damage(from, "more notes than are read");
            --left;
            std::array<std::byte, 20> head{};
            if (!fetch(from, std::span(head).first(12))) return;
            const auto name_bytes = get<std::uint32_t>(head, 0);
            const auto bytes = get<std::uint32_t>(head, 4);
            const std::uint64_t text = from + 12 + padded(name_bytes);
            if (text > end || bytes > end - text) {
                return note_damage(from, "a note that goes on beyond the others' end");
            }
            if (get<std::uint32_t>(head, 8) == file_note && name_bytes == 5 &&
                fetch(from + 12, std::span(head).subspan(12, 5)) &&
                std::equal(head.begin() + 12, head.begin() + 17, core_name.begin())) {
                read_files(text, bytes);
            }
            if (padded(bytes) > end - text) return;
            from = text + padded(bytes);
        }
    }

    void read_files(std::uint64_t offset, std::uint32_t bytes) {
        const std::size_t w = word_bytes();
        if (bytes > most_note_bytes) return note_damage(offset, "a note of impossible length");
        std::vector<std::byte> all(bytes);
        if (bytes < 2 * w || !fetch(offset, all)) {
            return note_damage(offset, "the note of mapped files is cut short");
        }
        const std::uint64_t count = word(all, 0), page = word(all, w);
        if (count > (bytes - 2 * w) / (3 * w)) {
            return note_damage(offset, "the note of mapped files is shorter than its count");
        }
        auto name = trace_ring::as_size(2 * w + count * 3 * w);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t entry = 2 * w + i * 3 * w;
            const auto zero =
                std::find(all.begin() + static_cast<std::ptrdiff_t>(name), all.end(), std::byte{0});
            if (zero == all.end()) {
                return note_damage(offset + entry, "a mapped file's name is missing");
            }
            const auto length = static_cast<std::size_t>(zero - all.begin()) - name;
            mapped_file one{word(all, entry), word(all, entry + w), word(all, entry + 2 * w),
                            offset + entry,
                            std::string(reinterpret_cast<const char*>(all.data()) + name, length)};
            name += length + 1;
            if (one.begin >= one.end || (page != 0 && one.file_offset > ~std::uint64_t{0} / page)) {
                note_damage(offset + entry, "an impossible mapping of a file");
                continue;
            }
            one.file_offset *= page;
            files_.push_back(std::move(one));
        }
    }

    static constexpr std::array core_name{std::byte{'C'}, std::byte{'O'}, std::byte{'R'},
                                          std::byte{'E'}, std::byte{0}};
    reduce::source bytes_;
    bool wide_ = false;
    std::uint64_t headers_ = 0;
    std::size_t count_ = 0;
    std::vector<core_segment> segments_{};
    std::vector<mapped_file> files_{};
    std::vector<trace_ring::damage> damages_{};
};

}  // namespace trace_reduce
