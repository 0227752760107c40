// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Makes trace files without a recorder: a second implementation of the format, word by word, from
/// the layout's offsets alone. What it makes is sound unless a test then makes it otherwise.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/format/lay_out.hpp>
#include <trace_ring/format/sub_buffer.hpp>
#include <trace_ring/record/field.hpp>

namespace trace_ring_test {

namespace layout = trace_ring::layout;
using trace_ring::event_kind;
using trace_ring::field_form;
using trace_ring::field_type;

struct field_spec {
    std::string name;
    field_type type = field_type::u64;
    field_form form = field_form::scalar;
    std::uint16_t count = 1;
    std::uint16_t offset = 0;  // set by the builder
    bool flow = false;
    std::vector<std::pair<std::uint64_t, std::string>> names{};  // of values
};

struct event_spec {
    std::uint16_t id = 0;
    std::string name;
    std::vector<field_spec> fields;
    event_kind kind = event_kind::instant;
    std::uint32_t root = 0;
    std::uint8_t total = 0;         // column + 1
    std::uint32_t fixed_bytes = 0;  // set by the builder
};

/// The elements of one field, each as its bits; of characters, one each.
struct value_spec {
    std::vector<std::uint64_t> elements;
    bool cut = false;

    value_spec(std::uint64_t bits) : elements{bits} {}  // implicit: terse tests
    value_spec(int bits) : elements{static_cast<std::uint64_t>(bits)} {}
    value_spec(double number) : elements{std::bit_cast<std::uint64_t>(number)} {}
    value_spec(float number) : elements{std::bit_cast<std::uint32_t>(number)} {}
    value_spec(std::string_view text, bool was_cut = false) : cut(was_cut) {
        for (const char c : text) elements.push_back(static_cast<unsigned char>(c));
    }
    value_spec(const char* text) : value_spec(std::string_view(text)) {}
    value_spec(std::vector<std::uint64_t> bits) : elements(std::move(bits)) {}
};

/// Lays an event's values out as record/field.hpp says.
[[nodiscard]] inline std::vector<std::uint64_t> pack(const event_spec& event,
                                                     const std::vector<value_spec>& values) {
    std::string bytes(event.fixed_bytes, '\0');
    const auto put = [&bytes](std::size_t at, std::uint64_t value, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (i * 8));
    };
    for (std::size_t i = 0; i < event.fields.size(); ++i) {
        const auto& field = event.fields[i];
        const auto& value = values.at(i);
        const std::size_t size = trace_ring::size_of(field.type);
        std::size_t at = field.offset;
        if (field.form == field_form::variable) {
            at = bytes.size();
            put(field.offset, (value.elements.size() * size) | (value.cut ? 0x8000U : 0U), 2);
            bytes.resize((at + value.elements.size() * size + 7) / 8 * 8);
        }
        for (const auto element : value.elements) {
            put(at, element, size);
            at += size;
        }
    }
    std::vector<std::uint64_t> words(bytes.size() / 8);
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

class file_builder {
public:
    struct sizes {
        std::uint32_t sub_buffer_bytes = 512;
        std::uint64_t sub_buffers = 16;
        std::uint32_t clocks = 4;
        std::uint32_t processes = 4;
        std::uint32_t gates = 1;
        std::uint32_t lanes = 8;
        std::uint32_t totals = 2;
        std::uint64_t dictionary = 4096;
    };

    file_builder() : file_builder(sizes{}) {}
    explicit file_builder(const sizes& wanted) {
        layout::plan p;
        p.sub_buffer_bytes = wanted.sub_buffer_bytes;
        p.sub_buffer_limit = wanted.sub_buffers;
        p.clock_count = wanted.clocks;
        p.process_count = wanted.processes;
        p.gate_count = wanted.gates;
        p.lane_count = wanted.lanes;
        p.totals_per_lane = wanted.totals;
        p.dictionary_bytes = wanted.dictionary;
        plan_ = layout::lay_out(p);
        words_.assign(static_cast<std::size_t>(plan_.file_limit / 8), 0);
        using h = layout::file_header;
        put(offsetof(h, magic), 0x474E526563617274ULL, 8);
        put(offsetof(h, version), 2, 4);
        put(offsetof(h, header_bytes), 4096, 4);
        put(offsetof(h, creator_word), 8, 4);
        put(offsetof(h, clock), 2, 4);
        put(offsetof(h, ticks_per_second), 1'000'000'000, 8);
        put(offsetof(h, created), 1'700'000'000'000'000'000, 8);
        put(offsetof(h, sub_buffer_bytes), plan_.sub_buffer_bytes, 4);
        put(offsetof(h, sub_buffer_limit), plan_.sub_buffer_limit, 8);
        put(offsetof(h, file_limit), plan_.file_limit, 8);
        put(offsetof(h, ring_offset), plan_.ring, 8);
        put(offsetof(h, clocks_offset), plan_.clocks, 8);
        put(offsetof(h, clock_stride), 64, 4);
        put(offsetof(h, clock_count), plan_.clock_count, 4);
        put(offsetof(h, processes_offset), plan_.processes, 8);
        put(offsetof(h, process_stride), 128, 4);
        put(offsetof(h, process_count), plan_.process_count, 4);
        put(offsetof(h, gates_offset), plan_.gates, 8);
        put(offsetof(h, gate_stride), 4096, 4);
        put(offsetof(h, gate_count), plan_.gate_count, 4);
        put(offsetof(h, lanes_offset), plan_.lanes, 8);
        put(offsetof(h, lane_stride), 192, 4);
        put(offsetof(h, lane_count), plan_.lane_count, 4);
        put(offsetof(h, totals_offset), plan_.totals, 8);
        put(offsetof(h, totals_per_lane), plan_.totals_per_lane, 4);
        put(offsetof(h, dictionary_offset), plan_.dictionary, 8);
        put(offsetof(h, dictionary_bytes), plan_.dictionary_bytes, 8);
        put(offsetof(h, index_offset), plan_.index, 8);
        put(offsetof(h, index_stride), 32, 4);
        put(offsetof(h, sub_buffers_offset), plan_.sub_buffers, 8);
        put(plan_.ring + offsetof(layout::ring_state, capacity), plan_.sub_buffer_limit, 8);
    }

    [[nodiscard]] const layout::plan& plan() const { return plan_; }
    [[nodiscard]] std::span<const std::byte> bytes() const {
        return std::as_bytes(std::span(words_));
    }
    [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
    void save(const std::string& path, std::size_t length = ~std::size_t{0}) const {
        std::ofstream out(path, std::ios::binary | std::ios::trunc);
        const auto all = bytes();
        out.write(reinterpret_cast<const char*>(all.data()),
                  static_cast<std::streamsize>(std::min(length, all.size())));
        if (!out.flush()) throw std::runtime_error("cannot write " + path);
    }

    void put(std::uint64_t at, std::uint64_t value, std::size_t size) {
        std::memcpy(bytes().data() + at, &value, size);  // little-endian, as the library's machines
    }
    [[nodiscard]] std::uint64_t get(std::uint64_t at, std::size_t size) const {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes().data() + at, size);
        return value;
    }
    void put_text(std::uint64_t at, std::string_view text) {
        std::memcpy(bytes().data() + at, text.data(), text.size());
    }

    void clock_reading(std::uint64_t ticks, std::uint64_t monotonic, std::uint64_t realtime,
                       std::uint64_t width = 0) {
        const std::uint64_t at = plan_.clocks + clocks_ * 64;
        put(at, ++clocks_, 8);
        put(at + 8, ticks, 8);
        put(at + 16, monotonic, 8);
        put(at + 24, realtime, 8);
        put(at + 32, width, 8);
        put(at + 44, lanes_ + 1, 4);
        put(at + 48, cursor_, 8);
    }

    /// Returns the slot.
    std::uint32_t process(std::uint32_t pid, std::string_view name = "demo",
                          layout::presence state = layout::presence::departed) {
        const std::uint32_t slot = processes_++;
        const std::uint64_t at = plan_.processes + slot * 128;
        put(at, static_cast<std::uint32_t>(state), 4);
        put(at + 4, pid, 4);
        put(at + 16, slot, 4);
        put(at + 24, 8, 4);
        put_text(at + 48, name);
        return slot;
    }

    /// Completes `event` and enters it. The result stays where it is.
    const event_spec& event(event_spec event) {
        std::size_t at = 0;
        for (auto& field : event.fields) {
            const std::size_t size = trace_ring::size_of(field.type);
            const bool variable = field.form == field_form::variable;
            const std::size_t unit = variable ? 2 : size;
            at = (at + unit - 1) / unit * unit;
            field.offset = static_cast<std::uint16_t>(at);
            at += variable ? 2 : size * field.count;
        }
        event.fixed_bytes = static_cast<std::uint32_t>((at + 7) / 8 * 8);
        std::uint64_t bytes = 32 + event.fields.size() * 8 + event.name.size();
        for (const auto& field : event.fields) bytes += field.name.size();
        const std::uint64_t names_at = (bytes + 7) / 8 * 8;
        const std::string names = names_of_values(event);
        if (!names.empty()) bytes = names_at + names.size();
        bytes = (bytes + 63) / 64 * 64;
        const std::uint64_t entry = plan_.dictionary + dictionary_used_;
        dictionary_used_ += bytes;
        put(plan_.ring + offsetof(layout::ring_state, dictionary_used), dictionary_used_, 8);
        put(entry, 0x45505954, 4);
        put(entry + 4, bytes, 4);
        put(entry + 8, event.root, 4);
        put(entry + 12, event.id, 2);
        put(entry + 14, static_cast<std::uint8_t>(event.kind), 1);
        put(entry + 15, event.total, 1);
        put(entry + 16, event.fields.size(), 2);
        put(entry + 18, event.name.size(), 2);
        put(entry + 20, event.fixed_bytes, 4);
        std::uint64_t flows = 0;
        for (std::size_t i = 0; i < event.fields.size(); ++i) {
            if (event.fields[i].flow) flows |= std::uint64_t{1} << i;
        }
        put(entry + 24, flows, 8);
        std::uint64_t text = entry + 32 + event.fields.size() * 8;
        put_text(text, event.name);
        text += event.name.size();
        std::uint64_t row = entry + 32;
        for (const auto& field : event.fields) {
            put(row, static_cast<std::uint8_t>(field.type), 1);
            put(row + 1, static_cast<std::uint8_t>(field.form), 1);
            put(row + 2, field.count, 2);
            put(row + 4, field.offset, 2);
            put(row + 6, field.name.size(), 2);
            put_text(text, field.name);
            text += field.name.size();
            row += 8;
        }
        put_text(entry + names_at, names);
        return events_.emplace_back(std::move(event));
    }
    [[nodiscard]] const std::deque<event_spec>& events() const { return events_; }

    /// Returns the lane's number.
    std::uint32_t lane(std::uint32_t process, std::uint32_t thread,
                       std::string_view name = "worker", std::uint32_t depth = 0) {
        const std::uint64_t at = lane_at(++lanes_);
        put(at, lanes_, 4);
        put(at + 4, 1, 4);
        put(at + 8, process, 4);
        put(at + 12, thread, 4);
        put(at + 16, depth, 4);
        put_text(at + 88, name);
        put(plan_.ring + offsetof(layout::ring_state, last_lane), lanes_, 4);
        return lanes_;
    }
    [[nodiscard]] std::uint64_t lane_at(std::uint32_t number) const {
        return plan_.lanes + (number - 1) * sizeof(layout::lane_entry);
    }
    void lane_counts(std::uint32_t number, std::uint64_t refused, std::uint64_t too_long,
                     std::uint64_t nested, std::uint64_t abandoned) {
        put(lane_at(number) + 40, refused, 8);
        put(lane_at(number) + 48, too_long, 8);
        put(lane_at(number) + 56, nested, 8);
        put(lane_at(number) + 64, abandoned, 8);
    }
    /// Records that found no lane, and the most writers there were then.
    void without_lane(std::uint64_t records, std::uint32_t writers) {
        put(plan_.ring + offsetof(layout::ring_state, refused_without_lane), records, 8);
        put(plan_.ring + offsetof(layout::ring_state, writers), writers, 4);
    }
    /// The lane's records in closed sub-buffers, and its newest sub-buffer.
    void lane_end(std::uint32_t number, std::uint64_t written, std::uint64_t newest) {
        put(lane_at(number) + 24, written, 8);
        put(lane_at(number) + 32, newest, 8);
    }

    [[nodiscard]] std::uint64_t slot_at(std::uint64_t position) const {
        return plan_.bytes_for((position - 1) % plan_.sub_buffer_limit);
    }
    [[nodiscard]] std::uint64_t index_at(std::uint64_t position) const {
        return plan_.index + (position - 1) % plan_.sub_buffer_limit * 32;
    }

    /// Opens the next sub-buffer (or the one at `position`) for the lane, whose last one, if it is
    /// open, is closed first. Returns its position.
    std::uint64_t open(std::uint32_t lane, std::uint64_t base_time, std::uint64_t position = 0) {
        if (lane >= open_.size()) open_.resize(lane + 1);
        auto& own = open_[lane];
        if (own.position != 0 && !own.closed) close(lane, base_time);
        const std::uint64_t previous = own.position;
        const std::uint64_t first = get(lane_at(lane) + 24, 8);
        own = {position != 0 ? position : cursor_ + 1, base_time >> 32, false};
        cursor_ = std::max(cursor_, own.position);
        put(plan_.ring + offsetof(layout::ring_state, cursor), cursor_, 8);
        const std::uint64_t at = slot_at(own.position);
        std::memset(bytes().data() + at, 0, 64);
        put(at, 0x42535254, 4);
        put(at + 4, lane, 4);
        put(at + 8, own.position << 3 | 2, 8);
        put(at + 16, first, 8);
        put(at + 24, base_time, 8);
        put(at + 32, previous, 8);
        put(at + 48, std::uint64_t{64} - 0x8008, 2);  // less the bias of the commit word
        put(at + 50, 0, 2);
        const std::uint64_t index = index_at(own.position);
        put(index, own.position, 8);
        put(index + 8, base_time, 8);
        put(index + 16, 0, 8);
        put(index + 24, lane, 4);
        put(index + 28, 0, 4);
        put(lane_at(lane) + 32, own.position, 8);
        return own.position;
    }

    /// Adds a record to the lane's open sub-buffer. False: it is full.
    bool record(std::uint32_t lane, std::uint64_t time, const event_spec& event,
                const std::vector<value_spec>& values, std::uint32_t flags = 0) {
        return raw_record(lane, time, event.id, pack(event, values), flags);
    }
    /// The end of a span that began as the record at `position` of lane `began`, and says so.
    bool end_of(std::uint32_t lane, std::uint64_t time, const event_spec& event,
                std::uint32_t began, std::uint64_t position) {
        put(plan_.ring + offsetof(layout::ring_state, ended_elsewhere), 1, 4);
        return raw_record(lane, time, event.id, {position + 1, began}, 12);
    }
    bool raw_record(std::uint32_t lane, std::uint64_t time, std::uint32_t id,
                    const std::vector<std::uint64_t>& payload, std::uint32_t flags = 0) {
        auto& own = open_.at(lane);
        const std::uint64_t at = slot_at(own.position);
        std::uint64_t end = (get(at + 48, 2) + 0x8008) & 0xFFFF;
        const std::uint64_t needed =
            8 + payload.size() * 8 + (time >> 32 != own.high ? std::uint64_t{16} : 0);
        if (end + needed > plan_.sub_buffer_bytes) return false;
        if (time >> 32 != own.high) {
            put(at + end, time & 0xFFFFFFFF, 4);
            put(at + end + 4, 2U << 16, 4);
            put(at + end + 8, time, 8);
            end += 16;
            own.high = time >> 32;
        }
        put(at + end, time & 0xFFFFFFFF, 4);
        put(at + end + 4, id | (payload.size() + 1) << 16 | std::uint64_t{flags} << 28, 4);
        end += 8;
        for (const auto word : payload) {
            put(at + end, word, 8);
            end += 8;
        }
        put(at + 48, end - 0x8008, 2);
        put(at + 50, get(at + 50, 2) + 1, 2);
        return true;
    }
    /// Refused before the first record, too long and nested while it was current.
    void lost(std::uint32_t lane, std::uint32_t refused, std::uint32_t too_long,
              std::uint32_t nested) {
        const std::uint64_t at = slot_at(open_.at(lane).position);
        put(at + 52, refused, 4);
        put(at + 56, too_long, 4);
        put(at + 60, nested, 4);
    }
    void close(std::uint32_t lane, std::uint64_t end_time) {
        auto& own = open_.at(lane);
        const std::uint64_t at = slot_at(own.position);
        const std::uint64_t records = get(at + 50, 2);
        put(lane_at(lane) + 24, get(at + 16, 8) + records, 8);
        put(at + 40, end_time, 8);
        put(index_at(own.position) + 28, own.position, 4);
        put(index_at(own.position) + 16, end_time, 8);
        put(at + 8, own.position << 3 | 3, 8);
        own.closed = true;
    }
    /// The sub-buffer at `position` was completely overwritten.
    void wipe(std::uint64_t position) {
        std::memset(bytes().data() + slot_at(position), 0, plan_.sub_buffer_bytes);
        std::memset(bytes().data() + index_at(position), 0, 32);
    }

private:
    /// In the layout of record/event/value_names.hpp; each field has its own values.
    [[nodiscard]] static std::string names_of_values(const event_spec& event) {
        std::string fields, values, lengths, text;
        const auto put = [](std::string& to, std::uint64_t value, std::size_t bytes) {
            for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i & 255U);
        };
        for (std::size_t i = 0; i < event.fields.size(); ++i) {
            const auto& all = event.fields[i].names;
            if (all.empty()) continue;
            put(fields, i, 2);
            put(fields, values.size() / 8, 2);
            put(fields, all.size(), 4);
            for (const auto& [value, name] : all) {
                put(values, value, 8);
                put(lengths, name.size(), 2);
                text += name;
            }
        }
        if (fields.empty()) return {};
        std::string out = "NMES";
        put(out, fields.size() / 8, 2);
        put(out, values.size() / 8, 2);
        lengths.resize((lengths.size() + 7) / 8 * 8);
        return out + fields + values + lengths + text;
    }

    struct open_sub_buffer {
        std::uint64_t position = 0;
        std::uint64_t high = 0;
        bool closed = false;
    };

    layout::plan plan_;
    std::vector<std::uint64_t> words_;
    std::deque<event_spec> events_;
    std::vector<open_sub_buffer> open_;
    std::uint64_t clocks_ = 0;
    std::uint64_t dictionary_used_ = 0;
    std::uint64_t cursor_ = 0;
    std::uint32_t processes_ = 0;
    std::uint32_t lanes_ = 0;
};

}  // namespace trace_ring_test
