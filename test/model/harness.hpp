// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// How a test explores: MODEL_TEST(name, bounds) { ... } is a test case whose body sets up one run.
/// Each exploration prints a line. With MODEL_ALONE the same file is a program without Boost.Test,
/// which mutants.py builds: it explores those that are named (else all), with the fault that
/// TRACE_RING_MUTANT numbers, and exits with 1 if any property is broken.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <model/scheduler.hpp>

namespace model {

/// Explores, prints a line, and the schedule of a fault.
inline result explored(const char* name, const bounds& within,
                       const std::function<void(run&)>& set_up) {
    result found = the_scheduler.explore(name, within, set_up);
    std::printf(
        "explored %s: %llu interleavings to level %u, of %llu the beginning, %llu at random, "
        "%llu steps, %llu shared words\n",
        name, static_cast<unsigned long long>(found.runs), found.levels_done,
        static_cast<unsigned long long>(found.given_up),
        static_cast<unsigned long long>(found.random_runs),
        static_cast<unsigned long long>(found.steps),
        static_cast<unsigned long long>(found.shared));
    if (!found.schedule.empty()) {
        std::printf("broken: %s\n  TRACE_RING_SCHEDULE='%s: %s'\n", found.fault.c_str(), name,
                    found.schedule.c_str());
    }
    std::fflush(stdout);
    return found;
}

/// Room for an object that each run makes anew, in the same place. The one before ends then.
template <class T>
class anew {
public:
    template <class... A>
    T& make(A&&... arguments) {
        if (made_) (**this).~T();
        made_ = true;
        std::memset(bytes_, 0, sizeof bytes_);
        return *new (bytes_) T(std::forward<A>(arguments)...);
    }
    T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }
    T* operator->() { return &**this; }
    /// It does not end, ever.
    void leave() { made_ = false; }

private:
    bool made_ = false;
    alignas(T) alignas(64) std::byte bytes_[sizeof(T)];
};

}  // namespace model

#if defined(MODEL_ALONE)

namespace model {
struct scenario {
    const char* name;
    bounds within;
    void (*set_up)(run&);
};
inline std::vector<scenario>& scenarios() {
    static std::vector<scenario> all;
    return all;
}
struct listed {
    listed(const char* name, const bounds& within, void (*set_up)(run&)) {
        scenarios().push_back({name, within, set_up});
    }
};
}  // namespace model

#define MODEL_TEST(name, ...)                                                          \
    static void name(model::run&);                                                     \
    static const model::listed listed_##name{#name, model::bounds{__VA_ARGS__}, name}; \
    static void name([[maybe_unused]] model::run& run)

int main(int count, char** names) {
    if (const char* planted = std::getenv("TRACE_RING_MUTANT"); planted != nullptr)
        model::mutant = std::atoi(planted);
    int status = 0;
    for (const auto& each : model::scenarios()) {
        bool asked = count < 2;
        for (int i = 1; i < count; ++i) asked = asked || std::strcmp(names[i], each.name) == 0;
        if (!asked) continue;
        model::reached.assign(model::reached.size(), false);
        if (!model::explored(each.name, each.within, each.set_up).fault.empty()) status = 1;
        if (std::getenv("TRACE_RING_REACHED") == nullptr) continue;
        std::printf("reached");
        for (std::size_t i = 0; i < model::reached.size(); ++i) {
            if (model::reached[i]) std::printf(" %zu", i);
        }
        std::printf("\n");
    }
    return status;
}

#else

#include <boost/test/unit_test.hpp>

#include <proof.hpp>

namespace model {
/// Explores, and reports what was; a fault fails the test.
inline void explored_well(const char* name, const bounds& within, void (*set_up)(run&)) {
    const result found = explored(name, within, set_up);
    BOOST_TEST(found.fault == std::string());
    if (!found.fault.empty()) return;
    trace_ring_test::proof("whole", found.runs, "enumerated interleavings");
    trace_ring_test::proof("whole", found.random_runs, "random interleavings");
    trace_ring_test::proof("progress", found.runs + found.random_runs, "interleavings");
}
}  // namespace model

#define MODEL_TEST(name, ...)                                                   \
    static void set_up_##name(model::run&);                                     \
    BOOST_AUTO_TEST_CASE(name) {                                                \
        model::explored_well(#name, model::bounds{__VA_ARGS__}, set_up_##name); \
    }                                                                           \
    static void set_up_##name([[maybe_unused]] model::run& run)

#endif
