// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What is refused when it is compiled, and by which rule: one case for each, with a twin that is
// as like it as it can be.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <trace_ring/das/control_words.hpp>
#include <trace_ring/das/entry.hpp>
#include <trace_ring/policy/claim/fetch_add.hpp>
#include <trace_ring/policy/claim/per_cpu.hpp>
#include <trace_ring/policy/clock/monotonic.hpp>
#include <trace_ring/policy/full/block.hpp>
#include <trace_ring/policy/full/discard_newest.hpp>
#include <trace_ring/policy/full/extend.hpp>
#include <trace_ring/policy/full/stop.hpp>
#include <trace_ring/policy/gate/flag.hpp>
#include <trace_ring/policy/notify/at_watermark.hpp>
#include <trace_ring/policy/storage/heap.hpp>
#include <trace_ring/policy/storage/mapped.hpp>
#include <trace_ring/ring/ring.hpp>

using namespace trace_ring;
using namespace std::chrono_literals;
namespace families = trace_ring::family;

struct plain {
    std::uint64_t a, b;
};

#ifdef FAILS_no_policy  // expect: is no policy
struct refused_no_policy : policies<plain, claim::fetch_add> {};
constexpr auto instance_of_no_policy = sizeof(ring<refused_no_policy>);
#endif
#ifdef PASSES_no_policy
struct accepted_no_policy : policies<record::bare<plain>, claim::fetch_add> {};
constexpr auto twin_of_no_policy = sizeof(ring<accepted_no_policy>);
#endif

#ifdef FAILS_two_records  // expect: names two policies of the family record
struct refused_two_records : policies<record::das_entry, record::bare<plain>> {};
constexpr auto instance_of_two_records = sizeof(ring<refused_two_records>);
#endif
#ifdef PASSES_two_records
struct accepted_two_records : policies<record::das_entry> {};
constexpr auto twin_of_two_records = sizeof(ring<accepted_two_records>);
#endif

#ifdef FAILS_two_claims  // expect: names two policies of the family claim
struct refused_two_claims
    : policies<record::bare<plain>, claim::fetch_add, claim::compare_exchange> {};
constexpr auto instance_of_two_claims = sizeof(ring<refused_two_claims>);
#endif
#ifdef PASSES_two_claims
struct accepted_two_claims : policies<record::bare<plain>, claim::fetch_add> {};
constexpr auto twin_of_two_claims = sizeof(ring<accepted_two_claims>);
#endif

#ifdef FAILS_two_fulls  // expect: names two policies of the family full
struct refused_two_fulls : policies<full::stop, full::discard_newest> {};
constexpr auto instance_of_two_fulls = sizeof(ring<refused_two_fulls>);
#endif
#ifdef PASSES_two_fulls
struct accepted_two_fulls : policies<full::stop> {};
constexpr auto twin_of_two_fulls = sizeof(ring<accepted_two_fulls>);
#endif

#ifdef FAILS_two_notifies  // expect: names two policies of the family notify
struct refused_two_notifies : policies<notify::never, notify::at_watermark<notify::records(5)>> {};
constexpr auto instance_of_two_notifies = sizeof(ring<refused_two_notifies>);
#endif
#ifdef PASSES_two_notifies
struct accepted_two_notifies : policies<notify::at_watermark<notify::records(5)>> {};
constexpr auto twin_of_two_notifies = sizeof(ring<accepted_two_notifies>);
#endif

#ifdef FAILS_two_storages  // expect: names two policies of the family storage
struct refused_two_storages : policies<storage::heap, storage::mapped> {};
constexpr auto instance_of_two_storages = sizeof(ring<refused_two_storages>);
#endif
#ifdef PASSES_two_storages
struct accepted_two_storages : policies<storage::heap> {};
constexpr auto twin_of_two_storages = sizeof(ring<accepted_two_storages>);
#endif

#ifdef FAILS_two_clocks  // expect: names two policies of the family clock
struct refused_two_clocks : policies<trace_ring::clock::none, trace_ring::clock::monotonic> {};
constexpr auto instance_of_two_clocks = sizeof(ring<refused_two_clocks>);
#endif
#ifdef PASSES_two_clocks
struct accepted_two_clocks : policies<trace_ring::clock::monotonic> {};
constexpr auto twin_of_two_clocks = sizeof(ring<accepted_two_clocks>);
#endif

#ifdef FAILS_two_gates  // expect: names two policies of the family gate
struct refused_two_gates : policies<gate::flag, gate::always> {};
constexpr auto instance_of_two_gates = sizeof(ring<refused_two_gates>);
#endif
#ifdef PASSES_two_gates
struct accepted_two_gates : policies<gate::flag> {};
constexpr auto twin_of_two_gates = sizeof(ring<accepted_two_gates>);
#endif

#ifdef FAILS_the_same_twice  // expect: names two policies of the family gate
struct refused_the_same_twice : policies<gate::flag, gate::flag> {};
constexpr auto instance_of_the_same_twice = sizeof(ring<refused_the_same_twice>);
#endif
#ifdef PASSES_the_same_twice
struct accepted_the_same_twice : policies<gate::flag, full::stop> {};
constexpr auto twin_of_the_same_twice = sizeof(ring<accepted_the_same_twice>);
#endif

#ifdef FAILS_record_of_strings  // expect: record policy is not what
struct text_record {
    using family = families::record;
    std::string text;
};
struct refused_record_of_strings : policies<text_record> {};
constexpr auto instance_of_record_of_strings = sizeof(ring<refused_record_of_strings>);
#endif
#ifdef PASSES_record_of_strings
struct number_record {
    using family = families::record;
    int number;
};
struct accepted_record_of_strings : policies<number_record> {};
constexpr auto twin_of_record_of_strings = sizeof(ring<accepted_record_of_strings>);
#endif

#ifdef FAILS_claim_without_discard  // expect: claim policy is not what
struct claim_by_halves {
    using family = families::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = true;
    static constexpr bool counts = true;
    template <class Table>
    static claim::ticket take(claim::line&, Table&) noexcept {
        return {};
    }
    static void commit(claim::line&, const claim::ticket&) noexcept {}
};
struct refused_claim_without_discard : policies<record::bare<plain>, claim_by_halves> {};
constexpr auto instance_of_claim_without_discard = sizeof(ring<refused_claim_without_discard>);
#endif
#ifdef PASSES_claim_without_discard
struct claim_in_full {
    using family = families::claim;
    static constexpr bool many_writers = true;
    static constexpr bool asks_first = true;
    static constexpr bool counts = true;
    template <class Table>
    static claim::ticket take(claim::line&, Table&) noexcept {
        return {};
    }
    static void commit(claim::line&, const claim::ticket&) noexcept {}
    static void discard(claim::line&, const claim::ticket&) noexcept {}
};
struct accepted_claim_without_discard : policies<record::bare<plain>, claim_in_full> {};
constexpr auto twin_of_claim_without_discard = sizeof(ring<accepted_claim_without_discard>);
#endif

#ifdef FAILS_full_that_throws  // expect: full policy is not what
struct throwing_full {
    using family = families::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = false;
    static constexpr bool grows = false;
    static constexpr bool stops = false;
    static full::answer when_full(full::room&) { throw 1; }
};
struct refused_full_that_throws : policies<throwing_full> {};
constexpr auto instance_of_full_that_throws = sizeof(ring<refused_full_that_throws>);
#endif
#ifdef PASSES_full_that_throws
struct silent_full {
    using family = families::full;
    static constexpr bool overwrites = false;
    static constexpr bool waits = false;
    static constexpr bool grows = false;
    static constexpr bool stops = false;
    static full::answer when_full(full::room&) noexcept { return full::answer::refuse; }
};
struct accepted_full_that_throws : policies<silent_full> {};
constexpr auto twin_of_full_that_throws = sizeof(ring<accepted_full_that_throws>);
#endif

#ifdef FAILS_notify_of_nothing  // expect: notify policy is not what
struct mute_notify {
    using family = families::notify;
    static constexpr bool watches = true;
};
struct refused_notify_of_nothing : policies<mute_notify> {};
constexpr auto instance_of_notify_of_nothing = sizeof(ring<refused_notify_of_nothing>);
#endif
#ifdef PASSES_notify_of_nothing
struct loud_notify {
    using family = families::notify;
    static constexpr bool watches = true;
    static void passed(notify::line&, notify::progress) noexcept {}
};
struct accepted_notify_of_nothing : policies<loud_notify> {};
constexpr auto twin_of_notify_of_nothing = sizeof(ring<accepted_notify_of_nothing>);
#endif

#ifdef FAILS_storage_that_does_not_say_fresh  // expect: storage policy is not what
struct stale_storage {
    using family = families::storage;
    static inline std::byte bytes[4096];
    static std::byte* data() noexcept { return bytes; }
    static std::uint64_t size() noexcept { return sizeof bytes; }
};
struct refused_storage_that_does_not_say_fresh : policies<stale_storage> {};
constexpr auto instance_of_storage_that_does_not_say_fresh =
    sizeof(ring<refused_storage_that_does_not_say_fresh>);
#endif
#ifdef PASSES_storage_that_does_not_say_fresh
struct fresh_storage {
    using family = families::storage;
    static inline std::byte bytes[4096];
    static std::byte* data() noexcept { return bytes; }
    static std::uint64_t size() noexcept { return sizeof bytes; }
    static bool fresh() noexcept { return true; }
};
struct accepted_storage_that_does_not_say_fresh : policies<fresh_storage> {};
constexpr auto twin_of_storage_that_does_not_say_fresh =
    sizeof(ring<accepted_storage_that_does_not_say_fresh>);
#endif

#ifdef FAILS_clock_without_a_rate  // expect: clock policy is not what
struct rateless_clock {
    using family = families::clock;
    static constexpr std::uint32_t kind = 9;
    static std::uint64_t now() noexcept { return 0; }
    static bool usable() noexcept { return true; }
};
struct refused_clock_without_a_rate : policies<rateless_clock> {};
constexpr auto instance_of_clock_without_a_rate = sizeof(ring<refused_clock_without_a_rate>);
#endif
#ifdef PASSES_clock_without_a_rate
struct rated_clock {
    using family = families::clock;
    static constexpr std::uint32_t kind = 9;
    static std::uint64_t now() noexcept { return 0; }
    static bool usable() noexcept { return true; }
    static double ticks_per_second() noexcept { return 1; }
};
struct accepted_clock_without_a_rate : policies<rated_clock> {};
constexpr auto twin_of_clock_without_a_rate = sizeof(ring<accepted_clock_without_a_rate>);
#endif

#ifdef FAILS_gate_that_says_int  // expect: gate policy is not what
struct int_gate {
    using family = families::gate;
    static int is_open() noexcept { return 1; }
};
struct refused_gate_that_says_int : policies<int_gate> {};
constexpr auto instance_of_gate_that_says_int = sizeof(ring<refused_gate_that_says_int>);
#endif
#ifdef PASSES_gate_that_says_int
struct bool_gate {
    using family = families::gate;
    static bool is_open() noexcept { return true; }
};
struct accepted_gate_that_says_int : policies<bool_gate> {};
constexpr auto twin_of_gate_that_says_int = sizeof(ring<accepted_gate_that_says_int>);
#endif

#ifdef FAILS_block_with_a_claim_that_cannot_wait  // expect: full::block needs a claim that can wait
struct refused_block_with_a_claim_that_cannot_wait
    : policies<record::sequenced<plain>, claim::fetch_add, full::block<1ms>> {};
constexpr auto instance_of_block_with_a_claim_that_cannot_wait =
    sizeof(ring<refused_block_with_a_claim_that_cannot_wait>);
#endif
#ifdef PASSES_block_with_a_claim_that_cannot_wait
struct accepted_block_with_a_claim_that_cannot_wait
    : policies<record::sequenced<plain>, claim::compare_exchange, full::block<1ms>> {};
constexpr auto twin_of_block_with_a_claim_that_cannot_wait =
    sizeof(ring<accepted_block_with_a_claim_that_cannot_wait>);
#endif

#ifdef FAILS_refusing_with_a_claim_that_cannot_be_refused  // expect: cannot refuse a record
struct refused_refusing_with_a_claim_that_cannot_be_refused
    : policies<record::sequenced<plain>, claim::fetch_add, full::discard_newest> {};
constexpr auto instance_of_refusing_with_a_claim_that_cannot_be_refused =
    sizeof(ring<refused_refusing_with_a_claim_that_cannot_be_refused>);
#endif
#ifdef PASSES_refusing_with_a_claim_that_cannot_be_refused
struct accepted_refusing_with_a_claim_that_cannot_be_refused
    : policies<record::sequenced<plain>, claim::fetch_add, full::overwrite_oldest> {};
constexpr auto twin_of_refusing_with_a_claim_that_cannot_be_refused =
    sizeof(ring<accepted_refusing_with_a_claim_that_cannot_be_refused>);
#endif

#ifdef FAILS_growing_and_refusing_with_such_a_claim  // expect: cannot refuse a record
struct refused_growing_and_refusing_with_such_a_claim
    : policies<record::sequenced<plain>, claim::fetch_add, storage::mapped,
               full::extend<4096, full::stop>> {};
constexpr auto instance_of_growing_and_refusing_with_such_a_claim =
    sizeof(ring<refused_growing_and_refusing_with_such_a_claim>);
#endif
#ifdef PASSES_growing_and_refusing_with_such_a_claim
struct accepted_growing_and_refusing_with_such_a_claim
    : policies<record::sequenced<plain>, claim::fetch_add, storage::mapped,
               full::extend<4096, full::overwrite_oldest>> {};
constexpr auto twin_of_growing_and_refusing_with_such_a_claim =
    sizeof(ring<accepted_growing_and_refusing_with_such_a_claim>);
#endif

#ifdef FAILS_block_where_nobody_can_consume  // expect: would wait for ever
struct refused_block_where_nobody_can_consume : policies<record::bare<plain>, full::block<1ms>> {};
constexpr auto instance_of_block_where_nobody_can_consume =
    sizeof(ring<refused_block_where_nobody_can_consume>);
#endif
#ifdef PASSES_block_where_nobody_can_consume
struct accepted_block_where_nobody_can_consume
    : policies<record::sequenced<plain>, full::block<1ms>> {};
constexpr auto twin_of_block_where_nobody_can_consume =
    sizeof(ring<accepted_block_where_nobody_can_consume>);
#endif

#ifdef FAILS_extend_in_a_storage_of_one_size  // expect: full::extend needs a storage that grows
struct refused_extend_in_a_storage_of_one_size
    : policies<full::extend<4096, full::stop>, storage::heap> {};
constexpr auto instance_of_extend_in_a_storage_of_one_size =
    sizeof(ring<refused_extend_in_a_storage_of_one_size>);
#endif
#ifdef PASSES_extend_in_a_storage_of_one_size
struct accepted_extend_in_a_storage_of_one_size
    : policies<full::extend<4096, full::stop>, storage::mapped> {};
constexpr auto twin_of_extend_in_a_storage_of_one_size =
    sizeof(ring<accepted_extend_in_a_storage_of_one_size>);
#endif

#ifdef FAILS_variable_length_for_many_writers  // expect: have one writer in a plain ring
struct refused_variable_length_for_many_writers
    : policies<record::sub_buffers<>, claim::compare_exchange> {};
constexpr auto instance_of_variable_length_for_many_writers =
    sizeof(ring<refused_variable_length_for_many_writers>);
#endif
#ifdef PASSES_variable_length_for_many_writers
struct accepted_variable_length_for_many_writers
    : policies<record::sub_buffers<>, claim::single_writer> {};
constexpr auto twin_of_variable_length_for_many_writers =
    sizeof(ring<accepted_variable_length_for_many_writers>);
#endif

#ifdef FAILS_no_positions_and_a_sequence  // expect: does not count positions
struct refused_no_positions_and_a_sequence
    : policies<record::sequenced<plain>, claim::das_offsets> {};
constexpr auto instance_of_no_positions_and_a_sequence =
    sizeof(ring<refused_no_positions_and_a_sequence>);
#endif
#ifdef PASSES_no_positions_and_a_sequence
struct accepted_no_positions_and_a_sequence : policies<record::bare<plain>, claim::das_offsets> {};
constexpr auto twin_of_no_positions_and_a_sequence =
    sizeof(ring<accepted_no_positions_and_a_sequence>);
#endif

#ifdef FAILS_no_positions_and_a_watermark  // expect: does not count positions
struct refused_no_positions_and_a_watermark
    : policies<record::bare<plain>, claim::das_offsets, notify::at_watermark<notify::records(5)>> {
};
constexpr auto instance_of_no_positions_and_a_watermark =
    sizeof(ring<refused_no_positions_and_a_watermark>);
#endif
#ifdef PASSES_no_positions_and_a_watermark
struct accepted_no_positions_and_a_watermark
    : policies<record::bare<plain>, claim::fetch_add, notify::at_watermark<notify::records(5)>> {};
constexpr auto twin_of_no_positions_and_a_watermark =
    sizeof(ring<accepted_no_positions_and_a_watermark>);
#endif

#ifdef FAILS_no_room_for_one_record  // expect: storage is too small
struct refused_no_room_for_one_record
    : policies<record::sequenced<plain>, storage::inline_bytes<23>> {};
constexpr auto instance_of_no_room_for_one_record = sizeof(ring<refused_no_room_for_one_record>);
#endif
#ifdef PASSES_no_room_for_one_record
struct accepted_no_room_for_one_record
    : policies<record::sequenced<plain>, storage::inline_bytes<24>> {};
constexpr auto twin_of_no_room_for_one_record = sizeof(ring<accepted_no_room_for_one_record>);
#endif

#ifdef FAILS_no_room_for_two_sub_buffers  // expect: storage is too small
struct refused_no_room_for_two_sub_buffers
    : policies<record::sub_buffers<512>, storage::inline_bytes<1023>> {};
constexpr auto instance_of_no_room_for_two_sub_buffers =
    sizeof(ring<refused_no_room_for_two_sub_buffers>);
#endif
#ifdef PASSES_no_room_for_two_sub_buffers
struct accepted_no_room_for_two_sub_buffers
    : policies<record::sub_buffers<512>, storage::inline_bytes<1024>> {};
constexpr auto twin_of_no_room_for_two_sub_buffers =
    sizeof(ring<accepted_no_room_for_two_sub_buffers>);
#endif

#ifdef FAILS_a_ring_of_no_list  // expect: a kind of ring is a named list of policies
ring<plain> no_ring;
#endif
#ifdef PASSES_a_ring_of_no_list
struct list : policies<> {};
ring<list> list_ring;
#endif

#ifdef FAILS_an_odd_sub_buffer  // expect: needs a power of two from 512 to 32768
struct refused_an_odd_sub_buffer : policies<record::sub_buffers<1000>> {};
constexpr auto instance_of_an_odd_sub_buffer = sizeof(ring<refused_an_odd_sub_buffer>);
#endif
#ifdef PASSES_an_odd_sub_buffer
struct accepted_an_odd_sub_buffer : policies<record::sub_buffers<1024>> {};
constexpr auto twin_of_an_odd_sub_buffer = sizeof(ring<accepted_an_odd_sub_buffer>);
#endif

#ifdef FAILS_a_block_without_end  // expect: full::block needs a time limit above zero
struct refused_a_block_without_end : policies<full::block<0ms>> {};
constexpr auto instance_of_a_block_without_end = sizeof(ring<refused_a_block_without_end>);
#endif
#ifdef PASSES_a_block_without_end
struct accepted_a_block_without_end : policies<full::block<1ns>> {};
constexpr auto twin_of_a_block_without_end = sizeof(ring<accepted_a_block_without_end>);
#endif

#ifdef FAILS_a_step_of_nothing  // expect: needs a step above zero
struct refused_a_step_of_nothing : policies<storage::mapped, full::extend<0, full::stop>> {};
constexpr auto instance_of_a_step_of_nothing = sizeof(ring<refused_a_step_of_nothing>);
#endif
#ifdef PASSES_a_step_of_nothing
struct accepted_a_step_of_nothing : policies<storage::mapped, full::extend<1, full::stop>> {};
constexpr auto twin_of_a_step_of_nothing = sizeof(ring<accepted_a_step_of_nothing>);
#endif

#ifdef FAILS_extend_within_extend  // expect: cannot go on with another full::extend
struct refused_extend_within_extend
    : policies<storage::mapped, full::extend<1, full::extend<1, full::stop>>> {};
constexpr auto instance_of_extend_within_extend = sizeof(ring<refused_extend_within_extend>);
#endif
#ifdef PASSES_extend_within_extend
struct accepted_extend_within_extend
    : policies<storage::mapped, full::extend<1, full::discard_newest>> {};
constexpr auto twin_of_extend_within_extend = sizeof(ring<accepted_extend_within_extend>);
#endif

#ifdef FAILS_a_threshold_of_nothing  // expect: needs a threshold above zero
notify::at_watermark<notify::bytes(0)> zero_mark;
#endif
#ifdef PASSES_a_threshold_of_nothing
notify::at_watermark<notify::bytes(1)> one_mark;
#endif

#ifdef FAILS_more_than_all  // expect: never fuller than 100 per cent
notify::at_watermark<notify::percent(101)> more_than_all;
#endif
#ifdef PASSES_more_than_all
notify::at_watermark<notify::percent(100)> all;
#endif

#ifdef FAILS_a_lower_mark_that_is_none  // expect: the lower mark is below the threshold
notify::at_watermark<notify::records(5), notify::by_futex, 100> low_is_high;
#endif
#ifdef PASSES_a_lower_mark_that_is_none
notify::at_watermark<notify::records(5), notify::by_futex, 99> low_is_low;
#endif

#ifdef FAILS_a_way_that_tells_nothing  // expect-error: constraint
notify::at_watermark<notify::records(5), plain> mute;
#endif
#ifdef PASSES_a_way_that_tells_nothing
notify::at_watermark<notify::records(5), notify::by_signal> not_mute;
#endif

#ifdef FAILS_a_threshold_above_the_ring  // expect: lies above what the ring can hold
struct refused_a_threshold_above_the_ring
    : policies<record::bare<plain>, claim::single_writer, full::discard_newest,
               storage::inline_bytes<8 * sizeof(plain)>, notify::at_watermark<notify::records(9)>> {
};
constexpr auto instance_of_a_threshold_above_the_ring =
    sizeof(ring<refused_a_threshold_above_the_ring>);
#endif
#ifdef PASSES_a_threshold_above_the_ring
struct accepted_a_threshold_above_the_ring
    : policies<record::bare<plain>, claim::single_writer, full::discard_newest,
               storage::inline_bytes<8 * sizeof(plain)>, notify::at_watermark<notify::records(8)>> {
};
constexpr auto twin_of_a_threshold_above_the_ring =
    sizeof(ring<accepted_a_threshold_above_the_ring>);
struct accepted_circular_above_the_ring
    : policies<record::bare<plain>, claim::single_writer, storage::inline_bytes<8 * sizeof(plain)>,
               notify::at_watermark<notify::records(9)>> {};
constexpr auto twin_of_circular_above_the_ring = sizeof(ring<accepted_circular_above_the_ring>);
#endif

#ifdef FAILS_bytes_above_the_ring  // expect: lies above what the ring can hold
struct refused_bytes_above_the_ring
    : policies<record::sub_buffers<512>, full::stop, storage::inline_bytes<2048>,
               notify::at_watermark<notify::bytes(2049)>> {};
constexpr auto instance_of_bytes_above_the_ring = sizeof(ring<refused_bytes_above_the_ring>);
#endif
#ifdef PASSES_bytes_above_the_ring
struct accepted_bytes_above_the_ring
    : policies<record::sub_buffers<512>, full::stop, storage::inline_bytes<2048>,
               notify::at_watermark<notify::bytes(2048)>> {};
constexpr auto twin_of_bytes_above_the_ring = sizeof(ring<accepted_bytes_above_the_ring>);
#endif

// Elements that cannot be copied as bytes. The message is only this sentence (meta/ways.py looks at
// all else): a ring of them is made, written and read.
struct with_virtual {
    virtual void f() {}
};
struct with_function {
    void f() {}
    int n;
};
struct with_const_member {
    const int n;
};
struct with_reference {
    int& to;
};
struct with_pointer {
    int* to;
};
struct made_of_number {
    explicit made_of_number(int);
    int n;
};
template <std::size_t Bytes>
struct alignas(Bytes) aligned_to {
    int n;
};
struct undefined;
struct int4 {
    int n[4];
};
template <class Record, class Claim>
struct elements : policies<Record, Claim, full::discard_newest, storage::inline_bytes<4096>> {};

#ifdef FAILS_a_ring_of_bare_strings  // expect: copied as bytes
inline ring<elements<record::bare<std::string>, claim::single_writer>> refused_bare_strings;
#endif
#ifdef PASSES_a_ring_of_bare_strings
inline ring<elements<record::bare<std::array<char, 16>>, claim::single_writer>>
    accepted_bare_strings;
#endif

#ifdef FAILS_a_ring_of_strings  // expect: copied as bytes
inline ring<elements<record::sequenced<std::string>, claim::compare_exchange>> refused_strings;
#endif
#ifdef PASSES_a_ring_of_strings
inline ring<elements<record::sequenced<std::array<char, 16>>, claim::compare_exchange>>
    accepted_strings;
#endif

#ifdef FAILS_a_ring_of_owners  // expect: copied as bytes
inline ring<elements<record::bare<std::unique_ptr<int>>, claim::single_writer>> refused_owners;
#endif
#ifdef PASSES_a_ring_of_owners
inline ring<elements<record::bare<int*>, claim::single_writer>> accepted_owners;
#endif

#ifdef FAILS_a_ring_of_virtual_functions  // expect: copied as bytes
inline ring<elements<record::sequenced<with_virtual>, claim::compare_exchange>>
    refused_virtual_functions;
#endif
#ifdef PASSES_a_ring_of_virtual_functions
inline ring<elements<record::sequenced<with_function>, claim::compare_exchange>>
    accepted_virtual_functions;
#endif

#ifdef FAILS_a_ring_of_references  // expect: records of a ring are objects
inline ring<elements<record::sequenced<int&>, claim::compare_exchange>> refused_references;
#endif
#ifdef PASSES_a_ring_of_references
inline ring<elements<record::sequenced<int*>, claim::compare_exchange>> accepted_references;
#endif

#ifdef FAILS_a_ring_of_arrays  // expect: records of a ring are objects
inline ring<elements<record::bare<int[4]>, claim::single_writer>> refused_arrays;
#endif
#ifdef PASSES_a_ring_of_arrays
inline ring<elements<record::bare<int4>, claim::single_writer>> accepted_arrays;
#endif

#ifdef FAILS_a_ring_of_nothing  // expect: records of a ring are objects
inline ring<elements<record::bare<void>, claim::single_writer>> refused_nothing;
#endif
#ifdef PASSES_a_ring_of_nothing
inline ring<elements<record::bare<char>, claim::single_writer>> accepted_nothing;
#endif

#ifdef FAILS_a_ring_of_constants  // expect: neither const nor volatile
inline ring<elements<record::bare<const int>, claim::single_writer>> refused_constants;
#endif
#ifdef PASSES_a_ring_of_constants
inline ring<elements<record::bare<int>, claim::single_writer>> accepted_constants;
#endif

#ifdef FAILS_a_ring_of_volatile_numbers  // expect: neither const nor volatile
inline ring<elements<record::sequenced<volatile int>, claim::compare_exchange>>
    refused_volatile_numbers;
#endif
#ifdef PASSES_a_ring_of_volatile_numbers
inline ring<elements<record::sequenced<int>, claim::compare_exchange>> accepted_volatile_numbers;
#endif

#ifdef FAILS_a_ring_of_atomics  // expect: copied and assigned
inline ring<elements<record::sequenced<std::atomic<int>>, claim::compare_exchange>> refused_atomics;
#endif
#ifdef PASSES_a_ring_of_atomics
inline ring<elements<record::sequenced<int>, claim::compare_exchange>> accepted_atomics;
#endif

#ifdef FAILS_a_ring_of_const_members  // expect: copied and assigned
inline ring<elements<record::bare<with_const_member>, claim::single_writer>> refused_const_members;
#endif
#ifdef PASSES_a_ring_of_const_members
inline ring<elements<record::bare<with_function>, claim::single_writer>> accepted_const_members;
#endif

#ifdef FAILS_a_ring_of_members_that_refer  // expect: copied and assigned
inline ring<elements<record::sequenced<with_reference>, claim::compare_exchange>>
    refused_members_that_refer;
#endif
#ifdef PASSES_a_ring_of_members_that_refer
inline ring<elements<record::sequenced<with_pointer>, claim::compare_exchange>>
    accepted_members_that_refer;
#endif

#ifdef FAILS_a_ring_of_made_of_something  // expect: default constructor
inline ring<elements<record::bare<made_of_number>, claim::single_writer>> refused_made_of_something;
#endif
#ifdef PASSES_a_ring_of_made_of_something
inline ring<elements<record::bare<with_pointer>, claim::single_writer>> accepted_made_of_something;
#endif

#ifdef FAILS_a_ring_of_aligned_to_two_lines  // expect: at most 64 bytes
inline ring<elements<record::bare<aligned_to<128>>, claim::single_writer>>
    refused_aligned_to_two_lines;
#endif
#ifdef PASSES_a_ring_of_aligned_to_two_lines
inline ring<elements<record::bare<aligned_to<64>>, claim::single_writer>>
    accepted_aligned_to_two_lines;
#endif

#ifdef FAILS_a_ring_of_aligned_to_two_lines_in_slots  // expect: at most 64 bytes
inline ring<elements<record::sequenced<aligned_to<128>>, claim::compare_exchange>>
    refused_aligned_to_two_lines_in_slots;
#endif
#ifdef PASSES_a_ring_of_aligned_to_two_lines_in_slots
inline ring<elements<record::sequenced<aligned_to<64>>, claim::compare_exchange>>
    accepted_aligned_to_two_lines_in_slots;
#endif

#ifdef FAILS_a_ring_of_undefined_types  // expect: declared and not defined
inline ring<elements<record::bare<undefined>, claim::single_writer>> refused_undefined_types;
#endif
#ifdef PASSES_a_ring_of_undefined_types
inline ring<elements<record::bare<with_pointer>, claim::single_writer>> accepted_undefined_types;
#endif

#ifdef FAILS_consuming_what_has_no_mark  // expect: cannot be consumed
struct unmarked : policies<record::bare<plain>> {};
inline ring<unmarked> unmarked_ring;
auto unmarked_item() {
    return unmarked_ring.consumer().next();
}
#endif
#ifdef PASSES_consuming_what_has_no_mark
struct marked : policies<record::sequenced<plain>> {};
inline ring<marked> marked_ring;
auto marked_item() {
    return marked_ring.consumer().next();
}
#endif

#ifdef FAILS_reading_what_has_no_positions  // expect: has no readers
struct uncounted : policies<record::bare<plain>, claim::das_offsets> {};
inline ring<uncounted> uncounted_ring;
auto uncounted_item() {
    return table_reader<table_ring<uncounted>>(uncounted_ring).next();
}
#endif
#ifdef PASSES_reading_what_has_no_positions
struct counted : policies<record::bare<plain>, claim::fetch_add> {};
inline ring<counted> counted_ring;
auto counted_item() {
    return table_reader<table_ring<counted>>(counted_ring).next();
}
#endif

#ifdef FAILS_an_item_of_a_reader_that_is_gone  // expect-error: rvalue|lvalue|discards qualifiers
struct varying_a : policies<> {};
inline ring<varying_a> varying_a_ring;
auto dangling() {
    return varying_a_ring.reader().next();
}
#endif
#ifdef PASSES_an_item_of_a_reader_that_is_gone
struct varying_b : policies<> {};
inline ring<varying_b> varying_b_ring;
auto read_on() {
    auto reader = varying_b_ring.reader();
    return reader.next().at;
}
#endif

#ifdef FAILS_writing_a_string_object  // expect: records hold trivially copyable values
struct varying_c : policies<> {};
inline ring<varying_c> varying_c_ring;
bool write_object(const std::string& text) {
    return varying_c_ring.write(1, text);
}
#endif
#ifdef PASSES_writing_a_string_object
struct varying_d : policies<> {};
inline ring<varying_d> varying_d_ring;
bool write_bytes(const std::string& text) {
    return varying_d_ring.write_bytes(1, std::as_bytes(std::span(text)));
}
#endif

#ifdef FAILS_a_lane_each_cpu  // expect: use trace_ring::basic_recorder with claim::per_cpu
struct by_cpu_a : policies<claim::per_cpu, storage::heap> {};
inline ring<by_cpu_a> by_cpu_a_ring(1 << 20);
#endif
#ifdef PASSES_a_lane_each_cpu
struct by_cpu_b : policies<claim::single_writer, storage::heap> {};
inline ring<by_cpu_b> by_cpu_b_ring(1 << 20);
#endif

#ifdef FAILS_a_lane_each_cpu_in_a_table  // expect: claim::per_cpu is for recorders and not for
                                         // rings
struct by_cpu_c : policies<record::sequenced<plain>, claim::per_cpu, full::stop> {};
constexpr auto instance_of_by_cpu_c = sizeof(ring<by_cpu_c>);
#endif
#ifdef PASSES_a_lane_each_cpu_in_a_table
struct by_cpu_d : policies<record::sequenced<plain>, claim::compare_exchange, full::stop> {};
constexpr auto instance_of_by_cpu_d = sizeof(ring<by_cpu_d>);
#endif
