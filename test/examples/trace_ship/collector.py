# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""A server that takes OpenTelemetry's protocol, for tests: it keeps all requests, and answers as a
test says. Also a reader of these requests."""

import collections
import http.server
import socket
import threading
import time

Request = collections.namedtuple("Request", "path body headers time")
Answer = collections.namedtuple("Answer", "status headers body keep")
GOOD = Answer(200, {}, b"", True)


class Collector:
    """`answers`: the next answers to requests with items; afterwards GOOD. `empty`: to those
    without."""

    def __init__(self, port=0):
        self.requests = []  # that were answered as GOOD, in the order in which they came
        self.others = []
        self.answers = collections.deque()
        self.lock = threading.Lock()
        self.connections = []
        self.port = port
        self.start()

    @property
    def url(self):
        return f"otlp+http://127.0.0.1:{self.port}/"

    def start(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                collector.connections.append(self.connection)

            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(self.path, body, self.headers, time.monotonic())
                with collector.lock:
                    answer = collector.answers.popleft() if body and collector.answers else GOOD
                    if body:
                        (collector.requests if answer.keep else collector.others).append(request)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass  # trace-ship was killed

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for each in self.connections:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended
        self.connections.clear()
        self.thread.join()


def fields_of(data):
    """(number, value): a number, or bytes."""
    at, end = 0, len(data)

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < end:
        key = varint()
        wire = key & 7
        if wire == 0:
            yield key >> 3, varint()
            continue
        size = varint() if wire == 2 else {1: 8, 5: 4}[wire]
        assert at + size <= end
        yield key >> 3, data[at:at + size]
        at += size


def value_of(data):
    for number, value in fields_of(data):
        if number == 1:
            return value.decode()
        return value
    return None


def attribute_of(data):
    key = value = None
    for number, each in fields_of(data):
        if number == 1:
            key = each.decode()
        else:
            value = value_of(each)
    return key, value


class Item:
    """A span, or a log record: what this test compares."""
    __slots__ = ("is_span", "name", "time", "end", "attributes", "span_id", "parent", "trace_id",
                 "resource", "request")

    def __init__(self, data, path, resource, request):
        self.is_span = path == "/v1/traces"
        self.resource, self.request = resource, request
        self.attributes = {}
        self.name = self.span_id = self.parent = self.trace_id = self.time = self.end = None
        for number, value in fields_of(data):
            if number == (9 if self.is_span else 6):
                key, one = attribute_of(value)
                self.attributes[key] = one
            elif self.is_span:
                if number == 1:
                    self.trace_id = value
                elif number == 2:
                    self.span_id = value
                elif number == 4:
                    self.parent = value
                elif number == 5:
                    self.name = value.decode()
                elif number == 7:
                    self.time = int.from_bytes(value, "little")
                elif number == 8:
                    self.end = int.from_bytes(value, "little")
            elif number == 1:
                self.time = int.from_bytes(value, "little")
            elif number == 9:
                self.trace_id = value
            elif number == 10:
                self.span_id = value
            elif number == 12:
                self.name = value.decode()

    def places(self):
        """Of the records in it."""
        of = self.attributes
        lane = of.get("trace_ring.lane")
        if self.name in ("trace_ring.loss", "trace_ring.clock_jump"):
            return []
        made = [(lane, of["trace_ring.position"])]
        if self.is_span:
            made.append((of.get("trace_ring.end.lane", lane), of["trace_ring.end.position"]))
        return made


def items_of(requests, first=0):
    for i, request in enumerate(requests, first):
        for _, group in fields_of(request.body):
            resource = {}
            for number, part in fields_of(group):
                if number == 1:
                    resource = dict(attribute_of(value) for _, value in fields_of(part))
                    continue
                for kind, data in fields_of(part):
                    if kind == 2:
                        yield Item(data, request.path, resource, i)
