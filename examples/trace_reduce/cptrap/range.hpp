// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// From where to where a CPTRAP file is wanted: --page, --from and --to in one. Spool records have
/// one size, so that a place is gone to: nothing before it is read.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/cptrap/spool_record.hpp>

#include "../options.hpp"
#include "../position/when.hpp"
#include "choice.hpp"

namespace trace_reduce {

namespace reduce = trace_ring::reduce;

class spool_range {
public:
    /// Of a file that has `bytes` now. What the command line says was checked.
    spool_range(const options& wanted, std::uint64_t bytes) {
        if (!wanted.pages.empty()) static_cast<void>(parse_pages(wanted.pages, pages_));
        from_ = bound_of(wanted.from, bytes);
        to_ = bound_of(wanted.to, bytes);
    }

    /// The same without --from and --to.
    [[nodiscard]] spool_range pages_alone() const {
        spool_range out = *this;
        out.from_ = out.to_ = std::nullopt;
        return out;
    }
    /// The spool record that what is wanted begins in.
    [[nodiscard]] std::uint64_t first() const noexcept {
        return std::max(pages_.first, from_ ? from_->page() : 0);
    }
    /// The one after that in which it ends.
    [[nodiscard]] std::uint64_t end() const noexcept {
        const std::uint64_t end = pages_.last == last ? last : pages_.last + 1;
        return std::min(end, to_ ? to_->page_behind() : last);
    }
    /// `item` comes before what is wanted, or after it.
    [[nodiscard]] bool before(const reduce::spool_item& item) const noexcept {
        return item.number < pages_.first || (from_ && !from_->reached(item));
    }
    [[nodiscard]] bool after(const reduce::spool_item& item) const noexcept {
        return item.number > pages_.last || (to_ && to_->reached(item));
    }

private:
    static constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
    static constexpr std::uint64_t page_bytes = trace_ring::record::spool_record_bytes;

    struct bound {
        spool_place at;  // of a share, the offset

        [[nodiscard]] bool by_record() const noexcept {
            return at.what == spool_place::form::record;
        }
        [[nodiscard]] std::uint64_t page() const noexcept {
            return by_record() ? at.page : at.offset / page_bytes;
        }
        [[nodiscard]] std::uint64_t page_behind() const noexcept {
            const bool within = by_record() ? at.index != 0 : at.offset % page_bytes != 0;
            return within && page() != last ? page() + 1 : page();
        }
        [[nodiscard]] bool reached(const reduce::spool_item& item) const noexcept {
            if (!by_record()) return item.offset >= at.offset;
            return item.number != at.page ? item.number > at.page : item.index >= at.index;
        }
    };
    [[nodiscard]] static std::optional<bound> bound_of(const std::string& text,
                                                       std::uint64_t bytes) {
        spool_place at;
        if (text.empty() || !parse_spool_place(text, at).empty()) return std::nullopt;
        if (at.what == spool_place::form::share) {
            const auto part = static_cast<long double>(at.share) / when::whole;
            at.offset = at.share == when::whole
                            ? bytes
                            : static_cast<std::uint64_t>(static_cast<long double>(bytes) * part);
        }
        return bound{at};
    }

    page_range pages_;
    std::optional<bound> from_;
    std::optional<bound> to_;
};

}  // namespace trace_reduce
