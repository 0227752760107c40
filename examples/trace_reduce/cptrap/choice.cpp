// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "choice.hpp"
#include "../position/when.hpp"
#include "../position/when_text.hpp"
#include "names.hpp"
#include "notation.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include <trace_ring/cptrap/cp_entry.hpp>
#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

namespace trace_reduce {

namespace {

namespace record = trace_ring::record;

constexpr std::size_t type_count = 256, code_count = 0x10000;
constexpr auto cp_interface = static_cast<std::size_t>(record::cptrap_type::cp_interface);
constexpr auto table_entry = static_cast<std::size_t>(record::cptrap_type::table_entry);
constexpr auto lost = static_cast<std::size_t>(record::cptrap_type::lost);
constexpr auto first_own = static_cast<std::size_t>(record::cptrap_type::first_own);
constexpr auto attached = std::to_integer<std::size_t>(record::attached_processor);

std::optional<std::uint64_t> decimal(std::string_view text) {
    return parse_number(text, 10);
}
std::optional<std::uint64_t> hexadecimal(std::string_view text) {
    return parse_number(text, 16);
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    out += text;
    return out += '"';
}

constexpr std::string_view no_range = " is neither a number nor a range of two";
constexpr std::string_view no_hexadecimal_range =
    " is neither a hexadecimal number (0B, 0x0B, X'0B') nor a range of two";

/// "A" or "A-B"; of names none is a range.
template <class Number>
bool parse_range(std::string_view text, const Number& number, std::uint64_t& first,
                 std::uint64_t& last) {
    const auto dash = text.find('-');
    const auto from = number(text.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : number(text.substr(dash + 1));
    if (!from || !to) return false;
    first = *from;
    last = *to;
    return true;
}
std::string descends(std::string_view text) {
    return quoted(text) + ": the first is more than the last";
}

template <class Take>
std::string each_of(std::string_view text, const Take& take) {
    for (;;) {
        const auto comma = text.find(',');
        auto fault = take(text.substr(0, comma));
        if (!fault.empty()) return fault;
        if (comma == std::string_view::npos) return {};
        text.remove_prefix(comma + 1);
    }
}

std::string parse_set(std::string_view text, std::size_t count, std::vector<bool>& into) {
    std::uint64_t first = 0, last = 0;
    if (!parse_range(text, hexadecimal, first, last)) {
        return quoted(text).append(no_hexadecimal_range);
    }
    if (first >= count || last >= count) {
        return quoted(text) + " is more than X'" + (count == type_count ? "FF'" : "FFFF'") +
               " (numbers of types and codes are hexadecimal)";
    }
    if (first > last) return descends(text);
    for (auto i = first; i <= last; ++i) into[static_cast<std::size_t>(i)] = true;
    return {};
}

}  // namespace

std::string parse_types(std::string_view text, std::vector<bool>& into) {
    auto types = into;
    types.resize(type_count);
    auto fault = each_of(text, [&types](std::string_view one) -> std::string {
        if (const auto event = cp_event_named(one)) {
            types[static_cast<std::size_t>(*event)] = true;
            return {};
        }
        for (const std::size_t type : {cp_interface, table_entry, lost}) {
            if (one == name_of(static_cast<record::cptrap_type>(type))) {
                types[type] = true;
                return {};
            }
        }
        auto wrong = parse_set(one, type_count, types);
        return wrong.empty() ? wrong
                             : wrong + ", nor interface, table_entry, lost or an event's name";
    });
    if (fault.empty()) into = std::move(types);
    return fault;
}

std::string parse_codes(std::string_view text, std::vector<bool>& into) {
    auto codes = into;
    codes.resize(code_count);
    auto fault =
        each_of(text, [&codes](std::string_view one) { return parse_set(one, code_count, codes); });
    if (fault.empty()) into = std::move(codes);
    return fault;
}

std::string parse_pages(std::string_view text, page_range& into) {
    page_range out;
    if (text.ends_with('-')) {  // to the end
        const auto first = decimal(text.substr(0, text.size() - 1));
        if (!first) return quoted(text).append(no_range);
        out.first = *first;
    } else if (!parse_range(text, decimal, out.first, out.last)) {
        return quoted(text).append(no_range);
    }
    if (out.first > out.last) return descends(text);
    into = out;
    return {};
}

std::string parse_spool_place(std::string_view text, spool_place& into) {
    spool_place out;
    const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (text.starts_with('@') || is_hexadecimal) {
        const auto offset = decimal(text.substr(is_hexadecimal ? 0 : 1));
        if (!offset) return quoted(text) + " is no offset in a file";
        out.what = spool_place::form::offset;
        out.offset = *offset;
    } else if (const auto known = parse_when(text)) {
        if (known->what == when::form::per_cent) {
            out.what = spool_place::form::share;
            out.share = known->share;
        } else if (known->what == when::form::record) {
            out.page = known->lane != 0 ? known->lane : known->at;
            out.index = known->lane != 0 ? known->at : 0;
        } else {
            return quoted(text) + " is a time, which the records of a CPTRAP file do not have: " +
                   std::string(forms_of_spool_place);
        }
    } else {  // lanes count from 1, spool records from 0
        const auto rest = text.substr(text.starts_with('#') ? 1 : 0);
        const auto index = rest.starts_with("0:") ? decimal(rest.substr(2)) : std::nullopt;
        if (!index) return quoted(text) + " is none of: " + std::string(forms_of_spool_place);
        out.index = *index;
    }
    into = out;
    return {};
}

std::string parse_length(std::string_view text, record::cptrap_lengths& into) {
    const auto equal = text.find('=');
    if (equal == std::string_view::npos) return quoted(text) + " is no TYPE=BYTES, such as 3D=24";
    const auto type = hexadecimal(text.substr(0, equal));
    if (!type || *type >= type_count || *type == 0) {
        return quoted(text) + ": a type is a hexadecimal number from 01 to FF";
    }
    const auto which = static_cast<record::cptrap_type>(*type);
    if (record::cptrap_lengths{}.has_header(which)) {
        return quoted(text) + ": records of this type have their length in their header";
    }
    const std::string_view length = text.substr(equal + 1);
    if (length == "header") {
        into.by_header(which);
        return {};
    }
    const auto bytes = decimal(length);
    if (!bytes || *bytes < 2 || *bytes > record::spool_record_bytes) {
        return quoted(text) + ": a length is a number of bytes from 2 to 4096, or the word header";
    }
    into.fixed(which, static_cast<std::uint16_t>(*bytes));
    return {};
}

record::cptrap_lengths lengths_of(const options& wanted) {
    record::cptrap_lengths out;
    for (const auto& each : wanted.lengths) static_cast<void>(parse_length(each, out));
    return out;
}

record_choice::record_choice(const std::vector<std::string>& types,
                             const std::vector<std::string>& codes) {
    if (types.empty() && codes.empty()) return;
    std::vector<bool> type_set(type_count), code_set(code_count);
    for (const auto& each : types) static_cast<void>(parse_types(each, type_set));
    for (const auto& each : codes) static_cast<void>(parse_codes(each, code_set));
    if (types.empty()) {
        by_code_ = std::move(code_set);
        return;
    }
    auto& out = what_.emplace();
    for (std::size_t i = 0; i < type_count; ++i) {
        if (!type_set[i]) continue;
        if (i == cp_interface && codes.empty()) out.any_code();
        if (i == table_entry) {  // each event is a type by itself, also one that is not known
            for (std::size_t event = 0; event < first_own; ++event) {
                if ((event & attached) == 0 && event != cp_interface) {
                    out.type(static_cast<record::cptrap_type>(event));
                }
            }
        }
        out.type(static_cast<record::cptrap_type>(i));
    }
    for (std::size_t i = 0; i < code_count; ++i) {
        if (code_set[i]) out.code(static_cast<std::uint16_t>(i));
    }
}

}  // namespace trace_reduce
