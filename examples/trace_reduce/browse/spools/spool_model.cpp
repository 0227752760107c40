// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

#include "spool_model.hpp"
#include "../../position/when.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include <trace_ring/cptrap/spool_record.hpp>

#include "../../cptrap/choice.hpp"
#include "../../cptrap/ebcdic.hpp"
#include "spool_walk.hpp"

namespace trace_reduce::browse {

namespace {

constexpr std::size_t items_between = 16'384;  // calls of go_on in a search

constexpr column_choice spool_columns[] = {
    {'f', "f file"},   {'o', "o offset"},      {'r', "r record"}, {'t', "t type"}, {'c', "c code"},
    {'l', "l length"}, {'x', "x hexadecimal"}, {'e', "e EBCDIC"}, {'a', "a ASCII"}};

constexpr const char* spool_help[] = {
    "x          show or hide the whole data of this record, 16 bytes a line",
    "X          the same for all records",
    "g PLACE    go to #5 (spool record 5 of 4 KiB, from 0), 5:3 (record 3 in it,",
    "           from 0), @0x5000 (an offset in the file), 25% (of the file)",
    "/ ? TEXT   search on, or back: in data, as ASCII and as EBCDIC, and in names;",
    "           X'C1C2' or 0xC1C2: for these bytes of data",
    "f FILTER   only these, as for --type, --code and --where:",
    "           type interface code 3 where length > 20; nothing: all",
    "",
    "A line has: offset in the file, spool record:record, type, code, length of",
    "the data, and its first bytes in hexadecimal, as *EBCDIC* and as |ASCII|.",
    "Lines that begin with -- show where records were lost or bytes cannot be",
    "read. A filter does not hide them.",
};

constexpr const char* spool_places = " (#5 spool record, 5:3 record in it, @0x5000 offset, 25%)";

std::size_t hexadecimal_width(std::size_t bytes) {
    return bytes == 0 ? 0 : 2 * bytes + (bytes - 1) / 4;
}
/// Where byte `i` begins among groups of four.
std::size_t hexadecimal_column(std::size_t i) {
    return 2 * i + i / 4;
}

}  // namespace

spool_model::spool_model(spools& of, spool_choice what, std::string range)
    : paging(of, what, what.text(), std::move(range)) {
    shown_.assign(std::size(spool_columns), true);
    if (of.size() == 1) toggle(spool_column::file);
    window_.start(spool_window::first());
}

std::span<const column_choice> spool_model::columns() const {
    return spool_columns;
}
std::span<const char* const> spool_model::help() const {
    return spool_help;
}
bool spool_model::press(char key) {
    if (key == 'x') {
        open_or_close();
    } else if (key == 'X') {
        open_or_close_all();
    } else {
        return false;
    }
    return true;
}

void spool_model::go(std::string_view to) {
    while (to.starts_with(' ')) to.remove_prefix(1);
    while (to.ends_with(' ')) to.remove_suffix(1);
    spool_place typed;
    // 12:34 is a record here, as lines show it, and not a time of day.
    const bool is_record =
        to.find(':') != to.npos && to.find_first_not_of("0123456789:") == to.npos;
    const std::string text = (is_record ? "#" : "") + std::string(to);
    if (const auto fault = parse_spool_place(text, typed); !fault.empty()) {
        const bool is_time = fault.find("is a time") != std::string::npos;
        message_ = "no place: " + std::string(to);
        message_ += is_time ? ": these records have no time" : "";
        message_ += spool_places;
        return;
    }
    if (following_) follow(false);
    const spool_line* const at = here();
    const std::size_t file = at == nullptr ? 0 : at->place().file;
    spool_position wanted{file, typed.page, static_cast<std::size_t>(typed.index)};
    if (typed.what != spool_place::form::record) {
        constexpr std::uint64_t page_bytes = record::spool_record_bytes;
        std::uint64_t offset = typed.offset;
        if (typed.what == spool_place::form::share) {
            const std::uint64_t bytes = of_[file].bytes();
            const auto part = static_cast<long double>(typed.share) / when::whole;
            offset = part >= 1 ? bytes : static_cast<std::uint64_t>(part * bytes);
        }
        wanted = {file, offset / page_bytes, 0};
        // The first item of that spool record that begins there or later.
        spool_walk walk(of_, what_);
        walk.go_to(wanted);
        while (walk.next() == spool_walk::step::item && walk.position().page == wanted.page &&
               walk.position().file == file) {
            wanted.index = walk.position().index;
            if (walk.item().offset >= offset) break;
            ++wanted.index;
        }
    }
    start(wanted, rows_shown() / 3);
    // Behind the last line of a file comes the next file.
    if (here() != nullptr && here()->place().file != file && grow_to(-1)) show(-1);
}

std::optional<spool_choice> spool_model::parse_filter(std::string_view text, std::string& why) {
    return parse_spool_choice(text, why);
}

std::string spool_model::understand(std::string_view sought) {
    std::string why;
    auto known = sought_data::parse(sought, why);
    if (!known) return why;
    if (sought != sought_) hit_.reset();
    sought_data_ = std::move(*known);
    return {};
}

/// In the data of the current item: after or before the current line if the item is open. If not,
/// its data are not all on the screen, so a search that does not begin at a hit also looks at them.
bool spool_model::find_here(const spool_line& from, bool backward) {
    const auto& item = *from.item;
    if (!window_.is_open(item.at)) {
        if (backward || (hit_ && hit_->at == item.at)) return false;
        const auto offset = sought_data_.first_in(item.data);
        if (offset) show_hit(item.at, offset);
        return offset.has_value();
    }
    constexpr std::size_t a_line = spool_line::bytes_in_a_line;
    if (!backward) {
        const auto offset = sought_data_.first_in(item.data, from.part * a_line);
        if (offset) show_hit(item.at, offset);
        return offset.has_value();
    }
    if (from.part == 0) return false;
    const auto offset = sought_data_.last_in(item.data, (from.part - 1) * a_line);
    if (!offset && !sought_data_.is_in_name(item.notice.empty() ? item.type : item.notice)) {
        return false;
    }
    show_hit(item.at, offset);
    return true;
}
void spool_model::find(bool backward) {
    const spool_line from = *here();
    if (find_here(from, backward)) return;
    auto begin = from.place();
    if (!backward) ++begin.index;
    spool_walk walk(of_, what_);
    walk.go_to(begin);
    std::size_t count = 0;
    for (;;) {
        const auto step = backward ? walk.previous() : walk.next();
        if (step == spool_walk::step::end) break;
        if (step == spool_walk::step::passed_over || ++count % items_between == 0) {
            if (!go_on(walk.percent())) {
                message_ = "stopped";
                return;
            }
        }
        if (step != spool_walk::step::item) continue;
        const auto& item = walk.item();
        const auto notice = shown_item::notice_of(item);
        const bool named =
            sought_data_.is_in_name(notice.empty() ? shown_item::type_of(item.record) : notice);
        const auto data = data_of(item);
        const bool open = window_.is_open(walk.position());
        // Of an open item, its line and those of its data come one after the other.
        const auto offset = backward && open ? sought_data_.last_in(data, data.size())
                                             : sought_data_.first_in(data);
        if (!named && !offset) continue;
        const bool by_name = named && (!open || !backward || !offset);
        show_hit(walk.position(), by_name ? std::nullopt : offset);
        return;
    }
    message_ = "not found: " + sought_;
    if (sought_data_.is_only_ascii()) message_ += " (only as ASCII: EBCDIC has no code for it)";
}
/// Goes to the line of an item, or of its data if it is open.
void spool_model::show_hit(const spool_position& at, std::optional<std::size_t> offset) {
    hit_.reset();
    if (offset) hit_ = hit{at, *offset};
    auto number = window_.find(at);
    if (!number) {
        start(at, rows_shown() / 3);
        number = window_.find(at);
        if (!number) return;
    }
    const bool open = window_.is_open(at);
    std::size_t part = 0;
    if (offset && open) part = *offset / spool_line::bytes_in_a_line + 1;
    (void)grow_to(*number + static_cast<std::int64_t>(part));
    show(*number + static_cast<std::int64_t>(part));
    if (offset && !open && *offset >= previewed_) {
        message_ =
            "found at X'" + shown_item::hexadecimal(*offset, 4) + "' of its data: x shows it";
    }
}

void spool_model::open_or_close() {
    if (following_) follow(false);
    const spool_line* const at = here();
    if (at == nullptr) return;
    const auto item = at->item;
    std::int64_t on_row =
        std::max<std::int64_t>(here_ - static_cast<std::int64_t>(at->part) - top_, 0);
    window_.toggle(item->at);
    const bool open = window_.is_open(item->at);
    if (open) {  // as much of it as fits below
        const auto parts = static_cast<std::int64_t>(spool_line::parts_of(*item));
        on_row = std::clamp<std::int64_t>(rows_shown() - 1 - parts, 0, on_row);
    }
    start(item->at, on_row);
    if (open && hit_ && hit_->at == item->at) show_hit(hit_->at, hit_->offset);
}
void spool_model::open_or_close_all() {
    if (following_) follow(false);
    const spool_line* const at = here();
    if (at == nullptr) return;
    const auto item = at->item;
    const std::int64_t on_row =
        std::max<std::int64_t>(here_ - static_cast<std::int64_t>(at->part) - top_, 0);
    window_.toggle_all();
    start(item->at, on_row);
}

/// How many bytes of data fit in so many characters, in the columns that are shown.
std::size_t spool_model::bytes_that_fit(std::size_t width) const {
    constexpr std::size_t least = 4, most = 64;
    std::size_t count = most;
    for (; count > least; --count) {
        std::size_t needed = 0;
        if (shows(spool_column::hex)) needed += hexadecimal_width(count) + 1;
        if (shows(spool_column::ebcdic)) needed += count + 3;
        if (shows(spool_column::ascii)) needed += count + 3;
        if (needed <= width + 1) break;
    }
    return count;
}

/// In the columns that are shown: hexadecimal, EBCDIC, ASCII.
void spool_model::append_data(row& to, const shown_item& of, std::size_t begin,
                              std::size_t count) const {
    const std::size_t there = std::min(of.data.size() - begin, count);
    const auto bytes = std::span(of.data).subspan(begin, there);
    const auto found = sought_data_.parts_in(of.data, begin, there);
    if (shows(spool_column::hex)) {
        cell hex;
        for (std::size_t i = 0; i < there; ++i) {
            if (i != 0 && i % 4 == 0) hex.text += ' ';
            hex.text += shown_item::hexadecimal(std::to_integer<std::uint64_t>(bytes[i]), 2);
        }
        hex.text.resize(hexadecimal_width(count), ' ');
        for (const auto& each : found) {
            hex.found.push_back(
                {hexadecimal_column(each.begin), hexadecimal_column(each.end - 1) + 2});
        }
        to.cells.push_back(std::move(hex));
    }
    const auto add = [&](spool_column which, char edge, char (*character)(std::byte) noexcept) {
        if (!shows(which)) return;
        cell text{std::string(1, edge), style::plain};
        for (const auto byte : bytes) text.text += character(byte);
        text.text += edge;
        text.text.resize(count + 2, ' ');
        for (const auto& each : found) text.found.push_back({each.begin + 1, each.end + 1});
        to.cells.push_back(std::move(text));
    };
    add(spool_column::ebcdic, '*', ebcdic_character);
    add(spool_column::ascii, '|', ascii_character);
}

row spool_model::row_of_data(const spool_line& of) const {
    row made;
    made.in_columns = false;
    const auto& item = *of.item;
    if (item.data.empty()) {
        made.cells.push_back({" (no data)", style::faint});
        return made;
    }
    const std::size_t begin = (of.part - 1) * spool_line::bytes_in_a_line;
    made.cells.push_back({' ' + shown_item::hexadecimal(begin, 4), style::faint});
    append_data(made, item, begin, spool_line::bytes_in_a_line);
    return made;
}

row spool_model::row_of(std::int64_t number) {
    const spool_line& of = window_.at(number);
    row made = of.part != 0 ? row_of_data(of) : row();
    made.here = number == here_;
    made.marked = is_marked(of);
    if (of.part != 0) return made;
    const auto& item = *of.item;
    const auto add = [&](spool_column which, style how, std::string text, bool is_number = false) {
        if (shows(which)) made.cells.push_back({std::move(text), how, is_number});
    };
    add(spool_column::file, style::file, file_name(of_.name(item.at.file)));
    add(spool_column::offset, style::faint, shown_item::hexadecimal(item.offset, 8), true);
    add(spool_column::record, style::faint,
        std::to_string(item.at.page) + ':' + std::to_string(item.at.index));
    if (!item.notice.empty()) {
        made.cells.push_back({item.notice, style::bad});
        made.cells.back().found = sought_data_.parts_in_name(item.notice);
        return made;
    }
    if (shows(spool_column::type)) {
        made.cells.push_back({item.type, style::name});
        made.cells.back().found = sought_data_.parts_in_name(item.type);
    }
    add(spool_column::code, style::plain, item.code);
    add(spool_column::length, style::plain,
        std::to_string(item.data.size()) + (item.data.size() == 1 ? " byte " : " bytes"), true);
    made.cells.emplace_back();  // its data, when the room for it is known
    return made;
}

std::vector<row> spool_model::rows() {
    auto all = paging::rows();
    const auto is_record = [this](std::size_t i) {
        const auto& of = window_.at(top_ + static_cast<std::int64_t>(i));
        return of.part == 0 && of.item->notice.empty();
    };
    std::size_t used = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!is_record(i)) continue;
        std::size_t width = 1;
        for (const auto& each : all[i].cells) width += characters(each.text) + 1;
        used = std::max(used, width - 1);  // one cell is empty yet
    }
    previewed_ = bytes_that_fit(width_ > used ? width_ - used : 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!is_record(i)) continue;
        all[i].cells.pop_back();
        append_data(all[i], *window_.at(top_ + static_cast<std::int64_t>(i)).item, 0, previewed_);
    }
    return all;
}

std::string spool_model::status() {
    std::string text = status_of_files();
    if (const spool_line* at = here()) {
        const auto& item = *at->item;
        const std::uint64_t bytes = of_[item.at.file].bytes();
        const double percent =
            bytes == 0 ? 0 : 100.0 * static_cast<double>(item.offset) / static_cast<double>(bytes);
        char share[16];
        (void)std::snprintf(share, sizeof share, "%.1f%%", std::min(percent, 100.0));
        text += "  " + std::to_string(item.at.page) + ':' + std::to_string(item.at.index) +
                "  @0x" + shown_item::hexadecimal(item.offset, 1) + "  " + share;
    }
    text += status_of_choice();
    // The rest of the files is not known.
    if (const auto count = of_.damages().size(); count != 0) {
        text += "  " + std::to_string(count) + " damaged so far";
    }
    return text;
}

void spool_model::look_at_ends() {
    if (!following_) return;
    for (std::size_t i = 0; i < of_.size(); ++i) {
        const std::uint64_t end = of_[i].end();
        if (end == 0 || of_[i].bytes() / record::spool_record_bytes >= end) continue;
        spool_walk walk(of_, what_);
        walk.go_to({i, end - 1, 0});
    }
}

}  // namespace trace_reduce::browse
