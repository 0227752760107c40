# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The plots, as SVG: lines against size, payload and threads, and bars for the peers."""
import math
import os
import re
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 72, 40, 64, 56
# Told apart by people who see few colours, too, and by their markers.
COLOURS = ("#0b5fa5", "#c2410c", "#4d7c0f", "#7e22ce")
GREY, DARK, LIGHT = "#6b7280", "#1f2937", "#9ca3af"
UNITS = {"KiB": 1024, "MiB": 1024 ** 2, "B": 1, "": 1}


@dataclass
class Line:
    name: str
    points: list  # of (x, y)
    floor: bool = False


def text(x, y, what, anchor="middle", size=13, colour=DARK, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}"{more}>{escape(what)}</text>')


def page(title, body, width=WIDTH, height=HEIGHT):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(LEFT, 24, title, "start", 16, more=' font-weight="bold"'), *body, "</svg>", ""])


def ticks(top):
    """Steps of 1, 2 or 5 from zero to at least `top`: five or so."""
    step = 10 ** math.floor(math.log10(top / 4))
    while top / step > 6:
        step *= 2 if str(step).lstrip("0.")[0] != "2" else 2.5
    count = math.ceil(top / step - 1e-9)
    return [i * step for i in range(count + 1)]


def plain(value):
    return f"{value:g}"


def bytes_name(value):
    for unit, size in (("MiB", 1024 ** 2), ("KiB", 1024)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def marker(index, x, y, colour):
    if index % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    if index % 3 == 1:
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{colour}"/>'
    return (f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z" fill="{colour}"/>')


def legend_width(line):
    return 44 + 7 * len(line.name)


def legend_rows(lines):
    rows, at = 1, LEFT
    for line in lines:
        if at > LEFT and at + legend_width(line) > WIDTH:
            rows, at = rows + 1, LEFT
        at += legend_width(line)
    return rows


def lines_plot(title, lines, x_label, y_label, x_name=plain, logarithmic=True):
    """Lines over x; floors dashed and grey. The y axis begins at zero."""
    top = TOP + 22 * (legend_rows(lines) - 1)
    xs = sorted({x for line in lines for x, _ in line.points})
    place = (lambda x: math.log2(max(x, 1))) if logarithmic else float
    low, high = place(xs[0]), place(xs[-1])
    steps = ticks(max(y for line in lines for _, y in line.points) * 1.05)
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - top - BOTTOM

    def at(x, y):
        share = (place(x) - low) / (high - low) if high > low else 0.5
        return LEFT + share * across, top + down * (1 - y / steps[-1])

    body = []
    for step in steps:
        _, y = at(xs[0], step)
        body.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>')
        body.append(text(LEFT - 8, y + 4, plain(round(step, 10)), "end", 12))
    taken = -1e9
    for x in xs:
        where, bottom = at(x, 0)
        body.append(f'<path d="M{where:.1f} {bottom:.1f}v5" stroke="{DARK}"/>')
        if where - taken > 34:
            body.append(text(where, bottom + 20, x_name(x), size=12))
            taken = where
    body.append(f'<path d="M{LEFT} {top}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" '
                f'stroke="{DARK}"/>')
    middle = top + down / 2
    body.append(text(LEFT + across / 2, HEIGHT - 14, x_label))
    body.append(text(20, middle, y_label, more=f' transform="rotate(-90 20 {middle:.1f})"'))
    greys = iter((GREY, LIGHT) * len(lines))
    names, row = LEFT, 44
    for index, line in enumerate(lines):
        colour = next(greys) if line.floor else COLOURS[index % len(COLOURS)]
        points = [at(x, y) for x, y in sorted(line.points)]
        dash = ' stroke-dasharray="6 4"' if line.floor else ""
        body.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" '
                    f'fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        body += [marker(index, x, y, colour) for x, y in points]
        if names > LEFT and names + legend_width(line) > WIDTH:
            names, row = LEFT, row + 22
        body.append(f'<path d="M{names} {row}h22" stroke="{colour}" stroke-width="2"{dash}/>')
        body.append(marker(index, names + 11, row, colour))
        body.append(text(names + 28, row + 4, line.name, "start", 12))
        names += legend_width(line)
    return page(title, body)


def bars_plot(title, bars, x_label, note=""):
    """Bars of (name, value, ours), from zero, with the value next to each. What is far longer than the
    rest is cut, and says so."""
    values = sorted(value for _, value, _ in bars)
    limit = values[-1]
    if len(values) > 3 and limit > 6 * values[len(values) // 2]:
        limit = 3 * values[len(values) // 2]
    names = max(len(name) for name, _, _ in bars) * 7 + 24
    height = TOP + 30 * len(bars) + BOTTOM
    across = WIDTH - names - 90
    body = [text(LEFT, 46, note, "start", 12, GREY)] if note else []
    for index, (name, value, ours) in enumerate(bars):
        y = TOP + 30 * index
        width = across * min(value, limit) / limit
        body.append(text(names - 8, y + 16, name, "end", 12))
        body.append(f'<rect x="{names}" y="{y + 2}" width="{width:.1f}" height="20" '
                    f'fill="{COLOURS[0] if ours else LIGHT}"/>')
        if value > limit:
            x = names + width - 16
            body.append(f'<path d="M{x:.1f} {y}l-6 24h5l6 -24z" fill="white"/>')
        body.append(text(names + width + 6, y + 16, f"{value:.0f}" if value >= 100 else f"{value:.3g}",
                         "start", 12))
    bottom = TOP + 30 * len(bars)
    body.append(f'<path d="M{names} {TOP - 4}V{bottom + 4}" stroke="{DARK}"/>')
    body.append(text(names + across / 2, bottom + 30, x_label))
    return page(title, body, height=height)


def collect(runs, pattern, value=lambda row, run: row.median):
    """Points of all benchmarks whose name matches: x is the group `x`, with its `unit`."""
    points = {}
    for run in runs:
        for row in run.rows.values():
            found = re.fullmatch(pattern, row.name)
            if found:
                groups = found.groupdict()
                x = int(groups["x"] or 1) * UNITS[groups.get("unit") or ""]
                points.setdefault(x, value(row, run))
    return sorted(points.items())


def lines_of(runs, *wanted):
    lines = [Line(name, collect(runs, pattern), name.startswith("floor")) for name, pattern in wanted]
    return [line for line in lines if len(line.points) > 1]


def draw_all(runs, peers, folder):
    """Draws everything that has measurements; returns the paths of the pictures."""
    size = r"(?P<x>\d+)(?P<unit>KiB|MiB)"
    threads = r"(?:/threads:(?P<x>\d+))?"
    drawn = []

    def write(name, svg):
        path = os.path.join(folder, name + ".svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)
        drawn.append(path)

    # The floors of a size are in several programs: the ones in the same program as their benchmarks are used.
    of_sizes = [run for run in runs if any(name.startswith("size/") for name in run.rows)]
    lines = lines_of(of_sizes, ("exact clock", "size/exact_clock/" + size),
                     ("one reading in 16", "size/sampled_16/" + size),
                     ("no clock", "size/no_clock/" + size),
                     ("floor: clock and store", "floor/clock_and_store_24B/" + size),
                     ("floor: store", "floor/store_24B/" + size))
    if lines:
        write("ring_size", lines_plot("One record of 24 bytes against the ring's size", lines,
                                      "size of the ring", "ns a record", bytes_name))
    payload = collect(runs, r"payload/exact_clock/(?P<x>\d+)B")
    floors = collect(of_sizes, r"floor/clock_and_store_(?P<x>\d+)B/1MiB")
    lines = [Line("recorder", payload),
             Line("floor: clock and store", [(x - 8, y) for x, y in floors
                                             if x - 8 in dict(payload)], True)]
    lines = [line for line in lines if len(line.points) > 1]
    if lines:
        write("payload", lines_plot("One record against its payload", lines, "bytes of payload",
                                    "ns a record", logarithmic=False))
    lines = lines_of(runs, ("by thread", "threads/exact_clock" + threads),
                     ("per_cpu", "threads/per_cpu" + threads))
    if lines:
        write("threads", lines_plot("One record against the number of threads, one recorder", lines,
                                    "threads", "ns of processor time a record"))
    lines = lines_of(runs, ("ordered ring", "shared/sequenced/fetch_add" + threads),
                     ("by compare and swap", "shared/sequenced/compare_exchange" + threads),
                     ("floor: add and sequence", "floor/add_and_sequence" + threads),
                     ("floor: one shared add", "floor/xadd_shared" + threads))
    if lines:
        write("shared", lines_plot("One ring, all threads writing, no clock", lines, "threads",
                                   "ns of processor time a record"))
    bars = sorted(((p.name, p.one_ratio, p.ours) for p in peers if p.one_ratio),
                  key=lambda bar: bar[1])
    if bars:
        write("tracers", bars_plot("One record, a time and two words, in a tight loop", bars,
                                   "times the floor: reading the clock, storing 24 bytes",
                                   "private path, one thread"))
    for name, title, key, label in (
            ("queues_one_to_one", "Items of 32 bytes, one producer to one consumer",
             "one_to_one", "ns an item"),
            ("queues_round_trip", "Items of 32 bytes, to another thread and back", "round_trip",
             "ns a round trip"),
            ("queues_shared", "Items of 32 bytes, two threads, each pushes and pops", "both",
             "ns of processor time for a push and a pop")):
        bars = sorted(((p.name, getattr(p, key), p.ours) for p in peers if getattr(p, key)),
                      key=lambda bar: bar[1])
        if bars:
            write(name, bars_plot(title, bars, label))
    return drawn
