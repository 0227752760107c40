// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <heap_recorder/report/escaped.hpp>
#include <heap_recorder/report/quantity.hpp>

namespace address_trace {
namespace {

constexpr double picture_width = 1000, left_margin = 84, right_margin = 64, top_margin = 76;
constexpr double plot_width = picture_width - left_margin - right_margin, plot_height = 320;
// Colours that people with colour vision deficiency can distinguish (after Okabe and Ito).
constexpr std::string_view blue = "#0072b2", orange = "#d55e00";

/// A picture with a title, a key, and a frame around a plot.
class canvas {
public:
    canvas(const std::string& title, double height) {
        put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
            "width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<title>{}</title>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
            "<text x=\"{:.0f}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
            picture_width, height, picture_width, height, heap::escaped(title), left_margin,
            heap::escaped(title));
    }

    template <class... Args>
    void put(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }
    void text(double x, double y, const std::string& what, const char* anchor = "start") {
        put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#444\" text-anchor=\"{}\">{}</text>\n", x, y,
            anchor, heap::escaped(what));
    }
    void key(std::string_view colour, const std::string& what) {
        put("<rect x=\"{:.1f}\" y=\"43\" width=\"10\" height=\"10\" fill=\"{}\"/>", key_at_,
            colour);
        text(key_at_ + 15, 52, what);
        key_at_ += 30 + 6.6 * static_cast<double>(what.size());
    }
    void bar(double x, double y, double width, double height, std::string_view colour,
             const std::string& says) {
        put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
            "fill=\"{}\"><title>{}</title></rect>\n",
            x, y, width, height, colour, heap::escaped(says));
    }
    /// Horizontal grid lines, with their values at the left.
    void left_axis(const heap::axis& axis, const std::string& what) {
        for (const auto& mark : axis.marks) {
            const double y = top_margin + plot_height * (1 - mark.value / axis.top);
            put("<path d=\"M{:.0f} {:.1f}h{:.0f}\" stroke=\"#ddd\"/>\n", left_margin, y,
                plot_width);
            text(left_margin - 8, y + 4, mark.text, "end");
        }
        put("<text transform=\"translate(18 {:.0f}) rotate(-90)\" fill=\"#444\" "
            "text-anchor=\"middle\">{}{}{}</text>\n",
            top_margin + plot_height / 2, heap::escaped(what), axis.unit.empty() ? "" : ", ",
            axis.unit);
    }
    void frame() {
        put("<path d=\"M{:.0f} {:.0f}v{:.0f}h{:.0f}\" fill=\"none\" stroke=\"#444\"/>\n",
            left_margin, top_margin, plot_height, plot_width);
    }
    void below(const std::string& what, double lines = 2) {
        text(left_margin + plot_width / 2, top_margin + plot_height + 20 * lines, what, "middle");
    }
    [[nodiscard]] std::string take() {
        out_ += "</svg>\n";
        return std::move(out_);
    }

private:
    std::string out_;
    double key_at_ = left_margin;
};

[[nodiscard]] std::string percent(double share) {
    const double in_percent = 100 * share;
    return in_percent != 0 && in_percent < 0.1 ? fmt::format("{:.2g} %", in_percent)
                                               : fmt::format("{:.1f} %", in_percent);
}

/// Horizontal bars, one per row, of one or two parts.
struct row {
    std::string name, says;
    double first = 0, second = 0;
};

/// `names`: the width of the texts at the left.
void draw_rows(canvas& out, std::span<const row> rows, double names) {
    double most = 0;
    for (const row& each : rows) most = std::max(most, each.first + each.second);
    const double scale = most == 0 ? 0 : (picture_width - names - 170) / most;
    double y = top_margin;
    for (const row& each : rows) {
        out.text(names - 8, y + 14, each.name, "end");
        out.bar(names, y + 2, each.first * scale, 16, blue, each.name + ": " + each.says);
        out.bar(names + each.first * scale, y + 2, each.second * scale, 16, orange,
                each.name + ": " + each.says);
        out.text(names + (each.first + each.second) * scale + 6, y + 14, each.says);
        y += 22;
    }
    out.put("<path d=\"M{:.0f} {:.0f}v{:.0f}\" stroke=\"#444\"/>\n", names, top_margin,
            y - top_margin);
}

[[nodiscard]] double height_of_rows(std::size_t rows) {
    return top_margin + 22 * static_cast<double>(rows) + 20;
}

}  // namespace

std::string draw_working_set(std::span<const working_set_interval> all, std::uint64_t line,
                             std::uint64_t page) {
    canvas out("Working set over time", top_margin + plot_height + 56);
    std::uint64_t references = 0, most = 1;
    for (const working_set_interval& each : all) {
        references += each.references;
        most = std::max({most, static_cast<std::uint64_t>(each.lines) * line,
                         static_cast<std::uint64_t>(each.pages) * page});
    }
    const heap::axis bytes = heap::bytes_axis(most), times = heap::count_axis(references, 10);
    out.key(blue, fmt::format("in lines of {}", heap::bytes_text(line)));
    out.key(orange, fmt::format("in pages of {}", heap::bytes_text(page)));
    if (!all.empty()) {
        out.text(picture_width - right_margin, 52,
                 fmt::format("intervals of {} references", heap::count_text(all[0].references)),
                 "end");
    }
    out.left_axis(bytes, "used in an interval");
    const auto x = [&](double at) {
        return left_margin +
               plot_width * at / static_cast<double>(std::max<std::uint64_t>(references, 1));
    };
    for (const auto& mark : times.marks) {
        if (mark.value > static_cast<double>(references) * 1.001) break;
        out.put("<path d=\"M{:.1f} {:.0f}v5\" stroke=\"#444\"/>", x(mark.value),
                top_margin + plot_height);
        out.text(x(mark.value), top_margin + plot_height + 20, mark.text, "middle");
    }
    out.below("loads and stores" + (times.unit.empty() ? "" : ", " + times.unit));
    const auto curve = [&](auto bytes_of, std::string_view colour, double opacity) {
        std::string path = fmt::format("M{:.1f} {:.1f}", x(0), top_margin + plot_height);
        std::uint64_t at = 0;
        for (const working_set_interval& each : all) {
            path +=
                fmt::format("V{:.1f}", top_margin + plot_height * (1 - bytes_of(each) / bytes.top));
            at += each.references;
            path += fmt::format("H{:.1f}", x(static_cast<double>(at)));
        }
        out.put(
            "<path d=\"{}V{:.1f}\" fill=\"{}\" fill-opacity=\"{}\" stroke=\"{}\" "
            "stroke-width=\"1.2\"/>\n",
            path, top_margin + plot_height, colour, opacity, colour);
    };
    curve([&](const auto& each) { return each.pages * static_cast<double>(page); }, orange, .12);
    curve([&](const auto& each) { return each.lines * static_cast<double>(line); }, blue, .25);
    out.frame();
    return out.take();
}

std::string draw_distances(const distance_histogram& of, std::uint64_t line) {
    canvas out("Reuse distances", top_margin + plot_height + 76);
    std::size_t last = distance_histogram::buckets;
    while (last > 4 && of.again[last - 1] == 0) --last;
    double most = 1;
    for (const double each : of.again) most = std::max(most, each);
    out.key(blue, "uses at this distance");
    out.key(orange, "share missed by a cache of this size");
    out.text(picture_width - right_margin, 52,
             fmt::format("{} first uses, {}",
                         heap::count_text(static_cast<std::uint64_t>(of.first + .5)),
                         of.exact() ? std::string("exact")
                                    : fmt::format("estimated from one line in {}", of.one_in)),
             "end");
    const heap::axis counts = heap::count_axis(static_cast<std::uint64_t>(most));
    out.left_axis(counts, "uses");
    const double width = plot_width / static_cast<double>(last);
    const double bottom = top_margin + plot_height;
    std::string curve, above, under;
    for (std::size_t power = 0; power < last; ++power) {
        const double x = left_margin + width * static_cast<double>(power);
        const double high = plot_height * of.again[power] / counts.top;
        const std::uint64_t lines = std::uint64_t{1} << std::min<std::size_t>(power, 50);
        const std::string size = heap::bytes_text(lines * line);
        const std::string from =
            power <= 1 ? std::to_string(power) : fmt::format("{} to {}", lines / 2, lines - 1);
        out.bar(x + width * .12, bottom - high, width * .76, high, blue,
                fmt::format("{} lines between: {} uses", from,
                            heap::count_text(static_cast<std::uint64_t>(of.again[power] + .5))));
        // The size between the two, from which on the next distance misses.
        const double at = x + width;
        const auto y = [&](double share) {
            return bottom - plot_height * std::clamp(share, 0.0, 1.0);
        };
        const double share = of.miss_ratio(power), error = 2 * of.standard_error(power);
        curve += fmt::format("{}{:.1f} {:.1f}", power == 0 ? "M" : "L", at, y(share));
        above += fmt::format("{}{:.1f} {:.1f}", power == 0 ? "M" : "L", at, y(share + error));
        under = fmt::format("L{:.1f} {:.1f}", at, y(share - error)) + under;
        out.put(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {} missed"
            "</title></circle>\n",
            at, y(share), orange, size, percent(share));
        out.put("<g transform=\"translate({:.1f} {:.1f}) rotate(-40)\" font-size=\"11\">", at + 4,
                bottom + 14);
        out.text(0, 0, size, "end");
        out.put("</g>\n");
    }
    if (!of.exact())
        out.put("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\".2\"/>\n", above, under, orange);
    out.put("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", curve, orange);
    for (int share = 0; share <= 100; share += 20) {
        out.text(left_margin + plot_width + 8, bottom - plot_height * share / 100 + 4,
                 fmt::format("{} %", share));
    }
    out.frame();
    out.below("size of a cache of which any line can lie anywhere", 3.4);
    return out.take();
}

std::string draw_misses(std::span<const cache_result> all) {
    canvas out("References that caches miss", height_of_rows(all.size()));
    out.key(blue, "loads and code");
    out.key(orange, "stores");
    std::vector<row> rows;
    for (const cache_result& each : all) {
        const miss_counts sums = each.all();
        const auto share = [&](std::uint64_t misses) {
            return sums.references == 0
                       ? 0.0
                       : static_cast<double>(misses) / static_cast<double>(sums.references);
        };
        const double stores = share(each.stores.misses), total = share(sums.misses);
        rows.push_back({fmt::format("{}: {}", each.shape.name, describe(each.shape)),
                        fmt::format("{} ({})", percent(total), heap::count_text(sums.misses)),
                        total - stores, stores});
    }
    draw_rows(out, rows, 300);
    return out.take();
}

std::string draw_hottest(std::span<const used_line> all, std::uint64_t references) {
    canvas out("The lines that are used most", height_of_rows(all.size()));
    out.key(blue, "loads");
    out.key(orange, "stores");
    std::vector<row> rows;
    for (const used_line& each : all) {
        const double share = references == 0 ? 0
                                             : static_cast<double>(each.references()) /
                                                   static_cast<double>(references);
        rows.push_back({fmt::format("{:#x}", each.address),
                        fmt::format("{} ({})", percent(share), heap::count_text(each.references())),
                        static_cast<double>(each.loads), static_cast<double>(each.stores)});
    }
    draw_rows(out, rows, 160);
    return out.take();
}

std::vector<picture> draw_all(const findings& of) {
    constexpr std::size_t most_lines = 20;
    std::vector<picture> out;
    if (const auto caches = of.cache_results(); !caches.empty())
        out.push_back({"caches", draw_misses(caches)});
    if (of.distances != nullptr && of.distances->result().references != 0)
        out.push_back({"reuse", draw_distances(of.distances->result(), of.distances->line())});
    if (of.working != nullptr && !of.working->intervals().empty()) {
        out.push_back({"working_set", draw_working_set(of.working->intervals(), of.working->line(),
                                                       of.working->page())});
    }
    if (of.lines != nullptr && of.lines->references() != 0) {
        out.push_back(
            {"hottest", draw_hottest(of.lines->hottest(most_lines), of.lines->references())});
    }
    return out;
}

}  // namespace address_trace
