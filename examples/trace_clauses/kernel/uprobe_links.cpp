// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "uprobe_links.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "bpf_code.hpp"
#include "bpf_system.hpp"

namespace trace_clauses {

using trace_ring::file_descriptor;

namespace {

constexpr std::uint32_t for_entries = 48;   // BPF_TRACE_UPROBE_MULTI
constexpr std::uint32_t for_sessions = 57;  // BPF_TRACE_UPROBE_SESSION
constexpr int not_supported = 524;          // the kernel's ENOTSUPP

/// The argument of bpf(BPF_LINK_CREATE) for these links, which older headers lack.
struct link_request {
    std::uint32_t program;
    std::uint32_t target;
    std::uint32_t attach_type;
    std::uint32_t flags;
    std::uint64_t path;
    std::uint64_t offsets;
    std::uint64_t semaphores;
    std::uint64_t cookies;
    std::uint32_t count;
    std::uint32_t probe_flags;
    std::uint32_t process;
    std::uint32_t unused;
};
static_assert(sizeof(link_request) == 64 && offsetof(link_request, path) == 16 &&
              offsetof(link_request, count) == 48);

/// Returns the link, or -1 with errno.
[[nodiscard]] file_descriptor try_link(std::uint32_t type, const std::string& file,
                                       std::span<const uprobe_links::place> places, int program) {
    std::vector<std::uint64_t> offsets, semaphores, cookies;
    bool has_semaphores = false;
    for (const auto& each : places) {
        offsets.push_back(each.offset);
        semaphores.push_back(each.semaphore);
        cookies.push_back(each.cookie);
        has_semaphores = has_semaphores || each.semaphore != 0;
    }
    link_request with{};
    with.program = static_cast<std::uint32_t>(program);
    with.attach_type = type;
    with.path = address_of(file.c_str());
    with.offsets = address_of(offsets.data());
    with.semaphores = has_semaphores ? address_of(semaphores.data()) : 0;
    with.cookies = address_of(cookies.data());
    with.count = static_cast<std::uint32_t>(places.size());
    return file_descriptor(
        static_cast<int>(::syscall(SYS_bpf, BPF_LINK_CREATE, &with, sizeof with)));
}

[[nodiscard]] bool links_here(std::uint32_t type) {
    bpf_code code;
    code.move(bpf::r0, 0);
    code.exit();
    try {
        const file_descriptor program =
            load_program(BPF_PROG_TYPE_KPROBE, code, "uprobes by links", type);
        // A kernel that supports these links checks the path, which is not a regular file.
        const uprobe_links::place nowhere{};
        return try_link(type, "/", {&nowhere, 1}, program.get()).get() < 0 && errno == EBADF;
    } catch (const std::runtime_error&) {
        return false;
    }
}

/// A file's bytes, mapped as in a process that runs it.
class mapped_bytes {
public:
    explicit mapped_bytes(const std::string& file) {
        const file_descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat is {};
        if (in.get() < 0 || ::fstat(in.get(), &is) != 0 || is.st_size <= 0) return;
        size_ = static_cast<std::size_t>(is.st_size);
        void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, in.get(), 0);
        if (at != MAP_FAILED) bytes_ = static_cast<const unsigned char*>(at);
    }
    ~mapped_bytes() {
        if (bytes_ != nullptr) ::munmap(const_cast<unsigned char*>(bytes_), size_);
    }
    mapped_bytes(const mapped_bytes&) = delete;
    mapped_bytes& operator=(const mapped_bytes&) = delete;

    [[nodiscard]] bool has_breakpoint(std::uint64_t offset) const noexcept {
        constexpr unsigned char int3 = 0xCC;
        return bytes_ == nullptr || offset >= size_ ||
               *const_cast<const volatile unsigned char*>(bytes_ + offset) == int3;
    }

private:
    std::size_t size_ = 0;
    const unsigned char* bytes_ = nullptr;
};

[[nodiscard]] std::string cause_of(int error) {
    if (error == not_supported || error == EINVAL)
        return "the kernel sets no uprobe at its first instruction";
    return "the kernel sets no uprobe there: " + why_refused(error);
}

}  // namespace

bool uprobe_links::has(kind of) {
    static const bool entries = links_here(for_entries);
    static const bool sessions = links_here(for_sessions);
    return of == kind::entries ? entries : sessions;
}

std::uint32_t uprobe_links::attach_type_of(kind of) noexcept {
    return of == kind::entries ? for_entries : for_sessions;
}

uprobe_links::made uprobe_links::link(kind of, const std::string& file,
                                      std::span<const place> places,
                                      const file_descriptor& program) {
    const mapped_bytes mapped(file);
    made all;
    // If setting all of them fails, halves are tried, because most of the places are valid.
    std::vector<std::pair<std::size_t, std::size_t>> open{{0, places.size()}};
    while (!open.empty()) {
        const auto [begin, end] = open.back();
        open.pop_back();
        file_descriptor made_link =
            try_link(attach_type_of(of), file, places.subspan(begin, end - begin), program.get());
        if (made_link.get() >= 0) {
            for (std::size_t i = begin; i < end; ++i) {
                if (!mapped.has_breakpoint(places[i].offset))
                    all.without.push_back({i, "the kernel has set no uprobe there"});
            }
            all.links.push_back(std::move(made_link));
            continue;
        }
        const int error = errno;
        if (error == EPERM || error == EACCES || error == ENOENT || error == ENOMEM ||
            error == EBADF || error == ENODEV || error == EMFILE) {
            refuse(
                file + ", offset " + std::to_string(places[begin].offset) + ": cannot set a uprobe",
                error);
        }
        if (end - begin == 1) {
            all.without.push_back({begin, cause_of(error)});
            continue;
        }
        const std::size_t half = begin + (end - begin) / 2;
        open.emplace_back(half, end);
        open.emplace_back(begin, half);
    }
    return all;
}

}  // namespace trace_clauses
