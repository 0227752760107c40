// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Communication between a test and its child processes: memory that stays shared over a fork.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>

namespace test {

struct board {
    std::atomic<std::uint64_t> ready{0};
    std::atomic<std::uint64_t> begun[8]{};      ///< by writer: records that it set out to make
    std::atomic<std::uint64_t> recorded[8]{};   ///< by writer: records that returned true
    std::atomic<std::uint64_t> stop_before{0};  ///< which record, of those to be stepped through
    std::atomic<std::int64_t> stopped{0};  ///< the thread that waits to be stepped; -1: it cannot
};

class shared_board {
public:
    shared_board()
        : at_(::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {
        if (at_ == MAP_FAILED) throw std::runtime_error("mmap");
        new (at_) board;
    }
    shared_board(const shared_board&) = delete;
    shared_board& operator=(const shared_board&) = delete;
    ~shared_board() { ::munmap(at_, sizeof(board)); }
    board& operator*() const { return *static_cast<board*>(at_); }
    board* operator->() const { return static_cast<board*>(at_); }

private:
    void* at_;
};

inline void wait_until(const std::atomic<std::uint64_t>& count, std::uint64_t wanted) {
    while (count.load() < wanted) ::usleep(100);
}

}  // namespace test
