// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "report.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <stdexcept>
#include <utility>

#include "by_place.hpp"
#include "lines_of_text.hpp"
#include "page.hpp"
#include "pictures.hpp"
#include "places.hpp"
#include "source_lines.hpp"

namespace address_trace {
namespace {

constexpr auto replace_bad = nlohmann::json::error_handler_t::replace;

[[noreturn]] void cannot_be_written(const std::string& file) {
    throw std::runtime_error(file + ": cannot be written: " + std::strerror(errno));
}
void write_file(const std::string& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    if (!(out << text << std::flush)) cannot_be_written(file);
}

}  // namespace

/// Writes the references themselves.
class report::lines final : public analysis {
public:
    lines(std::ostream& to, std::string name, line_format format, code_layout& code)
        : to_(to), name_(std::move(name)), format_(format), code_(code) {}
    void take(const sited_run& run) override {
        text_.clear();
        for (const auto& each : run.all) {
            const bool is_block = each.kind == reference_kind::block;
            if (const auto known = is_block ? code_.find(each.address) : std::nullopt) {
                append_lines(text_, *known, format_);
            } else {
                append_line(text_, each, format_);
            }
        }
        errno = 0;
        if (!(to_ << text_ << std::flush)) cannot_be_written(name_);
    }

private:
    std::ostream& to_;
    std::string name_;
    line_format format_;
    code_layout& code_;
    std::string text_;
};

report::report(const report_settings& wanted) : wanted_(wanted) {
    found_.fed = &all_;
    all_.choose(reference_choice(wanted.chosen));
    for (const auto& each : wanted.caches)
        found_.caches.push_back(&all_.make<cache_misses>(
            parse_cache_levels(each),
            [this](std::uint64_t site) { return all_.code().find(site); }));
    if (!wanted.coherent.empty())
        found_.coherent = &all_.make<coherent_caches>(parse_cache_levels(wanted.coherent));
    if (wanted.lines) found_.lines = &all_.make<line_use>();
    // The owners of the lines.
    if (found_.lines != nullptr || found_.coherent != nullptr)
        found_.allocated = &all_.make<allocations>();
    if (wanted.reuse) found_.distances = &all_.make<reuse_distance>();
    if (wanted.strides) found_.stepping = &all_.make<strides>();
    if (wanted.working_set) found_.working = &all_.make<working_set>();
    if (!wanted.to.empty()) {
        file_.open(wanted.to, std::ios::binary);
        if (!file_) cannot_be_written(wanted.to);
    }
    std::ostream& out = wanted.to.empty() ? std::cout : file_;
    const std::string name = wanted.to.empty() ? "stdout" : wanted.to;
    if (wanted.format == "lackey") all_.make<lines>(out, name, line_format::lackey, all_.code());
    if (wanted.format == "din") all_.make<lines>(out, name, line_format::din, all_.code());
}
report::~report() = default;

void report::name_by(const std::vector<loaded_module>& modules,
                     const std::vector<stack_range>& stacks) {
    for (const auto& each : modules) {
        const auto* const id = reinterpret_cast<const std::uint8_t*>(each.build_id.data());
        objects_.add(each.start, each.end, each.bias, {id, each.build_id.size()}, each.path);
    }
    found_.objects = find_coverage(modules);
    found_.owners = data_owners(modules, stacks, found_.allocated);
}

void report::write(const std::string& title, std::ostream& console, bool shows) {
    std::ostream& out = wanted_.to.empty() ? console : file_;
    if (shows || !wanted_.to.empty()) write_tables(title, out);
    if (wanted_.page.empty() && wanted_.pictures.empty()) return;
    const auto pictures = draw_all(found_);
    if (!wanted_.page.empty())
        write_file(wanted_.page,
                   make_page(title, make_tables(found_, where_), pictures, find_sources()));
    if (wanted_.pictures.empty()) return;
    std::filesystem::create_directories(wanted_.pictures);
    for (const auto& each : pictures)
        write_file(wanted_.pictures + '/' + each.name + ".svg", each.svg);
}

void report::write_tables(const std::string& title, std::ostream& out) {
    const bool text = wanted_.format == "text", json = wanted_.format == "json";
    std::vector<table> tables;
    // Programs need all rows, people the first ones. Other formats print the references themselves.
    if (text || json || wanted_.format == "csv")
        tables = make_tables(found_, where_, text ? usual_rows : every_row);
    if (json) {
        out << "{\"of\":" << nlohmann::json(title).dump(-1, ' ', false, replace_bad)
            << ",\"tables\":[";
        for (std::size_t i = 0; i < tables.size(); ++i)
            out << (i == 0 ? "\n" : ",\n") << as_json(tables[i]);
        out << "\n]}\n";
    }
    for (std::size_t i = 0; !json && i < tables.size(); ++i) {
        if (i != 0) out << '\n';
        if (!text) out << "# " << tables[i].name << '\n';
        out << (text ? as_text(tables[i], {}) : as_csv(tables[i]));
    }
    if (!out.flush()) cannot_be_written(wanted_.to.empty() ? "the report" : wanted_.to);
}

source_lines report::find_sources() const {
    const auto caches = found_.cache_results();
    std::vector<std::string> names;
    for (const cache_result& each : caches) names.push_back(each.shape.name);
    return {sum_by_place(all_.sites().all(), caches, where_), std::move(names)};
}

std::uint64_t report::calls() {
    std::uint64_t sum = 0;
    for (const auto& each : sum_by_place(all_.sites().all(), {}, where_).functions)
        sum += each.calls;
    return sum;
}

}  // namespace address_trace
