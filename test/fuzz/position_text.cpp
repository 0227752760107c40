// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Places and clock offsets as people write them: what is understood reads the same when it is
/// written out again, and means something in any trace, or nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <fuzz/targets.hpp>
#include <reduce/file_builder.hpp>
#include <trace_reduce/position/range_finder.hpp>
#include <trace_reduce/position/when.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include "../../examples/trace_reduce/cptrap/choice.hpp"
#include "../../examples/trace_reduce/position/offset_text.hpp"
#include "../../examples/trace_reduce/position/when_text.hpp"

namespace trace_ring_test::fuzz {

namespace of_position_text {
namespace {

namespace reduce = trace_ring::reduce;
using trace_reduce::when;

std::vector<buffer> seeds() {
    std::vector<buffer> out;
    for (const std::string_view text : {"2026-11-22T13:00:03.25Z",
                                        "2024-02-29 23:59:59.999999999-03:30",
                                        "2261-12-31T23:59+2359",
                                        "1970-01-01",
                                        "13:00:03,5",
                                        "13:00+05",
                                        "+1.5s",
                                        "+200ms",
                                        "+1h30m0.5us",
                                        "+106751d",
                                        "-2s",
                                        "25%",
                                        "99.999999999%",
                                        "#3:1500",
                                        "3:1500",
                                        "#18446744073709551615",
                                        "0:263",
                                        "@20480",
                                        "@0x5000",
                                        "a=1.5",
                                        "2=-0.000000001",
                                        "a=b=+3200000000",
                                        "msg.sent.id,msg.received.id",
                                        "call.id"}) {
        out.emplace_back(text.begin(), text.end());
    }
    return out;
}

template <class... Values>
std::string print(const char* format, Values... values) {
    char text[96];
    const int length = std::snprintf(text, sizeof text, format, values...);
    return {text, static_cast<std::size_t>(length)};
}

std::string clock_text(const when& what) {
    const auto ns = static_cast<unsigned long long>(what.ns);
    std::string out = print("%02llu:%02llu:%02llu.%09llu", ns / 3'600'000'000'000,
                            ns / 60'000'000'000 % 60, ns / 1'000'000'000 % 60, ns % 1'000'000'000);
    if (what.zone) {
        const int size = *what.zone < 0 ? -*what.zone : *what.zone;
        out += print("%c%02d:%02d", *what.zone < 0 ? '-' : '+', size / 3600, size / 60 % 60);
    }
    return out;
}
/// One way to write it.
std::string written(const when& what) {
    switch (what.what) {
        case when::form::date: {
            int year = 1970;
            int month = 1;
            std::int64_t day = what.day;
            for (; day >= trace_reduce::impl::days_of(year + 1, 1, 1) -
                              trace_reduce::impl::days_of(year, 1, 1);
                 ++year) {
                day -= trace_reduce::impl::days_of(year + 1, 1, 1) -
                       trace_reduce::impl::days_of(year, 1, 1);
            }
            for (; day >= trace_reduce::impl::days_in(year, month); ++month) {
                day -= trace_reduce::impl::days_in(year, month);
            }
            return print("%04d-%02d-%02dT", year, month, static_cast<int>(day) + 1) +
                   clock_text(what);
        }
        case when::form::time_of_day:
            return clock_text(what);
        case when::form::since_begin:
            return print("+%lldns", static_cast<long long>(what.ns));
        case when::form::before_end:
            return print("-%lldns", static_cast<long long>(what.ns));
        case when::form::per_cent:
            return print("%llu.%09llu%%",
                         static_cast<unsigned long long>(what.share / 1'000'000'000),
                         static_cast<unsigned long long>(what.share % 1'000'000'000));
        case when::form::record:
            break;
    }
    return what.lane == 0 ? print("#%llu", static_cast<unsigned long long>(what.at))
                          : print("#%u:%llu", what.lane, static_cast<unsigned long long>(what.at));
}

/// A sound trace, one whose clock's readings are nonsense, and one that has none.
reduce::trace_file& trace(std::size_t which) {
    static const auto made = [](std::uint64_t monotonic, std::uint64_t realtime, int readings) {
        file_builder b;
        if (readings > 0) b.clock_reading(50, 7, realtime);
        if (readings > 1) b.clock_reading(1'000'000'050, monotonic, realtime + 1'000'000'000);
        const auto& event = b.event({1, "tick", {{"n"}}});
        const auto lane = b.lane(b.process(1), 11);
        b.open(lane, 100);
        for (std::uint64_t i = 0; i < 20; ++i) b.record(lane, 100 + i * 1000, event, {i});
        return b;
    };
    static const file_builder images[] = {made(1'000'000'007, 1'700'000'000'000'000'000, 2),
                                          made(~std::uint64_t{0} >> 1, ~std::uint64_t{0} >> 1, 2),
                                          made(0, std::uint64_t{1} << 63, 1), made(0, 0, 0)};
    static reduce::trace_file files[] = {
        reduce::trace_file::from(images[0].bytes()), reduce::trace_file::from(images[1].bytes()),
        reduce::trace_file::from(images[2].bytes()), reduce::trace_file::from(images[3].bytes())};
    return files[which];
}

/// A place in a CPTRAP file.
void check_spool_place(std::string_view text) {
    using trace_reduce::parse_spool_place;
    using trace_reduce::spool_place;
    const auto same = [](const spool_place& a, const spool_place& b) {
        return a.what == b.what && a.page == b.page && a.index == b.index && a.offset == b.offset &&
               a.share == b.share;
    };
    const spool_place untouched{spool_place::form::share, 1, 2, 3, 4};
    spool_place place = untouched;
    const std::string wrong = parse_spool_place(text, place);
    if (!wrong.empty()) {
        expect(same(place, untouched), "what is no place changes none");
        return;
    }
    std::string again;
    switch (place.what) {
        case spool_place::form::record:
            again = print("#%llu:%llu", static_cast<unsigned long long>(place.page),
                          static_cast<unsigned long long>(place.index));
            break;
        case spool_place::form::offset:
            again = print("@0x%llX", static_cast<unsigned long long>(place.offset));
            break;
        case spool_place::form::share:
            again =
                print("%llu.%09llu%%", static_cast<unsigned long long>(place.share / 1'000'000'000),
                      static_cast<unsigned long long>(place.share % 1'000'000'000));
            break;
    }
    spool_place same_place;
    const std::string not_again = parse_spool_place(again, same_place);
    // A record number of 64 bits alone is a spool record; with one in it, a lane's 32 bits are.
    if (!not_again.empty() && place.what == spool_place::form::record && place.index == 0) {
        again = print("#%llu", static_cast<unsigned long long>(place.page));
        expect(parse_spool_place(again, same_place).empty(), "it reads again");
    } else {
        expect(not_again.empty(), "it reads again");
    }
    expect(same(place, same_place), "it reads the same when it is written out");
}

void run(input data) {
    const std::string_view text(reinterpret_cast<const char*>(data.data()),
                                std::min<std::size_t>(data.size(), 512));
    if (const auto what = trace_reduce::parse_when(text)) {
        expect(what->ns >= 0 && what->share <= when::whole, "numbers are within their bounds");
        const auto again = trace_reduce::parse_when(written(*what));
        expect(again && *again == *what, "it reads the same when it is written out");
        for (std::size_t i = 0; i < 4; ++i) {
            const auto ranges = trace_reduce::range_finder(trace(i));
            const auto at = ranges.find(*what);
            trace_reduce::common_span whole = ranges.span();
            (void)ranges.find(*what, whole);
            whole = {INT64_MIN, INT64_MIN, INT64_MAX};
            (void)ranges.find(*what, whole);
            if (!at) {
                expect(i != 0 || what->what == when::form::date ||
                           what->what == when::form::time_of_day,
                       "in a sound trace all but odd local times mean something");
                continue;
            }
            reduce::filter before;
            reduce::filter after;
            expect(ranges.limit(before, {}, what) && ranges.limit(after, what, {}),
                   "what is found limits a range");
            std::uint64_t parts = 0;
            for (const auto& half : {before, after}) {
                auto cursor = trace(i).forward(half);
                while (const auto* item = cursor.next()) {
                    parts += std::holds_alternative<reduce::record_view>(*item) ? 1 : 0;
                }
            }
            expect(parts == 20, "what is before and what is not are all");
        }
    }
    using namespace trace_reduce::position;
    if (const auto offset = parse_offset(text)) {
        const bool back = offset->ns < 0;
        const auto size = static_cast<unsigned long long>(back ? -offset->ns : offset->ns);
        const auto again =
            parse_offset(offset->file + print("=%s%llu.%09llu", back ? "-" : "",
                                              size / 1'000'000'000, size % 1'000'000'000));
        expect(again && again->ns == offset->ns && again->file == offset->file,
               "an offset reads the same when it is written out");
    }
    if (const auto rule = parse_match(text)) {
        std::string again = rule->sent + '.' + rule->sent_field;
        if (!rule->received.empty()) again += ',' + rule->received + '.' + rule->received_field;
        expect(again == text, "a rule has all of its text");
    }
    check_spool_place(text);
}

void mutate(buffer& what, dice& random) {
    constexpr std::string_view signs = "0123456789:.,-+TZ# %=smhdnuian\xC2\xB5";
    for (std::size_t times = 1 + random.below(3); times != 0; --times) {
        const std::size_t at = random.below(what.size() + 1);
        const auto sign = static_cast<std::uint8_t>(signs[random.below(signs.size())]);
        const auto where = what.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t kind = random.below(3);
        if (kind == 0 && at < what.size()) {
            what.erase(where);
        } else if (kind == 1 && at < what.size()) {
            what[at] = sign;
        } else if (what.size() < 256) {
            what.insert(where, sign);
        }
    }
}

}  // namespace
}  // namespace of_position_text

const target position_text_target{"position_text", &of_position_text::seeds, &of_position_text::run,
                                  &of_position_text::mutate, 10000};

}  // namespace trace_ring_test::fuzz
