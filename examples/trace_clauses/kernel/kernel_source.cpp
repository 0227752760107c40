// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "kernel_source.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "../firings/asked_values.hpp"
#include "../firings/kept_words.hpp"
#include "bpf_system.hpp"
#include "firing_code.hpp"
#include "first_instruction.hpp"
#include "uprobe_links.hpp"

namespace trace_clauses {

using trace_ring::file_descriptor;

namespace {

/// Reads a number after `prefix` from a file of the system. Returns `otherwise` if there is none.
[[nodiscard]] unsigned number_in(const std::string& file, const std::string& prefix,
                                 unsigned otherwise) {
    std::ifstream in(file);
    std::string text;
    if (!(in >> text) || text.rfind(prefix, 0) != 0) return otherwise;
    try {
        return static_cast<unsigned>(std::stoul(text.substr(prefix.size())));
    } catch (const std::exception&) {
        return otherwise;
    }
}
/// "0-3,6": the size of an array with an element for each processor.
[[nodiscard]] unsigned possible_processors() {
    std::ifstream in("/sys/devices/system/cpu/possible");
    std::string text;
    in >> text;
    const std::size_t last = text.find_last_of("-,");
    try {
        return static_cast<unsigned>(
                   std::stoul(last == std::string::npos ? text : text.substr(last + 1))) +
               1;
    } catch (const std::exception&) {
        return static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_CONF));
    }
}

/// The first instruction is also the return. The kernel does not define which of two uprobes there
/// runs first.
[[nodiscard]] bool returns_at_entry(const attach_point& at) noexcept {
    return at.returns.size() == 1 && at.returns[0] == at.offset;
}
[[nodiscard]] std::string where_of(const attach_point& at) {
    return at.file + ", offset " + std::to_string(at.offset);
}

}  // namespace

kernel_source::kernel_source(const point::clauses& session, std::size_t ring_bytes,
                             std::uint32_t stack_bytes)
    : session_(session),
      ring_bytes_(ring_bytes),
      stack_bytes_(stack_bytes),
      page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      processors_(possible_processors()) {
    ring_ = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, static_cast<std::uint32_t>(ring_bytes));
    counters_ = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(clause_counts),
                         static_cast<std::uint32_t>(session.size() + 1));
    void* const ours = ::mmap(nullptr, page_, PROT_READ | PROT_WRITE, MAP_SHARED, ring_.get(), 0);
    if (ours == MAP_FAILED)
        throw std::runtime_error("cannot map the kernel's ring: " + why_refused(errno));
    consumer_ = static_cast<std::byte*>(ours);
    void* const theirs = ::mmap(nullptr, page_ + 2 * ring_bytes_, PROT_READ, MAP_SHARED,
                                ring_.get(), static_cast<off_t>(page_));
    if (theirs == MAP_FAILED) {
        const int error = errno;
        ::munmap(consumer_, page_);
        throw std::runtime_error("cannot map the kernel's ring: " + why_refused(error));
    }
    producer_ = static_cast<std::byte*>(theirs);
    // Maps are permitted more often than programs. This reports a missing permission before
    // anything is attached.
    static_cast<void>(load_program(BPF_PROG_TYPE_KPROBE, code_for({}, {}), "the kernel's BPF"));
}

kernel_source::~kernel_source() {
    detach();
    if (producer_ != nullptr) ::munmap(producer_, page_ + 2 * ring_bytes_);
    if (consumer_ != nullptr) ::munmap(consumer_, page_);
}

void kernel_source::follow_children(::pid_t process) {
    if (followed_ == nullptr) followed_ = std::make_unique<followed_processes>();
    followed_->add(process);
}

process_filter kernel_source::filter_of(const attach_point& at) const noexcept {
    return {at.process, followed_ == nullptr ? -1 : followed_->map()};
}

kernel_maps kernel_source::maps_for(const attach_point& at) const noexcept {
    return {ring_.get(),
            counters_.get(),
            static_cast<std::uint32_t>(session_.size()),
            static_cast<std::uint32_t>(ring_bytes_ / 8),
            filter_of(at),
            stack_bytes_};
}
bpf_code kernel_source::code_for(const attach_point& at,
                                 std::span<const std::uint32_t> clauses) const {
    return translate(session_, clauses, at.part, maps_for(at), {.call_mode = at.mode});
}

void kernel_source::attach(const attach_point& at, std::span<const std::uint32_t> clauses,
                           std::optional<std::uint32_t> entry) {
    if (is_system_call(at.part)) return attach_system_call(at, clauses);
    if (at.part == function_part::returning) return attach_returns(at, clauses, entry);
    if (at.part == function_part::exit) {
        attach_point begin = at;
        begin.part = function_part::entry;
        std::optional<bpf_code> counting;
        try {
            counting = count_unseen_returns(clauses, maps_for(at));
        } catch (const std::runtime_error&) {
            may_miss_returns_ = true;
        }
        if (counting) attach_uprobe(begin, *counting);
    }
    attach_uprobe(at, code_for(at, clauses));
}

void kernel_source::attach_returns(const attach_point& at, std::span<const std::uint32_t> clauses,
                                   std::optional<std::uint32_t> entry) {
    const kernel_maps maps = maps_for(at);
    const int notes = notes_for(clauses, entry);
    const translation how{
        .entered = notes, .entry = entry, .notes_here = notes >= 0 && returns_at_entry(at)};
    if (notes >= 0 && !how.notes_here) {
        attach_point begin = at;
        begin.part = function_part::entry;
        attach_uprobe(begin, note_entries(session_, clauses, maps, how));
    }
    const bpf_code code = translate(session_, clauses, at.part, maps, how);
    attach_point place = at;
    for (const std::uint64_t each : at.returns) {
        place.offset = each;
        attach_uprobe(place, code);
    }
}

namespace {

[[nodiscard]] bool is_by_link(const attach_point& at) {
    // A 64-bit process can also map a 32-bit file. The kernel would interpret its instructions as
    // 64-bit ones.
    if (is_system_call(at.part) || at.mode != program_mode::lp64) return false;
    return uprobe_links::has(at.part == function_part::exit ? uprobe_links::kind::sessions
                                                            : uprobe_links::kind::entries);
}
/// Returns why a uprobe must not be set at this place, or null if the kernel can decide.
[[nodiscard]] const char* refusal_of(const file_descriptor& file, const attach_point& at) {
    std::array<std::byte, 20> code{};
    if (file.get() < 0) return nullptr;
    const ssize_t got =
        ::pread(file.get(), code.data(), code.size(), static_cast<off_t>(at.offset));
    return no_uprobe_at(std::span(code).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0))),
                        at.mode == program_mode::lp64);
}

}  // namespace

std::vector<point_left_out> kernel_source::attach(std::span<const planned_point> points) {
    std::vector<point_left_out> without;
    // Points with the same code share one program, which receives their numbers.
    std::map<std::string, std::vector<linked_clause>> together;
    std::map<std::string, file_descriptor> files;
    // Must exist before the first exit is attached, because the entries fill it.
    times_system_calls_ =
        times_system_calls_ ||
        std::any_of(points.begin(), points.end(), [this](const planned_point& one) {
            return one.at.part == function_part::system_call_exit &&
                   asks_elapsed(session_, one.clauses);
        });
    for (std::size_t i = 0; i < points.size(); ++i) {
        const planned_point& one = points[i];
        const bool asks_entry = one.entry || asks_elapsed(session_, one.clauses);
        const bool is_at_entry = one.at.part != function_part::returning || asks_entry;
        if (!is_system_call(one.at.part) && is_at_entry) {
            const auto [file, is_new] = files.try_emplace(one.at.file);
            if (is_new) file->second.reset(::open(one.at.file.c_str(), O_RDONLY | O_CLOEXEC));
            if (const char* const why = refusal_of(file->second, one.at)) {
                without.push_back({i, why});
                continue;
            }
        }
        if (is_by_link(one.at)) {
            for (const std::uint32_t each : one.clauses)
                together[code_key(one, each)].push_back({i, each});
            continue;
        }
        if (one.at.part == function_part::exit && asks_entry) {
            without.push_back({i, std::string("'elapsed' and arguments at this exit need Linux "
                                              "6.13 and a program of 64 bits, as ") +
                                      one.returns_elsewhere + " (--source ptrace needs neither)"});
            continue;
        }
        attach(one.at, one.clauses, one.entry);
    }
    for (auto& [key, which] : together) attach_links(points, std::move(which), without);
    std::sort(without.begin(), without.end(),
              [](const point_left_out& a, const point_left_out& b) { return a.point < b.point; });
    without.erase(std::unique(without.begin(), without.end(),
                              [](const point_left_out& a, const point_left_out& b) {
                                  return a.point == b.point;
                              }),
                  without.end());
    return without;
}

std::string kernel_source::code_key(const planned_point& of, std::uint32_t clause) const {
    const attach_point& at = of.at;
    std::string key = at.file + '\n' + std::to_string(static_cast<unsigned>(at.part)) +
                      (returns_at_entry(at) ? "r\n" : "\n") + std::to_string(at.process) + '\n';
    const auto add = [&](std::uint32_t number) {
        for (const program_mode mode : {program_mode::lp64, program_mode::ilp32}) {
            const point::clauses::stream& code = session_.stream_of(number, mode);
            key += std::to_string(code.output_bytes) + ' ';
            for (const auto& part : {session_.at(code.predicate), session_.at(code.action)}) {
                key += std::to_string(part.size()) + ' ';
                key.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
            }
        }
    };
    add(clause);
    if (of.entry) add(*of.entry);
    return key;
}

void kernel_source::attach_links(std::span<const planned_point> points,
                                 std::vector<linked_clause> which,
                                 std::vector<point_left_out>& without) {
    const planned_point& first = points[which.front().point];
    const std::span clause(&which.front().clause, 1);
    const function_part part = first.at.part;
    const bool is_session = part == function_part::exit;
    const auto kind = is_session ? uprobe_links::kind::sessions : uprobe_links::kind::entries;
    const kernel_maps maps = maps_for(first.at);
    const int notes = is_function_exit(part) ? notes_for(clause, first.entry) : -1;
    const translation how{.by_cookie = true,
                          .is_session = is_session,
                          .entered = notes,
                          .entry = first.entry,
                          .notes_here = notes >= 0 && returns_at_entry(first.at)};
    if (part == function_part::returning && notes >= 0 && !how.notes_here)
        link_entries(points, which, maps, how, without);
    if (which.empty()) return;
    const bpf_code code = translate(session_, clause, part, maps, how);
    const file_descriptor program = load_program(BPF_PROG_TYPE_KPROBE, code, where_of(first.at),
                                                 uprobe_links::attach_type_of(kind));
    std::vector<uprobe_links::place> places;
    std::vector<std::size_t> point_of;
    for (const linked_clause& each : which) {
        const attach_point& at = points[each.point].at;
        const auto add = [&](std::uint64_t offset) {
            places.push_back({offset, at.semaphore, each.clause});
            point_of.push_back(each.point);
        };
        if (part == function_part::returning) {
            for (const std::uint64_t one : at.returns) add(one);
        } else {
            add(at.offset);
        }
    }
    if (is_session && !describes_unseen_returns()) may_miss_returns_ = true;
    uprobe_links::made made = uprobe_links::link(kind, first.at.file, places, program);
    for (auto& each : made.links) attached_.push_back(std::move(each));
    for (auto& each : made.without)
        without.push_back({point_of[each.place], std::move(each.cause)});
}

void kernel_source::link_entries(std::span<const planned_point> points,
                                 std::vector<linked_clause>& which, const kernel_maps& maps,
                                 const translation& how, std::vector<point_left_out>& without) {
    const attach_point& first = points[which.front().point].at;
    const auto kind = uprobe_links::kind::entries;
    const file_descriptor program = load_program(
        BPF_PROG_TYPE_KPROBE, note_entries(session_, {&which.front().clause, 1}, maps, how),
        where_of(first), uprobe_links::attach_type_of(kind));
    std::vector<uprobe_links::place> places;
    for (const linked_clause& each : which)
        places.push_back({points[each.point].at.offset, 0, each.clause});
    uprobe_links::made made = uprobe_links::link(kind, first.file, places, program);
    for (auto& each : made.links) attached_.push_back(std::move(each));
    for (auto each = made.without.rbegin(); each != made.without.rend(); ++each) {
        without.push_back({which[each->place].point, std::move(each->cause)});
        which.erase(which.begin() + static_cast<std::ptrdiff_t>(each->place));
    }
}

int kernel_source::notes_in(file_descriptor& map, std::size_t bytes) {
    constexpr std::uint32_t most = 65536;  // maximum number of concurrent calls, over all threads
    if (map.get() < 0) {
        map = make_map(BPF_MAP_TYPE_LRU_HASH, firing_code::entry_bytes,
                       static_cast<std::uint32_t>(bytes), most);
    }
    return map.get();
}

int kernel_source::notes_for(std::span<const std::uint32_t> clauses,
                             std::optional<std::uint32_t> entry) {
    constexpr std::size_t time = 8;
    if (entry) return notes_in(kept_, time + sizeof(kept_words));
    return asks_elapsed(session_, clauses) ? notes_in(entered_, time) : -1;
}

void kernel_source::attach_system_call(const attach_point& at,
                                       std::span<const std::uint32_t> clauses) {
    const std::string where = "system call " + std::to_string(at.offset);
    const auto number = static_cast<std::uint32_t>(at.offset);
    const int notes = times_system_calls_ ? notes_in(entered_, 8) : -1;
    const bool times =
        at.part == function_part::system_call_exit && asks_elapsed(session_, clauses);
    const auto dispatch_of = [&](function_part part) -> system_call_dispatch& {
        return system_calls_.try_emplace({part, at.process}, part, filter_of(at), notes)
            .first->second;
    };
    if (times) static_cast<void>(dispatch_of(function_part::system_call));
    const bpf_code code =
        translate(session_, clauses, at.part, maps_for(at),
                  {.call_mode = at.mode, .call_number = number, .entered = times ? notes : -1});
    const file_descriptor program = load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, code, where);
    dispatch_of(at.part).set(at.mode, number, program);
}

void kernel_source::attach_uprobe(const attach_point& at, const bpf_code& code) {
    const std::string where = where_of(at);
    static const std::string device = "/sys/bus/event_source/devices/uprobe/";
    static const unsigned type = number_in(device + "type", "", 0);
    if (type == 0) throw kernel_refusal(where + ": this kernel has no uprobes");
    const file_descriptor program = load_program(BPF_PROG_TYPE_KPROBE, code, where);
    ::perf_event_attr with{};
    with.size = sizeof with;
    with.type = type;
    with.uprobe_path = address_of(at.file.c_str());
    with.probe_offset = at.offset;
    with.sample_period = 1;
    if (at.part == function_part::exit)
        with.config |= std::uint64_t{1} << number_in(device + "format/retprobe", "config:", 0);
    if (at.semaphore != 0) {
        with.config |= at.semaphore << number_in(device + "format/ref_ctr_offset", "config:", 32);
    }
    // An event of one process belongs to its first thread, and ends with that thread. So this event
    // is for all processes. The kernel requires an online processor here, but runs the program on
    // every processor.
    const long fd = ::syscall(SYS_perf_event_open, &with, -1, std::max(::sched_getcpu(), 0), -1,
                              PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) refuse(where + ": cannot set a uprobe", errno);
    file_descriptor event(static_cast<int>(fd));
    if (::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program.get()) != 0 ||
        ::ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
        throw std::runtime_error(where +
                                 ": cannot attach a program to a uprobe: " + why_refused(errno));
    }
    attached_.push_back(std::move(event));
}

void kernel_source::detach() noexcept {
    attached_.clear();
    system_calls_.clear();
    followed_.reset();
}

bool kernel_source::wait(int milliseconds) const noexcept {
    ::pollfd one{ring_.get(), POLLIN, 0};
    return ::poll(&one, 1, milliseconds) > 0;
}

bool kernel_source::next(std::span<const std::byte>& data) noexcept {
    const auto word = [](const std::byte* at) {
        return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
    };
    const std::byte* const records = producer_ + page_;
    while (position_ < word(producer_)) {
        const std::byte* const at = records + (position_ & (ring_bytes_ - 1));
        const std::uint32_t length =
            __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
        if ((length & BPF_RINGBUF_BUSY_BIT) != 0) return false;
        const std::uint32_t bytes = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        next_position_ = position_ + (bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) {
            data = {at + BPF_RINGBUF_HDR_SZ, bytes};
            return true;
        }
        consume();
    }
    return false;
}
void kernel_source::consume() noexcept {
    position_ = next_position_;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(consumer_), position_, __ATOMIC_RELEASE);
}

clause_counts kernel_source::counts(std::uint32_t clause) const {
    std::vector<clause_counts> each(processors_);
    if (!look_up(counters_, &clause, each.data())) return {};
    clause_counts sum;
    for (const auto& one : each) sum += one;
    return sum;
}

}  // namespace trace_clauses
