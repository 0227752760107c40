// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.
#pragma once

/// @file
/// Images of guest storage with DAS trace tables, and trace-reduce --das run on them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <examples/trace_reduce/trace_reduce_run.hpp>
#include <reduce/scratch_file.hpp>
#include <trace_ring/das/guest_memory.hpp>
#include <trace_ring/das/table.hpp>

namespace das_images {

namespace das = trace_ring::das;
namespace record = trace_ring::record;
using trace_ring_test::reduced;
using trace_ring_test::run_trace_reduce;
using trace_ring_test::scratch_file;

inline constexpr std::uint32_t header = 0x00020008;

/// Guest storage of zeros with a designation and a header, byte by byte.
class image {
public:
    explicit image(std::size_t bytes = 0x21000) : words_(bytes / 8) {}

    image& controls(std::uint32_t current, std::uint32_t first, std::uint32_t last,
                    std::uint32_t designation = 0x80000000 | header) {
        put(84, designation);
        put(header, current);
        put(header + 4, first);
        put(header + 8, last);
        return *this;
    }
    image& put(std::uint32_t address, std::uint32_t word) {
        for (std::uint32_t i = 0; i < 4; ++i)
            bytes()[address + i] = static_cast<std::byte>(word >> (24 - 8 * i));
        return *this;
    }
    // Traces entries with numbers from `from` on, as the machine does.
    image& trace(unsigned count, std::uint32_t from = 1) {
        trace_ring::guest_memory memory(bytes());
        for (unsigned i = 0; i < count; ++i) {
            record::das_entry entry;
            record::store_big(entry.payload, 0, std::uint32_t{from + i});
            BOOST_TEST_REQUIRE(das::trace(memory, entry).traced());
        }
        return *this;
    }
    [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span{words_}); }
    void save(const scratch_file& to) {
        to.write({reinterpret_cast<const char*>(bytes().data()), bytes().size()});
    }

private:
    std::vector<std::uint64_t> words_;
};

[[nodiscard]] inline reduced show(image& of,
                                  const std::vector<std::string>& more = {"--das", "word84"}) {
    const scratch_file file;
    of.save(file);
    std::vector<std::string> arguments{file.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto out = run_trace_reduce(arguments);
    // The file's name is different each time.
    for (std::string* text : {&out.output, &out.errors})
        for (std::size_t at = 0; (at = text->find(file.path(), at)) != std::string::npos;)
            text->replace(at, file.path().size(), "FILE");
    return out;
}

[[nodiscard]] inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}
/// Of a line of text: "010020 1", "010020 zeros 2", "010020 missing 2", each with " current".
[[nodiscard]] inline std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> out;
    for (const auto& line : lines_of(text)) {
        const bool entry = line.size() > 16 && line.compare(6, 2, "  ") == 0 && line[8] != '-';
        const auto dashes = line.find("  -- ");
        if (line.find(':') == 6 || (!entry && dashes != 6)) continue;
        std::string part = line.substr(0, 6) + ' ';
        if (entry) {
            part += std::to_string(std::stoul(line.substr(8, 8), nullptr, 16));
        } else {
            part += line.find("of zeros") != std::string::npos ? "zeros " : "missing ";
            part += std::to_string(std::stoul(line.substr(11)));
        }
        if (line.ends_with("  current")) part += " current";
        out.push_back(part);
    }
    return out;
}
[[nodiscard]] inline bool has_line(const std::string& text, std::string_view begin) {
    const auto lines = lines_of(text);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(begin); });
}

}  // namespace das_images
