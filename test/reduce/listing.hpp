// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Golden files that read like listings: what a trace file holds, line by line, and what reading it
/// must show. `#` begins a comment.
/// @code
///   clock TICKS MONOTONIC REALTIME [WIDTH]
///   process PID NAME
///   event ID NAME [span|counter] [total=N] [FIELD:TYPE ...]     TYPE: u64 i8 f32 bool char flow
///                                                               address, u16[3] fixed,
///                                                               u32[] variable
///   lane PROCESS THREAD NAME [DEPTH]
///   open LANE TIME [POSITION]     record LANE TIME EVENT VALUE... [+begin +end +cut +interval]
///   end LANE TIME EVENT LANE POSITION                           of the span that began there
///   raw LANE TIME ID WORD...      close LANE TIME      lost LANE REFUSED TOO_LONG NESTED
///   counts LANE REFUSED TOO_LONG NESTED ABANDONED      wipe POSITION    poke OFFSET VALUE BYTES
///   --- WHAT                      what follows, to the next such line, must be shown by WHAT
/// @endcode
/// Values: numbers, "text" with \n \xNN \" \\, [1 2 3]; `...` directly after one: it was cut.
/// OFFSET is a number, or one after `header+`, `ring+`, `dictionary+`, `sub_buffer:POSITION+`,
/// `lane:NUMBER+`.

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reduce/file_builder.hpp>

namespace trace_ring_test {

class listing {
public:
    explicit listing(const std::string& path) {
        std::ifstream in(path);
        if (!in) throw std::runtime_error("cannot read " + path);
        std::string line;
        std::string* expected = nullptr;
        for (number_ = 1; std::getline(in, line); ++number_) {
            if (line.starts_with("--- ")) {
                expected = &sections_.emplace_back(line.substr(4), "").second;
            } else if (expected != nullptr) {
                *expected += line + '\n';
            } else {
                words_ = split(line);
                if (!words_.empty()) enter();
            }
        }
    }

    [[nodiscard]] const file_builder& file() const { return file_; }
    /// What must be shown, and by what.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& sections() const {
        return sections_;
    }

private:
    [[nodiscard]] static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> words;
        bool quoted = false;
        bool listed = false;
        bool in_word = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            if (c == '#' && !quoted) break;
            if (c == ' ' && !quoted && !listed) {
                in_word = false;
                continue;
            }
            if (!in_word) words.emplace_back();
            in_word = true;
            words.back() += c;
            if (c == '\\' && quoted && i + 1 < line.size()) {
                words.back() += line[++i];
            } else if (c == '"') {
                quoted = !quoted;
            } else if (!quoted && (c == '[' || c == ']')) {
                listed = c == '[' && line.find("]", i) != i + 1;
            }
        }
        return words;
    }
    [[noreturn]] void fail(const std::string& why) const {
        throw std::runtime_error("line " + std::to_string(number_) + ": " + why);
    }
    [[nodiscard]] const std::string& word(std::size_t i) const {
        if (i >= words_.size()) fail("too short");
        return words_[i];
    }
    [[nodiscard]] static std::uint64_t parse(const std::string& text) {
        return text.starts_with('-') ? static_cast<std::uint64_t>(std::stoll(text, nullptr, 0))
                                     : std::stoull(text, nullptr, 0);
    }
    [[nodiscard]] std::uint64_t number(std::size_t i, std::uint64_t otherwise) const {
        return i < words_.size() ? parse(words_[i]) : otherwise;
    }
    [[nodiscard]] std::uint64_t number(std::size_t i) const { return parse(word(i)); }
    [[nodiscard]] std::uint32_t small(std::size_t i) const {
        return static_cast<std::uint32_t>(number(i));
    }

    void enter() {
        const std::string& what = words_[0];
        if (what == "clock") {
            file_.clock_reading(number(1), number(2), number(3), number(4, 0));
        } else if (what == "process") {
            file_.process(small(1), word(2));
        } else if (what == "event") {
            event();
        } else if (what == "lane") {
            file_.lane(small(1), small(2), unquoted(word(3)),
                       static_cast<std::uint32_t>(number(4, 0)));
        } else if (what == "open") {
            file_.open(small(1), number(2), number(3, 0));
        } else if (what == "close") {
            file_.close(small(1), number(2));
        } else if (what == "record") {
            record();
        } else if (what == "end") {
            file_.end_of(small(1), number(2), named_event(), small(4), number(5));
        } else if (what == "raw") {
            std::vector<std::uint64_t> payload;
            for (std::size_t i = 4; i < words_.size(); ++i) payload.push_back(number(i));
            file_.raw_record(small(1), number(2), small(3), payload);
        } else if (what == "lost") {
            file_.lost(small(1), small(2), small(3), small(4));
        } else if (what == "counts") {
            file_.lane_counts(small(1), number(2), number(3), number(4), number(5));
        } else if (what == "wipe") {
            file_.wipe(number(1));
        } else if (what == "poke") {
            file_.put(place(word(1)), number(2), static_cast<std::size_t>(number(3)));
        } else {
            fail("what is " + what + "?");
        }
    }

    [[nodiscard]] std::uint64_t place(const std::string& text) const {
        const std::size_t plus = text.find('+');
        if (plus == std::string::npos) return parse(text);
        const std::string region = text.substr(0, plus);
        const std::uint64_t offset = parse(text.substr(plus + 1));
        if (region == "header") return offset;
        if (region == "ring") return file_.plan().ring + offset;
        if (region == "dictionary") return file_.plan().dictionary + offset;
        const std::size_t colon = region.find(':');
        const std::uint64_t which = parse(region.substr(colon + 1));
        if (region.starts_with("sub_buffer:")) return file_.slot_at(which) + offset;
        if (region.starts_with("lane:")) {
            return file_.lane_at(static_cast<std::uint32_t>(which)) + offset;
        }
        fail("where is " + text + "?");
    }

    void event() {
        static const std::map<std::string, field_type> types{
            {"u8", field_type::u8},          {"u16", field_type::u16},
            {"u32", field_type::u32},        {"u64", field_type::u64},
            {"i8", field_type::i8},          {"i16", field_type::i16},
            {"i32", field_type::i32},        {"i64", field_type::i64},
            {"f32", field_type::f32},        {"f64", field_type::f64},
            {"bool", field_type::boolean},   {"char", field_type::character},
            {"address", field_type::address}};
        event_spec spec;
        spec.id = static_cast<std::uint16_t>(number(1));
        spec.name = unquoted(word(2));
        for (std::size_t i = 3; i < words_.size(); ++i) {
            const std::string& each = words_[i];
            if (each == "span") {
                spec.kind = event_kind::span;
            } else if (each == "counter") {
                spec.kind = event_kind::counter;
            } else if (each.starts_with("total=")) {
                spec.total = static_cast<std::uint8_t>(parse(each.substr(6)));
            } else {
                const std::size_t colon = each.rfind(':');
                field_spec field;
                field.name = unquoted(each.substr(0, colon));
                std::string type = each.substr(colon + 1);
                if (const std::size_t bracket = type.find('['); bracket != type.npos) {
                    const std::string count = type.substr(bracket + 1, type.size() - bracket - 2);
                    field.form = count.empty() ? field_form::variable : field_form::array;
                    if (!count.empty()) field.count = static_cast<std::uint16_t>(parse(count));
                    type.resize(bracket);
                }
                field.flow = type == "flow";
                if (field.flow) type = "u64";
                if (types.count(type) == 0) fail("no type " + type);
                field.type = types.at(type);
                spec.fields.push_back(field);
            }
        }
        file_.event(spec);
    }

    [[nodiscard]] const event_spec& named_event() const {
        for (const auto& each : file_.events()) {
            if (each.name == unquoted(word(3))) return each;
        }
        fail("no event " + word(3));
    }
    void record() {
        const event_spec* const spec = &named_event();
        std::vector<value_spec> values;
        std::uint32_t flags = 0;
        for (std::size_t i = 4; i < words_.size(); ++i) {
            const std::string& each = words_[i];
            if (each == "+cut") {
                flags |= 1;
            } else if (each == "+interval") {
                flags |= 2;
            } else if (each == "+begin") {
                flags |= 4;
            } else if (each == "+end") {
                flags |= 8;
            } else {
                values.push_back(value(each, spec->fields.at(values.size()).type));
            }
        }
        const bool bare = values.empty() && !spec->fields.empty();  // the end of a span
        const bool fits = bare ? file_.raw_record(small(1), number(2), spec->id, {}, flags)
                               : file_.record(small(1), number(2), *spec, values, flags);
        if (!fits) fail("the sub-buffer is full");
    }

    [[nodiscard]] static value_spec value(std::string text, field_type type) {
        const bool cut = text.ends_with("...");
        if (cut) text.resize(text.size() - 3);
        if (text.starts_with('"')) return {std::string_view(unquoted(text)), cut};
        std::vector<std::uint64_t> elements;
        if (text.starts_with('[')) {
            std::istringstream in(text.substr(1, text.size() - 2));
            for (std::string each; in >> each;) elements.push_back(element(each, type));
        } else {
            elements.push_back(element(text, type));
        }
        value_spec made(elements);
        made.cut = cut;
        return made;
    }
    [[nodiscard]] static std::uint64_t element(const std::string& text, field_type type) {
        if (type == field_type::f64) return std::bit_cast<std::uint64_t>(std::stod(text));
        if (type == field_type::f32) return std::bit_cast<std::uint32_t>(std::stof(text));
        if (type == field_type::boolean) return text == "true" ? 1 : 0;
        return parse(text);
    }
    [[nodiscard]] static std::string unquoted(const std::string& text) {
        if (!text.starts_with('"')) return text;
        std::string out;
        for (std::size_t i = 1; i + 1 < text.size(); ++i) {
            if (text[i] != '\\') {
                out += text[i];
            } else if (text[++i] == 'n') {
                out += '\n';
            } else if (text[i] == 'x') {
                out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
                i += 2;
            } else {
                out += text[i];
            }
        }
        return out;
    }

    file_builder file_;
    std::vector<std::string> words_;
    std::vector<std::pair<std::string, std::string>> sections_;
    int number_ = 0;
};

}  // namespace trace_ring_test
