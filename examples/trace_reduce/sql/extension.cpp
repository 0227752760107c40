// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace_ring_sqlite.so: what SQLite calls when it loads the extension.

#include <exception>
#include <memory>
#include <utility>

#include "module.hpp"
#include "query_module.hpp"

extern "C" {

SQLITE_EXTENSION_INIT1

// The name that SQLite derives from the file's.
__attribute__((visibility("default"))) int sqlite3_traceringsqlite_init(
    sqlite3* to, char** problem, const sqlite3_api_routines* api) {
    SQLITE_EXTENSION_INIT2(api)
    try {
        return trace_reduce::sql::add_to(to, std::make_shared<trace_reduce::sql::connection>());
    } catch (const std::exception& error) {
        *problem = sqlite3_mprintf("%s", error.what());
        return SQLITE_ERROR;
    }
}

int trace_reduce_take_sqlite(sqlite3*, char**, const sqlite3_api_routines* api) {
    SQLITE_EXTENSION_INIT2(api)
    return SQLITE_OK;
}
}

namespace trace_reduce::sql {

int add_module(sqlite3* to, damage_report damaged, std::function<bool()> stop) {
    auto shared = std::make_shared<connection>();
    shared->damaged = std::move(damaged);
    shared->stop = std::move(stop);
    return add_to(to, std::move(shared));
}

}  // namespace trace_reduce::sql
