// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file Selects the references of a trace that are analysed.

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <trace_ring/instrument/references.hpp>

#include "../coverage/code_layout.hpp"

namespace address_trace {

using trace_ring::reference;
using trace_ring::reference_kind;

/// Selects all references; or those from each time any thread enters the function `from` to the
/// next time one enters the function `to`. Of these it skips the first `skip`, and takes at most
/// `window`. The position of other threads at these times is known to within a record's references.
class reference_choice {
public:
    static constexpr std::uint64_t everything = ~std::uint64_t{0};

    struct settings {
        std::string from{}, to{};  ///< empty: from the beginning, to the end
        std::uint64_t skip = 0, window = everything;
    };

    reference_choice() = default;
    explicit reference_choice(settings wanted)
        : wanted_(std::move(wanted)),
          is_everything_(wanted_.from.empty() && wanted_.to.empty() && wanted_.skip == 0 &&
                         wanted_.window == everything),
          is_between_(wanted_.from.empty()) {}

    [[nodiscard]] bool is_everything() const noexcept { return is_everything_; }

    /// Another object is known.
    void look_for_functions(code_layout& code, const loaded_module& in) {
        if (!wanted_.from.empty()) add(begins_, code.entries(in, wanted_.from));
        if (!wanted_.to.empty()) add(ends_, code.entries(in, wanted_.to));
    }
    /// A function that was not found in any object; empty: all were found.
    [[nodiscard]] std::string missing() const {
        if (!wanted_.from.empty() && begins_.empty()) return wanted_.from;
        return !wanted_.to.empty() && ends_.empty() ? wanted_.to : std::string();
    }

    /// Whether the next reference is analysed. Constant time on average.
    [[nodiscard]] bool takes(const reference& each) {
        if (each.kind == reference_kind::block) {
            if (is_between_ && ends_.count(each.site) != 0) is_between_ = false;
            if (!is_between_ && begins_.count(each.site) != 0) is_between_ = true;
        }
        if (!is_between_) return false;
        if (wanted_.skip != 0) {
            --wanted_.skip;
            return false;
        }
        if (wanted_.window == 0) return false;
        if (wanted_.window != everything) --wanted_.window;
        return true;
    }

private:
    using sites = std::unordered_set<std::uint64_t>;

    static void add(sites& to, const std::vector<std::uint64_t>& all) {
        to.insert(all.begin(), all.end());
    }

    settings wanted_;
    bool is_everything_ = true;
    bool is_between_ = true;
    sites begins_, ends_;  // where the hooks of their first blocks return to
};

}  // namespace address_trace
