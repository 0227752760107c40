// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The page's script, third part: a frame, the item under the pointer, and its description.
/// Text of the trace becomes text nodes and pixels, never markup.

#include <string_view>

namespace trace_reduce::impl {

inline constexpr std::string_view html_frame = R"page(
const countText = n => n === 0 ? 'records' : n.toLocaleString('en');
function gapText(gap) {
  if (gap.losses.length === 1) return countText(gap.losses[0].count) + ' lost: ' + gap.losses[0].cause;
  const by = new Map();
  let all = 0;
  for (const {cause, count: n} of gap.losses) {
    by.set(cause, (by.get(cause) || 0) + n);
    all += n;
  }
  return countText(all) + ' lost: ' + [...by].map(([cause, n]) => cause + ' ' + n).join(', ');
}
function drawGaps(row, y, h) {
  const gaps = row.gaps;
  for (let i = lower(row.gapReach, view.a); i < gaps.length && gaps[i].a < view.b;) {
    drawGap(gaps[i], y, h);
    // Others of the same few pixels look no different.
    i = Math.max(i + 1, lower(row.gapBegins, timeAt(xOf(gaps[i].a) + 4), i));
  }
}
function drawGap(gap, y, h) {
  const left = Math.max(xOf(gap.a), GUTTER), right = Math.min(Math.max(xOf(gap.b), xOf(gap.a) + 5), view.width);
  if (right < GUTTER || left > view.width) return;
  ctx.fillStyle = look.hatch;
  ctx.fillRect(left, y, right - left, h);
  ctx.fillStyle = look.lost;
  ctx.fillRect(left, y, 1, h);
  ctx.fillRect(right - 1, y, 1, h);
  const text = clipped(gapText(gap), right - left - 10);
  if (!text) return;
  const wide = ctx.measureText(text).width + 8;
  ctx.fillStyle = look.back;
  ctx.fillRect(left + 4, y + h / 2 - 9, wide, 18);
  ctx.fillStyle = look.lost;
  ctx.fillText(text, left + 8, y + h / 2 + 4);
}
// Where a process recorded last that did not close its trace.
const brokenX = row => xOf(row.broken) + 2;
function drawBroken(row, y, isFirst) {
  const x = Math.round(brokenX(row));
  if (!(x >= GUTTER - 6 && x <= view.width + 6)) return;
  ctx.fillStyle = ctx.strokeStyle = look.lost;
  ctx.fillRect(x, y, 2, row.h);
  ctx.lineWidth = 2;
  for (const side of [-1, 1]) {
    ctx.beginPath();
    ctx.moveTo(x + 1 - 4 * side, y + 3);
    ctx.lineTo(x + 1 + 4 * side, y + 11);
    ctx.stroke();
  }
  const text = isFirst ? clipped(brokenText, view.width - x - 14) : '';
  if (text) ctx.fillText(text, x + 9, y + 12);
}
const brokenText = 'killed or crashed';
function drawAxis() {
  const room = Math.max(2, Math.floor((view.width - GUTTER) / 110)), span = view.b - view.a;
  let step = 10 ** Math.floor(Math.log10(span / room));
  step = [1, 2, 5, 10].map(k => k * step).find(s => span / s <= room) || step * 10;
  ctx.fillStyle = look.back;
  ctx.fillRect(0, 0, view.width, AXIS);
  ctx.fillStyle = look.line;
  ctx.fillRect(0, AXIS - 1, view.width, 1);
  const zero = firstTime, begin = Math.ceil((view.a - zero) / step);
  for (let k = begin; k <= begin + room + 1 && k * step + zero <= view.b; ++k) {
    const x = Math.round(xOf(k * step + zero));
    if (x < GUTTER) continue;
    ctx.fillStyle = look.line;
    ctx.fillRect(x, AXIS - 6, 1, view.height);
    ctx.fillStyle = look.faint;
    ctx.fillText(since(k * step, step), x + 4, 15);
  }
  ctx.fillStyle = look.faint;
  ctx.fillText(meta.known ? 'from the first record' : 'ticks', 12, 15);
}
function drawMatches() {
  ctx.fillStyle = look.accent;
  const times = state.matches;
  for (let i = lower(times, view.a); i < times.length && times[i] < view.b;) {
    const px = Math.floor(xOf(times[i]));
    ctx.fillRect(px, AXIS - 5, 2, 5);
    i = Math.max(i + 1, lower(times, timeAt(px + 2), i));
  }
}
function drawSelected(i) {
  if (i < 0 || what[i] === LOST || !isShown(i)) return;
  const row = rowOf(i), box = boxOf(i);
  if (box.x + box.w < GUTTER || box.x > view.width) return;
  const y = AXIS + row.y - view.y;
  ctx.strokeStyle = look.accent;
  ctx.lineWidth = 2;
  const left = Math.max(box.x, GUTTER) - 1.5;
  ctx.strokeRect(left, y + box.y - 1.5, Math.max(Math.min(box.x + box.w, view.width) - left + 1.5, 5), box.h + 2);
}
// The row that record `i` is drawn in.
function rowOf(i) {
  const of = owners[who[i]].countersOf;
  return of && of.series.some(series => holds(series, i)) ? of : rows[rowOfOwner[who[drawnAs(i)]]];
}
const holds = (series, i) => series.r[lower(series.r, i)] === i;
// Where it is drawn, from its row's top; of a span's end: the span.
function boxOf(i) {
  const row = rowOf(i), of = drawnAs(i), t = time[of];
  if (row.counters) {
    const at = row.series.findIndex(series => holds(series, i));
    return {x: xOf(t), w: 2, y: row.seriesY + at * (GRAPH + 2), h: GRAPH};
  }
  for (const [depth, level] of row.levels.entries()) {
    for (let k = lower(level.s, t); k < level.s.length && level.s[k] === t; ++k) {
      if (level.r[k] !== of) continue;
      return {x: xOf(level.s[k]), w: Math.max((level.e[k] - level.s[k]) * scale(), 1),
        y: row.levelsY + depth * BAR, h: BAR - 3, lasts: level.e[k] - level.s[k]};
    }
  }
  return {x: Math.floor(xOf(t)), w: 2, y: row.ticksY, h: TICKS - 2};
}

// The values at the top and the bottom of a curve, left of it.
const scaleText = value => Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) :
  String(Number(value.toPrecision(5)));
function drawScale(series, y) {
  const [low, high] = series.scale;
  ctx.font = smallFont;
  ctx.textAlign = 'right';
  ctx.fillText(scaleText(high), GUTTER - 12, y + 9);
  if (high !== low) ctx.fillText(scaleText(low), GUTTER - 12, y + GRAPH - 2);
  ctx.textAlign = 'left';
  ctx.font = font;
}
// From each record of a flow to the next: of those that begin in one pixel, the first few.
// (chooseArrows says which flows.)
function drawFlows() {
  ctx.strokeStyle = ctx.fillStyle = look.accent;
  ctx.lineWidth = 1;
  ctx.globalAlpha = 0.7;
  const {t, from, to, reach} = arrows;
  let pixel = NaN, inPixel = 0;
  for (let i = lower(reach, view.a); i < t.length && t[i] < view.b; ++i) {
    if (time[to[i]] < view.a) continue;
    const px = Math.max(Math.floor(xOf(t[i])), GUTTER);
    inPixel = px === pixel ? inPixel + 1 : 0;
    pixel = px;
    if (inPixel >= 8) {
      if (px > GUTTER) i = Math.max(i, lowerNear(t, timeAt(px + 1), i) - 1);
      continue;
    }
    const middle = k => {
      const box = boxOf(k);
      return [xOf(time[k]), AXIS + rowOf(k).y - view.y + box.y + box.h / 2];
    };
    const [x, y] = middle(from[i]), [u, v] = middle(to[i]), bend = Math.max(12, Math.min(60, (u - x) / 2));
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.bezierCurveTo(x + bend, y, u - bend, v, u - 5, v);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(u, v);
    ctx.lineTo(u - 6, v - 3.5);
    ctx.lineTo(u - 6, v + 3.5);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

const font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const smallFont = '10px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
function draw() {
  ctx.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
  ctx.font = font;
  letter = ctx.measureText('the width of a letter').width / 21;
  ctx.fillStyle = look.back;
  ctx.fillRect(0, 0, view.width, view.height);
  const seen = [];
  rows.forEach((row, i) => {
    const y = AXIS + row.y - Math.round(view.y);
    if (y + row.h < AXIS || y > view.height) return;
    seen.push([row, y]);
    if (i % 2) {
      ctx.fillStyle = look.band;
      ctx.fillRect(0, y, view.width, row.h);
    }
  });
  drawAxis();
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, AXIS, view.width - GUTTER, view.height - AXIS);
  ctx.clip();
  const bars = [], labels = [];
  clearSheet();
  for (const [row, y] of seen) {
    drawGaps(row, y + 2, row.h - 4);
    markTicks(row, y + row.ticksY, labels);
    row.levels.forEach((level, depth) => markLevel(level, y + row.levelsY + depth * BAR, bars));
    row.series.forEach((series, k) => markSeries(series, y + row.seriesY + k * (GRAPH + 2)));
  }
  showSheet();
  drawBars(bars);
  ctx.fillStyle = look.faint;
  for (const {x, y, room, record} of labels) ctx.fillText(clipped(visible(nameOf(record)), room), x, y);
  for (const [row, y] of seen) {
    row.series.forEach((series, k) => {
      const top = y + row.seriesY + k * (GRAPH + 2);
      const text = clipped(visible(series.name) + '  ' + series.low + ' to ' + series.high, 400);
      ctx.globalAlpha = 0.75;
      ctx.fillStyle = look.back;
      ctx.fillRect(GUTTER + 3, top + 2, ctx.measureText(text).width + 6, 16);
      ctx.globalAlpha = 1;
      ctx.fillStyle = look.faint;
      ctx.fillText(text, GUTTER + 6, top + 14);
    });
  }
  const processes = new Set();
  for (const [row, y] of seen) {
    if (Number.isNaN(row.broken)) continue;
    const process = row.owner.file + ':' + row.owner.process;
    drawBroken(row, y, !processes.has(process));
    processes.add(process);
  }
  drawFlows();
  drawSelected(state.selected);
  if (state.range) {
    const [a, b] = state.range.map(xOf);
    ctx.fillStyle = look.range;
    ctx.fillRect(a, AXIS, b - a, view.height);
    ctx.fillStyle = look.accent;
    ctx.fillRect(a, AXIS, 1, view.height);
    ctx.fillRect(b - 1, AXIS, 1, view.height);
  }
  ctx.restore();
  drawMatches();
  ctx.fillStyle = look.line;
  ctx.fillRect(GUTTER - 1, 0, 1, view.height);
  for (const [row, y] of seen) {
    if (y + 32 < AXIS) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, Math.max(y, AXIS), GUTTER - 8, row.h);
    ctx.clip();
    ctx.fillStyle = look.text;
    ctx.fillText(clipped(visible(nameOfRow(row)), GUTTER - 24), 12, y + 17);
    ctx.fillStyle = look.faint;
    const more = row.owners > 1 ? ' and ' + (row.owners - 1) + ' more' : '';
    const under = row.counters ? row.owner.shownPid + ': counters' : underOf(row.owner) + more;
    ctx.fillText(clipped(under, GUTTER - 24), 12, y + 32);
    row.series.forEach((series, k) => drawScale(series, y + row.seriesY + k * (GRAPH + 2)));
    ctx.restore();
  }
  if (tall > view.height - AXIS) {  // how far down
    const shown = (view.height - AXIS) / tall;
    ctx.fillStyle = look.faint;
    ctx.globalAlpha = 0.5;
    ctx.fillRect(view.width - 5, AXIS + view.y * shown, 4, (view.height - AXIS) * shown);
    ctx.globalAlpha = 1;
  }
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}
function resize() {
  const box = canvas.getBoundingClientRect();
  view.width = Math.max(box.width, GUTTER + 50);
  view.height = Math.max(box.height, 60);
  view.dpr = window.devicePixelRatio || 1;
  canvas.width = Math.round(view.width * view.dpr);
  canvas.height = Math.round(view.height * view.dpr);
  readLook();
  scrollTo(view.y);
  redraw();
}

// --- What is where --------------------------------------------------------------------------
// {record}, {gap}, {broken}, which is a row, or null, at a point of the canvas.
function under(x, y) {
  if (x < GUTTER || y < AXIS) return null;
  const row = rows.find(r => y >= AXIS + r.y - view.y && y < AXIS + r.y + r.h - view.y);
  if (!row) return null;
  const t = timeAt(x), near = 4 / scale(), inside = y - AXIS - row.y + view.y;
  const nearest = (times, records) => {
    const i = lower(times, t);
    let best = -1;
    for (const k of [i - 1, i]) {
      if (k >= 0 && k < times.length && Math.abs(times[k] - t) <= near &&
          (best < 0 || Math.abs(times[k] - t) < Math.abs(times[best] - t))) best = k;
    }
    return best < 0 ? null : {record: records[best]};
  };
  const depth = Math.floor((inside - row.levelsY) / BAR);
  if (inside < row.levelsY) {
    const found = nearest(row.t, row.r);
    if (found) return found;
  } else if (depth < row.levels.length) {
    const level = row.levels[depth];
    let i = lower(level.reach, t);
    if (i < level.s.length && level.s[i] <= t) return {record: level.r[i]};
    const found = nearest(level.s, level.r);
    if (found) return found;
  } else {
    const series = row.series[Math.floor((inside - row.seriesY) / (GRAPH + 2))];
    const i = series ? lower(series.t, t + 1e-9) - 1 : -1;
    if (i >= 0) return {record: series.r[i]};
  }
  for (let i = lower(row.gapReach, t - 2 * near); i < row.gaps.length && xOf(row.gaps[i].a) - 2 <= x; ++i) {
    const gap = row.gaps[i];
    if (x <= Math.max(xOf(gap.b), xOf(gap.a) + 5) + 2) return {gap};
  }
  if (Math.abs(brokenX(row) + 1 - x) <= 5) return {broken: row};
  return null;
}
// The description of a record or of the losses in one place: {title, lines, fields}.
function told(found) {
  if (found.broken) {
    const {owner, broken} = found.broken;
    return {title: brokenText, lines: [(owner.program ? owner.program + ', ' : '') + 'process ' + owner.shownPid,
      'last record: ' + dateOf(broken),
      'It did not close its trace and does not run here: it was killed, it crashed, or this file is a copy.'],
      fields: []};
  }
  if (found.gap) {
    const {gap} = found, owner = owners[who[gap.losses[0].r]];
    return {title: gapText(gap), lines: [threadOf(owner),
      'between ' + dateOf(gap.a) + ' and ' + dateOf(gap.b)],
      fields: gap.losses.flatMap(loss => [['cause', loss.cause], ...loss.values])};
  }
  const i = found.record, owner = owners[who[i]], values = valuesOf(i), lines = [];
  lines.push(threadOf(owner) + (owner.listed ? ' (' + underOf(owner) + ')' : '') +
    (meta.files.length > 1 ? ', ' + meta.files[owner.file] : ''));
  if (values.latest === undefined) {
    lines.push(dateOf(time[i]));
  } else {  // the clock was not read for this record
    lines.push('not before ' + dateOf(time[i]));
    lines.push(values.latest === null ? 'not later than: not known' :
      'not after ' + dateOf(values.latest) + ' (within ' + length(values.latest - time[i]) + ')');
  }
  const {lasts} = boxOf(i), {how} = classes[what[i]];
  if (lasts !== undefined && mate[i]) lines.push('lasts ' + length(lasts, 6));
  else if (lasts !== undefined) lines.push('its end is not known: shown for ' + length(lasts, 6) +
    (time[i] + lasts === rowOf(i).broken ? ', until its process was killed or crashed' : ''));
  if (how & END && !mate[i])
    lines.push(notNested.has(i) ? 'not nested: not known which it ends' : 'its begin is not there');
  if (how & END && mate[i] && owners[who[mate[i] - 1]] !== owner)
    lines.push('begun by ' + threadOf(owners[who[mate[i] - 1]]));
  const other = how & BEGIN && mate[i] ? mate[i] - 1 : i, end = classes[what[other]];
  if (end.results && end.how & END && end.how & BARE) lines.push('ended without results');
  // An end has the fields of its begin again, or results: then it is of another type.
  const results = end.event === classes[what[i]].event ? [] : valuesOf(other).fields;
  return {title: nameOf(i), lines, fields: values.fields.concat(results)};
}
function element(tag, text, parent) {
  const node = document.createElement(tag);
  node.textContent = text;
  if (parent) parent.append(node);
  return node;
}
function showTip(found, x, y) {
  const tip = $('tip');
  if (!found) {
    tip.style.display = 'none';
    return;
  }
  const {title, lines, fields} = told(found);
  tip.replaceChildren();
  element('h1', visible(title), tip);
  for (const line of lines) element('p', visible(line), tip);
  const table = element('table', '', tip);
  for (const [name, value] of fields.slice(0, 40)) {
    const line = element('tr', '', table), text = String(value);
    element('td', visible(name), line);
    element('td', text.length > 400 ? text.slice(0, 400) + '\u2026' : text, line);
  }
  if (fields.length > 40) element('p', fields.length - 40 + ' more fields', tip);
  tip.style.display = 'block';
  placeTip(tip, [placeOf(found), state.selected < 0 ? null : placeOf({record: state.selected})], x, y);
}
// The place on the screen of a record, or of the losses in one place.
function placeOf({record, gap, broken}) {
  const at = canvas.getBoundingClientRect();
  if (broken) return {x: at.x + brokenX(broken), y: at.y + AXIS + broken.y - view.y, w: 2, h: broken.h};
  if (record !== undefined && what[record] !== LOST) {
    const box = boxOf(record);
    return {x: at.x + box.x, y: at.y + AXIS + rowOf(record).y - view.y + box.y, w: box.w, h: box.h};
  }
  const row = rows[rowOfOwner[who[gap ? gap.losses[0].r : record]]];
  gap = gap || row.gaps.find(each => each.losses.some(loss => loss.r === record));
  return {x: at.x + xOf(gap.a), y: at.y + AXIS + row.y - view.y, w: Math.max(xOf(gap.b) - xOf(gap.a), 5), h: row.h};
}
// Next to the pointer, where it covers neither the described item nor the selection.
function placeTip(tip, seen, x, y) {
  const {width, height} = tip.getBoundingClientRect();
  const boxes = seen.filter(box => box !== null);
  const rights = boxes.map(box => box.x + box.w + 8), lefts = boxes.map(box => box.x - width - 8);
  const bottoms = boxes.map(box => box.y + box.h + 8), tops = boxes.map(box => box.y - height - 8);
  const places = [[x + 14, y + 14], [x - width - 10, y + 14]];
  for (const v of [...bottoms, ...tops]) places.push([x + 14, v], [x - width - 10, v]);
  for (const u of [...rights, ...lefts]) places.push([u, y + 14], [u, y - height - 10]);
  const covered = ([u, v]) => boxes.reduce((sum, box) => sum +
    Math.max(0, Math.min(u + width, box.x + box.w) - Math.max(u, box.x)) *
    Math.max(0, Math.min(v + height, box.y + box.h) - Math.max(v, box.y)), 0);
  const inside = places.map(([u, v]) => [Math.max(4, Math.min(u, innerWidth - width - 4)),
    Math.max(4, Math.min(v, innerHeight - height - 4))]);
  const [left, top] = inside.reduce((best, each) => covered(each) < covered(best) ? each : best);
  tip.style.left = left + 'px';
  tip.style.top = top + 'px';
}
)page";

}  // namespace trace_reduce::impl
