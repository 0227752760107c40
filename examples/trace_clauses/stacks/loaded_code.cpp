// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "loaded_code.hpp"

#include "../firings/return_probe.hpp"

#include <trace_ring/policy/clock/monotonic.hpp>

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
        // What happened later may have been read before, on another processor.
        const std::uint64_t time = one.time + static_cast<std::uint64_t>(ahead_);
        process& of = processes_[one.process];
        switch (one.is) {
            case mapping_event::kind::mapped:
                of.all.push_back(
                    {one.begin, one.end, one.offset, time, ~std::uint64_t{0}, one.path});
                break;
            case mapping_event::kind::executed:
                for (mapping& each : of.all) {
                    if (each.since < time) each.until = std::min(each.until, time);
                }
                of.is_looked_at = true;  // all that it has now is told
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

/// What fired before a process ended is read by then. If other threads of it go on, it is looked at
/// anew.
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
    of.is_looked_at = events_.are_told();  // else again, for what it has mapped since
    bool is_new = false;
    const ::pid_t thread = launching::living_thread_of(number);
    std::ifstream maps("/proc/" + std::to_string(thread) + "/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin = 0, end = 0, offset = 0;
        char rights[5]{};
        int name = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %*s %*s %n", &begin, &end, rights,
                        &offset, &name) < 4)
            continue;
        const std::string path = line.substr(static_cast<std::size_t>(name));
        const bool is_code = path.starts_with('/') || path == kernel_code;
        if (rights[2] != 'x' || !is_code || path.ends_with(" (deleted)")) continue;
        const bool is_known = std::any_of(of.all.begin(), of.all.end(), [&](const mapping& one) {
            return one.begin == begin && one.path == path;
        });
        if (is_known) continue;
        of.all.push_back({begin, end, offset, 0, ~std::uint64_t{0}, path});
        is_new = true;
    }
    if (is_new && !of.is_looked_at) of.changes.push_back(trace_ring::clock::monotonic::now());
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

const symbols::object& loaded_code::file_of(::pid_t of, const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_unique<symbols::object>(readable_path(of, path));
    return *file;
}

/// In its own root folder, as of a container, if that is still there.
std::string loaded_code::readable_path(::pid_t of, const std::string& path) {
    std::string there = "/proc/" + std::to_string(of) + "/root" + path;
    return std::ifstream(there) ? there : path;
}

std::vector<symbols::loaded_module> loaded_code::modules_of(::pid_t number, std::uint64_t time) {
    if (time >= read_at_) refresh();
    process& of = processes_[number];
    if (!of.is_looked_at) look_at(number, of);
    std::vector<symbols::loaded_module> all;
    for (const mapping& each : of.all) {
        if (each.path.empty() || each.since > time || time >= each.until) continue;
        const symbols::object& file = file_of(number, each.path);
        all.push_back({each.begin, each.end, file.bias(each.begin, each.offset), file.build_id(),
                       readable_path(number, each.path)});
    }
    return all;
}

const loaded_code::mapping* loaded_code::mapped_at(::pid_t number, process& of,
                                                   std::uint64_t address, std::uint64_t time) {
    const mapping* at = find(of, address, time);
    if (at == nullptr && !of.is_looked_at) {
        look_at(number, of);
        at = find(of, address, time);
    }
    // Code that is in no file has no path.
    if (at != nullptr && !at->path.empty()) return at;
    ++unnamed_;
    return nullptr;
}

const symbols::loaded_module* loaded_code::module_of(::pid_t number, std::uint64_t return_address,
                                                     std::uint64_t time) {
    if (time >= read_at_) refresh();
    const mapping* const at = mapped_at(number, processes_[number], return_address, time);
    if (at == nullptr) return nullptr;
    const symbols::object& file = file_of(number, at->path);
    module_ = {at->begin, at->end, file.bias(at->begin, at->offset), file.build_id(), at->path};
    return &module_;
}

std::string_view loaded_code::name_of(::pid_t number, std::uint64_t return_address,
                                      std::uint64_t time) {
    // Where the kernel awaits a return, nobody but the kernel knows the address.
    if (is_return_probe(return_address)) return "a return that the kernel awaits";
    if (time >= read_at_) refresh();
    process& of = processes_[number];
    const mapping* const at = mapped_at(number, of, return_address, time);
    if (at == nullptr) return {};
    std::string& name = of.names[{at->since, return_address}];
    if (!name.empty()) return name;
    const symbols::object& file = file_of(number, at->path);
    const std::uint64_t bias = file.bias(at->begin, at->offset);
    name = symbols::place_and_line(file.before(return_address - bias));
    return name;
}

}  // namespace trace_clauses
