// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The recorder under all interleavings within the bounds: sub-buffers are claimed, filled, closed
/// and overwritten by two threads, copied by a reader, held and given back by a session, and handed
/// on by a thread that ends. Eight sub-buffers, the fewest there may be, of two records each.
///
/// The recorder is made once. What it is at the start of a run, all its memory and what its threads
/// have of it, is kept and copied back for each. Fibres are all of one thread: their thread-local
/// words are exchanged with each change of the fibre.

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <model/fake_time.hpp>
#include <model/harness.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/record/event.hpp>
#include <trace_ring/recorder/in_place/source.hpp>
#include <trace_ring/recorder/recorder.hpp>

namespace {

using model::require;
using trace_ring::full_mode;
using trace_ring::loss_cause;
namespace impl = trace_ring::impl;

struct untimed {
    using clock = trace_ring::clock::none;
};
/// A clock that goes on by one whenever it is asked, and whose high half changes now and then.
struct ticking {
    using family = trace_ring::family::clock;
    static constexpr std::uint32_t kind =
        static_cast<std::uint32_t>(trace_ring::clock_kind::monotonic);
    static inline std::uint64_t asked = 0;

    [[nodiscard]] static std::uint64_t now() noexcept {
        ++asked;
        return asked / 64 << 32 | asked;
    }
    [[nodiscard]] static bool usable() noexcept { return true; }
    [[nodiscard]] static double ticks_per_second() noexcept { return 1e9; }
};
struct timed {
    using clock = ticking;
};

/// Two fill a sub-buffer. Of the words, the first and the last matter; those between are left out.
using words = std::array<std::uint64_t, 25>;
struct filled : trace_ring::event<"filled", trace_ring::field<"words", words>> {};
/// Without those between: for what is handed on half empty.
using two_words = std::array<std::uint64_t, 2>;
struct small : trace_ring::event<"small", trace_ring::field<"words", two_words>> {};
constexpr std::size_t record_bytes = 8 + sizeof(words);
constexpr std::size_t sub_buffer_bytes = 512;
constexpr std::size_t sub_buffers = 8;

/// A number is 1000 times its writer, and which of the writer's it is, from 0.
constexpr std::uint64_t of_writer = 1000;

struct books {
    std::uint64_t tried = 0, written = 0;
    std::array<std::uint64_t, 3> next{};
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

/// What a fibre has in place of thread-local words of its own.
struct own_words {
    std::array<std::byte, sizeof(impl::thread_lanes)> lanes;
    std::array<std::byte, sizeof(impl::first_lanes)> first;

    void save() {
        std::memcpy(lanes.data(), &impl::thread_lanes, lanes.size());
        std::memcpy(first.data(), const_cast<impl::lane_state**>(&impl::first_lanes[0]),
                    first.size());
    }
    void load() const {
        std::memcpy(static_cast<void*>(&impl::thread_lanes), lanes.data(), lanes.size());
        std::memcpy(const_cast<impl::lane_state**>(&impl::first_lanes[0]), first.data(),
                    first.size());
    }
};
std::array<own_words, 3> of_fibre;
own_words of_main;

void enter(unsigned fibre) {
    of_main.save();
    of_fibre[fibre].load();
}
void leave(unsigned fibre) {
    of_fibre[fibre].save();
    of_main.load();
}

template <class Kind>
class bench_of {
    using recorder = trace_ring::basic_recorder<Kind>;

public:
    /// Before the first run: `prepare(*this)` records what is to be there.
    template <class Prepare>
    bench_of(full_mode full, Prepare prepare) : full_(full) {
        trace_ring::recorder_options options;
        options.size = sub_buffers * sub_buffer_bytes;
        options.sub_buffer_bytes = sub_buffer_bytes;
        options.full = full;
        options.lanes = 8;
        options.processes = options.programs = 1;
        options.totals = 0;
        options.dictionary_bytes = 4096;
        of_main.save();
        for (auto& each : of_fibre) each.save();
        // What each fibre, as a thread, gets once, and keeps: it shall not be another in each run.
        recorder_ = std::make_unique<recorder>(options);
        for (unsigned w = 1; w <= 3; ++w) write_as(w, 1);
        book = {};
        recorder_ = nullptr;
        recorder_ = std::make_unique<recorder>(options);
        impl::for_each_core([this](impl::core& each) {
            if (each.memory().base() == recorder_->bytes().first) core_ = &each;
        });
        prepare(*this);
        keep(core_, sizeof *core_);
        keep(core_->memory().base(), recorder_->bytes().second);
        for (const auto& each : of_fibre) {
            impl::lane_block* block = nullptr;
            std::memcpy(&block, each.lanes.data(), sizeof block);
            if (block != &impl::vacant_block) keep(&impl::node_of(*block), impl::node_bytes);
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
        for (std::size_t i = 0; i < sub_buffers; ++i) {
            auto* const sub = reinterpret_cast<std::byte*>(&core_->memory().sub_buffer(i));
            if (owners_change) run.handed_on(sub + 64, sub_buffer_bytes - 64);
            for (std::size_t each = 0; each < 2 && !owners_change; ++each) {
                std::byte* const record = sub + 64 + each * record_bytes;
                run.leave_out(record + 16, record_bytes - 24);
                // One writer at a time; and one that comes later comes after whoever held it.
                held_back_only ? run.exclusive(record, record_bytes)
                               : run.handed_on(record, record_bytes);
            }
            run.name("sub-buffer " + std::to_string(i), sub, sub_buffer_bytes);
        }
        run.name("file", core_->memory().base(), recorder_->bytes().second);
        run.name("core", core_, sizeof *core_);
        for (unsigned i = 0; i < 3; ++i) {
            impl::lane_block* block = nullptr;
            std::memcpy(&block, fibres_[i].lanes.data(), sizeof block);
            run.name("lanes of " + std::to_string(i), block, sizeof *block);
        }
    }

    /// By fibre `w` - 1.
    void write(unsigned w, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t number = w * of_writer + book.next[w - 1]++;
            ++book.tried;
            words all{};
            all[0] = number;
            all[24] = ~number;
            if (owners_change ? recorder_->template record<small>(two_words{number, ~number})
                              : recorder_->template record<filled>(all)) {
                ++book.written;
            } else {
                --book.next[w - 1];
            }
        }
    }
    /// Outside of a run, as fibre `w` - 1.
    void write_as(unsigned w, unsigned count) {
        enter(w - 1);
        write(w, count);
        leave(w - 1);
    }
    /// What a thread does at its end.
    void end_thread() {
        impl::lane_block* block = nullptr;
        std::memcpy(&block, static_cast<void*>(&impl::thread_lanes), sizeof block);
        if (block != &impl::vacant_block) core_->leave_thread(*block);
    }
    void end_as(unsigned w) {
        enter(w - 1);
        end_thread();
        leave(w - 1);
    }

    /// After all threads have ended: what is there, and what is said to be gone.
    void close() {
        for (unsigned w = 1; w <= 3; ++w) end_as(w);
        std::uint64_t found = 0;
        std::uint64_t held = 0;
        for (std::size_t i = 0; i < sub_buffers; ++i) held += copy(i, found) ? 1U : 0U;
        const auto& ring = core_->memory().ring();
        using trace_ring::relaxed;
        require(held == 0, "a sub-buffer is held though all threads have ended");
        require(ring.held.load(relaxed) == 0, "sub-buffers are counted as held");
        require(
            found + ring.overwritten_records.load(relaxed) + ring.consumed_records.load(relaxed) ==
                book.written,
            "records there, overwritten and consumed are not all that were written");
        std::uint64_t written = ring.folded_written.load(relaxed);
        std::uint64_t refused = ring.folded_refused.load(relaxed);
        for (std::uint32_t i = 0; i < core_->memory().plan().lane_count; ++i) {
            written += core_->memory().lane(i).written.load(relaxed);
            refused += core_->memory().lane(i).refused.load(relaxed);
        }
        require(written == book.written, "lanes do not count what was written");
        require(refused + ring.refused_without_lane.load(relaxed) == book.tried - book.written,
                "what was refused was not counted so");
    }
    /// Copies one sub-buffer and checks it; true if a writer holds it.
    bool copy(std::size_t slot, std::uint64_t& found) {
        std::array<std::uint64_t, sub_buffer_bytes / 8> into;
        trace_ring::sub_buffer_copy head;
        const auto what =
            trace_ring::copy_sub_buffer(&core_->memory().sub_buffer(slot), into, head);
        require(what != trace_ring::copy_result::damaged, "a sub-buffer was found damaged");
        if (what != trace_ring::copy_result::copied) return false;
        std::uint64_t first = 0;
        std::uint64_t records = 0;
        const auto left = trace_ring::walk_records(
            into, head, [&](std::uint32_t word, std::uint64_t, std::uint32_t about) {
                const auto payload = std::span<const std::uint64_t>(into).subspan(
                    word + 1, trace_ring::record_word::bytes(about) / 8 - 1);
                if (records++ == 0) first = payload[0];
                require(owners_change || payload[0] == first + records - 1,
                        "the records of a lane are not in a row");
                require(payload.back() == ~payload[0], "a torn record was read");
                if (!model::the_scheduler.running()) book.got(payload);
            });
        require(left == 0 && records == head.records, "a sub-buffer was found damaged");
        require(records == 0 || owners_change || first % of_writer == head.first_position,
                "a header is not its sub-buffer's");
        found += records;
        // The header of each position is one, whenever it is looked at.
        const std::array<std::uint64_t, 3> now{head.lane, head.first_position, head.previous};
        const auto before = headers.try_emplace(head.state.pos, now).first;
        require(before->second == now, "a header is not its sub-buffer's");
        return head.state.state == static_cast<unsigned>(trace_ring::sub_buffer_state::active);
    }

    [[nodiscard]] bool overwrites() const { return full_ == full_mode::overwrite_oldest; }
    recorder& of() { return *recorder_; }
    impl::core& core() { return *core_; }

    books book;
    std::map<std::uint64_t, std::array<std::uint64_t, 3>> headers;  ///< seen, by position
    bool held_back_only = false;  ///< records are loaded by none but a session that holds them
    bool owners_change = false;   ///< a thread goes on in another's lane

private:
    struct region {
        void* at;
        std::vector<std::byte> bytes;
    };
    void keep(void* at, std::size_t bytes) {
        kept_.push_back({at, std::vector<std::byte>(bytes)});
        std::memcpy(kept_.back().bytes.data(), at, bytes);
    }

    full_mode full_;
    std::unique_ptr<recorder> recorder_;
    impl::core* core_ = nullptr;
    std::vector<region> kept_;
    std::array<own_words, 3> fibres_;
    books books_;
    std::uint64_t asked_ = 0;
};
using bench = bench_of<untimed>;

/// The bench of an exploration, made when it begins. The one before ends: recorders are few.
std::shared_ptr<void> there;
std::string whose;
template <class Kind = untimed, class Prepare>
bench_of<Kind>& bench_for(const char* exploration, full_mode full, Prepare prepare) {
    if (whose != exploration) {
        there.reset();
        there = std::make_shared<bench_of<Kind>>(full, prepare);
        whose = exploration;
    }
    return *static_cast<bench_of<Kind>*>(there.get());
}

/// Both writers have a sub-buffer with room for one more record, and the ring has been round.
constexpr auto go_round = [](auto& on) {
    on.write_as(1, 11);
    on.write_as(2, 11);
};

void overwriting(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    on.begin(run);
    run.thread([&on] { on.write(1, 4); });
    run.thread([&on] { on.write(2, 4); });
    run.afterwards([&on] { on.close(); });
}

template <class Kind>
void reading(model::run& run) {
    auto& on = bench_for<Kind>(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    on.begin(run);
    run.thread([&on] { on.write(1, 4); });
    run.thread([&on] {
        std::uint64_t found = 0;
        const auto newest = on.core().memory().ring().cursor.load(trace_ring::relaxed);
        for (std::size_t i = 0; i < 3; ++i) on.copy((newest + i) % sub_buffers, found);
    });
    run.afterwards([&on] { on.close(); });
}

/// A session, which holds closed sub-buffers and reads them as plain memory.
struct session {
    explicit session(trace_ring::basic_recorder<untimed>& from) : source(from) { source.attach(); }

    bool take(bench& on, bool open_ones) {
        trace_ring::drained_sub_buffer portion;
        if (source.take(portion)) {
            look(on, portion);
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over was written to");
            source.consume(portion);
            return true;
        }
        if (!open_ones || !source.take_open(portion)) return false;
        look(on, portion);
        source.consume(portion);
        return true;
    }
    void finish(bench& on) {
        for (unsigned w = 1; w <= 3; ++w) on.end_as(w);
        while (take(on, true)) {
        }
        lost += source.rest();
        source.detach();
        require(on.overwrites() || lost[loss_cause::overwritten] == 0,
                "what was not drained was overwritten");
        require(drained + lost[loss_cause::overwritten] == on.book.written,
                "drained and overwritten records are not all that were written");
        require(lost[loss_cause::refused] == on.book.tried - on.book.written,
                "what was refused was not told, or twice");
        require(lost.total() == lost[loss_cause::overwritten] + lost[loss_cause::refused],
                "something was lost for no reason");
    }

    trace_ring::drain_source source;
    trace_ring::loss_counts lost;
    std::uint64_t drained = 0;

private:
    void look(bench& on, const trace_ring::drained_sub_buffer& portion) {
        if (!portion.copied()) {
            const auto bytes = portion.bytes();
            require(model::the_scheduler.read_plainly(bytes.data(), bytes.size()),
                    "what was handed over is not all known");
        }
        lost += portion.lost();
        const auto found = portion.visit([&](const trace_ring::drained_record& r) {
            on.book.got(r.payload);
            require(on.owners_change || r.payload[0] % of_writer == r.at,
                    "a record was drained at another's position");
        });
        require(found == portion.records(), "a sub-buffer was found damaged");
        drained += found;
    }
};

/// Writers, and a session beside them.
void draining(model::run& run, bench& on, unsigned writers, unsigned records, unsigned takes,
              bool open_ones) {
    static model::anew<session> drains;
    on.held_back_only = !open_ones;
    on.begin(run);
    drains.make(on.of());
    for (unsigned w = 1; w <= writers; ++w) run.thread([=, &on] { on.write(w, records); });
    run.thread([=, &on] {
        for (unsigned i = 0; i < takes; ++i) {
            if (!drains->take(on, open_ones)) model::yield();
        }
    });
    run.afterwards([&on] {
        drains->finish(on);
        on.close();
    });
}

/// A thread ends and hands its sub-buffer on, while others come.
void handing_on(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.owners_change = true;
        b.write_as(1, 2);
    });
    on.begin(run);
    run.thread([&on] {
        on.write(1, 1);
        on.end_thread();
    });
    run.thread([&on] { on.write(2, 2); });
    run.thread([&on] { on.write(3, 1); });
    run.afterwards([&on] { on.close(); });
}

/// What was handed on is about to be overwritten.
void handing_on_the_oldest(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.owners_change = true;
        // 18 to a sub-buffer: the next that is claimed is the one that the first thread left.
        b.write_as(3, 1);
        b.write_as(1, 2);
        b.end_as(1);
        b.write_as(3, 18 * sub_buffers - 1);
    });
    on.begin(run);
    run.thread([&on] { on.write(2, 2); });
    run.thread([&on] { on.write(3, 2); });
    run.afterwards([&on] { on.close(); });
}

}  // namespace

MODEL_TEST(two_threads_claim_fill_and_close_sub_buffers, 24'000'000) {
    overwriting(run);
}
MODEL_TEST(a_reader_copies_sub_buffers_that_a_thread_overwrites, 24'000'000) {
    reading<untimed>(run);
}
MODEL_TEST(a_reader_copies_what_is_recorded_with_a_clock, 24'000'000) {
    reading<timed>(run);
}
MODEL_TEST(a_session_drains_what_two_threads_write_and_is_told_what_it_missed, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    draining(run, on, 2, 3, 3, false);
}
MODEL_TEST(a_session_that_takes_open_sub_buffers_gets_no_record_twice, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, go_round);
    draining(run, on, 1, 4, 4, true);
}
MODEL_TEST(a_session_makes_room_in_a_ring_that_refuses, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::discard_newest, [](auto& b) {
        b.write_as(1, 7);
        b.write_as(2, 7);
    });
    draining(run, on, 2, 3, 3, false);
}
MODEL_TEST(a_session_makes_room_for_a_thread_that_waits, 24'000'000) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::block, [](auto& b) {
        b.write_as(1, 8);
        b.write_as(2, 7);
    });
    draining(run, on, 1, 2, 3, false);
}
MODEL_TEST(a_thread_that_ends_hands_on_what_it_has_not_filled, 24'000'000) {
    handing_on(run);
}
MODEL_TEST(what_was_handed_on_is_gone_on_with_or_overwritten, 24'000'000) {
    handing_on_the_oldest(run);
}
