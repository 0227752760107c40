# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Chromium without a window, steered over a pair of pipes (its DevTools protocol), and pictures."""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Failure(Exception):
    pass


class Browser:
    """One page. Whatever it loads beside the file itself, logs or throws is kept."""

    def __init__(self, width=1280, height=720):
        self.folder = tempfile.mkdtemp(prefix="browser")
        to_child, self.write = os.pipe()
        self.read, from_child = os.pipe()
        # The protocol's descriptors are 3 and 4.
        command = ["/bin/sh", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "sh", program(),
                   "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-component-update",
                   f"--user-data-dir={self.folder}/profile", f"--window-size={width},{height}",
                   "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_child, from_child),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.number, self.pending, self.session = 0, b"", None
        self.requests, self.messages = [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"]
                      if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.metrics(width, height, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close", limit=5)
        except Failure:
            pass
        for fd in (self.read, self.write):
            os.close(fd)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self, limit):
        while b"\0" not in self.pending:
            if not select.select([self.read], [], [], max(0, limit - time.monotonic()))[0]:
                raise Failure("the browser says nothing")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise Failure("the browser has ended")
            self.pending += part
        text, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(text)
        method, what = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            detail = what["exceptionDetails"]
            self.messages.append(detail.get("exception", {}).get("description", detail["text"]))
        elif method == "Log.entryAdded":
            self.messages.append(what["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.messages.append("a dialog: " + what["message"])
        return message

    def call(self, method, limit=120, **arguments):
        self.number += 1
        message = {"id": self.number, "method": method, "params": arguments}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + limit
        while True:
            answer = self._message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, ready="window.traceRing !== undefined"):
        """Returns the seconds until `ready`."""
        begin = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not self.run("document.readyState === 'complete'"):
            time.sleep(0.02)
        if not self.run(ready):
            raise Failure(f"{path} does not get ready: {self.messages}")
        return time.monotonic() - begin

    def run(self, script):
        """The value of an expression, awaited if it is a promise."""
        try:
            result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                               awaitPromise=True)
        except Failure as reason:
            if "context" in str(reason) or "navigated" in str(reason):
                return None  # between two pages
            raise
        if "exceptionDetails" in result:
            raise Failure(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def metrics(self, width, height, ratio):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=ratio, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def key(self, key, text=""):
        """A key that is pressed and let go; `text` is what it types."""
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def settle(self):
        """Until what was asked for is on the screen."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def screenshot(self, path=None):
        self.settle()
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path:
            with open(path, "wb") as file:
                file.write(png)
        return Picture(png)


class Picture:
    """The pixels of a PNG with 8 bits a colour."""

    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        at, data = 8, b""
        while at < len(png):
            size, kind = struct.unpack(">I4s", png[at:at + 8])
            body = png[at + 8:at + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, colours = struct.unpack(">IIBB", body[:10])
                assert depth == 8 and colours in (2, 6)
                self.step = 3 if colours == 2 else 4
            elif kind == b"IDAT":
                data += body
            at += size + 12
        raw, stride = zlib.decompress(data), self.width * self.step
        self.lines, before = [], bytearray(stride)
        for y in range(self.height):
            method = raw[y * (stride + 1)]
            line = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
            step = self.step
            if method == 1:
                for i in range(step, stride):
                    line[i] = line[i] + line[i - step] & 255
            elif method == 2:
                for i in range(stride):
                    line[i] = line[i] + before[i] & 255
            elif method == 3:
                for i in range(stride):
                    line[i] = line[i] + ((line[i - step] if i >= step else 0) + before[i] >> 1) & 255
            elif method == 4:
                for i in range(stride):
                    left, corner = (line[i - step], before[i - step]) if i >= step else (0, 0)
                    up = before[i]
                    guess = left + up - corner
                    a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
                    near = left if a <= b and a <= c else up if b <= c else corner
                    line[i] = line[i] + near & 255
            self.lines.append(line)
            before = line

    def at(self, x, y):
        """Red, green and blue."""
        line, i = self.lines[int(y)], int(x) * self.step
        return tuple(line[i:i + 3])

    def near(self, x, y, colour, within=40):
        """The pixel is of this colour, #rrggbb, or nearly."""
        wanted = tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))
        return sum(abs(a - b) for a, b in zip(self.at(x, y), wanted)) <= within
