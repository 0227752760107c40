// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Records of the programs and libraries in memory, so that a reader can name the addresses in a
/// trace even after the process has ended.

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/site.hpp>

namespace trace_ring::inline v1::instrument {

/// A program or library in memory at [start, end). Subtract `bias` from an address to get the
/// address in the file. `build_id` has the bytes of the build id; empty if there is none.
struct module
    : event<"module", field<"start", address>, field<"end", address>, field<"bias", address>,
            field<"build_id", std::span<const std::uint8_t>>, field<"path", std::string_view>> {};

namespace impl {

/// The build id in the notes at `from`; empty if there is none.
[[nodiscard]] inline std::span<const std::uint8_t> build_id(const std::uint8_t* from,
                                                            std::size_t size) noexcept {
    struct note {
        std::uint32_t name, description, type;
    };
    const auto rounded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
    while (size >= sizeof(note)) {
        note head;
        __builtin_memcpy(&head, from, sizeof head);
        const std::size_t name = sizeof(note), described = name + rounded(head.name);
        if (head.name > size || head.description > size || described > size ||
            size - described < head.description) {
            return {};
        }
        constexpr char gnu[] = "GNU";
        if (head.type == NT_GNU_BUILD_ID && head.name == sizeof gnu &&
            __builtin_memcmp(from + name, gnu, sizeof gnu) == 0) {
            return {from + described, head.description};
        }
        const std::size_t whole = described + rounded(head.description);
        if (whole > size) return {};
        from += whole;
        size -= whole;
    }
    return {};
}

template <class Kind>
void record_module(basic_recorder<Kind>& to, const dl_phdr_info& info) noexcept {
    std::uint64_t start = ~std::uint64_t{0}, end = 0;
    std::span<const std::uint8_t> id;
    for (const auto& segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
        const std::uint64_t at = info.dlpi_addr + segment.p_vaddr;
        // The first member by its place, as <resolv.h> defines its name, p_type.
        const auto type = *reinterpret_cast<const ElfW(Word)*>(&segment);
        if (type == PT_LOAD) {
            start = at < start ? at : start;
            end = at + segment.p_memsz > end ? at + segment.p_memsz : end;
        } else if (type == PT_NOTE && id.empty()) {
            id = build_id(reinterpret_cast<const std::uint8_t*>(info.dlpi_addr + segment.p_vaddr),
                          segment.p_memsz);
        }
    }
    if (start >= end) return;
    std::string_view path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
    char own[PATH_MAX];
    // The program itself has no name.
    const auto size = path.empty() ? ::readlink("/proc/self/exe", own, sizeof own) : 0;
    if (size > 0) path = {own, static_cast<std::size_t>(size)};
    // "./libx.so" is meaningful only in this process's folder.
    const bool is_relative = !path.empty() && path.front() != '/' && path.find('/') != path.npos;
    if (is_relative && ::realpath(info.dlpi_name, own) != nullptr) path = own;
    to.template record<module>(address(start), address(end), address(info.dlpi_addr), id, path);
}

}  // namespace impl

/// Records the programs and libraries loaded since `adds` was stored, or all if it is 0, and stores
/// the number loaded so far. Not signal-safe. Several threads store to the same `adds` in the order
/// of the loader's lock.
template <class Kind>
void record_new_modules(basic_recorder<Kind>& to, unsigned long long& adds) noexcept {
    struct looking {
        basic_recorder<Kind>& to;
        unsigned long long& adds;
        unsigned long long count = 0, number = 0, first = 0;
    } now{to, adds};
    // They are in the order of loading.
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* context) {
            auto& in = *static_cast<looking*>(context);
            ++in.count;
            return info->dlpi_adds == in.adds ? 1 : 0;
        },
        &now);
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* context) {
            auto& in = *static_cast<looking*>(context);
            if (info->dlpi_adds == in.adds && in.number == 0) return 1;
            const unsigned long long more = info->dlpi_adds - in.adds;
            if (in.number++ == 0) in.first = more < in.count ? in.count - more : 0;
            if (in.number > in.first) impl::record_module(in.to, *info);
            if (in.number == in.count) in.adds = info->dlpi_adds;
            return 0;
        },
        &now);
}

}  // namespace trace_ring::inline v1::instrument
