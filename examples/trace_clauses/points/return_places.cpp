// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "return_places.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace trace_clauses {
namespace {

using flow = instruction::flow;

constexpr std::string_view part_mark = ".cold";
constexpr std::uint64_t longest = std::uint64_t{4} << 20;  // of a function, in bytes

constexpr const char* unknown_code = "its code cannot be decoded to its end";
constexpr const char* goes_on_elsewhere = "it ends in a jump to another function (a tail call)";
constexpr const char* unknown_jumps = "it has jumps whose targets are not known";
constexpr const char* entered_elsewhere = "other functions jump into it";
constexpr const char* unknown_parts = "parts of it may have no names";
constexpr const char* moves_stack = "it changes the address that it returns to";

[[nodiscard]] bool is_direct_jump(flow is) noexcept {
    return is == flow::jump || is == flow::conditional_jump;
}

}  // namespace

return_places::return_places(const program_file& of, const elf_file& file, unwind_rules& rules)
    : program_(of),
      file_(file),
      rules_(rules),
      decode_(of.mode()),
      pads_(file),
      looked_at_(of.functions().size()) {
    file_.each_section([this](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
        if (name == ".got.plt" || (name == ".got" && got_ == 0)) got_ = header.sh_addr;
    });
    for (const program_function& each : of.functions()) {
        for (const std::string& name : each.names) {
            const std::size_t at = name.find(part_mark);
            if (at != std::string::npos) parts_[name.substr(0, at)].push_back(&each);
            if (name == "__morestack") morestack_ = each.address;
        }
    }
    for (const program_function& each : of.functions()) {
        for (const std::string& name : each.names)
            if (parts_.contains(name)) owners_[name].push_back(&each);
    }
}

return_places::result return_places::of(const program_function& one) {
    pieces all;
    result made;
    made.doubt = doubt_of(one, all);
    made.repeats_entry = std::any_of(all.begin(), all.end(), [&one](const piece& each) {
        return std::any_of(each.instructions.begin(), each.instructions.end(),
                           [&one](const instruction& at) {
                               return is_direct_jump(at.is) && at.target == one.address;
                           });
    });
    if (made.doubt != nullptr) {
        made.jumps = jumps_out_of(all);
        return made;
    }
    for (const piece& each : all) {
        for (const instruction& at : each.instructions) {
            if (at.is != flow::ret) continue;
            const auto offset = file_.offset_of(at.address, true);
            if (!offset) return {{}, unknown_code};
            made.offsets.push_back(*offset);
        }
    }
    return made;
}

std::vector<std::uint64_t> return_places::jumps_out_of(const pieces& all) const {
    std::vector<std::uint64_t> made;
    for (const piece& each : all) {
        for (const instruction& at : each.instructions) {
            const bool leaves = at.is == flow::indirect_jump ||
                                (is_direct_jump(at.is) &&
                                 std::none_of(all.begin(), all.end(), [&at](const piece& into) {
                                     return into.holds(at.target);
                                 }));
            const auto offset = leaves ? file_.offset_of(at.address, true) : std::nullopt;
            if (offset && each.is_complete) made.push_back(*offset);
        }
    }
    return made;
}

bool return_places::piece::has_instruction_at(std::uint64_t address) const noexcept {
    const auto behind =
        std::upper_bound(instructions.begin(), instructions.end(), address,
                         [](std::uint64_t to, const instruction& one) { return to < one.address; });
    if (behind == instructions.begin()) return false;
    const std::uint64_t begin = std::prev(behind)->address;
    constexpr std::byte lock{0xF0};
    return begin == address ||
           (begin + 1 == address &&
            code[static_cast<std::size_t>(begin - instructions.front().address)] == lock);
}
bool return_places::piece::jumps_into(const program_function& other) const noexcept {
    return std::any_of(instructions.begin(), instructions.end(), [&](const instruction& one) {
        return is_direct_jump(one.is) && one.target - other.address < other.size;
    });
}

return_places::piece return_places::decoded(const program_function& one) const {
    piece made{&one, {}, {}, false};
    if (one.size == 0 || one.size > longest) return made;
    made.code.resize(static_cast<std::size_t>(one.size));
    if (!file_.read(one.address, made.code)) return made;
    std::size_t at = 0;
    while (at < made.code.size()) {
        const auto next = decode_(std::span(made.code).subspan(at), one.address + at);
        if (!next) return made;
        made.instructions.push_back(*next);
        at += next->length;
    }
    made.is_complete = true;
    return made;
}

const char* return_places::doubt_of(const program_function& one, pieces& all) {
    // A landing pad can only be found if the name of the part that contains it is known.
    if (program_.stripped() && pads_.may_be_in(one.address)) return unknown_parts;
    all.push_back(decoded(one));
    if (!all.front().is_complete) return unknown_code;
    if (const char* const why = add_parts(all)) return why;
    for (const piece& each : all) {
        if (!each.is_complete) return unknown_code;
        if (const char* const why = doubt_of_stack(each)) return why;
        if (const char* const why = doubt_of_jumps(each, all)) return why;
    }
    return doubt_of_entries(all);
}

const char* return_places::add_parts(pieces& all) const {
    const program_function& one = *all.front().from;
    for (const std::string& name : one.names) {
        const auto parts = parts_.find(name);
        if (parts == parts_.end()) continue;
        const auto& owners = owners_.at(name);
        for (const program_function* const part : parts->second) {
            const bool known = std::any_of(all.begin(), all.end(),
                                           [part](const piece& each) { return each.from == part; });
            if (known) continue;
            piece made = decoded(*part);
            const auto of = [&](const program_function& owner) {
                return made.jumps_into(owner) || decoded(owner).jumps_into(*part);
            };
            if (owners.size() == 1 || of(one)) {
                all.push_back(std::move(made));
            } else if (std::none_of(owners.begin(), owners.end(),
                                    [&](const program_function* other) { return of(*other); })) {
                return unknown_parts;
            }
        }
    }
    return nullptr;
}

const char* return_places::doubt_of_stack(const piece& one) const {
    const auto& all = one.instructions;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const instruction& at = all[i];
        // Position-independent code finds its own address by calling the next instruction.
        const bool asks_where =
            i + 1 < all.size() && all[i + 1].is == flow::pop && at.target == all[i + 1].address;
        if (at.is == flow::call && at.target == morestack_) return moves_stack;
        if (at.is == flow::call && one.holds(at.target) && at.target != one.from->address &&
            !asks_where)
            return moves_stack;
        if (at.is != flow::ret) continue;
        if (i != 0 && all[i - 1].is == flow::push) return moves_stack;
        if (rules_.is_entered_by_call(at.address) == false) return moves_stack;
    }
    return nullptr;
}

const char* return_places::doubt_of_jumps(const piece& one, const pieces& all) const {
    const std::uint64_t entry = all.front().from->address;
    const auto target_of = [&](std::uint64_t address) {
        return std::find_if(all.begin(), all.end(),
                            [address](const piece& each) { return each.holds(address); });
    };
    constexpr std::size_t most_tables = 256;
    std::size_t tables = 0;
    for (std::size_t i = 0; i < one.instructions.size(); ++i) {
        const instruction& at = one.instructions[i];
        if (at.is == flow::foreign) return unknown_jumps;
        if (at.is == flow::indirect_jump) {
            if (program_.stripped()) return unknown_parts;
            if (++tables > most_tables || !is_switch(i, one, all)) return unknown_jumps;
        }
        if (!is_direct_jump(at.is)) continue;
        if (at.target == entry) continue;
        const auto into = target_of(at.target);
        if (into == all.end()) return goes_on_elsewhere;
        if (!into->has_instruction_at(at.target)) return unknown_code;
    }
    // After the last instruction, execution continues in the next function.
    const auto last = std::find_if(one.instructions.rbegin(), one.instructions.rend(),
                                   [](const instruction& at) { return at.is != flow::nop; });
    if (last == one.instructions.rend()) return goes_on_elsewhere;
    const bool falls_through = last->is == flow::other || last->is == flow::conditional_jump ||
                               last->is == flow::push || last->is == flow::pop;
    return falls_through ? goes_on_elsewhere : nullptr;
}

bool return_places::is_switch(std::size_t jump, const piece& one, const pieces& all) const {
    const bool wide = program_.mode() == program_mode::lp64;
    const auto cut = [wide](std::uint64_t address) {
        return wide ? address : address & 0xFFFFFFFFU;
    };
    const auto inside = [&](std::uint64_t address) {
        return std::any_of(all.begin(), all.end(), [&](const piece& each) {
            return each.holds(address) && each.has_instruction_at(address);
        });
    };
    const auto tables = decode_.tables_of(jump, one.instructions, one.code);
    return std::any_of(tables.begin(), tables.end(), [&](const jump_table& each) {
        const std::uint64_t table = cut(each.address + (each.is_by_got ? got_ : 0));
        std::uint64_t entry = 0;
        const auto into = std::as_writable_bytes(std::span(&entry, 1));
        if (!file_.read(table, into.first(wide && !each.is_relative ? 8 : 4))) return false;
        if (!each.is_relative) return inside(entry);
        const auto distance = static_cast<std::int32_t>(entry);
        return inside(cut((each.is_by_got ? got_ : table) + static_cast<std::uint64_t>(distance)));
    });
}

void return_places::look_around(const program_function& one) {
    // Functions that an assembler file connects by jumps are near each other. Compilers do not jump
    // into other functions.
    constexpr std::uint64_t near = std::uint64_t{64} << 10;
    const auto functions = program_.functions();
    auto at = std::lower_bound(
        functions.begin(), functions.end(), one.address < near ? 0 : one.address - near,
        [](const program_function& each, std::uint64_t address) { return each.address < address; });
    for (; at != functions.end() && at->address < one.address + one.size + near; ++at) {
        const auto number = static_cast<std::size_t>(at - functions.begin());
        if (looked_at_[number]) continue;
        looked_at_[number] = true;
        for (const instruction& each : decoded(*at).instructions) {
            if (is_direct_jump(each.is) && each.target - at->address >= at->size)
                jumps_out_.emplace(each.target, &*at);
        }
    }
}

const char* return_places::doubt_of_entries(const pieces& all) {
    const auto is_own = [&](const program_function* other) {
        return std::any_of(all.begin(), all.end(),
                           [other](const piece& each) { return each.from == other; });
    };
    const auto functions = program_.functions();
    for (const piece& each : all) {
        const program_function& one = *each.from;
        look_around(one);
        const bool is_entry = &each == &all.front();
        const std::uint64_t first = one.address + (is_entry ? 1 : 0);
        const auto end = jumps_out_.lower_bound(one.address + one.size);
        for (auto at = jumps_out_.lower_bound(first); at != end; ++at)
            if (!is_own(at->second)) return entered_elsewhere;
        const auto next = std::upper_bound(functions.begin(), functions.end(), one.address,
                                           [](std::uint64_t address, const program_function& with) {
                                               return address < with.address;
                                           });
        if (next != functions.end() && next->address < one.address + one.size)
            return entered_elsewhere;
        // The function must not be inside another one that continues into it.
        constexpr int most_around = 8;
        auto before = std::prev(next);
        for (int i = 0; i < most_around && before != functions.begin(); ++i) {
            --before;
            if (before->address + before->size > one.address && !is_own(&*before))
                return entered_elsewhere;
        }
    }
    return nullptr;
}

}  // namespace trace_clauses
