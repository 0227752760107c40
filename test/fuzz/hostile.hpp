// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A trace that somebody else changes: an input is a list of commands of 8 bytes, of which most
/// store a word somewhere and the others say what is to be done next.
/// @code
///   0 what   a region of the file, or, from `first_action` on, what to do
///   1 how    bits 0-1 width (8, 4, 2, 1 bytes), bits 2-4 where the value comes from, 5-7 position
///            within the word
///   2 where  which word of the region, 16 bits
///   4 value  32 bits
/// @endcode
/// The first byte of an input says which image to begin with.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <fuzz/fuzz.hpp>
#include <fuzz/images.hpp>

namespace trace_ring_test::fuzz {

struct command {
    std::uint8_t what = 0;
    std::uint8_t how = 0;
    std::uint16_t where = 0;
    std::uint32_t value = 0;

    static constexpr std::uint8_t first_action = 0x80;
    [[nodiscard]] bool is_action() const noexcept { return what >= first_action; }
    /// One of `count` actions.
    [[nodiscard]] unsigned action(unsigned count) const noexcept {
        return (what - first_action) % count;
    }
};
static_assert(sizeof(command) == 8);

/// An input taken apart.
struct program {
    explicit program(input from);
    std::uint8_t image = 0;
    std::vector<command> commands;
};
[[nodiscard]] buffer bytes_of(std::uint8_t which, const std::vector<command>& commands);
/// Mutates a program command by command.
void mutate_program(buffer& what, dice& random);
/// Programs: for each image each of the actions in turn, and after them some changes of each
/// region.
[[nodiscard]] std::vector<buffer> program_seeds(std::size_t images, unsigned actions);

/// Stores words into an image that others have mapped: relaxed, as everybody does.
class hostile_writer {
public:
    hostile_writer(void* base, std::uint64_t bytes, const trace_ring::layout::plan& plan) noexcept
        : base_(base), bytes_(bytes), plan_(plan) {}
    void apply(const command& what) const noexcept;
    [[nodiscard]] static bool is_header(const command& what) noexcept;

private:
    [[nodiscard]] std::uint64_t place(const command& what) const noexcept;

    void* base_;
    std::uint64_t bytes_;
    trace_ring::layout::plan plan_;
};

/// A thread that goes through the changes of a program again and again, except those of the header,
/// without which nobody reads on, while others are at work.
class restless {
public:
    restless(const hostile_writer& how, const program& what)
        : thread_([this, how, &what] {
              while (!stop_.load(std::memory_order_relaxed)) {
                  for (const command& next : what.commands) {
                      if (!next.is_action() && !hostile_writer::is_header(next)) how.apply(next);
                  }
              }
          }) {}
    restless(const restless&) = delete;
    restless& operator=(const restless&) = delete;
    ~restless() {
        stop_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// A file in memory, as large as it gets, which others open by a name.
class memory_file {
public:
    memory_file();
    ~memory_file();
    memory_file(const memory_file&) = delete;
    memory_file& operator=(const memory_file&) = delete;

    /// Makes it an image, of which `bytes` are there.
    void fill(const image& from, std::uint64_t bytes = ~std::uint64_t{0});
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] void* base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

private:
    static constexpr std::size_t most = std::size_t{1} << 20;

    int fd_;
    void* base_;
    std::uint64_t bytes_ = 0;
    std::string name_;
};

}  // namespace trace_ring_test::fuzz
