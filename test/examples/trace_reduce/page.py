#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The page that trace-reduce --format html writes, in Chromium.

    page.py TRACE_REDUCE EXPORT_SAMPLES

Opens it from disk, zooms, searches, selects, and looks at pixels; every record's time and values
against the JSON of the same trace; a trace whose names and texts are markup; a million records.
Exits with 77 where there is no Chromium. PAGE_PICTURES=FOLDER keeps the pictures.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import browser

FAILED = []
PICTURES = os.environ.get("PAGE_PICTURES")
# Of the values of enumerations, in the samples that have them.
NAMES = {"loud", "buy", "sell", "hold", "cold", "warm", "most", "least", "one", "on"}


def check(what, wanted, found):
    if wanted != found:
        FAILED.append(what)
        if len(FAILED) <= 10:
            print(f"{what}:\n  wanted {wanted!r}\n  found  {found!r}")


def picture(page, name):
    return page.screenshot(os.path.join(PICTURES, name + ".png") if PICTURES else None)


def run(*command, status=0):
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode()


def open_page(page, trace_reduce, trace, status=0):
    name = trace.removesuffix(".trace") + ".html"
    run(trace_reduce, "--format", "html", "--output", name, trace, status=status)
    page.requests.clear()
    seconds = page.open(name)
    check(f"{trace}: nothing but the page is loaded", ["file://" + os.path.abspath(name)],
          page.requests)
    check(f"{trace}: no complaints", [], page.messages)
    return os.path.getsize(name), seconds


class Pairs(dict):
    """An object whose fields are told in order, those of one name too."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.pairs = pairs


def shown(value):
    """A value of JSON as the page shows it; None if that depends on how it is written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        parts = [shown(each) for each in value]
        return None if None in parts else "[" + " ".join(parts) + "]"
    if isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value):
        return value
    return value if isinstance(value, str) and value in NAMES else None


def same_records(page, trace_reduce, trace, status=0):
    """Every record, and its fields, is in the page as it is in JSON."""
    lines = run(trace_reduce, "--format", "json", trace, status=status).split("\n")
    # A field's name may be there twice.
    items = [json.loads(line, object_pairs_hook=Pairs) for line in lines if line]
    found = page.run("""Array.from({length: traceRing.stats.records + traceRing.stats.losses},
        (_, i) => ({name: traceRing.nameOf(i), ...traceRing.record(i)})).map(r =>
        ({...r, fields: r.fields.map(([n, v]) => [n, String(v)])}))""")
    check(f"{trace}: items", len(items), len(found))
    base, compared = None, 0
    for number, (item, there) in enumerate(zip(items, found)):
        if item["kind"] != "record":
            check(f"{trace}: {number}", item["kind"] == "loss", there["name"] == "lost")
            continue
        at = item.get("time_ns", item["ticks"])
        if base is None:
            base = at - there["time"]
        check(f"{trace}: {number}: time", at - base, there["time"])
        if "time_ns" in item:
            check(f"{trace}: {number}: date", f"{at % 10**9:09}", there["date"][-9:])
        if "\ufffd" not in (item["event"] or "") and trace != "hostile.trace":
            check(f"{trace}: {number}: event", (item["event"] or f"event#{item['id']}") +
                  (":" + item["span"] if "span" in item else ""), there["name"])
        if item.get("interval"):
            check(f"{trace}: {number}: bound", "latest_ns" in item,
                  any("not after" in line for line in there["lines"]))
        if "raw" in item:
            check(f"{trace}: {number}: raw", item["raw"], dict(there["fields"])["raw"])
            continue
        fields = item["fields"].pairs
        check(f"{trace}: {number}: fields", len(fields), len(there["fields"]))
        for (name, value), (_, text) in zip(fields, there["fields"]):
            wanted = shown(value)
            if name in item.get("cut", []) and wanted is not None:
                wanted = wanted[:-1] + (" ...]" if len(value) else "...]")
            if isinstance(value, str) and wanted is None and value.isalnum() and len(value) > 1:
                wanted = f'"{value}"' + ("..." if name in item.get("cut", []) else "")
                if value in ("NaN", "Infinity"):
                    wanted = value
            if isinstance(value, float):
                check(f"{trace}: {number}: {name}", f"{value:.6g}", f"{float(text):.6g}")
            elif wanted is not None and not re.search(r"\be?\d*\.\d", text):
                check(f"{trace}: {number}: {name}", wanted, text)
                compared += 1
    return compared


def steer(page, trace_reduce):
    """Zoom, move, search, select: by the wheel, the mouse and keys as a person does."""
    open_page(page, trace_reduce, "service.trace")
    stats = page.run("traceRing.stats")
    check("records", 5000, stats["records"])
    check("rows", ["service", "main"] + [f"worker {i}" for i in range(1, 8)],
          [row["label"] for row in page.run("traceRing.rows()")])
    check("all is seen at first", 5000, page.run("traceRing.visible().records"))
    picture(page, "service")
    # Wheel: the time under the cursor stays there.
    at = "traceRing.visible().a + (traceRing.visible().b - traceRing.visible().a) * (640 - 168) / (1280 - 168)"
    before = page.run(at)
    for _ in range(6):
        page.mouse("mouseWheel", 640, 300, deltaX=0, deltaY=-240)
    page.settle()
    check("the wheel zooms", True, page.run("traceRing.visible().records") < 1000)
    check("about the cursor", True, abs(page.run(at) - before) < 2)
    # Drag.
    a = page.run("traceRing.visible().a")
    page.mouse("mousePressed", 700, 300, button="left", clickCount=1)
    page.mouse("mouseMoved", 500, 300, button="left", buttons=1)
    page.mouse("mouseReleased", 500, 300, button="left", clickCount=1)
    check("dragging moves", True, page.run("traceRing.visible().a") > a)
    # Keys.
    wide = "traceRing.visible().b - traceRing.visible().a"
    for key, holds in (("+", lambda b, n: n[1] < b[1]), ("-", lambda b, n: n[1] > b[1]),
                       ("ArrowLeft", lambda b, n: n[0] < b[0]),
                       ("ArrowRight", lambda b, n: n[0] > b[0]),
                       ("End", lambda b, n: n[0] + n[1] > stats["lastTime"]),
                       ("Home", lambda b, n: n[0] < 0), ("0", lambda b, n: n[1] > b[1])):
        was = (page.run("traceRing.visible().a"), page.run(wide))
        page.key(key, key if len(key) == 1 else "")
        now = (page.run("traceRing.visible().a"), page.run(wide))
        check(f"key {key}: {was} {now}", True, holds(was, now))
    page.key("?", "?")
    check("help", "flex", page.run("getComputedStyle(document.getElementById('help')).display"))
    picture(page, "help")
    page.key("Escape")
    check("no help", "none", page.run("getComputedStyle(document.getElementById('help')).display"))
    # Search: by a field's value, then on to the next.
    page.key("/")
    check("search has the keys", "search", page.run("document.activeElement.id"))
    for letter in "url=\"/items":
        page.key(letter, letter)
    page.key("Enter")
    until = time.monotonic() + 20
    while not page.run("traceRing.found().done && traceRing.selected() >= 0"):
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    first = page.run("traceRing.selected()")
    check("found and selected", True, 'url="/items' in page.run("document.getElementById('status').textContent"))
    many = page.run("traceRing.found().n")
    check("more than one", True, many > 1)
    page.key("n", "n")
    second = page.run("traceRing.selected()")
    page.key("N", "N")
    check("n and back", (True, first), (second != first, page.run("traceRing.selected()")))
    check("count", f"1 of {many}", page.run("document.getElementById('found').textContent"))
    check("event names are found", 2500, page.run("traceRing.find('query')"))
    check("nothing is found", 0, page.run("traceRing.find('no such thing')"))
    # A span, on the screen: its colour, and what is told of it.
    span = page.run("""(() => {
      for (let i = 0; i < traceRing.stats.records; ++i) if (traceRing.nameOf(i) === 'request:begin') {
        const r = traceRing.record(i);
        if (r.row === 3 && r.time > 300000) return {i, ...r};
      } })()""")
    page.run(f"traceRing.show({span['time'] - 5000}, {span['time'] + 20000})")
    place = page.run(f"traceRing.placeOf({span['i']})")
    page.mouse("mouseMoved", place["x"] + 6, place["y"] + 3)
    seen = picture(page, "tooltip")
    check("the tooltip", True, page.run("document.getElementById('tip').textContent")
          .startswith("request:begin"))
    check("the tooltip's fields", True, "id" + dict(span["fields"])["id"].__str__()
          in page.run("document.getElementById('tip').textContent"))
    colour = page.run("""getComputedStyle([...document.querySelectorAll('#legend button')].find(
        s => s.textContent.startsWith('request')).querySelector('i')).backgroundColor""")
    rgb = "#%02x%02x%02x" % tuple(map(int, re.findall(r"\d+", colour)[:3]))
    check("a span has its colour", True, seen.near(place["x"] + 3, place["y"] + 2, rgb))
    check("above it has none", False, seen.near(place["x"] + 3, place["y"] - 18, rgb))
    page.mouse("mousePressed", place["x"] + 6, place["y"] + 3, button="left", clickCount=1)
    page.mouse("mouseReleased", place["x"] + 6, place["y"] + 3, button="left", clickCount=1)
    check("a click selects", span["i"], page.run("traceRing.selected()"))
    # A range.
    page.key("0", "0")
    page.mouse("mousePressed", 400, 300, button="left", clickCount=1, modifiers=8)
    page.mouse("mouseMoved", 800, 300, button="left", buttons=1, modifiers=8)
    page.mouse("mouseReleased", 800, 300, button="left", clickCount=1, modifiers=8)
    text = page.run("document.getElementById('status').textContent")
    check(f"a range: {text}", True, re.match(r"[\d.]+ .s: [\d,]+ records\n", text) is not None)
    picture(page, "range")
    whole = page.run("traceRing.selectRange(-1, traceRing.stats.lastTime)")
    check("all in a range", (5000, 2500), (whole["records"], whole["byEvent"]["query"]))
    # Dark, and at two pixels a point.
    light = picture(page, "light")
    check("light", True, sum(light.at(5, 715)) > 600)
    page.scheme("dark")
    page.metrics(1280, 720, 2)
    dark = picture(page, "dark")
    check("dark", (True, 2560), (sum(dark.at(10, 1430)) < 150, dark.width))
    page.scheme("light")
    page.metrics(1280, 720, 1)


def losses(page, trace_reduce):
    open_page(page, trace_reduce, "times.trace")
    rows = page.run("traceRing.rows()")
    found = [loss for row in rows for loss in row["losses"]]
    check("losses", 46, sum(loss["count"] for loss in found))
    check("causes", {"overwritten", "refused", "too long", "nested"},
          {loss["cause"] for loss in found})
    at = next(i for i, row in enumerate(rows) if row["label"] == "first")
    gap = rows[at]["losses"][1]
    seen = picture(page, "losses")
    left, right = page.run(f"traceRing.xOf({gap['a']})"), page.run(f"traceRing.xOf({gap['b']})")
    top = page.run(f"traceRing.rowTop({at})")
    lost = page.run("getComputedStyle(document.documentElement).getPropertyValue('--lost').trim()")
    hatched = [seen.near(x, top + 12, lost, 120) for x in range(int(left) + 3, int(right) - 3)]
    check(f"hatched: {hatched}", True, 0.08 < sum(hatched) / len(hatched) < 0.7)
    check("not beside it", False, any(seen.near(x, top + 6, lost, 120)
                                      for x in range(int(right) + 4, int(right) + 60)))
    page.mouse("mouseMoved", (left + right) / 2, top + 55)
    page.settle()
    check("told of the loss", True,
          page.run("document.getElementById('tip').textContent").startswith("19 lost: overwritten"))
    check("the clock's jumps", 2, page.run("traceRing.find('clock goes back')"))


def lines(page, trace_reduce):
    """What belongs together across threads: spans, curves, arrows."""
    open_page(page, trace_reduce, "lines.trace")
    rows = page.run("traceRing.rows()")
    check("counters are their process's",
          [("service", True), ("main", False), ("pool", False), ("service", True), ("main", False)],
          [(row["label"], row["counters"]) for row in rows])
    check("with a scale", [[[-5, 20]], [[0, 3]]],
          [[each["scale"] for each in row["series"]] for row in rows if row["counters"]])
    check("spans that do not nest are on two levels", (2, 2), (rows[1]["levels"], rows[1]["spans"]))
    by_name = page.run("""Array.from({length: traceRing.stats.records}, (_, i) =>
        [traceRing.nameOf(i), traceRing.record(i).lines.find(line => line.startsWith('lasts'))])""")
    check("each has its length", ["lasts 2 \u00b5s", "lasts 7 \u00b5s", "lasts 6 \u00b5s"],
          [length for name, length in by_name if name == "request:begin"])
    check("at both ends", ["lasts 2 \u00b5s", "lasts 7 \u00b5s", "lasts 6 \u00b5s"],
          [length for name, length in by_name if name == "request:end"])
    check("who began it is told", True, any("begun by main" in line for line in
          page.run("traceRing.record(8).lines")))
    check("processes of one id are two", ["1#0/1", "1#1/1"],
          [page.run(f"traceRing.record({i}).lines[0]").split("(")[1][:-1] for i in (0, 5)])
    flows = page.run("traceRing.flows()")
    check("a flow is an arrow", [[0, 6]], flows)
    check("that is not drawn", [], page.run("traceRing.arrows()"))
    # Nor is it by the selection of a record of another flow; but by that of either end.
    for chosen, arrows in ((1, []), (0, flows), (6, flows), (4, flows), (-1, [])):
        page.run(f"traceRing.select({chosen}, false)")
        check(f"arrows of {chosen}", arrows, page.run("traceRing.arrows()"))
    page.run("traceRing.selectRange(traceRing.record(6).time - 1, traceRing.record(6).time + 1)")
    check("arrows of a range", flows, page.run("traceRing.arrows()"))
    page.key("Escape")
    check("no range", [], page.run("traceRing.arrows()"))
    page.key("f", "f")
    check("all arrows", (flows, "true"), (page.run("traceRing.arrows()"), page.run(
        "document.getElementById('flows').getAttribute('aria-pressed')")))
    seen = picture(page, "lines")
    accent = page.run("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    head = page.run("traceRing.placeOf(6)")
    check("that is seen", True, any(seen.near(head["x"] - 3, head["y"] + head["h"] / 2 + d, accent, 160)
                                    for d in (-1, 0, 1)))
    # The tip is beside what it tells of, and beside what is selected.
    for chosen in (0, 1, 6):
        page.run(f"traceRing.select({chosen}, false)")
        for over in (0, 1, 2, 5, 6):
            place = page.run(f"traceRing.placeOf({over})")
            page.mouse("mouseMoved", place["x"] + min(place["w"], 20) / 2, place["y"] + place["h"] / 2)
            tip = page.run("document.getElementById('tip').getBoundingClientRect().toJSON()")
            check(f"there is a tip at {over}", True, tip["width"] > 0)
            for what in (over, chosen):
                box = page.run(f"traceRing.placeOf({what})")
                free = (tip["right"] <= box["x"] or tip["left"] >= box["x"] + box["w"] or
                        tip["bottom"] <= box["y"] or tip["top"] >= box["y"] + box["h"])
                check(f"the tip at {over} is beside {what}", True, free)
    page.run("traceRing.find('done').then(() => traceRing.jump(1))")
    check("what was found is not under a tip", "none",
          page.run("getComputedStyle(document.getElementById('tip')).display"))


def legend(page, trace_reduce):
    """Events are switched off and on."""
    open_page(page, trace_reduce, "lines.trace")
    whole = page.run("traceRing.rows()")
    spans = sum(row["spans"] for row in whole)

    def click(name, modifiers=0):
        box = page.run(f"""[...document.querySelectorAll('#legend button')].find(
            each => each.textContent.startsWith('{name}')).getBoundingClientRect().toJSON()""")
        for what in ("mousePressed", "mouseReleased"):
            page.mouse(what, box["x"] + 5, box["y"] + 5, button="left", clickCount=1, modifiers=modifiers)
        page.settle()
        return {each[0]: each[1] for each in page.run("""[...document.querySelectorAll('#legend button')].map(
            each => [each.querySelector('b').textContent, each.getAttribute('aria-pressed') === 'true'])""")}
    page.run("traceRing.select(0, false)")
    check("one is off", {"request": False, "queue.depth": True, "done": True}, click("request"))
    rows = page.run("traceRing.rows()")
    check("no spans", (0, 0), (sum(row["spans"] for row in rows), sum(row["levels"] for row in rows)))
    check("rows are lower", True, sum(row["h"] for row in rows) < sum(row["h"] for row in whole))
    check("what is off is not selected", -1, page.run("traceRing.selected()"))
    check("nor found", 0, page.run("traceRing.find('request')"))
    check("nor counted", {"queue.depth": 3, "done": 1},
          page.run("traceRing.selectRange(-1, 1e9).byEvent"))
    page.key("f", "f")
    check("nor does it have arrows", [], page.run("traceRing.arrows()"))
    picture(page, "without requests")
    check("curves are off", {"request": False, "queue.depth": False, "done": True}, click("queue.depth"))
    check("no curves", 0, sum(len(row["series"]) for row in page.run("traceRing.rows()")))
    check("all is on", {"request": True, "queue.depth": True, "done": True},
          (click("request"), click("queue.depth"))[1])
    check("as before", whole, page.run("traceRing.rows()"))
    check("spans", spans, sum(row["spans"] for row in whole))
    check("one alone", {"request": True, "queue.depth": False, "done": False}, click("request", 8))
    check("and all", {"request": True, "queue.depth": True, "done": True}, click("request", 8))
    check("as before, again", whole, page.run("traceRing.rows()"))
    # The keys of other viewers.
    page.mouse("mouseMoved", 600, 300)
    view = "[traceRing.visible().a, traceRing.visible().b]"
    for key, holds in (("w", lambda b, n: n[0] > b[0] and n[1] < b[1]), ("d", lambda b, n: n[0] > b[0]),
                       ("a", lambda b, n: n[0] < b[0]), ("s", lambda b, n: n[0] < b[0] and n[1] > b[1])):
        was = page.run(view)
        page.key(key, key)
        check(f"key {key}", True, holds(was, page.run(view)))


def killed(page, trace_reduce):
    """Where a process was killed, and in which spans."""
    open_page(page, trace_reduce, "killed.trace")
    rows = page.run("traceRing.rows()")
    check("the last record of who was killed", [("whole", None), ("first", 7000), ("second", 7000)],
          [(row["label"], row["broken"]) for row in rows])
    told = page.run("""Array.from({length: traceRing.stats.records}, (_, i) =>
        [traceRing.nameOf(i), traceRing.record(i).lines.at(-1)])""")
    check("spans without an end last as long as their process", [
        "its end is not known: shown for 6 \u00b5s, until its process was killed or crashed", "lasts 1 \u00b5s",
        "its end is not known: shown for 3 \u00b5s, until its process was killed or crashed"],
        [line for name, line in told if name == "request:begin"])
    seen = picture(page, "killed")
    lost = page.run("getComputedStyle(document.documentElement).getPropertyValue('--lost').trim()")
    x = page.run("traceRing.xOf(7000)")
    for row in (1, 2):
        top = page.run(f"traceRing.rowTop({row})")
        check(f"a line in row {row}", True, any(seen.near(x + 2 + d, top + rows[row]["h"] - 4, lost, 60)
                                                for d in (0, 1, 2)))
    top = page.run("traceRing.rowTop(0)")
    check("not in that of who closed it", False, any(seen.near(x + 2 + d, top + rows[0]["h"] - 4, lost, 60)
                                                     for d in (0, 1, 2)))
    page.mouse("mouseMoved", x + 6, page.run("traceRing.rowTop(1)") + rows[1]["h"] - 3)
    page.settle()
    check("told of it", True, page.run("document.getElementById('tip').textContent").startswith(
        "killed or crashedgone, process 2last record: "))


def hostile(page, trace_reduce):
    open_page(page, trace_reduce, "hostile.trace", 2)
    check("scripts of the trace do not run", "hostile.trace - trace", page.run("document.title"))
    check("the page's own elements alone", [2, 0], page.run(
        "[document.querySelectorAll('b').length - document.querySelectorAll('#legend b').length + 1,"
        " document.querySelectorAll('img, iframe, object, link').length]"))
    page.run("traceRing.select(0, true)")
    check("markup is text", True, "</script>" in page.run("document.getElementById('status').textContent"))
    place = page.run("traceRing.placeOf(0)")
    page.mouse("mouseMoved", place["x"] + 1, place["y"] + 4)
    picture(page, "hostile")
    check("and in the tooltip", 0, page.run("document.querySelectorAll('#tip script').length"))
    check("nobody complained", [], page.messages)
    check("no network", "blocked", page.run(
        "fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'blocked')"))
    check("and by the page's own policy", True, any("Content Security Policy" in text
                                                    for text in page.messages))
    page.messages.clear()


def big(page, trace_reduce, samples):
    run(samples, ".", "1000000")
    size, seconds = open_page(page, trace_reduce, "big.trace")
    stats = page.run("traceRing.stats")
    check("a million", 1_000_000, stats["records"] + stats["lost"])
    all_of_it = page.run("traceRing.frameMs()")
    picture(page, "million")
    begin = time.monotonic()
    found = page.run("traceRing.find('the-last')")
    searched = time.monotonic() - begin
    check("found among a million", 8, found)
    check("the first of them", True, page.run("traceRing.jump(1)") >= 0)
    check("it is seen", True, page.run("""(() => { const r = traceRing.record(traceRing.selected()),
        v = traceRing.visible(); return r.time > v.a && r.time < v.b; })()"""))
    near = page.run("traceRing.frameMs()")
    print(f"1,000,000 records: page of {size / 1e6:.1f} MB, opened in {seconds:.2f} s (its script: "
          f"{stats['loadedMs']:.0f} ms); a frame of all {all_of_it['median']:.1f} ms (best "
          f"{all_of_it['best']:.1f}), near {near['median']:.1f} ms; all values searched in "
          f"{searched:.2f} s")


def main():
    trace_reduce, samples = map(os.path.abspath, sys.argv[1:3])
    if browser.program() is None:
        print("no Chromium here (Debian: chromium)")
        sys.exit(77)
    if PICTURES:
        os.makedirs(PICTURES, exist_ok=True)
    shutil.rmtree("page", ignore_errors=True)
    os.mkdir("page")
    os.chdir("page")
    run(samples, ".")
    with browser.Browser() as page:
        compared = 0
        for trace in ("types", "times", "named", "everything", "random1", "random2", "no_clock", "lines", "hostile"):
            status = 2 if trace == "hostile" else 0
            open_page(page, trace_reduce, trace + ".trace", status)
            compared += same_records(page, trace_reduce, trace + ".trace", status)
        check("enough was compared", True, compared > 5000)
        steer(page, trace_reduce)
        losses(page, trace_reduce)
        lines(page, trace_reduce)
        legend(page, trace_reduce)
        killed(page, trace_reduce)
        hostile(page, trace_reduce)
        big(page, trace_reduce, samples)
    print(f"{compared} values compared: {len(FAILED)} differences")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
