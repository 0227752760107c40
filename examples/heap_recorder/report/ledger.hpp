// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The accounting of a heap: matches allocations with frees, for one process, in the order of the
/// records. Bytes are the requested bytes, not the allocator's rounded sizes.
///
/// Rules:
/// - Each successful call, including realloc, adds the requested bytes to the sum of allocated
/// bytes.
/// - realloc replaces its old block by the new one in one step, so the peak never contains both.
/// - realloc to zero bytes that returns null has freed its block, as in glibc.
/// - A moving realloc frees its old address before its record is made. Another thread may get that
///   address first. The old block then ends there, and the later realloc record refers to it.
/// - If no such realloc follows, or if an address is freed that no recorded call returned, a call
///   has bypassed the recorder. These cases are counted, and live bytes may be wrong by them.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "timeline.hpp"

namespace heap {

/// A call stack, by its number in a table of them.
using stack_id = std::uint32_t;

struct block {
    std::uint64_t bytes = 0;
    std::uint64_t born = 0;  ///< nanoseconds
    stack_id stack = 0;
    std::uint32_t thread = 0;
    bool inherited = false;  ///< from the parent, by fork
    std::uint8_t call = 0;   ///< which function allocated it, as the caller numbers them
};

/// What one call stack amounts to.
struct stack_sums {
    std::uint64_t bytes = 0;  ///< requested bytes
    std::uint64_t calls = 0;  ///< that succeeded
    std::uint64_t live_bytes = 0;
    std::uint64_t live_blocks = 0;
    std::uint64_t peak_bytes = 0;  ///< its own bytes at the time of the total peak

    stack_sums& operator+=(const stack_sums& other) noexcept {
        bytes += other.bytes;
        calls += other.calls;
        live_bytes += other.live_bytes;
        live_blocks += other.live_blocks;
        peak_bytes += other.peak_bytes;
        return *this;
    }
};

struct heap_sums {
    std::uint64_t allocations = 0;  ///< calls that returned a block
    std::uint64_t allocated_bytes = 0;
    std::uint64_t frees = 0;          ///< blocks that ended, by realloc too
    std::uint64_t failed = 0;         ///< calls that returned none
    std::uint64_t null_frees = 0;     ///< free(nullptr)
    std::uint64_t unknown_frees = 0;  ///< of addresses that no record gave out
    std::uint64_t reused = 0;         ///< handed out again before the end of the old block was seen
    std::uint64_t unseen_ends = 0;    ///< of these, those whose end was not seen afterwards either
    std::uint64_t short_lived = 0;    ///< blocks freed within the limit
    std::uint64_t short_lived_bytes = 0;
    std::uint64_t inherited_blocks = 0;
    std::uint64_t inherited_bytes = 0;

    std::uint64_t live_bytes = 0;
    std::uint64_t live_blocks = 0;
    std::uint64_t live_inherited_bytes = 0;  ///< of the live ones, those from the parent
    std::uint64_t live_inherited_blocks = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t peak_blocks = 0;  ///< at the moment of peak_bytes
    std::uint64_t peak_time = 0;    ///< nanoseconds; the first moment of that height
};

class ledger {
public:
    static constexpr std::size_t size_classes = 65;

    /// A block that lives at most `short_life` nanoseconds is short-lived.
    explicit ledger(std::uint64_t short_life = 1'000'000) : short_life_(short_life) {}

    /// Calls this with each block that ends, and its address.
    void on_end(std::function<void(std::uint64_t, const block&)> visit) {
        ended_ = std::move(visit);
    }

    /// malloc and its like returned `address` (0: it failed) at `time` nanoseconds.
    void allocated(std::uint64_t time, std::uint32_t thread, std::uint64_t address,
                   std::uint64_t bytes, stack_id stack, std::uint8_t call = 0) {
        if (address == 0) {
            ++sums_.failed;
            return;
        }
        add(time, thread, address, bytes, stack, call);
        settle(time);
    }

    /// free(address) was called.
    void freed(std::uint64_t time, std::uint64_t address) {
        if (address == 0) {
            ++sums_.null_frees;
        } else if (!remove(time, address)) {
            ++sums_.unknown_frees;
        }
        settle(time);
    }

    /// realloc(old, bytes) returned `address`.
    void reallocated(std::uint64_t time, std::uint32_t thread, std::uint64_t old,
                     std::uint64_t address, std::uint64_t bytes, stack_id stack,
                     std::uint8_t call = 0) {
        if (old == 0) return allocated(time, thread, address, bytes, stack, call);
        if (address == 0 && bytes != 0) {
            ++sums_.failed;  // and the old block is what it was
            return;
        }
        const auto found = live_.find(old);
        // The block there now belongs to another thread, and an older one was cut off by it: the
        // call was under way then, and meant the older one.
        const bool meant_older =
            found != live_.end() && found->second.thread != thread && take_reused(old);
        if (!meant_older && !remove(time, old) && !take_reused(old)) ++sums_.unknown_frees;
        if (address != 0) add(time, thread, address, bytes, stack, call);
        settle(time);
    }

    /// Begins as a forked child does: with all that is live in `parent`, and nothing else of it.
    void inherit(const ledger& parent, std::uint64_t time) {
        for (const auto& [address, from] : parent.live_) {
            block copy = from;
            copy.inherited = true;
            live_.emplace(address, copy);
            stack_sums& sums = sums_of(copy.stack);
            sums.live_bytes += copy.bytes;
            ++sums.live_blocks;
        }
        sums_.inherited_blocks = sums_.live_inherited_blocks = sums_.live_blocks =
            parent.sums_.live_blocks;
        sums_.inherited_bytes = sums_.live_inherited_bytes = sums_.live_bytes =
            parent.sums_.live_bytes;
        settle(time);
    }

    [[nodiscard]] const heap_sums& sums() const noexcept { return sums_; }
    [[nodiscard]] const timeline& over_time() const noexcept { return timeline_; }
    /// Of successful calls, by the bits of the size: class 0 is 0 bytes, class n 2^(n-1) to 2^n
    /// - 1.
    [[nodiscard]] const std::array<std::uint64_t, size_classes>& size_counts() const noexcept {
        return size_counts_;
    }
    [[nodiscard]] const std::array<std::uint64_t, size_classes>& size_bytes() const noexcept {
        return size_bytes_;
    }
    /// By stack_id; the shares in the peak are final only now.
    [[nodiscard]] const std::vector<stack_sums>& by_stack() {
        for (std::size_t i = 0; i < stacks_.size(); ++i) note_peak(i);
        return stacks_;
    }
    [[nodiscard]] const std::unordered_map<std::uint64_t, block>& live() const noexcept {
        return live_;
    }

private:
    [[nodiscard]] stack_sums& sums_of(stack_id stack) {
        if (stack >= stacks_.size()) {
            stacks_.resize(stack + std::size_t{1});
            // What is new had nothing at the peaks so far.
            seen_peak_.resize(stacks_.size(), peak_number_);
        }
        note_peak(stack);
        return stacks_[stack];
    }
    /// Before a stack's sums change: if the peak was passed since they last did, what it has now is
    /// what it had then.
    void note_peak(std::size_t stack) {
        if (seen_peak_[stack] == peak_number_) return;
        seen_peak_[stack] = peak_number_;
        stacks_[stack].peak_bytes = stacks_[stack].live_bytes;
    }

    void add(std::uint64_t time, std::uint32_t thread, std::uint64_t address, std::uint64_t bytes,
             stack_id stack, std::uint8_t call) {
        ++sums_.allocations;
        sums_.allocated_bytes += bytes;
        const auto size_class = static_cast<std::size_t>(std::bit_width(bytes));
        ++size_counts_[size_class];
        size_bytes_[size_class] += bytes;
        if (live_.contains(address)) {
            ++sums_.reused;
            ++sums_.unseen_ends;
            ++reused_[address];
            remove(time, address);
        }
        live_[address] = {bytes, time, stack, thread, false, call};
        stack_sums& sums = sums_of(stack);
        sums.bytes += bytes;
        ++sums.calls;
        sums.live_bytes += bytes;
        ++sums.live_blocks;
        sums_.live_bytes += bytes;
        ++sums_.live_blocks;
    }

    bool remove(std::uint64_t time, std::uint64_t address) {
        const auto found = live_.find(address);
        if (found == live_.end()) return false;
        const block gone = found->second;
        live_.erase(found);
        if (ended_) ended_(address, gone);
        ++sums_.frees;
        if (!gone.inherited && time <= gone.born + short_life_) {
            ++sums_.short_lived;
            sums_.short_lived_bytes += gone.bytes;
        }
        stack_sums& sums = sums_of(gone.stack);
        sums.live_bytes -= gone.bytes;
        --sums.live_blocks;
        sums_.live_bytes -= gone.bytes;
        --sums_.live_blocks;
        if (gone.inherited) {
            sums_.live_inherited_bytes -= gone.bytes;
            --sums_.live_inherited_blocks;
        }
        return true;
    }

    /// Was there a block at `address` whose end has not been seen? Then this is it.
    bool take_reused(std::uint64_t address) {
        const auto found = reused_.find(address);
        if (found == reused_.end()) return false;
        if (--found->second == 0) reused_.erase(found);
        --sums_.unseen_ends;
        return true;
    }

    /// After each step: the height of the heap is what it is now.
    void settle(std::uint64_t time) {
        if (sums_.live_bytes > sums_.peak_bytes) {
            sums_.peak_bytes = sums_.live_bytes;
            sums_.peak_blocks = sums_.live_blocks;
            sums_.peak_time = time;
            ++peak_number_;
        }
        timeline_.add(time, sums_.live_bytes);
    }

    std::uint64_t short_life_;
    std::function<void(std::uint64_t, const block&)> ended_;
    std::unordered_map<std::uint64_t, block> live_;
    std::unordered_map<std::uint64_t, std::uint32_t> reused_;
    std::vector<stack_sums> stacks_;
    std::vector<std::uint64_t> seen_peak_;
    std::uint64_t peak_number_ = 0;
    heap_sums sums_;
    std::array<std::uint64_t, size_classes> size_counts_{};
    std::array<std::uint64_t, size_classes> size_bytes_{};
    timeline timeline_;
};

}  // namespace heap
