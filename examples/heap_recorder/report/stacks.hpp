// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// From addresses in a process to places in files: which object lay where, and call stacks as lists
/// of (object, address in it), which are the same in every process and across a dlclose.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ledger.hpp"

namespace heap {

/// A program or library, as a file.
struct object_file {
    std::string path;
    std::string build_id;  ///< bytes; empty: unknown

    friend auto operator<=>(const object_file&, const object_file&) = default;
};

using object_id = std::uint32_t;  ///< 0: no object is known to lie there

/// A return address: in which object, and where by the addresses in its file.
struct frame {
    object_id object = 0;
    std::uint64_t address = 0;

    friend bool operator==(const frame&, const frame&) = default;
};

/// What lies where in one process, now.
class code_map {
public:
    /// An object is loaded at [start, end), and replaces anything that was there.
    void add(std::uint64_t start, std::uint64_t end, std::uint64_t bias, object_id object) {
        if (end <= start) return;
        std::erase_if(ranges_, [&](const range& r) { return r.start < end && start < r.end; });
        ranges_.push_back({start, end, bias, object});
        std::sort(ranges_.begin(), ranges_.end(),
                  [](const range& a, const range& b) { return a.start < b.start; });
    }

    /// Where a return address belongs: by the byte before it, which is in the call.
    [[nodiscard]] frame find(std::uint64_t address) const {
        auto after =
            std::upper_bound(ranges_.begin(), ranges_.end(), address - 1,
                             [](std::uint64_t value, const range& r) { return value < r.start; });
        if (address == 0 || after == ranges_.begin()) return {0, address};
        const range& r = *--after;
        if (address - 1 >= r.end) return {0, address};
        return {r.object, address - r.bias};
    }

private:
    struct range {
        std::uint64_t start = 0, end = 0, bias = 0;
        object_id object = 0;
    };
    std::vector<range> ranges_;
};

/// Every object and every call stack of a report, each once.
class stack_table {
public:
    stack_table() { objects_.emplace_back(); }

    [[nodiscard]] object_id intern(const object_file& file) {
        const auto [at, is_new] =
            object_ids_.try_emplace(file, static_cast<object_id>(objects_.size()));
        if (is_new) objects_.push_back(file);
        return at->second;
    }
    [[nodiscard]] stack_id intern(std::span<const frame> stack) {
        std::vector<frame> key(stack.begin(), stack.end());
        const auto [at, is_new] =
            stack_ids_.try_emplace(std::move(key), static_cast<stack_id>(stacks_.size()));
        if (is_new) stacks_.push_back(&at->first);
        return at->second;
    }

    [[nodiscard]] const object_file& object(object_id id) const { return objects_.at(id); }
    [[nodiscard]] std::span<const frame> stack(stack_id id) const { return *stacks_.at(id); }
    [[nodiscard]] std::size_t size() const noexcept { return stacks_.size(); }

private:
    struct hash {
        std::size_t operator()(const std::vector<frame>& stack) const noexcept {
            std::uint64_t sum = stack.size();
            for (const auto& f : stack) {
                sum = (sum ^ f.address ^ std::uint64_t{f.object} << 48) * 0x9E3779B97F4A7C15;
                sum ^= sum >> 29;
            }
            return static_cast<std::size_t>(sum);
        }
    };
    std::vector<object_file> objects_;
    std::map<object_file, object_id> object_ids_;
    std::unordered_map<std::vector<frame>, stack_id, hash> stack_ids_;
    std::vector<const std::vector<frame>*> stacks_;
};

/// The stacks of one process as they come in records: raw addresses, looked up once each.
class process_stacks {
public:
    explicit process_stacks(stack_table& table) : table_(&table) {}

    void add(std::uint64_t start, std::uint64_t end, std::uint64_t bias, const object_file& file) {
        map_.add(start, end, bias, table_->intern(file));
        known_.clear();
    }
    [[nodiscard]] stack_id find(std::span<const std::uint64_t> addresses) {
        raw_.assign(addresses.begin(), addresses.end());
        if (const auto at = known_.find(raw_); at != known_.end()) return at->second;
        frames_.clear();
        for (const auto address : raw_) frames_.push_back(map_.find(address));
        const stack_id id = table_->intern(std::span<const frame>(frames_));
        known_.emplace(raw_, id);
        return id;
    }

private:
    struct hash {
        std::size_t operator()(const std::vector<std::uint64_t>& stack) const noexcept {
            std::uint64_t sum = stack.size();
            for (const auto address : stack) {
                sum = (sum ^ address) * 0x9E3779B97F4A7C15;
                sum ^= sum >> 29;
            }
            return static_cast<std::size_t>(sum);
        }
    };
    stack_table* table_;
    code_map map_;
    std::unordered_map<std::vector<std::uint64_t>, stack_id, hash> known_;
    std::vector<std::uint64_t> raw_;
    std::vector<frame> frames_;
};

}  // namespace heap
