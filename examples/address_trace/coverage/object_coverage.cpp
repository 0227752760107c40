// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "object_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <heap_recorder/report/quantity.hpp>
#include <map>
#include <set>
#include <string_view>

#include "../../symbols/symbols.hpp"
#include "object_file.hpp"

namespace address_trace {
namespace {

[[nodiscard]] bool is_hook(std::string_view name) {
    return name.starts_with("__trace_ring_") || name.starts_with("__cyg_profile_func_");
}

[[nodiscard]] std::int32_t word_at(bytes_view bytes, std::size_t at) {
    std::int32_t out = 0;
    std::memcpy(&out, bytes.data() + at, sizeof out);
    return out;
}

/// The addresses that calls of hooks go to: the hooks themselves, and in libraries the stubs that
/// lead there; and the words from which such addresses are loaded.
struct hook_addresses {
    std::set<std::uint64_t> targets, words;
    /// Symbols of the tracing itself, whose code is none of the program's.
    std::set<std::uint64_t> own_functions;
};

[[nodiscard]] hook_addresses find_hooks(const object_file& in) {
    hook_addresses out;
    std::set<int> dynamic_numbers;
    for (const section& each : in.sections()) {
        if (each.head.sh_type != SHT_SYMTAB && each.head.sh_type != SHT_DYNSYM) continue;
        in.each_symbol(each, [&](std::string_view name, const GElf_Sym& symbol, int number) {
            const bool hooks = is_hook(name);
            if (hooks && symbol.st_shndx != SHN_UNDEF) out.targets.insert(symbol.st_value);
            if (hooks && each.head.sh_type == SHT_DYNSYM) dynamic_numbers.insert(number);
            // Of address-trace.o nothing but the hooks is global.
            const bool is_own = hooks || (GELF_ST_BIND(symbol.st_info) == STB_LOCAL &&
                                          name.find("10trace_ring") != name.npos);
            if (is_own && symbol.st_shndx != SHN_UNDEF) out.own_functions.insert(symbol.st_value);
        });
    }
    if (dynamic_numbers.empty()) return out;
    for (const section& each : in.sections()) {
        if (each.head.sh_type != SHT_RELA) continue;
        in.each_relocation(each, [&](std::uint64_t place, int symbol) {
            if (dynamic_numbers.count(symbol) != 0) out.words.insert(place);
        });
    }
    constexpr std::size_t stub = 16;
    for (const section& each : in.sections()) {
        if (!each.is_stubs()) continue;
        for (std::size_t at = 0; at + 6 <= each.bytes.size(); ++at) {
            if (each.bytes[at] != 0xFF || each.bytes[at + 1] != 0x25) continue;  // jmp *word
            const std::uint64_t next = each.head.sh_addr + at + 6;
            const auto word =
                next + static_cast<std::uint64_t>(std::int64_t{word_at(each.bytes, at + 2)});
            if (out.words.count(word) != 0) out.targets.insert(next / stub * stub);
        }
    }
    return out;
}

/// Where functions begin; sorted.
struct function_starts {
    std::vector<std::uint64_t> all;
    std::string unknown;  ///< why there are none; empty: they are known
};

/// As the table that unwinders search has them.
[[nodiscard]] function_starts find_functions(const object_file& in) {
    const section* const table = in.find(".eh_frame_hdr");
    constexpr std::size_t head = 12;
    constexpr std::uint8_t usual[] = {1, 0x1B, 0x03, 0x3B};  // what all linkers write
    constexpr std::size_t table_encoding = 3;
    constexpr std::uint8_t omitted = 0xFF;
    if (table == nullptr || table->bytes.size() < sizeof usual ||
        table->bytes[table_encoding] == omitted)
        return {{}, "it has no table of functions, .eh_frame_hdr"};
    if (!std::equal(std::begin(usual), std::end(usual), table->bytes.begin()))
        return {{}, "its table of functions, .eh_frame_hdr, has an unusual encoding"};
    const std::size_t count =
        table->bytes.size() < head ? 0 : static_cast<std::uint32_t>(word_at(table->bytes, 8));
    if (table->bytes.size() < head + count * 8)
        return {{}, "its table of functions, .eh_frame_hdr, is cut off"};
    function_starts out;
    for (std::size_t i = 0; i < count; ++i) {
        out.all.push_back(table->head.sh_addr + static_cast<std::uint64_t>(std::int64_t{
                                                    word_at(table->bytes, head + i * 8)}));
    }
    std::ranges::sort(out.all);
    return out;
}

/// Where calls of hooks return to; sorted.
[[nodiscard]] std::vector<std::uint64_t> hook_calls(const object_file& in,
                                                    const hook_addresses& hooks) {
    std::vector<std::uint64_t> out;
    if (hooks.targets.empty() && hooks.words.empty()) return out;  // most libraries
    for (const section& each : in.sections()) {
        if (!each.is_code() || each.is_stubs()) continue;
        for (std::size_t at = 0; at + 6 <= each.bytes.size(); ++at) {
            const bool direct = each.bytes[at] == 0xE8 || each.bytes[at] == 0xE9;
            const bool by_word = each.bytes[at] == 0xFF &&
                                 (each.bytes[at + 1] == 0x15 || each.bytes[at + 1] == 0x25);
            if (!direct && !by_word) continue;
            const std::size_t length = direct ? 5 : 6;
            const std::uint64_t next = each.head.sh_addr + at + length;
            const auto to = next + static_cast<std::uint64_t>(
                                       std::int64_t{word_at(each.bytes, at + length - 4)});
            if ((direct ? hooks.targets : hooks.words).count(to) != 0) out.push_back(next);
        }
    }
    std::ranges::sort(out);
    return out;
}

[[nodiscard]] object_coverage coverage_of(const loaded_module& module) {
    object_coverage out{.path = module.path};
    const object_file file(module.path);
    out.unknown = file.problem(module.build_id);
    if (!out.unknown.empty()) return out;
    // What has no code, as a library of pictures has none, has no functions either.
    const bool has_code = std::ranges::any_of(file.sections(), &section::is_code);
    auto functions = find_functions(file);
    if (has_code || file.sections().empty()) out.unknown = std::move(functions.unknown);
    if (!out.unknown.empty()) return out;
    const auto& starts = functions.all;
    const hook_addresses hooks = find_hooks(file);
    const auto calls = hook_calls(file, hooks);
    for (const section& each : file.sections()) {
        if (!each.is_code() || each.is_stubs()) continue;
        const std::uint64_t begin = each.head.sh_addr, end = begin + each.bytes.size();
        auto at = std::ranges::lower_bound(starts, begin);
        // What lies before the first function, as all of it may, is code of no function.
        out.bytes += (at == starts.end() ? end : std::min(*at, end)) - begin;
        for (; at != starts.end() && *at < end; ++at) {
            const std::uint64_t until =
                std::next(at) == starts.end() ? end : std::min(*std::next(at), end);
            if (hooks.own_functions.count(*at) != 0) continue;
            const auto call = std::ranges::upper_bound(calls, *at);
            const bool is_hooked = call != calls.end() && *call <= until;
            ++out.functions;
            out.bytes += until - *at;
            out.hooked_functions += is_hooked;
            if (is_hooked) out.hooked_bytes += until - *at;
        }
    }
    return out;
}

}  // namespace

std::vector<object_coverage> find_coverage(std::span<const loaded_module> modules) {
    std::map<std::string, object_coverage> by_path;
    for (const loaded_module& each : modules) {
        if (each.path.empty() || each.path.front() != '/') continue;  // the kernel's
        if (by_path.count(each.path) == 0) by_path.emplace(each.path, coverage_of(each));
    }
    std::vector<object_coverage> out;
    for (auto& [path, each] : by_path) out.push_back(std::move(each));
    std::ranges::stable_sort(out, std::greater{}, &object_coverage::hooked_bytes);
    return out;
}

std::string describe_unknown(std::span<const object_coverage> all) {
    constexpr std::size_t most = 3;
    std::string out;
    std::size_t count = 0;
    for (const object_coverage& each : all) {
        if (each.unknown.empty() || ++count > most) continue;
        out += fmt::format("{}{} ({})", count == 1 ? "" : ", ", symbols::file_name(each.path),
                           each.unknown);
    }
    return count > most ? out + fmt::format(" and {} more", count - most) : out;
}

std::string describe(std::span<const object_coverage> all) {
    object_coverage sum;
    std::size_t hooked = 0;
    for (const object_coverage& each : all) {
        sum.functions += each.functions;
        sum.hooked_functions += each.hooked_functions;
        sum.bytes += each.bytes;
        sum.hooked_bytes += each.hooked_bytes;
        hooked += each.hooked_functions != 0;
    }
    std::string out = fmt::format("{} of {} of code, {} of {} functions, in {} of {} objects",
                                  heap::bytes_text(sum.hooked_bytes), heap::bytes_text(sum.bytes),
                                  sum.hooked_functions, sum.functions, hooked, all.size());
    const std::string unknown = describe_unknown(all);
    return unknown.empty() ? out : out + "; not known: " + unknown;
}

}  // namespace address_trace
