// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The view of a trace: where it finds each region, and what it refuses.

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <trace_ring/format/copied_entries.hpp>
#include <trace_ring/format/lay_out.hpp>
#include <trace_ring/format/view.hpp>

BOOST_AUTO_TEST_SUITE(view_of_a_trace)

namespace tr = trace_ring;
namespace layout = trace_ring::layout;

namespace {

[[nodiscard]] layout::plan some_plan(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto up_to = [&random](std::uint32_t most) {
        return static_cast<std::uint32_t>(random() % most) + 1;
    };
    layout::plan p;
    p.sub_buffer_bytes = 512U << random() % 7;
    p.sub_buffer_limit = up_to(40);
    p.clock_count = 1 + up_to(80);
    p.process_count = up_to(70);
    p.gate_count = up_to(3);
    p.lane_count = up_to(90);
    p.totals_per_lane = up_to(65) - 1;
    p.dictionary_bytes = up_to(9000);
    return layout::lay_out(p);
}

/// A trace as a recorder makes it: the header, and zeros.
struct image {
    layout::plan plan;
    std::vector<std::uint64_t> words;

    explicit image(const layout::plan& of) : plan(of), words(tr::as_size(of.file_limit / 8)) {
        layout::file_header& h = header();
        h.version.store(layout::file_version, tr::relaxed);
        h.header_bytes.store(layout::format_page_bytes, tr::relaxed);
        layout::store_plan(h, plan);
        h.magic.store(layout::file_magic, tr::relaxed);
    }
    [[nodiscard]] std::byte* base() { return reinterpret_cast<std::byte*>(words.data()); }
    [[nodiscard]] std::uint64_t bytes() const { return words.size() * 8; }
    [[nodiscard]] layout::file_header& header() {
        return *reinterpret_cast<layout::file_header*>(words.data());
    }
};

[[nodiscard]] bool same(const layout::plan& a, const layout::plan& b) {
    bool is_same = a.sub_buffers == b.sub_buffers && a.file_limit == b.file_limit;
    layout::plan x = a, y = b;
    std::vector<std::uint64_t> left, right;
    layout::for_each_region(x, [&](std::uint64_t at, auto, std::uint64_t size) {
        left.push_back(at);
        left.push_back(size);
    });
    layout::for_each_region(y, [&](std::uint64_t at, auto, std::uint64_t size) {
        right.push_back(at);
        right.push_back(size);
    });
    layout::for_each_size(x, [&](std::uint64_t number, auto) { left.push_back(number); });
    layout::for_each_size(y, [&](std::uint64_t number, auto) { right.push_back(number); });
    return is_same && left == right;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_that_is_stored_is_found_again) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        image trace(some_plan(seed));
        layout::view found;
        const layout::header_fault fault = found.open(trace.base(), trace.bytes());
        BOOST_TEST_REQUIRE(!fault, fault.what);
        BOOST_TEST_REQUIRE(same(found.plan(), trace.plan), "seed " << seed);
        // Without its sub-buffers, which a file gets as it grows, it is sound, too.
        BOOST_TEST_REQUIRE(!layout::check_layout(trace.base(), trace.plan.index, trace.plan));
        BOOST_TEST_REQUIRE(layout::present_sub_buffers(trace.plan, trace.plan.index) == 0U);
        BOOST_TEST_REQUIRE(layout::present_sub_buffers(trace.plan, trace.plan.bytes_for(1)) == 1U);
    }
}

BOOST_AUTO_TEST_CASE(each_region_begins_where_the_one_before_has_ended) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        layout::plan p = some_plan(seed);
        std::uint64_t end = layout::format_page_bytes;
        layout::for_each_region(p, [&end](std::uint64_t at, auto, std::uint64_t bytes) {
            BOOST_TEST_REQUIRE(at % layout::format_page_bytes == 0U);
            BOOST_TEST_REQUIRE(at >= end);
            BOOST_TEST_REQUIRE(at - end < layout::format_page_bytes);
            end = at + bytes;
        });
        BOOST_TEST(p.sub_buffers >= end);
        // The end of each table, by the plan's own functions, lies before the next.
        BOOST_TEST(p.clock_at(p.clock_count) <= p.processes);
        BOOST_TEST(p.process_at(p.process_count) <= p.gates);
        BOOST_TEST(p.gates_at(p.gate_count) <= p.lanes);
        BOOST_TEST(p.lane_at(p.lane_count) <= p.totals);
        BOOST_TEST(p.totals_at(p.lane_count + p.process_count) <= p.dictionary);
        BOOST_TEST(p.index_at(p.sub_buffer_limit) <= p.sub_buffers);
        BOOST_TEST(p.bytes_for(p.sub_buffer_limit) == p.file_limit);
    }
}

BOOST_AUTO_TEST_CASE(every_entry_lies_where_the_plan_says) {
    image trace(some_plan(7));
    const layout::plan& p = trace.plan;
    const layout::view view(trace.base(), p);
    const auto offset = [&](const auto& entry) {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&entry) -
                                          trace.base());
    };
    BOOST_TEST(offset(view.header()) == 0U);
    BOOST_TEST(offset(view.ring()) == p.ring);
    BOOST_TEST(offset(view.clocks(1)) == p.clocks + 64);
    BOOST_TEST(offset(view.process(p.process_count - 1)) == p.process_at(p.process_count - 1));
    BOOST_TEST(offset(view.gates(0)) == p.gates);
    BOOST_TEST(offset(view.gates(p.gate_count)) == p.gates);  // others have stored that number
    BOOST_TEST(offset(view.lane(p.lane_count - 1)) == p.lane_at(p.lane_count - 1));
    BOOST_TEST(offset(view.index(3)) == p.index + 96);
    BOOST_TEST(offset(view.sub_buffer(2)) == p.sub_buffers + 2 * p.sub_buffer_bytes);
    BOOST_TEST(view.slot_number(view.sub_buffer(2)) == 2U);
    BOOST_TEST((view.types().base == trace.base() + p.dictionary));
    BOOST_TEST(view.types().size == p.dictionary_bytes);
    if (p.totals_per_lane != 0) BOOST_TEST(offset(*view.totals(1)) == p.totals_at(1));
    layout::plan without = p;
    without.totals_per_lane = 0;
    BOOST_TEST((layout::view(trace.base(), without).totals(0) == nullptr));
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_refused_at_the_damage_or_harmless) {
    const layout::plan p = some_plan(11);
    std::mt19937_64 random(5);
    image trace(p);
    std::size_t refused = 0;
    for (std::size_t at = 0; at < sizeof(layout::file_header); ++at) {
        for (int i = 0; i < 8; ++i) {
            const auto damage = static_cast<std::byte>(random() % 255 + 1);
            trace.base()[at] ^= damage;
            layout::view view;
            const layout::header_fault fault = view.open(trace.base(), trace.bytes());
            trace.base()[at] ^= damage;
            if (!fault) {
                // What it says is true of the bytes there are.
                BOOST_TEST_REQUIRE(view.plan().index <= trace.bytes());
                continue;
            }
            ++refused;
            BOOST_TEST_REQUIRE((view.base() == nullptr), "a refused trace has no view");
            BOOST_TEST_REQUIRE(fault.offset <= trace.bytes());
        }
    }
    BOOST_TEST(refused > 1000U);
}

BOOST_AUTO_TEST_CASE(a_fault_names_the_word_that_is_wrong) {
    const auto fault_of = [](auto&& spoil) {
        image trace(some_plan(3));
        spoil(trace.header());
        return layout::view().open(trace.base(), trace.bytes());
    };
    using h = layout::file_header;
    const auto is = [](const layout::header_fault& fault, std::uint64_t at, std::string_view what) {
        BOOST_TEST(fault.what == what);
        BOOST_TEST(fault.offset == at);
    };
    is(fault_of([](h& to) { to.lane_stride.store(191); }), 144, "unknown stride of lane entries");
    is(fault_of([](h& to) { to.index_stride.store(0); }), 192, "unknown stride of index entries");
    is(fault_of([](h& to) { to.lanes_offset.store(4096); }), 136, "regions overlap");
    is(fault_of([](h& to) { to.clock_count.store(1); }), 100, "too few clock entries");
    is(fault_of([](h& to) { to.totals_per_lane.store(65); }), 160, "too many totals");
    is(fault_of([](h& to) { to.sub_buffers_offset.store(0); }), 200,
       "sub-buffers overlap the index");
    is(fault_of([](h& to) { to.whole_lane_count.store(1); }), 208,
       "the sizes from before it was trimmed are impossible");
}

BOOST_AUTO_TEST_CASE(a_walk_goes_over_sound_entries_and_steps_over_others) {
    alignas(64) std::uint64_t words[64] = {};  // eight units
    const layout::dictionary_entries types(reinterpret_cast<std::byte*>(words), sizeof words + 63);
    BOOST_TEST(types.size == sizeof words);
    const auto put = [&](std::size_t unit, std::uint32_t magic, std::uint32_t bytes) {
        types.type_at(unit * 64).magic.store(magic);
        types.type_at(unit * 64).bytes.store(bytes);
    };
    put(0, layout::type_magic, 128);
    put(2, layout::type_magic, 65);  // no multiple of a unit
    put(3, 0xBAD, 64);               // no entry
    put(4, layout::free_magic, 64);
    put(5, layout::alias_magic, 256);  // behind the end
    put(6, layout::alias_magic, 64);
    const auto all = [&types](bool steps) {
        std::string out;
        auto each = types.entries();
        while (steps ? each.step() : each.next())
            out += std::to_string(each.at / 64) + ":" + std::to_string(each.bytes) + " ";
        return out;
    };
    BOOST_TEST(all(false) == "0:128 4:64 6:64 ");
    BOOST_TEST(all(true) == "0:128 2:0 3:0 4:64 5:0 6:64 7:0 ");
}

BOOST_AUTO_TEST_CASE(a_number_means_a_type_or_is_passed_over) {
    alignas(64) std::uint64_t words[64] = {};
    const layout::dictionary_entries types(reinterpret_cast<std::byte*>(words), sizeof words);
    layout::type_entry& type = types.type_at(64);
    type.bytes.store(64);
    type.root.store(3);
    type.id.store(17);
    type.fields.store(1);
    type.name_bytes.store(4);
    std::memcpy(types.base + 64 + 40, "name", 4);
    type.magic.store(layout::type_magic);
    layout::alias_entry& alias = types.alias_at(256);
    alias.bytes.store(64);
    alias.root.store(5);
    alias.first_id.store(100);
    alias.count.store(60'000);  // more than there are
    alias.unit[0].store(1);
    alias.unit[1].store(4'000'000'000);  // behind the end
    alias.magic.store(layout::alias_magic);
    std::string out;
    for (auto each = types.bindings(); each.next();) {
        if (each.at == 0) continue;
        out += std::to_string(each.root) + "/" + std::to_string(each.id) + "=" +
               std::to_string(each.at) + " ";
    }
    BOOST_TEST(out == "3/17=64 5/100=64 ");

    const auto name = types.name_at(64);
    BOOST_TEST_REQUIRE(name.is_there);
    BOOST_TEST(name.length == 4U);
    BOOST_TEST(name.first[3].load() == 'e');
    BOOST_TEST(!types.name_at(256).is_there);  // an alias has none
    type.name_bytes.store(25);                 // beyond the entry
    BOOST_TEST(!types.name_at(64).is_there);
    type.name_bytes.store(4);
    type.bytes.store(4096);  // beyond the dictionary
    BOOST_TEST(!types.name_at(64).is_there);
}

BOOST_AUTO_TEST_CASE(copied_entries_know_where_they_lay) {
    std::vector<std::uint64_t> words(3 * sizeof(layout::lane_entry) / 8);
    const layout::copied_entries<layout::lane_entry> lanes{words, 8192};
    words[192 / 8] = 77;
    BOOST_TEST(lanes.size() == 3U);
    BOOST_TEST(lanes[1].number.load() == 77U);
    BOOST_TEST(lanes.offset(lanes[0]) == 8192U);
    BOOST_TEST(lanes.offset(lanes[2].written) == 8192U + 2 * 192 + 24);
}

BOOST_AUTO_TEST_CASE(a_gate_is_shut_for_several_reasons) {
    tr::shared_atomic<std::uint8_t> gate{0};
    layout::set_gate(gate, layout::gate_event_off, true);
    layout::set_gate(gate, layout::gate_recorder_off, true);
    layout::set_gate(gate, layout::gate_event_off, false);
    BOOST_TEST(gate.load() == layout::gate_recorder_off);
    layout::set_gate(gate, layout::gate_recorder_off, false);
    BOOST_TEST(gate.load() == 0);
}

BOOST_AUTO_TEST_CASE(a_clock_snapshot_is_loaded_as_it_was_stored) {
    layout::clock_entry entry{};
    layout::taken_snapshot taken{{10, 20, 30, 4}, 1, 2, 3, 7, 9};
    entry.store(taken);
    BOOST_TEST(entry.width.load() == 8U);
    layout::taken_snapshot found;
    BOOST_TEST(!entry.load(6, found));
    BOOST_TEST_REQUIRE(entry.load(7, found));
    BOOST_TEST((found == taken));
    BOOST_TEST((found.process == 1 && found.lanes == 2 && found.cursor == 3 && found.since == 9));
    entry.width.store(9);  // of another recorder: the uncertainty is rounded up
    BOOST_TEST(entry.values().uncertainty == 5U);
}

BOOST_AUTO_TEST_SUITE_END()
