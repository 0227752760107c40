// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// A process that records goes one instruction at a time, and after each its trace is read; and it
/// is killed at many of them, alone and next to a process that continues. What is promised wherever
/// it stops:
/// - what was committed is there or, where sub-buffers were overwritten, counted: so the records
///   read and overwritten are those whose call has returned, and of those begun that have not each
///   one or not. None comes, and goes again.
/// - there is nothing else: no damage, no other loss.
/// - of a record that was not committed, the reader says where it was begun as soon as a byte of it
///   is in the trace; and that this is certain only if it is.
/// - others lose none of their records, and can reclaim what the dead process held.

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <proof.hpp>
#include <recorder/account.hpp>
#include <recorder/holders.hpp>
#include <recorder/scratch.hpp>
#include <recorder/signals.hpp>
#include <shared_board.hpp>
#include <stepping.hpp>
#include <trace_reduce/unfinished.hpp>

BOOST_AUTO_TEST_SUITE(death)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
using test::account_of;
using test::fit_in_512;
using test::put;
using tr::loss_cause;
using tr::sub_buffer_state;

namespace {

constexpr std::uint64_t sub_buffers = 8;
constexpr std::size_t bytes_each = 512;

/// Writers: the thread that is stepped and the others of its process, its signal handler, and the
/// process that continues.
enum writer : std::uint64_t { stepped_one = 2, handler = 3, survivor = 1 };

/// One to a sub-buffer.
struct long_one : tr::event<"numbered", tr::field<"who", std::uint64_t>,
                            tr::field<"n", std::uint64_t>, tr::field<"text", std::string_view>> {};

/// What the child does, by its own account.
class actor {
public:
    actor(tr::recorder& recorder, test::board& told) : recorder_(&recorder), told_(&told) {}

    [[nodiscard]] tr::recorder& recorder() { return *recorder_; }
    /// From here on it is stepped, or from the record on that the board names. By the thread that
    /// is.
    void from_here() {
        begun_ = 0;
        on_stage_ = true;
        if (told_->stop_before.load() == 0) stop();
    }
    void record(writer who = stepped_one) {
        note(who, [&](std::uint64_t n) { return put(*recorder_, who, n); });
    }
    void records(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) record();
    }
    void record_long() {
        note(stepped_one, [&](std::uint64_t n) {
            static const std::string text(bytes_each / 2 - 64, 'x');
            return recorder_->record<long_one>(stepped_one, n, text);
        });
    }
    void reserve() {
        note(stepped_one, [&](std::uint64_t n) {
            auto place = recorder_->reserve<test::numbered>(stepped_one, n);
            return place && place.commit();
        });
    }

private:
    void stop() {
        if (!test::stop_to_be_stepped(*told_)) ::_exit(77);
    }
    template <class Record>
    void note(writer who, const Record& record) {
        if (on_stage_ && who == stepped_one && begun_++ == told_->stop_before.load() &&
            begun_ != 1) {
            stop();
        }
        const std::uint64_t n = told_->begun[who]++;
        if (record(n)) ++told_->recorded[who];
    }

    tr::recorder* recorder_;
    test::board* told_;
    bool on_stage_ = false;
    std::uint64_t begun_ = 0;
};

actor* handling = nullptr;
void record_in_handler(int) {
    handling->record(handler);
}

/// What is stepped through.
struct scene {
    const char* name;
    void (*play)(actor&);
    /// If not 0, the n-th record is interrupted after n times so many instructions.
    std::uint64_t interrupted_by = 0;
};

/// A handler that records between every two instructions of a record: one place in each of `count`.
template <class Record>
void play_interrupted(actor& a, int count, const Record& record) {
    handling = &a;
    const test::signal_handler on(SIGUSR1, record_in_handler);
    record();
    a.from_here();
    for (int i = 0; i < count; ++i) record();
}

constexpr scene scenes[] = {
    {"records of several kinds",
     [](actor& a) {
         a.records(3);
         a.from_here();
         a.records(3);
         a.reserve();
         a.record();
     }},
    {"a sub-buffer change",
     [](actor& a) {
         a.records(fit_in_512 - 1);
         a.from_here();
         a.records(3);
     }},
    {"the end of the ring, and what was there before is overwritten",
     [](actor& a) {
         a.records(sub_buffers * fit_in_512 - 1);
         a.from_here();
         a.records(fit_in_512 + 4);
     }},
    {"long records, a sub-buffer each, round the ring",
     [](actor& a) {
         a.from_here();
         for (std::uint64_t i = 0; i < sub_buffers + 2; ++i) a.record_long();
     }},
    {"a handler in the midst of a record",
     [](actor& a) { play_interrupted(a, 80, [&] { a.record(); }); }, 1},
    {"a handler in the midst of a claim",
     [](actor& a) { play_interrupted(a, 24, [&] { a.record_long(); }); }, 22},
    {"a sub-buffer closed by its thread",
     [](actor& a) {
         a.records(2);
         a.from_here();
         a.record();
         a.recorder().flush_thread();
         a.records(2);
     }},
    {"a thread's first records, and its end",
     [](actor& a) {
         a.records(2);
         std::thread([&] {
             a.from_here();
             a.records(3);
         }).join();
         a.record();
     }},
    {"a thread that goes on where another ended",
     [](actor& a) {
         std::thread([&] { a.records(3); }).join();
         std::thread([&] {
             a.from_here();
             a.records(3);
         }).join();
     }},
};

/// In a file, the child makes it; in memory, it has it by the fork.
tr::recorder_options in(const std::string& file) {
    tr::recorder_options options;
    options.file = file;
    options.size = sub_buffers * bytes_each;
    options.sub_buffer_bytes = bytes_each;
    options.exists = tr::if_exists::attach;
    options.lanes = 16;
    options.processes = 4;
    options.programs = 2;
    options.totals = 1;
    options.dictionary_bytes = 4096;
    return options;
}

/// A file that others write, mapped to be read. Not for a process that records into it.
class mapped_file {
public:
    explicit mapped_file(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct ::stat status {};
        BOOST_REQUIRE((fd >= 0 && ::fstat(fd, &status) == 0));
        size_ = static_cast<std::size_t>(status.st_size);
        at_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
        ::close(fd);
        BOOST_REQUIRE(at_ != MAP_FAILED);
    }
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file() { ::munmap(at_, size_); }
    [[nodiscard]] std::span<const std::byte> bytes() const {
        return {static_cast<const std::byte*>(at_), size_};
    }

private:
    void* at_;
    std::size_t size_ = 0;
};

/// A trace that changes between two looks at it, and whether bytes came behind what is committed.
class watched {
public:
    explicit watched(std::span<const std::byte> trace)
        : now_(trace), before_(trace.begin(), trace.end()) {
        BOOST_REQUIRE(!tr::layout::check_layout(trace.data(), trace.size(), plan_));
    }
    [[nodiscard]] std::span<const std::byte> bytes() const { return now_; }

    /// Whether anything differs from the last time. What does not cannot read otherwise.
    bool changed() {
        if (std::memcmp(now_.data(), before_.data(), now_.size()) == 0) return false;
        for (std::uint64_t slot = 0; slot < sub_buffers; ++slot) {
            const std::size_t at = static_cast<std::size_t>(plan_.bytes_for(slot));
            const std::byte* const now = now_.data() + at;
            const std::byte* const before = before_.data() + at;
            const auto state = tr::stamped::from(word(now, offsetof(tr::sub_buffer_header, state)));
            const auto was =
                tr::stamped::from(word(before, offsetof(tr::sub_buffer_header, state)));
            const std::uint64_t commit = word(now, offsetof(tr::sub_buffer_header, commit));
            const bool active = state.state == static_cast<unsigned>(sub_buffer_state::active);
            // What was taken from the dead was closed by others, and has no end.
            const bool open =
                active || (state.state == static_cast<unsigned>(sub_buffer_state::closed) &&
                           word(now, offsetof(tr::sub_buffer_header, end_time)) == 0);
            if (!open || state.pos != was.pos ||
                word(before, offsetof(tr::sub_buffer_header, commit)) != commit) {
                behind_[slot] = 0;
            }
            const std::uint32_t end = tr::commit_word::offset(static_cast<std::uint32_t>(commit));
            if (active && std::memcmp(now + end, before + end, bytes_each - end) != 0) {
                behind_[slot] = at + end;
            }
        }
        std::memcpy(before_.data(), now_.data(), now_.size());
        return true;
    }
    /// Where, in which sub-buffer, there are bytes of a record that is not committed; 0: nowhere.
    [[nodiscard]] const std::uint64_t (&behind() const)[sub_buffers] { return behind_; }
    /// How many sub-buffers are in a state.
    [[nodiscard]] std::uint64_t count(sub_buffer_state wanted) const {
        std::uint64_t found = 0;
        for (std::uint64_t slot = 0; slot < sub_buffers; ++slot) {
            const auto state = tr::stamped::from(word(before_.data() + plan_.bytes_for(slot),
                                                      offsetof(tr::sub_buffer_header, state)));
            found += state.state == static_cast<unsigned>(wanted) ? 1 : 0;
        }
        return found;
    }
    [[nodiscard]] std::uint64_t overwritten() const {
        std::uint64_t sum = word(before_.data() + plan_.ring,
                                 offsetof(tr::layout::ring_state, overwritten_records));
        for (std::uint64_t lane = 0; lane < plan_.lane_count; ++lane) {
            sum += word(before_.data() + plan_.lanes + lane * sizeof(tr::layout::lane_entry),
                        offsetof(tr::layout::lane_entry, overwrote));
        }
        return sum;
    }

private:
    [[nodiscard]] static std::uint64_t word(const std::byte* from, std::size_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, from + offset, sizeof value);
        return value;
    }

    std::span<const std::byte> now_;
    std::vector<std::byte> before_;
    tr::layout::plan plan_;
    std::uint64_t behind_[sub_buffers] = {};
};

/// What must hold for a trace whenever it is read, by what the child and the survivor report about
/// themselves.
class judge {
public:
    explicit judge(const test::board& told) : told_(&told) {}

    void survivor_recorded(std::uint64_t count) { by_survivor_ += count; }
    void child_died(const watched& memory) {
        left_in_reset_ = memory.count(sub_buffer_state::reset);
    }
    [[nodiscard]] std::uint64_t named() const { return named_; }

    void look(const reduce::trace_file& trace, const watched& memory, pid_t child) {
        const auto seen = account_of(trace);
        BOOST_REQUIRE(seen.strange == 0U);
        const auto lost = seen.lost();
        BOOST_REQUIRE(lost.total() == lost[loss_cause::overwritten]);
        std::uint64_t by_child = 0;
        std::uint64_t by_others = 0;
        for (const auto& [number, lane] : seen.lanes) {
            (lane.pid == static_cast<std::uint32_t>(child) ? by_child : by_others) += lane.total();
        }
        const std::uint64_t begun = told_->begun[stepped_one] + told_->begun[handler];
        const std::uint64_t returned = told_->recorded[stepped_one] + told_->recorded[handler];
        BOOST_REQUIRE(by_child >= returned);
        BOOST_REQUIRE(by_child <= begun);
        BOOST_REQUIRE(by_child >= by_child_);  // none goes again
        by_child_ = by_child;
        BOOST_REQUIRE(by_others == by_survivor_);
        // The ring's own count follows the swap; who dies between the two leaves it short.
        const std::uint64_t uncounted =
            std::max(left_in_reset_, memory.count(sub_buffer_state::reset));
        BOOST_REQUIRE(lost[loss_cause::overwritten] >= memory.overwritten());
        BOOST_REQUIRE(lost[loss_cause::overwritten] <=
                      memory.overwritten() + uncounted * fit_in_512);
        for (const auto who : {stepped_one, handler, survivor}) {
            const auto numbers = seen.of(who);
            const std::uint64_t most = who == survivor ? by_survivor_ : told_->begun[who].load();
            BOOST_REQUIRE(std::is_sorted(numbers.begin(), numbers.end()));
            BOOST_REQUIRE(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
            BOOST_REQUIRE((numbers.empty() || numbers.back() < most));
        }
        if (lost.total() == 0) {
            for (const auto who : {stepped_one, handler}) {
                const auto numbers = seen.of(who);
                BOOST_REQUIRE(numbers.size() >= told_->recorded[who]);
                BOOST_REQUIRE(numbers == test::first(numbers.size()));
            }
        }
        look_behind(trace, memory);
    }

private:
    /// What was begun is named if it left a byte; for certain only if it did.
    void look_behind(const reduce::trace_file& trace, const watched& memory) {
        const auto unfinished = trace_reduce::find_unfinished(trace.about());
        const auto& behind = memory.behind();
        for (const std::uint64_t there : behind) {
            if (there == 0) continue;
            const auto found = std::find_if(unfinished.begin(), unfinished.end(),
                                            [&](const auto& u) { return u.offset == there; });
            BOOST_REQUIRE((found != unfinished.end()));
            BOOST_REQUIRE(found->lane != nullptr);
            ++named_;
        }
        for (const auto& each : unfinished) {
            if (!each.certain) continue;
            BOOST_REQUIRE(std::count(std::begin(behind), std::end(behind), each.offset) == 1);
            BOOST_REQUIRE((each.type == nullptr || each.type->name == "numbered"));
        }
    }

    const test::board* told_;
    std::uint64_t by_child_ = 0;
    std::uint64_t by_survivor_ = 0;
    std::uint64_t left_in_reset_ = 0;
    std::uint64_t named_ = 0;
};

/// An instruction of a scene: of which record it is, and how many come before it there.
struct place {
    std::uint64_t record = 0;  ///< 0: before the first
    std::uint64_t instruction = 0;
};

/// A child on its way through a scene.
class performance {
public:
    performance(const scene& what, const test::board& told, pid_t child)
        : what_(what), told_(told), child_(child), thread_(child, told) {
        first_ = told_.begun[stepped_one].load();
        record_ = begun();
    }

    [[nodiscard]] explicit operator bool() const { return static_cast<bool>(thread_); }
    [[nodiscard]] pid_t pid() const { return child_; }
    [[nodiscard]] test::stepped& thread() { return thread_; }
    /// Records begun so far, of those to be stepped through.
    [[nodiscard]] std::uint64_t begun() const {
        return told_.stop_before.load() + told_.begun[stepped_one].load() - first_;
    }

    /// One instruction; false when the scene is over.
    bool step() {
        if (told_.ready.load() != 0) return false;
        const bool now = what_.interrupted_by != 0 && record_ > told_.stop_before.load() &&
                         since_ == record_ * what_.interrupted_by;
        if (!thread_.step(now ? SIGUSR1 : 0)) return false;
        const bool same = begun() == record_;
        record_ = begun();
        since_ = same ? since_ + 1 : 0;
        return true;
    }
    /// Steps on until `at` is reached, or the scene is over, and calls `each` after each step.
    template <class Each>
    void go_to(const place& at, const Each& each) {
        while ((record_ < at.record || (record_ == at.record && since_ < at.instruction)) && step())
            each();
    }
    /// Instructions since the last record was begun.
    [[nodiscard]] std::uint64_t since() const { return since_; }
    /// When a thread of the child that was stepped has ended, the rest of it comes to its end.
    void see_the_end() const { test::wait_until(told_.ready, 1); }

private:
    const scene& what_;
    const test::board& told_;
    pid_t child_;
    test::stepped thread_;
    std::uint64_t first_ = 0;
    std::uint64_t record_ = 0;
    std::uint64_t since_ = 0;
};

/// Starts the child. `shared`: it has this recorder by the fork, and else makes the file.
pid_t start(const scene& what, const std::string& file, tr::recorder* shared,
            const test::shared_board& told) {
    return test::start_child([&]() -> int {
        std::optional<tr::recorder> own;
        if (shared == nullptr) own.emplace(in(file));
        actor plays(shared == nullptr ? *own : *shared, *told);
        what.play(plays);
        told->ready = 1;
        for (;;) ::pause();
    });
}

/// How long a scene is, as it was when it was seen last, and what of it changes the trace. Whoever
/// dies between two changes leaves the trace as if just after the first: so these are all the
/// deaths that there are.
struct route {
    std::uint64_t instructions = 0;
    std::vector<place> changes;

    void pass(const performance& child, bool changed) {
        ++instructions;
        if (changed) changes.push_back({child.begun(), child.since()});
    }
    /// All, or so many evenly spread over them.
    [[nodiscard]] std::vector<place> deaths(std::uint64_t most) const {
        if (changes.size() <= most) return changes;
        std::vector<place> out;
        for (std::uint64_t i = 0; i < most; ++i)
            out.push_back(changes[static_cast<std::size_t>(changes.size() * i / most)]);
        return out;
    }
};
constexpr std::size_t scene_count = sizeof scenes / sizeof scenes[0];

route routes[scene_count];

/// Sees a scene through, if that was not done before. False: children cannot be traced here.
bool see(std::size_t number) {
    if (routes[number].instructions != 0) return true;
    const test::folder folder;
    const test::shared_board told;
    const scene& what = scenes[number];
    performance child(what, *told, start(what, folder / "a.trace", nullptr, told));
    if (!child) return false;
    const mapped_file file(folder / "a.trace");
    watched memory(file.bytes());
    while (child.step()) {
        routes[number].pass(child, memory.changed());
    }
    return true;
}

void not_traced() {
    static_cast<void>(test::cannot_be_traced());
}

}  // namespace

BOOST_AUTO_TEST_CASE(after_every_instruction_the_trace_tells_what_was_recorded) {
    if (test::cannot_be_stepped()) return;
    std::uint64_t all_steps = 0;
    for (std::size_t i = 0; i < scene_count; ++i) {
        const scene& what = scenes[i];
        BOOST_TEST_CONTEXT(what.name) {
            const test::folder folder;
            const test::shared_board told;
            performance child(what, *told, start(what, folder / "a.trace", nullptr, told));
            if (!child) return not_traced();
            const mapped_file file(folder / "a.trace");
            watched memory(file.bytes());
            judge judge(*told);
            // One more reader goes along all the way.
            const auto followed = reduce::trace_file::from(memory.bytes());
            auto follower = followed.follow();
            std::uint64_t follower_read = 0;
            tr::loss_counts follower_lost;
            const auto follow = [&] {
                while (const auto* item = follower.next()) {
                    if (std::holds_alternative<reduce::record_view>(*item)) ++follower_read;
                    if (const auto* loss = std::get_if<reduce::loss_item>(item)) {
                        follower_lost.add(loss->cause, loss->count);
                    }
                }
            };
            const auto begun = [&] {
                return told->begun[stepped_one].load() + told->begun[handler].load();
            };
            std::uint64_t looks = 0;
            const auto look = [&] {
                judge.look(reduce::trace_file::from(memory.bytes()), memory, child.pid());
                follow();
                BOOST_REQUIRE(follower_read + follower_lost.total() <= begun());
                ++looks;
            };
            look();
            route path;
            while (child.step()) {
                const bool changed = memory.changed();
                if (changed) look();
                path.pass(child, changed);
            }
            child.see_the_end();
            static_cast<void>(memory.changed());
            look();
            BOOST_TEST(told->recorded[stepped_one] + told->recorded[handler] == begun());
            if (what.interrupted_by != 0) BOOST_TEST(told->begun[handler].load() > 15U);
            follower.stop_following();
            follow();
            BOOST_TEST(follower_read + follower_lost.total() == begun());
            BOOST_TEST(follower_lost[loss_cause::damaged] == 0U);
            BOOST_TEST(judge.named() > 0U);
            BOOST_TEST(child.thread().kill() == -SIGKILL);
            BOOST_TEST_MESSAGE(what.name << ": " << path.instructions << " instructions, " << looks
                                         << " changed the trace; in " << judge.named()
                                         << " a record was under way");
            all_steps += path.instructions;
            routes[i] = path;
        }
    }
    BOOST_TEST_MESSAGE(all_steps << " instructions");
    trace_ring_test::proof("death", all_steps, "single-stepped instructions");
}

BOOST_AUTO_TEST_CASE(killed_at_any_instruction_a_process_leaves_all_that_it_recorded) {
    if (test::cannot_be_stepped()) return;
    std::uint64_t deaths = 0;
    std::uint64_t in_flight = 0;
    for (std::size_t i = 0; i < scene_count; ++i) {
        const scene& what = scenes[i];
        if (!see(i)) return not_traced();
        for (const place& at : routes[i].deaths(trace_ring_test::repeats(27))) {
            const test::folder folder;
            const std::string path = folder / "a.trace";
            const test::shared_board told;
            told->stop_before = at.record == 0 ? 0 : at.record - 1;
            performance child(what, *told, start(what, path, nullptr, told));
            if (!child) return not_traced();
            const mapped_file file(path);
            watched memory(file.bytes());
            child.go_to(at, [&] { static_cast<void>(memory.changed()); });
            BOOST_REQUIRE(child.thread().kill() == -SIGKILL);
            static_cast<void>(memory.changed());  // the rest of the scene, if its thread had ended
            const auto trace = reduce::trace_file::open(path);
            BOOST_TEST_CONTEXT(what.name << ", killed in record " << at.record << " after "
                                         << at.instruction << " instructions") {
                BOOST_REQUIRE(!trace.live());
                judge judge(*told);
                judge.look(trace, memory, child.pid());
                in_flight += judge.named();
            }
            ++deaths;
        }
    }
    BOOST_TEST_MESSAGE(deaths << " deaths, " << in_flight << " in the midst of a record");
    BOOST_TEST(deaths >= 200U);
    BOOST_TEST(in_flight > 0U);
    trace_ring_test::proof("death", deaths, "kills at chosen instructions");
}

namespace {

/// A child and, in this process, a recorder that shares its trace and continues.
class pair {
public:
    pair(const scene& what, bool by_fork, const place& from)
        : path_(by_fork ? std::string() : folder_ / "a.trace") {
        told_->stop_before = from.record == 0 ? 0 : from.record - 1;
        if (by_fork) recorder_.emplace(in(path_));
        child_.emplace(what, *told_, start(what, path_, by_fork ? &*recorder_ : nullptr, told_));
        if (!*child_) return;
        if (!by_fork) recorder_.emplace(in(path_));
        memory_.emplace(std::span(recorder_->bytes().first, recorder_->bytes().second));
    }
    [[nodiscard]] performance& child() { return *child_; }
    [[nodiscard]] tr::recorder& recorder() { return *recorder_; }
    [[nodiscard]] watched& memory() { return *memory_; }

    /// The survivor records, too: its own, and each immediately.
    void record() {
        BOOST_REQUIRE(put(*recorder_, survivor, written_));
        ++written_;
        judge_.survivor_recorded(1);
    }
    void look() {
        judge_.look(reduce::trace_file::from(memory_->bytes()), *memory_, child_->pid());
    }
    void kill() {
        BOOST_REQUIRE(child_->thread().kill() == -SIGKILL);
        static_cast<void>(memory_->changed());
        judge_.child_died(*memory_);
        look();
    }
    /// Others want what the dead held, and get it: half of eight may be held then, and the last one
    /// of these is lent, for a record.
    void reclaim_node() {
        recorder_->flush_thread();
        {
            const test::holders all(*recorder_, sub_buffers / 2, 4);
            judge_.survivor_recorded(all.kept());
            BOOST_REQUIRE(all.kept() == sub_buffers / 2);
            constexpr auto lent = tr::layout::lent_of_held(sub_buffers / 2, false);
            BOOST_REQUIRE(recorder_->statistics().held == sub_buffers / 2 - lent);
            static_cast<void>(memory_->changed());
            BOOST_REQUIRE(memory_->count(sub_buffer_state::active) == sub_buffers / 2 - lent);
            BOOST_REQUIRE(memory_->count(sub_buffer_state::reset) == 0U);
        }
        static_cast<void>(memory_->changed());
        look();
        // Every sub-buffer can be used again.
        for (std::uint64_t i = 0; i < 2 * sub_buffers * fit_in_512; ++i) record();
        static_cast<void>(memory_->changed());
        look();
        const auto seen = account_of(*recorder_);
        BOOST_REQUIRE(seen.of(survivor).size() == seen.read());
        BOOST_REQUIRE(seen.read() >= (sub_buffers - 2) * fit_in_512);
    }

private:
    test::folder folder_;
    std::string path_;
    test::shared_board told_;
    std::optional<tr::recorder> recorder_;
    std::optional<performance> child_;
    std::optional<watched> memory_;
    judge judge_{*told_};
    std::uint64_t written_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(who_shares_a_trace_with_one_that_is_stepped_loses_nothing) {
    if (test::cannot_be_stepped()) return;
    for (std::size_t i = 0; i < scene_count; ++i) {
        const scene& what = scenes[i];
        BOOST_TEST_CONTEXT(what.name) {
            pair both(what, i % 2 == 1, {});
            if (!both.child()) return not_traced();
            for (std::uint64_t steps = 1; both.child().step(); ++steps) {
                if (both.memory().changed()) both.look();
                if (steps % 16 == 0) both.record();
            }
            both.child().see_the_end();
            both.kill();
            both.reclaim_node();
        }
    }
}

BOOST_AUTO_TEST_CASE(who_shares_a_trace_with_one_that_dies_at_any_instruction_takes_over) {
    if (test::cannot_be_stepped()) return;
    std::uint64_t deaths = 0;
    std::uint64_t in_reset = 0;
    std::uint64_t active = 0;
    for (std::size_t i = 0; i < scene_count; ++i) {
        const scene& what = scenes[i];
        if (!see(i)) return not_traced();
        for (const place& at : routes[i].deaths(trace_ring_test::repeats(40))) {
            const bool by_fork = deaths++ % 2 == 1;
            BOOST_TEST_CONTEXT(what.name << (by_fork ? " in memory" : "") << ", killed in record "
                                         << at.record << " after " << at.instruction
                                         << " instructions") {
                pair both(what, by_fork, at);
                if (!both.child()) return not_traced();
                std::uint64_t steps = 0;
                both.child().go_to(at, [&] {
                    static_cast<void>(both.memory().changed());
                    if (++steps % 5 == 0) both.record();
                });
                both.kill();
                in_reset += both.memory().count(sub_buffer_state::reset);
                active += both.memory().count(sub_buffer_state::active);
                both.reclaim_node();
            }
        }
    }
    BOOST_TEST_MESSAGE(deaths << " deaths, " << in_reset << " of them in reset");
    BOOST_TEST(deaths >= 200U);
    BOOST_TEST(in_reset > 0U);
    BOOST_TEST(active > 0U);
    trace_ring_test::proof("death", deaths, "kills at chosen instructions");
}

BOOST_AUTO_TEST_SUITE_END()
