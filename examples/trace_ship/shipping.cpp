// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "shipping.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <exception>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <trace_ring/loss.hpp>
#include <trace_ring/reduce/source.hpp>

#include "../shown.hpp"
#include "http.hpp"

namespace trace_ship {

namespace {

constexpr std::chrono::milliseconds scan_interval{1000};
constexpr std::chrono::milliseconds metrics_interval{5000};
constexpr std::chrono::hours keep_interval{1};
constexpr std::chrono::milliseconds shortest_pause{10};
constexpr std::chrono::milliseconds longest_pause{200};
constexpr std::chrono::milliseconds first_delay{100};
constexpr std::chrono::milliseconds longest_delay{30'000};
constexpr std::chrono::seconds patience_once{30};
constexpr std::chrono::seconds last_reading{5};
constexpr unsigned looks_at_copies = 5;
constexpr std::size_t items_in_turn = 65536;

/// Writes a file whole or not at all.
void replace_file(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".part";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), temporary);
    const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int fault = errno;
    ::close(fd);
    if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) {
        const int why = written ? errno : fault;
        ::unlink(temporary.c_str());
        throw std::system_error(why, std::generic_category(), path);
    }
}

}  // namespace

shipping::shipping(shipping_settings settings, destination& to,
                   const volatile std::sig_atomic_t& stop)
    : settings_(std::move(settings)), to_(to), stop_(stop) {
    for (const auto& each : settings_.folders) {
        struct stat status {};
        if (::stat(each.c_str(), &status) != 0) {
            throw std::system_error(errno, std::generic_category(), each);
        }
        const bool twice = std::any_of(folders_.begin(), folders_.end(), [&](const auto& other) {
            return other->id() == id_of(status);
        });
        if (!twice) folders_.push_back(std::make_unique<trace_folder>(each, settings_.glob));
    }
}

void shipping::report(const std::string& what, std::string& last) {
    if (what == last) return;
    last = what;
    complain("trace-ship", what);
}

bool shipping::wait(std::chrono::milliseconds time) {
    const auto until = clock::now() + time;
    for (;;) {
        if (stop_ != 0) return false;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
        if (left.count() <= 0) return true;
        const auto part = (std::min)(left, std::chrono::milliseconds(50));
        const std::timespec pause{0, part.count() * 1'000'000};
        ::nanosleep(&pause, nullptr);
        write_metrics(false);
    }
}

template <class Attempt>
bool shipping::repeat(Attempt&& attempt) {
    static std::minstd_rand random{std::random_device{}()};
    int attempts_when_stopped = 3;
    const auto began = clock::now();
    for (auto delay = first_delay;; delay = (std::min)(delay * 2, longest_delay)) {
        std::string what;
        std::chrono::milliseconds least{0};
        try {
            attempt();
            if (!reported_.empty()) {
                complain("trace-ship", to_.name() + ": works again");
                reported_.clear();
            }
            return true;
        } catch (const no_answer& fault) {
            what = fault.what();
        } catch (const refusal& fault) {
            what = fault.what();
            least = fault.retry_after;
        }
        ++failures_;
        if (stop_ > 1) return false;
        if (stop_ != 0 && --attempts_when_stopped == 0) return false;
        report(what, reported_);
        if (settings_.once && clock::now() - began >= patience_once) return false;
        // Not all machines at the same moment.
        const auto half = static_cast<unsigned>(delay.count() / 2);
        (void)wait((std::max)(least, std::chrono::milliseconds(half + random() % (half + 1))));
    }
}

void shipping::look_for_files() {
    if (clock::now() < next_scan_) return;
    next_scan_ = clock::now() + scan_interval;
    std::set<file_id> there;
    bool complete = true;
    waiting_ = 0;
    for (const auto& folder : folders_) {
        try {
            for (const auto& file : folder->files()) {
                there.insert(file.id);
                consider(file);
            }
        } catch (const std::exception& fault) {
            complete = false;
            report(fault.what(), reported_here_);
        }
    }
    if (complete) reported_here_.clear();
    std::erase_if(copies_, [&](const auto& each) { return !there.contains(each.first); });
    // The number of a removed file may be given to another.
    if (complete) {
        std::erase_if(closed_, [&](const auto& each) { return !there.contains(each.first); });
    }
    if (complete && waiting_ == 0 && clock::now() >= next_keep_) {
        next_keep_ = clock::now() + keep_interval;
        std::set<std::string> traces;
        for (const auto& [id, path] : shipped_ids_) traces.insert(id);
        for (const auto& [id, file] : closed_) traces.insert(file.trace);
        to_.keep(traces);
    }
}

void shipping::consider(const found_file& file) {
    const auto is_open = [&](const open_trace& each) { return each.id == file.id; };
    if (std::any_of(traces_.begin(), traces_.end(), is_open)) return;
    const auto known = closed_.find(file.id);
    const bool is_known = known != closed_.end();
    if (is_known && known->second.stamp == file.stamp) return;
    if (traces_.size() >= settings_.most_open) {
        ++waiting_;
        return;
    }
    known_file now{file.stamp, true, {}};
    try {
        auto trace =
            std::make_unique<followed_trace>(reduce::source::open(file.path), settings_.host,
                                             settings_.symbols ? &symbols_ : nullptr);
        const std::string id = trace->identity().text();
        now.trace = id;
        if (const auto other = shipped_ids_.find(id); other != shipped_ids_.end()) {
            // It may have more than the other. Programs that end make a copy for a moment.
            if (++copies_[file.id] == looks_at_copies) {
                complain("trace-ship", file.path + ": the same trace as " + other->second +
                                           ", which is shipped first");
            }
            return;
        }
        for (const auto& damage : trace->file().damages()) {
            complain("trace-ship",
                     file.path + ": offset " + std::to_string(damage.offset) + ": " + damage.what);
        }
        shipped_ids_.emplace(id, file.path);
        copies_.erase(file.id);
        traces_.push_back({file.id, std::move(trace), {}, shortest_pause});
        closed_.erase(file.id);
        return;
    } catch (const std::exception& fault) {
        // A file that is just being made is no trace yet. It changes again, and then is one.
        const bool told = is_known && known->second.skipped;
        if (!told) {
            ++files_skipped_;
            complain("trace-ship", std::string(fault.what()) + ": not shipped");
        }
    }
    closed_[file.id] = now;
}

bool shipping::start_traces() {
    for (auto& each : traces_) {
        if (each.trace->is_started()) continue;
        // What is not delivered yet is missing in the answer.
        if (to_.items() != 0 && !deliver()) return false;
        if (!repeat([&] { each.trace->start(to_); })) return false;
    }
    return true;
}

bool shipping::read_traces() {
    bool full = false;
    const auto now = clock::now();
    for (auto& each : traces_) {
        if (!each.trace->is_started() || each.done || now < each.next_look) continue;
        // Asked before: what is written until then is seen by the reading that follows.
        const bool ended =
            !each.finishing && each.pause > shortest_pause && each.trace->has_ended();
        const auto before = to_.items();
        const auto progress = each.trace->read(to_, items_in_turn, counts_);
        if (before == 0 && to_.items() != 0) oldest_ = now;
        if (progress == followed_trace::progress::full) {
            full = true;
        } else if (progress == followed_trace::progress::some) {
            each.pause = shortest_pause;
        } else if (each.finishing) {
            each.done = true;
        } else if (ended) {
            each.finishing = true;
            each.trace->finish();
        } else {
            each.pause =
                to_.items() != before ? shortest_pause : (std::min)(each.pause * 2, longest_pause);
            each.next_look = now + each.pause;
        }
        if (stop_ > 1) break;
    }
    return full;
}

void shipping::close_ended() {
    std::erase_if(traces_, [&](open_trace& each) {
        if (!each.done) return false;
        struct stat status {};
        const bool there = ::fstat(each.trace->file().about().bytes().fd(), &status) == 0;
        if (there) {
            closed_[each.id] = {stamp_of(status), false, each.trace->identity().text()};
        }
        shipped_ids_.erase(each.trace->identity().text());
        each.trace->leave(to_);
        return true;
    });
}

std::size_t shipping::unread_traces() const {
    return waiting_ + static_cast<std::size_t>(std::count_if(
                          traces_.begin(), traces_.end(),
                          [](const open_trace& each) { return !each.trace->is_started(); }));
}

bool shipping::deliver() {
    if (to_.items() == 0) return true;
    if (!repeat([&] { to_.deliver(); })) return false;
    ++batches_;
    delivered_counts_ = counts_;
    delivered_at_ = static_cast<std::int64_t>(std::time(nullptr));
    return true;
}

bool shipping::run() {
    if (!repeat([&] { to_.prepare(); })) {
        complain("trace-ship", "nothing was read");
        return false;
    }
    bool gave_up = false;
    while (stop_ == 0 && !gave_up) {
        look_for_files();
        gave_up = !start_traces();
        if (gave_up || stop_ != 0) break;
        const bool full = read_traces();
        const bool due = to_.items() != 0 && clock::now() - oldest_ >= settings_.interval;
        const bool idle = std::all_of(traces_.begin(), traces_.end(), [](const open_trace& each) {
            return each.done || each.next_look > clock::now();
        });
        if (full || due || (settings_.once && idle)) {
            gave_up = !deliver();
            if (gave_up) break;
        }
        close_ended();
        write_metrics(false);
        show_progress();
        if (settings_.once && idle && to_.items() == 0 && waiting_ == 0) {
            // Twice nothing: a trace that is recorded into never ends.
            const bool quiet = std::all_of(traces_.begin(), traces_.end(), [](const auto& each) {
                return each.pause >= longest_pause;
            });
            // A copy is read when the other has been.
            if (quiet && (copies_.empty() || !traces_.empty())) break;
        }
        if (idle) (void)wait(shortest_pause);
    }
    // What programs have written before the stop, and not all that they write after it.
    const auto last_look = clock::now() + last_reading;
    for (bool more = true; more && stop_ == 1 && clock::now() < last_look;) {
        for (auto& each : traces_) each.next_look = {};
        const std::size_t before = to_.items();
        const bool full = read_traces();
        more = full ? deliver() : to_.items() != before;
    }
    const bool may_try = stop_ == 1 || (stop_ == 0 && !gave_up);
    const std::size_t unread = unread_traces();
    if (unread != 0) {
        complain("trace-ship", std::to_string(unread) + " traces were not read");
    }
    const bool all =
        (may_try ? deliver() : to_.items() == 0) && unread == 0 && (!gave_up || stop_ != 0);
    write_metrics(true);
    if (settings_.show_progress) {
        last_progress_ = {};
        show_progress();
        std::fputc('\n', stderr);
    }
    if (to_.items() != 0) {
        complain("trace-ship", std::to_string(to_.items()) +
                                   " records were read and not delivered: the next run reads them "
                                   "again, or reports them as lost");
    }
    return all && to_.refused_items() == 0;
}

void shipping::write_metrics(bool now) {
    if (settings_.metrics_file.empty() || (!now && clock::now() < next_metrics_)) return;
    next_metrics_ = clock::now() + metrics_interval;
    std::string text;
    const auto add = [&](const char* name, const char* type, const char* help, auto value,
                         const std::string& labels = {}) {
        const std::string head = std::string("# HELP trace_ship_") + name + ' ' + help +
                                 "\n# TYPE trace_ship_" + name + ' ' + type + '\n';
        if (text.find(head) == text.npos) text += head;
        text += std::string("trace_ship_") + name + labels + ' ' + std::to_string(value) + '\n';
    };
    add("records_total", "counter", "Records delivered.", delivered_counts_.records);
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<trace_ring::loss_cause>(i);
        add("lost_records_total", "counter", "Records delivered as lost, by cause.",
            delivered_counts_.lost[cause], "{cause=\"" + std::string(to_string(cause)) + "\"}");
    }
    add("damages_total", "counter", "Places in files that cannot be read.",
        delivered_counts_.damages);
    add("refused_items_total", "counter", "Records and spans that the server will never take.",
        to_.refused_items());
    add("batches_total", "counter", "Inserts, or batches of requests.", batches_);
    add("sent_bytes_total", "counter", "Bytes of inserts, compressed, or of requests.",
        to_.sent_bytes());
    add("failures_total", "counter", "Requests without success, which were repeated.", failures_);
    add("files_skipped_total", "counter", "Files that are no traces, or copies.", files_skipped_);
    add("unread_traces", "gauge", "Traces of which nothing was read yet.", unread_traces());
    add("open_traces", "gauge", "Traces that are followed.", traces_.size());
    add("waiting_files", "gauge", "Files beyond the number that may be open.", waiting_);
    add("waiting_records", "gauge", "Records that are read and not delivered.", to_.items());
    add("waiting_bytes", "gauge", "Their bytes in memory.", to_.bytes());
    add("last_delivery_seconds", "gauge", "When the last insert was done, since 1970.",
        delivered_at_);
    add("newest_record_seconds", "gauge", "The time of the last delivered record, since 1970.",
        static_cast<double>(delivered_counts_.newest_ns) / 1e9);
    try {
        replace_file(settings_.metrics_file, text);
        reported_metrics_.clear();
    } catch (const std::system_error& fault) {
        report(fault.what(), reported_metrics_);
    }
}

void shipping::show_progress() {
    if (!settings_.show_progress ||
        clock::now() - last_progress_ < std::chrono::milliseconds(200)) {
        return;
    }
    last_progress_ = clock::now();
    std::fprintf(stderr, "\r\x1b[K%llu records delivered, %llu lost, %zu traces, %zu waiting",
                 static_cast<unsigned long long>(delivered_counts_.records),
                 static_cast<unsigned long long>(delivered_counts_.lost.total()), traces_.size(),
                 to_.items());
    std::fflush(stderr);
}

}  // namespace trace_ship
