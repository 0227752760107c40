// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "sites.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace heap {

bool allocates_for_others(std::string_view function) {
    constexpr std::array<std::string_view, 22> names{
        "xmalloc",         "xcalloc",         "xrealloc",         "xstrdup",
        "xstrndup",        "xmemdup",         "strdup",           "__strdup",
        "strndup",         "__strndup",       "reallocarray",     "g_malloc",
        "g_malloc0",       "g_realloc",       "g_strdup",         "PyMem_Malloc",
        "PyMem_Realloc",   "PyMem_RawMalloc", "PyMem_RawRealloc", "PyObject_Malloc",
        "PyObject_Calloc", "PyObject_Realloc"};
    if (std::find(names.begin(), names.end(), function) != names.end() ||
        function.starts_with("operator new")) {
        return true;
    }
    // A template's name begins with its return type, so "std::" need not come first.
    std::size_t at = function.find("std::");
    if (at == std::string_view::npos) at = function.find("__gnu_cxx::");
    if (at == std::string_view::npos || (at != 0 && function[at - 1] != ' ')) return false;
    // These run what the program gave them, and its code may have become part of theirs.
    constexpr std::array<std::string_view, 8> callers{
        "std::thread::", "std::jthread::", "std::_Function_handler", "std::function",
        "std::__invoke", "std::invoke",    "std::call_once",         "std::__future_base::"};
    return std::none_of(callers.begin(), callers.end(),
                        [&](auto each) { return function.substr(at).starts_with(each); });
}

namespace {

/// With those that were inlined, the innermost first.
[[nodiscard]] std::vector<const symbol*> functions_of(stack_id id, const stack_table& stacks,
                                                      symbolizer& symbols) {
    std::vector<const symbol*> all;
    for (const frame& place : stacks.stack(id)) {
        for (const symbol& each : symbols.find(stacks, place)) all.push_back(&each);
    }
    return all;
}

}  // namespace

std::vector<site> find_sites(const std::vector<stack_sums>& by_stack, const stack_table& stacks,
                             symbolizer& symbols) {
    std::vector<site> sites;
    std::vector<std::pair<std::uint64_t, stack_id>> heaviest;  // of each site: bytes, stack
    std::vector<std::size_t> first_caller;
    std::unordered_map<std::string, std::size_t> by_name;
    for (std::size_t id = 0; id < by_stack.size(); ++id) {
        const stack_sums& sums = by_stack[id];
        if (sums.calls == 0 && sums.live_blocks == 0) continue;
        const auto frames = functions_of(static_cast<stack_id>(id), stacks, symbols);
        std::size_t at = 0;
        while (at < frames.size() &&
               allocates_for_others(without_arguments(frames[at]->function))) {
            ++at;
        }
        if (at == frames.size()) at = 0;
        std::string name = "(no stack)";
        std::string where;
        if (!frames.empty()) {
            name = without_arguments(frames[at]->name());
            where = frames[at]->where();
        }
        const auto [known, is_new] = by_name.try_emplace(name + '\n' + where, sites.size());
        if (is_new) {
            sites.push_back({std::move(name), std::move(where), {}, 0, {}});
            heaviest.emplace_back(0, 0);
            first_caller.push_back(0);
        }
        site& one = sites[known->second];
        one.sums += sums;
        if (one.stacks++ == 0 || sums.bytes > heaviest[known->second].first) {
            heaviest[known->second] = {sums.bytes, static_cast<stack_id>(id)};
            first_caller[known->second] = at + 1;
        }
    }
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const auto frames = functions_of(heaviest[i].second, stacks, symbols);
        for (std::size_t at = first_caller[i]; at < frames.size(); ++at) {
            std::string name = without_arguments(frames[at]->name());
            auto& callers = sites[i].callers;
            if (callers.empty() || callers.back() != name) callers.push_back(std::move(name));
        }
    }
    return sites;
}

}  // namespace heap
