// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "traces.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <variant>

#include <trace_ring/instrument/reference_packing.hpp>
#include <trace_ring/policy/clock/counter.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/reduce/source/format_error.hpp>
#include <trace_ring/reduce/statistics.hpp>

#include "../core/core_traces.hpp"
#include "../core/elf_core.hpp"

namespace trace_reduce::sql {

namespace {

/// The clock that a trace's ticks are of, now; nothing if this machine does not have it.
std::uint64_t ticks_now(std::uint32_t clock) {
    using trace_ring::clock::counter;
    using trace_ring::clock::monotonic;
    if (clock == monotonic::kind) return monotonic::now();
    if (clock == counter::kind) return counter::now();
    return ~std::uint64_t{0};
}

[[nodiscard]] bool is_core(const reduce::source& file) {
    char magic[4]{};
    return file.read(0, magic, sizeof magic) == sizeof magic &&
           std::string_view(magic, sizeof magic) == "\177ELF";
}

}  // namespace

traced_file::traced_file(std::string path, reduce::source from)
    : path_(std::move(path)),
      trace_(reduce::trace_file::of_source(std::move(from),
                                           &trace_ring::instrument::reference_packing)) {
    struct stat there {};
    const int fd = trace_.about().bytes().fd();
    if (fd >= 0 && ::fstat(fd, &there) == 0) {
        device_ = there.st_dev;
        inode_ = there.st_ino;
    }
    look();
}

bool traced_file::is_replaced() const noexcept {
    struct stat there {};
    return inode_ != 0 && ::stat(path_.c_str(), &there) == 0 &&
           (there.st_dev != device_ || there.st_ino != inode_);
}

void traced_file::look() {
    trace_.refresh();
    time_ = trace_.time();
    names_.reset();
    until_ = ~std::uint64_t{0};
    if (!trace_.live()) return;
    std::uint64_t now = ticks_now(trace_.about().clock());
    if (now == until_) return;
    now += time_.eras().shift(~std::size_t{0});
    // A program on another machine may be ahead: then its clock does not say what is there now.
    const auto taken = time_.snapshots();
    if (taken.empty() || taken.back().ticks <= now) until_ = now;
}

names::code_names& traced_file::names() {
    if (!names_) names_ = std::make_unique<names::code_names>(trace_);
    return *names_;
}

trace_set::trace_set(const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
        auto file = reduce::source::open(path);
        if (!is_core(file)) {
            files_.push_back(std::make_shared<traced_file>(path, std::move(file)));
            continue;
        }
        const elf_core core(file);
        const core_traces found(core);
        for (const auto& each : found.traces()) {
            files_.push_back(std::make_shared<traced_file>(each.bytes.name(), each.bytes));
        }
        if (found.traces().empty()) {
            throw trace_ring::format_error(path, 0, "no recorder's trace in this core dump");
        }
    }
}

void trace_set::look() {
    for (auto& each : files_) {
        if (each->is_replaced()) {
            each = std::make_shared<traced_file>(each->path(), reduce::source::open(each->path()));
        } else {
            each->look();
        }
    }
}

void report_if_damaged(const damage_report& to, const traced_file& in, const reduce::item& what) {
    if (!to) return;
    if (const auto* record = std::get_if<reduce::record_view>(&what)) {
        if (reduce::is_damage(in.trace().about(), *record)) {
            to(in.path(), record->offset(), record->fault());
        }
    } else if (const auto* loss = std::get_if<reduce::loss_item>(&what)) {
        if (loss->cause == trace_ring::loss_cause::damaged) to(in.path(), loss->offset, loss->what);
    }
}

std::shared_ptr<trace_set> connection::open(const std::vector<std::string>& paths) {
    auto& known = sets_[paths];
    auto made = known.lock();
    if (!made) known = made = std::make_shared<trace_set>(paths);
    for (const auto& file : made->files()) {
        for (const auto& each : file->trace().damages()) {
            if (damaged) damaged(file->path(), each.offset, each.what);
        }
    }
    return made;
}

void connection::enter(trace_set& set) {
    if (cursors_ == 0) ++queries_;
    if (set.looked_ != queries_) set.look();
    set.looked_ = queries_;
    ++cursors_;
}

}  // namespace trace_reduce::sql
