// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The traces that the tables of one connection read. Tables of the same files share them, and all
/// cursors of a query read them as they were when it started.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/reduce/trace_file.hpp>

#include "../names/code_names.hpp"

namespace trace_reduce::sql {

namespace reduce = trace_ring::reduce;

/// One file.
class traced_file {
public:
    /// `path`: its name, or the name of a trace in a core dump. Throws trace_ring::format_error.
    traced_file(std::string path, reduce::source from);
    traced_file(const traced_file&) = delete;
    traced_file& operator=(const traced_file&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] reduce::trace_file& trace() noexcept { return trace_; }
    [[nodiscard]] const reduce::trace_file& trace() const noexcept { return trace_; }
    /// The clocks as they were at the last look.
    [[nodiscard]] const reduce::timeline& time() const noexcept { return time_; }
    /// The last tick of records that were there at the last look.
    [[nodiscard]] std::uint64_t until() const noexcept { return until_; }
    /// Whether dates ascend with ticks, so that a range of dates is a range of ticks.
    [[nodiscard]] bool ascends() const noexcept {
        return time_.known() && time_.consistent() && time_.jumps().empty();
    }
    /// The names of functions. Reads the trace when it is first asked.
    [[nodiscard]] names::code_names& names();

    /// Reads the tables again.
    void look();
    /// Whether another file has taken its name.
    [[nodiscard]] bool is_replaced() const noexcept;

private:
    std::string path_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    reduce::trace_file trace_;
    reduce::timeline time_;
    std::uint64_t until_ = ~std::uint64_t{0};
    std::unique_ptr<names::code_names> names_;
};

/// The files of some tables.
class trace_set {
public:
    /// Trace files, and core dumps, which may have several traces. Throws std::system_error,
    /// trace_ring::format_error.
    explicit trace_set(const std::vector<std::string>& paths);

    [[nodiscard]] const std::vector<std::shared_ptr<traced_file>>& files() const noexcept {
        return files_;
    }
    /// Brings all of them up to date, and opens those that were replaced. Cursors keep what they
    /// have.
    void look();

private:
    friend class connection;
    std::vector<std::shared_ptr<traced_file>> files_;
    std::uint64_t looked_ = 0;  // in which query
};

/// The place that damage is reported to.
using damage_report =
    std::function<void(const std::string& file, std::uint64_t offset, std::string_view what)>;

/// Reports an item that is damage, or a record that cannot be read because of damage.
void report_if_damaged(const damage_report& to, const traced_file& in, const reduce::item& what);

/// What the tables of one connection share.
class connection {
public:
    /// The set of these files, which may be there already. Reports damage in their tables.
    [[nodiscard]] std::shared_ptr<trace_set> open(const std::vector<std::string>& paths);

    /// A cursor of a table of this set is opened, or closed. All that are open at the same time
    /// read the same state.
    void enter(trace_set& set);
    void leave() noexcept {
        if (--cursors_ == 0) kept_.clear();
    }
    /// What a table keeps for one of its plans until no cursor is open any more.
    [[nodiscard]] std::shared_ptr<void>& kept(const void* table, int plan) {
        return kept_[{table, plan}];
    }

    /// What is read reports damage here, if it is set.
    damage_report damaged;
    /// Asked regularly by what reads on without a row; true: stop.
    std::function<bool()> stop;

private:
    std::map<std::vector<std::string>, std::weak_ptr<trace_set>> sets_;
    std::uint64_t cursors_ = 0;
    std::uint64_t queries_ = 0;
    std::map<std::pair<const void*, int>, std::shared_ptr<void>> kept_;
};

}  // namespace trace_reduce::sql
