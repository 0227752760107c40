// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Items as one HTML page that shows them on a timeline: a row for each lane, with its spans
/// nested (those that do not nest below), its instants, and what was lost in its place; a row for
/// each process with its counters; and arrows between the records of a flow. The page holds
/// everything it needs, works from disk, and may load nothing. It is written as the items come, in
/// memory that does not grow with them; a browser takes some 40 bytes for each record, so a page is
/// for some millions of them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/item.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/tables.hpp>

#include "../exporting/viewer/roles.hpp"
#include "columns.hpp"
#include "page_draw.hpp"
#include "page_frame.hpp"
#include "page_head.hpp"
#include "page_input.hpp"
#include "page_model.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;
using exporter::text_buffer;

/// Appends a page. Items come in the order of their times.
class html_writer {
public:
    using source = std::size_t;

    explicit html_writer(exporting::field_roles roles = {}) : roles_(std::move(roles)) {}

    /// Another trace whose items come; all of them before the first item. `in` must outlive this.
    source add(const reduce::tables& in, std::string_view name) {
        auto& made = sources_.emplace_back();
        made.in = &in;
        made.name = name;
        return sources_.size() - 1;
    }
    void begin(text_buffer& out) {
        for (const auto& each : sources_) known_ = known_ || each.in->time().known();
        out += impl::html_head;
        classes_ +=
            R"([{"name":"lost","how":0,"kind":0,"type":0,"colour":0,"fields":[["cause",1,0,1,0],)"
            R"(["count",4,0,1,0],["position",4,0,1,0],["offset",4,0,1,0],["fault",12,2,1,0]]},)"
            R"({"name":"clock goes back","how":0,"kind":0,"type":1,"colour":0,"fields":[)"
            R"(["by",4,0,1,0],["position",4,0,1,0]]},)"
            R"({"name":"date jumps","how":0,"kind":0,"type":2,"colour":0,"fields":[)"
            R"(["step_ns",8,0,1,0]]})";
    }

    void append(text_buffer& out, source from, const reduce::item& what) {
        auto& in = sources_.at(from);
        if (const auto* record = std::get_if<reduce::record_view>(&what)) {
            append_record(in, from, *record);
        } else if (const auto* loss = std::get_if<reduce::loss_item>(&what)) {
            auto& values = columns_.values();
            impl::append_varint(values, static_cast<std::uint64_t>(loss->cause));
            for (const auto value : {loss->count, loss->at, loss->offset}) {
                impl::append_varint(values, value);
            }
            impl::append_varint(values, loss->what.size() * 2);
            values += loss->what;
            const std::uint64_t at = loss->lane == nullptr ? last_ : time_of(in, loss->time);
            if (was_written(loss->cause)) leave_open(in, loss->lane);
            add_item(at, owner_of(from, loss->lane), lost);
        } else {
            const auto& jump = std::get<reduce::clock_jump>(what);
            const std::uint64_t at = time_of(in, jump.time);
            if (jump.lane == nullptr) {
                if (jump.step < 0) in.spans = {};  // what began before cannot end in it
                impl::append_varint(columns_.values(), impl::zigzag(jump.step));
                add_item(at, owner_of(from, nullptr), date_jump);
            } else {
                impl::append_varint(columns_.values(), time_of(in, jump.from) - at);
                impl::append_varint(columns_.values(), jump.at);
                leave_open(in, jump.lane);
                add_item(at, owner_of(from, jump.lane), clock_jump);
            }
        }
        if (columns_.full()) append_block(out);
    }

    void end(text_buffer& out) {
        if (!columns_.empty()) append_block(out);
        text_buffer meta;
        meta += known_ ? R"({"known":true,"base":")" : R"({"known":false,"base":")";
        exporter::impl::append_number(meta, static_cast<std::int64_t>(base_));
        meta += R"(","files":[)";
        for (const auto& each : sources_) {
            if (&each != &sources_.front()) meta += ',';
            append_text(meta, each.name);
        }
        meta += R"(],"owners":[)";
        meta += owners_.view();
        meta += R"(],"classes":)";
        meta += classes_.view();
        meta += "]}";
        out += R"(<script type="application/octet-stream" id="meta">)";
        impl::base64_text text(out);
        text.append(meta.view());
        text.end();
        out += "</script>\n<script>";
        for (const auto part :
             {impl::html_model, impl::html_draw, impl::html_frame, impl::html_input}) {
            out += part;
        }
        out += "</script>\n</body>\n</html>\n";
    }

private:
    // As the page's script has them.
    static constexpr std::uint32_t lost = 0;
    static constexpr std::uint32_t clock_jump = 1;
    static constexpr std::uint32_t date_jump = 2;
    static constexpr unsigned begins = 1;
    static constexpr unsigned ends = 2;
    static constexpr unsigned bare = 4;
    static constexpr unsigned faulty = 8;
    static constexpr unsigned interval = 16;
    static constexpr unsigned is_flow = 1;
    static constexpr unsigned is_counter = 2;

    struct origin {
        const reduce::tables* in = nullptr;
        std::string name;
        reduce::span_pairs<std::uint64_t> spans;  // with the numbers of the items that began them
        std::vector<std::array<std::uint32_t, 32>> classes;  // by the type's number; 0: none yet
        std::map<std::uint32_t, std::array<std::uint32_t, 32>> unknown;  // by id
    };

    static void append_text(text_buffer& out, std::string_view text) {
        text_buffer printable;
        exporter::impl::append_escaped(printable, text, 0);
        exporter::impl::append_json_string(out, printable.view());
    }
    static void append_member(text_buffer& out, std::string_view name, std::uint64_t value) {
        out += name;
        exporter::impl::append_number(out, value);
    }

    /// Nanoseconds since 1970, or ticks; modulo 2^64.
    [[nodiscard]] static std::uint64_t time_of(const origin& in, std::uint64_t ticks) noexcept {
        const auto& time = in.in->time();
        return time.known() ? static_cast<std::uint64_t>(time.realtime_ns(ticks)) : ticks;
    }
    void add_item(std::uint64_t time, std::uint32_t who, std::uint32_t what) {
        if (!begun_ && time != 0) {
            begun_ = true;
            base_ = time;
            last_ = time;
        }
        columns_.add(static_cast<std::int64_t>(time - last_), who, what);
        last_ = time;
        ++items_;
    }
    static void leave_open(origin& in, const reduce::lane_info* lane) {
        if (lane != nullptr) in.spans.gap(*lane, [](const auto&) {});
    }
    /// Of an end: 1 and the number of items between its begin and it; 1 if the begin is not known
    /// as spans did not nest, 0 if it is lost.
    [[nodiscard]] std::uint64_t begin_of(origin& in, const reduce::record_view& record) {
        if (!record.known()) return 0;
        const auto found = in.spans.end(record, [](const auto&) {});
        if (found.begun) return items_ - found.begun->kept + 1;
        return found.not_nested ? 1 : 0;
    }
    void append_block(text_buffer& out) {
        out += R"(<script type="application/octet-stream" class="items">)";
        columns_.close(out);
        out += "</script>\n";
    }

    /// Of a process that neither closed its trace nor runs: broken. The process of another
    /// machine's trace, or of a copy that was made before its end, does not run here.
    [[nodiscard]] static const char* how_it_ended(const reduce::process_info& process) {
        using trace_ring::layout::presence;
        if (process.departed != 0) return "closed";
        if (process.state != presence::live) return "broken";
        std::ifstream in("/proc/" + std::to_string(process.pid) + "/stat");
        std::string text;
        std::getline(in, text);
        const auto name_end = text.rfind(')');  // names may have any characters
        if (name_end == text.npos) return "broken";
        std::istringstream rest(text.substr(name_end + 1));
        std::string word;
        for (int field = 3; field <= 22; ++field) rest >> word;
        return word == std::to_string(process.start) ? "running" : "broken";
    }
    [[nodiscard]] std::uint32_t owner_of(source from, const reduce::lane_info* lane) {
        const auto [at, added] = known_owners_.try_emplace(
            {from, lane}, static_cast<std::uint32_t>(known_owners_.size()));
        if (!added) return at->second;
        static const reduce::lane_info nobody;
        const auto& who = lane == nullptr ? nobody : *lane;
        if (!owners_.empty()) owners_ += ',';
        append_member(owners_, R"({"file":)", from);
        append_member(owners_, R"(,"lane":)", who.number);
        append_member(owners_, R"(,"pid":)", who.pid);
        const auto& processes = sources_[from].in->processes();
        const bool known = who.process && *who.process < processes.size();
        owners_ += R"(,"process":)";
        owners_ += known ? std::to_string(*who.process) : "null";
        owners_ += R"(,"program":)";
        append_text(owners_, known ? processes[*who.process].name : std::string());
        owners_ += R"(,"shownPid":)";
        append_text(owners_, sources_[from].in->process_text(who));
        owners_ += R"(,"end":")";
        owners_ += known ? how_it_ended(processes[*who.process]) : "";
        owners_ += '"';
        append_member(owners_, R"(,"tid":)", who.thread);
        append_member(owners_, R"(,"depth":)", who.depth);
        owners_ += who.listed ? R"(,"listed":true,"name":)" : R"(,"listed":false,"name":)";
        append_text(owners_, who.name);
        owners_ += '}';
        return at->second;
    }

    void append_record(origin& in, source from, const reduce::record_view& record) {
        auto& values = columns_.values();
        unsigned how = 0;
        if (record.begins()) how |= begins;
        if (record.ends()) how |= ends;
        if (!record.fault().empty()) {
            how |= faulty;
        } else if (!record.has_fields()) {
            how |= bare;
        }
        const std::uint64_t at = time_of(in, record.time());
        if (record.ends()) impl::append_varint(values, begin_of(in, record));
        if (record.begins() && record.known()) in.spans.begin(record, items_, [](const auto&) {});
        if (record.interval()) {
            how |= interval;
            const auto latest = record.latest();
            const auto more =
                latest ? static_cast<std::int64_t>(time_of(in, *latest) - at) : std::int64_t{0};
            impl::append_varint(
                values,
                latest ? static_cast<std::uint64_t>(std::max<std::int64_t>(more, 0)) + 1 : 0);
        }
        if ((how & faulty) != 0) {
            const auto raw = record.payload();
            impl::append_sized(values, record.fault());
            impl::append_sized(values, {reinterpret_cast<const char*>(raw.data()), raw.size()});
        } else {
            record.for_each_field([&](const reduce::field_info&, const reduce::field_value& value) {
                impl::append_html_value(values, value);
            });
        }
        add_item(at, owner_of(from, &record.lane()), class_of(in, record, how));
    }

    [[nodiscard]] std::uint32_t class_of(origin& in, const reduce::record_view& record,
                                         unsigned how) {
        const auto& type = record.type();
        if (record.known() && type.number >= in.classes.size()) {
            in.classes.resize(type.number + 1);
        }
        auto& numbers = record.known() ? in.classes[type.number] : in.unknown[record.id()];
        if (numbers[how] != 0) return numbers[how];
        // All ways in which records of one event come share a number, by which begin finds end.
        std::uint32_t first = 0;
        const auto look = [&](const std::array<std::uint32_t, 32>& others) {
            for (const auto other : others) {
                if (other != 0) first = first == 0 ? other : (std::min)(first, other);
            }
        };
        look(numbers);
        const auto& whole = type.whole();
        for (const auto* each : {&whole, whole.results, whole.told_results}) {
            if (record.known() && each != nullptr && each->number < in.classes.size())
                look(in.classes[each->number]);
        }
        const std::uint32_t number = next_class_++;
        numbers[how] = number;
        if (first == 0) colours_.push_back(number);
        const std::uint32_t shared = first == 0 ? number : first;
        const auto colour = std::lower_bound(colours_.begin(), colours_.end(), shared);
        classes_ += R"(,{"name":)";
        append_text(classes_, record.known() ? type.name : "event#" + std::to_string(record.id()));
        append_member(classes_, R"(,"how":)", how);
        append_member(classes_, R"(,"kind":)", static_cast<std::uint64_t>(type.kind));
        append_member(classes_, R"(,"event":)", type.number);
        append_member(classes_, R"(,"type":)", shared);
        append_member(classes_, R"(,"colour":)",
                      static_cast<std::uint64_t>(colour - colours_.begin()));
        if (type.results != nullptr) classes_ += R"(,"results":true)";
        classes_ += R"(,"fields":[)";
        for (const auto& field : type.fields) {
            if (&field != &type.fields.front()) classes_ += ',';
            classes_ += '[';
            append_text(classes_, field.shown_name());
            append_member(classes_, ",", static_cast<std::uint64_t>(field.type));
            append_member(classes_, ",", static_cast<std::uint64_t>(field.form));
            append_member(classes_, ",", field.count);
            append_member(classes_, ",",
                          roles_.is_flow(type, field)      ? is_flow
                          : roles_.is_counter(type, field) ? is_counter
                                                           : 0U);
            if (field.values != nullptr) append_names(field);
            classes_ += ']';
        }
        classes_ += "]}";
        return number;
    }

    /// As an object: by the value as text, which is exact.
    void append_names(const reduce::field_info& field) {
        const char* between = ",{";
        for (const auto& each : field.values->all()) {
            classes_ += between;
            between = ",";
            append_member(classes_, "\"", each.value);
            classes_ += "\":";
            append_text(classes_, each.name);
        }
        classes_ += '}';
    }

    struct owner_hash {
        [[nodiscard]] std::size_t operator()(
            const std::pair<source, const reduce::lane_info*>& who) const noexcept {
            return std::hash<const void*>{}(who.second) + who.first;
        }
    };

    exporting::field_roles roles_;
    std::vector<origin> sources_;
    std::unordered_map<std::pair<source, const reduce::lane_info*>, std::uint32_t, owner_hash>
        known_owners_;
    text_buffer owners_;                  // JSON
    text_buffer classes_;                 // JSON
    std::vector<std::uint32_t> colours_;  // the first class of each event: ascending
    std::uint32_t next_class_ = 3;
    impl::html_columns columns_;
    std::uint64_t base_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t items_ = 0;
    bool known_ = false;
    bool begun_ = false;
};

}  // namespace trace_reduce
