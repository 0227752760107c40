// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file The floor of SQL on a trace: a virtual table of three columns whose values cost nothing.
/// `CREATE VIRTUAL TABLE t USING empty_table(ROWS)`.

#include <sqlite3ext.h>

#include <cstdint>
#include <cstdlib>

SQLITE_EXTENSION_INIT1

namespace {

struct table : sqlite3_vtab {
    std::int64_t rows = 0;
};
struct cursor : sqlite3_vtab_cursor {
    std::int64_t at = 0;
};

int connect(sqlite3* to, void*, int count, const char* const* words, sqlite3_vtab** out, char**) {
    auto* const made = new table{};
    if (count > 3) made->rows = std::atoll(words[3]);
    *out = made;
    return sqlite3_declare_vtab(to, "CREATE TABLE t(id INTEGER, price REAL, side INTEGER)");
}
int disconnect(sqlite3_vtab* of) {
    delete static_cast<table*>(of);
    return SQLITE_OK;
}
int best_index(sqlite3_vtab*, sqlite3_index_info*) {
    return SQLITE_OK;
}
int open(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
    *out = new cursor{};
    return SQLITE_OK;
}
int close(sqlite3_vtab_cursor* of) {
    delete static_cast<cursor*>(of);
    return SQLITE_OK;
}
int filter(sqlite3_vtab_cursor* of, int, const char*, int, sqlite3_value**) {
    static_cast<cursor*>(of)->at = 0;
    return SQLITE_OK;
}
int next(sqlite3_vtab_cursor* of) {
    ++static_cast<cursor*>(of)->at;
    return SQLITE_OK;
}
int eof(sqlite3_vtab_cursor* of) {
    return static_cast<cursor*>(of)->at >= static_cast<table*>(of->pVtab)->rows ? 1 : 0;
}
int column(sqlite3_vtab_cursor* of, sqlite3_context* to, int which) {
    const std::int64_t at = static_cast<cursor*>(of)->at;
    if (which == 1) {
        sqlite3_result_double(to, static_cast<double>(at % 1000));
    } else {
        sqlite3_result_int64(to, which == 0 ? at : at % 50);
    }
    return SQLITE_OK;
}
int row_number(sqlite3_vtab_cursor* of, sqlite3_int64* out) {
    *out = static_cast<cursor*>(of)->at;
    return SQLITE_OK;
}

}  // namespace

extern "C" int sqlite3_emptytable_init(sqlite3* to, char**, const sqlite3_api_routines* api) {
    SQLITE_EXTENSION_INIT2(api)
    static sqlite3_module module{};
    module.xCreate = module.xConnect = connect;
    module.xDisconnect = module.xDestroy = disconnect;
    module.xBestIndex = best_index;
    module.xOpen = open;
    module.xClose = close;
    module.xFilter = filter;
    module.xNext = next;
    module.xEof = eof;
    module.xColumn = column;
    module.xRowid = row_number;
    return sqlite3_create_module(to, "empty_table", &module, nullptr);
}
