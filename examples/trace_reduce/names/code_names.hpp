// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The functions that addresses in a trace lie in: by its `module` records, which say what file is
/// where in a process, and the symbol tables of these files. Such a record is of the process that
/// has recorded it, or of another one: then it has a field `pid`, and so have the others.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/text.hpp>
#include <trace_ring/reduce/item/record_view.hpp>
#include <trace_ring/reduce/trace_file.hpp>

namespace trace_reduce::names {

namespace reduce = trace_ring::reduce;

/// Places in a function's code, as its calls return to them: from `low` to `high`, both included.
struct code_range {
    std::uint32_t pid = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

/// Whether this program can look names up: it was built with elfutils.
[[nodiscard]] bool can_name() noexcept;

/// Of one trace. A file that is no longer what was traced gives no names. If several
/// were at the same place at different times, a record is named by the one recorded last before it.
class code_names final : public trace_ring::exporter::address_names {
public:
    /// Reads the trace for what was loaded. Throws as reading does.
    explicit code_names(const reduce::trace_file& of);
    code_names(const code_names&) = delete;
    ~code_names() override;

    /// Whether of several processes, in which an address means different places. If not, all others
    /// are forks of the one, and have its code.
    [[nodiscard]] bool has_several() const noexcept { return several_; }
    /// The code of all functions of this name, or whose names match the glob: as the symbol table
    /// has it, demangled, or without arguments.
    [[nodiscard]] std::vector<code_range> named(const std::string& name, bool glob) const;
    /// Why no function is known; empty if some are.
    [[nodiscard]] std::string problem() const;
    /// Why files that were looked into give no names, each "FILE: why".
    [[nodiscard]] std::vector<std::string> problems() const;
    /// The name that is most like this one; empty if none is.
    [[nodiscard]] std::string nearest(const std::string& name) const;

    /// "compress+0x12 compress.c:33"; empty if no function is known there.
    [[nodiscard]] std::string_view name_of(const reduce::record_view& record,
                                           std::uint64_t address) override;

private:
    struct known;
    std::unique_ptr<known> known_;
    bool several_ = false;
};

}  // namespace trace_reduce::names
