// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <heap_recorder/report/escaped.hpp>

namespace address_trace {
namespace {

// The head contains nothing from a trace, and forbids loading anything, for any contents of a
// trace.
constexpr std::string_view page_head = R"page(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light; }
body { margin: 0 auto; padding: 8px 20px 40px; max-width: 1100px; background: #fff; color: #1b1f24;
  font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 32px 0 6px; }
nav a { margin-right: 14px; color: #0b62c4; white-space: nowrap; }
svg { max-width: 100%; height: auto; }
p { color: #5c6670; margin: 6px 0; }
.wide { overflow-x: auto; max-height: 560px; overflow-y: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 12px 2px 0; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #c4cad1; color: #5c6670; font-weight: normal; position: sticky; top: 0;
  background: #fff; }
tr:nth-child(even) td { background: #f5f6f8; }
.text { text-align: left; max-width: 420px; overflow: hidden; text-overflow: ellipsis; }
summary { padding: 6px 0; cursor: pointer; overflow-wrap: anywhere; }
.warning { color: #8a1f11; overflow-wrap: anywhere; }
.lines .code, .lines .note, .gap td { text-align: left; padding-left: 12px; }
td.code { white-space: pre; font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
.lines tr td { padding-top: 0; padding-bottom: 0; background: #fff; vertical-align: baseline; }
.lines .note, .gap td, i { color: #5c6670; font-style: normal; }
.lines .gap td { background: #f5f6f8; }
[class^="heat"] { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.heat1, .lines .heat1 td { background: #fff0db; }
.heat2, .lines .heat2 td { background: #ffdfb3; }
.heat3, .lines .heat3 td { background: #ffcb85; }
.heat4, .lines .heat4 td { background: #ffb357; }
.heat5, .lines .heat5 td { background: #f99a2c; }
span[class^="heat"] { padding: 1px 6px; color: #1b1f24; }
@media print { .wide { max-height: none; overflow: visible; } td.code { white-space: pre-wrap; } }
</style>
)page";

}  // namespace

std::string make_page(const std::string& title, std::span<const table> tables,
                      std::span<const picture> pictures, const source_lines& sources) {
    std::string out(page_head);
    out += fmt::format("<title>{0}</title>\n</head>\n<body>\n<h1>{0}</h1>\n<nav>",
                       heap::escaped(title));
    for (const table& each : tables) {
        out += fmt::format("<a href=\"#{0}\">{0}</a> ", heap::escaped(each.name));
    }
    if (!sources.empty()) out += "<a href=\"#files\">files</a> ";
    out += "</nav>\n";
    for (const table& each : tables) {
        const auto drawn = std::ranges::find(pictures, each.name, &picture::name);
        std::string section = as_html(each);
        if (drawn != pictures.end()) {
            const std::string_view after = "</h2>\n";
            section.insert(section.find(after) + after.size(), drawn->svg);
        }
        out += section;
    }
    out += sources.as_html();
    return out + "</body>\n</html>\n";
}

}  // namespace address_trace
