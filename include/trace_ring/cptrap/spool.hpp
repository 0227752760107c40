// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Writes CPTRAP's spool file: packs records into spool records of 4 KiB (cptrap/spool_record.hpp),
/// and appends each of these by one write. Threads that record never do file input or output: a
/// session drains the ring into the spool. What several threads record is merged by
/// cptrap/collector.hpp.
/// @code
///   trace_ring::cptrap::spool spool("cptrap.file");
///   trace_ring::drain::session session(ring);
///   while (running) spool.take(session);   // the complete records
///   spool.finish(session);                 // all records, and the last spool record
/// @endcode
/// Appended records survive the process, but not a power failure: nothing is forced to the disk. An
/// interrupted write leaves a torn spool record at the end. Readers report it, and a spool that
/// continues the file completes it.
///
/// If the disk is full, `error()` says so until a write succeeds. Records that are refused until
/// then are counted, and a record of this library's type `lost` reports them in the file, before
/// the next record. Records that the ring lost are reported in the same way.
///
/// At a limit that is known in advance (`limit`, or the process's limit of file sizes) the last
/// spool record keeps room for such counts: `flush` writes it again with the records refused since.
/// A full disk is not known in advance, so the file cannot report the records for which the disk
/// had no room: `lost()` and `unwritten()` do.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/ring_record.hpp>
#include <trace_ring/cptrap/spool_record.hpp>
#include <trace_ring/large_files.hpp>
#include <trace_ring/loss.hpp>
#include <trace_ring/policy/storage/mapping.hpp>
#include <trace_ring/record/data_model.hpp>

namespace trace_ring::inline v1::cptrap {

/// Tag: the spool continues an existing file.
struct go_on_t {};
inline constexpr go_on_t go_on{};  ///< continues an existing file

/// Used by one thread at a time. The file has one writer: a spool refuses a file that another
/// spool, of this process or another, has opened to write.
class spool {
public:
    /// The file grows as long as the disk has room.
    static constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;

    /// Creates the file, which may grow to `limit` bytes. Throws setup_error if it exists, or
    /// cannot be created.
    explicit spool(const std::string& path, std::uint64_t limit = no_limit)
        : spool(storage::create_file(path), path, limit) {}
    /// Continues a file. If its last spool record is torn, its whole records are kept and written
    /// again with later ones; the rest counts as one damaged record. Throws setup_error if the file
    /// cannot be a CPTRAP file by its beginning; nothing is overwritten then.
    spool(go_on_t, const std::string& path, std::uint64_t limit = no_limit)
        : spool(storage::open_file(path), path, limit) {}
    /// Owns a descriptor, which is read and written at offsets; `name` is for messages.
    spool(file_descriptor file, std::string name, std::uint64_t limit = no_limit)
        : file_(std::move(file)), name_(std::move(name)), limit_(limit) {
        if (storage::lock_byte(file_.get(), record::spool_lock_offset) ==
            storage::lock_result::held_by_another)
            fail_setup(name_, "another spool writes into this file", EBUSY);
        const std::uint64_t bytes = storage::file_bytes(file_.get());
        require_spool(bytes);
        next_ = bytes / record::spool_record_bytes;
        if (const std::size_t torn = bytes % record::spool_record_bytes; torn != 0) mend(torn);
        look_at_limit();
    }
    spool(const spool&) = delete;
    spool& operator=(const spool&) = delete;
    /// Calls `flush`. Records that cannot be written are lost without a count: call `flush` before,
    /// and check it.
    ~spool() { flush(); }

    /// Takes one CPTRAP record unchanged. False, and the record counts as lost, if the file has no
    /// room (refused), if it is longer than a spool record (too long), or if it is no CPTRAP record
    /// (damaged).
    bool append(std::span<const std::byte> one) noexcept {
        const auto seen = record::view_cptrap(one);
        if (!seen || seen->bytes.size() != one.size() || seen->type == record::cptrap_type::none) {
            return lose(loss_cause::damaged);
        }
        if (one.size() > record::spool_record_bytes) return lose(loss_cause::too_long);
        if (!make_room(one.size())) {
            lose(loss_cause::refused);
            // Complete: it is written immediately, and again by `flush` with the counts of records
            // refused later.
            if (is_last_ && !last_is_written_) write();
            return false;
        }
        page_.add(one);
        ++unwritten_;
        ++records_;
        return true;
    }
    /// Lays out CP interface data and takes the record. Longer data are silently cut to 264 bytes.
    bool append(std::uint16_t code, std::span<const std::byte> data) noexcept {
        std::array<std::byte, record::cptrap_most_bytes> bytes;
        const std::size_t length =
            record::put_cptrap(bytes, record::cptrap_type::cp_interface, code, data);
        return append(std::span<const std::byte>(bytes.data(), length));
    }

    /// Counts records that were lost on their way here: the file has them before its next record.
    /// Always false, as the result of a record that was not taken.
    bool lose(loss_cause cause, std::uint64_t count = 1) noexcept {
        lost_.add(cause, count);
        untold_[static_cast<std::size_t>(cause)] += count;
        return false;
    }

    /// Takes and consumes the complete records in the ring of a drain::session. Returns how many.
    /// Throws what the session throws.
    template <class Session>
    std::uint64_t take(Session& session) {
        const std::uint64_t before = records_;
        session.for_each([&](const auto& portion) { take_portion(session, portion); });
        return records_ - before;
    }
    /// Takes all records, to the last one, and the ring's last losses; then calls `flush`, whose
    /// error is in `error()`. Returns the number of records.
    template <class Session>
    std::uint64_t finish(Session& session) {
        const std::uint64_t before = records_;
        const loss_counts known = session.lost();
        loss_counts told;
        session.finish([&](const auto& portion) {
            told += portion.lost();
            take_portion(session, portion);
        });
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            const auto cause = static_cast<loss_cause>(i);
            lose(cause, session.lost()[cause] - known[cause] - told[cause]);
        }
        flush();
        return records_ - before;
    }

    /// Adds the unreported losses to the current spool record, and appends it to the file; the next
    /// record begins another one. False: it could not be written, see `error()`; it is kept, and
    /// the next write tries again.
    bool flush() noexcept {
        const bool told = std::all_of(untold_.begin(), untold_.end(),
                                      [](std::uint64_t count) { return count == 0; });
        if (told && page_.used() == 0) return true;
        return (is_last_ || make_room(0)) && write();
    }

    /// The errno of the last write; 0 if it succeeded. ENOSPC: no room; EFBIG: the limit that was
    /// given, or the process's own.
    [[nodiscard]] int error() const noexcept { return error_; }
    /// Records taken, with those that are not yet in the file.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
    /// Records taken that are not yet in the file.
    [[nodiscard]] std::uint32_t unwritten() const noexcept { return unwritten_; }
    /// Records lost by the ring or by the spool, by cause.
    [[nodiscard]] const loss_counts& lost() const noexcept { return lost_; }
    /// Spool records in the file.
    [[nodiscard]] std::uint64_t spool_records() const noexcept {
        return next_ + (last_is_written_ ? 1 : 0);
    }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }  ///< the file's name

private:
    static constexpr std::size_t loss_bytes = record::cptrap_header_bytes + 8;
    /// For one count of each cause.
    static constexpr std::size_t kept_room = loss_cause_count * loss_bytes;

    /// Makes room for a record of `bytes`, and puts the unreported losses before it. They are put
    /// in only together with the next record, because otherwise one loss would become many entries.
    /// False: the spool record is full, and cannot be written.
    bool make_room(std::size_t bytes) noexcept {
        if (is_last_ || page_.used() == 0) look_at_limit();
        for (;;) {
            std::size_t losses = 0;
            for (const auto count : untold_) losses += count != 0 ? loss_bytes : 0;
            if (is_beyond_limit_ || (is_last_ && losses + bytes + kept_room > page_.room())) {
                error_ = EFBIG;
                return false;
            }
            const bool fits = losses + bytes <= page_.room();
            if (fits || page_.used() == 0) {  // the record may need a whole spool record
                tell(page_);
                untold_ = {};
            }
            if (fits) return true;
            if (!write()) return false;
            look_at_limit();
        }
    }
    /// Whether the current spool record is the last one that the limits allow, or one too many.
    void look_at_limit() noexcept {
        const std::uint64_t at = next_ * record::spool_record_bytes;
        is_beyond_limit_ = !is_allowed(at);
        is_last_ = !is_beyond_limit_ && !is_allowed(at + record::spool_record_bytes);
    }
    [[nodiscard]] bool is_allowed(std::uint64_t at) const noexcept {
        constexpr std::size_t bytes = record::spool_record_bytes;
        return at <= limit_ && limit_ - at >= bytes && !storage::exceeds_file_limit(at, bytes);
    }
    /// Adds the unreported losses. There is room for them.
    void tell(record::spool_page& to) const noexcept {
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            if (untold_[i] == 0) continue;
            std::array<std::byte, 8> count{};
            record::store_big(count, 0, untold_[i]);
            std::array<std::byte, loss_bytes> one{};
            record::put_cptrap(one, record::cptrap_type::lost, static_cast<std::uint16_t>(i),
                               count);
            to.add(one);
        }
    }
    bool write() noexcept {
        record::spool_page last;  // with what `page_` does not have yet
        if (is_last_) {
            last = page_;
            tell(last);
        }
        const record::spool_page& page = is_last_ ? last : page_;
        if (page.used() == 0) return true;
        constexpr std::size_t bytes = record::spool_record_bytes;
        const std::uint64_t at = next_ * bytes;
        if (!is_allowed(at)) {
            error_ = EFBIG;
            return false;
        }
        ssize_t written = 0;
        do {
            written =
                large_files::pwrite(file_.get(), page.bytes().data(), bytes, large_files::at(at));
        } while (written < 0 && errno == EINTR);
        if (written != static_cast<ssize_t>(bytes)) {
            error_ = written < 0 ? errno : ENOSPC;
            // Remove the partly written spool record. If that fails, readers report it as torn.
            if (written > 0) {
                static_cast<void>(large_files::ftruncate(file_.get(), large_files::at(at)) == 0);
            }
            return false;
        }
        unwritten_ = 0;
        last_is_written_ = is_last_;
        if (is_last_) return true;  // `error_` is the error of the refused write
        error_ = 0;
        ++next_;
        page_.clear();
        return true;
    }

    template <class Session, class Portion>
    void take_portion(Session& session, const Portion& portion) {
        for (std::size_t i = 0; i < loss_cause_count; ++i) {
            const auto cause = static_cast<loss_cause>(i);
            lose(cause, portion.lost()[cause]);
        }
        const std::uint64_t there =
            session.source().visit(portion, [this](const auto& one) { this->take_record(one); });
        if (there < portion.records()) lose(loss_cause::damaged, portion.records() - there);
    }
    /// Takes the payload of a ring's record: a CPTRAP record, and less than 8 zeros.
    template <class Record>
    void take_record(const Record& one) noexcept {
        const auto seen = record::see_cptrap(one.id, std::as_bytes(one.payload));
        seen ? append(seen->bytes) : lose(loss_cause::damaged);
    }

    /// Refuses a file that begins with something else.
    void require_spool(std::uint64_t size) {
        std::array<std::byte, record::spool_record_bytes> bytes;
        const auto wanted = static_cast<std::size_t>((std::min<std::uint64_t>)(size, bytes.size()));
        if (wanted == 0) return;
        const ssize_t got = large_files::pread(file_.get(), bytes.data(), wanted, 0);
        if (got < 0) fail_setup(name_, "cannot read the first spool record", errno);
        const auto stop = record::walk_spool(
            std::span<const std::byte>(bytes.data(), static_cast<std::size_t>(got)),
            record::cptrap_lengths{}, [](std::size_t, const record::cptrap_view&) {});
        if (stop.offset == 0 && stop.why != record::spool_end::whole &&
            stop.why != record::spool_end::cut) {
            fail_setup(name_, "offset 0: it does not begin as a CPTRAP file", EINVAL);
        }
    }
    /// Moves the whole records of a torn last spool record to the current one.
    void mend(std::size_t torn) {
        std::array<std::byte, record::spool_record_bytes> bytes;
        const ssize_t got = large_files::pread(file_.get(), bytes.data(), torn,
                                               large_files::at(next_ * record::spool_record_bytes));
        if (got != static_cast<ssize_t>(torn))
            fail_setup(name_, "cannot read the last spool record", got < 0 ? errno : EIO);
        const std::span<const std::byte> there(bytes.data(), torn);
        const auto stop = record::walk_spool(
            there, record::cptrap_lengths{},
            [this](std::size_t, const record::cptrap_view& one) { page_.add(one.bytes); });
        const bool ended = stop.why == record::spool_end::cut &&
                           (stop.offset == torn || there[stop.offset] == std::byte{0});
        unwritten_ = page_.records();
        if (!ended) lose(loss_cause::damaged);
    }

    file_descriptor file_;
    std::string name_;
    std::uint64_t limit_;
    std::uint64_t next_ = 0;  ///< number of the current spool record
    record::spool_page page_{};
    int error_ = 0;
    std::uint32_t unwritten_ = 0;
    std::uint64_t records_ = 0;
    loss_counts lost_{};
    std::array<std::uint64_t, loss_cause_count> untold_{};
    bool is_last_ = false;          ///< the limits allow the current spool record, and no other
    bool is_beyond_limit_ = false;  ///< they do not allow the current one
    bool last_is_written_ = false;  ///< the current one is in the file, as far as it was filled
};

}  // namespace trace_ring::inline v1::cptrap
