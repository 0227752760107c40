// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// --from and --to, as far as they mean something in the files at hand.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

#include "../inputs.hpp"
#include "../options.hpp"
#include "range_finder.hpp"
#include "when.hpp"
#include "when_text.hpp"

namespace trace_reduce::position {

class ranges {
public:
    ranges(const std::vector<std::unique_ptr<input>>& from, const options& wanted,
           complaints& complain)
        : from_(from), wanted_(wanted), complain_(complain) {}

    /// Limits what is read of each file. Reports those that have nothing in the range. False:
    /// a place cannot be found, and was reported.
    [[nodiscard]] bool apply() {
        if (wanted_.from.empty() && wanted_.to.empty()) return true;
        if (!of_traces("--from ", wanted_.from) || !of_traces("--to ", wanted_.to)) return false;
        const auto begin = place(wanted_.from);
        const auto end = place(wanted_.to);
        for (const auto& each : from_) finders_.emplace_back(each->file());
        const auto shared = span();
        for (std::size_t i = 0; i < from_.size(); ++i) {
            auto& what = from_[i]->what();
            for (const auto* option : {"--from", "--to"}) {
                const bool is_from = option[2] == 'f';
                const auto& at = is_from ? begin : end;
                if (!at) continue;
                const auto& text = is_from ? wanted_.from : wanted_.to;
                const bool good = finders_[i].limit(what, is_from ? at : std::nullopt,
                                                    is_from ? std::nullopt : at, shared);
                if (!good) {
                    complain_.system(std::string(option) + ' ' + text + ": " +
                                     from_[i]->file().name() + ": " +
                                     (from_[i]->file().time().known()
                                          ? "there is no such time"
                                          : "its clock was never compared with the system's: only "
                                            "shares (25%) and positions can be told"));
                    return false;
                }
            }
            // A file that is followed may have records in the range later.
            if (!wanted_.follow && finders_[i].outside(what)) note_outside(i);
        }
        return true;
    }

private:
    /// The command line was checked: other texts are places in a CPTRAP file.
    [[nodiscard]] bool of_traces(const char* option, const std::string& text) {
        if (text.empty() || parse_when(text)) return true;
        complain_.system(option + text + ": of a trace a place is " + std::string(forms_of_when));
        return false;
    }
    [[nodiscard]] static std::optional<when> place(const std::string& text) {
        return text.empty() ? std::nullopt : parse_when(text);
    }

    /// Of all files together, if there are several and all can be compared.
    [[nodiscard]] std::optional<common_span> span() const {
        if (from_.size() < 2) return std::nullopt;
        std::optional<common_span> all;
        for (std::size_t i = 0; i < from_.size(); ++i) {
            if (!from_[i]->file().time().known()) return std::nullopt;
            const auto one = finders_[i].span();
            if (!all) all = one;
            all->begin = std::min(all->begin, one.begin);
            if (finders_[i].whole().empty) continue;
            all->first = std::min(all->first, one.first);
            all->last = std::max(all->last, one.last);
        }
        return all;
    }

    void note_outside(std::size_t i) {
        const auto& whole = finders_[i].whole();
        exporter::text_buffer text;
        text += from_[i]->file().name();
        if (whole.empty) {
            text += ": there is nothing in it yet";
        } else {
            exporter::text_writer times(from_[i]->file().time(), {.time = wanted_.time});
            text += ": nothing of it is in the range: it goes from ";
            times.append_time(text, whole.first);
            text += " to ";
            times.append_time(text, whole.last);
        }
        complain("trace-reduce", text.view());
    }

    const std::vector<std::unique_ptr<input>>& from_;
    const options& wanted_;
    complaints& complain_;
    std::vector<range_finder> finders_;
};

}  // namespace trace_reduce::position
