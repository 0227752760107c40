// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "traced_run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include <trace_ring/drain/session.hpp>
#include <trace_ring/recorder/drain_source/drain_source.hpp>
#include <trace_ring/recorder/recorder.hpp>

#include "../../launching/launched_program.hpp"
#include "../../launching/signals.hpp"
#include "kept_trace.hpp"
#include "live_reader.hpp"
#include "traced_processes.hpp"

namespace address_trace {
namespace {

namespace tr = trace_ring;
using steady = std::chrono::steady_clock;

/// A temporary folder, in memory if the system provides a place for that.
class scratch_folder {
public:
    scratch_folder() {
        const bool shared = ::access("/dev/shm", W_OK | X_OK) == 0;
        const std::string in =
            shared ? std::string("/dev/shm") : std::filesystem::temp_directory_path().string();
        remove_leftovers(in);
        std::string name = in + "/address-trace.XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) tr::fail_setup(name, "cannot be made", errno);
        path_ = name;
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string file(const char* name) const { return path_ + '/' + name; }

private:
    /// Removes the folders of killed runs: their tables are not locked. A new one may not be locked
    /// yet.
    static void remove_leftovers(const std::string& in) {
        namespace fs = std::filesystem;
        std::error_code error;
        for (fs::directory_iterator each(in, error); !error && each != fs::directory_iterator();
             each.increment(error)) {
            const std::string folder = each->path().string();
            if (!each->path().filename().string().starts_with("address-trace.")) continue;
            const tr::file_descriptor table(
                ::open((folder + "/open").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
            struct stat status {};
            if (!table || ::fstat(table.get(), &status) != 0 || status.st_uid != ::geteuid())
                continue;
            constexpr std::time_t is_new = 60;
            if (std::time(nullptr) - status.st_mtime < is_new) continue;
            constexpr auto byte = tr::instrument::open_references_table::life_byte;
            if (tr::storage::byte_is_locked(table.get(), byte)) continue;
            std::error_code ignored;
            fs::remove_all(folder, ignored);
        }
    }

    std::string path_;
};

[[nodiscard]] double seconds(const timeval& of) {
    return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) * 1e-6;
}

/// Measures the cost of the children that have ended since.
class cost_meter {
public:
    cost_meter() : before_(children()), began_(steady::now()) {}
    [[nodiscard]] run_cost cost() const {
        const rusage now = children();
        const auto more = [](long after, long before) {
            return static_cast<std::uint64_t>(after - before);
        };
        return {std::chrono::duration<double>(steady::now() - began_).count(),
                seconds(now.ru_utime) - seconds(before_.ru_utime),
                seconds(now.ru_stime) - seconds(before_.ru_stime),
                more(now.ru_minflt, before_.ru_minflt),
                more(now.ru_majflt, before_.ru_majflt),
                more(now.ru_nvcsw + now.ru_nivcsw, before_.ru_nvcsw + before_.ru_nivcsw)};
    }

private:
    [[nodiscard]] static rusage children() {
        rusage out{};
        ::getrusage(RUSAGE_CHILDREN, &out);
        return out;
    }
    rusage before_;
    steady::time_point began_;
};

[[nodiscard]] double own_seconds() {
    rusage out{};
    ::getrusage(RUSAGE_SELF, &out);
    return seconds(out.ru_utime) + seconds(out.ru_stime);
}

void kill_program(void* program) {
    ::kill(static_cast<launching::launched_program*>(program)->process(), SIGKILL);
}

[[nodiscard]] tr::recorder_options trace_options(const run_settings& how, const std::string& file) {
    tr::recorder_options out{
        .file = file,
        .size = how.output.empty() ? how.buffer : std::min(how.buffer, how.limit),
        .sub_buffer_bytes = 32768,
        .control = tr::control_mode::off,
        .full = how.stops ? tr::full_mode::block : tr::full_mode::discard_newest,
        .programs = 256};
    if (!how.output.empty()) {
        out.full = tr::full_mode::extend_then_discard;
        out.limit = how.limit;
        out.exists = tr::if_exists::replace;
    }
    return out;
}

/// The trace, its reader, and the threads' open references.
class session {
public:
    session(const run_settings& how, analyses& to)
        : file_(how.output.empty() ? folder_.file("trace")
                                   : std::filesystem::absolute(how.output).string()),
          keeps_(!how.output.empty()),
          recorder_(trace_options(how, file_)),
          open_(folder_.file("open"), {.drained = how.stops && how.output.empty(),
                                       .packs = !how.output.empty(),
                                       .traces_itself = how.itself,
                                       .skips_blocks = !how.blocks}),
          stream_(to) {
        if (!keeps_) drained_.emplace(file_, stream_);
        ::setenv("TRACE_RING_REFERENCES", file_.c_str(), 1);
        ::setenv("TRACE_RING_OPEN_REFERENCES", open_.path().c_str(), 1);
    }

    /// Takes the complete records. Returns false if there are none. A kept trace is read at the
    /// end.
    bool take() { return drained_ && drained_->take(); }
    /// Takes the references of threads whose processes have ended. In a kept trace, they are also
    /// recorded.
    void take_left(bool at_end) {
        open_.take_left(at_end, [&](const tr::instrument::left_references& each) {
            // Its recorded references are read at the end.
            if (each.may_be_recorded && keeps_ && !at_end) return false;
            const bool is_new = !stream_.has(each.place, each.sequence);
            if (keeps_ && is_new) record(each);
            if (!keeps_ || at_end)
                stream_.take(
                    {each.thread, each.place, each.sequence, 0, false, std::as_bytes(each.all)});
            return true;
        });
    }
    /// Other processes of the program are still running. With `waits`, waits until they have ended
    /// or a signal comes.
    void leave_others(bool waits, run_result& into) {
        const auto were = launching::signal_taker::last();
        auto living = find_living();
        while (waits && !living.empty() && launching::signal_taker::last() == were) {
            const auto looked = steady::now();
            while (steady::now() - looked < std::chrono::milliseconds(50)) {
                if (!take()) ::usleep(1000);
            }
            take_left(false);
            living = find_living();
        }
        into.counts_change = !open_.living().empty();
        open_.close();
        into.living = std::move(living);
    }
    void finish(run_result& into) {
        if (keeps_) {
            static_cast<void>(read_kept(file_, stream_));  // counts the losses and the places
        } else {
            drained_->finish();
        }
        take_left(true);
        stream_.finish();
        into.references = stream_.references();
        into.packed_bytes = stream_.bytes();
        into.damaged_bytes = stream_.damaged();
        into.missing_records = stream_.missing();
        into.counts = open_.counts();
        // Not known yet for processes that are still running.
        if (keeps_ && !into.counts_change)
            recorder_.record<trace_end>(
                into.counts.calls, into.counts.lost_references + into.counts.untraced_references);
        into.modules = stream_.modules();
        into.stacks = stream_.stacks();
    }

private:
    struct drained {
        drained(const std::string& file, reference_stream& to)
            : reader(file, to), source(file), session(source) {}
        /// Takes a bounded number, because a program may record faster than this reads.
        bool take() {
            constexpr int most = 256;
            for (int i = 0; i < most; ++i) {
                auto part = session.take();
                if (!part) return i != 0;
                reader.take(**part);
                part->consume();
            }
            return true;
        }
        void finish() {
            session.finish([this](const auto& part) { reader.take(part); });
        }
        live_reader reader;
        tr::drain_source source;
        tr::drain::session<tr::drain_source&> session;
    };

    /// Finds processes that call hooks, or will. A process may start another one and end during the
    /// search, so it is repeated once.
    [[nodiscard]] std::vector<std::uint32_t> find_living() {
        auto all = processes_with(open_.path());
        if (all.empty()) all = processes_with(open_.path());
        for (const std::uint32_t each : open_.living()) all.push_back(each);
        std::ranges::sort(all);
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }
    void record(const tr::instrument::left_references& left) {
        tr::reference_packer packer;
        std::vector<std::uint8_t> packed(left.all.size() * tr::reference_packer::most_bytes);
        auto* to = reinterpret_cast<std::byte*>(packed.data());
        for (std::size_t i = 0; i < left.all.size(); i += left.all[i].width())
            to = packer.put(to, &left.all[i]);
        const auto* const end = reinterpret_cast<const std::uint8_t*>(to);
        recorder_.record<tr::packed_references>(left.thread, left.place, left.sequence,
                                                std::span<const std::uint8_t>(packed.data(), end));
    }

    scratch_folder folder_;
    std::string file_;
    bool keeps_;
    tr::recorder recorder_;
    tr::instrument::table_file open_;
    reference_stream stream_;
    std::optional<drained> drained_;
};

}  // namespace

run_result run_traced(const run_settings& how, analyses& to) {
    run_result out;
    session traced(how, to);
    const double before = own_seconds();
    const cost_meter meter;
    launching::launched_program program(how.command);
    const launching::signal_taker signals(program.process(), kill_program, &program);
    program.go();
    auto looked = steady::now();
    while (!program.ended()) {
        const bool any = traced.take();
        const auto now = steady::now();
        if (now - looked > std::chrono::seconds(1)) {
            traced.take_left(false);
            looked = now;
        }
        if (!any) ::usleep(100);
    }
    out.program = meter.cost();
    out.status = program.status().value_or(0);
    traced.leave_others(how.waits, out);
    traced.finish(out);
    out.analysis_seconds = own_seconds() - before;
    return out;
}

run_cost run_untraced(const std::vector<std::string>& command, int& status) {
    const cost_meter meter;
    launching::launched_program program(command);
    const launching::signal_taker signals(program.process(), kill_program, &program);
    program.go();
    while (!program.ended()) ::usleep(100);
    status = program.status().value_or(0);
    return meter.cost();
}

}  // namespace address_trace
