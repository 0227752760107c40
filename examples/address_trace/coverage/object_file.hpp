// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The sections, symbols and relocations of a program or library.

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <trace_ring/instrument/modules.hpp>
#include <trace_ring/policy/storage/mapping.hpp>

namespace address_trace {

using bytes_view = std::span<const std::uint8_t>;

struct section {
    std::string_view name;
    GElf_Shdr head{};
    bytes_view bytes;  // empty for a section that is not in the file

    [[nodiscard]] bool is_code() const {
        return (head.sh_flags & SHF_EXECINSTR) != 0 && !bytes.empty();
    }
    [[nodiscard]] bool is_stubs() const { return name.starts_with(".plt"); }
};

/// A file in memory. Does not throw: parts that cannot be read are missing.
class object_file {
public:
    explicit object_file(const std::string& path)
        // Opening a pipe would block.
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (!fd_) {
            unreadable_ = "its file cannot be opened: " + std::generic_category().message(errno);
            return;
        }
        ::elf_version(EV_CURRENT);
        elf_.reset(::elf_begin(fd_.get(), ELF_C_READ_MMAP, nullptr));
        std::size_t names = 0;
        if (elf_ == nullptr || ::elf_kind(elf_.get()) != ELF_K_ELF) {
            unreadable_ = "its file is no ELF file";
        } else if (::elf_getshdrstrndx(elf_.get(), &names) != 0) {
            unreadable_ = "its file has no names of sections";
        }
        if (!unreadable_.empty()) return;
        for (Elf_Scn* each = nullptr; (each = ::elf_nextscn(elf_.get(), each)) != nullptr;) {
            section made;
            if (::gelf_getshdr(each, &made.head) == nullptr) continue;
            const char* const name = ::elf_strptr(elf_.get(), names, made.head.sh_name);
            if (name != nullptr) made.name = name;
            const Elf_Data* const data =
                made.head.sh_type == SHT_NOBITS ? nullptr : ::elf_rawdata(each, nullptr);
            if (data != nullptr && data->d_buf != nullptr)
                made.bytes = {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
            sections_.push_back(made);
        }
    }
    /// Why it is not the file with that build id; empty: it is.
    [[nodiscard]] std::string problem(const std::string& id) const {
        if (!unreadable_.empty()) return unreadable_;
        return build_id() == id ? "" : "its file is another one by now";
    }
    [[nodiscard]] const std::vector<section>& sections() const { return sections_; }
    [[nodiscard]] const section* find(std::string_view name) const {
        const auto found = std::ranges::find(sections_, name, &section::name);
        return found == sections_.end() ? nullptr : &*found;
    }
    /// The bytes of the build id.
    [[nodiscard]] std::string build_id() const {
        const section* const note = find(".note.gnu.build-id");
        if (note == nullptr) return {};
        const auto id =
            trace_ring::instrument::impl::build_id(note->bytes.data(), note->bytes.size());
        return {reinterpret_cast<const char*>(id.data()), id.size()};
    }
    /// Calls `visit(name, symbol, number)` for each symbol of a table.
    template <class Visit>
    void each_symbol(const section& table, Visit visit) const {
        each_entry(table, [&](Elf_Data* data, int i) {
            GElf_Sym symbol;
            if (::gelf_getsym(data, i, &symbol) == nullptr) return;
            const char* const name = ::elf_strptr(elf_.get(), table.head.sh_link, symbol.st_name);
            visit(std::string_view(name == nullptr ? "" : name), symbol, i);
        });
    }
    /// Calls `visit(place, number of the symbol)` for each relocation of a table.
    template <class Visit>
    void each_relocation(const section& table, Visit visit) const {
        each_entry(table, [&](Elf_Data* data, int i) {
            GElf_Rela one;
            if (::gelf_getrela(data, i, &one) == nullptr) return;
            visit(one.r_offset, static_cast<int>(GELF_R_SYM(one.r_info)));
        });
    }

private:
    struct ends_elf {
        void operator()(Elf* of) const { ::elf_end(of); }
    };
    /// Calls `visit(data, number)` for each entry of a table.
    template <class Visit>
    void each_entry(const section& table, Visit visit) const {
        Elf_Scn* const part = ::elf_getscn(elf_.get(), number_of(table));
        Elf_Data* const data = part == nullptr ? nullptr : ::elf_getdata(part, nullptr);
        if (data == nullptr || table.head.sh_entsize == 0) return;
        const auto count = static_cast<int>(table.head.sh_size / table.head.sh_entsize);
        for (int i = 0; i < count; ++i) visit(data, i);
    }
    [[nodiscard]] std::size_t number_of(const section& of) const {
        return static_cast<std::size_t>(&of - sections_.data()) + 1;  // number 0 is no section
    }

    trace_ring::file_descriptor fd_;
    std::string unreadable_;  // why; empty: it is an ELF file
    std::unique_ptr<Elf, ends_elf> elf_;
    std::vector<section> sections_;
};

}  // namespace address_trace
