// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// trace-reduce: what is in trace files, as text or JSON, forward or backward, now or as it comes.

#include <unistd.h>
#include <csignal>
#include <ctime>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "inputs.hpp"
#include "options.hpp"
#include "output.hpp"
#include "statistics.hpp"

namespace trace_reduce {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };  // no SA_RESTART: a sleep ends
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

/// Tells a person that waits how far it is: on standard error, if that is a terminal and the result
/// goes elsewhere.
class progress {
public:
    explicit progress(bool wanted) : wanted_(wanted), begin_(std::time(nullptr)), told_(begin_) {}
    ~progress() {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }
    void tell(unsigned long long records) {
        if (!wanted_) return;
        const std::time_t now = std::time(nullptr);
        if (now == told_ || now < begin_ + 2) return;
        told_ = now;
        shown_ = true;
        std::fprintf(stderr, "\rtrace-reduce: %llu records", records);
    }

private:
    bool wanted_;
    std::time_t begin_;
    std::time_t told_;
    bool shown_ = false;
};

using inputs = std::vector<std::unique_ptr<input>>;

/// Prints items until there are none (now), or as many records as are wanted.
void print_items(const inputs& from, const options& wanted, output& to, std::uint64_t& records,
                 progress& told) {
    unsigned since = 0;
    while (records < wanted.limit && interrupted == 0) {
        input* const next = next_of(from, wanted.backward);
        if (next == nullptr) return;
        const bool is_record = std::holds_alternative<reduce::record_view>(*next->peek());
        next->append(to.text(), wanted.format);
        next->pop();
        to.flush_some();
        if (is_record) ++records;
        if (++since % 65536 == 0) told.tell(records);
    }
}

void follow(const inputs& from, const options& wanted, output& to, progress& told) {
    std::uint64_t records = 0;
    const auto live = [&from] {
        for (const auto& each : from) {
            each->file().refresh();
            if (each->file().live()) return true;
        }
        return false;
    };
    for (;;) {
        // Asked before: what is written until then is seen by the reading that follows.
        const bool closed = wanted.until_closed && !live();
        print_items(from, wanted, to, records, told);
        to.flush();
        if (interrupted != 0 || closed || records >= wanted.limit) break;
        const std::timespec pause{0, 50'000'000};
        ::nanosleep(&pause, nullptr);
        for (const auto& each : from) each->judge_tables();
    }
    interrupted = 0;  // it was the way to end this
    if (records >= wanted.limit) return;
    for (const auto& each : from) each->stop_following();
    print_items(from, wanted, to, records, told);
}

void show_statistics(const inputs& from, const options& wanted, output& to) {
    for (const auto& each : from) {
        if (interrupted != 0) return;
        const auto sum = each->file().statistics(each->what());
        each->complain_of(sum);
        if (wanted.format == output_format::json) {
            in_json::show(to.text(), each->file(), sum);
        } else {
            in_text::show(to.text(), each->file(), sum, each->text());
            if (each != from.back()) to.text() += '\n';
        }
        to.flush();
    }
}

int run(const options& wanted) {
    complaints complain;
    try {
        output to(wanted.output, wanted.files);
        const bool colour = wanted.format == output_format::text && !wanted.statistics &&
                            (wanted.colour == colouring::always ||
                             (wanted.colour == colouring::automatic && to.is_terminal() &&
                              std::getenv("NO_COLOR") == nullptr));
        const inputs from = open_all(wanted, colour, complain);
        if (from.empty()) return complain.status();
        progress told(::isatty(STDERR_FILENO) != 0 && !to.is_terminal());
        if (wanted.statistics) {
            show_statistics(from, wanted, to);
        } else {
            for (const auto& each : from) each->start(wanted);
            if (wanted.follow) {
                follow(from, wanted, to, told);
            } else {
                std::uint64_t records = 0;
                print_items(from, wanted, to, records, told);
            }
        }
        for (const auto& each : from) each->judge_tables();
        to.flush();
        if (interrupted != 0) return 130;
        to.commit();
    } catch (const closed_pipe&) {
        return complain.status();
    } catch (const std::exception& error) {
        complain.system(error.what());
    }
    return complain.status();
}

}  // namespace
}  // namespace trace_reduce

int main(int argc, char** argv) {
    trace_reduce::options wanted;
    int status = 0;
    if (!trace_reduce::parse(argc, argv, wanted, status)) return status;
    trace_reduce::catch_signals();
    return trace_reduce::run(wanted);
}
