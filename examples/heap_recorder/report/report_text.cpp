// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "quantity.hpp"
#include "sites.hpp"

namespace heap {
namespace {

// A writer of lines, some of them in colour.
class page {
public:
    explicit page(const text_style& style) : style_(style) {}

    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
        text_ += '\n';
    }
    void blank() { text_ += '\n'; }
    void heading(const std::string& text) { painted("1", text); }
    void warning(const std::string& text) { painted("1;31", text); }
    /// A name, then what there is to say, in lines of the page's width.
    void entry(std::string_view name, const std::string& text, bool warns = false) {
        constexpr std::size_t indent = 12;
        std::size_t column = indent;
        std::string out = fmt::format("{:<{}}", name, indent);
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find(' ', at), text.size());
            if (column + (end - at) > style_.width && column > indent) {
                out += '\n' + std::string(indent, ' ');
                column = indent;
            }
            out.append(text, at, end - at + 1);
            column += end - at + 1;
            at = end + 1;
        }
        while (out.ends_with(' ')) out.pop_back();
        warns ? warning(out) : line("{}", out);
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    void painted(const char* colour, const std::string& text) {
        style_.colour ? line("\x1b[{}m{}\x1b[0m", colour, text) : line("{}", text);
    }
    const text_style& style_;
    std::string text_;
};

[[nodiscard]] std::string blocks_text(std::uint64_t blocks) {
    return count_text(blocks) + (blocks == 1 ? " block" : " blocks");
}

[[nodiscard]] std::string lost_text(const trace_ring::loss_counts& lost) {
    std::string text;
    for (std::size_t i = 0; i < trace_ring::loss_cause_count; ++i) {
        const auto cause = static_cast<trace_ring::loss_cause>(i);
        if (lost[cause] == 0) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count_text(lost[cause]),
                            to_string(cause));
    }
    return text;
}

[[nodiscard]] std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return text;
}

void about(const process_profile& p, page& out) {
    const heap_sums& s = p.heap.sums();
    std::string taken =
        p.depth == 0 ? "no stacks" : fmt::format("stacks of {} frames by {}", p.depth, p.unwind);
    out.entry("recorded", fmt::format("{}, {} {}, {}", time_text(p.end - p.begin), p.calls.size(),
                                      p.calls.size() == 1 ? "thread" : "threads", taken));
    if (p.parent) {
        out.entry("forked",
                  fmt::format("from process {}, with {} in {}{}", *p.parent,
                              bytes_text(s.inherited_bytes), blocks_text(s.inherited_blocks),
                              p.inherited == inheritance::approximate
                                  ? ", about: the fork itself is not in the trace"
                                  : ""));
    }
    if (p.complete()) {
        // absent: first_loss, lost, unrecorded, perhaps_lost, damages
        // (examples/heap_recorder/heap_report_test)
        out.entry("lost", "nothing");
    } else {
        std::string text = fmt::format("{} records", count_text(p.lost.total()));
        if (p.lost.total() != 0) text += " (" + lost_text(p.lost) + ")";
        if (p.first_loss > p.begin) {
            text +=
                fmt::format("; nothing is missing before {}", time_text(p.first_loss - p.begin));
        }
        if (p.unrecorded != 0) {
            text +=
                fmt::format("; {} calls at the start were not recorded", count_text(p.unrecorded));
        }
        if (p.perhaps_lost != 0) {
            text += fmt::format("; {} records of the file, of which the process is not known",
                                count_text(p.perhaps_lost));
        }
        if (p.damages != 0) {
            text += fmt::format("; what {} damaged {} of the file held is not known",
                                count_text(p.damages), p.damages == 1 ? "place" : "places");
        }
        text += ". Sums are lower bounds; live bytes may be wrong either way";
        out.entry("LOST", text, true);
    }
    if (!p.passed_by.empty()) {
        std::string names;
        for (const auto& [function, object] : p.passed_by) {
            names += (names.empty() ? "" : ", ") + printable(function);
        }
        out.entry(
            "NOT SEEN",
            fmt::format("calls of {}, which {} has itself. What they take from a function that "
                        "is recorded is",
                        names, printable(p.passed_by.back().second)),
            true);
    }
    for (const auto& [functions, object] : p.bypassing) {
        out.entry("NOT SEEN",
                  fmt::format("calls of {} by {}: they go to another object's, past the recorder "
                              "(RTLD_DEEPBIND does that)",
                              printable(functions), printable(object)),
                  true);
    }
    if (s.unknown_frees + s.unseen_ends != 0) {
        std::string text;
        if (s.unknown_frees != 0) {
            text = fmt::format(
                "where {} came from that {} freed: another allocator's, or handed "
                "out by calls that do not pass the recorder",
                blocks_text(s.unknown_frees), s.unknown_frees == 1 ? "was" : "were");
        }
        if (s.unseen_ends != 0) {
            text += fmt::format(
                "{}the end of {}, whose {} handed out again: freed by calls that bypass the "
                "recorder; other blocks that are reported as never freed may have been freed in "
                "this way, too",
                text.empty() ? "" : "; ", blocks_text(s.unseen_ends),
                s.unseen_ends == 1 ? "address was" : "addresses were");
        }
        if (!p.complete()) text += ", or their records are lost";
        out.entry("NOT SEEN", text, true);
    }
    if (!p.executed.empty()) {
        out.entry("in the end", fmt::format("executed {}, another program: what was live then went "
                                            "with its memory",
                                            printable(p.executed)));
    }
    out.entry("peak",
              fmt::format("{} in {} at {}", bytes_text(s.peak_bytes), blocks_text(s.peak_blocks),
                          time_text(s.peak_time < p.begin ? 0 : s.peak_time - p.begin)));
    std::string never = fmt::format("{} in {}", bytes_text(s.live_bytes - s.live_inherited_bytes),
                                    blocks_text(s.live_blocks - s.live_inherited_blocks));
    if (s.live_inherited_blocks != 0) {
        never += fmt::format(", and {} in {} of the parent's", bytes_text(s.live_inherited_bytes),
                             blocks_text(s.live_inherited_blocks));
    }
    out.entry("never freed", never);
    const std::uint64_t ns = std::max<std::uint64_t>(p.end - p.begin, 1);
    const auto per_second = static_cast<double>(s.allocated_bytes) * 1e9 / static_cast<double>(ns);
    out.entry("churn",
              fmt::format("{} in {}, {}/s; short-lived {} of blocks, {} of bytes",
                          bytes_text(s.allocated_bytes), blocks_text(s.allocations),
                          bytes_text(static_cast<std::uint64_t>(std::min(per_second, 1e18))),
                          share_text(s.short_lived, s.allocations),
                          share_text(s.short_lived_bytes, s.allocated_bytes)));
    std::string calls;
    const call_counts counts = p.all_calls();
    for (std::size_t i = 0; i < call_kinds; ++i) {
        if (counts[i] == 0) continue;
        calls +=
            fmt::format("{}{} {}", calls.empty() ? "" : ", ", call_names[i], count_text(counts[i]));
    }
    // no count: of the calls that are listed
    out.entry("calls", !calls.empty() ? calls : p.complete() ? "none" : "none recorded");
    std::string odd;
    const auto add = [&odd](std::uint64_t count, const char* what) {
        if (count != 0)
            odd += fmt::format("{}{} {}", odd.empty() ? "" : ", ", count_text(count), what);
    };
    add(s.null_frees, "frees of null");
    add(s.failed, "failed");
    add(s.reused - s.unseen_ends, "addresses handed out before their realloc was recorded");
    if (!odd.empty()) out.entry("of these", odd);
}

void site_table(const std::vector<site>& sites, std::string_view title,
                std::uint64_t (*by)(const stack_sums&), const text_style& style, page& out) {
    std::vector<const site*> order;
    for (const auto& s : sites) {
        if (by(s.sums) != 0) order.push_back(&s);
    }
    if (order.empty() || style.top == 0) return;
    std::stable_sort(order.begin(), order.end(), [by](const site* a, const site* b) {
        return by(a->sums) != by(b->sums) ? by(a->sums) > by(b->sums) : a->name < b->name;
    });
    const std::size_t shown = std::min(order.size(), style.top);
    out.blank();
    out.heading(fmt::format("Call sites by {} ({} of {})", title, shown, order.size()));
    out.line("{:>10} {:>11} {:>10} {:>11}  {}", "allocated", "calls", "at peak", "never freed",
             "site");
    constexpr std::size_t indent = 47;
    const std::size_t room = style.width > indent + 20 ? style.width - indent : 20;
    for (std::size_t i = 0; i < shown; ++i) {
        const site& s = *order[i];
        std::string where = printable(s.where);
        std::string name = printable(s.name);
        // "python3.11+0x1234" says already where it is.
        const bool told = where.empty() || name.starts_with(where + "+");
        if (!told && where.size() + 4 < room) {
            name = fitted(name, room - where.size() - 3) + " (" + where + ")";
        }
        out.line("{:>10} {:>11} {:>10} {:>11}  {}", bytes_text(s.sums.bytes),
                 count_text(s.sums.calls), bytes_text(s.sums.peak_bytes),
                 bytes_text(s.sums.live_bytes), fitted(name, room));
        std::string callers;
        for (const auto& caller : s.callers) {
            const std::string next = " < " + printable(caller);
            if (callers.size() + next.size() > room) break;
            callers += next;
        }
        if (!callers.empty()) out.line("{:>{}}{}", "", indent, callers.substr(1));
    }
}

/// The least size of a class: "0 B", "1 B", "2 B", ... "512 KiB", "1 MiB".
[[nodiscard]] std::string power_text(std::size_t size_class) {
    constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (size_class == 0) return "0 B";
    const std::size_t power = size_class - 1;
    return fmt::format("{} {}", 1U << (power % 10), units[std::min(power / 10, units.size() - 1)]);
}

void sizes(const ledger& heap, const text_style& style, page& out) {
    const auto& counts = heap.size_counts();
    const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    if (most == 0) return;
    out.blank();
    out.heading("Requested sizes (from - below)");
    out.line("{:>21} {:>11} {:>10}", "bytes", "calls", "allocated");
    const std::size_t room = style.width > 60 ? std::min<std::size_t>(style.width - 46, 50) : 14;
    std::size_t first = 0;
    std::size_t last = counts.size() - 1;
    while (counts[first] == 0) ++first;
    while (counts[last] == 0) --last;
    for (std::size_t i = first; i <= last; ++i) {
        const std::string range =
            i <= 1 ? power_text(i) : power_text(i) + " - " + power_text(i + 1);
        const auto bar = static_cast<std::size_t>(
            static_cast<double>(counts[i]) / static_cast<double>(most) * static_cast<double>(room) +
            (counts[i] != 0 ? 0.999 : 0));
        out.line("{:>21} {:>11} {:>10} {}", range, count_text(counts[i]),
                 bytes_text(heap.size_bytes()[i]), std::string(std::min(bar, room), '#'));
    }
}

void calls_by_thread(const process_profile& p, page& out) {
    out.blank();
    out.heading("Calls by thread and function");
    for (const auto& [thread, counts] : p.calls) {
        for (std::size_t i = 0; i < call_kinds; ++i) {
            if (counts[i] != 0) {
                out.line("call {} {} {} {}", p.pid, thread, call_names[i], counts[i]);
            }
        }
    }
}

}  // namespace

std::string fitted(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    if (width <= 5) return text.substr(0, width);
    const std::size_t head = (width - 2) / 2;
    const std::size_t tail = width - 2 - head;
    return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

std::string overview(const std::vector<const process_profile*>& processes,
                     const text_style& style) {
    page out(style);
    out.heading("Processes");
    out.line("{:>8} {:>10} {:>11} {:>10} {:>11} {:>9}  {}", "pid", "allocated", "calls", "peak",
             "never freed", "time", "program");
    for (const auto* p : processes) {
        const heap_sums& s = p->heap.sums();
        const std::string row = fmt::format(
            "{:>8} {:>10} {:>11} {:>10} {:>11} {:>9}  {}{}", p->pid, bytes_text(s.allocated_bytes),
            count_text(s.allocations), bytes_text(s.peak_bytes),
            bytes_text(s.live_bytes - s.live_inherited_bytes), time_text(p->end - p->begin),
            printable(p->name), p->parent ? fmt::format(", forked from {}", *p->parent) : "");
        p->complete() ? out.line("{}", row) : out.warning(row + "  INCOMPLETE");
    }
    return out.take();
}

std::string report(process_profile& process, const stack_table& stacks, symbolizer& symbols,
                   const text_style& style) {
    page out(style);
    out.heading(fmt::format("{} (process {})", printable(process.name), process.pid));
    about(process, out);
    if (process.depth != 0) {
        const auto sites = find_sites(process.heap.by_stack(), stacks, symbols);
        site_table(
            sites, "bytes", [](const stack_sums& s) { return s.bytes; }, style, out);
        site_table(
            sites, "calls", [](const stack_sums& s) { return s.calls; }, style, out);
        site_table(
            sites, "bytes never freed", [](const stack_sums& s) { return s.live_bytes; }, style,
            out);
    }
    sizes(process.heap, style, out);
    if (style.calls) calls_by_thread(process, out);
    return out.take();
}

std::string shortcomings(const file_profile& file, const text_style& style) {
    page out(style);
    trace_ring::loss_counts told;
    for (const auto& p : file.processes) told += p.lost;
    if (file.lost.total() > told.total()) {
        out.warning(fmt::format("{}: {} records lost ({})", file.file,
                                count_text(file.lost.total()), lost_text(file.lost)));
    }
    if (file.unreadable != 0) {
        out.warning(fmt::format("{}: {} records cannot be interpreted", file.file,
                                count_text(file.unreadable)));
    }
    constexpr std::size_t most = 10;
    std::size_t unrecorded = 0;
    for (const execution& each : file.executions) {
        if (each.obstacle.empty() || ++unrecorded > most) continue;
        out.warning(fmt::format("{}: not recorded: {}{}: {}", file.file, printable(each.path),
                                each.pid == 0 ? "" : fmt::format(" (process {})", each.pid),
                                printable(each.obstacle)));
    }
    if (unrecorded > most) {
        out.warning(fmt::format("{}: and {} more programs that are not recorded", file.file,
                                unrecorded - most));
    }
    for (std::size_t i = 0; i < std::min(file.damages.size(), most); ++i) {
        out.warning(fmt::format("{}: {}", file.file, file.damages[i]));
    }
    if (file.damages.size() > most) {
        out.warning(
            fmt::format("{}: and {} more damaged places", file.file, file.damages.size() - most));
    }
    return out.take();
}

}  // namespace heap
