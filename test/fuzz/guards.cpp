// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Each mapping that the library makes gets addresses around it that nothing can be read from or
/// written to: an access outside it is caught, and does not hit an adjacent mapping by chance.
/// Linked with --wrap=mmap64,--wrap=munmap.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

extern "C" {
void* __real_mmap64(void* at, std::size_t bytes, int access, int flags, int fd, off64_t offset);
int __real_munmap(void* at, std::size_t bytes);
void* __wrap_mmap64(void* at, std::size_t bytes, int access, int flags, int fd, off64_t offset);
int __wrap_munmap(void* at, std::size_t bytes);
}

namespace {

#if defined(__x86_64__)
constexpr std::size_t guard = std::size_t{1} << 26;
#else
constexpr std::size_t guard = std::size_t{1} << 20;  // few addresses, or an emulator with a list
#endif
const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

struct guarded_mappings {
    std::mutex lock;
    std::map<void*, std::size_t> bytes;  ///< of the whole, by the address of the part in the middle
};
guarded_mappings& all() {
    static auto& it = *new guarded_mappings;
    return it;
}

}  // namespace

void* __wrap_mmap64(void* at, std::size_t bytes, int access, int flags, int fd, off64_t offset) {
    if (at != nullptr || (flags & MAP_FIXED) != 0) {
        return __real_mmap64(at, bytes, access, flags, fd, offset);
    }
    const std::size_t inner = (bytes + page - 1) / page * page;
    const std::size_t whole = inner + 2 * guard;
    void* const around = __real_mmap64(nullptr, whole, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (around == MAP_FAILED) return around;
    void* const place = static_cast<std::byte*>(around) + guard;
    void* const made = __real_mmap64(place, bytes, access, flags | MAP_FIXED, fd, offset);
    if (made == MAP_FAILED) {
        __real_munmap(around, whole);
        return made;
    }
    const std::lock_guard held(all().lock);
    all().bytes[made] = whole;
    return made;
}

int __wrap_munmap(void* at, std::size_t bytes) {
    std::size_t whole = 0;
    {
        const std::lock_guard held(all().lock);
        const auto found = all().bytes.find(at);
        if (found != all().bytes.end()) {
            whole = found->second;
            all().bytes.erase(found);
        }
    }
    if (whole == 0) return __real_munmap(at, bytes);
    return __real_munmap(static_cast<std::byte*>(at) - guard, whole);
}
