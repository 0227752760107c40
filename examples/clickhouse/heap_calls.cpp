// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record_table.hpp"

namespace clickhouse {

void record_table::enter_heap_calls() {
    struct call {
        std::string_view event;
        std::vector<std::string_view> fields;
    };
    const std::vector<std::string_view> sized{"size", "address"};
    const std::vector<call> calls{{"malloc", sized},
                                  {"new", sized},
                                  {"new_aligned", sized},
                                  {"calloc", {"count", "size", "address"}},
                                  {"realloc", {"old", "size", "address"}},
                                  {"reallocarray", {"old", "count", "size", "address"}},
                                  {"posix_memalign", sized},
                                  {"aligned_alloc", sized},
                                  {"memalign", sized},
                                  {"valloc", sized},
                                  {"pvalloc", sized},
                                  {"free", {"address"}},
                                  {"delete", {"address"}},
                                  {"free_sized", {"address"}},
                                  {"free_aligned_sized", {"address"}}};
    for (const call& each : calls) {
        for (const std::string_view field : each.fields) {
            const std::string name(each.event);
            std::string comment = name + '.' + std::string(field);
            if (field == "address" || field == "old") comment += " (address)";
            (void)column_for(name + '_' + std::string(field),
                             {"UInt64", 8, column_type::form::nullable}, std::move(comment));
        }
    }
}

}  // namespace clickhouse
