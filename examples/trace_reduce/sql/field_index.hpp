// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A copy of a table's records, by the values of one field: for a join, which asks for one value
/// after the other. Without it, each question would read the trace.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/exporter/json.hpp>

#include "../../records/kept_record.hpp"
#include "record_rows.hpp"
#include "rows.hpp"

namespace trace_reduce::sql {

class field_index {
public:
    /// Bytes of memory, beyond which there is no index.
    static constexpr std::size_t most_bytes = std::size_t{512} << 20;

    /// All records that `from` reads; null if they need too much memory. `column`: of a field.
    [[nodiscard]] static std::shared_ptr<const field_index> of(record_scan from,
                                                               const table_shape& shape,
                                                               std::size_t column) {
        auto made = std::make_shared<field_index>();
        row_cells cells(shape);
        const std::size_t field = shape.columns[column].index;
        while (from.next()) {
            const reduce::record_view& record = from.now().record();
            const auto key = key_of(record.field(cells.place(from.now().type(), field)));
            if (!key) continue;
            made->add(*key, from.now(), record);
            const std::size_t bytes = made->entries_.size() * sizeof(entry) +
                                      made->words_.size() * sizeof made->words_[0];
            if (bytes > most_bytes) return nullptr;
        }
        std::stable_sort(made->entries_.begin(), made->entries_.end(),
                         [](const entry& a, const entry& b) { return a.key < b.key; });
        return made;
    }

    /// What SQLite may compare as equal has equal keys. Nothing: it equals nothing.
    [[nodiscard]] static std::optional<std::uint64_t> key_of(sqlite3_value* value) {
        switch (sqlite3_value_type(value)) {
            case SQLITE_NULL:
                return std::nullopt;
            case SQLITE_INTEGER:
            case SQLITE_FLOAT:
                return key_of(sqlite3_value_double(value));
            default: {
                const auto* const bytes = static_cast<const char*>(sqlite3_value_blob(value));
                return key_of(
                    std::string_view(bytes, static_cast<std::size_t>(sqlite3_value_bytes(value))));
            }
        }
    }

    struct entry {
        std::uint64_t key = 0;
        std::size_t at = 0;  // of its words
        trace_ring::position position = 0;
        std::uint64_t offset = 0;
        std::uint32_t kind = 0;  // of `kinds_`
    };
    [[nodiscard]] std::pair<const entry*, const entry*> find(std::uint64_t key) const {
        const auto found =
            std::equal_range(entries_.begin(), entries_.end(), entry{key, 0, 0, 0, 0},
                             [](const entry& a, const entry& b) { return a.key < b.key; });
        return {std::to_address(found.first), std::to_address(found.second)};
    }
    [[nodiscard]] traced_file& file_of(const entry& of) const { return *kinds_[of.kind].in; }
    [[nodiscard]] std::size_t number_of_file(const entry& of) const {
        return kinds_[of.kind].number;
    }
    [[nodiscard]] reduce::record_view view(const entry& of) const {
        auto kind = kinds_[of.kind].kind;
        kind.offset = of.offset;
        return {kind, words_.data() + of.at, of.position};
    }

private:
    struct record_kind {
        std::shared_ptr<traced_file> in;
        std::size_t number;
        reduce::record_view::kind kind;
    };

    [[nodiscard]] static std::uint64_t key_of(double number) noexcept {
        std::uint64_t bits;
        number += 0.0;  // of -0
        std::memcpy(&bits, &number, sizeof bits);
        return bits;
    }
    /// A text may be compared as the number that it shows.
    [[nodiscard]] static std::uint64_t key_of(std::string_view text) {
        const std::string copy(text);
        char* end = nullptr;
        const double number = std::strtod(copy.c_str(), &end);
        while (*end == ' ' || (*end >= '\t' && *end <= '\r')) ++end;
        if (end != copy.c_str() && end == copy.c_str() + copy.size()) return key_of(number);
        return std::hash<std::string_view>{}(text);
    }
    [[nodiscard]] static std::optional<std::uint64_t> key_of(const reduce::field_value& value) {
        if (!value) return std::nullopt;
        if (value.form() != trace_ring::field_form::scalar && !value.is_text()) {
            trace_ring::exporter::text_buffer text;
            trace_ring::exporter::impl::append_json_value(text, value);
            return key_of(text.view());
        }
        if (value.is_text()) return key_of(value.text());
        if (const auto name = value.name(); !name.empty()) return key_of(name);
        if (value.type() == trace_ring::field_type::character) {
            const char c = static_cast<char>(value.u64());
            return key_of(std::string_view(&c, 1));
        }
        const double number = value.f64();
        if (number != number) return std::nullopt;
        return key_of(number);
    }

    void add(std::uint64_t key, const file_scan& from, const reduce::record_view& record) {
        const auto kind = records::kind_of_copy(record);
        const bool same = !kinds_.empty() && kinds_.back().kind.lane == kind.lane &&
                          kinds_.back().kind.type == kind.type &&
                          kinds_.back().kind.high == kind.high && !record.interval() &&
                          kinds_.back().number == from.number();
        if (!same) kinds_.push_back({from.shared_file(), from.number(), kind});
        entries_.push_back({key, words_.size(), record.position(), record.offset(),
                            static_cast<std::uint32_t>(kinds_.size() - 1)});
        records::append_words(words_, record);
    }

    std::vector<entry> entries_;
    std::vector<std::uint64_t> words_;
    std::vector<record_kind> kinds_;
};

/// The records whose field has one value. There may be others among them.
class index_rows final : public rows {
public:
    index_rows(const table_shape& of, std::shared_ptr<const field_index> in, sqlite3_value* value)
        : in_(std::move(in)), cells_(of) {
        if (const auto key = field_index::key_of(value)) {
            std::tie(at_, end_) = in_->find(*key);
        }
    }
    [[nodiscard]] bool next() override {
        if (started_) ++at_;
        started_ = true;
        if (at_ == end_) return false;
        record_ = in_->view(*at_);
        return true;
    }
    void column(sqlite3_context* to, std::size_t which) override {
        cells_.column(to, which, in_->file_of(*at_), record_, record_.type());
    }
    [[nodiscard]] std::optional<row_key> key() override {
        return cells_.key(in_->number_of_file(*at_), record_);
    }

private:
    std::shared_ptr<const field_index> in_;
    row_cells cells_;
    const field_index::entry* at_ = nullptr;
    const field_index::entry* end_ = nullptr;
    bool started_ = false;
    reduce::record_view record_;
};

}  // namespace trace_reduce::sql
