#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Indexes the words of Python's own library in several threads, and packs what it read.

    index_sources.py [--quick] [FOLDER]

Something real to record: threads read, split, hash and compress files; the index grows meanwhile.
"""
import collections
import hashlib
import json
import pathlib
import queue
import re
import sys
import sysconfig
import threading
import zlib

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}")


def read_files(work, index, lock, packed, digests):
    while True:
        path = work.get()
        if path is None:
            return
        data = path.read_bytes()
        words = collections.Counter(WORD.findall(data.decode("utf-8", "replace")))
        small = zlib.compress(data, 6)
        digest = hashlib.sha256(data).hexdigest()
        with lock:
            packed[path.name] = small
            digests[path.name] = digest
            for word, count in words.items():
                index.setdefault(word, []).append((path.name, count))


def main(arguments):
    quick = "--quick" in arguments
    folders = [a for a in arguments if not a.startswith("--")]
    folder = pathlib.Path(folders[0] if folders else sysconfig.get_paths()["stdlib"])
    files = sorted(folder.glob("*.py"))[: 20 if quick else 200]
    work, lock = queue.Queue(), threading.Lock()
    index, packed, digests = {}, {}, {}
    threads = [
        threading.Thread(target=read_files, args=(work, index, lock, packed, digests))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for path in files:
        work.put(path)
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join()
    common = sorted(index, key=lambda word: -sum(count for _, count in index[word]))[:10]
    text = json.dumps({"words": index, "digests": digests})
    print(f"{len(files)} files, {len(index)} words, {sum(map(len, packed.values()))} bytes packed, "
          f"an index of {len(text)} bytes; most often: {', '.join(common)}")


if __name__ == "__main__":
    main(sys.argv[1:])
