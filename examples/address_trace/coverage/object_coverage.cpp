// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "object_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <heap_recorder/report/quantity.hpp>
#include <map>

#include "../../symbols/symbols.hpp"
#include "hooks_in_object.hpp"
#include "object_file.hpp"

namespace address_trace {
namespace {

[[nodiscard]] object_coverage coverage_of(const loaded_module& module) {
    object_coverage out{.path = module.path};
    const object_file file(module.path);
    out.unknown = file.problem(module.build_id);
    if (!out.unknown.empty()) return out;
    // An object without code, such as a library of pictures, has no functions either.
    const bool has_code = std::ranges::any_of(file.sections(), &section::is_code);
    auto functions = find_functions(file);
    if (has_code || file.sections().empty()) out.unknown = std::move(functions.unknown);
    if (!out.unknown.empty()) return out;
    const auto& starts = functions.all;
    const hook_addresses hooks = find_hooks(file);
    const auto calls = hook_calls(file, hooks);
    for (const section& each : file.sections()) {
        if (!each.is_code() || each.is_stubs()) continue;
        out.bytes += each.bytes.size();  // including code outside of functions
        each_function(each, starts, [&](std::uint64_t from, std::uint64_t until) {
            if (hooks.own_functions.count(from) != 0) {
                out.bytes -= until - from;
                return;
            }
            ++out.functions;
            if (calls_within(calls, from, until).empty()) return;
            ++out.hooked_functions;
            out.hooked_bytes += until - from;
        });
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
