// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The branch store on a simulated processor: what it sets up, its service routine, and sessions.

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <trace_ring/drain/drainable.hpp>
#include <trace_ring/drain/session.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/inline_bytes.hpp>
#include <trace_ring/x86/branch_source.hpp>
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>
#include <trace_ring/x86/ds/stored_branches.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_branch_store)

namespace drain = trace_ring::drain;
namespace record = trace_ring::record;
namespace storage = trace_ring::storage;
namespace x86 = trace_ring::x86;
namespace msr = trace_ring::x86::msr;
using trace_ring::loss_cause;
using trace_ring::loss_counts;
using x86::bts_levels;
using x86::bts_mode;
using x86::msr_fault;
using x86::when_full;
using x86::when_round;

namespace {

using models = boost::mpl::list<record::ilp32, record::lp64>;

/// A simulated processor whose register accesses are written down, and refused on request.
template <class Model>
struct watched {
    using access = std::pair<std::uint32_t, std::uint64_t>;

    x86::simulated_cpu<Model>& cpu;
    std::vector<access> writes;
    std::function<bool(std::uint32_t, bool writes)> refuses = [](std::uint32_t, bool) {
        return false;
    };

    [[nodiscard]] x86::msr_value read(std::uint32_t number) noexcept {
        if (refuses(number, false)) return {0, msr_fault::not_permitted};
        return cpu.read(number);
    }
    [[nodiscard]] msr_fault write(std::uint32_t number, std::uint64_t value) noexcept {
        if (refuses(number, true)) return msr_fault::not_permitted;
        writes.emplace_back(number, value);
        return cpu.write(number, value);
    }
};

template <class Model>
using store_of = x86::branch_store<Model, watched<Model>, storage::heap>;
static_assert(drain::drainable<store_of<record::lp64>> && drain::stoppable<store_of<record::lp64>>);
static_assert(drain::tells_causes<store_of<record::ilp32>> &&
              drain::rearmable<store_of<record::ilp32>>);
static_assert(!drain::drainable_while_open<store_of<record::lp64>>);
static_assert(!std::is_copy_constructible_v<store_of<record::lp64>>);

/// The base of the branch buffer is 00100000, as in the vectors.
constexpr std::uint64_t base = 0x00100000;
constexpr std::uint64_t area = base - storage::control_bytes;

/// A store of four records with the threshold at three, started.
template <class Model>
struct machine {
    static constexpr std::uint64_t size = sizeof(record::branch_record<Model>);
    using froms = std::vector<std::uint64_t>;

    x86::simulated_memory memory;
    x86::simulated_cpu<Model> cpu;
    watched<Model> registers{cpu, {}};
    store_of<Model> store;

    static x86::branch_store_options four() {
        x86::branch_store_options out;
        out.records = 4;
        out.threshold = 3;
        out.linear = area;
        return out;
    }
    static x86::branch_store_options four_in_a_circle() {
        x86::branch_store_options out = four();
        out.setting.mode = bts_mode::circular;
        out.threshold = 0;
        return out;
    }

    explicit machine(x86::branch_store_options options = four(),
                     const x86::simulated_features& features = {.full = when_full::drops})
        : cpu(memory, features),
          store(registers, detect(cpu, cpu, x86::processor_mode::legacy), options) {
        memory.map(store.linear(),
                   {store.storage().data(), static_cast<std::size_t>(store.storage().size())});
        store.start();
        registers.writes.clear();
    }

    [[nodiscard]] std::uint64_t word(x86::ds_field field) const {
        using address = typename Model::pointer_type;
        return memory.template load<address>(store.linear() + x86::offset_of<Model>(field)).value();
    }
    void set(x86::ds_field field, std::uint64_t value) {
        using address = typename Model::pointer_type;
        BOOST_REQUIRE(memory.store(store.linear() + x86::offset_of<Model>(field),
                                   static_cast<address>(value)));
    }
    [[nodiscard]] std::uint64_t index() const { return word(x86::ds_field::bts_index); }
    [[nodiscard]] std::uint64_t value(std::uint32_t number) { return cpu.read(number).value; }
    /// Branches whose `from` are these numbers.
    void branches(std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t n = first; n <= last; ++n) cpu.branch(n, n + 1000);
    }
    /// What the service routine reads.
    froms serve(x86::ds_service* what = nullptr) {
        froms out;
        const auto done = store.interrupt([&](const auto& b) { out.push_back(b.from); });
        if (what != nullptr) *what = done;
        return out;
    }
    /// All that a new session gets.
    froms drained(loss_counts* lost = nullptr) {
        froms out;
        drain::session session(store);
        session.finish_records([&](const auto& b) { out.push_back(b.from); });
        if (lost != nullptr) *lost += session.lost();
        return out;
    }
};

using froms = std::vector<std::uint64_t>;

std::uint64_t refused(const loss_counts& lost) {
    return lost[loss_cause::refused];
}
/// The option that is refused, and nothing else.
template <class Model>
std::string refusal(const x86::branch_store_options& options,
                    const x86::simulated_features& features = {}) {
    x86::simulated_memory memory;
    x86::simulated_cpu<Model> cpu(memory, features);
    watched<Model> registers{cpu, {}};
    try {
        store_of<Model> store(registers, detect(cpu, cpu, x86::processor_mode::legacy), options);
        return {};
    } catch (const trace_ring::setup_error& e) {
        BOOST_TEST(registers.writes.empty());
        return e.subject();
    }
}

}  // namespace

// --- Set-up --------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE_TEMPLATE(the_area_says_where_the_buffer_is_by_the_rules, Model, models) {
    machine<Model> m;
    BOOST_TEST(m.value(msr::ds_area) == area);
    BOOST_TEST(m.word(x86::ds_field::bts_base) == base);
    BOOST_TEST(m.word(x86::ds_field::bts_index) == base);
    BOOST_TEST(m.word(x86::ds_field::bts_maximum) == base + 4 * m.size);
    BOOST_TEST(m.word(x86::ds_field::bts_threshold) == base + 3 * m.size);
    for (const auto field : {x86::ds_field::pebs_base, x86::ds_field::pebs_index,
                             x86::ds_field::pebs_maximum, x86::ds_field::pebs_threshold})
        BOOST_TEST(m.word(field) == 0U);
    if (Model::pointer_bytes == 4) {
        BOOST_TEST(m.word(x86::ds_field::bts_threshold) == 0x00100024U);
        BOOST_TEST(m.word(x86::ds_field::bts_maximum) == 0x00100030U);
    }
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_maximum_may_be_a_multiple_plus_one, Model, models) {
    auto options = machine<Model>::four();
    options.maximum = x86::bts_maximum::multiple_plus_one;
    machine<Model> m(options);
    BOOST_TEST(m.word(x86::ds_field::bts_maximum) == base + 4 * m.size + 1);
    m.branches(1, 6);
    x86::ds_service done;
    BOOST_TEST(m.serve(&done) == (froms{1, 2, 3, 4}));
    BOOST_TEST(done.causes.bts_full);
    BOOST_TEST(refused(done.lost) == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_circular_buffers_threshold_lies_above_its_maximum, Model, models) {
    machine<Model> m(machine<Model>::four_in_a_circle());
    BOOST_TEST(m.word(x86::ds_field::bts_threshold) > m.word(x86::ds_field::bts_maximum) + m.size);
    BOOST_TEST((m.word(x86::ds_field::bts_threshold) - base) % m.size == 0U);
    BOOST_TEST(m.value(msr::debugctl) == 0x0C0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_row_of_the_table_that_stores_is_set, Model, models) {
    for (const auto& [mode, levels, expected] :
         {std::tuple{bts_mode::circular, bts_levels::all, 0x0C0U},
          std::tuple{bts_mode::circular, bts_levels::above_zero, 0x2C0U},
          std::tuple{bts_mode::circular, bts_levels::zero, 0x4C0U},
          std::tuple{bts_mode::circular, bts_levels::none, 0x6C0U},
          std::tuple{bts_mode::interrupt, bts_levels::none, 0x7C0U},
          std::tuple{bts_mode::interrupt, bts_levels::all, 0x1C0U},
          std::tuple{bts_mode::interrupt, bts_levels::above_zero, 0x3C0U},
          std::tuple{bts_mode::interrupt, bts_levels::zero, 0x5C0U},
          std::tuple{bts_mode::generated, bts_levels::all, 0x040U},
          std::tuple{bts_mode::off, bts_levels::all, 0x000U}}) {
        auto options = machine<Model>::four();
        options.threshold = 0;
        options.setting = {mode, levels};
        machine<Model> m(options);
        BOOST_TEST(m.value(msr::debugctl) == expected);
        m.store.end();
        BOOST_TEST(m.value(msr::debugctl) == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_others_have_set_stays_set, Model, models) {
    machine<Model> m;
    m.store.end();
    BOOST_TEST(m.value(msr::ds_area) == 0U);
    static_cast<void>(m.cpu.write(msr::debugctl, 0x8001));
    m.store.start();
    BOOST_TEST(m.value(msr::debugctl) == 0x81C1U);
    static_cast<void>(m.cpu.write(msr::debugctl, 0x91C0));  // others change theirs at the same time
    m.store.end();
    BOOST_TEST(m.value(msr::debugctl) == 0x9000U);
    BOOST_TEST(!m.store.started());
    m.registers.writes.clear();
    m.store.end();
    BOOST_TEST(m.registers.writes.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(debugctl_is_set_last_and_cleared_first, Model, models) {
    machine<Model> m;
    m.store.end();
    using access = typename watched<Model>::access;
    BOOST_TEST_REQUIRE(m.registers.writes.size() == 2U);
    BOOST_TEST((m.registers.writes.front() == access{msr::debugctl, 0}));
    BOOST_TEST((m.registers.writes.back() == access{msr::ds_area, 0}));
    m.registers.writes.clear();
    m.store.start();
    BOOST_TEST((m.registers.writes.front() == access{msr::ds_area, area}));
    BOOST_TEST((m.registers.writes.back() == access{msr::debugctl, 0x1C0}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_option_that_cannot_be_is_refused_by_name, Model, models) {
    const auto with = [](auto change) {
        auto options = machine<Model>::four();
        change(options);
        return refusal<Model>(options);
    };
    BOOST_TEST(with([](auto&) {}).empty());
    BOOST_TEST(with([](auto& o) { o.records = 0; }) == "debug store: records");
    BOOST_TEST(with([](auto& o) { o.records = 1ULL << 32; }) == "debug store: records");
    BOOST_TEST(with([](auto& o) { o.threshold = 5; }) == "debug store: threshold");
    BOOST_TEST(with([](auto& o) { o.setting.mode = bts_mode::circular; }) ==
               "debug store: threshold");
    BOOST_TEST(with([](auto& o) { o.linear += 4; }) == "debug store: linear");
    BOOST_TEST(with([](auto& o) { o.linear = ~std::uint64_t{63}; }) == "debug store: linear");
    BOOST_TEST(with([](auto& o) { o.linear = 0xFFFFFE00; }) ==
               (Model::pointer_bytes == 4 ? "debug store: linear" : ""));
    BOOST_TEST(with([](auto& o) { o.pebs_threshold = 1; }) == "debug store: pebs_threshold");
    BOOST_TEST(with([](auto& o) { o.pebs_groups = 8U | 32U << 24; }) == "debug store: pebs_groups");
    BOOST_TEST(with([](auto& o) { o.pebs_groups = 0x10; }) == "debug store: pebs_groups");
    const std::array reset{x86::pebs_reset{{4, false}, 1}};
    BOOST_TEST(with([&](auto& o) { o.resets = reset; }) == "debug store: resets");
    BOOST_TEST(with([](auto& o) {
                   o.setting.levels = bts_levels::zero;
                   o.control = x86::msr_debugctlb;
               }) == "debug store: control");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_the_processor_has_not_is_refused, Model, models) {
    const auto four = machine<Model>::four();
    auto levels = four;
    levels.setting.levels = bts_levels::zero;
    auto pebs = four;
    pebs.pebs_records = 1;
    for (const auto& [options, features] :
         {std::pair{four, x86::simulated_features{.ds = false}},
          std::pair{four, x86::simulated_features{.bts = false}},
          std::pair{pebs, x86::simulated_features{.pebs = false}},
          std::pair{levels, x86::simulated_features{.cpl = false}}}) {
        BOOST_TEST(refusal<Model>(options, features) == "debug store");
    }
    BOOST_TEST(refusal<Model>(four, {.pebs = false, .cpl = false}).empty());
}

BOOST_AUTO_TEST_CASE(the_layout_in_force_is_the_only_one_that_is_accepted) {
    x86::simulated_memory memory;
    x86::simulated_cpu<record::lp64> wide(memory);
    const auto have = detect(wide, wide, x86::processor_mode::legacy);
    using narrow = x86::branch_store<record::ilp32, x86::simulated_cpu<record::lp64>>;
    BOOST_CHECK_EXCEPTION(narrow(wide, have, {}), x86::ds_unavailable,
                          [](const auto& e) { return e.why() == x86::ds_missing::layout32; });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_storage_holds_it_if_it_is_large_enough, Model, models) {
    x86::simulated_memory memory;
    x86::simulated_cpu<Model> cpu(memory);
    const auto have = detect(cpu, cpu, x86::processor_mode::legacy);
    const auto four = machine<Model>::four();
    using processor = x86::simulated_cpu<Model>;
    BOOST_TEST((x86::branch_store<Model, processor>::bytes_for(have, four)) ==
               (4 * machine<Model>::size + 63) / 64 * 64);
    BOOST_CHECK_NO_THROW((x86::branch_store<Model, processor>(cpu, have, four)));
    BOOST_CHECK_NO_THROW(
        (x86::branch_store<Model, processor, storage::inline_bytes<128>>(cpu, have, four)));
    BOOST_CHECK_THROW(
        (x86::branch_store<Model, processor, storage::inline_bytes<40>>(cpu, have, four)),
        trace_ring::setup_error);
    BOOST_CHECK_THROW((x86::branch_store<Model, processor>(cpu, have, four, std::uint64_t{4})),
                      trace_ring::setup_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(there_is_one_for_each_processor, Model, models) {
    machine<Model> m;
    auto options = machine<Model>::four();
    options.linear = 0x00300000;
    store_of<Model> second(m.registers, detect(m.cpu, m.cpu, x86::processor_mode::legacy), options);
    BOOST_CHECK_EXCEPTION(second.start(), trace_ring::setup_error,
                          [](const auto& e) { return e.code().value() == EBUSY; });
    BOOST_TEST(m.value(msr::ds_area) == area);
    m.store.end();
    BOOST_CHECK_NO_THROW(second.start());
    BOOST_TEST(m.value(msr::ds_area) == 0x00300000U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_register_that_is_refused_leaves_the_others_as_they_were, Model,
                              models) {
    auto options = machine<Model>::four();
    options.pebs_records = 2;
    options.pebs_enable = 1;
    for (const std::uint32_t number : {msr::ds_area, msr::pebs_enable, msr::debugctl}) {
        for (const bool writing : {false, true}) {
            machine<Model> m(options);
            m.store.end();
            static_cast<void>(m.cpu.write(msr::debugctl, 0x8001));
            m.registers.refuses = [=](std::uint32_t n, bool w) {
                return n == number && w == writing;
            };
            BOOST_CHECK_EXCEPTION(m.store.start(), trace_ring::setup_error, [&](const auto& e) {
                return e.code().value() == EPERM && e.subject().rfind("MSR ", 0) == 0;
            });
            BOOST_TEST(!m.store.started());
            BOOST_TEST(m.value(msr::debugctl) == 0x8001U);
            BOOST_TEST(m.value(msr::pebs_enable) == 0U);
            BOOST_TEST(m.value(msr::ds_area) == 0U);
        }
    }
}

// --- The service routine -------------------------------------------------------------------------
// Vector I2.
BOOST_AUTO_TEST_CASE_TEMPLATE(the_routine_reads_up_to_the_index_and_sets_it_to_the_base, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 4);
    BOOST_TEST(m.index() == m.word(x86::ds_field::bts_maximum));
    if (Model::pointer_bytes == 4) BOOST_TEST(m.index() == 0x00100030U);
    x86::ds_service done;
    BOOST_TEST(m.serve(&done) == (froms{1, 2, 3, 4}));
    BOOST_TEST(done.causes.bts);
    BOOST_TEST(!done.causes.pebs);
    BOOST_TEST(done.causes.counters == 0U);
    BOOST_TEST(done.branches == 4U);
    BOOST_TEST(m.index() == base);
    BOOST_TEST(m.serve(&done).empty());
    BOOST_TEST(!done.causes);
}

// Vector I4, with a visitor that throws: its records are left, and so look new.
BOOST_AUTO_TEST_CASE_TEMPLATE(records_whose_index_was_left_look_new_at_the_next_entry, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 3);
    BOOST_CHECK_THROW(m.store.interrupt([](const auto&) { throw std::runtime_error("enough"); }),
                      std::runtime_error);
    BOOST_TEST(m.index() == base + 3 * m.size);
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
    BOOST_TEST(m.value(msr::lvt_pmi) == 0U);
    BOOST_TEST(m.serve() == (froms{1, 2, 3}));
    m.set(x86::ds_field::bts_index, base + 3 * m.size);
    BOOST_TEST(m.serve() == (froms{1, 2, 3}));
}

// Vector I5.
BOOST_AUTO_TEST_CASE_TEMPLATE(both_registers_are_cleared_inside_and_at_exit_as_at_entry, Model,
                              models) {
    auto options = machine<Model>::four();
    options.setting.levels = bts_levels::above_zero;
    options.pebs_records = 2;
    options.pebs_enable = 1;
    machine<Model> m(options);
    m.cpu.set_cpl(3);
    m.branches(1, 3);
    BOOST_TEST(m.value(msr::debugctl) == 0x3C0U);
    BOOST_TEST(m.value(msr::pebs_enable) == 1U);
    int inside = 0;
    m.store.interrupt([&](const auto&) {
        ++inside;
        BOOST_TEST(m.value(msr::debugctl) == 0x380U);
        BOOST_TEST(m.value(msr::pebs_enable) == 0U);
        BOOST_TEST(!m.cpu.branch(7, 8).branch_stored);
    });
    BOOST_TEST(inside == 3);
    BOOST_TEST(m.value(msr::debugctl) == 0x3C0U);
    BOOST_TEST(m.value(msr::pebs_enable) == 1U);
    // exactly what was set at entry, also if that is not what the store had set
    static_cast<void>(m.cpu.write(msr::debugctl, 0x8003));
    static_cast<void>(m.cpu.write(msr::pebs_enable, 0xF));
    m.serve();
    BOOST_TEST(m.value(msr::debugctl) == 0x8003U);
    BOOST_TEST(m.value(msr::pebs_enable) == 0xFU);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_buffer_leaves_the_setting_and_the_area_as_they_are, Model,
                              models) {
    auto options = machine<Model>::four();
    options.setting.levels = bts_levels::above_zero;
    machine<Model> m(options);
    m.cpu.set_cpl(3);
    m.branches(1, 9);
    BOOST_TEST(m.index() == m.word(x86::ds_field::bts_maximum));
    const auto setting = [&] {
        return std::vector<std::uint64_t>{m.value(msr::ds_area), m.word(x86::ds_field::bts_base),
                                          m.word(x86::ds_field::bts_maximum),
                                          m.word(x86::ds_field::bts_threshold)};
    };
    const auto before = setting();
    m.registers.writes.clear();
    int inside = 0;
    const auto done = m.store.interrupt([&](const auto&) {
        ++inside;
        // Nothing but TR is cleared: BTS, BTINT and the choice of levels are retained.
        BOOST_TEST(m.value(msr::debugctl) == 0x380U);
        BOOST_TEST((setting() == before));
    });
    BOOST_TEST(inside == 4);
    BOOST_TEST(done.causes.bts_full);
    BOOST_TEST(m.value(msr::debugctl) == 0x3C0U);
    BOOST_TEST((setting() == before));
    for (const auto& [number, value] : m.registers.writes) BOOST_TEST(number != msr::ds_area);
    // So it stores and interrupts again, for the chosen levels.
    m.branches(10, 11);
    BOOST_TEST(m.cpu.branch(12, 1012).interrupted);
    BOOST_TEST(m.serve() == (froms{10, 11, 12}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_processors_have_areas_buffers_and_states_of_their_own, Model,
                              models) {
    machine<Model> first;
    auto options = machine<Model>::four();
    options.linear = 0x00300000;
    machine<Model> second(options);
    BOOST_TEST(first.value(msr::ds_area) == area);
    BOOST_TEST(second.value(msr::ds_area) == 0x00300000U);
    BOOST_TEST(static_cast<void*>(first.store.storage().data()) !=
               static_cast<void*>(second.store.storage().data()));
    first.branches(1, 3);
    second.branches(11, 14);
    // The first one's routine stops and empties nothing but its own.
    first.store.interrupt([&](const auto&) {
        BOOST_TEST(first.value(msr::debugctl) == 0x180U);
        BOOST_TEST(second.value(msr::debugctl) == 0x1C0U);
    });
    BOOST_TEST(first.index() == base);
    BOOST_TEST(second.index() == second.word(x86::ds_field::bts_maximum));
    BOOST_TEST(second.value(msr::lvt_pmi) == x86::lvt_mask);
    x86::ds_service done;
    BOOST_TEST(second.serve(&done) == (froms{11, 12, 13, 14}));
    BOOST_TEST(done.causes.bts_full);
    first.branches(4, 6);
    BOOST_TEST(first.serve(&done) == (froms{4, 5, 6}));
    BOOST_TEST(done.lost.total() == 0U);
    // And one processor takes no second area.
    BOOST_CHECK_THROW(
        (store_of<Model>(first.registers, detect(first.cpu, first.cpu, x86::processor_mode::legacy),
                         options)
             .start()),
        trace_ring::setup_error);
    BOOST_TEST(first.value(msr::ds_area) == area);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_steps_are_taken_in_their_order, Model, models) {
    auto options = machine<Model>::four();
    options.pebs_records = 2;
    options.pebs_threshold = 1;
    options.pebs_enable = 1;
    options.counters = 0x7;
    machine<Model> m(options);
    static_cast<void>(m.cpu.write(msr::global_ctrl, 0x3));
    const std::vector<std::byte> bytes(m.cpu.pebs_bytes(), std::byte{7});
    m.branches(1, 3);
    BOOST_TEST(m.cpu.overflow({0}, bytes).pebs_stored);
    m.cpu.overflow({1});  // without PEBS
    std::vector<int> order;
    const auto done = m.store.interrupt([&](const auto&) { order.push_back(1); },
                                        [&](std::span<const std::byte> record) {
                                            order.push_back(2);
                                            BOOST_TEST(record.size() == bytes.size());
                                            BOOST_TEST(std::to_integer<int>(record.back()) == 7);
                                        });
    BOOST_TEST(done.causes.bts);
    BOOST_TEST(done.causes.pebs);
    BOOST_TEST(done.causes.counters == 2U);
    BOOST_TEST(done.branches == 3U);
    BOOST_TEST(done.pebs_records == 1U);
    BOOST_TEST(order == (std::vector{1, 1, 1, 2}));
    using access = typename watched<Model>::access;
    const std::vector<access> expected{
        {msr::debugctl, 0x180},
        {msr::pebs_enable, 0},
        {msr::global_ovf_ctrl, x86::status_ds_overflow | 2},
        {msr::global_ctrl, 7},
        {msr::lvt_pmi, 0},
        {msr::pebs_enable, 1},
        {msr::debugctl, 0x1C0},
    };
    BOOST_TEST((m.registers.writes == expected));
    BOOST_TEST(m.value(msr::global_status) == 0U);
    BOOST_TEST(m.word(x86::ds_field::pebs_index) == m.word(x86::ds_field::pebs_base));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_combination_of_the_three_causes_is_told, Model, models) {
    for (unsigned chosen = 0; chosen < 8; ++chosen) {
        auto options = machine<Model>::four();
        options.pebs_records = 4;
        options.pebs_enable = 1;
        machine<Model> m(options);
        static_cast<void>(m.cpu.write(msr::global_ctrl, 0x3));
        const std::vector<std::byte> bytes(m.cpu.pebs_bytes());
        m.branches(1, (chosen & 1U) != 0 ? 3 : 2);
        for (unsigned n = 0; n < ((chosen & 2U) != 0 ? 3U : 2U); ++n) m.cpu.overflow({0}, bytes);
        if ((chosen & 4U) != 0) m.cpu.overflow({1});
        int branches = 0, records = 0;
        const auto done = m.store.interrupt([&](const auto&) { ++branches; },
                                            [&](std::span<const std::byte>) { ++records; });
        BOOST_TEST(done.causes.bts == ((chosen & 1U) != 0), chosen);
        BOOST_TEST(done.causes.pebs == ((chosen & 2U) != 0), chosen);
        BOOST_TEST(done.causes.counters == ((chosen & 4U) != 0 ? 2U : 0U), chosen);
        BOOST_TEST(static_cast<bool>(done.causes) == (chosen != 0));
        // what did not reach its threshold is not the routine's
        BOOST_TEST(branches == ((chosen & 1U) != 0 ? 3 : 0), chosen);
        BOOST_TEST(records == ((chosen & 2U) != 0 ? 3 : 0), chosen);
        BOOST_TEST(m.index() == base + ((chosen & 1U) != 0 ? 0 : 2 * m.size));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_apics_entry_is_a_register_or_memory, Model, models) {
    machine<Model> m;
    m.branches(1, 3);
    BOOST_TEST(m.value(msr::lvt_pmi) == x86::lvt_mask);
    m.serve();
    BOOST_TEST(m.value(msr::lvt_pmi) == 0U);
    volatile std::uint32_t entry = x86::lvt_mask | 0x4FE;
    auto options = machine<Model>::four();
    options.lvt = &entry;
    options.global_status = false;
    machine<Model> mapped(options);
    mapped.branches(1, 3);
    mapped.serve();
    BOOST_TEST(entry == 0x4FEU);
    BOOST_TEST(mapped.value(msr::lvt_pmi) == x86::lvt_mask);  // not touched
    for (const auto& [number, value] : mapped.registers.writes)
        BOOST_TEST(number != msr::global_ovf_ctrl);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_restore_or_rearm_could_not_set_is_told_at_the_next_stop, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 3);
    m.registers.refuses = [](std::uint32_t n, bool w) { return w && n == msr::lvt_pmi; };
    BOOST_TEST(m.serve().size() == 3U);
    m.registers.refuses = [](std::uint32_t, bool) { return false; };
    BOOST_CHECK_EXCEPTION(m.serve(), trace_ring::setup_error, [](const auto& e) {
        return e.subject() == "MSR 834" && e.code().value() == EPERM;
    });
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
    BOOST_CHECK_NO_THROW(m.serve());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stop_that_fails_halfway_leaves_all_as_it_was, Model, models) {
    machine<Model> m;
    m.registers.refuses = [](std::uint32_t n, bool w) { return w && n == msr::pebs_enable; };
    BOOST_CHECK_THROW(static_cast<void>(m.store.stop()), trace_ring::setup_error);
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_visitor_that_throws_takes_no_loss_with_it, Model, models) {
    const auto fail = [](const auto&) { throw std::runtime_error("enough"); };
    const auto nothing = [](const auto&) {};
    auto options = machine<Model>::four();
    options.pebs_records = 2;
    options.pebs_enable = 1;
    machine<Model> m(options);
    static_cast<void>(m.cpu.write(msr::global_ctrl, 1));
    const std::vector<std::byte> bytes(m.cpu.pebs_bytes());
    m.branches(1, 6);
    for (int n = 0; n < 3; ++n) m.cpu.overflow({0}, bytes);
    BOOST_CHECK_THROW(m.store.interrupt(fail, nothing), std::runtime_error);
    BOOST_CHECK_THROW(m.store.interrupt(nothing, fail), std::runtime_error);
    BOOST_TEST(m.index() == base);
    const auto pebs = m.store.interrupt(nothing, nothing);
    BOOST_TEST(pebs.branches == 0U);
    BOOST_TEST(pebs.pebs_records == 2U);
    m.branches(7, 9);
    const auto branches = m.store.interrupt(nothing, nothing);
    BOOST_TEST(branches.branches == 3U);
    BOOST_TEST(refused(pebs.lost) + refused(branches.lost) == 2U);  // one of each buffer
}

// --- Loss ----------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_buffer_is_told_once_as_loss, Model, models) {
    machine<Model> m;
    m.branches(1, 9);
    loss_counts lost;
    BOOST_TEST(m.drained(&lost) == (froms{1, 2, 3, 4}));
    BOOST_TEST(refused(lost) == 1U);
    BOOST_TEST(lost.total() == 1U);
    m.branches(10, 12);
    BOOST_TEST(m.drained(&lost) == (froms{10, 11, 12}));
    BOOST_TEST(lost.total() == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_full_buffer_that_wraps_tells_what_it_overwrote, Model, models) {
    machine<Model> m(machine<Model>::four(), {.full = when_full::wraps});
    loss_counts lost;
    for (std::uint64_t last = 5; last <= 7; ++last) {
        m.branches(1, last);
        froms newest;
        for (std::uint64_t n = 5; n <= last; ++n) newest.push_back(n);
        BOOST_TEST(m.drained(&lost) == newest);
        BOOST_TEST(lost[loss_cause::overwritten] == 4 * (last - 4));
        BOOST_TEST(lost.total() == 4 * (last - 4));
        m.branches(1, 3);  // nothing behind the index any more
        BOOST_TEST(m.serve() == (froms{1, 2, 3}));
    }
    // In addition to what a session has read and kept.
    drain::session session(m.store);
    m.branches(1, 4);
    session.take()->keep();
    m.branches(5, 5);
    auto after = session.take();
    BOOST_TEST_REQUIRE(after.has_value());
    BOOST_TEST((*after)->lost()[loss_cause::overwritten] == 4U);
    BOOST_TEST((*after)->records() == 1U);
    after->consume();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(loss_stands_before_the_records_that_follow_it, Model, models) {
    machine<Model> m;
    m.branches(1, 4);
    drain::session session(m.store);
    auto first = session.take();
    BOOST_TEST_REQUIRE(first.has_value());
    BOOST_TEST((*first)->lost().total() == 0U);
    first->consume();
    m.branches(5, 5);
    auto second = session.take();
    BOOST_TEST_REQUIRE(second.has_value());
    BOOST_TEST(refused((*second)->lost()) == 1U);
    second->consume();
    BOOST_TEST(m.store.rest().total() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_lies_beyond_the_maximum_is_counted_and_not_read, Model, models) {
    machine<Model> m;
    m.branches(1, 4);
    m.set(x86::ds_field::bts_index, base + 7 * m.size);
    x86::ds_service done;
    BOOST_TEST(m.serve(&done) == (froms{1, 2, 3, 4}));
    BOOST_TEST(refused(done.lost) == 1U + 3U);
    BOOST_TEST(m.index() == base);
    m.branches(1, 3);
    m.set(x86::ds_field::bts_index, ~std::uint64_t{0});
    BOOST_TEST(m.serve(&done).size() == 4U);
    BOOST_TEST(refused(done.lost) > 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_index_that_makes_no_sense_is_damage_and_is_set_again, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 3);
    m.set(x86::ds_field::bts_index, base + 3 * m.size - 1);
    loss_counts lost;
    BOOST_TEST(m.drained(&lost) == (froms{1, 2}));
    BOOST_TEST(lost[loss_cause::damaged] == 1U);
    m.set(x86::ds_field::bts_index, base - 4);
    BOOST_TEST(m.drained(&lost).empty());
    BOOST_TEST(lost[loss_cause::damaged] == 2U);
    BOOST_TEST(m.index() == base);
    m.branches(5, 6);
    BOOST_TEST(m.drained(&lost) == (froms{5, 6}));
    BOOST_TEST(lost.total() == 2U);
}

// --- Sessions ------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE_TEMPLATE(a_session_serves_it_by_the_same_steps, Model, models) {
    machine<Model> m;
    m.branches(1, 3);
    drain::session session(m.store);
    froms seen;
    x86::ds_causes why;
    session.service(
        [&](const auto& portion) {
            BOOST_TEST(portion.bytes().data() ==
                       m.store.storage().data() + storage::control_bytes);  // in place
            m.store.visit(portion, [&](const auto& b) { seen.push_back(b.from); });
        },
        [&](const x86::ds_causes& causes) { why = causes; });
    BOOST_TEST(seen == (froms{1, 2, 3}));
    BOOST_TEST(why.bts);
    BOOST_TEST(m.index() == base);
    using access = typename watched<Model>::access;
    const std::vector<access> expected{
        {msr::debugctl, 0x180},
        {msr::pebs_enable, 0},
        {msr::global_ovf_ctrl, x86::status_ds_overflow},
        {msr::lvt_pmi, 0},
        {msr::pebs_enable, 0},
        {msr::debugctl, 0x1C0},
    };
    BOOST_TEST((m.registers.writes == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_processor_is_stopped_while_a_portion_is_held, Model, models) {
    machine<Model> m;
    m.branches(1, 2);
    drain::session session(m.store);
    {
        auto held = session.take();
        BOOST_TEST_REQUIRE(held.has_value());
        BOOST_TEST(!m.cpu.branch(7, 8).branch_stored);
        BOOST_TEST(!session.take().has_value());  // one at a time
        BOOST_TEST(!m.cpu.branch(7, 8).branch_stored);
    }  // which keeps it
    BOOST_TEST(m.cpu.branch(3, 4).branch_stored);
    BOOST_TEST(!m.store.visit({}, [](const auto&) {}));
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_look_leaves_the_records_to_the_next_session, Model, models) {
    machine<Model> m;
    m.branches(1, 2);
    {
        drain::session session(m.store);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 1U);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 0U);
        m.branches(3, 3);
        froms seen;
        session.for_each_record([&](const auto& b) { seen.push_back(b.from); });
        BOOST_TEST(seen == (froms{3}));  // and that alone is consumed
    }
    BOOST_TEST(m.index() == base + 2 * m.size);
    BOOST_TEST(m.drained() == (froms{1, 2}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_second_session_is_refused_until_the_first_has_ended, Model,
                              models) {
    machine<Model> m;
    {
        drain::session session(m.store);
        BOOST_CHECK_EXCEPTION(drain::session another(m.store), trace_ring::setup_error,
                              [](const auto& e) { return e.code().value() == EBUSY; });
    }
    BOOST_CHECK_NO_THROW(drain::session another(m.store));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_session_that_ends_with_a_portion_starts_the_processor_again, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 2);
    typename store_of<Model>::portion portion;
    m.store.attach();
    BOOST_TEST(m.store.take(portion));
    m.store.detach();
    BOOST_TEST(m.value(msr::debugctl) == 0x1C0U);
    BOOST_TEST(m.drained() == (froms{1, 2}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_stored_before_the_end_can_be_drained_after_it, Model,
                              models) {
    machine<Model> m;
    m.branches(1, 2);
    m.store.end();
    BOOST_TEST(!m.cpu.branch(3, 4).branch_stored);
    BOOST_TEST(m.drained() == (froms{1, 2}));
    m.store.start();
    BOOST_TEST(m.drained().empty());
}

// --- Circular ------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE_TEMPLATE(a_circular_buffer_is_read_oldest_first_at_every_phase, Model,
                              models) {
    for (const auto round : {when_round::at_base, when_round::at_maximum}) {
        for (std::uint64_t count = 0; count <= 13; ++count) {
            machine<Model> m(machine<Model>::four_in_a_circle(), {.round = round});
            m.branches(1, count);
            froms expected;
            for (std::uint64_t n = count < 4 ? 1 : count - 3; n <= count; ++n)
                expected.push_back(n);
            loss_counts lost;
            BOOST_TEST(m.drained(&lost) == expected, "after " << count);
            BOOST_TEST(lost[loss_cause::overwritten] == (count >= 4 ? 1U : 0U));
            BOOST_TEST(lost.total() == lost[loss_cause::overwritten]);
            BOOST_TEST(m.index() == base);
            BOOST_TEST(m.drained(&lost).empty());
            m.branches(20, 21);
            BOOST_TEST(m.drained() == (froms{20, 21}));
            BOOST_TEST(m.cpu.interrupts() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_processor_is_stopped_between_the_two_parts_of_a_circle, Model,
                              models) {
    machine<Model> m(machine<Model>::four_in_a_circle(), {.round = when_round::at_base});
    m.branches(1, 6);  // 5 6 3 4
    drain::session session(m.store);
    auto older = session.take();
    BOOST_TEST_REQUIRE(older.has_value());
    BOOST_TEST((*older)->records() == 2U);
    BOOST_TEST((*older)->lost()[loss_cause::overwritten] == 1U);
    older->consume();
    BOOST_TEST(!m.cpu.branch(7, 8).branch_stored);
    auto newer = session.take();
    BOOST_TEST_REQUIRE(newer.has_value());
    BOOST_TEST((*newer)->lost().total() == 0U);
    newer->consume();
    BOOST_TEST(m.cpu.branch(7, 8).branch_stored);
    BOOST_TEST(m.index() == base + m.size);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_circle_is_looked_at_once_by_a_session, Model, models) {
    machine<Model> m(machine<Model>::four_in_a_circle(), {.round = when_round::at_base});
    m.branches(1, 6);
    {
        drain::session session(m.store);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 2U);
        m.branches(7, 7);
        BOOST_TEST(session.peek_each([](const auto&) {}) == 0U);
    }
    BOOST_TEST(m.drained() == (froms{4, 5, 6, 7}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_part_of_a_circle_is_kept_and_the_other_consumed, Model, models) {
    for (const bool keeps_older : {false, true}) {
        machine<Model> m(machine<Model>::four_in_a_circle(), {.round = when_round::at_base});
        m.branches(1, 6);  // 5 6 3 4
        {
            drain::session session(m.store);
            auto older = session.take();
            BOOST_TEST_REQUIRE(older.has_value());
            keeps_older ? older->keep() : older->consume();
            auto newer = session.take();
            BOOST_TEST_REQUIRE(newer.has_value());
            keeps_older ? newer->consume() : newer->keep();
            BOOST_TEST(!session.take().has_value());
        }
        m.branches(7, 7);  // over 3
        BOOST_TEST(m.drained() == (keeps_older ? froms{4, 7} : froms{5, 6, 7}));
    }
}

// --- PEBS ----------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(the_pebs_buffer_and_the_resets_of_each_format_are_set_up) {
    for (unsigned format = 0; format < 6; ++format) {
        const std::array resets{x86::pebs_reset{{0, false}, 100}, x86::pebs_reset{{3, false}, 103}};
        const std::array fixed{resets[0], resets[1], x86::pebs_reset{{2, true}, 202}};
        auto options = machine<record::lp64>::four();
        options.pebs_records = 8;
        options.pebs_enable = 5;
        options.pebs_groups = 2;
        options.resets = format < 4 ? std::span<const x86::pebs_reset>(resets)
                                    : std::span<const x86::pebs_reset>(fixed);
        machine<record::lp64> m(
            options, {.full = when_full::drops, .pebs_format = static_cast<std::uint8_t>(format)});
        const std::uint64_t size = x86::pebs_record_bytes<record::lp64>(format, 2);
        const std::uint64_t at = m.word(x86::ds_field::pebs_base);
        BOOST_TEST(at == base + 128);
        BOOST_TEST(m.word(x86::ds_field::pebs_index) == at);
        BOOST_TEST(m.word(x86::ds_field::pebs_maximum) == at + 8 * size);
        BOOST_TEST(m.word(x86::ds_field::pebs_threshold) == at + 6 * size);
        BOOST_TEST(m.value(msr::pebs_enable) == 5U);
        BOOST_TEST(m.value(msr::pebs_data_cfg) == (format < 4 ? 0U : 2U));
        const auto reset = [&](x86::pebs_counter counter) {
            const auto offset = x86::reset_offset<record::lp64>(format, counter);
            return m.memory.load<std::uint64_t>(area + offset).value();
        };
        BOOST_TEST(reset({0, false}) == 100U);
        BOOST_TEST(reset({3, false}) == 103U);
        if (format >= 4) BOOST_TEST(reset({2, true}) == 202U);
        m.store.end();
        BOOST_TEST(m.value(msr::pebs_enable) == 0U);
        BOOST_TEST(m.value(msr::pebs_data_cfg) == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pebs_buffer_that_is_full_has_lost_what_nobody_counted, Model,
                              models) {
    auto options = machine<Model>::four();
    options.records = 0;  // PEBS alone
    options.setting = {};
    options.threshold = 0;
    options.pebs_records = 2;
    options.pebs_enable = 1;
    machine<Model> m(options);
    static_cast<void>(m.cpu.write(msr::global_ctrl, 1));
    const std::vector<std::byte> bytes(m.cpu.pebs_bytes());
    for (int n = 0; n < 5; ++n) m.cpu.overflow({0}, bytes);
    x86::ds_service done;
    BOOST_TEST(m.serve(&done).empty());
    BOOST_TEST(!done.causes.bts);
    BOOST_TEST(done.causes.pebs_full);
    BOOST_TEST(done.pebs_records == 2U);
    BOOST_TEST(refused(done.lost) == 1U);
    BOOST_TEST(m.cpu.overflow({0}, bytes).pebs_stored);
}

BOOST_AUTO_TEST_CASE(a_damaged_pebs_record_ends_the_walk_and_is_counted) {
    auto options = machine<record::lp64>::four();
    options.pebs_records = 4;
    options.pebs_enable = 1;
    machine<record::lp64> m(options, {.full = when_full::drops, .pebs_format = 4});
    const std::uint64_t at = m.word(x86::ds_field::pebs_base);
    BOOST_REQUIRE(m.memory.store(at, std::uint64_t{32} << 48));
    BOOST_REQUIRE(m.memory.store(at + 32, std::uint64_t{0} << 48));
    m.set(x86::ds_field::pebs_index, at + 96);
    loss_counts lost;
    int records = 0;
    BOOST_TEST(m.store.take_pebs([&](std::span<const std::byte>) { ++records; }, lost) == 1U);
    BOOST_TEST(records == 1);
    BOOST_TEST(lost[loss_cause::damaged] == 1U);
    m.set(x86::ds_field::pebs_index, ~std::uint64_t{0});
    m.store.take_pebs([](std::span<const std::byte>) {}, lost);
    BOOST_TEST(lost[loss_cause::damaged] == 2U);
    BOOST_TEST(refused(lost) == 1U);
}

static_assert(x86::branch_source<x86::stored_branches<store_of<record::lp64>>>);

BOOST_AUTO_TEST_CASE_TEMPLATE(a_store_is_a_source_of_neutral_branches, Model, models) {
    machine<Model> m;
    x86::stored_branches source(m.store);
    std::vector<x86::branch> seen;
    std::vector<x86::branch_gap> gaps;
    const auto read = [&] {
        seen.clear();
        gaps.clear();
        return source.read(x86::visiting{[&](const x86::branch& one) { seen.push_back(one); },
                                         [&](const x86::branch_gap& gap) { gaps.push_back(gap); }});
    };
    BOOST_TEST(read() == 0U);
    m.branches(1, 2);
    m.cpu.branch(3, 4, true);
    BOOST_TEST(read() == 3U);
    BOOST_REQUIRE(seen.size() == 3U);
    BOOST_TEST((seen[0] == x86::branch(1, 1001)));
    BOOST_TEST(!seen[1].has_prediction());
    BOOST_TEST((seen[2] == x86::branch(3, 4).set_predicted(true)));
    BOOST_TEST(read() == 0U);
    BOOST_TEST(gaps.empty());
    BOOST_TEST(source.lost().total() == 0U);

    m.branches(5, 10);  // two more than it has room for: known to be one at least
    BOOST_CHECK_THROW(source.read(x86::visiting{[](const x86::branch&) { throw 1; },
                                                [](const x86::branch_gap&) {}}),
                      int);
    BOOST_TEST(read() == 4U);
    BOOST_TEST(seen.front().from() == 5U);
    BOOST_TEST(source.lost()[loss_cause::refused] == 1U);
    m.branches(11, 11);
    m.store.end();
    BOOST_TEST(!source.ended());
    BOOST_TEST(read() == 1U);
    BOOST_TEST(source.ended());
    BOOST_TEST(read() == 0U);
    m.store.start();
    BOOST_TEST(!source.ended());
}

BOOST_AUTO_TEST_SUITE_END()
