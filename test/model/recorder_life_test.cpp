// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The recorder's longer life under all interleavings within the bounds: rings that grow, to their
/// limit or until the disk is full, that stop, that are kept for a time, that are set aside for
/// some events; records in handlers, at any step of the interrupted code, and records that a
/// handler leaves for another stack; a process that dies at any step, and the one that reclaims
/// what it held; copies of the whole trace while others record.
///
/// Two threads, a sub-buffer or two each. What the kernel does is done here: fallocate, kill and
/// writing a file are calls of these tests while they explore. Not explored: fork, threads that
/// begin (their lanes are there), and signal fences, for a fibre's steps are in their order.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include <model/fake_time.hpp>
#include <model/recorder_bench.hpp>
#include <trace_ring/reduce/cursor/read_ahead.hpp>
#include <trace_ring/reduce/file/index_rows.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace {

using namespace recorders;
using trace_ring::loss_cause;

/// Where a file cannot grow beyond: the disk is full.
std::uint64_t disk_is_full_at = 0;
/// A process that dies when fibre 0 does.
constexpr std::uint32_t mortal = 0x7E000001;
/// A file that is written while others record.
constexpr int paper = 7'777;
std::vector<std::byte> written_on_paper;
/// Whether a signal interrupts a call that has to do with it: one in three.
unsigned calls_on_paper = 0;
bool is_interrupted() {
    errno = EINTR;
    return ++calls_on_paper % 3 == 0;
}

/// A file that others have mapped and record into while it is read.
int mapped = -1;
const std::byte* mapped_at = nullptr;
/// Copies from it as the kernel may: here downwards.
void read_mapped(void* into, std::size_t bytes, off64_t at) {
    for (std::size_t left = bytes; left != 0;) {
        left -= 8;
        const auto from = static_cast<std::size_t>(at) + left;
        const std::uint64_t word =
            trace_ring::word_at<std::uint64_t>(mapped_at, from).load(trace_ring::relaxed);
        std::memcpy(static_cast<std::byte*>(into) + left, &word, 8);
    }
}

}  // namespace

extern "C" int fallocate64(int fd, int mode, off64_t at, off64_t bytes) {
    if (!model::the_scheduler.running())
        return static_cast<int>(::syscall(SYS_fallocate, fd, mode, at, bytes));
    if (static_cast<std::uint64_t>(at + bytes) <= disk_is_full_at) return 0;
    errno = ENOSPC;
    return -1;
}
extern "C" int kill(pid_t whom, int signal) noexcept {
    if (whom != static_cast<pid_t>(mortal))
        return static_cast<int>(::syscall(SYS_kill, whom, signal));
    if (!model::the_scheduler.is_gone(0)) return 0;
    errno = ESRCH;
    return -1;
}
extern "C" ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
    if (fd != paper) return ::syscall(SYS_pwrite64, fd, from, bytes, at);
    if (is_interrupted()) return -1;
    const auto place = static_cast<std::size_t>(at);
    if (written_on_paper.size() < place + bytes) written_on_paper.resize(place + bytes);
    std::memcpy(written_on_paper.data() + place, from, bytes);
    return static_cast<ssize_t>(bytes);
}
extern "C" ssize_t pread64(int fd, void* into, size_t bytes, off64_t at) {
    if (fd == mapped && bytes % 8 == 0) {
        read_mapped(into, bytes, at);
        return static_cast<ssize_t>(bytes);
    }
    if (fd != paper) return ::syscall(SYS_pread64, fd, into, bytes, at);
    if (is_interrupted()) return -1;
    std::memcpy(into, written_on_paper.data() + at, bytes);
    return static_cast<ssize_t>(bytes);
}
extern "C" int ftruncate64(int fd, off64_t bytes) noexcept {
    if (fd != paper) return static_cast<int>(::syscall(SYS_ftruncate, fd, bytes));
    if (is_interrupted()) return -1;
    written_on_paper.resize(static_cast<std::size_t>(bytes));
    return 0;
}
extern "C" ssize_t preadv64(int fd, const iovec* rows, int count, off64_t at) {
    if (fd != mapped) return ::syscall(SYS_preadv, fd, rows, count, at, 0);
    off64_t end = at;
    for (int i = 0; i < count; ++i) end += static_cast<off64_t>(rows[i].iov_len);
    off64_t from = end;
    for (int i = count; i-- != 0;) {
        from -= static_cast<off64_t>(rows[i].iov_len);
        read_mapped(rows[i].iov_base, rows[i].iov_len, from);
    }
    return end - at;
}

namespace {

/// Both writers have a sub-buffer that is nearly full, and six others are full.
constexpr auto nearly_full = [](auto& on) {
    on.write_as(1, 7);
    on.write_as(2, 7);
};

/// Two threads make the ring grow, by one sub-buffer at a time, from eight to ten. With room for
/// `room` of them.
void growing(model::run& run, full_mode full, const char* name, unsigned room) {
    how as(full);
    as.limit = 10;
    as.memory_file = true;
    auto& on = bench_for(name, as, nearly_full);
    on.begin(run);
    disk_is_full_at = on.lanes().memory().plan().bytes_for(8 + room);
    run.thread([&on] { on.write(1, 5); });
    run.thread([&on] { on.write(2, 5); });
    run.afterwards([&on, full, room] {
        const auto& ring = on.lanes().memory().ring();
        using trace_ring::relaxed;
        // A writer that needs two together, and finds room for one, gets none.
        const auto capacity = ring.capacity.load(relaxed);
        require(capacity <= 8 + room && (room < 2 || capacity == 10),
                "it grew too far, or not as it may");
        // About twelve sub-buffers are requested.
        if (full == full_mode::extend_then_discard)
            require(on.lanes().memory().overwritten_records() == 0,
                    "what came first was overwritten");
        else
            require(on.book.written == on.book.tried, "a record was refused though there is room");
        on.close();
    });
}

void stopping(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::stop, nearly_full);
    on.begin(run);
    run.thread([&on] { on.write(1, 4); });
    run.thread([&on] { on.write(2, 4); });
    run.leave_out(&on.lanes().memory().own_gates(),
                  trace_ring::layout::format_page_bytes);  // they are advice
    run.afterwards([&on] {
        using trace_ring::relaxed;
        // Eight sub-buffers of two. What each has room for is one; who needs more shuts the gates.
        require(on.book.written >= 15, "its beginning is not whole");
        const auto& gates = on.lanes().memory().own_gates().gates;
        for (const auto& gate : gates) {
            require((gate.load(relaxed) & trace_ring::layout::gate_recorder_off) != 0,
                    "a gate is open");
        }
        require(on.lanes().memory().overwritten_records() == 0, "something was overwritten");
        std::uint64_t refused = 0;
        for (std::uint32_t i = 0; i < on.lanes().memory().plan().lane_count; ++i)
            refused += on.lanes().memory().lane(i).refused.load(relaxed);
        require(refused >= 1 && refused <= on.book.tried - on.book.written,
                "what was refused was not counted so");
        on.book.shut = on.book.tried - on.book.written - refused;
        on.close();
    });
}

/// Events with a separate ring, and a flood of others. Three threads of work: each ring is written
/// by both.
void apart_and_others(model::run& run) {
    how as(full_mode::overwrite_oldest);
    as.size = 16;
    as.quota = 8;
    auto& on = bench_for(__PRETTY_FUNCTION__, as, [](auto& b) {
        b.mixed = true;
        b.template write_as<apart>(1, 8);
        b.template write_as<apart>(2, 7);
        b.write_as(1, 7);
        b.write_as(2, 8);
    });
    on.begin(run);
    run.thread([&on] {
        on.write<apart>(1, 1);
        on.write(1, 3);
    });
    run.thread([&on] {
        on.write(2, 3);
        on.write<apart>(2, 1);
    });
    run.afterwards([&on] {
        require(on.book.written == on.book.tried, "a record was refused though there is room");
        std::uint64_t found = 0;
        for (std::size_t i = 0; i < 8; ++i) on.copy(i, found);
        require(found >= 15, "a flood of others reached what is set aside");
        on.book.read.clear();
        on.close();
    });
}

/// Time that advances at each read.
struct passing : ticking {
    [[nodiscard]] static std::uint64_t now() noexcept { return ++asked; }
};
struct kept : trace_ring::policies<passing> {};
constexpr std::uint64_t keep_ticks = 60;

/// What is younger is not overwritten, and what is older is, before a record is refused.
void keeping(model::run& run) {
    how as(full_mode::discard_newest);
    as.keep_for = std::chrono::nanoseconds(keep_ticks);
    auto& on = bench_for<kept>(__PRETTY_FUNCTION__, as, [](auto& b) {
        b.write_as(1, 8);
        b.write_as(2, 7);
        ticking::asked += keep_ticks / 2;
    });
    static std::array<std::uint64_t, sub_buffers> closed_at{};  // the earliest that it can be
    on.begin(run);
    for (std::size_t i = 0; i < sub_buffers; ++i) {
        using trace_ring::relaxed;
        const auto& sub = on.lanes().memory().sub_buffer(i);
        const auto state = trace_ring::stamped::from(sub.state.load(relaxed)).state;
        // Not from the index, by which the recorder itself judges.
        closed_at[i] = state == static_cast<unsigned>(trace_ring::sub_buffer_state::closed)
                           ? sub.end_time.load(relaxed)
                           : ticking::asked;
    }
    const auto write = [&on](unsigned w, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            on.write(w, 1);
            using trace_ring::relaxed;
            for (std::size_t slot = 0; slot < sub_buffers; ++slot) {
                const auto& sub = on.lanes().memory().sub_buffer(slot);
                require(trace_ring::stamped::from(on.peek(sub.state)).pos <= sub_buffers ||
                            ticking::asked >= closed_at[slot] + keep_ticks,
                        "what is to be kept was overwritten");
            }
        }
    };
    run.thread([write] { write(1, 2); });
    run.thread([write] {
        write(2, 1);
        ticking::asked += keep_ticks / 4;
        write(2, 2);
    });
    run.afterwards([&on] { on.close(); });
}

/// The next position of each lane, by the lane's number.
using positions = std::map<std::uint32_t, std::uint64_t>;

/// Reads to the end: the records of each lane are consecutive, as they were written, except those
/// reported as lost with a cause that `may_be` allows.
void read_in_a_row(trace_ring::reduce::cursor& cursor, positions& next,
                   bool (*may_be)(loss_cause)) {
    for (const auto* item = cursor.next(); item != nullptr; item = cursor.next()) {
        if (const auto* loss = std::get_if<trace_ring::reduce::loss_item>(item)) {
            require(may_be(loss->cause), "something was lost for no reason");
            require(loss->lane != nullptr, "something was lost of no lane");
            next[loss->lane->number] += loss->count;
            continue;
        }
        const auto* record = std::get_if<trace_ring::reduce::record_view>(item);
        require(record != nullptr && record->known() && record->fault().empty(),
                "a record cannot be told");
        const auto words = record->field("words");
        const std::uint64_t number = words.at(0).u64();
        require(words.at(24).u64() == ~number, "a torn record was read");
        require(number % of_writer == record->position() &&
                    record->position() == next[record->lane().number]++,
                "the records of a lane are not in a row");
    }
}

/// Whether a trace is whole: the records of each lane in a row from the first ever, and as many as
/// the lane records.
void look_at(std::span<const std::byte> trace) {
    const auto file = trace_ring::reduce::trace_file::from(trace);
    require(file.damages().empty(), "it is damaged");
    auto cursor = file.forward();
    positions next;
    read_in_a_row(cursor, next, [](loss_cause cause) { return cause == loss_cause::overwritten; });
    for (const auto& lane : file.lanes())
        require(next[lane.number] >= lane.written, "a lane tells of more records than there are");
}

/// A handler records, at any step of the thread that it interrupts, concurrently with another
/// thread, or a reader.
void interrupted(model::run& run, const char* name, bool is_read) {
    auto& on = bench_for(name, full_mode::overwrite_oldest, [is_read](auto& b) {
        b.mixed = true;
        b.write_as(1, is_read ? 9 : 10);  // the next finds room, or needs a sub-buffer
        b.write_as(2, 9);
    });
    on.begin(run);
    run.thread([&on] { on.write(1, 1); });
    run.interrupted([&on] { on.write(3, 1); });
    if (is_read) {
        run.thread([&on] {
            std::uint64_t found = 0;
            const auto newest = on.lanes().memory().ring().cursor.load(trace_ring::relaxed);
            for (std::size_t i = 0; i < 2; ++i)
                on.copy((newest + sub_buffers - 1 + i) % sub_buffers, found);
        });
    } else {
        run.thread([&on] { on.write(2, 2); });
    }
    run.afterwards([&on] {
        require(on.book.written == on.book.tried, "a handler or what it interrupted lost a record");
        on.close();
    });
}

/// A handler leaves a record at any step for a stack above, where others are begun.
void leaving(model::run& run, const char* name, unsigned before) {
    auto& on = bench_for(name, full_mode::overwrite_oldest, [before](auto& b) {
        b.mixed = true;
        b.write_as(2, before);
    });
    static bool is_over;
    on.begin(run);
    of_fibre[0] = of_fibre[1];
    is_over = false;
    run.thread([&on] {
        const auto& mark = impl::mark_of(on.own_lane()).value;
        while (!is_over && mark.load(trace_ring::relaxed) <= 0) model::yield();
        on.write(1, 3);
    });
    run.thread([&on] {
        on.write(2, 1);
        is_over = true;
    });
    run.of_one_thread();
    run.afterwards([&on] {
        require(on.book.written == on.book.tried, "a record was refused though there is room");
        on.close();
    });
}

/// Two processes record into one file. One of them dies, at any step of the record that needs its
/// next sub-buffer; the other finds no entry for its lane, as all live, and looks who does.
void dying(model::run& run) {
    how as(full_mode::overwrite_oldest);
    as.file = "model-of-two-processes.trace";
    as.lanes = 2;
    auto& on = bench_for(__PRETTY_FUNCTION__, as, [](auto& b) {
        auto& entry = b.lanes().memory().process(b.lanes().process());
        entry.pid.store(mortal, trace_ring::relaxed);
        entry.has_lock.store(0, trace_ring::relaxed);  // of this one, which lives
        b.write_as(1, 10);
        b.write_as(3, 2);
        static_cast<void>(std::remove("model-of-two-processes.trace"));
    });
    on.begin(run);
    run.thread([&on] { on.write(1, 1); });
    run.dies();
    run.thread([&on] { on.write_second(2, 1); });
    run.afterwards([&on] {
        const std::uint64_t before = on.book.written;
        on.first_is_dead = model::the_scheduler.is_gone(0);
        if (!on.first_is_dead) on.end_as(1);
        // It looks once in 64 times.
        for (unsigned i = 0; i < 65 && on.book.written == before; ++i) {
            enter(1);
            on.write_second(2, 1);
            leave(1);
        }
        require(on.book.written != before, "what the dead held is not to be had");
        on.held_is_a_guess = true;  // as `recount_held` says
        on.close();
    });
}

/// A reader of the whole trace, which is refreshed while others record.
void following(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.write_as(1, 9);
        b.write_as(2, 8);
    });
    static std::unique_ptr<trace_ring::reduce::trace_file> file;
    static std::unique_ptr<trace_ring::reduce::cursor> cursor;
    static positions next;
    on.begin(run);
    next.clear();
    const auto [base, bytes] = on.of().bytes();
    cursor = nullptr;
    file = std::make_unique<trace_ring::reduce::trace_file>(
        trace_ring::reduce::trace_file::from({base, bytes}));
    cursor = std::make_unique<trace_ring::reduce::cursor>(file->follow());
    static const auto read = [] {
        read_in_a_row(*cursor, next, [](loss_cause cause) {
            return cause == loss_cause::overwritten || cause == loss_cause::overrun;
        });
    };
    run.thread([&on] { on.write(1, 3); });
    run.thread([] { read(); });
    run.afterwards([&on] {
        for (unsigned w = 1; w <= 3; ++w) on.end_as(w);
        read();
        cursor->stop_following();
        read();
        std::uint64_t all = 0;
        for (const auto& each : next) all += each.second;
        require(all == on.book.written, "read and lost records are not all that were written");
        on.close();
    });
}

/// A copy of the whole trace is made while others record.
void copying(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.write_as(1, 9);
        b.write_as(2, 8);
    });
    static std::vector<std::uint64_t> space;
    space.assign(on.lanes().memory().plan().sub_buffer_bytes / 8, 0);
    on.begin(run);
    written_on_paper.clear();
    calls_on_paper = 0;
    run.thread([&on] { on.write(1, 3); });
    run.thread([&on] {
        require(
            impl::snapshot_writer(on.lanes().memory(), on.lanes().process(), space, paper).run() ==
                0,
            "it was not written");
    });
    run.afterwards([&on] {
        std::vector<std::uint64_t> image((written_on_paper.size() + 7) / 8);
        std::memcpy(image.data(), written_on_paper.data(), written_on_paper.size());
        look_at(std::as_bytes(std::span<const std::uint64_t>(image)));
        on.close();
    });
}

/// A reader copies what lies in a row by one call for all, while a thread overwrites it. `seen`: it
/// has looked at the commit words before.
void copying_rows(model::run& run, const char* name, bool seen) {
    static std::unique_ptr<trace_ring::reduce::tables> in;
    static std::vector<trace_ring::reduce::planned_copy> what;
    static std::unique_ptr<trace_ring::reduce::batch> copies;
    auto& on = bench_for(name, full_mode::overwrite_oldest, [seen](auto& b) {
        b.write_as(1, 12);
        b.write_as(2, 9);
        b.write_as(1, seen ? 2 : 1);
        const auto& memory = b.lanes().memory();
        in = nullptr;  // which closes the file
        mapped = ::memfd_create("mapped", MFD_CLOEXEC);
        mapped_at = memory.base();
        const auto bytes = memory.plan().bytes_for(sub_buffers);
        require(::ftruncate64(mapped, static_cast<off64_t>(bytes)) == 0, "no memory");
        in = std::make_unique<trace_ring::reduce::tables>(
            trace_ring::reduce::source::adopt(mapped, "mapped"));
        // The next to be claimed, and what comes behind it; or the last, which is not full yet.
        const auto newest = memory.ring().cursor.load(trace_ring::relaxed);
        const std::uint64_t slot = (seen ? newest : newest - 1) % sub_buffers;
        what.clear();
        for (std::uint64_t i = slot; i < slot + 2 && i < sub_buffers; ++i) {
            const auto& sub = memory.sub_buffer(i);
            const auto at = trace_ring::stamped::from(sub.state.load(trace_ring::relaxed)).pos;
            what.push_back({at, i, sub.lane.load(trace_ring::relaxed),
                            seen ? sub.commit.load(trace_ring::relaxed) : 0});
        }
    });
    on.begin(run);
    copies = std::make_unique<trace_ring::reduce::batch>();
    run.thread([&on] { on.write(1, 3); });
    run.thread([&on] {
        copies->fill(*in, what);
        for (std::size_t i = 0; i < what.size(); ++i) {
            auto& one = (*copies)[i];
            if (!one.copied) continue;
            std::uint64_t found = 0;
            require(one.list.head().state.pos == what[i].pos, "another's records were copied");
            on.check(one.list.room(*in), one.list.head(), found);
        }
    });
    run.afterwards([&on] { on.close(); });
}

/// A reader looks at the index while a thread claims.
void looking_up(model::run& run) {
    using trace_ring::relaxed;
    static std::unique_ptr<trace_ring::reduce::tables> in;
    static std::map<trace_ring::position, std::uint64_t> times;  // by what headers say
    auto& on = bench_for<timed>(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.write_as(1, 11);
        b.write_as(2, 9);
        const auto [base, bytes] = b.of().bytes();
        in = std::make_unique<trace_ring::reduce::tables>(
            trace_ring::reduce::source::from({base, bytes}, "memory"));
    });
    on.begin(run);
    times.clear();
    static const auto note = [](auto& b) {
        for (std::size_t slot = 0; slot < sub_buffers; ++slot) {
            const auto& sub = b.lanes().memory().sub_buffer(slot);
            times[trace_ring::stamped::from(b.peek(sub.state)).pos] = b.peek(sub.base_time);
        }
    };
    note(on);
    static std::array<trace_ring::reduce::index_row, sub_buffers> rows;
    rows.fill({});
    run.thread([&on] { on.write(1, 3); });
    run.thread([] {
        trace_ring::reduce::index_rows index;
        index.read(*in, 0, sub_buffers);
        for (std::size_t i = 0; i < sub_buffers; ++i) {
            if (!index.get(i, rows[i])) rows[i] = {};
        }
    });
    run.afterwards([&on] {
        note(on);
        for (const auto& row : rows) {
            require(row.pos == 0 || times.count(row.pos) == 0 || times[row.pos] == row.first_time,
                    "the index tells another's time");
        }
        for (std::size_t slot = 0; slot < sub_buffers; ++slot) {
            const auto& sub = on.lanes().memory().sub_buffer(slot);
            const auto state = trace_ring::stamped::from(on.peek(sub.state)).state;
            require(state != static_cast<unsigned>(trace_ring::sub_buffer_state::closed) ||
                        on.peek(on.lanes().memory().index(slot).last_time) == on.peek(sub.end_time),
                    "the index does not tell when it was closed");
        }
        on.close();
    });
}

/// A thread that has drawn a position sleeps there while another goes round the ring.
void sleeping_a_lap(model::run& run) {
    auto& on = bench_for(__PRETTY_FUNCTION__, full_mode::overwrite_oldest, [](auto& b) {
        b.write_as(1, 10);
        b.write_as(2, 9);
    });
    static std::array<trace_ring::position, sub_buffers> newest{};
    static const auto note = [](auto& b) {
        for (std::size_t slot = 0; slot < sub_buffers; ++slot) {
            const auto word = b.peek(b.lanes().memory().sub_buffer(slot).state);
            const auto now = trace_ring::stamped::from(word).pos;
            require(now >= newest[slot], "what is older has overwritten what is newer");
            newest[slot] = now;
        }
    };
    on.begin(run);
    newest.fill(0);
    run.thread([&on] { on.write(1, 1); });
    run.thread([&on] {
        for (unsigned i = 0; i < 2 * sub_buffers + 4; ++i) {
            on.write(2, 1);
            note(on);
        }
    });
    run.afterwards([&on] {
        note(on);
        on.close();
    });
}

}  // namespace

MODEL_TEST(two_threads_make_a_ring_grow_that_overwrites_then, 6'000'000) {
    growing(run, full_mode::extend_then_overwrite, __PRETTY_FUNCTION__, 2);
}
MODEL_TEST(two_threads_make_a_ring_grow_that_refuses_then, 6'000'000) {
    growing(run, full_mode::extend_then_discard, __PRETTY_FUNCTION__, 2);
}
MODEL_TEST(a_ring_whose_growth_ends_early_wraps_there, 6'000'000) {
    growing(run, full_mode::extend_then_overwrite, __PRETTY_FUNCTION__, 1);
}
MODEL_TEST(a_ring_that_stops_has_all_that_came_before, 6'000'000) {
    stopping(run);
}
MODEL_TEST(what_is_set_aside_for_some_events_others_do_not_reach, 6'000'000) {
    apart_and_others(run);
}
MODEL_TEST(what_is_young_is_kept_and_what_is_old_makes_room, 6'000'000) {
    keeping(run);
}
MODEL_TEST(a_record_that_is_left_for_another_stack_goes_on_in_its_lane, 6'000'000, 1) {
    leaving(run, __PRETTY_FUNCTION__, 9);
}
MODEL_TEST(a_record_that_is_left_where_it_needs_a_sub_buffer_goes_on, 6'000'000, 1) {
    leaving(run, __PRETTY_FUNCTION__, 10);
}
MODEL_TEST(a_process_that_dies_at_any_step_loses_one_record_and_holds_nothing, 6'000'000) {
    dying(run);
}
MODEL_TEST(a_reader_that_follows_gets_or_misses_each_record_once, 6'000'000) {
    following(run);
}
MODEL_TEST(a_copy_that_is_made_while_others_record_is_whole, 6'000'000) {
    copying(run);
}
MODEL_TEST(what_lies_in_a_row_is_copied_whole_if_it_was_looked_at_before, 6'000'000) {
    copying_rows(run, __PRETTY_FUNCTION__, true);
}
MODEL_TEST(what_lies_in_a_row_is_copied_whole_or_not_at_all, 6'000'000) {
    copying_rows(run, __PRETTY_FUNCTION__, false);
}
MODEL_TEST(the_index_tells_the_time_of_what_it_tells_of, 6'000'000) {
    looking_up(run);
}
MODEL_TEST(a_thread_that_sleeps_a_lap_overwrites_nothing_newer, 6'000'000, 1) {
    sleeping_a_lap(run);
}
MODEL_TEST(a_handler_records_at_any_step_of_what_it_interrupts, 12'000'000, 1) {
    interrupted(run, __PRETTY_FUNCTION__, false);
}
MODEL_TEST(a_reader_sees_nothing_torn_of_a_handler_nor_of_what_it_interrupts, 12'000'000, 1) {
    interrupted(run, __PRETTY_FUNCTION__, true);
}
