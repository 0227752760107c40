// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "stack_names.hpp"

#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include <trace_ring/reduce/item/record_view.hpp>

#if defined(TRACE_CLICKHOUSE_SYMBOLS)
#include <heap_recorder/report/stacks.hpp>
#include <heap_recorder/report/symbols.hpp>
#include <symbols/loaded_module.hpp>
#endif

namespace clickhouse {

#if defined(TRACE_CLICKHOUSE_SYMBOLS)

struct stack_symbols::known {
    heap::stack_table stacks{};
    heap::symbolizer symbols{};
    std::unordered_map<heap::stack_id, std::string> texts{};  // whose elements do not move

    [[nodiscard]] std::string_view text_of(heap::stack_id id) {
        const auto [at, is_new] = texts.try_emplace(id);
        std::string& text = at->second;
        if (!is_new) return text;
        for (const auto& frame : stacks.stack(id)) {
            for (const auto& one : symbols.find(stacks, frame)) {
                if (!text.empty()) text += " < ";
                text += one.name();
                if (!one.file.empty()) text += ' ' + one.where();
            }
        }
        return text;
    }
};

struct stack_names::process {
    heap::process_stacks stacks;
};

bool stack_symbols::can_name() noexcept {
    return true;
}

void stack_names::look_at(const reduce::item& what) {
    const auto* const record = std::get_if<reduce::record_view>(&what);
    if (record == nullptr || !record->known()) return;
    // Also of a process whose records have no stacks: its forks may have some.
    process& its = process_of(record->lane());
    if (!record->has_fields() || record->name() != "module") return;
    auto found = symbols::module_of(*record);
    its.stacks.add(found.start, found.end, found.bias,
                   {std::move(found.path), std::move(found.build_id)});
}

std::string_view stack_names::text_of(const reduce::item& what) {
    const auto* const record = std::get_if<reduce::record_view>(&what);
    if (record == nullptr || !record->has_fields()) return {};
    const std::size_t field = field_of(record->type());
    if (field == reduce::event_type::npos) return {};
    const auto frames = record->field(field);
    if (!frames) return {};
    addresses_.clear();
    for (std::size_t i = 0; i < frames.size(); ++i) addresses_.push_back(frames.at(i).u64());
    if (addresses_.empty()) return {};
    return by_.known_->text_of(process_of(record->lane()).stacks.find(addresses_));
}

stack_names::process& stack_names::process_of(const reduce::lane_info& lane) {
    // If its entry is gone: the only process, or one that is not known.
    const std::uint32_t slot =
        lane.process.value_or(in_.processes().size() == 1 ? 0 : ~std::uint32_t{0});
    auto& its = processes_[{slot, lane.pid}];
    if (its != nullptr) return *its;
    its = std::make_unique<process>(process{heap::process_stacks(by_.known_->stacks)});
    if (slot >= in_.processes().size()) return *its;
    // A fork has the code of its parent, and does not record that again.
    const auto& parent = in_.processes()[slot].parent;
    if (!parent) return *its;
    const auto from = processes_.find({*parent, in_.processes()[*parent].pid});
    if (from != processes_.end()) its->stacks = from->second->stacks;
    return *its;
}

#else

struct stack_symbols::known {};
struct stack_names::process {};

bool stack_symbols::can_name() noexcept {
    return false;
}
void stack_names::look_at(const reduce::item&) {}
std::string_view stack_names::text_of(const reduce::item&) {
    return {};
}

#endif

stack_symbols::stack_symbols() : known_(std::make_unique<known>()) {}
stack_symbols::~stack_symbols() = default;

stack_names::stack_names(const reduce::tables& in, stack_symbols& by) : in_(in), by_(by) {}
stack_names::~stack_names() = default;

std::size_t stack_names::field_of(const reduce::event_type& type) {
    const auto [at, is_new] = fields_.try_emplace(&type, reduce::event_type::npos);
    if (!is_new) return at->second;
    const std::size_t found = type.find("stack");
    if (found != reduce::event_type::npos &&
        type.fields[found].type == trace_ring::field_type::address &&
        type.fields[found].form != trace_ring::field_form::scalar) {
        at->second = found;
    }
    return at->second;
}

}  // namespace clickhouse
