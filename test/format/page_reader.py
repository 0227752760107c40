#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""A reader of trace files that knows only the format's page, include/trace_ring/format/README.md.

    page_reader.py FILE         prints its records and losses as JSON, one object a line

For files at rest; damage raises ValueError. The order is by lane, then by number.
"""
import json
import struct
import sys

FORMATS = {1: "B", 2: "H", 3: "I", 4: "Q", 5: "b", 6: "h", 7: "i", 8: "q", 9: "f", 10: "d",
           11: "?", 12: "c", 13: "Q"}
CAUSES = {"refused": 40, "too long": 48, "nested": 56, "abandoned": 64}  # in a lane's entry


def text(raw):
    return raw.rstrip(b"\0").decode("utf-8", "replace")


class Trace:
    def __init__(self, raw):
        self.raw = raw
        if self.u64(0) != 0x474E526563617274 or self.u32(8) not in (1, 2) or self.u32(12) != 4096:
            raise ValueError("no trace file of version 1 or 2")
        self.clocks = sorted({entry for at in self.table(88) if (entry := self.clock(at))})
        self.processes = [self.process(at) for at in self.table(104)]
        self.lanes = {self.u32(at): at for at in self.table(136) if self.u32(at) != 0}
        self.types = {}  # by numbering and id
        self.read_dictionary(self.u64(168), self.u64(176))

    # --- Numbers and tables --------------------------------------------------------------------
    def number(self, form, at):
        return struct.unpack_from("<" + form, self.raw, at)[0]

    def u8(self, at):
        return self.number("B", at)

    def u16(self, at):
        return self.number("H", at)

    def u32(self, at):
        return self.number("I", at)

    def u64(self, at):
        return self.number("Q", at)

    def table(self, at):
        """Where the entries of a table are, by where the header describes it."""
        first, size, count = self.u64(at), self.u32(at + 8), self.u32(at + 12)
        return range(first, first + size * count, size)

    def clock(self, at):
        return tuple(self.u64(at + i) for i in (0, 8, 16, 24)) if self.u64(at) != 0 else None

    def process(self, at):
        if self.u32(at) == 0:
            return None
        return {"pid": self.u32(at + 4), "numbering": self.u32(at + 16)}

    def realtime(self, ticks):
        """Nanoseconds since 1970; None if the trace has no clock."""
        if not self.clocks or self.u64(24) == 0:
            return None
        (_, first, mono0, _), (_, last, mono1, _) = self.clocks[0], self.clocks[-1]
        _, t0, _, n0 = next((c for c in reversed(self.clocks) if c[1] <= ticks), self.clocks[0])
        after = next((c for c in self.clocks if c[1] > ticks), None)
        if after and t0 <= ticks:
            ns, length = after[3] - n0, after[1] - t0
        elif mono1 - mono0 >= 10_000_000 and last > first:
            ns, length = mono1 - mono0, last - first
        else:
            ns, length = 1_000_000_000, self.u64(24)
        return n0 + (ticks - t0) * ns // length

    # --- The dictionary ------------------------------------------------------------------------
    def read_dictionary(self, first, size):
        at, aliases, units = first, [], {}
        while at + 64 <= first + size:
            magic, length = self.raw[at:at + 4], self.u32(at + 4)
            if magic == b"TYPE":
                units[(at - first) // 64] = made = self.event_type(at, length)
                self.types[self.u32(at + 8), self.u16(at + 12)] = made
            elif magic == b"ALIA":
                aliases.append(at)
            at += length if magic in (b"TYPE", b"ALIA", b"FREE") else 64
        for at in aliases:
            for i in range(self.u16(at + 14)):
                unit = self.u32(at + 16 + 4 * i)
                self.types[self.u32(at + 8), self.u16(at + 12) + i] = units[unit]

    def event_type(self, at, length):
        count, name_bytes = self.u16(at + 16), self.u16(at + 18)
        place = at + 32 + 8 * count

        def take(size):
            nonlocal place
            place += size
            return self.raw[place - size:place].decode()

        made = {"name": take(name_bytes), "fixed": self.u32(at + 20), "fields": []}
        for i in range(count):
            entry = at + 32 + 8 * i
            made["fields"].append({
                "type": self.u8(entry), "form": self.u8(entry + 1) & 0x7F,
                "result": self.u8(entry + 1) >= 0x80, "count": self.u16(entry + 2),
                "offset": self.u16(entry + 4), "name": take(self.u16(entry + 6)), "names": {}})
        place = (place + 7) // 8 * 8
        if place + 8 <= at + length and self.raw[place:place + 4] == b"UNIT":
            place += 8 + 24 * self.u16(place + 4)  # units change no value
        if place + 8 <= at + length and self.raw[place:place + 4] == b"NMES":
            self.read_names(place, made["fields"])
        return made

    def read_names(self, at, fields):
        with_names, values = self.u16(at + 4), self.u16(at + 6)
        values_at = at + 8 + 8 * with_names
        lengths_at = values_at + 8 * values
        place, names = lengths_at + (values + 3) // 4 * 8, []
        for i in range(values):
            length = self.u16(lengths_at + 2 * i)
            value = self.number("q", values_at + 8 * i)
            names.append((value, text(self.raw[place:place + length])))
            place += length
        for i in range(with_names):
            word = at + 8 + 8 * i
            first = self.u16(word + 2)
            fields[self.u16(word)]["names"] = dict(names[first:first + self.u16(word + 4)])

    # --- Sub-buffers and records ---------------------------------------------------------------
    def sub_buffers(self):
        """The sub-buffers with records, by lane, in the order of their positions."""
        size, first, found = self.u32(56), self.u64(200), {}
        for at in range(first, min(len(self.raw), first + size * self.u64(64)) - size + 1, size):
            if self.u16(at) == 0x5254 and self.u64(at + 8) & 7 in (2, 3, 4):
                found.setdefault(self.u32(at + 4), []).append((self.u64(at + 8) >> 3, at))
        return {lane: [at for _, at in sorted(found[lane])] for lane in sorted(found)}

    def items(self):
        for lane, subs in self.sub_buffers().items():
            expected = 0
            for at in subs:
                first = self.u64(at + 16)
                if first > expected:
                    yield {"kind": "loss", "lane": lane, "cause": "overwritten",
                           "count": first - expected}
                yield from self.records(lane, at)
                expected = first + (self.u32(at + 48) >> 16)
        for lane, at in self.lanes.items():
            for cause, where in CAUSES.items():
                if count := self.u64(at + where):
                    yield {"kind": "loss", "lane": lane, "cause": cause, "count": count}

    def records(self, lane, sub):
        writer = {"process": None, "tid": 0, "depth": 0, "thread": ""}
        if lane in self.lanes:
            entry = self.lanes[lane]
            writer = {"process": self.u32(entry + 8), "tid": self.u32(entry + 12),
                      "depth": self.u32(entry + 16),
                      "thread": text(self.raw[entry + 88:entry + 104])}
        numbering = (self.u16(sub + 2) ^ 0x4253) - 1
        own_name = writer["thread"]
        at, end = sub + 64, sub + (self.u32(sub + 48) + 0x8008) % 65536
        high, number = self.u64(sub + 24) >> 32, self.u64(sub + 16)
        while at < end:
            head = self.u32(at + 4)
            event, size, flags = head & 0xFFFF, (head >> 16 & 0xFFF) * 8, head >> 28
            if size == 0 or at + size > end:
                raise ValueError(f"a record of {size} bytes at {at}")
            if event == 0:
                high = self.u64(at + 8) >> 32
                if size > 16:
                    writer = {"tid": self.u32(at + 16), "process": self.u16(at + 20),
                              "depth": self.u16(at + 22),
                              "thread": text(self.raw[at + 24:at + 40]) if size == 40 else own_name}
            else:
                if writer["process"] is not None:
                    numbering = self.processes[writer["process"]]["numbering"]
                yield self.record(lane, number, high << 32 | self.u32(at), flags, writer,
                                  self.types[numbering, event], self.raw[at + 8:at + size])
                number += 1
            at += size

    def record(self, lane, number, ticks, flags, writer, made, payload):
        process = self.processes[writer["process"]] if writer["process"] is not None else {"pid": 0}
        out = {"kind": "record", "ticks": ticks, "time_ns": self.realtime(ticks), "lane": lane,
               "position": number, "pid": process["pid"], "tid": writer["tid"],
               "thread": writer["thread"], "depth": writer["depth"], "event": made["name"]}
        if flags & 2:
            out["interval"] = True
        if flags & 12:
            out["span"] = "end" if flags & 8 else "begin"
        if flags & 12 == 12:
            out["began"] = {"lane": struct.unpack_from("<I", payload, 8)[0],
                            "position": struct.unpack_from("<Q", payload)[0] - 1}
            payload = payload[16:]
        ends = flags & 8 != 0
        fields = [field for field in made["fields"] if field["result"] == ends]
        if ends and not payload and fields:
            out["results"] = False
            fields = []
        cut = []
        out["fields"] = self.values(fields, payload, made["fixed"], cut)
        if cut:
            out["cut"] = cut
        return out

    def values(self, fields, payload, fixed, cut):
        if fields and fields[0]["result"]:  # the fixed part of an end reaches to its last field
            fixed = max(field["offset"] + (2 if field["form"] == 2 else field["count"] *
                        struct.calcsize("<" + FORMATS[field["type"]])) for field in fields)
        variable, out = (fixed + 7) // 8 * 8, {}
        for field in fields:
            at, size = field["offset"], struct.calcsize("<" + FORMATS[field["type"]])
            count = field["count"]
            if field["form"] == 2:
                length = struct.unpack_from("<H", payload, at)[0]
                if length >= 0x8000:
                    cut.append(field["name"])
                length &= 0x7FFF
                at, count = variable, length // size
                variable += (length + 7) // 8 * 8
            if field["type"] == 12 and field["form"] != 0:
                out[field["name"]] = text(payload[at:at + count])
                continue
            found = struct.unpack_from(f"<{count}{FORMATS[field['type']]}", payload, at)
            if field["type"] == 12:
                found = [one.decode("latin-1") for one in found]
            elif field["type"] == 13:
                found = [hex(one) for one in found]
            found = [field["names"].get(one, one) for one in found]
            out[field["name"]] = found[0] if field["form"] == 0 else found
        return out


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as opened:
        for item in Trace(opened.read()).items():
            print(json.dumps(item, ensure_ascii=False))
