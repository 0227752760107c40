// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "program_file.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <trace_ring/glob.hpp>

#include "../../symbols/rust_name.hpp"
#include "elf_file.hpp"

namespace trace_clauses {

using trace_ring::matches_glob;

namespace {

[[nodiscard]] bool is_mangled(std::string_view name) {
    return name.starts_with("_Z") || name.starts_with("_R");
}

/// How often a name refers back to one of its parts: S_, S0_, T_, T1A_.
[[nodiscard]] std::size_t references_in(std::string_view name) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] != 'S' && name[i] != 'T') continue;
        std::size_t end = i + 1;
        while (end < name.size() &&
               ((name[end] >= '0' && name[end] <= '9') || (name[end] >= 'A' && name[end] <= 'Z'))) {
            ++end;
        }
        count += end < name.size() && name[end] == '_' ? 1U : 0U;
    }
    return count;
}

/// Removes the parts of a name that compilers add and users do not write: ABI tags,
/// "f[abi:cxx11](int)", and the hash of older Rust names, "shop::handle::h0123456789abcdef".
[[nodiscard]] std::string without_tags(std::string name) {
    constexpr std::string_view hash = "::h";
    constexpr std::size_t digits = 16;
    if (name.size() > hash.size() + digits) {
        const std::size_t at = name.size() - hash.size() - digits;
        const bool is_hash =
            name.compare(at, hash.size(), hash) == 0 &&
            name.find_first_not_of("0123456789abcdef", at + hash.size()) == std::string::npos;
        if (is_hash) name.resize(at);
    }
    constexpr std::string_view tag = "[abi:";
    for (std::size_t at = 0; (at = name.find(tag, at)) != std::string::npos;) {
        const std::size_t end = name.find(']', at);
        if (end == std::string::npos) break;
        name.erase(at, end + 1 - at);
    }
    return name;
}

/// The end of the bracket that begins with the < at `at`; npos: it does not end.
[[nodiscard]] std::size_t behind_angles(const std::string& name, std::size_t at) {
    std::size_t depth = 0;
    for (; at < name.size(); ++at) {
        if (name[at] == '<') ++depth;
        const bool is_arrow = at != 0 && name[at - 1] == '-';
        if (name[at] == '>' && !is_arrow && --depth == 0) return at + 1;
    }
    return std::string::npos;
}
/// A Rust method in its source form: "<m::Order<u64>>::handle" becomes m::Order<u64>::handle.
/// Methods of a trait stay "<m::Order as m::Trait>::handle".
[[nodiscard]] std::string as_in_source(std::string name) {
    if (!name.starts_with('<')) return name;
    const std::size_t end = behind_angles(name, 0);
    if (end == std::string::npos || name.find(" as ") < end) return name;
    return name.substr(1, end - 2) + name.substr(end);
}
/// Removes "<u64>" and "::<u64>", which are not in the definition.
[[nodiscard]] std::string without_generics(std::string name) {
    for (std::size_t at = 1; (at = name.find('<', at)) != std::string::npos;) {
        const std::size_t end = behind_angles(name, at);
        if (end == std::string::npos) break;
        const std::size_t begin = at > 2 && name.compare(at - 2, 2, "::") == 0 ? at - 2 : at;
        name.erase(begin, end - begin);
        at = begin;
    }
    return name;
}

/// The demangler prints the result type of template functions only: "int twice<int>(int)" becomes
/// "twice<int>(int)".
[[nodiscard]] std::string without_result(const std::string& name) {
    std::size_t end = name.rfind(')');
    for (int depth = 0; end != std::string::npos; --end) {
        depth += name[end] == ')' ? 1 : name[end] == '(' ? -1 : 0;
        if (depth == 0) break;
        if (end == 0) return name;
    }
    // After the template's arguments. The < of an operator's name does not start arguments.
    if (end == std::string::npos || end == 0 || name[end - 1] != '>') return name;
    int depth = 0;
    for (std::size_t at = end; at-- > 0;) {
        const char c = name[at];
        depth += c == '>' || c == ')' ? 1 : c == '<' || c == '(' ? -1 : 0;
        if (depth < 0) return name;
        if (depth == 0 && c == ' ') return name.substr(at + 1);
    }
    return name;
}

/// A function name as a user writes it: a source name or a pattern.
class wanted_name {
public:
    explicit wanted_name(std::string_view glob)
        : glob_(glob),
          behind_(glob_ + "("),
          with_parameters_(glob_ + "(*)*"),
          in_source_(as_in_source(glob_)) {}

    /// Matches a linker symbol.
    [[nodiscard]] bool matches(std::string_view name) const { return matches_glob(glob_, name); }
    /// Matches a demangled name.
    [[nodiscard]] bool matches_written(const std::string& written, bool is_rust) const {
        if (is_one_of(written)) return true;
        if (is_rust) return matches(without_generics(written)) || matches_glob(in_source_, written);
        const std::string plain = without_result(written);
        return is_one_of(plain) || is_one_of(without_generics(plain));
    }

private:
    /// Matches with or without parameters. A name with "[3]" in it is also taken literally.
    [[nodiscard]] bool is_one_of(const std::string& name) const {
        return name == glob_ || name.starts_with(behind_) || matches_glob(glob_, name) ||
               matches_glob(with_parameters_, name);
    }

    std::string glob_;
    std::string behind_;
    std::string with_parameters_;
    std::string in_source_;
};

}  // namespace

std::string name_reader::operator()(const std::string& name) {
    if (name.starts_with("_R") && left_ != 0) {
        std::string written = symbols::rust_name(name.c_str());
        left_ -= std::min(left_, written.size());
        return written.empty() ? name : as_in_source(std::move(written));
    }
    // The demangler interprets any name as a type: `f`, a C function, as `float`.
    if (!name.starts_with("_Z") || left_ == 0 || references_in(name) > most_references) return name;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> made(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    if (status != 0 || !made) return name;
    std::string written = made.get();
    left_ -= std::min(left_, written.size());
    return written;
}

/// Reads the contents of a program_file.
class program_reader {
public:
    program_reader(program_file& into, const elf_file& file) : into_(into), file_(file) {}

    void read() {
        add_symbols(file_);
        if (const auto debug = debug_file_of(file_)) {
            // An invalid file of debug information does not prevent tracing of this one.
            try {
                add_symbols(elf_file(*debug));
                into_.debug_file_ = *debug;
            } catch (const std::runtime_error&) {
            }
        }
        keep_functions();
        add_probes();
        add_needed();
    }

private:
    /// Orders a function's names: names that others can link first, then the names that users know.
    struct called {
        int rank = 0;
        std::string name;
    };
    struct place {
        std::vector<called> names;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
    };

    void add_symbols(const elf_file& of) {
        of.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view) {
            if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) return;
            // In a file of debug information, .dynsym has no bytes.
            Elf_Data* const data = elf_getdata(at, nullptr);
            if (data == nullptr) of.damaged("its symbols");
            if (data->d_buf == nullptr || header.sh_entsize == 0) return;
            if (header.sh_type == SHT_SYMTAB) into_.stripped_ = false;
            const std::uint64_t count = std::min<std::uint64_t>(header.sh_size / header.sh_entsize,
                                                                std::numeric_limits<int>::max());
            for (std::uint64_t i = 0; i < count; ++i) {
                GElf_Sym symbol;
                if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) {
                    of.damaged("its symbols");
                }
                add_symbol(of, symbol, header.sh_link);
            }
        });
    }

    void add_symbol(const elf_file& of, const GElf_Sym& symbol, std::uint32_t strings) {
        const unsigned type = GELF_ST_TYPE(symbol.st_info);
        const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if ((!function && type != STT_OBJECT) || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_shndx == SHN_ABS || symbol.st_value == 0) {
            return;
        }
        const char* const text = elf_strptr(of.handle(), strings, symbol.st_name);
        if (text == nullptr) of.damaged("a symbol's name");
        // A file may have one long text of which each symbol is a part.
        std::string_view name(text, strnlen(text, longest_name));
        named_ += name.size();
        if (named_ > 16 * (of.size() + file_.size())) of.damaged("its symbols' names");
        if (const std::size_t version = name.find('@'); version != 0)
            name = name.substr(0, version);
        if (name.empty() || name.size() == longest_name) return;
        if (type == STT_OBJECT) {
            variables_.emplace(name, symbol.st_value);
            return;
        }
        const auto offset = file_.offset_of(symbol.st_value, true);
        if (!offset) return;
        if (type == STT_GNU_IFUNC) {
            into_.chosen_.emplace_back(name);
            return;
        }
        place& here = places_[symbol.st_value];
        here.offset = *offset;
        here.size = std::max(here.size, symbol.st_size);
        const unsigned bound = GELF_ST_BIND(symbol.st_info);
        const int rank = bound == STB_GLOBAL || bound == STB_WEAK ? 0 : 1;
        here.names.push_back({rank, std::string(name)});
    }

    void keep_functions() {
        for (auto& [address, here] : places_) {
            auto& names = here.names;
            const auto key = [](const called& one) {
                const bool cxx = is_mangled(one.name);
                return std::tuple(one.rank, cxx ? 0 : one.name.find_first_not_of('_'),
                                  one.name.size(), std::string_view(one.name));
            };
            std::sort(names.begin(), names.end(),
                      [&](const called& a, const called& b) { return key(a) < key(b); });
            program_function made{{}, address, here.offset, here.size, names[0].rank != 0};
            for (called& one : names) {
                if (std::find(made.names.begin(), made.names.end(), one.name) == made.names.end()) {
                    made.names.push_back(std::move(one.name));
                }
            }
            into_.functions_.push_back(std::move(made));
        }
        auto& chosen = into_.chosen_;
        std::sort(chosen.begin(), chosen.end());
        chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    }

    void add_probes() {
        std::optional<std::uint64_t> base;
        file_.each_section([&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
            if (name == ".stapsdt.base") base = header.sh_addr;
        });
        file_.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view name) {
            if (header.sh_type != SHT_NOTE || name != ".note.stapsdt") return;
            auto rest = file_.bytes_of(at);
            while (const auto one = next_note(rest)) {
                if (one->owner == "stapsdt" && one->type == 3) add_probe(one->text, base);
            }
            if (!rest.empty()) file_.damaged(".note.stapsdt");
        });
    }

    void add_probe(std::span<const std::byte> text, std::optional<std::uint64_t> base) {
        const std::size_t width = file_.mode() == program_mode::lp64 ? 8 : 4;
        if (text.size() < 3 * width) file_.damaged(".note.stapsdt");
        const auto words = text.first(3 * width);
        const auto word = [&](std::size_t number) {
            std::uint64_t value = 0;
            std::memcpy(&value, words.data() + number * width, width);
            return value;
        };
        // A tool that moved the program's addresses may have ignored the note, which also stores
        // the original base.
        const std::uint64_t moved = base && word(1) != 0 ? *base - word(1) : 0;
        const auto address = [&](std::size_t number) {
            const std::uint64_t at = word(number) + moved;
            return width == 8 ? at : at & 0xFFFFFFFFU;
        };
        text = text.subspan(3 * width);
        const auto next_text = [&] {
            const auto* const begin = reinterpret_cast<const char*>(text.data());
            const std::size_t length = strnlen(begin, text.size());
            text = text.subspan(std::min(length + 1, text.size()));
            return std::string_view(begin, length);
        };
        usdt_point made;
        made.provider = next_text();
        made.name = next_text();
        made.address = address(0);
        const auto offset = file_.offset_of(made.address, true);
        if (!offset || made.provider.empty() || made.name.empty()) return;
        made.offset = *offset;
        if (word(2) != 0) made.semaphore_offset = file_.offset_of(address(2), false).value_or(0);
        made.arguments =
            parse_usdt_arguments(next_text(), file_.mode(), made.address,
                                 [this](std::string_view name) -> std::optional<std::uint64_t> {
                                     const auto found = variables_.find(name);
                                     if (found == variables_.end()) return std::nullopt;
                                     return found->second;
                                 });
        into_.probes_.push_back(std::move(made));
    }

    void add_needed() {
        into_.interpreter_ = file_.interpreter();
        file_.each_section([&](Elf_Scn* at, const GElf_Shdr& header, std::string_view) {
            if (header.sh_type != SHT_DYNAMIC || header.sh_entsize == 0) return;
            Elf_Data* const data = elf_getdata(at, nullptr);
            if (data == nullptr || data->d_buf == nullptr) return;
            const std::uint64_t count = std::min<std::uint64_t>(header.sh_size / header.sh_entsize,
                                                                std::numeric_limits<int>::max());
            for (std::uint64_t i = 0; i < count; ++i) {
                GElf_Dyn one;
                if (gelf_getdyn(data, static_cast<int>(i), &one) == nullptr ||
                    one.d_tag == DT_NULL) {
                    break;
                }
                if (one.d_tag != DT_NEEDED && one.d_tag != DT_RPATH && one.d_tag != DT_RUNPATH) {
                    continue;
                }
                const char* const text = elf_strptr(file_.handle(), header.sh_link,
                                                    static_cast<std::size_t>(one.d_un.d_val));
                if (text == nullptr) file_.damaged("the libraries that it needs");
                std::string told(text, strnlen(text, longest_name));
                if (one.d_tag == DT_NEEDED) {
                    if (into_.needed_.size() < most_needed) {
                        into_.needed_.push_back(std::move(told));
                    }
                } else if (one.d_tag == DT_RUNPATH || into_.search_path_.empty()) {
                    into_.search_path_ = std::move(told);
                    into_.searched_late_ = one.d_tag == DT_RUNPATH;
                }
            }
        });
    }

    static constexpr std::size_t longest_name = 65536;
    static constexpr std::size_t most_needed = 4096;

    program_file& into_;
    const elf_file& file_;
    std::uint64_t named_ = 0;  // bytes of names examined so far
    std::map<std::uint64_t, place> places_;
    std::map<std::string, std::uint64_t, std::less<>> variables_;
};

program_file::program_file(std::string path, std::string shown)
    : path_(shown.empty() ? path : std::move(shown)), opened_(std::move(path)) {
    const elf_file file(opened_, path_);
    mode_ = file.mode();
    program_reader(*this, file).read();
}

std::vector<program_file::match> program_file::functions(std::string_view glob) const& {
    std::vector<match> found;
    const wanted_name wanted(glob);
    const bool mangled = is_mangled(glob);
    name_reader readable;
    for (const program_function& each : functions_) {
        for (const std::string& name : each.names) {
            if (wanted.matches(name)) {
                found.push_back({&each, name});
                break;
            }
            if (mangled || !is_mangled(name)) continue;
            std::string written = without_tags(readable(name));
            if (wanted.matches_written(written, name.starts_with("_R"))) {
                found.push_back({&each, std::move(written)});
                break;
            }
        }
    }
    return found;
}

const program_function* program_file::at(std::uint64_t address) const noexcept {
    auto after = std::upper_bound(
        functions_.begin(), functions_.end(), address,
        [](std::uint64_t value, const program_function& one) { return value < one.address; });
    if (after == functions_.begin()) return nullptr;
    const program_function& found = *--after;
    return address - found.address < std::max<std::uint64_t>(found.size, 1) ? &found : nullptr;
}

}  // namespace trace_clauses
