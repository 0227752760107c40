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

void placed_points::add(const attach_point& at, std::uint32_t number, bool is_noted,
                        std::optional<std::uint32_t> entry) {
    points_.push_back({at, number, is_noted, entry, identity_of(at.file)});
}

void placed_points::set_in(address_space& memory, const mapped_file& code,
                           std::uint32_t point) const {
    const auto breakpoint_at = [&](std::uint64_t offset) {
        return code.holds(offset) ? memory.insert(code.begin + (offset - code.offset)) : nullptr;
    };
    const auto set = [&](std::uint64_t offset, std::vector<std::uint32_t> breakpoint::*into) {
        breakpoint* const here = breakpoint_at(offset);
        if (here == nullptr) return;
        auto& points = here->*into;
        if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
    };
    const placed& one = points_[point];
    if (one.at.part != function_part::returning) {
        set(one.at.offset, &breakpoint::points);
        for (const std::uint64_t each : one.at.jumps) {
            if (breakpoint* const here = breakpoint_at(each)) here->is_tail_jump = true;
        }
        return;
    }
    if (one.is_noted) set(one.at.offset, &breakpoint::entered);
    for (const std::uint64_t each : one.at.returns) set(each, &breakpoint::points);
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
            if (each.is_data && at.semaphore != 0 && each.holds(at.semaphore))
                memory.raise_semaphore(each.begin + (at.semaphore - each.offset));
            if (each.is_code) set_in(memory, each, i);
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
        if (each.path != loader->path || !each.is_code || !each.holds(*offset)) continue;
        breakpoint* const here = memory.insert(each.begin + (*offset - each.offset));
        if (here != nullptr) here->is_loader = true;
    }
}

}  // namespace trace_clauses
