// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The bytes that a reader reads: a file, by its descriptor, or memory, by relaxed words. Both may
/// be written while they are read, and a file may also be cut short by anyone. So a file is copied
/// into the reader's memory and never mapped: a mapping of a file that shrinks faults, and a
/// library must not install signal handlers. The price is system calls: four for a sub-buffer that
/// is copied alone (`copy`), one for many in a row (`read_rows`).
/// @code
///   trace_ring::reduce::tables about(trace_ring::reduce::source::open("orders.trace"));
/// @endcode

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/mapped_traces.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/reduce/source/extents.hpp>
#include <trace_ring/reduce/source/format_error.hpp>
#include <trace_ring/reduce/source/prefetcher.hpp>

namespace trace_ring::inline v1::reduce {

/// A file, a span of memory, or extents of one of these. Copies share the descriptor, which the
/// last of them closes. Several threads may read at the same time.
class source {
public:
    /// Opens a regular file. Throws std::system_error if it cannot be opened, format_error if it is
    /// no regular file.
    [[nodiscard]] static source open(const std::string& path) {
        const int fd = ::open(
            path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | large_files::open_flag);
        if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
        return adopt(fd, path);
    }

    /// Takes over a descriptor: of a file, a memfd, or anything that can be read at an offset.
    [[nodiscard]] static source adopt(int fd, std::string name) {
        source s;
        s.file_ = std::shared_ptr<const int>(new int(fd), [](const int* held) {
            ::close(*held);
            delete held;
        });
        s.name_ = std::move(name);
        large_files::file_status status{};
        if (large_files::fstat(fd, &status) != 0) {
            throw std::system_error(errno, std::generic_category(), s.name_);
        }
        if (!S_ISREG(status.st_mode)) {
            throw format_error(s.name_, 0,
                               S_ISDIR(status.st_mode)    ? "a directory"
                               : S_ISFIFO(status.st_mode) ? "a pipe, and not a regular file"
                                                          : "not a regular file");
        }
        // A dense file has blocks for its whole size: then its holes are not looked for.
        s.sparse_ = static_cast<std::uint64_t>(status.st_blocks) * 512 <
                    static_cast<std::uint64_t>(status.st_size);
        return s;
    }

    /// Memory that stays readable for as long as this is used; others may write to it. That of a
    /// recorder of this program (`recorder::bytes`) is read as far as it has grown since. Throws
    /// format_error if it is not aligned to 8 bytes.
    [[nodiscard]] static source from(std::span<const std::byte> memory, std::string name) {
        if (reinterpret_cast<std::uintptr_t>(memory.data()) % 8 != 0) {
            throw format_error(std::move(name), 0, "the memory is not aligned to 8 bytes");
        }
        source s;
        s.memory_ = memory;
        s.mapped_ = layout::mapped_traces::find(memory.data());
        s.name_ = std::move(name);
        return s;
    }

    /// The bytes of extents of `whole`, one after the other, as if they were a file: read where
    /// they are, at any alignment, without a copy. They end where `whole` has no more bytes. Memory
    /// must not change while this is used. Throws format_error if 64 bits cannot count the bytes.
    [[nodiscard]] static source of_extents(const source& whole, std::span<const extent> extents,
                                           std::string name) {
        auto parts = std::make_shared<extent_list>();
        for (const auto& each : extents) {
            if (!(whole.parts_ ? whole.parts_->translate(each, *parts) : parts->add(each))) {
                throw format_error(std::move(name), each.offset, "an extent without end");
            }
        }
        source s = whole;
        s.name_ = std::move(name);
        s.parts_ = std::move(parts);
        return s;
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// The descriptor, or -1 for memory.
    [[nodiscard]] int fd() const noexcept { return file_ ? *file_ : -1; }

    /// Whether another process has locked the byte at `offset`; false for memory.
    [[nodiscard]] bool is_locked(std::uint64_t offset) const noexcept {
        large_files::file_lock lock = large_files::lock_region(F_WRLCK, offset);
        return file_ && large_files::fcntl(*file_, large_files::lock_query, &lock) == 0 &&
               lock.l_type != F_UNLCK;
    }
    /// Shares the lock of the byte at `offset` as long as the file is open. Not for memory.
    void share_lock([[maybe_unused]] std::uint64_t offset) const noexcept {
#if defined(F_OFD_SETLK)
        large_files::file_lock lock = large_files::lock_region(F_RDLCK, offset);
        if (file_) static_cast<void>(large_files::fcntl(*file_, F_OFD_SETLK, &lock));
#endif
    }

    /// The present number of bytes: a file grows, and may shrink.
    [[nodiscard]] std::uint64_t size() const noexcept {
        if (parts_) return parts_->size();
        if (!file_) return in_memory();
        large_files::file_status status{};
        return large_files::fstat(*file_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size)
                                                        : 0;
    }

    /// Copies up to `bytes` from `offset`, a multiple of 8, and returns how many it copied.
    [[nodiscard]] std::size_t read(std::uint64_t offset, void* into,
                                   std::size_t bytes) const noexcept {
        if (parts_) return read_parts(offset, into, bytes);
        return file_ ? read_file(offset, into, bytes) : read_memory(offset, into, bytes);
    }

    /// Whether one system call can read bytes in a row into several places: of a whole file.
    [[nodiscard]] bool reads_rows() const noexcept {
        return file_ && !parts_;
    }
    /// Copies the bytes from `offset` on, a multiple of 8, into these places one after the other,
    /// and returns how many it copied. The order in which they are copied is not defined.
    [[nodiscard]] std::size_t read_rows(std::uint64_t offset,
                                        std::span<const iovec> into) const noexcept {
        if (!reads_rows() || offset >> 62 != 0) return 0;
        for (;;) {
            const ssize_t got = large_files::preadv(
                *file_, into.data(), static_cast<int>(into.size()), large_files::at(offset));
            if (got >= 0) return static_cast<std::size_t>(got);
            if (errno != EINTR) return 0;
        }
    }

    /// Memory that will be read soon: at least a line of 64 bytes.
    [[nodiscard]] prefetcher prefetch(std::uint64_t offset, std::size_t bytes,
                                      bool down = false) const noexcept {
        if (parts_ || file_ || !in_memory(offset, bytes)) return {};
        return {memory_.data() + offset, bytes, down};
    }

    /// The first offset from `offset` on that may have bytes other than zero; `offset` itself if
    /// that is not known.
    [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const noexcept {
        if (!sparse_) return offset;
        return parts_ ? next_data_in_parts(offset) : next_data_in_file(offset);
    }

    /// Reads the header of the sub-buffer at `offset`, for a first look: while it is written it may
    /// be a mixture of two, so check every conclusion on a copy. False if the file ends before.
    [[nodiscard]] bool peek(std::uint64_t offset, sub_buffer_copy& out,
                            std::uint32_t& magic) const noexcept {
        std::array<std::uint64_t, sizeof(sub_buffer_header) / 8> words{};
        if (read(offset, words.data(), sizeof words) != sizeof words) return false;
        magic = static_cast<std::uint32_t>(words[0]);
        out.tell(words, static_cast<std::uint32_t>(words[6]));
        return true;
    }

    /// Copies the sub-buffer of `into.size() * 8` bytes at `offset`, by the protocol of
    /// format/sub_buffer.hpp, while its writer may continue to write. `out` is changed only if the
    /// result is `copied`. Trusts nothing; never waits. If the file ends inside, the bytes before
    /// its end are copied and `out.bytes` is less than the commit word says: records are missing.
    [[nodiscard]] copy_result copy(std::uint64_t offset, std::span<std::uint64_t> into,
                                   sub_buffer_copy& out) const noexcept {
        if (!file_ && !parts_) {
            const std::size_t bytes = into.size() * 8;
            if (in_memory(offset, bytes)) {
                return copy_sub_buffer(memory_.data() + offset, into, out);
            }
        }
        return copy_by_reading(offset, into, out);
    }

private:
    /// Bytes of memory that there are now.
    [[nodiscard]] std::uint64_t in_memory() const noexcept {
        const std::uint64_t given = memory_.size();
        return mapped_ == nullptr ? given : (std::max)(given, mapped_->bytes(*mapped_));
    }
    [[nodiscard]] bool in_memory(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        const auto holds = [&](std::uint64_t all) {
            return offset <= all && all - offset >= bytes;
        };
        return holds(memory_.size()) || (mapped_ != nullptr && holds(in_memory()));
    }

    [[nodiscard]] std::size_t read_parts(std::uint64_t offset, void* into,
                                         std::size_t bytes) const noexcept {
        auto* const to = static_cast<std::byte*>(into);
        std::size_t done = 0;
        parts_->visit(offset, bytes, [&](std::uint64_t, const extent& from) {
            const auto most = static_cast<std::size_t>(from.bytes);
            std::size_t got = 0;
            if (file_) {
                got = read_file(from.offset, to + done, most);
            } else if (from.offset < memory_.size()) {
                const auto at = static_cast<std::size_t>(from.offset);
                got = (std::min)(most, memory_.size() - at);
                std::memcpy(to + done, memory_.data() + at, got);
            }
            done += got;
            return got == most;
        });
        return done;
    }

    [[nodiscard]] std::uint64_t next_data_in_file(std::uint64_t offset) const noexcept {
        const std::int64_t at = large_files::lseek(*file_, large_files::at(offset), SEEK_DATA);
        if (at < 0) return errno == ENXIO ? ~std::uint64_t{0} : offset;
        return (std::max)(offset, static_cast<std::uint64_t>(at));
    }
    [[nodiscard]] std::uint64_t next_data_in_parts(std::uint64_t offset) const noexcept {
        std::uint64_t found = ~std::uint64_t{0};
        parts_->visit(offset, ~std::uint64_t{0}, [&](std::uint64_t at, const extent& from) {
            const std::uint64_t skipped = next_data_in_file(from.offset) - from.offset;
            if (skipped < from.bytes) found = at + skipped;
            return skipped >= from.bytes;
        });
        return found;
    }

    /// Reads of a file are ordered by fences between them. Within one read the kernel copies
    /// upwards: where loads keep their order (x86), the bytes after an entry's mark are as new as
    /// the mark; elsewhere an entry that appears at this moment may look damaged once.
    [[nodiscard]] std::size_t read_file(std::uint64_t offset, void* into,
                                        std::size_t bytes) const noexcept {
        if (offset >> 62 != 0) return 0;
        std::size_t done = 0;
        while (done < bytes) {
            const ssize_t got = large_files::pread(*file_, static_cast<std::byte*>(into) + done,
                                                   bytes - done, large_files::at(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;  // the end, or bytes that the device cannot read
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    [[nodiscard]] std::size_t read_memory(std::uint64_t offset, void* into,
                                          std::size_t bytes) const noexcept {
        const std::uint64_t end = in_memory(offset, bytes) ? offset + bytes : in_memory();
        if (offset >= end) return 0;
        const std::size_t from = as_size(offset);
        const std::size_t there = as_size((std::min)(std::uint64_t{bytes}, end - offset));
        auto* to = static_cast<std::byte*>(into);
        std::size_t at = 0;
        // In ascending order, and each acquired: an entry's mark is its first word, so the words
        // after a mark that is there were written before it.
        for (; at + 8 <= there; at += 8) {
            // order: table.read:A pairs with clocks.write:B, dictionary.write:A, dictionary.free:A,
            // dictionary.write:B
            // order: table.read:B pairs with process.enter:B, process.leave:A, process.dead:A,
            // lane.enter:A, lane.newest:A, lane.written:A, lane.written:B, lane.release:A,
            // lane.release:B, lane.release:C, lane.release:D, lane.dead:A, here.written:A,
            // here.release:B, here.release:A, lane.written:C, lane.free:A,
            // process.return:A, here.newest:A
            // order: table.read:C pairs with index.write:B, here.index:A
            // order: table.read:D pairs with layout.publish:A, grow:A
            const auto word = word_at<std::uint64_t>(memory_.data(), from + at).load(acquire);
            std::memcpy(to + at, &word, 8);
        }
        for (; at < there; ++at) {
            // relaxed: the last bytes, less than a word, and so no part of an entry
            to[at] = std::byte{word_at<std::uint8_t>(memory_.data(), from + at).load(relaxed)};
        }
        return there;
    }

    /// The protocol of copy_sub_buffer with reads of the file for loads, each of which is ordered
    /// after the one before: the state; then the commit word (with a closed sub-buffer, together
    /// with the records: it is final); the records; the state again. The kernel copies from the
    /// very pages that writers have mapped, and the fences order its loads, too.
    [[nodiscard]] copy_result copy_by_reading(std::uint64_t offset, std::span<std::uint64_t> into,
                                              sub_buffer_copy& out) const noexcept {
        constexpr std::size_t head = sizeof(sub_buffer_header);
        if (read(offset, into.data(), head) != head) return copy_result::damaged;
        const auto before = stamped::from(into[1]);
        const auto state = static_cast<sub_buffer_state>(before.state);
        if (state == sub_buffer_state::free || state == sub_buffer_state::reset) {
            return copy_result::vacant;
        }
        if (before.state > static_cast<unsigned>(sub_buffer_state::reading)) {
            return copy_result::damaged;
        }
        // order: file.read:A pairs with writer.begin:A, writer.end:A, reclaim.close:A,
        // here.free:A, here.ready:A, here.close:A, here.free:B, reclaim.close:B
        thread_fence(acquire);
        std::size_t got = 0;
        std::uint32_t commit = 0;
        if (state == sub_buffer_state::active) {
            if (read(offset, into.data(), head) != head) return copy_result::damaged;
            commit = static_cast<std::uint32_t>(into[6]);
            // order: file.read:B pairs with writer.commit:A, writer.note:A, here.note:A,
            // here.record:A
            thread_fence(acquire);
            got = read(offset, into.data(),
                       std::min<std::size_t>(commit_word::offset(commit), into.size() * 8));
        } else {
            got = read(offset, into.data(), into.size() * 8);
            commit = static_cast<std::uint32_t>(into[6]);
        }
        // order: file.read:C pairs with claim:A, here.claim:A
        thread_fence(acquire);
        std::uint64_t again = 0;
        if (read(offset + offsetof(sub_buffer_header, state), &again, 8) != 8) {
            return copy_result::damaged;
        }
        const auto after = stamped::from(again);
        if (after.pos != before.pos ||
            after.state == static_cast<unsigned>(sub_buffer_state::reset)) {
            return copy_result::overrun;
        }
        const std::uint32_t bytes = commit_word::offset(commit);
        if (bytes < head || bytes % 8 != 0 || bytes > into.size() * 8 || got < head ||
            !is_sub_buffer_magic(static_cast<std::uint32_t>(into[0]))) {
            return copy_result::damaged;
        }
        // An end time stored after that does not belong to this copy, as in format/sub_buffer.hpp.
        if (state == sub_buffer_state::active) into[5] = 0;
        out.tell(into, commit);
        out.state = before;
        out.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(got / 8 * 8, bytes));
        return copy_result::copied;
    }

    std::shared_ptr<const int> file_{};
    std::span<const std::byte> memory_{};
    const layout::mapped_trace* mapped_ = nullptr;  ///< null: the memory does not grow
    std::string name_{};
    bool sparse_ = false;
    std::shared_ptr<const extent_list> parts_{};  ///< null: all of the file or memory
};

}  // namespace trace_ring::inline v1::reduce
