// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file
/// Byte code of clauses, as any bytes: what the checker accepts runs, ends, and does in its output
/// and on its stack what the plainest interpreter does. And trace points as text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <fuzz/targets.hpp>
#include <point/naive_records.hpp>
#include <point/random_code.hpp>
#include <trace_ring/point/machine/check.hpp>
#include <trace_ring/point/machine/run.hpp>
#include <trace_ring/point/specification.hpp>

namespace trace_ring_test::fuzz {

namespace of_clause_code {
namespace {

namespace point = trace_ring::point;

// An input is its purpose in two bytes, then instructions.

std::vector<buffer> seeds() {
    std::vector<buffer> out;
    std::mt19937_64 random(1);
    for (unsigned n = 0; n < 128; ++n) {
        const bool of_records = n % 2 != 0;
        const test::random_code made(random, 0x1000,
                                     of_records ? &test::fake_records::bounds : nullptr);
        buffer seed(2 + made.code.size() * sizeof(point::instruction));
        seed[0] = static_cast<std::uint8_t>((made.as.is_predicate ? 1 : 0) + (of_records ? 2 : 0));
        seed[1] = static_cast<std::uint8_t>(made.as.output_bytes);
        std::memcpy(seed.data() + 2, made.code.data(), seed.size() - 2);
        out.push_back(std::move(seed));
    }
    for (const std::string_view text :
         {"@@uft:*:libc.so.6:malloc:entry", "@@a:\"b:c\":d", "@@begin"})
        out.emplace_back(text.begin(), text.end());
    return out;
}

void check_specification(input data) {
    const std::string_view text(reinterpret_cast<const char*>(data.data()),
                                std::min<std::size_t>(data.size(), 256));
    point::specification::mistake why;
    const auto parsed = point::specification::parse(text, why);
    if (why.what != nullptr) {
        expect(why.at <= text.size(), "a mistake is in the text, or at its end");
        return;
    }
    const auto fields = parsed.fields();
    expect(fields.size() == 1 || fields.size() >= 3, "fields");
    std::size_t bytes = 2 + fields.size() - 1;
    for (const auto field : fields) {
        expect(!field.empty() && field.data() >= text.data() &&
                   field.data() + field.size() <= text.data() + text.size(),
               "each field lies in the text");
        bytes += field.size();
    }
    expect(bytes <= text.size() && text.size() <= bytes + 2 * fields.size(),
           "all of it, but quotes");
    static_cast<void>(parsed.wants(fields));
}

/// Some of many records, each as alone.
void check_records(point::code code, std::mt19937_64& random) {
    test::fake_records records(random);
    const std::uint64_t asked = random() | 1;
    std::vector<point::record_column> stack(test::fake_records::bounds.depth);
    point::run(code, records, asked, stack);
    for (std::size_t k = 0; k < point::records_at_once; k += 7) {
        if ((asked >> k & 1) == 0) continue;
        test::naive_record plain(code, records, k);
        plain.run();
        expect(plain.met_nan || plain.value == stack[0][k], "two interpreters agree on records");
    }
}

void run(input data) {
    check_specification(data);
    if (data.size() < 2) return;
    const bool of_records = (data[0] & 2U) != 0;
    const bool is_predicate = of_records || (data[0] & 1U) != 0;
    const point::purpose as{is_predicate ? 0U : data[1], is_predicate,
                            of_records ? &test::fake_records::bounds : nullptr};
    std::vector<point::instruction> code((data.size() - 2) / sizeof(point::instruction));
    if (!code.empty())
        std::memcpy(code.data(), data.data() + 2, code.size() * sizeof(point::instruction));
    if (point::find_fault(code, as)) return;
    std::mt19937_64 random(data.size());
    if (of_records) return check_records(code, random);
    test::fake_firing at = test::random_firing(random);
    std::vector<std::byte> output(as.output_bytes);  // its end is the heap's, which is guarded
    const auto done = point::run(code, at, output);
    test::naive plain(code, at, as.output_bytes);
    plain.run();
    expect(done.value == plain.value && done.faults == plain.faults && output == plain.output,
           "two interpreters agree");
}

/// A byte here and there, or an instruction copied over another.
void mutate(buffer& what, dice& random) {
    if (what.empty()) return;
    for (std::size_t times = 1 + random.below(3); times != 0; --times) {
        const std::size_t count = (what.size() - std::min<std::size_t>(what.size(), 2)) / 8;
        if (count < 2 || random.below(3) != 0) {
            auto& byte = what[random.below(what.size())];
            byte = static_cast<std::uint8_t>(byte ^ 1U << random.below(8));
        } else {
            std::memmove(&what[2 + 8 * random.below(count)], &what[2 + 8 * random.below(count)], 8);
        }
    }
}

}  // namespace
}  // namespace of_clause_code

const target clause_code_target{"clause_code", &of_clause_code::seeds, &of_clause_code::run,
                                &of_clause_code::mutate, 20'000};

}  // namespace trace_ring_test::fuzz
