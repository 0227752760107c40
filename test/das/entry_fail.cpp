// Copyright the trace_ring authors.
// Distributed under the Boost Software License, Version 1.0. See LICENSE.

// What does not go into a DAS entry is refused when it is compiled.

#include <cstdint>
#include <string>

#include <trace_ring/das/entry.hpp>

inline trace_ring::record::das_entry entry;
struct of_33_bytes {
    char bytes[33];
};
struct of_32_bytes {
    char bytes[32];
};

#ifdef FAILS_one_byte_too_many  // expect: do not fit the 32 bytes of a DAS entry
void refused_one_byte_too_many() {
    entry.fill(of_33_bytes{});
}
#endif
#ifdef PASSES_one_byte_too_many
void accepted_one_byte_too_many() {
    entry.fill(of_32_bytes{});
}
#endif

#ifdef FAILS_the_sum_is_too_much  // expect: do not fit the 32 bytes of a DAS entry
void refused_the_sum_is_too_much() {
    entry.fill(of_32_bytes{}, 'x');
}
#endif
#ifdef PASSES_the_sum_is_too_much
void accepted_the_sum_is_too_much() {
    entry.fill(std::uint64_t{}, std::uint64_t{}, std::uint64_t{}, std::uint32_t{}, 'x');
}
#endif

#ifdef FAILS_a_type_with_a_destructor  // expect: holds trivially copyable values only
void refused_a_type_with_a_destructor() {
    entry.fill(std::string{"text"});
}
#endif
#ifdef PASSES_a_type_with_a_destructor
void accepted_a_type_with_a_destructor() {
    entry.fill("text");
}
#endif

#ifdef FAILS_reading_more_than_there_is  // expect: holds 32 bytes, and these values need more
void refused_reading_more_than_there_is(of_32_bytes& all, char& more) {
    entry.unpack(all, more);
}
#endif
#ifdef PASSES_reading_more_than_there_is
void accepted_reading_more_than_there_is(of_32_bytes& all) {
    entry.unpack(all);
}
#endif
