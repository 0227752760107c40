// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "symbols.hpp"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "rust_name.hpp"
#include "source_units.hpp"

namespace symbols {

std::string file_name(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

std::string symbol::name() const {
    if (!function.empty()) return function;
    if (object.empty()) return fmt::format("{:#x}", offset);
    return fmt::format("{}+{:#x}", object, offset);
}

std::string symbol::place() const {
    if (function.empty()) return name();
    return offset == 0 ? function : fmt::format("{}+{:#x}", function, offset);
}

std::string symbol::where() const {
    if (!file.empty()) return fmt::format("{}:{}", file_name(file), line);
    return object;
}

std::string place_and_line(const std::vector<symbol>& of) {
    const std::string place = of.back().place();
    return of.front().line == 0 ? place : place + ' ' + of.front().where();
}

std::string demangle(const char* name) {
    // The demangler interprets any name as a type: `f`, a C function, as `float`.
    const std::string_view mangled(name);
    if (mangled.starts_with("_R")) {
        const std::string readable = rust_name(name);
        return readable.empty() ? name : readable;
    }
    if (!mangled.starts_with("_Z") && !mangled.starts_with("_GLOBAL_")) return name;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 && readable ? readable.get() : name;
}

std::string without_arguments(const std::string& text) {
    constexpr std::string_view op = "operator";
    std::string out;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool after_operator = out.ends_with(op) || out.ends_with("operator<") ||
                                    out.ends_with("operator>") || out.ends_with("operator-");
        if ((c == '<' || c == '>') && depth == 0 && after_operator) {
            out += c;  // of operator<, operator<<, operator->
            continue;
        }
        if (c == '(' && depth == 0 && text.compare(i, 21, "(anonymous namespace)") == 0) {
            out += "(anonymous namespace)";
            i += 20;
            continue;
        }
        if (c == '<' || c == '(') {
            if (depth++ == 0) out += c;
            continue;
        }
        if ((c == '>' || c == ')') && depth > 0) {
            if (--depth == 0) out += c;
            continue;
        }
        if (depth == 0) out += c;
    }
    return out;
}

namespace {

const Dwfl_Callbacks callbacks{
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

/// What libdw gives as an array to be freed.
using die_list = std::unique_ptr<Dwarf_Die, decltype(&std::free)>;
template <class Get>
[[nodiscard]] std::span<Dwarf_Die> dies(die_list& list, Get get) {
    Dwarf_Die* found = nullptr;
    const int count = get(&found);
    list.reset(found);
    return {found, count > 0 ? static_cast<std::size_t>(count) : 0};
}

[[nodiscard]] bool is_cxx(Dwarf_Die& of) {
    Dwarf_Die unit;
    if (dwarf_diecu(&of, &unit, nullptr, nullptr) == nullptr) return false;
    const int language = dwarf_srclang(&unit);
    return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
           language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14;
}

/// A function's name as its symbol would have it, if it had one. What only its source file sees has
/// no mangled name: then without arguments.
[[nodiscard]] std::string function_name(Dwarf_Die& of) {
    Dwarf_Attribute attribute;
    for (const unsigned mangled : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        if (const char* const name =
                dwarf_formstring(dwarf_attr_integrate(&of, mangled, &attribute))) {
            return demangle(name);
        }
    }
    const char* const last = dwarf_diename(&of);
    if (last == nullptr) return {};
    // Where it is declared: in the namespaces and classes around that.
    Dwarf_Die declared = of;
    for (const unsigned way : {DW_AT_abstract_origin, DW_AT_specification}) {
        Dwarf_Die further;
        if (dwarf_formref_die(dwarf_attr(&declared, way, &attribute), &further) != nullptr) {
            declared = further;
        }
    }
    std::string name = last;
    die_list list(nullptr, &std::free);
    for (Dwarf_Die& around :
         dies(list, [&](Dwarf_Die** out) { return dwarf_getscopes_die(&declared, out); })) {
        const int tag = dwarf_tag(&around);
        if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type) {
            continue;
        }
        const char* const part = dwarf_diename(&around);
        name = fmt::format("{}::{}", part != nullptr ? part : "(anonymous namespace)", name);
    }
    return is_cxx(of) ? name + "()" : name;
}

/// If a folder is relative, as in `-I../include`, libdw returns a relative path: relative to the
/// folder in which the unit was compiled.
[[nodiscard]] std::string source_path(Dwarf_Die* unit, const std::string& path) {
    Dwarf_Attribute attribute;
    const char* const folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    // That folder may be relative, too (-fdebug-prefix-map), and the path begin with it.
    if (folder == nullptr || path.starts_with('/') || path.starts_with(folder + std::string("/")))
        return path;
    return folder + ('/' + path);
}

/// A function that was inlined, and the line of the call of it.
struct inlined_call {
    std::string function, file;
    int line = 0;
};

/// Those whose code is at `address`, the innermost first.
[[nodiscard]] std::vector<inlined_call> inlined_at(Dwarf_Die* unit, std::uint64_t address) {
    std::vector<inlined_call> calls;
    die_list by_address(nullptr, &std::free), by_place(nullptr, &std::free);
    const auto inner =
        dies(by_address, [&](Dwarf_Die** out) { return dwarf_getscopes(unit, address, out); });
    if (inner.empty()) return calls;
    // From an inlined function on those are what is around its definition, not around its call.
    const auto around =
        dies(by_place, [&](Dwarf_Die** out) { return dwarf_getscopes_die(&inner[0], out); });
    Dwarf_Files* files = nullptr;
    dwarf_getsrcfiles(unit, &files, nullptr);
    for (Dwarf_Die& scope : around) {
        if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) continue;
        inlined_call call;
        call.function = function_name(scope);
        Dwarf_Attribute attribute;
        Dwarf_Word file = 0, line = 0;
        const bool has_file =
            dwarf_formudata(dwarf_attr(&scope, DW_AT_call_file, &attribute), &file) == 0;
        const char* const path =
            has_file && files != nullptr ? dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
        if (path != nullptr) call.file = source_path(unit, path);
        if (dwarf_formudata(dwarf_attr(&scope, DW_AT_call_line, &attribute), &line) == 0) {
            call.line = static_cast<int>(line);
        }
        calls.push_back(std::move(call));
    }
    return calls;
}

}  // namespace

struct object::library {
    Dwfl* session = nullptr;
    Dwfl_Module* module = nullptr;
    source_units units;

    library() : session(dwfl_begin(&callbacks)) {}
    library(const library&) = delete;
    library& operator=(const library&) = delete;
    ~library() {
        if (session != nullptr) dwfl_end(session);
    }

    /// What is wrong; empty: it is open.
    [[nodiscard]] std::string open(const std::string& name, const std::string& path,
                                   const std::string& build_id) {
        if (session == nullptr) return dwfl_errmsg(-1);
        // Not a pipe, which would be waited for.
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return "cannot be opened";
        dwfl_report_begin(session);
        module = dwfl_report_elf(session, name.c_str(), path.c_str(), fd, 0, true);
        std::string problem;
        if (module == nullptr) {
            problem = dwfl_errmsg(-1);
            ::close(fd);  // else the module owns it
        }
        dwfl_report_end(session, nullptr, nullptr);
        if (module == nullptr) return problem;
        const unsigned char* bits = nullptr;
        GElf_Addr at = 0;
        const int length = dwfl_module_build_id(module, &bits, &at);
        if (length > 0 && !build_id.empty() &&
            std::string_view(reinterpret_cast<const char*>(bits),
                             static_cast<std::size_t>(length)) != build_id) {
            module = nullptr;
            return "has changed since the trace was made";
        }
        return {};
    }

    [[nodiscard]] Elf* elf() const {
        GElf_Addr moved = 0;
        return module == nullptr ? nullptr : dwfl_module_getelf(module, &moved);
    }
    /// The first loaded segment of that sort.
    template <class Wanted>
    [[nodiscard]] std::optional<GElf_Phdr> segment(Wanted wanted) const {
        std::size_t count = 0;
        if (elf() == nullptr || elf_getphdrnum(elf(), &count) != 0) return std::nullopt;
        for (std::size_t i = 0; i < count; ++i) {
            GElf_Phdr header{};
            if (gelf_getphdr(elf(), static_cast<int>(i), &header) == nullptr) break;
            if (header.p_type == PT_LOAD && wanted(header)) return header;
        }
        return std::nullopt;
    }
};

object::object(const std::string& path, const std::string& build_id)
    : library_(std::make_unique<library>()), name_(file_name(path)) {
    // A report is made from what is on this machine; it does not wait for a network.
    ::unsetenv("DEBUGINFOD_URLS");  // NOLINT(concurrency-mt-unsafe): of programs with one thread
    problem_ = library_->open(name_, path, build_id);
    if (problem_.empty()) read_functions();
}
object::~object() = default;

std::string object::build_id() const {
    const unsigned char* bits = nullptr;
    GElf_Addr at = 0;
    const int length =
        library_->module == nullptr ? 0 : dwfl_module_build_id(library_->module, &bits, &at);
    if (length <= 0) return {};
    return {reinterpret_cast<const char*>(bits), static_cast<std::size_t>(length)};
}

std::vector<symbol> object::at(std::uint64_t address) const {
    return describe(address, address);
}
std::vector<symbol> object::before(std::uint64_t return_address) const {
    return describe(return_address - 1, return_address);
}

std::vector<symbol> object::describe(std::uint64_t looked_at, std::uint64_t address) const {
    symbol found;
    found.object = name_;
    found.offset = address;
    if (library_->module == nullptr) return {found};
    if (const function* const in = function_at(looked_at)) {
        found.function = demangle(in->name.c_str());
        found.offset = address - in->start;
    }
    const auto [unit, bias] = library_->units.find(library_->module, looked_at);
    if (unit == nullptr) return {found};
    if (Dwarf_Line* const line = dwarf_getsrc_die(unit, looked_at - bias)) {
        if (const char* const source = dwarf_linesrc(line, nullptr, nullptr)) {
            found.file = source_path(unit, source);
            dwarf_lineno(line, &found.line);
        }
    }
    // The innermost function has the line of the address, each other one the line of its call.
    std::vector<symbol> all;
    for (inlined_call& call : inlined_at(unit, looked_at - bias)) {
        all.push_back({std::move(call.function), 0, name_, std::move(found.file), found.line});
        found.file = std::move(call.file);
        found.line = call.line;
    }
    all.push_back(std::move(found));
    return all;
}

const function* object::function_at(std::uint64_t address) const {
    const auto after =
        std::upper_bound(functions_.begin(), functions_.end(), address,
                         [](std::uint64_t value, const function& f) { return value < f.start; });
    if (after == functions_.begin()) return nullptr;
    const function& last = *std::prev(after);
    return address < last.end ? &last : nullptr;
}

std::vector<line_row> object::lines(std::uint64_t start, std::uint64_t end) const {
    std::vector<line_row> rows;
    if (library_->module == nullptr) return rows;
    Dwarf_Die* const unit = library_->units.find(library_->module, start).unit;
    std::size_t count = 0;
    if (unit == nullptr || dwfl_getsrclines(unit, &count) != 0) return rows;
    for (std::size_t i = 0; i < count; ++i) {
        Dwarf_Addr address = 0;
        int number = 0;
        Dwfl_Line* const line = dwfl_onesrcline(unit, i);
        const char* const source =
            dwfl_lineinfo(line, &address, &number, nullptr, nullptr, nullptr);
        if (source == nullptr || number <= 0 || address < start || address >= end) continue;
        rows.push_back({address, file_name(source), number});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const line_row& a, const line_row& b) { return a.address < b.address; });
    return rows;
}

std::uint64_t object::bias(std::uint64_t start, std::uint64_t offset) const {
    // A segment is mapped from the page of its first byte. If two segments share a page, the code's
    // mapping is used. However, a program without PT_GNU_STACK may have all readable parts mapped
    // as code, from its headers on.
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const auto holds = [offset, page](const GElf_Phdr& s) {
        return offset >= s.p_offset / page * page && offset < s.p_offset + s.p_filesz;
    };
    auto segment = library_->segment(
        [holds](const GElf_Phdr& s) { return (s.p_flags & PF_X) != 0 && holds(s); });
    if (!segment) segment = library_->segment(holds);
    return segment ? start - (segment->p_vaddr - segment->p_offset + offset) : start - offset;
}

std::pair<std::uint64_t, std::uint64_t> object::extent() const {
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    static_cast<void>(library_->segment([&](const GElf_Phdr& s) {
        begin = std::min(begin, s.p_vaddr);
        end = std::max(end, s.p_vaddr + s.p_memsz);
        return false;
    }));
    return end == 0 ? std::pair<std::uint64_t, std::uint64_t>() : std::pair(begin, end);
}

std::span<const std::uint8_t> object::bytes(std::uint64_t address, std::size_t most) const {
    const auto segment = library_->segment([address](const GElf_Phdr& s) {
        return address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz;
    });
    std::size_t size = 0;
    const char* const file = segment ? elf_rawfile(library_->elf(), &size) : nullptr;
    if (file == nullptr || segment->p_offset > size ||
        address - segment->p_vaddr >= size - segment->p_offset) {
        return {};
    }
    const std::uint64_t skip = address - segment->p_vaddr;
    const std::uint64_t there =
        std::min<std::uint64_t>(segment->p_filesz, size - segment->p_offset) - skip;
    return {reinterpret_cast<const std::uint8_t*>(file) + segment->p_offset + skip,
            static_cast<std::size_t>(std::min<std::uint64_t>(there, most))};
}

bool object::is_64() const {
    Elf* const elf = library_->elf();
    return elf == nullptr || gelf_getclass(elf) == ELFCLASS64;
}

// Sorted once, as dwfl_module_addrinfo looks at every symbol for every address.
void object::read_functions() {
    const int count = dwfl_module_getsymtab(library_->module);
    for (int i = 1; i < count; ++i) {
        GElf_Sym entry{};
        GElf_Addr at = 0;
        const char* const text =
            dwfl_module_getsym_info(library_->module, i, &entry, &at, nullptr, nullptr, nullptr);
        const auto type = GELF_ST_TYPE(entry.st_info);
        if (text == nullptr || *text == '\0' || entry.st_shndx == SHN_UNDEF ||
            (type != STT_FUNC && type != STT_GNU_IFUNC)) {
            continue;
        }
        const std::string_view versioned(text);
        // One without a size, of hand-written code, is taken to reach to the next.
        functions_.push_back({at, entry.st_size != 0 ? at + entry.st_size : 0,
                              std::string(versioned.substr(0, versioned.find('@'))),
                              GELF_ST_BIND(entry.st_info) != STB_LOCAL});
    }
    // Of several names for one function the last in this order is found: setlocale, not
    // __GI_setlocale.
    std::sort(functions_.begin(), functions_.end(), [](const function& a, const function& b) {
        if (a.start != b.start) return a.start < b.start;
        if (a.end != b.end) return a.end < b.end;
        if (a.global != b.global) return b.global;
        if (a.name[0] != b.name[0] && (a.name[0] == '_' || b.name[0] == '_')) {
            return a.name[0] == '_';
        }
        return a.name > b.name;
    });
    for (std::size_t i = 0; i < functions_.size(); ++i) {
        if (functions_[i].end != 0) continue;
        const bool last = i + 1 == functions_.size();
        functions_[i].end = last ? functions_[i].start + 4096 : functions_[i + 1].start;
    }
}

}  // namespace symbols
