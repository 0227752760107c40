#!/usr/bin/env python3
# Copyright the trace_ring authors.
# Distributed under the Boost Software License, Version 1.0. See LICENSE.
"""The explorations find planted faults.

    mutants.py ROOT -- COMPILER ARGUMENT...     all of them, in the current folder
    mutants.py ROOT --only NAME -- COMPILER...  those that have NAME in their name, or of this test

Copies ROOT/include, and writes every fault of the lists below into the copy, each beside what it
replaces: `mutant == N ? fault : original`. So each test is compiled once. Then it is run for each
fault, with the exploration that must find it, and must print the property that is broken. A fault
whose place is not in the header exactly once, or whose exploration is not in the test, is an error
that is reported before anything is built.

Beside them the ordering points that orders.py lists as caught are weakened, each in its turn.

A fault is (name, header, place, what stands there instead, exploration, property). In the place the
part that is replaced stands in [[ ]], with enough around it to be found; without them it is the
whole. What ends in ; or begins with while is a statement, all else an expression.
"""
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # next to the sources
import orders  # noqa: E402

SLOTS = "ring/policies/slots.hpp"
TABLE = "ring/table/table.hpp"
READER = "ring/table/reader.hpp"
FRAME = "ring/policies/frame.hpp"
SWAP = "policy/claim/compare_exchange.hpp"
ADD = "policy/claim/fetch_add.hpp"
ONE = "policy/claim/single_writer.hpp"
WORDS = "das/control_words.hpp"
MARKS = "policy/notify/at_watermark.hpp"
LISTENER = "drain/listener.hpp"
SUB = "format/sub_buffer.hpp"
SUBS = "ring/sub_buffers/ring.hpp"
RECORDS = "ring/sub_buffers/record_writer.hpp"
WRITER = "ring/sub_buffers/lane_writer.hpp"
SUB_READER = "ring/sub_buffers/reader.hpp"
DRAIN = "ring/drain.hpp"
WRITE = "recorder/site/hot_path.hpp"
BY_THREAD = "recorder/thread/lanes_by_thread.hpp"
CLAIM = "recorder/lane/lane_sub_buffers.hpp"
NEXT = "recorder/lane/claimer.hpp"
HELD = "recorder/lane/holdings.hpp"
ADOPTION = "recorder/lane/adoption.hpp"
SOURCE = "recorder/drain_source/drain_source.hpp"
LANES = "recorder/lane/lane_book.hpp"
SNAPSHOT = "recorder/snapshot/snapshot_writer.hpp"
STORAGE = "policy/storage/file.hpp"
RINGS = "recorder/file/rings.hpp"
ABANDONED = "recorder/thread/abandoned.hpp"
BATCH = "reduce/cursor/read_ahead.hpp"

swaps = "writers_that_swap_overwrite_and_a_reader_accounts_for_each_position"
adds = "writers_that_add_overwrite_and_a_reader_accounts_for_each_position"
discards = "a_writer_that_discards_leaves_its_position_vacant"
one = "one_writer_overwrites_and_a_reader_accounts_for_each_position"
bare = "one_writer_of_a_bare_table_overwrites_and_a_reader_gets_none_that_is_torn"
many_refused = "a_consumer_gets_all_that_many_writers_were_not_refused"
bare_refused = "a_consumer_of_a_bare_table_gets_all_that_its_writer_was_not_refused"
bare_adds = "writers_of_a_bare_table_that_add_account_for_each_position"
stalled = "a_stalled_writer_that_swapped_costs_the_others_nothing"
lapped = "a_writer_that_is_lapped_twice_by_one_that_swaps_spoils_nothing"
copied = "a_position_is_copied_whole_or_not_at_any_moment"
bare_copied = "a_position_of_a_bare_table_is_copied_whole_or_not_at_any_moment"
grown = "a_consumer_gets_all_from_a_table_that_grows_and_then_refuses"
woken = "a_consumer_that_sleeps_until_it_is_told_is_woken_by_one_writer"
by_address = "writers_by_addresses_get_an_entry_each"

slept = "a_consumer_that_sleeps_is_woken_by_one_writer"
slept_each = "a_consumer_that_sleeps_is_woken_by_each_record"
slept_fenced = "a_consumer_that_sleeps_is_woken_by_a_writer_that_fences"
slept_many = "a_consumer_that_sleeps_is_woken_by_many_writers"
slept_late = "a_consumer_is_woken_by_the_record_that_is_committed_after_later_ones"
overtaken = "a_reader_that_was_overtaken_is_woken"
stalled_open = "a_reader_that_waits_for_a_stalled_writer_is_woken_when_it_is_overtaken"
no_room = "a_reader_of_bytes_is_woken_by_the_writer_that_finds_no_room"
once = "a_crossing_is_told_once_whoever_passes_the_mark"
whose = "a_crossing_is_the_reader_s_or_a_writer_s"

subs = "a_reader_of_sub_buffers_accounts_for_each_record"
times = "a_sub_buffer_is_copied_whole_with_the_records_of_its_time"
sub_copied = "a_sub_buffer_is_copied_whole_at_any_moment"
consumed = "a_consumer_of_sub_buffers_gets_all_that_was_not_refused"
drained = "a_session_gets_all_that_was_not_refused_where_it_lies"
sub_woken = "a_writer_that_waits_for_room_wakes_the_consumer_that_makes_it"

rec_two = "two_threads_claim_fill_and_close_sub_buffers"
rec_read = "a_reader_copies_sub_buffers_that_a_thread_overwrites"
rec_timed = "a_reader_copies_what_is_recorded_with_a_clock"
rec_sessions = "a_session_drains_what_two_threads_write_and_is_told_what_it_missed"
rec_refuse = "a_session_makes_room_in_a_ring_that_refuses"
rec_oldest = "a_released_lane_is_adopted_or_overwritten"
rec_adopt = "a_lane_whose_thread_ends_is_adopted_with_what_it_has_not_filled"

stops = "a_ring_that_stops_has_all_that_came_before"
quotas = "what_is_set_aside_for_some_events_others_do_not_reach"
keeps = "what_is_young_is_kept_and_what_is_old_makes_room"
dies = "a_process_that_dies_at_any_step_loses_one_record_and_holds_nothing"
copies = "a_copy_that_is_made_while_others_record_is_whole"
grows = "two_threads_make_a_ring_grow_that_refuses_then"
handler = "a_reader_sees_nothing_torn_of_a_handler_nor_of_what_it_interrupts"
rows = "what_lies_in_a_row_is_copied_whole_if_it_was_looked_at_before"
index = "the_index_tells_the_time_of_what_it_tells_of"
lap = "a_thread_that_sleeps_a_lap_overwrites_nothing_newer"
left = "a_record_that_is_left_for_another_stack_goes_on_in_its_lane"

TORN = "a torn record was read"
BEHIND = "not ordered behind"
STUCK = "stuck"

# pylint: disable=line-too-long
TABLES = [
    # The slots of tables that are sequenced.
    ("hold: the swap does not acquire", SLOTS, "(seen, next, [[acquire]], relaxed)) continue;\n            if (held)", "relaxed", swaps, BEHIND),
    ("hold: no fence behind the swap", SLOTS, "if (held) return false;\n            // order: ring.hold:A pairs with ring.read:B\n            [[thread_fence(release);]]", ";", swaps, TORN),
    ("hold: a newer holder is not looked for", SLOTS, "if ([[found.pos >= p]]) return false;", "false", swaps, ""),
    ("hold: a writer is not waited out", SLOTS, "word_of(p, [[held ? state::passed : state::writing]])", "state::writing", stalled, ""),
    ("hold: who was passed is thought to be gone", SLOTS, "[[found.state == static_cast<unsigned>(state::passed)]];", "false", lapped, BEHIND),
    ("settle: the record is not released", SLOTS, "publish ? state::committed : state::vacant), [[release]], relaxed)) {", "relaxed", swaps, BEHIND),
    ("settle: who was passed keeps the slot", SLOTS, "[[while (!word_.compare_exchange_weak(seen, word_of(stamped::from(seen).pos, state::vacant),\n                                            release, relaxed)) {\n        }]]", ";", swaps, "a slot is held"),
    ("settle: the slot is handed on without an order", SLOTS, "stamped::from(seen).pos, state::vacant), [[release]], relaxed)", "relaxed", swaps, BEHIND),
    ("hold alone: no fence", SLOTS, "pairs with ring.read:B\n        [[thread_fence(release);]]\n    }\n\n    /// Publishes", ";", one, TORN),
    ("settle alone: the record is not released", SLOTS, "word_.store(word_of(p, publish ? state::committed : state::vacant), [[release]]);", "relaxed", copied, TORN),
    ("read: the sequence is not acquired", SLOTS, "before = word.load([[acquire]]);", "relaxed", swaps, TORN),
    ("read: no fence before the second look", SLOTS, "ring.hold_alone:A\n    [[thread_fence(acquire);]]", ";", swaps, TORN),
    ("read: no second look", SLOTS, "[[word.load(relaxed) == before]] ? found::record", "true", swaps, TORN),
    ("read: what is being written is thought vacant", SLOTS, "if ([[seen.state == static_cast<unsigned>(state::writing)]]) return", "false", swaps, ""),
    # Bare tables.
    ("bare: the cursor is not acquired", TABLE, "const position claimed = line.cursor.load([[acquire]]);", "relaxed", bare_copied, TORN),
    ("bare: no fence before the second look", TABLE, "ring.touch:A\n            [[thread_fence(acquire);]]", ";", bare, ""),
    ("bare: no second look", TABLE, "return [[last - p < frame::lap()]] ?", "true", bare, ""),
    ("bare: the second look is at the cursor", TABLE, "([[claim_policy::many_writers ? line.cursor : line.touched]]).load", "line.cursor", bare, ""),
    ("bare: nobody is told of the slot", TABLE, "[[frame::control().claimed.touched.store(p, relaxed);]]", ";", bare, ""),
    ("bare: no fence behind the telling", TABLE, "ring.look:B\n            [[thread_fence(release);]]", ";", bare, ""),
    ("bare: what is discarded stays", TABLE, "[[if (!publish) erase(slot);]]", ";", bare_adds, ""),
    ("settle: a discarded position is not counted", TABLE, "if constexpr (claim_policy::many_writers) [[frame::count_vacant();]]", ";", discards, "vacant"),
    ("hold: a position passed over is not counted", TABLE, "return true;\n            [[frame::count_vacant();]]", ";", swaps, "vacant"),
    # Claims.
    ("one writer: the cursor is not released", ONE, "shared.cursor.store(taken.pos, [[release]]);", "relaxed", bare, ""),
    ("swap: room is not asked for", SWAP, "if ([[!table.admits(p)]]) return {};", "false", many_refused, ""),
    ("swap: the cursor is stored", SWAP, "if ([[!shared.cursor.compare_exchange_weak(last, p, relaxed)]]) continue;", "(shared.cursor.store(p, relaxed), false)", swaps, ""),
    ("add: in two steps", ADD, "const position p = [[shared.cursor.fetch_add(1, relaxed)]] + 1;", "[&] { const position n = shared.cursor.load(relaxed); shared.cursor.store(n + 1, relaxed); return n; }()", adds, ""),
    ("control words: in two steps", WORDS, "if ([[shared.own[0].compare_exchange_weak(found, next.current, relaxed)]])", "(shared.own[0].store(next.current, relaxed), true)", by_address, ""),
    # Room.
    ("room: what was consumed is not acquired", FRAME, "return within(p, control().consumed.load([[acquire]]), slot_count);", "relaxed", many_refused, BEHIND),
    ("room: what was consumed is not acquired, by one", FRAME, "consumed_seen_ = control().consumed.load([[acquire]]);", "relaxed", bare_refused, BEHIND),
    ("room: one too many", FRAME, "return [[static_cast<std::int64_t>(p - consumed) <= static_cast<std::int64_t>(slot_count)]];", "p <= consumed + slot_count + 1", bare_refused, ""),
    ("room: it is not looked for again", FRAME, "[[if (fits(p)) return true;]]\n            static_cast<void>(tell_of_full(p));", ";", woken, "refused though"),
    ("consumer: what it read is not released", READER, "consumed.store(told_, [[release]]);", "relaxed", bare_refused, BEHIND),
    ("consumer: one too many is given back", READER, "told_ = [[base::next_ - 1]];\n        // order", "base::next_", many_refused, ""),
    ("consumer: nothing is given back", READER, "[[writable_->control().consumed.store(told_, release);]]", ";", woken, "refused though"),
    ("reader: slots wrap while more may come", FRAME, "return [[(extent & 1U) != 0 ? extent >> 1 : ~std::uint64_t{0}]];", "extent >> 1", grown, "not refused"),
    ("reader: a gap is one short", READER, "return base::missed(from, [[first - from]], loss_cause::overwritten);", "first - from - 1", swaps, "not all that there were"),
    ("reader: vacant positions are not counted", READER, "case table_slots::found::vacant:\n                    [[++base::vacant_;]]\n                    ++next_;", ";", discards, "not all that there were"),
]
SUB_BUFFERS = [
    ("copy: the state is not acquired", SUB, "const auto before = stamped::from(header.state.load([[acquire]]));", "relaxed", sub_copied, ""),
    ("copy: the commit word is not acquired", SUB, "const std::uint32_t commit = header.commit.load([[acquire]]);", "relaxed", subs, ""),
    ("copy: no fence before the second look", SUB, "here.claim:A\n    [[thread_fence(acquire);]]", ";", subs, ""),
    ("copy: no second look", SUB, "if ([[after.pos != before.pos || after.state == static_cast<unsigned>(sub_buffer_state::reset)]]) {", "false", subs, ""),
    ("copy: one record more than is committed", SUB, "        bytes = [[commit_word::offset(commit)]];\n    }", "commit_word::offset(commit) + 208 <= 512 ? commit_word::offset(commit) + 208 : 512", subs, ""),
    ("record: it is not released", RECORDS, "sub.commit.store(word + commit_word::one_record + bytes, [[release]]);", "relaxed", subs, ""),
    ("time: it is not released", WRITER, "sub.commit.store(word + bytes, [[release]]);", "relaxed", times, ""),
    ("next: nobody is told that it is reset", SUBS, "[[sub.state.store(state_word(p, sub_buffer_state::reset), relaxed);]]", ";", subs, ""),
    ("next: no fence behind the reset", SUBS, "read:C, ring.filled:A\n        [[thread_fence(release);]]", ";", subs, ""),
    ("next: it is not released", WRITER, "sub.state.store(state_word(with.at, sub_buffer_state::active), [[release]]);", "relaxed", sub_copied, ""),
    ("next: the one before is not released", WRITER, "sub.state.store(state_word(at, sub_buffer_state::closed), [[release]]);", "relaxed", drained, "not all known"),
    ("next: the cursor is not released", SUBS, "cursor.store(p, [[release]]);", "relaxed", drained, ""),
    ("next: what is overwritten is not counted", SUBS, "if ([[old != no_position && old > frame::control().consumed.load(relaxed)]]) {", "false", subs, "not all that were written"),
    ("next: room is not asked for", SUBS, "if ([[!frame::admits(p)]]) return false;", "false", consumed, ""),
    ("next: what was refused is told twice", SUBS, "[[std::exchange(refused_, 0U)]]", "refused_", consumed, "told"),
    ("next: records are counted from the sub-buffer's own", SUBS, "[[written_ += commit_word::records(sub_->commit.load(relaxed));]]", ";", subs, ""),
    ("consumer: what it read is not released", SUB_READER, "consumed.store(base::finished(), [[release]]);", "relaxed", consumed, BEHIND),
    ("consumer: one too many is given back", SUB_READER, "consumed.store([[base::finished()]], release);", "base::finished() + 1", consumed, ""),
    ("consumer: nothing is given back", SUB_READER, "[[writable_->control().consumed.store(base::finished(), release);]]", ";", sub_woken, "refused though"),
    ("reader: complete before it was closed", SUB_READER, "[[sub_ < newest]];", "true", subs, ""),
    ("session: the state is not acquired", DRAIN, "const auto state = stamped::from(sub.state.load([[acquire]]));", "relaxed", drained, "not all known"),
    ("session: what is active is taken", DRAIN, "if ([[state.pos == next_ && state.state == active]]) {", "false", drained, ""),
    ("session: what it held is not released", DRAIN, "c.consumed.store(held_.front().at, [[release]]);", "relaxed", drained, BEHIND),
    ("session: given back out of order", DRAIN, "while ([[!held_.empty() && held_.front().consumed]]) {", "!held_.empty()", drained, ""),
]
# Watermarks.
MARKED = [
    ("arm: no barrier", MARKS, "if ([[!barrier_for_all(across_)]]) return arm_fenced(shared, look);", "false", slept, STUCK),
    ("arm: no look behind the barrier", MARKS, "if ([[!is_reached(to, now)]]) return true;", "true", slept, STUCK),
    ("arm: the look is before the barrier", MARKS, "[[now = look();]]\n            if (!is_reached", ";", slept, STUCK),
    ("arm: no fence where writers fence", MARKS, "notify.age:A\n                [[thread_fence(seq_cst);]]", ";", slept_fenced, STUCK),
    ("pass: no fence where the reader has no barrier", MARKS, "pairs with notify.arm:C, notify.wait:C\n        [[thread_fence(seq_cst);]]", ";", slept_fenced, STUCK),
    ("pass: the swap is a store", MARKS, "behind the next\n            if ([[!word.compare_exchange_weak(now, disarmed, relaxed)]]) continue;", "(word.store(disarmed, relaxed), false)", once, "told twice"),
    ("pass: one too late", MARKS, "if ([[crossing(Mark.counted(at)) >= now]])", "Mark.counted(at) << 1 >= now", slept, STUCK),
    ("pass: the first mark is not set", MARKS, "if (now == unset) {\n                const std::uint64_t to = [[first(0, at)]];", "never", once, "nobody told"),
    ("pass: a record that is late is told to nobody", MARKS, "return [[exactly(now) == to]] || now >=", "false", slept_late, STUCK),
    ("pass: what was overtaken is told to nobody", MARKS, "return exactly(now) == to || [[now >= (to >> 1) + Mark.most(at)]];", "false", stalled_open, STUCK),
    ("pass: a position passed over is told to nobody", TABLE, "frame::count_vacant();\n            [[tell(p);]]", ";", overtaken, STUCK),
    ("arm: an open record is not waited for", MARKS, "return crossing(at) >= to ? [[exactly(until)]] : to;", "crossing(at + 1)", slept_late, STUCK),
    ("full: nobody is told", FRAME, "if (fits(p)) return true;\n            [[static_cast<void>(tell_of_full(p));]]", ";", no_room, "refused though"),
    ("tell: no fence before the waiters are looked at", MARKS, "notify.wait:B, notify.arm:A\n        [[thread_fence(seq_cst);]]", ";", slept_fenced, STUCK),
    ("tell: nobody is woken", MARKS, "[[wake_all_on(shared.word, across_);]]", ";", slept, STUCK),
    ("tell: the word stays", MARKS, "[[shared.word.fetch_add(1, release);]]", ";", slept, STUCK),
    ("tell: the word changes before the mark", MARKS, "[[shared.word.fetch_add(1, release);]]", "shared.word.fetch_add(1, relaxed);", slept, ""),
    ("wait: the mark is looked at before the word", LISTENER, "if ([[told]]) break;", "false", slept_each, STUCK),
    ("disarm: the swap is a store", MARKS, "return [[word_of(shared).exchange(disarmed, relaxed) != disarmed]];", "[&] { const bool was = word_of(shared).load(relaxed) != disarmed; word_of(shared).store(disarmed, relaxed); return was; }()", whose, "told twice"),
]

RECORDER = [
    # Claiming and closing.
    ("record: it is not released", RECORDS, "sub.commit.store(word + commit_word::one_record + bytes, [[release]]);", "relaxed", rec_read, ""),
    ("claim: no fence behind the swap", CLAIM, "file.read:C, chain.look:B, index.look:A\n    [[thread_fence(release);]]", ";", rec_read, ""),
    ("claim: the swap does not acquire", CLAIM, "state_word(drawn.pos, sub_buffer_state::reset),\n                                           [[acq_rel]])", "release", rec_two, BEHIND),
    ("claim: the swap is a store", CLAIM, "if ([[!sub.state.compare_exchange_strong(word, state_word(drawn.pos, sub_buffer_state::reset),\n                                           acq_rel)]]) {", "(sub.state.store(state_word(drawn.pos, sub_buffer_state::reset), acq_rel), false)", rec_sessions, ""),
    ("claim: what is held is taken", CLAIM, "if ([[old.state != static_cast<unsigned>(sub_buffer_state::free) &&\n        old.state != static_cast<unsigned>(sub_buffer_state::closed)]]) {", "false", rec_sessions, ""),
    ("claim: what is overwritten is not counted", CLAIM, "[[overwrote.store(before + commit_word::records(sub.commit.load(relaxed)), relaxed);]]", ";", rec_two, "not all that were written"),
    ("claim: what was refused is not counted", BY_THREAD, "[[lane.entry.load(relaxed)->refused.fetch_add(1, relaxed);]]\n            lane.refused", ";", rec_refuse, "refused"),
    ("close: it is not released", WRITER, "sub.state.store(state_word(at, sub_buffer_state::closed), [[release]]);", "relaxed", rec_sessions, ""),
    ("close: before the last record counts", CLAIM, "[[entry.written.store(sub.first_position.load(relaxed) + records, release);]]", ";", rec_two, ""),
    ("unread: what is closed is free", NEXT, "usable = [[found.state == static_cast<unsigned>(sub_buffer_state::free)]] ||", "true", rec_refuse, ""),
    ("held: counted in two steps", HELD, "[[of.held->compare_exchange_weak(held, held + 1, relaxed)]]", "(of.held->store(held + 1, relaxed), true)", rec_adopt, ""),
    ("held: not counted back", HELD, "[[of.held->fetch_sub(1, relaxed);]]", ";", rec_two, "counted as held"),
    # Sessions.
    ("session: it does not mark what it reads", SOURCE, "return [[trace_.sub_buffer(what.slot).state.compare_exchange_strong(\n            word, stamped{what.pos, number(sub_buffer_state::reading)}.word(), acquire)]];", "trace_.sub_buffer(what.slot).state.load(acquire) == word", rec_sessions, ""),
    ("session: what it read is not released", SOURCE, ".state.store(stamped{what.at(), number(sub_buffer_state::free)}.word(), [[release]]);", "relaxed", rec_refuse, BEHIND),
    ("session: what it read stays closed", SOURCE, ".state.store([[stamped{what.at(), number(sub_buffer_state::free)}.word()]], release);", "stamped{what.at(), number(sub_buffer_state::closed)}.word()", rec_sessions, ""),
    # Adoption.
    ("adopt: the swap is a store", ADOPTION, "if ([[!sub.state.compare_exchange_strong(closed, state_word(at, sub_buffer_state::active),\n                                           acq_rel)]]) {", "(sub.state.store(state_word(at, sub_buffer_state::active), acq_rel), false)", rec_oldest, ""),
]

LIFE = [
    ("grow: the ring is thought to be full", NEXT, "if (slot >= of.first && [[can_grow(of)]] &&", "false", grows, "as it may"),
    ("stop: gates stay open", NEXT, "if (full_ == full_mode::stop) [[shut_gates();]]", ";", stops, "a gate is open"),
    ("keep: what is young is thought old", NEXT, "return [[memory_.now() < old_at(closed)]];", "false", keeps, "kept was overwritten"),
    ("quota: events go with the others", RINGS, "return [[wanted <= last_ ? wanted : 0]];", "0", quotas, "a flood of others"),
    ("death: what was committed is not counted", LANES, "[[entry.written.store(sub.first_position.load(relaxed) + records, release);]]\n    } else", ";", dies, "lanes do not count"),
    ("death: what is held stays so", LANES, "[[sub.state.store(state_word(at, now), release);]]", ";", dies, "held"),
    ("death: what is reset stays so", LANES, "now = sub_buffer_state::free;\n        [[sub.commit.store(commit_word::empty, relaxed);]]", "return now;", dies, "held"),
    ("death: a claim is not told of first", CLAIM, "[[lane.entry.load(relaxed)->newest.store(drawn.pos, release);]]", ";", dies, "held"),
    ("handler: the lane is not marked", WRITE, "idle = [[set_mark(mark.value)]];", "mark.value.load(relaxed)", handler, ""),
    ("stacks: a record on another stack is abandoned", ABANDONED, "return [[own.has(frame) && own.has(here)]];", "true", left, ""),
    ("batch: no second look at the state", BATCH, "return [[now.pos == what.pos && now.state != static_cast<unsigned>(sub_buffer_state::reset)]];", "true", rows, ""),
    ("batch: no look at the cursors", BATCH, "if ([[newest - what.pos < in.plan().sub_buffer_limit && newest >= what.pos]]) return true;", "true", rows, ""),
    ("claim: who slept a lap is not refused", CLAIM, "if ([[old.pos >= drawn.pos]]) return nullptr;", "false", lap, "what is newer"),
    ("index: the position before its times", CLAIM, "[[index.first_time.store(now, relaxed);]]", "index.pos.store(at, relaxed); index.first_time.store(now, relaxed);", index, "another's time"),
    ("index: the position stays while it is written", CLAIM, "[[index.pos.store(0, relaxed);]]", ";", index, "another's time"),
    ("index: the time of the close is left out", CLAIM, "[[index.last_time.store(now, relaxed);]]\n        lane_writer::end", ";", index, "when it was closed"),
    ("keep: the time of the close is left out", CLAIM, "[[index.last_time.store(now, relaxed);]]\n        lane_writer", ";", keeps, "kept was overwritten"),
    ("close: the lane keeps its sub-buffer", CLAIM, "[[lane.sub.store(&nowhere, relaxed);]]\n        close(", ";", stops, "counted as held"),
    ("snapshot: a call that was interrupted is an error", STORAGE, "if (result >= 0 || [[errno != EINTR]]) return result;", "true", copies, "not written"),
    ("snapshot: the number of records is a later one", SNAPSHOT, "[[words[6] = (words[6] & ~std::uint64_t{0xFFFFFFFF}) |\n                       commit_word::pack(taken.records, taken.bytes);]]", ";", copies, ""),
]


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--")
    root, compiler = arguments[0], arguments[split + 1:]
    only = arguments[2] if "--only" in arguments[:split] else None
    began = time.monotonic()
    tests = {"tables_test": TABLES, "sub_buffers_test": SUB_BUFFERS, "marks_test": MARKED, "recorder_test": RECORDER,
             "recorder_life_test": LIFE}
    checks = sum(len(mutants) for mutants in tests.values())
    for test, mutants in tests.items():
        tests[test] = mutants + [(f"order {name}", place[1], place[2:], place[4], exploration, "")
                                 for name, where, exploration in orders.listed() if where == test
                                 for place in orders.points(root) if place[0] == name]
    wrong = [f"NOT LISTED, or no more there: the order {name}" for name in orders.unlisted(root)]
    for test, mutants in tests.items():
        wrong += find_places(root, test, mutants)[1]
    if wrong:
        print("\n".join(wrong))
        return 1
    planted = failures = 0
    for test, mutants in tests.items():
        chosen = {number for number, mutant in enumerate(mutants, 1)
                  if only is None or only in mutant[0] or only == test}
        planted += len(chosen)
        if chosen:
            failures += explore(root, compiler, test, mutants, chosen)
    print(f"{planted} faults planted, {failures} not found, "
          f"{time.monotonic() - began:.0f} s")
    if planted == 0:
        print(f"no fault has {only} in its name")
        return 1
    if not failures and only is None:
        print(f"proof: checks: {checks} planted faults found")
    return 1 if failures else 0


def explore(root, compiler, test, mutants, chosen):
    folder = os.path.abspath(test)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(root, "include"), os.path.join(folder, "include"))
    plant(os.path.join(folder, "include", "trace_ring"), find_places(root, test, mutants)[0])
    program = os.path.join(folder, test)
    # Ahead of the headers that the command line names.
    subprocess.run([compiler[0], "-O1", "-w", "-I" + os.path.join(folder, "include"), *compiler[1:],
                    "-I" + os.path.join(root, "test"), "-DMODEL_ALONE",
                    "-DTRACE_RING_ATOMICS_HEADER=<model/atomics.hpp>",
                    os.path.join(root, "test", "model", test + ".cpp"), "-o", program], check=True)
    failures = 0
    for number, (name, header, _, _, exploration, wanted) in enumerate(mutants, 1):
        if number not in chosen:
            continue
        began = time.monotonic()
        ran = subprocess.run([program, exploration], capture_output=True, text=True, check=False,
                             env={**os.environ, "TRACE_RING_MUTANT": str(number)})
        broken = re.search(r"^broken: (.*)$", ran.stdout, re.M)
        runs = re.search(r": (\d+) interleavings", ran.stdout)
        found = broken is not None and wanted in broken[1]
        said = broken[1] if broken else f"nothing (exit {ran.returncode}): {ran.stdout.strip()}"
        print(f"{'found' if found else 'NOT FOUND'}: {header}: {name}\n    {said}"
              f"; after {runs[1] if runs else '?'} interleavings, {time.monotonic() - began:.1f} s",
              flush=True)
        failures += 0 if found else 1
    return failures


def find_places(root, test, mutants):
    """Of each header the places as (start, end, number, what stands there instead); and what is
    wrong with the list."""
    with open(os.path.join(root, "test", "model", test + ".cpp"), encoding="utf-8") as file:
        explorations = file.read()
    wrong = []
    places = {}
    for number, (name, header, context, instead, exploration, _) in enumerate(mutants, 1):
        if not re.search(rf"\b{exploration}\b", explorations):
            wrong.append(f"NO EXPLORATION: {test}: {name}: {exploration}")
        if not isinstance(context, str):  # a place as orders.points says it
            places.setdefault(header, []).append((*context[:2], number, instead))
            continue
        path = os.path.join(root, "include", "trace_ring", header)
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        before, marked, rest = context.partition("[[")
        if marked and "]]" in rest:
            old, _, after = rest.rpartition("]]")
        else:
            before, old, after = "", context, ""
        # However it is broken into lines.
        pattern = "".join("(" + re.sub(r"(?:\\\s)+", r"\\s+", re.escape(part)) + ")"
                          for part in (before, old, after))
        found = list(re.finditer(pattern, text))
        if len(found) == 1:
            places.setdefault(header, []).append((*found[0].span(2), number, instead))
        else:
            wrong.append(f"NOT PLANTED: {header}: {name}: its place is there {len(found)} times")
    return places, wrong


def plant(folder, places):
    """Writes all of them into the headers."""
    for header, planted in places.items():
        path = os.path.join(folder, header)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        # What stands around a place, at each offset; a place may lie in another.
        before, behind = {}, {}
        for start, end, number, instead in sorted(planted, key=lambda p: (p[0], -p[1])):
            is_it = f"::model::is({number})"
            if re.search(r";$|^while", text[start:end]):
                opening, closing = f"if ({is_it}) {{ {instead} }} else {{ ", " }"
            else:
                opening, closing = f"({is_it} ? ({instead}) : (", "))"
            before[start] = before.get(start, "") + opening
            behind[end] = closing + behind.get(end, "")
        with open(path, "w", encoding="utf-8") as file:
            for at in range(len(text) + 1):
                file.write(behind.get(at, "") + before.get(at, "") + text[at:at + 1])


if __name__ == "__main__":
    sys.exit(main())
