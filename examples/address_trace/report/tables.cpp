// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <utility>

#include <heap_recorder/report/quantity.hpp>

namespace address_trace {
namespace {

[[nodiscard]] std::string kind_name(reference_kind kind) {
    for (const auto& each : trace_ring::names_of<reference_kind>::list) {
        if (each.value == kind) return std::string(std::string_view(each.name));
    }
    return "-";
}

class table_maker {
public:
    table_maker(const findings& of, const place_of& where, std::size_t most)
        : of_(of), where_(where), most_(most), sites_(of.fed->sites().all()) {}

    [[nodiscard]] std::vector<table> all() {
        references();
        const auto caches = of_.cache_results();
        if (!caches.empty()) misses(caches);
        const auto by_place =
            sum_by_place(sites_, caches, [&](std::uint64_t site) { return place_at(site); });
        places("functions", "Functions", by_place.functions, caches, true);
        places("source", "Lines of the source", by_place.lines, caches, false);
        if (!of_.objects.empty()) objects();
        if (of_.coherent != nullptr) coherence(*of_.coherent);
        if (of_.lines != nullptr) {
            hottest(*of_.lines);
            sharing("false_sharing", "False sharing: lines of which threads use different bytes",
                    of_.lines->false_sharing());
            sharing("true_sharing", "True sharing: lines of which threads use the same bytes",
                    of_.lines->true_sharing());
        }
        if (of_.distances != nullptr) distances(of_.distances->result(), of_.distances->line());
        if (of_.working != nullptr) working_sets(*of_.working);
        if (of_.stepping != nullptr) stepping(of_.stepping->results());
        return std::move(out_);
    }

private:
    table& add(std::string name, std::string title, std::vector<std::string> columns) {
        return out_.emplace_back(
            table{std::move(name), std::move(title), std::move(columns), {}, {}});
    }
    const place& place_at(std::uint64_t site) {
        const auto [at, is_new] = places_.try_emplace(site);
        if (is_new) at->second = where_(site);
        return at->second;
    }
    /// "function file:line".
    [[nodiscard]] std::string site_text(site_id id) {
        if (id >= sites_.size() || sites_[id].site == 0) return "-";
        const place& at = place_at(sites_[id].site);
        return at.file.empty() ? at.function : at.function + ' ' + at.where();
    }

    /// The same for the innermost place in the program's own source, if known, because allocators
    /// are inlined.
    [[nodiscard]] std::string allocator_text(site_id id) {
        if (id >= sites_.size() || sites_[id].site == 0) return "-";
        const place& at = place_at(sites_[id].site);
        return at.own_line.empty() ? at.function : at.function + ' ' + at.own_line;
    }
    [[nodiscard]] std::string owner_of(std::uint64_t line) {
        std::string out = owners_.find(line, std::uint64_t{1} << shared_line_bits,
                                       [this](site_id site) { return allocator_text(site); });
        return out.empty() ? "-" : out;
    }

    void references() {
        const reference_counts sums = sum(sites_);
        table& made = add("references", "References", {"kind", "count", "share", "bytes"});
        const auto row = [&](const char* kind, std::uint64_t count, cell bytes) {
            if (count != 0)
                made.rows.push_back(
                    {kind, count, cell::share(count, sums.references()), std::move(bytes)});
        };
        row("loads", sums.loads, sums.bytes_loaded);
        row("stores", sums.stores, sums.bytes_stored);
        row("atomic updates", sums.updates, sums.bytes_updated);
        row("failed compares", sums.failed_compares, sums.bytes_compared);
        row("blocks", sums.blocks, "-");
        row("functions begun", sums.enters, "-");
        row("functions ended", sums.exits, "-");
        row("all", sums.references(), sums.bytes());
        if (sums.allocations != 0)
            made.rows.push_back({"allocations", sums.allocations, "-", sums.bytes_allocated});
        if (!of_.fed->sites().complete())
            made.note = "There are more sites than are kept apart: tables by place lack some.";
        if (!of_.gaps.empty())
            made.note += fmt::format("{}Gaps: {}.", made.note.empty() ? "" : " ", of_.gaps);
    }

    void objects() {
        table& made = add("objects", "Code that has hooks",
                          {"object", "functions", "with hooks", "bytes", "with hooks", "share"});
        for (const object_coverage& each : of_.objects) {
            if (each.unknown.empty()) {
                made.rows.push_back({each.path, each.functions, each.hooked_functions, each.bytes,
                                     each.hooked_bytes,
                                     cell::share(each.hooked_bytes, each.bytes)});
            } else {
                made.rows.push_back({each.path, "-", "-", "-", "-", each.unknown});
            }
        }
        made.note = "What the other code references is not in the trace.";
        // In full here, because a column may have no room for a reason.
        if (const std::string unknown = describe_unknown(of_.objects); !unknown.empty())
            made.note += " Not known: " + unknown + '.';
    }

    void coherence(const coherent_caches& of) {
        table& made = add("coherence", "A cache for each thread: " + describe(of.shape()),
                          {"thread", "references", "misses", "by sharing", "share", "invalidated",
                           "written back"});
        for (const coherence_counts& each : of.results()) {
            made.rows.push_back({std::uint64_t{each.thread}, each.references, each.misses,
                                 each.coherence_misses,
                                 cell::share(each.coherence_misses, each.misses), each.invalidated,
                                 each.written_back * of.shape().line});
        }
        made.note =
            "Written back are bytes. What threads do side by side is seen one run behind "
            "the other: misses by sharing are a lower bound.";
        if (of.left_out() != 0)
            made.note += fmt::format(" {} references of more threads are left out.",
                                     heap::count_text(of.left_out()));
        table& lines = add("contended", "The lines that threads take from each other most",
                           {"line", "invalidations", "misses", "last taken by", "owner"});
        for (const contended_line& each : of.contended(most_)) {
            if (each.invalidations == 0) continue;
            lines.rows.push_back({cell::address(each.address), each.invalidations,
                                  each.coherence_misses, site_text(each.site),
                                  owner_of(each.address)});
        }
        // absent: forgotten (examples/address_trace/address_coherence_test)
        if (lines.rows.empty() && of.forgotten() == 0) lines.note = "None.";
        if (of.forgotten() != 0)
            lines.note = fmt::format("{} lines that were taken less are forgotten.",
                                     heap::count_text(of.forgotten()));
    }

    void misses(const std::vector<cache_result>& caches) {
        table& made = add("caches", "Caches",
                          {"cache", "shape", "references", "misses", "share", "of loads",
                           "of stores", "of code"});
        for (const cache_result& each : caches) {
            const miss_counts all = each.all();
            const auto of = [](const miss_counts& kind) {
                return kind.references == 0 ? cell("-") : cell(kind.misses);
            };
            made.rows.push_back({each.shape.name, describe(each.shape), all.references, all.misses,
                                 cell::share(all.misses, all.references), of(each.loads),
                                 of(each.stores), of(each.fetches)});
        }
        // Optional columns are present if at least one cache has them.
        const auto column = [&](const char* name, auto counts, auto count_of) {
            if (!std::ranges::any_of(caches,
                                     [&](const cache_result& each) { return !!(each.*counts); }))
                return false;
            made.columns.emplace_back(name);
            for (std::size_t i = 0; i < caches.size(); ++i) {
                const auto& its = caches[i].*counts;
                made.rows[i].push_back(its ? cell(count_of(*its)) : cell("-"));
            }
            return true;
        };
        const auto note = [&](const std::string& text) {
            made.note += fmt::format("{}{}", made.note.empty() ? "" : " ", text);
        };
        std::uint64_t unknown = 0;
        for (const cache_result& each : caches) unknown = std::max(unknown, each.unknown_blocks);
        // absent: unknown_blocks (examples/address_trace/address_analysis_test)
        if (unknown != 0)
            note(
                fmt::format("{} executions of blocks whose code is unknown: each counts as one "
                            "instruction of one byte.",
                            heap::count_text(unknown)));
        if (column("written back", &cache_result::written,
                   [](const written_bytes& its) { return its.back; }) &&
            column("still dirty", &cache_result::written,
                   [](const written_bytes& its) { return its.still_dirty; }))
            note(
                "Written back are bytes, to the next level, or to memory from the last one; those "
                "of lines that were dirty at the end are still to be.");
        if (column("invalidated", &cache_result::invalidated,
                   [](std::uint64_t lines) { return lines; }))
            note("Invalidated are lines that left because they left an inclusive level behind.");
        if (column("prefetched", &cache_result::prefetched,
                   [](const prefetch_counts& its) { return its.lines; }) &&
            column("used", &cache_result::prefetched,
                   [](const prefetch_counts& its) { return its.used; }))
            note("Prefetched lines are used if a reference finds them before they leave.");
    }

    void places(const char* name, const char* title, std::span<const place_counts> all,
                const std::vector<cache_result>& caches, bool are_functions) {
        if (all.empty()) return;
        table& made = add(name, title, {are_functions ? "function" : "line", "object"});
        if (are_functions) made.columns.emplace_back("calls");
        for (const char* const column : {"blocks", "loads", "stores", "updates"})
            made.columns.emplace_back(column);
        for (const cache_result& each : caches) made.columns.push_back(each.shape.name + " misses");
        for (const place_counts& each : all.first(std::min(most_, all.size()))) {
            std::vector<cell> row{are_functions ? heap::without_arguments(each.name) : each.name,
                                  symbols::file_name(each.object)};
            if (are_functions) row.emplace_back(each.calls);
            row.insert(row.end(),
                       {each.counts.blocks, each.counts.loads + each.counts.failed_compares,
                        each.counts.stores, each.counts.updates});
            for (std::size_t i = 0; i < caches.size(); ++i) row.emplace_back(each.misses.at(i));
            made.rows.push_back(std::move(row));
        }
        if (all.size() > most_) made.note = fmt::format("And {} more.", all.size() - most_);
    }

    void hottest(const line_use& lines) {
        table& made = add("hottest", "The lines of 64 bytes that are used most",
                          {"line", "loads", "stores", "share", "owner"});
        for (const used_line& each : lines.hottest(most_)) {
            made.rows.push_back({cell::address(each.address), each.loads, each.stores,
                                 cell::share(each.references(), lines.references()),
                                 owner_of(each.address)});
        }
        if (!lines.complete()) {
            made.note = fmt::format(
                "More lines are used than are kept: a count may lack up to {} that came early.",
                heap::count_text(lines.missed()));
        }
    }

    void sharing(const char* name, const char* title, std::span<const shared_line> all) {
        table& made = add(name, title,
                          {"line", "hand-overs", "at most", "false", "thread", "bytes", "stored",
                           "loads", "stores", "site", "owner"});
        for (const shared_line& each : all.first(std::min(most_, all.size()))) {
            const line_sharing& how = *each.how;
            for (std::size_t i = 0; i < how.size(); ++i) {
                const line_sharer& its = how[i];
                made.rows.push_back({cell::address(each.address), how.hand_overs(),
                                     each.most_hand_overs(), how.false_hand_overs(),
                                     std::uint64_t{its.thread}, bytes_text(its.touched),
                                     bytes_text(its.written), its.loads, its.stores,
                                     site_text(its.site), owner_of(each.address)});
            }
        }
        const bool has_others = std::ranges::any_of(
            all, [](const shared_line& each) { return each.references > each.how->attributed(); });
        // absent: shared_forgotten (examples/address_trace/address_lines_test)
        if (all.empty() && of_.lines->shared_forgotten() == 0) made.note = "None.";
        if (all.size() > most_) made.note = fmt::format("And {} more.", all.size() - most_);
        if (has_others)
            made.note += fmt::format(
                "{}A thread's loads before the first store to a line are in `at most`, but not in "
                "the "
                "counts of the thread.",
                made.note.empty() ? "" : " ");
        if (of_.lines->shared_forgotten() != 0) {
            made.note += fmt::format(
                "{}{} shared lines were forgotten, none of which had been handed over more than "
                "{} times.",
                made.note.empty() ? "" : " ", heap::count_text(of_.lines->shared_forgotten()),
                heap::count_text(of_.lines->most_forgotten_hand_overs()));
        }
    }

    void distances(const distance_histogram& found, std::uint64_t line) {
        table& made = add(
            "reuse", "Reuse distances, and what fully associative caches miss",
            {"distance", "uses", "share", "cache", "misses", "share of uses", "standard error"});
        std::size_t last = distance_histogram::buckets;
        while (last > 1 && found.again[last - 1] == 0) --last;
        for (std::size_t power = 0; power < last; ++power) {
            const std::uint64_t from = power == 0 ? 0 : std::uint64_t{1} << (power - 1);
            const std::string range =
                power <= 1 ? fmt::format("{}", power) : fmt::format("{}-{}", from, 2 * from - 1);
            const auto count = [](double of) { return static_cast<std::uint64_t>(of + 0.5); };
            const std::uint64_t lines = power < 58 ? std::uint64_t{1} << power : 0;
            made.rows.push_back(
                {range, count(found.again[power]),
                 cell::share(found.again[power], found.references), heap::bytes_text(lines * line),
                 count(found.missed[power]), cell::share(found.missed[power], found.references),
                 found.exact() ? cell("-") : cell::share(found.standard_error(power), 1.0)});
        }
        made.note = fmt::format("{} uses of a line were the first.",
                                heap::count_text(static_cast<std::uint64_t>(found.first + 0.5)));
        if (!found.exact()) {
            made.note += fmt::format(
                " Distances from 16 on are estimated from one line in {}: a share is wrong by more "
                "than twice its standard error in one case of twenty.",
                found.one_in);
        }
    }

    void working_sets(const working_set& found) {
        table& made = add(
            "working_set", "Working sets",
            {"from reference", "references", "lines", "bytes in lines", "pages", "bytes in pages"});
        std::uint64_t from = 0;
        const auto put = [&](cell first, const working_set_interval& each) {
            const auto lines = static_cast<std::uint64_t>(each.lines + 0.5);
            const auto pages = static_cast<std::uint64_t>(each.pages + 0.5);
            made.rows.push_back({std::move(first), each.references, lines, lines * found.line(),
                                 pages, pages * found.page()});
        };
        for (const working_set_interval& each : found.intervals()) {
            put(from, each);
            from += each.references;
        }
        put("all", found.total());
        made.note = fmt::format("To within {:.1f} % (standard error).",
                                100 * distinct_count::standard_error);
    }

    void stepping(std::vector<site_strides> all) {
        std::array<std::uint64_t, stride_kinds> by_kind{};
        std::uint64_t strides = 0;
        for (const site_strides& each : all) {
            by_kind[static_cast<std::size_t>(each.kind(sites_.at(each.site).size))] += each.strides;
            strides += each.strides;
        }
        table& kinds = add("stride_kinds", "How sites step from one address to the next",
                           {"stride", "loads and stores", "share"});
        for (std::size_t i = 0; i < stride_kinds; ++i) {
            if (by_kind[i] != 0)
                kinds.rows.push_back({name_of(static_cast<stride_kind>(i)), by_kind[i],
                                      cell::share(by_kind[i], strides)});
        }
        constexpr double least_share = 0.05;  // below this share, a stride is not dominant
        kinds.note = "A site is of the kind of the stride that half of its steps have.";
        std::ranges::stable_sort(all, std::greater{}, &site_strides::strides);
        table& made = add("strides", "Strides by site",
                          {"site", "kind", "steps", "stride", "share", "steps like"});
        for (const site_strides& each : std::span(all).first(std::min(most_, all.size()))) {
            const site_count& site = sites_[each.site];
            made.rows.push_back(
                {site_text(each.site), kind_name(site.kind), each.strides,
                 each.share() < least_share ? std::string("-") : fmt::format("{:+}", each.most),
                 cell::share(each.times, each.strides), name_of(each.kind(site.size))});
        }
        if (all.size() > most_) made.note = fmt::format("And {} more.", all.size() - most_);
    }

    const findings& of_;
    data_owners owners_ = of_.owners;
    const place_of& where_;
    std::size_t most_;
    std::vector<site_count> sites_;
    std::unordered_map<std::uint64_t, place> places_;
    std::vector<table> out_;
};

}  // namespace

std::vector<cache_result> findings::cache_results() const {
    std::vector<cache_result> out;
    for (const cache_misses* const each : caches) {
        for (cache_result& of_level : each->results()) out.push_back(std::move(of_level));
    }
    return out;
}

std::vector<table> make_tables(const findings& of, const place_of& where, std::size_t most) {
    return table_maker(of, where, most).all();
}

std::string bytes_text(line_bytes bytes) {
    std::string out;
    for (unsigned at = 0; at < 64;) {
        const auto skip = static_cast<unsigned>(std::countr_zero(bytes >> at));
        if (bytes >> at == 0) break;
        const unsigned first = at + skip;
        const auto count = static_cast<unsigned>(std::countr_one(bytes >> first));
        if (!out.empty()) out += ' ';
        out +=
            count == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, first + count - 1);
        at = first + count;
    }
    return out.empty() ? "-" : out;
}

}  // namespace address_trace
