// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace branches {

code::code() {
    paths_.emplace_back();
    files_.emplace_back();
    opened_.push_back(true);
    places_.emplace_back();
    function_of_.push_back(0);
    functions_.emplace_back();
}

object_id code::intern_object(const std::string& path) {
    const auto [at, is_new] = object_ids_.try_emplace(path, static_cast<object_id>(paths_.size()));
    if (is_new) {
        paths_.push_back(path);
        files_.emplace_back();
        opened_.push_back(false);
    }
    return at->second;
}

place_id code::intern(const place& where) {
    if (where == place{}) return 0;
    const auto [at, is_new] = place_ids_.try_emplace(where, static_cast<place_id>(places_.size()));
    if (is_new) {
        places_.push_back(where);
        function_of_.push_back(not_looked_up);
    }
    return at->second;
}

const symbols::object* code::object(object_id id) {
    if (!opened_.at(id)) {
        opened_[id] = true;
        if (paths_[id].starts_with('/')) {
            files_[id] = std::make_unique<symbols::object>(paths_[id]);
            if (!files_[id]->problem().empty()) problems_[paths_[id]] = files_[id]->problem();
        }
    }
    return files_[id].get();
}

const std::vector<symbols::symbol>& code::names(place_id id) {
    const auto [at, is_new] = names_.try_emplace(id);
    if (is_new) {
        const place& where = places_.at(id);
        if (const auto* file = object(where.object)) {
            at->second = file->at(where.address);
        } else {
            symbols::symbol unknown;
            unknown.object = std::filesystem::path(paths_[where.object]).filename().string();
            unknown.offset = where.address;
            at->second.push_back(std::move(unknown));
        }
    }
    return at->second;
}

function_id code::intern(known_function what) {
    const auto [at, is_new] = function_ids_.try_emplace(
        std::pair(what.object, what.start), static_cast<function_id>(functions_.size()));
    if (is_new) functions_.push_back(std::move(what));
    return at->second;
}

function_id code::function_of(place_id id) {
    if (function_of_.at(id) != not_looked_up) return function_of_[id];
    const place where = places_[id];
    const auto* const file = object(where.object);
    const auto* const found = file == nullptr ? nullptr : file->function_at(where.address);
    function_id function = 0;
    if (found != nullptr) {
        function = intern(
            {where.object, found->start, found->end, symbols::demangle(found->name.c_str())});
    }
    return function_of_[id] = function;
}

function_id code::function_from(place_id id) {
    if (const function_id found = function_of(id); found != 0 || id == 0) return found;
    const place where = places_[id];
    return intern({where.object, where.address, where.address, names(id).back().place()});
}

branch_code code::decode(const place& branch) {
    const auto* const file = object(branch.object);
    if (file == nullptr) return {};
    return decode_branch(file->bytes(branch.address, longest_instruction), file->is_64());
}

std::uint64_t code::end_of(const place& branch) {
    const std::size_t length = decode(branch).length;
    return length == 0 ? 0 : branch.address + length;
}

branch_kind code::kind_of(place_id branch) {
    const auto [at, is_new] = kinds_.try_emplace(branch);
    if (is_new) at->second = decode(places_.at(branch)).kind;
    return at->second;
}

void process_code::add(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                       const std::string& path) {
    if (end <= start) return;
    const object_id object = all_->intern_object(path);
    const auto* const file = all_->object(object);
    const std::uint64_t bias = file == nullptr ? start - offset : file->bias(start, offset);
    const bool there = std::any_of(ranges_.begin(), ranges_.end(), [&](const range& r) {
        return r.start == start && r.end == end && r.object == object && r.bias == bias;
    });
    if (there) return;
    std::erase_if(ranges_, [&](const range& r) { return r.start < end && start < r.end; });
    ranges_.push_back({start, end, bias, object});
    std::sort(ranges_.begin(), ranges_.end(),
              [](const range& a, const range& b) { return a.start < b.start; });
    known_.clear();
}

place_id process_code::find(std::uint64_t address) {
    if (address == 0) return 0;
    const auto [at, is_new] = known_.try_emplace(address);
    if (is_new) {
        place where{0, address};
        const auto after =
            std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](std::uint64_t value, const range& r) { return value < r.start; });
        if (after != ranges_.begin()) {
            const range& r = *std::prev(after);
            if (address < r.end) where = {r.object, address - r.bias};
        }
        at->second = all_->intern(where);
    }
    return at->second;
}

}  // namespace branches
