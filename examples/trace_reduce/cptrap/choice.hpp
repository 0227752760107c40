// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Which records of a CPTRAP file are shown, as the command line says it.
/// @code
///   --type interface,start_io,13-15    --code 0B,100-1FF    --page 5-7      --length 3D=24
///   --from '#5' --to 7:3               --from @20480        --to 0x5000     --to 25%
/// @endcode
/// Types and codes are hexadecimal, as all output prints them: 0B, 0x0B and X'0B' are one number.
/// All other numbers are decimal, or 0x1F or X'1F'.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/selection.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

#include "../options.hpp"

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
        offset,  ///< `offset` in the file: @20480, @0x5000, 0x5000
        share,   ///< `share` of the file's bytes: 25%
    };
    form what = form::record;
    std::uint64_t page = 0;
    std::uint64_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t share = 0;  ///< as when has it
};
inline constexpr std::string_view forms_of_spool_place =
    "a spool record of 4 KiB, from 0 (#5), a record in it (5:3), an offset (@20480, 0x5000), or a "
    "share of the file (25%)";

/// Each returns an empty text, or what is wrong; then `into` does not change.
[[nodiscard]] std::string parse_types(std::string_view text, std::vector<bool>& into);
[[nodiscard]] std::string parse_codes(std::string_view text, std::vector<bool>& into);
[[nodiscard]] std::string parse_pages(std::string_view text, page_range& into);
[[nodiscard]] std::string parse_spool_place(std::string_view text, spool_place& into);
/// `3D=24`, or `3D=header` for a type whose records have the header of interface data.
[[nodiscard]] std::string parse_length(std::string_view text,
                                       trace_ring::record::cptrap_lengths& into);

/// The lengths that the command line gives, which was checked before.
[[nodiscard]] trace_ring::record::cptrap_lengths lengths_of(const options& wanted);

/// What `--type` and `--code` choose together. Texts are as the command line has them, and were
/// checked before.
class record_choice {
public:
    /// Chooses everything.
    record_choice() = default;
    record_choice(const std::vector<std::string>& types, const std::vector<std::string>& codes);

    /// With types: records of these types, and interface data with one of these codes, as a
    /// writer's selection has it. With codes alone: all records that are printed with such a code.
    /// Constant time.
    [[nodiscard]] bool takes(const trace_ring::record::cptrap_view& record) const noexcept {
        if (what_ && what_->takes(record)) return true;
        return by_code_ ? record.headed && (*by_code_)[record.code] : !what_;
    }

private:
    std::optional<trace_ring::record::cptrap_selection> what_{};
    std::optional<std::vector<bool>> by_code_{};
};

}  // namespace trace_reduce
