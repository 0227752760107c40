// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

/// @file Reading a trace of 256 MiB (1 MiB for draining) with records of 24 bytes, compared with
/// copying it, per record: sub-buffers summed in place; copied, checked and walked; decoded lane by
/// lane, forward and backward; lanes merged by time; tested for a field, or a sum, by a condition
/// that selects no record, in memory and in a file. Also finding places in a trace of 1 GiB,
/// compared with reading all of it, and writing a trace of 1 MiB in each format.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <trace_ring/draining.hpp>
#include <trace_ring/exporter/json.hpp>
#include <trace_ring/exporter/text.hpp>
#include <trace_ring/exporter/text/append.hpp>
#include <trace_ring/format/records.hpp>
#include <trace_ring/reduce/trace_file.hpp>
#include <trace_ring/trace_ring.hpp>

#include "measure.hpp"
#include "trace_reduce/exporting/chrome.hpp"
#include "trace_reduce/exporting/csv.hpp"
#include "trace_reduce/exporting/perfetto.hpp"
#include "trace_reduce/position/range_finder.hpp"
#include "trace_reduce/where/names.hpp"
#include "trace_reduce/where/predicate.hpp"

namespace {

struct sample : trace_ring::event<"sample", trace_ring::field<"first", std::uint64_t>,
                                  trace_ring::field<"second", std::uint64_t>> {};

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t sub_buffer = trace_ring::default_sub_buffer_bytes;

/// The large one. Without need nobody has to wait for it.
[[nodiscard]] std::size_t large() {
    return bench::only_tried() ? 4 * MiB : 256 * MiB;
}
[[nodiscard]] std::size_t one_mebibyte() {
    return MiB;
}
/// Records that fill the sub-buffers of so many bytes once.
[[nodiscard]] std::int64_t held(std::size_t bytes) {
    return static_cast<std::int64_t>(bytes / sub_buffer * ((sub_buffer - 64) / 24));
}

enum class writers { in_turn, together };

/// A full trace in memory, by one thread or by several.
class trace {
public:
    trace(std::size_t size, int threads, writers how = writers::in_turn)
        : trace(size, held(size), threads, how) {}
    trace(std::size_t size, std::int64_t records, int threads, writers how)
        : size_(size), recorder_{{.size = size, .sub_buffer_bytes = sub_buffer}} {
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back([this, records, threads] {
                for (std::int64_t i = 0; i < records / threads; ++i) {
                    recorder_.record<sample>(static_cast<std::uint64_t>(i), std::uint64_t{7});
                }
            });
            if (how == writers::in_turn) all.back().join();
        }
        for (auto& each : all) {
            if (each.joinable()) each.join();
        }
    }
    [[nodiscard]] std::span<const std::byte> bytes() const {
        const auto [from, count] = recorder_.bytes();
        return {from, count};
    }
    [[nodiscard]] std::span<const std::byte> sub_buffers() const { return bytes().last(size_); }

private:
    std::size_t size_;
    trace_ring::recorder recorder_;
};

[[nodiscard]] const trace& of_one_lane() {
    static const trace made(large(), 1);
    return made;
}
[[nodiscard]] const trace& small() {
    static const trace made(MiB, 1);
    return made;
}
[[nodiscard]] const trace& of_eight_lanes() {
    static const trace made(large(), 8);
    return made;
}

[[nodiscard]] std::size_t largest() {
    return bench::only_tried() ? 16 * MiB : 1024 * MiB;
}
/// Records of four lanes. Not all that there is room for: what lanes leave of the positions that
/// they draw ahead is left over, and nothing shall be overwritten.
[[nodiscard]] std::int64_t held_by_four() {
    return held(largest()) / 32 * 31;
}
[[nodiscard]] const trace& of_four_lanes() {
    static const trace made(largest(), held_by_four(), 4, writers::together);
    return made;
}

/// The floor: the same bytes in a single copy.
template <const trace& (*From)()>
struct copied {
    std::span<const std::byte> from = From().sub_buffers();
    std::vector<std::byte> to = std::vector<std::byte>(from.size());

    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::memcpy(to.data(), from.data(), from.size());
        benchmark::ClobberMemory();
    }
};

/// The same bytes, summed as words where they lie, by plain loads.
template <const trace& (*From)()>
struct summed {
    std::span<const std::byte> from = From().sub_buffers();

    [[gnu::noinline]] void operator()(std::uint64_t) {
        const auto* const words = reinterpret_cast<const std::uint64_t*>(from.data());
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < from.size() / 8; ++i) sum += words[i];
        benchmark::DoNotOptimize(sum);
    }
};

/// Copied into memory that stays in the cache: what reading by sub-buffers may come near to.
struct copied_by_sub_buffer {
    std::vector<std::byte> to = std::vector<std::byte>(sub_buffer);

    [[gnu::noinline]] void operator()(std::uint64_t) {
        const auto from = of_one_lane().sub_buffers();
        for (std::size_t at = 0; at < from.size(); at += sub_buffer) {
            std::memcpy(to.data(), from.data() + at, sub_buffer);
            benchmark::ClobberMemory();
        }
    }
};

struct copied_and_checked {
    std::vector<std::uint64_t> to = std::vector<std::uint64_t>(sub_buffer / 8);

    [[gnu::noinline]] void operator()(std::uint64_t) {
        const auto from = of_one_lane().sub_buffers();
        for (std::size_t at = 0; at < from.size(); at += sub_buffer) {
            trace_ring::sub_buffer_copy copy;
            benchmark::DoNotOptimize(trace_ring::copy_sub_buffer(from.data() + at, to, copy));
        }
    }
};

struct copied_and_walked {
    std::vector<std::uint64_t> to = std::vector<std::uint64_t>(sub_buffer / 8);

    [[gnu::noinline]] void operator()(std::uint64_t) {
        const auto from = of_one_lane().sub_buffers();
        std::uint64_t sum = 0;
        for (std::size_t at = 0; at < from.size(); at += sub_buffer) {
            trace_ring::sub_buffer_copy copy;
            if (trace_ring::copy_sub_buffer(from.data() + at, to, copy) !=
                trace_ring::copy_result::copied) {
                continue;
            }
            benchmark::DoNotOptimize(trace_ring::walk_records(
                to, copy, [&](std::size_t word, std::uint64_t time, std::uint32_t) {
                    sum += time + to[word + 1];
                }));
        }
        benchmark::DoNotOptimize(sum);
    }
};

/// Eight parallel sums, so that the loop itself does not matter: the placement of a loop that adds
/// two words per turn can halve its rate.
[[gnu::always_inline]] inline std::uint64_t sum_of(std::span<const std::uint64_t> words) {
    std::uint64_t sums[8] = {};
    std::size_t at = 0;
    for (; at + 8 <= words.size(); at += 8) {
        for (std::size_t k = 0; k < 8; ++k) sums[k] += words[at + k];
    }
    for (; at < words.size(); ++at) sums[0] += words[at];
    for (std::size_t k = 1; k < 8; ++k) sums[0] += sums[k];
    return sums[0];
}

/// A ring that a session empties, and that is filled again between two measurements: all but the
/// sub-buffer that its writer is about to fill, and one more, for what time records take the place
/// of. Times are sampled, which is quicker to write.
struct sampling : trace_ring::policies<trace_ring::clock::sampled<16>> {};
template <std::size_t (*Size)()>
class drained_ring {
public:
    /// Records of one filling.
    [[nodiscard]] static std::int64_t records() { return held(Size()) - 2 * held(sub_buffer); }
    void prepare() {
        for (std::uint64_t n = 0; n < static_cast<std::uint64_t>(records()); ++n) {
            recorder_.record<sample>(n, std::uint64_t{7});
        }
        // The caches as each copy that this is divided by finds them: after the one before.
        const auto [from, size] = recorder_.bytes();
        std::memcpy(copy_.data(), from + (size - Size()), Size());
        benchmark::ClobberMemory();
    }

protected:
    void check(std::uint64_t drained) {
        // The last of them are in a sub-buffer that is not closed yet, those of the time before
        // are.
        if (drained + static_cast<std::uint64_t>(held(sub_buffer)) <
                static_cast<std::uint64_t>(records()) ||
            recorder_.statistics().overwritten != 0 || session_.lost().total() != 0) {
            throw std::runtime_error("not all was drained");
        }
    }

private:
    std::vector<std::byte> copy_ = std::vector<std::byte>(Size());
    trace_ring::basic_recorder<sampling> recorder_{
        {.size = Size(), .sub_buffer_bytes = sub_buffer}};

protected:
    trace_ring::drain::session<trace_ring::drain_source> session_{recorder_};
};

/// Sub-buffers handed over in place, every byte of theirs summed as words: the records' by plain
/// loads, the header's by atomic ones, as writers may look at the state.
template <std::size_t (*Size)()>
struct drained_and_summed : drained_ring<Size> {
    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::uint64_t sum = 0;
        std::uint64_t count = 0;
        this->session_.for_each([&](const trace_ring::drained_sub_buffer& portion) {
            const auto words = portion.words();
            std::uint64_t of_this = sum_of(words);
            const auto* const header = words.data() - sizeof(trace_ring::sub_buffer_header) / 8;
            for (std::size_t at = 0; at < sizeof(trace_ring::sub_buffer_header); at += 8) {
                of_this += trace_ring::word_at<std::uint64_t>(header, at).load(trace_ring::relaxed);
            }
            sum += of_this;
            count += portion.records();
        });
        benchmark::DoNotOptimize(sum);
        this->check(count);
    }
};

/// Every record visited, its time and a field looked at.
template <std::size_t (*Size)()>
struct drained_and_visited : drained_ring<Size> {
    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::uint64_t sum = 0;
        this->check(this->session_.for_each_record([&](const trace_ring::drained_record& record) {
            sum += record.time + record.payload[0];
        }));
        benchmark::DoNotOptimize(sum);
    }
};

/// Item by item.
template <bool Forward>
struct decoded_singly {
    trace_ring::reduce::trace_file file =
        trace_ring::reduce::trace_file::from(of_one_lane().bytes());

    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::uint64_t sum = 0;
        auto cursor = Forward ? file.forward() : file.backward();
        while (const auto* item = cursor.next()) {
            if (const auto* record = std::get_if<trace_ring::reduce::record_view>(item)) {
                sum += record->time() + record->field(0).u64();
            }
        }
        benchmark::DoNotOptimize(sum);
    }
};

/// Item by item, and written in a format.
template <class Writer>
struct exported {
    trace_ring::reduce::trace_file file = trace_ring::reduce::trace_file::from(small().bytes());
    trace_ring::exporter::text_buffer out;

    [[gnu::noinline]] void operator()(std::uint64_t) {
        out.clear();
        auto cursor = file.forward();
        if constexpr (std::is_constructible_v<Writer, const trace_ring::reduce::timeline&>) {
            Writer writer(file.time());
            while (const auto* item = cursor.next()) writer.append(out, *item);
        } else {
            Writer writer;
            const std::size_t from = writer.add(file.about(), "bench");
            writer.begin(out);
            while (const auto* item = cursor.next()) writer.append(out, from, *item);
            writer.end(out);
        }
        benchmark::DoNotOptimize(out.size());
    }
};

template <bool Forward, auto Of>
struct decoded {
    trace_ring::reduce::trace_file file = trace_ring::reduce::trace_file::from(Of().bytes());

    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::uint64_t sum = 0;
        auto cursor = Forward ? file.forward() : file.backward();
        cursor.for_each([&sum]<class T>(const T& item) {
            if constexpr (std::is_same_v<T, trace_ring::reduce::record_view>) {
                sum += item.time() + item.field(0).u64();
            }
        });
        benchmark::DoNotOptimize(sum);
    }
};

/// Every record is tested for a field that each of them has, or for a sum of two, and none is
/// selected, so neither the dictionary nor the index can answer.
enum class asks_for { field, sum };
void select_none(const trace_ring::reduce::trace_file& file, asks_for what_of = asks_for::field) {
    namespace where = trace_reduce::where;
    auto left = where::expression::of_name("first");
    if (what_of == asks_for::sum) {
        left = {.what = where::form::sum,
                .parts = {std::move(left), where::expression::of_name("second")},
                .signs = "++"};
    }
    trace_ring::reduce::filter what;
    what.condition = std::make_shared<where::predicate>(
        file.about(), where::expression::compare(std::move(left), where::comparison::more,
                                                 where::expression::of(~std::uint64_t{0} - 1)));
    auto cursor = file.forward(what);
    while (const auto* item = cursor.next()) {
        if (std::holds_alternative<trace_ring::reduce::record_view>(*item)) {
            throw std::runtime_error("a record that is not wanted");
        }
    }
}

template <asks_for What>
struct none_selected {
    trace_ring::reduce::trace_file file =
        trace_ring::reduce::trace_file::from(of_one_lane().bytes());

    [[gnu::noinline]] void operator()(std::uint64_t) { select_none(file, What); }
};

/// The same trace in a file, of which nothing is left behind.
[[nodiscard]] int file_of_one_lane() {
    std::string name = (std::filesystem::temp_directory_path() / "trace_ring.XXXXXX").string();
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), name);
    ::unlink(name.c_str());
    for (auto rest = of_one_lane().bytes(); !rest.empty();) {
        const ssize_t done = ::write(fd, rest.data(), rest.size());
        if (done < 0) throw std::system_error(errno, std::generic_category(), name);
        rest = rest.subspan(static_cast<std::size_t>(done));
    }
    return fd;
}

/// Read through a descriptor, by this thread alone.
struct none_selected_of_file {
    trace_ring::reduce::trace_file file =
        trace_ring::reduce::trace_file::of_descriptor(file_of_one_lane(), "bench");

    [[gnu::noinline]] void operator()(std::uint64_t) { select_none(file); }
};

/// Places anywhere in the trace, each with what was recorded in a hundred-thousandth of its time.
template <bool Forward>
struct sought {
    static constexpr std::uint64_t places = 64;
    trace_ring::reduce::trace_file file =
        trace_ring::reduce::trace_file::from(of_four_lanes().bytes());
    trace_reduce::time_extent whole = trace_reduce::range_finder(file).whole();

    [[gnu::noinline]] void operator()(std::uint64_t) {
        std::uint64_t found = 0;
        const std::uint64_t span = whole.last - whole.first;
        for (std::uint64_t i = 0; i < places; ++i) {
            trace_ring::reduce::filter what;
            what.from = whole.first + span / places * ((i * 29) % places) + span / 200;
            what.to = what.from + span / 100'000;
            auto cursor = Forward ? file.forward(what) : file.backward(what);
            while (cursor.next() != nullptr) ++found;
        }
        if (found == 0) throw std::runtime_error("nothing was found");
        benchmark::DoNotOptimize(found);
    }
};

}  // namespace

int main(int argc, char** argv) {
    const std::string in_cache = "floor/memcpy/1MiB";
    const std::string floor = "floor/memcpy/256MiB";
    const std::int64_t few = held(MiB);
    const std::int64_t many = held(large());
    bench::add<copied<small>>(in_cache, "", 1, few);
    bench::add<summed<small>>("floor/sum/1MiB", in_cache, 1, few);
    bench::add<copied<of_one_lane>>(floor, "", 1, many);
    bench::add<summed<of_one_lane>>("floor/sum/256MiB", floor, 1, many);
    const std::int64_t drained_few = drained_ring<one_mebibyte>::records();
    const std::int64_t drained_many = drained_ring<large>::records();
    bench::add<drained_and_summed<one_mebibyte>>("drain/sum/1MiB", in_cache, 1, drained_few);
    bench::add<drained_and_visited<one_mebibyte>>("drain/visit/1MiB", in_cache, 1, drained_few);
    bench::add<drained_and_summed<large>>("drain/sum/256MiB", floor, 1, drained_many);
    bench::add<drained_and_visited<large>>("drain/visit/256MiB", floor, 1, drained_many);
    bench::add<copied_by_sub_buffer>("floor/memcpy_by_sub_buffer", floor, 1, many);
    bench::add<copied_and_checked>("reader/copy", floor, 1, many);
    bench::add<copied_and_walked>("reader/copy_and_walk", floor, 1, many);
    bench::add<decoded<true, of_one_lane>>("reader/forward", floor, 1, many);
    bench::add<decoded<false, of_one_lane>>("reader/backward", floor, 1, many);
    bench::add<decoded<true, of_eight_lanes>>("reader/merge_of_8_lanes", floor, 1, many);
    bench::add<none_selected<asks_for::field>>("reader/where", floor, 1, many);
    bench::add<none_selected<asks_for::sum>>("reader/where_sum", floor, 1, many);
    bench::add<none_selected_of_file>("reader/where_of_file", floor, 1, many);
    bench::add<decoded_singly<true>>("reader/forward_singly", floor, 1, many);
    bench::add<decoded_singly<false>>("reader/backward_singly", floor, 1, many);
    namespace exporter = trace_ring::exporter;
    bench::add<exported<exporter::text_writer>>("export/text/1MiB", in_cache, 1, few);
    bench::add<exported<exporter::json_writer>>("export/json/1MiB", in_cache, 1, few);
    bench::add<exported<trace_reduce::exporting::csv_writer>>("export/csv/1MiB", in_cache, 1, few);
    bench::add<exported<trace_reduce::exporting::chrome_writer>>("export/chrome/1MiB", in_cache, 1,
                                                                 few);
    bench::add<exported<trace_reduce::exporting::perfetto_writer>>("export/perfetto/1MiB", in_cache,
                                                                   1, few);
    const std::int64_t most = held_by_four();
    constexpr auto places = static_cast<std::int64_t>(sought<true>::places);
    bench::add<decoded<true, of_four_lanes>>("reader/whole/1GiB", floor, 1, most);
    bench::add<decoded<false, of_four_lanes>>("reader/whole_backward/1GiB", floor, 1, most);
    bench::add<sought<true>>("reader/seek/1GiB", "reader/whole/1GiB", 1, most * places);
    bench::add<sought<false>>("reader/seek_backward/1GiB", "reader/whole/1GiB", 1, most * places);
    return bench::run(argc, argv);
}
