// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What of a CPTRAP file is wanted, as the command line says it.
/// @code
///   --type interface,start_io,0x13-0x15    --code 3,0x100-0x1FF    --page 5-7
///   --from '#5' --to 7:3                   --from @0x5000          --to 25%
/// @endcode
/// A number is decimal, 0x1F or X'1F'.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/cptrap/selection.hpp>

namespace trace_reduce {

/// Spool records, by number from 0; both ends belong to it.
struct page_range {
    std::uint64_t first = 0;
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
};

/// A place: what begins there or later is from it on. Its records have no time.
struct spool_place {
    enum class form : std::uint8_t {
        record,  ///< `index` in spool record `page`, both from 0: #5, 5:3, #5:3
        offset,  ///< `offset` in the file: @20480, @0x5000
        share,   ///< `share` of the file's bytes: 25%
    };
    form what = form::record;
    std::uint64_t page = 0;
    std::uint64_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t share = 0;  ///< as trace_ring::reduce::when has it
};
inline constexpr std::string_view forms_of_spool_place =
    "a spool record of 4 KiB, from 0 (#5), a record in it (5:3), an offset (@20480, @0x5000), or a "
    "share of the file (25%)";

/// Each is empty if the text is one, else what is wrong with it. `into` is changed only then.
[[nodiscard]] std::string parse_types(std::string_view text, std::vector<bool>& into);
[[nodiscard]] std::string parse_codes(std::string_view text, std::vector<bool>& into);
[[nodiscard]] std::string parse_pages(std::string_view text, page_range& into);
[[nodiscard]] std::string parse_spool_place(std::string_view text, spool_place& into);

/// What `--type` and `--code` choose together, as a writer's selection does: interface data by its
/// code if any is given, entries of CP's trace table by their event. Neither given: everything. The
/// texts have been looked at before: what is wrong in them is left out.
[[nodiscard]] trace_ring::record::cptrap_selection selection_of(
    const std::vector<std::string>& types, const std::vector<std::string>& codes);

}  // namespace trace_reduce
