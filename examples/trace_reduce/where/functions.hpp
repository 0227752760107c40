// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// `function` in a condition: that in whose code a record's `site` lies. It is compared with names,
/// and becomes a comparison of `site` with the places of the functions that are called so.
/// @code
///   function == "compress"        site in {0x401137..0x4011f0}
///   function ~ "BZ2_*"            site in {0x401137..0x4011f0, 0x4012a1..0x401330}
/// @endcode

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "names.hpp"

namespace trace_reduce::where {

using trace_reduce::where::comparison;
using trace_reduce::where::expression;
using trace_reduce::where::form;
using trace_reduce::where::mistake;

/// Sites from `low` to `high` of a process.
struct site_range {
    std::uint32_t pid = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

/// Whether a condition asks for functions.
[[nodiscard]] inline bool asks_for_functions(const expression& what) {
    if (what.what == form::name && what.word == "function") return true;
    for (const auto& part : what.parts) {
        if (asks_for_functions(part)) return true;
    }
    return false;
}

/// Puts sites in the place of functions, for one trace.
class functions {
public:
    /// `sites_of(name, glob)`: where functions of this name are, or whose names match the glob.
    /// `several`: the trace is of several processes, whose addresses differ.
    using lookup = std::function<std::vector<site_range>(const std::string&, bool)>;
    functions(lookup sites_of, bool several) : sites_of_(std::move(sites_of)), several_(several) {}

    /// The condition without functions.
    [[nodiscard]] expression without(const expression& what) {
        switch (what.what) {
            case form::compared:
                for (const std::size_t i : {0U, 1U}) {
                    if (!is_function(what.parts[i]) || !is_text(what.parts[1 - i])) continue;
                    if (what.sign != comparison::equal && what.sign != comparison::unequal) break;
                    expression made = within(what, what.parts[1 - i], false);
                    if (what.sign == comparison::equal) return made;
                    return at(what, expression::join(form::none_of, {std::move(made)}));
                }
                break;
            case form::like:
                if (is_function(what.parts[0])) return within(what, what, true);
                break;
            case form::among:
                if (is_function(what.parts[0]) &&
                    std::all_of(what.parts.begin() + 1, what.parts.end(), &is_text)) {
                    return among(what);
                }
                break;
            default:
                if (!wrong_ && is_function(what)) {
                    wrong_ = mistake{what.column, what.length,
                                     "'function' is compared with names, as in == \"main\", in "
                                     "{\"main\", \"exit\"} and ~ \"str*\""};
                }
        }
        expression made = what;
        for (auto& part : made.parts) part = without(part);
        return made;
    }

    /// What made no sense, if anything.
    [[nodiscard]] const std::optional<mistake>& wrong() const noexcept { return wrong_; }
    /// The names that no function has.
    [[nodiscard]] const std::vector<expression>& unknown() const noexcept { return unknown_; }

private:
    [[nodiscard]] static bool is_function(const expression& what) {
        return what.what == form::name && what.word == "function";
    }
    [[nodiscard]] static bool is_text(const expression& what) { return what.what == form::text; }
    /// Mistakes in it are shown where the original is.
    [[nodiscard]] static expression at(const expression& original, expression made) {
        made.column = original.column;
        made.length = original.length;
        return made;
    }

    [[nodiscard]] expression among(const expression& what) {
        std::vector<expression> any;
        for (std::size_t i = 1; i + 1 < what.parts.size(); i += 2) {
            any.push_back(within(what, what.parts[i], false));
        }
        if (any.size() == 1) return std::move(any[0]);
        return at(what, expression::join(form::any_of, std::move(any)));
    }
    /// That `site` lies in a function called `name`.
    [[nodiscard]] expression within(const expression& what, const expression& name, bool glob) {
        const auto sites = sites_of_(name.word, glob);
        if (sites.empty()) {
            unknown_.push_back(name);
            return in_ranges(what, {{0, 1, 0}});  // in none, as the record has a site
        }
        if (!several_) return in_ranges(what, sites);
        std::vector<std::uint32_t> pids;
        std::vector<expression> any;
        for (const auto& each : sites) {
            if (std::find(pids.begin(), pids.end(), each.pid) != pids.end()) continue;
            pids.push_back(each.pid);
            std::vector<site_range> own;
            for (const auto& other : sites) {
                if (other.pid == each.pid) own.push_back(other);
            }
            auto its = at(
                what, expression::compare(at(what, expression::of_name("pid")), comparison::equal,
                                          at(what, expression::of(std::uint64_t{each.pid}))));
            any.push_back(
                at(what, expression::join(form::all_of, {std::move(its), in_ranges(what, own)})));
        }
        return at(what, expression::join(form::any_of, std::move(any)));
    }
    [[nodiscard]] static expression in_ranges(const expression& what,
                                              const std::vector<site_range>& ranges) {
        expression made{.what = form::among};
        made.parts.push_back(at(what, expression::of_name("site")));
        for (const auto& each : ranges) {
            made.parts.push_back(at(what, expression::of(each.low)));
            made.parts.push_back(at(what, expression::of(each.high)));
        }
        return at(what, std::move(made));
    }

    lookup sites_of_;
    bool several_;
    std::optional<mistake> wrong_;
    std::vector<expression> unknown_;
};

}  // namespace trace_reduce::where
