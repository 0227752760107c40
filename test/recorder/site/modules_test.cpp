// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A program that exports nothing, and libraries that hide their symbols or do not: each records
/// into the recorders of each other, in turn, and each record is where it belongs.

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>
#include <recorder/site/module.hpp>

BOOST_AUTO_TEST_SUITE(modules_of_a_program)

namespace tr = trace_ring;

namespace {

struct module {
    explicit module(const char* path) : handle(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (handle == nullptr) throw std::runtime_error(::dlerror());
    }
    module(const module&) = delete;
    module& operator=(const module&) = delete;
    ~module() { ::dlclose(handle); }
    template <class Function>
    [[nodiscard]] Function* find(const char* name) const {
        void* const found = ::dlsym(handle, name);
        if (found == nullptr) throw std::runtime_error(name);
        return reinterpret_cast<Function*>(found);
    }
    void* handle;
};

/// The C library gets a library's static thread-local words back only if no library that was loaded
/// later still has some. So they are unloaded last first.
struct loaded_modules : std::vector<std::unique_ptr<module>> {
    loaded_modules() = default;
    loaded_modules(const loaded_modules&) = delete;
    loaded_modules& operator=(const loaded_modules&) = delete;
    ~loaded_modules() {
        while (!empty()) pop_back();
    }
};

/// By MODULE_CODE - 1: guests that only record, one of them a plugin; two that could construct
/// recorders and do not; hosts, which do, and one of them with words at no fixed place.
const char* const paths[] = {MODULE_GUEST,    MODULE_HIDDEN, MODULE_PLUGIN,     MODULE_UMBRELLA,
                             MODULE_EXPORTED, MODULE_HOST,   MODULE_MOVING_HOST};
constexpr std::uint32_t hosts[] = {6, 7};

/// What was recorded into a recorder, by event, code and number.
using account = std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, int>;

account account_of(const tr::recorder& recorder, std::uint64_t number) {
    account out;
    const auto [data, size] = recorder.bytes();
    const auto trace = tr::reduce::trace_file::from({data, size});
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        const auto* const record = std::get_if<tr::reduce::record_view>(item);
        if (record == nullptr) {
            ++out[{"not a record", 0, 0}];
        } else if (record->ends()) {
            ++out[{"end", 0, 0}];
        } else if (record->field("recorder").u64() != number) {
            ++out[{"of another recorder", record->field("code").u64(), record->field("n").u64()}];
        } else if (record->name() == "own.odd" && record->field("text").text() != "a text") {
            ++out[{"another text", 0, 0}];
        } else {
            ++out[{std::string(record->name()), record->field("code").u64(),
                   record->field("n").u64()}];
        }
    }
    return out;
}

void expect(account& of, std::uint64_t code, std::uint64_t n) {
    const char* const own = code == 0 ? "own.program" : code % 2 == 0 ? "own.even" : "own.odd";
    ++of[{own, code, n}];
    ++of[{"worked", code, n}];
    of[{"shared", code, n}] += 2;
    ++of[{"counted", code, n}];
    ++of[{"end", 0, 0}];
}

struct everything {
    everything() {
        for (const char* path : paths) loaded.push_back(std::make_unique<module>(path));
        codes.push_back(&modules::record);
        for (const auto& each : loaded)
            codes.push_back(each->find<module_record_type>("module_record"));
        for (int i = 0; i < 2; ++i) recorders.push_back(new tr::recorder({.size = 4 << 20}));
        for (const std::uint32_t host : hosts) {
            for (int i = 0; i < 2; ++i)
                recorders.push_back(loaded[host - 1]->find<module_make_type>("module_make")());
        }
        expected.resize(recorders.size());
    }
    everything(const everything&) = delete;
    everything& operator=(const everything&) = delete;
    ~everything() {
        // Code of another module may destroy it, too.
        auto* const unmake = loaded[3]->find<module_unmake_type>("module_unmake");
        for (std::size_t i = 0; i < recorders.size(); ++i)
            i % 2 == 0 ? unmake(recorders[i]) : delete recorders[i];
    }
    /// Each code into each recorder, in turn. Returns the records that were refused.
    std::uint64_t call_all(std::uint64_t n) const {
        std::uint64_t refused = 0;
        for (std::uint32_t to = 0; to < recorders.size(); ++to) {
            for (const auto& code : codes)
                refused += modules::records_a_call - code(*recorders[to], to, n);
        }
        return refused;
    }
    void expect_all(std::uint64_t n) {
        for (account& each : expected) {
            for (std::uint64_t code = 0; code < codes.size(); ++code) expect(each, code, n);
        }
    }
    void check() const {
        for (std::uint32_t i = 0; i < recorders.size(); ++i) {
            const account found = account_of(*recorders[i], i);
            BOOST_TEST((found == expected[i]), "recorder " << i);
            for (const auto& [what, count] : found) {
                const auto& [name, code, n] = what;
                const auto known = expected[i].find(what);
                if (known == expected[i].end() || known->second != count)
                    BOOST_TEST_MESSAGE(i << ": " << name << ' ' << code << ' ' << n << " x"
                                         << count);
            }
            const auto statistics = recorders[i]->statistics();
            BOOST_TEST(statistics.refused_without_lane == 0U);
            const auto [data, size] = recorders[i]->bytes();
            const auto trace = tr::reduce::trace_file::from({data, size});
            BOOST_TEST(trace.damages().empty());
        }
    }
    loaded_modules loaded;
    std::vector<module_record_type*> codes;
    std::vector<tr::recorder*> recorders;
    std::vector<account> expected;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_code_of_each_records_into_the_recorders_of_each) {
    everything all;
    for (std::uint64_t n = 0; n < 20; ++n) {
        BOOST_TEST(all.call_all(n) == 0U);
        all.expect_all(n);
    }
    all.check();
}

BOOST_AUTO_TEST_CASE(threads_and_their_ends_do_not_mix_them_up) {
    everything all;
    std::atomic<std::uint64_t> refused{0};
    for (std::uint64_t round = 0; round < 4; ++round) {
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 3; ++t) {
            threads.emplace_back([&all, &refused, n = round * 3 + t] {
                refused += all.call_all(n * 2);
                refused += all.call_all(n * 2 + 1);
            });
            all.expect_all((round * 3 + t) * 2);
            all.expect_all((round * 3 + t) * 2 + 1);
        }
        for (auto& each : threads) each.join();
    }
    BOOST_TEST(refused.load() == 0U);
    all.check();
}

BOOST_AUTO_TEST_CASE(a_gate_is_one_for_the_code_of_all) {
    everything all;
    for (std::uint32_t to = 0; to < all.recorders.size(); ++to) {
        tr::recorder& recorder = *all.recorders[to];
        auto* const enable =
            all.loaded[to % all.loaded.size()]->find<module_enable_type>("module_enable");
        BOOST_TEST(enable(recorder, false) == 1U);
        for (const auto& code : all.codes)
            BOOST_TEST(code(recorder, to, 1) == modules::records_a_call - 2);
        BOOST_TEST(recorder.enable("shared", true) == 1U);
        for (const auto& code : all.codes)
            BOOST_TEST(code(recorder, to, 2) == modules::records_a_call);
    }
}

BOOST_AUTO_TEST_CASE(a_child_of_a_fork_records_by_the_code_of_all) {
    everything all;
    BOOST_TEST(all.call_all(0) == 0U);
    all.expect_all(0);
    // The recorders' memory is shared with the child.
    const int status = test::in_child([&all]() -> int { return all.call_all(1) == 0 ? 0 : 1; });
    BOOST_TEST(status == 0);
    all.expect_all(1);
    all.check();
}

// The C library has little room for the thread-local words of libraries that come by dlopen.
BOOST_AUTO_TEST_CASE(many_libraries_record_that_construct_no_recorder_and_some_that_do) {
    const test::folder folder;
    tr::recorder recorder({.size = 4 << 20});
    loaded_modules loaded;
    const auto load = [&](const char* path, std::size_t copies) {
        for (std::size_t i = 0; i < copies; ++i) {
            const std::string copy = folder / (std::to_string(loaded.size()) + ".so");
            std::filesystem::copy_file(path, copy);
            loaded.push_back(std::make_unique<module>(copy.c_str()));
        }
    };
    for (const char* path : {MODULE_GUEST, MODULE_HIDDEN, MODULE_UMBRELLA, MODULE_EXPORTED})
        load(path, 60);
    load(MODULE_HOST, 20);
    load(MODULE_MOVING_HOST, 60);
    for (const auto& each : loaded) {
        BOOST_TEST(each->find<module_record_type>("module_record")(recorder, 0, 1) ==
                   modules::records_a_call);
    }
    std::uint64_t records = 0;
    for (const auto& [what, count] : account_of(recorder, 0))
        records += static_cast<std::uint64_t>(count);
    BOOST_TEST(records == loaded.size() * modules::records_a_call);
}

BOOST_AUTO_TEST_CASE(a_type_with_another_registry_s_numbers_is_right_in_a_recorder_by_processor) {
    const module host(MODULE_BY_CPU);
    tr::recorder recorder({.size = 4 << 20});
    BOOST_TEST(host.find<module_answer_type>("module_answer")(recorder, 100) == 0U);
    const auto [data, size] = recorder.bytes();
    BOOST_TEST(tr::reduce::trace_file::from({data, size}).damages().empty());
}

// A library that comes later may have its own state where another had it.
BOOST_AUTO_TEST_CASE(libraries_and_their_recorders_come_and_go_under_others) {
    tr::recorder recorder({.size = 4 << 20});
    const module guest(MODULE_HIDDEN);
    auto* const record = guest.find<module_record_type>("module_record");
    account expected;
    for (std::uint64_t n = 0; n < 6; ++n) {
        const module host(n % 2 == 0 ? MODULE_HOST : MODULE_MOVING_HOST);
        tr::recorder* const other = host.find<module_make_type>("module_make")();
        account of_other;
        for (std::uint64_t k = 0; k < 3; ++k) {
            BOOST_TEST(record(recorder, 0, n * 10 + k) == modules::records_a_call);
            expect(expected, 2, n * 10 + k);
            BOOST_TEST(record(*other, 1, k) == modules::records_a_call);
            expect(of_other, 2, k);
            BOOST_TEST(host.find<module_record_type>("module_record")(*other, 1, k) ==
                       modules::records_a_call);
            expect(of_other, n % 2 == 0 ? 6 : 7, k);
            BOOST_TEST(modules::record(*other, 1, k) == modules::records_a_call);
            expect(of_other, 0, k);
        }
        BOOST_TEST((account_of(*other, 1) == of_other));
        host.find<module_unmake_type>("module_unmake")(other);
    }
    BOOST_TEST((account_of(recorder, 0) == expected));
}

BOOST_AUTO_TEST_SUITE_END()
