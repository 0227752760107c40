// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// The format, byte by byte: every figure of format/README.md, and each field that it leaves out.
/// The assertions hold for 32- and 64-bit programs, which share a file.

#include <cstddef>

#include <trace_ring/format/clocks.hpp>
#include <trace_ring/format/dictionary.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/format/words.hpp>

namespace tr = trace_ring;
namespace layout = trace_ring::layout;

#define AT(type, field, offset) static_assert(offsetof(tr::type, field) == (offset))

// The header, at 0.
static_assert(sizeof(tr::layout::file_header) == 248);
AT(layout::file_header, magic, 0);
AT(layout::file_header, version, 8);
AT(layout::file_header, header_bytes, 12);
AT(layout::file_header, creator_word, 16);
AT(layout::file_header, clock, 20);
AT(layout::file_header, ticks_per_second, 24);
AT(layout::file_header, id, 32);
AT(layout::file_header, created, 48);
AT(layout::file_header, sub_buffer_bytes, 56);
AT(layout::file_header, full, 60);
AT(layout::file_header, sub_buffer_limit, 64);
AT(layout::file_header, file_limit, 72);
AT(layout::file_header, ring_offset, 80);
AT(layout::file_header, clocks_offset, 88);
AT(layout::file_header, clock_stride, 96);
AT(layout::file_header, clock_count, 100);
AT(layout::file_header, processes_offset, 104);
AT(layout::file_header, process_stride, 112);
AT(layout::file_header, process_count, 116);
AT(layout::file_header, gates_offset, 120);
AT(layout::file_header, gate_stride, 128);
AT(layout::file_header, gate_count, 132);
AT(layout::file_header, lanes_offset, 136);
AT(layout::file_header, lane_stride, 144);
AT(layout::file_header, lane_count, 148);
AT(layout::file_header, totals_offset, 152);
AT(layout::file_header, totals_per_lane, 160);
AT(layout::file_header, no_control, 164);
AT(layout::file_header, dictionary_offset, 168);
AT(layout::file_header, dictionary_bytes, 176);
AT(layout::file_header, index_offset, 184);
AT(layout::file_header, index_stride, 192);
AT(layout::file_header, reserved2, 196);
AT(layout::file_header, sub_buffers_offset, 200);
AT(layout::file_header, whole_limit, 208);
AT(layout::file_header, whole_capacity, 216);
AT(layout::file_header, whole_dictionary_bytes, 224);
AT(layout::file_header, whole_process_count, 232);
AT(layout::file_header, whole_gate_count, 236);
AT(layout::file_header, whole_lane_count, 240);
AT(layout::file_header, reserved3, 244);

// The ring state.
static_assert(sizeof(tr::layout::ring_state) == 704);
AT(layout::ring_state, cursor, 0);
AT(layout::ring_state, capacity, 64);
AT(layout::ring_state, growth_ended, 72);
AT(layout::ring_state, held, 128);
AT(layout::ring_state, reclaim_owner, 132);
AT(layout::ring_state, overwritten_records, 136);
AT(layout::ring_state, keep_for, 144);
AT(layout::ring_state, reclaimed, 152);
AT(layout::ring_state, adopted, 160);
AT(layout::ring_state, last_lane, 192);
AT(layout::ring_state, clock_cursor, 196);
AT(layout::ring_state, dictionary_used, 200);
AT(layout::ring_state, refused_without_lane, 208);
AT(layout::ring_state, types_without_room, 216);
AT(layout::ring_state, ended_elsewhere, 224);
AT(layout::ring_state, writers, 228);
AT(layout::ring_state, folded_lanes, 256);
AT(layout::ring_state, folded_written, 264);
AT(layout::ring_state, folded_refused, 272);
AT(layout::ring_state, folded_too_long, 280);
AT(layout::ring_state, folded_nested, 288);
AT(layout::ring_state, folded_abandoned, 296);
AT(layout::ring_state, snapshot_request, 320);
AT(layout::ring_state, snapshot_done, 324);
AT(layout::ring_state, session_owner, 384);
AT(layout::ring_state, sessions, 392);
AT(layout::ring_state, consumed_records, 400);
AT(layout::ring_state, consumed_sub_buffers, 408);
AT(layout::ring_state, told_without_lane, 416);
AT(layout::ring_state, undrained, 448);
AT(layout::ring_state, untold_refused, 456);
AT(layout::ring_state, untold_too_long, 464);
AT(layout::ring_state, untold_nested, 472);
AT(layout::ring_state, untold_abandoned, 480);

// Each ring after the first.
static_assert(sizeof(tr::layout::ring_state::quota) == 64);
AT(layout::ring_state::quota, cursor, 0);
AT(layout::ring_state::quota, sub_buffers, 8);
AT(layout::ring_state::quota, held, 16);
AT(layout::ring_state::quota, writers, 20);
AT(layout::ring_state::quota, adopted, 24);

// A process.
static_assert(sizeof(tr::layout::process_entry) == 128);
AT(layout::process_entry, state, 0);
AT(layout::process_entry, pid, 4);
AT(layout::process_entry, start, 8);
AT(layout::process_entry, root, 16);
AT(layout::process_entry, parent, 20);
AT(layout::process_entry, word, 24);
AT(layout::process_entry, gate_page, 28);
AT(layout::process_entry, attached, 32);
AT(layout::process_entry, departed, 40);
AT(layout::process_entry, name, 48);
AT(layout::process_entry, space, 80);
AT(layout::process_entry, has_lock, 84);
AT(layout::process_entry, image, 88);
AT(layout::process_entry, uses, 96);
AT(layout::process_entry, reserved, 100);
AT(layout::process_entry, recorded_by, 104);
AT(layout::process_entry, reserved2, 112);

// A lane.
static_assert(sizeof(tr::layout::lane_entry) == 192);
AT(layout::lane_entry, number, 0);
AT(layout::lane_entry, state, 4);
AT(layout::lane_entry, process, 8);
AT(layout::lane_entry, thread, 12);
AT(layout::lane_entry, depth, 16);
AT(layout::lane_entry, cpu, 20);
AT(layout::lane_entry, written, 24);
AT(layout::lane_entry, newest, 32);
AT(layout::lane_entry, refused, 40);
AT(layout::lane_entry, too_long, 48);
AT(layout::lane_entry, nested, 56);
AT(layout::lane_entry, abandoned, 64);
AT(layout::lane_entry, began, 72);
AT(layout::lane_entry, ended, 80);
AT(layout::lane_entry, name, 88);
AT(layout::lane_entry, drained, 104);
AT(layout::lane_entry, told_refused, 112);
AT(layout::lane_entry, told_too_long, 120);
AT(layout::lane_entry, told_nested, 124);
AT(layout::lane_entry, writer, 128);
AT(layout::lane_entry, high, 136);
AT(layout::lane_entry, adopted, 140);
AT(layout::lane_entry, ring, 144);
AT(layout::lane_entry, told_abandoned, 148);
AT(layout::lane_entry, overwrote, 152);
AT(layout::lane_entry, reserved, 160);

// An index entry.
static_assert(sizeof(tr::layout::index_entry) == 32);
AT(layout::index_entry, pos, 0);
AT(layout::index_entry, first_time, 8);
AT(layout::index_entry, last_time, 16);
AT(layout::index_entry, lane, 24);
AT(layout::index_entry, closed_at, 28);

// A clock snapshot.
static_assert(sizeof(tr::layout::clock_entry) == 64);
AT(layout::clock_entry, sequence, 0);
AT(layout::clock_entry, ticks, 8);
AT(layout::clock_entry, monotonic, 16);
AT(layout::clock_entry, realtime, 24);
AT(layout::clock_entry, width, 32);
AT(layout::clock_entry, process, 40);
AT(layout::clock_entry, lanes, 44);
AT(layout::clock_entry, cursor, 48);
AT(layout::clock_entry, since, 56);

// The dictionary: an event type,
static_assert(sizeof(tr::layout::type_entry) == 32);
AT(layout::type_entry, magic, 0);
AT(layout::type_entry, bytes, 4);
AT(layout::type_entry, root, 8);
AT(layout::type_entry, id, 12);
AT(layout::type_entry, kind, 14);
AT(layout::type_entry, total, 15);
AT(layout::type_entry, fields, 16);
AT(layout::type_entry, name_bytes, 18);
AT(layout::type_entry, fixed_bytes, 20);
AT(layout::type_entry, flow_fields, 24);

// one of its fields,
static_assert(sizeof(tr::layout::field_entry) == 8);
AT(layout::field_entry, type, 0);
AT(layout::field_entry, form, 1);
AT(layout::field_entry, count, 2);
AT(layout::field_entry, offset, 4);
AT(layout::field_entry, name_bytes, 6);

// and ids of one numbering for types of another.
static_assert(sizeof(tr::layout::alias_entry) == 64);
AT(layout::alias_entry, magic, 0);
AT(layout::alias_entry, bytes, 4);
AT(layout::alias_entry, root, 8);
AT(layout::alias_entry, first_id, 12);
AT(layout::alias_entry, count, 14);
AT(layout::alias_entry, unit, 16);

// A sub-buffer.
static_assert(sizeof(tr::sub_buffer_header) == 64);
AT(sub_buffer_header, magic, 0);
AT(sub_buffer_header, lane, 4);
AT(sub_buffer_header, state, 8);
AT(sub_buffer_header, first_position, 16);
AT(sub_buffer_header, base_time, 24);
AT(sub_buffer_header, previous, 32);
AT(sub_buffer_header, end_time, 40);
AT(sub_buffer_header, commit, 48);
AT(sub_buffer_header, refused, 52);
AT(sub_buffer_header, too_long, 56);
AT(sub_buffer_header, nested, 60);
#undef AT

static_assert(layout::file_magic == 0x474E526563617274);
static_assert(layout::file_version == 2 && layout::oldest_version == 1);
static_assert(layout::format_page_bytes == 4096 && sizeof(layout::gate_page) == 4096);
static_assert(layout::max_event_id == 4095 && layout::max_totals == 64 && layout::max_rings == 4);
static_assert(layout::type_magic == 0x45505954 && layout::alias_magic == 0x41494C41);
static_assert(layout::free_magic == 0x45455246 && layout::dictionary_unit == 64);
static_assert(layout::alias_entry::most == 12 && layout::field_entry::result == 128);
static_assert(layout::span_end_record::bytes == 24 && layout::span_end_record::flags == 12);
static_assert(tr::min_sub_buffer_bytes == 512 && tr::max_sub_buffer_bytes == 32768);
static_assert(tr::sub_buffer_magic == 0x42535254 && tr::commit_word::bias == 0x8008);
static_assert(tr::record_header_bytes == 8 && tr::time_record_bytes == 16);
static_assert(tr::owner_record_bytes == 24 && tr::named_owner_record_bytes == 40);
static_assert(static_cast<unsigned>(tr::sub_buffer_state::free) == 0 &&
              static_cast<unsigned>(tr::sub_buffer_state::reset) == 1 &&
              static_cast<unsigned>(tr::sub_buffer_state::active) == 2 &&
              static_cast<unsigned>(tr::sub_buffer_state::closed) == 3 &&
              static_cast<unsigned>(tr::sub_buffer_state::reading) == 4);
static_assert(tr::record_word::cut == 1 && tr::record_word::interval == 2 &&
              tr::record_word::begin == 4 && tr::record_word::end == 8);
