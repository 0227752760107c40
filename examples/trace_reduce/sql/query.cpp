// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "query.hpp"

// Not through the table of an extension: this program is linked with SQLite.
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <trace_ring/exporter/json.hpp>

#include "../exporting/csv.hpp"
#include "../inputs.hpp"
#include "../kinds/open.hpp"
#include "query_module.hpp"

namespace trace_reduce {

namespace {

using exporter::text_buffer;

struct closes {
    void operator()(sqlite3* of) const noexcept { sqlite3_close_v2(of); }
    void operator()(sqlite3_stmt* of) const noexcept { sqlite3_finalize(of); }
};
using database = std::unique_ptr<sqlite3, closes>;
using statement = std::unique_ptr<sqlite3_stmt, closes>;

[[nodiscard]] std::string_view text_in(sqlite3_stmt* row, int column) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return {text, static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}
[[nodiscard]] std::span<const std::byte> blob_in(sqlite3_stmt* row, int column) {
    const auto* const bytes = static_cast<const std::byte*>(sqlite3_column_blob(row, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

/// Prints the rows of one statement.
class answer {
public:
    answer() = default;
    answer(const answer&) = delete;
    virtual ~answer() = default;
    virtual void begin(sqlite3_stmt* of, text_buffer& out) = 0;
    virtual void row(sqlite3_stmt* of, text_buffer& out) = 0;
    virtual void end(text_buffer& out) = 0;
};

class csv_answer final : public answer {
public:
    void begin(sqlite3_stmt* of, text_buffer& out) override {
        for (int i = 0; i < sqlite3_column_count(of); ++i) {
            if (i != 0) out += ',';
            exporting::impl::append_csv_text(out, sqlite3_column_name(of, i));
        }
        out += "\r\n";
    }
    void row(sqlite3_stmt* of, text_buffer& out) override {
        for (int i = 0; i < sqlite3_column_count(of); ++i) {
            if (i != 0) out += ',';
            switch (sqlite3_column_type(of, i)) {
                case SQLITE_NULL:
                    break;
                case SQLITE_INTEGER:
                    exporter::impl::append_number(out, std::int64_t{sqlite3_column_int64(of, i)});
                    break;
                case SQLITE_FLOAT:
                    exporter::impl::append_floating(out, sqlite3_column_double(of, i));
                    break;
                case SQLITE_BLOB:
                    out += "hex:";
                    exporter::impl::append_hex(out, blob_in(of, i));
                    break;
                default:
                    exporting::impl::append_csv_text(out, text_in(of, i));
            }
        }
        out += "\r\n";
    }
    void end(text_buffer&) override {}
};

/// An object for each row. The names of columns that come twice get numbers.
class json_answer final : public answer {
public:
    void begin(sqlite3_stmt* of, text_buffer&) override {
        std::set<std::string> taken;
        names_.clear();
        for (int i = 0; i < sqlite3_column_count(of); ++i) {
            const std::string name = sqlite3_column_name(of, i);
            std::string shown = name;
            for (unsigned n = 2; !taken.insert(shown).second; ++n) {
                shown = name + '#' + std::to_string(n);
            }
            text_buffer text;
            exporter::impl::append_json_string(text, shown);
            names_.push_back(std::string(text.view()) + ':');
        }
    }
    void row(sqlite3_stmt* of, text_buffer& out) override {
        out += '{';
        for (int i = 0; i < sqlite3_column_count(of); ++i) {
            if (i != 0) out += ',';
            out += names_[static_cast<std::size_t>(i)];
            switch (sqlite3_column_type(of, i)) {
                case SQLITE_NULL:
                    out += "null";
                    break;
                case SQLITE_INTEGER:
                    exporter::impl::append_number(out, std::int64_t{sqlite3_column_int64(of, i)});
                    break;
                case SQLITE_FLOAT:
                    append_real(out, sqlite3_column_double(of, i));
                    break;
                case SQLITE_BLOB:
                    out += "{\"hex\":\"";
                    exporter::impl::append_hex(out, blob_in(of, i));
                    out += "\"}";
                    break;
                default:
                    exporter::impl::append_json_string(out, text_in(of, i));
            }
        }
        out += "}\n";
    }
    void end(text_buffer&) override {}

private:
    static void append_real(text_buffer& out, double value) {
        if (std::isinf(value)) {
            out += value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
            return;
        }
        text_buffer text;
        exporter::impl::append_floating(text, value);
        out += text.view();
        // A parser that knows integers makes a real of it.
        if (text.view().find_first_of(".eE") == std::string_view::npos) out += ".0";
    }

    std::vector<std::string> names_;
};

/// Columns side by side. The first rows decide how wide they are.
class table_answer final : public answer {
public:
    void begin(sqlite3_stmt* of, text_buffer&) override {
        std::vector<cell> names;
        for (int i = 0; i < sqlite3_column_count(of); ++i) {
            names.push_back({shown(sqlite3_column_name(of, i)), false});
        }
        first_.push_back(std::move(names));
    }
    void row(sqlite3_stmt* of, text_buffer& out) override {
        std::vector<cell> cells;
        for (int i = 0; i < sqlite3_column_count(of); ++i) cells.push_back(cell_of(of, i));
        if (widths_.empty()) {
            first_.push_back(std::move(cells));
            if (first_.size() > most_first) show_first(out);
        } else {
            show(cells, out);
        }
    }
    void end(text_buffer& out) override {
        if (widths_.empty()) show_first(out);
        widths_.clear();
        out += '(';
        out += std::to_string(rows_);
        out += rows_ == 1 ? " row)\n" : " rows)\n";
        rows_ = 0;
    }

private:
    static constexpr std::size_t most_first = 1000;
    struct cell {
        std::string text;
        bool number;
    };

    /// Without characters that command a terminal, or end the line.
    [[nodiscard]] static std::string shown(std::string_view text) {
        text_buffer out;
        exporter::impl::append_json_string(out, text);
        std::string made(out.view().substr(1, out.view().size() - 2));
        for (std::size_t at = 0; (at = made.find("\\\"", at)) != made.npos; ++at) made.erase(at, 1);
        return made;
    }
    [[nodiscard]] static cell cell_of(sqlite3_stmt* of, int i) {
        switch (sqlite3_column_type(of, i)) {
            case SQLITE_NULL:
                return {"", false};
            case SQLITE_INTEGER:
            case SQLITE_FLOAT:
                return {std::string(text_in(of, i)), true};
            case SQLITE_BLOB: {
                text_buffer out;
                exporter::impl::append_hex(out, blob_in(of, i));
                return {"x'" + std::string(out.view()) + "'", false};
            }
            default:
                return {shown(text_in(of, i)), false};
        }
    }
    /// Characters of UTF-8.
    [[nodiscard]] static std::size_t width(std::string_view text) noexcept {
        return static_cast<std::size_t>(
            std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    }
    void show_first(text_buffer& out) {
        widths_.assign(first_[0].size(), 0);
        for (const auto& row : first_) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                widths_[i] = std::max(widths_[i], width(row[i].text));
            }
        }
        rows_ = 0;
        for (const auto& row : first_) {
            show(row, out);
            if (&row != first_.data()) continue;
            for (std::size_t i = 0; i < widths_.size(); ++i) {
                if (i != 0) out += "  ";
                for (std::size_t n = 0; n < widths_[i]; ++n) out += "\xE2\x94\x80";
            }
            out += '\n';
            rows_ = 0;
        }
        first_.clear();
    }
    void show(const std::vector<cell>& row, text_buffer& out) {
        ++rows_;
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i != 0) line += "  ";
            const std::size_t own = width(row[i].text);
            const std::string space(widths_[i] > own ? widths_[i] - own : 0, ' ');
            line += row[i].number ? space + row[i].text : row[i].text + space;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line;
        out += '\n';
    }

    std::vector<std::vector<cell>> first_;  // before the widths are known
    std::vector<std::size_t> widths_;
    std::uint64_t rows_ = 0;
};

[[nodiscard]] std::unique_ptr<answer> answer_in(const job& on) {
    switch (on.wanted.sql_format) {
        case query_format::json:
            return std::make_unique<json_answer>();
        case query_format::csv:
            return std::make_unique<csv_answer>();
        case query_format::table:
            return std::make_unique<table_answer>();
        default:
            if (on.to.is_terminal()) return std::make_unique<table_answer>();
            return std::make_unique<csv_answer>();
    }
}

class query {
public:
    /// `files`: those that can be read.
    query(const job& on, const std::vector<std::string>& files) : on_(on) {
        sqlite3* made = nullptr;
        sqlite3_auto_extension(reinterpret_cast<void (*)()>(&trace_reduce_take_sqlite));
        const int rc = sqlite3_open(":memory:", &made);
        in_.reset(made);
        check(rc);
        // Otherwise SQLite takes a mistyped name in double quotes for a text.
        check(sqlite3_db_config(made, SQLITE_DBCONFIG_DQS_DML, 0, nullptr));
        check(sqlite3_db_config(made, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr));
        sqlite3_progress_handler(
            made, 10'000,
            [](void* of) { return static_cast<query*>(of)->on_.interrupted != 0 ? 1 : 0; }, this);
        check(sql::add_module(
            made,
            [this](const std::string& file, std::uint64_t offset, std::string_view what) {
                if (met_.emplace(file, offset, what).second)
                    on_.complain.damage(file, offset, what);
            },
            [this] { return on_.interrupted != 0; }));
        open_tables(files);
    }

    void ask(const std::string& text) {
        const auto shown = answer_in(on_);
        const char* rest = text.c_str();
        const char* const end = rest + text.size();
        while (rest != end) {
            sqlite3_stmt* made = nullptr;
            const char* const begin = rest;
            if (sqlite3_prepare_v2(in_.get(), rest, static_cast<int>(end - rest), &made, &rest) !=
                SQLITE_OK) {
                throw std::runtime_error("--sql: " + mistake(text, begin));
            }
            const statement one(made);
            if (made == nullptr) continue;  // a comment, or nothing
            if (!run(made, *shown)) return;
        }
    }

private:
    void check(int rc) const {
        if (rc != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(in_.get()));
    }
    void open_tables(const std::vector<std::string>& files) {
        std::string call = "SELECT trace_ring_open(";
        for (const auto& file : files) call += &file == files.data() ? "?" : ",?";
        sqlite3_stmt* made = nullptr;
        check(sqlite3_prepare_v2(in_.get(), (call + ')').c_str(), -1, &made, nullptr));
        const statement one(made);
        for (std::size_t i = 0; i < files.size(); ++i) {
            // The function takes "prefix=..." for something else.
            const std::string name = (files[i].starts_with("prefix=") ? "./" : "") + files[i];
            check(sqlite3_bind_text(made, static_cast<int>(i) + 1, name.c_str(), -1,
                                    SQLITE_TRANSIENT));
        }
        if (sqlite3_step(made) != SQLITE_ROW) check(SQLITE_ERROR);
    }
    /// The message, and where in the text it is.
    [[nodiscard]] std::string mistake(const std::string& text, const char* begin) const {
        std::string what = sqlite3_errmsg(in_.get());
        const int at = sqlite3_error_offset(in_.get());
        if (at < 0) return what;
        const auto column =
            static_cast<std::size_t>(begin - text.c_str()) + static_cast<std::size_t>(at);
        return what + " (column " + std::to_string(column + 1) + ")";
    }
    /// False: interrupted.
    [[nodiscard]] bool run(sqlite3_stmt* one, answer& shown) {
        const bool has_rows = sqlite3_column_count(one) != 0;
        if (has_rows) shown.begin(one, on_.to.text());
        for (;;) {
            const int rc = sqlite3_step(one);
            if (rc == SQLITE_ROW) {
                shown.row(one, on_.to.text());
                on_.to.flush_some();
                continue;
            }
            if (rc == SQLITE_INTERRUPT && on_.interrupted != 0) return false;
            if (rc != SQLITE_DONE) {
                on_.to.flush();
                throw std::runtime_error(std::string("--sql: ") + sqlite3_errmsg(in_.get()));
            }
            if (has_rows) shown.end(on_.to.text());
            return true;
        }
    }

    const job& on_;
    database in_;
    std::set<std::tuple<std::string, std::uint64_t, std::string>> met_;  // damage
};

}  // namespace

void query_traces(const job& on) {
    std::vector<std::string> files;
    for (const auto& path : on.wanted.files) {
        options one = on.wanted;
        one.files = {path};
        opened_files opened = open_files(one, on.complain);
        if (!opened.spools.empty()) {
            on.complain.system(path + ": a CPTRAP file, for which there are no tables (--sql)");
        }
        try {
            for (auto& each : opened.traces) (void)reduce::trace_file::of_source(std::move(each));
            if (!opened.traces.empty()) files.push_back(path);
        } catch (const trace_ring::format_error& error) {
            on.complain.damage(error.file(), error.offset(), error.cause());
        }
    }
    if (files.empty()) return;
    query all(on, files);
    all.ask(on.wanted.sql);
    on.to.flush();
}

}  // namespace trace_reduce
