// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The page's structure and looks. Nothing of a trace is in it, and the page may load
/// nothing from outside: no network access, even if a trace contains markup.

#include <string_view>

namespace trace_reduce::impl {

inline constexpr std::string_view html_head = R"page(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>trace</title>
<style>
:root {
  --back: #ffffff; --band: #f5f6f8; --line: #dde1e6; --text: #1b1f24; --faint: #5c6670;
  --panel: #ffffff; --edge: #c4cad1; --accent: #0b62c4; --lost: #b3420a; --range: #0b62c426;
  --bar-text: #101418; --shadow: #00000030;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --band: #1a1e23; --line: #2b3138; --text: #e4e8ec; --faint: #98a2ad;
    --panel: #20252b; --edge: #3d454e; --accent: #6cb2ff; --lost: #ff8a4c; --range: #6cb2ff30;
    --bar-text: #101418; --shadow: #00000080;
  }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body {
  display: flex; flex-direction: column; overflow: hidden; background: var(--back);
  color: var(--text); font: 13px/1.4 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
}
header { display: flex; gap: 12px; align-items: center; padding: 7px 12px;
  border-bottom: 1px solid var(--line); flex: none; }
header b { font-size: 14px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
#about { color: var(--faint); white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  flex: 1; }
#search { width: 260px; padding: 4px 8px; border: 1px solid var(--edge); border-radius: 5px;
  background: var(--back); color: var(--text); font: inherit; }
#search:focus, button:focus-visible, canvas:focus-visible { outline: 2px solid var(--accent);
  outline-offset: -1px; }
#found { color: var(--faint); min-width: 110px; white-space: nowrap; }
button { border: 1px solid var(--edge); border-radius: 5px; background: var(--panel);
  color: var(--text); font: inherit; padding: 3px 9px; cursor: pointer; }
main { position: relative; flex: 1; min-height: 0; }
canvas { position: absolute; inset: 0; width: 100%; height: 100%; display: block;
  touch-action: none; outline: none; }
footer { flex: none; border-top: 1px solid var(--line); padding: 6px 12px; display: flex;
  gap: 16px; align-items: flex-start; height: 52px; }
#legend { flex: 1; display: flex; flex-wrap: wrap; gap: 2px 14px; max-height: 44px;
  overflow-y: auto; }
#legend span, #legend button { display: inline-flex; gap: 6px; align-items: center; border: 0;
  padding: 0; background: none; white-space: nowrap; max-width: 320px; overflow: hidden;
  text-overflow: ellipsis; }
#legend button[aria-pressed=false] { opacity: 0.45; text-decoration: line-through; }
button[aria-pressed=true]#flows { border-color: var(--accent); color: var(--accent); }
#legend i { width: 11px; height: 11px; border-radius: 2px; flex: none;
  border: 1px solid var(--shadow); }
#legend i.lost { background: repeating-linear-gradient(45deg, var(--lost) 0 2px,
  transparent 2px 5px); border-color: var(--lost); }
#legend b { overflow: hidden; text-overflow: ellipsis; }
#legend em { color: var(--faint); font-style: normal; }
#status { color: var(--faint); text-align: right; white-space: pre; max-width: 60%; overflow: hidden;
  text-overflow: ellipsis; }
#tip { position: fixed; z-index: 2; display: none; max-width: 460px; max-height: 60vh;
  overflow: hidden; padding: 8px 10px; background: var(--panel); border: 1px solid var(--edge);
  border-radius: 6px; box-shadow: 0 4px 14px var(--shadow); pointer-events: none; }
#tip h1 { margin: 0 0 3px; font-size: 13px; overflow-wrap: anywhere; }
#tip p { margin: 0 0 3px; color: var(--faint); }
#tip table { border-spacing: 0; }
#tip td { padding: 0 10px 0 0; vertical-align: top; overflow-wrap: anywhere; }
#tip td:first-child { color: var(--faint); white-space: nowrap; }
#help { position: absolute; inset: 0; z-index: 3; display: none; background: var(--shadow);
  align-items: center; justify-content: center; }
#help div { background: var(--panel); border: 1px solid var(--edge); border-radius: 8px;
  padding: 14px 22px; box-shadow: 0 6px 24px var(--shadow); }
#help h1 { font-size: 15px; margin: 0 0 8px; }
#help td { padding: 2px 22px 2px 0; }
#help p { max-width: 560px; margin: 10px 0 0; color: var(--faint); }
kbd { border: 1px solid var(--edge); border-radius: 4px; padding: 0 5px; background: var(--band);
  font: 12px ui-monospace, "DejaVu Sans Mono", monospace; }
</style>
</head>
<body>
<header><b id="title"></b><span id="about"></span>
<span id="found" role="status"></span>
<input id="search" type="search" placeholder="Search events and values   /" spellcheck="false"
 aria-label="Search events and values">
<button id="flows" aria-pressed="false" title="Draw the arrows of all flows (f)">All flows</button>
<button id="ask" aria-label="Help">?</button></header>
<main><canvas id="view" tabindex="0" aria-label="Timeline"></canvas>
<div id="help"><div><h1>Timeline</h1><table>
<tr><td><kbd>wheel</kbd></td><td>zoom about the cursor; with <kbd>Shift</kbd> or over the names: scroll</td></tr>
<tr><td><kbd>drag</kbd></td><td>move</td></tr>
<tr><td><kbd>Shift</kbd> <kbd>drag</kbd></td><td>select a range: its duration, and what is in it</td></tr>
<tr><td><kbd>click</kbd></td><td>select a record, and draw its flows</td></tr>
<tr><td><kbd>click</kbd> on the legend</td><td>hide or show an event; with <kbd>Shift</kbd>: show only this one, or all</td></tr>
<tr><td><kbd>w</kbd> <kbd>s</kbd></td><td>zoom in and out about the cursor</td></tr>
<tr><td><kbd>a</kbd> <kbd>d</kbd></td><td>move left and right</td></tr>
<tr><td><kbd>&larr;</kbd> <kbd>&rarr;</kbd> <kbd>&uarr;</kbd> <kbd>&darr;</kbd></td><td>move</td></tr>
<tr><td><kbd>+</kbd> <kbd>-</kbd></td><td>zoom about the middle</td></tr>
<tr><td><kbd>f</kbd></td><td>draw the arrows of all flows, or only of what is selected</td></tr>
<tr><td><kbd>/</kbd></td><td>search: a part of an event&#39;s name, or of name=value</td></tr>
<tr><td><kbd>n</kbd> <kbd>N</kbd></td><td>next, previous match</td></tr>
<tr><td><kbd>Home</kbd> <kbd>End</kbd></td><td>begin, end</td></tr>
<tr><td><kbd>0</kbd></td><td>everything</td></tr>
<tr><td><kbd>Esc</kbd></td><td>select nothing</td></tr></table>
<p>A torn edge: the end of this span is not there. A line with a cross: the last record of a process
that was killed or crashed. Hatched: records were lost.</p></div></div></main>
<footer><div id="legend"></div><div id="status"></div></footer>
<div id="tip"></div>
)page";

}  // namespace trace_reduce::impl
