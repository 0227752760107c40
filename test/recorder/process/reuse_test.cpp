// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// Many programs one after the other, and many children: the tables of processes, lanes and event
// types are used again, and every record is read by its type or counted. And which process lives is
// determined right: across PID namespaces, of daemons, and after an exec.

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <trace_ring/policy/storage/life_lock.hpp>
#include <trace_ring/recorder/recorder.hpp>
#include <trace_ring/reduce/trace_file.hpp>

#include <recorder/scratch.hpp>

namespace reuse {
namespace {

enum class step : std::uint64_t { first, second };
enum class other_step : std::uint64_t { first, second };
enum class crowded : std::int32_t {};
constexpr auto crowd = [] {
    std::array<trace_ring::value_name<crowded>, 400> all{};
    for (std::int32_t i = 0; i < 400; ++i) all[static_cast<std::size_t>(i)] = {crowded{i}, "name"};
    return all;
}();

}  // namespace
}  // namespace reuse

template <>
struct trace_ring::names_of<::reuse::step> {
    using enum ::reuse::step;
    static constexpr value_name<::reuse::step> list[] = {{first, "first"}, {second, "second"}};
};
template <>
struct trace_ring::names_of<::reuse::other_step> {
    using enum ::reuse::other_step;
    static constexpr value_name<::reuse::other_step> list[] = {{second, "first"}};
};
template <>
struct trace_ring::names_of<::reuse::crowded> {
    static constexpr auto& list = ::reuse::crowd;
};

BOOST_AUTO_TEST_SUITE(reuse)

namespace tr = trace_ring;
namespace reduce = trace_ring::reduce;
namespace layout = trace_ring::layout;
namespace storage = trace_ring::storage;

namespace {

struct ran : tr::event<"ran", tr::field<"n", std::uint64_t>> {};
struct stepped : tr::event<"stepped", tr::field<"n", step>> {};
struct stepped_else : tr::event<"stepped", tr::field<"n", other_step>> {};
struct full_of_names : tr::event<"full", tr::field<"of", crowded>, tr::field<"step", step>> {};

/// What a reader makes of a trace: each record known by its type, and each number once.
struct account {
    std::uint64_t records = 0, lost = 0, unknown = 0, damaged = 0;
    std::vector<std::uint64_t> twice;

    explicit account(const reduce::trace_file& trace) {
        std::vector<bool> seen;
        for (auto cursor = trace.forward(); const auto* item = cursor.next();) {
            if (const auto* const record = std::get_if<reduce::record_view>(item)) {
                ++records;
                if (!record->known() || record->name() != "ran") {
                    ++unknown;
                    continue;
                }
                const auto n = static_cast<std::size_t>(record->field("n").u64());
                if (n >= seen.size()) seen.resize(n + 1);
                if (seen[n]) twice.push_back(n);
                seen[n] = true;
            } else if (const auto* const loss = std::get_if<reduce::loss_item>(item)) {
                if (loss->cause == tr::loss_cause::damaged) ++damaged;
                lost += loss->count;
            }
        }
        damaged += trace.damages().size();
    }
    void check(std::uint64_t written) const {
        BOOST_TEST(records + lost == written);
        BOOST_TEST(records > 0U);
        BOOST_TEST(unknown == 0U);
        BOOST_TEST(damaged == 0U);
        BOOST_TEST(twice.empty());
    }
};

[[nodiscard]] tr::recorder_options joined(const std::string& file) {
    return {.file = file, .size = 1 << 20, .exists = tr::if_exists::attach};
}
[[nodiscard]] reduce::trace_file in_memory(const tr::recorder& recorder) {
    const auto [memory, bytes] = recorder.bytes();
    return reduce::trace_file::from({memory, bytes});
}

[[nodiscard]] int error_of(const tr::recorder_options& options) {
    try {
        const tr::recorder recorder(options);
        return 0;
    } catch (const tr::setup_error& error) {
        return error.code().value();
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(runs_of_a_program_one_after_the_other) {
    const test::folder folder;
    const std::string file = folder / "trace";
    const std::uint64_t runs = test::repeated(10'000, 300);
    for (std::uint64_t n = 0; n < runs; ++n) {
        tr::recorder recorder(joined(file));
        BOOST_REQUIRE(recorder.record<ran>(n));
        BOOST_REQUIRE(recorder.statistics().types_without_room == 0U);
    }
    account(reduce::trace_file::open(file)).check(runs);
}

BOOST_AUTO_TEST_CASE(runs_that_are_killed) {
    const test::folder folder;
    const std::string file = folder / "trace";
    auto options = joined(file);
    options.processes = 8;
    for (std::uint64_t n = 0; n < 40; ++n) {
        BOOST_REQUIRE(test::in_child([&] {
                          auto* const recorder = new tr::recorder(options);
                          return recorder->record<ran>(n) ? 0 : 1;  // nothing is undone
                      }) == 0);
    }
    account(reduce::trace_file::open(file)).check(40);
}

BOOST_AUTO_TEST_CASE(children_of_one_program) {
    tr::recorder recorder({.size = 1 << 18, .processes = 16});
    const std::uint64_t children = test::repeated(100'000, 300);
    BOOST_REQUIRE(recorder.record<ran>(std::uint64_t{0}));
    for (std::uint64_t n = 1; n <= children; ++n) {
        BOOST_REQUIRE(test::in_child([&] { return recorder.record<ran>(n) ? 0 : 1; }) == 0);
    }
    account(in_memory(recorder)).check(children + 1);
}

BOOST_AUTO_TEST_CASE(the_living_keep_their_entries) {
    const test::folder folder;
    auto options = joined(folder / "trace");
    options.processes = 2;
    options.programs = 2;
    tr::recorder first(options);
    BOOST_REQUIRE(first.record<ran>(std::uint64_t{0}));
    {
        tr::recorder second(options);
        BOOST_REQUIRE(second.record<ran>(std::uint64_t{1}));
        BOOST_TEST(error_of(options) == ENOSPC);
        BOOST_REQUIRE(second.record<ran>(std::uint64_t{2}));
    }
    tr::recorder third(options);
    BOOST_REQUIRE(third.record<ran>(std::uint64_t{3}));
    BOOST_REQUIRE(first.record<ran>(std::uint64_t{4}));
    const auto trace = reduce::trace_file::open(options.file);
    account(trace).check(5);
    BOOST_TEST(trace.processes()[0].uses == 1U);
    BOOST_TEST(trace.processes()[1].uses == 2U);
}

// --- Event types -----------------------------------------------------------------------------

namespace {

/// The types of a made-up program, numbered from 1.
struct program {
    std::vector<std::unique_ptr<tr::impl::type_node>> nodes;

    explicit program(std::vector<std::string_view> names,
                     tr::static_list<std::uint64_t> of_values = {}) {
        for (const std::string_view name : names) {
            auto& node = *nodes.emplace_back(std::make_unique<tr::impl::type_node>());
            node.id = static_cast<std::uint32_t>(nodes.size());
            node.description = tr::impl::describe<ran>();
            node.description.name = name;
            node.description.names = of_values;
            if (nodes.size() > 1) node.next.store(nodes[nodes.size() - 2].get(), tr::relaxed);
        }
    }
    [[nodiscard]] const tr::impl::type_node* types() const { return nodes.back().get(); }
};

/// Chooses a numbering for a program, as if it were entered at process slot 1 and had left. Returns
/// it, and how many types found no room.
std::pair<std::uint32_t, std::size_t> join(const tr::impl::trace_memory& memory,
                                           const program& of) {
    tr::impl::numbering numbering(memory);
    const auto root = numbering.choose(of.types(), 1);
    BOOST_REQUIRE(root.has_value());
    std::size_t without_room = 0;
    numbering.complete(*root, [&](const tr::impl::type_node&) { ++without_room; });
    return {*root, without_room};
}
[[nodiscard]] std::uint64_t used(const tr::impl::trace_memory& memory) {
    return memory.ring().dictionary_used.load(tr::relaxed);
}

[[nodiscard]] std::vector<std::string> names_of(const reduce::trace_file& trace,
                                                std::uint32_t root) {
    std::vector<std::string> out;
    for (std::uint32_t id = 1; const auto* type = trace.about().events().find(root, id); ++id) {
        out.push_back(type->name);
    }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_types_of_different_programs_share_an_entry) {
    const test::folder folder;
    const std::string file = folder / "trace";
    tr::impl::trace_memory memory({.file = file, .size = 1 << 16, .processes = 8},
                                  tr::impl::functions_of<tr::clock::monotonic>);
    const program one({"a", "b", "c"});
    const program other({"c", "b", "d"});
    const auto [first, none] = join(memory, one);
    const std::uint64_t after_first = used(memory);
    BOOST_TEST(join(memory, one).first == first);  // the same program again
    BOOST_TEST(used(memory) == after_first);
    const auto [second, none_either] = join(memory, other);
    BOOST_TEST(second != first);
    // "b" and "c" are further numbers of existing types, and one entry describes both.
    BOOST_TEST(used(memory) == after_first + 64 + after_first / 3);
    BOOST_TEST(none + none_either == 0U);
    const auto trace = reduce::trace_file::open(file);
    BOOST_TEST(trace.damages().empty());
    BOOST_TEST(names_of(trace, first) == (std::vector<std::string>{"a", "b", "c"}),
               boost::test_tools::per_element());
    BOOST_TEST(names_of(trace, second) == (std::vector<std::string>{"c", "b", "d"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(types_whose_values_have_other_names_share_no_entry) {
    const test::folder folder;
    const std::string file = folder / "trace";
    tr::impl::trace_memory memory({.file = file, .size = 1 << 16, .processes = 8},
                                  tr::impl::functions_of<tr::clock::monotonic>);
    const auto names = tr::impl::describe<stepped>().names;
    const auto [plain, none] = join(memory, program({"a"}));
    const auto [named, none_of_named] = join(memory, program({"a"}, names));
    const auto [other, none_of_other] =
        join(memory, program({"a"}, tr::impl::describe<stepped_else>().names));
    const std::uint64_t before = used(memory);
    const auto [same, none_of_same] = join(memory, program({"b", "a"}, names));
    BOOST_TEST(used(memory) == before + 64 + 128);  // a number for "a", and "b"
    BOOST_TEST(none + none_of_named + none_of_other + none_of_same == 0U);
    BOOST_TEST(join(memory, program({"a"})).first == plain);
    BOOST_TEST(join(memory, program({"a"}, names)).first == named);
    const auto trace = reduce::trace_file::open(file);
    BOOST_TEST(trace.damages().empty());
    const auto second_of = [&trace](std::uint32_t root, std::uint32_t id) {
        const auto& field = trace.about().events().find(root, id)->fields[0];
        return std::string(field.values == nullptr ? "none" : field.values->find(1));
    };
    BOOST_TEST(second_of(plain, 1) == "none");
    BOOST_TEST(second_of(named, 1) == "second");
    BOOST_TEST(second_of(other, 1) == "first");
    BOOST_TEST(second_of(same, 1) == "second");
    BOOST_TEST(second_of(same, 2) == "second");
}

/// And a type without names that takes the place of one with them has none.
BOOST_AUTO_TEST_CASE(names_of_values_are_left_out_where_there_is_no_room) {
    const test::folder folder;
    auto options = joined(folder / "trace");
    options.dictionary_bytes = 4096;
    std::uint64_t used_before = 0;
    for (std::uint64_t n = 0; n < 3; ++n) {
        tr::recorder recorder(options);
        BOOST_TEST(recorder.record<full_of_names>(crowded{7}, step::second));
        BOOST_TEST(recorder.record<stepped>(step::second));
        BOOST_TEST(recorder.statistics().types_without_room == 0U);
        // The same program again: it finds its types as it left them.
        const auto trace = in_memory(recorder);
        const auto& all = trace.about().events().types();
        std::uint64_t types = 0;
        for (const auto& each : all) types += each.name == "full" ? 1U : 0U;
        BOOST_TEST(types == 1U);
        if (n == 0) used_before = all.size();
        BOOST_TEST(all.size() == used_before);
        auto cursor = trace.forward();
        const auto& first = std::get<reduce::record_view>(*cursor.next());
        BOOST_TEST(first.field("of").name() == "");
        BOOST_TEST(first.field("of").i64() == 7);
        BOOST_TEST(first.field("step").name() == "");
        BOOST_TEST(std::get<reduce::record_view>(*cursor.next()).field("n").name() == "second");
    }

    const std::string file = folder / "other";
    tr::impl::trace_memory memory(
        {.file = file, .size = 1 << 16, .processes = 4, .programs = 4, .dictionary_bytes = 4096},
        tr::impl::functions_of<tr::clock::monotonic>);
    for (std::size_t i = 0; i < 8; ++i) {
        const bool named = i % 2 == 0;
        std::vector<std::string> texts;
        for (std::size_t k = 0; k < 20; ++k) texts.push_back(std::to_string(i * 100 + k));
        const program next({texts.begin(), texts.end()}, named ? tr::impl::describe<stepped>().names
                                                               : tr::static_list<std::uint64_t>());
        const auto [root, without_room] = join(memory, next);
        BOOST_TEST(without_room == 0U);
        const auto trace = reduce::trace_file::open(file);
        BOOST_TEST(trace.damages().empty());
        BOOST_TEST(names_of(trace, root).size() == 20U);
        for (std::uint32_t id = 1; id <= 20; ++id) {
            const auto& field = trace.about().events().find(root, id)->fields[0];
            if (!named) BOOST_TEST((field.values == nullptr));
            if (named && id == 1) BOOST_TEST((field.values != nullptr));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_nothing_refers_to_gives_room_to_others) {
    const test::folder folder;
    const std::string file = folder / "trace";
    tr::impl::trace_memory memory(
        {.file = file, .size = 1 << 16, .processes = 4, .programs = 4, .dictionary_bytes = 4096},
        tr::impl::functions_of<tr::clock::monotonic>);
    auto trace = reduce::trace_file::open(file);
    std::vector<std::string> names;
    for (int i = 0; i < 200; ++i) names.push_back("type." + std::to_string(i));
    // 64 bytes a type, of 4096 in all: the fourth set of twenty finds no room behind the others.
    for (std::size_t i = 0; i + 20 <= names.size(); i += 20) {
        const program next({names.begin() + static_cast<std::ptrdiff_t>(i),
                            names.begin() + static_cast<std::ptrdiff_t>(i) + 20});
        const auto [root, without_room] = join(memory, next);
        BOOST_TEST(without_room == 0U);
        trace.refresh();  // a reader that has seen what was there before
        const std::vector<std::string> expected(
            names.begin() + static_cast<std::ptrdiff_t>(i),
            names.begin() + static_cast<std::ptrdiff_t>(i) + 20);
        BOOST_TEST(names_of(trace, root) == expected, boost::test_tools::per_element());
        BOOST_TEST(names_of(reduce::trace_file::open(file), root) == expected,
                   boost::test_tools::per_element());
    }
    BOOST_TEST(trace.damages().empty());
}

BOOST_AUTO_TEST_CASE(a_numbering_that_can_be_read_is_kept) {
    tr::impl::trace_memory memory({.size = 1 << 16, .processes = 3, .programs = 3},
                                  tr::impl::functions_of<tr::clock::monotonic>);
    for (const std::string_view name : {"a", "b", "c"}) {
        const std::uint32_t root = join(memory, program({name})).first;
        memory.sub_buffer(root).magic.store(tr::numbered_magic(root + 1), tr::relaxed);
    }
    const program another({"d"});
    BOOST_TEST(!tr::impl::numbering(memory).choose(another.types(), 1).has_value());
    memory.sub_buffer(2).magic.store(0, tr::relaxed);
    BOOST_TEST(join(memory, another).first == 2U);
}

BOOST_AUTO_TEST_CASE(records_of_a_type_without_room_are_refused_and_counted) {
    const test::folder folder;
    const std::string file = folder / "trace";
    tr::recorder recorder({.file = file, .size = 1 << 16, .dictionary_bytes = 4096});
    BOOST_TEST(recorder.record<ran>(std::uint64_t{1}));
    // No room for a type that comes later: as if others had taken it.
    auto* const bytes = const_cast<std::byte*>(recorder.bytes().first);
    const auto& header = *reinterpret_cast<const layout::file_header*>(bytes);
    auto& ring =
        *reinterpret_cast<layout::ring_state*>(bytes + header.ring_offset.load(tr::relaxed));
    ring.dictionary_used.store(4096, tr::relaxed);
    struct late : tr::event<"late", tr::field<"n", std::uint64_t>> {};
    tr::impl::event_state state{tr::impl::describe<late>()};
    tr::impl::register_type(state);
    const std::uint32_t id = tr::record_word::id(state.header.load(tr::relaxed));
    BOOST_REQUIRE(id != 0U);
    BOOST_TEST(recorder.statistics().types_without_room == 1U);
    // The hot path finds that gate shut, and the cold path says why.
    auto& known = tr::impl::event_of<ran>::state.header;
    const std::uint32_t before = known.load(tr::relaxed);
    known.store(tr::record_word::pack(id, 16), tr::relaxed);
    BOOST_TEST(!recorder.record<ran>(std::uint64_t{2}));
    BOOST_TEST(!recorder.reserve<ran>(std::uint64_t{3}));
    known.store(before, tr::relaxed);
    BOOST_TEST(recorder.record<ran>(std::uint64_t{4}));
    recorder.flush_thread();
    account(reduce::trace_file::open(file)).check(4);
}

// --- Who lives -------------------------------------------------------------------------------

namespace {

/// Ends, as a child's status, with whether the byte of a life_lock is locked once `then` was done.
template <class Then>
[[nodiscard]] bool is_locked_after(const std::string& file, Then&& then) {
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
    const pid_t child = test::start_child([&] {
        auto* const lock = new storage::life_lock;
        if (lock->take(fd, file.c_str(), 5) != storage::lock_result::taken) return 1;
        then(*lock);
        const char done = 0;
        if (::write(ends[1], &done, 1) != 1) return 2;
        for (;;) ::pause();
    });
    ::close(ends[1]);  // nobody else says that it is done
    char done = 0;
    BOOST_REQUIRE(::read(ends[0], &done, 1) == 1);
    const bool locked = storage::byte_is_locked(fd, 5);
    ::kill(child, SIGKILL);
    static_cast<void>(test::wait_for(child));
    for (const int each : {ends[0], fd}) ::close(each);
    return locked;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_life_lock_lasts_as_long_as_the_process) {
    const test::folder folder;
    const std::string file = folder / "file";
    BOOST_TEST(is_locked_after(file, [](auto&) {}));
    BOOST_TEST(is_locked_after(file, [&](auto&) {  // any other descriptor of the file
        ::close(::open(file.c_str(), O_RDWR));
    }));
    BOOST_TEST(!is_locked_after(file, [](auto& lock) { lock.release(); }));
    const int fd = ::open(file.c_str(), O_RDWR);
    BOOST_TEST(!storage::byte_is_locked(fd, 5));  // all of them were killed
    ::close(fd);
}

BOOST_AUTO_TEST_CASE(a_life_lock_is_not_a_childs) {
    const test::folder folder;
    const std::string file = folder / "file";
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
    storage::life_lock lock;
    BOOST_REQUIRE((lock.take(fd, file.c_str(), 5) == storage::lock_result::taken));
    BOOST_TEST(lock.held());
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    int told[2];
    BOOST_REQUIRE(::pipe(told) == 0);
    const pid_t child = test::start_child([&] {
        const bool none = !lock.held();
        lock.release();  // which leaves the parent's unchanged
        storage::life_lock own;
        const bool refused = own.take(fd, file.c_str(), 5) == storage::lock_result::held_by_another;
        char byte = none && refused ? 'y' : 'n';
        if (::write(told[1], &byte, 1) != 1 || ::read(ends[0], &byte, 1) != 1) return 1;
        return 0;
    });
    char byte = 0;
    BOOST_REQUIRE(::read(told[0], &byte, 1) == 1);
    BOOST_TEST(byte == 'y');
    BOOST_TEST(storage::byte_is_locked(fd, 5));
    lock.release();
#if defined(__x86_64__) || defined(__i386__)  // QEMU's user mode maps all in the child
    BOOST_TEST(!storage::byte_is_locked(fd, 5));
#endif
    BOOST_REQUIRE(::write(ends[1], "", 1) == 1);
    BOOST_TEST(test::wait_for(child) == 0);
    for (const int each : {ends[0], ends[1], told[0], told[1], fd}) ::close(each);
}

BOOST_AUTO_TEST_CASE(one_in_another_pid_namespace_lives) {
    tr::recorder recorder({.size = 1 << 18});
    BOOST_REQUIRE(recorder.record<ran>(std::uint64_t{0}));
    const int status = test::in_child([&] {
        if (::unshare(CLONE_NEWPID) != 0) return 77;
        // Of another namespace it cannot say whether the first process lives, but by its lock.
        return test::in_child([&] {
            std::uint64_t n = 0;
            for (int i = 0; i < 200; ++i) {
                recorder.record<ran>(n += 2);
                recorder.flush_thread();  // lanes and sub-buffers run out
            }
            return recorder.statistics().reclaimed == 0 ? 0 : 1;
        });
    });
    if (status == 77) {
        BOOST_TEST_MESSAGE("skipped: no PID namespace to be had");
        return;
    }
    BOOST_TEST(status == 0);
    BOOST_TEST(recorder.record<ran>(std::uint64_t{1}));
    account(in_memory(recorder)).check(202);
}

BOOST_AUTO_TEST_CASE(a_trace_in_use_is_not_replaced) {
    const test::folder folder;
    const std::string file = folder / "trace";
    auto replacing = joined(file);
    replacing.exists = tr::if_exists::replace;
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const auto in_use_after = [&](auto&& then) {
        // The child is the daemon's parent; the daemon writes once it is one, and lives on.
        BOOST_REQUIRE(test::in_child([&] {
                          auto* const recorder = new tr::recorder(replacing);
                          recorder->record<ran>(std::uint64_t{0});
                          if (::fork() != 0) return 0;
                          ::prctl(PR_SET_PDEATHSIG, 0);
                          then(*recorder);
                          const pid_t self = ::getpid();
                          if (::write(ends[1], &self, sizeof self) != sizeof self) return 1;
                          for (;;) ::pause();
                      }) == 0);
        pid_t daemon = 0;
        BOOST_REQUIRE(::read(ends[0], &daemon, sizeof daemon) == sizeof daemon);
        const bool live = reduce::trace_file::open(file).live();
        const int error = error_of(replacing);
        ::kill(daemon, SIGKILL);
        const auto gone = [&] { return ::kill(daemon, 0) != 0; };
        for (int i = 0; i < 1000 && !gone() && error_of(replacing) == EBUSY; ++i) ::usleep(1000);
        BOOST_TEST(error_of(replacing) == 0);
        BOOST_TEST(!reduce::trace_file::open(file).live());
        return live && error == EBUSY;
    };
    BOOST_TEST(in_use_after([](tr::recorder&) {}));
    BOOST_TEST(
        in_use_after([](tr::recorder& recorder) { recorder.record<ran>(std::uint64_t{1}); }));
    BOOST_TEST(in_use_after([&](tr::recorder&) {
        // Another recorder of the same file comes and goes.
        const tr::recorder second(joined(file));
    }));
    BOOST_TEST(in_use_after([&](tr::recorder& recorder) {
        recorder.record<ran>(std::uint64_t{1});
        const int kept = ends[1];
        for (int fd = 3; fd < 1024; ++fd) {
            if (fd != kept) ::close(fd);
        }
    }));
    for (const int each : ends) ::close(each);
}

BOOST_AUTO_TEST_CASE(those_that_join_at_once_have_gates_of_their_own) {
    const test::folder folder;
    const std::string file = folder / "trace";
    constexpr int count = 6;
    for (std::uint64_t round = 0; round < test::repeated(100, 10); ++round) {
        std::array<std::unique_ptr<tr::recorder>, count> all;
        std::atomic<int> ready{0};
        std::vector<std::thread> threads;
        for (auto& mine : all) {
            threads.emplace_back([&] {
                for (++ready; ready.load() < count;) std::this_thread::yield();
                mine = std::make_unique<tr::recorder>(joined(file));
            });
        }
        for (auto& thread : threads) thread.join();
        for (auto& shut : all) {
            shut->enable<ran>(false);
            for (auto& other : all) BOOST_REQUIRE(other->record<ran>(round) == (other != shut));
            shut->enable<ran>(true);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
