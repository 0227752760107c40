// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The metadata of a CTF 1.8 trace, in TSDL: a fixed head, and a declaration for each class of
/// events, made from the dictionary.
///
/// Field names. Readers of CTF 1.8 take one leading underscore off a field's name, so every name is
/// written with one, and none is a keyword: `int` is `_int`. Beyond that,
/// - a byte that no identifier may have is `_xNN_`, with two lower-case hexadecimal digits; so is
///   an underscore that is followed by x and two such digits. An empty name is `_x_`, and the name
///   `_x_` is `_x5f_x_`. So no two names become the same identifier.
/// - A name that the event already has gets `_x_2`, `_x_3` and so on behind it.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

namespace trace_ring::inline v1::exporter {

namespace impl {

/// Whether `text` begins with an underscore, x and two hexadecimal digits.
[[nodiscard]] inline bool is_mangled(std::string_view text) noexcept {
    return text.size() >= 4 && text.starts_with("_x") &&
           text.substr(2, 2).find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace impl

/// A name of any bytes as an identifier, without the leading underscore. Linear.
[[nodiscard]] inline std::string ctf_name(std::string_view name) {
    if (name.empty()) return "_x_";
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool mangle = c == '_' ? impl::is_mangled(name.substr(i)) || name == "_x_"
                                     : !letter && (c < '0' || c > '9');
        if (!mangle || (i != 0 && name == "_x_")) {
            out += c;
            continue;
        }
        text_buffer digits;
        impl::append_hex_byte(digits, static_cast<unsigned char>(c));
        out.append("_x").append(digits.view()) += '_';
    }
    return out;
}

namespace impl {

/// The properties that divide one event type into classes: one for each combination that occurs.
struct ctf_flavour {
    static constexpr std::uint64_t begins = 1;
    static constexpr std::uint64_t ends = 2;
    static constexpr std::uint64_t told_end = 3;   ///< an end that says where the span began
    static constexpr std::uint64_t bare = 4;       ///< without fields: the end of a span
    static constexpr std::uint64_t faulty = 8;     ///< the payload's bytes, and the fault
    static constexpr std::uint64_t interval = 16;  ///< the time is a lower bound
    static constexpr std::uint64_t late = 32;    ///< earlier than the event before it in the stream
    static constexpr std::uint64_t cut = 64;     ///< some field was cut
    static constexpr std::uint64_t bytes = 128;  ///< all text as bytes
    /// Field `i` is a text as bytes.
    [[nodiscard]] static constexpr std::uint64_t bytes_of(std::size_t i) noexcept {
        constexpr std::size_t told_apart = 56;
        return i < told_apart ? std::uint64_t{256} << i : bytes;
    }
    [[nodiscard]] static constexpr bool has_bytes(std::uint64_t flavour, std::size_t i) noexcept {
        return (flavour & (bytes | bytes_of(i))) != 0;
    }
};

/// Appends a string literal. `text` is made printable first, as in text.hpp: control characters in
/// a name become \xNN, and reach no terminal.
inline void append_tsdl_string(text_buffer& out, std::string_view text) {
    text_buffer printable;
    append_escaped(printable, text, 0);
    out += '"';
    for (const char c : printable.view()) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    out += '"';
}

/// The names of one structure's members.
class ctf_members {
public:
    /// The next member's name, made unique.
    [[nodiscard]] std::string next(std::string_view name) {
        const std::string first = '_' + ctf_name(name);
        std::string unique = first;
        for (std::size_t i = 2; !used_.insert(unique).second; ++i) {
            unique = first + "_x_" + std::to_string(i);
        }
        return unique;
    }

private:
    std::set<std::string> used_;
};

[[nodiscard]] inline std::string_view tsdl_type(field_type type) noexcept {
    constexpr std::string_view names[] = {"u8",  "u8",  "u16", "u32", "u64",     "i8", "i16",
                                          "i32", "i64", "f32", "f64", "boolean", "u8", "address"};
    const auto number = static_cast<std::size_t>(type);
    return names[number < std::size(names) ? number : 0];
}

/// Appends the type of an enumeration whose values have these names.
inline void append_tsdl_enumeration(text_buffer& out, field_type type,
                                    const reduce::value_names& names) {
    append(out, "enum : ", tsdl_type(type));
    const char* between = " { ";
    for (const auto& each : names.all()) {
        out += between;
        between = ", ";
        append_tsdl_string(out, each.name);
        out += " = ";
        if (type >= field_type::i8) {
            append_number(out, static_cast<std::int64_t>(each.value));
        } else {
            append_number(out, each.value);
        }
    }
    out += " }";
}

inline void append_tsdl_field(text_buffer& out, const reduce::field_info& field, bool bytes,
                              ctf_members& members) {
    const bool text = field.type == field_type::character;
    out += "        ";
    if (text && !bytes) return append(out, "string ", members.next(field.name), ";\n");
    text_buffer own;
    if (field.values != nullptr) append_tsdl_enumeration(own, field.type, *field.values);
    const std::string_view type = text ? "byte" : own.empty() ? tsdl_type(field.type) : own.view();
    if (field.form == field_form::scalar) {
        return append(out, type, ' ', members.next(field.name), ";\n");
    }
    if (field.form == field_form::array && !text) {
        return append(out, type, ' ', members.next(field.name), '[', field.count, "];\n");
    }
    const std::string length = members.next('_' + field.name + "_length");
    append(out, "u16 ", length, "; ", type, ' ', members.next(field.name), '[', length, "];\n");
}

/// Appends the declaration of a class of events. `type` null: the dictionary lacks event `id`.
inline void append_tsdl_event(text_buffer& out, std::uint32_t number,
                              const reduce::event_type* type, std::uint32_t id,
                              std::uint64_t flavour) {
    using f = ctf_flavour;
    std::string name = type != nullptr ? type->name : "event#" + std::to_string(id);
    const bool told = (flavour & f::told_end) == f::told_end;
    if ((flavour & f::told_end) == f::begins) name += ":begin";
    if ((flavour & f::ends) != 0) name += ":end";
    out += "event {\n    name = ";
    append_tsdl_string(out, name);
    append(out, ";\n    id = ", number, ";\n    stream_id = 0;\n");
    if ((flavour & (f::interval | f::late | f::cut)) != 0) {
        out += "    context := struct {\n";
        if ((flavour & f::late) != 0) out += "        i64 _time;\n";
        if ((flavour & f::interval) != 0) {
            out += "        boolean _bounded;\n        i64 _latest;\n";
        }
        if ((flavour & f::cut) != 0) out += "        string _cut;\n";
        out += "    };\n";
    }
    out += "    fields := struct {\n";
    if ((flavour & f::faulty) != 0) {
        out += "        string _fault;\n        u16 __raw_length; byte _raw[__raw_length];\n";
    } else if (told) {
        out += "        u32 _began_lane;\n        u64 _began_position;\n";
    } else if (type != nullptr && (flavour & f::bare) == 0) {
        ctf_members members;
        for (std::size_t i = 0; i < type->fields.size(); ++i) {
            append_tsdl_field(out, type->fields[i], f::has_bytes(flavour, i), members);
        }
    }
    out += "    };\n};\n";
}

inline constexpr std::uint32_t ctf_lost = 0;
inline constexpr std::uint32_t ctf_damaged = 1;
inline constexpr std::uint32_t ctf_jump = 2;

/// Appends the classes of losses and clock jumps.
inline void append_tsdl_gaps(text_buffer& out) {
    for (const auto number : {ctf_lost, ctf_damaged}) {
        append(out, "event {\n    name = \"trace_ring:lost\";\n    id = ", number,
               ";\n    stream_id = 0;\n    fields := struct {\n        enum : u8 {");
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            out += i == 0 ? " " : ", ";
            append_tsdl_string(out, to_string(static_cast<loss_cause>(i)));
            append(out, " = ", i);
        }
        out += " } _cause;\n        u64 _count;\n        u64 _position;\n";
        if (number == ctf_damaged) out += "        u64 _offset;\n        string _fault;\n";
        out += "    };\n};\n";
    }
    append(out, "event {\n    name = \"trace_ring:clock_jump\";\n    id = ", ctf_jump,
           ";\n    stream_id = 0;\n    fields := struct {\n        i64 _from;\n        i64 _to;\n"
           "        u64 _position;\n        i64 _step;\n    };\n};\n");
}

/// Appends the part before the events. Times are ns after `offset_ns`, since 1970 if `absolute`.
inline void append_tsdl_head(text_buffer& out, std::uint64_t offset_ns, std::uint64_t precision_ns,
                             bool absolute, bool several) {
    out += "/* CTF 1.8 */\n";
    for (const unsigned bits : {8U, 16U, 32U, 64U}) {
        for (const char sign : {'u', 'i'}) {
            append(out, "typealias integer { size = ", bits, "; align = 8;",
                   sign == 'i' ? " signed = true;" : "", " } := ", sign, bits, ";\n");
        }
    }
    out +=
        "typealias integer { size = 8; align = 8; base = 16; } := byte;\n"
        "typealias integer { size = 64; align = 8; base = 16; } := address;\n"
        "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := f32;\n"
        "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;\n"
        "typealias enum : u8 { \"false\" = 0, \"true\" = 1 } := boolean;\n"
        "trace {\n    major = 1;\n    minor = 8;\n    byte_order = le;\n"
        "    packet.header := struct {\n        u32 magic;\n        u32 stream_id;\n"
        "        u64 stream_instance_id;\n    };\n};\n"
        "env {\n    tracer_name = \"trace_ring\";\n};\n"
        "clock {\n    name = trace;\n    description = ";
    out += absolute ? "\"nanoseconds since 1970, by the trace's clock readings\""
                    : "\"ticks: what they are worth is not known\"";
    constexpr std::uint64_t second = 1'000'000'000;
    append(out, ";\n    freq = 1000000000;\n    precision = ", precision_ns,
           ";\n    offset_s = ", offset_ns / second, ";\n    offset = ", offset_ns % second,
           ";\n    absolute = ", absolute ? "true" : "false", ";\n};\n");
    out +=
        "typealias integer { size = 64; align = 8; map = clock.trace.value; } := instant;\n"
        "stream {\n    id = 0;\n    packet.context := struct {\n"
        "        instant timestamp_begin;\n        instant timestamp_end;\n"
        "        u64 content_size;\n        u64 packet_size;\n        u64 packet_seq_num;\n"
        "        u64 events_discarded;\n        u32 _lane;\n        u32 _pid;\n"
        "        u32 _process;\n        u32 _tid;\n        u32 _depth;\n"
        "        string _thread;\n";
    if (several) out += "        string _file;\n";
    out +=
        "    };\n    event.header := struct {\n        u32 id;\n        instant timestamp;\n"
        "    };\n};\n";
}

}  // namespace impl

}  // namespace trace_ring::inline v1::exporter
