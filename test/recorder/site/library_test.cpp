// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Recording in libraries that come and go, before main, and when all static storage is gone.

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>
#include <recorder/site/library.hpp>

BOOST_AUTO_TEST_SUITE(libraries)

namespace tr = trace_ring;

namespace {

struct of_program : tr::event<"program", tr::field<"n", std::uint64_t>> {};

tr::recorder* for_library = nullptr;
std::string file_for_library;

/// Names and numbers of a trace's records, in order.
using listing = std::vector<std::pair<std::string, std::uint64_t>>;
listing listing_of(const tr::reduce::trace_file& trace) {
    listing out;
    for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
        if (const auto* const record = std::get_if<tr::reduce::record_view>(item)) {
            out.emplace_back(std::string(record->name()), record->field("n").u64());
        } else {
            out.emplace_back("not a record", 0);
        }
    }
    return out;
}
listing listing_of(const tr::recorder& recorder) {
    const auto [data, size] = recorder.bytes();
    return listing_of(tr::reduce::trace_file::from(std::span(data, size)));
}
/// How many types a trace knows, by name.
std::map<std::string, int> types_of(const tr::reduce::trace_file& trace) {
    std::map<std::string, int> out;
    for (const auto& type : trace.event_types()) ++out[type.name];
    return out;
}

class library {
public:
    explicit library(std::string path)
        : path_(std::move(path)), handle_(::dlopen(path_.c_str(), RTLD_NOW)) {
        if (handle_ == nullptr) throw std::runtime_error(::dlerror());
    }
    library(library&& other) noexcept
        : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, nullptr)) {}
    ~library() {
        if (handle_ != nullptr) ::dlclose(handle_);
    }
    template <class Function>
    Function* find(const char* name) const {
        void* const found = ::dlsym(handle_, name);
        if (found == nullptr) throw std::runtime_error(name);
        return reinterpret_cast<Function*>(found);
    }
    /// True if it is really gone from memory.
    bool unload() {
        ::dlclose(std::exchange(handle_, nullptr));
        void* const still = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD);
        if (still != nullptr) ::dlclose(still);
        return still == nullptr;
    }

private:
    std::string path_;
    void* handle_;
};

// --- Before main: in the order of this file ---

extern tr::recorder early;
struct recording_early {
    explicit recording_early(std::uint64_t n) : recorded(early.record<of_program>(n)) {}
    bool recorded;
};
recording_early before_it_is_there(1);
tr::recorder early{{.size = 64 << 10}};
recording_early once_it_is_there(2);

// --- After everything: the reverse ---

tr::recorder* never_destroyed = nullptr;  // set in a child only

struct recording_late {
    explicit recording_late(std::uint64_t number) : n(number) {}
    ~recording_late() {
        if (never_destroyed != nullptr) never_destroyed->record<of_program>(n);
    }
    std::uint64_t n;
};
recording_late at_the_end(11);
[[gnu::destructor]] void after_the_end() {
    if (never_destroyed == nullptr) return;
    never_destroyed->record<of_program>(std::uint64_t{12});
    // `early` has been destroyed: its doors are closed.
    if (early.record<of_program>(std::uint64_t{13})) ::_exit(66);
    never_destroyed->record<of_program>(std::uint64_t{14});
}

}  // namespace

extern "C" {
tr::recorder* program_recorder() {
    return for_library;
}
const char* library_file() {
    return file_for_library.c_str();
}
}

BOOST_AUTO_TEST_CASE(what_is_recorded_before_main_is_there_if_the_recorder_was) {
    BOOST_TEST(!before_it_is_there.recorded);
    BOOST_TEST(once_it_is_there.recorded);
    BOOST_TEST((listing_of(early) == listing{{"program", 2}}));
}

BOOST_AUTO_TEST_CASE(destructors_record_until_the_very_end_of_a_process) {
    const test::folder folder;
    const std::string file = folder / "a.trace";
    const int status = test::in_child([&]() -> int {
        never_destroyed = new tr::recorder({.file = file, .size = 64 << 10});
        never_destroyed->record<of_program>(std::uint64_t{9});
        std::atexit([] { never_destroyed->record<of_program>(std::uint64_t{10}); });
        std::exit(0);
    });
    BOOST_TEST(status == 0);
    const listing expected{
        {"program", 9}, {"program", 10}, {"program", 11}, {"program", 12}, {"program", 14}};
    BOOST_TEST((listing_of(tr::reduce::trace_file::open(file)) == expected));
}

BOOST_AUTO_TEST_CASE(a_library_records_from_its_first_constructor_to_its_last_destructor) {
    tr::recorder recorder({.size = 256 << 10});
    for_library = &recorder;
    listing expected;
    std::map<std::string, std::uint32_t> ids;
    for (std::uint64_t round = 0; round < 10; ++round) {
        recorder.record<of_program>(round);
        library loaded(LIBRARY_SHARED);
        auto* const use = loaded.find<library_use_type>("library_use");
        BOOST_TEST(use(round));
        // A thread that has recorded there lives on when the code is gone.
        std::atomic<int> step{0};
        std::thread thread([&] {
            use(100 + round);
            step = 1;
            while (step.load() < 2) ::usleep(100);
            recorder.record<of_program>(200 + round);
        });
        while (step.load() < 1) ::usleep(100);
        BOOST_TEST(loaded.find<library_refused_type>("library_refused")() == 0U);
        BOOST_TEST(loaded.unload());
        step = 2;
        thread.join();
        const listing more{{"program", round},      {"library.loaded", 1},
                           {"library.used", round}, {"library.used", 100 + round},
                           {"library.unloaded", 2}, {"program", 200 + round}};
        expected.insert(expected.end(), more.begin(), more.end());

        // Its types are known once, and by the same numbers each time, as long as the trace lasts.
        const auto [data, size] = recorder.bytes();
        const auto trace = tr::reduce::trace_file::from(std::span(data, size));
        const std::map<std::string, int> types{
            {"program", 1}, {"library.loaded", 1}, {"library.used", 1}, {"library.unloaded", 1}};
        BOOST_TEST((types_of(trace) == types));
        for (const auto& type : trace.event_types()) {
            BOOST_TEST(ids.emplace(type.name, type.id).first->second == type.id);
        }
        BOOST_TEST(trace.damages().empty());
    }
    BOOST_TEST((listing_of(recorder) == expected));
    BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
    // A trace that is begun now knows the types, too, of a library that is not there.
    tr::recorder later({.size = 64 << 10});
    const auto [data, size] = later.bytes();
    BOOST_TEST(
        types_of(tr::reduce::trace_file::from(std::span(data, size))).count("library.used") == 1U);
    for_library = nullptr;
}

// The kernel looks at what a thread said of its last sequence when the thread is next interrupted.
BOOST_AUTO_TEST_CASE(a_library_with_restartable_sequences_can_be_unloaded) {
    tr::recorder recorder({.size = 64 << 10});
    for_library = &recorder;
    tr::basic_recorder<test::by_cpu> by_cpu({.size = 64 << 10});
    for (int round = 0; round < 20; ++round) {
        library loaded(LIBRARY_SHARED);
        BOOST_TEST(loaded.find<library_use_by_cpu_type>("library_use_by_cpu")(by_cpu));
        BOOST_TEST(loaded.unload());
        ::usleep(1);
    }
    for_library = nullptr;
}

BOOST_DATA_TEST_CASE(a_library_of_its_own_has_a_recorder_of_its_own_that_goes_with_it,
                     boost::unit_test::data::make({LIBRARY_ALONE, LIBRARY_PLUGIN}), path) {
    const test::folder folder;
    file_for_library = folder / "library.trace";
    tr::recorder recorder({.size = 64 << 10});
    for_library = &recorder;
    constexpr std::uint64_t rounds = 5;
    listing expected;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        library loaded(path);
        auto* const use = loaded.find<library_use_type>("library_use");
        BOOST_TEST(use(round));
        std::atomic<int> step{0};
        std::thread thread([&] {
            use(100 + round);
            recorder.record<of_program>(100 + round);
            step = 1;
            while (step.load() < 2) ::usleep(100);
            recorder.record<of_program>(200 + round);
        });
        while (step.load() < 1) ::usleep(100);
        // One was refused: there was no recorder yet.
        BOOST_TEST(loaded.find<library_refused_type>("library_refused")() == 1U);
        // What does not share its registry records there all the same.
        auto* const use_other = loaded.find<library_use_type>("library_use_other");
        BOOST_TEST(use_other(round));
        BOOST_TEST(recorder.statistics().refused_without_lane == 0U);
        BOOST_TEST(loaded.unload());
        step = 2;
        thread.join();
        const listing more{{"library.loaded", 1},
                           {"library.used", round},
                           {"library.used", 100 + round},
                           {"library.unloaded", 2}};
        expected.insert(expected.end(), more.begin(), more.end());
        // The file is complete, and nobody's any more.
        const auto trace = tr::reduce::trace_file::open(file_for_library);
        BOOST_TEST(!trace.live());
        BOOST_TEST((listing_of(trace) == expected));
        BOOST_TEST(trace.damages().empty());
        std::size_t departed = 0;
        for (const auto& process : trace.processes()) {
            BOOST_TEST((process.state != tr::layout::presence::live));
            departed += process.state == tr::layout::presence::departed ? 1 : 0;
        }
        BOOST_TEST(departed == round + 1);
    }
    std::map<std::string, std::uint64_t> recorded;
    for (const auto& [name, n] : listing_of(recorder)) ++recorded[name];
    BOOST_TEST((recorded == std::map<std::string, std::uint64_t>{{"program", 2 * rounds},
                                                                 {"library.used", rounds}}));
    for_library = nullptr;
}

BOOST_AUTO_TEST_CASE(two_hundred_plugins_are_loaded_and_record_on_every_thread) {
    const test::folder folder;
    file_for_library.clear();  // in memory
    std::vector<library> loaded;
    std::size_t recorded = 0;
    const auto use_all = [&] {
        for (const library& each : loaded) {
            recorded += each.find<library_use_type>("library_use")(1) ? 1 : 0;
        }
    };
    for (int i = 0; i < 200; ++i) {
        const std::string copy = folder / (std::to_string(i) + ".so");
        std::filesystem::copy_file(LIBRARY_PLUGIN, copy);
        loaded.emplace_back(copy);
        ::unlink(copy.c_str());
        if (i == 100) std::thread(use_all).join();
    }
    BOOST_TEST(recorded == 101U);
    use_all();
    std::thread(use_all).join();
    BOOST_TEST(recorded == 501U);
}

BOOST_AUTO_TEST_SUITE_END()
