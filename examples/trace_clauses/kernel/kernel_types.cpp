// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "kernel_types.hpp"

#include <linux/btf.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace trace_clauses {
namespace {

class described_kernel {
public:
    described_kernel() {
        std::ifstream in("/sys/kernel/btf/vmlinux", std::ios::binary);
        all_.assign(std::istreambuf_iterator<char>(in), {});
        ::btf_header head{};
        if (!read(0, head) || head.magic != BTF_MAGIC) return;
        strings_ = std::size_t{head.hdr_len} + head.str_off;
        const std::size_t begin = std::size_t{head.hdr_len} + head.type_off;
        ::btf_type one{};
        for (std::size_t at = begin; at < begin + head.type_len && read(at, one);
             at += sizeof one + behind(one)) {
            types_.push_back(at);
        }
    }

    [[nodiscard]] std::optional<std::uint32_t> find(std::string_view structure,
                                                    std::string_view member) const {
        ::btf_type one{};
        for (const std::size_t at : types_) {
            if (!read(at, one) || BTF_INFO_KIND(one.info) != BTF_KIND_STRUCT) continue;
            if (text(one.name_off) != structure) continue;
            if (const auto found = find_in(at, member, 0)) return found;
        }
        return std::nullopt;
    }

private:
    template <class T>
    [[nodiscard]] bool read(std::size_t at, T& into) const noexcept {
        if (at > all_.size() || all_.size() - at < sizeof into) return false;
        std::memcpy(&into, all_.data() + at, sizeof into);
        return true;
    }
    [[nodiscard]] std::string_view text(std::uint32_t offset) const noexcept {
        const std::size_t at = strings_ + offset;
        return at < all_.size() ? std::string_view(all_.c_str() + at) : std::string_view();
    }
    /// The number of bytes that follow a type.
    [[nodiscard]] static std::size_t behind(const ::btf_type& of) noexcept {
        const std::size_t count = BTF_INFO_VLEN(of.info);
        switch (BTF_INFO_KIND(of.info)) {
            case BTF_KIND_STRUCT:
            case BTF_KIND_UNION:
                return count * sizeof(::btf_member);
            case BTF_KIND_ENUM:
                return count * sizeof(::btf_enum);
            case BTF_KIND_ENUM64:
                return count * sizeof(::btf_enum64);
            case BTF_KIND_FUNC_PROTO:
                return count * sizeof(::btf_param);
            case BTF_KIND_DATASEC:
                return count * sizeof(::btf_var_secinfo);
            case BTF_KIND_ARRAY:
                return sizeof(::btf_array);
            case BTF_KIND_INT:
            case BTF_KIND_VAR:
            case BTF_KIND_DECL_TAG:
                return 4;
            default:
                return 0;
        }
    }
    [[nodiscard]] std::optional<std::uint32_t> find_in(std::size_t at, std::string_view member,
                                                       unsigned depth) const {
        constexpr unsigned deepest = 8;
        ::btf_type of{};
        if (depth == deepest || !read(at, of)) return std::nullopt;
        const unsigned kind = BTF_INFO_KIND(of.info);
        if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION) return std::nullopt;
        for (std::size_t i = 0; i < BTF_INFO_VLEN(of.info); ++i) {
            ::btf_member one{};
            if (!read(at + sizeof of + i * sizeof one, one)) return std::nullopt;
            const std::uint32_t bits =
                BTF_INFO_KFLAG(of.info) ? BTF_MEMBER_BIT_OFFSET(one.offset) : one.offset;
            const std::string_view name = text(one.name_off);
            if (name == member) return bits / 8;
            if (!name.empty() || one.type == 0 || one.type > types_.size()) continue;
            if (const auto found = find_in(types_[one.type - 1], member, depth + 1))
                return bits / 8 + *found;
        }
        return std::nullopt;
    }

    std::string all_;
    std::size_t strings_ = 0;
    std::vector<std::size_t> types_;  // offset of each type, from number 1 on
};

}  // namespace

std::int32_t offset_in_kernel(std::string_view structure, std::string_view member) {
    static const described_kernel kernel;
    // Searching all types takes long, and the programs request the same few offsets.
    static std::map<std::pair<std::string, std::string>, std::optional<std::uint32_t>> known;
    const auto [at, is_new] = known.try_emplace({std::string(structure), std::string(member)});
    if (is_new) at->second = kernel.find(structure, member);
    if (at->second) return static_cast<std::int32_t>(*at->second);
    throw std::runtime_error("this kernel does not describe where its struct " +
                             std::string(structure) + " has '" + std::string(member) +
                             "': it needs CONFIG_DEBUG_INFO_BTF");
}

}  // namespace trace_clauses
