// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Boost.Test with its main, compiled once for all tests. Several tests share a program, so that
/// what they include is compiled once for them together. A program takes the names of sources,
/// relative to test/, behind `--`, and runs the tests in these; without a name it runs all:
///     tests.reduce --run_test='!@one_thread' -- reduce/damage_test.cpp
/// It ends with 77 if a case could not be run (proof.hpp: cannot_run) and nothing failed.

#if defined(TRACE_RING_BOOST_TEST_LIBRARY)
#include <boost/test/unit_test.hpp>
#else
// From the headers alone where there is no library for this machine, or none with its sanitizer.
#include <boost/test/included/unit_test.hpp>
#endif
#include <boost/test/framework.hpp>
#include <boost/test/results_collector.hpp>
#include <boost/test/tree/observer.hpp>
#include <boost/test/tree/traverse.hpp>
#include <boost/test/tree/visitor.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "proof.hpp"

namespace {

namespace ut = boost::unit_test;

/// Disables each suite, and each case outside a suite, that is not in these sources.
class selection : public ut::test_tree_visitor {
public:
    explicit selection(std::span<char* const> sources) : sources_(sources) {}
    [[nodiscard]] bool found() const { return found_; }

private:
    bool test_suite_start(const ut::test_suite& suite) override {
        if (suite.p_parent_id.get() == ut::INV_TEST_UNIT_ID) return true;  // the whole
        return visit(static_cast<const ut::test_unit&>(suite));
    }
    bool visit(const ut::test_unit& unit) override {
        const ut::const_string file = unit.p_file_name;
        const std::string_view path(file.begin(), file.size());
        const bool wanted = std::any_of(sources_.begin(), sources_.end(), [&](const char* source) {
            return path.ends_with(std::string("/") + source);
        });
        found_ = found_ || wanted;
        if (!wanted) {
            ut::framework::get(unit.p_id, ut::TUT_ANY).p_default_status.value =
                ut::test_unit::RS_DISABLED;
        }
        return false;  // what is inside inherits
    }

    std::span<char* const> sources_;
    bool found_ = false;
};

/// Sees whether all that could be run has passed.
class end : public ut::test_observer {
public:
    void test_finish() override {
        passed = ut::results_collector.results(ut::framework::master_test_suite().p_id).passed();
    }
    /// Behind Boost.Test's own: the first of them begins what they have in common.
    int priority() override { return 5; }
    inline static bool passed = false;
};
/// Boost.Test knows no programs that are skipped.
void leave() {
    const std::string& why = trace_ring_test::not_run();
    if (!end::passed || why.empty()) return;
    std::printf("\nskipped: %s\n", why.c_str());
    std::fflush(nullptr);
    ::_exit(77);
}

}  // namespace

/// Called by Boost.Test's main.
ut::test_suite* init_unit_test_suite(int count, char** names) {
    static end at_end;
    ut::framework::register_observer(at_end);
    trace_ring_test::not_run().clear();  // so it is there until the end
    static_cast<void>(std::atexit(leave));
    if (count < 2) return nullptr;
    selection chosen({names + 1, static_cast<std::size_t>(count - 1)});
    ut::traverse_test_tree(ut::framework::master_test_suite(), chosen, true);
    if (!chosen.found()) throw ut::framework::setup_error("no test stands in these sources");
    return nullptr;
}
