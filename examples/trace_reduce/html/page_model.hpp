// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// The page's script, first part: the data of the page, decoded and prepared for drawing. Values
/// are decoded only when they are needed.

#include <string_view>

namespace trace_reduce::impl {

inline constexpr std::string_view html_model = R"page(
'use strict';
const began = performance.now();
const $ = id => document.getElementById(id);

// --- What columns.hpp wrote -----------------------------------------------------------------
function bytesOf(node) {
  const text = node.textContent.trim();
  node.remove();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}
// 7 bits a byte, the lowest first. Exact to 2^53.
function varint(r) {
  const b = r.bytes;
  let byte = b[r.at++], value = byte & 127;
  for (let unit = 128; byte > 127; unit *= 128) {
    byte = b[r.at++];
    value += (byte & 127) * unit;
  }
  return value;
}
const signed = v => v % 2 === 0 ? v / 2 : -(v + 1) / 2;
function exact(r) {
  const begin = r.at, value = varint(r);
  if (r.at - begin < 8) return value;
  let big = 0n;
  for (let i = r.at - 1; i >= begin; --i) big = big << 7n | BigInt(r.bytes[i] & 127);
  return big;
}
function exactSigned(r) {
  const v = exact(r);
  if (typeof v === 'number') return signed(v);
  return v & 1n ? -((v + 1n) >> 1n) : v >> 1n;
}

const meta = JSON.parse(new TextDecoder().decode(bytesOf($('meta'))));
const classes = meta.classes, owners = meta.owners;
const blocks = [];
let count = 0;
for (const node of document.querySelectorAll('script.items')) {
  const bytes = bytesOf(node), head = new DataView(bytes.buffer, bytes.byteOffset, 24);
  const size = [0, 1, 2, 3, 4, 5].map(i => head.getUint32(4 * i, true));
  blocks.push({bytes, size, first: count});
  count += size[0];
}
// Of each item: nanoseconds since meta.base (of a clock that is not known: ticks), who, what, and
// where its values lie in its block.
const time = new Float64Array(count), who = new Uint32Array(count), what = new Uint32Array(count);
const place = new Uint32Array(count);
{
  let t = 0;
  for (const block of blocks) {
    const {bytes, size, first} = block;
    let at = 24;
    const column = n => { const r = {bytes, at}; at += size[n]; return r; };
    const times = column(1), whos = column(2), whats = column(3), lengths = column(4);
    let value = 0;
    for (let i = first; i < first + size[0]; ++i) {
      t += signed(varint(times));
      time[i] = t;
      who[i] = varint(whos);
      what[i] = varint(whats);
      place[i] = value;
      value += varint(lengths);
    }
    block.bytes = bytes.subarray(at);
  }
}

// --- Values ---------------------------------------------------------------------------------
// Types and forms are those of record/field.hpp.
const strict = new TextDecoder('utf-8', {fatal: true});
// What is no text, and what makes text be seen as another, as escapes. Names have come escaped but
// for the latter.
const visible = text => text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
  c => c === '\n' ? '\\n' : c === '\t' ? '\\t' :
    c < '\u0100' ? '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0') :
    '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const printable = text => visible(text.replace(/[\\"]/g, '\\$&'));
function textOf(bytes) {
  try {
    return printable(strict.decode(bytes));
  } catch {
    return Array.from(bytes, b => b >= 32 && b < 127 && b !== 34 && b !== 92 ?
      String.fromCharCode(b) : '\\x' + b.toString(16).padStart(2, '0')).join('');
  }
}
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('');
function scalar(r, type) {
  if (type <= 4) return exact(r);
  if (type <= 8) return exactSigned(r);
  if (type <= 10) {
    const view = new DataView(r.bytes.buffer, r.bytes.byteOffset + r.at);
    r.at += type === 9 ? 4 : 8;
    return type === 9 ? Number(view.getFloat32(0, true).toPrecision(8)) : view.getFloat64(0, true);
  }
  const value = exact(r);
  if (type === 11) return value !== 0;
  if (type === 12) return "'" + textOf(Uint8Array.of(value)) + "'";
  return '0x' + value.toString(16);
}
// Values of enumerations by their names.
function named(value, names) {
  const name = names && names[BigInt.asUintN(64, BigInt(value))];
  return name === undefined ? value : visible(name);
}
function readField(r, [, type, form, fixed, , names]) {
  if (type === 12 && form !== 0) {
    const word = varint(r), length = (word - word % 2) / 2;
    const text = textOf(r.bytes.subarray(r.at, r.at += length));
    return '"' + text + '"' + (word % 2 ? '...' : '');
  }
  if (form === 0) return named(scalar(r, type), names);
  const word = form === 1 ? fixed * 2 : varint(r);
  const out = [];
  for (let n = (word - word % 2) / 2; n > 0; --n) out.push(named(scalar(r, type), names));
  if (word % 2) out.push('...');
  return '[' + out.join(' ') + ']';
}
function readerOf(i) {
  let low = 0, high = blocks.length;
  while (high - low > 1) {
    const middle = low + high >> 1;
    if (blocks[middle].first <= i) low = middle; else high = middle;
  }
  return {bytes: blocks[low].bytes, at: place[i]};
}
const BEGIN = 1, END = 2, BARE = 4, FAULTY = 8, INTERVAL = 16;
const LOST = 0, JUMP = 1, DATE = 2;  // the first classes
const FLOW = 1, COUNTER = 2;  // what a field is drawn as
// Of each class the numbers of the fields that are drawn so.
const fieldsThatAre = role => classes.map(kind => kind.how & (FAULTY | BARE) ? [] :
  kind.fields.map((field, n) => field[4] === role ? n : -1).filter(n => n >= 0));
// Of each begin the end and of each end the begin, and 1; 0 where there is none. Which end is whose
// the exporter has found out.
const mate = new Uint32Array(count), notNested = new Set();
for (let i = 0; i < count; ++i) {
  if (!(classes[what[i]].how & END)) continue;
  const back = varint(readerOf(i));
  if (back > 1) {
    const begun = i - back + 1;
    mate[i] = begun + 1;
    mate[begun] = i + 1;
  } else if (back === 1) {
    notNested.add(i);
  }
}
// Where it is drawn: an end with its span.
const drawnAs = i => classes[what[i]].how & END && mate[i] ? mate[i] - 1 : i;
// {fields: [[name, value]], latest: undefined, or null if there is no upper bound}; of enumerations
// the numbers, if it is `plain`.
function valuesOf(i, plain) {
  const kind = classes[what[i]], r = readerOf(i), out = {fields: [], latest: undefined};
  if (kind.how & END) varint(r);
  if (kind.how & INTERVAL) {
    const more = varint(r);
    out.latest = more === 0 ? null : time[i] + more - 1;
  }
  if (kind.how & FAULTY) {
    const text = n => r.bytes.subarray(r.at, r.at += n);
    out.fields.push(['fault', textOf(text(varint(r)))], ['raw', hex(text(varint(r)))]);
  } else if (!(kind.how & BARE)) {
    for (const field of kind.fields) {
      out.fields.push([field[0], readField(r, plain ? field.slice(0, 4) : field)]);
    }
  }
  return out;
}
// The numbers in field `n` of record `i`, except 0, as text: exact.
function numbersOf(i, n) {
  const value = valuesOf(i, true).fields[n][1];
  const all = typeof value === 'string' && value[0] === '[' ? value.slice(1, -1).split(' ') : [value];
  return all.map(one => String(one).startsWith('0x') ? String(BigInt(one)) : String(one))
    .filter(one => /^-?[1-9]/.test(one));
}
const causes = ['overwritten', 'overrun', 'refused', 'too long', 'nested', 'abandoned', 'damaged'];
function lossOf(i) {
  const values = valuesOf(i).fields;
  const cause = causes[values[0][1]] || 'lost';
  return {cause, count: Number(values[1][1]), values: values.slice(2, cause === 'damaged' ? 5 : 3)};
}
const nameOf = i => {
  const kind = classes[what[i]];
  return kind.name + (kind.how & BEGIN ? ':begin' : '') + (kind.how & END ? ':end' : '');
};

// --- Rows -----------------------------------------------------------------------------------
class Growing {
  constructor(Type) { this.a = new Type(16); this.n = 0; }
  push(v) {
    if (this.n === this.a.length) {
      const more = new this.a.constructor(2 * this.n);
      more.set(this.a);
      this.a = more;
    }
    this.a[this.n++] = v;
  }
  done() { return this.a = this.a.slice(0, this.n); }
}
// The first place in sorted `a` whose value is not below `v`, from `low` on.
function lower(a, v, low = 0, high = a.length) {
  while (low < high) {
    const middle = low + high >>> 1;
    if (a[middle] < v) low = middle + 1; else high = middle;
  }
  return low;
}
// Sorts lists of equal length by the first, if it is not sorted; the lists of them that are.
function inOrder(lists) {
  const key = lists[0];
  let sorted = true;
  for (let i = 1; i < key.length && sorted; ++i) sorted = key[i - 1] <= key[i];
  if (sorted) return lists;
  const order = Uint32Array.from(key.keys()).sort((a, b) => key[a] - key[b] || a - b);
  return lists.map(list => list.map((_, i) => list[order[i]]));
}
const DEEPEST = 24;
class Level {  // spans of one depth: begins, ends, records, and time covered before each
  constructor() {
    this.s = new Growing(Float64Array);
    this.e = new Growing(Float64Array);
    this.r = new Growing(Uint32Array);
  }
  begin(t, record) {
    this.s.push(t);
    this.e.push(Infinity);
    this.r.push(record);
  }
  end(at, t) {
    this.e.a[at] = Math.max(t, this.s.a[at]);
  }
  finish(end) {
    for (let i = 0; i < this.s.n; ++i) if (this.e.a[i] === Infinity) this.end(i, end);
    return this.with(...inOrder([this.s.done(), this.e.done(), this.r.done()]));
  }
  // Only those spans whose records are wanted.
  only(wants) {
    const all = Array.from(this.r.keys()).filter(i => wants(this.r[i]));
    return new Level().with(...[this.s, this.e, this.r].map(list => list.constructor.from(all, i => list[i])));
  }
  with(s, e, r) {
    Object.assign(this, {s, e, r});
    this.reach = this.e;  // the farthest end up to each: sorted, even if the clock jumped
    this.before = new Float64Array(this.s.length + 1);
    let last = -Infinity;
    for (let i = 0; i < this.s.length; ++i) {
      if (this.e[i] < last && this.reach === this.e) this.reach = this.e.slice();
      last = Math.max(last, this.e[i]);
      this.reach[i] = last;
      this.before[i + 1] = this.before[i] + this.e[i] - this.s[i];
    }
    return this;
  }
}
class Series {  // a counter: values, and their least and greatest in groups of 16, 256, ...
  constructor(name) {
    this.name = name;
    this.t = new Growing(Float64Array);
    this.v = new Growing(Float64Array);
    this.r = new Growing(Uint32Array);
  }
  finish() {
    [this.t, this.v, this.r] = inOrder([this.t.done(), this.v.done(), this.r.done()]);
    this.groups = [{low: this.v, high: this.v}];
    for (let below = this.groups[0]; below.low.length > 16; below = this.groups.at(-1)) {
      const n = Math.ceil(below.low.length / 16);
      const low = new Float64Array(n).fill(Infinity), high = new Float64Array(n).fill(-Infinity);
      below.low.forEach((v, i) => { if (v < low[i >> 4]) low[i >> 4] = v; });
      below.high.forEach((v, i) => { if (v > high[i >> 4]) high[i >> 4] = v; });
      this.groups.push({low, high});
    }
    [this.low, this.high] = this.within(0, this.v.length);
    this.scale = [Math.min(this.low, 0), Math.max(this.high, 0)];
  }
  within(from, to) {  // least and greatest of those from `from` to before `to`
    let low = Infinity, high = -Infinity;
    for (let i = from; i < to;) {
      let g = 0, step = 1;
      while (g + 1 < this.groups.length && i % (step * 16) === 0 && i + step * 16 <= to) {
        ++g;
        step *= 16;
      }
      low = Math.min(low, this.groups[g].low[i / step]);
      high = Math.max(high, this.groups[g].high[i / step]);
      i += step;
    }
    return [low, high];
  }
}
)page";

}  // namespace trace_reduce::impl
