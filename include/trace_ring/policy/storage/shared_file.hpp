// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A ring in a file that processes of either word size map; it outlives them. The file's space is
/// allocated before it is used: a full disk is an error at set-up (or ends growth, in a ring that
/// grows) and never a SIGBUS. Files are created with mode 0600, never over an existing one, and
/// closed on exec. A memory file (memfd) is the same without a name.
/// @code
/// struct events : trace_ring::policies<trace_ring::storage::shared_file> {};
/// trace_ring::ring<events> ring("events.ring", 1 << 20);  // writes; bytes
/// // in another process:
/// trace_ring::ring<events> seen("events.ring", trace_ring::storage::as_reader);
/// @endcode
/// A process that writes holds a lock on a byte far above the file's end as long as it lives
/// (life_lock), so that others can detect that it lives; children of a fork do not inherit it.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <trace_ring/atomic.hpp>
#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/policy/storage/storage.hpp>

namespace trace_ring::inline v1::storage {

/// Tag: the process attaches to read (and consume), not to write records.
struct as_reader_t {};
inline constexpr as_reader_t as_reader{};  ///< opens to read only

/// Tag: the name of a memory file, which other processes get as a descriptor.
struct in_memory_t {};
inline constexpr in_memory_t in_memory{};  ///< makes a memory file

/// A file or a memory file, shared by processes.
class shared_file {
public:
    using family = trace_ring::family::storage;

    /// Creates a file with `bytes` for records, which may grow to `limit`. Throws setup_error if
    /// the file exists, or the disk has no room; it leaves no new file behind then.
    explicit shared_file(std::string path, std::uint64_t bytes, std::uint64_t limit = 0)
        : name_(std::move(path)), file_(create_file(name_)), fresh_(true) {
        if (const auto fault = create(bytes, limit)) {
            ::unlink(name_.c_str());
            fail_setup(name_, fault);
        }
    }
    /// The same in memory. `name` is only for messages and /proc.
    shared_file(in_memory_t, std::string name, std::uint64_t bytes, std::uint64_t limit = 0)
        : name_(std::move(name)), file_(create_memory_file(name_.c_str())), fresh_(true) {
        fail_setup(name_, create(bytes, limit));
    }

    /// Attaches to an existing ring, to write. Throws setup_error.
    explicit shared_file(std::string path) : shared_file(std::move(path), as_reader) {
        reads_only_ = false;
    }
    /// Attaches to read and to consume.
    shared_file(std::string path, as_reader_t)
        : name_(std::move(path)), file_(open_file(name_)), reads_only_(true) {
        attach();
    }
    /// Attaches by a descriptor, and keeps a duplicate of it.
    explicit shared_file(const file_descriptor& file) : shared_file(file, as_reader) {
        reads_only_ = false;
    }
    /// Maps a file that is already open, to read only.
    shared_file(const file_descriptor& file, as_reader_t)
        : name_("file descriptor " + std::to_string(file.get())),
          file_(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)),
          reads_only_(true) {
        if (!file_) fail_setup(name_, "cannot duplicate the descriptor", errno);
        attach();
    }

    [[nodiscard]] std::byte* data() noexcept { return bytes_.data(); }
    [[nodiscard]] std::uint64_t size() const noexcept {
        // Not cached, because another process may make the file longer.
        const std::uint64_t now = file_bytes(file_.get());
        return now < limit() ? now : limit();
    }
    [[nodiscard]] bool fresh() const noexcept { return fresh_; }

    [[nodiscard]] std::uint64_t limit() const noexcept { return bytes_.size(); }
    [[nodiscard]] bool grow(std::uint64_t bytes) noexcept {
        const std::uint64_t now = size();
        if (bytes <= now) return true;
        // Several writers may do it concurrently: allocating allocated blocks changes nothing.
        return bytes <= limit() && allocate(file_.get(), now, bytes - now) == 0 &&
               bytes_.populate(now, bytes - now) == 0;
    }

    /// Maps at least `bytes`, the size to which the ring in the file may grow. Throws setup_error.
    void reach(std::uint64_t bytes) {
        if (bytes > limit()) bytes_ = mapping::of_file(name_, file_.get(), bytes);
    }
    /// Locks a byte of the writers' for this process; `alone`: the only one. Throws setup_error.
    void own(bool alone) {
        if (reads_only_) return;
        const std::uint64_t bytes_to_try = alone ? 1 : max_writers;
        for (std::uint64_t i = 0; i < bytes_to_try; ++i) {
            lock_result got = life_.take(file_.get(), name_.c_str(), first_lock + i);
            // A plain lock lasts at least as long as the descriptor is open.
            if (got == lock_result::failed) got = lock_byte(file_.get(), first_lock + i);
            if (got == lock_result::taken) return;
            if (got == lock_result::failed) fail_setup(name_, "cannot lock the file", ENOLCK);
        }
        fail_setup(name_, alone ? "another writes into this ring" : "too many write into this ring",
                   EBUSY);
    }
    /// This process attached to read.
    [[nodiscard]] bool reads_only() const noexcept { return reads_only_; }

    /// The file's name.
    [[nodiscard]] std::string name() const { return name_; }
    /// The file, to be passed to another process.
    [[nodiscard]] const file_descriptor& file() const noexcept { return file_; }

private:
    static constexpr std::uint64_t first_lock = std::uint64_t{1} << 62;
    static constexpr std::uint64_t max_writers = 1024;
    static constexpr std::uint64_t most = std::uint64_t{1} << 62;

    [[nodiscard]] setup_fault create(std::uint64_t bytes, std::uint64_t limit) {
        if (bytes > most || limit > most) return {EFBIG, "more bytes than any file has"};
        const std::uint64_t now = control_bytes + bytes;
        const std::uint64_t later = control_bytes + (limit > bytes ? limit : bytes);
        int error = allocate(file_.get(), 0, now);
        if (error == 0) {
            bytes_ = mapping::try_of_file(file_.get(), later);
            if (!bytes_) return mapping::fault(later);
            error = bytes_.populate(0, now);
        }
        if (error != 0) return not_allocated(error, now);
        return {};
    }
    void attach() {
        const std::uint64_t now = file_bytes(file_.get());
        if (now < control_bytes) fail_setup(name_, "too short to be a ring", EINVAL);
        bytes_ = mapping::of_file(name_, file_.get(), now);
    }

    std::string name_;
    file_descriptor file_;
    life_lock life_{};
    mapping bytes_{};
    bool fresh_ = false;
    bool reads_only_ = false;
};
static_assert(growable<shared_file> && shared<shared_file>);

}  // namespace trace_ring::inline v1::storage
