// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The mapping that a recorder writes into: made or joined at set-up, described region by region.
/// What is written rarely (clock triples, the dictionary, process entries) is written here; the
/// sub-buffers are claimed in core.hpp.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/snapshot.hpp>
#include <trace_ring/policy/clock/tsc.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/process.hpp>
#include <trace_ring/recorder/file/check_layout.hpp>
#include <trace_ring/recorder/file/kept_file.hpp>
#include <trace_ring/recorder/lane/registry.hpp>
#include <trace_ring/recorder/options.hpp>

namespace trace_ring::inline v1::impl {

/// A clock policy as the cold path knows it, which is compiled once for all kinds of recorder.
struct clock_functions {
    std::uint32_t kind;
    std::uint64_t (*now)() noexcept;
    bool (*usable)() noexcept;
    double (*ticks_per_second)() noexcept;
    clock_snapshot (*snapshot)() noexcept;
};
template <clock::policy Clock>
inline constexpr clock_functions functions_of{Clock::kind, &Clock::now, &Clock::usable,
                                              &Clock::ticks_per_second, &take_snapshot<Clock>};

/// Stores text into words, zero-filled.
template <std::size_t N>
inline void store_text(shared_atomic<std::uint64_t> (&to)[N], std::string_view text) noexcept {
    for (std::size_t i = 0; i < N; ++i) {
        std::uint64_t word = 0;
        for (std::size_t k = 0; k < 8 && i * 8 + k < text.size(); ++k) {
            word |= std::uint64_t{static_cast<unsigned char>(text[i * 8 + k])} << (k * 8);
        }
        to[i].store(word, relaxed);  // relaxed: published by the entry's state
    }
}

/// How far behind the last sub-buffer a record may be stored that went astray. Where it begins a
/// writer takes from the sub-buffer's commit word, which is shared: whatever others have stored
/// there, it is an offset of less than 64 KiB and 8 bytes, and no record is longer than a
/// sub-buffer. So the hot path need not ask whether the offset is one that can be: what it writes
/// lies in the file, or in memory behind it that is mapped for nothing else.
inline constexpr std::uint64_t stray_bytes = std::uint64_t{128} << 10;
static_assert(stray_bytes >= 0x10008 + max_sub_buffer_bytes);

/// Others that may write to the file may store anything in it at any time. What is read from it is
/// checked before an address is made of it, each time anew, and no loop goes by it alone. Against
/// being cut short there is no help: who touches what is no more of a file gets SIGBUS.
class trace_memory {
public:
    /// Makes or joins what the options ask for. Throws setup_error.
    trace_memory(const recorder_options& options, const clock_functions& wanted)
        : path_(expand_file_name(options.file)) {
        const bool joins = !path_.empty() && options.exists == if_exists::attach;
        for (int i = 0; i < 8; ++i) {
            if (joins && join(wanted, options.any_owner)) return;
            if (create(options, wanted)) return;
        }
        throw setup_error(path_, "cannot create the file", EEXIST);  // a link that leads nowhere
    }

    [[nodiscard]] const layout::plan& plan() const noexcept { return plan_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] int descriptor() const noexcept { return file_.number(); }
    [[nodiscard]] std::byte* base() const noexcept { return memory_.data(); }
    [[nodiscard]] std::uint32_t clock() const noexcept { return clock_->kind; }

    [[nodiscard]] layout::file_header& header() const noexcept {
        return at<layout::file_header>(0);
    }
    [[nodiscard]] layout::ring_state& ring() const noexcept {
        return at<layout::ring_state>(plan_.ring);
    }
    [[nodiscard]] layout::process_entry& process(std::uint32_t slot) const noexcept {
        return at<layout::process_entry>(plan_.processes + slot * sizeof(layout::process_entry));
    }
    /// A number for a new lane: never 0, which is none. After 2^32 lanes they come again.
    [[nodiscard]] std::uint32_t new_lane_number() const noexcept {
        std::uint32_t number = 0;
        while (number == 0) number = ring().last_lane.fetch_add(1, relaxed) + 1;  // a counter
        return number;
    }
    /// The first page, if others have stored a number there that is none.
    [[nodiscard]] gate_page& gates(std::uint32_t page) const noexcept {
        const std::uint64_t there = page < plan_.gate_count ? page : 0;
        return at<gate_page>(plan_.gates + there * layout::page_bytes);
    }
    [[nodiscard]] layout::lane_entry& lane(std::uint32_t slot) const noexcept {
        return at<layout::lane_entry>(plan_.lanes + slot * sizeof(layout::lane_entry));
    }
    /// Row `row` of the totals: lanes first, then processes.
    [[nodiscard]] shared_atomic<std::uint64_t>* totals(std::uint32_t row) const noexcept {
        return plan_.totals_per_lane == 0
                   ? nullptr
                   : &at<shared_atomic<std::uint64_t>>(
                         plan_.totals + std::uint64_t{row} * plan_.totals_per_lane * 8);
    }
    [[nodiscard]] layout::index_entry& index(std::uint64_t slot) const noexcept {
        return at<layout::index_entry>(plan_.index + slot * sizeof(layout::index_entry));
    }
    [[nodiscard]] sub_buffer_header& sub_buffer(std::uint64_t slot) const noexcept {
        return at<sub_buffer_header>(plan_.sub_buffers + slot * plan_.sub_buffer_bytes);
    }

    /// Sub-buffers there are; never more than there can be, whatever others store there.
    [[nodiscard]] std::uint64_t capacity() const noexcept {
        // order: grow.use:F pairs with grow:A
        return std::min(ring().capacity.load(acquire), plan_.sub_buffer_limit);
    }

    [[nodiscard]] std::uint64_t slot_number(const sub_buffer_header& sub) const noexcept {
        const auto at = reinterpret_cast<const std::byte*>(&sub) - memory_.data();
        return (static_cast<std::uint64_t>(at) - plan_.sub_buffers) / plan_.sub_buffer_bytes;
    }

    /// The file's clock, now. Signal-safe.
    [[nodiscard]] std::uint64_t now() const noexcept { return clock_->now(); }
    /// For how many of its ticks records are to be kept; 0 if the number of bytes alone decides.
    [[nodiscard]] std::uint64_t keep_ticks() const noexcept {
        constexpr std::uint64_t second = 1'000'000'000;
        // relaxed, both: fixed
        const std::uint64_t keep_for = ring().keep_for.load(relaxed);
        const std::uint64_t rate = header().ticks_per_second.load(relaxed);
        if (rate == 0 || rate > std::uint64_t{1} << 34) return 0;
        if (keep_for / second >= (std::uint64_t{1} << 62) / rate) return std::uint64_t{1} << 62;
        return keep_for / second * rate + keep_for % second * rate / second;
    }

    /// Adds a triple of clocks. Signal-safe.
    void add_clocks(std::uint32_t process) const noexcept {
        const clock_snapshot taken = clock_->snapshot();
        // relaxed, to the end: a number out of a counter, and what the sequence publishes
        const std::uint64_t n = ring().clock_cursor.fetch_add(1, relaxed) + 1ULL;
        const std::uint64_t slot = n == 1 ? 0 : 1 + (n - 2) % (plan_.clock_count - 1);
        auto& entry = at<layout::clock_entry>(plan_.clocks + slot * sizeof(layout::clock_entry));
        entry.sequence.store(0, relaxed);
        // order: clocks.write:A pairs with clocks.look:A, snapshot.mark:B
        thread_fence(release);
        entry.ticks.store(taken.ticks, relaxed);
        entry.monotonic.store(taken.monotonic, relaxed);
        entry.realtime.store(taken.realtime, relaxed);
        entry.width.store(taken.uncertainty * 2, relaxed);
        entry.process.store(process, relaxed);
        // order: clocks.write:B pairs with table.read:A, snapshot.mark:A
        entry.sequence.store(n, release);
    }

    /// Appends a type to the dictionary; false if there is no room. Signal-safe.
    bool add_type(const type_node& node, std::uint32_t root) const noexcept {
        const type_description& type = node.description;
        std::uint64_t bytes = sizeof(layout::type_entry) +
                              sizeof(layout::field_entry) * type.fields.size() + type.name.size();
        for (const auto& f : type.fields) bytes += f.name.size();
        bytes = layout::round_up(bytes, layout::dictionary_unit);
        if (bytes > plan_.dictionary_bytes) return false;
        // relaxed, to the end: the bytes are the caller's alone, by the count it drew, until the
        // magic publishes them
        const std::uint64_t offset = ring().dictionary_used.fetch_add(bytes, relaxed);
        if (offset > plan_.dictionary_bytes - bytes) return false;
        if (offset % layout::dictionary_unit != 0) return false;  // others have been at it
        auto& entry = at<layout::type_entry>(plan_.dictionary + offset);
        entry.bytes.store(static_cast<std::uint32_t>(bytes), relaxed);
        entry.root.store(root, relaxed);
        entry.id.store(static_cast<std::uint16_t>(node.id), relaxed);
        entry.kind.store(static_cast<std::uint8_t>(type.kind), relaxed);
        const bool has_total = node.total != 0 && node.total <= plan_.totals_per_lane;
        entry.total.store(static_cast<std::uint8_t>(has_total ? node.total : 0), relaxed);
        entry.fields.store(static_cast<std::uint16_t>(type.fields.size()), relaxed);
        entry.name_bytes.store(static_cast<std::uint16_t>(type.name.size()), relaxed);
        entry.fixed_bytes.store(type.fixed_bytes, relaxed);
        std::uint64_t flows = 0;
        for (std::size_t i = 0; i < type.fields.size() && i < most_flow_fields; ++i) {
            if (type.fields[i].flow) flows |= std::uint64_t{1} << i;
        }
        entry.flow_fields.store(flows, relaxed);
        auto* const fields = reinterpret_cast<layout::field_entry*>(&entry + 1);
        auto* text = reinterpret_cast<shared_atomic<std::uint8_t>*>(fields + type.fields.size());
        const auto put = [&text](std::string_view from) {
            for (const char c : from) (text++)->store(static_cast<std::uint8_t>(c), relaxed);
        };
        put(type.name);
        for (std::size_t i = 0; i < type.fields.size(); ++i) {
            const field_description& f = type.fields[i];
            fields[i].type.store(static_cast<std::uint8_t>(f.type), relaxed);
            fields[i].form.store(static_cast<std::uint8_t>(f.form), relaxed);
            fields[i].count.store(f.count, relaxed);
            fields[i].offset.store(f.offset, relaxed);
            fields[i].name_bytes.store(static_cast<std::uint16_t>(f.name.size()), relaxed);
            put(f.name);
        }
        // order: dictionary.write:A pairs with table.read:A, snapshot.copy:A, dictionary.read:B
        entry.magic.store(layout::type_magic, release);
        return true;
    }

    /// Enters the calling process. `parent` is its parent's slot + 1 after a fork, else 0: a
    /// program of its own, with gates of its own. Returns its slot + 1, or 0 if the table is full.
    /// Signal-safe.
    [[nodiscard]] std::uint32_t enter_process(std::uint32_t parent) const noexcept {
        for (std::uint32_t slot = 0; slot < plan_.process_count; ++slot) {
            auto& entry = process(slot);
            auto expected = static_cast<std::uint32_t>(layout::presence::free);
            // relaxed, to the end: nothing was ever in a free entry, a parent's was complete before
            // it forked, and what is written here the state publishes
            if (!entry.state.compare_exchange_strong(
                    expected, static_cast<std::uint32_t>(layout::presence::preparing), relaxed)) {
                continue;
            }
            std::uint32_t page = 0;
            std::uint32_t root = slot;
            if (parent != 0) {
                root = process(parent - 1).root.load(relaxed);
                page = process(parent - 1).gate_page.load(relaxed);
            } else if (!free_gate_page(slot, page)) {
                entry.state.store(static_cast<std::uint32_t>(layout::presence::free), relaxed);
                return 0;
            }
            const auto pid = static_cast<std::uint32_t>(::getpid());
            on_file([&](int fd) { (void)storage::lock_byte(fd, layout::lock_offset(slot)); });
            entry.pid.store(pid, relaxed);
            entry.start.store(storage::facts_of(pid).start, relaxed);
            entry.root.store(root, relaxed);
            entry.parent.store(parent, relaxed);
            entry.word.store(sizeof(void*), relaxed);
            entry.gate_page.store(page, relaxed);
            entry.attached.store(now(), relaxed);
            entry.departed.store(0, relaxed);
            store_text(entry.name, program_invocation_short_name);
            // order: process.enter:B pairs with process.look:A, process.find:A, table.read:B,
            // snapshot.copy:B
            entry.state.store(static_cast<std::uint32_t>(layout::presence::live), release);
            return slot + 1;
        }
        return 0;
    }

    void leave_process(std::uint32_t slot) const noexcept {
        auto& entry = process(slot);
        entry.departed.store(now(), relaxed);  // relaxed: published by the state
        // order: process.leave:A pairs with process.look:A, table.read:B, snapshot.copy:B
        entry.state.store(static_cast<std::uint32_t>(layout::presence::departed), release);
        on_file([&](int fd) { storage::unlock_byte(fd, layout::lock_offset(slot)); });
    }

    /// By those who record: claimers that died at it may have left some out. Linear in the lanes.
    [[nodiscard]] std::uint64_t overwritten_records() const noexcept {
        // relaxed, all: counters, each by itself
        std::uint64_t sum = ring().overwritten_records.load(relaxed);
        for (std::uint32_t slot = 0; slot < plan_.lane_count; ++slot) {
            sum += lane(slot).overwrote.load(relaxed);
        }
        return sum;
    }

    /// False only if the process of `slot` is certainly gone: it holds no lock, and no process has
    /// its pid and start, but one that has ended and waits for its parent. Signal-safe.
    [[nodiscard]] bool may_live(std::uint32_t slot) const noexcept {
        // relaxed, to the end: the caller has acquired what was stored after the entry; one that is
        // still being made has pid 0, which always lives
        auto& entry = process(slot);
        const std::uint32_t pid = entry.pid.load(relaxed);
        bool locked = false;
        on_file([&](int fd) { locked = storage::byte_is_locked(fd, layout::lock_offset(slot)); });
        if (locked) return true;
        return storage::process_may_live(pid, entry.start.load(relaxed));
    }

    /// Gives the sub-buffers up to `count`, and their index, memory of their own; 0 or the error.
    /// Signal-safe.
    [[nodiscard]] int provide(std::uint64_t from, std::uint64_t count) const noexcept {
        const std::uint64_t at = plan_.bytes_for(from);
        const std::uint64_t bytes = plan_.bytes_for(count) - at;
        const std::uint64_t index_at = plan_.index + from * sizeof(layout::index_entry);
        const std::uint64_t index_bytes = (count - from) * sizeof(layout::index_entry);
        if (file_) {
            const int error = file_.use([&](int fd) {
                if (fd < 0) return EBADF;
                if (const int failed = storage::allocate(fd, index_at, index_bytes)) return failed;
                return storage::allocate(fd, at, bytes);
            });
            if (error != 0) return error;
        }
        const std::uint64_t page_start = index_at / layout::page_bytes * layout::page_bytes;
        memory_.populate(page_start, index_at + index_bytes - page_start);
        const std::uint64_t sub_start = at / layout::page_bytes * layout::page_bytes;
        memory_.populate(sub_start, at + bytes - sub_start);
        return 0;
    }

    /// Calls `what(descriptor)` if there is a file, and one of its descriptors to be had.
    /// Signal-safe.
    template <class What>
    void on_file(What&& what) const noexcept {
        if (!file_) return;
        file_.use([&](int fd) {
            if (fd >= 0) what(fd);
        });
    }

private:
    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const noexcept {
        return *reinterpret_cast<T*>(memory_.data() + offset);
    }

    /// A page of gates that no living process goes by. That of a program that is no more is opened;
    /// one that was never used is as whoever controls the recording left it. Programs are entered
    /// under the lock of set-up, so that no two choose at once.
    [[nodiscard]] bool free_gate_page(std::uint32_t self, std::uint32_t& page) const noexcept {
        constexpr auto departed = static_cast<std::uint32_t>(layout::presence::departed);
        for (page = 0; page < plan_.gate_count; ++page) {
            bool used = false;
            bool taken = false;
            for (std::uint32_t slot = 0; slot < plan_.process_count && !taken; ++slot) {
                // order: process.look:A pairs with process.enter:B, process.leave:A, process.dead:A
                const std::uint32_t state = process(slot).state.load(acquire);
                if (slot == self || state == 0) continue;
                if (process(slot).gate_page.load(relaxed) != page) continue;  // after the state
                used = true;
                taken = state != departed && may_live(slot);
            }
            if (taken) continue;
            for (auto& gate : gates(page).gates) {
                if (used) gate.store(0, relaxed);  // relaxed: advice
            }
            return true;
        }
        return false;
    }

    [[nodiscard]] bool create(const recorder_options& options, const clock_functions& wanted);
    [[nodiscard]] bool give_name(const std::string& made);
    bool join(const clock_functions& wanted, bool any_owner);
    void replace_old(const std::string& made);

    std::string path_;
    kept_file file_;
    storage::mapping memory_;
    layout::plan plan_;
    const clock_functions* clock_ = nullptr;
};

}  // namespace trace_ring::inline v1::impl
