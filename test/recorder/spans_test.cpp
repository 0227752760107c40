// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Spans that do not nest: of coroutines, of scopes that others end, in other threads and
/// processes. For any order of begins and ends, readers find the begin of each end; and where spans
/// nest, nothing is written for it.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/none.hpp>
#include <trace_ring/policy/clock/sampled.hpp>
#include <trace_ring/recorder/cpu/recorder.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/span/pairs.hpp>
#include <trace_ring/reduce/trace_file.hpp>

BOOST_AUTO_TEST_SUITE(spans)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;

namespace {

struct request : tr::span<"span.request", tr::field<"id", std::uint64_t>> {};
struct call
    : tr::span<"span.call", tr::field<"id", std::uint64_t>, tr::field<"to", std::string_view>> {};
struct step : tr::event<"span.step", tr::field<"n", std::uint64_t>> {};

struct sampled : tr::policies<tr::clock::sampled<16>> {};
struct untimed : tr::policies<tr::clock::none> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};
using kinds = std::tuple<tr::recording, sampled, untimed, by_cpu>;
template <class Kind>
inline constexpr bool tells_order =
    !std::is_same_v<Kind, sampled> && !std::is_same_v<Kind, untimed>;

/// A thread that does one thing after the other, while who asks waits.
class worker {
public:
    worker() : thread_([this] { run(); }) {}
    ~worker() {
        ask({});
        thread_.join();
    }
    void ask(std::function<void()> what) {
        std::unique_lock lock(mutex_);
        what_ = std::move(what);
        asked_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !asked_; });
    }

private:
    void run() {
        for (bool more = true; more;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return asked_; });
            more = static_cast<bool>(what_);
            if (more) what_();
            asked_ = false;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> what_;
    bool asked_ = false;
    std::thread thread_;
};

/// What a trace says.
struct account {
    std::map<std::uint32_t, std::vector<std::uint64_t>> ended;  // by thread: the ids of the spans
    std::size_t begun = 0, bare = 0, told = 0, lost = 0, passed = 0, open = 0;
};
template <class Recorder>
account read(const Recorder& recorder) {
    const auto [memory, bytes] = recorder.bytes();
    const auto file = reduce::trace_file::from({memory, bytes});
    account out;
    reduce::span_pairs<std::uint64_t> pairs;
    for (auto all = file.forward(); const auto* item = all.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        BOOST_REQUIRE(record != nullptr);
        if (record->begins()) {
            ++out.begun;
            pairs.begin(*record, record->field(0).u64(), [](const auto&) {});
        } else if (record->ends()) {
            BOOST_TEST(record->bytes() == (record->began() ? 24U : 8U));
            ++(record->began() ? out.told : out.bare);
            const auto found = pairs.end(*record, [&](const auto&) { ++out.passed; });
            BOOST_TEST(!found.not_nested);
            out.lost += found.begun ? 0 : 1;
            out.ended[record->lane().thread].push_back(found.begun ? found.begun->kept : 0);
        }
    }
    pairs.for_each_open([&](const auto&) { ++out.open; });
    BOOST_TEST(file.about().ring().ended_elsewhere == (out.told != 0));
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(where_spans_nest_no_byte_tells_it, Kind, kinds) {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20}};
    const std::function<void(std::uint64_t)> nest = [&](std::uint64_t depth) {
        for (std::uint64_t i = 0; depth != 0 && i < 3; ++i) {
            const auto one = recorder.template scope<request>(depth);
            recorder.template record<step>(i);
            nest(depth - 1);
            const auto moved = recorder.template scope<call>(depth, "somebody");
            auto again = recorder.template scope<request>(depth);
            const auto last = std::move(again);
            if (depth == 5) std::thread([&] { nest(2); }).join();
        }
    };
    nest(5);
    const account found = read(recorder);
    BOOST_TEST(found.begun == found.bare);
    BOOST_TEST(found.lost + found.passed + found.open == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(whatever_the_order_each_end_finds_its_begin, Kind, kinds) {
    // Small sub-buffers, so that each kind of end also falls where there is no room.
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20, .sub_buffer_bytes = 512}};
    using one = typename tr::basic_recorder<Kind>::template scoped<request>;
    using other = typename tr::basic_recorder<Kind>::template scoped<call>;
    struct place {
        std::uint64_t id = 0;
        std::unique_ptr<one> first;
        std::unique_ptr<other> second;
    };
    std::array<place, 12> places;
    std::map<std::uint32_t, std::vector<std::uint64_t>> expected;
    std::mt19937 random(7);
    std::uint64_t last = 0;
    {
        // A lane's order is known without a clock; the order of several lanes is not.
        std::vector<worker> workers(tells_order<Kind> ? 3 : 1);
        for (int i = 0; i < 1500; ++i) {
            place& at = places[random() % places.size()];
            const bool plain = random() % 2 == 0;
            const bool flush = tells_order<Kind> && random() % 50 == 0;
            const bool within = tells_order<Kind> && random() % 8 == 0;
            workers[random() % workers.size()].ask([&] {
                if (flush) recorder.flush_thread();
                [[maybe_unused]] const auto held =
                    within ? std::optional(recorder.template reserve<step>(1U)) : std::nullopt;
                if (at.id != 0) {
                    expected[static_cast<std::uint32_t>(::gettid())].push_back(at.id);
                    at = {};
                } else if ((at.id = ++last) != 0 && plain) {
                    at.first = std::make_unique<one>(recorder.template scope<request>(last));
                } else {
                    at.second = std::make_unique<other>(recorder.template scope<call>(last, "xyz"));
                }
            });
        }
    }
    std::size_t open = 0;
    for (const auto& each : places) open += each.id != 0 ? 1 : 0;
    const account found = read(recorder);
    BOOST_TEST(found.told > 100U);
    BOOST_TEST(found.begun == last);
    BOOST_TEST(found.open == open);
    BOOST_TEST(found.lost + found.passed == 0U);
    BOOST_TEST((found.ended == expected));
    places = {};
    BOOST_TEST(read(recorder).open == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_ends_what_its_parent_began, Kind, kinds) {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 18}};
    using scoped = typename tr::basic_recorder<Kind>::template scoped<request>;
    const auto around = recorder.template scope<request>(1U);
    alignas(scoped) std::byte room[sizeof(scoped)];  // the child's is its end
    auto* const span = new (room) scoped(recorder.template scope<request>(2U));
    const ::pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        { const auto own = recorder.template scope<request>(3U); }
        span->~scoped();
        ::_exit(0);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    const account found = read(recorder);
    BOOST_TEST(
        (found.ended.at(static_cast<std::uint32_t>(child)) == std::vector<std::uint64_t>{3, 2}));
    BOOST_TEST(found.told == 1U);
    BOOST_TEST(found.open == 1U);
}

BOOST_AUTO_TEST_CASE(an_end_that_is_lost_takes_no_other_span_for_its_own) {
    // Four records are open, so the inner end is lost as nested; the outer one says what it ends.
    tr::recorder recorder{{.size = 1 << 18}};
    {
        const auto outer = recorder.scope<request>(1U);
        auto inner = std::make_unique<tr::recorder::scoped<request>>(recorder.scope<request>(2U));
        {
            const auto a = recorder.reserve<step>(1U), b = recorder.reserve<step>(2U);
            const auto c = recorder.reserve<step>(3U), d = recorder.reserve<step>(4U);
            inner.reset();
        }
    }
    const auto [memory, bytes] = recorder.bytes();
    const auto file = reduce::trace_file::from({memory, bytes});
    std::size_t ends = 0;
    for (auto all = file.forward(); const auto* item = all.next();) {
        const auto* const record = std::get_if<reduce::record_view>(item);
        if (record == nullptr || !record->ends()) continue;
        ++ends;
        BOOST_TEST((record->began() == reduce::span_place{record->lane().number, 0}));
    }
    BOOST_TEST(ends == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
