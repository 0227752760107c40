// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which CPTRAP records --browse shows. A person types:
/// @code
///   type interface,start_io code 3-1F
/// @endcode
/// `type` and `code` each take a set in the notation of --type and --code, and may be repeated. An
/// empty text chooses everything. Lost records and damage are always shown.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>

#include "../../cptrap/choice.hpp"
#include "../../options.hpp"

namespace trace_reduce::browse {

namespace reduce = trace_ring::reduce;
namespace record = trace_ring::record;

struct spool_choice {
    std::vector<std::string> types;  ///< sets, as --type takes them
    std::vector<std::string> codes;  ///< sets, as --code takes them
    record::cptrap_selection selected = record::cptrap_selection::everything();

    [[nodiscard]] static spool_choice of(std::vector<std::string> types,
                                         std::vector<std::string> codes) {
        spool_choice made;
        made.selected = selection_of(types, codes);
        made.types = std::move(types);
        made.codes = std::move(codes);
        return made;
    }
    /// The choice of the command line, which was checked.
    [[nodiscard]] static spool_choice of(const options& wanted) {
        return of(wanted.types, wanted.codes);
    }

    /// True for each item that is no record, or that counts lost records.
    [[nodiscard]] bool takes(const reduce::spool_item& item) const noexcept {
        if (item.what != reduce::spool_item::kind::record ||
            item.record.type == record::cptrap_type::lost || (types.empty() && codes.empty())) {
            return true;
        }
        return selected.takes(item.record);
    }
    /// As it would be typed.
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& each : types) out += (out.empty() ? "type " : " type ") + each;
        for (const auto& each : codes) out += (out.empty() ? "code " : " code ") + each;
        return out;
    }
};

/// Nothing, with `why` in one line, if the text is no choice.
[[nodiscard]] inline std::optional<spool_choice> parse_spool_choice(std::string_view text,
                                                                    std::string& why) {
    std::vector<std::string> types, codes;
    const auto take_word = [&text] {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        const auto word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        return word;
    };
    for (auto word = take_word(); !word.empty(); word = take_word()) {
        if (word == "where") {
            // A condition is the rest of `text`. Its place is here, and in `takes` and `text`.
            why = "where: a condition needs fields, which a CPTRAP file's records do not have";
            return std::nullopt;
        }
        const bool is_type = word == "type";
        if (!is_type && word != "code") {
            why = "\"" + std::string(word) + "\" is neither type nor code: as in " +
                  "type interface,start_io code 3";
            return std::nullopt;
        }
        std::string set(take_word());
        while (set.ends_with(',')) {  // a blank after a comma
            const auto more = take_word();
            if (more.empty()) break;
            set += more;
        }
        std::vector<bool> numbers;
        const auto fault = is_type ? parse_types(set, numbers) : parse_codes(set, numbers);
        if (!fault.empty()) {
            why = std::string(word) + ": " + fault;
            return std::nullopt;
        }
        (is_type ? types : codes).push_back(std::move(set));
    }
    return spool_choice::of(std::move(types), std::move(codes));
}

}  // namespace trace_reduce::browse
