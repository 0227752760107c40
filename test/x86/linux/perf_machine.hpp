// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Machines made of files for perf events, and an event whose memory lies in a file, with the
/// kernel's side of it.

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>

#include <trace_ring/atomic.hpp>
#include <trace_ring/x86/linux/perf_host.hpp>

#include <x86/linux/bts_kernel.hpp>

namespace perf_machine {

namespace fs = std::filesystem;
namespace tr = trace_ring;
namespace x86 = trace_ring::x86;
using trace_ring_test::bts_kernel;

inline constexpr std::size_t page = 4096;
inline constexpr const char* whole = "fpu ds_cpl dtes64 dts sse bts";

/// A folder with what is looked at under /proc and /sys.
class machine {
public:
    machine() {
        std::string name = (fs::temp_directory_path() / "trace_ring.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        root_ = name;
    }
    ~machine() { fs::remove_all(root_); }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;

    void put(const std::string& path, const std::string& text) const {
        fs::create_directories(fs::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    void processor(const std::string& vendor, const std::string& flags) const {
        put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: " + vendor +
                                 "\nmodel name\t: dts bts\n" + "flags\t\t: " + flags +
                                 "\nvmx flags\t: bts\n\nprocessor\t: 1\n");
    }
    void pmu() const { put(x86::intel_bts_type, "8\n"); }
    [[nodiscard]] x86::perf_host host(int error = ENOENT) const {
        x86::perf_host out;
        out.root = root_;
        out.open = [error](::perf_event_attr&, ::pid_t, int) {
            errno = error;
            return -1;
        };
        return out;
    }

private:
    std::string root_;
};

/// A machine that has all there is; one for all tests.
inline const machine& intel() {
    static const machine m;
    static const bool made = [] {
        m.processor("GenuineIntel", whole);
        m.pmu();
        return true;
    }();
    static_cast<void>(made);
    return m;
}

/// An event: its memory in a file, and the kernel's side of it.
struct event {
    explicit event(bool snapshot = false, std::size_t data = page, std::size_t aux = page)
        : fd(::memfd_create("event", 0)), data_bytes(data), aux_bytes(aux) {
        const std::size_t bytes = page + data + aux;
        BOOST_REQUIRE(::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        BOOST_REQUIRE(at != MAP_FAILED);
        all = {static_cast<std::byte*>(at), bytes};
        kernel.emplace(all.subspan(page + data), word(offsetof(::perf_event_mmap_page, aux_head)),
                       word(offsetof(::perf_event_mmap_page, aux_tail)), snapshot);
        kernel->margin = 240;
        kernel->on_aux = [this](std::uint64_t offset, std::uint64_t size, std::uint64_t flags) {
            const std::uint64_t words[] = {offset, size, flags};
            say(PERF_RECORD_AUX, std::as_bytes(std::span(words)));
        };
    }
    ~event() {
        ::munmap(all.data(), all.size());
        ::close(fd);
    }
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    [[nodiscard]] bts_kernel::word& word(std::size_t offset) const {
        return tr::word_at<std::uint64_t>(all.data(), offset);
    }
    /// A record in the ring; lost, if there is no room.
    void say(std::uint32_t type, std::span<const std::byte> rest, std::uint16_t size = 0) {
        auto& head = word(offsetof(::perf_event_mmap_page, data_head));
        const std::uint64_t at = head.load(tr::seq_cst);
        const std::uint64_t tail =
            word(offsetof(::perf_event_mmap_page, data_tail)).load(tr::seq_cst);
        const std::size_t bytes = sizeof(::perf_event_header) + rest.size();
        if (!overwrites && at + bytes - tail > data_bytes) {
            ++unsaid;
            return;
        }
        const ::perf_event_header header{type, 0,
                                         size != 0 ? size : static_cast<std::uint16_t>(bytes)};
        put(at, std::as_bytes(std::span(&header, 1)));
        put(at + sizeof header, rest);
        head.store(at + bytes, tr::seq_cst);
    }
    void put(std::uint64_t at, std::span<const std::byte> what) {
        for (const std::byte one : what)
            all[static_cast<std::size_t>(page + at++ % data_bytes)] = one;
    }
    [[nodiscard]] x86::perf_host host() {
        x86::perf_host out = intel().host();
        out.open = [this](::perf_event_attr& attr, ::pid_t, int) {
            attributes = attr;
            return ::dup(fd);
        };
        out.control = [this](int, unsigned long request) {
            request == PERF_EVENT_IOC_ENABLE ? kernel->enable() : kernel->disable();
            return 0;
        };
        return out;
    }

    int fd;
    std::size_t data_bytes, aux_bytes;
    std::span<std::byte> all;
    std::optional<bts_kernel> kernel;
    ::perf_event_attr attributes{};
    std::uint64_t unsaid = 0;
    bool overwrites = false;  ///< the ring keeps the newest
};

}  // namespace perf_machine
