// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Reads what exporting/perfetto.hpp writes, as a viewer must: by the numbers of perfetto.proto,
/// with the state that each sequence has. What a viewer would drop or misread is an exception.
///
/// A line of text for each packet:
/// @code
///   clock 1=1700000000000000500 3=500 primary=1
///   process 3: 1200 demo            thread 4: 1200/1234 main        track 2 of 1: no lane
///   counter 9 of 3: depth.value
///   1700000000000002501 on 4: instant event all a=u255 e=i-128 g=d0.5 h=true i="A" j=0x7f00 #7
///   1700000000000002540 on 4: dropped instant loss lost: nested trace_ring.count=u1
///   1700000000000002513 on 9: value i-3
/// @endcode

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <trace_ring/exporter/text/append.hpp>

namespace trace_ring_test {

class perfetto_reader {
public:
    explicit perfetto_reader(std::string_view trace) {
        for (const auto& each : fields(trace)) {
            check(each.number == 1 && each.wire == 2, "a trace is packets");
            read_packet(each.bytes);
        }
    }

    [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
    /// Events: begins, ends, instants and counters.
    [[nodiscard]] std::size_t events() const { return events_; }

private:
    struct field {
        std::uint32_t number = 0;
        unsigned wire = 0;
        std::uint64_t value = 0;
        std::string_view bytes;
    };
    struct track {
        bool counter = false;
        std::optional<std::uint64_t> newest;
        std::vector<std::uint64_t> open;
    };
    struct sequence {
        bool cleared = false;
        std::uint64_t track = 0;
        std::map<std::uint64_t, std::string> names[4];  // by kind
    };

    static void check(bool holds, const char* what) {
        if (!holds) throw std::runtime_error(std::string("perfetto: ") + what);
    }
    [[nodiscard]] static std::uint64_t varint(std::string_view& from) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            check(!from.empty(), "a varint ends");
            const auto byte = static_cast<unsigned char>(from[0]);
            from.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return value;
        }
        throw std::runtime_error("perfetto: a varint of more than ten bytes");
    }
    [[nodiscard]] static std::vector<field> fields(std::string_view from) {
        std::vector<field> out;
        while (!from.empty()) {
            field one;
            const std::uint64_t key = varint(from);
            one.number = static_cast<std::uint32_t>(key >> 3);
            one.wire = static_cast<unsigned>(key & 7);
            check(one.number != 0, "a field has a number");
            if (one.wire == 0) {
                one.value = varint(from);
            } else if (one.wire == 1) {
                check(from.size() >= 8, "eight bytes are there");
                std::memcpy(&one.value, from.data(), 8);
                from.remove_prefix(8);
            } else {
                check(one.wire == 2, "a known wire type");
                const std::uint64_t length = varint(from);
                check(length <= from.size(), "a message lies within its own");
                one.bytes = from.substr(0, static_cast<std::size_t>(length));
                from.remove_prefix(static_cast<std::size_t>(length));
            }
            out.push_back(one);
        }
        return out;
    }
    /// The one field of this number; `none` if there is none.
    [[nodiscard]] static field only(const std::vector<field>& in, std::uint32_t number,
                                    unsigned wire, std::uint64_t none = 0) {
        std::optional<field> found;
        for (const auto& each : in) {
            if (each.number != number) continue;
            check(each.wire == wire, "a field lies as its type does");
            check(!found, "a field that is there once");
            found = each;
        }
        return found ? *found : field{number, wire, none, {}};
    }
    [[nodiscard]] static bool has(const std::vector<field>& in, std::uint32_t number) {
        for (const auto& each : in) {
            if (each.number == number) return true;
        }
        return false;
    }
    [[nodiscard]] static std::string text(const field& from) {
        for (std::string_view rest = from.bytes; !rest.empty();) {
            const std::size_t length = trace_ring::exporter::impl::utf8_length(rest);
            check(length != 0, "text is UTF-8");
            rest.remove_prefix(length);
        }
        return std::string(from.bytes);
    }

    void read_packet(std::string_view bytes) {
        const auto packet = fields(bytes);
        const std::uint64_t number = only(packet, 10, 0).value;
        check(number != 0 && number >> 32 == 0, "a packet is of a sequence");
        sequence& its = sequences_[number];
        if (has(packet, 6)) return read_clock(fields(only(packet, 6, 2).bytes));
        if (has(packet, 60)) return read_descriptor(fields(only(packet, 60, 2).bytes));
        check(only(packet, 87, 0).value == (met_.insert({number, true}).second ? 1U : 0U),
              "the first packet of a sequence says so");
        const std::uint64_t flags = only(packet, 13, 0).value;
        const bool dropped = only(packet, 42, 0).value != 0;
        if ((flags & 1) != 0) {
            its = {};
            its.cleared = true;
        } else if (dropped) {
            its = {};
        }
        check((flags & 2) != 0 && its.cleared, "a sequence has the state that it needs");
        if (has(packet, 59)) {
            const auto defaults = fields(only(packet, 59, 2).bytes);
            check(only(defaults, 58, 0).value == (clock_ ? 1U : 0U), "times are by the clock");
            its.track = only(fields(only(defaults, 11, 2).bytes), 11, 0).value;
        }
        for (const auto& kind : fields(only(packet, 12, 2).bytes)) {
            check(kind.number >= 1 && kind.number <= 3 && kind.wire == 2, "a kind of name");
            const auto name = fields(kind.bytes);
            const std::uint64_t iid = only(name, 1, 0).value;
            check(iid != 0, "a name has a number");
            check(its.names[kind.number].emplace(iid, text(only(name, 2, 2))).second,
                  "a name is sent once");
        }
        read_event(only(packet, 8, 0).value, dropped, its, fields(only(packet, 11, 2).bytes));
    }

    void read_clock(const std::vector<field>& snapshot) {
        std::string line = "clock";
        for (const auto& each : snapshot) {
            if (each.number != 1) continue;
            const auto clock = fields(each.bytes);
            line += ' ' + std::to_string(only(clock, 1, 0).value) + '=' +
                    std::to_string(only(clock, 2, 0).value);
        }
        line += " primary=" + std::to_string(only(snapshot, 2, 0).value);
        check(events_ == 0, "the clock is known before the first event");
        clock_ = true;
        lines_.push_back(line);
    }
    void read_descriptor(const std::vector<field>& of) {
        const std::uint64_t uuid = only(of, 1, 0).value;
        check(uuid != 0, "a track has a uuid");
        track made;
        made.counter = has(of, 8);
        check(tracks_.emplace(uuid, made).second, "a uuid of its own");
        const std::string own = ' ' + std::to_string(uuid);
        const std::uint64_t parent = only(of, 5, 0).value;
        check(parent == 0 || tracks_.count(parent) != 0, "a parent that is known");
        if (has(of, 3)) {
            const auto process = fields(only(of, 3, 2).bytes);
            const std::uint64_t pid = only(process, 1, 0).value;
            check(pid != 0 && pid >> 31 == 0 && pids_.emplace(pid, 0).second, "a pid of its own");
            lines_.push_back("process" + own + ": " + std::to_string(pid) + ' ' +
                             text(only(process, 6, 2)));
        } else if (has(of, 4)) {
            const auto thread = fields(only(of, 4, 2).bytes);
            const std::uint64_t pid = only(thread, 1, 0).value;
            const std::uint64_t tid = only(thread, 2, 0).value;
            check(pids_.count(pid) != 0 && tid >> 31 == 0, "a thread of a process");
            check(threads_.emplace(std::pair(pid, tid), 0).second, "a thread has one track");
            lines_.push_back("thread" + own + ": " + std::to_string(pid) + '/' +
                             std::to_string(tid) + ' ' + text(only(thread, 5, 2)));
        } else {
            lines_.push_back((made.counter ? "counter" : "track") + own + " of " +
                             std::to_string(parent) + ": " + text(only(of, 2, 2)));
        }
    }

    void read_event(std::uint64_t time, bool dropped, sequence& its,
                    const std::vector<field>& event) {
        ++events_;
        const std::uint64_t type = only(event, 9, 0).value;
        const std::uint64_t uuid = only(event, 11, 0, its.track).value;
        check(tracks_.count(uuid) != 0, "an event is of a track");
        track& on = tracks_[uuid];
        std::string line = std::to_string(time) + " on " + std::to_string(uuid) + ':';
        if (dropped) line += " dropped";
        if (type == 4) {
            check(on.counter, "a number is of a counter");
            check(has(event, 30) != has(event, 44), "it is one number");
            line += " value ";
            line += has(event, 30) ? signed_text(only(event, 30, 0).value)
                                   : double_text(only(event, 44, 1).value);
            lines_.push_back(line);
            return;
        }
        check(type >= 1 && type <= 3 && !on.counter, "an event is of some type");
        check(!on.newest || *on.newest <= time, "on a track, time does not go back");
        on.newest = time;
        constexpr const char* types[] = {"", " begin", " end", " instant"};
        line += types[type];
        if (type == 1) on.open.push_back(only(event, 10, 0).value);
        if (type == 2) {
            check(!on.open.empty(), "what ends has begun");
            on.open.pop_back();
        } else {
            line += ' ' + name_of(its, 1, only(event, 3, 0).value) + ' ';
            line += has(event, 23) ? text(only(event, 23, 2))
                                   : name_of(its, 2, only(event, 10, 0).value);
        }
        for (const auto& each : event) {
            if (each.number == 4) {
                const auto annotation = fields(each.bytes);
                line += ' ' + name_of(its, 3, only(annotation, 1, 0).value) + '=' +
                        value_of(annotation);
            }
        }
        for (const auto& each : event) {
            if (each.number != 47) continue;
            check(each.wire == 1, "a flow is fixed64");
            line += " #" + std::to_string(each.value);
        }
        lines_.push_back(line);
    }
    [[nodiscard]] static std::string name_of(sequence& its, int kind, std::uint64_t iid) {
        const auto found = its.names[kind].find(iid);
        check(found != its.names[kind].end(), "a name that was sent");
        return found->second;
    }
    [[nodiscard]] static std::string signed_text(std::uint64_t bits) {
        return 'i' + std::to_string(static_cast<std::int64_t>(bits));
    }
    [[nodiscard]] static std::string double_text(std::uint64_t bits) {
        trace_ring::exporter::text_buffer out;
        trace_ring::exporter::impl::append_floating(out, std::bit_cast<double>(bits));
        return 'd' + std::string(out.view());
    }
    [[nodiscard]] static std::string value_of(const std::vector<field>& annotation) {
        std::string list;
        for (const auto& each : annotation) {
            switch (each.number) {
                case 2:
                    return each.value != 0 ? "true" : "false";
                case 3:
                    return 'u' + std::to_string(each.value);
                case 4:
                    return signed_text(each.value);
                case 5:
                    return double_text(each.value);
                case 6: {
                    trace_ring::exporter::text_buffer out;
                    trace_ring::exporter::impl::append_escaped(out, text(each), '"');
                    return '"' + std::string(out.view()) + '"';
                }
                case 7: {
                    trace_ring::exporter::text_buffer out;
                    trace_ring::exporter::impl::append_number(out, each.value, 16);
                    return "0x" + std::string(out.view());
                }
                case 11: {
                    const auto entry = fields(each.bytes);
                    return '{' + text(only(entry, 10, 2)) + '=' + value_of(entry) + '}';
                }
                case 12:
                    list += (list.empty() ? "" : " ") + value_of(fields(each.bytes));
                    break;
                default:
                    check(each.number == 1 || each.number == 10, "a value that is known");
            }
        }
        return '[' + list + ']';
    }

    std::vector<std::string> lines_;
    std::size_t events_ = 0;
    bool clock_ = false;
    std::map<std::uint64_t, sequence> sequences_;
    std::map<std::uint64_t, bool> met_;
    std::map<std::uint64_t, track> tracks_;
    std::map<std::uint64_t, int> pids_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, int> threads_;
};

}  // namespace trace_ring_test
