// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "compile.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <trace_ring/point/machine/check.hpp>

#include "../../expressions/nearest.hpp"
#include "../firings/kept_words.hpp"
#include "condition_code.hpp"

namespace trace_clauses {
namespace {

using expressions::nearest;
using point::context_word;
using point::instruction;
using point::op;
using trace_ring::field_form;
using trace_ring::field_type;

constexpr std::uint32_t usual_frames = 16;
constexpr std::size_t longest_name = 1024;  // of the point that fires

class compiler {
public:
    compiler(std::string_view text, const environment& in) : text_(text), values_(in) {}

    [[nodiscard]] std::vector<instruction> predicate(const expression& of) {
        values_.condition(of);
        return finish(of, {.is_predicate = true});
    }
    void action(const std::vector<expression>& calls, compiled& into) {
        for (const auto& each : calls) into.statements.push_back(act(each));
        into.output_bytes = (used_ + 7) / 8 * 8;
        const expression none;
        into.action = finish(calls.empty() ? none : calls.back(), {into.output_bytes, false});
    }

private:
    [[nodiscard]] std::vector<instruction> finish(const expression& at, point::purpose as) {
        code_.append({op::finish});
        auto made = code_.take();
        if (const auto why = point::find_fault(made, as)) {
            const std::string_view said = why->what;
            refuse(at, said == "the stack is full" ? "too many values within each other"
                       : said == "too much output" ? "more than 4,096 bytes to be captured"
                                                   : "it is too long");
        }
        return made;
    }
    statement act(const expression& of) {
        statement made;
        if (of.word == "capture") {
            made.is = statement::kind::capture;
        } else if (of.word == "count") {
            made.is = statement::kind::count;
        } else if (of.word == "hist") {
            made.is = statement::kind::histogram;
            if (of.parts.empty()) refuse(of, "hist(VALUE) or hist(VALUE, KEY, ...)");
        } else {
            nearest to(of.word, 3);
            for (const std::string_view each : {"capture", "count", "hist"}) to.look(each);
            refuse(of, "there is no action '" + of.word + "'" +
                           (to.found().empty() ? "; there are capture, count and hist"
                                               : to.suggestion()));
        }
        const std::vector<std::string> names = written(of);
        for (std::size_t i = 0; i < of.parts.size(); ++i) {
            const std::size_t begin = code_.size();
            made.fields.push_back(
                store(of.parts[i], i < names.size() ? names[i] : of.parts[i].word));
            note_faults(of.parts[i], begin, made.fields.back());
            if (made.is == statement::kind::histogram && i == 0 &&
                (made.fields[0].form != field_form::scalar ||
                 made.fields[0].type == field_type::f32 ||
                 made.fields[0].type == field_type::f64)) {
                refuse(of.parts[0], "a histogram is of whole numbers");
            }
        }
        return made;
    }
    /// Stores, after code that may fail, whether it failed.
    void note_faults(const expression& of, std::size_t begin, stored_field& into) {
        if (!code_.may_fail(begin)) return;
        if (used_ == 0) used_ = 8;  // 0 means that there is no place for faults
        into.faults_before = faults_at_;
        into.faults_behind = faults_at_ = place(of, 2, 2);
        code_.append({op::store_faults, 0, 0, static_cast<std::int32_t>(faults_at_)});
    }
    [[nodiscard]] std::uint32_t place(const expression& of, std::uint32_t bytes,
                                      std::uint32_t alignment) {
        const std::uint32_t at = (used_ + alignment - 1) / alignment * alignment;
        if (at + bytes > point::most_output) refuse(of, "more than 4,096 bytes to be captured");
        used_ = at + bytes;
        return at;
    }
    /// The arguments of a call, as text.
    [[nodiscard]] std::vector<std::string> written(const expression& call) const {
        std::vector<std::string> all(1);
        std::size_t depth = 0;
        char quote = 0;
        for (std::size_t i = call.column + call.word.size(); i < text_.size(); ++i) {
            const char c = text_[i];
            if (quote != 0) {
                if (c == '\\' && i + 1 < text_.size()) all.back() += text_[i++];
                if (text_[i] == quote) quote = 0;
            } else if (c == '"' || c == '\'' || c == '`') {
                quote = c;
            } else if (c == '(' || c == '[' || c == '{') {
                if (depth++ == 0) continue;
            } else if (c == ')' || c == ']' || c == '}') {
                if (--depth == 0) break;
            } else if (c == ',' && depth == 1) {
                all.emplace_back();
                continue;
            }
            if (depth != 0) all.back() += text_[i];
        }
        for (auto& each : all) {
            constexpr const char* blank = " \t\n\r\v\f";
            const std::size_t first = each.find_first_not_of(blank);
            each = first == std::string::npos
                       ? ""
                       : each.substr(first, each.find_last_not_of(blank) - first + 1);
        }
        return all;
    }
    stored_field store(const expression& of, std::string name) {
        stored_field made;
        made.name = std::move(name);
        const bool frames = (of.what == form::call || of.what == form::name) && of.word == "ustack";
        if (frames) {
            if (of.parts.size() > 1) refuse(of, "ustack or ustack(FRAMES)");
            made.count = of.parts.empty() ? usual_frames : values_.constant(of.parts[0], 1, 128);
            made.type = field_type::address;
            made.form = field_form::array;
            made.offset = place(of, 8 * made.count, 8);
            code_.append({op::store_stack, 0, static_cast<std::uint16_t>(8 * made.count),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        if (auto text = values_.text_of_point(of)) {
            made.type = field_type::character;
            made.form = field_form::variable;
            made.count = static_cast<std::uint32_t>(std::min(text->size(), longest_name));
            made.constant = text->substr(0, longest_name);
            return made;
        }
        if (of.what == form::name && of.word == "comm") {
            made.type = field_type::character;
            made.form = field_form::array;
            made.count = 16;
            made.offset = place(of, 16, 8);
            for (const std::uint32_t half : {0U, 1U}) {
                code_.append(
                    {op::context, static_cast<std::uint8_t>(
                                      static_cast<std::uint32_t>(context_word::command) + half)});
                code_.append({op::store, static_cast<std::uint8_t>(point::width::u64), 0,
                              static_cast<std::int32_t>(made.offset + 8 * half)});
            }
            return made;
        }
        if (const auto text = values_.find_text(of)) {
            made.type = field_type::character;
            made.count = text->bytes;
            if (text->is_whole_array) {
                // Nothing after it is read.
                made.form = field_form::array;
                made.offset = place(of, text->bytes, 8);
                values_.address_of_text(of);
                code_.append({op::store_bytes, 0, static_cast<std::uint16_t>(text->bytes),
                              static_cast<std::int32_t>(made.offset)});
                return made;
            }
            made.form = field_form::variable;
            made.offset = place(of, 2 + text->bytes, 2);
            values_.address_of_text(of);
            code_.append({op::store_text, 0, static_cast<std::uint16_t>(text->bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        return store_number(of, std::move(made));
    }
    stored_field store_number(const expression& of, stored_field made) {
        const operand found = values_.without_code([&] { return values_.compile(of); });
        const type is = values_.types().of(found);
        if (found.is == operand::kind::placed &&
            (is.is == type::kind::real || is.is == type::kind::array)) {
            return store_placed(of, std::move(made));
        }
        if (found.is == operand::kind::object && is.is == type::kind::real) {
            need_field(of, is);
            static_cast<void>(values_.compile(of));
            made.type = stored_type(found.type);
            made.offset = place(of, static_cast<std::uint32_t>(is.size.bytes), 8);
            code_.append({op::store_bytes, 0, static_cast<std::uint16_t>(is.size.bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        if (found.is == operand::kind::object && is.is == type::kind::array &&
            is_number(values_.types()[is.of])) {
            if (is.count == 0 || is.size.bytes > point::most_output)
                refuse(of, "an array of unknown size");
            static_cast<void>(values_.compile(of));
            made.type = stored_type(is.of);
            made.values = values_.types()[is.of].values;
            made.form = field_form::array;
            need_field(of, values_.types()[is.of]);
            made.count = static_cast<std::uint32_t>(is.count);
            made.offset = place(of, static_cast<std::uint32_t>(is.size.bytes), 8);
            code_.append({op::store_bytes, 0, static_cast<std::uint16_t>(is.size.bytes),
                          static_cast<std::int32_t>(made.offset)});
            return made;
        }
        const operand kept = values_.value(of);
        const bool pointer = values_.types().of(kept).is == type::kind::pointer;
        made.type = pointer                                           ? field_type::address
                    : values_.types().integer_of(kept.type).is_signed ? field_type::i64
                                                                      : field_type::u64;
        made.values = values_.types().of(kept).values;
        made.offset = place(of, 8, 8);
        code_.append({op::store, static_cast<std::uint8_t>(point::width::u64), 0,
                      static_cast<std::int32_t>(made.offset)});
        return made;
    }

    /// A value in registers, element by element.
    stored_field store_placed(const expression& of, stored_field made) {
        operand found = values_.compile(of);
        const type is = values_.types().of(found);
        const bool many = is.is == type::kind::array;
        const type_id element_id = many ? is.of : found.type;
        const type element = values_.types()[element_id];
        if (!is_number(element)) refuse(of, "an array in registers whose elements are not numbers");
        need_field(of, element);
        const auto bytes = static_cast<std::uint32_t>(element.size.bytes);
        made.count = many ? static_cast<std::uint32_t>(is.count) : 1;
        made.form = many ? field_form::array : field_form::scalar;
        made.type = stored_type(element_id);
        made.values = element.values;
        made.offset = place(of, bytes * made.count, 8);
        for (std::uint32_t i = 0; i < made.count; ++i) {
            values_.push_placed(of, found, bytes);
            code_.append({op::store,
                          static_cast<std::uint8_t>(
                              integer_type{static_cast<std::uint8_t>(bytes), false}.width()),
                          0, static_cast<std::int32_t>(made.offset + i * bytes)});
            found.offset += bytes;
        }
        return made;
    }
    [[nodiscard]] static bool is_number(const type& of) noexcept {
        return of.is == type::kind::integer || of.is == type::kind::real;
    }
    /// The type that a trace uses for a floating-point number, or for an array's element.
    [[nodiscard]] field_type stored_type(type_id of) {
        const type& is = values_.types()[of];
        if (is.is == type::kind::real)
            return is.size.bytes == 4 ? field_type::f32 : field_type::f64;
        return values_.types().stored_as(values_.types().integer_of(of));
    }
    static void need_field(const expression& of, const type& is) {
        if (is.is == type::kind::real && is.size.bytes > 8)
            refuse(of, "a long double, of which no field holds all digits");
    }

    std::string_view text_;
    condition_code values_;
    typed_code& code_ = values_.code();
    std::uint32_t used_ = 0;
    std::uint32_t faults_at_ = 0;  // the latest place of faults; 0: none
};

}  // namespace

compiled compile(std::string_view text, const expressions::clause_text& clause,
                 const environment& in) {
    compiled made;
    kept_arguments kept;
    environment with = in;
    if (in.at_return && !in.at_system_call) with.kept = &kept;
    if (clause.when) made.predicate = compiler(text, with).predicate(*clause.when);
    compiler(text, with).action(clause.statements, made);
    if (kept.code.empty()) return made;
    made.entry = std::move(kept.code);
    made.entry.push_back({op::store_faults, 0, 0, offsetof(kept_words, faults)});
    made.entry.push_back({op::finish});
    if (point::find_fault(made.entry, {.output_bytes = sizeof(kept_words)})) {
        const expression none;
        refuse(none, "its arguments cannot be kept until the function exits");
    }
    return made;
}

}  // namespace trace_clauses
