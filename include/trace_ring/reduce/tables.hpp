// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Everything a trace file has besides its records: who wrote (processes, lanes), what (the
/// dictionary), when (clock snapshots), and how much was lost before it reached a sub-buffer. All
/// of it is copied, with every number checked, and can be read again while the file is live.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/reduce/tables/dictionary.hpp>

namespace trace_ring::inline v1::reduce {

class tables {
public:
    /// Reads and checks everything. Throws format_error if this is no trace file that can be read,
    /// and std::bad_alloc; lesser damage goes to `damages()`. `unpack` unpacks records; null: they
    /// are returned as they are.
    explicit tables(source from, const packing* unpack = nullptr)
        : source_(std::move(from)), dictionary_(unpack), unpack_(unpack) {
        alignas(8) std::byte head[layout::format_page_bytes]{};
        const std::uint64_t size = source_.size();
        const std::size_t there = source_.read(0, head, sizeof head);
        // The file may have shrunk between the two calls: then the shorter one counts.
        const auto fault = layout::check_layout(head, there < sizeof head ? there : size, plan_);
        if (fault) throw format_error(name(), fault.offset, std::string(fault.what));
        if (const auto wrong = impossible_count(plan_)) {
            throw format_error(name(), wrong.offset, std::string(wrong.what));
        }
        const auto& header =
            *static_cast<const layout::file_header*>(static_cast<const void*>(head));
        // relaxed, all of them: a private copy, which no other thread sees
        clock_ = header.clock.load(relaxed);
        ticks_per_second_ = header.ticks_per_second.load(relaxed);
        if (clock_ > 3) {
            damages_.push_back({offsetof(layout::file_header, clock), "an unknown clock"});
        }
        refresh();
        const std::uint64_t end = plan_.bytes_for(present());
        if (ring_.capacity > plan_.sub_buffer_limit) {
            damages_.push_back({plan_.ring + offsetof(layout::ring_state, capacity),
                                "more sub-buffers than the file can hold"});
        } else if (ring_.capacity > present()) {
            damages_.push_back(
                {size, "the file is cut short: " + std::to_string(ring_.capacity - present()) +
                           " of " + std::to_string(ring_.capacity) + " sub-buffers are missing"});
        } else if (present() < plan_.sub_buffer_limit && size > end) {
            damages_.push_back({size, "the file ends inside a sub-buffer"});
        }
    }
    tables(const tables&) = delete;
    tables& operator=(const tables&) = delete;

    /// Reads again what changes in a live file. Event types, processes and lanes that are known
    /// stay where they are in memory; their contents are brought up to date.
    void refresh() {
        read_plan();
        read_ring();
        // Again if an entry was given to another process while the lanes were read.
        (void)read_processes();
        read_lanes();
        for (int i = 0; i < 2 && read_processes(); ++i) read_lanes();
        read_dictionary();
        read_clocks();
        raise_lanes();
    }

    /// Makes all dates later by `ns`: for a trace from a machine whose clock was wrong.
    void shift_realtime(std::int64_t ns) {
        shift_ = static_cast<std::uint64_t>(ns);
        read_clocks();
    }

    /// Whether the file no longer lists this lane: its entry belongs to another, and its counts are
    /// in the folded totals, or will be at the next look.
    [[nodiscard]] bool is_gone(const lane_info& lane) const noexcept {
        return lane.looked != looks_;
    }
    /// The numbers of lanes that the file lists now and did not list when it was read, ascending.
    /// Changes nothing.
    [[nodiscard]] std::vector<std::uint32_t> new_lanes() const {
        std::vector<std::uint32_t> found;
        for_each_lane([&](const auto&, std::size_t, std::uint32_t number) {
            const auto* const known = find_lane(number);
            if (known == nullptr || !known->listed) found.push_back(number);
        });
        std::sort(found.begin(), found.end());
        return found;
    }

    /// Whether a lane has claimed a sub-buffer since it was read, or has lost its entry to another.
    /// True for each lane of which a later sub-buffer than lane_info::claimed was seen before the
    /// call, unless the entry is damaged. Changes nothing.
    [[nodiscard]] bool has_claimed(const lane_info& lane) const noexcept {
        layout::lane_entry now{};
        // A sub-buffer is seen by its state or its index entry, which its writer stored later.
        // order: lane.again:A pairs with writer.begin:A, index.write:B, here.ready:A, here.index:A
        thread_fence(acquire);
        if (!read(lane.offset, now)) return false;
        // relaxed, both: a copy
        return now.number.load(relaxed) != lane.number || now.newest.load(relaxed) != lane.claimed;
    }

    [[nodiscard]] const source& bytes() const noexcept { return source_; }
    [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }
    [[nodiscard]] const layout::plan& plan() const noexcept { return plan_; }
    [[nodiscard]] const dictionary& events() const noexcept { return dictionary_; }
    /// How records are unpacked; null: they are not.
    [[nodiscard]] const packing* unpacks_by() const noexcept { return unpack_; }
    [[nodiscard]] const timeline& time() const noexcept { return timeline_; }
    [[nodiscard]] const ring_info& ring() const noexcept { return ring_; }
    /// ring_info::advice, in a place that stays.
    [[nodiscard]] std::string_view advice() {
        std::string now = ring_.advice(plan_);
        if (advices_.empty() || advices_.back() != now) advices_.push_back(std::move(now));
        return advices_.back();
    }
    [[nodiscard]] const std::vector<process_info>& processes() const noexcept { return processes_; }
    [[nodiscard]] const std::deque<lane_info>& lanes() const noexcept { return lanes_; }
    [[nodiscard]] const std::vector<damage>& damages() const noexcept { return damages_; }
    /// What ticks count: 0 nothing, 1 the x86 time stamp counter, 2 CLOCK_MONOTONIC, 3 the aarch64
    /// generic timer.
    [[nodiscard]] std::uint32_t clock() const noexcept { return clock_; }

    /// The number of whole sub-buffers that the file holds now.
    [[nodiscard]] std::uint64_t present() const noexcept {
        return layout::present_sub_buffers(plan_, source_.size());
    }

    /// Whether all processes have different ids. In containers several may have id 1.
    [[nodiscard]] bool pids_differ() const noexcept { return pids_differ_; }
    /// A lane's process as people are shown it: its id, with its number if ids are not unique.
    [[nodiscard]] std::string process_text(const lane_info& lane) const {
        std::string text = std::to_string(lane.pid);
        if (lane.process && !pids_differ_) text += '#' + std::to_string(*lane.process);
        return text;
    }

    /// The lane of this number; null if neither the table nor `note_lane` named it.
    [[nodiscard]] const lane_info* find_lane(std::uint32_t number) const noexcept {
        const auto found = by_number_.find(number);
        return found == by_number_.end() ? nullptr : found->second;
    }
    /// The same, but adds a lane that is not known: for records whose lane left the table.
    [[nodiscard]] const lane_info& note_lane(std::uint32_t number) { return add_lane(number); }
    /// Says that records of a lane which left the table are not missing before this one, or are
    /// reported with those of other lanes: how many of them sessions consumed is not known.
    void excuse_lane(std::uint32_t number, position before) { add_lane(number).drained = before; }

    /// The lane as another thread recorded in it: the lane's number with that thread's identity. It
    /// stays where it is in memory. Several threads may call this simultaneously.
    [[nodiscard]] const lane_info& guest_of(const lane_info& lane, const owner_record& who) const {
        const std::lock_guard<std::mutex> alone(guests_lock_);
        auto& guest = guests_[{lane.number, who.word()}];
        if (guest == nullptr) {
            guest = std::make_unique<lane_info>(lane.as_guest(who, processes_));
        }
        return *guest;
    }

    /// The same for a thread of the lane's process whose references another one recorded, with the
    /// name that it has in its own lane.
    [[nodiscard]] const lane_info& guest_of(const lane_info& lane, std::uint32_t thread) const {
        constexpr std::uint32_t no_process = ~std::uint32_t{0};
        owner_record who{thread, static_cast<std::uint16_t>(lane.process.value_or(0)), 0};
        who.named = true;
        {
            const std::lock_guard<std::mutex> alone(guests_lock_);
            for (; known_threads_ < lanes_.size(); ++known_threads_) {
                const lane_info& own = lanes_[known_threads_];
                by_thread_[{own.thread, own.process.value_or(no_process)}] = &own;
            }
            const auto own = by_thread_.find({thread, lane.process.value_or(no_process)});
            if (own != by_thread_.end()) {
                const std::string& name = own->second->name;
                std::copy_n(name.data(), (std::min)(name.size(), sizeof who.name),
                            reinterpret_cast<char*>(who.name));
            }
        }
        return guest_of(lane, who);
    }

    /// The type of a record with this header word, lane and sub-buffer head; null if the dictionary
    /// lacks it.
    [[nodiscard]] const event_type* type_of(const lane_info& lane, const sub_buffer_copy& head,
                                            std::uint32_t word) const noexcept {
        const std::uint32_t id = record_word::id(word);
        const event_type* const type = lane.root ? dictionary_.find(*lane.root, id)
                                       : head.numbering != 0
                                           ? dictionary_.find(head.numbering - 1, id)
                                           : dictionary_.find_only(id);
        return type != nullptr ? &type->of_record(word) : nullptr;
    }

    /// The type of a record that a draining session handed over, by its lane's number and its id;
    /// null if it is not known. Reads the tables again if they lack it.
    [[nodiscard]] const event_type* type_of_drained(std::uint32_t lane, std::uint16_t id) {
        const auto find = [&]() -> const event_type* {
            const lane_info* const known = find_lane(lane);
            if (known == nullptr || !known->root) return nullptr;
            return dictionary_.find(*known->root, id);
        };
        if (const event_type* const type = find()) return type;
        refresh();
        const event_type* const type = find();
        // Of a lane that has left the table.
        return type != nullptr ? type : dictionary_.find_only(id);
    }

    /// How often the events of this type happened, including lost ones; nothing if the type has no
    /// total. Reads the file.
    [[nodiscard]] std::optional<std::uint64_t> total_of(const event_type& type) const {
        if (!type.total) return std::nullopt;
        // One row for each lane, then one for each family of processes: the sum of departed lanes.
        std::uint64_t sum = total_at(plan_.lane_count + std::uint64_t{type.root}, *type.total);
        for (const auto& lane : lanes_) {
            if (lane.listed && lane.root == type.root) sum += total_at(lane.row, *type.total);
        }
        return sum;
    }

    /// True if the process still has the file open for recording, by its lock. Memory has no locks:
    /// there the table decides.
    [[nodiscard]] bool alive(const process_info& process) const noexcept {
        return process.state == layout::presence::live &&
               (source_.fd() < 0 || source_.is_locked(layout::lock_offset(process.slot)));
    }
    /// True if some process has the file mapped to record, or may have: a forked process that has
    /// not recorded yet is not in the table.
    [[nodiscard]] bool in_use() const noexcept {
        return source_.is_locked(layout::use_lock_offset) ||
               std::any_of(processes_.begin(), processes_.end(),
                           [this](const process_info& each) { return alive(each); });
    }

private:
    // Numbers that no recorder writes and that would make a reader allocate without limit.
    [[nodiscard]] static layout::header_fault impossible_count(const layout::plan& p) noexcept {
        using layout::file_header;
        constexpr std::uint64_t most = 1U << 16;
        if (p.dictionary_bytes > 1U << 26)
            return {"impossible size of the dictionary", offsetof(file_header, dictionary_bytes)};
        if (p.lane_count > 1U << 20)
            return {"impossible number of lanes", offsetof(file_header, lane_count)};
        if (p.process_count > most)
            return {"impossible number of processes", offsetof(file_header, process_count)};
        if (p.clock_count > most)
            return {"impossible number of clock readings", offsetof(file_header, clock_count)};
        return {};
    }
    /// A trimmed trace that a process joins has other tables from then on. They have the same
    /// entries as those that it had, and its sub-buffers have the same slots.
    void read_plan() noexcept {
        alignas(8) std::byte head[layout::format_page_bytes]{};
        layout::plan now;
        if (source_.read(0, head, sizeof head) == sizeof head &&
            !layout::check_layout(head, source_.size(), now) && !impossible_count(now) &&
            now.sub_buffer_bytes == plan_.sub_buffer_bytes &&
            now.sub_buffer_limit >= plan_.sub_buffer_limit) {
            plan_ = now;
        }
    }

    [[nodiscard]] std::uint64_t total_at(std::uint64_t row, std::uint32_t column) const noexcept {
        std::uint64_t count = 0;
        (void)source_.read(plan_.totals_at(row) + column * sizeof count, &count, sizeof count);
        return count;
    }

    /// Copies an entry; false if not all of it is in the file.
    template <class Entry>
    bool read(std::uint64_t offset, Entry& into) const noexcept {
        return source_.read(offset, static_cast<void*>(&into), sizeof into) == sizeof into;
    }
    /// A region as words; words that the file has lost since read as zero.
    [[nodiscard]] std::vector<std::uint64_t> region(std::uint64_t offset,
                                                    std::uint64_t bytes) const {
        std::vector<std::uint64_t> words(as_size(bytes / 8));
        (void)source_.read(offset, words.data(), words.size() * 8);
        return words;
    }
    void read_ring() {
        layout::ring_state copy{};
        read(plan_.ring, copy);
        ring_ = ring_info::from(copy, [&](const auto& count, std::string what) {
            const auto* const first = reinterpret_cast<const std::byte*>(&copy);
            const auto* const place = reinterpret_cast<const std::byte*>(&count);
            note(plan_.ring + static_cast<std::uint64_t>(place - first), std::move(what));
        });
    }

    /// False if no process changed since the last look.
    bool read_processes() {
        auto words =
            region(plan_.processes, plan_.process_at(plan_.process_count) - plan_.processes);
        if (words == process_words_) return false;
        process_words_ = std::move(words);
        const layout::copied_entries<layout::process_entry> all{process_words_, plan_.processes};
        const auto noting = [this](std::uint64_t offset, const char* what) { note(offset, what); };
        processes_.resize(plan_.process_count);
        std::vector<std::uint32_t> pids;
        for (std::uint32_t slot = 0; slot < plan_.process_count; ++slot) {
            processes_[slot] = process_info::from(all, slot, noting);
            if (processes_[slot].pid != 0) pids.push_back(processes_[slot].pid);
        }
        std::sort(pids.begin(), pids.end());
        pids_differ_ = std::adjacent_find(pids.begin(), pids.end()) == pids.end();
        return true;
    }

    /// How many rows of the lane table to read. The table of a large trace has thousands, given out
    /// in order: as many as lanes were numbered, and, as that number may be damaged, further ones
    /// up to a stretch in which no lane was ever entered.
    [[nodiscard]] std::uint32_t lane_rows() const {
        constexpr std::uint32_t stretch = 64;
        std::uint32_t numbered[2] = {};
        (void)source_.read(plan_.ring + offsetof(layout::ring_state, last_lane), numbered,
                           sizeof numbered);
        std::uint32_t rows = (std::min)(numbered[0], plan_.lane_count);
        while (rows < plan_.lane_count) {
            const std::uint32_t more = (std::min)(stretch, plan_.lane_count - rows);
            const auto next = region(plan_.lane_at(rows), more * sizeof(layout::lane_entry));
            if (std::all_of(next.begin(), next.end(), [](std::uint64_t w) { return w == 0; }))
                break;
            rows += more;
        }
        return rows;
    }
    /// Calls `visit(table, row, number)` for each lane in the file's table.
    template <class Visit>
    void for_each_lane(Visit&& visit) const {
        read_twice<layout::lane_entry> table;
        table.read(source_, plan_.lanes, lane_rows());
        const auto first = table.first();
        for (std::size_t i = 0; i < first.size(); ++i) {
            // relaxed, to the end: a copy
            const std::uint32_t number = first[i].number.load(relaxed);
            const auto state = static_cast<layout::presence>(first[i].state.load(relaxed));
            if (number != 0 && number == table.again()[i].number.load(relaxed) &&
                state != layout::presence::preparing) {
                visit(table, i, number);
            }
        }
    }
    void read_lanes() {
        ++looks_;
        const auto noting = [this](std::uint64_t offset, std::string what) {
            note(offset, std::move(what));
        };
        for_each_lane([&](const auto& table, std::size_t row, std::uint32_t number) {
            auto& lane = add_lane(number);
            if (lane.listed && lane.row != row) {
                note(table.first().offset(table.first()[row].number), "a lane listed twice");
            } else {
                lane.looked = looks_;
                lane.update(table, row, processes_, noting);
            }
        });
    }

    [[nodiscard]] lane_info& add_lane(std::uint32_t number) {
        auto& lane = by_number_[number];
        if (lane == nullptr) {
            lane = &lanes_.emplace_back();
            lane->number = number;
        }
        return *lane;
    }

    void read_dictionary() {
        auto words = region(plan_.dictionary, plan_.dictionary_bytes);
        std::vector<damage> found;
        dictionary_.add({reinterpret_cast<std::byte*>(words.data()), plan_.dictionary_bytes},
                        plan_.dictionary, plan_.process_count, plan_.totals_per_lane, found);
        for (auto& fault : found) note(fault.offset, std::move(fault.what));
    }

    /// After the lanes: a thread reads the clocks before it enters its lane.
    void read_clocks() {
        auto snapshots = reduce::read_clocks(source_, plan_, ring_);
        for (auto& each : snapshots) each.realtime += shift_;
        timeline_ = timeline(std::move(snapshots), clock_ == 0 ? 0 : ticks_per_second_);
    }
    /// Raises the times of lanes to their eras.
    void raise_lanes() {
        const auto& eras = timeline_.eras();
        if (!eras.several()) return;
        for (auto& lane : lanes_) {
            if (is_gone(lane)) continue;
            lane.began = eras.raised(lane.number, no_position, lane.began);
            if (lane.ended != 0) lane.ended = eras.raised(lane.number, no_position, lane.ended);
        }
    }

    void note(std::uint64_t offset, std::string what) {
        damage found{offset, std::move(what)};
        constexpr std::size_t most = 1000;  // one wrong number can make every entry wrong
        if (damages_.size() < most &&
            std::find(damages_.begin(), damages_.end(), found) == damages_.end()) {
            damages_.push_back(std::move(found));
        }
    }

    source source_;
    layout::plan plan_{};
    std::uint32_t clock_ = 0;
    std::uint64_t ticks_per_second_ = 0;
    std::uint64_t shift_ = 0;  // modulo 2^64
    ring_info ring_{};
    std::deque<std::string> advices_{};
    std::uint64_t looks_ = 0;  // looks at the lanes so far
    std::vector<process_info> processes_{};
    std::vector<std::uint64_t> process_words_{};  // as read last
    bool pids_differ_ = true;
    std::deque<lane_info> lanes_{};
    std::unordered_map<std::uint32_t, lane_info*> by_number_{};
    /// By lane number and owner_record::word.
    mutable std::mutex guests_lock_{};
    mutable std::map<std::pair<std::uint32_t, std::uint64_t>, std::unique_ptr<lane_info>> guests_{};
    /// By thread and process; the first `known_threads_` lanes.
    mutable std::map<std::pair<std::uint32_t, std::uint32_t>, const lane_info*> by_thread_{};
    mutable std::size_t known_threads_ = 0;
    dictionary dictionary_;
    const packing* unpack_;
    timeline timeline_{};
    std::vector<damage> damages_{};
};

}  // namespace trace_ring::inline v1::reduce
