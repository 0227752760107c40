// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "open.hpp"
#include "../core/core_traces.hpp"
#include "../core/elf_core.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include "../../counted.hpp"
#include "../cptrap/choice.hpp"

namespace trace_reduce {

namespace {

/// There is a trace in this file here. It is named by a core: nothing but a regular file is opened.
bool holds_trace(const std::string& path) {
    struct stat there {};
    if (!path.starts_with('/') || ::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) {
        return false;
    }
    try {
        std::uint64_t magic = 0;
        return reduce::source::open(path).read(0, &magic, sizeof magic) == sizeof magic &&
               magic == trace_ring::layout::file_magic;
    } catch (const std::exception&) {
        return false;
    }
}

/// The traces in a core; what is not in it, by name.
void open_core(const reduce::source& file, opened_files& into, complaints& complain) {
    const elf_core core(file);
    for (const auto& each : core.damages()) complain.damage(core.name(), each.offset, each.what);
    const core_traces found(core);
    for (const auto& each : found.traces()) into.traces.push_back(each.bytes);

    bool named = false;
    std::string others;
    std::size_t other_count = 0;
    constexpr std::size_t most_others = 5;
    for (const auto& each : found.left_out()) {
        if (holds_trace(each.path)) {
            const auto name = shown(each.path);
            complain.damage(core.name(), each.note,
                            "the memory of " + name +
                                " is not in the core (bit 3 of coredump_filter leaves shared files "
                                "out): its trace is in that file: run trace-reduce " +
                                name);
            named = true;
        } else if (++other_count <= most_others) {
            others += (others.empty() ? "" : ", ") + shown(each.path);
        }
    }
    if (named || !found.traces().empty()) return;
    std::string what = "no recorder's trace in " +
                       counted(core.segments().size(), "segment", "segments") + " of memory, " +
                       counted(found.searched(), "byte of which is", "bytes of which are") +
                       " in the core";
    if (!found.doubtful().empty()) {
        what += "; what begins as one at offset " + std::to_string(found.doubtful()[0].offset) +
                " is none: " + found.doubtful()[0].what;
    }
    if (other_count != 0) {
        what += "; not in the core, and perhaps with a trace: " + others;
        if (other_count > most_others) {
            what += " and " + std::to_string(other_count - most_others) + " more";
        }
    }
    complain.damage(core.name(), 0, what);
}

/// Calls `use(source, kind)`, and reports failures.
template <class Use>
void with_file(const std::string& path, const record::cptrap_lengths& lengths, bool as_spool,
               complaints& complain, const Use& use) {
    try {
        if (path == "-") {
            complain.system("-: standard input is not read: a trace is read at any place in it");
            return;
        }
        auto file = reduce::source::open(path);
        const auto kind = recognise(file, lengths, as_spool);
        use(std::move(file), kind);
    } catch (const trace_ring::format_error& error) {
        complain.damage(error.file(), error.offset(), error.cause());
    } catch (const std::system_error& error) {
        complain.system(error.what());
    }
}

}  // namespace

opened_files open_files(const options& wanted, complaints& complain) {
    opened_files out;
    const auto lengths = lengths_of(wanted);
    const bool as_spool = wanted.has_spool_options();
    for (const auto& path : wanted.files) {
        with_file(path, lengths, as_spool, complain, [&](reduce::source file, file_kind kind) {
            switch (kind) {
                case file_kind::trace:
                    out.traces.push_back(std::move(file));
                    break;
                case file_kind::spool:
                    out.spools.push_back(std::move(file));
                    break;
                case file_kind::core:
                    if (wanted.follow) {
                        complain.system(path + ": a core dump, which does not grow (--follow)");
                    } else {
                        open_core(file, out, complain);
                    }
                    break;
            }
        });
    }
    return out;
}

bool is_trace(const std::string& path, complaints& complain) {
    bool answer = false;
    with_file(path, {}, false, complain, [&](const reduce::source&, file_kind kind) {
        answer = kind == file_kind::trace;
        if (!answer) {
            complain.system(path + (kind == file_kind::spool
                                        ? ": a CPTRAP file, which holds no branches"
                                        : ": a core dump: --branches reads trace files"));
        }
    });
    return answer;
}

}  // namespace trace_reduce
