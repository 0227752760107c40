// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which records of CPTRAP files are shown: by type and code, and by a condition. Lost records and
/// damage are always shown.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>

#include "choice.hpp"
#include "condition.hpp"

namespace trace_reduce {

namespace record = trace_ring::record;
namespace reduce = trace_ring::reduce;

class spool_choice {
public:
    /// Everything.
    spool_choice() = default;
    /// `types` and `codes` are sets as --type and --code take them, which were checked. `where` is
    /// the text of `condition`; null: no condition.
    spool_choice(std::vector<std::string> types, std::vector<std::string> codes,
                 std::string where = {}, std::shared_ptr<const spool_condition> condition = {})
        : types_(std::move(types)),
          codes_(std::move(codes)),
          where_(std::move(where)),
          by_type_(types_, codes_),
          condition_(std::move(condition)) {}

    [[nodiscard]] bool takes(const reduce::spool_item& item) const {
        if (item.what != reduce::spool_item::kind::record ||
            item.record.type == record::cptrap_type::lost) {
            return true;  // also one that no loss can be read from
        }
        return by_type_.takes(item.record) && (condition_ == nullptr || condition_->holds(item));
    }
    /// As a person types it in --browse: `type interface code 0B where length > 20`.
    [[nodiscard]] std::string text() const {
        std::string out;
        const auto add = [&out](const char* word, const std::string& what) {
            if (!out.empty()) out += ' ';
            out += word;
            out += what;
        };
        for (const auto& each : types_) add("type ", each);
        for (const auto& each : codes_) add("code ", each);
        if (!where_.empty()) add("where ", where_);
        return out;
    }

private:
    std::vector<std::string> types_{};
    std::vector<std::string> codes_{};
    std::string where_{};
    record_choice by_type_{};
    std::shared_ptr<const spool_condition> condition_{};
};

}  // namespace trace_reduce
