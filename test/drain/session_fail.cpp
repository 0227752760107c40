// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What a user reads who begins a session of something that cannot be drained: one sentence, which
// says what to write. The twins are that.

#include <cstdint>

#include <trace_ring/draining.hpp>
#include <trace_ring/rings.hpp>
#include <trace_ring/trace_ring.hpp>

using namespace trace_ring;

struct step {
    std::uint64_t a, b;
};
struct latest : policies<record::sub_buffers<>> {};
struct all_of_it : policies<record::sub_buffers<>, full::stop> {};
struct steps : policies<record::sequenced<step>, claim::compare_exchange, full::discard_newest> {};

inline ring<latest> latest_ring;
inline ring<all_of_it> whole_ring;
inline ring<steps> step_ring;

struct derived_latest : ring<latest> {};
struct derived_whole : ring<all_of_it> {};
inline derived_latest derived_latest_ring;
inline derived_whole derived_whole_ring;

constexpr auto count = [](const auto& portion) { return portion.records(); };

#ifdef FAILS_a_ring_that_overwrites  // expect-only: name full::discard_newest, full::stop or
std::uint64_t a_ring_that_overwrites() {
    drain::session session(latest_ring);
    return session.for_each(count) + session.records();
}
#endif
#ifdef PASSES_a_ring_that_overwrites
std::uint64_t a_ring_that_does_not_overwrite() {
    drain::session session(whole_ring);
    return session.for_each(count) + session.records();
}
#endif

#ifdef FAILS_a_class_derived_from_such_a_ring  // expect-only: name full::discard_newest, full::stop
std::uint64_t a_class_derived_from_such_a_ring() {
    drain::session session(derived_latest_ring);
    return session.finish(count);
}
#endif
#ifdef PASSES_a_class_derived_from_such_a_ring
std::uint64_t a_class_derived_from_another_ring() {
    drain::session session(derived_whole_ring);
    return session.finish(count);
}
#endif

#ifdef FAILS_its_type_by_name  // expect-only: name full::discard_newest, full::stop or
std::uint64_t its_type_by_name() {
    drain::session<ring<latest>> session(latest_ring);
    return session.peek_each(count);
}
#endif
#ifdef PASSES_its_type_by_name
std::uint64_t another_type_by_name() {
    drain::session<ring<all_of_it>> session(whole_ring);
    drain::session<ring<all_of_it>&> by_reference(whole_ring);
    return session.peek_each(count) + by_reference.finish_records([](const auto&) {});
}
#endif

#ifdef FAILS_its_policies_by_name  // expect-only: name full::discard_newest, full::stop or
std::uint64_t its_policies_by_name() {
    drain::session<latest> session(latest_ring);
    return session.finish(count);
}
#endif
#ifdef PASSES_its_policies_by_name
std::uint64_t other_policies_by_name() {
    drain::session<all_of_it> session(whole_ring);
    return session.finish(count);
}
#endif

#ifdef FAILS_a_ring_of_records_of_one_size  // expect-only: has no sessions: write auto consumer =
std::uint64_t a_ring_of_records_of_one_size() {
    drain::session session(step_ring);
    return session.for_each_record([](const auto&) {});
}
#endif
#ifdef PASSES_a_ring_of_records_of_one_size
std::uint64_t a_consumer_of_records_of_one_size() {
    std::uint64_t sum = 0;
    auto consumer = step_ring.consumer();
    while (const auto item = consumer.next()) sum += item.at;
    return sum;
}
#endif

#ifdef FAILS_a_ring_that_is_const  // expect-only: give it an object that is not const
std::uint64_t a_ring_that_is_const(const ring<all_of_it>& from) {
    drain::session session(from);
    return session.finish(count);
}
#endif
#ifdef PASSES_a_ring_that_is_const
std::uint64_t a_ring_that_is_not_const(ring<all_of_it>& from) {
    drain::session session(from);
    return session.finish(count);
}
#endif

#ifdef FAILS_a_pointer  // expect-only: not a pointer: write drain::session session\(\*pointer\)
std::uint64_t a_pointer() {
    drain::session session(&whole_ring);
    return session.finish(count);
}
#endif
#ifdef PASSES_a_pointer
std::uint64_t what_a_pointer_points_to(ring<all_of_it>* pointer) {
    drain::session session(*pointer);
    return session.finish(count);
}
#endif

#ifdef FAILS_a_temporary_object  // expect-only: must outlive the session: give it a name first
std::uint64_t a_temporary_object() {
    drain::session session(drain_source{"orders.trace"});
    return session.finish(count);
}
#endif
#ifdef PASSES_a_temporary_object
std::uint64_t a_named_object() {
    drain_source source{"orders.trace"};
    drain::session session(source);
    return session.finish(count);
}
#endif

#ifdef FAILS_nothing_at_all  // expect-only: write drain::session session\(object\)
void nothing_at_all() {
    drain::session session;
}
#endif
#ifdef PASSES_nothing_at_all
std::uint64_t a_recorder(recorder& from) {
    drain::session session(from);
    drain::session<recorder> by_name(from);
    return session.finish(count) + by_name.finish(count);
}
#endif

#ifdef FAILS_something_else  // expect-only: where the object is a recorder .include .trace_ring
std::uint64_t something_else(step from) {
    drain::session session(from);
    return session.lost().total() + session.service(count);
}
#endif
#ifdef PASSES_something_else
std::uint64_t a_drainable(drain_source& from) {
    drain::session session(from);
    return session.lost().total() + session.finish(count);
}
#endif
