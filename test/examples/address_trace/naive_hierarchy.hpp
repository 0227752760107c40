// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Levels of caches without any thought of speed, by lists and loops: what a test compares
/// cache_hierarchy with. The rules are those at the head of that header.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace naive {

/// One cache. Each line knows the number of its way; a list is sorted, the newest line first.
class sets {
public:
    struct entry {
        std::uint64_t line = 0;
        bool dirty = false, prefetched = false;
        std::size_t way = 0;
    };

    sets(std::string how, std::uint32_t seed, std::size_t count, std::size_t ways)
        : how_(std::move(how)),
          random_(seed),
          ways_(ways),
          all_(count),
          upper_is_next_(count, std::vector<bool>(ways, false)) {}

    [[nodiscard]] entry* find(std::uint64_t line) {
        for (entry& each : set(line)) {
            if (each.line == line) return &each;
        }
        return nullptr;
    }
    void use(std::uint64_t line) {
        auto& in = set(line);
        const auto at =
            std::find_if(in.begin(), in.end(), [&](const entry& e) { return e.line == line; });
        if (how_ == "lru") in.splice(in.begin(), in, at);
        if (how_ == "plru") heat(line, 1, 0, ways_, at->way);
    }
    entry take_out(std::uint64_t line) {
        auto& in = set(line);
        const auto at =
            std::find_if(in.begin(), in.end(), [&](const entry& e) { return e.line == line; });
        const entry was = *at;
        in.erase(at);
        return was;
    }
    /// The line that has to leave for this one; null: there is room.
    [[nodiscard]] entry* leaving_for(std::uint64_t line) {
        auto& in = set(line);
        if (in.size() < ways_) return nullptr;
        if (how_ == "lru" || how_ == "fifo") return &in.back();
        std::size_t way = 0;
        if (how_ == "plru") {
            way = coldest(line, 1, 0, ways_);
        } else {  // Marsaglia, Xorshift RNGs, 2003
            random_ ^= random_ << 13;
            random_ ^= random_ >> 17;
            random_ ^= random_ << 5;
            way = random_ % ways_;
        }
        return &*std::find_if(in.begin(), in.end(), [&](const entry& e) { return e.way == way; });
    }
    /// Into the first way that is free.
    void insert(entry made) {
        auto& in = set(made.line);
        made.way = 0;
        while (std::any_of(in.begin(), in.end(), [&](const entry& e) { return e.way == made.way; }))
            ++made.way;
        in.push_front(made);
        if (how_ == "plru") heat(made.line, 1, 0, ways_, made.way);
    }
    [[nodiscard]] std::vector<entry> lines() const {
        std::vector<entry> out;
        for (const auto& each : all_) out.insert(out.end(), each.begin(), each.end());
        return out;
    }

private:
    [[nodiscard]] std::list<entry>& set(std::uint64_t line) {
        return all_[static_cast<std::size_t>(line % all_.size())];
    }
    // Halves of halves: in each node, whether its upper half is the one that was left longer.
    [[nodiscard]] std::size_t coldest(std::uint64_t line, std::size_t node, std::size_t from,
                                      std::size_t count) const {
        if (count == 1) return from;
        return upper_is_next_[static_cast<std::size_t>(line % all_.size())][node]
                   ? coldest(line, node * 2 + 1, from + count / 2, count / 2)
                   : coldest(line, node * 2, from, count / 2);
    }
    void heat(std::uint64_t line, std::size_t node, std::size_t from, std::size_t count,
              std::size_t at) {
        if (count == 1) return;
        const bool is_upper = at >= from + count / 2;
        upper_is_next_[static_cast<std::size_t>(line % all_.size())][node] = !is_upper;
        heat(line, node * 2 + is_upper, is_upper ? from + count / 2 : from, count / 2, at);
    }

    std::string how_;
    std::uint32_t random_;
    std::size_t ways_;
    std::vector<std::list<entry>> all_;
    std::vector<std::vector<bool>> upper_is_next_;
};

struct spec {
    std::string name;
    std::size_t size, line, ways;
    std::string how = "lru", holds{};  // holds: inclusive, exclusive or empty
    bool fetches_next = false;
    std::size_t level = 0;

    [[nodiscard]] std::string text() const {
        return name + '=' + std::to_string(size) + ',' + std::to_string(line) + ',' +
               std::to_string(ways) + (fetches_next ? ",next," : ",") + how +
               (holds.empty() ? "" : "," + holds);
    }
    [[nodiscard]] bool takes(bool code) const { return name[0] != (code ? 'D' : 'I'); }
};

struct counts {
    std::uint64_t references[3]{}, misses[3]{};
    std::uint64_t written = 0, invalidated = 0, prefetched = 0, used = 0;
};

class hierarchy {
public:
    explicit hierarchy(std::vector<spec> of) : all_(std::move(of)), count(all_.size()) {
        for (const spec& each : all_) {
            const auto colon = each.how.find(':');
            const std::uint32_t seed =
                colon == std::string::npos
                    ? 1
                    : static_cast<std::uint32_t>(std::stoul(each.how.substr(colon + 1)));
            lines_.emplace_back(each.how.substr(0, colon), seed, each.size / each.line / each.ways,
                                each.ways);
        }
        for (std::size_t at = 0; at < all_.size(); ++at) {
            for (const bool code : {false, true})
                if (all_[at].takes(code)) path_[code].push_back(at);
        }
    }

    /// `kind`: 0 loads, 1 stores, 2 fetches code.
    void reference(int kind, std::uint64_t address, std::uint64_t size) {
        kind_ = kind;
        asked_.assign(all_.size(), false);
        missed_.assign(all_.size(), false);
        const auto& path = path_[kind == 2];
        ask(0, address, size);
        for (std::size_t at = 0; at < path.size(); ++at) {
            const std::size_t line = all_[path[at]].line;
            if (missed_[path[at]] && all_[path[at]].fetches_next)
                prefetch(at, (address + size - 1) / line + 1);
        }
        for (std::size_t i = 0; i < all_.size(); ++i) {
            count[i].references[kind] += asked_[i];
            count[i].misses[kind] += missed_[i];
        }
    }

    [[nodiscard]] std::uint64_t still_dirty(std::size_t at) const {
        std::uint64_t sum = 0;
        for (const auto& each : lines_[at].lines()) sum += each.dirty ? all_[at].line : 0;
        return sum;
    }
    /// Whether inclusive levels hold all lines of those before, and exclusive ones none.
    [[nodiscard]] bool is_sound() {
        for (std::size_t outer = 0; outer < all_.size(); ++outer) {
            for (std::size_t inner = 0; inner < outer; ++inner) {
                for (const auto& each : lines_[inner].lines()) {
                    const bool there = lines_[outer].find(each.line) != nullptr;
                    if (all_[outer].holds == "inclusive" && feeds(inner, outer) && !there)
                        return false;
                    if (all_[outer].holds == "exclusive" && comes_from(inner, outer) && there)
                        return false;
                }
            }
        }
        return true;
    }

private:
    using entry = sets::entry;
    static constexpr std::size_t memory = ~std::size_t{0};

    [[nodiscard]] std::size_t next(std::size_t at, bool code) const {
        for (std::size_t to = at + 1; to < all_.size(); ++to) {
            if (all_[to].level > all_[at].level && all_[to].takes(code)) return to;
        }
        return memory;
    }
    [[nodiscard]] std::size_t outer_of(std::size_t at) const {
        return next(at, !all_[at].takes(false));
    }
    /// Whether lines of the one come to the other, past none but exclusive levels.
    [[nodiscard]] bool comes_from(std::size_t inner, std::size_t outer) const {
        for (std::size_t at = outer_of(inner); at != memory; at = outer_of(at)) {
            if (at == outer) return true;
            if (all_[at].holds != "exclusive") return false;
        }
        return false;
    }
    [[nodiscard]] bool feeds(std::size_t inner, std::size_t outer) const {
        return all_[inner].level < all_[outer].level &&
               ((all_[inner].takes(false) && all_[outer].takes(false)) ||
                (all_[inner].takes(true) && all_[outer].takes(true)));
    }

    // From the level of this number on, for the levels that are asked line by line together.
    void ask(std::size_t first, std::uint64_t address, std::uint64_t size) {
        const auto& path = path_[kind_ == 2];
        if (first == path.size()) return;
        std::size_t end = first + 1;
        while (end < path.size() && !all_[path[end]].holds.empty()) ++end;
        const std::size_t line_size = all_[path[first]].line;
        bool any_missed = false;
        for (std::uint64_t line = address / line_size; line <= (address + size - 1) / line_size;
             ++line) {
            std::size_t found = first;
            for (; found < end; ++found) {
                if (!is_prefetch_) asked_[path[found]] = true;
                if (lines_[path[found]].find(line) != nullptr) break;
                if (!is_prefetch_) missed_[path[found]] = true;
            }
            any_missed = any_missed || found != first;
            bool dirty = false;
            if (found != end) dirty = find_in(path[found], line);
            const std::uint64_t from = std::max(address, line * line_size);
            const std::uint64_t to = std::min(address + size, (line + 1) * line_size);
            for (std::size_t at = found; at-- > first;) {
                if (all_[path[at]].holds != "exclusive") {
                    const bool stored = kind_ == 1 && at == 0 && !is_prefetch_;
                    insert(path[at], {line, dirty || stored, false});
                    dirty = false;
                }
                if (at + 1 == end && end - first > 1) ask(end, from, to - from);
            }
            moves_dirty_ = dirty;
        }
        if (end - first == 1 && any_missed) ask(end, address, size);
    }
    // What a hit does. Returns whether the line moves inwards, and is dirty.
    bool find_in(std::size_t at, std::uint64_t line) {
        entry& found = *lines_[at].find(line);
        if (!is_prefetch_) {
            count[at].used += found.prefetched;
            found.prefetched = false;
            if (kind_ == 1 && at == path_[0][0]) found.dirty = true;
        }
        if (all_[at].holds == "exclusive") return lines_[at].take_out(line).dirty;
        lines_[at].use(line);
        return false;
    }
    void prefetch(std::size_t number, std::uint64_t line) {
        const std::size_t at = path_[kind_ == 2][number];
        if (lines_[at].find(line) != nullptr) return;
        for (std::size_t inner = 0; inner < at; ++inner) {
            if (all_[at].holds == "exclusive" && comes_from(inner, at) &&
                lines_[inner].find(line) != nullptr)
                return;
        }
        ++count[at].prefetched;
        is_prefetch_ = true;
        moves_dirty_ = false;
        ask(number + 1, line * all_[at].line, all_[at].line);
        is_prefetch_ = false;
        insert(at, {line, moves_dirty_, true});
    }
    void insert(std::size_t at, entry made) {
        if (entry* const leaving = lines_[at].leaving_for(made.line); leaving != nullptr) {
            const std::uint64_t line = leaving->line, size = all_[at].line;
            for (std::size_t inner = 0; inner < at && all_[at].holds == "inclusive"; ++inner) {
                if (!feeds(inner, at) || lines_[inner].find(line) == nullptr) continue;
                ++count[inner].invalidated;
                if (lines_[inner].take_out(line).dirty) write(inner, line * size, size);
            }
            const bool dirty = lines_[at].take_out(line).dirty;
            const std::size_t outer = outer_of(at);
            bool other_has_it = false;
            for (std::size_t other = 0; other < all_.size(); ++other) {
                if (other != at && outer != memory && comes_from(other, outer))
                    other_has_it = other_has_it || lines_[other].find(line) != nullptr;
            }
            if (outer != memory && all_[outer].holds == "exclusive" && !other_has_it) {
                count[at].written += dirty ? size : 0;
                insert(outer, {line, dirty, false});
            } else if (dirty) {
                write(at, line * size, size);
            }
        }
        lines_[at].insert(made);
    }
    // Eight bytes at a time, each as far as it has to go.
    void write(std::size_t from, std::uint64_t address, std::uint64_t size) {
        for (std::uint64_t each = address; each != address + size; each += 8) {
            for (std::size_t at = from; at != memory; at = outer_of(at)) {
                if (at != from) {
                    entry* const there = lines_[at].find(each / all_[at].line);
                    if (there != nullptr) {
                        there->dirty = true;
                        break;
                    }
                }
                count[at].written += 8;
            }
        }
    }

    std::vector<spec> all_;
    std::vector<sets> lines_;
    std::vector<std::size_t> path_[2];  // of data, of code
    std::vector<bool> asked_, missed_;
    int kind_ = 0;
    bool is_prefetch_ = false, moves_dirty_ = false;

public:
    std::vector<counts> count;
};

}  // namespace naive
