// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// What is in a CPTRAP file as one page for any browser, which loads nothing: a table for each
/// spool record, with each record's data in hexadecimal, EBCDIC and ASCII; a field that filters by
/// any text that is shown, or by hexadecimal digits across lines; and the counts by type and code.
/// Bytes of the file become characters that cannot be markup.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/cptrap/record.hpp>
#include <trace_ring/cptrap/spool_reader.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/loss.hpp>

#include "../../counted.hpp"
#include "ebcdic.hpp"
#include "names.hpp"
#include "notation.hpp"
#include "statistics.hpp"

namespace trace_reduce {

namespace impl {
inline constexpr std::string_view cptrap_page_begin =
    R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>CPTRAP</title>
<style>
:root{color-scheme:light dark;--back:#fff;--text:#1c2024;--faint:#60656c;--line:#d9dce1;--mark:#0b6bcb;--bad:#b42318;--head:#f4f5f7}
@media(prefers-color-scheme:dark){:root{--back:#15181c;--text:#e4e6ea;--faint:#9aa0a8;--line:#32373e;--mark:#6cb2ff;--bad:#ff8f85;--head:#1d2126}}
body{margin:0;background:var(--back);color:var(--text);font:14px/1.45 system-ui,sans-serif;display:flex;flex-direction:column}
header{position:sticky;top:0;background:var(--head);border-bottom:1px solid var(--line);padding:8px 16px;display:flex;gap:12px;align-items:baseline;flex-wrap:wrap;order:0;z-index:1}
header h1{font-size:16px;margin:0}
input{font:inherit;padding:3px 8px;min-width:22em;background:var(--back);color:inherit;border:1px solid var(--line);border-radius:4px}
output{color:var(--faint)}
#sums{order:1}
main{order:2}
section,#sums{padding:4px 16px}
section{content-visibility:auto;contain-intrinsic-size:auto 900px}
h2{font-size:13px;color:var(--faint);margin:10px 0 2px;font-weight:600}
table{border-collapse:collapse}
td,th{padding:2px 14px 2px 0;vertical-align:top;text-align:left;border-top:1px solid var(--line);white-space:nowrap}
th{color:var(--faint);font-weight:500}
td,pre{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px}
td.n{text-align:right}
pre{margin:0;line-height:1.4}
.o,pre.o{color:var(--faint)}
.t{color:var(--mark)}
.bad td,p.bad{color:var(--bad)}
.hidden{display:none}
</style></head><body>
<header><h1>CPTRAP</h1><input id="filter" type="search" placeholder="filter ( / ): code 0B, C1C2, a text" aria-label="filter" disabled>
<output id="shown"></output></header>
<main>
)page";
inline constexpr std::string_view cptrap_page_end =
    R"page(<script>
'use strict';
const field = document.getElementById('filter'), shown = document.getElementById('shown');
const sections = [...document.querySelectorAll('section')];
const total = document.querySelectorAll('tr[data-r]').length;
// What a row says: its cells as words, and each of its dumps as one run of characters.
function words(row) {
  if (!row.words) {
    const cells = [...row.cells].filter(c => !c.querySelector('pre')).map(c => c.textContent).join(' ');
    const dumps = [...row.querySelectorAll('pre')].map(p => p.className === 'h' ? p.textContent.replace(/\s/g, '') : p.textContent.replace(/\n/g, ''));
    row.words = [cells, ...dumps].join('\n').toLowerCase();
  }
  return row.words;
}
function apply() {
  const text = field.value.trim().toLowerCase(), packed = text.replace(/\s/g, '');
  let count = 0;
  for (const section of sections) {
    let any = false;
    for (const row of section.querySelectorAll('tr[data-i]')) {
      const hit = !text || words(row).includes(text) || (/^[0-9a-f]+$/.test(packed) && words(row).includes(packed));
      row.classList.toggle('hidden', !hit);
      if (hit) { any = true; if ('r' in row.dataset) ++count; }
    }
    section.classList.toggle('hidden', !any);
  }
  shown.textContent = text ? `${count.toLocaleString('en')} of ${total.toLocaleString('en')} records` : `${total.toLocaleString('en')} records`;
}
let timer = 0;
field.disabled = false;
field.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(apply, 150); });
document.addEventListener('keydown', e => {
  if (e.key === '/' && document.activeElement !== field) { e.preventDefault(); field.focus(); }
  if (e.key === 'Escape') { field.value = ''; apply(); field.blur(); }
});
apply();
</script></body></html>
)page";
}  // namespace impl

class cptrap_html_writer {
public:
    void begin(text_buffer& out) const { out += impl::cptrap_page_begin; }

    /// Items of a spool record must follow each other. Linear in the item's bytes.
    void append(text_buffer& out, std::string_view file, const reduce::spool_item& item) {
        using kind = reduce::spool_item::kind;
        if (item.what == kind::end) return;
        if (files_.empty() || files_.back().name != file) {
            files_.push_back({std::string(file), {}});
            leave(out);
        }
        auto& here = files_.back();
        here.sum.add(item);
        if (!open_ || page_ != item.number) {
            leave(out);
            enter(out, item.number);
        }
        const auto lost = item.record.lost();
        const bool is_record = item.what == kind::record && !lost;
        out += is_record ? "<tr data-i data-r>" : "<tr data-i class=\"bad\">";
        out += "<td class=\"o\">";
        append_offset(out, item.offset);
        out += "</td><td class=\"n o\">";
        exporter::impl::append_number(out, item.number);
        out += ':';
        exporter::impl::append_number(out, item.index);
        out += "</td>";
        if (is_record) {
            append_record(out, item);
        } else {
            out += "<td colspan=\"8\">";
            const std::uint64_t count = lost ? lost->count : item.bytes.size();
            out += lost ? counted(count, "record lost", "records lost")
                   : item.what == kind::torn
                       ? counted(count, "byte of a record is there", "bytes of a record are there")
                       : counted(count, "byte unreadable", "bytes unreadable");
            out += ": ";
            escaped(out, lost ? to_string(lost->cause) : item.cause());
            out += "</td>";
        }
        out += "</tr>\n";
    }

    void end(text_buffer& out) {
        leave(out);
        out += "</main><div id=\"sums\">";
        for (const auto& each : files_) {
            out += "<h2>";
            escaped(out, each.name);
            out += "</h2><table><tr><th>type<th>code<th>event<th>records<th>bytes</tr>\n";
            for (const auto& [key, row] : each.sum.rows) append_row(out, key, row);
            out += "</table>";
            if (each.sum.lost.total() != 0) {
                out += "<p class=\"bad\">lost: ";
                in_text::print_lost(out, each.sum.lost);
                out += "</p>";
            }
            if (each.sum.damages != 0) {
                out += "<p class=\"bad\">damaged in ";
                exporter::impl::append_number(out, each.sum.damages);
                out += each.sum.damages == 1 ? " place, " : " places, ";
                exporter::impl::append_number(out, each.sum.damaged_bytes);
                out += " bytes</p>";
            }
        }
        if (files_.empty()) out += "<p>no record is chosen</p>";
        out += "</div>";
        out += impl::cptrap_page_end;
    }

private:
    struct one_file {
        std::string name;
        spool_statistics sum;
    };
    static constexpr std::size_t a_line = 16;

    void enter(text_buffer& out, std::uint64_t page) {
        out += "<section><h2>";
        escaped(out, files_.back().name);
        out += ", page ";
        exporter::impl::append_number(out, page);
        out +=
            "</h2><table><tr><th>offset<th>place<th>type<th>code<th>event<th>bytes<th><th>data"
            "<th>EBCDIC<th>ASCII</tr>\n";
        open_ = true;
        page_ = page;
    }
    void leave(text_buffer& out) {
        if (open_) out += "</table></section>\n";
        open_ = false;
    }
    static void append_record(text_buffer& out, const reduce::spool_item& item) {
        const auto& one = item.record;
        const auto entry = one.entry();
        out += "<td class=\"t\">";
        append_type(out, one.type);
        out += ' ';
        const auto name = name_of(one.type);
        out += name.empty() ? "unknown" : name;
        out += "</td><td>";
        if (one.headed) {
            out += "code ";
            append_code(out, one.type, one.code);
        }
        out += "</td><td>";
        if (entry) {
            const auto event = name_of(entry->event());
            out += event.empty() ? "unknown event" : event;
            if (entry->attached()) out += ", attached processor";
        }
        const auto data = data_of(item);
        out += "</td><td class=\"n\">";
        exporter::impl::append_number(out, data.size());
        out += "</td>";
        lines(out, "o", data,
              [&](std::size_t at, std::span<const std::byte>) { append_hexadecimal(out, at, 4); });
        lines(out, "h", data, [&](std::size_t, std::span<const std::byte> line) {
            for (std::size_t i = 0; i < line.size(); ++i) {
                if (i != 0 && i % 4 == 0) out += ' ';
                append_hexadecimal(out, std::to_integer<unsigned>(line[i]), 2);
            }
        });
        lines(out, "e", data, [&](std::size_t, std::span<const std::byte> line) {
            for (const auto byte : line) character(out, ebcdic_character(byte));
        });
        lines(out, "a", data, [&](std::size_t, std::span<const std::byte> line) {
            for (const auto byte : line) character(out, ascii_character(byte));
        });
    }
    template <class Line>
    static void lines(text_buffer& out, std::string_view kind, std::span<const std::byte> data,
                      const Line& line) {
        out += "<td><pre class=\"";
        out += kind;
        out += "\">";
        for (std::size_t at = 0; at < data.size(); at += a_line) {
            if (at != 0) out += '\n';
            line(at, data.subspan(at, std::min(a_line, data.size() - at)));
        }
        out += "</pre></td>";
    }
    static void append_row(text_buffer& out, const std::pair<std::uint8_t, std::uint16_t>& key,
                           const spool_statistics::count& row) {
        const auto type = static_cast<record::cptrap_type>(key.first);
        out += "<tr><td class=\"t\">";
        append_type(out, type);
        out += ' ';
        const auto name = name_of(type);
        out += name.empty() ? "unknown" : name;
        out += "</td><td>";
        if (row.headed) append_code(out, type, key.second);
        out += "</td><td>";
        out += row.event;
        out += "</td><td class=\"n\">";
        exporter::impl::append_number(out, row.records);
        out += "</td><td class=\"n\">";
        exporter::impl::append_number(out, row.bytes);
        out += "</td></tr>\n";
    }
    static void character(text_buffer& out, char c) {
        c == '<' ? out += "&lt;" : c == '>' ? out += "&gt;" : c == '&' ? out += "&amp;" : out += c;
    }
    static void escaped(text_buffer& out, std::string_view text) {
        text_buffer printable;
        exporter::impl::append_escaped(printable, text, 0);
        for (const char c : printable.view()) character(out, c);
    }

    std::vector<one_file> files_{};
    std::uint64_t page_ = 0;
    bool open_ = false;  ///< the section of `page_`
};

}  // namespace trace_reduce
