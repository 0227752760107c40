// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A second reader, for the tests of the recorder alone: written from the layout, plain and slow,
/// and sharing nothing with reduce/ but the layout headers, so that a mistake there is not repeated
/// here. It throws std::runtime_error for anything contradictory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <trace_ring/atomic.hpp>
#include <trace_ring/format/layout.hpp>
#include <trace_ring/format/plan.hpp>
#include <trace_ring/format/records.hpp>
#include <trace_ring/record/field.hpp>

namespace test {

namespace layout = trace_ring::layout;
using trace_ring::acquire;
using trace_ring::relaxed;

[[noreturn]] inline void fault(const std::string& what) {
    throw std::runtime_error(what);
}

template <std::size_t N>
[[nodiscard]] std::string text_of(const trace_ring::shared_atomic<std::uint64_t> (&words)[N]) {
    std::string out;
    for (const auto& word : words) {
        const std::uint64_t value = word.load(relaxed);
        for (unsigned k = 0; k < 8; ++k) {
            const char c = static_cast<char>(value >> (k * 8) & 0xFFU);
            if (c == '\0') return out;
            out += c;
        }
    }
    return out;
}

struct one_record {
    std::uint64_t position = 0;  ///< in its lane, from 0
    std::uint64_t time = 0;
    std::uint32_t word = 0;
    std::vector<std::uint64_t> payload;

    [[nodiscard]] std::uint16_t id() const { return trace_ring::record_word::id(word); }
    [[nodiscard]] std::uint32_t flags() const { return trace_ring::record_word::flags(word); }
};

struct one_sub_buffer {
    std::uint64_t slot = 0;
    trace_ring::sub_buffer_copy head;
    std::vector<one_record> records;
};

struct one_lane {
    std::uint32_t number = 0, state = 0, process = 0, thread = 0, depth = 0;
    std::uint64_t written = 0, refused = 0, too_long = 0, nested = 0, abandoned = 0;
    std::string name;
    std::vector<std::uint64_t> totals;

    [[nodiscard]] bool live() const {
        return state == static_cast<std::uint32_t>(layout::presence::live);
    }
};

struct one_field {
    std::string name;
    std::uint8_t type = 0, form = 0;
    std::uint16_t count = 0, offset = 0;
};

struct one_type {
    std::uint32_t root = 0;
    std::uint16_t id = 0;
    std::uint8_t kind = 0, total = 0;
    std::uint32_t fixed_bytes = 0;
    std::string name;
    std::vector<one_field> fields;
};

struct one_process {
    std::uint32_t slot = 0, state = 0, pid = 0, root = 0, parent = 0, word = 0, gate_page = 0;
    std::string name;
};

/// A view of a trace in memory, which may be live.
class trace_view {
public:
    explicit trace_view(std::span<const std::byte> bytes) : bytes_(bytes) {
        const auto wrong = layout::check_layout(bytes.data(), bytes.size(), plan_);
        if (wrong) fault("offset " + std::to_string(wrong.offset) + ": " + std::string(wrong.what));
        words_.resize(plan_.sub_buffer_bytes / 8);
    }
    explicit trace_view(std::pair<const std::byte*, std::size_t> bytes)
        : trace_view(std::span<const std::byte>(bytes.first, bytes.second)) {}

    [[nodiscard]] const layout::plan& plan() const { return plan_; }
    [[nodiscard]] const layout::file_header& header() const { return at<layout::file_header>(0); }
    [[nodiscard]] const layout::ring_state& ring() const {
        return at<layout::ring_state>(plan_.ring);
    }
    [[nodiscard]] std::uint64_t slots() const {
        return std::min(layout::present_sub_buffers(plan_, bytes_.size()),
                        ring().capacity.load(acquire));
    }

    /// Copies one sub-buffer as any reader would; what came of it, and on success the words and
    /// head.
    [[nodiscard]] trace_ring::copy_result copy(std::uint64_t slot,
                                               trace_ring::sub_buffer_copy& head) {
        return trace_ring::copy_sub_buffer(
            bytes_.data() + plan_.sub_buffers + slot * plan_.sub_buffer_bytes, words_, head);
    }
    [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }
    [[nodiscard]] trace_ring::stamped state(std::uint64_t slot) const {
        return trace_ring::stamped::from(
            at<trace_ring::sub_buffer_header>(plan_.sub_buffers + slot * plan_.sub_buffer_bytes)
                .state.load(acquire));
    }

    /// Visits every record that can be read, sub-buffer by sub-buffer in file order: its lane, its
    /// position there, its time, its word, and the words of its payload. For long traces.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (std::uint64_t slot = 0; slot < slots(); ++slot) {
            trace_ring::sub_buffer_copy head;
            const auto result = copy(slot, head);
            if (result == trace_ring::copy_result::damaged)
                fault("damaged slot " + std::to_string(slot));
            if (result != trace_ring::copy_result::copied) continue;
            std::uint64_t position = head.first_position;
            std::uint64_t last = head.base_time;
            const std::uint32_t wrong = trace_ring::walk_records(
                words(), head, [&](std::size_t at, std::uint64_t time, std::uint32_t word) {
                    if (time < last) fault("time went back in a sub-buffer");
                    last = time;
                    visit(head.lane, position++, time, word,
                          words().subspan(at + 1, trace_ring::record_word::bytes(word) / 8 - 1));
                });
            if (wrong != 0)
                fault("slot " + std::to_string(slot) + ": damaged at " + std::to_string(wrong));
        }
    }

    /// Records in closed sub-buffers so far, of all lanes there are and ever were.
    [[nodiscard]] std::uint64_t written() const {
        std::uint64_t sum = ring().folded_written.load(relaxed);
        for (const auto& lane : lanes()) sum += lane.written;
        return sum;
    }

    /// Everything that can be read, in the order of positions.
    [[nodiscard]] std::vector<one_sub_buffer> sub_buffers() {
        std::vector<one_sub_buffer> out;
        for (std::uint64_t slot = 0; slot < slots(); ++slot) {
            one_sub_buffer one;
            one.slot = slot;
            const auto result = copy(slot, one.head);
            if (result == trace_ring::copy_result::damaged)
                fault("damaged slot " + std::to_string(slot));
            if (result != trace_ring::copy_result::copied) continue;
            std::uint64_t position = one.head.first_position;
            const std::uint32_t wrong = trace_ring::walk_records(
                words(), one.head, [&](std::size_t word, std::uint64_t time, std::uint32_t record) {
                    one_record r{position++, time, record, {}};
                    const std::size_t count = trace_ring::record_word::bytes(record) / 8 - 1;
                    for (std::size_t i = 0; i < count; ++i)
                        r.payload.push_back(words_[word + 1 + i]);
                    one.records.push_back(std::move(r));
                });
            if (wrong != 0) {
                fault("slot " + std::to_string(slot) + ": damaged at " + std::to_string(wrong));
            }
            out.push_back(std::move(one));
        }
        std::sort(out.begin(), out.end(),
                  [](const auto& a, const auto& b) { return a.head.state.pos < b.head.state.pos; });
        return out;
    }

    /// Records by lane, oldest first. Within a lane time must not go back and positions must rise.
    [[nodiscard]] std::map<std::uint32_t, std::vector<one_record>> by_lane() {
        std::map<std::uint32_t, std::vector<one_record>> out;
        for (auto& sub : sub_buffers()) {
            auto& lane = out[sub.head.lane];
            for (auto& r : sub.records) {
                if (!lane.empty() && r.time < lane.back().time) fault("time went back in a lane");
                if (!lane.empty() && r.position <= lane.back().position)
                    fault("positions overlap in lane " + std::to_string(sub.head.lane));
                lane.push_back(std::move(r));
            }
        }
        return out;
    }

    [[nodiscard]] std::vector<one_record> records() {
        std::vector<one_record> out;
        for (auto& [number, lane] : by_lane()) {
            for (auto& r : lane) out.push_back(std::move(r));
        }
        return out;
    }

    [[nodiscard]] std::vector<one_lane> lanes() const {
        std::vector<one_lane> out;
        for (std::uint32_t i = 0; i < plan_.lane_count; ++i) {
            const auto& e = at<layout::lane_entry>(plan_.lanes + i * sizeof(layout::lane_entry));
            one_lane lane;
            lane.state = e.state.load(acquire);
            if (lane.state == static_cast<std::uint32_t>(layout::presence::free)) continue;
            lane.number = e.number.load(relaxed);
            lane.process = e.process.load(relaxed);
            lane.thread = e.thread.load(relaxed);
            lane.depth = e.depth.load(relaxed);
            lane.written = e.written.load(relaxed);
            lane.refused = e.refused.load(relaxed);
            lane.too_long = e.too_long.load(relaxed);
            lane.nested = e.nested.load(relaxed);
            lane.abandoned = e.abandoned.load(relaxed);
            lane.name = text_of(e.name);
            for (std::uint32_t t = 0; t < plan_.totals_per_lane; ++t) {
                lane.totals.push_back(total_at(i, t));
            }
            out.push_back(std::move(lane));
        }
        return out;
    }

    /// A total of the whole file: of all lanes, and of those that are no more.
    [[nodiscard]] std::uint64_t total(std::uint32_t column) const {
        std::uint64_t sum = 0;
        for (std::uint32_t row = 0; row < plan_.lane_count + plan_.process_count; ++row) {
            sum += total_at(row, column);
        }
        return sum;
    }

    [[nodiscard]] std::vector<one_process> processes() const {
        std::vector<one_process> out;
        for (std::uint32_t i = 0; i < plan_.process_count; ++i) {
            const auto& e =
                at<layout::process_entry>(plan_.processes + i * sizeof(layout::process_entry));
            if (e.state.load(acquire) == 0) continue;
            out.push_back({i, e.state.load(relaxed), e.pid.load(relaxed), e.root.load(relaxed),
                           e.parent.load(relaxed), e.word.load(relaxed), e.gate_page.load(relaxed),
                           text_of(e.name)});
        }
        return out;
    }

    [[nodiscard]] std::vector<one_type> types() const {
        std::vector<one_type> out;
        const std::uint64_t used =
            std::min(ring().dictionary_used.load(acquire), plan_.dictionary_bytes);
        for (std::uint64_t offset = 0; offset < used;) {
            const auto& e = at<layout::type_entry>(plan_.dictionary + offset);
            if (e.magic.load(acquire) != layout::type_magic) {
                offset += layout::dictionary_unit;
                continue;
            }
            one_type type;
            type.root = e.root.load(relaxed);
            type.id = e.id.load(relaxed);
            type.kind = e.kind.load(relaxed);
            type.total = e.total.load(relaxed);
            type.fixed_bytes = e.fixed_bytes.load(relaxed);
            const std::uint32_t count = e.fields.load(relaxed);
            std::uint64_t text = plan_.dictionary + offset + sizeof(layout::type_entry) +
                                 count * sizeof(layout::field_entry);
            const auto take = [&](std::size_t length) {
                std::string s;
                for (std::size_t i = 0; i < length; ++i) {
                    s += static_cast<char>(
                        at<trace_ring::shared_atomic<std::uint8_t>>(text++).load(relaxed));
                }
                return s;
            };
            type.name = take(e.name_bytes.load(relaxed));
            for (std::uint32_t i = 0; i < count; ++i) {
                const auto& f =
                    at<layout::field_entry>(plan_.dictionary + offset + sizeof(layout::type_entry) +
                                            i * sizeof(layout::field_entry));
                one_field field;
                field.type = f.type.load(relaxed);
                field.form = f.form.load(relaxed);
                field.count = f.count.load(relaxed);
                field.offset = f.offset.load(relaxed);
                field.name = take(f.name_bytes.load(relaxed));
                type.fields.push_back(std::move(field));
            }
            if (text > plan_.dictionary + offset + e.bytes.load(relaxed)) fault("dictionary entry");
            offset += e.bytes.load(relaxed);
            out.push_back(std::move(type));
        }
        return out;
    }

    /// The one type of that name.
    [[nodiscard]] one_type type(const std::string& name) const {
        std::vector<one_type> found;
        for (auto& t : types()) {
            if (t.name == name) found.push_back(std::move(t));
        }
        if (found.size() != 1) {
            fault(std::to_string(found.size()) + " types are named " + name);
        }
        return found[0];
    }
    /// Records of that type (in a trace of one program), by lane.
    [[nodiscard]] std::vector<one_record> records_of(const std::string& name) {
        const std::uint16_t id = type(name).id;
        std::vector<one_record> out = records();
        std::erase_if(out, [id](const one_record& r) { return r.id() != id; });
        return out;
    }

private:
    template <class T>
    [[nodiscard]] const T& at(std::uint64_t offset) const {
        if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) fault("past the end");
        return *reinterpret_cast<const T*>(bytes_.data() + offset);
    }
    [[nodiscard]] std::uint64_t total_at(std::uint32_t row, std::uint32_t column) const {
        return at<trace_ring::shared_atomic<std::uint64_t>>(
                   plan_.totals + (std::uint64_t{row} * plan_.totals_per_lane + column) * 8)
            .load(relaxed);
    }

    std::span<const std::byte> bytes_;
    layout::plan plan_;
    std::vector<std::uint64_t> words_;
};

/// A trace file read into memory, unchanged.
class trace_copy {
public:
    explicit trace_copy(const std::string& path) {
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        if (!file) fault("cannot open " + path);
        const auto size = static_cast<std::size_t>(file.tellg());
        words_.resize((size + 7) / 8);
        file.seekg(0);
        file.read(reinterpret_cast<char*>(words_.data()), static_cast<std::streamsize>(size));
        if (!file) fault("cannot read " + path);
        size_ = size;
    }
    [[nodiscard]] trace_view view() const {
        return trace_view(std::span(reinterpret_cast<const std::byte*>(words_.data()), size_));
    }

private:
    std::vector<std::uint64_t> words_;
    std::size_t size_ = 0;
};

/// Part of a payload as a number.
template <class T>
[[nodiscard]] T value_at(const one_record& r, std::size_t offset) {
    if (offset + sizeof(T) > r.payload.size() * 8) fault("past the payload");
    T out{};
    std::memcpy(&out, reinterpret_cast<const char*>(r.payload.data()) + offset, sizeof out);
    return out;
}
[[nodiscard]] inline std::string bytes_at(const one_record& r, std::size_t offset,
                                          std::size_t length) {
    if (offset + length > r.payload.size() * 8) fault("past the payload");
    return {reinterpret_cast<const char*>(r.payload.data()) + offset, length};
}

}  // namespace test
