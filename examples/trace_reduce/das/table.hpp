// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A DAS trace table in an image of guest storage: its header, what is inconsistent in it, and its
/// entries from the oldest to the newest or back. Nothing in the image is trusted: a table has at
/// most 2^19 entries to be read, one for each 32 bytes of 24-bit storage.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/das/controls.hpp>
#include <trace_ring/das/designation.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/das/table_entries.hpp>
#include <trace_ring/reduce/source/format_error.hpp>

#include "guest_image.hpp"
#include "place.hpp"

namespace trace_reduce::das_storage {

namespace das = trace_ring::das;
namespace claim = trace_ring::claim;

/// A word or an address as the field writes it: X'00002000', X'002000'.
[[nodiscard]] inline std::string quoted(std::uint32_t value, int digits = 8) {
    char text[16];
    std::snprintf(text, sizeof text, "X'%0*X'", digits, static_cast<unsigned>(value));
    return text;
}

/// A part of a table. The entries of one part lie one after the other in storage.
struct item {
    enum class kind : std::uint8_t {
        end,      ///< no more
        entry,    ///< an entry, in `bytes`
        zeros,    ///< entries of 32 zeros: never used, or filled with zeros
        missing,  ///< entries that are not in the file
    };
    kind what = kind::end;
    std::uint32_t address = 0;  ///< of the first of them in storage
    std::uint32_t entries = 1;
    std::uint64_t offset = 0;  ///< of the first byte in the file, or where it is missed
    bool current = false;      ///< the entry that current designates; never one of several
    trace_ring::record::das_entry bytes{};
};

class table {
public:
    using controls = claim::controls<std::uint32_t>;

    /// Reads the header. Throws format_error if the image does not have it, or word 84 is zero.
    /// `image` must outlive the table.
    table(const guest_image& image, const place& where)
        : image_(image), designation_(image.word(where.word)), word_(where.word) {
        if (where.header) {
            header_ = *where.header;
        } else {
            if (!designation_) refuse(word_, "the word at location 84 is ");
            if (*designation_ == 0) {
                throw trace_ring::format_error(
                    image_.name(), image_.offset(word_),
                    "the word at location 84 is zero: it designates no trace table");
            }
            header_ = das::designation{*designation_}.header();
        }
        controls_ = {header_word(das::current_offset), header_word(das::first_offset),
                     header_word(das::last_offset)};
        set_entries();
        judge();
    }

    [[nodiscard]] std::uint32_t header() const noexcept { return header_; }
    /// The header's offset in the file.
    [[nodiscard]] std::uint64_t offset() const { return image_.offset(header_); }
    [[nodiscard]] const controls& words() const noexcept { return controls_; }
    /// Entries of the table that lie in storage on 32-byte boundaries.
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// The word at location 84; nothing if it is not in the image.
    [[nodiscard]] const std::optional<std::uint32_t>& word_84() const noexcept {
        return designation_;
    }
    /// Word 84 designates this header, so its bit 0 is this table's gate.
    [[nodiscard]] bool is_designated() const noexcept {
        return designation_ && das::designation{*designation_}.header() == header_;
    }
    /// "open" or "closed"; empty if word 84 is not in the image, or designates another header.
    [[nodiscard]] const char* gate() const noexcept {
        if (!is_designated()) return "";
        return das::designation{*designation_}.gate_open() ? "open" : "closed";
    }
    /// The entry that the next trace uses; nothing if it meets a specification exception.
    [[nodiscard]] std::optional<std::uint32_t> next_entry() const noexcept {
        const auto next = claim::das_rule::advance(controls_, claim::das_entry_bytes).entry;
        if (!claim::on_entry_boundary(next)) return {};
        return claim::entry_address(next);
    }
    /// Inconsistencies, by their offset in the file.
    [[nodiscard]] const std::vector<trace_ring::damage>& faults() const noexcept { return faults_; }
    /// What is unusual, and sound.
    [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

    /// The next part, from the oldest entry on or, backward, from the newest. Linear in its
    /// entries.
    [[nodiscard]] item next(bool backward) {
        if (ahead_.what == item::kind::end) ahead_ = read(backward);
        item out = ahead_;
        if (out.what == item::kind::end) return out;
        for (ahead_ = read(backward); continues(out, ahead_, backward); ahead_ = read(backward)) {
            ++out.entries;
            if (backward) {
                out.address = ahead_.address;
                out.offset = ahead_.offset;
            }
        }
        return out;
    }

private:
    static constexpr std::uint32_t most_entries = (das::address_mask + 1) / claim::das_entry_bytes;

    [[noreturn]] void refuse(std::uint32_t address, const std::string& what) const {
        throw trace_ring::format_error(
            image_.name(), image_.offset(address),
            what + image_.absence() + ": " + quoted(address, 6) + image_.hint(address, 4));
    }
    [[nodiscard]] std::uint32_t header_word(std::uint32_t offset) const {
        const auto address = (header_ + offset) & das::address_mask;
        const auto word = image_.word(address);
        if (!word) refuse(address, "the trace-table-entry header is ");
        return *word;
    }

    /// The entries that lie on 32-byte boundaries: if first does not, no wrap can succeed, and
    /// those above it are all there are.
    void set_entries() {
        auto usable = controls_;
        const auto askew = usable.first % claim::das_entry_bytes;
        if (askew != 0) {
            usable.first += claim::das_entry_bytes - askew;
            if (usable.first < controls_.first || usable.first >= usable.last) return;
        }
        const das::table_entries entries(usable);
        start_ = usable.first;
        entries_ = entries;
        count_ = entries.count();
        most_ = count_;
        if (count_ > most_entries) {
            // Addresses repeat. What lies from first to current was written since the last wrap.
            const auto since = (usable.current - usable.first) / claim::das_entry_bytes + 1;
            most_ = entries.has_newest() ? (std::min)(since, most_entries) : 0;
            skipped_ = count_ - most_;
        }
    }

    void fault(std::uint32_t word_offset, std::string what) {
        const auto address = (header_ + word_offset) & das::address_mask;
        faults_.push_back({image_.offset(address), std::move(what)});
    }
    void judge() {
        const auto [current, first, last] = controls_;
        if (is_designated() && das::designation{*designation_}.gate_open() &&
            !das::designation{*designation_}.well_formed()) {
            faults_.push_back({image_.offset(word_),
                               "bits 29-31 of the word at location 84, " + quoted(*designation_) +
                                   ", are not zero: a trace meets a specification exception"});
        }
        if (!has_newest()) {
            if (current + claim::das_entry_bytes == first && next_entry()) {
                notes_.push_back(
                    "current is one entry before the first: the next trace uses the first entry, "
                    "and "
                    "entries are shown by address");
            } else {
                fault(das::current_offset,
                      "the current-entry control, " + quoted(current) +
                          ", is no entry of the table: the order of entries is not known, and "
                          "they are shown by address");
            }
        }
        if (!claim::on_entry_boundary(first)) {
            fault(das::first_offset, "bits 27-31 of the first-entry control, " + quoted(first) +
                                         ", are not zero: a wrap meets a specification exception");
        }
        if (last <= first) {
            fault(das::last_offset, "the last-entry control, " + quoted(last) +
                                        ", is not above the first-entry control, " + quoted(first));
        } else if (const auto over = (first - last) % claim::das_entry_bytes;
                   over != 0 && claim::on_entry_boundary(first)) {
            notes_.push_back("the last entry runs " + std::to_string(over) +
                             (over == 1 ? " byte over last" : " bytes over last"));
        }
        if (count_ > most_entries) {
            fault(das::last_offset, "the table has " + std::to_string(count_) +
                                        " entries, and 24-bit storage has room for " +
                                        std::to_string(most_entries) +
                                        (most_ != 0 ? ": those from first to current are shown"
                                                    : ": they are not shown"));
        }
        if ((current | first | last) >> 24 != 0) {
            notes_.push_back(
                "bits 0-7 of a control word are not zero: they take part in the compare, and not "
                "in addresses");
        }
        find_overlap("the header", header_, 12);
        if (is_designated()) find_overlap("the word at location 84", word_, 4);
    }
    /// Words in the table that a trace overwrites, and that are no entry's: reports each entry
    /// that has some of them. 24-bit addresses wrap.
    void find_overlap(const char* what, std::uint32_t address, std::uint32_t bytes) {
        if (!entries_) return;
        std::optional<std::uint32_t> reported;
        for (std::uint32_t i = 0; i < bytes; i += 4) {
            const auto word = (address + i) & das::address_mask;
            const auto entry = claim::entry_address(word);
            const auto number = ((word - start_) & das::address_mask) / claim::das_entry_bytes;
            if (number >= count_ || entry == reported) continue;
            reported = entry;
            faults_.push_back({image_.offset(word), std::string(what) + ", " + quoted(address, 6) +
                                                        ", lies in the table's entry " +
                                                        quoted(entry, 6) +
                                                        ": a trace to that entry overwrites it"});
        }
    }
    [[nodiscard]] bool has_newest() const noexcept { return entries_ && entries_->has_newest(); }

    /// One entry, as a part.
    [[nodiscard]] item read(bool backward) {
        item out;
        if (done_ == most_) return out;
        const auto nth = skipped_ + (backward ? most_ - 1 - done_ : done_);
        ++done_;
        const auto control = entries_->control(nth);
        out.address = claim::entry_address(control);
        out.current = has_newest() && nth == count_ - 1;
        out.offset = image_.offset(out.address);
        if (!image_.read(out.address, out.bytes.payload)) {
            out.what = item::kind::missing;
            out.bytes = {};
        } else {
            const bool zeros = out.bytes == trace_ring::record::das_entry{};
            out.what = zeros ? item::kind::zeros : item::kind::entry;
        }
        return out;
    }
    [[nodiscard]] static bool continues(const item& one, const item& next, bool backward) noexcept {
        if (one.what != next.what || one.what == item::kind::entry || one.current || next.current) {
            return false;
        }
        constexpr auto size = claim::das_entry_bytes;
        return backward ? next.address + size == one.address
                        : one.address + one.entries * size == next.address;
    }

    const guest_image& image_;
    std::optional<std::uint32_t> designation_;
    std::uint32_t word_;  // its address
    std::uint32_t header_ = 0;
    controls controls_{};
    std::optional<das::table_entries> entries_{};
    std::uint32_t start_ = 0;  // the first control on a 32-byte boundary
    std::uint32_t count_ = 0;
    std::uint32_t skipped_ = 0, most_ = 0;  // the oldest that are not read, and all that are
    std::uint32_t done_ = 0;
    item ahead_{};
    std::vector<trace_ring::damage> faults_{};
    std::vector<std::string> notes_{};
};

}  // namespace trace_reduce::das_storage
