// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "module.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(TRACE_REDUCE_SYMBOLS)
#include "allocation_rows.hpp"
#include "branch_rows.hpp"
#endif
#include "field_index.hpp"
#include "list_rows.hpp"
#include "plan.hpp"
#include "record_rows.hpp"
#include "shape.hpp"
#include "span_rows.hpp"

namespace trace_reduce::sql {

namespace {

/// SQLite frees the message.
[[nodiscard]] char* message(const std::string& text) {
    return sqlite3_mprintf("%s", text.c_str());
}

/// Calls `work`, and turns what it throws into a code and a message.
template <class Work>
[[nodiscard]] int guarded(char** problem, Work&& work) noexcept {
    const auto fail = [problem](const char* what) {
        sqlite3_free(*problem);
        *problem = sqlite3_mprintf("%s", what);
        return SQLITE_ERROR;
    };
    try {
        return work();
    } catch (const interrupted&) {
        return SQLITE_INTERRUPT;
    } catch (const std::bad_alloc&) {
        return SQLITE_NOMEM;
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}

// --- Arguments -----------------------------------------------------------------------------------
struct table_arguments {
    std::vector<std::string> files;
    table_kind kind = table_kind::records;
    std::string event;
};

/// A word as SQL writes it, without its quotes.
[[nodiscard]] std::string unquoted(std::string_view word) {
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t' || word.front() == '\n')) {
        word.remove_prefix(1);
    }
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t' || word.back() == '\n')) {
        word.remove_suffix(1);
    }
    const char quote = word.empty() ? '\0' : word.front();
    if (word.size() < 2 || word.back() != quote || (quote != '\'' && quote != '"')) {
        return std::string(word);
    }
    std::string out;
    for (std::size_t i = 1; i + 1 < word.size(); ++i) {
        out += word[i];
        if (word[i] == quote && word[i + 1] == quote) ++i;
    }
    return out;
}

[[nodiscard]] table_arguments read_arguments(int count, const char* const* words) {
    table_arguments out;
    bool chosen = false;
    for (int i = 3; i < count; ++i) {
        const std::string_view word = words[i];
        const std::size_t sign = word.find('=');
        const std::string first = unquoted(word.substr(0, sign));
        const bool quoted = word.find_first_of("'\"") < sign;
        if (sign == word.npos || quoted) {
            out.files.push_back(unquoted(word));
            continue;
        }
        const std::string value = unquoted(word.substr(sign + 1));
        if (first == "event") {
            out.event = value;
            if (!chosen) out.kind = table_kind::event;
        } else if (first == "table") {
            chosen = false;
            std::string names;
            for (std::size_t k = 0; k <= static_cast<std::size_t>(table_kind::clocks); ++k) {
                const auto name = name_of(static_cast<table_kind>(k));
                names += (names.empty() ? "" : ", ") + std::string(name);
                if (name != value) continue;
                out.kind = static_cast<table_kind>(k);
                chosen = true;
            }
            if (!chosen) throw std::runtime_error("table='" + value + "' is none of " + names);
        } else {
            throw std::runtime_error("'" + first + "=' is neither table= nor event=");
        }
    }
    if (out.files.empty()) {
        throw std::runtime_error("no file: USING trace_ring('FILE', ..., table=NAME, event=NAME)");
    }
    return out;
}

// --- Tables --------------------------------------------------------------------------------------
/// A question that a join, or a subquery, asks again and again.
struct lookup {
    unsigned times = 0;
    std::shared_ptr<const field_index> index;
    bool too_large = false;
};

struct table : sqlite3_vtab {
    sqlite3* in = nullptr;
    std::shared_ptr<connection> shared;
    std::shared_ptr<trace_set> traces;
    table_shape shape;
    std::deque<plan> plans;
    std::size_t open = 0;                     // cursors
    std::map<row_key, std::int64_t> numbers;  // of rows whose keys are no numbers

    /// The number of a row: the same in each scan. SQLite asks for it if a query joins conditions
    /// by OR: it then reads by each of them, and passes over the rows that it met before.
    [[nodiscard]] std::int64_t number_of(const row_key& key) {
        constexpr unsigned file_bits = 6, lane_bits = 16, place_bits = 8, at_bits = 33;
        static_assert(file_bits + lane_bits + place_bits + at_bits == 63);
        const bool fits = key[0] >> file_bits == 0 && key[1] >> lane_bits == 0 &&
                          key[2] >> at_bits == 0 && key[3] >> place_bits == 0 &&
                          std::all_of(key.begin() + 4, key.end(), [](auto v) { return v == 0; });
        if (fits) {
            return static_cast<std::int64_t>(
                ((key[0] << lane_bits | key[1]) << at_bits | key[2]) << place_bits | key[3]);
        }
        const auto next = -static_cast<std::int64_t>(numbers.size()) - 1;
        return numbers.emplace(key, next).first->second;
    }
};

struct cursor : sqlite3_vtab_cursor {
    explicit cursor(table& of) : sqlite3_vtab_cursor{}, from(of) {}
    table& from;
    std::unique_ptr<rows> now;
    bool ended = true;
    std::int64_t number = 0;
    std::optional<std::int64_t> row;  // this row's number, if SQLite has asked
};

/// Throws `interrupted` if the query is to stop. SQLite itself looks only between rows.
[[nodiscard]] std::function<void()> looks_at(table& of) {
    return [in = of.in, shared = of.shared, looks = 0U]() mutable {
        if (shared->stop && shared->stop()) throw interrupted{};
        // A statement that starts while the flag is set fails with it. Now and then it is so long
        // that a progress handler is called, which may set the flag.
        constexpr unsigned often = 32;
        const char* const text =
            ++looks % often != 0
                ? "SELECT 1"
                : "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n LIMIT 200) "
                  "SELECT count(*) FROM n";
        sqlite3_stmt* probe = nullptr;
        int rc = sqlite3_prepare_v2(in, text, -1, &probe, nullptr);
        if (rc == SQLITE_OK) rc = sqlite3_step(probe);
        sqlite3_finalize(probe);
        if (rc == SQLITE_INTERRUPT) throw interrupted{};
    };
}

[[nodiscard]] std::unique_ptr<rows> open_rows(table& of, const plan& how, sqlite3_value** values) {
    const table_shape& shape = of.shape;
    trace_set& in = *of.traces;
    auto look = looks_at(of);
    switch (shape.kind) {
        case table_kind::records:
        case table_kind::event:
        case table_kind::references:
            return std::make_unique<record_rows>(
                shape, how, scan_all(shape, how, in, *of.shared, values, look));
        case table_kind::counters:
        case table_kind::flows:
            return std::make_unique<value_rows>(shape, shape.kind == table_kind::flows,
                                                scan_all(shape, how, in, *of.shared, values, look));
        case table_kind::spans: {
            std::vector<reduce::filter> whats;
            for (const auto& file : in.files()) {
                whats.push_back(filter_for(how, shape, *file, values, look));
            }
            return std::make_unique<span_rows>(shape, in, std::move(whats), *of.shared);
        }
#if defined(TRACE_REDUCE_SYMBOLS)
        case table_kind::branches:
            return read_branches(in, *of.shared, std::move(look));
        case table_kind::allocations:
            return read_allocations(in, *of.shared, std::move(look));
#else
        case table_kind::branches:
        case table_kind::allocations:
            throw std::runtime_error(std::string(name_of(shape.kind)) +
                                     ": this was built without elfutils and fmt");
#endif
        case table_kind::losses:
            return read_losses(in, *of.shared, std::move(look));
        default:
            return std::make_unique<list_rows>(list_of(shape.kind, in, how.counts, look));
    }
}

/// The term by which a join may look rows up: a field that equals one value. Null: there is none.
[[nodiscard]] const term* lookup_of(const table_shape& shape, const plan& how) {
    if (shape.kind != table_kind::event || how.ordered) return nullptr;
    for (const term& each : how.terms) {
        const bool equal = each.sign == SQLITE_INDEX_CONSTRAINT_EQ && !each.set;
        if (equal && shape.columns[each.column].what == cell::field) return &each;
    }
    return nullptr;
}

/// The rows by an index, which is made when a question comes for the fourth time; null: without.
[[nodiscard]] std::unique_ptr<rows> look_up(cursor& at, int number, const plan& how,
                                            sqlite3_value** values) {
    constexpr unsigned few = 3;
    table& of = at.from;
    const term* const by = lookup_of(of.shape, how);
    if (by == nullptr) return nullptr;
    auto& kept = of.shared->kept(&of, number);
    if (!kept) kept = std::make_shared<lookup>();
    lookup& known = *std::static_pointer_cast<lookup>(kept);
    if (known.too_large || ++known.times <= few) return nullptr;
    if (!known.index) {
        known.index = field_index::of(
            scan_all(of.shape, plan(), *of.traces, *of.shared, nullptr, looks_at(of)), of.shape,
            by->column);
        known.too_large = !known.index;
        if (known.too_large) return nullptr;
    }
    return std::make_unique<index_rows>(of.shape, known.index, values[by - how.terms.data()]);
}

int connect(sqlite3* in, void* shared, int count, const char* const* words, sqlite3_vtab** out,
            char** problem) {
    return guarded(problem, [&] {
        const auto wanted = read_arguments(count, words);
        auto made = std::make_unique<table>();
        made->in = in;
        made->shared = *static_cast<std::shared_ptr<connection>*>(shared);
        made->traces = made->shared->open(wanted.files);
        made->shape = shape_of(*made->traces, wanted.kind, wanted.event);
        const int rc = sqlite3_declare_vtab(in, made->shape.declaration().c_str());
        if (rc != SQLITE_OK) {
            *problem = message(sqlite3_errmsg(in));
            return rc;
        }
        *out = made.release();
        return SQLITE_OK;
    });
}
int disconnect(sqlite3_vtab* of) {
    delete static_cast<table*>(of);
    return SQLITE_OK;
}

int best_index(sqlite3_vtab* of, sqlite3_index_info* asked) {
    auto& in = *static_cast<table*>(of);
    return guarded(&in.zErrMsg, [&] {
        plan made = choose(*asked, in.shape, *in.traces);
        auto at = std::find(in.plans.begin(), in.plans.end(), made);
        if (at == in.plans.end()) at = in.plans.insert(in.plans.end(), std::move(made));
        asked->idxNum = static_cast<int>(at - in.plans.begin());
        asked->idxStr = message(at->text(in.shape));
        asked->needToFreeIdxStr = 1;
        return SQLITE_OK;
    });
}

int open(sqlite3_vtab* of, sqlite3_vtab_cursor** out) {
    auto& in = *static_cast<table*>(of);
    return guarded(&in.zErrMsg, [&] {
        auto made = std::make_unique<cursor>(in);
        in.shared->enter(*in.traces);
        if (in.open++ == 0) in.numbers.clear();
        *out = made.release();
        return SQLITE_OK;
    });
}
int close(sqlite3_vtab_cursor* of) {
    auto* const closed = static_cast<cursor*>(of);
    --closed->from.open;
    closed->from.shared->leave();
    delete closed;
    return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* of) {
    auto& at = *static_cast<cursor*>(of);
    return guarded(&at.from.zErrMsg, [&] {
        at.ended = !at.now->next();
        ++at.number;
        at.row.reset();
        return SQLITE_OK;
    });
}
int filter(sqlite3_vtab_cursor* of, int number, const char*, int, sqlite3_value** values) {
    auto& at = *static_cast<cursor*>(of);
    return guarded(&at.from.zErrMsg, [&] {
        const plan& how = at.from.plans.at(static_cast<std::size_t>(number));
        at.now = look_up(at, number, how, values);
        if (!at.now) at.now = open_rows(at.from, how, values);
        at.number = 0;
        at.row.reset();
        at.ended = !at.now->next();
        return SQLITE_OK;
    });
}
int eof(sqlite3_vtab_cursor* of) {
    return static_cast<cursor*>(of)->ended ? 1 : 0;
}
int column(sqlite3_vtab_cursor* of, sqlite3_context* to, int which) {
    auto& at = *static_cast<cursor*>(of);
    return guarded(&at.from.zErrMsg, [&] {
        at.now->column(to, static_cast<std::size_t>(which));
        return SQLITE_OK;
    });
}
int row_number(sqlite3_vtab_cursor* of, sqlite3_int64* out) {
    auto& at = *static_cast<cursor*>(of);
    return guarded(&at.from.zErrMsg, [&] {
        if (!at.row) {
            const auto key = at.now->key();
            at.row = key ? at.from.number_of(*key) : at.number;
        }
        *out = *at.row;
        return SQLITE_OK;
    });
}

constexpr sqlite3_module module = [] {
    sqlite3_module made{};
    made.iVersion = 1;
    made.xCreate = connect;
    made.xConnect = connect;
    made.xBestIndex = best_index;
    made.xDisconnect = disconnect;
    made.xDestroy = disconnect;
    made.xOpen = open;
    made.xClose = close;
    made.xFilter = filter;
    made.xNext = next;
    made.xEof = eof;
    made.xColumn = column;
    made.xRowid = row_number;
    return made;
}();

// --- trace_ring_open -----------------------------------------------------------------------------
/// Whether a temporary table has this name, and is not one of these.
[[nodiscard]] bool is_taken(sqlite3* in, const std::string& name) {
    sqlite3_stmt* find = nullptr;
    int rc = sqlite3_prepare_v2(in,
                                "SELECT 1 FROM sqlite_temp_schema WHERE name = ?1 COLLATE NOCASE "
                                "AND coalesce(sql, '') NOT LIKE '% USING trace_ring(%'",
                                -1, &find, nullptr);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(find, 1, name.c_str(), -1, SQLITE_TRANSIENT);
        rc = sqlite3_step(find);
    }
    sqlite3_finalize(find);
    return rc == SQLITE_ROW;
}

/// trace_ring_open(FILE, ..., 'prefix=PREFIX'): makes all tables of these files, instead of those
/// that an earlier call made by the same names. Returns their names, one in each line.
void open_all(sqlite3_context* to, int count, sqlite3_value** values) {
    char* problem = nullptr;
    auto& shared = *static_cast<std::shared_ptr<connection>*>(sqlite3_user_data(to));
    sqlite3* const in = sqlite3_context_db_handle(to);
    const int rc = guarded(&problem, [&] {
        std::vector<std::string> files;
        std::string prefix;
        for (int i = 0; i < count; ++i) {
            const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
            if (text == nullptr) throw std::runtime_error("trace_ring_open: a file's name is null");
            const std::string_view word = text;
            if (word.starts_with("prefix=")) {
                prefix = word.substr(7);
            } else {
                files.emplace_back(word);
            }
        }
        if (files.empty()) throw std::runtime_error("trace_ring_open: no file");
        const auto traces = shared->open(files);
        traces->look();
        std::string names;
        for (const auto& shape : all_shapes(*traces)) {
            const std::string name = prefix + shape.name;
            if (is_taken(in, name)) {
                throw std::runtime_error("trace_ring_open: there is a table '" + name +
                                         "' already: give a prefix, 'prefix=NAME.'");
            }
            std::string text = "DROP TABLE IF EXISTS temp." + quoted(name) +
                               ";CREATE VIRTUAL TABLE temp." + quoted(name) + " USING trace_ring(";
            for (const auto& file : files) {
                char* const word = sqlite3_mprintf("%Q,", file.c_str());
                text += word;
                sqlite3_free(word);
            }
            text += "table=" + std::string(name_of(shape.kind));
            if (!shape.event.empty()) {
                char* const word = sqlite3_mprintf(",event=%Q", shape.event.c_str());
                text += word;
                sqlite3_free(word);
            }
            text += ')';
            if (sqlite3_exec(in, text.c_str(), nullptr, nullptr, &problem) != SQLITE_OK) {
                throw std::runtime_error(problem != nullptr ? problem : sqlite3_errmsg(in));
            }
            if (!names.empty()) names += '\n';
            names += name;
        }
        result_text(to, names);
        return SQLITE_OK;
    });
    if (rc != SQLITE_OK) {
        if (problem != nullptr) {
            sqlite3_result_error(to, problem, -1);
        } else {
            sqlite3_result_error_code(to, rc);
        }
    }
    sqlite3_free(problem);
}

/// trace_ring_strict(): from now on this connection does not take a mistyped name in double quotes
/// for a text.
void be_strict(sqlite3_context* to, int, sqlite3_value**) {
    sqlite3* const in = sqlite3_context_db_handle(to);
    int rc = sqlite3_db_config(in, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    if (rc == SQLITE_OK) rc = sqlite3_db_config(in, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
    if (rc != SQLITE_OK) sqlite3_result_error_code(to, rc);
}

}  // namespace

int add_to(sqlite3* to, std::shared_ptr<connection> shared) {
    const auto drop = [](void* of) { delete static_cast<std::shared_ptr<connection>*>(of); };
    auto* const kept = new (std::nothrow) std::shared_ptr<connection>(shared);
    if (kept == nullptr) return SQLITE_NOMEM;
    int rc = sqlite3_create_module_v2(to, "trace_ring", &module, kept, drop);
    if (rc != SQLITE_OK) return rc;
    rc = sqlite3_create_function_v2(to, "trace_ring_strict", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                    nullptr, be_strict, nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) return rc;
    auto* const again = new (std::nothrow) std::shared_ptr<connection>(std::move(shared));
    if (again == nullptr) return SQLITE_NOMEM;
    // SQL in a database's schema must not make it read files.
    return sqlite3_create_function_v2(to, "trace_ring_open", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                      again, open_all, nullptr, nullptr, drop);
}

}  // namespace trace_reduce::sql
