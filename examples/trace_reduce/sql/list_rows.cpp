// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "list_rows.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/cursor.hpp>
#include <trace_ring/reduce/statistics.hpp>

#include "plan.hpp"
#include "record_cells.hpp"

namespace trace_reduce::sql {

namespace {

using trace_ring::event_kind;
using trace_ring::field_form;
using trace_ring::field_type;
using trace_ring::loss_cause;

[[nodiscard]] list_value date(const traced_file& in, std::uint64_t ticks) {
    if (!in.time().known()) return {};
    return in.time().realtime_ns(ticks);
}
[[nodiscard]] list_value date_if(const traced_file& in, std::uint64_t ticks) {
    return ticks == 0 ? list_value() : date(in, ticks);
}

[[nodiscard]] const char* text_of(event_kind kind) noexcept {
    switch (kind) {
        case event_kind::span:
            return "span";
        case event_kind::counter:
            return "counter";
        default:
            return "instant";
    }
}
[[nodiscard]] const char* text_of(field_type type) noexcept {
    constexpr std::array<const char*, 14> names{"",    "u8",      "u16",  "u32",    "u64",
                                                "i8",  "i16",     "i32",  "i64",    "f32",
                                                "f64", "boolean", "char", "address"};
    const auto number = static_cast<std::size_t>(type);
    return number < names.size() ? names[number] : "";
}
[[nodiscard]] const char* text_of(field_form form) noexcept {
    return form == field_form::scalar ? "scalar" : form == field_form::array ? "array" : "variable";
}

[[nodiscard]] std::vector<list_row> events_of(trace_set& in, bool count,
                                              const std::function<void()>& look) {
    std::vector<list_row> all;
    std::map<std::string, std::string> tables;
    for (const auto& shape : all_shapes(in)) {
        if (shape.kind == table_kind::event) tables[shape.event] = shape.name;
    }
    for (const auto& file : in.files()) {
        std::map<std::string, reduce::event_statistics> counted;
        if (count) {
            const auto sum = file->trace().statistics(filter_for_all(*file, look));
            for (const auto& each : sum.events) {
                if (each.type == nullptr) continue;
                auto& into = counted[each.type->name];
                into.records += each.records;
                into.bytes += each.bytes;
            }
        }
        std::map<std::string, bool> met;
        for (const auto& type : file->trace().event_types()) {
            if (std::exchange(met[type.name], true)) continue;
            std::optional<std::uint64_t> total;
            for (const auto& each : file->trace().event_types()) {
                if (each.name != type.name) continue;
                if (const auto one = file->trace().about().total_of(each)) {
                    total = total.value_or(0) + *one;
                }
            }
            list_row row{type.name, std::string(text_of(type.kind))};
            const auto& table = tables[type.name];
            row.emplace_back(table.empty() ? list_value() : list_value(table));
            const auto& sum = counted[type.name];
            row.emplace_back(count ? list_value(sum.records) : list_value());
            row.emplace_back(count ? list_value(sum.bytes) : list_value());
            row.emplace_back(total ? list_value(*total) : list_value());
            row.emplace_back(file->path());
            all.push_back(std::move(row));
        }
    }
    return all;
}

[[nodiscard]] std::vector<list_row> fields_of(trace_set& in) {
    std::vector<list_row> all;
    for (const auto& file : in.files()) {
        std::map<std::string, bool> met;
        for (const auto& type : file->trace().event_types()) {
            if (std::exchange(met[type.name], true)) continue;
            const table_shape shape = shape_of(in, table_kind::event, type.name);
            for (const auto& column : shape.columns) {
                if (column.what != cell::field) continue;
                for (const auto& each : file->trace().event_types()) {
                    if (each.name != type.name) continue;
                    const std::size_t at = find_fields(each, {&shape.fields[column.index], 1})[0];
                    if (at == reduce::event_type::npos) continue;
                    const auto& field = each.fields[at];
                    list_row row{type.name, field.name, column.name,
                                 std::string(text_of(field.type)),
                                 std::string(text_of(field.form))};
                    row.emplace_back(std::uint64_t{field.count});
                    row.emplace_back(field.unit == nullptr ? list_value()
                                                           : list_value(field.unit->suffix));
                    row.emplace_back(std::uint64_t{field.flow});
                    row.emplace_back(std::uint64_t{field.result});
                    row.emplace_back(file->path());
                    all.push_back(std::move(row));
                    break;
                }
            }
        }
    }
    return all;
}

[[nodiscard]] std::vector<list_row> threads_of(trace_set& in) {
    std::vector<list_row> all;
    for (const auto& file : in.files()) {
        const auto& trace = file->trace();
        for (const auto& lane : trace.lanes()) {
            if (!lane.listed) continue;
            list_row row{std::uint64_t{lane.number}, lane.name, std::uint64_t{lane.thread},
                         std::uint64_t{lane.pid}};
            row.emplace_back(lane.process ? list_value(std::uint64_t{*lane.process})
                                          : list_value());
            const bool known = lane.process && *lane.process < trace.processes().size();
            row.emplace_back(known ? list_value(trace.processes()[*lane.process].name)
                                   : list_value());
            row.emplace_back(std::uint64_t{lane.depth});
            row.emplace_back(lane.cpu ? list_value(std::uint64_t{*lane.cpu}) : list_value());
            row.push_back(date_if(*file, lane.began));
            row.push_back(date_if(*file, lane.ended));
            for (const loss_cause cause : {loss_cause::refused, loss_cause::too_long,
                                           loss_cause::nested, loss_cause::abandoned}) {
                row.emplace_back(lane.lost[cause]);
            }
            row.emplace_back(file->path());
            all.push_back(std::move(row));
        }
    }
    return all;
}

[[nodiscard]] std::vector<list_row> processes_of(trace_set& in) {
    using trace_ring::layout::presence;
    std::vector<list_row> all;
    for (const auto& file : in.files()) {
        const auto& tables = file->trace().about();
        for (const auto& each : tables.processes()) {
            if (each.state == presence::free || each.state == presence::preparing) continue;
            list_row row{std::uint64_t{each.slot}, std::uint64_t{each.pid}, each.name};
            row.emplace_back(each.parent ? list_value(std::uint64_t{*each.parent}) : list_value());
            row.emplace_back(std::uint64_t{each.word} * 8);
            row.emplace_back(std::string(tables.alive(each)   ? "live"
                                         : each.departed != 0 ? "ended"
                                                              : "killed"));
            row.push_back(date_if(*file, each.attached));
            row.push_back(date_if(*file, each.departed));
            row.emplace_back(file->path());
            all.push_back(std::move(row));
        }
    }
    return all;
}

[[nodiscard]] std::vector<list_row> clocks_of(trace_set& in) {
    std::vector<list_row> all;
    for (const auto& file : in.files()) {
        const auto& time = file->time();
        for (const auto& each : time.snapshots()) {
            all.push_back({each.ticks, date(*file, each.ticks), each.monotonic,
                           time.known() ? list_value(time.relative_ns(each.ticks)) : list_value(),
                           time.ns(static_cast<double>(each.uncertainty)), file->path()});
        }
    }
    return all;
}

class loss_rows final : public rows {
public:
    loss_rows(trace_set& in, connection& by, std::function<void()> look)
        : files_(in.files()), by_(by), look_(std::move(look)) {}

    [[nodiscard]] bool next() override {
        if (!done_.empty()) done_.pop_front();
        while (done_.empty()) {
            if (!cursor_) {
                if (number_ == files_.size()) return false;
                begin();
            }
            const auto* const item = cursor_->next();
            if (item == nullptr) {
                cursor_.reset();
                ++number_;
                continue;
            }
            report_if_damaged(by_.damaged, file(), *item);
            if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                take(*loss);
            } else if (const auto* jump = std::get_if<reduce::clock_jump>(item)) {
                take(*jump);
            } else {
                take(std::get<reduce::record_view>(*item));
            }
        }
        return true;
    }
    void column(sqlite3_context* to, std::size_t which) override {
        result_list_value(to, done_.front()[which]);
    }

private:
    [[nodiscard]] traced_file& file() const { return *files_[number_]; }

    void begin() {
        for (const auto& damage : file().trace().damages()) {
            if (by_.damaged) by_.damaged(file().path(), damage.offset, damage.what);
            add("damage", std::string("damaged"), {}, {}, nullptr, {}, damage.offset, damage.what);
        }
        cursor_.emplace(file().trace().forward(filter_for_all(file(), look_)));
    }
    void add(const char* kind, list_value cause, list_value count,
             std::optional<std::uint64_t> ticks, const reduce::lane_info* lane, list_value at,
             list_value offset, list_value what, list_value step = {}) {
        list_row row{std::string(kind), std::move(cause), std::move(count)};
        row.push_back(ticks ? date(file(), *ticks) : list_value());
        row.push_back(ticks ? list_value(*ticks) : list_value());
        const auto lane_value = [&](auto value) { return lane != nullptr ? value : list_value(); };
        row.push_back(lane_value(lane ? list_value(std::uint64_t{lane->number}) : list_value()));
        row.push_back(std::move(at));
        const bool known = lane != nullptr && lane->listed;
        row.push_back(known ? list_value(lane->name) : list_value());
        row.push_back(known ? list_value(std::uint64_t{lane->thread}) : list_value());
        row.push_back(known ? list_value(std::uint64_t{lane->pid}) : list_value());
        row.push_back(std::move(offset));
        row.push_back(std::move(what));
        row.push_back(std::move(step));
        row.emplace_back(file().path());
        done_.push_back(std::move(row));
    }
    void take(const reduce::loss_item& loss) {
        const bool damaged = loss.cause == loss_cause::damaged;
        const auto none = std::optional<std::uint64_t>();
        add(damaged ? "damage" : "loss", std::string(to_string(loss.cause)),
            loss.count == 0 ? list_value() : list_value(loss.count),
            loss.lane != nullptr ? std::optional(loss.time) : none, loss.lane,
            loss.lane != nullptr ? list_value(loss.at) : list_value(),
            damaged ? list_value(loss.offset) : list_value(),
            loss.what.empty() ? list_value() : list_value(std::string(loss.what)));
    }
    void take(const reduce::clock_jump& jump) {
        add("clock_jump", {}, {}, jump.time, jump.lane,
            jump.lane != nullptr ? list_value(jump.at) : list_value(), {},
            jump.anew ? list_value(std::string("the clock began anew")) : list_value(),
            jump.lane == nullptr ? list_value(jump.step) : list_value());
    }
    void take(const reduce::record_view& record) {
        if (record.fault().empty()) return;
        const bool damaged = reduce::is_damage(file().trace().about(), record);
        add("record", damaged ? list_value(std::string("damaged")) : list_value(), {},
            record.time(), &record.lane(), record.position(), record.offset(),
            std::string(record.fault()));
    }

    std::vector<std::shared_ptr<traced_file>> files_;
    connection& by_;
    std::function<void()> look_;
    std::size_t number_ = 0;
    std::optional<reduce::cursor> cursor_;
    std::deque<list_row> done_;
};

}  // namespace

void result_list_value(sqlite3_context* to, const list_value& value) {
    struct {
        sqlite3_context* to;
        void operator()(std::monostate) const { sqlite3_result_null(to); }
        void operator()(std::int64_t v) const { sqlite3_result_int64(to, v); }
        void operator()(std::uint64_t v) const { result_unsigned(to, v); }
        void operator()(double v) const { sqlite3_result_double(to, v); }
        void operator()(const std::string& v) const { result_bytes_or_text(to, v); }
    } const put{to};
    std::visit(put, value);
}

std::vector<list_row> list_of(table_kind kind, trace_set& in, bool count,
                              const std::function<void()>& look) {
    switch (kind) {
        case table_kind::events:
            return events_of(in, count, look);
        case table_kind::fields:
            return fields_of(in);
        case table_kind::threads:
            return threads_of(in);
        case table_kind::processes:
            return processes_of(in);
        default:
            return clocks_of(in);
    }
}

std::unique_ptr<rows> read_losses(trace_set& in, connection& by, std::function<void()> look) {
    return std::make_unique<loss_rows>(in, by, std::move(look));
}

}  // namespace trace_reduce::sql
