// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// A user's program that instantiates the library's templates: macros.py compiles it in every way in
// which a user may, and runs it in some. It returns the number of the check that failed.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <trace_ring/control.hpp>
#include <trace_ring/cptrap.hpp>
#include <trace_ring/das.hpp>
#include <trace_ring/draining.hpp>
#include <trace_ring/per_cpu.hpp>
#include <trace_ring/rings.hpp>
#include <trace_ring/snapshots.hpp>
#include <trace_ring/trace_ring.hpp>
#if defined(__cpp_exceptions)
#include <trace_ring/exporting.hpp>
#include <trace_ring/point.hpp>
#include <trace_ring/reading.hpp>
#endif
#if defined(TRACE_RING_ENABLE_X86_DS) && defined(__cpp_exceptions)
#include <trace_ring/x86.hpp>
#endif

namespace uses {

namespace tr = trace_ring;

enum class side : std::uint8_t { buy, sell };
struct order : tr::event<"order", tr::field<"id", std::uint64_t>, tr::field<"price", double>,
                         tr::field<"side", side>> {};
struct texts : tr::event<"texts", tr::field<"name", std::string_view>,
                         tr::field<"row", std::span<const std::uint32_t>>,
                         tr::field<"three", std::array<std::int16_t, 3>>> {
    static constexpr bool counted = true;
};
struct many
    : tr::event<"many", tr::field<"a", float>, tr::field<"b", bool>, tr::field<"c", char>,
                tr::field<"d", const void*>, tr::field<"e", tr::flow>, tr::field<"f", tr::address>,
                tr::field<"g", std::int64_t>, tr::field<"h", std::array<double, 12>>> {};
struct nothing : tr::event<"nothing"> {};
struct request : tr::span<"request", tr::field<"url", std::string_view>> {};
struct depth : tr::counter<"depth", tr::field<"value", int>> {};

struct untimed : tr::policies<tr::clock::none> {};
struct seconds : tr::policies<tr::clock::monotonic> {};
struct sampled : tr::policies<tr::clock::sampled<16>> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};

template <class Recorder>
int records(Recorder& to) {
    const std::array<double, 12> dozen{};
    const std::uint32_t row[] = {1, 2, 3};
    int count = 0;
    count += to.template record<order>(std::uint64_t{1}, 2.5, side::sell) ? 1 : 0;
    count += to.template record<texts>(std::string("name"), std::span<const std::uint32_t>(row),
                                       std::array<std::int16_t, 3>{1, 2, 3})
                 ? 1
                 : 0;
    count += to.template record<many>(1.5F, true, 'c', static_cast<const void*>(&count),
                                      tr::flow(7), tr::address(8), std::int64_t{9}, dozen)
                 ? 1
                 : 0;
    count += to.template record<nothing>() ? 1 : 0;
    count += to.template record<depth>(3) ? 1 : 0;
    {
        auto open = to.template scope<request>("/index");
        auto slot = to.template reserve<order>(std::uint64_t{2}, 3.5, side::buy);
        count += slot.commit() ? 1 : 0;
    }
    return count;
}

template <class Kind>
int recorder_of() {
    tr::basic_recorder<Kind> recorder{{.size = 1 << 20}};
    if (records(recorder) != 6) return 10;
    recorder.pause();
    if (records(recorder) != 0) return 11;
    recorder.resume();
    if (recorder.template enable<order>(false) != 1 || recorder.enable("t*", false) == 0) return 12;
    if constexpr (!std::is_same_v<Kind, by_cpu>) recorder.pause_ends();
    recorder.flush_thread();
    return recorder.statistics().refused_without_lane == 0 ? 0 : 13;
}

struct step {
    std::uint16_t device;
    std::uint64_t program;
};
struct io_trace : tr::policies<tr::record::sequenced<step>, tr::claim::compare_exchange,
                               tr::full::overwrite_oldest, tr::storage::inline_bytes<64 * 1024>> {};
inline tr::ring<io_trace> io_ring;
struct io_queue
    : tr::policies<tr::record::sequenced<step>, tr::full::block<std::chrono::seconds(1)>,
                   tr::notify::at_watermark<tr::notify::percent(50)>, tr::gate::flag> {};
struct on_heap : tr::policies<tr::record::bare<step>, tr::claim::single_writer,
                              tr::full::discard_newest, tr::storage::heap, tr::clock::monotonic> {};
struct growing
    : tr::policies<tr::record::sequenced<std::uint32_t>,
                   tr::full::extend<65536, tr::full::discard_newest>, tr::storage::mapped> {};
struct lengths : tr::policies<tr::storage::heap, tr::full::discard_newest> {};
struct drawn : tr::policies<tr::record::sequenced<std::array<char, 3>>, tr::claim::fetch_add> {};
struct dispatch_trace : tr::policies<tr::record::das_entry, tr::claim::compare_exchange,
                                     tr::storage::inline_bytes<4096>> {};

template <class Ring, class... Values>
int ring_of(Ring& ring, const Values&... values) {
    if (!ring.write(values...)) return 20;
    if (auto slot = ring.try_reserve()) slot.commit();
    std::size_t count = 0;
    auto reader = ring.reader();
    while (reader.next()) ++count;
    auto back = ring.backward_reader();
    while (back.next()) ++count;
    return count == 0 || ring.lost().total() != 0 ? 21 : 0;
}

[[maybe_unused]] static int rings() {
    if (const int wrong = ring_of(io_ring, std::uint16_t{1}, std::uint64_t{2})) return wrong;
    tr::ring<io_queue> queue;
    if (const int wrong = ring_of(queue, std::uint16_t{1}, std::uint64_t{2})) return wrong;
    auto consumer = queue.consumer(4);
    tr::drain::listener listener(queue, consumer);
    static_cast<void>(listener.wait(std::chrono::milliseconds(0)));
    while (consumer.next()) {
    }
    tr::ring<on_heap> heap(64U);
    if (const int wrong = ring_of(heap, std::uint16_t{1}, std::uint64_t{2})) return wrong;
    tr::ring<growing> grows(65536U, 1U << 20);
    if (const int wrong = ring_of(grows, 1U)) return wrong;
    tr::ring<drawn> draws;
    if (const int wrong = ring_of(draws, 'a', 'b', 'c')) return wrong;
    tr::ring<dispatch_trace> dispatches;
    if (auto slot = dispatches.try_reserve()) {
        slot->fill(std::uint16_t{0x190}, std::uint64_t{1});
        slot.commit();
    }
    tr::ring<lengths> varying(65536U);
    const std::array<std::byte, 5> bytes{};
    if (!varying.write(1, std::uint64_t{2}) || !varying.write_bytes(2, bytes)) return 22;
    tr::drain::session session(varying);
    std::size_t read = 0;
    session.finish_records(
        [&](const tr::drained_record& record) { read += record.payload.size(); });
    return read == 0 ? 23 : 0;
}

struct trap_trace : tr::policies<tr::record::cptrap_record<>, tr::full::discard_newest,
                                 tr::storage::inline_bytes<64 * 1024>> {};

[[maybe_unused]] static int historic() {
    tr::ring<trap_trace> ring;
    tr::cptrap::trapok trapok;
    const tr::cptrap::cp_interface trap(trapok, ring);
    const std::array<std::byte, 2> data{std::byte{0xC1}, std::byte{0xC2}};
    constexpr auto what = tr::record::cptrap_selection().code(3);
    trapok.start(what);
    trap.hand_over(3, data);
    std::size_t records = 0;
    auto reader = ring.reader();
    while (reader.next()) ++records;
    if (records != 1) return 30;
#if defined(TRACE_RING_ENABLE_X86_DS) && defined(__cpp_exceptions)
    namespace x86 = tr::x86;
    using processor = x86::simulated_cpu<tr::record::lp64>;
    x86::simulated_memory memory;
    processor cpu(memory, {.full = x86::when_full::drops});
    x86::branch_store<tr::record::lp64, processor, tr::storage::heap> store(
        cpu, x86::detect(cpu, cpu, x86::processor_mode::ia32e), {.records = 64});
    memory.map({store.storage().data(), store.storage().data() + store.storage().size()});
    store.start();
    cpu.branch(0x1000, 0x2000);
    std::size_t branches = 0;
    x86::stored_branches source(store);
    source.read(
        x86::visiting{[&](const x86::branch& one) { branches += one.from() != 0 ? 1U : 0U; },
                      [](const x86::branch_gap&) {}});
    if (branches != 1) return 31;
#endif
    return 0;
}

#if defined(__cpp_exceptions)
[[maybe_unused]] static int reading() {
    namespace reduce = tr::reduce;
    tr::recorder recorder{{.size = 1 << 20}};
    records(recorder);
    const auto [memory, bytes] = recorder.bytes();
    const auto trace = reduce::trace_file::from({memory, bytes});
    std::size_t found = 0;
    for (auto cursor = trace.backward(); const auto* item = cursor.next();)
        found += std::holds_alternative<reduce::record_view>(*item) ? 1U : 0U;
    if (found != 8) return 40;
    std::string out;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* record = std::get_if<reduce::record_view>(item)) {
            out += std::string(record->name());
            if (record->name() == "order" && record->field("price").f64() < 1) return 41;
        }
    }
    const std::vector<tr::runtime_event::field> fields{{.name = "size"}};
    auto& called = tr::runtime_event::make("called", fields);
    const std::array<std::uint64_t, 1> payload{64};
    if (!called.record(recorder, payload)) return 42;
    tr::drain::session session(recorder);
    session.finish_records([](const tr::drained_record&) {});
    return session.records() == 9 ? 0 : 43;
}
#endif

[[maybe_unused]] static int all() {
    tr::recorder recorder{{.size = 1 << 20}};
    if (records(recorder) != 6) return 1;
    if (const int wrong = recorder_of<untimed>()) return wrong;
    if (const int wrong = recorder_of<seconds>()) return wrong;
    if (const int wrong = recorder_of<sampled>()) return wrong;
    if (const int wrong = recorder_of<by_cpu>()) return wrong;
    if (const int wrong = rings()) return wrong;
    if (const int wrong = historic()) return wrong;
#if defined(__cpp_exceptions)
    if (const int wrong = reading()) return wrong;
#endif
    return 0;
}

}  // namespace uses

int main() {
    const int wrong = uses::all();
    if (wrong != 0) std::fprintf(stderr, "check %d failed\n", wrong);
    return wrong;
}
