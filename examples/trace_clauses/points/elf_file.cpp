// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "elf_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace trace_clauses {
namespace {

constexpr std::size_t most_sections = 1U << 20;
/// The maximum size of an unpacked section. Sections made by a compiler shrink at most tenfold.
[[nodiscard]] std::uint64_t most_unpacked(std::uint64_t packed) {
    return 64 * packed + (1U << 20);
}

template <class T>
[[nodiscard]] T number_at(std::span<const std::byte> from, std::size_t at) {
    T value{};
    std::memcpy(&value, from.data() + at, sizeof value);
    return value;
}

[[nodiscard]] std::string hexadecimal(std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const std::byte one : bytes) {
        out += digits[std::to_integer<std::size_t>(one) >> 4];
        out += digits[std::to_integer<std::size_t>(one) & 15];
    }
    return out;
}

/// The checksum of a debuglink: CRC-32 as in gzip. Empty if the file cannot be read.
[[nodiscard]] std::optional<std::uint32_t> checksum_of(const std::string& path) {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320U : 0);
        table[i] = value;
    }
    std::FILE* const file = std::fopen(path.c_str(), "rbe");
    if (file == nullptr) return std::nullopt;
    std::uint32_t sum = ~0U;
    std::array<unsigned char, 65536> buffer;
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file)) {
        for (std::size_t i = 0; i < got; ++i) sum = sum >> 8 ^ table[(sum ^ buffer[i]) & 0xFF];
    }
    const bool whole = std::ferror(file) == 0;
    std::fclose(file);
    return whole ? std::optional(~sum) : std::nullopt;
}

}  // namespace

elf_file::elf_file(std::string path, std::string shown)
    : path_(std::move(path)), shown_(shown.empty() ? path_ : std::move(shown)) {
    try {
        open();
    } catch (...) {
        if (elf_ != nullptr) elf_end(elf_);
        if (file_ >= 0) ::close(file_);
        throw;
    }
}

elf_file::~elf_file() {
    elf_end(elf_);
    ::close(file_);
}

void elf_file::fail(const std::string& cause) const {
    throw std::runtime_error(shown_ + ": " + cause);
}
void elf_file::damaged(const char* where) const {
    fail(std::string("a damaged file: ") + where);
}

void elf_file::open() {
    // Opening a pipe would block.
    file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0) {
        fail(std::generic_category().message(errno));
    }
    if (!S_ISREG(status.st_mode)) fail("no file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (elf_version(EV_CURRENT) == EV_NONE)
        fail("libelf has a different version than the one this was compiled with");
    // Not mapped: truncating a mapped file would kill this process.
    elf_ = elf_begin(file_, ELF_C_READ, nullptr);
    GElf_Ehdr header{};
    if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF) {
        fail("no ELF file");
    }
    if (gelf_getehdr(elf_, &header) == nullptr) fail("a damaged file: it ends in its header");
    const int bits = gelf_getclass(elf_);
    const bool wide = bits == ELFCLASS64 && header.e_machine == EM_X86_64;
    const bool narrow = bits == ELFCLASS32 && header.e_machine == EM_386;
    if (header.e_ident[EI_DATA] != ELFDATA2LSB || (!wide && !narrow)) {
        fail("for another processor than x86-64 and i386");
    }
    mode_ = wide ? program_mode::lp64 : program_mode::ilp32;
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) fail("no program and no library");
    std::size_t sections = 0;
    if (elf_getshdrnum(elf_, &sections) != 0) damaged("its sections");
    // libelf reports no sections if their headers are not all in the file.
    sections = std::max<std::size_t>(sections, header.e_shnum);
    const std::uint64_t each = wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (header.e_shoff != 0 && (sections > most_sections || header.e_shoff > size_ ||
                                sections * each > size_ - header.e_shoff)) {
        damaged("it ends before its sections");
    }
    find_segments();
    std::uint64_t all = 0;
    each_section([&](Elf_Scn* at, const GElf_Shdr& section, std::string_view name) {
        if (section.sh_type != SHT_NOBITS &&
            (section.sh_offset > size_ || section.sh_size > size_ - section.sh_offset)) {
            damaged("it ends before a section's end");
        }
        // Work and memory stay proportional to the file, because sections may not overlap much.
        if (section.sh_type != SHT_NOBITS) all += section.sh_size;
        if (all > 4 * size_) damaged("sections that overlap");
        if (name.starts_with(".zdebug")) fail("its debug information is compressed in an old way");
        if ((section.sh_flags & SHF_COMPRESSED) == 0) return;
        GElf_Chdr packed;
        if (gelf_getchdr(at, &packed) == nullptr ||
            packed.ch_size > most_unpacked(section.sh_size)) {
            damaged("a compressed section");
        }
    });
    find_build_id();
}

void elf_file::find_segments() {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_, &count) != 0) damaged("its segments");
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr one;
        if (gelf_getphdr(elf_, static_cast<int>(i), &one) == nullptr) damaged("its segments");
        if (one.p_type != PT_LOAD && one.p_type != PT_INTERP) continue;
        // A file of debug information has its program's segments, but not their bytes.
        const bool within = one.p_offset <= size_ && one.p_filesz <= size_ - one.p_offset;
        if (one.p_type == PT_LOAD) {
            if (one.p_vaddr + one.p_filesz < one.p_vaddr) damaged("its segments");
            segments_.push_back(
                {one.p_vaddr, one.p_offset, within ? one.p_filesz : 0, (one.p_flags & PF_X) != 0});
        } else if (within && one.p_filesz != 0 && one.p_filesz < 4096) {
            const Elf_Data* const data =
                elf_getdata_rawchunk(elf_, static_cast<std::int64_t>(one.p_offset),
                                     static_cast<std::size_t>(one.p_filesz), ELF_T_BYTE);
            if (data == nullptr || data->d_buf == nullptr) damaged("its interpreter's name");
            const auto* const text = static_cast<const char*>(data->d_buf);
            interpreter_.assign(text, strnlen(text, data->d_size));
        }
    }
}

std::optional<std::uint64_t> elf_file::offset_of(std::uint64_t address,
                                                 bool in_code) const noexcept {
    for (const segment& one : segments_) {
        if (address >= one.address && address - one.address < one.size &&
            (one.is_code || !in_code)) {
            return address - one.address + one.offset;
        }
    }
    return std::nullopt;
}

bool elf_file::read(std::uint64_t address, std::span<std::byte> into) const noexcept {
    const auto at = offset_of(address, false);
    if (!at || into.empty()) return into.empty();
    const auto last = offset_of(address + into.size() - 1, false);
    return last && *last - *at == into.size() - 1 &&
           ::pread(file_, into.data(), into.size(), static_cast<::off_t>(*at)) ==
               static_cast<::ssize_t>(into.size());
}

std::span<const std::byte> elf_file::bytes_of(Elf_Scn* section) const {
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    if (data == nullptr) damaged("a section");
    if (data->d_buf == nullptr) return {};
    return {static_cast<const std::byte*>(data->d_buf), data->d_size};
}

void elf_file::find_build_id() {
    each_section([&](Elf_Scn* at, const GElf_Shdr& section, std::string_view name) {
        if (section.sh_type != SHT_NOTE || name != ".note.gnu.build-id") return;
        auto rest = bytes_of(at);
        while (const auto one = next_note(rest)) {
            if (one->owner == "GNU" && one->type == NT_GNU_BUILD_ID && one->text.size() <= 64) {
                build_id_.assign(one->text.begin(), one->text.end());
            }
        }
    });
}

std::optional<note> next_note(std::span<const std::byte>& from) {
    constexpr std::size_t head = 12;
    const auto rounded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
    if (from.size() < head) return std::nullopt;
    const auto owner_size = number_at<std::uint32_t>(from, 0);
    const auto text_size = number_at<std::uint32_t>(from, 4);
    const std::uint64_t begin = head + rounded(owner_size);
    if (begin + text_size > from.size()) return std::nullopt;
    const auto* const owner = reinterpret_cast<const char*>(from.data()) + head;
    const note made{{owner, strnlen(owner, owner_size)},
                    number_at<std::uint32_t>(from, 8),
                    from.subspan(static_cast<std::size_t>(begin), text_size)};
    const std::uint64_t end = begin + rounded(text_size);
    from = from.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(end, from.size())));
    return made;
}

namespace {

/// The name and the checksum of a debuglink.
struct debug_link {
    std::string name;
    std::uint32_t checksum = 0;
};
[[nodiscard]] std::optional<debug_link> debug_link_of(const elf_file& of) {
    std::optional<debug_link> found;
    of.each_section([&](Elf_Scn* at, const GElf_Shdr& section, std::string_view name) {
        if (section.sh_type != SHT_PROGBITS || name != ".gnu_debuglink") return;
        const auto bytes = of.bytes_of(at);
        if (bytes.size() < 8 || bytes.size() > 4096) return;
        const auto* const text = reinterpret_cast<const char*>(bytes.data());
        const std::size_t length = strnlen(text, bytes.size());
        const std::size_t sum = (length + 4) / 4 * 4;
        // A file name only, not a path to other folders.
        if (length == 0 || sum + 4 > bytes.size() || std::memchr(text, '/', length) != nullptr) {
            return;
        }
        found = {std::string(text, length), number_at<std::uint32_t>(bytes, sum)};
    });
    return found;
}

}  // namespace

std::optional<std::string> debug_file_of(const elf_file& of) {
    namespace fs = std::filesystem;
    const std::string all = "/usr/lib/debug";
    std::error_code error;
    const auto is_its = [&](const std::string& path) {
        if (!fs::is_regular_file(path, error) || fs::equivalent(path, of.path(), error)) {
            return false;
        }
        try {
            const elf_file debug(path);
            return debug.mode() == of.mode() && debug.build_id() == of.build_id();
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    const std::string id = hexadecimal(of.build_id());
    if (id.size() > 2) {
        const std::string path = all + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2);
        if (is_its(path + ".debug")) return path + ".debug";
    }
    const auto link = debug_link_of(of);
    if (!link) return std::nullopt;
    const fs::path folder = fs::weakly_canonical(of.path(), error).parent_path();
    for (const std::string& where :
         {folder.string(), (folder / ".debug").string(), all + folder.string()}) {
        const std::string path = where + "/" + link->name;
        if (is_its(path) && (!id.empty() || checksum_of(path) == link->checksum)) return path;
    }
    return std::nullopt;
}

}  // namespace trace_clauses
