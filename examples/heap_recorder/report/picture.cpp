// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "escaped.hpp"
#include "quantity.hpp"

namespace heap {
namespace {

constexpr double width = 1000, left = 76, right = 24, top = 56, plot_height = 340, bottom = 52;
constexpr double plot_width = width - left - right;
constexpr std::size_t most_named = 8;  // curves in the key
constexpr std::size_t key_columns = 4;

// Told apart by people who see colours differently (after Okabe and Ito); the last for all others.
constexpr std::array<std::string_view, most_named + 1> colours{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#5b4a9c", "#888"};

class drawing {
public:
    explicit drawing(std::vector<curve> curves) : curves_(std::move(curves)) {
        std::stable_sort(curves_.begin(), curves_.end(),
                         [](const curve& a, const curve& b) { return a.peak > b.peak; });
        begin_ = ~std::uint64_t{0};
        std::uint64_t end = 0, peak = 0;
        for (const auto& c : curves_) {
            begin_ = std::min(begin_, c.values->begin());
            end = std::max({end, c.end, c.values->end()});
            peak = std::max(peak, c.peak);
        }
        if (curves_.empty()) begin_ = 0;
        span_ = std::max<std::uint64_t>(end - std::min(begin_, end), 1);
        times_ = time_axis(span_);
        // A little air above the peak, for its label.
        bytes_ = bytes_axis(std::max<std::uint64_t>(peak + peak / 12, 1));
    }

    [[nodiscard]] std::string svg(const std::string& title) {
        const std::size_t named = curves_.size() > 1 ? std::min(curves_.size(), most_named) : 0;
        const auto key_rows =
            static_cast<double>((named + key_columns - 1) / key_columns + (named != 0 ? 1 : 0));
        const double height = top + plot_height + bottom + key_rows * 18;
        put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
            "width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            width, height, width, height);
        put("<title>{}</title>\n", escaped(title));
        put("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
        put("<text x=\"{:.0f}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n", left,
            escaped(title));
        axes();
        for (std::size_t i = 0; i < curves_.size(); ++i) area(i);
        peaks();
        key(named);
        out_ += "</svg>\n";
        return std::move(out_);
    }

private:
    template <class... Args>
    void put(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }
    [[nodiscard]] double x(std::uint64_t time) const {
        const double share = static_cast<double>(time - begin_) / static_cast<double>(span_);
        return left + plot_width * std::min(share, 1.0);
    }
    [[nodiscard]] double y(std::uint64_t bytes) const {
        return top + plot_height * (1 - static_cast<double>(bytes) / bytes_.top);
    }

    void axes() {
        put("<g stroke=\"#ddd\">\n");
        for (const auto& mark : bytes_.marks) {
            const double at = top + plot_height * (1 - mark.value / bytes_.top);
            put("<path d=\"M{:.0f} {:.1f}h{:.0f}\"/>\n", left, at, plot_width);
        }
        put("</g>\n<g fill=\"#444\" text-anchor=\"end\">\n");
        for (const auto& mark : bytes_.marks) {
            const double at = top + plot_height * (1 - mark.value / bytes_.top);
            put("<text x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", left - 8, at + 4, mark.text);
        }
        put("</g>\n<g fill=\"#444\" text-anchor=\"middle\">\n");
        for (const auto& mark : times_.marks) {
            const double at = left + plot_width * mark.value / static_cast<double>(span_);
            if (at > left + plot_width + 1) break;
            put("<path d=\"M{:.1f} {:.0f}v5\" stroke=\"#444\"/><text x=\"{:.1f}\" y=\"{:.0f}\">{}"
                "</text>\n",
                at, top + plot_height, at, top + plot_height + 20, mark.text);
        }
        put("<text x=\"{:.0f}\" y=\"{:.0f}\">time, {}</text>\n", left + plot_width / 2,
            top + plot_height + 40, times_.unit);
        put("<text transform=\"translate(18 {:.0f}) rotate(-90)\">live, {}</text>\n</g>\n",
            top + plot_height / 2, bytes_.unit);
        put("<path d=\"M{:.0f} {:.0f}v{:.0f}h{:.0f}\" fill=\"none\" stroke=\"#444\"/>\n", left, top,
            plot_height, plot_width);
    }

    /// Each slice as high as it ever was in it, so that no peak is thinned out; on the line its low
    /// follows, so that a slice that went up and down is seen to.
    void area(std::size_t i) {
        const timeline& values = *curves_[i].values;
        const auto colour = colours[std::min(i, most_named)];
        std::string line;
        double from_y = y(0);
        double last_x = -1;
        for (std::size_t k = 0; k < values.slices().size(); ++k) {
            const auto& slice = values.slices()[k];
            if (slice.empty()) continue;
            const double at = x(values.begin() + k * values.width());
            if (line.empty()) {
                line = fmt::format("M{:.1f} {:.1f}", at, from_y);
            } else {
                line += fmt::format("H{:.1f}", at);
            }
            line += fmt::format("V{:.1f}", y(slice.high));
            if (slice.low < slice.high && at - last_x >= 0.5) {
                line += fmt::format("V{:.1f}", y(slice.low));
            }
            line += fmt::format("V{:.1f}", y(slice.last));
            last_x = at;
            from_y = y(slice.last);
        }
        if (line.empty()) return;
        line += fmt::format("H{:.1f}V{:.1f}", x(std::max(curves_[i].end, values.end())), y(0));
        put("<path d=\"{}\" fill=\"{}\" fill-opacity=\".18\" stroke=\"{}\" stroke-width=\"1.2\" "
            "stroke-linejoin=\"round\"><title>{}</title></path>\n",
            line, colour, colour, escaped(curves_[i].name));
    }

    /// A dot and a label at each peak that is high enough to be distinct.
    void peaks() {
        std::vector<std::pair<double, double>> taken;
        for (std::size_t i = 0; i < curves_.size() && i < most_named; ++i) {
            const curve& c = curves_[i];
            if (c.peak == 0 || static_cast<double>(c.peak) < bytes_.top / 20) continue;
            const double at = x(c.peak_time);
            const double height = y(c.peak);
            const bool to_left = at > left + plot_width - 180;
            const double text_x = to_left ? at - 7 : at + 7;
            const bool free = std::none_of(taken.begin(), taken.end(), [&](const auto& other) {
                return std::abs(other.first - text_x) < 190 && std::abs(other.second - height) < 14;
            });
            put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", at, height,
                colours[i]);
            if (!free) continue;
            taken.emplace_back(text_x, height);
            put("<text x=\"{:.1f}\" y=\"{:.1f}\"{} font-weight=\"bold\" fill=\"#222\" "
                "stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">peak {} at {}</text>\n",
                text_x, height - 5, to_left ? " text-anchor=\"end\"" : "", bytes_text(c.peak),
                time_text(c.peak_time - begin_));
        }
    }

    void key(std::size_t named) {
        const double from = top + plot_height + bottom + 10;
        for (std::size_t i = 0; i < named; ++i) {
            const double at =
                left + plot_width / key_columns * static_cast<double>(i % key_columns);
            const double row = from + 18 * static_cast<double>(i / key_columns);
            put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>"
                "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                at, row - 9, colours[i], at + 15, row, escaped(curves_[i].name));
        }
        if (curves_.size() > named && named != 0) {
            put("<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#888\">and {} more, in grey</text>\n", left,
                from + 18 * static_cast<double>((named + key_columns - 1) / key_columns),
                curves_.size() - named);
        }
    }

    std::vector<curve> curves_;
    std::uint64_t begin_ = 0;
    std::uint64_t span_ = 1;
    axis times_;
    axis bytes_;
    std::string out_;
};

}  // namespace

std::string draw(const std::string& title, std::vector<curve> curves) {
    return drawing(std::move(curves)).svg(title);
}

}  // namespace heap
