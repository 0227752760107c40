// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Puts the clocks of several machines right, by what the command line says or by messages between
/// them, and says how sure that is.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text/append.hpp>

#include "../../counted.hpp"
#include "../inputs.hpp"
#include "../options.hpp"
#include "clock_offset.hpp"
#include "matching.hpp"
#include "offset_text.hpp"

namespace trace_reduce::position {

using inputs = std::vector<std::unique_ptr<input>>;

class offsets {
public:
    offsets(const inputs& from, const options& wanted, complaints& complain)
        : from_(from), wanted_(wanted), complain_(complain), placed_(from.size()) {}

    /// Shifts the files' dates, and reports that on stderr, and in `out` as comments or JSON lines.
    /// False: something is wrong, and was reported.
    [[nodiscard]] bool apply(exporter::text_buffer& out) {
        if (!wanted_.offsets.empty() && !apply_given()) return false;
        if (!wanted_.matches.empty() && !apply_matching()) return false;
        for (const auto& each : told_) {
            complain("trace-reduce", each.text);
            if (wanted_.format == output_format::json) {
                out += each.json.view();
            } else if (wanted_.format == output_format::text) {
                out += "# ";
                exporter::impl::append_escaped(out, each.text, 0);
                out += '\n';
            }
        }
        note_strangers();
        return true;
    }

private:
    struct line {
        std::string text;
        exporter::text_buffer json;
    };

    [[nodiscard]] static std::string seconds(std::int64_t ns) {
        exporter::text_buffer text;
        const auto bits = static_cast<std::uint64_t>(ns);
        text += ns < 0 ? '-' : '+';
        exporter::impl::append_seconds(text, ns < 0 ? 0 - bits : bits);
        return std::string(text.view()) + " s";
    }
    [[nodiscard]] static std::string plain_seconds(std::uint64_t ns) {
        exporter::text_buffer text;
        exporter::impl::append_seconds(text, ns);
        return std::string(text.view()) + " s";
    }
    [[nodiscard]] const std::string& name(std::size_t file) const {
        return from_[file]->file().name();
    }
    static void member(exporter::text_buffer& out, std::string_view key, std::int64_t value) {
        out += key;
        exporter::impl::append_number(out, value);
    }

    [[nodiscard]] bool apply_given() {
        for (const auto& text : wanted_.offsets) {
            const auto given = parse_offset(text);  // the command line was checked
            std::size_t which = from_.size();
            for (std::size_t i = 0; given && i < from_.size(); ++i) {
                if (name(i) == given->file) which = i;
            }
            for (std::size_t i = 0; given && which == from_.size() && i < wanted_.files.size();
                 ++i) {
                if (std::to_string(i + 1) != given->file) continue;
                for (std::size_t k = 0; k < from_.size(); ++k) {
                    if (name(k) == wanted_.files[i]) which = k;
                }
            }
            if (!given || which == from_.size()) {
                complain_.system("--offset " + text + ": no file of that name or number is read");
                return false;
            }
            if (!from_[which]->file().time().known()) {
                complain_.system("--offset " + text +
                                 ": its clock was never compared with the system's");
                return false;
            }
            from_[which]->file().shift_realtime(given->ns);
            placed_[which] = true;
            auto& told = told_.emplace_back();
            told.text = name(which) + ": clock offset " + seconds(given->ns) + ", as given";
            begin(told.json, which);
            member(told.json, R"(,"source":"given","offset_ns":)", given->ns);
            told.json += "}\n";
        }
        return true;
    }
    static void begin(exporter::text_buffer& out, std::string_view file) {
        out += R"({"kind":"clock_offset","file":)";
        exporter::impl::append_json_string(out, file);
    }
    void begin(exporter::text_buffer& out, std::size_t file) const { begin(out, name(file)); }

    [[nodiscard]] bool apply_matching() {
        if (from_.size() < 2) {
            complain_.system("--match needs records of two files");
            return false;
        }
        std::vector<match_rule> rules;
        for (const auto& text : wanted_.matches) {
            if (auto rule = parse_match(text)) rules.push_back(std::move(*rule));
        }
        std::vector<messages> all;
        all.reserve(from_.size());
        std::uint64_t ambiguous = 0;
        for (const auto& each : from_) {
            ambiguous += all.emplace_back(each->file(), rules).ambiguous();
        }
        if (ambiguous != 0) {
            std::fprintf(stderr, "trace-reduce: --match: %s left out\n",
                         counted(ambiguous, "value that is there more than once was",
                                 "values that are there more than once were")
                             .c_str());
        }
        // The first file's clock is the reference, and the clocks of files with a given offset. The
        // others follow one after the other, each by the most certain of the known clocks.
        std::vector<std::uint64_t> off(from_.size());  // the uncertainty of each
        std::vector<std::int64_t> shift(from_.size());
        placed_[0] = true;
        for (;;) {
            best_pair best;
            for (std::size_t to = 0; to < from_.size(); ++to) {
                for (std::size_t by = 0; !placed_[to] && by < from_.size(); ++by) {
                    if (!placed_[by]) continue;
                    const auto found = all[by].offset_of(all[to], misread(by) + misread(to));
                    best.consider(found, by, to, off[by]);
                }
            }
            if (!best.offset) break;
            if (!place(best, off, shift)) return false;
        }
        for (std::size_t i = 0; i < from_.size(); ++i) {
            if (placed_[i]) continue;
            complain_.system(name(i) + ": --match finds no record of it in the other files" +
                             (all[i].empty() ? ", and none of these events in it" : ""));
            return false;
        }
        return true;
    }

    using verdict = clock_offset::verdict;

    struct best_pair {
        std::optional<clock_offset> offset{};
        std::size_t by = 0;
        std::size_t to = 0;
        std::uint64_t uncertainty = ~std::uint64_t{0};

        void consider(const clock_offset& found, std::size_t by_file, std::size_t to_file,
                      std::uint64_t off) {
            if (found.state() == verdict::unknown) return;
            const auto own = found.uncertainty();
            const std::uint64_t sum = own && *own < ~off ? *own + off : ~std::uint64_t{0};
            if (offset && sum >= uncertainty) return;
            offset = found;
            by = by_file;
            to = to_file;
            uncertainty = sum;
        }
    };
    [[nodiscard]] std::uint64_t misread(std::size_t file) const {
        const double ns = from_[file]->file().time().uncertainty_ns();
        return ns < 1e18 ? static_cast<std::uint64_t>(ns + 0.5) : 1'000'000'000'000'000'000;
    }

    [[nodiscard]] bool place(const best_pair& best, std::vector<std::uint64_t>& off,
                             std::vector<std::int64_t>& shift) {
        const auto& found = *best.offset;
        const std::string pairs = counted(found.forth(), "record", "records") + " sent there and " +
                                  std::to_string(found.back()) + " received from there";
        const std::string& by = name(best.by);
        if (found.state() == verdict::contradictory) {
            complain_.system(name(best.to) + ": --match: its clock is at most " +
                             seconds(*found.at_most()) + " and at least " +
                             seconds(*found.at_least()) + " ahead of that of " + by + ", by " +
                             pairs + ": contradictory by " + plain_seconds(found.contradiction()) +
                             "; a clock drifts, or records were matched that do not belong "
                             "together (--offset sets an offset)");
            return false;
        }
        // The offset refers to the dates that the file has.
        const std::int64_t ns = shift[best.by] - found.ahead();
        from_[best.to]->file().shift_realtime(ns);
        shift[best.to] = ns;
        placed_[best.to] = true;
        auto& told = told_.emplace_back();
        begin(told.json, best.to);
        told.json += R"(,"source":"matched","reference":)";
        exporter::impl::append_json_string(told.json, by);
        member(told.json, R"(,"offset_ns":)", ns);
        if (found.state() == verdict::known) {
            off[best.to] = best.uncertainty;
            told.text = name(best.to) + ": clock offset " + seconds(ns) + ", within " +
                        plain_seconds(best.uncertainty) + ", by " + pairs + " (" + by + ")";
            told.json += R"(,"uncertainty_ns":)";
            exporter::impl::append_number(told.json, best.uncertainty);
        } else {
            const bool above = found.at_most().has_value();
            told.text =
                name(best.to) + ": clock offset " + seconds(ns) +
                ", not an estimate: records went in one direction only, so that its clock is " +
                (above ? "at most " + seconds(*found.at_most())
                       : "at least " + seconds(*found.at_least())) +
                " ahead of that of " + by + ", by " + pairs;
        }
        if (found.at_most()) {
            member(told.json, R"(,"ahead_at_most_ns":)", *found.at_most());
        }
        if (found.at_least()) {
            member(told.json, R"(,"ahead_at_least_ns":)", *found.at_least());
        }
        told.json += R"(,"sent":)";
        exporter::impl::append_number(told.json, found.forth());
        told.json += R"(,"received":)";
        exporter::impl::append_number(told.json, found.back());
        told.json += "}\n";
        return true;
    }

    /// Files of one machine, since one start of it, have the same distance between the monotonic
    /// clock and the dates, except for corrections of the date.
    void note_strangers() const {
        constexpr std::int64_t set_at_most = 1'000'000'000;
        std::optional<std::int64_t> first;
        for (std::size_t i = 0; i < from_.size(); ++i) {
            const auto readings = from_[i]->file().time().snapshots();
            if (readings.empty() || placed_[i]) continue;
            const auto apart =
                static_cast<std::int64_t>(readings.front().realtime - readings.front().monotonic);
            if (!first) first = apart;
            const std::uint64_t wide = static_cast<std::uint64_t>(apart) -
                                       static_cast<std::uint64_t>(*first) + set_at_most;
            if (wide <= 2 * static_cast<std::uint64_t>(set_at_most)) continue;
            complain("trace-reduce",
                     name(i) + ": of another machine than " + name(0) +
                         ", or another start of it: their times are compared by date only "
                         "(--offset, --match)");
        }
    }

    const inputs& from_;
    const options& wanted_;
    complaints& complain_;
    std::vector<bool> placed_;
    std::vector<line> told_;
};

}  // namespace trace_reduce::position
