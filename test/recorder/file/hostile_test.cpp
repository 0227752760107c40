// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// What others store into the file that a recorder writes: it records or refuses, and touches
/// nothing outside. What the fuzz targets of writers and sessions found, one by one.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <latch>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include <recorder/account.hpp>
#include <recorder/kinds.hpp>
#include <recorder/scratch.hpp>

BOOST_AUTO_TEST_SUITE(hostile)

namespace tr = trace_ring;
namespace layout = trace_ring::layout;
using test::put;
using tr::full_mode;

namespace {

constexpr std::uint64_t anything = 0x5555'5555'5555'5555;

tr::recorder_options small(full_mode full) {
    tr::recorder_options options;
    options.memory_file = true;
    options.size = 16 * 512;
    options.limit = 16 * 512;
    options.sub_buffer_bytes = 512;
    options.full = full;
    options.lanes = 2;
    options.block_for = std::chrono::nanoseconds{0};
    return options;
}

/// The same bytes, mapped by somebody else.
class others {
public:
    explicit others(int fd) {
        const auto first = tr::storage::mapping::of_file("others", fd, layout::format_page_bytes);
        const auto bytes = tr::storage::file_bytes(fd);
        BOOST_REQUIRE(!layout::check_layout(first.data(), bytes, plan));
        memory_ = tr::storage::mapping::of_file("others", fd, plan.file_limit);
    }
    template <class Word>
    [[nodiscard]] tr::shared_atomic<Word>& word(std::uint64_t at) {
        return tr::word_at<Word>(memory_.data(), static_cast<std::size_t>(at));
    }
    [[nodiscard]] layout::ring_state& ring() {
        return *reinterpret_cast<layout::ring_state*>(memory_.data() + plan.ring);
    }
    [[nodiscard]] layout::process_entry& process(std::uint32_t slot) {
        return reinterpret_cast<layout::process_entry*>(memory_.data() + plan.processes)[slot];
    }
    [[nodiscard]] layout::lane_entry& lane(std::uint32_t slot) {
        return reinterpret_cast<layout::lane_entry*>(memory_.data() + plan.lanes)[slot];
    }
    [[nodiscard]] tr::sub_buffer_header& sub_buffer(std::uint64_t slot) {
        return *reinterpret_cast<tr::sub_buffer_header*>(memory_.data() + plan.bytes_for(slot));
    }

    layout::plan plan;

private:
    tr::storage::mapping memory_;
};

template <class Kind>
void fill(tr::basic_recorder<Kind>& to, std::uint64_t count) {
    for (std::uint64_t n = 0; n < count; ++n) put(to, 1, n);
}

struct set_apart : tr::event<"set_apart", tr::field<"n", std::uint64_t>> {
    static constexpr std::uint32_t ring = 1;
};

/// A part of the file that is all words.
struct table {
    const char* name;
    std::uint64_t at, bytes;
};

/// Everything that writers read, except what was checked at set-up and is not read again. Of what
/// comes many times, as many as are used.
std::vector<table> tables_of(const layout::plan& plan, std::uint64_t types) {
    std::vector<table> out = {
        {"ring", plan.ring, sizeof(layout::ring_state)},
        {"clocks", plan.clocks, 2 * sizeof(layout::clock_entry)},
        {"processes", plan.processes, plan.process_count * sizeof(layout::process_entry)},
        {"lanes", plan.lanes, plan.lane_count * sizeof(layout::lane_entry)},
        {"totals", plan.totals, 8ULL * plan.totals_per_lane},
        {"dictionary", plan.dictionary, types},
        {"index", plan.index, 4 * sizeof(layout::index_entry)},
    };
    for (std::uint64_t slot = 0; slot < 4; ++slot) {
        out.push_back({"sub-buffer", plan.bytes_for(slot), sizeof(tr::sub_buffer_header)});
    }
    return out;
}

/// Shared with a child, which may not come back: what it was at.
struct progress {
    std::atomic<const char*> table{""};
    std::atomic<std::uint64_t> offset{0}, value{0};
};

/// Stores each of a few values into each word of each table, one after the other, and calls
/// `then()`; `before()` before that. `fresh()` makes a new trace and says how it is mapped.
template <class Fresh, class Before, class Then>
void scribble(progress& at, Fresh&& fresh, Before&& before, Then&& then) {
    // 200: a slot and a position that there can be, and are not; in either half of a word.
    constexpr std::uint64_t values[] = {200, std::uint64_t{200} << 32, anything, ~std::uint64_t{0}};
    unsigned turn = 0;
    others* other = nullptr;
    const auto tables = tables_of(fresh().plan, 512);
    for (const auto& each : tables) {
        for (std::uint64_t offset = 0; offset < each.bytes; offset += 8) {
            for (const std::uint64_t value : values) {
                if (turn++ % 32 == 0) other = &fresh();
                before();
                at.table = each.name;
                at.offset = offset;
                at.value = value;
                auto& word = other->word<std::uint64_t>(each.at + offset);
                const std::uint64_t was = word.exchange(value);
                then();
                word.store(was);
            }
        }
    }
}

[[nodiscard]] bool extends(full_mode full) {
    return full == full_mode::extend_then_discard || full == full_mode::extend_then_overwrite;
}

/// A trace that may grow to 256 sub-buffers, or not: never to more than 100 here.
tr::recorder_options growing(full_mode full) {
    auto options = small(full);
    options.size = 8 * 512;
    if (extends(full)) {
        options.size = 16 * 512;
        options.quotas = {8 * 512};
    }
    options.limit = 256 * 512;
    options.step = 512;
    options.lanes = 3;
    options.processes = 3;
    options.programs = 2;
    options.totals = 2;
    options.dictionary_bytes = 4096;
    return options;
}

/// Calls `body(mode, progress)` in a child for each of these modes: it comes to its end.
template <class Body>
void for_each_mode(const std::vector<full_mode>& modes, Body&& body) {
    void* const shared = ::mmap(nullptr, layout::format_page_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(shared != MAP_FAILED);
    auto& at = *::new (shared) progress;
    for (const auto full : modes) {
        const int result = test::in_child([&] {
            for (const int end : {SIGSEGV, SIGBUS}) ::signal(end, SIG_DFL);
            body(full, at);
            return 0;
        });
        BOOST_TEST(result == 0, "mode " << static_cast<unsigned>(full) << ": " << result << " at "
                                        << at.table << " + " << at.offset << ", value "
                                        << at.value);
    }
    ::munmap(shared, layout::format_page_bytes);
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_word_that_others_store_anywhere_does_not_end_the_program, kind,
                              test::kinds) {
    std::vector<full_mode> modes{full_mode::overwrite_oldest, full_mode::extend_then_overwrite};
    if constexpr (std::is_same_v<kind, test::by_thread>) {
        modes.insert(modes.end(), {full_mode::discard_newest, full_mode::stop, full_mode::block,
                                   full_mode::extend_then_discard});
    }
    for_each_mode(modes, [](full_mode full, progress& at) {
        std::optional<tr::basic_recorder<kind>> recorder;
        std::optional<others> other;
        const auto fresh = [&]() -> others& {
            other.reset();
            recorder.reset();
            recorder.emplace(growing(full));
            return other.emplace(recorder->descriptor());
        };
        const auto before = [&] {  // there is a lane to continue in, and one that is live
            std::thread([&] { put(*recorder, 2, 0); }).join();
            put(*recorder, 1, 1);
        };
        scribble(at, fresh, before, [&] {
            std::thread([&] { put(*recorder, 2, 1); }).join();
            fill(*recorder, 20);
            recorder->template record<set_apart>(1U);
            recorder->flush_thread();
            put(*recorder, 1, 2);
            recorder->template record<set_apart>(2U);
            if (at.table.load() != std::string_view("ring")) return;
            try {
                tr::drain_source source(*recorder);
                tr::drain::session session(source);
                session.for_each([](const auto&) {});
            } catch (const tr::setup_error&) {  // another has it, it seems
            }
        });
    });
}

BOOST_AUTO_TEST_CASE(who_joins_or_copies_a_trace_with_such_a_word_does_not_end_either) {
    for_each_mode({full_mode::extend_then_overwrite}, [](full_mode full, progress& at) {
        const test::folder folder;
        auto options = growing(full);
        options.memory_file = false;
        options.file = folder / "trace";
        const std::string copy = folder / "copy";
        std::optional<tr::recorder> recorder;
        std::optional<others> other;
        auto joined = options;
        joined.exists = tr::if_exists::attach;
        const auto fresh = [&]() -> others& {
            other.reset();
            recorder.reset();
            std::filesystem::remove(options.file);
            recorder.emplace(options);
            fill(*recorder, 100);
            { const tr::recorder leaves_an_alias{joined}; }
            other.emplace(recorder->descriptor());
            // An entry that is free, and no room but there.
            auto& used = other->ring().dictionary_used;
            const std::uint64_t from = used.exchange(other->plan.dictionary_bytes);
            if (from + 2 * layout::dictionary_unit <= other->plan.dictionary_bytes) {
                const std::uint64_t end = other->plan.dictionary + from;
                other->word<std::uint32_t>(end).store(layout::free_magic);
                other->word<std::uint32_t>(end + 4).store(2 * layout::dictionary_unit);
            }
            return *other;
        };
        scribble(
            at, fresh, [] {},
            [&] {
                static_cast<void>(recorder->snapshot(copy.c_str()));
                std::filesystem::remove(copy);
                try {
                    tr::recorder second{joined};
                    fill(second, 40);
                } catch (const tr::setup_error&) {  // it is not sound
                }
            });
    });
}

BOOST_AUTO_TEST_CASE(a_capacity_beyond_the_limit_is_the_limit) {
    for (const auto full : {full_mode::overwrite_oldest, full_mode::extend_then_overwrite,
                            full_mode::discard_newest}) {
        tr::recorder recorder{small(full)};
        others other(recorder.descriptor());
        fill(recorder, 100);
        for (const std::uint64_t much : {anything, ~std::uint64_t{0}, std::uint64_t{17}}) {
            other.ring().capacity.store(much);
            // More held than may be: what is held is counted anew.
            other.ring().held.store(1000);
            fill(recorder, 1000);
            BOOST_TEST(recorder.bytes().second == other.plan.file_limit);
            tr::drain_source source(recorder);
            tr::drain::session session(source);
            std::uint64_t portions = 0;
            session.finish([&](const auto&) { ++portions; });
            BOOST_TEST(portions <= 32U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_ring_set_back_to_nothing_refuses_what_comes_and_does_not_loop) {
    for (const auto full : {full_mode::extend_then_overwrite, full_mode::extend_then_discard}) {
        auto options = small(full);
        options.limit = 24 * 512;
        tr::recorder recorder{options};
        others other(recorder.descriptor());
        fill(recorder, 10);
        other.ring().growth_ended.store(1);
        other.ring().capacity.store(0);
        other.ring().cursor.store(anything);
        other.ring().held.store(static_cast<std::uint32_t>(-100));
        std::thread([&] { BOOST_TEST(!put(recorder, 2, 0)); }).join();
        BOOST_TEST(other.lane(1).refused.load() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_ring_that_is_full_of_what_is_held_is_not_searched_behind_its_end) {
    auto options = small(full_mode::extend_then_discard);
    options.limit = 1024 * 512;
    tr::recorder recorder{options};
    others other(recorder.descriptor());
    fill(recorder, 10);
    recorder.flush_thread();
    other.ring().growth_ended.store(1);
    other.ring().cursor.store(1024);  // a whole round: the place behind it is the first again
    for (std::uint64_t slot = 0; slot < 16; ++slot) {
        other.sub_buffer(slot).state.store(tr::state_word(slot + 1, tr::sub_buffer_state::reading));
    }
    for (std::uint64_t n = 0; n < 10; ++n) BOOST_TEST(!put(recorder, 1, n));
    other.sub_buffer(0).state.store(tr::state_word(1, tr::sub_buffer_state::free));
    bool again = false;  // what is known to be full is looked at now and then
    for (std::uint64_t n = 0; n < 100 && !again; ++n) again = put(recorder, 1, n);
    BOOST_TEST(again);
}

BOOST_AUTO_TEST_CASE(who_is_counted_and_sleeps_before_it_holds_is_not_taken_for_dead) {
    auto options = small(full_mode::overwrite_oldest);
    options.lanes = 8;
    tr::recorder recorder{options};
    others other(recorder.descriptor());
    std::latch recorded(3);
    std::latch end(1);
    std::atomic<unsigned> kept{0};
    std::vector<std::thread> holders;
    for (std::uint64_t who = 1; who <= 3; ++who) {
        holders.emplace_back([&, who] {
            kept += put(recorder, who, 0) ? 1 : 0;
            recorded.count_down();
            end.wait();
        });
    }
    recorded.wait();
    BOOST_TEST(kept.load() == 3U);
    BOOST_TEST(recorder.statistics().held == 3U);
    // As if there were five more. The fourth finds that half are held, and looks who died.
    other.ring().held.store(8);
    std::thread([&] {
        for (std::uint64_t n = 0; n < 200; ++n) BOOST_TEST(!put(recorder, 4, n));
        BOOST_TEST(recorder.statistics().held == 8U);
        other.ring().held.store(7);
        BOOST_TEST(put(recorder, 4, 200));
    }).join();
    end.count_down();
    for (auto& each : holders) each.join();
    BOOST_TEST(recorder.statistics().held == 4U);
    // No holder is left: the next refused writer repairs it.
    other.ring().held.store(8);
    std::thread([&] {
        std::uint64_t told = 0;
        for (std::uint64_t n = 0; n < 200; ++n) told += put(recorder, 5, n) ? 1 : 0;
        BOOST_TEST(told > 100U);
    }).join();
    BOOST_TEST(recorder.statistics().held == 0U);
}

BOOST_AUTO_TEST_CASE(a_page_of_gates_that_is_none_is_not_written) {
    tr::recorder recorder{small(full_mode::overwrite_oldest)};
    others other(recorder.descriptor());
    other.process(0).gate_page.store(0x10000000);
    BOOST_TEST(recorder.enable("numbered", false) == 1U);
    BOOST_TEST(!put(recorder, 1, 1));  // the first page's gates are what it has
    recorder.pause();
    recorder.resume();
    BOOST_TEST(recorder.enable("numbered", true) == 1U);
    BOOST_TEST(put(recorder, 1, 1));
}

BOOST_AUTO_TEST_CASE(totals_of_a_process_that_is_none_go_nowhere) {
    tr::recorder recorder{small(full_mode::overwrite_oldest)};
    others other(recorder.descriptor());
    for (const bool root : {false, true}) {
        for (unsigned i = 0; i < 6; ++i) {  // the two entries are given to others
            std::thread([&] {
                put(recorder, 3, i);
                fill(recorder, 30);  // half-empty ones would be gone on in
            }).join();
            auto& word = root ? other.process(0).root : other.lane(i % 2).process;
            word.store(0x7FFFFFFF);
        }
    }
    BOOST_TEST(other.ring().folded_lanes.load() >= 8U);
}

BOOST_AUTO_TEST_CASE(a_commit_word_that_points_far_behind_its_sub_buffer_harms_nobody) {
    // Of the last sub-buffer: behind it the file ends.
    tr::recorder recorder{small(full_mode::overwrite_oldest)};
    others other(recorder.descriptor());
    const std::uint64_t last = other.plan.sub_buffer_limit - 1;
    for (const std::uint32_t offset : {8U, 9U, 512U, 32768U, 32776U, 40000U, 65535U, 65543U}) {
        for (unsigned i = 0; i < 10'000; ++i) {
            const auto state = tr::stamped::from(other.sub_buffer(last).state.load());
            if (state.state == static_cast<unsigned>(tr::sub_buffer_state::active)) break;
            put(recorder, 1, i);
        }
        other.sub_buffer(last).commit.store(tr::commit_word::pack(0, offset));
        put(recorder, 2, offset);
        fill(recorder, 100);
    }
    BOOST_TEST(put(recorder, 3, 0));
}

BOOST_AUTO_TEST_CASE(behind_a_mapping_with_slack_lies_memory_that_is_nobody_elses) {
    tr::recorder recorder{small(full_mode::overwrite_oldest)};
    const int fd = recorder.descriptor();
    const std::uint64_t bytes = tr::storage::file_bytes(fd);
    for (const std::uint64_t mapped : {bytes, bytes - 100}) {
        const auto memory = tr::storage::mapping::with_slack("slack", fd, mapped, 1 << 16);
        const std::uint64_t end = bytes + (1 << 16);
        for (std::uint64_t at = bytes; at < end; at += 8) {
            tr::word_at<std::uint64_t>(memory.data(), static_cast<std::size_t>(at)).store(anything);
        }
        BOOST_TEST(tr::storage::file_bytes(fd) == bytes);
        BOOST_TEST(memory.size() >= mapped + (1 << 16));
    }
    const auto alone = tr::storage::mapping::with_slack("slack", -1, 4096, 4096);
    tr::word_at<std::uint64_t>(alone.data(), 8184).store(anything);
    BOOST_TEST(tr::word_at<std::uint64_t>(alone.data(), 0).load() == 0U);
    BOOST_CHECK_THROW((void)tr::storage::mapping::with_slack("slack", fd, 0, 4096),
                      tr::setup_error);
    BOOST_CHECK_THROW((void)tr::storage::mapping::with_slack("slack", fd, ~std::uint64_t{0}, 4096),
                      tr::setup_error);
}

BOOST_AUTO_TEST_CASE(an_end_of_the_dictionary_between_two_entries_takes_no_type) {
    auto options = small(full_mode::overwrite_oldest);
    const test::folder folder;
    options.file = folder / "trace";
    options.memory_file = false;
    const tr::recorder first{options};
    others other(first.descriptor());
    other.ring().dictionary_used.store(65);
    options.exists = tr::if_exists::attach;
    const std::uint64_t refused = other.ring().types_without_room.load();
    const tr::recorder second{options};
    BOOST_TEST(other.ring().types_without_room.load() > refused);
}

BOOST_AUTO_TEST_CASE(a_session_with_a_cursor_at_the_end_of_all_positions_comes_to_its_own) {
    for (const std::uint64_t cursor : {~std::uint64_t{0}, ~std::uint64_t{0} >> 3, anything}) {
        tr::recorder recorder{small(full_mode::overwrite_oldest)};
        others other(recorder.descriptor());
        fill(recorder, 100);
        other.ring().cursor.store(cursor);
        tr::drain_source source(recorder);
        tr::drain::session session(source);
        std::uint64_t portions = 0;
        session.for_each([&](const auto&) { ++portions; });
        BOOST_TEST(portions <= 16U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
