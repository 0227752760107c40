// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The rows of short tables, made as a whole when a query starts to read them, and of losses.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "rows.hpp"
#include "shape.hpp"
#include "traces.hpp"

namespace trace_reduce::sql {

/// Nothing is null.
using list_value = std::variant<std::monostate, std::int64_t, std::uint64_t, double, std::string>;
using list_row = std::vector<list_value>;

void result_list_value(sqlite3_context* to, const list_value& value);

class list_rows final : public rows {
public:
    explicit list_rows(std::vector<list_row> all) : all_(std::move(all)) {}

    [[nodiscard]] bool next() override { return ++at_ < all_.size(); }
    void column(sqlite3_context* to, std::size_t which) override {
        result_list_value(to, all_[at_][which]);
    }

private:
    std::vector<list_row> all_;
    std::size_t at_ = ~std::size_t{0};
};

/// The rows of events, fields, threads, processes or clocks. `count`: records of events are
/// counted, which reads the trace. `look` is called now and then, and may throw.
[[nodiscard]] std::vector<list_row> list_of(table_kind kind, trace_set& in, bool count,
                                            const std::function<void()>& look);

/// The rows of losses: also of damage, of records that cannot be interpreted, and of clocks that
/// jumped. They come as the trace is read.
[[nodiscard]] std::unique_ptr<rows> read_losses(trace_set& in, connection& by,
                                                std::function<void()> look);

}  // namespace trace_reduce::sql
