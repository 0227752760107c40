// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// A program compiled with -fno-exceptions and -fno-rtti: it records and reads back the bytes, and
/// what fails at set-up ends in the one handler.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <trace_ring/control.hpp>
#include <trace_ring/cptrap.hpp>
#include <trace_ring/das.hpp>
#include <trace_ring/draining.hpp>
#include <trace_ring/per_cpu.hpp>
#include <trace_ring/rings.hpp>
#include <trace_ring/trace_ring.hpp>

#if defined(__cpp_exceptions) || defined(__GXX_RTTI)
#error "to be compiled with -fno-exceptions -fno-rtti"
#endif

namespace {

namespace tr = trace_ring;

struct used : tr::event<"bare.used", tr::field<"times", std::uint64_t>> {};
struct by_cpu : tr::policies<tr::claim::per_cpu> {};
struct in_heap : tr::policies<tr::record::sequenced<int>, tr::storage::heap> {};
struct in_file : tr::policies<tr::record::sequenced<int>, tr::storage::shared_file> {};

int faults = 0;
void check(bool holds, const char* what) {
    if (holds) return;
    ++faults;
    std::printf("without_exceptions: %s\n", what);
}

struct ended {
    int status;
    std::string said;  ///< on stderr
};

/// How a child ends that calls `what`, and exits with 0 if that returns.
template <class What>
ended in_child(What&& what) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return {-1, "no pipe"};
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], 2);
        const ::rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        what();
        ::_exit(0);
    }
    ::close(ends[1]);
    ended seen{-1, {}};
    char bytes[256];
    for (::ssize_t got = 0; (got = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
        seen.said.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    ::waitpid(child, &seen.status, 0);
    return seen;
}
bool aborted(const ended& child) {
    return WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT;
}

/// Leaves with 3, and the text on stderr.
void leave(const tr::setup_error& error) {
    std::fprintf(stderr, "%s|%s|%d", error.subject().c_str(), error.what(), error.code().value());
    ::_exit(3);
}
bool left(const ended& child, const char* said) {
    const bool same = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 3 &&
                      child.said.find(said) != std::string::npos;
    if (!same) std::printf("status %d, \"%s\"\n", child.status, child.said.c_str());
    return same;
}

std::jmp_buf back;
void jump(const tr::setup_error&) {
    std::longjmp(back, 1);
}

/// No file may become longer: set-up fails when its file is made already.
void let_no_file_grow() {
    const ::rlimit short_ones{1 << 12, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &short_ones);
}

template <class Recorder>
void records_and_reads_back() {
    Recorder recorder{{.size = 1 << 16, .full = tr::full_mode::block}};
    tr::drain::session session(recorder);
    for (std::uint64_t i = 0; i < 100; ++i) check(recorder.template record<used>(i), "a record");
    std::size_t bytes = 0;
    const auto count = [&](const auto& part) { bytes += part.bytes().size(); };
    session.for_each(count);
    session.finish_records(
        [&](const tr::drained_record& one) { bytes += one.payload.size_bytes(); });
    check(session.records() == 100 && session.lost().total() == 0, "each record is read back");
    check(bytes >= 100 * sizeof(std::uint64_t), "with its bytes");
}

void set_up_fails() {
    const std::string file = "bare.trace";
    ::unlink(file.c_str());
    const auto nowhere = [] { tr::recorder recorder{{.file = "/nowhere/bare.trace"}}; };
    const char* const text = "/nowhere/bare.trace: cannot create the file: No such file";

    // Without a handler, or where it returns.
    ended child = in_child(nowhere);
    check(aborted(child) && child.said.find(text) == 0, "the text on stderr, and abort");
    child = in_child([&] {
        tr::set_setup_handler([](const tr::setup_error&) {});
        nowhere();
    });
    check(aborted(child), "a handler that returns has the program aborted");

    check(tr::set_setup_handler(&leave) == nullptr, "there was no handler");
    check(left(in_child(nowhere), text), "a recorder's file");
    check(left(in_child([] { tr::recorder recorder{{.totals = 65}}; }),
               "recorder_options::totals|recorder_options::totals: must be at most 64"),
          "a recorder's option");
    check(left(in_child([] { const tr::control from_outside("/nowhere/bare.trace"); }),
               "cannot open the file"),
          "control");
    check(left(in_child([] { tr::ring<in_heap> ring(~std::uint64_t{0} / 2); }), "cannot allocate"),
          "a ring without memory");
    check(left(in_child([] { tr::ring<in_file> ring(std::string("/nowhere/bare.ring"), 4096U); }),
               "/nowhere/bare.ring: cannot create the file"),
          "a ring's file");
    check(left(in_child([] {
                   tr::recorder recorder{{.size = 1 << 16}};
                   tr::drain::session one(recorder);
                   tr::drain::session other(recorder);
               }),
               "drains it"),
          "a second session");

    // Nothing incomplete is left behind, and the program may continue.
    for (const auto exists : {tr::if_exists::fail, tr::if_exists::replace, tr::if_exists::attach}) {
        child = in_child([&] {
            let_no_file_grow();
            tr::recorder recorder{{.file = file, .exists = exists}};
        });
        check(left(child, "bare.trace: cannot allocate the tables"), "a file that cannot grow");
        check(::access(file.c_str(), F_OK) != 0, "the file is not left behind");
    }
    child = in_child([&] {
        let_no_file_grow();
        tr::ring<in_file> ring(file, 1U << 20);
    });
    check(left(child, "cannot allocate"), "a ring's file that cannot grow");
    check(::access(file.c_str(), F_OK) != 0, "the ring's file is not left behind");
    child = in_child([&] {
        tr::set_setup_handler(&jump);
        if (setjmp(back) == 0) {
            nowhere();
            ::_exit(1);
        }
        tr::recorder recorder{{.file = file, .size = 1 << 16}};
        ::_exit(recorder.record<used>(1U) ? 3 : 1);
    });
    check(left(child, ""), "the program goes on after a jump");
    ::unlink(file.c_str());

    // A recorder that records nothing instead, more often than a process can have recorders.
    child = in_child([&] {
        bool good = true;
        for (int i = 0; i < 20; ++i) {
            tr::recorder recorder{
                {.file = "/nowhere/bare.trace", .on_failure = tr::if_setup_fails::record_nothing}};
            tr::basic_recorder<by_cpu> other{{.totals = 65,
                                              .on_failure = tr::if_setup_fails::record_nothing,
                                              .report_failure = [](const tr::setup_error&) {}}};
            tr::drain::session session(recorder);
            good = good && !recorder.record<used>(1U) && !other.record<used>(1U) &&
                   recorder.statistics().failure_error == ENOENT &&
                   other.statistics().failure_error == EINVAL && session.records() == 0;
        }
        tr::recorder recorder{
            {.file = file, .size = 1 << 16, .on_failure = tr::if_setup_fails::record_nothing}};
        good = good && recorder.statistics().failure == nullptr && recorder.record<used>(1U);
        ::_exit(good ? 3 : 1);
    });
    check(left(child, "No such file or directory; nothing is recorded"), "a degraded recorder");
    ::unlink(file.c_str());
    check(tr::set_setup_handler(nullptr) == &leave, "the handler before");
}

}  // namespace

int main() {
    records_and_reads_back<tr::recorder>();
    records_and_reads_back<tr::basic_recorder<by_cpu>>();
    set_up_fails();
    std::printf("without_exceptions: %d faults\n", faults);
    return faults == 0 ? 0 : 1;
}
