// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The filter of --browse for CPTRAP files, as a person types it:
/// @code
///   type interface,start_io code 3-1F where length > 20
/// @endcode
/// `type` and `code` each take a set in the notation of --type and --code, and may be repeated;
/// `where` takes the rest as a condition, as --where does. An empty text chooses everything.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../../../expressions/parse.hpp"
#include "../../cptrap/choice.hpp"
#include "../../cptrap/condition.hpp"
#include "../../cptrap/spool_choice.hpp"

namespace trace_reduce::browse {

/// Nothing, with `why` in one line, if the text is no choice. Columns in it count from the
/// beginning of the text.
[[nodiscard]] inline std::optional<spool_choice> parse_spool_choice(std::string_view text,
                                                                    std::string& why) {
    const std::string_view whole = text;
    std::vector<std::string> types, codes;
    const auto take_word = [&text] {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        const auto word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        return word;
    };
    for (auto word = take_word(); !word.empty(); word = take_word()) {
        if (word == "where") {
            auto found = expressions::parse(text);
            auto* wrong = std::get_if<expressions::mistake>(&found);
            spool_condition::made made;
            if (wrong == nullptr) {
                made = spool_condition::make(std::get<expressions::expression>(found));
                wrong = std::get_if<expressions::mistake>(&made);
            }
            if (wrong != nullptr) {
                wrong->column += whole.size() - text.size();
                why = expressions::describe_in_line(whole, *wrong);
                return std::nullopt;
            }
            text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
            return spool_choice(std::move(types), std::move(codes), std::string(text),
                                std::get<0>(std::move(made)));
        }
        const bool is_type = word == "type";
        if (!is_type && word != "code") {
            why = "\"" + std::string(word) + "\" is neither type, code nor where: as in " +
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
    return spool_choice(std::move(types), std::move(codes));
}

}  // namespace trace_reduce::browse
