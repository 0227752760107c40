// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "allocation_rows.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heap_recorder/report/profile.hpp>
#include <heap_recorder/report/symbols.hpp>

#include "record_cells.hpp"

namespace trace_reduce::sql {

namespace {

class allocation_rows final : public rows {
public:
    allocation_rows(trace_set& in, connection& by, std::function<void()> look)
        : files_(in.files()), by_(by), look_(std::move(look)) {}

    [[nodiscard]] bool next() override {
        if (!done_.empty()) done_.pop_front();
        while (done_.empty()) {
            if (!reader_) {
                if (number_ == files_.size()) return false;
                begin();
            }
            if (!at_end_ && reader_->step()) continue;
            if (!std::exchange(at_end_, true)) {
                finish();
            } else {
                reader_.reset();
                profile_.reset();
                ++number_;
            }
        }
        return true;
    }
    void column(sqlite3_context* to, std::size_t which) override {
        const heap::block_life& now = done_.front();
        const auto& block = now.of;
        const bool ended = now.ended;
        switch (which) {
            case 0:
                return result_unsigned(to, block.born);
            case 1:
                if (ended) result_unsigned(to, now.end);
                return;
            case 2:
                if (ended && now.end >= block.born) result_unsigned(to, now.end - block.born);
                return;
            case 3:
                return result_text(to, ended ? "freed" : "live");
            case 4:
                return result_text(to, heap::call_names[block.call]);
            case 5:
                return result_unsigned(to, now.address);
            case 6:
                return result_unsigned(to, block.bytes);
            case 7:
                return result_unsigned(to, block.thread);
            case 8:
                return result_unsigned(to, now.process->pid);
            case 9:
                if (ended) result_text(to, heap::call_names[static_cast<std::size_t>(now.by)]);
                return;
            case 10:
                if (ended) result_unsigned(to, now.thread);
                return;
            case 11:
                return stack(to, block.stack);
            case 12:
                if (ended) stack(to, now.stack);
                return;
            case 13:
                return sqlite3_result_int(to, block.inherited ? 1 : 0);
            default:
                return result_bytes_or_text(to, files_[number_]->path());
        }
    }

private:
    void begin() {
        traced_file& in = *files_[number_];
        constexpr std::uint64_t short_life = 0;  // nothing here asks for it
        at_end_ = false;
        reader_.emplace(in.trace(), in.path(), stacks_, short_life,
                        [this](const heap::block_life& one) { done_.push_back(one); });
        reader_->begin(in.until(), look_);
    }
    void finish() {
        // The rows that are left refer to its processes.
        profile_ = reader_->finish();
        if (!by_.damaged) return;
        for (const auto& each : files_[number_]->trace().damages()) {
            by_.damaged(profile_->file, each.offset, each.what);
        }
    }
    /// "inner < outer < outermost", each with its line if it is known.
    void stack(sqlite3_context* to, heap::stack_id id) {
        std::string text;
        for (const auto& frame : stacks_.stack(id)) {
            for (const auto& one : symbols_.find(stacks_, frame)) {
                if (!text.empty()) text += " < ";
                text += one.name();
                if (!one.file.empty()) text += " " + one.where();
            }
        }
        if (!text.empty()) result_bytes_or_text(to, text);
    }

    std::vector<std::shared_ptr<traced_file>> files_;
    connection& by_;
    std::function<void()> look_;
    heap::stack_table stacks_;
    heap::symbolizer symbols_;
    std::optional<heap::profile_reader> reader_;
    std::optional<heap::file_profile> profile_;
    bool at_end_ = false;
    std::size_t number_ = 0;
    std::deque<heap::block_life> done_;
};

}  // namespace

std::unique_ptr<rows> read_allocations(trace_set& in, connection& by, std::function<void()> look) {
    return std::make_unique<allocation_rows>(in, by, std::move(look));
}

}  // namespace trace_reduce::sql
