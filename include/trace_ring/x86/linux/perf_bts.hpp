// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads branches by Linux's intel_bts PMU, which uses the processor's branch trace store: a perf
/// event with an AUX area (arch/x86/events/intel/bts.c in the kernel; perf_event_open(2)).
/// @code
///   trace_ring::x86::perf_bts branches({.thread = child});
///   branches.start();
///   while (!branches.ended()) { branches.wait(100); branches.read(visitor); }
/// @endcode
/// If a full trace is not read in time, the kernel truncates it and disables the event; `read`
/// enables it again when there is room, and returns a gap of unknown length in that place. The gap
/// has an advice: size and watermark of the area, the rate that was measured, and the size or
/// watermark that is enough for it (x86/loss_advice.hpp). A snapshot is read once, and ends the
/// trace.

#include <trace_ring/x86/enabled.hpp>

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/linux/aux_buffer.hpp>
#include <trace_ring/x86/linux/perf_event.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>
#include <trace_ring/x86/linux/perf_ring.hpp>
#include <trace_ring/x86/loss_advice.hpp>
#include <trace_ring/x86/loss_meter.hpp>

namespace trace_ring::inline v1::x86 {

/// The sizes of the buffers.
struct perf_bts_options {
    ::pid_t thread = 0;               ///< 0: the calling one
    int cpu = -1;                     ///< -1: any
    std::size_t aux_bytes = 4 << 20;  ///< for branches; a power of two of pages
    /// Bytes of the area after which the kernel wakes the reader, at most all; 0: half of the area.
    /// A snapshot wakes nobody, so it must be 0 for one.
    std::uint32_t aux_watermark = 0;
    std::size_t data_bytes = 1 << 16;  ///< for the kernel's events; a power of two of pages
    bool snapshot = false;             ///< only the newest branches, not all
    bool on_exec = false;              ///< begins when the thread executes a program
    meter_clock clock{};               ///< times the reads, for the advice on a loss
};

/// Bytes of an AUX area that the kernel may leave free, at most, when it gives up. It allocates the
/// area in pieces of about the watermark's size, and leaves a piece early if no more than 4080
/// bytes and a record are free in it (BTS_SAFETY_MARGIN in arch/x86/events/intel/bts.c,
/// rb_alloc_aux in kernel/events/ring_buffer.c); this counts each piece, the one it begins in, and
/// the end of the room. If the machine's memory is in smaller pieces, it may be more.
[[nodiscard]] constexpr std::uint64_t bts_spare_bytes(std::uint64_t area,
                                                      std::uint64_t watermark) noexcept {
    const std::uint64_t piece = std::bit_floor(watermark < 4096 ? 4096 : watermark);
    return (area / piece + 2) * (4080 + bts_record_bytes);
}
static_assert(bts_spare_bytes(1 << 20, 1 << 19) == 4 * 4104);

/// A model of branch_source. For one thread at a time.
class perf_bts {
public:
    /// What this source reports.
    static constexpr branch_character character{.order = branch_order::oldest_first,
                                                .delivery = branch_delivery::memory_ring,
                                                .tells_prediction = true,
                                                .tells_privilege = true};

    /// Opens the event, disabled. Throws perf_unavailable, which says which condition fails, and
    /// setup_error for an invalid size.
    explicit perf_bts(const perf_bts_options& options = {}, perf_host host = {})
        : event_(open(options, std::move(host))),
          ring_("intel_bts", event_.get(), options.data_bytes),
          area_(map_area(options)),
          aux_(area_.bytes(), ring_.word(offsetof(::perf_event_mmap_page, aux_head)),
               ring_.word(offsetof(::perf_event_mmap_page, aux_tail)),
               options.snapshot ? aux_buffer::mode::snapshot : aux_buffer::mode::full_trace),
          clock_(options.clock),
          watermark_(options.snapshot             ? 0
                     : options.aux_watermark != 0 ? options.aux_watermark
                                                  : options.aux_bytes / 2),
          snapshot_(options.snapshot),
          running_(options.on_exec) {
        if (running_) begin_time();
    }

    /// Starts or continues the trace. Throws setup_error.
    void start() {
        held_ = 0;
        room_from_ = tail();
        begin_time();
        event_.enable();
        running_ = true;
        ended_ = false;
    }
    /// Stops the trace. Stored branches can still be read.
    void stop() {
        event_.disable();
        running_ = false;
        if (snapshot_) {
            time_.end(clock_.read(), area_.bytes().size() / bts_record_bytes, true);
            unreported_ = advise_more();
        }
    }
    /// Waits until there are branches to read, or the thread has ended, for at most `milliseconds`
    /// (negative: for ever). False: neither has happened.
    bool wait(int milliseconds) noexcept {
        ::pollfd one{event_.get(), POLLIN, 0};
        return ::poll(&one, 1, milliseconds) > 0;
    }

    /// See branch_source. For a snapshot it stops the trace and reads all of it.
    template <branch_visitor Visit>
    std::uint64_t read(Visit&& visit) {
        if (ended_) return 0;
        const bool last = snapshot_ || !running_ || hung_up();
        if (snapshot_ && running_) stop();
        // The head first: the kernel's events about the bytes before it are there already.
        aux_.look_once();
        const auto now = clock_.read();
        const std::uint64_t before = tail();
        const bool disabled = take_events();
        if (disabled) note_loss(now);
        const std::uint64_t seen =
            aux_.read(advising<std::remove_reference_t<Visit>>{*this, visit});
        next_time(now, disabled);
        if (last) {
            ended_ = true;
        } else if (disabled) {
            start();
            ++restarts_;
        } else {
            // What was written since the look before this one had to have room until now.
            const auto then = clock_.read();
            held_ = then && before_looked_ && *then > *before_looked_ ? *then - *before_looked_ : 0;
            room_from_ = before;
        }
        return seen;
    }
    /// Refuses to compile: `Visit` is no branch_visitor.
    template <class Visit>
    std::uint64_t read(Visit&&) {
        return impl::refuse_visitor<Visit>();
    }
    /// The trace was stopped, its thread has ended or its snapshot was taken, and all is read.
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    /// Branches that are missing.
    [[nodiscard]] const loss_counts& lost() const noexcept { return aux_.lost(); }
    /// How often the kernel has disabled the event because there was no room.
    [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }
    /// How to avoid the newest loss for want of room, in the area or in the ring of the kernel's
    /// events; empty: there was none. The kernel counts its bytes when it hands them over, in steps
    /// of the watermark, so a rate that was measured over a short time is coarse.
    [[nodiscard]] const std::optional<loss_advice>& advice() const noexcept { return advice_; }
    /// The area, to be drained in place (drain/session.hpp) instead of `read`. Then call
    /// `read_events` after each session to note gaps, and `start` if it says so. The rate is then
    /// measured between these calls.
    [[nodiscard]] aux_buffer& area() noexcept { return aux_; }

    /// Reads the kernel's events, and notes gaps in the area. True: the kernel has disabled the
    /// event.
    bool read_events() {
        const auto now = clock_.read();
        const bool disabled = take_events();
        if (disabled) note_loss(now);
        next_time(now, disabled);
        return disabled;
    }

private:
    [[nodiscard]] static perf_event open(const perf_bts_options& options, perf_host host) {
        if (!is_perf_size(options.aux_bytes) || !is_perf_size(options.data_bytes)) {
            throw setup_error("intel_bts", "sizes must be powers of two, and whole pages", EINVAL);
        }
        if (options.aux_watermark > options.aux_bytes) {
            throw setup_error("intel_bts", "the watermark lies above the area's size", EINVAL);
        }
        if (options.aux_watermark != 0 && options.snapshot) {
            throw setup_error("intel_bts", "a snapshot has no watermark", EINVAL);
        }
        const auto type = host.number(intel_bts_type);
        if (!type) throw perf_unavailable("intel_bts", why_no_bts(host), ENODEV);
        ::perf_event_attr attr{};
        attr.type = static_cast<std::uint32_t>(*type);
        attr.aux_watermark = options.aux_watermark;
        return {"intel_bts", {options.thread, options.cpu, options.on_exec}, attr, std::move(host)};
    }

    [[nodiscard]] perf_mapping map_area(const perf_bts_options& options) {
        const std::uint64_t offset = storage::machine_page_bytes() + options.data_bytes;
        const auto set = [this](std::size_t member, std::uint64_t value) {
            ring_.word(member).store(value, relaxed);  // relaxed: a system call follows
        };
        set(offsetof(::perf_event_mmap_page, aux_offset), offset);
        set(offsetof(::perf_event_mmap_page, aux_size), options.aux_bytes);
        try {
            return {"intel_bts", event_.get(), offset, options.aux_bytes, !options.snapshot};
        } catch (const setup_error& error) {
            const int code = error.code().value();
            if (code != EPERM && code != ENOMEM) throw;
            throw perf_unavailable("intel_bts", perf_reason::memory_limit, code);
        }
    }

    [[nodiscard]] bool hung_up() const noexcept {
        ::pollfd one{event_.get(), 0, 0};
        return ::poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
    }

    [[nodiscard]] bool take_events() {
        bool disabled = false;
        truncated_ = 0;
        events_lost_ = 0;
        const bool sound =
            ring_.read([&](const ::perf_event_header& header, std::span<const std::byte> rest) {
                if (header.type == PERF_RECORD_AUX) {
                    disabled = one_area(rest) || disabled;
                } else if (header.type == PERF_RECORD_LOST) {
                    // A "truncated" may be among the lost events, so assume it.
                    note_gap(announced_, loss_cause::refused);
                    disabled = true;
                    count_lost_events(rest);
                }
            });
        if (!sound) {
            note_gap(announced_, loss_cause::damaged);
            disabled = true;
        }
        return disabled;
    }
    /// PERF_RECORD_AUX: u64 aux_offset, aux_size, flags. True: the event was disabled with it.
    [[nodiscard]] bool one_area(std::span<const std::byte> rest) {
        std::array<std::uint64_t, 3> words{};
        if (rest.size() < sizeof words) {
            note_gap(announced_, loss_cause::damaged);
            return false;
        }
        std::memcpy(words.data(), rest.data(), sizeof words);
        const auto [offset, size, flags] = words;
        announced_ = offset + size;
        if ((flags & (PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)) != 0) {
            note_gap(offset, loss_cause::refused);
        }
        if ((flags & PERF_AUX_FLAG_TRUNCATED) == 0) return false;
        note_gap(announced_, loss_cause::refused);
        ++truncated_;
        return true;
    }
    void note_gap(std::uint64_t at, loss_cause cause) {
        // A snapshot's offsets are no positions, and its missing records were overwritten.
        if (!snapshot_) aux_.note_gap(at, 0, cause);
    }

    // --- The advice on a loss --------------------------------------------------------------------
    /// Passes on what the area reports, and the advice with the gap that it is for.
    template <class Visit>
    struct advising {
        perf_bts& of;
        Visit& to;

        void operator()(const branch& one) const { to(one); }
        void operator()(const branch_gap& gap) const {
            branch_gap advised = gap;
            if (gap.cause == loss_cause::refused || gap.cause == loss_cause::overwritten)
                advised.advice = std::exchange(of.unreported_, std::nullopt);
            if (advised.advice) of.advice_ = advised.advice;
            to(static_cast<const branch_gap&>(advised));
        }
    };

    [[nodiscard]] std::uint64_t tail() const noexcept {
        // relaxed: only this reader stores to it
        return ring_.word(offsetof(::perf_event_mmap_page, aux_tail)).load(relaxed);
    }
    /// The kernel writes from now on, behind all that was seen.
    void begin_time() noexcept {
        looked_ = clock_.read();
        before_looked_.reset();
        time_.begin(looked_, 0);
        measured_to_ = aux_.seen_to();
        padding_before_ = aux_.padding();
    }
    /// Bytes since the last look.
    [[nodiscard]] std::uint64_t came() const noexcept {
        const std::uint64_t now = aux_.seen_to();
        return now > measured_to_ ? now - measured_to_ : 0;
    }
    /// The kernel has disabled the event: the advice, for the gap that is read next.
    void note_loss(std::optional<std::uint64_t> now) noexcept {
        if (snapshot_) return;
        const std::uint64_t bytes = (std::min)(came(), std::uint64_t{area_.bytes().size()});
        const std::uint64_t spare = spare_bytes();  // this may be padding, and no records
        time_.end(now, bytes > spare ? (bytes - spare) / bts_record_bytes : 0, true);
        if (truncated_ != 0) {
            unreported_ = advice_ = advise_area();
        } else if (events_lost_ != 0) {
            unreported_ = advice_ = advise_events();
        }
    }
    /// After a look at the area, when its records were read: the end of one time, unless there was
    /// a loss, and the beginning of the next.
    void next_time(std::optional<std::uint64_t> now, bool disabled) noexcept {
        if (snapshot_) return;
        const std::uint64_t padding = aux_.padding() - padding_before_;
        const std::uint64_t records = came() / bts_record_bytes;
        if (!disabled)
            time_.end(now, records > padding ? records - padding : 0,
                      came() > area_.bytes().size());
        padding_before_ = aux_.padding();
        measured_to_ = aux_.seen_to();
        before_looked_ = std::exchange(looked_, now);
        time_.begin(now, 0);
    }
    [[nodiscard]] std::uint64_t spare_bytes() const noexcept {
        return bts_spare_bytes(area_.bytes().size(), watermark_);
    }
    [[nodiscard]] loss_advice setting() const noexcept {
        loss_advice out;
        out.buffer = loss_buffer::aux_area;
        out.record_bytes = bts_record_bytes;
        out.bytes = area_.bytes().size();
        out.records = out.bytes / bts_record_bytes;
        out.threshold = watermark_ / bts_record_bytes;
        return out;
    }
    [[nodiscard]] loss_advice advise_area() const noexcept {
        loss_advice out = setting();
        // The kernel may have stored up to a watermark before this time, and not handed it over.
        const std::uint64_t taken = watermark_ + spare_bytes();
        const std::uint64_t spare = (taken + bts_record_bytes - 1) / bts_record_bytes;
        time_.advise(out, spare, held_);
        // Where the kernel gave up, and from where on nothing was free at that time.
        const std::uint64_t used = announced_ > room_from_ ? announced_ - room_from_ : 0;
        if (used < out.bytes && used + spare_bytes() < out.bytes) {
            out.remedy = loss_remedy::none;
            out.needed_records = out.needed_bytes = out.needed_threshold = out.needed_time = 0;
        } else if (out.remedy == loss_remedy::enough) {
            enlarge(out, (out.needed_records - spare) * bts_record_bytes);
        } else {
            round_up(out);
        }
        return out;
    }
    /// The area and the watermark that are enough for so many bytes.
    void enlarge(loss_advice& of, std::uint64_t bytes) const noexcept {
        constexpr std::uint64_t most = std::uint64_t{1} << 62;
        std::uint64_t area = of.bytes;
        do {
            area *= 2;
        } while (area < most &&
                 (bytes >= most || bytes + watermark_ + bts_spare_bytes(area, watermark_) > area));
        of.needed_bytes = area;
        of.needed_records = area / bts_record_bytes;
        of.needed_threshold = 0;
        // A lower one wakes the reader earlier, and leaves less that is not handed over.
        const std::uint64_t late = bytes > watermark_ ? bytes - watermark_ : 0;
        for (std::uint64_t lower = watermark_ / bts_record_bytes; lower > 170;
             lower -= lower / 64) {
            const std::uint64_t mark = lower * bts_record_bytes;
            if (late < of.bytes && late + 2 * mark + bts_spare_bytes(of.bytes, mark) <= of.bytes) {
                of.needed_threshold = lower;
                break;
            }
        }
        if (area >= most) {  // pieces so small that each is left at its beginning
            of.remedy = loss_remedy::at_least;
            of.needed_bytes = 2 * of.bytes;
            of.needed_records = of.needed_bytes / bts_record_bytes;
            of.needed_threshold = of.needed_time = 0;
        }
    }
    /// Of a snapshot: it is overwritten, and that it was full is all that is known.
    [[nodiscard]] loss_advice advise_more() const noexcept {
        loss_advice out = setting();
        out.cause = loss_cause::overwritten;
        time_.advise(out, 0);
        round_up(out);
        return out;
    }
    /// An area is a power of two of pages.
    static void round_up(loss_advice& of) noexcept {
        const std::uint64_t most = std::uint64_t{1} << 63;
        of.needed_bytes = of.needed_bytes > most ? most : std::bit_ceil(of.needed_bytes);
        of.needed_records = of.needed_bytes / of.record_bytes;
    }
    /// Of the ring of events: their number is known, and so is the room that they needed.
    [[nodiscard]] loss_advice advise_events() const noexcept {
        loss_advice out;
        out.buffer = loss_buffer::events;
        out.record_bytes = sizeof(::perf_event_header) + sizeof(std::uint64_t[3]);
        out.bytes = ring_.size();
        out.records = out.bytes / out.record_bytes;
        out.lost = events_lost_;
        loss_meter::advise_exactly(out, 1);
        round_up(out);
        return out;
    }
    /// PERF_RECORD_LOST: u64 id, lost.
    void count_lost_events(std::span<const std::byte> rest) noexcept {
        std::array<std::uint64_t, 2> words{};
        if (rest.size() < sizeof words) return;
        std::memcpy(words.data(), rest.data(), sizeof words);
        events_lost_ += (std::min)(words[1], std::uint64_t{1} << 32);
    }

    perf_event event_;
    perf_ring ring_;
    perf_mapping area_;
    aux_buffer aux_;
    std::uint64_t announced_ = 0;  ///< end of the bytes that the kernel's events describe
    std::uint64_t restarts_ = 0;
    meter_clock clock_;
    loss_meter time_{};
    std::optional<loss_advice> advice_{};
    std::optional<loss_advice> unreported_{};  ///< no gap has had it yet
    std::optional<std::uint64_t> looked_{};    ///< when the area was looked at last
    std::optional<std::uint64_t> before_looked_{};
    std::uint64_t measured_to_ = 0;     ///< what `seen_to` was at the last look
    std::uint64_t padding_before_ = 0;  ///< what `padding` was then
    std::uint64_t held_ = 0;            ///< for so long the area had to hold what came
    std::uint64_t room_from_ = 0;       ///< the tail while that came
    std::uint64_t watermark_;
    std::uint64_t truncated_ = 0;    ///< how often, in the events that were read last
    std::uint64_t events_lost_ = 0;  ///< by the same events
    bool snapshot_;
    bool running_;
    bool ended_ = false;
};
static_assert(branch_source<perf_bts>);

}  // namespace trace_ring::inline v1::x86
