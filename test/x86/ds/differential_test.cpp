// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// The simulated processor and the branch store compared with a second, naive processor and service
// routine: random steps, and after each of them the registers, the area, the buffers and the
// interrupts that were delivered are compared.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/x86/ds/branch_store.hpp>
#include <trace_ring/x86/ds/hardware/features.hpp>
#include <trace_ring/x86/ds/simulated_cpu.hpp>

#include <proof.hpp>
#include <recorder/scratch.hpp>
#include <x86/ds/naive_cpu.hpp>

BOOST_AUTO_TEST_SUITE(x86_ds_differential)

namespace record = trace_ring::record;
namespace storage = trace_ring::storage;
namespace x86 = trace_ring::x86;
namespace msr = trace_ring::x86::msr;
using trace_ring::loss_cause;
using x86::ds_field;

namespace {

using models = boost::mpl::list<record::ilp32, record::lp64>;

constexpr std::uint64_t steps_in_a_run = 2'500;
/// 250,000 for each of two tests and two models: a million in all. Never so few that all of them
/// could be stores into which nothing is set to be recorded.
std::uint64_t runs() {
    return std::max<std::uint64_t>(test::repeated(250'000 / steps_in_a_run, 8), 8);
}

class dice {
public:
    explicit dice(std::uint64_t seed) : engine_(seed) {}
    /// 0 to n - 1.
    std::uint64_t operator()(std::uint64_t n) { return engine_() % n; }
    bool one_in(std::uint64_t n) { return (*this)(n) == 0; }
    std::uint64_t any() { return engine_(); }
    template <std::size_t N>
    std::uint64_t one_of(const std::array<std::uint64_t, N>& values) {
        return values[static_cast<std::size_t>((*this)(N))];
    }

private:
    std::mt19937_64 engine_;
};

/// Registers of which both processors are asked.
constexpr std::array all_registers{msr::debugctl,    msr::global_status, msr::global_ctrl,
                                   msr::pebs_enable, msr::pebs_data_cfg, msr::ds_area,
                                   msr::lvt_pmi};

/// Both processors, with the same memory.
template <class Model>
struct pair_of {
    x86::simulated_memory memory;
    x86::simulated_cpu<Model> cpu;
    naive::cpu other;
    std::span<std::byte> bytes;

    pair_of(const x86::simulated_features& features, const naive::rules& by)
        : cpu(memory, features), other(by) {}

    void share(std::span<std::byte> with) {
        bytes = with;
        memory.map(other.by.origin, with);
        std::memcpy(other.memory.data(), with.data(), with.size());
    }
    void write(std::uint32_t number, std::uint64_t value) {
        const bool accepted = cpu.write(number, value) == x86::msr_fault::none;
        if (accepted != other.wrmsr(number, value))
            BOOST_ERROR("MSR " << number << " and " << value << " is accepted by one of them");
    }
    /// Sets a word of the area in both, as software does.
    void set(ds_field field, std::uint64_t value) {
        const auto which = static_cast<int>(field);
        if (!other.there(other.word_at(which), 8)) return;
        other.set(other.word_at(which), value, other.word_size());
        std::memcpy(bytes.data() + (other.word_at(which) - other.by.origin),
                    other.memory.data() + (other.word_at(which) - other.by.origin),
                    static_cast<std::size_t>(other.word_size()));
    }
    /// A branch of some kind, a counter's overflow, or both.
    void execute(dice& random) {
        std::optional<x86::executed_branch> branch;
        std::optional<naive::branch> same_branch;
        std::optional<x86::executed_overflow> overflow;
        std::optional<naive::overflow> same_overflow;
        const auto kind = random(16);
        if (kind != 0) {
            const bool crosses = kind < 4;
            const auto level =
                crosses ? static_cast<unsigned>(random.one_in(2) ? 0 : 1 + random(3)) : cpu.cpl();
            branch = x86::executed_branch{random.any(), random.any(), random.one_in(2), {}};
            if (crosses) branch->cpl = level;
            same_branch = {branch->from, branch->to, branch->predicted, static_cast<int>(level)};
        }
        std::vector<std::uint8_t> record;
        if (kind == 0 || random.one_in(4)) {
            record.resize(cpu.pebs_bytes());
            for (auto& byte : record) byte = static_cast<std::uint8_t>(random.any());
            if (record.size() != 40 && other.by.format >= 4) {  // an adaptive one, true to itself
                const std::uint64_t first =
                    std::uint64_t{record.size()} << 48 | (other.data_cfg & 0xFFFFFFFF);
                std::memcpy(record.data(), &first, sizeof first);
            }
            const bool fixed = random.one_in(4);
            const auto number = static_cast<unsigned>(random(3));
            overflow = x86::executed_overflow{{number, fixed}, std::as_bytes(std::span(record))};
            same_overflow = {static_cast<int>(number) + (fixed ? 32 : 0), record};
        }
        const x86::executed did = cpu.execute(branch, overflow);
        const naive::outcome expected = other.step(same_branch, same_overflow);
        if (did.branch_stored != expected.branch || did.pebs_stored != expected.pebs ||
            did.interrupted != expected.interrupt || did.memory_fault != expected.fault ||
            did.fault_at != expected.fault_at) {
            BOOST_ERROR("another outcome: stored "
                        << did.branch_stored << expected.branch << ' ' << did.pebs_stored
                        << expected.pebs << ", interrupted " << did.interrupted
                        << expected.interrupt << ", fault " << did.memory_fault << expected.fault);
        }
    }
    /// Whether all that can be seen is the same.
    [[nodiscard]] bool agree() {
        const std::array expected{other.debugctl,    other.status,   other.global_ctrl,
                                  other.pebs_enable, other.data_cfg, other.ds_area,
                                  other.lvt};
        for (std::size_t i = 0; i < all_registers.size(); ++i) {
            const auto seen = cpu.read(all_registers[i]);
            if (all_registers[i] == msr::pebs_data_cfg && other.by.format < 4) continue;
            if (seen.fault != x86::msr_fault::none || seen.value != expected[i]) {
                BOOST_ERROR("MSR " << all_registers[i] << " is " << seen.value << ", not "
                                   << expected[i]);
                return false;
            }
        }
        if (std::memcmp(bytes.data(), other.memory.data(), bytes.size()) != 0) {
            BOOST_ERROR("the memory differs");
            return false;
        }
        if (cpu.interrupts() != other.interrupts || static_cast<int>(cpu.cpl()) != other.level) {
            BOOST_ERROR("interrupts or level: " << cpu.interrupts() << ", not "
                                                << other.interrupts);
            return false;
        }
        return true;
    }
};

/// The same choices for both.
template <class Model>
std::pair<x86::simulated_features, naive::rules> choose(dice& random) {
    naive::rules by;
    x86::simulated_features is;
    by.wide = Model::pointer_bytes == 8;
    by.format = by.wide ? static_cast<int>(random(6)) : 0;
    is.pebs_format = static_cast<std::uint8_t>(by.format);
    by.full = static_cast<naive::full_rule>(random(3));
    is.full = by.full == naive::drop   ? x86::when_full::drops
              : by.full == naive::wrap ? x86::when_full::wraps
                                       : x86::when_full::continues;
    by.round_at_once = random.one_in(2);
    is.round = by.round_at_once ? x86::when_round::at_base : x86::when_round::at_maximum;
    by.origin_counts = random.one_in(2);
    is.crossing = by.origin_counts ? x86::when_crossing::origin : x86::when_crossing::target;
    return {is, by};
}

std::uint64_t any_debugctl(dice& random) {
    constexpr std::array<std::uint64_t, 10> rows{0x000, 0x040, 0x0C0, 0x2C0, 0x4C0,
                                                 0x6C0, 0x7C0, 0x1C0, 0x3C0, 0x5C0};
    if (random.one_in(8)) return random(0x20000);  // reserved bits among them
    return random.one_of(rows);
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_processor_whose_software_does_anything_does_as_the_naive_one, Model,
                              models) {
    std::uint64_t steps = 0, interrupts = 0, stored = 0;
    constexpr std::uint64_t size = sizeof(record::branch_record<Model>);
    for (std::uint64_t run = 0, last = runs(); run < last; ++run) {
        dice random(run * 2 + 1);
        auto chosen = choose<Model>(random);
        const x86::simulated_features& is = chosen.first;
        naive::rules& by = chosen.second;
        // the area, eight records and more, and as much for PEBS
        constexpr std::uint64_t bts = 0x400, pebs = 0x600;
        by.origin = 0x10000;
        by.size = 0x2000;
        alignas(64) std::array<std::byte, 0x2000> bytes{};
        pair_of<Model> both(is, by);
        both.share(bytes);
        const auto bts_word = [&]() -> std::uint64_t {
            if (random.one_in(20)) return random.one_in(2) ? random.any() : by.origin - random(100);
            const std::uint64_t extra = random.one_in(4) ? random(8) : 0;
            return by.origin + bts + random(9) * size + extra;
        };
        // PEBS never gets where it would overwrite what describes the branch buffer: the manuals do
        // not say which of the two the processor would then see.
        const auto pebs_word = [&]() -> std::uint64_t {
            if (random.one_in(20)) return 8 * random(0x1000);
            return by.origin + pebs + random(5) * both.cpu.pebs_bytes();
        };
        both.write(msr::ds_area, by.origin);
        for (std::uint64_t step = 0; step < steps_in_a_run; ++step, ++steps) {
            switch (random(24)) {
                case 0:
                    both.write(msr::debugctl, any_debugctl(random));
                    break;
                case 1:
                    both.write(msr::lvt_pmi, random.one_in(8) ? random.any() : 0);
                    break;
                case 2:
                    both.write(msr::global_ctrl, random.any());
                    break;
                case 3:
                    both.write(msr::pebs_enable, random.any() & random.any());
                    break;
                case 4:
                    both.write(msr::global_ovf_ctrl, random.any());
                    break;
                case 5:
                    both.write(msr::pebs_data_cfg, random(8));  // short ones: five fit
                    break;
                case 6:
                    if (random.one_in(4)) {
                        constexpr std::array<std::uint64_t, 5> places{
                            0, 0x10000, 0x11FF0, 0x0000800000000000, 0xFFFF800000000000};
                        both.write(msr::ds_area, random.one_of(places));
                    } else {
                        both.write(msr::ds_area, by.origin);
                    }
                    break;
                case 7:
                    both.set(ds_field::bts_index, bts_word());
                    break;
                case 8:
                    both.set(ds_field::bts_maximum, bts_word());
                    break;
                case 9:
                    both.set(ds_field::bts_threshold, bts_word());
                    break;
                case 10:
                    if (random.one_in(2)) both.set(ds_field::bts_base, bts_word());
                    break;
                case 11:
                    both.set(ds_field::pebs_index, pebs_word());
                    break;
                case 12:
                    both.set(ds_field::pebs_maximum, pebs_word());
                    break;
                case 13:
                    both.set(ds_field::pebs_threshold, pebs_word());
                    break;
                case 14: {
                    const auto number = static_cast<std::uint32_t>(random(0x400));
                    const bool known = number == msr::debugctl || number == msr::global_status;
                    if (!known && number != msr::global_ctrl && number != msr::global_ovf_ctrl)
                        both.write(number, 0);
                    break;
                }
                default: {
                    const std::uint64_t before = both.cpu.interrupts();
                    both.execute(random);
                    interrupts += both.cpu.interrupts() - before;
                    ++stored;
                }
            }
            BOOST_REQUIRE_MESSAGE(both.agree(), "run " << run << ", step " << step);
        }
    }
    BOOST_TEST(interrupts > steps / 1000);
    BOOST_TEST(stored > steps / 4);
    trace_ring_test::proof("accounted", steps,
                           "steps of a debug store, compared with a second model");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_store_is_served_as_by_the_naive_routine, Model, models) {
    std::uint64_t steps = 0, served = 0, read = 0, lost = 0;
    constexpr std::uint64_t size = sizeof(record::branch_record<Model>);
    for (std::uint64_t run = 0, last = runs(); run < last; ++run) {
        dice random(run * 2 + 2);
        auto chosen = choose<Model>(random);
        const x86::simulated_features& is = chosen.first;
        naive::rules& by = chosen.second;
        by.origin = 0x7FF000;
        x86::branch_store_options options;
        options.records = 4 + random(8);
        options.linear = by.origin;
        options.setting.mode =
            random.one_in(4) ? x86::bts_mode::circular : x86::bts_mode::interrupt;
        options.setting.levels = static_cast<x86::bts_levels>(random(3));
        if (options.setting.mode == x86::bts_mode::interrupt)
            options.threshold = random(options.records + 1);
        if (random.one_in(2)) options.maximum = x86::bts_maximum::multiple_plus_one;
        options.pebs_records = 2 + random(4);
        options.pebs_threshold = random(options.pebs_records + 1);
        options.pebs_groups = static_cast<std::uint32_t>(random(8));
        options.pebs_enable = 0x300000003;

        // Bytes after the buffers, where a processor may continue to write, are memory too.
        constexpr std::uint64_t slack = 0x400;
        x86::simulated_memory memory;
        x86::simulated_cpu<Model> probe(memory, is);
        const auto have = detect(probe, probe, x86::processor_mode::legacy);
        using store_type = x86::branch_store<Model, x86::simulated_cpu<Model>, storage::heap>;
        const std::uint64_t needed = store_type::bytes_for(have, options);
        by.size = static_cast<std::size_t>(storage::control_bytes + needed + slack);
        pair_of<Model> both(is, by);
        store_type store(both.cpu, have, options, needed + slack);
        both.share({store.storage().data(), by.size});
        store.start();
        std::memcpy(both.other.memory.data(), both.bytes.data(), by.size);
        both.other.ds_area = by.origin;
        both.other.debugctl = encode(x86::ia32_debugctl, options.setting);
        both.other.pebs_enable = options.pebs_enable;
        if (by.format >= 4) both.other.data_cfg = options.pebs_groups;
        both.write(msr::global_ctrl, 0x700000007);
        BOOST_REQUIRE(both.agree());

        const std::uint64_t base = by.origin + storage::control_bytes;
        const std::uint64_t end = base + options.records * size;
        const std::uint64_t pebs_size = both.cpu.pebs_bytes();
        for (std::uint64_t step = 0; step < steps_in_a_run; ++step, ++steps) {
            const std::uint64_t before = both.cpu.interrupts();
            const auto kind = random(64);
            if (kind == 0) {
                both.set(ds_field::bts_index, random.one_in(2) ? end : base + random(end - base));
            } else if (kind == 1 && options.setting.mode == x86::bts_mode::interrupt) {
                both.set(ds_field::bts_index, end + random(3 * size));
            } else {
                both.execute(random);
            }
            if (both.cpu.interrupts() != before || kind == 2) {
                std::vector<std::uint64_t> froms;
                std::uint64_t records = 0;
                const x86::ds_service did =
                    store.interrupt([&](const auto& b) { froms.push_back(b.from); },
                                    [&](std::span<const std::byte> bytes) {
                                        records += bytes.size() == pebs_size ? 1 : 1000;
                                    });
                const naive::served expected =
                    naive::serve(both.other, options.records, options.pebs_records, pebs_size);
                BOOST_TEST(did.causes.bts == expected.bts);
                BOOST_TEST(did.causes.pebs == expected.pebs);
                BOOST_TEST(did.causes.counters == expected.counters);
                BOOST_TEST(froms == expected.froms);
                BOOST_TEST(did.branches == froms.size());
                BOOST_TEST(did.pebs_records == records);
                BOOST_TEST(records == expected.pebs_records);
                BOOST_TEST(did.lost[loss_cause::damaged] == expected.damaged);
                BOOST_TEST(did.lost[loss_cause::refused] == expected.refused);
                BOOST_TEST(did.lost[loss_cause::overwritten] == expected.overwritten);
                ++served;
                read += froms.size();
                lost += did.lost.total();
            }
            BOOST_REQUIRE_MESSAGE(both.agree(), "run " << run << ", step " << step);
        }
    }
    BOOST_TEST(served > steps / 100);
    BOOST_TEST(read > served / 2);
    BOOST_TEST(lost > 0U);
    trace_ring_test::proof("accounted", steps,
                           "steps of a debug store, compared with a second model");
}

BOOST_AUTO_TEST_SUITE_END()
