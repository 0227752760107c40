#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""Every ordering point of the library, weakened.

    orders.py ROOT --matrix STEPS [TEST...] -- COMPILER ARGUMENT...

tries each by all explorations that come by it, with so many steps, and prints what finds it.
mutants.py plants those of CAUGHT with its own faults, and refuses to run where a point is in no list.

A point is what stands behind a comment `// order: LABEL pairs with ...`: a fence, which is left out,
or an order, which becomes the next weaker one (`acq_rel` becomes each of its halves). Each must be
in CAUGHT, with the exploration that finds it, or in NOT_CAUGHT, with the reason. So an ordering
point that is new needs a line here, and one that could be left out does not stay unnoticed.
"""
import os
import re
import shutil
import subprocess
import sys

WEAKER = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"],
          "seq_cst": ["acq_rel"]}


# Which exploration finds it. A half of an order is named by what is left of it.
CAUGHT = {
    "tables_test": {
        "one_writer_of_a_bare_table_overwrites_and_a_reader_gets_none_that_is_torn":
            "ring.advance:A ring.look:B ring.touch:A",
        "a_consumer_gets_all_that_many_writers_were_not_refused":
            "ring.admit:A ring.consume:A",
        "a_consumer_gets_all_that_one_writer_was_not_refused":
            "ring.admit_alone:A ring.produced:A",
        "writers_that_swap_overwrite_and_a_reader_accounts_for_each_position":
            "ring.hold:B ring.hold:A ring.commit:A ring.leave:A ring.read:A"
            " ring.read:B",
        "one_writer_overwrites_and_a_reader_accounts_for_each_position":
            "ring.hold_alone:A",
        "a_position_is_copied_whole_or_not_at_any_moment":
            "ring.commit_alone:A",
        "a_position_of_a_bare_table_is_copied_whole_or_not_at_any_moment":
            "ring.look:A",
    },
    "marks_test": {
        "a_consumer_that_sleeps_is_woken_by_one_writer":
            "notify.wait:A notify.tell:B notify.tell:C",
        "a_consumer_that_sleeps_is_woken_by_a_writer_that_fences":
            "notify.arm:C notify.pass:A",
        "a_consumer_that_sleeps_is_woken_when_the_oldest_is_too_old_for_writers_that_fence":
            "notify.age:A",
        "who_is_told_sees_all_that_came_before":
            "notify.arm:A notify.wait:C",
    },
    "recorder_life_test": {
        "what_lies_in_a_row_is_copied_whole_if_it_was_looked_at_before":
            "batch.read:B",
        "what_lies_in_a_row_is_copied_whole_or_not_at_all":
            "batch.read:A",
        "the_index_tells_the_time_of_what_it_tells_of":
            "index.write:B",
    },
    "recorder_test": {
        "a_reader_copies_sub_buffers_that_a_thread_overwrites":
            "claim:A",
        "a_session_drains_what_two_threads_write_and_is_told_what_it_missed":
            "drain.free:A",
        "two_threads_claim_fill_and_close_sub_buffers":
            "claim:C|release",
    },
    "sub_buffers_test": {
        "a_sub_buffer_is_copied_whole_at_any_moment":
            "read:A writer.end:A writer.begin:A",
        "a_reader_of_sub_buffers_accounts_for_each_record":
            "read:B read:C writer.commit:A ring.reset:A",
        "a_session_gets_all_that_was_not_refused_where_it_lies":
            "ring.drain:A ring.drained:A",
        "a_consumer_of_sub_buffers_gets_all_that_was_not_refused":
            "ring.consume_all:A ring.newest:A ring.next:A",
        "records_of_the_time_are_published_as_others":
            "writer.note:A",
    },
}
NOT_CAUGHT = {
    # It publishes plain memory, which the model does not see; ThreadSanitizer does.
    "plain": """
    notify.tell:A notify.told:A type.use:A type.use:B type.use:D type.use:E
    type.use:F type.publish:B
    type.publish:A type.enable:A key.make:A
    key.fail:A key.made:A registry.enlist:A registry.enlist:B node.leave:A chunk.use:A
    chunk.add:A family.use:A family.make:A|acquire family.make:A|release type.find:A
    type.add:A node.take:A node.add:A node.gone:A key.use:A key.drop:A key.drop:B
    cptrap.ask:A cptrap.start:A types.enter:A types.leave:A type.find:B type.find:C""",
    # It stands in the machine's own words, or in atomic.hpp, or is the kernel's. Without the
    # barrier of arm:B a fault of mutants.py shows what is lost; commit:A is the compiler's.
    "assembly": """
    notify.arm:B notify.wait:B notify.commit:A
    here.note:A here.record:A here.draw:A here.ready:A
    here.index:A here.written:A here.close:A
    x86.aux.kernel:A x86.aux.kernel:B x86.aux.take:A x86.aux.take2:A x86.aux.consume:B
    x86.perf.kernel:A x86.perf.kernel:B x86.perf.read:A x86.perf.read:B""",
    # No thread of an exploration comes by it: set-up, fork, threads that begin, sessions that end,
    # lanes of processors, DAS in guest memory, and what serves requests from outside.
    "not come by": """
    snapshot.ask:A snapshot.ask:B dictionary.read:B
    crash.set:A|acquire crash.set:A|release crash.clear:A crash.take:A snapshot.serve:A
    snapshot.serve:B here.next:A here.next:B here.next:C here.claim:B|acquire
    here.claim:B|release here.claim:A here.free:A here.release:B
    here.free:B here.release:A layout.check:A session.own:A
    session.return:A session.leave:A layout.publish:A process.enter:B process.leave:A
    process.look:A drain.keep:A copy.begin:A copy.end:A registry.retire:A
    registry.retire:B process.alive:D grow:A registry.visit:A registry.visit:B
    registry.visit:C recorder.take:A recorder.give:A node.give:A node.take:B process.alive:C
    process.alive:A file.read:A file.read:B file.read:C ring.attach:A
    guest.swap:A
    guest.serialize:B ring.session:A setup.fail:A setup.handler:A|acquire
    setup.handler:A|release process.free:A process.look:B process.look:C process.return:A
    process.claim:A process.claim:B dictionary.claim:A dictionary.claim:B dictionary.claim:C
    dictionary.free:A dictionary.read:A dictionary.read:C dictionary.write:B
    mapped.find:A mapped.enter:A mapped.enter:B mapped.leave:A held.look:A here.newest:A
    registry.visit:D set_up:A set_up:B set_up:C open.there:A open.there:B detour.take:A
    detour.return:A place.take:A place.look:A place.free:A place.give_back:A""",
    # Explorations come by it, and none has found it missing so far: to be found, or to be left out.
    "open": """
    ring.filled:A notify.age:B
    drain.look:A drain.rest:A drain.lane:A drain.advance:A drain.lane:B drain.find:A
    drain.hold:A process.alive:B adopt:A|acquire adopt:A|release ring.publish:A ring.session:B""",
    # Not tried with all of recorder_life_test so far (`--matrix`).
    "not tried": """
    grow.use:S grow.use:E clocks.write:A clocks.write:B dictionary.write:A lane.release:B
    lane.release:D lane.fold:A lane.claim:B lane.enter:B lane.enter:A reclaim.find:A
    reclaim.find:B lane.written:B reclaim.close:A reclaim.find:C reclaim.find:D lane.written:C
    reclaim.close:B reclaim.own:A|acquire reclaim.own:A|release reclaim.own:B|acquire
    reclaim.own:B|release process.find:A lane.find:A lane.dead:A process.dead:A reclaim.free:A
    grow.ended:C grow.ended:B grow.end:A lane.look:A clocks.look:A index.look:A chain.look:A
    chain.look:B table.read:A snapshot.copy:A snapshot.mark:A snapshot.mark:B
    grow.use:F lane.written:A lane.newest:A claim:C|acquire
    lane.adopt:A lane.release:C grow.ended:A lane.claim:A claim.next:A lane.release:A
    clocks.last:A clocks.last:B lane.free:A lane.claim:C lane.claim:D lane.again:A""",
    # One place has several labels: the first stands for it.
    "the same place": """
    snapshot.copy:B snapshot.copy:C table.read:B table.read:C table.read:D""",
}


def listed():
    """Each as (name, test, exploration); the latter two are None where it is not caught."""
    for test, explorations in CAUGHT.items():
        for exploration, names in explorations.items():
            for name in names.split():
                yield name.replace("|", " "), test, exploration
    for names in NOT_CAUGHT.values():
        for name in names.split():
            yield name.replace("|", " "), None, None


def unlisted(root):
    """What is in no list or in two, or is listed and no more in the library."""
    known = [name for name, _, _ in listed()]
    there = [name for name, *_ in points(root)]
    return sorted({name for name in known if known.count(name) > 1} | set(known) ^ set(there))


def points(root):
    """Each as (name, header, start, end, what stands there instead); start is None where an order
    is said of what is not C++."""
    top = os.path.join(root, "include", "trace_ring")
    found = {}
    for folder, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            header = os.path.relpath(path, top)
            for match in re.finditer(r"// order: (\S+) pairs with", text):
                yield from weakened(text, header, match, found)


def weakened(text, header, match, found):
    label = match[1]
    at = text.rindex("\n", 0, match.start()) + 1
    if not text[at:match.start()].strip():
        at = text.index("\n", match.start()) + 1
    # Comments, then what the comment is about: five lines at most.
    comment = re.compile(r"\s*//.*\n").match(text, at)
    while comment:
        at = comment.end()
        comment = re.compile(r"\s*//.*\n").match(text, at)
    end = at
    for _ in range(8):
        end = text.find("\n", end) + 1 or len(text)
    code = re.sub(r"//.*|\"(?:\\.|[^\"\\])*\"", lambda m: " " * len(m[0]), text[at:end])
    blank = re.search(r"\n\n|\n}", code)
    if blank:
        code = code[:blank.start()]
    fence = re.match(r"\s*(thread_fence\((\w+)\);)", code)
    order = re.search(r"\b(acquire|release|acq_rel|seq_cst)\b(?=\s*[,)])", code)
    if fence:
        place = (header, at + fence.start(1), at + fence.end(1))
        instead = [("", ";")]
    elif order:
        place = (header, at + order.start(1), at + order.end(1))
        weaker = WEAKER[order[1]]
        instead = [("" if len(weaker) == 1 else " " + each, each) for each in weaker]
        before = code[:order.start(1)]
        if order[1] == "seq_cst":
            instead = [("", "acquire" if before.rstrip().endswith("load(") else
                        "release" if ".store(" in before else "acq_rel")]
    else:
        yield label, header, None, None, None
        return
    if place in found:  # of several labels of one place the first stands for all
        yield label, header, None, None, found[place]
        return
    found[place] = label
    for suffix, each in instead:
        yield label + suffix, header, place[1], place[2], each


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--")
    root, compiler = arguments[0], arguments[split + 1:]
    steps = arguments[2] if "--matrix" in arguments[:split] else None
    if steps is not None:
        return matrix(root, compiler, steps, arguments[3:split])
    return 0


def plant(folder, all_points):
    by_header = {}
    for number, (_, header, start, end, instead) in enumerate(all_points, 1):
        if start is not None:
            by_header.setdefault(header, {}).setdefault((start, end), []).append((number, instead))
    for header, places in by_header.items():
        path = os.path.join(folder, header)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for (start, end), faults in sorted(places.items(), reverse=True):
            old = text[start:end]
            for number, instead in faults:
                old = (f"if (::model::is({number})) {{ }} else {{ {old} }}" if instead == ";" else
                       f"(::model::is({number}) ? {instead} : {old})")
            text = text[:start] + old + text[end:]
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def build(root, compiler, test, all_points):
    folder = os.path.abspath("orders_of_" + test)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(root, "include"), os.path.join(folder, "include"))
    plant(os.path.join(folder, "include", "trace_ring"), all_points)
    program = os.path.join(folder, test)
    subprocess.run([compiler[0], "-O1", "-w", "-I" + os.path.join(folder, "include"), *compiler[1:],
                    "-I" + os.path.join(root, "test"), "-DMODEL_ALONE",
                    "-DTRACE_RING_ATOMICS_HEADER=<model/atomics.hpp>",
                    os.path.join(root, "test", "model", test + ".cpp"), "-o", program], check=True)
    return program


TESTS = ["tables_test", "sub_buffers_test", "marks_test", "recorder_test", "recorder_life_test"]


def matrix(root, compiler, steps, tests):
    all_points = list(points(root))
    places = [p for p in all_points if p[2] is not None]
    print(f"{len(all_points)} labels and halves, {len(places)} places")
    came_by, found_by = {}, {}
    for test in tests or TESTS:
        program = build(root, compiler, test, all_points)
        ran = subprocess.run([program], capture_output=True, text=True, check=False,
                             env={**os.environ, "TRACE_RING_REACHED": "1",
                                  "TRACE_RING_STEPS": "300000"})
        here = {}
        came = r"explored (\w+):[^\n]*\n(?:broken[^\n]*\n[^\n]*\n)?reached([^\n]*)"
        for name, numbers in re.findall(came, ran.stdout):
            for number in map(int, numbers.split()):
                here.setdefault(number, []).append(name)
        for number, scenarios in sorted(here.items()):
            came_by.setdefault(number, []).extend(scenarios)
            if number in found_by:
                continue
            for scenario in scenarios:
                ran = subprocess.run([program, scenario], capture_output=True, text=True,
                                     check=False, env={**os.environ, "TRACE_RING_STEPS": steps,
                                                       "TRACE_RING_MUTANT": str(number)})
                broken = re.search(r"^broken: (.*)$", ran.stdout, re.M)
                if broken and "too narrow" not in broken[1]:
                    found_by[number] = scenario
                    print(f"FOUND {all_points[number - 1][0]!r}: {scenario}  # {broken[1]}",
                          flush=True)
                    break
            else:
                print(f"SURVIVES {all_points[number - 1][0]!r}  ({len(scenarios)} came by)",
                      flush=True)
    for number, point in enumerate(all_points, 1):
        if number not in came_by:
            print(f"NOT REACHED {point[0]!r} {point[1]}" + ("" if point[2] else f" (no place: {point[4]})"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
