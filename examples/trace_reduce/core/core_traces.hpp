// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Finds the traces that recorders had in memory when a program crashed, in its core dump.
/// @code
///   const auto core = trace_reduce::elf_core(trace_ring::reduce::source::open("core"));
///   const trace_reduce::core_traces found(core);
///   for (const auto& each : found.traces()) {
///       const auto trace = trace_ring::reduce::trace_file::of_source(each.bytes);
///   }
///   for (const auto& file : found.left_out()) look_into(file.path);
/// @endcode
/// A recorder's mapping begins at a page, with a trace file's magic. It counts as a trace if the
/// header behind the magic is consistent and its tables are in the core; no symbol and no name is
/// needed. A trace is read where it lies in the core.
///
/// By default a core has anonymous memory, shared or not, and memory files, but not mappings of
/// files (bit 3 of /proc/PID/coredump_filter): `left_out` names those files.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/format/plan.hpp>

#include "elf_core.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

/// One recorder's trace.
struct core_trace {
    std::uint64_t address = 0;  ///< where it was in the program
    std::uint64_t offset = 0;   ///< where it is in the core
    std::string file;           ///< the mapped file, if it was one
    reduce::source bytes;       ///< named "CORE@ADDRESS"
};

/// Linear in the core's size: reads a few bytes of each page, and skips holes.
class core_traces {
public:
    explicit core_traces(const elf_core& core) : core_(&core) {
        find_runs();
        for (std::size_t i = 0; i < core.segments().size(); ++i) search(i);
        find_left_out();
        core_ = nullptr;
    }
    core_traces(const core_traces&) = default;
    core_traces(core_traces&&) = default;
    core_traces& operator=(const core_traces&) = default;
    core_traces& operator=(core_traces&&) = default;

    /// By address. A trace that was mapped twice is listed once.
    [[nodiscard]] const std::vector<core_trace>& traces() const noexcept { return traces_; }
    /// Files that were mapped from their beginning, writable, and whose memory is not in the core:
    /// a trace may be among them. At most 1000.
    [[nodiscard]] const std::vector<mapped_file>& left_out() const noexcept { return left_out_; }
    /// Pages that begin as a trace but are none, and why: mostly overwritten copies. At most 100.
    [[nodiscard]] const std::vector<trace_ring::damage>& doubtful() const noexcept {
        return doubtful_;
    }
    /// The number of bytes of memory that were searched.
    [[nodiscard]] std::uint64_t searched() const noexcept { return searched_; }

private:
    static constexpr std::uint64_t page = trace_ring::layout::format_page_bytes;
    static constexpr std::size_t most_traces = 4096;

    /// Finds, for each segment, where the memory ends that the core has from it on without a gap.
    void find_runs() {
        const auto& all = core_->segments();
        runs_.resize(all.size());
        for (std::size_t i = all.size(); i-- > 0;) {
            const auto& s = all[i];
            const bool goes_on =
                s.present == s.bytes && i + 1 < all.size() && all[i + 1].address == s.end();
            runs_[i] = goes_on ? runs_[i + 1] : s.address + s.present;
        }
    }

    void search(std::size_t number) {
        const auto& s = core_->segments()[number];
        searched_ += s.present;
        std::uint64_t at = passed_ > s.address ? passed_ - s.address : 0;  // in the segment
        const std::uint64_t askew = (s.address + at) % page;
        if (askew != 0) at += page - askew;
        while (at < s.present && s.present - at >= sizeof trace_ring::layout::file_magic) {
            std::uint64_t magic = 0;
            if (core_->bytes().read(s.offset + at, &magic, sizeof magic) != sizeof magic) return;
            if (magic == trace_ring::layout::file_magic && take(number, s.address + at)) {
                at = passed_ - s.address;
                at += (page - (s.address + at) % page) % page;
                continue;
            }
            if (magic == 0) {  // may be a hole
                const std::uint64_t data = core_->bytes().next_data(s.offset + at);
                if (data >= s.offset + s.present) return;
                if (const auto pages = (data - s.offset - at) / page; pages != 0) {
                    at += pages * page;
                    continue;
                }
            }
            at += page;
        }
    }

    /// Looks at a magic at this address. True: it is a trace's, and its memory is skipped.
    [[nodiscard]] bool take(std::size_t number, std::uint64_t address) {
        const auto& all = core_->segments();
        const std::uint64_t offset = all[number].offset + (address - all[number].address);
        std::vector<reduce::extent> parts;
        const auto gather = [&](std::uint64_t bytes) {
            parts.clear();
            std::uint64_t from = address;
            for (std::size_t i = number; bytes != 0; ++i) {
                const std::uint64_t there =
                    (std::min)(bytes, all[i].address + all[i].present - from);
                parts.push_back({all[i].offset + (from - all[i].address), there});
                from += there;
                bytes -= there;
            }
            return reduce::source::of_extents(core_->bytes(), parts, name_of(address));
        };
        const std::uint64_t there = runs_[number] - address;
        alignas(8) std::array<std::byte, page> head{};
        (void)gather((std::min)(there, page)).read(0, head.data(), head.size());
        trace_ring::layout::plan plan;
        if (const auto fault = trace_ring::layout::check_layout(head.data(), there, plan); fault) {
            doubt(offset, fault.what);
            return false;
        }
        if (is_first_page_alone(gather, head, there)) {
            passed_ = address + page;
            return true;
        }
        auto bytes = gather((std::min)(there, plan.file_limit));
        // The whole trace is skipped: it has only records, and copies of them.
        passed_ = address + bytes.size();
        std::array<std::uint64_t, 2> id{};
        (void)bytes.read(offsetof(trace_ring::layout::file_header, id), id.data(), sizeof id);
        if (!ids_.insert(id).second) return true;
        if (traces_.size() == most_traces) {
            doubt(offset, "one trace more than are looked for");
        } else {
            traces_.push_back({address, offset, file_at(address), std::move(bytes)});
        }
        return true;
    }
    /// A recorder maps the first page of its file once more. Where that mapping ends at the trace's
    /// own, the trace begins with the second of the two headers. They are equal: the page has
    /// nothing else, and is at most 64 KiB long.
    template <class Gather>
    [[nodiscard]] static bool is_first_page_alone(const Gather& gather,
                                                  const std::array<std::byte, page>& head,
                                                  std::uint64_t there) {
        for (std::uint64_t next = page; next <= 16 * page && there >= next + page; next *= 2) {
            alignas(8) std::array<std::byte, page> other{};
            (void)gather(next + page).read(next, other.data(), other.size());
            constexpr auto compared = sizeof(trace_ring::layout::file_header);
            if (std::memcmp(head.data(), other.data(), compared) == 0) return true;
        }
        return false;
    }
    void doubt(std::uint64_t offset, std::string_view what) {
        constexpr std::size_t most = 100;
        if (doubtful_.size() < most) doubtful_.push_back({offset, std::string(what)});
    }

    [[nodiscard]] std::string name_of(std::uint64_t address) const {
        std::string digits;
        do {
            digits.insert(digits.begin(), "0123456789abcdef"[address % 16]);
            address /= 16;
        } while (address != 0);
        return core_->name() + "@" + digits;
    }
    [[nodiscard]] std::string file_at(std::uint64_t address) const {
        const auto& all = core_->files();
        const auto after = std::upper_bound(
            all.begin(), all.end(), address,
            [](std::uint64_t value, const mapped_file& one) { return value < one.begin; });
        if (after == all.begin() || (after - 1)->end <= address) return {};
        return (after - 1)->path;
    }

    void find_left_out() {
        constexpr std::size_t most = 1000;
        for (const auto& each : core_->files()) {
            if (each.file_offset != 0 || each.end - each.begin < 2 * page) continue;
            const auto* const s = core_->find(each.begin);
            // A core may leave out a segment's memory, or the whole segment.
            if (s != nullptr && (!s->writable || each.begin - s->address < s->present)) continue;
            if (left_out_.size() == most) return;
            left_out_.push_back(each);
        }
    }

    const elf_core* core_;
    std::vector<std::uint64_t> runs_{};
    std::uint64_t passed_ = 0;  ///< memory below this address was searched
    std::uint64_t searched_ = 0;
    std::set<std::array<std::uint64_t, 2>> ids_{};  ///< of the traces' headers
    std::vector<core_trace> traces_{};
    std::vector<mapped_file> left_out_{};
    std::vector<trace_ring::damage> doubtful_{};
};

}  // namespace trace_reduce
