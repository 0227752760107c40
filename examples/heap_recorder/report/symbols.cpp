// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "symbols.hpp"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace heap {

std::string symbol::name() const {
    if (!function.empty()) return function;
    if (object.empty()) return fmt::format("{:#x}", offset);
    return fmt::format("{}+{:#x}", object, offset);
}

std::string symbol::where() const {
    if (!file.empty()) return fmt::format("{}:{}", file, line);
    return object;
}

std::string demangle(const char* name) {
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

}  // namespace

// One file, by the addresses in it.
class symbolizer::object {
public:
    explicit object(const object_file& file) {
        name_ = std::filesystem::path(file.path).filename().string();
        dwfl_ = dwfl_begin(&callbacks);
        if (dwfl_ == nullptr) {
            problem_ = dwfl_errmsg(-1);
            return;
        }
        const int fd = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            problem_ = "cannot be opened";
            return;
        }
        dwfl_report_begin(dwfl_);
        module_ = dwfl_report_elf(dwfl_, name_.c_str(), file.path.c_str(), fd, 0, true);
        if (module_ == nullptr) {
            problem_ = dwfl_errmsg(-1);
            ::close(fd);  // else the module owns it
        }
        dwfl_report_end(dwfl_, nullptr, nullptr);
        if (module_ == nullptr) return;
        const unsigned char* bits = nullptr;
        GElf_Addr at = 0;
        const int length = dwfl_module_build_id(module_, &bits, &at);
        if (length > 0 && !file.build_id.empty() &&
            std::string_view(reinterpret_cast<const char*>(bits),
                             static_cast<std::size_t>(length)) != file.build_id) {
            problem_ = "has changed since the trace was made";
            module_ = nullptr;
            return;
        }
        read_functions();
    }
    ~object() {
        if (dwfl_ != nullptr) dwfl_end(dwfl_);
    }
    object(const object&) = delete;
    object& operator=(const object&) = delete;

    [[nodiscard]] symbol find(std::uint64_t address) const {
        symbol found;
        found.object = name_;
        found.offset = address;
        if (module_ == nullptr) return found;
        const GElf_Addr call = address - 1;
        auto after =
            std::upper_bound(functions_.begin(), functions_.end(), call,
                             [](GElf_Addr value, const function& f) { return value < f.start; });
        if (after != functions_.begin() && call < (--after)->end) {
            found.function = demangle(after->name.c_str());
            found.offset = address - after->start;
        }
        if (Dwfl_Line* const line = dwfl_module_getsrc(module_, call)) {
            int number = 0;
            if (const char* const source =
                    dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr)) {
                found.file = std::filesystem::path(source).filename().string();
                found.line = number;
            }
        }
        return found;
    }
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

private:
    struct function {
        GElf_Addr start = 0, end = 0;
        std::string name;
        bool global = false;
    };
    // Sorted once, as dwfl_module_addrinfo looks at every symbol for every address.
    void read_functions() {
        const int count = dwfl_module_getsymtab(module_);
        for (int i = 1; i < count; ++i) {
            GElf_Sym entry{};
            GElf_Addr at = 0;
            const char* const text =
                dwfl_module_getsym_info(module_, i, &entry, &at, nullptr, nullptr, nullptr);
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

    Dwfl* dwfl_ = nullptr;
    std::vector<function> functions_;
    Dwfl_Module* module_ = nullptr;
    std::string name_;
    std::string problem_;
};

symbolizer::symbolizer() {
    // A report is made from what is on this machine; it does not wait for a network.
    ::unsetenv("DEBUGINFOD_URLS");
}
symbolizer::~symbolizer() = default;

const symbol& symbolizer::find(const stack_table& table, const frame& place) {
    if (const auto at = known_.find(place); at != known_.end()) return at->second;
    symbol found;
    found.offset = place.address;
    if (place.object != 0) {
        auto& from = objects_[place.object];
        if (!from) {
            const object_file& file = table.object(place.object);
            from = std::make_unique<object>(file);
            if (!from->problem().empty()) problems_[file.path] = from->problem();
        }
        found = from->find(place.address);
    }
    return known_.emplace(place, std::move(found)).first->second;
}

}  // namespace heap
