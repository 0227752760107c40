// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "record_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <records/fingerprint.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/loss.hpp>

namespace clickhouse {

namespace {

using form = column_type::form;
using trace_ring::field_form;
using trace_ring::field_type;

constexpr std::int64_t ns_per_day = 86'400'000'000'000;

// A function, and not lists in braces at each place: g++ 12 warns at -O3 that their texts are not
// set.
record_table::shape shaped(const char* name, const char* type, std::size_t width, form is,
                           const char* current, const char* comment) {
    return {name, {type, width, is}, current, comment};
}

std::vector<record_table::shape> common_shapes() {
    constexpr const char* few = "LowCardinality(String)";
    constexpr const char* stamps = "CODEC(Delta(8), ZSTD(1))";
    constexpr const char* numbers = "CODEC(T64, ZSTD(1))";
    std::vector<record_table::shape> all;
    const auto text = [&](const char* name, const char* comment) {
        all.push_back(shaped(name, "String", 0, form::plain, few, comment));
    };
    const auto number = [&](const char* name, const char* type, std::size_t width,
                            const char* codec, const char* comment) {
        all.push_back(shaped(name, type, width, form::plain, codec, comment));
    };
    const auto other = [&](const char* name, const char* type, std::size_t width, form is,
                           const char* comment) {
        all.push_back(shaped(name, type, width, is, nullptr, comment));
    };
    text("host", "the machine's name");
    number("trace", "UUID", 16, nullptr, "the trace file's id");
    text("program", "of the process");
    number("pid", "UInt32", 4, nullptr, "0: not known, as are tid, thread and program");
    number("process", "UInt32", 4, nullptr, "its number in the trace, as pids may be used again");
    number("tid", "UInt32", 4, nullptr, "the kernel's thread id");
    text("thread", "the thread's name");
    number("depth", "UInt8", 1, nullptr, "0: the thread itself; 1 to 3: what interrupted it");
    number("lane", "UInt32", 4, nullptr, "the writer's number in the trace; 0: of no lane");
    number("position", "UInt64", 8, stamps, "in the lane; of a loss: of the first lost record");
    text("kind", "record, loss or clock_jump");
    text("event", "the event's name");
    number("time_ns", "Int64", 8, stamps, "nanoseconds since 1970");
    number("ticks", "UInt64", 8, stamps, "the same on the trace's clock");
    text("time_is", "empty: exact; at least: a lower bound; unknown: the trace's creation");
    other("latest_ns", "Int64", 8, form::nullable, "the upper bound, if the clock is sampled");
    text("span", "begin or end");
    number("began_lane", "UInt32", 4, nullptr, "of an end: where the span began; 0: not known");
    number("began_position", "UInt64", 8, stamps, "of an end: the position where it began");
    other("duration_ns", "UInt64", 8, form::nullable, "of an end whose begin was read");
    text("duration_is", "inexact: of times that are lower bounds");
    other("flows", "UInt64", 8, form::array, "numbers of flows in its fields");
    text("cause", "of a loss");
    number("count", "UInt64", 8, numbers, "of a loss: how many records; 0: not known");
    number("offset", "UInt64", 8, numbers, "of damage: in the file");
    number("from_ticks", "UInt64", 8, numbers, "of a clock jump");
    number("step_ns", "Int64", 8, numbers, "of a clock jump: by how much dates jump");
    number("id", "UInt16", 2, nullptr, "of an event that the trace does not describe");
    text("fault", "why the fields cannot be read");
    number("raw", "String", 0, nullptr, "the bytes of a record whose fields cannot be read");
    other("cut", "String", 0, form::array, "the fields that were cut");
    number("stack_text", "String", 0, "CODEC(ZSTD(1))",
           "the field stack with names, inner < outer, if they were looked up");
    number("batch", "UInt64", 8, nullptr, "the insert that it came with");
    return all;
}

/// The type of a field's column, for values as `set_field` writes them.
column_type type_of(const reduce::field_info& field) {
    const bool scalar = field.form == field_form::scalar;
    const auto number = [&](const char* name, std::size_t width) {
        return column_type{name, width, scalar ? form::nullable : form::array};
    };
    if (field.type == field_type::character) return {"String", 0, form::nullable};
    if (field.values != nullptr) return {"String", 0, scalar ? form::nullable : form::array};
    switch (field.type) {
        case field_type::u8:
        case field_type::boolean:
            return number("UInt8", 1);
        case field_type::u16:
            return number("UInt16", 2);
        case field_type::u32:
            return number("UInt32", 4);
        case field_type::i8:
            return number("Int8", 1);
        case field_type::i16:
            return number("Int16", 2);
        case field_type::i32:
            return number("Int32", 4);
        case field_type::i64:
            return number("Int64", 8);
        case field_type::f32:
            return number("Float32", 4);
        case field_type::f64:
            return number("Float64", 8);
        default:
            return number("UInt64", 8);
    }
}

/// An identifier that needs no quotes.
std::string identifier(std::string_view name) {
    std::string made;
    for (const char c : name) {
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        made += plain ? c : '_';
    }
    if (made.empty() || (made[0] >= '0' && made[0] <= '9')) made.insert(0, 1, '_');
    // A column is a file, whose name has 255 characters at most: a hash (FNV-1a) in place of the
    // end.
    constexpr std::size_t longest = 180;
    if (made.size() > longest) {
        made.resize(longest);
        made += '_' + std::to_string(records::fingerprint(name));
    }
    return made;
}

/// Without what the server adds for storage: LowCardinality(Nullable(String)) is Nullable(String).
std::string as_sent(std::string_view type) {
    constexpr std::string_view prefix = "LowCardinality(";
    if (type.starts_with(prefix)) {
        type.remove_prefix(prefix.size());
        type.remove_suffix(1);
    }
    return std::string(type);
}

std::string declaration(const record_table::shape& of, server_version server) {
    std::string type = of.type.text();
    std::string codec;
    if (server.is_current()) {
        const std::string_view current = of.current == nullptr ? "" : of.current;
        if (current.starts_with("CODEC")) {
            codec = ' ' + std::string(current);
        } else if (!current.empty()) {
            type = current;
        } else if (of.type.width == 0 && of.type.is == form::nullable) {
            type = "LowCardinality(Nullable(String))";
        }
    }
    std::string made = quoted_name(of.name) + ' ' + type;
    if (!of.comment.empty()) made += " COMMENT " + quoted_text(of.comment);
    return made + codec;
}

std::string_view digits_of(const reduce::field_value& value, char (&room)[24]) {
    const bool is_signed = value.type() >= field_type::i8 && value.type() <= field_type::i64;
    const auto end = is_signed ? std::to_chars(room, room + sizeof room, value.i64()).ptr
                               : std::to_chars(room, room + sizeof room, value.u64()).ptr;
    return {room, static_cast<std::size_t>(end - room)};
}

}  // namespace

std::optional<server_version> server_version::parse(std::string_view text) {
    server_version made;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, made.major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
    if (std::from_chars(first.ptr + 1, end, made.minor).ec != std::errc()) return std::nullopt;
    return made;
}

trace_identity identity_of(const reduce::tables& in, std::string host) {
    trace_identity made{std::move(host), records::id_of(in), 0};
    constexpr std::uint64_t at = offsetof(trace_ring::layout::file_header, created);
    if (in.bytes().read(at, &made.created_ns, sizeof made.created_ns) != sizeof made.created_ns) {
        throw trace_ring::format_error(in.name(), at, "the file ends in its header");
    }
    return made;
}

std::string quoted_name(std::string_view name) {
    std::string made = "`";
    for (const char c : name) {
        if (c == '`' || c == '\\') made += '\\';
        made += c;
    }
    return made + '`';
}

std::string quoted_table(std::string_view name) {
    const std::size_t dot = name.find('.');
    if (dot == name.npos) return quoted_name(name);
    return quoted_name(name.substr(0, dot)) + '.' + quoted_name(name.substr(dot + 1));
}

std::string quoted_text(std::string_view text) {
    std::string made = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') made += '\\';
        if (c == '\0') {
            made += "\\0";
        } else {
            made += c;
        }
    }
    return made + '\'';
}

std::span<const record_table::shape> record_table::common_columns() {
    static const std::vector<shape> all = common_shapes();
    return all;
}

record_table::record_table() {
    for (const shape& each : common_columns()) {
        by_name_.emplace(each.name, shapes_.size());
        shapes_.push_back(each);
        columns_.emplace_back(each.name, each.type);
    }
    by_name_.emplace("time", npos);  // the alias in the table
}

std::string record_table::other_name(const std::string& name, const column_type& type) {
    const std::string suffix = '_' + identifier(type.text());
    return name.ends_with(suffix) ? name + '_' : name + suffix;
}

std::size_t record_table::column_for(std::string name, const column_type& type,
                                     std::string comment) {
    for (;;) {
        const auto [at, is_new] = by_name_.emplace(name, shapes_.size());
        if (is_new) {
            shapes_.push_back({std::move(name), type, nullptr, std::move(comment)});
            columns_.emplace_back(shapes_.back().name, type);
            return at->second;
        }
        if (at->second < common_count || at->second == npos) {
            name += '_';
        } else if (shapes_[at->second].type == type) {
            return at->second;
        } else {
            name = other_name(name, type);
        }
    }
}

std::vector<record_table::field_column> record_table::fields_of(const reduce::event_type& type) {
    std::vector<field_column> made;
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
        const auto& field = type.fields[i];
        const std::string name = identifier(type.name + '_' + field.name);
        std::string comment = type.name + '.' + field.shown_name();
        if (field.type == field_type::address) comment += " (address)";
        // A row has one value in a column: fields of one event do not share it.
        std::size_t column = column_for(name, type_of(field), comment);
        for (unsigned which = 2; std::any_of(
                 made.begin(), made.end(), [&](const auto& each) { return each.column == column; });
             ++which) {
            column = column_for(name + '_' + std::to_string(which), type_of(field), comment);
        }
        made.push_back({column, i, field.flow});
    }
    return made;
}

const record_table::event_columns& record_table::columns_of(source& its,
                                                            const reduce::event_type& type) {
    event_columns& found = its.types[&type];
    if (!found.known) {
        found.known = true;
        found.fields = fields_of(type);
    }
    return found;
}

std::string record_table::create_statement(const std::string& table, server_version server) const {
    std::string made = "CREATE TABLE IF NOT EXISTS " + table + "\n(\n";
    for (const shape& each : shapes_) made += "    " + declaration(each, server) + ",\n";
    if (server.is_current()) {
        made +=
            "    `time` DateTime64(9, 'UTC') ALIAS fromUnixTimestamp64Nano(time_ns),\n"
            "    INDEX flows_index flows TYPE bloom_filter GRANULARITY 4\n";
    } else {
        made += "    `time` DateTime ALIAS toDateTime(intDiv(time_ns, 1000000000))\n";
    }
    made += ")\nENGINE = MergeTree\nPARTITION BY intDiv(time_ns, " + std::to_string(ns_per_day) +
            ")\nORDER BY (host, trace, lane, position)\n";
    return made;
}

std::vector<std::string> record_table::missing(const std::map<std::string, std::string>& there,
                                               const std::string& table, server_version server) {
    std::vector<std::string> made;
    for (std::size_t i = declared_; i < shapes_.size(); ++i) {
        shape& mine = shapes_[i];
        auto theirs = there.find(mine.name);
        while (theirs != there.end() && as_sent(theirs->second) != mine.type.text()) {
            if (i < common_count) {
                throw std::runtime_error(table + ": the column " + mine.name + " is " +
                                         theirs->second + ", and has to be " + mine.type.text());
            }
            // Its old name stays taken: fields that would share it have the type, too.
            do {
                mine.name = other_name(mine.name, mine.type);
            } while (!by_name_.emplace(mine.name, i).second);
            columns_[i].rename(mine.name);
            theirs = there.find(mine.name);
        }
        if (theirs == there.end()) {
            made.push_back("ALTER TABLE " + table + " ADD COLUMN " + declaration(mine, server));
        }
    }
    return made;
}

std::size_t record_table::add_trace(const reduce::tables& in, trace_identity whose) {
    auto its = std::make_unique<source>();
    its->in = &in;
    its->last_ns = whose.created_ns;
    its->whose = std::move(whose);
    const auto free = std::find(traces_.begin(), traces_.end(), nullptr);
    if (free != traces_.end()) {
        *free = std::move(its);
        return static_cast<std::size_t>(free - traces_.begin());
    }
    traces_.push_back(std::move(its));
    return traces_.size() - 1;
}

std::size_t record_table::bytes() const noexcept {
    std::size_t sum = 0;
    for (const column& each : columns_) sum += each.bytes();
    return sum;
}

row_place place_of(const reduce::item& what) noexcept {
    const auto in = [](const reduce::lane_info* lane, trace_ring::position at) {
        return lane == nullptr ? row_place{} : row_place{lane->number, at};
    };
    if (const auto* record = std::get_if<reduce::record_view>(&what)) {
        return in(&record->lane(), record->position());
    }
    if (const auto* loss = std::get_if<reduce::loss_item>(&what)) return in(loss->lane, loss->at);
    const auto& jump = reduce::jump_in(what);
    return in(jump.lane, jump.at);
}

std::int64_t record_table::time_of(const source& its, const reduce::item& what,
                                   std::string_view& is) {
    const auto& clock = its.in->time();
    if (!clock.known()) {
        is = "unknown";
        return its.whose.created_ns;
    }
    if (const auto* record = std::get_if<reduce::record_view>(&what)) {
        is = record->interval() ? "at least" : "";
        return clock.realtime_ns(record->time());
    }
    const auto* loss = std::get_if<reduce::loss_item>(&what);
    is = loss != nullptr ? "at least" : "";
    const std::uint64_t time = reduce::time_of(what);
    return time == 0 ? its.last_ns : clock.realtime_ns(time);
}

std::int64_t record_table::day_of(std::size_t from, const reduce::item& what) const {
    std::string_view is;
    return time_of(*traces_[from], what, is) / ns_per_day;
}

void record_table::add(std::size_t from, const row_item& one, std::uint64_t batch_number) {
    source& its = *traces_[from];
    if (!its.whose.host.empty()) put(host, its.whose.host);
    // In the Native format a UUID is its halves, each of 64 bits.
    put(trace, its.whose.id);
    std::string_view is;
    const std::int64_t time = time_of(its, *one.what, is);
    its.last_ns = time;
    put(time_ns, time);
    if (!is.empty()) put(time_is, is);
    if (batch_number != 0) put(batch, batch_number);
    if (const auto* record = std::get_if<reduce::record_view>(one.what)) {
        set(its, *record, one);
    } else if (const auto* loss = std::get_if<reduce::loss_item>(one.what)) {
        set(its, *loss);
    } else {
        set(its, reduce::jump_in(*one.what));
    }
    ++rows_;
}

void record_table::set_lane(const source& its, const reduce::lane_info& of) {
    put(lane, of.number);
    // Of a lane that has left the table, an owner record may say which thread wrote.
    if (!of.listed && of.thread == 0) return;
    put(pid, of.pid);
    if (of.process) {
        put(process, *of.process);
        const auto& processes = its.in->processes();
        if (*of.process < processes.size() && processes[*of.process].pid == of.pid) {
            put(program, std::string_view(processes[*of.process].name));
        }
    }
    put(tid, of.thread);
    put(thread, std::string_view(of.name));
    if (of.depth != 0) put(depth, static_cast<std::uint8_t>(of.depth));
}

void record_table::set(source& its, const reduce::record_view& record, const row_item& one) {
    put(kind, std::string_view("record"));
    put(ticks, record.time());
    set_lane(its, record.lane());
    put(position, record.position());
    const auto& clock = its.in->time();
    if (record.interval() && clock.known()) {
        if (const auto until = record.latest()) put(latest_ns, clock.realtime_ns(*until));
    }
    if (record.known()) put(event, record.name());
    if (record.begins() || record.ends()) {
        put(span, std::string_view(record.begins() ? "begin" : "end"));
    }
    auto place = one.began;
    if (!place) place = record.began();
    if (place) {
        put(began_lane, place->lane);
        put(began_position, place->at);
    }
    if (one.took != nullptr && clock.known()) {
        put(duration_ns, one.took->ns(clock));
        if (one.took->interval) put(duration_is, std::string_view("inexact"));
    }
    if (!one.stack_text.empty()) put(stack_text, one.stack_text);
    if (!record.fault().empty()) {
        put(id, record.id());
        put(fault, record.fault());
        const auto bytes = record.payload();
        put(raw, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        return;
    }
    if (!record.has_fields()) return;
    const event_columns& fields = columns_of(its, record.type());
    bool any_flow = false;
    for (const field_column& each : fields.fields) {
        const reduce::field_value value = record.field(each.field);
        if (!value) continue;
        set_field(columns_[each.column], value);
        any_flow = any_flow || each.flow;
    }
    if (any_flow) {
        columns_[flows].start_array(rows_);
        for (const field_column& each : fields.fields) {
            if (!each.flow) continue;
            const reduce::field_value value = record.field(each.field);
            columns_[flows].add_elements(value.bytes().data(), value.size());
        }
    }
    if (!record.cut()) return;
    columns_[cut].start_array(rows_);
    for (const field_column& each : fields.fields) {
        if (record.field(each.field).cut()) {
            columns_[cut].add_element(std::string_view(record.type().fields[each.field].name));
        }
    }
}

void record_table::set_field(column& into, const reduce::field_value& value) {
    char room[24];
    if (value.is_text()) return into.set(rows_, value.text());
    const bool scalar = value.form() == field_form::scalar;
    if (value.type() == field_type::character) {
        const char c = static_cast<char>(value.u64());
        return into.set(rows_, std::string_view(&c, 1));
    }
    if (value.may_have_name()) {
        const auto text = [&](const reduce::field_value& one) {
            const std::string_view name = one.name();
            return name.empty() ? digits_of(one, room) : name;
        };
        if (scalar) return into.set(rows_, text(value));
        into.start_array(rows_);
        for (std::size_t i = 0; i < value.size(); ++i) into.add_element(text(value.at(i)));
        return;
    }
    if (!scalar) {
        into.start_array(rows_);
        into.add_elements(value.bytes().data(), value.size());
        return;
    }
    switch (trace_ring::size_of(value.type())) {
        case 1:
            return into.set(rows_, value.type() == field_type::boolean
                                       ? static_cast<std::uint8_t>(value.boolean())
                                       : static_cast<std::uint8_t>(value.bytes()[0]));
        case 2:
            return into.set_bytes<2>(rows_, value.bytes().data());
        case 4:
            return into.set_bytes<4>(rows_, value.bytes().data());
        default:
            return into.set_bytes<8>(rows_, value.bytes().data());
    }
}

void record_table::set(const source& its, const reduce::loss_item& loss) {
    put(kind, std::string_view("loss"));
    if (loss.lane != nullptr) {
        set_lane(its, *loss.lane);
        put(position, loss.at);
        put(ticks, loss.time);
    }
    put(cause, to_string(loss.cause));
    put(count, loss.count);
    if (loss.cause == trace_ring::loss_cause::damaged) {
        put(offset, loss.offset);
        put(fault, loss.what);
    }
}

void record_table::set(const source& its, const reduce::clock_jump& jump) {
    put(kind, std::string_view("clock_jump"));
    put(ticks, jump.time);
    put(from_ticks, jump.from);
    if (jump.lane != nullptr) {
        set_lane(its, *jump.lane);
        put(position, jump.at);
    } else {
        put(step_ns, jump.step);
    }
}

void record_table::write_block(text_buffer& out, bool all) {
    std::size_t written = 0;
    for (const column& each : columns_) {
        if (all || !each.is_default()) ++written;
    }
    protobuf::encoding::varint(out, written);
    protobuf::encoding::varint(out, rows_);
    for (column& each : columns_) {
        if (all || !each.is_default()) each.write(out, rows_);
        each.clear();
    }
    rows_ = 0;
}

}  // namespace clickhouse
