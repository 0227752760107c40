// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The page's script, fourth part: pointer, keys and search, and `window.traceRing`, with which
/// tests (and users) inspect and control the page.

#include <string_view>

namespace trace_reduce::impl {

inline constexpr std::string_view html_input = R"page(
function show(a, b) {
  const widest = (lastTime - firstTime + 2 * margin) * 4, wide = Math.min(Math.max(b - a, 10), widest);
  const middle = Math.min(Math.max((a + b) / 2, firstTime - wide / 2), lastTime + wide / 2);
  view.a = middle - wide / 2;
  view.b = middle + wide / 2;
  redraw();
}
const showAll = () => show(firstTime - margin, lastTime + margin);
function zoomAbout(t, factor) {
  show(t - (t - view.a) * factor, t + (view.b - t) * factor);
}
const pan = share => show(view.a + (view.b - view.a) * share, view.b + (view.b - view.a) * share);
function scrollTo(y) {
  view.y = Math.max(0, Math.min(y, tall - (view.height - AXIS)));
  redraw();
}
function tell(text) { $('status').textContent = text; }
function select(i, move) {
  state.selected = i;
  chooseArrows();
  if (i < 0) {
    tell('');
  } else {
    const {title, lines, fields} = told(what[i] === LOST ?
      {gap: rows[rowOfOwner[who[i]]].gaps.find(gap => gap.losses.some(loss => loss.r === i))} :
      {record: i});
    tell(visible(title) + '  ' + fields.map(([n, v]) => visible(n) + '=' + String(v)).join(' ')
      .slice(0, 300) + '\n' + lines.map(visible).join('; '));
    if (move) {
      const whole = lastTime - firstTime, wide = Math.min(view.b - view.a, Math.max(whole / 40, 1000));
      if (time[i] < view.a + (view.b - view.a) * 0.05 || time[i] > view.b - (view.b - view.a) * 0.05 ||
          view.b - view.a > whole / 20) {
        show(time[i] - wide / 2, time[i] + wide / 2);
      }
      const row = what[i] === LOST ? rows[rowOfOwner[who[i]]] : rowOf(i);
      if (row.y < view.y || row.y + row.h > view.y + view.height - AXIS) scrollTo(row.y - 40);
    }
  }
  redraw();
}
function selectRange(a, b) {
  if (a > b) [a, b] = [b, a];
  state.range = [a, b];
  chooseArrows();
  let records = 0, lost = 0;
  const found = new Map();
  for (let i = 0; i < count; ++i) {
    if (what[i] === LOST || !(time[i] >= a && time[i] <= b) || !isShown(i)) continue;
    ++records;
    const name = classes[what[i]].name;
    found.set(name, (found.get(name) || 0) + 1);
  }
  for (const row of rows) for (const loss of row.losses) if (loss.a <= b && loss.b >= a) lost += loss.count;
  const most = [...found].sort((x, y) => y[1] - x[1]).slice(0, 5);
  tell(length(b - a, 6) + ': ' + records.toLocaleString('en') + ' records' +
    (lost ? ', up to ' + lost.toLocaleString('en') + ' lost' : '') + '\n' +
    most.map(([n, k]) => visible(n) + ' ' + k.toLocaleString('en')).join(', '));
  redraw();
  return {duration: b - a, records, lost, byEvent: Object.fromEntries(found)};
}

// --- Search ---------------------------------------------------------------------------------
// Shown records whose event's name, or `name=value` of a field, contains the text. In slices, so that the page
// stays responsive.
const search = {text: '', found: new Growing(Uint32Array), done: true, at: -1, number: 0};
function find(text) {
  const number = ++search.number, wanted = text.toLowerCase();
  Object.assign(search, {text, found: new Growing(Uint32Array), done: false, at: -1});
  state.matches = new Float64Array(0);
  const byName = classes.map(kind => kind.name.toLowerCase().includes(wanted));
  const hasFields = classes.map(kind => kind.fields.length > 0 || (kind.how & FAULTY) !== 0);
  return new Promise(resolve => {
    let next = 0;
    const finish = () => {
      search.done = true;
      state.matches = Float64Array.from(search.found.done(), i => time[i]).sort();
      tellFound();
      redraw();
      resolve(search.found.n);
    };
    const slice = () => {
      if (number !== search.number) return resolve(-1);
      if (!wanted) return finish();
      const until = performance.now() + 12;
      while (next < count) {
        const i = next++, kind = what[i];
        if (!isShown(i)) {
          // not found
        } else if (byName[kind]) {
          search.found.push(i);
        } else if (hasFields[kind]) {
          for (const [name, value] of valuesOf(i).fields) {
            if ((name + '=' + value).toLowerCase().includes(wanted)) {
              search.found.push(i);
              break;
            }
          }
        }
        if ((next & 255) === 0 && performance.now() > until) break;
      }
      if (next >= count) return finish();
      tellFound();
      setTimeout(slice, 0);
    };
    slice();
  });
}
function tellFound() {
  const n = search.found.n.toLocaleString('en');
  $('found').textContent = !search.text ? '' : !search.done ? n + '\u2026' :
    search.at < 0 ? n + ' found' : (search.at + 1).toLocaleString('en') + ' of ' + n;
}
function jump(step) {
  const n = search.found.n;
  if (n === 0) return -1;
  if (search.at < 0) {  // from where one looks
    const middle = (view.a + view.b) / 2;
    let at = 0;
    while (at < n && time[search.found.a[at]] < middle && view.b - view.a < lastTime - firstTime) ++at;
    search.at = step > 0 ? at % n : (at + n - 1) % n;
  } else {
    search.at = (search.at + step + n) % n;
  }
  const i = search.found.a[search.at];
  showTip(null);  // it may be where this is
  select(i, true);
  tellFound();
  return i;
}

// --- What is shown --------------------------------------------------------------------------
function showEvents() {
  arrange();
  chooseArrows();
  scrollTo(view.y);
  showTip(null);
  for (const [type, chip] of chips) chip.setAttribute('aria-pressed', String(!hidden.has(type)));
  if (state.selected >= 0 && !isShown(state.selected)) select(-1);
  if (search.text) find(search.text);
}
// Of the events of that type: `alone` shows only them, or all if they are shown alone.
function toggle(type, alone) {
  if (!alone) {
    if (!hidden.delete(type)) hidden.add(type);
  } else {
    const others = [...chips.keys()].filter(each => each !== type);
    const wasAlone = !hidden.has(type) && others.every(each => hidden.has(each));
    hidden.clear();
    if (!wasAlone) for (const each of others) hidden.add(each);
  }
  showEvents();
}
const chips = new Map();  // by type
function drawAllFlows(on) {
  state.allFlows = on;
  $('flows').setAttribute('aria-pressed', String(on));
  chooseArrows();
  redraw();
}
$('flows').addEventListener('click', () => drawAllFlows(!state.allFlows));
if (flows.t.length === 0) $('flows').remove();

// --- Pointer and keys -----------------------------------------------------------------------
let drag = null;
canvas.addEventListener('wheel', event => {
  event.preventDefault();
  const far = event.deltaMode === 1 ? 30 : 1, x = event.offsetX;
  if (event.shiftKey || x < GUTTER) return scrollTo(view.y + (event.deltaY || event.deltaX) * far);
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return pan(event.deltaX * far / view.width);
  zoomAbout(timeAt(x), Math.exp(Math.max(-300, Math.min(300, event.deltaY * far)) * 0.002));
}, {passive: false});
canvas.addEventListener('pointerdown', event => {
  canvas.setPointerCapture(event.pointerId);
  drag = {x: event.offsetX, y: event.offsetY, a: view.a, b: view.b, top: view.y, moved: false,
    range: event.shiftKey && event.offsetX >= GUTTER ? timeAt(event.offsetX) : null};
  canvas.focus();
});
canvas.addEventListener('pointermove', event => {
  const x = event.offsetX, y = event.offsetY;
  state.pointer = x;
  if (!drag) {
    const found = under(x, y);
    canvas.style.cursor = found ? 'pointer' : 'default';
    return showTip(found, event.clientX, event.clientY);
  }
  if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
  if (!drag.moved) return;
  showTip(null);
  if (drag.range !== null) {
    state.range = [Math.min(drag.range, timeAt(x)), Math.max(drag.range, timeAt(x))];
    tell(length(state.range[1] - state.range[0], 6));
    return redraw();
  }
  const shift = (drag.x - x) * (drag.b - drag.a) / (view.width - GUTTER);
  show(drag.a + shift, drag.b + shift);
  scrollTo(drag.top + drag.y - y);
});
canvas.addEventListener('pointerup', event => {
  const was = drag;
  drag = null;
  if (!was) return;
  if (was.range !== null && was.moved) return void selectRange(was.range, timeAt(event.offsetX));
  if (was.moved) return;
  state.range = null;
  const found = under(event.offsetX, event.offsetY);
  select(found && !found.broken ? found.record ?? found.gap.losses[0].r : -1, false);
});
canvas.addEventListener('pointercancel', () => { drag = null; });
canvas.addEventListener('pointerleave', () => {
  state.pointer = NaN;
  showTip(null);
});
canvas.addEventListener('dblclick', event => zoomAbout(timeAt(event.offsetX), 0.25));
const help = on => { $('help').style.display = on ? 'flex' : 'none'; };
const helped = () => $('help').style.display === 'flex';
$('help').addEventListener('click', () => help(false));
$('ask').addEventListener('click', () => help(!helped()));
let typing = 0;
$('search').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => find($('search').value), 150);
});
$('search').addEventListener('keydown', event => {
  event.stopPropagation();
  if (event.key === 'Escape') {
    $('search').value = '';
    find('');
    canvas.focus();
  } else if (event.key === 'Enter') {
    clearTimeout(typing);
    if (search.text !== $('search').value) find($('search').value).then(n => { if (n > 0) jump(1); });
    else jump(event.shiftKey ? -1 : 1);
    canvas.focus();
  }
});
const zoom = factor => zoomAbout(state.pointer >= GUTTER ? timeAt(state.pointer) : (view.a + view.b) / 2, factor);
const keys = {
  w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.15), d: () => pan(0.15),
  W: () => keys.w(), S: () => keys.s(), A: () => keys.a(), D: () => keys.d(),
  f: () => drawAllFlows(!state.allFlows),
  ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
  ArrowUp: () => scrollTo(view.y - 60), ArrowDown: () => scrollTo(view.y + 60),
  PageUp: () => scrollTo(view.y - view.height), PageDown: () => scrollTo(view.y + view.height),
  '+': () => zoomAbout((view.a + view.b) / 2, 0.7), '=': () => keys['+'](),
  '-': () => zoomAbout((view.a + view.b) / 2, 1 / 0.7), 0: showAll,
  Home: () => show(firstTime - (view.b - view.a) * 0.05, firstTime + (view.b - view.a) * 0.95),
  End: () => show(lastTime - (view.b - view.a) * 0.95, lastTime + (view.b - view.a) * 0.05),
  '/': () => $('search').focus(), n: () => jump(1), N: () => jump(-1), '?': () => help(!helped()),
  Escape: () => {
    if (helped()) return help(false);
    state.range = null;
    select(-1);
  },
};
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === $('search') ||
      !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

// --- The rest of the page -------------------------------------------------------------------
{
  const names = meta.files.map(file => file.split('/').at(-1)).join(', ');
  document.title = visible(names) + ' - trace';
  $('title').textContent = visible(names);
  $('about').textContent = count === 0 ? 'no records' : dateOf(firstTime) + ', ' +
    length(lastTime - firstTime) + ', ' + (count - perClass[LOST] - perClass[JUMP] - perClass[DATE]).toLocaleString('en') +
    ' records' + (lostCount ? ', ' + lostCount.toLocaleString('en') + ' lost' : '');
  const shown = new Map();
  classes.forEach((kind, i) => {
    if (i === LOST || perClass[i] === 0) return;
    const entry = shown.get(kind.type) || {kind, n: 0, type: kind.type};
    entry.n += perClass[i];
    shown.set(kind.type, entry);
  });
  const add = (name, n, colour, type) => {
    const chip = element(type === undefined ? 'span' : 'button', '', $('legend')), box = element('i', '', chip);
    if (colour) box.style.background = colour; else box.className = 'lost';
    element('b', visible(name), chip).style.fontWeight = 'normal';
    element('em', n.toLocaleString('en'), chip);
    if (type === undefined) return;
    chips.set(type, chip);
    chip.setAttribute('aria-pressed', 'true');
    chip.title = 'Hide or show; with Shift: only this, or all';
    chip.addEventListener('click', event => toggle(type, event.shiftKey));
  };
  if (lostCount || perClass[LOST]) add('lost', lostCount, null);
  for (const {kind, n, type} of [...shown.values()].sort((a, b) => b.n - a.n).slice(0, 200)) {
    add(kind.name, n, kind === classes[JUMP] || kind === classes[DATE] ? 'var(--lost)' : colours[kind.colour % colours.length], type);
  }
}
new ResizeObserver(resize).observe(canvas);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', resize);
resize();
draw();
const loadedMs = performance.now() - began;

window.traceRing = {
  stats: {records: count - perClass[LOST], losses: perClass[LOST], lost: lostCount,
    rows: rows.length, classes: classes.length, firstTime, lastTime, loadedMs,
    known: meta.known},
  rows: () => rows.map(row => ({label: nameOfRow(row), counters: row.counters, records: row.n, y: row.y, h: row.h,
    levels: row.levels.length, spans: row.levels.reduce((n, level) => n + level.s.length, 0),
    ticks: row.t.length, series: row.series.map(s => ({name: s.name, low: s.low, high: s.high, scale: s.scale})),
    broken: Number.isNaN(row.broken) ? null : row.broken,
    losses: row.losses.map(l => ({cause: l.cause, count: l.count, a: l.a, b: l.b}))})),
  // Times of `n` frames, the pixels there: what a person waits for.
  frameMs(n = 20) {
    const times = [];
    for (let i = 0; i < n; ++i) {
      const start = performance.now();
      draw();
      ctx.getImageData(0, 0, 1, 1);
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    return {best: times[0], median: times[n >> 1], worst: times[n - 1]};
  },
  visible: () => ({a: view.a, b: view.b, y: view.y, records: time.reduce((n, t, i) =>
    n + (what[i] !== LOST && t >= view.a && t <= view.b ? 1 : 0), 0)}),
  selected: () => state.selected,
  record: i => ({...told({record: i}), time: time[i], date: dateOf(time[i]),
    row: rows.indexOf(rowOf(i))}),
  flows: () => Array.from(flows.t, (_, i) => [flows.from[i], flows.to[i]]),
  arrows: () => Array.from(arrows.t, (_, i) => [arrows.from[i], arrows.to[i]]),
  found: () => ({n: search.found.n, at: search.at, done: search.done}),
  placeOf: i => placeOf({record: i}),
  xOf: t => canvas.getBoundingClientRect().x + xOf(t),
  rowTop: r => canvas.getBoundingClientRect().y + AXIS + rows[r].y - view.y,
  nameOf, find, jump, show, showAll, select, selectRange, draw,
};
)page";

}  // namespace trace_reduce::impl
