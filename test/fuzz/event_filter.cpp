// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Globs: the matches are those of a second, slow matcher, and the time is proportional to the
/// product of both lengths at most, however many stars and brackets there are.

#include <time.h>

#include <string_view>

#include <fuzz/targets.hpp>
#include <trace_ring/reduce/filter.hpp>

namespace trace_ring_test::fuzz {

namespace of_event_filter {
namespace {

constexpr std::size_t longest = 512;

/// Input: the glob, a newline, the text.
std::vector<buffer> seeds() {
    std::vector<buffer> out;
    const auto add = [&out](std::string_view text) { out.emplace_back(text.begin(), text.end()); };
    add("*\norder.sent");
    add("order.*\norder.sent");
    add("*.s[a-f]?t\norder.sent");
    add("[!a-m]*[^x]\\*\norder*");
    add("[]x]*[a-]\n]-");
    add("*a*a*a*a*a*b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    add("[z-a][\\]]\n\\]");
    add("*[a\nxx[a");
    const std::string many(longest, '[');
    add("*" + many + "\n" + many + "x");
    std::string stars;
    for (std::size_t i = 0; i < longest / 2; ++i) stars += "*a";
    add(stars + "b\n" + std::string(longest, 'a'));
    return out;
}

/// One element of a glob against one character, from the definition. Sets where the next begins.
bool one(std::string_view glob, std::size_t at, char c, std::size_t& next) {
    const auto number = [](char of) { return static_cast<unsigned char>(of); };
    next = at + 1;
    if (glob[at] == '?') return true;
    if (glob[at] == '\\' && at + 1 < glob.size()) {
        next = at + 2;
        return glob[at + 1] == c;
    }
    if (glob[at] != '[') return glob[at] == c;
    std::size_t first = at + 1;
    const bool negated = first < glob.size() && (glob[first] == '!' || glob[first] == '^');
    if (negated) ++first;
    std::size_t end = first + 1;  // a bracket that comes first is one of the set
    while (end < glob.size() && glob[end] != ']') ++end;
    if (end >= glob.size()) return c == '[';
    next = end + 1;
    bool in = false;
    while (first < end) {
        if (first + 2 < end && glob[first + 1] == '-') {
            in = in || (number(glob[first]) <= number(c) && number(c) <= number(glob[first + 2]));
            first += 3;
        } else {
            in = in || glob[first] == c;
            ++first;
        }
    }
    return in != negated;
}

/// By dynamic programming: for each place in the glob, whether the rest matches the rest.
bool matches(std::string_view glob, std::string_view text) {
    std::vector<bool> reached(glob.size() + 1), coming(glob.size() + 1);
    reached[0] = true;
    for (std::size_t t = 0;; ++t) {
        for (std::size_t g = 0; g < glob.size(); ++g) {
            if (reached[g] && glob[g] == '*') reached[g + 1] = true;
        }
        if (t == text.size()) return reached[glob.size()];
        coming.assign(glob.size() + 1, false);
        for (std::size_t g = 0; g < glob.size(); ++g) {
            if (!reached[g]) continue;
            std::size_t next = 0;
            if (glob[g] == '*') {
                coming[g] = true;
            } else if (one(glob, g, text[t], next)) {
                coming[next] = true;
            }
        }
        reached.swap(coming);
    }
}

double seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void run(input data) {
    const std::string_view all(reinterpret_cast<const char*>(data.data()), data.size());
    const std::size_t line = all.find('\n');
    const std::string_view glob = all.substr(0, line).substr(0, longest);
    const std::string_view text =
        line == std::string_view::npos ? glob : all.substr(line + 1).substr(0, longest);
    const double before = seconds();
    const bool found = trace_ring::matches_glob(glob, text);
    const double took = seconds() - before;
    // A hundred times what it takes, for slow machines and sanitizers.
    const double steps = static_cast<double>((glob.size() + 1) * (text.size() + 1));
    expect(took < 0.5 + steps * 300e-9, "time is that of both lengths' product");
    if (glob.size() * text.size() < 20'000) {
        expect(found == matches(glob, text), "the slow matcher says the same");
    }
    trace_ring::reduce::filter some;
    some.events = {std::string(glob), std::string(text)};
    expect(!found || some.wants_event(text), "a filter wants what one of its globs matches");
}

void mutate(buffer& what, dice& random) {
    constexpr std::string_view signs = "**??[[]]!^-\\\nabcz.\xFF\x80";
    for (std::size_t times = 1 + random.below(6); times != 0; --times) {
        const std::size_t at = random.below(what.size() + 1);
        const auto sign = static_cast<std::uint8_t>(signs[random.below(signs.size())]);
        const auto where = what.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t kind = random.below(4);
        if (kind == 0 && at < what.size()) {
            what.erase(where);
        } else if (kind == 1 && at < what.size()) {
            what[at] = sign;
        } else if (what.size() < 2 * longest) {
            what.insert(where, random.below(64) == 0 ? random.below(longest) : 1, sign);
        }
    }
}

}  // namespace
}  // namespace of_event_filter

const target event_filter_target{"event_filter", &of_event_filter::seeds, &of_event_filter::run,
                                 &of_event_filter::mutate, 10000};

}  // namespace trace_ring_test::fuzz
