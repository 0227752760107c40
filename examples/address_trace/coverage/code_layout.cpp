// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "code_layout.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "../../symbols/symbols.hpp"
#include "hooks_in_object.hpp"

namespace address_trace {
namespace {

/// An instruction of a function.
struct piece {
    enum class kind : std::uint8_t { plain, nop, call, branch, block_hook, hook, argument };
    std::uint8_t length = 0;
    kind is = kind::plain;
    std::uint8_t arguments = 0;                  // of a hook
    ZydisRegister result = ZYDIS_REGISTER_NONE;  // the 64-bit one that it writes
    bool reads_result = false;                   // which it had before, too

    [[nodiscard]] bool stays() const noexcept { return is < kind::block_hook; }
    [[nodiscard]] bool ends_arguments() const noexcept { return is >= kind::call; }
};
using pieces = std::vector<piece>;

class function_decoder {
public:
    function_decoder() {
        ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    }
    /// The instructions of `code`, which lies at `address`; `calls` are those of hooks in it.
    /// None if some bytes are no instruction.
    [[nodiscard]] pieces operator()(bytes_view code, std::uint64_t address,
                                    std::span<const hook_call> calls) {
        pieces out;
        while (!code.empty()) {
            if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code.data(), code.size(), &one_,
                                                     operands_.data())))
                return {};
            code = code.subspan(one_.length);
            address += one_.length;
            out.push_back(decoded());
            if (out.back().is != piece::kind::call) continue;
            const auto call = std::ranges::lower_bound(calls, address, {}, &hook_call::next);
            if (call == calls.end() || call->next != address) continue;
            out.back().is = call->of.is_block ? piece::kind::block_hook : piece::kind::hook;
            out.back().arguments = call->of.arguments;
            note_arguments(out);
        }
        return out;
    }

private:
    [[nodiscard]] piece decoded() const {
        piece out;
        out.length = one_.length;
        switch (one_.meta.category) {
            case ZYDIS_CATEGORY_CALL:
                out.is = piece::kind::call;
                return out;
            case ZYDIS_CATEGORY_COND_BR:
            case ZYDIS_CATEGORY_UNCOND_BR:
            case ZYDIS_CATEGORY_RET:
                out.is = piece::kind::branch;
                return out;
            case ZYDIS_CATEGORY_NOP:
            case ZYDIS_CATEGORY_WIDENOP:
                out.is = piece::kind::nop;
                return out;
            default:
                break;
        }
        if (one_.mnemonic == ZYDIS_MNEMONIC_UD2) out.is = piece::kind::branch;
        if (one_.mnemonic == ZYDIS_MNEMONIC_INT3) out.is = piece::kind::nop;
        const ZydisDecodedOperand& to = operands_[0];
        const bool writes = one_.operand_count_visible != 0 &&
                            to.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                            (to.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
        if (!writes) return out;
        out.result = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, to.reg.value);
        // `xor edi, edi` reads it in name only.
        out.reads_result = (to.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 &&
                           one_.mnemonic != ZYDIS_MNEMONIC_XOR;
        return out;
    }
    /// A hook's arguments are not used after its call. So instructions that write them between the
    /// previous call or branch and the hook belong to the hook.
    static void note_arguments(pieces& all) {
        constexpr ZydisRegister registers[] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI,
                                               ZYDIS_REGISTER_RDX};
        const std::size_t call = all.size() - 1;
        for (std::size_t i = 0; i < all[call].arguments; ++i) {
            for (std::size_t at = call; at-- > 0;) {
                piece& each = all[at];
                if (each.ends_arguments() && each.is != piece::kind::argument) break;
                if (each.result != registers[i]) continue;
                each.is = piece::kind::argument;
                if (!each.reads_result) break;
            }
        }
    }

    ZydisDecoder decoder_{};
    ZydisDecodedInstruction one_{};
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
};

/// The indexes at which the instructions of each block begin, by the numbers of the hooks, and
/// where the last block ends.
[[nodiscard]] std::vector<std::size_t> divide(const pieces& all,
                                              std::span<const std::size_t> hooks) {
    std::vector<std::size_t> out{0};
    for (std::size_t i = 1; i < hooks.size(); ++i) {
        std::size_t at = hooks[i];
        while (at > hooks[i - 1] + 1 && all[at - 1].is != piece::kind::branch) --at;
        // If there is no branch, one block continues into the next. Its instructions cannot be
        // distinguished there from the last ones of the other block.
        out.push_back(at > hooks[i - 1] + 1 ? at : hooks[i]);
    }
    out.push_back(all.size());
    return out;
}

struct placed_block {
    std::uint64_t site = 0, address = 0;
    std::vector<std::uint8_t> lengths;
};

/// The blocks of a function at `from`, which without hooks lies at `to`. None if it has none.
[[nodiscard]] std::vector<placed_block> blocks_of(const pieces& all, std::uint64_t from,
                                                  std::uint64_t to) {
    std::vector<std::size_t> hooks;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].is == piece::kind::block_hook) hooks.push_back(i);
    }
    if (hooks.empty()) return {};
    const auto parts = divide(all, hooks);
    std::vector<placed_block> out;
    for (std::size_t block = 0; block < hooks.size(); ++block) {
        // The padding that aligns a block is not executed.
        std::size_t first = parts[block], last = parts[block + 1];
        while (first < last && all[first].is == piece::kind::nop) ++first;
        while (last > first && all[last - 1].is == piece::kind::nop) --last;
        placed_block made;
        for (std::size_t i = parts[block]; i < parts[block + 1]; ++i) {
            const piece& each = all[i];
            if (i == first) made.address = to;
            from += each.length;
            if (i == hooks[block]) made.site = from;
            if (!each.stays()) continue;
            to += each.length;
            if (i >= first && i < last) made.lengths.push_back(each.length);
        }
        out.push_back(std::move(made));
    }
    return out;
}

/// The names of a function: the linker symbol, and the C++ name without its arguments, its result,
/// and its template arguments.
[[nodiscard]] std::set<std::string> names_of(const std::string& linked) {
    std::set<std::string> out{linked};
    std::string text = symbols::demangle(linked.c_str());
    out.insert(text);
    out.insert(symbols::without_arguments(text));
    if (text == linked) return out;
    // Where nothing encloses it: the last space before the first parenthesis of arguments.
    std::size_t depth = 0, begin = 0, end = text.size();
    const std::size_t op = text.find("operator");
    for (std::size_t i = 0; i < text.size() && i < op; ++i) {
        const char c = text[i];
        if (c == '(' && depth == 0 && text.compare(i, 21, "(anonymous namespace)") != 0) {
            end = i;
            break;
        }
        if (c == '<' || c == '(') ++depth;
        if ((c == '>' || c == ')') && depth != 0) --depth;
        if (c == ' ' && depth == 0) begin = i + 1;
    }
    if (op != text.npos) return out;
    text = text.substr(begin, end - begin);
    out.insert(text);
    if (!text.ends_with('>')) return out;
    depth = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        depth += text[i] == '>';
        depth -= text[i] == '<';
        if (depth != 0) continue;
        out.insert(text.substr(0, i));
        break;
    }
    return out;
}

}  // namespace

code_layout::object_code code_layout::read(const loaded_module& module) {
    object_code out;
    const object_file file(module.path);
    if (!file.problem(module.build_id).empty()) return out;
    const hook_addresses hooks = find_hooks(file);
    const auto starts = find_functions(file).all;
    const auto calls = hook_calls(file, hooks);
    function_decoder decode;
    for (const section& each : file.sections()) {
        if (!each.is_code() || each.is_stubs()) continue;
        const std::uint64_t begin = each.head.sh_addr;
        std::uint64_t to = begin;  // where code lies if hooks take no room
        each_function(each, starts, [&](std::uint64_t from, std::uint64_t until) {
            constexpr std::uint64_t usual = 16;
            if (from % usual == 0) to = (to + usual - 1) / usual * usual;
            const auto within = calls_within(calls, from, until);
            const bool is_hooked = !within.empty() && hooks.own_functions.count(from) == 0;
            const auto code = each.bytes.subspan(static_cast<std::size_t>(from - begin),
                                                 static_cast<std::size_t>(until - from));
            const pieces all = is_hooked ? decode(code, from, within) : pieces();
            const auto placed = blocks_of(all, from, to);
            if (placed.empty()) {
                to += until - from;
                return;
            }
            for (const piece& one : all) to += one.stays() ? one.length : 0;
            out.entries.emplace(from, placed.front().site);
            for (const placed_block& block : placed) {
                if (block.lengths.empty()) continue;
                out.blocks.emplace(block.site, object_code::block{block.address, out.lengths.size(),
                                                                  block.lengths.size()});
                out.lengths.insert(out.lengths.end(), block.lengths.begin(), block.lengths.end());
            }
        });
    }
    return out;
}

code_layout::object_code& code_layout::code_of(const loaded_module& module) {
    const auto [at, is_new] = by_path_.try_emplace(module.path);
    if (is_new && module.path.starts_with('/')) at->second = read(module);
    return at->second;
}

std::optional<block_code> code_layout::find(std::uint64_t site) {
    // The module that was loaded last is the valid one.
    for (auto module = modules_.rbegin(); module != modules_.rend(); ++module) {
        if (site < module->start || site >= module->end) continue;
        const object_code& code = code_of(*module);
        const auto found = code.blocks.find(site - module->bias);
        if (found == code.blocks.end()) return std::nullopt;
        const object_code::block& block = found->second;
        return block_code{block.address + module->bias,
                          std::span(code.lengths).subspan(block.first, block.count)};
    }
    return std::nullopt;
}

std::vector<std::uint64_t> code_layout::entries(const loaded_module& in, const std::string& name) {
    std::vector<std::uint64_t> out;
    const auto& known = code_of(in).entries;
    if (known.empty()) return out;
    const object_file file(in.path);
    for (const section& each : file.sections()) {
        if (each.head.sh_type != SHT_SYMTAB && each.head.sh_type != SHT_DYNSYM) continue;
        file.each_symbol(each, [&](std::string_view linked, const GElf_Sym& symbol, int) {
            const auto entry = known.find(symbol.st_value);
            if (entry != known.end() && names_of(std::string(linked)).count(name) != 0)
                out.push_back(entry->second + in.bias);
        });
    }
    return out;
}

}  // namespace address_trace
