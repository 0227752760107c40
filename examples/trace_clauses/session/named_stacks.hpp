// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Stacks as texts, and those that are parts of keys.
/// @code
///   named_stacks stacks(names);
///   stacks.text(pid, time, addresses, true);  // "[0x401136 <main+0x12 shop.c:33> ...]"
///   const std::uint32_t number = stacks.number(pid, time, addresses);
/// @endcode

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/item/record_view.hpp>

#include "stack_names.hpp"

namespace trace_clauses {

class named_stacks {
public:
    using addresses = trace_ring::reduce::field_value;

    /// `names` must outlive it.
    explicit named_stacks(stack_names& names) : names_(names) {}

    /// All addresses, or those alone that have no name.
    [[nodiscard]] std::string text(::pid_t process, std::uint64_t time, const addresses& stack,
                                   bool with_addresses) {
        trace_ring::exporter::text_buffer made;
        made += '[';
        for (std::size_t i = 0; i < stack.size(); ++i) {
            if (i != 0) made += ' ';
            const auto name = names_.name_of(process, stack.at(i).u64(), time);
            if (with_addresses || name.empty())
                trace_ring::exporter::text_writer::append_value(made, stack.at(i));
            if (name.empty()) continue;
            if (with_addresses) made += ' ';
            made += '<';
            trace_ring::exporter::impl::append_escaped(made, name, 0);
            made += '>';
        }
        made += ']';
        return std::string(made.view());
    }
    /// The number of a stack's text without the addresses that have names: the same in all
    /// processes. It is named when it comes, while that is known.
    [[nodiscard]] std::uint32_t number(::pid_t process, std::uint64_t time,
                                       const addresses& stack) {
        key_ = {process, names_.changes_of(process, time), {}};
        for (std::size_t i = 0; i < stack.size(); ++i) key_.stack.push_back(stack.at(i).u64());
        const auto found = numbers_.find(key_);
        if (found != numbers_.end()) return found->second;
        std::string named = text(process, time, stack, false);
        const auto [known, is_new] =
            by_text_.try_emplace(std::move(named), static_cast<std::uint32_t>(texts_.size()));
        if (is_new) texts_.push_back(known->first);
        return numbers_.emplace(key_, known->second).first->second;
    }
    [[nodiscard]] const std::string& text_of(std::uint32_t number) const {
        return texts_.at(number);
    }

private:
    struct key {
        ::pid_t process = 0;
        std::uint64_t changes = 0;  // of the process
        std::vector<std::uint64_t> stack;

        friend bool operator==(const key&, const key&) = default;
    };
    struct hash {
        [[nodiscard]] std::size_t operator()(const key& of) const noexcept {
            constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
            std::uint64_t made = static_cast<std::uint64_t>(of.process) * odd ^ of.changes;
            for (const std::uint64_t each : of.stack) made = (made ^ made >> 29 ^ each) * odd;
            return made;
        }
    };

    stack_names& names_;
    key key_;
    std::unordered_map<key, std::uint32_t, hash> numbers_;
    std::unordered_map<std::string, std::uint32_t> by_text_;
    std::vector<std::string> texts_;
};

}  // namespace trace_clauses
