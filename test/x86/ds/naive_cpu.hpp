// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// A second processor with a debug store, written from the manuals' rules alone and as naively as
/// can be: numbers for registers, bytes for memory, and no library code. What it does is compared
/// with what the library's does, step by step.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace naive {

/// What the manuals leave open.
enum full_rule { drop, wrap, go_on };

struct rules {
    bool wide = true;  ///< the 64-bit layout
    int format = 0;    ///< of PEBS records
    full_rule full = drop;
    bool round_at_once = true;  ///< a circular index is back at the base after the last record
    bool origin_counts = true;  ///< of a branch between levels
    std::uint64_t origin = 0;   ///< the address of the first byte of memory
    std::size_t size = 0;       ///< bytes of memory
};

struct branch {
    std::uint64_t from, to;
    bool predicted;
    int level_after;
};
struct overflow {
    int counter;  ///< 0 to 31 general, 32 and up fixed
    std::vector<std::uint8_t> record;
};
struct outcome {
    bool branch = false, pebs = false, interrupt = false, fault = false;
    std::uint64_t fault_at = 0;
};

class cpu {
public:
    std::uint64_t debugctl = 0, status = 0, global_ctrl = 0, pebs_enable = 0, data_cfg = 0;
    std::uint64_t ds_area = 0, lvt = 0;
    int level = 0;
    std::uint64_t interrupts = 0;
    std::vector<std::uint8_t> memory;
    rules by;

    explicit cpu(const rules& r) : memory(r.size), by(r) {}

    /// False: #GP.
    bool wrmsr(std::uint32_t number, std::uint64_t value) {
        if (number == 0x1D9) {
            // bits 0, 1 and 6 to 15 are defined
            for (int bit = 0; bit < 64; ++bit) {
                const bool defined = bit == 0 || bit == 1 || (bit >= 6 && bit <= 15);
                if (!defined && (value >> bit & 1) != 0) return false;
            }
            debugctl = value;
        } else if (number == 0x600) {
            // bits 63 to 47 are all the same
            for (int bit = 48; bit < 64; ++bit) {
                if ((value >> bit & 1) != (value >> 47 & 1)) return false;
            }
            ds_area = value;
        } else if (number == 0x38F) {
            global_ctrl = value;
        } else if (number == 0x390) {
            for (int bit = 0; bit < 64; ++bit) {
                if ((value >> bit & 1) != 0) status &= ~(std::uint64_t{1} << bit);
            }
        } else if (number == 0x3F1) {
            pebs_enable = value;
        } else if (number == 0x3F2) {
            if (by.format < 4) return false;
            data_cfg = value;
        } else if (number == 0x834) {
            if (value > 0xFFFFFFFF) return false;
            lvt = value;
        } else {
            return number == 0x1A0;
        }
        return true;
    }

    outcome step(const std::optional<branch>& b, const std::optional<overflow>& o) {
        outcome out;
        bool asked = false;
        if (o) asked = count(*o, out) || asked;
        if (b) {
            if (!out.fault) asked = record(*b, out) || asked;
            level = b->level_after;
        }
        if (asked && (lvt >> 16 & 1) == 0) {
            lvt |= 0x10000;
            ++interrupts;
            out.interrupt = true;
        }
        return out;
    }

    // --- Memory ----------------------------------------------------------------------------------
    [[nodiscard]] bool there(std::uint64_t at, std::uint64_t bytes) const {
        return at >= by.origin && at - by.origin <= memory.size() &&
               bytes <= memory.size() - (at - by.origin);
    }
    [[nodiscard]] std::size_t place(std::uint64_t at) const {
        return static_cast<std::size_t>(at - by.origin);
    }
    [[nodiscard]] std::uint64_t get(std::uint64_t at, int bytes) const {
        std::uint64_t out = 0;
        for (int i = bytes - 1; i >= 0; --i)
            out = out << 8 | memory[place(at) + static_cast<unsigned>(i)];
        return out;
    }
    void set(std::uint64_t at, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i)
            memory[place(at) + static_cast<unsigned>(i)] =
                static_cast<std::uint8_t>(value >> 8 * i);
    }
    /// A word of the area: 0 to 3 of branches, 4 to 7 of PEBS.
    [[nodiscard]] int word_size() const { return by.wide ? 8 : 4; }
    [[nodiscard]] std::uint64_t word_at(int which) const {
        return ds_area + static_cast<unsigned>(which * word_size());
    }
    [[nodiscard]] std::uint64_t word(int which) const { return get(word_at(which), word_size()); }

private:
    static bool lacks(outcome& out, std::uint64_t at) {
        out.fault = true;
        out.fault_at = at;
        return false;
    }
    [[nodiscard]] std::uint64_t cut(std::uint64_t address) const {
        return by.wide ? address : address & 0xFFFFFFFF;
    }

    [[nodiscard]] bool row_stores(int cpl) const {
        const bool tr = (debugctl & 0x40) != 0, bts = (debugctl & 0x80) != 0;
        const bool off_os = (debugctl & 0x200) != 0, off_usr = (debugctl & 0x400) != 0;
        if (!tr) return false;
        if (!bts) return false;
        if (off_os && off_usr) return false;
        if (off_os) return cpl > 0;
        if (off_usr) return cpl == 0;
        return true;
    }
    bool record(const branch& b, outcome& out) {
        if (!row_stores(by.origin_counts ? level : b.level_after)) return false;
        const bool btint = (debugctl & 0x100) != 0;
        if (!there(ds_area, static_cast<unsigned>(4 * word_size()))) return lacks(out, ds_area);
        const std::uint64_t base = word(0), maximum = word(2), threshold = word(3);
        const std::uint64_t size = static_cast<unsigned>(3 * word_size());
        std::uint64_t index = word(1);
        const auto fits = [&](std::uint64_t at) { return at <= maximum && maximum - at >= size; };
        if (!fits(index)) {
            if (!btint || by.full == wrap) {
                index = base;
            } else if (by.full == drop) {
                return false;
            }
        }
        if (!there(index, size)) return lacks(out, index);
        set(index, cut(b.from), word_size());
        set(index + size / 3, cut(b.to), word_size());
        set(index + size / 3 * 2, b.predicted ? 16 : 0, word_size());
        index = cut(index + size);
        const bool reached = index >= threshold;
        if (!btint && !fits(index) && by.round_at_once) index = base;
        set(word_at(1), index, word_size());
        out.branch = true;
        return reached;
    }
    bool count(const overflow& o, outcome& out) {
        const std::uint64_t bit = std::uint64_t{1} << o.counter;
        if ((global_ctrl & bit) == 0) return false;
        if ((pebs_enable & bit) == 0) {
            status |= bit;
            return true;
        }
        if (!there(word_at(4), static_cast<unsigned>(4 * word_size())))
            return lacks(out, word_at(4));
        const std::uint64_t index = word(5), maximum = word(6), threshold = word(7);
        if (index > maximum || maximum - index < o.record.size()) return false;
        if (!there(index, o.record.size())) return lacks(out, index);
        for (std::size_t i = 0; i < o.record.size(); ++i) memory[place(index) + i] = o.record[i];
        const std::uint64_t next = cut(index + o.record.size());
        set(word_at(5), next, word_size());
        out.pebs = true;
        if (next < threshold) return false;
        status |= std::uint64_t{1} << 62;
        return true;
    }
};

/// What the service routine finds.
struct served {
    bool bts = false, pebs = false;
    std::uint64_t counters = 0;
    std::vector<std::uint64_t> froms;
    std::uint64_t pebs_records = 0;
    std::uint64_t refused = 0, damaged = 0, overwritten = 0;
};

/// The service routine, as the manuals list its steps, over buffers of these sizes.
inline served serve(cpu& c, std::uint64_t records, std::uint64_t pebs_records,
                    std::uint64_t pebs_size) {
    served out;
    const std::uint64_t debugctl = c.debugctl, pebs_enable = c.pebs_enable;
    c.debugctl &= ~std::uint64_t{0x40};
    c.pebs_enable = 0;
    const bool circular = (debugctl & 0x100) == 0;
    const std::uint64_t size = static_cast<unsigned>(3 * c.word_size());
    const std::uint64_t base = c.word(0), index = c.word(1), end = base + records * size;
    out.bts = index >= c.word(3);
    out.pebs = c.word(5) >= c.word(7);
    out.counters = c.status & 0xFFFFFFFFFFFF;
    if (out.bts || (!circular && index >= end)) {
        const std::uint64_t last = index < end ? index : end;
        for (std::uint64_t at = base; at + size <= last; at += size)
            out.froms.push_back(c.get(at, c.word_size()));
        if (index > end) out.refused += (index - end) / size;
        if (index >= end) ++out.refused;
        if ((last - base) % size != 0) ++out.damaged;
        // The last record there is, stored behind the index: the processor came round.
        const auto word = static_cast<unsigned>(c.word_size());
        const bool stored =
            c.get(end - size, c.word_size()) != 0 || c.get(end - size + word, c.word_size()) != 0;
        const bool round = index < end && stored;
        if (round) out.overwritten = records;
        for (std::uint64_t at = end - size; (round || index >= end) && at < end; ++at)
            c.set(at, 0, 1);
        c.set(c.word_at(1), base, c.word_size());
    }
    const std::uint64_t pebs_base = c.word(4), pebs_index = c.word(5);
    const std::uint64_t pebs_end = pebs_base + pebs_records * pebs_size;
    if (out.pebs || pebs_index >= pebs_end) {
        for (std::uint64_t at = pebs_base; at < pebs_index; at += pebs_size) {
            // An adaptive record says what it is; what a branch was stored over does not.
            const std::uint64_t shape = pebs_size << 48 | (c.data_cfg & 0xFFFFFFFF);
            if (c.by.wide && c.by.format >= 4 && c.get(at, 8) != shape) {
                ++out.damaged;
                break;
            }
            ++out.pebs_records;
        }
        if (pebs_index >= pebs_end) ++out.refused;
        c.set(c.word_at(5), pebs_base, c.word_size());
    }
    c.wrmsr(0x390, out.counters | std::uint64_t{1} << 62);
    c.lvt &= ~std::uint64_t{0x10000};
    c.pebs_enable = pebs_enable;
    c.debugctl = debugctl;
    return out;
}

}  // namespace naive
