// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The parts of a CTF 1.8 trace. The metadata, in TSDL, is a fixed head, and a declaration for each
/// class of events, made from the dictionary. A stream has the packet that is being filled, and the
/// counts for the next one.
///
/// Field names. Readers of CTF 1.8 take one leading underscore off a field's name, so every name is
/// written with one, and none is a keyword: `int` is `_int`. Beyond that,
/// - a byte that no identifier may have is `_xNN_`, with two lower-case hexadecimal digits; so is
///   an underscore that is followed by x and two such digits. An empty name is `_x_`, and the name
///   `_x_` is `_x5f_x_`. So no two names become the same identifier.
/// - A duration's name has its unit behind it: `_latency_ms`.
/// - A name that the event already has gets `_x_2`, `_x_3` and so on behind it.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

#include "../names.hpp"

namespace trace_reduce::exporting {

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
/// a name become escapes like xNN, and reach no terminal.
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
    std::set<std::string> used_{};
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
    const std::string name =
        field.unit == nullptr ? field.name : field.name + '_' + field.unit->suffix;
    out += "        ";
    if (text && !bytes) return append(out, "string ", members.next(name), ";\n");
    text_buffer own;
    if (field.values != nullptr) append_tsdl_enumeration(own, field.type, *field.values);
    const std::string_view type = text ? "byte" : own.empty() ? tsdl_type(field.type) : own.view();
    if (field.form == field_form::scalar) {
        return append(out, type, ' ', members.next(name), ";\n");
    }
    if (field.form == field_form::array && !text) {
        return append(out, type, ' ', members.next(name), '[', field.count, "];\n");
    }
    const std::string length = members.next('_' + name + "_length");
    append(out, "u16 ", length, "; ", type, ' ', members.next(name), '[', length, "];\n");
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
    } else {
        ctf_members members;
        if (told) {
            append(out, "        u32 ", members.next("began_lane"), ";\n        u64 ",
                   members.next("began_position"), ";\n");
        }
        const bool has_fields = type != nullptr && (flavour & f::bare) == 0;
        for (std::size_t i = 0; has_fields && i < type->fields.size(); ++i) {
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
inline void append_tsdl_head(text_buffer& out, std::int64_t offset_ns, std::uint64_t precision_ns,
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
    constexpr std::int64_t second = 1'000'000'000;
    // Seconds are rounded down, so that the rest is not negative.
    const std::int64_t seconds = offset_ns / second - (offset_ns % second < 0 ? 1 : 0);
    const std::int64_t rest = offset_ns % second + (offset_ns % second < 0 ? second : 0);
    append(out, ";\n    freq = 1000000000;\n    precision = ", precision_ns,
           ";\n    offset_s = ", seconds, ";\n    offset = ", rest,
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

static_assert(std::endian::native == std::endian::little, "as the trace files themselves");

/// Appends the bytes of numbers.
template <class... Numbers>
inline void append_bytes(text_buffer& out, Numbers... values) {
    static_assert((std::is_arithmetic_v<Numbers> && ...));
    const auto one = [&out](auto value) {
        std::memcpy(out.room(sizeof value), &value, sizeof value);
        out.add(sizeof value);
    };
    (one(values), ...);
}
/// Appends a printable string with a zero behind it. An empty one becomes `-`: babeltrace2 2.0
/// shows another string in its place.
inline void append_ctf_string(text_buffer& out, std::string_view text) {
    append_escaped(out, text.empty() ? "-" : text, 0);
    out += '\0';
}

/// A packet has about 64 KiB: it is full with the record that reaches them.
class ctf_stream {
public:
    ctf_stream(std::string name, std::uint64_t instance, std::string_view file)
        : name_(std::move(name)), file_(file), instance_(instance) {}
    ctf_stream(ctf_stream&&) = default;
    ctf_stream& operator=(ctf_stream&&) = default;
    ctf_stream(const ctf_stream&) = delete;
    ctf_stream& operator=(const ctf_stream&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
    [[nodiscard]] bool full() const noexcept { return events_.size() >= 64 * 1024; }
    /// The number of bytes of the packet's events so far.
    [[nodiscard]] std::size_t size() const noexcept { return events_.size(); }
    /// Whether the packet belongs to another thread than the one that records into the lane now.
    [[nodiscard]] bool other_owner(const reduce::lane_info* lane) const noexcept {
        return lane != owner_;
    }
    /// Sets the thread of the next packet. The packet must be closed before.
    void set_owner(const reduce::lane_info* lane) {
        owner_ = lane;
        about_.clear();
        static const reduce::lane_info none;
        const reduce::lane_info& of = lane == nullptr ? none : *lane;
        append_bytes(about_, of.number, of.pid, of.process.value_or(~std::uint32_t{0}), of.thread,
                     of.depth);
        append_ctf_string(about_, of.name);
        if (!file_.empty()) append_ctf_string(about_, file_);
    }
    /// From here on `events` more are missing. The packet must be closed before.
    void lose(std::uint64_t events) noexcept {
        discarded_ = events > ~discarded_ ? ~std::uint64_t{0} : discarded_ + events;
    }

    /// Begins an event, whose bytes go into the result. `time` is not before `last`.
    [[nodiscard]] text_buffer& event(std::uint32_t id, std::uint64_t time) {
        if (events_.empty()) first_ = time;
        last_ = time;
        append_bytes(events_, id);
        append_bytes(events_, time);
        return events_;
    }

    /// Ends the packet, if it has events: `to(name, bytes)` gets its bytes.
    template <class To>
    void close(const To& to) {
        if (events_.empty()) return;
        // Readers count from a stream's first packet, and miss what was lost before it.
        if (packets_ == 0 && discarded_ != 0) {
            const std::uint64_t lost = discarded_;
            discarded_ = 0;
            put(to, {}, first_);
            discarded_ = lost;
        }
        put(to, events_.view(), last_);
        events_.clear();
    }

private:
    template <class To>
    void put(const To& to, std::string_view events, std::uint64_t end) {
        constexpr std::size_t header_bytes = 16 + 6 * 8;
        const std::uint64_t bits =
            std::uint64_t{8} * (header_bytes + about_.size() + events.size());
        packet_.clear();
        append_bytes(packet_, std::uint32_t{0xC1FC1FC1}, std::uint32_t{0}, instance_, first_, end,
                     bits, bits, packets_++, discarded_);
        packet_ += about_.view();
        packet_ += events;
        to(std::string_view(name_), packet_.view());
    }

    std::string name_;
    std::string_view file_;
    std::uint64_t instance_;
    const reduce::lane_info* owner_ = nullptr;
    text_buffer about_{};  // the packet's context: its thread
    text_buffer events_{};
    text_buffer packet_{};
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t packets_ = 0;
    std::uint64_t discarded_ = 0;
};

}  // namespace impl

}  // namespace trace_reduce::exporting
