// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "placed_points.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <stdexcept>

#include "../points/program_file.hpp"

namespace trace_clauses {
placed_points::file_identity placed_points::identity_of(const std::string& file) noexcept {
    struct stat of {};
    if (::stat(file.c_str(), &of) != 0) return {};
    return {of.st_dev, of.st_ino};
}

void placed_points::add(const attach_point& at, std::uint32_t number) {
    points_.push_back({at, number, identity_of(at.file)});
}

void placed_points::set_in(address_space& memory, ::pid_t process) {
    memory.forget_replaced();
    const std::vector<mapped_file> files = memory.files();
    std::map<std::string, file_identity> identities;
    for (const auto& each : files) {
        auto& identity = identities[each.path];
        if (identity == file_identity{}) identity = identity_of(each.path);
        if (identity == file_identity{}) continue;
        for (std::uint32_t i = 0; i < points_.size(); ++i) {
            const attach_point& at = points_[i].at;
            if (at.process != process || points_[i].file != identity) continue;
            const auto is_in = [&](std::uint64_t offset) {
                return offset >= each.offset && offset - each.offset < each.end - each.begin;
            };
            if (each.is_data && at.semaphore != 0 && is_in(at.semaphore))
                memory.raise_semaphore(each.begin + (at.semaphore - each.offset));
            if (!each.is_code || !is_in(at.offset)) continue;
            breakpoint* const here = memory.insert(each.begin + (at.offset - each.offset));
            if (here == nullptr) continue;
            if (std::find(here->points.begin(), here->points.end(), i) == here->points.end())
                here->points.push_back(i);
        }
    }
    set_in_loader(memory, files);
}

void placed_points::set_in_loader(address_space& memory, const std::vector<mapped_file>& files) {
    const std::uint64_t base = memory.auxiliary(AT_BASE);
    const auto loader = std::find_if(files.begin(), files.end(), [&](const mapped_file& one) {
        return base >= one.begin && base < one.end;
    });
    if (base == 0 || loader == files.end()) return;
    if (!loaders_.contains(loader->path)) {
        auto& offset = loaders_[loader->path];
        try {
            const program_file file(loader->path);
            const auto found = file.functions("_dl_debug_state");
            if (!found.empty()) offset = found.front().function->offset;
        } catch (const std::runtime_error&) {
            // What it loads later is not seen then.
        }
    }
    const std::optional<std::uint64_t> offset = loaders_[loader->path];
    if (!offset) return;
    for (const auto& each : files) {
        if (each.path != loader->path || !each.is_code || *offset < each.offset ||
            *offset - each.offset >= each.end - each.begin)
            continue;
        breakpoint* const here = memory.insert(each.begin + (*offset - each.offset));
        if (here != nullptr) here->is_loader = true;
    }
}

}  // namespace trace_clauses
