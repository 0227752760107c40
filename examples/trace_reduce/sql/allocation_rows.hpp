#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include "rows.hpp"
#include "traces.hpp"
namespace trace_reduce::sql {
[[nodiscard]] inline std::unique_ptr<rows> read_allocations(trace_set&, connection&,
                                                            std::function<void()>) {
    throw std::runtime_error("later");
}
}  // namespace trace_reduce::sql
