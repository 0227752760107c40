// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "hooks_in_object.hpp"

#include <algorithm>
#include <cstring>

namespace address_trace {
namespace {

[[nodiscard]] bool is_hook(std::string_view name) {
    return name.starts_with("__trace_ring_") || name.starts_with("__cyg_profile_func_");
}

[[nodiscard]] hook hook_of(std::string_view name) {
    const auto ends = [name](std::string_view with) { return name.ends_with(with); };
    if (ends("_lanes") || ends("_gather") || ends("_scatter")) return {false, 3};
    const bool has_two = ends("_range") || ends("_allocated") ||
                         name.find("_compare") != name.npos || !name.starts_with("__trace_ring_");
    if (has_two) return {false, 2};
    return {ends("_block"), static_cast<std::uint8_t>(
                                ends("_block") || ends("_unseen") || ends("_loaded") ? 0 : 1)};
}

[[nodiscard]] std::int32_t word_at(bytes_view bytes, std::size_t at) {
    std::int32_t out = 0;
    std::memcpy(&out, bytes.data() + at, sizeof out);
    return out;
}

}  // namespace

hook_addresses find_hooks(const object_file& in) {
    hook_addresses out;
    std::map<int, hook> dynamic_numbers;
    for (const section& each : in.sections()) {
        if (each.head.sh_type != SHT_SYMTAB && each.head.sh_type != SHT_DYNSYM) continue;
        in.each_symbol(each, [&](std::string_view name, const GElf_Sym& symbol, int number) {
            const bool hooks = is_hook(name);
            if (hooks && symbol.st_shndx != SHN_UNDEF)
                out.targets.emplace(symbol.st_value, hook_of(name));
            if (hooks && each.head.sh_type == SHT_DYNSYM)
                dynamic_numbers.emplace(number, hook_of(name));
            // Of address-trace.o nothing but the hooks is global.
            const bool is_own = hooks || name == "address_trace.loaded" ||
                                (GELF_ST_BIND(symbol.st_info) == STB_LOCAL &&
                                 name.find("10trace_ring") != name.npos);
            if (is_own && symbol.st_shndx != SHN_UNDEF) out.own_functions.insert(symbol.st_value);
        });
    }
    if (dynamic_numbers.empty()) return out;
    for (const section& each : in.sections()) {
        if (each.head.sh_type != SHT_RELA) continue;
        in.each_relocation(each, [&](std::uint64_t place, int symbol) {
            const auto found = dynamic_numbers.find(symbol);
            if (found != dynamic_numbers.end()) out.words.emplace(place, found->second);
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
            const auto found = out.words.find(word);
            if (found != out.words.end()) out.targets.emplace(next / stub * stub, found->second);
        }
    }
    return out;
}

function_starts find_functions(const object_file& in) {
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

std::vector<hook_call> hook_calls(const object_file& in, const hook_addresses& hooks) {
    std::vector<hook_call> out;
    if (hooks.targets.empty() && hooks.words.empty()) return out;  // most libraries
    for (const section& each : in.sections()) {
        if (!each.is_code() || each.is_stubs()) continue;
        for (std::size_t at = 0; at + 6 <= each.bytes.size(); ++at) {
            const bool direct = each.bytes[at] == 0xE8 || each.bytes[at] == 0xE9;
            const bool by_word = each.bytes[at] == 0xFF &&
                                 (each.bytes[at + 1] == 0x15 || each.bytes[at + 1] == 0x25);
            if (!direct && !by_word) {
                // movabs of an address, as in large code: it is called through a register.
                const bool loads = (each.bytes[at] == 0x48 || each.bytes[at] == 0x49) &&
                                   (each.bytes[at + 1] & 0xF8) == 0xB8 &&
                                   at + 10 <= each.bytes.size();
                if (!loads) continue;
                std::uint64_t to = 0;
                std::memcpy(&to, each.bytes.data() + at + 2, sizeof to);
                const auto found = hooks.targets.find(to);
                if (found != hooks.targets.end())
                    out.push_back({each.head.sh_addr + at + 10, found->second});
                continue;
            }
            const std::size_t length = direct ? 5 : 6;
            const std::uint64_t next = each.head.sh_addr + at + length;
            const auto to = next + static_cast<std::uint64_t>(
                                       std::int64_t{word_at(each.bytes, at + length - 4)});
            const auto& known = direct ? hooks.targets : hooks.words;
            if (const auto found = known.find(to); found != known.end())
                out.push_back({next, found->second});
        }
    }
    std::ranges::sort(out, {}, &hook_call::next);
    return out;
}

}  // namespace address_trace
