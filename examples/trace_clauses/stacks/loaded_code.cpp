// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "loaded_code.hpp"

#include "../firings/return_probe.hpp"

#include <trace_ring/policy/clock/monotonic.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "../../launching/process_memory.hpp"
#include "../../symbols/symbols.hpp"
#include "../kernel/time_offset.hpp"

namespace trace_clauses {

loaded_code::loaded_code() : ahead_(monotonic_offset()) {}
loaded_code::~loaded_code() = default;

void loaded_code::refresh() {
    read_at_ = trace_ring::clock::monotonic::now();
    std::vector<mapping_event> all;
    events_.read([&all](const mapping_event& one) { all.push_back(one); });
    std::stable_sort(all.begin(), all.end(), [](const mapping_event& a, const mapping_event& b) {
        return a.time < b.time;
    });
    for (const mapping_event& one : all) {
        // A later event may have been read earlier, from another processor.
        const std::uint64_t time = one.time + static_cast<std::uint64_t>(ahead_);
        process& of = processes_[one.process];
        switch (one.is) {
            case mapping_event::kind::mapped:
                of.all.push_back({one.begin, one.end, one.offset, time, ~std::uint64_t{0}, one.path,
                                  one.build_id, one.inode});
                break;
            case mapping_event::kind::executed:
                for (mapping& each : of.all) {
                    if (each.since < time) each.until = std::min(each.until, time);
                }
                of.is_looked_at = true;  // all current mappings are known
                break;
            case mapping_event::kind::forked: {
                const auto parent = processes_.find(one.parent);
                std::erase_if(of.all, [&](const mapping& each) { return each.since < time; });
                of.ended_at = 0;
                of.is_looked_at = parent != processes_.end() && parent->second.is_looked_at;
                if (of.is_looked_at) {
                    const auto& had = parent->second.all;
                    of.all.insert(of.all.begin(), had.begin(), had.end());
                }
                break;
            }
            case mapping_event::kind::ended:
                of.ended_at = time;
                continue;
        }
        of.changes.insert(std::upper_bound(of.changes.begin(), of.changes.end(), time), time);
    }
    forget_ended();
}

/// All firings before a process's end have been read by then. If other threads of it continue, it
/// is examined again.
void loaded_code::forget_ended() {
    constexpr std::uint64_t kept = 30'000'000'000;  // ns
    std::erase_if(processes_, [this](const auto& each) {
        const std::uint64_t at = each.second.ended_at;
        return at != 0 && at + kept < read_at_;
    });
}

std::uint64_t loaded_code::changes_of(::pid_t number, std::uint64_t time) {
    if (time >= read_at_) refresh();
    const auto& all = processes_[number].changes;
    return static_cast<std::uint64_t>(std::upper_bound(all.begin(), all.end(), time) - all.begin());
}

void loaded_code::look_at(::pid_t number, process& of) {
    of.is_looked_at = events_.are_told();  // otherwise it is read again, for mappings made since
    const ::pid_t thread = launching::living_thread_of(number);
    std::ifstream maps("/proc/" + std::to_string(thread) + "/maps");
    const std::uint64_t now = trace_ring::clock::monotonic::now();
    const std::uint64_t since = of.all.empty() ? 0 : now;
    std::vector<mapping> there;
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
        char rights[5]{};
        int name = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %*s %llu %n", &begin, &end, rights,
                        &offset, &inode, &name) < 5)
            continue;
        const std::string path = line.substr(static_cast<std::size_t>(name));
        const bool is_code = path.starts_with('/') || path == kernel_code;
        if (rights[2] != 'x' || !is_code || path.ends_with(" (deleted)")) continue;
        there.push_back({begin, end, offset, since, ~std::uint64_t{0}, path, {}, inode});
    }
    if (there.empty()) return;  // the process has ended
    const auto is_same = [](const mapping& a, const mapping& b) {
        return a.begin == b.begin && a.end == b.end && a.path == b.path;
    };
    bool is_new = false;
    for (mapping& each : of.all) {
        const bool is_there = std::any_of(there.begin(), there.end(),
                                          [&](const mapping& one) { return is_same(one, each); });
        if (!is_there && !of.is_looked_at) each.until = std::min(each.until, now);
    }
    for (mapping& each : there) {
        const bool is_known = std::any_of(of.all.begin(), of.all.end(), [&](const mapping& one) {
            return is_same(one, each) && one.until > now;
        });
        if (is_known) continue;
        of.all.push_back(std::move(each));
        is_new = true;
    }
    if (is_new && !of.is_looked_at) of.changes.push_back(now);
}

const loaded_code::mapping* loaded_code::find(const process& of, std::uint64_t address,
                                              std::uint64_t time) noexcept {
    const mapping* found = nullptr;
    for (const mapping& each : of.all) {
        const bool is_there =
            each.begin < address && address <= each.end && each.since <= time && time < each.until;
        if (is_there && (found == nullptr || found->since <= each.since)) found = &each;
    }
    return found;
}

loaded_code::code_file& loaded_code::file_of(::pid_t of, const mapping& what) {
    auto& file = files_[{what.path, what.build_id, what.inode}];
    if (file.names == nullptr) file = found_file(of, what);
    return file;
}

/// Opened in the process's root folder, such as a container's, if that still exists. A different
/// file with the same name is not used.
loaded_code::code_file loaded_code::found_file(::pid_t of, const mapping& what) {
    for (const std::string& path :
         {"/proc/" + std::to_string(of) + "/root" + what.path, what.path}) {
        struct ::stat about {};
        if (::stat(path.c_str(), &about) != 0) continue;
        if (what.build_id.empty() && what.inode != 0 && what.inode != about.st_ino) continue;
        auto names = std::make_unique<symbols::object>(path, what.build_id);
        if (names->problem().empty())
            return {path, static_cast<std::uint64_t>(about.st_dev),
                    static_cast<std::uint64_t>(about.st_ino), std::move(names)};
    }
    return {"", 0, 0, std::make_unique<symbols::object>(what.path, "another one")};
}

trace_ring::file_descriptor loaded_code::opened(const code_file& what) noexcept {
    // Not a pipe, for which the call would wait.
    trace_ring::file_descriptor file(::open(what.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct ::stat about {};
    if (!file || ::fstat(file.get(), &about) != 0 || about.st_dev != what.device ||
        about.st_ino != what.inode)
        file.reset();
    return file;
}

/// A path through the root folder of a process ends with the process, which may be another one that
/// had the same file. Then the file is found again.
trace_ring::file_descriptor loaded_code::open_file(::pid_t of, const mapping& what,
                                                   code_file& file) {
    if (file.path.empty()) return {};
    if (auto already = opened(file)) return already;
    code_file again = found_file(of, what);
    if (again.path.empty()) return {};
    file = std::move(again);
    return opened(file);
}

void loaded_code::look(::pid_t number) {
    if (!events_.are_told()) look_at(number, processes_[number]);
}

std::vector<loaded_code::open_module> loaded_code::modules_of(::pid_t number, std::uint64_t time) {
    if (time >= read_at_) refresh();
    process& of = processes_[number];
    if (!of.is_looked_at) look_at(number, of);
    std::vector<const mapping*> all;
    for (const mapping& each : of.all) {
        if (!each.path.empty() && each.since <= time && time < each.until) all.push_back(&each);
    }
    // The kernel does not report unmapping. Of two parts at the same place, the later one is valid.
    std::stable_sort(all.begin(), all.end(),
                     [](const mapping* a, const mapping* b) { return a->since > b->since; });
    std::vector<open_module> found;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const mapping* const each : all) {
        code_file& file = file_of(number, *each);
        trace_ring::file_descriptor descriptor = open_file(number, *each, file);
        const std::uint64_t bias = file.names->bias(each->begin, each->offset);
        const auto [first, last] = file.names->extent();
        const bool is_known = last != 0;
        const std::uint64_t begin = is_known ? first + bias : each->begin;
        const std::uint64_t end = is_known ? last + bias : each->end;
        if (std::any_of(taken.begin(), taken.end(), [&](const auto& other) {
                return begin < other.second && other.first < end;
            }))
            continue;
        taken.emplace_back(begin, end);
        found.push_back({{each->begin, each->end, bias, file.names->build_id(), each->path},
                         std::move(descriptor)});
    }
    return found;
}

const loaded_code::mapping* loaded_code::mapped_at(::pid_t number, process& of,
                                                   std::uint64_t address, std::uint64_t time) {
    const mapping* at = find(of, address, time);
    if (at == nullptr && !of.is_looked_at) {
        look_at(number, of);
        at = find(of, address, time);
    }
    // Code outside of files has no path.
    if (at != nullptr && !at->path.empty()) return at;
    ++unnamed_;
    return nullptr;
}

const symbols::loaded_module* loaded_code::module_of(::pid_t number, std::uint64_t return_address,
                                                     std::uint64_t time) {
    if (time >= read_at_) refresh();
    const mapping* const at = mapped_at(number, processes_[number], return_address, time);
    if (at == nullptr) return nullptr;
    const symbols::object& file = *file_of(number, *at).names;
    const std::string id = at->build_id.empty() ? file.build_id() : at->build_id;
    module_ = {at->begin, at->end, file.bias(at->begin, at->offset), id, at->path};
    return &module_;
}

std::string_view loaded_code::name_of(::pid_t number, std::uint64_t return_address,
                                      std::uint64_t time) {
    // If the kernel traces the return, only the kernel knows the return address.
    if (is_return_probe(return_address)) return "a return that the kernel awaits";
    if (time >= read_at_) refresh();
    process& of = processes_[number];
    const mapping* const at = mapped_at(number, of, return_address, time);
    if (at == nullptr) return {};
    std::string& name = of.names[{at->since, return_address}];
    if (!name.empty()) return name;
    const symbols::object& file = *file_of(number, *at).names;
    const std::uint64_t bias = file.bias(at->begin, at->offset);
    name = symbols::place_and_line(file.before(return_address - bias));
    return name;
}

}  // namespace trace_clauses
