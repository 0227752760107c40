// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "branch_rows.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <branch_trace/report/branch_trace.hpp>

#include "record_cells.hpp"

namespace trace_reduce::sql {

namespace {

class branch_rows final : public rows {
public:
    branch_rows(trace_set& in, connection& by, std::function<void()> look)
        : files_(in.files()), by_(by), look_(std::move(look)) {}

    [[nodiscard]] bool next() override {
        constexpr std::uint64_t often = 4096;
        if (!done_.empty()) done_.pop_front();
        while (done_.empty()) {
            if (!reader_) {
                if (number_ == files_.size()) return false;
                traced_file& in = *files_[number_];
                code_.emplace();
                reader_.emplace(
                    in.trace(), in.path(), *code_,
                    [this](const branches::branch& one, const branches::branch_record& from) {
                        done_.push_back({one, from, reader_->threads()[one.thread]});
                    },
                    in.until());
            }
            if (++steps_ % often == 0) look_();
            if (reader_->step()) continue;
            finish();
        }
        return true;
    }
    void column(sqlite3_context* to, std::size_t which) override {
        const row& now = done_.front();
        const traced_file& in = *files_[number_];
        switch (which) {
            case 0:
                return cells_.time(to, in, now.from.ticks);
            case 1:
                return result_text(to, branches::name_of(now.branch.kind));
            case 2:
                if (now.from.from != 0) result_unsigned(to, now.from.from);
                return;
            case 3:
                if (now.from.to != 0) result_unsigned(to, now.from.to);
                return;
            case 4:
                return result_unsigned(to, now.by.thread);
            case 5:
                return result_unsigned(to, now.by.process);
            case 6:
                return result_unsigned(to, now.from.lane);
            case 7:
                return result_unsigned(to, now.from.position);
            case 8:
                return name(to, now.branch.from);
            case 9:
                return name(to, now.branch.to);
            default:
                return result_bytes_or_text(to, in.path());
        }
    }

private:
    struct row {
        branches::branch branch;
        branches::branch_record from;
        branches::traced_thread by;
    };

    void name(sqlite3_context* to, branches::place_id at) {
        if (at == 0) return;
        const auto& found = code_->names(at);
        if (!found.empty()) result_bytes_or_text(to, found.back().place());
    }
    void finish() {
        const auto sum = reader_->finish();
        if (by_.damaged) {
            for (const auto& each : sum.damages) by_.damaged(sum.file, each.offset, each.what);
        }
        reader_.reset();
        if (done_.empty()) ++number_;
    }

    std::vector<std::shared_ptr<traced_file>> files_;
    connection& by_;
    std::function<void()> look_;
    std::optional<branches::code> code_;
    std::optional<branches::branch_reader> reader_;
    std::size_t number_ = 0;
    std::uint64_t steps_ = 0;
    std::deque<row> done_;
    record_cells cells_;
};

}  // namespace

std::unique_ptr<rows> read_branches(trace_set& in, connection& by, std::function<void()> look) {
    return std::make_unique<branch_rows>(in, by, std::move(look));
}

}  // namespace trace_reduce::sql
