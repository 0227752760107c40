// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "shape.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/instrument/references.hpp>

namespace trace_reduce::sql {

namespace {

using trace_ring::event_kind;
using trace_ring::field_form;
using trace_ring::field_type;

constexpr std::array<std::string_view, 14> kind_names{
    "records",     "event",  "spans",  "counters", "flows",   "references", "branches",
    "allocations", "losses", "events", "fields",   "threads", "processes",  "clocks"};

/// A name from a file, as SQLite takes it: UTF-8 without zeros.
std::string printable(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        const std::size_t length = trace_ring::exporter::impl::utf8_length(name);
        if (length == 0 || name[0] == '\0') {
            out += "\xEF\xBF\xBD";
        } else {
            out += name.substr(0, length);
        }
        name.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

/// Names that differ, for SQLite, which does not distinguish the case of ASCII letters.
class distinct_names {
public:
    /// The first of these that is not taken, or else the last with a number.
    std::string take(std::initializer_list<std::string> choices) {
        for (const auto& each : choices) {
            if (taken_.insert(lower(each)).second) return each;
        }
        for (unsigned i = 2;; ++i) {
            std::string made = *(choices.end() - 1) + '#' + std::to_string(i);
            if (taken_.insert(lower(made)).second) return made;
        }
    }

private:
    [[nodiscard]] static std::string lower(std::string text) {
        for (char& c : text) {
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        }
        return text;
    }
    std::set<std::string> taken_;
};

template <class Visit>
void for_each_type(const trace_set& in, Visit&& visit) {
    for (const auto& file : in.files()) {
        for (const auto& type : file->trace().event_types()) visit(type);
    }
}
template <class Wanted>
bool any_type(const trace_set& in, Wanted&& wanted) {
    bool found = false;
    for_each_type(in, [&](const auto& type) { found = found || wanted(type); });
    return found;
}

/// The fields of an event, of all types that have its name, in the order in which they come.
std::vector<field_shape> fields_of(const trace_set& in, std::string_view event) {
    std::vector<field_shape> all;
    for_each_type(in, [&](const reduce::event_type& type) {
        if (type.name != event) return;
        std::map<std::string_view, unsigned> met;
        for (const auto& field : type.fields) {
            field_shape made{field.name, met[field.name]++, field.result};
            const bool known = std::any_of(all.begin(), all.end(), [&](const auto& each) {
                return each.name == made.name && each.which == made.which;
            });
            if (!known) all.push_back(std::move(made));
        }
    });
    return all;
}

/// The type that SQLite shows for a field; with another it would convert.
struct field_column {
    const char* type = "";
    bool has_names = false;
};
field_column column_of(const trace_set& in, std::string_view event, const field_shape& field) {
    field_column out;
    bool first = true;
    for_each_type(in, [&](const reduce::event_type& type) {
        if (!event.empty() && type.name != event) return;
        const std::size_t at = find_fields(type, {&field, 1})[0];
        if (at == reduce::event_type::npos) return;
        const auto& info = type.fields[at];
        const char* here = "";
        if (info.values != nullptr) {
            out.has_names = true;
        } else if (info.form != field_form::scalar || info.type == field_type::character) {
            here = "TEXT";
        } else if (info.type == field_type::f32 || info.type == field_type::f64) {
            here = "REAL";
        } else if (info.type != field_type::u64 && info.type != field_type::address) {
            // SQLite would make doubles of the texts of numbers from 2^63 on.
            here = "INTEGER";
        }
        if (!first && std::string_view(out.type) != here) here = "";
        out.type = here;
        first = false;
    });
    return out;
}

struct record_column {
    cell what;
    const char* name;
    const char* type;
    bool hidden;
};
constexpr record_column first_columns[] = {
    {cell::time, "time", "INTEGER", false},         {cell::time_text, "time_text", "TEXT", false},
    {cell::since, "since", "INTEGER", true},        {cell::ticks, "ticks", "INTEGER", false},
    {cell::latest, "latest", "INTEGER", true},      {cell::lane, "lane", "INTEGER", false},
    {cell::position, "position", "INTEGER", false}, {cell::thread, "thread", "TEXT", false},
    {cell::tid, "tid", "INTEGER", false},           {cell::pid, "pid", "INTEGER", false},
    {cell::process, "process", "INTEGER", false},   {cell::program, "program", "TEXT", true},
    {cell::depth, "depth", "INTEGER", true},        {cell::cpu, "cpu", "INTEGER", true},
};
constexpr record_column record_columns[] = {
    {cell::event, "event", "TEXT", true},
    {cell::id, "id", "INTEGER", true},
    {cell::span, "span", "TEXT", true},
    {cell::began_lane, "began_lane", "INTEGER", true},
    {cell::began_position, "began_position", "INTEGER", true},
    {cell::cut, "cut", "TEXT", true},
    {cell::fault, "fault", "TEXT", true},
    {cell::raw, "raw", "BLOB", true},
    {cell::fields, "fields", "TEXT", true},
    {cell::bytes, "bytes", "INTEGER", true},
    {cell::offset, "offset", "INTEGER", true},
    {cell::file, "file", "TEXT", true},
};
constexpr record_column span_columns[] = {
    {cell::event, "event", "TEXT", false},
    {cell::duration, "duration", "INTEGER", false},
    {cell::end, "end", "INTEGER", false},
    {cell::end_text, "end_text", "TEXT", true},
    {cell::end_ticks, "end_ticks", "INTEGER", true},
    {cell::duration_ticks, "duration_ticks", "INTEGER", true},
    {cell::inexact, "inexact", "INTEGER", true},
    {cell::state, "state", "TEXT", false},
    {cell::level, "level", "INTEGER", false},
    {cell::parent_lane, "parent_lane", "INTEGER", false},
    {cell::parent_position, "parent_position", "INTEGER", false},
    {cell::end_lane, "end_lane", "INTEGER", true},
    {cell::end_position, "end_position", "INTEGER", true},
    {cell::end_thread, "end_thread", "TEXT", true},
    {cell::end_tid, "end_tid", "INTEGER", true},
    {cell::fields, "fields", "TEXT", true},
    {cell::results, "results", "TEXT", true},
    {cell::file, "file", "TEXT", true},
};

/// Adds columns. `shown`: of those that are hidden in other tables.
class column_list {
public:
    explicit column_list(table_shape& into) : into_(into) {}

    /// The columns of this list that are shown. The others come with `add_hidden`: a field has the
    /// name that one of them would have.
    template <std::size_t N>
    void add(const record_column (&columns)[N], std::initializer_list<cell> shown = {}) {
        for (const auto& each : columns) {
            const bool hidden =
                each.hidden && std::find(shown.begin(), shown.end(), each.what) == shown.end();
            if (hidden) {
                hidden_.push_back(each);
            } else {
                add(each.what, each.name, each.type);
            }
        }
    }
    void add_hidden() {
        for (const auto& each : hidden_) {
            into_.columns.push_back({names_.take({each.name, std::string("record.") + each.name}),
                                     each.type, each.what, 0, true});
        }
    }
    void add(cell what, const char* name, const char* type, bool hidden = false) {
        into_.columns.push_back({names_.take({name}), type, what, 0, hidden});
    }
    void add_fields(const trace_set& in) {
        std::vector<std::pair<std::size_t, std::string>> numbers;
        for (std::size_t i = 0; i < into_.fields.size(); ++i) {
            const auto& field = into_.fields[i];
            const std::string name = printable(field.name);
            const auto column = column_of(in, into_.event, field);
            const std::string own = names_.take({name, printable(into_.event) + '.' + name});
            into_.columns.push_back({own, column.type, cell::field, i, false});
            if (column.has_names) numbers.emplace_back(i, own + ".number");
        }
        for (auto& [i, name] : numbers) {
            into_.columns.push_back({names_.take({name}), "INTEGER", cell::field_number, i, true});
        }
    }
    void add_listed(std::initializer_list<std::pair<const char*, const char*>> columns) {
        std::size_t index = 0;
        for (const auto& [name, type] : columns) {
            into_.columns.push_back({names_.take({name}), type, cell::listed, index++, false});
        }
    }

private:
    table_shape& into_;
    distinct_names names_;
    std::vector<record_column> hidden_;
};

bool is_heap_trace(const trace_set& in) {
    return any_type(in, [](const auto& type) { return type.name == "malloc"; }) &&
           any_type(in, [](const auto& type) { return type.name == "recording"; });
}
bool is_branch_trace(const trace_set& in) {
    return any_type(in, [](const auto& type) { return type.name == "branch.recording"; });
}
bool is_address_trace(const trace_set& in) {
    return any_type(in, [](const auto& type) { return type.packed != reduce::event_type::npos; });
}

}  // namespace

std::string quoted(std::string_view word) {
    std::string out = "\"";
    for (const char c : word) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

std::string_view name_of(table_kind kind) noexcept {
    return kind_names[static_cast<std::size_t>(kind)];
}

std::vector<std::size_t> find_fields(const reduce::event_type& type,
                                     std::span<const field_shape> fields) {
    std::vector<std::size_t> out;
    for (const auto& wanted : fields) {
        unsigned which = 0;
        std::size_t found = reduce::event_type::npos;
        for (std::size_t i = 0; i < type.fields.size(); ++i) {
            if (type.fields[i].name == wanted.name && which++ == wanted.which) found = i;
        }
        out.push_back(found);
    }
    return out;
}

std::string table_shape::declaration() const {
    std::string out = "CREATE TABLE t(";
    for (const auto& each : columns) {
        if (&each != columns.data()) out += ", ";
        out += quoted(each.name);
        if (each.type[0] != '\0') out += std::string(" ") + each.type;
        if (each.hidden) out += " HIDDEN";
    }
    return out + ')';
}

table_shape shape_of(const trace_set& in, table_kind kind, const std::string& event) {
    table_shape made;
    made.kind = kind;
    made.name = name_of(kind);
    column_list columns(made);
    const auto shown_file = in.files().size() > 1 ? cell::file : cell::time;
    const auto missing = [](const std::string& what) { return std::runtime_error(what); };
    if (!event.empty()) {
        if (kind != table_kind::event && kind != table_kind::spans) {
            throw missing("table=" + made.name + " has the records of all events: not with event=");
        }
        const bool spans = kind == table_kind::spans;
        if (!any_type(in, [&](const auto& type) {
                return type.name == event && (!spans || type.kind == event_kind::span);
            })) {
            throw missing("there is no " + std::string(spans ? "span" : "event") + " '" + event +
                          "'");
        }
        made.event = event;
        made.name = printable(event) + (spans ? ".spans" : "");
        made.fields = fields_of(in, event);
    }
    switch (kind) {
        case table_kind::records:
            columns.add(first_columns);
            columns.add(record_columns, {cell::event, cell::span, cell::fields, shown_file});
            break;
        case table_kind::event: {
            if (event.empty()) throw missing("table=event needs event=NAME");
            columns.add(first_columns);
            const bool is_span = any_type(in, [&](const auto& type) {
                return type.name == event && type.kind == event_kind::span;
            });
            columns.add(record_columns, {is_span ? cell::span : cell::time, shown_file});
            columns.add_fields(in);
            break;
        }
        case table_kind::spans:
            columns.add(first_columns);
            columns.add(span_columns, {event.empty() ? cell::fields : cell::time,
                                       event.empty() ? cell::results : cell::time, shown_file});
            if (!event.empty()) columns.add_fields(in);
            break;
        case table_kind::counters:
        case table_kind::flows:
            columns.add(first_columns);
            columns.add(cell::name, "name", "TEXT");
            columns.add(cell::value, kind == table_kind::flows ? "flow" : "value", "");
            columns.add(record_columns, {cell::event, cell::span, shown_file});
            break;
        case table_kind::references:
            if (!is_address_trace(in)) throw missing("this is no address trace");
            columns.add(cell::event, "kind", "TEXT");
            made.fields = {{"address", 0, false},
                           {"size", 0, false},
                           {"site", 0, false},
                           {"caller", 0, false}};
            columns.add_fields(in);
            if (names::can_name()) columns.add(cell::function, "function", "TEXT");
            columns.add(first_columns);
            columns.add(cell::offset, "offset", "INTEGER", true);
            columns.add(cell::file, "file", "TEXT", shown_file == cell::time);
            break;
        case table_kind::branches:
            if (!is_branch_trace(in)) throw missing("this is no branch trace");
            columns.add_listed({{"time", "INTEGER"},
                                {"kind", "TEXT"},
                                {"from", ""},
                                {"to", ""},
                                {"tid", "INTEGER"},
                                {"pid", "INTEGER"},
                                {"lane", "INTEGER"},
                                {"position", "INTEGER"},
                                {"from_name", "TEXT"},
                                {"to_name", "TEXT"},
                                {"file", "TEXT"}});
            break;
        case table_kind::allocations:
            if (!is_heap_trace(in)) throw missing("this is no heap trace");
            columns.add_listed({{"time", "INTEGER"},
                                {"end", "INTEGER"},
                                {"lifetime", "INTEGER"},
                                {"state", "TEXT"},
                                {"function", "TEXT"},
                                {"address", ""},
                                {"size", "INTEGER"},
                                {"tid", "INTEGER"},
                                {"pid", "INTEGER"},
                                {"freed_by", "TEXT"},
                                {"freed_tid", "INTEGER"},
                                {"stack", "TEXT"},
                                {"freed_stack", "TEXT"},
                                {"inherited", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::losses:
            columns.add_listed({{"kind", "TEXT"},
                                {"cause", "TEXT"},
                                {"count", "INTEGER"},
                                {"time", "INTEGER"},
                                {"ticks", "INTEGER"},
                                {"lane", "INTEGER"},
                                {"position", "INTEGER"},
                                {"thread", "TEXT"},
                                {"tid", "INTEGER"},
                                {"pid", "INTEGER"},
                                {"offset", "INTEGER"},
                                {"what", "TEXT"},
                                {"step", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::events:
            columns.add_listed({{"event", "TEXT"},
                                {"kind", "TEXT"},
                                {"table", "TEXT"},
                                {"records", "INTEGER"},
                                {"bytes", "INTEGER"},
                                {"total", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::fields:
            columns.add_listed({{"event", "TEXT"},
                                {"field", "TEXT"},
                                {"column", "TEXT"},
                                {"type", "TEXT"},
                                {"form", "TEXT"},
                                {"elements", "INTEGER"},
                                {"unit", "TEXT"},
                                {"is_flow", "INTEGER"},
                                {"is_result", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::threads:
            columns.add_listed({{"lane", "INTEGER"},
                                {"thread", "TEXT"},
                                {"tid", "INTEGER"},
                                {"pid", "INTEGER"},
                                {"process", "INTEGER"},
                                {"program", "TEXT"},
                                {"depth", "INTEGER"},
                                {"cpu", "INTEGER"},
                                {"began", "INTEGER"},
                                {"ended", "INTEGER"},
                                {"refused", "INTEGER"},
                                {"too_long", "INTEGER"},
                                {"nested", "INTEGER"},
                                {"abandoned", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::processes:
            columns.add_listed({{"process", "INTEGER"},
                                {"pid", "INTEGER"},
                                {"program", "TEXT"},
                                {"parent", "INTEGER"},
                                {"bits", "INTEGER"},
                                {"state", "TEXT"},
                                {"attached", "INTEGER"},
                                {"departed", "INTEGER"},
                                {"file", "TEXT"}});
            break;
        case table_kind::clocks:
            columns.add_listed({{"ticks", "INTEGER"},
                                {"time", "INTEGER"},
                                {"monotonic", "INTEGER"},
                                {"since", "INTEGER"},
                                {"uncertainty", "REAL"},
                                {"file", "TEXT"}});
            break;
    }
    columns.add_hidden();
    return made;
}

std::vector<table_shape> all_shapes(const trace_set& in) {
    std::vector<table_shape> all;
    distinct_names names;
    const auto add = [&](table_shape made) {
        made.name = names.take({made.name, "event." + made.name});
        all.push_back(std::move(made));
    };
    for (std::size_t i = 0; i < kind_names.size(); ++i) {
        const auto kind = static_cast<table_kind>(i);
        if (kind == table_kind::event) continue;
        if (kind == table_kind::references && !is_address_trace(in)) continue;
        if (kind == table_kind::branches && !is_branch_trace(in)) continue;
        if (kind == table_kind::allocations && !is_heap_trace(in)) continue;
        add(shape_of(in, kind, {}));
    }
    std::set<std::string> met;
    std::vector<std::string> spans;
    for_each_type(in, [&](const reduce::event_type& type) {
        // Damage may have changed a name so that an argument cannot hold it.
        if (type.name.empty() || type.name.find('\0') != type.name.npos) return;
        if (!met.insert(type.name).second) return;
        add(shape_of(in, table_kind::event, type.name));
        if (type.kind == event_kind::span) spans.push_back(type.name);
    });
    for (const auto& each : spans) add(shape_of(in, table_kind::spans, each));
    return all;
}

}  // namespace trace_reduce::sql
