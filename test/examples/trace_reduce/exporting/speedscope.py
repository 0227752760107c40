#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Opens what exporting/chrome.hpp writes in speedscope, in a headless Chromium.

    speedscope.py FORMATS_TEST     the program tests.exporters

TRACE_RING_SPEEDSCOPE names a folder with a build of speedscope in it, or one that is empty or not
there yet: then speedscope is installed into it with npm. Without that variable, or without Chromium,
this is skipped (77). speedscope must show the thread and its process, and end each span that it was
told to end.
"""
import base64
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

VERSION = "1.25.0"  # of speedscope, where it is installed here

# Go into speedscope's own page: what it says on the console is kept, and said beside the text that
# it shows, which names the thread. The spans themselves are a canvas.
BEFORE = """<script>
const said = [];
for (const how of ["warn", "error"]) console[how] = (...what) => said.push(how + ": " + what.join(" "));
window.onerror = (what) => { said.push("exception: " + what); };
window.alert = (what) => { said.push("alert: " + what); };
</script>"""
AFTER = """<pre id="said" style="display: none"></pre><script>
setInterval(() => {
  const all = {title: document.title, shown: document.body.innerText, said};
  document.getElementById("said").textContent = btoa(encodeURIComponent(JSON.stringify(all)));
}, 50);
</script>"""


def skip(why):
    print(why)
    sys.exit(77)


def speedscope(folder):
    """The folder of speedscope's page and program."""
    def find():
        pages = glob.glob(os.path.join(glob.escape(folder), "**", "index.html"), recursive=True)
        return [os.path.dirname(page) for page in pages
                if glob.glob(os.path.join(glob.escape(os.path.dirname(page)), "speedscope*.js"))]
    if not find():
        npm = shutil.which("npm")
        if npm is None:
            skip(f"{folder}: no speedscope in it, and no npm to install it")
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run([npm, "install", "--silent", "--ignore-scripts", "--prefix", folder,
                               f"speedscope@{VERSION}"], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not find():
            skip(f"npm cannot install speedscope into {folder}: {done.stderr.strip()[-500:]}")
    return find()[0]


def opened(chromium, build, trace, scratch):
    """What speedscope's page says when it has opened the trace."""
    site = os.path.join(scratch, "site")
    shutil.copytree(build, site)
    with open(os.path.join(site, "index.html"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(site, "index.html"), "w", encoding="utf-8") as file:
        file.write(page.replace("<head>", "<head>" + BEFORE, 1)
                   .replace("</body>", AFTER + "</body>", 1))
    with open(os.path.join(site, "trace.js"), "w", encoding="utf-8") as file:
        file.write("speedscope.loadFileFromBase64(%s, %s)" % (
            json.dumps("trace.json"), json.dumps(base64.b64encode(trace).decode())))
    where = urllib.parse.quote(site)
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
         "--allow-file-access-from-files", f"--user-data-dir={scratch}/profile",
         "--virtual-time-budget=10000", "--dump-dom",
         f"file://{where}/index.html#localProfilePath={where.lstrip('/')}/trace.js"],
        capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'id="said"[^>]*>([A-Za-z0-9+/=]+)<', done.stdout)
    if found is None:
        sys.exit(f"no page from Chromium: {done.stderr[-2000:]}")
    return json.loads(urllib.parse.unquote(base64.b64decode(found[1]).decode()))


def main():
    program = os.path.abspath(sys.argv[1])
    folder = os.environ.get("TRACE_RING_SPEEDSCOPE", "")
    if not folder:
        skip("TRACE_RING_SPEEDSCOPE names no folder for speedscope")
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    chromium = next(found, None)
    if chromium is None:
        skip("there is no Chromium")
    build = speedscope(os.path.abspath(folder))
    with tempfile.TemporaryDirectory() as scratch:
        saved = os.path.join(scratch, "chrome.json")
        subprocess.run([program, "--run_test=formats/a_trace_of_everything_is_shown_to_the_letter"],
                       env={**os.environ, "TRACE_RING_SAVE_CHROME": saved}, check=True,
                       stdout=subprocess.DEVNULL)
        with open(saved, "rb") as file:
            trace = file.read()
        said = opened(chromium, build, trace, scratch)
    print(json.dumps(said, indent=1))
    faults = [each for each in said["said"]
              if not each.startswith("warn:") or "Doing nothing" in each]
    if faults:
        sys.exit("\n".join(["speedscope complains:"] + faults))
    events = json.loads(trace)["traceEvents"]
    thread = next(each for each in events if each["ph"] == "B")
    names = {(each["name"], each["pid"], each["tid"]): each["args"]["name"]
             for each in events if each["ph"] == "M"}
    line = (f"{names['process_name', thread['pid'], 0]} (pid {thread['pid']}), "
            f"{names['thread_name', thread['pid'], thread['tid']]} (tid {thread['tid']})")
    if "trace.json" not in said["title"] or line not in said["shown"]:
        sys.exit(f"speedscope does not show {line}")
    still_open = sum("still open" in each for each in said["said"])
    left = sum((each["ph"] == "B") - (each["ph"] == "E") for each in events)
    if still_open != left:
        sys.exit(f"speedscope knows of {still_open} spans that are open at the end, not of {left}")


if __name__ == "__main__":
    main()
