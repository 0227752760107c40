// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#pragma once

/// @file
/// What the explorations of the recorder have in common. Eight sub-buffers, the fewest there may
/// be, of two records each.
///
/// The recorder is made once. What it is at the start of a run, all its memory and what its threads
/// have of it, is kept and copied back for each. Fibres are all of one thread: their thread-local
/// words are exchanged with each change of the fibre.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <model/fake_time.hpp>
#include <model/harness.hpp>
#include <trace_ring/format/records.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace recorders {

using model::require;
using trace_ring::full_mode;
namespace impl = trace_ring::impl;

struct untimed : trace_ring::policies<trace_ring::clock::none> {};
/// A clock that advances by one at each read, and whose high half changes now and then.
struct ticking {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind =
        static_cast<std::uint32_t>(trace_ring::clock_kind::monotonic);
    static inline std::uint64_t asked = 0;

    [[nodiscard]] static std::uint64_t now() noexcept {
        ++asked;
        return asked / 16 << 32 | asked;
    }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }
};
struct timed : trace_ring::policies<ticking> {};

/// Two fill a sub-buffer. Of the words, the first and the last matter; those between are left out.
using words = std::array<std::uint64_t, 25>;
struct filled : trace_ring::event<"filled", trace_ring::field<"words", words>> {};
/// Without those between: for what is adopted half empty.
using two_words = std::array<std::uint64_t, 2>;
struct small : trace_ring::event<"small", trace_ring::field<"words", two_words>> {};
/// Like `filled`, in a separate ring.
struct apart : trace_ring::event<"apart", trace_ring::field<"words", words>> {
    static constexpr std::uint32_t ring = 1;
};
constexpr std::size_t record_bytes = 8 + sizeof(words);
constexpr std::size_t sub_buffer_bytes = 512;
constexpr std::size_t sub_buffers = 8;

/// A number is 1000 times its writer, and which of the writer's it is, from 0.
constexpr std::uint64_t of_writer = 1000;

struct books {
    std::uint64_t tried = 0, written = 0;
    std::uint64_t shut = 0;  ///< of those tried, gates were shut for so many
    std::array<std::uint64_t, 3> next{};
    std::array<bool, 3> in_flight{};
    std::map<std::uint64_t, bool> read{};

    void got(std::span<const std::uint64_t> payload) {
        require(payload.back() == ~payload[0], "a torn record was read");
        const std::uint64_t writer = payload[0] / of_writer;
        require(writer >= 1 && writer <= 3 && payload[0] % of_writer < next[writer - 1],
                "a record was read that nobody wrote");
        bool& known = read[payload[0]];
        require(!known, "a record was read twice");
        known = true;
    }
};

/// A fibre's replacement for thread-local words.
struct own_words {
    std::array<std::byte, sizeof(impl::thread_lanes)> lanes;

    void save() { std::memcpy(lanes.data(), &impl::thread_lanes, lanes.size()); }
    void load() const {
        std::memcpy(static_cast<void*>(&impl::thread_lanes), lanes.data(), lanes.size());
    }
};
inline std::array<own_words, 3> of_fibre;
inline own_words of_main;

inline void enter(unsigned fibre) {
    of_main.save();
    of_fibre[fibre].load();
}
inline void leave(unsigned fibre) {
    of_fibre[fibre].save();
    of_main.load();
}

/// What a recorder is to be like.
struct how {
    how(full_mode f) : full(f) {}

    full_mode full;
    std::uint64_t size = sub_buffers, limit = 0, step = 1, quota = 0;  ///< in sub-buffers
    std::chrono::nanoseconds keep_for{0};
    bool memory_file = false;
    std::string file{};  ///< and a second process that records into it
    std::uint32_t lanes = 8;
};

template <class Kind>
class bench_of {
    using recorder = trace_ring::basic_recorder<Kind>;

public:
    /// Before the first run: `prepare(*this)` records what is to be there.
    template <class Prepare>
    bench_of(const how& as, Prepare prepare) : full_(as.full) {
        trace_ring::recorder_options options;
        options.size = as.size * sub_buffer_bytes;
        options.limit = as.limit * sub_buffer_bytes;
        options.step = as.step * sub_buffer_bytes;
        if (as.quota != 0) options.quotas = {as.quota * sub_buffer_bytes};
        options.sub_buffer_bytes = sub_buffer_bytes;
        options.full = full_;
        options.keep_for = as.keep_for;
        options.memory_file = as.memory_file;
        options.lanes = as.lanes;
        options.processes = options.programs = 2;
        if (!as.file.empty()) {
            static_cast<void>(std::remove(as.file.c_str()));
            options.file = as.file;
            options.exists = trace_ring::if_exists::attach;
        }
        options.totals = 0;
        options.dictionary_bytes = 4096;
        of_main.save();
        for (auto& each : of_fibre) each.save();
        // What each fibre, as a thread, gets once, and keeps: it shall not be another in each run.
        recorder_ = std::make_unique<recorder>(options);
        for (unsigned w = 1; w <= 3; ++w) {
            write_as(w, 1);
            if (as.quota != 0) write_as<apart>(w, 1);
        }
        book = {};
        recorder_ = nullptr;
        if (!as.file.empty()) static_cast<void>(std::remove(as.file.c_str()));
        recorder_ = std::make_unique<recorder>(options);
        lanes_ = lanes_of(*recorder_);
        if (!as.file.empty()) {
            second_ = std::make_unique<recorder>(options);
            second_lanes_ = lanes_of(*second_);
            keep(second_lanes_, sizeof *second_lanes_);
        }
        slots_ = lanes_->memory().plan().sub_buffer_limit;
        bytes_ = lanes_->memory().plan().bytes_for(slots_);
        // The bytes always exist; a test decides whether growing succeeds.
        if (as.memory_file) {
            require(::ftruncate64(recorder_->descriptor(), static_cast<off64_t>(bytes_)) == 0,
                    "no memory");
        }
        prepare(*this);
        keep(lanes_, sizeof *lanes_);
        keep(lanes_->memory().base(), bytes_);
        for (const auto& each : of_fibre) {
            for (std::size_t ring = 0; ring < trace_ring::layout::max_rings; ++ring) {
                impl::lane_block* const block = block_of(each, ring);
                if (block != &impl::vacant_block) keep(&impl::node_of(*block), impl::node_bytes);
            }
        }
        asked_ = ticking::asked;
        fibres_ = of_fibre;
        books_ = book;
    }

    void begin(model::run& run) {
        for (const auto& each : kept_) std::memcpy(each.at, each.bytes.data(), each.bytes.size());
        of_fibre = fibres_;
        book = books_;
        headers.clear();
        ticking::asked = asked_;
        run.around(enter, leave);
        run.leave_out(&impl::thread_lanes, sizeof impl::thread_lanes);
        if (second_lanes_ != nullptr)
            run.alias(second_lanes_->memory().base(), bytes_, lanes_->memory().base());
        for (std::size_t i = 0; i < slots_; ++i) {
            auto* const sub = reinterpret_cast<std::byte*>(&lanes_->memory().sub_buffer(i));
            if (owners_change) run.handed_on(sub + 64, sub_buffer_bytes - 64);
            for (std::size_t each = 0; each < 2 && !owners_change; ++each) {
                std::byte* const record = sub + 64 + each * record_bytes;
                run.leave_out(record + 16, record_bytes - 24);
                // One writer at a time; a later writer is ordered after the previous holder.
                held_back_only ? run.exclusive(record, record_bytes)
                               : run.handed_on(record, record_bytes);
            }
            run.name("sub-buffer " + std::to_string(i), sub, sub_buffer_bytes);
        }
        run.name("file", lanes_->memory().base(), bytes_);
        run.name("lanes", lanes_, sizeof *lanes_);
        for (unsigned i = 0; i < 3; ++i) {
            impl::lane_block* const block = block_of(fibres_[i], 0);
            run.name("lanes of " + std::to_string(i), block, sizeof *block);
        }
    }

    /// By fibre `w` - 1, unless a handler is declared to write as `w`.
    template <class E = filled>
    void write(unsigned w, unsigned count) {
        for (unsigned i = 0; i < count; ++i) static_cast<void>(put<E>(*recorder_, w));
    }
    /// The same by the second process.
    void write_second(unsigned w, unsigned count) {
        for (unsigned i = 0; i < count; ++i) static_cast<void>(put<filled>(*second_, w));
    }
    template <class E>
    bool put(recorder& into, unsigned w) {
        const std::uint64_t number = w * of_writer + book.next[w - 1]++;
        ++book.tried;
        bool there = false;
        book.in_flight[w - 1] = true;
        if (owners_change) {
            there = into.template record<small>(two_words{number, ~number});
        } else {
            words all{};
            all[0] = number;
            all[24] = ~number;
            there = into.template record<E>(all);
        }
        book.in_flight[w - 1] = false;
        there ? ++book.written : --book.next[w - 1];
        return there;
    }
    /// Outside of a run, as fibre `w` - 1.
    template <class E = filled>
    void write_as(unsigned w, unsigned count) {
        enter(w - 1);
        write<E>(w, count);
        leave(w - 1);
    }
    /// The first lane of the fibre that runs, or is entered.
    impl::lane_state& own_lane() { return *impl::first_lane(0, impl::lanes_at(lanes_->index())); }
    /// What a thread does at its end.
    void end_thread() {
        for (auto& place : impl::thread_lanes) {
            impl::lane_block* const block = place.load(trace_ring::relaxed);
            if (block == &impl::vacant_block) continue;
            lanes_->release_lanes(*block);
            if (second_lanes_ != nullptr) second_lanes_->release_lanes(*block);
        }
    }
    void end_as(unsigned w) {
        enter(w - 1);
        end_thread();
        leave(w - 1);
    }

    /// After all threads have ended: the existing records, and the reported losses. A record that
    /// was in flight when its writer died is there or not.
    void close() {
        for (unsigned w = 1; w <= 3; ++w) {
            if (!first_is_dead || w == 2) end_as(w);
        }
        std::uint64_t found = 0;
        std::uint64_t held = 0;
        for (std::size_t i = 0; i < lanes_->memory().capacity(); ++i)
            held += copy(i, found) || is_reset(i) ? 1U : 0U;
        const auto& ring = lanes_->memory().ring();
        using trace_ring::relaxed;
        const auto open = static_cast<std::uint64_t>(
            std::count(book.in_flight.begin(), book.in_flight.end(), true));
        const auto is = [open](std::uint64_t there, std::uint64_t least) {
            return there >= least && there <= least + open;
        };
        require(held == 0, "a sub-buffer is held though all threads have ended");
        std::uint64_t counted = ring.held.load(relaxed);
        for (const auto& each : ring.quotas) counted += each.held.load(relaxed);
        require(counted == 0 || held_is_a_guess, "sub-buffers are counted as held");
        const std::uint64_t gone =
            lanes_->memory().overwritten_records() + ring.consumed_records.load(relaxed);
        require(is(found + gone, book.written),
                "records there, overwritten and consumed are not all that were written");
        std::uint64_t written = ring.folded_written.load(relaxed);
        std::uint64_t refused = ring.folded_refused.load(relaxed);
        for (std::uint32_t i = 0; i < lanes_->memory().plan().lane_count; ++i) {
            written += lanes_->memory().lane(i).written.load(relaxed);
            refused += lanes_->memory().lane(i).refused.load(relaxed);
        }
        require(written == found + gone, "lanes do not count what was written");
        require(is(refused + ring.refused_without_lane.load(relaxed) + book.shut + written,
                   book.tried - open),
                "what was refused was not counted so");
    }
    [[nodiscard]] bool is_reset(std::size_t slot) const {
        const auto state = trace_ring::stamped::from(peek(lanes_->memory().sub_buffer(slot).state));
        return state.state == static_cast<unsigned>(trace_ring::sub_buffer_state::reset);
    }
    /// Copies one sub-buffer and checks it; true if a writer holds it.
    bool copy(std::size_t slot, std::uint64_t& found) {
        std::array<std::uint64_t, sub_buffer_bytes / 8> into;
        trace_ring::sub_buffer_copy head;
        const auto what =
            trace_ring::copy_sub_buffer(&lanes_->memory().sub_buffer(slot), into, head);
        require(what != trace_ring::copy_result::damaged, "a sub-buffer was found damaged");
        if (what != trace_ring::copy_result::copied) return false;
        check(into, head, found);
        return head.state.state == static_cast<unsigned>(trace_ring::sub_buffer_state::active);
    }
    /// Checks a copy, and counts its records.
    void check(std::span<const std::uint64_t> into, const trace_ring::sub_buffer_copy& head,
               std::uint64_t& found) {
        std::uint64_t first = 0;
        std::uint64_t records = 0;
        const auto left = trace_ring::walk_records(
            into, head, [&](std::uint32_t word, std::uint64_t, std::uint32_t about) {
                const auto payload =
                    into.subspan(word + 1, trace_ring::record_word::bytes(about) / 8 - 1);
                if (records++ == 0) first = payload[0];
                require(owners_change || mixed || payload[0] == first + records - 1,
                        "the records of a lane are not in a row");
                require(payload.back() == ~payload[0], "a torn record was read");
                if (!model::the_scheduler.running()) book.got(payload);
            });
        require(left == 0 && records == head.records, "a sub-buffer was found damaged");
        require(records == 0 || owners_change || mixed || first % of_writer == head.first_position,
                "a header is not its sub-buffer's");
        found += records;
        // The header of each position is one, whenever it is looked at.
        const std::array<std::uint64_t, 3> now{head.lane, head.first_position, head.previous};
        const auto before = headers.try_emplace(head.state.pos, now).first;
        require(before->second == now, "a header is not its sub-buffer's");
    }

    /// A word's current value, independent of what threads have seen.
    [[nodiscard]] static std::uint64_t peek(const trace_ring::shared_atomic<std::uint64_t>& word) {
        std::uint64_t value = 0;
        std::memcpy(&value, static_cast<const void*>(&word), sizeof value);
        return value;
    }
    [[nodiscard]] bool overwrites() const { return full_ == full_mode::overwrite_oldest; }
    recorder& of() { return *recorder_; }
    impl::lanes_by_thread& lanes() { return *lanes_; }
    impl::lanes_by_thread& second_lanes() { return *second_lanes_; }
    recorder& second() { return *second_; }

    books book;
    std::map<std::uint64_t, std::array<std::uint64_t, 3>> headers;  ///< seen, by position
    bool held_back_only = false;   ///< records are loaded by none but a session that holds them
    bool owners_change = false;    ///< a thread continues in another's lane
    bool held_is_a_guess = false;  ///< of how many sub-buffers are held
    bool first_is_dead = false;    ///< the first process; of the second is fibre 1 alone
    bool mixed = false;            ///< a handler writes into the lane of the code that it
                                   ///< interrupts

private:
    struct region {
        void* at;
        std::vector<std::byte> bytes;
    };
    void keep(void* at, std::size_t bytes) {
        kept_.push_back({at, std::vector<std::byte>(bytes)});
        std::memcpy(kept_.back().bytes.data(), at, bytes);
    }

    static impl::lanes_by_thread* lanes_of(const recorder& which) {
        impl::lanes_by_thread* found = nullptr;
        impl::lanes_by_thread::for_each([&](impl::lanes_by_thread& each) {
            if (each.memory().base() == which.bytes().first) found = &each;
        });
        return found;
    }
    static impl::lane_block* block_of(const own_words& of, std::size_t ring) {
        impl::lane_block* block = nullptr;
        std::memcpy(&block, of.lanes.data() + ring * sizeof block, sizeof block);
        return block;
    }

    full_mode full_;
    std::unique_ptr<recorder> recorder_, second_;
    impl::lanes_by_thread* lanes_ = nullptr;
    impl::lanes_by_thread* second_lanes_ = nullptr;
    std::uint64_t slots_ = 0, bytes_ = 0;
    std::vector<region> kept_;
    std::array<own_words, 3> fibres_;
    books books_;
    std::uint64_t asked_ = 0;
};
using bench = bench_of<untimed>;

/// The bench of an exploration, made when it begins. The one before ends: recorders are few.
inline std::shared_ptr<void> there;
inline std::string whose;
template <class Kind = untimed, class Prepare>
bench_of<Kind>& bench_for(const char* exploration, const how& as, Prepare prepare) {
    if (whose != exploration) {
        there.reset();
        there = std::make_shared<bench_of<Kind>>(as, prepare);
        whose = exploration;
    }
    return *static_cast<bench_of<Kind>*>(there.get());
}

}  // namespace recorders
