// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The page's script, second part: rows, and how they are drawn. A frame costs what is seen of it:
/// the first span or instant of each pixel is found by binary search, and what a pixel holds by the
/// difference of two sums, however many records there are.

#include <string_view>

namespace trace_reduce::impl {

inline constexpr std::string_view html_draw = R"page(
// Spans of one row nest where they do. One that does not goes below, on the first level that is
// free. What has no end ends with the span around it.
const endOf = i => mate[i] ? mate[i] - 1 : count;
function beginSpan(row, t, i) {
  while (row.open.length && row.open.at(-1).end < i) row.open.pop();
  let end = endOf(i), inside = row.open.at(-1);
  if (inside && end === count) end = inside.end;
  const nested = !inside || inside.end > end || endOf(i) === count;
  let level = null;
  const depth = inside ? inside.depth + 1 : 0;
  if (nested) {
    if (depth < DEEPEST) level = row.levels[depth] || (row.levels[depth] = new Level());
  } else {
    level = row.apart.find(each => each.until < i);
    if (!level && row.apart.length < DEEPEST) row.apart.push(level = new Level());
    if (level) level.until = end;
  }
  const at = level ? level.s.n : 0;
  if (level) {
    level.begin(t, i);
    if (end < count) level.end(at, time[end]);
  }
  if (nested && row.open.length < 256) row.open.push({end, depth, level, at, known: endOf(i) < count});
}
function endOpen(row, t) {
  for (const {level, at, known} of row.open) if (level && !known) level.end(at, t);
  row.open = row.open.filter(each => each.known);
}
const rows = [];
const rowOfOwner = new Uint32Array(owners.length);
const perClass = new Float64Array(classes.length);
let firstTime = Infinity, lastTime = -Infinity, lostCount = 0;
// Events that the legend switched off, by `type`; a record of one is not drawn, found or counted.
const hidden = new Set();
const isShown = i => !hidden.has(classes[what[i]].type);
const lastOfOwner = new Float64Array(owners.length).fill(-Infinity);
{
  const byLane = new Map(), byProcess = new Map();
  const newRow = (owner, counters) => {
    const row = {owner, owners: 0, levels: [], open: [], apart: [], t: new Growing(Float64Array),
      r: new Growing(Uint32Array), losses: [], series: [], bySeries: new Map(), last: NaN, n: 0,
      place: rows.length, counters};
    rows.push(row);
    return row;
  };
  owners.forEach((owner, i) => {
    const key = owner.file + ':' + owner.lane;
    let row = byLane.get(key);
    if (!row) byLane.set(key, row = newRow(owner, false));
    ++row.owners;
    rowOfOwner[i] = row.place;
  });
  // A counter is its process's, whichever thread counts.
  const counters = new Set(), counting = fieldsThatAre(COUNTER);
  for (let i = 0; i < count; ++i) if (counting[what[i]].length) counters.add(who[i]);
  for (const i of counters) {
    const key = owners[i].file + ':' + owners[i].process;
    if (!byProcess.has(key)) byProcess.set(key, newRow(owners[i], true));
    owners[i].countersOf = byProcess.get(key);
  }
  const process = owner => owner.process === null ? Infinity : owner.process;
  const order = rows.slice().sort((a, b) => a.owner.file - b.owner.file || a.owner.pid - b.owner.pid ||
    process(a.owner) - process(b.owner) || b.counters - a.counters ||
    a.owner.tid - b.owner.tid || a.owner.depth - b.owner.depth || a.owner.lane - b.owner.lane);
  const place = new Map(order.map((row, i) => [row, i]));
  rowOfOwner.forEach((r, i) => { rowOfOwner[i] = place.get(rows[r]); });
  rows.splice(0, rows.length, ...order);

  const waiting = [];  // losses that no record has come after
  for (let i = 0; i < count; ++i) {
    const row = rows[rowOfOwner[who[i]]], kind = classes[what[i]], t = time[i];
    ++perClass[what[i]];
    if (what[i] === LOST) {
      const loss = {r: i, a: row.last, b: NaN, ...lossOf(i)};
      if (['overwritten', 'overrun', 'damaged'].includes(loss.cause)) endOpen(row, row.last);
      lostCount += loss.count;
      row.losses.push(loss);
      waiting.push([row, loss]);
      continue;
    }
    ++row.n;
    if (t > lastOfOwner[who[i]]) lastOfOwner[who[i]] = t;
    if (t < firstTime) firstTime = t;
    if (t > lastTime) lastTime = t;
    if (row.losses.length !== 0 && Number.isNaN(row.losses.at(-1).b)) {
      for (let n = row.losses.length; n > 0 && Number.isNaN(row.losses[n - 1].b); --n) {
        row.losses[n - 1].b = t;
      }
    }
    if (t < row.last) endOpen(row, row.last);  // the clock went back: no span reaches over that
    row.last = t;
    if (kind.how & BEGIN) {
      beginSpan(row, t, i);
      continue;
    }
    if (kind.how & END && mate[i]) continue;
    let drawn = false;
    for (const n of counting[what[i]]) {
      const value = Number(valuesOf(i, true).fields[n][1]);
      if (!Number.isFinite(value)) continue;
      drawn = true;
      const key = kind.name + '.' + kind.fields[n][0], of = owners[who[i]].countersOf;
      let series = of.bySeries.get(key);
      if (!series) {
        series = new Series(key);
        series.type = kind.colour;
        of.bySeries.set(key, series);
        of.series.push(series);
      }
      series.t.push(t);
      series.v.push(value);
      series.r.push(i);
    }
    if (drawn && kind.kind === 2) continue;
    row.t.push(t);
    row.r.push(i);
  }
  if (firstTime > lastTime) [firstTime, lastTime] = [0, 1];
  for (const [row, loss] of waiting) {
    if (Number.isNaN(loss.a)) loss.a = Math.min(firstTime, loss.b || firstTime);
    if (Number.isNaN(loss.b)) loss.b = lastTime;
    if (loss.b < loss.a) [loss.a, loss.b] = [loss.b, loss.a];
  }
  // A process that is gone has recorded nothing after its last record, so no span lasts longer.
  const lastOf = new Map(), ofProcess = owner => owner.file + ':' + owner.process;
  owners.forEach((owner, i) => {
    if (owner.process !== null)
      lastOf.set(ofProcess(owner), Math.max(lastOf.get(ofProcess(owner)) ?? -Infinity, lastOfOwner[i]));
  });
  for (const row of rows) {
    const last = row.owner.process === null ? -Infinity : lastOf.get(ofProcess(row.owner));
    const gone = last > -Infinity && row.owner.end !== 'running';
    row.broken = gone && row.owner.end === 'broken' ? last : NaN;
    // Losses in one place, of all causes, are one gap.
    row.gaps = [];
    for (const loss of row.losses.slice().sort((a, b) => a.a - b.a || a.b - b.b)) {
      const last = row.gaps.at(-1);
      if (last && last.a === loss.a && last.b === loss.b) last.losses.push(loss);
      else row.gaps.push({a: loss.a, b: loss.b, losses: [loss]});
    }
    row.gapBegins = Float64Array.from(row.gaps, gap => gap.a);
    let reach = -Infinity;
    row.gapReach = Float64Array.from(row.gaps, gap => reach = Math.max(reach, gap.b));
    row.levels.push(...row.apart);
    row.apart = null;
    for (const level of row.levels) level.finish(gone ? last : lastTime);
    for (const series of row.series) series.finish();
    [row.t, row.r] = inOrder([row.t.done(), row.r.done()]);
    row.open = null;
    row.all = {t: row.t, r: row.r, levels: row.levels, series: row.series};
  }
}
// Arrows, by when they begin: from which record to which, of which flow.
const flows = {t: new Growing(Float64Array), from: new Growing(Uint32Array), to: new Growing(Uint32Array),
  of: new Growing(Uint32Array)};
const flowing = fieldsThatAre(FLOW), numberOfFlow = new Map();
{
  const last = [];  // by the flow's number
  for (let i = 0; i < count; ++i) {
    for (const n of flowing[what[i]]) {
      for (const id of numbersOf(i, n)) {
        let flow = numberOfFlow.get(id);
        if (flow === undefined) numberOfFlow.set(id, flow = last.length);
        else {
          flows.t.push(time[last[flow]]);
          flows.from.push(last[flow]);
          flows.to.push(i);
          flows.of.push(flow);
        }
        last[flow] = i;
      }
    }
  }
  const lists = inOrder([flows.t, flows.from, flows.to, flows.of].map(list => list.done()));
  [flows.t, flows.from, flows.to, flows.of] = lists;
}
// The flows of a record, and of the other end of its span.
function flowsOf(i) {
  const all = new Set();
  for (const record of mate[i] ? [i, mate[i] - 1] : [i]) {
    for (const n of flowing[what[record]]) {
      for (const id of numbersOf(record, n)) all.add(numberOfFlow.get(id));
    }
  }
  return all;
}
// The arrows to draw, and the farthest end up to each: all of them, or the arrows of the selection.
// A thousand requests would cover everything.
let arrows = null;
function chooseArrows() {
  const {selected, range} = state, {t, from, to, of} = flows;
  const ids = !state.allFlows && selected >= 0 && what[selected] !== LOST ? flowsOf(selected) : new Set();
  const within = i => range && time[i] >= range[0] && time[i] <= range[1];
  const wanted = state.allFlows ? () => true : ids.size > 0 ? k => ids.has(of[k]) :
    k => within(from[k]) || within(to[k]);
  const all = [];
  if (state.allFlows || ids.size > 0 || range) {
    for (let k = 0; k < t.length; ++k) if (wanted(k) && isShown(from[k]) && isShown(to[k])) all.push(k);
  }
  let farthest = -Infinity;
  arrows = {t: Float64Array.from(all, k => t[k]), from: Uint32Array.from(all, k => from[k]),
    to: Uint32Array.from(all, k => to[k])};
  arrows.reach = Float64Array.from(arrows.to, i => farthest = Math.max(farthest, time[i]));
}
const AXIS = 26, TICKS = 15, BAR = 18, GRAPH = 34, PAD = 5;
let tall = 0;
// What the rows show, and where they are.
function arrange() {
  tall = 0;
  for (const row of rows) {
    Object.assign(row, row.all);
    if (hidden.size > 0) {
      const ticks = Array.from(row.r.keys()).filter(i => isShown(row.r[i]));
      row.t = Float64Array.from(ticks, i => row.all.t[i]);
      row.r = Uint32Array.from(ticks, i => row.all.r[i]);
      row.levels = row.levels.map(level => level.only(isShown)).filter(level => level.r.length > 0);
      row.series = row.series.filter(series => isShown(series.r[0]));
    }
    row.y = tall;
    row.ticksY = PAD;
    row.levelsY = PAD + TICKS;
    row.seriesY = row.counters ? 38 : row.levelsY + row.levels.length * BAR;
    row.h = Math.max(row.seriesY + row.series.length * (GRAPH + 2) + PAD, 38);
    tall += row.h;
  }
}
arrange();

// --- The view -------------------------------------------------------------------------------
const canvas = $('view'), ctx = canvas.getContext('2d');
const GUTTER = 168;
const margin = Math.max((lastTime - firstTime) * 0.01, 1);
const view = {a: firstTime - margin, b: lastTime + margin, y: 0, width: 0, height: 0, dpr: 1};
const state = {selected: -1, range: null, matches: new Float64Array(0), allFlows: false, pointer: NaN};
chooseArrows();
let look = {};
// Told apart with every kind of colour vision (after Okabe and Ito); vermilion is for losses.
const colours = ['#56b4e9', '#e69f00', '#2fb58a', '#cc79a7', '#f0e442', '#5a8fd6', '#a9b1b9'];
function readLook() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['back', 'band', 'line', 'text', 'faint', 'accent', 'lost', 'range', 'bar-text'])
    look[name] = style.getPropertyValue('--' + name).trim();
  const tile = document.createElement('canvas'), size = 8 * view.dpr;
  tile.width = tile.height = size;
  const pen = tile.getContext('2d');
  pen.strokeStyle = look.lost;
  pen.lineWidth = 1.6 * view.dpr;
  for (const shift of [-size, 0, size]) {
    pen.beginPath();
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
    pen.stroke();
  }
  readPixels();
  look.hatch = ctx.createPattern(tile, 'repeat');
  look.hatch.setTransform(new DOMMatrix().scale(1 / view.dpr));
}
const scale = () => (view.width - GUTTER) / (view.b - view.a);
const xOf = t => GUTTER + (t - view.a) * scale();
const timeAt = x => view.a + (x - GUTTER) / scale();

const units = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
function length(ns, digits = 4) {
  if (!meta.known) return Math.round(ns) + ' ticks';
  const size = Math.abs(ns), [unit, name] = units.find(([u]) => size >= u) || units[3];
  return Number((ns / unit).toPrecision(digits)) + ' ' + name;
}
function since(ns, step) {  // from the first record, with enough digits to distinguish two steps
  if (!meta.known) return String(Math.round(ns));
  const [unit, name] = units.find(([u]) => Math.abs(ns) >= u) || units[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9)));
  return (ns / unit).toFixed(digits) + ' ' + name;
}
function dateOf(ns) {
  if (!meta.known) return 'tick ' + (BigInt(meta.base) + BigInt(Math.round(ns)));
  const all = BigInt(meta.base) + BigInt(Math.round(ns));
  const ms = all / 1000000n, date = new Date(Number(ms)), two = v => String(v).padStart(2, '0');
  if (Number.isNaN(date.getTime())) return all + ' ns';
  const rest = ((all % 1000000000n) + 1000000000n) % 1000000000n;
  return date.getFullYear() + '-' + two(date.getMonth() + 1) + '-' + two(date.getDate()) + ' ' +
    two(date.getHours()) + ':' + two(date.getMinutes()) + ':' + two(date.getSeconds()) + '.' +
    String(rest).padStart(9, '0');
}
const nameOfRow = row => row.counters ? row.owner.program || 'counters' : threadOf(row.owner);
const threadOf = owner => owner.lane === 0 && !owner.tid ? 'no lane' :
  owner.listed ? (owner.name || 'thread ' + owner.tid) + (owner.depth ? ' +' + owner.depth : '') :
    'lane ' + owner.lane;
const underOf = owner => owner.listed ? owner.shownPid + '/' + owner.tid : '';

let letter = 7;  // about the width of one
function clipped(text, width) {
  let fits = Math.floor(width / letter);
  if (text.length <= fits && ctx.measureText(text).width <= width) return text;
  for (fits = Math.min(fits, text.length); fits > 2; fits -= Math.ceil(fits / 8)) {
    const part = text.slice(0, fits - 1) + '\u2026';
    if (ctx.measureText(part).width <= width) return part;
  }
  return '';
}
// Marks narrower than a bar are pixels of one picture, which is drawn in one call: a million
// records are only as many marks as the page is wide, and each would otherwise be a call.
const sheet = {canvas: document.createElement('canvas'), width: 0, height: 0, image: null, pixels: null};
sheet.pen = sheet.canvas.getContext('2d', {willReadFrequently: true});
function clearSheet() {
  const width = Math.ceil(view.width - GUTTER), height = Math.ceil(view.height - AXIS);
  if (width !== sheet.width || height !== sheet.height) {
    Object.assign(sheet, {width, height});
    Object.assign(sheet.canvas, {width, height});
    sheet.image = sheet.pen.createImageData(width, height);
    sheet.pixels = new Uint32Array(sheet.image.data.buffer);
  }
  sheet.pixels.fill(0);
}
function showSheet() {
  sheet.pen.putImageData(sheet.image, 0, 0);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(sheet.canvas, GUTTER, AXIS, sheet.width, sheet.height);
}
// As the picture's memory has them: by class, all of it seen.
const pixels = new Uint32Array(classes.length);
function readPixels() {
  classes.forEach((kind, i) => {
    const rgb = parseInt(colourOf(i).slice(1), 16);
    pixels[i] = (0xff000000 | (rgb & 255) << 16 | rgb & 0xff00 | rgb >> 16) >>> 0;
  });
}
// Of the class of that number.
const colourOf = kind => kind === JUMP || kind === DATE ? look.lost : colours[classes[kind].colour % colours.length];
const seenOf = (pixel, share) => (pixel & 0xffffff | Math.round(share * 255) << 24) >>> 0;
function mark(x, y, w, h, pixel) {
  const {width, height} = sheet, to = sheet.pixels;
  const left = Math.max(Math.round(x) - GUTTER, 0), right = Math.min(Math.round(x + w) - GUTTER, width);
  const top = Math.max(Math.round(y) - AXIS, 0), bottom = Math.min(Math.round(y + h) - AXIS, height);
  if (right - left < 8) {
    for (let line = top, at = top * width; line < bottom; ++line, at += width) {
      for (let k = at + left; k < at + right; ++k) to[k] = pixel;
    }
  } else {
    for (let line = top; line < bottom; ++line) to.fill(pixel, line * width + left, line * width + right);
  }
}
// As `lower`, where the place is probably not far from `low`.
function lowerNear(a, v, low) {
  let step = 1;
  while (low + step < a.length && a[low + step] < v) {
    low += step;
    step *= 2;
  }
  return lower(a, v, low, Math.min(low + step, a.length));
}
// Spans of two pixels and more go to `bars`.
function markLevel(level, y, bars) {
  const n = level.s.length, perPixel = 1 / scale();
  for (let i = lower(level.reach, view.a); i < n && level.s[i] < view.b;) {
    const x = xOf(level.s[i]), wide = (level.e[i] - level.s[i]) / perPixel;
    if (wide >= 2) {
      bars.push({x, y, wide, record: level.r[i]});
      ++i;
      continue;
    }
    // One pixel: how much of it is covered, in the colour of the longest of a few.
    const px = Math.floor(x), next = Math.max(i + 1, lowerNear(level.s, timeAt(px + 1), i));
    const busy = Math.min(1, (level.before[next] - level.before[i]) / perPixel);
    let longest = i, most = 0;
    for (let k = i, step = Math.max(1, next - i >> 2); k < next; k += step) {
      const long = level.e[k] - level.s[k];
      if (long > most) {
        most = long;
        longest = k;
      }
    }
    mark(px, y, 1, BAR - 2, seenOf(pixels[what[level.r[longest]]], 0.35 + 0.65 * busy));
    i = next;
  }
}
function drawBars(bars) {
  for (const {x, y, wide, record} of bars) {
    const left = Math.max(x, GUTTER - 2), right = Math.min(x + wide, view.width + 2);
    ctx.fillStyle = colourOf(what[record]);
    ctx.fillRect(left, y, Math.max(right - left - (wide > 4 ? 0.75 : 0), 1), BAR - 2);
    const torn = !mate[record];
    if (torn && wide > 6 && x + wide <= view.width) drawTornEdge(x + wide, y);
    if (right - left < 26) continue;
    const begin = Math.max(left, GUTTER), name = classes[what[record]].name;
    const text = clipped(visible(name) + (torn ? ' (no end)' : ''), right - begin - (torn ? 12 : 8));
    if (!text) continue;
    ctx.fillStyle = look['bar-text'];
    ctx.fillText(text, begin + 4, y + 12);
  }
}
// Of a span whose end is not in the page.
function drawTornEdge(x, y) {
  const h = BAR - 2, teeth = 4;
  ctx.fillStyle = look.back;
  ctx.beginPath();
  ctx.moveTo(x + 1, y);
  for (let n = 0; n < teeth; ++n) {
    ctx.lineTo(x - 5, y + (n + 0.5) * h / teeth);
    ctx.lineTo(x, y + (n + 1) * h / teeth);
  }
  ctx.lineTo(x + 1, y + h);
  ctx.fill();
}
function markTicks(row, y, labels) {
  for (let i = lower(row.t, view.a); i < row.t.length && row.t[i] < view.b;) {
    const px = Math.floor(xOf(row.t[i]));
    const next = Math.max(i + 1, lowerNear(row.t, timeAt(px + 2), i));
    const h = Math.min(TICKS - 2, 8 + Math.log2(next - i));  // higher, the more there are
    const room = (next < row.t.length ? xOf(row.t[next]) : view.width) - px;
    mark(px, y + TICKS - 2 - h, room > 8 && next - i === 1 ? 3 : 2, h, pixels[what[row.r[i]]]);
    if (room > 34 && next - i === 1) labels.push({x: px + 6, y: y + TICKS - 4, room: room - 12, record: row.r[i]});
    i = next;
  }
}
function markSeries(series, y) {
  const [low, high] = series.scale, h = GRAPH - 4;
  const at = v => y + 2 + h - (high === low ? 0 : (v - low) / (high - low)) * h, zero = at(0);
  const pixel = seenOf(pixels[what[series.r[0]]], 0.8);
  // From the value that holds where the view begins; a pixel has the least and the greatest in it.
  const part = (x, end, least, most) => {
    const top = Math.min(at(most), zero), bottom = Math.max(at(least), zero);
    mark(x, top, end - x, Math.max(bottom - top, 1), pixel);
  };
  let i = Math.max(0, lower(series.t, view.a) - 1);
  const last = Math.min(Math.round(xOf(lastTime)) + 1, view.width);
  while (i < series.t.length && series.t[i] < view.b) {
    const px = Math.max(Math.round(xOf(series.t[i])), GUTTER);
    const next = Math.max(i + 1, lowerNear(series.t, timeAt(px + 0.5), i));
    part(px, px + 1, ...(next - i === 1 ? [series.v[i], series.v[i]] : series.within(i, next)));
    const until = next < series.t.length ? Math.round(xOf(series.t[next])) : last;
    if (until > px + 1) part(px + 1, until, series.v[next - 1], series.v[next - 1]);
    i = next;
  }
}
)page";

}  // namespace trace_reduce::impl
