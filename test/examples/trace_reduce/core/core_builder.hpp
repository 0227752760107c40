// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes ELF core dumps, of either word size, field by field. What it makes is sound unless a test
/// then makes it otherwise.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace trace_ring_test {

class core_builder {
public:
    explicit core_builder(bool wide = true) : wide_(wide) {}

    /// Memory of which the core has `present`; the program had `bytes` of it, if that is more.
    core_builder& memory(std::uint64_t address, std::span<const std::byte> present,
                         std::uint64_t bytes = 0, std::uint32_t flags = 6) {
        const auto* const from = reinterpret_cast<const std::uint8_t*>(present.data());
        segments_.push_back({address, std::max<std::uint64_t>(bytes, present.size()), flags,
                             std::vector<std::uint8_t>(from, from + present.size())});
        return *this;
    }
    core_builder& file(std::uint64_t begin, std::uint64_t end, std::uint64_t pages,
                       std::string path) {
        files_.push_back({begin, end, pages, std::move(path)});
        return *this;
    }
    /// The count of program headers is where there is room for a large one.
    core_builder& many_headers() {
        many_ = true;
        return *this;
    }

    /// Where the program header and the memory of a segment lie in what `build` made.
    [[nodiscard]] std::size_t header_of(std::size_t number) const {
        return header_bytes() + (number + 1) * segment_bytes();
    }
    [[nodiscard]] std::size_t offset_of(std::size_t number) const {
        return segments_[number].offset;
    }
    /// Of the note of mapped files: of its count.
    [[nodiscard]] std::size_t files_at() const { return files_at_; }

    [[nodiscard]] std::vector<std::uint8_t> build() {
        out_.clear();
        const std::size_t count = segments_.size() + 1;
        const std::size_t headers = header_bytes();
        const std::size_t notes_at = headers + count * segment_bytes();
        const auto notes = note() + (files_.empty() ? "" : file_note());
        std::size_t at = notes_at + notes.size();
        const std::size_t section = (at + 7) / 8 * 8;
        if (many_) at = section + (wide_ ? 64 : 40);
        for (auto& s : segments_) {
            at = (at + 4095) / 4096 * 4096;
            s.offset = at;
            at += s.bytes.size();
        }
        out_.resize(at);
        const std::uint8_t ident[] = {
            0x7F, 'E', 'L', 'F', wide_ ? std::uint8_t{2} : std::uint8_t{1}, 1, 1};
        std::memcpy(out_.data(), ident, sizeof ident);
        put(16, 4, 2);
        put(18, wide_ ? 62 : 3, 2);
        put(20, 1, 4);
        word(wide_ ? 32 : 28, headers);
        if (many_) word(wide_ ? 40 : 32, section);
        const std::size_t tail = wide_ ? 52 : 40;
        put(tail, headers, 2);
        put(tail + 2, segment_bytes(), 2);
        put(tail + 4, many_ ? 0xFFFF : count, 2);
        if (many_) put(section + (wide_ ? 44 : 28), count, 4);
        program_header(headers, 4, 0, notes_at, 0, notes.size(), 0);
        for (std::size_t i = 0; i < segments_.size(); ++i) {
            const auto& s = segments_[i];
            program_header(header_of(i), 1, s.flags, s.offset, s.address, s.bytes.size(), s.memory);
            std::copy(s.bytes.begin(), s.bytes.end(),
                      out_.begin() + static_cast<std::ptrdiff_t>(s.offset));
        }
        std::memcpy(out_.data() + notes_at, notes.data(), notes.size());
        files_at_ = notes_at + note().size() + 20;
        return out_;
    }
    void save(const std::string& path) {
        const auto bytes = build();
        std::ofstream out(path, std::ios::binary | std::ios::trunc);
        if (!out.write(reinterpret_cast<const char*>(bytes.data()),
                       static_cast<std::streamsize>(bytes.size()))
                 .flush()) {
            throw std::runtime_error("cannot write " + path);
        }
    }

private:
    struct segment {
        std::uint64_t address;
        std::uint64_t memory;
        std::uint32_t flags;
        std::vector<std::uint8_t> bytes;
        std::size_t offset = 0;
    };
    struct mapping {
        std::uint64_t begin, end, pages;
        std::string path;
    };

    [[nodiscard]] std::size_t header_bytes() const { return wide_ ? 64 : 52; }
    [[nodiscard]] std::size_t segment_bytes() const { return wide_ ? 56 : 32; }
    void put(std::size_t at, std::uint64_t value, std::size_t bytes) {
        std::memcpy(&out_.at(at), &value, bytes);  // little-endian
    }
    void word(std::size_t at, std::uint64_t value) { put(at, value, wide_ ? 8 : 4); }
    void program_header(std::size_t at, std::uint32_t type, std::uint32_t flags, std::uint64_t from,
                        std::uint64_t address, std::uint64_t present, std::uint64_t memory) {
        const std::size_t w = wide_ ? 8 : 4;
        put(at, type, 4);
        put(at + (wide_ ? 4 : 24), flags, 4);
        std::size_t next = at + w;
        for (const auto value : {from, address, std::uint64_t{0}, present, memory}) {
            word(next, value);
            next += w;
        }
    }
    [[nodiscard]] static std::string number(std::uint64_t value, std::size_t bytes) {
        std::string out(bytes, '\0');
        std::memcpy(out.data(), &value, bytes);
        return out;
    }
    [[nodiscard]] static std::string padded(std::string bytes) {
        bytes.resize((bytes.size() + 3) / 4 * 4);
        return bytes;
    }
    [[nodiscard]] static std::string note_of(std::uint32_t type, const std::string& bytes) {
        return number(5, 4) + number(bytes.size(), 4) + number(type, 4) +
               padded(std::string("CORE", 5)) + padded(bytes);
    }
    /// As the state of a thread comes first.
    [[nodiscard]] static std::string note() { return note_of(1, std::string(13, '\x55')); }
    [[nodiscard]] std::string file_note() const {
        const std::size_t w = wide_ ? 8 : 4;
        std::string out = number(files_.size(), w) + number(4096, w);
        std::string names;
        for (const auto& each : files_) {
            out += number(each.begin, w) + number(each.end, w) + number(each.pages, w);
            names += each.path + std::string(1, '\0');
        }
        return note_of(0x46494C45, out + names);
    }

    bool wide_;
    bool many_ = false;
    std::vector<segment> segments_;
    std::vector<mapping> files_;
    std::vector<std::uint8_t> out_;
    std::size_t files_at_ = 0;
};

}  // namespace trace_ring_test
