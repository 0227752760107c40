// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A crowd that holds sub-buffers, for tests of the sub-buffers left for others, including those of
/// dead writers.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <recorder/account.hpp>
#include <shared_board.hpp>

namespace test {

/// Threads that hold a sub-buffer each, until they are let go. Each tries to get it `tries` times:
/// who finds half of the ring held looks for the dead at first, and then not each time.
class holders {
public:
    template <class Recorder>
    holders(Recorder& recorder, std::uint64_t count, std::uint64_t who, int tries = 1) {
        for (std::uint64_t i = 0; i < count; ++i) {
            threads_.emplace_back([this, &recorder, who, tries] {
                bool kept = false;
                for (int k = 0; k < tries && !kept; ++k) kept = put(recorder, who, 0);
                kept_ += kept ? 1 : 0;
                ++there_;
                while (!go_.load()) ::usleep(200);
            });
            wait_until(there_, i + 1);
        }
    }
    holders(const holders&) = delete;
    holders& operator=(const holders&) = delete;
    ~holders() {
        go_ = true;
        for (auto& thread : threads_) thread.join();
    }
    [[nodiscard]] std::uint64_t kept() const { return kept_.load(); }

private:
    std::atomic<std::uint64_t> there_{0};
    std::atomic<std::uint64_t> kept_{0};
    std::atomic<bool> go_{false};
    std::vector<std::thread> threads_;
};

}  // namespace test
