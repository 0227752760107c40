// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "mapping_events.hpp"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace trace_clauses {
namespace {

constexpr std::size_t data_pages = 64;

[[nodiscard]] std::size_t page_bytes() noexcept {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Reads a value at `offset` of a record; 0 if the record is too short.
template <class T>
[[nodiscard]] T part(const std::vector<std::byte>& of, std::size_t offset) noexcept {
    T value{};
    if (offset + sizeof value <= of.size()) std::memcpy(&value, of.data() + offset, sizeof value);
    return value;
}

}  // namespace

mapping_events::mapping_events() {
    ::perf_event_attr with{};
    with.size = sizeof with;
    with.type = PERF_TYPE_SOFTWARE;
    with.config = PERF_COUNT_SW_DUMMY;
    with.mmap = with.mmap2 = with.comm = with.comm_exec = with.task = with.build_id = 1;
    with.sample_id_all = 1;
    with.sample_type = PERF_SAMPLE_TIME;
    with.use_clockid = 1;
    with.clockid = CLOCK_MONOTONIC;
    const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
    for (int processor = 0; processor < processors; ++processor) {
        ring one;
        const auto open = [&] {
            return static_cast<int>(
                ::syscall(SYS_perf_event_open, &with, -1, processor, -1, PERF_FLAG_FD_CLOEXEC));
        };
        one.file = open();
        if (one.file < 0 && errno == EINVAL && with.build_id != 0) {
            with.build_id = 0;  // before Linux 5.12
            one.file = open();
        }
        if (one.file < 0) {
            if (errno == ENODEV || errno == ENXIO) continue;  // this processor is offline
            close();
            return;
        }
        void* const memory = ::mmap(nullptr, (1 + data_pages) * page_bytes(),
                                    PROT_READ | PROT_WRITE, MAP_SHARED, one.file, 0);
        one.memory = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
        rings_.push_back(one);
        if (one.memory != nullptr) continue;
        close();
        return;
    }
}

mapping_events::~mapping_events() {
    close();
}

void mapping_events::close() noexcept {
    for (const ring& each : rings_) {
        if (each.memory != nullptr) ::munmap(each.memory, (1 + data_pages) * page_bytes());
        ::close(each.file);
    }
    rings_.clear();
}

void mapping_events::read(const std::function<void(const mapping_event&)>& take) {
    for (const ring& each : rings_) read(each, take);
}

void mapping_events::read(const ring& of, const std::function<void(const mapping_event&)>& take) {
    auto* const control = reinterpret_cast<::perf_event_mmap_page*>(of.memory);
    const std::byte* const data = of.memory + page_bytes();
    const std::size_t size = data_pages * page_bytes();
    // acquire: pairs with the kernel's barrier before it raises data_head
    const std::uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = control->data_tail;
    while (tail != head) {
        ::perf_event_header of_record{};
        // Records are multiples of 8 bytes, so their headers never wrap.
        std::memcpy(&of_record, data + tail % size, sizeof of_record);
        if (of_record.size < sizeof of_record || of_record.size > head - tail) break;
        record_.resize(of_record.size);
        for (std::size_t done = 0; done < record_.size();) {
            const std::size_t at = (tail + done) % size;
            const std::size_t some = std::min(record_.size() - done, size - at);
            std::memcpy(record_.data() + done, data + at, some);
            done += some;
        }
        tail += of_record.size;
        // The time is the last field of each record.
        mapping_event made;
        made.time = part<std::uint64_t>(record_, record_.size() - 8);
        made.process = part<std::int32_t>(record_, 8);
        switch (of_record.type) {
            case PERF_RECORD_MMAP2: {
                constexpr std::size_t protection = 64, name = 72;
                if ((part<std::uint32_t>(record_, protection) & PROT_EXEC) == 0) break;
                made.begin = part<std::uint64_t>(record_, 16);
                made.end = made.begin + part<std::uint64_t>(record_, 24);
                made.offset = part<std::uint64_t>(record_, 32);
                for (std::size_t i = name; i + 8 < record_.size() && record_[i] != std::byte{0};
                     ++i)
                    made.path += static_cast<char>(record_[i]);
                constexpr std::uint16_t has_build_id = 1U << 14;  // ..._MISC_MMAP_BUILD_ID
                if ((of_record.misc & has_build_id) != 0) {
                    constexpr std::size_t length = 40, bytes = 44, most = 20;
                    const std::size_t told =
                        std::min<std::size_t>(part<std::uint8_t>(record_, length), most);
                    for (std::size_t i = 0; i < told; ++i)
                        made.build_id += part<char>(record_, bytes + i);
                } else {
                    made.inode = part<std::uint64_t>(record_, 48);
                }
                // "//anon", "[heap]" and similar names are not files.
                if ((!made.path.starts_with('/') || made.path.starts_with("//")) &&
                    made.path != kernel_code) {
                    made.path.clear();
                }
                take(made);
                break;
            }
            case PERF_RECORD_COMM:
                if ((of_record.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) break;
                made.is = mapping_event::kind::executed;
                take(made);
                break;
            case PERF_RECORD_FORK:
                made.parent = part<std::int32_t>(record_, 12);
                if (made.parent == made.process) break;  // a thread
                made.is = mapping_event::kind::forked;
                take(made);
                break;
            case PERF_RECORD_EXIT: {
                constexpr std::size_t thread = 16;
                if (part<std::int32_t>(record_, thread) != made.process) break;
                made.is = mapping_event::kind::ended;
                take(made);
                break;
            }
            case PERF_RECORD_LOST:
                lost_ += part<std::uint64_t>(record_, 16);
                break;
            default:
                break;
        }
    }
    // release: after this store the kernel may overwrite the records that were read
    __atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

}  // namespace trace_clauses
