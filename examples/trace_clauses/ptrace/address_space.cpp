// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "address_space.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "../../launching/process_memory.hpp"

namespace trace_clauses {
namespace {

constexpr std::byte int3{0xCC};

[[nodiscard]] std::string file_of(::pid_t process, const char* name) {
    return "/proc/" + std::to_string(launching::living_thread_of(process)) + "/" + name;
}

}  // namespace

address_space::address_space(::pid_t process) : process_(process) {
    memory_.reset(::open(file_of(process, "mem").c_str(), O_RDWR | O_CLOEXEC));
    if (memory_.get() < 0) {
        throw std::runtime_error("process " + std::to_string(process) +
                                 ": its memory cannot be opened: " + std::strerror(errno));
    }
}

bool address_space::read(std::uint64_t at, std::span<std::byte> into) const noexcept {
    return ::pread(memory_.get(), into.data(), into.size(), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(into.size());
}
bool address_space::write(std::uint64_t at, std::span<const std::byte> from) const noexcept {
    return ::pwrite(memory_.get(), from.data(), from.size(), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(from.size());
}

std::vector<mapped_file> address_space::files() const {
    std::vector<mapped_file> found;
    std::ifstream maps(file_of(process_, "maps"));
    const std::string root = file_of(process_, "root");
    for (std::string line; std::getline(maps, line);) {
        mapped_file one;
        char rights[5] = {};
        int name = 0;
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
                        &one.begin, &one.end, rights, &one.offset, &name) < 4 ||
            rights[3] != 'p' || static_cast<std::size_t>(name) >= line.size() ||
            line[static_cast<std::size_t>(name)] != '/') {
            continue;
        }
        one.is_code = rights[2] == 'x';
        one.is_data = rights[1] == 'w';
        one.path = root + line.substr(static_cast<std::size_t>(name));
        found.push_back(std::move(one));
    }
    return found;
}

std::uint64_t address_space::auxiliary(std::uint64_t which) const {
    std::ifstream in(file_of(process_, "auxv"), std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    // Pairs of words, the last one of zeros: of 4 bytes if that fits, for then each word of 8 bytes
    // would be two.
    const auto find = [&](std::size_t word) -> std::optional<std::uint64_t> {
        std::optional<std::uint64_t> found;
        for (std::size_t at = 0; at + 2 * word <= all.size(); at += 2 * word) {
            std::uint64_t key = 0;
            std::uint64_t value = 0;
            std::memcpy(&key, &all[at], word);
            std::memcpy(&value, &all[at + word], word);
            if (key > 0xFFFF) return std::nullopt;  // no key is so large
            if (key == which) found = value;
            if (key == 0) break;
        }
        return found;
    };
    if (const auto wide = find(8)) return *wide;
    return find(4).value_or(0);
}

std::uint64_t address_space::entry() {
    if (!entry_) entry_ = auxiliary(AT_ENTRY);
    return *entry_;
}

bool address_space::is_in(std::uint64_t address) const noexcept {
    std::byte now{};
    return read(address, {&now, 1}) && now == int3;
}
void address_space::lower(std::uint64_t address) const noexcept {
    static_cast<void>(write(address, {&int3, 1}));  // it is gone with its process, if it fails
}
void address_space::lift(std::uint64_t address, const breakpoint& of) const noexcept {
    if (is_in(address)) static_cast<void>(write(address, std::span(of.code).first(1)));
}

breakpoint* address_space::insert(std::uint64_t address) {
    if (breakpoint* const known = at(address)) return known;
    breakpoint made;
    // Less at the end of a mapping.
    std::size_t bytes = made.code.size();
    while (bytes != 0 && !read(address, std::span(made.code).first(bytes))) --bytes;
    // An int3 that is there already is the program's own, and stays its own.
    if (bytes == 0 || made.code[0] == int3 || !write(address, {&int3, 1})) return nullptr;
    return &breakpoints_.emplace(address, std::move(made)).first->second;
}

void address_space::raise_semaphore(std::uint64_t address) {
    if (std::find(semaphores_.begin(), semaphores_.end(), address) != semaphores_.end()) return;
    semaphores_.push_back(address);
    count_at_semaphore(address, 1);
}
void address_space::count_at_semaphore(std::uint64_t address, int more) const noexcept {
    std::uint16_t count = 0;
    const auto bytes = std::as_writable_bytes(std::span(&count, 1));
    if (!read(address, bytes)) return;
    count = static_cast<std::uint16_t>(count + more);
    static_cast<void>(write(address, bytes));
}

void address_space::forget_replaced() {
    std::erase_if(breakpoints_, [this](const auto& one) { return !is_in(one.first); });
}

void address_space::restore() noexcept {
    for (const auto& [address, of] : breakpoints_) lift(address, of);
    for (const std::uint64_t each : semaphores_) count_at_semaphore(each, -1);
    breakpoints_.clear();
    semaphores_.clear();
}

}  // namespace trace_clauses
