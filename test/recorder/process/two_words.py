#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Lets a 64-bit and a 32-bit program share trace files.

    two_words.py two_words.cpp -- COMPILER [FLAG...]   (in a folder of its own)

Each of them once makes the file that the other joins. Both record at the same time, and readers of
both word sizes find the same: the fields of either, with the lengths that they have there. One is
killed, and the other takes back what it held. Exits with 77 where programs of both word sizes
cannot be compiled and run.
"""
import os
import platform
import signal
import subprocess
import sys

NARROW = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]
WORDS = {8: "./wide", 4: "./narrow"}
EACH = 1500  # records, of 136 bytes at most; both writers' fit into the ring


class Failed(Exception):
    pass


def expect(what, found, expected):
    if found != expected:
        raise Failed(f"{what}: {found!r}, not {expected!r}")


class Writer:
    def __init__(self, word, file):
        self.process = subprocess.Popen([WORDS[word], "write", file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        expect(f"a writer of word size {word}", self.answer(), "ready")

    def answer(self):
        return self.process.stdout.readline().strip()

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command):
        self.tell(command)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        expect("the end of a writer", self.process.wait(), 0)

    def kill(self):
        self.process.kill()
        expect("the end of a killed writer", self.process.wait(), -signal.SIGKILL)


def read(file):
    """What the readers of both word sizes say, which must be the same."""
    said = [subprocess.run([program, "read", file], check=True, capture_output=True,
                           text=True).stdout for program in WORDS.values()]
    expect("what the narrow reader says", said[1], said[0])
    return said[0].splitlines()


def line(word, count, lost=0):
    return f"{word}: {count} read, {lost} lost, 0 wrong, 0 out of order"


def share(creator, joiner):
    file = f"{creator}-{joiner}.trace"
    first = Writer(creator, file)
    expect("before the other comes", first.ask("put 10"), "10")
    second = Writer(joiner, file)
    for writer in (first, second):
        writer.tell(f"put {EACH // 10}")
    expect("recorded by the creator", first.answer(), str(10 + EACH // 10))
    expect("recorded by the joiner", second.answer(), str(EACH // 10))
    # Live, as it is now ...
    expected = sorted([line(creator, 10 + EACH // 10), line(joiner, EACH // 10)])
    expect("the live file", read(file), expected + ["2 types, 0 strange"])
    # ... and several times round the ring, both at once.
    for writer in (first, second):
        writer.tell(f"put {10 * EACH}")
    written = {creator: 10 + EACH // 10 + 10 * EACH, joiner: EACH // 10 + 10 * EACH}
    expect("recorded by the creator", first.answer(), str(written[creator]))
    expect("recorded by the joiner", second.answer(), str(written[joiner]))
    first.end()
    second.end()
    *writers, last = read(file)
    expect("types", last, "2 types, 0 strange")
    expect("writers", len(writers), 2)
    for word, said in zip((4, 8), writers):
        count = int(said.split()[1])
        expect("a writer's account", said, line(word, count, written[word] - count))
    if not any(int(said.split()[1]) > 0 for said in writers):
        raise Failed("nothing is left in the ring")


def survive(creator, joiner, dies):
    """Half of 64 sub-buffers may be held; one writer dies with 20, the other wants all."""
    file = f"{creator}-{joiner}-{dies}.trace"
    writers = {creator: Writer(creator, file)}
    writers[joiner] = Writer(joiner, file)
    lives = joiner if dies == creator else creator
    expect("held by who dies", writers[dies].ask("hold 20"), "20 0")
    expect("held by who lives", writers[lives].ask("hold 5"), "5 0")
    writers[dies].kill()
    # Threads share the last sub-buffers, so none loses a record. What the dead writer holds is
    # looked for once in 64 claims of the shared ones.
    recorded = 5
    reclaimed = 0
    while recorded < 80 and reclaimed == 0:
        recorded += 25
        kept, reclaimed = map(int, writers[lives].ask("hold 25").split())
        expect("recorded after that", kept, recorded)
    expect("reclaimed", reclaimed, 20)
    expect("the file", read(file), sorted([line(dies, 20), line(lives, recorded)]) +
           ["2 types, 0 strange"])
    writers[lives].end()


def compile_both(source, compiler):
    if platform.machine() != "x86_64" or any(f.startswith(("-fsanitize", "-m32", "--target"))
                                             for f in compiler):
        print("skipped: not a build for x86-64 alone")
        return False
    with open("try.cpp", "w", encoding="utf-8") as file:
        file.write("#include <string>\nint main() { return sizeof(void*) == 4 ? 0 : 1; }\n")
    attempt = subprocess.run(compiler + NARROW + ["try.cpp", "-o", "try"], capture_output=True,
                             check=False)
    if attempt.returncode != 0 or subprocess.run(["./try"], check=False).returncode != 0:
        print("skipped: programs for i386 cannot be compiled and run here")
        return False
    both = [subprocess.Popen(compiler + ["-O1", "-pthread", *flags, source, "-o", WORDS[word]])
            for word, flags in ((8, []), (4, NARROW))]
    if [one.wait() for one in both] != [0, 0]:
        raise Failed("it does not compile")
    return True


def main():
    split = sys.argv.index("--")
    for name in os.listdir("."):
        if name.endswith(".trace"):
            os.remove(name)
    try:
        if not compile_both(sys.argv[split - 1], sys.argv[split + 1:]):
            return 77
        for creator, joiner in ((8, 4), (4, 8)):
            share(creator, joiner)
            survive(creator, joiner, dies=creator)
            survive(creator, joiner, dies=joiner)
    except Failed as fault:
        print(fault)
        return 1
    print("64- and 32-bit programs share a file")
    return 0


if __name__ == "__main__":
    sys.exit(main())
