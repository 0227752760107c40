// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The files that trace-reduce reads, merged by their clocks' realtime, and the complaints about
/// them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "options.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;
namespace exporter = trace_ring::exporter;

/// Tells what is wrong, once for each place, and remembers the exit status.
class complaints {
public:
    void system(const std::string& what) {
        std::fprintf(stderr, "trace-reduce: %s\n", what.c_str());
        failed_ = true;
    }
    void damage(const std::string& file, std::uint64_t offset, std::string_view what) {
        constexpr std::uint64_t most = 20;
        if (++damages_ <= most) {
            std::fprintf(stderr, "trace-reduce: %s: offset %llu: %.*s\n", file.c_str(),
                         static_cast<unsigned long long>(offset), static_cast<int>(what.size()),
                         what.data());
        }
        if (damages_ == most + 1) {
            std::fputs("trace-reduce: more damage is shown in its place\n", stderr);
        }
    }
    [[nodiscard]] int status() const noexcept { return failed_ ? 1 : damages_ != 0 ? 2 : 0; }

private:
    bool failed_ = false;
    std::uint64_t damages_ = 0;
};

/// One file, and where its reading has come to.
class input {
public:
    input(const std::string& path, const options& wanted, bool several, bool colour,
          complaints& complain)
        : file_(reduce::trace_file::open(path)),
          complain_(complain),
          text_(file_.time(), {wanted.time, colour, processes() > 1, several ? path : ""}),
          json_(file_.time(), several ? path : "") {
        what_.events = wanted.events;
        what_.threads = wanted.threads;
    }
    input(const input&) = delete;

    [[nodiscard]] reduce::trace_file& file() noexcept { return file_; }
    [[nodiscard]] const reduce::filter& what() const noexcept { return what_; }
    [[nodiscard]] exporter::text_writer& text() noexcept { return text_; }

    void start(const options& wanted) {
        cursor_.emplace(wanted.follow     ? file_.follow(what_)
                        : wanted.backward ? file_.backward(what_)
                                          : file_.forward(what_));
    }
    void stop_following() { cursor_->stop_following(); }

    /// The item at hand, or the next; null if there is none (now).
    [[nodiscard]] const reduce::item* peek() {
        if (item_ == nullptr) {
            item_ = cursor_->next();
            if (item_ != nullptr) judge();
        }
        return item_;
    }
    void pop() noexcept { item_ = nullptr; }
    /// Where the item at hand stands among those of other files.
    [[nodiscard]] std::int64_t key() const noexcept {
        return file_.realtime_ns(reduce::time_of(*item_));
    }

    void append(exporter::text_buffer& out, output_format format) {
        if (format == output_format::text) {
            text_.append(out, *item_);
        } else {
            json_.append(out, *item_);
        }
    }

    /// What is wrong with the tables.
    void judge_tables() {
        for (; judged_ < file_.damages().size(); ++judged_) {
            const auto& damage = file_.damages()[judged_];
            complain_.damage(file_.name(), damage.offset, damage.what);
        }
    }

    void complain_of(const reduce::trace_statistics& sum) {
        for (const auto& place : sum.places) {
            complain_.damage(file_.name(), place.offset, place.what);
        }
    }

private:
    [[nodiscard]] std::ptrdiff_t processes() const {
        return std::count_if(file_.processes().begin(), file_.processes().end(), [](const auto& p) {
            return p.state != trace_ring::layout::presence::free;
        });
    }
    void judge() {
        if (const auto* loss = std::get_if<reduce::loss_item>(item_)) {
            if (loss->cause == trace_ring::loss_cause::damaged) {
                complain_.damage(file_.name(), loss->offset, loss->what);
            }
        } else if (const auto* record = std::get_if<reduce::record_view>(item_)) {
            if (reduce::is_damage(file_.about(), *record)) {
                complain_.damage(file_.name(), record->offset(), record->fault());
            }
        }
    }

    reduce::trace_file file_;
    complaints& complain_;
    reduce::filter what_;
    exporter::text_writer text_;
    exporter::json_writer json_;
    std::optional<reduce::cursor> cursor_;
    const reduce::item* item_ = nullptr;
    std::size_t judged_ = 0;
};

/// Opens what can be opened and complains of the rest.
[[nodiscard]] inline std::vector<std::unique_ptr<input>> open_all(const options& wanted,
                                                                  bool colour,
                                                                  complaints& complain) {
    std::vector<std::unique_ptr<input>> inputs;
    for (const auto& path : wanted.files) {
        try {
            inputs.push_back(
                std::make_unique<input>(path, wanted, wanted.files.size() > 1, colour, complain));
            inputs.back()->judge_tables();
        } catch (const trace_ring::format_error& error) {
            complain.damage(error.file(), error.offset(), error.cause());
        } catch (const std::system_error& error) {
            complain.system(error.what());
        }
    }
    return inputs;
}

/// The file whose item at hand comes next; null if no file has one (now).
[[nodiscard]] inline input* next_of(const std::vector<std::unique_ptr<input>>& inputs,
                                    bool backward) {
    input* best = nullptr;
    for (const auto& each : inputs) {
        if (each->peek() == nullptr) continue;
        if (inputs.size() == 1) return each.get();
        if (best == nullptr || (backward ? each->key() > best->key() : each->key() < best->key())) {
            best = each.get();
        }
    }
    return best;
}

}  // namespace trace_reduce
