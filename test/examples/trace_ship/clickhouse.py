# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""A ClickHouse server for tests, with its own folder and free ports."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/server.log</log>
    <errorlog>{folder}/error.log</errorlog></logger>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>{https}
  <listen_host>127.0.0.1</listen_host>
  <path>{data}/</path><tmp_path>{folder}/tmp/</tmp_path>
  <users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>
  <merge_tree><old_parts_lifetime>1</old_parts_lifetime></merge_tree>
</yandex>
"""
HTTPS = """<https_port>{port}</https_port>
  <openSSL><server><certificateFile>{folder}/server.crt</certificateFile>
    <privateKeyFile>{folder}/server.key</privateKeyFile>
    <verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile>
    <disableProtocols>sslv2,sslv3</disableProtocols></server></openSSL>"""
USERS = """<?xml version="1.0"?>
<yandex><profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
<users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default>
  <shipper><password>it's "secret"</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></shipper>
</users><quotas><default></default></quotas></yandex>
"""


def skip(why):
    print(why)
    sys.exit(77)


def command():
    """How a server is started; ends the test where there is none."""
    if shutil.which("clickhouse-server"):
        return ["clickhouse-server"]
    if shutil.which("clickhouse"):
        return ["clickhouse", "server"]
    skip("there is no clickhouse-server (Debian: clickhouse-server)")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, folder, data=None, tls=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = command()
        self.port, self.tls_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        https = ""
        if tls:
            https = HTTPS.format(port=self.tls_port, folder=self.folder)
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                 "-keyout", self.folder / "server.key", "-out", self.folder / "server.crt"],
                check=True, stderr=subprocess.DEVNULL)
        (self.folder / "config.xml").write_text(CONFIG.format(
            folder=self.folder, http=self.port, tcp=free_port(), https=https,
            data=data or self.folder / "data"))
        (self.folder / "users.xml").write_text(USERS)
        self.process = None
        self.start()

    def start(self):
        with open(self.folder / "output", "a") as output:
            self.process = subprocess.Popen(
                self.command + [f"--config-file={self.folder}/config.xml"],
                stdout=output, stderr=output, cwd=self.folder)
        for _ in range(600):
            try:
                self.ask("SELECT 1")
                return
            except OSError:
                if self.process.poll() is not None:
                    # The ports may still be held by one that was killed.
                    time.sleep(0.2)
                    return self.start()
                time.sleep(0.05)
        raise RuntimeError("clickhouse-server does not start: " +
                           (self.folder / "output").read_text()[-2000:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, query):
        """The answer's rows, as lists of texts."""
        request = urllib.request.Request(self.url + "?wait_end_of_query=1", data=query.encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{query}: {error.read().decode()}") from None
        return [line.split("\t") for line in text.splitlines()]

    def number(self, query):
        return int(self.ask(query)[0][0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
