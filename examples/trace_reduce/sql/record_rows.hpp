// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of tables whose rows are records, or values in them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../exporting/viewer/roles.hpp"
#include "plan.hpp"
#include "record_cells.hpp"
#include "record_scan.hpp"
#include "rows.hpp"
#include "shape.hpp"

namespace trace_reduce::sql {

/// A scan of all files of a table. `of`, `how` and `by` must outlive it.
[[nodiscard]] inline record_scan scan_all(const table_shape& of, const plan& how, trace_set& in,
                                          connection& by, sqlite3_value** values,
                                          const std::function<void()>& look) {
    const auto way = how.backward ? reduce::direction::backward : reduce::direction::forward;
    record_scan all(way);
    std::size_t number = 0;
    for (const auto& file : in.files()) {
        all.add(std::make_unique<file_scan>(file, filter_for(how, of, *file, values, look), way,
                                            how.ordered, by.damaged, number++));
    }
    return all;
}

/// The columns of tables whose rows are records.
class row_cells {
public:
    explicit row_cells(const table_shape& of) : of_(of) {}

    /// `type`: the record's.
    void column(sqlite3_context* to, std::size_t which, traced_file& in,
                const reduce::record_view& record, const reduce::event_type& type) {
        const column_shape& wanted = of_.columns[which];
        if (wanted.what == cell::field) [[likely]] {
            const auto value = record.field(place(type, wanted.index));
            if (!result_number(to, value)) result_value(to, value);
        } else if (wanted.what == cell::field_number) {
            result_value(to, record.field(place(type, wanted.index)).unnamed());
        } else if (wanted.what == cell::function) {
            const std::size_t site = type.find("site");
            if (site == reduce::event_type::npos) return;
            const auto name = in.names().name_of(record, record.field(site).u64());
            if (!name.empty()) result_text(to, name.substr(0, name.find('+')));
        } else {
            cells_.put(to, wanted.what, in, record);
        }
    }
    /// References that are packed in one record have its place. Those that are equal are counted:
    /// a condition selects all of them, or none. Once for each row.
    [[nodiscard]] row_key key(std::size_t file, const reduce::record_view& record) {
        row_key made{file, record.lane().number, record.position()};
        if (of_.kind != table_kind::references) return made;
        if (packs_.size() <= file) packs_.resize(file + 1);
        pack& from = packs_[file];
        if (from.lane != made[1] || from.position != made[2]) from = {made[1], made[2], {}};
        std::size_t next = 3;
        made.at(next++) = record.id();
        for (std::size_t i = 0; i < of_.fields.size(); ++i) {
            const auto value = record.field(place(record.type(), i));
            made.at(next++) = value ? value.u64() : 0;
        }
        made.at(next) = ++from.equal[made];
        return made;
    }
    /// Where the record's type has a field of the table.
    [[nodiscard]] std::size_t place(const reduce::event_type& type, std::size_t field) {
        if (&type != type_) [[unlikely]]
            find_places(type);
        return places_[field];
    }

private:
    struct pack {
        std::uint64_t lane = 0, position = 0;
        std::map<row_key, std::uint64_t> equal;
    };

    void find_places(const reduce::event_type& type) {
        type_ = &type;
        auto& found = known_[type_];
        if (found.empty()) found = find_fields(type, of_.fields);
        places_ = found.data();
    }
    /// The numbers that most fields are; false: it is none of them.
    [[nodiscard, gnu::always_inline]] static bool result_number(sqlite3_context* to,
                                                                const reduce::field_value& value) {
        using trace_ring::field_type;
        if (!value || value.form() != trace_ring::field_form::scalar || value.may_have_name()) {
            return false;
        }
        if (value.type() == field_type::f64) {
            sqlite3_result_double(to, value.f64());
        } else if (value.type() == field_type::u64) {
            result_unsigned(to, value.u64());
        } else {
            return false;
        }
        return true;
    }

    const table_shape& of_;
    record_cells cells_;
    std::unordered_map<const reduce::event_type*, std::vector<std::size_t>> known_;
    const std::size_t* places_ = nullptr;
    const reduce::event_type* type_ = nullptr;
    std::vector<pack> packs_;  // of each file, the one that is read
};

class record_rows final : public rows {
public:
    record_rows(const table_shape& of, const plan& how, record_scan from)
        : only_count_(how.only_count), from_(std::move(from)), cells_(of) {}

    [[nodiscard]] bool next() override {
        if (counted_ != 0) {
            --counted_;
            return true;
        }
        if (!from_.next()) return false;
        if (only_count_) counted_ = from_.now().pass_run();
        return true;
    }
    void column(sqlite3_context* to, std::size_t which) override {
        cells_.column(to, which, from_.now().file(), from_.now().record(), from_.now().type());
    }

    [[nodiscard]] std::optional<row_key> key() override {
        return cells_.key(from_.now().number(), from_.now().record());
    }

private:
    bool only_count_;
    record_scan from_;
    std::size_t counted_ = 0;
    row_cells cells_;
};

/// A row for each number of a flow, or of a counter, in a record.
class value_rows final : public rows {
public:
    value_rows(const table_shape& of, bool flows, record_scan from)
        : of_(of), flows_(flows), from_(std::move(from)) {}

    [[nodiscard]] bool next() override {
        for (;;) {
            if (++at_ < values_.size()) return true;
            if (!from_.next()) return false;
            find_values();
        }
    }
    void column(sqlite3_context* to, std::size_t which) override {
        const cell what = of_.columns[which].what;
        if (what == cell::name) return result_bytes_or_text(to, values_[at_].first);
        if (what == cell::value) return result_value(to, values_[at_].second.unnamed());
        cells_.put(to, what, from_.now().file(), from_.now().record());
    }
    [[nodiscard]] std::optional<row_key> key() override {
        const reduce::record_view& record = from_.now().record();
        return row_key{from_.now().number(), record.lane().number, record.position(), at_};
    }

private:
    void find_values() {
        values_.clear();
        at_ = ~std::size_t{0};
        const reduce::record_view& record = from_.now().record();
        const exporting::field_roles roles;
        const auto& type = record.type();
        for (std::size_t i = 0; i < type.fields.size(); ++i) {
            const auto& field = type.fields[i];
            // Each element of an array counts.
            reduce::field_info one = field;
            one.form = trace_ring::field_form::scalar;
            if (flows_ ? !roles.is_flow(type, field) : !roles.is_counter(type, one)) continue;
            const bool row = field.form != trace_ring::field_form::scalar;
            const auto value = record.field(i);
            for (std::size_t n = 0; n < value.size(); ++n) {
                std::string name = field.name;
                if (row && !flows_) name += '[' + std::to_string(n) + ']';
                values_.emplace_back(std::move(name), value.at(n));
            }
        }
    }

    const table_shape& of_;
    bool flows_;
    record_scan from_;
    std::vector<std::pair<std::string, reduce::field_value>> values_;
    std::size_t at_ = 0;
    record_cells cells_;
};

}  // namespace trace_reduce::sql
