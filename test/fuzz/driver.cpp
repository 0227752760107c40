// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The fuzz targets without libFuzzer:
///   fuzz_test                       the names of the targets
///   fuzz_test TARGET                the seeds and a fixed number of mutations of them
///   fuzz_test TARGET FILE...        these inputs
///   fuzz_test --seeds TARGET DIR    writes the seeds
/// What ends it leaves the input in fuzz-TARGET.input. An input that takes half a minute is a loop.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <fuzz/fuzz.hpp>
#include <proof.hpp>

extern "C" void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

namespace {

namespace fuzz = trace_ring_test::fuzz;

constexpr unsigned longest = 30;  // seconds

fuzz::input current;
char left_in[256];

void keep_input() {
    const int fd = ::open(left_in, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) return;
    const bool kept =
        ::write(fd, current.data(), current.size()) == static_cast<ssize_t>(current.size());
    ::close(fd);
    if (kept) std::fprintf(stderr, "the input is in %s\n", left_in);
}

void on_signal(int number) {
    std::fprintf(stderr, number == SIGALRM ? "takes too long\n" : "signal %d\n", number);
    keep_input();
    ::signal(number, SIG_DFL);
    ::raise(number);
}

void run(const fuzz::target& what, const fuzz::buffer& one) {
    current = one;
    ::alarm(longest);
    what.run(one);
    ::alarm(0);
}

int usage() {
    std::fprintf(stderr, "usage: fuzz_test [--seeds TARGET DIR | TARGET [FILE...]]\n");
    return 2;
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 1) {
        for (const auto& each : fuzz::targets()) std::puts(each.name);
        return 0;
    }
    const bool wants_seeds = std::string(arguments[1]) == "--seeds";
    if (wants_seeds && count != 4) return usage();
    const fuzz::target* const what = fuzz::find(arguments[wants_seeds ? 2 : 1]);
    if (what == nullptr) return usage();
    if (wants_seeds) return fuzz::write_seeds(*what, arguments[3]) ? 0 : 1;

    std::snprintf(left_in, sizeof left_in, "fuzz-%s.input", what->name);
    if (__sanitizer_set_death_callback != nullptr) {
        __sanitizer_set_death_callback(&keep_input);
        ::signal(SIGABRT, &on_signal);
        ::signal(SIGALRM, &on_signal);
    } else {
        for (const int number : {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
            ::signal(number, &on_signal);
        }
    }
    if (count > 2) {
        for (int i = 2; i < count; ++i) {
            std::ifstream in(arguments[i], std::ios::binary);
            if (!in) {
                std::fprintf(stderr, "fuzz_test: cannot read %s\n", arguments[i]);
                return 2;
            }
            run(*what, fuzz::buffer(std::istreambuf_iterator<char>(in), {}));
        }
        return 0;
    }
#if defined(__x86_64__) || defined(__i386__)
    const unsigned rounds = trace_ring_test::repeats(what->rounds);
#else
    const unsigned rounds = trace_ring_test::repeats(what->rounds / 20);  // by an emulator
#endif
    const auto seeds = what->seeds();
    for (const auto& seed : seeds) run(*what, seed);
    fuzz::dice random(20'260'101);
    fuzz::buffer one;
    for (unsigned i = 0; i < rounds; ++i) {
        // A few steps away from a seed, then from another.
        if (i % 8 == 0) one = seeds[random.below(seeds.size())];
        what->mutate(one, random);
        run(*what, one);
    }
    std::printf("%s: %zu seeds, %u mutations\n", what->name, seeds.size(), rounds);
    trace_ring_test::proof("hostile", seeds.size() + rounds, "fuzz inputs");
    return 0;
}
